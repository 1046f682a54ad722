//! JSON Schema validator: the keywords that declarations of tools and of documents use, in bounded time.
//!
//! A general validator (`jsonschema`) brings dozens of crates, matches patterns with backtracking unless told otherwise, and
//! has no bound on the work of a schema whose alternatives refer to each other. This one counts its work and searches patterns
//! in linear time. A keyword that it does not know is reported, so that nothing is taken for valid that was not checked.

use super::pattern::Searcher;
use serde_json::{Map, Number, Value};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// How many values and schemas may be looked at for one response: some ten milliseconds.
const MOST_WORK: u64 = 250_000;
/// How many references and alternatives may follow one another on the way to one value.
const DEEPEST: usize = 64;
/// How many schemas may be open at once. The validator is recursive.
const MOST_OPEN: usize = 512;
/// The most patterns of a schema.
const MOST_PATTERNS: usize = 256;

/// Why a value is not simply valid.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SchemaFailure {
    /// The value breaks the schema.
    Wrong(Breach),
    /// The schema has a keyword, or a form of one, that is not checked.
    Unsupported(String),
    /// The value takes too long to check.
    TooMuch,
}

/// Where a value breaks a schema.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Breach {
    /// The keyword that it breaks.
    pub(super) keyword: &'static str,
    /// The keys and places that lead to the value, the last one first.
    steps: Vec<String>,
}

impl Breach {
    /// The JSON pointer of the value: empty for the whole.
    pub(super) fn path(&self) -> String {
        let escaped = |step: &String| format!("/{}", step.replace('~', "~0").replace('/', "~1"));
        self.steps.iter().rev().map(escaped).collect()
    }
}

type Checked = Result<(), SchemaFailure>;

/// Keywords that describe and do not restrict.
const ANNOTATIONS: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "discriminator",
    "example",
    "examples",
    "externalDocs",
    "format",
    "readOnly",
    "strict",
    "title",
    "writeOnly",
    "xml",
];

/// The compiled patterns of a schema of which every keyword is known.
#[derive(Default)]
pub(super) struct SchemaPatterns(BTreeMap<String, Searcher>);

impl SchemaPatterns {
    /// Looks through a schema as a whole, so that whether it can be checked does not depend on the value.
    pub(super) fn of(root: &Value) -> Result<Self, SchemaFailure> {
        let (mut patterns, mut seen, mut open) = (Self::default(), BTreeSet::new(), vec![root]);
        while let Some(schema) = open.pop() {
            match schema {
                Value::Bool(_) => {}
                Value::Object(rules) => {
                    for (key, value) in rules {
                        let fits = keyword(root, key, value, &mut open, &mut seen);
                        if !fits || !patterns.compile(key, value)? {
                            return Err(SchemaFailure::Unsupported(key.clone()));
                        }
                    }
                }
                _ => return Err(SchemaFailure::Unsupported("something else than an object".to_owned())),
            }
        }
        // A reference that leads back to itself cannot be checked for any value.
        match SchemaChecker::new().check(root, &patterns, &Value::Null) {
            Err(SchemaFailure::Unsupported(what)) => Err(SchemaFailure::Unsupported(what)),
            _ => Ok(patterns),
        }
    }

    /// Compiles what a keyword has of patterns; false where it has too many.
    fn compile(&mut self, key: &str, value: &Value) -> Result<bool, SchemaFailure> {
        let written: Vec<&str> = match (key, value) {
            ("pattern", Value::String(pattern)) => vec![pattern],
            ("patternProperties", Value::Object(map)) => map.keys().map(String::as_str).collect(),
            _ => return Ok(true),
        };
        for pattern in written {
            if !self.0.contains_key(pattern) {
                let compiled = Searcher::new(pattern).map_err(|cause| {
                    SchemaFailure::Unsupported(format!("{key} ({})", cause.split(':').next().unwrap_or("")))
                })?;
                self.0.insert(pattern.to_owned(), compiled);
            }
        }
        Ok(self.0.len() <= MOST_PATTERNS)
    }

    fn matches(&self, pattern: &str, text: &str) -> Result<bool, SchemaFailure> {
        let searcher = self.0.get(pattern).ok_or_else(|| SchemaFailure::Unsupported("pattern".to_owned()))?;
        searcher.search(text).map(|found| found.is_some()).map_err(|_| SchemaFailure::TooMuch)
    }
}

