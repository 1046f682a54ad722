//! Sentences by Punkt with NLTK's English parameters, as NLTK 3.9.2 finds them.
//!
//! The method: Kiss and Strunk, *Unsupervised Multilingual Sentence Boundary Detection*, Computational Linguistics 32
//! (2006). A mark that may end a sentence is judged in its context: the word before it and the word after it.
//!
//! The parameters are those that NLTK distributes; `data/README.md` says where they come from.

use plaudit_text::{is_alpha, is_decimal, is_space, is_word, rstrip};
use std::sync::OnceLock;

/// The sentences of a text. White space between them belongs to none.
pub fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut realign = 0;
    let mut before: Option<(usize, usize)> = None;
    slices(text, |start, end| {
        if let Some((first, last)) = before {
            let first = first + realign;
            match closing(text.get(start..end).map_or("", |slice| slice)) {
                Some((length, whole)) => {
                    found.push(slice(text, first, start + length));
                    realign = whole;
                }
                None => {
                    realign = 0;
                    found.extend(Some(slice(text, first, last)).filter(|slice| !slice.is_empty()));
                }
            }
        }
        before = Some((start, end));
    });
    if let Some((first, last)) = before {
        found.extend(Some(slice(text, first + realign, last)).filter(|slice| !slice.is_empty()));
    }
    found
}

/// A slice as Python takes it: nothing where it would end before it begins.
fn slice(text: &str, start: usize, end: usize) -> &str {
    text.get(start..end).map_or("", |slice| slice)
}

/// Quotes and brackets at the start of a slice that close what is before it: their length, and that with the white space
/// after them.
fn closing(slice: &str) -> Option<(usize, usize)> {
    let length = slice.bytes().take_while(|byte| matches!(byte, b'"' | b'\'' | b')' | b']' | b'}')).count();
    let rest = &slice[length..];
    let space = rest.len() - rest.trim_start_matches(is_space).len();
    let closes = length > 0 && (space > 0 || rest.is_empty() || rest.starts_with("--"));
    closes.then_some((length, length + space))
}

/// A mark that may end a sentence.
#[derive(Clone, Copy)]
struct Mark {
    /// Where the mark stands.
    at: usize,
    /// Where the word or mark after it begins.
    next: usize,
}

impl Mark {
    /// Whether white space is between the mark and what follows.
    fn spaced(self) -> bool {
        self.next > self.at + 1
    }

    /// Where the word or mark after it ends.
    fn end(self, text: &str) -> usize {
        if self.spaced() {
            text[self.next..].find(is_space).map_or(text.len(), |end| self.next + end)
        } else {
            self.next + 1
        }
    }
}

/// Hands over the slices between breaks, first to last.
fn slices(text: &str, mut hand_over: impl FnMut(usize, usize)) {
    let mut last_break = 0;
    let mut judge = |word: usize, mark: Mark| {
        let ends = is_plain(text, word, mark)
            || simple(text, word, mark).unwrap_or_else(|| breaks(&text[word..mark.end(text)]));
        if ends {
            hand_over(last_break, mark.at + 1);
            last_break = mark.next;
        }
    };
    // The word before the mark before this one.
    let mut previous: Option<(usize, Mark)> = None;
    let mut from = 0;
    while let Some(mark) = next_mark(text, from) {
        from = mark.at + 1;
        let (word_start, word_end) = previous.map_or((0, 0), |(start, mark)| (start, mark.at));
        // A space directly after the last word counts as none.
        let space =
            text.as_bytes()[word_end..mark.at].iter().rposition(|byte| matches!(byte, b' ' | b'\t'..=b'\r'));
        let start = match space {
            Some(space) if space > 0 => word_end + space + 1,
            _ => word_start,
        };
        if let Some((word, before)) = previous
            && word_end <= start
        {
            judge(word, before);
        }
        previous = Some((start, mark));
    }
    if let Some((word, mark)) = previous {
        judge(word, mark);
    }
    hand_over(last_break, rstrip(text).len());
}

