//! Sentences by the chain of substitutions that IFEval and IF-RLVR use.
//!
//! Every full stop that is no end of a sentence is protected first: titles, web addresses, numbers, single letters,
//! acronyms. Then each of `.?!` that is left ends a sentence. Each step is one linear pass over bytes.

use plaudit_text::is_space;

/// Sentences that are no slices of the text, because quotes moved and line feeds became spaces.
pub struct Sentences {
    text: String,
    spans: Vec<(usize, usize)>,
}

impl Sentences {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// One of them, counted from 0.
    pub fn get(&self, at: usize) -> Option<&str> {
        self.spans.get(at).map(|&(start, end)| &self.text[start..end])
    }

    /// All of them, in order. One may be empty.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.spans.iter().map(|&(start, end)| &self.text[start..end])
    }
}

// Bytes that no UTF-8 text contains.
const PERIOD: u8 = 0xfe;
const STOP: u8 = 0xff;

/// The sentences of a text.
pub fn sentences(text: &str) -> Sentences {
    let mut buffer = start(text);
    if memchr::memchr_iter(b'.', &buffer).any(|dot| !ends_plainly(&buffer, dot)) {
        protect_inside_words(&mut buffer);
        buffer = stop_after_dots(buffer);
        protect_degree(&mut buffer);
        protect_single_letters(&mut buffer);
        buffer = stop_after_acronyms(buffer);
        protect_acronyms(&mut buffer);
        buffer = stop_after_suffixes(buffer);
        protect_after_space(&mut buffer);
    }
    move_quotes(&mut buffer);
    cut(buffer)
}

/// Whether no step looks at this full stop: two small letters before it that end no title or suffix, a space after it.
fn ends_plainly(buffer: &[u8], dot: usize) -> bool {
    let before = dot.checked_sub(2).and_then(|from| buffer.get(from..dot));
    before.is_some_and(|letters| {
        letters.iter().all(u8::is_ascii_lowercase) && !matches!(letters, b"rs" | b"nc" | b"td")
    }) && buffer.get(dot + 1) == Some(&b' ')
}

/// Padded, on one line, and with the two marks that stand for themselves.
fn start(text: &str) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(text.len() + 16);
    buffer.push(b' ');
    buffer.extend_from_slice(text.as_bytes());
    buffer.extend_from_slice(b"  ");
    for byte in &mut buffer {
        if *byte == b'\n' {
            *byte = b' ';
        }
    }
    for (name, mark) in [("<prd>", PERIOD), ("<stop>", STOP)] {
        if memchr::memchr(b'<', &buffer).is_some() && memchr::memmem::find(&buffer, name.as_bytes()).is_some()
        {
            buffer = replace(&buffer, name.as_bytes(), mark);
        }
    }
    buffer
}

fn replace(buffer: &[u8], name: &[u8], mark: u8) -> Vec<u8> {
    let mut made = Vec::with_capacity(buffer.len());
    let mut from = 0;
    for at in memchr::memmem::find_iter(buffer, name) {
        made.extend_from_slice(&buffer[from..at]);
        made.push(mark);
        from = at + name.len();
    }
    made.extend_from_slice(&buffer[from..]);
    made
}

/// Calls back with the place of each full stop, first to last, as the buffer is at that moment.
fn each_dot(buffer: &mut [u8], mut act: impl FnMut(&mut [u8], usize)) {
    let mut from = 0;
    while let Some(at) = memchr::memchr(b'.', &buffer[from..]) {
        act(buffer, from + at);
        from += at + 1;
    }
}

