//! Recovery scan: reads a log from front to back and skips damaged records.
//!
//! Records are read from front to back. Where one is not good, the next magic is looked for from the very next byte on,
//! since its length may be what is damaged. Numbers that are missing from the sequence are the records that were lost,
//! even where no byte of them is left; a number that comes twice is a record that was copied.

use super::disk::Disk;
use super::frame::{HEAD, Head, MAGIC, MAX_PAYLOAD, Seal};
use memchr::memmem;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// How much is read at once.
const CHUNK: usize = 1 << 20;
/// What is given up where the disk cannot read.
const SECTOR: usize = 4096;

/// A good record.
pub(super) struct Found<'a> {
    pub(super) at: u64,
    pub(super) sequence: u64,
    pub(super) payload: &'a [u8],
}

/// What a log held.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Survey {
    /// Where the next record goes: behind the last good one, unless more follows than one torn record can be.
    pub(super) end: u64,
    /// Where the first good record begins.
    pub(super) first: Option<u64>,
    /// The number of the next record.
    pub(super) next: u64,
    /// How many records were lost.
    pub(super) damaged: u64,
    /// How many bytes belong to no good record.
    pub(super) lost_bytes: u64,
    /// Whether the log ends with a piece of a record.
    pub(super) torn_tail: bool,
}

/// Reads the log from a place on, and hands over every good record once. Fails only where the disk cannot read what is
/// behind the last good record: that would be cut off, and might be good again tomorrow.
pub(super) fn scan(
    disk: &dyn Disk,
    range: std::ops::Range<u64>,
    seal: &Seal,
    mut each: impl FnMut(Found<'_>),
) -> io::Result<Survey> {
    let mut window = Window { disk, length: range.end, start: range.start, bytes: Vec::new(), unread: None };
    let mut sequence = Sequence::default();
    let mut seen = Survey { end: range.start, ..Survey::default() };
    // The numbers of whole records behind the last good one whose payloads are damaged.
    let mut spoiled = BTreeSet::new();
    let mut at = range.start;
    while let Some((place, head)) = window.next_head(at, seal) {
        let whole = place + (HEAD + head.length) as u64;
        if whole > range.end {
            at = place + 1;
            continue;
        }
        let payload = window.view(place + HEAD as u64, head.length);
        if !seal.holds(&head, payload) {
            spoiled.insert(head.sequence);
            at = place + 1;
            continue;
        }
        if sequence.take(head.sequence) {
            each(Found { at: place, sequence: head.sequence, payload });
        }
        seen.lost_bytes += place - seen.end;
        seen.first = seen.first.or(Some(place));
        spoiled.clear();
        (at, seen.end) = (whole, whole);
    }
    if let Some((_, error)) = window.unread.filter(|(at, _)| *at >= seen.end) {
        return Err(error);
    }
    let tail = range.end - seen.end;
    let spoiled = spoiled.range(sequence.next..).count() as u64;
    seen.lost_bytes += tail;
    seen.next = sequence.next;
    if tail > (HEAD + MAX_PAYLOAD) as u64 {
        // No torn write is as long as this. It is kept, as lost records with numbers of their own.
        seen.damaged = spoiled.max(1);
        seen.next += seen.damaged;
        seen.end = range.end;
    } else {
        seen.damaged = spoiled;
        seen.torn_tail = tail > 0 && spoiled == 0;
    }
    seen.damaged += sequence.lost();
    Ok(seen)
}

/// Which numbers have come.
#[derive(Default)]
struct Sequence {
    next: u64,
    /// The first of each run of missing numbers, and the number behind its last.
    missing: BTreeMap<u64, u64>,
}

impl Sequence {
    /// Whether this number comes for the first time.
    fn take(&mut self, number: u64) -> bool {
        if number >= self.next {
            if number > self.next {
                self.missing.insert(self.next, number);
            }
            self.next = number.saturating_add(1);
            return true;
        }
        let Some((&from, &to)) = self.missing.range(..=number).next_back() else { return false };
        if number >= to {
            return false;
        }
        self.missing.remove(&from);
        if from < number {
            self.missing.insert(from, number);
        }
        if number + 1 < to {
            self.missing.insert(number + 1, to);
        }
        true
    }

    fn lost(&self) -> u64 {
        self.missing.iter().map(|(from, to)| to - from).sum()
    }
}

/// The piece of the log that is in memory.
struct Window<'a> {
    disk: &'a dyn Disk,
    length: u64,
    start: u64,
    bytes: Vec<u8>,
    /// The last place that the disk could not read.
    unread: Option<(u64, io::Error)>,
}

impl Window<'_> {
    /// The next head that is good by its own check, at or behind a place.
    fn next_head(&mut self, mut from: u64, seal: &Seal) -> Option<(u64, Head)> {
        while from + (HEAD as u64) <= self.length {
            let rest = self.rest(from);
            let Some(offset) = memmem::find(rest, &MAGIC) else {
                // A magic may begin in the last bytes and end in the next piece.
                from += (rest.len() - (MAGIC.len() - 1)) as u64;
                continue;
            };
            from += offset as u64;
            if from + (HEAD as u64) > self.length {
                return None;
            }
            if let Some(head) = seal.head(self.view(from, HEAD)) {
                return Some((from, head));
            }
            from += 1;
        }
        None
    }

    /// What is in memory from a place on: at least a head's length, which must be there.
    fn rest(&mut self, from: u64) -> &[u8] {
        self.view(from, HEAD);
        &self.bytes[(from - self.start) as usize..]
    }

    /// Some bytes, all of which must lie inside of the file.
    fn view(&mut self, from: u64, wanted: usize) -> &[u8] {
        let behind = self.start + self.bytes.len() as u64;
        if from < self.start || from + wanted as u64 > behind {
            self.load(from, wanted);
        }
        let offset = (from - self.start) as usize;
        &self.bytes[offset..offset + wanted]
    }

    fn load(&mut self, from: u64, wanted: usize) {
        let left = usize::try_from(self.length - from).unwrap_or(usize::MAX);
        self.start = from;
        self.bytes.clear();
        self.bytes.resize(wanted.max(CHUNK).min(left), 0);
        if self.disk.read(&mut self.bytes, from).is_ok() {
            return;
        }
        // A sector that cannot be read costs the records in it, not the journal.
        let mut at = from;
        for sector in self.bytes.chunks_mut(SECTOR) {
            if let Err(error) = self.disk.read(sector, at) {
                sector.fill(0);
                self.unread = Some((at, error));
            }
            at += sector.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_late_and_repeated_sequence_numbers_differ() {
        let mut sequence = Sequence::default();
        assert!(sequence.take(0) && sequence.take(4));
        assert_eq!(sequence.lost(), 3);
        assert!(sequence.take(2));
        assert_eq!((sequence.lost(), sequence.missing.len()), (2, 2));
        assert!(!sequence.take(2) && !sequence.take(0) && !sequence.take(4));
        assert!(sequence.take(1) && sequence.take(3));
        assert_eq!((sequence.lost(), sequence.next), (0, 5));
    }
}
