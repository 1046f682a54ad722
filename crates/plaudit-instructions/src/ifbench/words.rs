//! Constraints on the words themselves: their letters, lengths, syllables and places.

use super::{bare_words, initial, stripped, test, without_marks, words_without_marks};
use crate::argument::{ArgumentError, Arguments, Kind, Parameter};
use crate::constraint::{Constraint, Family, Test};
use crate::text::punkt;
use crate::text::reading;
use crate::text::syllables::syllables;
use crate::text::tagger::first_tag;
use crate::text::treebank;
use crate::text::verbs::starts_with_verb;
use crate::text::view::View;
use plaudit_text::{PUNCTUATION, is_alnum, is_alpha, is_punctuation, lower, same_lower, split, strip};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

pub(super) const TABLE: &[Constraint] = &[
    Constraint {
        id: "words:alphabet",
        family: Family::IfBench,
        parameters: &[],
        checks: "Each word starts with the letter after that of the word before, `a` after `z`. The first starts with any \
                 letter from a to z.",
        gamed: "A single word passes.",
        difference: "The published check takes a typographic quote or a long dash for a letter.",
        build: alphabet,
    },
    Constraint {
        id: "words:vowel",
        family: Family::IfBench,
        parameters: &[],
        checks: "One paragraph with at most three different vowels of a, e, i, o, u.",
        gamed: "Digits, or another script.",
        difference: "",
        build: vowel,
    },
    Constraint {
        id: "words:consonants",
        family: Family::IfBench,
        parameters: &[],
        checks: "Every word has two consonants in a row. `y` is one.",
        gamed: "The same word over and over.",
        difference: "The published check holds marks and numbers against the text: `strong - lamps` fails. The corrected one looks at words with \
                     letters.",
        build: consonants,
    },
    Constraint {
        id: "words:palindrome",
        family: Family::IfBench,
        parameters: &[],
        checks: "At least ten different palindromes of five letters or more.",
        gamed: "Made-up words such as `abcba`.",
        difference: "The published check counts repetitions, numbers and runs of one letter: `aaaaa` ten times passes.",
        build: palindrome,
    },
    Constraint {
        id: "words:prime_lengths",
        family: Family::IfBench,
        parameters: &[],
        checks: "The number of letters of every word is a prime.",
        gamed: "A text of one word of two letters.",
        difference: "The published check knows the primes below 100, so that a word of 101 letters fails; typographic marks count as \
                     letters there.",
        build: prime_lengths,
    },
    Constraint {
        id: "words:start_verb",
        family: Family::IfBench,
        parameters: &[],
        checks: "The first word is a verb.",
        gamed: "`Do` or `Take` before any answer.",
        difference: "The published check asks NLTK's tagger, which takes many imperatives for nouns: `Run to the shop.` fails. The corrected one \
                     accepts a list of verbs as well, where what follows does not make it a noun: `Walk is`.",
        build: start_verb,
    },
    Constraint {
        id: "words:repeats",
        family: Family::IfBench,
        parameters: &[Parameter::new("small_n", Kind::Number)],
        checks: "No word occurs more often than `small_n` times, without regard to case and to ASCII marks.",
        gamed: "Short answers; misspelling a word to use it again.",
        difference: "The published check counts `“pot”` and `pot` as two words, and `don't` and `dont` as one.",
        build: repeats,
    },
    Constraint {
        id: "words:odd_even_syllables",
        family: Family::IfBench,
        parameters: &[],
        checks: "Of two neighbouring words one has an odd and one an even number of syllables, as syllapy counts.",
        gamed: "Two words in turn. A word with a digit counts as even.",
        difference: "The published check counts a long dash as a word of one syllable.",
        build: odd_even_syllables,
    },
    Constraint {
        id: "words:last_first",
        family: Family::IfBench,
        parameters: &[],
        checks: "The last word of each sentence is the first of the next, in any case.",
        gamed: "A single sentence passes.",
        difference: "The published check keeps inner marks on the word: `rain”. Rain, ` fails. The corrected one compares words without marks.",
        build: last_first,
    },
    Constraint {
        id: "words:paragraph_last_first",
        family: Family::IfBench,
        parameters: &[],
        checks: "In each line with words the first and the last word are the same, in any case.",
        gamed: "Lines of one word.",
        difference: "The published check strips the line, not the words: `**Rain** came as **rain**` fails. The corrected one strips the words.",
        build: paragraph_last_first,
    },
    Constraint {
        id: "words:no_consecutive",
        family: Family::IfBench,
        parameters: &[],
        checks: "No two neighbouring words start with the same letter, without regard to case and to ASCII marks.",
        gamed: "Two words in turn.",
        difference: "The published check takes a typographic quote or a long dash for a letter.",
        build: no_consecutive,
    },
    Constraint {
        id: "words:keywords_specific_position",
        family: Family::IfBench,
        parameters: &[
            Parameter::new("keyword", Kind::Text),
            Parameter::new("n", Kind::Integer),
            Parameter::new("m", Kind::Integer),
        ],
        checks: "Word `m` of sentence `n` is the keyword, in any case.",
        gamed: "Filling up with short sentences.",
        difference: "The published check counts NLTK's tokens, so that `can't` and `cannot` are two words, and a negative `m` from the \
                     end, which the corrected one refuses.",
        build: keywords_specific_position,
    },
    Constraint {
        id: "words:words_position",
        family: Family::IfBench,
        parameters: &[Parameter::new("keyword", Kind::Text)],
        checks: "The second word and the second to last are the keyword, in any case.",
        gamed: "A short frame around any text.",
        difference: "The published check counts marks as words, except one at the end: `The kettle is a kettle, friend.` fails. The corrected one \
                     counts words.",
        build: words_position,
    },
];