/// Characters that are no part of a word, beside the full stop.
fn is_non_word(byte: u8) -> bool {
    matches!(
        byte,
        b')' | b'"' | b';' | b'}' | b']' | b'*' | b':' | b'@' | b'\'' | b'(' | b'{' | b'[' | b'?' | b'!'
    )
}

/// The next of `.?!` with a mark directly after it, or with white space and a word after it.
fn next_mark(text: &str, from: usize) -> Option<Mark> {
    let bytes = text.as_bytes();
    for at in memchr::memchr3_iter(b'.', b'?', b'!', &bytes[from..]).map(|at| from + at) {
        let next = match bytes.get(at + 1..) {
            Some([b' ', next, ..]) if next.is_ascii_graphic() => return Some(Mark { at, next: at + 2 }),
            Some([next, ..]) => *next,
            _ => break,
        };
        if is_non_word(next) {
            return Some(Mark { at, next: at + 1 });
        }
        if next.is_ascii_alphanumeric() {
            continue;
        }
        let rest = &text[at + 1..];
        let word = rest.trim_start_matches(is_space);
        if word.is_empty() {
            break;
        }
        if word.len() < rest.len() {
            return Some(Mark { at, next: text.len() - word.len() });
        }
    }
    None
}

/// Whether a sentence ends within this context, before its last token.
fn breaks(context: &str) -> bool {
    let mut last: Option<Token<'_>> = None;
    for line in context.split('\n') {
        let mut rest = line;
        while let Some(token) = next_token(&mut rest) {
            let token = Token::new(token);
            if let Some(mut before) = last.replace(token) {
                reconsider(&mut before, &token);
                if before.breaks {
                    return true;
                }
            }
        }
    }
    false
}

/// Whether this is the end of a sentence that most are: small letters that are no abbreviation, the mark, white space and
/// a letter. No collocation begins with two letters or more, and no initial is that long.
fn is_plain(text: &str, word: usize, mark: Mark) -> bool {
    let bytes = text.as_bytes();
    let letters = &bytes[word..mark.at];
    letters.len() > 1
        && bytes[mark.next].is_ascii_alphabetic()
        && mark.spaced()
        && letters.iter().all(u8::is_ascii_lowercase)
        && (bytes[mark.at] != b'.' || !is_known_abbreviation(letters))
}

/// The answer for a word of ASCII letters and numbers before a full stop, and a word after white space, where these two
/// tokens decide.
fn simple(text: &str, word: usize, mark: Mark) -> Option<bool> {
    let before = &text[word..mark.at];
    let plain = !before.is_empty() && before.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !plain || !mark.spaced() || text.as_bytes()[mark.at] != b'.' {
        return None;
    }
    let mut rest = &text[mark.next..mark.end(text)];
    let next = Token::new(next_token(&mut rest)?);
    let mut token = Token::new(&text[word..=mark.at]);
    reconsider(&mut token, &next);
    // Where the first does not end a sentence the second may, if the word after it has a third.
    (token.breaks || rest.is_empty()).then_some(token.breaks)
}

/// Where the abbreviations begin that begin with a byte of ASCII.
static BY_FIRST: [u8; 129] = {
    let mut starts = [0; 129];
    let (mut byte, mut at) = (0, 0);
    while byte < 129 {
        while at < ABBREVIATIONS.len() && (ABBREVIATIONS[at].as_bytes()[0] as usize) < byte {
            at += 1;
        }
        starts[byte] = at as u8;
        byte += 1;
    }
    starts
};

/// Whether a word in lower case is an abbreviation.
fn is_known_abbreviation(word: &[u8]) -> bool {
    let Some(first) = word.first().map(|byte| usize::from(*byte)).filter(|first| *first < 128) else {
        return false;
    };
    let (from, to) = (usize::from(BY_FIRST[first]), usize::from(BY_FIRST[first + 1]));
    ABBREVIATIONS[from..to].iter().any(|entry| entry.as_bytes() == word)
}

/// A token with what is known of it.
#[derive(Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    breaks: bool,
    abbreviation: bool,
    ellipsis: bool,
}

