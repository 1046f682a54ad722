//! Schemas made strict.

use serde_json::Value;

/// The same schema as providers make it strict: where an object has properties, all of them are required, and no others are
/// allowed. Schemas that only add to another one (`allOf`, `if`, `not`) stay as they are.
pub(in crate::rule) fn made_strict(mut schema: Value) -> Value {
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
