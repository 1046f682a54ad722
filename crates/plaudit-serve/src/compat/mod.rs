//! Clients of other trainers: each file translates what a client sends into samples, and results into what the client reads.
//!
//! A sample without a number is never answered with one. These clients know no other word for it than an HTTP status, so that is what they
//! get, with the reason in the body; NeMo-Gym has a word of its own, which it gets if it asks.

pub(crate) mod basic_auth;
pub(crate) mod handlers;
pub(crate) mod implicit_groups;
pub(crate) mod nemo_gym;
pub(crate) mod openrlhf;
pub(crate) mod query;
pub(crate) mod slime;

use crate::http::response::ApiError;
use hyper::StatusCode;
use plaudit::input::exact;
use plaudit::join::Joined;
use plaudit::outcome::Outcome;
use plaudit::plan::Branch;
use plaudit::reason::Code;
use plaudit::report::{Report, Row};
use plaudit::rollout::{Reference, Rollout};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// One sample of a client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TrainerSample {
    /// What is scored.
    pub(crate) rollout: Rollout<'static>,
    /// Equal for the samples of one prompt; used as the group where the client names none.
    pub(crate) key: String,
    /// The sample's name among them, where the client has one.
    pub(crate) member: Option<String>,
}

/// The result of one sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleResult<'r> {
    report: &'r Report,
    at: usize,
    /// How many samples were scored together.
    pub(crate) group_size: usize,
    /// Whether some of the group were missing.
    pub(crate) partial: bool,
}

/// The value of one component.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ComponentValue<'r> {
    pub(crate) name: &'r str,
    pub(crate) weight: f64,
    pub(crate) value: Option<f64>,
}

impl<'r> SampleResult<'r> {
    /// The result of a join.
    pub(crate) fn joined(joined: &'r Joined) -> Self {
        Self { report: &joined.report, at: joined.at, group_size: joined.group_size, partial: joined.partial }
    }

    /// The result of a sample that was scored alone.
    #[cfg(test)]
    pub(crate) fn alone(report: &'r Report, at: usize) -> Self {
        Self { report, at, group_size: 1, partial: false }
    }

    /// What the engine says of the sample.
    pub(crate) fn row(&self) -> &'r Row {
        &self.report.rows[self.at]
    }

    fn branch(&self) -> Option<&'r Branch> {
        self.row().branch.map(|branch| &self.report.plan.branches[branch])
    }

    /// The total, or the error that says why there is none.
    pub(crate) fn total(&self) -> Result<f64, ApiError> {
        let row = self.row();
        match (row.total.value(), row.total.cause()) {
            (Some(total), _) => Ok(total),
            (None, Some(cause)) => {
                let component =
                    cause.component.zip(self.branch()).map(|(at, branch)| &branch.components[at].name);
                Err(api_error(cause.reason.code, component.map(String::as_str), &cause.reason.message))
            }
            (None, None) => Err(ApiError::internal("a sample has neither a number nor a reason")),
        }
    }

    /// The reason of the outcome; none where it is simply scored.
    pub(crate) fn code(&self) -> Option<Code> {
        self.report.rows[self.at].total.cause().map(|cause| cause.reason.code)
    }

    /// The word for the outcome.
    pub(crate) fn outcome(&self) -> &'static str {
        self.report.rows[self.at].total.kind().as_str()
    }

    /// The components of the recipe that scored it, in their order.
    pub(crate) fn parts(&self) -> Vec<ComponentValue<'r>> {
        let row = &self.report.rows[self.at];
        let components =
            self.branch().into_iter().flat_map(|branch| branch.components.iter().zip(&branch.parts));
        components
            .zip(&row.outcomes)
            .map(|((component, part), outcome)| ComponentValue {
                name: &component.name,
                weight: part.weight,
                value: outcome.as_ref().and_then(Outcome::value),
            })
            .collect()
    }

    /// The names of all components that the recipe has in any branch.
    pub(crate) fn columns(&self) -> Vec<&'r str> {
        self.report.plan.columns()
    }
}

