//! JSON reader: `serde_json` checks the syntax, and the YAML reader gives every value its line.
//!
//! JSON is a subset of YAML but for two things in strings, which are rewritten as YAML escapes: surrogate pairs, and raw
//! characters that YAML does not allow or takes for line breaks.

use super::error::{RecipeError, RecipeErrors};
use super::tree::{Node, opening};
use super::yaml;
use plaudit_text::escaped_utf16;
use serde::de::IgnoredAny;

/// The tree of a JSON text.
pub(super) fn read(text: &str) -> Result<Node, RecipeErrors> {
    let text = opening(text, "")?;
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(IgnoredAny) => yaml::read(&to_yaml(text)?, ""),
        // A text that is cut short may be too deep before that, which says more.
        Err(error) => Err(match yaml::read(text, "") {
            Err(errors) if errors.as_slice().iter().any(|error| error.code == "recipe.depth") => errors,
            _ => syntax_error(&error),
        }),
    }
}

fn syntax_error(error: &serde_json::Error) -> RecipeErrors {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or(&message);
    not_json(u32::try_from(error.line()).ok().filter(|line| *line > 0), message)
}

fn not_json(line: Option<u32>, message: &str) -> RecipeErrors {
    let message = format!("not JSON: {message}");
    RecipeError::new("recipe.syntax", "", message).at(line).into()
}

/// Rewrites valid JSON as YAML, line by line.
fn to_yaml(text: &str) -> Result<String, RecipeErrors> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let special = |c: char| matches!(c, '\\' | '\u{85}' | '\u{2028}' | '\u{2029}') || !yaml::is_printable(c);
    while let Some((at, found)) = rest.char_indices().find(|(_, c)| special(*c)) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match (found, escaped_utf16(rest)) {
            (_, Some((Some(character), 12))) => {
                out.push_str(&escape(character));
                12
            }
            (_, Some((None, _))) => {
                let lines = text[..text.len() - rest.len()].matches('\n').count() + 1;
                return Err(not_json(u32::try_from(lines).ok(), "lone surrogate in an escape"));
            }
            // Another escape, of which YAML knows all: the character behind the backslash may be a second backslash.
            ('\\', _) => {
                out.push_str(&rest[..2]);
                2
            }
            _ => {
                out.push_str(&escape(found));
                found.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    out.push_str(rest);
    Ok(out)
}

fn escape(character: char) -> String {
    format!("\\U{:08x}", u32::from(character))
}

#[cfg(test)]
mod tests {
    use super::super::path::DEPTH_MAX;
    use super::super::tree::Tree;
    use super::*;

    fn messages(text: &str) -> Vec<String> {
        read(text).err().into_iter().flatten().map(|error| error.to_string()).collect()
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
        let said = messages(
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
            let errors = read(text).unwrap_err();
            assert_eq!(errors.as_slice()[0].code, code, "{text}: {errors}");
        }
        assert!(
            messages("{\n\"a\": nope}")[0].starts_with("line 2: not JSON: expected"),
            "{:?}",
            messages("{\n\"a\": nope}")
        );
        assert!(read("\u{feff}{\"a\": 0.1}").is_ok());
        let node = read("{\"a\":\t\"\u{7f}\u{feff}\\\\ud83d \\/\"}").unwrap();
        assert_eq!(node.get("a").unwrap().value, Tree::Text("\u{7f}\u{feff}\\ud83d /".to_owned()));
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
