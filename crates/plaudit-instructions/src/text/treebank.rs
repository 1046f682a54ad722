//! Tokens by the rules of NLTK's `NLTKWordTokenizer` 3.9.2 on the sentences of Punkt: NLTK's `word_tokenize`.
//!
//! The rules are substitutions that put spaces around marks, one after the other. Nearly all of them look no further than
//! the next white space, so that a piece between white space can be done on its own. Most pieces are words, or words with
//! marks that always stand alone, and need no substitution at all.

use super::punkt;
use plaudit_text::{is_decimal, is_space, is_word};

/// Two backticks: what stands for an opening quotation mark.
pub const OPENING: &str = "``";
/// Two apostrophes: what stands for a closing quotation mark.
pub const CLOSING: &str = "''";

/// NLTK's `word_tokenize` on a text.
pub fn tokens(text: &str) -> Vec<&str> {
    tokens_of(&punkt::sentences(text))
}

/// The tokens of sentences that Punkt found.
pub fn tokens_of<'a>(sentences: &[&'a str]) -> Vec<&'a str> {
    let length: usize = sentences.iter().map(|sentence| sentence.len()).sum();
    let mut tokens = Vec::with_capacity(length / 4);
    let mut scratch = Scratch::default();
    for sentence in sentences {
        sentence_tokens(sentence, &mut tokens, &mut scratch);
    }
    tokens
}

/// The tokens of one sentence that Punkt found.
pub fn tokens_of_one(sentence: &str) -> Vec<&str> {
    tokens_of(&[sentence])
}

/// What a byte can mean.
const PLAIN: u8 = 0;
const SPACE: u8 = 1;
/// Always a token of its own.
const ALONE: u8 = 2;
const DOT: u8 = 3;
const DASH: u8 = 4;
const COMMA: u8 = 5;
/// Quotes, apostrophes and backticks.
const QUOTE: u8 = 6;
/// The first byte of what may be a quotation mark or white space beyond ASCII.
const WIDE: u8 = 7;

static CLASS: [u8; 256] = {
    let mut table = [PLAIN; 256];
    let mut at = 0;
    while at < 256 {
        table[at] = match at as u8 {
            b' ' | b'\t'..=b'\r' | 0x1c..=0x1f => SPACE,
            b';' | b'@' | b'#' | b'$' | b'%' | b'&' | b'?' | b'!' | b'*' => ALONE,
            b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'<' | b'>' => ALONE,
            b'.' => DOT,
            b'-' => DASH,
            b':' | b',' => COMMA,
            b'"' | b'\'' | b'`' => QUOTE,
            0xc2 | 0xe1..=0xe3 => WIDE,
            _ => PLAIN,
        };
        at += 1;
    }
    table
};

/// A quotation mark beyond ASCII. All of them stand alone.
fn is_wide_quote(c: char) -> bool {
    matches!(c, '«' | '“' | '‘' | '„' | '»' | '”' | '’')
}

/// A piece of a sentence without white space in it, and what is around it.
#[derive(Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    /// Whether the sentence begins here.
    first: bool,
    /// Whether a space, and no other white space, is before it.
    after_space: bool,
    /// Whether the sentence ends here.
    last: bool,
}

