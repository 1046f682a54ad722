//! Denials around multiple-choice answers: whether the words beside a letter or an option's text affirm it, deny it, call it
//! wrong, or take it back.

use super::choice_options::{is_mark, is_one_of};
use plaudit_text::is_space;
use std::borrow::Cow;

/// Words between a denial and what it denies.
const FILLING: &str =
    "option choice answer letter the be is it it's that's to choose pick select think believe";
/// Words that deny what follows them.
pub(super) const DENYING: &str = "not neither nor never except excluding isn't aren't wasn't weren't ain't don't doesn't didn't won't wouldn't \
    can't cannot couldn't shouldn't no nicht kein keine não non не bukan không değil";
/// Words that say of a letter before them that it is not the answer.
pub(super) const REFUSING: &str =
    "not wrong incorrect false out excluded impossible eliminated ruled unlikely";
/// Words that deny or exclude an option's text in the same clause.
pub(super) const EXCLUDING: &str = "not no neither nor never none except excluding without anything isn't aren't cannot can't \
    don't doesn't didn't wasn't won't wouldn't wrong incorrect false";
/// Words after an answer that take it back.
const CORRECTING: &str = "no nope wait actually sorry oops correction scratch hmm rather";
/// Commands of LaTeX that deny what follows them, or strike it out.
const DENYING_COMMANDS: [&str; 12] =
    ["neg", "lnot", "not", "neq", "ne", "cancel", "xcancel", "bcancel", "sout", "st", "overline", "bar"];
/// Words that begin another clause.
const CLAUSES: &str = "because since as so but rather instead not over";

/// Whether the words before a letter deny it: "not A", "neither A", "isn't option A", "anything but A", "rather than A".
pub(super) fn is_denied(before: &str) -> bool {
    // A comma or a colon ends what a word denies; brackets and emphasis do not.
    const JOINED: [char; 10] = ['*', '_', '`', '(', '[', '{', '$', '"', '“', '‘'];
    let words = before.trim_end_matches(is_space).rsplit(is_space);
    let words = words.map(|word| word.trim_start_matches(is_mark).trim_end_matches(JOINED));
    let mut words = words.filter(|word| !word.is_empty());
    let mut word = words.next();
    while word.is_some_and(|word| is_one_of(word, FILLING)) {
        word = words.next();
    }
    let Some(word) = word else { return false };
    let earlier = || words.clone().next().unwrap_or("").trim_matches(is_mark);
    is_one_of(word, DENYING)
        || word.eq_ignore_ascii_case("but") && is_one_of(earlier(), "anything everything all any")
        || is_one_of(word, "of than") && is_one_of(earlier(), "instead rather other")
}

/// Whether the words after a letter refuse it: "A is wrong", "A isn't", "A cannot be", "A is not right".
pub(super) fn is_refused(after: &str) -> bool {
    // "B? No."
    if let Some(said) = after.trim_start_matches(is_mark).strip_prefix('?') {
        let said = said.split(['.', '!', ',', ';']).next().unwrap_or("");
        return is_one_of(said.trim_matches(is_mark), "no nope never wrong incorrect");
    }
    let after = after.trim_start_matches([')', ']', '*', '_']);
    let clause = after.split([',', '.', ';', '!', '?']).next().unwrap_or("");
    let mut words =
        clause.split(is_space).filter(|word| !word.is_empty()).map(|word| word.trim_matches(is_mark));
    match words.next() {
        Some(word)
            if is_one_of(word, "isn't wasn't ain't cannot can't couldn't doesn't won't wouldn't fails") =>
        {
            true
        }
        Some(word) if is_one_of(word, "is are was looks seems must can would does") => {
            words.take(2).any(|word| is_one_of(word, REFUSING))
        }
        _ => false,
    }
}

/// Whether the words after the bracket of a letter say that it is not the answer. What else they say is of the option itself, as in
/// "(B) isn't a metal".
pub(super) fn is_called_wrong(after: &str) -> bool {
    let clause = after.split([',', '.', ';', '!', '?']).next().unwrap_or("");
    let mut words = clause.split(is_space).filter(|word| !word.is_empty());
    let negated = match words.next() {
        Some(word) if is_one_of(word, "isn't wasn't ain't can't cannot couldn't") => true,
        Some(word) => is_one_of(word, "is was") && words.next().is_some_and(|next| is_one_of(next, "not")),
        None => false,
    };
    let mut words = words.skip_while(|word| is_one_of(word, "be the a"));
    negated && words.next().is_some_and(|word| is_one_of(word, "right correct answer it"))
}

