//! Two paragraphs, and three of a given size.

use crate::argument::{ArgumentError, Arguments, Kind, Parameter};
use crate::constraint::{Constraint, Family, Test};
use crate::ifeval::length::{inner_pieces, paragraphs};
use crate::text::{reading, splitter, treebank};
use plaudit_text::is_space;

pub(crate) const TABLE: &[Constraint] = &[
    Constraint {
        id: "paragraphs:paragraphs",
        family: Family::IfRlvr,
        parameters: &[],
        checks: "The divider `***` makes two paragraphs.",
        gamed: "By paragraphs of one word.",
        difference: "As `length_constraints:number_paragraphs`: the published checker takes `***bold italics***` for \
            dividers.",
        build: by_stars,
    },
    Constraint {
        id: "paragraphs:paragraphs2",
        family: Family::IfRlvr,
        parameters: &[],
        checks: "Blank lines make two paragraphs.",
        gamed: "By paragraphs of one word.",
        difference: "The published checker does not know CRLF, and several blank lines before the first paragraph fail.",
        build: by_blank_lines,
    },
    Constraint {
        id: "count:counting_composition",
        family: Family::IfRlvr,
        parameters: &[Parameter::new("n_sent", Kind::Number), Parameter::new("n_words", Kind::Number)],
        checks: "There are three paragraphs with `* * *` between them, each with exactly so many sentences, each of \
            exactly so many words.",
        gamed: "By sentences that make no sense.",
        difference: "The published checker counts a full stop as a word, so that sentences of three words pass for \
            four and the right ones fail, and it knows `***` alone as a divider.",
        build: counting_composition,
    },
];

fn by_stars(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    Ok(Box::new(move |view| paragraphs(view, corrected) == Some(2)))
}

fn by_blank_lines(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    Ok(match arguments.corrected() {
        true => Box::new(|view| reading::paragraphs(view.text()).len() == 2),
        false => Box::new(|view| inner_pieces(&view.text().split("\n\n").collect::<Vec<_>>()) == Some(2)),
    })
}

/// A number that is not 0. Anything else that is given equals no count in the published checker.
fn size(arguments: &Arguments<'_>, name: &str) -> Result<f64, ArgumentError> {
    let given = arguments.required(name)?;
    match given.as_f64() {
        Some(size) if size != 0.0 => Ok(size),
        None if !arguments.corrected() && given.as_str() != Some("") => Ok(f64::NAN),
        None => Err(arguments.mistyped(name, Kind::Number)),
        Some(_) => Err(arguments.refused(name, "must not be 0")),
    }
}

fn counting_composition(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let (sentences, words) = (size(arguments, "n_sent")?, size(arguments, "n_words")?);
    if arguments.corrected() {
        return Ok(Box::new(move |view| {
            let pieces = reading::divided(view.text());
            inner_pieces(&pieces) == Some(3)
                && pieces.iter().filter(|piece| !piece.chars().all(is_space)).all(|piece| {
                    let found = reading::sentences(piece);
                    found.len() as f64 == sentences
                        && found.iter().all(|sentence| reading::words(sentence).len() as f64 == words)
                })
        }));
    }
    Ok(Box::new(move |view| {
        let pieces: Vec<&str> = view.text().split("***").collect();
        inner_pieces(&pieces) == Some(3)
            && pieces.iter().all(|piece| {
                let found = splitter::sentences(piece);
                found.len() as f64 == sentences
                    && found.iter().all(|sentence| treebank::tokens(sentence).len() as f64 == words)
            })
    }))
}
