//! Judged runs as processes: two runs in one folder, a damaged journal, a full disk, a judge that is down, API keys, signals.

use crate::crash::{POINTWISE, TestRng, ended, ledger, rollouts, start};
use crate::judge_sim::Sim;
use crate::support::{Folder, Ran, command, run};
use crate::timing::until;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A folder with rollouts, a recipe, and a judge with a ledger.
struct Fixture {
    folder: Folder,
    sim: Sim,
}

impl Fixture {
    fn new(name: &str, count: usize, flags: &[&str]) -> Self {
        let folder = Folder::new(name);
        folder.file("rows.jsonl", rollouts(count));
        folder.file("recipe.yaml", POINTWISE);
        let ledger = folder.path("ledger");
        let sim = Sim::start(&[&["--ledger", &ledger, "--slow-share", "0"], flags].concat());
        Self { folder, sim }
    }

    /// The arguments of a run with a state.
    fn arguments(&self) -> Vec<String> {
        let folder = &self.folder;
        let mut arguments = vec!["score".to_owned(), folder.path("rows.jsonl")];
        for (flag, value) in [
            ("--recipe", folder.path("recipe.yaml")),
            ("--set", self.sim.url()),
            ("--state", folder.path("state")),
            ("--out", folder.path("out.jsonl")),
        ] {
            arguments.extend([flag.to_owned(), value]);
        }
        arguments
    }

    fn calls(&self) -> usize {
        ledger(&self.folder, "ledger").len()
    }

    /// Waits until the judge has answered so many calls.
    fn wait_for(&self, calls: usize) {
        until("the judge answers", || self.calls() >= calls);
    }

    /// Every file of the folder that is only there while a run writes it.
    fn parts(&self) -> Vec<String> {
        let state = std::fs::read_dir(self.folder.path("state"));
        let state =
            state.into_iter().flatten().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        self.folder.names().into_iter().chain(state).filter(|name| name.ends_with(".part")).collect()
    }
}

/// How long a run that was told to stop waits for the calls in flight.
const PATIENCE: Duration = Duration::from_secs(10);

/// A judge that takes calls and never answers.
struct SilentJudge(TcpListener);

impl SilentJudge {
    fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    fn url(&self) -> String {
        format!("judges.main.base_url=http://{}/v1", self.0.local_addr().unwrap())
    }

    /// Waits for the first bytes of a call, which hangs until it is dropped.
    fn asked(&self) -> TcpStream {
        let mut call = self.0.accept().unwrap().0;
        call.read_exact(&mut [0]).unwrap();
        call
    }
}

fn texts(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

pub(crate) fn signal(signal: &str, pid: u32) {
    assert!(Command::new("sh").args(["-c", &format!("kill -{signal} {pid}")]).status().unwrap().success());
}

/// Whether a process has a handler for SIGINT.
fn handles_interrupts(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & 0b10 != 0
}

/// The codes of a file of results, with how many rows have each; an empty one for rows with a total.
fn codes(results: &str) -> std::collections::BTreeMap<String, usize> {
    let mut codes = std::collections::BTreeMap::new();
    for line in results.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        assert_eq!(row["outcome"] == "invalid", row["total"].is_null(), "{row}");
        let code = row["reason"]["code"].as_str().unwrap_or("").to_owned();
        *codes.entry(code).or_insert(0) += 1;
    }
    codes
}

#[test]
fn second_run_in_one_state_is_refused_with_the_pid() {
    let fixture = Fixture::new("process-twice", 200, &["--latency", "100ms"]);
    let arguments = fixture.arguments();
    let first = start(&texts(&arguments));
    fixture.wait_for(5);
    let second = run(&texts(&arguments));
    assert_eq!(second.code, 2);
    assert_eq!(second.talk.lines().count(), 1, "{}", second.talk);
    assert!(second.talk.contains(&format!("in use by process {}", first.id())), "{}", second.talk);
    assert_eq!(ended(first).code, 0);
}