fn sentence_tokens<'a>(sentence: &'a str, tokens: &mut Vec<&'a str>, scratch: &mut Scratch) {
    let bytes = sentence.as_bytes();
    let tail = tail(sentence);
    let mut at = 0;
    while at < bytes.len() {
        // Classify the piece that begins here, up to white space.
        let start = at;
        while at < bytes.len() && CLASS[usize::from(bytes[at])] == PLAIN {
            at += 1;
        }
        // Most pieces are plain, with a space or a comma and a space after them.
        match bytes.get(at..) {
            Some([b' ', ..]) if at > start => {
                push(&sentence[start..at], tokens);
                at += 1;
                continue;
            }
            Some([b',', b' ', ..]) if at > start => {
                push(&sentence[start..at], tokens);
                tokens.push(&sentence[at..at + 1]);
                at += 2;
                continue;
            }
            _ => {}
        }
        let (mut marks, mut quotes) = (false, false);
        while at < bytes.len() {
            match CLASS[usize::from(bytes[at])] {
                PLAIN => at += 1,
                SPACE => break,
                QUOTE => {
                    quotes = true;
                    at += 1;
                }
                WIDE => {
                    let Some(c) = sentence[at..].chars().next() else { break };
                    if is_space(c) {
                        break;
                    }
                    marks |= is_wide_quote(c);
                    at += c.len_utf8();
                }
                _ => {
                    marks = true;
                    at += 1;
                }
            }
        }
        let at_tail = tail.is_some_and(|tail| tail < at && start < at);
        if at_tail {
            // From the last full stop on the rules look across white space.
            at = bytes.len();
            quotes |= memchr::memchr3(b'"', b'\'', b'`', &bytes[start..]).is_some();
        }
        if start < at {
            let piece = Piece {
                text: &sentence[start..at],
                first: start == 0,
                after_space: start > 0 && bytes[start - 1] == b' ',
                last: at == bytes.len(),
            };
            if quotes && !marks && !at_tail && apostrophe(piece.text, tokens) {
                // A word with one apostrophe, which is what most quotes are.
            } else if quotes {
                quoted(piece, tokens, scratch);
            } else if marks {
                marked(piece, tail.filter(|_| at_tail).map(|tail| tail - start), tokens);
            } else {
                push(piece.text, tokens);
            }
        } else {
            at += sentence[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
}

/// The full stop that ends a sentence: nothing but closing marks and white space after it, and no full stop before it.
fn tail(sentence: &str) -> Option<usize> {
    let rest = sentence.trim_end_matches(is_space).trim_end_matches(closes);
    let before = rest.strip_suffix('.')?;
    (!before.is_empty() && !before.ends_with('.')).then_some(before.len())
}

/// What may stand between the full stop and the end of a sentence.
fn closes(c: char) -> bool {
    matches!(c, ']' | ')' | '}' | '>' | '"' | '\'' | '»' | '”' | '’' | ' ')
}

/// A piece without quotes, apostrophes and backticks; `stop` is where the full stop of the sentence is.
fn marked<'a>(piece: Piece<'a>, stop: Option<usize>, tokens: &mut Vec<&'a str>) {
    let (text, bytes) = (piece.text, piece.text.as_bytes());
    let (mut start, mut at) = (0, 0);
    // A mark that the rule for `:` and `,` has looked at already.
    let mut taken = usize::MAX;
    let mut cut = |start: &mut usize, from: usize, to: usize| {
        if *start < from {
            push(&text[*start..from], tokens);
        }
        if from < to {
            tokens.push(&text[from..to]);
        }
        *start = to;
    };
    while at < bytes.len() {
        match CLASS[usize::from(bytes[at])] {
            PLAIN | QUOTE => at += 1,
            SPACE => {
                cut(&mut start, at, at);
                at += 1;
                start = at;
            }
            ALONE => {
                cut(&mut start, at, at + 1);
                at += 1;
            }
            DOT => {
                let run = bytes[at..].iter().take_while(|byte| **byte == b'.').count();
                if run > 1 || stop == Some(at) {
                    cut(&mut start, at, at + run);
                }
                at += run;
            }
            DASH => {
                if bytes.get(at + 1) == Some(&b'-') {
                    cut(&mut start, at, at + 2);
                    at += 2;
                } else {
                    at += 1;
                }
            }
            COMMA => {
                let next = text[at + 1..].chars().next();
                let splits = match next {
                    None => true,
                    Some(next) => taken != at && !is_decimal(next),
                };
                // At the end of a piece, but not of the sentence, white space follows, which is no digit.
                if next.is_none() && !piece.last && taken == at {
                    at += 1;
                } else if splits {
                    cut(&mut start, at, at + 1);
                    if taken != at {
                        taken = at + 1;
                    }
                    at += 1;
                } else {
                    at += 1;
                }
            }
            _ => {
                let length = text[at..].chars().next().map_or(1, char::len_utf8);
                let c = text[at..].chars().next();
                if c.is_some_and(is_wide_quote) {
                    cut(&mut start, at, at + length);
                } else if c.is_some_and(is_space) {
                    cut(&mut start, at, at);
                    start = at + length;
                }
                at += length;
            }
        }
    }
    cut(&mut start, bytes.len(), bytes.len());
}

/// Words that are split in two, and where.
static CONTRACTIONS: [(&str, usize); 6] =
    [("cannot", 3), ("gimme", 3), ("gonna", 3), ("gotta", 3), ("lemme", 3), ("wanna", 3)];

/// The same with an apostrophe inside, and at their start after a space.
static WITH_APOSTROPHE: [(&str, usize); 2] = [("d'ye", 1), ("more'n", 4)];
static AFTER_SPACE: [(&str, usize); 2] = [("'tis", 2), ("'twas", 2)];

/// A token, split where it contains `cannot` and the like.
#[inline]
fn push<'a>(token: &'a str, tokens: &mut Vec<&'a str>) {
    // A word of another length, or that ends in another letter, is none of them; other tokens may contain one.
    let bytes = token.as_bytes();
    let whole = match bytes {
        [_, _, _, _, last] => matches!(last, b'a' | b'A' | b'e' | b'E'),
        [_, _, _, _, _, last] => matches!(last, b't' | b'T'),
        _ => false,
    };
    if bytes.len() < 5 || (!whole && bytes.iter().all(u8::is_ascii_alphanumeric)) {
        tokens.push(token);
    } else {
        push_split(token, tokens);
    }
}

