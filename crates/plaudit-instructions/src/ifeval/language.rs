//! The language of the response.

use crate::argument::{ArgumentError, Arguments, Kind, Parameter};
use crate::constraint::{Constraint, Family, Test};
use crate::text::common_words::{is_common, most_common};
use crate::text::langdetect;
use crate::text::language_share::{certain_language_share, language_share};
use crate::text::reading;
use plaudit_text::{lower, split};

pub(crate) const TABLE: &[Constraint] = &[Constraint {
    id: "language:response_language",
    family: Family::IfEval,
    parameters: &[Parameter::new("language", Kind::Text)],
    checks: "The response is in the language, and no part of it in another.",
    gamed: "By a response without words, which is in any language.",
    difference: "The published checker asks langdetect for the likeliest language of the whole: \"Oui, merci.\" is \
        not French there, and half a text in another language passes. The corrected one looks at the words line by line and \
        leaves out code and addresses. It also knows the languages that IFEval does not, such as `zh-cn`.",
    build: response_language,
}];

/// The languages that IFEval names. Another one is an error of its checker.
const IFEVAL: [&str; 30] = [
    "ar", "bg", "bn", "de", "en", "es", "fa", "fi", "fr", "gu", "he", "hi", "it", "ja", "kn", "ko", "ml",
    "mr", "ne", "pa", "pl", "pt", "ru", "sw", "ta", "te", "th", "uk", "ur", "vi",
];

/// The other languages that langdetect has a profile of, and Chinese of either kind.
const MORE: [&str; 26] = [
    "af", "ca", "cs", "cy", "da", "el", "et", "hr", "hu", "id", "lt", "lv", "mk", "nl", "no", "ro", "sk",
    "sl", "so", "sq", "sv", "tl", "tr", "zh", "zh-cn", "zh-tw",
];

/// What share of the words must be in the language. The rest are names and loan words that look like another one.
const ENOUGH: f64 = 0.8;

/// A text of so few words is asked for common words of the language first.
const FEW_WORDS: usize = 6;

/// Of so few words n-grams say nothing that can be relied on.
const FEW_FOR_NGRAMS: usize = 12;

/// Of a text of more bytes n-grams are believed.
const MAX_DOUBTED: usize = 4096;

/// The first letter beyond those of Latin and its extensions A and B.
const LATIN_END: char = '\u{250}';

/// Whether a text is in the language, as far as its words can be told.
pub(crate) fn is_in_language(text: &str, language: &str) -> bool {
    let words = if split(text).nth(FEW_WORDS).is_none() { reading::words(text) } else { Vec::new() };
    // Commas part words where no space does.
    let few = words.len() <= FEW_WORDS && split(text).nth(FEW_WORDS).is_none();
    if few && !words.is_empty() {
        let common = words.iter().filter(|word| is_common(&lower(word), language) == Some(true)).count();
        if 2 * common >= words.len() {
            return true;
        }
    }
    match language_share(text, language).share() {
        Some(share) => share >= ENOUGH,
        // Near relatives, such as Hindi and Marathi, are told apart by the text as a whole.
        None if !few => langdetect::detect(text)
            .is_none_or(|found| found == language || (language == "zh" && found.starts_with("zh"))),
        None => true,
    }
}

/// Whether a text may be in English, where its letters are what is asked for. N-grams say little of a few words or of names:
/// such a text is in another language only where its script or the commonest words say so.
pub(crate) fn may_be_english(text: &str) -> bool {
    if is_in_language(text, "en") {
        return true;
    }
    if text.len() > MAX_DOUBTED {
        return false;
    }
    let words: Vec<_> = reading::words(text).iter().map(|word| lower(word).into_owned()).collect();
    let other = certain_language_share(text, "en").share().is_some_and(|share| share < ENOUGH);
    let latin = text.chars().filter(|c| c.is_alphabetic()).all(|c| c < LATIN_END);
    if !latin || other && words.len() > FEW_FOR_NGRAMS {
        return false;
    }
    let own = words.iter().filter(|word| is_common(word, "en") == Some(true)).count();
    most_common(&words, "en") <= own
}

fn response_language(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let language = arguments.text("language")?;
    let known = IFEVAL.contains(&language) || (arguments.corrected() && MORE.contains(&language));
    if !known {
        return Err(arguments.refused("language", "must be the code of a language, such as \"en\""));
    }
    let language = language.to_owned();
    Ok(if arguments.corrected() {
        Box::new(move |view| is_in_language(view.text(), &language))
    } else {
        Box::new(move |view| view.language().is_none_or(|found| found == language))
    })
}
