//! Judges pairs "reference | answer | truth" from a file and prints those that differ, for work on the verifier.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use plaudit_math::{Options, Reference};

fn main() {
    let path = std::env::args().nth(1).unwrap();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let parts: Vec<&str> = line.split(" | ").collect();
        let [reference, answer, truth] = parts[..] else {
            println!("?? {line}");
            continue;
        };
        let outcome = match Reference::parse(reference, &Options::default()) {
            Ok(reference) => format!("{:?} [{}]", reference.judge(answer), reference.kind()),
            Err(error) => format!("error {error}"),
        };
        let right = outcome.starts_with("(Right");
        if truth == "?" || right != (truth == "1") {
            println!("{line}   => {outcome}");
        }
    }
}
