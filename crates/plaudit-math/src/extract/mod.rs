//! Extraction: where the answer stands in a response. One pass from the end, linear in the length of the text.
//!
//! After the thinking is cut, the last commitment wins: a box, `<answer>`, `####`, a phrase such as "the answer is",
//! the whole of a short response, the last formula, the last number.

mod boxes;
mod denial;
mod formula;
mod phrase;

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

use self::boxes::last_box;
use self::formula::{around, last, last_math, last_math_in, last_number, leading_math, prose_words, whole};
use self::phrase::{final_answer, phrase};
use crate::limits::NoValue;
use crate::mark::{Announces, HASH, Marks};
use crate::options::{AnswerIn, Think};
use crate::word::{Word, in_digits, meaning, name_what_is_counted};
use plaudit_text::after_thought;

/// Bytes between the word "answer" and what it announces.
const MAX_ANNOUNCEMENT: usize = 100;
/// Bytes of a response that may be an answer as a whole.
const MAX_WHOLE: usize = 512;
/// Bytes at the end of a response that are looked through for the last formula and the last number.
const MAX_TAIL: usize = 64 * 1024;
/// Bytes of a sentence that is looked through for its last number or formula.
const MAX_SENTENCE: usize = 4096;

/// Where an answer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// In `\boxed{…}` or `\fbox{…}`.
    Box,
    /// In `<answer>…</answer>`.
    AnswerTag,
    /// After `####`.
    Hash,
    /// After "the answer is" and its relatives.
    Phrase,
    /// The whole of a short response.
    Whole,
    /// The last formula.
    LastMath,
    /// The last number.
    LastNumber,
}

impl Rule {
    /// The stable name of the rule.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Box => "box",
            Self::AnswerTag => "answer_tag",
            Self::Hash => "hash",
            Self::Phrase => "phrase",
            Self::Whole => "whole",
            Self::LastMath => "last_math",
            Self::LastNumber => "last_number",
        }
    }
}

/// An answer in its response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<'t> {
    /// The rule by which it was found.
    pub rule: Rule,
    /// Its text. Boxes that belong together are one list.
    pub text: Cow<'t, str>,
    /// Where it stands, in bytes.
    pub span: Range<usize>,
}

impl<'t> Found<'t> {
    fn at(rule: Rule, text: &'t str, span: Range<usize>) -> Self {
        Self { rule, text: Cow::Borrowed(&text[span.clone()]), span }
    }
}

/// Where the answer part of a response begins: after the thinking.
fn after_thinking(text: &str) -> Result<usize, NoValue> {
    after_thought(text).map(|answer| text.len() - answer.len()).ok_or(NoValue::UnclosedThink)
}

/// Finds the answer of a response. `None`: there is none.
pub(crate) fn extract(text: &str, answer: AnswerIn, think: Think) -> Result<Option<Found<'_>>, NoValue> {
    let start = if think == Think::Cut { after_thinking(text)? } else { 0 };
    match answer {
        AnswerIn::Box => last_box(text, start),
        AnswerIn::Phrase => Ok(affirmed(text, phrase(text, start))),
        AnswerIn::Hash => Ok(hash(text, start)),
        AnswerIn::LastNumber => Ok(last_number(text, start, text.len())),
        AnswerIn::Auto => {
            let boxed = last_box(text, start);
            if let Ok(Some(found)) = boxed {
                // A tag or a final answer after the box is the later commitment.
                let later = found.span.end;
                return Ok(Some(
                    answer_tag(text, later).or_else(|| final_answer(text, later)).unwrap_or(found),
                ));
            }
            let marked = || answer_tag(text, start).or_else(|| hash(text, start));
            if let Err(bound) = boxed {
                // A box that holds the blank of the task leaves the answer to another mark.
                let other =
                    if bound == NoValue::Empty { marked().or_else(|| phrase(text, start)) } else { None };
                return other.map(Some).ok_or(bound);
            }
            if let Some(found) = marked() {
                return Ok(Some(found));
            }
            let found = phrase(text, start).or_else(|| whole(text, start)).or_else(|| last(text, start));
            Ok(affirmed(text, found))
        }
    }
}

/// An answer that its sentence does not deny.
fn affirmed<'t>(text: &str, found: Option<Found<'t>>) -> Option<Found<'t>> {
    found.filter(|found| !denial::is_denied(text, &found.span))
}

/// The last formula or number of a response that could not be read as a whole.
pub(crate) fn fallback(text: &str, think: Think) -> Option<Found<'_>> {
    let start = if think == Think::Cut { after_thinking(text).ok()? } else { 0 };
    affirmed(text, last(text, start))
}

