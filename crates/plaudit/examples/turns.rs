//! Benchmark of conversations: text rules on trajectories of 20 turns, beside the same bytes as plain text.
//!
//! `cargo run --release -p plaudit --example turns -- bench/data [rule]...` makes trajectories of the corpus that `bench/corpus.py` writes,
//! ten turns of the model and ten of a tool in each, and prints for each rule and for all of them in one recipe, with
//! `scope: all`, the megabytes per second of both on one core, and their ratio. Exit code 1 where a recipe is below 0.8; a rule
//! that does nothing but count is shown and not judged, because to join the turns costs as much as to count them.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints, and stops where it cannot go on"
)]

use plaudit::conversation::{Conversation, Role, Turn};
use plaudit::engine::Engine;
use plaudit::input::{Fields, read_line};
use plaudit::recipe::Recipe;
use plaudit::rollout::Rollout;
use plaudit::text::Text;
use plaudit::text::scope::Scope;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

// As the command has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Rules that read the text of a scope.
const RULES: &[&str] = &[
    "accuracy",
    "number_accuracy",
    "f1_score",
    "rouge",
    "privacy_leakage",
    "length_penalty",
    "total_length, unit: word, max: 4000, band: 1000",
    "open_r1.repetition",
    "regex, pattern: '[0-9]+ [a-z]+ing'",
];
const TURNS: usize = 20;
/// How long one side runs at a time, and how often.
const SPELL: Duration = Duration::from_millis(250);
const SPELLS: usize = 7;
const LEAST_RATIO: f64 = 0.8;
/// The rule that only counts characters, at the speed of memory.
const COUNTING: &str = "length_penalty";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("the folder of the corpus");
    let wanted: Vec<String> = arguments.collect();
    let text = std::fs::read_to_string(format!("{folder}/responses.jsonl")).expect("the corpus");
    let read = |line: &str| read_line(line.as_bytes(), &Fields::own()).expect("a rollout");
    let rollouts: Vec<Rollout<'_>> = text.lines().flat_map(read).collect();
    let turns: Vec<Rollout<'_>> = rollouts.chunks_exact(TURNS / 4).map(trajectory).collect();
    let plain: Vec<Rollout<'_>> = turns.iter().map(as_text).collect();
    let bytes: usize = plain.iter().map(|rollout| rollout.response.len()).sum();
    println!("{} trajectories of {TURNS} turns, {} bytes each\n", turns.len(), bytes / turns.len());
    println!("| Rule | turns, MB/s | text, MB/s | Ratio |\n|---|---|---|---|");
    let one = |at: usize, rule: &str| format!("c{at}: {{ reward: {rule}, scope: all }}");
    let mut cases: Vec<(&str, String)> = RULES.iter().map(|rule| (*rule, one(0, rule))).collect();
    let all: Vec<String> = RULES.iter().enumerate().map(|(at, rule)| one(at, rule)).collect();
    cases.push(("all of them", all.join(", ")));
    let mut reached = true;
    for (name, components) in cases {
        if !wanted.is_empty() && !wanted.iter().any(|want| name.contains(want.as_str())) {
            continue;
        }
        let recipe = format!("components: {{ {components} }}\ngroups: {{ parallel: 1 }}");
        let plan = Recipe::from_yaml(&recipe).and_then(|recipe| recipe.plan()).expect("a recipe");
        let engine = Engine::new(plan).expect("an engine");
        let totals = |rollouts: &[Rollout<'_>]| -> Vec<Option<f64>> {
            engine.score(rollouts).expect("a report").rows.iter().map(|row| row.total.value()).collect()
        };
        assert_eq!(totals(&turns), totals(&plain), "{name}");
        let mut best = [0.0_f64; 2];
        for _ in 0..SPELLS {
            for (best, rollouts) in best.iter_mut().zip([&turns, &plain]) {
                *best = best.max(rate(&engine, rollouts) * bytes as f64 / 1e6);
            }
        }
        let ratio = best[0] / best[1];
        println!("| {name} | {:.0} | {:.0} | {ratio:.2} |", best[0], best[1]);
        reached &= ratio >= LEAST_RATIO || name == COUNTING;
    }
    if reached { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How often all rollouts are scored in a second.
fn rate(engine: &Engine, rollouts: &[Rollout<'_>]) -> f64 {
    let (start, mut rounds) = (Instant::now(), 0);
    while start.elapsed() < SPELL {
        std::hint::black_box(engine.score(rollouts).expect("a report"));
        rounds += 1;
    }
    f64::from(rounds) / start.elapsed().as_secs_f64()
}

/// A conversation of the quarters of some responses, said by the model and by a tool in turn.
fn trajectory(responses: &[Rollout<'_>]) -> Rollout<'static> {
    let mut pieces = Vec::new();
    for response in responses {
        let mut rest: &str = &response.response;
        for left in (1..=4).rev() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(rest.len() / left));
            pieces.push(piece);
            rest = after;
        }
    }
    let turn = |(at, piece): (usize, &&str)| match at % 2 {
        0 => Turn::assistant(piece, None, Vec::new()),
        _ => Turn::said(Role::Tool, piece),
    };
    let conversation = Conversation { turns: pieces.iter().enumerate().map(turn).collect() };
    Rollout {
        reference: responses[0].reference.as_ref().map(|text| text.clone().into_owned()),
        conversation: Some(Arc::new(conversation)),
        ..Rollout::new("")
    }
}

/// The bytes that a rule reads of a trajectory, as a response of plain text.
fn as_text(trajectory: &Rollout<'_>) -> Rollout<'static> {
    let text = Scope::All.of(&Text::of(trajectory)).to_owned();
    Rollout {
        reference: trajectory.reference.as_ref().map(|text| text.clone().into_owned()),
        ..Rollout::new(text)
    }
}
