//! NeMo-Gym's readers of multiple-choice answers, with their faults, for runs that must reproduce its rewards.

use super::choice::ChoiceMode;
use super::choice_options::{ChoiceOptions, normal, single};
use plaudit_text::{braced, is_space, strip};
use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;

/// The longest box or line that is read, in bytes. Nothing longer is an answer, and the work stays bounded.
const MAX_LENGTH: usize = 1 << 14;
/// How many bytes of lines are read in all, from the last one on.
const MAX_BYTES: usize = 1 << 16;

/// The letter that the mode finds.
pub(super) fn read(text: &str, mode: ChoiceMode, options: &ChoiceOptions) -> Option<char> {
    // Without options no letter is allowed.
    let allowed = |letter: char| !options.0.is_empty() && options.has(letter);
    match mode {
        ChoiceMode::StrictSingleLetterBoxed => boxed_letter(text).filter(|letter| allowed(*letter)),
        ChoiceMode::LenientBoxed | ChoiceMode::Auto => {
            let letter = boxed_letter(text).filter(|letter| allowed(*letter));
            letter.or_else(|| boxed_text(text, options))
        }
        ChoiceMode::LenientAnswerColon => answer_line(text, options),
        ChoiceMode::LenientAnswerColonMd => {
            let mut left = MAX_BYTES;
            let payloads = answer_payloads(text);
            let payloads = payloads.iter().rev().take_while(|payload| {
                left = left.saturating_sub(payload.len());
                left > 0
            });
            payloads.into_iter().find_map(|payload| choice_letter(payload, &allowed))
        }
    }
}

/// A letter that a custom pattern captured, or the option whose text it captured.
pub(super) fn captured(captured: &str, options: &ChoiceOptions) -> Option<char> {
    let captured = mapped(strip(captured)).to_uppercase();
    // A letter counts even where no option has it.
    if let Some(letter) = single(&captured).filter(|letter| letter.is_alphabetic()) {
        return Some(letter);
    }
    options.equal(&normal(&captured)).next()
}

/// What stands in the last `\boxed{...}`; nothing where that is never closed.
fn last_box(text: &str) -> Option<&str> {
    let at = memchr::memmem::rfind(text.as_bytes(), b"\\boxed{")?;
    let inner = braced(text, at)?.strip_prefix("\\boxed{")?.strip_suffix('}')?;
    Some(inner).filter(|inner| inner.len() <= MAX_LENGTH)
}

/// The text inside all `\text{...}` around it.
fn unwrapped(mut text: &str) -> &str {
    while let Some(inner) = text.strip_prefix("\\text{").and_then(|rest| rest.strip_suffix('}')) {
        text = strip(inner);
    }
    text
}

/// The capital letter of the last box: the only letter in it, or the one before a mark at its start.
fn boxed_letter(text: &str) -> Option<char> {
    let inner = unwrapped(strip(last_box(text)?));
    let mut letters = inner.chars().filter(char::is_ascii_alphabetic);
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return Some(letter).filter(char::is_ascii_uppercase);
    }
    let label = strip(inner);
    let letter = label.chars().next().filter(char::is_ascii_uppercase)?;
    label[1..].trim_start_matches(is_space).starts_with([':', ')', '.', '-']).then_some(letter)
}

/// The only option whose text the last box contains.
fn boxed_text(text: &str, options: &ChoiceOptions) -> Option<char> {
    let inner = strip(last_box(text)?);
    let candidates = [normal(inner), normal(unwrapped(inner))];
    let contained = |text: &str| candidates.iter().any(|candidate| candidate.contains(text));
    let mut found = options.0.iter().filter(|option| !option.text.is_empty() && contained(&option.text));
    found.next().filter(|_| found.next().is_none()).map(|option| option.letter)
}

/// The rest of the line after the first `Answer:` that has one: a letter, or the text of an option.
fn answer_line(text: &str, options: &ChoiceOptions) -> Option<char> {
    let line = labels(text, false).find_map(|(_, colon)| {
        let rest = text[colon + 1..].trim_start_matches(is_space);
        Some(rest.split('\n').next().unwrap_or("")).filter(|line| !line.is_empty())
    })?;
    if line.len() > MAX_LENGTH {
        return None;
    }
    let candidate = strip(unwrapped(line));
    let letter = single(candidate).filter(|letter| letter.is_alphabetic());
    let letter = letter.and_then(|letter| single(&letter.to_uppercase().to_string()));
    let allowed = |letter: &char| !options.0.is_empty() && options.has(*letter);
    letter.filter(allowed).or_else(|| options.equal(&normal(candidate)).next())
}

