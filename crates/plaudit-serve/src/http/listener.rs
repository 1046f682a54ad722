//! The listener: accepts TCP and TLS connections within the connection limits, serves HTTP/1.1 on each, and shuts down gracefully.

use super::conn_limits::ConnPermit;
use super::conn_timeouts::{ConnPhase, TimedStream};
use super::middleware;
use super::response::ApiError;
use super::tls;
use crate::api::routes;
use crate::error::ServeError;
use crate::state::AppState;
use axum::Router;
use axum::response::IntoResponse as _;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// The most bytes of a request's head.
const MAX_HEAD: usize = 64 << 10;
/// The most headers of a request.
const MAX_HEADERS: usize = 100;
/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long to wait when the system has no more file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long a connection beyond the limit may take.
const BRIEF: Duration = Duration::from_secs(2);
/// The answer to a connection that cannot even have a reserved place.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// A bound socket, with TLS where there is a certificate.
pub struct Listener {
    socket: TcpListener,
    tls: Option<TlsAcceptor>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Listener").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl Listener {
    /// Binds an address; `tls` names the files of a certificate chain and of its key.
    pub async fn bind(address: SocketAddr, tls: Option<(&Path, &Path)>) -> Result<Self, ServeError> {
        let tls = tls.map(|(certificate, key)| tls::acceptor(certificate, key)).transpose()?;
        let socket = TcpListener::bind(address).await;
        let socket = socket.map_err(|error| ServeError::File(address.to_string(), error))?;
        Ok(Self { socket, tls })
    }

    /// Its URL, with the port that the system has chosen where none was given.
    pub fn url(&self) -> io::Result<String> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        self.socket.local_addr().map(|address| format!("{scheme}://{address}"))
    }
}

/// What every connection needs.
#[derive(Debug, Clone)]
struct App {
    state: Arc<AppState>,
    router: Router,
}

/// Accepts connections until it is told to stop, then waits for those that are being answered.
pub(crate) async fn serve(state: Arc<AppState>, listener: Listener, mut stop: watch::Receiver<bool>) {
    let Listener { socket, tls } = listener;
    let app = App { router: routes::router(&state), state };
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            () = stopped(&mut stop) => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // A client that has gone already costs nothing; anything else means that there are no file handles left.
                if !matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
                {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
                continue;
            }
        };
        // Small answers are sent at once.
        let _ = stream.set_nodelay(true);
        let Some(permit) = app.state.connections.enter(peer.ip()) else {
            match app.state.connections.enter_reserved() {
                Some(reserved) => {
                    let (app, tls) = (app.clone(), tls.clone());
                    drop(tokio::spawn(async move {
                        let _ = tokio::time::timeout(BRIEF, answer_briefly(app, stream, tls, peer)).await;
                        drop(reserved);
                    }));
                }
                None => {
                    app.state.metrics.observe_rejected_connection();
                    reject(stream);
                }
            }
            continue;
        };
        let (app, mut stop) = (app.clone(), stop.clone());
        match tls.clone() {
            None => drop(tokio::spawn(connection(app, stream, peer, stop, permit))),
            Some(tls) => drop(tokio::spawn(async move {
                let shaken = tokio::select! {
                    shaken = tokio::time::timeout(HANDSHAKE, tls.accept(stream)) => shaken,
                    () = stopped(&mut stop) => return,
                };
                if let Ok(Ok(stream)) = shaken {
                    connection(app, stream, peer, stop, permit).await;
                }
            })),
        }
    }
    drop(socket);
    app.state.connections.closed().await;
}

/// Resolves when the service is to stop.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A dropped sender means the same.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Serves one connection.
async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    app: App,
    stream: S,
    peer: SocketAddr,
    mut stop: watch::Receiver<bool>,
    permit: ConnPermit,
) {
    let phase = ConnPhase::default();
    let answer = {
        let phase = phase.clone();
        service_fn(move |request| {
            phase.begin();
            let (app, phase) = (app.clone(), phase.clone());
            async move {
                let reply = middleware::handle(&app.state, &app.router, peer, request).await;
                phase.end();
                Ok::<_, Infallible>(reply)
            }
        })
    };
    let io = TokioIo::new(TimedStream::new(stream, phase));
    {
        let mut served = std::pin::pin!(http().serve_connection(io, answer));
        // Errors of a connection are the client's.
        tokio::select! {
            _ = served.as_mut() => {}
            () = stopped(&mut stop) => {
                served.as_mut().graceful_shutdown();
                let _ = served.await;
            }
        }
    }
    // Only now: requests of the connection are over.
    drop(permit);
}

/// HTTP/1.1 with limits on the head; its time is limited by the stream.
fn http() -> http1::Builder {
    let mut http = http1::Builder::new();
    http.max_buf_size(MAX_HEAD).max_headers(MAX_HEADERS).header_read_timeout(None);
    http
}

/// Answers one request on a reserved connection: a health check, or that there are too many connections.
async fn answer_briefly(app: App, stream: TcpStream, tls: Option<TlsAcceptor>, peer: SocketAddr) {
    match tls {
        None => serve_briefly(app, stream, peer).await,
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                serve_briefly(app, stream, peer).await;
            }
        }
    }
}

async fn serve_briefly<S: AsyncRead + AsyncWrite + Unpin>(app: App, stream: S, peer: SocketAddr) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let app = app.clone();
        async move {
            let mut reply = match request.uri().path() {
                "/healthz" | "/readyz" => middleware::handle(&app.state, &app.router, peer, request).await,
                _ => {
                    app.state.metrics.observe_rejected_connection();
                    let message =
                        "there are too many connections, or too many from this address: try again later";
                    let error =
                        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "service.connections", message);
                    ApiError { retry_after: Some(1), ..error }.into_response()
                }
            };
            reply.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            Ok::<_, Infallible>(reply)
        }
    });
    // Errors of a connection are the client's.
    let _ = http().keep_alive(false).serve_connection(TokioIo::new(stream), answer).await;
}

/// Rejects a connection without waiting for the client.
fn reject(mut stream: TcpStream) {
    tokio::spawn(async move {
        let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(FULL)).await;
    });
}
