//! What does a client get? A body of JSON, text or a page; or a refusal that says what was wrong in a code and in words.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use std::borrow::Cow;

/// What goes back to the client.
pub(crate) type Reply = Response<Full<Bytes>>;

/// A request that is not answered, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: Cow<'static, str>,
    /// After how many seconds it is worth trying again.
    pub(crate) retry_after: Option<u64>,
    /// The methods that the path does take, where it does not take this one.
    pub(crate) allow: Option<Cow<'static, str>>,
    /// Whether what else comes on the connection cannot be trusted, or is not worth reading.
    pub(crate) close: bool,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, code, message: message.into(), retry_after: None, allow: None, close: false }
    }

    /// The body cannot be understood.
    pub(crate) fn bad(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(crate) fn not_found(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    /// There is too much to do; later there may be less.
    pub(crate) fn busy(code: &'static str, message: impl Into<Cow<'static, str>>, seconds: u64) -> Self {
        let refusal = Self::new(StatusCode::TOO_MANY_REQUESTS, code, message);
        Self { retry_after: Some(seconds.max(1)), ..refusal }
    }

    /// The service is about to end.
    pub(crate) fn draining() -> Self {
        let message = "the service is about to end: try again later";
        let refusal = Self::new(StatusCode::SERVICE_UNAVAILABLE, "service.draining", message);
        Self { retry_after: Some(5), ..refusal }.closing()
    }

    /// The disk does not take what must be kept; later it may.
    pub(crate) fn disk(what: &str, error: &std::io::Error) -> Self {
        let message = format!("{what}: {}", error.kind());
        let refusal = Self::new(StatusCode::SERVICE_UNAVAILABLE, "service.disk", message);
        Self { retry_after: Some(30), ..refusal }
    }

    /// Something failed that must not.
    pub(crate) fn broken(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "engine.panic", message)
    }

    /// The same, after which the connection is closed.
    #[must_use]
    pub(crate) fn closing(mut self) -> Self {
        self.close = true;
        self
    }

    pub(crate) fn reply(&self) -> Reply {
        let mut reply =
            json(self.status, &json!({ "error": { "code": self.code, "message": self.message } }));
        let headers = reply.headers_mut();
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(Ok(methods)) = self.allow.as_deref().map(HeaderValue::from_str) {
            headers.insert(header::ALLOW, methods);
        }
        if self.close {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        reply
    }
}

/// A body of some type.
pub(crate) fn body(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// A value as JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Reply {
    match serde_json::to_vec(value) {
        Ok(bytes) => json_bytes(status, bytes),
        // What is written here are maps with text keys and finite numbers, which cannot fail.
        Err(_) => {
            body(StatusCode::INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", "the answer is no JSON")
        }
    }
}

/// JSON that has been written already.
pub(crate) fn json_bytes(status: StatusCode, bytes: impl Into<Bytes>) -> Reply {
    body(status, "application/json", bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_when_to_come_back_and_that_the_connection_ends() {
        let reply = Refusal::busy("engine.overloaded", "too much", 0).closing().reply();
        assert_eq!(reply.status(), 429);
        assert_eq!(reply.headers()["retry-after"], "1");
        assert_eq!(reply.headers()["connection"], "close");
        assert_eq!(reply.headers()["content-type"], "application/json");
        let reply = Refusal::new(StatusCode::UNAUTHORIZED, "auth.missing", "no token").reply();
        assert_eq!(reply.headers()["www-authenticate"], "Bearer");
    }
}
