//! Reference: what a response is compared with. A text, several texts of which any is right, or a document for the rewards that
//! read one.

use plaudit_text::exact;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Deref;

/// The fields that hold the reference of a row that has none under its own name, in the order in which they are tried. A dot leads into
/// an object.
pub const REFERENCE_FIELDS: [&str; 8] = [
    "reference_answer",
    "expected_answer",
    "answer",
    "ground_truth",
    "reward_model.ground_truth",
    "final_answer",
    "solution",
    "target",
];

/// The most accepted answers of one row.
pub const MAX_ACCEPTED: usize = 256;

/// What a reference is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceForm {
    /// A text.
    Text,
    /// A list of texts, any of which is right. A reward that reads lists gives it its own meaning.
    Accepted,
    /// An object, or a list of other things than texts.
    Document,
}

/// What a response is compared with: its text, which is JSON where it is a list or a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference<'a> {
    text: Cow<'a, str>,
    form: ReferenceForm,
}

impl<'a> Reference<'a> {
    /// The reference that a value is; nothing for null. An object with a single key of [`REFERENCE_FIELDS`] is what it has there.
    pub fn of_value(value: &Value) -> Option<Self> {
        let written = |form| Some(Self { text: Cow::Owned(exact::write(value)), form });
        match value {
            Value::Null => None,
            Value::Object(map) => {
                // A table has an empty cell where a line of JSON has no key.
                let mut filled = map.iter().filter(|(_, inner)| !inner.is_null());
                match (filled.next(), filled.next()) {
                    (Some((key, inner)), None) if REFERENCE_FIELDS.contains(&key.as_str()) => {
                        Self::of_value(inner)
                    }
                    _ => written(ReferenceForm::Document),
                }
            }
            Value::Array(all) if all.iter().all(|item| plain(item).is_some()) => {
                written(ReferenceForm::Accepted)
            }
            Value::Array(_) => written(ReferenceForm::Document),
            value => plain(value).map(|text| Self::from(text.into_owned())),
        }
    }

    /// The reference in the first field of [`REFERENCE_FIELDS`] that some fields have and that is not blank, with its name.
    pub fn in_fields(fields: &'a Map<String, Value>) -> Option<(&'static str, Reference<'a>)> {
        if fields.is_empty() {
            return None;
        }
        REFERENCE_FIELDS.into_iter().find_map(|name| {
            let mut keys = name.split('.');
            let first = fields.get(keys.next()?)?;
            let reference = match keys.try_fold(first, |value, key| value.get(key))? {
                Value::String(text) => Reference::from(exact::plain(text)),
                value => Self::of_value(value)?,
            };
            (!reference.trim().is_empty()).then_some((name, reference))
        })
    }

    /// What it is.
    pub fn form(&self) -> ReferenceForm {
        self.form
    }

    /// The accepted answers of a list; nothing for what is none.
    pub fn accepted(&self) -> Vec<String> {
        let all = match self.form {
            ReferenceForm::Accepted => exact::read::<Vec<Value>>(&self.text).unwrap_or_else(|_| Vec::new()),
            ReferenceForm::Text | ReferenceForm::Document => Vec::new(),
        };
        all.iter().filter_map(|item| plain(item).map(Cow::into_owned)).collect()
    }

    /// The one text that stands for it among responses: itself, or the first accepted answer.
    pub fn first_text(&self) -> Cow<'_, str> {
        let first = || self.accepted().into_iter().next().map(Cow::Owned);
        first().unwrap_or(Cow::Borrowed(&self.text))
    }

    /// The reference as JSON: as it was given, with numbers and truths as texts.
    pub fn to_value(&self) -> Value {
        let written = match self.form {
            ReferenceForm::Text => None,
            ReferenceForm::Accepted | ReferenceForm::Document => exact::read(&self.text).ok(),
        };
        written.unwrap_or_else(|| Value::from(&*self.text))
    }

    /// Its text.
    pub fn into_text(self) -> Cow<'a, str> {
        self.text
    }

    /// The same, with a text of its own.
    pub fn into_owned(self) -> Reference<'static> {
        Reference { text: Cow::Owned(self.text.into_owned()), form: self.form }
    }

    /// The same, which borrows its text.
    pub fn borrowed(&self) -> Reference<'_> {
        Reference { text: Cow::Borrowed(&self.text), form: self.form }
    }

    /// What it is, in words: `a list`, or `an object with "a", "b"`.
    pub(crate) fn kind(&self) -> String {
        const SHOWN: usize = 4;
        let Ok(Value::Object(map)) = exact::read(&self.text) else { return "a list".to_owned() };
        let mut told = "an object with".to_owned();
        for (at, key) in map.keys().take(SHOWN).enumerate() {
            let _ = write!(told, "{} {key:?}", if at > 0 { "," } else { "" });
        }
        told + if map.len() > SHOWN { ", ..." } else { "" }
    }

    pub(super) fn shrink(&mut self) {
        if let Cow::Owned(text) = &mut self.text {
            text.shrink_to_fit();
        }
    }
}

