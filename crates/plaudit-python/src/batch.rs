//! How do a trainer's lists become rollouts? Column by column; text is lent, not copied, for as long as a batch lives.

use crate::text::{
    NumbersAsText, TextColumn, Unreadable, arrays, arrow, is_nothing, items, kind, unicode, whole,
};
use crate::value::{to_map, to_value};
use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use arrow_schema::DataType;
use plaudit::compose::{Cause, Total};
use plaudit::engine::Engine;
use plaudit::group::Group;
use plaudit::reason::{Code, Reason};
use plaudit::report::{Report, Row};
use plaudit::rollout::{Prompt, Rollout};
use pyo3::exceptions::{PyTypeError, PyUnicodeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyString;
use pyo3_arrow::input::AnyArray;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt::Display;

/// The columns of a batch as Python gave them.
pub(crate) struct Batch {
    ids: TextColumn,
    groups: TextColumn,
    prompts: Prompts,
    responses: TextColumn,
    references: TextColumn,
    tokens: Option<Vec<Option<u64>>>,
    extras: Option<Vec<Map<String, Value>>>,
    length: usize,
    /// The rollouts that cannot be read, and why.
    unreadable: Unreadable,
}

/// Prompts are text or chat messages.
enum Prompts {
    TextColumn(TextColumn),
    Mixed(Vec<PromptItem>),
}

enum PromptItem {
    Nothing,
    Text(PyBackedStr),
    Messages(Vec<Value>),
}

/// The arguments of a scoring call.
pub(crate) struct Columns<'a, 'py> {
    pub(crate) prompts: Option<&'a Bound<'py, PyAny>>,
    pub(crate) responses: &'a Bound<'py, PyAny>,
    pub(crate) references: Option<&'a Bound<'py, PyAny>>,
    pub(crate) groups: Option<&'a Bound<'py, PyAny>>,
    pub(crate) tokens: Option<&'a Bound<'py, PyAny>>,
    pub(crate) extras: Option<&'a Bound<'py, PyAny>>,
    pub(crate) ids: Option<&'a Bound<'py, PyAny>>,
}

impl Batch {
    /// Takes the columns over, or says which one does not fit, and where.
    pub(crate) fn take(columns: &Columns<'_, '_>) -> PyResult<Self> {
        if columns.responses.is_none() {
            return Err(PyTypeError::new_err("responses: a list is wanted, not None"));
        }
        let mut unreadable = Unreadable::new();
        let responses =
            TextColumn::take("responses", Some(columns.responses), NumbersAsText::Whole, &mut unreadable)?;
        let length = responses.len().unwrap_or(0);
        let batch = Self {
            ids: TextColumn::take("ids", columns.ids, NumbersAsText::Whole, &mut unreadable)?,
            groups: TextColumn::take("groups", columns.groups, NumbersAsText::Whole, &mut unreadable)?,
            prompts: Prompts::take(columns.prompts, &mut unreadable)?,
            references: TextColumn::take(
                "references",
                columns.references,
                NumbersAsText::Any,
                &mut unreadable,
            )?,
            tokens: counts(columns.tokens)?,
            extras: maps(columns.extras, &mut unreadable)?,
            responses,
            length,
            unreadable,
        };
        let columns = [
            ("ids", batch.ids.len()),
            ("groups", batch.groups.len()),
            ("prompts", batch.prompts.len()),
            ("references", batch.references.len()),
            ("tokens", batch.tokens.as_ref().map(Vec::len)),
            ("extras", batch.extras.as_ref().map(Vec::len)),
        ];
        for (name, found) in columns {
            if let Some(found) = found.filter(|found| *found != length) {
                return Err(PyValueError::new_err(format!(
                    "{name} has {found} items, but responses has {length}"
                )));
            }
        }
        if let Some(missing) = batch.readable().find(|at| batch.responses.get(*at).is_none()) {
            return Err(PyTypeError::new_err(format!("responses[{missing}]: text is wanted, not None")));
        }
        Ok(batch)
    }

    /// How many rollouts there are.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// How many bytes the responses take.
    pub(crate) fn bytes(&self) -> usize {
        (0..self.length).filter_map(|at| self.responses.get(at)).map(str::len).sum()
    }

    /// The name of one rollout: the caller's, or its place, counted from one.
    pub(crate) fn id(&self, at: usize) -> Cow<'_, str> {
        self.ids.get(at).map_or_else(|| Cow::Owned((at + 1).to_string()), Cow::Borrowed)
    }

    /// The rollouts that can be read, which borrow their text from the batch.
    pub(crate) fn rollouts(&self) -> Vec<Rollout<'_>> {
        self.readable().map(|at| self.rollout(at)).collect()
    }

    /// The places of the rollouts that can be read.
    fn readable(&self) -> impl Iterator<Item = usize> {
        (0..self.length).filter(|at| !self.unreadable.contains_key(at))
    }

    /// The report of the whole batch: that of the rollouts that can be read, with the others as invalid in their places.
    pub(crate) fn complete(&self, engine: &Engine, report: Report) -> Report {
        if self.unreadable.is_empty() {
            return report;
        }
        let broken: Vec<Rollout<'_>> = self.unreadable.keys().map(|at| self.rollout(*at)).collect();
        let Report { rows: refused, statistics: theirs, .. } = engine.refuse(&broken, Code::NotUnicode);
        let refused = refused.into_iter().zip(self.unreadable.values()).map(|(row, message)| {
            let reason = Reason::new(Code::NotUnicode, message.clone());
            Row { total: Total::Invalid(Cause { reason, component: None }), ..row }
        });
        let places: Vec<usize> = self.readable().collect();
        let mut rows: Vec<(usize, Row)> = places.iter().copied().zip(report.rows).collect();
        rows.extend(self.unreadable.keys().copied().zip(refused));
        rows.sort_by_key(|(at, _)| *at);
        let mut groups = report.groups;
        for member in groups.iter_mut().flat_map(|group| &mut group.members) {
            *member = places[*member];
        }
        let mut statistics = report.statistics;
        statistics.merge(&theirs);
        Report { plan: report.plan, rows: rows.into_iter().map(|(_, row)| row).collect(), groups, statistics }
    }

    /// The groups of all rollouts, those that cannot be read among them.
    pub(crate) fn groups<'r>(&self, report: &'r Report) -> Cow<'r, [Group]> {
        if self.unreadable.is_empty() {
            return Cow::Borrowed(&report.groups);
        }
        let all: Vec<Rollout<'_>> = (0..self.length).map(|at| self.rollout(at)).collect();
        Cow::Owned(plaudit::group::gather(&all))
    }

    /// One rollout.
    pub(crate) fn rollout(&self, at: usize) -> Rollout<'_> {
        Rollout {
            id: self.ids.get(at).map(Cow::Borrowed),
            group: self.groups.get(at).map(Cow::Borrowed),
            prompt: self.prompts.get(at),
            response: Cow::Borrowed(self.responses.get(at).unwrap_or("")),
            reference: self.references.get(at).map(Cow::Borrowed),
            tokens: self.tokens.as_ref().and_then(|tokens| tokens[at]),
            extra: self.extras.as_ref().map_or_else(Map::new, |extras| extras[at].clone()),
        }
    }

    /// The rollouts with text of their own, for work that outlives the call.
    pub(crate) fn owned(&self) -> Vec<Rollout<'static>> {
        self.rollouts().into_iter().map(into_owned).collect()
    }
}

