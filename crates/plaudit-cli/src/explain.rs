//! `plaudit explain`: how one total came about, with every component, every comparison and the judge's replies.

use crate::console::{Style, printable};
use crate::error::CliError;
use crate::files::Source;
use crate::imports::ImportArgs;
use crate::rewards::print;
use crate::state::State;
use crate::summary::short;
use clap::Args;
use plaudit::conversation::{Conversation, Role};
use plaudit::engine::{Engine, ScoreOptions};
use plaudit::group::Key;
use plaudit::input::Fields;
use plaudit::judge::runner::CallTranscript;
use plaudit::judge::{ItemAnswer, Reply, Side, Verdict};
use plaudit::outcome::{Outcome, OutcomeKind};
use plaudit::report::Report;
use plaudit::rollout::Rollout;
use serde_json::{Value, json};

/// How much of a turn is shown, in characters.
const MAX_TURN: usize = 400;

const EXAMPLES: &str = "\
Examples:
  plaudit explain r17 --state run/
  plaudit explain r17 --state run/ --full       # with every prompt and every reply
  plaudit explain r17 --state run/ --json";

/// Show how the total of one rollout of the last finished run came about
///
/// Everything is derived again from the state; no judge is asked.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    /// The rollout's id
    id: String,
    /// The state of the run: its folder, or redis://host:port/database
    #[arg(long, value_name = "STATE")]
    state: String,
    /// Show every prompt and every reply whole
    #[arg(long)]
    full: bool,
    /// As data
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) imports: ImportArgs,
}

impl Explain {
    pub(crate) fn run(&self) -> Result<u8, CliError> {
        let (_state, engine, _, saved) = State::replayed(&self.state)?;
        let rollouts = siblings(&saved.path, &self.id, &engine)?;
        let (report, exchanges) = engine.explain(&rollouts, &ScoreOptions::default())?;
        let at = rollouts.iter().position(|rollout| rollout.id.as_deref() == Some(&*self.id));
        let Some(at) = at else { return Err(missing(&self.id)) };
        let text = match self.json {
            true => format!("{:#}", explanation(&report, at, &rollouts, &exchanges, self.full)),
            false => {
                let mut text = self.text(&report, at, &rollouts, &of_rollout(&exchanges, at));
                let judge_usage = engine.judge_usage();
                let formats = judge_usage
                    .iter()
                    .flat_map(|usage| usage.formats.iter().map(move |format| (usage, format)));
                for (usage, format) in formats.filter(|(_, format)| self.full || !format.left.is_empty()) {
                    text.push_str(&format!("\n{}: {}", printable(&usage.judge), format.text));
                }
                text
            }
        };
        print(&text)
    }

