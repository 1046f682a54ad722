//! `plaudit replay`: rebuilds the results of the last run from its journal.

use crate::console::Console;
use crate::error::CliError;
use crate::files::{Lines, Output, Role, Source, refuse_format, refuse_overlap};
use crate::interrupt::Interrupt;
use crate::scoring::{Run, SummaryArgs, writes};
use crate::state::State;
use crate::stream::{Renderer, Sink, Stream};
use clap::Args;
use plaudit::engine::Engine;
use plaudit::engine::EngineOptions;
use plaudit::input::Fields;
use plaudit::judge::client::Network;
use plaudit::rollout::Rollout;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  plaudit replay --state run/ --out again.jsonl
  plaudit replay --state run/ | diff - rewards.jsonl";

/// Rebuild the results of the last finished run from its state, without a network
///
/// Every number comes from the journal: nothing is asked and nothing is paid. A judgment that the journal does not hold
/// makes its rollout invalid (judge.not_recorded).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Replay {
    /// The state of the run: its folder, or redis://host:port/database
    #[arg(long, value_name = "STATE")]
    state: String,
    /// Where results go [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    out: Option<String>,
    /// Write the summary as JSON
    #[arg(long, value_name = "FILE")]
    summary: Option<String>,
    /// Tell only errors: no summary, no progress bar
    #[arg(long, short)]
    quiet: bool,
}

impl Replay {
    pub(crate) fn run(&self) -> Result<u8, CliError> {
        self.out.as_deref().map_or(Ok(()), |out| refuse_format(out, false))?;
        let manifest = State::paths(&self.state);
        let reads: Vec<Role<'_>> = manifest.iter().map(|file| ("a file of the state", &**file)).collect();
        refuse_overlap(&reads, &writes(self.out.as_deref(), self.summary.as_deref()))?;
        let state = State::existing(&self.state)?;
        let (manifest, rollouts) = state.last()?;
        let journal = Some(state.journal.clone());
        let setup = EngineOptions { journal, network: Network::Replay, ..EngineOptions::default() };
        let engine = Arc::new(Engine::open(manifest.plan()?, &setup)?);
        let source = Source::open(rollouts.path())?;
        let sink = Lines { output: Output::open(self.out.as_deref().unwrap_or("-"))? };
        let run = Run {
            engine: &engine,
            source,
            fields: Fields::own(),
            hold: manifest.hold,
            by: None,
            copy: None,
            journal: Some(state.journal.clone()),
            parts: self.out.iter().chain(&self.summary).filter_map(|path| Output::part(path)).collect(),
            out: self.out.as_deref(),
        };
        let summary_args = SummaryArgs { summary: self.summary.as_deref(), quiet: self.quiet };
        run.through(sink, &summary_args, |lines| {
            lines.output.finish()?;
            Ok(None)
        })
    }
}

/// The results of the last finished run of a state, each as a line of JSON; or a code and a message. For the Python package.
pub fn replay(state: &str) -> Result<Vec<String>, (&'static str, String)> {
    collect(state).map_err(|error| (error.code(), error.to_string()))
}

fn collect(state: &str) -> Result<Vec<String>, CliError> {
    let state = State::existing(state)?;
    let (run, rollouts) = state.last()?;
    let journal = Some(state.journal.clone());
    let setup = EngineOptions { journal, network: Network::Replay, ..EngineOptions::default() };
    let engine = Arc::new(Engine::open(run.plan()?, &setup)?);
    let (console, interrupt) = (Console::errors(), Arc::new(Interrupt::default()));
    let mut collected = Collected(Vec::new());
    Stream::new(&engine, &mut collected, &console, run.hold, &interrupt)
        .run(Source::open(rollouts.path())?, Fields::own())?;
    Ok(collected.0)
}

/// Results in memory.
struct Collected(Vec<String>);

impl Sink for Collected {
    type Piece = String;

    fn renderer(&self) -> Renderer<String> {
        Arc::new(|rollouts, report| {
            let text = |(at, rollout): (usize, &Rollout<'_>)| {
                let result = report.result(at, rollout.id.as_deref().unwrap_or(""), rollout);
                serde_json::to_string(&result).map_err(|error| CliError::Arguments(error.to_string()))
            };
            rollouts.iter().enumerate().map(text).collect()
        })
    }

    fn bytes(piece: &String) -> usize {
        piece.len()
    }

    fn write(&mut self, piece: String) -> Result<(), CliError> {
        self.0.push(piece);
        Ok(())
    }
}
