//! The options of a verification: where the answer may stand, and what counts as equal.

use dashu_ratio::RBig;

/// Declares an option with named values. With the feature `serde` it is read and written by its names, with `schemars` it has a
/// JSON schema with the comments of its values.
macro_rules! choice {
    ($(#[$doc:meta])+ $name:ident { $($(#[$vdoc:meta])+ $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
        pub enum $name { $($(#[$vdoc])+ #[cfg_attr(feature = "serde", serde(rename = $word))] $variant,)+ }
    };
}

choice! {
    /// Where the answer is looked for.
    AnswerIn {
        /// In the last box, else in `<answer>` tags, after `####`, after a phrase, the last formula, the last number.
        #[default]
        Auto = "auto",
        /// Only in the last box.
        Box = "box",
        /// Only after a phrase such as "the answer is".
        Phrase = "phrase",
        /// Only after `####`.
        Hash = "hash",
        /// Only the last number.
        LastNumber = "last_number",
    }
}

choice! {
    /// What happens to the thinking before the answer.
    Think {
        /// Everything up to the last `</think>` is cut; thinking that never ends gets the floor.
        #[default]
        Cut = "cut",
        /// The thinking is text like any other.
        Keep = "keep",
    }
}

choice! {
    /// How a percentage compares with a number.
    Percent {
        /// 50 % is 0.5, and 50 as well.
        #[default]
        Lenient = "lenient",
        /// 50 % is 0.5.
        Strict = "strict",
    }
}

choice! {
    /// How units compare.
    Units {
        /// A unit that is missing on one side is ignored; two different ones differ.
        #[default]
        IgnoreMissing = "ignore_missing",
        /// A unit that is missing on one side differs.
        Strict = "strict",
        /// Units are never compared.
        Ignore = "ignore",
    }
}

choice! {
    /// Whether the order of a list matters.
    Order {
        /// Lists and sets are unordered, tuples are ordered.
        #[default]
        Auto = "auto",
        /// Lists are ordered too.
        Strict = "strict",
    }
}

/// The options of a verification. With the feature `serde` they are read from their names and values, all but the secret.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct Options {
    /// Where the answer stands.
    pub answer: AnswerIn,
    /// What happens to the thinking.
    pub think: Think,
    /// Relative tolerance for decimal answers, as an exact number. `None`: decimals are exact where they terminate.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "tolerance"))]
    pub tolerance: Option<RBig>,
    /// Percentages.
    pub percent: Percent,
    /// Units.
    pub units: Units,
    /// Lists.
    pub order: Order,
    /// The secret of the run, from which the points of identity tests come.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub seed: u64,
}

/// Reads a tolerance from a number between 0 and 1.
#[cfg(feature = "serde")]
fn tolerance<'de, D: serde::Deserializer<'de>>(given: D) -> Result<Option<RBig>, D::Error> {
    use serde::Deserialize as _;
    let Some(number) = Option::<f64>::deserialize(given)? else { return Ok(None) };
    let read = Options::tolerance_of(number).filter(|_| number <= 1.0);
    read.map(Some).ok_or_else(|| serde::de::Error::custom("tolerance must be above 0 and at most 1"))
}

impl Options {
    /// Sets the tolerance from a number: the decimal that it is written as. `None` where it is not above 0.
    pub fn tolerance_of(number: f64) -> Option<RBig> {
        Self::tolerance_from(&format!("{number:e}"))
    }

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
        (value > RBig::ZERO).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tolerance_is_above_zero() {
        assert_eq!(Options::tolerance_of(0.0), None);
        assert_eq!(Options::tolerance_of(-0.5), None);
        assert_eq!(Options::tolerance_of(f64::NAN), None);
        assert_eq!(Options::tolerance_of(0.01), Options::tolerance_from("1e-2"));
    }
}
