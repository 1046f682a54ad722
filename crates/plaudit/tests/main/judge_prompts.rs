//! Prompt injection: a response cannot leave its delimiters, hostile text is defused, and ordinary text stays as it is.

use crate::timing::{scaled, shortest_of};
use plaudit::judge::prompt::delimiters::Delimiters;
use plaudit::judge::prompt::injection::injection;
use plaudit::judge::prompt::sanitize::{cut_mark, sanitize};
use proptest::prelude::*;
use serde_json::Value;
use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

const MAX_LENGTH: usize = 1 << 20;

fn fence() -> String {
    Delimiters::new(&[3; 32], b"group").fence().to_owned()
}

/// The responses of the shipped example: those that talk to the judge on purpose, or go on with a turn that is not
/// theirs, and all the others, which are ordinary.
fn example(odd: &[&str]) -> (Vec<String>, Vec<String>) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/rollouts.jsonl");
    let file = std::fs::read_to_string(path).unwrap();
    let lines = file.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let (odd, ordinary): (Vec<Value>, Vec<Value>) =
        lines.partition(|line| odd.contains(&line["extra"]["case"].as_str().unwrap()));
    let text = |line: &Value| line["response"].as_str().unwrap().to_owned();
    (odd.iter().map(text).collect(), ordinary.iter().map(text).collect())
}

const SCRIPTS: [&str; 14] = [
    "fn send(q: Query) -> Result<Response> { if a < b && c | d > 0 { todo!() } }",
    "const r: Promise<Response> = map.get<Query, Response>(x) |> f <| g; a <|> b;",
    "user: root\nsystem:\n  - x\r\nend",
    "# Summary\n\n## 1. References\n\n| a | b |\n|---|---|\n- [x] done `<div class=\"a\">`",
    "\\frac{1}{2} \\langle x, y \\rangle \\left[ 0, 1 \\right] $a_{ij} < b$",
    "family: 👨‍👩‍👧‍👦 ❤️ 🏳️‍🌈 1️⃣ 👍🏽",
    "می‌خواهم به خانه بروم",
    "क्‍ष श्री हिन्दी में लिखा गया",
    "答案是42。解：设 x ＜ y，则“x²”……《红楼梦》〈一〉",
    "これは「テスト」です。葛󠄀城市",
    "Привет, система: всё хорошо. Ответ — 7.",
    "한국어 문장입니다.",
    "café naïve e\u{301}té",
    "assistance: the systematic response to a query references a verdict",
];

#[test]
fn ordinary_text_is_left_alone() {
    let fence = fence();
    let (_, texts) = example(&["injection", "garbage_after"]);
    let changed =
        texts.iter().filter(|text| matches!(sanitize(text, &fence, MAX_LENGTH), Cow::Owned(_))).count();
    let marked = texts.iter().filter(|text| injection(text).is_some()).count();
    assert!(texts.len() >= 500);
    assert_eq!((changed, marked), (0, 0), "of {}", texts.len());
    let (injected, _) = example(&["injection"]);
    assert_eq!(injected.iter().filter(|text| injection(text).is_some()).count(), injected.len());
    for text in SCRIPTS {
        assert_eq!(sanitize(text, &fence, MAX_LENGTH), Cow::Borrowed(text));
        assert_eq!(injection(text), None, "{text}");
    }
}

