//! Ratcliff-Obershelp similarity of characters, as Python's `difflib.SequenceMatcher` computes it, within a bound on work.
//!
//! The longest common piece is found, then the longest one on each side of it, and so on; of equally long ones the first in the
//! first text counts, then the first in the second text. `difflib` looks at every pair of equal characters. Here a piece of at
//! least sixteen characters is looked for by pairs of equal pieces of sixteen, of which there are far fewer, then of eight, four, two
//! and one: the longest piece is the same.

use rapidhash::RapidHashMap;
use std::hash::Hash;
use std::ops::Range;

/// No piece of the second text.
const UNKNOWN: u32 = u32::MAX;
/// How often the length of pieces doubles.
const DOUBLINGS: usize = 4;

/// The second text, prepared so that others can be compared with it.
#[derive(Debug)]
pub struct SequenceMatcher {
    characters: PieceIndex<char>,
    /// Pieces of two, four, eight and sixteen characters, by the numbers of their halves. None where popular characters are left out.
    longer: Vec<PieceIndex<(u32, u32)>>,
}

/// The pieces of one length: their numbers, and where each stands in the second text.
#[derive(Debug)]
struct PieceIndex<K> {
    numbers: RapidHashMap<K, u32>,
    /// The number of the piece at each place.
    pieces: Vec<u32>,
    /// Where the places of each number start in `places`, and where the last ones end.
    starts: Vec<u32>,
    places: Vec<u32>,
}

impl<K: Hash + Eq> PieceIndex<K> {
    fn new(pieces: impl Iterator<Item = K>) -> Self {
        let mut numbers = RapidHashMap::default();
        let pieces: Vec<u32> = pieces
            .map(|piece| {
                let next = numbers.len() as u32;
                *numbers.entry(piece).or_insert(next)
            })
            .collect();
        let mut starts = vec![0; numbers.len() + 1];
        for piece in &pieces {
            starts[*piece as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let (mut next, mut places) = (starts.clone(), vec![0; pieces.len()]);
        for (place, piece) in pieces.iter().enumerate() {
            places[next[*piece as usize] as usize] = place as u32;
            next[*piece as usize] += 1;
        }
        Self { numbers, pieces, starts, places }
    }

    fn number(&self, piece: &K) -> u32 {
        self.numbers.get(piece).copied().unwrap_or(UNKNOWN)
    }

    /// The places of a piece, in order, that lie in a range.
    fn places(&self, piece: u32, within: &Range<usize>) -> &[u32] {
        if piece == UNKNOWN {
            return &[];
        }
        let all =
            &self.places[self.starts[piece as usize] as usize..self.starts[piece as usize + 1] as usize];
        // Most longer pieces stand at one place.
        if let [only] = all {
            return if within.contains(&(*only as usize)) { all } else { &[] };
        }
        let from = all.partition_point(|place| (*place as usize) < within.start);
        let to = all.partition_point(|place| (*place as usize) < within.end);
        &all[from..to.max(from)]
    }

    /// What it takes to look a piece up, in steps.
    fn lookup(&self, piece: u32) -> u64 {
        let known = piece != UNKNOWN && self.starts[piece as usize + 1] - self.starts[piece as usize] > 1;
        if known { 16 } else { 2 }
    }

    /// Forgets where the pieces stand that stand at more than `most` places.
    fn forget_popular(&mut self, most: usize) {
        let (mut starts, mut places) = (vec![0], Vec::new());
        for bounds in self.starts.windows(2) {
            let own = &self.places[bounds[0] as usize..bounds[1] as usize];
            places.extend_from_slice(if own.len() > most { &[] } else { own });
            starts.push(places.len() as u32);
        }
        (self.starts, self.places) = (starts, places);
    }
}

/// The halves of all pieces that are twice as long.
fn halves(pieces: &[u32], half: usize) -> impl Iterator<Item = (u32, u32)> {
    pieces.iter().zip(pieces.get(half..).unwrap_or(&[])).map(|(left, right)| (*left, *right))
}

impl SequenceMatcher {
    /// Prepares the second text. `autojunk` is `difflib`'s: in a text of at least 200 characters, those that make up more than a
    /// hundredth of it begin no match.
    pub fn new(second: &str, autojunk: bool) -> Self {
        let mut characters = PieceIndex::new(second.chars());
        let length = characters.pieces.len();
        let mut longer: Vec<PieceIndex<(u32, u32)>> = Vec::new();
        if autojunk && length >= 200 {
            characters.forget_popular(length / 100 + 1);
        } else {
            for doubling in 0..DOUBLINGS {
                let shorter = longer.last().map_or(&characters.pieces, |index| &index.pieces);
                longer.push(PieceIndex::new(halves(shorter, 1 << doubling)));
            }
        }
        Self { characters, longer }
    }

    /// How many characters the second text has.
    pub fn len(&self) -> usize {
        self.characters.pieces.len()
    }

    /// Whether the second text is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many characters of the first text match, in order; nothing where that takes more than `work` steps.
    pub fn matches(&self, first: &str, work: u64) -> Option<usize> {
        let mut levels: Vec<Vec<u32>> =
            vec![first.chars().map(|char| self.characters.number(&char)).collect()];
        for (doubling, index) in self.longer.iter().enumerate() {
            let shorter = &levels[doubling];
            levels.push(halves(shorter, 1 << doubling).map(|piece| index.number(&piece)).collect());
        }
        let mut search = Search { matcher: self, runs: vec![(0, 0); self.len() + 1], row: 0, work, levels };
        let mut left = vec![(0..search.levels[0].len(), 0..self.len())];
        let mut matched = 0;
        while let Some((a, b)) = left.pop() {
            let (i, j, size) = search.longest(&a, &b)?;
            if size == 0 {
                continue;
            }
            matched += size;
            for (a, b) in [(a.start..i, b.start..j), (i + size..a.end, j + size..b.end)] {
                if !a.is_empty() && !b.is_empty() {
                    left.push((a, b));
                }
            }
        }
        Some(matched)
    }
}

struct Search<'m> {
    matcher: &'m SequenceMatcher,
    /// The pieces of the first text, by length: 1, 2, 4, 8, 16.
    levels: Vec<Vec<u32>>,
    /// For the place after each in the second text: in which row a run of equal pieces last ended there, and how long it is.
    runs: Vec<(u32, u32)>,
    row: u32,
    work: u64,
}

impl Search<'_> {
    /// Where the longest common piece of two ranges starts, and its length.
    fn longest(&mut self, a: &Range<usize>, b: &Range<usize>) -> Option<(usize, usize, usize)> {
        let mut best = (a.start, b.start, 0);
        for level in (0..self.levels.len()).rev() {
            let size = 1 << level;
            if a.len() >= size && b.len() >= size {
                best = self.longest_run(level, a, b)?;
            }
            if best.2 > 0 {
                best.2 += size - 1;
                break;
            }
        }
        // Popular characters begin no match but belong to one.
        let (mut i, mut j, mut size) = best;
        let (first, second) = (&self.levels[0], &self.matcher.characters.pieces);
        while i > a.start && j > b.start && first[i - 1] == second[j - 1] {
            (i, j, size) = (i - 1, j - 1, size + 1);
        }
        while i + size < a.end && j + size < b.end && first[i + size] == second[j + size] {
            size += 1;
        }
        Some((i, j, size))
    }