/// The last box, or else the last formula with delimiters.
pub(crate) fn box_or_math(text: &str) -> Result<Option<Found<'_>>, NoValue> {
    Ok(match last_box(text, 0)? {
        Some(found) => Some(found),
        None => last_math(text, 0),
    })
}

/// The answer of a reference, which is a bare answer, a formula, a sentence or a worked solution.
pub(crate) fn reference(text: &str) -> Result<(Found<'_>, bool), NoValue> {
    if let Some(found) = last_box(text, 0)? {
        return Ok((found, true));
    }
    if let Some(found) = hash(text, 0) {
        return Ok((found, true));
    }
    Ok((Found { rule: Rule::Whole, text: Cow::Borrowed(text.trim()), span: 0..text.len() }, false))
}

/// The answer of a reference that cannot be read as a whole: what is announced, or a formula at the end that a verb
/// leads to. Any other formula is a part of a statement, and the statement is the answer.
pub(crate) fn sentence(text: &str) -> Option<Found<'_>> {
    const VERBS: [&str; 8] = ["is", "are", "be", "equals", "get", "have", "obtain", "="];
    if let Some(found) = phrase(text, 0) {
        return Some(found);
    }
    let found = last_math(text, 0)?;
    let after = &text[found.span.end..];
    let verb = text[..found.span.start].trim_end_matches([' ', ':', '\n']).rsplit([' ', '\n']).next();
    (!after.contains(char::is_alphabetic) && verb.is_some_and(|verb| VERBS.contains(&verb))).then_some(found)
}

/// The only number of a sentence that says nothing else of it: "This time, 7 diners came."
pub(crate) fn only_number(text: &str) -> Option<String> {
    /// Words that make another value of the number, or none.
    const CHANGING: [&str; 18] = [
        "least", "most", "more", "less", "fewer", "than", "under", "over", "above", "below", "between",
        "not", "no", "never", "neither", "cannot", "every", "each",
    ];
    let ends = || text.trim_end().ends_with('.') && prose_words(text) > 0;
    if !(is_sentence(text) || ends()) || text.contains('\n') {
        return None;
    }
    let found = last_number(text, 0, text.len())?;
    let digit = |part: &str| part.contains(|c: char| c.is_ascii_digit());
    let words = |part: &str| {
        part.split(|c: char| !c.is_alphabetic()).any(|word| CHANGING.contains(&word.to_lowercase().as_str()))
    };
    let (before, after) = (&text[..found.span.start], &text[found.span.end..]);
    let plain = !text.contains(['\\', '^', '=', '<', '>', '_']) && !text.contains("n't");
    (plain && !digit(before) && !digit(after) && !words(before) && !words(after))
        .then(|| found.text.into_owned())
}

/// Whether a text with formulas has words beside them.
pub(crate) fn words_outside(text: &str) -> bool {
    text.split('$').step_by(2).any(|part| part.contains(char::is_alphabetic) || part.contains('\n'))
}

/// Whether a response ends with a text, and what stands before it announces an answer: "The final answer is: ...".
pub(crate) fn announces(text: &str, answer: &str) -> bool {
    let ends = |text: &str| text.trim_end().trim_end_matches(['.', '*', '"']).trim_end().len();
    let (text, answer) = (&text[..ends(text)], &answer[..ends(answer)]);
    let Some(before) = text.strip_suffix(answer).filter(|_| !answer.is_empty()) else { return false };
    let near = &before[ceil(before, before.len().saturating_sub(MAX_ANNOUNCEMENT))..];
    let Some(mark) = Marks::new(near, 0).find(|mark| mark.announces == Announces::Answer) else {
        return false;
    };
    let between = near[mark.end..].trim_matches(|c: char| c.is_whitespace() || "*_`\":：$".contains(c));
    let span = before.len()..before.len() + answer.len();
    matches!(between, "" | "is" | "are" | "是" | "为") && !denial::is_denied(text, &span)
}

fn answer_tag(text: &str, start: usize) -> Option<Found<'_>> {
    let open = start + memmem::rfind(&text.as_bytes()[start..], b"<answer>")? + "<answer>".len();
    let len = memmem::find(&text.as_bytes()[open..], b"</answer>").map_or(text.len() - open, |at| at);
    let content = trimmed(text, open..open + len);
    if content.is_empty() {
        return None;
    }
    let inner = &text[content.clone()];
    if inner.len() <= MAX_WHOLE && !inner.contains('\n') && !is_sentence(inner) {
        return Some(Found::at(Rule::AnswerTag, text, content));
    }
    let found = segment(text, content.clone()).map(|found| Found { rule: Rule::AnswerTag, ..found });
    found.or_else(|| Some(Found::at(Rule::AnswerTag, text, content)))
}

