//! The language of a text as langdetect 1.0.9 sees it with its seed set to 0: a naive Bayes classifier over n-grams of
//! one to three characters, with 55 profiles.
//!
//! langdetect draws n-grams of the text at random until one language is certain, seven times. The draws are those of
//! Python's Mersenne Twister after `seed(0)`, so the answer for a text is always the same, and the same as langdetect's.
//! The first 10,000 characters count, as there.

use super::table::{name_at, section, u16_at, u24_at, u32_at};
use std::borrow::Cow;
use std::sync::LazyLock;

static DATA: &[u8] = include_bytes!("../../data/langdetect.bin");

/// The number of profiles.
const LANGUAGES: usize = 55;
/// As many as six bits can tell apart.
const SIX_BITS: usize = 64;
/// langdetect's constants, under their names there.
const ALPHA_DEFAULT: f64 = 0.5;
const ALPHA_WIDTH: f64 = 0.05;
const ITERATION_LIMIT: usize = 1000;
const PROB_THRESHOLD: f64 = 0.1;
const CONV_THRESHOLD: f64 = 0.99999;
const BASE_FREQ: f64 = 10000.0;
const N_TRIAL: usize = 7;
const MAX_TEXT_LENGTH: usize = 10000;

/// The code of white space and of marks. Codes below [`LETTERS`] are space, `A` to `Z` and `a` to `z`.
const SPACE: u16 = 0;
const LETTERS: u32 = 53;
/// The code of a character that no profile knows.
const NO_CODE: u16 = 0x7fff;
/// The bit of a capital.
const UPPER: u16 = 0x8000;

/// An n-gram of space and ASCII letters is kept as its length in these bits and its place among all possible ones;
/// anything else as the number of its entry.
const LENGTH: u32 = 30;

struct Profiles {
    names: [&'static str; LANGUAGES],
    /// The number of n-grams of each length that a profile was counted from; 1 where there is no profile.
    totals: [[f64; SIX_BITS]; 3],
    codes: &'static [u8],
    /// Entries of n-grams that are not all ASCII: where those of a first character start, and the other characters.
    first: &'static [u8],
    rest: &'static [u8],
    /// The entry of the first of them: ASCII comes before.
    others: usize,
    pairs: Bits,
    triples: Bits,
    /// Where the counts of an entry start, and for each language that has it: six bits for the language, then the count.
    offsets: &'static [u8],
    counts: &'static [u8],
    /// The n-grams of ASCII that many languages have, which are most of a text: the place of an entry in `rows`, and what each
    /// language has of it.
    row_of: Vec<u16>,
    rows: Vec<[f64; LANGUAGES]>,
}

/// An n-gram that so many languages have gets a row of its own. There are 1,900 of them.
const MANY_LANGUAGES: usize = 16;
const NO_ROW: u16 = u16::MAX;

/// Which of the possible n-grams of ASCII letters and space there are, and the entries of those.
struct Bits {
    words: &'static [u8],
    /// The entry of the first one of each word.
    ranks: &'static [u8],
}

impl Bits {
    fn word(&self, place: u32) -> u64 {
        let at = place as usize >> 6 << 3;
        u64::from(u32_at(self.words, at)) | u64::from(u32_at(self.words, at + 4)) << 32
    }

    #[inline]
    fn has(&self, place: u32) -> bool {
        self.words[place as usize >> 3] >> (place & 7) & 1 != 0
    }

