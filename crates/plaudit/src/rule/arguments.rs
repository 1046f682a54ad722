//! Comparison of tool call arguments: exact, graded, subset and superset, with tolerances for numbers by path; with one expected
//! value for each argument, or with a list of allowed ones.

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
const MAX_WORK: u64 = 500_000;

/// What stands for each argument of an expected call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpectedArguments {
    /// Its value.
    Values,
    /// A list of the values that it may have. The empty text among them says that it may be left out, and so does an empty list.
    Allowed,
}

/// Compares the calls of one response.
pub(super) struct ArgumentComparer<'p> {
    params: &'p ArgumentParams,
    expected: ExpectedArguments,
    /// How many more values may be looked at.
    left: u64,
    path: String,
}

impl<'p> ArgumentComparer<'p> {
    pub(super) fn new(params: &'p ArgumentParams, expected: ExpectedArguments) -> Self {
        Self { params, expected, left: MAX_WORK, path: String::new() }
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
            ArgumentMatch::Exact => {
                made_map.keys().all(|key| expected_map.contains_key(key))
                    && self.are_given(expected_map, made_map)
            }
            ArgumentMatch::Subset => self.are_expected(expected_map, made_map),
            ArgumentMatch::Superset => self.are_given(expected_map, made_map),
            ArgumentMatch::Graded => return self.share(expected_map, made_map),
        };
        f64::from(u8::from(fits))
    }

    fn spend(&mut self, work: u64) {
        self.left = self.left.saturating_sub(work);
    }

    /// The share of right keys of all that stand on either side and are not rightly left out.
    fn share(&mut self, expected: &Map<String, Value>, made: &Map<String, Value>) -> f64 {
        let (mut right, mut all) = (0_usize, made.len());
        for (key, value) in expected {
            match made.get(key) {
                Some(given) => right += usize::from(self.fits(key, value, given)),
                None => all += usize::from(!self.may_be_missing(value)),
            }
        }
        if all == 0 { 1.0 } else { right as f64 / all as f64 }
    }

    /// Whether every argument that is given is expected, and fits.
    fn are_expected(&mut self, expected: &Map<String, Value>, made: &Map<String, Value>) -> bool {
        made.len() <= expected.len()
            && made.iter().all(|(key, given)| match expected.get(key) {
                Some(value) => self.fits(key, value, given),
                None => false,
            })
    }

    /// Whether every expected argument is given, and fits.
    fn are_given(&mut self, expected: &Map<String, Value>, made: &Map<String, Value>) -> bool {
        expected.iter().all(|(key, value)| match made.get(key) {
            Some(given) => self.fits(key, value, given),
            None => self.may_be_missing(value),
        })
    }

    fn may_be_missing(&self, expected: &Value) -> bool {
        self.expected == ExpectedArguments::Allowed && may_be_missing(expected)
    }

    /// Whether the value of an argument is the expected one, or one of those.
    fn fits(&mut self, key: &str, expected: &Value, given: &Value) -> bool {
        match self.expected {
            ExpectedArguments::Values => self.same_under(key, expected, given),
            ExpectedArguments::Allowed => self.is_allowed(key, expected, given, false),
        }
    }

    /// Whether both have the same at a path, or nothing.
    fn same_at(&mut self, path: &str, expected: &Map<String, Value>, made: &Map<String, Value>) -> bool {
        self.spend(1);
        match self.expected {
            ExpectedArguments::Values => match (at_path(expected, path), at_path(made, path)) {
                (None, None) => true,
                (Some(expected), Some(given)) => self.same_under(path, expected, given),
                _ => false,
            },
            ExpectedArguments::Allowed => self.allowed_at(path, expected, at_path(made, path)),
        }
    }

    /// Whether what is given at a path is allowed there, by one of the values that are allowed on the way to it.
    fn allowed_at(&mut self, path: &str, expected: &Map<String, Value>, given: Option<&Value>) -> bool {
        let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
        let Some(allowed) = expected.get(key) else { return given.is_none() };
        match (rest, given) {
            (None, None) => may_be_missing(allowed),
            (None, Some(given)) => self.is_allowed(key, allowed, given, false),
            (Some(rest), given) => {
                let inside = allowed.as_array().into_iter().flatten().filter_map(Value::as_object);
                let mut found = given.is_none() && may_be_missing(allowed);
                for inner in inside {
                    found = found || self.allowed_at(rest, inner, given);
                }
                found
            }
        }
    }

    /// Whether a value is one of a list; `inside` says whether the list stands in an allowed value.
    fn is_allowed(&mut self, key: &str, allowed: &Value, given: &Value, inside: bool) -> bool {
        let nothing = Value::Array(Vec::new());
        match allowed {
            // An empty list allows itself.
            Value::Array(all) if all.is_empty() => self.same_under(key, &nothing, given),
            Value::Array(all) => {
                self.under(key, |this| all.iter().any(|one| this.is_like(one, given, inside)))
            }
            // What is no list is the value itself.
            one => self.same_under(key, one, given),
        }
    }

    /// Whether a value is an allowed one: texts whatever their spaces, marks and capitals, objects with lists of allowed values
    /// for their keys. Where `inside`, objects may also be the allowed ones as they are written.
    fn is_like(&mut self, allowed: &Value, given: &Value, inside: bool) -> bool {
        if self.left == 0 {
            return false;
        }
        self.spend(1);
        match (allowed, given) {
            (Value::String(one), Value::String(other)) => {
                self.spend((one.len() + other.len()) as u64 / 64);
                is_like_text(one, other)
            }
            (Value::Array(one), Value::Array(other)) => {
                one.len() == other.len()
                    && one.iter().zip(other).all(|(one, other)| self.is_like(one, other, inside))
            }
            (Value::Object(one), Value::Object(other)) => {
                self.are_allowed(one, other) || inside && self.same_map(one, other)
            }
            (one, other) => self.same(one, other),
        }
    }

    /// Whether every key of an object is allowed, with its value, and no other one is missing.
    fn are_allowed(&mut self, allowed: &Map<String, Value>, given: &Map<String, Value>) -> bool {
        given.len() <= allowed.len()
            && allowed.iter().all(|(key, all)| match given.get(key) {
                Some(value) => self.is_allowed(key, all, value, true),
                None => may_be_missing(all),
            })
            && given.keys().all(|key| allowed.contains_key(key))
    }

    fn same_map(&mut self, one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
        one.len() == other.len()
            && one.iter().all(|(key, value)| match other.get(key) {
                Some(other) => self.same_under(key, value, other),
                None => false,
            })
    }

    fn same_under(&mut self, key: &str, one: &Value, other: &Value) -> bool {
        self.under(key, |this| this.same(one, other))
    }

    /// Compares with a key added to the path, where tolerances are by path.
    fn under(&mut self, key: &str, compare: impl FnOnce(&mut Self) -> bool) -> bool {
        if self.params.tolerances.is_empty() {
            return compare(self);
        }
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        let same = compare(self);
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

/// Whether an argument with these allowed values may be left out.
fn may_be_missing(allowed: &Value) -> bool {
    let is_empty = |value: &Value| value.as_str() == Some("");
    allowed.as_array().is_some_and(|all| all.is_empty() || all.iter().any(is_empty))
}

/// Whether two texts differ at most in spaces, in the marks `,./-_*^`, in capitals and in the kind of quotation mark. Numbers in
/// text are numbers: 1.5 is not 15.
fn is_like_text(one: &str, other: &str) -> bool {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    if one == other || number(one).is_some_and(|first| number(other) == Some(first)) {
        return true;
    }
    if number(one).is_some() && number(other).is_some() {
        return false;
    }
    let letters = |text: &str| -> String {
        let kept = text.chars().filter(|letter| !" ,./-_*^".contains(*letter));
        kept.flat_map(char::to_lowercase).map(|letter| if letter == '\'' { '"' } else { letter }).collect()
    };
    let kept = letters(one);
    // Of a text of marks alone nothing is left, and it is not every other one of them.
    !kept.is_empty() && kept == letters(other)
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
        ArgumentComparer::new(&params, ExpectedArguments::Values).weight(&call(expected), &call(made))
    }

    fn allowed(params: Value, expected: Value, made: Value) -> f64 {
        let params: ArgumentParams = serde_json::from_value(params).unwrap();
        let call = |arguments: Value| ToolCall::from_text("f".to_owned(), &arguments.to_string());
        ArgumentComparer::new(&params, ExpectedArguments::Allowed).weight(&call(expected), &call(made))
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
    fn one_of_the_allowed_values_fits() {
        let fits =
            |expected: Value, made: Value| allowed(json!({}), json!({"a": expected}), json!({"a": made}));
        for (expected, made) in [
            (json!(["Oslo", "Oslo, Norway"]), json!("oslo norway")),
            (json!([1, 2]), json!(2.0)),
            (json!([[1, 2]]), json!([1, 2])),
            (json!([{"x": [1, 2], "y": ["", 3]}]), json!({"x": 2})),
            (json!([[{"x": ["a"]}]]), json!([{"x": "A"}])),
            (json!([{"x": [{"y": 1, "z": [2]}]}]), json!({"x": {"y": 1, "z": [2]}})),
            (json!([null]), json!(null)),
            (json!(["it's"]), json!("it\"s")),
        ] {
            assert_eq!(fits(expected.clone(), made.clone()), 1.0, "{expected} {made}");
        }
        for (expected, made) in [
            (json!(["Oslo"]), json!("Bergen")),
            (json!([1, 2]), json!([1, 2])),
            (json!([1]), json!("1")),
            (json!([1]), json!(true)),
            (json!(["1.5"]), json!("15")),
            (json!(["-5"]), json!("5")),
            (json!(["-"]), json!("*")),
            (json!([{"x": [1, 2]}]), json!({"x": [1, 2]})),
            (json!([{"x": [1]}]), json!({"x": 1, "y": 2})),
            (json!([[1, 2]]), json!([2, 1])),
        ] {
            assert_eq!(fits(expected.clone(), made.clone()), 0.0, "{expected} {made}");
        }
    }

    #[test]
    fn an_empty_text_among_the_allowed_values_allows_none() {
        let expected = json!({"a": [1], "b": ["", 2]});
        for (way, none, one, both, more) in [
            ("exact", 0.0, 1.0, 1.0, 0.0),
            ("subset", 1.0, 1.0, 1.0, 0.0),
            ("superset", 0.0, 1.0, 1.0, 1.0),
            ("graded", 0.0, 1.0, 1.0, 2.0 / 3.0),
        ] {
            let with = |made: Value| allowed(json!({"arguments": way}), expected.clone(), made);
            assert_eq!(with(json!({})), none, "{way}");
            assert_eq!(with(json!({"a": 1})), one, "{way}");
            assert_eq!(with(json!({"a": 1, "b": 2})), both, "{way}");
            assert_eq!(with(json!({"a": 1, "b": 2, "c": 3})), more, "{way}");
            assert!(with(json!({"a": 1, "b": 3})) < 1.0, "{way}");
        }
        let paths = |path: &str, made: Value| {
            allowed(json!({"overrides": {"f": [path]}}), json!({"p": [{"x": [1, 2]}], "b": ["", 2]}), made)
        };
        assert_eq!(paths("p.x", json!({"p": {"x": 2, "y": 5}})), 1.0);
        assert_eq!(paths("p.x", json!({"p": {"x": 3}})), 0.0);
        assert_eq!(
            (paths("b", json!({})), paths("b", json!({"b": 3})), paths("q", json!({}))),
            (1.0, 0.0, 1.0)
        );
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
