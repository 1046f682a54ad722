//! Fair shares between the holders of tokens: runs that nothing comes for give way, and connections are shared.

use super::http::{Answer, Service, read, request, until};
use super::security::token;
use crate::support::{COMPARING, Folder, LENGTH, run};
use serde_json::{Value, json};
use std::io::Write as _;

fn served(name: &str, config: &str, more: &[&str]) -> (Folder, Service) {
    let folder = Folder::new(name);
    let (length, comparing) = (folder.file("length.yaml", LENGTH), folder.file("comparing.yaml", COMPARING));
    let config = folder.file("serve.yaml", config);
    let mut arguments = vec!["--recipe", &*length, "--recipe", &*comparing, "--config", &*config];
    arguments.extend(more);
    let service = Service::start(&folder, &arguments);
    (folder, service)
}

fn score(service: &Service, run: &str, token: Option<&str>) -> Answer {
    let body = json!({ "recipe": "length", "run": run, "rollouts": [{ "response": "a" }] }).to_string();
    service.raw(request("POST", "/v1/score", &body, &[], token).as_bytes())
}

/// The names of the runs that are live.
fn live(service: &Service, token: Option<&str>) -> Vec<String> {
    let runs = service.raw(request("GET", "/v1/runs", "", &[], token).as_bytes()).json();
    let live = runs["runs"].as_array().unwrap().iter().filter(|run| run["live"] == true);
    let mut names: Vec<String> = live.map(|run| run["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn an_idle_run_gives_its_place_to_a_new_one() {
    let (_folder, service) = served("serve-runs-full", "limits: { runs: 2 }\n", &[]);
    let join = |run: &str, text: &str| {
        let body = json!({ "recipe": "comparing", "run": run, "group": "g", "size": 2,
            "rollout": { "response": text, "extra": { "correct": true } } });
        let mut stream = service.connect();
        stream.write_all(request("POST", "/v1/join", &body.to_string(), &[], None).as_bytes()).unwrap();
        stream
    };
    let mut first = join("busy", "a");
    until("it waits", || super::late_members::gauge(&service, "plaudit_rollouts_joining") == 1);
    for name in ["a", "b", "c", "a"] {
        let answer = score(&service, name, None);
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
    }
    assert_eq!(live(&service, None), ["a", "busy"]);
    // What was put away is all there.
    let runs = service.get("/v1/runs").json();
    let a = runs["runs"].as_array().unwrap().iter().find(|run| run["name"] == "a").unwrap().clone();
    assert_eq!(a["rollouts"], 2, "{a}");
    let _other = join("other", "a");
    until("both wait", || super::late_members::gauge(&service, "plaudit_rollouts_joining") == 2);
    let refused = score(&service, "d", None);
    assert_eq!((refused.status, refused.code()), (429, "run.too_many".to_owned()), "all have work");
    let mut second = join("busy", "a b");
    for stream in [&mut first, &mut second] {
        let told = read(stream).expect("an answer").json();
        assert_eq!(told["group_size"], 2, "{told}");
    }
}

#[test]
fn many_runs_of_one_token_put_nobody_elses_away() {
    let folder = Folder::new("serve-runs-fair");
    let (alice, bob) = (token(&folder, &["alice"]), token(&folder, &["bob"]));
    let (file, length) = (folder.path("tokens.json"), folder.file("length.yaml", LENGTH));
    let config = folder.file("serve.yaml", "limits: { runs: 4 }\n");
    let arguments = ["--recipe", &*length, "--config", &*config, "--token-file", &*file];
    let service = Service::start(&folder, &arguments);
    assert_eq!(score(&service, "mine", Some(&alice)).status, 200);
    for at in 0..8 {
        let answer = score(&service, &format!("bob {at}"), Some(&bob));
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    assert_eq!(live(&service, Some(&alice)), ["bob 5", "bob 6", "bob 7", "mine"]);
}

#[test]
fn one_address_cannot_take_all_connections() {
    let (_folder, service) = served("serve-peers", "limits: { connections: 10 }\n", &[]);
    let idle: Vec<_> = (0..8).map(|_| service.connect()).collect();
    assert_eq!(service.get("/v1/runs").status, 503);
    // Whether it is up is always said, and others have what is left.
    for path in ["/healthz", "/readyz"] {
        let answer = service.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    let other = |path: &str| {
        let url = format!("http://127.0.0.1:{}{path}", service.address.port());
        let asked = ["--silent", "--max-time", "20", "--interface", "127.0.0.2", "--output", "/dev/null"];
        let mut curl = std::process::Command::new("curl");
        let said = curl.args(asked).args(["--write-out", "%{http_code}", &url]).output().unwrap();
        String::from_utf8(said.stdout).unwrap()
    };
    assert_eq!(other("/v1/runs"), "200");
    drop(idle);
    until("there is room again", || service.get("/v1/runs").status == 200);
}

#[test]
fn an_operator_may_let_one_address_have_all_connections() {
    let config = "limits: { connections: 4, connections_per_peer: 4 }\n";
    let (_folder, service) = served("serve-peers-all", config, &[]);
    let _idle: Vec<_> = (0..3).map(|_| service.connect()).collect();
    assert_eq!(service.get("/v1/runs").status, 200);
}

#[test]
fn a_token_has_a_name_that_can_be_told_from_others() {
    let folder = Folder::new("serve-token-names");
    let file = folder.path("tokens.json");
    let long = "x".repeat(65);
    for name in ["", "a b", "a\nb", "local", &long, "é"] {
        let made = run(&["token", "create", name, "--file", &file]);
        assert!(made.code == 2 && made.talk.contains("name"), "{name:?}: {}", made.talk);
    }
    token(&folder, &["team-a.trainer_1"]);
    // A file that somebody wrote by hand is held to the same.
    let mut listed: Value = serde_json::from_str(&folder.read("tokens.json")).unwrap();
    listed["tokens"][0]["name"] = json!("local");
    folder.file("tokens.json", listed.to_string());
    let (length, state) = (folder.file("length.yaml", LENGTH), folder.path("state"));
    let arguments =
        ["serve", "--bind", "127.0.0.1:0", "--state", &state, "--recipe", &length, "--token-file", &file];
    let refused = run(&arguments);
    assert!(refused.code == 2 && refused.talk.contains("\"local\""), "{}", refused.talk);
    let id = listed["tokens"][0]["id"].as_str().unwrap();
    assert_eq!(run(&["token", "revoke", id, "--file", &file]).code, 0);
}
