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

/// A word that announces: the letters that it may begin with, of which one stands before its rest, and what may stand between it and
/// its answer.
#[derive(Debug)]
struct MarkWord {
    first: &'static str,
    rest: &'static str,
    announces: Announces,
    verbs: &'static [&'static str],
}

const fn word(first: &'static str, rest: &'static str, announces: Announces) -> MarkWord {
    MarkWord { first, rest, announces, verbs: &VERBS }
}

const fn foreign(first: &'static str, rest: &'static str, verbs: &'static [&'static str]) -> MarkWord {
    MarkWord { first, rest, announces: Announces::Answer, verbs }
}

/// The words in English and Chinese.
const WORDS: [MarkWord; 7] = [
    word("aA", "nswer", Announces::Answer),
    word("A", "NSWER", Announces::Answer),
    word("", "答案", Announces::Answer),
    word("oO", "ption", Announces::Option),
    word("cC", "hoice", Announces::Option),
    word("sS", "election", Announces::Option),
    word("", "选", Announces::Option),
];

/// "The answer" in other languages, in which models are asked to think and answer. They count at the end of a text.
const FOREIGN: [MarkWord; 21] = [
    foreign("rR", "espuesta", &[":", "=", " es", " son"]),
    foreign("rR", "esposta", &[":", "=", " é", " são"]),
    foreign("rR", "isposta", &[":", "=", " è", " sono"]),
    foreign("rR", "éponse", &[":", "=", " est", " sont"]),
    foreign("aA", "ntwort", &[":", "=", " ist", " lautet", " sind"]),
    foreign("aA", "ntwoord", &[":", "=", " is"]),
    foreign("oO", "dpowiedź", &[":", "=", " to", " jest"]),
    foreign("cC", "evap", &[":", "="]),
    foreign("jJ", "awaban", &[":", "=", " adalah"]),
    foreign("jJ", "ibu", &[":", "=", " ni"]),
    foreign("оО", "твет", &[":", "=", " —", " –", " -", " равен"]),
    foreign("вВ", "ідповідь", &[":", "=", " —", " –", " -"]),
    foreign("đĐ", "áp án", &[":", "=", " là"]),
    foreign("", "答え", &[":", "：", "=", "は"]),
    foreign("", "正解", &[":", "：", "=", "は", "是", "为"]),
    foreign("", "정답", &[":", "=", "은", "는"]),
    foreign("", "الإجابة", &[":", "=", " هي"]),
    foreign("", "الجواب", &[":", "=", " هو"]),
    foreign("", "उत्तर", &[":", "="]),
    foreign("", "উত্তর", &[":", "="]),
    foreign("", "คำตอบ", &[":", "=", "คือ"]),
];

/// Words of those languages that deny.
const DENYING: [&str; 15] = [
    "no",
    "não",
    "non",
    "pas",
    "nicht",
    "kein",
    "keine",
    "niet",
    "nie",
    "bukan",
    "не",
    "không",
    "değil",
    "ليس",
    "नहीं",
];

/// Bytes at the end of a text in which words of other languages are looked for.
const FOREIGN_TAIL: usize = 64 * 1024;

/// What may stand between a word and its answer, in the same sentence.
pub const VERBS: [&str; 8] = [":", "：", " is", " are", " be", "=", "是", "为"];

/// Words between two letters or values that only list them.
const JOINTS: [&str; 39] = [
    "",
    "or",
    "and",
    "nor",
    "和",
    "与",
    "或",
    "及",
    "跟",
    "以及",
    "或者",
    "and/or",
    "as well as",
    "maybe",
    "or maybe",
    "perhaps",
    "or perhaps",
    "possibly",
    "or possibly",
    "alternatively",
    "or alternatively",
    "oder",
    "und",
    "ou",
    "et",
    "o",
    "y",
    "e",
    "oppure",
    "или",
    "и",
    "або",
    "atau",
    "veya",
    "hoặc",
    "または",
    "か",
    "또는",
    "أو",
];