    fn entry(&self, place: u32) -> usize {
        let before = self.word(place) & ((1 << (place & 63)) - 1);
        usize::from(u16_at(self.ranks, place as usize >> 6 << 1)) + before.count_ones() as usize
    }
}

static PROFILES: LazyLock<Profiles> = LazyLock::new(|| {
    let head = section(DATA, 0);
    let total = |language: usize, length: usize| match language < LANGUAGES {
        true => f64::from(u32_at(head, language * 20 + 8 + length * 4)),
        false => 1.0,
    };
    let (rest, offsets) = (section(DATA, 3), section(DATA, 8));
    let mut profiles = Profiles {
        names: std::array::from_fn(|language| name_at(head, language * 20, 8)),
        totals: std::array::from_fn(|length| std::array::from_fn(|language| total(language, length))),
        codes: section(DATA, 1),
        first: section(DATA, 2),
        rest,
        others: offsets.len() / 3 - 1 - rest.len() / 3,
        pairs: Bits { words: section(DATA, 4), ranks: section(DATA, 5) },
        triples: Bits { words: section(DATA, 6), ranks: section(DATA, 7) },
        offsets,
        counts: section(DATA, 9),
        row_of: Vec::new(),
        rows: Vec::new(),
    };
    profiles.make_rows();
    profiles
});

impl Profiles {
    /// The code of the character that stands for this one, and whether it is a capital.
    #[inline]
    fn code(&self, c: char) -> (u16, bool) {
        let number = u32::from(c) as usize;
        if number < 0x10000 {
            let value = u16_at(self.codes, 2 * number);
            (value & !UPPER, value & UPPER != 0)
        } else {
            (NO_CODE, c.is_uppercase())
        }
    }

    /// The entry of an n-gram that is not all ASCII, given as code + 1 of each character and 0 for none.
    fn entry(&self, one: u32, two: u32, three: u32) -> Option<u32> {
        let start = |code: u32| u32_at(self.first, 4 * code as usize) as usize;
        let (mut low, mut high) = (start(one), start(one + 1));
        let wanted = two << 12 | three;
        while low < high {
            let middle = low.midpoint(high);
            let found = u24_at(self.rest, 3 * middle);
            match found.cmp(&wanted) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some((self.others + middle) as u32),
            }
        }
        None
    }

    /// Adds the known n-grams that end in a character, of codes below [`LETTERS`].
    #[inline]
    fn ascii(&self, one: u32, two: u32, three: u32, inside: bool, found: &mut Vec<u32>) {
        if three != 0 {
            found.push(1 << LENGTH | three);
        }
        let pair = two * LETTERS + three;
        if self.pairs.has(pair) {
            found.push(2 << LENGTH | pair);
        }
        let triple = one * LETTERS * LETTERS + pair;
        if inside && self.triples.has(triple) {
            found.push(3 << LENGTH | triple);
        }
    }

    /// The same for any codes. Those of the pair may be unknown, but not the last.
    fn any(&self, codes: [u16; 3], inside: bool, found: &mut Vec<u32>) {
        let [one, two, three] = codes.map(u32::from);
        if two < LETTERS && three < LETTERS && (one < LETTERS || !inside) {
            self.ascii(one, two, three, inside, found);
            return;
        }
        if three >= LETTERS {
            found.extend(self.entry(three + 1, 0, 0));
        } else if three != 0 {
            found.push(1 << LENGTH | three);
        }
        if codes[1] == NO_CODE {
            return;
        }
        if two >= LETTERS || three >= LETTERS {
            found.extend(self.entry(two + 1, three + 1, 0));
        } else if self.pairs.has(two * LETTERS + three) {
            found.push(2 << LENGTH | (two * LETTERS + three));
        }
        if inside && codes[0] != NO_CODE {
            found.extend(self.entry(one + 1, two + 1, three + 1));
        }
    }

    /// The languages that have an entry, and its share among their n-grams of that length.
    fn shares(&self, entry: usize, length: usize) -> impl Iterator<Item = (usize, f64)> {
        let offset = |entry: usize| 4 * u24_at(self.offsets, 3 * entry) as usize;
        let totals = &self.totals[length - 1];
        self.counts[offset(entry)..offset(entry + 1)].chunks_exact(4).map(|count| {
            let (count, language) = (u32_at(count, 0), usize::from(count[3] >> 2));
            (language, f64::from(count & 0x3ff_ffff) / totals[language])
        })
    }

