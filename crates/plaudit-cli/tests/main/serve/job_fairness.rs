//! Fairness between jobs: jobs leave room for other tokens' jobs, for requests and for other tokens' results, and end with their
//! token.

use super::http::{Answer, Service, request, until};
use super::jobs::{JUDGED, rollouts, service_calls};
use super::security::token;
use crate::support::{Folder, LENGTH, run};
use serde_json::{Value, json};

/// A service with a judge of that latency, which notes what it is asked.
struct Served {
    folder: Folder,
    service: Service,
    _judge: Service,
}

impl Served {
    fn start(name: &str, latency: &str, config: &str) -> Self {
        let folder = Folder::new(name);
        let ledger = folder.path("ledger");
        let judge = Service::judge(&["--latency", latency, "--ledger", &ledger]);
        let recipe = JUDGED.replace("URL", &judge.url()).replace("concurrency: 4", "concurrency: 8");
        let (judged, length) = (folder.file("judged.yaml", recipe), folder.file("length.yaml", LENGTH));
        let (config, tokens) = (folder.file("serve.yaml", config), folder.path("tokens.json"));
        // The file has to be there when the service starts.
        token(&folder, &["root", "--scope", "admin"]);
        let options =
            ["--recipe", &judged, "--recipe", &length, "--config", &config, "--token-file", &tokens];
        let service = Service::start(&folder, &options);
        Self { folder, service, _judge: judge }
    }

    /// A token that the service knows.
    fn token(&self, arguments: &[&str]) -> String {
        let token = token(&self.folder, arguments);
        until("the token is known", || self.ask(&token, "GET", "/v1/jobs", "").status != 401);
        token
    }

    fn ask(&self, token: &str, method: &str, path: &str, body: &str) -> Answer {
        self.service.raw(request(method, path, body, &[], Some(token)).as_bytes())
    }

    /// Hands a job in, and gives its id back.
    fn job(&self, token: &str, body: &Value) -> String {
        let made = self.ask(token, "POST", "/v1/jobs", &body.to_string());
        assert_eq!(made.status, 202, "{}", made.text());
        made.json()["job"].as_str().unwrap().to_owned()
    }

    fn told(&self, token: &str, job: &str) -> Value {
        self.ask(token, "GET", &format!("/v1/jobs/{job}"), "").json()
    }

    fn is(&self, token: &str, job: &str, state: &str) -> bool {
        self.told(token, job)["state"] == state
    }

    fn calls(&self) -> usize {
        service_calls(&self.folder.path("ledger"))
    }
}

fn judged(run: &str, groups: usize) -> Value {
    json!({ "recipe": "judged", "run": run, "rollouts": rollouts(groups, 4) })
}

fn quick() -> Value {
    json!({ "recipe": "length", "rollouts": rollouts(1, 2) })
}

#[test]
fn jobs_of_a_token_stay_within_its_limit() {
    let served = Served::start("serve-turns", "250ms", "");
    let greedy = served.token(&["greedy", "--scope", "score", "--waiting", "16"]);
    let eyes = served.token(&["eyes", "--scope", "read"]);
    let jobs: Vec<String> = (0..4).map(|_| served.job(&greedy, &judged("one", 400))).collect();
    until("two of them run", || jobs.iter().filter(|job| served.is(&greedy, job, "running")).count() == 2);
    // What is under way is never more than the token allows, and one sees it come further in small steps.
    let mut seen = Vec::new();
    until("something is scored", || {
        let inside = served.ask(&eyes, "GET", "/v1/status", "").json()["rollouts"].as_u64().unwrap();
        assert!(inside <= 16, "{inside} rollouts at once");
        let scored: u64 = jobs.iter().map(|job| served.told(&greedy, job)["scored"].as_u64().unwrap()).sum();
        seen.push(scored);
        scored >= 16
    });
    assert!(seen.iter().any(|scored| (1..16).contains(scored)), "{seen:?}");
    // A request of the same token finds room, for what the rest of it is worth.
    let asked = json!({ "recipe": "length", "rollouts": rollouts(1, 8) }).to_string();
    assert_eq!(served.ask(&greedy, "POST", "/v1/score", &asked).status, 200);
    let modest = served.token(&["modest", "--scope", "score"]);
    let mine = served.job(&modest, &quick());
    until("the other's job is done", || served.is(&modest, &mine, "done"));
    assert!(jobs.iter().all(|job| !served.is(&greedy, job, "done")));
}

