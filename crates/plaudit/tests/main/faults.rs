//! The fault matrix of judge calls: one test per fault, over loopback, against a mock judge that misbehaves on demand.
//!
//! Each test checks what every sample gets, for which reasons, and how many calls were made. `cargo test faults::redirects`
//! runs one.

use crate::mock_judge::{Line, Mock, Run, Sample, Tls, client, config, judge, run, samples, spec};
use crate::timing::until;
use futures_util::future::{join, join_all};
use plaudit::judge::Verdict;
use plaudit::judge::config::{BudgetConfig, JudgeConfig, Price, ResolvedJudge};
use plaudit::judge::secret::Secret;
use plaudit::reason::Code;
use plaudit::record::{MemoryRecord, Network, Record};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a busy machine may add to a limit on time. The limits themselves are tested on a paused clock, beside the code.
const SLACK: Duration = Duration::from_secs(10);

fn record() -> Arc<dyn Record> {
    Arc::new(MemoryRecord::default())
}

/// Asks about all samples, checks what holds for every row, and asks about those with a score again, which costs nothing.
fn checked(mock: &Mock, spec: ResolvedJudge, all: &[Sample], seconds: f64) -> (Run, Vec<Line>) {
    let record = record();
    let before = mock.ledger().len();
    let done = run(spec.clone(), &record, all, seconds);
    let ledger = mock.ledger().split_off(before);
    assert!(done.took <= Duration::from_secs_f64(seconds) + SLACK, "{:?}", done.took);
    let right: BTreeMap<&str, f64> = ledger.iter().map(|line| (&*line.sample, line.score)).collect();
    for (asked, sample) in done.asked.iter().zip(all) {
        if let Ok(verdict) = &asked.verdict {
            assert_eq!(*verdict, Verdict::Score(right[&*sample.id]), "{}", sample.id);
        }
        assert!(asked.latency.is_none_or(|latency| latency < spec.timeout + SLACK));
    }
    let good = |at: &usize| done.asked[*at].verdict.is_ok();
    let scored: Vec<Sample> = (0..all.len())
        .filter(good)
        .map(|at| Sample { id: all[at].id.clone(), fault: all[at].fault })
        .collect();
    let again = run(spec, &record, &scored, seconds);
    assert_eq!(again.scored(), scored.len());
    // The mock may still be busy writing down what the first run asked, so the caller's own count is looked at.
    assert_eq!(again.judge_usage.calls, 0, "a second run asks nobody");
    (done, ledger)
}

/// Two seconds an attempt, for judges that never answer in time.
fn impatient(url: &str) -> JudgeConfig {
    JudgeConfig { timeout: "2s".to_owned(), ..config(url) }
}

/// A run in which every request meets one fault.
fn facing(mock: &Mock, mode: &str, count: usize, seconds: f64) -> (Run, Vec<Line>) {
    checked(mock, spec(&mock.url(mode)), &samples(mode, count), seconds)
}

/// That nothing was scored, and for no other reasons than these.
fn only(done: &Run, codes: &[Code], about: &str) {
    assert_eq!(done.scored(), 0, "{about}");
    assert!(done.codes().keys().all(|code| codes.contains(code)), "{about}: {:?}", done.codes());
}

#[test]
fn closed_port() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let done = run(spec(&format!("http://127.0.0.1:{port}/v1")), &record(), &samples("J1", 200), 60.0);
    only(&done, &[Code::JudgeConnect, Code::JudgeBreakerOpen], "J1");
    assert!(done.judge_usage.calls <= 40, "{}", done.judge_usage.calls);
    assert_eq!(done.judge_usage.maybe_paid, 0);
}

