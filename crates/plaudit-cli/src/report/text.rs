//! Renders a run of the service as text of 100 columns: alarms, a line per step, and the last steps in detail.

use crate::console::{Style, printable};
use crate::rewards::wrap;
use crate::summary::{cut, many, number, percent, short, whole};
use plaudit_serve::runs::store::RunSummary;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How many steps have a line, the newest ones.
const LINES: usize = 40;
/// How many steps are shown in detail.
const DETAILED: usize = 4;
/// How wide everything is, the names of rows, and the cells.
const WIDTH: usize = 100;
const NAME: usize = 24;
const CELL: usize = 16;
/// How many tags of a rubric have a row.
const TAGS: usize = 12;
/// How many earlier steps of an alarm are named.
const EARLIER: usize = 6;

/// All of it.
pub(super) fn text(about: &RunSummary, steps: &[Value], style: Style) -> String {
    let mut lines = vec![format!(
        "{}  recipe {}  {}, {} in {}",
        style.bold(printable(&about.name)),
        printable(&about.recipe),
        many(about.steps, "step"),
        many(about.rollouts, "rollout"),
        many(about.groups, "group")
    )];
    if steps.is_empty() {
        return lines.remove(0);
    }
    lines.extend(alarms(steps, style));
    lines.push(String::new());
    lines.extend(totals(&steps[steps.len().saturating_sub(LINES)..], style));
    let mut table = StepTable { steps: &steps[steps.len().saturating_sub(DETAILED)..], lines, style };
    table.components(about);
    table.signal();
    table.outcomes();
    table.verdicts(about);
    table.judges();
    table.lines.join("\n")
}

/// A line for each kind of alarm: the newest in words, and at which steps it was before.
fn alarms(steps: &[Value], style: Style) -> Vec<String> {
    let mut kinds: BTreeMap<&str, Vec<(u64, &str)>> = BTreeMap::new();
    for alarm in steps.iter().flat_map(|step| step["alarms"].as_array().into_iter().flatten()) {
        let (code, message) = (alarm["code"].as_str().unwrap_or(""), alarm["message"].as_str().unwrap_or(""));
        kinds.entry(code).or_default().push((alarm["step"].as_u64().unwrap_or(0), message));
    }
    let mut lines = Vec::new();
    for (code, mut found) in kinds {
        let Some((step, message)) = found.pop() else { continue };
        let earlier: BTreeSet<u64> = found.iter().map(|(step, _)| *step).filter(|one| *one != step).collect();
        let named: Vec<String> = earlier.iter().rev().take(EARLIER).map(u64::to_string).collect();
        let more = match (earlier.len(), earlier.len().saturating_sub(EARLIER)) {
            (0, _) => String::new(),
            (1, _) => format!(" Also at step {}.", named.join(", ")),
            (_, 0) => format!(" Also at steps {}.", named.join(", ")),
            (_, more) => format!(" Also at steps {} and {more} more.", named.join(", ")),
        };
        let text =
            format!("! {}, step {step}: {}{more}", printable(code).replace('_', " "), printable(message));
        lines.extend(wrap(&text, WIDTH).into_iter().map(|line| style.yellow(line)));
    }
    lines
}

