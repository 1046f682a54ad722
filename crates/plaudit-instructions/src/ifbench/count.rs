//! Constraints that count words, names, numbers, marks and keywords.

use super::{stripped, test};
use crate::argument::{ArgumentError, Arguments, Kind, Parameter};
use crate::constraint::{Constraint, Family, Test};
use crate::text::reading;
use crate::text::treebank;
use crate::text::word_set::WordSet;
use plaudit_text::{is_decimal, is_digit, is_punctuation, lower, split, strip};
use std::collections::HashSet;
use std::sync::LazyLock;

pub(super) const TABLE: &[Constraint] = &[
    Constraint {
        id: "count:word_count_range",
        family: Family::IfBench,
        parameters: &[Parameter::new("min_words", Kind::Number), Parameter::new("max_words", Kind::Number)],
        checks: "The number of words is at least `min_words` and at most `max_words`.",
        gamed: "Padding with words that say nothing.",
        difference: "The published check counts runs of word characters: `3.14` and `don't` are two words, a Hindi word with a vowel \
                     sign is two. The corrected one counts what a reader counts.",
        build: word_count_range,
    },
    Constraint {
        id: "count:unique_word_count",
        family: Family::IfBench,
        parameters: &[Parameter::new("N", Kind::Number)],
        checks: "At least `N` different words, without regard to case and to marks around them.",
        gamed: "A list of unrelated words.",
        difference: "The published check strips ASCII marks only and counts a word of marks as one word: `a ... b ... c !!!` has four. \
                     The corrected one does not count marks.",
        build: unique_word_count,
    },
    Constraint {
        id: "count:conjunctions",
        family: Family::IfBench,
        parameters: &[Parameter::new("small_n", Kind::Number)],
        checks: "At least `small_n` different coordinating conjunctions of and, but, for, nor, or, so, yet.",
        gamed: "`for` as a preposition and `so` as an adverb count; a list of the seven words passes.",
        difference: "The published check counts spellings: `and`, `And` and `and,` are three. The corrected one counts words, and sees `“and”`.",
        build: conjunctions,
    },
    Constraint {
        id: "count:person_names",
        family: Family::IfBench,
        parameters: &[Parameter::new("N", Kind::Number)],
        checks: "At least `N` different names of the 50 that the instruction lists, in their spelling.",
        gamed: "Listing the names without saying anything about them.",
        difference: "The published check wants no letter next to a name, Chinese ones included, and no underscore.",
        build: person_names,
    },
    Constraint {
        id: "count:numbers",
        family: Family::IfBench,
        parameters: &[Parameter::new("N", Kind::Number)],
        checks: "Exactly `N` numbers in digits. `1,234.5` is one.",
        gamed: "Numbers in words do not count, so any surplus can be spelled out.",
        difference: "The published check takes all ASCII marks out first, so that `1-2`, `1,2,3` and `(1)(2)(3)` are one number each. \
                     The corrected one joins digits at a decimal point and at a comma before three digits only.",
        build: numbers,
    },
    Constraint {
        id: "count:punctuation",
        family: Family::IfBench,
        parameters: &[],
        checks: "Each of `. , ! ? ; :` and besides an interrobang: `?!`, `!?` or `‽`.",
        gamed: "A row of marks at the end.",
        difference: "",
        build: punctuation,
    },
    Constraint {
        id: "count:pronouns",
        family: Family::IfBench,
        parameters: &[Parameter::new("N", Kind::Number)],
        checks: "At least `N` pronouns of a list of 63, repetitions included. A slash parts words.",
        gamed: "`it` in every clause; determiners such as `all`, `some` and `his` count.",
        difference: "",
        build: pronouns,
    },
    Constraint {
        id: "count:words_japanese",
        family: Family::IfBench,
        parameters: &[Parameter::new("N", Kind::Number)],
        checks: "Every `N`th word between white space has a kana or a Chinese character. Numbers and marks are exempt.",
        gamed: "Chinese words pass; a number in each place passes; a text with fewer than `N` words passes.",
        difference: "The published check exempts ASCII marks only: a long dash in the place of a word fails.",
        build: words_japanese,
    },
    Constraint {
        id: "count:keywords_multiple",
        family: Family::IfBench,
        parameters: &[
            Parameter::new("keyword1", Kind::Text),
            Parameter::new("keyword2", Kind::Text),
            Parameter::new("keyword3", Kind::Text),
            Parameter::new("keyword4", Kind::Text),
            Parameter::new("keyword5", Kind::Text),
        ],
        checks: "The five keywords occur exactly once, twice, three, five and seven times, in any case.",
        gamed: "A list of the keywords at the end of the answer.",
        difference: "The published check counts inside longer words: `cat` in `category`. The corrected one counts whole words.",
        build: keywords_multiple,
    },
];

