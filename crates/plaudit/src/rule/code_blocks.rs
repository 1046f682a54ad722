//! Python blocks of a response, for rules about code: the closed fences that name Python or no language, without empty ones.

use plaudit_text::fenced_blocks;
use std::borrow::Cow;

/// The words after a fence that mean Python.
const PYTHON: &[&str] = &["python", "py", "python3"];

/// The code of all Python blocks that hold any; with `bare`, also of those that name no language.
pub(super) fn python_blocks(response: &str, bare: bool) -> Vec<Cow<'_, str>> {
    let blocks = fenced_blocks(response, PYTHON).into_iter();
    let wanted = blocks.filter(|block| (bare || block.named) && !block.text.trim().is_empty());
    wanted.map(|block| block.code()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_without_code_are_left_out() {
        let response = "```python\na\n```\n```\nb\n```\n```py\n \n```\n```\n```\n```sh\nc\n```\n  ```python\r\n  d\r\n  ```";
        assert_eq!(python_blocks(response, true), ["a\n", "b\n", "d\r\n"]);
        assert_eq!(python_blocks(response, false), ["a\n", "d\r\n"]);
    }
}
