//! Unguessable delimiters, labels and nonces of one group's prompts (prompt-injection defence): derived from a secret, so
//! that a response can neither close its own delimiter nor name a label.

/// Letters that labels are made of: none that is taken for a digit or for another letter.
const LETTERS: &[u8; 23] = b"ABCDEFGHJKLMNPRSTUVWXYZ";
/// How many of the letters, once shuffled, are labels; the next one stands for a tie.
const LABELS: usize = crate::judge::MAX_SHOWN;

/// The delimiters and labels of one group's prompts: the same for the same secret and group, and unknown to whoever
/// lacks the secret.
#[derive(Debug, Clone)]
pub struct Delimiters {
    key: [u8; 32],
    fence: String,
}

impl Delimiters {
    /// Those of a group.
    pub fn new(secret: &[u8; 32], group: &[u8]) -> Self {
        let key = *blake3::Hasher::new_keyed(secret)
            .update(b"plaudit fences\0")
            .update(group)
            .finalize()
            .as_bytes();
        let fence = blake3::keyed_hash(&key, b"fence").to_hex()[..32].to_owned();
        Self { key, fence }
    }

    /// What stands around every response: 128 bits in 32 hexadecimal digits.
    pub fn fence(&self) -> &str {
        &self.fence
    }

    /// `n` distinct labels in an order that cannot be guessed: one letter each, or two and more where one is not enough.
    pub fn labels(&self, n: usize) -> Vec<String> {
        let letters = self.shuffled(LETTERS.to_vec());
        let letters = letters.get(..LABELS).unwrap_or(&letters);
        let text = |letter: &u8| char::from(*letter).to_string();
        let mut all: Vec<String> = letters.iter().map(text).collect();
        if all.len() >= n {
            all.truncate(n);
            return all;
        }
        while all.len() < n {
            all = all
                .iter()
                .flat_map(|start| letters.iter().map(move |end| start.clone() + &text(end)))
                .collect();
        }
        let mut all = self.shuffled(all);
        all.truncate(n);
        all
    }

    /// The letter for a tie, which is never a label.
    pub fn tie(&self) -> String {
        let letters = self.shuffled(LETTERS.to_vec());
        letters.get(LABELS).map_or_else(String::new, |letter| char::from(*letter).to_string())
    }

    /// What marks the verdict of one attempt of one call: 64 bits in 16 hexadecimal digits.
    pub fn nonce(&self, call: &[u8], attempt: u32) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(b"nonce").update(&attempt.to_le_bytes()).update(call);
        hasher.finalize().to_hex()[..16].to_owned()
    }

    fn shuffled<T>(&self, mut all: Vec<T>) -> Vec<T> {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        let mut stream = hasher.update(b"order").update(&all.len().to_le_bytes()).finalize_xof();
        for last in (1..all.len()).rev() {
            // Of 64 bits, the remainder is as good as even for any length of a list.
            let mut bytes = [0; 8];
            stream.fill(&mut bytes);
            let draw = u64::from_le_bytes(bytes) % (last as u64 + 1);
            all.swap(last, usize::try_from(draw).unwrap_or(last));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_distinct_and_never_the_tie() {
        for group in 0..200u32 {
            let delimiters = Delimiters::new(&[7; 32], &group.to_le_bytes());
            for n in [1, 2, 20, 21, 400, 401] {
                let mut labels = delimiters.labels(n);
                assert_eq!(labels.len(), n);
                assert!(!labels.contains(&delimiters.tie()));
                labels.sort();
                labels.dedup();
                assert_eq!(labels.len(), n);
            }
            assert_eq!(delimiters.fence().len(), 32);
            assert_ne!(delimiters.nonce(b"call", 0), delimiters.nonce(b"call", 1));
        }
    }

    #[test]
    fn the_first_label_tells_nothing() {
        let first = |group: u32| Delimiters::new(&[1; 32], &group.to_le_bytes()).labels(2)[0].clone();
        let counts: Vec<usize> = LETTERS
            .iter()
            .map(|letter| (0..2300).filter(|group| first(*group) == char::from(*letter).to_string()).count())
            .collect();
        assert!(counts.iter().all(|count| (60..=145).contains(count)), "{counts:?}");
    }
}
