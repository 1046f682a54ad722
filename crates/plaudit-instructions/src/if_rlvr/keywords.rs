//! Keywords: once, so many times, not at all, at a place.

use crate::argument::{ArgumentError, Arguments, Kind, Parameter};
use crate::constraint::{Constraint, Family, Test};
use crate::ifeval::keywords::frequency;
use crate::keyword::Keyword;
use crate::text::reading;
use crate::text::treebank;
use plaudit_text::{same_lower, split, strip};

pub(crate) const TABLE: &[Constraint] = &[
    Constraint {
        id: "keywords:word_once",
        family: Family::IfRlvr,
        parameters: &[Parameter::new("keyword", Kind::Text)],
        checks: "The keyword is there.",
        gamed: "By the keyword alone.",
        difference: "The instruction says \"Include keyword\", but the published checker wants exactly one match of a \
            regular expression, also inside longer words.",
        build: word_once,
    },
    Constraint {
        id: "keywords:word_count_different_numbers",
        family: Family::IfRlvr,
        parameters: &[
            Parameter::new("keyword", Kind::Text),
            Parameter::new("frequency", Kind::Number),
            Parameter::new("relation", Kind::Relation),
        ],
        checks: "The keyword is there exactly so many times.",
        gamed: "By repeating the keyword at the end.",
        difference: "The instruction says \"should appear N times\", but the published checker compares by a relation \
            that the instruction does not tell: with `less than` the right number fails.",
        build: word_count_different_numbers,
    },
    Constraint {
        id: "keywords:exclude_word_harder",
        family: Family::IfRlvr,
        parameters: &[Parameter::new("keyword", Kind::Text), Parameter::optional("instruction", Kind::Text)],
        checks: "The keyword is not there.",
        gamed: "By spelling it with spaces or with letters of another script.",
        difference: "The published checker sees the keyword only between two spaces and in the same case: \"Pebble \
            first.\" and \"We saw a pebble.\" pass.",
        build: exclude_word_harder,
    },
    Constraint {
        id: "count:count_increment_word",
        family: Family::IfRlvr,
        parameters: &[Parameter::new("keyword1", Kind::Text), Parameter::new("keyword2", Kind::Text)],
        checks: "The first keyword is there once, the second twice.",
        gamed: "By the three words alone.",
        difference: "The published checker takes keywords for regular expressions and finds `cat` inside \"category\".",
        build: count_increment_word,
    },
    Constraint {
        id: "keywords:keyword_specific_position",
        family: Family::IfRlvr,
        parameters: &[
            Parameter::new("keyword", Kind::Text),
            Parameter::new("n", Kind::Integer),
            Parameter::new("m", Kind::Integer),
        ],
        checks: "The keyword is word `m` of sentence `n`.",
        gamed: "By sentences that make no sense.",
        difference: "The published checker counts commas and quotation marks as words: in \"Now, the kettle sings.\" \
            the third is \"the\".",
        build: keyword_specific_position,
    },
    Constraint {
        id: "keywords:palindrome",
        family: Family::IfRlvr,
        parameters: &[],
        checks: "There is a palindrome: a word of at least two letters, or a whole sentence.",
        gamed: "By one such word, whatever it means.",
        difference: "The published checker looks at the pieces between spaces as they stand: \"Level\" and \"noon.\" \
            are no palindromes, \"a\", \".\" and \"---\" are.",
        build: palindrome,
    },
    Constraint {
        id: "keywords:start_end",
        family: Family::IfRlvr,
        parameters: &[],
        checks: "The first and the last word are the same, and nothing follows the last, not even a full stop.",
        gamed: "By two words alone.",
        difference: "The published checker compares tokens of NLTK: \". rain .\" passes, \"don't do it don't\" fails.",
        build: start_end,
    },
    Constraint {
        id: "keywords:no_adjacent_consecutive",
        family: Family::IfRlvr,
        parameters: &[],
        checks: "No word begins with the letter that follows the first letter of the word before it.",
        gamed: "By repeating one word.",
        difference: "The published checker looks at the first character, so that a quotation mark hides the letter: \
            `apple \"banana\"` passes.",
        build: no_adjacent_consecutive,
    },
];

fn word_once(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let keyword = Keyword::argument(arguments, "keyword")?;
    Ok(match arguments.corrected() {
        true => Box::new(move |view| keyword.is_in(view)),
        false => Box::new(move |view| keyword.count(view) == 1),
    })
}

fn word_count_different_numbers(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    if !arguments.corrected() {
        return frequency(arguments);
    }
    let keyword = Keyword::argument(arguments, "keyword")?;
    let wanted = arguments.count("frequency")?;
    arguments.relation("relation")?;
    Ok(Box::new(move |view| keyword.count(view) as f64 == wanted))
}

fn exclude_word_harder(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let given = arguments.text("keyword")?;
    if given.is_empty() {
        return Err(arguments.refused("keyword", "must not be empty"));
    }
    if arguments.corrected() {
        let keyword = Keyword::argument(arguments, "keyword")?;
        return Ok(Box::new(move |view| !keyword.is_in(view)));
    }
    let keyword = format!(" {} ", strip(given));
    Ok(Box::new(move |view| memchr::memmem::find(view.text().as_bytes(), keyword.as_bytes()).is_none()))
}

