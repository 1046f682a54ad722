//! Checks whether a response follows the constraints of IFEval, IFBench and IF-RLVR.
//!
//! ```
//! use plaudit_instructions::{Mode, Semantics, parse, verdicts};
//! use serde_json::json;
//!
//! let checks = [
//!     parse("punctuation:no_comma", &json!({}), Semantics::Corrected)?,
//!     parse("keywords:existence", &json!({"keywords": ["harbor"]}), Semantics::Corrected)?,
//! ];
//! assert_eq!(verdicts("The harbour, at night.", &checks, Mode::Strict), [false, false]);
//! assert_eq!(verdicts("The harbor at night.", &checks, Mode::Strict), [true, true]);
//! # Ok::<(), plaudit_instructions::ArgumentError>(())
//! ```
//!
//! [`parse`] reads one constraint with its arguments into a [`Check`], which is held against many responses. [`constraints`]
//! lists the 112 constraints: what each checks, how it can be gamed, and where [`Semantics::Corrected`] differs from
//! [`Semantics::Published`]; [`register`] adds one of your own. [`row`] reads the three public forms of a row.
//!
//! What must hold: nothing is drawn at random, downloaded or cached between processes; any text is safe and takes linear
//! time; an unknown constraint and a missing argument are errors; a response that is blank follows nothing.
#![doc = include_str!("../README.md")]

// In the order of the path of a row.
pub mod row;
mod argument;
mod constraint;
mod own;
mod keyword;
mod response;
mod ifeval;
mod if_rlvr;
mod ifbench;
pub mod text;

pub use argument::{ArgumentError, ArgumentErrorKind, Kind, Parameter};
pub use constraint::{Check, Constraint, Family, Semantics, constraints, find, parse};
pub use own::{CheckError, OwnConstraint, OwnTest, register, registered};
pub use response::{Mode, Response, Texts, verdicts};
pub use text::view::View;
