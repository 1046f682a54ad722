//! Schema checker: checks a recipe tree against a JSON schema and reports all errors with paths and lines.
//!
//! The schemas are those that `schemars` derives from the structs that are filled from the tree, so this knows the
//! part of JSON Schema 2020-12 that it writes. A general validator would do, but its messages are for the writers of
//! schemas; these are for the writers of recipes.

use serde_json::{Map, Value};

use super::error::{RecipeError, closest};
use super::path::{PathTracker, shorten};
use super::tree::{Node, Tree};

/// What people write for a choice, and what it is called here.
const SYNONYMS: [(&str, &str); 4] = [("average", "mean"), ("avg", "mean"), ("add", "sum"), ("total", "sum")];

/// A tree is at most 32 deep and each level takes a few steps through references and alternatives; a schema that
/// needs more refers to itself.
const STEPS_MAX: usize = 256;

/// Adds every error of `node` against `schema` to `errors`. The node lies at the dotted `path`, empty for a whole
/// recipe; references are looked up in the `$defs` of the same schema.
pub fn check(node: &Node, schema: &Value, path: &str, errors: &mut Vec<RecipeError>) {
    let mut checker = Checker { root: schema, tracker: PathTracker::new(path), steps: 0 };
    checker.any(node, schema);
    errors.append(&mut checker.tracker.errors);
}

struct Checker<'s> {
    root: &'s Value,
    tracker: PathTracker,
    steps: usize,
}

impl<'s> Checker<'s> {
    fn any(&mut self, node: &Node, schema: &'s Value) {
        let rules = match schema {
            Value::Bool(true) => return,
            Value::Object(rules) if self.steps < STEPS_MAX => rules,
            Value::Object(_) => return self.broken(node, "it refers to itself without end"),
            _ => return self.broken(node, "it allows nothing here"),
        };
        self.steps += 1;
        self.object(node, rules);
        self.steps -= 1;
    }

    fn object(&mut self, node: &Node, rules: &'s Map<String, Value>) {
        if let Some(target) = rules.get("$ref") {
            match target.as_str().and_then(|target| self.root.pointer(target.strip_prefix('#')?)) {
                Some(schema) => self.any(node, schema),
                None => self.broken(node, "it lacks a definition"),
            }
        }
        let Some(choices) = choices(rules) else { return self.shape(node, rules) };
        if !choices.iter().any(|choice| **choice == node.to_value()) {
            self.wrong_choice(node, &choices);
        }
    }

