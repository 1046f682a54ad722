//! Marks: the words and signs that announce an answer. Mathematics and multiple choice read them here, so that a phrase
//! which one of them knows is known to both.

use memchr::memmem;

/// The sign before a final answer, as in GSM8K.
pub const HASH: &str = "####";

/// What a mark announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announces {
    /// Any answer, behind a verb or a colon: "the answer is 5".
    Answer,
    /// The letter of an option, behind the word: "option C", "my choice is C", 选C.
    Option,
}

/// The words, without the letter that may be a capital.
const WORDS: [(&str, Announces); 8] = [
    ("nswer", Announces::Answer),
    ("NSWER", Announces::Answer),
    ("答案", Announces::Answer),
    ("твет", Announces::Answer),
    ("ption", Announces::Option),
    ("hoice", Announces::Option),
    ("election", Announces::Option),
    ("选", Announces::Option),
];

/// What may stand between a word and its answer, in the same sentence.
pub const VERBS: [&str; 8] = [":", "：", " is", " are", " be", "=", "是", "为"];

/// Words between two letters or values that only list them.
const JOINTS: [&str; 13] =
    ["", "or", "and", "nor", "和", "与", "或", "及", "跟", "以及", "或者", "and/or", "as well as"];

/// Bytes before a mark that are looked at.
const NEAR: usize = 120;

/// One mark: where its word ends, and what it announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The offset behind the word.
    pub end: usize,
    /// What it announces.
    pub announces: Announces,
}

/// The marks of a text from its end on. Each word is looked for once where it is missing.
#[derive(Debug)]
pub struct Marks<'t> {
    text: &'t str,
    start: usize,
    places: Vec<(usize, &'static str, Announces)>,
}

impl<'t> Marks<'t> {
    /// The marks behind `start`.
    pub fn new(text: &'t str, start: usize) -> Self {
        let bytes = &text.as_bytes()[start..];
        let places = WORDS
            .iter()
            .filter_map(|(word, announces)| {
                let at = memmem::rfind(bytes, word.as_bytes())?;
                Some((start + at, *word, *announces))
            })
            .collect();
        Self { text, start, places }
    }

    /// Whether a place is the rest of a word of its own, as the "nswer" of "answer".
    fn is_word(&self, at: usize, word: &str) -> bool {
        let before = &self.text[..at];
        let Some(first) = word.bytes().next().filter(u8::is_ascii) else { return true };
        let wanted = match first {
            b'n' | b'N' => 'a',
            b'p' => 'o',
            b'e' => 's',
            _ => 'c',
        };
        let mut letters = before.chars().rev();
        letters.next().is_some_and(|first| first.eq_ignore_ascii_case(&wanted))
            && !letters.next().is_some_and(char::is_alphanumeric)
    }
}

impl Iterator for Marks<'_> {
    type Item = Mark;

    fn next(&mut self) -> Option<Mark> {
        loop {
            let (index, (at, word, announces)) =
                self.places.iter().copied().enumerate().max_by_key(|(_, (at, ..))| *at)?;
            match memmem::rfind(&self.text.as_bytes()[self.start..at], word.as_bytes()) {
                Some(earlier) => self.places[index].0 = self.start + earlier,
                None => {
                    self.places.swap_remove(index);
                }
            }
            if self.is_word(at, word) {
                return Some(Mark { end: at + word.len(), announces });
            }
        }
    }
}

