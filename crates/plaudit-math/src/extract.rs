//! Extraction: where the answer stands in a response. One pass from the end, linear in the length of the text.
//!
//! After the thinking is cut, the last commitment wins: a box, `<answer>`, `####`, a phrase such as "the answer is",
//! the whole of a short response, the last formula, the last number.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem;
use memchr::memrchr_iter;

use crate::bound::Bound;
use crate::lex::closing_brace;
use crate::options::{AnswerIn, Think};

/// Boxes that are looked at, from the end.
const MAX_BOXES: usize = 256;
/// Bytes between two boxes that belong together.
const MAX_GAP: usize = 64;
/// Places of the word "answer" that are tried, from the end.
const MAX_PHRASES: usize = 32;
/// Bytes between the word "answer" and what it announces.
const MAX_ANNOUNCEMENT: usize = 100;
/// The words that announce an answer, without the letter that may be a capital.
const WORDS: [&str; 6] = ["nswer", "NSWER", "答案", "ption", "hoice", "选"];
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
#[derive(Clone, Debug)]
pub(crate) struct Found<'t> {
    pub(crate) rule: Rule,
    pub(crate) text: Cow<'t, str>,
    pub(crate) span: Range<usize>,
}

impl<'t> Found<'t> {
    fn at(rule: Rule, text: &'t str, span: Range<usize>) -> Self {
        Self { rule, text: Cow::Borrowed(&text[span.clone()]), span }
    }
}

/// Where the answer part of a response begins: after the thinking.
fn after_thinking(text: &str) -> Result<usize, Bound> {
    let bytes = text.as_bytes();
    for at in memrchr_iter(b'<', bytes) {
        if bytes[at..].starts_with(b"</think>") {
            return Ok(at + "</think>".len());
        }
        if bytes[at..].starts_with(b"<think>") {
            return Err(Bound::UnclosedThink);
        }
    }
    Ok(0)
}

/// Finds the answer of a response. `None`: there is none.
pub(crate) fn extract(text: &str, answer: AnswerIn, think: Think) -> Result<Option<Found<'_>>, Bound> {
    let start = if think == Think::Cut { after_thinking(text)? } else { 0 };
    match answer {
        AnswerIn::Box => last_box(text, start),
        AnswerIn::Phrase => Ok(phrase(text, start)),
        AnswerIn::Hash => Ok(hash(text, start)),
        AnswerIn::LastNumber => Ok(last_number(text, start, text.len())),
        AnswerIn::Auto => {
            if let Some(found) = last_box(text, start)? {
                // A tag or a final answer after the box is the later commitment.
                let later = found.span.end;
                return Ok(Some(
                    answer_tag(text, later).or_else(|| final_answer(text, later)).unwrap_or(found),
                ));
            }
            let found = answer_tag(text, start).or_else(|| hash(text, start)).or_else(|| phrase(text, start));
            Ok(found.or_else(|| whole(text, start)).or_else(|| last(text, start)))
        }
    }
}

/// The last box, or else the last formula with delimiters.
pub(crate) fn box_or_math(text: &str) -> Result<Option<Found<'_>>, Bound> {
    Ok(match last_box(text, 0)? {
        Some(found) => Some(found),
        None => last_math(text, 0),
    })
}

/// The answer of a reference, which is a bare answer, a formula, a sentence or a worked solution.
pub(crate) fn reference(text: &str) -> Result<(Found<'_>, bool), Bound> {
    if let Some(found) = last_box(text, 0)? {
        return Ok((found, true));
    }
    if let Some(found) = hash(text, 0) {
        return Ok((found, true));
    }
    Ok((Found { rule: Rule::Whole, text: Cow::Borrowed(text.trim()), span: 0..text.len() }, false))
}

/// The answer of a reference that cannot be read as a whole.
pub(crate) fn sentence(text: &str) -> Option<Found<'_>> {
    phrase(text, 0).or_else(|| last_math(text, 0))
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