    fn make_rows(&mut self) {
        let first_triple = usize::from(u16_at(self.triples.ranks, 0));
        self.row_of = vec![NO_ROW; self.others];
        for entry in 0..self.others {
            let length = 1 + usize::from(entry + 1 >= LETTERS as usize) + usize::from(entry >= first_triple);
            if self.shares(entry, length).count() >= MANY_LANGUAGES {
                let mut row = [0.0; LANGUAGES];
                for (language, share) in self.shares(entry, length) {
                    row[language] = share;
                }
                self.row_of[entry] = self.rows.len() as u16;
                self.rows.push(row);
            }
        }
    }

    /// Multiplies what each language says to the n-gram into the probabilities.
    fn update(&self, ngram: u32, weight: f64, probabilities: &mut [f64; LANGUAGES]) {
        let place = ngram & ((1 << LENGTH) - 1);
        let (entry, length) = match ngram >> LENGTH {
            1 => (place as usize - 1, 1),
            2 => (self.pairs.entry(place), 2),
            3 => (self.triples.entry(place), 3),
            _ => {
                let rest = u24_at(self.rest, 3 * (place as usize - self.others));
                (place as usize, 1 + usize::from(rest != 0) + usize::from(rest & 0xfff != 0))
            }
        };
        if let Some(row) = self.row_of.get(entry).and_then(|&place| self.rows.get(usize::from(place))) {
            for (probability, share) in probabilities.iter_mut().zip(row) {
                *probability *= weight + share;
            }
            return;
        }
        let mut factors = [weight; SIX_BITS];
        for (language, share) in self.shares(entry, length) {
            factors[language] += share;
        }
        for (probability, factor) in probabilities.iter_mut().zip(factors) {
            *probability *= factor;
        }
    }
}

/// The language that langdetect names, `unknown` where it is not sure of any, and nothing where it raises: a text
/// without a single known n-gram.
pub fn detect(text: &str) -> Option<&'static str> {
    let found = classify(text)?;
    let mut best = ("unknown", PROB_THRESHOLD);
    for (name, probability) in PROFILES.names.into_iter().zip(found) {
        if probability > best.1 {
            best = (name, probability);
        }
    }
    Some(best.0)
}

/// Languages with a probability of more than a tenth, the likeliest first.
pub fn probabilities(text: &str) -> Vec<(&'static str, f64)> {
    let Some(found) = classify(text) else { return Vec::new() };
    let mut languages: Vec<_> = PROFILES.names.into_iter().zip(found).collect();
    languages.retain(|&(_, probability)| probability > PROB_THRESHOLD);
    languages.sort_by(|(_, left), (_, right)| right.total_cmp(left));
    languages
}

/// Some of the languages.
pub(super) struct Languages([bool; LANGUAGES]);

impl Languages {
    pub(super) fn new(names: &[&str]) -> Self {
        Self(PROFILES.names.map(|name| names.contains(&name)))
    }
}

/// How many n-grams of a window are looked at, evenly spread. They settle a language with a profile.
const SAMPLE: usize = 60;
/// Fewer of them can be of one mind by chance.
const FEW: usize = 20;

/// The probabilities of some languages, by the same profiles, without anything drawn at random. Nothing where the text
/// has no known n-gram. All capitals are read as small letters.
pub(super) fn among(text: &str, languages: &Languages) -> Option<Vec<(&'static str, f64)>> {
    let lower = if text.chars().any(char::is_lowercase) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.to_lowercase())
    };
    let mut ngrams = ngrams_of(&lower);
    if ngrams.is_empty() {
        return None;
    }
    // Single letters say little.
    if ngrams.len() > SAMPLE {
        ngrams.retain(|ngram| ngram >> LENGTH != 1);
    }
    let mut probabilities = languages.0.map(|wanted| f64::from(u8::from(wanted)));
    normalize(&mut probabilities);
    let step = ngrams.len().div_ceil(SAMPLE);
    for (number, &ngram) in ngrams.iter().step_by(step).enumerate() {
        PROFILES.update(ngram, ALPHA_DEFAULT / BASE_FREQ, &mut probabilities);
        if number % 5 == 4 && normalize(&mut probabilities) > CONV_THRESHOLD && number >= FEW {
            break;
        }
    }
    normalize(&mut probabilities);
    let found = PROFILES.names.into_iter().zip(probabilities).zip(languages.0);
    Some(found.filter(|(_, wanted)| *wanted).map(|(found, _)| found).collect())
}

