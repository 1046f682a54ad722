//! Holds the checks against a file of vectors and prints every difference: `vectors golden/instructions.jsonl`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "../tests/main/vectors.rs"]
mod vectors;

use std::collections::BTreeMap;
use std::path::Path;

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let mut figures: BTreeMap<&str, BTreeMap<String, (usize, usize)>> = BTreeMap::new();
    for vector in vectors::read(Path::new(&path)) {
        for (question, semantics, mode, expected) in vectors::questions(&vector) {
            let Some(expected) = expected else { continue };
            let ours = vectors::answer(&vector, semantics, mode);
            let figure = figures.entry(question).or_default().entry(vector.constraint.clone()).or_default();
            figure.1 += 1;
            if ours == *expected {
                figure.0 += 1;
            } else {
                let response: String = vector.response.to_string().chars().take(300).collect();
                println!(
                    "{question} {} {} {} {response}: expected {expected}, ours {ours} ({})",
                    vector.id, vector.constraint, vector.kwargs, vector.tag
                );
            }
        }
    }
    for (question, ids) in figures {
        let (agree, all) = ids.values().fold((0, 0), |sum, figure| (sum.0 + figure.0, sum.1 + figure.1));
        println!("{question}: {agree} of {all} ({:.2} %)", 100.0 * agree as f64 / all as f64);
        for (id, (agree, all)) in ids {
            if (agree as f64) < 0.97 * all as f64 {
                println!("  below 97 %: {id} {agree} of {all}");
            }
        }
    }
}
