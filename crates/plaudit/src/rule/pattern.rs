//! Regular expressions of recipes and rows, searched in untrusted text in bounded time.

use crate::reason::Code;
use regex_automata::hybrid::dfa::Config as DfaConfig;
use regex_automata::hybrid::regex as hybrid;
use regex_automata::util::pool::Pool;
use regex_automata::{Input, Match};
use std::ops::Range;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

/// The largest compiled pattern, in bytes.
const MAX_SIZE: usize = 1 << 20;
/// The most work of a search off the fast way: states of the pattern times bytes of the text. It takes 10 to 20 ms for
/// usual patterns, in which few of the states are alive at a time.
const MAX_WORK: usize = 10_000_000;
/// How often the fast way may start over before it is left, and how many bytes each of its states must then serve.
const RESTARTS: (usize, usize) = (3, 16);
/// The deepest nesting of groups and classes. The parser of the pattern is recursive.
const MAX_DEPTH: u32 = 64;

/// A compiled pattern, both ways, which is searched in bounded time.
pub(super) struct Searcher {
    regex: regex::Regex,
    fast: Fast,
}

/// How many bytes the searches for all matches of a row's patterns may look at, at most: some fifteen milliseconds.
#[cfg(feature = "math")]
const MAX_BYTES: usize = 1 << 23;

impl Searcher {
    /// The compiled pattern, or a message that begins with the cause in one word.
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        let built = regex::RegexBuilder::new(pattern).size_limit(MAX_SIZE).nest_limit(MAX_DEPTH).build();
        let regex = built.map_err(|error| pattern_error(&error))?;
        Ok(Self { regex, fast: Fast::new(pattern)? })
    }

    /// Where the pattern is found first: nothing where it is not found, an error where the search would be slow.
    pub(super) fn search(&self, text: &str) -> Result<Option<Range<usize>>, Code> {
        self.search_at(text, 0, &mut 0)
    }

    /// The first match from an offset on. `work` grows by the bytes that it may have looked at, of which the slow way looks at
    /// each once for every state of the pattern.
    fn search_at(&self, text: &str, from: usize, work: &mut usize) -> Result<Option<Range<usize>>, Code> {
        *work += text.len() - from;
        match self.fast.find_at(text, from) {
            Some(found) => Ok(found.map(|found| found.range())),
            None if self.fast.is_short(text.len()) => {
                *work += self.fast.slow_work(text.len() - from);
                Ok(self.regex.find_at(text, from).map(|found| found.range()))
            }
            None => Err(Code::ModelTooComplex),
        }
    }

    /// Whether the pattern has a group of that name.
    pub(super) fn has_group(&self, name: &str) -> bool {
        self.regex.capture_names().flatten().any(|known| known == name)
    }

    /// Whether the empty text matches, and so every text.
    pub(super) fn matches_empty(&self) -> bool {
        self.regex.is_match("")
    }

    /// How many groups the pattern has.
    #[cfg(feature = "math")]
    pub(super) fn groups(&self) -> usize {
        self.regex.captures_len() - 1
    }

    /// The last of all matches that do not overlap, from left to right: what its first group holds, or all of it where
    /// the pattern has no group. An error where that would be slow; `work` is what searches before this one have done.
    #[cfg(feature = "math")]
    pub(super) fn last<'t>(&self, text: &'t str, work: &mut usize) -> Result<Option<&'t str>, Code> {
        let (mut last, mut from) = (None, 0);
        while let Some(found) = self.search_at(text, from, work)? {
            if *work > MAX_BYTES {
                return Err(Code::ModelTooComplex);
            }
            let next = |at: usize| text[at..].chars().next().map_or(at + 1, |char| at + char.len_utf8());
            from = if found.is_empty() { next(found.end) } else { found.end };
            last = Some(found);
            if from > text.len() {
                break;
            }
        }
        let Some(found) = last else { return Ok(None) };
        if self.groups() == 0 {
            return Ok(Some(&text[found]));
        }
        if !self.fast.is_short(found.len()) {
            return Err(Code::ModelTooComplex);
        }
        let groups = self.regex.captures_at(text, found.start);
        Ok(Some(groups.and_then(|groups| groups.get(1)).map_or("", |group| group.as_str())))
    }

    /// What a named group holds in the first match.
    pub(super) fn group<'t>(&self, text: &'t str, name: &str) -> Result<Option<&'t str>, Code> {
        let Some(found) = self.search(text)? else { return Ok(None) };
        // The groups of a match are found by the slow way, inside the match.
        if !self.fast.is_short(found.len()) {
            return Err(Code::ModelTooComplex);
        }
        let groups = self.regex.captures_at(text, found.start);
        Ok(groups.and_then(|groups| groups.name(name)).map(|group| group.as_str()))
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

    /// The first match from an offset on, or nothing where the fast way must be left.
    fn find_at(&self, text: &str, from: usize) -> Option<Option<Match>> {
        self.regex.try_search(&mut self.caches.get(), &Input::new(text).range(from..)).ok()
    }

    /// Whether the slow way is short enough for so many bytes.
    fn is_short(&self, bytes: usize) -> bool {
        self.slow_work(bytes) <= MAX_WORK
    }

    /// How often the slow way looks at so many bytes.
    fn slow_work(&self, bytes: usize) -> usize {
        bytes.saturating_mul(self.regex.forward().get_nfa().states().len())
    }
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
