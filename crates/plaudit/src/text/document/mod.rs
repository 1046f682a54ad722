//! Documents in a response: JSON, YAML, TOML, CSV and XML, each read into one JSON value in bounded time.

mod csv;
mod json;
mod toml;
mod xml;
mod yaml;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

/// The largest document, in bytes. Any parser reads as much within some twenty milliseconds; that of YAML, half of it.
const MAX_BYTES: usize = 1 << 18;
/// The deepest nesting of a document.
const MAX_DEPTH: usize = 128;
/// The most values of a document, with those that an alias repeats.
const MAX_VALUES: usize = 30_000;

/// How many alternatives of a schema a text is compared with, to find its type.
const MAX_CHOICES: usize = 64;

/// What stands for an infinity of Python: a number that is not whole, and as large as such a number can be.
const PYTHON_INFINITY: f64 = 4_503_599_627_370_495.5;

/// The format of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DocumentFormat {
    /// JSON, as RFC 8259 has it; of equal keys the last one counts.
    Json,
    /// YAML, one document, whose plain scalars mean what PyYAML takes them for: `no` is false, `1e3` is text.
    Yaml,
    /// TOML.
    Toml,
    /// CSV with a header: a list of objects, whose fields are converted to the types that the schema names.
    Csv,
    /// XML without a document type: elements are keys, attributes are keys with `@`, repeated elements are lists, and texts are
    /// converted to the types that the schema names.
    Xml,
}

impl DocumentFormat {
    /// The words after a fence that mean the format.
    pub(crate) const fn fences(self) -> &'static [&'static str] {
        match self {
            Self::Json => &["json"],
            Self::Yaml => &["yaml", "yml"],
            Self::Toml => &["toml"],
            Self::Csv => &["csv"],
            Self::Xml => &["xml"],
        }
    }

    /// Whether everything is text in it, so that values take their types from the schema.
    pub(crate) const fn is_untyped(self) -> bool {
        matches!(self, Self::Csv | Self::Xml)
    }
}

/// Why a document has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DocumentError {
    /// It breaks the syntax of its format.
    Syntax,
    /// It is larger, deeper or has more values than is read.
    TooLarge,
    /// It has a value that JSON has none for: a date, an infinity, or what is not a number.
    Foreign,
}

/// How a document is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// As its standard says.
    Standard,
    /// As Python's parsers do: infinities and NaN are numbers, a key that is no text is another key than its text.
    Python,
}

/// The value of a document.
pub(crate) fn read(text: &str, format: DocumentFormat, dialect: Dialect) -> Result<Value, DocumentError> {
    if text.len() > if format == DocumentFormat::Yaml { MAX_BYTES / 2 } else { MAX_BYTES } {
        return Err(DocumentError::TooLarge);
    }
    match format {
        DocumentFormat::Json => json::read(text, dialect),
        DocumentFormat::Yaml => yaml::read(text, dialect),
        DocumentFormat::Toml => toml::read(text, dialect),
        DocumentFormat::Csv => csv::read(text, dialect),
        DocumentFormat::Xml => xml::read(text),
    }
}

/// The value of a document by the standard of its format; none where it has no value.
pub(crate) fn value_of(text: &str, format: DocumentFormat) -> Option<Value> {
    read(text, format, Dialect::Standard).ok()
}

/// A whole number of any size, in digits of a radix; beyond 64 bits it is as near as a double is.
fn integer(digits: &str, radix: u32) -> Option<Value> {
    if let Ok(number) = i64::from_str_radix(digits, radix) {
        return Some(Value::from(number));
    }
    let (negative, digits) = match digits.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, digits.strip_prefix('+').unwrap_or(digits)),
    };
    let size = digits.chars().try_fold(0.0, |sum: f64, digit| {
        Some(sum.mul_add(f64::from(radix), f64::from(digit.to_digit(radix)?)))
    })?;
    // Larger than any double: still a whole number, and the schema can say no more of it.
    let size = if size.is_finite() { size } else { f64::MAX };
    Number::from_f64(if negative { -size } else { size }).map(Value::Number)
}

