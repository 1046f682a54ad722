//! The 29 constraints that IF-RLVR (IFEvalG, IFTrain) adds to those of IFEval.

mod copy;
mod keywords;
mod first_last;
mod paragraphs;
mod brackets;
mod counts;

use crate::constraint::Constraint;

/// One table a file.
pub(crate) const TABLES: &[&[Constraint]] =
    &[copy::TABLE, keywords::TABLE, first_last::TABLE, paragraphs::TABLE, brackets::TABLE, counts::TABLE];
