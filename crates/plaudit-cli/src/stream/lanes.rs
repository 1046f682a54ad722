//! How are several batches scored at once? A judge that is waited for leaves room for the next batch; batches are still
//! finished in their order.

use super::Batch;
use crate::interrupt::Interrupt;
use plaudit::engine::Engine;
use plaudit::error::RunError;
use plaudit::report::Report;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::Scope;
use std::time::Duration;

/// A batch and what the engine made of it.
pub(crate) type Scored = (Batch, Result<Report, RunError>);

/// Batches that are being scored, on threads of their own or, where there are none, on the caller's.
pub(super) struct Lanes<'r> {
    engine: &'r Engine,
    interrupt: &'r Interrupt,
    lanes: usize,
    jobs: Sender<(u64, Batch)>,
    done: Receiver<(u64, Scored)>,
    threads: Option<Threads>,
    early: BTreeMap<u64, Scored>,
    begun: u64,
    finished: u64,
}

/// Enough that the last calls of one batch never leave the judge idle.
const LANES: usize = 4;

/// How often a person sees how far calls have come.
const TICK: Duration = Duration::from_millis(200);

/// What became of a batch that was handed in.
pub(super) enum Pushed {
    /// It was scored at once.
    Done(Box<Scored>),
    /// It is under way, and there is room for more.
    Taken,
    /// It is under way, and the oldest one must be taken out.
    Full,
}

/// The threads, before they start. They end when the lanes are dropped.
pub(super) struct Threads {
    count: usize,
    work: Arc<Mutex<Receiver<(u64, Batch)>>>,
    out: Sender<(u64, Scored)>,
}

impl Threads {
    /// Starts them.
    pub(super) fn start<'s, 'e: 's>(
        self,
        engine: &'e Engine,
        interrupt: &'e Interrupt,
        scope: &'s Scope<'s, 'e>,
    ) {
        for _ in 0..self.count {
            let (work, out) = (Arc::clone(&self.work), self.out.clone());
            scope.spawn(move || {
                loop {
                    let job = work.lock().ok().and_then(|work| work.recv().ok());
                    let Some((at, batch)) = job else { return };
                    let report = interrupt.during(|| engine.score(&batch.rollouts));
                    if out.send((at, (batch, report))).is_err() {
                        return;
                    }
                }
            });
        }
    }
}

impl<'r> Lanes<'r> {
    /// As many lanes as the engine's plan deserves: rules keep all cores busy with one batch, judges do not.
    pub(super) fn new(engine: &'r Engine, interrupt: &'r Interrupt) -> Self {
        let lanes = if engine.plan().judges.is_empty() { 0 } else { LANES };
        let (jobs, work) = channel();
        let (out, done) = channel();
        let threads = Some(Threads { count: lanes, work: Arc::new(Mutex::new(work)), out });
        Self { engine, interrupt, lanes, jobs, done, threads, early: BTreeMap::new(), begun: 0, finished: 0 }
    }

    /// The threads, to be started.
    pub(super) fn threads(&mut self) -> Threads {
        let none = || Threads { count: 0, work: Arc::new(Mutex::new(channel().1)), out: channel().0 };
        self.threads.take().unwrap_or_else(none)
    }

    /// Takes a batch in.
    pub(super) fn push(&mut self, batch: Batch) -> Pushed {
        if self.lanes == 0 {
            let report = self.interrupt.during(|| self.engine.score(&batch.rollouts));
            return Pushed::Done(Box::new((batch, report)));
        }
        // The threads live as long as the lanes, so somebody takes it.
        let _ = self.jobs.send((self.begun, batch));
        self.begun += 1;
        if self.begun - self.finished >= self.lanes as u64 { Pushed::Full } else { Pushed::Taken }
    }

    /// The oldest batch that is under way, once it is done; nothing where none is. While it waits, it says so.
    pub(super) fn oldest(&mut self, waiting: impl Fn()) -> Option<Scored> {
        if self.finished == self.begun {
            return None;
        }
        while !self.early.contains_key(&self.finished) {
            match self.done.recv_timeout(TICK) {
                Ok((at, scored)) => drop(self.early.insert(at, scored)),
                Err(RecvTimeoutError::Timeout) => waiting(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        self.finished += 1;
        self.early.remove(&(self.finished - 1))
    }
}
