//! What can be said in the address of a dialect? These clients send nothing but their samples, so what the service must know
//! besides stands behind the `?` of the URL that they are given.

use crate::serve::house::House;
use crate::serve::reply::Refusal;

/// The settings of an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// `size`: how many samples a prompt has.
    pub(crate) size: Option<usize>,
    /// `step`: the step of the training that the samples belong to.
    pub(crate) step: Option<u64>,
    /// `validate`: whether the reference takes part in comparisons.
    pub(crate) validate: Option<bool>,
    /// `eos`: a further text to cut off the end of a response; may be given more than once.
    pub(crate) ends: Vec<String>,
    /// `score`: the component that a filter looks at in place of the total.
    pub(crate) score: Option<String>,
    /// `key`: the field of the answer that holds the total.
    pub(crate) key: Option<String>,
    /// `reference`: the field that holds the reference, with dots where it lies deeper.
    pub(crate) reference: Option<String>,
    /// `failure`: how a sample without a number is said.
    pub(crate) failure: Failure,
}

/// How a sample without a number is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Failure {
    /// By a status of HTTP, for clients that take every answer for a real one.
    #[default]
    Http,
    /// By a field of the answer, for clients that look at it.
    Class,
}

/// What every dialect takes.
pub(crate) const COMMON: [&str; 3] = ["size", "step", "validate"];

impl Options {
    /// Reads what stands behind the `?`; `own` are the settings that the dialect has beside those of all.
    pub(crate) fn read(query: &str, own: &[&str]) -> Result<Self, Refusal> {
        let mut options = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if !COMMON.contains(&name.as_str()) && !own.contains(&name.as_str()) {
                let known = [&COMMON[..], own].concat().join(", ");
                return Err(wrong(format!("there is no setting `{name}` here; there are {known}")));
            }
            match name.as_str() {
                "size" => options.size = Some(size(&value)?),
                "step" => options.step = Some(number(&name, &value)?),
                "validate" => options.validate = Some(truth(&name, &value)?),
                "eos" => options.ends.push(value),
                "score" => options.score = Some(value),
                "key" => options.key = Some(value),
                "reference" => options.reference = Some(value),
                _ => options.failure = failure(&value)?,
            }
        }
        House::check_step(options.step)?;
        Ok(options)
    }
}

fn wrong(message: String) -> Refusal {
    Refusal::bad("http.query", message)
}

fn number<N: std::str::FromStr>(name: &str, value: &str) -> Result<N, Refusal> {
    value.parse().map_err(|_| wrong(format!("`{name}` is a whole number, not `{value}`")))
}

fn size(value: &str) -> Result<usize, Refusal> {
    match number("size", value)? {
        0 => Err(wrong("`size` is how many samples a prompt has, not 0".to_owned())),
        size => Ok(size),
    }
}

fn truth(name: &str, value: &str) -> Result<bool, Refusal> {
    match value {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(wrong(format!("`{name}` is true or false, not `{value}`"))),
    }
}

fn failure(value: &str) -> Result<Failure, Refusal> {
    match value {
        "http" => Ok(Failure::Http),
        "class" => Ok(Failure::Class),
        _ => Err(wrong(format!("`failure` is http or class, not `{value}`"))),
    }
}

/// A part of an address as it was meant: `+` is a blank, and `%7C` a bar.
fn decode(text: &str) -> Result<String, Refusal> {
    let bad = || wrong(format!("`{text}` is not written as an address is"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
                let (high, low) = (digit().ok_or_else(bad)?, digit().ok_or_else(bad)?);
                u8::try_from(high * 16 + low).map_err(|_| bad())?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_they_were_meant() {
        let options =
            Options::read("size=8&eos=%3C%7Cend%7C%3E&eos=a+b&step=3&validate=true", &["eos"]).unwrap();
        assert_eq!((options.size, options.step, options.validate), (Some(8), Some(3), Some(true)));
        assert_eq!(options.ends, ["<|end|>", "a b"]);
        assert_eq!(Options::read("", &[]).unwrap(), Options::default());
        assert_eq!(Options::read("failure=class", &["failure"]).unwrap().failure, Failure::Class);
        assert_eq!(Options::read("key=%C3%A4", &["key"]).unwrap().key.as_deref(), Some("ä"));
    }

    #[test]
    fn mistakes_are_told() {
        for query in [
            "size=0",
            "size=x",
            "size",
            "step=-1",
            "validate=maybe",
            "eos=x",
            "sizes=8",
            "size=%4",
            "size=%zz",
        ] {
            let refusal = Options::read(query, &[]).unwrap_err();
            assert_eq!((refusal.status.as_u16(), refusal.code), (400, "http.query"), "{query}");
        }
        assert_eq!(Options::read("step=9007199254740992", &[]).unwrap_err().code, "run.step");
        assert!(Options::read("failure=zero", &["failure"]).is_err());
        assert!(Options::read("eos=%FF", &["eos"]).is_err());
    }
}
