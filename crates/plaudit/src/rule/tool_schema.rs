//! Declarations of tools as data sets publish them, made JSON Schema: types under the names that programming languages have for
//! them, types as Python annotates them, lists of arguments without a schema around them, and the empty cells of tables.

use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The types of JSON Schema, and what else they are called, in small letters. What may be anything restricts nothing.
const TYPES: [(&str, &[&str]); 8] = [
    ("", &["", "any", "callable", "enum", "function", "literal"]),
    ("array", &["array", "arraylist", "list", "queue", "sequence", "set", "stack", "tuple"]),
    ("boolean", &["boolean", "bool"]),
    ("integer", &["integer", "bigint", "biginteger", "byte", "int", "int32", "int64", "long", "short"]),
    ("null", &["null", "none"]),
    (
        "number",
        &[
            "number",
            "bigdecimal",
            "decimal",
            "double",
            "float",
            "float32",
            "float64",
            "num",
            "numeric",
            "real",
        ],
    ),
    ("object", &["object", "dict", "hashmap", "hashtable", "map", "mapping"]),
    (
        "string",
        &[
            "string",
            "char",
            "date",
            "datetime",
            "email",
            "str",
            "text",
            "time",
            "timestamp",
            "url",
            "uuid",
            "varchar",
        ],
    ),
];

/// The longest annotation that is read, in bytes, and how deep annotations may lie in one another.
const MAX_LENGTH: usize = 256;
const MAX_DEPTH: usize = 8;

/// A declared type that is not known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnknownType(pub(super) String);

/// The JSON Schema that a declaration means: itself, mostly.
pub(super) fn schema_of(declared: &Value) -> Result<Cow<'_, Value>, UnknownType> {
    if let Value::Array(arguments) = declared {
        return with_required(by_name(arguments)).map(Cow::Owned);
    }
    if let Value::Object(arguments) = declared
        && are_arguments(arguments)
    {
        let schema = json!({ "type": "object", "properties": arguments, "additionalProperties": false });
        return with_required(schema).map(Cow::Owned);
    }
    if is_standard(declared) {
        return Ok(Cow::Borrowed(declared));
    }
    let mut schema = declared.clone();
    make_standard(&mut schema)?;
    Ok(Cow::Owned(schema))
}

/// The values that arguments have where they are left out, as a declaration says.
pub(super) fn defaults_of(declared: &Value) -> Map<String, Value> {
    let arguments = match (declared.get("properties"), declared) {
        (Some(Value::Object(properties)), _) => properties,
        (None, Value::Object(arguments)) if are_arguments(arguments) => arguments,
        _ => return Map::new(),
    };
    let default =
        |(name, argument): (&String, &Value)| Some((name.clone(), argument.get("default")?.clone()));
    arguments.iter().filter_map(default).collect()
}

/// Whether an object has the schemas of arguments by their names, and is no schema itself.
fn are_arguments(map: &Map<String, Value>) -> bool {
    let describes = |value: &Value| ["type", "description"].iter().any(|key| value[*key].is_string());
    !map.is_empty() && map.values().all(describes)
}

/// The schema of arguments of which those are required that have no default and are not called optional.
fn with_required(mut schema: Value) -> Result<Value, UnknownType> {
    let is_needed = |argument: &Value| {
        let is_optional = |text: &str| text.to_lowercase().contains("optional");
        argument.get("default").is_none()
            && argument["required"] != false
            && argument["optional"] != true
            && !argument["type"].as_str().is_some_and(is_optional)
    };
    let arguments = schema["properties"].as_object().into_iter().flatten();
    let needed: Vec<Value> =
        arguments.filter(|(_, one)| is_needed(one)).map(|(name, _)| name.as_str().into()).collect();
    make_standard(&mut schema)?;
    schema["required"] = Value::Array(needed);
    Ok(schema)
}