    fn shape(&mut self, node: &Node, rules: &'s Map<String, Value>) {
        if let Some(wanted) = rules.get("type") {
            let wanted: Vec<&str> = match wanted {
                Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
                single => single.as_str().into_iter().collect(),
            };
            if !wanted.iter().any(|kind| is_kind(node, kind)) {
                return self.wrong_type(node, &wanted);
            }
        }
        for schema in rules.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.any(node, schema);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(schemas) = rules.get(keyword).and_then(Value::as_array) {
                self.alternatives(node, schemas);
            }
        }
        match &node.value {
            Tree::Int(value) => self.range(node, *value as f64, None, rules),
            Tree::Float(value) => self.range(node, *value, None, rules),
            Tree::Text(text) => self.size(node, text.chars().count(), "characters", "Length", rules),
            Tree::List(items) => self.list(node, items, rules),
            Tree::Map(_) => self.map(node, rules),
            Tree::Null | Tree::Bool(_) => {}
        }
    }

    /// One of several schemas must hold. Where none does, the one that fits best tells what is wrong, since that is
    /// the one that was probably meant.
    fn alternatives(&mut self, node: &Node, schemas: &'s [Value]) {
        let before = self.tracker.errors.len();
        let here = self.tracker.path();
        let mut best: Option<(bool, usize, Vec<RecipeError>)> = None;
        let mut wanted: Vec<&str> = Vec::new();
        for schema in schemas {
            self.any(node, schema);
            let found = self.tracker.errors.split_off(before);
            if found.is_empty() {
                return;
            }
            let other_kind = found.iter().any(|error| error.path == here && error.code == "recipe.type");
            wanted.extend(self.kind_of(schema));
            if best.as_ref().is_none_or(|(kind, count, _)| (other_kind, found.len()) < (*kind, *count)) {
                best = Some((other_kind, found.len(), found));
            }
        }
        match best {
            Some((true, _, _)) if wanted.len() == schemas.len() => self.wrong_type(node, &wanted),
            Some((_, _, mut found)) => self.tracker.errors.append(&mut found),
            None => self.broken(node, "it has no alternatives"),
        }
    }

    /// The one type that a schema asks for, also by one reference. Choices have none: they are told as choices.
    fn kind_of(&self, schema: &'s Value) -> Option<&'s str> {
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
        let rules = target.map_or(Some(schema), |target| self.root.pointer(target))?.as_object()?;
        if choices(rules).is_some() { None } else { rules.get("type")?.as_str() }
    }

    fn list(&mut self, node: &Node, items: &[Node], rules: &'s Map<String, Value>) {
        self.size(node, items.len(), "items", "Items", rules);
        let first = rules.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(index).or_else(|| rules.get("items")) {
                self.tracker.enter_index(index);
                self.any(item, schema);
                self.tracker.leave();
            }
        }
    }

    fn map(&mut self, node: &Node, rules: &'s Map<String, Value>) {
        let properties = rules.get("properties").and_then(Value::as_object);
        for (key, value) in node.entries() {
            if self.tracker.is_full() {
                return;
            }
            self.tracker.enter_key(&key.name);
            let known = properties.and_then(|properties| properties.get(&key.name));
            match known.or_else(|| rules.get("additionalProperties")) {
                Some(Value::Bool(false)) if known.is_none() => {
                    self.unknown_key(&key.name, key.line, properties)
                }
                Some(schema) => self.any(value, schema),
                None => {}
            }
            self.tracker.leave();
        }
        for name in
            rules.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
        {
            if node.get(name).is_none() {
                self.tracker.enter_key(name);
                self.tracker.error("recipe.missing_key", node.line, "this key is missing", None);
                self.tracker.leave();
            }
        }
    }

    fn unknown_key(&mut self, name: &str, line: Option<u32>, properties: Option<&Map<String, Value>>) {
        let known: Vec<&str> = properties.into_iter().flat_map(Map::keys).map(String::as_str).collect();
        let fix = match closest(name, known.iter().copied()) {
            Some(close) => format!("did you mean \"{close}\"?"),
            None if known.is_empty() => "no keys are known here".to_owned(),
            None => format!("the known keys are {}", known.join(", ")),
        };
        self.tracker.error("recipe.unknown_key", line, "unknown key", Some(&fix));
    }

    fn wrong_type(&mut self, node: &Node, wanted: &[&str]) {
        let fix = match &node.value {
            Tree::Int(_) | Tree::Float(_) | Tree::Bool(_) if wanted.contains(&"string") => {
                Some("put it in quotes")
            }
            Tree::Float(value) if wanted.contains(&"integer") && value.fract() == 0.0 => {
                Some("write it without a point")
            }
            Tree::Text(text)
                if wanted.contains(&"number") && text.parse::<f64>().is_ok_and(f64::is_finite) =>
            {
                Some("write it without quotes")
            }
            Tree::Text(text) if wanted.contains(&"integer") && text.parse::<i64>().is_ok() => {
                Some("write it without quotes")
            }
            _ => None,
        };
        let nouns: Vec<&str> = wanted.iter().map(|kind| noun(kind)).collect();
        let message = format!("{} is wanted, found {}", nouns.join(" or "), self.found(node));
        self.tracker.error("recipe.type", node.line, message, fix);
    }

    fn wrong_choice(&mut self, node: &Node, choices: &[&Value]) {
        let names =
            choices.iter().map(|choice| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned));
        let one_of = if choices.len() == 1 { "" } else { "one of " };
        let list = names.collect::<Vec<_>>().join(", ");
        let message = format!("{one_of}{list} is wanted, found {}", self.found(node));
        let Tree::Text(text) = &node.value else {
            return self.tracker.error("recipe.type", node.line, message, None);
        };
        let known = || choices.iter().filter_map(|choice| choice.as_str());
        let meant =
            SYNONYMS.iter().find(|(word, _)| text.eq_ignore_ascii_case(word)).map(|(_, meant)| *meant);
        let close = meant.filter(|meant| known().any(|choice| choice == *meant));
        let close = close.or_else(|| closest(text, known()));
        let fix = close.map(|close| format!("did you mean \"{close}\"?"));
        self.tracker.error("recipe.choice", node.line, message, fix.as_deref());
    }

    /// The limits on a number, which is the value itself or, with a unit, a count.
    fn range(&mut self, node: &Node, value: f64, unit: Option<&str>, rules: &Map<String, Value>) {
        let (least, most) = format_limits(rules);
        let bound = |keyword: &str| rules.get(keyword).and_then(Value::as_f64);
        let message = if let Some(limit) = bound("minimum").or(least).filter(|limit| value < *limit) {
            format!("at least {limit}")
        } else if let Some(limit) = bound("maximum").or(most).filter(|limit| value > *limit) {
            format!("at most {limit}")
        } else if let Some(limit) = bound("exclusiveMinimum").filter(|limit| value <= *limit) {
            format!("more than {limit}")
        } else if let Some(limit) = bound("exclusiveMaximum").filter(|limit| value >= *limit) {
            format!("less than {limit}")
        } else {
            return;
        };
        let message = match unit {
            None => format!("{message} is wanted, found {}", self.found(node)),
            Some(unit) => format!("the number of {unit} must be {message}, found {value}"),
        };
        self.tracker.error("recipe.range", node.line, message, None);
    }

    /// Limits on a number of characters or items are read like those on a value.
    fn size(&mut self, node: &Node, size: usize, unit: &str, suffix: &str, rules: &Map<String, Value>) {
        let limits = [("minimum", "min"), ("maximum", "max")];
        let limits = limits.iter().filter_map(|(keyword, prefix)| {
            Some(((*keyword).to_owned(), rules.get(&format!("{prefix}{suffix}"))?.clone()))
        });
        self.range(node, size as f64, Some(unit), &limits.collect());
    }

    /// The fault is the schema's, not the recipe's; it is told all the same, because nothing was checked.
    fn broken(&mut self, node: &Node, why: &str) {
        self.tracker.error("recipe.schema", node.line, format!("the schema cannot be used: {why}"), None);
    }

    /// A value in words; one that is secret by its key is not shown.
    fn found(&self, node: &Node) -> String {
        match &node.value {
            Tree::Null => "nothing".to_owned(),
            Tree::List(_) => "a list".to_owned(),
            Tree::Map(_) => "a map".to_owned(),
            _ if self.tracker.is_secret() => "a single value".to_owned(),
            Tree::Bool(value) => value.to_string(),
            Tree::Int(value) => format!("the integer {value}"),
            Tree::Float(value) => format!("the number {value:?}"),
            Tree::Text(text) => format!("text {:?}", shorten(text)),
        }
    }
}

