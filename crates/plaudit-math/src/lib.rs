//! Decides whether the answer in a model's response equals a reference answer in mathematics.
mod verify;
mod presets;
mod extract;
mod options;
mod bound;
mod text;
mod lex;
mod parse;
mod value;
mod unit;
mod judge;
mod number;
mod expr;
mod field;
mod real;
mod ball;

pub use bound::Bound;
pub use extract::Rule;
pub use options::{AnswerIn, Options, Order, Percent, Think, Units};
pub use presets::{Preset, PresetReference, PresetScore};
pub use verify::{Outcome, Reference, ReferenceError, Verdict, verify};
