//! Words in brackets, sentences joined by hyphens, and marks that are forbidden.

use crate::argument::{ArgumentError, Arguments};
use crate::constraint::{Constraint, Family, Test};
use crate::text::{reading, splitter};
use plaudit_text::{is_space, split, strip};

pub(crate) const TABLE: &[Constraint] = &[
    Constraint {
        id: "detectable_format:square_brackets",
        family: Family::IfRlvr,
        parameters: &[],
        checks: "Every word is in square brackets.",
        gamed: "By a single word.",
        difference: "The published checker lets empty brackets pass: `[] []`.",
        build: square_brackets,
    },
    Constraint {
        id: "detectable_format:bigram_wrapping",
        family: Family::IfRlvr,
        parameters: &[],
        checks: "Every two words are in double angular brackets, such as `<<I am>> <<at home>>`.",
        gamed: "By two words alone.",
        difference: "The published checker looks at every second word for `<<` and at the others for `>>`: one bare \
            word passes, and so does `<<a>> <<b>>`.",
        build: bigram_wrapping,
    },
    Constraint {
        id: "detectable_format:sentence_hyphens",
        family: Family::IfRlvr,
        parameters: &[],
        checks: "Sentences are joined by hyphens, with no space between them.",
        gamed: "By a single sentence.",
        difference: "The published checker takes the hyphen of \"A well-known bridge.-It stands.\" for one that joins \
            sentences.",
        build: sentence_hyphens,
    },
    Constraint {
        id: "punctuation:punctuation_dot",
        family: Family::IfRlvr,
        parameters: &[],
        checks: "There is no full stop.",
        gamed: "By other marks at the ends of sentences.",
        difference: "",
        build: punctuation_dot,
    },
    Constraint {
        id: "punctuation:punctuation_exclamation",
        family: Family::IfRlvr,
        parameters: &[],
        checks: "There is no exclamation mark, full-width or not.",
        gamed: "By a text without feeling.",
        difference: "The published checker does not know the full-width `！`.",
        build: punctuation_exclamation,
    },
];

fn square_brackets(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    Ok(Box::new(move |view| {
        split(view.text()).all(|word| {
            word.starts_with('[')
                && word.ends_with(']')
                && !(corrected && word.trim_matches(['[', ']']).is_empty())
        })
    }))
}

fn bigram_wrapping(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    Ok(match arguments.corrected() {
        true => Box::new(|view| are_bigrams(view.text())),
        false => Box::new(|view| {
            let mut words = split(view.text());
            while let (Some(first), Some(second)) = (words.next(), words.next()) {
                if !(first.starts_with("<<") && second.ends_with(">>")) {
                    return false;
                }
            }
            true
        }),
    })
}

/// Nothing but groups of two words, the last of which may have one.
fn are_bigrams(text: &str) -> bool {
    let mut rest = strip(text);
    while !rest.is_empty() {
        let Some((inside, tail)) = rest.strip_prefix("<<").and_then(|rest| rest.split_once(">>")) else {
            return false;
        };
        let words = inside.split(is_space).filter(|word| !word.is_empty()).count();
        rest = tail.trim_start_matches(is_space);
        if inside.contains("<<") || words == 0 || words > 2 || (words == 1 && !rest.is_empty()) {
            return false;
        }
    }
    true
}

fn sentence_hyphens(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    if arguments.corrected() {
        return Ok(Box::new(|view| are_joined(view.text())));
    }
    Ok(Box::new(|view| {
        let Some(first) = view.text().split('-').next() else { return true };
        if !may_be_sentence(first) {
            return false;
        }
        let sentences = splitter::sentences(&view.text().replace('-', " "));
        view.text().split('-').zip(sentences.iter()).all(|(piece, sentence)| piece == sentence)
    }))
}

/// Whether the splitter may give a text back as one sentence: no line feed, no `?` or `!` before its end, and no full
/// stop before its end that follows two small letters of a word without a short form.
fn may_be_sentence(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = &bytes[..bytes.len().saturating_sub(1)];
    let ends_early = |dot: usize| match (&inner[..dot], &inner[dot + 1..]) {
        ([.., a, b], [b' ', ..]) => {
            a.is_ascii_lowercase()
                && b.is_ascii_lowercase()
                && !matches!([*a, *b], [b'r', b's'] | [b'n', b'c'] | [b't', b'd'])
        }
        _ => false,
    };
    memchr::memchr3(b'\n', b'?', b'!', inner).is_none() && !memchr::memchr_iter(b'.', inner).any(ends_early)
}

/// Pieces between hyphens that follow the end of a sentence, each of them one sentence without space around it.
fn are_joined(text: &str) -> bool {
    let text = strip(text);
    let mut start = 0;
    let mut pieces = Vec::new();
    for at in memchr::memchr_iter(b'-', text.as_bytes()) {
        if text[start..at].ends_with(['.', '!', '?', '…', '"', '”', ')', '。']) {
            pieces.push(&text[start..at]);
            start = at + 1;
        }
    }
    pieces.push(&text[start..]);
    !text.starts_with('-')
        && pieces.iter().all(|piece| *piece == strip(piece) && reading::sentences(piece).len() == 1)
}

fn punctuation_dot(_: &Arguments<'_>) -> Result<Test, ArgumentError> {
    Ok(Box::new(|view| memchr::memchr(b'.', view.text().as_bytes()).is_none()))
}

fn punctuation_exclamation(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    Ok(Box::new(move |view| {
        memchr::memchr(b'!', view.text().as_bytes()).is_none() && !(corrected && view.text().contains('！'))
    }))
}
