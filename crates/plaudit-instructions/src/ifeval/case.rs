//! Capital and small letters.

use crate::argument::{ArgumentError, Arguments, Kind, Parameter};
use crate::constraint::{Constraint, Family, Test};
use crate::ifeval::keywords::compare;
use crate::ifeval::language::may_be_english;
use crate::text::treebank::tokens_of_one;
use crate::text::view::View;
use plaudit_text::{is_lower, is_upper};

pub(crate) const TABLE: &[Constraint] = &[
    Constraint {
        id: "change_case:capital_word_frequency",
        family: Family::IfEval,
        parameters: &[
            Parameter::new("capital_frequency", Kind::Number),
            Parameter::new("capital_relation", Kind::Relation),
        ],
        checks: "At least, or less than, so many words are in capital letters.",
        gamed: "By a line of abbreviations.",
        difference: "The published checker counts the tokens of NLTK, in which \"DON'T\" and \"CANNOT\" are two each.",
        build: capital_word_frequency,
    },
    Constraint {
        id: "change_case:english_capital",
        family: Family::IfEval,
        parameters: &[],
        checks: "The response is in English and in capital letters.",
        gamed: "By a single word in capitals.",
        difference: "The published checker asks langdetect, which takes \"GO HOME NOW\" for another language. \
            The corrected one is content where a few words may be English.",
        build: english_capital,
    },
    Constraint {
        id: "change_case:english_lowercase",
        family: Family::IfEval,
        parameters: &[],
        checks: "The response is in English and in small letters.",
        gamed: "By a single word in small letters.",
        difference: "The published checker asks langdetect, which takes \"hi all\" for another language. The corrected one is \
            content where a few words may be English.",
        build: english_lowercase,
    },
];

fn capital_word_frequency(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let limit = arguments.number("capital_frequency")?;
    let relation = arguments.relation("capital_relation")?;
    Ok(match arguments.corrected() {
        true => {
            compare(relation, limit, |view| view.read_words().iter().filter(|word| is_upper(word)).count())
        }
        false => compare(relation, limit, capital_tokens),
    })
}

/// The tokens in capital letters. A text in which a small letter follows every capital has none, whatever its tokens are.
fn capital_tokens(view: &View<'_>) -> usize {
    let may_be_capital = |text: &str| {
        // Without a branch, so that many bytes are looked at together.
        let bytes = text.as_bytes();
        let pairs = bytes.iter().zip(bytes.get(1..).map_or(&[][..], |rest| rest));
        let found = pairs.fold(0, |found, (capital, next)| {
            found | (u8::from(capital.is_ascii_uppercase()) & u8::from(!next.is_ascii_lowercase()))
        });
        found != 0 || !text.is_ascii() || bytes.last().is_some_and(u8::is_ascii_uppercase)
    };
    let count = |tokens: &[&str]| tokens.iter().filter(|token| is_upper(token)).count();
    if !may_be_capital(view.text()) {
        return 0;
    }
    if let Some(tokens) = view.tokens_if_known() {
        return count(tokens);
    }
    let sentences = view.sentences().iter().filter(|sentence| may_be_capital(sentence));
    sentences.map(|sentence| count(&tokens_of_one(sentence))).sum()
}

fn english_capital(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    Ok(english(arguments, is_upper))
}

fn english_lowercase(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    Ok(english(arguments, is_lower))
}

fn english(arguments: &Arguments<'_>, cased: fn(&str) -> bool) -> Test {
    let corrected = arguments.corrected();
    Box::new(move |view| {
        cased(view.text())
            && match corrected {
                true => may_be_english(view.lower()),
                false => view.language().is_none_or(|language| language == "en"),
            }
    })
}
