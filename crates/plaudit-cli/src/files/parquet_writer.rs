//! Parquet writer: row groups of bounded size, with three columns and a reason per component.

use super::Output;
use crate::error::CliError;
use crate::stream::{Renderer, Sink};
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use plaudit::group::Key;
use plaudit::outcome::{Outcome, OutcomeKind};
use plaudit::plan::Plan;
use plaudit::reason::Code;
use plaudit::report::Report;
use plaudit::rollout::Rollout;
use std::io;
use std::sync::Arc;

/// How many rows, and how many bytes, a row group has at most.
const ROW_GROUP: (usize, usize) = (65_536, 32 << 20);

/// Results as Parquet.
pub(crate) struct ParquetWriter {
    name: String,
    columns: Vec<String>,
    writer: SerializedFileWriter<Output>,
    rows: Vec<Record>,
    bytes: usize,
}

/// One result.
pub(crate) struct Record {
    id: String,
    group: Option<String>,
    total: Option<f64>,
    outcome: &'static str,
    correct: Option<bool>,
    reason: Option<(Code, Option<String>, String)>,
    /// One a column; none where the recipe that scored the rollout has no such component.
    cells: Vec<Option<Cell>>,
}

struct Cell {
    value: Option<f64>,
    outcome: OutcomeKind,
    reason: Option<Code>,
    info: Option<String>,
}

impl ParquetWriter {
    /// A table with the columns of a plan.
    pub(crate) fn new(output: Output, plan: &Plan) -> Result<Self, CliError> {
        let name = output.name().to_owned();
        let columns: Vec<String> = plan.columns().into_iter().map(str::to_owned).collect();
        let level = ZstdLevel::try_new(3).map(Compression::ZSTD).unwrap_or(Compression::SNAPPY);
        let properties = WriterProperties::builder().set_compression(level);
        let writer = schema(&columns)
            .and_then(|schema| SerializedFileWriter::new(output, schema, Arc::new(properties.build())))
            .map_err(|error| failure(&name, error))?;
        Ok(Self { name, columns, writer, rows: Vec::new(), bytes: 0 })
    }

    fn write_rows(&mut self) -> Result<(), CliError> {
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        if rows.is_empty() {
            return Ok(());
        }
        let written = self.writer.next_row_group().and_then(|mut group| {
            write_columns(&mut group, &rows, self.columns.len())?;
            group.close().map(|_| ())
        });
        written.map_err(|error| failure(&self.name, error))
    }
}

impl Record {
    fn new(columns: &[String], at: usize, rollout: &Rollout<'_>, report: &Report) -> Self {
        let row = &report.rows[at];
        let branch = row.branch.map(|index| &report.plan.branches[index]);
        let cell = |column: &String| {
            let place = branch?.components.iter().position(|component| component.name == *column)?;
            Some(match row.outcomes.get(place)? {
                Some(outcome) => Cell {
                    value: outcome.value(),
                    outcome: outcome.kind(),
                    reason: outcome.reason().map(|reason| reason.code),
                    info: outcome.info().and_then(|info| serde_json::to_string(info).ok()),
                },
                None => {
                    let unasked = Outcome::skipped(Code::GateClosed);
                    Cell { value: None, outcome: unasked.kind(), reason: Some(Code::GateClosed), info: None }
                }
            })
        };
        let component = |place: usize| branch.map(|branch| branch.components[place].name.clone());
        Self {
            id: rollout.id.as_deref().unwrap_or("").to_owned(),
            group: Key::of(rollout).map(|key| key.label().into_owned()),
            total: row.total.value(),
            outcome: row.total.kind().as_str(),
            correct: row.correct,
            reason: row.total.cause().map(|cause| {
                (
                    cause.reason.code,
                    cause.component.and_then(component),
                    cause.reason.message.clone().into_owned(),
                )
            }),
            cells: columns.iter().map(cell).collect(),
        }
    }
}

impl Sink for ParquetWriter {
    type Piece = Record;

    fn renderer(&self) -> Renderer<Record> {
        let columns = self.columns.clone();
        Arc::new(move |rollouts, report| {
            let rows = rollouts.iter().enumerate();
            Ok(rows.map(|(at, rollout)| Record::new(&columns, at, rollout, report)).collect())
        })
    }