fn push_split<'a>(token: &'a str, tokens: &mut Vec<&'a str>) {
    let mut start = 0;
    for run in plaudit_text::runs(token) {
        if run.len() != 5 && run.len() != 6 {
            continue;
        }
        let Some((word, at)) = CONTRACTIONS.iter().find(|(word, _)| run.eq_ignore_ascii_case(word)) else {
            continue;
        };
        let from = run.as_ptr() as usize - token.as_ptr() as usize;
        let to = from + run.len();
        if *word == "wanna" && to != token.len() {
            continue;
        }
        for part in [&token[start..from], &token[from..from + at], &token[from + at..to]] {
            if !part.is_empty() {
                tokens.push(part);
            }
        }
        start = to;
    }
    if start < token.len() {
        tokens.push(&token[start..]);
    }
}

/// A piece of ASCII letters and numbers with one apostrophe, or nothing done where it is anything else.
fn apostrophe<'a>(piece: &'a str, tokens: &mut Vec<&'a str>) -> bool {
    let Some((left, right)) = piece.split_once('\'') else { return false };
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !plain(left) || !plain(right) {
        return false;
    }
    let cut = match right {
        "" => left.len(),
        "s" | "S" | "m" | "M" | "d" | "D" | "ll" | "LL" | "re" | "RE" | "ve" | "VE" => left.len(),
        "t" if left.len() > 1 && left.ends_with('n') => left.len() - 1,
        "T" if left.len() > 1 && left.ends_with('N') => left.len() - 1,
        "t" | "T" => 0,
        _ if right.eq_ignore_ascii_case("n") && left.eq_ignore_ascii_case("more") => left.len(),
        "n" | "N" => 0,
        _ if right.len() == 1 => {
            // Not an ending: the apostrophe stands alone.
            for token in [left, &piece[left.len()..left.len() + 1], right] {
                if !token.is_empty() {
                    push(token, tokens);
                }
            }
            return true;
        }
        _ if left.eq_ignore_ascii_case("d") && right.eq_ignore_ascii_case("ye") => left.len(),
        _ if right.eq_ignore_ascii_case("tis") || right.eq_ignore_ascii_case("twas") => match left {
            "" => 2,
            // After `cannot` and the like a space comes before the apostrophe.
            _ => return false,
        },
        _ => 0,
    };
    for token in [&piece[..cut], &piece[cut..]] {
        if !token.is_empty() {
            push(token, tokens);
        }
    }
    true
}

/// Characters of a piece with where each comes from, and the same after one substitution.
#[derive(Default)]
struct Scratch {
    now: Vec<Item>,
    next: Vec<Item>,
}

/// A character, and where it stands in the piece; `MADE` for those that a rule made.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Item {
    c: char,
    from: u32,
}

const MADE: u32 = u32::MAX;
const GAP: Item = Item { c: ' ', from: MADE };

