//! Conversion of JSON numbers to names, references and counts.

use super::{InputError, wanted};
use crate::rollout::{is_whole, whole};
use serde_json::{Number, Value};

/// The decimal text of a number: as it was written, where that is known.
pub(super) fn decimal<'l>(number: &Number, literal: impl FnOnce() -> Option<&'l str>) -> String {
    // An integer is written in one way only.
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    match literal() {
        Some(written) => written.to_owned(),
        None => whole(float).unwrap_or_else(|| number.to_string()),
    }
}

/// A count: a whole number, also as a float such as 3.0, which tables make of integers with gaps.
pub(super) fn count(field: &'static str, value: &Value) -> Result<u64, InputError> {
    let is_count = |number: &f64| *number >= 0.0 && is_whole(*number);
    let rounded = || value.as_f64().filter(is_count).map(|number| number as u64);
    let refused = || wanted("input.tokens", field, "a whole number from 0", value);
    value.as_u64().or_else(rounded).ok_or_else(refused)
}
