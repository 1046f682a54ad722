//! How does a column of text come over without a copy? Python's own strings lend their UTF-8, Arrow arrays their buffers.

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, ArrayRef};
use arrow_schema::DataType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyInt, PyString};
use pyo3_arrow::input::AnyArray;

/// One column of text, some of which may be missing.
pub(crate) enum Texts {
    /// Nothing was given.
    Absent,
    /// Python's strings, which hold their text as long as this holds them.
    Held(Vec<Option<PyBackedStr>>),
    /// Chunks of an Arrow column, and where each begins.
    Arrow(Vec<(usize, Strings)>, usize),
}

/// An Arrow array of text, whatever the width of its offsets.
pub(crate) enum Strings {
    Small(arrow_array::StringArray),
    Large(arrow_array::LargeStringArray),
    View(arrow_array::StringViewArray),
    /// A chunk of nulls.
    Null,
}

impl Strings {
    fn of(array: &ArrayRef, name: &str) -> PyResult<Self> {
        match array.data_type() {
            DataType::Utf8 => Ok(Self::Small(array.as_string::<i32>().clone())),
            DataType::LargeUtf8 => Ok(Self::Large(array.as_string::<i64>().clone())),
            DataType::Utf8View => Ok(Self::View(array.as_string_view().clone())),
            DataType::Null => Ok(Self::Null),
            other => Err(PyTypeError::new_err(format!("{name}: a column of text is wanted, not of {other}"))),
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

impl Texts {
    /// A column from a Python sequence or an Arrow array.
    pub(crate) fn take(name: &str, given: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(given) = given.filter(|given| !given.is_none()) else { return Ok(Self::Absent) };
        if is_arrow(given)? {
            return Self::arrow(name, given);
        }
        let mut held = Vec::with_capacity(given.len().unwrap_or(0));
        for (at, item) in items(name, given)?.enumerate() {
            held.push(text(name, at, &item?)?);
        }
        Ok(Self::Held(held))
    }

    fn arrow(name: &str, given: &Bound<'_, PyAny>) -> PyResult<Self> {
        let wrong = |error: &dyn std::fmt::Display| PyValueError::new_err(format!("{name}: {error}"));
        let reader = given.extract::<AnyArray>()?.into_reader().map_err(|error| wrong(&error))?;
        let (mut chunks, mut length) = (Vec::new(), 0);
        for array in reader {
            let array = array.map_err(|error| wrong(&error))?;
            // Files of Arrow's may hold bytes that are no text, and nobody has looked so far.
            array.to_data().validate_full().map_err(|error| wrong(&error))?;
            chunks.push((length, Strings::of(&array, name)?));
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

/// Whether something is an Arrow array rather than a sequence of Python objects.
pub(crate) fn is_arrow(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = given.py();
    Ok(given.hasattr(pyo3::intern!(py, "__arrow_c_array__"))?
        || given.hasattr(pyo3::intern!(py, "__arrow_c_stream__"))?)
}

/// The items of a sequence. A string is one, but was surely not meant as one.
pub(crate) fn items<'py>(
    name: &str,
    given: &Bound<'py, PyAny>,
) -> PyResult<impl Iterator<Item = PyResult<Bound<'py, PyAny>>> + use<'py>> {
    if given.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(format!("{name}: a list is wanted, not one string")));
    }
    given
        .try_iter()
        .map_err(|_| PyTypeError::new_err(format!("{name}: a list is wanted, not {}", kind(given))))
}

/// One text of a sequence; a whole number becomes its digits, because names are often numbers.
fn text(name: &str, at: usize, item: &Bound<'_, PyAny>) -> PyResult<Option<PyBackedStr>> {
    if item.is_none() {
        return Ok(None);
    }
    if let Ok(found) = item.cast::<PyString>() {
        return found.clone().try_into().map(Some).map_err(|error: PyErr| {
            PyValueError::new_err(format!("{name}[{at}] is not valid Unicode: {error}"))
        });
    }
    if item.is_instance_of::<PyInt>() || kind(item).starts_with("int") || kind(item).starts_with("uint") {
        return Ok(Some(item.str()?.try_into()?));
    }
    Err(PyTypeError::new_err(format!("{name}[{at}]: text is wanted, not {}", kind(item))))
}

/// The name of an object's type, for messages.
pub(crate) fn kind(item: &Bound<'_, PyAny>) -> String {
    item.get_type().name().map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}
