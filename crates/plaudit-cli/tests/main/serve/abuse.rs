//! Hostile HTTP requests: the cases of `golden/abuse/http_cases.jsonl`; those that need a connection of their own are played here
//! by their numbers. H13, headers that drip, is tested on a paused clock beside the code.

use super::http::{Answer, Service, read, request};
use crate::support::{Folder, LENGTH, run};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::time::Duration;

/// What a case may be answered with.
fn wanted(case: &Value) -> Vec<u16> {
    let reason = case["expect"]["reason"].as_str().unwrap();
    // The first words are statuses.
    reason
        .split(|letter: char| !letter.is_ascii_digit())
        .filter_map(|word| word.parse().ok())
        .filter(|status| (400..500).contains(status))
        .collect()
}

struct TestService {
    folder: Folder,
    service: Service,
    token: String,
}

impl TestService {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let (length, file) = (folder.file("length.yaml", LENGTH), folder.path("tokens.json"));
        let token = run(&["token", "create", "A", "--file", &file]).out.trim().to_owned();
        // The cases call it by that name.
        let arguments = ["--recipe", &*length, "--token-file", &*file, "--host", "x"];
        let service = Service::start(&folder, &arguments);
        Self { folder, service, token }
    }

    fn post(&self, path: &str, body: &str, headers: &[(&str, &str)]) -> Answer {
        self.service.raw(request("POST", path, body, headers, Some(&self.token)).as_bytes())
    }

    /// Plays a case, where that takes no more than a request.
    fn play(&self, case: &Value) -> Option<Answer> {
        let authorized = |payload: &str| {
            let payload = payload.replace("Bearer A\r\n", &format!("Bearer {}\r\n", self.token));
            match payload.contains("Authorization") || case["id"] == "H01" {
                true => payload,
                // What a case is about comes after who is asking.
                false => payload.replacen(
                    "Host: x\r\n",
                    &format!(
                        "Host: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n",
                        self.token
                    ),
                    1,
                ),
            }
        };
        let raw = |text: &str| Some(self.service.raw(text.as_bytes()));
        match (case["id"].as_str()?, case["payload"].as_str(), case["gen"].as_str()) {
            ("H24", Some(payload), _) => {
                let token = format!("Host: x\r\nAuthorization: Bearer {}\r\n", self.token);
                raw(&payload.replacen("Host: x\r\n", &token, 1).replacen(
                    "Origin: https://evil.example\r\n",
                    "",
                    1,
                ))
            }
            (_, Some(payload), _) if payload.contains("HTTP/1.1") => raw(&authorized(payload)),
            (_, _, Some("http_big_header")) => {
                raw(&request("POST", "/v1/score", "{}", &[("x-big", &"x".repeat(1 << 20))], None))
            }
            (_, _, Some("http_many_headers")) => {
                let many: Vec<(String, String)> =
                    (0..10_000).map(|at| (format!("x-{at}"), "1".to_owned())).collect();
                let many: Vec<(&str, &str)> =
                    many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                raw(&request("POST", "/v1/score", "{}", &many, None))
            }
            (_, _, Some("http_gzip")) => {
                Some(self.post("/v1/score", "\u{1f}\u{8b}...", &[("content-encoding", "gzip")]))
            }
            _ => None,
        }
    }
}

#[test]
fn hostile_requests_are_refused_in_time() {
    let served = TestService::new("serve-abuse");
    let text = include_str!("../../../../../golden/abuse/http_cases.jsonl");
    let mut played = 0;
    for case in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let before = served.service.cpu_time();
        let Some(answer) = served.play(&case) else { continue };
        let took = served.service.cpu_time() - before;
        played += 1;
        let (id, wanted) = (case["id"].as_str().unwrap(), wanted(&case));
        assert!(wanted.contains(&answer.status), "{id}: {} of {wanted:?}: {}", answer.status, answer.text());
        let most = Duration::from_millis(case["expect"]["max_ms"].as_u64().unwrap());
        assert!(took < most, "{id}: {took:?}");
        if case["expect"]["reason"].as_str().unwrap().contains("close") {
            assert_eq!(answer.header("connection"), Some("close"), "{id}");
        }
    }
    assert_eq!(played, 10, "the others are played below");
    assert_eq!(served.service.get("/healthz").status, 200);
}