fn last_box(text: &str, start: usize) -> Result<Option<Found<'_>>, Bound> {
    let Some(mut last) = box_before(text, start, text.len()) else { return Ok(None) };
    let Some(mut content) = last.content.clone() else { return Err(Bound::Unbalanced) };
    // An empty box may quote the task. The last one that is filled counts.
    let mut boxes = 1;
    while text[content.clone()].trim().is_empty() {
        let Some(previous) = box_before(text, start, last.start) else { return Err(Bound::Empty) };
        boxes += 1;
        if boxes > MAX_BOXES {
            return Err(Bound::Empty);
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
        && is_joint(&text[previous.end..first])
        && !text[content.clone()].trim().is_empty()
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
    let parts: Vec<&str> = joined.iter().rev().map(|part| &text[part.clone()]).collect();
    let mut answer = parts.join(", ");
    if percent {
        answer.push_str("\\%");
    }
    Ok(Some(Found { rule: Rule::Box, text: Cow::Owned(answer), span: first..end }))
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
    let at = start + memmem::rfind(&text.as_bytes()[start..], b"####")? + 4;
    let end = memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |line| at + line);
    let content = trimmed(text, at..end);
    // A heading is no answer.
    let answers = |c: char| c.is_ascii_digit() || "-+.$\\(−[{".contains(c);
    let line = &text[content.clone()];
    if !line.starts_with(answers)
        && (prose_words(line) > 0 || !line.contains(['=', '^', '<', '>', '\\', '+']))
    {
        return None;
    }
    Some(Found::at(Rule::Hash, text, content))
}

// Phrases.

fn phrase(text: &str, start: usize) -> Option<Found<'_>> {
    let bytes = text.as_bytes();
    // The last place of each word that was not tried yet: a word that is missing is looked for once.
    let mut places: Vec<(usize, &[u8])> = WORDS
        .iter()
        .filter_map(|word| {
            memmem::rfind(&bytes[start..], word.as_bytes()).map(|at| (start + at, word.as_bytes()))
        })
        .collect();
    for _ in 0..MAX_PHRASES {
        let (index, (at, word)) = places.iter().copied().enumerate().max_by_key(|(_, (at, _))| *at)?;
        if let Some(found) = announced(text, at + word.len()) {
            return Some(found);
        }
        match memmem::rfind(&bytes[start..at], word) {
            Some(earlier) => places[index].0 = start + earlier,
            None => {
                places.swap_remove(index);
            }
        }
    }
    None
}

/// "The final answer is" with a number or a formula, as a commitment that is later than a box.
fn final_answer(text: &str, start: usize) -> Option<Found<'_>> {
    let bytes = &text.as_bytes()[start..];
    let at = [&b"inal answer is"[..], b"inal answer:", b"inal Answer:", b"inal answer: "]
        .iter()
        .filter_map(|words| memmem::rfind(bytes, words))
        .max()?;
    let found = announced(text, start + at + "inal answer".len())?;
    found.text.bytes().any(|c| c.is_ascii_digit() || c == b'\\').then_some(found)
}