/// `Mr.`, `.com` and `3.14`.
fn protect_inside_words(buffer: &mut [u8]) {
    each_dot(buffer, |buffer, at| {
        let before = &buffer[..at];
        // `Mrs` ends in no other title, but `Dr` may end a longer word.
        if ["Mr", "St", "Mrs", "Ms", "Dr"].iter().any(|title| before.ends_with(title.as_bytes())) {
            buffer[at] = PERIOD;
        }
    });
    each_dot(buffer, |buffer, at| {
        let after = &buffer[at + 1..];
        if ["com", "net", "org", "io", "gov", "edu", "me"]
            .iter()
            .any(|name| after.starts_with(name.as_bytes()))
        {
            buffer[at] = PERIOD;
        }
    });
    // A digit that ended one match begins no other: of `1.2.3` the second stop stays.
    let mut from = 0;
    each_dot(buffer, |buffer, at| {
        if at > from && buffer[at - 1].is_ascii_digit() && buffer.get(at + 1).is_some_and(u8::is_ascii_digit)
        {
            buffer[at] = PERIOD;
            from = at + 2;
        }
    });
}

/// A run of full stops is protected, and ends a sentence.
fn stop_after_dots(buffer: Vec<u8>) -> Vec<u8> {
    let run = memchr::memchr_iter(b'.', &buffer).any(|at| buffer.get(at + 1) == Some(&b'.'));
    if !run {
        return buffer;
    }
    let mut made = Vec::with_capacity(buffer.len() + 16);
    let mut at = 0;
    while at < buffer.len() {
        let run = buffer[at..].iter().take_while(|byte| **byte == b'.').count();
        if run > 1 {
            made.extend(std::iter::repeat_n(PERIOD, run));
            made.push(STOP);
            at += run;
        } else {
            made.push(buffer[at]);
            at += 1;
        }
    }
    made
}

fn protect_degree(buffer: &mut [u8]) {
    let places: Vec<usize> = memchr::memmem::find_iter(buffer, b"Ph.D.").collect();
    for at in places {
        buffer[at + 2] = PERIOD;
        buffer[at + 4] = PERIOD;
    }
}

/// White space, as `\s` has it, before this place, and where it begins.
fn space_before(buffer: &[u8], end: usize) -> Option<usize> {
    let byte = *buffer.get(end.checked_sub(1)?)?;
    if matches!(byte, b' ' | b'\t'..=b'\r' | 0x1c..=0x1f) {
        return Some(end - 1);
    }
    if byte < 0x80 {
        return None;
    }
    let start =
        (1..4).find(|back| buffer.get(end.wrapping_sub(*back)).is_some_and(|byte| byte & 0xc0 != 0x80))?;
    let piece = std::str::from_utf8(&buffer[end - start..end]).ok()?;
    piece.chars().next().filter(|c| is_space(*c)).map(|_| end - start)
}

/// A letter between white space and `. `. The white space before it becomes a space.
fn protect_single_letters(buffer: &mut Vec<u8>) {
    let mut wide = Vec::new();
    let mut from = 0;
    each_dot(buffer, |buffer, at| {
        if at < 2
            || at - 1 <= from
            || !buffer[at - 1].is_ascii_alphabetic()
            || buffer.get(at + 1) != Some(&b' ')
        {
            return;
        }
        let Some(start) = space_before(buffer, at - 1).filter(|start| *start >= from) else { return };
        buffer[start] = b' ';
        if at - 1 - start > 1 {
            wide.push((start + 1, at - 1));
        }
        buffer[at] = PERIOD;
        from = at + 2;
    });
    if wide.is_empty() {
        return;
    }
    // White space of several bytes shrinks to one.
    let mut made = Vec::with_capacity(buffer.len());
    let mut from = 0;
    for (start, end) in wide {
        made.extend_from_slice(&buffer[from..start]);
        from = end;
    }
    made.extend_from_slice(&buffer[from..]);
    *buffer = made;
}

/// The words that follow an end of a sentence, those with white space at their end marked so.
const STARTERS: [(&str, bool); 17] = [
    ("Mr", false),
    ("Mrs", false),
    ("Ms", false),
    ("Dr", false),
    ("Prof", false),
    ("Capt", false),
    ("Cpt", false),
    ("Lt", false),
    ("He", true),
    ("She", true),
    ("It", true),
    ("They", true),
    ("Their", true),
    ("Our", true),
    ("We", true),
    ("But", true),
    ("However", true),
];
const MORE_STARTERS: [(&str, bool); 3] = [("That", true), ("This", true), ("Wherever", false)];

