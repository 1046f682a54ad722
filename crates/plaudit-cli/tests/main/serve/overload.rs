//! Resource limits of the service: no client fills its memory, threads or disk, by bodies that swell when they are parsed, by names
//! that are never the same twice, or by groups that never come together.

use super::http::{Service, request, until};
use crate::support::{COMPARING, Folder, LENGTH, installed};
use serde_json::{Value, json};
use std::io::Write as _;

fn served(name: &str, config: &str) -> (Folder, Service) {
    let folder = Folder::new(name);
    let (length, comparing) = (folder.file("length.yaml", LENGTH), folder.file("comparing.yaml", COMPARING));
    let config = folder.file("serve.yaml", config);
    let service =
        Service::start(&folder, &["--recipe", &length, "--recipe", &comparing, "--config", &config]);
    (folder, service)
}

/// How many threads a process has.
fn threads(service: &Service) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", service.pid())).unwrap().count()
}

#[test]
fn a_body_that_swells_when_it_is_read_is_refused() {
    let (_folder, service) = served("serve-swell", "");
    let before = service.memory();
    let post = |path: &str, body: &str| service.send("POST", path, body, &[]);
    // Sixty thousand responses that would have a prompt of a megabyte each.
    let prompt = "p".repeat(1 << 20);
    let body = format!(
        "{{\"recipe\":\"length\",\"rollouts\":[{{\"prompt\":\"{prompt}\",\"responses\":[{}\"\"]}}]}}",
        "\"\",".repeat(60_000)
    );
    assert_eq!(post("/v1/score", &body).code(), "http.too_many");
    // Few enough responses, but a prompt each.
    let body = body.replacen(&"\"\",".repeat(59_000), "", 1);
    assert_eq!(post("/v1/score", &body).code(), "http.too_many");
    // Lists of what takes more room than it has letters.
    for values in ["0,".repeat(8 << 20), "[0],".repeat(4 << 20), "{},".repeat(4 << 20)] {
        for path in
            ["/v1/score", "/v1/jobs", "/v1/join", "/slime/length", "/nemo-gym/length/aggregate_metrics"]
        {
            let answer = post(path, &format!("{{\"rollouts\":[{values}0]}}"));
            assert_eq!((answer.status, answer.code()), (413, "http.too_many".to_owned()), "{path}");
        }
    }
    // As many samples as fit into a body, each of which would be a request of its own.
    let many = "\"\",".repeat(100_000);
    let body = format!("{{\"query\":[{many}\"\"],\"prompts\":[{many}\"\"]}}");
    assert_eq!(post("/openrlhf/length", &body).code(), "http.too_many");
    let grown = service.memory().saturating_sub(before);
    assert!(grown < 700 << 20, "{grown} bytes more");
    assert_eq!(post("/v1/score", r#"{"recipe":"length","rollouts":[{"response":"a"}]}"#).status, 200);
}

#[test]
fn requests_without_rollouts_lock_nobody_out() {
    let (_folder, service) = served("serve-empty", "limits: { rollouts: 64 }\n");
    let some: Vec<Value> = (0..20).map(|at| json!({ "response": "x".repeat(at) })).collect();
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (service, some) = (&service, &some);
            scope.spawn(move || {
                for _ in 0..100 {
                    let rollouts = if client % 2 == 0 { &some[..0] } else { &some[..1] };
                    let body = json!({ "recipe": "length", "rollouts": rollouts });
                    let status = service.post("/v1/score", &body).status;
                    assert!(status == 200 || status == 429, "{status}");
                }
            });
        }
    });
    assert_eq!(service.get("/v1/status").json()["rollouts"], 0);
    // Two requests of one run have room beside each other, as they had before.
    let body = json!({ "recipe": "length", "rollouts": some });
    assert_eq!(service.post("/v1/score", &body).status, 200);
}

