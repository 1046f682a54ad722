//! `Engine::submit` and cancellation: a cancelled call returns at once, a submitted one gives the same report, and a failure
//! keeps no answer back.

use crate::engine::plan;
use crate::mock_judge::Mock;
use crate::timing::until;
use plaudit::engine::{Engine, Prescored, ScoreOptions};
use plaudit::error::RunError;
use plaudit::exec::{CancelToken, Clock};
use plaudit::outcome::{Fact, OutcomeKind};
use plaudit::reason::Code;
use plaudit::recipe::Recipe;
use plaudit::report::Report;
use plaudit::rollout::Rollout;
use std::borrow::Borrow;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// A judge that scores one response at a time, at an address.
pub(crate) fn pointwise(url: &str) -> String {
    format!(
        "components:
  judged:
    reward: judge
    mode: pointwise
    judge: main
    prompt: \"[[sample:{{{{ id }}}}]] {{{{ prompt }}}} {{{{ response }}}}\"
    answer: {{ json: score, min: 0, max: 1, echo: sample }}
  length: {{ reward: length_penalty, weight: 0.5, min_length: 4, penalty_rate: 1.0 }}
judges:
  main: {{ base_url: \"{url}\", model: mock, timeout: 60s, hedge_share: 0 }}
"
    )
}

/// Responses are compared by their words in common with the reference.
pub(crate) const OVERLAP: &str = "components:
  principle: { reward: principle, weight: 0.95, mode: pairwise, judge: main, aggregate: bradley_terry }
  format: { reward: reasoning_format, weight: 0.05 }
  brevity: { reward: kimi.length, weight: 0.1, correct: extra }
  ngram: { reward: ngram_repetition_penalty, n: 5, tokenizer_type: simple, use_soft_penalty: true, max_penalty: -1.0, min_scaling: 0.1 }
judges:
  main: { kind: overlap }
";

/// Rollouts as a trainer makes them: some good, some bad, some twice.
pub(crate) fn rollouts(groups: usize, size: usize) -> Vec<Rollout<'static>> {
    let words = ["one", "two", "three", "forty", "two", "is", "the", "answer"];
    let rollout = |at: usize| {
        let (group, member) = (at / size, at % size);
        let said: Vec<&str> = (0..=member * (group + 1) % 7).map(|word| words[(word + group) % 8]).collect();
        let response =
            format!("<think>{}</think><answer>{} {group}</answer>", "so ".repeat(member), said.join(" "));
        let mut rollout = Rollout::new(response)
            .to_prompt(format!("question {group}"))
            .in_group(format!("group {group}"))
            .with_reference(format!("three forty two is the answer {group}"));
        rollout.extra.insert("correct".to_owned(), (member % 3 == 0).into());
        rollout.id = Some(format!("r{at}").into());
        rollout
    };
    (0..groups * size).map(rollout).collect()
}

/// Everything that a report says, as text.
pub(crate) fn told<'r, R: Borrow<Rollout<'r>>>(report: &Report, rollouts: &[R]) -> String {
    let line = |at: usize| {
        serde_json::to_string(&report.result(at, &format!("r{at}"), rollouts[at].borrow())).unwrap()
    };
    let mut lines: Vec<String> = (0..rollouts.len()).map(line).collect();
    lines.push(serde_json::to_string(&report.statistics).unwrap());
    lines.join("\n")
}

/// Submits a batch and waits for its report.
fn submitted(engine: &Arc<Engine>, batch: Vec<Rollout<'static>>) -> Result<String, RunError> {
    let (send, receive) = mpsc::channel();
    engine.submit(batch, ScoreOptions::default(), move |batch, report| send.send((batch, report)).unwrap());
    let (batch, report) = receive.recv_timeout(Duration::from_secs(60)).unwrap();
    report.map(|report| told(&report, &batch))
}

/// The recipes that stand for all: a judge over the network, an embedded one that compares, and rules alone.
pub(crate) fn recipes(mock: &Mock) -> [Recipe; 4] {
    let own = |yaml: &str| Recipe::from_yaml(yaml).unwrap();
    let shipped = |name: &str| Recipe::named(name).unwrap();
    [own(&pointwise(&mock.url("ok"))), own(OVERLAP), shipped("quickstart"), shipped("math")]
}

#[test]
fn a_batch_that_nobody_waits_for_gives_the_same_report() {
    let mock = Mock::start(&[]);
    for recipe in recipes(&mock) {
        for (groups, size) in [(0, 2), (1, 2), (1, 8), (20, 4)] {
            let batch = rollouts(groups, size);
            let engine = || Engine::new(recipe.plan().unwrap()).unwrap();
            let wanted = engine().score(&batch).unwrap();
            assert_eq!(wanted.statistics.outcomes.of(OutcomeKind::Invalid), 0, "{:?}", wanted.rows[0]);
            let report = submitted(&Arc::new(engine()), batch.clone()).unwrap();
            assert_eq!(report, told(&wanted, &batch), "{groups} groups of {size}");
        }
    }
}

#[test]
fn batches_under_way_at_once_count_their_own_calls() {
    let mock = Mock::start(&[]);
    let engine = Arc::new(Engine::new(plan(&pointwise(&mock.url("ok")))).unwrap());
    let (send, receive) = mpsc::channel();
    // The last asks what the first asks, at the same time: it is in flight or known by then, and asked for all the same.
    for (at, (from, groups)) in [(0, 6), (7, 3), (0, 2)].into_iter().enumerate() {
        let usage = engine.usage_meter();
        let options = ScoreOptions { usage: usage.clone(), ..ScoreOptions::default() };
        let send = send.clone();
        let batch = rollouts(from + groups, 2).split_off(2 * from);
        engine.submit(batch, options, move |_, report| {
            report.unwrap();
            send.send((at, usage.unwrap().usage().remove(0))).unwrap();
        });
    }
    drop(send);
    let mut usage: Vec<_> = receive.iter().collect();
    usage.sort_by_key(|(at, _)| *at);
    let asked: Vec<u64> = usage.iter().map(|(_, usage)| usage.asked).collect();
    assert_eq!(asked, [12, 6, 4]);
    let calls: Vec<u64> = usage.iter().map(|(_, usage)| usage.calls).collect();
    assert_eq!((calls.iter().sum::<u64>(), calls[1]), (mock.ledger().len() as u64, 6), "{calls:?}");
    assert_eq!(engine.judge_usage()[0].calls, 18, "what two batches ask is sent once");
}

#[test]
fn thousands_are_under_way_at_once() {
    let engine = Arc::new(Engine::new(plan(OVERLAP)).unwrap());
    let (send, receive) = mpsc::channel();
    for at in 0..3000 {
        let send = send.clone();
        engine.submit(rollouts(1, 4), ScoreOptions::default(), move |_, report| {
            send.send((at, report)).unwrap()
        });
    }
    drop((send, engine));
    let mut seen: Vec<usize> = receive
        .iter()
        .map(|(at, report)| {
            assert_eq!(report.unwrap().statistics.outcomes.of(OutcomeKind::Scored), 4);
            at
        })
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..3000).collect::<Vec<_>>(), "the engine lives until the last of them is told");
}

