//! Parquet reader: each row becomes the object that a JSON line would hold.

use super::{Block, Entry, Parsed, Reader};
use crate::error::CliError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};
use plaudit::input::{self, Fields, InputError, MAX_LINE};
use serde_json::{Map, Number, Value};
use std::collections::BTreeSet;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What an entry is called.
pub(crate) const NOUN: &str = "row";
/// How a Parquet file starts.
pub(crate) const MAGIC: &[u8] = b"PAR1";
/// How many rows, and how much text, are handed on at once.
const BLOCK: (usize, usize) = (1024, 2 << 20);
/// How many values of a column are decoded at once.
const DECODED: usize = 64;

/// The rows of a table.
pub(crate) struct Rows {
    name: String,
    rows: RowIter<'static>,
    bytes: u64,
    /// How many rows the file says that it has.
    total: u64,
    read: u64,
}

impl Reader for Rows {
    fn next(&mut self) -> Result<Option<Block>, CliError> {
        let (mut rows, mut weight, first) = (Vec::new(), 0, self.read + 1);
        while rows.len() < BLOCK.0 && weight < BLOCK.1 {
            // The decoder must not take the run down, whatever a hostile file holds.
            let row = match catch_unwind(AssertUnwindSafe(|| self.rows.next())) {
                Ok(None) => break,
                Ok(Some(Ok(row))) => row,
                Ok(Some(Err(error))) => return Err(self.broken(&error.to_string())),
                Err(_) => return Err(self.broken("the Parquet file is broken")),
            };
            self.read += 1;
            weight += row.get_column_iter().map(|(_, field)| text_bytes(field)).sum::<usize>();
            rows.push(row);
        }
        Ok((!rows.is_empty()).then_some(Block::Rows(RowBlock { first, rows })))
    }

    /// Bytes by the share of the rows.
    fn progress(&self) -> (u64, u64) {
        let share = self.read as f64 / self.total.max(1) as f64;
        ((self.bytes as f64 * share.min(1.0)) as u64, self.read)
    }
}

impl Rows {
    pub(crate) fn open(name: &str, file: File, bytes: u64) -> Result<Self, CliError> {
        let refuse =
            |message: String| CliError::Input(name.to_owned(), InputError::new("input.parquet", message));
        let reader = catch_unwind(AssertUnwindSafe(|| SerializedFileReader::new(file)))
            .map_err(|_| refuse("the Parquet file is broken".to_owned()))?
            .map_err(|error| refuse(error.to_string()))?;
        let total = u64::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or(0);
        let rows = RowIter::from_file_into(Box::new(reader)).with_batch_size(DECODED);
        Ok(Self { name: name.to_owned(), rows, bytes, total, read: 0 })
    }

    fn broken(&self, message: &str) -> CliError {
        let message = format!("row {}: {message}", self.read + 1);
        CliError::Input(self.name.clone(), InputError::new("input.parquet", message))
    }
}

/// How many bytes of text a value holds.
fn text_bytes(field: &Field) -> usize {
    match field {
        Field::Str(text) => text.len(),
        Field::Bytes(bytes) => bytes.len(),
        Field::Group(row) => row.get_column_iter().map(|(_, field)| text_bytes(field)).sum(),
        Field::ListInternal(list) => list.elements().iter().map(text_bytes).sum(),
        Field::MapInternal(map) => {
            map.entries().iter().map(|(key, field)| text_bytes(key) + text_bytes(field)).sum()
        }
        _ => 0,
    }
}

/// Rows that have been decoded and not yet read as rollouts.
pub(crate) struct RowBlock {
    /// The number of the first.
    first: u64,
    rows: Vec<Row>,
}

impl RowBlock {
    /// An entry for each row, and the columns of which bytes were left out.
    pub(crate) fn parse(self, fields: &Fields) -> (Vec<Entry>, BTreeSet<String>) {
        let mut left_out = BTreeSet::new();
        let entries = (self.first..).zip(self.rows).map(|(number, row)| {
            let rollouts = input::guarded(|| {
                let mut weight = 0;
                let map = columns(row, fields, &mut weight, &mut left_out);
                if weight > MAX_LINE { Err(too_long()) } else { input::read_map(map?, fields) }
            });
            Entry { number, rollouts: rollouts.map(|all| Parsed::new(all, NOUN, number)) }
        });
        (entries.collect(), left_out)
    }
}

