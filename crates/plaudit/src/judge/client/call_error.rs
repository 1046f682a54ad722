//! Errors of judge calls, classified: whether to retry, what they say of the endpoint, and whether they may have been
//! paid for.

use super::parameters::Parameter;
use super::transport::{HttpReply, PROXY_AUTH, TransportError};
use crate::judge::address;
use crate::judge::answer::AnswerFormat;
use crate::reason::{Code, Reason};
use std::time::{Duration, SystemTime};

/// Whether a call that failed may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// It would fail in the same way.
    Never,
    /// The judge has done nothing for it.
    Freely,
    /// The judge may have answered and been paid, so that once more is enough.
    Once,
    /// The judge asks to wait; whoever asks, waits.
    Later,
    /// Another process is asking the same; its answer is waited for.
    Elsewhere,
}

/// What a failure says of the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    /// It works, and this one request was at fault.
    Healthy,
    /// It failed.
    Failing,
    /// It failed because it has too much to do.
    Overloaded,
    /// It asks for a pause, of so long where it says so.
    Pause(Option<Duration>),
    /// It will not answer anybody in this run.
    Dead,
}

/// What an endpoint objects to in a request that it refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Objection {
    /// Something that it does not name.
    Request,
    /// What that format asks for, by its name.
    Format(AnswerFormat),
    /// That parameter, by its name.
    Parameter(Parameter),
}

/// A call without a judgment.
#[derive(Debug, Clone)]
pub(super) struct CallError {
    pub(super) reason: Reason,
    pub(super) retry: Retry,
    pub(super) health: Health,
    /// What the endpoint objects to in the request, so that another one may be accepted.
    pub(super) objection: Option<Objection>,
    /// Whether the request may have reached the judge.
    pub(super) reached: bool,
    /// How long the judge asks this one call to wait.
    pub(super) wait: Option<Duration>,
    /// The status of its reply, where the reason quotes the judge's own words.
    pub(super) quoted: Option<u16>,
}

impl CallError {
    fn new(reason: Reason, retry: Retry, health: Health) -> Self {
        Self { reason, retry, health, objection: None, reached: true, wait: None, quoted: None }
    }

    /// The same, of a request in that format. An endpoint that names what the format asks for works, and would refuse the
    /// request again; some do so with a status of an outage or of a wrong key.
    pub(super) fn of_format(self, format: AnswerFormat) -> Self {
        match self.objection {
            Some(Objection::Format(named)) if named == format => {
                Self { retry: Retry::Never, health: Health::Healthy, wait: None, ..self }
            }
            Some(Objection::Format(_)) if self.reason.code == Code::JudgeClientError => {
                Self { objection: Some(Objection::Request), ..self }
            }
            Some(Objection::Format(_)) => Self { objection: None, ..self },
            _ => self,
        }
    }

    /// A failure of our own, which says nothing of the judge.
    pub(super) fn local(reason: Reason) -> Self {
        Self::new(reason, Retry::Never, Health::Healthy)
    }

    /// A call that was not sent, because another process is asking the same.
    pub(super) fn elsewhere() -> Self {
        Self::new(Code::JudgeDeadline.into(), Retry::Elsewhere, Health::Healthy)
    }

    /// Whether the call may have been paid for.
    pub(super) fn maybe_paid(&self) -> bool {
        self.retry == Retry::Once
    }

    /// A call that broke on its way.
    pub(super) fn transport(error: TransportError) -> Self {
        let retry = match (error.code, error.sent) {
            (Code::JudgeTls | Code::JudgeTooLarge, _) => Retry::Never,
            (_, false) => Retry::Freely,
            (_, true) => Retry::Once,
        };
        let health = match error.code {
            Code::JudgeTimeout | Code::JudgeSlowBody => Health::Overloaded,
            _ => Health::Failing,
        };
        Self { reached: error.sent, ..Self::new(Reason::new(error.code, error.message), retry, health) }
    }

