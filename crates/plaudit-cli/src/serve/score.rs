//! `POST /v1/score`: rollouts in, results out, in one request.

use super::admission::Inside;
use super::house::House;
use super::log;
use super::name::{Name, Reference};
use super::reply::{Refusal, Reply, json_bytes};
use super::run::Run;
use super::tokens::{Holder, Taken};
use hyper::StatusCode;
use plaudit::engine::ScoreOptions;
use plaudit::error::RunError;
use plaudit::exec::CancelToken;
use plaudit::input::{self, Fields, InputError};
use plaudit::report::Report;
use plaudit::rollout::Rollout;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The most rollouts of one request; more go as a job.
const MOST: usize = 16_384;
/// From how many bytes on a body is read beside the threads that answer.
pub(crate) const LARGE: usize = 256 << 10;

/// What is to be scored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScoreRequest<'a> {
    /// The name of the recipe; it may be left out where only one is offered.
    pub(crate) recipe: Option<String>,
    /// The training that it is for, under any name; the name of the recipe where nothing is said.
    pub(crate) run: Option<String>,
    /// The step of the training; cut by time where nothing is said.
    pub(crate) step: Option<u64>,
    /// Whether the reference takes part in comparisons; as the recipe says where nothing is said.
    pub(crate) validate: Option<bool>,
    /// Whether the statistics of these rollouts are wanted as well.
    #[serde(default)]
    pub(crate) statistics: bool,
    /// The rollouts, each as a line of a file has it.
    #[serde(borrow)]
    #[schemars(with = "Vec<RolloutLine>")]
    pub(crate) rollouts: Vec<&'a RawValue>,
}

/// A rollout, or a group of them with `responses` in the place of `response`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RolloutLine {
    /// The caller's name for it; its place where nothing is said.
    id: Option<Name>,
    /// The group's name; where none is given, equal prompts make a group.
    group: Option<Name>,
    /// What the model was asked: text or chat messages.
    prompt: Option<Value>,
    /// What the model answered.
    response: Option<String>,
    /// What it answered, several times.
    responses: Option<Vec<String>>,
    /// The answer to compare with.
    reference: Option<Reference>,
    /// The length of the response in the model's own tokens.
    tokens: Option<Value>,
    /// Everything else that rewards may look at.
    extra: Option<Map<String, Value>>,
}

/// What comes back.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ScoreReply {
    /// The id of the run.
    run: String,
    /// One a rollout that could be read, in the order of the request.
    results: Vec<ResultLine>,
    /// What could not be read, by its place in the request.
    errors: Vec<Unread>,
    /// The statistics, where they were asked for.
    statistics: Option<Value>,
}

/// What is said of one rollout. An invalid one has no total.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ResultLine {
    id: String,
    group: Option<String>,
    total: Option<f64>,
    /// `scored`, `floored`, `skipped` or `invalid`.
    outcome: String,
    /// Why it was not simply scored: a code, a component and a message.
    reason: Option<Value>,
    /// What each component says: its outcome, its value, its weight, and its facts or its reason.
    components: Map<String, Value>,
}

/// A rollout that could not be read.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Unread {
    /// Its place in the request, from 0.
    pub(crate) index: usize,
    pub(crate) code: String,
    pub(crate) message: String,
}

/// The rollouts of a request that could be read, and what could not.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) rollouts: Vec<Rollout<'static>>,
    pub(crate) errors: Vec<Unread>,
}

/// Reads what a body asks for.
pub(crate) fn parse(body: &[u8]) -> Result<ScoreRequest<'_>, Refusal> {
    let request: ScoreRequest<'_> =
        serde_json::from_slice(body).map_err(|error| Refusal::bad("http.json", error.to_string()))?;
    House::check_step(request.step)?;
    Ok(request)
}

/// Reads the rollouts, each for itself, where there are at most so many and `admit` finds room for their number and their bytes.
/// Those of a group line have their prompt each: that is asked before they have it.
pub(crate) fn read<T>(
    lines: &[&RawValue],
    most: usize,
    admit: impl FnOnce(usize, usize) -> Result<T, Refusal>,
) -> Result<(Read, T), Refusal> {
    let fields = Fields::own();
    let mut read = Read { rollouts: Vec::new(), errors: Vec::new() };
    let mut groups = Vec::with_capacity(lines.len().min(most));
    let (mut count, mut bytes) = (0, 0_usize);
    for (index, line) in lines.iter().enumerate() {
        match input::read_line(line.get().as_bytes(), &fields) {
            Ok(mut rollouts) => {
                rollouts.name(|| index.to_string());
                count += rollouts.len();
                bytes = bytes.saturating_add(rollouts.bytes());
                groups.push(rollouts);
            }
            Err(InputError { code, message, .. }) => {
                read.errors.push(Unread { index, code: code.to_owned(), message });
            }
        }
        if count.max(index + 1) > most {
            let message = format!("at most {most} rollouts at once: send less");
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "http.too_many", message));
        }
    }
    let admitted = admit(count, bytes)?;
    read.rollouts = groups.into_iter().flatten().collect();
    Ok((read, admitted))
}

/// Lets go of what is being scored when nobody waits for it any more. Judgments that have been bought are kept.
#[derive(Debug)]
pub(crate) struct Waiting(pub(crate) CancelToken);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Why an engine gave no report, as a client is told.
pub(crate) fn refuse(error: &RunError) -> Refusal {
    match error {
        RunError::UnevenGroups { .. } => {
            Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error.code(), error.to_string())
        }
        error => {
            log::say("error", "a request could not be scored", &[("code", error.code().into())]);
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.code(), "something failed that must not")
        }
    }
}

