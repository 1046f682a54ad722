//! The summary of a run: a table for the terminal, and the same as JSON.

mod judging;

pub(crate) use judging::learned;

use crate::console::{Style, printable};
use crate::error::CliError;
use crate::files::Output;
use crate::rewards::wrap;
use crate::stream::BadLines;
use plaudit::judge::client::JudgeUsage;
use plaudit::outcome::OutcomeKind;
use plaudit::reason::Code;
use plaudit::statistics::breakdown::{Breakdown, BreakdownPart};
use plaudit::statistics::distribution::Distribution;
use plaudit::statistics::{ComponentStatistics, ConstraintCounts, Counts, Statistics};
use serde_json::json;
use std::io::Write as _;

/// The longest name of a component that the table shows.
const MAX_NAME: usize = 16;
/// The most values of a field that the table shows.
const MAX_PARTS: usize = 12;
/// Above this share, groups without variance, or a correlation with length, deserve a look.
const WORRYING: f64 = 0.5;

/// What is known at the end of a run.
pub(crate) struct Summary<'r> {
    pub(crate) recipe: &'r str,
    pub(crate) statistics: &'r Statistics,
    /// What the judges were asked.
    pub(crate) judge_usage: &'r [JudgeUsage],
    /// The field and the statistics by it, where that was asked for.
    pub(crate) by: Option<(&'r str, &'r Breakdown)>,
    pub(crate) bad_lines: &'r BadLines,
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
}

impl Summary<'_> {
    fn rate(&self, count: u64) -> f64 {
        count as f64 / self.seconds.max(1e-9)
    }

    /// Writes the summary as JSON.
    pub(crate) fn write(&self, to: &mut Output) -> Result<(), CliError> {
        let mut value = json!({
            "recipe": self.recipe,
            "input": {
                "rollouts": self.statistics.rollouts,
                "lines": self.bad_lines.lines,
                "bad": self.bad_lines.by_code,
            },
            "statistics": self.statistics,
            "seconds": self.seconds,
            "rollouts_per_second": self.rate(self.statistics.rollouts),
        });
        if !self.judge_usage.is_empty() {
            value["judges"] = json!(self.judge_usage);
        }
        if let Some((field, breakdown)) = self.by {
            value["by"] = json!({ "field": field, "parts": breakdown.parts() });
        }
        writeln!(to, "{value:#}").map_err(|error| CliError::writing(to.name(), error))
    }
}

/// The summary for a person: at most 100 columns wide.
pub(crate) fn text(summary: &Summary<'_>, remark: Option<&str>, style: Style) -> String {
    let statistics = summary.statistics;
    let mut lines = vec![headline(summary, style), String::new()];
    lines.extend(table(statistics, style));
    lines.push(String::new());
    let mut note = |name: &str, text: String| lines.push(format!("{:<12}{text}", name));
    if let Some(text) = groups(statistics, style) {
        note("groups", text);
    }
    if let Some(text) = correctness(statistics) {
        note("correct", text);
    }
    if let Some(text) = length(statistics, style) {
        note("length", text);
    }
    if statistics.repetition.duplicates > 0 {
        let share = share(statistics.repetition.duplicates, statistics.rollouts);
        note("duplicates", format!("{} ({share})", whole(statistics.repetition.duplicates)));
    }
    if let Some(text) = statistics.reference_remark() {
        note("reference", text);
    }
    for (name, component) in &statistics.components {
        if !component.why.is_empty() {
            let all: u64 = component.why.values().sum();
            let shares = component.why.iter().map(|(why, count)| format!("{why} {}", share(*count, all)));
            note(&cut(&printable(name), 11), shares.collect::<Vec<_>>().join(", "));
        }
        if let Some(text) = constraints(component) {
            note(&cut(&printable(name), 11), text);
        }
        if let Some(judging) = &component.judging {
            judging::verdicts(judging).into_iter().for_each(|text| note(&cut(&printable(name), 11), text));
        }
    }
    for usage in summary.judge_usage {
        judging::calls(usage).into_iter().for_each(|text| note(&cut(&printable(&usage.judge), 11), text));
    }
    for kind in [OutcomeKind::Floored, OutcomeKind::Skipped, OutcomeKind::Invalid] {
        let components =
            statistics.components.iter().map(|(name, component)| (name.as_str(), &component.outcomes));
        for (name, outcomes) in std::iter::once(("total", &statistics.outcomes)).chain(components) {
            if let Some(text) = failed(name, outcomes, kind) {
                note(kind.as_str(), if kind == OutcomeKind::Invalid { style.red(text) } else { text });
            }
        }
    }
    if let Some(text) = remedy(&statistics.outcomes, summary.judge_usage) {
        note("what to do", text);
    }
    if summary.bad_lines.count > 0 {
        let codes = counted(summary.bad_lines.by_code.iter().map(|(code, count)| (*code, *count)));
        note("bad lines", style.red(format!("{}: {codes}", whole(summary.bad_lines.count))));
    }
    if let Some(remark) = remark {
        note("kept", remark.to_owned());
    }
    for (name, component) in &statistics.components {
        let items = component.judging.as_ref().map(|judging| judging::items(name, &judging.0.items, style));
        if let Some(items) = items.filter(|items| !items.is_empty()) {
            lines.push(String::new());
            lines.extend(items);
        }
    }
    if let Some((field, breakdown)) = summary.by {
        lines.push(String::new());
        lines.extend(by(field, &breakdown.parts(), style));
    }
    lines.join("\n")
}

