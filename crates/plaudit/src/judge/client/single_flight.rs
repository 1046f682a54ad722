//! Is this very question being asked already? Equal questions in flight are asked once.

use super::record::held;
use crate::reason::Reason;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// What came of a flight: the judgment, or why there is none.
pub(super) type Landing = Result<Arc<[u8]>, Reason>;

type Key = [u8; 32];
type Board = Mutex<BTreeMap<Key, watch::Receiver<Option<Landing>>>>;

/// The questions in flight.
#[derive(Debug, Default)]
pub(super) struct Flights {
    board: Board,
}

/// Whether a question is to be asked, or waited for.
pub(super) enum Ticket<'f> {
    Lead(Leader<'f>),
    Follow(watch::Receiver<Option<Landing>>),
}

/// The one that asks. Dropped without a landing, it leaves the question to the next.
pub(super) struct Leader<'f> {
    board: &'f Board,
    key: Key,
    sender: watch::Sender<Option<Landing>>,
}

impl Flights {
    pub(super) fn join(&self, key: &Key) -> Ticket<'_> {
        let mut board = held(&self.board);
        if let Some(flight) = board.get(key) {
            return Ticket::Follow(flight.clone());
        }
        let (sender, receiver) = watch::channel(None);
        board.insert(*key, receiver);
        Ticket::Lead(Leader { board: &self.board, key: *key, sender })
    }
}

impl Leader<'_> {
    pub(super) fn land(self, landing: Landing) {
        let _ = self.sender.send(Some(landing));
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        held(self.board).remove(&self.key);
    }
}

/// What the flight came to, or none where its leader was dropped.
pub(super) async fn follow(mut flight: watch::Receiver<Option<Landing>>) -> Option<Landing> {
    flight.wait_for(Option::is_some).await.ok().and_then(|landing| landing.clone())
}
