//! Overload, fairness between runs, judge limits and shutdown of the service.

use super::http::{Service, read, request, until};
use crate::support::{Folder, LENGTH};
use serde_json::{Value, json};
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const JUDGED: &str = r#"
name: judged
components:
  quality: { reward: principle, mode: pairwise, principles: [helpfulness], aggregate: winrate }
judges: { main: { base_url: "URL", model: m, concurrency: 8, hedge_share: 0 } }
"#;

fn judged(folder: &Folder, latency: &str, more: &str) -> (Service, Service) {
    let judge = Service::judge(&["--latency", latency, "--jitter", "0", "--slow-share", "0"]);
    let recipe = folder.file("judged.yaml", JUDGED.replace("URL", &judge.url()));
    let config = folder.file("serve.yaml", more);
    let service = Service::start(folder, &["--recipe", &recipe, "--config", &config]);
    (judge, service)
}

fn group(run: &str, name: usize, size: usize) -> Value {
    let rollouts: Vec<Value> = (0..size)
        .map(|at| json!({ "group": format!("{run}{name}"), "prompt": "q", "response": format!("{run} {name} {at}") }))
        .collect();
    json!({ "run": run, "rollouts": rollouts })
}

#[test]
fn overload_is_refused_and_admitted_requests_finish() {
    let folder = Folder::new("serve-overload");
    let (_judge, service) = judged(&folder, "100ms", "limits: { rollouts: 64 }\n");
    let (good, refusals) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for client in 0..32 {
            let (service, good, refusals) = (&service, &good, &refusals);
            scope.spawn(move || {
                for turn in 0..4 {
                    let began = Instant::now();
                    let answer = service.post("/v1/score", &group("many", client * 4 + turn, 4));
                    match answer.status {
                        200 => {
                            assert!(answer.text().contains("\"outcome\":\"scored\""));
                            good.lock().unwrap().push(began.elapsed());
                        }
                        429 => {
                            assert_eq!(answer.code(), "engine.overloaded");
                            assert!(answer.header("retry-after").is_some());
                            refusals.lock().unwrap().push(began.elapsed());
                        }
                        status => panic!("{status}: {}", answer.text()),
                    }
                }
            });
        }
    });
    let [good, refusals] = [good, refusals].map(|times| {
        let mut times = times.into_inner().unwrap();
        times.sort();
        times
    });
    assert!(good.len() >= 12 && !refusals.is_empty(), "{} good, {} refused", good.len(), refusals.len());
    // Whoever is let in waits for the judge; whoever is refused waits for nothing.
    let middle = |times: &[Duration]| times[times.len() / 2];
    assert!(middle(&refusals) < middle(&good), "{refusals:?} beside {good:?}");
    assert_eq!(service.get("/v1/status").json()["rollouts"], 0);
}

#[test]
fn one_runs_burst_does_not_starve_another() {
    let folder = Folder::new("serve-fair");
    // 8 calls at a time of 25 ms are 320 pairs a second.
    let (_judge, service) = judged(&folder, "25ms", "");
    let mut times = Vec::new();
    let began = Instant::now();
    std::thread::scope(|scope| {
        // 60 groups of 8 at once are 1680 pairs: over five seconds for whoever comes after them in one queue.
        for at in 0..60 {
            let service = &service;
            scope.spawn(move || assert_eq!(service.post("/v1/score", &group("greedy", at, 8)).status, 200));
        }
        let inside = || service.get("/v1/status").json()["rollouts"].as_u64();
        until("most of the burst is inside", || inside().is_some_and(|inside| inside >= 320));
        for at in 0..5 {
            let began = Instant::now();
            assert_eq!(service.post("/v1/score", &group("modest", at, 4)).status, 200);
            times.push(began.elapsed());
        }
        times.sort();
    });
    // Six pairs are one round of the judge alone; behind the calls that are already before it, a few rounds, and not the hundred
    // and more of the burst.
    let burst = began.elapsed();
    assert!(times[2] * 8 < burst, "{times:?} beside {burst:?}");
}

