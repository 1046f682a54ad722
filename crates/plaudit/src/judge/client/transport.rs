//! HTTP transport to a judge (reqwest): one HTTP/1.1 exchange, with everything that the other side sends bounded.

use super::query::Request;
use crate::judge::config::{HeaderConfig, ResolvedJudge};
#[cfg(feature = "tls")]
use crate::judge::proxy::Proxy;
use crate::judge::secret::Secret;
use crate::reason::Code;
use futures_util::future::BoxFuture;
use reqwest::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
};
use reqwest::{Client, Response, Url};
use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Semaphore;

/// The largest answer that is read.
pub(super) const MAX_BYTES: usize = 4 << 20;

/// From what size an answer is a large one, and how many large ones are read at once. The others wait, so that a judge
/// that answers everybody with megabytes does not fill the memory.
const LARGE: usize = 256 << 10;
const LARGE_AT_ONCE: usize = 2;

/// The status of a proxy that wants a name and a password.
pub(super) const PROXY_AUTH: u16 = 407;

/// A whole HTTP reply.
#[derive(Debug, Clone, Default)]
pub(super) struct HttpReply {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) retry_after: Option<String>,
    /// Where a redirect leads to, which is never followed.
    pub(super) location: Option<String>,
    /// Whether the body claims to be compressed, which was not asked for.
    pub(super) encoded: bool,
}

/// A call that failed before its reply was complete.
#[derive(Debug, Clone)]
pub(super) struct TransportError {
    pub(super) code: Code,
    /// Whether the judge may have seen the request.
    pub(super) sent: bool,
    pub(super) message: &'static str,
}

impl TransportError {
    pub(super) fn new(code: Code, sent: bool) -> Self {
        Self { code, sent, message: code.meaning().trim_start() }
    }
}

/// A judge that no connection can be set up for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeSetupError {
    /// Which judge.
    pub judge: String,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for JudgeSetupError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the judge {} cannot be used: {}", self.judge, self.message)
    }
}

impl Error for JudgeSetupError {}

/// One request, on its way to one endpoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outgoing<'a> {
    pub(super) endpoint: usize,
    pub(super) key: &'a [u8; 32],
    pub(super) request: &'a Request,
    /// The W3C header that names the trace which it belongs to.
    pub(super) traceparent: Option<&'a str>,
    /// Set when the head of the reply has arrived, so that a slow body differs from no reply at all.
    pub(super) head_received: &'a AtomicBool,
}

/// What carries requests. Dropping the future ends the exchange and closes its socket.
pub(super) trait Transport: Send + Sync {
    fn send<'a>(&'a self, outgoing: Outgoing<'a>) -> BoxFuture<'a, Result<HttpReply, TransportError>>;
}

/// HTTP to the endpoints of one judge.
pub(super) struct HttpTransport {
    client: Client,
    bases: Vec<String>,
    /// Which of them are asked through a proxy.
    proxied: Vec<bool>,
    /// What follows the path, with its question mark.
    query: String,
    large: Semaphore,
}

