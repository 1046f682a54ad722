//! The program among the code blocks of a response: the last one.

use crate::language::Language;
use plaudit_text::{FenceLanguage, FencedBlock, each_block};
use std::borrow::Cow;

/// The last closed block that names the language, or else the last text between marks inside of lines that does, or else the last
/// closed block that names none. Code that is indented as its fence is comes without that.
pub fn extract<'r>(response: &'r str, language: &Language) -> Option<Cow<'r, str>> {
    let (mut named, mut bare) = (None, None);
    each_block(response, &language.fences, |block| {
        *(if block.named { &mut named } else { &mut bare }) = Some(block);
    });
    let block = named.or_else(|| marked(response, &language.fences)).or(bare)?;
    Some(block.code()).filter(|code| !code.trim().is_empty())
}

/// The last text between three backticks with the language's name after them, and the next three: where a fence does not stand
/// alone on its line, as in `<answer>```python`, or is indented as an item of a list.
fn marked<'r>(response: &'r str, names: &[impl AsRef<str>]) -> Option<FencedBlock<'r>> {
    const MARK: &str = "```";
    // Before this, all is read.
    let (mut found, mut from, mut end) = (None, 0, 0);
    for line in response.split_inclusive('\n') {
        let start = end;
        end += line.len();
        let Some(at) = line.rfind(MARK).filter(|at| start + at >= from) else { continue };
        if !line.ends_with('\n')
            || FenceLanguage::of(line[at + MARK.len()..].trim(), names) != FenceLanguage::Named
        {
            continue;
        }
        let Some(length) = response[end..].find(MARK) else { break };
        let indent = line.bytes().take_while(|byte| *byte == b' ').count();
        // The spaces before the closing mark are no code.
        let text = response[end..end + length].trim_end_matches(' ');
        found = Some(FencedBlock { text, named: true, indent });
        from = end + length + MARK.len();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_closed_block_of_the_language_counts() {
        let python = Language::python("/usr/bin/python3");
        for (response, wanted) in [
            ("```python\na\n```\n```python\nb\n```", Some("b\n")),
            ("```py\na\n```\n```\nb\n```", Some("a\n")),
            ("text\n```\nb\n```\n", Some("b\n")),
            ("```Python title=x\r\na\r\n```\r\n", Some("a\r\n")),
            ("~~~python\n```\n~~~", Some("```\n")),
            ("````python\n```\n````", Some("```\n")),
            ("```python\na\n```\n```python\nb", Some("a\n")),
            ("```json\n{}\n```", None),
            ("```python\n\n```", None),
            ("The answer is 7.", None),
            ("    ```python\n    a\n    ```", Some("a\n")),
            ("1. So:\n\n   ```python\n   if a:\n       b\n   ```", Some("if a:\n    b\n")),
            ("<answer>```python\na\n```</answer>", Some("a\n")),
            ("So: ```python\na\n```\nor ```Python\nb```", Some("b")),
            ("So: ```python\na", None),
            ("So: ```json\na\n```", None),
            ("```python a``` is code\n```python\nb\n```", Some("b\n")),
            ("", None),
        ] {
            assert_eq!(extract(response, &python).as_deref(), wanted, "{response:?}");
        }
        let many = "```python\nx\n```\n".repeat(50_000);
        assert_eq!(extract(&many, &python).as_deref(), Some("x\n"));
        for hostile in ["a```python ".repeat(50_000), "a```python\n".repeat(50_000), "`".repeat(200_000)] {
            let _ = extract(&hostile, &python);
        }
    }
}
