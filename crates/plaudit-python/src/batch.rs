//! Rollouts from Python's arguments: the columns of a batch, or one rollout, as dicts by the names of the fields. Text is borrowed,
//! not copied, for as long as a batch lives.

use crate::error::{self, ReadError};
use crate::text::{
    NumbersAsText, TextColumn, Unreadable, arrays, arrow, column, is_nothing, text, type_name, unicode, whole,
};
use crate::value::{from_value, to_map, to_value};
use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use arrow_schema::DataType;
use plaudit::compose::{Cause, Total};
use plaudit::conversation::Tool;
use plaudit::engine::Engine;
use plaudit::group::Group;
use plaudit::input::{InputError, ParsedResponse, read_generation, read_response, read_tools, tools_in};
use plaudit::reason::{Code, Reason};
use plaudit::report::{Report, Row};
use plaudit::rollout::{FIELDS, Generation, Prompt, Reference, Rollout};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBool, PyDict, PyList, PyString};
use pyo3_arrow::input::AnyArray;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

/// A dict by the names of fields: the values of one rollout, or the columns of a batch.
#[derive(FromPyObject)]
pub(crate) struct Fields<'py>(Bound<'py, PyDict>);

impl<'py> Fields<'py> {
    /// The dict, where all its names are those of fields.
    fn checked(&self) -> PyResult<&Self> {
        for name in self.0.keys() {
            let name = name.str()?;
            let name = name.to_str()?;
            if !FIELDS.iter().any(|field| field.name == name && !field.column.is_empty()) {
                return Err(error::argument(format_args!("a rollout has no field {name:?}")));
            }
        }
        Ok(self)
    }

    /// What stands there by a name; None where nothing does.
    fn get(&self, name: &str) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.0.get_item(name)?.unwrap_or_else(|| self.0.py().None().into_bound(self.0.py())))
    }
}

/// The name of a field's column in messages.
fn column_of(name: &str) -> &'static str {
    FIELDS.iter().find(|field| field.name == name).map_or("", |field| field.column)
}

/// A column with something for each rollout, where there is one.
type Given<T> = Option<Vec<Option<T>>>;

