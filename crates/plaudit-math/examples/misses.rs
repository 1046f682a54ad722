//! Prints the vectors whose verdict differs from the truth, for work on the verifier.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use plaudit_math::{Options, Reference, verify};

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let (mut right, mut all, mut fp, mut fn_) = (0, 0, 0, 0);
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let Some(truth) = row["truth"].as_i64() else { continue };
        let reference = row["reference"].as_str().unwrap();
        let response = row["response"].as_str().unwrap();
        all += 1;
        let parsed = Reference::parse(reference, &Options::default());
        let (credit, shown) = match &parsed {
            Ok(parsed) => {
                let verdict = verify(response, parsed);
                (
                    verdict.outcome.is_right(),
                    format!(
                        "{} [{}] {:?} {:?} {:?} {:?}",
                        parsed.text(),
                        parsed.kind(),
                        verdict.outcome,
                        verdict.rule,
                        verdict.kind,
                        verdict.answer
                    ),
                )
            }
            Err(error) => (false, format!("{error}")),
        };
        if credit == (truth == 1) {
            right += 1;
            continue;
        }
        if credit {
            fp += 1;
        } else {
            fn_ += 1;
        }
        let tail: String = response.chars().rev().take(120).collect::<Vec<_>>().into_iter().rev().collect();
        println!(
            "{} {} {} | {} | {}",
            row["id"].as_str().unwrap(),
            row["tag"].as_str().unwrap(),
            if credit { "FP" } else { "FN" },
            shown,
            tail.replace('\n', "⏎")
        );
    }
    println!(
        "right {right} of {all} ({:.2} %), {fp} false positives, {fn_} false negatives",
        100.0 * f64::from(right) / f64::from(all)
    );
}
