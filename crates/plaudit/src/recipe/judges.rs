//! What may a recipe say of a judge? Where it is, how it speaks, and how hard it may be asked.

use crate::judge::query::Endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One address, or several that serve the same model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Addresses {
    /// One.
    One(String),
    /// Several; calls are balanced over them.
    Several(Vec<String>),
}

/// In which form verdicts are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FormConfig {
    /// The best that the endpoint can do: probabilities of one token, else JSON held to a schema, else a tag with a nonce.
    Auto,
    /// The probabilities of one verdict token.
    Logprobs,
    /// JSON held to a schema.
    Json,
    /// A tag with a nonce, after the judge's reasons.
    Tag,
}

/// A judge: an endpoint that is asked, or the embedded one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JudgeConfig {
    /// What kind of endpoint it is: `chat`, `classify`, `pooling`, `embeddings`, or `overlap`, which needs none.
    pub kind: Endpoint,
    /// The address up to `/v1`, or a list of addresses that serve the same model.
    pub base_url: Option<Addresses>,
    /// The model.
    pub model: Option<String>,
    /// The name of the environment variable that holds the key. The key itself must not stand in a recipe.
    pub api_key_env: Option<String>,
    /// The most calls in flight at once.
    #[schemars(range(min = 1, max = 65_536))]
    pub concurrency: usize,
    /// The most calls a minute.
    #[schemars(range(min = 1))]
    pub per_minute: Option<u32>,
    /// The most tokens a minute, read and written.
    #[schemars(range(min = 1))]
    pub tokens_per_minute: Option<u32>,
    /// How long one attempt may take, from connecting to the last byte.
    pub timeout: String,
    /// How long connecting may take.
    pub connect_timeout: String,
    /// How often a call is tried before it is given up.
    #[schemars(range(min = 1, max = 10))]
    pub attempts: u32,
    /// The share of calls that may be repeated after a failure, beyond the first three.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub retries: f64,
    /// The share of calls that may be sent a second time because the first is slow.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub hedge: f64,
    /// How long calls wait for a judge that is down before they fail.
    pub patience: String,
    /// The sampling temperature.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// The most tokens of a reply; null leaves it out of the request, for models that want another name for it, such as
    /// `extra: { max_completion_tokens: 2048 }`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_tokens: Option<u32>,
    /// In which form verdicts are asked for: `auto`, `logprobs`, `json` or `tag`.
    pub verdict: FormConfig,
    /// Further fields of every request, such as `chat_template_kwargs: { enable_thinking: false }`. What the request
    /// sets itself, such as `model` and `messages`, cannot be named here.
    pub extra: Map<String, Value>,
    /// What may be spent.
    pub budget: Option<BudgetConfig>,
    /// What tokens cost.
    pub price: Option<PriceConfig>,
    /// What makes two judges the same to the journal; the model where nothing is said. Change it when the model behind the
    /// name has changed, and nothing that was bought before is used again.
    pub identity: Option<String>,
}

impl Default for JudgeConfig {
    fn default() -> Self {
        Self {
            kind: Endpoint::Chat,
            base_url: None,
            model: None,
            api_key_env: None,
            concurrency: 64,
            per_minute: None,
            tokens_per_minute: None,
            timeout: "120s".to_owned(),
            connect_timeout: "5s".to_owned(),
            attempts: 4,
            retries: 0.2,
            hedge: 0.05,
            patience: "30s".to_owned(),
            temperature: Some(0.0),
            max_tokens: Some(2048),
            verdict: FormConfig::Auto,
            extra: Map::new(),
            budget: None,
            price: None,
            identity: None,
        }
    }
}

/// What may be spent on a judge. It holds exactly, over restarts too where there is a journal.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetConfig {
    /// The most calls, attempts and hedges included.
    pub calls: Option<u64>,
    /// The most money, in the currency of the prices.
    #[schemars(range(min = 0.0))]
    pub cost: Option<f64>,
    /// Whether that may be spent once, or `day` by day (in UTC).
    pub per: Period,
}

/// How often a budget may be spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Period {
    /// Once.
    #[default]
    Once,
    /// Every day.
    Day,
}

/// What a million tokens cost.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PriceConfig {
    /// Read by the model.
    #[schemars(range(min = 0.0))]
    pub input: f64,
    /// Read from the model's prefix cache; as `input` where nothing is said.
    #[schemars(range(min = 0.0))]
    pub cached: Option<f64>,
    /// Written by the model.
    #[schemars(range(min = 0.0))]
    pub output: f64,
}

/// What happens beside training.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ValidationConfig {
    /// Whether the reference takes part in comparisons: `include` or `ignore`.
    pub reference: ReferencePart,
}

impl Default for ValidationConfig {
    fn default() -> Self {
        Self { reference: ReferencePart::Ignore }
    }
}

/// What part the reference has in comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReferencePart {
    /// It joins each group, and every rollout is told whether it beats it.
    Include,
    /// It takes no part.
    Ignore,
}
