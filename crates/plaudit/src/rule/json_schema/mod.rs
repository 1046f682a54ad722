//! JSON Schema validator of drafts 4 to 2020-12, in bounded time.
//!
//! The general validators `jsonschema` and `boon` follow the suite of the standard in every row, and neither has a bound: alternatives that refer
//! to each other take twice the time a level of the value, and a chain of references has no end but the stack. This one counts its
//! work, searches patterns in linear time and fetches nothing. A keyword that it does not know is reported, so that nothing
//! is taken for valid that was not checked.

mod compiled;
mod ecma;
mod formats;
mod keywords;
mod resources;
mod strict;
mod uri;
mod values;

pub(super) use compiled::{CompiledSchema, Reading};
pub(super) use resources::Documents;
pub(super) use strict::made_strict;
pub(super) use values::canonical;

use compiled::{
    ContainsRule, ListRules, Needs, NumberRules, ObjectRules, SchemaNode, SchemaReference, Sizes, TextRules,
};
use serde_json::{Map, Number, Value};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// How many values and schemas may be looked at for one response: some ten milliseconds.
const MAX_WORK: u64 = 250_000;
/// How many references and alternatives may follow one another on the way to one value.
const MAX_DEPTH: usize = 64;
/// How many schemas may be open at once. The validator is recursive.
const MAX_OPEN: usize = 512;

/// Why a value is not simply valid.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SchemaError {
    /// The value breaks the schema.
    Wrong(SchemaViolation),
    /// The schema has a keyword, or a form of one, that is not checked.
    Unsupported(String),
    /// The value takes too long to check.
    TooMuch,
}

/// Where a value breaks a schema.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SchemaViolation {
    /// The keyword that it breaks.
    pub(super) keyword: &'static str,
    /// The keys and places that lead to the value, the last one first.
    steps: Vec<String>,
}

impl SchemaViolation {
    /// The JSON pointer of the value: empty for the whole.
    pub(super) fn path(&self) -> String {
        let escaped = |step: &String| format!("/{}", step.replace('~', "~0").replace('/', "~1"));
        self.steps.iter().rev().map(escaped).collect()
    }
}

type Checked = Result<(), SchemaError>;

/// Checks the values of one response against schemas.
pub(super) struct SchemaChecker {
    left: u64,
    open: usize,
    /// The resources that led to the schema that is checked, the outermost first.
    scopes: Vec<usize>,
}

/// Which parts of a value schemas were applied to, for `unevaluatedItems` and `unevaluatedProperties`.
#[derive(Default)]
struct Evaluated<'v> {
    /// Whether a schema around asks.
    wanted: bool,
    /// As many items from the first one on.
    first: usize,
    items: BTreeSet<usize>,
    keys: BTreeSet<&'v str>,
}

impl<'v> Evaluated<'v> {
    fn add(&mut self, mut other: Self) {
        if self.wanted {
            self.first = self.first.max(other.first);
            self.items.append(&mut other.items);
            self.keys.append(&mut other.keys);
        }
    }

    fn key(&mut self, key: &'v str) {
        if self.wanted {
            self.keys.insert(key);
        }
    }
}

impl SchemaChecker {
    pub(super) const fn new() -> Self {
        Self { left: MAX_WORK, open: 0, scopes: Vec::new() }
    }

    /// Whether a value is valid by a schema.
    pub(super) fn check(&mut self, schema: &CompiledSchema, value: &Value) -> Checked {
        self.part(schema, 0, value)
    }

    fn spend(&mut self, work: usize) -> Checked {
        self.left = self.left.saturating_sub(1 + work as u64);
        if self.left == 0 { Err(SchemaError::TooMuch) } else { Ok(()) }
    }

    /// Whether a part of a value is valid.
    fn part(&mut self, of: &CompiledSchema, at: usize, value: &Value) -> Checked {
        self.value(of, at, value, 0, &mut Evaluated::default())
    }

