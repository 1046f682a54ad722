//! Benchmark of the engine: the same cases as the peer's side in `bench/peer.py`, through the engine's public API.
//!
//! `cargo run --release -p plaudit --example bench -- bench/data [case]...` prints one JSON object: for each case the
//! number of rollouts, the processor and wall seconds, and rollouts per second: per processor second on one thread,
//! or, for the cases that end in `/batch`, per wall second on all cores.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints, and stops where it cannot go on"
)]

use plaudit::engine::Engine;
use plaudit::input::{Fields, read_line};
use plaudit::recipe::Recipe;
use plaudit::rollout::Rollout;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// As in the command and in the extension.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Name, corpus, and the components of the recipe.
const CASES: &[(&str, &str, &str)] = &[
    ("reasoning_format", "responses", "a: { reward: reasoning_format }"),
    ("reasoning_tool_call_format", "responses", "a: { reward: reasoning_tool_call_format }"),
    ("reasoning_tool_call_format/tools", "responses_tools", "a: { reward: reasoning_tool_call_format }"),
    ("length_penalty", "responses", "a: { reward: length_penalty }"),
    ("ngram/simple", "responses", "a: { reward: ngram_repetition_penalty, tokenizer_type: simple }"),
    (
        "ngram/simple_soft_5",
        "responses",
        "a: { reward: ngram_repetition_penalty, tokenizer_type: simple, n: 5, use_soft_penalty: true, min_scaling: 0.1 }",
    ),
    ("ngram/jieba", "responses", "a: { reward: ngram_repetition_penalty, tokenizer_type: jieba }"),
    ("ngram/tiktoken", "responses", "a: { reward: ngram_repetition_penalty, tokenizer_type: tiktoken }"),
    ("privacy_leakage", "responses", "a: { reward: privacy_leakage }"),
    ("accuracy", "responses_short", "a: { reward: accuracy }"),
    ("number_accuracy", "responses_short", "a: { reward: number_accuracy }"),
    ("f1/simple", "responses", "a: { reward: f1_score, tokenizer_type: simple }"),
    ("f1/jieba", "responses", "a: { reward: f1_score, tokenizer_type: jieba }"),
    ("f1/tiktoken", "responses", "a: { reward: f1_score, tokenizer_type: tiktoken }"),
    ("rouge", "responses", "a: { reward: rouge }"),
    ("math", "math", "a: { reward: math_verify_reward }"),
    ("code_syntax_check", "responses_code", "a: { reward: code_syntax_check }"),
    ("code_style", "responses_code", "a: { reward: code_style }"),
    ("code_patch_similarity", "responses_code", "a: { reward: code_patch_similarity, autojunk: true }"),
    ("code_patch_similarity/default", "responses_code", "a: { reward: code_patch_similarity }"),
    ("composition", "responses", COMPOSITION),
    ("reasoning_format/batch", "responses", "a: { reward: reasoning_format }"),
    ("composition/batch", "responses", COMPOSITION),
];

const COMPOSITION: &str = "format: { reward: reasoning_format }, length: { reward: length_penalty }, \
     ngram: { reward: ngram_repetition_penalty, tokenizer_type: simple }";

/// How long one case is repeated.
const LEAST: Duration = Duration::from_millis(1500);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("the folder of the corpus");
    let wanted: Vec<String> = arguments.collect();
    let mut results = Map::new();
    for (name, corpus, components) in CASES {
        if !wanted.is_empty() && !wanted.iter().any(|want| name.contains(want.as_str())) {
            continue;
        }
        let batch = name.ends_with("/batch");
        let threads = if batch { "" } else { "groups: { parallel: 1 }\n" };
        let recipe = format!("components: {{ {components} }}\n{threads}");
        let rollouts = read(&Path::new(&folder).join(format!("{corpus}.jsonl")));
        results.insert((*name).to_owned(), measure(&recipe, &rollouts, batch));
    }
    println!("{}", serde_json::to_string_pretty(&results).expect("JSON"));
}

fn read(path: &Path) -> Vec<Rollout<'static>> {
    let text = std::fs::read_to_string(path).expect("the corpus");
    let lines = text.lines().map(|line| read_line(line.as_bytes(), &Fields::own()).expect("a rollout"));
    lines.flatten().collect()
}

fn measure(recipe: &str, rollouts: &[Rollout<'_>], batch: bool) -> Value {
    let plan = Recipe::from_yaml(recipe).and_then(|recipe| recipe.plan()).expect("a recipe");
    let engine = Engine::new(plan).expect("an engine");
    let warm = engine.score(rollouts).expect("a report");
    assert_eq!(warm.statistics.outcomes.all(), rollouts.len() as u64);
    let (wall, processor) = (Instant::now(), processor_time());
    let mut scored = 0;
    while wall.elapsed() < LEAST {
        let report = engine.score(rollouts).expect("a report");
        scored += std::hint::black_box(report.rows.len());
    }
    let (wall, processor) = (wall.elapsed().as_secs_f64(), processor_time() - processor);
    let seconds = if batch { wall } else { processor };
    json!({ "n": scored, "cpu_s": processor, "wall_s": wall, "per_s": scored as f64 / seconds })
}

/// The processor seconds of this process, as the kernel counts them in hundredths.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / 100.0
}