    fn bytes(piece: &Record) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let cell = |cell: &Option<Cell>| size_of::<Cell>() + cell.as_ref().map_or(0, |cell| text(&cell.info));
        let reason = piece.reason.as_ref().map_or(0, |(_, _, message)| message.len());
        let cells: usize = piece.cells.iter().map(cell).sum();
        size_of::<Record>() + piece.id.len() + text(&piece.group) + reason + cells
    }

    fn write(&mut self, piece: Record) -> Result<(), CliError> {
        self.bytes += Self::bytes(&piece);
        self.rows.push(piece);
        match self.rows.len() >= ROW_GROUP.0 || self.bytes >= ROW_GROUP.1 {
            true => self.write_rows(),
            false => Ok(()),
        }
    }

    fn finish(mut self) -> Result<Option<String>, CliError> {
        self.write_rows()?;
        let output = self.writer.into_inner().map_err(|error| failure(&self.name, error))?;
        output.finish().map(|()| None)
    }
}

fn failure(name: &str, error: ParquetError) -> CliError {
    let error = match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    };
    CliError::writing(name, error)
}

fn schema(columns: &[String]) -> Result<TypePtr, ParquetError> {
    let text = |name: &str, repetition: Repetition| {
        Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
            .with_repetition(repetition)
            .with_logical_type(Some(LogicalType::String))
            .with_converted_type(ConvertedType::UTF8)
            .build()
            .map(Arc::new)
    };
    let number = |name: &str| {
        let builder = Type::primitive_type_builder(name, Physical::DOUBLE);
        builder.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
    };
    let flag = |name: &str| {
        let builder = Type::primitive_type_builder(name, Physical::BOOLEAN);
        builder.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
    };
    let mut fields = vec![
        text("id", Repetition::REQUIRED)?,
        text("group", Repetition::OPTIONAL)?,
        number("total")?,
        text("outcome", Repetition::REQUIRED)?,
        flag("correct")?,
    ];
    for name in ["reason_code", "reason_component", "reason_message"] {
        fields.push(text(name, Repetition::OPTIONAL)?);
    }
    for column in columns {
        fields.push(number(&format!("{column}.value"))?);
        for part in ["outcome", "reason_code", "info"] {
            fields.push(text(&format!("{column}.{part}"), Repetition::OPTIONAL)?);
        }
    }
    Type::group_type_builder("results").with_fields(fields).build().map(Arc::new)
}

/// Writes the columns in the order of the schema.
fn write_columns(
    group: &mut SerializedRowGroupWriter<'_, Output>,
    rows: &[Record],
    columns: usize,
) -> Result<(), ParquetError> {
    let reason = |row: &'_ Record| row.reason.as_ref().map(|(code, _, _)| code.as_str());
    texts(group, rows, true, |row| Some(&row.id))?;
    texts(group, rows, false, |row| row.group.as_deref())?;
    values::<DoubleType>(group, rows, |row| row.total)?;
    texts(group, rows, true, |row| Some(row.outcome))?;
    values::<BoolType>(group, rows, |row| row.correct)?;
    texts(group, rows, false, reason)?;
    texts(group, rows, false, |row| row.reason.as_ref().and_then(|(_, component, _)| component.as_deref()))?;
    texts(group, rows, false, |row| row.reason.as_ref().map(|(_, _, message)| message.as_str()))?;
    for column in 0..columns {
        values::<DoubleType>(group, rows, |row| row.cells[column].as_ref().and_then(|cell| cell.value))?;
        texts(group, rows, false, |row| row.cells[column].as_ref().map(|cell| cell.outcome.as_str()))?;
        texts(group, rows, false, |row| {
            row.cells[column].as_ref().and_then(|cell| cell.reason).map(Code::as_str)
        })?;
        texts(group, rows, false, |row| row.cells[column].as_ref().and_then(|cell| cell.info.as_deref()))?;
    }
    Ok(())
}

fn texts<'a>(
    group: &mut SerializedRowGroupWriter<'_, Output>,
    rows: &'a [Record],
    required: bool,
    of: impl Fn(&'a Record) -> Option<&'a str>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    let values: Vec<ByteArray> = rows.iter().filter_map(&of).map(ByteArray::from).collect();
    let present: Vec<i16> = rows.iter().map(|row| i16::from(of(row).is_some())).collect();
    let levels = (!required).then_some(present.as_slice());
    column.typed::<ByteArrayType>().write_batch(&values, levels, None)?;
    column.close()
}

fn values<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Output>,
    rows: &[Record],
    of: impl Fn(&Record) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    let values: Vec<T::T> = rows.iter().filter_map(&of).collect();
    let present: Vec<i16> = rows.iter().map(|row| i16::from(of(row).is_some())).collect();
    column.typed::<T>().write_batch(&values, Some(&present), None)?;
    column.close()
}