/// The values of an enumeration, which is written as one `const`, one `enum`, or alternatives of these.
fn choices(rules: &Map<String, Value>) -> Option<Vec<&Value>> {
    if let Some(value) = rules.get("const") {
        return Some(vec![value]);
    }
    if let Some(values) = rules.get("enum").and_then(Value::as_array) {
        return Some(values.iter().collect());
    }
    // Alternatives of plain choices only; what lies deeper is an alternative like any other.
    let schemas = rules.get("oneOf").or_else(|| rules.get("anyOf"))?.as_array()?;
    let mut all = Vec::new();
    for schema in schemas {
        match (schema.get("const"), schema.get("enum").and_then(Value::as_array)) {
            (Some(value), _) => all.push(value),
            (None, Some(values)) => all.extend(values),
            (None, None) => return None,
        }
    }
    Some(all)
}

/// An integer is also a number, but `2.0` is no integer: whoever writes it has something else in mind.
fn is_kind(node: &Node, kind: &str) -> bool {
    match &node.value {
        Tree::Null => kind == "null",
        Tree::Bool(_) => kind == "boolean",
        Tree::Int(_) => kind == "integer" || kind == "number",
        Tree::Float(_) => kind == "number",
        Tree::Text(_) => kind == "string",
        Tree::List(_) => kind == "array",
        Tree::Map(_) => kind == "object",
    }
}

fn noun(kind: &str) -> &str {
    match kind {
        "boolean" => "true or false",
        "integer" => "an integer",
        "number" => "a number",
        "string" => "text",
        "array" => "a list",
        "object" => "a map",
        other => other,
    }
}

/// The limits of the Rust integer types, which `schemars` tells by `format` where it writes no bound.
fn format_limits(rules: &Map<String, Value>) -> (Option<f64>, Option<f64>) {
    match rules.get("format").and_then(Value::as_str) {
        Some("uint8") => (Some(0.0), Some(f64::from(u8::MAX))),
        Some("uint16") => (Some(0.0), Some(f64::from(u16::MAX))),
        Some("uint32") => (Some(0.0), Some(f64::from(u32::MAX))),
        Some("uint64" | "uint") => (Some(0.0), None),
        Some("int8") => (Some(f64::from(i8::MIN)), Some(f64::from(i8::MAX))),
        Some("int16") => (Some(f64::from(i16::MIN)), Some(f64::from(i16::MAX))),
        Some("int32") => (Some(f64::from(i32::MIN)), Some(f64::from(i32::MAX))),
        _ => (None, None),
    }
}
