//! Which tree does a JSON text hold?
//!
//! JSON is read by the rules of JSON, not as a kind of YAML. `serde_json` decides what is JSON but does not tell
//! where a value began, so a second cursor walks the same text one token ahead and supplies the lines.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::error::{RecipeError, RecipeErrors};
use super::path::{DEPTH_MAX, Trail};
use super::scalar;
use super::tree::{Key, Node, Tree, opening};

/// The tree of a JSON text.
pub(super) fn read(text: &str) -> Result<Node, RecipeErrors> {
    let text = opening(text, "")?;
    let mut reader =
        Reader { trail: Trail::new(""), tokens: Tokens { text, at: 0, line: 1 }, depth: 0, stopped: false };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let node = Value { reader: &mut reader, key_line: None }.deserialize(&mut deserializer);
    let read = node.and_then(|node| deserializer.end().map(|()| node));
    // When the reader itself has stopped, its own mistake says why.
    if let (Err(error), false) = (&read, reader.stopped) {
        reader.trail.mistakes.push(from_json_error(error));
    }
    RecipeErrors::none(reader.trail.mistakes)?;
    read.map_err(|error| from_json_error(&error).into())
}

fn from_json_error(error: &serde_json::Error) -> RecipeError {
    let told = error.to_string();
    let said = told.split(" at line ").next().unwrap_or(&told);
    let code = match said {
        "number out of range" => "recipe.number",
        "recursion limit exceeded" => "recipe.depth",
        _ => "recipe.syntax",
    };
    let line = u32::try_from(error.line()).ok().filter(|line| *line > 0);
    RecipeError { code, path: String::new(), line, message: format!("not JSON: {said}"), fix: None }
}

/// Where the next key or value of a JSON text begins. On text that is not JSON its answers are of no use, and
/// nothing uses them.
struct Tokens<'t> {
    text: &'t str,
    at: usize,
    line: u32,
}

impl<'t> Tokens<'t> {
    /// The line of the next key or value, and the text from there on to the next delimiter.
    fn advance(&mut self) -> (Option<u32>, &'t str) {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'\n' => self.line = self.line.saturating_add(1),
                b' ' | b'\t' | b'\r' | b',' | b':' | b']' | b'}' => {}
                _ => break,
            }
            self.at += 1;
        }
        let start = self.at;
        match bytes.get(start) {
            Some(b'"') => self.skip_string(bytes),
            Some(b'[' | b'{') => self.at += 1,
            _ => {
                let literal = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
                self.at += bytes[start..].iter().take_while(|b| literal(b)).count();
            }
        }
        (Some(self.line), self.text.get(start..self.at).unwrap_or(""))
    }

    fn skip_string(&mut self, bytes: &[u8]) {
        self.at += 1;
        while let Some(byte) = bytes.get(self.at) {
            self.at += if *byte == b'\\' { 2 } else { 1 };
            if *byte == b'"' {
                break;
            }
        }
        self.at = self.at.min(bytes.len());
    }
}

struct Reader<'t> {
    trail: Trail,
    tokens: Tokens<'t>,
    depth: usize,
    stopped: bool,
}

impl Reader<'_> {
    /// Goes one collection deeper, or stops.
    fn deeper<E: Error>(&mut self, line: Option<u32>) -> Result<(), E> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            self.trail.too_deep(line);
        }
        self.stopped = self.depth > DEPTH_MAX || self.trail.is_full();
        if self.stopped { Err(E::custom("stopped")) } else { Ok(()) }
    }
}

/// One value, read in its place; `key_line` is the line of its key, where it has one.
struct Value<'r, 't> {
    reader: &'r mut Reader<'t>,
    key_line: Option<u32>,
}

impl<'de> DeserializeSeed<'de> for Value<'_, '_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        let (line, literal) = self.reader.tokens.advance();
        deserializer.deserialize_any(Here { reader: self.reader, line, key_line: self.key_line, literal })
    }
}

struct Here<'r, 't> {
    reader: &'r mut Reader<'t>,
    line: Option<u32>,
    key_line: Option<u32>,
    literal: &'t str,
}

impl Here<'_, '_> {
    fn node(&self, value: Tree) -> Node {
        Node { line: self.line, value }
    }

    /// The literal is read by the same rule as in YAML, so that a number means the same in both.
    fn number(&mut self) -> Node {
        match scalar::number(self.literal) {
            Ok(value) => self.node(value),
            Err(refusal) => {
                self.reader.trail.mistake(refusal.code, self.line, refusal.message, None);
                self.node(Tree::Null)
            }
        }
    }
}