/// A piece with quotes, apostrophes or backticks: the rules, one after the other.
fn quoted<'a>(piece: Piece<'a>, tokens: &mut Vec<&'a str>, scratch: &mut Scratch) {
    scratch.now.clear();
    // What is around the piece: a space, another white space, or an end of the sentence.
    if !piece.first {
        scratch.now.push(Item { c: if piece.after_space { ' ' } else { '\n' }, from: MADE });
    }
    scratch.now.extend(piece.text.char_indices().map(|(from, c)| Item { c, from: from as u32 }));
    if !piece.last {
        scratch.now.push(GAP);
    }
    let (mut apostrophes, mut double, mut wide, mut marks, mut backticks) =
        (false, false, false, false, false);
    let mut others = false;
    for item in &scratch.now {
        match item.c {
            '\'' => apostrophes = true,
            '"' => double = true,
            '`' => backticks = true,
            c if c.is_ascii() => {
                marks |= c.is_ascii_punctuation();
                others |= !is_space(c);
            }
            c => {
                wide |= is_wide_quote(c);
                others = true;
            }
        }
    }
    // Opening quotes.
    if wide {
        scratch.pad(|c| matches!(c, '«' | '“' | '‘' | '„'));
    }
    if backticks {
        scratch.pad_runs('`', 1, usize::MAX);
    }
    if double && piece.first && scratch.now.first().is_some_and(|item| item.c == '"') {
        scratch.now.splice(0..1, OPENING.chars().map(|c| Item { c, from: MADE }));
    }
    if backticks || double {
        scratch.pad_runs('`', 2, 2);
    }
    if double || apostrophes {
        scratch.open_quotes();
    }
    if apostrophes && others {
        scratch.split_clitics();
    }
    // Marks.
    if marks {
        if piece.last {
            scratch.final_stop();
        }
        scratch.commas();
        scratch.pad_runs('.', 2, usize::MAX);
        scratch.pad(|c| matches!(c, ';' | '@' | '#' | '$' | '%' | '&' | '?' | '!'));
    }
    if apostrophes {
        scratch.apostrophe_before_space();
    }
    if marks {
        scratch.pad(|c| matches!(c, '*' | '[' | ']' | '(' | ')' | '{' | '}' | '<' | '>'));
        scratch.pad_runs('-', 2, 2);
    }
    // Closing quotes.
    scratch.now.push(GAP);
    if wide {
        scratch.pad(|c| matches!(c, '»' | '”' | '’'));
    }
    if apostrophes {
        scratch.pad_runs('\'', 2, 2);
    }
    if double {
        scratch.close_quotes();
    }
    if apostrophes && others {
        scratch.single_space();
        scratch.endings(|rest| match rest {
            ['\'', 's' | 'S' | 'm' | 'M' | 'd' | 'D', ' ', ..] => Some(2),
            ['\'', ' ', ..] => Some(1),
            _ => None,
        });
        scratch.endings(|rest| match rest {
            ['\'', 'l', 'l', ' '] | ['\'', 'L', 'L', ' '] | ['\'', 'r', 'e', ' '] | ['\'', 'R', 'E', ' '] => {
                Some(3)
            }
            ['\'', 'v', 'e', ' '] | ['\'', 'V', 'E', ' '] | ['n', '\'', 't', ' '] | ['N', '\'', 'T', ' '] => {
                Some(3)
            }
            _ => None,
        });
        scratch.contractions();
    }
    scratch.hand_over(piece.text, tokens);
}

/// Whether a word stands here, in upper or lower case.
fn is_at(now: &[Item], at: usize, word: &str) -> bool {
    now.get(at..at + word.len())
        .is_some_and(|items| items.iter().zip(word.chars()).all(|(item, c)| item.c.eq_ignore_ascii_case(&c)))
}

impl Scratch {
    fn swap(&mut self) {
        std::mem::swap(&mut self.now, &mut self.next);
    }

    /// A space before and after each character of a set.
    fn pad(&mut self, set: impl Fn(char) -> bool) {
        if !self.now.iter().any(|item| set(item.c)) {
            return;
        }
        self.next.clear();
        for &item in &self.now {
            if set(item.c) {
                self.next.extend([GAP, item, GAP]);
            } else {
                self.next.push(item);
            }
        }
        self.swap();
    }

    /// A space before and after each run of a character, of at least and at most so many.
    fn pad_runs(&mut self, c: char, least: usize, most: usize) {
        if !self.now.iter().any(|item| item.c == c) {
            return;
        }
        self.next.clear();
        let mut at = 0;
        while at < self.now.len() {
            let run = self.now[at..].iter().take(most).take_while(|item| item.c == c).count();
            if run >= least {
                self.next.push(GAP);
                self.next.extend_from_slice(&self.now[at..at + run]);
                self.next.push(GAP);
                at += run;
            } else {
                self.next.push(self.now[at]);
                at += 1;
            }
        }
        self.swap();
    }

