//! Conversion of JSON numbers to names, references and counts.

use super::{InputError, wanted};
use serde_json::{Number, Value};

/// The largest number up to which a float holds every whole number.
const LARGEST_SAFE: f64 = 9_007_199_254_740_991.0;

/// The decimal text of a number: as it was written, where that is known.
pub(super) fn decimal<'l>(number: &Number, literal: impl FnOnce() -> Option<&'l str>) -> String {
    // An integer is written in one way only.
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    match literal() {
        Some(written) => written.to_owned(),
        None => whole(float).unwrap_or_else(|| number.to_string()),
    }
}

/// The digits of a float without a fraction, which is what tables make of whole numbers where some are missing; nothing for
/// one that may have been rounded.
pub fn whole(number: f64) -> Option<String> {
    // Adding 0 makes 0 of -0.
    is_whole(number).then(|| format!("{:.0}", number + 0.0))
}

fn is_whole(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() <= LARGEST_SAFE
}

/// A count: a whole number, also as a float such as 3.0, which tables make of integers with gaps.
pub(super) fn count(field: &'static str, value: &Value) -> Result<u64, InputError> {
    let is_count = |number: &f64| *number >= 0.0 && is_whole(*number);
    let rounded = || value.as_f64().filter(is_count).map(|number| number as u64);
    let refused = || wanted("input.tokens", field, "a whole number from 0", value);
    value.as_u64().or_else(rounded).ok_or_else(refused)
}
