//! Configuration of a judge: what a recipe writes ([`JudgeConfig`]) and what it means ([`ResolvedJudge`]). A new option is
//! a field here and its use where it belongs.

use super::address;
use super::answer::{AnswerFormat, Usage};
use super::client::JudgeSetupError;
use super::endpoint::Endpoint;
use super::proxy::{self, Proxy, Variable};
use super::secret::Secret;
use crate::exec::{DURATION_SYNTAX, parse_duration};
use reqwest::header::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// One address, or several that serve the same model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AddressConfig {
    /// One.
    One(String),
    /// Several; calls are balanced over them.
    Several(Vec<String>),
}

/// The value of a header.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum HeaderConfig {
    /// As it is sent.
    Text(String),
    /// What an environment variable holds.
    Variable(HeaderVariable),
}

/// Where the value of a header that is secret stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeaderVariable {
    /// The name of the environment variable.
    pub env: String,
}

/// In which form answers are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FormatConfig {
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
    pub base_url: Option<AddressConfig>,
    /// The model.
    pub model: Option<String>,
    /// The name of the environment variable that holds the key. The key itself must not stand in a recipe.
    pub api_key_env: Option<String>,
    /// Further headers of every request, such as `api-key: { env: AZURE_API_KEY }`: a text, or the name of an environment
    /// variable. They say who asks, and are no part of what the journal knows a judgment by.
    pub headers: BTreeMap<String, HeaderConfig>,
    /// The query of every request, such as `api-version: "2024-10-21"`. It says which API answers, so that another query is
    /// another judge to the journal, unless `identity` is set.
    pub query: BTreeMap<String, String>,
    /// The proxy through which it is asked, such as `http://proxy:3128`, or `none`; as the environment variables
    /// `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say where nothing is said.
    pub proxy: Option<String>,
    /// The most calls in flight at once.
    #[schemars(range(min = 1, max = 65_536))]
    pub concurrency: usize,
    /// The most calls a minute.
    #[schemars(range(min = 1))]
    pub calls_per_minute: Option<u32>,
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
    /// The share of calls that may be sent again after a failure, beyond the first three.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub retry_share: f64,
    /// The share of calls that may be sent a second time because the first is slow.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub hedge_share: f64,
    /// How long calls wait for a judge that is down before they fail.
    pub patience: String,
    /// The sampling temperature.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// The most tokens of a reply; null leaves it out of the request, for models that want another name for it, such as
    /// `extra: { max_completion_tokens: 2048 }`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_tokens: Option<u32>,
    /// In which form answers are asked for: `auto`, `logprobs`, `json` or `tag`.
    pub answer_format: FormatConfig,
    /// Further fields of every request, such as `chat_template_kwargs: { enable_thinking: false }`. What the request
    /// sets itself, such as `model` and `messages`, cannot be named here.
    pub extra: Map<String, Value>,
    /// What may be spent.
    pub budget: Option<BudgetConfig>,
    /// What tokens cost.
    pub price: Option<Price>,
    /// What makes two judges the same to the journal; the model, and the query, where nothing is said. Change it when the
    /// model behind the name has changed, and nothing that was bought before is used again.
    pub identity: Option<String>,
}

