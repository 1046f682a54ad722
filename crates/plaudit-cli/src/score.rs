//! `plaudit score`: scores rollouts, one result per rollout in input order.

use crate::error::CliError;
use crate::files::{Lines, ParquetWriter, refuse_format};
use crate::scoring::ScoringArgs;
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
    pub(crate) scoring: ScoringArgs,
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
        let out = self.scoring.out.as_deref();
        if self.format.is_none() {
            refuse_format(out, true)?;
        }
        let is_table = match self.format {
            None => out.is_some_and(|out| out.to_lowercase().ends_with(".parquet")),
            Some(format) => format == OutputFormat::Parquet,
        };
        let run = self.scoring.prepare()?;
        let output = self.scoring.output()?;
        match is_table {
            true => {
                let table = ParquetWriter::new(output, run.engine.plan())?;
                run.score_into(table)
            }
            false => run.score_into(Lines { output }),
        }
    }
}
