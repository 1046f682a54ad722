//! Values as JSON Schema compares them: types, sizes of numbers, equality.

use super::keywords::TYPES;
use serde_json::{Number, Value};
use std::cmp::Ordering;

/// The types of a schema as bits, in the order of [`TYPES`].
pub(super) fn type_bits(types: &Value) -> u8 {
    let bit = |name: &Value| TYPES.iter().position(|known| name == *known).map_or(0, |at| 1 << at);
    match types {
        Value::Array(all) => all.iter().map(bit).fold(0, |bits, bit| bits | bit),
        one => bit(one),
    }
}

/// Whether a value has one of the types.
pub(super) fn has_type(types: u8, value: &Value) -> bool {
    let is =
        |name: &str| TYPES.iter().position(|known| *known == name).is_some_and(|at| types & 1 << at != 0);
    match value {
        Value::Null => is("null"),
        Value::Bool(_) => is("boolean"),
        Value::String(_) => is("string"),
        Value::Array(_) => is("array"),
        Value::Object(_) => is("object"),
        Value::Number(number) => {
            // 1.0 is a whole number.
            let whole = || {
                number.is_i64()
                    || number.is_u64()
                    || number.as_f64().is_some_and(|number| number.fract() == 0.0)
            };
            is("number") || is("integer") && whole()
        }
    }
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// Whole numbers are compared exactly. Nothing where a number has no size.
pub(super) fn compare(one: &Number, other: &Number) -> Option<Ordering> {
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

/// Whether a number is a multiple of a step that is above 0. 0.3 is one of 0.1: both are taken as they are written.
pub(super) fn is_multiple(number: &Number, step: &Number, python: bool) -> bool {
    if let (Some(number), Some(step)) = (integer(number), integer(step)) {
        return number % step == 0;
    }
    let (Some(size), Some(by)) = (number.as_f64(), step.as_f64()) else { return false };
    if python {
        let quotient = size / by;
        return if step.is_f64() { quotient.trunc() == quotient } else { size % by == 0.0 };
    }
    match (decimal(number), decimal(step)) {
        (Some((number, places)), Some((step, fewer))) => {
            let most = places.max(fewer);
            let scaled = |digits: i128, own: u32| digits.checked_mul(10_i128.checked_pow(most - own)?);
            let both = scaled(number, places).zip(scaled(step, fewer));
            both.map_or(size % by == 0.0, |(number, step)| step != 0 && number % step == 0)
        }
        _ => size % by == 0.0,
    }
}

/// The digits of a number as it is written, and how many of them stand behind the point; nothing for one with many.
fn decimal(number: &Number) -> Option<(i128, u32)> {
    const MAX_PLACES: i32 = 30;
    let written = number.to_string();
    let (digits, power) = written.split_once(['e', 'E']).unwrap_or((&written, "0"));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let part = part.trim_end_matches('0');
    let places = i32::try_from(part.len()).ok()?.checked_sub(power.parse().ok()?)?;
    let digits: i128 = format!("{whole}{part}").parse().ok()?;
    match u32::try_from(places) {
        Ok(places) if places <= MAX_PLACES as u32 => Some((digits, places)),
        Err(_) if places >= -MAX_PLACES => {
            Some((digits.checked_mul(10_i128.checked_pow(places.unsigned_abs())?)?, 0))
        }
        _ => None,
    }
}

/// Whether two values are the same in JSON Schema, where 1 and 1.0 are.
pub(super) fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => one == other,
    }
}

/// The same value with whole numbers without a point, so that equal values are equal texts.
pub(in crate::rule) fn canonical(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => match number.as_f64() {
            Some(whole) if whole.fract() == 0.0 && whole.abs() < 9e15 => Value::from(whole as i64),
            _ => value.clone(),
        },
        Value::Array(all) => all.iter().map(canonical).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), canonical(value))).collect(),
        other => other.clone(),
    }
}
