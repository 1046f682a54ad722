//! `exact_set`: whether the response lists the answers of the reference, in any order.

use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput, reference_list};
use crate::outcome::{Fact, Info, Outcome};
use crate::text::scope::Scope;
use plaudit_text::strip;
use rapidhash::RapidHashSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// 1 where the response lists the same answers as the reference, in any order; otherwise 0.
///
/// ## What it scores
/// The wanted answers stand in the field of `extra` that `answers_field` names, else in the reference: a JSON list, or a text. They and the
/// final answer of the response are cut at each of the `separators`. Each piece loses the white space at its
/// ends, a bullet or a number before it and, with `ignore_case`, its case; empty pieces, order and repetitions do not count. The two sets
/// must be equal. Of separators that overlap, the one that begins first cuts; of those that begin together, the one named first. The info says how many answers were `expected`, `given` and `matched`.
///
/// A rollout without a reference, or with an empty one, is skipped; more than 1000 answers are invalid.
///
/// ## When to use it
/// For questions with several short answers: names, labels, identifiers. For one answer see `accuracy`; for numbers and sets of formulas
/// `math`.
///
/// ## How it can be gamed
/// Hardly: an answer too many is as wrong as one too few.
///
/// ## Example
/// ```yaml
/// capitals: { reward: exact_set, weight: 1.0, separators: [",", " and "] }
/// ```
///
/// ## References
/// None.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExactSet {
    /// What separates answers.
    pub separators: Vec<String>,
    /// Whether letters in upper and lower case are the same.
    pub ignore_case: bool,
    /// The field of `extra` that holds the wanted answers; where it is absent, the reference does.
    pub answers_field: String,
    /// Which part of the response is read.
    pub scope: Scope,
}

impl Default for ExactSet {
    fn default() -> Self {
        Self {
            separators: [",", ";", "\n"].map(str::to_owned).into(),
            ignore_case: true,
            answers_field: "answers".to_owned(),
            scope: Scope::Answer,
        }
    }
}

/// The most wanted answers.
const MAX_ANSWERS: usize = 1000;

impl Reward<Rule> for ExactSet {
    const NAME: &'static str = "exact_set";
    const NEEDS_REFERENCE: bool = true;
    const CORRECTNESS: bool = true;
    const FACTS: &'static [&'static str] = &["matched"];

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let named =
            (1..=16).contains(&self.separators.len()) && !self.separators.iter().any(String::is_empty);
        ParamError::check(named, "separators", "are 1 to 16 texts, none of them empty")?;
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| self.score(sample)))
    }
}

impl ExactSet {
    fn score(&self, sample: &RuleInput<'_>) -> Result<Outcome, Outcome> {
        let wanted = reference_list::texts(sample, &self.answers_field, MAX_ANSWERS)?;
        // Those of a list too: a response could never name one with a separator in it.
        let wanted: RapidHashSet<Cow<'_, str>> = wanted.iter().flat_map(|text| self.pieces(text)).collect();
        if wanted.is_empty() {
            return Err(Outcome::skipped(crate::reason::Code::EmptyReference));
        }
        let given = self.pieces(self.scope.of(sample.text));
        let count = |number: usize| Fact::Count(number as u64);
        let matched = given.intersection(&wanted).count();
        let right = given == wanted;
        let info = Info::of([
            ("expected", count(wanted.len())),
            ("given", count(given.len())),
            ("matched", count(matched)),
        ]);
        Ok(Outcome::scored(f64::from(u8::from(right)), info))
    }

    fn pieces<'a>(&self, text: &'a str) -> RapidHashSet<Cow<'a, str>> {
        let (mut pieces, mut start, mut last) = (RapidHashSet::default(), 0, "");
        let mut cut = |end: usize, next: usize| {
            let raw = &text[start..end];
            start = next;
            // Equal pieces in a row are looked at once.
            if !raw.is_empty() && raw != last {
                pieces.insert(self.piece(raw));
                last = raw;
            }
        };
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let here = |separator: &&String| match separator.as_bytes() {
                // Of most separators, one comparison.
                [first] => *first == byte,
                more => more.first() == Some(&byte) && bytes[at..].starts_with(more),
            };
            match self.separators.iter().find(here) {
                Some(separator) => {
                    cut(at, at + separator.len());
                    at += separator.len();
                }
                None => at += 1,
            }
        }
        cut(text.len(), text.len());
        pieces.remove("");
        pieces
    }

    fn piece<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let text = without_bullet(strip(text));
        let lower = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
        match self.ignore_case && !text.bytes().all(lower) {
            true => Cow::Owned(text.to_lowercase()),
            false => Cow::Borrowed(text),
        }
    }
}

/// A text without a bullet or a number in front of it.
fn without_bullet(text: &str) -> &str {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let numbered = text[digits..].strip_prefix(['.', ')']).filter(|_| digits > 0);
    let rest = numbered.or_else(|| text.strip_prefix(['-', '*', '•']));
    rest.filter(|rest| rest.starts_with(' ')).map_or(text, strip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::{TestRollout, compared, one, rejected};
    use serde_json::{Map, json};

    #[test]
    fn order_and_repetition_do_not_count() {
        for (response, value) in [
            ("Oslo, Rome", 1.0),
            ("\\boxed{rome; oslo; rome}", 1.0),
            ("<answer>\n- Rome\n- Oslo\n</answer>", 1.0),
            ("1. Rome\n2) Oslo", 1.0),
            ("Rome", 0.0),
            ("Rome, Oslo, Bern", 0.0),
            ("Rome and Oslo", 0.0),
            ("", 0.0),
        ] {
            assert_eq!(
                compared::<ExactSet>(json!({}), response, Some("Rome, Oslo")).value(),
                Some(value),
                "{response}"
            );
            let list = Some("[\"Rome\", \"Oslo\"]");
            assert_eq!(compared::<ExactSet>(json!({}), response, list).value(), Some(value), "{response}");
        }
        let and = json!({"separators": [",", " and "], "ignore_case": false});
        assert_eq!(compared::<ExactSet>(and.clone(), "Rome and Oslo", Some("Oslo,Rome")).value(), Some(1.0));
        assert_eq!(compared::<ExactSet>(and, "rome and oslo", Some("Oslo,Rome")).value(), Some(0.0));
    }

    #[test]
    fn nothing_is_right_by_absence() {
        for reference in [None, Some(""), Some("[]"), Some(", ;"), Some("[\"\"]")] {
            assert_eq!(compared::<ExactSet>(json!({}), "", reference).value(), None, "{reference:?}");
        }
        let extra = Map::from_iter([("answers".to_owned(), json!(["a, b", 3]))]);
        let rollout = TestRollout { response: "3", extra, ..TestRollout::default() };
        assert_eq!(one::<ExactSet>(json!({}), rollout).value(), Some(0.0));
        let comma = Some("[\"Washington, D.C.\", \"Oslo\"]");
        assert_eq!(compared::<ExactSet>(json!({}), "Oslo, Washington, D.C.", comma).value(), Some(1.0));
        let extra = Map::from_iter([("answers".to_owned(), json!("[\"a\", \"b\"]"))]);
        let rollout = TestRollout { response: "b, a", extra, ..TestRollout::default() };
        assert_eq!(one::<ExactSet>(json!({}), rollout).value(), Some(1.0));
        assert_eq!(rejected::<ExactSet>(json!({"separators": []})), ["separators"]);
    }
}
