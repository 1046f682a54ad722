//! The engine.

pub mod recipe;