/// H17: more connections than there may be are refused at once, and those that there are go on being answered.
#[test]
fn more_connections_than_there_may_be_are_turned_away_quickly() {
    let folder = Folder::new("serve-many");
    let length = folder.file("length.yaml", LENGTH);
    let config = folder.file("serve.yaml", "limits: { connections: 300, connections_per_peer: 300 }\n");
    let service = Service::start(&folder, &["--recipe", &length, "--config", &config]);
    let before = service.memory();
    let mut healthy = service.connect();
    let idle: Vec<_> = (0..299).map(|_| service.connect()).collect();
    let mut one_more = service.connect();
    one_more.write_all(request("GET", "/v1/runs", "", &[], None).as_bytes()).unwrap();
    let answer = read(&mut one_more).expect("an answer");
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    healthy.write_all(request("GET", "/healthz", "", &[], None).as_bytes()).unwrap();
    assert_eq!(read(&mut healthy).unwrap().status, 200);
    assert!(service.memory() < before + (32 << 20), "{} bytes more", service.memory() - before);
    drop(idle);
    super::http::until("there is room again", || service.get("/healthz").status == 200);
}

/// H15, for a request: a client that goes away frees its work, and what was bought is not bought again.
#[test]
fn a_client_that_goes_away_frees_its_work() {
    let folder = Folder::new("serve-gone");
    let ledger = folder.path("ledger");
    let judge =
        Service::judge(&["--latency", "300ms", "--jitter", "0", "--slow-share", "0", "--ledger", &ledger]);
    let recipe = "name: one\ncomponents: { q: { reward: principle, mode: pairwise, principles: [helpfulness], aggregate: winrate } }\njudges: { main: { base_url: \"URL\", model: m, concurrency: 2, hedge_share: 0 } }\n";
    let recipe = folder.file("one.yaml", recipe.replace("URL", &judge.url()));
    let service = Service::start(&folder, &["--recipe", &recipe]);
    let rollouts = |group: &str, size: usize| -> Vec<Value> {
        (0..size)
            .map(|at| json!({ "group": group, "prompt": "q", "response": format!("{group} {at}") }))
            .collect()
    };
    // 28 pairs, two at a time.
    let body = json!({ "rollouts": rollouts("long", 8) }).to_string();
    let mut stream = service.connect();
    stream.write_all(request("POST", "/v1/score", &body, &[], None).as_bytes()).unwrap();
    let calls = || std::fs::read_to_string(&ledger).map_or(0, |text| text.lines().count());
    super::http::until("some of it is answered", || calls() >= 4);
    drop(stream);
    let answer = service.post("/v1/score", &json!({ "rollouts": rollouts("short", 2) }));
    assert_eq!(answer.status, 200);
    assert!(calls() < 20, "{} calls", calls());
    super::http::until("nothing is inside", || service.get("/v1/status").json()["rollouts"] == 0);
    // The same again: what was answered before the client went is in the journal.
    assert_eq!(service.post("/v1/score", &json!({ "rollouts": rollouts("long", 8) })).status, 200);
    let judges = service.get("/v1/judges").json();
    assert!(judges["judges"][0]["cached"].as_u64().unwrap() >= 2, "{judges}");
}

