//! The exporter: a thread that posts spans in batches. Its queue is bounded and never waited for.

use super::otlp::{SpanRecord, export_request};
use super::settings::TraceSettings;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc as blocking};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How many spans may wait. OpenTelemetry's own default is 2048; the calls of one large batch should fit.
const QUEUE: usize = 8192;
/// How many spans are sent at once, and how long the first of them waits.
const BATCH: usize = 512;
const LINGER: Duration = Duration::from_secs(1);
/// How soon a batch is sent once more that a collector did not take for a reason that passes.
const AGAIN: Duration = Duration::from_secs(1);
/// How often it is logged that spans cannot be exported.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// How often a full queue is tried at the end.
const LOOK: Duration = Duration::from_millis(10);

enum ExportItem {
    Span(Box<SpanRecord>),
    /// Somebody waits until everything before it has been sent.
    Flush(blocking::SyncSender<()>),
}

/// What became of spans.
#[derive(Debug, Default)]
pub(super) struct SpanCounts {
    exported: AtomicU64,
    /// There was no room in the queue.
    pub(super) dropped: AtomicU64,
    /// The collector did not take them.
    pub(super) failed: AtomicU64,
}

impl SpanCounts {
    pub(super) fn read(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }

    pub(super) fn all(&self) -> [(&'static str, u64); 3] {
        let Self { exported, dropped, failed } = self;
        [("exported", exported), ("dropped", dropped), ("failed", failed)]
            .map(|(name, counter)| (name, Self::read(counter)))
    }
}

/// The sending end of the queue.
#[derive(Debug)]
pub(super) struct Exporter {
    queue: mpsc::Sender<ExportItem>,
    pub(super) counts: Arc<SpanCounts>,
}

impl Exporter {
    /// Starts the thread.
    pub(super) fn start(settings: &TraceSettings) -> Result<Self, String> {
        let (queue, receive) = mpsc::channel(QUEUE);
        let counts = Arc::new(SpanCounts::default());
        let mut sender = BatchSender::new(settings, &counts)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let thread = std::thread::Builder::new().name("plaudit-traces".to_owned());
        thread.spawn(move || runtime.block_on(sender.run(receive))).map_err(|error| error.to_string())?;
        Ok(Self { queue, counts })
    }

    /// Hands a span over, or drops it where there is no room.
    pub(super) fn send(&self, span: SpanRecord) {
        if self.queue.try_send(ExportItem::Span(Box::new(span))).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until everything so far has been sent, at most so long.
    pub(super) fn flush(&self, most: Duration) {
        let end = Instant::now() + most;
        let (done, wait) = blocking::sync_channel(1);
        let mut item = ExportItem::Flush(done);
        while let Err(mpsc::error::TrySendError::Full(back)) = self.queue.try_send(item) {
            if Instant::now() >= end {
                return;
            }
            item = back;
            std::thread::sleep(LOOK);
        }
        let _ = wait.recv_timeout(end.saturating_duration_since(Instant::now()));
    }
}

/// Posts batches to the collector.
struct BatchSender {
    client: Client,
    url: String,
    resource: Vec<(String, String)>,
    counts: Arc<SpanCounts>,
    logged: Option<Instant>,
}

impl BatchSender {
    fn new(settings: &TraceSettings, counts: &Arc<SpanCounts>) -> Result<Self, String> {
        let TraceSettings { url, headers, resource, timeout, .. } = settings;
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::try_from(name).map_err(|_| format!("{name:?} is no name of a header"))?;
            let mut value = HeaderValue::try_from(value)
                .map_err(|_| format!("no header can carry the value of {name}"))?;
            // It may be a key.
            value.set_sensitive(true);
            sent.insert(name, value);
        }
        sent.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        // It fails only where the process has chosen a provider already, which then serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder()
            .default_headers(sent)
            .user_agent(concat!("plaudit/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(*timeout);
        // A machine without certificates can still export to a collector of its own.
        #[cfg(feature = "tls")]
        let builder = if url.starts_with("http://") { builder.tls_certs_only([]) } else { builder };
        let client = builder.build().map_err(|error| error.to_string())?;
        let (url, resource, counts) = (url.clone(), resource.clone(), Arc::clone(counts));
        Ok(Self { client, url, resource, counts, logged: None })
    }

    /// Sends what comes, until the queue is closed.
    async fn run(&mut self, mut queue: mpsc::Receiver<ExportItem>) {
        let mut batch: Vec<SpanRecord> = Vec::with_capacity(BATCH);
        let mut due = tokio::time::Instant::now();
        loop {
            let item = match batch.is_empty() {
                true => Ok(queue.recv().await),
                false => tokio::time::timeout_at(due, queue.recv()).await,
            };
            let mut flushed = None;
            match item {
                Ok(Some(ExportItem::Span(span))) => {
                    if batch.is_empty() {
                        due = tokio::time::Instant::now() + LINGER;
                    }
                    batch.push(*span);
                    if batch.len() < BATCH {
                        continue;
                    }
                }
                Ok(Some(ExportItem::Flush(done))) => flushed = Some(done),
                Ok(None) => return self.export(&mut batch, false).await,
                Err(_) => {}
            }
            self.export(&mut batch, flushed.is_none()).await;
            if let Some(done) = flushed {
                let _ = done.send(());
            }
        }
    }

    /// Sends a batch, once more where that may help and there is time.
    async fn export(&mut self, batch: &mut Vec<SpanRecord>, may_retry: bool) {
        if batch.is_empty() {
            return;
        }
        let (body, count) = (export_request(&self.resource, batch), batch.len() as u64);
        batch.clear();
        let mut done = self.post(body.clone()).await;
        if let (Err((_, true)), true) = (&done, may_retry) {
            tokio::time::sleep(AGAIN).await;
            done = self.post(body).await;
        }
        match done {
            Ok(()) => drop(self.counts.exported.fetch_add(count, Ordering::Relaxed)),
            Err((why, _)) => {
                self.counts.failed.fetch_add(count, Ordering::Relaxed);
                if self.logged.is_none_or(|logged| logged.elapsed() > LOG_INTERVAL) {
                    self.logged = Some(Instant::now());
                    tracing::warn!(spans = count, why, "the collector of traces did not take spans");
                }
            }
        }
    }

    /// Posts a batch; of a failure, why, and whether another attempt may succeed. The address may hold a key, and is not told.
    async fn post(&self, body: Vec<u8>) -> Result<(), (String, bool)> {
        match self.client.post(&self.url).body(body).send().await {
            Ok(reply) if reply.status().is_success() => Ok(()),
            Ok(reply) => {
                let status = reply.status();
                let passes = [
                    StatusCode::TOO_MANY_REQUESTS,
                    StatusCode::BAD_GATEWAY,
                    StatusCode::SERVICE_UNAVAILABLE,
                    StatusCode::GATEWAY_TIMEOUT,
                ];
                Err((format!("status {}", status.as_u16()), passes.contains(&status)))
            }
            Err(error) if error.is_timeout() => Err(("no answer in time".to_owned(), false)),
            Err(error) if error.is_connect() => Err(("no connection".to_owned(), true)),
            Err(_) => Err(("the exchange failed".to_owned(), true)),
        }
    }
}
