//! Boxes and braces of LaTeX: with escapes as TeX reads them, and without, as published scorers do.

/// What stands in the last `\boxed{...}` whose braces are balanced. One pass, whatever is nested or left open.
pub fn last_boxed(text: &str) -> Option<&str> {
    const BOXED: &[u8] = b"\\boxed{";
    let bytes = text.as_bytes();
    // The offset after each brace that is still open, and whether it opens a box.
    let mut open: Vec<(usize, bool)> = Vec::new();
    let mut last: Option<(usize, usize)> = None;
    let mut at = 0;
    while let Some(found) = memchr::memchr3(b'\\', b'{', b'}', &bytes[at..]) {
        at += found;
        match bytes[at] {
            b'\\' if bytes[at..].starts_with(BOXED) => {
                at += BOXED.len();
                open.push((at, true));
            }
            // An escaped brace is a printed one. What follows may be the middle of a character, which no brace is.
            b'\\' => at += 2,
            b'{' => {
                at += 1;
                open.push((at, false));
            }
            _ => {
                if let Some((from, true)) = open.pop()
                    && last.is_none_or(|(before, _)| from > before)
                {
                    last = Some((from, at));
                }
                at += 1;
            }
        }
        if at >= bytes.len() {
            break;
        }
    }
    last.map(|(from, to)| &text[from..to])
}

/// The index of the brace that closes the one at `open`. Escaped braces do not count.
pub fn closing_brace(bytes: &[u8], open: usize, end: usize) -> Option<usize> {
    let mut depth = 0u32;
    let mut i = open;
    while i < end {
        match bytes[i] {
            b'\\' => i += 1,
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(i);
                }
            }
            _ => {}
        }
        i += 1;
    }
    None
}

/// The text from `start` to the brace that closes the first one after it. Escapes are not known here: the scorers of verl, NeMo-Gym
/// and others count every brace, and where their verdicts are to come out, so must this.
pub fn braced(text: &str, start: usize) -> Option<&str> {
    let bytes = text.as_bytes();
    let mut depth = 0i64;
    for at in memchr::memchr2_iter(b'{', b'}', &bytes[start..]) {
        let at = start + at;
        depth += if bytes[at] == b'{' { 1 } else { -1 };
        if bytes[at] == b'}' && depth == 0 {
            return Some(&text[start..=at]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_box_that_closes_counts() {
        for (text, content) in [
            ("so \\boxed{1} and \\boxed{\\frac{1}{2}} done", Some("\\frac{1}{2}")),
            ("\\boxed{4} then \\boxed{never closed", Some("4")),
            ("\\boxed{a \\boxed{b} c}", Some("b")),
            ("\\boxed{\\{1, 2\\}}", Some("\\{1, 2\\}")),
            ("} \\boxed{5} {", Some("5")),
            ("ends in \\", None),
            ("\\é{\\boxed{6}", Some("6")),
        ] {
            assert_eq!(last_boxed(text), content, "{text}");
        }
    }

    #[test]
    fn escaped_braces_count_for_scorers_alone() {
        let text = "{\\}a}";
        assert_eq!(closing_brace(text.as_bytes(), 0, text.len()), Some(text.len() - 1));
        assert_eq!(braced(text, 0), Some("{\\}"));
        assert_eq!(braced("x{a{b}c}d", 0), Some("x{a{b}c}"));
        assert_eq!(braced("}{a}", 0), None);
    }

    #[test]
    fn braces_without_end_take_one_pass() {
        let text = "\\boxed{".repeat(100_000);
        assert_eq!(last_boxed(&text), None);
        let text = format!("{text}7{}", "}".repeat(100_000));
        assert_eq!(last_boxed(&text), Some("7"));
    }
}
