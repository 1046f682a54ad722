//! What tells the command to end before it is done? Ctrl-C, or the signal to terminate.

use std::io;

/// A signal to end, as its number.
pub(crate) type Signal = u8;

/// Listens for signals. From when it is made, no such signal kills the process.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct Ending([tokio::signal::unix::Signal; 2]);

#[cfg(unix)]
impl Ending {
    /// Begins to listen; it needs a runtime around it.
    pub(crate) fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self([signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]))
    }

    /// The next signal.
    pub(crate) async fn told(&mut self) -> Signal {
        let [interrupt, terminate] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => 2,
            _ = terminate.recv() => 15,
        }
    }
}

/// Listens for Ctrl-C. From when it is made, it does not kill the process.
#[cfg(windows)]
#[derive(Debug)]
pub(crate) struct Ending(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Ending {
    /// Begins to listen; it needs a runtime around it.
    pub(crate) fn new() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    /// The next Ctrl-C, as if it were a signal.
    pub(crate) async fn told(&mut self) -> Signal {
        self.0.recv().await;
        2
    }
}
