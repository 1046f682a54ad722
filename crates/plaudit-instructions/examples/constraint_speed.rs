//! Times every constraint on texts of 2 KB, strict and loose, and prints one JSON object: families in seconds for all
//! their ids once on one text, ids in checks a second, the arguments of each id and what
//! it says of each text. Each check is parsed anew for every text, as the peers do.
//!
//! `bench [TEXTS.jsonl]`: a text a line, as JSON. Without a file texts of prose and bullet lines are made.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use plaudit_instructions::{Family, Mode, Response, Semantics, Texts, constraints, parse, verdicts};
use serde_json::{Map, Value, json};
use std::time::Instant;

const TEXTS: usize = 20;

/// Arguments as a data set has them, by the name of the parameter.
const ARGUMENTS: &str = r#"{
    "keywords": ["harbor", "violin"], "keyword": "kettle", "frequency": 2, "relation": "at least",
    "forbidden_words": ["glacier", "ribbon"], "letter": "e", "let_frequency": 10, "let_relation": "at least",
    "language": "en", "num_sentences": 3, "num_words": 100, "num_paragraphs": 3, "nth_paragraph": 2,
    "first_word": "the", "last_word": "market", "num_placeholders": 3, "postscript_marker": "P.S.",
    "num_bullets": 3, "num_highlights": 2, "section_spliter": "Section", "num_sections": 2,
    "prompt_to_repeat": "Write two lines about the harbor in winter.", "end_phrase": "Any other questions?",
    "capital_frequency": 10, "capital_relation": "at least", "phrase": "The old bridge crosses the river",
    "small_n": 2, "n_start": 4, "n_end": 9, "N": 3, "n_sent": 2, "n_words": 4, "keyword1": "pebble",
    "keyword2": "ribbon", "keyword3": "copper", "keyword4": "saddle", "keyword5": "walnut", "n": 2, "m": 3,
    "min_words": 50, "max_words": 90, "percentage": 60, "options": "yes/no/maybe", "sep": "...", "word": "harbor",
    "reference_text": "The silver pocket carries the wooden ribbon. Every morning Marta measures the heavy wagon."
}"#;

fn arguments(id: &str) -> Value {
    let known: Value = serde_json::from_str(ARGUMENTS).unwrap();
    let constraint = plaudit_instructions::find(id).unwrap();
    let given = constraint.parameters.iter().filter(|parameter| !parameter.optional);
    Value::Object(given.map(|parameter| (parameter.name.to_owned(), known[parameter.name].clone())).collect())
}

/// Prose and bullet lines.
fn texts() -> Vec<String> {
    let words = [
        "The", "harbor", "violin", "kettle", "carries", "wooden", "ribbon", "every", "morning", "Marta",
        "measures", "heavy", "wagon", "near", "the", "cellar", "and", "frozen", "tower", "waits", "in", "a",
        "market", "with", "it",
    ];
    let mut state = 1u64;
    let mut pick = |limit: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % limit
    };
    (0..TEXTS)
        .map(|_| {
            let mut text = String::new();
            while text.len() < 2000 {
                if pick(5) == 0 {
                    text.push_str("\n* ");
                }
                for _ in 0..6 + pick(8) {
                    text.push_str(words[pick(words.len())]);
                    text.push_str(if pick(9) == 0 { ", " } else { " " });
                }
                text.truncate(text.trim_end_matches([' ', ',']).len());
                text.push_str(if pick(7) == 0 { ".\n" } else { ". " });
            }
            text
        })
        .collect()
}

/// The shortest of several runs, in seconds for one text.
fn time(texts: &[String], mut once: impl FnMut(&str) -> usize) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..25 {
        let start = Instant::now();
        let passed: usize = texts.iter().map(|text| once(text)).sum();
        std::hint::black_box(passed);
        best = best.min(start.elapsed().as_secs_f64() / texts.len() as f64);
    }
    best
}

fn main() {
    let texts = match std::env::args().nth(1) {
        Some(path) => {
            let lines = std::fs::read_to_string(path).unwrap();
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        }
        None => texts(),
    };
    let kwargs: Vec<(&str, Family, Value)> = constraints()
        .map(|constraint| (constraint.id, constraint.family, arguments(constraint.id)))
        .collect();
    let (mut families, mut ids) = (Map::new(), Map::new());
    for (semantics, prefix) in [(Semantics::Published, ""), (Semantics::Corrected, "corrected_")] {
        for (family, name) in
            [(Family::IfEval, "ifeval"), (Family::IfRlvr, "ifrlvr"), (Family::IfBench, "ifbench")]
        {
            for (mode, suffix) in [(Mode::Strict, "strict"), (Mode::Loose, "loose")] {
                let of_family = || kwargs.iter().filter(|(_, of, _)| *of == family);
                let seconds = time(&texts, |text| {
                    let checks: Vec<_> =
                        of_family().map(|(id, _, kwargs)| parse(id, kwargs, semantics).unwrap()).collect();
                    verdicts(text, &checks, mode).into_iter().filter(|held| *held).count()
                });
                families.insert(format!("{prefix}{name}_{suffix}"), json!(seconds));
            }
        }
    }
    for (id, _, kwargs) in &kwargs {
        let rate = |mode| {
            1.0 / time(&texts, |text| {
                let check = parse(id, kwargs, Semantics::Published).unwrap();
                let texts = Texts::new(text);
                usize::from(Response::new(&texts).passes(&check, mode))
            })
        };
        ids.insert(
            (*id).to_owned(),
            json!({"strict": rate(Mode::Strict).round(), "loose": rate(Mode::Loose).round()}),
        );
    }
    let mut said = Map::new();
    for (mode, name) in [(Mode::Strict, "strict"), (Mode::Loose, "loose")] {
        let of_id = |(id, _, kwargs): &(&str, Family, Value)| {
            let check = [parse(id, kwargs, Semantics::Published).unwrap()];
            let verdicts: Vec<bool> = texts.iter().map(|text| verdicts(text, &check, mode)[0]).collect();
            ((*id).to_owned(), json!(verdicts))
        };
        said.insert(name.to_owned(), Value::Object(kwargs.iter().map(of_id).collect()));
    }
    let arguments: Map<String, Value> =
        kwargs.iter().map(|(id, _, kwargs)| ((*id).to_owned(), kwargs.clone())).collect();
    let figures = json!({"seconds": families, "per_second": ids, "arguments": arguments, "verdicts": said});
    println!("{figures}");
}
