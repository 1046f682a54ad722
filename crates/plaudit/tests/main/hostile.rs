//! Time limits of rules: every rule of the registry on a megabyte of text that has made pattern matchers slow, within 50 ms.

use crate::timing::{cpu_time, scaled, shortest};
use plaudit::conversation::{Arguments, Conversation, FinishReason, Role, Tool, ToolCall, Turn};
use plaudit::rollout::Generation;
use plaudit::rule::reference_view::ReferenceView;
use plaudit::rule::{self, RULES, Rule, RuleInput};
use plaudit::text::Text;
use plaudit::tokenizer::{MAX_TEXT, ResourceCache};
use serde_json::{Map, Value, json};
use std::time::Duration;

const SIZE: usize = 1_000_000;

/// What a rule may take for one megabyte, which `make test-limits` measures.
fn limit() -> Duration {
    scaled(Duration::from_millis(50))
}

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
        "\\boxed{A}",
        "Answer: ",
        "Answer: A is wrong ",
        "Answer: A is wrong\n",
        "answer:\n",
        "not A or B ",
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
        ("a list of answers", around("Answer: ", "A, ", "")),
        ("a box of letters", around("\\boxed{", "A is wrong, ", "}")),
        ("a document in a fence", around("```json\n[", "1,", "1]\n```\n")),
        ("a step without end", around("Step ", "1", "")),
        ("small blocks", fill(&format!("```python\n{}\n```\n", "(".repeat(4000)))),
        ("blocks of f-strings", fill(&format!("```python\n{}\n```\n", "f'{".repeat(1300)))),
        ("empty blocks", fill("```\n```\n")),
        ("fences", fill("```python\n")),
    ]);
    // What makes parsers of Python recurse, lose track or repeat themselves.
    let code = [
        "(",
        "[",
        "-",
        "not ",
        "lambda:",
        "lambda a=",
        "1**",
        "a if b else ",
        "a.",
        "a()",
        "1+",
        "f'{",
        "f'{'\n}' \"' (",
        "a;",
        "x=",
        "a b ",
        "if x:\n ",
        "with (",
        "$",
        "f'{a}' ",
        "def f(a:",
        "a:b:",
        "'",
        "\\",
        "match a:\n case (",
        "é",
        "#",
        "pass\n",
    ];
    texts.extend(code.map(|unit| (unit, around("```python\n", unit, "\n```"))));
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
        ("tool_calls", json!({"mode": "ordered", "arguments": "graded", "score": "f1"})),
        ("tool_calls", json!({"mode": "strict", "arguments": "ignore", "tolerances": {"a": 1.0}})),
        ("tool_calls", json!({"arguments": "superset", "overrides": {"f": ["a.b.c"]}})),
        ("tool_call_validity", json!({"score": "all", "no_calls": 0.0})),
        ("action_loop", json!({"repeats": "consecutive", "penalty": "count", "ignore": ["g", "h"]})),
        ("turn_count", json!({"unit": "call"})),
        ("code_style", json!({"names": "bound"})),
        ("code_syntax_check", json!({"python": "3.8", "bare": false})),
        ("code_patch_similarity", json!({"autojunk": true})),
        ("choice", json!({"mode": "lenient_answer_colon"})),
        ("choice", json!({"mode": "lenient_boxed", "semantics": "published"})),
        ("choice", json!({"mode": "lenient_answer_colon", "semantics": "published"})),
        ("choice", json!({"mode": "lenient_answer_colon_md", "semantics": "published"})),
        ("choice", json!({"patterns": ["a.*z|a", "answer:\\s*(\\w+)", "(.)(?:x|$)"]})),
        ("instructions", json!({"mode": "loose", "credit": "share"})),
        ("instructions", json!({"semantics": "published"})),
        ("language", json!({"scope": "thought"})),
        ("contains", json!({"texts": vec!["aaaaaaab"; 32], "whole_words": true})),
        ("contains", json!({"texts": vec!["1"; 32], "ignore_case": false})),
        ("exact_set", json!({"separators": ["a", "1", " ", "中"]})),
        ("structured_output", json!({"format": "yaml", "strict": true})),
        ("structured_output", json!({"semantics": "published"})),
        ("accuracy", json!({"scope": "all"})),
        ("number_accuracy", json!({"scope": "assistant"})),
    ]
}

