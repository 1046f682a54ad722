//! `POST /v1/join`: one rollout in; its answer comes when its group has been scored.

use super::admission::Inside;
use super::house::House;
use super::reply::{Refusal, Reply, json};
use super::run::Run;
use super::score::{LARGE, ResultLine, RolloutLine};
use super::tokens::{Holder, Taken};
use hyper::StatusCode;
use plaudit::input::{self, Fields};
use plaudit::join::{Arrival, Joined};
use plaudit::reason::Code;
use plaudit::rollout::Rollout;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The longest key of a group or name of a member.
const LONGEST: usize = 512;
/// The most members of a group.
const MOST: usize = 65_536;

/// One rollout and its group.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct JoinRequest<'a> {
    /// The name of the recipe; it may be left out where only one is offered.
    recipe: Option<String>,
    /// The training that it is for, under any name.
    run: Option<String>,
    /// The step of the training; groups of different steps are different groups.
    step: Option<u64>,
    /// The group's key.
    group: String,
    /// How many members the group has.
    size: usize,
    /// The rollout's name in its group, so that one that is sent again after a lost connection is known.
    member: Option<String>,
    /// For how many seconds to wait for the group at most, where that is less than the recipe says.
    timeout: Option<f64>,
    /// Whether the reference takes part in comparisons; as the recipe says where nothing is said.
    validate: Option<bool>,
    /// The rollout.
    #[serde(borrow)]
    #[schemars(with = "RolloutLine")]
    rollout: &'a RawValue,
}

/// What comes back.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JoinReply<'a> {
    /// The id of the run.
    run: &'a str,
    #[schemars(with = "ResultLine")]
    result: plaudit::report::RowResult<'a>,
    /// How many members had arrived when the group was scored.
    group_size: usize,
    /// Whether some had not.
    partial: bool,
    /// Whether this one came after its group had been scored.
    late: bool,
    /// Whether a member of the same name had come before it.
    duplicate: bool,
    /// For how many seconds it waited for its group.
    waited: f64,
    /// The mean total of its siblings that have one.
    siblings_mean: Option<f64>,
}

/// The schema of what is sent.
pub(crate) fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    generator.subschema_for::<JoinRequest<'static>>()
}

/// A rollout that is handed in, by whichever way it came.
#[derive(Debug)]
pub(crate) struct Handed {
    pub(crate) step: Option<u64>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) validate: Option<bool>,
    pub(crate) group: String,
    pub(crate) member: Option<String>,
    pub(crate) size: usize,
    pub(crate) rollout: Rollout<'static>,
}

/// Whether a member may have that name, and a group that size.
pub(crate) fn check(member: Option<&str>, size: usize) -> Result<(), Refusal> {
    if member.is_some_and(|name| name.len() > LONGEST) {
        let message = format!("member: a name of at most {LONGEST} bytes is wanted");
        return Err(Refusal::bad("input.group", message));
    }
    if size == 0 || size > MOST {
        return Err(Refusal::bad("input.group_size", format!("size: a number from 1 to {MOST} is wanted")));
    }
    Ok(())
}

/// The places of a rollout that was let in. They are its own until its group has been scored, also where nobody waits for it any
/// more.
#[derive(Debug)]
pub(crate) struct Places {
    _taken: Taken,
    _place: Inside,
    _text: Inside,
}

impl Places {
    /// Lets a rollout in.
    pub(crate) fn take(
        house: &House,
        holder: &Holder,
        run: &Run,
        rollout: &Rollout<'_>,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            _taken: holder.take(1)?,
            _place: house.joining.enter(&run.joining, 1)?,
            _text: house.texts.hold(&run.texts, rollout.bytes())?,
        })
    }
}

