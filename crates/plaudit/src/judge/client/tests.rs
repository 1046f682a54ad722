//! Tests of the client against a judge in memory, on a paused clock.

use super::judge_state::JudgeState;
use super::query::{Query, Request};
use super::transport::{HttpReply, Outgoing, Transport, TransportError};
use super::{CallOutcome, ClientJudge, JudgeClient};
use crate::exec::lock;
use crate::judge::answer::{AnswerFormat, QuestionKind, Usage, Verdict};
use crate::judge::config::{AddressConfig, BudgetConfig, JudgeConfig, Price, ResolvedJudge};
use crate::judge::secret::Secret;
use crate::reason::{Code, Reason};
use crate::record::{Allowance, CallGrant, Claim, MemoryRecord, Network, Record, RecordSource};
use futures_util::future::{BoxFuture, join_all};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What the judge in memory does with its call of that number: after how long, and what.
type Script = dyn Fn(usize, &SeenCall) -> (u64, Result<HttpReply, TransportError>) + Send + Sync;

#[derive(Debug, Clone)]
struct SeenCall {
    at: Duration,
    endpoint: usize,
    body: String,
}

/// The calls so far, and how many are on their way.
#[derive(Debug, Default)]
struct SeenCalls {
    calls: Vec<SeenCall>,
    in_flight: usize,
    peak: usize,
}

struct MemoryTransport {
    start: Instant,
    seen: Arc<Mutex<SeenCalls>>,
    script: Box<Script>,
}

struct CallGuard<'m>(&'m Mutex<SeenCalls>);

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        lock(self.0).in_flight -= 1;
    }
}

impl Transport for MemoryTransport {
    fn send<'a>(&'a self, outgoing: Outgoing<'a>) -> BoxFuture<'a, Result<HttpReply, TransportError>> {
        Box::pin(async move {
            let body = String::from_utf8_lossy(&outgoing.request.body).into_owned();
            let call = SeenCall { at: self.start.elapsed(), endpoint: outgoing.endpoint, body };
            let number = {
                let mut seen = lock(&self.seen);
                seen.calls.push(call.clone());
                seen.in_flight += 1;
                seen.peak = seen.peak.max(seen.in_flight);
                seen.calls.len() - 1
            };
            let _gone = CallGuard(&self.seen);
            let (millis, reply) = (self.script)(number, &call);
            sleep(Duration::from_millis(millis)).await;
            reply
        })
    }
}

/// A question by its number, whose verdict is what the body says.
struct Number(usize, Vec<AnswerFormat>);

impl Query for Number {
    fn kind(&self) -> QuestionKind {
        QuestionKind::Score
    }

    fn formats(&self) -> &[AnswerFormat] {
        &self.1
    }

    fn request(&self, format: AnswerFormat, attempt: u32) -> Result<Request, Reason> {
        let body = format!("{} {format:?} {attempt}", self.0).into_bytes();
        Ok(Request { path: "/chat/completions", body })
    }

    fn read(&self, format: AnswerFormat, _: u32, body: &[u8]) -> Result<Verdict, Reason> {
        match body {
            b"{\"good\":1}" => Ok(Verdict::Score(1.0)),
            b"{\"good\":2}" if format == AnswerFormat::Logprobs => Err(Code::JudgeNoLogprobs.into()),
            b"{\"good\":2}" => Ok(Verdict::Score(1.0)),
            _ => Err(Code::JudgeSchema.into()),
        }
    }

    fn is_in_format(&self, format: AnswerFormat, body: &[u8]) -> bool {
        format != AnswerFormat::Logprobs || body != b"{\"prose\":\"without probabilities\"}"
    }

    fn usage(&self, _: &[u8]) -> Option<Usage> {
        Some(Usage { prompt: 1, cached: 0, completion: 100 })
    }
}

fn number(number: usize) -> Number {
    Number(number, vec![AnswerFormat::Json])
}

fn reply(status: u16, body: &str) -> Result<HttpReply, TransportError> {
    Ok(HttpReply { status, body: body.into(), ..HttpReply::default() })
}

fn good() -> Result<HttpReply, TransportError> {
    reply(200, "{\"good\":1}")
}

fn transport_error(code: Code, sent: bool) -> Result<HttpReply, TransportError> {
    Err(TransportError::new(code, sent))
}

