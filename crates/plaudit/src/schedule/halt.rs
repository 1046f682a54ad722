//! How does a caller let go of its own work, and of nobody else's? With a flag that any thread can raise.

use std::sync::Arc;
use tokio::sync::watch;

/// Lets go of one scoring call: its calls to judges are dropped, none begin, and what has no outcome yet is invalid.
/// Clones raise the same flag. It is never lowered.
#[derive(Debug, Clone)]
pub struct Halt(Arc<watch::Sender<bool>>);

impl Halt {
    /// A flag that is not raised.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Raises it, for good.
    pub fn raise(&self) {
        self.0.send_replace(true);
    }

    /// Whether it is raised.
    pub fn is_raised(&self) -> bool {
        *self.0.borrow()
    }

    /// Resolves when it is raised.
    pub(crate) async fn raised(&self) {
        // It cannot fail, because the sender lives as long as this flag.
        let _ = self.0.subscribe().wait_for(|raised| *raised).await;
    }
}

impl Default for Halt {
    fn default() -> Self {
        Self::new()
    }
}