#[test]
fn places_go_round_where_there_are_more_who_wait_than_places() {
    let served = Served::start("serve-round", "100ms", "");
    let holders: Vec<String> =
        (0..3).map(|at| served.token(&[&at.to_string(), "--scope", "score", "--waiting", "16"])).collect();
    // The first has all places that one may have, and the second the last.
    let mut jobs: Vec<(&str, String)> = Vec::new();
    for (holder, run) in [(0, "a"), (0, "b"), (0, "c"), (0, "d"), (1, "e")] {
        jobs.push((&holders[holder], served.job(&holders[holder], &judged(run, 200))));
    }
    until("all places are taken", || {
        jobs.iter().filter(|(holder, job)| served.is(holder, job, "running")).count() == 4
    });
    let late = served.job(&holders[2], &quick());
    until("the third has its turn as well", || served.is(&holders[2], &late, "done"));
    assert!(
        jobs.iter().all(|(holder, job)| !served.is(holder, job, "done")),
        "none of them has ended for it"
    );
    // What gave its place up goes on where it was.
    let scored = |(holder, job): &(&str, String)| served.told(holder, job)["scored"].as_u64().unwrap();
    let is_aside = |job: &(&str, String)| served.is(job.0, &job.1, "waiting") && scored(job) > 0;
    let aside = jobs.iter().position(is_aside).expect("one that has given its place up");
    let (holder, job) = jobs.swap_remove(aside);
    let before = served.told(holder, &job)["scored"].as_u64().unwrap();
    for (holder, job) in &jobs {
        served.ask(holder, "DELETE", &format!("/v1/jobs/{job}"), "");
    }
    until("it is done", || {
        let told = served.told(holder, &job);
        assert!(told["scored"].as_u64().unwrap() >= before, "{told}");
        told["state"] == "done"
    });
    let results = served.ask(holder, "GET", &format!("/v1/jobs/{job}/results"), "").text();
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].clone();
    let wanted: Vec<Value> = rollouts(200, 4).iter().map(|rollout| rollout["id"].clone()).collect();
    assert_eq!(results.lines().map(id).collect::<Vec<_>>(), wanted);
}

