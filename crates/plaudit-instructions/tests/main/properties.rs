//! Any text is safe: no check panics, and the same text has the same verdicts, whatever was asked before.

use crate::golden;
use crate::vectors::read;
use plaudit_instructions::row;
use plaudit_instructions::{Check, Mode, Semantics, parse, verdicts};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;

/// One check of each kind with arguments of the vectors, two where there are two.
pub(crate) fn checks(semantics: Semantics) -> Vec<Check> {
    let mut seen = BTreeSet::new();
    let mut checks = Vec::new();
    for vector in read(&golden("instructions.jsonl")) {
        let kwargs = vector.kwargs.to_string();
        let Ok(check) = parse(&vector.constraint, &vector.kwargs, semantics) else { continue };
        let known = seen.iter().filter(|(id, _)| *id == vector.constraint).count();
        if known < 2 && seen.insert((vector.constraint, kwargs)) {
            checks.push(check);
        }
    }
    assert!(checks.len() > 112);
    checks
}

/// Pieces that checks look for.
const PIECES: &[&str] = &[
    "The",
    "kettle",
    "cat",
    "Mr.",
    "U.S.",
    "e.g.",
    "3.14",
    "...",
    ". . .",
    "?",
    "!",
    "--",
    "\"",
    "'",
    "``",
    "“",
    "”",
    "’",
    "«",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<<",
    ">>",
    "<i>",
    "</i>",
    ":",
    ",",
    ";",
    "*",
    "**",
    "***",
    "******",
    "#",
    "-",
    "\n",
    "\n\n",
    "\r\n",
    "\t",
    "\u{a0}",
    "\u{3000}",
    "don't",
    "cannot",
    "gonna",
    "'tis",
    "n't",
    "A.",
    "中文。",
    "ねこ",
    "नदी",
    "é",
    "e\u{301}",
    "İ",
    "ß",
    "ǅ",
    "\u{200b}",
    "\u{200d}",
    "🎉",
    "👨\u{200d}👩",
    "🇳🇴",
    "—",
    "\u{1c}",
    "\u{85}",
    "\u{2028}",
    "_",
    "</think>",
    "My answer is yes.",
    "Question 1",
    "A)",
    "Zimbabwe",
    "1.",
    "2024-05-06",
    "P.S.",
    "/",
    "or",
    "a",
    "I",
    "|",
    "\\",
    "^",
    "$",
    "~",
    "`",
    "=",
    "+",
    "@",
    "%",
    "&",
    "\0",
    "Section 1",
    "{\"a\": 1}",
];

fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(PIECES).prop_map(str::to_owned),
        2 => "[ -~]{0,8}",
        1 => ".{0,4}",
    ];
    prop::collection::vec((piece, prop::bool::ANY), 0..24).prop_map(|pieces| {
        pieces.into_iter().map(|(piece, space)| piece + if space { " " } else { "" }).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics_and_verdicts_repeat(text in texts()) {
        thread_local! {
            static CHECKS: [Vec<Check>; 2] = [checks(Semantics::Published), checks(Semantics::Corrected)];
        }
        CHECKS.with(|both| {
            for checks in both {
                let strict = verdicts(&text, checks, Mode::Strict);
                let loose = verdicts(&text, checks, Mode::Loose);
                for (at, check) in checks.iter().enumerate() {
                    // A response that passes as it stands passes in loose mode.
                    assert!(!strict[at] || loose[at], "{check:?} on {text:?}");
                    // A check does not depend on the checks before it.
                    assert_eq!(verdicts(&text, std::slice::from_ref(check), Mode::Loose)[0], loose[at], "{check:?}");
                }
            }
        });
    }

    #[test]
    fn blank_texts_follow_nothing(text in "[ \t\r\n\u{a0}\u{3000}]{0,8}") {
        thread_local!(static CHECKS: Vec<Check> = checks(Semantics::Corrected));
        CHECKS.with(|checks| assert!(!verdicts(&text, checks, Mode::Loose).contains(&true)));
    }

    #[test]
    fn no_ground_truth_panics(text in "[\\[\\]{}()'\":, a-e0-9\\\\unxN.TrueFalse-]{0,40}") {
        let _ = row::from_ground_truth(&json!(text), Semantics::Corrected);
    }

    #[test]
    fn no_keyword_panics(keyword in "[a-c(){}\\[\\]|*+?.^$\\\\0-9,?:<>=!PdwsbZ-]{0,12}") {
        for semantics in [Semantics::Published, Semantics::Corrected] {
            for (id, kwargs) in [
                ("keywords:existence", json!({"keywords": [keyword]})),
                ("keywords:forbidden_words", json!({"forbidden_words": [keyword]})),
                ("detectable_format:multiple_sections", json!({"section_spliter": keyword, "num_sections": 1})),
                ("copy:repeat_phrase", json!({"phrase": format!("{keyword} b c"), "small_n": 1})),
            ] {
                if let Ok(check) = parse(id, &kwargs, semantics) {
                    verdicts("abc a1 cab", &[check], Mode::Loose);
                }
            }
        }
    }
}