#[test]
fn new_step_in_every_request_takes_no_threads() {
    let (_folder, service) = served("serve-steps", "limits: { joining: 1000 }\nabort_after: never\n");
    let join = |step: u64, size: usize| {
        json!({ "recipe": "comparing", "run": "r", "step": step, "group": "g", "size": size,
            "rollout": { "response": "a", "extra": { "correct": true } } })
    };
    let before = threads(&service);
    for step in 0..400_u64 {
        assert_eq!(service.post("/v1/join", &join((1 << 53) - 1 - step, 1)).status, 200);
    }
    assert_eq!(service.post("/v1/join", &join(1 << 53, 1)).code(), "run.step");
    assert!(threads(&service) < before + 60, "{} threads", threads(&service));
    // Groups that never come together, by clients that do not wait for them.
    let mut codes = Vec::new();
    for step in 0..100 {
        let mut stream = service.connect();
        stream
            .write_all(request("POST", "/v1/join", &join(step, 2).to_string(), &[], None).as_bytes())
            .unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_millis(20))).unwrap();
        if let Some(answer) = super::http::read(&mut stream) {
            codes.push(answer.code());
        }
    }
    assert!(codes.iter().any(|code| code == "run.too_many_steps"), "{codes:?}");
    assert!(threads(&service) < before + 100, "{} threads", threads(&service));
    // Others are not kept waiting.
    let other = json!({ "recipe": "length", "rollouts": [{ "response": "a" }] });
    assert_eq!(service.post("/v1/score", &other).status, 200);
    let steps = service.get("/v1/runs").json();
    assert!(steps["runs"].as_array().is_some());
}

#[test]
fn joining_is_limited_over_all_runs_and_steps() {
    let (_folder, service) = served("serve-joining", "limits: { joining: 40, runs: 12 }\n");
    let mut streams = Vec::new();
    for at in 0..60 {
        let body = json!({ "recipe": "comparing", "run": format!("r{}", at % 3), "step": at % 5, "group": at.to_string(),
            "size": 2, "rollout": { "response": "a" } });
        let mut stream = service.connect();
        stream.write_all(request("POST", "/v1/join", &body.to_string(), &[], None).as_bytes()).unwrap();
        stream.set_nonblocking(true).unwrap();
        streams.push(stream);
    }
    // Who is let in waits for its group and hears nothing.
    let answered =
        || streams.iter().filter(|stream| stream.peek(&mut [0]).is_ok_and(|read| read > 0)).count();
    let waiting = || service.metric("plaudit_rollouts_joining") as usize;
    until("each waits or is refused", || answered() + waiting() == 60);
    assert!((20..60).contains(&answered()), "{} refused", answered());
    for stream in &mut streams {
        if stream.peek(&mut [0]).is_ok() {
            stream.set_nonblocking(false).unwrap();
            assert_eq!(super::http::read(stream).unwrap().status, 429);
        }
    }
    // Another name in every request: so many are at hand and no more, and the ones that are known go on.
    let run = |name: &str| {
        service
            .post("/v1/score", &json!({ "recipe": "length", "run": name, "rollouts": [{ "response": "a" }] }))
    };
    assert_eq!(run("known").status, 200);
    for at in 0..20 {
        assert_eq!(run(&format!("Ä{at}")).status, 200);
        assert!(service.get("/v1/status").json()["runs"].as_u64().unwrap() <= 12);
    }
    assert_eq!(run("known").status, 200);
}

#[test]
fn slow_large_bodies_do_not_keep_small_ones_out() {
    let (_folder, service) =
        served("serve-room", "limits: { request_bytes: 4194304, total_request_bytes: 8388608 }\n");
    let head = "POST /v1/score HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 4194304\r\n\r\n";
    let mut slow = Vec::new();
    for _ in 0..4 {
        let mut stream = service.connect();
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&vec![b' '; 4_194_000]));
        slow.push(stream);
    }
    until("they hold what they may", || {
        service.get("/metrics").text().lines().any(|line| {
            line.strip_prefix("plaudit_request_bytes ").is_some_and(|held| held.parse::<f64>().unwrap() > 4e6)
        })
    });
    let small = json!({ "recipe": "length", "rollouts": [{ "response": "a" }] });
    assert_eq!(service.post("/v1/score", &small).status, 200);
}