fn into_owned(rollout: Rollout<'_>) -> Rollout<'static> {
    let owned = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
    Rollout {
        id: owned(rollout.id),
        group: owned(rollout.group),
        prompt: rollout.prompt.map(|prompt| match prompt {
            Prompt::Text(text) => Prompt::Text(Cow::Owned(text.into_owned())),
            Prompt::Messages(messages) => Prompt::Messages(messages),
        }),
        response: Cow::Owned(rollout.response.into_owned()),
        reference: owned(rollout.reference),
        tokens: rollout.tokens,
        extra: rollout.extra,
    }
}

impl Prompts {
    fn take(given: Option<&Bound<'_, PyAny>>, unreadable: &mut Unreadable) -> PyResult<Self> {
        let Some(given) = given.filter(|given| !given.is_none()) else {
            return Ok(Self::TextColumn(TextColumn::Absent));
        };
        if let Some(array) = arrow(given)? {
            return TextColumn::arrow("prompts", array, NumbersAsText::Whole).map(Self::TextColumn);
        }
        let mut mixed = Vec::with_capacity(given.len().unwrap_or(0));
        for (at, item) in items("prompts", given)?.enumerate() {
            mixed.push(PromptItem::take(at, &item?, unreadable)?);
        }
        Ok(Self::Mixed(mixed))
    }

    fn len(&self) -> Option<usize> {
        match self {
            Self::TextColumn(texts) => texts.len(),
            Self::Mixed(mixed) => Some(mixed.len()),
        }
    }

    fn get(&self, at: usize) -> Option<Prompt<'_>> {
        match self {
            Self::TextColumn(texts) => texts.get(at).map(|text| Prompt::Text(Cow::Borrowed(text))),
            Self::Mixed(mixed) => match mixed.get(at)? {
                PromptItem::Nothing => None,
                PromptItem::Text(text) => Some(Prompt::Text(Cow::Borrowed(text))),
                PromptItem::Messages(messages) => Some(Prompt::Messages(messages.clone())),
            },
        }
    }
}

