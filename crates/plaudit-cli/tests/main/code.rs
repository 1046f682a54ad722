//! `code_execution` from the command: what it prints, and a host where nothing isolates programs.

use crate::left_out::leave_out;
use crate::support::{Folder, installed, run};
use std::process::Command;

const RECIPE: &str = "name: tests\ncomponents:\n  tests: { reward: code_execution }\n";
const ROW: &str =
    r#"{"id": "a", "response": "```python\nprint(input())\n```", "tests": [{"input": "7", "output": "7"}]}"#;

/// Starts a program under a filter that refuses Landlock. Together with a user namespace that has no room for another, no
/// isolation is left.
const REFUSE_LANDLOCK: &str = "
import ctypes, os, platform, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
create_ruleset, enosys = 444, 38
code = [(0x20, 0, 0, 0), (0x15, 0, 1, create_ruleset), (0x06, 0, 0, 0x00050000 | enosys), (0x06, 0, 0, 0x7FFF0000)]
filters = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *one) for one in code))
program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', len(code), ctypes.addressof(filters)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
";

/// Runs the command on a host without a sandbox; none where such a host cannot be simulated.
fn without_sandbox(folder: &Folder, arguments: &[&str]) -> Option<std::process::Output> {
    let simulated = Command::new("unshare").args(["-Urm", "true"]).output();
    if !installed("python3") {
        return None;
    }
    if !simulated.is_ok_and(|run| run.status.success()) {
        leave_out("no simulated host without a sandbox, for want of unshare or of user namespaces");
        return None;
    }
    let script = folder.file("refuse.py", REFUSE_LANDLOCK);
    let line = "echo 0 > /proc/sys/user/max_user_namespaces; exec python3 \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", line, "sh", &script, env!("CARGO_BIN_EXE_plaudit")]).args(arguments);
    Some(command.output().unwrap())
}

#[test]
fn large_integers_of_a_line_are_compared_exactly() {
    let folder = Folder::new("large-integers");
    let tests =
        r#"{"fn_name": "f", "inputs": [[100000000000000000001]], "outputs": [100000000000000000003]}"#;
    let row = |field: &str, tests: &str, program: &str| {
        format!(r#"{{"response": "```python\ndef f(x): return {program}\n```", {field}: {tests}}}"#)
    };
    let mut rows = String::new();
    for field in [r#""inputs_outputs""#, r#""reference""#, r#""verifier_metadata": {"unit_tests""#] {
        let (tests, close) = match field {
            r#""reference""# => (serde_json::to_string(tests).unwrap(), ""),
            field => (tests.to_owned(), if field.contains('{') { "}" } else { "" }),
        };
        for program in ["x + 2 if x & 1 else 0", "x + 1"] {
            rows += &format!("{}\n", row(field, &format!("{tests}{close}"), program));
        }
    }
    let (rows, recipe) = (folder.file("rows.jsonl", &rows), folder.file("tests.yaml", RECIPE));
    let scored = run(&["score", &rows, "--recipe", &recipe]);
    let lines = scored.out;
    let totals: Vec<bool> = lines.lines().map(|line| line.contains(r#""total":1.0"#)).collect();
    assert_eq!(totals, [true, false, true, false, true, false], "{lines}");
}

#[test]
fn doctor_runs_reference_solutions() {
    let folder = Folder::new("solutions");
    let rows = [
        r#"{"id": "a", "prompt": "def f(x):\n", "canonical_solution": "    return x + 1\n", "test": "def check(candidate):\n    assert candidate(1) == 2\n", "entry_point": "f"}"#,
        r#"{"id": "b", "code": "def f(x): return x", "test_list": ["assert f(1) == 1", "assert f(2) == 3"]}"#,
        r#"{"id": "c", "solutions": "[\"print(input())\"]", "input_output": "{\"inputs\": [\"1\"], \"outputs\": [\"1\"]}"}"#,
        r#"{"id": "d", "tests": [{"input": "1", "output": "1"}]}"#,
    ];
    let (rows, recipe) = (folder.file("rows.jsonl", rows.join("\n")), folder.file("tests.yaml", RECIPE));
    let told = run(&["doctor", &rows, "--recipe", &recipe]).out;
    assert!(told.contains("1 of 3 do not pass") && told.contains("b: wrong"), "{told}");
}

#[test]
fn without_a_sandbox_programs_are_refused() {
    let folder = Folder::new("no-sandbox");
    let (rows, recipe) = (folder.file("rows.jsonl", ROW), folder.file("tests.yaml", RECIPE));
    let Some(refused) = without_sandbox(&folder, &["score", &rows, "--recipe", &recipe]) else { return };
    let talk = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{talk}");
    assert!(refused.stdout.is_empty());
    for part in [
        "sandbox.unavailable",
        "plaudit doctor",
        "namespaces, namespaces: refused",
        "landlock, Landlock: refused",
        "Needs Linux 5.13",
    ] {
        assert!(talk.contains(part), "no {part:?} in {talk}");
    }

    let doctor = without_sandbox(&folder, &["doctor", "--all"]).unwrap();
    let text = String::from_utf8_lossy(&doctor.stdout);
    assert!(
        text.contains("warn  sandbox                 none: rewards that run programs are refused"),
        "{text}"
    );
    assert!(text.contains("max_user_namespaces"), "{text}");
    assert_eq!(doctor.status.code(), Some(0), "rules and judges need no sandbox: {text}");

    let rules = without_sandbox(&folder, &["score", &rows, "--recipe", "quickstart", "--quiet"]).unwrap();
    assert_eq!(rules.status.code(), Some(0), "{}", String::from_utf8_lossy(&rules.stderr));
}

#[test]
fn an_operator_may_do_without_and_results_say_so() {
    let folder = Folder::new("unsafe-no-sandbox");
    let (rows, recipe) = (folder.file("rows.jsonl", ROW), folder.file("tests.yaml", RECIPE));
    let arguments = ["score", &rows, "--recipe", &recipe, "--unsafe-no-sandbox"];
    if let Some(host) = without_sandbox(&folder, &arguments) {
        let (out, talk) = (String::from_utf8_lossy(&host.stdout), String::from_utf8_lossy(&host.stderr));
        assert_eq!(host.status.code(), Some(0), "{talk}");
        assert!(out.contains(r#""total":1.0"#) && out.contains(r#""sandbox":"none""#), "{out}");
        assert!(talk.contains("nothing isolates the programs of responses"), "{talk}");
    }
    // Where there is a sandbox, the flag changes nothing.
    let ran = run(&arguments);
    assert_eq!(ran.code, 0, "{}", ran.talk);
    assert!(!ran.out.contains(r#""sandbox":"none""#), "{}", ran.out);
    assert!(!ran.talk.contains("nothing isolates"), "{}", ran.talk);
}