/// A schema whose alternatives refer to each other, with patterns.
fn schema() -> Value {
    json!({"anyOf": [{"$ref": "#/$defs/t"}, {"type": "string", "pattern": "(a|aa)+$"}], "$defs": {"t": {
        "patternProperties": {"^(a+)+$": {"$ref": "#"}}, "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        "uniqueItems": true, "not": {"contains": {"const": 7}},
    }}})
}

/// The longest document that is read.
const DOCUMENT: usize = 1 << 18;

/// The largest documents that are read, of what makes parsers recurse, repeat themselves or remember too much.
fn documents() -> Vec<(String, String)> {
    let units = [
        "[",
        "[]",
        "[[],",
        "{",
        "{}",
        "{\"a\":",
        "{\"a\":1},",
        "1,",
        "1",
        "\"a\",",
        "\"",
        "\\u0061",
        "a",
        "a: ",
        "a:\n ",
        "- ",
        "- - ",
        "? ",
        "? a\n",
        "a: b\n",
        "&a ",
        "*a ",
        "&a [*a,",
        "!!str ",
        "!",
        "|\n ",
        ">\n a\n",
        "'",
        "''",
        "# ",
        "---\n",
        "...\n",
        "%",
        "\t",
        "  ",
        "\n",
        "<<: *a\n",
        "a.",
        "a = 1\n",
        "a.b.c = 1\n",
        "[a]\n",
        "[[a]]\n",
        "[a.b]\n",
        "a = [",
        "a = {b = ",
        "\"\"\"",
        "'''",
        "1_",
        "1:",
        "0x",
        ",",
        "\"\",",
        "\"\n",
        "<a>",
        "<a/>",
        "<a>b</a>",
        "<a b='c'>",
        "&amp;",
        "<!--",
        "<![CDATA[",
        "]]>",
        "<?a?>",
        "é",
        "\u{feff}",
    ];
    let mut texts: Vec<(String, String)> =
        units.iter().map(|unit| ((*unit).to_owned(), unit.repeat(DOCUMENT / unit.len()))).collect();
    let around =
        [("[", "]"), ("{\"a\":[", "]}"), ("a: [", "]"), ("a = [", "]"), ("<r>", "</r>"), ("a,b\n", "")];
    for (before, after) in around {
        for unit in ["1,", "\"a\",", "[],", "{},", "<a/>", "<a>1</a>", "1,2\n"] {
            let inner = unit.repeat((DOCUMENT - before.len() - after.len()) / unit.len());
            texts.push((
                format!("{before}{unit}{after}"),
                format!("{before}{}{after}", inner.trim_end_matches(',')),
            ));
        }
    }
    let numbered = |make: &dyn Fn(usize) -> String| {
        let mut all = String::new();
        for part in (0..).map(make).take_while(|_| true) {
            if all.len() + part.len() > DOCUMENT - 4096 {
                return all;
            }
            all.push_str(&part);
        }
        all
    };
    texts.extend([
        ("json keys".to_owned(), format!("{{{}\"z\":1}}", numbered(&|at| format!("\"k{at}\":{at},")))),
        ("yaml keys".to_owned(), numbered(&|at| format!("k{at}: {at}\n"))),
        ("toml keys".to_owned(), numbered(&|at| format!("k{at} = {at}\n"))),
        ("toml tables".to_owned(), numbered(&|at| format!("[t.k{at}]\n"))),
        ("toml dotted keys".to_owned(), numbered(&|at| format!("a.b.c.d.k{at} = {at}\n"))),
        ("anchors".to_owned(), numbered(&|at| format!("k{at}: &a{at} [{at}]\n"))),
        (
            "aliases".to_owned(),
            format!("a: &a [{}]\n{}", "1,".repeat(1000), numbered(&|at| format!("k{at}: *a\n"))),
        ),
        ("columns".to_owned(), numbered(&|at| format!("c{at},"))),
        ("elements".to_owned(), format!("<r>{}</r>", numbered(&|at| format!("<e{at}/>")))),
        ("attributes".to_owned(), format!("<r {}/>", numbered(&|at| format!("a{at}='' ")))),
    ]);
    texts
}

