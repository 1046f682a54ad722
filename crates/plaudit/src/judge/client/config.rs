//! What is asked, of which judge, and what comes of it? The question, the judge's settings and the answer.

use crate::judge::{Form, Usage, Verdict};
use crate::reason::{Code, Reason};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// A text that is sent to the judge and shown to nobody.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text to itself.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the header that needs it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// A text of somebody else's with stars in place of this one: as it is, as a URL or JSON would write it, or in base64.
    /// What is shorter than four letters is no secret, and is part of too many words.
    pub(super) fn hidden<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut shown = Cow::Borrowed(text);
        if self.0.len() < SHORTEST {
            return shown;
        }
        let json = serde_json::Value::from(self.0.as_str()).to_string();
        let encoded = base64(self.0.as_bytes());
        let forms = [&self.0, json.trim_matches('"'), &percent(&self.0), encoded.trim_end_matches('=')];
        for form in forms.into_iter().filter(|form| form.len() >= SHORTEST) {
            if shown.contains(form) {
                shown = Cow::Owned(shown.replace(form, "***"));
            }
        }
        shown
    }
}

/// The shortest text that is hidden.
const SHORTEST: usize = 4;

/// As a URL writes it.
fn percent(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let letter = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(letter).collect()
}

/// As RFC 4648 writes it.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |three: &[u8]| -> String {
        let at = |place: usize| u32::from(three.get(place).copied().unwrap_or(0));
        let bits = (at(0) << 16) | (at(1) << 8) | at(2);
        let letter = |place: usize| match place > three.len() {
            true => '=',
            false => char::from(LETTERS[(bits >> (18 - 6 * place)) as usize & 63]),
        };
        (0..4).map(letter).collect()
    };
    bytes.chunks(3).map(group).collect()
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

/// What a million tokens cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Read.
    pub input: f64,
    /// Read from the endpoint's prefix cache.
    pub cached: f64,
    /// Written.
    pub output: f64,
}

impl Price {
    /// What these tokens cost.
    pub fn of(&self, usage: &Usage) -> f64 {
        let fresh = usage.prompt.saturating_sub(usage.cached) as f64;
        let cached = usage.cached.min(usage.prompt) as f64;
        (fresh * self.input + cached * self.cached + usage.completion as f64 * self.output) / 1e6
    }
}

/// A judge: where it is, what it may cost, and how patient we are with it.
#[derive(Debug, Clone)]
pub struct JudgeSpec {
    /// What reports call it.
    pub name: String,
    /// Endpoints that answer alike, such as `http://127.0.0.1:8000/v1`.
    pub base_urls: Vec<String>,
    /// What stands in keys instead of the URL, so that a judge that moves keeps its judgments.
    pub identity: String,
    /// The key that it asks for.
    pub api_key: Option<Secret>,
    /// How many calls may be in flight at once.
    pub concurrency: usize,
    /// The time of one attempt, from connecting to the last byte.
    pub timeout: Duration,
    /// The time to connect.
    pub connect_timeout: Duration,
    /// How often one question is sent at most.
    pub attempts: u32,
    /// How long calls wait for a judge that is down.
    pub patience: Duration,
    /// How long a judge that is down is left alone at first. The time doubles up to twelvefold, or to a third of the
    /// patience where that is less.
    pub rest: Duration,
    /// The share of calls that may be sent a second time because the first is slow.
    pub hedge: f64,
    /// The share of calls that may be retried, beside three that always may.
    pub retries: f64,
    /// How many calls may be made in all, over restarts.
    pub budget_calls: Option<u64>,
    /// What all calls may cost, over restarts.
    pub budget_cost: Option<f64>,
    /// Whether the budgets are those of a day, counted in UTC, rather than of all time.
    pub budget_daily: bool,
    /// What tokens cost.
    pub price: Option<Price>,
    /// The forms that it may be asked in.
    pub forms: Vec<Form>,
    /// How many calls may start in a minute, evenly paced.
    pub per_minute: Option<u32>,
    /// How many tokens, read and written, may be used in a minute, evenly paced.
    pub tokens_per_minute: Option<u32>,
}

