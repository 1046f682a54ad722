//! Columns of text from Python, without a copy: Python's strings lend their UTF-8, Arrow arrays their buffers.

use crate::error::{self, ReadError};
use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use arrow_array::{Array as _, ArrayRef};
use arrow_schema::{ArrowError, DataType};
use plaudit::reason::{Code, Reason};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyFrozenSet, PyInt, PySet, PyString};
use pyo3_arrow::input::AnyArray;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// From 2 to the power of 53 on, a float may stand for more than one whole number.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The rollouts that cannot be read, by their place, with the reason.
pub(crate) type Unreadable = BTreeMap<usize, Reason>;

/// The items of a sequence, each as `read` has it. One that cannot be read is missing, and noted for the rollout at its
/// place.
pub(crate) fn column<T>(
    name: &str,
    given: &Bound<'_, PyAny>,
    unreadable: &mut Unreadable,
    read: impl Fn(&dyn Fn() -> String, &Bound<'_, PyAny>) -> Result<Option<T>, ReadError>,
) -> PyResult<Vec<Option<T>>> {
    let mut column = Vec::with_capacity(given.len().unwrap_or(0));
    for (at, item) in items(name, given)?.enumerate() {
        let item = item?;
        // A panic is that rollout's, and must not become an exception that no trainer catches.
        let read = catch_unwind(AssertUnwindSafe(|| read(&|| format!("{name}[{at}]"), &item)));
        column.push(match read.unwrap_or_else(|_| Err(ReadError::Rollout(Code::Panic.into()))) {
            Ok(read) => read,
            Err(ReadError::Argument(error)) => return Err(error),
            Err(ReadError::Rollout(reason)) => {
                unreadable.entry(at).or_insert(reason);
                None
            }
        });
    }
    Ok(column)
}

/// Which numbers are taken as their decimal text.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum NumbersAsText {
    /// Whole ones, as in names.
    Whole,
    /// All, as in answers.
    Any,
}

/// One column of text, some of which may be missing.
pub(crate) enum TextColumn {
    /// Nothing was given.
    Absent,
    /// Python's strings, which hold their text as long as this holds them.
    Held(Vec<Option<PyBackedStr>>),
    /// Chunks of an Arrow column, and where each begins.
    Arrow(Vec<(usize, ArrowStrings)>, usize),
}

/// An Arrow array of text, whatever the width of its offsets.
pub(crate) enum ArrowStrings {
    Small(arrow_array::StringArray),
    Large(arrow_array::LargeStringArray),
    View(arrow_array::StringViewArray),
    /// A chunk of nulls.
    Null,
}

impl ArrowStrings {
    /// The texts of an array. Numbers become their digits, because names and answers are often numbers.
    fn of(array: &ArrayRef, name: &str, start: usize, allowed: NumbersAsText) -> PyResult<Self> {
        let wrong = |error: ArrowError| error::argument(format!("{name}: {error}"));
        match array.data_type() {
            DataType::Dictionary(_, values) => {
                Self::of(&arrow_cast::cast(array, values).map_err(wrong)?, name, start, allowed)
            }
            kind if kind.is_integer() || (kind.is_decimal() && allowed == NumbersAsText::Any) => {
                Self::of(&arrow_cast::cast(array, &DataType::Utf8).map_err(wrong)?, name, start, allowed)
            }
            kind if kind.is_floating() => {
                // As it is written with its own width: 0.1 in 32 bits is another number in 64.
                let written = arrow_cast::cast(array, &DataType::Utf8).map_err(wrong)?;
                let written = written.as_string::<i32>();
                let array = arrow_cast::cast(array, &DataType::Float64).map_err(wrong)?;
                let numbers = array.as_primitive::<Float64Type>().iter().enumerate();
                let digits = numbers.map(|(at, number)| match number.filter(|number| !number.is_nan()) {
                    Some(number) => digits(number, allowed, || Ok(written.value(at).to_owned()))?
                        .map(Some)
                        .ok_or_else(|| unfit(&format!("{name}[{}]", start + at), &number, allowed)),
                    None => Ok(None),
                });
                Ok(Self::Large(digits.collect::<PyResult<Vec<_>>>()?.into()))
            }
            DataType::Utf8 => Ok(Self::Small(array.as_string::<i32>().clone())),
            DataType::LargeUtf8 => Ok(Self::Large(array.as_string::<i64>().clone())),
            DataType::Utf8View => Ok(Self::View(array.as_string_view().clone())),
            DataType::Null => Ok(Self::Null),
            other => Err(error::argument(format!("{name}: a column of text is wanted, not of {other}"))),
        }
    }

