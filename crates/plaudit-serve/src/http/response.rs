//! Responses: JSON, text and files, and [`ApiError`], the error body with a stable code and a message.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{self, HeaderValue};
use plaudit::input::InputError;
use plaudit::reason::Code;
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: Cow<'static, str>,
    /// After how many seconds to try again.
    pub(crate) retry_after: Option<u64>,
    /// Whether the connection is closed, because what follows on it cannot be trusted or is not worth reading.
    pub(crate) close: bool,
}

/// Why a request is not answered.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RefusalReply")]
pub(crate) struct ErrorReply {
    error: ErrorBody,
}

/// What was wrong.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Mistake")]
pub(crate) struct ErrorBody {
    pub(crate) code: Cow<'static, str>,
    pub(crate) message: Cow<'static, str>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, code, message: message.into(), retry_after: None, close: false }
    }

    /// 400: the request has a mistake.
    pub(crate) fn bad_request(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// What cannot be read: the caller's mistake, unless the reader panicked.
    pub(crate) fn unreadable(status: StatusCode, error: InputError) -> Self {
        match error.code == Code::Panic.as_str() {
            true => Self::internal(error.message),
            false => Self::new(status, error.code, error.message),
        }
    }

    /// 404.
    pub(crate) fn not_found(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    /// 404 for a path that does not exist.
    pub(crate) fn no_such_path() -> Self {
        Self::not_found("http.not_found", "there is nothing under this path")
    }

    /// 429: a limit is reached; the client may try again in so many seconds.
    pub(crate) fn busy(code: &'static str, message: impl Into<Cow<'static, str>>, seconds: u64) -> Self {
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, code, message);
        Self { retry_after: Some(seconds.max(1)), ..error }
    }

    /// 503: the service is stopping.
    pub(crate) fn draining() -> Self {
        let message = "the service is about to end: try again later";
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "service.draining", message);
        Self { retry_after: Some(5), ..error }.closing()
    }

    /// 503: the disk does not take what must be stored.
    pub(crate) fn disk(what: &str, error: &std::io::Error) -> Self {
        let message = format!("{what}: {}", error.kind());
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "service.disk", message);
        Self { retry_after: Some(30), ..error }
    }

    /// 500: a bug.
    pub(crate) fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "engine.panic", message)
    }

    /// The same error, after which the connection is closed.
    #[must_use]
    pub(crate) fn closing(mut self) -> Self {
        self.close = true;
        self
    }

    /// Whether the operator must see it: a failure of the service itself, and not a limit that was reached.
    pub(crate) fn is_logged(&self) -> bool {
        let is_own = self.status != StatusCode::SERVICE_UNAVAILABLE || self.code == "service.disk";
        self.status.is_server_error() && is_own
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let error = ErrorBody { code: self.code.into(), message: self.message.clone() };
        let mut response = json(self.status, &ErrorReply { error });
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.close {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // The middleware logs it.
        response.extensions_mut().insert(self);
        response
    }
}

/// Runs what waits for the disk or takes long off the threads that answer requests. `failed` is the answer where it panics.
pub(crate) async fn blocking<T: Send + 'static>(
    failed: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| ApiError::internal(failed))
}

/// A body of a content type.
pub(crate) fn body(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::from(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A value as JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => json_bytes(status, bytes),
        // Replies are maps with text keys and finite numbers, which cannot fail.
        Err(_) => {
            body(StatusCode::INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", "the answer is no JSON")
        }
    }
}

/// A value as JSON, with status 200.
pub(crate) fn ok(value: &impl Serialize) -> Response {
    json(StatusCode::OK, value)
}

/// JSON that is already written.
pub(crate) fn json_bytes(status: StatusCode, bytes: impl Into<Bytes>) -> Response {
    body(status, "application/json", bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_set_their_headers() {
        let response = ApiError::busy("engine.overloaded", "too much", 0).closing().into_response();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["retry-after"], "1");
        assert_eq!(response.headers()["connection"], "close");
        assert_eq!(response.headers()["content-type"], "application/json");
        let response = ApiError::new(StatusCode::UNAUTHORIZED, "auth.missing", "no token").into_response();
        assert_eq!(response.headers()["www-authenticate"], "Bearer");
    }
}
