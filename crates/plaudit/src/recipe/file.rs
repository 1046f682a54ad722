//! Recipe file format: the structs that a recipe is deserialized into, and their JSON schema.

use crate::compose::turn_rewards::TurnRewards;
use crate::compose::{Combine, Normalize};
use crate::group::Partial;
use crate::judge::config::JudgeConfig;
use crate::registry::RewardEntry;
use crate::reward::inline_schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A plaudit recipe: which components, weights and policies make the total of a rollout.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RecipeFile {
    /// The name of the recipe, in reports.
    pub name: Option<String>,
    /// What the recipe is for, in a sentence.
    pub description: Option<String>,
    /// The components, each under a name of its own, which is also the name of its column.
    pub components: Map<String, Value>,
    /// How the weighted values are put together.
    pub combine: Combine,
    /// Spreads the total over the model's turns, for trainers that give credit to each.
    pub turn_rewards: Option<TurnRewards>,
    /// The number that stands for an invalid total where a trainer must be given a number.
    pub invalid_value: Option<f64>,
    /// The judges, each under a name of its own by which components ask them.
    pub judges: BTreeMap<String, JudgeConfig>,
    /// What happens beside training.
    pub validation: ValidationConfig,
    /// How groups are handled.
    pub groups: GroupsConfig,
    /// What a response may not exceed.
    pub limits: LimitsConfig,
    /// Sends rollouts to other recipes by a field.
    pub route: Option<RouteConfig>,
}

/// What happens beside training.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ValidationConfig {
    /// Whether the reference takes part in comparisons: `include` or `ignore`.
    pub reference: ReferencePart,
}

/// What part the reference has in comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReferencePart {
    /// It joins each group, and every rollout is told whether it beats it.
    Include,
    /// It takes no part.
    #[default]
    Ignore,
}

/// How groups are handled.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GroupsConfig {
    /// How many groups are scored at once, and the most threads that ask judges; one a core where nothing is said.
    #[schemars(range(min = 1, max = 1024))]
    pub parallel: Option<usize>,
    /// How long one group may take, such as `300s`, `500ms` or `5m`; what is not scored by then is invalid. Where
    /// rollouts are handed in one at a time, a group waits that long for its members, from the first.
    pub timeout: String,
    /// Whether groups of different sizes are refused.
    pub same_size: bool,
    /// What becomes of a group of which members never arrive, where rollouts are handed in one at a time.
    pub partial: Partial,
    /// How long a group waits for its next member once half of them are there, such as `30s`; where nothing is said, only
    /// `timeout` counts.
    pub quiet: Option<String>,
    /// How many groups that have been scored are remembered, so that a member that comes late can be compared with them.
    #[schemars(range(max = 1_000_000))]
    pub remember: usize,
}

impl Default for GroupsConfig {
    fn default() -> Self {
        Self {
            parallel: None,
            timeout: "300s".to_owned(),
            same_size: false,
            partial: Partial::Score,
            quiet: None,
            remember: 10_000,
        }
    }
}

/// What a response may not exceed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// The longest response in bytes; a longer one gets every component's floor.
    #[schemars(range(min = 1, max = 8_388_608))]
    pub response_bytes: usize,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self { response_bytes: 1024 * 1024 }
    }
}

/// Sends rollouts to other recipes by a field of `extra`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    /// The field that decides, such as `extra.data_source`, or a list of such fields: the first one whose value is a case decides.
    /// A list with one element in it stands for that element.
    pub by: RouteFields,
    /// Values of that field, and the recipes that they lead to: shipped ones by name, or files beside this one.
    pub cases: BTreeMap<String, String>,
    /// The recipe of every other rollout. Without it they are scored by this recipe's own components, or are invalid
    /// where it has none.
    #[serde(default)]
    pub default: Option<String>,
}

/// One field, or several of them in the order in which they are asked.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RouteFields {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl RouteFields {
    /// All of them.
    pub fn all(&self) -> &[String] {
        match self {
            Self::One(field) => std::slice::from_ref(field),
            Self::Several(fields) => fields,
        }
    }
}