/// The first letters of the words, in lower case.
fn initials<'v>(view: &'v View<'_>, corrected: bool) -> impl Iterator<Item = char> + 'v {
    view.words().iter().filter_map(move |word| initial(if corrected { reading::bare(word) } else { word }))
}

fn alphabet(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    test(move |view| {
        // The one letter whose lower case has two characters is no letter of the alphabet at the start.
        if !corrected && words_without_marks(view).next().is_some_and(|word| word.starts_with('İ')) {
            return false;
        }
        let mut letters = initials(view, corrected);
        let Some(mut letter) = letters.next().filter(char::is_ascii_lowercase) else { return false };
        letters.all(|next| {
            letter = if letter == 'z' { 'a' } else { char::from(letter as u8 + 1) };
            next == letter
        })
    })
}

fn vowel(_: &Arguments<'_>) -> Result<Test, ArgumentError> {
    test(|view| {
        if strip(view.text()).contains('\n') {
            return false;
        }
        let lower = view.lower().as_bytes();
        b"aeiou".iter().filter(|&&vowel| memchr::memchr(vowel, lower).is_some()).count() <= 3
    })
}

fn is_consonant(byte: u8) -> bool {
    byte.is_ascii_lowercase() && !b"aeiou".contains(&byte)
}

fn consonants(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    test(move |view| {
        let clustered =
            |word: &str| word.as_bytes().windows(2).any(|pair| pair.iter().all(|&byte| is_consonant(byte)));
        let exempt = |word: &str| corrected && !word.chars().any(is_alpha);
        split(view.lower()).all(|word| clustered(word) || exempt(word))
    })
}

fn is_palindrome(word: &str) -> bool {
    word.chars().nth(4).is_some() && word.chars().zip(word.chars().rev()).all(|(one, other)| one == other)
}

fn palindrome(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    if arguments.corrected() {
        return test(|view| {
            let mut found = HashSet::new();
            let letters =
                |word: &str| word.chars().all(is_alpha) && word.chars().any(|c| !word.starts_with(c));
            let mut palindromes =
                view.lower().split(|c| !is_alpha(c)).filter(|word| is_palindrome(word) && letters(word));
            palindromes.any(|word| found.insert(word) && found.len() >= 10)
        });
    }
    test(|view| {
        let palindromes = split(view.lower()).filter(|word| is_palindrome(&without_marks(word)));
        palindromes.take(10).count() == 10
    })
}

fn is_prime(number: usize) -> bool {
    number > 1
        && (2..)
            .take_while(|divisor| divisor * divisor <= number)
            .all(|divisor| !number.is_multiple_of(divisor))
}

