//! Parameters of a request that some models refuse by name: OpenAI's newer ones take neither `max_tokens` nor a
//! `temperature`. A refused one is left out of the requests from then on.

use super::query::Request;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A parameter that a request can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Parameter {
    /// The most tokens of a reply. Its newer name takes its place.
    MaxTokens,
    /// The sampling temperature.
    Temperature,
    /// The seed of a second attempt.
    Seed,
}

impl Parameter {
    const ALL: [Self; 3] = [Self::MaxTokens, Self::Temperature, Self::Seed];

    /// The name in requests and in the record.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::Temperature => "temperature",
            Self::Seed => "seed",
        }
    }

    /// The parameter of that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|parameter| parameter.as_str() == name)
    }

    /// The parameter that an error refuses: by `error.param` with one of OpenAI's codes, or in its words.
    pub(super) fn refused_by(body: &[u8]) -> Option<Self> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let text = |place: &str| body.pointer(place).and_then(Value::as_str);
        let unsupported = matches!(text("/error/code"), Some("unsupported_parameter" | "unsupported_value"));
        if let Some(parameter) = text("/error/param").and_then(Self::named).filter(|_| unsupported) {
            return Some(parameter);
        }
        let message = text("/error/message")?;
        let says = ["nsupported parameter", "nsupported value", "not supported", "does not support"];
        let refused = says.iter().any(|words| message.contains(words));
        let quoted = |parameter: &Self| {
            let name = parameter.as_str();
            [format!("'{name}'"), format!("`{name}`"), format!("\"{name}\"")]
                .iter()
                .any(|name| message.contains(name))
        };
        Self::ALL.into_iter().find(|parameter| refused && quoted(parameter))
    }

    /// Whether a request has it.
    pub(super) fn is_in(self, body: &[u8]) -> bool {
        serde_json::from_slice::<Map<String, Value>>(body).is_ok_and(|body| body.contains_key(self.as_str()))
    }
}

/// A request without some parameters. The limit on tokens stays, under the name that newer models take.
pub(super) fn without(request: Request, left_out: &BTreeSet<Parameter>) -> Request {
    // As they are written: a schema says in which order its fields come.
    let Ok(mut body) = serde_json::from_slice::<BTreeMap<String, Box<RawValue>>>(&request.body) else {
        return request;
    };
    for parameter in left_out {
        let value = body.remove(parameter.as_str());
        if let (Parameter::MaxTokens, Some(value)) = (parameter, value) {
            body.entry("max_completion_tokens".to_owned()).or_insert(value);
        }
    }
    let body = serde_json::to_vec(&body).unwrap_or(request.body);
    Request { path: request.path, body }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_read_by_code_and_by_words() {
        let refused = |error: &str| Parameter::refused_by(format!(r#"{{"error":{error}}}"#).as_bytes());
        let by_code = r#"{"message":"Unsupported value","param":"temperature","code":"unsupported_value"}"#;
        assert_eq!(refused(by_code), Some(Parameter::Temperature));
        let by_words =
            r#"{"message":"Unsupported parameter: 'max_tokens' is not supported with this model."}"#;
        assert_eq!(refused(by_words), Some(Parameter::MaxTokens));
        assert_eq!(refused(r#"{"message":"'max_tokens' is too large: 9000"}"#), None);
        assert_eq!(refused(r#"{"message":"bad","param":"messages","code":"unsupported_value"}"#), None);
        assert_eq!(Parameter::refused_by(b"no JSON"), None);
    }

    #[test]
    fn the_limit_on_tokens_keeps_its_value_under_another_name() {
        let body = br#"{"model":"m","temperature":0.0,"max_tokens":64}"#.to_vec();
        assert!(Parameter::Temperature.is_in(&body) && !Parameter::Seed.is_in(&body));
        let request = Request { path: "/chat/completions", body };
        let request = without(request, &BTreeSet::from([Parameter::MaxTokens, Parameter::Temperature]));
        let body: Value = serde_json::from_slice(&request.body).expect("JSON");
        assert_eq!(body, serde_json::json!({ "model": "m", "max_completion_tokens": 64 }));
    }
}
