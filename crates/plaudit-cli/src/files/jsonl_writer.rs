//! JSON lines writer: a line for each result.

use super::Output;
use crate::error::CliError;
use crate::stream::{Renderer, Sink};
use plaudit::rollout::Rollout;
use serde::Serialize;
use std::io::{self, Write as _};
use std::sync::Arc;

/// Results as JSON lines.
pub(crate) struct Lines {
    pub(crate) output: Output,
}

impl Sink for Lines {
    type Piece = Vec<u8>;

    fn renderer(&self) -> Renderer<Vec<u8>> {
        let name = self.output.name().to_owned();
        Arc::new(move |rollouts, report| {
            let line = |(at, rollout): (usize, &Rollout<'_>)| {
                line(&report.result(at, rollout.id.as_deref().unwrap_or(""), rollout), &name)
            };
            rollouts.iter().enumerate().map(line).collect()
        })
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
