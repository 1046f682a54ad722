//! YAML reader: strict, with line numbers, reporting all errors at once.
//!
//! A strict reader on top of the parser's events: no anchors, aliases, merge keys or tags, one document, keys that
//! are text and given once. It works with a stack of its own, so that no input can exhaust the program's. It is not
//! `serde-saphyr`, because deserializing stops at the first error, and an author should see all of them at once, each
//! with its line.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

use super::error::{RecipeError, RecipeErrors};
use super::path::{DEPTH_MAX, PathTracker, too_deep};
use super::scalar;
use super::tree::{Node, Tree, TreeKey, opening};

/// The name that a key gets which is not text. Its error is noted, so the tree is never used.
const NAMELESS: &str = "?";

/// The tree of a text, whose root is at the dotted path `base`. Only a whole recipe, at the empty path, has lines.
pub(super) fn read(text: &str, base: &str) -> Result<Node, RecipeErrors> {
    let line = |line: usize| u32::try_from(line).ok().filter(|_| base.is_empty());
    let text = opening(text, base)?;
    // The parser itself would take a NUL for the end and drop the rest of the recipe in silence.
    if let Some((at, c)) = text.char_indices().find(|(_, c)| !is_printable(*c)) {
        let lines = memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count() + 1;
        let message = format!("the character U+{:04X} is not allowed", u32::from(c));
        return Err(RecipeError::new("recipe.syntax", base, message).at(line(lines)).into());
    }
    let mut reader = Reader { tracker: PathTracker::new(base), open: Vec::new(), root: None, documents: 0 };
    for event in Parser::new_from_str(text) {
        let going_on = match event {
            Ok((event, span)) => reader.event(event, line(span.start.line())),
            Err(error) => {
                let (code, message) = told_scan_error(&error);
                let error = RecipeError::new(code, base, message).at(line(error.marker().line()));
                reader.tracker.errors.push(error);
                false
            }
        };
        if !going_on || reader.tracker.is_full() {
            break;
        }
    }
    RecipeErrors::none(reader.tracker.errors)?;
    reader.root.ok_or_else(|| RecipeError::new("recipe.empty", base, "there is nothing in it").into())
}

/// Whether YAML allows the character in a text.
pub(super) fn is_printable(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{85}' | ' '..='~' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
        && c != '\u{feff}'
}

/// The code and the message of what the parser refuses by itself.
fn told_scan_error(error: &ScanError) -> (&'static str, String) {
    let info = error.info();
    if info.contains("recursion limit") {
        ("recipe.depth", too_deep())
    } else if info.contains("unknown anchor") {
        ("recipe.anchors", "anchors and aliases are not allowed".to_owned())
    } else if info.contains("handle wasn't declared") {
        ("recipe.tag", "tags are not allowed".to_owned())
    } else {
        ("recipe.syntax", format!("not YAML: {info}"))
    }
}

/// A list or map whose end has not been read.
struct OpenCollection {
    line: Option<u32>,
    /// It stands where a key should be.
    is_key: bool,
    body: Body,
}

enum Body {
    List(Vec<Node>),
    Map { entries: Vec<(TreeKey, Node)>, seen: BTreeMap<String, Option<u32>>, pending: Option<TreeKey> },
}

struct Reader {
    /// While a value is read, the tracker ends at it: the step is taken when its key, or the list item, begins.
    tracker: PathTracker,
    open: Vec<OpenCollection>,
    root: Option<Node>,
    documents: u32,
}