#[test]
fn damaged_journal_warns_and_asks_only_what_is_lost() {
    let fixture = Fixture::new("process-damage", 400, &[]);
    let arguments = fixture.arguments();
    assert_eq!(run(&texts(&arguments)).code, 0);
    let (results, calls) = (fixture.folder.read("out.jsonl"), fixture.calls());
    let path = fixture.folder.path("state/judgments.log");
    let mut bytes = std::fs::read(&path).unwrap();
    let mut rng = TestRng(3);
    for _ in 0..50 {
        let at = 64 + rng.below(bytes.len() as u64 - 64) as usize;
        bytes[at] ^= 1 << rng.below(8);
    }
    std::fs::write(&path, &bytes).unwrap();
    let ran = run(&texts(&arguments));
    assert_eq!(ran.code, 0, "{}", ran.talk);
    assert!(ran.talk.contains("warning: the journal is damaged: "), "{}", ran.talk);
    assert!(fixture.folder.read("out.jsonl") == results);
    let again = fixture.calls() - calls;
    assert!((1..=50).contains(&again), "{again} calls");
    assert_eq!(run(&texts(&arguments)).code, 0);
    assert_eq!(fixture.calls(), calls + again, "what was bought again is kept");
}

#[test]
fn a_full_disk_ends_the_asking_and_a_resume_goes_on() {
    let fixture = Fixture::new("process-full", 1000, &["--latency", "2ms"]);
    // The limit is on every file, and the results are not what is to run full.
    let mut arguments = fixture.arguments();
    arguments.truncate(arguments.len() - 2);
    let mut limited = Command::new("sh");
    let plaudit = command(&[]).get_program().to_owned();
    // 400 KiB beside the MiB that is kept free for the calls in flight.
    limited.args(["-c", "trap '' XFSZ; ulimit -f 2848; exec \"$@\"", "sh"]).arg(plaudit).args(&arguments);
    let output = limited.stdin(Stdio::null()).output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{talk}");
    let found = codes(&String::from_utf8(output.stdout).unwrap());
    let scored = found[""];
    assert_eq!(found["engine.journal_full"], 1000 - scored, "{found:?}");
    let calls = fixture.calls();
    assert!(scored > 20 && calls - scored <= 8, "{scored} scored, {calls} calls");
    let last = talk.lines().last().unwrap();
    assert!(last.starts_with("error: no space is left for ") && last.contains("run again"), "{talk}");
    let ran = run(&texts(&arguments));
    assert_eq!(ran.code, 0, "{}", ran.talk);
    assert_eq!(codes(&ran.out)[""], 1000);
    assert!(fixture.calls() <= 1000 + 8, "{} calls", fixture.calls());
}

#[test]
fn dead_judge_makes_every_row_invalid() {
    let folder = Folder::new("process-down");
    let (rows, recipe) = (folder.file("rows.jsonl", rollouts(200)), folder.file("recipe.yaml", POINTWISE));
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("judges.main.base_url=http://{address}/v1");
    let start = Instant::now();
    let ran = run(&["score", &rows, "--recipe", &recipe, "--set", &url, "--set", "judges.main.patience=1s"]);
    assert_eq!(ran.code, 1, "{}", ran.talk);
    // Without a word of the recipe it would be half a minute.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert!(ran.talk.contains("never answered: does it run"), "{}", ran.talk);
    let found = codes(&ran.out);
    let known = |code: &str| found.get(code).copied().unwrap_or(0);
    assert_eq!(known("judge.connect") + known("judge.breaker_open"), 200, "{found:?}");
}

#[test]
fn a_missing_key_is_one_line_and_a_key_is_seen_nowhere() {
    let fixture = Fixture::new("process-key", 100, &["--latency", "20ms"]);
    let mut arguments = fixture.arguments();
    arguments.extend(["--set", "judges.main.api_key_env=PLAUDIT_TEST_KEY"].map(str::to_owned));
    let ran = run(&texts(&arguments));
    assert_eq!((ran.code, ran.talk.lines().count()), (2, 1), "{}", ran.talk);
    assert!(ran.talk.contains("PLAUDIT_TEST_KEY is not set"), "{}", ran.talk);
    let key = "sk-planted-0123456789";
    let mut command = command(&texts(&arguments));
    command.env("PLAUDIT_TEST_KEY", key).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    fixture.wait_for(5);
    let line = std::fs::read(format!("/proc/{}/cmdline", child.id())).unwrap_or_else(|_| Vec::new());
    let Ran { code, out, talk } = ended(child);
    assert_eq!(code, 0, "{talk}");
    let mut seen = vec![line, out.into_bytes(), talk.into_bytes()];
    for folder in [fixture.folder.path("."), fixture.folder.path("state")] {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        seen.extend(entries.filter(|path| path.is_file()).map(|path| std::fs::read(path).unwrap()));
    }
    let holds = |bytes: &Vec<u8>| bytes.windows(key.len()).any(|window| window == key.as_bytes());
    assert!(seen.len() > 6 && !seen.iter().any(holds));
}