/// The answer that is announced by the word that ends at `at`.
fn announced(text: &str, at: usize) -> Option<Found<'_>> {
    let mut at = at;
    let rest = &text[at..];
    if let Some(plural) = rest.strip_prefix('s') {
        at = text.len() - plural.len();
    }
    let window_end = floor(text, (at + MAX_ANNOUNCEMENT).min(text.len()));
    let window = &text[at..window_end];
    let line = window.find('\n').map_or(window.len(), |line| line);
    if ["ption", "hoice", "选"].iter().any(|word| text[..at].ends_with(word)) {
        return choice(text, at);
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
    for verb in [":", "：", " is", " are", " be ", "=", "是", "为"] {
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
    let end = sentence_end(text, content);
    let content = trimmed(text, content..end);
    if content.is_empty() {
        return None;
    }
    segment(text, content).map(|found| Found { rule: Rule::Phrase, ..found })
}

/// The capital letter after "option" or "choice".
fn choice(text: &str, at: usize) -> Option<Found<'_>> {
    let rest = text[at..].trim_start_matches([' ', ':', '：', '项', '*', '(', '$']);
    let rest = rest.strip_prefix("is ").unwrap_or(rest).trim_start_matches([' ', '*', '(', '$']);
    let first = rest.chars().next().filter(char::is_ascii_uppercase)?;
    if rest[first.len_utf8()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '\'') {
        return None;
    }
    let from = text.len() - rest.len();
    Some(Found::at(Rule::Phrase, text, from..from + 1))
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
    while at < limit {
        match bytes[at] {
            b'\n' => return at,
            b'$' => {
                let double = bytes.get(at + 1) == Some(&b'$');
                let open = at + 1 + usize::from(double);
                match memchr::memchr(b'$', &bytes[open..limit]) {
                    Some(close) => at = open + close + usize::from(double),
                    None => at = open - 1,
                }
            }
            b'\\' if matches!(bytes.get(at + 1), Some(b'[' | b'(')) => {
                let closer: &[u8] = if bytes[at + 1] == b'[' { b"\\]" } else { b"\\)" };
                if let Some(close) = memmem::find(&bytes[at..limit], closer) {
                    at += close + 1;
                }
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

/// The answer inside a sentence: a formula at its beginning, all of it if it is mathematics, or its last formula or
/// number.
fn segment(text: &str, range: Range<usize>) -> Option<Found<'_>> {
    let mut range = range;
    // Markup around the answer.
    let end_markup: &[char] = &['*', '"', '`', ' ', '}', ',', ';'];
    let inner = &text[range.clone()];
    let kept = inner.trim_end_matches(end_markup);
    if !kept.contains('{') || kept.matches('{').count() == kept.matches('}').count() {
        range.end = range.start + kept.len();
    }
    let inner = &text[range.clone()];
    if inner.is_empty() {
        return None;
    }
    if inner.starts_with(['$', '\\'])
        && let Some(found) = leading_math(text, range.clone())
    {
        return Some(found);
    }
    if !is_sentence(inner) {
        return Some(Found::at(Rule::Phrase, text, range));
    }
    let math = last_math_in(text, range.clone());
    let number = last_number(text, range.start, range.end).map(|number| around(text, range.start, number));
    match (math, number) {
        (Some(math), Some(number)) if number.span.start >= math.span.end => Some(number),
        (Some(math), _) => Some(math),
        (None, Some(number)) => Some(number),
        (None, None) => Some(Found::at(Rule::Phrase, text, range)),
    }
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

// Formulas and numbers.

/// The content of the formula at the beginning of a range, with those that a comma or a word joins to it.
fn leading_math(text: &str, range: Range<usize>) -> Option<Found<'_>> {
    let spans = formulas(text, range.clone(), true);
    let first = spans.first()?;
    if first.outer.start != range.start {
        return None;
    }
    let mut last = 0;
    while last + 1 < spans.len() && is_joint(&text[spans[last].outer.end..spans[last + 1].outer.start]) {
        last += 1;
    }
    Some(joined(text, &spans[..=last]))
}

fn joined<'t>(text: &'t str, spans: &[Formula]) -> Found<'t> {
    match spans {
        [] => Found { rule: Rule::LastMath, text: Cow::Borrowed(""), span: 0..0 },
        [one] => {
            let span = one.outer.clone();
            Found { rule: Rule::LastMath, text: Cow::Borrowed(&text[one.inner.clone()]), span }
        }
        [first, .., last] => {
            let parts: Vec<&str> = spans.iter().map(|span| text[span.inner.clone()].trim()).collect();
            Found {
                rule: Rule::LastMath,
                text: Cow::Owned(parts.join(", ")),
                span: first.outer.start..last.outer.end,
            }
        }
    }
}

/// A formula with and without its delimiters.
#[derive(Clone, Debug)]
struct Formula {
    outer: Range<usize>,
    inner: Range<usize>,
}

/// The formulas of a range in order: the first ones, or the last ones.
fn formulas(text: &str, range: Range<usize>, from_start: bool) -> Vec<Formula> {
    const KEPT: usize = 16;
    let bytes = text.as_bytes();
    let mut spans: Vec<Formula> = Vec::new();
    let mut at = range.start;
    // Once a closing delimiter is missing, it is missing for the rest of the text.
    let (mut no_dollar, mut no_round, mut no_square, mut no_double) = (false, false, false, false);
    while let Some(found) = memchr::memchr2(b'$', b'\\', &bytes[at..range.end]) {
        let open = at + found;
        let next = bytes.get(open + 1).copied();
        let (skip, closer, missing): (usize, &[u8], &mut bool) = match (bytes[open], next) {
            (b'$', Some(b'$')) => (2, b"$$", &mut no_double),
            (b'$', _) => (1, b"$", &mut no_dollar),
            (b'\\', Some(b'[')) => (2, b"\\]", &mut no_square),
            (b'\\', Some(b'(')) => (2, b"\\)", &mut no_round),
            (b'\\', Some(_)) => {
                at = ceil(text, (open + 2).min(range.end));
                continue;
            }
            _ => break,
        };
        let start = open + skip;
        if *missing || start > range.end {
            at = start.min(range.end);
            continue;
        }
        let close = if closer == b"$" {
            closing_dollar(bytes, start, range.end)
        } else {
            find_pair(&bytes[..range.end], start, closer)
        };
        let Some(close) = close else {
            *missing = true;
            at = start;
            continue;
        };
        let inner = start..close;
        // "$5 and $6": the second sign opens the next amount.
        let money = closer == b"$"
            && text[inner.clone()].starts_with(|c: char| c.is_ascii_digit())
            && text[inner.clone()].ends_with(' ')
            && bytes.get(close + 1).is_some_and(u8::is_ascii_digit);
        if money {
            at = close;
            continue;
        }
        at = close + closer.len();
        if text[inner.clone()].trim().is_empty() {
            continue;
        }
        spans.push(Formula { outer: open..at, inner });
        if from_start && spans.len() >= KEPT {
            break;
        }
        if spans.len() > KEPT * 4 {
            spans.drain(..KEPT * 3);
        }
    }
    spans
}

/// Where two bytes stand next to each other.
fn find_pair(bytes: &[u8], start: usize, pair: &[u8]) -> Option<usize> {
    let mut at = start;
    loop {
        let found = at + memchr::memchr(pair[0], &bytes[at..])?;
        if bytes.get(found + 1) == Some(&pair[1]) {
            return Some(found);
        }
        at = found + 1;
    }
}

fn closing_dollar(bytes: &[u8], start: usize, end: usize) -> Option<usize> {
    let mut at = start;
    while let Some(found) = memchr::memchr(b'$', &bytes[at..end]) {
        let close = at + found;
        if close == start || bytes[close - 1] != b'\\' {
            return Some(close);
        }
        at = close + 1;
    }
    None
}

fn last_math_in(text: &str, range: Range<usize>) -> Option<Found<'_>> {
    let spans = formulas(text, range, false);
    let mut first = spans.len().checked_sub(1)?;
    while first > 0 && is_joint(&text[spans[first - 1].outer.end..spans[first].outer.start]) {
        first -= 1;
    }
    Some(joined(text, &spans[first..]))
}