/// The columns of a batch as Python gave them.
pub(crate) struct Batch {
    ids: TextColumn,
    groups: TextColumn,
    prompts: Prompts,
    responses: Responses,
    references: References,
    tokens: Given<u64>,
    extras: Given<Map<String, Value>>,
    /// The fields of [`Generation`] that were given.
    generations: Vec<(&'static str, Vec<Option<Value>>)>,
    tools: Tools,
    length: usize,
    unreadable: Unreadable,
}

/// Responses are text, or conversations in any wire form.
enum Responses {
    Texts(TextColumn),
    Mixed(Vec<Option<ResponseItem>>),
}

enum ResponseItem {
    Text(PyBackedStr),
    Parsed(Box<ParsedResponse>),
}

/// Prompts are text or chat messages.
enum Prompts {
    Texts(TextColumn),
    Mixed(Vec<Option<PromptItem>>),
}

enum PromptItem {
    Text(PyBackedStr),
    Messages(Vec<Value>),
}

impl Batch {
    /// Reads the columns. An error names the column that does not fit, and the place.
    pub(crate) fn read(columns: &Fields<'_>) -> PyResult<Self> {
        let columns = columns.checked()?;
        let responses = columns.get("response")?;
        if responses.is_none() {
            return Err(error::argument("responses: a list is wanted, not None"));
        }
        let mut unreadable = Unreadable::new();
        let responses = Responses::read(&responses, &mut unreadable)?;
        let length = responses.len().unwrap_or(0);
        let batch = Self {
            ids: TextColumn::read("ids", &columns.get("id")?, NumbersAsText::Whole, &mut unreadable)?,
            groups: TextColumn::read(
                "groups",
                &columns.get("group")?,
                NumbersAsText::Whole,
                &mut unreadable,
            )?,
            prompts: Prompts::read(&columns.get("prompt")?, &mut unreadable)?,
            references: References::read(&columns.get("reference")?, &mut unreadable)?,
            tokens: counts(&columns.get("tokens")?, &mut unreadable)?,
            extras: maps(&columns.get("extra")?, &mut unreadable)?,
            generations: generations(columns, &mut unreadable)?,
            tools: Tools::read(&columns.get("tools")?)?,
            responses,
            length,
            unreadable,
        };
        let lengths = [
            ("ids", batch.ids.len()),
            ("groups", batch.groups.len()),
            ("prompts", batch.prompts.len()),
            ("references", batch.references.len()),
            ("tokens", batch.tokens.as_ref().map(Vec::len)),
            ("extras", batch.extras.as_ref().map(Vec::len)),
            ("tools", batch.tools.len()),
        ];
        let others = batch.generations.iter().map(|(name, values)| (column_of(name), Some(values.len())));
        for (name, found) in lengths.into_iter().chain(others) {
            if let Some(found) = found.filter(|found| *found != length) {
                return Err(error::argument(format_args!(
                    "{name} has {found} items, but responses has {length}"
                )));
            }
        }
        if let Some(missing) = batch.readable().find(|at| batch.responses.get(*at).is_none()) {
            return Err(error::argument(format_args!("responses[{missing}]: text is wanted, not None")));
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

    /// The readable rollouts, which borrow their text from the batch.
    pub(crate) fn rollouts(&self) -> Vec<Rollout<'_>> {
        self.readable().map(|at| self.rollout(at)).collect()
    }

    /// The places of the rollouts that can be read.
    pub(crate) fn readable(&self) -> impl Iterator<Item = usize> {
        (0..self.length).filter(|at| !self.unreadable.contains_key(at))
    }

    /// The report of the whole batch: that of the readable rollouts, with the others as invalid in their places.
    pub(crate) fn complete(&self, engine: &Engine, report: Report) -> Report {
        if self.unreadable.is_empty() {
            return report;
        }
        let places: Vec<usize> = self.readable().collect();
        let mut rows: Vec<(usize, Row)> = places.iter().copied().zip(report.rows).collect();
        let mut statistics = report.statistics;
        for (&at, reason) in &self.unreadable {
            let refused = engine.refuse(&[self.rollout(at)], reason.code);
            statistics.merge(&refused.statistics);
            let total = || Total::Invalid(Cause { reason: reason.clone(), component: None });
            rows.extend(refused.rows.into_iter().map(|row| (at, Row { total: total(), ..row })));
        }
        rows.sort_by_key(|(at, _)| *at);
        let mut groups = report.groups;
        for member in groups.iter_mut().flat_map(|group| &mut group.members) {
            *member = places[*member];
        }
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
        let mut rollout = Rollout {
            id: self.ids.get(at).map(Cow::Borrowed),
            group: self.groups.get(at).map(Cow::Borrowed),
            prompt: self.prompts.get(at),
            reference: self.references.get(at),
            tokens: self.tokens.as_ref().and_then(|tokens| tokens[at]),
            extra: self
                .extras
                .as_ref()
                .and_then(|extras| extras[at].as_ref())
                .map_or_else(Map::new, Map::clone),
            tools: self.tools.get(at),
            ..Rollout::new(self.responses.get(at).unwrap_or(""))
        };
        if let Some(parsed) = self.responses.parsed(at) {
            parsed.clone().fill(&mut rollout);
        }
        if !self.generations.is_empty() {
            let column = |name: &str| self.generations.iter().find(|(field, _)| *field == name);
            let value = |name: &str| column(name).and_then(|(_, values)| values.get(at)?.as_ref());
            let known = std::mem::take(&mut rollout.generation);
            // Each value was read by itself when the batch was, and fits.
            rollout.generation = read_generation(value, known).unwrap_or_else(|_| Generation::default());
        }
        rollout.tools = rollout.tools.or_else(|| tools_in(&rollout.extra));
        rollout
    }

    /// The readable rollouts with text of their own, for work that outlives the call.
    pub(crate) fn owned(&self) -> Vec<Rollout<'static>> {
        self.rollouts().into_iter().map(Rollout::into_owned).collect()
    }
}

/// A column by its name.
type NamedColumn = (&'static str, Vec<Option<Value>>);

/// The fields of [`Generation`] in the columns of a batch, each value as it fits.
fn generations(columns: &Fields<'_>, unreadable: &mut Unreadable) -> PyResult<Vec<NamedColumn>> {
    let mut found = Vec::new();
    for name in Generation::FIELDS {
        let mut given = columns.get(name)?;
        if given.is_none() {
            continue;
        }
        if arrow(&given)?.is_some() {
            given = given.call_method0("to_pylist")?;
        }
        let values = column(column_of(name), &given, unreadable, |place, item| {
            let value = one_value(place, item)?;
            match value.as_ref().and_then(|value| unfit(name, value)) {
                None => Ok(value),
                Some(message) => {
                    let message = message.strip_prefix(name).unwrap_or(&message);
                    Err(error::argument(format_args!("{}{message}", place())).into())
                }
            }
        })?;
        found.push((name, values));
    }
    Ok(found)
}

/// One value of JSON, or nothing.
fn one_value(place: &dyn Fn() -> String, item: &Bound<'_, PyAny>) -> Result<Option<Value>, ReadError> {
    if is_nothing(item) { Ok(None) } else { to_value(item, place).map(Some) }
}

impl Responses {
    fn read(given: &Bound<'_, PyAny>, unreadable: &mut Unreadable) -> PyResult<Self> {
        match arrow(given)? {
            Some(array) if array_of_lists(&array) => {
                let rows = given.call_method0("to_pylist")?;
                column("responses", &rows, unreadable, |place, item| ResponseItem::read(place, item, true))
                    .map(Self::Mixed)
            }
            Some(array) => TextColumn::arrow("responses", array, NumbersAsText::Whole).map(Self::Texts),
            None => {
                let first = given.get_item(0).ok();
                let is_text = |item: &Bound<'_, PyAny>| item.is_instance_of::<PyString>();
                if given.is_instance_of::<PyList>() && first.as_ref().is_some_and(is_text) {
                    // Almost always all of them are text, and then nothing else is looked at.
                    let mut noted = Unreadable::new();
                    if let Ok(texts) = TextColumn::read("responses", given, NumbersAsText::Whole, &mut noted)
                    {
                        unreadable.extend(noted);
                        return Ok(Self::Texts(texts));
                    }
                }
                column("responses", given, unreadable, |place, item| ResponseItem::read(place, item, false))
                    .map(Self::Mixed)
            }
        }
    }

    fn len(&self) -> Option<usize> {
        match self {
            Self::Texts(texts) => texts.len(),
            Self::Mixed(mixed) => Some(mixed.len()),
        }
    }

    fn get(&self, at: usize) -> Option<&str> {
        match self {
            Self::Texts(texts) => texts.get(at),
            Self::Mixed(mixed) => mixed.get(at)?.as_ref().map(|item| match item {
                ResponseItem::Text(text) => &**text,
                ResponseItem::Parsed(parsed) => &*parsed.text,
            }),
        }
    }

    /// The response that is a conversation, at a place.
    fn parsed(&self, at: usize) -> Option<&ParsedResponse> {
        match self {
            Self::Texts(_) => None,
            Self::Mixed(mixed) => match mixed.get(at)?.as_ref()? {
                ResponseItem::Text(_) => None,
                ResponseItem::Parsed(parsed) => Some(parsed),
            },
        }
    }
}

impl ResponseItem {
    fn read(
        place: &dyn Fn() -> String,
        item: &Bound<'_, PyAny>,
        table: bool,
    ) -> Result<Option<Self>, ReadError> {
        if !item.is_instance_of::<PyList>() && !item.is_instance_of::<PyDict>() {
            return Ok(text(place, item, NumbersAsText::Whole)?.map(Self::Text));
        }
        let value = to_value(item, place)?;
        let parsed = read_response(value, &place(), table).map_err(|error| {
            let code = if error.code == Code::Panic.as_str() { Code::Panic } else { Code::BadResponse };
            ReadError::Rollout(Reason::new(code, error.message))
        })?;
        Ok(Some(Self::Parsed(Box::new(parsed))))
    }
}

/// References are text, or lists of accepted answers, truths and objects among it.
enum References {
    Texts(TextColumn),
    Mixed(Vec<Option<Reference<'static>>>),
}

impl References {
    fn read(given: &Bound<'_, PyAny>, unreadable: &mut Unreadable) -> PyResult<Self> {
        let mixed = |given: &Bound<'_, PyAny>, unreadable: &mut Unreadable| {
            column("references", given, unreadable, read_reference).map(Self::Mixed)
        };
        match arrow(given)? {
            Some(array) if !array_of_texts(&array) => mixed(&given.call_method0("to_pylist")?, unreadable),
            Some(array) => TextColumn::arrow("references", array, NumbersAsText::Any).map(Self::Texts),
            // Almost always all of them are text. What can be read only once is not read twice.
            None if given.is_instance_of::<PyList>() => {
                let mut noted = Unreadable::new();
                match TextColumn::read("references", given, NumbersAsText::Any, &mut noted) {
                    Ok(texts) => {
                        unreadable.extend(noted);
                        Ok(Self::Texts(texts))
                    }
                    Err(_) => mixed(given, unreadable),
                }
            }
            None if given.is_none() => Ok(Self::Texts(TextColumn::Absent)),
            None => mixed(given, unreadable),
        }
    }

    fn len(&self) -> Option<usize> {
        match self {
            Self::Texts(texts) => texts.len(),
            Self::Mixed(mixed) => Some(mixed.len()),
        }
    }

    fn get(&self, at: usize) -> Option<Reference<'_>> {
        match self {
            Self::Texts(texts) => texts.get(at).map(Reference::from),
            Self::Mixed(mixed) => mixed.get(at)?.as_ref().map(Reference::borrowed),
        }
    }
}

/// One reference, with text of its own: a text or a number, or what JSON can express beside them.
fn read_reference(
    place: &dyn Fn() -> String,
    item: &Bound<'_, PyAny>,
) -> Result<Option<Reference<'static>>, ReadError> {
    let kind = type_name(item);
    let is_json = item.is_instance_of::<PyBool>()
        || item.is_instance_of::<PyDict>()
        || item.is_instance_of::<PyList>()
        || ["bool", "bool_", "tuple", "ndarray"].contains(&&*kind);
    if is_json {
        return Ok(Reference::of_value(&to_value(item, place)?));
    }
    Ok(text(place, item, NumbersAsText::Any)?.map(|text| Reference::from(text.to_string())))
}

