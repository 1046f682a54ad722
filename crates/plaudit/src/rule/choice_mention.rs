//! Mentions of options in a sentence: the letters that stand alone and are meant as answers, and which of them are denied.

use super::choice_denial::{is_corrected, is_denied, is_refused};
use super::choice_options::{
    ChoiceOptions, NEAR, first, is_mark, is_number_edge, is_one_of, last, last_word, matches, normal, single,
};
use plaudit_math::mark::is_joint;
use plaudit_text::{is_space, strip};

/// Words that may follow a letter that is meant as an answer.
const AFTER: &str = "is isn't was are because since as and or but not nor so for which that with can can't cannot does \
    doesn't has would seems looks appears by due given then also only must should will fails rather \
    instead over oder und ou et o y e oppure atau veya или либо и ist es est é è ya porque weil car";
/// Words that may stand before a letter that is meant as an answer.
const BEFORE: &str = "option choice answer letter is be it's select choose pick chose selected so thus therefore hence \
    then or and but not nor both to with either neither than of for as was are isn't say just only \
    probably likely definitely clearly except never maybe perhaps possibly alternatively oder und ou et o y e oppure atau \
    veya opción opção option opzione letra lettera lettre buchstabe la el die der das nicht kein bukan или либо и";

/// A letter that stands alone in a payload.
pub(super) struct Mention {
    pub(super) letter: char,
    /// The offsets of the letter and after it.
    pub(super) span: (usize, usize),
    pub(super) denied: bool,
    /// Whether it is asked about, or taken back: then another letter after it counts.
    corrected: bool,
}

/// The capital letters that stand alone and name options, small ones after "option", and digits that name options.
pub(super) fn mentions(text: &str, options: &ChoiceOptions) -> Vec<Mention> {
    let mut mentions: Vec<Mention> = Vec::new();
    for (at, char) in text.char_indices() {
        let small = char.is_ascii_lowercase();
        if char.is_ascii() && !char.is_ascii_alphanumeric() {
            continue;
        }
        let Some(letter) = options.name(char).filter(|letter| options.has(*letter)) else { continue };
        let (before, after) = (&text[..at], &text[at + char.len_utf8()..]);
        let (before, after) = (last(before, NEAR), first(after, NEAR));
        if !is_alone(before, after) || (char.is_ascii_digit() && !is_number_edge(before, after)) {
            continue;
        }
        let word = last_word(before).unwrap_or("");
        let named = is_one_of(word.trim_matches(is_mark), "option choice");
        if (small && !named) || !is_meant(letter, (before, after), options) {
            continue;
        }
        let chained = mentions.last().is_some_and(|last: &Mention| {
            last.denied && is_one_of(word, "or and nor") && is_separator(&text[last.span.1..at])
        });
        let denied = chained || is_denied(before) || is_refused(after);
        let corrected = is_corrected(after);
        mentions.push(Mention { letter, span: (at, at + char.len_utf8()), denied, corrected });
    }
    for at in 0..mentions.len() {
        let letter = mentions[at].letter;
        // A payload is short, so that looking through the rest of it is cheap.
        let is_replaced = || mentions[at + 1..].iter().any(|later| later.letter != letter && !later.denied);
        mentions[at].denied |= mentions[at].corrected && is_replaced();
    }
    mentions
}

/// Whether a letter is meant as an answer, and is no article, pronoun or part of a name: "A good choice", "I think",
/// "vitamin B", "B cells".
fn is_meant(letter: char, (before, after): (&str, &str), options: &ChoiceOptions) -> bool {
    // "N/A" names no option.
    if letter == 'A' && (before.ends_with("N/") || before.ends_with("n/")) {
        return false;
    }
    // An abbreviation, as in "B. coli".
    let dotted = after.strip_prefix('.').map(|after| after.trim_start_matches(is_space));
    if dotted.is_some_and(|after| after.starts_with(|next: char| next.is_lowercase())) {
        return false;
    }
    let follows = match after.strip_prefix(is_space).map(|after| after.trim_start_matches(is_space)) {
        Some(rest) if rest.starts_with(|next: char| next.is_lowercase()) => {
            let word =
                rest.split(|char: char| is_space(char) || ",.;:!?)".contains(char)).next().unwrap_or("");
            is_one_of(word, AFTER) || matches(&normal(rest.trim_matches(is_mark)), options.text(letter))
        }
        _ => true,
    };
    let spaced = before.ends_with(is_space);
    let leads = match last_word(before).filter(|_| spaced) {
        None => true,
        Some(word) if word.ends_with(|char: char| !char.is_alphanumeric() && char != '-') => true,
        Some(word) if single(word).is_some_and(|char| options.has(char)) => true,
        Some(word) => is_one_of(word.trim_start_matches(is_mark), BEFORE) || !word.is_ascii(),
    };
    follows && leads
}

/// Whether a letter between two parts stands alone. Scripts without spaces between words may be beside it.
fn is_alone(before: &str, after: &str) -> bool {
    let joins = |char: char| char.is_alphanumeric() && char < '\u{2e80}' || "-'’_".contains(char);
    let mut next = after.chars();
    let (first, second) = (next.next(), next.next());
    // A possessive or a contraction; a quotation mark that closes is none.
    let after_joins = first.is_some_and(|first| match first {
        '-' | '\'' | '’' => second.is_some_and(char::is_alphanumeric),
        // A subscript or an exponent.
        '_' | '^' => second.is_some_and(|second| second.is_alphanumeric() || second == '{'),
        other => joins(other),
    });
    let mut previous = before.chars().rev();
    let (last, earlier) = (previous.next(), previous.next());
    let before_joins = last.is_some_and(|last| match last {
        '-' | '\'' | '’' | '_' => earlier.is_some_and(char::is_alphanumeric),
        other => joins(other),
    });
    !after_joins && !before_joins
}

/// Whether what stands between two letters only lists them, and is not the bracket of "B (A conducts)".
pub(super) fn is_separator(gap: &str) -> bool {
    strip(gap) != "(" && is_joint(gap)
}