/// Whether a keyword is one that is checked or that restricts nothing; the schemas in it are added to `open`.
fn keyword<'s>(
    root: &'s Value,
    key: &str,
    value: &'s Value,
    open: &mut Vec<&'s Value>,
    seen: &mut BTreeSet<&'s str>,
) -> bool {
    let names = |value: &Value| value.as_array().is_some_and(|all| all.iter().all(Value::is_string));
    match key {
        "type" => {
            let known = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
            known(value) || value.as_array().is_some_and(|all| all.iter().all(known))
        }
        "properties" | "patternProperties" | "dependentSchemas" => match value {
            Value::Object(all) => {
                open.extend(all.values());
                true
            }
            _ => false,
        },
        "dependencies" => match value {
            Value::Object(all) => {
                open.extend(all.values().filter(|value| !value.is_array()));
                all.values().all(|value| !value.is_array() || names(value))
            }
            _ => false,
        },
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => match value {
            Value::Array(all) => {
                open.extend(all);
                true
            }
            _ => false,
        },
        // A list is the form of older drafts for `prefixItems`.
        "items" => {
            match value {
                Value::Array(all) => open.extend(all),
                one => open.push(one),
            }
            true
        }
        "additionalProperties"
        | "additionalItems"
        | "propertyNames"
        | "contains"
        | "not"
        | "if"
        | "then"
        | "else" => {
            open.push(value);
            true
        }
        "$ref" => match (value.as_str(), local(root, value)) {
            (Some(name), Some(target)) => {
                if seen.insert(name) {
                    open.push(target);
                }
                true
            }
            _ => false,
        },
        "required" => names(value),
        "dependentRequired" => value.as_object().is_some_and(|map| map.values().all(names)),
        "enum" => value.is_array(),
        "const" => true,
        "pattern" => value.is_string(),
        "nullable" | "uniqueItems" => value.is_boolean(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "multipleOf" => value.as_f64().is_some_and(|step| step > 0.0),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => {
            value.as_f64().is_some_and(|size| size >= 0.0 && size.fract() == 0.0)
        }
        other => ANNOTATIONS.contains(&other) || other.starts_with("x-"),
    }
}

const TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];

/// Checks the values of one response against schemas.
pub(super) struct SchemaChecker {
    left: u64,
    open: usize,
    /// Whether values are checked as Python's `jsonschema` does it: `multipleOf` by a division of doubles, and `nullable` is no
    /// keyword.
    python: bool,
}

/// A schema with its root and its patterns.
#[derive(Clone, Copy)]
struct In<'s> {
    root: &'s Value,
    patterns: &'s SchemaPatterns,
}

impl SchemaChecker {
    pub(super) const fn new() -> Self {
        Self { left: MOST_WORK, open: 0, python: false }
    }

    /// One that answers as Python's `jsonschema`.
    pub(super) const fn of_python() -> Self {
        Self { left: MOST_WORK, open: 0, python: true }
    }

    /// Whether a value is valid by a schema that was looked through.
    pub(super) fn check(&mut self, root: &Value, patterns: &SchemaPatterns, value: &Value) -> Checked {
        self.value(In { root, patterns }, root, value, 0)
    }

    fn spend(&mut self, work: usize) -> Checked {
        self.left = self.left.saturating_sub(1 + work as u64);
        if self.left == 0 { Err(SchemaFailure::TooMuch) } else { Ok(()) }
    }

    fn value(&mut self, of: In<'_>, schema: &Value, value: &Value, depth: usize) -> Checked {
        self.spend(0)?;
        if depth > DEEPEST {
            return Err(SchemaFailure::Unsupported("a reference that leads to itself".to_owned()));
        }
        if self.open == MOST_OPEN {
            return Err(SchemaFailure::TooMuch);
        }
        self.open += 1;
        let checked = self.by_rules(of, schema, value, depth);
        self.open -= 1;
        checked
    }

