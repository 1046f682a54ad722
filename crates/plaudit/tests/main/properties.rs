//! Property tests of the engine: order, batch and threads do not change the result of a rollout.

use plaudit::engine::Engine;
use plaudit::recipe::Recipe;
use plaudit::report::Row;
use plaudit::rollout::Rollout;
use proptest::prelude::*;

/// Components of every kind of view: tags, words, numbers, patterns, characters, references and the group.
const RECIPE: &str = "components:
  gate: { reward: trl.think_format, weight: 0.1, gate: { min: 0.0 } }
  format: { reward: reasoning_format }
  tools: { reward: reasoning_tool_call_format }
  ngram: { reward: ngram_repetition_penalty, tokenizer_type: simple, n: 2, penalty_threshold: 0.0 }
  f1: { reward: f1_score, tokenizer_type: simple }
  rouge: { reward: rouge }
  numbers: { reward: number_accuracy, scope: answer }
  privacy: { reward: privacy_leakage }
  steps: { reward: open_r1.reasoning_steps }
  brevity: { reward: kimi.length, correct: answer }
";

fn engine(threads: usize) -> Engine {
    let recipe = format!("{RECIPE}groups: {{ parallel: {threads} }}\n");
    Engine::new(Recipe::from_yaml(&recipe).unwrap().plan().unwrap()).unwrap()
}

/// A response made of what the rules look for, so that they find something.
fn response() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "<think>",
        "</think>",
        "<answer>",
        "</answer>",
        "<tool_call>",
        "</tool_call>",
        "{\"name\":1,",
        "\"arguments\":2}",
        "42",
        "-3.5",
        " ",
        "\n",
        "word ",
        "Word ",
        "First, ",
        "a@b.com ",
        "中文",
        "，",
        "\\boxed{42}",
        "İ",
        "\u{3000}",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn rollout() -> impl Strategy<Value = Rollout<'static>> {
    let reference = prop::option::of(prop::sample::select(vec!["42", "word 42", "", "中文"]));
    (response(), 0..4_u8, reference).prop_map(|(response, group, reference)| {
        let mut rollout = Rollout::new(response).in_group(format!("g{group}"));
        rollout.reference = reference.map(Into::into);
        rollout
    })
}

fn rows(engine: &Engine, rollouts: &[Rollout<'_>]) -> Vec<Row> {
    let mut rows = engine.score(rollouts).unwrap().rows;
    // Which of two twins was scored in the other's place depends on their order, and nothing else does.
    rows.iter_mut().for_each(|row| row.duplicate = false);
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn order_changes_nothing(rollouts in prop::collection::vec(rollout(), 1..24), turn in 0..24_usize) {
        let engine = engine(1);
        let mut turned = rollouts.clone();
        turned.reverse();
        turned.rotate_left(turn % rollouts.len());
        let mut back = rows(&engine, &turned);
        back.rotate_right(turn % rollouts.len());
        back.reverse();
        prop_assert_eq!(back, rows(&engine, &rollouts));
    }

    #[test]
    fn other_groups_change_nothing(rollouts in prop::collection::vec(rollout(), 1..24)) {
        let engine = engine(1);
        let together = rows(&engine, &rollouts);
        for group in ["g0", "g1", "g2", "g3"] {
            let of = |rollout: &Rollout<'_>| rollout.group.as_deref() == Some(group);
            let alone: Vec<Rollout<'_>> = rollouts.iter().filter(|rollout| of(rollout)).cloned().collect();
            let same: Vec<Row> =
                together.iter().zip(&rollouts).filter(|(_, rollout)| of(rollout)).map(|(row, _)| row.clone()).collect();
            prop_assert_eq!(rows(&engine, &alone), same);
        }
    }

    #[test]
    fn threads_change_nothing(rollouts in prop::collection::vec(rollout(), 1..24)) {
        let (one, four) = (engine(1).score(&rollouts).unwrap(), engine(4).score(&rollouts).unwrap());
        prop_assert_eq!(one.rows, four.rows);
        prop_assert_eq!(one.statistics, four.statistics);
    }

    #[test]
    fn every_number_is_finite_and_every_rollout_has_an_outcome(rollouts in prop::collection::vec(rollout(), 0..24)) {
        let report = engine(1).score(&rollouts).unwrap();
        prop_assert_eq!(report.statistics.outcomes.all(), rollouts.len() as u64);
        for row in &report.rows {
            let values = row.outcomes.iter().flatten().filter_map(|outcome| outcome.value());
            prop_assert!(values.chain(row.total.value()).all(f64::is_finite));
            prop_assert!(row.total.value().is_some() || row.total.cause().is_some());
        }
    }
}