#[test]
fn uneven_groups_are_refused_here_too() {
    let engine = Engine::new(plan(&format!("{OVERLAP}groups: {{ same_size: true }}\n"))).unwrap();
    let mut batch = rollouts(3, 2);
    batch.pop();
    let error = submitted(&Arc::new(engine), batch).unwrap_err();
    assert_eq!(error, RunError::UnevenGroups { usual: 2, odd: vec![("group 2".to_owned(), 1)] });
}

/// A clock that nobody can read.
#[derive(Debug)]
struct Broken;

impl Clock for Broken {
    fn now(&self) -> Duration {
        panic!("no time")
    }
}

#[test]
fn a_panic_in_the_engine_still_tells() {
    let engine = Arc::new(Engine::new(plan(OVERLAP)).unwrap().with_clock(Arc::new(Broken)));
    let (send, receive) = mpsc::channel();
    let batch = rollouts(5, 2);
    engine.submit(batch, ScoreOptions::default(), move |_, report| send.send(report).unwrap());
    let report = receive.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
    let reasons: Vec<_> = report.statistics.outcomes.reasons().collect();
    assert_eq!(reasons, [(OutcomeKind::Invalid, Code::Panic, 10)]);
    // A caller that panics itself is told no more than once, and the next batch is none the worse for it.
    engine.submit(rollouts(1, 1), ScoreOptions::default(), |_, _| panic!("the caller"));
    let (send, receive) = mpsc::channel();
    engine
        .submit(rollouts(1, 1), ScoreOptions::default(), move |_, report| send.send(report.is_ok()).unwrap());
    assert!(receive.recv_timeout(Duration::from_secs(60)).unwrap());
}

