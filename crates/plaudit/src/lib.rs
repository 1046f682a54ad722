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

// In the order of the path of a batch.

// Recipe files: what a user writes. All errors at once, with lines.
pub mod recipe;

// Rewards by name: rules, judged rewards and custom ones.
pub mod registry;

// Parameters, ranges and schemas that all rewards share.
pub mod reward;

// Free questions to the judges of a recipe, which custom rewards may ask.
pub mod question;

// What a recipe means: loaded rewards, resolved judges, weights, gates and routes.
pub mod plan;

// Reads rollouts from JSON lines and trainers' formats.
pub mod input;

// A response made of turns: the normal form of every wire form.
pub mod conversation;

// A prompt, a response and what belongs to them.
pub mod rollout;

// Rubrics: weighted criteria that come with a row, and what verdicts about them come to.
pub mod rubric;

// Groups of rollouts with one prompt.
pub mod group;

// Collects the members of a group that arrive one by one.
pub mod join;

// Scores batches: rules, custom rewards, judges, totals, report.
pub mod engine;

// Rewards that need no judge.
pub mod rule;

// Text views and searches that rules share.
pub mod text;

// Token counts by the tokenizers of models.
pub mod tokenizer;

// Runs the programs of responses against their tests in a sandbox.
#[cfg(feature = "code")]
pub mod code;
#[cfg(not(feature = "code"))]
#[path = "code/absent.rs"]
pub mod code;

// LLM judges: rewards, prompts, answers, client and runner.
pub mod judge;

// Turns comparisons and rankings into scores.
pub mod aggregate;

// What stores judgments and the results of programs must do, and a record in memory.
pub mod record;

// Stores judgments and the results of programs, on disk or in Redis.
pub mod journal;

// Combines the outcomes of components into a total.
pub mod compose;

// What a component says of a rollout: scored, floored, skipped or invalid.
pub mod outcome;

// Stable codes and messages for everything that has no value.
pub mod reason;

// Rows and statistics of a scored batch.
pub mod report;

// Statistics over rollouts, groups, judges and steps.
pub mod statistics;

// When a run in which nothing can be scored ends.
pub mod abort;

// Errors that stop a run.
pub mod error;

// Thread pool, clocks, deadlines and cancellation.
pub mod exec;

#[cfg(feature = "tls")]
mod tls;

// The example in the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
#[allow(dead_code, reason = "the unit tests measure, and the integration tests wait as well")]
#[path = "../tests/main/timing.rs"]
mod timing;