    fn char(&self, at: usize) -> Option<char> {
        self.now.get(at).map(|item| item.c)
    }

    /// A quotation mark after a space or an opening bracket opens.
    fn open_quotes(&mut self) {
        self.next.clear();
        let mut at = 0;
        while at < self.now.len() {
            let item = self.now[at];
            let length = match (self.char(at + 1), self.char(at + 2)) {
                _ if !matches!(item.c, ' ' | '(' | '[' | '{' | '<') => 0,
                (Some('"'), _) => 1,
                (Some('\''), Some('\'')) => 2,
                _ => 0,
            };
            self.next.push(item);
            if length > 0 {
                self.next.push(GAP);
                self.next.extend(OPENING.chars().map(|c| Item { c, from: MADE }));
                self.next.push(GAP);
            }
            at += 1 + length;
        }
        self.swap();
    }

    /// A space after an apostrophe before a single letter that is no ending such as `'s`.
    fn split_clitics(&mut self) {
        self.next.clear();
        let mut at = 0;
        while at < self.now.len() {
            self.next.push(self.now[at]);
            let letter = self.char(at + 1).filter(|c| is_word(*c));
            if self.now[at].c == '\''
                && let Some(letter) = letter
                && !matches!(letter, 'm' | 'M' | 't' | 'T' | 's' | 'S' | 'ſ' | 'd' | 'D' | 'n' | 'N')
                && !self.char(at + 2).is_some_and(is_word)
            {
                self.next.extend([GAP, self.now[at + 1]]);
                at += 1;
            }
            at += 1;
        }
        self.swap();
    }

    /// The full stop that ends the sentence.
    fn final_stop(&mut self) {
        let end = self.now.iter().rposition(|item| !is_space(item.c)).map_or(0, |at| at + 1);
        let Some(at) = self.now[..end].iter().rposition(|item| !closes(item.c)) else { return };
        if at == 0 || self.now[at].c != '.' || self.now[at - 1].c == '.' {
            return;
        }
        self.next.clear();
        self.next.extend_from_slice(&self.now[..at]);
        self.next.extend([GAP, self.now[at], GAP]);
        self.next.extend_from_slice(&self.now[at + 1..]);
        self.next.push(GAP);
        self.swap();
    }

    /// `:` and `,` before anything but a digit.
    fn commas(&mut self) {
        if !self.now.iter().any(|item| matches!(item.c, ':' | ',')) {
            return;
        }
        self.next.clear();
        let mut at = 0;
        while at < self.now.len() {
            let item = self.now[at];
            match self.char(at + 1) {
                Some(c) if matches!(item.c, ':' | ',') && !is_decimal(c) => {
                    self.next.extend([GAP, item, GAP, self.now[at + 1]]);
                    at += 2;
                }
                _ => {
                    self.next.push(item);
                    at += 1;
                }
            }
        }
        if let Some(&item) = self.next.last()
            && matches!(item.c, ':' | ',')
        {
            self.next.pop();
            self.next.extend([GAP, item, GAP]);
        }
        self.swap();
    }

    /// An apostrophe before a space, and not after another.
    fn apostrophe_before_space(&mut self) {
        self.next.clear();
        let mut at = 0;
        while at < self.now.len() {
            self.next.push(self.now[at]);
            if self.now[at].c != '\'' && self.char(at + 1) == Some('\'') && self.char(at + 2) == Some(' ') {
                self.next.extend([GAP, self.now[at + 1], GAP]);
                at += 2;
            }
            at += 1;
        }
        self.swap();
    }

    /// Quotation marks that are left close.
    fn close_quotes(&mut self) {
        self.next.clear();
        for &item in &self.now {
            if item.c == '"' {
                self.next.push(GAP);
                self.next.extend(CLOSING.chars().map(|c| Item { c, from: MADE }));
                self.next.push(GAP);
            } else {
                self.next.push(item);
            }
        }
        self.swap();
    }

    fn single_space(&mut self) {
        self.next.clear();
        for &item in &self.now {
            if !is_space(item.c) {
                self.next.push(item);
            } else if self.next.last().is_none_or(|last| last.c != ' ') {
                self.next.push(GAP);
            }
        }
        self.swap();
    }