/// Bytes before a mark that are looked at.
const NEAR: usize = 120;

/// One mark: where its word ends, and what it announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The offset behind the word.
    pub end: usize,
    /// What it announces.
    pub announces: Announces,
    /// What may stand between the word and its answer, in the same sentence.
    pub verbs: &'static [&'static str],
}

impl Mark {
    /// Where its answer begins in the rest of a line, for a word of another language than English and Chinese: behind its verb, or at
    /// once. None too where a word between them denies it.
    pub fn behind_foreign(&self, line: &str) -> Option<usize> {
        if self.verbs == VERBS {
            return None;
        }
        let rest = line.get(self.end..)?;
        let rest = &rest[..rest.floor_char_boundary(NEAR)];
        let ends = |verb: &&str, at: usize| {
            !verb.starts_with(' ') || !rest[at + verb.len()..].starts_with(char::is_alphanumeric)
        };
        let verbs = self.verbs.iter().filter_map(|verb| {
            let at = rest.match_indices(verb).map(|(at, _)| at).find(|at| ends(verb, *at))?;
            let answer = rest[at + verb.len()..].trim_start_matches([' ', ':', '：', '=']);
            Some((at, rest.len() - answer.len()))
        });
        // Without a verb the letter of an option must follow at once.
        let bare = rest.trim_start_matches(|c: char| " *_`\"'([{".contains(c));
        let letter = || {
            let mut chars = bare.chars();
            chars.next().is_some_and(|c| c.is_ascii_uppercase())
                && !chars.next().is_some_and(char::is_alphanumeric)
        };
        let (verb, after) = verbs.min().or_else(|| letter().then_some((0, 0)))?;
        let stopped = rest[..verb].contains(['.', '。', ';', '?', '!']);
        (!stopped && !is_denied_abroad(&rest[..verb])).then_some(self.end + after)
    }

    /// Whether the line of a word of another language denies the answer that stands in it.
    pub fn is_denied_abroad(&self, line: &str) -> bool {
        self.verbs != VERBS && is_denied_abroad(line)
    }
}

fn is_denied_abroad(text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && !"\u{94d}\u{93e}\u{940}\u{902}".contains(c))
        .any(|word| DENYING.iter().any(|known| *known == word.to_lowercase()))
}

/// The marks of a text from its end on. Each word is looked for once where it is missing.
#[derive(Debug)]
pub struct Marks<'t> {
    text: &'t str,
    places: Vec<(usize, usize, &'static MarkWord)>,
}

impl<'t> Marks<'t> {
    /// The marks behind `start`.
    pub fn new(text: &'t str, start: usize) -> Self {
        let tail = text.ceil_char_boundary(text.len().saturating_sub(FOREIGN_TAIL)).max(start);
        // Most of the others cannot be written in ASCII.
        let ascii = text.is_ascii();
        let words = WORDS.iter().map(|word| (word, start)).chain(FOREIGN.iter().map(|word| (word, tail)));
        let places = words
            .filter(|(word, _)| !ascii || word.rest.is_ascii())
            .filter_map(|(word, from)| {
                let at = memmem::rfind(&text.as_bytes()[from..], word.rest.as_bytes())?;
                Some((from + at, from, word))
            })
            .collect();
        Self { text, places }
    }

    /// Whether a place is the rest of a word of its own, as the "nswer" of "answer".
    fn is_word(&self, at: usize, word: &MarkWord) -> bool {
        let mut letters = self.text[..at].chars().rev();
        word.first.is_empty()
            || letters.next().is_some_and(|first| word.first.contains(first))
                && !letters.next().is_some_and(char::is_alphanumeric)
    }
}

