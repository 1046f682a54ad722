//! Placeholders and postscripts.

use crate::argument::{ArgumentError, Arguments, Kind, Parameter};
use crate::constraint::{Constraint, Family, Test};
use crate::text::pattern::{compile_multi_line, is_literal};
use crate::text::reading::is_word_part;
use plaudit_text::{fold, is_space, lower, strip};

pub(crate) const TABLE: &[Constraint] = &[
    Constraint {
        id: "detectable_content:number_placeholders",
        family: Family::IfEval,
        parameters: &[Parameter::new("num_placeholders", Kind::Number)],
        checks: "There are at least so many placeholders in square brackets, such as `[address]`.",
        gamed: "By brackets around words that stand for nothing.",
        difference: "The published checker also counts `[]`, links such as `[page](http://example.org)` and `a[0]`.",
        build: number_placeholders,
    },
    Constraint {
        id: "detectable_content:postscript",
        family: Family::IfEval,
        parameters: &[Parameter::new("postscript_marker", Kind::Text)],
        checks: "A postscript begins with the marker, after some other text.",
        gamed: "By the marker with nothing after it.",
        difference: "The published checker finds the marker anywhere, also inside \"U.P.S.\" and at the very start, \
            and takes any marker but `P.S.` and `P.P.S` for a regular expression.",
        build: postscript,
    },
];

fn number_placeholders(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let wanted = arguments.count("num_placeholders")?;
    let corrected = arguments.corrected();
    Ok(Box::new(move |view| placeholders(view.text(), corrected) as f64 >= wanted))
}

/// Brackets that close on the same line. Corrected: with a letter inside, and neither a link nor an index.
fn placeholders(text: &str, corrected: bool) -> usize {
    let mut count = 0;
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(open) = memchr::memchr(b'[', &bytes[from..]).map(|at| from + at) {
        let Some(end) = memchr::memchr2(b']', b'\n', &bytes[open + 1..]).map(|at| open + 1 + at) else {
            break;
        };
        from = end + 1;
        if bytes[end] == b'\n' {
            continue;
        }
        let inside = &text[open + 1..end];
        let index = text[..open].chars().next_back().is_some_and(|c| is_word_part(c) || c == ']' || c == '!');
        let link = matches!(bytes.get(end + 1), Some(b'('));
        let named = inside.chars().any(|c| c.is_alphabetic()) && !matches!(strip(inside), "x" | "X");
        if !corrected || (named && !index && !link) {
            count += 1;
        }
    }
    count
}

fn postscript(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    const NAME: &str = "postscript_marker";
    let marker = strip(arguments.text(NAME)?);
    if arguments.corrected() {
        if marker.is_empty() {
            return Err(arguments.refused(NAME, "must not be empty"));
        }
        let marker = fold(marker);
        return Ok(Box::new(move |view| has_postscript(view.folded(), &marker)));
    }
    Ok(match marker {
        "P.S." => Box::new(|view| has_letters(view.lower(), &["p.", "s."])),
        "P.P.S" => Box::new(|view| has_letters(view.lower(), &["p.", "p.", "s"])),
        marker if is_literal(marker) => {
            let marker = lower(marker).into_owned();
            Box::new(move |view| memchr::memmem::find(view.lower().as_bytes(), marker.as_bytes()).is_some())
        }
        marker => {
            let source = format!(r"\s*{}.*$", lower(marker));
            let (regex, _) = compile_multi_line(&source).map_err(|reason| arguments.refused(NAME, reason))?;
            Box::new(move |view| regex.is_match(view.lower()))
        }
    })
}

/// Whether pieces stand one after the other, with at most one white space between them.
fn has_letters(text: &str, pieces: &[&str]) -> bool {
    memchr::memmem::find_iter(text.as_bytes(), pieces[0].as_bytes()).any(|at| {
        let mut rest = &text[at + pieces[0].len()..];
        pieces[1..].iter().all(|piece| {
            let space = rest.chars().next().filter(|c| is_space(*c)).map_or(0, char::len_utf8);
            let found = rest[space..].strip_prefix(piece);
            rest = found.map_or("", |rest| rest);
            found.is_some()
        })
    })
}

/// A marker that begins a line or follows the end of a sentence, with text before it, and no letter directly after it.
fn has_postscript(text: &str, marker: &str) -> bool {
    let Some(words) = text.find(is_word_part) else { return false };
    let (mut start, mut seen) = (0, 0);
    memchr::memmem::find_iter(text.as_bytes(), marker.as_bytes()).any(|at| {
        let after = &text[at + marker.len()..];
        start = memchr::memrchr(b'\n', &text.as_bytes()[seen..at]).map_or(start, |feed| seen + feed + 1);
        seen = at;
        let line = text[start..at].trim_end_matches(['*', '_', '#', '>', '(', '[', '"', '“']);
        let starts = strip(line).is_empty()
            || (line.ends_with(is_space) && strip(line).ends_with(['.', '!', '?', '…', '”', '"', ')', '。']));
        let goes_on = marker.chars().next_back().is_some_and(|c| c.is_ascii_alphanumeric())
            && after.chars().next().is_some_and(is_word_part);
        starts && !goes_on && words < at
    })
}
