//! Formulas and numbers in prose: the last ones of a text, with those that are joined to them.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memrchr_iter;

use super::boxes::{is_joint, listed};
use super::{Found, MAX_SENTENCE, MAX_TAIL, MAX_WHOLE, Rule, ceil, floor, trimmed};
use crate::unit::is_unit_word;
use crate::word::{Word, meaning};
use plaudit_text::closing_brace;

/// The content of the formula at the beginning of a range, with those that a comma or a word joins to it.
pub(super) fn leading_math(text: &str, range: Range<usize>) -> Option<Found<'_>> {
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

pub(super) fn joined<'t>(text: &'t str, spans: &[Formula]) -> Found<'t> {
    match spans {
        [] => Found { rule: Rule::LastMath, text: Cow::Borrowed(""), span: 0..0 },
        [one] => {
            let span = one.outer.clone();
            Found { rule: Rule::LastMath, text: Cow::Borrowed(&text[one.inner.clone()]), span }
        }
        [first, .., last] => {
            let parts: Vec<Range<usize>> = spans.iter().map(|span| span.inner.clone()).collect();
            Found {
                rule: Rule::LastMath,
                text: Cow::Owned(listed(text, &parts)),
                span: first.outer.start..last.outer.end,
            }
        }
    }
}

/// A formula with and without its delimiters.
#[derive(Clone, Debug)]
pub(super) struct Formula {
    pub(super) outer: Range<usize>,
    pub(super) inner: Range<usize>,
}

/// The formulas of a range in order: the first ones, or the last ones.
pub(super) fn formulas(text: &str, range: Range<usize>, from_start: bool) -> Vec<Formula> {
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
        if closer == b"$" && is_money(text, inner.clone()) {
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

/// Whether two dollar signs are those of two amounts, as in "$5 and $6" and "$5. It costs $3", and no formula.
pub(super) fn is_money(text: &str, inner: Range<usize>) -> bool {
    let content = &text[inner.clone()];
    if !content.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let opens = |c: char| c.is_whitespace() || "([+-*/=,~".contains(c);
    let amount = text[inner.end + 1..].starts_with(|c: char| c.is_ascii_digit());
    let prose = || content.contains(". ") || content.contains(".\n") || prose_words(content) > 0;
    (content.ends_with(opens) || content.contains('。')) && amount
        || content.ends_with(char::is_whitespace) && prose()
}

/// Where two bytes stand next to each other.
pub(super) fn find_pair(bytes: &[u8], start: usize, pair: &[u8]) -> Option<usize> {
    let mut at = start;
    loop {
        let found = at + memchr::memchr(pair[0], &bytes[at..])?;
        if bytes.get(found + 1) == Some(&pair[1]) {
            return Some(found);
        }
        at = found + 1;
    }
}

pub(super) fn closing_dollar(bytes: &[u8], start: usize, end: usize) -> Option<usize> {
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

pub(super) fn last_math_in(text: &str, range: Range<usize>) -> Option<Found<'_>> {
    let spans = formulas(text, range, false);
    let mut first = spans.len().checked_sub(1)?;
    while first > 0 && is_joint(&text[spans[first - 1].outer.end..spans[first].outer.start]) {
        first -= 1;
    }
    Some(joined(text, &spans[first..]))
}

pub(super) fn last_math(text: &str, start: usize) -> Option<Found<'_>> {
    last_math_in(text, start..text.len())
}

/// A short response that is nothing but an answer.
pub(super) fn whole(text: &str, start: usize) -> Option<Found<'_>> {
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
    (!is_prose(marked) && (words == 0 || words == 1 && single)).then_some(Found {
        rule: Rule::Whole,
        text: Cow::Borrowed(marked),
        span: range,
    })
}

/// Words of three letters and more that are neither commands nor arguments of text commands.
pub(super) fn prose_words(text: &str) -> usize {
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
pub(super) fn is_prose(text: &str) -> bool {
    text.contains(". ")
        || text.split_whitespace().any(|word| matches!(word, "It" | "it" | "is" | "is:" | "So" | "so"))
}

/// The last formula or number, whichever comes later.
pub(super) fn last(text: &str, start: usize) -> Option<Found<'_>> {
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
pub(super) fn around<'t>(text: &'t str, start: usize, number: Found<'t>) -> Found<'t> {
    let from = expression_start(text, start, number.span.start);
    let to = expression_end(text, number.span.end);
    let inner = &text[from..to];
    let kept = inner.trim_matches([' ', ',', '.', ';', ':', '*', '"']);
    let kept = before_remark(kept);
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

/// What stands before a bracket that is never closed, if that is a number: `12 (3` of "12 (3 cars)".
fn before_remark(text: &str) -> &str {
    let mut open = Vec::new();
    for (at, c) in text.bytes().enumerate() {
        match c {
            b'(' => open.push(at),
            b')' => {
                open.pop();
            }
            _ => {}
        }
    }
    match open.first().map(|at| text[..*at].trim_end()) {
        Some(before) if before.contains(|c: char| c.is_ascii_digit()) && !before.ends_with('\\') => before,
        _ => text,
    }
}

/// A last line with a command and no number, as `x = \pi`.
pub(super) fn bare_command(text: &str, start: usize) -> Option<Found<'_>> {
    let bytes = text.as_bytes();
    let at = memrchr_iter(b'\\', &bytes[start..]).next()? + start;
    if !bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic) || gives_up(text, at) {
        return None;
    }
    Some(around(text, start, Found::at(Rule::LastMath, text, at..at + 1)))
}

