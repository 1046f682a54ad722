//! Memory use of `plaudit score`: flat when the input grows.

use crate::support::{Folder, LENGTH, command};
use std::io::Write as _;
use std::process::Stdio;

/// The most memory, in kilobytes, that a run over so many megabytes took.
#[cfg(target_os = "linux")]
fn peak(folder: &Folder, megabytes: usize) -> u64 {
    let recipe = folder.file("recipe.yaml", LENGTH);
    let mut child = command(&["score", "-", "-r", &recipe, "--out", &folder.path("out.jsonl"), "-q"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let response = "word ".repeat(190);
    for at in 0..megabytes * 1000 {
        let group = at / 8;
        writeln!(stdin, r#"{{"id":"r{at}","group":"g{group}","response":"{response}"}}"#).unwrap();
    }
    // The pipe is short, so by now all but the last block has been read and scored.
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn eight_times_the_input_takes_no_more_memory() {
    let folder = Folder::new("memory");
    let (small, large) = (peak(&folder, 8), peak(&folder, 64));
    assert!(large < small + 32 * 1024, "8 MB took {small} kB, 64 MB took {large} kB");
    assert!(large < 300 * 1024, "64 MB took {large} kB");
}
