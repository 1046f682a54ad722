//! `plaudit plan`: estimates calls, tokens and cost before a run.

use crate::console::{Console, Style, printable};
use crate::error::CliError;
use crate::files::Source;
use crate::interrupt::Interrupt;
use crate::rewards::{print, wrap};
use crate::scoring::{HOLD, RecipeArgs, pair};
use crate::state::State;
use crate::stream::{Renderer, Sink, Stream};
use crate::summary::{many, short, whole};
use clap::Args;
use plaudit::engine::{Engine, EngineOptions};
use plaudit::journal::Store;
use plaudit::judge::runner::{CostEstimate, OversizedGroup};
use plaudit::plan::Scorer;
use plaudit::record::Network;
use serde_json::json;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  plaudit plan rollouts.jsonl --recipe tutorial
  plaudit plan rollouts.jsonl --recipe tutorial --state run/        # less what the journal answers
  plaudit plan rollouts.jsonl --recipe tutorial --set components.principle.mode=listwise --set components.principle.line_up=4";

/// Count the calls, tokens and cost of a run without asking anything
///
/// Rules are run, because gates decide who is judged; no connection is opened. Tokens are estimated as bytes / 4.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Plan {
    /// The rollouts: a file of JSON lines or Parquet, or - for JSON lines from stdin
    rollouts: String,
    #[command(flatten)]
    pub(crate) recipe: RecipeArgs,
    /// Read a field from another name, such as prompt=question
    #[arg(long = "field", value_name = "FIELD=NAME", value_parser = pair)]
    fields: Vec<(String, String)>,
    /// Count what this journal answers as paid
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// As data
    #[arg(long)]
    json: bool,
}

/// Takes results and forgets them.
struct Nowhere;

impl Sink for Nowhere {
    type Piece = ();

    fn renderer(&self) -> Renderer<()> {
        Arc::new(|rollouts, _| Ok(vec![(); rollouts.len()]))
    }

    fn bytes((): &()) -> usize {
        0
    }

    fn write(&mut self, (): ()) -> Result<(), CliError> {
        Ok(())
    }
}

impl Plan {
    pub(crate) fn run(&self) -> Result<u8, CliError> {
        // A run that has not begun has paid for nothing, and a plan makes no folder.
        self.state.as_deref().map_or(Ok(()), Store::check)?;
        let begun = self.state.as_deref().filter(|place| State::may_exist(place));
        let state = begun.map(State::existing).transpose()?;
        let journal = state.as_ref().map(|state| state.journal.clone());
        let setup =
            EngineOptions { journal, network: Network::Replay, dry: true, ..EngineOptions::default() };
        let engine = Arc::new(Engine::open(self.recipe.recipe()?.plan()?, &setup)?);
        let fields = crate::scoring::fields(&self.fields, false)?;
        let (console, interrupt) = (Console::errors(), Arc::new(Interrupt::default()));
        let done = Stream::new(&engine, &mut Nowhere, &console, HOLD, &interrupt)
            .run(Source::open(&self.rollouts)?, fields)?;
        let estimates = engine.estimates();
        engine.plan().warnings.iter().for_each(|warning| console.warning(&printable(&warning.to_string())));
        let text = match self.json {
            true => format!("{:#}", json!({ "rollouts": done.statistics.rollouts, "components": estimates })),
            false => table(&estimates, &engine, (done.statistics.rollouts, done.statistics.groups.count)),
        };
        print(&text)
    }
}

/// That groups are larger than an aggregate takes.
fn too_large(one: &CostEstimate, large: &OversizedGroup) -> String {
    let OversizedGroup { method, limit, groups, group, size } = large;
    let others = match groups {
        0 | 1 => String::new(),
        2 => ", and so has another group".to_owned(),
        _ => format!(", and so have {} other groups", whole(groups - 1)),
    };
    format!(
        "warning: {}: group {:?} has {size} different responses, more than the {limit} that {method} takes{others}. They \
         would be invalid (group.too_large), and no judge would be asked about them. Make the groups smaller, or choose another \
         aggregate.",
        printable(&one.component),
        group,
    )
}

