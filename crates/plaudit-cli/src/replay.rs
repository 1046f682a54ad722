//! `plaudit replay`: what did the last run give? Its results once more, from the journal alone.

use crate::failure::Failure;
use crate::files::{Lines, Output, Role, Source, refuse_format, refuse_overlap};
use crate::scoring::{Account, Run, writes};
use crate::state::State;
use clap::Args;
use plaudit::engine::Engine;
use plaudit::engine::EngineOptions;
use plaudit::input::Fields;
use plaudit::judge::client::Network;

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
    pub(crate) fn run(&self) -> Result<u8, Failure> {
        self.out.as_deref().map_or(Ok(()), |out| refuse_format(out, false))?;
        let kept = State::paths(&self.state);
        let reads: Vec<Role<'_>> = kept.iter().map(|file| ("a file of the state", &**file)).collect();
        refuse_overlap(&reads, &writes(self.out.as_deref(), self.summary.as_deref()))?;
        let state = State::existing(&self.state)?;
        let (kept, rollouts) = state.last()?;
        let journal = Some(state.journal.clone());
        let setup = EngineOptions { journal, network: Network::Replay, ..EngineOptions::default() };
        let engine = Engine::open(kept.plan()?, &setup)?;
        let source = Source::open(rollouts.path())?;
        let sink = Lines { output: Output::open(self.out.as_deref().unwrap_or("-"))? };
        let run = Run {
            engine: &engine,
            source,
            fields: Fields::own(),
            hold: kept.hold,
            by: None,
            copy: None,
            journal: Some(state.journal.clone()),
            parts: self.out.iter().chain(&self.summary).filter_map(|path| Output::part(path)).collect(),
            out: self.out.as_deref(),
        };
        let usage = Account { summary: self.summary.as_deref(), quiet: self.quiet };
        run.through(sink, &usage, |lines| {
            lines.output.finish()?;
            Ok(None)
        })
    }
}
