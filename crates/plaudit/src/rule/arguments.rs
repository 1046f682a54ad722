//! Comparison of tool call arguments: exact, graded, subset and superset, with tolerances for numbers by path.

use super::ParamError;
use crate::conversation::{Arguments, ToolCall};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;

/// How the arguments of a call are compared with the expected ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArgumentMatch {
    /// The same keys with the same values.
    Exact,
    /// The share of right keys: those with the expected value, of all that are expected or given.
    Graded,
    /// Only the name counts; the arguments must still be an object of JSON.
    Ignore,
    /// Every argument that is given is expected, with the same value; others may be missing.
    Subset,
    /// Every expected argument is given, with the same value; others may be added.
    Superset,
}

/// How the arguments of one tool are compared: a way, or a list of the paths that count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ArgumentOverride {
    /// Another way than for other tools.
    Match(ArgumentMatch),
    /// Only what stands at these paths, such as `city` or `place.city`, is compared.
    Paths(Vec<String>),
}

/// The parameters by which arguments are compared.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ArgumentParams {
    /// How the arguments of a call are compared with the expected ones.
    pub arguments: ArgumentMatch,
    /// By the name of a tool: another way to compare its arguments, or the list of the paths in them that count.
    pub overrides: BTreeMap<String, ArgumentOverride>,
    /// The largest difference between two equal numbers. Whole numbers are compared exactly where it is below 1.
    pub tolerance: f64,
    /// By path in the arguments, such as `place.latitude`: another tolerance. The items of a list have its path.
    pub tolerances: BTreeMap<String, f64>,
}

impl Default for ArgumentParams {
    fn default() -> Self {
        Self {
            arguments: ArgumentMatch::Exact,
            overrides: BTreeMap::new(),
            tolerance: 1e-6,
            tolerances: BTreeMap::new(),
        }
    }
}

impl ArgumentParams {
    pub(super) fn check(&self) -> Result<(), Vec<ParamError>> {
        let sensible = |tolerance: &f64| tolerance.is_finite() && *tolerance >= 0.0;
        let message = "must be 0 or more; no two numbers differ by less";
        let empty =
            |one: &ArgumentOverride| matches!(one, ArgumentOverride::Paths(paths) if paths.is_empty());
        ParamError::gather(
            [
                ParamError::check(sensible(&self.tolerance), "tolerance", message),
                ParamError::check(self.tolerances.values().all(sensible), "tolerances", message),
            ],
            ParamError::check(
                !self.overrides.values().any(empty),
                "overrides",
                "a list without paths compares nothing; write ignore where no argument counts",
            ),
        )
    }
}

/// How many values may be looked at for one response: a few milliseconds.
const MOST_WORK: u64 = 500_000;

/// Compares the calls of one response.
pub(super) struct ArgumentComparer<'p> {
    params: &'p ArgumentParams,
    /// How many more values may be looked at.
    left: u64,
    path: String,
}

impl<'p> ArgumentComparer<'p> {
    pub(super) fn new(params: &'p ArgumentParams) -> Self {
        Self { params, left: MOST_WORK, path: String::new() }
    }

    /// Whether more values were to be compared than are.
    pub(super) fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    /// How well a call fits an expected one of the same name, from 0 to 1. Arguments that are no object fit nothing.
    pub(super) fn weight(&mut self, expected: &ToolCall, made: &ToolCall) -> f64 {
        let (Arguments::Object(expected_map), Arguments::Object(made_map)) =
            (&expected.arguments, &made.arguments)
        else {
            return 0.0;
        };
        self.spend(1);
        let way = match self.params.overrides.get(&expected.name) {
            Some(ArgumentOverride::Paths(paths)) => {
                let fits = paths.iter().all(|path| self.same_at(path, expected_map, made_map));
                return f64::from(u8::from(fits));
            }
            Some(ArgumentOverride::Match(way)) => *way,
            None => self.params.arguments,
        };
        let fits = match way {
            ArgumentMatch::Ignore => true,
            ArgumentMatch::Exact => self.same_map(expected_map, made_map),
            ArgumentMatch::Subset => {
                made_map.len() <= expected_map.len() && self.holds(expected_map, made_map)
            }
            ArgumentMatch::Superset => {
                expected_map.len() <= made_map.len() && self.holds(made_map, expected_map)
            }
            ArgumentMatch::Graded => return self.share(expected_map, made_map),
        };
        f64::from(u8::from(fits))
    }

    fn spend(&mut self, work: u64) {
        self.left = self.left.saturating_sub(work);
    }

    /// The share of right keys of all that stand on either side.
    fn share(&mut self, expected: &Map<String, Value>, made: &Map<String, Value>) -> f64 {
        let (mut right, mut shared) = (0_usize, 0_usize);
        for (key, value) in expected {
            if let Some(given) = made.get(key) {
                shared += 1;
                right += usize::from(self.same_under(key, value, given));
            }
        }
        match expected.len() + made.len() - shared {
            0 => 1.0,
            all => right as f64 / all as f64,
        }
    }

    /// Whether the outer object has every key of the inner one, with the same value.
    fn holds(&mut self, outer: &Map<String, Value>, inner: &Map<String, Value>) -> bool {
        inner.iter().all(|(key, value)| match outer.get(key) {
            Some(other) => self.same_under(key, value, other),
            None => false,
        })
    }

    fn same_map(&mut self, one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
        one.len() == other.len() && self.holds(one, other)
    }