    fn value<'v>(
        &mut self,
        of: &CompiledSchema,
        at: usize,
        value: &'v Value,
        depth: usize,
        seen: &mut Evaluated<'v>,
    ) -> Checked {
        self.spend(0)?;
        if depth > MAX_DEPTH {
            return Err(SchemaError::Unsupported("a reference that leads to itself".to_owned()));
        }
        if self.open == MAX_OPEN {
            return Err(SchemaError::TooMuch);
        }
        let Some(node) = of.nodes.get(at) else { return Ok(()) };
        let enters = self.scopes.last() != Some(&node.resource);
        if enters {
            self.scopes.push(node.resource);
        }
        self.open += 1;
        // What a schema that fails has seen does not count.
        let mut own = Evaluated { wanted: seen.wanted || node.asks(), ..Evaluated::default() };
        let checked = self.by_rules(of, node, value, depth, &mut own);
        self.open -= 1;
        if enters {
            self.scopes.pop();
        }
        if checked.is_ok() && seen.wanted {
            self.spend(own.keys.len() + own.items.len())?;
            seen.add(own);
        }
        checked
    }

    /// Whether a value is valid, where that is only a question.
    fn fits<'v>(
        &mut self,
        of: &CompiledSchema,
        at: usize,
        value: &'v Value,
        depth: usize,
        seen: &mut Evaluated<'v>,
    ) -> Result<bool, SchemaError> {
        match self.value(of, at, value, depth + 1, seen) {
            Ok(()) => Ok(true),
            Err(SchemaError::Wrong(_)) => Ok(false),
            Err(other) => Err(other),
        }
    }

    fn by_rules<'v>(
        &mut self,
        of: &CompiledSchema,
        node: &SchemaNode,
        value: &'v Value,
        depth: usize,
        seen: &mut Evaluated<'v>,
    ) -> Checked {
        check("false", !node.never)?;
        if value.is_null() && node.nullable {
            return Ok(());
        }
        for reference in &node.references {
            let to = self.target(of, reference)?;
            self.value(of, to, value, depth + 1, seen)?;
        }
        check("type", node.types.is_none_or(|types| values::has_type(types, value)))?;
        if let Some(choices) = &node.choices {
            self.spend(choices.len())?;
            check("enum", choices.iter().any(|choice| values::equal(choice, value)))?;
        }
        check("const", node.constant.as_ref().is_none_or(|wanted| values::equal(wanted, value)))?;
        self.combined(of, node, value, depth, seen)?;
        match (value, node) {
            (Value::Number(number), SchemaNode { numbers: Some(rules), .. }) => {
                in_range(rules, number, of.python)
            }
            (Value::String(text), SchemaNode { texts: Some(rules), .. }) => self.text(of, rules, text),
            (Value::Array(items), SchemaNode { lists: Some(rules), .. }) => {
                self.items(of, rules, items, seen)
            }
            (Value::Object(map), SchemaNode { objects: Some(rules), .. }) => {
                self.properties(of, rules, map, value, depth, seen)
            }
            _ => Ok(()),
        }
    }

    /// The schema that a reference leads to: that of the outermost resource that has the anchor, where it is a dynamic one.
    fn target(&mut self, of: &CompiledSchema, reference: &SchemaReference) -> Result<usize, SchemaError> {
        let Some(holders) = reference.dynamic.and_then(|name| of.dynamic.get(name)) else {
            return Ok(reference.to);
        };
        self.spend(self.scopes.len())?;
        let found = self.scopes.iter().find_map(|resource| holders.get(resource));
        Ok(found.copied().unwrap_or(reference.to))
    }

    fn text(&mut self, of: &CompiledSchema, rules: &TextRules, text: &str) -> Checked {
        self.spend(text.len() / 64)?;
        if rules.sizes.least.is_some() || rules.sizes.most.is_some() {
            has_size(&rules.sizes, text.chars().count(), ["minLength", "maxLength"])?;
        }
        if let Some(pattern) = rules.pattern {
            check("pattern", self.pattern(of, pattern, text)?)?;
        }
        if let Some(format) = rules.format {
            self.spend(format.work(text))?;
            check("format", format.fits(text))?;
        }
        Ok(())
    }

    fn pattern(&mut self, of: &CompiledSchema, pattern: usize, text: &str) -> Result<bool, SchemaError> {
        self.spend(text.len() / 16)?;
        let found = of.patterns.get(pattern).map_or(Ok(None), |pattern| pattern.search(text));
        found.map(|found| found.is_some()).map_err(|_| SchemaError::TooMuch)
    }

    fn combined<'v>(
        &mut self,
        of: &CompiledSchema,
        node: &SchemaNode,
        value: &'v Value,
        depth: usize,
        seen: &mut Evaluated<'v>,
    ) -> Checked {
        for schema in &node.all_of {
            self.value(of, *schema, value, depth + 1, seen)?;
        }
        for (key, most, schemas) in &node.some_of {
            let mut fitting = 0;
            for schema in schemas {
                fitting += usize::from(self.fits(of, *schema, value, depth, seen)?);
            }
            check(key, (1..=*most).contains(&fitting))?;
        }
        if let Some(schema) = node.not {
            check("not", !self.fits(of, schema, value, depth, &mut Evaluated::default())?)?;
        }
        if let Some(condition) = &node.condition {
            let holds = self.fits(of, condition.when, value, depth, seen)?;
            let branch = if holds { condition.then } else { condition.otherwise };
            if let Some(schema) = branch {
                self.value(of, schema, value, depth + 1, seen)?;
            }
        }
        Ok(())
    }

    fn items(
        &mut self,
        of: &CompiledSchema,
        rules: &ListRules,
        items: &[Value],
        seen: &mut Evaluated<'_>,
    ) -> Checked {
        has_size(&rules.sizes, items.len(), ["minItems", "maxItems"])?;
        for (at, item) in items.iter().enumerate() {
            let Some(schema) = rules.first.get(at).copied().or(rules.rest) else { break };
            self.part(of, schema, item).map_err(|failure| below(failure, || at.to_string()))?;
        }
        seen.first = seen.first.max(if rules.rest.is_some() { usize::MAX } else { rules.first.len() });
        if let Some(contains) = &rules.contains {
            self.contains(of, contains, items, seen)?;
        }
        if rules.unique {
            let mut known = BTreeSet::new();
            for item in items {
                let text = canonical(item).to_string();
                self.spend(text.len())?;
                check("uniqueItems", known.insert(text))?;
            }
        }
        if let Some(schema) = rules.unevaluated {
            for (at, item) in items.iter().enumerate().skip(seen.first) {
                if !seen.items.contains(&at) {
                    self.last(of, schema, item, "unevaluatedItems")
                        .map_err(|failure| below(failure, || at.to_string()))?;
                }
            }
            seen.first = usize::MAX;
        }
        Ok(())
    }

    fn contains(
        &mut self,
        of: &CompiledSchema,
        contains: &ContainsRule,
        items: &[Value],
        seen: &mut Evaluated<'_>,
    ) -> Checked {
        let mut found = 0;
        for (at, item) in items.iter().enumerate() {
            // Counted as one that is not under the same value: the depth begins anew.
            if self.asked(of, contains.schema, item)? {
                found += 1;
                if contains.evaluates && seen.wanted {
                    seen.items.insert(at);
                }
            }
        }
        let sizes = Sizes { least: Some(contains.sizes.least.unwrap_or(1.0)), most: contains.sizes.most };
        has_size(&sizes, found, ["contains", "maxContains"])
    }

    /// Whether a part of a value is valid, where that is only a question.
    fn asked(&mut self, of: &CompiledSchema, at: usize, value: &Value) -> Result<bool, SchemaError> {
        self.fits(of, at, value, 0, &mut Evaluated::default())
    }

    /// Checks a part by the schema for what no other one was applied to. Where that is `false` the keyword says more.
    fn last(&mut self, of: &CompiledSchema, at: usize, value: &Value, keyword: &'static str) -> Checked {
        check(keyword, !of.nodes.get(at).is_some_and(|node| node.never))?;
        self.part(of, at, value)
    }

    fn properties<'v>(
        &mut self,
        of: &CompiledSchema,
        rules: &ObjectRules,
        map: &'v Map<String, Value>,
        whole: &'v Value,
        depth: usize,
        seen: &mut Evaluated<'v>,
    ) -> Checked {
        has_size(&rules.sizes, map.len(), ["minProperties", "maxProperties"])?;
        self.required(&rules.required, map, "required")?;
        for (_, needs) in rules.dependent.iter().filter(|(name, _)| map.contains_key(name)) {
            match needs {
                Needs::Names(names) => self.required(names, map, "dependentRequired")?,
                Needs::Schema(schema) => self.value(of, *schema, whole, depth + 1, seen)?,
            }
        }
        for (key, value) in map {
            self.spend(0)?;
            let inside = |failure| below(failure, || key.clone());
            if let Some(schema) = rules.names {
                let name = Value::String(key.clone());
                check("propertyNames", self.asked(of, schema, &name)?).map_err(inside)?;
            }
            let mut described = false;
            if let Some(schema) = rules.properties.get(key) {
                described = true;
                self.part(of, *schema, value).map_err(inside)?;
            }
            for (pattern, schema) in &rules.patterns {
                if self.pattern(of, *pattern, key)? {
                    described = true;
                    self.part(of, *schema, value).map_err(inside)?;
                }
            }
            if let Some(schema) = rules.rest.filter(|_| !described) {
                described = true;
                self.last(of, schema, value, "additionalProperties").map_err(inside)?;
            }
            if described {
                seen.key(key);
            }
        }
        if let Some(schema) = rules.unevaluated {
            for (key, value) in map {
                if !seen.keys.contains(key.as_str()) {
                    self.last(of, schema, value, "unevaluatedProperties")
                        .map_err(|failure| below(failure, || key.clone()))?;
                    seen.key(key);
                }
            }
        }
        Ok(())
    }

    fn required(&mut self, names: &[String], map: &Map<String, Value>, keyword: &'static str) -> Checked {
        for key in names {
            self.spend(0)?;
            check(keyword, map.contains_key(key)).map_err(|failure| below(failure, || key.clone()))?;
        }
        Ok(())
    }
}

