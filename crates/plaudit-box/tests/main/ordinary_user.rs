//! The same tests as an ordinary user, where they are run by root.

use crate::leave_out;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Set for the process that runs as an ordinary user.
const INSIDE: &str = "PLAUDIT_BOX_ORDINARY_USER";

#[test]
fn everything_as_an_ordinary_user() {
    as_an_ordinary_user(&[]);
}

#[test]
#[ignore = "takes minutes: make test-box"]
fn ordinary_user_in_full() {
    as_an_ordinary_user(&["--ignored", "in_full"]);
}

fn as_an_ordinary_user(arguments: &[&str]) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    if !root || std::env::var(INSIDE).is_ok() {
        return;
    }
    if Command::new("setpriv").arg("--version").output().is_err() {
        return leave_out("setpriv is not installed");
    }
    // Where it can be read by everybody, unlike the folder it was built in.
    let folder = std::env::temp_dir().join(format!("plaudit-box-test-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.join("tests");
    // By another process: a box of another test that is just being made would hold our descriptor, and the file be busy.
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status().unwrap();
    assert!(copied.success());
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(&program).current_dir("/");
    command.args(["--nocapture", "--test-threads=2"]).args(arguments).env(INSIDE, "1");
    let output = command.output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    // Indented, so that whoever reads the output takes none of these lines for a test of its own.
    for text in [output.stdout, output.stderr] {
        for line in String::from_utf8_lossy(&text).lines() {
            println!("    {line}");
        }
    }
    assert!(output.status.success());
}