fn prime_lengths(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    if arguments.corrected() {
        return test(|view| {
            let length = |word: &str| word.chars().filter(|&c| reading::is_word_part(c)).count();
            let words = view.words().iter().flat_map(|word| word.split(reading::is_wide_mark));
            words.map(length).all(|length| length == 0 || is_prime(length))
        });
    }
    test(|view| {
        let length = |word: &str| word.chars().filter(|&c| !is_punctuation(c)).count();
        let known = |length| length == 0 || (length < 100 && is_prime(length));
        view.words().iter().all(|word| known(length(word)))
    })
}

fn start_verb(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    test(move |view| {
        let is_verb = |tokens: &[&str]| first_tag(tokens).is_some_and(|tag| tag.contains("VB"));
        if !corrected {
            return is_verb(&first_tokens(view, false));
        }
        // Marks before the first word, such as quotes and bullets, are left out; those after it tell the tagger much.
        let words = first_tokens(view, true);
        // A heading is a title, and its word a noun; so is a label: `Question:`, `Level 1:`.
        let number = |token: &str| token.chars().all(|c| c.is_ascii_digit());
        let label = match &*words {
            [_, ":", ..] => true,
            [_, place, ":", ..] => number(place),
            _ => false,
        };
        let noun = label || strip(view.text()).starts_with('#');
        is_verb(&words)
            || !noun && words.first().is_some_and(|first| starts_with_verb(first, words.get(1).copied()))
    })
}

/// Of a long text this much is cut into sentences and tokens first.
const START: usize = 4096;
/// The tokens that the tagger looks at, and as many again. Where a sentence ends, and so whether a full stop is a token of
/// its own, is decided by the next word, so that a cut after these leaves the first ones as they are.
const ENOUGH: usize = 6;

/// The first three tokens, or more: the tagger looks no further. With `from_word` they begin at the first word.
fn first_tokens<'a>(view: &View<'a>, from_word: bool) -> Vec<&'a str> {
    let collect = |sentences: &[&'a str]| {
        let mut found = Vec::new();
        let mut begun = !from_word;
        for sentence in sentences {
            let tokens = treebank::tokens_of(&[sentence]).into_iter().filter(|token| {
                begun |= token.chars().any(is_alnum);
                begun
            });
            found.extend(tokens.take(ENOUGH));
            if found.len() >= ENOUGH {
                break;
            }
        }
        found
    };
    if let Some(end) = view.text().char_indices().map(|(at, _)| at).find(|&at| at > START) {
        let found = collect(&punkt::sentences(&view.text()[..end]));
        if found.len() >= ENOUGH {
            return found;
        }
    }
    collect(view.sentences())
}

fn repeats(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let most = arguments.count("small_n")?;
    let corrected = arguments.corrected();
    test(move |view| {
        let mut counts = HashMap::new();
        let word = |word| if corrected { Cow::Borrowed(reading::bare(word)) } else { without_marks(word) };
        split(view.lower()).map(word).filter(|word| !word.is_empty()).all(|word| {
            let count = counts.entry(word).or_insert(0_u32);
            *count += 1;
            f64::from(*count) <= most
        })
    })
}

fn odd_even_syllables(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    test(move |view| {
        let mut before = None;
        let mut alternates = |word: &str| {
            let parity = syllables(word) % 2;
            before.replace(parity) != Some(parity)
        };
        match corrected {
            true => bare_words(view).all(|word| alternates(&without_marks(word))),
            false => words_without_marks(view).all(|word| alternates(&word)),
        }
    })
}

fn last_first(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    if arguments.corrected() {
        return test(|view| {
            let mut before: Option<&str> = None;
            let sentences = view.read_sentences().iter().map(|sentence| reading::words(sentence));
            sentences.filter(|words| !words.is_empty()).all(|words| {
                let chained = before.is_none_or(|last| same_lower(last, words[0]));
                before = words.last().copied();
                chained
            })
        });
    }
    test(|view| {
        let around = |c: char| c == ' ' || is_punctuation(c);
        view.sentences().windows(2).all(|pair| {
            let last = split(pair[0].trim_end_matches(around)).last();
            let first = split(pair[1].trim_start_matches(around)).next();
            matches!((last, first), (Some(last), Some(first)) if same_lower(last, first))
        })
    })
}

