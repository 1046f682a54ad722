//! What the harness in the box writes about a value of the program, as a value of Python.

use dashu_int::ops::{BitTest, Gcd, PowerOfTwo};
use dashu_int::{IBig, UBig};
use plaudit_text::PyValue;
use plaudit_text::value::{DIGITS, integer};
use serde_json::Value as Json;

/// How deep values may be nested.
const DEPTH: usize = 100;

/// Reads what the harness wrote.
pub(crate) fn received(json: &Json) -> Option<PyValue> {
    received_at(json, 0)
}

fn received_at(json: &Json, depth: usize) -> Option<PyValue> {
    let parts = match json {
        Json::Array(parts) if depth <= 2 * DEPTH => parts,
        Json::Null => return Some(PyValue::None),
        Json::Bool(value) => return Some(PyValue::Bool(*value)),
        Json::String(text) => return Some(PyValue::Str(text.clone())),
        Json::Number(number) => return number.as_i64().map(|value| PyValue::Int(value.into())),
        _ => return None,
    };
    let content = parts.get(1);
    let text = || content.and_then(Json::as_str);
    let items = || -> Option<Vec<PyValue>> {
        content?.as_array()?.iter().map(|item| received_at(item, depth + 1)).collect()
    };
    Some(match parts.first()?.as_str()? {
        "i" => PyValue::Int(integer_of_hex(text()?)?),
        "f" => PyValue::Float(float_of_hex(text()?)?),
        "y" | "a" => PyValue::Bytes(text()?.to_owned()),
        "x" => {
            let written = parts.get(2).and_then(Json::as_str)?;
            let value = match text()? {
                "fractions.Fraction" => of_fraction(written),
                "decimal.Decimal" => of_decimal(written),
                _ => None,
            };
            value.unwrap_or(PyValue::Object)
        }
        // A view of keys or of items equals a set; a complex number that is real equals one.
        "v" if parts.get(2).is_some_and(|kind| kind != "values") => PyValue::Set(items()?),
        "c" if parts.get(2).and_then(Json::as_str).and_then(float_of_hex) == Some(0.0) => {
            PyValue::Float(float_of_hex(text()?)?)
        }
        "l" | "q" => PyValue::List(items()?),
        "t" => PyValue::Tuple(items()?),
        "e" | "z" => PyValue::Set(items()?),
        "d" => {
            let pair = |entry: &Json| {
                let (key, value) = (entry.get(0)?, entry.get(1)?);
                Some((received_at(key, depth + 1)?, received_at(value, depth + 1)?))
            };
            PyValue::Dict(content?.as_array()?.iter().map(pair).collect::<Option<Vec<_>>>()?)
        }
        _ => PyValue::Object,
    })
}

/// An integer as Python's `hex` writes it.
fn integer_of_hex(text: &str) -> Option<IBig> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let digits =
        digits.strip_prefix("0x").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    let value = IBig::from_str_radix(digits, 16).ok()?;
    Some(if negative { -value } else { value })
}

/// Reads Python's `float.hex`.
fn float_of_hex(text: &str) -> Option<f64> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let value = match text {
        "inf" => f64::INFINITY,
        "nan" => f64::NAN,
        _ => {
            let (mantissa, exponent) = text.strip_prefix("0x")?.split_once('p')?;
            let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            let digits = u64::from_str_radix(&format!("{whole}{fraction}"), 16).ok()?;
            let exponent =
                exponent.parse::<i32>().ok()?.checked_sub(i32::try_from(4 * fraction.len()).ok()?)?;
            scaled(digits as f64, exponent)
        }
    };
    Some(if negative { -value } else { value })
}

/// The integer or the float that Python finds equal to a `Fraction`, as it writes one; none where there is none. What equals a float has a
/// denominator of at most 2^1074.
fn of_fraction(written: &str) -> Option<PyValue> {
    let Some((numerator, denominator)) = written.split_once('/') else {
        return integer(written).map(PyValue::Int);
    };
    let short = numerator.len() <= FLOAT_DIGITS && denominator.len() <= FLOAT_DIGITS;
    let numerator = integer(numerator).filter(|_| short)?;
    of_quotient(numerator, integer(denominator).filter(|value| *value > IBig::ZERO)?)
}

