//! Do the state machines of the caller hold? A judge in memory and a paused clock.

use super::JudgeClient;
use super::config::{CallOutcome, JudgeSpec, Price, Secret};
use super::record::{MemoryRecord, Record, held};
use super::transport::{Broken, Parcel, Reply, Wire};
use crate::judge::{Form, Usage, Verdict};
use crate::judge::{Query, Request};
use crate::reason::{Code, Reason};
use futures_util::future::{BoxFuture, join_all};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What the judge in memory does with its call of that number: after how long, and what.
type Script = dyn Fn(usize, &Call) -> (u64, Result<Reply, Broken>) + Send + Sync;

#[derive(Debug, Clone)]
struct Call {
    at: Duration,
    endpoint: usize,
    body: String,
}

/// The calls so far, and how many are on their way.
#[derive(Debug, Default)]
struct Seen {
    calls: Vec<Call>,
    on_the_way: usize,
    peak: usize,
}

struct Memory {
    start: Instant,
    seen: Arc<Mutex<Seen>>,
    script: Box<Script>,
}

struct OnTheWay<'m>(&'m Mutex<Seen>);

impl Drop for OnTheWay<'_> {
    fn drop(&mut self) {
        held(self.0).on_the_way -= 1;
    }
}

impl Wire for Memory {
    fn send<'a>(&'a self, parcel: Parcel<'a>) -> BoxFuture<'a, Result<Reply, Broken>> {
        Box::pin(async move {
            let body = String::from_utf8_lossy(&parcel.request.body).into_owned();
            let call = Call { at: self.start.elapsed(), endpoint: parcel.endpoint, body };
            let number = {
                let mut seen = held(&self.seen);
                seen.calls.push(call.clone());
                seen.on_the_way += 1;
                seen.peak = seen.peak.max(seen.on_the_way);
                seen.calls.len() - 1
            };
            let _gone = OnTheWay(&self.seen);
            let (millis, reply) = (self.script)(number, &call);
            sleep(Duration::from_millis(millis)).await;
            reply
        })
    }
}

/// A question by its number, whose verdict is what the body says.
struct Number(usize, Vec<Form>);

impl Query for Number {
    fn forms(&self) -> &[Form] {
        &self.1
    }

    fn request(&self, form: Form, attempt: u32) -> Result<Request, Reason> {
        let body = format!("{} {form:?} {attempt}", self.0).into_bytes();
        Ok(Request { path: "/chat/completions", body })
    }

    fn read(&self, form: Form, _: u32, body: &[u8]) -> Result<Verdict, Reason> {
        match body {
            b"{\"good\":1}" => Ok(Verdict::Score(1.0)),
            b"{\"good\":2}" if form == Form::Logprobs => Err(Code::JudgeNoLogprobs.into()),
            b"{\"good\":2}" => Ok(Verdict::Score(1.0)),
            _ => Err(Code::JudgeSchema.into()),
        }
    }

    fn usage(&self, _: &[u8]) -> Option<Usage> {
        Some(Usage { prompt: 1, cached: 0, completion: 100 })
    }
}

fn number(number: usize) -> Number {
    Number(number, vec![Form::Json])
}

fn reply(status: u16, body: &str) -> Result<Reply, Broken> {
    Ok(Reply { status, body: body.into(), retry_after: None, encoded: false })
}

fn good() -> Result<Reply, Broken> {
    reply(200, "{\"good\":1}")
}

fn broken(code: Code, sent: bool) -> Result<Reply, Broken> {
    Err(Broken::new(code, sent))
}

fn wait(seconds: &str) -> Result<Reply, Broken> {
    Ok(Reply { status: 429, body: Vec::new(), retry_after: Some(seconds.to_owned()), encoded: false })
}

struct Stage {
    caller: JudgeClient,
    seen: Arc<Mutex<Seen>>,
}

impl Stage {
    fn new(
        spec: JudgeSpec,
        script: impl Fn(usize, &Call) -> (u64, Result<Reply, Broken>) + Send + Sync + 'static,
    ) -> Self {
        Self::with(spec, Arc::new(MemoryRecord::default()), script)
    }

