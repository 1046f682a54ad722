//! Reorder buffer: results wait until all earlier ones have been written.

use std::collections::VecDeque;

/// Results that wait for earlier ones.
#[derive(Debug)]
pub(crate) struct ReorderBuffer<P> {
    /// The place of the first slot.
    first: u64,
    slots: VecDeque<Option<P>>,
    bytes: usize,
}

impl<P> ReorderBuffer<P> {
    /// Waiting for the result of place 0.
    pub(crate) fn new() -> Self {
        Self { first: 0, slots: VecDeque::new(), bytes: 0 }
    }

    /// About how many bytes the waiting results take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts the result of a place that has not been written yet.
    pub(crate) fn put(&mut self, place: u64, piece: P, bytes: usize) {
        let at = (place - self.first) as usize;
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        self.slots[at] = Some(piece);
        self.bytes += bytes + size_of::<Option<P>>();
    }

    /// The next result in order, where it is there.
    pub(crate) fn next(&mut self, bytes: impl Fn(&P) -> usize) -> Option<P> {
        if !matches!(self.slots.front(), Some(Some(_))) {
            return None;
        }
        let piece = self.slots.pop_front().flatten()?;
        self.first += 1;
        self.bytes -= bytes(&piece) + size_of::<Option<P>>();
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_out_in_order() {
        let mut queue = ReorderBuffer::new();
        let mut written = Vec::new();
        for place in [2u64, 0, 3, 1, 5, 4] {
            queue.put(place, place, 1);
            written.extend(std::iter::from_fn(|| queue.next(|_| 1)));
        }
        assert_eq!(written, [0, 1, 2, 3, 4, 5]);
        assert_eq!(queue.bytes(), 0);
    }
}
