//! The program of a response: the last fenced code block of a language.

use crate::language::Language;

/// The last closed block that names the language, or else the last closed block that names none.
pub fn extract<'r>(response: &'r str, language: &Language) -> Option<&'r str> {
    let (mut named, mut bare) = (None, None);
    // The fence that is open: its character, its length, its kind, and where its content starts.
    let mut open: Option<(u8, usize, Kind, usize)> = None;
    let mut at = 0;
    for line in response.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let Some((mark, length, rest)) = fence(line) else { continue };
        match open {
            None => open = Some((mark, length, kind(rest, language), at)),
            Some((known, least, kind, content)) if known == mark && length >= least && rest.is_empty() => {
                let block = &response[content..start];
                match kind {
                    Kind::Named => named = Some(block),
                    Kind::Bare => bare = Some(block),
                    Kind::Other => {}
                }
                open = None;
            }
            Some(_) => {}
        }
    }
    named.or(bare).filter(|block| !block.trim().is_empty())
}

#[derive(Clone, Copy)]
enum Kind {
    Named,
    Bare,
    Other,
}

/// The character and the length of a fence, and what follows it on its line.
fn fence(line: &str) -> Option<(u8, usize, &str)> {
    let text = line.trim_start_matches(' ');
    if line.len() - text.len() > 3 {
        return None;
    }
    let mark = *text.as_bytes().first().filter(|mark| matches!(mark, b'`' | b'~'))?;
    let length = text.bytes().take_while(|byte| *byte == mark).count();
    (length >= 3).then(|| (mark, length, text[length..].trim()))
}

fn kind(info: &str, language: &Language) -> Kind {
    let word = info.split([' ', '\t', '{', ',', ':']).next().unwrap_or("");
    if info.is_empty() {
        Kind::Bare
    } else if language.fences.iter().any(|name| name.eq_ignore_ascii_case(word)) {
        Kind::Named
    } else {
        Kind::Other
    }
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
            ("    ```python\n    a\n    ```", None),
            ("", None),
        ] {
            assert_eq!(extract(response, &python), wanted, "{response:?}");
        }
        let many = "```python\nx\n```\n".repeat(50_000);
        assert_eq!(extract(&many, &python), Some("x\n"));
    }
}
