//! Compiled schemas: every keyword known and read, every reference resolved, every pattern compiled.

use super::ecma;
use super::formats::Format;
use super::keywords::{self, About};
use super::resources::{Documents, Resources, SchemaDraft};
use super::values;
use super::{SchemaChecker, SchemaError};
use crate::rule::pattern::Searcher;
use serde_json::{Map, Number, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The most patterns of a schema.
const MAX_PATTERNS: usize = 256;

/// How schemas are read.
#[derive(Clone, Copy, Default)]
pub(in crate::rule) struct Reading<'s> {
    /// As Python's `jsonschema` does it: patterns are Python's, `nullable` is no keyword, and `multipleOf` divides doubles.
    pub(in crate::rule) python: bool,
    /// Whether `format` restricts.
    pub(in crate::rule) formats: bool,
    /// Other schemas that references may lead to, by their URI.
    pub(in crate::rule) documents: Option<&'s Documents>,
}

/// A schema of which every keyword is known.
pub(in crate::rule) struct CompiledSchema {
    /// The first one is the root.
    pub(super) nodes: Vec<SchemaNode>,
    pub(super) patterns: Vec<Searcher>,
    /// For the name of an anchor that `$dynamicRef` finds, the schema that has it in each resource.
    pub(super) dynamic: Vec<BTreeMap<usize, usize>>,
    pub(super) python: bool,
}

/// One schema. Others are named by their number.
#[derive(Default)]
pub(super) struct SchemaNode {
    pub(super) resource: usize,
    /// The schema `false`.
    pub(super) never: bool,
    pub(super) nullable: bool,
    pub(super) references: Vec<SchemaReference>,
    /// As bits.
    pub(super) types: Option<u8>,
    pub(super) choices: Option<Vec<Value>>,
    pub(super) constant: Option<Value>,
    pub(super) all_of: Vec<usize>,
    /// `anyOf` and `oneOf`, with how many may fit at most.
    pub(super) some_of: Vec<(&'static str, usize, Vec<usize>)>,
    pub(super) not: Option<usize>,
    pub(super) condition: Option<Condition>,
    pub(super) numbers: Option<Box<NumberRules>>,
    pub(super) texts: Option<Box<TextRules>>,
    pub(super) lists: Option<Box<ListRules>>,
    pub(super) objects: Option<Box<ObjectRules>>,
}

pub(super) struct SchemaReference {
    pub(super) to: usize,
    /// Which of the names in `dynamic` is looked for in the resources that led here.
    pub(super) dynamic: Option<usize>,
}

pub(super) struct Condition {
    pub(super) when: usize,
    pub(super) then: Option<usize>,
    pub(super) otherwise: Option<usize>,
}

pub(super) struct NumberRules {
    pub(super) minimum: Option<Number>,
    pub(super) maximum: Option<Number>,
    pub(super) above: Option<Number>,
    pub(super) below: Option<Number>,
    pub(super) step: Option<Number>,
}

/// Bounds of a size.
pub(super) struct Sizes {
    pub(super) least: Option<f64>,
    pub(super) most: Option<f64>,
}

pub(super) struct TextRules {
    pub(super) sizes: Sizes,
    pub(super) pattern: Option<usize>,
    pub(super) format: Option<Format>,
}

pub(super) struct ListRules {
    pub(super) sizes: Sizes,
    pub(super) first: Vec<usize>,
    pub(super) rest: Option<usize>,
    pub(super) contains: Option<ContainsRule>,
    pub(super) unique: bool,
    pub(super) unevaluated: Option<usize>,
}

pub(super) struct ContainsRule {
    pub(super) schema: usize,
    pub(super) sizes: Sizes,
    /// Whether what is found counts for `unevaluatedItems`.
    pub(super) evaluates: bool,
}

pub(super) struct ObjectRules {
    pub(super) sizes: Sizes,
    pub(super) required: Vec<String>,
    pub(super) dependent: Vec<(String, Needs)>,
    pub(super) names: Option<usize>,
    pub(super) properties: BTreeMap<String, usize>,
    /// Patterns of names with their schemas.
    pub(super) patterns: Vec<(usize, usize)>,
    pub(super) rest: Option<usize>,
    pub(super) unevaluated: Option<usize>,
}

pub(super) enum Needs {
    Names(Vec<String>),
    Schema(usize),
}

impl SchemaNode {
    /// Whether it has a keyword for what no other one was applied to.
    pub(super) fn asks(&self) -> bool {
        self.lists.as_ref().is_some_and(|rules| rules.unevaluated.is_some())
            || self.objects.as_ref().is_some_and(|rules| rules.unevaluated.is_some())
    }
}

impl CompiledSchema {
    /// Reads a schema as a whole, so that whether it can be checked does not depend on the value. What stands in definitions
    /// is read where a reference leads to it.
    pub(in crate::rule) fn read(root: &Value, reading: Reading<'_>) -> Result<Self, SchemaError> {
        let (none, nothing) = (Documents::new(), Map::new());
        let documents = reading.documents.unwrap_or(&none);
        let mut compiler = Compiler {
            reading,
            nothing: &nothing,
            resources: Resources::of(root, documents),
            nodes: Vec::new(),
            known: BTreeMap::new(),
            open: Vec::new(),
            patterns: Vec::new(),
            by_pattern: BTreeMap::new(),
            dynamic: Vec::new(),
            by_name: BTreeMap::new(),
            entered: BTreeSet::new(),
            holders: BTreeMap::new(),
        };
        compiler.node(root, 0);
        while let Some((at, schema)) = compiler.open.pop() {
            compiler.fill(at, schema)?;
        }
        let Compiler { nodes, patterns, dynamic, .. } = compiler;
        let compiled = Self { nodes, patterns, dynamic, python: reading.python };
        // A reference that leads back to itself cannot be checked for any value.
        match SchemaChecker::new().check(&compiled, &Value::Null) {
            Err(SchemaError::Unsupported(what)) => unsupported(what),
            _ => Ok(compiled),
        }
    }
}

struct Compiler<'s> {
    reading: Reading<'s>,
    nothing: &'s Map<String, Value>,
    resources: Resources<'s>,
    nodes: Vec<SchemaNode>,
    /// The numbers of the schemas, by their place.
    known: BTreeMap<*const Value, usize>,
    /// Schemas that have a number and are not yet read.
    open: Vec<(usize, &'s Value)>,
    patterns: Vec<Searcher>,
    by_pattern: BTreeMap<&'s str, usize>,
    dynamic: Vec<BTreeMap<usize, usize>>,
    by_name: BTreeMap<&'s str, usize>,
    entered: BTreeSet<usize>,
    /// Schemas with anchors that nothing has looked for, by the name of the anchor.
    holders: BTreeMap<&'s str, Vec<(usize, &'s Value)>>,
}

