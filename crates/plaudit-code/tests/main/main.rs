//! Programs against their tests in a real sandbox: RM-Gallery's vectors, every form of tests, every language that is installed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail by panicking and print figures"
)]

mod attacks;
mod golden;
mod languages;

use plaudit_box::{Limits, Options, Sandbox};
use plaudit_code::{Credit, Execution, Languages, Tests, Verdict, execute};
use serde_json::Value;
use std::sync::LazyLock;
use std::time::Duration;

pub(crate) static LANGUAGES: LazyLock<Languages> = LazyLock::new(Languages::installed);

/// The best sandbox of this host; where it has none, says so, and fails if nothing may be left out.
pub(crate) static SANDBOX: LazyLock<Option<Sandbox>> = LazyLock::new(|| {
    let options = Options { read_only: LANGUAGES.folders(), slots: 4, ..Options::default() };
    Sandbox::open(options)
        .inspect_err(|report| {
            println!("== left out: the tests of code, for want of a sandbox:\n{report}");
            assert!(std::env::var("PLAUDIT_TEST_ALL").as_deref() != Ok("1"), "no sandbox");
        })
        .ok()
});

pub(crate) fn limits() -> Limits {
    Limits { cpu: Duration::from_secs(2), wall: Some(Duration::from_secs(10)), ..Limits::default() }
}

/// Runs a Python program against tests. `None` where there is no sandbox.
pub(crate) fn python(code: &str, tests: &Value) -> Option<Execution> {
    let sandbox = SANDBOX.as_ref()?;
    let tests = Tests::parse(tests).unwrap();
    Some(execute(sandbox, LANGUAGES.find("python").unwrap(), code, &tests, &limits(), Credit::Partial))
}

pub(crate) fn verdicts(execution: &Execution) -> Vec<Verdict> {
    execution.results.iter().map(|result| result.verdict).collect()
}