    fn by_rules(&mut self, of: In<'_>, schema: &Value, value: &Value, depth: usize) -> Checked {
        let rules = match schema {
            Value::Bool(true) => return Ok(()),
            Value::Object(rules) => rules,
            _ => return wrong("false"),
        };
        if value.is_null() && !self.python && rules.get("nullable") == Some(&Value::Bool(true)) {
            return Ok(());
        }
        if let Some(target) = rules.get("$ref").and_then(|target| local(of.root, target)) {
            self.value(of, target, value, depth + 1)?;
        }
        check("type", rules.get("type").is_none_or(|types| has_type(types, value)))?;
        if let Some(Value::Array(choices)) = rules.get("enum") {
            self.spend(choices.len())?;
            check("enum", choices.iter().any(|choice| equal(choice, value)))?;
        }
        check("const", rules.get("const").is_none_or(|wanted| equal(wanted, value)))?;
        self.combined(of, rules, value, depth)?;
        match value {
            Value::Number(number) => in_range(rules, number, self.python),
            Value::String(text) => self.text(of, rules, text),
            Value::Array(items) => self.items(of, rules, items),
            Value::Object(map) => self.properties(of, rules, map, value, depth),
            Value::Null | Value::Bool(_) => Ok(()),
        }
    }

    fn text(&mut self, of: In<'_>, rules: &Map<String, Value>, text: &str) -> Checked {
        self.spend(text.len() / 64)?;
        if rules.contains_key("minLength") || rules.contains_key("maxLength") {
            has_size(rules, text.chars().count(), "minLength", "maxLength")?;
        }
        match rules.get("pattern").and_then(Value::as_str) {
            Some(pattern) => self.pattern(of, pattern, text).and_then(|matches| check("pattern", matches)),
            None => Ok(()),
        }
    }

    fn pattern(&mut self, of: In<'_>, pattern: &str, text: &str) -> Result<bool, SchemaFailure> {
        self.spend(text.len() / 16)?;
        of.patterns.matches(pattern, text)
    }

    /// Whether a value is valid, where that is only a question.
    fn fits(
        &mut self,
        of: In<'_>,
        schema: &Value,
        value: &Value,
        depth: usize,
    ) -> Result<bool, SchemaFailure> {
        match self.value(of, schema, value, depth + 1) {
            Ok(()) => Ok(true),
            Err(SchemaFailure::Wrong(_)) => Ok(false),
            Err(other) => Err(other),
        }
    }

    fn combined(&mut self, of: In<'_>, rules: &Map<String, Value>, value: &Value, depth: usize) -> Checked {
        let schemas = |key: &str| rules.get(key).and_then(Value::as_array);
        for schema in schemas("allOf").into_iter().flatten() {
            self.value(of, schema, value, depth + 1)?;
        }
        for (key, most) in [("anyOf", usize::MAX), ("oneOf", 1)] {
            let Some(schemas) = schemas(key) else { continue };
            let mut fitting = 0;
            for schema in schemas {
                fitting += usize::from(self.fits(of, schema, value, depth)?);
            }
            check(key, (1..=most).contains(&fitting))?;
        }
        if let Some(schema) = rules.get("not") {
            check("not", !self.fits(of, schema, value, depth)?)?;
        }
        if let Some(schema) = rules.get("if") {
            let branch = if self.fits(of, schema, value, depth)? { "then" } else { "else" };
            if let Some(schema) = rules.get(branch) {
                self.value(of, schema, value, depth + 1)?;
            }
        }
        Ok(())
    }

    fn items(&mut self, of: In<'_>, rules: &Map<String, Value>, items: &[Value]) -> Checked {
        has_size(rules, items.len(), "minItems", "maxItems")?;
        let (first, rest) = match (rules.get("prefixItems"), rules.get("items")) {
            (_, Some(Value::Array(first))) => (first.as_slice(), rules.get("additionalItems")),
            (Some(Value::Array(first)), rest) => (first.as_slice(), rest),
            (_, rest) => (&[][..], rest),
        };
        for (at, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(at).or(rest) {
                self.value(of, schema, item, 0).map_err(|failure| below(failure, || at.to_string()))?;
            }
        }
        if let Some(schema) = rules.get("contains") {
            let mut found = 0;
            for item in items {
                found += usize::from(self.fits(of, schema, item, 0)?);
            }
            let bound = |key: &str| rules.get(key).and_then(Value::as_f64);
            check("contains", found as f64 >= bound("minContains").unwrap_or(1.0))?;
            check("maxContains", bound("maxContains").is_none_or(|most| found as f64 <= most))?;
        }
        if rules.get("uniqueItems") == Some(&Value::Bool(true)) {
            let mut seen = BTreeSet::new();
            for item in items {
                let text = canonical(item).to_string();
                self.spend(text.len())?;
                check("uniqueItems", seen.insert(text))?;
            }
        }
        Ok(())
    }