fn hash(text: &str, start: usize) -> Option<Found<'_>> {
    let at = start + memmem::rfind(&text.as_bytes()[start..], HASH.as_bytes())? + HASH.len();
    let end = memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |line| at + line);
    let content = trimmed(text, at..end);
    // A heading is no answer.
    let answers = |c: char| c.is_ascii_digit() || "-+.$\\(−[{".contains(c);
    let line = &text[content.clone()];
    // On the last line it is the answer, whether or not it can be read.
    if !line.is_empty() && text[end..].trim().is_empty() {
        return phrase(text, content.start).or_else(|| Some(Found::at(Rule::Hash, text, content)));
    }
    let word = matches!(line, "yes" | "no" | "Yes" | "No" | "true" | "false" | "True" | "False")
        || line.len() == 1 && line.bytes().all(|c| c.is_ascii_uppercase());
    if !word
        && !line.starts_with(answers)
        && (prose_words(line) > 0 || !line.contains(['=', '^', '<', '>', '\\', '+']))
    {
        return None;
    }
    Some(Found::at(Rule::Hash, text, content))
}

/// The answer inside a sentence: a formula at its beginning, all of it if it is mathematics, or its last formula or
/// number.
fn segment(text: &str, range: Range<usize>) -> Option<Found<'_>> {
    let mut range = range;
    // Markup around the answer.
    let end_markup: &[char] = &['*', '"', '`', '_', ' ', '}', ',', ';'];
    let inner = &text[range.clone()];
    let kept = inner.trim_end_matches(end_markup);
    if !kept.contains('{') || kept.matches('{').count() == kept.matches('}').count() {
        range.end = range.start + kept.len();
    }
    // Words that only introduce a number.
    for word in [
        "exactly ",
        "approximately ",
        "about ",
        "roughly ",
        "equal to ",
        "the number ",
        "simply ",
        "therefore ",
    ] {
        let inner = &text[range.clone()];
        if inner.len() > word.len()
            && inner.is_char_boundary(word.len())
            && inner[..word.len()].eq_ignore_ascii_case(word)
        {
            range.start += word.len();
        }
    }
    let inner = &text[range.clone()];
    if inner.is_empty() {
        return None;
    }
    if let Some(found) = emphasised(text, &range) {
        return Some(found);
    }
    if inner.starts_with(['$', '\\'])
        && let Some(found) = leading_math(text, range.clone())
    {
        return Some(found);
    }
    if let Some(len) = leading_number(inner) {
        return Some(Found::at(Rule::Phrase, text, range.start..range.start + len));
    }
    if !is_sentence(inner) {
        return Some(Found::at(Rule::Phrase, text, range));
    }
    let math = last_math_in(text, range.clone());
    let number = last_number(text, range.start, range.end).map(|number| around(text, range.start, number));
    match (math, number) {
        (Some(math), Some(number)) if number.span.start >= math.span.end => Some(number),
        (Some(math), _) => Some(math),
        (None, Some(number)) if is_bound(&text[range.start..number.span.start]) => {
            Some(Found::at(Rule::Phrase, text, range))
        }
        (None, Some(number)) => Some(number),
        (None, None) => Some(Found::at(Rule::Phrase, text, range)),
    }
}

/// A number in emphasis that more follows, without the marks: `**12** apples`, `**12 apples** after 3 days`.
fn emphasised<'t>(text: &'t str, range: &Range<usize>) -> Option<Found<'t>> {
    let (before, inner) = (&text[..range.start], &text[range.clone()]);
    let is_number = |c: char| c.is_ascii_digit() || ".,/%$+-−".contains(c);
    for mark in ["**", "__", "`", "*", "_"] {
        let opened = if before.ends_with(mark) { Some(inner) } else { inner.strip_prefix(mark) };
        let Some(close) = opened.and_then(|body| body.find(mark)) else { continue };
        let body = opened?;
        let number =
            body.find(|c| !is_number(c)).filter(|len| body[..*len].contains(|c: char| c.is_ascii_digit()));
        let behind = &body[close + mark.len()..];
        // A star alone multiplies, and a line lowers.
        if number.is_none_or(|len| len > close || mark.len() == 1 && mark != "`" && len != close)
            || behind.starts_with(char::is_alphanumeric)
        {
            return None;
        }
        let cleaned = [&body[..close], &behind.replace(mark, "")].concat();
        if let Some(len) = leading_number(&cleaned) {
            let end = range.end - inner.len() + (inner.len() - body.len()) + close.min(len);
            let text = Cow::Owned(cleaned[..len].to_owned());
            return Some(Found { rule: Rule::Phrase, text, span: range.start..end });
        }
        let found = Found { rule: Rule::Phrase, text: Cow::Owned(cleaned), span: range.clone() };
        return (!is_sentence(&found.text)).then_some(found);
    }
    None
}

