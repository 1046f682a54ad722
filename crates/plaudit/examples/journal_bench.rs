//! Benchmark of the journal: throughput and durability. The half of `bench/journal.py` that is ours.
//!
//! `put FOLDER COUNT SIZE FLIGHT` records judgments, FLIGHT at a time, and waits until they are durable; `call` writes
//! their intents too. `check FOLDER COUNT SIZE` opens a journal and looks for every judgment of such a run. Each prints
//! one JSON object.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark stops at the first surprise, and prints what it measured"
)]

use plaudit::journal::{Journal, Judgment, JudgmentKey};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|word| word.parse::<usize>().ok()).expect("a number");
    let [task, folder, ..] = arguments.as_slice() else { return usage() };
    let (count, size) = (number(2), number(3));
    let measured = match task.as_str() {
        "put" => put(Path::new(folder), (count, size), number(4), false),
        "call" => put(Path::new(folder), (count, size), number(4), true),
        "check" => check(Path::new(folder), count, size),
        _ => return usage(),
    };
    println!("{measured}");
}

fn usage() {
    println!("journal_bench put|call FOLDER COUNT SIZE FLIGHT, or check FOLDER COUNT SIZE");
}

fn key(number: usize) -> JudgmentKey {
    JudgmentKey::of(&[b"journal_bench", &number.to_le_bytes()])
}

fn judgment(number: usize, size: usize) -> Judgment {
    let body = (0..size).map(|at| (at.wrapping_mul(31) ^ number.wrapping_mul(131)) as u8).collect();
    Judgment { body, latency: Duration::from_millis(800), judge: "a-judge".to_owned() }
}

fn put(folder: &Path, (count, size): (usize, usize), flight: usize, intend: bool) -> Value {
    let judgments: Vec<(JudgmentKey, Judgment)> =
        (0..count).map(|number| (key(number), judgment(number, size))).collect();
    let (journal, _) = Journal::open(folder).expect("a journal");
    let (wall, processor) = (Instant::now(), processor_time());
    for batch in judgments.chunks(flight) {
        if intend {
            for (key, judgment) in batch {
                journal.intend(key, &judgment.judge).expect("an intent");
            }
        }
        let record =
            |(key, judgment): &(JudgmentKey, Judgment)| journal.record(key, judgment).expect("a record");
        let tickets: Vec<_> = batch.iter().map(record).collect();
        for ticket in tickets {
            ticket.wait().expect("a sync");
        }
    }
    let (wall, processor) = (wall.elapsed().as_secs_f64(), processor_time() - processor);
    let count = count as f64;
    json!({ "wall_s": wall, "cpu_s": processor, "per_s": count / wall, "cpu_us": processor / count * 1e6 })
}

fn check(folder: &Path, count: usize, size: usize) -> Value {
    let before = resident();
    let started = Instant::now();
    let (journal, recovered) = match Journal::open(folder) {
        Ok(opened) => opened,
        Err(error) => return json!({ "right": 0, "wrong": 0, "error": error.code() }),
    };
    let (open, after) = (started.elapsed().as_secs_f64(), resident());
    let (mut right, mut wrong) = (0, 0);
    for number in 0..count {
        match journal.get(&key(number)).expect("a look") {
            Some(found) if found == judgment(number, size) => right += 1,
            Some(_) => wrong += 1,
            None => {}
        }
    }
    json!({
        "right": right, "wrong": wrong, "damaged": recovered.damaged, "torn_tail": recovered.torn_tail,
        "open_s": open, "resident_bytes": after.saturating_sub(before),
    })
}

/// The processor seconds of this process, as the kernel counts them in hundredths.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / 100.0
}

/// The memory of this process that is in use, in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("pages") * 4096
}
