//! `/metrics` in the text format of Prometheus: counters and histograms of requests, and a snapshot of judges, runs, jobs and limits.
//!
//! No label holds a text that a client may choose freely, but for the names of live runs, which are bounded. The `prometheus` crate is used
//! because prometheus-client has no summaries and writes other `le` labels.

mod run_gauges;

use crate::error::ServeError;
use crate::http::response::ApiError;
use crate::state::AppState;
use hyper::StatusCode;
use plaudit::judge::client::JudgeUsage;
use plaudit::outcome::OutcomeKind;
use plaudit::report::Report;
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType, Quantile, Summary};
use prometheus::{HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry, TextEncoder};
use std::time::Duration;

/// The upper bounds of the histogram of request times, in seconds.
const BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0, 120.0];

/// What is counted while requests are answered.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    request_seconds: HistogramVec,
    rollouts: IntCounterVec,
    reasons: IntCounterVec,
    rejected_connections: IntCounter,
}

impl Metrics {
    pub(crate) fn new() -> Result<Self, ServeError> {
        Self::register().map_err(|error| ServeError::Arguments(error.to_string()))
    }

    fn register() -> prometheus::Result<Self> {
        let counter =
            |name: &str, help: &str, labels: &[&str]| IntCounterVec::new(Opts::new(name, help), labels);
        let seconds = HistogramOpts::new("plaudit_request_seconds", "How long requests took.");
        let metrics = Self {
            registry: Registry::new(),
            requests: counter(
                "plaudit_requests_total",
                "Requests by route and status.",
                &["route", "status"],
            )?,
            request_seconds: HistogramVec::new(seconds.buckets(BUCKETS.to_vec()), &["route"])?,
            rollouts: counter(
                "plaudit_rollouts_total",
                "Rollouts by recipe and outcome.",
                &["recipe", "outcome"],
            )?,
            reasons: counter(
                "plaudit_reasons_total",
                "Why rollouts were not simply scored, by recipe.",
                &["recipe", "code"],
            )?,
            rejected_connections: IntCounter::new(
                "plaudit_connections_rejected_total",
                "Connections for which there was no room.",
            )?,
        };
        for counter in [&metrics.requests, &metrics.rollouts, &metrics.reasons] {
            metrics.registry.register(Box::new(counter.clone()))?;
        }
        metrics.registry.register(Box::new(metrics.request_seconds.clone()))?;
        metrics.registry.register(Box::new(metrics.rejected_connections.clone()))?;
        Ok(metrics)
    }

    /// Counts a request by the route that answered it.
    pub(crate) fn observe_request(&self, route: &'static str, status: StatusCode, took: Duration) {
        add(&self.requests, &[route, status.as_str()], 1);
        if let Ok(histogram) = self.request_seconds.get_metric_with_label_values(&[route]) {
            histogram.observe(took.as_secs_f64());
        }
    }

    /// Counts a connection beyond the limit.
    pub(crate) fn observe_rejected_connection(&self) {
        self.rejected_connections.inc();
    }

    /// Counts the rollouts of a report.
    pub(crate) fn observe_report(&self, recipe: &str, report: &Report) {
        for kind in OutcomeKind::ALL {
            let count = report.statistics.outcomes.of(kind);
            if count > 0 {
                add(&self.rollouts, &[recipe, kind.as_str()], count);
            }
        }
        for (_, code, count) in report.statistics.outcomes.reasons() {
            add(&self.reasons, &[recipe, code.as_str()], count);
        }
    }

    /// Counts one rollout of a join.
    pub(crate) fn observe_joined(&self, recipe: &str, kind: OutcomeKind, code: Option<&'static str>) {
        add(&self.rollouts, &[recipe, kind.as_str()], 1);
        if let Some(code) = code {
            add(&self.reasons, &[recipe, code], 1);
        }
    }
}

/// Adds to the counter with these labels, of which there are as many as it was made with.
fn add(counter: &IntCounterVec, labels: &[&str], count: u64) {
    if let Ok(counter) = counter.get_metric_with_label_values(labels) {
        counter.inc_by(count);
    }
}

/// Metric families that are made when they are scraped.
#[derive(Debug, Default)]
struct Snapshot(Vec<MetricFamily>);

impl Snapshot {
    /// Adds a family, where it has samples.
    fn add(&mut self, name: &str, kind: MetricType, help: &str, samples: Vec<Metric>) {
        if samples.is_empty() {
            return;
        }
        let mut family = MetricFamily::default();
        family.set_name(name.to_owned());
        family.set_help(help.to_owned());
        family.set_field_type(kind);
        family.set_metric(samples);
        self.0.push(family);
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.add(name, MetricType::GAUGE, help, vec![gauge(&[], value)]);
    }
}

fn labelled(labels: &[(&str, &str)]) -> Metric {
    let pair = |(name, value): &(&str, &str)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    };
    let mut metric = Metric::default();
    metric.set_label(labels.iter().map(pair).collect());
    metric
}

fn gauge(labels: &[(&str, &str)], value: f64) -> Metric {
    let (mut metric, mut gauge) = (labelled(labels), Gauge::default());
    gauge.set_value(value);
    metric.set_gauge(gauge);
    metric
}

fn counter(labels: &[(&str, &str)], value: f64) -> Metric {
    let (mut metric, mut counter) = (labelled(labels), Counter::default());
    counter.set_value(value);
    metric.set_counter(counter);
    metric
}