    fn with(
        spec: JudgeSpec,
        record: Arc<dyn Record>,
        script: impl Fn(usize, &Call) -> (u64, Result<Reply, Broken>) + Send + Sync + 'static,
    ) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let wire = Memory { start: Instant::now(), seen: Arc::clone(&seen), script: Box::new(script) };
        Self { caller: JudgeClient::over(spec, Box::new(wire), record), seen }
    }

    async fn ask(&self, queries: &[Number], seconds: u64) -> Vec<CallOutcome> {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        join_all(queries.iter().map(|query| self.caller.ask(0, query, deadline))).await
    }

    async fn ask_all(&self, count: usize, seconds: u64) -> Vec<CallOutcome> {
        self.ask(&(0..count).map(number).collect::<Vec<_>>(), seconds).await
    }

    fn calls(&self) -> Vec<Call> {
        held(&self.seen).calls.clone()
    }

    fn is_idle(&self) -> bool {
        held(&self.seen).on_the_way == 0
    }
}

fn spec() -> JudgeSpec {
    JudgeSpec::at("judge", "http://127.0.0.1:1/v1")
}

fn scored(asked: &[CallOutcome]) -> usize {
    asked.iter().filter(|asked| asked.verdict == Ok(Verdict::Score(1.0))).count()
}

fn failed(asked: &[CallOutcome], code: Code) -> usize {
    asked.iter().filter(|asked| asked.verdict.as_ref().is_err_and(|reason| reason.code == code)).count()
}

#[tokio::test(start_paused = true)]
async fn the_first_call_is_a_probe_and_the_limit_holds() {
    let stage = Stage::new(JudgeSpec { concurrency: 8, ..spec() }, |_, _| (100, good()));
    assert_eq!(scored(&stage.ask_all(100, 60).await), 100);
    let calls = stage.calls();
    assert_eq!(calls.len(), 100);
    assert_eq!(calls.iter().filter(|call| call.at < Duration::from_millis(100)).count(), 1);
    assert_eq!(held(&stage.seen).peak, 8);
    let order: Vec<String> = (0..100).map(|at| format!("{at} Json 0")).collect();
    assert_eq!(
        calls.iter().map(|call| call.body.clone()).collect::<Vec<_>>(),
        order,
        "first come, first served"
    );
    let tally = &stage.caller.tallies()[0];
    assert_eq!((tally.calls, tally.retries, tally.peak), (100, 0, 8));
}

