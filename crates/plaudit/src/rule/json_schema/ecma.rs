//! Patterns of ECMA-262, as JSON Schema has them, in the syntax of the `regex` crate.
//!
//! `\d`, `\w` and `\b` are those of ASCII, `\s` is the white space of ECMA-262, a dot matches no line end, and a bracket inside a
//! class is a character. What the crate does not have, such as look-around, is passed on and refused there.

use std::fmt::Write;
use std::iter::Peekable;
use std::str::Chars;

const DIGIT: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
const SPACE: &str = r"\t\n\x0B\x0C\r\x{FEFF}\x{2028}\x{2029}\p{Zs}";

/// The same pattern for the `regex` crate.
pub(super) fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(char) = rest.next() {
        match char {
            '\\' => escape(&mut rest, in_class, &mut out),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '[' | '&' | '~' if in_class => out.extend(['\\', char]),
            // Two hyphens would be a difference of classes.
            '-' if in_class && out.ends_with('-') && !out.ends_with(r"\-") => out.push_str(r"\-"),
            '[' => in_class = open_class(&mut rest, &mut out),
            '.' if !in_class => out.push_str(r"[^\n\r\x{2028}\x{2029}]"),
            '{' if !in_class && !is_repeat(rest.clone()) => out.push_str(r"\{"),
            other => out.push(other),
        }
    }
    out
}

/// Begins a class. `[]` matches nothing and `[^]` anything.
fn open_class(rest: &mut Peekable<Chars<'_>>, out: &mut String) -> bool {
    let negated = rest.next_if_eq(&'^').is_some();
    if rest.next_if_eq(&']').is_some() {
        out.push_str(if negated { "(?s:.)" } else { r"[^\x{0}-\x{10FFFF}]" });
        return false;
    }
    out.push_str(if negated { "[^" } else { "[" });
    true
}

/// Whether what follows a brace is the rest of `{2}`, `{2,}` or `{2,3}`.
fn is_repeat(mut rest: Peekable<Chars<'_>>) -> bool {
    let digits = |rest: &mut Peekable<Chars<'_>>| {
        let mut some = false;
        while rest.next_if(char::is_ascii_digit).is_some() {
            some = true;
        }
        some
    };
    if !digits(&mut rest) {
        return false;
    }
    if rest.next_if_eq(&',').is_some() {
        digits(&mut rest);
    }
    rest.next() == Some('}')
}

fn escape(rest: &mut Peekable<Chars<'_>>, in_class: bool, out: &mut String) {
    let class = |out: &mut String, chars: &str, negated: bool| match (in_class, negated) {
        (true, false) => out.push_str(chars),
        (_, true) => out.extend(["[^", chars, "]"]),
        (false, false) => out.extend(["[", chars, "]"]),
    };
    let Some(char) = rest.next() else {
        out.push('\\');
        return;
    };
    match char {
        'd' | 'D' => class(out, DIGIT, char == 'D'),
        'w' | 'W' => class(out, WORD, char == 'W'),
        's' | 'S' => class(out, SPACE, char == 'S'),
        'b' if in_class => out.push_str(r"\x08"),
        'b' | 'B' => out.extend([r"(?-u:\", if char == 'b' { "b" } else { "B" }, ")"]),
        'c' => match rest.next_if(char::is_ascii_alphabetic) {
            Some(letter) => code(out, u32::from(letter) % 32),
            None => out.push_str(r"\c"),
        },
        '0' if !rest.peek().is_some_and(char::is_ascii_digit) => code(out, 0),
        'u' => match code_point(rest) {
            Some(point) => code(out, point),
            None => out.push_str(r"\u"),
        },
        // A property in braces, which are no repeat.
        'p' | 'P' if rest.peek() == Some(&'{') => {
            out.extend(['\\', char]);
            while let Some(char) = rest.next_if(|char| *char != '}') {
                out.push(char);
            }
        }
        // A group by its name: refused there as one by its number.
        'k' => out.push_str(r"\1"),
        // These two begin and end a word in the crate.
        '<' | '>' => out.push(char),
        other => out.extend(['\\', other]),
    }
}

fn code(out: &mut String, point: u32) {
    // Writing to a string does not fail.
    let _ = write!(out, r"\x{{{point:X}}}");
}

/// The character after `\u`: four digits, two of them for a surrogate pair, or digits in braces. Else nothing is read.
fn code_point(rest: &mut Peekable<Chars<'_>>) -> Option<u32> {
    let mut ahead = rest.clone();
    let four = |ahead: &mut Peekable<Chars<'_>>| {
        (0..4).try_fold(0, |point, _| Some(point * 16 + ahead.next()?.to_digit(16)?))
    };
    let point = if ahead.next_if_eq(&'{').is_some() {
        let mut point = 0_u32;
        loop {
            match ahead.next()? {
                '}' => break point,
                digit => point = point.checked_mul(16)?.checked_add(digit.to_digit(16)?)?,
            }
        }
    } else {
        match four(&mut ahead)? {
            high @ 0xD800..=0xDBFF if ahead.next() == Some('\\') && ahead.next() == Some('u') => {
                let low = four(&mut ahead)?.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
                0x10000 + ((high - 0xD800) << 10) + low
            }
            point => point,
        }
    };
    *rest = ahead;
    Some(point)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::pattern::Searcher;

    #[test]
    fn patterns_mean_what_ecma_262_says() {
        for (pattern, good, bad) in [
            (r"^\d$", "7", "߇"),
            (r"^[^\d]$", "߇", "7"),
            (r"^[\d-]+$", "1-2", "1x2"),
            (r"^\w+$", "a_1", "é"),
            (r"^[\W]$", "é", "e"),
            (r"^\s$", "\u{FEFF}", "\u{200B}"),
            (r"^\S$", "\u{180E}", "\u{2029}"),
            (r"\bé", "aé", "é"),
            (r"^\cA$", "\u{1}", "cA"),
            (r"^\0$", "\0", "0"),
            (r"^é$", "é", "e"),
            (r"^\u{1F600}$", "😀", "u"),
            (r"^\uD83D\uDE00$", "😀", "u"),
            (r"^a.b$", "a\tb", "a\u{2028}b"),
            (r"^[[a]+$", "[a", "b"),
            (r"^[a&&b]+$", "a&b", "c"),
            (r"^[+--]$", ",", "/"),
            (r"^[^]$", "\n", ""),
            (r"a[]|b", "b", "a"),
            (r"^{a}$", "{a}", "a"),
            (r"^a{2,3}$", "aaa", "a"),
            (r"^\<\/\-$", "</-", "/"),
            (r"^[\b]$", "\u{8}", "b"),
            (r"^\p{Letter}{2}$", "éa", "1"),
            (r"a$", "a", "a\n"),
        ] {
            let searcher =
                Searcher::new(&translated(pattern)).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            let found = |text| searcher.search(text).unwrap().is_some();
            assert!(found(good), "{pattern} {good:?}");
            assert!(!found(bad), "{pattern} {bad:?}");
        }
        for refused in ["(?=a)", r"(a)\1", r"(?<n>a)\k<n>", r"\uD83D", r"\c1", "[", "a\\"] {
            assert!(Searcher::new(&translated(refused)).is_err(), "{refused}");
        }
    }
}
