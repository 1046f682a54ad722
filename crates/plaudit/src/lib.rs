//! A reward engine for LLM post-training: rollouts and a recipe in, a report out.
//!
//! A [`recipe`] says which components make the total of a rollout; its [`plan`] is what it means. An [`engine`] scores
//! [`rollout`]s by a plan, group by group, and gives back a [`report`]: one row a rollout, in input order, with every
//! component's [`outcome`], and the [`statistics`].
//!
//! ```
//! use plaudit::engine::Engine;
//! use plaudit::recipe::Recipe;
//! use plaudit::rollout::Rollout;
//!
//! let recipe = Recipe::from_yaml(
//!     "components:
//!        format: { reward: reasoning_format, weight: 0.2 }
//!        answer: { reward: number_accuracy, weight: 1.0, scope: answer }",
//! )?;
//! let engine = Engine::new(recipe.plan()?)?;
//! let report = engine.score(&[
//!     Rollout::new("<think>Six sevens.</think><answer>42</answer>").to_prompt("6 * 7?").with_reference("42"),
//!     Rollout::new("forty-two").to_prompt("6 * 7?").with_reference("42"),
//! ])?;
//! assert_eq!(report.totals(), [1.2, 0.0]);
//! assert_eq!(report.statistics.groups.count, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What must hold, everywhere: a failure is never a number (an outcome without evidence has no value), any text is safe
//! (every rule is linear or bounded), and the same input gives the same bytes at any parallelism.

pub mod aggregate;
pub mod compose;
pub mod court;
pub mod engine;
pub mod error;
pub mod group;
pub mod input;
pub mod join;
pub mod journal;
pub mod judge;
pub mod outcome;
pub mod plan;
pub mod reason;
pub mod recipe;
pub mod registry;
pub mod report;
pub mod reward;
pub mod rollout;
pub mod rule;
pub mod schedule;
pub mod statistics;
pub mod text;
pub mod tokenizer;

#[cfg(test)]
#[allow(dead_code, reason = "the unit tests measure, and the integration tests wait as well")]
#[path = "../tests/main/timing.rs"]
mod timing;
