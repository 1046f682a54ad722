//! Signal handling: Ctrl-C, SIGTERM and SIGHUP.

use std::io;

/// The number of a signal that ends the process.
pub(crate) type Signal = u8;

/// Signal listener. Once it exists, these signals no longer kill the process.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    /// None where hangups are ignored.
    hangup: Option<tokio::signal::unix::Signal>,
}

impl Signals {
    /// Starts to listen. Needs a tokio runtime.
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
    pub(crate) async fn next(&mut self) -> Signal {
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
