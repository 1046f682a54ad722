//! Recipe tree: maps, lists and scalars with their order and line numbers.

use serde_json::{Number, Value};

use super::error::{RecipeError, RecipeErrors};
use super::path::{DEPTH_MAX, PathTracker};
use super::{json, yaml};

/// The largest recipe, in bytes. The largest shipped one has two thousand.
pub const SIZE_MAX: usize = 1 << 20;

/// A value, and the line where it is written, counted from 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// A list or map below a key has the line of the key. Values from Python or the command line have none.
    pub line: Option<u32>,
    /// The value.
    pub value: Tree,
}

/// What a recipe can hold. Numbers are finite.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A number written without point and exponent.
    Int(i64),
    /// A number written with point or exponent.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A map in the order in which it was written; no name occurs twice.
    Map(Vec<(TreeKey, Node)>),
}

/// The name of an entry of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeKey {
    /// The name.
    pub name: String,
    /// The line where it is written.
    pub line: Option<u32>,
}

impl Node {
    /// Reads YAML by the strict rules of recipes; all the errors of the text at once.
    pub fn from_yaml(text: &str) -> Result<Self, RecipeErrors> {
        yaml::read(text, "")
    }

    /// Reads JSON by the strict rules of recipes.
    pub fn from_json(text: &str) -> Result<Self, RecipeErrors> {
        json::read(text)
    }

    /// Takes over a value that has been parsed elsewhere, such as a Python dict. It has no lines.
    pub fn from_value(value: &Value) -> Result<Self, RecipeErrors> {
        Self::from_value_at(value, "")
    }

    /// The same for a value that belongs at the dotted path `base`.
    pub(super) fn from_value_at(value: &Value, base: &str) -> Result<Self, RecipeErrors> {
        let mut tracker = PathTracker::new(base);
        let node = from_value(value, &mut tracker);
        RecipeErrors::none(tracker.errors)?;
        Ok(node)
    }

    /// The same value without lines and order.
    pub fn to_value(&self) -> Value {
        match &self.value {
            Tree::Null => Value::Null,
            Tree::Bool(value) => Value::Bool(*value),
            Tree::Int(value) => Value::Number((*value).into()),
            Tree::Float(value) => Number::from_f64(*value).map_or(Value::Null, Value::Number),
            Tree::Text(text) => Value::String(text.clone()),
            Tree::List(items) => items.iter().map(Self::to_value).collect(),
            Tree::Map(entries) => {
                Value::Object(entries.iter().map(|(key, node)| (key.name.clone(), node.to_value())).collect())
            }
        }
    }

    /// The value of a key; nothing where this is not a map.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().find(|(name, _)| name.name == key).map(|(_, node)| node)
    }

    /// The entries of a map in order; none where this is not a map.
    pub fn entries(&self) -> impl Iterator<Item = (&TreeKey, &Self)> {
        let entries = match &self.value {
            Tree::Map(entries) => entries.as_slice(),
            _ => &[],
        };
        entries.iter().map(|(key, node)| (key, node))
    }
}

fn from_value(value: &Value, tracker: &mut PathTracker) -> Node {
    let deep = tracker.depth() >= DEPTH_MAX && (value.is_array() || value.is_object());
    if deep {
        tracker.too_deep(None);
    }
    let value = match value {
        _ if deep || tracker.is_full() => Tree::Null,
        Value::Null => Tree::Null,
        Value::Bool(value) => Tree::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(value), _) => Tree::Int(value),
            (None, Some(value)) if number.is_f64() && value.is_finite() => Tree::Float(value),
            _ => {
                tracker.error("recipe.number", None, "a number must be finite and fit into 64 bits", None);
                Tree::Null
            }
        },
        Value::String(text) => {
            tracker.text(text, None);
            Tree::Text(text.clone())
        }
        Value::Array(items) => {
            let items = items.iter().enumerate().map(|(index, item)| {
                tracker.enter_index(index);
                let node = from_value(item, tracker);
                tracker.leave();
                node
            });
            Tree::List(items.collect())
        }
        Value::Object(entries) => {
            let entries = entries.iter().map(|(name, value)| {
                tracker.enter_key(name);
                let node = from_value(value, tracker);
                tracker.leave();
                (TreeKey { name: name.clone(), line: None }, node)
            });
            Tree::Map(entries.collect())
        }
    };
    Node { line: None, value }
}

/// The text if it is not too long, without its byte order mark.
pub(super) fn opening<'t>(text: &'t str, base: &str) -> Result<&'t str, RecipeErrors> {
    if text.len() > SIZE_MAX {
        let message = format!("{} bytes, at most {SIZE_MAX} are read", text.len());
        return Err(RecipeError::new("recipe.too_large", base, message).into());
    }
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn codes(read: Result<Node, RecipeErrors>) -> Vec<&'static str> {
        read.err().into_iter().flatten().map(|error| error.code).collect()
    }

    #[test]
    fn a_dict_is_held_to_the_same_rules() {
        let value =
            json!({"a": {"password": "hunter2", "b": ["${X}"]}, "n": u64::MAX, "ok": [1, 1.0, null, true]});
        assert_eq!(codes(Node::from_value(&value)), ["recipe.env", "recipe.inline_secret", "recipe.number"]);
        let value = json!({"ok": [1, 1.0, null, true, "x"]});
        assert_eq!(Node::from_value(&value).unwrap().to_value(), value);
    }

    #[test]
    fn a_deep_dict_is_refused() {
        let nested = |depth: usize| (1..depth).fold(json!([]), |inner, _| json!([inner]));
        assert!(Node::from_value(&nested(DEPTH_MAX)).is_ok());
        assert_eq!(codes(Node::from_value(&nested(DEPTH_MAX + 1))), ["recipe.depth"]);
    }

    #[test]
    fn a_large_text_is_refused() {
        let text = format!("a: {}", "x".repeat(SIZE_MAX));
        assert_eq!(codes(Node::from_yaml(&text)), ["recipe.too_large"]);
        assert_eq!(codes(Node::from_json(&text)), ["recipe.too_large"]);
        assert!(Node::from_yaml(&text[..SIZE_MAX]).is_ok());
    }

    #[test]
    fn integers_and_floats_stay_apart() {
        let node = Node::from_yaml("[1, 1.0]").unwrap();
        assert_eq!(node.to_value().to_string(), "[1,1.0]");
        assert_eq!(node.get("a"), None);
        assert_eq!(node.entries().count(), 0);
    }
}
