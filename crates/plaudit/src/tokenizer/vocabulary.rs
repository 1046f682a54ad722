//! Byte-pair vocabularies, and byte-pair encoding in linear time.
//!
//! By definition, byte-pair encoding merges the two neighbours that make the token with the lowest number, until there
//! are none. The result is the only sequence of tokens for a text in which every two neighbours are also what encoding
//! the two alone would give, so it can be searched for from left to right: take the longest token that may follow the
//! one before, and go back where none may. No place is searched twice from, so that the time is linear in the length
//! of the text. (H. van Antwerpen, A. Neubeck: So many tokens, so little time, 2024.)

use crate::text::id_set::{place_of, places_for};
use crate::text::tokens::Tokens;
use rapidhash::RapidHashMap;

/// Stands for no token.
const NONE: u32 = u32::MAX;

/// How many tokens are single bytes. They have the first numbers.
const BYTES: u32 = 256;

/// Up to how many bytes a piece of text is encoded without looking for repetition, and how many steps are remembered else.
const SHORT: usize = 256;
const STEPS: usize = 64;

/// What was found once after a token, which holds wherever the same bytes follow it.
#[derive(Clone, Copy)]
struct TokenStep {
    last: u32,
    at: usize,
    /// How many bytes from there decide.
    looked_at: usize,
    first: u32,
}

impl Default for TokenStep {
    fn default() -> Self {
        Self { last: NONE, at: 0, looked_at: 0, first: NONE }
    }
}

/// All tokens of a byte-pair encoding.
pub(super) struct Vocabulary {
    /// The bytes of all tokens, in the order of their numbers.
    bytes: Vec<u8>,
    /// Where the bytes of each token start, and where those of the last one end.
    starts: Vec<u32>,
    /// The two tokens that each token is merged from. A single byte is not merged.
    parts: Vec<(u32, u32)>,
    /// The way from the bytes of a token to its number. Most words of a text are one token, and to look for that first
    /// spares more than half of the time.
    by_bytes: Index,
    /// The way from two tokens to the one that they are merged to.
    by_parts: Index,
    /// A trie of all tokens: from a node and a byte, in one number, to the next node. Node 0 is the root.
    next: RapidHashMap<u32, u32>,
    /// The token that ends at each node of the trie.
    ends: Vec<u32>,
    /// For each token the longest one that it starts with and that is not itself.
    shorter: Vec<u32>,
}

impl Vocabulary {
    /// Reads a vocabulary as `data/README.md` describes it.
    pub(super) fn read(packed: &[u8]) -> Self {
        let (singles, merges) = packed.split_at(BYTES as usize);
        let mut bytes = singles.to_vec();
        let mut starts: Vec<u32> = (0..=BYTES).collect();
        let mut parts: Vec<(u32, u32)> = (0..BYTES).map(|id| (id, id)).collect();
        let mut numbers = leb128(merges);
        while let (Some(left), Some(right)) = (numbers.next(), numbers.next()) {
            for part in [left, right] {
                let (from, to) = (starts[part as usize] as usize, starts[part as usize + 1] as usize);
                bytes.extend_from_within(from..to);
            }
            starts.push(bytes.len() as u32);
            parts.push((left, right));
        }

        let count = parts.len();
        let mut vocabulary = Self {
            bytes,
            starts,
            parts,
            by_bytes: Index::for_tokens(count),
            by_parts: Index::for_tokens(count),
            next: RapidHashMap::default(),
            ends: vec![NONE],
            shorter: Vec::with_capacity(count),
        };
        for id in 0..count as u32 {
            vocabulary.by_bytes.insert(id, hash_of_bytes(vocabulary.bytes_of(id)));
            if id >= BYTES {
                let (left, right) = vocabulary.parts[id as usize];
                vocabulary.by_parts.insert(id, hash_of_parts(left, right));
            }
        }
        vocabulary.grow_trie();
        vocabulary
    }

    fn grow_trie(&mut self) {
        let count = self.parts.len();
        self.next.reserve(count * 3);
        let (mut parents, mut nodes) = (vec![0], Vec::with_capacity(count));
        for id in 0..count as u32 {
            // The left part is an earlier token, and in the trie already.
            let (left, rest) = match id {
                0..BYTES => (0, id),
                _ => (nodes[self.parts[id as usize].0 as usize], self.parts[id as usize].1),
            };
            let mut node = left;
            for at in self.starts[rest as usize]..self.starts[rest as usize + 1] {
                let new = self.ends.len() as u32;
                let next = *self.next.entry(step(node, self.bytes[at as usize])).or_insert(new);
                if next == new {
                    self.ends.push(NONE);
                    parents.push(node);
                }
                node = next;
            }
            self.ends[node as usize] = id;
            nodes.push(node);
        }
        for node in nodes {
            let mut above = parents[node as usize];
            while above != 0 && self.ends[above as usize] == NONE {
                above = parents[above as usize];
            }
            self.shorter.push(self.ends[above as usize]);
        }
    }

