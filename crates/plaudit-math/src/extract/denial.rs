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
            | "say"
    )
}

/// Words between a denial and a whole statement: "I don't think the answer is 42", "it is not true that", "by no means is".
fn is_opinion(word: &str) -> bool {
    matches!(word, "think" | "believe" | "true" | "case" | "means" | "circumstances")
}

/// Words that put a value aside, in the forms that speak of the one who does: "we reject 42", "ruling out 42".
const REJECTIONS: [&str; 19] = [
    "reject",
    "rejects",
    "rejecting",
    "discard",
    "discards",
    "discarding",
    "exclude",
    "excludes",
    "excluding",
    "eliminate",
    "eliminating",
    "dismiss",
    "dismissing",
    "rule out",
    "rules out",
    "ruling out",
    "i doubt",
    "i refuse",
    "except",
];

/// What says so of the value before it: "42 is extraneous", "42 was rejected".
fn is_rejected(word: &str) -> bool {
    matches!(
        word,
        "rejected" | "discarded" | "excluded" | "dismissed" | "extraneous" | "spurious" | "inadmissible"
    )
}

/// Whether the clause before a value puts it aside, where nothing follows the value that it could count: "they reject 42 offers".
fn is_rejected_before(clause: &str, after: &str) -> bool {
    let follows = after.trim_start_matches(['$', '*', ')', ']', '}', '\\', '"']).trim_start();
    let next = follows.split(|letter: char| !letter.is_alphanumeric()).next().map_or("", |word| word);
    if !matches!(next, "" | "as" | "because" | "since" | "so" | "and" | "we" | "for") {
        return false;
    }
    let lower = clause.to_lowercase();
    let mut rest = lower.trim_end_matches(|letter: char| !letter.is_alphanumeric());
    let is_end = |rest: &str, word: &str| {
        rest.strip_suffix(word)
            .is_some_and(|before| !before.ends_with(|letter: char| letter.is_alphanumeric()))
    };
    if ["differs from", "differ from", "different from", "apart from", "far from"]
        .iter()
        .any(|word| is_end(rest, word))
    {
        return true;
    }
    loop {
        if REJECTIONS.iter().any(|word| is_end(rest, word)) {
            return true;
        }
        let ours = ["rejected", "discarded", "excluded", "eliminated", "dismissed", "ruled out"];
        if ours.iter().any(|word| is_end(rest, &format!("we {word}")) || is_end(rest, &format!("i {word}"))) {
            return true;
        }
        // Short words between: "we reject the value 42", "I doubt that it is 42".
        let Some((before, word)) = rest.rsplit_once(char::is_whitespace) else { return false };
        let named = word.len() == 1 || matches!(word, "root" | "candidate" | "case" | "possibility" | "for");
        if !(named || is_filler(word)) {
            return false;
        }
        rest = before.trim_end_matches([' ', '=', '$', '\t']);
        if rest.ends_with([',', '.', ';', ':', '!', '?', ')']) {
            return false;
        }
    }
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
    if clause.trim_end_matches(['$', ' ']).ends_with(['≠']) || clause.trim_end().ends_with("!=") {
        return true;
    }
    let (mut past, mut answer, mut means) = (false, false, false);
    for (word, stopped) in words(clause).rev() {
        if stopped && !(past || is_filler(&word)) {
            return false;
        }
        if word == "nobody" || word == "no" && means {
            return true;
        }
        means = matches!(word.as_str(), "means" | "circumstances");
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
        if !is_filler(&word) && (stopped || !is_opinion(&word)) {
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
    // "42? No."
    if let Some(said) = line.strip_prefix('?') {
        let mut words = words(said);
        return words
            .next()
            .is_some_and(|(word, _)| is_wrong(&word) || matches!(&*word, "no" | "nope" | "never"));
    }
    let mut words = words(line).peekable();
    // The verdict alone: "42 (wrong)", and "42? Wrong."
    if let Some((word, stopped)) = words.peek()
        && is_wrong(word)
    {
        return *stopped || words.clone().count() == 1;
    }
    while words
        .next_if(|(word, _)| {
            let leads = ["which", "that", "this", "it", "but", "though", "clearly", "obviously"];
            leads.contains(&word.as_str())
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
                | "does"
                | "do"
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
        } else if verb && (is_wrong(word) || is_rejected(word)) {
            return !negated;
        } else if word == "fails" && !negated
            || verb
                && negated
                && matches!(
                    word,
                    "right"
                        | "correct"
                        | "true"
                        | "valid"
                        | "answer"
                        | "solution"
                        | "possible"
                        | "it"
                        | "work"
                        | "satisfy"
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
    let window = &text[ceil(text, span.start.saturating_sub(MAX_WINDOW))..span.start];
    let clause = window.rsplit(['\n', '.', ';', '?', '!']).next().map_or("", |clause| clause);
    let after = &text[span.end..floor(text, (span.end + MAX_WINDOW).min(text.len()))];
    is_denied_before(text, span.start)
        || is_denied_after(text, span.end)
        || is_rejected_before(clause, after)
        || is_struck(window, &text[span.clone()], after)
}

/// Whether an answer is struck out: `~~42~~`, `<del>42</del>`.
fn is_struck(before: &str, answer: &str, after: &str) -> bool {
    let (before, answer, after) = (before.trim_end(), answer.trim(), after.trim_start());
    let tilde = |before: &str, after: &str| before.ends_with("~~") && after.starts_with("~~");
    let inside = answer.strip_prefix("~~").is_some_and(|rest| rest.ends_with("~~"));
    let inside = inside || answer.starts_with("~~") && after.starts_with("~~");
    inside
        || tilde(before, after)
        || ["<del>", "<s>", "<strike>"].iter().any(|tag| before.ends_with(tag) || answer.starts_with(tag))
}
