//! Quotations in the words of a conversation: what a model repeats of tools and users is not its own answer.
//!
//! Quoted are `<tool_response>` blocks and quotations of Markdown, which are lines that begin with `>`. Fenced code and formulas are the
//! model's own, whatever their lines begin with. So is `>` inside a paragraph: an inequality, `>>` of a program, the end of a tag.
//! A quotation that ends the message and gives the answer, in words that nobody else said, is emphasis: models set off results so.

use crate::conversation::{Role, Turn};
use plaudit_text::Fence;
use std::borrow::Cow;
use std::collections::HashSet;

const OPEN: &str = "<tool_response>";
const CLOSE: &str = "</tool_response>";

/// The words of a turn that are the model's own. Of the turns before, those of others count.
pub(super) fn own_words<'t>(text: &'t str, before: &[Turn]) -> Cow<'t, str> {
    let begins_quoted = |line: &str| line.trim_start().starts_with('>');
    let none = memchr::memchr(b'>', text.as_bytes()).is_none();
    if none || !text.contains(OPEN) && !text.lines().any(begins_quoted) {
        return Cow::Borrowed(text);
    }
    let kept = without_results(text);
    let lines: Vec<(&str, bool)> = mark_quotations(&kept).collect();
    if !lines.iter().any(|(_, quoted)| *quoted) {
        return Cow::Owned(kept);
    }
    let mut own: Vec<&str> = lines.iter().filter(|(_, quoted)| !quoted).map(|(line, _)| *line).collect();
    let is_blank = |line: &str| line.trim().is_empty();
    let end = lines.iter().rposition(|(line, _)| !is_blank(line)).map_or(0, |last| last + 1);
    let start = lines[..end].iter().rposition(|(_, quoted)| !quoted).map_or(0, |before| before + 1);
    let emphasis: Vec<&str> = lines[start..end].iter().filter_map(|(line, _)| emphasised(line)).collect();
    let is_alone = own.iter().all(|line| is_blank(line));
    let is_whole = emphasis.len() == end - start;
    if is_whole && (is_alone || gives_answer(&emphasis)) && !is_said_by_others(&emphasis, before) {
        own.extend(emphasis);
    }
    Cow::Owned(own.join("\n"))
}

/// The text without the results of tools that it repeats outside of fences.
fn without_results(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let (mut at, mut line_end, mut fence, mut is_code) = (0, 0, None, false);
    while at < text.len() {
        if at >= line_end {
            line_end = memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |end| at + end + 1);
            is_code = step_fence(&mut fence, &text[at..line_end]);
        }
        let line = &text[at..line_end];
        match line.find(OPEN).filter(|_| !is_code) {
            None => {
                kept.push_str(line);
                at = line_end;
            }
            Some(open) => {
                kept.push_str(&line[..open]);
                let quoted = at + open + OPEN.len();
                at = text[quoted..].find(CLOSE).map_or(text.len(), |close| quoted + close + CLOSE.len());
            }
        }
    }
    kept
}

/// Every line, with whether it belongs to a quotation.
fn mark_quotations(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let (mut fence, mut formula) = (None, Formula::default());
    // Whether a quotation may begin here, and whether the line before belongs to one.
    let (mut may_begin, mut inside) = (true, false);
    text.lines().map(move |line| {
        let trimmed = line.trim();
        let quotes = trimmed.starts_with('>');
        let is_text = fence.is_none() && !formula.is_open();
        // A lone `>` ends a tag that is written over several lines; it begins no quotation.
        let begins = may_begin && !trimmed.trim_start_matches(['>', ' ']).is_empty();
        inside = is_text && quotes && (inside || begins);
        if inside {
            may_begin = true;
            return (line, true);
        }
        let was_code = step_fence(&mut fence, line);
        if !was_code {
            formula.step(trimmed);
        }
        may_begin = was_code || ends_block(trimmed);
        (line, false)
    })
}

/// Whether the paragraph, heading or formula of a line ends with it, so that what follows begins another.
fn ends_block(line: &str) -> bool {
    let is_rule = line.len() > 2 && line.bytes().all(|byte| matches!(byte, b'-' | b'*' | b'_'));
    let sentence = line.trim_end_matches(['*', '_']);
    line.is_empty()
        || is_rule
        || line.starts_with('#')
        || ["$$", "\\]"].iter().any(|end| line.ends_with(end))
        || line.starts_with("\\end{")
        || sentence.ends_with(['.', '!', '?', ':', '。', '！', '？', '：', '…'])
}

/// Takes in a line: whether it belongs to a fenced block, with the fences themselves. `open` is the fence of the block.
fn step_fence<'t>(open: &mut Option<Fence<'t>>, line: &'t str) -> bool {
    let was_open = open.is_some();
    match (&open, Fence::of(line.trim())) {
        (Some(opened), Some(fence)) if opened.is_closed_by(&fence) => *open = None,
        (None, fence) => *open = fence,
        _ => {}
    }
    was_open || open.is_some()
}

/// A formula over several lines.
#[derive(Default)]
struct Formula {
    /// Between two `$$`, or `\[` and `\]`. A blank line ends it, as it does in TeX, so that a stray mark covers no more.
    is_display: bool,
    /// How many environments are open.
    environments: usize,
}

impl Formula {
    fn is_open(&self) -> bool {
        self.is_display || self.environments > 0
    }

