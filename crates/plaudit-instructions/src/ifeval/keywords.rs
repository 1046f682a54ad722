//! Words and letters that must, or must not, be there.

use crate::argument::{ArgumentError, Arguments, Kind, Parameter, Relation};
use crate::constraint::{Constraint, Family, Test};
use crate::keyword::Keyword;
use crate::text::view::View;
use plaudit_text::lower;

pub(crate) const TABLE: &[Constraint] = &[
    Constraint {
        id: "keywords:existence",
        family: Family::IfEval,
        parameters: &[Parameter::new("keywords", Kind::Texts)],
        checks: "Every keyword is in the response, in upper or lower case.",
        gamed: "By listing the keywords without a sentence around them.",
        difference: "The published checker takes a keyword for a regular expression and finds it inside longer words: \
            `art` is found in \"party\", `C++` in \"plain C\", and `(note` cannot be checked. The corrected one searches for the \
            words themselves.",
        build: existence,
    },
    Constraint {
        id: "keywords:frequency",
        family: Family::IfEval,
        parameters: &[
            Parameter::new("keyword", Kind::Text),
            Parameter::new("frequency", Kind::Number),
            Parameter::new("relation", Kind::Relation),
        ],
        checks: "The keyword is there at least, or less than, so many times.",
        gamed: "By repeating the keyword at the end.",
        difference: "As `keywords:existence`: \"A concatenated category\" has `cat` twice in the published checker.",
        build: frequency,
    },
    Constraint {
        id: "keywords:forbidden_words",
        family: Family::IfEval,
        parameters: &[Parameter::new("forbidden_words", Kind::Texts)],
        checks: "None of the words is there, in upper or lower case.",
        gamed: "By spelling a word with spaces or with letters of another script.",
        difference: "The published checker demands a boundary of a word at both ends and so misses `.net` in \"Use \
            .net here.\" and 散步 in 我们散步吧. The corrected one finds both.",
        build: forbidden_words,
    },
    Constraint {
        id: "keywords:letter_frequency",
        family: Family::IfEval,
        parameters: LETTER,
        checks: "The letter is there at least, or less than, so many times, in upper or lower case.",
        gamed: "By a line of that letter alone.",
        difference: "Where the letter is a sign such as `#`, the published checker draws one of a to z at random in every \
            run; the published check draws as well, and always the same one for a sign. The corrected one counts the sign \
            itself, and letters such as `é`.",
        build: letter_frequency,
    },
    Constraint {
        id: "punctuation:no_comma",
        family: Family::IfEval,
        parameters: &[],
        checks: "There is no comma of any script.",
        gamed: "By sentences that need none.",
        difference: "The published checker knows the comma of ASCII alone: \"今天，很好。\" passes.",
        build: no_comma,
    },
];

/// The arguments of constraints about one letter.
pub(crate) const LETTER: &[Parameter] = &[
    Parameter::new("letter", Kind::Text),
    Parameter::new("let_frequency", Kind::Number),
    Parameter::new("let_relation", Kind::Relation),
];

/// A list of keywords. Where a text stands instead, the published checkers take each of its letters for one.
fn list<'a>(arguments: &Arguments<'a>, name: &str) -> Result<Vec<&'a str>, ArgumentError> {
    let list = match arguments.required(name)?.as_str() {
        Some(text) if !arguments.corrected() => {
            text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect()
        }
        _ => arguments.texts(name)?,
    };
    if list.is_empty() { Err(arguments.refused(name, "must not be empty")) } else { Ok(list) }
}

fn existence(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let list = list(arguments, "keywords")?;
    let keywords = list
        .into_iter()
        .map(|word| Keyword::new(arguments, "keywords", word))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(move |view| keywords.iter().all(|keyword| keyword.is_in(view))))
}

/// Also of `keywords:word_count_different_numbers` in the published form.
pub(crate) fn frequency(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let keyword = Keyword::argument(arguments, "keyword")?;
    let limit = arguments.count("frequency")?;
    let relation = arguments.relation("relation")?;
    Ok(Box::new(move |view| relation.holds(keyword.count(view), limit)))
}

fn forbidden_words(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let list = list(arguments, "forbidden_words")?;
    let words = list
        .into_iter()
        .map(|word| Keyword::bounded(arguments, "forbidden_words", word))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(move |view| !words.iter().any(|word| word.is_in(view))))
}

/// Also of `letters:letter_counting2`.
pub(crate) fn letter_frequency(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let given = arguments.text("letter")?;
    let letter = lower(given).into_owned();
    let letter = match (given.chars().count(), letter.as_bytes()) {
        (1, [b'a'..=b'z']) => letter,
        (1, _) if arguments.corrected() => letter,
        (1, [sign]) if sign.is_ascii() => drawn(*sign).to_string(),
        _ => return Err(arguments.refused("letter", "must be one letter")),
    };
    let limit = arguments.count("let_frequency")?;
    let relation = arguments.relation("let_relation")?;
    Ok(Box::new(move |view| relation.holds(count_letter(view, &letter), limit)))
}

/// The letter that stands for a sign. The published checkers draw one anew in every run; here a sign always has the same.
fn drawn(sign: u8) -> char {
    // One step of a multiplicative generator, seeded with the sign.
    let number = u32::from(sign).wrapping_mul(2_654_435_761) >> 16;
    char::from(b'a' + (number % 26) as u8)
}

fn count_letter(view: &View<'_>, letter: &str) -> usize {
    match letter.as_bytes() {
        [byte] => memchr::memchr_iter(*byte, view.lower().as_bytes()).count(),
        letter => memchr::memmem::find_iter(view.lower().as_bytes(), letter).count(),
    }
}

fn no_comma(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    Ok(Box::new(move |view| {
        memchr::memchr(b',', view.text().as_bytes()).is_none()
            && !(corrected && !view.is_ascii() && view.text().chars().any(is_comma))
    }))
}

/// A comma beyond ASCII: full-width, Arabic, ideographic and the small and vertical forms.
fn is_comma(c: char) -> bool {
    matches!(c, '，' | '،' | '、' | '︐' | '︑' | '﹐' | '﹑' | '､' | '՝' | '߸' | '፣' | '᠂' | '⹁')
}

/// Holds a count of something against `N` and `relation` under other names.
pub(crate) fn compare(
    relation: Relation,
    limit: f64,
    count: impl Fn(&View<'_>) -> usize + Send + Sync + 'static,
) -> Test {
    Box::new(move |view| relation.holds(count(view), limit))
}
