//! XML documents, as `xmltodict` turns them into objects: attributes with `@`, text beside them as `#text`, repeated elements
//! as lists, an element without anything as null.

use super::{DocumentError, MAX_DEPTH, MAX_VALUES};
use roxmltree::{Document, Error, Node, ParsingOptions};
use serde_json::{Map, Value};

pub(super) fn read(text: &str) -> Result<Value, DocumentError> {
    if has_many_attributes(text) {
        return Err(DocumentError::TooLarge);
    }
    let options = ParsingOptions { nodes_limit: MAX_VALUES as u32, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| match error {
        Error::NodesLimitReached => DocumentError::TooLarge,
        _ => DocumentError::Syntax,
    })?;
    let root = document.root_element();
    let mut map = Map::new();
    map.insert(name(&root), element(root, 1)?);
    Ok(Value::Object(map))
}

/// Whether an element may have so many attributes that the parser, which compares each with each, becomes slow. No `<` stands
/// inside a tag, so that what lies between two of them holds the attributes of one element at most.
fn has_many_attributes(text: &str) -> bool {
    const MAX_ATTRIBUTES: usize = 1000;
    let mut count = 0;
    memchr::memchr2_iter(b'<', b'=', text.as_bytes()).any(|at| {
        count = if text.as_bytes()[at] == b'<' { 0 } else { count + 1 };
        count > MAX_ATTRIBUTES
    })
}

fn name(node: &Node<'_, '_>) -> String {
    // The prefix as it is written, because names are compared as texts.
    let tag = node.tag_name();
    let prefix = tag.namespace().and_then(|uri| node.lookup_prefix(uri)).filter(|prefix| !prefix.is_empty());
    prefix.map_or_else(|| tag.name().to_owned(), |prefix| format!("{prefix}:{}", tag.name()))
}

fn element(node: Node<'_, '_>, depth: usize) -> Result<Value, DocumentError> {
    if depth > MAX_DEPTH {
        return Err(DocumentError::TooLarge);
    }
    let mut map = Map::new();
    for attribute in node.attributes() {
        map.insert(format!("@{}", attribute.name()), Value::from(attribute.value()));
    }
    let mut text = String::new();
    for child in node.children() {
        if child.is_text() {
            text.push_str(child.text().unwrap_or(""));
        } else if child.is_element() {
            let value = element(child, depth + 1)?;
            match map.entry(name(&child)) {
                serde_json::map::Entry::Vacant(entry) => {
                    entry.insert(value);
                }
                serde_json::map::Entry::Occupied(mut entry) => match entry.get_mut() {
                    Value::Array(all) => all.push(value),
                    one => *one = Value::Array(vec![one.take(), value]),
                },
            }
        }
    }
    let text = text.trim();
    match (map.is_empty(), text.is_empty()) {
        (true, true) => Ok(Value::Null),
        (true, false) => Ok(Value::from(text)),
        (false, true) => Ok(Value::Object(map)),
        (false, false) => {
            map.insert("#text".to_owned(), Value::from(text));
            Ok(Value::Object(map))
        }
    }
}