#[test]
fn requests_go_in_beside_the_jobs_of_their_run() {
    let served = Served::start("serve-beside", "100ms", "limits: { rollouts: 64 }\n");
    let trainer = served.token(&["trainer", "--scope", "score"]);
    let job = served.job(&trainer, &judged("one", 200));
    until("it is being scored", || served.told(&trainer, &job)["scored"].as_u64().unwrap() > 0);
    for _ in 0..5 {
        let asked = json!({ "recipe": "judged", "run": "one", "rollouts": rollouts(4, 4) }).to_string();
        let answer = served.ask(&trainer, "POST", "/v1/score", &asked);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    assert!(served.is(&trainer, &job, "running"));
}

#[test]
fn nobody_can_push_out_the_results_of_another() {
    let served = Served::start("serve-evict", "1ms", "keep: { job_bytes: 200000 }\n");
    let (greedy, modest) =
        (served.token(&["greedy", "--scope", "score"]), served.token(&["modest", "--scope", "score"]));
    let mine = served.job(&modest, &quick());
    until("it is done", || served.is(&modest, &mine, "done"));
    let large = json!({ "recipe": "length", "rollouts": rollouts(50, 4) });
    let theirs: Vec<String> = (0..12)
        .map(|_| {
            let job = served.job(&greedy, &large);
            until("it is done", || served.told(&greedy, &job)["state"] != "waiting");
            job
        })
        .collect();
    let left = || {
        theirs
            .iter()
            .filter(|job| served.ask(&greedy, "GET", &format!("/v1/jobs/{job}"), "").status == 200)
            .count()
    };
    until("the oldest of whoever has most are forgotten", || left() < 12);
    assert!(left() > 0);
    assert!(served.is(&modest, &mine, "done"));
    let listed = |query: &str| served.ask(&greedy, "GET", &format!("/v1/jobs{query}"), "").json();
    assert_eq!(
        (listed("")["more"].as_bool(), listed("?limit=1")["more"].as_bool()),
        (Some(false), Some(true))
    );
    assert_eq!(listed("?limit=1")["jobs"].as_array().unwrap().len(), 1);
}

#[test]
fn jobs_of_a_revoked_token_buy_nothing_more() {
    let served = Served::start("serve-revoked", "50ms", "");
    let (trainer, admin) =
        (served.token(&["trainer", "--scope", "score"]), served.token(&["boss", "--scope", "admin"]));
    let jobs: Vec<String> = (0..3).map(|_| served.job(&trainer, &judged("one", 300))).collect();
    until("some of it is bought", || served.calls() > 10);
    let file = served.folder.path("tokens.json");
    assert_eq!(run(&["token", "revoke", "trainer", "--file", &file]).code, 0);
    until("all are called off", || jobs.iter().all(|job| served.is(&admin, job, "cancelled")));
    let told: Vec<Value> = jobs.iter().map(|job| served.told(&admin, job)).collect();
    assert!(told.iter().all(|job| job["message"] == "its token has been revoked or has expired"), "{told:?}");
    assert!(told.iter().any(|job| job["run_id"].is_null()), "the one that waited has not begun");
    let settled = served.calls();
    let mut other = judged("other", 10);
    for rollout in other["rollouts"].as_array_mut().unwrap() {
        rollout["prompt"] = json!("another question");
    }
    let other = served.job(&admin, &other);
    until("another job is done", || served.is(&admin, &other, "done"));
    // Its 60 pairs are asked, and what was in flight may have been answered.
    assert!(served.calls() <= settled + 8 + 60, "{} calls after {settled}", served.calls());
}

#[test]
fn concurrent_token_changes_are_all_kept() {
    let folder = Folder::new("serve-token-changes");
    let file = folder.path("tokens.json");
    let names: Vec<String> = (0..8).map(|at| format!("t{at}")).collect();
    let all_at_once = |deeds: Vec<[&str; 2]>| {
        std::thread::scope(|scope| {
            for [deed, name] in deeds {
                let file = &file;
                scope.spawn(move || assert_eq!(run(&["token", deed, name, "--file", file]).code, 0));
            }
        });
    };
    all_at_once(names.iter().map(|name| ["create", name]).collect());
    let more: Vec<String> = (0..4).map(|at| format!("u{at}")).collect();
    let revoked = names[..4].iter().map(|name| ["revoke", name.as_str()]);
    all_at_once(revoked.chain(more.iter().map(|name| ["create", name.as_str()])).collect());
    let listed = run(&["token", "list", "--file", &file]).out;
    let has = |name: &String| listed.lines().any(|line| line.split_whitespace().any(|word| word == name));
    assert!(names[..4].iter().all(|name| !has(name)), "{listed}");
    assert!(names[4..].iter().chain(&more).all(has), "{listed}");
    let dead = run(&["token", "create", "dead", "--expires", "0s", "--file", &file]);
    assert!(dead.code == 2 && dead.talk.contains("worth nothing"), "{}", dead.talk);
    token(&folder, &["paced", "--rate", "20", "--waiting", "64"]);
    let listed = run(&["token", "list", "--file", &file]).out;
    assert!(listed.contains("until revoked, 20 requests a second, 64 rollouts at once"), "{listed}");
}