/// The schema of arguments that are a list of objects with a name each.
fn by_name(arguments: &[Value]) -> Value {
    let named = |argument: &Value| {
        let mut schema = argument.clone();
        let name = schema.as_object_mut()?.remove("name")?;
        Some((name.as_str()?.to_owned(), schema))
    };
    let properties: Map<String, Value> = arguments.iter().filter_map(named).collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// Whether a key of a schema is the empty cell of a table, which has every key that another row has.
fn is_blank(key: &str, value: &Value) -> bool {
    value.is_null() && !["default", "const"].contains(&key)
}

/// The schemas that stand in one.
fn inner(rules: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    rules.iter().flat_map(|(key, value)| match (key.as_str(), value) {
        ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(all)) => {
            all.values().collect()
        }
        ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(all)) => all.iter().collect(),
        ("items" | "additionalProperties" | "not", Value::Object(_)) => vec![value],
        _ => Vec::new(),
    })
}

/// Whether a schema needs no change.
fn is_standard(schema: &Value) -> bool {
    let Value::Object(rules) = schema else { return true };
    let named = |value: &Value| {
        value.as_str().is_some_and(|name| TYPES.iter().any(|(known, _)| *known == name && !name.is_empty()))
    };
    let typed = |value: &Value| named(value) || value.as_array().is_some_and(|all| all.iter().all(named));
    rules.get("type").is_none_or(typed)
        && !rules.contains_key("optional")
        && !rules.iter().any(|(key, value)| is_blank(key, value))
        && !rules
            .get("properties")
            .and_then(Value::as_object)
            .is_some_and(|all| all.values().any(Value::is_null))
        && !rules.get("required").is_some_and(Value::is_boolean)
        && allows_default(rules)
        && inner(rules).all(is_standard)
}

/// Makes JSON Schema of a schema and of those in it.
fn make_standard(schema: &mut Value) -> Result<(), UnknownType> {
    let Value::Object(rules) = schema else { return Ok(()) };
    rules.remove("optional");
    rules.retain(|key, value| !is_blank(key, value));
    if let Some(Value::Object(properties)) = rules.get_mut("properties") {
        properties.retain(|_, one| !one.is_null());
        let needed = properties.iter().filter(|(_, one)| one["required"] == true);
        let needed: Vec<Value> = needed.map(|(name, _)| name.as_str().into()).collect();
        if !needed.is_empty()
            && let Value::Array(required) = rules.entry("required").or_insert_with(|| json!([]))
        {
            let missing: Vec<Value> = needed.into_iter().filter(|name| !required.contains(name)).collect();
            required.extend(missing);
        }
    }
    if rules.get("required").is_some_and(Value::is_boolean) {
        rules.remove("required");
    }
    let made = match rules.get("type") {
        Some(Value::String(name)) => Some(annotation(name, 0)?),
        Some(Value::Array(names)) => {
            let read = |name: &Value| match name.as_str() {
                Some(name) => annotation(name, 0),
                None => Err(UnknownType(name.to_string())),
            };
            Some(any_of(names.iter().map(read).collect::<Result<_, _>>()?))
        }
        Some(other) => return Err(UnknownType(other.to_string())),
        None => None,
    };
    if let Some(made) = made {
        rules.remove("type");
        for (key, value) in made {
            // What the schema itself says of its items is more than its type does.
            rules.entry(key).or_insert(value);
        }
    }
    for (key, value) in rules.iter_mut() {
        match (key.as_str(), value) {
            ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(all)) => {
                all.values_mut().try_for_each(make_standard)?;
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(all)) => {
                all.iter_mut().try_for_each(make_standard)?;
            }
            ("items" | "additionalProperties" | "not", one) => make_standard(one)?,
            _ => {}
        }
    }
    // Giving the default is the same as giving nothing.
    if !allows_default(rules) {
        let default = rules.get("default").cloned();
        *schema = json!({ "anyOf": [schema.take(), { "const": default }] });
    }
    Ok(())
}