fn count_increment_word(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let first = Keyword::argument(arguments, "keyword1")?;
    let second = Keyword::argument(arguments, "keyword2")?;
    Ok(Box::new(move |view| first.count(view) == 1 && second.count(view) == 2))
}

/// A text, or the first of a list of texts, trimmed and not empty.
pub(super) fn text_or_first<'a>(arguments: &Arguments<'a>, name: &str) -> Result<&'a str, ArgumentError> {
    let given = arguments.required(name)?;
    let first = given.as_array().map_or(Some(given), |list| list.first());
    let Some(first) = first else { return Err(arguments.refused(name, "must not be empty")) };
    match first.as_str() {
        Some("") if given.is_string() => Err(arguments.refused(name, "must not be empty")),
        Some(text) => Ok(strip(text)),
        None => Err(arguments.mistyped(name, Kind::Text)),
    }
}

fn keyword_specific_position(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let keyword = text_or_first(arguments, "keyword")?.to_owned();
    let place = |name: &str| match usize::try_from(arguments.integer(name)?) {
        Ok(place) if place > 0 => Ok(place),
        _ => Err(arguments.refused(name, "must be 1 or more")),
    };
    let (sentence, word) = (place("n")?, place("m")?);
    Ok(match arguments.corrected() {
        true => Box::new(move |view| {
            let words = view.read_sentences().get(sentence - 1).map(|sentence| reading::words(sentence));
            words.is_some_and(|words| words.get(word - 1).is_some_and(|word| *word == keyword))
        }),
        false => Box::new(move |view| {
            let tokens = view.split_sentences().get(sentence - 1).map(treebank::tokens);
            tokens.is_some_and(|tokens| tokens.get(word - 1).is_some_and(|token| *token == keyword))
        }),
    })
}

fn palindrome(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    if !arguments.corrected() {
        return Ok(Box::new(|view| split(view.text()).any(|word| word.chars().eq(word.chars().rev()))));
    }
    Ok(Box::new(|view| {
        let mut letters = Letters::default();
        view.read_words().iter().any(|word| letters.read_both_ways(word, 2))
            || view.read_sentences().iter().any(|sentence| letters.read_both_ways(sentence, 5))
    }))
}

/// Letters and numbers in lower case, each with the accents that belong to it. The memory is used again for the next text.
#[derive(Default)]
struct Letters {
    chars: Vec<char>,
    /// Where each letter begins.
    starts: Vec<usize>,
}

impl Letters {
    /// Whether the letters of a text, at least so many, are the same from both ends.
    fn read_both_ways(&mut self, text: &str, least: usize) -> bool {
        if text.is_ascii() {
            let letters =
                || text.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase());
            return letters().zip(letters().rev()).all(|(left, right)| left == right)
                && letters().count() >= least
                && letters().any(|byte| byte.is_ascii_alphabetic());
        }
        self.read(text);
        let count = self.starts.len();
        count >= least
            && self.chars.iter().any(|c| c.is_alphabetic())
            && (0..count / 2).all(|at| self.letter(at) == self.letter(count - 1 - at))
    }

    fn read(&mut self, text: &str) {
        self.chars.clear();
        self.starts.clear();
        for c in text.chars().filter(|c| reading::is_word_part(*c)) {
            if self.starts.is_empty() || !reading::is_mark(c) {
                self.starts.push(self.chars.len());
            }
            self.chars.extend(c.to_lowercase());
        }
    }

    fn letter(&self, at: usize) -> &[char] {
        let end = self.starts.get(at + 1).map_or(self.chars.len(), |end| *end);
        &self.chars[self.starts[at]..end]
    }
}

fn start_end(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    if !arguments.corrected() {
        return Ok(Box::new(|view| {
            // A text that ends with a mark has a mark as its last token.
            let text = strip(view.text());
            if text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.ends_with(['.', '?', '!']) {
                return false;
            }
            match view.tokens() {
                [first, .., last] => same_lower(first, last),
                _ => false,
            }
        }));
    }
    Ok(Box::new(|view| {
        let same = match view.read_words() {
            [first, .., last] => same_lower(first, last),
            _ => false,
        };
        same && strip(view.text()).ends_with(reading::is_word_part)
    }))
}

fn no_adjacent_consecutive(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let follows = |left: char, right: char| u32::from(right) == u32::from(left) + 1;
    if !arguments.corrected() {
        return Ok(Box::new(move |view| {
            let mut firsts = split(view.text()).filter_map(|word| word.chars().next());
            let mut left = firsts.next();
            firsts.all(|right| {
                let before = left.replace(right);
                // The one letter whose lower case has two characters fails the check.
                let failing = right == 'İ' || before == Some('İ');
                !failing && !before.is_some_and(|left| follows(lower_char(left), lower_char(right)))
            })
        }));
    }
    Ok(Box::new(move |view| {
        let first = |word: &str| word.chars().find(|c| c.is_alphabetic()).map(lower_char);
        view.read_words().windows(2).all(|pair| match (first(pair[0]), first(pair[1])) {
            (Some(left), Some(right)) => {
                !(left.is_lowercase() && right.is_lowercase() && follows(left, right))
            }
            _ => true,
        })
    }))
}

fn lower_char(c: char) -> char {
    if c.is_ascii() { c.to_ascii_lowercase() } else { c.to_lowercase().next().map_or(c, |lower| lower) }
}
