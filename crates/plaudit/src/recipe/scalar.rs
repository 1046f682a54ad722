//! Scalar resolution: what a plain YAML scalar means.
//!
//! YAML 1.2's core schema decides (<https://yaml.org/spec/1.2.2/#103-core-schema>). A word that YAML 1.1 reads
//! otherwise is refused: `gold: no` is `false` to half of the readers, and a reward must not depend on which.

use super::tree::Tree;

/// Why a bare word is not taken as a value. It never quotes the word, which may be a secret.
pub(super) struct ScalarError {
    pub(super) code: &'static str,
    pub(super) message: &'static str,
    pub(super) fix: Option<&'static str>,
}

/// The value of a bare (unquoted) word.
pub(super) fn resolve(word: &str) -> Result<Tree, ScalarError> {
    match word {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Tree::Null),
        "true" | "True" | "TRUE" => return Ok(Tree::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Tree::Bool(false)),
        _ => {}
    }
    if is_switch(word) {
        return Err(ambiguous(
            "yes, no, on, off, y and n are text to some YAML readers and a truth value to others",
            "write true or false, a number where one is wanted, or put text in quotes",
        ));
    }
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    if matches!(digits, ".inf" | ".Inf" | ".INF") || matches!(word, ".nan" | ".NaN" | ".NAN") {
        return Err(number_error("a number must be finite"));
    }
    // Everything below begins with a digit or a point, so ordinary words are done here.
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Ok(Tree::Text(word.to_owned()));
    }
    if let Some(error) = foreign_number(digits) {
        return Err(error);
    }
    if is_number(digits) { number(word) } else { Ok(Tree::Text(word.to_owned())) }
}

/// The words that YAML 1.1 reads as a truth value and 1.2 as text. As keys they are harmless.
pub(super) fn is_switch(word: &str) -> bool {
    ["yes", "no", "on", "off", "y", "n"].iter().any(|switch| word.eq_ignore_ascii_case(switch))
}

/// The value of a literal that has the form of a number; JSON's numbers come here as well.
pub(super) fn number(literal: &str) -> Result<Tree, ScalarError> {
    if !literal.contains(['.', 'e', 'E']) {
        return match literal.parse() {
            Ok(value) => Ok(Tree::Int(value)),
            Err(_) => Err(number_error("an integer must fit into 64 bits")),
        };
    }
    let value: f64 = literal.parse().map_err(|_| number_error("this is not a number"))?;
    let mantissa = literal.split(['e', 'E']).next().unwrap_or(literal);
    if !value.is_finite() {
        Err(number_error("a number must be finite, this one is too large for 64 bits"))
    } else if value == 0.0 && mantissa.contains(|c: char| matches!(c, '1'..='9')) {
        Err(number_error("the number is so small that it would become 0"))
    } else {
        Ok(Tree::Float(value))
    }
}

fn number_error(message: &'static str) -> ScalarError {
    ScalarError { code: "recipe.number", message, fix: None }
}

fn ambiguous(message: &'static str, fix: &'static str) -> ScalarError {
    ScalarError { code: "recipe.type", message, fix: Some(fix) }
}

/// Forms that only some YAML versions read as numbers.
fn foreign_number(digits: &str) -> Option<ScalarError> {
    let ambiguous = |message| Some(ambiguous(message, "write a plain decimal number, or put text in quotes"));
    let bytes = digits.as_bytes();
    let all_digits = bytes.iter().all(u8::is_ascii_digit);
    if all_digits && bytes.len() > 1 && bytes[0] == b'0' {
        return ambiguous("a leading zero means octal to some YAML readers");
    }
    if let [b'0', b'o' | b'O' | b'x' | b'X' | b'b' | b'B', rest @ ..] = bytes
        && !rest.is_empty()
        && rest.iter().all(|b| b.is_ascii_hexdigit() || *b == b'_')
    {
        return ambiguous("octal, hexadecimal and binary numbers are read differently by YAML readers");
    }
    if digits.contains('_') && is_number(&digits.replace('_', "")) {
        return ambiguous("underscores inside a number are read differently by YAML readers");
    }
    if is_sexagesimal(digits) {
        return ambiguous("digits with colons are a number to base 60 to some YAML readers");
    }
    None
}

/// YAML 1.1: `[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`.
fn is_sexagesimal(digits: &str) -> bool {
    let whole = match digits.split_once('.') {
        Some((whole, part)) if part.bytes().all(|b| b.is_ascii_digit() || b == b'_') => whole,
        Some(_) => return false,
        None => digits,
    };
    let mut parts = whole.split(':');
    let head =
        parts.next().is_some_and(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit() || b == b'_'));
    let mut count = 0;
    let tail = parts.all(|part| {
        count += 1;
        matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9'])
    });
    head && tail && count > 0
}

/// YAML 1.2 core, without the sign: `(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn is_number(digits: &str) -> bool {
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (digits, None),
    };
    let mantissa_holds = match mantissa.split_once('.') {
        Some((whole, part)) => {
            all_digits(whole) && all_digits(part) && !(whole.is_empty() && part.is_empty())
        }
        None => !mantissa.is_empty() && all_digits(mantissa),
    };
    mantissa_holds && exponent.is_none_or(|e| !e.is_empty() && all_digits(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(word: &str) -> &'static str {
        resolve(word).err().map_or("ok", |error| error.code)
    }

    #[test]
    fn core_schema() {
        let of = |word| resolve(word).ok();
        assert_eq!(of("True"), Some(Tree::Bool(true)));
        assert_eq!(of("~"), Some(Tree::Null));
        assert_eq!(of("-12"), Some(Tree::Int(-12)));
        assert_eq!(of("+3"), Some(Tree::Int(3)));
        assert_eq!(of("0"), Some(Tree::Int(0)));
        for (word, value) in
            [(".5", 0.5), ("1.", 1.0), ("1e3", 1000.0), ("-2.5E-1", -0.25), ("0.0", 0.0), ("00.5", 0.5)]
        {
            assert_eq!(of(word), Some(Tree::Float(value)), "{word}");
        }
    }

    #[test]
    fn words_stay_words() {
        for word in [
            "300s",
            "30ms",
            "10MiB",
            "nan",
            "inf",
            "Infinity",
            "e5",
            "1e",
            ".",
            "-",
            "+",
            "--1",
            "1.2.3",
            "127.0.0.1:80",
            "2024-08-06",
            "qwen3-32b",
            "no way",
            "none",
            "nil",
            "12:75",
            "0z1",
            "0x",
            "1:",
            ":1",
            "v1_0",
            "tRUE",
        ] {
            assert_eq!(resolve(word).ok(), Some(Tree::Text(word.into())), "{word}");
        }
    }

    #[test]
    fn ambiguous_words_are_refused() {
        for word in [
            "no", "No", "YES", "on", "oFF", "y", "N", "012", "-012", "+00", "12:30:45", "12:30", "-1:30.5",
            "0o17", "0x1F", "0b11", "1_000", "1_0.5",
        ] {
            assert_eq!(code(word), "recipe.type", "{word}");
        }
    }

    #[test]
    fn numbers_must_be_finite_and_held() {
        for word in
            [".nan", ".NaN", ".inf", "-.INF", "1e400", "-1e400", "1e-400", "0.01e-400", "9223372036854775808"]
        {
            assert_eq!(code(word), "recipe.number", "{word}");
        }
        assert_eq!(code("0e-400"), "ok");
        assert_eq!(code("5e-324"), "ok");
        assert_eq!(code("-9223372036854775808"), "ok");
    }
}