/// All metrics as text.
pub(crate) fn render(app: &AppState) -> Result<String, ApiError> {
    let mut snapshot = Snapshot(app.metrics.registry.gather());
    judges(&mut snapshot, &app.recipes.shared().judge_usage());
    run_gauges::add(&mut snapshot, &app.runs.live());
    service(&mut snapshot, app);
    let text = TextEncoder::new().encode_to_string(&snapshot.0);
    text.map_err(|error| ApiError::internal(error.to_string()))
}

fn service(snapshot: &mut Snapshot, app: &AppState) {
    let texts = "Bytes of rollouts that are being scored or wait for their groups.";
    for (name, help, value) in [
        ("plaudit_connections", "Connections that are open.", app.connections.open()),
        ("plaudit_rollouts_in_flight", "Rollouts that are being scored.", app.admission.admitted()),
        ("plaudit_request_bytes", "Bytes of requests that are held.", app.body_budget.held()),
        ("plaudit_rollouts_joining", "Rollouts that wait for their groups.", app.joining.admitted()),
        ("plaudit_rollout_bytes", texts, app.texts.admitted()),
        ("plaudit_runs_live", "Runs that are being scored for.", app.runs.live_count()),
        (
            "plaudit_stalled_tasks",
            "Tasks that have made no progress for over a minute.",
            app.watchdog.stalled(),
        ),
    ] {
        snapshot.gauge(name, help, value as f64);
    }
    let jobs = app.jobs.counts();
    let jobs = jobs.iter().map(|(state, count)| gauge(&[("state", state)], *count as f64)).collect();
    snapshot.add("plaudit_jobs", MetricType::GAUGE, "Jobs by state.", jobs);
    if let Some(tracer) = &app.tracer {
        let spans = tracer.counts().map(|(outcome, count)| counter(&[("outcome", outcome)], count as f64));
        let help = "Spans of traces by what became of them.";
        snapshot.add("plaudit_spans_total", MetricType::COUNTER, help, spans.to_vec());
    }
    let up = app.started.elapsed().as_secs_f64();
    snapshot.gauge("plaudit_uptime_seconds", "For how long the service has been up.", up);
}

fn judges(snapshot: &mut Snapshot, judge_usage: &[JudgeUsage]) {
    type Value = fn(&JudgeUsage) -> Option<f64>;
    // Where a value is unknown, such as the cost without prices, there is no sample.
    let counters: [(&str, &str, Value); 7] = [
        ("plaudit_judge_calls_total", "Calls that were sent to a judge.", |usage| Some(usage.calls as f64)),
        ("plaudit_judge_cached_total", "Questions that the journal answered.", |usage| {
            Some(usage.cached as f64)
        }),
        ("plaudit_judge_retries_total", "Calls that were sent again.", |usage| Some(usage.retries as f64)),
        ("plaudit_judge_prompt_tokens_total", "Tokens read.", |usage| Some(usage.tokens.prompt as f64)),
        ("plaudit_judge_completion_tokens_total", "Tokens written.", |usage| {
            Some(usage.tokens.completion as f64)
        }),
        ("plaudit_judge_journal_wait_seconds_total", "How long answers waited for the journal.", |usage| {
            Some(usage.journal_wait)
        }),
        ("plaudit_judge_cost_total", "What calls have cost.", |usage| usage.cost),
    ];
    for (name, help, value) in counters {
        let sample =
            |usage: &JudgeUsage| value(usage).map(|value| counter(&[("judge", &usage.judge)], value));
        snapshot.add(name, MetricType::COUNTER, help, judge_usage.iter().filter_map(sample).collect());
    }
    let failures = judge_usage.iter().flat_map(|usage| {
        let sample = |(code, count): (_, &u64)| {
            let code: &plaudit::reason::Code = code;
            counter(&[("judge", &usage.judge), ("code", code.as_str())], *count as f64)
        };
        usage.failures.iter().map(sample)
    });
    let help = "Calls that failed, by cause.";
    snapshot.add("plaudit_judge_failures_total", MetricType::COUNTER, help, failures.collect());
    let help = "How long answers of a judge took.";
    let latency = judge_usage.iter().map(latency).collect();
    snapshot.add("plaudit_judge_latency_seconds", MetricType::SUMMARY, help, latency);
    let limits = judge_usage.iter().map(|usage| gauge(&[("judge", &usage.judge)], usage.limit as f64));
    let help = "How many calls may be in flight now.";
    snapshot.add("plaudit_judge_limit", MetricType::GAUGE, help, limits.collect());
}

fn latency(usage: &JudgeUsage) -> Metric {
    let quantile = |q: f64| {
        let mut quantile = Quantile::default();
        quantile.set_quantile(q);
        quantile.set_value(usage.latency.quantile(q)?);
        Some(quantile)
    };
    let moments = &usage.latency.moments;
    let mut summary = Summary::default();
    summary.set_quantile([0.5, 0.9, 0.99].into_iter().filter_map(quantile).collect());
    summary.set_sample_sum(moments.mean * moments.count as f64);
    summary.set_sample_count(moments.count);
    let mut metric = labelled(&[("judge", &usage.judge)]);
    metric.set_summary(summary);
    metric
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        let mut snapshot = Snapshot::default();
        snapshot.add("x", MetricType::GAUGE, "", vec![gauge(&[("recipe", "a\"} evil 1\n")], 1.0)]);
        let text = TextEncoder::new().encode_to_string(&snapshot.0).unwrap();
        assert_eq!(text, "# TYPE x gauge\nx{recipe=\"a\\\"} evil 1\\n\"} 1\n");
    }
}
