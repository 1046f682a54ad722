//! Options of a multiple-choice question: letters with their texts, read from `extra`, and where such a text stands in another.

use super::RuleInput;
use crate::outcome::Outcome;
use crate::reason::{Code, Reason};
use plaudit_text::{is_space, strip};
use serde_json::{Map, Value};
use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;

/// The most options: the letters of the alphabet.
const MAX_OPTIONS: usize = 26;
/// The longest text of an option, in bytes.
const MAX_LENGTH: usize = 1 << 12;

/// How far around a letter words are looked at, in bytes.
pub(super) const NEAR: usize = 1 << 8;

const TOO_MANY: &str = "The question has more options than the alphabet has letters.";

/// One option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChoiceOption {
    /// Its letter, in upper case, or its digit.
    pub(super) letter: char,
    /// Its text, normalised.
    pub(super) text: String,
    /// Its text without the marks of LaTeX around it, normalised; empty where that is the same.
    pub(super) bare: String,
    /// Its text as it was given.
    pub(super) written: String,
}

/// The options of a question. None at all: any letter may be the answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ChoiceOptions(pub(super) Vec<ChoiceOption>);

impl ChoiceOptions {
    /// The options that a rollout gives: `options` or `choices` of `extra`.
    pub(super) fn of(sample: &RuleInput<'_>) -> Result<Self, Outcome> {
        let given = ["options", "choices"]
            .iter()
            .find_map(|key| sample.extra.get(*key).filter(|given| !given.is_null()));
        let read = match given {
            Some(given) => Self::read(given).and_then(Self::checked),
            None => Self::in_columns(sample.extra).and_then(Self::checked),
        };
        read.map_err(|what| Outcome::invalid(Reason::new(Code::BadOptions, what)))
    }