fn word_count_range(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let (least, most) = (arguments.count("min_words")?, arguments.count("max_words")?);
    let within = move |count: usize| (least..=most).contains(&(count as f64));
    match arguments.corrected() {
        true => test(move |view| within(view.read_words().len())),
        false => test(move |view| within(view.runs().len())),
    }
}

fn unique_word_count(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let least = arguments.count("N")?;
    let corrected = arguments.corrected();
    test(move |view| {
        let mut found = HashSet::new();
        if least == 0.0 {
            return true;
        }
        if corrected {
            split(view.lower())
                .map(reading::bare)
                .any(|word| !word.is_empty() && found.insert(word) && found.len() as f64 >= least)
        } else {
            split(view.lower()).any(|word| found.insert(stripped(word)) && found.len() as f64 >= least)
        }
    })
}

const CONJUNCTIONS: [&str; 7] = ["and", "but", "for", "nor", "or", "so", "yet"];

fn conjunctions(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let least = arguments.count("small_n")?;
    let corrected = arguments.corrected();
    test(move |view| {
        let known =
            |word: &str| word.len() <= 3 && CONJUNCTIONS.iter().any(|known| known.eq_ignore_ascii_case(word));
        let mut found = HashSet::new();
        for word in view.words() {
            if corrected {
                let word = reading::bare(word);
                if known(word) {
                    found.insert(lower(word));
                }
            } else if known(stripped(word)) {
                found.insert((*word).into());
            }
        }
        found.len() as f64 >= least
    })
}

/// The names that the instruction lists, sorted.
#[rustfmt::skip]
static NAMES: [&str; 50] = [
    "Abigail", "Alexander", "Amelia", "Andrew", "Aria", "Audrey", "Ava", "Benjamin", "Charlotte", "Chloe",
    "Christopher", "Claire", "Daniel", "David", "Elijah", "Ella", "Emma", "Ethan", "Gabriel", "Grace", "Hannah",
    "Harper", "Isabella", "Jackson", "Jacob", "Jonathan", "Joseph", "Layla", "Leo", "Liam", "Lily", "Lucas", "Mason",
    "Matthew", "Mia", "Nathan", "Nicholas", "Noah", "Nora", "Olivia", "Owen", "Penelope", "Ryan", "Samuel",
    "Scarlett", "Sophia", "Stella", "Thomas", "Victoria", "Zoe",
];

fn person_names(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let least = arguments.count("N")?;
    let corrected = arguments.corrected();
    test(move |view| {
        let mut found = 0_u64;
        let mut look_up = |word: &str| {
            if word.starts_with(|c: char| c.is_ascii_uppercase())
                && let Ok(place) = NAMES.binary_search(&word)
            {
                found |= 1 << place;
            }
        };
        // A name between word boundaries is a whole run of word characters.
        for run in view.runs() {
            match corrected {
                true => run.split(|c| c == '_' || reading::is_unspaced(c)).for_each(&mut look_up),
                false => look_up(run),
            }
        }
        f64::from(found.count_ones()) >= least
    })
}

fn numbers(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let wanted = arguments.count("N")?;
    match arguments.corrected() {
        true => test(move |view| read_numbers(view.text()) as f64 == wanted),
        false => test(move |view| joined_numbers(view.text()) as f64 == wanted),
    }
}

/// Runs of digits after all ASCII marks are taken out.
fn joined_numbers(text: &str) -> usize {
    let mut count = 0;
    let mut inside = false;
    for c in text.chars().filter(|&c| !is_punctuation(c)) {
        let digit = is_decimal(c);
        count += usize::from(digit && !inside);
        inside = digit;
    }
    count
}

