//! The 25 constraints of IFEval.

pub(crate) mod keywords;
pub(crate) mod language;
pub(crate) mod length;
mod content;
mod format;
mod combination;
mod startend;
mod case;

use crate::constraint::Constraint;

/// One table a file.
pub(crate) const TABLES: &[&[Constraint]] = &[
    keywords::TABLE,
    language::TABLE,
    length::TABLE,
    content::TABLE,
    format::TABLE,
    combination::TABLE,
    startend::TABLE,
    case::TABLE,
];