    /// The options that stand in a field each: `A`, `B`, ... (C-Eval), `option_a`, `optionA`, `opa` (MedMCQA). None where there are
    /// no two.
    fn in_columns(extra: &Map<String, Value>) -> Result<Self, &'static str> {
        let mut options = Vec::new();
        for prefix in ["", "option_", "option", "option ", "Option ", "op", "choice_"] {
            for letter in ('A'..='Z').take_while(|letter| column(extra, prefix, *letter).is_some()) {
                let text = column(extra, prefix, letter).unwrap_or(&Value::Null);
                options.extend(option(letter.encode_utf8(&mut [0; 4]), text)?);
            }
            if options.len() > 1 {
                return Ok(Self(options));
            }
            options.clear();
        }
        Ok(Self::default())
    }

    pub(super) fn read(given: &Value) -> Result<Self, &'static str> {
        let parsed;
        let given = match given {
            // A column of a table may hold the list as JSON, or all options as one text.
            Value::String(text) => {
                let literal =
                    || plaudit_text::PyValue::literal(text)?.into_json().filter(|value| !value.is_string());
                let read = serde_json::from_str::<Value>(text).ok().or_else(literal);
                parsed = read.unwrap_or_else(|| labelled_parts(text));
                &parsed
            }
            given => given,
        };
        let mut options = Vec::new();
        match given {
            Value::Object(map) => match labelled(map) {
                Some((labels, texts)) if labels.len() == texts.len() => {
                    for (label, text) in labels.iter().zip(texts) {
                        options.extend(option(&written(label), text)?);
                    }
                }
                Some(_) => return Err("The question has not as many labels as texts of options."),
                None => {
                    for (label, text) in map {
                        options.extend(option(label, text)?);
                    }
                }
            },
            Value::Array(all) => {
                let numbered = all.iter().enumerate().all(|(at, each)| unlabelled(at, each).is_some());
                for (at, each) in all.iter().enumerate() {
                    match each {
                        Value::Object(map) => match named(map) {
                            Some((label, text)) => options.extend(option(&written(label), text)?),
                            None => {
                                for (label, text) in map {
                                    options.extend(option(label, text)?);
                                }
                            }
                        },
                        Value::Array(pair) if let [label, text] = pair.as_slice() => {
                            options.extend(option(&written(label), text)?);
                        }
                        text => {
                            let own = unlabelled(at, text).filter(|_| numbered).map(Value::from);
                            let label = place(at).ok_or(TOO_MANY)?;
                            options.extend(option(
                                label.encode_utf8(&mut [0; 4]),
                                own.as_ref().unwrap_or(text),
                            )?);
                        }
                    }
                }
            }
            _ => return Err("The options of the question are neither a list nor an object."),
        }
        Ok(Self(options))
    }

    fn checked(self) -> Result<Self, &'static str> {
        if self.0.len() > MAX_OPTIONS {
            return Err(TOO_MANY);
        }
        let twice = |at: usize| self.0[..at].iter().any(|other| other.letter == self.0[at].letter);
        if (0..self.0.len()).any(twice) {
            return Err("Two options of the question have the same letter.");
        }
        Ok(self)
    }

    /// Whether a letter names an option. Without options every letter may.
    pub(super) fn has(&self, letter: char) -> bool {
        match self.0.is_empty() {
            true => letter.is_ascii_uppercase(),
            false => self.0.iter().any(|option| option.letter == letter),
        }
    }

    /// The options of which only the right one has its text, where the data give it twice: who says the text means that one.
    pub(super) fn without_twins(mut self, right: char) -> Self {
        let text = self.text(right).to_owned();
        for option in self.0.iter_mut().filter(|option| option.letter != right && option.text == text) {
            (option.text, option.bare, option.written) = (String::new(), String::new(), String::new());
        }
        self
    }

    /// Whether digits name the options, as in some questions of ARC.
    pub(super) fn are_numbered(&self) -> bool {
        self.0.iter().any(|option| option.letter.is_ascii_digit())
    }

    /// What a character names options by: a letter, or a digit where the options have digits.
    pub(super) fn name(&self, char: char) -> Option<char> {
        letter(char).or_else(|| Some(char).filter(|char| char.is_ascii_digit() && self.are_numbered()))
    }

    /// The text of an option, normalised; empty where it has none.
    pub(super) fn text(&self, letter: char) -> &str {
        self.0.iter().find(|option| option.letter == letter).map_or("", |option| option.text.as_str())
    }

    /// The same without the marks of LaTeX; empty where that is the same.
    pub(super) fn bare(&self, letter: char) -> &str {
        self.0.iter().find(|option| option.letter == letter).map_or("", |option| option.bare.as_str())
    }

    /// Whether the text of an option is `text` to the letter.
    pub(super) fn is_written(&self, letter: char, text: &str) -> bool {
        self.0.iter().any(|option| option.letter == letter && strip(&option.written) == text)
    }

    /// The options whose text is `text`, which is normalised.
    pub(super) fn equal<'o>(&'o self, text: &'o str) -> impl Iterator<Item = char> + 'o {
        let same = move |option: &&ChoiceOption| !text.is_empty() && option.text == text;
        self.0.iter().filter(same).map(|option| option.letter)
    }

    /// The same, or whose text is it without the marks of LaTeX.
    pub(super) fn same<'o>(&'o self, text: &'o str) -> impl Iterator<Item = char> + 'o {
        let same =
            move |option: &&ChoiceOption| !text.is_empty() && (option.text == text || option.bare == text);
        self.0.iter().filter(same).map(|option| option.letter)
    }
}

/// The field of a letter, which may be small behind a prefix.
fn column<'v>(extra: &'v Map<String, Value>, prefix: &str, letter: char) -> Option<&'v Value> {
    let name = |letter: char| extra.get(&format!("{prefix}{letter}"));
    name(letter).or_else(|| name(letter.to_ascii_lowercase()).filter(|_| !prefix.is_empty()))
}

/// The two lists of the form `{"label": [...], "text": [...]}`.
fn labelled(map: &Map<String, Value>) -> Option<(&Vec<Value>, &Vec<Value>)> {
    let list = |names: [&str; 2]| names.iter().find_map(|name| map.get(*name)?.as_array());
    Some((list(["label", "labels"])?, list(["text", "texts"])?))
}

/// The label and the text of an option that is an object of its own.
fn named(map: &Map<String, Value>) -> Option<(&Value, &Value)> {
    let one = |names: &[&str]| names.iter().find_map(|name| map.get(*name));
    Some((one(&["label", "letter", "key", "id"])?, one(&["text", "content", "value"])?))
}

/// The letter of a place.
fn place(at: usize) -> Option<char> {
    u8::try_from(at).ok().filter(|at| usize::from(*at) < MAX_OPTIONS).map(|at| char::from(b'A' + at))
}

