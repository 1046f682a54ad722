//! Phrases that announce an answer, such as "the answer is": the last one that is not denied, and where its sentence ends.

use memchr::memmem;

use super::formula::{is_money, prose_words};
use super::{
    Found, MAX_ANNOUNCEMENT, MAX_SENTENCE, Rule, ceil, denial, floor, is_sentence, segment, trimmed,
};
use crate::mark::{Announces, Mark, Marks, VERBS, chosen_letter, is_joint as is_listed};
use plaudit_text::closing_brace;

/// Places of the word "answer" that are tried, from the end.
const MAX_PHRASES: usize = 32;

pub(super) fn phrase(text: &str, start: usize) -> Option<Found<'_>> {
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
pub(super) fn final_answer(text: &str, start: usize) -> Option<Found<'_>> {
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