/// What a request asks for, with the places that it has taken.
struct Asked {
    run: Arc<Run>,
    step: Option<u64>,
    validate: Option<bool>,
    statistics: bool,
    read: Read,
    places: (Taken, Inside, Inside),
}

/// Reads a body, and lets it in.
async fn ask(house: &Arc<House>, holder: &Holder, body: &[u8]) -> Result<Asked, Refusal> {
    let request = parse(body)?;
    let run = house.run(holder.entry.owner(), request.run.as_deref(), request.recipe.as_deref()).await?;
    let (read, places) = read(&request.rollouts, MOST, |count, bytes| {
        let taken = holder.take(count)?;
        Ok((taken, house.admission.enter(&run.load, count)?, house.texts.hold(&run.texts, bytes)?))
    })?;
    let ScoreRequest { step, validate, statistics, .. } = request;
    Ok(Asked { run, step, validate, statistics, read, places })
}

/// Answers a request.
pub(crate) async fn answer(
    house: &Arc<House>,
    holder: &Arc<Holder>,
    body: bytes::Bytes,
) -> Result<Reply, Refusal> {
    let asked = match body.len() > LARGE {
        false => ask(house, holder, &body).await?,
        true => {
            let (house, holder) = (Arc::clone(house), Arc::clone(holder));
            let runtime = tokio::runtime::Handle::current();
            let work = move || runtime.block_on(ask(&house, &holder, &body));
            let work = tokio::task::spawn_blocking(work);
            work.await.map_err(|_| Refusal::broken("the body could not be read"))??
        }
    };
    let Asked { run, step, validate, statistics, read, places } = asked;
    let count = read.rollouts.len();
    let step = run.begin(step)?;
    let watched = house.watch.begin("its judges", &run.id, format!("{count} rollouts of step {step}"));
    let cancel = CancelToken::new();
    let waiting = Waiting(cancel.clone());
    let terms = ScoreOptions { validate, cancel: Some(cancel) };
    let (send, receive) = oneshot::channel();
    let (house, scored) = (Arc::clone(house), Arc::clone(&run));
    run.engine.submit(read.rollouts, terms, move |rollouts, report| {
        let written = report.map_err(|error| refuse(&error)).map(|report| {
            scored.observe(step, &rollouts, &report, validate);
            house.meters.scored(&report.plan.name, &report);
            write(&scored, &rollouts, &report, &read.errors, statistics)
        });
        // Room is made before the answer goes, so that who has it can send the next.
        drop(places);
        let _ = send.send(written);
    });
    let written = receive.await.map_err(|_| Refusal::broken("something failed that must not"))??;
    drop((waiting, watched));
    Ok(json_bytes(StatusCode::OK, written))
}

/// Writes the answer on the thread that scored it.
fn write(
    run: &Run,
    rollouts: &[Rollout<'static>],
    report: &Report,
    errors: &[Unread],
    statistics: bool,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(128 + rollouts.len() * 320);
    out.extend_from_slice(b"{\"run\":");
    put(&mut out, &*run.id);
    out.extend_from_slice(b",\"results\":[");
    for (at, rollout) in rollouts.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        put(&mut out, &report.result(at, rollout.id.as_deref().unwrap_or(""), rollout));
    }
    out.extend_from_slice(b"],\"errors\":");
    put(&mut out, &errors);
    if statistics {
        out.extend_from_slice(b",\"statistics\":");
        put(&mut out, &report.statistics);
    }
    out.push(b'}');
    out
}

/// Writes a value, which is a map with text keys or a list of such and cannot fail.
fn put(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let before = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(before);
        out.extend_from_slice(b"null");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_said_by_its_place_and_the_rest_is_read() {
        let body = br#"{"recipe":"r","step":3,"rollouts":[{"response":"a"},{"response":1},{"responses":["b","c"]}]}"#;
        let request = parse(body).unwrap();
        assert_eq!((request.recipe.as_deref(), request.step), (Some("r"), Some(3)));
        let any = |_, _| Ok(());
        let (read, ()) = read(&request.rollouts, MOST, any).unwrap();
        let ids: Vec<_> = read.rollouts.iter().filter_map(|rollout| rollout.id.as_deref()).collect();
        assert_eq!(ids, ["0", "2.0", "2.1"]);
        assert_eq!((read.errors[0].index, read.errors[0].code.as_str()), (1, "input.response"));
        assert_eq!(super::read(&request.rollouts, 2, any).unwrap_err().code, "http.too_many");
        let step = |step: u64| format!(r#"{{"rollouts":[],"step":{step}}}"#);
        assert_eq!(parse(step((1 << 53) - 1).as_bytes()).unwrap().step, Some((1 << 53) - 1));
        assert_eq!(parse(step(1 << 53).as_bytes()).unwrap_err().code, "run.step");
        assert_eq!(parse(b"{").unwrap_err().code, "http.json");
        assert_eq!(parse(br#"{"rollouts":[],"url":"http://x"}"#).unwrap_err().code, "http.json");
        assert_eq!(parse(br#"{"rollouts":[],"rollouts":[]}"#).unwrap_err().code, "http.json");
    }
}
