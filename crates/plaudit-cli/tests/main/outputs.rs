//! Output files: inputs are never overwritten, links stay, and a run that is stopped leaves nothing behind.

use crate::support::{Folder, LENGTH, Ran, command, feed, run};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};

const LINES: &str =
    "{\"id\":\"a\",\"response\":\"one answer\"}\n{\"id\":\"b\",\"response\":\"another answer\"}\n";

/// A run that must be refused and must leave the file as it was.
fn refused(folder: &Folder, kept: &str, arguments: &[&str]) -> String {
    let (before, names) = (std::fs::read(folder.path(kept)).unwrap(), folder.names());
    let ran = run(arguments);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments:?} {}", ran.talk);
    assert!(std::fs::read(folder.path(kept)).unwrap() == before, "{arguments:?} changed {kept}");
    assert_eq!(folder.names(), names, "{arguments:?}");
    ran.talk
}

#[test]
fn an_output_over_the_input_is_refused() {
    let folder = Folder::new("over-input");
    let (recipe, input) = (folder.file("recipe.yaml", LENGTH), folder.file("in.jsonl", LINES));
    let (linked, hard) = (folder.path("link.jsonl"), folder.path("hard.jsonl"));
    symlink("in.jsonl", &linked).unwrap();
    std::fs::hard_link(&input, &hard).unwrap();
    std::fs::create_dir(folder.path("deep")).unwrap();
    let dotted = folder.path("deep/../in.jsonl");
    for out in [&input, &linked, &hard, &dotted] {
        for flag in ["--out", "--summary"] {
            let said = refused(&folder, "in.jsonl", &["score", &input, "-r", &recipe, flag, out]);
            assert!(said.contains(flag) && said.contains("is also the input"), "{said}");
        }
        refused(&folder, "in.jsonl", &["rank", &input, "--keep", "1", "-r", &recipe, "--out", out]);
        refused(&folder, "in.jsonl", &["score", out, "-r", &recipe, "--out", &input]);
    }
    let said = refused(&folder, "recipe.yaml", &["score", &input, "-r", &recipe, "--out", &recipe]);
    assert!(said.contains("is also the recipe"), "{said}");
    let both = folder.path("both.jsonl");
    let said = refused(
        &folder,
        "in.jsonl",
        &["score", &input, "-r", &recipe, "--out", &both, "--summary", &folder.path("./both.jsonl")],
    );
    assert!(said.contains("--summary") && said.contains("--out"), "{said}");
    let said = refused(&folder, "in.jsonl", &["score", &input, "-r", &recipe, "--summary", "-"]);
    assert!(said.contains("--summary") && said.contains("--out"), "{said}");
    // A device is no file that could be lost.
    let ran = run(&["score", &input, "-r", &recipe, "--out", "/dev/null", "--summary", "/dev/null", "-q"]);
    assert_eq!((ran.code, ran.talk.as_str()), (0, ""));
}

#[test]
fn a_table_is_not_overwritten_by_its_results() {
    let folder = Folder::new("over-table");
    let (recipe, table) = (folder.file("recipe.yaml", LENGTH), folder.path("in.parquet"));
    crate::parquet_files::write(&table, 20);
    refused(&folder, "in.parquet", &["score", &table, "-r", &recipe, "--out", &table]);
    refused(&folder, "in.parquet", &["score", &table, "-r", &recipe, "--out", &table, "--format", "jsonl"]);
}

#[test]
fn redirections_over_the_input_are_refused() {
    let folder = Folder::new("over-pipe");
    let (recipe, input) = (folder.file("recipe.yaml", LENGTH), folder.file("in.jsonl", LINES));
    let plaudit = command(&[]).get_program().to_str().unwrap().to_owned();
    let shell = |line: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", line, "sh", &plaudit, &input, &recipe]).stdin(Stdio::null());
        let output = shell.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    for line in [
        "\"$1\" score - -r \"$3\" --out \"$2\" < \"$2\"",
        "\"$1\" score \"$2\" -r \"$3\" >> \"$2\"",
        "\"$1\" score /dev/stdin -r \"$3\" --out \"$2\" < \"$2\"",
        "\"$1\" score \"$2\" -r \"$3\" --out /dev/stdout >> \"$2\"",
    ] {
        let (code, said) = shell(line);
        assert!(code == 2 && said.contains("is also the input"), "{line}: {code} {said}");
        assert_eq!(folder.read("in.jsonl"), LINES, "{line}");
    }
}

#[test]
fn the_files_of_a_state_are_not_overwritten() {
    let folder = Folder::new("over-state");
    let (recipe, input) = (folder.file("recipe.yaml", LENGTH), folder.file("in.jsonl", LINES));
    let state = folder.path("state");
    assert_eq!(run(&["score", &input, "-r", &recipe, "--state", &state, "-q"]).code, 0);
    for name in ["state/rollouts.jsonl", "state/run.json", "state/judgments.log"] {
        let file = folder.path(name);
        refused(&folder, name, &["replay", "--state", &state, "--out", &file]);
        refused(&folder, name, &["replay", "--state", &state, "--summary", &file, "--out", "/dev/null"]);
        refused(&folder, name, &["score", &input, "-r", &recipe, "--state", &state, "--out", &file]);
    }
    // A data set of that name is not replaced by the copy that the state keeps.
    std::fs::create_dir(folder.path("mine")).unwrap();
    let own = folder.file("mine/rollouts.jsonl", LINES);
    let mine = folder.path("mine");
    let said = refused(&folder, "mine/rollouts.jsonl", &["score", &own, "-r", &recipe, "--state", &mine]);
    assert!(said.contains("is also the input"), "{said}");
}

