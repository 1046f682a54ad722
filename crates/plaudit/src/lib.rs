//! A reward engine for LLM post-training: rollouts and a recipe in, a report out.

pub mod outcome;
pub mod reason;
pub mod rollout;
pub mod rule;
pub mod text;
pub mod tokenizer;
