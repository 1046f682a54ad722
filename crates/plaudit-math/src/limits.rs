//! The limits of a verification: what may be too large, and the counter of work that every step pays into.
//!
//! Every bound counts bytes, tokens, bits or limb operations, never time, so a verdict does not depend on the machine.

use std::fmt;

/// Bytes of the text of one answer.
pub(crate) const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// Tokens of one answer.
pub(crate) const MAX_TOKENS: usize = 16_384;
/// Nodes of the expressions of one answer.
pub(crate) const MAX_NODES: usize = 16_384;
/// Levels of nesting of one answer. Redundant brackets are peeled in a loop and do not count; tuples, sets and other
/// collections count twice.
pub(crate) const MAX_DEPTH: u32 = 64;
/// Digits of one number.
pub(crate) const MAX_DIGITS: usize = 20_000;
/// Bits of any exact intermediate value, checked before a power, a factorial or a binomial is formed.
pub(crate) const MAX_BITS: usize = 1 << 18;
/// Argument of a factorial or a binomial.
pub(crate) const MAX_FACTORIAL: u32 = 5_000;
/// Elements of a list, a set or a tuple.
pub(crate) const MAX_ELEMENTS: usize = 512;
/// Cells of a matrix.
pub(crate) const MAX_CELLS: usize = 256;
/// Uses of `\pm` and `\mp` in one element.
pub(crate) const MAX_PLUS_MINUS: usize = 2;
/// Bits of the last precision at which two real numbers are compared.
pub(crate) const MAX_PRECISION: usize = 2_048;
/// Limb operations of one verification. One operation takes about a nanosecond.
pub(crate) const MAX_WORK: u64 = 1_000_000;

/// Why an answer has no value: it breaks a limit, or it is not a value at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NoValue {
    /// Too many bytes, tokens, digits, bits, elements or limb operations.
    TooLarge,
    /// Nested too deeply.
    Depth,
    /// A brace of the box or of the answer is never closed.
    Unbalanced,
    /// The box is empty.
    Empty,
    /// The value is undefined, as in `1/0`.
    Undefined,
    /// A limit, an integral, or a command that is no mathematics.
    Unsupported,
    /// Two real numbers agree at the last precision, which is no proof for numbers of their size.
    Undecided,
    /// The thinking is never closed, so there is no answer yet.
    UnclosedThink,
}

impl NoValue {
    /// The stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::TooLarge => "math.too_large",
            Self::Depth => "math.depth",
            Self::Unbalanced => "math.unbalanced",
            Self::Empty => "math.empty",
            Self::Undefined => "math.undefined",
            Self::Unsupported => "math.unsupported",
            Self::Undecided => "math.undecided",
            Self::UnclosedThink => "format.unclosed_think",
        }
    }

    /// What is wrong with a text, after "the answer" or "the reference".
    pub const fn cause(self) -> &'static str {
        match self {
            Self::TooLarge => "is larger than the stated bounds",
            Self::Depth => "is nested too deeply",
            Self::Unbalanced => "has a bracket or a box that is never closed",
            Self::Empty => "is an empty box",
            Self::Undefined => "is undefined, as a division by zero is",
            Self::Unsupported => "has an integral, a limit or a command that is not evaluated",
            Self::Undecided => "agrees with the other as far as can be computed, which proves nothing",
            Self::UnclosedThink => "is not there: the thinking never ends",
        }
    }
}

impl fmt::Display for NoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// The limb operations that are left to one verification.
#[derive(Debug)]
pub(crate) struct Work {
    left: u64,
}

impl Work {
    pub(crate) const fn new() -> Self {
        Self { left: MAX_WORK }
    }

    /// Does something with a share of what is left, so that it cannot use up all.
    pub(crate) fn with_share<T>(&mut self, share: u64, action: impl FnOnce(&mut Self) -> T) -> T {
        let mut part = Self { left: self.left / share };
        let kept = self.left - part.left;
        let done = action(&mut part);
        self.left = kept + part.left;
        done
    }

    /// Pays for `cost` limb operations, before they are done.
    pub(crate) fn spend(&mut self, cost: u64) -> Result<(), NoValue> {
        match self.left.checked_sub(cost) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(NoValue::TooLarge)
            }
        }
    }
}