#[test]
fn a_link_as_output_stays_a_link() {
    let folder = Folder::new("link-out");
    let (recipe, input) = (folder.file("recipe.yaml", LENGTH), folder.file("in.jsonl", LINES));
    std::fs::create_dir(folder.path("deep")).unwrap();
    for (link, target) in [("there.jsonl", "deep/there.jsonl"), ("dangling.jsonl", "deep/new.jsonl")] {
        symlink(target, folder.path(link)).unwrap();
    }
    symlink("there.jsonl", folder.path("twice.jsonl")).unwrap();
    folder.file("deep/there.jsonl", "old");
    for (link, target) in [
        ("there.jsonl", "deep/there.jsonl"),
        ("dangling.jsonl", "deep/new.jsonl"),
        ("twice.jsonl", "deep/there.jsonl"),
    ] {
        let ran = run(&["score", &input, "-r", &recipe, "-q", "--out", &folder.path(link)]);
        assert_eq!((ran.code, ran.talk.as_str()), (0, ""));
        assert!(std::fs::symlink_metadata(folder.path(link)).unwrap().is_symlink(), "{link}");
        assert_eq!(folder.read(target).lines().count(), 2, "{link}");
        std::fs::remove_file(folder.path(target)).unwrap();
    }
    assert_eq!(std::fs::read_dir(folder.path("deep")).unwrap().count(), 0, "no part is left");
    symlink("round.jsonl", folder.path("round.jsonl")).unwrap();
    let ran = run(&["score", &input, "-r", &recipe, "--out", &folder.path("round.jsonl")]);
    assert_eq!(ran.code, 2, "{}", ran.talk);
}

#[test]
fn only_formats_that_can_be_written_are_accepted() {
    let folder = Folder::new("out-formats");
    let (recipe, input) = (folder.file("recipe.yaml", LENGTH), folder.file("in.jsonl", LINES));
    for name in ["out.csv", "out.CSV", "out.tsv", "out.xlsx", "out.arrow"] {
        let out = folder.path(name);
        let said = refused(&folder, "in.jsonl", &["score", &input, "-r", &recipe, "--out", &out]);
        assert!(said.contains("jsonl and parquet"), "{said}");
        refused(&folder, "in.jsonl", &["rank", &input, "--keep", "1", "-r", &recipe, "--out", &out]);
    }
    let (packed, table) = (folder.path("out.jsonl.gz"), folder.path("out.parquet"));
    let said = refused(&folder, "in.jsonl", &["score", &input, "-r", &recipe, "--out", &packed]);
    assert!(said.contains("| gzip"), "{said}");
    let said = refused(&folder, "in.jsonl", &["rank", &input, "--keep", "1", "-r", &recipe, "--out", &table]);
    assert!(said.contains("JSON lines"), "{said}");
    // Who names the format means it.
    let named = folder.path("named.csv");
    assert_eq!(run(&["score", &input, "-r", &recipe, "-q", "--out", &named, "--format", "jsonl"]).code, 0);
    assert_eq!(run(&["score", &input, "-r", &recipe, "-q", "--out", &folder.path("plain")]).code, 0);
}

/// A run over a pipe that stays open, once it has begun to write.
fn waiting(folder: &Folder, more: &[&str]) -> (Child, std::process::ChildStdin) {
    let recipe = folder.file("recipe.yaml", LENGTH);
    let mut command = command(&[&["score", "-", "-r", &recipe], more].concat());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // More than a pipe holds: when this is written, the run listens for signals.
    for at in 0..6000 {
        writeln!(stdin, "{{\"id\":\"r{at}\",\"response\":\"{}\"}}", "word ".repeat(100)).unwrap();
    }
    (child, stdin)
}

#[test]
fn a_signal_ends_a_run_without_judges_and_takes_its_part_away() {
    // Where hangups are ignored, as under nohup, a child is told of none either.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    let ignored = u64::from_str_radix(ignored, 16).unwrap() & 1 == 1;
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        if name == "HUP" && ignored {
            continue;
        }
        let folder = Folder::new(&format!("signal-{name}"));
        let out = folder.path("out.jsonl");
        let (child, stdin) = waiting(&folder, &["--out", &out, "--summary", &folder.path("summary.json")]);
        assert_eq!(folder.names().iter().filter(|name| name.ends_with(".part")).count(), 2);
        crate::process::signal(name, child.id());
        let Ran { code: ended, talk, .. } = crate::crash::ended(child);
        drop(stdin);
        assert_eq!(ended, code, "{talk}");
        assert!(
            talk.contains("stopped") && talk.contains("out.jsonl") && talk.lines().count() == 1,
            "{talk}"
        );
        assert_eq!(folder.names(), ["recipe.yaml"]);
    }
}