fn classify(text: &str) -> Option<[f64; LANGUAGES]> {
    let ngrams = ngrams_of(text);
    let count = u32::try_from(ngrams.len()).ok().filter(|&count| count > 0)?;
    let mut random = MersenneTwister::seeded();
    let mut sum = [0.0; LANGUAGES];
    for _ in 0..N_TRIAL {
        let mut probabilities = [1.0 / LANGUAGES as f64; LANGUAGES];
        let weight = (ALPHA_DEFAULT + random.gauss() * ALPHA_WIDTH) / BASE_FREQ;
        for step in 0.. {
            PROFILES.update(ngrams[random.below(count) as usize], weight, &mut probabilities);
            if step % 5 == 0 && (normalize(&mut probabilities) > CONV_THRESHOLD || step >= ITERATION_LIMIT) {
                break;
            }
        }
        for (sum, probability) in sum.iter_mut().zip(probabilities) {
            *sum += probability / N_TRIAL as f64;
        }
    }
    Some(sum)
}

/// Makes the sum 1 and returns the largest.
fn normalize(probabilities: &mut [f64; LANGUAGES]) -> f64 {
    // Four sums side by side, since one addition would wait for the other.
    let mut sums = [0.0; 4];
    for four in probabilities.chunks(4) {
        for (sum, probability) in sums.iter_mut().zip(four) {
            *sum += probability;
        }
    }
    let sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    let mut largest = [0.0; 4];
    for four in probabilities.chunks_mut(4) {
        for (largest, probability) in largest.iter_mut().zip(four) {
            *probability /= sum;
            if *largest < *probability {
                *largest = *probability;
            }
        }
    }
    largest.into_iter().fold(0.0, f64::max)
}

/// The known n-grams of a text.
fn ngrams_of(text: &str) -> Vec<u32> {
    let text = without_addresses(text);
    // One more than counts: it may be an accent on the last one.
    let start = &text.as_bytes()[..text.len().min(MAX_TEXT_LENGTH + 1)];
    match start.is_ascii() {
        true => ascii_ngrams(&start[..start.len().min(MAX_TEXT_LENGTH)]),
        false => ngrams(&clean(&text)),
    }
}

/// The codes of ASCII.
static ASCII_CODES: LazyLock<[u8; 128]> =
    LazyLock::new(|| std::array::from_fn(|byte| PROFILES.code(char::from(byte as u8)).0 as u8));

/// The same as [`ngrams`] for ASCII. Runs of spaces need not be joined: a space after a space gives nothing.
fn ascii_ngrams(text: &[u8]) -> Vec<u32> {
    let (profiles, codes) = (&*PROFILES, &*ASCII_CODES);
    // Each n-gram is written, and stays where it is known: no branch that a processor could foresee wrongly.
    let mut found = vec![0; 3 * text.len() + 3];
    let mut count = 0;
    // The last two codes, whether the last character is not the first of its word, and whether it is in capitals.
    let (mut two, mut three) = (0_u32, 0_u32);
    let mut inside = false;
    let mut capitals = false;
    let upper = |code: u32| code.wrapping_sub(1) < 26;
    for &byte in text {
        let code = u32::from(codes[usize::from(byte & 0x7f)]);
        if three == 0 {
            inside = false;
            capitals = false;
            if code == 0 {
                continue;
            }
        }
        let one = two;
        (two, three) = (three, code);
        capitals = upper(three) && (capitals || upper(two));
        let pair = two * LETTERS + three;
        let triple = one * LETTERS * LETTERS + pair;
        for (length, place, known) in [
            (1, three, three != 0),
            (2, pair, profiles.pairs.has(pair)),
            (3, triple, inside & profiles.triples.has(triple)),
        ] {
            found[count] = length << LENGTH | place;
            count += usize::from(known & !capitals);
        }
        inside = true;
    }
    found.truncate(count);
    found
}

