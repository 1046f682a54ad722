//! The Redis journal against a real server: several machines buy every judgment once, and stop when it is gone.

use crate::mock_judge::{self, Mock, Run, Sample, config, run, samples};
use crate::redis_server::Server;
use crate::timing::until;
use plaudit::journal::{JournalError, Recovered, Redis, Store};
use plaudit::judge::config::{BudgetConfig, JudgeConfig, Price};
use plaudit::reason::Code;
use plaudit::record::{Claim, MemoryRecord, Record, RecordSource};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Opens the journal of a server, as one machine of several.
fn machine(server: &Server) -> Arc<Redis> {
    Arc::new(Redis::open(&server.url()).unwrap().0)
}

fn asks(redis: &Arc<Redis>, spec: &JudgeConfig, samples: &[Sample], seconds: f64) -> Run {
    let record: Arc<dyn Record> = Arc::clone(redis) as Arc<dyn Record>;
    run(mock_judge::judge(spec.clone()), &record, samples, seconds)
}

/// A judge that is asked for everything once.
fn judge(mock: &Mock) -> JudgeConfig {
    JudgeConfig { hedge_share: 0.0, timeout: "5s".to_owned(), ..config(&mock.url("ok")) }
}

fn only(run: &Run, code: Code) {
    assert!(run.scored() == 0 && run.codes().keys().eq([&code]), "{:?}", run.codes());
}

/// The key under which the judgment or the claim of a sample lies.
fn key_of(kind: &str, mock: &Mock, sample: &[Sample]) -> String {
    let none: Arc<dyn Record> = Arc::new(MemoryRecord::default());
    let asked = run(mock_judge::judge(judge(mock)), &none, sample, 20.0).asked;
    let hex: String = asked[0].key.unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("plaudit:1:{kind}:{hex}")
}

#[test]
fn judgments_are_shared_between_machines() {
    let Some(server) = Server::start(&[]) else { return };
    let mock = Mock::start(&[]);
    let (first, second) = (machine(&server), machine(&server));
    assert_eq!(first.secret(), second.secret());
    let bought = asks(&first, &judge(&mock), &samples("shared", 100), 30.0);
    let found = asks(&second, &judge(&mock), &samples("shared", 100), 30.0);
    assert_eq!((bought.scored(), bought.judge_usage.calls), (100, 100));
    assert_eq!((found.scored(), found.judge_usage.calls, found.judge_usage.cached), (100, 0, 100));
    let verdicts = |run: &Run| run.asked.iter().map(|asked| asked.verdict.clone()).collect::<Vec<_>>();
    assert_eq!(verdicts(&bought), verdicts(&found));
    let (_, recovered) = Redis::open(&server.url()).unwrap();
    assert_eq!(recovered.judgments, 100);
}