#[test]
fn connection_resets() {
    let mock = Mock::start(&["--mix", "ok=70,rst_now=10,rst_headers=10,fin_now=10"]);
    let (done, ledger) = checked(&mock, spec(&mock.url("ok")), &samples("J2", 200), 60.0);
    assert!(done.scored() >= 150, "{}: {:?}", done.scored(), done.codes());
    assert!(done.codes().keys().all(|code| *code == Code::JudgeReset || *code == Code::JudgeProtocol));
    let (calls, retries, hedges) = (ledger.len(), done.judge_usage.retries, done.judge_usage.hedges);
    // Those sent before an endpoint was known to work are not charged to the share of retries, but its probes limit them.
    assert!(
        calls <= 280 && retries <= 65 && hedges <= 14,
        "{calls} calls, {retries} retries, {hedges} hedges"
    );
}

#[test]
fn broken_bodies() {
    let mock = Mock::start(&[]);
    for mode in ["rst_mid", "fin_mid"] {
        let (done, ledger) = facing(&mock, mode, 1, 20.0);
        only(&done, &[Code::JudgeReset], mode);
        assert_eq!((ledger.len(), done.judge_usage.maybe_paid), (2, 2), "{mode}");
        let (done, ledger) = facing(&mock, mode, 200, 20.0);
        only(&done, &[Code::JudgeReset, Code::JudgeBreakerOpen], mode);
        assert!(ledger.len() <= 20, "{mode}");
    }
}

#[test]
fn silent_judge() {
    let mock = Mock::start(&[]);
    for (mode, code) in [("hang", Code::JudgeTimeout), ("hang_after_headers", Code::JudgeSlowBody)] {
        let (done, ledger) = checked(&mock, judge(impatient(&mock.url(mode))), &samples(mode, 200), 6.0);
        only(&done, &[code, Code::JudgeDeadline, Code::JudgeBreakerOpen], mode);
        assert!(
            ledger.len() <= 10 && done.tasks == 0,
            "{mode}: {} calls, {} tasks",
            ledger.len(),
            done.tasks
        );
        assert_eq!(mock.sockets(), 0, "{mode}");
    }
}

#[test]
fn slow_replies() {
    // A byte every ten milliseconds: the head of the reply is there after one second, its body never within two.
    let mock = Mock::start(&["--drip", "0.01"]);
    for (mode, code) in [("loris_headers", Code::JudgeTimeout), ("loris_body", Code::JudgeSlowBody)] {
        let spec = judge(JudgeConfig { attempts: 1, ..impatient(&mock.url(mode)) });
        let (done, _) = checked(&mock, spec, &samples(mode, 1), 20.0);
        only(&done, &[code], mode);
    }
}

fn rate_limited(mode: &str, count: usize) {
    let mock = Mock::start(&["--mix", &format!("ok=60,{mode}=40")]);
    let (done, ledger) = checked(&mock, spec(&mock.url("ok")), &samples(mode, count), 60.0);
    assert_eq!(done.scored(), count, "{mode}: {:?}", done.codes());
    for line in ledger.iter().filter(|line| line.mode == mode) {
        // What was on its way when the judge asked for a pause of a second or more may still arrive.
        let early = (line.at + 0.4)..(line.at + 0.95);
        assert!(!ledger.iter().any(|other| early.contains(&other.at)), "{mode}: a call during the pause");
    }
}

#[test]
fn rate_limit_in_seconds() {
    rate_limited("http429", 40);
}

#[test]
fn rate_limit_until_a_date() {
    rate_limited("http429_date", 6);
}

#[test]
fn rate_limit_without_a_length() {
    rate_limited("http429_none", 12);
}

#[test]
fn senseless_rate_limits() {
    let mock = Mock::start(&[]);
    let (done, ledger) = facing(&mock, "http429_huge", 200, 60.0);
    only(&done, &[Code::JudgeRateLimited], "http429_huge");
    assert_eq!(ledger.len(), 1);
    for mode in ["http429_neg", "http429_junk"] {
        let (done, ledger) = facing(&mock, mode, 200, 2.0);
        only(&done, &[Code::JudgeRateLimited, Code::JudgeDeadline], mode);
        assert!(ledger.len() <= 3, "{mode}: {}", ledger.len());
    }
}