fn unsupported<T>(what: impl Into<String>) -> Result<T, SchemaError> {
    Err(SchemaError::Unsupported(what.into()))
}

impl<'s> Compiler<'s> {
    /// The number of a schema inside another one of a resource.
    fn node(&mut self, schema: &'s Value, around: usize) -> usize {
        let next = self.nodes.len();
        let at = *self.known.entry(schema).or_insert(next);
        if at == next {
            let resource = self.resources.inside(schema, around);
            self.nodes.push(SchemaNode { resource, ..SchemaNode::default() });
            self.open.push((at, schema));
            self.enter(resource);
        }
        at
    }

    fn fill(&mut self, at: usize, schema: &'s Value) -> Result<(), SchemaError> {
        let rules = match schema {
            Value::Bool(always) => {
                self.nodes[at].never = !always;
                return Ok(());
            }
            Value::Object(rules) => rules,
            _ => return unsupported("something else than an object"),
        };
        let resource = self.nodes[at].resource;
        let dialect = self.resources.all[resource].dialect;
        let mut node = SchemaNode { resource, ..SchemaNode::default() };
        if dialect.draft.is_alone(rules) {
            node.references = self.references(rules, resource)?;
            self.nodes[at] = node;
            return Ok(());
        }
        let mut about = Vec::with_capacity(rules.len());
        for (key, value) in rules {
            match keywords::find(key) {
                Some((form, kind)) if form.fits(value) => about.push(kind),
                None if key == "id" && dialect.draft == SchemaDraft::D4 => {}
                _ => return unsupported(key),
            }
        }
        node.references = self.references(rules, resource)?;
        node.nullable = !self.reading.python && rules.get("nullable") == Some(&Value::Bool(true));
        let list = |key: &str| rules.get(key).and_then(Value::as_array);
        for schema in list("allOf").into_iter().flatten() {
            node.all_of.push(self.node(schema, resource));
        }
        for (key, most) in [("anyOf", usize::MAX), ("oneOf", 1)] {
            let Some(all) = list(key) else { continue };
            node.some_of.push((key, most, all.iter().map(|schema| self.node(schema, resource)).collect()));
        }
        let mut one = |key: &str| rules.get(key).map(|schema| self.node(schema, resource));
        node.not = one("not");
        node.condition = one("if").map(|when| Condition { when, then: one("then"), otherwise: one("else") });
        // Without the vocabulary of validation these restrict nothing.
        let limits = if dialect.validates { rules } else { self.nothing };
        node.types = limits.get("type").map(values::type_bits);
        node.choices = limits.get("enum").and_then(Value::as_array).cloned();
        node.constant = limits.get("const").cloned();
        if about.contains(&About::Numbers) {
            node.numbers = Some(number_rules(limits));
        }
        if about.contains(&About::Texts) {
            node.texts = self.text_rules(rules, limits, dialect.formats)?;
        }
        if about.contains(&About::Lists) {
            node.lists = Some(self.list_rules(rules, limits, resource));
        }
        if about.contains(&About::Objects) {
            node.objects = Some(self.object_rules(rules, limits, resource)?);
        }
        self.nodes[at] = node;
        Ok(())
    }

