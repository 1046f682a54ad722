//! Test support: runs the command, folders of one test, and generated rollouts.

use crate::left_out::leave_out;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A recipe that is fast, so that the tests are about the command.
pub(crate) const LENGTH: &str = "name: length\ncomponents: { length: { reward: length_penalty } }\n";
/// A recipe that compares the rollouts of a group.
pub(crate) const COMPARING: &str =
    "name: comparing\ncomponents: { kimi: { reward: kimi.length, correct: extra } }\n";

/// What a run gave.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) talk: String,
}

/// A folder of one test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        std::fs::write(self.0.join(name), bytes).unwrap();
        self.path(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }

    /// The names of all files in it.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether a program is on this machine; says so where it is not.
pub(crate) fn installed(program: &str) -> bool {
    let found =
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        leave_out(&format!("no {program}: .ci/setup installs it"));
    }
    found
}

/// The command, in the repository's root and without a terminal.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plaudit"));
    command.args(arguments).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command.env_remove("NO_COLOR").env("COLUMNS", "100");
    command
}

/// Runs the command.
pub(crate) fn run(arguments: &[&str]) -> Ran {
    feed(arguments, |_| {})
}

/// Runs the command with something on stdin.
pub(crate) fn feed(arguments: &[&str], write: impl FnOnce(&mut dyn Write) + Send) -> Ran {
    let mut child = command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || write(&mut stdin));
        child.wait_with_output().unwrap()
    });
    Ran {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        talk: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Many rollouts in groups, with long and short responses, as JSON lines.
pub(crate) fn rollouts(groups: usize, size: usize) -> Vec<String> {
    let line = |group: usize, member: usize| {
        let response = "word ".repeat((group * 7 + member * 31) % 97);
        let right = (group + member).is_multiple_of(3);
        format!(
            r#"{{"id":"g{group}-{member}","group":"g{group}","prompt":"q{group}","response":"{response}","correct":{right}}}"#
        )
    };
    (0..groups).flat_map(|group| (0..size).map(move |member| line(group, member))).collect()
}

/// The same lines in another order, the same in every run.
pub(crate) fn shuffled(lines: &[String]) -> Vec<String> {
    let mut keyed: Vec<(u64, &String)> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| ((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29), line))
        .collect();
    keyed.sort();
    keyed.into_iter().map(|(_, line)| line.clone()).collect()
}