fn wait(seconds: &str) -> Result<HttpReply, TransportError> {
    Ok(HttpReply { status: 429, retry_after: Some(seconds.to_owned()), ..HttpReply::default() })
}

struct Fixture {
    client: JudgeClient,
    seen: Arc<Mutex<SeenCalls>>,
}

impl Fixture {
    fn new(
        config: JudgeConfig,
        script: impl Fn(usize, &SeenCall) -> (u64, Result<HttpReply, TransportError>) + Send + Sync + 'static,
    ) -> Self {
        Self::with(config, Arc::new(MemoryRecord::default()), script)
    }

    fn with(
        judge: impl Into<ResolvedJudge>,
        record: Arc<dyn Record>,
        script: impl Fn(usize, &SeenCall) -> (u64, Result<HttpReply, TransportError>) + Send + Sync + 'static,
    ) -> Self {
        let seen = Arc::new(Mutex::new(SeenCalls::default()));
        let transport =
            MemoryTransport { start: Instant::now(), seen: Arc::clone(&seen), script: Box::new(script) };
        let judge = Arc::new(judge.into());
        let state = Arc::new(JudgeState::new(Arc::clone(&judge), Box::new(transport), None));
        let judges = vec![ClientJudge::new(judge, state)];
        Self { client: JudgeClient::over(judges, record, Network::Live), seen }
    }

    async fn ask(&self, queries: &[Number], seconds: u64) -> Vec<CallOutcome> {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        join_all(queries.iter().map(|query| self.client.ask(0, query, deadline))).await
    }

    async fn ask_all(&self, count: usize, seconds: u64) -> Vec<CallOutcome> {
        self.ask(&(0..count).map(number).collect::<Vec<_>>(), seconds).await
    }

    fn calls(&self) -> Vec<SeenCall> {
        lock(&self.seen).calls.clone()
    }

    fn is_idle(&self) -> bool {
        lock(&self.seen).in_flight == 0
    }
}

/// A judge at an address where nobody is.
pub(super) fn config() -> JudgeConfig {
    let base_url = Some(AddressConfig::One("http://127.0.0.1:1/v1".to_owned()));
    JudgeConfig { base_url, model: Some("judge".to_owned()), concurrency: 32, ..JudgeConfig::default() }
}

pub(super) fn resolved(config: JudgeConfig) -> ResolvedJudge {
    ResolvedJudge::new("judge", config).expect("a judge")
}

impl From<JudgeConfig> for ResolvedJudge {
    fn from(config: JudgeConfig) -> Self {
        resolved(config)
    }
}

fn scored(asked: &[CallOutcome]) -> usize {
    asked.iter().filter(|asked| asked.verdict == Ok(Verdict::Score(1.0))).count()
}

fn failed(asked: &[CallOutcome], code: Code) -> usize {
    asked.iter().filter(|asked| asked.verdict.as_ref().is_err_and(|reason| reason.code == code)).count()
}

#[tokio::test(start_paused = true)]
async fn the_first_call_is_a_probe_and_the_limit_holds() {
    let fixture = Fixture::new(JudgeConfig { concurrency: 8, ..config() }, |_, _| (100, good()));
    assert_eq!(scored(&fixture.ask_all(100, 60).await), 100);
    let calls = fixture.calls();
    assert_eq!(calls.len(), 100);
    assert_eq!(calls.iter().filter(|call| call.at < Duration::from_millis(100)).count(), 1);
    assert_eq!(lock(&fixture.seen).peak, 8);
    let order: Vec<String> = (0..100).map(|at| format!("{at} Json 0")).collect();
    assert_eq!(
        calls.iter().map(|call| call.body.clone()).collect::<Vec<_>>(),
        order,
        "first come, first served"
    );
    let judge_usage = &fixture.client.judge_usage()[0];
    assert_eq!((judge_usage.calls, judge_usage.retries, judge_usage.peak), (100, 0, 8));
}

