//! Handlers for other trainers' clients: `POST /openrlhf/RECIPE[/RUN]`, `/slime/RECIPE[/RUN]` and `/nemo-gym/RECIPE[/RUN]/verify`.
//! Each sample goes through the join, in an implicit group where the client names none.

use super::implicit_groups::{PromptKey, SampleEnd, Slot};
use super::query::CompatSettings;
use super::{SampleResult, TrainerSample, nemo_gym, openrlhf as openrlhf_api, slime as slime_api};
use crate::api::extract::{Caller, JsonBody};
use crate::api::join::{self, JoinPermits};
use crate::http::auth::Principal;
use crate::http::response::{ApiError, ok};
use crate::runs::run::Run;
use crate::state::AppState;
use axum::RequestExt as _;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, Path, Request, State};
use axum::response::{IntoResponse as _, Response};
use plaudit::join::{Arrival, Joined};
use plaudit::reason::Code;
use serde::Deserialize;
use serde_json::json;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

/// The slot of a sample, which is released however its request ends.
struct SlotGuard<'r> {
    run: &'r Run,
    slot: Option<Slot>,
    end: SampleEnd,
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.run.implicit_groups().leave(slot, self.end, Instant::now());
        }
    }
}

/// The parameters of a path.
#[derive(Debug, Deserialize)]
pub(crate) struct Address {
    recipe: String,
    run: Option<String>,
}

/// A request to score, of any client.
pub(crate) struct CompatRequest {
    app: Arc<AppState>,
    principal: Arc<Principal>,
    address: Address,
    query: Option<String>,
    body: JsonBody,
}

impl FromRequest<Arc<AppState>> for CompatRequest {
    type Rejection = Response;

    async fn from_request(mut request: Request, app: &Arc<AppState>) -> Result<Self, Response> {
        let Caller(principal) = request.extract_parts().await.map_err(ApiError::into_response)?;
        let Path(address) = request.extract_parts().await.map_err(PathRejection::into_response)?;
        let query = request.uri().query().map(str::to_owned);
        let body = JsonBody::from_request(request, app).await.map_err(ApiError::into_response)?;
        Ok(Self { app: Arc::clone(app), principal, address, query, body })
    }
}

impl CompatRequest {
    /// The settings in its URL, of which `own` are those of its client alone, and what its body holds.
    async fn read<T: Send + 'static>(
        &self,
        own: &[&str],
        parse: fn(&[u8], &CompatSettings) -> Result<T, ApiError>,
    ) -> Result<(CompatSettings, T), ApiError> {
        let settings = CompatSettings::read(self.query.as_deref(), own)?;
        self.body.parse(move |body| parse(body, &settings).map(|parsed| (settings, parsed))).await
    }
}

/// `POST /openrlhf/{recipe}` and `/openrlhf/{recipe}/{run}`.
pub(crate) async fn openrlhf(request: CompatRequest) -> Result<Response, ApiError> {
    let (settings, samples) = request.read(&openrlhf_api::SETTINGS, openrlhf_api::read).await?;
    let joined: Vec<Joined> =
        all(samples.into_iter().map(|sample| join(&request, &settings, sample))).await?;
    let results: Vec<SampleResult<'_>> = joined.iter().map(SampleResult::joined).collect();
    Ok(ok(&openrlhf_api::answer(&results, &settings)?))
}

/// `POST /slime/{recipe}` and `/slime/{recipe}/{run}`.
pub(crate) async fn slime(request: CompatRequest) -> Result<Response, ApiError> {
    let (settings, sample) = request.read(&slime_api::SETTINGS, |body, _| slime_api::read(body)).await?;
    let joined = join(&request, &settings, sample).await?;
    Ok(ok(&slime_api::answer(&SampleResult::joined(&joined), &settings)?))
}

/// `POST /nemo-gym/{recipe}/verify` and `/nemo-gym/{recipe}/{run}/verify`.
pub(crate) async fn verify(request: CompatRequest) -> Result<Response, ApiError> {
    let (settings, (asked, sample)) = request.read(&nemo_gym::SETTINGS, nemo_gym::read).await?;
    let joined = join(&request, &settings, sample).await?;
    Ok(ok(&nemo_gym::answer(asked, &SampleResult::joined(&joined), &settings)?))
}