    /// Where the longest run of equal pieces starts, and how many they are.
    fn longest_run(
        &mut self,
        level: usize,
        a: &Range<usize>,
        b: &Range<usize>,
    ) -> Option<(usize, usize, usize)> {
        let last = (1 << level) - 1;
        let within = b.start..b.end - last;
        let mut best = (a.start, b.start, 0);
        // A row of its own, so that no run of an earlier search goes on.
        self.row += 1;
        for i in a.start..a.end - last {
            self.row += 1;
            let piece = self.levels[level][i];
            let (places, lookup) = match level.checked_sub(1) {
                None => {
                    (self.matcher.characters.places(piece, &within), self.matcher.characters.lookup(piece))
                }
                Some(longer) => {
                    let index = &self.matcher.longer[longer];
                    (index.places(piece, &within), index.lookup(piece))
                }
            };
            self.work = self.work.checked_sub(lookup + places.len() as u64)?;
            // From the last place to the first, so that the runs of the row before are still there.
            for j in places.iter().rev().map(|place| *place as usize) {
                let (row, before) = self.runs[j];
                let run = if row + 1 == self.row { before as usize + 1 } else { 1 };
                self.runs[j + 1] = (self.row, run as u32);
                let start = i + 1 - run;
                if run > best.2 || (run == best.2 && start == best.0) {
                    best = (start, j + 1 - run, run);
                }
            }
        }
        Some(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(first: &str, second: &str, autojunk: bool) -> f64 {
        let matched = SequenceMatcher::new(second, autojunk).matches(first, u64::MAX).expect("no bound");
        2.0 * matched as f64 / (first.chars().count() + second.chars().count()) as f64
    }

    #[test]
    fn values_are_those_of_difflib() {
        let long = "abcdefghij".repeat(25);
        for (first, second, autojunk, wanted) in [
            ("diet", "tide", false, 0.5),
            ("tide", "diet", false, 0.25),
            ("🙂a", "a🙂", false, 0.5),
            ("aaa", "aaaa", false, 6.0 / 7.0),
            ("private Thread currentThread;", "private volatile Thread currentThread;", false, 58.0 / 67.0),
            (&format!("x{long}"), &long, false, 500.0 / 501.0),
            (&format!("x{long}"), &long, true, 0.0),
            (&format!("{long}x"), &long, true, 500.0 / 501.0),
        ] {
            assert_eq!(ratio(first, second, autojunk), wanted, "{first:.20} {second:.20}");
        }
    }

    /// The longest common piece, found by looking at every pair of places.
    fn plain(a: &[char], b: &[char]) -> usize {
        let mut best = (0, 0, 0);
        for i in 0..a.len() {
            for j in 0..b.len() {
                let size = a[i..].iter().zip(&b[j..]).take_while(|(a, b)| a == b).count();
                if size > best.2 {
                    best = (i, j, size);
                }
            }
        }
        let (i, j, size) = best;
        if size == 0 { 0 } else { size + plain(&a[..i], &b[..j]) + plain(&a[i + size..], &b[j + size..]) }
    }

    #[test]
    fn longer_pieces_find_what_single_characters_find() {
        let mut seed = 7_u64;
        let mut random = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for round in 0..300 {
            let letters = 1 + round % 5;
            let mut text = |length: u64| -> Vec<char> {
                (0..random(length)).map(|_| char::from(b'a' + random(letters) as u8)).collect()
            };
            let (mut first, second) = (text(60), text(60));
            first.extend(&second[..second.len() / 2]);
            let joined = |text: &[char]| text.iter().collect::<String>();
            let found = SequenceMatcher::new(&joined(&second), false).matches(&joined(&first), u64::MAX);
            assert_eq!(found, Some(plain(&first, &second)), "{} {}", joined(&first), joined(&second));
        }
    }

    #[test]
    fn work_is_bounded() {
        let (first, second) = ("ab".repeat(2000), "a".repeat(2000));
        let matcher = SequenceMatcher::new(&second, false);
        assert_eq!(matcher.matches(&first, 1000), None);
        assert_eq!((matcher.len(), matcher.is_empty()), (2000, false));
    }
}