impl<'de> Visitor<'de> for Here<'_, '_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(self.node(Tree::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(self.node(Tree::Bool(value)))
    }

    fn visit_i64<E>(mut self, _: i64) -> Result<Node, E> {
        Ok(self.number())
    }

    fn visit_u64<E>(mut self, _: u64) -> Result<Node, E> {
        Ok(self.number())
    }

    fn visit_f64<E>(mut self, _: f64) -> Result<Node, E> {
        Ok(self.number())
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        self.reader.trail.text(text, self.line);
        Ok(self.node(Tree::Text(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        self.reader.deeper(self.line)?;
        let mut items = Vec::new();
        loop {
            self.reader.trail.enter_index(items.len());
            let item = access.next_element_seed(Value { reader: &mut *self.reader, key_line: None })?;
            self.reader.trail.leave();
            match item {
                Some(item) => items.push(item),
                None => break,
            }
        }
        self.reader.depth -= 1;
        Ok(Node { line: self.key_line.or(self.line), value: Tree::List(items) })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        self.reader.deeper(self.line)?;
        let mut entries: Vec<(Key, Node)> = Vec::new();
        let mut seen: BTreeMap<String, Option<u32>> = BTreeMap::new();
        while let Some(name) = access.next_key::<String>()? {
            let (line, _) = self.reader.tokens.advance();
            self.reader.trail.enter_key(&name);
            match seen.get(&name) {
                Some(first) => self.reader.trail.duplicate_key(line, *first),
                None => {
                    seen.insert(name.clone(), line);
                }
            }
            let node = access.next_value_seed(Value { reader: &mut *self.reader, key_line: line })?;
            self.reader.trail.leave();
            entries.push((Key { name, line }, node));
        }
        self.reader.depth -= 1;
        Ok(Node { line: self.key_line.or(self.line), value: Tree::Map(entries) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        read(text).err().into_iter().flatten().map(|mistake| mistake.to_string()).collect()
    }

    #[test]
    fn order_and_lines_are_kept() {
        let node =
            read("{\"z\": [1,\n 2.5, \"a\\\"\\u00e9\\ud83d\\ude00\"],\n\n \"a\"\n:\n{\"no\":\n null}}")
                .unwrap();
        let names: Vec<_> = node.entries().map(|(key, _)| (key.name.as_str(), key.line)).collect();
        assert_eq!(names, [("z", Some(1)), ("a", Some(4))]);
        assert_eq!(node.get("z").unwrap().to_value(), serde_json::json!([1, 2.5, "a\"é😀"]));
        let Tree::List(items) = &node.get("z").unwrap().value else { panic!() };
        assert_eq!(items.iter().map(|item| item.line).collect::<Vec<_>>(), [Some(1), Some(2), Some(2)]);
        assert_eq!(node.get("a").unwrap().get("no").unwrap().line, Some(7));
    }

    #[test]
    fn every_mistake_is_found() {
        let said = told(
            "{\"a\": 1,\n \"a\": 1e-400,\n \"b\": [99999999999999999999, \"${X}\"],\n \"token\": \"hunter2\"}",
        );
        let starts: Vec<_> = said.iter().map(|m| m.split(':').next().unwrap()).collect();
        assert_eq!(starts, ["line 2, a", "line 2, a", "line 3, b.0", "line 3, b.1", "line 4, token"]);
        assert!(said[0].contains("lines 1 and 2") && !said[4].contains("hunt"), "{said:?}");
    }

    #[test]
    fn strict() {
        for (text, code) in [
            ("{\"a\": 1,}", "recipe.syntax"),
            ("{a: 1}", "recipe.syntax"),
            ("{\"a\": 012}", "recipe.syntax"),
            ("{} {}", "recipe.syntax"),
            ("\"\\ud800\"", "recipe.syntax"),
            ("{\"a\":\n 1e400}", "recipe.number"),
            ("", "recipe.syntax"),
        ] {
            let mistakes = read(text).unwrap_err();
            assert_eq!(mistakes.as_slice()[0].code, code, "{text}: {mistakes}");
        }
        assert!(
            told("{\n\"a\": nope}")[0].starts_with("line 2: not JSON: expected"),
            "{:?}",
            told("{\n\"a\": nope}")
        );
        assert!(read("\u{feff}{\"a\": 0.1}").is_ok());
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(read(&nested(DEPTH_MAX)).is_ok());
        for text in [nested(DEPTH_MAX + 1), "[".repeat(1 << 20), "{\"a\":".repeat(100_000)] {
            assert_eq!(read(&text).unwrap_err().as_slice()[0].code, "recipe.depth");
        }
    }
}
