//! A reward engine for LLM post-training: rollouts and a recipe in, a report out.

pub mod aggregate;
pub mod compose;
pub mod engine;
pub mod error;
pub mod group;
pub mod input;
pub mod outcome;
pub mod plan;
pub mod reason;
pub mod recipe;
pub mod report;
pub mod rollout;
pub mod rule;
pub mod schedule;
pub mod statistics;
pub mod text;
pub mod tokenizer;