/// A line a step.
fn totals(steps: &[Value], style: Style) -> Vec<String> {
    let widest = steps.iter().map(|step| step["step"].to_string().len()).max().unwrap_or(0).max(6);
    let line = |cells: [String; 10]| {
        let widths = [widest, 8, 8, 8, 8, 8, 8, 7, 7, 7];
        let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}"));
        cells.collect::<Vec<_>>().join("  ")
    };
    let names = ["step", "rollouts", "mean", "std", "p05", "median", "p95", "equal", "invalid", "floored"];
    let mut lines = vec![style.dim(line(names.map(str::to_owned)))];
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for step in steps {
        let statistics = &step["statistics"];
        let (total, rollouts) = (&statistics["total"], statistics["rollouts"].as_u64().unwrap_or(0));
        let of = |kind: &str| {
            let part = statistics["outcomes"][kind].as_f64()?;
            (rollouts > 0).then(|| percent(part / rollouts as f64))
        };
        let figure = |value: &Value| or_dash(value.as_f64().map(number));
        let quantile = |name: &str| figure(&total["quantiles"][name]);
        lines.push(line([
            step["step"].to_string(),
            whole(rollouts),
            figure(&total["mean"]),
            figure(&total["std"]),
            quantile("p05"),
            quantile("p50"),
            quantile("p95"),
            or_dash(statistics["groups"]["zero_variance_share"].as_f64().map(percent)),
            or_dash(of("invalid")),
            or_dash(of("floored")),
        ]));
    }
    lines
}

/// The last steps side by side. A row that no step has a value for is left out, and so is a part without rows.
struct StepTable<'s> {
    steps: &'s [Value],
    lines: Vec<String>,
    style: Style,
}