/// The length of the starter at this place.
fn starter(buffer: &[u8], at: usize) -> Option<usize> {
    let rest = buffer.get(at..)?;
    STARTERS.iter().chain(&MORE_STARTERS).find_map(|&(word, spaced)| {
        let after = rest.strip_prefix(word.as_bytes())?;
        if !spaced {
            return Some(word.len());
        }
        let piece = &after[..after.len().min(4)];
        let valid = match std::str::from_utf8(piece) {
            Ok(piece) => piece,
            Err(error) => std::str::from_utf8(&piece[..error.valid_up_to()]).ok()?,
        };
        let space = valid.chars().next().filter(|c| is_space(*c))?;
        Some(word.len() + space.len_utf8())
    })
}

/// The length of `A.B.` or `A.B.C.` at this place, the longer one where both fit.
fn acronym(buffer: &[u8], at: usize) -> Option<usize> {
    let pair =
        |at: usize| buffer.get(at).is_some_and(u8::is_ascii_uppercase) && buffer.get(at + 1) == Some(&b'.');
    if !(pair(at) && pair(at + 2)) {
        return None;
    }
    Some(if pair(at + 4) { 6 } else { 4 })
}

/// An acronym and a space before a starter ends a sentence.
fn stop_after_acronyms(buffer: Vec<u8>) -> Vec<u8> {
    let any = memchr::memchr_iter(b'.', &buffer).any(|dot| dot > 0 && acronym(&buffer, dot - 1).is_some());
    if !any {
        return buffer;
    }
    let mut made = Vec::with_capacity(buffer.len() + 16);
    let mut at = 0;
    while at < buffer.len() {
        // Where three letters do not fit before the space, two may.
        let matched = acronym(&buffer, at).and_then(|longest| {
            [longest, 4].into_iter().find_map(|length| {
                (buffer.get(at + length) == Some(&b' ')).then_some(())?;
                starter(&buffer, at + length + 1).map(|starter| (length, starter))
            })
        });
        match matched {
            Some((length, starter)) => {
                made.extend_from_slice(&buffer[at..at + length]);
                made.push(STOP);
                made.extend_from_slice(&buffer[at + length..at + length + 1 + starter]);
                at += length + 1 + starter;
            }
            None => {
                made.push(buffer[at]);
                at += 1;
            }
        }
    }
    made
}

/// The full stops of `a.b.c.`, then those of `a.b.`.
fn protect_acronyms(buffer: &mut [u8]) {
    for letters in [3, 2] {
        let mut from = 0;
        while let Some(dot) = memchr::memchr(b'.', &buffer[from..]).map(|at| from + at) {
            let start = dot.wrapping_sub(1);
            let fits = dot > from
                && (0..letters).all(|letter| {
                    buffer.get(start + 2 * letter).is_some_and(u8::is_ascii_alphabetic)
                        && buffer.get(start + 2 * letter + 1) == Some(&b'.')
                });
            if fits {
                for letter in 0..letters {
                    buffer[start + 2 * letter + 1] = PERIOD;
                }
                from = start + 2 * letters;
            } else {
                from = dot + 1;
            }
        }
    }
}

const SUFFIXES: [&str; 5] = ["Inc", "Ltd", "Jr", "Sr", "Co"];

/// ` Inc. He` ends a sentence.
fn stop_after_suffixes(buffer: Vec<u8>) -> Vec<u8> {
    let mut made = Vec::new();
    let mut from = 0;
    for dot in memchr::memchr_iter(b'.', &buffer) {
        let suffix = SUFFIXES.iter().find(|suffix| {
            let before = &buffer[from.min(dot)..dot];
            before.ends_with(suffix.as_bytes())
                && before.len() > suffix.len()
                && before[before.len() - suffix.len() - 1] == b' '
        });
        if suffix.is_none() || buffer.get(dot + 1) != Some(&b' ') {
            continue;
        }
        let Some(starter) = starter(&buffer, dot + 2) else { continue };
        made.extend_from_slice(&buffer[from..dot]);
        made.push(STOP);
        made.extend_from_slice(&buffer[dot + 1..dot + 2 + starter]);
        from = dot + 2 + starter;
    }
    if from == 0 {
        return buffer;
    }
    made.extend_from_slice(&buffer[from..]);
    made
}

