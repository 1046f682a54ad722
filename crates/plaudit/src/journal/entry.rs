//! Journal entries and their binary encoding.

use std::time::Duration;

/// What was asked, as a hash over everything that could change the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JudgmentKey([u8; 32]);

impl JudgmentKey {
    /// The key of some parts. Each is hashed with its length, so that moving a byte from one part to the next is
    /// another key.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }

    /// Its bytes, from which a provider's idempotency key can be made.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for JudgmentKey {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

/// What a judge replied, as it was received. What it means is read from it anew each time, so that a better parser
/// needs no new judgment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgment {
    /// The whole reply.
    pub body: Vec<u8>,
    /// How long the judge took.
    pub latency: Duration,
    /// Which judge it was.
    pub judge: String,
}

/// One record, borrowed from what is written or was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry<'a> {
    /// A process begins to write; what was open before it is open for good.
    Start,
    /// A call is about to be sent.
    Intent { key: JudgmentKey, judge: &'a str },
    /// A judge has replied.
    Judgment { key: JudgmentKey, latency: Duration, judge: &'a str, body: &'a [u8] },
    /// A call has ended without a judgment.
    GaveUp { key: JudgmentKey, code: &'a str, maybe_paid: bool },
    /// A small settled fact.
    Fact { name: &'a str, value: &'a str },
}

impl<'a> Entry<'a> {
    /// Appends the payload.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Start => out.push(0),
            Self::Intent { key, judge } => {
                out.push(1);
                out.extend(key.0);
                out.extend(judge.as_bytes());
            }
            Self::Judgment { key, latency, judge, body } => {
                out.push(2);
                out.extend(key.0);
                let latency = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
                out.extend(latency.to_le_bytes());
                word(out, judge);
                out.extend(*body);
            }
            Self::GaveUp { key, code, maybe_paid } => {
                out.push(3);
                out.extend(key.0);
                out.push(u8::from(*maybe_paid));
                out.extend(code.as_bytes());
            }
            Self::Fact { name, value } => {
                out.push(4);
                word(out, name);
                out.extend(value.as_bytes());
            }
        }
    }

    /// The record in a payload.
    pub(super) fn read(payload: &'a [u8]) -> Option<Self> {
        let (kind, rest) = payload.split_first()?;
        Some(match kind {
            0 => Self::Start,
            1 => {
                let (key, judge) = key(rest)?;
                Self::Intent { key, judge: text(judge)? }
            }
            2 => {
                let (key, rest) = key(rest)?;
                let (latency, rest) = rest.split_first_chunk()?;
                let latency = Duration::from_nanos(u64::from_le_bytes(*latency));
                let (judge, body) = unword(rest)?;
                Self::Judgment { key, latency, judge, body }
            }
            3 => {
                let (key, rest) = key(rest)?;
                let (maybe_paid, code) = rest.split_first()?;
                Self::GaveUp { key, code: text(code)?, maybe_paid: *maybe_paid != 0 }
            }
            4 => {
                let (name, value) = unword(rest)?;
                Self::Fact { name, value: text(value)? }
            }
            _ => return None,
        })
    }
}

fn word(out: &mut Vec<u8>, word: &str) {
    // A record of more than 8 MiB is refused, so a length that does not fit is never written.
    out.extend((word.len() as u32).to_le_bytes());
    out.extend(word.as_bytes());
}

fn unword(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (word, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some((text(word)?, rest))
}

fn key(bytes: &[u8]) -> Option<(JudgmentKey, &[u8])> {
    bytes.split_first_chunk().map(|(key, rest)| (JudgmentKey(*key), rest))
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart() {
        assert_ne!(JudgmentKey::of(&[b"ab", b"c"]), JudgmentKey::of(&[b"a", b"bc"]));
        assert_ne!(JudgmentKey::of(&[b"ab"]), JudgmentKey::of(&[b"ab", b""]));
        assert_eq!(JudgmentKey::of(&[b"ab", b"c"]), JudgmentKey::of(&[b"ab", b"c"]));
    }

    #[test]
    fn what_is_written_is_read_and_what_is_cut_never_panics() {
        let key = JudgmentKey::of(&[b"question"]);
        let entries = [
            Entry::Start,
            Entry::Intent { key, judge: "j" },
            Entry::Judgment { key, latency: Duration::from_millis(5), judge: "judge", body: b"\xff{}" },
            Entry::GaveUp { key, code: "judge.timeout", maybe_paid: true },
            Entry::Fact { name: "form", value: "json" },
        ];
        for entry in entries {
            let mut payload = Vec::new();
            entry.write(&mut payload);
            assert_eq!(Entry::read(&payload), Some(entry));
            for cut in 0..payload.len() {
                let _ = Entry::read(&payload[..cut]);
            }
        }
        assert_eq!(Entry::read(&[9]), None);
        assert_eq!(Entry::read(&[4, 255, 255, 255, 255, 1]), None);
    }
}