#[test]
fn signal_keeps_calls_in_flight_and_the_run_resumes() {
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let fixture = Fixture::new(&format!("process-{name}"), 400, &["--latency", "150ms"]);
        let arguments = fixture.arguments();
        let child = start(&texts(&arguments));
        fixture.wait_for(20);
        assert_eq!(fixture.parts().len(), 2, "{:?}", fixture.parts());
        signal(name, child.id());
        let ran = ended(child);
        let calls = fixture.calls();
        let wanted = format!("stopped: {calls} judgments are kept; run the same command again to go on");
        assert_eq!(ran.code, code, "{}", ran.talk);
        assert!(
            ran.talk.contains(&wanted) && ran.talk.lines().count() == 1,
            "{} after {calls} calls",
            ran.talk
        );
        assert!((20..100).contains(&calls), "{calls} calls");
        assert!(fixture.parts().is_empty() && !fixture.folder.names().contains(&"out.jsonl".to_owned()));
        assert_eq!(run(&texts(&arguments)).code, 0);
        assert_eq!(fixture.calls(), 400, "nothing was asked twice");
    }
}

#[test]
fn second_signal_ends_at_once() {
    let fixture = Fixture::new("process-second", 100, &[]);
    let judge = SilentJudge::new();
    let (rows, recipe, out) = (
        fixture.folder.path("rows.jsonl"),
        fixture.folder.path("recipe.yaml"),
        fixture.folder.path("out.jsonl"),
    );
    let mut child = start(&["score", &rows, "--recipe", &recipe, "--set", &judge.url(), "--out", &out]);
    let _call = judge.asked();
    let told = Instant::now();
    // Two that follow each other closely may count as one.
    until("it ends", || {
        signal("INT", child.id());
        child.try_wait().unwrap().is_some()
    });
    let ran = ended(child);
    assert!(told.elapsed() < PATIENCE, "{:?}", told.elapsed());
    assert_eq!(ran.code, 130, "{}", ran.talk);
    assert!(ran.talk.contains("stopped: nothing is kept"), "{}", ran.talk);
    assert!(fixture.parts().is_empty() && !fixture.folder.names().contains(&"out.jsonl".to_owned()));
}

#[test]
fn signal_waits_ten_seconds_for_calls_in_flight() {
    let fixture = Fixture::new("process-patient", 100, &[]);
    let judge = SilentJudge::new();
    let mut arguments = fixture.arguments();
    arguments.extend(["--set".to_owned(), judge.url()]);
    let child = start(&texts(&arguments));
    let _call = judge.asked();
    let told = Instant::now();
    signal("TERM", child.id());
    let ran = ended(child);
    assert_eq!(ran.code, 143, "{}", ran.talk);
    assert!(ran.talk.contains("stopped: 0 judgments are kept"), "{}", ran.talk);
    assert!(told.elapsed() >= PATIENCE, "{:?}", told.elapsed());
    assert!(fixture.parts().is_empty(), "{:?}", fixture.parts());
}

#[test]
fn signal_ends_a_run_that_waits_for_its_input() {
    let fixture = Fixture::new("process-piped", 4, &[]);
    let mut command = command(&["score", "-", "--recipe", &fixture.folder.path("recipe.yaml")]);
    command.args(["--set", &fixture.sim.url(), "--out", &fixture.folder.path("piped.jsonl")]);
    let mut piped =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = piped.stdin.take().unwrap();
    stdin.write_all(rollouts(4).as_bytes()).unwrap();
    until("it handles signals", || handles_interrupts(piped.id()));
    signal("INT", piped.id());
    assert_eq!(ended(piped).code, 130);
    drop(stdin);
}

#[test]
fn a_run_that_was_asleep_asks_again_once_and_goes_on() {
    let fixture = Fixture::new("process-asleep", 200, &["--latency", "50ms"]);
    let mut arguments = fixture.arguments();
    arguments.extend(["--set", "judges.main.timeout=1s"].map(str::to_owned));
    let child = start(&texts(&arguments));
    fixture.wait_for(20);
    signal("STOP", child.id());
    // Time has to pass, so that every call in flight is over its limit when the run wakes up.
    std::thread::sleep(Duration::from_millis(1500));
    signal("CONT", child.id());
    let ran = ended(child);
    assert_eq!(ran.code, 0, "{}", ran.talk);
    assert!(fixture.calls() <= 200 + 2 * 8, "{} calls", fixture.calls());
}
