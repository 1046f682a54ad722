//! Extraction: where the answer stands in a response. One pass from the end, linear in the length of the text.
//!
//! After the thinking is cut, the last commitment wins: a box, `<answer>`, `####`, a phrase such as "the answer is",
//! the whole of a short response, the last formula, the last number.

mod denial;
mod formula;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem;

use self::formula::{
    around, is_money, last, last_math, last_math_in, last_number, leading_math, prose_words, whole,
};
use crate::limits::NoValue;
use crate::mark::{Announces, HASH, Mark, Marks, VERBS, chosen_letter, is_blank, is_joint as is_listed};
use crate::options::{AnswerIn, Think};
use crate::word::{Word, in_digits, meaning, name_what_is_counted};
use plaudit_text::{after_thought, closing_brace};

/// Boxes that are looked at, from the end.
const MAX_BOXES: usize = 256;
/// Bytes between two boxes that belong together.
const MAX_GAP: usize = 64;
/// Places of the word "answer" that are tried, from the end.
const MAX_PHRASES: usize = 32;
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

// Boxes.

/// A box: where its command begins, its content, and where it ends. Content `None`: it is never closed.
struct BoxAt {
    start: usize,
    content: Option<Range<usize>>,
    end: usize,
}

/// The last box that begins before `before`.
fn box_before(text: &str, start: usize, before: usize) -> Option<BoxAt> {
    static BOX: LazyLock<memmem::FinderRev<'static>> = LazyLock::new(|| memmem::FinderRev::new(b"box"));
    let bytes = text.as_bytes();
    let mut stop = before;
    while let Some(found) = BOX.rfind(&bytes[start..stop]) {
        let word = start + found;
        stop = word;
        let head = &bytes[start..word];
        let (at, name) = if bytes[word..].starts_with(b"boxed") && head.ends_with(b"\\") {
            (word - 1, 5)
        } else if head.ends_with(b"\\f") {
            (word - 2, 4)
        } else {
            continue;
        };
        let mut open = at + 1 + name;
        while open < bytes.len() && (bytes[open] == b' ' || bytes[open] == b'\n') {
            open += 1;
        }
        if open < bytes.len() && bytes[open] == b'{' {
            let limit = if before == bytes.len() { bytes.len() } else { before };
            let close = closing_brace(bytes, open, limit);
            let end = close.map_or(open + 1, |close| close + 1);
            return Some(BoxAt { start: at, content: close.map(|close| open + 1..close), end });
        }
        // `\boxed 5`: one word.
        let mut end = open;
        while end < bytes.len() && bytes[end].is_ascii_alphanumeric() {
            end += 1;
        }
        if end > open && open > at + 1 + name {
            return Some(BoxAt { start: at, content: Some(open..end), end });
        }
    }
    None
}

fn last_box(text: &str, start: usize) -> Result<Option<Found<'_>>, NoValue> {
    let Some(mut last) = box_before(text, start, text.len()) else { return Ok(None) };
    let Some(mut content) = last.content.clone() else { return Err(NoValue::Unbalanced) };
    // An empty box may quote the task. The last one that is filled counts.
    let mut boxes = 1;
    while is_blank(&text[content.clone()]) {
        let Some(previous) = box_before(text, start, last.start) else { return Err(NoValue::Empty) };
        boxes += 1;
        if boxes > MAX_BOXES {
            return Err(NoValue::Empty);
        }
        if let Some(filled) = previous.content.clone() {
            content = filled;
        }
        last = previous;
    }
    let mut joined: Vec<Range<usize>> = vec![content];
    let (mut first, end) = (last.start, last.end);
    while boxes < MAX_BOXES
        && memchr::memrchr(b'}', &text.as_bytes()[first.saturating_sub(MAX_GAP)..first]).is_some()
        && let Some(previous) = box_before(text, start, first)
        && let Some(content) = previous.content
        && first - previous.end <= MAX_GAP
        && (is_joint(&text[previous.end..first])
            || text[previous.end..first].trim_matches(['$', ' ']).is_empty()
                && text[content.clone()].trim() != text[joined[0].clone()].trim())
        && !is_blank(&text[content.clone()])
    {
        joined.push(content);
        first = previous.start;
        boxes += 1;
    }
    let percent = text[end..].trim_start_matches([' ', '$']).starts_with(['%', '\\'])
        && text[end..].trim_start_matches([' ', '$', '\\']).starts_with('%');
    if let [one] = &joined[..]
        && !percent
    {
        return Ok(Some(Found {
            rule: Rule::Box,
            text: Cow::Borrowed(&text[one.clone()]),
            span: first..end,
        }));
    }
    joined.reverse();
    let mut answer = listed(text, &joined);
    if percent {
        answer.push_str("\\%");
    }
    Ok(Some(Found { rule: Rule::Box, text: Cow::Owned(answer), span: first..end }))
}

