//! The recipe catalog: the recipes that clients may name, with the operator's judges and overrides in them.

use crate::config::Config;
use crate::error::ServeError;
use crate::http::response::ApiError;
use hyper::StatusCode;
use plaudit::code::SandboxPolicy;
use plaudit::engine::{Engine, EngineOptions, SharedResources};
use plaudit::error::RunError;
use plaudit::exec::lock;
use plaudit::journal::Store;
use plaudit::judge::client::{JudgeEvent, JudgeLog};
use plaudit::plan::Plan;
use plaudit::recipe::{Recipe, closest, shipped};
use plaudit::record::Network;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long the same failure of a judge is not logged again.
const AGAIN: Duration = Duration::from_secs(60);

/// The recipes that can be named.
#[derive(Debug)]
pub(crate) struct RecipeCatalog {
    entries: BTreeMap<String, CatalogEntry>,
    shared: Arc<SharedResources>,
    /// The same for engines that only replay the journal, whose lookups are not counted.
    replayed: Arc<SharedResources>,
    journal: Store,
    /// The shipped recipes that cannot be used here, and why.
    left_out: BTreeMap<String, RunError>,
    sandbox: SandboxPolicy,
    /// The most programs of one owner that run at once.
    programs: Option<usize>,
}

#[derive(Debug)]
struct CatalogEntry {
    recipe: Recipe,
    reply: RecipeReply,
    /// The identities of its judges, so that a change of them is noticed.
    judges: String,
}

/// A recipe.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RecipeReply {
    name: String,
    description: Option<String>,
    components: Vec<PartReply>,
    judges: Vec<String>,
    /// Whether it compares the rollouts of a group with each other.
    compares: bool,
}

/// A component of a recipe.
#[derive(Debug, Serialize, JsonSchema)]
struct PartReply {
    name: String,
    reward: String,
    weight: f64,
}

impl RecipeCatalog {
    /// Loads the recipes of the configuration, or all shipped ones, of which those that cannot be used here are left out. Also returns
    /// warnings.
    pub(crate) fn load(
        config: &Config,
        set: &[(String, String)],
        journal: Store,
        sandbox: SandboxPolicy,
    ) -> Result<(Self, Vec<String>), ServeError> {
        let shared = Arc::new(SharedResources::redacted(judge_log()));
        // A replay has no errors to log: they were logged when the judge was asked.
        let replayed = Arc::new(SharedResources::redacted(Arc::new(|_, _| ())));
        let mut recipes = Self {
            entries: BTreeMap::new(),
            left_out: BTreeMap::new(),
            shared,
            replayed,
            journal,
            sandbox,
            programs: config.limits.programs,
        };
        let mut warnings = Vec::new();
        let all: Vec<String> = shipped().iter().map(|(name, _)| (*name).to_owned()).collect();
        let names = if config.recipes.is_empty() { &all } else { &config.recipes };
        let mut used = vec![false; set.len()];
        for name in names {
            let mut recipe = Recipe::named(name)?;
            let value = recipe.to_value();
            place_judges(&mut recipe, &value, config)?;
            for ((path, text), used) in set.iter().zip(&mut used) {
                if has_parent(&value, path) {
                    recipe.set(path, text)?;
                    *used = true;
                }
            }
            let plan = recipe.plan()?;
            let entry = CatalogEntry { reply: describe(&plan, &value), judges: judges(&plan), recipe };
            let named = plan.name.clone();
            warnings.extend(plan.warnings.iter().map(|warning| format!("{named}: {warning}")));
            if let Err(error) = recipes.open(plan, Network::Live, None) {
                if config.recipes.is_empty() {
                    warnings.push(format!("{named} is left out: {error}"));
                    recipes.left_out.insert(named, error);
                    continue;
                }
                return Err(error.into());
            }
            if recipes.entries.insert(named.clone(), entry).is_some() {
                return Err(ServeError::Arguments(format!("two recipes are called {named:?}")));
            }
        }
        if let Some(at) = used.iter().position(|used| !used) {
            let path = &set[at].0;
            return Err(ServeError::Arguments(format!("--set {path}: no recipe that is offered has this")));
        }
        Ok((recipes, warnings))
    }

    /// What all engines share: judge clients and threads.
    pub(crate) fn shared(&self) -> &SharedResources {
        &self.shared
    }

    /// Whether judgments can be written now.
    pub(crate) fn can_write_journal(&self) -> bool {
        self.journal.has_room().is_ok()
    }

    /// All recipes.
    pub(crate) fn list(&self) -> Vec<&RecipeReply> {
        self.entries.values().map(|entry| &entry.reply).collect()
    }

    /// The names of all recipes, and their judges with their models, in words.
    pub(crate) fn offered(&self) -> (String, String) {
        let names: Vec<&str> = self.entries.keys().map(String::as_str).collect();
        let judges = self.entries.values().flat_map(|entry| entry.judges.split(", "));
        let judges: BTreeSet<&str> = judges.filter(|judge| !judge.is_empty()).collect();
        let judges: Vec<&str> = judges.into_iter().collect();
        (names.join(", "), if judges.is_empty() { "none".to_owned() } else { judges.join(", ") })
    }

