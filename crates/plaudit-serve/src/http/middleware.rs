//! Middleware around the router: validates Host and Origin, authenticates, and records metrics and errors.
//!
//! Order for every request: headers, path and method (the router), token and scope, then the handler, whose extractors read the path, the
//! query and the body. Nothing of the body is read before the token is known.

use super::auth::Principal;
use super::response::ApiError;
use crate::compat::basic_auth;
use crate::state::AppState;
use crate::token_file::Scope;
use crate::traces::{ServiceSpan, in_span};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::{HeaderMap, StatusCode, Uri};
use plaudit::exec::TraceSpan as _;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use tower_service::Service as _;

/// The route that answered, for metrics, and whether it is traced; in the extensions of a response.
#[derive(Debug, Clone, Copy)]
struct RouteLabel(&'static str, bool);

/// What a route asks of a request before its handler runs.
#[derive(Debug, Clone)]
pub(crate) struct RouteGuard {
    pub(crate) app: Arc<AppState>,
    pub(crate) path: &'static str,
    /// The scopes of which a token must have one; none for a public path.
    pub(crate) scopes: &'static [Scope],
    /// Whether the token may come as the password of HTTP basic authentication.
    pub(crate) basic_auth: bool,
}

/// Answers a request, whatever it is.
pub(crate) async fn handle(
    app: &AppState,
    router: &Router,
    peer: SocketAddr,
    request: Request<Incoming>,
) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let span = app.tracer.as_ref().map(|tracer| {
        let header = request.headers().get("traceparent").and_then(|header| header.to_str().ok());
        tracer.request(header, method.as_str())
    });
    let checked = check_headers(app, request.headers())
        .and_then(|()| check_target(request.uri(), request.headers()))
        .and_then(|()| check_path(request.uri().path()));
    let mut response = match checked {
        // The router is always ready and never fails.
        Ok(()) => match guarded(in_span(span.clone(), router.clone().call(request.map(Body::new)))).await {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(error) => error.into_response(),
        },
        Err(error) => error.into_response(),
    };
    // The router separates methods without a blank.
    if response.status() == StatusCode::METHOD_NOT_ALLOWED
        && let Some(Ok(methods)) = response.headers().get(header::ALLOW).map(HeaderValue::to_str)
        && let Ok(methods) = HeaderValue::from_str(&methods.replace(',', ", "))
    {
        response.headers_mut().insert(header::ALLOW, methods);
    }
    let RouteLabel(route, is_traced) =
        response.extensions_mut().remove().unwrap_or(RouteLabel("unknown", false));
    let error = response.extensions_mut().remove::<ApiError>();
    if let Some(error) = error.as_ref().filter(|error| error.is_logged()) {
        let (code, why, client) = (error.code, &*error.message, peer.ip());
        tracing::error!(path = route, code, why, client = %client, "a request failed");
    }
    match span {
        Some(span) if is_traced => {
            end_span(&span, (method.as_str(), route), response.status(), error.as_ref())
        }
        Some(span) => span.discard(),
        None => {}
    }
    app.metrics.observe_request(route, response.status(), began.elapsed());
    response
}

/// What a future comes to; a panic is an answer, and not the end of the connection.
async fn guarded<T>(future: impl Future<Output = T>) -> Result<T, ApiError> {
    let mut future = std::pin::pin!(future);
    let poll =
        |context: &mut Context<'_>| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(_) => Poll::Ready(Err(ApiError::internal("something failed that must not"))),
        };
    std::future::poll_fn(poll).await
}