/// The parts of a text as one list, with the "or" that stands between them.
fn listed(text: &str, parts: &[Range<usize>]) -> String {
    let mut list = String::new();
    for (index, part) in parts.iter().enumerate() {
        if let Some(before) = index.checked_sub(1).map(|before| &parts[before]) {
            let gap = text[before.end..part.start].split(|c: char| !c.is_alphabetic());
            list.push_str(if gap.into_iter().any(|word| matches!(word, "or" | "或")) {
                " \\text{ or } "
            } else {
                ", "
            });
        }
        list.push_str(text[part.clone()].trim());
    }
    list
}

/// Whether what stands between two boxes makes them one list: a comma, "and" or "or", and little else.
fn is_joint(gap: &str) -> bool {
    const REFUSED: [&str; 16] = [
        "but", "not", "no", "wait", "correct", "instead", "actually", "should", "then", "so", "thus",
        "hence", "get", "is", "gives", "wrong",
    ];
    let mut words = 0;
    let mut joint = false;
    let mut equals = false;
    let mut word = String::new();
    for c in gap.chars().chain(std::iter::once(' ')) {
        if c.is_alphabetic() || c == '\\' {
            word.push(c.to_ascii_lowercase());
            continue;
        }
        match std::mem::take(&mut word).as_str() {
            "" | "\\" | "\\quad" | "\\qquad" | "\\text" | "\\textbf" | "\\mbox" | "\\left" | "\\right" => {}
            "and" | "or" | "和" | "或" | "\\and" => joint = true,
            other if REFUSED.contains(&other) => return false,
            other if other.chars().count() > 1 => words += 1,
            _ => {}
        }
        match c {
            ',' | ';' | '，' | '、' => joint = true,
            '=' if equals => return false,
            '=' => equals = true,
            '.' | ':' | '?' | '!' | '\u{3002}' => return false,
            _ => {}
        }
    }
    joint && words <= 3
}

// Tags and marks.

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

// Phrases.

fn phrase(text: &str, start: usize) -> Option<Found<'_>> {
    if let Some(found) = answer_line(text, start) {
        return Some(found);
    }
    Marks::new(text, start).take(MAX_PHRASES).find_map(|mark| match mark.announces {
        Announces::Answer => announced(text, &mark),
        Announces::Option => choice(text, mark.end),
    })
}

/// `A: 50` as the last line.
fn answer_line(text: &str, start: usize) -> Option<Found<'_>> {
    let kept = text[start..].trim_end();
    let line = start + kept.rfind('\n')? + 1;
    let content = trimmed(text, line..start + kept.len());
    let answer = text[content.clone()].strip_prefix("A:")?;
    let number = answer.trim_start().starts_with(|c: char| c.is_ascii_digit() || "$\\-".contains(c));
    if !number {
        return None;
    }
    segment(text, trimmed(text, content.start + 2..content.end))
        .map(|found| Found { rule: Rule::Phrase, ..found })
}

/// "The final answer is" with a number or a formula, as a commitment that is later than a box.
fn final_answer(text: &str, start: usize) -> Option<Found<'_>> {
    let bytes = &text.as_bytes()[start..];
    let at = [&b"inal answer is"[..], b"inal answer:", b"inal Answer:", b"inal answer: "]
        .iter()
        .filter_map(|words| memmem::rfind(bytes, words))
        .max()?;
    let at = start + at + "inal answer".len();
    if denial::begins(&text[at..]) {
        return None;
    }
    let found = announced(text, &Mark { end: at, announces: Announces::Answer, verbs: &VERBS })?;
    found.text.bytes().any(|c| c.is_ascii_digit() || c == b'\\').then_some(found)
}

