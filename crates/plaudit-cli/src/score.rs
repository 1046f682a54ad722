//! `plaudit score`: what number does each rollout get?

use crate::failure::Failure;
use crate::files::{Lines, Table};
use crate::scoring::Scoring;
use crate::state::State;
use clap::{Args, ValueEnum};
use plaudit::engine::Engine;

const EXAMPLES: &str = "\
Examples:
  plaudit score rollouts.jsonl --out rewards.jsonl --summary summary.json
  plaudit score rollouts.parquet --recipe my.yaml --out rewards.parquet
  plaudit score gsm8k.jsonl --field prompt=question --field reference=answer
  zcat rollouts.jsonl.gz | plaudit score - --set components.length.weight=0.5 > rewards.jsonl";

/// Score rollouts: one result a rollout, in input order
///
/// Results go to stdout or to --out; errors and the summary go to stderr. A line that cannot be read is one error
/// with its number; the others are scored.
///
/// Memory does not grow with the input. A group is complete when no member has come for --hold rollouts, or when
/// 64 MiB of text wait and it has waited longest; a member that comes later is invalid where the recipe compares
/// groups. An id that was used before is an error; at least the last 900,000 ids and groups are remembered.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Score {
    #[command(flatten)]
    scoring: Scoring,
    /// The format of the results [default: by the name of --out, else jsonl]
    #[arg(long, value_enum)]
    format: Option<Format>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Jsonl,
    Parquet,
}

impl Score {
    pub(crate) fn run(&self) -> Result<u8, Failure> {
        let engine = self.scoring.engine()?;
        let named = self.scoring.out().is_some_and(|out| out.ends_with(".parquet"));
        let output = self.scoring.output()?;
        let plan = engine.0.plan();
        match self.format {
            Some(Format::Parquet) => self.table(Table::new(output, plan)?, &engine),
            None if named => self.table(Table::new(output, plan)?, &engine),
            _ => self.scoring.run(&engine, Lines { output }, |lines| {
                lines.output.finish()?;
                Ok(None)
            }),
        }
    }

    fn table(&self, table: Table, engine: &(Engine, Option<State>)) -> Result<u8, Failure> {
        self.scoring.run(engine, table, |table| {
            table.finish()?.finish()?;
            Ok(None)
        })
    }
}
