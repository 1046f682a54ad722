//! What an answer can be: a number or an expression, a list, a set, a tuple, an interval, a matrix, a relation, a text.

use crate::expr::{Expr, Tree};
use crate::lex::Rel;

/// How a decimal number was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal {
    /// Digits after the point.
    pub(crate) places: u32,
    /// Digits from the first that is not zero.
    pub(crate) significant: u32,
}

/// An expression with what was written around it.
#[derive(Clone, Debug)]
pub(crate) struct Quantity {
    pub(crate) expr: Expr,
    /// The expression is one decimal number.
    pub(crate) decimal: Option<Decimal>,
    /// A percent sign follows.
    pub(crate) percent: bool,
    /// A unit follows, in its canonical spelling.
    pub(crate) unit: Option<Box<str>>,
}

/// An interval of the real numbers. An end may be infinite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    pub(crate) low: Expr,
    pub(crate) high: Expr,
    pub(crate) low_closed: bool,
    pub(crate) high_closed: bool,
}

/// An operation on sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetOp {
    Union,
    Intersection,
    Difference,
}

/// A name and the values that it was set equal to, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    /// The name in its canonical spelling, or none for a chain of equal constants.
    pub(crate) name: Option<Box<str>>,
    /// The name as a letter of an expression, if it is one.
    pub(crate) letter: Option<Expr>,
    /// The values. All must be equal; the last one counts.
    pub(crate) members: Vec<Value>,
    /// The number behind an approximation sign, which stands for the value where it is its rounding.
    pub(crate) rounded: Option<Value>,
}

/// The value of an answer, or of a part of it.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Quantity(Quantity),
    /// Elements with commas, "and" or "or" between them.
    List(Vec<Value>),
    Set(Vec<Value>),
    Tuple(Vec<Value>),
    /// A union of intervals, not yet in order.
    Reals(Vec<Interval>),
    SetOp(SetOp, Box<Value>, Box<Value>),
    Matrix {
        columns: usize,
        cells: Vec<Value>,
    },
    Ratio(Vec<Value>),
    /// A whole number in a base that is written with it.
    Based {
        digits: Box<str>,
        base: u32,
    },
    /// A value that is no expression, with a unit.
    Measured(Box<Value>, Box<str>),
    Text(Box<str>),
    Empty,
    Named(Box<Named>),
    Relation(Vec<Value>, Vec<Rel>),
}

impl Value {
    /// The expression, if it is one.
    pub(crate) fn expr(&self) -> Option<Expr> {
        match self {
            Self::Quantity(quantity) => Some(quantity.expr),
            _ => None,
        }
    }

    /// A short word for the kind of the value.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Quantity(_) => "expression",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::Tuple(_) => "tuple",
            Self::Reals(_) | Self::SetOp(..) => "interval",
            Self::Matrix { .. } => "matrix",
            Self::Ratio(_) => "ratio",
            Self::Based { .. } => "based",
            Self::Measured(..) => "measured",
            Self::Text(_) => "text",
            Self::Empty => "empty_set",
            Self::Named(_) => "named",
            Self::Relation(..) => "relation",
        }
    }
}

/// An answer that was read.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) tree: Tree,
    pub(crate) value: Value,
    /// Read as mathematics. Otherwise the value is the text.
    pub(crate) parsed: bool,
    /// Contains a sum or product sign, which is compared by its parts.
    pub(crate) big: bool,
    /// Spellings with "or" between them.
    pub(crate) either: bool,
}

impl Answer {
    /// A value without expressions.
    pub(crate) fn plain(value: Value, parsed: bool) -> Self {
        Self { tree: Tree::default(), value, parsed, big: false, either: false }
    }
}