#[test]
fn refused_api_keys() {
    let mock = Mock::start(&[]);
    for (mode, code) in
        [("http429_quota", Code::JudgeQuota), ("http401", Code::JudgeAuth), ("http403", Code::JudgeAuth)]
    {
        let spec = ResolvedJudge { api_key: Some(Secret::new("sk-ours")), ..spec(&mock.url(mode)) };
        let (done, ledger) = checked(&mock, spec, &samples(mode, 200), 60.0);
        only(&done, &[code], mode);
        assert!(ledger.len() <= 5, "{mode}: {}", ledger.len());
        let said = format!("{:?} {:?}", done.asked, done.judge_usage);
        assert!(!said.contains("THISISASECRET") && !said.contains("sk-ours"), "{mode} shows a key");
    }
}

#[test]
fn every_second_call_fails() {
    let mock = Mock::start(&["--mix", "ok=50,http500=50"]);
    // Without hedges, so that all extra calls are retries.
    let spec = judge(JudgeConfig { hedge_share: 0.0, ..config(&mock.url("ok")) });
    let (done, ledger) = checked(&mock, spec, &samples("J9", 200), 60.0);
    assert!(ledger.len() <= 250, "{} calls", ledger.len());
    assert!(done.asked.iter().all(|asked| asked.attempts <= 4));
    assert!(done.scored() >= 105, "{}", done.scored());
    assert!(done.codes().keys().all(|code| *code == Code::JudgeServerError), "{:?}", done.codes());
}

#[test]
fn server_errors() {
    let mock = Mock::start(&[]);
    for mode in ["http500", "http502", "http503", "http529"] {
        let (done, ledger) = facing(&mock, mode, 200, 60.0);
        only(&done, &[Code::JudgeServerError, Code::JudgeBreakerOpen], mode);
        assert!(ledger.len() <= 60, "{mode}: {}", ledger.len());
    }
}

#[test]
fn gateway_timeouts() {
    let mock = Mock::start(&[]);
    let (done, ledger) = facing(&mock, "http504", 1, 20.0);
    only(&done, &[Code::JudgeServerError], "http504");
    assert_eq!((ledger.len(), done.judge_usage.maybe_paid), (2, 2));
}

#[test]
fn client_errors() {
    let mock = Mock::start(&[]);
    for (mode, code) in [
        ("http400", Code::JudgeClientError),
        ("http404", Code::JudgeClientError),
        ("http413", Code::JudgeContextLength),
        ("http422", Code::JudgeClientError),
        ("context_len", Code::JudgeContextLength),
    ] {
        let (done, ledger) = facing(&mock, mode, 40, 20.0);
        only(&done, &[code], mode);
        assert_eq!((ledger.len(), done.judge_usage.retries), (40, 0), "{mode}");
    }
}

#[test]
fn replies_without_a_judgment() {
    let mock = Mock::start(&[]);
    for (mode, code) in [
        // Its error has the code 503, which counts like that status.
        ("err200", Code::JudgeServerError),
        ("html200", Code::JudgeJson),
        ("empty", Code::JudgeEmpty),
        ("http204", Code::JudgeEmpty),
    ] {
        let (record, judge) = (record(), judge(JudgeConfig { attempts: 1, ..config(&mock.url(mode)) }));
        let sample = &samples(mode, 1);
        for _ in 0..2 {
            let done = run(judge.clone(), &record, sample, 20.0);
            only(&done, &[code], mode);
            assert_eq!((done.judge_usage.calls, done.judge_usage.cached), (1, 0), "{mode} is not kept");
        }
    }
}