/// How many kinds of constraints there are, and those that are followed least.
fn constraints(component: &ComponentStatistics) -> Option<String> {
    const SHOWN: usize = 3;
    let mut least: Vec<(&str, ConstraintCounts)> =
        component.constraints.iter().map(|(id, counts)| (*id, *counts)).collect();
    least.sort_by(|(_, left), (_, right)| left.share().total_cmp(&right.share()));
    let shown = least
        .iter()
        .take(SHOWN)
        .map(|(id, counts)| format!("{id} {}", share(counts.followed, counts.checked)));
    let shown = shown.collect::<Vec<_>>().join(", ");
    (!least.is_empty()).then(|| format!("{}, least followed {shown}", many(least.len() as u64, "constraint")))
}

/// One row a value of a field; of many, the last.
fn by(field: &str, parts: &[BreakdownPart<'_>], style: Style) -> Vec<String> {
    let shown = &parts[parts.len().saturating_sub(MAX_PARTS)..];
    let name = |text: &str| cut(&printable(text), 24);
    let names = shown.iter().map(|part| part.value).chain([field]).map(|text| name(text).chars().count());
    let width = names.max().unwrap_or(0);
    let row = |part: &BreakdownPart<'_>| {
        let total = &part.statistics.total;
        let figure = |figure: Option<f64>| figure.map_or_else(String::new, number);
        let mean = (total.moments.count > 0).then_some(total.moments.mean);
        let still = part.statistics.groups.zero_variance_share();
        format!(
            "{:width$}  {:>10}  {:>8}  {:>8}  {:>16}  {:>8}  {:>8}",
            name(part.value),
            whole(part.statistics.rollouts),
            figure(mean),
            figure(total.moments.std()),
            still.map_or_else(String::new, |share| format!("{:.1} %", 100.0 * share)),
            figure(part.statistics.length_correlation.r()),
            figure(part.drift)
        )
    };
    let head = format!(
        "{:width$}  {:>10}  {:>8}  {:>8}  {:>16}  {:>8}  {:>8}",
        name(field),
        "rollouts",
        "total",
        "std",
        "without variance",
        "r length",
        "drift"
    );
    std::iter::once(style.dim(head)).chain(shown.iter().map(row)).collect()
}

fn headline(summary: &Summary<'_>, style: Style) -> String {
    let statistics = summary.statistics;
    let rate = format!(
        "{:.2} s, {} rollouts/s, {:.1} MB/s",
        summary.seconds,
        whole(summary.rate(statistics.rollouts) as u64),
        summary.rate(summary.bytes) / 1e6
    );
    format!(
        "{}  {} in {}  {}",
        style.bold(cut(&printable(summary.recipe), 32)),
        many(statistics.rollouts, "rollout"),
        many(statistics.groups.count, "group"),
        style.dim(rate)
    )
}