fn last_math(text: &str, start: usize) -> Option<Found<'_>> {
    last_math_in(text, start..text.len())
}

/// A short response that is nothing but an answer.
fn whole(text: &str, start: usize) -> Option<Found<'_>> {
    let range = trimmed(text, start..text.len());
    let inner = &text[range.clone()];
    if inner.is_empty() || inner.len() > MAX_WHOLE || inner.contains('\n') && !inner.starts_with(['$', '\\'])
    {
        return None;
    }
    let marked = inner.trim_matches('*');
    let words = prose_words(marked);
    let mixed = marked.chars().any(|c| !c.is_ascii() && c.is_alphabetic())
        && marked.chars().any(|c| c.is_ascii_alphanumeric());
    if mixed {
        return None;
    }
    // A word alone may be the answer, and one after a number its unit.
    let single = marked.chars().all(char::is_alphabetic) || marked.starts_with(|c: char| !c.is_alphabetic());
    (words == 0 && !is_prose(marked) || words == 1 && single).then_some(Found {
        rule: Rule::Whole,
        text: Cow::Borrowed(marked),
        span: range,
    })
}

/// Words of three letters and more that are neither commands nor arguments of text commands.
fn prose_words(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut words = 0;
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'\\' {
            let name = at + 1;
            at = name;
            while at < bytes.len() && bytes[at].is_ascii_alphabetic() {
                at += 1;
            }
            let skips = ["text", "math", "begin", "end", "operatorname", "mbox"];
            if skips.iter().any(|skip| text[name..at].starts_with(skip)) && bytes.get(at) == Some(&b'{') {
                at = closing_brace(bytes, at, bytes.len()).map_or(at + 1, |close| close + 1);
            } else if at == name {
                at = ceil(text, (at + 1).min(bytes.len()));
            }
            continue;
        }
        let rest = &text[at..];
        let len: usize = rest.chars().take_while(|c| c.is_alphabetic()).map(char::len_utf8).sum();
        let known = matches!(&rest[..len], "and" | "sqrt" | "percent" | "sin" | "cos" | "tan" | "log");
        words += usize::from(rest[..len].chars().count() > 2 && !known);
        at += if len == 0 { rest.chars().next().map_or(1, char::len_utf8) } else { len };
    }
    words
}

