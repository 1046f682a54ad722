//! The arguments of a constraint: typed, never drawn at random, and every mistake named.

use crate::constraint::{Constraint, Semantics};
use serde_json::{Map, Value};
use std::fmt;

/// One argument of a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The public name, such as `num_words`.
    pub name: &'static str,
    /// What it must be.
    pub kind: Kind,
    /// Whether the constraint can do without it.
    pub optional: bool,
}

impl Parameter {
    /// An argument that must be given.
    pub const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, optional: false }
    }

    /// An argument that the constraint can do without.
    pub const fn optional(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, optional: true }
    }
}

/// What an argument must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Integer,
    /// A number, whole or not.
    Number,
    /// A text.
    Text,
    /// A list of texts.
    Texts,
    /// `less than` or `at least`.
    Relation,
    /// Whatever a constraint of one's own takes.
    Any,
}

impl Kind {
    /// The kind in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::Texts => "a list of texts",
            Self::Relation => "\"less than\" or \"at least\"",
            Self::Any => "a value",
        }
    }
}

/// A constraint that cannot be checked, because of its id or one of its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError {
    /// The id as it was given.
    pub id: String,
    /// The argument, or nothing where the mistake is not in one.
    pub argument: String,
    /// What is wrong.
    pub problem: ArgumentErrorKind,
}

/// What is wrong with an id or an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentErrorKind {
    /// No constraint has this id.
    UnknownConstraint,
    /// The arguments are not an object.
    NoObject,
    /// The constraint does not have this argument.
    UnknownArgument,
    /// It is not given, or null. The published checkers draw it at random.
    Missing,
    /// It is not what it must be.
    Mistyped(Kind),
    /// It is of the right type, and refused for this reason.
    Refused(String),
}

impl ArgumentError {
    pub(crate) fn new(id: &str, argument: &str, problem: ArgumentErrorKind) -> Self {
        Self { id: id.to_owned(), argument: argument.to_owned(), problem }
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, argument, problem } = self;
        match problem {
            ArgumentErrorKind::UnknownConstraint => write!(f, "{id:?} is not the id of a constraint"),
            ArgumentErrorKind::NoObject => write!(f, "{id}: the arguments must be an object or null"),
            ArgumentErrorKind::UnknownArgument => write!(f, "{id}: there is no argument {argument:?}"),
            ArgumentErrorKind::Missing => write!(f, "{id}: the argument {argument:?} is missing"),
            ArgumentErrorKind::Mistyped(kind) => {
                write!(f, "{id}: the argument {argument:?} must be {}", kind.name())
            }
            ArgumentErrorKind::Refused(reason) if argument.is_empty() => write!(f, "{id}: {reason}"),
            ArgumentErrorKind::Refused(reason) => write!(f, "{id}: the argument {argument:?} {reason}"),
        }
    }
}

impl std::error::Error for ArgumentError {}

/// How a count is held against a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    LessThan,
    AtLeast,
}

impl Relation {
    pub(crate) fn holds(self, count: usize, limit: f64) -> bool {
        match self {
            Self::LessThan => (count as f64) < limit,
            Self::AtLeast => (count as f64) >= limit,
        }
    }
}

/// The arguments of one constraint, null ones left out.
pub(crate) struct Arguments<'a> {
    id: &'static str,
    given: Option<&'a Map<String, Value>>,
    /// The semantics that the check will have.
    pub(crate) semantics: Semantics,
}

impl<'a> Arguments<'a> {
    pub(crate) fn new(
        constraint: &'static Constraint,
        kwargs: &'a Value,
        semantics: Semantics,
    ) -> Result<Self, ArgumentError> {
        let id = constraint.id;
        let given = match kwargs {
            Value::Null => None,
            Value::Object(map) => Some(map),
            _ => return Err(ArgumentError::new(id, "", ArgumentErrorKind::NoObject)),
        };
        let known = |name: &str| constraint.parameters.iter().any(|parameter| parameter.name == name);
        let stray =
            given.and_then(|map| map.iter().find(|(name, value)| !value.is_null() && !known(name.as_str())));
        match stray {
            Some((name, _)) => Err(ArgumentError::new(id, name, ArgumentErrorKind::UnknownArgument)),
            None => Ok(Self { id, given, semantics }),
        }
    }

    pub(crate) fn corrected(&self) -> bool {
        self.semantics == Semantics::Corrected
    }

    pub(crate) fn refused(&self, name: &str, reason: impl Into<String>) -> ArgumentError {
        ArgumentError::new(self.id, name, ArgumentErrorKind::Refused(reason.into()))
    }

    pub(crate) fn mistyped(&self, name: &str, kind: Kind) -> ArgumentError {
        ArgumentError::new(self.id, name, ArgumentErrorKind::Mistyped(kind))
    }

    /// The argument as it was given; null is not given.
    pub(crate) fn optional(&self, name: &str) -> Option<&'a Value> {
        self.given.and_then(|map| map.get(name)).filter(|value| !value.is_null())
    }

    pub(crate) fn required(&self, name: &str) -> Result<&'a Value, ArgumentError> {
        self.optional(name).ok_or_else(|| ArgumentError::new(self.id, name, ArgumentErrorKind::Missing))
    }

    pub(crate) fn text(&self, name: &str) -> Result<&'a str, ArgumentError> {
        self.required(name)?.as_str().ok_or_else(|| self.mistyped(name, Kind::Text))
    }

    /// The text that is to be repeated, which must not be empty.
    pub(crate) fn prompt_to_repeat(&self) -> Result<&'a str, ArgumentError> {
        const NAME: &str = "prompt_to_repeat";
        match self.text(NAME)? {
            "" => Err(self.refused(NAME, "must not be empty")),
            prompt => Ok(prompt),
        }
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Vec<&'a str>, ArgumentError> {
        let list = self.required(name)?.as_array().ok_or_else(|| self.mistyped(name, Kind::Texts))?;
        list.iter().map(|item| item.as_str().ok_or_else(|| self.mistyped(name, Kind::Texts))).collect()
    }

    /// A number, whole or not, of either sign. True is 1 for the published checkers.
    pub(crate) fn number(&self, name: &str) -> Result<f64, ArgumentError> {
        match self.required(name)? {
            Value::Bool(given) if !self.corrected() => Ok(f64::from(u8::from(*given))),
            given => given.as_f64().ok_or_else(|| self.mistyped(name, Kind::Number)),
        }
    }

    /// A number that is not negative.
    pub(crate) fn count(&self, name: &str) -> Result<f64, ArgumentError> {
        let number = self.number(name)?;
        if number < 0.0 { Err(self.refused(name, "must not be negative")) } else { Ok(number) }
    }

    /// A whole number of either sign. `2.0` is not one.
    pub(crate) fn integer(&self, name: &str) -> Result<i64, ArgumentError> {
        match self.required(name)? {
            Value::Bool(given) if !self.corrected() => Ok(i64::from(*given)),
            given => given.as_i64().ok_or_else(|| self.mistyped(name, Kind::Integer)),
        }
    }

    pub(crate) fn relation(&self, name: &str) -> Result<Relation, ArgumentError> {
        match self.required(name)?.as_str() {
            Some("less than") => Ok(Relation::LessThan),
            Some("at least") => Ok(Relation::AtLeast),
            _ => Err(self.mistyped(name, Kind::Relation)),
        }
    }
}
