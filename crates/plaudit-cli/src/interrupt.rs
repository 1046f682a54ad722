//! Graceful shutdown of a run: on a signal it starts no judge call, waits for those in flight, removes partial files and
//! says how to resume.

use crate::console::Console;
use crate::error::CliError;
use crate::signals::{Signal, Signals};
use crate::summary::whole;
use plaudit::engine::Engine;
use plaudit::journal::Store;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// How long calls in flight may take after a signal.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a run without calls in flight may take to end by itself.
const GRACE: Duration = Duration::from_millis(500);
/// Polling interval.
const TICK: Duration = Duration::from_millis(20);

/// Whether a signal has stopped the run, and how many judged batches are under way.
#[derive(Debug, Default)]
pub(crate) struct Interrupt {
    signal: AtomicU8,
    batches: AtomicUsize,
}

impl Interrupt {
    /// An error once a signal has stopped the run.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        match self.signal.load(SeqCst) {
            0 => Ok(()),
            signal => Err(CliError::Stopped(Stopped { signal, message: String::new() })),
        }
    }

    /// Counts a batch whose judge calls a stopped run waits for, until the guard is dropped.
    pub(crate) fn begin_batch(self: &Arc<Self>) -> BatchGuard {
        self.batches.fetch_add(1, SeqCst);
        BatchGuard(Arc::clone(self))
    }
}

/// A batch that is under way.
pub(crate) struct BatchGuard(Arc<Interrupt>);

impl Drop for BatchGuard {
    fn drop(&mut self) {
        self.0.batches.fetch_sub(1, SeqCst);
    }
}

/// A run that a signal stopped.
#[derive(Debug)]
pub(crate) struct Stopped {
    signal: Signal,
    /// What it leaves behind.
    message: String,
}

impl Stopped {
    /// The exit code that shells give to a signal.
    pub(crate) fn code(&self) -> u8 {
        128 + self.signal
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

/// Runs the work while listening for signals.
pub(crate) struct Watch<'w> {
    pub(crate) engine: &'w Engine,
    pub(crate) interrupt: &'w Interrupt,
    pub(crate) journal: Option<Store>,
    /// Files that are only whole when the run has finished.
    pub(crate) parts: Vec<PathBuf>,
    /// The name of the file that results go to, where they go to one.
    pub(crate) out: Option<&'w str>,
}

impl Watch<'_> {
    /// Runs the work. Where a signal stops it, the error says so.
    pub(crate) fn run<T>(&self, work: impl FnOnce() -> Result<T, CliError>) -> Result<T, CliError> {
        let Some((runtime, signals)) = listen() else { return work() };
        let done = std::thread::scope(|scope| {
            let (done_sender, done_receiver) = watch::channel(false);
            scope.spawn(move || runtime.block_on(self.listen(signals, done_receiver)));
            let done = work();
            done_sender.send_replace(true);
            done
        });
        match self.interrupt.signal.load(SeqCst) {
            0 => done,
            signal => Err(CliError::Stopped(self.stopped(signal))),
        }
    }

    fn stopped(&self, signal: Signal) -> Stopped {
        let message = match (&self.journal, self.out) {
            (Some(journal), _) if self.is_judged() => {
                let kept = journal.judgments();
                let kept = whole(kept) + if kept == 1 { " judgment is" } else { " judgments are" };
                format!("stopped: {kept} kept; run the same command again to go on")
            }
            (None, _) if self.is_judged() => {
                "stopped: nothing is kept; with --state a run can be gone on with".to_owned()
            }
            (_, Some(name)) => format!("stopped: {name:?} was not written; run the same command again"),
            (_, None) => "stopped: some results are missing on stdout; run the same command again".to_owned(),
        };
        Stopped { signal, message }
    }

    fn is_judged(&self) -> bool {
        !self.engine.plan().judges.is_empty()
    }

    async fn listen(&self, mut signals: Signals, mut over: watch::Receiver<bool>) {
        let first = tokio::select! {
            _ = over.wait_for(|over| *over) => return,
            signal = signals.next() => signal,
        };
        self.interrupt.signal.store(first, SeqCst);
        self.engine.stop();
        let until = Instant::now() + PATIENCE;
        let mut idle = Instant::now();
        // Rules have nothing in flight that is worth waiting for.
        while self.is_judged() && idle.elapsed() < GRACE {
            let again = tokio::select! {
                _ = over.wait_for(|over| *over) => return,
                _ = signals.next() => true,
                () = sleep(TICK) => false,
            };
            if again || Instant::now() > until {
                self.engine.abandon();
                break;
            }
            if self.interrupt.batches.load(SeqCst) > 0 {
                idle = Instant::now();
            }
        }
        tokio::select! {
            _ = over.wait_for(|over| *over) => {}
            _ = signals.next(), if !self.is_judged() => self.leave(first),
            () = sleep(GRACE) => self.leave(first),
        }
    }

    /// Exits although the run is blocked, such as in a read from an idle pipe.
    fn leave(&self, signal: Signal) {
        for part in &self.parts {
            let _ = std::fs::remove_file(part);
        }
        let stopped = self.stopped(signal);
        Console::for_run(false, None).info(&stopped.to_string());
        std::process::exit(i32::from(stopped.code()));
    }
}

/// A runtime for signals alone. Without it Ctrl-C kills the process, and the journal still keeps what was answered.
fn listen() -> Option<(Runtime, Signals)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let signals = runtime.block_on(async { Signals::new() }).ok()?;
    Some((runtime, signals))
}