impl HttpTransport {
    pub(super) fn new(judge: &ResolvedJudge) -> Result<Self, JudgeSetupError> {
        let failed = |message: String| JudgeSetupError { judge: judge.name.clone(), message };
        let bases: Vec<String> =
            judge.base_urls.iter().map(|base| base.trim_end_matches('/').to_owned()).collect();
        let mut builder = Client::builder()
            .default_headers(headers(judge).map_err(failed)?)
            .user_agent(concat!("plaudit/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .http1_only()
            .tcp_nodelay(true)
            .connect_timeout(judge.connect_timeout)
            .pool_max_idle_per_host(judge.config.concurrency);
        let mut routes: Vec<(Url, Secret)> = Vec::new();
        for (base, proxy) in bases.iter().zip(&judge.proxies) {
            if let (Ok(base), Some(proxy)) = (Url::parse(base), proxy) {
                routes.push((base, proxy.url().clone()));
            }
        }
        if !routes.is_empty() {
            builder = builder.proxy(reqwest::Proxy::custom(move |url| {
                let route = routes.iter().find(|(base, _)| base.origin() == url.origin());
                route.map(|(_, proxy)| proxy.reveal().to_owned())
            }));
        }
        #[cfg(feature = "tls")]
        {
            crate::tls::install_provider();
            let mut proxies = judge.proxies.iter().flatten();
            if bases.iter().all(|base| base.starts_with("http://")) && !proxies.any(Proxy::is_encrypted) {
                // A machine without certificates can still ask a judge of its own.
                builder = builder.tls_certs_only([]);
            }
        }
        let client = builder.build().map_err(|error| failed(deepest(&error)))?;
        let proxied = judge.proxies.iter().map(Option::is_some).collect();
        let (query, large) = (judge.query(), Semaphore::new(LARGE_AT_ONCE));
        Ok(Self { client, bases, proxied, query, large })
    }

    /// The body, chunk by chunk, so that one that is too large is dropped before it is all in memory.
    async fn read_body(&self, mut reply: Response) -> Result<Vec<u8>, TransportError> {
        let stated = reply.content_length().unwrap_or(0);
        // Held as they come and put together once, because a body that grows by doubling leaves as much behind.
        let (mut chunks, mut length) = (Vec::new(), 0);
        let mut large = None;
        if stated > MAX_BYTES as u64 {
            return Err(TransportError::new(Code::JudgeTooLarge, true));
        }
        while let Some(chunk) = reply.chunk().await.map_err(|error| diagnose(&error))? {
            length += chunk.len();
            if length > MAX_BYTES {
                return Err(TransportError::new(Code::JudgeTooLarge, true));
            }
            if large.is_none() && length > LARGE {
                large = self.large.acquire().await.ok();
            }
            chunks.push(chunk);
        }
        Ok(chunks.concat())
    }
}

impl Transport for HttpTransport {
    fn send<'a>(&'a self, outgoing: Outgoing<'a>) -> BoxFuture<'a, Result<HttpReply, TransportError>> {
        Box::pin(async move {
            let Some(base) = self.bases.get(outgoing.endpoint) else {
                return Err(TransportError::new(Code::JudgeConnect, false));
            };
            let mut post = self
                .client
                .post(format!("{base}{}{}", outgoing.request.path, self.query))
                .header("idempotency-key", blake3::Hash::from_bytes(*outgoing.key).to_hex().as_str())
                .body(outgoing.request.body.clone());
            if let Some(traceparent) = outgoing.traceparent {
                post = post.header("traceparent", traceparent);
            }
            let proxied = self.proxied.get(outgoing.endpoint).is_some_and(|proxied| *proxied);
            let reply = match post.send().await {
                Ok(reply) => reply,
                // A proxy that wants a password says so in place of a tunnel, or like the judge itself.
                Err(error) if says(&error, "proxy authorization required") => {
                    return Ok(HttpReply { status: PROXY_AUTH, ..HttpReply::default() });
                }
                Err(error) if proxied => return Err(diagnose_proxy(&error)),
                Err(error) => return Err(diagnose(&error)),
            };
            outgoing.head_received.store(true, Ordering::Relaxed);
            let header = |name| reply.headers().get(name).and_then(|value| value.to_str().ok());
            let (retry_after, location) =
                (header(RETRY_AFTER).map(str::to_owned), header(LOCATION).map(str::to_owned));
            let encoded = reply.headers().get(CONTENT_ENCODING).is_some_and(|value| value != "identity");
            let status = reply.status().as_u16();
            Ok(HttpReply { status, body: self.read_body(reply).await?, retry_after, location, encoded })
        })
    }
}

/// The headers of every request.
fn headers(judge: &ResolvedJudge) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let secret = |text: String, whose: &str| {
        let value = HeaderValue::try_from(text);
        let mut value = value.map_err(|_| format!("{whose} holds characters that no header can carry"))?;
        value.set_sensitive(true);
        Ok::<_, String>(value)
    };
    if let Some(key) = &judge.api_key {
        headers.insert(AUTHORIZATION, secret(format!("Bearer {}", key.reveal()), "its key")?);
    }
    for (name, written) in &judge.config.headers {
        let value = match (written, judge.header_keys.get(name)) {
            (HeaderConfig::Text(text), _) => {
                HeaderValue::try_from(text).map_err(|error| error.to_string())?
            }
            (HeaderConfig::Variable(from), Some(key)) => secret(key.reveal().to_owned(), &from.env)?,
            // Nobody is asked without the environment.
            (HeaderConfig::Variable(_), None) => continue,
        };
        headers.insert(HeaderName::try_from(name).map_err(|error| error.to_string())?, value);
    }
    Ok(headers)
}

/// The causes of an error, outermost first. An error of input and output does not name what it wraps as its source.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    fn next<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        inner.map_or_else(|| error.source(), |inner| Some(inner))
    }
    std::iter::successors(Some(error), |error| next(*error))
}

