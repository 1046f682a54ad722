//! Whether the standard output of a program is what a test expects: line by line, with a tolerance for decimals.

/// The relative and the absolute distance of two decimals that count as equal; those of numpy's `allclose`.
const RELATIVE: f64 = 1e-5;
const ABSOLUTE: f64 = 1e-8;

/// Compares without blank lines and without space around lines. Words of a line must be equal, or be numbers that are close
/// where one of them is a decimal. How much space is between words counts only in a line without any number. Output that is not
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
    let decimal = |text: &str| text.contains(['.', 'e', 'E']);
    match (number(given), number(wanted)) {
        (Some(one), Some(other)) if decimal(given) || decimal(wanted) => {
            (one - other).abs() <= ABSOLUTE + RELATIVE * other.abs()
        }
        _ => false,
    }
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
        ] {
            assert!(!same_output(given.as_bytes(), wanted), "{given:?} {wanted:?}");
        }
        assert!(!same_output(b"\xff\xfe7\n", "7"));
    }
}
