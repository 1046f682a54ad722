//! Record framing: checksums that detect damage, and a magic to find the next good record.
//!
//! `magic 4 | length 4 | sequence 8 | check of the payload 16 | check of the head 8 | payload`, numbers little-endian.
//! Both checks are keyed with a secret that no judge has seen: a reply that holds a whole fake record cannot pass for
//! one. The head has a check of its own, so that a reply full of magics costs a reader one short hash each, not one hash
//! of everything that follows. The sequence number makes lost records countable and repeated ones recognisable.

use super::error::JournalError;

/// The bytes before the payload.
pub(super) const HEAD: usize = 40;
/// The largest payload.
pub(super) const MAX_PAYLOAD: usize = 8 << 20;
/// What every record begins with: no text begins like this, since 0xF5 is never part of UTF-8.
pub(super) const MAGIC: [u8; 4] = [0xF5, b'p', b'j', 0x0A];

/// A head whose check is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) length: usize,
    pub(super) sequence: u64,
    check: [u8; 16],
}

/// A record that lacks only its sequence number.
pub(super) struct Draft {
    bytes: Vec<u8>,
    check: [u8; 16],
}

impl Draft {
    /// The bytes that the whole record takes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// The keyed checks of one journal.
pub(super) struct Seal([u8; 32]);

impl Seal {
    /// The seal of the journal with this secret.
    pub(super) fn of(secret: &[u8; 32]) -> Self {
        Self(blake3::derive_key("plaudit journal, checks of records", secret))
    }

    /// All of a record that can be made before its place in the log is known.
    pub(super) fn draft(&self, write: impl FnOnce(&mut Vec<u8>)) -> Result<Draft, JournalError> {
        let mut bytes = vec![0; HEAD];
        write(&mut bytes);
        let size = bytes.len() - HEAD;
        if size > MAX_PAYLOAD {
            return Err(JournalError::TooLarge { size, most: MAX_PAYLOAD });
        }
        let check = self.check(&bytes[HEAD..]);
        Ok(Draft { bytes, check })
    }

    /// The record as it is written.
    pub(super) fn finish(&self, draft: Draft, sequence: u64) -> Vec<u8> {
        let Draft { mut bytes, check } = draft;
        // A draft is at most `MAX_PAYLOAD` long, so the cast keeps every bit.
        let length = (bytes.len() - HEAD) as u32;
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        bytes[8..16].copy_from_slice(&sequence.to_le_bytes());
        bytes[16..32].copy_from_slice(&check);
        let head = self.head_check(&bytes[..32]);
        bytes[32..HEAD].copy_from_slice(&head);
        bytes
    }

    /// The head at the front of these bytes, unless it is none of this journal's.
    pub(super) fn head(&self, bytes: &[u8]) -> Option<Head> {
        let bytes: &[u8; HEAD] = bytes.first_chunk()?;
        if bytes[..4] != MAGIC {
            return None;
        }
        let length = u32::from_le_bytes(*bytes[4..].first_chunk()?) as usize;
        if length > MAX_PAYLOAD || bytes[32..] != self.head_check(&bytes[..32]) {
            return None;
        }
        let sequence = u64::from_le_bytes(*bytes[8..].first_chunk()?);
        Some(Head { length, sequence, check: *bytes[16..].first_chunk()? })
    }

    /// Whether the payload is the one that the head was made for.
    pub(super) fn holds(&self, head: &Head, payload: &[u8]) -> bool {
        payload.len() == head.length && self.check(payload) == head.check
    }

    fn check(&self, payload: &[u8]) -> [u8; 16] {
        first(blake3::keyed_hash(&self.0, payload).as_bytes())
    }

    fn head_check(&self, head: &[u8]) -> [u8; 8] {
        // A payload could be 32 bytes long as well, so the two kinds of check are told apart by a prefix.
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(b"head").update(head);
        first(hasher.finalize().as_bytes())
    }
}

fn first<const N: usize>(hash: &[u8; 32]) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&hash[..N]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(seal: &Seal, payload: &[u8]) -> Vec<u8> {
        seal.finish(seal.draft(|out| out.extend(payload)).expect("small"), 7)
    }

    #[test]
    fn every_changed_bit_is_seen() {
        let seal = Seal::of(&[1; 32]);
        let good = record(&seal, b"a payload of some bytes");
        for at in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[at / 8] ^= 1 << (at % 8);
            let seen = seal.head(&bad).is_some_and(|head| seal.holds(&head, &bad[HEAD..]));
            assert!(!seen, "bit {at}");
        }
        let head = seal.head(&good).expect("good");
        assert_eq!((head.length, head.sequence), (23, 7));
        assert!(seal.holds(&head, &good[HEAD..]));
    }

    #[test]
    fn a_record_of_another_journal_is_none_of_ours() {
        let theirs = record(&Seal::of(&[1; 32]), b"payload");
        assert_eq!(Seal::of(&[2; 32]).head(&theirs), None);
    }

    #[test]
    fn what_is_too_large_is_refused_before_it_is_written() {
        let refused = Seal::of(&[1; 32]).draft(|out| out.resize(HEAD + MAX_PAYLOAD + 1, 0));
        assert_eq!(refused.err().map(|error| error.code()), Some("journal.too_large"));
    }
}
