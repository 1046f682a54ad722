//! How does what a recipe says of a judge become a judge that can be asked?

use super::Scorer;
use super::resolve::{Resolver, mistake};
use crate::judge::query::{Endpoint, Voice};
use crate::judge::verdict::Form;
use crate::recipe::Node;
use crate::recipe::file::RecipeFile;
use crate::recipe::judges::{Addresses, FormConfig, JudgeConfig, Period};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// A judge, resolved; only its key is looked up later, by whoever may see the environment.
#[derive(Debug, Clone, PartialEq)]
pub struct Judge {
    /// The name in the recipe.
    pub name: String,
    /// How it speaks.
    pub voice: Voice,
    /// Where it is; none for the embedded one.
    pub base_urls: Vec<String>,
    /// What makes two judges the same to the journal.
    pub identity: String,
    /// The environment variable that holds its key.
    pub api_key_env: Option<String>,
    /// The most calls in flight at once.
    pub concurrency: usize,
    /// The most calls a minute.
    pub per_minute: Option<u32>,
    /// The most tokens a minute.
    pub tokens_per_minute: Option<u32>,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How often a call is tried.
    pub attempts: u32,
    /// The share of calls that may be repeated.
    pub retries: f64,
    /// The share of calls that may be hedged.
    pub hedge: f64,
    /// How long calls wait for a judge that is down.
    pub patience: Duration,
    /// The most calls in all.
    pub budget_calls: Option<u64>,
    /// The most money in all.
    pub budget_cost: Option<f64>,
    /// Whether that is what may be spent in a day.
    pub budget_daily: bool,
    /// What a million tokens cost: input, cached input, output.
    pub price: Option<(f64, f64, f64)>,
}

impl Judge {
    /// Keeps one part of `share` of every limit, for one of so many engines that together must not exceed them. At least one
    /// call at a time is left. Budgets stay whole where they are counted over all engines.
    pub fn take_share(&mut self, share: usize, counted_together: bool) {
        let share = share.max(1);
        self.concurrency = (self.concurrency / share).max(1);
        let part = |limit: u32| (limit / u32::try_from(share).unwrap_or(u32::MAX)).max(1);
        self.per_minute = self.per_minute.map(part);
        self.tokens_per_minute = self.tokens_per_minute.map(part);
        if !counted_together {
            self.budget_calls = self.budget_calls.map(|limit| limit / share as u64);
            self.budget_cost = self.budget_cost.map(|limit| limit / share as f64);
        }
    }
}

