//! How does a request reach a judge? One HTTP/1.1 exchange, with everything that the other side sends bounded.

use super::config::{JudgeSpec, Unusable};
use crate::judge::Request;
use crate::reason::Code;
use futures_util::future::BoxFuture;
use reqwest::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, Url};
use std::error::Error;
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
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) retry_after: Option<String>,
    /// Whether the body is said to be compressed, which was not asked for.
    pub(super) encoded: bool,
}

/// A call that broke before its reply was whole.
#[derive(Debug, Clone)]
pub(super) struct Broken {
    pub(super) code: Code,
    /// Whether the judge may have seen the request.
    pub(super) sent: bool,
    pub(super) message: &'static str,
}

impl Broken {
    pub(super) fn new(code: Code, sent: bool) -> Self {
        Self { code, sent, message: code.meaning().trim_start() }
    }
}

/// One request, on its way to one endpoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parcel<'a> {
    pub(super) endpoint: usize,
    pub(super) key: &'a [u8; 32],
    pub(super) request: &'a Request,
    /// Set when the head of the reply has arrived, so that a slow body can be told from silence.
    pub(super) begun: &'a AtomicBool,
}

/// What carries requests. Dropping the future ends the exchange and closes its socket.
pub(super) trait Wire: Send + Sync {
    fn send<'a>(&'a self, parcel: Parcel<'a>) -> BoxFuture<'a, Result<Reply, Broken>>;
}

/// HTTP to the endpoints of one judge.
pub(super) struct Http {
    client: Client,
    bases: Vec<String>,
    large: Semaphore,
}

impl Http {
    pub(super) fn new(spec: &JudgeSpec) -> Result<Self, Unusable> {
        let unusable = |message: String| Unusable { judge: spec.name.clone(), message };
        let mut bases = Vec::new();
        for base in &spec.base_urls {
            bases.push(checked(base).map_err(|why| unusable(why.to_owned()))?);
        }
        // It fails only where the process has chosen a provider already, which then serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .default_headers(headers(spec).map_err(|why| unusable(why.to_owned()))?)
            .user_agent(concat!("plaudit/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .http1_only()
            .tcp_nodelay(true)
            .connect_timeout(spec.connect_timeout)
            .pool_max_idle_per_host(spec.concurrency);
        if bases.iter().all(|base| base.starts_with("http://")) {
            // A machine without certificates can still ask a judge of its own.
            builder = builder.tls_certs_only([]);
        }
        let client = builder.build().map_err(|error| unusable(deepest(&error)))?;
        Ok(Self { client, bases, large: Semaphore::new(LARGE_AT_ONCE) })
    }

    async fn exchange(&self, parcel: Parcel<'_>) -> Result<Reply, Broken> {
        let Some(base) = self.bases.get(parcel.endpoint) else {
            return Err(Broken::new(Code::JudgeConnect, false));
        };
        let sent = self
            .client
            .post(format!("{base}{}", parcel.request.path))
            .header("idempotency-key", blake3::Hash::from_bytes(*parcel.key).to_hex().as_str())
            .body(parcel.request.body.clone())
            .send()
            .await;
        let reply = sent.map_err(|error| diagnose(&error))?;
        parcel.begun.store(true, Ordering::Relaxed);
        let retry_after = reply.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = retry_after.map(str::to_owned);
        let encoded = reply.headers().get(CONTENT_ENCODING).is_some_and(|value| value != "identity");
        let status = reply.status().as_u16();
        Ok(Reply { status, body: self.whole(reply).await?, retry_after, encoded })
    }

    /// The body, chunk by chunk, so that one that is too large is dropped before it is held.
    async fn whole(&self, mut reply: Response) -> Result<Vec<u8>, Broken> {
        let stated = reply.content_length().unwrap_or(0);
        // Held as they come and put together once, because a body that grows by doubling leaves as much behind.
        let (mut chunks, mut length) = (Vec::new(), 0);
        let mut turn = None;
        if stated > LARGEST as u64 {
            return Err(Broken::new(Code::JudgeTooLarge, true));
        }
        while let Some(chunk) = reply.chunk().await.map_err(|error| diagnose(&error))? {
            length += chunk.len();
            if length > LARGEST {
                return Err(Broken::new(Code::JudgeTooLarge, true));
            }
            if turn.is_none() && length > LARGE {
                turn = self.large.acquire().await.ok();
            }
            chunks.push(chunk);
        }
        Ok(chunks.concat())
    }
}

impl Wire for Http {
    fn send<'a>(&'a self, parcel: Parcel<'a>) -> BoxFuture<'a, Result<Reply, Broken>> {
        Box::pin(self.exchange(parcel))
    }
}

/// A base URL without the slash at its end, where it is one that can be asked.
fn checked(base: &str) -> Result<String, &'static str> {
    let url = Url::parse(base).map_err(|_| "its base URL is not a URL")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("its base URL must begin with http:// or https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("its base URL must not hold a password; give it as the key");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("its base URL must not have a query");
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn headers(spec: &JudgeSpec) -> Result<HeaderMap, &'static str> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(secret) = &spec.api_key {
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

/// Which of our codes an error of the client is. The libraries keep some of their kinds to themselves, so that their
/// words are looked at as well.
fn diagnose(error: &reqwest::Error) -> Broken {
    use std::io::ErrorKind;
    let (mut kind, mut tls, mut dns) = (None, false, false);
    for cause in causes(error) {
        if let Some(io) = cause.downcast_ref::<std::io::Error>() {
            kind = Some(io.kind());
        }
        tls |= cause.is::<rustls::Error>();
        dns |= cause.to_string().starts_with("dns error");
    }
    let said = || causes(error).map(|cause| cause.to_string()).collect::<Vec<_>>().join(": ");
    let code = match kind {
        _ if dns => Code::JudgeDns,
        _ if tls => Code::JudgeTls,
        _ if error.is_connect() => Code::JudgeConnect,
        _ if error.is_timeout() => Code::JudgeTimeout,
        Some(ErrorKind::InvalidData | ErrorKind::InvalidInput) => Code::JudgeProtocol,
        Some(_) => Code::JudgeReset,
        None if ["before message completed", "connection closed", "end of file"]
            .iter()
            .any(|words| said().contains(words)) =>
        {
            Code::JudgeReset
        }
        None => Code::JudgeProtocol,
    };
    Broken::new(code, !(error.is_connect() || error.is_builder()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_addresses_are_taken() {
        assert_eq!(checked("http://127.0.0.1:8000/v1/").as_deref(), Ok("http://127.0.0.1:8000/v1"));
        for bad in ["nonsense", "file:///etc/passwd", "http://user:word@host/", "http://host/?key=1"] {
            assert!(checked(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_key_that_no_header_can_carry_is_refused_without_showing_it() {
        let mut spec = JudgeSpec::at("judge", "http://127.0.0.1:1/v1");
        spec.api_key = Some(super::super::config::Secret::new("hid\nden"));
        let error = Http::new(&spec).err().expect("refused");
        assert!(!error.to_string().contains("hid"), "{error}");
    }
}