#[cfg(debug_assertions)]
#[test]
fn a_panic_over_one_rollout_is_its_own() {
    let responses = ["one", "plaudit-test: panic while scoring", "two", "plaudit-test: panic while scoring"];
    let batch: Vec<Rollout<'static>> =
        responses.iter().map(|response| Rollout::new(*response).in_group("g")).collect();
    let engine = Arc::new(Engine::new(plan(OVERLAP)).unwrap());
    let (send, receive) = mpsc::channel();
    engine.submit(batch.clone(), ScoreOptions::default(), move |_, report| send.send(report).unwrap());
    let submitted = receive.recv_timeout(Duration::from_secs(60)).unwrap();
    for report in [engine.score(&batch), submitted] {
        let report = report.unwrap();
        let codes = report.rows.iter().map(|row| row.total.cause().map(|cause| cause.reason.code));
        let panicked = Some(Code::Panic);
        assert!(codes.map(|code| code == panicked).eq([false, true, false, true]));
    }
    // A panic that is nobody's own is every rollout's, also of a caller that waits.
    let engine = Engine::new(plan(OVERLAP)).unwrap().with_clock(Arc::new(Broken));
    let report = engine.score(&batch).unwrap();
    assert_eq!(report.statistics.outcomes.of(OutcomeKind::Invalid), 4);
}

/// Waits until the mock has been asked so often.
pub(crate) fn asked(mock: &Mock, calls: usize) {
    until("the judge is asked", || mock.ledger().len() >= calls);
}

