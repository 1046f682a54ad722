//! Programs against their tests in a real sandbox: RM-Gallery's vectors, every form of tests, every language that is installed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail by panicking and print figures"
)]

mod attacks;
mod forgeries;
mod golden;
mod honest;
mod languages;
mod ordinary_user;
mod scripts;
mod values;

use plaudit_box::{Limits, Options, Sandbox, Tier};
use plaudit_code::{Credit, Execution, Languages, TestResult, Tests, Verdict, execute};
use serde_json::Value;
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

pub(crate) static LANGUAGES: LazyLock<Languages> = LazyLock::new(Languages::installed);

/// Says that the running test, or a part of it, is left out, and fails if nothing may be.
pub(crate) fn leave_out(reason: &str) {
    tell_left_out(reason);
    assert!(std::env::var("PLAUDIT_TEST_ALL").as_deref() != Ok("1"), "left out: {reason}");
}

/// Says so once, on standard error and in the file that `PLAUDIT_LEFT_OUT` names.
pub(crate) fn tell_left_out(reason: &str) {
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let line = format!("{}: {reason}\n", std::thread::current().name().unwrap_or("main"));
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if told.contains(&line) {
        return;
    }
    // Past the harness, which keeps the output of a test that passes.
    std::io::stderr().write_all(format!("left out: {line}").as_bytes()).unwrap();
    let file = std::env::var_os("PLAUDIT_LEFT_OUT")
        .and_then(|path| std::fs::OpenOptions::new().create(true).append(true).open(path).ok());
    // An ordinary user may not open the file of root; it has the line above.
    if let Some(mut file) = file {
        file.write_all(line.as_bytes()).unwrap();
    }
    told.push(line);
}

/// The sandboxes of this host with their languages; says which tier is missing, for the test that asks.
pub(crate) fn sandboxes() -> &'static [(Sandbox, Languages)] {
    for tier in [Tier::A, Tier::B] {
        if !SANDBOXES.iter().any(|(sandbox, _)| sandbox.tier() == tier) {
            leave_out(match tier {
                Tier::A => "this host refuses user namespaces",
                _ => "this host has no Landlock",
            });
        }
    }
    &SANDBOXES
}

/// A sandbox of each tier that this host has, with its languages.
static SANDBOXES: LazyLock<Vec<(Sandbox, Languages)>> = LazyLock::new(|| {
    let open = |tier| {
        let options =
            Options { tier: Some(tier), read_only: LANGUAGES.folders(), slots: 4, ..Options::default() };
        Sandbox::open(options).inspect_err(|report| println!("no tier {tier}:\n{report}"))
    };
    let opened = [Tier::A, Tier::B].into_iter().filter_map(|tier| open(tier).ok());
    opened
        .map(|sandbox| (LANGUAGES.usable_in(&sandbox), sandbox))
        .map(|(languages, sandbox)| (sandbox, languages))
        .collect()
});

pub(crate) fn limits() -> Limits {
    Limits { cpu: Duration::from_secs(2), wall: Some(Duration::from_secs(20)), ..Limits::default() }
}

/// Runs a Python program against tests in each tier.
pub(crate) fn python(code: &str, tests: &Value) -> Vec<Execution> {
    python_within(&limits(), code, tests)
}

/// The same, with limits.
pub(crate) fn python_within(limits: &Limits, code: &str, tests: &Value) -> Vec<Execution> {
    let tests = Tests::parse(tests).unwrap();
    let run = |(sandbox, languages): &(Sandbox, Languages)| {
        let python = languages.find("python").unwrap();
        patiently(limits, |limits| execute(sandbox, python, code, &tests, limits, Credit::Partial))
    };
    sandboxes().iter().map(run).collect()
}

/// Runs something again with twice the time on the clock while the host is overloaded, as it is where all tests of the
/// workspace run at once.
pub(crate) fn patiently(limits: &Limits, run: impl Fn(&Limits) -> Execution) -> Execution {
    let overloaded = |result: &TestResult| result.message.contains("the host was overloaded");
    let mut limits = limits.clone();
    for _ in 0..5 {
        let execution = run(&limits);
        if !execution.results.iter().any(overloaded) {
            return execution;
        }
        limits.wall = Some(limits.wall() * 2);
    }
    run(&limits)
}

pub(crate) fn verdicts(execution: &Execution) -> Vec<Verdict> {
    execution.results.iter().map(|result| result.verdict).collect()
}
