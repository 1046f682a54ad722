//! Denials: whether the words around a number or a formula say that it is not the answer.

use std::ops::Range;

use super::{ceil, floor};

/// Bytes that are looked at on each side.
const MAX_WINDOW: usize = 120;
/// Words that make a statement wrong.
fn is_wrong(word: &str) -> bool {
    matches!(
        word,
        "wrong"
            | "incorrect"
            | "false"
            | "mistaken"
            | "invalid"
            | "erroneous"
            | "untrue"
            | "impossible"
            | "tempting"
    )
}

/// Words between a denial and what it denies.
fn is_filler(word: &str) -> bool {
    matches!(
        word,
        "be" | "been"
            | "is"
            | "are"
            | "was"
            | "were"
            | "equal"
            | "equals"
            | "to"
            | "exactly"
            | "the"
            | "a"
            | "an"
            | "my"
            | "one"
            | "number"
            | "answer"
            | "value"
            | "result"
            | "solution"
            | "option"
            | "choice"
            | "guess"
            | "attempt"
            | "simply"
            | "just"
            | "really"
            | "actually"
            | "in"
            | "fact"
            | "even"
            | "quite"
            | "precisely"
            | "possibly"
            | "correct"
            | "right"
            | "final"
            | "come"
            | "out"
            | "get"
            | "got"
            | "give"
            | "yield"
            | "make"
            | "turn"
            | "as"
            | "would"
            | "it"
            | "that"
            | "this"
            | "any"
            | "longer"
    )
}

/// Words that name a value which was thought of before the answer.
fn is_guess(word: &str) -> bool {
    matches!(word, "guess" | "attempt" | "thought" | "estimate" | "impression" | "instinct")
}

/// Whether a word denies: "not", "cannot", "isn't" and its like.
fn is_negation(word: &str) -> bool {
    word.ends_with("n't")
        || word.ends_with("n’t")
        || matches!(
            word,
            "not" | "never" | "cannot" | "neither" | "nor" | "isnt" | "wasnt" | "doesnt" | "wont" | "cant"
        )
}

/// The words of a text in lower case, each with whether a comma or the end of a sentence follows.
fn words(text: &str) -> impl DoubleEndedIterator<Item = (String, bool)> + Clone {
    text.split_whitespace().filter_map(|word| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        (!bare.is_empty()).then(|| (bare.to_lowercase(), word.ends_with([',', '.', ';', '!', '?', ')', ':'])))
    })
}

/// Whether the words that a text begins with deny what follows: "isn't 42", "not 42", "cannot be 42", "will not be 42".
pub(super) fn begins(text: &str) -> bool {
    let window = &text[..floor(text, MAX_WINDOW.min(text.len()))];
    let line = window.trim_start().lines().next().map_or("", |line| line);
    if line.starts_with(['不', '非']) || line.starts_with("并") {
        return true;
    }
    let mut words = words(line);
    let verb = |word: &str| {
        matches!(
            word,
            "is" | "was" | "will" | "would" | "can" | "could" | "does" | "did" | "should" | "must" | "may"
        )
    };
    match words.next() {
        Some((word, false)) if is_negation(&word) => true,
        Some((word, false)) if verb(&word) => words.next().is_some_and(|(word, _)| is_negation(&word)),
        _ => false,
    }
}

/// Whether the words before `at` call what follows wrong, or something that was thought of first.
pub(super) fn is_denied_before(text: &str, at: usize) -> bool {
    let window = &text[ceil(text, at.saturating_sub(MAX_WINDOW))..at];
    let bytes = window.as_bytes();
    let ends = |at: &usize| match bytes[*at] {
        b'\n' => true,
        b'.' | b'!' | b'?' | b';' => bytes.get(at + 1) == Some(&b' '),
        _ => false,
    };
    let sentence = (0..bytes.len()).rev().find(ends);
    let clause = &window[sentence.map_or(0, |end| end + 1)..];
    let (mut past, mut answer) = (false, false);
    for (word, stopped) in words(clause).rev() {
        if stopped && !(past || is_filler(&word)) {
            return false;
        }
        let first =
            matches!(word.as_str(), "first" | "initial" | "earlier" | "previous" | "original" | "old");
        let guessed = is_guess(&word) && past || word == "guessed" || first && past && answer;
        let adverb = matches!(word.as_str(), "wrongly" | "mistakenly" | "incorrectly" | "erroneously");
        if is_negation(&word) || is_wrong(&word) || guessed || adverb {
            return true;
        }
        past |= word == "was";
        answer |= matches!(word.as_str(), "answer" | "result" | "solution" | "value");
        // A letter or a number may stand between, as in "x is not".
        if !is_filler(&word) {
            return false;
        }
    }
    false
}

/// Whether the words after `at` call what stands before wrong: "is wrong", "isn't the answer", "(incorrect)".
fn is_denied_after(text: &str, at: usize) -> bool {
    let window = &text[at..floor(text, (at + MAX_WINDOW).min(text.len()))];
    let line = window.trim_start_matches(['$', '*', ')', ']', '}', '\\', '"']);
    let line = line.lines().next().map_or("", |line| line);
    let mut words = words(line).peekable();
    // The verdict alone: "42 (wrong)", and "42? Wrong."
    if let Some((word, stopped)) = words.peek()
        && is_wrong(word)
    {
        return *stopped || words.clone().count() == 1;
    }
    while words
        .next_if(|(word, _)| {
            matches!(word.as_str(), "which" | "that" | "this" | "it" | "clearly" | "obviously")
        })
        .is_some()
    {}
    let mut negated = false;
    let mut verb = false;
    for (word, stopped) in words {
        let word = word.as_str();
        let is_verb = matches!(
            word,
            "is" | "was"
                | "are"
                | "seems"
                | "looks"
                | "would"
                | "must"
                | "might"
                | "could"
                | "can"
                | "be"
                | "that's"
                | "it's"
        );
        if is_negation(word) {
            negated = true;
            verb |= word != "not" && word != "never";
            if stopped {
                return verb;
            }
        } else if is_verb {
            verb = true;
        } else if verb && is_wrong(word) {
            return !negated;
        } else if verb
            && negated
            && matches!(
                word,
                "right" | "correct" | "true" | "valid" | "answer" | "solution" | "possible" | "it"
            )
        {
            return true;
        } else if !matches!(
            word,
            "the"
                | "a"
                | "an"
                | "my"
                | "our"
                | "final"
                | "also"
                | "just"
                | "clearly"
                | "obviously"
                | "definitely"
        ) {
            return false;
        }
    }
    verb && negated
}

/// Whether the sentence around an answer denies it.
pub(super) fn is_denied(text: &str, span: &Range<usize>) -> bool {
    is_denied_before(text, span.start) || is_denied_after(text, span.end)
}
