//! `number_accuracy`: the share of the reference's numbers that the response gives, in order.

use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Fact, Info, Outcome};
use crate::reason::{Code, Reason};
use crate::text::scope::Scope;
use plaudit_text::{digit, digit_at, digits_end, find_byte, may_begin_digit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The share of the reference's numbers that the response has at the same place in its own list of numbers.
///
/// ## What it scores
/// A number is an optional `-`, digits, an optional dot and optional digits, in the digits of any script. The first
/// number of the response is compared with the first of the reference, the second with the second, and so on; two are
/// equal when they differ by at most `tolerance`. The score is the number of equal ones divided by how many the
/// reference has. Further numbers of the response do not matter. A rollout whose reference is absent or has no number
/// is skipped. With `scope: answer` only the final answer of the response is read.
///
/// ## When to use it
/// For short answers that are numbers. A response that thinks aloud has numbers in its thought, and those come first:
/// use `scope: answer`.
///
/// ## How it can be gamed
/// `1,234` is 1 and 234, `1e5` is 1 and 5, `.5` is 5, and `x=2-1` is 2 and -1, so a wrong value can be spelled such
/// that it fits. Numbers after those of the reference cost nothing. Numbers beyond the range of a double are never
/// equal.
///
/// ## Example
/// ```yaml
/// numbers: { reward: number_accuracy, weight: 1.0, tolerance: 0.01, scope: answer }
/// ```
///
/// ## References
/// RM-Gallery `number_accuracy`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NumberAccuracy {
    /// The largest difference between two equal numbers.
    pub tolerance: f64,
    /// Which part of the response is read; the reference is always read whole.
    pub scope: Scope,
}

impl Default for NumberAccuracy {
    fn default() -> Self {
        Self { tolerance: 1e-6, scope: Scope::Final }
    }
}

impl Reward<Rule> for NumberAccuracy {
    const NAME: &'static str = "number_accuracy";
    const NEEDS_REFERENCE: bool = true;
    const CORRECTNESS: bool = true;

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let sensible = self.tolerance.is_finite() && self.tolerance >= 0.0;
        ParamError::check(sensible, "tolerance", "must be 0 or more; no two numbers differ by less")?;
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| self.score(sample)).compares_text(true))
    }
}

impl NumberAccuracy {
    fn score(&self, sample: &RuleInput<'_>) -> Result<Outcome, Outcome> {
        let reference = sample.any_reference()?.as_text()?;
        let mut given = Numbers::of(self.scope.of(sample.text));
        let (mut correct, mut total) = (0_u64, 0_u64);
        for wanted in Numbers::of(reference.as_str()) {
            total += 1;
            // Where both are infinite the difference is not a number, and so they are not equal.
            correct += u64::from(given.next().is_some_and(|given| (given - wanted).abs() <= self.tolerance));
        }
        if total == 0 {
            return Err(Outcome::skipped(Reason::new(
                Code::EmptyReference,
                "The reference holds no number.",
            )));
        }
        let info =
            [("correct_numbers", Fact::Count(correct)), ("total_reference_numbers", Fact::Count(total))];
        Ok(Outcome::scored(correct as f64 / total as f64, Info::of(info)))
    }
}

/// The numbers of a text, in order, each made when it is asked for.
struct Numbers<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Numbers<'t> {
    fn of(text: &'t str) -> Self {
        Self { text, at: 0 }
    }
}

impl Iterator for Numbers<'_> {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        let bytes = self.text.as_bytes();
        let mut start = self.at;
        loop {
            let Some(found) = find_byte(bytes, start, may_begin_digit) else {
                self.at = bytes.len();
                return None;
            };
            start = found;
            if digit_at(self.text, start).is_some() {
                break;
            }
            start += 1;
        }
        // A minus that ends the number before, as in `1.-2`, is not taken yet and belongs to this one.
        let negative = start > self.at && bytes[start - 1] == b'-';
        let mut end = digits_end(self.text, start);
        if bytes.get(end) == Some(&b'.') {
            end = digits_end(self.text, end + 1);
        }
        self.at = end;
        let size = double(&self.text[start..end]);
        Some(if negative { -size } else { size })
    }
}

/// The double nearest to digits of any script with at most one dot among or after them.
fn double(number: &str) -> f64 {
    let parsed = if number.is_ascii() {
        number.parse()
    } else {
        let ascii = |char| digit(char).map_or('.', |value| char::from(b'0' + value));
        number.chars().map(ascii).collect::<String>().parse()
    };
    // Digits always parse; should one ever not, then as a number that equals none.
    parsed.unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::score;

    fn numbers(text: &str) -> Vec<f64> {
        Numbers::of(text).collect()
    }

    #[test]
    fn numbers_are_cut_as_python_cuts_them() {
        assert_eq!(
            numbers("1,234 1e5 .5 x=2-1 50% −3 --7 1.2.3 4.-5"),
            [1.0, 234.0, 1.0, 5.0, 5.0, 2.0, -1.0, 50.0, 3.0, -7.0, 1.2, 3.0, 4.0, -5.0]
        );
        assert_eq!(numbers("１２.５ ١٢ 𝟙 ² ½"), [12.5, 12.0, 1.0]);
        assert_eq!(numbers(""), Vec::<f64>::new());
        assert!(numbers(&"9".repeat(400))[0].is_infinite());
        assert_eq!(numbers(&format!("0.{}1", "0".repeat(1000))), [0.0]);
    }

    #[test]
    fn infinite_numbers_are_never_equal() {
        let long = "9".repeat(400);
        assert_eq!(score(NumberAccuracy::default(), &long, Some(&long)).value(), Some(0.0));
    }

    #[test]
    fn a_reference_without_a_number_is_skipped() {
        for reference in [None, Some(""), Some("none")] {
            assert_eq!(score(NumberAccuracy::default(), "5", reference).value(), None);
        }
        assert_eq!(score(NumberAccuracy::default(), "", Some("5")).value(), Some(0.0));
    }
}
