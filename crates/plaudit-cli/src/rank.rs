//! `plaudit rank`: keeps the best rollouts of each group.

use crate::error::CliError;
use crate::files::{Output, line, refuse_format};
use crate::scoring::ScoringArgs;
use crate::stream::{Renderer, Sink};
use crate::summary::{many, whole};
use clap::Args;
use plaudit::group::{self, Group};
use plaudit::report::{Report, RowResult};
use plaudit::rollout::Rollout;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use std::io::Write as _;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  plaudit rank rollouts.jsonl --keep 1 --out best.jsonl
  plaudit rank rollouts.parquet --keep 4 --recipe my.yaml > top4.jsonl";

/// Keep the best rollouts of each group (best of n)
///
/// Groups come in the order of their first rollout, the best rollout first; rollouts with equal totals keep their
/// order. Each line is the result with its rank, prompt, response, reference and extra. A rollout without a number
/// is never kept.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Rank {
    /// How many rollouts of each group are kept
    #[arg(long, short, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    keep: u64,
    #[command(flatten)]
    pub(crate) scoring: ScoringArgs,
}

impl Rank {
    pub(crate) fn run(&self) -> Result<u8, CliError> {
        refuse_format(self.scoring.out.as_deref(), false)?;
        let run = self.scoring.prepare()?;
        let keep = usize::try_from(self.keep).unwrap_or(usize::MAX);
        run.score_into(Best { output: self.scoring.output()?, keep, kept: 0, without: 0 })
    }
}

/// The best rollouts of each group, as JSON lines.
struct Best {
    output: Output,
    keep: usize,
    kept: u64,
    without: u64,
}

/// What a rollout adds to the output: all of its group where it is the first, else nothing.
struct Piece {
    lines: Vec<u8>,
    kept: u64,
    /// Whether it is the first of a group in which no rollout has a number.
    without: bool,
}

impl Piece {
    /// The lines of one group, of which so many rollouts are kept.
    fn new(
        (keep, name): (usize, &str),
        group: &Group,
        rollouts: &[Rollout<'_>],
        report: &Report,
    ) -> Result<Self, CliError> {
        let total = |place: usize| report.rows[place].total.value().map(|value| (place, value));
        let mut ranked: Vec<(usize, f64)> = group.members.iter().filter_map(|place| total(*place)).collect();
        // The sort keeps the order of equals, which is that of the input.
        ranked.sort_by(|(_, left), (_, right)| right.total_cmp(left));
        let without = ranked.is_empty();
        ranked.truncate(keep);
        let mut lines = Vec::new();
        for (at, (place, _)) in ranked.iter().enumerate() {
            let rollout = &rollouts[*place];
            let result = report.result(*place, rollout.id.as_deref().unwrap_or(""), rollout);
            lines.extend(line(&Ranked { result, rank: at + 1, rollout }, name)?);
        }
        Ok(Self { lines, kept: ranked.len() as u64, without })
    }
}

impl Sink for Best {
    type Piece = Piece;

    fn renderer(&self) -> Renderer<Piece> {
        let (keep, name) = (self.keep, self.output.name().to_owned());
        Arc::new(move |rollouts, report| {
            let nothing = || Piece { lines: Vec::new(), kept: 0, without: false };
            let mut pieces: Vec<Piece> = rollouts.iter().map(|_| nothing()).collect();
            for group in group::gather(rollouts) {
                pieces[group.members[0]] = Piece::new((keep, &name), &group, rollouts, report)?;
            }
            Ok(pieces)
        })
    }

    fn bytes(piece: &Piece) -> usize {
        piece.lines.len()
    }

    fn write(&mut self, piece: Piece) -> Result<(), CliError> {
        self.kept += piece.kept;
        self.without += u64::from(piece.without);
        self.output.write_all(&piece.lines).map_err(|error| CliError::writing(self.output.name(), error))
    }

    fn finish(self) -> Result<Option<String>, CliError> {
        let without = match self.without {
            0 => String::new(),
            1 => ", 1 group keeps none because no rollout has a number".to_owned(),
            some => format!(", {} groups keep none because no rollout has a number", whole(some)),
        };
        self.output.finish()?;
        Ok(Some(format!("{} kept{without}", many(self.kept, "rollout"))))
    }
}

/// A result with its rank and the rollout itself.
struct Ranked<'r> {
    result: RowResult<'r>,
    rank: usize,
    rollout: &'r Rollout<'r>,
}

impl Serialize for Ranked<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        self.result.entries(&mut map)?;
        map.serialize_entry("rank", &self.rank)?;
        if let Some(prompt) = &self.rollout.prompt {
            map.serialize_entry("prompt", &prompt.to_value())?;
        }
        map.serialize_entry("response", &self.rollout.response)?;
        if let Some(reference) = &self.rollout.reference {
            map.serialize_entry("reference", &reference.to_value())?;
        }
        if let Some(tokens) = self.rollout.tokens {
            map.serialize_entry("tokens", &tokens)?;
        }
        if !self.rollout.extra.is_empty() {
            map.serialize_entry("extra", &self.rollout.extra)?;
        }
        map.end()
    }
}
