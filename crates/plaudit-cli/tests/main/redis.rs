//! Judgments shared over Redis: every verb that takes `--state`, against a real server.

use crate::crash::{POINTWISE, ended, ledger, rollouts, start};
use crate::judge_sim::Sim;
use crate::redis_server::Server;
use crate::support::{Folder, Ran, command, run};
use crate::timing::until;
use serde_json::Value;
use std::collections::BTreeSet;

/// A password that must be seen nowhere.
const PASSWORD: &str = "s3cr3t-of-this-test";

/// Rollouts, a recipe, a judge with a ledger, and a Redis.
struct Fixture {
    folder: Folder,
    sim: Sim,
    server: Server,
}

impl Fixture {
    fn new(name: &str, count: usize, latency: &str, flags: &[&str]) -> Option<Self> {
        let server = Server::start(flags)?;
        let folder = Folder::new(&format!("redis-{name}"));
        folder.file("rows.jsonl", rollouts(count));
        folder.file("recipe.yaml", POINTWISE);
        let sim = Sim::start(&["--latency", latency, "--ledger", &folder.path("ledger")]);
        Some(Self { folder, sim, server })
    }

    /// The arguments of a verb over the rollouts.
    fn arguments(&self, verb: &str, state: &str, more: &[&str]) -> Vec<String> {
        let [rows, recipe] = ["rows.jsonl", "recipe.yaml"].map(|name| self.folder.path(name));
        let own = [verb, &rows, "--recipe", &recipe, "--set", &self.sim.url(), "--state", state];
        own.iter().chain(more).map(|word| (*word).to_owned()).collect()
    }

    fn run(&self, verb: &str, state: &str, more: &[&str]) -> Ran {
        run(&words(&self.arguments(verb, state, more)))
    }

    fn calls(&self) -> usize {
        ledger(&self.folder, "ledger").len()
    }
}

