//! Tool calls as Python writes them, read as JSON: a form in which data sets publish expected calls.

use crate::literal::{LiteralReader, Notation};
use serde_json::{Map, Value as Json, json};

/// The longest name of a function or an argument, in bytes.
const MAX_LENGTH: usize = 256;

/// Calls with named arguments, one or several, in brackets or not: `[search(query="rain", days=3), now()]`. Each becomes an object
/// with `name` and `arguments`. A name is what stands before its bracket: those of ToolACE have spaces.
pub fn calls(text: &str) -> Option<Json> {
    let mut reader = LiteralReader::new(text, Notation::Data);
    let bracket = reader.eat(b'[');
    let mut found = Vec::new();
    loop {
        let name = reader.callee(b'(')?;
        let mut arguments = Map::new();
        while !reader.eat(b')') {
            if !arguments.is_empty() && !reader.eat(b',') {
                return None;
            }
            let key = reader.callee(b'=')?;
            if arguments.insert(key, reader.value(0).ok()?.into_json()?).is_some() {
                return None;
            }
        }
        found.push(json!({ "name": name, "arguments": arguments }));
        let separated = reader.eat(b',') || (!bracket && reader.eat(b';'));
        let ended = if bracket { reader.eat(b']') } else { reader.is_at_end() };
        if ended {
            return reader.is_at_end().then_some(Json::Array(found));
        }
        if !separated && (bracket || !reader.is_on_a_new_line()) {
            return None;
        }
    }
}

impl LiteralReader<'_> {
    /// A name before a sign, which is passed over.
    fn callee(&mut self, end: u8) -> Option<String> {
        self.space();
        let rest = self.rest();
        let length = rest.bytes().take(MAX_LENGTH + 1).position(|byte| byte == end)?;
        let name = rest[..length].trim_end();
        let fits = |letter: char| letter.is_alphanumeric() || "_-./ $:".contains(letter);
        let named =
            name.starts_with(|first: char| first.is_alphanumeric() || first == '_') && name.chars().all(fits);
        self.skip(length + 1);
        named.then(|| name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact;

    #[test]
    fn calls_have_a_name_and_named_arguments() {
        let search = json!({"name": "search", "arguments": {"query": "rain, or (snow)", "days": 3, "near": [1.5, null, true]}});
        let now = json!({"name": "clock.now", "arguments": {}});
        for text in [
            "[search(query=\"rain, or (snow)\", days=3, near=[1.5, None, True]), clock.now()]",
            "search(query='rain, or (snow)', days=3, near=(1.5, None, True))\nclock.now()",
            " search( query = 'rain, or (snow)' , days = 3, near=[1.5, None, True] ) ; clock.now( )",
        ] {
            assert_eq!(calls(text), Some(json!([search, now])), "{text}");
        }
        let spaced = json!([{"name": "Market Trends API", "arguments": {"trend-type": {"a": 1}}}]);
        assert_eq!(calls("[Market Trends API(trend-type={'a': 1})]"), Some(spaced));
        let digits = "123456789012345678901234567890";
        assert_eq!(calls(&format!("f(n={digits})")).map(|read| exact::write(&read)), {
            Some(format!("[{{\"arguments\":{{\"n\":{digits}}},\"name\":\"f\"}}]"))
        });
    }

    #[test]
    fn other_texts_are_no_calls() {
        for text in [
            "",
            "[]",
            "search",
            "search(",
            "search(3)",
            "search(a=b)",
            "search(a=1, a=2)",
            "search(a=1 b=2)",
            "[search(a=1)",
            "search(a=1)]",
            "search(a=1) now()",
            "f(x) = 2",
            "\"f\"(a=1)",
            "(1, 2)",
        ] {
            assert_eq!(calls(text), None, "{text}");
        }
        let deep = format!("f(a={}1{})", "[".repeat(4000), "]".repeat(4000));
        assert_eq!(calls(&deep), None);
    }
}
