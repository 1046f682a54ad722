//! Settings in the URL of another trainer's client. These clients send nothing but samples, so what else the service must know stands
//! behind the `?` of the URL that they are given.

use crate::http::middleware::percent_decode;
use crate::http::response::ApiError;
use crate::runs::run;

/// The settings in the query of a trainer's client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CompatSettings {
    /// `size`: how many samples a prompt has.
    pub(crate) size: Option<usize>,
    /// `step`: the step of the training that the samples belong to.
    pub(crate) step: Option<u64>,
    /// `validate`: whether the reference takes part in comparisons.
    pub(crate) validate: Option<bool>,
    /// `eos`: a further text to cut off the end of a response; may be given more than once.
    pub(crate) ends: Vec<String>,
    /// `score`: the component that a filter looks at in place of the total.
    pub(crate) score: Option<String>,
    /// `key`: the field of the answer that holds the total.
    pub(crate) key: Option<String>,
    /// `reference`: the field that holds the reference, with dots where it lies deeper.
    pub(crate) reference: Option<String>,
    /// `failure`: how a sample without a number is said.
    pub(crate) failure: FailureMode,
}

/// How a sample without a number is reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FailureMode {
    /// By an HTTP status, for clients that take every answer for a reward.
    #[default]
    Http,
    /// By a field of the answer, for clients that look at it.
    Class,
}

/// The settings of every client.
pub(crate) const COMMON: [&str; 3] = ["size", "step", "validate"];

impl CompatSettings {
    /// Parses a query; `own` are the settings of this client beside those of all.
    pub(crate) fn read(query: Option<&str>, own: &[&str]) -> Result<Self, ApiError> {
        let mut settings = Self::default();
        for pair in query.unwrap_or("").split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if !COMMON.contains(&name.as_str()) && !own.contains(&name.as_str()) {
                let known = [&COMMON[..], own].concat().join(", ");
                return Err(wrong(format!("there is no setting `{name}` here; there are {known}")));
            }
            match name.as_str() {
                "size" => match number(&name, &value)? {
                    0 => return Err(wrong("`size` is how many samples a prompt has, not 0".to_owned())),
                    size => settings.size = Some(size),
                },
                "step" => settings.step = Some(number(&name, &value)?),
                "validate" => {
                    let words = [("true", true), ("1", true), ("false", false), ("0", false)];
                    settings.validate = Some(choice(&name, &value, "true or false", &words)?);
                }
                "eos" => settings.ends.push(value),
                "score" => settings.score = Some(value),
                "key" => settings.key = Some(value),
                "reference" => settings.reference = Some(value),
                _ => {
                    let words = [("http", FailureMode::Http), ("class", FailureMode::Class)];
                    settings.failure = choice(&name, &value, "http or class", &words)?;
                }
            }
        }
        run::check_step(settings.step)?;
        Ok(settings)
    }
}

fn wrong(message: String) -> ApiError {
    ApiError::bad_request("http.query", message)
}

fn number<N: std::str::FromStr>(name: &str, value: &str) -> Result<N, ApiError> {
    value.parse().map_err(|_| wrong(format!("`{name}` is a whole number, not `{value}`")))
}

/// The choice that a value names.
fn choice<T: Copy>(name: &str, value: &str, wanted: &str, choices: &[(&str, T)]) -> Result<T, ApiError> {
    let found = choices.iter().find(|(word, _)| *word == value).map(|(_, choice)| *choice);
    found.ok_or_else(|| wrong(format!("`{name}` is {wanted}, not `{value}`")))
}

/// Decodes a name or a value of a query, strictly.
fn decode(text: &str) -> Result<String, ApiError> {
    let decoded = percent_decode(&text.replace('+', " "));
    decoded.ok_or_else(|| wrong(format!("`{text}` is not written as an address is")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_decoded() {
        let query =
            CompatSettings::read(Some("size=8&eos=%3C%7Cend%7C%3E&eos=a+b&step=3&validate=true"), &["eos"])
                .unwrap();
        assert_eq!((query.size, query.step, query.validate), (Some(8), Some(3), Some(true)));
        assert_eq!(query.ends, ["<|end|>", "a b"]);
        assert_eq!(CompatSettings::read(Some(""), &[]).unwrap(), CompatSettings::default());
        assert_eq!(
            CompatSettings::read(Some("failure=class"), &["failure"]).unwrap().failure,
            FailureMode::Class
        );
        assert_eq!(CompatSettings::read(Some("key=%C3%A4"), &["key"]).unwrap().key.as_deref(), Some("ä"));
    }

    #[test]
    fn wrong_settings_are_rejected() {
        for query in [
            "size=0",
            "size=x",
            "size",
            "step=-1",
            "validate=maybe",
            "eos=x",
            "sizes=8",
            "size=%4",
            "size=%zz",
        ] {
            let error = CompatSettings::read(Some(query), &[]).unwrap_err();
            assert_eq!((error.status.as_u16(), error.code), (400, "http.query"), "{query}");
        }
        assert_eq!(CompatSettings::read(Some("step=9007199254740992"), &[]).unwrap_err().code, "run.step");
        assert!(CompatSettings::read(Some("failure=zero"), &["failure"]).is_err());
        assert!(CompatSettings::read(Some("eos=%FF"), &["eos"]).is_err());
    }
}
