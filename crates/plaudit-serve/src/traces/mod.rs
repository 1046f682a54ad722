//! OpenTelemetry traces: a span for each request, each batch that is scored and each judge call, exported over OTLP/HTTP.
//!
//! Off unless an endpoint is named. Spans go through a bounded queue to a thread of their own, so that a collector that is slow or away
//! costs a request nothing; what does not fit is counted and dropped. No span holds a prompt, a response or a judge's reply.
//!
//! The exporter is written here. opentelemetry-otlp with its SDK (0.33) would be twelve more crates, and the queue, the counts and the
//! time limits would stay: the SDK's batches do not tell how many spans they dropped, a flush takes up to five seconds, and a span that
//! has begun is exported, although a call that the journal answers is none.

mod context;
mod export;
mod otlp;
mod settings;

pub use settings::TraceSettings;

use context::TraceContext;
use export::{Exporter, SpanCounts};
use otlp::{AttributeValue, SpanRecord};
use plaudit::exec::{SpanKind, SpanValue, TraceSpan, lock};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long the last spans may take to be sent when the service ends.
const FLUSH: Duration = Duration::from_secs(3);

tokio::task_local! {
    /// The span of the request that is being answered.
    static CURRENT: Arc<dyn TraceSpan>;
}

/// The span of the request that this task answers, where requests are traced.
pub(crate) fn current() -> Option<Arc<dyn TraceSpan>> {
    CURRENT.try_with(Arc::clone).ok()
}

/// Begins spans and exports them.
#[derive(Debug)]
pub(crate) struct Tracer {
    exporter: Arc<Exporter>,
    /// The share of new traces that is recorded.
    sample: f64,
}

impl Tracer {
    /// Starts the exporter.
    pub(crate) fn start(settings: &TraceSettings) -> Result<Self, String> {
        Ok(Self { exporter: Arc::new(Exporter::start(settings)?), sample: settings.sample })
    }

    /// Begins the span of a request, in the trace that its `traceparent` header names, or in a new one.
    pub(crate) fn request(&self, traceparent: Option<&str>, method: &str) -> Arc<ServiceSpan> {
        let parent = traceparent.and_then(TraceContext::parse);
        let context = match parent {
            Some(parent) => parent.child(),
            None => TraceContext::root(self.sample),
        };
        let parent = parent.map(|parent| parent.span_id);
        Arc::new(ServiceSpan::begin(&self.exporter, context, parent, otlp::SERVER, method))
    }

    /// Begins a trace of work that no request waits for.
    pub(crate) fn root(&self, name: &str) -> Arc<dyn TraceSpan> {
        let context = TraceContext::root(self.sample);
        Arc::new(ServiceSpan::begin(&self.exporter, context, None, otlp::INTERNAL, name))
    }

    /// How many spans were exported, dropped and refused so far.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 3] {
        self.exporter.counts.all()
    }

    /// Sends what is left, for a few seconds at most.
    pub(crate) fn close(&self) {
        self.exporter.flush(FLUSH);
        let SpanCounts { dropped, failed, .. } = &*self.exporter.counts;
        let (dropped, failed) = (SpanCounts::read(dropped), SpanCounts::read(failed));
        if dropped + failed > 0 {
            tracing::warn!(dropped, failed, "spans were not exported");
        }
    }
}

/// Answers a request inside its span.
pub(crate) async fn in_span<T>(span: Option<Arc<ServiceSpan>>, answer: impl Future<Output = T>) -> T {
    match span {
        Some(span) => CURRENT.scope(span as Arc<dyn TraceSpan>, answer).await,
        None => answer.await,
    }
}

/// A span of this service: of a request, or of a step in it.
#[derive(Debug)]
pub(crate) struct ServiceSpan {
    exporter: Arc<Exporter>,
    context: TraceContext,
    began: Instant,
    /// None once it has ended.
    record: Mutex<Option<SpanRecord>>,
}

impl ServiceSpan {
    fn begin(
        exporter: &Arc<Exporter>,
        context: TraceContext,
        parent: Option<[u8; 8]>,
        kind: u64,
        name: &str,
    ) -> Self {
        let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        // A span that is not recorded has no more than its ids, which judges are told.
        let record = context.sampled.then(|| SpanRecord {
            context,
            parent,
            kind,
            name: name.to_owned(),
            start,
            took: Duration::ZERO,
            attributes: Vec::new(),
            error: None,
        });
        Self { exporter: Arc::clone(exporter), context, began: Instant::now(), record: Mutex::new(record) }
    }

    /// Names it once the route is known.
    pub(crate) fn rename(&self, name: String) {
        if let Some(record) = lock(&self.record).as_mut() {
            record.name = name;
        }
    }
}

impl TraceSpan for ServiceSpan {
    fn child(&self, kind: SpanKind, name: &str) -> Arc<dyn TraceSpan> {
        let kind = match kind {
            SpanKind::Internal => otlp::INTERNAL,
            SpanKind::Client => otlp::CLIENT,
        };
        let parent = Some(self.context.span_id);
        Arc::new(Self::begin(&self.exporter, self.context.child(), parent, kind, name))
    }

    fn set(&self, name: &'static str, value: SpanValue<'_>) {
        if let Some(record) = lock(&self.record).as_mut() {
            let value = match value {
                SpanValue::Text(text) => AttributeValue::Text(text.to_owned()),
                SpanValue::Count(count) => AttributeValue::Count(count),
                SpanValue::Flag(flag) => AttributeValue::Flag(flag),
            };
            record.attributes.push((name, value));
        }
    }

    fn fail(&self, code: &str) {
        if let Some(record) = lock(&self.record).as_mut() {
            record.error = Some(code.to_owned());
        }
    }

    fn traceparent(&self) -> String {
        self.context.to_string()
    }

    fn end(&self) {
        if let Some(mut record) = lock(&self.record).take() {
            record.took = self.began.elapsed();
            self.exporter.send(record);
        }
    }

    fn discard(&self) {
        drop(lock(&self.record).take());
    }
}

impl Drop for ServiceSpan {
    fn drop(&mut self) {
        self.end();
    }
}