    /// The judgment in a reply, or what its status or its lack of content means.
    pub(super) fn check_reply(reply: HttpReply) -> Result<Vec<u8>, Self> {
        if !(200..=299).contains(&reply.status) {
            return Err(from_status(reply.status, &reply));
        }
        let status = reply.status;
        // A login page or the error of a proxy is nothing to store.
        let failing = |code, message: &'static str, retry| {
            Err(CallError::new(Reason::new(code, message), retry, Health::Failing))
        };
        if reply.encoded {
            return failing(
                Code::JudgeProtocol,
                "The judge compressed an answer that was not to be compressed.",
                Retry::Once,
            );
        }
        let text = reply.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&reply.body).trim_ascii_start();
        if text.is_empty() {
            return failing(Code::JudgeEmpty, "The judge answered with an empty body.", Retry::Once);
        }
        if text[0] != b'{' && text[0] != b'[' {
            return failing(Code::JudgeJson, "The judge's answer is not JSON.", Retry::Once);
        }
        if Envelope::is_error(text) {
            return Err(match error_status(text) {
                Some(status) => from_status(status, &reply),
                None => {
                    // Another form of verdicts would not help: the endpoint says itself that it failed.
                    let reason = Reason::new(Code::JudgeServerError, sentence(status, text));
                    let error = CallError::new(reason, Retry::Freely, Health::Failing);
                    CallError { quoted: Some(status), ..error }
                }
            });
        }
        Ok(reply.body)
    }
}

/// The two keys by which an error differs from an answer.
#[derive(serde::Deserialize)]
struct Envelope {
    error: Option<serde::de::IgnoredAny>,
    choices: Option<serde::de::IgnoredAny>,
}

impl Envelope {
    fn is_error(text: &[u8]) -> bool {
        serde_json::from_slice::<Self>(text)
            .is_ok_and(|envelope| envelope.error.is_some() && envelope.choices.is_none())
    }
}

/// The status that an error in a reply of success names as its `code`, as OpenRouter does.
fn error_status(body: &[u8]) -> Option<u16> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let status = u16::try_from(body.pointer("/error/code")?.as_u64()?).ok()?;
    ((400..=599).contains(&status) && status != PROXY_AUTH).then_some(status)
}

/// What a status other than success means.
fn from_status(status: u16, reply: &HttpReply) -> CallError {
    let objection = match status {
        400 | 422 if is_context_length(&reply.body) => None,
        400 | 422 => Parameter::refused_by(&reply.body)
            .map(Objection::Parameter)
            .or_else(|| named_format(&reply.body))
            .or(Some(Objection::Request)),
        403 | 500 | 501 => named_format(&reply.body),
        _ => None,
    };
    CallError { objection, quoted: Some(status), ..by_status(status, reply) }
}

/// The format whose field of a request an error names.
fn named_format(body: &[u8]) -> Option<Objection> {
    let names = |words: &[&str]| words.iter().any(|word| has(body, word));
    match () {
        () if names(&["response_format", "json_schema"]) => Some(Objection::Format(AnswerFormat::Json)),
        () if names(&["logprobs"]) => Some(Objection::Format(AnswerFormat::Logprobs)),
        () => None,
    }
}