    /// The token that a piece of text is as a whole.
    #[inline]
    pub(super) fn find(&self, piece: &[u8]) -> Option<u32> {
        self.by_bytes.find(hash_of_bytes(piece), |id| self.bytes_of(id) == piece)
    }

    /// Puts the tokens of a piece of text into `tokens`.
    pub(super) fn encode(&self, piece: &[u8], tokens: &mut Vec<u32>) {
        tokens.clear();
        // The places that no sequence of tokens leads on from, one bit each.
        let mut dead = vec![0u64; piece.len() / 64 + 1];
        // In a long run of marks the same tokens follow the same ones again and again.
        let mut steps = if piece.len() > SHORT { vec![TokenStep::default(); STEPS] } else { Vec::new() };
        let mut at = 0;
        let mut next = Some(self.longest(piece).0);
        while at < piece.len() {
            let last = tokens.last().copied();
            let mut token = match next {
                Some(token) => token,
                None => self.first_after(last.unwrap_or(NONE), piece, at, &mut steps),
            };
            while token != NONE {
                let end = at + self.len_of(token);
                let is_dead = dead[end / 64] & (1 << (end % 64)) != 0;
                if !is_dead && last.is_none_or(|last| self.may_follow(last, token)) {
                    break;
                }
                token = self.shorter[token as usize];
            }
            if token != NONE {
                tokens.push(token);
                at += self.len_of(token);
                next = None;
            } else {
                dead[at / 64] |= 1 << (at % 64);
                // There is a last token: every text has an encoding, so its start is never dead.
                let Some(last) = tokens.pop() else { return };
                at -= self.len_of(last);
                next = Some(last);
            }
        }
    }

    /// The longest token at a place that may follow the last one, or a longer one that is still to be tried.
    fn first_after(&self, last: u32, piece: &[u8], at: usize, steps: &mut [TokenStep]) -> u32 {
        let Some(step) = steps.get_mut(last as usize % STEPS) else { return self.longest(&piece[at..]).0 };
        let window = |at: usize, length: usize| piece.get(at..at + length);
        let is_same = step.last == last
            && window(at, step.looked_at).is_some_and(|here| Some(here) == window(step.at, step.looked_at));
        if !is_same {
            let (longest, depth) = self.longest(&piece[at..]);
            let mut first = longest;
            while first != NONE && !self.may_follow(last, first) {
                first = self.shorter[first as usize];
            }
            *step = TokenStep { last, at, looked_at: depth + 1, first };
        }
        step.first
    }

    /// Whether two tokens stay as they are where the text of both is encoded.
    ///
    /// Their merges are taken back from the last one on. If the two parts that then meet make a token that comes
    /// before the merge just taken back, encoding would have merged these instead; on the right side also where both
    /// are the same, because of two equal merges the left one is made first.
    fn may_follow(&self, mut left: u32, mut right: u32) -> bool {
        let mut limit = NONE;
        loop {
            let merged =
                self.by_parts.find(hash_of_parts(left, right), |id| self.parts[id as usize] == (left, right));
            if merged.is_some_and(|merged| merged < limit) {
                return false;
            }
            if left.max(right) < BYTES {
                return true;
            }
            if left > right {
                limit = left;
                left = self.parts[left as usize].1;
            } else {
                limit = right + 1;
                right = self.parts[right as usize].0;
            }
        }
    }

    /// The longest token that a text starts with, and how many bytes of the text some token starts with.
    fn longest(&self, text: &[u8]) -> (u32, usize) {
        let (mut node, mut token, mut depth) = (0, NONE, 0);
        for byte in text {
            let Some(next) = self.next.get(&step(node, *byte)) else { break };
            node = *next;
            depth += 1;
            if self.ends[node as usize] != NONE {
                token = self.ends[node as usize];
            }
        }
        (token, depth)
    }

    fn bytes_of(&self, id: u32) -> &[u8] {
        &self.bytes[self.starts[id as usize] as usize..self.starts[id as usize + 1] as usize]
    }

    /// How many bytes a token has.
    pub(super) fn len_of(&self, id: u32) -> usize {
        (self.starts[id as usize + 1] - self.starts[id as usize]) as usize
    }
}

/// Open-addressing hash table of token numbers. What a token is looked for by stands in the vocabulary.
struct Index {
    /// One more than the number of a token, at a place that its hash leads to; zero is an empty place.
    places: Box<[u32]>,
}

impl Index {
    fn for_tokens(count: usize) -> Self {
        Self { places: vec![0; places_for(count)].into_boxed_slice() }
    }

    fn insert(&mut self, id: u32, hash: u64) {
        let mut at = place_of(hash, self.places.len());
        while self.places[at] != 0 {
            at = (at + 1) & (self.places.len() - 1);
        }
        self.places[at] = id + 1;
    }

