//! When is a group taken up? While its judge has fewer calls before it than it can answer soon.

use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// The calls that are before one judge: sent, or waiting to be.
#[derive(Debug)]
pub(super) struct Queue {
    /// A new group is taken up only while there are fewer.
    enough: usize,
    calls: AtomicUsize,
    room: Notify,
}

impl Queue {
    /// Twice what may be in flight: the judge never runs idle, and no group waits long behind others once it has begun.
    pub(super) fn of(concurrency: usize) -> Self {
        Self { enough: 2 * concurrency, calls: AtomicUsize::new(0), room: Notify::new() }
    }

    /// Waits until a group may be taken up.
    pub(super) async fn admit(&self) {
        loop {
            let room = self.room.notified();
            if self.calls.load(Ordering::Acquire) < self.enough {
                // Where there is room for one, there may be for the next.
                self.room.notify_one();
                return;
            }
            room.await;
        }
    }

    pub(super) fn begin(&self) -> Place<'_> {
        self.calls.fetch_add(1, Ordering::AcqRel);
        Place(self)
    }
}

/// A place before a judge, which the next call may have when this one has ended or been dropped.
pub(super) struct Place<'q>(&'q Queue);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.0.calls.fetch_sub(1, Ordering::AcqRel) <= self.0.enough {
            self.0.room.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn groups_wait_until_there_is_room_and_all_get_their_turn() {
        let queue = Arc::new(Queue::of(1));
        let group = |queue: Arc<Queue>| async move {
            queue.admit().await;
            let places: Vec<Place<'_>> = (0..3).map(|_| queue.begin()).collect();
            let before = queue.calls.load(Ordering::Acquire);
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(places);
            before
        };
        let groups: Vec<_> = (0..20).map(|_| tokio::spawn(group(Arc::clone(&queue)))).collect();
        for group in groups {
            let before = tokio::time::timeout(Duration::from_secs(100), group).await.expect("its turn");
            assert!(before.expect("no panic") <= 4, "a group is taken up while fewer than two calls wait");
        }
        assert_eq!(queue.calls.load(Ordering::Acquire), 0);
    }
}
