//! Fenced code blocks of a response by their language, and the program among them: the last one.

#[cfg(feature = "run")]
use crate::language::Language;
use std::borrow::Cow;

/// A fenced code block that is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FencedBlock<'r> {
    /// Everything between the two fences.
    pub text: &'r str,
    /// Whether the fence names the language; otherwise it names none.
    pub named: bool,
    /// By how many spaces the fence is indented.
    pub indent: usize,
}

impl<'r> FencedBlock<'r> {
    /// The code: of each line, as many spaces less as the fence is indented by.
    pub fn code(&self) -> Cow<'r, str> {
        if self.indent == 0 {
            return Cow::Borrowed(self.text);
        }
        let lines = self.text.split_inclusive('\n');
        let spaces = |line: &str| line.bytes().take(self.indent).take_while(|byte| *byte == b' ').count();
        Cow::Owned(lines.map(|line| &line[spaces(line)..]).collect())
    }
}

/// The last closed block that names the language, or else the last text between marks inside of lines that does, or else the last
/// closed block that names none. Code that is indented as its fence is comes without that.
#[cfg(feature = "run")]
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
#[cfg(feature = "run")]
fn marked<'r>(response: &'r str, names: &[impl AsRef<str>]) -> Option<FencedBlock<'r>> {
    const MARK: &str = "```";
    // Before this, all is read.
    let (mut found, mut from, mut end) = (None, 0, 0);
    for line in response.split_inclusive('\n') {
        let start = end;
        end += line.len();
        let Some(at) = line.rfind(MARK).filter(|at| start + at >= from) else { continue };
        if !line.ends_with('\n') || kind(line[at + MARK.len()..].trim(), names) != Kind::Named {
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

/// All closed blocks whose fences name the language by one of these words, or name none.
pub fn fenced_blocks<'r>(response: &'r str, names: &[&str]) -> Vec<FencedBlock<'r>> {
    let mut blocks = Vec::new();
    each_block(response, names, |block| blocks.push(block));
    blocks
}

fn each_block<'r>(response: &'r str, names: &[impl AsRef<str>], mut each: impl FnMut(FencedBlock<'r>)) {
    // The fence that is open, its kind, and where its content starts.
    let mut open: Option<(Fence<'_>, Kind, usize)> = None;
    let mut at = 0;
    while at < response.len() {
        let start = at;
        at = memchr::memchr(b'\n', &response.as_bytes()[at..]).map_or(response.len(), |end| at + end + 1);
        let Some(fence) = fence(&response[start..at]) else { continue };
        match open {
            None => open = Some((fence, kind(fence.info, names), at)),
            Some((opened, kind, content)) if opened.is_closed_by(&fence) => {
                if kind != Kind::Other {
                    let text = &response[content..start];
                    each(FencedBlock { text, named: kind == Kind::Named, indent: opened.indent });
                }
                open = None;
            }
            Some(_) => {}
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Named,
    Bare,
    Other,
}

/// A line of at least three backticks or tildes, as CommonMark has it.
#[derive(Clone, Copy)]
struct Fence<'l> {
    mark: u8,
    length: usize,
    indent: usize,
    /// What follows on the line.
    info: &'l str,
}

impl Fence<'_> {
    fn is_closed_by(&self, other: &Fence<'_>) -> bool {
        other.mark == self.mark && other.length >= self.length && other.info.is_empty()
    }
}

fn fence(line: &str) -> Option<Fence<'_>> {
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    let mark = *text.as_bytes().first().filter(|mark| indent <= 3 && matches!(mark, b'`' | b'~'))?;
    let length = text.bytes().take_while(|byte| *byte == mark).count();
    let info = text[length..].trim();
    // Backticks after backticks are code within a line.
    (length >= 3 && (mark == b'~' || !info.contains('`'))).then_some(Fence { mark, length, indent, info })
}

fn kind(info: &str, names: &[impl AsRef<str>]) -> Kind {
    let word = info.split([' ', '\t', '{', ',', ':']).next().unwrap_or("");
    if info.is_empty() {
        Kind::Bare
    } else if names.iter().any(|name| name.as_ref().eq_ignore_ascii_case(word)) {
        Kind::Named
    } else {
        Kind::Other
    }
}

#[cfg(all(test, feature = "run"))]
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

    #[test]
    fn every_closed_block_of_the_language_is_found() {
        let response =
            "```py\na\n```\n```json\n{}\n```\n~~~\nb\n~~~\n  ```PYTHON3\n   c\n d\n  ```\n```python\ne";
        let blocks = fenced_blocks(response, &["python", "py", "python3"]);
        let found: Vec<(Cow<'_, str>, bool)> =
            blocks.iter().map(|block| (block.code(), block.named)).collect();
        assert_eq!(found, [("a\n".into(), true), ("b\n".into(), false), (" c\nd\n".into(), true)]);
    }
}