    fn properties(
        &mut self,
        of: In<'_>,
        rules: &Map<String, Value>,
        map: &Map<String, Value>,
        whole: &Value,
        depth: usize,
    ) -> Checked {
        has_size(rules, map.len(), "minProperties", "maxProperties")?;
        self.required(rules.get("required"), map, "required")?;
        for key in ["dependentRequired", "dependentSchemas", "dependencies"] {
            let dependent = rules.get(key).and_then(Value::as_object).into_iter().flatten();
            for (_, needs) in dependent.filter(|(name, _)| map.contains_key(*name)) {
                match needs {
                    Value::Array(_) => self.required(Some(needs), map, "dependentRequired")?,
                    schema => self.value(of, schema, whole, depth + 1)?,
                }
            }
        }
        let known = rules.get("properties").and_then(Value::as_object);
        let patterns = rules.get("patternProperties").and_then(Value::as_object);
        for (key, value) in map {
            self.spend(0)?;
            let inside = |failure| below(failure, || key.clone());
            if let Some(schema) = rules.get("propertyNames") {
                let name = Value::String(key.clone());
                check("propertyNames", self.fits(of, schema, &name, 0)?).map_err(inside)?;
            }
            let mut described = false;
            if let Some(schema) = known.and_then(|known| known.get(key)) {
                described = true;
                self.value(of, schema, value, 0).map_err(inside)?;
            }
            for (pattern, schema) in patterns.into_iter().flatten() {
                if self.pattern(of, pattern, key)? {
                    described = true;
                    self.value(of, schema, value, 0).map_err(inside)?;
                }
            }
            match rules.get("additionalProperties").filter(|_| !described) {
                Some(Value::Bool(false)) => return Err(inside(failure("additionalProperties"))),
                Some(schema) => self.value(of, schema, value, 0).map_err(inside)?,
                None => {}
            }
        }
        Ok(())
    }

    fn required(
        &mut self,
        names: Option<&Value>,
        map: &Map<String, Value>,
        keyword: &'static str,
    ) -> Checked {
        for key in names.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            self.spend(0)?;
            check(keyword, map.contains_key(key)).map_err(|failure| below(failure, || key.to_owned()))?;
        }
        Ok(())
    }
}

fn failure(keyword: &'static str) -> SchemaFailure {
    SchemaFailure::Wrong(Breach { keyword, steps: Vec::new() })
}

fn wrong(keyword: &'static str) -> Checked {
    Err(failure(keyword))
}

fn check(keyword: &'static str, holds: bool) -> Checked {
    if holds { Ok(()) } else { wrong(keyword) }
}

/// A failure of a value, told by one that holds it.
fn below(mut failure: SchemaFailure, step: impl FnOnce() -> String) -> SchemaFailure {
    if let SchemaFailure::Wrong(breach) = &mut failure {
        breach.steps.push(step());
    }
    failure
}

/// The schema that a reference inside the same declaration leads to.
pub(super) fn local<'s>(root: &'s Value, target: &Value) -> Option<&'s Value> {
    root.pointer(target.as_str()?.strip_prefix('#')?)
}

/// The same schema as providers make it strict: where an object has properties, all of them are required, and no others are
/// allowed. Schemas that only add to another one (`allOf`, `if`, `not`) stay as they are.
pub(super) fn made_strict(mut schema: Value) -> Value {
    let mut open = vec![&mut schema];
    while let Some(schema) = open.pop() {
        let Value::Object(rules) = schema else { continue };
        if let Some(Value::Object(properties)) = rules.get("properties") {
            let names: Vec<Value> = properties.keys().map(|key| Value::from(key.as_str())).collect();
            rules.insert("required".to_owned(), Value::Array(names));
            rules.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        for (key, value) in rules.iter_mut() {
            match (key.as_str(), value) {
                ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(all)) => {
                    open.extend(all.values_mut());
                }
                ("anyOf" | "oneOf" | "prefixItems", Value::Array(all)) => open.extend(all),
                ("items", Value::Array(all)) => open.extend(all),
                ("items" | "additionalProperties", schema @ Value::Object(_)) => open.push(schema),
                _ => {}
            }
        }
    }
    schema
}