/// Where the number ends, with what is counted, that a sentence begins with before it says more about it: "12 cars, since
/// there are 3", "12 after 3 days", "12 (3 a day)".
fn leading_number(text: &str) -> Option<usize> {
    const ABOUT: [&str; 39] = [
        "with",
        "due",
        "thanks",
        "including",
        "leaving",
        "using",
        "لأن",
        "since",
        "because",
        "as",
        "after",
        "before",
        "when",
        "while",
        "during",
        "given",
        "where",
        "which",
        "assuming",
        "although",
        "though",
        "porque",
        "pues",
        "ya",
        "pois",
        "weil",
        "denn",
        "da",
        "car",
        "parce",
        "puisque",
        "perché",
        "poiché",
        "так",
        "потому",
        "karena",
        "çünkü",
        "vì",
        "gdyż",
    ];
    /// Words after which another number may stand.
    const PLACING: [&str; 3] = ["for", "on", "at"];
    /// Words for "is" behind what something is.
    const COPULAS: [&str; 4] = ["입니다", "이다", "です", "だ"];
    /// The same as the first, without a space between words.
    const CHINESE: [&str; 3] = ["因为", "由于", "因"];
    const CORRECTING: [&str; 21] = [
        "but",
        "wait",
        "no",
        "not",
        "actually",
        "instead",
        "rather",
        "equals",
        "altogether",
        "total",
        "or",
        "pero",
        "aber",
        "mais",
        "mas",
        "nicht",
        "não",
        "но",
        "не",
        "oder",
        "sondern",
    ];
    let sign = text.len() - text.trim_start_matches(['-', '+', '−', '$', '\\']).len();
    let number = |c: char| c.is_ascii_digit() || ".,/%".contains(c);
    let len = text[sign..].find(|c| !number(c)).filter(|len| *len > 0)?;
    let number = text[sign..sign + len].trim_end_matches(['.', ',']);
    let first = sign + number.len();
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let chinese = text[first..].trim_start_matches(['，', ',', ' ']);
    if CHINESE.iter().any(|word| chinese.starts_with(word)) && !chinese.contains(['但', '不', '而']) {
        return Some(first);
    }
    let behind = &text[first..];
    let foreign = |text: &str| text.contains(|c: char| !c.is_ascii() && c.is_alphabetic());
    // "12（3辆车）": words and another number in brackets are no factor.
    if let Some(remark) = behind.strip_prefix('（').and_then(|inner| inner.trim_end().strip_suffix('）')) {
        return (foreign(remark) && remark.contains(|c: char| c.is_ascii_digit())).then_some(first);
    }
    // "12입니다 (3대)"
    if let Some(rest) = COPULAS.iter().find_map(|word| behind.strip_prefix(word)) {
        return rest.trim_start().starts_with(['(', '（']).then_some(first);
    }
    if !behind.starts_with([' ', ',', ';']) {
        return None;
    }
    let mut words = Vec::new();
    let mut end = first;
    let semicolon = text[first..].starts_with(';');
    let mut comma = text[first..].starts_with(',');
    let mut rest = text[first..].trim_start_matches([' ', ',', ';']);
    if semicolon && !is_sentence(rest) {
        return None;
    }
    loop {
        let word = rest.split(' ').next().filter(|word| !word.is_empty())?;
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let lower = bare.to_lowercase();
        // What is counted may stand in brackets.
        if word.starts_with('(') && rest.ends_with(')') && !rest.contains(|c: char| c.is_ascii_digit()) {
            return words.is_empty().then_some(text.len());
        }
        let behind = &rest[word.len()..];
        if words.is_empty() && !comma && (lower == "of" && is_whole(behind) || is_rate(&lower, behind)) {
            return Some(first);
        }
        let placed = || PLACING.contains(&lower.as_str()) && rest.contains(|c: char| c.is_ascii_digit());
        let which = lower == "of" && rest[word.len()..].trim_start().starts_with("which ");
        if semicolon
            || which
            || word.starts_with('(') && !comma
            || ABOUT.contains(&lower.as_str())
            || !comma && placed()
        {
            break;
        }
        words.push(bare);
        if comma || words.len() > 4 || bare.is_empty() {
            return None;
        }
        end = text.len() - rest.len() + word.trim_end_matches([',', ')']).len();
        comma = word.ends_with(',');
        rest = rest[word.len()..].trim_start_matches(' ');
    }
    let corrects = |word: &str| CORRECTING.contains(&word.to_lowercase().as_str());
    let corrected = rest.split(|c: char| !c.is_alphabetic()).any(corrects);
    (name_what_is_counted(&words) && !corrected).then_some(end)
}

