//! Words, sentences and paragraphs as a reader counts them: what checks with corrected semantics look at.
//!
//! `don't`, `3.14`, `well-known` and `e.g.` are one word each, a dash alone is none. A sentence ends at a full stop, a
//! question mark or an exclamation mark of any script, but not at an abbreviation, an initial or a decimal point.

use super::emoji::is_emoji;
use plaudit_text::{is_alnum, is_space, split, strip};
use std::sync::OnceLock;

/// Part of a word: letters, numbers, and the marks that belong to the letter before them.
pub fn is_word_part(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric();
    }
    // A bit for each character of the first plane, made when first asked: looking one up in three tables takes 50 ns.
    static FIRST_PLANE: OnceLock<Vec<u64>> = OnceLock::new();
    let search = |c: char| c.is_alphanumeric() || is_alnum(c) || is_mark(c);
    let bits = FIRST_PLANE.get_or_init(|| {
        let bit = |code: u32| u64::from(char::from_u32(code).is_some_and(search)) << (code % 64);
        (0..1 << 10).map(|word| (word * 64..word * 64 + 64).fold(0, |bits, code| bits | bit(code))).collect()
    });
    let code = u32::from(c);
    bits.get(code as usize / 64).map_or_else(|| search(c), |bits| bits >> (code % 64) & 1 == 1)
}

/// Combining marks that are no letters by themselves, and joiners inside words.
pub fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6dc}' | '\u{93c}' | '\u{94d}' | '\u{9bc}' | '\u{9cd}'
        | '\u{a3c}' | '\u{a4d}' | '\u{abc}' | '\u{acd}' | '\u{b4d}' | '\u{bcd}' | '\u{c4d}' | '\u{ccd}' | '\u{d4d}'
        | '\u{e31}' | '\u{e34}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{200c}' | '\u{200d}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// A letter or a number by itself. The joiners inside an emoji of several people are marks, and make no word.
fn is_letter(c: char) -> bool {
    is_word_part(c) && !is_mark(c)
}

/// A character of a script that writes words without spaces between them.
pub fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Dashes that stand between words.
fn is_dash(c: char) -> bool {
    matches!(c, '\u{2012}'..='\u{2015}' | '\u{2e3a}' | '\u{2e3b}')
}

/// Marks of Chinese and Japanese that part words, with no space after them.
pub fn is_wide_mark(c: char) -> bool {
    matches!(c, '，' | '。' | '、' | '；' | '：' | '！' | '？')
}

/// Whether a comma or a semicolon parts words without a space: in `a,b`, but not in `1,000`.
fn parts_words(text: &str, at: usize, mark: char) -> bool {
    let digits = |before: Option<char>, after: Option<char>| {
        before.is_some_and(char::is_numeric) && after.is_some_and(char::is_numeric)
    };
    matches!(mark, ',' | ';')
        && !digits(text[..at].chars().next_back(), text[at + mark.len_utf8()..].chars().next())
}

/// The words of a text, without the marks around them.
pub fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for piece in split(text) {
        if piece.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            found.push(piece);
            continue;
        }
        if piece.is_ascii()
            && memchr::memmem::find(piece.as_bytes(), b"--").is_none()
            && memchr::memchr2(b',', b';', &piece.as_bytes()[..piece.len() - 1]).is_none()
            && !piece.contains("...")
        {
            found.extend(Some(bare(piece)).filter(|word| !word.is_empty()));
            continue;
        }
        let mut rest = piece;
        while !rest.is_empty() {
            // Long dashes, two hyphens, an ellipsis, commas and full-width marks between letters part words.
            let cut = rest.char_indices().find(|&(at, c)| {
                is_dash(c)
                    || c == '…'
                    || is_wide_mark(c)
                    || rest[at..].starts_with("--")
                    || rest[at..].starts_with("...")
                    || parts_words(rest, at, c)
            });
            let (head, tail) = match cut {
                Some((at, c)) => (&rest[..at], &rest[at + c.len_utf8()..]),
                None => (rest, ""),
            };
            found.extend(Some(bare(head)).filter(|word| !word.is_empty()));
            rest = tail;
        }
    }
    found
}