    /// Whether both objects have the same value at a path, or none.
    fn same_at(&mut self, path: &str, one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
        self.spend(1);
        match (at_path(one, path), at_path(other, path)) {
            (None, None) => true,
            (Some(one), Some(other)) => self.same_under(path, one, other),
            _ => false,
        }
    }

    fn same_under(&mut self, key: &str, one: &Value, other: &Value) -> bool {
        if self.params.tolerances.is_empty() {
            return self.same(one, other);
        }
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        let same = self.same(one, other);
        self.path.truncate(length);
        same
    }

    fn same(&mut self, one: &Value, other: &Value) -> bool {
        if self.left == 0 {
            return false;
        }
        self.spend(1);
        match (one, other) {
            (Value::Number(one), Value::Number(other)) => {
                let tolerance = self.params.tolerances.get(&self.path).unwrap_or(&self.params.tolerance);
                same_number(one, other, *tolerance)
            }
            (Value::String(one), Value::String(other)) => {
                self.spend(if one.len() == other.len() { one.len() as u64 / 256 } else { 0 });
                one == other
            }
            (Value::Array(one), Value::Array(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| self.same(one, other))
            }
            (Value::Object(one), Value::Object(other)) => self.same_map(one, other),
            _ => one == other,
        }
    }
}

/// What stands at a path of keys.
fn at_path<'m>(map: &'m Map<String, Value>, path: &str) -> Option<&'m Value> {
    let mut parts = path.split('.');
    let first = map.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

/// Whether two numbers differ by at most the tolerance; 1 and 1.0 are the same number.
fn same_number(one: &Number, other: &Number, tolerance: f64) -> bool {
    let whole = |number: &Number| number.is_i64() || number.is_u64();
    if one == other {
        return true;
    }
    if whole(one) && whole(other) && tolerance < 1.0 {
        return false;
    }
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => (one - other).abs() <= tolerance,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn weight(params: Value, expected: Value, made: Value) -> f64 {
        let params: ArgumentParams = serde_json::from_value(params).unwrap();
        let call = |arguments: Value| ToolCall::from_text("f".to_owned(), &arguments.to_string());
        ArgumentComparer::new(&params).weight(&call(expected), &call(made))
    }

    #[test]
    fn values_are_compared_as_json() {
        let exact =
            |expected: Value, made: Value| weight(json!({}), json!({"a": expected}), json!({"a": made}));
        for (one, other) in [
            (json!(1), json!(1.0)),
            (json!(0.3), json!(0.300_000_000_000_000_04)),
            (json!({"x": 1, "y": [2]}), json!({"y": [2], "x": 1})),
        ] {
            assert_eq!((exact(one.clone(), other.clone()), exact(other, one)), (1.0, 1.0));
        }
        for (one, other) in [
            (json!(1), json!(true)),
            (json!(1), json!("1")),
            (json!(null), json!(0)),
            (json!([1, 2]), json!([2, 1])),
            (json!("Oslo"), json!("oslo")),
            (json!({"x": 1}), json!({"x": 1, "y": 2})),
            (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64)),
        ] {
            assert_eq!((exact(one.clone(), other.clone()), exact(other, one)), (0.0, 0.0));
        }
    }

    #[test]
    fn ways_differ_in_what_may_be_missing() {
        let (less, more) = (json!({"a": 1}), json!({"a": 1, "b": 2}));
        for (way, made_less, made_more) in
            [("exact", 0.0, 0.0), ("ignore", 1.0, 1.0), ("subset", 1.0, 0.0), ("superset", 0.0, 1.0)]
        {
            let params = json!({"arguments": way});
            assert_eq!(weight(params.clone(), more.clone(), less.clone()), made_less, "{way}");
            assert_eq!(weight(params, less.clone(), more.clone()), made_more, "{way}");
        }
        let graded = |expected: Value, made: Value| weight(json!({"arguments": "graded"}), expected, made);
        assert_eq!(graded(less.clone(), more.clone()), 0.5);
        assert_eq!(graded(json!({"a": 1, "b": 3}), more), 0.5);
        assert_eq!(graded(less, json!({"b": 1})), 0.0);
        assert_eq!(graded(json!({}), json!({})), 1.0);
    }

    #[test]
    fn paths_and_tolerances_are_by_place() {
        let params = json!({"overrides": {"f": ["place.city"]}});
        let at = |city: &str, more: i32| json!({"place": {"city": city, "more": more}});
        assert_eq!(weight(params.clone(), at("Oslo", 1), at("Oslo", 2)), 1.0);
        assert_eq!(weight(params.clone(), at("Oslo", 1), at("Riga", 1)), 0.0);
        assert_eq!(weight(params.clone(), at("Oslo", 1), json!({"place": {}})), 0.0);
        assert_eq!(weight(params, json!({}), json!({"place": 7})), 1.0);
        let params = json!({"tolerances": {"place.lat": 0.5, "points.x": 2}});
        let place = |lat: f64, x: i32| json!({"place": {"lat": lat}, "points": [{"x": 1}, {"x": x}]});
        assert_eq!(weight(params.clone(), place(1.0, 5), place(1.4, 7)), 1.0);
        assert_eq!(weight(params.clone(), place(1.0, 5), place(1.6, 5)), 0.0);
        assert_eq!(weight(params, place(1.0, 5), place(1.0, 8)), 0.0);
    }
}