#[test]
fn two_machines_buy_each_judgment_once() {
    let Some(server) = Server::start(&[]) else { return };
    let mock = Mock::start(&["--latency-ms", "20"]);
    let all = samples("at-once", 400);
    let both = std::thread::scope(|scope| {
        let ask = || asks(&machine(&server), &JudgeConfig { concurrency: 16, ..judge(&mock) }, &all, 60.0);
        let threads = [scope.spawn(ask), scope.spawn(ask)];
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(both.each_ref().map(Run::scored), [400, 400]);
    let calls = both.each_ref().map(|run| run.judge_usage.calls);
    assert_eq!((calls.iter().sum::<u64>(), mock.ledger().len()), (400, 400), "{calls:?}");
    assert!(calls.iter().all(|calls| *calls >= 40), "{calls:?}");
}

#[test]
fn concurrent_opens_agree_on_one_secret() {
    let Some(server) = Server::start(&[]) else { return };
    let secrets = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| machine(&server).secret())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(secrets.iter().all(|secret| *secret == secrets[0]));
}

#[test]
fn claim_holds_while_its_machine_is_alive() {
    let Some(server) = Server::start(&[]) else { return };
    let mock = Mock::start(&[]);
    let sample = samples("died", 1);
    let claim = key_of("claim", &mock, &sample);
    let (before, machine, start) = (mock.ledger().len(), machine(&server), Instant::now());
    assert_eq!(server.ask(&[b"SET", b"plaudit:1:alive:other", b"", b"PX", b"1500"]), b"+OK");
    assert_eq!(server.ask(&[b"SET", claim.as_bytes(), b"other:1", b"PX", b"100000"]), b"+OK");
    let done = asks(&machine, &judge(&mock), &sample, 30.0);
    assert_eq!(done.scored(), 1, "{:?}", done.codes());
    assert!(start.elapsed() >= Duration::from_millis(1500), "{:?}", start.elapsed());
    assert_eq!(mock.ledger().len() - before, 1);
    assert_eq!(server.ask(&[b"EXISTS", claim.as_bytes()]), b":0", "a claim ends with its judgment");
    let alive = server.ask(&[b"KEYS", b"plaudit:1:alive:*"]);
    assert_eq!(alive, b"*1", "its own sign of life is there, the other one's has ended");
}

#[test]
fn failed_call_releases_its_claim() {
    let Some(server) = Server::start(&[]) else { return };
    let mock = Mock::start(&[]);
    let machine = machine(&server);
    let broken = JudgeConfig { attempts: 1, ..judge(&mock) };
    let failing = [Sample { id: "fails".into(), fault: Some("http400") }];
    assert_eq!(asks(&machine, &broken, &failing, 20.0).scored(), 0);
    machine.flush();
    assert_eq!(server.ask(&[b"KEYS", b"plaudit:1:claim:*"]), b"*0");
    let leaving = [Sample { id: "leaves".into(), fault: Some("hang") }];
    let gone = asks(&machine, &broken, &leaving, 0.3);
    assert_eq!(gone.codes().keys().copied().collect::<Vec<_>>(), [Code::JudgeDeadline]);
    machine.flush();
    assert_eq!(server.ask(&[b"KEYS", b"plaudit:1:claim:*"]), b"*0");
    assert_eq!(server.ask(&[b"HGET", b"plaudit:1:spent:judge", b"maybe_paid"]), b"1");
}

#[test]
fn no_calls_once_the_server_is_dead() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mock = Mock::start(&["--latency-ms", "50"]);
    let (machine, judge) = (machine(&server), JudgeConfig { concurrency: 8, ..judge(&mock) });
    let all = samples("dies", 400);
    let (done, asked) = std::thread::scope(|scope| {
        let run = scope.spawn(|| asks(&machine, &judge, &all, 60.0));
        until("the judge is asked", || mock.ledger().len() >= 40);
        server.kill();
        let asked = mock.ledger().len();
        (run.join().unwrap(), asked)
    });
    // The calls in flight when the server died may still reach the judge.
    let after = mock.ledger().len() - asked;
    assert!(after <= judge.concurrency, "a judge was asked {after} times without a record of it");
    assert!((20..200).contains(&done.scored()), "{}", done.scored());
    assert!(done.codes().keys().eq([&Code::JournalLost]), "{:?}", done.codes());
    let stuck = machine.is_stuck().unwrap();
    assert_eq!(stuck.code(), "journal.unreachable");
    // One that has been away for long costs no further patience.
    let again = asks(&machine, &judge, &samples("later", 1000), 60.0);
    only(&again, Code::JournalLost);
    assert!(again.took < done.took / 2, "{:?} after {:?}", again.took, done.took);
}

#[test]
fn run_continues_when_the_server_returns() {
    let Some(mut server) = Server::start(&["--appendonly", "yes", "--appendfsync", "always"]) else { return };
    let mock = Mock::start(&["--latency-ms", "20"]);
    let (machine, judge) = (machine(&server), JudgeConfig { concurrency: 8, ..judge(&mock) });
    let all = samples("returns", 300);
    let done = std::thread::scope(|scope| {
        let run = scope.spawn(|| asks(&machine, &judge, &all, 60.0));
        until("the judge is asked", || mock.ledger().len() >= 100);
        server.kill();
        server.again();
        run.join().unwrap()
    });
    assert_eq!(done.scored(), 300, "{:?}", done.codes());
    assert_eq!(mock.ledger().len(), 300, "nothing is bought twice");
    let again = asks(&machine, &judge, &all, 60.0);
    assert_eq!((again.scored(), again.judge_usage.calls), (300, 0));
}

#[test]
fn server_that_lost_its_data_stops_the_run() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mock = Mock::start(&[]);
    let machine = machine(&server);
    assert_eq!(asks(&machine, &judge(&mock), &samples("emptied", 10), 20.0).scored(), 10);
    server.kill();
    server.again();
    let done = asks(&machine, &judge(&mock), &samples("emptied", 10), 20.0);
    only(&done, Code::JournalLost);
    assert_eq!(mock.ledger().len(), 10);
    let said = machine.is_stuck().unwrap().to_string();
    assert!(said.contains("lost its judgments") && said.ends_with("(journal.emptied)"), "{said}");
}