/// The tools that the model was given: the same for all rollouts, or some for each.
enum Tools {
    Same(Option<Arc<[Tool]>>),
    Each(Vec<Option<Arc<[Tool]>>>),
}

impl Tools {
    fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        if given.is_none() {
            return Ok(Self::Same(None));
        }
        let place = || "tools".to_owned();
        let value = to_value(given, &place).map_err(PyErr::from)?;
        match &value {
            // Declarations are objects; anything else stands for those of one rollout.
            Value::Array(all) if !all.iter().all(Value::is_object) => {
                let each = all.iter().enumerate().map(|(at, one)| read_tools(one, &format!("tools[{at}]")));
                each.collect::<Result<_, _>>().map(Self::Each).map_err(wrong)
            }
            all => read_tools(all, "tools").map(Self::Same).map_err(wrong),
        }
    }

    /// How many there are, where each rollout has its own.
    fn len(&self) -> Option<usize> {
        match self {
            Self::Same(_) => None,
            Self::Each(each) => Some(each.len()),
        }
    }

    fn get(&self, at: usize) -> Option<Arc<[Tool]>> {
        match self {
            Self::Same(tools) => tools.clone(),
            Self::Each(each) => each.get(at).cloned().flatten(),
        }
    }
}

/// Whether the chunks of an Arrow column are lists, such as lists of messages.
fn array_of_lists(array: &AnyArray) -> bool {
    matches!(kind_of(array), Some(DataType::List(_) | DataType::LargeList(_) | DataType::Struct(_)))
}