impl<'a> Token<'a> {
    fn new(text: &'a str) -> Self {
        let mut token = Self { text, breaks: false, abbreviation: false, ellipsis: false };
        if matches!(text, "." | "?" | "!") {
            token.breaks = true;
        } else if text.len() > 1 && text.bytes().all(|byte| byte == b'.') {
            token.ellipsis = true;
        } else if text.ends_with('.') && !text.ends_with("..") {
            token.abbreviation = is_abbreviation(&text[..text.len() - 1]);
            token.breaks = !token.abbreviation;
        }
        token
    }

    fn first(&self) -> Option<char> {
        self.text.chars().next()
    }

    /// Upper case as `str.isupper` has it, of one character.
    fn first_upper(&self) -> bool {
        self.first().is_some_and(char::is_uppercase)
    }

    fn first_lower(&self) -> bool {
        self.first().is_some_and(char::is_lowercase)
    }

    fn is_initial(&self) -> bool {
        let mut chars = self.text.chars();
        chars.next().is_some_and(is_letter) && chars.as_str() == "."
    }

    /// Hands over the type: lower case, one name for all numbers, and without its full stop where that is asked for.
    fn with_kind<R>(&self, without_stop: bool, take: impl FnOnce(&str) -> R) -> R {
        if is_number(self.text) {
            return take(NUMBER);
        }
        with_lower(self.text, |kind| take(if without_stop { without_period(kind) } else { kind }))
    }
}

/// Word characters that are no digits; the underscore is one.
fn is_letter(c: char) -> bool {
    is_alpha(c) || (is_word(c) && !is_decimal(c))
}

fn without_period(kind: &str) -> &str {
    if kind.len() > 1 { kind.strip_suffix('.').map_or(kind, |kind| kind) } else { kind }
}

fn is_number(text: &str) -> bool {
    let rest = text.strip_prefix('-').map_or(text, |rest| rest);
    let mut chars = rest.chars();
    let mut first = chars.next();
    if matches!(first, Some('.' | ',')) {
        first = chars.next();
    }
    first.is_some_and(is_decimal) && chars.all(|c| is_decimal(c) || matches!(c, ',' | '.' | '-'))
}

fn is_abbreviation(word: &str) -> bool {
    with_lower(word, |word| {
        let last = memchr::memrchr(b'-', word.as_bytes()).map_or(0, |at| at + 1);
        is_known_abbreviation(word.as_bytes())
            || (last > 0 && is_known_abbreviation(&word.as_bytes()[last..]))
    })
}

/// Hands over a text in lower case, most of which are so short that nothing need be allocated.
fn with_lower<R>(text: &str, take: impl FnOnce(&str) -> R) -> R {
    let mut buffer = [0; 24];
    if text.is_ascii()
        && let Some(buffer) = buffer.get_mut(..text.len())
    {
        buffer.copy_from_slice(text.as_bytes());
        buffer.make_ascii_lowercase();
        return take(std::str::from_utf8(buffer).map_or("", |lower| lower));
    }
    take(&plaudit_text::lower(text))
}

/// What follows a token ending in a full stop may change what the token is.
fn reconsider(token: &mut Token<'_>, next: &Token<'_>) {
    if !token.text.ends_with('.') {
        return;
    }
    let (initial, number) = (token.is_initial(), is_number(token.text));
    if !(token.abbreviation || token.ellipsis || initial || number) {
        return;
    }
    // Every collocation begins with a number or with one of four letters, and ends with a word of two letters or more.
    let may_collocate = (number || token.text.starts_with(['b', 'B', 'i', 'I', 'j', 'J', 'o', 'O']))
        && matches!(next.text.as_bytes(), [first, _, ..] if first.is_ascii_alphabetic());
    let collocation = (initial || number)
        && may_collocate
        && token.with_kind(true, |kind| {
            next.with_kind(next.breaks, |next| COLLOCATIONS.binary_search(&(kind, next)).is_ok())
        });
    if collocation {
        token.breaks = false;
        token.abbreviation = true;
        return;
    }
    let flags = next.with_kind(next.breaks, orthography);
    let starts = starts_sentence(next, flags);
    if (token.abbreviation || token.ellipsis)
        && !initial
        && (starts == Some(true) || (next.first_upper() && flags & STARTER != 0))
    {
        token.breaks = true;
        return;
    }
    if initial || number {
        let name = starts.is_none() && initial && next.first_upper() && flags & LOWER == 0;
        if starts == Some(false) || name {
            token.breaks = false;
            token.abbreviation = true;
        }
    }
}

