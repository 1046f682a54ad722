//! CSV documents, as RFC 4180 has them: a header, then a list of objects whose values are texts.

use super::{Dialect, DocumentError, MAX_VALUES};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

pub(super) fn read(text: &str, dialect: Dialect) -> Result<Value, DocumentError> {
    let mut rows = rows(text)?.into_iter();
    let header = match dialect {
        // To Python, a blank first line is a header without names.
        Dialect::Python if text.starts_with(['\r', '\n']) => Vec::new(),
        _ => rows.next().ok_or(DocumentError::Syntax)?,
    };
    let names: BTreeSet<&String> = header.iter().collect();
    if names.len() < header.len() && dialect == Dialect::Standard {
        return Err(DocumentError::Syntax);
    }
    let mut values = 0;
    let object = |row: Vec<String>| {
        if row.len() != header.len() && dialect == Dialect::Standard {
            return Err(DocumentError::Syntax);
        }
        values += header.len().max(row.len());
        if values > MAX_VALUES {
            return Err(DocumentError::TooLarge);
        }
        let mut map = Map::new();
        let mut fields = row.into_iter();
        for name in &header {
            map.insert(name.clone(), fields.next().map_or(Value::Null, Value::String));
        }
        // To Python, fields without a name are a list under a key that is no text.
        let surplus: Vec<Value> = fields.map(Value::String).collect();
        if !surplus.is_empty() {
            map.insert("\u{0}".to_owned(), Value::Array(surplus));
        }
        Ok(Value::Object(map))
    };
    rows.map(object).collect::<Result<_, _>>().map(Value::Array)
}

/// The fields of all rows that are not blank. A quote inside a field that does not begin with one is text.
fn rows(text: &str) -> Result<Vec<Vec<String>>, DocumentError> {
    let (mut rows, mut row, mut values) = (Vec::new(), Vec::new(), 0);
    let mut rest = text;
    while !rest.is_empty() {
        let (field, after, quoted) = field(rest)?;
        values += 1;
        if values > MAX_VALUES {
            return Err(DocumentError::TooLarge);
        }
        let blank = row.is_empty() && field.is_empty() && !quoted;
        row.push(field);
        rest = match after.strip_prefix(',') {
            // A comma at the very end is followed by an empty field.
            Some("") => {
                row.push(String::new());
                ""
            }
            Some(next) => {
                if next.starts_with(['\r', '\n']) {
                    row.push(String::new());
                    rows.push(std::mem::take(&mut row));
                    line_end(next)
                } else {
                    next
                }
            }
            None => {
                let ended = std::mem::take(&mut row);
                if !blank {
                    rows.push(ended);
                }
                line_end(after)
            }
        };
    }
    if !row.is_empty() {
        rows.push(row);
    }
    Ok(rows)
}

fn line_end(text: &str) -> &str {
    let text = text.strip_prefix('\r').unwrap_or(text);
    text.strip_prefix('\n').unwrap_or(text)
}

/// A field, what follows it, and whether it was quoted.
fn field(text: &str) -> Result<(String, &str, bool), DocumentError> {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find([',', '\r', '\n']).unwrap_or(text.len());
        return Ok((text[..end].to_owned(), &text[end..], false));
    };
    let mut field = String::new();
    loop {
        let (part, after) = rest.split_once('"').ok_or(DocumentError::Syntax)?;
        field.push_str(part);
        match after.strip_prefix('"') {
            Some(more) => {
                field.push('"');
                rest = more;
            }
            None => {
                let end = after.find([',', '\r', '\n']).unwrap_or(after.len());
                field.push_str(&after[..end]);
                return Ok((field, &after[end..], true));
            }
        }
    }
}