    fn step(&mut self, line: &str) {
        if line.is_empty() {
            self.is_display = false;
        }
        let mut rest = line;
        while let Some(at) = memchr::memchr2(b'$', b'\\', rest.as_bytes()) {
            rest = &rest[at..];
            let step = if rest.starts_with("$$") {
                self.is_display = !self.is_display;
                2
            } else if rest.starts_with("\\[") || rest.starts_with("\\]") {
                self.is_display = rest.starts_with("\\[");
                2
            } else if rest.starts_with("\\begin{") {
                self.environments += 1;
                7
            } else if rest.starts_with("\\end{") {
                self.environments = self.environments.saturating_sub(1);
                5
            } else if rest.starts_with("\\\\") {
                2
            } else {
                1
            };
            rest = &rest[step..];
        }
    }
}

/// The words of a line that is quoted once; none where it is a quotation inside a quotation.
fn emphasised(line: &str) -> Option<&str> {
    let words = line.trim_start().strip_prefix('>')?.trim_start();
    (!words.starts_with('>')).then_some(words)
}

/// Whether lines say that they are the answer.
fn gives_answer(lines: &[&str]) -> bool {
    let says = |line: &str| {
        let line = line.to_lowercase();
        ["\\boxed", "\\fbox", "answer", "答案"].iter().any(|mark| line.contains(mark))
    };
    lines.iter().any(|line| says(line))
}

/// Whether in these turns somebody else said all of it, or one of its lines.
fn is_said_by_others(quoted: &[&str], turns: &[Turn]) -> bool {
    let normal = |text: &str| -> String {
        let letters = text.chars().filter(|letter| !letter.is_whitespace() && !"*_`>".contains(*letter));
        letters.flat_map(char::to_lowercase).collect()
    };
    let lines: HashSet<String> =
        quoted.iter().map(|line| normal(line)).filter(|line| !line.is_empty()).collect();
    let whole = normal(&quoted.concat());
    let mut others = turns.iter().filter(|turn| turn.role != Role::Assistant);
    others.any(|turn| {
        normal(&turn.text).contains(&whole) || turn.text.lines().any(|line| lines.contains(&normal(line)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The own words of a final message, after a tool has said something.
    fn own(text: &str, said: &str) -> String {
        own_words(text, &[Turn::said(Role::Tool, said)]).into_owned()
    }

    #[test]
    fn quotes_are_not_the_models_own_words() {
        for (text, words) in [
            ("no > quote", "no > quote"),
            ("> 42\nI do not know", "I do not know"),
            ("a.\n  >> 42\nb", "a.\nb"),
            ("It says:\n> 42\n> 43\n\nso", "It says:\n\nso"),
            ("**It says:**\n> 42\nso", "**It says:**\nso"),
            ("# It says\n> 42\nso", "# It says\nso"),
            ("```\na\n```\n> 42\nso", "```\na\n```\nso"),
            ("$$\na\n$$\n> 42\nso", "$$\na\n$$\nso"),
            ("$$ a stray mark\n\n> 42\n\nso", "$$ a stray mark\n\n\nso"),
            ("> ```\n> 42\n> ```\nso", "so"),
            ("> 42\n>\n> 43\nso", "so"),
            ("<tool_response>42</tool_response> so", " so"),
            ("so <tool_response>42", "so "),
            ("<tool_response>\n```\n42</tool_response>so", "so"),
            ("a <tool_response>1</tool_response>b<tool_response>2</tool_response> c\nd", "a b c\nd"),
        ] {
            assert_eq!(own(text, ""), words, "{text:?}");
        }
    }

    #[test]
    fn many_quotes_take_linear_time() {
        for text in ["<tool_response>1</tool_response>", "> answer\n", "\n> a\nb", "$$\\[", "```\n> a\n"] {
            let began = std::time::Instant::now();
            own(&text.repeat(1_000_000 / text.len()), &"answer 1\n".repeat(100_000));
            assert!(began.elapsed().as_secs() < 5, "{text:?}: {:?}", began.elapsed());
        }
    }

    #[test]
    fn code_formulas_and_tags_are_no_quotes() {
        for text in [
            "```python\nbig = (a\n       > b)\n```",
            "~~~\n\n> a\n~~~",
            "1. so\n\n   ```cpp\n   cin\n\n   >> a;\n   ```",
            "````\n```\n> a\n````",
            "```\n\n> without an end",
            "```\n<tool_response>\n> a\n```",
            "$$\na\n> b\n$$",
            "$$a.\n> b$$",
            "\\[ a.\n> b \\]",
            "\\begin{aligned}\n\n> b\n\\end{aligned}",
            "cin\n>> a\n>> b;",
            "where x\n> 5 holds",
            "<a\n  b=\"c.\"\n>\nd</a>",
            "<answer>\n> 42\n</answer>",
        ] {
            assert_eq!(own(text, ""), text);
        }
    }

    #[test]
    fn an_answer_that_is_set_off_is_the_models_own() {
        for (text, said, words) in [
            ("> **Answer:** \\boxed{42}", "", "**Answer:** \\boxed{42}"),
            ("So it is:\n\n> **Answer:**\n> 42\n", "", "So it is:\n\n**Answer:**\n42"),
            ("So it is:\n\n> $\\boxed{42}$", "42", "So it is:\n\n$\\boxed{42}$"),
            ("> 42", "", "42"),
            // Said by the tool, as a whole or as a line.
            ("> 42", "it is 42", ""),
            ("I do not know:\n\n> Answer: **42**", "Answer:  42 of 43", "I do not know:\n"),
            ("I do not know:\n\n> The answer of the tool:\n> 42", "41\n42\n43", "I do not know:\n"),
            // No answer, not the end, or twice quoted.
            ("I do not know:\n\n> 42", "", "I do not know:\n"),
            ("> Answer: 42\nI do not know", "", "I do not know"),
            ("I do not know.\n>> Answer: 42", "", "I do not know."),
            ("> Answer:\n>> 42", "", ""),
        ] {
            assert_eq!(own(text, said), words, "{text:?} after {said:?}");
        }
    }
}