    /// The recipe that a client means: the one it names, or the only one.
    pub(crate) fn resolve(&self, name: Option<&str>) -> Result<&str, ApiError> {
        let names = || self.entries.keys().map(String::as_str);
        let Some(name) = name else {
            return match self.entries.len() {
                1 => names().next().ok_or_else(|| ApiError::internal("there is no recipe")),
                _ => {
                    let names: Vec<&str> = names().collect();
                    let message = format!("say which recipe: {}", names.join(", "));
                    Err(ApiError::bad_request("recipe.missing", message))
                }
            };
        };
        if let Some(error) = self.left_out.get(name) {
            return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, error.code(), error.to_string()));
        }
        let found = self.entries.get_key_value(name).map(|(name, _)| name.as_str());
        found.ok_or_else(|| {
            let hint = match closest(name, names()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => "GET /v1/recipes lists them".to_owned(),
            };
            let shown: String = name.chars().take(80).collect();
            ApiError::not_found("recipe.unknown", format!("there is no recipe {shown:?}; {hint}"))
        })
    }

    /// The components and judges of a recipe, for the summary of a run.
    pub(crate) fn outline(&self, name: &str) -> (Value, Value) {
        let reply = self.entries.get(name).map(|entry| &entry.reply);
        reply.map_or((Value::Null, Value::Null), |reply| (json!(reply.components), json!(reply.judges)))
    }

    /// The identities of the judges of a recipe.
    pub(crate) fn judges(&self, name: &str) -> Option<&str> {
        self.entries.get(name).map(|entry| entry.judges.as_str())
    }

    /// An engine for a recipe, which shares judge clients and threads with all others, and a limit of programs with those of the
    /// same owner.
    pub(crate) fn engine(&self, name: &str, network: Network, owner: &str) -> Result<Engine, ApiError> {
        let entry = self.entries.get(name).ok_or_else(|| {
            ApiError::not_found("recipe.unknown", "the recipe of this run is not offered any more")
        })?;
        let plan = entry.recipe.plan().map_err(|errors| ApiError::internal(errors.to_string()))?;
        self.open(plan, network, Some(owner)).map_err(|error| ApiError::internal(error.to_string()))
    }

    fn open(&self, plan: Plan, network: Network, owner: Option<&str>) -> Result<Engine, RunError> {
        let keys = |name: &str| std::env::var(name).ok();
        let shared = match network {
            Network::Live => Arc::clone(&self.shared),
            Network::Replay => Arc::clone(&self.replayed),
        };
        let options = EngineOptions {
            journal: Some(self.journal.clone()),
            network,
            keys: &keys,
            shared: Some(shared),
            dry: false,
            sandbox: self.sandbox,
            owner: owner.map(|owner| (owner, self.programs)),
        };
        Engine::open(plan, &options)
    }
}

/// Logs the errors of judges, once a minute for each judge and code, and what was learned of them.
fn judge_log() -> JudgeLog {
    let logged: Mutex<BTreeMap<(String, &'static str), Instant>> = Mutex::default();
    Arc::new(move |judge, event| {
        let reason = match event {
            JudgeEvent::Error(reason) => reason,
            JudgeEvent::Learned(what) => {
                return tracing::info!(judge, what, "a judge is asked in another way");
            }
        };
        let mut logged = lock(&logged);
        let key = (judge.to_owned(), reason.code.as_str());
        if logged.get(&key).is_none_or(|logged| logged.elapsed() > AGAIN) {
            logged.insert(key, Instant::now());
            drop(logged);
            let (code, why) = (reason.code.as_str(), &*reason.message);
            tracing::warn!(judge, code, why, "a judge gives no judgment");
        }
    })
}

/// Replaces the judges of a recipe by those of the configuration; a recipe that has none gets all.
fn place_judges(recipe: &mut Recipe, value: &Value, config: &Config) -> Result<(), ServeError> {
    let own = value.get("judges").and_then(Value::as_object);
    for (name, judge) in &config.judges {
        if own.is_none_or(|own| own.contains_key(name)) {
            let judge =
                serde_json::to_value(judge).map_err(|error| ServeError::Arguments(error.to_string()))?;
            recipe.put(&format!("judges.{name}"), &without_nulls(judge))?;
        }
    }
    Ok(())
}

/// The value without its null fields.
fn without_nulls(mut value: Value) -> Value {
    if let Value::Object(map) = &mut value {
        map.retain(|_, value| !value.is_null());
        for value in map.values_mut() {
            *value = without_nulls(value.take());
        }
    }
    value
}

/// Whether a recipe has the parent of a path.
fn has_parent(value: &Value, path: &str) -> bool {
    let Some((parent, _)) = path.rsplit_once('.') else { return true };
    parent.split('.').try_fold(value, |value, part| value.get(part)).is_some()
}

fn describe(plan: &Plan, written: &Value) -> RecipeReply {
    let components = plan.branches.iter().flat_map(|branch| branch.components.iter().zip(&branch.parts));
    RecipeReply {
        name: plan.name.clone(),
        description: written.get("description").and_then(Value::as_str).map(str::to_owned),
        components: components
            .map(|(component, part)| PartReply {
                name: component.name.clone(),
                reward: component.reward.to_string(),
                weight: part.weight,
            })
            .collect(),
        judges: plan.judges.iter().map(|judge| judge.name.clone()).collect(),
        compares: plan.compares_groups(),
    }
}

fn judges(plan: &Plan) -> String {
    let one = |judge: &plaudit::judge::config::ResolvedJudge| format!("{}={}", judge.name, judge.identity);
    plan.judges.iter().map(one).collect::<Vec<_>>().join(", ")
}