/// A number, or why there is none.
fn number(number: f64, dialect: Dialect) -> Result<Value, DocumentError> {
    if let Some(number) = Number::from_f64(number) {
        return Ok(Value::Number(number));
    }
    match dialect {
        Dialect::Standard => Err(DocumentError::Foreign),
        Dialect::Python if number.is_nan() => Ok(Value::from(0.5)),
        Dialect::Python => Ok(Value::from(PYTHON_INFINITY.copysign(number))),
    }
}

/// A document without types takes them from the schema: texts become what it names, where they can.
pub(crate) fn typed(value: Value, schema: &Value, format: DocumentFormat, dialect: Dialect) -> Value {
    Typing { root: schema, format, dialect }.typed(value, schema, 0)
}

struct Typing<'s> {
    root: &'s Value,
    format: DocumentFormat,
    dialect: Dialect,
}

impl Typing<'_> {
    fn typed(&self, value: Value, schema: &Value, depth: usize) -> Value {
        if depth > MAX_DEPTH {
            return value;
        }
        let standard = self.dialect == Dialect::Standard;
        if let Some(schema) = self.aim(&value, schema).filter(|_| standard) {
            return self.typed(value, schema, depth + 1);
        }
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(one)) => vec![one],
            // The origin converts the fields of CSV to one of several types, and elements of XML only to one.
            Some(Value::Array(all)) if standard || self.format == DocumentFormat::Csv => {
                all.iter().filter_map(Value::as_str).collect()
            }
            None if standard => self.alternatives(schema),
            _ => Vec::new(),
        };
        let wants = |name: &str| types.contains(&name);
        match value {
            Value::Array(all) if wants("array") => {
                let items = schema.get("items").unwrap_or(&Value::Null);
                Value::Array(all.into_iter().map(|item| self.typed(item, items, depth + 1)).collect())
            }
            // XML: one element is a list of one, and a list of elements has a name of its own.
            Value::Object(map) if wants("array") && !wants("object") && map.len() == 1 => {
                let inner = map.into_iter().next().map_or(Value::Null, |(_, inner)| inner);
                let inner = if inner.is_array() { inner } else { Value::Array(vec![inner]) };
                self.typed(inner, schema, depth + 1)
            }
            Value::Null if wants("array") && !wants("null") => Value::Array(Vec::new()),
            Value::Null if wants("string") && !wants("null") => Value::String(String::new()),
            Value::String(text) if wants("array") && !wants("string") => {
                self.typed(Value::Array(vec![Value::String(text)]), schema, depth + 1)
            }
            Value::Object(map) => {
                let property =
                    |key: &str| schema.get("properties").and_then(|all| all.get(key)).unwrap_or(&Value::Null);
                Value::Object(
                    map.into_iter()
                        .map(|(key, value)| (key.clone(), self.typed(value, property(&key), depth + 1)))
                        .collect(),
                )
            }
            Value::String(text) if types.is_empty() && standard => chosen(text, schema),
            Value::String(text) => converted(text, &types),
            other => other,
        }
    }

    /// The schema that another one leads to: by a reference, as the only one that is added, or as the alternative that a list
    /// or an object can be.
    fn aim<'a>(&'a self, value: &Value, schema: &'a Value) -> Option<&'a Value> {
        if let Some(target) = schema.get("$ref") {
            return local(self.root, target);
        }
        if schema.get("type").is_some() || schema.get("properties").is_some() {
            return None;
        }
        if let Some([only]) = schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
            return Some(only);
        }
        let kind = match value {
            Value::Array(_) => "array",
            Value::Object(_) => "object",
            _ => return None,
        };
        let fits = |schema: &&Value| self.kinds(schema).contains(&kind);
        let all = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.as_array())?;
        // XML has an object for a list of elements too.
        all.iter().find(fits).or_else(|| all.iter().find(|schema| self.kinds(schema).contains(&"array")))
    }

    /// The types of all alternatives.
    fn alternatives<'a>(&'a self, schema: &'a Value) -> Vec<&'a str> {
        let all = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.as_array());
        let all = all.into_iter().flatten().take(MAX_CHOICES);
        let mut types: Vec<&str> = all.flat_map(|schema| self.kinds(schema)).collect();
        // A text can be anything, so that it comes last.
        types.sort_by_key(|name| *name == "string");
        types
    }

    /// The types that a schema names, by a reference too.
    fn kinds<'a>(&'a self, schema: &'a Value) -> Vec<&'a str> {
        let target = schema.get("$ref").and_then(|target| local(self.root, target));
        match target.unwrap_or(schema).get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }
}