fn words(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

#[test]
fn a_run_is_resumed_replayed_and_explained_from_redis() {
    let Some(fixture) = Fixture::new("verbs", 40, "0", &["--requirepass", PASSWORD, "--appendonly", "yes"])
    else {
        return;
    };
    let state = format!("redis://:{PASSWORD}@127.0.0.1:{}/3", fixture.server.port);
    let ran = run(&["replay", "--state", &state]);
    assert!(ran.code == 2 && ran.talk.contains("holds no run"), "{}", ran.talk);
    let mut talk = ran.talk;
    let summary = fixture.folder.path("summary.json");
    let first = fixture.run("score", &state, &["--summary", &summary]);
    assert_eq!((first.code, fixture.calls()), (0, 40), "{}", first.talk);
    assert!(!first.talk.contains("warning"), "{}", first.talk);
    let second = fixture.run("score", &state, &[]);
    assert_eq!((second.code, fixture.calls()), (0, 40), "{}", second.talk);
    assert!(second.talk.contains("going on with 40 judgments"), "{}", second.talk);
    assert!(second.out == first.out);
    let planned = fixture.run("plan", &state, &["--json"]);
    let plan: Value = serde_json::from_str(&planned.out).unwrap_or_else(|_| panic!("{}", planned.talk));
    assert_eq!((&plan["components"][0]["calls"], &plan["components"][0]["known"]), (&40.into(), &40.into()));
    let ranked = fixture.run("rank", &state, &["--keep", "1"]);
    assert_eq!((ranked.code, ranked.out.lines().count(), fixture.calls()), (0, 10, 40), "{}", ranked.talk);
    let replayed = run(&["replay", "--state", &state]);
    assert!(replayed.code == 0 && replayed.out == first.out, "{}", replayed.talk);
    let explained = run(&["explain", "r7", "--state", &state, "--json"]);
    let told: Value = serde_json::from_str(&explained.out).unwrap_or_else(|_| panic!("{}", explained.talk));
    assert_eq!(told["exchanges"].as_array().unwrap().len(), 1, "{told}");
    assert!(told["exchanges"][0]["reply"].is_string(), "{told}");
    for ran in [&first, &second, &planned, &ranked, &replayed, &explained] {
        talk += &ran.talk;
        talk += &ran.out;
    }
    talk += &fixture.folder.read("summary.json");
    let kept = String::from_utf8_lossy(
        &std::fs::read(fixture.server.folder.join("appendonlydir/appendonly.aof.1.incr.aof")).unwrap(),
    )
    .into_owned();
    assert!(kept.contains("plaudit:1:run") && kept.contains("r39"));
    assert!(!talk.contains(PASSWORD) && !kept.contains(PASSWORD), "a password is shown");
}

#[test]
fn two_processes_at_once_buy_every_judgment_once() {
    let Some(fixture) = Fixture::new("at-once", 600, "20ms", &[]) else { return };
    let arguments = fixture.arguments("score", &fixture.server.url(), &[]);
    let both = [start(&words(&arguments)), start(&words(&arguments))].map(ended);
    assert_eq!(both.each_ref().map(|ran| ran.code), [0, 0], "{}{}", both[0].talk, both[1].talk);
    assert!(both[0].out == both[1].out);
    let asked: Vec<String> = ledger(&fixture.folder, "ledger").into_iter().map(|(key, _)| key).collect();
    let distinct: BTreeSet<&String> = asked.iter().collect();
    assert_eq!((asked.len(), distinct.len()), (600, 600));
    assert!(both[0].talk.contains("warning: Redis does not write"), "{}", both[0].talk);
}

#[test]
fn dead_redis_stops_the_run_and_a_resume_goes_on() {
    let Some(mut fixture) = Fixture::new("dies", 2000, "20ms", &["--appendonly", "yes"]) else { return };
    let arguments = fixture.arguments("score", &fixture.server.url(), &[]);
    let child = start(&words(&arguments));
    until("the judge answers", || fixture.calls() >= 100);
    fixture.server.kill();
    let asked = fixture.calls();
    let ran = ended(child);
    // Eight are in flight at once, and may still arrive at the judge.
    assert!(fixture.calls() <= asked + 8, "a judge was asked without a record of it");
    assert_eq!(ran.code, 1, "{}", ran.talk);
    assert!(
        ran.talk.contains("error: Redis at 127.0.0.1") && ran.talk.contains("(journal.unreachable)"),
        "{}",
        ran.talk
    );
    let rows: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let lost = rows.iter().filter(|row| row["reason"]["code"] == "engine.journal_lost").count();
    let scored = rows.iter().filter(|row| row["total"].is_number()).count();
    assert_eq!((rows.len(), lost + scored), (2000, 2000), "{}", ran.talk);
    assert!(lost > 1500 && scored > 50, "{lost} lost, {scored} scored");

    fixture.server.again();
    let ran = run(&words(&arguments));
    assert_eq!(ran.code, 0, "{}", ran.talk);
    let keys: Vec<String> = ledger(&fixture.folder, "ledger").into_iter().map(|(key, _)| key).collect();
    let distinct: BTreeSet<&String> = keys.iter().collect();
    // Eight were in flight.
    assert!(distinct.len() == 2000 && keys.len() <= 2008, "{} calls", keys.len());
    assert_eq!(fixture.server.ask(&[b"GET", b"plaudit:1:judgments"]), b"2000");
}

#[test]
fn a_redis_that_cannot_be_used_is_said_before_anything_is_asked() {
    let Some(mut fixture) = Fixture::new("refused", 4, "0", &["--requirepass", PASSWORD]) else { return };
    let at = format!("127.0.0.1:{}", fixture.server.port);
    let wrong = format!("redis://:{PASSWORD}-not@{at}");
    for (state, code) in [(wrong.as_str(), "journal.login"), ("redis://nowhere:none", "journal.address")] {
        for verb in ["score", "plan"] {
            let ran = fixture.run(verb, state, &[]);
            assert!(ran.code == 2 && ran.talk.contains(code), "{}", ran.talk);
            assert!(!ran.talk.contains(PASSWORD), "{}", ran.talk);
        }
    }
    fixture.server.kill();
    let ran = fixture.run("score", &format!("redis://:{PASSWORD}@{at}"), &[]);
    assert!(ran.code == 2 && ran.talk.contains("journal.unreachable"), "{}", ran.talk);
    assert!(!ran.talk.contains(PASSWORD), "{}", ran.talk);
    assert_eq!(fixture.calls(), 0);
}

#[test]
fn redis_over_tls_needs_a_trusted_certificate() {
    let certificates = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/certificates");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (good, authority) = (format!("{certificates}/good.pem"), format!("{certificates}/authority.pem"));
    let port = port.to_string();
    let tls = ["--tls-port", &port, "--tls-cert-file", &good, "--tls-key-file", &good, "--tls-ca-cert-file"];
    let flags = [&tls[..], &[&authority, "--tls-auth-clients", "no"]].concat();
    let Some(fixture) = Fixture::new("tls", 4, "0", &flags) else { return };
    let arguments = fixture.arguments("score", &format!("rediss://127.0.0.1:{port}"), &["--quiet"]);
    let known = command(&words(&arguments)).env("SSL_CERT_FILE", &authority).output().unwrap();
    let said = String::from_utf8(known.stderr).unwrap();
    assert_eq!((known.status.code(), fixture.calls()), (Some(0), 4), "{said}");
    let unknown = command(&words(&arguments)).output().unwrap();
    let said = String::from_utf8(unknown.stderr).unwrap();
    assert!(unknown.status.code() == Some(2) && said.contains("journal.unreachable"), "{said}");
}