impl JudgeSpec {
    /// A judge at one address, with everything else at its default.
    pub fn at(name: impl Into<String>, base_url: impl Into<String>) -> Self {
        let (name, url) = (name.into(), base_url.into());
        Self {
            identity: name.clone(),
            name,
            base_urls: vec![url],
            api_key: None,
            concurrency: 32,
            timeout: Duration::from_secs(120),
            connect_timeout: Duration::from_secs(5),
            attempts: 4,
            patience: Duration::from_secs(30),
            rest: Duration::from_secs(5),
            hedge: 0.05,
            retries: 0.2,
            budget_calls: None,
            budget_cost: None,
            budget_daily: false,
            price: None,
            forms: vec![Form::Logprobs, Form::Json, Form::Tag],
            per_minute: None,
            tokens_per_minute: None,
        }
    }
}

/// Whether judges may be asked at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// What is not recorded is asked.
    Live,
    /// Only what is recorded is answered.
    Replay,
}

/// What came of a question.
#[derive(Debug, Clone)]
pub struct CallOutcome {
    /// The verdict, or why there is none.
    pub verdict: Result<Verdict, Reason>,
    /// The key of the last judgment that was looked for.
    pub key: Option<[u8; 32]>,
    /// The form in which it was asked last.
    pub form: Form,
    /// How often it was sent.
    pub attempts: u32,
    /// Whether the judgment had been bought before.
    pub cached: bool,
    /// How long the judge took over the answer.
    pub latency: Option<Duration>,
    /// The tokens that the answer took.
    pub usage: Option<Usage>,
}

impl CallOutcome {
    /// Of a question that nobody waits for any more.
    pub fn stopped() -> Self {
        Self {
            verdict: Err(Code::Stopped.into()),
            key: None,
            form: Form::Tag,
            attempts: 0,
            cached: false,
            latency: None,
            usage: None,
        }
    }
}

/// A judge that cannot be asked as it is described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    /// Which judge.
    pub judge: String,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for Unusable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the judge {} cannot be used: {}", self.judge, self.message)
    }
}

impl std::error::Error for Unusable {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        let mut spec = JudgeSpec::at("judge", "http://127.0.0.1:1");
        spec.api_key = Some(Secret::new("sk-hidden"));
        assert!(!format!("{spec:?} {}", Secret::new("sk-hidden")).contains("hidden"));
    }

    #[test]
    fn a_secret_is_hidden_however_it_is_repeated() {
        let key = Secret::new("token/abc+12");
        for repeated in [
            "bad key token/abc+12.",
            "at /v1?key=token%2Fabc%2B12&x",
            "Basic dG9rZW4vYWJjKzEy",
            r#"{"key":"token/abc+12"}"#,
        ] {
            let shown = key.hidden(repeated);
            assert!(shown.contains("***") && !shown.contains("abc") && !shown.contains("dG9r"), "{shown}");
        }
        assert_eq!(key.hidden("nothing here"), "nothing here");
        assert_eq!(Secret::new("abc").hidden("abc"), "abc");
        assert_eq!(
            (base64(b"a"), base64(b"ab"), base64(b"abc")),
            ("YQ==".into(), "YWI=".into(), "YWJj".into())
        );
    }

    #[test]
    fn absurd_usage_has_a_finite_price() {
        let price = Price { input: 1.0, cached: 0.1, output: 4.0 };
        let usage = Usage { prompt: 1_000_000, cached: 500_000, completion: 250_000 };
        assert_eq!(price.of(&usage), 1.55);
        assert!(price.of(&Usage { prompt: 0, cached: u64::MAX, completion: u64::MAX }).is_finite());
    }
}
