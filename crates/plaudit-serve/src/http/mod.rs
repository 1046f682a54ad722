//! The HTTP server: listener, connection limits and timeouts, TLS, authentication, bodies, and the middleware around the router.

pub(crate) mod auth;
pub(crate) mod body;
pub(crate) mod conn_limits;
pub(crate) mod conn_timeouts;
pub(crate) mod listener;
pub(crate) mod middleware;
pub(crate) mod response;
pub(crate) mod tls;
