//! Conversion between Python objects and JSON values, bounded in depth. An error names the place of what does not fit.

use crate::error::{self, ReadError};
use crate::text::{type_name, unicode};
use plaudit::input::exact;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use serde_json::{Map, Number, Value};

/// How deep a value may be nested.
const MAX_DEPTH: usize = 64;

/// A JSON value from anything that JSON can express, from tuples, and from numpy's scalars and arrays.
pub(crate) fn to_value(item: &Bound<'_, PyAny>, place: &dyn Fn() -> String) -> Result<Value, ReadError> {
    at_depth(item, place, 0)
}

/// A JSON object from a mapping; None gives an empty one.
pub(crate) fn to_map(
    item: &Bound<'_, PyAny>,
    place: &dyn Fn() -> String,
) -> Result<Map<String, Value>, ReadError> {
    if item.is_none() {
        return Ok(Map::new());
    }
    match at_depth(item, place, 0)? {
        Value::Object(map) => Ok(map),
        _ => {
            Err(error::argument(format_args!("{}: a dict is wanted, not {}", place(), type_name(item)))
                .into())
        }
    }
}

/// The parameters of a reward or an aggregate.
pub(crate) fn parameters(given: &Bound<'_, PyDict>) -> PyResult<Map<String, Value>> {
    Ok(to_map(given.as_any(), &|| "parameters".to_owned())?)
}

/// A JSON value of anything that can be serialized.
pub(crate) fn json(value: &impl serde::Serialize) -> PyResult<Value> {
    serde_json::to_value(value).map_err(error::argument)
}

fn at_depth(item: &Bound<'_, PyAny>, place: &dyn Fn() -> String, depth: usize) -> Result<Value, ReadError> {
    if depth > MAX_DEPTH {
        return Err(error::argument(format_args!("{}: nested deeper than {MAX_DEPTH}", place())).into());
    }
    if item.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(text) = item.cast::<PyString>() {
        return Ok(Value::String(unicode(place, text)?.to_string()));
    }
    if let Ok(flag) = item.cast::<PyBool>() {
        return Ok(Value::Bool(flag.is_true()));
    }
    if item.is_instance_of::<PyInt>() {
        if let Ok(whole) = item.extract::<i64>() {
            return Ok(Value::from(whole));
        }
        if let Ok(whole) = item.extract::<u64>() {
            return Ok(Value::from(whole));
        }
        return Ok(exact::of_number(decimal(item.py())?.call1((item,))?.str()?.to_str()?));
    }
    if let Ok(number) = item.cast::<PyFloat>() {
        let value = number.value();
        let written = if value.is_nan() {
            "NaN"
        } else if value > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        };
        return Ok(Number::from_f64(value).map_or_else(|| exact::of_number(written), Value::Number));
    }
    if let Ok(dict) = item.cast::<PyDict>() {
        return entries(dict.iter().map(Ok), place, depth);
    }
    if item.is_instance_of::<PyList>() || item.is_instance_of::<PyTuple>() {
        return list(item, place, depth);
    }
    let py = item.py();
    // A scalar or an array of numpy's, or a tensor.
    for name in [pyo3::intern!(py, "tolist"), pyo3::intern!(py, "item")] {
        if item.hasattr(name)? {
            return at_depth(&item.call_method0(name)?, place, depth + 1);
        }
    }
    if let Ok(mapping) = item.cast::<PyMapping>() {
        let pairs = mapping.items()?;
        return entries(pairs.iter().map(|pair| pair.extract()), place, depth);
    }
    let refused = error::argument(format_args!(
        "{}: {} cannot be handed over; text, numbers, lists and dicts can",
        place(),
        type_name(item)
    ));
    Err(refused.into())
}

/// `decimal.Decimal`, which converts integers of any length; `int` and `str` refuse long ones.
fn decimal(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import("decimal")?.getattr("Decimal")
}

fn list(item: &Bound<'_, PyAny>, place: &dyn Fn() -> String, depth: usize) -> Result<Value, ReadError> {
    let mut all = Vec::with_capacity(item.len()?);
    for (at, inner) in item.try_iter()?.enumerate() {
        all.push(at_depth(&inner?, &|| format!("{}[{at}]", place()), depth + 1)?);
    }
    Ok(Value::Array(all))
}

fn entries<'py>(
    pairs: impl Iterator<Item = PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)>>,
    place: &dyn Fn() -> String,
    depth: usize,
) -> Result<Value, ReadError> {
    let mut map = Map::new();
    for pair in pairs {
        let (key, inner) = pair?;
        let key = key.str()?.to_string_lossy().into_owned();
        let inner = at_depth(&inner, &|| format!("{}[{key:?}]", place()), depth + 1)?;
        map.insert(key, inner);
    }
    Ok(Value::Object(map))
}

/// A Python object from a JSON value.
pub(crate) fn from_value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => whole.into_pyobject(py)?.into_any(),
            (None, Some(whole)) => whole.into_pyobject(py)?.into_any(),
            (None, None) => PyFloat::new(py, number.as_f64().unwrap_or(f64::NAN)).into_any(),
        },
        Value::String(text) => match exact::number(text) {
            None => PyString::new(py, text).into_any(),
            Some(written) if written.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit()) => {
                decimal(py)?.call1((written,))?.call_method0("__int__")?
            }
            Some(written) => PyFloat::new(py, written.parse().unwrap_or(f64::NAN)).into_any(),
        },
        Value::Array(all) => {
            let items: PyResult<Vec<_>> = all.iter().map(|inner| from_value(py, inner)).collect();
            PyList::new(py, items?)?.into_any()
        }
        Value::Object(map) => {
            let dict = PyDict::new(py);
            for (key, inner) in map {
                dict.set_item(key, from_value(py, inner)?)?;
            }
            dict.into_any()
        }
    })
}