#[test]
fn no_document_makes_a_check_slow() {
    let limit = limit();
    let (mut slow, mut longest) = (Vec::new(), (Duration::ZERO, String::new()));
    let reference = ReferenceView::from("1");
    let extra = Map::from_iter([("schema".to_owned(), schema())]);
    let texts = documents();
    for format in ["json", "yaml", "toml", "csv", "xml"] {
        for semantics in ["corrected", "published"] {
            let kind = rule::find("structured_output").unwrap();
            let parameters = json!({"format": format, "semantics": semantics, "fences": "none"});
            let scorer = (kind.build)(parameters, &mut ResourceCache::default()).unwrap();
            for (name, text) in &texts {
                assert!(text.len() <= DOCUMENT, "{name}");
                // Of YAML only half as much is read.
                let most = if format == "yaml" { DOCUMENT / 2 } else { DOCUMENT };
                let text = &text[..text.floor_char_boundary(most)];
                let took = shortest(limit, || measure(&scorer, text, &reference, &extra));
                let scene = format!("{format}, {semantics} on {name:?}");
                if took > limit {
                    slow.push(format!("{scene}: {took:?}"));
                }
                longest = longest.max((took, scene));
            }
        }
    }
    println!("the longest of all: {longest:?}");
    assert!(slow.is_empty(), "longer than {limit:?}: {slow:#?}");
}

#[test]
fn no_text_makes_a_rule_slow() {
    let limit = limit();
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
            let reference = ReferenceView::from(references[at % references.len()]);
            let mut options = vec!["a"];
            options.extend(references);
            let extra = json!({"correct": at % 2 == 0, "options": options, "schema": schema(), "language": "en",
                "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_sentences", "language:response_language"],
                "kwargs": [{}, {"num_sentences": 3, "relation": "at least"}, {"language": "en"}]});
            let extra = extra.as_object().unwrap().clone();
            let took = shortest(limit, || measure(&scorer, text, &reference, &extra));
            longest = longest.max((took, format!("{} {parameters} on {text_name:?}", kind.name)));
            if took > limit {
                slow.push(format!("{} {parameters} on {text_name:?}: {took:?}", kind.name));
            }
        }
    }
    println!("the longest of all: {longest:?}");
    assert!(slow.is_empty(), "longer than {limit:?} on a megabyte: {slow:?}");
}

/// Runs without a border, each as long as tokenizers take it: a megabyte is floored before it is cut. The encoding `o200k_base`, which is no
/// default, has long tokens of dashes and takes up to four times as long.
#[test]
fn no_run_makes_a_tokenizer_slow() {
    let limit = limit();
    let (mut slow, mut longest) = (Vec::new(), (Duration::ZERO, String::new()));
    let units = [
        "-", "a", "A", " ", "\n", "1", "_", "=", "ab", "-=", " \t", "1a", "aA", "🙂", "🙂👍", "中", "é", "\0",
    ];
    let f1 = ["tiktoken", "jieba", "simple"].map(|kind| ("f1_score", json!({"tokenizer_type": kind})));
    let ngrams = ["cl100k_base", "o200k_base"]
        .map(|encoding| ("ngram_repetition_penalty", json!({"encoding_name": encoding})));
    let scorers = [
        ("f1_score", json!({"encoding_name": "o200k_base"})),
        ("ngram_repetition_penalty", json!({"tokenizer_type": "jieba"})),
        ("total_length", json!({"tokenizer_type": "tiktoken"})),
        ("total_length", json!({"tokenizer_type": "jieba"})),
        ("open_r1.repetition", json!({"language": "zh"})),
    ];
    let reference = ReferenceView::from("a b c");
    for (name, parameters) in f1.into_iter().chain(ngrams).chain(scorers) {
        let scorer =
            (rule::find(name).unwrap().build)(parameters.clone(), &mut ResourceCache::default()).unwrap();
        let limit = if parameters["encoding_name"] == "o200k_base" { limit * 4 } else { limit };
        for unit in units {
            let text = unit.repeat(MAX_TEXT / unit.len());
            let took = shortest(limit, || measure(&scorer, &text, &reference, &Map::new()));
            let scene = format!("{name} {parameters} on {unit:?}");
            if took > limit {
                slow.push(format!("{scene}: {took:?}"));
            }
            longest = longest.max((took, scene));
        }
    }
    println!("the longest of all: {longest:?}");
    assert!(slow.is_empty(), "longer than they may: {slow:#?}");
}