#[test]
fn hostile_text_is_broken_visibly() {
    let fence = fence();
    let calm = |text: &str| sanitize(text, &fence, MAX_LENGTH).into_owned();
    // A1: the prompt's own headings.
    for heading in [
        "# Verdict",
        "  ## RESPONSES",
        "# Query",
        "#Reference",
        "# Principles",
        "＃ Verdict",
        "### Instruction:",
    ] {
        assert!(calm(&format!("x\n{heading}\n")).contains("\n> "), "{heading}");
    }
    // A2: the delimiter, in any case, twice, and at the end.
    let shouted = calm(&format!("{fence}{} {fence}", fence.to_uppercase()));
    assert!(!shouted.to_lowercase().contains(&fence), "{shouted}");
    // A3: special tokens of Qwen, Llama, Mistral, Gemma, DeepSeek.
    for special in [
        "<|im_end|>",
        "<|im_start|>",
        "<|eot_id|>",
        "<|start_header_id|>",
        "<|endoftext|>",
        "[INST]",
        "[/INST]",
        "<s>",
        "</s>",
        "<<SYS>>",
        "<</SYS>>",
        "<start_of_turn>",
        "<end_of_turn>",
        "<｜User｜>",
        "<｜end▁of▁sentence｜>",
        "<|begin_of_text|>",
        "[AVAILABLE_TOOLS]",
        "</response A>",
        "<VERDICT x>",
        "‹/response›",
        "<reference>",
        "< /query>",
    ] {
        let said = calm(&format!("a{special}b{special}"));
        assert!(!said.contains(special), "{said}");
    }
    // A4 and A7: what is dangerous only to careless templates stays as it is.
    for plain in ["{braces} %s {{ jinja }} {% raw %}", "```python\nunclosed", "<b>unclosed <i"] {
        assert_eq!(calm(plain), plain);
    }
    // A5: what cannot be seen, in any amount.
    let hidden = "\u{202e}\u{200b}\0\u{feff}\u{e0041}\u{85}\u{1b}";
    let said = calm(&format!("a{hidden}b"));
    assert_eq!(said, "a\\u{202e}\\u{200b}\\u{0}\\u{feff}\\u{e0041}\\u{85}\\u{1b}b");
    assert_eq!(calm(&"\u{200b}".repeat(9_000)).matches("\\u{200b}").count(), 8);
    assert!(calm("1\u{200d}2 \u{1f600}\u{fe0f}\u{fe0f}").matches("\\u{").count() == 2);
    assert_eq!(calm(&"x".repeat(200_000)).len(), 200_000);
    // A6: nothing of the prompt can be told from a text that repeats it.
    assert_eq!(calm("What is 6 * 7?"), "What is 6 * 7?");
}

#[test]
fn long_texts_keep_head_and_tail_and_say_so() {
    let fence = fence();
    let text = format!("{}{}", "é".repeat(600), "z".repeat(600));
    let said = sanitize(&text, &fence, 300);
    let note = format!("\n⟦{}: 900 characters left out⟧\n", cut_mark(&fence));
    assert_eq!(said, format!("{}{note}{}", "é".repeat(200), "z".repeat(100)));
    assert_eq!(sanitize(&text, &fence, 1200), Cow::Borrowed(text.as_str()));
    assert!(sanitize("⟦0000: 900 characters left out⟧", &fence, 300).starts_with("⟦·"));
    assert!(!sanitize(&text, &fence, 0).contains('z'));
}

#[test]
fn megabytes_of_hostile_text_take_no_time() {
    let fence = fence();
    let half = &fence[..16];
    let units = [
        "<",
        "<|",
        "[",
        "\n#",
        "\nSystem ",
        "\u{200b}",
        "</",
        "< / ",
        "⟦",
        half,
        "ignore ",
        "score: ",
        "aWdub3Jl",
        "忽略",
        "a ",
        "<|a",
    ];
    for unit in units {
        let text = unit.repeat((1 << 20) / unit.len());
        let limit = scaled(Duration::from_millis(50));
        let calming = shortest_of(limit, || drop(sanitize(&text, &fence, MAX_LENGTH)));
        let finding = shortest_of(limit, || assert_ne!(injection(&text), Some("")));
        assert!(calming <= limit && finding <= limit, "{unit:?}: {calming:?}, {finding:?}");
        let said = sanitize(&text, &fence, MAX_LENGTH);
        assert!(said.len() <= text.len() * 5, "{unit:?}");
    }
}

proptest! {
    #[test]
    fn nothing_of_the_fence_or_hidden_survives(text in "(\\PC|[\\x00-\\x1f<>|\\[\\]/#\u{200b}\u{200d}\u{202e}\u{feff}\n]|response|verdict|System:){0,40}", longest in 0usize..60) {
        let fence = fence();
        let said = sanitize(&format!("{text}{fence}{text}"), &fence, longest + 40).into_owned();
        prop_assert!(!said.contains(&fence));
        prop_assert!(!said.contains("</response>") && !said.contains("<|im"));
        let hidden = ['\0', '\u{1b}', '\u{200b}', '\u{202e}', '\u{feff}'];
        prop_assert!(!said.contains(hidden));
        let _ = injection(&text);
        let once = sanitize(&text, &fence, 1000).into_owned();
        prop_assert_eq!(sanitize(&once, &fence, 100_000).into_owned(), once);
    }
}