#[tokio::test(start_paused = true)]
async fn a_dead_judge_is_left_alone_and_calls_wait_no_longer_than_patience() {
    let spec = JudgeSpec { patience: Duration::from_secs(12), ..spec() };
    let stage = Stage::new(spec, |_, _| (1, broken(Code::JudgeConnect, false)));
    let start = Instant::now();
    let asked = stage.ask_all(200, 300).await;
    assert_eq!(scored(&asked), 0);
    assert!(failed(&asked, Code::JudgeBreakerOpen) >= 195);
    assert!(stage.calls().len() <= 7, "{}", stage.calls().len());
    assert!(start.elapsed() < Duration::from_secs(15));
    assert_eq!(stage.caller.tallies()[0].openings, 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_when_a_judge_comes_back() {
    let stage = Stage::new(spec(), |_, call| match call.at.as_secs() {
        0..=19 => (1, broken(Code::JudgeConnect, false)),
        _ => (50, good()),
    });
    let start = Instant::now();
    assert_eq!(scored(&stage.ask_all(200, 300).await), 200);
    assert!(start.elapsed() < Duration::from_secs(40), "{:?}", start.elapsed());
    assert!(stage.calls().len() <= 210);
}

#[tokio::test(start_paused = true)]
async fn retries_of_a_judge_that_fails_now_and_then_are_a_share() {
    let stage =
        Stage::new(spec(), |number, _| if number % 2 == 1 { (5, reply(500, "")) } else { (5, good()) });
    let asked = stage.ask_all(200, 300).await;
    assert!(stage.calls().len() <= 245, "{}", stage.calls().len());
    assert_eq!(scored(&asked) + failed(&asked, Code::JudgeServerError), 200);
    assert!(asked.iter().all(|asked| asked.attempts <= 4));
    assert!(scored(&asked) >= 115, "{}", scored(&asked));
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_paid_is_sent_once_more_only() {
    let stage = Stage::new(spec(), |_, _| (5, broken(Code::JudgeReset, true)));
    let asked = stage.ask_all(1, 300).await;
    assert_eq!((failed(&asked, Code::JudgeReset), asked[0].attempts), (1, 2));
    assert_eq!(stage.caller.tallies()[0].maybe_paid, 2);
}

#[tokio::test(start_paused = true)]
async fn a_silent_judge_costs_the_time_of_an_attempt() {
    let spec = JudgeSpec { timeout: Duration::from_secs(2), ..spec() };
    let stage = Stage::new(spec, |_, _| (1_000_000, good()));
    let start = Instant::now();
    let asked = stage.ask_all(1, 300).await;
    assert_eq!(failed(&asked, Code::JudgeTimeout), 1);
    assert!(start.elapsed() < Duration::from_secs(5) && stage.is_idle());
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_whatever_waits_or_travels() {
    let stage = Stage::new(JudgeSpec { concurrency: 2, ..spec() }, |number, _| match number {
        0 => (1, good()),
        _ => (1_000_000, good()),
    });
    let start = Instant::now();
    let asked = stage.ask_all(50, 7).await;
    assert_eq!((scored(&asked), failed(&asked, Code::JudgeDeadline)), (1, 49));
    assert_eq!(start.elapsed().as_secs(), 7);
    assert!(stage.is_idle());
    assert_eq!(stage.caller.tallies()[0].maybe_paid, 2);
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_everybody_back_and_ends_with_one_probe() {
    let stage = Stage::new(spec(), |_, call| match call.at.as_millis() {
        0..500 => (100, good()),
        500..5_000 => (10, wait("3")),
        _ => (100, good()),
    });
    let asked = stage.ask_all(400, 300).await;
    assert_eq!(scored(&asked), 400);
    let calls = stage.calls();
    let after = |from: u64, to: u64| {
        calls.iter().filter(|call| (from..to).contains(&(call.at.as_millis() as u64))).count()
    };
    assert_eq!(after(520, 3_500), 0, "nobody passes during the pause");
    assert_eq!(after(3_500, 3_600), 1, "one probe");
    assert!(stage.caller.tallies()[0].limit < 32);
}

#[tokio::test(start_paused = true)]
async fn a_pause_beyond_reason_fails_at_once() {
    let stage = Stage::new(spec(), |_, _| (1, wait("86400")));
    let start = Instant::now();
    let asked = stage.ask_all(200, 300).await;
    assert_eq!(failed(&asked, Code::JudgeRateLimited), 200);
    assert!(stage.calls().len() == 1 && start.elapsed() < Duration::from_secs(1));
    for junk in ["-5", "soon"] {
        let stage = Stage::new(spec(), move |at, _| (1, if at == 0 { wait(junk) } else { good() }));
        assert_eq!(scored(&stage.ask_all(20, 30).await), 20);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_key_fails_all_at_once() {
    for (status, body, code) in [(401, "", Code::JudgeAuth), (429, "insufficient_quota", Code::JudgeQuota)] {
        let stage = Stage::new(spec(), move |_, _| (1, reply(status, body)));
        assert_eq!(failed(&stage.ask_all(200, 300).await, code), 200);
        assert_eq!(stage.calls().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn equal_questions_are_asked_once_and_a_second_run_asks_nothing() {
    let record: Arc<dyn Record> = Arc::new(MemoryRecord::default());
    let stage = Stage::with(spec(), Arc::clone(&record), |_, _| (10, good()));
    let same: Vec<Number> = (0..50).map(|at| number(at % 5)).collect();
    assert_eq!(scored(&stage.ask(&same, 60).await), 50);
    assert_eq!((stage.calls().len(), stage.caller.tallies()[0].shared), (5, 45));
    let again = Stage::with(spec(), record, |_, _| (10, good()));
    let asked = again.ask(&same, 60).await;
    assert!(scored(&asked) == 50 && again.calls().is_empty());
    assert!(asked.iter().any(|asked| asked.cached));
}

#[tokio::test(start_paused = true)]
async fn a_question_whose_asker_leaves_is_asked_by_the_next() {
    let stage = Stage::new(spec(), |_, _| (1_000, good()));
    let query = number(1);
    let late = Instant::now() + Duration::from_secs(60);
    let leaving = tokio::time::timeout(Duration::from_millis(500), stage.caller.ask(0, &query, late));
    let (left, stayed) = futures_util::future::join(leaving, stage.caller.ask(0, &query, late)).await;
    assert!(left.is_err() && stayed.verdict.is_ok());
    assert_eq!(stage.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn answers_without_a_verdict_are_kept_and_the_chain_is_the_same_again() {
    let record: Arc<dyn Record> = Arc::new(MemoryRecord::default());
    let script = |_: usize, call: &Call| {
        (10, reply(200, if call.body.ends_with("1") { "{\"good\":1}" } else { "{}" }))
    };
    let stage = Stage::with(spec(), Arc::clone(&record), script);
    let first = stage.ask_all(100, 60).await;
    let calls = stage.calls().len();
    assert!(calls <= 130, "{calls}");
    assert!(scored(&first) >= 15 && failed(&first, Code::JudgeSchema) >= 75);
    let again = Stage::with(spec(), record, script);
    let second = again.ask_all(100, 60).await;
    assert_eq!(again.calls().len(), 0);
    let verdicts =
        |asked: &[CallOutcome]| asked.iter().map(|asked| asked.verdict.clone()).collect::<Vec<_>>();
    assert_eq!(verdicts(&first), verdicts(&second));
}

#[tokio::test(start_paused = true)]
async fn the_form_is_found_by_one_call_and_remembered() {
    for refusal in [400, 200] {
        let record: Arc<dyn Record> = Arc::new(MemoryRecord::default());
        let script = move |_: usize, call: &Call| {
            let refused = call.body.contains("Logprobs");
            (10, if refused { reply(refusal, "{\"good\":2}") } else { reply(200, "{\"good\":2}") })
        };
        let all =
            || (0..50).map(|at| Number(at, vec![Form::Logprobs, Form::Json, Form::Tag])).collect::<Vec<_>>();
        let stage = Stage::with(spec(), Arc::clone(&record), script);
        let asked = stage.ask(&all(), 60).await;
        assert_eq!((scored(&asked), stage.calls().len()), (50, 51));
        assert!(asked.iter().all(|asked| asked.form == Form::Json));
        assert_eq!(record.recall("form:judge").await.unwrap().as_deref(), Some("-logprobs +json"));
        let again = Stage::with(spec(), record, script);
        assert_eq!((scored(&again.ask(&all(), 60).await), again.calls().len()), (50, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn the_budget_of_calls_is_exact_over_restarts() {
    let record: Arc<dyn Record> = Arc::new(MemoryRecord::default());
    let spec = JudgeSpec { budget_calls: Some(50), ..spec() };
    let script = |at: usize, _: &Call| (10, if at % 7 == 6 { reply(500, "") } else { good() });
    let stage = Stage::with(spec.clone(), Arc::clone(&record), script);
    stage.ask_all(30, 60).await;
    let before = stage.calls().len();
    let again = Stage::with(spec, record, script);
    let asked = again.ask_all(200, 60).await;
    assert_eq!(before + again.calls().len(), 50);
    assert!(failed(&asked, Code::JudgeBudget) >= 150);
}

#[tokio::test(start_paused = true)]
async fn the_budget_of_cost_holds_and_is_used_up() {
    let price = Some(Price { input: 0.0, cached: 0.0, output: 10.0 });
    let spec = JudgeSpec { budget_cost: Some(0.1), price, ..spec() };
    let record: Arc<dyn Record> = Arc::new(MemoryRecord::default());
    let stage = Stage::with(spec, Arc::clone(&record), |_, _| (10, good()));
    let asked = stage.ask_all(200, 60).await;
    let cost = stage.caller.tallies()[0].cost.unwrap();
    assert!((0.09..=0.1 + 1e-9).contains(&cost), "{cost}");
    assert!((record.spent("judge").await.unwrap().1 - cost).abs() < 1e-9);
    assert_eq!(scored(&asked) + failed(&asked, Code::JudgeBudget), 200);
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_is_sent_twice_within_its_share() {
    let spec = JudgeSpec { base_urls: vec!["http://a".into(), "http://b".into()], ..spec() };
    let stage = Stage::new(spec, |at, _| (if at % 50 == 49 { 30_000 } else { 100 }, good()));
    let start = Instant::now();
    assert_eq!(scored(&stage.ask_all(400, 300).await), 400);
    let tally = &stage.caller.tallies()[0];
    assert!(tally.hedges >= 7 && tally.hedges * 20 <= tally.calls, "{}", tally.hedges);
    assert_eq!((tally.hedges_won, tally.maybe_paid), (tally.hedges, tally.hedges));
    assert!(start.elapsed() < Duration::from_secs(29), "{:?}", start.elapsed());
    assert!(stage.is_idle());
}

#[tokio::test(start_paused = true)]
async fn endpoints_share_the_load_and_a_dead_one_gets_none() {
    let urls = || vec!["http://a".into(), "http://b".into(), "http://c".into()];
    let stage = Stage::new(JudgeSpec { base_urls: urls(), ..spec() }, |_, call| match call.endpoint {
        2 => (1, broken(Code::JudgeConnect, false)),
        _ => (100, good()),
    });
    assert_eq!(scored(&stage.ask_all(300, 300).await), 300);
    let calls = stage.calls();
    let at = |endpoint| calls.iter().filter(|call| call.endpoint == endpoint).count();
    assert!(at(0) > 100 && at(1) > 100 && at(2) <= 7, "{} {} {}", at(0), at(1), at(2));
}

#[tokio::test(start_paused = true)]
async fn the_pace_is_kept_and_stopping_fails_what_waits() {
    let stage = Stage::new(JudgeSpec { per_minute: Some(60), ..spec() }, |_, _| (10, good()));
    let queries: Vec<Number> = (0..100).map(number).collect();
    let stop = async {
        sleep(Duration::from_millis(9_500)).await;
        stage.caller.stop();
    };
    let (asked, ()) = futures_util::future::join(stage.ask(&queries, 300), stop).await;
    assert_eq!((scored(&asked), failed(&asked, Code::Stopped)), (10, 90));
    let calls = stage.calls();
    assert!(calls.windows(2).all(|pair| pair[1].at - pair[0].at >= Duration::from_millis(999)));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_tells_how_it_went_the_last_time() {
    let stage = Stage::new(spec(), |_, _| (10, reply(503, r#"{"error":{"message":"loading the model"}}"#)));
    let asked = stage.ask_all(20, 3).await;
    let reasons: Vec<&Reason> = asked.iter().filter_map(|asked| asked.verdict.as_ref().err()).collect();
    let late: Vec<&&Reason> = reasons.iter().filter(|reason| reason.code == Code::JudgeDeadline).collect();
    assert!(!late.is_empty(), "{reasons:?}");
    for reason in late {
        let last =
            "The last time: The judge answered with status 503: loading the model (judge.server_error)";
        assert!(reason.message.contains(last), "{reason:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_in_an_error_is_hidden_however_short_it_is() {
    let key = Some(Secret::new("tok-1"));
    let stage = Stage::new(JudgeSpec { api_key: key, ..spec() }, |at, _| match at {
        0 => (1, good()),
        at => (1, reply([400, 401, 503][at % 3], "the key tok-1 is wrong, tok-1")),
    });
    for asked in stage.ask_all(20, 30).await {
        let told = format!("{:?}", asked.verdict);
        assert!(!told.contains("tok-1") && (asked.verdict.is_ok() || told.contains("***")), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn probes_do_not_keep_step_with_a_judge_that_comes_and_goes() {
    let stage = Stage::new(spec(), |_, call| match call.at.as_millis() % 1_000 {
        0..500 => (1, broken(Code::JudgeConnect, false)),
        _ => (1, good()),
    });
    let asked = stage.ask_all(40, 120).await;
    assert!(scored(&asked) > 0, "{:?}", asked.first().map(|asked| &asked.verdict));
    let times: Vec<u128> =
        stage.calls().iter().map(|call| call.at.as_millis()).filter(|at| *at > 2_000).collect();
    assert!(times.iter().any(|at| at % 1_000 > 20), "{times:?}");
}