impl Default for JudgeConfig {
    fn default() -> Self {
        Self {
            kind: Endpoint::Chat,
            base_url: None,
            model: None,
            api_key_env: None,
            headers: BTreeMap::new(),
            query: BTreeMap::new(),
            proxy: None,
            concurrency: 64,
            calls_per_minute: None,
            tokens_per_minute: None,
            timeout: "120s".to_owned(),
            connect_timeout: "5s".to_owned(),
            attempts: 4,
            retry_share: 0.2,
            hedge_share: 0.05,
            patience: "30s".to_owned(),
            temperature: Some(0.0),
            max_tokens: Some(2048),
            answer_format: FormatConfig::Auto,
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
    pub per: BudgetPeriod,
}

/// How often a budget may be spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BudgetPeriod {
    /// Once.
    #[default]
    Once,
    /// Every day.
    Day,
}

/// What a million tokens cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Price {
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

impl Price {
    /// What these tokens cost.
    pub fn of(&self, usage: &Usage) -> f64 {
        let fresh = usage.prompt.saturating_sub(usage.cached) as f64;
        let cached = usage.cached.min(usage.prompt) as f64;
        let price = self.cached.unwrap_or(self.input);
        (fresh * self.input + cached * price + usage.completion as f64 * self.output) / 1e6
    }
}

/// How long the breaker of an endpoint stays open the first time.
const FIRST_REST: Duration = Duration::from_secs(5);

/// A checked judge, with everything that follows from its configuration.
#[derive(Debug, Clone)]
pub struct ResolvedJudge {
    /// The name in the recipe.
    pub name: String,
    /// What the recipe says of it, with defaults.
    pub config: JudgeConfig,
    /// Its addresses; none for the embedded one.
    pub base_urls: Vec<String>,
    /// What stands in keys of judgments instead of the address, so that a judge that moves keeps its judgments.
    pub identity: String,
    /// How long one attempt may take, from connecting to the last byte.
    pub timeout: Duration,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long calls wait for a judge that is down.
    pub patience: Duration,
    /// How long the breaker of an endpoint stays open at first. The time doubles up to twelvefold, or to a third of the
    /// patience where that is less.
    pub rest: Duration,
    /// The API key, which whoever may see the environment fills in.
    pub api_key: Option<Secret>,
    /// The values of headers that stand in environment variables, filled in likewise.
    pub header_keys: BTreeMap<String, Secret>,
    /// The proxy on the way to each address, filled in likewise.
    pub proxies: Vec<Option<Proxy>>,
}

/// One thing that is wrong with a judge's configuration, or should be thought about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The stable code, such as `recipe.judge`.
    pub code: &'static str,
    /// The key below the judge's name.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What would help.
    pub fix: Option<String>,
}

impl ConfigError {
    fn new(key: impl Into<String>, message: impl Into<String>, fix: Option<&str>) -> Self {
        let fix = fix.map(str::to_owned);
        Self { code: "recipe.judge", key: key.into(), message: message.into(), fix }
    }
}

impl ResolvedJudge {
    /// The judge of that name, or everything that is wrong with its configuration.
    pub fn new(name: impl Into<String>, config: JudgeConfig) -> Result<Self, Vec<ConfigError>> {
        let mut errors = Vec::new();
        let base_urls = match &config.base_url {
            Some(AddressConfig::One(address)) => vec![address.clone()],
            Some(AddressConfig::Several(all)) => all.clone(),
            None => Vec::new(),
        };
        check_addresses(&config, &base_urls, &mut errors);
        check_fields(&config, &mut errors);
        let mut duration = |key: &str, text: &str| {
            let duration = parse_duration(text);
            if duration.is_none() {
                let message = format!("{text:?} is not a duration above 0 and of at most a day");
                let error = ConfigError::new(key, message, Some(DURATION_SYNTAX));
                errors.push(ConfigError { code: "recipe.duration", ..error });
            }
            duration
        };
        let timeout = duration("timeout", &config.timeout);
        let connect_timeout = duration("connect_timeout", &config.connect_timeout);
        let patience = duration("patience", &config.patience);
        if config.budget.is_some_and(|budget| budget.cost.is_some()) && config.price.is_none() {
            let fix = "write it like price: { input: 0.5, output: 1.5 }, for a million tokens each";
            errors.push(ConfigError::new("budget", "a cost needs a price", Some(fix)));
        }
        let (Some(timeout), Some(connect_timeout), Some(patience), true) =
            (timeout, connect_timeout, patience, errors.is_empty())
        else {
            return Err(errors);
        };
        let query = encode_query(&config.query);
        let identity = config.identity.clone().unwrap_or_else(|| format!("{}{query}", model(&config)));
        let (name, rest) = (name.into(), FIRST_REST);
        let (api_key, header_keys, proxies) = (None, BTreeMap::new(), Vec::new());
        Ok(Self {
            name,
            config,
            base_urls,
            identity,
            timeout,
            connect_timeout,
            patience,
            rest,
            api_key,
            header_keys,
            proxies,
        })
    }

