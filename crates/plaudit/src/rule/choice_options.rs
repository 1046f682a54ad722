//! Options of a multiple-choice question: letters with their texts, read from `extra`, and which of them is right.

use super::Sample;
use crate::outcome::Outcome;
use crate::reason::{Code, Reason};
use crate::text::space::strip;
use serde_json::{Map, Value};

/// The most options: the letters of the alphabet.
const MOST: usize = 26;
/// The longest text of an option, in bytes.
const LONGEST: usize = 1 << 12;

/// One option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChoiceOption {
    /// Its letter, in upper case.
    pub(super) letter: char,
    /// Its text, normalised.
    pub(super) text: String,
}

/// The options of a question. None at all: any letter may be the answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ChoiceOptions(pub(super) Vec<ChoiceOption>);

impl ChoiceOptions {
    /// The options that a rollout gives: `options` or `choices` of `extra`.
    pub(super) fn of(sample: &Sample<'_>) -> Result<Self, Outcome> {
        let given = ["options", "choices"].iter().find_map(|key| sample.extra.get(*key));
        let Some(given) = given.filter(|given| !given.is_null()) else { return Ok(Self::default()) };
        let read = Self::read(given).and_then(Self::checked);
        read.map_err(|what| Outcome::invalid(Reason::new(Code::BadOptions, what)))
    }

    fn read(given: &Value) -> Result<Self, &'static str> {
        let mut options = Vec::new();
        match given {
            Value::Object(map) => match labelled(map) {
                Some((labels, texts)) => {
                    for (label, text) in labels.iter().zip(texts) {
                        options.extend(option(label.as_str().unwrap_or(""), text)?);
                    }
                }
                None => {
                    for (label, text) in map {
                        options.extend(option(label, text)?);
                    }
                }
            },
            Value::Array(all) => {
                for (at, each) in all.iter().enumerate() {
                    match each {
                        Value::Object(map) => {
                            for (label, text) in map {
                                options.extend(option(label, text)?);
                            }
                        }
                        text => {
                            let letter =
                                u8::try_from(at).map_or('?', |at| char::from(b'A'.saturating_add(at)));
                            options.extend(option(letter.encode_utf8(&mut [0; 4]), text)?);
                        }
                    }
                }
            }
            _ => return Err("The options of the question are neither a list nor an object."),
        }
        Ok(Self(options))
    }

    fn checked(self) -> Result<Self, &'static str> {
        if self.0.len() > MOST {
            return Err("The question has more options than the alphabet has letters.");
        }
        let twice = |at: usize| self.0[..at].iter().any(|other| other.letter == self.0[at].letter);
        if (0..self.0.len()).any(twice) {
            return Err("Two options of the question have the same letter.");
        }
        Ok(self)
    }

    /// Whether a letter names an option. Without options every letter may.
    pub(super) fn has(&self, letter: char) -> bool {
        match self.0.is_empty() {
            true => letter.is_ascii_uppercase(),
            false => self.0.iter().any(|option| option.letter == letter),
        }
    }

    /// The text of an option, normalised; empty where it has none.
    pub(super) fn text(&self, letter: char) -> &str {
        self.0.iter().find(|option| option.letter == letter).map_or("", |option| option.text.as_str())
    }

    /// The options whose text is `text`, which is normalised.
    pub(super) fn equal<'o>(&'o self, text: &'o str) -> impl Iterator<Item = char> + 'o {
        let same = move |option: &&ChoiceOption| !text.is_empty() && option.text == text;
        self.0.iter().filter(same).map(|option| option.letter)
    }
}

/// The two lists of the form `{"label": [...], "text": [...]}`.
fn labelled(map: &Map<String, Value>) -> Option<(&Vec<Value>, &Vec<Value>)> {
    let list = |names: [&str; 2]| names.iter().find_map(|name| map.get(*name)?.as_array());
    Some((list(["label", "labels"])?, list(["text", "texts"])?))
}

/// An option; none where its text is null, as data sets with columns for all letters have it.
fn option(label: &str, text: &Value) -> Result<Option<ChoiceOption>, &'static str> {
    let text = match text {
        Value::Null => return Ok(None),
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => text.to_string(),
        Value::Array(_) | Value::Object(_) => return Err("An option of the question is no text."),
    };
    if text.len() > LONGEST {
        return Err("An option of the question is longer than 4 KiB.");
    }
    let letter = single(strip(label)).filter(char::is_ascii_alphabetic);
    let letter = letter.ok_or("The options of the question are not named by letters.")?;
    Ok(Some(ChoiceOption { letter: letter.to_ascii_uppercase(), text: normal(&text) }))
}

/// The only character of a text.
pub(super) fn single(text: &str) -> Option<char> {
    let mut chars = text.chars();
    chars.next().filter(|_| chars.next().is_none())
}

/// A text in lower case, with single spaces between its words.
pub(super) fn normal(text: &str) -> String {
    let lower = text.to_lowercase();
    let words: Vec<&str> =
        lower.split(crate::text::space::is_space).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn letters(given: Value) -> Result<String, &'static str> {
        let options = ChoiceOptions::read(&given).and_then(ChoiceOptions::checked)?;
        Ok(options.0.iter().map(|option| format!("{}={} ", option.letter, option.text)).collect())
    }

    #[test]
    fn data_sets_write_options_in_four_ways() {
        for given in [
            json!([{"A": "Red"}, {"b": " blue  sky"}, {"C": null}]),
            json!({"A": "red", "B": "Blue sky"}),
            json!(["red", "blue sky"]),
            json!({"label": ["A", "B"], "text": ["red", "blue\tsky"]}),
        ] {
            assert_eq!(letters(given.clone()).as_deref(), Ok("A=red B=blue sky "), "{given}");
        }
        for given in [json!("AB"), json!([["a"]]), json!({"first": "a"}), json!([{"A": "x"}, {"a": "y"}])] {
            assert!(letters(given.clone()).is_err(), "{given}");
        }
    }
}