/// The known n-grams of the text, in their order: of each character the one, two and three characters that end there.
/// Words in capitals give none after their first letter.
fn ngrams(text: &[char]) -> Vec<u32> {
    let profiles = &*PROFILES;
    let mut found = Vec::with_capacity(3 * text.len());
    // The last two codes, whether the last character is not the first of its word, and whether it is a capital.
    let (mut two, mut three) = (SPACE, SPACE);
    let mut inside = false;
    let mut last_upper = false;
    let mut capitals = false;
    for &c in text {
        let (code, upper) = profiles.code(c);
        if three == SPACE {
            inside = false;
            capitals = false;
            last_upper = false;
            if code == SPACE {
                continue;
            }
        }
        let one = two;
        (two, three) = (three, code);
        capitals = upper && (capitals || last_upper);
        last_upper = upper;
        if !capitals && code != NO_CODE {
            profiles.any([one, two, three], inside, &mut found);
        }
        inside = true;
    }
    found
}

/// The first 10,000 characters with accents joined to their letters and runs of spaces as one; without ASCII letters
/// where other scripts outweigh them two to one.
fn clean(text: &str) -> Vec<char> {
    let mut cleaned = Vec::with_capacity(text.len().min(MAX_TEXT_LENGTH));
    let (mut latin, mut other) = (0_usize, 0_usize);
    let mut before = '\0';
    let mut chars = text.chars().peekable();
    for _ in 0..MAX_TEXT_LENGTH {
        let Some(mut c) = chars.next() else { break };
        if let Some(&mark) = chars.peek()
            && mark >= '\u{300}'
            && let Some(joined) = join_accent(c, mark)
        {
            c = joined;
            chars.next();
        }
        if c != ' ' || before != ' ' {
            latin += usize::from(('A'..='z').contains(&c));
            other += usize::from(c >= '\u{300}');
            cleaned.push(c);
        }
        before = c;
    }
    if latin * 2 < other {
        cleaned.retain(|c| !('A'..='z').contains(c));
    }
    cleaned
}

/// The letters that Vietnamese puts marks on, the marks, and for each mark the letters with it.
const BASES: &str = "AEIOUYaeiouyÂÊÔâêôĂăƠơƯư";
const MARKS: [(char, &str); 5] = [
    ('\u{300}', "ÀÈÌÒÙỲàèìòùỳẦỀỒầềồẰằỜờỪừ"),
    ('\u{301}', "ÁÉÍÓÚÝáéíóúýẤẾỐấếốẮắỚớỨứ"),
    ('\u{303}', "ÃẼĨÕŨỸãẽĩõũỹẪỄỖẫễỗẴẵỠỡỮữ"),
    ('\u{309}', "ẢẺỈỎỦỶảẻỉỏủỷẨỂỔẩểổẲẳỞởỬử"),
    ('\u{323}', "ẠẸỊỌỤỴạẹịọụỵẬỆỘậệộẶặỢợỰự"),
];

fn join_accent(base: char, mark: char) -> Option<char> {
    let (_, joined) = MARKS.iter().find(|(wanted, _)| *wanted == mark)?;
    let place = BASES.chars().position(|letter| letter == base)?;
    joined.chars().nth(place)
}

/// The text with a space for each web and mail address:
/// `https?://[-_.?&~;+=/#0-9A-Za-z]{1,2076}`, then
/// `[-_.0-9A-Za-z]{1,64}@[-_0-9A-Za-z]{1,255}[-_.0-9A-Za-z]{1,255}`.
fn without_addresses(text: &str) -> Cow<'_, str> {
    let text = match memchr::memmem::find(text.as_bytes(), b"http") {
        Some(_) => replaced(text, web_addresses(text.as_bytes())),
        None => Cow::Borrowed(text),
    };
    if memchr::memchr(b'@', text.as_bytes()).is_none() {
        return text;
    }
    let found = mail_addresses(text.as_bytes());
    match text {
        Cow::Borrowed(text) => replaced(text, found),
        Cow::Owned(text) => Cow::Owned(replaced(&text, found).into_owned()),
    }
}

