//! Tool calls as Python writes them, and literals of Python, read as JSON: the forms in which data sets publish expected calls.

use crate::value::{PyValue, Reader};
use dashu_int::IBig;
use plaudit_text::exact;
use serde_json::{Map, Number, Value as Json, json};

/// The longest name of a function or an argument, in bytes.
const LONGEST: usize = 256;

impl PyValue {
    /// The value as JSON: tuples and sets are lists, and keys are text. None for what JSON does not have.
    pub fn to_json(&self) -> Option<Json> {
        let list =
            |items: &[Self]| items.iter().map(Self::to_json).collect::<Option<Vec<_>>>().map(Json::Array);
        match self {
            Self::None => Some(Json::Null),
            Self::Bool(value) => Some(Json::Bool(*value)),
            Self::Int(value) => Some(integer(value)),
            Self::Float(value) => Number::from_f64(*value).map(Json::Number),
            Self::Str(text) => Some(Json::from(text.as_str())),
            Self::List(items) | Self::Tuple(items) | Self::Set(items) => list(items),
            Self::Dict(entries) => {
                let entry = |(key, value): &(Self, Self)| {
                    let key = match key {
                        Self::Str(text) => text.clone(),
                        Self::Int(number) => number.to_string(),
                        _ => return None,
                    };
                    Some((key, value.to_json()?))
                };
                entries.iter().map(entry).collect::<Option<Map<_, _>>>().map(Json::Object)
            }
            Self::Bytes(_) | Self::Object => None,
        }
    }
}

/// An integer as the reader of JSON keeps it.
fn integer(value: &IBig) -> Json {
    let written = value.to_string();
    exact::read(&written).unwrap_or(Json::String(written))
}

/// Calls with named arguments, one or several, in brackets or not: `[search(query="rain", days=3), now()]`. Each becomes an object
/// with `name` and `arguments`. A name is what stands before its bracket: those of ToolACE have spaces.
pub fn calls(text: &str) -> Option<Json> {
    let mut reader = Reader::new(text);
    let bracket = reader.eat(b'[');
    let mut found = Vec::new();
    loop {
        let name = reader.name(b'(')?;
        let mut arguments = Map::new();
        while !reader.eat(b')') {
            if !arguments.is_empty() && !reader.eat(b',') {
                return None;
            }
            let key = reader.name(b'=')?;
            if arguments.insert(key, reader.value(0)?.to_json()?).is_some() {
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

impl Reader<'_> {
    /// A name before a sign, which is passed over.
    fn name(&mut self, end: u8) -> Option<String> {
        self.space();
        let rest = self.rest();
        let length = rest.iter().take(LONGEST + 1).position(|byte| *byte == end)?;
        let name = std::str::from_utf8(&rest[..length]).ok()?.trim_end();
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

    #[test]
    fn literals_become_json() {
        let read = |text: &str| PyValue::literal(text)?.to_json();
        assert_eq!(read("{'a': (1, None), 2: {'b'}}"), Some(json!({"a": [1, null], "2": ["b"]})));
        for text in ["b'a'", "{(1,): 2}", "1e400"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
