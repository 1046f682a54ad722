//! Judge figures of steps: what judges were asked is counted in the step that asked, however the steps overlap, and a sampled
//! group knows which of its verdicts were there before.

use super::http::{Service, until};
use super::jobs::service_calls;
use crate::support::Folder;
use serde_json::{Value, json};

/// A group of two has one question about both and one about each.
const QUESTIONS: u64 = 3;
const RECIPE: &str = r#"
name: judged
components:
  better: { reward: principle, mode: pairwise, principles: [helpfulness], aggregate: winrate }
  good: { reward: principle, mode: pointwise, principles: [helpfulness] }
judges: { main: { base_url: "URL", model: m, concurrency: 4, hedge_share: 0 } }
"#;

struct Served {
    folder: Folder,
    service: Service,
    _judge: Service,
}

impl Served {
    fn start(name: &str) -> Self {
        let folder = Folder::new(name);
        let quiet = ["--jitter", "0", "--slow-share", "0", "--latency", "50ms", "--ledger"];
        let judge = Service::judge(&[&quiet[..], &[&folder.path("ledger")]].concat());
        let recipe = folder.file("judged.yaml", RECIPE.replace("URL", &judge.url()));
        let service = Service::start(&folder, &["--recipe", &recipe]);
        Self { folder, service, _judge: judge }
    }

    /// Scores groups of two in one request; `words` makes them different from others.
    fn score(&self, step: Option<u64>, groups: usize, words: &str) -> String {
        let rollout = |at: usize| {
            let group = at / 2;
            json!({ "id": format!("{at}"), "group": format!("g{group}"), "prompt": "q", "response": format!("{words} {at}") })
        };
        let rollouts: Vec<Value> = (0..2 * groups).map(rollout).collect();
        let answer =
            self.service.post("/v1/score", &json!({ "run": "r", "step": step, "rollouts": rollouts }));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["run"].as_str().unwrap().to_owned()
    }

    /// Joins the two members of a group.
    fn join(&self, step: Option<u64>, words: &str) -> String {
        let hand_in = |at: usize| {
            let rollout = json!({ "prompt": "q", "response": format!("{words} {at}") });
            let body = json!({ "run": "r", "step": step, "group": words, "size": 2, "rollout": rollout });
            self.service.post("/v1/join", &body).json()
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| hand_in(1));
            let answer = hand_in(0);
            assert_eq!(other.join().unwrap()["result"]["outcome"], "scored", "{answer}");
            answer["run"].as_str().unwrap().to_owned()
        })
    }

    fn steps(&self, run: &str) -> Vec<Value> {
        self.service.get(&format!("/v1/runs/{run}/steps")).json()["steps"].as_array().unwrap().clone()
    }

    /// Of each step: questions, those from the cache, calls, and answers whose latency is known.
    fn usage(&self, run: &str) -> Vec<(u64, [u64; 4])> {
        let of = |step: &Value| {
            let judge = &step["judges"][0];
            let count = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{step}"));
            let latency = &judge["latency"]["count"];
            let figures = [&judge["asked"], &judge["cached"], &judge["calls"], latency].map(count);
            (step["step"].as_u64().unwrap(), figures)
        };
        self.steps(run).iter().map(of).collect()
    }

    /// Whether each verdict about the first group of a step came from the cache, and how often it was sent.
    fn sources(&self, run: &str, step: u64) -> Vec<(bool, u64)> {
        let list = self.service.get(&format!("/v1/runs/{run}/groups?step={step}")).json();
        let id = list["groups"][0]["id"].as_str().unwrap_or_else(|| panic!("{list}"));
        let group = self.service.get(&format!("/v1/runs/{run}/groups/{id}")).json();
        let exchanges = group["exchanges"].as_array().unwrap();
        exchanges
            .iter()
            .map(|one| (one["cached"].as_bool().unwrap(), one["attempts"].as_u64().unwrap()))
            .collect()
    }
}

#[test]
fn concurrent_steps_count_their_own_judge_calls() {
    let served = Served::start("serve-step-usage");
    let run = std::thread::scope(|scope| {
        let first = scope.spawn(|| served.score(Some(1), 12, "one"));
        until("the first step asks", || service_calls(&served.folder.path("ledger")) > 0);
        let second = scope.spawn(|| served.score(Some(2), 4, "two"));
        // Whoever looks in between changes nothing.
        while !second.is_finished() {
            assert_eq!(served.service.get("/v1/runs").status, 200);
        }
        let run = second.join().unwrap();
        let _ = served.steps(&run);
        assert_eq!(first.join().unwrap(), run);
        run
    });
    let fresh = |groups: u64| [groups * QUESTIONS, 0, groups * QUESTIONS, groups * QUESTIONS];
    assert_eq!(served.usage(&run), [(1, fresh(12)), (2, fresh(4))]);
    // The same questions in a later step are answered by the journal, and those of the first step were not.
    served.score(Some(3), 12, "one");
    let known = [12 * QUESTIONS, 12 * QUESTIONS, 0, 0];
    assert_eq!(served.usage(&run), [(1, fresh(12)), (2, fresh(4)), (3, known)]);
    assert_eq!(served.sources(&run, 1), vec![(false, 1); QUESTIONS as usize]);
    assert_eq!(served.sources(&run, 3), vec![(true, 0); QUESTIONS as usize]);
}

#[test]
fn joined_steps_count_a_question_once() {
    let served = Served::start("serve-step-usage-join");
    let run = std::thread::scope(|scope| {
        let served = &served;
        let other = scope.spawn(move || served.join(Some(2), "two"));
        let run = served.join(Some(1), "one");
        assert_eq!(other.join().unwrap(), run);
        run
    });
    // What looks at one rollout is asked when it arrives, and the group finds it answered: it is the same question.
    let fresh = [QUESTIONS, 0, QUESTIONS, QUESTIONS];
    // A call that two wait for is counted by the one that sent it, perhaps a moment after the other has answered.
    until("all are counted", || served.usage(&run) == [(1, fresh), (2, fresh)]);
    assert!(served.sources(&run, 1).iter().all(|(cached, _)| !cached));
    // Without a step, the window of time in which the group was scored counts its calls.
    served.join(None, "no step");
    let asked = |steps: &[(u64, [u64; 4])]| steps.iter().map(|(_, figures)| figures[0]).sum::<u64>();
    until("they are counted", || asked(&served.usage(&run)) == 3 * QUESTIONS);
}