    fn get(&self, at: usize) -> Option<&str> {
        match self {
            Self::Small(array) => array.is_valid(at).then(|| array.value(at)),
            Self::Large(array) => array.is_valid(at).then(|| array.value(at)),
            Self::View(array) => array.is_valid(at).then(|| array.value(at)),
            Self::Null => None,
        }
    }
}

impl TextColumn {
    /// A column from a Python sequence or an Arrow array.
    pub(crate) fn read(
        name: &str,
        given: &Bound<'_, PyAny>,
        allowed: NumbersAsText,
        unreadable: &mut Unreadable,
    ) -> PyResult<Self> {
        if given.is_none() {
            return Ok(Self::Absent);
        }
        match arrow(given)? {
            Some(array) => Self::arrow(name, array, allowed),
            None => column(name, given, unreadable, |place, item| text(place, item, allowed)).map(Self::Held),
        }
    }

    /// A column from an Arrow array.
    pub(crate) fn arrow(name: &str, given: AnyArray, allowed: NumbersAsText) -> PyResult<Self> {
        let (mut chunks, mut length) = (Vec::new(), 0);
        for array in arrays(name, given)? {
            chunks.push((length, ArrowStrings::of(&array, name, length, allowed)?));
            length += array.len();
        }
        Ok(Self::Arrow(chunks, length))
    }

    /// How many there are; none where no column was given.
    pub(crate) fn len(&self) -> Option<usize> {
        match self {
            Self::Absent => None,
            Self::Held(held) => Some(held.len()),
            Self::Arrow(_, length) => Some(*length),
        }
    }

    /// One text.
    pub(crate) fn get(&self, at: usize) -> Option<&str> {
        match self {
            Self::Absent => None,
            Self::Held(held) => held.get(at)?.as_deref(),
            Self::Arrow(chunks, _) => {
                let chunk = chunks.partition_point(|(start, _)| *start <= at).checked_sub(1)?;
                let (start, strings) = chunks.get(chunk)?;
                strings.get(at - start)
            }
        }
    }
}

/// An Arrow array, where something is one rather than a sequence of Python objects. A column of pandas whose objects Arrow
/// cannot hold together is such a sequence, too.
pub(crate) fn arrow(given: &Bound<'_, PyAny>) -> PyResult<Option<AnyArray>> {
    let py = given.py();
    let is_arrow = given.hasattr(pyo3::intern!(py, "__arrow_c_array__"))?
        || given.hasattr(pyo3::intern!(py, "__arrow_c_stream__"))?;
    Ok(if is_arrow { given.extract().ok() } else { None })
}

/// The chunks of a column, validated: an Arrow file may hold bytes that are not UTF-8.
pub(crate) fn arrays(name: &str, given: AnyArray) -> PyResult<Vec<ArrayRef>> {
    let wrong = |error: ArrowError| error::argument(format!("{name}: {error}"));
    let reader = given.into_reader().map_err(|error| error::argument(format!("{name}: {error}")))?;
    let checked = reader.map(|array| {
        let array = array.map_err(wrong)?;
        array.to_data().validate_full().map_err(wrong)?;
        Ok(array)
    });
    checked.collect()
}

/// The items of a sequence. A single string is refused, since its letters are surely not meant.
fn items<'py>(
    name: &str,
    given: &Bound<'py, PyAny>,
) -> PyResult<impl Iterator<Item = PyResult<Bound<'py, PyAny>>> + use<'py>> {
    if given.is_instance_of::<PyString>() {
        return Err(error::argument(format!("{name}: a list is wanted, not one string")));
    }
    let unordered = given.is_instance_of::<PySet>() || given.is_instance_of::<PyFrozenSet>();
    if unordered || given.is_instance_of::<PyDict>() {
        return Err(error::argument(format!("{name}: a list is wanted, not {}", type_name(given))));
    }
    given
        .try_iter()
        .map_err(|_| error::argument(format!("{name}: a list is wanted, not {}", type_name(given))))
}

