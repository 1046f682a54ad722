//! How do a trainer's lists become rollouts? Column by column; text is lent, not copied, for as long as a batch lives.

use crate::texts::{Texts, arrays, arrow, is_nothing, items, kind, whole};
use crate::value::{to_map, to_value};
use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use arrow_schema::DataType;
use plaudit::rollout::{Prompt, Rollout};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyString;
use pyo3_arrow::input::AnyArray;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt::Display;

/// The columns of a batch as Python gave them.
pub(crate) struct Batch {
    ids: Texts,
    groups: Texts,
    prompts: Prompts,
    responses: Texts,
    references: Texts,
    tokens: Option<Vec<Option<u64>>>,
    extras: Option<Vec<Map<String, Value>>>,
    length: usize,
}

/// Prompts are text or chat messages.
enum Prompts {
    Texts(Texts),
    Mixed(Vec<Asked>),
}

enum Asked {
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
        let responses = Texts::take("responses", Some(columns.responses))?;
        let length = responses.len().unwrap_or(0);
        let batch = Self {
            ids: Texts::take("ids", columns.ids)?,
            groups: Texts::take("groups", columns.groups)?,
            prompts: Prompts::take(columns.prompts)?,
            references: Texts::take("references", columns.references)?,
            tokens: counts(columns.tokens)?,
            extras: maps(columns.extras)?,
            responses,
            length,
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
        if let Some(missing) = (0..length).find(|at| batch.responses.get(*at).is_none()) {
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

    /// The rollouts, which borrow their text from the batch.
    pub(crate) fn rollouts(&self) -> Vec<Rollout<'_>> {
        (0..self.length).map(|at| self.rollout(at)).collect()
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
    fn take(given: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(given) = given.filter(|given| !given.is_none()) else {
            return Ok(Self::Texts(Texts::Absent));
        };
        if let Some(array) = arrow(given)? {
            return Texts::arrow("prompts", array).map(Self::Texts);
        }
        let mut mixed = Vec::with_capacity(given.len().unwrap_or(0));
        for (at, item) in items("prompts", given)?.enumerate() {
            mixed.push(Asked::take(at, &item?)?);
        }
        Ok(Self::Mixed(mixed))
    }

    fn len(&self) -> Option<usize> {
        match self {
            Self::Texts(texts) => texts.len(),
            Self::Mixed(mixed) => Some(mixed.len()),
        }
    }

    fn get(&self, at: usize) -> Option<Prompt<'_>> {
        match self {
            Self::Texts(texts) => texts.get(at).map(|text| Prompt::Text(Cow::Borrowed(text))),
            Self::Mixed(mixed) => match mixed.get(at)? {
                Asked::Nothing => None,
                Asked::Text(text) => Some(Prompt::Text(Cow::Borrowed(text))),
                Asked::Messages(messages) => Some(Prompt::Messages(messages.clone())),
            },
        }
    }
}

impl Asked {
    fn take(at: usize, item: &Bound<'_, PyAny>) -> PyResult<Self> {
        if is_nothing(item) {
            return Ok(Self::Nothing);
        }
        if let Ok(text) = item.cast::<PyString>() {
            let text = text.clone().try_into().map_err(|error: PyErr| {
                PyValueError::new_err(format!("prompts[{at}] is not valid Unicode: {error}"))
            })?;
            return Ok(Self::Text(text));
        }
        match to_value(item, &|| format!("prompts[{at}]"))? {
            Value::Array(messages) if messages.iter().all(Value::is_object) => Ok(Self::Messages(messages)),
            _ => Err(PyTypeError::new_err(format!(
                "prompts[{at}]: text or a list of messages is wanted, not {}",
                kind(item)
            ))),
        }
    }
}

/// The numbers of tokens. Numbers with a point are taken where they are whole, as pandas writes them beside missing ones.
fn counts(given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Vec<Option<u64>>>> {
    let Some(given) = given.filter(|given| !given.is_none()) else { return Ok(None) };
    if let Some(array) = arrow(given)? {
        return arrow_counts(array).map(Some);
    }
    let mut counts = Vec::with_capacity(given.len().unwrap_or(0));
    for (at, item) in items("tokens", given)?.enumerate() {
        let item = item?;
        let count = if is_nothing(&item) { Ok(None) } else { item.extract::<u64>().map(Some) };
        counts.push(match count {
            Ok(count) => count,
            Err(_) => {
                Some(item.extract::<f64>().ok().and_then(count_of).ok_or_else(|| uncounted(at, &item))?)
            }
        });
    }
    Ok(Some(counts))
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
            let count = number.map(|number| count_of(number).ok_or_else(|| uncounted(counts.len(), &number)));
            counts.push(count.transpose()?);
        }
    }
    Ok(counts)
}

/// A count, where a number is one.
fn count_of(number: f64) -> Option<u64> {
    whole(number)?.parse().ok()
}

fn uncounted(at: usize, given: &dyn Display) -> PyErr {
    PyTypeError::new_err(format!("tokens[{at}]: a whole number from 0 is wanted, not {given}"))
}

fn maps(given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Vec<Map<String, Value>>>> {
    let Some(given) = given.filter(|given| !given.is_none()) else { return Ok(None) };
    let mut maps = Vec::with_capacity(given.len().unwrap_or(0));
    for (at, item) in items("extras", given)?.enumerate() {
        maps.push(to_map(&item?, &|| format!("extras[{at}]"))?);
    }
    Ok(Some(maps))
}
