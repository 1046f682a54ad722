//! JSON lines writer: results are rendered in parallel and written in input order.

use super::Output;
use crate::error::CliError;
use crate::stream::Sink;
use plaudit::exec::Pool;
use plaudit::report::Report;
use plaudit::rollout::Rollout;
use serde::Serialize;
use std::io::{self, Write as _};
use std::ops::Range;

/// How many results one thread renders at once.
const CHUNK: usize = 64;

/// Results as JSON lines.
pub(crate) struct Lines {
    pub(crate) output: Output,
}

impl Sink for Lines {
    type Piece = Vec<u8>;

    fn render(
        &self,
        pool: &Pool,
        rollouts: &[Rollout<'_>],
        report: &Report,
    ) -> Result<Vec<Vec<u8>>, CliError> {
        let line = |at: usize| {
            let rollout = &rollouts[at];
            line(&report.result(at, rollout.id.as_deref().unwrap_or(""), rollout), self.output.name())
        };
        in_chunks(pool, rollouts.len(), line)
    }

    fn bytes(piece: &Vec<u8>) -> usize {
        piece.len()
    }

    fn write(&mut self, piece: Vec<u8>) -> Result<(), CliError> {
        self.output.write_all(&piece).map_err(|error| CliError::writing(self.output.name(), error))
    }

    fn finish(self) -> Result<Option<String>, CliError> {
        self.output.finish().map(|()| None)
    }
}

/// A value as a line of JSON.
pub(crate) fn line(value: &impl Serialize, name: &str) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::with_capacity(256);
    serde_json::to_writer(&mut bytes, value)
        .map_err(|error| CliError::File(name.to_owned(), io::Error::other(error)))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// What `work` makes of each number below `count`, a few at a time on each thread.
pub(crate) fn in_chunks<T: Send>(
    pool: &Pool,
    count: usize,
    work: impl Fn(usize) -> Result<T, CliError> + Sync + Send,
) -> Result<Vec<T>, CliError> {
    let chunks: Vec<Range<usize>> =
        (0..count).step_by(CHUNK).map(|start| start..(start + CHUNK).min(count)).collect();
    let done = pool.map(&chunks, |chunk| chunk.clone().map(&work).collect::<Result<Vec<T>, CliError>>());
    let mut all = Vec::with_capacity(count);
    for chunk in done {
        all.extend(chunk?);
    }
    Ok(all)
}