impl StepTable<'_> {
    fn part(&mut self, name: &str, fill: impl FnOnce(&mut Self)) {
        let before = self.lines.len();
        let mut head = format!("{name:NAME$}");
        for step in self.steps {
            let (long, bare) = (format!("step {}", step["step"]), step["step"].to_string());
            head += &format!("  {:>CELL$}", if long.len() > CELL { bare } else { long });
        }
        self.lines.extend([String::new(), self.style.dim(head)]);
        fill(self);
        if self.lines.len() == before + 2 {
            self.lines.truncate(before);
        }
    }

    /// A name over rows that are set in, where any of them is filled.
    fn under(&mut self, name: &str, fill: impl FnOnce(&mut Self)) {
        let before = self.lines.len();
        self.lines.push(cut(&printable(name), NAME));
        fill(self);
        if self.lines.len() == before + 1 {
            self.lines.truncate(before);
        }
    }

    fn row(&mut self, name: &str, cell: impl Fn(&Value) -> Option<String>) {
        let cells: Vec<Option<String>> = self.steps.iter().map(cell).collect();
        if cells.iter().all(Option::is_none) {
            return;
        }
        let mut line = format!("{:NAME$}", cut(&printable(name), NAME));
        for cell in &cells {
            line += &format!("  {:>CELL$}", cell.as_deref().unwrap_or("-"));
        }
        self.lines.push(line);
    }

    fn components(&mut self, about: &RunSummary) {
        let names = names(about, self.steps);
        self.part("mean ± std", |table| {
            table.row("total", |step| spread(&step["statistics"]["total"]));
            for name in &names {
                table.row(&format!("  {name}"), |step| spread(&component(step, name)["values"]));
            }
        });
    }

    fn signal(&mut self) {
        self.part("signal", |table| {
            table.row("std inside groups", |step| {
                step["statistics"]["groups"]["std"]["mean"].as_f64().map(number)
            });
            let r = |value: &Value| value.as_f64().map(|r| format!("{r:+.2}"));
            table.row("reward and length, r", |step| r(&step["statistics"]["length_correlation"]));
            table.row("  inside groups", |step| r(&step["statistics"]["length_correlation_in_groups"]));
            for (name, unit) in [("tokens, median", "tokens"), ("characters, median", "characters")] {
                table.row(name, |step| step["statistics"][unit]["quantiles"]["p50"].as_f64().map(short));
            }
        });
    }

    fn outcomes(&mut self) {
        self.part("invalid and floored", |table| {
            for kind in ["invalid", "floored"] {
                let reasons = |step: &Value| step["statistics"]["outcomes"]["reasons"][kind].clone();
                let codes: BTreeSet<String> = table
                    .steps
                    .iter()
                    .flat_map(|step| {
                        reasons(step).as_object().map_or_else(Vec::new, |map| map.keys().cloned().collect())
                    })
                    .collect();
                table.under(kind, |table| {
                    for code in codes {
                        table.row(&format!("  {code}"), |step| {
                            let (count, all) =
                                (reasons(step)[&code].as_u64()?, step["statistics"]["rollouts"].as_f64()?);
                            Some(format!("{} ({})", percent(count as f64 / all.max(1.0)), whole(count)))
                        });
                    }
                });
            }
        });
    }

    fn verdicts(&mut self, about: &RunSummary) {
        let names = names(about, self.steps);
        self.part("verdicts", |table| {
            for name in &names {
                let judging = |step: &Value, field: &str| component(step, name)["judging"][field].clone();
                table.under(name, |table| {
                    for (row, field) in [
                        ("  beats the reference", "win_rate"),
                        ("  first shown wins", "first"),
                        ("  same when swapped", "swap_agreement"),
                        ("  ties", "ties"),
                        ("  cycles", "cycles"),
                    ] {
                        table.row(row, |step| interval(&judging(step, field)));
                    }
                    let items = |step: &Value| judging(step, "items");
                    let all = |step: &Value, field: &str| items(step)["all"][field].as_f64();
                    table.row("  items met", |step| all(step, "met_share").map(percent));
                    let tags = |step: &Value| -> Vec<String> {
                        let tags = &items(step)["tags"];
                        tags.as_object().map_or_else(Vec::new, |tags| tags.keys().cloned().collect())
                    };
                    let tags: BTreeSet<String> = table.steps.iter().flat_map(tags).collect();
                    for tag in tags.iter().take(TAGS) {
                        table.row(&format!("    {tag}"), |step| {
                            items(step)["tags"][tag]["met_share"].as_f64().map(percent)
                        });
                    }
                    table.row("  items missing", |step| {
                        Some(percent(all(step, "missing")? / all(step, "asked")?))
                    });
                    table.row("  failed", |step| {
                        let failed: u64 =
                            judging(step, "failed").as_object()?.values().filter_map(Value::as_u64).sum();
                        (failed > 0).then(|| whole(failed))
                    });
                });
            }
        });
    }

    fn judges(&mut self) {
        let of = |step: &Value, name: &str| {
            let mut all = step["judges"].as_array().into_iter().flatten();
            all.find(|judge| judge["judge"] == name).cloned().unwrap_or(Value::Null)
        };
        let all = self.steps.iter().flat_map(|step| step["judges"].as_array().into_iter().flatten());
        let names: BTreeSet<String> =
            all.filter_map(|judge| Some(judge["judge"].as_str()?.to_owned())).collect();
        self.part("judges", |table| {
            for name in names {
                table.under(&name, |table| {
                    let count = |value: &Value| value.as_u64().filter(|count| *count > 0);
                    table.row("  calls", |step| count(&of(step, &name)["calls"]).map(whole));
                    table.row("  from the cache", |step| {
                        let judge = of(step, &name);
                        Some(percent(judge["cached"].as_f64()? / count(&judge["asked"])? as f64))
                    });
                    table.row("  without an answer", |step| count(&of(step, &name)["failed"]).map(whole));
                    for (row, quantile) in [("  latency p50", "p50"), ("  latency p99", "p99")] {
                        table.row(row, |step| {
                            of(step, &name)["latency"]["quantiles"][quantile].as_f64().map(seconds)
                        });
                    }
                    table.row("  cost", |step| {
                        let judge = of(step, &name);
                        count(&judge["asked"]).and(judge["cost"].as_f64()).map(short)
                    });
                });
            }
        });
    }
}

/// The components that a run has, those of its recipe first and in its order.
fn names(about: &RunSummary, steps: &[Value]) -> Vec<String> {
    let written = about.components.as_array().into_iter().flatten();
    let written = written.filter_map(|component| Some(component["name"].as_str()?.to_owned()));
    let found = steps.iter().filter_map(|step| step["statistics"]["components"].as_object());
    let mut names: Vec<String> = Vec::new();
    for name in written.chain(found.flat_map(|map| map.keys().cloned())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn component<'s>(step: &'s Value, name: &str) -> &'s Value {
    &step["statistics"]["components"][name]
}