/// H27, H28, H29: what a client says stays one label, one line, one header.
#[test]
fn what_clients_say_cannot_speak_for_the_service() {
    let served = TestService::new("serve-clients-say");
    assert_eq!(
        served.post("/v1/score", r#"{"recipe":"a\"} evil 1\n","rollouts":[]}"#, &[]).code(),
        "recipe.unknown"
    );
    let id = "x\\n2026-01-01 INFO paid=0";
    let body = format!(
        "{{\"recipe\":\"length\",\"run\":\"r\",\"rollouts\":[{{\"id\":\"{id}\",\"response\":\"a\"}}]}}"
    );
    let answer =
        served.post("/v1/score", &body, &[("traceparent", &"f".repeat(2000)), ("tracestate", "\u{1b}[2J")]);
    assert!(answer.status == 200 || answer.status == 400, "{}", answer.text());
    let metrics =
        served.service.raw(request("GET", "/metrics", "", &[], Some(&served.token)).as_bytes()).text();
    assert!(!metrics.contains("evil") && !metrics.contains("paid"));
    assert!(!served.folder.read("log").contains("\n2026-01-01"));
    // Garbage that is no HTTP at all.
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"\0\0\0\0\r\n\r\n",
        b"GET\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut stream = served.service.connect();
        stream.write_all(garbage).unwrap();
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&said));
    }
    assert_eq!(served.service.get("/healthz").status, 200);
}

/// A list of values in the order of a request's fields is no request.
#[test]
fn a_body_that_is_a_list_is_no_request() {
    let served = TestService::new("serve-list");
    let rollout = r#"{"response":"a"}"#;
    let score = format!(r#"["length","r",1,false,false,[{rollout}]]"#);
    let join = format!(r#"["length","r",1,"g",1,null,null,null,{rollout}]"#);
    for (path, body) in [
        ("/v1/score", &*score),
        ("/v1/jobs", &*score),
        ("/v1/join", &*join),
        ("/slime/length", r#"["q","a",null]"#),
        ("/openrlhf/length", r#"[["qa"],["q"],null]"#),
        ("/nemo-gym/length/verify", r#"[{},{}]"#),
        ("/nemo-gym/length/aggregate_metrics", r#" [[{"reward":1}]]"#),
        ("/v1/score", "7"),
    ] {
        let answer = served.post(path, body, &[]);
        assert_eq!(
            (answer.status, answer.code()),
            (400, "http.json".to_owned()),
            "{path}: {}",
            answer.text()
        );
        assert!(answer.text().contains("a JSON object is wanted"), "{}", answer.text());
    }
}

/// A client that sends all of a body before it reads anything, as urllib does, hears that it is too long.
#[test]
fn whoever_sends_too_much_hears_it() {
    let folder = Folder::new("serve-too-long");
    let length = folder.file("length.yaml", LENGTH);
    let config = folder.file("serve.yaml", "limits: { request_bytes: 65536 }\n");
    let service = Service::start(&folder, &["--recipe", &length, "--config", &config]);
    // More than the buffers of both sockets hold.
    let body = vec![b' '; 24 << 20];
    let sized = format!("content-length: {}\r\n\r\n", body.len());
    let chunked = format!("transfer-encoding: chunked\r\n\r\n{:x}\r\n", body.len());
    for (kind, rest, end) in [("sized", sized, ""), ("chunked", chunked, "\r\n0\r\n\r\n")] {
        let mut stream = service.connect();
        let head = "POST /v1/score HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n";
        stream.write_all(format!("{head}{rest}").as_bytes()).unwrap();
        let sent = stream.write_all(&body).and_then(|()| stream.write_all(end.as_bytes()));
        assert!(sent.is_ok(), "{kind}: {sent:?}");
        let answer = read(&mut stream).unwrap_or_else(|| panic!("{kind}: no answer"));
        assert_eq!((answer.status, answer.code()), (413, "http.too_long".to_owned()), "{kind}");
    }
    // Whoever asks first is told before it sends anything.
    let head = "POST /v1/score HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: 99999999\r\n\r\n";
    assert_eq!(service.raw(head.as_bytes()).status, 413);
}

#[test]
fn a_target_may_not_name_another_host() {
    let folder = Folder::new("serve-target");
    let service = Service::start(&folder, &["--recipe", &folder.file("length.yaml", LENGTH)]);
    let ask = |target: &str| {
        service.raw(format!("GET {target} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").as_bytes()).status
    };
    assert_eq!(ask("http://evil/healthz"), 400);
    assert_eq!(ask("http://127.0.0.1.evil/healthz"), 400);
    assert_eq!(ask("http://127.0.0.1/healthz"), ask("/healthz"));
}
