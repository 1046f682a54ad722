//! Overrides of single values, such as `--set components.format.weight=0.1`.

use super::error::{RecipeError, RecipeErrors};
use super::path::{DEPTH_MAX, dotted, shorten};
use super::tree::{Node, Tree, TreeKey};
use super::yaml;
use serde_json::Value;

impl Node {
    /// Overrides one value: `components.format.weight` and `0.1`. The text is read like a value in a recipe, so that
    /// `0.1` is a number, `[a, b]` a list and `"012"` text. Missing maps are made; a number in the path is the place
    /// in a list. On a error nothing is changed.
    pub fn set(&mut self, path: &str, text: &str) -> Result<(), RecipeErrors> {
        self.replace(path, read_override(path, text)?)
    }

    /// Overrides one value by a whole one, by the same paths as [`Node::set`].
    pub fn put(&mut self, path: &str, value: &Value) -> Result<(), RecipeErrors> {
        self.replace(path, Self::from_value_at(value, &dotted(path))?)
    }

    fn replace(&mut self, path: &str, value: Self) -> Result<(), RecipeErrors> {
        let segments: Vec<&str> = path.split('.').take(DEPTH_MAX + 1).collect();
        if segments.iter().any(|segment| segment.is_empty()) {
            let fix = Some("write it like components.format.weight");
            return Err(unset(path, "the path has an empty part", fix));
        }
        if segments.contains(&"<<") {
            return Err(unset(path, "merge keys are not allowed", None));
        }
        if segments.len() + value.depth() > DEPTH_MAX {
            return Err(unset(path, "the value would lie too deep", None));
        }
        let mut node = self;
        for segment in segments {
            node = node.step(segment, path)?;
        }
        *node = value;
        Ok(())
    }

    /// The child that a part of a path names. It fails only on what is there already: below a new map everything
    /// can be made, so a failed override leaves nothing behind.
    fn step(&mut self, segment: &str, path: &str) -> Result<&mut Self, RecipeErrors> {
        if self.value == Tree::Null {
            self.value = Tree::Map(Vec::new());
        }
        match &mut self.value {
            Tree::Map(entries) => {
                let known = entries.iter().position(|(key, _)| key.name == segment);
                let at = known.unwrap_or_else(|| {
                    let key = TreeKey { name: segment.to_owned(), line: None };
                    entries.push((key, Self { line: None, value: Tree::Null }));
                    entries.len() - 1
                });
                Ok(&mut entries[at].1)
            }
            Tree::List(items) => {
                let count = items.len();
                let at = segment.parse::<usize>().ok();
                at.and_then(|at| items.get_mut(at)).ok_or_else(|| {
                    let message = format!("\"{}\" is no place in a list of {count}", shorten(segment));
                    unset(path, &message, Some("places are counted from 0"))
                })
            }
            _ => {
                let message = format!("\"{}\" is below a single value", shorten(segment));
                Err(unset(path, &message, Some("only maps and lists have parts")))
            }
        }
    }

