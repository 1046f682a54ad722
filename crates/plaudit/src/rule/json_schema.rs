//! JSON Schema validator for tool arguments: the keywords that tool declarations use, in bounded time.
//!
//! A general validator brings dozens of crates, resolves references over the network or on disk, and matches patterns with
//! backtracking. This one knows what providers accept in declarations of tools; a keyword beyond that is reported, so that nothing is
//! taken for valid that was not checked.

use serde_json::{Map, Number, Value};
use std::collections::BTreeSet;

/// How many values and schemas may be looked at for one response: some ten milliseconds.
const MOST_WORK: u64 = 250_000;
/// How many references and alternatives may follow one another on the way to one value.
const DEEPEST: usize = 64;

/// Why a value is not simply valid.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SchemaFailure {
    /// The value breaks the schema.
    Wrong,
    /// The schema has a keyword, or a form of one, that is not checked.
    Unsupported(String),
    /// The value takes too long to check.
    TooMuch,
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
    "default",
    "definitions",
    "deprecated",
    "description",
    "example",
    "examples",
    "format",
    "readOnly",
    "strict",
    "title",
    "writeOnly",
];

/// Checks the arguments of one response against the schemas of its tools.
pub(super) struct SchemaChecker {
    left: u64,
}

impl SchemaChecker {
    pub(super) const fn new() -> Self {
        Self { left: MOST_WORK }
    }

    /// Whether a schema can be checked, as a whole, so that this does not depend on the arguments.
    pub(super) fn support(schema: &Value) -> Checked {
        supported(schema, schema, &mut BTreeSet::new())
    }

    /// Whether arguments are valid by a schema that is supported.
    pub(super) fn check(&mut self, schema: &Value, arguments: &Value) -> Checked {
        self.value(schema, schema, arguments, 0)
    }

    fn spend(&mut self, work: usize) -> Checked {
        self.left = self.left.saturating_sub(1 + work as u64);
        if self.left == 0 { Err(SchemaFailure::TooMuch) } else { Ok(()) }
    }

    fn value(&mut self, root: &Value, schema: &Value, value: &Value, depth: usize) -> Checked {
        self.spend(0)?;
        if depth > DEEPEST {
            return Err(SchemaFailure::Unsupported("a reference that leads to itself".to_owned()));
        }
        let rules = match schema {
            Value::Bool(true) => return Ok(()),
            Value::Object(rules) => rules,
            _ => return Err(SchemaFailure::Wrong),
        };
        if value.is_null() && rules.get("nullable") == Some(&Value::Bool(true)) {
            return Ok(());
        }
        if let Some(target) = rules.get("$ref").and_then(|target| local(root, target)) {
            self.value(root, target, value, depth + 1)?;
        }
        check(rules.get("type").is_none_or(|types| has_type(types, value)))?;
        if let Some(Value::Array(choices)) = rules.get("enum") {
            self.spend(choices.len())?;
            check(choices.iter().any(|choice| equal(choice, value)))?;
        }
        check(rules.get("const").is_none_or(|wanted| equal(wanted, value)))?;
        self.combined(root, rules, value, depth)?;
        match value {
            Value::Number(number) => check(in_range(rules, number)),
            Value::String(text) => {
                self.spend(text.len() / 64)?;
                let bounded = rules.contains_key("minLength") || rules.contains_key("maxLength");
                check(!bounded || has_size(rules, text.chars().count(), "minLength", "maxLength"))
            }
            Value::Array(items) => self.items(root, rules, items),
            Value::Object(map) => self.properties(root, rules, map),
            Value::Null | Value::Bool(_) => Ok(()),
        }
    }

    fn combined(&mut self, root: &Value, rules: &Map<String, Value>, value: &Value, depth: usize) -> Checked {
        let schemas = |key: &str| rules.get(key).and_then(Value::as_array);
        for schema in schemas("allOf").into_iter().flatten() {
            self.value(root, schema, value, depth + 1)?;
        }
        for (key, most) in [("anyOf", usize::MAX), ("oneOf", 1)] {
            let Some(schemas) = schemas(key) else { continue };
            let mut fitting = 0;
            for schema in schemas {
                match self.value(root, schema, value, depth + 1) {
                    Ok(()) => fitting += 1,
                    Err(SchemaFailure::Wrong) => {}
                    Err(other) => return Err(other),
                }
            }
            check((1..=most).contains(&fitting))?;
        }
        match rules.get("not").map(|schema| self.value(root, schema, value, depth + 1)) {
            None | Some(Err(SchemaFailure::Wrong)) => Ok(()),
            Some(Ok(())) => Err(SchemaFailure::Wrong),
            Some(other) => other,
        }
    }

    fn items(&mut self, root: &Value, rules: &Map<String, Value>, items: &[Value]) -> Checked {
        check(has_size(rules, items.len(), "minItems", "maxItems"))?;
        let first = rules.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (at, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(at).or_else(|| rules.get("items")) {
                self.value(root, schema, item, 0)?;
            }
        }
        if rules.get("uniqueItems") == Some(&Value::Bool(true)) {
            let mut seen = BTreeSet::new();
            for item in items {
                let text = canonical(item).to_string();
                self.spend(text.len())?;
                check(seen.insert(text))?;
            }
        }
        Ok(())
    }