#[test]
fn a_limit_of_a_judge_holds_over_all_runs_and_recipes() {
    let folder = Folder::new("serve-limit");
    let ledger = folder.path("ledger");
    let judge = Service::judge(&["--latency", "30ms", "--ledger", &ledger]);
    let one = folder.file("one.yaml", JUDGED.replace("URL", &judge.url()));
    let two =
        folder.file("two.yaml", JUDGED.replace("URL", "http://127.0.0.1:9/v1").replace("judged", "other"));
    // The operator's judge takes the place of whatever the recipes say.
    let config = format!(
        "judges: {{ main: {{ base_url: \"{}\", model: m, concurrency: 5, budget: {{ calls: 60, per: day }} }} }}\n",
        judge.url()
    );
    let config = folder.file("serve.yaml", config);
    let service = Service::start(&folder, &["--recipe", &one, "--recipe", &two, "--config", &config]);
    let invalid = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for at in 0..8 {
            let (service, invalid) = (&service, &invalid);
            scope.spawn(move || {
                let mut body = group(["a", "b"][at % 2], at, 5);
                body["recipe"] = json!(["judged", "other"][at / 4]);
                let text = service.post("/v1/score", &body).text();
                invalid.fetch_add(text.matches("judge.budget").count(), Ordering::Relaxed);
            });
        }
    });
    let calls = std::fs::read_to_string(&ledger).unwrap();
    let calls: Vec<Value> = calls.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let most = calls.iter().map(|call| call["in_flight"].as_u64().unwrap()).max().unwrap();
    // 80 pairs were wanted.
    assert_eq!(calls.len(), 60, "the budget of the day holds exactly");
    assert!((4..=5).contains(&most), "{most} at once");
    assert!(invalid.into_inner() > 0, "what was not asked is invalid, and no number");
    until("it is in the log", || folder.read("log").contains("\"code\":\"judge.budget\""));
    let metrics = service.get("/metrics").text();
    assert!(metrics.contains("plaudit_judge_calls_total{judge=\"main\"} 60"), "{metrics}");
    assert!(!metrics.contains("plaudit_judge_cost_total{"), "without prices, the cost is not known");
}

#[test]
fn shutdown_answers_what_is_under_way() {
    let folder = Folder::new("serve-drain");
    let (_judge, mut service) = judged(&folder, "300ms", "");
    let mut waiting = service.connect();
    let mut kept_alive = service.connect();
    kept_alive.write_all(request("GET", "/healthz", "", &[], None).as_bytes()).unwrap();
    assert_eq!(read(&mut kept_alive).unwrap().status, 200);
    waiting
        .write_all(request("POST", "/v1/score", &group("last", 0, 4).to_string(), &[], None).as_bytes())
        .unwrap();
    until("it is inside", || service.get("/v1/status").json()["rollouts"] == 4);
    service.signal("-TERM");
    let answer = read(&mut waiting).expect("it is still answered");
    assert!(answer.status == 200 && answer.text().contains("\"outcome\":\"scored\""));
    assert_eq!(service.wait(), 0);
    assert!(read(&mut kept_alive).is_none(), "a connection that waits for nothing is closed");
}

#[test]
fn slow_and_silent_clients_take_little_and_hold_nobody_up() {
    let folder = Folder::new("serve-slow");
    let length = folder.file("length.yaml", LENGTH);
    let service = Service::start(&folder, &["--recipe", &length]);
    let score = || {
        let began = Instant::now();
        let body = json!({ "rollouts": (0..8).map(|at| json!({ "response": "word ".repeat(at) })).collect::<Vec<_>>() });
        assert_eq!(service.post("/v1/score", &body).status, 200);
        began.elapsed()
    };
    let median = || {
        let mut times: Vec<Duration> = (0..50).map(|_| score()).collect();
        times.sort();
        times[25]
    };
    let alone = median();
    let before = service.memory();
    // They promise a megabyte and send a few bytes of it.
    let slow: Vec<_> = (0..500)
        .map(|_| {
            let mut stream = service.connect();
            let head = "POST /v1/score HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n{\"roll";
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    // Measured again where it is too much: other tests may have the processor, but slow clients stay for all of it.
    let mut beside = median();
    for _ in 0..4 {
        if beside >= alone * 10 {
            beside = median();
        }
    }
    assert!(beside < alone * 10, "{beside:?} beside slow clients, {alone:?} without");
    assert!(service.memory() < before + (128 << 20), "{} bytes more", service.memory() - before);
    drop(slow);
}

/// The guide gives the last spans three seconds.
#[test]
fn a_silent_collector_holds_the_end_up_three_seconds() {
    let folder = Folder::new("serve-silent-collector");
    let collector = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", collector.local_addr().unwrap());
    let recipe = folder.file("length.yaml", LENGTH);
    let mut service = Service::start(&folder, &["--recipe", &recipe, "--otlp-endpoint", &endpoint]);
    assert_eq!(service.post("/v1/score", &group("r", 0, 4)).status, 200);
    // It has a batch, and never answers.
    let _batch = collector.accept().unwrap();
    assert_eq!(service.post("/v1/score", &group("r", 1, 4)).status, 200);
    let began = Instant::now();
    service.signal("-TERM");
    assert_eq!(service.wait(), 0);
    let took = began.elapsed().as_secs_f64();
    assert!((2.5..4.5).contains(&took), "{took}");
}
