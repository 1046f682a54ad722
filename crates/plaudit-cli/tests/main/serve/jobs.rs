//! Jobs: done, cancelled, or resumed after the service was killed; and nothing is paid for twice.

use super::http::{Service, until};
use crate::support::{Folder, LENGTH};
use serde_json::{Value, json};

pub(crate) fn rollouts(groups: usize, size: usize) -> Vec<Value> {
    crate::support::rollouts(groups, size).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn state(service: &Service, job: &str) -> String {
    service.get(&format!("/v1/jobs/{job}")).json()["state"].as_str().unwrap().to_owned()
}

#[test]
fn job_results_keep_order_and_keys_are_idempotent() {
    let folder = Folder::new("serve-jobs");
    let length = folder.file("length.yaml", LENGTH);
    let service = Service::start(&folder, &["--recipe", &length]);
    let mut sent = rollouts(300, 4);
    sent[7] = json!({ "response": null });
    let body = json!({ "recipe": "length", "run": "big", "rollouts": sent }).to_string();
    let key = [("idempotency-key", "one")];
    let made = service.send("POST", "/v1/jobs", &body, &key);
    assert_eq!(made.status, 202, "{}", made.text());
    let job = made.json()["job"].as_str().unwrap().to_owned();
    until("the job is done", || state(&service, &job) == "done");
    let told = service.get(&format!("/v1/jobs/{job}")).json();
    assert_eq!(
        (told["rollouts"].as_u64(), told["scored"].as_u64(), told["bad"].as_u64()),
        (Some(1199), Some(1199), Some(1))
    );
    assert!(told.get("owner").is_none() && told.get("hash").is_none());
    let results = service.get(&format!("/v1/jobs/{job}/results")).text();
    let lines: Vec<Value> = results.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1200);
    assert_eq!((lines[0]["id"].as_str(), lines[1198]["id"].as_str()), (Some("g0-0"), Some("g299-3")));
    assert_eq!(
        (lines[1199]["index"].as_u64(), lines[1199]["error"]["code"].as_str()),
        (Some(7), Some("input.response"))
    );
    let some = service.get(&format!("/v1/jobs/{job}/results?from=2&limit=3")).text();
    assert_eq!(some.lines().collect::<Vec<_>>(), results.lines().skip(2).take(3).collect::<Vec<_>>());

    let again = service.send("POST", "/v1/jobs", &body, &key);
    assert_eq!((again.status, again.json()["job"].as_str()), (200, Some(&*job)));
    let other = service.send("POST", "/v1/jobs", "{\"recipe\":\"length\",\"rollouts\":[]}", &key);
    assert_eq!((other.status, other.code()), (409, "job.conflict".to_owned()));
    assert_eq!(service.get("/v1/jobs").json()["jobs"].as_array().unwrap().len(), 1);
    assert_eq!(service.send("DELETE", &format!("/v1/jobs/{job}"), "", &[]).status, 200);
    assert_eq!(service.get(&format!("/v1/jobs/{job}")).status, 404);
    assert_eq!(service.send("POST", "/v1/jobs", "{\"recipe\":\"nothing\",\"rollouts\":[]}", &[]).status, 404);
}

pub(crate) const JUDGED: &str = r#"
name: judged
components:
  quality: { reward: principle, mode: pairwise, principles: [helpfulness], aggregate: winrate }
judges: { main: { base_url: "URL", model: m, concurrency: 4, hedge_share: 0 } }
"#;