impl Resolver<'_> {
    /// Takes the recipe's judges in. A judge that a recipe before has defined is that one, so that whoever routes to
    /// other recipes says where their judges are.
    pub(super) fn define(&mut self, written: &RecipeFile) {
        let new: Vec<Judge> = self.judges(&written.judges);
        for judge in new {
            if !self.judges.iter().any(|known| known.name == judge.name) {
                self.judges.push(judge);
            }
        }
    }

    /// Which judges a component asks, if any; none at all where one of them does not exist.
    #[allow(clippy::option_option, reason = "no judge is needed, or one is and does not exist")]
    pub(super) fn asks(
        &mut self,
        path: &str,
        node: &Node,
        scorer: &Scorer,
        defined: &[String],
    ) -> Option<Option<(usize, Option<usize>)>> {
        let Scorer::Judged(question) = scorer else { return Some(None) };
        let mut places = Vec::new();
        for (key, named) in question.judges() {
            let name = named.or(if defined.len() == 1 { defined.first().map(String::as_str) } else { None });
            let place = name.and_then(|name| {
                let known = defined.iter().any(|known| known == name);
                self.judges.iter().position(|judge| judge.name == name).filter(|_| known)
            });
            let scalar = |at: usize| self.judges[at].voice.endpoint.is_scalar();
            let wants = if key == "prior" { true } else { question.is_scalar() };
            let message = match (place, name) {
                (Some(at), _) if scalar(at) == wants => {
                    places.push(at);
                    continue;
                }
                (Some(_), _) if wants => {
                    "a scalar reward model is wanted: a judge of kind classify, pooling or embeddings"
                        .to_owned()
                }
                (Some(_), _) => "a judge that can be talked to is wanted: of kind chat or overlap".to_owned(),
                // It is there, and what is wrong with it has been said.
                (None, Some(name)) if defined.iter().any(|known| known == name) => continue,
                (None, Some(name)) => format!("there is no judge {name:?}"),
                (None, None) if defined.is_empty() => "there is no judge to ask".to_owned(),
                (None, None) => "there are several judges: say which".to_owned(),
            };
            let fix = match defined {
                [] => "define one, such as judges: { main: { base_url: http://127.0.0.1:8000/v1, model: NAME } }".to_owned(),
                names => format!("the judges are {}", names.join(", ")),
            };
            let path = format!("{path}.{key}");
            let line = node.get(key).map_or(node.line, |node| node.line);
            self.mistakes.push(mistake("recipe.judge", &path, line, message, Some(fix)));
        }
        let judge = *places.first()?;
        let complete = places.len() == question.judges().count();
        complete.then_some(Some((judge, places.get(1).copied())))
    }

    /// Every judge that the recipe defines.
    fn judges(&mut self, written: &BTreeMap<String, JudgeConfig>) -> Vec<Judge> {
        written.iter().filter_map(|(name, judge)| self.judge(name, judge)).collect()
    }

    fn judge(&mut self, name: &str, written: &JudgeConfig) -> Option<Judge> {
        let path = format!("judges.{name}");
        let before = self.mistakes.len();
        let embedded = written.kind == Endpoint::Overlap;
        let base_urls = match &written.base_url {
            Some(Addresses::One(address)) => vec![address.clone()],
            Some(Addresses::Several(all)) => all.clone(),
            None => Vec::new(),
        };
        if base_urls.is_empty() != embedded {
            let (message, fix) = match embedded {
                true => ("the embedded judge has no address", "leave base_url out"),
                false => ("base_url is missing", "write it like base_url: http://127.0.0.1:8000/v1"),
            };
            self.refuse(&format!("{path}.base_url"), message.to_owned(), Some(fix));
        }
        for address in &base_urls {
            if let Err(message) = check_address(address) {
                let shown = without_userinfo(address);
                self.refuse(&format!("{path}.base_url"), format!("{shown:?} {message}"), None);
            } else if written.api_key_env.is_some() && is_open(address) {
                let path = format!("{path}.base_url");
                let message = format!("the key goes to {address} without encryption");
                let fix = Some("write https:// unless nobody can listen on the way".to_owned());
                let warning = mistake("recipe.plain_http", &path, self.line(&path), message, fix);
                self.warnings.push(warning);
            }
        }
        for key in written.kind.reserved().iter().filter(|key| written.extra.contains_key(**key)) {
            let fix = match *key {
                "max_tokens" | "temperature" => {
                    Some("set it beside extra; null leaves it out of the request")
                }
                "model" => Some("set it beside extra"),
                _ => None,
            };
            let message = format!("{key} is part of every request already, and cannot be sent twice");
            self.refuse(&format!("{path}.extra.{key}"), message, fix);
        }
        if !embedded && written.model.as_deref().is_none_or(str::is_empty) {
            let fix = self.neighbour(&path);
            let message = "the name of the model is missing".to_owned();
            self.refuse(&format!("{path}.model"), message, fix.as_deref());
        }
        let plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if written.api_key_env.as_deref().is_some_and(|name| name.is_empty() || !plain(name)) {
            let fix = Some("write it like api_key_env: JUDGE_API_KEY");
            self.refuse(
                &format!("{path}.api_key_env"),
                "the name of an environment variable is wanted, not a key".to_owned(),
                fix,
            );
        }
        let mut time = |key: &str, text: &str| self.duration(&format!("{path}.{key}"), text);
        let timeout = time("timeout", &written.timeout);
        let connect_timeout = time("connect_timeout", &written.connect_timeout);
        let patience = time("patience", &written.patience);
        if written.budget.is_some_and(|budget| budget.cost.is_some()) && written.price.is_none() {
            let fix = Some("write it like price: { input: 0.5, output: 1.5 }, for a million tokens each");
            self.refuse(&format!("{path}.budget"), "a cost needs a price".to_owned(), fix);
        }
        if self.mistakes.len() > before {
            return None;
        }
        let model = written.model.clone().unwrap_or_else(|| "overlap".to_owned());
        Some(Judge {
            name: name.to_owned(),
            identity: written.identity.clone().unwrap_or_else(|| model.clone()),
            voice: Voice {
                endpoint: written.kind,
                model,
                temperature: written.temperature,
                max_tokens: written.max_tokens,
                forms: match written.verdict {
                    FormConfig::Auto => vec![Form::Logprobs, Form::Json, Form::Tag],
                    FormConfig::Logprobs => vec![Form::Logprobs],
                    FormConfig::Json => vec![Form::Json],
                    FormConfig::Tag => vec![Form::Tag],
                },
                extra: written.extra.clone(),
            },
            base_urls,
            api_key_env: written.api_key_env.clone(),
            concurrency: written.concurrency,
            per_minute: written.per_minute,
            tokens_per_minute: written.tokens_per_minute,
            timeout: timeout?,
            connect_timeout: connect_timeout?,
            attempts: written.attempts,
            retries: written.retries,
            hedge: written.hedge,
            patience: patience?,
            budget_calls: written.budget.and_then(|budget| budget.calls),
            budget_cost: written.budget.and_then(|budget| budget.cost),
            budget_daily: written.budget.is_some_and(|budget| budget.per == Period::Day),
            price: written
                .price
                .map(|price| (price.input, price.cached.unwrap_or(price.input), price.output)),
        })
    }

    fn refuse(&mut self, path: &str, message: String, fix: Option<&str>) {
        let line =
            self.line(path).or_else(|| self.line(path.rsplit_once('.').map_or(path, |(parent, _)| parent)));
        self.mistakes.push(mistake("recipe.judge", path, line, message, fix.map(str::to_owned)));
    }
}