fn spread(values: &Value) -> Option<String> {
    Some(format!("{} ±{}", number(values["mean"].as_f64()?), short(values["std"].as_f64()?)))
}

fn interval(share: &Value) -> Option<String> {
    let at = |name: &str| share[name].as_f64().map(|share| 100.0 * share);
    Some(format!("{:.0} % ({:.0} … {:.0})", at("share")?, at("low")?, at("high")?))
}

fn seconds(value: f64) -> String {
    match value {
        value if value < 1e-3 => format!("{:.0} µs", value * 1e6),
        value if value < 1.0 => format!("{:.0} ms", value * 1e3),
        value => format!("{value:.2} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn step(step: u64, alarmed: bool) -> Value {
        let share = json!({ "share": 1.0, "low": 0.984, "high": 1.0, "of": 64 });
        let spread = json!({ "count": 64, "mean": -1e-10, "std": 1e-10, "quantiles": { "p05": -0.5 } });
        let counts = json!({ "asked": 80, "missing": 8, "met_share": 0.75 });
        let items = json!({ "all": counts, "tags": { "axis:accuracy": counts } });
        let message = "Inside groups, longer responses get more reward (r = 0.71): check for length hacking.";
        let alarm = json!({ "code": "length_hacking", "step": step, "value": 0.7, "message": message });
        json!({
            "step": step,
            "statistics": {
                "rollouts": 64, "total": spread, "groups": { "zero_variance_share": 0.25 },
                "outcomes": { "invalid": 8, "floored": 0, "reasons": { "invalid": { "judge.timeout": 8 } } },
                "components": { "a-component-of-a-very-long-name": { "values": spread, "judging": { "first": share, "win_rate": share, "failed": { "judge.timeout": 8 }, "items": items } } },
            },
            "judges": [{ "judge": "main", "asked": 80, "cached": 20, "calls": 60, "failed": 8, "latency": { "quantiles": { "p50": 0.0204, "p99": 1.5 } }, "cost": null }],
            "alarms": if alarmed { json!([alarm]) } else { json!([]) },
        })
    }

    fn about() -> RunSummary {
        serde_json::from_value(json!({
            "id": "i", "name": "n\u{1b}[2J", "owner": "o", "recipe": "r", "started": 0.0, "seen": 0.0, "steps": 9, "rollouts": 576,
            "groups": 9, "total_mean": null, "invalid_share": null, "alarms": [], "fingerprint": "", "judges": [],
        }))
        .unwrap()
    }

    #[test]
    fn everything_is_said_in_a_hundred_columns() {
        let last = 1_700_000_000_999;
        let steps: Vec<Value> = (last - 8..=last).map(|at| step(at, true)).collect();
        let shown = text(&about(), &steps, Style::of(false));
        for line in shown.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        for words in [
            "9 steps, 576 rollouts",
            "! length hacking, step 1700000000999: Inside groups",
            "and 2 more.",
            "  judge.timeout",
            "12.5 % (8)",
            "100 % (98 … 100)",
            "  items missing                     10.0 %",
            "    axis:accuracy",
            "75.0 %",
            "  from the cache",
            "25.0 %",
            "20 ms",
        ] {
            assert!(shown.contains(words), "{words}\n{shown}");
        }
        assert!(!shown.contains("cost") && !shown.contains("floored\n  ") && !shown.contains('\u{1b}'));
    }

    #[test]
    fn a_run_without_steps_is_one_line() {
        assert_eq!(text(&about(), &[], Style::of(false)).lines().count(), 1);
        assert!(!text(&about(), &[step(3, false)], Style::of(false)).contains('!'));
    }
}