#[test]
fn unreadable_verdicts() {
    let mock = Mock::start(&[]);
    let known = BTreeMap::from([
        ("trunc_json", Code::JudgeJson),
        ("trail_json", Code::JudgeJson),
        ("deep", Code::JudgeJson),
        ("no_choices", Code::JudgeSchema),
        ("two_choices", Code::JudgeSchema),
        ("content_int", Code::JudgeSchema),
        ("finish_length", Code::JudgeTruncated),
        ("finish_filter", Code::JudgeContentFilter),
        ("refusal_field", Code::JudgeRefusal),
        ("score_range", Code::JudgeRange),
        ("wrong_sample", Code::JudgeWrongSample),
    ]);
    let others = "bom bad_utf8 lone_surrogate nul deep_content choices_empty choices_null choices_obj content_null
        content_empty content_space content_list finish_length_null refusal_text score_nan score_inf score_str
        score_bool score_null score_neg score_frac score_word score_dup score_two score_missing tool_call sse_unasked";
    for mode in known.keys().copied().chain(others.split_whitespace()) {
        let (record, judge) = (record(), spec(&mock.url(mode)));
        let first = run(judge.clone(), &record, &samples(mode, 2), 20.0);
        assert_eq!(first.scored(), 0, "{mode}");
        if let Some(code) = known.get(mode) {
            only(&first, &[*code], mode);
        }
        let second = run(judge, &record, &samples(mode, 2), 20.0);
        if mode != "sse_unasked" {
            assert_eq!((second.codes(), second.judge_usage.calls), (first.codes(), 0), "{mode}");
        }
    }
}

#[test]
fn oversized_replies() {
    let mock = Mock::start(&[]);
    for mode in ["big10m", "endless", "gzip_bomb", "gzip_lie", "header_bomb", "continue_flood"] {
        let fault = |at| Sample { id: format!("{mode}-{at}"), fault: Some(mode) };
        let all: Vec<Sample> = std::iter::once(Sample { id: format!("{mode}-ok"), fault: None })
            .chain((0..32).map(fault))
            .collect();
        let spec = judge(JudgeConfig { attempts: 1, timeout: "5s".to_owned(), ..config(&mock.url("ok")) });
        let (done, _) = checked(&mock, spec, &all, 20.0);
        assert_eq!(done.scored(), 1, "{mode}");
        // The mock sends what the thirty-two ask for from one thread, so that some of it takes longer than an attempt.
        let allowed = [
            Code::JudgeTooLarge,
            Code::JudgeProtocol,
            Code::JudgeSlowBody,
            Code::JudgeTimeout,
            Code::JudgeReset,
            Code::JudgeBreakerOpen,
        ];
        assert!(done.codes().keys().all(|code| allowed.contains(code)), "{mode}: {:?}", done.codes());
    }
}

#[test]
fn redirects() {
    let mock = Mock::start(&[]);
    for mode in ["redirect_meta", "redirect_loop"] {
        let (done, ledger) = facing(&mock, mode, 5, 20.0);
        only(&done, &[Code::JudgeRedirect], mode);
        assert_eq!(ledger.len(), 5, "{mode}");
    }
}

#[test]
fn broken_http_framing() {
    let mix = "ok=52,desync=8,two_lengths=8,short_length=8,bad_chunk=8,not_http=8,tls_alert=8";
    let mock = Mock::start(&["--mix", mix]);
    let (done, _) = checked(&mock, spec(&mock.url("ok")), &samples("J20", 200), 60.0);
    assert!(done.scored() >= 100, "{}: {:?}", done.scored(), done.codes());
    for mode in ["two_lengths", "bad_chunk", "not_http", "http09", "tls_alert"] {
        let (done, _) = facing(&mock, mode, 1, 20.0);
        only(&done, &[Code::JudgeProtocol, Code::JudgeReset], mode);
    }
}

#[test]
fn unknown_host() {
    let done = run(spec("http://name.invalid/v1"), &record(), &samples("J22", 3), 20.0);
    only(&done, &[Code::JudgeDns, Code::JudgeBreakerOpen], "J22");
    assert!(
        done.codes().contains_key(&Code::JudgeDns) || done.judge_usage.failures.contains_key(&Code::JudgeDns)
    );
}

