//! Correctness lookup that the rewards for right and wrong answers share: a field of `extra`, or the final answer.

use super::RuleInput;
use super::reference_view::ReferenceView;
use crate::outcome::Outcome;
use crate::reason::{Code, Reason};
use plaudit_text::strip;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where it is looked up whether an answer is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Correct {
    /// In `extra`, where the field is there; else in the answer.
    Auto,
    /// In the field of `extra` that `correct_field` names: true, or a number of 0.5 or more.
    Extra,
    /// In the final answer, which must equal the reference as text or as a decimal number. The final answer stands in
    /// the last `<answer>` pair, where there is one; of that, or of the whole response, the last `\boxed{...}` counts,
    /// where there is one.
    Answer,
}

/// The parameters by which a component says what is right.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CorrectParams {
    /// Where it is looked up whether an answer is right.
    pub correct: Correct,
    /// The field of `extra` that says whether the answer is right.
    pub correct_field: String,
}

impl Default for CorrectParams {
    fn default() -> Self {
        Self { correct: Correct::Auto, correct_field: "correct".to_owned() }
    }
}

impl CorrectParams {
    /// Whether the answer is right, or why that cannot be known.
    pub(super) fn ask(&self, sample: &RuleInput<'_>) -> Result<bool, Outcome> {
        let field = sample.extra.get(&self.correct_field).filter(|value| !value.is_null());
        match (self.correct, field) {
            (Correct::Auto | Correct::Extra, Some(value)) => match value {
                Value::Bool(correct) => Ok(*correct),
                Value::Number(number) => Ok(number.as_f64().is_some_and(|number| number >= 0.5)),
                _ => Err(self.missing("is neither a boolean nor a number")),
            },
            (Correct::Extra, None) => Err(self.missing("is absent")),
            (Correct::Auto | Correct::Answer, _) => {
                let answer = strip(sample.text.answer());
                let is_right = |sample: &RuleInput<'_>| Ok(same(answer, sample.reference()?.stripped()));
                let Some(accepted) = sample.reference.and_then(ReferenceView::accepted) else {
                    return is_right(sample);
                };
                let each = |reference| is_right(&RuleInput { reference: Some(reference), ..*sample });
                let right: Vec<bool> = accepted.iter().map(each).collect::<Result<_, Outcome>>()?;
                match right.is_empty() {
                    true => Err(Outcome::skipped(Code::EmptyReference)),
                    false => Ok(right.contains(&true)),
                }
            }
        }
    }

    fn missing(&self, what: &str) -> Outcome {
        let message = format!(
            "The field {} of extra, which says whether the answer is right, {what}.",
            self.correct_field
        );
        Outcome::skipped(Reason::new(Code::MissingExtra, message))
    }
}

/// Whether two stripped answers are the same text or the same decimal number.
fn same(answer: &str, reference: &str) -> bool {
    answer == reference || decimal(answer).is_some_and(|number| decimal(reference) == Some(number))
}

/// A decimal number as its sign, its digits without zeros at either end, and the power of ten of the last digit:
/// equal where the numbers are equal, however many digits they have.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (negative, text) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, power) = match text.split_once(['e', 'E']) {
        Some((mantissa, power)) => (mantissa, power.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = whole_digits(whole)?;
    digits.push_str(part);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let kept = digits.trim_end_matches('0');
    let dropped = digits.len() - kept.len();
    let kept = kept.trim_start_matches('0');
    if kept.is_empty() {
        return Some((false, String::new(), 0));
    }
    Some((negative, kept.to_owned(), i64::from(power) - part.len() as i64 + dropped as i64))
}

/// The digits before the decimal point, without commas between groups of three.
fn whole_digits(whole: &str) -> Option<String> {
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let mut digits = first.to_owned();
    for group in groups {
        if !(1..=3).contains(&first.len()) || group.len() != 3 {
            return None;
        }
        digits.push_str(group);
    }
    Some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_equal_whatever_they_look_like() {
        for (a, b) in [
            ("1,234", "1234"),
            ("0.50", ".5"),
            ("-0", "0.0"),
            ("+7.", "7"),
            ("1e3", "1,000.0"),
            ("12,345,678.90", "12345678.9"),
        ] {
            assert!(same(a, b) && same(b, a), "{a} {b}");
        }
        for (a, b) in [
            ("9007199254740993", "9007199254740992"),
            ("1,23", "123"),
            ("12,34,567", "1234567"),
            ("", "0"),
            (".", "0"),
            ("inf", "infinity"),
            ("NaN", "nan"),
            ("1", "-1"),
            ("1.0.0", "1.00"),
            ("1e9999999999", "1e9999999998"),
            ("１", "1"),
        ] {
            assert!(!same(a, b) && !same(b, a), "{a} {b}");
        }
    }
}
