//! What can clients have scored? The recipes that the operator offers, with the operator's judges in them.

use super::config::Config;
use super::log;
use super::reply::Refusal;
use crate::error::CliError;
use plaudit::engine::Engine;
use plaudit::engine::{EngineOptions, SharedResources};
use plaudit::journal::Store;
use plaudit::judge::client::{ErrorSink, Network};
use plaudit::plan::Plan;
use plaudit::recipe::{Recipe, closest, shipped};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long nothing is said again of a judge that fails in the same way.
const AGAIN: Duration = Duration::from_secs(60);

/// The recipes that can be named.
#[derive(Debug)]
pub(crate) struct Recipes {
    offers: BTreeMap<String, Offer>,
    shared: Arc<SharedResources>,
    /// The same for engines that only look up what was asked, which does not count.
    replayed: Arc<SharedResources>,
    journal: Store,
}

#[derive(Debug)]
struct Offer {
    recipe: Recipe,
    about: Value,
    /// What the judges are, so that a change of them shows.
    judges: String,
}

impl Recipes {
    /// Loads what the operator offers. A shipped recipe that cannot be used here is left out, unless it was asked for.
    pub(crate) fn load(
        config: &Config,
        set: &[(String, String)],
        journal: Store,
    ) -> Result<(Self, Vec<String>), CliError> {
        let shared = Arc::new(SharedResources::discreet(error_sink()));
        // That an answer is not in the journal is no news: why there is none was said when it was asked for.
        let replayed = Arc::new(SharedResources::discreet(Arc::new(|_, _| ())));
        let mut recipes = Self { offers: BTreeMap::new(), shared, replayed, journal };
        let mut left_out = Vec::new();
        let all: Vec<String> = shipped().iter().map(|(name, _)| (*name).to_owned()).collect();
        let names = if config.recipes.is_empty() { &all } else { &config.recipes };
        let mut used = vec![false; set.len()];
        for name in names {
            let mut recipe = Recipe::named(name)?;
            let value = recipe.to_value();
            place_judges(&mut recipe, &value, config)?;
            for ((path, text), used) in set.iter().zip(&mut used) {
                if reaches(&value, path) {
                    recipe.set(path, text)?;
                    *used = true;
                }
            }
            let plan = recipe.plan()?;
            let offer = Offer { about: about(&plan, &value), judges: judges(&plan), recipe };
            let named = plan.name.clone();
            left_out.extend(plan.warnings.iter().map(|warning| format!("{named}: {warning}")));
            if let Err(error) = recipes.open(plan, Network::Live) {
                if config.recipes.is_empty() {
                    left_out.push(format!("{named} is left out: {error}"));
                    continue;
                }
                return Err(error.into());
            }
            if recipes.offers.insert(named.clone(), offer).is_some() {
                return Err(CliError::Arguments(format!("two recipes are called {named:?}")));
            }
        }
        if let Some(at) = used.iter().position(|used| !used) {
            let path = &set[at].0;
            return Err(CliError::Arguments(format!("--set {path}: no recipe that is offered has this")));
        }
        Ok((recipes, left_out))
    }

    /// What the engines have in common.
    pub(crate) fn shared(&self) -> &SharedResources {
        &self.shared
    }

    /// Whether judgments could be kept now.
    pub(crate) fn can_be_kept(&self) -> bool {
        self.journal.has_room().is_ok()
    }

    /// What every recipe is, for whoever wants to choose.
    pub(crate) fn about(&self) -> Vec<&Value> {
        self.offers.values().map(|offer| &offer.about).collect()
    }

    /// The name of the recipe that a client means: the one it names, or the only one.
    pub(crate) fn chosen(&self, name: Option<&str>) -> Result<&str, Refusal> {
        let names = || self.offers.keys().map(String::as_str);
        let Some(name) = name else {
            return match self.offers.len() {
                1 => names().next().ok_or_else(|| Refusal::broken("there is no recipe")),
                _ => {
                    let names: Vec<&str> = names().collect();
                    let message = format!("say which recipe: {}", names.join(", "));
                    Err(Refusal::bad("recipe.missing", message))
                }
            };
        };
        let found = self.offers.get_key_value(name).map(|(name, _)| name.as_str());
        found.ok_or_else(|| {
            let hint = match closest(name, names()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => "GET /v1/recipes lists them".to_owned(),
            };
            let shown: String = name.chars().take(80).collect();
            Refusal::not_found("recipe.unknown", format!("there is no recipe {shown:?}; {hint}"))
        })
    }