#[test]
fn untrusted_certificates() {
    for certificate in ["self_signed", "expired", "wrong_name"] {
        let server = Tls::start(certificate);
        let done =
            run(spec(&format!("https://127.0.0.1:{}/v1", server.1)), &record(), &samples("J23", 1), 20.0);
        only(&done, &[Code::JudgeTls], certificate);
        assert_eq!(done.judge_usage.calls, 1, "{certificate}");
    }
}

#[test]
fn judge_down_and_up_again() {
    let arguments = ["--latency-ms", "50"];
    let mock = Mock::start(&arguments);
    let judge = judge(JudgeConfig { concurrency: 8, patience: "60s".to_owned(), ..config(&mock.url("ok")) });
    let caller = client(vec![judge], record(), Network::Live);
    let all = samples("J24", 200);
    let asked = std::thread::scope(|scope| {
        let caller = &caller;
        let outage = scope.spawn(move || {
            until("some are judged", || mock.ledger().len() >= 20);
            let (port, ledger) = mock.stop();
            until("the breaker opens", || caller.judge_usage()[0].openings >= 1);
            Mock::again(port, ledger, &arguments)
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let asked = runtime.block_on(async {
            let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
            join_all(all.iter().map(|sample| caller.ask(0, sample, deadline))).await
        });
        drop(outage.join().unwrap());
        asked
    });
    let failed: Vec<_> = asked.iter().filter_map(|asked| asked.verdict.as_ref().err()).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn dead_judge_beside_a_healthy_one() {
    let mock = Mock::start(&["--latency-ms", "20"]);
    let judge = judge(JudgeConfig { hedge_share: 0.0, ..config(&mock.url("ok")) });
    let dead = ResolvedJudge { name: "dead".into(), ..spec("http://127.0.0.1:9/v1") };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let caller = client(vec![judge, dead], record(), Network::Live);
        let start = tokio::time::Instant::now();
        let (healthy, others) = (samples("J25", 200).into(), samples("dead", 200).into());
        let ask = |judge, all: Arc<[Sample]>| {
            let caller = &caller;
            let deadline = start + Duration::from_secs(20);
            async move {
                let asked = join_all(all.iter().map(|sample| caller.ask(judge, sample, deadline))).await;
                (asked, start.elapsed())
            }
        };
        let ((good, took), (bad, dead_took)) = join(ask(0, healthy), ask(1, others)).await;
        assert!(
            good.iter().all(|asked| asked.verdict.is_ok()) && bad.iter().all(|asked| asked.verdict.is_err())
        );
        assert!(took < dead_took, "{took:?}, and {dead_took:?} for the judge that is down");
    });
}

#[test]
fn missing_and_absurd_token_usage() {
    let mock = Mock::start(&[]);
    for mode in ["usage_missing", "usage_huge"] {
        let price = Some(Price { input: 1.0, cached: None, output: 1.0 });
        let judge = judge(JudgeConfig { price, ..config(&mock.url(mode)) });
        let (done, _) = checked(&mock, judge, &samples(mode, 20), 20.0);
        assert_eq!((done.scored(), done.judge_usage.tokens_unknown), (20, 20), "{mode}");
        assert!(done.judge_usage.cost.is_some_and(|cost| cost > 0.0 && cost < 1.0), "{mode}");
    }
}

#[test]
fn call_budget() {
    let mock = Mock::start(&["--mix", "ok=80,http500=20"]);
    let (record, judge) = (
        record(),
        judge(JudgeConfig {
            budget: Some(BudgetConfig { calls: Some(50), ..BudgetConfig::default() }),
            ..config(&mock.url("ok"))
        }),
    );
    for calls in [50, 0] {
        let done = run(judge.clone(), &record, &samples("J27", 200), 20.0);
        assert_eq!((mock.ledger().len(), done.judge_usage.calls), (50, calls));
        let codes = done.codes();
        assert!(
            codes.keys().all(|code| [Code::JudgeBudget, Code::JudgeServerError].contains(code)),
            "{codes:?}"
        );
        assert_eq!(done.scored() + codes.values().sum::<usize>(), 200);
    }
}
