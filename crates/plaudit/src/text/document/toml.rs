//! TOML documents.

use super::{Dialect, DocumentError};
use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

pub(super) fn read(text: &str, dialect: Dialect) -> Result<Value, DocumentError> {
    let table = DeTable::parse(text).map_err(|error| {
        let deep = error.message().contains("recurs");
        if deep { DocumentError::TooLarge } else { DocumentError::Syntax }
    })?;
    object(table.get_ref(), dialect)
}

fn object(table: &DeTable<'_>, dialect: Dialect) -> Result<Value, DocumentError> {
    let mut map = Map::new();
    for (key, entry) in table.iter() {
        map.insert(key.get_ref().to_string(), value(entry.get_ref(), dialect)?);
    }
    Ok(Value::Object(map))
}

/// The parser bounds the depth.
fn value(value: &DeValue<'_>, dialect: Dialect) -> Result<Value, DocumentError> {
    match value {
        DeValue::String(text) => Ok(Value::String(text.to_string())),
        DeValue::Integer(number) => {
            super::integer(number.as_str(), number.radix()).ok_or(DocumentError::Syntax)
        }
        DeValue::Float(number) => {
            super::number(number.as_str().parse().map_err(|_| DocumentError::Syntax)?, dialect)
        }
        DeValue::Boolean(truth) => Ok(Value::Bool(*truth)),
        DeValue::Datetime(_) => Err(DocumentError::Foreign),
        DeValue::Array(all) => all
            .iter()
            .map(|item| self::value(item.get_ref(), dialect))
            .collect::<Result<_, _>>()
            .map(Value::Array),
        DeValue::Table(table) => object(table, dialect),
    }
}