/// Whether it is an address that can be asked, and nothing else: no name or password, no query, no variable.
fn check_address(address: &str) -> Result<(), &'static str> {
    let rest = address.strip_prefix("http://").or_else(|| address.strip_prefix("https://"));
    let Some(rest) = rest else { return Err("must begin with http:// or https://") };
    let authority = rest.split('/').next().unwrap_or(rest);
    if authority.is_empty() || authority.starts_with(':') {
        return Err("has no host");
    }
    let is_odd = |char: char| !char.is_ascii_graphic() || matches!(char, '@' | '#' | '?' | '$' | '\\');
    if address.contains(is_odd) {
        return Err("must be a plain address: no name, password, query, fragment or variable");
    }
    if split_port(authority).1.is_some_and(|port| !port.parse::<u16>().is_ok_and(|port| port > 0)) {
        return Err("has no port between 1 and 65535");
    }
    match reqwest::Url::parse(address) {
        Ok(_) => Ok(()),
        Err(_) => Err("is not a URL"),
    }
}

/// The host of an address, and what stands for its port. The colons of an IPv6 address stand in brackets.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

/// An address without a name and password, as it may be shown.
fn without_userinfo(address: &str) -> String {
    let start = address.find("://").map_or(0, |at| at + 3);
    let end = address[start..].find(['/', '?', '#']).map_or(address.len(), |at| start + at);
    match address[start..end].rfind('@') {
        Some(at) => format!("{}***{}", &address[..start], &address[start + at..]),
        None => address.to_owned(),
    }
}

/// Whether what is sent to an address may be read on its way: without TLS, and to a host that is not on this machine or in
/// a private network. A name without a dot is one of a private network.
fn is_open(address: &str) -> bool {
    let Some(rest) = address.strip_prefix("http://") else { return false };
    let host = split_port(rest.split('/').next().unwrap_or(rest)).0.to_ascii_lowercase();
    let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => {
            let carrier = ip.octets()[0] == 100 && ip.octets()[1] & 0xc0 == 64;
            !(ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified() || carrier)
        }
        Ok(IpAddr::V6(ip)) => {
            !(ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local() || ip.is_unspecified())
        }
        Err(_) => {
            let near = [".localhost", ".local", ".internal", ".lan", ".home.arpa", ".svc", ".cluster.local"];
            host.contains('.') && !near.iter().any(|end| host.ends_with(end))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{check_address, is_open, without_userinfo};

    #[test]
    fn only_plain_addresses_are_taken() {
        for good in ["http://127.0.0.1:8000/v1", "https://api.openai.com/v1", "http://[::1]:8080"] {
            assert_eq!(check_address(good), Ok(()), "{good}");
        }
        for bad in [
            "file:///etc/passwd",
            "gopher://127.0.0.1:25/_x",
            "http://evil.example@127.0.0.1/",
            "http://127.0.0.1#@api.openai.com/",
            "http://",
            "http://:80/v1",
            "${X:-http://evil}",
            "https://h/v1?key=sk-1",
            "http://h:99999/v1",
            "http://h:0",
            "http://h:/v1",
            "http://h\0/v1",
            "http://h\n/v1",
            "http://[::1]:0/",
        ] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_password_in_an_address_is_not_shown() {
        assert_eq!(without_userinfo("https://user:p@w@host/v1"), "https://***@host/v1");
        assert_eq!(without_userinfo("user:pw@host"), "***@host");
        assert_eq!(without_userinfo("http://host/a@b"), "http://host/a@b");
    }

    #[test]
    fn only_foreign_hosts_without_tls_are_open() {
        for open in ["http://api.example.com/v1", "http://8.8.8.8:8000", "http://[2001:db8::1]:80/v1"] {
            assert!(is_open(open), "{open}");
        }
        for near in [
            "https://api.example.com/v1",
            "http://127.0.0.1:8000/v1",
            "http://[::1]:8000",
            "http://10.0.0.5:8000/v1",
            "http://192.168.1.2",
            "http://100.64.0.9:80",
            "http://localhost:8000/v1",
            "http://vllm:8000/v1",
            "http://judge.models.svc.cluster.local/v1",
        ] {
            assert!(!is_open(near), "{near}");
        }
    }
}