/// Short words that make a sentence.
fn is_prose(text: &str) -> bool {
    text.contains(". ")
        || text.split_whitespace().any(|word| matches!(word, "It" | "it" | "is" | "is:" | "So" | "so"))
}

/// The last formula or number, whichever comes later.
fn last(text: &str, start: usize) -> Option<Found<'_>> {
    // The end of a long response is enough, from the beginning of a line so that dollars pair up.
    let start = if text.len() - start > MAX_TAIL {
        let cut = ceil(text, text.len() - MAX_TAIL);
        memchr::memchr(b'\n', &text.as_bytes()[cut..text.len() - MAX_SENTENCE])
            .map_or(cut, |line| cut + line + 1)
    } else {
        start
    };
    let math = last_math(text, start);
    let from = math.as_ref().map_or(start, |math| math.span.end);
    last_number(text, from, text.len())
        .map(|number| around(text, from, number))
        .or_else(|| bare_command(text, from))
        .or(math)
}

/// The mathematics around a number, when it is written without delimiters: `x = 2\sqrt{3}` and not its last 3.
fn around<'t>(text: &'t str, start: usize, number: Found<'t>) -> Found<'t> {
    let from = expression_start(text, start, number.span.start);
    let to = expression_end(text, number.span.end);
    let inner = &text[from..to];
    let kept = inner.trim_matches([' ', ',', '.', ';', ':', '*', '"']);
    let from = from + inner.find(kept).map_or(0, |at| at);
    let span = from..from + kept.len();
    if span.start >= number.span.start && span.end <= number.span.end {
        return number;
    }
    let math =
        kept.contains(['\\', '^', '=', '+', '(', '[', '/', '<', '>', '{', ':']) || kept.contains(" and ");
    if !math && !kept.contains(['-', '*', '!', '|', '_']) {
        return number;
    }
    Found { rule: Rule::LastMath, text: Cow::Borrowed(kept), span }
}

/// A last line with a command and no number, as `x = \pi`.
fn bare_command(text: &str, start: usize) -> Option<Found<'_>> {
    let bytes = text.as_bytes();
    let at = memrchr_iter(b'\\', &bytes[start..]).next()? + start;
    if !bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic) || gives_up(text, at) {
        return None;
    }
    Some(around(text, start, Found::at(Rule::LastMath, text, at..at + 1)))
}

/// Whether a run of letters can be a part of an expression that stands in prose.
fn is_math_word(word: &str) -> bool {
    match word.chars().count() {
        0 => true,
        1 => !matches!(word, "a" | "I"),
        _ => matches!(word, "sin" | "cos" | "tan" | "log" | "ln" | "sqrt" | "pi" | "and" | "or" | "exp"),
    }
}

/// Where the expression that reaches to `at` begins.
fn expression_start(text: &str, start: usize, at: usize) -> usize {
    let limit = floor(text, at.saturating_sub(MAX_WHOLE).max(start));
    let mut from = at;
    let mut braces = 0;
    while let Some(c) = text[limit..from].chars().next_back() {
        braces += i32::from(c == '}') - i32::from(c == '{');
        if c.is_alphabetic() {
            let word = text[limit..from].trim_end_matches(char::is_alphabetic);
            let begin = limit + word.len();
            let command = word.ends_with('\\');
            if !command && braces <= 0 && !is_math_word(&text[begin..from]) {
                break;
            }
            from = begin;
            continue;
        }
        let sentence = matches!(c, '.' | ':' | ';' | '?') && text[from..at].starts_with([' ', '\n']);
        if sentence || matches!(c, '\n' | '$' | '*' | '"') || !c.is_ascii() && c != '−' {
            break;
        }
        from -= c.len_utf8();
    }
    from
}

