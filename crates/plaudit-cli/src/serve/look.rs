//! What can be looked at? Runs with their steps and groups, recipes, rewards, judges: what the dashboard shows, and nothing else
//! does the dashboard have.

use super::house::House;
use super::kept::{self, About, Brief};
use super::reply::{Refusal, Reply, json, json_bytes};
use super::run::clock;
use super::shape::{GroupList, ReadyReply, RunList, RunReply, StatusReply, Warning};
use hyper::StatusCode;
use plaudit::registry::RewardEntry;
use serde_json::{Value, json};
use std::sync::Arc;

/// The most steps or groups of one answer.
const MOST: usize = 2000;

/// The parameters of a path, such as `step=3&limit=10`.
#[derive(Debug, Default)]
pub(crate) struct Query<'q>(pub(crate) &'q str);

impl Query<'_> {
    /// The text of a parameter, as it stands there.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, is)| is)
    }

    /// A number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Refusal> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number =
            text.parse().map_err(|_| Refusal::bad("http.query", format!("{name}: a number is wanted")))?;
        Ok(Some(number))
    }

    fn limit(&self) -> Result<usize, Refusal> {
        Ok(self.number("limit")?.map_or(500, |limit| limit as usize).clamp(1, MOST))
    }
}

pub(crate) fn runs(house: &House) -> Reply {
    let one = |(about, live): (About, bool)| {
        let about = About { components: Value::Null, ..about };
        RunReply { about, live }
    };
    json(StatusCode::OK, &RunList { runs: house.all_runs().into_iter().map(one).collect() })
}

pub(crate) fn run(house: &House, id: &str) -> Result<Reply, Refusal> {
    let (about, _, live) = house.find(id)?;
    Ok(json(StatusCode::OK, &RunReply { about, live: live.is_some() }))
}

/// Does what waits for a disk or for an engine beside the threads that answer.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Refusal::broken("it could not be read"))?
}

fn unreadable(error: std::io::Error) -> Refusal {
    Refusal::broken(format!("the state folder cannot be read: {}", error.kind()))
}

pub(crate) async fn steps(house: &Arc<House>, id: &str, query: &Query<'_>) -> Result<Reply, Refusal> {
    let (_, folder, live) = house.find(id)?;
    let (after, most) = (query.number("after")?, query.limit()?);
    let whole = query.number("whole")?.is_some_and(|whole| whole > 0);
    let house = Arc::clone(house);
    let steps = beside(move || {
        if let Some(run) = live {
            if !whole {
                let (steps, older) = run.steps(after, most);
                if !older || steps.len() >= most {
                    return Ok(steps);
                }
            }
            run.tick(clock(), false);
            house.settle();
        }
        let mut steps = kept::steps(&folder).map_err(unreadable)?;
        steps.retain(|step| kept::number(step).is_some_and(|step| after.is_none_or(|after| step > after)));
        match whole {
            true => kept::spread(&mut steps, most),
            false => drop(steps.drain(..steps.len().saturating_sub(most))),
        }
        Ok(steps)
    });
    let text = format!("{{\"steps\":[{}]}}", steps.await?.join(","));
    Ok(json_bytes(StatusCode::OK, text))
}

pub(crate) async fn groups(house: &Arc<House>, id: &str, query: &Query<'_>) -> Result<Reply, Refusal> {
    let (_, folder, live) = house.find(id)?;
    let (step, most) = (query.number("step")?, query.limit()?);
    let house = Arc::clone(house);
    let groups: Vec<Brief> = beside(move || {
        if live.is_some() {
            house.settle();
        }
        let mut groups = kept::groups(&folder, step).map_err(unreadable)?;
        groups.drain(..groups.len().saturating_sub(most));
        Ok(groups)
    })
    .await?;
    Ok(json(StatusCode::OK, &GroupList { groups }))
}

pub(crate) async fn group(house: &Arc<House>, id: &str, group: &str) -> Result<Reply, Refusal> {
    let (_, folder, live) = house.find(id)?;
    let (house, group) = (Arc::clone(house), group.to_owned());
    let found = beside(move || {
        if live.is_some() {
            house.settle();
        }
        kept::group(&folder, &group).map_err(unreadable)
    });
    let found = found.await?.ok_or_else(|| {
        Refusal::not_found("run.no_group", "there is no such group, or it is not kept any more")
    })?;
    Ok(json(StatusCode::OK, &found))
}

pub(crate) fn recipes(house: &House) -> Reply {
    json(StatusCode::OK, &json!({ "recipes": house.recipes.about() }))
}

pub(crate) fn rewards() -> Reply {
    let rewards: Vec<Value> = RewardEntry::all().map(crate::rewards::data).collect();
    json(StatusCode::OK, &json!({ "rewards": rewards }))
}

pub(crate) fn reward(name: &str) -> Result<Reply, Refusal> {
    let entry = RewardEntry::find(name)
        .ok_or_else(|| Refusal::not_found("reward.unknown", "there is no such reward"))?;
    Ok(json(StatusCode::OK, &crate::rewards::data(entry)))
}

pub(crate) fn judges(house: &House) -> Reply {
    json(StatusCode::OK, &json!({ "judges": house.recipes.shared().tallies() }))
}

pub(crate) fn status(house: &House) -> Reply {
    let status = StatusReply {
        version: env!("CARGO_PKG_VERSION"),
        up: house.started.elapsed().as_secs_f64(),
        rollouts: house.admission.inside(),
        limit: house.limits.rollouts,
        runs: house.live(),
        jobs: house.jobs.counts().into_iter().collect(),
        stuck: house.watch.stuck(),
        draining: house.is_draining(),
    };
    json(StatusCode::OK, &status)
}

/// Whether it can take work: not while it ends, and not where its judgments cannot be kept.
pub(crate) fn ready(house: &House) -> Result<Reply, Refusal> {
    let refuse = |code, message| Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, code, message));
    if house.is_draining() {
        return refuse("service.draining", "the service is about to end");
    }
    if !house.recipes.can_be_kept() {
        return refuse("engine.journal", "the journal of judgments cannot be written");
    }
    let mut warnings = Vec::new();
    if house.tokens.are_old() {
        let message = "the file of tokens cannot be read: those that were known before stay valid, and none can be revoked";
        warnings.push(Warning { code: "service.tokens", message });
    }
    Ok(json(StatusCode::OK, &ReadyReply { ready: true, warnings }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read() {
        let query = Query("step=3&limit=99999&name=a%20b");
        assert_eq!(query.number("step").unwrap(), Some(3));
        assert_eq!(query.limit().unwrap(), MOST);
        assert_eq!(query.text("name"), Some("a%20b"));
        assert_eq!(query.number("name").unwrap_err().code, "http.query");
        assert_eq!(Query("").number("step").unwrap(), None);
    }
}