    /// The environment variables that hold its secrets, with the header that each is for; none for the API key.
    pub fn secret_variables(&self) -> impl Iterator<Item = (Option<&str>, &str)> {
        let headers = self.config.headers.iter().filter_map(|(name, value)| match value {
            HeaderConfig::Variable(from) => Some((Some(name.as_str()), from.env.as_str())),
            HeaderConfig::Text(_) => None,
        });
        self.config.api_key_env.iter().map(|variable| (None, variable.as_str())).chain(headers)
    }

    /// The proxy on the way to each of its addresses.
    pub fn find_proxies(&self, variable: Variable<'_>) -> Result<Vec<Option<Proxy>>, JudgeSetupError> {
        let failed = |message| JudgeSetupError { judge: self.name.clone(), message };
        let written = self.config.proxy.as_deref();
        let find = |base_url: &String| Proxy::find(written, base_url, variable).map_err(failed);
        self.base_urls.iter().map(find).collect()
    }

    /// What is sent to it and shown to nobody.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let proxies = self.proxies.iter().flatten().flat_map(Proxy::credentials);
        self.api_key.iter().chain(self.header_keys.values()).chain(proxies)
    }

    /// An address as messages name it: with the proxy on the way to it.
    pub(super) fn route(&self, endpoint: usize) -> String {
        let address = self.base_urls.get(endpoint).map_or("", String::as_str);
        match self.proxies.get(endpoint) {
            Some(Some(proxy)) => format!("{address} through the proxy {proxy}"),
            _ => address.to_owned(),
        }
    }

    /// What follows the path of every request, with its question mark.
    pub(super) fn query(&self) -> String {
        encode_query(&self.config.query)
    }

    /// What can be done, but should be thought about.
    pub fn warnings(&self) -> Vec<ConfigError> {
        let open = |address: &&String| {
            self.secret_variables().next().is_some() && address::is_unencrypted_public(address)
        };
        let open = self.base_urls.iter().filter(open).map(|address| {
            let message = format!("the key goes to {address} without encryption");
            let fix = Some("write https:// unless nobody can listen on the way");
            ConfigError { code: "recipe.plain_http", ..ConfigError::new("base_url", message, fix) }
        });
        let odd = self.base_urls.iter().filter_map(|address| {
            let message = self.doubt(address)?;
            let fix = self.other_addresses(address).into_iter().next().map(|other| format!("write {other}"));
            Some(ConfigError {
                code: "recipe.address",
                ..ConfigError::new("base_url", message, fix.as_deref())
            })
        });
        open.chain(odd).collect()
    }

    /// Why nothing is likely to answer at an address.
    fn doubt(&self, address: &str) -> Option<String> {
        let (path, below) = (self.config.kind.path(), self.config.kind.is_below_v1());
        let bare = address.trim_end_matches('/');
        if bare.ends_with(path) {
            Some(format!("{address} ends in {path}, which every request adds"))
        } else if below && !address::has_path(address) {
            Some(format!("{address} has no path, and most servers answer below /v1"))
        } else if !below && bare.ends_with("/v1") {
            Some(format!("{address} ends in /v1, and vLLM has {path} beside it"))
        } else {
            None
        }
    }

    /// Where the judge may answer instead of an address at which nothing is found.
    pub fn other_addresses(&self, address: &str) -> Vec<String> {
        let address = address.trim_end_matches('/');
        let base = address.strip_suffix(self.config.kind.path()).unwrap_or(address);
        let root = base.strip_suffix("/v1").unwrap_or(base);
        let mut others = vec![base.to_owned(), format!("{root}/v1"), root.to_owned()];
        if !self.config.kind.is_below_v1() {
            others.swap(1, 2);
        }
        others.dedup();
        others.retain(|other| other != address);
        others
    }

    /// The name of the model.
    pub fn model(&self) -> &str {
        model(&self.config)
    }

    /// The formats that may be asked for, best first.
    pub fn formats(&self) -> &'static [AnswerFormat] {
        match self.config.answer_format {
            FormatConfig::Auto => &[AnswerFormat::Logprobs, AnswerFormat::Json, AnswerFormat::Tag],
            FormatConfig::Logprobs => &[AnswerFormat::Logprobs],
            FormatConfig::Json => &[AnswerFormat::Json],
            FormatConfig::Tag => &[AnswerFormat::Tag],
        }
    }

    /// What may be spent.
    pub fn budget(&self) -> BudgetConfig {
        let none = BudgetConfig { calls: None, cost: None, per: BudgetPeriod::Once };
        self.config.budget.unwrap_or(none)
    }

    /// Keeps one part of `share` of every limit, for one of so many engines that together must not exceed them. At least
    /// one call at a time is left. Budgets stay whole where they are counted over all engines.
    pub fn take_share(&mut self, share: usize, counted_together: bool) {
        let share = share.max(1);
        let config = &mut self.config;
        config.concurrency = (config.concurrency / share).max(1);
        let part = |limit: u32| (limit / u32::try_from(share).unwrap_or(u32::MAX)).max(1);
        config.calls_per_minute = config.calls_per_minute.map(part);
        config.tokens_per_minute = config.tokens_per_minute.map(part);
        if let Some(budget) = config.budget.as_mut().filter(|_| !counted_together) {
            budget.calls = budget.calls.map(|limit| limit / share as u64);
            budget.cost = budget.cost.map(|limit| limit / share as f64);
        }
    }

    /// What judges must have in common to share their limits: everything but what only requests carry.
    ///
    /// Every field is named, so that whoever adds one decides here what it is; a field that only requests carry and that is
    /// forgotten would split the limits of a judge in two.
    pub(super) fn limits_key(&self) -> String {
        let Self {
            name,
            config,
            base_urls,
            identity,
            timeout,
            connect_timeout,
            patience,
            rest,
            api_key: _,
            header_keys,
            proxies,
        } = self;
        let JudgeConfig {
            kind: _,
            base_url: _,
            model: _,
            api_key_env: _,
            headers,
            query,
            proxy,
            concurrency,
            calls_per_minute,
            tokens_per_minute,
            timeout: _,
            connect_timeout: _,
            attempts,
            retry_share,
            hedge_share,
            patience: _,
            temperature: _,
            max_tokens: _,
            answer_format: _,
            extra: _,
            budget,
            price,
            identity: _,
        } = config;
        // A key does not show in the description, but makes a judge another one.
        let keys: Vec<_> = self.secrets().map(|key| blake3::hash(key.reveal().as_bytes())).collect();
        let asked = (name, identity, base_urls, proxy, proxies, headers, header_keys, query, keys);
        let waits = (timeout, connect_timeout, patience, rest);
        let limits = (
            concurrency,
            calls_per_minute,
            tokens_per_minute,
            attempts,
            retry_share,
            hedge_share,
            budget,
            price,
        );
        format!("{asked:?} {waits:?} {limits:?}")
    }
}

