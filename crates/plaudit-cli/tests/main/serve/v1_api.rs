//! The native API: results as the engine has them, groups that are joined, and runs that can be looked at.

use super::http::{Service, until};
use crate::support::{COMPARING, Folder, LENGTH};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};

fn served(name: &str) -> (Folder, Service) {
    let folder = Folder::new(name);
    let (length, comparing) = (folder.file("length.yaml", LENGTH), folder.file("comparing.yaml", COMPARING));
    let service = Service::start(&folder, &["--recipe", &length, "--recipe", &comparing]);
    (folder, service)
}

#[test]
fn the_log_begins_with_what_is_served() {
    let folder = Folder::new("serve-ready");
    let recipe = folder.file("length.yaml", LENGTH);
    let service = Service::start(&folder, &["--recipe", &recipe, "--recipe", "tutorial"]);
    until("it is ready", || folder.read("log").contains("\"ready\""));
    let log = folder.read("log");
    let line: Value = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .find(|line: &Value| line["event"] == "ready")
        .unwrap();
    assert_eq!(line["dashboard"], format!("http://{}", service.address));
    assert!(line["recipes"].as_str().unwrap().contains("tutorial"), "{line}");
    assert_eq!(line["judges"], "main=qwen3-32b");
    assert_eq!(line["state"], folder.path("state"));
}

#[test]
fn score_agrees_with_the_command_and_names_bad_lines() {
    let (folder, service) = served("serve-score");
    let lines = crate::support::rollouts(6, 4);
    let rollouts: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let file = folder.file("rollouts.jsonl", lines.join("\n"));
    for recipe in ["length", "comparing"] {
        let mut sent = rollouts.clone();
        sent.insert(3, json!({ "response": 7 }));
        let answer =
            service.post("/v1/score", &json!({ "recipe": recipe, "rollouts": sent, "statistics": true }));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let answer = answer.json();
        let path = folder.path(&format!("{recipe}.yaml"));
        let ran = crate::support::run(&["score", &file, "--recipe", &path, "--quiet"]);
        let wanted: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(answer["results"], json!(wanted), "{recipe}");
        assert_eq!(answer["errors"][0]["index"], 3);
        assert_eq!(answer["statistics"]["rollouts"], 24);
    }
    let code = |body: Value| service.post("/v1/score", &body).code();
    assert_eq!(code(json!({ "recipe": "lenght", "rollouts": [] })), "recipe.unknown");
    assert_eq!(code(json!({ "rollouts": [] })), "recipe.missing");
    assert_eq!(code(json!({ "recipe": "length", "run": "a\nb", "rollouts": [] })), "run.name");
    assert_eq!(code(json!({ "recipe": "length", "judges": {}, "rollouts": [] })), "http.json");
}

