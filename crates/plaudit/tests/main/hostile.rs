//! Time limits of rules: every rule of the registry on a megabyte of text that has made pattern matchers slow, within 50 ms.

use crate::timing::cpu_time;
use plaudit::rule::{self, RULES, Rule, Sample};
use plaudit::text::Text;
use plaudit::tokenizer::ResourceCache;
use serde_json::{Map, Value, json};
use std::time::Duration;

const SIZE: usize = 1_000_000;

/// What a rule may take for one megabyte, which `make test-limits` measures. A build without optimisation is several times
/// slower.
const LIMIT: Duration = Duration::from_millis(if cfg!(debug_assertions) { 50 * 10 } else { 50 });

fn fill(unit: &str) -> String {
    unit.repeat(SIZE / unit.len())
}

fn around(before: &str, unit: &str, after: &str) -> String {
    format!("{before}{}{after}", fill(unit))
}

fn texts() -> Vec<(&'static str, String)> {
    let units = [
        "<",
        "</",
        "<a",
        "<think>",
        "</think>",
        "<think>\n",
        "\n</think>\n",
        "\n</think>\n<answer>\n",
        "\n</answer>",
        "<answer>",
        "<a>",
        "<tool_call>",
        "<tool_call></tool_call>",
        "</tool_call> ",
        "@",
        "a@a@",
        "a@a.",
        ".@",
        "a@b.co_",
        "1",
        "9.",
        "1.1.1.1.",
        "-",
        "-1",
        "1-",
        "1 ",
        "123-",
        "1234 ",
        "(1",
        "+1",
        "中",
        "中1",
        " ",
        "\n",
        "\u{a0}",
        "\n- ",
        "\n1",
        "Step 1: ",
        "Step 1",
        "First,",
        ":",
        ",",
        "\0",
        "e\u{301}",
        "\u{301}",
        "𝟙",
        "𝟙.",
        "٣-",
        "{",
        "\"",
        "\\",
        "\\text{",
        "a",
        "a ",
        "ab ",
        "A",
        "İ",
        "ß",
        "。",
        "```",
        "$",
        "\\boxed{",
    ];
    let mut texts: Vec<(&str, String)> = units.iter().map(|unit| (*unit, fill(unit))).collect();
    let thought = "<think>t</think>";
    texts.extend([
        ("calls, then text", around(thought, "<tool_call>{}</tool_call>", " and more")),
        ("good calls", around(thought, r#"<tool_call>{"name":"f","arguments":{}}</tool_call>"#, "")),
        ("braces in a call", around(&format!("{thought}<tool_call>"), "{", "</tool_call>")),
        ("brackets in a call", around(&format!("{thought}<tool_call>"), "[", "</tool_call>")),
        (
            "keys in a call",
            around(&format!("{thought}<tool_call>{{"), "\"name\":1,", "\"arguments\":1}</tool_call>"),
        ),
        ("quotes in a call", around(&format!("{thought}<tool_call>"), "\"", "</tool_call>")),
        ("escapes in a call", around(&format!("{thought}<tool_call>{{\""), "\\u0061", "\":1}</tool_call>")),
        ("digits in a call", around(&format!("{thought}<tool_call>"), "1", "</tool_call>")),
        ("spaces in a call", around(&format!("{thought}<tool_call>"), " ", "</tool_call>")),
        ("spaces between tags", around(thought, " ", "<answer>a</answer>")),
        ("a long thought", around("<think>\n", "a", "\n</think>\n<answer>\nb\n</answer>")),
        ("a long name", around("", "a", "@b.com")),
        ("a long domain", around("a@", "b.", "com")),
        ("a long number", around("-", "1", ".5")),
        ("a step without end", around("Step ", "1", "")),
    ]);
    texts
}

/// Ways of a rule that its default parameters do not take.
fn variants() -> Vec<(&'static str, Value)> {
    vec![
        ("reasoning_format", json!({"strict": true})),
        ("reasoning_tool_call_format", json!({"strict": true})),
        ("number_accuracy", json!({"scope": "answer"})),
        ("accuracy", json!({"scope": "answer"})),
        ("ngram_repetition_penalty", json!({"tokenizer_type": "simple", "n": 64})),
        ("ngram_repetition_penalty", json!({"tokenizer_type": "jieba", "use_soft_penalty": true})),
        ("ngram_repetition_penalty", json!({"encoding_name": "o200k_base", "analyze_scope": "thought"})),
        ("f1_score", json!({"tokenizer_type": "simple"})),
        ("f1_score", json!({"tokenizer_type": "jieba"})),
        ("total_length", json!({"unit": "word"})),
        ("thought_length", json!({"unit": "character"})),
        ("open_r1.repetition", json!({"language": "zh"})),
        ("math", json!({"answer": "last_number", "think": "keep"})),
        ("math", json!({"preset": "verl.math_reward"})),
        ("math", json!({"preset": "verl.math_dapo"})),
        ("math", json!({"preset": "verl.prime_math"})),
        ("math", json!({"preset": "trl.accuracy"})),
        ("open_r1.cosine_length", json!({"correct": "answer"})),
        (
            "regex",
            json!({"pattern": r"(?s)<think>.*?</think>\s*<answer>(?P<answer>.*?)</answer>", "compare": true}),
        ),
        ("regex", json!({"pattern": r"(\d+[,.]?)+\s*(kg|km|m)\b"})),
    ]
}

#[test]
fn no_text_makes_a_rule_slow() {
    let references = ["42", "1 2 3.5 -4", "a b c"];
    let (mut slow, mut longest) = (Vec::new(), (Duration::ZERO, String::new()));
    let texts = texts();
    let defaults = RULES.iter().map(|kind| (kind.name, json!({})));
    for (name, parameters) in defaults.chain(variants()) {
        let kind = rule::find(name).unwrap();
        // A rule without a default, such as a pattern of the recipe's own, stands among the variants.
        let Ok(scorer) = (kind.build)(parameters.clone(), &mut ResourceCache::default()) else {
            assert!(parameters == json!({}), "{name} {parameters}");
            continue;
        };
        for (at, (text_name, text)) in texts.iter().enumerate() {
            let reference = Text::new(references[at % references.len()]);
            let extra = Map::from_iter([("correct".to_owned(), Value::Bool(at % 2 == 0))]);
            // The best of three, because other work on the machine makes a run longer and never shorter.
            let took = (0..3).map(|_| measure(&scorer, text, &reference, &extra)).min().unwrap();
            longest = longest.max((took, format!("{} {parameters} on {text_name:?}", kind.name)));
            if took > LIMIT {
                slow.push(format!("{} {parameters} on {text_name:?}: {took:?}", kind.name));
            }
        }
    }
    println!("the longest of all: {longest:?}");
    assert!(slow.is_empty(), "longer than {LIMIT:?} on a megabyte: {slow:?}");
}

/// How long a rule works on a text of which nothing has been looked at yet.
fn measure(scorer: &Rule, text: &str, reference: &Text<'_>, extra: &Map<String, Value>) -> Duration {
    let texts = [Text::new(text), Text::new(text)];
    let sample = |text| Sample { text, reference: Some(reference), prompt: None, tokens: Some(1000), extra };
    let start = cpu_time();
    match scorer {
        Rule::Each(rule) => {
            let outcome = rule.score(&sample(&texts[0]));
            let took = cpu_time() - start;
            assert!(outcome.value().is_none_or(f64::is_finite));
            took
        }
        Rule::Group(rule) => {
            let outcomes = rule.score(&[sample(&texts[0]), sample(&texts[1])]);
            let took = (cpu_time() - start) / 2;
            assert_eq!(outcomes.len(), 2);
            took
        }
    }
}
