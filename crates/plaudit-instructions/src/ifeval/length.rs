//! How many words, sentences and paragraphs there are.

use crate::argument::{ArgumentError, Arguments, Kind, Parameter};
use crate::constraint::{Constraint, Family, Test};
use crate::ifeval::keywords::compare;
use crate::text::reading;
use crate::text::view::View;
use plaudit_text::{count_runs, is_space, lower, same_lower, split, strip};

pub(crate) const TABLE: &[Constraint] = &[
    Constraint {
        id: "length_constraints:number_sentences",
        family: Family::IfEval,
        parameters: &[
            Parameter::new("num_sentences", Kind::Number),
            Parameter::new("relation", Kind::Relation),
        ],
        checks: "There are at least, or less than, so many sentences.",
        gamed: "By sentences of one word.",
        difference: "The published checker counts with NLTK's Punkt, which ends a sentence at `e.g.` and `i.e.` and \
            knows neither `。` nor curly quotes. The corrected one counts as a reader does.",
        build: number_sentences,
    },
    Constraint {
        id: "length_constraints:number_words",
        family: Family::IfEval,
        parameters: &[Parameter::new("num_words", Kind::Number), Parameter::new("relation", Kind::Relation)],
        checks: "There are at least, or less than, so many words.",
        gamed: "By repeating words.",
        difference: "The published checker counts the matches of `\\w+`: \"don't\" and \"3.14\" are two words each. \
            The corrected one counts one for each.",
        build: number_words,
    },
    Constraint {
        id: "length_constraints:number_paragraphs",
        family: Family::IfEval,
        parameters: &[Parameter::new("num_paragraphs", Kind::Number)],
        checks: "The divider `***` makes exactly so many paragraphs, none of them blank.",
        gamed: "By paragraphs of one word.",
        difference: "The published checker takes the stars of \"One ***very*** loud word\" for two dividers.",
        build: number_paragraphs,
    },
    Constraint {
        id: "length_constraints:nth_paragraph_first_word",
        family: Family::IfEval,
        parameters: &[
            Parameter::new("num_paragraphs", Kind::Number),
            Parameter::new("nth_paragraph", Kind::Integer),
            Parameter::new("first_word", Kind::Text),
        ],
        checks: "Blank lines make exactly so many paragraphs, and the nth begins with the word.",
        gamed: "By paragraphs of one word.",
        difference: "The published checker counts blank pieces when it looks for the nth, so that a double blank line \
            shifts it; a line with a space in it and CRLF do not end a paragraph; \"Weather:\" is not the word \
            \"weather\". The corrected one sees what a reader sees.",
        build: nth_paragraph_first_word,
    },
];

fn number_sentences(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let limit = arguments.count("num_sentences")?;
    let relation = arguments.relation("relation")?;
    Ok(match arguments.corrected() {
        true => compare(relation, limit, |view| view.read_sentences().len()),
        false => compare(relation, limit, |view| view.sentences().len()),
    })
}

fn number_words(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let limit = arguments.count("num_words")?;
    let relation = arguments.relation("relation")?;
    Ok(match arguments.corrected() {
        true => compare(relation, limit, |view| view.read_words().len()),
        false => compare(relation, limit, |view| count_runs(view.text())),
    })
}

fn number_paragraphs(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let wanted = arguments.count("num_paragraphs")?;
    let corrected = arguments.corrected();
    Ok(Box::new(move |view| paragraphs(view, corrected).is_some_and(|count| count as f64 == wanted)))
}

/// The number of paragraphs that `***` divides, or nothing where one between others is blank.
pub(crate) fn paragraphs(view: &View<'_>, corrected: bool) -> Option<usize> {
    match corrected {
        true => inner_pieces(&reading::divided(view.text())),
        false => inner_pieces(&view.text().split("***").collect::<Vec<_>>()),
    }
}

/// The number of pieces less a blank first and a blank last one; nothing where another is blank.
pub(crate) fn inner_pieces(pieces: &[&str]) -> Option<usize> {
    let mut count = pieces.len();
    for (at, piece) in pieces.iter().enumerate() {
        if piece.chars().all(is_space) {
            if at != 0 && at + 1 != pieces.len() {
                return None;
            }
            count -= 1;
        }
    }
    Some(count)
}

fn nth_paragraph_first_word(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let wanted = arguments.count("num_paragraphs")?;
    let nth = arguments.integer("nth_paragraph")?;
    let word = arguments.text("first_word")?;
    let Some(nth) = usize::try_from(nth).ok().filter(|&nth| nth > 0 && nth as f64 <= wanted) else {
        return Err(arguments.refused("nth_paragraph", "must be from 1 to num_paragraphs"));
    };
    Ok(if arguments.corrected() {
        let word = strip(word).to_owned();
        Box::new(move |view| {
            let paragraphs = reading::paragraphs(view.text());
            paragraphs.len() as f64 == wanted
                && paragraphs.get(nth - 1).is_some_and(|paragraph| {
                    let first = reading::words(paragraph).first().copied();
                    first.is_some_and(|first| {
                        same_lower(first, &word) || same_lower(first, reading::bare(&word))
                    })
                })
        })
    } else {
        let word = lower(word).into_owned();
        Box::new(move |view| {
            let paragraphs: Vec<&str> = view.text().split("\n\n").collect();
            let count = paragraphs.iter().filter(|paragraph| !paragraph.chars().all(is_space)).count();
            nth <= count
                && count as f64 == wanted
                && first_word(paragraphs[nth - 1]).is_some_and(|first| first == word)
        })
    })
}

/// The first word as the published checker cuts it: without quotes before it, up to a mark.
fn first_word(paragraph: &str) -> Option<String> {
    let word = split(paragraph).next()?.trim_start_matches('\'').trim_start_matches('"');
    let end = word.find(['.', ',', '?', '!', '\'', '"']).map_or(word.len(), |end| end);
    Some(word[..end].chars().flat_map(char::to_lowercase).collect())
}