#[test]
fn damaged_or_foreign_value_is_no_verdict() {
    let Some(server) = Server::start(&[]) else { return };
    let mock = Mock::start(&[]);
    let (one, other) = (samples("one", 1), samples("other", 1));
    let keys = [key_of("judgment", &mock, &one), key_of("judgment", &mock, &other)];
    let machine = machine(&server);
    assert_eq!(asks(&machine, &judge(&mock), &one, 20.0).scored(), 1);
    assert_eq!(asks(&machine, &judge(&mock), &other, 20.0).scored(), 1);
    let good = server.ask(&[b"GET", keys[0].as_bytes()]);
    let asked = mock.ledger().len();
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let foreign = server.ask(&[b"GET", keys[1].as_bytes()]);
    let text = br#"{"choices":[{"message":{"content":"{\"sample\":\"one-0\",\"score\":1.0}"}}]}"#;
    for bad in [&flipped[..], &foreign, &good[..good.len() / 2], &text[..], b""] {
        server.ask(&[b"SET", keys[0].as_bytes(), bad]);
        let done = asks(&machine, &judge(&mock), &one, 20.0);
        only(&done, Code::JournalDamaged);
        let message = done.asked[0].verdict.as_ref().unwrap_err().message.to_string();
        assert!(message.contains(&keys[0]), "{message}");
    }
    server.ask(&[b"SET", keys[0].as_bytes(), &good]);
    assert_eq!(asks(&machine, &judge(&mock), &one, 20.0).scored(), 1);
    assert_eq!(mock.ledger().len(), asked, "nobody was asked");
}

#[test]
fn call_budget_holds_over_all_machines() {
    let Some(server) = Server::start(&[]) else { return };
    let mock = Mock::start(&["--latency-ms", "5", "--mix", "ok=80,http500=20"]);
    let judge = JudgeConfig {
        budget: Some(BudgetConfig { calls: Some(50), ..BudgetConfig::default() }),
        concurrency: 16,
        ..judge(&mock)
    };
    let machines = [machine(&server), machine(&server), machine(&server)];
    for _ in 0..2 {
        let runs = std::thread::scope(|scope| {
            let ask = |at: usize| {
                let (machine, judge) = (&machines[at], &judge);
                scope.spawn(move || asks(machine, judge, &samples(&format!("budget-{at}"), 60), 30.0))
            };
            [0, 1, 2].map(ask).map(|thread| thread.join().unwrap())
        });
        assert_eq!(mock.ledger().len(), 50);
        let spent: usize = runs.iter().filter_map(|run| run.codes().get(&Code::JudgeBudget).copied()).sum();
        assert!(spent >= 180 - 50, "{spent} of 180 were not asked");
        assert!(machines.iter().all(|machine| machine.is_stuck().is_none()));
    }
    assert_eq!(server.ask(&[b"HGET", b"plaudit:1:spent:judge", b"calls"]), b"50");
}

#[test]
fn cost_budget_holds_over_all_machines() {
    let Some(server) = Server::start(&[]) else { return };
    let mock = Mock::start(&["--latency-ms", "5"]);
    // A call is taken to cost 1 until it is known to cost far less.
    let price = Some(Price { input: 0.0, cached: None, output: 1000.0 });
    let judge = JudgeConfig {
        budget: Some(BudgetConfig { cost: Some(3.0), ..BudgetConfig::default() }),
        price,
        concurrency: 16,
        ..judge(&mock)
    };
    let machines = [machine(&server), machine(&server)];
    let costs = std::thread::scope(|scope| {
        let ask = |at: usize| {
            let (machine, judge) = (&machines[at], &judge);
            scope.spawn(move || asks(machine, judge, &samples(&format!("cost-{at}"), 300), 60.0))
        };
        [0, 1].map(ask).map(|thread| thread.join().unwrap().judge_usage.cost.unwrap())
    });
    machines.iter().for_each(|machine| machine.flush());
    let sum: f64 = costs.iter().sum();
    assert!(sum <= 3.0 + 1e-9 && sum > 1.9, "{costs:?}");
    let number = |field: &str| -> f64 {
        let said = server.ask(&[b"HGET", b"plaudit:1:spent:judge", field.as_bytes()]);
        String::from_utf8(said).unwrap().parse().unwrap()
    };
    assert!((number("cost") - sum).abs() < 1e-6 && number("held").abs() < 1e-6);
}

/// Why a Redis cannot be opened, and after how long that is said.
fn refused(url: &str) -> (JournalError, Duration) {
    let started = Instant::now();
    let error = Store::open(url).unwrap_err();
    (error, started.elapsed())
}