#[test]
fn texts_of_abandoned_joins_are_limited() {
    let (_folder, service) = served("serve-texts", "limits: { rollout_bytes: 16777216 }\n");
    let before = service.memory();
    let join = |run: &str, member: usize| {
        let body = json!({ "recipe": "comparing", "run": run, "group": "g", "size": 60_000, "member": member.to_string(),
            "rollout": { "response": "x".repeat(1 << 20) } });
        let (mut refused, held) = (false, service.metric("plaudit_rollout_bytes"));
        let mut stream = service.connect();
        stream.write_all(request("POST", "/v1/join", &body.to_string(), &[], None).as_bytes()).unwrap();
        // Whoever is let in waits for its group, and goes away.
        stream.set_nonblocking(true).unwrap();
        until("it is let in or refused", || {
            refused = stream.peek(&mut [0]).is_ok_and(|read| read > 0);
            refused || service.metric("plaudit_rollout_bytes") > held
        });
        stream.set_nonblocking(false).unwrap();
        refused.then(|| super::http::read(&mut stream).unwrap().code())
    };
    let told: Vec<Option<String>> = (0..40).map(|member| join("greedy", member)).collect();
    let waiting = told.iter().filter(|told| told.is_none()).count();
    assert!((8..=12).contains(&waiting), "three quarters of sixteen: {told:?}");
    assert!(told.iter().flatten().all(|code| code == "engine.overloaded"), "{told:?}");
    assert_eq!(join("other", 0), None, "there is room for whoever is new");
    // The same for what is scored at once: a prompt that many responses share is counted for each of them.
    let many = json!({ "recipe": "length", "run": "third",
        "rollouts": [{ "prompt": "p".repeat(1 << 20), "responses": vec!["a"; 100] }] });
    assert_eq!(service.post("/v1/score", &many).code(), "http.too_many");
    let few = json!({ "recipe": "length", "run": "third", "rollouts": [{ "prompt": "p", "responses": vec!["a"; 100] }] });
    assert_eq!(service.post("/v1/score", &few).status, 200);
    assert!(service.memory() < before + (128 << 20), "{} bytes more", service.memory() - before);
}