/// Whether a token begins a sentence by the way it is written, or nothing where that is open.
fn starts_sentence(token: &Token<'_>, flags: u8) -> Option<bool> {
    if matches!(token.text, ";" | ":" | "," | "." | "!" | "?") {
        return Some(false);
    }
    if token.first_upper() && flags & LOWER != 0 && flags & MIDDLE_UPPER == 0 {
        return Some(true);
    }
    if token.first_lower() && (flags & UPPER != 0 || flags & BEGIN_LOWER == 0) {
        return Some(false);
    }
    None
}

/// Takes the next token off a line: a run of dashes or dots, a word, or one mark.
fn next_token<'a>(line: &mut &'a str) -> Option<&'a str> {
    let text = line.trim_start_matches(is_space);
    let first = text.chars().next()?;
    let length = match run_of_marks(text) {
        Some(length) => length,
        None if is_word_start(first) => word_length(text, first.len_utf8()),
        None => first.len_utf8(),
    };
    let (token, rest) = text.split_at(length);
    *line = rest;
    Some(token)
}

fn is_word_start(c: char) -> bool {
    !matches!(
        c,
        '(' | '"' | '`' | '{' | '[' | ':' | ';' | '&' | '#' | '*' | '@' | ')' | '}' | ']' | '-' | ','
    )
}

/// Where a word ends that has at least this length.
fn word_length(text: &str, least: usize) -> usize {
    for (at, c) in text[least..].char_indices() {
        let at = least + at;
        let ends = match c {
            ',' => {
                let rest = &text[at + 1..];
                rest.chars().next().is_none_or(|c| is_space(c) || (c.is_ascii() && is_non_word(c as u8)))
                    || begins_run_of_marks(rest)
            }
            '-' | '.' => begins_run_of_marks(&text[at..]),
            c if c.is_ascii() => is_non_word(c as u8) || is_space(c),
            c => is_space(c),
        };
        if ends {
            return at;
        }
    }
    text.len()
}

/// Whether `--`, `..` or `. . .` stands here.
fn begins_run_of_marks(text: &str) -> bool {
    text.starts_with("--") || text.starts_with("..") || spaced_dots(text) >= 5
}

/// The length of the run of dashes or dots that stands here.
fn run_of_marks(text: &str) -> Option<usize> {
    let first = *text.as_bytes().first()?;
    if first != b'-' && first != b'.' {
        return None;
    }
    let run = text.bytes().take_while(|byte| *byte == first).count();
    if run > 1 {
        return Some(run);
    }
    if first == b'-' {
        return None;
    }
    Some(all_spaced_dots(text)).filter(|&length| length > 0)
}

/// The length of `. . .` where three dots with single spaces stand here, and more do not matter.
fn spaced_dots(text: &str) -> usize {
    let mut rest = text;
    for _ in 0..2 {
        let Some(after) = dot_and_space(rest) else { return 0 };
        rest = after;
    }
    if rest.starts_with('.') { text.len() - rest.len() + 1 } else { 0 }
}

/// The length of all dots with single spaces between them, where there are at least three.
fn all_spaced_dots(text: &str) -> usize {
    if spaced_dots(text) == 0 {
        return 0;
    }
    let (mut rest, mut end) = (text, 0);
    while let Some(after) = dot_and_space(rest) {
        end = text.len() - rest.len() + 1;
        rest = after;
    }
    if rest.starts_with('.') { text.len() - rest.len() + 1 } else { end }
}

fn dot_and_space(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('.')?;
    let space = rest.chars().next().filter(|c| is_space(*c))?;
    Some(&rest[space.len_utf8()..])
}

const NUMBER: &str = "##number##";

