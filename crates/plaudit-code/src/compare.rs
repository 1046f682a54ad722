//! Whether the standard output of a program is what a test expects: line by line, with a tolerance for decimals.

/// The relative and the absolute distance of two decimals that count as equal; those of numpy's `allclose`.
const RELATIVE: f64 = 1e-5;
const ABSOLUTE: f64 = 1e-8;

/// Compares without blank lines and without space around lines. Words of a line must be equal, or be numbers that are close
/// where a decimal is expected. How much space is between words counts only in a line without any number. Output that is not
/// UTF-8, or has no line at all, equals nothing.
pub fn same_output(output: &[u8], expected: &str) -> bool {
    let Ok(output) = std::str::from_utf8(output) else { return false };
    let lines = |text: &'_ str| -> Vec<String> {
        text.split(['\n', '\r']).map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
    };
    let (given, wanted) = (lines(output), lines(expected));
    !given.is_empty()
        && given.len() == wanted.len()
        && given.iter().zip(&wanted).all(|(given, wanted)| same_line(given, wanted))
}

fn same_line(given: &str, wanted: &str) -> bool {
    if given == wanted {
        return true;
    }
    let (mut given, mut wanted) = (given.split_ascii_whitespace(), wanted.split_ascii_whitespace());
    let mut numbers = false;
    loop {
        match (given.next(), wanted.next()) {
            // Words alone must be separated as the test has them.
            (None, None) => return numbers,
            (Some(given), Some(wanted)) if given == wanted => numbers |= number(given).is_some(),
            (Some(given), Some(wanted)) if close(given, wanted) => numbers = true,
            _ => return false,
        }
    }
}

fn number(text: &str) -> Option<f64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    text.parse::<f64>().ok().filter(|value| digits && value.is_finite())
}

fn close(given: &str, wanted: &str) -> bool {
    let is_decimal = |text: &str| text.contains(['.', 'e', 'E']);
    match (number(given), number(wanted)) {
        (Some(one), Some(other)) if is_decimal(wanted) => {
            (one - other).abs() <= ABSOLUTE + RELATIVE * other.abs()
        }
        // An integer is wanted: a decimal must be exactly that.
        (Some(_), Some(_)) if is_decimal(given) => normal(given) == normal(wanted),
        _ => false,
    }
}

/// A number that [`number`] reads: its sign, its digits without zeros at the ends, and the power of ten of the last.
fn normal(text: &str) -> (bool, String, i64) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{}{fraction}", whole.trim_start_matches(['+', '-']));
    let digits = all.trim_matches('0');
    if digits.is_empty() {
        return (false, String::new(), 0);
    }
    let zeros = all.len() - all.trim_end_matches('0').len();
    // What has more digits than this is finite only where it is 0.
    let exponent = exponent.parse::<i64>().unwrap_or(i64::MIN / 2);
    let exponent = exponent.saturating_add(zeros as i64).saturating_sub(fraction.len() as i64);
    (whole.starts_with('-'), digits.to_owned(), exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_compare_by_lines_words_and_decimals() {
        for (given, wanted) in [
            ("7", "7\n"),
            ("7 \r\n", "7"),
            ("a\n\nb\n", "a\nb"),
            ("  a", "a"),
            ("1.0", "1"),
            ("0.30000000000000004", "0.3"),
            ("3.1415927", "3.14159265"),
            ("1.0000001 2", "1.0 2"),
            ("🙂", "🙂"),
            ("nan", "nan"),
            ("inf", "inf"),
            ("1  2\t3", "1 2 3"),
            ("Case 1  x", "Case 1 x"),
            ("-1  2.5", "-1 2.50"),
            ("1000000007.0", "1000000007"),
            ("1.000000007e9", "1000000007"),
            ("1e2", "100"),
            ("-0.0", "0"),
            ("100000000000000000001.", "100000000000000000001"),
            ("2", "2.0000001"),
        ] {
            assert!(same_output(given.as_bytes(), wanted), "{given:?} {wanted:?}");
        }
        for (given, wanted) in [
            ("", ""),
            ("\n", ""),
            ("", "7"),
            ("7\n8", "7"),
            ("a b", "a  b"),
            ("12", "1 2"),
            ("1 2", "2 1"),
            ("100000000", "100000001"),
            ("3.14", "3.14159265"),
            ("nan", "1.0"),
            ("inf", "1e999"),
            ("1e999", "1e400"),
            ("7 extra", "7"),
            ("0x7", "7"),
            ("1000000000.0", "1000000007"),
            ("1.23456e8", "123456789"),
            ("1.0000001", "1"),
            ("-1.0", "1"),
            ("1e20", "100000000000000000001"),
            ("100000000000000000000", "100000000000000000001"),
            ("1e-99999999999999999999", "7"),
            ("1.55e-9223372036854775807", "7"),
            ("-100.55e-9223372036854775808", "7"),
        ] {
            assert!(!same_output(given.as_bytes(), wanted), "{given:?} {wanted:?}");
        }
        assert!(!same_output(b"\xff\xfe7\n", "7"));
    }
}
