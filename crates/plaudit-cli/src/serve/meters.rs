//! How is the service doing? Counts and times in the format of Prometheus. No label here holds what a client may choose freely.

use super::gauges;
use super::house::House;
use plaudit::judge::client::Tally;
use plaudit::outcome::OutcomeKind;
use plaudit::report::Report;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The upper ends of the times that are told apart, in seconds.
const BOUNDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0, 120.0];

/// What is counted.
#[derive(Debug)]
pub(crate) struct Meters {
    counts: Mutex<Counts>,
    turned_away: AtomicU64,
}

#[derive(Debug, Default)]
struct Counts {
    requests: BTreeMap<(&'static str, u16), u64>,
    times: BTreeMap<&'static str, Times>,
    rollouts: BTreeMap<(String, &'static str), u64>,
    reasons: BTreeMap<(String, &'static str), u64>,
}

#[derive(Debug, Default)]
struct Times {
    buckets: [u64; BOUNDS.len()],
    count: u64,
    sum: f64,
}

impl Meters {
    pub(crate) fn new() -> Self {
        Self { counts: Mutex::new(Counts::default()), turned_away: AtomicU64::new(0) }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request by the route that it took.
    pub(crate) fn answered(&self, route: &'static str, status: u16, took: Duration) {
        let mut counts = self.counts();
        *counts.requests.entry((route, status)).or_insert(0) += 1;
        let times = counts.times.entry(route).or_default();
        let seconds = took.as_secs_f64();
        for (bucket, bound) in times.buckets.iter_mut().zip(BOUNDS) {
            *bucket += u64::from(seconds <= bound);
        }
        times.count += 1;
        times.sum += seconds;
    }

    /// Counts a connection for which there was no room.
    pub(crate) fn turned_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts what was scored by a recipe.
    pub(crate) fn scored(&self, recipe: &str, report: &Report) {
        let mut counts = self.counts();
        for kind in OutcomeKind::ALL {
            let some = report.statistics.outcomes.of(kind);
            if some > 0 {
                *counts.rollouts.entry((recipe.to_owned(), kind.as_str())).or_insert(0) += some;
            }
        }
        for (_, code, some) in report.statistics.outcomes.reasons() {
            *counts.reasons.entry((recipe.to_owned(), code.as_str())).or_insert(0) += some;
        }
    }

    /// Counts one answer of a join.
    pub(crate) fn joined(&self, recipe: &str, kind: OutcomeKind, code: Option<&'static str>) {
        let mut counts = self.counts();
        *counts.rollouts.entry((recipe.to_owned(), kind.as_str())).or_insert(0) += 1;
        if let Some(code) = code {
            *counts.reasons.entry((recipe.to_owned(), code)).or_insert(0) += 1;
        }
    }
}

/// A label's value, escaped.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

pub(super) struct Page(String);

impl Page {
    pub(super) fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub(super) fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, "gauge", help);
        self.line(name, &[], value);
    }
}

/// All of it as text.
pub(crate) fn page(house: &House) -> String {
    let mut page = Page(String::new());
    let counts = house.meters.counts();
    page.head("plaudit_requests_total", "counter", "Requests by route and status.");
    for ((route, status), count) in &counts.requests {
        page.line(
            "plaudit_requests_total",
            &[("route", route), ("status", &status.to_string())],
            *count as f64,
        );
    }
    page.head("plaudit_request_seconds", "histogram", "How long requests took.");
    for (route, times) in &counts.times {
        for (bound, count) in BOUNDS.iter().zip(times.buckets) {
            let labels = [("route", *route), ("le", &*bound.to_string())];
            page.line("plaudit_request_seconds_bucket", &labels, count as f64);
        }
        page.line("plaudit_request_seconds_bucket", &[("route", route), ("le", "+Inf")], times.count as f64);
        page.line("plaudit_request_seconds_sum", &[("route", route)], times.sum);
        page.line("plaudit_request_seconds_count", &[("route", route)], times.count as f64);
    }
    page.head("plaudit_rollouts_total", "counter", "Rollouts by recipe and outcome.");
    for ((recipe, outcome), count) in &counts.rollouts {
        page.line("plaudit_rollouts_total", &[("recipe", recipe), ("outcome", outcome)], *count as f64);
    }
    page.head("plaudit_reasons_total", "counter", "Why rollouts were not simply scored, by recipe.");
    for ((recipe, code), count) in &counts.reasons {
        page.line("plaudit_reasons_total", &[("recipe", recipe), ("code", code)], *count as f64);
    }
    drop(counts);
    judges(&mut page, &house.recipes.shared().tallies());
    gauges::put(&mut page, house);
    page.gauge("plaudit_connections", "Connections that are open.", house.peers.open() as f64);
    let turned = house.meters.turned_away.load(Ordering::Relaxed);
    page.head("plaudit_turned_away_total", "counter", "Connections for which there was no room.");
    page.line("plaudit_turned_away_total", &[], turned as f64);
    page.gauge("plaudit_rollouts_inside", "Rollouts that are being scored.", house.admission.inside() as f64);
    page.gauge("plaudit_body_bytes", "Bytes of requests that are held.", house.room.held() as f64);
    let joining = "Rollouts that wait for their groups.";
    page.gauge("plaudit_rollouts_joining", joining, house.joining.inside() as f64);
    let texts = "Bytes of rollouts that are being scored or wait for their groups.";
    page.gauge("plaudit_text_bytes", texts, house.texts.inside() as f64);
    page.gauge("plaudit_runs_live", "Runs that are being scored for.", house.live() as f64);
    page.gauge("plaudit_stuck", "What has been under way for over a minute.", house.watch.stuck() as f64);
    page.head("plaudit_jobs", "gauge", "Jobs by state.");
    for (state, count) in house.jobs.counts() {
        page.line("plaudit_jobs", &[("state", state)], count as f64);
    }
    page.gauge(
        "plaudit_up_seconds",
        "For how long the service has been up.",
        house.started.elapsed().as_secs_f64(),
    );
    page.0
}

fn judges(page: &mut Page, tallies: &[Tally]) {
    type Of = fn(&Tally) -> Option<f64>;
    let counters: [(&str, &str, Of); 6] = [
        ("plaudit_judge_calls_total", "Calls that were sent to a judge.", |tally| Some(tally.calls as f64)),
        ("plaudit_judge_cached_total", "Questions that the journal answered.", |tally| {
            Some(tally.cached as f64)
        }),
        ("plaudit_judge_retries_total", "Calls that were sent again.", |tally| Some(tally.retries as f64)),
        ("plaudit_judge_prompt_tokens_total", "Tokens read.", |tally| Some(tally.tokens.prompt as f64)),
        ("plaudit_judge_completion_tokens_total", "Tokens written.", |tally| {
            Some(tally.tokens.completion as f64)
        }),
        ("plaudit_judge_cost_total", "What calls have cost.", |tally| tally.cost),
    ];
    for (name, help, of) in counters {
        page.head(name, "counter", help);
        for tally in tallies {
            // What is not known, such as the cost without prices, is not said to be nothing.
            if let Some(value) = of(tally) {
                page.line(name, &[("judge", &tally.judge)], value);
            }
        }
    }
    page.head("plaudit_judge_failures_total", "counter", "Calls that failed, by cause.");
    for tally in tallies {
        for (code, count) in &tally.failures {
            let labels = [("judge", &*tally.judge), ("code", code.as_str())];
            page.line("plaudit_judge_failures_total", &labels, *count as f64);
        }
    }
    page.head("plaudit_judge_latency_seconds", "summary", "How long answers of a judge took.");
    for tally in tallies {
        for (name, q) in [("0.5", 0.5), ("0.9", 0.9), ("0.99", 0.99)] {
            if let Some(value) = tally.latency.quantile(q) {
                page.line(
                    "plaudit_judge_latency_seconds",
                    &[("judge", &tally.judge), ("quantile", name)],
                    value,
                );
            }
        }
        let moments = &tally.latency.moments;
        let sum = moments.mean * moments.count as f64;
        page.line("plaudit_judge_latency_seconds_sum", &[("judge", &tally.judge)], sum);
        page.line("plaudit_judge_latency_seconds_count", &[("judge", &tally.judge)], moments.count as f64);
    }
    page.head("plaudit_judge_limit", "gauge", "How many calls may be in flight now.");
    for tally in tallies {
        page.line("plaudit_judge_limit", &[("judge", &tally.judge)], tally.limit as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_end_itself() {
        let mut page = Page(String::new());
        page.line("x", &[("recipe", "a\"} evil 1\n")], 1.0);
        assert_eq!(page.0, "x{recipe=\"a\\\"} evil 1\\n\"} 1\n");
    }
}