    fn depth(&self) -> usize {
        match &self.value {
            Tree::List(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Tree::Map(entries) => 1 + entries.iter().map(|(_, node)| node.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }
}

/// Reads the value of an override. It must be written on its own: what YAML would cut off as a comment or take apart
/// as a block is refused, since nobody who typed `--set prompt="Rate this: good"` meant a map.
fn read_override(path: &str, text: &str) -> Result<Node, RecipeErrors> {
    let quoted = "put the value in quotes of its own";
    let first = text.trim_start().chars().next();
    let closed = matches!(first, Some('"' | '\'' | '[' | '{'));
    if !closed && (text.starts_with('#') || text.contains(" #") || text.contains("\t#")) {
        return Err(unset(path, "the part after \"#\" would be lost as a comment", Some(quoted)));
    }
    let node = yaml::read(text, &dotted(path)).map_err(|errors| {
        errors.map(|error| {
            let fix = match error.code {
                "recipe.empty" => "write null or \"\" for nothing",
                "recipe.syntax" | "recipe.documents" => quoted,
                _ => return error,
            };
            RecipeError { code: "recipe.set", ..error }.fixed_by(fix)
        })
    })?;
    if !closed && matches!(node.value, Tree::List(_) | Tree::Map(_)) {
        return Err(unset(path, "the value would be taken for a list or a map", Some(quoted)));
    }
    Ok(node)
}

fn unset(path: &str, message: &str, fix: Option<&str>) -> RecipeErrors {
    let error = RecipeError::new("recipe.set", dotted(path), message);
    RecipeError { fix: fix.map(str::to_owned), ..error }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn recipe() -> Node {
        Node::from_yaml("name: a\ncomponents:\n  format: {weight: 1}\nlist: [{b: 1}, 2]\nlater:\n").unwrap()
    }

    fn after(path: &str, text: &str) -> serde_json::Value {
        let mut node = recipe();
        node.set(path, text).unwrap();
        node.to_value()
    }

    #[test]
    fn values_are_read_like_in_a_recipe() {
        for (text, value) in [
            ("0.1", json!(0.1)),
            ("3", json!(3)),
            ("[a, b]", json!(["a", "b"])),
            ("{x: {y: 1}}", json!({"x": {"y": 1}})),
            ("\"012\"", json!("012")),
            ("null", json!(null)),
            ("\"\"", json!("")),
            ("http://127.0.0.1:8000/v1?a=b", json!("http://127.0.0.1:8000/v1?a=b")),
            ("hello, world", json!("hello, world")),
            ("\"a #b\"", json!("a #b")),
        ] {
            assert_eq!(
                after("components.format.weight", text)["components"]["format"]["weight"],
                value,
                "{text}"
            );
        }
    }

    #[test]
    fn missing_maps_are_made_and_lists_are_indexed() {
        assert_eq!(after("judges.main.model", "m")["judges"], json!({"main": {"model": "m"}}));
        assert_eq!(after("later.x", "1")["later"], json!({"x": 1}));
        assert_eq!(after("list.0.b", "5")["list"], json!([{"b": 5}, 2]));
        assert_eq!(after("list.1", "[7]")["list"], json!([{"b": 1}, [7]]));
    }

    #[test]
    fn errors_change_nothing() {
        for (path, text, code) in [
            ("", "1", "recipe.set"),
            ("a..b", "1", "recipe.set"),
            ("name.x", "1", "recipe.set"),
            ("list.2", "1", "recipe.set"),
            ("list.-1", "1", "recipe.set"),
            ("list.x.y", "1", "recipe.set"),
            ("new.<<", "1", "recipe.set"),
            ("name", "", "recipe.set"),
            ("name", "[1", "recipe.set"),
            ("name", "Rate this: good", "recipe.set"),
            ("name", "- a", "recipe.set"),
            ("name", "gpt #1", "recipe.set"),
            ("name", "a\n---\nb", "recipe.set"),
            ("name", "no", "recipe.type"),
            ("name", ".inf", "recipe.number"),
            ("name", "${X}", "recipe.env"),
            ("name", "*a", "recipe.anchors"),
            ("new.api_key", "sk-SECRET", "recipe.inline_secret"),
            ("new", "{api_key: sk-SECRET}", "recipe.inline_secret"),
            (&["a"; 33].join("."), "1", "recipe.set"),
            (&["a"; 32].join("."), "[1]", "recipe.set"),
        ] {
            let mut node = recipe();
            let errors = node.set(path, text).unwrap_err();
            assert_eq!(errors.as_slice()[0].code, code, "{path}={text}: {errors}");
            assert!(!errors.to_string().contains("SECRET"));
            assert_eq!(node, recipe(), "{path}={text}");
        }
        assert_eq!(recipe().set(&["a"; 32].join("."), "1"), Ok(()));
    }

    #[test]
    fn a_tree_is_held_to_the_same_rules() {
        let secret = json!("sk-SECRET");
        for path in ["judges.main.api_key", "judges.main.api_key.0"] {
            let errors = recipe().put(path, &secret).unwrap_err();
            assert_eq!(errors.as_slice()[0].code, "recipe.inline_secret");
        }
        let mut node = recipe();
        node.put("judges.main.model", &secret).unwrap();
        assert_eq!(node.to_value()["judges"]["main"]["model"], "sk-SECRET");
    }
}
