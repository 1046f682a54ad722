//! What tells the command to end before it is done? Ctrl-C, the signal to terminate, or a terminal that was closed.

use std::io;

/// A signal to end, as its number.
pub(crate) type Signal = u8;

/// Listens for signals. From when it is made, no such signal kills the process.
#[derive(Debug)]
pub(crate) struct Ending {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    /// None where hangups are ignored.
    hangup: Option<tokio::signal::unix::Signal>,
}

impl Ending {
    /// Begins to listen; it needs a runtime around it.
    pub(crate) fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let hangup = (!ignores_hangup()).then(|| signal(SignalKind::hangup())).transpose()?;
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup,
        })
    }

    /// The next signal.
    pub(crate) async fn told(&mut self) -> Signal {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => 2,
            _ = self.terminate.recv() => 15,
            _ = hangup => 1,
        }
    }
}

/// Whether the process was started so that hangups do not end it, as by `nohup`; to listen would undo that.
fn ignores_hangup() -> bool {
    let ignored = || {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    };
    // Where that cannot be known, a hangup does what it does by itself.
    ignored().is_none_or(|mask| mask & 1 == 1)
}