/// The options of one text as a list, with their labels: "A) 5 B) 6", "a ) 5 , b ) 6"; without labels the lines of it. Null where it has
/// not at least two.
fn labelled_parts(text: &str) -> Value {
    let text = strip(text);
    for small in [false, true] {
        let mut starts = Vec::new();
        let mut from = 0;
        let letter =
            |at: usize| place(at).map(|letter| if small { letter.to_ascii_lowercase() } else { letter });
        while let Some(start) = letter(starts.len()).and_then(|letter| label_at(text, from, letter)) {
            starts.push(start);
            from = text.ceil_char_boundary(start + 2);
        }
        if starts.first() == Some(&0) && starts.len() > 1 {
            let ends = starts.iter().skip(1).copied().chain([text.len()]);
            let parts = starts.iter().zip(ends).map(|(start, end)| strip(&text[*start..end]));
            return parts.map(|part| Value::from(part.trim_end_matches([',', ';', ' ']))).collect();
        }
    }
    let lines: Vec<Value> =
        text.lines().map(strip).filter(|line| !line.is_empty()).map(Value::from).collect();
    if lines.len() > 1 { Value::Array(lines) } else { Value::Null }
}

/// What stands behind the letter of an option in its label.
const LABELS: [char; 6] = [')', '.', ':', '、', '．', '：'];

/// Where the label with a letter begins, as a word of its own.
fn label_at(text: &str, from: usize, letter: char) -> Option<usize> {
    text.get(from..)?.match_indices(letter).map(|(at, _)| from + at).find_map(|at| {
        let start = if text[..at].ends_with('(') { at - 1 } else { at };
        let behind = &text[at + 1..];
        let marked = behind.starts_with(LABELS) || behind.starts_with(" )");
        let alone = start == 0
            || text[..start].ends_with(|before: char| is_space(before) || ",;，；".contains(before));
        (marked && alone).then_some(start)
    })
}

/// The text behind the label that a text brings itself, where that is the letter of its place: "A. red", "(A) red", "[a] red".
fn unlabelled(at: usize, text: &Value) -> Option<&str> {
    let text = strip(text.as_str()?);
    let label = place(at)?;
    let inner = text.strip_prefix(['(', '[']).unwrap_or(text);
    let rest = inner.strip_prefix([label, label.to_ascii_lowercase()])?;
    let rest = rest.strip_prefix(' ').filter(|rest| rest.starts_with(')')).unwrap_or(rest);
    let closed = rest.strip_prefix(']').filter(|_| text.starts_with('['));
    closed.or_else(|| rest.strip_prefix(LABELS)).map(strip)
}

/// A label, which may be a number.
fn written(label: &Value) -> String {
    label.as_str().map_or_else(|| label.to_string(), str::to_owned)
}

/// An option; none where its text is null, as data sets with columns for all letters have it.
fn option(label: &str, text: &Value) -> Result<Option<ChoiceOption>, &'static str> {
    let text = match text {
        Value::Null => return Ok(None),
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => text.to_string(),
        Value::Array(_) | Value::Object(_) => return Err("An option of the question is no text."),
    };
    if text.len() > MAX_LENGTH {
        return Err("An option of the question is longer than 4 KiB.");
    }
    let bare = strip(label).trim_matches(['(', ')', '[', ']', '.', ':', ' ']);
    let words = ["option", "Option", "choice", "Choice", "op"];
    let bare = words
        .iter()
        .find_map(|word| bare.strip_prefix(word))
        .map_or(bare, |rest| rest.trim_start_matches(['_', '-', ' ']));
    let letter = single(bare).filter(char::is_ascii_alphanumeric);
    let letter = letter.ok_or("The options of the question are not named by letters or digits.")?;
    let marks = |char: char| is_space(char) || "$.*_`\"'".contains(char);
    let written = text;
    let (bare, text) = (normal(&plain(&written).trim_matches(marks).replace('’', "'")), normal(&written));
    let bare = if bare == text { String::new() } else { bare };
    Ok(Some(ChoiceOption { letter: letter.to_ascii_uppercase(), text, bare, written }))
}

/// The letter that numbers an option: a Latin one in either case, or one of the alphabets that data sets number options in.
fn letter(char: char) -> Option<char> {
    match char {
        'a'..='z' | 'A'..='Z' => Some(char.to_ascii_uppercase()),
        'أ' | 'ا' | 'অ' | 'ক' => Some('A'),
        'ب' | 'ব' | 'খ' => Some('B'),
        'ج' | 'ড' | 'গ' => Some('C'),
        'د' | 'ঢ' | 'ঘ' => Some('D'),
        _ => None,
    }
}