fn by_status(status: u16, reply: &HttpReply) -> CallError {
    let says = |code| Reason::new(code, sentence(status, &reply.body));
    let wait = || reply.retry_after.as_deref().and_then(|text| retry_after(text, SystemTime::now()));
    match status {
        300..=399 => {
            let reason = Reason::new(Code::JudgeRedirect, redirect(status, reply.location.as_deref()));
            CallError::new(reason, Retry::Never, Health::Healthy)
        }
        PROXY_AUTH => CallError::new(says(Code::JudgeProxy), Retry::Never, Health::Dead),
        401 | 403 => CallError::new(says(Code::JudgeAuth), Retry::Never, Health::Dead),
        402 => CallError::new(says(Code::JudgeQuota), Retry::Never, Health::Dead),
        429 if has(&reply.body, "insufficient_quota") => {
            CallError::new(says(Code::JudgeQuota), Retry::Never, Health::Dead)
        }
        429 => CallError::new(says(Code::JudgeRateLimited), Retry::Later, Health::Pause(wait())),
        408 | 504 => CallError::new(says(Code::JudgeServerError), Retry::Once, Health::Overloaded),
        413 => CallError::new(says(Code::JudgeContextLength), Retry::Never, Health::Healthy),
        400 | 422 if is_context_length(&reply.body) => {
            CallError::new(says(Code::JudgeContextLength), Retry::Never, Health::Healthy)
        }
        400..=499 => CallError::new(says(Code::JudgeClientError), Retry::Never, Health::Healthy),
        503 | 529 => {
            let error = CallError::new(says(Code::JudgeServerError), Retry::Freely, Health::Overloaded);
            CallError { wait: wait(), ..error }
        }
        500..=599 => CallError::new(says(Code::JudgeServerError), Retry::Freely, Health::Failing),
        _ => CallError::new(says(Code::JudgeProtocol), Retry::Never, Health::Failing),
    }
}

fn has(body: &[u8], word: &str) -> bool {
    memchr::memmem::find(body, word.as_bytes()).is_some()
}

/// Servers say it in their own words: OpenAI by a code, vLLM and SGLang in a sentence.
fn is_context_length(body: &[u8]) -> bool {
    ["context_length_exceeded", "maximum context length", "context length", "max_model_len"]
        .iter()
        .any(|words| has(body, words))
}

/// What a redirect says. Its query is left out, which may hold a ticket.
fn redirect(status: u16, location: Option<&str>) -> String {
    let target = address::without_userinfo(location.unwrap_or(""));
    match scrub(target.split(['?', '#']).next().unwrap_or("").as_bytes()).as_str() {
        "" => format!("The judge answered with status {status}, a redirect, which is not followed."),
        target => format!(
            "The judge answered with status {status}, a redirect to {target}, which is not followed: should that be the \
             base_url?"
        ),
    }
}

/// What the judge says of its status, in our words and a few of its own.
pub(super) fn sentence(status: u16, body: &[u8]) -> String {
    if status == PROXY_AUTH {
        return "The proxy wants a name and a password (status 407): put them into its variable, such as \
                HTTPS_PROXY=http://name:password@host:3128."
            .to_owned();
    }
    let text = match message(body) {
        Some(message) => scrub(message.as_bytes()),
        None => scrub(body),
    };
    let and = if (200..300).contains(&status) { " and an error" } else { "" };
    if text.is_empty() {
        format!("The judge answered with status {status}{and}.")
    } else {
        format!("The judge answered with status {status}{and}: {text}")
    }
}

/// The sentence in the body of an error: `error.message` as OpenAI writes it, or one of the other usual places.
fn message(body: &[u8]) -> Option<String> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let places = ["/error/message", "/error", "/message", "/detail/0/msg", "/detail/message", "/detail"];
    let text = places.iter().filter_map(|place| body.pointer(place)?.as_str());
    text.map(str::trim).find(|text| !text.is_empty()).map(str::to_owned)
}

/// How many letters of a foreign text are shown.
const SHOWN: usize = 200;

/// A foreign text as it may be shown: printable, short, and without anything that looks like a key.
pub(super) fn scrub(body: &[u8]) -> String {
    let start = String::from_utf8_lossy(&body[..body.len().min(8 * SHOWN)]).into_owned();
    let is_shown = |char: char| char.is_ascii_graphic() || char.is_alphanumeric();
    let plain: String = start.chars().map(|char| if is_shown(char) { char } else { ' ' }).collect();
    let (mut shown, mut letters, mut after_bearer) = (String::new(), 0, false);
    for word in plain.split(' ').filter(|word| !word.is_empty()) {
        let lower = word.to_ascii_lowercase();
        let names_bearer = lower.ends_with("bearer");
        let is_key = after_bearer || looks_like_key(word) || (lower.contains("bearer") && !names_bearer);
        after_bearer = names_bearer;
        let word = if is_key { "***" } else { word };
        letters += word.chars().count() + 1;
        if letters > SHOWN {
            shown.push('…');
            break;
        }
        if !shown.is_empty() {
            shown.push(' ');
        }
        shown.push_str(word);
    }
    shown
}