fn model(config: &JudgeConfig) -> &str {
    config.model.as_deref().unwrap_or("overlap")
}

fn check_addresses(config: &JudgeConfig, base_urls: &[String], errors: &mut Vec<ConfigError>) {
    if base_urls.is_empty() != config.kind.is_local() {
        let (message, fix) = match config.kind.is_local() {
            true => ("the embedded judge has no address", "leave base_url out"),
            false => ("base_url is missing", "write it like base_url: http://127.0.0.1:8000/v1"),
        };
        errors.push(ConfigError::new("base_url", message, Some(fix)));
    }
    for address in base_urls {
        if let Err(message) = address::check(address) {
            let shown = address::without_userinfo(address);
            let fix =
                address.contains('?').then_some("write a query like query: { api-version: \"2024-10-21\" }");
            errors.push(ConfigError::new("base_url", format!("{shown:?} {message}"), fix));
        }
    }
    if let Some(Err(message)) = config.proxy.as_deref().map(proxy::check) {
        errors.push(ConfigError::new("proxy", format!("the proxy {message}"), None));
    }
}

fn check_fields(config: &JudgeConfig, errors: &mut Vec<ConfigError>) {
    for key in config.kind.reserved().iter().filter(|key| config.extra.contains_key(**key)) {
        let holds = matches!(config.answer_format, FormatConfig::Auto | FormatConfig::Json);
        let fix = match *key {
            "response_format" if !holds => continue,
            "response_format" => Some("answer_format: tag asks without one, so that it can stand here"),
            "max_tokens" | "temperature" => Some("set it beside extra; null leaves it out of the request"),
            "model" => Some("set it beside extra"),
            _ => None,
        };
        let message = format!("{key} is part of every request already, and cannot be sent twice");
        errors.push(ConfigError::new(format!("extra.{key}"), message, fix));
    }
    if !config.kind.is_local() && config.model.as_deref().is_none_or(str::is_empty) {
        errors.push(ConfigError::new("model", "the name of the model is missing", None));
    }
    check_headers(config, errors);
    if config.api_key_env.as_deref().is_some_and(|name| !is_variable(name)) {
        let fix = Some("write it like api_key_env: JUDGE_API_KEY");
        let message = "the name of an environment variable is wanted, not a key";
        errors.push(ConfigError::new("api_key_env", message, fix));
    }
}