/// `POST /nemo-gym/{recipe}/seed_session` and with a run: a session begins with nothing, since a reward keeps none.
pub(crate) async fn seed(
    State(app): State<Arc<AppState>>,
    Path(address): Path<Address>,
    _: JsonBody,
) -> Result<Response, ApiError> {
    app.recipes.resolve(Some(&address.recipe))?;
    Ok(ok(&json!({})))
}

/// `POST /nemo-gym/{recipe}/aggregate_metrics` and with a run.
pub(crate) async fn aggregate(body: JsonBody) -> Result<Response, ApiError> {
    body.parse(nemo_gym::aggregate::aggregate).await.map(|reply| ok(&reply))
}

/// Joins one sample with its group, and waits for the result.
async fn join(
    request: &CompatRequest,
    settings: &CompatSettings,
    sample: TrainerSample,
) -> Result<Joined, ApiError> {
    let CompatRequest { app, principal, address, .. } = request;
    let TrainerSample { rollout, key, member } = sample;
    let owner = principal.entry.owner();
    let run = app.runs.get_or_create(owner, address.run.as_deref(), Some(&address.recipe)).await?;
    let compares = run.engine.plan().compares_groups();
    let size = match settings.size {
        None if compares => {
            let message =
                "the recipe compares the samples of a prompt: say in the address how many there are, ?size=8";
            return Err(ApiError::bad_request("input.group_size", message));
        }
        size => size.unwrap_or(1),
    };
    if compares && size == 1 && rollout.reference.is_none() {
        let message =
            "the recipe compares the samples of a prompt, and one has none to be compared with: ?size=8";
        return Err(ApiError::bad_request("input.group_size", message));
    }
    // Before it takes a slot.
    join::check(member.as_deref(), size)?;
    let permits = JoinPermits::take(app, principal, &run, &rollout)?;
    let prompt = PromptKey { key: &key, size, compares, step: settings.step.unwrap_or(0) };
    let slot = run.implicit_groups().arrive(&prompt, (member.as_deref(), &rollout.response), Instant::now());
    // Samples without a step share one join, however long it takes.
    let step = settings.step.map(|_| slot.step);
    let (member, validate) = (Some(slot.member()), settings.validate);
    let arrival = Arrival { member, validate, ..Arrival::new(slot.group(), size, rollout) };
    let (weak_run, answered_slot) = (Arc::downgrade(&run), slot.clone());
    let answered = move |joined: &Joined| {
        // A sample that was not admitted, or has lost its slot, says nothing about its group.
        let code = joined.row().total.cause().map(|cause| cause.reason.code);
        if !matches!(code, Some(Code::Overloaded | Code::GroupClosed))
            && let Some(run) = weak_run.upgrade()
        {
            run.implicit_groups().answered(&answered_slot);
        }
    };
    let mut guard = SlotGuard { run: &run, slot: Some(slot), end: SampleEnd::Lost };
    let joined = join::join_rollout(app, &run, (step, arrival), permits, answered).await?;
    guard.end = if joined.row().total.value().is_some() { SampleEnd::Scored } else { SampleEnd::Failed };
    Ok(joined)
}

/// The outputs of all futures in their order, or the first error. They run together, since members of one group wait for each other.
async fn all<T, E>(futures: impl Iterator<Item = impl Future<Output = Result<T, E>>>) -> Result<Vec<T>, E> {
    let mut waiting: Vec<_> = futures.map(Box::pin).collect();
    let mut done: Vec<Option<T>> = waiting.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, done) in waiting.iter_mut().zip(&mut done) {
            if done.is_none()
                && let Poll::Ready(output) = future.as_mut().poll(context)
            {
                match output {
                    Ok(output) => *done = Some(output),
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await?;
    Ok(done.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test]
    async fn futures_run_together() {
        let come = Cell::new(0);
        let one = |at: u32| {
            let come = &come;
            async move {
                come.set(come.get() + 1);
                while come.get() < 3 {
                    tokio::task::yield_now().await;
                }
                Ok::<_, u32>(at)
            }
        };
        assert_eq!(all((0..3).map(one)).await, Ok(vec![0, 1, 2]));
        assert_eq!(all((0..0).map(one)).await, Ok(vec![]));
        // One error ends all.
        let two = |at: u32| async move {
            if at == 1 { Err(at) } else { std::future::pending::<Result<(), u32>>().await }
        };
        assert_eq!(all((0..3).map(two)).await, Err(1));
    }
}