impl Reader {
    /// Takes one event; false where reading must stop.
    fn event(&mut self, event: Event<'_>, line: Option<u32>) -> bool {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    let message = "a recipe is one document, here a second begins";
                    self.tracker.error("recipe.documents", line, message, None);
                    return false;
                }
            }
            Event::Alias(_) => {
                self.begin(line);
                self.refuse_anchor(line);
                let is_key = self.wants_key();
                self.end_value(Node { line, value: Tree::Null }, is_key);
            }
            Event::Scalar(text, style, anchor, tag) => {
                if self.wants_key() {
                    self.key(&text, style, line);
                    self.refuse_properties(anchor, tag.is_some(), line);
                } else {
                    self.begin(line);
                    self.refuse_properties(anchor, tag.is_some(), line);
                    self.scalar(&text, style, line);
                }
            }
            Event::SequenceStart(anchor, tag) => {
                return self.start(Body::List(Vec::new()), anchor, tag.is_some(), line);
            }
            Event::MappingStart(anchor, tag) => {
                let body = Body::Map { entries: Vec::new(), seen: BTreeMap::new(), pending: None };
                return self.start(body, anchor, tag.is_some(), line);
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        true
    }

    /// True inside a map, between an entry and the next key.
    fn wants_key(&self) -> bool {
        matches!(self.open.last(), Some(OpenCollection { body: Body::Map { pending: None, .. }, .. }))
    }

    /// The line of the key whose value is being read.
    fn key_line(&self) -> Option<u32> {
        match self.open.last().map(|open| &open.body) {
            Some(Body::Map { pending: Some(key), .. }) => key.line,
            _ => None,
        }
    }

    /// Takes the step to the item that begins; after a key the step is taken already.
    fn begin(&mut self, line: Option<u32>) {
        if self.wants_key() {
            self.tracker.enter_key(NAMELESS);
            self.tracker.error("recipe.type", line, "a key must be text", Some("put it in quotes"));
        } else if let Some(Body::List(items)) = self.open.last().map(|open| &open.body) {
            self.tracker.enter_index(items.len());
        }
    }

    fn start(&mut self, body: Body, anchor: usize, tagged: bool, line: Option<u32>) -> bool {
        let is_key = self.wants_key();
        self.begin(line);
        self.refuse_properties(anchor, tagged, line);
        if self.open.len() >= DEPTH_MAX {
            self.tracker.too_deep(line);
            return false;
        }
        // A list or map stands at the line of its key: that is where its author would look.
        let line = self.key_line().or(line);
        self.open.push(OpenCollection { line, is_key, body });
        true
    }

    fn end(&mut self) {
        let Some(open) = self.open.pop() else { return };
        let value = match open.body {
            Body::List(items) => Tree::List(items),
            Body::Map { entries, .. } => Tree::Map(entries),
        };
        self.end_value(Node { line: open.line, value }, open.is_key);
    }

    fn key(&mut self, text: &str, style: ScalarStyle, line: Option<u32>) {
        self.tracker.enter_key(text);
        let plain = style == ScalarStyle::Plain;
        let is_text = !plain || scalar::is_switch(text) || matches!(scalar::resolve(text), Ok(Tree::Text(_)));
        if !is_text {
            self.tracker.error("recipe.type", line, "a key must be text", Some("put it in quotes"));
        } else if plain && text == "<<" {
            let fix = Some("write the keys out");
            self.tracker.error("recipe.anchors", line, "merge keys are not allowed", fix);
        }
        let Some(Body::Map { seen, pending, .. }) = self.open.last_mut().map(|open| &mut open.body) else {
            return;
        };
        *pending = Some(TreeKey { name: text.to_owned(), line });
        match seen.get(text) {
            Some(first) => self.tracker.duplicate_key(line, *first),
            None => {
                seen.insert(text.to_owned(), line);
            }
        }
    }

    /// Places a value. One that stands where a key should be leaves a key without a name, so that the errors behind it
    /// are found too.
    fn end_value(&mut self, node: Node, is_key: bool) {
        match self.open.last_mut().map(|open| &mut open.body) {
            Some(Body::Map { pending, .. }) if is_key => {
                *pending = Some(TreeKey { name: NAMELESS.to_owned(), line: node.line });
            }
            _ => self.place(node),
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, line: Option<u32>) {
        let plain = style == ScalarStyle::Plain;
        if plain && text.is_empty() && self.open.is_empty() {
            return;
        }
        // A value that was left out has no line of its own.
        let line = if text.is_empty() { self.key_line().or(line) } else { line };
        let resolved = if plain { scalar::resolve(text) } else { Ok(Tree::Text(text.to_owned())) };
        let value = match resolved {
            Ok(value) => value,
            Err(_) if self.tracker.is_secret() => Tree::Text(text.to_owned()),
            Err(error) => {
                self.tracker.error(error.code, line, error.message, error.fix);
                Tree::Null
            }
        };
        if let Tree::Text(text) = &value {
            self.tracker.text(text, line);
        }
        self.place(Node { line, value });
    }

    fn place(&mut self, node: Node) {
        match self.open.last_mut().map(|open| &mut open.body) {
            None => self.root = Some(node),
            Some(Body::List(items)) => items.push(node),
            Some(Body::Map { entries, pending, .. }) => {
                if let Some(key) = pending.take() {
                    entries.push((key, node));
                }
            }
        }
        if !self.open.is_empty() {
            self.tracker.leave();
        }
    }

    fn refuse_properties(&mut self, anchor: usize, tagged: bool, line: Option<u32>) {
        if anchor > 0 {
            self.refuse_anchor(line);
        }
        if tagged {
            let fix = Some("remove the \"!\" and its name");
            self.tracker.error("recipe.tag", line, "tags are not allowed", fix);
        }
    }

    fn refuse_anchor(&mut self, line: Option<u32>) {
        let fix = Some("write the value out where it is used");
        self.tracker.error("recipe.anchors", line, "anchors and aliases are not allowed", fix);
    }
}