/// One text, or nothing; a number becomes its digits, because names and answers are often numbers.
pub(crate) fn text(
    place: &dyn Fn() -> String,
    item: &Bound<'_, PyAny>,
    allowed: NumbersAsText,
) -> Result<Option<PyBackedStr>, ReadError> {
    if is_nothing(item) {
        return Ok(None);
    }
    if let Ok(found) = item.cast::<PyString>() {
        return unicode(place, found).map(Some);
    }
    let kind = type_name(item);
    let decimal = kind == "Decimal" && allowed == NumbersAsText::Any;
    if item.is_instance_of::<PyInt>() || kind.starts_with("int") || kind.starts_with("uint") || decimal {
        // Python writes no integer with more digits than `sys.set_int_max_str_digits` allows.
        let digits = item.str().map_err(|error| error::argument(format_args!("{}: {error}", place())))?;
        return Ok(Some(digits.try_into()?));
    }
    if kind.starts_with("float") {
        // By its own digits: numpy's numbers of 32 bits are others in 64.
        let digits = digits(item.extract()?, allowed, || Ok(item.str()?.to_string()))?;
        let digits = digits.ok_or_else(|| unfit(&place(), item, allowed))?;
        return Ok(Some(PyString::new(item.py(), &digits).try_into()?));
    }
    Err(error::argument(format_args!("{}: text is wanted, not {kind}", place())).into())
}

/// The text of a string.
pub(crate) fn unicode(
    place: &dyn Fn() -> String,
    text: &Bound<'_, PyString>,
) -> Result<PyBackedStr, ReadError> {
    let found = text.clone().try_into();
    found.map_err(|error: PyErr| {
        let message = format!("{} is not valid Unicode: {error}", place());
        ReadError::Rollout(Reason::new(Code::NotUnicode, message))
    })
}

/// Whether there is nothing: `None`, and what pandas puts where a value is missing.
pub(crate) fn is_nothing(item: &Bound<'_, PyAny>) -> bool {
    if item.is_none() || item.is_instance_of::<PyString>() {
        return item.is_none();
    }
    let kind = type_name(item);
    kind == "NAType" || (kind.starts_with("float") && item.extract::<f64>().is_ok_and(f64::is_nan))
}

/// The digits of a number that has no fraction, as pandas writes whole numbers where some are missing.
pub(crate) fn whole(number: f64) -> Option<String> {
    (number.fract() == 0.0 && number.abs() < EXACT).then(|| format!("{number:.0}"))
}

/// The digits of a number that may stand for a text; a whole one has none behind the point.
fn digits(
    number: f64,
    allowed: NumbersAsText,
    written: impl FnOnce() -> PyResult<String>,
) -> PyResult<Option<String>> {
    match whole(number) {
        None if allowed == NumbersAsText::Any && number.is_finite() => written().map(Some),
        digits => Ok(digits),
    }
}

fn unfit(place: &str, number: &dyn Display, allowed: NumbersAsText) -> PyErr {
    let wanted = match allowed {
        NumbersAsText::Whole => "text or a whole number",
        NumbersAsText::Any => "text or a finite number",
    };
    error::argument(format!("{place}: {wanted} is wanted, not {number}"))
}

/// The name of an object's type, for messages.
pub(crate) fn type_name(item: &Bound<'_, PyAny>) -> String {
    item.get_type().name().map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}

/// The response in a decoded transcript; None where the prompt is not found.
#[pyfunction]
pub(crate) fn response_of(transcript: &str, prompt: &str) -> Option<String> {
    plaudit::text::transcript::response_of(transcript, prompt).map(str::to_owned)
}

/// The text without the tokens at its end that end a turn, nor any of `more`.
#[pyfunction]
pub(crate) fn strip_end_of_turn(text: &str, more: Vec<String>) -> &str {
    plaudit::text::transcript::strip_end_of_turn(text, &more)
}