fn paragraph_last_first(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    test(move |view| {
        view.text().split('\n').all(|line| {
            if corrected {
                let mut words = split(line).map(reading::bare).filter(|word| !word.is_empty());
                let first = words.next();
                return words.last().is_none_or(|last| first.is_some_and(|first| same_lower(first, last)));
            }
            let mut words = split(stripped(strip(line)));
            let first = words.next();
            words.last().is_none_or(|last| first.is_some_and(|first| same_lower(first, last)))
        })
    })
}

fn no_consecutive(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    test(move |view| {
        let mut before = None;
        initials(view, corrected).all(|letter| before.replace(letter) != Some(letter))
    })
}

fn keywords_specific_position(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let keyword = arguments.text("keyword")?;
    if keyword.is_empty() {
        return Err(arguments.refused("keyword", "must not be empty"));
    }
    let keyword = lower(strip(keyword)).into_owned();
    let place = |name, least| {
        let place = arguments.integer(name)?;
        let good = place >= least && place != 0;
        if good { Ok(place) } else { Err(arguments.refused(name, "must be at least 1")) }
    };
    let sentence = place("n", 1)?;
    let corrected = arguments.corrected();
    let word = place("m", if corrected { 1 } else { i64::MIN })?;
    test(move |view| {
        let Ok(sentence) = usize::try_from(sentence - 1) else { return false };
        if corrected {
            let sentences = view.read_sentences();
            let words = sentences.get(sentence).map_or(Vec::new(), |sentence| reading::words(sentence));
            return usize::try_from(word - 1)
                .is_ok_and(|at| words.get(at).is_some_and(|word| lower(word) == keyword));
        }
        let Some(sentence) = view.sentences().get(sentence) else { return false };
        let mut tokens = treebank::tokens(sentence);
        tokens.retain(|token| token.chars().any(is_alnum));
        // Python counts a negative index from the end.
        let at = word - 1;
        let at = if at < 0 { at.checked_add_unsigned(tokens.len() as u64) } else { Some(at) };
        let found = at.and_then(|at| usize::try_from(at).ok()).and_then(|at| tokens.get(at));
        found.is_some_and(|token| lower(token) == keyword)
    })
}

fn words_position(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let keyword = lower(strip(arguments.text("keyword")?)).into_owned();
    if arguments.corrected() {
        return test(move |view| {
            let words: Vec<&str> = bare_words(view).collect();
            let last = words.len().checked_sub(2).and_then(|at| words.get(at));
            [words.get(1), last].into_iter().all(|word| word.is_some_and(|word| lower(word) == keyword))
        });
    }
    test(move |view| {
        let tokens = view.tokens();
        let [.., last] = tokens else { return false };
        let from_end = if PUNCTUATION.contains(last) { 3 } else { 2 };
        let back = tokens.len().checked_sub(from_end).and_then(|at| tokens.get(at));
        [tokens.get(1), back].into_iter().all(|token| token.is_some_and(|token| lower(token) == keyword))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes() {
        let primes: Vec<usize> = (0..110).filter(|&number| is_prime(number)).collect();
        assert_eq!(primes.len(), 29);
        assert_eq!(primes.last(), Some(&109));
    }

    #[test]
    fn labels_are_no_verbs() {
        let verb = |text: &str| {
            let check =
                crate::parse("words:start_verb", &serde_json::Value::Null, crate::Semantics::Corrected)
                    .unwrap();
            crate::verdicts(text, &[check], crate::Mode::Strict)[0]
        };
        assert!(verb("* **Dive** into the story.") && verb("*** *** *** \"Run home.\""));
        assert!(
            !verb("Question: Which one?") && !verb("Level 1: The ladder") && !verb("**Title: The Rift**")
        );
    }

    #[test]
    fn dotted_capital_starts_no_alphabet() {
        let check =
            crate::parse("words:alphabet", &serde_json::Value::Null, crate::Semantics::Published).unwrap();
        assert_eq!(crate::verdicts("İ", &[check], crate::Mode::Strict), [false]);
    }

    #[test]
    fn palindromes() {
        assert!(is_palindrome("kayak") && is_palindrome("été·été"));
        assert!(!is_palindrome("noon") && !is_palindrome("kayaks"));
    }
}
