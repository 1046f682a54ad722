//! Decides whether the answer in a model's response equals a reference answer in mathematics.
//!
//! ```
//! use plaudit_math::{Options, Outcome, Reference, verify};
//!
//! let reference = Reference::parse("2\\sqrt{3}", &Options::default())?;
//! let verdict = verify("So the side is $\\boxed{\\sqrt{12}}$.", &reference);
//! assert_eq!(verdict.outcome, Outcome::Right);
//! # Ok::<(), plaudit_math::ReferenceError>(())
//! ```
//!
//! A [`Reference`] is read once and held against many responses. [`verify`] finds the answer of a response after its
//! thinking, reads it into a typed value (an expression, a list, a set, an interval, a matrix, a relation, a text) and
//! compares it; [`extract()`] finds it without a reference. A [`Verdict`] tells right from *read and wrong*, *not read*, *no answer* and *a bound was broken*.
//!
//! What counts as equal, cheapest proof first:
//!
//! 1. exact rationals;
//! 2. identities in prime fields, at points that come from a secret and from the reference, so that no answer can be
//!    prepared to vanish there;
//! 3. balls at rising precision, which prove a difference when they are disjoint, and grant equality only when they
//!    agree to 64 bits below the smallest number that occurred on the way.
//!
//! A comparison of two floating-point numbers never says *equal*.
//!
//! What must hold: any text is safe and takes linear time; every bound counts bytes, bits or limb operations and never
//! time; the stack stays below 256 KiB; equality is symmetric; the secret changes no verdict.
#![doc = include_str!("../README.md")]

// In the order of the path of a response.
mod verify;
mod presets;
pub mod mark;
mod extract;
mod options;
mod limits;
mod text;
mod lex;
mod parse;
mod value;
mod word;
mod unit;
mod equality;
mod number;
mod expr;
mod identity_test;
mod numeric;
mod ball;

pub use equality::ProofMethod;
pub use extract::{Found, Rule};
pub use limits::NoValue;
pub use options::{AnswerIn, Options, Order, Percent, Think, Units};
pub use presets::{Preset, PresetReference, PresetScore, PresetScores};
pub use verify::{Comparison, Outcome, Reference, ReferenceError, Verdict, extract, kind_of, verify};