/// Runs of digits; a point between two digits and a comma before three of them are part of a number.
fn read_numbers(text: &str) -> usize {
    let mut count = 0;
    let mut rest = text;
    while let Some(start) = rest.find(is_decimal) {
        count += 1;
        rest = rest[start..].trim_start_matches(is_decimal);
        // Groups of three, then a fraction.
        while let Some(after) = rest.strip_prefix(',') {
            let group: Vec<char> = after.chars().take(4).take_while(|&c| is_decimal(c)).collect();
            if group.len() != 3 {
                break;
            }
            rest = after.trim_start_matches(is_decimal);
        }
        if let Some(after) = rest.strip_prefix('.')
            && after.starts_with(is_decimal)
        {
            rest = after.trim_start_matches(is_decimal);
        }
    }
    count
}

fn punctuation(_: &Arguments<'_>) -> Result<Test, ArgumentError> {
    test(|view| {
        let text = view.text();
        // The interrobang does not stand for its parts: its first occurrence is left out.
        let (before, after) = match (text.split_once("?!"), text.split_once("!?")) {
            (Some(parts), _) | (None, Some(parts)) => parts,
            (None, None) if text.contains('‽') => (text, ""),
            (None, None) => return false,
        };
        ['.', ',', '!', '?', ';', ':'].iter().all(|&mark| before.contains(mark) || after.contains(mark))
    })
}

/// The pronouns that count.
#[rustfmt::skip]
static PRONOUNS: [&str; 63] = [
    "all", "any", "anybody", "anyone", "anything", "both", "each", "either", "everybody", "everyone", "everything",
    "he", "her", "hers", "herself", "him", "himself", "his", "i", "it", "its", "itself", "me", "mine", "my", "myself",
    "neither", "nobody", "none", "nothing", "our", "ours", "ourselves", "she", "some", "somebody", "someone",
    "something", "that", "their", "theirs", "them", "themselves", "these", "they", "this", "those", "us", "we", "what",
    "whatever", "which", "whichever", "who", "whoever", "whom", "whomever", "whose", "you", "your", "yours",
    "yourself", "yourselves",
];

static PRONOUN_SET: LazyLock<WordSet> = LazyLock::new(|| WordSet::new(&PRONOUNS));

fn pronouns(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let least = arguments.count("N")?;
    test(move |view| {
        let count = |tokens: &[&str]| tokens.iter().filter(|token| PRONOUN_SET.contains(token)).count();
        // Punkt goes by capitals, so that text in lower case has other sentences and other tokens.
        let slashed = memchr::memchr(b'/', view.text().as_bytes()).is_some();
        let count = match (slashed, view.lower()) {
            (false, same) if same == view.text() => count(view.tokens()),
            (false, changed) => count(&treebank::tokens(changed)),
            (true, text) => count(&treebank::tokens(&text.replace('/', " "))),
        };
        count as f64 >= least
    })
}

fn words_japanese(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let cycle = arguments.count("N")?;
    let corrected = arguments.corrected();
    if cycle == 0.0 {
        return Err(arguments.refused("N", "must be more than 0"));
    }
    test(move |view| {
        let japanese = |c: char| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}');
        view.words().iter().enumerate().all(|(place, word)| {
            let word = if corrected { reading::bare(word) } else { stripped(word) };
            (place + 1) as f64 % cycle != 0.0 || word.chars().all(is_digit) || word.contains(japanese)
        })
    })
}

fn keywords_multiple(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let mut wanted = Vec::new();
    for (name, times) in [("keyword1", 1), ("keyword2", 2), ("keyword3", 3), ("keyword4", 5), ("keyword5", 7)]
    {
        let keyword = strip(arguments.text(name)?);
        wanted.push((lower(keyword).into_owned(), times));
    }
    let corrected = arguments.corrected();
    test(move |view| {
        let text = view.lower();
        wanted.iter().all(|(keyword, times)| {
            let count = match keyword.as_str() {
                "" => text.chars().count() + 1,
                keyword if corrected => reading::find_phrase(text, keyword).count(),
                keyword => memchr::memmem::find_iter(text.as_bytes(), keyword.as_bytes()).count(),
            };
            count == *times
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        assert!(NAMES.is_sorted() && CONJUNCTIONS.is_sorted());
    }

    #[test]
    fn numbers_of_a_reader() {
        for (text, expected) in [
            ("1,234.5", 1),
            ("1,2,3", 3),
            ("1-2", 2),
            ("(1)(2)(3)", 3),
            ("1,000,000 and 3.14.", 2),
            ("1,2345", 2),
            ("none", 0),
            ("٣ ٤", 2),
        ] {
            assert_eq!(read_numbers(text), expected, "{text}");
        }
        assert_eq!(joined_numbers("1,234.5 (1)(2)"), 2);
    }
}