/// One row for the total and one a component.
fn table(statistics: &Statistics, style: Style) -> Vec<String> {
    let names =
        statistics.components.iter().map(|(name, _)| format!("  {}", cut(&printable(name), MAX_NAME)));
    let names: Vec<String> = std::iter::once("total".to_owned()).chain(names).collect();
    let spreads = std::iter::once(&statistics.total)
        .chain(statistics.components.iter().map(|(_, component)| &component.values));
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let head = format!(
        "{:width$}  {:>8}  {:>8}  {:^10}  {:>8}  {:>8}  {:>8}  range",
        "", "mean", "std", "spread", "p05", "p50", "p95"
    );
    let rows = names.iter().zip(spreads).map(|(name, spread)| row(name, width, spread, style));
    std::iter::once(style.dim(head)).chain(rows).collect()
}

fn row(name: &str, width: usize, spread: &Distribution, style: Style) -> String {
    let padded = format!("{name:width$}");
    let quantile = |q: f64| spread.quantile(q).map_or_else(String::new, number);
    let Some(std) = spread.moments.std() else {
        return format!("{padded}  {}", style.dim("no values"));
    };
    format!(
        "{}  {:>8}  {:>8}  {}  {:>8}  {:>8}  {:>8}  {}",
        if name.starts_with(' ') { padded } else { style.bold(padded) },
        number(spread.moments.mean),
        number(std),
        style.blue(format!("{:10}", bars(spread))),
        quantile(0.05),
        quantile(0.5),
        quantile(0.95),
        style.dim(format!("{}…{}", short(spread.moments.min), short(spread.moments.max))),
    )
}

/// The histogram in ten letters; a value that occurs at all is seen.
fn bars(spread: &Distribution) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let Some(histogram) = spread.histogram() else { return String::new() };
    let counts: Vec<u64> = histogram.counts.chunks(2).map(|pair| pair.iter().sum()).collect();
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let letter = |count: &u64| match *count {
        0 => ' ',
        some => LEVELS[((some as f64 / most as f64 * 7.0).round() as usize).min(7)],
    };
    counts.iter().map(letter).collect()
}

fn groups(statistics: &Statistics, style: Style) -> Option<String> {
    let groups = &statistics.groups;
    let (smallest, largest) = (groups.size.moments.min, groups.size.moments.max);
    if groups.count == 0 || largest < 2.0 {
        return None;
    }
    let mut parts = vec![match smallest == largest {
        true => format!("of {}", short(smallest)),
        false => format!("of {} to {}", short(smallest), short(largest)),
    }];
    if let Some(flat) = groups.zero_variance_share() {
        let text = format!("{:.1} % without variance", flat * 100.0);
        parts.push(if flat > WORRYING { style.yellow(text) } else { text });
        parts.push(format!("std {} in the mean", short(groups.std.moments.mean)));
    }
    if groups.without_signal > 0 {
        parts.push(format!("{} with fewer than two totals", whole(groups.without_signal)));
    }
    if groups.split > 0 {
        parts.push(style.yellow(format!("{} came late", many(groups.split, "rollout"))));
    }
    Some(parts.join(", "))
}

/// How many answers are right, and what that makes of the groups.
fn correctness(statistics: &Statistics) -> Option<String> {
    let known = statistics.correctness.right + statistics.correctness.wrong;
    if known == 0 {
        return None;
    }
    let mut text = format!("{} of {}", share(statistics.correctness.right, known), whole(known));
    let groups = &statistics.groups;
    if groups.size.moments.max >= 2.0 {
        let [right, wrong, mixed] = [groups.all_right, groups.all_wrong, groups.mixed].map(whole);
        text += &format!("; groups: {right} all right, {wrong} all wrong, {mixed} mixed");
    }
    Some(text)
}

fn length(statistics: &Statistics, style: Style) -> Option<String> {
    let characters = &statistics.characters;
    let median = characters.quantile(0.5)?;
    let mut parts = vec![format!("{} in the median", many(median as u64, "character"))];
    let mut correlation = |r: Option<f64>, where_: &str| {
        if let Some(r) = r {
            let text = format!("r {r:+.2} {where_}");
            parts.push(if r.abs() > WORRYING { style.yellow(text) } else { text });
        }
    };
    correlation(statistics.length_correlation.r(), "with the total");
    correlation(statistics.length_correlation_in_groups.r(), "inside groups");
    Some(parts.join(", "))
}

