//! Tests that this machine cannot run, for want of a program or of an isolation of the sandbox: `make test` ends with a line for each.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Says that the running test, or a part of it, is left out. Fails with PLAUDIT_TEST_ALL=1: then nothing may be.
pub(crate) fn leave_out(reason: &str) {
    tell_left_out(reason);
    assert!(std::env::var("PLAUDIT_TEST_ALL").as_deref() != Ok("1"), "may not be left out: {reason}");
}

/// Says so once, on standard error and in the file that `PLAUDIT_LEFT_OUT` names, whose lines `make test` repeats at its end.
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