fn has_type(types: &Value, value: &Value) -> bool {
    let is = |name: &Value| match (name.as_str(), value) {
        (Some("null"), Value::Null)
        | (Some("boolean"), Value::Bool(_))
        | (Some("number"), Value::Number(_))
        | (Some("string"), Value::String(_))
        | (Some("array"), Value::Array(_))
        | (Some("object"), Value::Object(_)) => true,
        // 1.0 is a whole number.
        (Some("integer"), Value::Number(number)) => {
            number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => false,
    };
    match types {
        Value::Array(all) => all.iter().any(is),
        one => is(one),
    }
}

fn in_range(rules: &Map<String, Value>, number: &Number, python: bool) -> Checked {
    let bounded = |key, holds: fn(Ordering) -> bool| match rules.get(key) {
        Some(Value::Number(bound)) => check(key, compare(number, bound).is_some_and(holds)),
        _ => Ok(()),
    };
    bounded("minimum", Ordering::is_ge)?;
    bounded("maximum", Ordering::is_le)?;
    bounded("exclusiveMinimum", Ordering::is_gt)?;
    bounded("exclusiveMaximum", Ordering::is_lt)?;
    let Some(Value::Number(step)) = rules.get("multipleOf") else { return Ok(()) };
    check("multipleOf", is_multiple(number, step, python))
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// Whole numbers are compared exactly. Nothing where a number has no size.
fn compare(one: &Number, other: &Number) -> Option<Ordering> {
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

/// Whether a number is a multiple of a step that is above 0. 0.3 is one of 0.1: both are taken as they are written.
fn is_multiple(number: &Number, step: &Number, python: bool) -> bool {
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
    const MOST_PLACES: i32 = 30;
    let written = number.to_string();
    let (digits, power) = written.split_once(['e', 'E']).unwrap_or((&written, "0"));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let part = part.trim_end_matches('0');
    let places = i32::try_from(part.len()).ok()?.checked_sub(power.parse().ok()?)?;
    let digits: i128 = format!("{whole}{part}").parse().ok()?;
    match u32::try_from(places) {
        Ok(places) if places <= MOST_PLACES as u32 => Some((digits, places)),
        Err(_) if places >= -MOST_PLACES => {
            Some((digits.checked_mul(10_i128.checked_pow(places.unsigned_abs())?)?, 0))
        }
        _ => None,
    }
}

fn has_size(rules: &Map<String, Value>, size: usize, least: &'static str, most: &'static str) -> Checked {
    let bound = |key: &str| rules.get(key).and_then(Value::as_f64);
    check(least, bound(least).is_none_or(|least| size as f64 >= least))?;
    check(most, bound(most).is_none_or(|most| size as f64 <= most))
}

/// Whether two values are the same in JSON Schema, where 1 and 1.0 are.
fn equal(one: &Value, other: &Value) -> bool {
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
pub(super) fn canonical(value: &Value) -> Value {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ask(schema: Value, a: Value) -> Checked {
        let schema = json!({"type": "object", "properties": {"a": schema}, "required": ["a"], "$defs": {
            "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "additionalProperties": false},
            "circle": {"$ref": "#/$defs/circle"},
        }});
        SchemaChecker::new().check(&schema, &SchemaPatterns::of(&schema)?, &json!({ "a": a }))
    }

    #[test]
    fn python_divides_doubles() {
        let check = |schema: Value, value: Value| {
            let patterns = SchemaPatterns::of(&schema).unwrap();
            SchemaChecker::of_python().check(&schema, &patterns, &value).is_ok()
        };
        assert!(!check(json!({"multipleOf": 0.1}), json!(0.3)));
        assert!(check(json!({"multipleOf": 0.1}), json!(0.5)));
        assert!(check(json!({"multipleOf": 3}), json!(9.0)));
        assert!(!check(json!({"type": "string", "nullable": true}), json!(null)));
    }

    #[test]
    fn keywords_restrict() {
        for (schema, good, bad) in [
            (json!({"type": "integer"}), json!(1.0), json!(1.5)),
            (json!({"type": "number"}), json!(1), json!("1")),
            (json!({"type": ["string", "null"]}), json!(null), json!(true)),
            (json!({"type": "string", "nullable": true}), json!(null), json!(0)),
            (json!({"enum": ["c", 1]}), json!(1.0), json!("f")),
            (json!({"const": {"x": [1]}}), json!({"x": [1.0]}), json!({"x": [2]})),
            (json!({"minimum": 0, "exclusiveMaximum": 1}), json!(0), json!(1)),
            (json!({"multipleOf": 0.1}), json!(0.3), json!(0.35)),
            (json!({"multipleOf": 0.01}), json!(19.99), json!(19.999)),
            (json!({"multipleOf": 7}), json!(70_368_744_177_669_i64), json!(70_368_744_177_671_i64)),
            (json!({"multipleOf": 1e-7}), json!(1e20), json!(1e-8)),
            (
                json!({"minimum": 9_007_199_254_740_993_i64}),
                json!(9_007_199_254_740_993_i64),
                json!(9_007_199_254_740_992_i64),
            ),
            (json!({"maximum": i64::MAX}), json!(i64::MAX), json!(i64::MAX as u64 + 1)),
            (json!({"minLength": 2, "maxLength": 2}), json!("中文"), json!("abc")),
            (json!({"items": {"type": "string"}, "maxItems": 2}), json!(["a"]), json!(["a", 1])),
            (
                json!({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}),
                json!(["a", 1]),
                json!([1]),
            ),
            (json!({"uniqueItems": true}), json!([1, "1"]), json!([1, 1.0])),
            (
                json!({"required": ["x"], "minProperties": 2}),
                json!({"x": 1, "y": 2}),
                json!({"y": 1, "z": 1}),
            ),
            (
                json!({"properties": {"x": true}, "additionalProperties": false}),
                json!({"x": 1}),
                json!({"y": 1}),
            ),
            (json!({"additionalProperties": {"type": "string"}}), json!({"y": "1"}), json!({"y": 1})),
            (json!({"anyOf": [{"type": "string"}, {"minimum": 3}]}), json!(4), json!(2)),
            (json!({"oneOf": [{"type": "integer"}, {"minimum": 3}]}), json!(2), json!(4)),
            (json!({"allOf": [{"type": "integer"}, {"not": {"const": 3}}]}), json!(4), json!(3)),
            (json!({"$ref": "#/$defs/node"}), json!({"next": {"next": {}}}), json!({"next": {"nxt": {}}})),
            (json!({"pattern": "^[A-Z]{2}-[0-9]+$"}), json!("AB-12"), json!("ab-12")),
            (
                json!({"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": false}),
                json!({"x1": 1}),
                json!({"y1": 1}),
            ),
            (json!({"propertyNames": {"maxLength": 2}}), json!({"ab": 1}), json!({"abc": 1})),
            (json!({"dependentRequired": {"x": ["y"]}}), json!({"y": 1}), json!({"x": 1})),
            (json!({"dependencies": {"x": {"required": ["y"]}}}), json!({"x": 1, "y": 1}), json!({"x": 1})),
            (
                json!({"if": {"properties": {"k": {"const": 1}}}, "then": {"required": ["z"]}, "else": {"maxProperties": 1}}),
                json!({"k": 2}),
                json!({"k": 1}),
            ),
            (json!({"contains": {"const": 3}, "maxContains": 1}), json!([1, 3]), json!([3, 3])),
            (json!({"items": [{"type": "string"}], "additionalItems": false}), json!(["a"]), json!(["a", 1])),
        ] {
            assert_eq!(ask(schema.clone(), good), Ok(()), "{schema}");
            assert!(matches!(ask(schema.clone(), bad), Err(SchemaFailure::Wrong(_))), "{schema}");
        }
    }

    #[test]
    fn a_breach_has_a_place_and_a_keyword() {
        let place = |schema: Value, value: Value| match ask(schema, value) {
            Err(SchemaFailure::Wrong(breach)) => format!("{} {}", breach.path(), breach.keyword),
            other => format!("{other:?}"),
        };
        for (schema, value, told) in [
            (json!({"items": {"minimum": 1}}), json!([1, 0]), "/a/1 minimum"),
            (json!({"properties": {"x/y~": {"type": "string"}}}), json!({"x/y~": 1}), "/a/x~1y~0 type"),
            (json!({"required": ["z"]}), json!({}), "/a/z required"),
            (json!({"additionalProperties": false}), json!({"k": 1}), "/a/k additionalProperties"),
            (json!({"anyOf": [{"type": "string"}]}), json!(1), "/a anyOf"),
            (json!(false), json!(1), "/a false"),
        ] {
            assert_eq!(place(schema.clone(), value), told, "{schema}");
        }
    }

    #[test]
    fn strict_schemas_require_all_and_allow_no_others() {
        let schema = json!({"type": "object", "properties": {
            "properties": {"type": "string"},
            "of": {"anyOf": [{"type": "object", "properties": {"x": {"type": "integer"}}}, {"type": "null"}]},
        }});
        let strict = made_strict(schema);
        let valid =
            |value: Value| SchemaChecker::new().check(&strict, &SchemaPatterns::of(&strict).unwrap(), &value);
        assert_eq!(valid(json!({"properties": "p", "of": {"x": 1}})), Ok(()));
        assert_eq!(valid(json!({"properties": "p", "of": null})), Ok(()));
        for bad in [
            json!({"properties": "p"}),
            json!({"properties": "p", "of": {}}),
            json!({"properties": "p", "of": {"x": 1, "y": 1}}),
        ] {
            assert!(matches!(valid(bad.clone()), Err(SchemaFailure::Wrong(_))), "{bad}");
        }
    }

    #[test]
    fn no_schema_exhausts_the_stack() {
        let mut chain = Map::new();
        for at in 0..100_000 {
            chain.insert(format!("d{at}"), json!({"items": {"$ref": format!("#/$defs/d{}", at + 1)}}));
        }
        chain.insert("d100000".to_owned(), json!(true));
        let schema = json!({"$defs": chain, "$ref": "#/$defs/d0"});
        assert!(SchemaPatterns::of(&schema).is_ok());
        let long =
            json!({"$defs": {"a": {"allOf": [{"items": {"$ref": "#/$defs/a"}}]}}, "$ref": "#/$defs/a"});
        let mut value = json!([]);
        for _ in 0..300 {
            value = json!([value]);
        }
        let patterns = SchemaPatterns::of(&long).unwrap();
        assert_eq!(SchemaChecker::new().check(&long, &patterns, &value), Err(SchemaFailure::TooMuch));
    }

    #[test]
    fn what_is_not_checked_is_never_valid() {
        for schema in [
            json!({"pattern": "(?=a)"}),
            json!({"unevaluatedProperties": false}),
            json!({"anyOf": [{"type": "string"}, {"$dynamicRef": "#a"}]}),
            json!({"items": {"$ref": "https://example.com/schema"}}),
            json!({"$ref": "#/$defs/nobody"}),
            json!({"$ref": "#/$defs/circle"}),
            json!({"type": "date"}),
            json!({"minimum": 1, "exclusiveMinimum": true}),
        ] {
            let unsupported = matches!(ask(schema.clone(), json!("x")), Err(SchemaFailure::Unsupported(_)));
            assert!(unsupported, "{schema}");
        }
        assert_eq!(ask(json!({"title": "t", "format": "date", "x-order": 1}), json!("x")), Ok(()));
    }

    #[test]
    fn a_circle_of_references_is_found_without_a_value() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        ] {
            assert!(matches!(SchemaPatterns::of(&schema), Err(SchemaFailure::Unsupported(_))), "{schema}");
        }
        assert!(SchemaPatterns::of(&json!({"type": "object", "properties": {"a": {"$ref": "#"}}})).is_ok());
    }

    #[test]
    fn alternatives_of_alternatives_have_an_end() {
        let mut schema = json!({"type": "object", "properties": {"a": {"$ref": "#"}}});
        schema["anyOf"] = json!([{"$ref": "#/$defs/t"}, {"$ref": "#/$defs/t"}]);
        schema["$defs"] = json!({"t": {"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}}});
        let mut value = json!({"a": 1});
        for _ in 0..40 {
            value = json!({"a": value});
        }
        let patterns = SchemaPatterns::of(&schema).unwrap();
        assert_eq!(SchemaChecker::new().check(&schema, &patterns, &value), Err(SchemaFailure::TooMuch));
    }
}