/// Where the expression that begins before `at` ends.
fn expression_end(text: &str, at: usize) -> usize {
    let limit = floor(text, (at + MAX_WHOLE).min(text.len()));
    let mut to = at;
    let mut braces = 0;
    while let Some(c) = text[to..limit].chars().next() {
        braces += i32::from(c == '{') - i32::from(c == '}');
        if c.is_alphabetic() {
            let rest = text[to..limit].trim_start_matches(char::is_alphabetic);
            let end = limit - rest.len();
            let command = text[..to].ends_with('\\');
            if !command && braces <= 0 && !is_math_word(&text[to..end]) {
                break;
            }
            to = end;
            continue;
        }
        let sentence = matches!(c, '.' | ';' | '?' | ',') && text[to + 1..limit].starts_with([' ', '\n']);
        if sentence || matches!(c, '\n' | '$' | '*' | '"') || !c.is_ascii() && c != '−' {
            break;
        }
        to += c.len_utf8();
    }
    to
}

/// The last number of a range that is no part of a word, in a sentence that does not give up.
fn last_number(text: &str, start: usize, end: usize) -> Option<Found<'_>> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes[at].is_ascii_digit();
    let mut stop = end;
    loop {
        let last = start + (bytes[start..stop].iter().rposition(u8::is_ascii_digit)?);
        let mut first = last;
        while first > start
            && (digit(first - 1)
                || matches!(bytes[first - 1], b'.' | b',' | b'/') && first > start + 1 && digit(first - 2))
        {
            first -= 1;
        }
        if first > start && bytes[first - 1] == b'.' {
            first -= 1;
        }
        // Groups of thousands with spaces between them.
        while last + 1 - first >= 3
            && first >= start + 2
            && bytes[first - 1] == b' '
            && bytes[first..].iter().take(3).all(u8::is_ascii_digit)
            && bytes.get(first + 3).is_none_or(|c| !c.is_ascii_digit())
        {
            let group = bytes[start..first - 1].iter().rev().take_while(|c| c.is_ascii_digit()).count();
            if group == 0 || group > 3 {
                break;
            }
            first -= group + 1;
        }
        let mut after = last + 1;
        let before = text[..first].chars().next_back();
        let next = text[after..end].chars().next();
        let in_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if in_word(before) && first > start || in_word(next) || is_label(&text[start..first]) {
            stop = first;
            continue;
        }
        if text[start..first].ends_with('-') {
            first -= 1;
        } else if text[start..first].ends_with('−') {
            first -= '−'.len_utf8();
        }
        let rest = &text[after..end];
        for percent in ["\\%", "%", " percent", " \\%", " %"] {
            if rest.starts_with(percent) {
                after += percent.len();
                break;
            }
        }
        if gives_up(text, first) {
            return None;
        }
        return Some(Found::at(Rule::LastNumber, text, first..after));
    }
}

/// Whether the number that follows only counts a step or an equation.
fn is_label(before: &str) -> bool {
    let word = before.trim_end().rsplit(|c: char| !c.is_alphabetic()).next().map_or("", |word| word);
    [
        "step", "case", "equation", "figure", "problem", "question", "part", "line", "lemma", "theorem",
        "section",
    ]
    .iter()
    .any(|label| word.eq_ignore_ascii_case(label))
}

/// Whether the sentence around a number says that there is no answer.
fn gives_up(text: &str, at: usize) -> bool {
    let from = floor(text, at.saturating_sub(200));
    let to = floor(text, (at + 200).min(text.len()));
    let window = text[from..to].to_ascii_lowercase();
    [
        "cannot",
        "can't",
        "unable to",
        "not sure",
        "don't know",
        "do not know",
        "no idea",
        "give up",
        "could not",
    ]
    .iter()
    .any(|words| window.contains(words))
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