/// The largest number up to which a float holds every whole number.
const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// The digits of a float without a fraction, which is what tables make of whole numbers where some are missing; nothing for
/// one that may have been rounded.
pub fn whole(number: f64) -> Option<String> {
    // Adding 0 makes 0 of -0.
    is_whole(number).then(|| format!("{:.0}", number + 0.0))
}

/// Whether a float is a whole number that was not rounded.
pub fn is_whole(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() <= MAX_SAFE
}

/// A text, a number or a truth as text.
fn plain(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(exact::plain(text))),
        Value::Number(number) => {
            let whole = number.as_f64().filter(|_| number.is_f64()).and_then(whole);
            Some(Cow::Owned(whole.unwrap_or_else(|| number.to_string())))
        }
        Value::Bool(_) => Some(Cow::Owned(value.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

impl Deref for Reference<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl<'a> From<Cow<'a, str>> for Reference<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self { text, form: ReferenceForm::Text }
    }
}

impl<'a> From<&'a str> for Reference<'a> {
    fn from(text: &'a str) -> Self {
        Self::from(Cow::Borrowed(text))
    }
}

impl From<String> for Reference<'_> {
    fn from(text: String) -> Self {
        Self::from(Cow::Owned(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_texts_lists_or_documents() {
        let read = |value: Value| {
            let reference = Reference::of_value(&value)?;
            Some((reference.to_string(), reference.form(), reference.accepted()))
        };
        let text = |text: &str| Some((text.to_owned(), ReferenceForm::Text, Vec::new()));
        assert_eq!(read(json!("[1]")), text("[1]"));
        assert_eq!((read(json!(true)), read(json!(7)), read(json!(null))), (text("true"), text("7"), None));
        assert_eq!(read(json!({"target": "a"})), text("a"));
        assert_eq!(read(json!({"target": "a", "other": null})), text("a"));
        let (written, form, accepted) = read(json!(["a", 2, 1.5, false])).unwrap();
        assert_eq!((written.as_str(), form), (r#"["a",2,1.5,false]"#, ReferenceForm::Accepted));
        assert_eq!(accepted, ["a", "2", "1.5", "false"]);
        for document in [json!({"a": 1}), json!([["a"]]), json!([null]), json!({"target": {"b": 1}})] {
            let (_, form, accepted) = read(document.clone()).unwrap();
            assert_eq!((form, accepted.len()), (ReferenceForm::Document, 0), "{document}");
        }
        assert_eq!(
            Reference::of_value(&json!({"a": 1, "b": 2})).unwrap().kind(),
            "an object with \"a\", \"b\""
        );
    }

    #[test]
    fn other_fields_are_tried_in_one_order() {
        let found = |fields: Value| {
            let Value::Object(fields) = fields else { return None };
            Reference::in_fields(&fields).map(|(name, reference)| format!("{name} {}", &*reference))
        };
        let told = |text: &str| Some(text.to_owned());
        assert_eq!(found(json!({"solution": "so 4", "answer": 4})), told("answer 4"));
        assert_eq!(
            found(json!({"answer": " ", "ground_truth": null, "target": ["a"]})),
            told("target [\"a\"]")
        );
        assert_eq!(
            found(json!({"reward_model": {"ground_truth": "42"}})),
            told("reward_model.ground_truth 42")
        );
        assert_eq!(found(json!({"label": 1, "gold": "a"})), None);
    }
}
