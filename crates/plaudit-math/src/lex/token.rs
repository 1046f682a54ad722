//! Tokens: the kinds of them, numbers as they were written, and pairs of delimiters.

use dashu_ratio::RBig;

use crate::expr::{BigOperator, Function, Hyperbolic, NaryFunction};

/// A pair of delimiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bracket {
    Round,
    Square,
    /// `]` that opens, as in `]0,1[`.
    Reversed,
    /// `\{`
    Set,
    /// `{`, which only groups.
    Group,
    Angle,
    Floor,
    Ceil,
    Bar,
}

/// A relation between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rel {
    Equal,
    Approx,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Number(u32),
    Letter,
    /// A word of prose.
    Word,
    /// The content of `\text{…}`.
    Text,
    /// The content of `\mathrm{…}`: a name, a constant or a unit.
    Upright,
    Open(Bracket),
    Close(Bracket),
    /// `|`, which may open, close or divide.
    Bar,
    Plus,
    Minus,
    PlusMinus,
    MinusPlus,
    Times,
    Slash,
    Caret,
    Underscore,
    Bang,
    Prime,
    Percent,
    Currency,
    Degree,
    Comma,
    Semicolon,
    Colon,
    And,
    Or,
    Relation(Rel),
    Mid,
    Cup,
    Cap,
    Setminus,
    Arrow,
    Frac,
    Sqrt,
    Binom,
    Over,
    Choose,
    Function(Function),
    Hyperbolic(Hyperbolic),
    Exp,
    Log,
    Lg,
    Det,
    NaryFunction(NaryFunction),
    /// `\overline` and other marks on a letter.
    Accent,
    /// `\angle` and other signs before a name.
    Sign,
    Pi,
    Infinity,
    EmptySet,
    Reals,
    BigOperator(BigOperator),
    Begin,
    End,
    Ampersand,
    NewRow,
    Dots,
    /// `\int` and `\lim`: values that are not computed.
    Unevaluated,
    /// `\pmod`, which says modulo what a value is meant.
    Mod,
    /// A character or a command that has no meaning here.
    Unknown,
}

/// One token: its kind, its span in the text, and whether a space stands before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) spaced: bool,
}

/// A number as it was written.
#[derive(Clone, Debug)]
pub(crate) struct Literal {
    pub(crate) value: RBig,
    /// Digits after the point, if there is one and they do not repeat.
    pub(crate) places: Option<u32>,
    /// Digits from the first that is not zero.
    pub(crate) significant: u32,
    /// Written with digits only.
    pub(crate) plain: bool,
}

/// The tokens of one text.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    pub(crate) list: Vec<Token>,
    /// For each opening delimiter the index of its closing one, and the other way round.
    pub(crate) pair: Vec<u32>,
    pub(crate) literals: Vec<Literal>,
}

/// No partner.
pub(crate) const NONE: u32 = u32::MAX;