    fn text(&self, report: &Report, at: usize, rollouts: &[Rollout<'_>], mine: &[&CallTranscript]) -> String {
        let style = Style::of_stdout();
        let row = &report.rows[at];
        let mut lines = Vec::new();
        let total = row.total.value().map_or_else(|| row.total.kind().as_str().to_owned(), short);
        lines.push(format!("{}  total {}", style.bold(printable(&self.id)), style.bold(total)));
        if let Some(cause) = row.total.cause() {
            lines.push(format!("{}: {}", cause.reason.code, printable(&cause.reason.message)));
            if row.total.kind() == OutcomeKind::Invalid {
                lines.push(style.dim(format!("what to do: {}", cause.reason.code.remedy())));
            }
        }
        if let Some(correct) = row.correct {
            lines.push(format!("the answer is {}", if correct { "right" } else { "wrong" }));
        }
        if let Some(conversation) = &rollouts[at].conversation {
            lines.extend(self.turns(conversation, row.turn_rewards(), style));
        }
        let Some(branch) = row.branch.map(|branch| &report.plan.branches[branch]) else {
            return lines.join("\n");
        };
        for ((component, part), outcome) in branch.components.iter().zip(&branch.parts).zip(&row.outcomes) {
            lines.push(String::new());
            lines.push(component_line(
                &component.name,
                &component.reward,
                part.weight,
                outcome.as_ref(),
                style,
            ));
            if let Some(reads) = component.reads.as_ref().filter(|_| rollouts[at].conversation.is_some()) {
                lines.push(style.dim(format!("    reads: {reads}")));
            }
            if let Some(info) = outcome.as_ref().and_then(Outcome::info) {
                for (name, fact) in info.iter() {
                    let fact = serde_json::to_value(fact).unwrap_or(Value::Null);
                    match item_lines(&fact) {
                        Some(items) => lines.extend(items),
                        None => lines.push(format!("    {name}: {}", printable(&shown_fact(&fact)))),
                    }
                }
            }
            for exchange in mine.iter().filter(|exchange| exchange.component == component.name) {
                lines.extend(self.exchange(exchange, rollouts, style));
            }
        }
        lines.join("\n")
    }

    /// The turns of a conversation, each with its reward where it has one; long texts are cut unless all is wanted.
    fn turns(
        &self,
        conversation: &Conversation,
        rewards: Option<&[Option<f64>]>,
        style: Style,
    ) -> Vec<String> {
        let mut rewards = rewards.into_iter().flatten();
        let shown = |text: &str| match text.char_indices().nth(MAX_TURN) {
            Some((end, _)) if !self.full => format!("{}…", &text[..end]),
            _ => text.to_owned(),
        };
        let mut lines = vec![String::new()];
        for turn in &conversation.turns {
            let own = turn.role == Role::Assistant;
            let reward = if own { rewards.next().copied().flatten() } else { None };
            let reward = reward.map_or_else(String::new, |reward| format!("  {}", short(reward)));
            lines.push(format!("  {}{}", style.dim(format!("[{}]", turn.role.as_str())), style.bold(reward)));
            let thought = turn.thought.iter().map(|thought| format!("(thought) {}", shown(thought)));
            let said = Some(&turn.text).filter(|text| !text.is_empty()).map(|text| shown(text));
            let calls = turn.calls.iter().map(|call| format!("calls {}", shown(&call.line())));
            let parts = thought.chain(said).chain(calls).collect::<Vec<_>>().join("\n");
            lines.extend(parts.lines().map(|line| format!("    {}", printable(line))));
        }
        lines
    }

    fn exchange(&self, exchange: &CallTranscript, rollouts: &[Rollout<'_>], style: Style) -> Vec<String> {
        let who = shown(exchange, rollouts).join(" against ");
        let mut lines = vec![format!("    {}: {}", printable(&who), printable(&verdict(exchange, rollouts)))];
        let reply = reply(exchange);
        if self.full {
            lines.push(style.dim(format!("      asked {} ({}):", exchange.judge, exchange.format.as_str())));
            lines.extend(exchange.prompt.lines().map(|line| format!("      | {}", printable(line))));
            lines.push(style.dim("      replied:"));
            lines.extend(
                reply.iter().flat_map(|text| text.lines()).map(|line| format!("      | {}", printable(line))),
            );
        } else if let Some(said) = reply.as_deref().map(str::trim).filter(|said| said.chars().count() > 2) {
            let cut: String = said.chars().take(160).collect();
            let more = if said.chars().count() > 160 { "…" } else { "" };
            lines.push(style.dim(format!("      {}{more}", printable(&cut))));
        }
        lines
    }
}

/// How the total of one rollout came about, as data: its result, and the judge calls that showed it. With `full`, every
/// prompt too. Rollouts have their ids.
pub fn explanation(
    report: &Report,
    at: usize,
    rollouts: &[Rollout<'_>],
    transcripts: &[CallTranscript],
    full: bool,
) -> Value {
    let exchange = |exchange: &&CallTranscript| {
        let mut value = json!({
            "component": exchange.component, "judge": exchange.judge, "shown": shown(exchange, rollouts),
            "labels": exchange.labels, "form": exchange.format, "attempts": exchange.attempts,
            "verdict": verdict(exchange, rollouts), "reply": reply(exchange),
        });
        if full {
            value["prompt"] = json!(exchange.prompt);
        }
        value
    };
    let id = rollouts[at].id.as_deref().unwrap_or("?");
    json!({
        "result": report.result(at, id, &rollouts[at]),
        "exchanges": of_rollout(transcripts, at).iter().map(exchange).collect::<Vec<_>>(),
    })
}

/// The judge calls that showed a rollout.
fn of_rollout(transcripts: &[CallTranscript], at: usize) -> Vec<&CallTranscript> {
    transcripts.iter().filter(|transcript| transcript.shown.contains(&Some(at))).collect()
}

fn component_line(name: &str, reward: &str, weight: f64, outcome: Option<&Outcome>, style: Style) -> String {
    let said = match outcome {
        None => "not asked: a gate is closed".to_owned(),
        Some(outcome) => match (outcome.value(), outcome.reason()) {
            (Some(value), None) => {
                format!("{} × weight {} = {}", short(value), short(weight), short(value * weight))
            }
            (value, Some(reason)) => format!(
                "{}{} ({}: {})",
                outcome.kind().as_str(),
                value.map_or_else(String::new, |value| format!(" at {}", short(value))),
                reason.code,
                printable(&reason.message)
            ),
            (None, None) => outcome.kind().as_str().to_owned(),
        },
    };
    format!("  {}  {}  {said}", style.bold(printable(name)), style.dim(reward))
}

/// The verdicts about the items of a rubric, a line each, with the judge's reason below.
fn item_lines(fact: &Value) -> Option<Vec<String>> {
    let items = fact.as_array().filter(|items| !items.is_empty())?;
    let line = |item: &Value| {
        let (criterion, weight) = (item.get("criterion")?.as_str()?, item.get("weight")?.as_f64()?);
        let verdict = item.get("verdict")?.as_str().unwrap_or("missing");
        let mut lines = vec![format!("    {:>7}  {weight:+}  {}", printable(verdict), printable(criterion))];
        let reason = item.get("reason").and_then(Value::as_str);
        lines.extend(reason.map(|reason| format!("             {}", printable(reason))));
        Some(lines)
    };
    items.iter().map(line).collect::<Option<Vec<_>>>().map(|lines| lines.concat())
}

/// A fact in words, its numbers with four digits.
fn shown_fact(fact: &Value) -> String {
    match fact {
        Value::Number(number) if number.is_f64() => number.as_f64().map_or_else(String::new, short),
        Value::Array(all) => format!("[{}]", all.iter().map(shown_fact).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// The names of those that a call showed, in order.
fn shown(exchange: &CallTranscript, rollouts: &[Rollout<'_>]) -> Vec<String> {
    let name = |member: &Option<usize>| match member {
        Some(at) => rollouts[*at].id.as_deref().unwrap_or("?").to_owned(),
        None => "the reference".to_owned(),
    };
    exchange.shown.iter().map(name).collect()
}

/// What the judge decided, in words.
fn verdict(exchange: &CallTranscript, rollouts: &[Rollout<'_>]) -> String {
    let names = shown(exchange, rollouts);
    match &exchange.verdict {
        Err(reason) => format!("{}: {}", reason.code, reason.message),
        Ok(Verdict::Score(score)) => format!("score {}", short(*score)),
        Ok(Verdict::Pair { winner, first }) => {
            let said = match winner {
                Some(Side::First) => format!("{} is better", names[0]),
                Some(Side::Second) => format!("{} is better", names[1]),
                None => "a tie".to_owned(),
            };
            first.map_or(said.clone(), |first| format!("{said} (first better with probability {first:.2})"))
        }
        Ok(Verdict::Ranking(order)) => {
            let ranked: Vec<&str> = order.iter().map(|place| names[*place].as_str()).collect();
            format!("ranked {}", ranked.join(" > "))
        }
        Ok(Verdict::Items(items)) => {
            let said = |(label, item): (&String, &Option<ItemAnswer>)| {
                format!("{label}: {}", item.as_ref().map_or("no verdict", |item| &item.said))
            };
            exchange.labels.iter().zip(items).map(said).collect::<Vec<_>>().join(", ")
        }
        Ok(Verdict::Text(text)) => text.clone(),
    }
}

/// The judge's own words.
fn reply(exchange: &CallTranscript) -> Option<String> {
    let body = exchange.reply.as_deref()?;
    match Reply::read(body) {
        Ok(reply) => Some(reply.content),
        Err(_) => Some(String::from_utf8_lossy(body).into_owned()),
    }
}

/// The rollout of that id with all of its group.
fn siblings(file: &str, id: &str, engine: &Engine) -> Result<Vec<Rollout<'static>>, CliError> {
    let all = |keep: &mut dyn FnMut(Rollout<'static>)| -> Result<(), CliError> {
        for block in Source::open(file)?.read_ahead(engine.pool(), Fields::own())? {
            for entry in block?.parsed.recv().into_iter().flat_map(|parsed| parsed.entries) {
                entry.rollouts.into_iter().flat_map(|parsed| parsed.rollouts).for_each(&mut *keep);
            }
        }
        Ok(())
    };
    let mut found: Option<Rollout<'static>> = None;
    all(&mut |rollout| {
        if rollout.id.as_deref() == Some(id) {
            found = Some(rollout);
        }
    })?;
    let Some(found) = found else { return Err(missing(id)) };
    let key = Key::of(&found).map(Key::into_owned);
    let mut group = Vec::new();
    match &key {
        None => group.push(found),
        Some(key) => all(&mut |rollout| {
            if Key::of(&rollout).is_some_and(|other| other == *key) {
                group.push(rollout);
            }
        })?,
    }
    Ok(group)
}

fn missing(id: &str) -> CliError {
    CliError::Arguments(format!("the last run has no rollout {id:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_rounded_and_texts_stay() {
        let facts = json!([0.08985650663036855, 3, 0.03500000000000003, -1e-18, 1.0, "a\"b", null, [0.5, 2]]);
        assert_eq!(shown_fact(&facts), "[0.0899, 3, 0.035, 0, 1, \"a\\\"b\", null, [0.5, 2]]");
    }
}
