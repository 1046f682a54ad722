//! `plaudit score`: scores rollouts, one result per rollout in input order.

use crate::error::CliError;
use crate::files::{Lines, Output, ParquetWriter};
use crate::scoring::{Prepared, ScoringArgs};
use clap::{Args, ValueEnum};

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
    scoring: ScoringArgs,
    /// The format of the results [default: by the name of --out, else jsonl]
    #[arg(long, value_enum)]
    format: Option<OutputFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    Jsonl,
    Parquet,
}

impl Score {
    pub(crate) fn run(&self) -> Result<u8, CliError> {
        let named = self.scoring.out().is_some_and(|out| out.to_lowercase().ends_with(".parquet"));
        if self.format.is_none() {
            self.scoring.refuse_format(true)?;
        }
        let prepared = self.scoring.prepare()?;
        let output = self.scoring.output()?;
        match self.format {
            Some(OutputFormat::Parquet) => self.table(prepared, output),
            None if named => self.table(prepared, output),
            _ => self.scoring.run(prepared, Lines { output }, |lines| {
                lines.output.finish()?;
                Ok(None)
            }),
        }
    }

    fn table(&self, prepared: Prepared, output: Output) -> Result<u8, CliError> {
        let table = ParquetWriter::new(output, prepared.engine.plan())?;
        self.scoring.run(prepared, table, |table| {
            table.finish()?.finish()?;
            Ok(None)
        })
    }
}
