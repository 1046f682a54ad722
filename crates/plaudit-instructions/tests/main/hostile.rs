//! Time limits: every constraint on a megabyte of text that has made pattern matchers slow, within 50 ms.

use crate::properties::checks;
use crate::timing::{scaled, shortest_of};
use plaudit_instructions::{Mode, Semantics, verdicts};
use std::time::Duration;

const SIZE: usize = 1_000_000;

fn texts() -> Vec<(&'static str, String)> {
    let units = [
        "a",
        "a ",
        "ab ",
        "A",
        "A ",
        "aB",
        " ",
        "\n",
        "\n\n",
        " \n",
        "\r\n",
        "\t",
        "\u{a0}",
        "\u{3000}a. ",
        ".",
        ". ",
        ". . ",
        "..",
        "a.",
        "a. ",
        "A. ",
        "A.B.",
        "A.B. He ",
        "Mr. ",
        "Inc. He ",
        "e.g. ",
        "1.",
        "1. ",
        "1.1",
        "1,",
        "9",
        "?",
        "!",
        "?!",
        "! ",
        "a!b",
        "\"",
        "\" ",
        "\"a\" ",
        ".\" ",
        "'",
        "' ",
        "''",
        "'s ",
        "a's ",
        "d'ye-",
        "'tis ",
        "cannot ",
        "n't ",
        "`",
        "```",
        "“",
        "” ",
        ".” ",
        "’s",
        "«",
        "(",
        "()",
        "( ",
        ")",
        "[",
        "[]",
        "[a] ",
        "{",
        "[1,",
        "{\"a\":",
        "<",
        "<<",
        "<<a>> ",
        ">>",
        "<i>",
        "<prd>",
        "<stop>",
        ":",
        ",",
        ",,",
        ", ",
        ",a",
        ";",
        "-",
        "- ",
        "--",
        "---\n",
        ".-",
        "*",
        "* ",
        "**",
        "***",
        "***\n",
        "******",
        "*a*",
        "**a** ",
        "* a\n",
        "*\n",
        "- a\n",
        "#",
        "\\",
        "|",
        "/",
        "_",
        "=",
        "~",
        "\0",
        "\u{1c}",
        "\u{85}",
        "\u{2028}",
        "e\u{301}",
        "\u{301}",
        "İ",
        "ß",
        "ǅ",
        "K",
        "é ",
        "中",
        "中 ",
        "。",
        "ねこ ",
        "नदी ",
        "привет ",
        "ПРИВЕТ ",
        "سلام ",
        "ไทย",
        "🎉",
        "🎉 ",
        "👨\u{200d}👩\u{200d}👧",
        "🇳🇴",
        "1️⃣",
        "\u{200b}",
        "\u{200d}",
        "\u{feff}",
        "the ",
        "The cat. ",
        "THE CAT ",
        "kettle ",
        "pebble ",
        "Section 1 ",
        "Section ",
        "p.s. ",
        "P.P.S ",
        "p. ",
        "My answer is yes. ",
        "Question 1\nA) b\n",
        "Zimbabwe\n",
        "a,b,c\n",
        "\"a\"\t\"b\"\n",
        "2024-05-06, ",
        "2024-05-06",
        "and ",
        "or ",
        "Emma ",
        "level ",
        "Run ",
        "The old bridge crosses ",
        "The ",
        "a b c d e f g ",
        "</think>",
        "bald eagle ",
        "14, 21, ",
        "http://a.b/c ",
        "a@b.co ",
        "word word ",
    ];
    let mut texts: Vec<(&str, String)> =
        units.iter().map(|unit| (*unit, unit.repeat(SIZE / unit.len()))).collect();
    let around =
        |before: &str, unit: &str, after: &str| format!("{before}{}{after}", unit.repeat(SIZE / unit.len()));
    texts.extend([
        ("spaces before a word", around("a.", " ", "b")),
        ("closing marks", around("a.", ") ", "")),
        ("open quote", around("\"", "a", "")),
        ("prose", "The harbor froze. Mr. Lane said \"no,\" didn't he? ".repeat(SIZE / 50)),
        ("small prose", "the harbor froze. then it didn't, we think. ".repeat(SIZE / 44)),
        ("capital prose", "THE HARBOR FROZE. THEN IT DIDN'T, WE THINK. ".repeat(SIZE / 44)),
        ("other words", (0..SIZE / 8).map(|at| format!("w{at} ")).collect()),
        ("other lines", (0..SIZE / 8).map(|at| format!("w{at}\n")).collect()),
        ("growing lines", (0..1400).map(|at| format!("{}a\n", " ".repeat(at))).collect()),
        ("deep brackets", "[".repeat(SIZE / 2) + &"]".repeat(SIZE / 2)),
    ]);
    if cfg!(debug_assertions) {
        texts = texts.into_iter().step_by(9).collect();
    }
    texts
}

#[test]
fn no_text_makes_an_original_constraint_slow() {
    all_in_time(Semantics::Published);
}

#[test]
fn no_text_makes_a_fixed_constraint_slow() {
    all_in_time(Semantics::Corrected);
}

/// Every constraint on every text; `make test-limits` measures it. A build without optimisation looks at fewer texts.
fn all_in_time(semantics: Semantics) {
    let limit = scaled(Duration::from_millis(50));
    let (mut slow, mut longest) = (Vec::new(), (Duration::ZERO, String::new()));
    let texts = texts();
    for check in checks(semantics) {
        let check = [check];
        for (name, text) in &texts {
            let took = shortest_of(limit, || drop(verdicts(text, &check, Mode::Strict)));
            let scene = format!("{check:?} {semantics:?} on {name:?}");
            if took > limit {
                slow.push(format!("{scene}: {took:?}"));
            }
            longest = longest.max((took, scene));
        }
    }
    println!("the longest of all: {longest:?}");
    assert!(slow.is_empty(), "longer than {limit:?} on a megabyte:\n{}", slow.join("\n"));
}
