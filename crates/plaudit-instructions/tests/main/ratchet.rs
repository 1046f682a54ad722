//! Agreement with the published checkers and with what is right, id by id, which may only rise.
//!
//! `UPDATE=1` writes the figures anew. Every vector on which we differ stands in `golden/instructions_differences.jsonl`
//! with the key of a reason.

use crate::golden;
use crate::vectors::{answer, questions, read};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Question, id: how many agree, of how many.
type Figures = BTreeMap<String, BTreeMap<String, (usize, usize)>>;

#[test]
fn agreement_does_not_fall() {
    let mut figures = Figures::new();
    let mut differences = Vec::new();
    for vector in read(&golden("instructions.jsonl")) {
        for (question, semantics, mode, expected) in questions(&vector) {
            let Some(expected) = expected else { continue };
            let ours = answer(&vector, semantics, mode);
            let figure = figures.entry(question.to_owned()).or_default();
            let figure = figure.entry(vector.constraint.clone()).or_default();
            figure.1 += 1;
            if ours == *expected {
                figure.0 += 1;
            } else {
                differences.push((vector.id.clone(), question, ours));
            }
        }
    }
    for (question, ids) in &figures {
        let (agree, all) = ids.values().fold((0, 0), |sum, figure| (sum.0 + figure.0, sum.1 + figure.1));
        println!("{question}: {agree} of {all}");
        assert!(agree as f64 >= 0.995 * all as f64, "{question}: {agree} of {all}");
        for (id, (agree, all)) in ids {
            assert!(*agree as f64 >= 0.97 * *all as f64, "{question} {id}: {agree} of {all}");
        }
    }
    compare_with_baseline(&figures);
    compare_with_list(&differences);
}

fn compare_with_baseline(figures: &Figures) {
    let path = golden("instructions_baseline.json");
    if std::env::var_os("UPDATE").is_some() {
        // One id a line, so that a change can be read.
        let question = |(name, ids): (&String, &BTreeMap<String, (usize, usize)>)| {
            let lines: Vec<String> =
                ids.iter().map(|(id, figure)| format!("    {id:?}: {}", json!(figure))).collect();
            format!("  {name:?}: {{\n{}\n  }}", lines.join(",\n"))
        };
        let text = figures.iter().map(question).collect::<Vec<_>>().join(",\n");
        std::fs::write(&path, format!("{{\n{text}\n}}\n")).unwrap();
        return;
    }
    let baseline: Figures = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for (question, ids) in &baseline {
        for (id, (least, of)) in ids {
            let (agree, all) = figures[question][id];
            assert!(
                all == *of && agree >= *least,
                "{question} {id}: {agree} of {all}, and {least} of {of} before"
            );
        }
    }
    assert_eq!(figures, &baseline, "agreement rose: run the test with UPDATE=1 and commit the figures");
}

fn compare_with_list(differences: &[(String, &str, Value)]) {
    let text = std::fs::read_to_string(golden("instructions_differences.jsonl")).unwrap();
    let listed: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let listed_set: BTreeSet<String> =
        listed.iter().map(|row| json!([row["id"], row["question"], row["ours"]]).to_string()).collect();
    let found: BTreeSet<String> =
        differences.iter().map(|(id, question, ours)| json!([id, question, ours]).to_string()).collect();
    assert_eq!(found, listed_set, "the list of differences is not what was found");
    let reasons = std::fs::read_to_string(golden("README.md")).unwrap();
    for row in listed {
        let key = row["reason"].as_str().unwrap();
        assert!(reasons.contains(&format!("| {key} |")), "{key} has no line in golden/README.md");
    }
}
