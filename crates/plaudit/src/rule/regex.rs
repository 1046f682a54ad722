//! `regex`: whether a pattern matches, in bounded time.

use super::pattern::Searcher;
use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Info, Outcome};
use crate::text::scope::Scope;
use plaudit_text::strip;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One score for a response that matches a pattern, another for one that does not.
///
/// ## What it scores
/// `score_match` where the pattern is found anywhere in the response, otherwise `score_miss`. With `compare` the
/// pattern must have a group `(?P<answer>...)`, and what the group holds in the first match must be the reference,
/// white space at the ends of both aside; a rollout without a reference, or with an empty one, is then skipped.
///
/// The syntax is that of the Rust crate `regex`: Unicode classes, lazy and greedy repeats, flags such as `(?s)` and
/// `(?m)`, but no look-around and no backreferences, because the time of those has no bound. `.` does not match a
/// line break unless `(?s)` is on, and `^` and `$` are the ends of the text unless `(?m)` is on.
///
/// A search that would be slow is not done: where the response takes the pattern off the fast way (it has characters
/// beyond ASCII and the pattern a Unicode `\b`, or it makes the pattern's states explode), and the response is too long
/// for the pattern's size, the response gets the floor with `model.too_complex`. Write `(?-u:\b)` for a word boundary
/// that stays on the fast way.
///
/// ## When to use it
/// For a layout or an answer that no other reward knows. Anchor the pattern, and say what may stand around the match.
///
/// ## How it can be gamed
/// A match is found anywhere, in the thought as well as in the answer, and the first one counts: a response can list
/// all answers if the pattern allows it. Patterns that match the empty text are refused, because every response
/// would match them.
///
/// ## Example
/// ```yaml
/// answer: { reward: regex, weight: 1.0, compare: true, pattern: '(?m)^Answer: (?P<answer>.+)$' }
/// ```
///
/// ## References
/// The syntax: <https://docs.rs/regex/latest/regex/#syntax>.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Regex {
    /// The pattern. It has no default.
    pub pattern: String,
    /// The score of a match.
    pub score_match: f64,
    /// The score of everything else, and the floor where it is the lower one.
    pub score_miss: f64,
    /// Whether the group `answer` must be the reference.
    pub compare: bool,
    /// Which part of the response is searched.
    pub scope: Scope,
}

impl Default for Regex {
    fn default() -> Self {
        Self {
            pattern: String::new(),
            score_match: 1.0,
            score_miss: 0.0,
            compare: false,
            scope: Scope::Final,
        }
    }
}

/// The name of the group that `compare` looks at.
const GROUP: &str = "answer";

impl Reward<Rule> for Regex {
    const NAME: &'static str = "regex";

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let scores = [("score_match", self.score_match), ("score_miss", self.score_miss)];
        let finite =
            scores.map(|(key, score)| ParamError::check(score.is_finite(), key, "must be a finite number"));
        let compiled = compile(&self.pattern, self.compare);
        let compiled = compiled.map_err(|message| ParamError::new("pattern", message));
        let searcher = ParamError::gather(finite, compiled)?;
        let (hit, miss) = (self.score_match, self.score_miss);
        let range = Range::new(hit.min(miss), hit.max(miss));
        Ok(Rule::each(range, move |sample| self.score(&searcher, range.min, sample)).compares_text(true))
    }
}

/// The compiled pattern, or a message that begins with the cause in one word.
fn compile(pattern: &str, compare: bool) -> Result<Searcher, String> {
    if pattern.is_empty() {
        return Err("regex_empty: the pattern is empty and would match every response".to_owned());
    }
    let searcher = Searcher::new(pattern)?;
    if searcher.matches_empty() {
        return Err(
            "regex_always: the pattern matches the empty text and so every response; ask for at least one \
                    character"
                .to_owned(),
        );
    }
    if compare && !searcher.has_group(GROUP) {
        return Err("regex_group: compare needs a group (?P<answer>...) in the pattern".to_owned());
    }
    Ok(searcher)
}

impl Regex {
    fn score(&self, searcher: &Searcher, floor: f64, sample: &RuleInput<'_>) -> Result<Outcome, Outcome> {
        let text = self.scope.of(sample.text);
        // Only the first match is ever looked for: a walk over all of them can take quadratic time.
        let hit = if self.compare {
            let reference = sample.reference()?.stripped();
            searcher.group(text, GROUP).map(|answer| answer.is_some_and(|answer| strip(answer) == reference))
        } else {
            searcher.search(text).map(|found| found.is_some())
        };
        let hit = hit.map_err(|code| Outcome::floored(floor, code))?;
        Ok(Outcome::scored(if hit { self.score_match } else { self.score_miss }, Info::none()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::Code;
    use crate::rule::test_util::score;

    #[test]
    fn the_first_match_is_compared() {
        let reward =
            Regex { pattern: r"answer: (?P<answer>\w+|\s)".to_owned(), compare: true, ..Default::default() };
        assert_eq!(score(reward.clone(), "answer: 4, answer: 5", Some(" 4\n")).value(), Some(1.0));
        assert_eq!(score(reward.clone(), "answer: 4, answer: 5", Some("5")).value(), Some(0.0));
        for reference in [None, Some(" ")] {
            assert_eq!(score(reward.clone(), "answer:  ", reference).value(), None);
        }
    }

    #[test]
    fn the_slow_way_is_taken_only_as_far_as_it_is_short() {
        let reward = Regex { pattern: r"\d+ kg\b".to_owned(), ..Default::default() };
        let text = |length: usize| format!("{} 7 kg.", "中".repeat(length));
        assert_eq!(score(reward.clone(), &text(10), None).value(), Some(1.0));
        let reason = score(reward.clone(), &text(330_000), None).reason().map(|reason| reason.code);
        assert_eq!(reason, Some(Code::ModelTooComplex));
        let ascii = Regex { pattern: r"[0-9]+ kg(?-u:\b)".to_owned(), ..Default::default() };
        assert_eq!(score(ascii, &text(330_000), None).value(), Some(1.0));
    }

    #[test]
    fn scores_may_be_turned_around() {
        let reward =
            Regex { pattern: "sorry".to_owned(), score_match: -1.0, score_miss: 0.5, ..Default::default() };
        assert_eq!(score(reward.clone(), "I am sorry", None).value(), Some(-1.0));
        assert_eq!(score(reward.clone(), "fine", None).value(), Some(0.5));
        let rule = reward.build(&mut ResourceCache::default()).expect("a rule");
        assert_eq!(rule.properties().floor, -1.0);
    }

    #[test]
    fn errors_name_their_cause() {
        for (pattern, compare, cause) in [
            ("", false, "regex_empty:"),
            ("a*", false, "regex_always:"),
            ("(", false, "regex_syntax:"),
            (r"(a)\1", false, "regex_feature:"),
            ("a(?=b)", false, "regex_feature:"),
            ("(?<!a)b", false, "regex_feature:"),
            ("(a{1000}){1000}", false, "regex_size:"),
            ("(answer)", true, "regex_group:"),
        ] {
            let message = compile(pattern, compare).err().expect(pattern);
            assert!(message.starts_with(cause), "{pattern}: {message}");
        }
        let nested = format!("{}a{}", "(".repeat(100), ")".repeat(100));
        assert!(compile(&nested, false).err().expect("too deep").starts_with("regex_depth:"));
    }
}