#[test]
fn job_resumes_after_a_kill_and_buys_nothing_twice() {
    let folder = Folder::new("serve-resume");
    let ledger = folder.path("ledger");
    let judge =
        Service::judge(&["--latency", "20ms", "--jitter", "0", "--slow-share", "0", "--ledger", &ledger]);
    let recipe = folder.file("judged.yaml", JUDGED.replace("URL", &judge.url()));
    let mut service = Service::start(&folder, &["--recipe", &recipe]);
    // 60 groups of 4 are 360 pairs.
    let made = service.post("/v1/jobs", &json!({ "recipe": "judged", "rollouts": rollouts(60, 4) })).json();
    let job = made["job"].as_str().unwrap().to_owned();
    let bought = || service_calls(&ledger);
    until("some of it is bought", || bought() > 80);
    service.signal("-KILL");
    service.wait();
    let service = Service::start(&folder, &["--recipe", &recipe]);
    until("the job is done", || state(&service, &job) == "done");
    let results = service.get(&format!("/v1/jobs/{job}/results")).text();
    assert_eq!(results.lines().count(), 240);
    assert!(!results.contains("\"outcome\":\"invalid\""));
    let (pairs, calls) = (distinct(&ledger), bought());
    assert!(
        calls <= pairs + 4,
        "{calls} calls for {pairs} questions: only what was in flight is asked again"
    );
}

pub(crate) fn service_calls(ledger: &str) -> usize {
    std::fs::read_to_string(ledger)
        .map_or(0, |text| text.lines().filter(|line| line.contains("\"status\":200")).count())
}

fn distinct(ledger: &str) -> usize {
    let text = std::fs::read_to_string(ledger).unwrap();
    let keys: std::collections::BTreeSet<String> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|line| line["key"].to_string())
        .collect();
    keys.len()
}

#[test]
fn a_job_that_is_called_off_frees_its_work() {
    let folder = Folder::new("serve-cancel");
    let judge = Service::judge(&["--latency", "500ms"]);
    let recipe = folder.file("judged.yaml", JUDGED.replace("URL", &judge.url()));
    let service = Service::start(&folder, &["--recipe", &recipe]);
    let made = service.post("/v1/jobs", &json!({ "recipe": "judged", "rollouts": rollouts(100, 4) })).json();
    let job = made["job"].as_str().unwrap().to_owned();
    until("it runs", || state(&service, &job) == "running");
    assert_eq!(service.get(&format!("/v1/jobs/{job}/results")).code(), "job.not_done");
    assert_eq!(service.send("DELETE", &format!("/v1/jobs/{job}"), "", &[]).json()["state"], "cancelled");
    // A request right after it finds the judge free.
    let start = std::time::Instant::now();
    let answer = service.post("/v1/score", &json!({ "recipe": "judged", "rollouts": rollouts(1, 2) }));
    assert_eq!(answer.status, 200);
    // The job's 600 pairs, four at a time, would take over a minute.
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
    assert_eq!(state(&service, &job), "cancelled");
}

#[test]
fn a_job_that_swells_when_it_is_read_fails_and_says_why() {
    let folder = Folder::new("serve-job-swells");
    let length = folder.file("length.yaml", LENGTH);
    let service = Service::start(&folder, &["--recipe", &length]);
    let group = json!({ "prompt": "p".repeat(1 << 20), "responses": vec![""; 20_000] });
    let before = service.memory();
    let made = service.post("/v1/jobs", &json!({ "recipe": "length", "rollouts": [group] })).json();
    let job = made["job"].as_str().unwrap().to_owned();
    until("it has failed", || state(&service, &job) == "failed");
    let told = service.get(&format!("/v1/jobs/{job}")).json();
    assert!(told["message"].as_str().unwrap().contains("with their prompts: send less"), "{told}");
    let grown = service.memory().saturating_sub(before);
    assert!(grown < 256 << 20, "{grown} bytes more");
}

#[test]
fn job_with_a_misnamed_column_fails_with_the_reason() {
    let folder = Folder::new("serve-misnamed-job");
    let service = Service::start(&folder, &["--recipe", "math"]);
    let sent = vec![json!({ "response": "\\boxed{42}", "gold": "42" }); 6000];
    let made = service.post("/v1/jobs", &json!({ "recipe": "math", "rollouts": sent }));
    let job = made.json()["job"].as_str().unwrap().to_owned();
    until("the job has ended", || state(&service, &job) == "failed");
    let told = service.get(&format!("/v1/jobs/{job}")).text();
    assert!(told.contains("input.missing_reference"), "{told}");
}