/// A word without the marks around it; nothing where there is neither a letter nor a number.
pub fn bare(word: &str) -> &str {
    if word.is_ascii() {
        return word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    }
    let word = word.trim_start_matches(|c: char| !is_letter(c));
    word.trim_end_matches(|c: char| !is_word_part(c) || matches!(c, '\u{200c}' | '\u{200d}'))
}

/// Where a phrase stands in a text, without regard to case, as a phrase of its own: no letter or number goes on at its
/// ends. Text of scripts without spaces has no such ends. Both are to be in folded case.
pub fn find_phrase<'t>(text: &'t str, phrase: &'t str) -> impl Iterator<Item = usize> + 't {
    let joins = |inside: Option<char>, outside: Option<char>| match (inside, outside) {
        (Some(inside), Some(outside)) => {
            is_word_part(inside) && is_word_part(outside) && !(is_unspaced(inside) || is_unspaced(outside))
        }
        _ => false,
    };
    let (first, last) = (phrase.chars().next(), phrase.chars().next_back());
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let at = from + memchr::memmem::find(text.as_bytes().get(from..)?, phrase.as_bytes())?;
            let end = at + phrase.len();
            let alone =
                !joins(first, text[..at].chars().next_back()) && !joins(last, text[end..].chars().next());
            from = if alone && end > at {
                end
            } else {
                at + text[at..].chars().next().map_or(1, char::len_utf8)
            };
            if alone {
                return Some(at);
            }
        }
    })
}

/// The sentences of a text, trimmed. A blank line ends one as well, and marks alone are none.
pub fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let has_capitals = text.chars().any(char::is_uppercase);
    for paragraph in paragraphs(text) {
        let (mut start, mut seen) = (0, 0);
        let mut ahead = Ahead { text: paragraph, has_capitals, at: 0, first: None };
        let mut consider = |at: usize, c: char| {
            if at < seen {
                return;
            }
            let end = sentence_end(&mut ahead, start, at, c);
            seen = at + run_of_marks(&paragraph[at..]);
            if let Some(end) = end {
                found.push(strip(&paragraph[start..end]));
                (start, seen) = (end, end);
            }
        };
        if paragraph.is_ascii() {
            let bytes = paragraph.as_bytes();
            memchr::memchr3_iter(b'.', b'!', b'?', bytes).for_each(|at| consider(at, char::from(bytes[at])));
        } else {
            let marks = paragraph.char_indices().filter(|(_, c)| MARKS.contains(c));
            marks.for_each(|(at, c)| consider(at, c));
        }
        found.extend(Some(strip(&paragraph[start..])).filter(|rest| rest.chars().any(is_letter)));
    }
    found.retain(|sentence: &&str| sentence.chars().any(|c| is_letter(c) || is_emoji(c)));
    found
}

/// Marks that end a sentence.
const MARKS: [char; 11] = ['.', '!', '?', '…', '。', '！', '？', '｡', '؟', '۔', '।'];

fn run_of_marks(text: &str) -> usize {
    text.len() - text.trim_start_matches(MARKS).len()
}

/// Finds the first letter or number from a place on, each time from a later place.
struct Ahead<'a> {
    text: &'a str,
    /// Whether sentences begin with capitals, so that a small letter goes on with one.
    has_capitals: bool,
    /// Where it was found last, or the end.
    at: usize,
    first: Option<char>,
}

impl Ahead<'_> {
    fn first(&mut self, from: usize) -> Option<char> {
        if self.at < from || (self.at == 0 && self.first.is_none()) {
            let found = self.text[from..].char_indices().find(|(_, c)| is_letter(*c));
            (self.at, self.first) = found.map_or((usize::MAX, None), |(at, c)| (from + at, Some(c)));
        }
        self.first
    }
}

