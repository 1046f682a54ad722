//! Input and output files: rollouts from JSON lines or Parquet, results as JSON lines or Parquet.

mod jsonl_reader;
mod jsonl_writer;
mod other_formats;
mod output;
mod overlap;
mod parquet_reader;
mod parquet_writer;

pub(crate) use jsonl_writer::{Lines, line};
pub(crate) use output::Output;
pub(crate) use overlap::{Role, refuse_format, refuse_overlap};
pub(crate) use parquet_writer::ParquetWriter;

use crate::console::Console;
use crate::error::CliError;
use plaudit::exec::Pool;
use plaudit::group::Key;
use plaudit::input::{Fields, InputError, Rollouts};
use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel, sync_channel};
use std::time::Duration;

/// How long a pipe may have no writer before that is said.
const SILENCE: Duration = Duration::from_secs(1);

/// One line of a file, or one row of a table.
pub(crate) struct Entry {
    /// Its number, from 1.
    pub(crate) number: u64,
    /// What it holds, or what is wrong with it.
    pub(crate) rollouts: Result<Parsed, InputError>,
}

/// The rollouts of one line, with a name each, and the hash of their group.
pub(crate) struct Parsed {
    pub(crate) rollouts: Rollouts,
    pub(crate) group: Option<u64>,
    /// The hash of each rollout's id.
    pub(crate) ids: Vec<u64>,
}

impl Parsed {
    fn new(mut rollouts: Rollouts, noun: &str, number: u64) -> Self {
        rollouts.name(|| format!("{noun}-{number}"));
        let group = Key::of(rollouts.shared()).as_ref().map(Key::hash);
        let ids = rollouts.ids().map(|id| rapidhash::v3::rapidhash_v3(id.as_bytes())).collect();
        Self { rollouts, group, ids }
    }
}

/// A part of the input that has been read and not yet parsed.
pub(crate) enum Block {
    Lines(jsonl_reader::LineBlock),
    Rows(parquet_reader::RowBlock),
}

/// The lines or rows of a block.
pub(crate) struct ParsedBlock {
    pub(crate) entries: Vec<Entry>,
    /// What is to be said of the input. The same may be said of several blocks.
    pub(crate) warnings: Vec<String>,
}

impl Block {
    pub(crate) fn parse(self, fields: &Fields) -> ParsedBlock {
        match self {
            Self::Lines(lines) => ParsedBlock {
                entries: lines.parse(fields),
                warnings: lines.warning.iter().map(|warning| (*warning).to_owned()).collect(),
            },
            Self::Rows(rows) => {
                let (entries, left_out) = rows.parse(fields);
                let warning = |name: String| {
                    format!("the column {name:?} holds bytes that are not text; they are left out")
                };
                ParsedBlock { entries, warnings: left_out.into_iter().map(warning).collect() }
            }
        }
    }
}

/// A block that is being parsed.
pub(crate) struct ReadBlock {
    pub(crate) parsed: Receiver<ParsedBlock>,
    /// How many bytes, and how many lines or rows, had been read with it.
    pub(crate) position: u64,
    pub(crate) lines: u64,
}

/// What stdin is called.
const STDIN: &str = "stdin";

fn stdin() -> Source {
    // Where stdin is a file, others may have read some of it before.
    let left = || -> io::Result<Option<u64>> {
        let mut file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let about = file.metadata()?;
        match about.is_file() {
            true => Ok(Some(about.len().saturating_sub(file.stream_position()?))),
            false => Ok(None),
        }
    };
    Source::lines(STDIN, io::stdin(), left().ok().flatten())
}

/// Opens a file. Opening a pipe waits for somebody who writes into it, and that is said when it takes long.
fn open(path: &str) -> io::Result<File> {
    let is_pipe = std::fs::metadata(path).is_ok_and(|about| about.file_type().is_fifo());
    if !is_pipe {
        return File::open(path);
    }
    std::thread::scope(|scope| {
        let (opened, waiting) = channel::<()>();
        scope.spawn(move || {
            if waiting.recv_timeout(SILENCE) == Err(RecvTimeoutError::Timeout) {
                Console::errors().warning(&format!("waiting for a writer to open the pipe {path:?}"));
            }
        });
        let file = File::open(path);
        drop(opened);
        file
    })
}