/// The innermost cause in words, which names no URL and no header.
fn deepest(error: &(dyn Error + 'static)) -> String {
    causes(error)
        .last()
        .map_or_else(String::new, |cause| super::call_error::scrub(cause.to_string().as_bytes()))
}

#[cfg(feature = "tls")]
fn is_of_tls(cause: &(dyn Error + 'static)) -> bool {
    cause.is::<rustls::Error>()
}

#[cfg(not(feature = "tls"))]
fn is_of_tls(_: &(dyn Error + 'static)) -> bool {
    false
}

/// Whether one of the causes of an error says those words: the libraries keep some of their kinds to themselves.
fn says(error: &reqwest::Error, words: &str) -> bool {
    causes(error).any(|cause| cause.to_string().contains(words))
}

/// What an error means where there is a proxy on the way: until it has opened a connection, nobody else was spoken to.
fn diagnose_proxy(error: &reqwest::Error) -> TransportError {
    let found = diagnose(error);
    let message = match found.code {
        Code::JudgeDns => "The name of the proxy could not be resolved.",
        Code::JudgeConnect if says(error, "create underlying connection") => {
            "The proxy could not be reached."
        }
        _ if says(error, "tunnel error") || says(error, "SOCKS error") => {
            "The proxy did not open a connection to the judge."
        }
        Code::JudgeConnect => "The proxy could not be reached.",
        _ => return found,
    };
    TransportError { code: Code::JudgeProxy, sent: false, message }
}

/// Which of our codes an error of the client is. The libraries keep some of their kinds to themselves, so that their
/// words are looked at as well.
fn diagnose(error: &reqwest::Error) -> TransportError {
    use std::io::ErrorKind;
    let (mut kind, mut tls, mut dns) = (None, false, false);
    for cause in causes(error) {
        if let Some(io) = cause.downcast_ref::<std::io::Error>() {
            kind = Some(io.kind());
        }
        tls |= is_of_tls(cause);
        dns |= cause.to_string().starts_with("dns error");
    }
    let words_of_causes = || causes(error).map(|cause| cause.to_string()).collect::<Vec<_>>().join(": ");
    let code = match kind {
        _ if dns => Code::JudgeDns,
        _ if tls => Code::JudgeTls,
        _ if error.is_connect() => Code::JudgeConnect,
        _ if error.is_timeout() => Code::JudgeTimeout,
        Some(ErrorKind::InvalidData | ErrorKind::InvalidInput) => Code::JudgeProtocol,
        Some(_) => Code::JudgeReset,
        None if ["before message completed", "connection closed", "end of file"]
            .iter()
            .any(|words| words_of_causes().contains(words)) =>
        {
            Code::JudgeReset
        }
        None => Code::JudgeProtocol,
    };
    TransportError::new(code, !(error.is_connect() || error.is_builder()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, resolved};
    use super::*;

    #[test]
    fn a_key_that_no_header_can_carry_is_refused_unshown() {
        let mut judge = resolved(config());
        judge.api_key = Some(Secret::new("hid\nden"));
        let error = HttpTransport::new(&judge).err().expect("refused");
        assert!(!error.to_string().contains("hid"), "{error}");
    }
}