/// Where the sentence ends that this mark ends, closing quotes and brackets included.
fn sentence_end(ahead: &mut Ahead<'_>, start: usize, at: usize, mark: char) -> Option<usize> {
    let text = ahead.text;
    // Most: a word in small letters, too long for a short form, the mark, a space and a capital.
    if let ([.., a, b, c, d, e, f, g], [b' ', b'A'..=b'Z', ..]) =
        (&text.as_bytes()[start..at], &text.as_bytes()[at + mark.len_utf8()..])
        && [a, b, c, d, e, f, g].iter().all(|byte| byte.is_ascii_lowercase())
    {
        return Some(at + mark.len_utf8());
    }
    let rest = &text[at..];
    // A space directly after the mark: there is no other mark, and nothing that closes.
    let alone = rest.as_bytes().get(mark.len_utf8()) == Some(&b' ');
    let (marks, run) = rest.split_at(if alone { mark.len_utf8() } else { run_of_marks(rest) });
    let after = if alone {
        run
    } else {
        run.trim_start_matches(['"', '\'', ')', ']', '}', '”', '’', '»', '」', '』', '*', '_', '`'])
    };
    let end = text.len() - after.len();
    let next = after.chars().next();
    // Full-width marks need no space after them.
    if matches!(mark, '。' | '！' | '？' | '｡' | '।') || next.is_none() {
        return Some(end);
    }
    let spaced = next.is_some_and(is_space);
    let first = ahead.first(end);
    let lower = first.is_some_and(char::is_lowercase);
    if !spaced {
        // `ended.The`: a small letter, then the stop, then a capital. Not `3.14`, `example.com`, `U.S.A`.
        let before = text[..at].chars().next_back();
        let runs_on = marks.chars().count() == 1
            && after.len() == run.len()
            && before.is_some_and(char::is_lowercase)
            && next.is_some_and(char::is_uppercase)
            && after.chars().nth(1).is_some_and(|c| c.is_lowercase() || is_space(c));
        let joined = next.is_some_and(is_unspaced);
        return (runs_on || joined).then_some(end);
    }
    if lower && (ahead.has_capitals || marks.contains("..") || marks.contains('…') || after.len() < run.len())
    {
        return None;
    }
    if marks == "." && after.len() == run.len() && is_abbreviated(&text[start..at], first) {
        return None;
    }
    Some(end)
}

/// Whether the word before a full stop is shortened, so that the full stop ends no sentence; `next` begins the next word.
fn is_abbreviated(before: &str, next: Option<char>) -> bool {
    let word = before.rsplit(is_space).next().map_or("", |word| word);
    let word = word.trim_start_matches(|c: char| !is_word_part(c));
    if word.is_empty() {
        return false;
    }
    let mut chars = word.chars();
    let single = chars.next().filter(|_| chars.as_str().is_empty());
    if single.is_some_and(|c| c.is_alphabetic() && c.is_uppercase() && c != 'I') {
        return true;
    }
    // Numbers are not shortened, and the longest table entry has six letters.
    if word.bytes().all(|byte| byte.is_ascii_digit()) || (word.len() > 6 && !word.contains('.')) {
        return false;
    }
    let lower = word.to_lowercase();
    if next.is_some_and(|c| c.is_ascii_digit()) && NUMBERED.binary_search(&lower.as_str()).is_ok() {
        return true;
    }
    if TITLES.binary_search(&lower.as_str()).is_ok() {
        return true;
    }
    // Initials such as `J.K` and Latin such as `e.g`, which are read on.
    matches!(lower.as_str(), "e.g" | "i.e" | "cf" | "viz" | "ph.d" | "u.s" | "u.k" | "u.n" | "d.c")
        || (lower.len() > 2
            && lower.split('.').all(|part| part.chars().count() == 1)
            && !matches!(lower.as_str(), "a.m" | "p.m"))
}

/// Shortened words that a name follows, sorted.
static TITLES: &[&str] = &[
    "adm", "approx", "capt", "col", "cpt", "dr", "fr", "gen", "gov", "hon", "lt", "maj", "messrs", "mr",
    "mrs", "ms", "mt", "prof", "rep", "rev", "sen", "sgt", "st", "vs",
];

