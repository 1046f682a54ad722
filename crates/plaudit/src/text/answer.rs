//! Answer extraction: the content of the last answer tags or of `\boxed`, or the whole response.

use super::Text;

impl Text<'_> {
    /// The final answer, as [`Scope::Answer`](super::scope::Scope::Answer) says.
    pub fn answer(&self) -> &str {
        let tagged = self.tags().bodies(self.as_str(), "answer").last().unwrap_or(self.as_str());
        last_boxed(tagged).unwrap_or(tagged)
    }
}

/// What stands in the last `\boxed{...}` whose braces are balanced. One pass, whatever is nested or left open.
fn last_boxed(text: &str) -> Option<&str> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use plaudit_text::strip;

    #[test]
    fn the_final_answer_is_found() {
        for (response, answer) in [
            ("<answer>1</answer> <answer> 2 </answer> \\boxed{3}", "2"),
            ("<think>\\boxed{1}</think><answer>so \\boxed{2} it is</answer>", "2"),
            ("so \\boxed{1} and \\boxed{\\frac{1}{2}} done", "\\frac{1}{2}"),
            ("\\boxed{4} then \\boxed{never closed", "4"),
            ("\\boxed{a \\boxed{b} c}", "b"),
            ("\\boxed{\\{1, 2\\}}", "\\{1, 2\\}"),
            ("} \\boxed{5} {", "5"),
            (" plain \n", "plain"),
            ("ends in \\", "ends in \\"),
            ("\\é{\\boxed{6}", "6"),
            ("", ""),
        ] {
            assert_eq!(strip(Text::new(response).answer()), answer, "{response}");
        }
    }

    #[test]
    fn braces_without_end_take_one_pass() {
        let text = "\\boxed{".repeat(100_000);
        assert_eq!(last_boxed(&text), None);
        let text = format!("{text}7{}", "}".repeat(100_000));
        assert_eq!(last_boxed(&text), Some("7"));
    }
}