#[tokio::test(start_paused = true)]
async fn calls_to_a_dead_judge_wait_no_longer_than_patience() {
    let config = JudgeConfig { patience: "12s".to_owned(), ..config() };
    let fixture = Fixture::new(config, |_, _| (1, transport_error(Code::JudgeConnect, false)));
    let start = Instant::now();
    let asked = fixture.ask_all(200, 300).await;
    assert_eq!(scored(&asked), 0);
    assert!(failed(&asked, Code::JudgeBreakerOpen) >= 195);
    assert!(fixture.calls().len() <= 7, "{}", fixture.calls().len());
    assert!(start.elapsed() < Duration::from_secs(15));
    assert_eq!(fixture.client.judge_usage()[0].openings, 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_when_a_judge_comes_back() {
    let fixture = Fixture::new(config(), |_, call| match call.at.as_secs() {
        0..=19 => (1, transport_error(Code::JudgeConnect, false)),
        _ => (50, good()),
    });
    let start = Instant::now();
    assert_eq!(scored(&fixture.ask_all(200, 300).await), 200);
    assert!(start.elapsed() < Duration::from_secs(40), "{:?}", start.elapsed());
    assert!(fixture.calls().len() <= 210);
}

#[tokio::test(start_paused = true)]
async fn retries_of_a_judge_that_fails_now_and_then_are_a_share() {
    let fixture =
        Fixture::new(config(), |number, _| if number % 2 == 1 { (5, reply(500, "")) } else { (5, good()) });
    let asked = fixture.ask_all(200, 300).await;
    assert!(fixture.calls().len() <= 245, "{}", fixture.calls().len());
    assert_eq!(scored(&asked) + failed(&asked, Code::JudgeServerError), 200);
    assert!(asked.iter().all(|asked| asked.attempts <= 4));
    assert!(scored(&asked) >= 115, "{}", scored(&asked));
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_paid_is_sent_once_more_only() {
    let fixture = Fixture::new(config(), |_, _| (5, transport_error(Code::JudgeReset, true)));
    let asked = fixture.ask_all(1, 300).await;
    assert_eq!((failed(&asked, Code::JudgeReset), asked[0].attempts), (1, 2));
    assert_eq!(fixture.client.judge_usage()[0].maybe_paid, 2);
}

#[tokio::test(start_paused = true)]
async fn a_silent_judge_costs_the_time_of_an_attempt() {
    let config = JudgeConfig { timeout: "2s".to_owned(), ..config() };
    let fixture = Fixture::new(config, |_, _| (1_000_000, good()));
    let start = Instant::now();
    let asked = fixture.ask_all(1, 300).await;
    assert_eq!(failed(&asked, Code::JudgeTimeout), 1);
    assert!(start.elapsed() < Duration::from_secs(5) && fixture.is_idle());
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_whatever_waits_or_travels() {
    let fixture = Fixture::new(JudgeConfig { concurrency: 2, ..config() }, |number, _| match number {
        0 => (1, good()),
        _ => (1_000_000, good()),
    });
    let start = Instant::now();
    let asked = fixture.ask_all(50, 7).await;
    assert_eq!((scored(&asked), failed(&asked, Code::JudgeDeadline)), (1, 49));
    assert_eq!(start.elapsed().as_secs(), 7);
    assert!(fixture.is_idle());
    assert_eq!(fixture.client.judge_usage()[0].maybe_paid, 2);
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_everybody_back_and_ends_with_one_probe() {
    let fixture = Fixture::new(config(), |_, call| match call.at.as_millis() {
        0..500 => (100, good()),
        500..5_000 => (10, wait("3")),
        _ => (100, good()),
    });
    let asked = fixture.ask_all(400, 300).await;
    assert_eq!(scored(&asked), 400);
    let calls = fixture.calls();
    let after = |from: u64, to: u64| {
        calls.iter().filter(|call| (from..to).contains(&(call.at.as_millis() as u64))).count()
    };
    assert_eq!(after(520, 3_500), 0, "nobody passes during the pause");
    assert_eq!(after(3_500, 3_600), 1, "one probe");
    assert!(fixture.client.judge_usage()[0].limit < 32);
}

#[tokio::test(start_paused = true)]
async fn a_pause_beyond_reason_fails_at_once() {
    let fixture = Fixture::new(config(), |_, _| (1, wait("86400")));
    let start = Instant::now();
    let asked = fixture.ask_all(200, 300).await;
    assert_eq!(failed(&asked, Code::JudgeRateLimited), 200);
    assert!(fixture.calls().len() == 1 && start.elapsed() < Duration::from_secs(1));
    for junk in ["-5", "soon"] {
        let fixture = Fixture::new(config(), move |at, _| (1, if at == 0 { wait(junk) } else { good() }));
        assert_eq!(scored(&fixture.ask_all(20, 30).await), 20);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_key_fails_all_at_once() {
    for (status, body, code) in [(401, "", Code::JudgeAuth), (429, "insufficient_quota", Code::JudgeQuota)] {
        let fixture = Fixture::new(config(), move |_, _| (1, reply(status, body)));
        assert_eq!(failed(&fixture.ask_all(200, 300).await, code), 200);
        assert_eq!(fixture.calls().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn equal_requests_share_one_call_and_a_rerun_makes_none() {
    let record: Arc<dyn Record> = Arc::new(MemoryRecord::default());
    let fixture = Fixture::with(config(), Arc::clone(&record), |_, _| (10, good()));
    let same: Vec<Number> = (0..50).map(|at| number(at % 5)).collect();
    assert_eq!(scored(&fixture.ask(&same, 60).await), 50);
    assert_eq!((fixture.calls().len(), fixture.client.judge_usage()[0].shared), (5, 45));
    let again = Fixture::with(config(), record, |_, _| (10, good()));
    let asked = again.ask(&same, 60).await;
    assert!(scored(&asked) == 50 && again.calls().is_empty());
    assert!(asked.iter().any(|asked| asked.cached));
}

/// A record on a disk that needs so many milliseconds for a judgment.
struct SlowDisk(MemoryRecord, u64);

impl Record for SlowDisk {
    fn get<'a>(&'a self, key: &'a [u8; 32]) -> BoxFuture<'a, Result<Option<Vec<u8>>, Reason>> {
        self.0.get(key)
    }

    fn begin_call<'a>(&'a self, claim: Claim<'a>, of: Allowance) -> BoxFuture<'a, Result<CallGrant, Reason>> {
        self.0.begin_call(claim, of)
    }

    fn store<'a>(
        &'a self,
        source: RecordSource<'a>,
        body: &[u8],
        took: Duration,
    ) -> BoxFuture<'a, Result<(), Reason>> {
        let stored = self.0.store(source, body, took);
        Box::pin(async move {
            sleep(Duration::from_millis(self.1)).await;
            stored.await
        })
    }

    fn fail_call(&self, claim: Claim<'_>, code: Code, maybe_paid: bool) {
        self.0.fail_call(claim, code, maybe_paid);
    }

    fn get_fact<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<String>, Reason>> {
        self.0.get_fact(name)
    }

    fn set_fact(&self, name: &str, value: &str) {
        self.0.set_fact(name, value);
    }

    fn spent<'a>(&'a self, judge: &'a str) -> BoxFuture<'a, Result<(u64, f64), Reason>> {
        self.0.spent(judge)
    }

    fn spend(&self, judge: &str, reserved: f64, cost: f64) {
        self.0.spend(judge, reserved, cost);
    }
}

#[tokio::test(start_paused = true)]
async fn a_journal_slower_than_the_judge_is_named_as_the_limit() {
    for (disk, limit) in [(60, Some((0.02, 0.06))), (10, None)] {
        let record = Arc::new(SlowDisk(MemoryRecord::default(), disk));
        let fixture = Fixture::with(config(), record, |_, _| (20, good()));
        assert_eq!(scored(&fixture.ask_all(8, 60).await), 8);
        let rounded = |seconds: f64| (seconds * 1000.0).round() / 1000.0;
        let found = fixture.client.judge_usage()[0].journal_limit();
        assert_eq!(found.map(|(judge, journal)| (rounded(judge), rounded(journal))), limit);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_leader_leaves_is_made_by_the_next() {
    let fixture = Fixture::new(config(), |_, _| (1_000, good()));
    let query = number(1);
    let late = Instant::now() + Duration::from_secs(60);
    let leaving = tokio::time::timeout(Duration::from_millis(500), fixture.client.ask(0, &query, late));
    let (left, stayed) = futures_util::future::join(leaving, fixture.client.ask(0, &query, late)).await;
    assert!(left.is_err() && stayed.verdict.is_ok());
    assert_eq!(fixture.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn unreadable_replies_are_stored_and_replayed_in_order() {
    let record: Arc<dyn Record> = Arc::new(MemoryRecord::default());
    let script = |_: usize, call: &SeenCall| {
        (10, reply(200, if call.body.ends_with("1") { "{\"good\":1}" } else { "{}" }))
    };
    let fixture = Fixture::with(config(), Arc::clone(&record), script);
    let first = fixture.ask_all(100, 60).await;
    let calls = fixture.calls().len();
    assert!(calls <= 130, "{calls}");
    assert!(scored(&first) >= 15 && failed(&first, Code::JudgeSchema) >= 75);
    let again = Fixture::with(config(), record, script);
    let second = again.ask_all(100, 60).await;
    assert_eq!(again.calls().len(), 0);
    let verdicts =
        |asked: &[CallOutcome]| asked.iter().map(|asked| asked.verdict.clone()).collect::<Vec<_>>();
    assert_eq!(verdicts(&first), verdicts(&second));
}

#[tokio::test(start_paused = true)]
async fn the_form_is_found_by_one_call_and_remembered() {
    for (refusal, facts) in [
        (400, "score-logprobs=judge.client_error score+json"),
        (200, "score-logprobs=judge.no_logprobs score+json"),
    ] {
        let record: Arc<dyn Record> = Arc::new(MemoryRecord::default());
        let script = move |_: usize, call: &SeenCall| {
            let refused = call.body.contains("Logprobs");
            (10, if refused { reply(refusal, "{\"good\":2}") } else { reply(200, "{\"good\":2}") })
        };
        let fixture = Fixture::with(config(), Arc::clone(&record), script);
        let asked = fixture.ask(&in_any_format(50), 60).await;
        assert_eq!((scored(&asked), fixture.calls().len()), (50, 51));
        assert!(asked.iter().all(|asked| asked.format == AnswerFormat::Json));
        assert_eq!(record.get_fact("form:judge").await.unwrap().as_deref(), Some(facts));
        let again = Fixture::with(config(), record, script);
        assert_eq!((scored(&again.ask(&in_any_format(50), 60).await), again.calls().len()), (50, 0));
    }
}

/// So many questions that can be asked in any format.
fn in_any_format(count: usize) -> Vec<Number> {
    let formats = [AnswerFormat::Logprobs, AnswerFormat::Json, AnswerFormat::Tag];
    (0..count).map(|at| Number(at, formats.to_vec())).collect()
}

/// What is refused or unreadable in the format logprobs, while JSON works; and how many calls that costs at most.
#[tokio::test(start_paused = true)]
async fn whatever_comes_first_the_format_that_works_is_found() {
    let cases: [(u16, &str, usize); 5] = [
        (200, r#"{"prose":"without probabilities"}"#, 1),
        (200, r#"{"prose":"with probabilities"}"#, 3),
        (400, "any words", 1),
        (500, r#"{"error":{"message":"logprobs are not supported"}}"#, 1),
        (403, r#"{"error":{"message":"You are not allowed to request logprobs from this model"}}"#, 1),
    ];
    for (status, body, extra) in cases {
        let fixture = Fixture::new(config(), move |_, call| {
            (10, if call.body.contains("Logprobs") { reply(status, body) } else { good() })
        });
        let asked = fixture.ask(&in_any_format(60), 60).await;
        assert_eq!((scored(&asked), fixture.calls().len()), (60, 60 + extra), "{status} {body}");
        let judge_usage = &fixture.client.judge_usage()[0];
        assert_eq!((judge_usage.formats[0].format, judge_usage.openings), ("json", 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_format_that_stops_working_is_left_at_no_double_price() {
    let record: Arc<dyn Record> = Arc::new(MemoryRecord::default());
    let script = |at: usize, call: &SeenCall| {
        let works = at < 20 || !call.body.contains("Logprobs");
        (10, if works { good() } else { reply(200, r#"{"prose":"with probabilities"}"#) })
    };
    let one = JudgeConfig { concurrency: 1, retry_share: 1.0, ..config() };
    let fixture = Fixture::with(one.clone(), Arc::clone(&record), script);
    let asked = fixture.ask(&in_any_format(60), 300).await;
    let calls = fixture.calls().len();
    assert_eq!(scored(&asked), 60);
    assert!((68..=69).contains(&calls), "{calls}: eight unread replies, and one that was on its way");
    assert_eq!(
        record.get_fact("form:judge").await.unwrap().as_deref(),
        Some("score~logprobs=judge.schema score+json")
    );
    let again = Fixture::with(one, record, |_, _| (10, good()));
    let asked = again.ask(&in_any_format(60), 300).await;
    assert_eq!((scored(&asked), again.calls().len()), (60, 0), "what has a verdict is not asked again");
}

#[tokio::test(start_paused = true)]
async fn parameters_that_a_model_refuses_are_left_out() {
    struct Chat(usize);
    impl Query for Chat {
        fn kind(&self) -> QuestionKind {
            QuestionKind::Pair
        }
        fn formats(&self) -> &[AnswerFormat] {
            &[AnswerFormat::Tag]
        }
        fn request(&self, _: AnswerFormat, _: u32) -> Result<Request, Reason> {
            let body = format!(r#"{{"at":{},"temperature":0.0,"max_tokens":64}}"#, self.0).into_bytes();
            Ok(Request { path: "/chat/completions", body })
        }
        fn read(&self, _: AnswerFormat, _: u32, _: &[u8]) -> Result<Verdict, Reason> {
            Ok(Verdict::Score(1.0))
        }
        fn usage(&self, _: &[u8]) -> Option<Usage> {
            None
        }
    }
    let record: Arc<dyn Record> = Arc::new(MemoryRecord::default());
    let script = |_: usize, call: &SeenCall| {
        let refused = ["\"max_tokens\"", "\"temperature\""].into_iter().find(|name| call.body.contains(name));
        let error = |name: &str| {
            format!(r#"{{"error":{{"message":"no","param":{name},"code":"unsupported_parameter"}}}}"#)
        };
        (10, refused.map_or_else(good, |name| reply(400, &error(name))))
    };
    let deadline = || Instant::now() + Duration::from_secs(60);
    let fixture = Fixture::with(config(), Arc::clone(&record), script);
    for at in 0..10 {
        assert!(fixture.client.ask(0, &Chat(at), deadline()).await.verdict.is_ok());
    }
    assert_eq!(fixture.calls().len(), 12);
    assert_eq!(fixture.calls()[11].body, r#"{"at":9,"max_completion_tokens":64}"#);
    assert_eq!(fixture.client.judge_usage()[0].left_out, ["max_tokens", "temperature"]);
    let crowd = Fixture::new(JudgeConfig { concurrency: 4, ..config() }, script);
    let questions: Vec<Chat> = (0..60).map(Chat).collect();
    let asked = crowd.client.ask_all(0, &questions, deadline(), (None, None)).await;
    assert_eq!(scored(&asked), 60);
    assert!(crowd.calls().len() <= 60 + 8, "those that wait learn of it: {}", crowd.calls().len());
    let again = Fixture::with(config(), record, script);
    assert!(again.client.ask(0, &Chat(3), deadline()).await.verdict.is_ok());
    assert_eq!(again.calls().len(), 0);
    let stubborn = Fixture::new(config(), |_, _| {
        (10, reply(400, r#"{"error":{"param":"temperature","code":"unsupported_value"}}"#))
    });
    let outcome = stubborn.client.ask(0, &Chat(0), deadline()).await;
    assert_eq!(
        (outcome.verdict.expect_err("refused").code, stubborn.calls().len()),
        (Code::JudgeClientError, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn the_budget_of_calls_is_exact_over_restarts() {
    let record: Arc<dyn Record> = Arc::new(MemoryRecord::default());
    let config =
        JudgeConfig { budget: Some(BudgetConfig { calls: Some(50), ..BudgetConfig::default() }), ..config() };
    let script = |at: usize, _: &SeenCall| (10, if at % 7 == 6 { reply(500, "") } else { good() });
    let fixture = Fixture::with(config.clone(), Arc::clone(&record), script);
    fixture.ask_all(30, 60).await;
    let before = fixture.calls().len();
    let again = Fixture::with(config, record, script);
    let asked = again.ask_all(200, 60).await;
    assert_eq!(before + again.calls().len(), 50);
    assert!(failed(&asked, Code::JudgeBudget) >= 150);
}

#[tokio::test(start_paused = true)]
async fn the_budget_of_cost_holds_and_is_used_up() {
    let price = Some(Price { input: 0.0, cached: None, output: 10.0 });
    let config = JudgeConfig {
        budget: Some(BudgetConfig { cost: Some(0.1), ..BudgetConfig::default() }),
        price,
        ..config()
    };
    let record: Arc<dyn Record> = Arc::new(MemoryRecord::default());
    let fixture = Fixture::with(config, Arc::clone(&record), |_, _| (10, good()));
    let asked = fixture.ask_all(200, 60).await;
    let cost = fixture.client.judge_usage()[0].cost.unwrap();
    assert!((0.09..=0.1 + 1e-9).contains(&cost), "{cost}");
    assert!((record.spent("judge").await.unwrap().1 - cost).abs() < 1e-9);
    assert_eq!(scored(&asked) + failed(&asked, Code::JudgeBudget), 200);
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_is_sent_twice_within_its_share() {
    let config = JudgeConfig {
        base_url: Some(AddressConfig::Several(vec!["http://a".into(), "http://b".into()])),
        ..config()
    };
    let fixture = Fixture::new(config, |at, _| (if at % 50 == 49 { 30_000 } else { 100 }, good()));
    let start = Instant::now();
    assert_eq!(scored(&fixture.ask_all(400, 300).await), 400);
    let judge_usage = &fixture.client.judge_usage()[0];
    assert!(
        judge_usage.hedges >= 7 && judge_usage.hedges * 20 <= judge_usage.calls,
        "{}",
        judge_usage.hedges
    );
    assert_eq!((judge_usage.hedges_won, judge_usage.maybe_paid), (judge_usage.hedges, judge_usage.hedges));
    assert!(start.elapsed() < Duration::from_secs(29), "{:?}", start.elapsed());
    assert!(fixture.is_idle());
}

#[tokio::test(start_paused = true)]
async fn endpoints_share_the_load_and_a_dead_one_gets_none() {
    let urls = vec!["http://a".into(), "http://b".into(), "http://c".into()];
    let base_url = Some(AddressConfig::Several(urls));
    let fixture = Fixture::new(JudgeConfig { base_url, ..config() }, |_, call| match call.endpoint {
        2 => (1, transport_error(Code::JudgeConnect, false)),
        _ => (100, good()),
    });
    assert_eq!(scored(&fixture.ask_all(300, 300).await), 300);
    let calls = fixture.calls();
    let at = |endpoint| calls.iter().filter(|call| call.endpoint == endpoint).count();
    assert!(at(0) > 100 && at(1) > 100 && at(2) <= 7, "{} {} {}", at(0), at(1), at(2));
}

#[tokio::test(start_paused = true)]
async fn the_pace_is_kept_and_stopping_fails_what_waits() {
    let fixture = Fixture::new(JudgeConfig { calls_per_minute: Some(60), ..config() }, |_, _| (10, good()));
    let queries: Vec<Number> = (0..100).map(number).collect();
    let stop = async {
        sleep(Duration::from_millis(9_500)).await;
        fixture.client.stop();
    };
    let (asked, ()) = futures_util::future::join(fixture.ask(&queries, 300), stop).await;
    assert_eq!((scored(&asked), failed(&asked, Code::Stopped)), (10, 90));
    let calls = fixture.calls();
    assert!(calls.windows(2).all(|pair| pair[1].at - pair[0].at >= Duration::from_millis(999)));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_tells_how_it_went_the_last_time() {
    let fixture =
        Fixture::new(config(), |_, _| (10, reply(503, r#"{"error":{"message":"loading the model"}}"#)));
    let asked = fixture.ask_all(20, 3).await;
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
    let judge = ResolvedJudge { api_key: Some(Secret::new("tok-1")), ..resolved(config()) };
    let fixture = Fixture::with(judge, Arc::new(MemoryRecord::default()), |at, _| match at {
        0 => (1, good()),
        at => (1, reply([400, 401, 503][at % 3], "the key tok-1 is wrong, tok-1")),
    });
    for asked in fixture.ask_all(20, 30).await {
        let shown = format!("{:?}", asked.verdict);
        assert!(!shown.contains("tok-1") && (asked.verdict.is_ok() || shown.contains("***")), "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn probes_do_not_keep_step_with_a_judge_that_comes_and_goes() {
    let fixture = Fixture::new(config(), |_, call| match call.at.as_millis() % 1_000 {
        0..500 => (1, transport_error(Code::JudgeConnect, false)),
        _ => (1, good()),
    });
    let asked = fixture.ask_all(40, 120).await;
    assert!(scored(&asked) > 0, "{:?}", asked.first().map(|asked| &asked.verdict));
    let times: Vec<u128> =
        fixture.calls().iter().map(|call| call.at.as_millis()).filter(|at| *at > 2_000).collect();
    assert!(times.iter().any(|at| at % 1_000 > 20), "{times:?}");
}