fn call(name: &str, arguments: Value) -> ToolCall {
    match arguments {
        Value::Object(map) => ToolCall { name: name.to_owned(), arguments: Arguments::Object(map) },
        other => ToolCall { name: name.to_owned(), arguments: Arguments::Broken(other.to_string()) },
    }
}

/// About a megabyte of turns each, or as many turns as nobody reads.
fn conversations() -> Vec<(&'static str, Conversation)> {
    let calling = |calls: Vec<ToolCall>| vec![Turn::assistant("", None, calls)];
    let speaking = |text: &str| vec![Turn::assistant(text, None, Vec::new())];
    let arguments = json!({"a": {"b": {"c": 1}}, "x": [1, 2, 3], "t": "text"});
    let many = |count: usize, make: &dyn Fn(usize) -> ToolCall| calling((0..count).map(make).collect());
    let wide: Map<String, Value> = (0..60_000).map(|at| (format!("k{at}"), json!(at))).collect();
    let mut deep = json!(1);
    for _ in 0..60 {
        deep = json!({"a": deep, "b": [deep.is_number()]});
    }
    let mut talk = Vec::new();
    for at in 0..50_000 {
        talk.push(Turn::assistant("a", Some("b"), vec![call("f", json!({"a": at % 7}))]));
        talk.push(Turn::said(Role::Tool, "c"));
    }
    [
        ("turns", (0..100_000).map(|_| Turn::assistant("a", None, Vec::new())).collect()),
        ("turns of tools", talk),
        ("the same call", many(10_000, &|_| call("f", arguments.clone()))),
        ("calls without arguments", many(20_000, &|_| call("f", json!({})))),
        ("other calls", many(10_000, &|at| call("f", json!({"a": {"b": {"c": at}}, "n": at})))),
        ("unknown tools", many(20_000, &|at| call(&format!("g{at}"), json!({})))),
        ("wide arguments", many(1, &|_| call("f", Value::Object(wide.clone())))),
        ("a long list", many(1, &|_| call("f", json!({"x": vec![1; 300_000]})))),
        ("long lists", many(300, &|_| call("f", json!({"x": vec![1; 1000]})))),
        ("a long text", many(1, &|_| call("f", json!({"t": fill("a")})))),
        ("deep arguments", many(1000, &|_| call("f", deep.clone()))),
        ("trees", many(1000, &|_| call("tree", deep.clone()))),
        ("broken arguments", many(1, &|_| call("f", json!(fill("{"))))),
        ("quotes", speaking(&fill("> 42\n"))),
        ("open results", speaking(&fill("<tool_response>"))),
        ("results", speaking(&fill("<tool_response></tool_response>"))),
        ("thoughts", speaking(&fill("<think>a</think>b"))),
        (
            "a tool's result",
            vec![Turn::assistant("a", None, Vec::new()), Turn::said(Role::Tool, &fill("1 "))],
        ),
    ]
    .map(|(name, turns)| (name, Conversation { turns }))
    .into()
}

