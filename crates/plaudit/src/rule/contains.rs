//! `contains`: whether given texts stand in the response.

use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput, reference_list};
use crate::outcome::{Fact, Info, Outcome};
use crate::text::scope::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// 1 where the response contains all of the given texts, or any of them, else 0.
///
/// ## What it scores
/// The texts stand in `texts`, else in the field of `extra` that `texts_field` names, else in the reference: a JSON list, or one text. Each is
/// looked for as it is written; with `ignore_case` in either case, with `whole_words` only where no letter or digit stands directly before
/// or after it. The info says how many were `expected` and how many were `found`.
///
/// A rollout without texts is skipped; more than 32 texts are invalid.
///
/// ## When to use it
/// For answers that must name something, whatever stands around it. With `need: any` it takes one of several spellings. As a penalty
/// (`weight: -1`, `need: any`) it keeps words out.
///
/// ## How it can be gamed
/// By listing everything that might be wanted: what surrounds the texts is not looked at, and "not Paris" contains Paris. Pair it with
/// `length_penalty`, or ask for the answer alone with `accuracy`.
///
/// ## Example
/// ```yaml
/// names: { reward: contains, weight: 0.5, need: share, whole_words: true }
/// ```
///
/// ## References
/// None.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Contains {
    /// The texts that are looked for. Without any, those of the row are.
    pub texts: Vec<String>,
    /// How the texts that were found become a number.
    pub need: ContainsNeed,
    /// Whether a text counts only where no letter or digit stands directly beside it.
    pub whole_words: bool,
    /// Whether letters in upper and lower case are the same.
    pub ignore_case: bool,
    /// The field of `extra` that holds the texts; where it is absent, the reference does.
    pub texts_field: String,
    /// Which part of the response is read.
    pub scope: Scope,
}

/// How the texts that were found become a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContainsNeed {
    /// 1 where all were found.
    All,
    /// 1 where one was found.
    Any,
    /// Their share.
    Share,
}

impl Default for Contains {
    fn default() -> Self {
        Self {
            texts: Vec::new(),
            need: ContainsNeed::All,
            whole_words: true,
            ignore_case: true,
            texts_field: "texts".to_owned(),
            scope: Scope::Final,
        }
    }
}

/// The most texts, each of which is looked for by itself.
const MAX_TEXTS: usize = 32;

impl Reward<Rule> for Contains {
    const NAME: &'static str = "contains";
    const FACTS: &'static [&'static str] = &["found"];

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let texts = &self.texts;
        let sensible = texts.len() <= MAX_TEXTS && !texts.iter().any(|text| plaudit_text::is_blank(text));
        ParamError::check(sensible, "texts", "are at most 32, none of them empty")?;
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| self.score(sample)))
    }
}

impl Contains {
    fn score(&self, sample: &RuleInput<'_>) -> Result<Outcome, Outcome> {
        let given;
        let texts = match self.texts.is_empty() {
            true => {
                given = reference_list::texts(sample, &self.texts_field, MAX_TEXTS)?;
                &given
            }
            false => &self.texts,
        };
        let view = self.scope.view(sample.text);
        // The view in lower case is shared with other components.
        let response = if self.ignore_case { view.lower() } else { view.as_str() };
        let holds = |text: &String| match self.ignore_case {
            true => self.is_in(response, &text.to_lowercase()),
            false => self.is_in(response, text),
        };
        // A text that is given again is not looked for again.
        let mut verdicts: Vec<bool> = Vec::with_capacity(texts.len());
        for (at, text) in texts.iter().enumerate() {
            let known =
                texts[..at].iter().position(|earlier| earlier == text).map(|earlier| verdicts[earlier]);
            verdicts.push(known.unwrap_or_else(|| holds(text)));
        }
        let found = verdicts.iter().filter(|holds| **holds).count();
        let value = match self.need {
            ContainsNeed::All => f64::from(u8::from(found == texts.len())),
            ContainsNeed::Any => f64::from(u8::from(found > 0)),
            ContainsNeed::Share => found as f64 / texts.len() as f64,
        };
        let count = |number: usize| Fact::Count(number as u64);
        Ok(Outcome::scored(value, Info::of([("expected", count(texts.len())), ("found", count(found))])))
    }

    fn is_in(&self, response: &str, text: &str) -> bool {
        let inner = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
        // A text that begins or ends with a mark has its own edge there.
        let (begins, ends) = (inner(text.chars().next()), inner(text.chars().next_back()));
        memchr::memmem::find_iter(response.as_bytes(), text.as_bytes()).any(|at| {
            let before = response[..at].chars().next_back();
            let after = response[at + text.len()..].chars().next();
            let inside = (begins && inner(before)) || (ends && inner(after));
            !(self.whole_words && inside)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::{compared, rejected, scored};
    use serde_json::json;

    #[test]
    fn words_have_edges() {
        for (text, response, value) in [
            ("art", "a party", 0.0),
            ("art", "Art, then", 1.0),
            ("C++", "in C++ or", 1.0),
            ("C++", "in c++11", 1.0),
            (".net", "on .NET now", 1.0),
            ("É", "é", 1.0),
        ] {
            assert_eq!(
                scored::<Contains>(json!({"texts": [text]}), response).value(),
                Some(value),
                "{text} {response}"
            );
        }
        let plain = json!({"texts": ["art"], "whole_words": false});
        assert_eq!(scored::<Contains>(plain, "a party").value(), Some(1.0));
        let cased = json!({"texts": ["Art"], "ignore_case": false});
        assert_eq!(scored::<Contains>(cased, "art").value(), Some(0.0));
    }

    #[test]
    fn all_any_or_their_share_is_wanted() {
        let reference = Some("[\"Rome\", \"Oslo\"]");
        for (need, value) in [("all", 0.0), ("any", 1.0), ("share", 0.5)] {
            assert_eq!(
                compared::<Contains>(json!({"need": need}), "In Rome.", reference).value(),
                Some(value)
            );
        }
        assert_eq!(compared::<Contains>(json!({}), "In Rome.", Some("Rome")).value(), Some(1.0));
        for reference in [None, Some(" "), Some("[]"), Some("[\"\"]")] {
            assert_eq!(compared::<Contains>(json!({}), "", reference).value(), None);
        }
        assert_eq!(rejected::<Contains>(json!({"texts": [""]})), ["texts"]);
    }
}
