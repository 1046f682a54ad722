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
#[path = "../../../plaudit/tests/main/left_out.rs"]
mod left_out;
mod ordinary_user;
mod scripts;
mod values;

use left_out::leave_out;
use plaudit_box::{Isolation, Limits, Options, Sandbox};
use plaudit_code::{Credit, Execution, Languages, TestResult, Tests, Verdict, execute};
use serde_json::Value;
use std::sync::LazyLock;
use std::time::Duration;

pub(crate) static LANGUAGES: LazyLock<Languages> = LazyLock::new(Languages::installed);

/// The sandboxes of this host with their languages; says which isolation is missing, for the test that asks.
pub(crate) fn sandboxes() -> &'static [(Sandbox, Languages)] {
    for isolation in [Isolation::Namespaces, Isolation::Landlock] {
        if !SANDBOXES.iter().any(|(sandbox, _)| sandbox.isolation() == isolation) {
            leave_out(match isolation {
                Isolation::Namespaces => "this host refuses user namespaces",
                _ => "this host has no Landlock",
            });
        }
    }
    &SANDBOXES
}

/// A sandbox of each isolation that this host has, with its languages.
static SANDBOXES: LazyLock<Vec<(Sandbox, Languages)>> = LazyLock::new(|| {
    let open = |isolation| {
        let options = Options {
            isolation: Some(isolation),
            read_only: LANGUAGES.folders(),
            slots: 4,
            ..Options::default()
        };
        Sandbox::open(options).inspect_err(|report| println!("no isolation {isolation}:\n{report}"))
    };
    let opened =
        [Isolation::Namespaces, Isolation::Landlock].into_iter().filter_map(|isolation| open(isolation).ok());
    opened
        .map(|sandbox| (LANGUAGES.usable_in(&sandbox), sandbox))
        .map(|(languages, sandbox)| (sandbox, languages))
        .collect()
});

pub(crate) fn limits() -> Limits {
    Limits { cpu: Duration::from_secs(2), wall: Some(Duration::from_secs(20)), ..Limits::default() }
}

/// Runs a Python program against tests in each isolation.
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
