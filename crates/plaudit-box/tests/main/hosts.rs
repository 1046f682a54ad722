//! Hosts that refuse a layer, simulated: the sandbox takes the next best isolation and says why.

use crate::leave_out;
use plaudit_box::{Options, Sandbox};
use std::process::Command;

/// Not a test of its own: prints the report inside a simulated host.
#[test]
#[ignore = "started by the tests of this file"]
fn report_of_a_simulated_host() {
    println!("{}", Sandbox::probe(&Options::default()));
}

/// The report on a host that a script of the shell prepares as root of a user namespace, or `None` where there is none. The
/// options of unshare are for further namespaces.
fn report_after(script: &str, options: &[&str]) -> Option<String> {
    let works = |arguments: &[&str]| {
        Command::new("unshare").args(arguments).output().is_ok_and(|run| run.status.success())
    };
    if !works(&["-Urm", "true"]) {
        leave_out("this host refuses user namespaces, or has no unshare");
        return None;
    }
    let test = std::env::current_exe().unwrap();
    let line = format!(
        "{script}; exec {} --ignored --exact --nocapture hosts::report_of_a_simulated_host",
        test.display()
    );
    let output =
        Command::new("unshare").arg("-Urm").args(options).args(["sh", "-c", &line]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    Some(text)
}

#[test]
fn the_only_user_of_a_container_is_ordinary() {
    let Some(report) = report_after("true", &[]) else { return };
    assert!(report.contains("sandbox: namespaces"), "{report}");
    assert!(report.contains("boxes belong to the engine's user"), "{report}");
}

/// As in a container that has no init: a box with namespaces is process 1 as well.
#[test]
fn an_engine_that_is_process_1_has_namespaces() {
    let Some(report) = report_after("true", &["--pid", "--fork", "--mount-proc"]) else { return };
    assert!(report.contains("sandbox: namespaces"), "{report}");
    assert!(report.contains("ok  namespaces, signal the engine: stopped"), "{report}");
}

#[test]
fn without_namespaces_landlock_is_taken() {
    let Some(report) = report_after("echo 0 > /proc/sys/user/max_user_namespaces", &[]) else { return };
    assert!(report.contains("sandbox: landlock"), "{report}");
    assert!(report.contains("no  namespaces, namespaces: refused"), "{report}");
    assert!(report.contains("max_user_namespaces"), "{report}");
}