/// A tool whose schema refers to itself by two ways, so that nested arguments have many readings.
fn tools() -> Vec<Tool> {
    let tree = json!({"anyOf": [{"$ref": "#/$defs/t"}, {"$ref": "#/$defs/t"}], "$defs": {"t": {"type": "object",
        "properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"type": "integer"}]}}}}});
    let plain = json!({"type": "object", "properties": {
        "a": {"type": "object"}, "x": {"type": "array", "items": {"type": "integer"}, "uniqueItems": true},
        "t": {"type": "string", "maxLength": 10},
    }});
    let tool = |name: &str, schema: Value| Tool { name: name.to_owned(), parameters: Some(schema) };
    vec![tool("f", plain), tool("tree", tree)]
}

#[test]
fn no_conversation_makes_a_rule_slow() {
    let limit = limit();
    let expected = |at: usize| json!({"name": "f", "arguments": {"a": {"b": {"c": at % 3}}, "x": [1, 2, 3], "t": "text"}});
    let few: Vec<Value> = (0..4).map(expected).collect();
    let most: Vec<Value> = (0..128).map(expected).collect();
    let long = json!([{"name": "f", "arguments": {"x": vec![1; 1000]}}, {"name": "f", "arguments": {"t": fill("a")}}]);
    let extras =
        [json!(few), json!(most), long].map(|calls| Map::from_iter([("expected_calls".to_owned(), calls)]));
    let (tools, reference) = (tools(), ReferenceView::from("1 2 3.5 -4"));
    let (mut slow, mut longest) = (Vec::new(), (Duration::ZERO, String::new()));
    let conversations = conversations();
    let defaults = RULES.iter().map(|kind| (kind.name, json!({})));
    for (name, parameters) in defaults.chain(variants()) {
        let kind = rule::find(name).unwrap();
        let Ok(Rule::Each(scorer)) = (kind.build)(parameters.clone(), &mut ResourceCache::default()) else {
            continue;
        };
        // Only one rule reads what is expected.
        let extras = if name == "tool_calls" { &extras[..] } else { &extras[..1] };
        for ((at, extra), (turns_name, conversation)) in
            extras.iter().enumerate().flat_map(|extra| conversations.iter().map(move |one| (extra, one)))
        {
            let once = || {
                let start = cpu_time();
                let text = Text::of_conversation(conversation);
                let generation = Generation::from(FinishReason::Length);
                let sample = RuleInput {
                    text: &text,
                    reference: Some(&reference),
                    prompt: None,
                    tokens: Some(1000),
                    generation: &generation,
                    tools: Some(&tools),
                    extra,
                };
                let outcome = scorer.score(&sample);
                assert!(outcome.value().is_none_or(f64::is_finite));
                cpu_time() - start
            };
            let took = shortest(limit, once);
            let scene = format!("{name} {parameters} on {turns_name:?}, expecting {at}");
            if took > limit {
                slow.push(format!("{scene}: {took:?}"));
            }
            longest = longest.max((took, scene));
        }
    }
    println!("the longest of all: {longest:?}");
    assert!(slow.is_empty(), "longer than {limit:?}: {slow:?}");
}

/// The longest texts that the rule compares, which share much, little, or the same few characters.
#[test]
fn no_patch_makes_a_comparison_slow() {
    let limit = limit();
    const LENGTH: usize = 1 << 15;
    let cut = |text: String| text.chars().take(LENGTH).collect::<String>();
    let mut seed = 1_u64;
    let mut random = |letters: u64| -> String {
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'a' + ((seed >> 33) % letters) as u8)
        };
        (0..LENGTH).map(|_| next()).collect()
    };
    let texts: Vec<String> = vec![
        cut("a".repeat(LENGTH)),
        cut("ab".repeat(LENGTH)),
        cut("aab".repeat(LENGTH)),
        cut("- a = b\n+ a = c\n".repeat(LENGTH)),
        cut((0..LENGTH).map(|at| format!("line {at}\n")).collect()),
        cut((0..LENGTH).rev().map(|at| format!("line {at}\n")).collect()),
        cut((0..LENGTH as u32).filter_map(|at| char::from_u32(0x4e00 + at)).collect()),
        random(2),
        random(4),
        random(26),
        random(26),
    ];
    let (extra, mut longest) = (Map::new(), (Duration::ZERO, (0, 0)));
    for parameters in [json!({}), json!({"autojunk": true})] {
        let rule = rule::find("code_patch_similarity").unwrap();
        let scorer = (rule.build)(parameters, &mut ResourceCache::default()).unwrap();
        for (i, first) in texts.iter().enumerate() {
            for (j, second) in texts.iter().enumerate() {
                // A reference of which nothing is prepared yet, each time.
                let took = shortest(limit, || {
                    measure(&scorer, first, &ReferenceView::from(second.as_str()), &extra)
                });
                longest = longest.max((took, (i, j)));
            }
        }
    }
    println!("the longest of all: {longest:?}");
    assert!(longest.0 <= limit, "{longest:?}");
}

/// How long a rule works on a text of which nothing has been looked at yet.
fn measure(scorer: &Rule, text: &str, reference: &ReferenceView<'_>, extra: &Map<String, Value>) -> Duration {
    let texts = [Text::new(text), Text::new(text)];
    let generation = Generation::default();
    let sample = |text| RuleInput {
        text,
        reference: Some(reference),
        prompt: None,
        tokens: Some(1000),
        generation: &generation,
        tools: None,
        extra,
    };
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