/// ` Inc.` and ` A.` that are left.
fn protect_after_space(buffer: &mut [u8]) {
    each_dot(buffer, |buffer, at| {
        let before = &buffer[..at];
        if SUFFIXES
            .iter()
            .any(|suffix| before.strip_suffix(suffix.as_bytes()).is_some_and(|before| before.ends_with(b" ")))
        {
            buffer[at] = PERIOD;
        }
    });
    each_dot(buffer, |buffer, at| {
        if at > 1 && buffer[at - 1].is_ascii_alphabetic() && buffer[at - 2] == b' ' {
            buffer[at] = PERIOD;
        }
    });
}

/// A quotation mark after the end of a sentence is moved before it.
fn move_quotes(buffer: &mut [u8]) {
    let curly = "”".as_bytes();
    let places: Vec<usize> = memchr::memmem::find_iter(buffer, ".”".as_bytes()).collect();
    for at in places {
        buffer[at..at + 3].copy_from_slice(curly);
        buffer[at + 3] = b'.';
    }
    if memchr::memchr(b'"', buffer).is_none() {
        return;
    }
    for mark in [b'.', b'!', b'?'] {
        let mut from = 0;
        while let Some(at) = memchr::memchr(mark, &buffer[from..]).map(|at| from + at) {
            if buffer.get(at + 1) == Some(&b'"') {
                buffer.swap(at, at + 1);
                from = at + 2;
            } else {
                from = at + 1;
            }
        }
    }
}

/// Cuts after each mark, and gives the protected full stops back.
fn cut(mut buffer: Vec<u8>) -> Sentences {
    let mut ends: Vec<usize> = if memchr::memchr(STOP, &buffer).is_none() {
        memchr::memchr3_iter(b'.', b'?', b'!', &buffer).map(|at| at + 1).collect()
    } else {
        let mut ends = Vec::new();
        let mut length = 0;
        for at in 0..buffer.len() {
            let byte = buffer[at];
            if byte != STOP {
                buffer[length] = byte;
                length += 1;
            }
            if matches!(byte, b'.' | b'?' | b'!' | STOP) {
                ends.push(length);
            }
        }
        buffer.truncate(length);
        ends
    };
    let mut from = 0;
    while let Some(at) = memchr::memchr(PERIOD, &buffer[from..]).map(|at| from + at) {
        buffer[at] = b'.';
        from = at + 1;
    }
    ends.push(buffer.len());
    // The passes put nothing into the middle of a character.
    let text = String::from_utf8(buffer)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    let mut from = 0;
    let mut spans = Vec::with_capacity(ends.len());
    for end in ends {
        let piece = text.get(from..end).map_or("", |piece| piece).trim_start_matches(is_space);
        let start = end - piece.len();
        spans.push((start, start + piece.trim_end_matches(is_space).len()));
        from = end;
    }
    if spans.last().is_some_and(|&(start, end)| start == end) {
        spans.pop();
    }
    Sentences { text, spans }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        sentences(text).iter().map(str::to_owned).collect()
    }

    #[test]
    fn protected_stops() {
        assert_eq!(
            split("Mr. Lane of example.com owes 3.14. Inc. it is."),
            ["Mr. Lane of example.com owes 3.14.", "Inc. it is."]
        );
        assert_eq!(split("The U.S. He left. J. K. Holt."), ["The U.S.", "He left.", "J. K. Holt."]);
    }

    #[test]
    fn quotes_move() {
        assert_eq!(split("She said \"no.\" Then?"), ["She said \"no\".", "Then?"]);
        assert_eq!(split("”Wait.” So…"), ["”Wait”.", "So…"]);
    }

    #[test]
    fn runs_of_dots() {
        assert_eq!(split("Well... yes. <stop>x"), ["Well...", "yes.", "", "x"]);
        assert!(split("").is_empty());
    }
}