    fn references(
        &mut self,
        rules: &'s Map<String, Value>,
        resource: usize,
    ) -> Result<Vec<SchemaReference>, SchemaError> {
        let mut all = Vec::new();
        for key in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let Some(written) = rules.get(key) else { continue };
            let Some(target) = written.as_str().and_then(|text| self.resources.find(resource, text)) else {
                return unsupported(key);
            };
            let recursive =
                key == "$recursiveRef" && self.resources.all[target.resource].dynamic.contains_key("");
            let name = match key {
                "$dynamicRef" => target.dynamic,
                _ => recursive.then_some(""),
            };
            let to = self.node(target.schema, target.resource);
            let dynamic = name.map(|name| self.dynamic(name));
            all.push(SchemaReference { to, dynamic });
        }
        Ok(all)
    }

    /// The number of an anchor's name.
    fn dynamic(&mut self, name: &'s str) -> usize {
        if let Some(known) = self.by_name.get(name) {
            return *known;
        }
        let at = self.dynamic.len();
        self.dynamic.push(BTreeMap::new());
        self.by_name.insert(name, at);
        for (resource, schema) in self.holders.remove(name).into_iter().flatten() {
            let node = self.node(schema, resource);
            self.dynamic[at].insert(resource, node);
        }
        at
    }

    /// Of a resource that something leads to, reads the schemas with anchors that `$dynamicRef` looks for.
    fn enter(&mut self, resource: usize) {
        if !self.entered.insert(resource) {
            return;
        }
        let anchors = &self.resources.all[resource].dynamic;
        let anchors: Vec<(&str, &Value)> = anchors.iter().map(|(name, schema)| (*name, *schema)).collect();
        for (name, schema) in anchors {
            match self.by_name.get(name) {
                Some(&at) => {
                    let node = self.node(schema, resource);
                    self.dynamic[at].insert(resource, node);
                }
                None => self.holders.entry(name).or_default().push((resource, schema)),
            }
        }
    }

    fn pattern(&mut self, key: &str, pattern: &'s str) -> Result<usize, SchemaError> {
        if let Some(known) = self.by_pattern.get(pattern) {
            return Ok(*known);
        }
        if self.patterns.len() == MAX_PATTERNS {
            return unsupported(key);
        }
        let compiled = match self.reading.python {
            true => Searcher::new(pattern),
            false => Searcher::new(&ecma::translated(pattern)),
        };
        let compiled = compiled.map_err(|cause| {
            SchemaError::Unsupported(format!("{key} ({})", cause.split(':').next().unwrap_or("")))
        })?;
        self.patterns.push(compiled);
        self.by_pattern.insert(pattern, self.patterns.len() - 1);
        Ok(self.patterns.len() - 1)
    }

    fn text_rules(
        &mut self,
        rules: &'s Map<String, Value>,
        limits: &'s Map<String, Value>,
        formats: bool,
    ) -> Result<Option<Box<TextRules>>, SchemaError> {
        let sizes = sizes(limits, "minLength", "maxLength");
        let pattern = limits.get("pattern").and_then(Value::as_str);
        let pattern = pattern.map(|pattern| self.pattern("pattern", pattern)).transpose()?;
        let asserted = formats || self.reading.formats;
        let format = rules.get("format").and_then(Value::as_str).filter(|_| asserted);
        let format = format.and_then(Format::named);
        // `format` alone restricts nothing as a rule.
        let some = sizes.least.is_some() || sizes.most.is_some() || pattern.is_some() || format.is_some();
        Ok(some.then(|| Box::new(TextRules { sizes, pattern, format })))
    }

    fn list_rules(
        &mut self,
        rules: &'s Map<String, Value>,
        limits: &'s Map<String, Value>,
        resource: usize,
    ) -> Box<ListRules> {
        // A list is the form of older drafts for `prefixItems`.
        let (first, rest) = match (rules.get("prefixItems"), rules.get("items")) {
            (_, Some(Value::Array(first))) => (first.as_slice(), rules.get("additionalItems")),
            (Some(Value::Array(first)), rest) => (first.as_slice(), rest),
            (_, rest) => (&[][..], rest),
        };
        let first: Vec<usize> = first.iter().map(|schema| self.node(schema, resource)).collect();
        let rest = rest.map(|schema| self.node(schema, resource));
        let draft = self.resources.all[resource].dialect.draft;
        let contains = rules.get("contains").map(|schema| ContainsRule {
            schema: self.node(schema, resource),
            sizes: sizes(limits, "minContains", "maxContains"),
            evaluates: draft >= SchemaDraft::D2020,
        });
        let unevaluated = rules.get("unevaluatedItems").map(|schema| self.node(schema, resource));
        let sizes = sizes(limits, "minItems", "maxItems");
        let unique = limits.get("uniqueItems") == Some(&Value::Bool(true));
        Box::new(ListRules { sizes, first, rest, contains, unique, unevaluated })
    }

    fn object_rules(
        &mut self,
        rules: &'s Map<String, Value>,
        limits: &'s Map<String, Value>,
        resource: usize,
    ) -> Result<Box<ObjectRules>, SchemaError> {
        let mut one = |key: &str| rules.get(key).map(|schema| self.node(schema, resource));
        let (names, rest) = (one("propertyNames"), one("additionalProperties"));
        let unevaluated = one("unevaluatedProperties");
        let map = |key: &str| rules.get(key).and_then(Value::as_object).into_iter().flatten();
        let properties: BTreeMap<String, usize> =
            map("properties").map(|(key, schema)| (key.clone(), self.node(schema, resource))).collect();
        let mut patterns = Vec::new();
        for (pattern, schema) in map("patternProperties") {
            patterns.push((self.pattern("patternProperties", pattern)?, self.node(schema, resource)));
        }
        let mut dependent = Vec::new();
        for key in ["dependentRequired", "dependentSchemas", "dependencies"] {
            for (name, needs) in map(key) {
                let needs = match needs {
                    Value::Array(_) => Needs::Names(texts(Some(needs))),
                    schema => Needs::Schema(self.node(schema, resource)),
                };
                dependent.push((name.clone(), needs));
            }
        }
        let required = texts(limits.get("required"));
        let sizes = sizes(limits, "minProperties", "maxProperties");
        Ok(Box::new(ObjectRules {
            sizes,
            required,
            dependent,
            names,
            properties,
            patterns,
            rest,
            unevaluated,
        }))
    }
}

/// The texts of a list.
fn texts(value: Option<&Value>) -> Vec<String> {
    let all = value.and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn sizes(limits: &Map<String, Value>, least: &str, most: &str) -> Sizes {
    let bound = |key: &str| limits.get(key).and_then(Value::as_f64);
    Sizes { least: bound(least), most: bound(most) }
}

fn number_rules(limits: &Map<String, Value>) -> Box<NumberRules> {
    let number = |key: &str| match limits.get(key) {
        Some(Value::Number(number)) => Some(number.clone()),
        _ => None,
    };
    // Draft 4 says by a flag that the bound itself is left out.
    let strict = |key: &str| limits.get(key) == Some(&Value::Bool(true));
    let bound = |key: &str, flag: &str| match (number(key), strict(flag)) {
        (bound, true) => (None, bound),
        (bound, false) => (bound, number(flag)),
    };
    let (minimum, above) = bound("minimum", "exclusiveMinimum");
    let (maximum, below) = bound("maximum", "exclusiveMaximum");
    let step = number("multipleOf");
    Box::new(NumberRules { minimum, maximum, above, below, step })
}
