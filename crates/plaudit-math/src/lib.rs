//! x
#![allow(dead_code, missing_docs)]
pub mod bound;
mod number;
mod expr;
mod field;
mod ball;
mod real;
