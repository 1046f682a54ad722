//! Judged rewards: their parameters, one file each, and what they become once they are loaded.

pub mod custom_prompt;
pub mod judged_reward;
pub mod params;
pub mod principle;
pub mod principle_sets;
pub mod reward_model;
pub mod rubric;