#[test]
fn who_is_refused_takes_nothing_from_others() {
    let folder = Folder::new("serve-refused");
    let comparing = folder.file("comparing.yaml", COMPARING);
    let file = folder.path("tokens.json");
    let token = |name: &str, more: &[&str]| {
        let made = crate::support::run(&[&["token", "create", name, "--file", &file], more].concat());
        made.out.trim().to_owned()
    };
    let (small, other) = (token("small", &["--waiting", "4"]), token("other", &[]));
    let mut service = Service::start(&folder, &["--recipe", &comparing, "--token-file", &file]);
    let bearer = format!("Bearer {other}");
    let sample = |response: &str| {
        json!({ "prompt": "q", "response": response, "label": { "correct": true } }).to_string()
    };
    let ask = |response: &str| {
        request(
            "POST",
            "/slime/comparing/victim?size=2",
            &sample(response),
            &[("authorization", &bearer)],
            None,
        )
    };
    let mut first = service.connect();
    first.write_all(ask("one").as_bytes()).unwrap();
    // More prompts than are ever gathered at once, of which a few may come in.
    service.token = Some(small);
    for turn in 0..12 {
        let prompts: Vec<String> = (0..2000).map(|at| format!("{turn} {at}")).collect();
        let body = json!({ "query": prompts, "prompts": prompts, "labels": vec![""; 2000] });
        assert_eq!(service.post("/openrlhf/comparing/many?size=2", &body).status, 429);
    }
    let mut second = service.connect();
    second.write_all(ask("two two").as_bytes()).unwrap();
    for stream in [&mut first, &mut second] {
        let answer = super::http::read(stream).expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

/// Endless programs keep neither rules nor the programs of others waiting.
#[test]
fn endless_programs_of_one_run_starve_no_other() {
    let folder = Folder::new("serve-programs");
    let recipe = "name: programs\ncomponents:\n  tests: { reward: code, timeout: 2, most_timeouts: 50 }\n";
    let (length, programs) = (folder.file("length.yaml", LENGTH), folder.file("programs.yaml", recipe));
    let service = Service::start(&folder, &["--recipe", &length, "--recipe", &programs]);
    let fenced = |code: &str| format!("```python\n{code}\n```");
    let tests: Vec<Value> =
        (0..50).map(|at| json!({"input": at.to_string(), "output": at.to_string()})).collect();
    let rollout = |group: String, code: &str| json!({"group": group, "response": fenced(code), "extra": {"tests": tests}});
    let endless: Vec<Value> =
        (0..32).map(|at| rollout(format!("e{at}"), &format!("while True: pass  # {at}"))).collect();
    // 32 x 50 x 2 s of work, which nobody waits for.
    let job = service.post("/v1/jobs", &json!({"recipe": "programs", "run": "endless", "rollouts": endless}));
    assert_eq!(job.status, 202, "{job:?}");
    let modest = json!({"recipe": "programs", "run": "modest", "rollouts": [rollout("m".to_owned(), "print(input())")]});
    let scored = service.post("/v1/score", &modest).json();
    assert_eq!(scored["results"][0]["total"], 1.0, "{scored}");
    let rules = service.post("/v1/score", &json!({"recipe": "length", "rollouts": [{"response": "abc"}]}));
    assert_eq!(rules.status, 200);
    assert_eq!(service.get("/healthz").status, 200);
}

/// Small tests that are large when they are read: never all of a request at once, and given back. Each rollout is a group of its own, so
/// that the queue goes round all of them.
#[test]
fn compressed_tests_are_given_back() {
    if !installed("python3") {
        return;
    }
    let script = "import base64, json, pickle, zlib\nfor at in range(16):\n    \
        tests = [{'input': str(at), 'output': str(at) + ' ' * (20 << 20), 'testtype': 'stdin'}] * 2\n    \
        print(base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)), 9)).decode())";
    let packed = std::process::Command::new("python3").args(["-c", script]).output().unwrap();
    let packed = String::from_utf8(packed.stdout).unwrap();
    let folder = Folder::new("serve-packed");
    let recipe = folder.file("tests.yaml", "name: tests\ncomponents:\n  tests: { reward: code }\n");
    let service = Service::start(&folder, &["--recipe", &recipe]);
    let score = |round: usize, count: usize| {
        let rollout = |(at, packed): (usize, &str)| json!({"prompt": at.to_string(), "response": format!("```python\nprint({at})  # {round}\n```"), "private_test_cases": packed});
        let rollouts: Vec<Value> = packed.lines().take(count).enumerate().map(rollout).collect();
        let answer = service.send(
            "POST",
            "/v1/score",
            &json!({"recipe": "tests", "rollouts": rollouts}).to_string(),
            &[],
        );
        assert_eq!(answer.text().matches("\"total\":1.0").count(), count, "{}", answer.text());
    };
    // 640 MB of tests, of which 256 MB are open at once.
    let most = std::thread::scope(|threads| {
        let scored = threads.spawn(|| score(0, 16));
        let mut most = 0;
        while !scored.is_finished() {
            most = most.max(service.memory());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        most
    });
    assert!(most < 512 << 20, "{} MB", most >> 20);
    until("the memory of the tests is given back", || service.memory() < most / 2);
    std::thread::sleep(std::time::Duration::from_secs(1));
    let first = service.memory();
    for round in 1..4 {
        score(round, 4);
    }
    // A half more, or one row of tests.
    let most = (first * 3 / 2).max(first + (64 << 20));
    until("the memory of the tests is given back again", || service.memory() < most);
}