/// How often the total or a component was of a kind that is not simply scored, and why.
fn failed(name: &str, outcomes: &Counts, kind: OutcomeKind) -> Option<String> {
    let count = outcomes.of(kind);
    let reasons = outcomes.reasons().filter(|(of, _, _)| *of == kind);
    let reasons = counted(reasons.map(|(_, code, count)| (code.as_str(), count)));
    let name = cut(&printable(name), MAX_NAME);
    (count > 0).then(|| format!("{name} {}: {reasons}", share(count, outcomes.all())))
}

/// What to do about the reason that most invalid rollouts have, or about the failures of calls that are behind it.
fn remedy(outcomes: &Counts, judge_usage: &[JudgeUsage]) -> Option<String> {
    let invalid = outcomes.reasons().filter(|(of, _, _)| *of == OutcomeKind::Invalid);
    let (_, code, _) = invalid.max_by_key(|(_, _, count)| *count)?;
    let code = behind(code, judge_usage);
    Some(wrap(&format!("{code}: {}", code.remedy()), 88).join(&format!("\n{:12}", "")))
}

/// The most frequent failure of calls, where a reason only follows from such failures.
pub(crate) fn behind(code: Code, judge_usage: &[JudgeUsage]) -> Code {
    let follows = matches!(code, Code::JudgeBreakerOpen | Code::JudgeDeadline | Code::JudgeNoVerdicts);
    let failures = judge_usage.iter().flat_map(|usage| usage.failures.iter().chain(&usage.unread));
    let before = failures.max_by_key(|(_, count)| **count).filter(|_| follows);
    before.map_or(code, |(code, _)| *code)
}

fn counted<'a>(reasons: impl Iterator<Item = (&'a str, u64)>) -> String {
    let all: Vec<String> = reasons.map(|(code, count)| format!("{code} {}", whole(count))).collect();
    all.join(", ")
}

fn share(part: u64, all: u64) -> String {
    percent(part as f64 / all.max(1) as f64)
}

/// A share in percent, with one digit.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

pub(crate) fn cut(text: &str, longest: usize) -> String {
    match text.chars().count() <= longest {
        true => text.to_owned(),
        false => text.chars().take(longest - 1).chain(['…']).collect(),
    }
}

/// A number in at most eight letters.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        // What is left of a difference that is 0, such as -3.5e-18.
        _ if size < 1e-12 => "0".to_owned(),
        _ if size == f64::INFINITY => if value > 0.0 { "∞" } else { "-∞" }.to_owned(),
        _ if !(1e-3..1e6).contains(&size) => format!("{value:.1e}"),
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        _ if size >= 1000.0 => format!("{value:.0}"),
        _ if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// A number for running text: without zeros at its end.
pub(crate) fn short(value: f64) -> String {
    let text = number(value);
    match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A number with its noun: `1 rollout`, `2 rollouts`.
pub(crate) fn many(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", whole(number), if number == 1 { "" } else { "s" })
}

/// A whole number with a comma after every three digits.
pub(crate) fn whole(value: u64) -> String {
    let digits = value.to_string();
    let comma = |(at, digit): (usize, char)| {
        let gap = at > 0 && (digits.len() - at).is_multiple_of(3);
        gap.then_some(',').into_iter().chain([digit])
    };
    digits.chars().enumerate().flat_map(comma).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            ["0", "-0.5000", "12.35", "-1234", "1.0e-4", "-∞"].map(str::to_owned),
            [0.0, -0.5, 12.345, -1234.4, 1e-4, f64::NEG_INFINITY].map(number)
        );
        assert_eq!([0.5, -12.5, 100.0, 1e-4].map(short), ["0.5", "-12.5", "100", "1.0e-4"]);
        assert_eq!([0.0, -3.5e-18, -0.0].map(number), ["0", "0", "0"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(whole), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0, 1, 1000].map(|number| many(number, "call")), ["0 calls", "1 call", "1,000 calls"]);
        assert_eq!(cut("abcdef", 4), "abc…");
    }

    #[test]
    fn rare_values_are_seen_in_the_bars() {
        let mut spread = Distribution::none();
        (0..10_000).for_each(|_| spread.observe(0.0));
        spread.observe(1.0);
        assert_eq!(bars(&spread), "█        ▁");
        assert_eq!(bars(&Distribution::none()), "");
    }
}
