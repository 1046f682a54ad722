//! `plaudit replay`: rebuilds the results of the last run from its journal.

use crate::console::Console;
use crate::error::CliError;
use crate::files::{Lines, Output, Role, Source, refuse_format, refuse_overlap};
use crate::imports::ImportArgs;
use crate::interrupt::Interrupt;
use crate::scoring::{Run, writes};
use crate::state::State;
use crate::stream::{Renderer, Sink, Stream};
use clap::Args;
use plaudit::abort::AbortAfter;
use plaudit::input::Fields;
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
    #[command(flatten)]
    pub(crate) imports: ImportArgs,
}

impl Replay {
    pub(crate) fn run(&self) -> Result<u8, CliError> {
        refuse_format(self.out.as_deref(), false)?;
        let manifest = State::paths(&self.state);
        let reads: Vec<Role<'_>> = manifest.iter().map(|file| ("a file of the state", &**file)).collect();
        refuse_overlap(&reads, &writes(self.out.as_deref(), self.summary.as_deref()))?;
        let (state, engine, hold, rollouts) = State::replayed(&self.state)?;
        let source = Source::open(&rollouts.path)?;
        let sink = Lines { output: Output::open(self.out.as_deref().unwrap_or("-"))? };
        let run = Run {
            engine,
            state: Some(state),
            manifest: None,
            source,
            fields: Fields::own(),
            hold,
            // What was asked for is shown, whatever it is.
            abort_after: AbortAfter::Never,
            by: None,
            out: self.out.as_deref(),
            summary: self.summary.as_deref(),
            quiet: self.quiet,
        };
        run.score_into(sink)
    }
}

/// The results of the last finished run of a state, each as a line of JSON; or a code and a message. For the Python package.
pub fn replay(state: &str) -> Result<Vec<String>, (&'static str, String)> {
    collect(state).map_err(|error| (error.code(), error.to_string()))
}

fn collect(state: &str) -> Result<Vec<String>, CliError> {
    let (_state, engine, hold, rollouts) = State::replayed(state)?;
    let (console, interrupt) = (Console::errors(), Arc::new(Interrupt::default()));
    let mut collected = Collected(Vec::new());
    Stream::new(&engine, &mut collected, &console, hold, &interrupt)
        .run(Source::open(&rollouts.path)?, Fields::own())?;
    // A thread of the pool may still be letting go of the engine, and with it of the journal, which the caller may open next.
    while Arc::strong_count(&engine) > 1 {
        std::thread::yield_now();
    }
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
