//! Extractors of handlers: the principal, the query as a typed struct, and the body within the body budget.

use crate::http::auth::Principal;
use crate::http::body;
use crate::http::response::{ApiError, blocking};
use crate::state::AppState;
use axum::extract::{FromRequest, FromRequestParts, Request};
use bytes::Bytes;
use hyper::http::request::Parts;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// From how many bytes on a body is parsed off the threads that answer requests.
pub(crate) const LARGE: usize = 256 << 10;

/// Who sends the request.
#[derive(Debug)]
pub(crate) struct Caller(pub(crate) Arc<Principal>);

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let principal = parts.extensions.get().map(Arc::clone);
        principal.map(Self).ok_or_else(|| ApiError::internal("a route without authentication"))
    }
}

/// The query as a struct of optional whole numbers.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match axum::extract::Query::try_from_uri(&parts.uri) {
            Ok(axum::extract::Query(query)) => Ok(Self(query)),
            Err(rejection) => {
                // The message of the rejection is "Failed to deserialize query string: NAME: why".
                let text = rejection.body_text();
                let name = text.split(": ").nth(1).filter(|name| !name.contains(' ')).unwrap_or("query");
                Err(ApiError::bad_request("http.query", format!("{name}: a number is wanted")))
            }
        }
    }
}

/// The body of a request, a JSON object, whose memory counts against the body budget until it is dropped.
#[derive(Debug)]
pub(crate) struct JsonBody(Bytes);

impl JsonBody {
    /// The bytes; a clone is cheap.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Parses the body; a large one off the threads that answer requests.
    pub(crate) async fn parse<T: Send + 'static>(
        &self,
        parse: impl FnOnce(&[u8]) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let bytes = self.bytes().clone();
        match bytes.len() > LARGE {
            false => parse(&bytes),
            true => blocking("the body could not be read", move || parse(&bytes)).await?,
        }
    }
}

impl FromRequest<Arc<AppState>> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<AppState>) -> Result<Self, ApiError> {
        if app.is_draining() {
            return Err(ApiError::draining());
        }
        let (head, incoming) = request.into_parts();
        body::read(&head.headers, incoming, app.limits.request_bytes, &app.body_budget).await.map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Numbers {
        step: Option<u64>,
        limit: Option<u64>,
    }

    async fn query(text: &str) -> Result<Numbers, ApiError> {
        let request = hyper::Request::builder().uri(format!("/x?{text}")).body(()).unwrap();
        Query::from_request_parts(&mut request.into_parts().0, &()).await.map(|Query(query)| query)
    }

    #[tokio::test]
    async fn query_parameters_are_numbers() {
        assert_eq!(query("step=3&name=a%20b").await, Ok(Numbers { step: Some(3), limit: None }));
        assert_eq!(query("").await, Ok(Numbers { step: None, limit: None }));
        for bad in ["step=x", "step=", "step=-1"] {
            let error = query(bad).await.unwrap_err();
            assert_eq!((error.code, &*error.message), ("http.query", "step: a number is wanted"), "{bad}");
        }
    }
}