/// The answer that a mark announces.
fn announced<'t>(text: &'t str, mark: &Mark) -> Option<Found<'t>> {
    let mut at = mark.end;
    let rest = &text[at..];
    if let Some(plural) = rest.strip_prefix('s') {
        at = text.len() - plural.len();
    }
    let window_end = floor(text, (at + MAX_ANNOUNCEMENT).min(text.len()));
    let window = &text[at..window_end];
    let line = window.find('\n').map_or(window.len(), |line| line);
    if denial::is_denied_before(text, at) {
        return None;
    }
    let sentence = at..sentence_end(text, at);
    let first =
        text[sentence.clone()].find(|c: char| c.is_ascii_digit()).map_or(sentence.end, |first| at + first);
    if mark.is_denied_abroad(&text[at..first]) {
        return Some(Found::at(Rule::Phrase, text, trimmed(text, sentence)));
    }
    if denial::begins(&text[at..]) {
        let corrected = corrected(text, at);
        // "is not" may begin an answer in words.
        if corrected.is_some() || !text[at..].trim_start().starts_with("is ") {
            let denial = || Found::at(Rule::Phrase, text, trimmed(text, at..sentence_end(text, at)));
            return Some(corrected.unwrap_or_else(denial));
        }
    }
    let direct = |from: usize| {
        let content = skip_markup(text, from);
        (content < text.len()).then_some(content)
    };
    // "is", "are", a colon or an equals sign in the same sentence, or the answer right behind.
    let head = &window[..line];
    let stop = head.find(['$', '.']).map_or(head.len(), |stop| stop);
    let head = &head[..head.find("\\(").map_or(stop, |math| stop.min(math))];
    let mut from = None;
    for verb in mark.verbs {
        if let Some(found) = head.find(verb) {
            let after = found + verb.len();
            let whole_word =
                !verb.starts_with(' ') || !head[after..].starts_with(|c: char| c.is_alphanumeric());
            if whole_word && from.is_none_or(|known| after < known) {
                from = Some(after);
            }
        }
    }
    let content = match from {
        Some(from) => direct(at + from)?,
        None => {
            let content = direct(at)?;
            let next = &text[content..];
            let math = next.starts_with(|c: char| c.is_ascii_digit() || "$-−+.(".contains(c))
                || next.starts_with("\\(")
                || next.starts_with("\\[")
                || next.starts_with("\\frac");
            let heading = text[at..content].contains('\n');
            if !(math || heading && !is_sentence(&next[..next.find('\n').map_or(next.len(), |line| line)])) {
                return None;
            }
            content
        }
    };
    // Another announcement right behind: "Answer: the answer is 5" is found by the later word already.
    let end = with_value(text, content, sentence_end(text, content));
    // What the answer is not ends it.
    let contrast = [", not ", " and not ", " (not ", " rather than ", " instead of "];
    let contrast = contrast.iter().filter_map(|words| text[content..end].find(words)).min();
    let end = contrast.map_or(end, |contrast| content + contrast);
    let content = trimmed(text, content..end);
    if content.is_empty() {
        return None;
    }
    segment(text, content).map(|found| Found { rule: Rule::Phrase, ..found })
}

/// Where the value ends that stands behind the letter of a choice, as in "C. 12": a dot there ends no sentence.
fn with_value(text: &str, from: usize, end: usize) -> usize {
    let letter = text[from..end].trim_matches(['*', '(', ')']);
    if letter.len() != 1 || !letter.bytes().all(|c| c.is_ascii_uppercase()) || !text[end..].starts_with(". ")
    {
        return end;
    }
    let near = floor(text, (end + MAX_ANNOUNCEMENT).min(text.len()));
    let line = text[end..near].lines().next().unwrap_or("");
    if prose_words(line) == 0 { end + line.len() } else { end }
}

/// What a sentence that denies an answer says instead: "but 43", "It is 43".
fn corrected(text: &str, at: usize) -> Option<Found<'_>> {
    let end = sentence_end(text, at);
    let next = sentence_end(text, ceil(text, (end + 1).min(text.len())));
    let instead = [" but ", " it is ", " it's ", " rather "]
        .iter()
        .filter_map(|word| text[at..end].find(word).map(|found| at + found + word.len()))
        .max()
        .map(|from| from..end)
        .or_else(|| {
            let after = text[end..next].trim_start_matches(['.', ' ', '\n']);
            let from = next - after.len();
            let word =
                ["It is ", "It's ", "Instead, it is "].iter().find(|word| after.starts_with(**word))?;
            Some(from + word.len()..next)
        });
    segment(text, trimmed(text, instead?)).map(|found| Found { rule: Rule::Phrase, ..found })
}

