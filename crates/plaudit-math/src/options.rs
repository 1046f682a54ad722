//! The options of a verification: where the answer may stand, and what counts as equal.

use dashu_ratio::RBig;

/// Where an answer is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerIn {
    /// A box, then `<answer>`, `####`, a phrase, the last formula and the last number.
    #[default]
    Auto,
    /// Only the last box.
    Box,
    /// Only a phrase such as "the answer is".
    Phrase,
    /// Only `####`.
    Hash,
    /// Only the last number.
    LastNumber,
}

/// What happens to the thinking before the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Think {
    /// Everything up to the last `</think>` is cut, and thinking that never ends has no answer.
    #[default]
    Cut,
    /// The thinking is text like any other.
    Keep,
}

/// How a percentage compares with a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Percent {
    /// `50\%` is 0.5, and 50 too.
    #[default]
    Lenient,
    /// `50\%` is 0.5.
    Strict,
}

/// How units compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Units {
    /// A unit that is missing on one side is ignored; two different ones differ.
    #[default]
    IgnoreMissing,
    /// A unit that is missing on one side differs.
    Strict,
    /// Units are never compared.
    Ignore,
}

/// Whether the order of a list matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Lists and sets are unordered, tuples are ordered.
    #[default]
    Auto,
    /// Lists are ordered too.
    Strict,
}

/// The options of a verification.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where the answer stands.
    pub answer: AnswerIn,
    /// What happens to the thinking.
    pub think: Think,
    /// Relative tolerance for decimal answers, as an exact number. `None`: decimals are exact where they terminate.
    pub tolerance: Option<RBig>,
    /// Percentages.
    pub percent: Percent,
    /// Units.
    pub units: Units,
    /// Lists.
    pub order: Order,
    /// The secret of the run, from which the points of identity tests come.
    pub seed: u64,
}

impl Options {
    /// Sets the tolerance from a decimal text such as `1e-6`.
    pub fn tolerance_from(text: &str) -> Option<RBig> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        if exponent.unsigned_abs() > 1_000 || mantissa.len() > 100 {
            return None;
        }
        let value = RBig::from_str_decimal(mantissa).ok()?;
        let scale = RBig::from(10u8).pow(isize::try_from(exponent).ok()?);
        let value = value * scale;
        (value.sign() == dashu_int::Sign::Positive).then_some(value)
    }
}