/// Shortened words that a number follows, sorted.
static NUMBERED: &[&str] = &["art", "ch", "eq", "fig", "no", "nos", "nr", "p", "pp", "sec", "vol"];

/// Paragraphs between blank lines, none of them blank.
pub fn paragraphs(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start: Option<usize> = None;
    let mut end = 0;
    let mut from = 0;
    for line in text.split_inclusive('\n') {
        if line.chars().all(is_space) {
            if let Some(start) = start.take() {
                found.push(strip(&text[start..end]));
            }
        } else {
            start.get_or_insert(from);
            end = from + line.len();
        }
        from += line.len();
    }
    if let Some(start) = start {
        found.push(strip(&text[start..end]));
    }
    found
}

/// The pieces between markdown dividers: three stars with white space or an end of the text at both sides, or a line of
/// stars with spaces between them.
pub fn divided(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut from = 0;
    while let Some(at) = memchr::memchr(b'*', &text.as_bytes()[from..]).map(|at| from + at) {
        let rest = &text[at..];
        let length = match rest.starts_with("* * *") {
            true => 5,
            false => rest.bytes().take_while(|byte| *byte == b'*').count(),
        };
        let divider = (length == 3 || length == 5 && rest.starts_with("* *"))
            && text[..at].chars().next_back().is_none_or(is_space)
            && text[at + length..].chars().next().is_none_or(is_space);
        if divider {
            found.push(&text[start..at]);
            start = at + length;
        }
        from = at + length;
    }
    found.push(&text[start..]);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_reader() {
        assert_eq!(
            words("don't (3.14) — well-known, cafe\u{301}; a—b ... **so**"),
            ["don't", "3.14", "well-known", "cafe\u{301}", "a", "b", "so"]
        );
        assert_eq!(words("\"ID\",City,1,000;x 今天，很好。"), ["ID", "City", "1,000", "x", "今天", "很好"]);
        assert_eq!(words("आज सुबह हम नदी के किनारे गए").len(), 7);
        assert_eq!(
            words("a family 👨\u{200d}👩\u{200d}👧 ran ❤\u{fe0f}\u{200d}🔥 home👩\u{200d}👧"),
            ["a", "family", "ran", "home"]
        );
    }

    #[test]
    fn sentences_of_a_reader() {
        assert_eq!(sentences("Use tools, e.g. a hammer, i.e. something heavy. Then rest.").len(), 2);
        assert_eq!(sentences("J. K. Holt wrote it. No. 7 was late.").len(), 2);
        assert_eq!(sentences("The film ended.The crowd left.Nobody spoke.").len(), 3);
        assert_eq!(sentences("今天很好。我们去河边。").len(), 2);
        assert_eq!(sentences("“It rains.” “It pours.” We wait.").len(), 3);
        assert_eq!(sentences("He lives in the U.S. and pays 3.14 at example.com. Really?!").len(), 2);
        assert_eq!(
            sentences("it rains, e.g. at night. then it stops... at last! he asks \"why?\" and leaves.")
                .len(),
            3
        );
        assert_eq!(sentences("It rains. then it stops. !!! We left.").len(), 2);
        assert_eq!(sentences("We ran home. 👨\u{200d}👩\u{200d}👧").len(), 1);
        assert_eq!(sentences("The rain stopped... Then the sun came out. We left.").len(), 3);
    }

    #[test]
    fn phrases_stand_alone() {
        let found = |text: &str, phrase: &str| find_phrase(text, phrase).count();
        assert_eq!(found("a party art", "art"), 1);
        assert_eq!(found("我们散步吧", "散步"), 1);
        assert_eq!(found("use .net and c++.", ".net"), 1);
        assert_eq!(found("i write c every day", "c++"), 0);
    }

    #[test]
    fn dividers() {
        assert_eq!(divided("One ***very*** loud").len(), 1);
        assert_eq!(divided("a\n***\nb\n* * *\nc"), ["a\n", "\nb\n", "\nc"]);
    }

    #[test]
    fn tables_are_sorted() {
        assert!(TITLES.is_sorted() && NUMBERED.is_sorted());
    }
}