/// The error of a sample without a number: the status says whose fault it is, and whether to try again.
///
/// | Reason | Status |
/// |---|---|
/// | too much to do | 429, with `Retry-After` |
/// | a judge | 502 |
/// | the sample itself, or a recipe that does not apply to it | 422 |
/// | everything else: the group, the engine, a reward | 503 |
fn api_error(code: Code, component: Option<&str>, message: &str) -> ApiError {
    let message = match component {
        Some(component) => format!("{component}: {message}"),
        None => message.to_owned(),
    };
    if code == Code::Overloaded {
        return ApiError::busy(code.as_str(), message, 1);
    }
    let status = match code.as_str().split('.').next() {
        Some("judge") => StatusCode::BAD_GATEWAY,
        Some("input" | "model" | "gate") => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    ApiError::new(status, code.as_str(), message)
}

/// A value as a reference: nothing for null and the empty text.
fn reference(value: &Value) -> Option<Reference<'static>> {
    Reference::of_value(value).filter(|reference| !reference.is_empty())
}

/// What a label says: a text is the reference, and so is the field `reference` of an object, whose other fields are `extra`.
fn label(label: Value) -> (Option<Reference<'static>>, Map<String, Value>) {
    match label {
        Value::Object(mut fields) => {
            let said = fields.remove("reference");
            (said.as_ref().and_then(reference), fields)
        }
        other => (reference(&other), Map::new()),
    }
}

/// What a client sends, with every number as it wrote it.
fn read_body<T: DeserializeOwned>(client: &str, body: &[u8]) -> Result<T, ApiError> {
    match std::str::from_utf8(body) {
        Ok(text) => exact::read(text),
        Err(_) => serde_json::from_slice(body),
    }
    .map_err(|error| invalid_body(client, &error))
}

/// The error of a body that is not what the client sends.
fn invalid_body(client: &str, error: &serde_json::Error) -> ApiError {
    ApiError::bad_request("http.body", format!("the body is not what {client} sends: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plaudit::engine::Engine;
    use plaudit::recipe::Recipe;
    use serde_json::json;

    /// What an engine says of one rollout.
    pub(crate) fn score(yaml: &str, rollout: Rollout<'static>) -> Report {
        let engine = Engine::new(Recipe::from_yaml(yaml).unwrap().plan().unwrap()).unwrap();
        engine.score(&[rollout]).unwrap()
    }

    /// A number, and one component that does not count.
    pub(crate) const NUMBER: &str = "components:
  right: { reward: number_accuracy, required: true }
  shape: { reward: reasoning_format, weight: 0 }
";

    #[test]
    fn sample_without_number_is_an_error() {
        let report = score(NUMBER, Rollout::new("42"));
        let error = SampleResult::alone(&report, 0).total().unwrap_err();
        assert_eq!((error.status.as_u16(), error.code), (422, "input.missing_reference"));
        assert!(error.message.starts_with("right: "), "{}", error.message);
        let report = score(NUMBER, Rollout::new("42").with_reference("42"));
        let result = SampleResult::alone(&report, 0);
        assert_eq!(result.total(), Ok(1.0));
        assert_eq!(result.parts()[1], ComponentValue { name: "shape", weight: 0.0, value: Some(0.0) });
    }

    #[test]
    fn status_follows_the_reason() {
        let status = |code| api_error(code, None, "x").status.as_u16();
        assert_eq!(status(Code::JudgeTimeout), 502);
        assert_eq!(status(Code::GroupIncomplete), 503);
        assert_eq!(status(Code::Panic), 503);
        assert_eq!(status(Code::MissingReference), 422);
        let busy = api_error(Code::Overloaded, None, "x");
        assert_eq!((busy.status.as_u16(), busy.retry_after), (429, Some(1)));
    }

    #[test]
    fn labels_become_references() {
        assert_eq!(label(json!("42")).0.as_deref(), Some("42"));
        assert_eq!(label(json!(42)).0.as_deref(), Some("42"));
        assert_eq!(label(json!("")), (None, Map::new()));
        let big = "100000000000000000001";
        let read: Value =
            read_body("slime", format!(r#"{{"reference": {big}, "a": {big}}}"#).as_bytes()).unwrap();
        let (reference, extra) = label(read);
        assert_eq!(reference.as_deref(), Some(big));
        assert_eq!(extra["a"].as_str().and_then(exact::number), Some(big));
        assert_eq!(label(Value::Null), (None, Map::new()));
        let (reference, extra) = label(json!({"reference": 7, "data_source": "math"}));
        assert_eq!((reference.as_deref(), extra.len()), (Some("7"), 1));
    }
}
