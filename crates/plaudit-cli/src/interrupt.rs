//! What happens to a run on Ctrl-C? It stops asking judges, keeps what is still answered, takes unfinished files away, and
//! says how to go on.

use crate::ending::{Ending, Signal};
use crate::failure::Failure;
use crate::summary::whole;
use crate::talk::Talk;
use plaudit::engine::Engine;
use plaudit::journal::Store;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// How long calls in flight may take to land after a signal.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a run that asks nothing any more may take to end by itself.
const GRACE: Duration = Duration::from_millis(500);
/// How often it is looked at.
const TICK: Duration = Duration::from_millis(20);

/// Whether a run was told to stop, and whether it has anything under way.
#[derive(Debug, Default)]
pub(crate) struct Interrupt {
    signal: AtomicU8,
    batches: AtomicUsize,
}

impl Interrupt {
    /// Goes on unless the run was told to stop.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.signal.load(SeqCst) {
            0 => Ok(()),
            signal => Err(Failure::Stopped(Stopped { signal, left: Left::Nothing })),
        }
    }

    /// Does something that calls in flight are waited for in.
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.batches.fetch_add(1, SeqCst);
        let done = work();
        self.batches.fetch_sub(1, SeqCst);
        done
    }
}

/// A run that was stopped, and what is left of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stopped {
    signal: Signal,
    left: Left,
}

/// What a run that was stopped leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Left {
    /// A journal with so many judgments.
    Judgments(u64),
    /// Nothing of what judges were asked.
    Nothing,
    /// Some results on stdout; there were no judges.
    Results,
    /// No file under this name; there were no judges.
    NoFile(String),
}

impl Stopped {
    /// The exit code that shells give to a signal.
    pub(crate) fn code(&self) -> u8 {
        128 + self.signal
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.left {
            Left::Judgments(kept) => {
                let (noun, verb) = if *kept == 1 { ("judgment", "is") } else { ("judgments", "are") };
                write!(
                    out,
                    "stopped: {} {noun} {verb} kept; run the same command again to go on",
                    whole(*kept)
                )
            }
            Left::Nothing => {
                out.write_str("stopped: nothing is kept; with --state a run can be gone on with")
            }
            Left::Results => {
                out.write_str("stopped: some results are missing on stdout; run the same command again")
            }
            Left::NoFile(name) => {
                write!(out, "stopped: {name:?} was not written; run the same command again")
            }
        }
    }
}

/// A run that listens for signals.
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
    /// Does the work of the run. Where it is stopped before it is done, that is said instead.
    pub(crate) fn over<T>(&self, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let Some((runtime, ending)) = listen() else { return work() };
        let done = std::thread::scope(|scope| {
            let (over, told) = watch::channel(false);
            scope.spawn(move || runtime.block_on(self.listen(ending, told)));
            let done = work();
            over.send_replace(true);
            done
        });
        match self.interrupt.signal.load(SeqCst) {
            0 => done,
            signal => Err(Failure::Stopped(self.stopped(signal))),
        }
    }

    fn stopped(&self, signal: Signal) -> Stopped {
        let left = match (&self.journal, self.out) {
            (Some(journal), _) if self.is_judged() => Left::Judgments(journal.judgments()),
            (None, _) if self.is_judged() => Left::Nothing,
            (_, Some(name)) => Left::NoFile(name.to_owned()),
            (_, None) => Left::Results,
        };
        Stopped { signal, left }
    }

    fn is_judged(&self) -> bool {
        !self.engine.plan().judges.is_empty()
    }

    async fn listen(&self, mut ending: Ending, mut over: watch::Receiver<bool>) {
        let first = tokio::select! {
            _ = over.wait_for(|over| *over) => return,
            signal = ending.told() => signal,
        };
        self.interrupt.signal.store(first, SeqCst);
        self.engine.stop();
        let until = Instant::now() + PATIENCE;
        let mut idle = Instant::now();
        // Rules have nothing in flight that is worth waiting for.
        while self.is_judged() && idle.elapsed() < GRACE {
            let again = tokio::select! {
                _ = over.wait_for(|over| *over) => return,
                _ = ending.told() => true,
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
            _ = ending.told(), if !self.is_judged() => self.leave(first),
            () = sleep(GRACE) => self.leave(first),
        }
    }

    /// Ends the process although the run hangs, such as in a read from a pipe into which nobody writes.
    fn leave(&self, signal: Signal) {
        for part in &self.parts {
            let _ = std::fs::remove_file(part);
        }
        let stopped = self.stopped(signal);
        Talk::of_run(false, None).say(&stopped.to_string());
        std::process::exit(i32::from(stopped.code()));
    }
}

/// A runtime for signals alone, and the signals; without them Ctrl-C kills, which loses nothing that was kept.
fn listen() -> Option<(Runtime, Ending)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let ending = runtime.block_on(async { Ending::new() }).ok()?;
    Some((runtime, ending))
}
