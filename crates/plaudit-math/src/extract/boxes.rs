//! Boxes: the last one that is filled, with those that are joined to it into one list.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem;

use super::{Found, Rule};
use crate::limits::NoValue;
use crate::mark::is_blank;
use plaudit_text::closing_brace;

/// Boxes that are looked at, from the end.
const MAX_BOXES: usize = 256;
/// Bytes between two boxes that belong together.
const MAX_GAP: usize = 64;

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

pub(super) fn last_box(text: &str, start: usize) -> Result<Option<Found<'_>>, NoValue> {
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
pub(super) fn listed(text: &str, parts: &[Range<usize>]) -> String {
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
pub(super) fn is_joint(gap: &str) -> bool {
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
