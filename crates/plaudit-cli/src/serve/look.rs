//! What can be looked at? Runs with their steps and groups, recipes, rewards, judges: what the dashboard shows, and nothing else
//! does the dashboard have.

use super::house::House;
use super::kept::{self, Brief};
use super::reply::{Refusal, Reply, json, json_bytes};
use hyper::StatusCode;
use plaudit::court::Exchange;
use plaudit::engine::Terms;
use plaudit::input::{self, Fields};
use plaudit::judge::{Reply as Said, Side, Verdict};
use plaudit::registry::Entry;
use plaudit::rollout::Rollout;
use plaudit::schedule::Network;
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
    let one = |(about, live): (kept::About, bool)| {
        let mut value = json!(about);
        value["live"] = json!(live);
        if let Some(map) = value.as_object_mut() {
            map.remove("components");
            map.remove("next_group");
        }
        value
    };
    let runs: Vec<Value> = house.all_runs().into_iter().map(one).collect();
    json(StatusCode::OK, &json!({ "runs": runs }))
}

pub(crate) fn run(house: &House, id: &str) -> Result<Reply, Refusal> {
    let (about, _, live) = house.find(id)?;
    let mut value = json!(about);
    value["live"] = json!(live.is_some());
    Ok(json(StatusCode::OK, &value))
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
    let house = Arc::clone(house);
    let steps = beside(move || {
        if let Some(run) = live {
            let (steps, older) = run.steps(after, most);
            if !older || steps.len() >= most {
                return Ok(steps);
            }
            house.settle();
        }
        let mut steps = kept::steps(&folder).map_err(unreadable)?;
        steps.retain(|step| kept::number(step).is_some_and(|step| after.is_none_or(|after| step > after)));
        steps.drain(..steps.len().saturating_sub(most));
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
    Ok(json(StatusCode::OK, &json!({ "groups": groups })))
}

pub(crate) async fn group(house: &Arc<House>, id: &str, group: &str) -> Result<Reply, Refusal> {
    let (about, folder, live) = house.find(id)?;
    let (house, group) = (Arc::clone(house), group.to_owned());
    let shown = beside(move || {
        if live.is_some() {
            house.settle();
        }
        let found = kept::group(&folder, &group).map_err(unreadable)?;
        let (brief, kept) = found.ok_or_else(|| {
            Refusal::not_found("run.no_group", "there is no such group, or it is not kept any more")
        })?;
        // A recipe that is not offered any more cannot explain its groups; they are shown all the same.
        let engine = house.recipes.engine(&about.recipe, Network::Replay).ok();
        Ok(shown(&brief, &kept, engine.as_ref()))
    });
    Ok(json(StatusCode::OK, &shown.await?))
}

/// A group as a person may want to see it: its texts, what was said of them, and every question that was asked about it.
pub(crate) fn shown(brief: &Brief, kept: &Value, engine: Option<&plaudit::engine::Engine>) -> Value {
    let none = Vec::new();
    let members = kept["members"].as_array().unwrap_or(&none);
    let read = |member: &Value| {
        let line = member["rollout"].to_string();
        input::read_line(line.as_bytes(), &Fields::own()).ok()?.next()
    };
    let rollouts: Vec<Rollout<'static>> = members.iter().filter_map(read).collect();
    let terms = Terms { validate: kept["validate"].as_bool(), halt: None };
    let explained = engine.and_then(|engine| engine.explain(&rollouts, &terms).ok());
    let exchanges: Vec<Value> =
        explained.map_or_else(Vec::new, |(_, exchanges)| exchanges.iter().map(exchange).collect());
    let first = members.first().map_or(&Value::Null, |member| &member["rollout"]);
    let mut value = json!(brief);
    value["prompt"] = first["prompt"].clone();
    value["reference"] = first["reference"].clone();
    let row = |member: &Value| json!({ "response": member["rollout"]["response"], "tokens": member["rollout"]["tokens"], "result": member["result"] });
    value["rollouts"] = members.iter().map(row).collect();
    value["exchanges"] = Value::Array(exchanges);
    value
}

fn exchange(exchange: &Exchange) -> Value {
    let verdict = match &exchange.verdict {
        Err(reason) => json!({ "kind": "failed", "code": reason.code, "message": reason.message }),
        Ok(Verdict::Score(score)) => json!({ "kind": "score", "score": score }),
        Ok(Verdict::Ranking(order)) => json!({ "kind": "ranking", "order": order }),
        Ok(Verdict::Pair { winner, first }) => {
            let winner = winner.map(|side| match side {
                Side::First => 0,
                Side::Second => 1,
            });
            json!({ "kind": "pair", "winner": winner, "first": first })
        }
    };
    let reply = exchange.reply.as_deref().map(|body| match Said::read(body) {
        Ok(said) => said.content,
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    });
    json!({
        "component": exchange.component, "judge": exchange.judge, "shown": exchange.shown,
        "labels": exchange.labels, "form": exchange.form, "attempts": exchange.attempts,
        "cached": exchange.cached, "verdict": verdict, "reply": reply,
    })
}

pub(crate) fn recipes(house: &House) -> Reply {
    json(StatusCode::OK, &json!({ "recipes": house.recipes.about() }))
}

pub(crate) fn rewards() -> Reply {
    let rewards: Vec<Value> = Entry::all().map(crate::rewards::data).collect();
    json(StatusCode::OK, &json!({ "rewards": rewards }))
}

pub(crate) fn reward(name: &str) -> Result<Reply, Refusal> {
    let entry =
        Entry::find(name).ok_or_else(|| Refusal::not_found("reward.unknown", "there is no such reward"))?;
    Ok(json(StatusCode::OK, &crate::rewards::data(entry)))
}

pub(crate) fn judges(house: &House) -> Reply {
    json(StatusCode::OK, &json!({ "judges": house.recipes.shared().tallies() }))
}

pub(crate) fn status(house: &House) -> Reply {
    let status = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "up": house.started.elapsed().as_secs_f64(),
        "rollouts": house.admission.inside(),
        "limit": house.limits.rollouts,
        "runs": house.live(),
        "jobs": house.jobs.counts().into_iter().collect::<std::collections::BTreeMap<_, _>>(),
        "stuck": house.watch.stuck(),
        "draining": house.is_draining(),
    });
    json(StatusCode::OK, &status)
}

/// Whether it can take work: not while it ends, and not where its judgments cannot be kept.
pub(crate) fn ready(house: &House) -> Result<Reply, Refusal> {
    let refuse = |code, message| Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, code, message));
    if house.is_draining() {
        return refuse("service.draining", "the service is about to end");
    }
    if house.recipes.is_stuck() {
        return refuse("engine.journal", "the journal of judgments cannot be written");
    }
    Ok(json(StatusCode::OK, &json!({ "ready": true })))
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