    /// The components and judges of a recipe, as the dashboard shows them.
    pub(crate) fn outline(&self, name: &str) -> Option<&Value> {
        self.offers.get(name).map(|offer| &offer.about)
    }

    /// What its judges are.
    pub(crate) fn judges(&self, name: &str) -> Option<&str> {
        self.offers.get(name).map(|offer| offer.judges.as_str())
    }

    /// An engine for a recipe, which has its judges and its threads in common with all others.
    pub(crate) fn engine(&self, name: &str, network: Network) -> Result<Engine, Refusal> {
        let offer = self.offers.get(name).ok_or_else(|| {
            Refusal::not_found("recipe.unknown", "the recipe of this run is not offered any more")
        })?;
        let plan = offer.recipe.plan().map_err(|mistakes| Refusal::broken(mistakes.to_string()))?;
        self.open(plan, network).map_err(|error| Refusal::broken(error.to_string()))
    }

    fn open(&self, plan: Plan, network: Network) -> Result<Engine, plaudit::error::RunError> {
        let keys = |name: &str| std::env::var(name).ok();
        let shared = match network {
            Network::Live => Arc::clone(&self.shared),
            Network::Replay => Arc::clone(&self.replayed),
        };
        let setup = EngineOptions {
            journal: Some(self.journal.clone()),
            network,
            keys: &keys,
            shared: Some(shared),
            dry: false,
        };
        Engine::open(plan, &setup)
    }
}

/// Who is told what judges say of their failures: the operator, once a minute for each judge and kind of failure.
fn error_sink() -> ErrorSink {
    let told: Mutex<BTreeMap<(String, &'static str), Instant>> = Mutex::default();
    Arc::new(move |judge, reason| {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (judge.to_owned(), reason.code.as_str());
        if told.get(&key).is_none_or(|told| told.elapsed() > AGAIN) {
            told.insert(key, Instant::now());
            drop(told);
            let facts = [
                ("judge", Value::from(judge)),
                ("code", Value::from(reason.code.as_str())),
                ("why", Value::from(&*reason.message)),
            ];
            log::say("warning", "a judge gives no judgment", &facts);
        }
    })
}

/// Puts the operator's judges in the place of those of the recipe; a recipe that has none gets all.
fn place_judges(recipe: &mut Recipe, value: &Value, config: &Config) -> Result<(), CliError> {
    let own = value.get("judges").and_then(Value::as_object);
    for (name, judge) in &config.judges {
        if own.is_none_or(|own| own.contains_key(name)) {
            let judge =
                serde_json::to_value(judge).map_err(|error| CliError::Arguments(error.to_string()))?;
            recipe.put(&format!("judges.{name}"), &spare(judge))?;
        }
    }
    Ok(())
}

/// The same without what was not said.
fn spare(mut value: Value) -> Value {
    if let Value::Object(map) = &mut value {
        map.retain(|_, value| !value.is_null());
        for value in map.values_mut() {
            *value = spare(value.take());
        }
    }
    value
}

/// Whether a recipe has what a path leads to, but for its last part.
fn reaches(value: &Value, path: &str) -> bool {
    let mut value = value;
    let mut parts: Vec<&str> = path.split('.').collect();
    parts.pop();
    for part in parts {
        match value.get(part) {
            Some(inner) => value = inner,
            None => return false,
        }
    }
    true
}

fn about(plan: &Plan, written: &Value) -> Value {
    let branch = |branch: &plaudit::plan::Branch| {
        let components: Vec<Value> = branch
            .components
            .iter()
            .zip(&branch.parts)
            .map(|(component, part)| {
                json!({ "name": component.name, "reward": component.reward, "weight": part.weight })
            })
            .collect();
        components
    };
    let components: Vec<Value> = plan.branches.iter().flat_map(branch).collect();
    let judges: Vec<&str> = plan.judges.iter().map(|judge| judge.name.as_str()).collect();
    json!({
        "name": plan.name,
        "description": written.get("description").cloned().unwrap_or(Value::Null),
        "components": components,
        "judges": judges,
        "compares": plan.compares_groups(),
    })
}

fn judges(plan: &Plan) -> String {
    let one = |judge: &plaudit::plan::Judge| format!("{}={}", judge.name, judge.identity);
    plan.judges.iter().map(one).collect::<Vec<_>>().join(", ")
}