/// A text as the value that a schema names, where it has no type: the one that is written so.
fn chosen(text: String, schema: &Value) -> Value {
    let choices = schema.get("enum").and_then(Value::as_array).into_iter().flatten().take(MAX_CHOICES);
    let mut choices = choices.chain(schema.get("const"));
    let same = |choice: &&Value| match choice {
        Value::String(choice) => *choice == text,
        other => {
            let written = other.to_string();
            written == text.trim()
        }
    };
    choices.find(same).cloned().unwrap_or(Value::String(text))
}

/// A text as the first of the types that it can be.
fn converted(text: String, types: &[&str]) -> Value {
    if text.is_empty() && types.contains(&"null") {
        return Value::Null;
    }
    let trimmed = text.trim();
    for name in types {
        let found = match *name {
            "string" => break,
            "integer" => {
                let digits = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
                let whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
                if whole { integer(trimmed, 10) } else { None }
            }
            "number" => trimmed.parse::<f64>().ok().and_then(Number::from_f64).map(Value::Number),
            "boolean" => match trimmed.to_ascii_lowercase().as_str() {
                "true" | "1" => Some(Value::Bool(true)),
                "false" | "0" => Some(Value::Bool(false)),
                _ => None,
            },
            _ => None,
        };
        if let Some(found) = found {
            return found;
        }
    }
    Value::String(text)
}