    fn properties(&mut self, root: &Value, rules: &Map<String, Value>, map: &Map<String, Value>) -> Checked {
        check(has_size(rules, map.len(), "minProperties", "maxProperties"))?;
        let required = rules.get("required").and_then(Value::as_array).into_iter().flatten();
        for key in required.filter_map(Value::as_str) {
            self.spend(0)?;
            check(map.contains_key(key))?;
        }
        let known = rules.get("properties").and_then(Value::as_object);
        for (key, value) in map {
            let schema = known.and_then(|known| known.get(key)).or_else(|| rules.get("additionalProperties"));
            match schema {
                Some(schema) => self.value(root, schema, value, 0)?,
                None => self.spend(0)?,
            }
        }
        Ok(())
    }
}

fn check(holds: bool) -> Checked {
    if holds { Ok(()) } else { Err(SchemaFailure::Wrong) }
}

/// The schema that a reference inside the same declaration leads to.
fn local<'s>(root: &'s Value, target: &Value) -> Option<&'s Value> {
    root.pointer(target.as_str()?.strip_prefix('#')?)
}

/// Whether every keyword of a schema, and of those in it, is one that is checked or that restricts nothing.
fn supported<'s>(root: &'s Value, schema: &'s Value, seen: &mut BTreeSet<&'s str>) -> Checked {
    let unsupported = |what: &str| Err(SchemaFailure::Unsupported(what.to_owned()));
    let rules = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(rules) => rules,
        _ => return unsupported("something else than an object"),
    };
    for (key, value) in rules {
        let fits = match key.as_str() {
            "type" => {
                let known = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
                known(value) || value.as_array().is_some_and(|all| all.iter().all(known))
            }
            "properties" => {
                let Value::Object(all) = value else { return unsupported(key) };
                all.values().try_for_each(|schema| supported(root, schema, seen))?;
                true
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                let Value::Array(all) = value else { return unsupported(key) };
                all.iter().try_for_each(|schema| supported(root, schema, seen))?;
                true
            }
            "items" | "additionalProperties" | "not" => {
                supported(root, value, seen)?;
                true
            }
            "$ref" => match (value.as_str(), local(root, value)) {
                (Some(name), Some(target)) => {
                    if seen.insert(name) {
                        supported(root, target, seen)?;
                    }
                    true
                }
                _ => false,
            },
            "required" => value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
            "enum" => value.is_array(),
            "const" => true,
            "nullable" | "uniqueItems" => value.is_boolean(),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
            "multipleOf" => value.as_f64().is_some_and(|step| step > 0.0),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
                value.as_f64().is_some_and(|size| size >= 0.0 && size.fract() == 0.0)
            }
            other => ANNOTATIONS.contains(&other) || other.starts_with("x-"),
        };
        if !fits {
            return unsupported(key);
        }
    }
    Ok(())
}

const TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];

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

fn in_range(rules: &Map<String, Value>, number: &Number) -> bool {
    let Some(number) = number.as_f64() else { return false };
    let bound = |key: &str| rules.get(key).and_then(Value::as_f64);
    let whole = |quotient: f64| (quotient - quotient.round()).abs() <= 1e-9 * quotient.abs().max(1.0);
    bound("minimum").is_none_or(|bound| number >= bound)
        && bound("maximum").is_none_or(|bound| number <= bound)
        && bound("exclusiveMinimum").is_none_or(|bound| number > bound)
        && bound("exclusiveMaximum").is_none_or(|bound| number < bound)
        && bound("multipleOf").is_none_or(|step| whole(number / step))
}

fn has_size(rules: &Map<String, Value>, size: usize, least: &str, most: &str) -> bool {
    let bound = |key: &str| rules.get(key).and_then(Value::as_f64);
    bound(least).is_none_or(|least| size as f64 >= least)
        && bound(most).is_none_or(|most| size as f64 <= most)
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
        SchemaChecker::support(&schema)?;
        SchemaChecker::new().check(&schema, &json!({ "a": a }))
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
        ] {
            assert_eq!(ask(schema.clone(), good), Ok(()), "{schema}");
            assert_eq!(ask(schema.clone(), bad), Err(SchemaFailure::Wrong), "{schema}");
        }
        let missing = SchemaChecker::new().check(&json!({"required": ["a"]}), &json!({}));
        assert_eq!(missing, Err(SchemaFailure::Wrong));
    }

    #[test]
    fn what_is_not_checked_is_never_valid() {
        for schema in [
            json!({"pattern": "a"}),
            json!({"if": {"type": "string"}, "then": false}),
            json!({"anyOf": [{"type": "string"}, {"patternProperties": {}}]}),
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
    fn alternatives_of_alternatives_have_an_end() {
        let mut schema = json!({"type": "object", "properties": {"a": {"$ref": "#"}}});
        schema["anyOf"] = json!([{"$ref": "#/$defs/t"}, {"$ref": "#/$defs/t"}]);
        schema["$defs"] = json!({"t": {"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}}});
        let mut value = json!({"a": 1});
        for _ in 0..40 {
            value = json!({"a": value});
        }
        assert_eq!(SchemaChecker::support(&schema), Ok(()));
        assert_eq!(SchemaChecker::new().check(&schema, &value), Err(SchemaFailure::TooMuch));
    }
}
