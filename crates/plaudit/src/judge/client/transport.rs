//! HTTP transport to a judge (reqwest): one HTTP/1.1 exchange, with everything that the other side sends bounded.

use super::query::Request;
use crate::judge::config::ResolvedJudge;
use crate::reason::Code;
use futures_util::future::BoxFuture;
use reqwest::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response};
use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Semaphore;

/// The largest answer that is read.
pub(super) const LARGEST: usize = 4 << 20;

/// From what size an answer is a large one, and how many large ones are read at once. The others wait, so that a judge
/// that answers everybody with megabytes does not fill the memory.
const LARGE: usize = 256 << 10;
const LARGE_AT_ONCE: usize = 2;

/// A whole HTTP reply.
#[derive(Debug, Clone)]
pub(super) struct HttpReply {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) retry_after: Option<String>,
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
    large: Semaphore,
}

impl HttpTransport {
    pub(super) fn new(judge: &ResolvedJudge) -> Result<Self, JudgeSetupError> {
        let failed = |message: String| JudgeSetupError { judge: judge.name.clone(), message };
        let bases: Vec<String> =
            judge.base_urls.iter().map(|base| base.trim_end_matches('/').to_owned()).collect();
        #[cfg_attr(not(feature = "tls"), allow(unused_mut, reason = "only certificates are added"))]
        let mut builder = Client::builder()
            .default_headers(headers(judge).map_err(|why| failed(why.to_owned()))?)
            .user_agent(concat!("plaudit/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .http1_only()
            .tcp_nodelay(true)
            .connect_timeout(judge.connect_timeout)
            .pool_max_idle_per_host(judge.config.concurrency);
        #[cfg(feature = "tls")]
        {
            crate::tls::install_provider();
            if bases.iter().all(|base| base.starts_with("http://")) {
                // A machine without certificates can still ask a judge of its own.
                builder = builder.tls_certs_only([]);
            }
        }
        let client = builder.build().map_err(|error| failed(deepest(&error)))?;
        Ok(Self { client, bases, large: Semaphore::new(LARGE_AT_ONCE) })
    }

    /// The body, chunk by chunk, so that one that is too large is dropped before it is all in memory.
    async fn read_body(&self, mut reply: Response) -> Result<Vec<u8>, TransportError> {
        let stated = reply.content_length().unwrap_or(0);
        // Held as they come and put together once, because a body that grows by doubling leaves as much behind.
        let (mut chunks, mut length) = (Vec::new(), 0);
        let mut large = None;
        if stated > LARGEST as u64 {
            return Err(TransportError::new(Code::JudgeTooLarge, true));
        }
        while let Some(chunk) = reply.chunk().await.map_err(|error| diagnose(&error))? {
            length += chunk.len();
            if length > LARGEST {
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
                .post(format!("{base}{}", outgoing.request.path))
                .header("idempotency-key", blake3::Hash::from_bytes(*outgoing.key).to_hex().as_str())
                .body(outgoing.request.body.clone());
            if let Some(traceparent) = outgoing.traceparent {
                post = post.header("traceparent", traceparent);
            }
            let sent = post.send().await;
            let reply = sent.map_err(|error| diagnose(&error))?;
            outgoing.head_received.store(true, Ordering::Relaxed);
            let retry_after = reply.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
            let retry_after = retry_after.map(str::to_owned);
            let encoded = reply.headers().get(CONTENT_ENCODING).is_some_and(|value| value != "identity");
            let status = reply.status().as_u16();
            Ok(HttpReply { status, body: self.read_body(reply).await?, retry_after, encoded })
        })
    }
}

fn headers(judge: &ResolvedJudge) -> Result<HeaderMap, &'static str> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(secret) = &judge.api_key {
        let value = HeaderValue::try_from(format!("Bearer {}", secret.reveal()));
        let mut value = value.map_err(|_| "its key holds characters that no header can carry")?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
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
    use crate::judge::secret::Secret;

    #[test]
    fn a_key_that_no_header_can_carry_is_refused_unshown() {
        let mut judge = resolved(config());
        judge.api_key = Some(Secret::new("hid\nden"));
        let error = HttpTransport::new(&judge).err().expect("refused");
        assert!(!error.to_string().contains("hid"), "{error}");
    }
}