/// What the judge may write, beside the short verdicts that the estimate is for.
fn worst_case(one: &CostEstimate, engine: &Engine) -> Option<String> {
    let judge = engine.plan().judges.iter().find(|judge| judge.name == one.judge)?;
    let (component, judge_name) = (printable(&one.component), printable(&one.judge));
    let Some(most) = one.completion_tokens_max else {
        return Some(format!(
            "{component}: nothing limits the replies of {judge_name}, whose max_tokens is null"
        ));
    };
    if most <= one.completion_tokens {
        return None;
    }
    let tokens = judge.config.max_tokens.map_or_else(String::new, |tokens| whole(tokens.into()));
    let cost = one.cost_max.map_or_else(String::new, |cost| format!(", and the cost {}", short(cost)));
    Some(format!(
        "{component}: the estimate is for short verdicts. max_tokens of {judge_name} allows {tokens} a reply: at worst the reply \
         tokens are {}{cost}",
        whole(most)
    ))
}

/// Whether every judged component hides thoughts from its judge.
fn hides_thoughts(engine: &Engine) -> bool {
    let components = engine.plan().branches.iter().flat_map(|branch| &branch.components);
    let mut judged = components.filter_map(|component| match &component.scorer {
        Scorer::Judged(reward) => Some(reward.params.show_thought),
        _ => None,
    });
    judged.all(|shown| !shown)
}

fn table(estimates: &[CostEstimate], engine: &Engine, (rollouts, groups): (u64, u64)) -> String {
    let style = Style::of_stdout();
    let mut lines = vec![format!("{} in {}", many(rollouts, "rollout"), many(groups, "group"))];
    if estimates.is_empty() {
        lines.push("no judge would be asked".to_owned());
        return lines.join("\n");
    }
    lines.push(String::new());
    let head = ["component", "judge", "calls", "known", "prompt tokens", "reply tokens", "cost"];
    let row = |one: &CostEstimate| {
        let most = if one.exact { "" } else { "≤ " };
        let cost = one.cost.map_or_else(|| "no price".to_owned(), |cost| format!("{most}{}", short(cost)));
        [
            printable(&one.component),
            printable(&one.judge),
            format!("{most}{}", whole(one.calls)),
            whole(one.known),
            format!("{most}{}", whole(one.prompt_tokens)),
            format!("{most}{}", whole(one.completion_tokens)),
            cost,
        ]
    };
    let rows: Vec<[String; 7]> = estimates.iter().map(row).collect();
    let width = |at: usize| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        cells.chain([head[at].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let cell = |(at, cell): (usize, &&str)| {
            let gap = " ".repeat(widths[at].saturating_sub(cell.chars().count()));
            if at < 2 { format!("{cell}{gap}") } else { format!("{gap}{cell}") }
        };
        cells.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ")
    };
    lines.push(style.dim(line(head.to_vec())));
    lines.extend(rows.iter().map(|row| line(row.iter().map(String::as_str).collect())));
    for (one, large) in estimates.iter().filter_map(|one| Some((one, one.too_large.as_ref()?))) {
        lines.push(String::new());
        lines.push(style.yellow(too_large(one, large)));
    }
    if estimates.iter().any(|one| one.duplicates > 0) {
        let duplicates = estimates.iter().map(|one| one.duplicates).max().unwrap_or(0);
        lines.push(String::new());
        let repeats = if duplicates == 1 { "repeats" } else { "repeat" };
        let bare = if hides_thoughts(engine) { ", once their thought is taken away," } else { "" };
        lines.push(format!(
            "{} {repeats} another of their group{bare} and {} judged with it",
            many(duplicates, "rollout"),
            if duplicates == 1 { "is" } else { "are" }
        ));
    }
    let worst: Vec<String> = estimates.iter().filter_map(|one| worst_case(one, engine)).collect();
    if !worst.is_empty() {
        lines.push(String::new());
        lines.extend(worst.iter().flat_map(|text| wrap(text, 100)));
    }
    lines.join("\n")
}
