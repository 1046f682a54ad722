//! The judges' part of the summary: how they decided, and what the calls took.

use super::{counted, cut, many, percent, short, whole};
use crate::console::{Style, printable};
use plaudit::judge::client::JudgeUsage;
use plaudit::reason::Code;
use plaudit::rubric::{ItemCounts, ItemStats};
use plaudit::statistics::judging::{Judging, Share};

/// How a component's verdicts look: sides, ties, circles, the reference.
pub(super) fn verdicts(judging: &Judging) -> Vec<String> {
    let mut lines = Vec::new();
    let mut parts = vec![many(judging.0.verdicts, "verdict")];
    let mut add = |name: &str, share: Option<Share>| {
        if let Some(share) = share {
            parts.push(format!("{name} {}", percent(share.share)));
        }
    };
    add("ties", judging.ties());
    add("cycles", judging.cycles());
    add("swaps agree", judging.swap_agreement());
    if let Some(first) = judging.first() {
        parts.push(format!("first shown wins {} ({})", percent(first.share), interval(first)));
    }
    if let Some(signal) = judging.signal() {
        parts.push(format!("signal {}", short(signal)));
    }
    lines.push(parts.join(", "));
    if let (Some(win), Some(win_and)) = (judging.win_rate(), judging.win_and_rate()) {
        lines.push(format!(
            "beats the reference {} ({}), beats or ties {}",
            percent(win.share),
            interval(win),
            percent(win_and.share)
        ));
    }
    if judging.0.injections > 0 {
        let speak = if judging.0.injections == 1 { "speaks" } else { "speak" };
        lines.push(format!("{} {speak} to the judge", many(judging.0.injections, "response")));
    }
    lines
}

/// The most criteria that the table shows, and how much of each.
const MAX_CRITERIA: usize = 10;
const CRITERION: usize = 44;

/// A rubric's items together, and a row for each of the shared criteria that say least; none where there are no items.
pub(super) fn items(component: &str, items: &ItemStats, style: Style) -> Vec<String> {
    if items.all.asked == 0 {
        return Vec::new();
    }
    let line = |name: &str, cells: [String; 6]| {
        let cells = cells.map(|cell| format!(" {cell:>8}")).concat();
        format!("{:CRITERION$}{cells}", cut(&printable(name), CRITERION))
    };
    let row = |name: &str, found: &ItemCounts| {
        let share = |share: Option<f64>| share.map_or_else(String::new, percent);
        line(
            name,
            [
                whole(found.asked),
                share(found.met_share()),
                whole(found.not_applicable),
                whole(found.missing),
                found.discrimination().map_or_else(String::new, |r| format!("{r:+.2}")),
                share(found.saturation()),
            ],
        )
    };
    let shared = items.shared();
    let head = ["asked", "met", "n/a", "missing", "r rest", "all same"].map(str::to_owned);
    let mut lines = vec![style.dim(line(&format!("items of {component}"), head)), row("all", &items.all)];
    lines.extend(shared.iter().take(MAX_CRITERIA).map(|(name, found)| row(&format!("  {name}"), found)));
    if shared.len() > MAX_CRITERIA {
        let rest = shared.len() - MAX_CRITERIA;
        lines.push(style.dim(format!("  {} more, which tell responses apart better", whole(rest as u64))));
    }
    if items.others() > 0 {
        let others = many(items.others(), "question");
        lines.push(style.dim(format!(
            "  {others} about criteria beyond the first {}",
            whole(items.criteria.len() as u64)
        )));
    }
    lines
}

/// Why a judge is not asked in the best form, or not with every parameter, a line each.
pub(crate) fn learned(usage: &JudgeUsage) -> Vec<String> {
    let left = usage.formats.iter().filter(|choice| !choice.left.is_empty());
    let mut lines: Vec<String> = left.map(|choice| choice.text.clone()).collect();
    if !usage.left_out.is_empty() {
        lines.push(format!("asked without {}, which the endpoint refuses", usage.left_out.join(" and ")));
    }
    lines
}

/// What a judge was asked, how fast it was, and what went wrong.
pub(super) fn calls(usage: &JudgeUsage) -> Vec<String> {
    let asked = usage.calls + usage.cached + usage.shared;
    if asked == 0 {
        return Vec::new();
    }
    let mut parts = vec![many(usage.calls, "call")];
    let mut count = |count: u64, word: &str| {
        if count > 0 {
            parts.push(format!("{} {word}", whole(count)));
        }
    };
    count(usage.cached, "from the journal");
    count(usage.shared, "shared");
    count(usage.retries, if usage.retries == 1 { "retry" } else { "retries" });
    count(usage.hedges, "hedged");
    count(usage.maybe_paid, "without an answer that may have been paid");
    let seconds = |q: f64| usage.latency.quantile(q).map(|value| format!("{:.0} ms", value * 1000.0));
    if let (Some(p50), Some(p99)) = (seconds(0.5), seconds(0.99)) {
        parts.push(format!("p50 {p50}, p99 {p99}"));
    }
    let tokens = usage.tokens.prompt + usage.tokens.completion;
    if tokens > 0 {
        let cached = match usage.tokens.cached {
            0 => String::new(),
            cached => {
                let share = cached as f64 / usage.tokens.prompt.max(1) as f64;
                format!(" ({} of the prompts from the prefix cache)", percent(share))
            }
        };
        parts.push(format!("{} tokens{cached}", whole(tokens)));
    }
    if let Some(cost) = usage.cost {
        parts.push(format!("cost {}", short(cost)));
    }
    let mut lines = vec![parts.join(", ")];
    lines.extend(learned(usage));
    if usage.calls > 0 && usage.latency.moments.count == 0 && usage.failures.keys().all(is_silence) {
        lines.push("never answered: does it run, and is its base_url right?".to_owned());
    }
    if let Some((answer, wait)) = usage.journal_limit() {
        lines.push(format!(
            "the journal is the limit: an answer takes {:.1} ms, and {:.1} ms more until it is durable",
            answer * 1000.0,
            wait * 1000.0
        ));
    }
    let failed = usage.failures.iter().chain(&usage.unread).map(|(code, count)| (code.as_str(), *count));
    let failed = counted(failed);
    if !failed.is_empty() {
        lines.push(format!("failed on the way: {failed}"));
    }
    lines
}

/// Whether a call failed without a word of the judge: one that refuses is there.
fn is_silence(code: &Code) -> bool {
    matches!(
        code,
        Code::JudgeDns
            | Code::JudgeConnect
            | Code::JudgeProxy
            | Code::JudgeTls
            | Code::JudgeTimeout
            | Code::JudgeReset
            | Code::JudgeDeadline
            | Code::Stopped
    )
}

fn interval(share: Share) -> String {
    format!("{:.1} … {:.1}", 100.0 * share.low, 100.0 * share.high)
}
