//! Journals of killed processes and on full disks: nothing that was called durable is lost.

use super::{Place, Seeded, judgment, keep, key};
use plaudit::journal::{Journal, Judgment};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// What a child process of these tests is told to do, and where.
const TASK: &str = "PLAUDIT_JOURNAL_TASK";
const FOLDER: &str = "PLAUDIT_JOURNAL_FOLDER";

fn child(before: &str, task: &str, folder: &Path) -> Command {
    let mut command = Command::new("sh");
    let own = std::env::current_exe().unwrap();
    command.args([
        "-c",
        &format!("{before} exec \"$0\" journal::process::as_a_child --exact --ignored --nocapture"),
    ]);
    command.arg(own).env(TASK, task).env(FOLDER, folder).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

#[test]
#[ignore = "what the child processes of other tests run"]
fn as_a_child() {
    let (Ok(task), Ok(folder)) = (std::env::var(TASK), std::env::var(FOLDER)) else { return };
    let (journal, recovered) = Journal::open(Path::new(&folder)).unwrap();
    match task.as_str() {
        "write" => write_until_killed(&journal, recovered.judgments as usize),
        "fill" => fill(&journal),
        other => panic!("no task {other}"),
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{line}").and_then(|()| out.flush()).unwrap();
}

const WRITERS: usize = 4;

fn write_until_killed(journal: &Journal, known: usize) {
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                for number in (known + writer..).step_by(WRITERS) {
                    if journal.get(&key(number)).unwrap().is_none() {
                        keep(journal, number);
                        say(&format!("durable {number}"));
                    }
                }
            });
        }
    });
}

#[test]
fn killed_process_loses_nothing_durable() {
    let place = Place::new();
    let mut durable = Vec::new();
    for round in 0..8 {
        let mut process = child("", "write", &place.0).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let enough = durable.len() + 20 + Seeded(round).below(60);
        while durable.len() < enough {
            let line = lines.next().unwrap().unwrap();
            durable.extend(line.strip_prefix("durable ").map(|number| number.parse::<usize>().unwrap()));
        }
        process.kill().unwrap();
        for line in lines.map_while(Result::ok) {
            durable.extend(line.strip_prefix("durable ").and_then(|number| number.parse::<usize>().ok()));
        }
        process.wait().unwrap();
        let (journal, recovered) = Journal::open(&place.0).unwrap();
        assert_eq!((recovered.damaged, journal.unreadable()), (0, 0));
        assert!(recovered.open_intents <= WRITERS as u64 * (round + 1));
        for number in &durable {
            assert_eq!(journal.get(&key(*number)).unwrap(), Some(judgment(*number)), "round {round}");
        }
    }
}

/// Asks until the disk is full, then takes the answers to all that is in flight.
fn fill(journal: &Journal) {
    let (mut sent, mut answered) = (0, 0);
    let size = |number: usize| Judgment { body: vec![b'y'; 20_000], ..judgment(number) };
    let error = loop {
        match journal.intend(&key(sent), "j") {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
        if sent - answered > 8 {
            match journal.record(&key(answered), &size(answered)).and_then(|ticket| ticket.wait()) {
                Ok(()) => answered += 1,
                Err(error) => break error,
            }
        }
    };
    let mut kept = answered;
    for number in answered..sent {
        kept += usize::from(journal.record(&key(number), &size(number)).is_ok_and(|it| it.wait().is_ok()));
    }
    say(&format!("full {} {sent} {kept}", error.code()));
}

/// The code, the calls sent and the judgments kept that a child said.
fn filled(output: &[u8]) -> Option<(String, usize, usize)> {
    let text = String::from_utf8_lossy(output).into_owned();
    let said = text.lines().find_map(|line| line.strip_prefix("full "))?;
    let mut words = said.split(' ');
    Some((words.next()?.to_owned(), words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// The limit leaves 400 KiB beside what is kept free for the calls in flight.
#[test]
fn a_limit_on_the_size_of_files_loses_no_paid_judgment() {
    let place = Place::new();
    let output = child("trap '' XFSZ; ulimit -f 2848;", "fill", &place.0).output().unwrap();
    let (code, sent, kept) = filled(&output.stdout).unwrap();
    assert_eq!(code, "engine.journal_full");
    assert!(kept > 10 && sent == kept, "{sent} sent, {kept} kept");
    let (_, recovered) = Journal::open(&place.0).unwrap();
    assert_eq!((recovered.judgments as usize, recovered.damaged), (kept, 0));
    assert_eq!(recovered.open_intents, 0);
}

/// Needs user namespaces, for a small file system of its own; where there are none, the disk in memory has to do.
#[test]
fn full_file_system_stops_calls_and_keeps_those_in_flight() {
    let place = Place::new();
    fs::create_dir_all(&place.0).unwrap();
    let inner = "mount -t tmpfs -o size=6m none \"$PLAUDIT_JOURNAL_FOLDER\" &&";
    let mut command = child(inner, "fill", &place.0);
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    command = Command::new("unshare");
    command.args(["-Urm", "sh"]).args(arguments).env(TASK, "fill").env(FOLDER, &place.0);
    let Ok(output) = command.output() else { return };
    let Some((code, sent, kept)) = filled(&output.stdout) else {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("unshare") || said.contains("mount"), "{said}");
        return;
    };
    assert_eq!((code.as_str(), sent), ("engine.journal_full", kept));
    assert!(sent > 50, "{sent}");
}