/// The schema that a reference inside the same declaration leads to.
fn local<'s>(root: &'s Value, target: &Value) -> Option<&'s Value> {
    root.pointer(target.as_str()?.strip_prefix('#')?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn value(text: &str, format: DocumentFormat) -> Result<Value, DocumentError> {
        read(text, format, Dialect::Standard)
    }

    #[test]
    fn five_formats_have_one_value() {
        let wanted = json!({"a": {"b": [1, 2.5, true], "c": "x: y"}});
        for (text, format) in [
            (r#" {"a": {"b": [1, 2.5, true], "c": "x: y"}} "#, DocumentFormat::Json),
            ("a:\n  b: [1, 2.5, yes]\n  c: 'x: y'\n", DocumentFormat::Yaml),
            ("[a]\nb = [1, 2.5, true]\nc = \"x: y\"\n", DocumentFormat::Toml),
        ] {
            assert_eq!(value(text, format), Ok(wanted.clone()), "{format:?}");
        }
        let types = json!({"type": "object", "properties": {"a": {"type": "object", "properties": {
            "b": {"type": "array", "items": {"type": ["number", "boolean"]}}, "c": {"type": "string"}}}}});
        let xml = value("<a><b>1</b><b>2.5</b><b>true</b><c>x: y</c></a>", DocumentFormat::Xml).unwrap();
        let typed = |value, schema, format| typed(value, schema, format, Dialect::Standard);
        assert_eq!(
            typed(xml, &types, DocumentFormat::Xml),
            json!({"a": {"b": [1.0, 2.5, true], "c": "x: y"}})
        );
        let rows =
            json!({"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}});
        let csv = value("n,t\r\n1,\"a,\"\"b\"\"\nc\"\r\n", DocumentFormat::Csv).unwrap();
        assert_eq!(typed(csv, &rows, DocumentFormat::Csv), json!([{"n": 1, "t": "a,\"b\"\nc"}]));
    }

    #[test]
    fn what_is_no_document_has_no_value() {
        for (text, format, unread) in [
            ("", DocumentFormat::Json, DocumentError::Syntax),
            ("{'a': 1}", DocumentFormat::Json, DocumentError::Syntax),
            ("[NaN]", DocumentFormat::Json, DocumentError::Syntax),
            ("a: [", DocumentFormat::Yaml, DocumentError::Syntax),
            ("a: 1\n---\nb: 2\n", DocumentFormat::Yaml, DocumentError::Syntax),
            ("!!python/object:os.system ls", DocumentFormat::Yaml, DocumentError::Syntax),
            ("a: 2024-05-06", DocumentFormat::Yaml, DocumentError::Foreign),
            ("a: .nan", DocumentFormat::Yaml, DocumentError::Foreign),
            ("a = b", DocumentFormat::Toml, DocumentError::Syntax),
            ("a = 1\na = 2", DocumentFormat::Toml, DocumentError::Syntax),
            ("a = 2024-05-06", DocumentFormat::Toml, DocumentError::Foreign),
            ("a = inf", DocumentFormat::Toml, DocumentError::Foreign),
            ("a,b\n1\n", DocumentFormat::Csv, DocumentError::Syntax),
            ("a,a\n1,2\n", DocumentFormat::Csv, DocumentError::Syntax),
            ("<a><b></a>", DocumentFormat::Xml, DocumentError::Syntax),
            ("<!DOCTYPE a [<!ENTITY e \"x\">]><a>&e;</a>", DocumentFormat::Xml, DocumentError::Syntax),
        ] {
            assert_eq!(value(text, format), Err(unread), "{text}");
        }
        for (text, format) in [
            ("[".repeat(1000), DocumentFormat::Json),
            ("[".repeat(1000), DocumentFormat::Yaml),
            (format!("a = {}", "[".repeat(1000)), DocumentFormat::Toml),
            (format!("{}{}", "<a>".repeat(1000), "</a>".repeat(1000)), DocumentFormat::Xml),
            ("1".repeat(MAX_BYTES + 1), DocumentFormat::Json),
        ] {
            assert_eq!(value(&text, format), Err(DocumentError::TooLarge), "{format:?}");
        }
    }

    #[test]
    fn texts_take_their_types_from_alternatives() {
        let optional = |name: &str| json!({"anyOf": [{"type": "null"}, {"type": name}]});
        let schema = json!({"type": "array", "items": {"$ref": "#/$defs/row"}, "$defs": {"row": {"type": "object", "properties": {
            "n": optional("integer"), "t": optional("string"), "m": {"type": "integer"}, "e": {"enum": [1, "2", true]}}}}});
        let rows = value("n,t,m,e\n1,2,3,1\n,x,4,2\n5,,6,true\n", DocumentFormat::Csv).unwrap();
        let wanted = json!([{"n": 1, "t": "2", "m": 3, "e": 1}, {"n": null, "t": "x", "m": 4, "e": "2"},
            {"n": 5, "t": null, "m": 6, "e": true}]);
        assert_eq!(typed(rows, &schema, DocumentFormat::Csv, Dialect::Standard), wanted);
        let schema = json!({"properties": {"a": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}},
            "type": "object"});
        let list = value("<a><b>1</b><b>2</b></a>", DocumentFormat::Xml).unwrap();
        assert_eq!(typed(list, &schema, DocumentFormat::Xml, Dialect::Standard), json!({"a": [1, 2]}));
        let several = json!({"type": "object", "properties": {"a": {"type": ["integer", "null"]}}});
        let one = || value("<a>1</a>", DocumentFormat::Xml).unwrap();
        assert_eq!(typed(one(), &several, DocumentFormat::Xml, Dialect::Standard), json!({"a": 1}));
        assert_eq!(typed(one(), &several, DocumentFormat::Xml, Dialect::Python), json!({"a": "1"}));
    }

    #[test]
    fn numbers_beyond_doubles_are_numbers() {
        assert_eq!(
            value("[1e400, \"1e400\", -1e999]", DocumentFormat::Json),
            Ok(json!([f64::MAX, "1e400", f64::MIN]))
        );
        let digits = "9".repeat(400);
        assert_eq!(value(&digits, DocumentFormat::Json), Ok(json!(f64::MAX)));
        assert_eq!(read("1e400", DocumentFormat::Json, Dialect::Python), Ok(json!(4_503_599_627_370_495.5)));
        assert_eq!(value("1e400x", DocumentFormat::Json), Err(DocumentError::Syntax));
    }

    #[test]
    fn aliases_do_not_multiply_without_end() {
        assert_eq!(value("a: &x [1]\nb: *x\n", DocumentFormat::Yaml), Ok(json!({"a": [1], "b": [1]})));
        let merged = "a: &x {k: 1, l: 2}\nb:\n  <<: *x\n  l: 3\n";
        assert_eq!(
            value(merged, DocumentFormat::Yaml),
            Ok(json!({"a": {"k": 1, "l": 2}, "b": {"k": 1, "l": 3}}))
        );
        let mut bomb = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n".to_owned();
        for at in 1..9 {
            let one = format!("*a{}", at - 1);
            bomb.push_str(&format!("a{at}: &a{at} [{}]\n", vec![one; 10].join(",")));
        }
        assert_eq!(value(&bomb, DocumentFormat::Yaml), Err(DocumentError::TooLarge));
    }

    #[test]
    fn plain_scalars_are_what_pyyaml_takes_them_for() {
        for (text, wanted) in [
            ("no", json!(false)),
            ("On", json!(true)),
            ("~", json!(null)),
            ("", json!(null)),
            ("0o17", json!("0o17")),
            ("017", json!(15)),
            ("08", json!("08")),
            ("0x1F", json!(31)),
            ("0b101", json!(5)),
            ("1_000", json!(1000)),
            ("12:30", json!(750)),
            ("-1:30.5", json!(-90.5)),
            ("1e3", json!("1e3")),
            ("1.5e3", json!("1.5e3")),
            ("1.5e+3", json!(1500.0)),
            (".5", json!(0.5)),
            ("1.", json!(1.0)),
            ("100000000000000000000", json!(1e20)),
            ("'5'", json!("5")),
            ("!!str 5", json!("5")),
            ("!!int '5'", json!(5)),
            ("!!float 1e3", json!(1000.0)),
            ("2024-5-6", json!("2024-5-6")),
            ("=", json!("=")),
        ] {
            assert_eq!(value(text, DocumentFormat::Yaml), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn python_reads_what_is_no_json() {
        let python = |text: &str| read(text, DocumentFormat::Json, Dialect::Python);
        assert_eq!(python(r#"["NaN", NaN, -Infinity]"#), Ok(json!(["NaN", 0.5, -4_503_599_627_370_495.5])));
        assert_eq!(python(r#"["\ud800", "\ud83d\ude00"]"#), Ok(json!(["\u{fffd}", "😀"])));
        assert_eq!(python("[NaNa]"), Err(DocumentError::Syntax));
        assert_eq!(read("a: =", DocumentFormat::Yaml, Dialect::Python), Err(DocumentError::Syntax));
        let blank = read("\na\n1\n", DocumentFormat::Csv, Dialect::Python);
        assert_eq!(blank, Ok(json!([{"\u{0}": ["a"]}, {"\u{0}": ["1"]}])));
    }
}
