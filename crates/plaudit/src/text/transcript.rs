//! Transcripts as trainers decode them: a prompt and its response in one text, special tokens included.

/// The tokens that end a turn in the chat formats of common models.
const END_OF_TURN: [&str; 10] = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|return|>",
    "</s>",
    "<eos>",
    "<end_of_turn>",
    "<\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>",
];
/// How far into a transcript its prompt may begin: a tokenizer may put a token before it.
const MAX_OFFSET: usize = 64;
/// How much of a prompt must be left to find its end, where its beginning was cut off.
const MIN_OVERLAP: usize = 16;

/// The response: the transcript without its prompt. A tokenizer may put a token before the prompt, and a trainer may cut off
/// the beginning of a prompt that is too long. None where the prompt is not found.
pub fn response_of<'t>(transcript: &'t str, prompt: &str) -> Option<&'t str> {
    if let Some(response) = transcript.strip_prefix(prompt) {
        return Some(response);
    }
    if let Some(at) = transcript.find(prompt).filter(|at| !prompt.is_empty() && *at <= MAX_OFFSET) {
        return transcript.get(at + prompt.len()..);
    }
    match overlap(prompt.as_bytes(), transcript.as_bytes()) {
        length if length >= MIN_OVERLAP => transcript.get(length..),
        _ => None,
    }
}

/// The text without the tokens at its end that end a turn, nor any of `more`.
pub fn strip_end_of_turn<'t>(mut text: &'t str, more: &[String]) -> &'t str {
    loop {
        text = text.trim_end();
        let ends = END_OF_TURN.into_iter().chain(more.iter().map(String::as_str));
        let Some(rest) = ends.filter(|end| !end.is_empty()).find_map(|end| text.strip_suffix(end)) else {
            return text;
        };
        text = rest;
    }
}

/// The length of the longest end of the prompt that the transcript begins with, in linear time (Knuth, Morris and Pratt,
/// 1977).
fn overlap(prompt: &[u8], transcript: &[u8]) -> usize {
    let pattern = &transcript[..transcript.len().min(prompt.len())];
    let mut fallback = vec![0; pattern.len()];
    let mut length = 0;
    for at in 1..pattern.len() {
        while length > 0 && pattern[at] != pattern[length] {
            length = fallback[length - 1];
        }
        length += usize::from(pattern[at] == pattern[length]);
        fallback[at] = length;
    }
    length = 0;
    for byte in prompt {
        while length > 0 && pattern.get(length) != Some(byte) {
            length = fallback[length - 1];
        }
        length += usize::from(pattern.get(length) == Some(byte));
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_response_follows_the_prompt() {
        assert_eq!(response_of("ab", "a"), Some("b"));
        assert_eq!(response_of("<s>abc", "ab"), Some("c"));
        assert_eq!(response_of("x", ""), Some("x"));
        let prompt = "a long story about a fox and a dog: ";
        assert_eq!(response_of(&format!("{}yes", &prompt[10..]), prompt), Some("yes"));
        assert_eq!(response_of("ory: yes", prompt), None);
        assert_eq!(response_of("", prompt), None);
        // A prompt that repeats itself is cut off once.
        let prompt = "aaaaaaaaaaaaaaaaaaaaaaab";
        assert_eq!(response_of(&format!("{}aab", &prompt[4..]), prompt), Some("aab"));
    }

    #[test]
    fn the_overlap_is_the_longest() {
        let slow = |prompt: &str, text: &str| {
            let sizes = 0..=prompt.len().min(text.len());
            sizes.rev().find(|size| prompt.ends_with(&text[..*size])).unwrap()
        };
        for prompt in ["", "a", "ab", "aab", "abab", "aaaa", "abcabc"] {
            for text in ["", "a", "b", "aab", "abab", "ababab", "bcabc", "aaaaaa", "cabcx"] {
                assert_eq!(
                    overlap(prompt.as_bytes(), text.as_bytes()),
                    slow(prompt, text),
                    "{prompt} {text}"
                );
            }
        }
    }

    #[test]
    fn tokens_that_end_a_turn_are_stripped() {
        assert_eq!(strip_end_of_turn("yes<|im_end|>\n<|endoftext|>", &[]), "yes");
        assert_eq!(strip_end_of_turn("yes<|stop|>", &[]), "yes<|stop|>");
        assert_eq!(strip_end_of_turn("yes<|stop|></s>", &["<|stop|>".to_owned(), String::new()]), "yes");
        assert_eq!(strip_end_of_turn("</s> no", &[]), "</s> no");
    }
}