    #[inline]
    fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = place_of(hash, self.places.len());
        loop {
            let id = self.places[at].checked_sub(1)?;
            if is(id) {
                return Some(id);
            }
            at = (at + 1) & (self.places.len() - 1);
        }
    }
}

fn hash_of_bytes(bytes: &[u8]) -> u64 {
    rapidhash::v3::rapidhash_v3(bytes)
}

fn hash_of_parts(left: u32, right: u32) -> u64 {
    Tokens::number_id(u64::from(left) << 32 | u64::from(right))
}

fn step(node: u32, byte: u8) -> u32 {
    node << 8 | u32::from(byte)
}

/// The numbers of a sequence in LEB128.
fn leb128(mut bytes: &[u8]) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let (mut number, mut shift) = (0, 0);
        loop {
            let (byte, rest) = bytes.split_first()?;
            bytes = rest;
            number |= u32::from(byte & 127) << shift;
            shift += 7;
            if *byte < 128 {
                return Some(number);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::Encoding;
    use crate::tokenizer::tiktoken::vocabulary;
    use proptest::prelude::*;

    const ALL: [Encoding; 2] = [Encoding::Cl100kBase, Encoding::O200kBase];

    /// Byte-pair encoding as it is defined.
    fn merged(vocabulary: &Vocabulary, text: &[u8]) -> Vec<u32> {
        let mut pieces: Vec<&[u8]> = text.chunks(1).collect();
        loop {
            let merges = (1..pieces.len()).filter_map(|at| {
                let from = pieces[..at - 1].iter().map(|piece| piece.len()).sum::<usize>();
                let both = &text[from..from + pieces[at - 1].len() + pieces[at].len()];
                Some((vocabulary.find(both)?, at, both))
            });
            let Some((_, at, both)) = merges.min() else { break };
            pieces.splice(at - 1..=at, [both]);
        }
        pieces.iter().map(|piece| vocabulary.find(piece).unwrap()).collect()
    }

    fn encoded(vocabulary: &Vocabulary, text: &[u8]) -> Vec<u32> {
        let mut tokens = Vec::new();
        vocabulary.encode(text, &mut tokens);
        tokens
    }

    /// The hashes are of the files that OpenAI publishes: each token's length, as one byte, and its bytes.
    #[test]
    fn tokens_are_those_of_the_originals() {
        for (encoding, count, hash) in [
            (
                Encoding::Cl100kBase,
                100_256,
                "51960e52039a7a44aa66cd045e0be2c83db222fab0651ff8a2e800c4a577bd3a",
            ),
            (
                Encoding::O200kBase,
                199_998,
                "6e2f1b97e5898e835e1c393ee26521a9f071533183a9c6869aa989e42a9c8624",
            ),
        ] {
            let vocabulary = vocabulary(encoding);
            let mut hasher = blake3::Hasher::new();
            for id in 0..vocabulary.parts.len() as u32 {
                hasher.update(&[vocabulary.len_of(id) as u8]).update(vocabulary.bytes_of(id));
            }
            assert_eq!(vocabulary.parts.len(), count);
            assert_eq!(hasher.finalize().to_string(), hash);
        }
    }

    #[test]
    fn long_runs_are_encoded_as_defined() {
        for unit in ["-", "=", "a", "!?", "-=-", "----- ", "\n", "é", "ab1", "xyzzy"] {
            let text = unit.repeat(400 / unit.len());
            for vocabulary in ALL.map(vocabulary) {
                assert_eq!(
                    encoded(vocabulary, text.as_bytes()),
                    merged(vocabulary, text.as_bytes()),
                    "{unit}"
                );
            }
        }
    }

    #[test]
    fn a_token_is_encoded_as_itself() {
        for vocabulary in ALL.map(vocabulary) {
            for id in 0..vocabulary.parts.len() as u32 {
                assert_eq!(vocabulary.find(vocabulary.bytes_of(id)), Some(id));
                assert_eq!(encoded(vocabulary, vocabulary.bytes_of(id)), [id]);
            }
        }
    }

    #[test]
    fn two_tokens_are_encoded_as_defined() {
        for vocabulary in ALL.map(vocabulary) {
            let count = vocabulary.parts.len() as u32;
            for id in (0..count).step_by(29) {
                let text = [vocabulary.bytes_of(id), vocabulary.bytes_of((id * 7 + 3) % count)].concat();
                assert_eq!(encoded(vocabulary, &text), merged(vocabulary, &text), "{text:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_encoded_as_defined(
            text in prop_oneof![
                "[ab]{0,60}", "[a-e ]{0,60}", "[ -~]{0,60}", "[\\-= \n\t]{0,60}", "[中文字体的😀é]{0,30}",
                "(the|ing|er|ation|un|pre| |s){0,20}",
            ],
            bytes in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            let text = [text.as_bytes(), &bytes].concat();
            for vocabulary in ALL.map(vocabulary) {
                prop_assert_eq!(encoded(vocabulary, &text), merged(vocabulary, &text));
            }
        }
    }
}