/// Whether it can be the name of an environment variable.
fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Headers that every request has already, or that say how its bytes are framed and who may read them on the way.
const OWN_HEADERS: [&str; 18] = [
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "idempotency-key",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "traceparent",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// Whether a header or a parameter of that name carries a secret.
fn names_secret(name: &str) -> bool {
    let words =
        ["apikey", "auth", "cookie", "credential", "key", "password", "secret", "sig", "signature", "token"];
    let mut parts = name.split(|char: char| !char.is_ascii_alphanumeric());
    parts.any(|part| words.iter().any(|word| part.eq_ignore_ascii_case(word)))
}

/// The headers and the query of a judge: legal, not the engine's own, each once, and without a secret.
fn check_headers(config: &JudgeConfig, errors: &mut Vec<ConfigError>) {
    let secret = |key: String, fix: &str| {
        let message = "a secret does not belong in a recipe";
        ConfigError { code: "recipe.inline_secret", ..ConfigError::new(key, message, Some(fix)) }
    };
    let mut seen = Vec::new();
    for (name, value) in &config.headers {
        let key = format!("headers.{name}");
        let lower = name.to_ascii_lowercase();
        let mut refuse =
            |message: &str, fix: Option<&str>| errors.push(ConfigError::new(key.clone(), message, fix));
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            refuse("this is no name of a header", None);
        } else if lower == "authorization" {
            let fix = "api_key_env: NAME sends what that variable holds as authorization: Bearer";
            refuse("plaudit writes this header itself", Some(fix));
        } else if OWN_HEADERS.contains(&lower.as_str()) {
            refuse("plaudit writes this header itself", None);
        } else if seen.contains(&lower) {
            refuse("the header is given twice", Some("remove one of them"));
        }
        match value {
            HeaderConfig::Variable(from) if !is_variable(&from.env) => {
                let fix = "write it like { env: JUDGE_API_KEY }";
                refuse("the name of an environment variable is wanted, not a key", Some(fix));
            }
            HeaderConfig::Text(text) if HeaderValue::from_str(text).is_err() => {
                refuse("the value holds characters that no header can carry", None);
            }
            HeaderConfig::Text(text) if names_secret(name) && !text.is_empty() => {
                errors.push(secret(key, "put it into an environment variable, and write { env: NAME } here"));
            }
            _ => {}
        }
        seen.push(lower);
    }
    for name in config.query.keys().filter(|name| names_secret(name)) {
        let fix =
            "addresses are logged on the way: send it as a header, like headers: { api-key: { env: NAME } }";
        errors.push(secret(format!("query.{name}"), fix));
    }
}

