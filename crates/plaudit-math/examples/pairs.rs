//! Judges all pairs of the different answers of a file and prints the equal ones, for work on the verifier.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeSet;

use plaudit_math::{Options, Reference, verify};

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let mut answers = BTreeSet::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let reference = Reference::parse(row["reference"].as_str().unwrap(), &Options::default());
        if let Ok(reference) = reference {
            if std::env::args().nth(2).is_some() {
                answers.extend(verify(row["response"].as_str().unwrap(), &reference).answer.filter(|a| a.len() < 60));
            }
            if reference.text().len() < 100 {
                answers.insert(reference.text().to_owned());
            }
        }
    }
    let answers: Vec<String> = answers.into_iter().collect();
    let (mut equal, mut odd) = (0, 0);
    for (i, left) in answers.iter().enumerate() {
        let Ok(reference) = Reference::parse(left, &Options::default()) else { continue };
        for right in &answers[i + 1..] {
            let there = reference.judge(right).0.is_right();
            if there {
                equal += 1;
                println!("{left}   ==   {right}");
            }
            if let Ok(other) = Reference::parse(right, &Options::default())
                && other.text() == right
                && other.judge(left).0.is_right() != there
                && reference.text() == left
            {
                odd += 1;
                println!("ASYMMETRIC {left} | {right} | {there}");
            }
        }
    }
    println!("{} answers, {equal} equal pairs, {odd} asymmetric", answers.len());
}