// How a word was written in the texts that the parameters were learnt from.
const BEGIN_UPPER: u8 = 1 << 1;
const MIDDLE_UPPER: u8 = 1 << 2;
const UNKNOWN_UPPER: u8 = 1 << 3;
const BEGIN_LOWER: u8 = 1 << 4;
const MIDDLE_LOWER: u8 = 1 << 5;
const UNKNOWN_LOWER: u8 = 1 << 6;
/// Not of the file: one of the [`SENTENCE_STARTERS`].
const STARTER: u8 = 1 << 7;
const UPPER: u8 = BEGIN_UPPER | MIDDLE_UPPER | UNKNOWN_UPPER;
const LOWER: u8 = BEGIN_LOWER | MIDDLE_LOWER | UNKNOWN_LOWER;

/// Words and how they were written, sorted by their bytes: `word TAB flags`.
static ORTHOGRAPHY: &str = include_str!("../../data/punkt_orthography.tsv");

/// A hash table over the lines, by the hash of the word: where the line begins, plus one, and in the lowest byte the flags.
/// It is made when it is first asked.
struct Orthography {
    slots: Vec<u32>,
}

impl Orthography {
    /// A power of two above the number of words.
    const SLOTS: usize = 1 << 16;

    fn new() -> Self {
        let mut slots = vec![0; Self::SLOTS];
        let mut start = 0;
        for line in ORTHOGRAPHY.split_inclusive('\n') {
            let (word, flags) = line.trim_end().split_once('\t').map_or(("", ""), |entry| entry);
            let flags = flags.parse().map_or(0, |flags: u8| flags);
            let starter = if SENTENCE_STARTERS.binary_search(&word).is_ok() { STARTER } else { 0 };
            let mut slot = Self::hash(word);
            while slots[slot] != 0 {
                slot = (slot + 1) % Self::SLOTS;
            }
            slots[slot] = (start + 1) << 8 | u32::from(flags | starter);
            start += line.len() as u32;
        }
        Self { slots }
    }

    /// FNV-1a, of which the upper bits are folded in.
    fn hash(word: &str) -> usize {
        let hash = word
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        (hash ^ (hash >> 16)) as usize % Self::SLOTS
    }

    fn flags(&self, word: &str) -> u8 {
        let mut slot = Self::hash(word);
        while self.slots[slot] != 0 {
            let line = &ORTHOGRAPHY.as_bytes()[(self.slots[slot] >> 8) as usize - 1..];
            if line.get(word.len()) == Some(&b'\t') && line.starts_with(word.as_bytes()) {
                return self.slots[slot] as u8;
            }
            slot = (slot + 1) % Self::SLOTS;
        }
        0
    }
}

fn orthography(word: &str) -> u8 {
    static TABLE: OnceLock<Orthography> = OnceLock::new();
    TABLE.get_or_init(Orthography::new).flags(word)
}

/// Abbreviations without their last full stop, sorted.
#[rustfmt::skip]
static ABBREVIATIONS: &[&str] = &[
    ". . ", "a.a", "a.c", "a.d", "a.g", "a.h", "a.m", "a.m.e", "a.s", "a.t", "adm", "ala", "ariz", "aug",
    "ave", "b.f", "b.v", "bros", "c", "c.i.t", "c.o.m.b", "c.v", "calif", "chg", "cie", "co", "col", "colo",
    "conn", "corp", "cos", "ct", "d", "d.c", "d.h", "d.w", "dec", "dr", "e", "e.f", "e.h", "e.l", "e.m", "f",
    "f.g", "f.j", "feb", "fla", "fri", "ft", "g", "g.d", "g.f", "g.k", "ga", "gen", "h", "h.c", "h.f", "h.m",
    "i.m.s", "ill", "inc", "j.b", "j.c", "j.j", "j.k", "j.p", "j.r", "jan", "jr", "k", "kan", "ky", "l",
    "l.a", "l.f", "l.p", "lt", "ltd", "m", "m.b.a", "m.d.c", "m.j", "maj", "messrs", "mg", "mich", "minn",
    "mr", "mrs", "ms", "n", "n.c", "n.d", "n.h", "n.j", "n.m", "n.v", "n.y", "nev", "nov", "oct", "ok",
    "okla", "ore", "p", "p.a.m", "p.m", "pa", "ph.d", "prof", "r", "r.a", "r.h", "r.i", "r.j", "r.k", "r.t",
    "rep", "reps", "s", "s.a", "s.a.y", "s.c", "s.g", "s.p.a", "s.s", "sen", "sep", "sept", "sr", "st", "sw",
    "t", "t.j", "tenn", "tues", "u.k", "u.n", "u.s", "u.s.a", "u.s.s.r", "v", "va", "vs", "vt", "w", "w.c",
    "w.r", "w.va", "w.w", "wash", "wed", "wis", "yr",
];

