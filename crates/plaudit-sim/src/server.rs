//! HTTP server of the simulator: routes, body limits, delays and graceful shutdown.

use super::request_log::RequestLog;
use super::simulator::{Reply, Shape, Simulator};
use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The largest body that is read.
const MAX_BYTES: usize = 16 << 20;
/// What the timer adds to a delay in the mean: it rounds up to whole milliseconds twice, in its wheel and when it waits.
/// Without taking it off, a judge of 20 ms would be one of 21.
const ROUNDING: Duration = Duration::from_micros(1250);
/// How long the end waits for replies that are under way.
const GRACE: Duration = Duration::from_secs(1);

/// A judge that listens.
#[derive(Debug)]
pub(crate) struct Server {
    simulator: Simulator,
    pub(crate) request_log: RequestLog,
    /// After how many requests it ends.
    requests: Option<u64>,
    stop: watch::Sender<bool>,
}

impl Server {
    pub(crate) fn new(simulator: Simulator, request_log: RequestLog, requests: Option<u64>) -> Self {
        Self { simulator, request_log, requests, stop: watch::Sender::new(false) }
    }

    /// Serves until `ending` is over or it has answered as many requests as it should.
    pub(crate) async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        ending: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let listener = listener.tap_io(|stream| {
            // A reply is small and complete; a socket that refuses the option is only slower.
            let _ = stream.set_nodelay(true);
        });
        let mut stopped = self.stop.subscribe();
        let router = router(Arc::clone(&self));
        let serving = axum::serve(listener, router).with_graceful_shutdown(async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        });
        let mut stopped = self.stop.subscribe();
        let late = async {
            tokio::select! {
                () = ending => { self.stop.send_replace(true); }
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            done = serving.into_future() => done,
            () = late => Ok(()),
        }
    }

    async fn answer(&self, body: Result<Bytes, BytesRejection>, think: impl Fn(&[u8]) -> Reply) -> Response {
        let mut visit = self.request_log.visit(body.as_deref().unwrap_or(b""));
        let reply = match &body {
            Ok(body) => think(body),
            Err(error) => Reply::error(error.status().as_u16(), &error.body_text(), None, None),
        };
        visit.waits(reply.latency);
        if !reply.latency.is_zero() {
            tokio::time::sleep(reply.latency.saturating_sub(ROUNDING)).await;
        }
        visit.settle(reply.status, reply.usage.as_ref());
        let enough = self.requests.is_some_and(|requests| self.request_log.settled() >= requests);
        if enough || self.request_log.is_broken() {
            self.stop.send_replace(true);
        }
        respond(reply)
    }
}

type Body = Result<Bytes, BytesRejection>;

fn router(server: Arc<Server>) -> Router {
    let chat = |State(server): State<Arc<Server>>, body: Body| async move {
        server.answer(body, |body| server.simulator.chat(body)).await
    };
    let scores = |shape: Shape| {
        move |State(server): State<Arc<Server>>, body: Body| async move {
            server.answer(body, |body| server.simulator.scores(body, shape)).await
        }
    };
    Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/classify", post(scores(Shape::Classify)))
        .route("/v1/classify", post(scores(Shape::Classify)))
        .route("/pooling", post(scores(Shape::Pooling)))
        .route("/v1/pooling", post(scores(Shape::Pooling)))
        .route("/v1/embeddings", post(scores(Shape::Embeddings)))
        .route("/v1/models", get(models))
        .route("/health", get(|| async { StatusCode::OK }))
        .fallback(|| async { respond(Reply::error(404, "there is nothing under this path", None, None)) })
        .method_not_allowed_fallback(|| async {
            respond(Reply::error(405, "this path does not take this method", None, None))
        })
        .layer(DefaultBodyLimit::max(MAX_BYTES))
        .with_state(server)
}

async fn models(State(server): State<Arc<Server>>) -> Response {
    let model = serde_json::json!({
        "id": server.simulator.model(), "object": "model", "created": 0, "owned_by": "plaudit",
    });
    let body = serde_json::json!({ "object": "list", "data": [model] }).to_string().into_bytes();
    respond(Reply { status: 200, body, latency: Duration::ZERO, usage: None })
}

fn respond(reply: Reply) -> Response {
    let mut response = reply.body.into_response();
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if reply.status == 429 {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