/// Reads one format.
trait Reader: Send {
    /// The next lines or rows, or nothing at the end.
    fn next(&mut self) -> Result<Option<Block>, CliError>;

    /// About how many bytes have been read, and how many lines or rows.
    fn progress(&self) -> (u64, u64);
}

/// An open input.
pub(crate) struct Source {
    /// What it is called in messages.
    pub(crate) label: String,
    /// What one entry is called.
    pub(crate) noun: &'static str,
    /// How many bytes there are, where that is known.
    pub(crate) length: Option<u64>,
    reader: Box<dyn Reader>,
}

impl Source {
    /// Opens a path, or stdin for `-`. The format is recognised by its first bytes, not by its name.
    pub(crate) fn open(path: &str) -> Result<Self, CliError> {
        let failure = |error: io::Error| CliError::File(path.to_owned(), error);
        if path == "-" {
            return Ok(stdin());
        }
        let mut file = open(path).map_err(failure)?;
        let about = file.metadata().map_err(failure)?;
        if about.is_dir() {
            return Err(CliError::Arguments(format!("{path:?} is a folder; a file of rollouts is wanted")));
        }
        if !about.is_file() {
            return Ok(Self::lines(path, file, None));
        }
        let mut start = Vec::with_capacity(4);
        (&mut file).take(4).read_to_end(&mut start).map_err(failure)?;
        file.rewind().map_err(failure)?;
        if start == parquet_reader::MAGIC {
            let rows = parquet_reader::Rows::open(path, file, about.len())?;
            return Ok(Self::new(path, parquet_reader::NOUN, Some(about.len()), rows));
        }
        if path.ends_with(".parquet") {
            let error = InputError::new("input.parquet", "the file does not start as Parquet files do");
            return Err(CliError::Input(path.to_owned(), error));
        }
        Ok(Self::lines(path, file, Some(about.len())))
    }

    fn new(name: &str, noun: &'static str, length: Option<u64>, reader: impl Reader + 'static) -> Self {
        let label = if name == STDIN { name.to_owned() } else { format!("{name:?}") };
        Self { label, noun, length, reader: Box::new(reader) }
    }

    /// Lines, up to the length that a file has now: one that grows meanwhile is not followed.
    fn lines(name: &str, from: impl Read + Send + 'static, length: Option<u64>) -> Self {
        let from = from.take(length.unwrap_or(u64::MAX));
        let reader = jsonl_reader::LineReader::new(name.to_owned(), from);
        Self::new(name, jsonl_reader::NOUN, length, reader)
    }

    /// Reads on a thread of its own and parses on those of a pool, a few blocks ahead. Blocks come in the order of the input.
    /// The thread ends at the end of the input, at an error, or when nobody receives any more; it is not waited for,
    /// because a pipe may stay silent for ever.
    pub(crate) fn read_ahead(
        mut self,
        pool: &Arc<Pool>,
        fields: Fields,
    ) -> Result<Receiver<Result<ReadBlock, CliError>>, CliError> {
        let name = self.label.clone();
        let (pool, fields) = (Arc::clone(pool), Arc::new(fields));
        let (send, receive) = sync_channel(pool.threads() + 2);
        let read = move || {
            loop {
                let block = match self.reader.next() {
                    Ok(Some(block)) => block,
                    Ok(None) => return,
                    Err(error) => return drop(send.send(Err(error))),
                };
                let (done, parsed) = sync_channel(1);
                let fields = Arc::clone(&fields);
                pool.spawn(move || drop(done.send(block.parse(&fields))));
                let (position, lines) = self.reader.progress();
                let read = ReadBlock { parsed, position, lines };
                if send.send(Ok(read)).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("plaudit-read".to_owned()).spawn(read);
        thread.map(|_| receive).map_err(|error| CliError::File(name, error))
    }
}
