//! `language`: the share of a response's words that are in a given language.

use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Fact, Info, Outcome};
use crate::reason::{Code, Reason};
use crate::text::scope::Scope;
use plaudit_instructions::text::language_share::certain_language_share;
use plaudit_instructions::{Semantics, parse};
use plaudit_text::after_thought;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The share of the words that are in the wanted language, from 0 to 1.
///
/// ## What it scores
/// The language stands in `language`, else in the field of `extra` that `language_field` names, as a code such as `en`, `de` or `zh-cn`; `zh` is
/// either Chinese. Code, formulas, addresses, tags and names are left out first. A word is told by its script where that decides, and
/// else by the n-grams of the words around it; words that cannot be told count for neither side, such as a few in Latin letters that may
/// be of many languages, and two characters of a script without
/// spaces count as one word. The info has the number of `words`, of those `in_language` and of `unknown` ones.
///
/// The final words are read without the thinking; thinking that never ends gets the floor with `format.unclosed_think`.
/// A response in which no word can be told (too short, only code) is skipped with `model.language_unknown`. A rollout without a language is
/// skipped, and one with a code that is not known is invalid.
///
/// ## When to use it
/// Against answers or thoughts that drift into another language: `scope: thought` is the language consistency of DeepSeek-R1. A small weight is
/// enough.
///
/// ## How it can be gamed
/// By writing less: a response without words is skipped. Repeating one sentence in the right language counts, so pair it with
/// `ngram_repetition_penalty`.
///
/// ## Example
/// ```yaml
/// consistent: { reward: language, weight: 0.1, language: en, scope: thought }
/// ```
///
/// ## References
/// DeepSeek-R1 (arXiv 2501.12948), section 2.3.2, language consistency reward; the profiles of langdetect.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ResponseLanguage {
    /// The code of the wanted language. Without it the row's own counts.
    pub language: Option<String>,
    /// The field of `extra` that holds the code.
    pub language_field: String,
    /// Which part of the response is read.
    pub scope: Scope,
}

impl Default for ResponseLanguage {
    fn default() -> Self {
        Self { language: None, language_field: "language".to_owned(), scope: Scope::Final }
    }
}

impl Reward<Rule> for ResponseLanguage {
    const NAME: &'static str = "language";
    const FACTS: &'static [&'static str] = &["words"];

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let known = self.language.as_deref().is_none_or(is_known);
        ParamError::check(
            known,
            "language",
            "is no code of a language that is told, such as `en` or `zh-cn`",
        )?;
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| self.score(sample)))
    }
}

impl ResponseLanguage {
    fn score(&self, sample: &RuleInput<'_>) -> Result<Outcome, Outcome> {
        let language = match (&self.language, sample.extra.get(&self.language_field)) {
            (Some(language), _) => language,
            (None, None | Some(Value::Null)) => return Err(Outcome::skipped(Code::MissingExtra)),
            (None, Some(Value::String(language))) if is_known(language) => language,
            (None, Some(_)) => {
                let message =
                    "The row's language is no code of a language that is told, such as en or zh-cn.";
                return Err(Outcome::invalid(Reason::new(Code::BadLanguage, message)));
            }
        };
        let text = self.scope.of(sample.text);
        let text = match self.scope {
            Scope::Final | Scope::Full => {
                after_thought(text).ok_or_else(|| Outcome::floored(0.0, Code::UnclosedThink))?
            }
            _ => text,
        };
        let share = certain_language_share(text, language);
        let value = share.share().ok_or_else(|| Outcome::skipped(Code::ModelLanguageUnknown))?;
        let count = |number: usize| Fact::Count(number as u64);
        let info = Info::of([
            ("words", count(share.words)),
            ("in_language", count(share.in_target)),
            ("unknown", count(share.unknown)),
        ]);
        Ok(Outcome::scored(value, info))
    }
}

/// Whether a code names a language that can be told: the one that the constraint on the language of a response takes.
fn is_known(language: &str) -> bool {
    parse("language:response_language", &json!({ "language": language }), Semantics::Corrected).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::{TestRollout, one, rejected, scored};

    const ENGLISH: &str =
        "The harbor lies quiet in the morning, and the boats wait for the tide to come back in.";
    const CHINESE: &str = "早上的港口很安静，船在等潮水回来。";

    #[test]
    fn words_are_told_by_script_and_by_their_neighbours() {
        let english = json!({"language": "en"});
        for (text, value) in [
            (ENGLISH.to_owned(), 1.0),
            (CHINESE.to_owned(), 0.0),
            (format!("<think>{CHINESE}</think>{ENGLISH}"), 1.0),
            (format!("{ENGLISH}\n```python\n变量 = 一\n```"), 1.0),
        ] {
            assert_eq!(scored::<ResponseLanguage>(english.clone(), &text).value(), Some(value), "{text}");
        }
        let mixed = scored::<ResponseLanguage>(english, &format!("{ENGLISH} {CHINESE}")).value().unwrap();
        assert!((0.5..0.9).contains(&mixed), "{mixed}");
        let thought = json!({"language": "zh", "scope": "thought"});
        assert_eq!(
            scored::<ResponseLanguage>(thought, &format!("<think>{CHINESE}</think>{ENGLISH}")).value(),
            Some(1.0)
        );
    }

    #[test]
    fn what_cannot_be_told_is_skipped() {
        let ask = |language: Value, response: &str| {
            let extra = json!({ "language": language }).as_object().unwrap().clone();
            let outcome =
                one::<ResponseLanguage>(json!({}), TestRollout { response, extra, ..TestRollout::default() });
            outcome.reason().map(|reason| reason.code)
        };
        assert_eq!(ask(json!("en"), ENGLISH), None);
        assert_eq!(ask(json!("en"), "```\nx = 1\n```"), Some(Code::ModelLanguageUnknown));
        assert_eq!(ask(json!("en"), ""), Some(Code::ModelLanguageUnknown));
        assert_eq!(ask(json!("en"), "<think>"), Some(Code::UnclosedThink));
        assert_eq!(ask(json!("xx"), ENGLISH), Some(Code::BadLanguage));
        assert_eq!(ask(json!(5), ENGLISH), Some(Code::BadLanguage));
        assert_eq!(ask(json!(null), ENGLISH), Some(Code::MissingExtra));
        assert_eq!(rejected::<ResponseLanguage>(json!({"language": "klingon"})), ["language"]);
    }
}