/// Whether part of a word looks like a key: by how it begins, or because no name is written like that. Names of
/// parameters and models have hyphens and underscores between short parts: `invalid_request_error`,
/// `claude-3-5-sonnet-20241022`.
fn looks_like_key(word: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_');
    word.split(|char| !is_part(char)).any(|part| {
        let digits = part.bytes().filter(u8::is_ascii_digit).count();
        let has_letters = part.bytes().any(|byte| byte.is_ascii_alphabetic());
        let longest = part.split(['-', '_']).map(str::len).max().unwrap_or(0);
        let random = digits >= 2 && has_letters;
        part.contains("sk-")
            || longest >= 24
            || (longest >= 16 && random)
            || (part.len() >= 32 && digits >= 8 && random)
    })
}

/// The longest pause that a header can ask for and be believed.
const MAX_PAUSE: Duration = Duration::from_secs(600);

/// The wait that a header asks for: seconds, or a date. What is neither, or negative, is no wait.
pub(super) fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return (seconds >= 0.0).then(|| Duration::from_secs_f64(seconds.min(MAX_PAUSE.as_secs_f64())));
    }
    let at = http_date(text)?;
    let now = now.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs_f64();
    Some(Duration::from_secs_f64((at as f64 - now).clamp(0.0, MAX_PAUSE.as_secs_f64())))
}