fn replaced<'a>(text: &'a str, ranges: Vec<(usize, usize)>) -> Cow<'a, str> {
    if ranges.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (start, end) in ranges {
        out.push_str(&text[from..start]);
        out.push(' ');
        from = end;
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}

/// How many bytes from `at` on are in the class, at most `most`.
fn run(bytes: &[u8], at: usize, most: usize, class: impl Fn(u8) -> bool) -> usize {
    bytes[at..].iter().take(most).take_while(|&&byte| class(byte)).count()
}

fn web_addresses(bytes: &[u8]) -> Vec<(usize, usize)> {
    let class = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.?&~;+=/#".contains(&byte);
    let mut found: Vec<(usize, usize)> = Vec::new();
    for start in memchr::memmem::find_iter(bytes, b"http") {
        if found.last().is_some_and(|&(_, end)| start < end) {
            continue;
        }
        let at = start + 4 + usize::from(bytes.get(start + 4) == Some(&b's'));
        if bytes[at..].starts_with(b"://") {
            let length = run(bytes, at + 3, 2076, class);
            if length > 0 {
                found.push((start, at + 3 + length));
            }
        }
    }
    found
}

fn mail_addresses(bytes: &[u8]) -> Vec<(usize, usize)> {
    let host = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let dotted = |byte: u8| host(byte) || byte == b'.';
    let mut found = Vec::new();
    let mut from = 0;
    for at in memchr::memchr_iter(b'@', bytes) {
        if at < from {
            continue;
        }
        let name = bytes[from..at].iter().rev().take(64).take_while(|&&byte| dotted(byte)).count();
        let first = run(bytes, at + 1, 255, host);
        let second = run(bytes, at + 1 + first, 255, dotted);
        // The second part needs a character of its own: the first gives its last one up where nothing else is left.
        if name > 0 && first > 0 && (second > 0 || first > 1) {
            from = at + 1 + first + second;
            found.push((at - name, from));
        }
    }
    found
}

/// The generator of Python's `random`: MT19937 (Matsumoto and Nishimura, 1998).
#[derive(Clone)]
struct MersenneTwister {
    state: [u32; 624],
    at: usize,
    /// The second of a pair of normal variates.
    spare: Option<f64>,
}

/// The state after Python's `random.seed(0)`.
static SEEDED: LazyLock<MersenneTwister> = LazyLock::new(|| {
    let mut state = [0_u32; 624];
    state[0] = 19_650_218;
    for at in 1..624 {
        let before = state[at - 1];
        state[at] = 1_812_433_253_u32.wrapping_mul(before ^ before >> 30).wrapping_add(at as u32);
    }
    // init_by_array with the key [0].
    let mut at = 1;
    for _ in 0..624 {
        let before = state[at - 1];
        state[at] ^= (before ^ before >> 30).wrapping_mul(1_664_525);
        at += 1;
        if at == 624 {
            state[0] = state[623];
            at = 1;
        }
    }
    for _ in 0..623 {
        let before = state[at - 1];
        state[at] = (state[at] ^ (before ^ before >> 30).wrapping_mul(1_566_083_941)).wrapping_sub(at as u32);
        at += 1;
        if at == 624 {
            state[0] = state[623];
            at = 1;
        }
    }
    state[0] = 0x8000_0000;
    let mut random = MersenneTwister { state, at: 624, spare: None };
    random.twist();
    random
});

impl MersenneTwister {
    fn seeded() -> Self {
        SEEDED.clone()
    }

    fn twist(&mut self) {
        for at in 0..624 {
            let bits = self.state[at] & 0x8000_0000 | self.state[(at + 1) % 624] & 0x7fff_ffff;
            let odd = if bits & 1 == 0 { 0 } else { 0x9908_b0df };
            self.state[at] = self.state[(at + 397) % 624] ^ bits >> 1 ^ odd;
        }
        self.at = 0;
    }

    fn next(&mut self) -> u32 {
        if self.at >= 624 {
            self.twist();
        }
        let mut bits = self.state[self.at];
        self.at += 1;
        bits ^= bits >> 11;
        bits ^= bits << 7 & 0x9d2c_5680;
        bits ^= bits << 15 & 0xefc6_0000;
        bits ^ bits >> 18
    }