/// Ends the span of a request, by the conventions of OpenTelemetry for HTTP: of what goes wrong, only the server's own part is an error.
fn end_span(
    span: &ServiceSpan,
    (method, route): (&str, &'static str),
    status: StatusCode,
    error: Option<&ApiError>,
) {
    span.rename(format!("{method} {route}"));
    span.set("http.request.method", method.into());
    span.set("http.route", route.into());
    span.set("http.response.status_code", u64::from(status.as_u16()).into());
    match error {
        Some(error) if status.is_server_error() => span.fail(error.code),
        Some(error) => span.set("plaudit.error", error.code.into()),
        None => {}
    }
    span.end();
}

/// Validates the Host and Origin headers.
fn check_headers(app: &AppState, headers: &HeaderMap) -> Result<(), ApiError> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(ApiError::bad_request("http.host", "one Host header is wanted").closing());
    };
    let host = host.to_str().map_or_else(|_| String::new(), str::to_ascii_lowercase);
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => &host,
    };
    if !app.hosts.is_empty() && !app.hosts.iter().any(|known| known == name) {
        let message = "this service is not known under that name: add it with --host";
        return Err(ApiError::new(StatusCode::MISDIRECTED_REQUEST, "http.host", message).closing());
    }
    // Pages of other origins may not even send requests whose answers they cannot read.
    let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or("null"));
    if let Some(origin) = origin {
        let from = origin.split_once("://").map_or("", |(_, from)| from);
        if !from.eq_ignore_ascii_case(&host) {
            let message = "requests from pages of other origins are not answered";
            return Err(ApiError::new(StatusCode::FORBIDDEN, "http.origin", message).closing());
        }
    }
    Ok(())
}

/// Rejects a request whose target names another host than its Host header: a proxy before the service goes by the target.
fn check_target(target: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
    match target.authority() {
        Some(named) if !host.is_some_and(|host| host.eq_ignore_ascii_case(named.as_str().as_bytes())) => {
            let message = "the target of the request and its Host header name different hosts";
            Err(ApiError::bad_request("http.host", message).closing())
        }
        _ => Ok(()),
    }
}

/// Rejects paths whose percent-encoding is broken or hides control characters; the router decodes leniently.
fn check_path(path: &str) -> Result<(), ApiError> {
    match percent_decode(path) {
        Some(text) if !text.chars().any(char::is_control) => Ok(()),
        _ => Err(ApiError::no_such_path()),
    }
}

/// Percent-decodes a part of a URL, strictly; none where the encoding is broken or is not UTF-8.
pub(crate) fn percent_decode(text: &str) -> Option<String> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?);
        bytes.extend(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// Middleware of one route: authenticates, and labels the response for metrics.
pub(crate) async fn authorize(State(guard): State<RouteGuard>, mut request: Request, next: Next) -> Response {
    let mut response = match guard.principal(request.headers()) {
        Ok(principal) => {
            request.extensions_mut().insert(principal);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    };
    // What the page, Prometheus and orchestrators ask every few seconds is not traced.
    response.extensions_mut().insert(RouteLabel(guard.path, guard.scopes.contains(&Scope::Score)));
    response
}

impl RouteGuard {
    /// Who sends a request, if it may be answered.
    fn principal(&self, headers: &HeaderMap) -> Result<Arc<Principal>, ApiError> {
        let tokens = &self.app.tokens;
        if self.scopes.is_empty() {
            return Ok(tokens.anonymous());
        }
        let mut headers = headers.get_all(header::AUTHORIZATION).iter();
        let (header, second) = (headers.next(), headers.next());
        if second.is_some() {
            return Err(ApiError::bad_request("auth.twice", "one Authorization header is wanted").closing());
        }
        let header = header.map(HeaderValue::as_bytes);
        let basic = header.filter(|_| self.basic_auth).and_then(basic_auth::bearer);
        let principal = tokens.check(basic.as_deref().or(header))?;
        if !self.scopes.iter().any(|scope| principal.may(*scope)) {
            let message = "this token does not allow that";
            return Err(ApiError::new(StatusCode::FORBIDDEN, "auth.scope", message));
        }
        Ok(principal)
    }
}

/// Answers a path that does not exist.
pub(crate) async fn not_found() -> ApiError {
    ApiError::no_such_path()
}

/// Answers a method that a path does not take. The router adds the Allow header.
pub(crate) async fn method_not_allowed() -> ApiError {
    let message = "this path does not take this method";
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "http.method", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_percent_encoding_is_not_found() {
        for path in ["/", "/v1/runs/a%20b/groups/7", "/slime/%C3%A4"] {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
        for path in ["/static/%00.js", "/static/%2", "/static/%zz", "/slime/%FF", "/slime/a%0Ab"] {
            assert_eq!(check_path(path).unwrap_err().status, 404, "{path}");
        }
    }
}