/// The seconds since 1970 of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`, the one format that is still sent.
fn http_date(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut parts = text.split_once(", ")?.1.split(' ');
    let day: i64 = parts.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let name = parts.next()?;
    let month = MONTHS.iter().position(|month| *month == name)? as i64 + 1;
    let year: i64 = parts.next()?.parse().ok().filter(|year| (1970..=9999).contains(year))?;
    let mut clock =
        parts.next()?.split(':').map(|part| part.parse::<i64>().ok().filter(|n| (0..=60).contains(n)));
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    // Years begin in March, so that the leap day is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16, body: &str) -> CallError {
        let reply = HttpReply { status, body: body.into(), ..HttpReply::default() };
        CallError::check_reply(reply).expect_err("an error")
    }

    #[test]
    fn an_error_in_a_good_reply_means_what_its_code_says() {
        let said = |body: &str| error(200, body);
        let busy =
            said(r#"{"error":{"code":429,"message":"Rate limited by provider, key sk-THISISASECRET"}}"#);
        assert_eq!((busy.reason.code, busy.retry), (Code::JudgeRateLimited, Retry::Later));
        assert_eq!(
            busy.reason.message,
            "The judge answered with status 429: Rate limited by provider, key ***"
        );
        assert_eq!(said(r#"{"error":{"code":402,"message":"no credits"}}"#).reason.code, Code::JudgeQuota);
        assert_eq!(said(r#"{"error":{"code":502,"message":"x"}}"#).reason.code, Code::JudgeServerError);
        assert_eq!(said(r#"{"error":{"code":400,"message":"x"}}"#).objection, Some(Objection::Request));
        for odd in [r#""overloaded""#, "200", "407", "70000", "-1", "429.5", "null"] {
            let odd = said(&format!(r#"{{"error":{{"code":{odd},"message":"Provider is down"}}}}"#));
            assert_eq!((odd.reason.code, odd.retry), (Code::JudgeServerError, Retry::Freely));
            assert_eq!(
                odd.reason.message,
                "The judge answered with status 200 and an error: Provider is down"
            );
            assert_eq!(odd.quoted, Some(200));
        }
    }

    #[test]
    fn a_redirect_names_where_it_leads_without_secrets() {
        let said = |location: &str| {
            let location = Some(location.to_owned());
            let reply = HttpReply { status: 307, location, ..HttpReply::default() };
            CallError::check_reply(reply).expect_err("an error").reason.message.into_owned()
        };
        let plain = said("https://me:pw@login.example/v2/chat?ticket=abcd#x");
        assert_eq!(
            plain,
            "The judge answered with status 307, a redirect to https://***@login.example/v2/chat, which is not followed: \
             should that be the base_url?"
        );
        assert!(said("/elsewhere").contains("a redirect to /elsewhere, which"));
        assert_eq!(said("?a=b"), "The judge answered with status 307, a redirect, which is not followed.");
        assert!(!said("https://x/sk-THISISASECRET").contains("THIS"));
    }

    #[test]
    fn a_date_is_read_and_junk_is_not() {
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(http_date("Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800));
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now), Some(Duration::from_secs(7)));
        assert_eq!(retry_after(" 2 ", now), Some(Duration::from_secs(2)));
        assert_eq!(retry_after("86400", now), Some(MAX_PAUSE));
        assert_eq!(retry_after("1e300", now), Some(MAX_PAUSE));
        for junk in
            ["-5", "soon", "NaN", "", "Sun, 99 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 999999999999 1:1:1"]
        {
            assert_eq!(retry_after(junk, now), None, "{junk}");
        }
    }

    #[test]
    fn keys_and_controls_are_not_shown() {
        let text =
            scrub(b"Incorrect \x1b[31mAPI key provided: sk-THISISASECRET and abcdefghijklmnopqrstuvwxyz");
        assert_eq!(text, "Incorrect [31mAPI key provided: *** and ***");
        assert!(scrub(&[b'x'; 4096]).len() <= SHOWN);
        assert_eq!(
            scrub(b"header Bearer abc.def, key 123e4567-e89b-12d3-a456-426614174000"),
            "header Bearer *** key ***"
        );
    }

    #[test]
    fn an_error_is_told_in_its_own_words() {
        let text =
            |body: &str| sentence(400, body.as_bytes()).replace("The judge answered with status 400: ", "");
        let openai = r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","code":"unsupported_parameter"}}"#;
        assert_eq!(
            text(openai),
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        );
        assert_eq!(text(r#"{"error":"bad request","type":"invalid_request_error"}"#), "bad request");
        assert_eq!(text(r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#), "field required");
        assert_eq!(
            text(r#"{"object":"error","message":"The model `claude-3-5-sonnet-20241022` does not exist."}"#),
            "The model `claude-3-5-sonnet-20241022` does not exist."
        );
        assert_eq!(text("plain words"), "plain words");
        let long = text(&"word ".repeat(100));
        assert!(long.chars().count() <= SHOWN + 1 && long.ends_with('…'), "{long}");
    }

    #[test]
    fn statuses_mean_what_they_say() {
        assert_eq!(error(401, "").health, Health::Dead);
        assert_eq!(error(429, r#"{"error":{"code":"insufficient_quota"}}"#).reason.code, Code::JudgeQuota);
        assert_eq!(error(400, "context_length_exceeded").reason.code, Code::JudgeContextLength);
        assert_eq!(error(422, "{}").objection, Some(Objection::Request));
        assert_eq!(error(404, "{}").objection, None);
        assert!(error(504, "").maybe_paid() && !error(500, "").maybe_paid());
        assert_eq!(error(307, "").reason.code, Code::JudgeRedirect);
        assert_eq!(error(200, " ").reason.code, Code::JudgeEmpty);
        assert_eq!(error(200, "<html>").reason.code, Code::JudgeJson);
        assert_eq!(error(200, r#"{"error":{}}"#).reason.code, Code::JudgeServerError);
    }
}