/// Hands a rollout in and waits for its answer. Where the client goes away, the rollout keeps its place in its group until another
/// one needs it; sent again under the same name, it gets the same answer. `told` sees what is said of it in any case.
pub(crate) async fn hand_in(
    house: &House,
    run: &Arc<Run>,
    handed: Handed,
    places: Places,
    told: impl FnOnce(&Joined) + Send + 'static,
) -> Result<Joined, Refusal> {
    let Handed { step, timeout, validate, group, member, size, rollout } = handed;
    let _watched = house.watch.begin("its group", &run.id, group.chars().take(80).collect());
    let (send, receive) = oneshot::channel();
    let arrival = Arrival { member, timeout, validate, ..Arrival::new(group, size, rollout) };
    run.begin(step)?;
    let _present = run.join(step).hand_in_watched(arrival, move |joined| {
        drop(places);
        told(&joined);
        drop(send.send(joined));
    });
    // It may have begun to end after it was seen that it has not.
    if house.is_draining() {
        run.close_joins();
    }
    let joined = receive.await.map_err(|_| Refusal::broken("something failed that must not"))?;
    if joined.may_retry() {
        let message = "too many rollouts wait for their groups";
        return Err(Refusal::busy("engine.overloaded", message, 5));
    }
    let total = &joined.row().total;
    let code = total.cause().map(|cause| cause.reason.code.as_str());
    if code == Some(Code::GroupClosed.as_str()) && house.is_draining() {
        return Err(Refusal::draining());
    }
    house.meters.joined(&joined.report.plan.name, total.kind(), code);
    Ok(joined)
}

/// Reads what a body hands in, and for which run and recipe.
fn read(body: &[u8]) -> Result<(Option<String>, Option<String>, Handed), Refusal> {
    let request: JoinRequest<'_> =
        serde_json::from_slice(body).map_err(|error| Refusal::bad("http.json", error.to_string()))?;
    let JoinRequest { recipe, run, step, group, size, member, timeout, validate, rollout } = request;
    House::check_step(step)?;
    if group.is_empty() || group.len() > LONGEST {
        let message = format!("group: a name of 1 to {LONGEST} bytes is wanted");
        return Err(Refusal::bad("input.group", message));
    }
    check(member.as_deref(), size)?;
    let timeout = match timeout.map(Duration::try_from_secs_f64) {
        None => None,
        Some(Ok(time)) if !time.is_zero() => Some(time),
        Some(_) => {
            return Err(Refusal::bad("input.timeout", "timeout: a number of seconds above 0 is wanted"));
        }
    };
    let mut read = input::read_line(rollout.get().as_bytes(), &Fields::own())
        .map_err(|error| Refusal::bad(error.code, error.message))?;
    let (1, Some(rollout)) = (read.len(), read.next()) else {
        return Err(Refusal::bad("input.response", "one rollout with one response is wanted"));
    };
    Ok((run, recipe, Handed { step, timeout, validate, group, member, size, rollout }))
}

/// Answers a request.
pub(crate) async fn answer(
    house: &Arc<House>,
    holder: &Holder,
    body: bytes::Bytes,
) -> Result<Reply, Refusal> {
    let (run, recipe, handed) = match body.len() > LARGE {
        false => read(&body)?,
        true => {
            let work = tokio::task::spawn_blocking(move || read(&body));
            work.await.map_err(|_| Refusal::broken("the body could not be read"))??
        }
    };
    let run = house.run(holder.entry.owner(), run.as_deref(), recipe.as_deref()).await?;
    let places = Places::take(house, holder, &run, &handed.rollout)?;
    let shown = Rollout { group: Some(handed.group.clone().into()), ..Rollout::new("") };
    let id = handed.rollout.id.clone().or_else(|| handed.member.clone().map(Into::into));
    let joined = hand_in(house, &run, handed, places, |_| ()).await?;
    let reply = JoinReply {
        run: &run.id,
        result: joined.report.result(joined.at, id.as_deref().unwrap_or(""), &shown),
        group_size: joined.group_size,
        partial: joined.partial,
        late: joined.late,
        duplicate: joined.duplicate,
        waited: joined.waited.as_secs_f64(),
        siblings_mean: joined.siblings_mean(),
    };
    Ok(json(StatusCode::OK, &reply))
}