/// Words that often begin a sentence, sorted.
#[rustfmt::skip]
static SENTENCE_STARTERS: &[&str] = &[
    "according", "although", "among", "both", "but", "despite", "even", "he", "however", "i", "if", "in",
    "indeed", "instead", "it", "many", "meanwhile", "moreover", "most", "nevertheless", "nonetheless", "nor",
    "sales", "separately", "similarly", "since", "so", "some", "the", "there", "these", "they", "this",
    "though", "thus", "under", "when", "while", "yet",
];

/// Pairs that a full stop does not part, sorted.
#[rustfmt::skip]
static COLLOCATIONS: &[(&str, &str)] = &[
    ("##number##", "abreast"), ("##number##", "aes"), ("##number##", "business"), ("##number##", "cbot"),
    ("##number##", "colgate"), ("##number##", "commodities"), ("##number##", "cooper"),
    ("##number##", "corrections"), ("##number##", "credit"), ("##number##", "dividend"),
    ("##number##", "financing"), ("##number##", "genentech"), ("##number##", "henley"),
    ("##number##", "insider"), ("##number##", "international"), ("##number##", "leisure"),
    ("##number##", "letters"), ("##number##", "notable"), ("##number##", "pay-fone"),
    ("##number##", "pegasus"), ("##number##", "pepper"), ("##number##", "review"), ("##number##", "rj"),
    ("##number##", "wedgestone"), ("##number##", "who"), ("##number##", "zimmer"), ("b", "edelman"),
    ("b", "levine"), ("b", "smith"), ("b", "stewart"), ("b", "wigton"), ("i", "magnin"), ("i", "toussie"),
    ("j", "aron"), ("j", "fialka"), ("j", "walter"), ("o", "ludcke"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        assert!(ABBREVIATIONS.is_sorted() && SENTENCE_STARTERS.is_sorted() && COLLOCATIONS.is_sorted());
        let words: Vec<_> = ORTHOGRAPHY.lines().map(|line| line.split_once('\t').unwrap().0).collect();
        assert!(words.is_sorted() && words.len() == 20_366);
        for line in ORTHOGRAPHY.lines() {
            let (word, flags) = line.split_once('\t').unwrap();
            assert_eq!((orthography(word) & !STARTER).to_string(), flags);
        }
        assert!(SENTENCE_STARTERS.iter().all(|word| orthography(word) & STARTER != 0));
        assert_eq!(orthography("no such word"), 0);
    }

    #[test]
    fn closing_marks_are_realigned() {
        assert_eq!(sentences("(It rains.) We wait."), ["(It rains.)", "We wait."]);
        assert_eq!(sentences("\"It rains.\""), ["\"It rains.\""]);
        assert_eq!(
            sentences("\"It rains!\" he said. \"So?\"  Yes."),
            ["\"It rains!\"", "he said.", "\"So?\"", "Yes."]
        );
    }

    #[test]
    fn abbreviations_and_initials() {
        assert_eq!(
            sentences("Dr. Lane met Mr. Okoro at 5 p.m. on Sunday. So?"),
            ["Dr. Lane met Mr. Okoro at 5 p.m. on Sunday.", "So?"]
        );
        assert_eq!(sentences("J. K. Holt wrote it. Bach did."), ["J. K. Holt wrote it.", "Bach did."]);
    }

    #[test]
    fn nothing_is_a_sentence_of_nothing() {
        assert!(sentences("").is_empty() && sentences(" \n").is_empty());
    }
}