#[test]
fn cancelled_call_returns_at_once_and_alone() {
    let mock = Mock::start(&[]);
    let yaml = pointwise(&mock.url("ok")).replace("{{ response }}", "{{ response }} {{ extra.fault }}");
    let engine = Arc::new(Engine::new(plan(&yaml)).unwrap());
    let faulty = |fault: &str| {
        let mut batch = rollouts(10, 4);
        for rollout in &mut batch {
            rollout.extra.insert("fault".to_owned(), fault.into());
        }
        batch
    };
    // A judge that has answered before is trusted with many calls at once.
    let first = engine.score(&faulty("")).unwrap();
    assert_eq!(first.statistics.outcomes.of(OutcomeKind::Scored), 40, "{:?}", first.rows[0]);
    let (cancel, (send, receive)) = (CancelToken::new(), mpsc::channel());
    let terms = || ScoreOptions { cancel: Some(cancel.clone()), ..ScoreOptions::default() };
    let waiting = {
        let (engine, terms) = (Arc::clone(&engine), terms());
        std::thread::spawn(move || (engine.score_with(&faulty("[[fault:hang]]"), &terms), Instant::now()))
    };
    asked(&mock, 40 + 32);
    // The same calls a second time follow those in flight, and must let go as well.
    engine.submit(faulty("[[fault:hang]]"), terms(), move |_, report| {
        send.send((report, Instant::now())).unwrap();
    });
    let raised = Instant::now();
    cancel.cancel();
    let unwaited = receive.recv_timeout(Duration::from_secs(60)).unwrap();
    for (report, back) in [waiting.join().unwrap(), unwaited] {
        let report = report.unwrap();
        let reasons: Vec<_> = report.statistics.outcomes.reasons().collect();
        assert_eq!(reasons, [(OutcomeKind::Invalid, Code::Stopped, 40)]);
        // The calls themselves would hang for the minute that the recipe allows.
        let took = back.duration_since(raised);
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
    let other = engine.score_with(&faulty("later"), &ScoreOptions::default()).unwrap();
    assert_eq!(other.statistics.outcomes.of(OutcomeKind::Scored), 40, "who is not let go of is scored");
    assert!(cancel.is_cancelled());
    let calls = mock.ledger().len();
    let report = engine.score_with(&rollouts(5, 2), &terms()).unwrap();
    assert_eq!(report.statistics.outcomes.of(OutcomeKind::Invalid), 10);
    assert_eq!(mock.ledger().len(), calls, "none begins once it is let go of");
}

#[test]
fn the_reference_takes_part_where_the_caller_says_so() {
    let (silent, loud) = (plan(OVERLAP), plan(&format!("{OVERLAP}validation: {{ reference: include }}\n")));
    for (plan, recipe_says) in [(silent, false), (loud, true)] {
        let engine = Engine::new(plan).unwrap();
        for (validate, wanted) in [(None, recipe_says), (Some(true), true), (Some(false), false)] {
            let report = engine
                .score_with(&rollouts(1, 3), &ScoreOptions { validate, ..ScoreOptions::default() })
                .unwrap();
            let info = report.rows[0].outcomes[0].as_ref().unwrap().info().unwrap();
            assert_eq!(matches!(info.get("win"), Some(Fact::Bool(_))), wanted, "{validate:?}");
        }
    }
}

/// What is begun before the group is complete changes nothing but the time: the report is the same to the byte, and no judge
/// is asked twice.
#[test]
fn prescoring_gives_the_same_report_and_pays_once() {
    let mock = Mock::start(&[]);
    for recipe in recipes(&mock) {
        let plan = || recipe.plan().unwrap();
        let remote = plan().judges.iter().any(|judge| !judge.base_urls.is_empty());
        let engine = Arc::new(Engine::new(plan()).unwrap());
        for batch in rollouts(8, 4).chunks(4) {
            let batch: Vec<Arc<Rollout<'static>>> = batch.iter().cloned().map(Arc::new).collect();
            let begun: Vec<Prescored> = batch.iter().map(|_| Prescored::default()).collect();
            let before = mock.ledger().len();
            for (rollout, begun) in batch.iter().zip(&begun).rev() {
                engine.prescore(Arc::clone(rollout), &ScoreOptions::default(), begun);
            }
            until("the rules are asked", || begun.iter().all(Prescored::is_done));
            asked(&mock, before + if remote { 4 } else { 0 });
            let (send, receive) = mpsc::channel();
            engine.submit_prescored(batch, begun, ScoreOptions::default(), move |batch, report| {
                send.send((batch, report)).unwrap();
            });
            let (batch, report) = receive.recv_timeout(Duration::from_secs(60)).unwrap();
            let early = mock.ledger().len();
            assert_eq!(early, before + if remote { 4 } else { 0 }, "asked once each");
            let plain: Vec<Rollout<'static>> = batch.iter().map(|rollout| (**rollout).clone()).collect();
            let wanted = Engine::new(plan()).unwrap().score(&plain).unwrap();
            assert_eq!(told(&report.unwrap(), &batch), told(&wanted, &plain));
        }
    }
}

/// A rollout whose gate is closed, or which is too long, is put before no judge, whenever that is found out.
#[test]
fn nothing_is_begun_for_who_is_turned_away() {
    let mock = Mock::start(&[]);
    let yaml = pointwise(&mock.url("ok")).replace("weight: 0.5", "gate: { min: 0.0, total: -1.0 }");
    let engine = Arc::new(Engine::new(plan(&format!("{yaml}limits: {{ response_bytes: 20 }}\n"))).unwrap());
    let batch: Vec<Arc<Rollout<'static>>> = ["ab", "long enough", "longer than it may ever be", "no"]
        .into_iter()
        .map(|text| Arc::new(Rollout::new(text).in_group("g").to_prompt("p")))
        .collect();
    let begun: Vec<Prescored> = batch.iter().map(|_| Prescored::default()).collect();
    for (rollout, begun) in batch.iter().zip(&begun) {
        engine.prescore(Arc::clone(rollout), &ScoreOptions::default(), begun);
    }
    until("the rules are asked", || begun.iter().all(Prescored::is_done));
    let (send, receive) = mpsc::channel();
    engine
        .submit_prescored(batch, begun, ScoreOptions::default(), move |_, report| send.send(report).unwrap());
    let report = receive.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
    let kinds: Vec<OutcomeKind> = report.rows.iter().map(|row| row.total.kind()).collect();
    assert_eq!(mock.ledger().len(), 1, "{kinds:?}");
    assert_eq!(kinds[0], OutcomeKind::Floored);
    assert_eq!(kinds[2..], [OutcomeKind::Floored; 2]);
}