#[test]
fn wrong_password_is_reported_and_never_shown() {
    let Some(server) = Server::start(&["--requirepass", "s3cr3t-right"]) else { return };
    let at = format!("127.0.0.1:{}", server.port);
    for url in [
        format!("redis://:s3cr3t-wrong@{at}"),
        format!("redis://me:s3cr3t-wrong@{at}/1"),
        format!("redis://{at}"),
    ] {
        let error = refused(&url).0;
        let said = format!("{error} {error:?}");
        assert_eq!(error.code(), "journal.login", "{said}");
        assert!(said.contains(&at) && !said.contains("s3cr3t"), "{said}");
    }
    let url = format!("redis://:s3cr3t-right@{at}");
    let (store, _) = Store::open(&url).unwrap();
    assert!(!format!("{store:?}").contains("s3cr3t"));
}

#[test]
fn unreachable_or_silent_server_is_reported() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let (error, waited) = refused(&format!("redis://:s3cr3t@127.0.0.1:{port}"));
    assert_eq!(error.code(), "journal.unreachable");
    assert!(waited < Duration::from_secs(30), "{waited:?}");
    drop(silent);
    let (error, took) = refused(&format!("redis://:s3cr3t@127.0.0.1:{port}"));
    assert_eq!(error.code(), "journal.unreachable");
    assert!(took < waited, "a closed port takes {took:?}, a silent one {waited:?}");
    assert!(!error.to_string().contains("s3cr3t"), "{error}");
    for url in ["redis://:s3cr3t@", "redis://:s3cr3t@host:none/0", "redis://:s3cr3t@host:1/nought"] {
        let error = refused(url).0;
        assert_eq!(error.code(), "journal.address", "{url}: {error}");
        assert!(!error.to_string().contains("s3cr3t"), "{error}");
    }
}

#[test]
fn replica_or_full_server_is_not_written() {
    let Some(server) = Server::start(&["--replicaof", "127.0.0.1 1"]) else { return };
    assert_eq!(refused(&server.url()).0.code(), "journal.read_only");
    let Some(server) = Server::start(&[]) else { return };
    let mock = Mock::start(&[]);
    let machine = machine(&server);
    assert_eq!(server.ask(&[b"CONFIG", b"SET", b"maxmemory", b"1"]), b"+OK");
    let done = asks(&machine, &judge(&mock), &samples("full", 50), 20.0);
    only(&done, Code::JournalFull);
    assert_eq!(mock.ledger().len(), 0);
    assert_eq!(refused(&server.url()).0.code(), "engine.journal_full");
    assert_eq!(server.ask(&[b"CONFIG", b"SET", b"maxmemory", b"0"]), b"+OK");
    assert_eq!(asks(&machine, &judge(&mock), &samples("full", 50), 20.0).scored(), 50);
}

#[test]
fn settings_that_can_lose_judgments_are_reported() {
    let doubts = |flags: &[&str]| -> Option<String> {
        let server = Server::start(flags)?;
        let Recovered { warnings: doubts, .. } = Redis::open(&server.url()).unwrap().1;
        Some(doubts.join("\n"))
    };
    let Some(none) = doubts(&["--appendonly", "yes", "--maxmemory", "100mb"]) else { return };
    assert_eq!(none, "");
    let evicting = doubts(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]).unwrap();
    assert!(evicting.contains("noeviction") && evicting.contains("appendonly yes"), "{evicting}");
    let unknown = doubts(&["--rename-command", "CONFIG", ""]).unwrap();
    assert!(unknown.contains("does not tell"), "{unknown}");
}

#[test]
fn facts_and_sums_are_there_for_all_machines() {
    let Some(server) = Server::start(&[]) else { return };
    let (one, other) = (machine(&server), machine(&server));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        assert_eq!(other.get_fact("form:judge").await.unwrap(), None);
        one.set_fact("form:judge", "+json");
        one.spend("judge", 0.0, 0.25);
        one.spend("judge", 0.0, 0.5);
        one.flush();
        assert_eq!(other.get_fact("form:judge").await.unwrap().as_deref(), Some("+json"));
        assert_eq!(other.spent("judge").await.unwrap(), (0, 0.75));
        assert_eq!(server.ask(&[b"HSET", b"plaudit:1:spent:judge", b"cost", b"much"]), b":0");
        assert_eq!(other.spent("judge").await.unwrap().1, f64::INFINITY, "the purse stays shut");
    });
    let question = [7; 32];
    let claim = Claim { key: &question, judge: "judge", request_id: 1 };
    runtime.block_on(one.store(RecordSource::Judge(claim), b"{}", Duration::ZERO)).unwrap();
    assert_eq!(runtime.block_on(other.get(&question)).unwrap().as_deref(), Some(&b"{}"[..]));
    let counts: BTreeMap<&str, u64> =
        BTreeMap::from([("one", one.judgments()), ("other", other.judgments())]);
    assert_eq!(counts, BTreeMap::from([("one", 1), ("other", 0)]));
}
