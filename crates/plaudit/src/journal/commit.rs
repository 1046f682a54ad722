//! Group commit: one thread syncs the log for all writes that are waiting.

use super::error::JournalError;
use super::writer::LogWriter;
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;
use tokio::sync::watch;

/// How far the log is on the disk.
#[derive(Debug, Clone)]
pub(super) struct Synced {
    pub(super) upto: u64,
    /// The sync that failed. None is tried after it: the system may have dropped what it could not write, and would
    /// report success.
    pub(super) failed: Option<JournalError>,
}

/// A record that is written, and will be on the disk.
#[derive(Debug)]
#[must_use = "nothing that follows from a record may be seen before it is durable"]
pub struct CommitHandle {
    pub(super) upto: u64,
    pub(super) synced: watch::Receiver<Synced>,
}

impl CommitHandle {
    /// Returns when the record is on the disk, or cannot be brought there. Holds no thread meanwhile.
    pub async fn durable(mut self) -> Result<(), JournalError> {
        let upto = self.upto;
        let over = self.synced.wait_for(|synced| synced.upto >= upto || synced.failed.is_some()).await;
        match over {
            Ok(synced) if synced.upto >= upto => Ok(()),
            Ok(synced) => match &synced.failed {
                Some(error) => Err(error.clone()),
                None => Err(closed()),
            },
            Err(_) => Err(closed()),
        }
    }

    /// As [`durable`](Self::durable), for a thread that has nothing else to do.
    pub fn wait(self) -> Result<(), JournalError> {
        let mut durable = pin!(self.durable());
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            match durable.as_mut().poll(&mut context) {
                Poll::Ready(result) => return result,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

/// The error for a record that comes after the journal was closed. A journal syncs before it closes, so that no handle waits
/// then; if one did, it must not look like success.
pub(super) fn closed() -> JournalError {
    JournalError::Io {
        doing: "sync",
        path: "judgments.log".into(),
        kind: std::io::ErrorKind::BrokenPipe,
        message: "the journal was closed".to_owned(),
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Starts the thread; none where the system has no thread to give.
pub(super) fn start(core: &Arc<LogWriter>) -> Option<JoinHandle<()>> {
    let core = Arc::clone(core);
    std::thread::Builder::new().name("plaudit-journal".to_owned()).spawn(move || run(&core)).ok()
}

/// How long a sync is put off where several records wait for one, so that it serves more of them. A record that is alone
/// does not wait.
const GATHERING: Duration = Duration::from_millis(2);

/// Syncs as long as there is something new, and sleeps while there is not.
fn run(core: &LogWriter) {
    let mut synced = core.synced.borrow().upto;
    loop {
        let mut state = core.lock();
        while state.wanted <= synced && !state.stopping {
            state = core.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.stopping {
            return;
        }
        drop(state);
        if core.synced.receiver_count() > 1 {
            std::thread::sleep(GATHERING);
        }
        synced = core.sync();
    }
}
