//! Does the response match a pattern, or hold the reference where the pattern says?

use super::{Range, Refusal, Reward, Rule, Sample, Scorer, Stated};
use crate::outcome::{Info, Outcome};
use crate::reason::Code;
use crate::text::space::strip;
use crate::tokenizer::Shelf;
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
}

impl Default for Regex {
    fn default() -> Self {
        Self { pattern: String::new(), score_match: 1.0, score_miss: 0.0, compare: false }
    }
}

/// The largest compiled pattern, in bytes. It bounds memory, and together with a response's length the time.
const LARGEST: usize = 1 << 20;
/// The deepest nesting of groups and classes. The parser of the pattern is recursive.
const DEEPEST: u32 = 64;
/// The name of the group that `compare` looks at.
const GROUP: &str = "answer";

impl Reward for Regex {
    const NAME: &'static str = "regex";

    fn build(self, _: &mut Shelf) -> Result<Scorer, Vec<Refusal>> {
        let mut refusals = Vec::new();
        for (key, score) in [("score_match", self.score_match), ("score_miss", self.score_miss)] {
            if !score.is_finite() {
                refusals.push(Refusal::new(key, "must be a finite number"));
            }
        }
        match compile(&self.pattern, self.compare) {
            Ok(regex) if refusals.is_empty() => Ok(Scorer::Each(Box::new(Loaded { regex, stated: self }))),
            Ok(_) => Err(refusals),
            Err(message) => {
                refusals.push(Refusal::new("pattern", message));
                Err(refusals)
            }
        }
    }
}

/// The compiled pattern, or a message that begins with the cause in one word.
fn compile(pattern: &str, compare: bool) -> Result<regex::Regex, String> {
    if pattern.is_empty() {
        return Err("regex_empty: the pattern is empty and would match every response".to_owned());
    }
    let built = regex::RegexBuilder::new(pattern).size_limit(LARGEST).nest_limit(DEEPEST).build();
    let regex = built.map_err(|error| refusal(&error))?;
    if regex.is_match("") {
        return Err(
            "regex_always: the pattern matches the empty text and so every response; ask for at least one \
                    character"
                .to_owned(),
        );
    }
    if compare && !regex.capture_names().flatten().any(|name| name == GROUP) {
        return Err("regex_group: compare needs a group (?P<answer>...) in the pattern".to_owned());
    }
    Ok(regex)
}

/// What is wrong with a pattern. The crate tells the causes apart only in words, which a test holds on to.
fn refusal(error: &regex::Error) -> String {
    let words = error.to_string();
    if matches!(error, regex::Error::CompiledTooBig(_)) {
        return "regex_size: the compiled pattern is larger than 1 MiB; use smaller repeats or classes"
            .to_owned();
    }
    let cause = if words.contains("nested parentheses") {
        "regex_depth"
    } else if words.contains("not supported")
        && (words.contains("look-around") || words.contains("backreference"))
    {
        "regex_feature"
    } else {
        "regex_syntax"
    };
    // The crate's message repeats the pattern; only its last line says what is wrong.
    let last = words.lines().last().unwrap_or("").trim_start_matches("error: ");
    format!("{cause}: {last}")
}

struct Loaded {
    regex: regex::Regex,
    stated: Regex,
}

impl Stated for Loaded {
    fn range(&self) -> Range {
        let (hit, miss) = (self.stated.score_match, self.stated.score_miss);
        Range::new(hit.min(miss), hit.max(miss))
    }
}

impl Rule for Loaded {
    fn score(&self, sample: &Sample<'_>) -> Outcome {
        let text = sample.text.as_str();
        // Only the first match is ever looked for: a walk over all of them can take quadratic time.
        let hit = if self.stated.compare {
            let Some(reference) = sample.reference.map(|reference| reference.stripped()) else {
                return Outcome::skipped(Code::MissingReference);
            };
            if reference.is_empty() {
                return Outcome::skipped(Code::EmptyReference);
            }
            let found = self.regex.captures(text);
            found
                .and_then(|groups| groups.name(GROUP))
                .is_some_and(|group| strip(group.as_str()) == reference)
        } else {
            self.regex.is_match(text)
        };
        Outcome::scored(if hit { self.stated.score_match } else { self.stated.score_miss }, Info::none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::tests::score;

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
    fn scores_may_be_turned_around() {
        let reward =
            Regex { pattern: "sorry".to_owned(), score_match: -1.0, score_miss: 0.5, ..Default::default() };
        assert_eq!(score(reward.clone(), "I am sorry", None).value(), Some(-1.0));
        assert_eq!(score(reward.clone(), "fine", None).value(), Some(0.5));
        let scorer = reward.build(&mut Shelf::default()).expect("a rule");
        assert_eq!(scorer.stated().floor(), -1.0);
    }

    #[test]
    fn refusals_name_their_cause() {
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
            let message = compile(pattern, compare).expect_err(pattern);
            assert!(message.starts_with(cause), "{pattern}: {message}");
        }
        let nested = format!("{}a{}", "(".repeat(100), ")".repeat(100));
        assert!(compile(&nested, false).expect_err("too deep").starts_with("regex_depth:"));
    }
}
