//! Benchmark of the exact search for the order of a group (DGR): `cargo run --release -p plaudit --example dgr -- 10 16`
//! prints one JSON object: for each size, the mean and the longest milliseconds over groups whose verdicts are coin
//! flips, which have more cycles than any judge's.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints, and stops where it cannot go on"
)]

use plaudit::aggregate::{Comparison, Method, Observed, estimate};
use serde_json::{Map, json};
use std::time::Instant;

const GROUPS: u64 = 20;

/// A group of which every pair was decided by a coin.
fn group(n: usize, seed: u64) -> Observed {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut comparisons = Vec::new();
    for first in 0..n {
        for second in first + 1..n {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let winner = Some(if state >> 63 == 0 { first } else { second });
            comparisons.push(Comparison { first, second, winner });
        }
    }
    Observed { comparisons, ..Observed::default() }
}

fn main() {
    let method = Method::named("dgr", Map::new()).expect("a method");
    let mut results = Map::new();
    for size in std::env::args().skip(1) {
        let n: usize = size.parse().expect("a number of responses");
        let mut times = Vec::new();
        for seed in 1..=GROUPS {
            let observed = group(n, seed);
            let started = Instant::now();
            estimate(&method, n, &observed).expect("scores");
            times.push(started.elapsed().as_secs_f64() * 1e3);
        }
        let (sum, longest) = times
            .iter()
            .fold((0.0, 0.0), |(sum, longest): (f64, f64), time| (sum + time, longest.max(*time)));
        results
            .insert(size, json!({ "groups": GROUPS, "mean_ms": sum / GROUPS as f64, "longest_ms": longest }));
    }
    println!("{}", json!(results));
}
