//! Killed runs: after many kills at random moments nothing is lost or bought twice, and the bytes are those of an undisturbed
//! run.

use crate::judge_sim::Sim;
use crate::support::{Folder, Ran, command, run};
use crate::timing::until;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::{Child, Stdio};

/// One call a rollout, and nothing that makes two runs differ in what they ask.
pub(crate) const POINTWISE: &str = "\
name: pointwise
components:
  principle: { reward: principle, mode: pointwise, principles: [helpfulness] }
judges:
  main: { base_url: \"http://127.0.0.1:1/v1\", model: sim, concurrency: 8, hedge_share: 0 }
";

/// Rollouts in groups of four that all differ.
pub(crate) fn rollouts(count: usize) -> String {
    let line = |at: usize| {
        let group = at / 4;
        format!(
            "{{\"id\":\"r{at}\",\"prompt\":\"question {group}\",\"response\":\"answer {at} of {group}\"}}\n"
        )
    };
    (0..count).map(line).collect()
}

/// The lines of a judge's ledger that are whole: the key of each request, and whether it was answered.
pub(crate) fn ledger(folder: &Folder, name: &str) -> Vec<(String, u64)> {
    let text = folder.read(name);
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            (line["key"].as_str().unwrap().to_owned(), line["status"].as_u64().unwrap())
        })
        .collect()
}

/// Starts the command and lets it run.
pub(crate) fn start(arguments: &[&str]) -> Child {
    let mut command = command(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for a child that was started.
pub(crate) fn ended(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        talk: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Numbers that look random and are the same in every run.
pub(crate) struct TestRng(pub(crate) u64);

impl TestRng {
    /// The next number below a limit.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// How many of the last answers before a kill may still have been on their way to the disk: several times the calls that are in
/// flight at once.
const MARGIN: usize = 64;

/// Kills a run over and over, after a random number of answers, and returns how often an answer was bought again that came in
/// before the margin of an earlier kill.
fn kill_over_and_over(folder: &Folder, arguments: &[&str], kills: usize, seed: u64) -> usize {
    let mut rng = TestRng(seed);
    let (mut kept, mut again, mut from) = (BTreeSet::new(), 0, 0);
    for kill in 0..kills {
        let mut child = start(arguments);
        let enough = from + MARGIN + rng.below(120) as usize;
        until("the judge answers", || folder.read("ledger").lines().count() >= enough);
        let mut early = ledger(folder, "ledger").split_off(from);
        early.truncate(early.len() - MARGIN);
        assert!(child.try_wait().unwrap().is_none(), "the run was over before kill {kill}");
        child.kill().unwrap();
        child.wait().unwrap();
        let life = ledger(folder, "ledger").split_off(from);
        from += life.len();
        again += life.iter().filter(|(key, _)| kept.contains(key)).count();
        kept.extend(early.into_iter().filter(|(_, status)| *status == 200).map(|(key, _)| key));
    }
    let ran = run(arguments);
    assert_eq!(ran.code, 0, "{}", ran.talk);
    let last = ledger(folder, "ledger").split_off(from);
    again + last.iter().filter(|(key, _)| kept.contains(key)).count()
}

fn survive(name: &str, count: usize, kills: usize) {
    let folder = Folder::new(name);
    let (rows, recipe) = (folder.file("rows.jsonl", rollouts(count)), folder.file("recipe.yaml", POINTWISE));
    let (out, state) = (folder.path("out.jsonl"), folder.path("state"));
    let sim = Sim::start(&["--latency", "20ms", "--ledger", &folder.path("ledger")]);
    let url = sim.url();
    let arguments = ["score", &rows, "--recipe", &recipe, "--set", &url, "--state", &state, "--out", &out];
    let again = kill_over_and_over(&folder, &arguments, kills, 7);
    let asked = ledger(&folder, "ledger").len();
    let distinct: BTreeSet<String> = ledger(&folder, "ledger").into_iter().map(|(key, _)| key).collect();
    assert_eq!(again, 0, "answers that had been kept were bought again");
    assert_eq!(distinct.len(), count, "{asked} calls");
    let results = folder.read("out.jsonl");
    assert!(!folder.names().iter().any(|name| name.ends_with(".part")), "{:?}", folder.names());
    let ids: Vec<String> = results
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned())
        .collect();
    let wanted: Vec<String> = (0..count).map(|at| format!("r{at}")).collect();
    assert!(ids == wanted, "every row once, in the order of the input");

    let ran = run(&arguments);
    assert_eq!(ran.code, 0, "{}", ran.talk);
    assert_eq!(ledger(&folder, "ledger").len(), asked, "a second run asks nothing");
    assert!(folder.read("out.jsonl") == results);

    // Another state has other fences and letters, about which the simulated judge does not care.
    let (fresh, other) = (folder.path("fresh.jsonl"), folder.path("other"));
    let wide = "judges.main.concurrency=64";
    let undisturbed = [
        "score", &rows, "--recipe", &recipe, "--set", &url, "--set", wide, "--state", &other, "--out", &fresh,
    ];
    assert_eq!(run(&undisturbed).code, 0);
    assert!(folder.read("fresh.jsonl") == results, "a run that was never disturbed gives other bytes");

    drop(sim);
    let ran = run(&["replay", "--state", &state]);
    assert_eq!(ran.code, 0, "{}", ran.talk);
    assert!(ran.out == results);
    eprintln!("{count} rollouts, {kills} kills: {asked} calls, {} of them twice", asked - count);
}

#[test]
fn twenty_kills_lose_nothing_and_buy_nothing_twice() {
    survive("crash", 4000, 20);
}

/// Pairs in waves, where what is asked next depends on what was answered.
const ADAPTIVE: &str = "\
name: adaptive
components:
  principle: { reward: principle, principles: [helpfulness], design: adaptive, budget: 5, audit: 0.1 }
judges:
  main: { base_url: \"http://127.0.0.1:1/v1\", model: sim, concurrency: 8 }
";

#[test]
fn a_run_in_waves_asks_the_same_after_kills() {
    let folder = Folder::new("crash-waves");
    let (rows, recipe) = (folder.file("rows.jsonl", rollouts(800)), folder.file("recipe.yaml", ADAPTIVE));
    let (out, state) = (folder.path("out.jsonl"), folder.path("state"));
    let sim = Sim::start(&["--latency", "20ms", "--no-logprobs", "--ledger", &folder.path("ledger")]);
    let url = sim.url();
    let arguments = ["score", &rows, "--recipe", &recipe, "--set", &url, "--state", &state, "--out", &out];
    assert_eq!(kill_over_and_over(&folder, &arguments, 4, 11), 0);
    let ran =
        run(&["score", &rows, "--recipe", &recipe, "--set", &url, "--set", "judges.main.concurrency=64"]);
    assert_eq!(ran.code, 0, "{}", ran.talk);
    assert!(ran.out == folder.read("out.jsonl"));
    let ran = run(&["replay", "--state", &state]);
    assert!(ran.out == folder.read("out.jsonl"), "{}", ran.talk);
}
