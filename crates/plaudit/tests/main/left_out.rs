//! Tests that this machine cannot run, for want of a program or of a tier of the sandbox: `make test` ends with a line for each.

use std::io::Write as _;

/// Says that a test, or a part of one, is left out, in a line that the last lines of `make test` repeat. Fails with PLAUDIT_TEST_ALL=1:
/// then nothing may be left out.
pub(crate) fn left_out(what: &str, why: &str) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("{name}: {what}: {}", why.lines().next().unwrap_or(""));
    assert!(std::env::var("PLAUDIT_TEST_ALL").as_deref() != Ok("1"), "may not be left out: {line}\n{why}");
    eprintln!("left out: {line}");
    if let Some(path) = std::env::var_os("PLAUDIT_LEFT_OUT") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}