/// Where the letter of an option stands behind its mark, if the words around say that it is chosen: "we choose option C",
/// "option C is right", "my final choice is C", 故选：C. "Option C" alone only names one.
pub fn chosen_letter(text: &str, at: usize) -> Option<usize> {
    let (before, rest) = (&text[..at], &text[at..]);
    let sign = |c: char| " \t:：*_`\"'([{$（【“".contains(c);
    let chinese = before.ends_with('选');
    let rest = if chinese { rest.strip_prefix('择').unwrap_or(rest) } else { rest };
    let item = chinese && rest.starts_with('项');
    let rest = rest.trim_start_matches('项');
    let bare = rest.trim_start_matches(sign);
    let verb = ["is ", "is: ", "would be ", "must be ", "should be ", "是", "为"]
        .into_iter()
        .find_map(|verb| bare.strip_prefix(verb))
        .map(|rest| rest.trim_start_matches(sign));
    let colon = rest.trim_start_matches(' ').starts_with([':', '：']);
    let bare = verb.unwrap_or(bare);
    let bare = bare.strip_prefix("option ").unwrap_or(bare).trim_start_matches(sign);
    let letter = bare.chars().next().filter(char::is_ascii_uppercase)?;
    let behind = &bare[letter.len_utf8()..];
    if behind.starts_with(|c: char| c.is_ascii_alphanumeric() || "'’-".contains(c)) {
        return None;
    }
    let from = text.len() - bare.len();
    // 不选, 可选
    if chinese && before[..before.len() - "选".len()].ends_with(['不', '可', '别']) {
        return None;
    }
    if chinese && !item || verb.is_some() {
        return Some(from);
    }
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(NEAR))..];
    let line = near.rsplit(['\n', '.', '。', ';']).next().unwrap_or("");
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '\'').rev().filter(|word| !word.is_empty());
    let mut words = words.map(str::to_lowercase);
    // The word itself comes first.
    let own = words.next().unwrap_or_else(String::new);
    let choosing = |word: &str| {
        ["choos", "chose", "select", "pick"].iter().any(|stem| word.starts_with(stem))
            || matches!(
                word,
                "is" | "be" | "answer" | "correct" | "right" | "best" | "final" | "with" | "mark"
            )
    };
    if !item && words.take(3).any(|word| choosing(&word)) && (!colon || own != "option" || line.len() < 40) {
        return Some(from);
    }
    let behind = behind.trim_start_matches([')', ']', '}', '*', '_', '$', '"', ' ', '）', '】', '”']);
    let right = [
        "is correct",
        "is right",
        "is the correct",
        "is the right",
        "is the answer",
        "is the best",
        "is true",
    ];
    let right = right.iter().chain(&["must be", "should be", "would be", "正确", "符合", "对"]);
    right.into_iter().any(|words| behind.starts_with(*words)).then_some(from)
}

/// Whether what stands between two letters only lists them.
pub fn is_joint(gap: &str) -> bool {
    let signs = |c: char| c.is_whitespace() || "()[]{}<>*_`$\"“”‘’,;:.!?，。；：、（）【】/|&+".contains(c);
    let inner = gap.trim_matches(signs);
    let inner = inner.strip_suffix("option").unwrap_or(inner).trim_matches(signs);
    JOINTS.iter().any(|joint| inner.eq_ignore_ascii_case(joint))
}

/// Whether a box holds nothing but the blank of a task: a question mark, lines, dots, spaces.
pub fn is_blank(content: &str) -> bool {
    const EMPTY: [&str; 10] = [
        "textbackslash",
        "overset",
        "underset",
        "underline",
        "square",
        "Box",
        "hspace",
        "quad",
        "qquad",
        "text",
    ];
    let mut rest = content.trim();
    // Most boxes are filled, and say so by their first character.
    while let Some(c) = rest.chars().next() {
        let step = match c {
            '\\' => {
                let len = rest[1..].bytes().take_while(u8::is_ascii_alphabetic).count();
                match &rest[1..1 + len] {
                    "" if rest[1..].starts_with(['_', ' ', ',', ';', '!', ':']) => 2,
                    name if EMPTY.contains(&name) => 1 + len,
                    _ => return false,
                }
            }
            '?' | '_' | '.' | '…' | '{' | '}' | '$' | ' ' | '\n' | '~' => c.len_utf8(),
            _ => return false,
        };
        rest = &rest[step..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_from_the_end() {
        let text = "Option A. The answer is B; my choice: C. 故选：D";
        let marks: Vec<Announces> = Marks::new(text, 0).map(|mark| mark.announces).collect();
        assert_eq!(marks, [Announces::Option, Announces::Option, Announces::Answer, Announces::Option]);
        assert_eq!(Marks::new("adoption, questions-answering", 0).count(), 1);
    }

    #[test]
    fn a_letter_is_chosen_or_only_named() {
        let letter = |text: &str| {
            let mark = Marks::new(text, 0).find(|mark| mark.announces == Announces::Option)?;
            chosen_letter(text, mark.end).and_then(|at| text[at..].chars().next())
        };
        for text in [
            "So our selection is option C.",
            "Option C is right",
            "option (C) is the correct one",
            "I choose option **C**, as",
            "my final choice is C",
            "The correct option: C",
            "The best choice is (C).",
            "故选：C",
            "所以选C。",
            "应选 C",
            "正确选项为C",
            "选项C正确",
        ] {
            assert_eq!(letter(text), Some('C'), "{text}");
        }
        for text in
            ["Option C: a glass rod", "Option C conducts", "不选C", "选项C错误", "the choice Clara made"]
        {
            assert_eq!(letter(text), None, "{text}");
        }
    }
}
