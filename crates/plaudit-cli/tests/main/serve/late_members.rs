//! A trainer that dies and is started again: the samples of the dead one give their places up to those of the new one,
//! and a sample that is sent again after a lost connection is the same member.

use super::http::{Answer, Service, read, request, until};
use crate::support::Folder;
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::TcpStream;

const RECIPE: &str = "name: comparing\ncomponents: { kimi: { reward: kimi.length, correct: extra } }\ngroups: { timeout: 30s }\n";

fn served(name: &str) -> (Folder, Service) {
    let folder = Folder::new(name);
    let recipe = folder.file("comparing.yaml", RECIPE);
    let service = Service::start(&folder, &["--recipe", &recipe]);
    (folder, service)
}

/// A gauge of the service.
pub(super) fn gauge(service: &Service, name: &str) -> usize {
    let page = service.get("/metrics").text();
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("there is no {name}")).parse().unwrap()
}

fn send(service: &Service, path: &str, body: &Value) -> TcpStream {
    let mut stream = service.connect();
    stream.write_all(request("POST", path, &body.to_string(), &[], None).as_bytes()).unwrap();
    stream
}

/// Sends what waits for its group, and goes away before it is answered.
fn abandon(service: &Service, path: &str, bodies: &[Value]) {
    let before = gauge(service, "plaudit_rollouts_joining");
    let streams: Vec<TcpStream> = bodies.iter().map(|body| send(service, path, body)).collect();
    until("all wait", || gauge(service, "plaudit_rollouts_joining") == before + bodies.len());
    drop(streams);
    // The only connection is that of whoever asks.
    until("the service knows that they are gone", || gauge(service, "plaudit_connections") == 1);
}

/// Sends all of it at once, and gives the answers back.
fn ask_all(service: &Service, path: &str, bodies: &[Value]) -> Vec<Answer> {
    let mut streams: Vec<TcpStream> = bodies.iter().map(|body| send(service, path, body)).collect();
    streams.iter_mut().map(|stream| read(stream).expect("an answer")).collect()
}

fn sample(text: &str) -> Value {
    json!({ "prompt": "q", "response": text, "label": { "correct": true } })
}

/// The texts of the groups that were scored, each sorted.
fn groups(service: &Service) -> Vec<Vec<String>> {
    let run = service.get("/v1/runs").json()["runs"][0]["id"].as_str().unwrap().to_owned();
    let listed = service.get(&format!("/v1/runs/{run}/groups")).json();
    let texts = |group: &Value| {
        let path = format!("/v1/runs/{run}/groups/{}", group["id"].as_str().unwrap());
        let group = service.get(&path).json();
        let said = |row: &Value| row["response"].as_str().unwrap().to_owned();
        let mut texts: Vec<String> = group["rollouts"].as_array().unwrap().iter().map(said).collect();
        texts.sort();
        texts
    };
    listed["groups"].as_array().unwrap().iter().map(texts).collect()
}

#[test]
fn a_restarted_trainer_is_not_compared_with_its_dead_samples() {
    let (_folder, service) = served("serve-seats-dead");
    let path = "/slime/comparing?size=4";
    abandon(&service, path, &[sample("old 0"), sample("old 1")]);
    let new: Vec<Value> = (0..4).map(|at| sample(&format!("new {at}"))).collect();
    let answers = ask_all(&service, path, &new);
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    assert_eq!(groups(&service), [["new 0", "new 1", "new 2", "new 3"]]);
}

#[test]
fn a_sample_that_comes_back_takes_its_seat_again() {
    let (_folder, service) = served("serve-seats-back");
    let path = "/slime/comparing?size=3";
    abandon(&service, path, &[sample("a"), sample("a b")]);
    // All seats are taken, and two of those who sit there are expected back.
    let answers = ask_all(&service, path, &[sample("a b c"), sample("a"), sample("a b")]);
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    assert_eq!(groups(&service), [["a", "a b", "a b c"]]);
}

#[test]
fn named_samples_of_a_dead_trainer_give_way() {
    let (_folder, service) = served("serve-seats-named");
    let path = "/nemo-gym/comparing/verify?size=2";
    let verify = |index: usize, text: &str| {
        json!({
            "responses_create_params": { "input": "q" }, "_ng_task_index": 1, "_ng_rollout_index": index, "correct": true,
            "response": { "output": [{ "type": "message", "content": [{ "type": "output_text", "text": text }] }] },
        })
    };
    abandon(&service, path, &[verify(0, "old 0")]);
    let answers = ask_all(&service, path, &[verify(1, "new 1"), verify(0, "new 0")]);
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    assert_eq!(groups(&service), [["new 0", "new 1"]]);
}

#[test]
fn a_join_gives_the_seats_of_dead_callers_away() {
    let (_folder, service) = served("serve-seats-join");
    for named in [false, true] {
        let body = |at: usize, text: &str| {
            json!({
                "run": "training", "group": format!("g {named}"), "size": 3, "member": named.then(|| at.to_string()),
                "rollout": { "response": format!("{text} {at}"), "extra": { "correct": true } },
            })
        };
        abandon(&service, "/v1/join", &[body(0, "old"), body(1, "old")]);
        let new: Vec<Value> = [2, 0, 1].map(|at| body(at, "new")).into();
        for answer in ask_all(&service, "/v1/join", &new) {
            let told = answer.json();
            assert_eq!(answer.status, 200, "{told}");
            assert_eq!(
                (told["group_size"].as_u64(), told["late"].as_bool()),
                (Some(3), Some(false)),
                "{told}"
            );
            assert_eq!((&told["partial"], &told["duplicate"]), (&json!(false), &json!(false)), "{told}");
        }
    }
    assert_eq!(groups(&service), [["new 0", "new 1", "new 2"], ["new 0", "new 1", "new 2"]]);
}