/// Whether a run of letters can be a part of an expression that stands in prose.
pub(super) fn is_math_word(word: &str) -> bool {
    match word.chars().count() {
        0 => true,
        1 => !matches!(word, "a" | "I"),
        _ => matches!(word, "sin" | "cos" | "tan" | "log" | "ln" | "sqrt" | "pi" | "and" | "or" | "exp"),
    }
}

/// Where the expression that reaches to `at` begins.
pub(super) fn expression_start(text: &str, start: usize, at: usize) -> usize {
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
pub(super) fn expression_end(text: &str, at: usize) -> usize {
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
pub(super) fn last_number(text: &str, start: usize, end: usize) -> Option<Found<'_>> {
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
        let unit = unit_behind(&text[after..end]);
        let next = if unit > 0 { None } else { next };
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
        after = after_scale(&text[..end], after);
        first = before_sign(text, start, first);
        return Some(Found::at(Rule::LastNumber, text, first..after));
    }
}

/// The bytes of a unit that is glued to its number: `5kg`, `50m²`. A letter alone may be a factor.
fn unit_behind(text: &str) -> usize {
    let len = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let power = ["²", "³", "^2", "^3"].into_iter().find(|power| text[len..].starts_with(power));
    let ends = |at: usize| !text[at..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    match (&text[..len], power) {
        ("m", Some(power)) if ends(len + power.len()) => len + power.len(),
        (word, _) if len > 1 && is_unit_word(word) && ends(len + power.map_or(0, str::len)) => {
            len + power.map_or(0, str::len)
        }
        _ => 0,
    }
}

/// Where the words end that say how large the number before them is: "million", "or more", "and a half".
fn after_scale(text: &str, at: usize) -> usize {
    let mut end = at;
    let word_at = |from: usize| {
        let rest = text[from..].trim_start_matches(' ');
        let start = text.len() - rest.len();
        let len = rest.find(|c: char| !c.is_alphabetic()).map_or(rest.len(), |len| len);
        (start > from && len > 1).then(|| (&rest[..len], start + len))
    };
    while let Some((word, after)) = word_at(end) {
        match meaning(word) {
            Word::Scale(_) | Word::Power(_) | Word::Percent | Word::Part { plural: true, .. } => end = after,
            _ => break,
        }
    }
    if end > at {
        return end;
    }
    let bound = |word: &str| {
        matches!(word, "more" | "less" | "fewer" | "higher" | "lower" | "greater" | "above" | "below")
    };
    if let Some(("or", joint)) = word_at(at)
        && let Some((word, after)) = word_at(joint)
        && bound(word)
    {
        return after;
    }
    let half = [" and a half", " and one half", " and a third", " and a quarter"];
    half.iter().find(|words| text[at..].starts_with(**words)).map_or(at, |words| at + words.len())
}

/// Where the word for a sign before a number begins: "negative 42". After another number it is an operation.
fn before_sign(text: &str, start: usize, at: usize) -> usize {
    let before = text[start..at].trim_end_matches(' ');
    for sign in ["negative", "minus"] {
        if let Some(rest) = before.strip_suffix(sign)
            && before.len() < at - start
            && !rest.ends_with(char::is_alphanumeric)
            && !rest.trim_end().ends_with(|c: char| c.is_ascii_digit() || c == '$')
        {
            return start + rest.len();
        }
    }
    at
}

/// Whether the number that follows only counts a step or an equation.
pub(super) fn is_label(before: &str) -> bool {
    let word = before.trim_end().rsplit(|c: char| !c.is_alphabetic()).next().map_or("", |word| word);
    [
        "step", "case", "equation", "figure", "problem", "question", "part", "line", "lemma", "theorem",
        "section",
    ]
    .iter()
    .any(|label| word.eq_ignore_ascii_case(label))
}

/// Whether the sentence around a number says that there is no answer.
pub(super) fn gives_up(text: &str, at: usize) -> bool {
    let from = floor(text, at.saturating_sub(200));
    let to = floor(text, (at + 200).min(text.len()));
    let window = text[from..to].to_ascii_lowercase();
    let always = ["unable to", "not sure", "don't know", "do not know", "no idea", "give up"];
    if always.iter().any(|words| window.contains(words)) {
        return true;
    }
    // What somebody in the problem cannot do says nothing.
    const FINDING: [&str; 14] = [
        "answer",
        "be",
        "calculate",
        "compute",
        "conclude",
        "continue",
        "decide",
        "determine",
        "figure",
        "find",
        "finish",
        "provide",
        "say",
        "solve",
    ];
    ["cannot", "can't", "can not", "could not", "couldn't"].iter().any(|denial| {
        window.match_indices(denial).any(|(at, _)| {
            let behind = window[at + denial.len()..]
                .split(|c: char| !c.is_alphabetic())
                .filter(|word| !word.is_empty());
            let mut verbs = behind.filter(|word| !word.ends_with("ly")).take(2);
            match verbs.next() {
                Some("be") => {
                    verbs.next().is_some_and(|word| FINDING.iter().any(|verb| word.starts_with(verb)))
                }
                Some(word) => word != "be" && FINDING.contains(&word),
                None => false,
            }
        })
    })
}
