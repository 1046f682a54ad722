//! All integration tests of the engine, in one binary, because every link costs seconds.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod aggregate;
mod architecture;
mod code;
mod composition;
mod conversation_vectors;
mod engine;
mod faults;
mod fields;
mod golden;
mod hostile;
mod invalid_causes;
mod join;
mod journal;
mod judge_prompts;
mod judge_replies;
mod judge_templates;
mod json_schema;
mod left_out;
mod math;
mod mock_judge;
mod planted;
mod properties;
mod recipe;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "redis")]
mod redis_server;
mod reference;
mod regex_cases;
mod rubric;
mod rubric_vectors;
mod submit;
mod timing;
mod whole_groups;
mod wire_forms;