    /// `random()`: from 0 to below 1 in steps of 2^-53.
    fn unit(&mut self) -> f64 {
        let high = f64::from(self.next() >> 5);
        let low = f64::from(self.next() >> 6);
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }

    /// `randrange(limit)`; the limit is not 0.
    fn below(&mut self, limit: u32) -> u32 {
        loop {
            let drawn = self.next() >> limit.leading_zeros();
            if drawn < limit {
                return drawn;
            }
        }
    }

    /// `gauss(0, 1)`.
    fn gauss(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let angle = self.unit() * std::f64::consts::TAU;
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        self.spare = Some(angle.sin() * radius);
        angle.cos() * radius
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_pythons() {
        let mut random = MersenneTwister::seeded();
        assert_eq!(random.unit(), 0.8444218515250481);
        assert_eq!(random.unit(), 0.7579544029403025);
        let mut random = MersenneTwister::seeded();
        assert!((random.gauss() - 0.9417154046806644).abs() < 1e-15);
        assert!((random.gauss() + 1.3965781047011498).abs() < 1e-15);
        let mut random = MersenneTwister::seeded();
        assert_eq!([0; 5].map(|_| random.below(100)), [49, 97, 53, 5, 33]);
    }

    #[test]
    fn addresses_are_taken_out() {
        assert_eq!(without_addresses("a https://x.y/z?q=1, http://b httpx"), "a  ,   httpx");
        assert_eq!(without_addresses("to ann.lee@mail.example.org now"), "to   now");
        assert_eq!(without_addresses("a@b a@bc @x"), "a@b   @x");
        assert_eq!(without_addresses("é@bc x@yz.https://a.b"), "é@bc   ");
        assert_eq!(without_addresses("plain"), "plain");
    }

    #[test]
    fn accents_are_joined() {
        let joined: String = clean("Vie\u{302}\u{323}t a\u{300}  b").into_iter().collect();
        assert_eq!(joined, "Vie\u{302}\u{323}t à b");
        for (mark, letters) in MARKS {
            assert_eq!(letters.chars().count(), BASES.chars().count(), "{mark:?}");
        }
    }

    #[test]
    fn languages() {
        for (language, text) in [
            ("en", "The lantern hums softly in the cellar and nobody hears it."),
            ("de", "Die Laterne summt leise im Keller, und niemand hört sie."),
            ("fr", "Ce matin nous sommes allés au bord de la rivière."),
            ("es", "Esta mañana fuimos a la orilla del río y vimos los barcos."),
            ("ru", "Сегодня утром мы пошли к реке и долго смотрели на лодки."),
            ("ja", "きのうは雨でしたが、今日は晴れています。"),
            ("zh-cn", "今天的天气很好，我们去河边散步。水面上有几只小船。"),
            ("ko", "오늘 아침 우리는 강가에 갔습니다."),
            ("ar", "ذهبنا اليوم إلى النهر ورأينا قوارب صغيرة على الماء."),
            ("hi", "आज सुबह हम नदी के किनारे गए और नावें देखीं"),
            ("th", "เช้านี้เราไปที่แม่น้ำและดูเรือ"),
            ("vi", "Sáng nay chúng tôi đã đi đến bờ sông và ngắm những con thuyền."),
        ] {
            assert_eq!(detect(text), Some(language), "{text}");
        }
    }

    #[test]
    fn nothing_to_go_by() {
        for text in ["", " \n\t ", "12345 !?", "https://example.org", "🎉🎉", "\u{10400}"] {
            assert_eq!(detect(text), None, "{text:?}");
            assert_eq!(probabilities(text), [], "{text:?}");
        }
    }

    #[test]
    fn only_the_first_characters_count() {
        let start = "The lantern hums softly in the cellar. ".repeat(257);
        assert!(start.len() > MAX_TEXT_LENGTH);
        let text = format!("{start}{}", "Сегодня утром мы пошли к реке. ".repeat(5000));
        assert_eq!(probabilities(&text), probabilities(&start));
    }
}