/// The only character of a text.
pub(super) fn single(text: &str) -> Option<char> {
    let mut chars = text.chars();
    chars.next().filter(|_| chars.next().is_none())
}

/// A text in lower case, with single spaces between its words.
pub(super) fn normal(text: &str) -> String {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split(is_space).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// Commands that only set their argument in another face.
const FACES: &[&str] = &[
    "\\text",
    "\\textbf",
    "\\textit",
    "\\texttt",
    "\\textrm",
    "\\textsf",
    "\\textnormal",
    "\\mathbf",
    "\\mathrm",
    "\\mathit",
    "\\mathsf",
    "\\mathtt",
    "\\mathbb",
    "\\mathcal",
    "\\boldsymbol",
    "\\bm",
    "\\bf",
    "\\rm",
    "\\mbox",
    "\\emph",
    "\\underline",
    "\\operatorname",
    "\\displaystyle",
    "\\boxed",
    "\\fbox",
];

/// An answer in one line, in plain letters: full-width ones made usual, commands that only set the face left out with their
/// braces, and spaces of LaTeX made usual.
pub(super) fn plain(payload: &str) -> Cow<'_, str> {
    let payload = strip(payload);
    let text: Cow<'_, str> =
        if payload.is_ascii() { Cow::Borrowed(payload) } else { Cow::Owned(payload.nfkc().collect()) };
    if !text.contains(['\\', '~']) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = &*text;
    // Of each open brace, whether it belongs to a command that is left out.
    let (mut open, mut face) = (Vec::new(), false);
    while let Some(at) = rest.find(['\\', '~', '{', '}']) {
        out.push_str(&rest[..at]);
        face &= rest[..at].trim_matches(is_space).is_empty();
        let char = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        match char {
            b'~' => out.push(' '),
            b'{' => {
                // A letter alone stays in its braces, which set it off from the words around it.
                let inner =
                    first(rest, NEAR).split('}').next().map_or("", |inner| inner.trim_matches(is_mark));
                let hidden = std::mem::take(&mut face) && single(inner).is_none();
                if !hidden {
                    out.push('{');
                }
                open.push(hidden);
            }
            b'}' => {
                if open.pop() != Some(true) {
                    out.push('}');
                }
            }
            _ => {
                let name = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
                let command = &rest[..name];
                face = FACES.iter().any(|known| &known[1..] == command);
                match command {
                    // Spaces and the delimiters of formulas; `\$` and `\&` are marks like others.
                    "" => {
                        let next = rest.chars().next().filter(|next| " ,;:!()[]\\".contains(*next));
                        rest = &rest[next.map_or(0, char::len_utf8)..];
                        out.push(' ');
                    }
                    "quad" | "qquad" => out.push(' '),
                    _ if face => {}
                    _ => {
                        out.push('\\');
                        out.push_str(command);
                    }
                }
                rest = &rest[name..];
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Marks that may stand around an answer and say nothing.
pub(super) fn is_mark(char: char) -> bool {
    is_space(char) || "()[]{}<>*_`$\"'“”‘’«».,;:!。，（）【】".contains(char)
}

/// The beginning of a text, of at most so many bytes.
pub(super) fn first(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// The end of a text, of at most so many bytes.
pub(super) fn last(text: &str, most: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(most))..]
}

/// Whether a word is one of several, whatever its case.
pub(super) fn is_one_of(word: &str, words: &str) -> bool {
    words.split(' ').any(|known| word.eq_ignore_ascii_case(known))
}

/// The last word of what comes before a letter, with its marks.
pub(super) fn last_word(before: &str) -> Option<&str> {
    before.trim_end_matches(is_space).rsplit(is_space).next().filter(|word| !word.is_empty())
}

/// Whether one normalised text is the other, or a whole-word part of it.
pub(super) fn matches(text: &str, option: &str) -> bool {
    if text.is_empty() || option.is_empty() {
        return false;
    }
    let (long, short) = if text.len() >= option.len() { (text, option) } else { (option, text) };
    memchr::memmem::find_iter(long.as_bytes(), short.as_bytes())
        .any(|at| is_word_edge(long, at) && is_word_edge(long, at + short.len()))
}

/// Whether a place in a text is not inside a word.
pub(super) fn is_word_edge(text: &str, at: usize) -> bool {
    let Some((before, after)) = text.split_at_checked(at) else { return false };
    let inner = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
    !(inner(before.chars().next_back()) && inner(after.chars().next()))
}

/// Whether the option's text at a place of a text is no part of a longer word, number or formula.
pub(super) fn stands_alone(text: &str, at: usize, option: &str) -> bool {
    let end = at + option.len();
    if !is_word_edge(text, at) || !is_word_edge(text, end) {
        return false;
    }
    let digit = |char: Option<char>| char.is_some_and(|char| char.is_ascii_digit());
    let before = if digit(option.chars().next()) { &text[..at] } else { "" };
    let after = if digit(option.chars().next_back()) { &text[end..] } else { "" };
    is_number_edge(before, after)
}

/// Whether a number between two parts is whole: no sign, no more digits, and no formula around it.
pub(super) fn is_number_edge(before: &str, after: &str) -> bool {
    let mut previous = before.chars().rev();
    let glued = match previous.next() {
        Some('-' | '−' | '.' | '^' | '_' | '/' | '\\') => true,
        Some(',') => previous.next().is_some_and(|char| char.is_ascii_digit()),
        // The argument of a command.
        Some('{') => previous.next().is_some_and(|char| char.is_alphanumeric() || "}^_".contains(char)),
        _ => "+*/×·".contains(before.trim_end_matches(is_space).chars().next_back().unwrap_or(' ')),
    };
    let mut next = after.chars();
    let continued = match next.next() {
        Some('.' | ',') => next.next().is_some_and(|char| char.is_ascii_digit()),
        Some('^') => !after.trim_start_matches(['^', '{']).starts_with("\\circ"),
        Some('/' | '_' | '\\') => true,
        _ => "+*/×·".contains(after.trim_start_matches(is_space).chars().next().unwrap_or(' ')),
    };
    !glued && !continued
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn letters(given: Value) -> Result<String, &'static str> {
        let options = ChoiceOptions::read(&given).and_then(ChoiceOptions::checked)?;
        Ok(options.0.iter().map(|option| format!("{}={} ", option.letter, option.text)).collect())
    }

    #[test]
    fn data_sets_write_options_in_many_ways() {
        for given in [
            json!([{"A": "Red"}, {"b": " blue  sky"}, {"C": null}]),
            json!({"A": "red", "B": "Blue sky"}),
            json!(["red", "blue sky"]),
            json!({"label": ["A", "B"], "text": ["red", "blue\tsky"]}),
            json!([{"label": "A", "text": "red"}, {"label": "B", "text": "blue sky"}]),
            json!(["A. red", "B. blue sky"]),
            json!(["(A) red", "(B) blue sky"]),
            json!("[\"red\", \"blue sky\"]"),
            json!(["A)red", "B)Blue sky"]),
            json!("A) red B) blue sky"),
            json!("(A) red, (B) blue sky"),
            json!("A. red\nB. blue sky"),
            json!("a ) red , b ) blue sky"),
            json!("red\nBlue sky"),
            json!("['red', 'blue sky']"),
            json!(["[A] red", "[B] blue sky"]),
            json!(["a) red", "b) blue sky"]),
            json!([["A", "red"], ["B", "blue sky"]]),
            json!({"option_a": "red", "option_b": "blue sky"}),
            json!({"A.": "red", "optionB": "blue sky"}),
        ] {
            assert_eq!(letters(given.clone()).as_deref(), Ok("A=red B=blue sky "), "{given}");
        }
        assert_eq!(letters(json!({"label": [1, "2"], "text": ["x", "y"]})).as_deref(), Ok("1=x 2=y "));
        let columns = |extra: Value| {
            ChoiceOptions::in_columns(extra.as_object().unwrap()).map(|options| options.0.len())
        };
        assert_eq!(columns(json!({"A": "red", "B": 2, "C": "", "D": null, "answer": "A"})), Ok(3));
        assert_eq!(columns(json!({"opa": "red", "opb": "blue", "cop": 1})), Ok(2));
        assert_eq!(columns(json!({"A": "red", "b": "blue"})), Ok(0));
        assert_eq!(letters(json!(["A. red", "blue"])).as_deref(), Ok("A=a. red B=blue "));
        let uneven = json!({"label": ["A", "B"], "text": ["x"]});
        for given in [
            uneven,
            json!("AB"),
            json!({"10": "a"}),
            json!([["a"]]),
            json!({"first": "a"}),
            json!([{"A": "x"}, {"a": "y"}]),
        ] {
            assert!(letters(given.clone()).is_err(), "{given}");
        }
    }
}
