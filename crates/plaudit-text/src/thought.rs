//! Thought and words of a response: splits `<think>` blocks, closed or not, from what is said.

use crate::{Tags, strip};

/// What is said and what is thought, where there is a thought: each without white space at its ends, and pieces of the
/// thought joined by one space. Thought are every closed `<think>` block, what comes after one that is never closed, and what comes
/// before a `</think>` that nothing opened, as templates that open it in the prompt leave it.
pub fn split_thought(text: &str, tags: &Tags) -> Option<(String, String)> {
    let (mut said, mut thought) = (String::new(), String::new());
    let mut think = |piece: &str| {
        let piece = strip(piece);
        if !thought.is_empty() && !piece.is_empty() {
            thought.push(' ');
        }
        thought.push_str(piece);
    };
    let (mut from, mut depth, mut any) = (0, 0usize, false);
    for tag in tags.named(text, "think") {
        any = true;
        match (tag.closes, depth) {
            (false, 0) => {
                said.push_str(&text[from..tag.start]);
                (from, depth) = (tag.end, 1);
            }
            (false, _) => depth += 1,
            (true, 0) => {
                think(&std::mem::take(&mut said));
                think(&text[from..tag.start]);
                from = tag.end;
            }
            (true, _) => {
                depth -= 1;
                if depth == 0 {
                    think(&text[from..tag.start]);
                    from = tag.end;
                }
            }
        }
    }
    match depth {
        0 => said.push_str(&text[from..]),
        _ => think(&text[from..]),
    }
    any.then(|| (strip(&said).to_owned(), thought))
}

/// What comes after the last `</think>`, or all of a text without one; nothing where a thought is never closed. The answer
/// that a rule looks for is not in the thought.
pub fn after_thought(text: &str) -> Option<&str> {
    const CLOSE: &[u8] = b"</think>";
    let bytes = text.as_bytes();
    for at in memchr::memrchr_iter(b'<', bytes) {
        if bytes[at..].starts_with(CLOSE) {
            return Some(&text[at + CLOSE.len()..]);
        }
        if bytes[at..].starts_with(b"<think>") {
            return None;
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_comes_after_the_thought() {
        for (text, after) in [
            ("plain", Some("plain")),
            ("<think>a</think>b", Some("b")),
            ("a</think>b</think> c", Some(" c")),
            ("<think>a</think>b<think>c", None),
            ("<think>a", None),
        ] {
            assert_eq!(after_thought(text), after, "{text}");
        }
    }

    #[test]
    fn the_thought_is_taken_away() {
        for (text, said, thought) in [
            ("plain ", "", None),
            ("<think>a</think>b", "b", Some("a")),
            ("x<think>a</think>b<think>c</think> d", "xb d", Some("a c")),
            ("<think>never closed", "", Some("never closed")),
            ("said <think>never closed", "said", Some("never closed")),
            ("opened in the prompt</think>b", "b", Some("opened in the prompt")),
            ("<think>a<think>b</think>c</think>d", "d", Some("a<think>b</think>c")),
            ("</think></think>e", "e", Some("")),
        ] {
            let wanted = thought.map(|thought| (said.to_owned(), thought.to_owned()));
            assert_eq!(split_thought(text, &Tags::find(text)), wanted, "{text}");
        }
    }
}