/// What every component may say, whatever its reward; all other keys are the reward's own parameters.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComponentConfig {
    /// The name of the reward; `plaudit rewards` lists them.
    pub reward: String,
    /// How much the value counts in the total; 0 measures it without adding it.
    #[serde(default = "one")]
    pub weight: f64,
    /// Whether a rollout to which the component does not apply is invalid, rather than scored by the others.
    #[serde(default)]
    pub required: bool,
    /// What a response that breaks a limit gets, in place of the reward's own floor.
    #[serde(default)]
    pub floor: Option<f64>,
    /// Makes the component a gate: asked first, and able to settle the total alone.
    #[serde(default)]
    pub gate: Option<GateConfig>,
    /// From which value on the component says that the answer is right. Rewards that tell right from wrong say so themselves:
    /// their best value is right. The first component that says anything decides whether a rollout is correct.
    #[serde(default)]
    pub right_from: Option<f64>,
    /// Normalises the values before they are weighed, for trainers that cannot do that for each component (GDPO).
    #[serde(default)]
    pub normalize: Option<Normalize>,
    /// Whether the state after each turn of a conversation is scored as well, for `turn_rewards`.
    #[serde(default)]
    pub per_turn: bool,
}

/// A component without a reward of its own: its value is that of the first of other components that says right.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FirstOfConfig {
    /// The names of other components, the cheap ones first, each of weight 0. The last, which may ask a judge, is asked only where
    /// none before it has its best value.
    #[schemars(length(min = 2))]
    pub first_of: Vec<String>,
    /// How much the value counts in the total; 0 measures it without adding it.
    #[serde(default = "one")]
    pub weight: f64,
    /// Whether a rollout to which none of the components applies is invalid, rather than scored by the others.
    #[serde(default)]
    pub required: bool,
}

/// A gate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GateConfig {
    /// Below this value the gate is closed and the other components are not asked.
    pub min: f64,
    /// The total of a rollout whose gate is closed; where nothing is said, what the gates alone give.
    #[serde(default)]
    pub total: Option<f64>,
}

fn one() -> f64 {
    1.0
}

/// The schema of a component of one reward: what every component may say, and the reward's parameters.
pub fn component_schema(entry: RewardEntry<'_>) -> Value {
    let mut whole = inline_schema::<ComponentConfig>();
    let own = entry.schema();
    if let (Some(properties), Some(parameters)) =
        (whole["properties"].as_object_mut(), own["properties"].as_object())
    {
        for (name, schema) in parameters {
            properties.insert(name.clone(), schema.clone());
        }
    }
    if let (Some(required), Some(own)) = (whole["required"].as_array_mut(), own["required"].as_array()) {
        required.extend(own.iter().cloned());
    }
    whole
}

/// The parameters that every component has, which no reward may use for its own.
pub fn reserved() -> Vec<String> {
    let schema = inline_schema::<ComponentConfig>();
    schema["properties"].as_object().into_iter().flat_map(|all| all.keys().cloned()).collect()
}

/// The schema of a recipe as a whole, in which nothing is said of single rewards.
pub(crate) fn outline() -> Value {
    inline_schema::<RecipeFile>()
}

/// The JSON schema of recipes, for editors: every reward with its parameters.
pub fn schema() -> Value {
    let component = |entry: RewardEntry<'static>| {
        let mut schema = component_schema(entry);
        let mut names = vec![entry.name()];
        names.extend(entry.aliases());
        schema["properties"]["reward"] = json!({ "enum": names, "description": entry.page().0 });
        schema["title"] = json!(entry.name());
        if let Some(schema) = schema.as_object_mut() {
            schema.remove("$schema");
            schema.remove("description");
        }
        schema
    };
    let mut first_of = inline_schema::<FirstOfConfig>();
    first_of["title"] = json!("first_of");
    if let Some(schema) = first_of.as_object_mut() {
        schema.remove("$schema");
    }
    let components = RewardEntry::all().map(component).chain([first_of]).collect::<Vec<_>>();
    let mut whole = outline();
    whole["title"] = json!("plaudit recipe");
    whole["properties"]["components"] = json!({
        "description": whole["properties"]["components"]["description"],
        "type": "object",
        "additionalProperties": { "anyOf": components },
    });
    whole
}