/// Whether a text says of what a number is the part or the count, and gives no other number: "the cake", "them".
fn is_whole(text: &str) -> bool {
    const NAMED: [&str; 14] = [
        "the", "them", "these", "those", "all", "her", "his", "its", "their", "my", "our", "your", "that",
        "this",
    ];
    let mut words =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase);
    let numbers = |word: &String| {
        word.contains(|c: char| c.is_ascii_digit())
            || in_digits(word).is_some()
            || matches!(meaning(word), Word::Scale(_) | Word::Part { .. })
            || matches!(
                &**word,
                "total" | "but" | "not" | "actually" | "wait" | "or" | "plus" | "minus" | "equals"
            )
    };
    words.next().is_some_and(|word| NAMED.contains(&&*word)) && !words.any(|word| numbers(&word))
}

/// Whether a number is one for each of a time: "a year".
fn is_rate(article: &str, text: &str) -> bool {
    const TIMES: [&str; 8] = ["second", "minute", "hour", "day", "night", "week", "month", "year"];
    matches!(article, "a" | "an" | "each" | "every") && TIMES.contains(&text.trim_matches([' ', '.', '*']))
}

/// Whether the words before a number say that it is only a bound: "more than", "at least".
fn is_bound(text: &str) -> bool {
    const BOUNDS: [&str; 9] = [
        "more than",
        "less than",
        "fewer than",
        "greater than",
        "smaller than",
        "at least",
        "at most",
        "up to",
        "no more than",
    ];
    let text = text.trim_end_matches([' ', '*', '$']);
    BOUNDS.iter().any(|words| text.ends_with(words))
}

/// Whether a text is prose: more than one word that is no unit, no function and no command.
fn is_sentence(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut words = 0;
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at].is_ascii_alphabetic() {
            let start = at;
            while at < bytes.len() && bytes[at].is_ascii_alphabetic() {
                at += 1;
            }
            let command = start > 0 && bytes[start - 1] == b'\\';
            let known =
                matches!(&text[start..at], "and" | "or" | "sin" | "cos" | "tan" | "log" | "sqrt" | "percent");
            if !command && !known && at - start > 2 || matches!(&text[start..at], "is" | "be") {
                words += 1;
            }
        } else {
            at += 1;
        }
    }
    words > 2
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let inner = &text[range.clone()];
    let start = range.start + (inner.len() - inner.trim_start().len());
    start..start + inner.trim().len()
}

fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while at < text.len() && !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<(Rule, String)> {
        let found = extract(text, AnswerIn::Auto, Think::Cut).unwrap()?;
        Some((found.rule, found.text.into_owned()))
    }

    #[test]
    fn the_last_commitment_wins() {
        let is = |text: &str, rule: Rule, answer: &str| {
            assert_eq!(found(text), Some((rule, answer.to_owned())), "{text}");
        };
        is("\\boxed{1} but \\boxed{2}", Rule::Box, "2");
        is("\\boxed{1} and \\boxed{2}", Rule::Box, "1, 2");
        is("\\boxed{5} (put it in \\boxed{})", Rule::Box, "5");
        is("\\boxed{1}. The final answer is $2$.", Rule::Phrase, "2");
        is("\\boxed{1} <answer>2</answer>", Rule::AnswerTag, "2");
        is("so\n#### 72", Rule::Hash, "72");
        is("The answer is $x$ and $y$.", Rule::Phrase, "x, y");
        is("We choose option B because", Rule::Phrase, "B");
        is("2^3", Rule::Whole, "2^3");
        is("Hence $x=2$.", Rule::LastMath, "x=2");
        is("There are 42 ways.", Rule::LastNumber, "42");
        is("So the side is 2\\sqrt{3}.", Rule::LastMath, "2\\sqrt{3}");
    }

    #[test]
    fn nothing_is_found_where_nothing_is() {
        assert_eq!(found(""), None);
        assert_eq!(found("I considered 4 cases but I cannot conclude."), None);
        assert!(matches!(extract("<think>4", AnswerIn::Auto, Think::Cut), Err(NoValue::UnclosedThink)));
        assert!(matches!(extract("\\boxed{4", AnswerIn::Auto, Think::Cut), Err(NoValue::Unbalanced)));
    }
}
