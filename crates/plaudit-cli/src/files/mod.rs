//! Where do rollouts come from and results go? Files and pipes, as JSON lines or as Parquet.

mod jsonl;
mod lines;
mod output;
mod rows;
mod table;

pub(crate) use lines::{Lines, in_chunks, line};
pub(crate) use output::Output;
pub(crate) use table::Table;

use crate::failure::Failure;
use crate::talk::Talk;
use plaudit::group::Key;
use plaudit::input::{Fields, InputError, Rollouts};
use plaudit::schedule::Pool;
use std::fs::File;
use std::io::{self, Read, Seek as _};

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
}

impl Parsed {
    fn new(mut rollouts: Rollouts, noun: &str, number: u64) -> Self {
        rollouts.name(|| format!("{noun}-{number}"));
        let group = Key::of(rollouts.shared()).as_ref().map(Key::hash);
        Self { rollouts, group }
    }
}

/// An open input.
pub(crate) enum Source {
    /// JSON lines.
    Lines(jsonl::Reader<Box<dyn Read>>),
    /// Parquet.
    Rows(rows::Rows),
}

impl Source {
    /// Opens a path, or stdin for `-`. What a file holds is told by its first bytes, not by its name.
    pub(crate) fn open(path: &str) -> Result<Self, Failure> {
        let failure = |error: io::Error| Failure::File(path.to_owned(), error);
        if path == "-" {
            return Ok(Self::Lines(jsonl::Reader::new("stdin".to_owned(), Box::new(io::stdin()), None)));
        }
        let mut file = File::open(path).map_err(failure)?;
        let about = file.metadata().map_err(failure)?;
        if about.is_dir() {
            return Err(Failure::Arguments(format!("{path:?} is a folder; a file of rollouts is wanted")));
        }
        if about.is_file() {
            let mut start = Vec::with_capacity(4);
            (&mut file).take(4).read_to_end(&mut start).map_err(failure)?;
            file.rewind().map_err(failure)?;
            if start == rows::MAGIC {
                return Ok(Self::Rows(rows::Rows::open(path, file, about.len())?));
            }
            if path.ends_with(".parquet") {
                let error = InputError::new("input.parquet", "the file does not start as Parquet files do");
                return Err(Failure::Input(path.to_owned(), error));
            }
        }
        let length = about.is_file().then_some(about.len());
        Ok(Self::Lines(jsonl::Reader::new(path.to_owned(), Box::new(file), length)))
    }

    /// The next lines or rows, or nothing at the end.
    pub(crate) fn next(
        &mut self,
        pool: &Pool,
        fields: &Fields,
        talk: &Talk,
    ) -> Result<Option<Vec<Entry>>, Failure> {
        match self {
            Self::Lines(lines) => lines.next(pool, fields, talk),
            Self::Rows(rows) => rows.next(fields),
        }
    }

    /// What one entry is called.
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Self::Lines(_) => jsonl::NOUN,
            Self::Rows(_) => rows::NOUN,
        }
    }

    /// How many bytes have been read, about.
    pub(crate) fn position(&self) -> u64 {
        match self {
            Self::Lines(lines) => lines.position(),
            Self::Rows(rows) => rows.position(),
        }
    }

    /// How many bytes there are, where that is known.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            Self::Lines(lines) => lines.length(),
            Self::Rows(rows) => Some(rows.length()),
        }
    }

    /// How many lines or rows have been read.
    pub(crate) fn lines(&self) -> u64 {
        match self {
            Self::Lines(lines) => lines.lines(),
            Self::Rows(rows) => rows.lines(),
        }
    }
}