/// Whether a default, where there is one, has the type of its schema and is one of its choices.
fn allows_default(rules: &Map<String, Value>) -> bool {
    let Some(default) = rules.get("default") else { return true };
    let is_of = |name: &Value| match (name.as_str(), default) {
        (Some("null"), Value::Null)
        | (Some("boolean"), Value::Bool(_))
        | (Some("number"), Value::Number(_))
        | (Some("string"), Value::String(_))
        | (Some("array"), Value::Array(_))
        | (Some("object"), Value::Object(_)) => true,
        (Some("integer"), Value::Number(number)) => {
            number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => false,
    };
    let typed = match rules.get("type") {
        Some(Value::Array(names)) => names.iter().any(is_of),
        Some(name) => is_of(name),
        None => true,
    };
    typed && rules.get("enum").and_then(Value::as_array).is_none_or(|choices| choices.contains(default))
}

/// What a type says: a name, or an annotation such as `Optional[List[str]]`, `int | str` or `str, optional`.
fn annotation(text: &str, depth: usize) -> Result<Map<String, Value>, UnknownType> {
    let unknown = || UnknownType(text.chars().take(60).collect());
    if text.len() > MAX_LENGTH || depth > MAX_DEPTH {
        return Err(unknown());
    }
    let one = |part: &str| annotation(part, depth + 1);
    let parts = split(text, ',');
    if let [first, .., last] = parts.as_slice()
        && last.trim().eq_ignore_ascii_case("optional")
    {
        return one(&text[..text.len() - last.len() - 1]).map_err(|_| UnknownType((*first).to_owned()));
    }
    if let Some(items) = text.trim().strip_suffix("[]") {
        return Ok(Map::from_iter([
            ("type".to_owned(), "array".into()),
            ("items".to_owned(), one(items)?.into()),
        ]));
    }
    if text.contains('<') {
        return one(&text.replace('<', "[").replace('>', "]"));
    }
    let choices = split(text, '|');
    if choices.len() > 1 {
        return Ok(any_of(choices.into_iter().map(one).collect::<Result<_, _>>()?));
    }
    let (name, inside) = match text.trim().split_once('[') {
        None => (text.trim(), None),
        Some((name, rest)) => (name.trim(), Some(rest.strip_suffix(']').ok_or_else(unknown)?)),
    };
    let name = name.rsplit('.').next().unwrap_or(name).to_lowercase();
    let parts: Vec<&str> = inside.map_or_else(Vec::new, |inside| split(inside, ','));
    match name.as_str() {
        "optional" if parts.len() == 1 => return Ok(any_of(vec![one(parts[0])?, one("null")?])),
        "union" if !parts.is_empty() => {
            return Ok(any_of(parts.into_iter().map(one).collect::<Result<_, _>>()?));
        }
        "literal" if !parts.is_empty() => {
            let values =
                parts.into_iter().map(literal).collect::<Option<Vec<Value>>>().ok_or_else(unknown)?;
            return Ok(Map::from_iter([("enum".to_owned(), values.into())]));
        }
        _ => {}
    }
    let (kind, _) = TYPES.iter().find(|(_, names)| names.contains(&name.as_str())).ok_or_else(unknown)?;
    let mut schema = Map::new();
    if !kind.is_empty() {
        schema.insert("type".to_owned(), (*kind).into());
    }
    match (*kind, parts.as_slice()) {
        ("array", [items]) => drop(schema.insert("items".to_owned(), Value::Object(one(items)?))),
        ("object", [_, values]) => {
            schema.insert("additionalProperties".to_owned(), Value::Object(one(values)?));
        }
        (_, []) | ("array" | "object" | "", _) => {}
        _ => return Err(unknown()),
    }
    Ok(schema)
}

/// A value as Python writes it in an annotation: a text in quotation marks, a number, a truth.
fn literal(text: &str) -> Option<Value> {
    plaudit_text::PyValue::literal(text.trim())?.into_json()
}

/// A schema that allows what one of several does.
fn any_of(mut all: Vec<Map<String, Value>>) -> Map<String, Value> {
    match all.len() {
        1 => all.remove(0),
        _ if all.iter().any(Map::is_empty) => Map::new(),
        _ => Map::from_iter([("anyOf".to_owned(), json!(all))]),
    }
}

/// The parts of an annotation between separators that stand in no brackets.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut open) = (Vec::new(), 0, 0_usize);
    for (at, letter) in text.char_indices() {
        match letter {
            '[' | '(' => open += 1,
            ']' | ')' => open = open.saturating_sub(1),
            letter if letter == separator && open == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_many_names() {
        for (declared, schema) in [
            ("dict", json!({"type": "object"})),
            ("float", json!({"type": "number"})),
            ("tuple", json!({"type": "array"})),
            ("HashMap", json!({"type": "object"})),
            ("any", json!({})),
            ("Callable[[int], int]", json!({})),
            ("Literal['a', 2]", json!({"enum": ["a", 2]})),
            ("string[]", json!({"type": "array", "items": {"type": "string"}})),
            ("int[][]", json!({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}})),
            ("ArrayList<String>", json!({"type": "array", "items": {"type": "string"}})),
            (
                "Map<String, BigInteger>",
                json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            ),
            ("int64", json!({"type": "integer"})),
            ("datetime.date", json!({"type": "string"})),
            ("str, optional", json!({"type": "string"})),
            ("List[int]", json!({"type": "array", "items": {"type": "integer"}})),
            (
                "typing.Dict[str, float]",
                json!({"type": "object", "additionalProperties": {"type": "number"}}),
            ),
            ("Tuple[int, str]", json!({"type": "array"})),
            ("Optional[str]", json!({"anyOf": [{"type": "string"}, {"type": "null"}]})),
            ("Union[int, float]", json!({"anyOf": [{"type": "integer"}, {"type": "number"}]})),
            ("int | None", json!({"anyOf": [{"type": "integer"}, {"type": "null"}]})),
            ("List[Union[int, Any]]", json!({"type": "array", "items": {}})),
        ] {
            assert_eq!(annotation(declared, 0).map(Value::Object), Ok(schema), "{declared}");
        }
        for unknown in [
            "frob",
            "Frob[[int], int]",
            "List[",
            "str[int]",
            "List[frob]",
            "optional",
            "frob[]",
            "List<frob>",
            "Literal[a]",
        ] {
            assert!(annotation(unknown, 0).is_err(), "{unknown}");
        }
        assert!(annotation(&"List[".repeat(1000), 0).is_err());
    }

    #[test]
    fn a_schema_of_the_standard_is_not_copied() {
        let schema = json!({"type": "object", "properties": {"type": {"type": ["string", "null"]},
            "description": {"type": "array", "items": {"$ref": "#/$defs/x"}}}, "required": ["type"], "$defs": {"x": {}}});
        assert!(matches!(schema_of(&schema), Ok(Cow::Borrowed(_))));
        let inner = json!({"type": "dict", "properties": {"a": {"type": "array", "items": {"type": "dict"}, "optional": true}},
            "required": ["a"]});
        let made = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object"}}}, "required": ["a"]});
        assert_eq!(*schema_of(&inner).unwrap(), made);
        let default = json!({"type": "object", "properties": {"a": {"type": "string", "default": null}}});
        let allowed = json!({"anyOf": [{"type": "string", "default": null}, {"const": null}]});
        assert_eq!(schema_of(&default).unwrap()["properties"]["a"], allowed);
        let unknown = json!({"properties": {"a": {"items": {"type": "frob"}}}});
        assert_eq!(schema_of(&unknown), Err(UnknownType("frob".to_owned())));
    }

    #[test]
    fn the_empty_cells_of_a_table_say_nothing() {
        let cells = json!({"type": "dict", "required": null, "properties": {"a": {"type": "string", "enum": null, "items": null,
            "default": null}, "b": null, "c": {"type": "integer", "required": true}}});
        let allowed = json!({"anyOf": [{"type": "string", "default": null}, {"const": null}]});
        let made = json!({"type": "object", "properties": {"a": allowed, "c": {"type": "integer"}}, "required": ["c"]});
        assert_eq!(*schema_of(&cells).unwrap(), made);
        let list = json!([{"name": "a", "type": "int"}, {"name": "b", "type": "str", "required": false}]);
        let made = schema_of(&list).unwrap();
        assert_eq!((&made["required"], &made["properties"]["b"]["type"]), (&json!(["a"]), &json!("string")));
    }

    #[test]
    fn arguments_may_stand_without_a_schema_around_them() {
        let arguments = json!({"type": {"description": "which", "type": "str", "default": "a"},
            "limit": {"description": "how many", "type": "int, optional"}, "id": {"type": "int"}});
        let schema = schema_of(&arguments).unwrap();
        assert_eq!(schema["required"], json!(["id"]));
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(schema["properties"]["limit"]["type"], "integer");
        let defaults = json!({"type": "a"});
        assert_eq!(Value::Object(defaults_of(&arguments)), defaults);
        assert_eq!(Value::Object(defaults_of(&json!({"type": "object", "properties": arguments}))), defaults);
        assert_eq!(defaults_of(&json!({"type": "object"})), Map::new());
    }
}
