//! Verdicts and times on files of vectors, as one JSON object: plaudit's side of `bench/mathematics.py`. Run with `--release`.
//!
//! `cargo run --release -p plaudit-math --example vectors -- golden/math_verify.jsonl bench/data/math.jsonl`: of the first file every
//! verdict and the time of each, with its reference read anew; of the second, responses per processor second on one
//! thread, where neighbours with one reference share it.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and stops where it cannot go on"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use plaudit_math::{Options, Reference, verify};
use serde_json::{Map, Value, json};

/// How long the second file is repeated.
const LEAST: Duration = Duration::from_secs(2);

fn pairs(path: &str) -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(path).unwrap();
    let pair = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let field = |name: &str| row[name].as_str().unwrap().to_owned();
        (field("id"), field("reference"), field("response"))
    };
    text.lines().map(pair).collect()
}

fn verdicts(rows: &[(String, String, String)]) -> (Map<String, Value>, Vec<Duration>) {
    let (mut said, mut times) = (Map::new(), Vec::new());
    for (id, reference, response) in rows {
        let began = Instant::now();
        let right = Reference::parse(reference, &Options::default())
            .is_ok_and(|reference| verify(response, &reference).outcome.is_right());
        times.push(began.elapsed());
        said.insert(id.clone(), Value::from(u8::from(right)));
    }
    times.sort_unstable();
    (said, times)
}

/// Responses per second of processor time, which on one thread is as good as the wall's on a quiet machine.
fn rate(rows: &[(String, String, String)]) -> f64 {
    let (began, processor) = (Instant::now(), processor_time());
    let mut count = 0_u64;
    while began.elapsed() < LEAST {
        let mut shared: Option<(&str, Reference)> = None;
        for (_, reference, response) in rows {
            let known = shared.take().filter(|(text, _)| text == reference);
            let read = || (reference.as_str(), Reference::parse(reference, &Options::default()).unwrap());
            let (_, parsed) = &*shared.insert(known.unwrap_or_else(read));
            black_box(verify(black_box(response), parsed));
            count += 1;
        }
    }
    count as f64 / (processor_time() - processor)
}

/// The processor seconds of this process, as the kernel counts them in hundredths.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / 100.0
}

fn main() {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let (vectors, corpus) = (pairs(&paths[0]), pairs(&paths[1]));
    // Once to warm up: constants such as π are computed at their first use.
    verdicts(&vectors);
    let (said, times) = verdicts(&vectors);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64();
    let right: Map<String, Value> = verdicts(&corpus).0;
    let figures = json!({
        "vectors": said,
        "seconds": { "p50": at(0.5), "p99": at(0.99), "p99.9": at(0.999), "max": at(1.0) },
        "corpus": { "per_s": rate(&corpus), "said": right },
    });
    println!("{figures}");
}