/// The same of a `Decimal`: digits with a point, and an exponent of ten.
fn of_decimal(written: &str) -> Option<PyValue> {
    match written {
        "Infinity" => return Some(PyValue::Float(f64::INFINITY)),
        "-Infinity" => return Some(PyValue::Float(f64::NEG_INFINITY)),
        _ => {}
    }
    let (mantissa, exponent) = written.split_once('E').unwrap_or((written, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_end_matches('0');
    if digits.trim_start_matches('-').is_empty() {
        return integer(&all).map(PyValue::Int);
    }
    let zeros = all.len() as i64 - digits.len() as i64;
    let exponent = exponent.parse::<i64>().ok()?.checked_add(zeros - fraction.len() as i64)?;
    let most = if exponent < 0 { FLOAT_DIGITS } else { DIGITS };
    let power = usize::try_from(exponent.unsigned_abs()).ok().filter(|power| *power <= most)?;
    let (value, power) = (integer(digits).filter(|_| digits.len() <= most)?, IBig::from(10).pow(power));
    if exponent < 0 { of_quotient(value, power) } else { Some(PyValue::Int(value * power)) }
}

/// As many digits as a float has at most, written out.
const FLOAT_DIGITS: usize = 1100;

/// The float that is exactly this quotient: a numerator of 53 bits over a power of two.
fn of_quotient(numerator: IBig, denominator: IBig) -> Option<PyValue> {
    let common = IBig::from((&numerator).gcd(&denominator));
    let (numerator, denominator) = (numerator / &common, UBig::try_from(denominator / common).ok()?);
    let exponent = i32::try_from(denominator.trailing_zeros()?).ok()?;
    if !denominator.is_power_of_two() || numerator.bit_len() > 53 || exponent > 1074 {
        return None;
    }
    Some(PyValue::Float(scaled(i64::try_from(numerator).ok()? as f64, -exponent)))
}

/// A number times a power of two, in two steps, because one power may leave the range where the product does not.
fn scaled(value: f64, exponent: i32) -> f64 {
    let half = exponent / 2;
    value * 2_f64.powi(half) * 2_f64.powi(exponent - half)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plaudit_text::Equality;

    #[test]
    fn huge_integers_are_compared() {
        let digits = "7".repeat(300_000);
        let value = integer(&digits).unwrap();
        let hex = format!(r#"["i","0x{value:x}"]"#);
        let value = received(&serde_json::from_str(&hex).unwrap()).unwrap();
        assert!(value.equals(&PyValue::literal(&digits).unwrap(), Equality::Python));
        assert!(!value.equals(&PyValue::literal(&format!("{}8", &digits[1..])).unwrap(), Equality::Python));
        for text in
            [r#"["i","0x"]"#, r#"["i","0x-1"]"#, r#"["i","0x1_0"]"#, r#"["i","--0x1"]"#, r#"["i","12"]"#]
        {
            assert_eq!(received(&serde_json::from_str(text).unwrap()), None, "{text}");
        }
    }

    #[test]
    fn what_the_harness_writes_is_read() {
        let read = |text: &str| received(&serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(
            read(r#"["i","-0x1ee7a3c7a1b8d6e1f"]"#),
            PyValue::Int("-35630857897041030687".parse().unwrap())
        );
        assert_eq!(read(r#"["f","0x1.5555555555555p-2"]"#), PyValue::Float(1.0 / 3.0));
        assert_eq!(read(r#"["f","0x0.0000000000001p-1022"]"#), PyValue::Float(f64::from_bits(1)));
        assert_eq!(read(r#"["f","-inf"]"#), PyValue::Float(f64::NEG_INFINITY));
        assert_eq!(
            read(r#"["d",[["a",["l",[null,true,["o"],-7]]]]]"#).clone(),
            PyValue::Dict(vec![(
                PyValue::Str("a".into()),
                PyValue::List(vec![
                    PyValue::None,
                    PyValue::Bool(true),
                    PyValue::Object,
                    PyValue::Int((-7).into())
                ]),
            )])
        );
        assert!(!PyValue::Object.equals(&PyValue::Object, Equality::Python));
        let python = Equality::Python;
        let exact = |class: &str, written: &str, literal: &str| {
            let received = read(&format!(r#"["x","{class}","{written}"]"#));
            received.equals(&PyValue::literal(literal).unwrap(), python)
        };
        let tiny = format!("1/{}", IBig::ONE << 1074);
        for (class, written, literal) in [
            ("fractions.Fraction", "1/2", "0.5"),
            ("fractions.Fraction", "-7/4", "-1.75"),
            ("fractions.Fraction", "6/4", "1.5"),
            ("fractions.Fraction", "3", "3"),
            ("fractions.Fraction", "-3", "-3.0"),
            ("fractions.Fraction", &tiny, "5e-324"),
            ("decimal.Decimal", "0.5", "0.5"),
            ("decimal.Decimal", "-0.1250", "-0.125"),
            ("decimal.Decimal", "3.00", "3"),
            ("decimal.Decimal", "0E-7", "0"),
            ("decimal.Decimal", "-0", "0.0"),
            ("decimal.Decimal", "1E+3", "1000"),
            ("decimal.Decimal", "25E-2", "0.25"),
            ("decimal.Decimal", "Infinity", "1e999"),
        ] {
            assert!(exact(class, written, literal), "{written} {literal}");
        }
        let tinier = format!("1/{}", IBig::ONE << 1075);
        for (class, written, literal) in [
            ("fractions.Fraction", "1/3", "0.3333333333333333"),
            ("fractions.Fraction", "1/0", "0"),
            ("fractions.Fraction", "1/-2", "-0.5"),
            ("fractions.Fraction", "9007199254740993/2", "4503599627370496.5"),
            ("fractions.Fraction", &tinier, "0.0"),
            ("fractions.Fraction", "1/2", "'1/2'"),
            ("decimal.Decimal", "0.1", "0.1"),
            ("decimal.Decimal", "0.1", "'0.1'"),
            ("decimal.Decimal", "NaN", "0"),
            ("decimal.Decimal", "1E+999999999999999999", "0"),
            ("decimal.Decimal", "1.5E-9223372036854775808", "0"),
            ("decimal.Decimal", "x", "0"),
            ("datetime.date", "2020-01-01", "'2020-01-01'"),
        ] {
            assert!(!exact(class, written, literal), "{written} {literal}");
        }
        for (forged, wanted) in
            [(r#"["e",[1,1]]"#, "{1, 2}"), (r#"["d",[["a",1],["a",1]]]"#, "{'a': 1, 'b': 2}")]
        {
            assert!(!read(forged).equals(&PyValue::literal(wanted).unwrap(), python), "{forged}");
            assert!(!PyValue::literal(wanted).unwrap().equals(&read(forged), python), "{forged}");
        }
        for text in ["{}", "1.5", "[]", "[1]", r#"["l"]"#, r#"["i", 1]"#] {
            assert_eq!(received(&serde_json::from_str(text).unwrap()), None, "{text}");
        }
    }
}