/// A query as it follows the path of an address.
fn encode_query(query: &BTreeMap<String, String>) -> String {
    if query.is_empty() {
        return String::new();
    }
    let url = reqwest::Url::parse_with_params("http://judge/", query).ok();
    url.as_ref().and_then(reqwest::Url::query).map_or_else(String::new, |query| format!("?{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> JudgeConfig {
        let base_url = Some(AddressConfig::One("http://127.0.0.1:8000/v1".to_owned()));
        JudgeConfig { base_url, model: Some("m".to_owned()), ..JudgeConfig::default() }
    }

    #[test]
    fn all_errors_of_a_judge_are_found_at_once() {
        let wrong = JudgeConfig {
            base_url: Some(AddressConfig::One("file:///etc/passwd".to_owned())),
            model: None,
            timeout: "soon".to_owned(),
            budget: Some(BudgetConfig { cost: Some(1.0), ..BudgetConfig::default() }),
            ..config()
        };
        let errors = ResolvedJudge::new("main", wrong).expect_err("refused");
        let keys: Vec<&str> = errors.iter().map(|error| error.key.as_str()).collect();
        assert_eq!(keys, ["base_url", "model", "timeout", "budget"]);
    }

    #[test]
    fn odd_addresses_are_told_with_the_likely_one() {
        let told = |kind: Endpoint, address: &str| {
            let base_url = Some(AddressConfig::One(address.to_owned()));
            let judge =
                ResolvedJudge::new("main", JudgeConfig { kind, base_url, ..config() }).expect("a judge");
            judge.warnings().into_iter().filter_map(|warning| warning.fix).collect::<Vec<_>>().join(" ")
        };
        for (kind, address, fix) in [
            (Endpoint::Chat, "http://h:8000/v1/chat/completions", "write http://h:8000/v1"),
            (Endpoint::Chat, "http://h:8000", "write http://h:8000/v1"),
            (Endpoint::Chat, "http://h:8000/", "write http://h:8000/v1"),
            (Endpoint::Embeddings, "http://h:8000/v1/embeddings/", "write http://h:8000/v1"),
            (Endpoint::Classify, "http://h:8000/v1", "write http://h:8000"),
            (Endpoint::Pooling, "http://h:8000/pooling", "write http://h:8000"),
        ] {
            assert_eq!(told(kind, address), fix, "{address}");
        }
        for (kind, address) in [
            (Endpoint::Chat, "http://h:8000/v1"),
            (Endpoint::Chat, "https://h/v1beta/openai/"),
            (Endpoint::Classify, "http://h:8000"),
            (Endpoint::Embeddings, "http://h:8000/v1"),
        ] {
            assert_eq!(told(kind, address), "", "{address}");
        }
    }

    #[test]
    fn other_addresses_never_repeat_the_one_that_failed() {
        let judge = |kind| ResolvedJudge::new("main", JudgeConfig { kind, ..config() }).expect("a judge");
        let others = |kind, address| judge(kind).other_addresses(address);
        assert_eq!(others(Endpoint::Chat, "http://h/v1"), ["http://h"]);
        assert_eq!(others(Endpoint::Chat, "http://h/v1/chat/completions"), ["http://h/v1", "http://h"]);
        assert_eq!(others(Endpoint::Chat, "http://h/api"), ["http://h/api/v1"]);
        assert_eq!(others(Endpoint::Classify, "http://h/v1"), ["http://h"]);
        assert_eq!(others(Endpoint::Pooling, "http://h"), ["http://h/v1"]);
    }

    #[test]
    fn limits_are_shared_unless_limits_or_keys_differ() {
        let key = |config: JudgeConfig| ResolvedJudge::new("main", config).expect("a judge").limits_key();
        let warm = JudgeConfig { temperature: Some(1.0), answer_format: FormatConfig::Json, ..config() };
        assert_eq!(key(config()), key(warm));
        let others = [
            JudgeConfig { concurrency: 7, ..config() },
            JudgeConfig { calls_per_minute: Some(7), ..config() },
            JudgeConfig { hedge_share: 0.5, ..config() },
            JudgeConfig { timeout: "7s".to_owned(), ..config() },
            JudgeConfig { proxy: Some("none".to_owned()), ..config() },
            JudgeConfig {
                budget: Some(BudgetConfig { calls: Some(7), ..BudgetConfig::default() }),
                ..config()
            },
        ];
        others.into_iter().for_each(|other| assert_ne!(key(config()), key(other)));
        let mut keyed = ResolvedJudge::new("main", config()).expect("a judge");
        keyed.api_key = Some(Secret::new("sk-hidden"));
        assert_ne!(keyed.limits_key(), key(config()));
        assert!(!keyed.limits_key().contains("hidden"));
    }

    fn refused(config: JudgeConfig) -> Vec<(String, &'static str)> {
        let errors = ResolvedJudge::new("main", config).expect_err("refused");
        errors.into_iter().map(|error| (error.key, error.code)).collect()
    }

    #[test]
    fn headers_are_legal_and_hold_no_secret() {
        let text = |text: &str| HeaderConfig::Text(text.to_owned());
        let from = |env: &str| HeaderConfig::Variable(HeaderVariable { env: env.to_owned() });
        let with = |name: &str, value: HeaderConfig| JudgeConfig {
            headers: BTreeMap::from([(name.to_owned(), value)]),
            ..config()
        };
        for good in
            [("x-title", text("plaudit")), ("api-key", from("AZURE_API_KEY")), ("X-Tokens", text("9"))]
        {
            ResolvedJudge::new("main", with(good.0, good.1)).expect("a judge");
        }
        for (name, value) in [
            ("Host", text("x")),
            ("content-length", text("1")),
            ("Authorization", from("KEY")),
            ("Proxy-Authorization", from("KEY")),
            ("a header", text("x")),
            ("x-title", text("two\r\nlines")),
            ("api-key", from("sk-hidden")),
        ] {
            assert_eq!(refused(with(name, value)), [(format!("headers.{name}"), "recipe.judge")]);
        }
        let inline = with("Ocp-Apim-Subscription-Key", text("hidden"));
        let errors = ResolvedJudge::new("main", inline).expect_err("refused");
        assert_eq!(errors[0].code, "recipe.inline_secret");
        assert!(!format!("{errors:?}").contains("hidden"));
        let twice = [("x-a".to_owned(), text("1")), ("X-A".to_owned(), text("2"))];
        let twice = JudgeConfig { headers: BTreeMap::from(twice), ..config() };
        assert_eq!(refused(twice), [("headers.x-a".to_owned(), "recipe.judge")]);
    }

    #[test]
    fn a_query_is_another_judge_and_a_header_is_not() {
        let query = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let judge = |config: JudgeConfig| ResolvedJudge::new("main", config).expect("a judge");
        let asked = judge(JudgeConfig { query: query("api-version", "2024 10&x"), ..config() });
        assert_eq!(
            (asked.query().as_str(), asked.identity.as_str()),
            ("?api-version=2024+10%26x", "m?api-version=2024+10%26x")
        );
        let headers = BTreeMap::from([("x-a".to_owned(), HeaderConfig::Text("1".to_owned()))]);
        let headed = judge(JudgeConfig { headers, ..config() });
        assert_eq!(headed.identity, judge(config()).identity);
        assert_ne!(headed.limits_key(), judge(config()).limits_key());
        let identity = Some("mine".to_owned());
        assert_eq!(judge(JudgeConfig { identity, query: query("v", "1"), ..config() }).identity, "mine");
        let secret = JudgeConfig { query: query("key", "hidden"), ..config() };
        assert_eq!(refused(secret), [("query.key".to_owned(), "recipe.inline_secret")]);
    }

    #[test]
    fn a_response_format_of_ones_own_needs_answers_without_one() {
        let extra =
            Map::from_iter([("response_format".to_owned(), serde_json::json!({ "type": "json_object" }))]);
        let with = |answer_format| JudgeConfig { answer_format, extra: extra.clone(), ..config() };
        for format in [FormatConfig::Auto, FormatConfig::Json] {
            assert_eq!(refused(with(format)), [("extra.response_format".to_owned(), "recipe.judge")]);
        }
        for format in [FormatConfig::Tag, FormatConfig::Logprobs] {
            ResolvedJudge::new("main", with(format)).expect("a judge");
        }
    }

    #[test]
    fn a_proxy_with_a_password_is_refused_unshown() {
        let wrong = JudgeConfig { proxy: Some("http://me:hidden@proxy:3128".to_owned()), ..config() };
        let errors = ResolvedJudge::new("main", wrong).expect_err("refused");
        assert_eq!(errors[0].key, "proxy");
        assert!(!errors[0].message.contains("hidden"), "{}", errors[0].message);
    }

    #[test]
    fn absurd_usage_has_a_finite_price() {
        let price = Price { input: 1.0, cached: Some(0.1), output: 4.0 };
        let usage = Usage { prompt: 1_000_000, cached: 500_000, completion: 250_000 };
        assert_eq!(price.of(&usage), 1.55);
        assert!(price.of(&Usage { prompt: 0, cached: u64::MAX, completion: u64::MAX }).is_finite());
    }
}