#[test]
fn a_hangup_that_was_ignored_stays_ignored() {
    let folder = Folder::new("signal-nohup");
    let (recipe, out) = (folder.file("recipe.yaml", LENGTH), folder.path("out.jsonl"));
    let plaudit = command(&[]).get_program().to_str().unwrap().to_owned();
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "trap '' HUP; exec \"$@\"",
        "sh",
        &plaudit,
        "score",
        "-",
        "-r",
        &recipe,
        "--out",
        &out,
        "-q",
    ]);
    let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let line = format!("{{\"response\":\"{}\"}}\n", "word ".repeat(100));
    stdin.write_all(line.repeat(6000).as_bytes()).unwrap();
    crate::process::signal("HUP", child.id());
    stdin.write_all(line.as_bytes()).unwrap();
    drop(stdin);
    let ran = crate::crash::ended(child);
    assert_eq!((ran.code, ran.talk.as_str()), (0, ""));
    assert_eq!(folder.read("out.jsonl").lines().count(), 6001);
}

#[test]
fn what_is_appended_after_the_start_is_not_read() {
    let folder = Folder::new("growing");
    let recipe = folder.file("recipe.yaml", LENGTH);
    // Too much for the pipe of the results: the run waits inside the file until they are read.
    let line = |at: usize| format!("{{\"id\":\"r{at}\",\"response\":\"{}\"}}\n", "word ".repeat(40));
    let lines: String = (0..20_000).map(line).collect();
    for stdin in [false, true] {
        let input = folder.file("in.jsonl", &lines);
        let mut command = command(&["score", if stdin { "-" } else { &input }, "-r", &recipe, "-q"]);
        if stdin {
            command.stdin(std::fs::File::open(&input).unwrap());
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut results = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        results.read_line(&mut first).unwrap();
        let mut more = std::fs::OpenOptions::new().append(true).open(&input).unwrap();
        more.write_all(line(20_000).as_bytes()).unwrap();
        let mut rest = String::new();
        results.read_to_string(&mut rest).unwrap();
        assert_eq!(rest.lines().count(), 19_999, "stdin: {stdin}");
        assert_eq!(crate::crash::ended(child).code, 0);
    }
}

#[test]
fn a_pipe_without_a_writer_is_told() {
    let folder = Folder::new("fifo");
    let (recipe, pipe) = (folder.file("recipe.yaml", LENGTH), folder.path("pipe"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let out = folder.path("out.jsonl");
    let mut command = command(&["score", &pipe, "-r", &recipe, "-q", "--out", &out]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut talk = BufReader::new(child.stderr.take().unwrap());
    talk.read_line(&mut said).unwrap();
    assert!(said.contains("waiting for a writer") && said.contains("pipe"), "{said}");
    // Nothing has begun, so nothing is there that a signal could leave.
    assert_eq!(folder.names(), ["pipe", "recipe.yaml"]);
    std::fs::write(&pipe, LINES).unwrap();
    let mut rest = String::new();
    talk.read_to_string(&mut rest).unwrap();
    assert_eq!((child.wait().unwrap().code(), rest.as_str()), (Some(0), ""));
    assert_eq!(folder.read("out.jsonl").lines().count(), 2);
}

#[test]
fn the_recipe_is_read_once() {
    let folder = Folder::new("recipe-once");
    let recipe = folder.file("recipe.yaml", LENGTH);
    let state = folder.path("state");
    let ran = feed(&["score", "-", "-r", &recipe, "--state", &state, "-q"], |to| {
        let line = format!("{{\"response\":\"{}\"}}\n", "word ".repeat(100));
        // More than a pipe holds: when this is written, the run has its recipe.
        to.write_all(line.repeat(6000).as_bytes()).unwrap();
        std::fs::remove_file(&recipe).unwrap();
    });
    assert_eq!((ran.code, ran.talk.as_str(), ran.out.lines().count()), (0, "", 6000));
    let again = run(&["replay", "--state", &state, "-q"]);
    assert!(again.code == 0 && again.out == ran.out, "{}", again.talk);
}

#[test]
fn a_state_is_its_owners_in_any_folder() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new("private-state");
    let (recipe, state) = (folder.file("recipe.yaml", LENGTH), folder.path("state"));
    std::fs::create_dir(&state).unwrap();
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o755)).unwrap();
    let rows = folder.file("rows.jsonl", "{\"response\":\"a\"}\n");
    let ran = run(&["score", &rows, "-r", &recipe, "--state", &state, "-q"]);
    assert_eq!(ran.code, 0, "{}", ran.talk);
    let files: Vec<_> = std::fs::read_dir(&state).unwrap().map(Result::unwrap).collect();
    assert!(files.iter().any(|file| file.file_name() == "rollouts.jsonl"));
    for file in files {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0, "{:?}", file.file_name());
    }
}
