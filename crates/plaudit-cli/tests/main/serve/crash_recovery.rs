//! Failures around the service: files that are damaged, removed or replaced, a full disk, a second service on the same folder, and
//! a shutdown while many wait.

use super::http::{Service, read, request, until};
use crate::crash::TestRng;
use crate::support::{COMPARING, Folder, LENGTH, run};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

fn start(folder: &Folder, more: &[&str]) -> Service {
    let (length, comparing) = (folder.file("length.yaml", LENGTH), folder.file("comparing.yaml", COMPARING));
    let mut arguments = vec!["--recipe", &*length, "--recipe", &*comparing];
    arguments.extend(more);
    Service::start(folder, &arguments)
}

fn score(service: &Service, step: u64) -> Value {
    let rollouts: Vec<Value> = (0..4).map(|at| json!({ "response": "x".repeat(at), "group": "g" })).collect();
    let answer = service.post(
        "/v1/score",
        &json!({ "recipe": "length", "run": "training", "step": step, "rollouts": rollouts }),
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[test]
fn shutdown_answers_whoever_waits_for_a_group() {
    let folder = Folder::new("serve-drain-join");
    let mut service = start(&folder, &[]);
    let ask = |path: &str, body: &Value| {
        let mut stream = service.connect();
        stream.write_all(request("POST", path, &body.to_string(), &[], None).as_bytes()).unwrap();
        stream
    };
    let join = |step: Value| {
        json!({ "recipe": "comparing", "step": step, "group": "g", "size": 2,
            "rollout": { "response": "a", "extra": { "correct": true } } })
    };
    let mut waiting = vec![
        ask("/v1/join", &join(json!(1))),
        ask("/v1/join", &join(json!(2))),
        ask("/v1/join", &join(Value::Null)),
        ask(
            "/slime/comparing?size=2",
            &json!({ "prompt": "q", "response": "a", "label": { "correct": true } }),
        ),
    ];
    until("all wait", || service.metric("plaudit_rollouts_joining") == 4.0);
    service.signal("-TERM");
    for stream in &mut waiting {
        let answer = read(stream).expect("an answer");
        assert_eq!((answer.status, answer.code()), (503, "service.draining".to_owned()), "{}", answer.text());
        assert_eq!(answer.header("retry-after"), Some("5"));
    }
    // Where it has to wait for somebody in the end, the code is another one.
    assert_eq!(service.wait(), 0);
}

#[test]
fn a_folder_belongs_to_one_service() {
    let folder = Folder::new("serve-twice");
    let service = start(&folder, &[]);
    let state = folder.path("state");
    let other =
        run(&["serve", "--bind", "127.0.0.1:0", "--state", &state, "--recipe", &folder.path("length.yaml")]);
    assert!(other.code != 0 && other.talk.contains(&service.pid().to_string()), "{}", other.talk);
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// What a run or a job that no damage has hit says, whenever it is asked.
fn facts(service: &Service, path: &str) -> Value {
    let answer = service.get(path);
    match path.ends_with("/results") {
        true => json!(answer.text()),
        false => {
            let run = answer.json();
            json!([run["steps"], run["rollouts"], run["total_mean"]])
        }
    }
}

#[test]
fn damage_costs_the_run_or_job_that_it_hits() {
    let folder = Folder::new("serve-damage");
    let state = PathBuf::from(folder.path("state"));
    let mut random = TestRng(7);
    let mut next = move |below: usize| random.below(below.max(1) as u64) as usize;
    // By folder: where to ask, and what was said before.
    let mut whole: BTreeMap<PathBuf, (String, Value)> = BTreeMap::new();
    let (mut hit, mut spared) = (0, 0);
    for turn in 0..8 {
        let mut service = start(&folder, &[]);
        for (path, before) in whole.values() {
            assert_eq!(facts(&service, path), *before, "{path}");
            spared += 1;
        }
        // Whatever lies there, what is asked is answered, and with JSON.
        for path in ["/v1/runs", "/v1/jobs", "/v1/status"] {
            assert_eq!(service.get(path).status, 200);
            service.get(path).json();
        }
        let rollouts: Vec<Value> = (0..4).map(|at| json!({ "response": "x".repeat(at) })).collect();
        let body =
            |step| json!({ "recipe": "length", "run": turn.to_string(), "step": step, "rollouts": rollouts });
        let run = service.post("/v1/score", &body(0)).json()["run"].as_str().unwrap().to_owned();
        service.post("/v1/score", &body(1));
        let job = json!({ "recipe": "length", "rollouts": [{ "response": "a" }] });
        let job = service.post("/v1/jobs", &job).json()["job"].as_str().unwrap().to_owned();
        for path in ["", "/steps", "/groups", "/groups/0", "/groups/1"] {
            service.get(&format!("/v1/runs/{run}{path}")).json();
        }
        let open = state.join("runs").join(&run).join("open.json");
        until("both steps are written", || {
            std::fs::read_to_string(&open).is_ok_and(|text| text.contains("\"step\":1"))
        });
        until("the job is done", || service.get(&format!("/v1/jobs/{job}")).json()["state"] == "done");
        for (part, name, path) in
            [("runs", &run, format!("/v1/runs/{run}")), ("jobs", &job, format!("/v1/jobs/{job}/results"))]
        {
            let said = facts(&service, &path);
            whole.insert(state.join(part).join(name), (path, said));
        }
        service.signal("-KILL");
        service.wait();
        for part in ["runs", "jobs"] {
            for place in std::fs::read_dir(state.join(part)).unwrap().map(|entry| entry.unwrap().path()) {
                if next(2) == 0 {
                    continue;
                }
                hit += usize::from(whole.remove(&place).is_some());
                for file in files(&place) {
                    let mut bytes = std::fs::read(&file).unwrap();
                    match next(4) {
                        0 => bytes.truncate(next(bytes.len())),
                        1 => bytes.extend_from_slice(b"{\"step\":9,\xff\0garbage"),
                        2 if !bytes.is_empty() => {
                            let at = next(bytes.len());
                            bytes[at] = next(256) as u8;
                        }
                        _ => continue,
                    }
                    std::fs::write(&file, bytes).unwrap();
                }
            }
        }
    }
    assert!(hit > 0 && spared > 0, "{hit} were hit, and {spared} times one was spared");
    assert!(!folder.read("log").contains("panicked"), "{}", folder.read("log"));
}

/// What `plaudit report` says of all runs.
fn run_report(folder: &Folder) -> String {
    let ran = run(&["report", "--state", &folder.path("state")]);
    assert_eq!(ran.code, 0, "{}", ran.talk);
    ran.out
}

#[test]
fn steps_that_were_open_when_it_was_killed_are_counted_once() {
    let folder = Folder::new("serve-killed");
    let mut service = start(&folder, &[]);
    let run = score(&service, 1)["run"].as_str().unwrap().to_owned();
    let open = PathBuf::from(folder.path("state")).join("runs").join(&run).join("open.json");
    until("it is written", || std::fs::read_to_string(&open).is_ok_and(|text| text.contains("\"step\":1")));
    service.signal("-KILL");
    service.wait();
    let service = start(&folder, &[]);
    // They are counted before anything comes for the run.
    let about = service.get(&format!("/v1/runs/{run}")).json();
    assert_eq!((about["steps"].as_u64(), about["rollouts"].as_u64()), (Some(1), Some(4)), "{about}");
    assert_eq!((&about["live"], about["groups"].as_u64()), (&json!(false), Some(1)), "{about}");
    assert!(about["total_mean"].is_f64() && about["invalid_share"] == 0.0, "{about}");
    let report = run_report(&folder);
    assert!(report.contains("4 rollouts"), "{report}");
    score(&service, 2);
    let about = service.get(&format!("/v1/runs/{run}")).json();
    assert_eq!((about["steps"].as_u64(), about["rollouts"].as_u64()), (Some(2), Some(8)), "{about}");
    let steps = service.get(&format!("/v1/runs/{run}/steps")).json();
    assert_eq!(steps["steps"].as_array().unwrap().len(), 2);
}

/// Waits until the service has looked at its files again, which it does together with writing open steps. What it wrote in the
/// second round it wrote after it had looked.
fn looked_again(folder: &Folder, service: &Service) {
    for step in 1..=2 {
        let run = score(service, step)["run"].as_str().unwrap().to_owned();
        let open = PathBuf::from(folder.path("state")).join("runs").join(&run).join("open.json");
        let written = format!("\"step\":{step}");
        until("the step is written", || {
            std::fs::read_to_string(&open).is_ok_and(|text| text.contains(&written))
        });
    }
}

#[test]
fn tokens_survive_a_damaged_or_removed_file() {
    let folder = Folder::new("serve-token-file");
    let file = folder.path("tokens.json");
    let token = run(&["token", "create", "trainer", "--file", &file]).out.trim().to_owned();
    let mut service = start(&folder, &["--token-file", &file]);
    service.token = Some(token);
    let whole = folder.read("tokens.json");
    let said = || folder.read("log").matches("tokens cannot be read").count();
    folder.file("tokens.json", "{\"tokens\": [garbage");
    until("it is said", || said() == 1);
    assert_eq!(service.get("/v1/runs").status, 200);
    // The service works, so it is ready; what is wrong stands beside it, without where the file lies.
    let warned = || {
        let ready = service.get("/readyz");
        assert_eq!(ready.status, 200, "{}", ready.text());
        assert!(!ready.text().contains("tokens.json"), "{}", ready.text());
        ready.json()["warnings"][0]["code"] == "service.tokens"
    };
    assert!(warned());
    std::fs::remove_file(&file).unwrap();
    looked_again(&folder, &service);
    assert_eq!((service.get("/v1/runs").status, said(), warned()), (200, 1, true));
    folder.file("tokens.json", whole);
    until("all is well again", || !warned());
    folder.file("tokens.json", "{}");
    until("nobody is let in", || service.get("/v1/runs").status == 401);
}

#[test]
fn a_state_folder_that_is_removed_is_made_anew() {
    let folder = Folder::new("serve-removed");
    let service = start(&folder, &[]);
    let run = score(&service, 1)["run"].as_str().unwrap().to_owned();
    until("it is gone, though step 1 may be written just now", || {
        std::fs::remove_dir_all(folder.path("state")).is_ok()
    });
    score(&service, 2);
    let steps = PathBuf::from(folder.path("state")).join("runs").join(&run).join("run.json");
    until("it is written again", || steps.exists());
    let job = service.post("/v1/jobs", &json!({ "recipe": "length", "rollouts": [{ "response": "a" }] }));
    assert_eq!(job.status, 202, "{}", job.text());
    assert_eq!(service.get(&format!("/v1/runs/{run}/steps")).json()["steps"].as_array().unwrap().len(), 2);
}

#[test]
fn concurrent_equal_jobs_are_one_and_cancel_is_final() {
    let folder = Folder::new("serve-races");
    let service = start(&folder, &[]);
    let rollouts: Vec<Value> = (0..2000).map(|at| json!({ "response": "x".repeat(at % 50) })).collect();
    let body = json!({ "recipe": "length", "rollouts": rollouts }).to_string();
    let jobs: Vec<String> = std::thread::scope(|scope| {
        let send = || service.send("POST", "/v1/jobs", &body, &[("idempotency-key", "k")]);
        let sent: Vec<_> = (0..8).map(|_| scope.spawn(send)).collect();
        sent.into_iter().map(|sent| sent.join().unwrap().json()["job"].as_str().unwrap().to_owned()).collect()
    });
    assert!(jobs.iter().all(|job| *job == jobs[0]), "{jobs:?}");
    let folders = || std::fs::read_dir(PathBuf::from(folder.path("state")).join("jobs")).unwrap().count();
    until("the others are gone", || folders() == 1);
    for turn in 0..30 {
        let made = service
            .post("/v1/jobs", &json!({ "recipe": "length", "run": turn.to_string(), "rollouts": rollouts }));
        let path = format!("/v1/jobs/{}", made.json()["job"].as_str().unwrap());
        let deleted: Vec<u16> = std::thread::scope(|scope| {
            let delete = || service.send("DELETE", &path, "", &[]).status;
            let sent: Vec<_> = (0..2).map(|_| scope.spawn(delete)).collect();
            sent.into_iter().map(|sent| sent.join().unwrap()).collect()
        });
        assert!(deleted.iter().all(|status| [200, 404].contains(status)), "{deleted:?}");
        let state = service.get(&path);
        assert!(state.status == 404 || state.json()["state"] != "running", "{}", state.text());
    }
    until("nothing runs", || service.get("/v1/status").json()["jobs"]["running"] == 0);
    let refused = service.post("/v1/jobs", &json!({ "recipe": "length", "run": "a\nb", "rollouts": [] }));
    assert_eq!(refused.code(), "run.name");
}

#[test]
fn nobody_reads_the_log_and_nobody_waits_for_it() {
    let folder = Folder::new("serve-log");
    let judge = "name: judged\ncomponents:\n  half: { reward: judge, mode: pointwise, prompt: \"{{ response }}\", answer: { json: score, min: 0, max: 1 } }\njudges: { main: { base_url: \"http://127.0.0.1:9/v1\", model: m, attempts: 1, patience: 100ms } }\n";
    let recipe = folder.file("judged.yaml", judge);
    let state = folder.path("state");
    let mut serve =
        crate::support::command(&["serve", "--bind", "127.0.0.1:0", "--state", &state, "--recipe", &recipe]);
    serve.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = serve.spawn().unwrap();
    // It is a pipe that is held open and never read.
    let unread = child.stderr.take();
    let mut service = Service::of(child);
    // Each is refused by an error that is said in the log, and the pipe holds 64 kB.
    for at in 0..600 {
        let body = json!({ "prompt": at.to_string(), "response": "a" });
        assert_eq!(service.post("/slime/judged", &body).status, 502);
    }
    assert_eq!(service.get("/healthz").status, 200);
    service.signal("-TERM");
    assert_eq!(service.wait(), 0);
    drop(unread);
}

/// A file system of 1400 kB, where the system lets one have it.
const FULL: &str = r#"mount -t tmpfs -o size=1400k tmpfs "$1" && exec "$2" serve --bind 127.0.0.1:0 --state "$1/state" --recipe "$3" --recipe "$4""#;

#[test]
fn full_disk_refuses_jobs_until_there_is_room() {
    let folder = Folder::new("serve-full");
    let (length, disk) = (folder.file("length.yaml", LENGTH), folder.path("disk"));
    let judged = "name: judged\ncomponents:\n  half: { reward: judge, mode: pointwise, prompt: \"{{ response }}\", answer: { json: score, min: 0, max: 1 } }\njudges: { main: { base_url: \"http://127.0.0.1:9/v1\", model: m, attempts: 1, patience: 100ms } }\n";
    let judged = folder.file("judged.yaml", judged);
    std::fs::create_dir_all(&disk).unwrap();
    let may = std::process::Command::new("unshare").args(["-rm", "true"]).output();
    if !may.is_ok_and(|may| may.status.success()) {
        return;
    }
    let errors = std::fs::File::create(folder.path("log")).unwrap();
    let mut serve = std::process::Command::new("unshare");
    serve.args(["-rm", "sh", "-c", FULL, "sh", &disk, env!("CARGO_BIN_EXE_plaudit"), &length, &judged]);
    let service = Service::of(serve.stdout(std::process::Stdio::piped()).stderr(errors).spawn().unwrap());
    // What others see of that file system.
    let inside = PathBuf::from(format!("/proc/{}/root{disk}", service.pid()));
    score(&service, 1);
    let mut filler = std::fs::File::create(inside.join("filler")).unwrap();
    while filler.write_all(&[0; 1024]).is_ok() {}
    drop(filler);
    let other = json!({ "recipe": "length", "run": "other", "step": 1, "rollouts": [{ "response": "a" }] });
    let answer = service.post("/v1/score", &other);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let run = answer.json()["run"].as_str().unwrap().to_owned();
    let job = json!({ "recipe": "length", "rollouts": [{ "response": "a" }] });
    let refused = service.post("/v1/jobs", &job);
    assert_eq!((refused.status, refused.code()), (503, "service.disk".to_owned()), "{}", refused.text());
    assert_eq!(refused.header("retry-after"), Some("30"));
    // No judge is asked, and where the journal lies is nobody else's affair.
    let asked =
        service.post("/v1/score", &json!({ "recipe": "judged", "rollouts": [{ "response": "a" }] })).text();
    assert!(asked.contains("engine.journal_full") && !asked.contains("disk/state"), "{asked}");
    until("it is said", || folder.read("log").contains("a run could not be written"));
    std::fs::remove_file(inside.join("filler")).unwrap();
    assert_eq!(service.post("/v1/jobs", &job).status, 202);
    // What could not be written is written, though nothing comes for that run any more.
    until("the run is written", || inside.join("state/runs").join(&run).join("run.json").exists());
}

#[test]
fn a_file_that_may_grow_no_more_does_not_end_it() {
    let folder = Folder::new("serve-limit-of-files");
    let (length, state) = (folder.file("length.yaml", LENGTH), folder.path("state"));
    let errors = std::fs::File::create(folder.path("log")).unwrap();
    let mut serve = std::process::Command::new("sh");
    let script = r#"ulimit -f 8; exec "$1" serve --bind 127.0.0.1:0 --state "$2" --recipe "$3""#;
    serve.args(["-c", script, "sh", env!("CARGO_BIN_EXE_plaudit"), &state, &length]);
    let service = Service::of(serve.stdout(std::process::Stdio::piped()).stderr(errors).spawn().unwrap());
    for at in 0..10 {
        let rollout = json!({ "response": "x".repeat(3000), "group": at.to_string() });
        let body = json!({ "recipe": "length", "step": at, "rollouts": [rollout] });
        assert_eq!(service.post("/v1/score", &body).status, 200);
    }
    until("it is said", || folder.read("log").contains("could not be written"));
    assert_eq!(service.get("/healthz").status, 200);
}

#[test]
fn judge_errors_are_logged_and_addresses_stay_private() {
    let folder = Folder::new("serve-no-judge");
    let judge = "name: judged\ncomponents:\n  half: { reward: judge, mode: pointwise, prompt: \"{{ response }}\", answer: { json: score, min: 0, max: 1 } }\njudges: { main: { base_url: \"http://127.0.0.1:9/v1\", model: m, attempts: 1, patience: 100ms } }\n";
    let recipe = folder.file("judged.yaml", judge);
    let service = Service::start(&folder, &["--recipe", &recipe]);
    let rollouts: Vec<Value> = (0..40).map(|at| json!({ "response": format!("{at}") })).collect();
    let mut said = String::new();
    until("its breaker is open", || {
        said = service.post("/v1/score", &json!({ "rollouts": rollouts })).text();
        said.contains("judge.breaker_open")
    });
    assert!(said.contains("The last time") && said.contains("judge.connect"), "{said}");
    assert!(!said.contains("127.0.0.1:9"), "{said}");
    until("it is in the log", || folder.read("log").contains("\"code\":\"judge.breaker_open\""));
    let log = folder.read("log");
    assert!(log.contains("\"code\":\"judge.connect\"") && log.contains("http://127.0.0.1:9/v1"), "{log}");
    let lines = log.lines().filter(|line| line.contains("a judge gives no judgment")).count();
    assert!(lines < 10, "once a minute for each kind of failure: {lines}");
}
