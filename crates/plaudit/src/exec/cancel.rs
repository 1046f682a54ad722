//! Cancellation token of one scoring call.

use std::sync::Arc;
use tokio::sync::watch;

/// Cancels one scoring call: its judge calls are dropped, no further one starts, and rollouts without an outcome become
/// invalid. Clones share the state; a cancelled token stays cancelled.
#[derive(Debug, Clone)]
pub struct CancelToken(Arc<watch::Sender<bool>>);

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Cancels the call. Any thread may do so, any number of times.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Whether the call was cancelled.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Resolves when the call is cancelled.
    pub(crate) async fn cancelled(&self) {
        // It cannot fail, because the sender lives as long as this token.
        let _ = self.0.subscribe().wait_for(|cancelled| *cancelled).await;
    }
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}