impl Iterator for Marks<'_> {
    type Item = Mark;

    fn next(&mut self) -> Option<Mark> {
        loop {
            let (index, (at, from, word)) =
                self.places.iter().copied().enumerate().max_by_key(|(_, (at, ..))| *at)?;
            match memmem::rfind(&self.text.as_bytes()[from..at], word.rest.as_bytes()) {
                Some(earlier) => self.places[index].0 = from + earlier,
                None => {
                    self.places.swap_remove(index);
                }
            }
            if self.is_word(at, word) {
                return Some(Mark {
                    end: at + word.rest.len(),
                    announces: word.announces,
                    verbs: word.verbs,
                });
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
    let right = right.iter().chain(&["must be", "should be", "would be", "正确", "是正确", "符合", "对"]);
    // "Neither option A nor option B is right."
    let word = near.trim_end_matches(char::is_alphanumeric);
    let affirmed =
        !word.trim_end().ends_with("nor") && right.into_iter().any(|words| behind.starts_with(*words));
    affirmed.then(|| listed_before(word).map_or(from, |letter| at - near.len() + letter))
}

/// Where the letter stands that "or" and its like join to the option behind: the first of "A or option B is right", of which this is
/// what stands before the second "option".
fn listed_before(text: &str) -> Option<usize> {
    let text = text.trim_end();
    let before = ["or", "and", "/", "&"].into_iter().find_map(|joint| text.strip_suffix(joint))?;
    let before = before.trim_end_matches([' ', ',', ')', '*', '"']);
    let rest = before.strip_suffix(|c: char| c.is_ascii_uppercase())?;
    (!rest.ends_with(char::is_alphanumeric)).then_some(rest.len())
}

/// Whether what stands between two letters only lists them.
pub fn is_joint(gap: &str) -> bool {
    let signs = |c: char| c.is_whitespace() || "()[]{}<>*_`$\"“”‘’,;:.!?，。；：、（）【】/|&+–—".contains(c);
    let inner = gap.trim_matches(signs);
    let inner = inner.strip_suffix("option").unwrap_or(inner).trim_matches(signs);
    JOINTS.iter().any(|joint| inner.eq_ignore_ascii_case(joint))
}

/// Whether a box holds nothing but the blank of a task: a question mark, lines, dots, spaces.
pub fn is_blank(content: &str) -> bool {
    const EMPTY: [&str; 15] = [
        "textbackslash",
        "textasciitilde",
        "overset",
        "underset",
        "underline",
        "square",
        "Box",
        "ldots",
        "dots",
        "cdots",
        "dotfill",
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
            '?' | '_' | '.' | '…' | '？' | '□' | '▢' | '＿' | '{' | '}' | '$' | ' ' | '\n' | '~' => {
                c.len_utf8()
            }
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
    fn other_languages_announce_an_answer() {
        let answer = |text: &'static str| {
            let mark = Marks::new(text, 0).next()?;
            mark.behind_foreign(text).map(|at| text[at..].trim())
        };
        for (text, wanted) in [
            ("La respuesta correcta es C.", Some("C.")),
            ("Die Antwort lautet: 12", Some("12")),
            ("Réponse : 12", Some("12")),
            ("A resposta é 12", Some("12")),
            ("Jawabannya adalah C", Some("C")),
            ("Правильный ответ: C", Some("C")),
            ("Đáp án đúng là C", Some("C")),
            ("答えはCです", Some("Cです")),
            ("정답은 C", Some("C")),
            ("La respuesta no es C", None),
            ("Соответственно: C", None),
            ("La respuesta estudia C. Esto es B", None),
        ] {
            assert_eq!(answer(text), wanted, "{text}");
        }
        assert!(Marks::new("Antwort", 0).next().is_some_and(|mark| mark.is_denied_abroad(" ist nicht 12")));
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
            "选项C是正确的",
            "Option C or option D is right",
        ] {
            assert_eq!(letter(text), Some('C'), "{text}");
        }
        for text in [
            "Option C: a glass rod",
            "Option C conducts",
            "不选C",
            "选项C错误",
            "the choice Clara made",
            "nor option C is right",
        ] {
            assert_eq!(letter(text), None, "{text}");
        }
    }
}