#[test]
fn names_and_references_may_be_numbers() {
    let (_folder, service) = served("serve-numbers");
    let rollouts = json!([
        { "id": 7, "group": 1, "response": "a", "reference": 42, "tokens": 3.0 },
        { "id": "8", "group": "1", "response": "b", "reference": 0.5 },
        { "id": "", "response": "c" },
        { "id": 1.5, "response": "d" },
        { "response": "e", "reference": [42] },
        ["9", "1", "q", "a positional rollout"],
        { "question": "q", "completion": "f" },
    ]);
    let answer = service.post("/v1/score", &json!({ "recipe": "length", "rollouts": rollouts })).json();
    let of = |at: usize| (answer["results"][at]["id"].as_str(), answer["results"][at]["group"].as_str());
    assert_eq!((of(0), of(1)), ((Some("7"), Some("1")), (Some("8"), Some("1"))), "{answer}");
    let errors = answer["errors"].as_array().unwrap();
    let codes: Vec<&str> = errors.iter().map(|error| error["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["input.id", "input.id", "input.schema", "input.response"]);
    let message = errors[3]["message"].as_str().unwrap();
    assert!(message.ends_with("the fields are \"completion\", \"question\""), "{message}");
    let sent = |group: Value, member: Value| {
        let rollout = json!({ "response": "a", "reference": 42 });
        let body =
            json!({ "recipe": "length", "group": group, "size": 1, "member": member, "rollout": rollout });
        service.post("/v1/join", &body)
    };
    let answer = sent(json!(12), json!(3)).json();
    let result = &answer["result"];
    assert_eq!((result["id"].as_str(), result["group"].as_str()), (Some("3"), Some("12")), "{answer}");
    let refused = sent(json!(1.5), json!(3));
    assert!(
        refused.code() == "http.json" && refused.text().contains("text or a whole number"),
        "{}",
        refused.text()
    );
    // The description says the same.
    let described = service.get("/openapi.json").json();
    let schemas = &described["components"]["schemas"];
    for (field, number) in [("id", "integer"), ("group", "integer"), ("reference", "number")] {
        let shape = schemas["RolloutLine"]["properties"][field].to_string();
        for wanted in ["string", number] {
            assert!(shape.contains(&format!("\"type\":\"{wanted}\"")), "{field}: {shape}");
        }
    }
}

#[test]
fn the_members_of_a_group_meet_whoever_sends_them() {
    let (_folder, service) = served("serve-join");
    let sent = |member: usize, text: &str| {
        json!({
            "recipe": "comparing", "run": "joined", "step": 1, "group": "g", "size": 3, "member": member.to_string(),
            "rollout": { "prompt": "q", "response": text, "extra": { "correct": true } },
        })
    };
    let texts = ["a", "a few more words", "a few more words than that"];
    let answers: Vec<Value> = std::thread::scope(|scope| {
        let ask = |(at, text)| {
            let (service, sent) = (&service, &sent);
            scope.spawn(move || service.post("/v1/join", &sent(at, text)).json())
        };
        let asked: Vec<_> = texts.into_iter().enumerate().map(ask).collect();
        asked.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let rollouts: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(at, text)| {
            json!({ "id": at.to_string(), "group": "g", "prompt": "q", "response": text, "extra": { "correct": true } })
        })
        .collect();
    let wanted = service.post("/v1/score", &json!({ "recipe": "comparing", "rollouts": rollouts })).json();
    for (at, answer) in answers.iter().enumerate() {
        assert_eq!(answer["result"], wanted["results"][at]);
        assert_eq!((answer["group_size"].as_u64(), answer["partial"].as_bool()), (Some(3), Some(false)));
    }
    // One that is sent again after its answer was lost gets it again.
    let again = service.post("/v1/join", &sent(1, texts[1])).json();
    assert_eq!((again["duplicate"].as_bool(), &again["result"]), (Some(true), &answers[1]["result"]));
    // A group that is not complete in time is scored as it is.
    let mut lonely = sent(0, "alone");
    (lonely["group"], lonely["timeout"]) = (json!("h"), json!(0.2));
    let lonely = service.post("/v1/join", &lonely).json();
    assert_eq!((lonely["partial"].as_bool(), lonely["group_size"].as_u64()), (Some(true), Some(1)));
    let code = |change: (&str, Value)| {
        let mut body = sent(0, "x");
        body[change.0] = change.1;
        service.post("/v1/join", &body).code()
    };
    assert_eq!(code(("size", json!(0))), "input.group_size");
    assert_eq!(code(("group", json!(""))), "input.group");
    assert_eq!(code(("timeout", json!(-1))), "input.timeout");
}

#[test]
fn runs_survive_a_restart_with_steps_and_groups() {
    let (folder, mut service) = served("serve-runs");
    let score = |service: &Service, step: u64, word: &str| {
        let rollouts: Vec<Value> = (0..8)
            .map(|at| json!({ "group": format!("g{}", at / 4), "prompt": "q", "response": word.repeat(1 + at) }))
            .collect();
        let body = json!({ "recipe": "length", "run": "training", "step": step, "rollouts": rollouts });
        service.post("/v1/score", &body).json()["run"].as_str().unwrap().to_owned()
    };
    let run = score(&service, 1, "one ");
    assert_eq!(score(&service, 2, "two "), run);
    let about = service.get(&format!("/v1/runs/{run}")).json();
    assert_eq!((about["name"].as_str(), about["recipe"].as_str()), (Some("training"), Some("length")));
    assert_eq!((about["rollouts"].as_u64(), about["live"].as_bool()), (Some(16), Some(true)));
    let steps = service.get(&format!("/v1/runs/{run}/steps")).json();
    assert_eq!(steps["steps"].as_array().unwrap().len(), 2);
    assert_eq!(steps["steps"][1]["statistics"]["groups"]["count"], 2);
    let after = service.get(&format!("/v1/runs/{run}/steps?after=1")).json();
    assert_eq!(after["steps"].as_array().unwrap().len(), 1);
    let groups = service.get(&format!("/v1/runs/{run}/groups?step=2")).json();
    assert_eq!(groups["groups"].as_array().unwrap().len(), 2);
    let id = groups["groups"][0]["id"].as_str().unwrap();
    let group = service.get(&format!("/v1/runs/{run}/groups/{id}")).json();
    assert_eq!(group["rollouts"][1]["response"], "two two ");
    assert_eq!(group["rollouts"][1]["result"]["components"]["length"]["outcome"], "scored");

    // Killed, it has lost nothing but what came in its last second.
    until("the run is on the disk", || {
        folder.read(&format!("state/runs/{run}/open.json")).lines().count() == 2
    });
    service.signal("-KILL");
    service.wait();
    // Steps that have not ended count in what is told of the run.
    let state = folder.path("state");
    for told in [&["report", "--state", &state][..], &["report", "training", "--state", &state]] {
        let told = crate::support::run(told).out;
        assert!(told.contains("2 steps, "), "{told}");
    }
    // It may be killed when groups are written and it is not yet written how many.
    let mut about: Value = serde_json::from_str(&folder.read(&format!("state/runs/{run}/run.json"))).unwrap();
    about["next_group"] = json!(0);
    folder.file(&format!("state/runs/{run}/run.json"), about.to_string());
    let length = folder.path("length.yaml");
    let service = Service::start(&folder, &["--recipe", &length]);
    let runs = service.get("/v1/runs").json();
    assert_eq!(
        (runs["runs"][0]["id"].as_str(), runs["runs"][0]["live"].as_bool()),
        (Some(&*run), Some(false))
    );
    let steps = service.get(&format!("/v1/runs/{run}/steps")).json();
    assert_eq!(steps["steps"].as_array().unwrap().len(), 2);
    assert_eq!(score(&service, 3, "three "), run, "the run goes on");
    let steps = service.get(&format!("/v1/runs/{run}/steps")).json();
    let numbers: Vec<u64> =
        steps["steps"].as_array().unwrap().iter().map(|step| step["step"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let mut service = service;
    service.signal("-TERM");
    assert_eq!(service.wait(), 0);

    // What was kept can be told without the service.
    let told = crate::support::run(&["report", "training", "--state", &state]);
    assert!(
        told.code == 0 && told.out.contains("recipe length") && told.out.lines().count() >= 6,
        "{}",
        told.out
    );
    let page = folder.path("report.html");
    assert_eq!(crate::support::run(&["report", &run, "--state", &state, "--html", &page]).code, 0);
    let page = folder.read("report.html");
    assert!(page.contains("three three") && !page.contains("/static/") && page.contains("id=\"data\""));
    assert_eq!(crate::support::run(&["report", "nothing", "--state", &state]).code, 2);
}

#[test]
fn what_the_service_is_can_be_asked() {
    let (_folder, service) = served("serve-about");
    assert_eq!(service.get("/healthz").status, 200);
    assert_eq!(service.get("/readyz").status, 200);
    let recipes = service.get("/v1/recipes").json();
    assert_eq!(recipes["recipes"][0]["name"], "comparing");
    assert!(service.get("/v1/rewards").json()["rewards"].as_array().unwrap().len() > 20);
    assert_eq!(service.get("/v1/rewards/length_penalty").json()["name"], "length_penalty");
    assert_eq!(service.get("/v1/rewards/nothing").code(), "reward.unknown");
    let described = service.get("/openapi.json").json();
    assert!(described["paths"]["/v1/score"]["post"]["requestBody"].is_object());
    let page = service.get("/");
    assert!(page.text().contains("<!doctype html>"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"));
    assert_eq!(service.get("/static/app.js").header("content-type"), Some("text/javascript; charset=utf-8"));
    service.post(
        "/v1/score",
        &json!({ "recipe": "length", "rollouts": [{ "response": "a" }, { "response": "b" }] }),
    );
    let metrics = service.get("/metrics").text();
    assert!(metrics.contains("plaudit_rollouts_total{outcome=\"scored\",recipe=\"length\"} 2"), "{metrics}");
    assert!(metrics.contains("plaudit_requests_total{route=\"/v1/score\",status=\"200\"} 1"));
    let of_run = "{owner=\"local\",run=\"length\",recipe=\"length\"";
    for line in [
        format!("plaudit_run_rollouts{of_run}}} 2"),
        format!("plaudit_run_invalid_ratio{of_run}}} 0"),
        format!("plaudit_run_component_std{of_run},component=\"length\"}} 0"),
        format!("plaudit_run_alarm{of_run},code=\"invalid\"}} 0"),
    ] {
        assert!(metrics.contains(&line), "{line}\n{metrics}");
    }
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("plaudit_") && value.parse::<f64>().is_ok(), "{line}");
    }
    assert_eq!(service.get("/v1/nothing").code(), "http.not_found");
    assert_eq!(service.get("/v1/score").code(), "http.method");
    assert_eq!(service.get("/v1/score").header("allow"), Some("POST"));
    assert_eq!(service.send("PUT", "/v1/jobs/7", "", &[]).header("allow"), Some("GET, HEAD, DELETE"));
    for path in ["/v1/", "/v1/score/", "//", "/static/../x", "/static/%2", "/V1/score", "/slime/a%0Ab"] {
        assert_eq!(service.get(path).code(), "http.not_found", "{path}");
    }
    assert_eq!(service.get("/v1/runs/nothing").code(), "run.unknown");
}

const REFUSED: &str = r#"
name: refused
components:
  half: { reward: judge, mode: pointwise, prompt: "{{ response }}", answer: { json: score, min: 0, max: 1 } }
judges: { main: { base_url: "URL", model: m, attempts: 1, patience: 1s } }
"#;

#[test]
fn a_group_shows_why_its_judge_gave_no_verdict() {
    let folder = Folder::new("serve-why");
    // An endpoint that does not take what it is sent.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 65_536]);
            let head = "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            let _ = stream.write_all(head.as_bytes());
        }
    });
    let recipe = folder.file("refused.yaml", REFUSED.replace("URL", &url));
    let service = Service::start(&folder, &["--recipe", &recipe]);
    let answer = service.post("/v1/score", &json!({ "rollouts": [{ "response": "a" }] })).json();
    let why = answer["results"][0]["reason"]["code"].clone();
    assert_eq!(why, "judge.client_error", "{answer}");
    let run = answer["run"].as_str().unwrap();
    let group = service.get(&format!("/v1/runs/{run}/groups/0")).json();
    let verdict = &group["exchanges"][0]["verdict"];
    assert_eq!((&verdict["kind"], &verdict["code"]), (&json!("failed"), &why), "{group}");
    let message = &answer["results"][0]["components"]["half"]["reason"]["message"];
    assert_eq!(&verdict["message"], message, "{group}");
    until("it is in the log", || folder.read("log").contains("judge.client_error"));
    assert!(!folder.read("log").contains("judge.not_recorded"), "{}", folder.read("log"));
}

#[test]
fn run_without_a_valid_rollout_is_refused_with_the_reason() {
    let folder = Folder::new("serve-nothing-scored");
    let service = Service::start(&folder, &["--recipe", "math"]);
    let send = |run: &str, step: u64, rollout: Value, count: usize| {
        let rollouts = vec![rollout; count];
        service.post("/v1/score", &json!({ "run": run, "step": step, "rollouts": rollouts }))
    };
    let (misnamed, right) = (
        json!({ "response": "\\boxed{42}", "gold": "42" }),
        json!({ "response": "\\boxed{42}", "reference": "42" }),
    );
    assert_eq!(send("a", 1, misnamed.clone(), 8).status, 200, "a few rollouts show nothing");
    let refused = send("a", 1, misnamed.clone(), 32);
    assert_eq!(
        (refused.status, refused.code()),
        (422, "run.nothing_scored".to_owned()),
        "{}",
        refused.text()
    );
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("input.missing_reference") && message.contains("\"gold\""), "{message}");
    assert!(
        message.contains("Its field `gold` may be it; the rows have"),
        "in the words of the rows: {message}"
    );
    let alarms = service.get("/v1/runs").json()["runs"][0]["alarms"].clone();
    assert_eq!(alarms[0]["code"], "nothing_scored", "{alarms}");
    assert_eq!(send("a", 1, right, 8).status, 200, "it goes on as soon as something is scored");
    assert_eq!(send("a", 2, misnamed.clone(), 64).status, 200, "what has worked gets some patience");
    let config = folder.file("never.yaml", "recipes: [math]\nabort_after: never\n");
    let folder = Folder::new("serve-nothing-scored-never");
    let service = Service::start(&folder, &["--config", &config]);
    let body = json!({ "run": "a", "rollouts": vec![misnamed; 64] });
    assert_eq!(service.post("/v1/score", &body).status, 200);
}