/// Whether they are text or numbers.
fn array_of_texts(array: &AnyArray) -> bool {
    !array_of_lists(array) && kind_of(array) != Some(DataType::Boolean)
}

fn kind_of(array: &AnyArray) -> Option<DataType> {
    match array {
        AnyArray::Array(array) => Some(array.field().data_type().clone()),
        AnyArray::Stream(stream) => stream.field_ref().ok().map(|field| field.data_type().clone()),
    }
}

impl Prompts {
    fn read(given: &Bound<'_, PyAny>, unreadable: &mut Unreadable) -> PyResult<Self> {
        if given.is_none() {
            return Ok(Self::Texts(TextColumn::Absent));
        }
        match arrow(given)? {
            Some(array) => TextColumn::arrow("prompts", array, NumbersAsText::Whole).map(Self::Texts),
            None => column("prompts", given, unreadable, PromptItem::read).map(Self::Mixed),
        }
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
            Self::Mixed(mixed) => mixed.get(at)?.as_ref().map(PromptItem::prompt),
        }
    }
}

impl PromptItem {
    fn read(place: &dyn Fn() -> String, item: &Bound<'_, PyAny>) -> Result<Option<Self>, ReadError> {
        if is_nothing(item) {
            return Ok(None);
        }
        if let Ok(text) = item.cast::<PyString>() {
            return unicode(place, text).map(|text| Some(Self::Text(text)));
        }
        match to_value(item, place)? {
            Value::Array(messages) if messages.iter().all(Value::is_object) => {
                Ok(Some(Self::Messages(messages)))
            }
            _ => {
                let kind = type_name(item);
                let message = format!("{}: text or a list of messages is wanted, not {kind}", place());
                Err(error::argument(message).into())
            }
        }
    }