/// A row as an object. Bytes that are not text are left out of columns that no field is read from, such as images.
fn columns(
    row: Row,
    fields: &Fields,
    weight: &mut usize,
    left_out: &mut BTreeSet<String>,
) -> Result<Map<String, Value>, InputError> {
    let mut map = Map::new();
    for (name, field) in row.into_columns() {
        let mut cells = Cells { needed: fields.reads(&name), weight, left_out: false };
        let read = cells.entry(&mut map, name.clone(), field);
        if cells.left_out {
            left_out.insert(name.clone());
        }
        read.map_err(|error| InputError { message: format!("column {name:?}: {}", error.message), ..error })?;
    }
    Ok(map)
}

fn too_long() -> InputError {
    let message = format!("the row is longer than {} MiB", MAX_LINE >> 20);
    InputError::new("input.line_too_long", message)
}

/// The cells of one column as JSON.
struct Cells<'c> {
    /// Whether bytes that are not text are an error, since a field of the rollout is read here.
    needed: bool,
    /// Grows by the text that the cells hold.
    weight: &'c mut usize,
    /// Whether bytes were left out.
    left_out: bool,
}

impl Cells<'_> {
    fn object(&mut self, row: Row) -> Result<Value, InputError> {
        let mut map = Map::new();
        row.into_columns().into_iter().try_for_each(|(name, field)| self.entry(&mut map, name, field))?;
        Ok(Value::Object(map))
    }

    /// Puts a cell into an object, unless it is left out.
    fn entry(&mut self, map: &mut Map<String, Value>, name: String, field: Field) -> Result<(), InputError> {
        *self.weight += name.len();
        let Some(value) = self.value(field)? else { return Ok(()) };
        if map.contains_key(&name) {
            return Err(InputError::new("input.duplicate_key", format!("the name {name:?} stands twice")));
        }
        map.insert(name, value);
        Ok(())
    }

    /// A cell, or nothing where it is left out. Times and decimals become their text, since JSON has no such numbers.
    fn value(&mut self, field: Field) -> Result<Option<Value>, InputError> {
        let number = |value: f64| {
            let number = Number::from_f64(value).map(Value::Number);
            number.ok_or_else(|| InputError::new("input.number", "a number is not finite"))
        };
        *self.weight += 8;
        Ok(Some(match field {
            Field::Null => Value::Null,
            Field::Bool(value) => Value::Bool(value),
            Field::Byte(value) => value.into(),
            Field::Short(value) => value.into(),
            Field::Int(value) => value.into(),
            Field::Long(value) => value.into(),
            Field::UByte(value) => value.into(),
            Field::UShort(value) => value.into(),
            Field::UInt(value) => value.into(),
            Field::ULong(value) => value.into(),
            Field::Float16(value) => number(value.into())?,
            // By its shortest decimal: 0.1 and not 0.10000000149011612.
            Field::Float(value) => number(value.to_string().parse().unwrap_or_else(|_| value.into()))?,
            Field::Double(value) => number(value)?,
            Field::Str(text) => {
                *self.weight += text.len();
                Value::String(text)
            }
            Field::Bytes(bytes) => match bytes.as_utf8() {
                Ok(text) => {
                    *self.weight += text.len();
                    Value::String(text.to_owned())
                }
                Err(_) if self.needed => {
                    return Err(InputError::new("input.utf8", "the bytes are not UTF-8 text"));
                }
                Err(_) => {
                    self.left_out = true;
                    return Ok(None);
                }
            },
            Field::Group(row) => self.object(row)?,
            Field::ListInternal(list) => {
                let mut all = Vec::with_capacity(list.len());
                for field in list.elements() {
                    all.push(self.value(field.clone())?.unwrap_or(Value::Null));
                }
                Value::Array(all)
            }
            Field::MapInternal(entries) => {
                let mut map = Map::new();
                for (key, field) in entries.entries() {
                    let key = match self.value(key.clone())? {
                        Some(Value::String(text)) => text,
                        Some(other) => other.to_string(),
                        None => continue,
                    };
                    if let Some(value) = self.value(field.clone())? {
                        map.insert(key, value);
                    }
                }
                Value::Object(map)
            }
            time @ (Field::Decimal(_)
            | Field::Date(_)
            | Field::TimeMillis(_)
            | Field::TimeMicros(_)
            | Field::TimestampMillis(_)
            | Field::TimestampMicros(_)) => Value::String(time.to_string()),
        }))
    }
}