/// The letter of the option that is chosen, with all that are listed beside it.
fn choice(text: &str, at: usize) -> Option<Found<'_>> {
    let from = chosen_letter(text, at)?;
    let mut to = from + 1;
    let line_end = floor(text, (from + MAX_ANNOUNCEMENT).min(text.len()));
    let line = text[from..line_end].lines().next().map_or(from, |line| from + line.len());
    while let Some(next) = text[to..line].find(|c: char| c.is_ascii_uppercase()).map(|next| to + next) {
        let alone = !text[next + 1..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '\'');
        if !alone || !is_listed(&text[to..next]) {
            break;
        }
        to = next + 1;
    }
    Some(Found::at(Rule::Phrase, text, from..to))
}

/// Steps over spaces, quotes, stars, headings and tags of markup.
fn skip_markup(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b' ' | b'\n' | b'\r' | b'\t' | b'*' | b'"' | b'`' | b'_' | b'#' | b':' | b'>' => at += 1,
            b'\\' if bytes.get(at + 1) == Some(&b'"') => at += 2,
            b'<' => {
                let close = memchr::memchr(b'>', &bytes[at..bytes.len().min(at + 16)]);
                let Some(close) = close else { return at };
                at += close + 1;
            }
            _ => return at,
        }
    }
    at
}

/// Where the sentence that begins here ends: at a full stop or a line end outside of a formula.
fn sentence_end(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let limit = bytes.len().min(from + MAX_SENTENCE);
    let mut at = from;
    // Once a closing brace is missing, it is missing for the rest of the sentence.
    let mut closes = true;
    while at < limit {
        match bytes[at] {
            b'\n' => return at,
            b'$' => {
                let double = bytes.get(at + 1) == Some(&b'$');
                let open = at + 1 + usize::from(double);
                match memchr::memchr(b'$', &bytes[open..limit]) {
                    Some(close) if double || !is_money(text, open..open + close) => {
                        at = open + close + usize::from(double);
                    }
                    _ => at = open - 1,
                }
            }
            b'\\' if bytes.get(at + 1) == Some(&b'$') => at += 1,
            b'\\' if matches!(bytes.get(at + 1), Some(b'[' | b'(')) => {
                let closer: &[u8] = if bytes[at + 1] == b'[' { b"\\]" } else { b"\\)" };
                if let Some(close) = memmem::find(&bytes[at..limit], closer) {
                    at += close + 1;
                }
            }
            b'\\' if closes && bytes[at..limit].starts_with(BEGIN) => match environment_end(bytes, at, limit)
            {
                Some(end) => at = end - 1,
                None => closes = false,
            },
            b'{' if closes => match closing_brace(bytes, at, limit) {
                Some(close) => at = close,
                None => closes = false,
            },
            // A remark in brackets may have dots.
            b'(' => {
                let near = floor(text, (at + MAX_ANNOUNCEMENT).min(limit));
                let line = text[at..near].lines().next().unwrap_or("");
                at += line.find(')').unwrap_or(0);
            }
            b'.' if bytes.get(at + 1).is_none_or(u8::is_ascii_whitespace) => return at,
            b'<' if bytes[at..].starts_with(b"</") || bytes[at..].starts_with(b"<|") => return at,
            _ if text[at..].starts_with('。') => return at,
            _ => {}
        }
        at = ceil(text, (at + 1).min(bytes.len()));
    }
    at.min(bytes.len())
}

const BEGIN: &[u8] = b"\\begin{";

/// Where the environment that begins at `at` ends, with those inside of it.
fn environment_end(bytes: &[u8], at: usize, limit: usize) -> Option<usize> {
    let (mut depth, mut at) = (0, at);
    loop {
        at += memchr::memchr(b'\\', &bytes[at..limit])?;
        if bytes[at..limit].starts_with(BEGIN) {
            depth += 1;
        } else if bytes[at..limit].starts_with(b"\\end{") {
            depth -= 1;
            if depth == 0 {
                return Some(at + memchr::memchr(b'}', &bytes[at..limit])? + 1);
            }
        }
        at = (at + 2).min(limit);
    }
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
