//! `code_patch_similarity`: how much of a patch equals the reference, character by character, as `difflib` has it.

use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Fact, Info, Outcome};
use crate::reason::{Code, Reason};
use crate::text::scope::Scope;
use crate::text::sequence_matcher::SequenceMatcher;
use plaudit_text::strip;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The similarity of the response to a reference patch, by its longest common pieces of text.
///
/// ## What it scores
/// The longest piece that both texts have, then the longest ones to its left and right, and so on: with M characters in such pieces, the
/// score is 2M / (characters of both), from 0 to 1. It is the `ratio()` of Python's `difflib.SequenceMatcher`, to the last bit.
/// White space at the ends does not count. A rollout without a reference, or with an empty one, is skipped. A response of more
/// than 32,768 characters is floored as `model.too_long`, one that repeats itself so often that the comparison takes too many
/// steps as `model.too_complex`; a reference of more than 32,768 characters is invalid.
///
/// ## When to use it
/// To train repairs on patches of people, where running tests is too dear. With tests, `code_execution` says more.
///
/// ## How it can be gamed
/// Most of a patch is what it leaves as it was: to copy the lines around the change without the change scores high, and so does a
/// change that is wrong by one character. A right patch in other words scores low.
///
/// ## Example
/// ```yaml
/// patch: { reward: code_patch_similarity, weight: 1.0 }
/// ```
///
/// ## References
/// RM-Gallery `code_patch_similarity`; Wei et al., SWE-RL (arXiv 2502.18449), which leaves `autojunk` out as well; Python's
/// `difflib`; Ratcliff and Metzener, Pattern Matching: The Gestalt Approach (1988).
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CodePatchSimilarity {
    /// Which part of the response is read.
    pub scope: Scope,
    /// `difflib`'s heuristic of that name, which RM-Gallery leaves on: where the reference has 200 characters or more, those that make
    /// up more than a hundredth of it begin no match. In a patch these are nearly all of them, so that one that differs from the
    /// reference by its first character can get 0.
    pub autojunk: bool,
}

/// The longest response and the longest reference, in characters: they take up to 15 ms to prepare.
const MAX_LENGTH: usize = 1 << 15;
/// The key of a prepared reference: `difflib` in ASCII, and one more with `autojunk`.
const KEY: u64 = 0x6469_6666_6c69_6200;
/// How many steps a comparison may take: up to 25 ms.
const MAX_WORK: u64 = 10_000_000;

impl Reward<Rule> for CodePatchSimilarity {
    const NAME: &'static str = "code_patch_similarity";
    const NEEDS_REFERENCE: bool = true;

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| self.score(sample)).compares_text(true))
    }
}

impl CodePatchSimilarity {
    fn score(&self, sample: &RuleInput<'_>) -> Result<Outcome, Outcome> {
        let reference = sample.reference()?;
        if reference.chars() > MAX_LENGTH {
            let message = format!("The reference has more than {MAX_LENGTH} characters.");
            return Err(Outcome::invalid(Reason::new(Code::ReferenceTooLong, message)));
        }
        let given = strip(self.scope.of(sample.text));
        let length = given.chars().count();
        if length > MAX_LENGTH {
            let message = format!("The response has more than {MAX_LENGTH} characters.");
            return Err(Outcome::floored(0.0, Reason::new(Code::ModelTooLong, message)));
        }
        let key = KEY + u64::from(self.autojunk);
        let matcher = reference.parsed(key, |text| SequenceMatcher::new(strip(text), self.autojunk));
        let matched =
            if given == reference.stripped() { Some(length) } else { matcher.matches(given, MAX_WORK) };
        let matched = matched.ok_or_else(|| Outcome::floored(0.0, Code::ModelTooComplex))?;
        let score = 2.0 * matched as f64 / (length + matcher.len()) as f64;
        let info = Info::of([
            ("matched_characters", Fact::Count(matched as u64)),
            ("generated_length", Fact::Count(length as u64)),
            ("reference_length", Fact::Count(matcher.len() as u64)),
        ]);
        Ok(Outcome::scored(score, info))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::compared;
    use serde_json::json;

    #[test]
    fn common_pieces_count() {
        let outcome = compared::<CodePatchSimilarity>(json!({}), " diet\n", Some("tide"));
        assert_eq!(outcome.value(), Some(0.5));
        assert_eq!(outcome.info().and_then(|info| info.get("matched_characters")), Some(&Fact::Count(2)));
        assert_eq!(compared::<CodePatchSimilarity>(json!({}), "", Some("a")).value(), Some(0.0));
        assert_eq!(compared::<CodePatchSimilarity>(json!({}), "a", Some("a")).value(), Some(1.0));
    }

    #[test]
    fn popular_characters_count_unless_the_recipe_says_otherwise() {
        let reference = "- a = b\n+ a = c\n".repeat(20);
        let given = format!("X{reference}");
        let score = |params| compared::<CodePatchSimilarity>(params, &given, Some(&reference)).value();
        assert!(score(json!({})) > Some(0.99));
        assert_eq!(score(json!({"autojunk": true})), Some(0.0));
    }

    #[test]
    fn limits_are_stated_and_kept() {
        let reason = |outcome: Outcome| outcome.reason().map(|reason| reason.code);
        let long = "ab".repeat(MAX_LENGTH);
        let said = |given: &str, reference: Option<&str>| {
            reason(compared::<CodePatchSimilarity>(json!({}), given, reference))
        };
        assert_eq!(said(&long, Some("a")), Some(Code::ModelTooLong));
        assert_eq!(said("a", Some(&long)), Some(Code::ReferenceTooLong));
        assert_eq!(said("a", Some(" ")), Some(Code::EmptyReference));
        assert_eq!(said("a", None), Some(Code::MissingReference));
        assert_eq!(said(&long[..MAX_LENGTH], Some(&long[1..MAX_LENGTH])), Some(Code::ModelTooComplex));
        assert_eq!(said(&long[..MAX_LENGTH], Some(&long[..MAX_LENGTH])), None);
    }
}