fn in_range(rules: &NumberRules, number: &Number, python: bool) -> Checked {
    let bounded = |key, bound: &Option<Number>, holds: fn(Ordering) -> bool| match bound {
        Some(bound) => check(key, values::compare(number, bound).is_some_and(holds)),
        None => Ok(()),
    };
    bounded("minimum", &rules.minimum, Ordering::is_ge)?;
    bounded("maximum", &rules.maximum, Ordering::is_le)?;
    bounded("exclusiveMinimum", &rules.above, Ordering::is_gt)?;
    bounded("exclusiveMaximum", &rules.below, Ordering::is_lt)?;
    let Some(step) = &rules.step else { return Ok(()) };
    check("multipleOf", values::is_multiple(number, step, python))
}

fn has_size(sizes: &Sizes, size: usize, [least, most]: [&'static str; 2]) -> Checked {
    check(least, sizes.least.is_none_or(|least| size as f64 >= least))?;
    check(most, sizes.most.is_none_or(|most| size as f64 <= most))
}

fn failure(keyword: &'static str) -> SchemaError {
    SchemaError::Wrong(SchemaViolation { keyword, steps: Vec::new() })
}

fn wrong(keyword: &'static str) -> Checked {
    Err(failure(keyword))
}

fn check(keyword: &'static str, holds: bool) -> Checked {
    if holds { Ok(()) } else { wrong(keyword) }
}

/// A failure of a value, told by one that holds it.
fn below(mut failure: SchemaError, step: impl FnOnce() -> String) -> SchemaError {
    if let SchemaError::Wrong(breach) = &mut failure {
        breach.steps.push(step());
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(schema: &Value) -> Result<CompiledSchema, SchemaError> {
        CompiledSchema::read(schema, Reading::default())
    }

    fn ask(schema: Value, a: Value) -> Checked {
        let schema = json!({"type": "object", "properties": {"a": schema}, "required": ["a"], "$defs": {
            "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "additionalProperties": false},
            "circle": {"$ref": "#/$defs/circle"},
        }});
        SchemaChecker::new().check(&read(&schema)?, &json!({ "a": a }))
    }

    #[test]
    fn python_divides_doubles() {
        let check = |schema: Value, value: Value| {
            let python = Reading { python: true, ..Reading::default() };
            SchemaChecker::new().check(&CompiledSchema::read(&schema, python).unwrap(), &value).is_ok()
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
            assert!(matches!(ask(schema.clone(), bad), Err(SchemaError::Wrong(_))), "{schema}");
        }
    }

    #[test]
    fn a_breach_has_a_place_and_a_keyword() {
        let place = |schema: Value, value: Value| match ask(schema, value) {
            Err(SchemaError::Wrong(breach)) => format!("{} {}", breach.path(), breach.keyword),
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
        let valid = |value: Value| SchemaChecker::new().check(&read(&strict).unwrap(), &value);
        assert_eq!(valid(json!({"properties": "p", "of": {"x": 1}})), Ok(()));
        assert_eq!(valid(json!({"properties": "p", "of": null})), Ok(()));
        for bad in [
            json!({"properties": "p"}),
            json!({"properties": "p", "of": {}}),
            json!({"properties": "p", "of": {"x": 1, "y": 1}}),
        ] {
            assert!(matches!(valid(bad.clone()), Err(SchemaError::Wrong(_))), "{bad}");
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
        assert!(read(&schema).is_ok());
        let long =
            json!({"$defs": {"a": {"allOf": [{"items": {"$ref": "#/$defs/a"}}]}}, "$ref": "#/$defs/a"});
        let mut value = json!([]);
        for _ in 0..300 {
            value = json!([value]);
        }
        assert_eq!(SchemaChecker::new().check(&read(&long).unwrap(), &value), Err(SchemaError::TooMuch));
    }

    #[test]
    fn what_is_not_checked_is_never_valid() {
        for schema in [
            json!({"pattern": "(?=a)"}),
            json!({"anyOf": [{"type": "string"}, {"$dynamicRef": "#a"}]}),
            json!({"items": {"$ref": "https://example.com/schema"}}),
            json!({"$ref": "#/$defs/nobody"}),
            json!({"$ref": "#/$defs/circle"}),
            json!({"type": "date"}),
            json!({"minimum": 1, "exclusiveMinimum": "1"}),
        ] {
            let unsupported = matches!(ask(schema.clone(), json!("x")), Err(SchemaError::Unsupported(_)));
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
            assert!(matches!(read(&schema), Err(SchemaError::Unsupported(_))), "{schema}");
        }
        assert!(read(&json!({"type": "object", "properties": {"a": {"$ref": "#"}}})).is_ok());
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
        assert_eq!(SchemaChecker::new().check(&read(&schema).unwrap(), &value), Err(SchemaError::TooMuch));
    }
}