    /// A space before an ending that a space follows, where something other than a space or an apostrophe is before it.
    fn endings(&mut self, ending: impl Fn(&[char]) -> Option<usize>) {
        self.next.clear();
        let mut at = 0;
        while at < self.now.len() {
            let item = self.now[at];
            self.next.push(item);
            at += 1;
            if item.c == ' ' || item.c == '\'' {
                continue;
            }
            let mut ahead = ['\0'; 4];
            for (place, found) in ahead.iter_mut().zip(&self.now[at..]) {
                *place = found.c;
            }
            if let Some(length) = ending(&ahead) {
                self.next.push(GAP);
                self.next.extend_from_slice(&self.now[at..at + length]);
                self.next.push(GAP);
                at += length + 1;
            }
        }
        self.swap();
    }

    /// Words that are split in two.
    fn contractions(&mut self) {
        self.split_words(|now, at| {
            let before = at.checked_sub(1).map(|at| now[at].c);
            if before.is_some_and(is_word) {
                return None;
            }
            let words: &'static [(&'static str, usize)] = match now[at].c {
                'd' | 'D' | 'm' | 'M' => &WITH_APOSTROPHE,
                'c' | 'C' | 'g' | 'G' | 'l' | 'L' | 'w' | 'W' => &CONTRACTIONS,
                _ => return None,
            };
            words.iter().find(|(word, _)| {
                let after = now.get(at + word.len()).map(|item| item.c);
                is_at(now, at, word)
                    && match *word {
                        "wanna" => after.is_some_and(is_space),
                        _ => !after.is_some_and(is_word),
                    }
            })
        });
        self.split_words(|now, at| {
            let before = at.checked_sub(1).map(|at| now[at].c);
            if now[at].c != '\'' || before.is_some_and(|c| c != ' ') {
                return None;
            }
            AFTER_SPACE.iter().find(|(word, _)| {
                is_at(now, at, word) && !now.get(at + word.len()).is_some_and(|item| is_word(item.c))
            })
        });
    }

    /// A space around and inside each word that is found, which tells the word and where it is split.
    fn split_words(&mut self, find: impl Fn(&[Item], usize) -> Option<&'static (&'static str, usize)>) {
        self.next.clear();
        let mut at = 0;
        while at < self.now.len() {
            let Some((word, cut)) = find(&self.now, at) else {
                self.next.push(self.now[at]);
                at += 1;
                continue;
            };
            self.next.push(GAP);
            self.next.extend_from_slice(&self.now[at..at + cut]);
            self.next.push(GAP);
            self.next.extend_from_slice(&self.now[at + cut..at + word.len()]);
            self.next.push(GAP);
            at += word.len();
        }
        self.swap();
    }

    /// The pieces between spaces. All of a piece comes from the text in one go, or a rule made all of it.
    fn hand_over<'a>(&self, text: &'a str, tokens: &mut Vec<&'a str>) {
        for piece in self.now.split(|item| is_space(item.c)) {
            let (Some(first), Some(last)) = (piece.first(), piece.last()) else { continue };
            if first.from == MADE || last.from == MADE {
                tokens.push(if first.c == '`' { OPENING } else { CLOSING });
            } else {
                push(&text[first.from as usize..last.from as usize + last.c.len_utf8()], tokens);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn marks_and_the_final_stop() {
        assert_eq!(
            tokens("Good muffins cost $3.88 (roughly 3,36 euros)\nin New York."),
            [
                "Good", "muffins", "cost", "$", "3.88", "(", "roughly", "3,36", "euros", ")", "in", "New",
                "York", "."
            ]
        );
        assert_eq!(
            tokens("well--known, e.g. this... (end.)"),
            ["well", "--", "known", ",", "e.g", ".", "this", "...", "(", "end", ".", ")"]
        );
    }

    #[test]
    fn clitics_and_contractions() {
        assert_eq!(
            tokens("I can't, she'll, dogs' cannot 'tis wanna."),
            [
                "I", "ca", "n't", ",", "she", "'ll", ",", "dogs", "'", "can", "not", "'t", "is", "wan", "na",
                "."
            ]
        );
    }

    #[test]
    fn quotes() {
        assert_eq!(tokens("\"So,\" he said"), ["``", "So", ",", "''", "he", "said"]);
        assert_eq!(tokens("(\"x\") “y” ```z"), ["(", "``", "x", "''", ")", "“", "y", "”", "``", "`", "z"]);
    }
}