/// Whether what follows a letter asks about it or takes it back: "A? No, B", "A, no, B", "A ... wait, B".
pub(super) fn is_corrected(after: &str) -> bool {
    let rest = after.trim_start_matches(|char: char| is_mark(char) || "-–—…/".contains(char));
    let word = rest.split(|char: char| !char.is_alphanumeric() && char != '\'').next().unwrap_or("");
    let ends = || rest[word.len()..].starts_with(|next: char| !is_space(next));
    rest.starts_with('?') || is_one_of(word, CORRECTING) && (!word.eq_ignore_ascii_case("no") || ends())
}

/// Whether the clause around an option's text affirms it: "not the glass rod", "anything but the glass rod" and "the glass rod is
/// wrong" do not; "glass rod, not wool thread" does.
pub(super) fn is_affirmed(before: &str, after: &str) -> bool {
    let ends = |char: char| ",.;:!?()".contains(char);
    let words = |clause: &'_ str| -> Vec<String> {
        let trimmed = clause.split(is_space).map(|word| word.trim_matches(is_mark).to_owned());
        trimmed.filter(|word| !word.is_empty()).collect()
    };
    let mut clause = words(before.rsplit(ends).next().unwrap_or(""));
    if let Some(but) = clause.iter().rposition(|word| word == "but") {
        let all = but.checked_sub(1).is_some_and(|at| is_one_of(&clause[at], "anything everything all any"));
        if all {
            return false;
        }
        clause.drain(..=but);
    }
    let excluded = |pair: &[String]| match pair {
        [first, second] => {
            second == "than" && is_one_of(first, "rather other") || second == "of" && first == "instead"
        }
        _ => false,
    };
    let joined = clause.last().is_some_and(|word| is_one_of(word, "or and"));
    if joined || clause.iter().any(|word| is_one_of(word, EXCLUDING)) || clause.windows(2).any(excluded) {
        return false;
    }
    let rest = after.split(ends).next().unwrap_or("");
    let rest = words(rest);
    let own = rest.iter().take_while(|word| !is_one_of(word, CLAUSES));
    let own: Vec<&String> = own.collect();
    let refused = own.iter().any(|word| is_one_of(word, EXCLUDING));
    // "The glass rod is not" ends before the denial.
    let denied = !own.is_empty()
        && rest.get(own.len()).is_some_and(|word| word == "not")
        && own
            .last()
            .is_some_and(|word| is_one_of(word, "is are was does do did will would can could should"));
    !refused && !denied && !own.first().is_some_and(|word| is_one_of(word, "or and"))
}

/// Whether a payload without an answer says that there is none.
pub(super) fn denies(payload: &str) -> bool {
    payload
        .split(|char: char| is_space(char) || is_mark(char) && char != '\'')
        .any(|word| is_one_of(word, "none neither not no wrong incorrect false"))
}

/// The text with signs of denial as words: `¬A`, `!A`, `~A`, `\neg A`, `x \neq A`, and `~~A~~` that is struck out, are "not A".
pub(super) fn spelled_denials(text: &str) -> Cow<'_, str> {
    if !text.contains(['¬', '￢', '≠', '!', '~', '∼', '\\', '’', '<']) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest, mut struck) = (String::with_capacity(text.len()), text, false);
    while let Some(char) = rest.chars().next() {
        let after = &rest[char.len_utf8()..];
        // A sign before a letter denies it where nothing is joined to the sign; `option~B` has a space of LaTeX.
        let is_free = !out.ends_with(|last: char| last.is_alphanumeric() || "}\\!".contains(last));
        let leads = after.starts_with(|next: char| next.is_alphanumeric() || "([{*$".contains(next));
        let command = after.bytes().take_while(u8::is_ascii_alphabetic).count();
        let step = match char {
            '~' if after.starts_with('~') => {
                struck = !struck;
                out.push_str(if struck { " not " } else { " , " });
                2
            }
            '<' if ["del>", "s>", "strike>"].iter().any(|tag| after.starts_with(tag)) => {
                out.push_str(" not ");
                1 + after.find('>').map_or(0, |end| end + 1)
            }
            '!' if after.starts_with('=') => {
                out.push_str(" not ");
                2
            }
            '¬' | '￢' | '≠' => {
                out.push_str(" not ");
                char.len_utf8()
            }
            '!' | '~' | '∼' if is_free && leads => {
                out.push_str(" not ");
                char.len_utf8()
            }
            '\\' if DENYING_COMMANDS.contains(&&after[..command]) => {
                out.push_str(" not ");
                1 + command
            }
            '’' => {
                out.push('\'');
                char.len_utf8()
            }
            other => {
                out.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[step..];
    }
    Cow::Owned(out)
}