/// Every `answer`, in any case, that a colon follows: where the word ends and where the colon is. Between the two are spaces,
/// and with `marks` up to two stars or underscores.
fn labels(text: &str, marks: bool) -> impl Iterator<Item = (usize, usize)> + '_ {
    const WORD: &[u8] = b"answer";
    let bytes = text.as_bytes();
    memchr::memchr2_iter(b'a', b'A', bytes).filter_map(move |at| {
        let end = at + WORD.len();
        if !bytes.get(at..end)?.eq_ignore_ascii_case(WORD) {
            return None;
        }
        let marked = bytes[end..].iter().take(if marks { 2 } else { 0 });
        let after = end + marked.take_while(|byte| matches!(byte, b'*' | b'_')).count();
        let rest = text[after..].trim_start_matches(is_space);
        rest.starts_with(':').then(|| (end, text.len() - rest.len()))
    })
}

/// What follows each `Answer:`, to the end of its line, in their order. A line that was taken is not looked into again.
fn answer_payloads(text: &str) -> Vec<&str> {
    let mut payloads = Vec::new();
    let mut taken = 0;
    for (word, colon) in labels(text, true) {
        if word < taken {
            continue;
        }
        let rest = &text[colon + 1..];
        let skip = |char: char| matches!(char, '*' | '_') || is_space(char);
        let skipped = rest.char_indices().take(2).take_while(|(_, char)| skip(*char));
        let starts = skipped.map(|(at, char)| at + char.len_utf8()).collect::<Vec<_>>();
        // As many marks as are followed by something on their line.
        let start = starts
            .into_iter()
            .rev()
            .chain([0])
            .find(|at| !rest[*at..].is_empty() && !rest[*at..].starts_with('\n'));
        if let Some(start) = start {
            let line = rest[start..].split('\n').next().unwrap_or("");
            taken = colon + 1 + start + line.len();
            payloads.push(line);
        }
    }
    payloads
}

/// The letter of one payload: the only character, a letter at the start, or the last capital that stands alone. Different
/// letters in a list are none.
fn choice_letter(payload: &str, allowed: &impl Fn(char) -> bool) -> Option<char> {
    if payload.len() > MAX_LENGTH {
        return None;
    }
    let mapped = mapped(payload);
    let ends =
        |char: char| matches!(char, '*' | '_' | '`' | ' ' | '\t' | '\n' | '\r' | '.' | ',' | ';' | ':');
    let candidate = strip(&mapped).trim_matches(ends);
    if has_list(candidate, allowed) {
        return None;
    }
    let leading = || {
        let mut chars = candidate.chars();
        let letter = chars.next().filter(char::is_ascii_alphabetic)?;
        chars.next().is_none_or(|next| !next.is_ascii_alphanumeric()).then_some(letter)
    };
    let letter = single(candidate).or_else(leading).or_else(|| last_capital(candidate))?;
    single(&letter.to_uppercase().to_string()).filter(|letter| allowed(*letter))
}

/// A text with full-width letters, and those that number options in Arabic and Bengali, as Latin ones.
fn mapped(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(strip(text));
    }
    let mut out = String::with_capacity(text.len());
    for char in text.nfkc() {
        match char {
            'أ' | 'অ' => out.push_str(" A"),
            'ب' | 'ব' => out.push_str(" B"),
            'ج' | 'ড' => out.push_str(" C"),
            'د' | 'ঢ' => out.push_str(" D"),
            other => out.push(other),
        }
    }
    Cow::Owned(strip(&out).to_owned())
}

/// Whether two different letters stand beside each other, with a separator alone between them.
fn has_list(text: &str, allowed: &impl Fn(char) -> bool) -> bool {
    let bytes = text.as_bytes();
    let alone = |at: usize| {
        let before = at.checked_sub(1).map(|at| bytes[at]);
        bytes[at].is_ascii_alphabetic()
            && !before.is_some_and(|byte| byte.is_ascii_alphabetic())
            && !bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic)
    };
    let letter = |at: usize| char::from(bytes[at].to_ascii_uppercase());
    let mut places = (0..bytes.len()).filter(|at| alone(*at) && allowed(letter(*at)));
    let Some(mut left) = places.next() else { return false };
    for right in places {
        if letter(left) != letter(right) && is_separator(&text[left + 1..right]) {
            return true;
        }
        left = right;
    }
    false
}

fn is_separator(gap: &str) -> bool {
    let inner = strip(gap);
    let spaced = gap.starts_with(is_space) && gap.ends_with(is_space);
    match inner {
        "" => !gap.is_empty(),
        "/" | "|" | "&" | "," | ";" => true,
        word => spaced && (word.eq_ignore_ascii_case("or") || word.eq_ignore_ascii_case("and")),
    }
}

/// The last capital with no letter, digit or underscore beside it.
fn last_capital(text: &str) -> Option<char> {
    let word = |char: char| char.is_alphanumeric() || char == '_';
    let mut after = None;
    let mut chars = text.chars().rev().peekable();
    while let Some(char) = chars.next() {
        let alone = !after.is_some_and(word) && !chars.peek().copied().is_some_and(word);
        if char.is_ascii_uppercase() && alone {
            return Some(char);
        }
        after = Some(char);
    }
    None
}