    fn prompt(&self) -> Prompt<'_> {
        match self {
            Self::Text(text) => Prompt::Text(Cow::Borrowed(text)),
            Self::Messages(messages) => Prompt::Messages(messages.clone()),
        }
    }
}

/// One rollout, with text of its own.
pub(crate) fn rollout(fields: &Fields<'_>) -> Result<Rollout<'static>, ReadError> {
    let fields = fields.checked()?;
    let owned = |text: PyBackedStr| -> Cow<'static, str> { Cow::Owned(text.to_string()) };
    let name = |field: &str| -> Result<_, ReadError> {
        Ok(text(&|| field.to_owned(), &fields.get(field)?, NumbersAsText::Whole)?.map(owned))
    };
    let value = |field: &str| one_value(&|| field.to_owned(), &fields.get(field)?);
    let Some(response) = ResponseItem::read(&|| "response".to_owned(), &fields.get("response")?, false)?
    else {
        return Err(error::argument("response: text is wanted, not None").into());
    };
    let prompt = PromptItem::read(&|| "prompt".to_owned(), &fields.get("prompt")?)?;
    let mut rollout = Rollout {
        id: name("id")?,
        group: name("group")?,
        prompt: prompt.map(|prompt| match prompt {
            PromptItem::Text(text) => Prompt::Text(owned(text)),
            PromptItem::Messages(messages) => Prompt::Messages(messages),
        }),
        reference: read_reference(&|| "reference".to_owned(), &fields.get("reference")?)?,
        tokens: count(&|| "tokens".to_owned(), &fields.get("tokens")?)?,
        extra: to_map(&fields.get("extra")?, &|| "extra".to_owned())?,
        tools: read_tools(&value("tools")?.unwrap_or(Value::Null), "tools").map_err(wrong)?,
        ..Rollout::default()
    };
    match response {
        ResponseItem::Text(text) => rollout.response = owned(text),
        ResponseItem::Parsed(parsed) => parsed.fill(&mut rollout),
    }
    let mut said = Map::new();
    for field in Generation::FIELDS {
        said.extend(value(field)?.map(|value| (field.to_owned(), value)));
    }
    let known = std::mem::take(&mut rollout.generation);
    rollout.generation = read_generation(|field| said.get(field), known).map_err(wrong)?;
    rollout.tools = rollout.tools.or_else(|| tools_in(&rollout.extra));
    Ok(rollout)
}

fn wrong(error: InputError) -> PyErr {
    error::argument(error.message)
}

/// Why a field cannot hold a value; None where it can. For tools, and the fields that say how a response was generated.
#[pyfunction]
pub(crate) fn misfit(field: &str, value: &Bound<'_, PyAny>) -> Option<String> {
    match one_value(&|| field.to_owned(), value) {
        Ok(value) => value.and_then(|value| unfit(field, &value)),
        Err(error) => Some(PyErr::from(error).to_string()),
    }
}

fn unfit(field: &str, value: &Value) -> Option<String> {
    let read = match field {
        "tools" => read_tools(value, field).map(drop),
        _ => read_generation(|name| (name == field).then_some(value), Generation::default()).map(drop),
    };
    read.err().map(|error| error.message)
}

/// The rollouts of a batch as the engine sees them, for tests of the adapters that hand them over.
#[pyfunction]
pub(crate) fn read_columns<'py>(py: Python<'py>, columns: Fields<'py>) -> PyResult<Bound<'py, PyAny>> {
    let batch = Batch::read(&columns)?;
    from_value(py, &Value::Array(batch.rollouts().iter().map(Rollout::to_value).collect()))
}

/// One rollout as the engine sees it, likewise.
#[pyfunction]
pub(crate) fn read_rollout<'py>(py: Python<'py>, fields: Fields<'py>) -> PyResult<Bound<'py, PyAny>> {
    from_value(py, &rollout(&fields)?.to_value())
}

/// A name: text, or a whole number as its digits.
pub(crate) fn name(argument: &str, item: &Bound<'_, PyAny>) -> PyResult<String> {
    let found = text(&|| argument.to_owned(), item, NumbersAsText::Whole)?;
    found
        .map(|name| name.to_string())
        .ok_or_else(|| error::argument(format_args!("{argument}: text is wanted, not None")))
}

/// True, False or nothing; numpy's own flags too, which are none of Python's.
pub(crate) fn flag(argument: &str, item: Option<&Bound<'_, PyAny>>) -> PyResult<Option<bool>> {
    let Some(item) = item else { return Ok(None) };
    let is_flag = item.is_instance_of::<PyBool>() || ["bool", "bool_"].contains(&&*type_name(item));
    if !is_flag {
        let given = shown(item);
        return Err(error::argument(format_args!("{argument} is True, False or None, not {given}")));
    }
    item.is_truthy().map(Some)
}

/// A number of seconds.
pub(crate) fn seconds(argument: &str, item: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let given = item.extract::<f64>().ok().and_then(|given| Duration::try_from_secs_f64(given).ok());
    given.ok_or_else(|| {
        let given = shown(item);
        error::argument(format_args!("{argument}: a number of seconds from 0 is wanted, not {given}"))
    })
}

/// How many there are of something.
pub(crate) fn size(argument: &str, item: &Bound<'_, PyAny>) -> PyResult<usize> {
    let found = count(&|| argument.to_owned(), item)?.and_then(|count| usize::try_from(count).ok());
    found.ok_or_else(|| uncounted(argument, &shown(item)))
}

/// The numbers of tokens. Numbers with a point are taken where they are whole, as pandas writes them beside missing ones.
fn counts(given: &Bound<'_, PyAny>, unreadable: &mut Unreadable) -> PyResult<Given<u64>> {
    if given.is_none() {
        return Ok(None);
    }
    let counts = match arrow(given)? {
        Some(array) => arrow_counts(array)?,
        None => column("tokens", given, unreadable, |place, item| Ok(count(place, item)?))?,
    };
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
    let number = item.extract::<f64>().ok().and_then(count_of);
    number.map(Some).ok_or_else(|| uncounted(&place(), &shown(item)))
}

fn arrow_counts(array: AnyArray) -> PyResult<Vec<Option<u64>>> {
    let mut counts = Vec::new();
    for array in arrays("tokens", array)? {
        let kind = match array.data_type() {
            DataType::Dictionary(_, values) => values.as_ref(),
            kind => kind,
        };
        if !kind.is_numeric() && !kind.is_null() {
            return Err(error::argument(format!("tokens: a column of numbers is wanted, not of {kind}")));
        }
        let numbers = arrow_cast::cast(&array, &DataType::Float64)
            .map_err(|error| error::argument(format!("tokens: {error}")))?;
        for number in numbers.as_primitive::<Float64Type>() {
            let number = number.filter(|number| !number.is_nan());
            let count = number.map(|number| {
                count_of(number).ok_or_else(|| uncounted(&format!("tokens[{}]", counts.len()), &number))
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

fn uncounted(place: &str, given: &dyn Display) -> PyErr {
    error::argument(format_args!("{place}: a whole number from 0 is wanted, not {given}"))
}

/// An object as Python writes it, for messages.
fn shown(item: &Bound<'_, PyAny>) -> String {
    item.repr().map_or_else(|_| type_name(item), |text| text.to_string().chars().take(80).collect())
}

fn maps(given: &Bound<'_, PyAny>, unreadable: &mut Unreadable) -> PyResult<Given<Map<String, Value>>> {
    if given.is_none() {
        return Ok(None);
    }
    column("extras", given, unreadable, |place, item| to_map(item, place).map(Some)).map(Some)
}
