//! Fenced code blocks, as CommonMark has them.

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

/// All closed blocks whose fences name the language by one of these words, or name none.
pub fn fenced_blocks<'r>(response: &'r str, names: &[&str]) -> Vec<FencedBlock<'r>> {
    let mut blocks = Vec::new();
    each_block(response, names, |block| blocks.push(block));
    blocks
}

/// Calls a function with each of them, in order.
pub fn each_block<'r>(response: &'r str, names: &[impl AsRef<str>], mut each: impl FnMut(FencedBlock<'r>)) {
    // The fence that is open, its language, and where its content starts.
    let mut open: Option<(Fence<'_>, FenceLanguage, usize)> = None;
    let mut at = 0;
    while at < response.len() {
        let start = at;
        at = memchr::memchr(b'\n', &response.as_bytes()[at..]).map_or(response.len(), |end| at + end + 1);
        let Some(fence) = Fence::of(&response[start..at]).filter(|fence| fence.indent <= 3) else { continue };
        match open {
            None => open = Some((fence, fence.language(names), at)),
            Some((opened, language, content)) if opened.is_closed_by(&fence) => {
                let text = &response[content..start];
                if language != FenceLanguage::Other {
                    let named = language == FenceLanguage::Named;
                    each(FencedBlock { text, named, indent: opened.indent });
                }
                open = None;
            }
            Some(_) => {}
        }
    }
}

/// Which language a fence names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceLanguage {
    /// The one that is asked for.
    Named,
    /// None.
    Bare,
    /// Another.
    Other,
}

impl FenceLanguage {
    /// What the words after a mark name, where the language has these names.
    pub fn of(info: &str, names: &[impl AsRef<str>]) -> Self {
        let word = info.split([' ', '\t', '{', ',', ':']).next().unwrap_or("");
        if info.is_empty() {
            Self::Bare
        } else if names.iter().any(|name| name.as_ref().eq_ignore_ascii_case(word)) {
            Self::Named
        } else {
            Self::Other
        }
    }
}

/// A line of at least three backticks or tildes.
#[derive(Clone, Copy, Debug)]
pub struct Fence<'l> {
    mark: u8,
    length: usize,
    /// By how many spaces it is indented. CommonMark takes no more than three.
    pub indent: usize,
    /// What follows on the line.
    pub info: &'l str,
}

impl<'l> Fence<'l> {
    /// The fence that a line is.
    pub fn of(line: &'l str) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        let mark = *text.as_bytes().first().filter(|mark| matches!(mark, b'`' | b'~'))?;
        let length = text.bytes().take_while(|byte| *byte == mark).count();
        let info = text[length..].trim();
        // Backticks after backticks are code within a line.
        (length >= 3 && (mark == b'~' || !info.contains('`'))).then_some(Self { mark, length, indent, info })
    }

    /// Whether another one ends the block that this one begins.
    pub fn is_closed_by(&self, other: &Fence<'_>) -> bool {
        other.mark == self.mark && other.length >= self.length && other.info.is_empty()
    }

    fn language(&self, names: &[impl AsRef<str>]) -> FenceLanguage {
        FenceLanguage::of(self.info, names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
