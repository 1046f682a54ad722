//! Reference check of `math_verify_reward`: unreadable, undefined and ambiguous references, and those that do not equal
//! themselves in a box.

use super::reference_check::{Remark, Severity};
use plaudit_math::{AnswerIn, NoValue, Options, Percent, Reference, ReferenceError, verify};

/// A reference this much longer than what was read of it is a solution with an answer in it.
const SOLUTION: usize = 16;

/// What there is to say about a reference.
pub(super) fn remarks(text: &str, options: &Options) -> Vec<Remark> {
    let reference = match Reference::parse(text, options) {
        Ok(reference) => reference,
        Err(error) => return vec![unusable(error)],
    };
    let mut found = vec![Remark::new(Severity::Kind, reference.kind(), "")];
    let doubt = |what, detail: String| Remark::new(Severity::Doubt, what, detail);
    let read = || format!("read as {}", reference.text());
    if text.matches("\\boxed").count() > 1 {
        found.push(doubt("has several boxes", read()));
    } else if text.trim().len() > reference.text().len() + SOLUTION {
        found.push(doubt("is a whole solution", read()));
    }
    if reference.kind() == "text" && reference.text().contains(|c: char| c == '\\' || c.is_ascii_digit()) {
        found.push(Remark::new(
            Severity::Unlikely,
            "is compared as text, though it looks like a formula",
            "",
        ));
    }
    let ambiguous =
        if reference.kind() == "text" { Vec::new() } else { ambiguities(reference.text(), options) };
    found.extend(ambiguous.into_iter().map(|what| doubt(what, format!("read as {}", reference.kind()))));
    let boxed = matches!(options.answer, AnswerIn::Auto | AnswerIn::Box);
    if boxed && !verify(&format!("\\boxed{{{}}}", reference.text()), &reference).outcome.is_right() {
        found.push(Remark::new(Severity::Fault, "does not equal itself in a box", read()));
    }
    found
}

/// Why a reference is none.
fn unusable(error: ReferenceError) -> Remark {
    let (what, detail) = match error {
        ReferenceError::Unparsable(NoValue::Undefined) => ("is undefined", ""),
        ReferenceError::Unparsable(NoValue::TooLarge | NoValue::Depth) => ("exceeds a bound", ""),
        ReferenceError::Unparsable(bound) => ("cannot be read", bound.cause()),
        _ => ("is empty", ""),
    };
    Remark::new(Severity::Fault, what, detail)
}

/// Whether two references are the same answer. One that cannot be read equals only its own text.
pub(super) fn is_same(one: &str, other: &str, options: &Options) -> bool {
    match (Reference::parse(one, options), Reference::parse(other, options)) {
        (Ok(one), Ok(other)) => one.compare(other.text()).outcome.is_right(),
        _ => one.trim() == other.trim(),
    }
}

/// The spellings of a reference that can mean something else.
fn ambiguities(text: &str, options: &Options) -> Vec<&'static str> {
    let bytes = text.as_bytes();
    let (mut decimal, mut spaced, mut bracketed) = (false, false, false);
    let commas = memchr::memchr_iter(b',', bytes).count();
    for at in memchr::memchr_iter(b',', bytes) {
        let before = bytes[..at].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let space = usize::from(bytes.get(at + 1) == Some(&b' '));
        let after = bytes[at + 1 + space..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if before == 0 || after == 0 {
            continue;
        }
        let opened = matches!(bytes[..at - before].last(), Some(b'(' | b'[' | b'{'));
        let closed = matches!(bytes.get(at + 1 + space + after), Some(b')' | b']' | b'}'))
            || bytes[at + 1 + space + after..].starts_with(b"\\}");
        match (space, after) {
            (0, 3) if opened && closed && before <= 3 => bracketed = true,
            (0, 1 | 2) if commas == 1 && !opened && !closed => decimal = true,
            (1, 3) if before <= 3 && !opened && !closed => spaced = true,
            _ => {}
        }
    }
    let pair = text.starts_with('(') && text.ends_with(')') && commas == 1 && !bracketed;
    let bare_log =
        text.match_indices("\\log").any(|(at, log)| !text[at + log.len()..].trim_start().starts_with('_'));
    let percent = text.contains('%') && options.percent == Percent::Lenient;
    [
        (decimal, "may have a decimal comma, which is read as a separator"),
        (spaced, "may be one number with a space after the comma"),
        (bracketed, "may be one number in brackets"),
        (pair, "is a pair, and an open interval as well"),
        (percent, "is a percentage, which equals the bare number as well"),
        (bare_log, "has a logarithm without a base"),
    ]
    .into_iter()
    .filter_map(|(holds, what)| holds.then_some(what))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<&'static str> {
        let all = remarks(text, &Options::default());
        all.iter().filter(|remark| remark.severity != Severity::Kind).map(|remark| remark.what).collect()
    }

    #[test]
    fn plain_references_need_no_remark() {
        for text in
            ["42", "\\frac{3}{56}", "$x^2-4$", "10{,}000", "1,234", "-2, 1", "\\{1,2\\}", "B", "\\log_2 3"]
        {
            assert_eq!(said(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn unusable_references_are_faults() {
        for (text, what) in [
            ("  ", "is empty"),
            ("\\frac{1}{0}", "is undefined"),
            ("\\frac{1}{2", "cannot be read"),
            ("9^{9^9}", "exceeds a bound"),
        ] {
            let all = remarks(text, &Options::default());
            assert_eq!(
                all.iter().map(|remark| (remark.severity, remark.what)).collect::<Vec<_>>(),
                [(Severity::Fault, what)]
            );
        }
    }

    #[test]
    fn doubtful_spellings_are_told() {
        for (text, what) in [
            ("1,22", "may have a decimal comma, which is read as a separator"),
            ("1, 234", "may be one number with a space after the comma"),
            ("(1,000)", "may be one number in brackets"),
            ("(0,1)", "is a pair, and an open interval as well"),
            ("50\\%", "is a percentage, which equals the bare number as well"),
            ("\\log 3", "has a logarithm without a base"),
            ("First \\boxed{1}, then \\boxed{2} comes out.", "has several boxes"),
            ("We add both and find, after some work, that it is \\boxed{7}.", "is a whole solution"),
        ] {
            assert!(said(text).contains(&what), "{text}: {:?}", said(text));
        }
    }

    #[test]
    fn references_are_compared_by_value() {
        let options = Options::default();
        assert!(is_same("\\frac12", "0.5", &options));
        assert!(!is_same("\\frac12", "0.25", &options));
        assert!(is_same("\\frac{", " \\frac{", &options));
    }
}
