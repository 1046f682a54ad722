//! `regex`: whether a pattern matches, in bounded time.

use super::{ParamError, Range, ResourceCache, Reward, Rule, Sample};
use crate::outcome::{Info, Outcome};
use crate::reason::Code;
use crate::text::scope::Scope;
use crate::text::space::strip;
use regex_automata::hybrid::dfa::Config as DfaConfig;
use regex_automata::hybrid::regex as hybrid;
use regex_automata::util::pool::Pool;
use regex_automata::{Input, Match};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

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

/// The largest compiled pattern, in bytes.
const LARGEST: usize = 1 << 20;
/// The most work of a search off the fast way: states of the pattern times bytes of the text. It takes 10 to 20 ms for
/// usual patterns, in which few of the states are alive at a time.
const MOST_WORK: usize = 10_000_000;
/// How often the fast way may start over before it is left, and how many bytes each of its states must then serve.
const RESTARTS: (usize, usize) = (3, 16);
/// The deepest nesting of groups and classes. The parser of the pattern is recursive.
const DEEPEST: u32 = 64;
/// The name of the group that `compare` looks at.
const GROUP: &str = "answer";

impl Reward<Rule> for Regex {
    const NAME: &'static str = "regex";

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let scores = [("score_match", self.score_match), ("score_miss", self.score_miss)];
        let finite =
            scores.map(|(key, score)| ParamError::check(score.is_finite(), key, "must be a finite number"));
        let compiled =
            compile(&self.pattern, self.compare).and_then(|regex| Ok((Fast::new(&self.pattern)?, regex)));
        let compiled = compiled.map_err(|message| ParamError::new("pattern", message));
        let (fast, regex) = ParamError::gather(finite, compiled)?;
        let (hit, miss) = (self.score_match, self.score_miss);
        let searcher = Searcher { regex, fast };
        let range = Range::new(hit.min(miss), hit.max(miss));
        Ok(Rule::each(range, move |sample| self.score(&searcher, range.min, sample)))
    }
}

/// The compiled pattern, or a message that begins with the cause in one word.
fn compile(pattern: &str, compare: bool) -> Result<regex::Regex, String> {
    if pattern.is_empty() {
        return Err("regex_empty: the pattern is empty and would match every response".to_owned());
    }
    let built = regex::RegexBuilder::new(pattern).size_limit(LARGEST).nest_limit(DEEPEST).build();
    let regex = built.map_err(|error| pattern_error(&error))?;
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

/// By so much the crate indents a pattern in its messages.
const INDENT: usize = 4;

/// What is wrong with a pattern. The crate tells the causes apart only in words, which a test holds on to.
fn pattern_error(error: &regex::Error) -> String {
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
    // The crate's message repeats the pattern, marks the place by ^ below it, and says in its last line what is wrong.
    let last = words.lines().last().unwrap_or("").trim_start_matches("error: ");
    let marks = words.lines().find(|line| line.contains('^') && line.chars().all(|c| c == ' ' || c == '^'));
    match marks.and_then(|marks| marks.find('^')?.checked_sub(INDENT)) {
        Some(before) => format!("{cause}: {last}, at character {}", before + 1),
        None => format!("{cause}: {last}"),
    }
}

/// The fast way: an automaton whose states are made as they are needed, a step a byte, and which says where it would
/// become slow instead of becoming it.
struct Fast {
    regex: Arc<hybrid::Regex>,
    caches: Pool<hybrid::Cache, Box<dyn Fn() -> hybrid::Cache + Send + Sync + UnwindSafe + RefUnwindSafe>>,
}

impl Fast {
    fn new(pattern: &str) -> Result<Self, String> {
        let dfa = DfaConfig::new()
            .unicode_word_boundary(true)
            .minimum_cache_clear_count(Some(RESTARTS.0))
            .minimum_bytes_per_state(Some(RESTARTS.1))
            .skip_cache_capacity_check(true);
        let built = hybrid::Builder::new().dfa(dfa).build(pattern);
        let regex = Arc::new(built.map_err(|error| format!("regex_syntax: {error}"))?);
        let maker = Arc::clone(&regex);
        Ok(Self { regex, caches: Pool::new(Box::new(move || maker.create_cache())) })
    }

    /// The first match, or nothing where the fast way must be left.
    fn find(&self, text: &str) -> Option<Option<Match>> {
        self.regex.try_search(&mut self.caches.get(), &Input::new(text)).ok()
    }

    /// Whether the slow way is short enough for so many bytes.
    fn is_short(&self, bytes: usize) -> bool {
        bytes.saturating_mul(self.regex.forward().get_nfa().states().len()) <= MOST_WORK
    }
}

/// The compiled pattern, both ways.
struct Searcher {
    regex: regex::Regex,
    fast: Fast,
}

impl Searcher {
    /// Where the pattern is found first: nothing where it is not found, an error where the search would be slow.
    fn search(&self, text: &str) -> Result<Option<std::ops::Range<usize>>, Code> {
        match self.fast.find(text) {
            Some(found) => Ok(found.map(|found| found.range())),
            None if self.fast.is_short(text.len()) => Ok(self.regex.find(text).map(|found| found.range())),
            None => Err(Code::ModelTooComplex),
        }
    }

    /// What the group `answer` holds in the first match.
    fn answer<'t>(&self, text: &'t str) -> Result<Option<&'t str>, Code> {
        let Some(found) = self.search(text)? else { return Ok(None) };
        // The groups of a match are found by the slow way, inside the match.
        if !self.fast.is_short(found.len()) {
            return Err(Code::ModelTooComplex);
        }
        let groups = self.regex.captures_at(text, found.start);
        Ok(groups.and_then(|groups| groups.name(GROUP)).map(|group| group.as_str()))
    }
}

impl Regex {
    fn score(&self, searcher: &Searcher, floor: f64, sample: &Sample<'_>) -> Result<Outcome, Outcome> {
        let text = self.scope.of(sample.text);
        // Only the first match is ever looked for: a walk over all of them can take quadratic time.
        let hit = if self.compare {
            let reference = sample.reference()?.stripped();
            searcher.answer(text).map(|answer| answer.is_some_and(|answer| strip(answer) == reference))
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
            let message = compile(pattern, compare).expect_err(pattern);
            assert!(message.starts_with(cause), "{pattern}: {message}");
        }
        let nested = format!("{}a{}", "(".repeat(100), ")".repeat(100));
        assert!(compile(&nested, false).expect_err("too deep").starts_with("regex_depth:"));
    }
}
