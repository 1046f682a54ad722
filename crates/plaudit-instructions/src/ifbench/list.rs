//! Constraints on lists: separators, bullets and sub-bullets.

use super::{final_mark, test};
use crate::argument::{ArgumentError, Arguments, Kind, Parameter};
use crate::constraint::{Constraint, Family, Test};
use crate::text::punkt;
use crate::text::reading;
use plaudit_text::{is_alnum, is_space, strip};

pub(super) const TABLE: &[Constraint] = &[
    Constraint {
        id: "format:list",
        family: Family::IfBench,
        parameters: &[Parameter::new("sep", Kind::Text)],
        checks: "At least two lines start with the separator, each with something after it.",
        gamed: "Two items of one letter.",
        difference: "The published check counts the separator anywhere: hyphens inside words, `---`, dots of an ellipsis. The corrected one wants \
                     it in the place of a bullet.",
        build: list,
    },
    Constraint {
        id: "format:sub-bullets",
        family: Family::IfBench,
        parameters: &[],
        checks: "At least one bullet `*`, and after each, before the next, a line that starts with `-`.",
        gamed: "Empty sub-bullets.",
        difference: "The published check wants a hyphen somewhere after each star, so that a text without any star passes, and \
                     `* a well-known thing`.",
        build: sub_bullets,
    },
    Constraint {
        id: "format:no_bullets_bullets",
        family: Family::IfBench,
        parameters: &[],
        checks: "At least two sentences that end with a full stop, then at least two bullets `*`, and nothing after them.",
        gamed: "Two sentences of one word.",
        difference: "The published check takes any two sentences, `One? Two?` too, and fails a blank line between or after the \
                     bullets, a final line feed included.",
        build: no_bullets_bullets,
    },
];

fn list(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let separator = arguments.text("sep")?.to_owned();
    if arguments.corrected() {
        let separator = strip(&separator).to_owned();
        if separator.is_empty() {
            return Err(arguments.refused("sep", "must not be blank"));
        }
        return test(move |view| {
            let item = |line: &&str| {
                let rest = line.trim_start_matches(is_space).strip_prefix(separator.as_str());
                rest.is_some_and(|rest| {
                    // A letter that goes on is a word, a mark that goes on is another mark.
                    let goes_on = |c: char| match separator.chars().next_back() {
                        Some(last) if last.is_alphanumeric() => c.is_alphanumeric(),
                        last => Some(c) == last,
                    };
                    !rest.starts_with(goes_on) && !strip(rest).is_empty()
                })
            };
            view.text().split('\n').filter(item).take(2).count() == 2
        });
    }
    test(move |view| match separator.is_empty() {
        true => true,
        false => memchr::memmem::find_iter(view.text().as_bytes(), separator.as_bytes()).take(2).count() == 2,
    })
}

/// Whether a line is a bullet: the mark and white space, or the mark and a word. Emphasis and rules are none.
fn is_bullet(line: &str, mark: char) -> bool {
    let rest = line.trim_start_matches(is_space).strip_prefix(mark);
    rest.is_some_and(|rest| rest.starts_with(is_space) || (rest.starts_with(is_alnum) && !rest.contains('*')))
}

fn sub_bullets(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    if arguments.corrected() {
        return test(|view| {
            // Of the last bullet: whether a sub-bullet followed.
            let mut followed = None;
            for line in view.text().split('\n') {
                if is_bullet(line, '*') {
                    if followed == Some(false) {
                        return false;
                    }
                    followed = Some(false);
                } else if is_bullet(line, '-') && followed.is_some() {
                    followed = Some(true);
                }
            }
            followed == Some(true)
        });
    }
    test(|view| view.text().split('*').skip(1).all(|piece| piece.contains('-')))
}

fn no_bullets_bullets(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    if arguments.corrected() {
        return test(|view| {
            let (mut sentences, mut bullets) = (0, 0);
            for line in view.text().split('\n').map(strip).filter(|line| !line.is_empty()) {
                if is_bullet(line, '*') {
                    bullets += 1;
                } else if bullets > 0 {
                    return false;
                } else {
                    let found = reading::sentences(line);
                    sentences +=
                        found.into_iter().filter(|sentence| final_mark(sentence) == Some('.')).count();
                }
            }
            sentences >= 2 && bullets >= 2
        });
    }
    test(|view| {
        let (mut sentences, mut bullets) = (0, 0);
        // A line without sentences ends the first part, bullets or not.
        let mut open = true;
        for line in view.text().split('\n').map(strip) {
            if line.starts_with('*') {
                if sentences < 2 {
                    return false;
                }
                open = false;
                bullets += 1;
            } else if open {
                let found = punkt::sentences(line).len();
                sentences += found;
                open = found > 0;
            } else {
                return false;
            }
        }
        bullets >= 2
    })
}
