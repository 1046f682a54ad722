//! A panic over one row is that row's: the command and the service go on, and say `engine.panic` of it.

use crate::parquet_files::write_responses;
use crate::serve::http::{Service, until};
use crate::support::{Folder, LENGTH, run};
use serde_json::{Value, json};

/// What a debug build panics over, so that this can be tested.
const READING: &str = "plaudit-test: panic while reading";
const SCORING: &str = "plaudit-test: panic while scoring";

fn rollouts() -> [Value; 5] {
    [
        json!({ "id": "a", "group": "g", "response": "one" }),
        json!({ "id": "b", "group": "g", "response": [{ "role": "assistant", "content": READING }] }),
        json!({ "id": "c", "group": "g", "response": SCORING }),
        json!({ "id": "d", "group": "g", "response": READING }),
        json!({ "id": "e", "group": "g", "response": "two" }),
    ]
}

/// The ids of results, and the code of each that is invalid.
fn told(results: &[Value]) -> Vec<(&str, Option<&str>)> {
    results.iter().map(|result| (result["id"].as_str().unwrap(), result["reason"]["code"].as_str())).collect()
}

const WANTED: [(&str, Option<&str>); 3] = [("a", None), ("c", Some("engine.panic")), ("e", None)];

fn parsed(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_command_loses_no_other_row_to_a_panic() {
    let folder = Folder::new("panic-command");
    let recipe = folder.file("recipe.yaml", LENGTH);
    let lines: String = rollouts().iter().map(|line| format!("{line}\n")).collect();
    let ran = run(&["score", &folder.file("lines.jsonl", lines), "-r", &recipe]);
    assert_eq!((ran.code, told(&parsed(&ran.out))), (1, WANTED.to_vec()), "{}", ran.talk);
    for line in [2, 4] {
        let error = format!("line {line}: the reader failed as it must not; please report it (engine.panic)");
        assert!(ran.talk.contains(&error), "{}", ran.talk);
    }
    let table = folder.path("table.parquet");
    write_responses(&table, &["one", READING, SCORING, "two"]);
    let ran = run(&["score", &table, "-r", &recipe]);
    let codes: Vec<bool> =
        parsed(&ran.out).iter().map(|row| row["reason"]["code"] == "engine.panic").collect();
    assert_eq!((ran.code, codes), (1, vec![false, true, false]), "{}", ran.talk);
    assert!(ran.talk.contains("row 2: the reader failed as it must not"), "{}", ran.talk);
}

#[test]
fn the_service_answers_after_a_panic() {
    let folder = Folder::new("panic-service");
    let service = Service::start(&folder, &["--recipe", &folder.file("length.yaml", LENGTH)]);
    let body = json!({ "recipe": "length", "rollouts": rollouts() });
    let answer = service.post("/v1/score", &body).json();
    assert_eq!(told(answer["results"].as_array().unwrap()), WANTED);
    let unread: Vec<(u64, &str)> = (answer["errors"].as_array().unwrap().iter())
        .map(|error| (error["index"].as_u64().unwrap(), error["code"].as_str().unwrap()))
        .collect();
    assert_eq!(unread, [(1, "engine.panic"), (3, "engine.panic")]);

    let job = service.post("/v1/jobs", &body).json()["job"].as_str().unwrap().to_owned();
    until("the job is done", || service.get(&format!("/v1/jobs/{job}")).json()["state"] == "done");
    let results = parsed(&service.get(&format!("/v1/jobs/{job}/results")).text());
    assert_eq!(told(&results[..3]), WANTED);
    assert!(results[3..].iter().all(|row| row["error"]["code"] == "engine.panic"), "{results:?}");

    let join = |rollout: &Value| {
        let body =
            json!({ "recipe": "length", "group": "one", "size": 1, "member": "m", "rollout": rollout });
        service.post("/v1/join", &body)
    };
    let [_, turns, scored, text, _] = rollouts();
    for rollout in [turns, text] {
        let refused = join(&rollout);
        assert_eq!((refused.status, refused.code()), (500, "engine.panic".to_owned()));
    }
    assert_eq!(join(&scored).json()["result"]["reason"]["code"], "engine.panic");

    let slime = json!({ "prompt": "q", "response": SCORING });
    let openrlhf = json!({ "query": [format!("q{SCORING}"), "qtwo"], "prompts": ["q", "q"] });
    let say = |text: &str| json!([{ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": text }] }]);
    let call = json!({ "type": "function_call", "name": "f", "arguments": "{}" });
    let nemo = |output: Value| json!({ "responses_create_params": { "input": "q" }, "response": { "output": output } });
    let turns = json!([call, { "type": "message", "role": "assistant", "content": READING }]);
    for (path, body) in [
        ("/slime/length", slime),
        ("/openrlhf/length", openrlhf),
        ("/nemo-gym/length/verify", nemo(say(SCORING))),
        ("/nemo-gym/length/verify", nemo(turns)),
    ] {
        let answer = service.post(path, &body);
        assert!(answer.status >= 500 && answer.code() == "engine.panic", "{path}: {}", answer.text());
    }
    assert_eq!(told(service.post("/v1/score", &body).json()["results"].as_array().unwrap()), WANTED);
}
