//! `/v1/rewards`, `/v1/recipes` and `/v1/judges`: what can be scored with, and what judges have been asked.

use crate::http::response::{ApiError, ok};
use crate::recipes::RecipeReply;
use crate::state::AppState;
use axum::extract::{Path, State};
use axum::response::Response;
use plaudit::judge::client::JudgeUsage;
use plaudit::registry::{RewardEntry, Scorer};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The rewards there are.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RewardList {
    rewards: Vec<RewardReply>,
}

/// A reward.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RewardReply {
    name: String,
    aliases: Vec<String>,
    summary: String,
    /// All that is said of it, in Markdown.
    page: String,
    needs_reference: bool,
    needs_judge: bool,
    needs_group: Option<bool>,
    range: Option<RangeReply>,
    floor: Option<f64>,
    /// The JSON schema of its parameters.
    #[schemars(with = "Map<String, Value>")]
    schema: Value,
}

/// Between what its values lie; an end without limit is null.
// serde_json writes an infinite number as null.
#[derive(Debug, Serialize, JsonSchema)]
struct RangeReply {
    min: Option<f64>,
    max: Option<f64>,
}

impl RewardReply {
    /// A reward of the registry.
    pub fn new(entry: RewardEntry<'_>) -> Self {
        let (summary, page) = entry.page();
        let scorer = entry.with_defaults();
        let properties = scorer.as_ref().map(Scorer::properties);
        Self {
            name: entry.name().to_owned(),
            aliases: entry.aliases().iter().map(ToString::to_string).collect(),
            summary,
            page,
            needs_reference: entry.needs_reference(),
            needs_judge: matches!(entry, RewardEntry::Judged(_)),
            needs_group: scorer.as_ref().map(Scorer::compares),
            range: properties
                .map(|known| RangeReply { min: Some(known.range.min), max: Some(known.range.max) }),
            floor: properties.map(|known| known.floor),
            schema: entry.schema(),
        }
    }
}

/// The recipes that can be named.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RecipeList<'a> {
    recipes: Vec<&'a RecipeReply>,
}

/// What judges have been asked since the service began.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JudgeList {
    judges: Vec<JudgeUsage>,
}

/// `GET /v1/rewards`.
pub(crate) async fn rewards() -> Response {
    ok(&RewardList { rewards: RewardEntry::all().map(RewardReply::new).collect() })
}

/// `GET /v1/rewards/{reward}`.
pub(crate) async fn reward(Path(name): Path<String>) -> Result<Response, ApiError> {
    let entry = RewardEntry::find(&name);
    let entry = entry.ok_or_else(|| ApiError::not_found("reward.unknown", "there is no such reward"))?;
    Ok(ok(&RewardReply::new(entry)))
}

/// `GET /v1/recipes`.
pub(crate) async fn recipes(State(app): State<Arc<AppState>>) -> Response {
    ok(&RecipeList { recipes: app.recipes.list() })
}

/// `GET /v1/judges`.
pub(crate) async fn judges(State(app): State<Arc<AppState>>) -> Response {
    ok(&JudgeList { judges: app.recipes.shared().judge_usage() })
}