impl PromptItem {
    fn take(at: usize, item: &Bound<'_, PyAny>, unreadable: &mut Unreadable) -> PyResult<Self> {
        if is_nothing(item) {
            return Ok(Self::Nothing);
        }
        if let Ok(text) = item.cast::<PyString>() {
            return Ok(unicode(&|| format!("prompts[{at}]"), text).map_or_else(
                |fault| {
                    unreadable.entry(at).or_insert(fault);
                    Self::Nothing
                },
                Self::Text,
            ));
        }
        match to_value(item, &|| format!("prompts[{at}]")) {
            Ok(Value::Array(messages)) if messages.iter().all(Value::is_object) => {
                Ok(Self::Messages(messages))
            }
            Ok(_) => Err(PyTypeError::new_err(format!(
                "prompts[{at}]: text or a list of messages is wanted, not {}",
                kind(item)
            ))),
            Err(error) => noted(at, error, item.py(), unreadable).map(|()| Self::Nothing),
        }
    }
}

/// Notes that a text in a value is not valid Unicode as a fault of its rollout; anything else is the caller's mistake.
fn noted(at: usize, error: PyErr, py: Python<'_>, unreadable: &mut Unreadable) -> PyResult<()> {
    if !error.is_instance_of::<PyUnicodeError>(py) {
        return Err(error);
    }
    unreadable.entry(at).or_insert_with(|| error.value(py).to_string());
    Ok(())
}

/// The numbers of tokens. Numbers with a point are taken where they are whole, as pandas writes them beside missing ones.
fn counts(given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Vec<Option<u64>>>> {
    let Some(given) = given.filter(|given| !given.is_none()) else { return Ok(None) };
    if let Some(array) = arrow(given)? {
        return arrow_counts(array).map(Some);
    }
    let mut counts = Vec::with_capacity(given.len().unwrap_or(0));
    for (at, item) in items("tokens", given)?.enumerate() {
        counts.push(count(&|| format!("tokens[{at}]"), &item?)?);
    }
    Ok(Some(counts))
}

/// One number of tokens, or nothing.
pub(crate) fn count(place: &dyn Fn() -> String, item: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    if is_nothing(item) {
        return Ok(None);
    }
    if let Ok(count) = item.extract::<u64>() {
        return Ok(Some(count));
    }
    let number = item.extract::<f64>().ok();
    number.and_then(count_of).map(Some).ok_or_else(|| uncounted(&place(), number.is_some(), &shown(item)))
}

fn arrow_counts(array: AnyArray) -> PyResult<Vec<Option<u64>>> {
    let mut counts = Vec::new();
    for array in arrays("tokens", array)? {
        let kind = match array.data_type() {
            DataType::Dictionary(_, values) => values.as_ref(),
            kind => kind,
        };
        if !kind.is_numeric() && !kind.is_null() {
            return Err(PyTypeError::new_err(format!(
                "tokens: a column of numbers is wanted, not of {kind}"
            )));
        }
        let numbers = arrow_cast::cast(&array, &DataType::Float64)
            .map_err(|error| PyTypeError::new_err(format!("tokens: {error}")))?;
        for number in numbers.as_primitive::<Float64Type>() {
            let number = number.filter(|number| !number.is_nan());
            let count = number.map(|number| {
                count_of(number).ok_or_else(|| uncounted(&format!("tokens[{}]", counts.len()), true, &number))
            });
            counts.push(count.transpose()?);
        }
    }
    Ok(counts)
}

/// A count, where a number is one.
fn count_of(number: f64) -> Option<u64> {
    whole(number)?.parse().ok()
}

fn uncounted(place: &str, number: bool, given: &dyn Display) -> PyErr {
    let message = format!("{place}: a whole number from 0 is wanted, not {given}");
    if number { PyValueError::new_err(message) } else { PyTypeError::new_err(message) }
}

/// An object as Python writes it, for messages.
fn shown(item: &Bound<'_, PyAny>) -> String {
    item.repr().map_or_else(|_| kind(item), |text| text.to_string().chars().take(80).collect())
}

fn maps(
    given: Option<&Bound<'_, PyAny>>,
    unreadable: &mut Unreadable,
) -> PyResult<Option<Vec<Map<String, Value>>>> {
    let Some(given) = given.filter(|given| !given.is_none()) else { return Ok(None) };
    let mut maps = Vec::with_capacity(given.len().unwrap_or(0));
    for (at, item) in items("extras", given)?.enumerate() {
        let item = item?;
        maps.push(match to_map(&item, &|| format!("extras[{at}]")) {
            Ok(map) => map,
            Err(error) => noted(at, error, item.py(), unreadable).map(|()| Map::new())?,
        });
    }
    Ok(Some(maps))
}
