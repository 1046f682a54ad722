//! How is a batch scored while nobody waits for it? Rules on the pool, judges on the court's threads, each step handing over
//! to the next, and the caller told at the end, whatever happens on the way.

use super::judged::{Finished, Half, Open, finish};
use super::{Batch, Begun, Engine, Terms};
use crate::court::Heard;
use crate::error::RunError;
use crate::group::Group;
use crate::reason::Code;
use crate::report::{Report, Row};
use crate::rollout::Rollout;
use std::borrow::Borrow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

type Done<R> = Box<dyn FnOnce(Arc<Vec<R>>, Result<Report, RunError>) + Send>;

/// A batch on its way. Dropped before it has been told, it tells that something has failed.
struct Submission<R> {
    rollouts: Arc<Vec<R>>,
    begun: Arc<Vec<Begun>>,
    terms: Arc<Terms>,
    /// Whether most of it has been scored before.
    again: bool,
    done: Option<Done<R>>,
}

impl<R> Submission<R> {
    fn tell(mut self, report: Result<Report, RunError>) {
        if let Some(done) = self.done.take() {
            done(Arc::clone(&self.rollouts), report);
        }
    }
}

impl<R> Drop for Submission<R> {
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            let rollouts = Arc::clone(&self.rollouts);
            // A drop may be part of an unwinding, and must not begin another one.
            drop(catch_unwind(AssertUnwindSafe(|| done(rollouts, Err(RunError::Panicked)))));
        }
    }
}

impl Engine {
    /// Scores a batch as [`Engine::score_on`] does, without a thread that waits for it: `done` is called exactly once, with
    /// the rollouts and their report, on a thread of the engine's that it must not hold up for long. Thousands of
    /// batches may be under way at once.
    pub fn submit<R: Borrow<Rollout<'static>> + Send + Sync + 'static>(
        self: &Arc<Self>,
        rollouts: Vec<R>,
        terms: Terms,
        done: impl FnOnce(Arc<Vec<R>>, Result<Report, RunError>) + Send + 'static,
    ) {
        self.submit_begun(rollouts, Vec::new(), terms, done);
    }

    /// Scores a batch of which something has been begun, by [`Engine::begin`] on the same terms: what has been found out by
    /// now is not done again, and the report is the same. `begun` goes side by side with the rollouts, or is empty.
    pub fn submit_begun<R: Borrow<Rollout<'static>> + Send + Sync + 'static>(
        self: &Arc<Self>,
        rollouts: Vec<R>,
        begun: Vec<Begun>,
        terms: Terms,
        done: impl FnOnce(Arc<Vec<R>>, Result<Report, RunError>) + Send + 'static,
    ) {
        let (rollouts, begun, terms) = (Arc::new(rollouts), Arc::new(begun), Arc::new(terms));
        self.send(Submission { rollouts, begun, terms, again: false, done: Some(Box::new(done)) });
    }

    /// Scores a group most of which has been scored before: what has been bought then is used, on the sides on which it was
    /// shown.
    pub(crate) fn submit_again<R: Borrow<Rollout<'static>> + Send + Sync + 'static>(
        self: &Arc<Self>,
        rollouts: Vec<R>,
        terms: Terms,
        done: impl FnOnce(Arc<Vec<R>>, Result<Report, RunError>) + Send + 'static,
    ) {
        let (rollouts, begun, terms) = (Arc::new(rollouts), Arc::new(Vec::new()), Arc::new(terms));
        self.send(Submission { rollouts, begun, terms, again: true, done: Some(Box::new(done)) });
    }

    fn send<R: Borrow<Rollout<'static>> + Send + Sync + 'static>(self: &Arc<Self>, batch: Submission<R>) {
        let engine = Arc::clone(self);
        self.pool.spawn(move || match engine.gather(&batch.rollouts) {
            Ok(groups) => engine.ask_rules(batch, groups),
            Err(error) => batch.tell(Err(error)),
        });
    }

    fn ask_rules<R: Borrow<Rollout<'static>> + Send + Sync + 'static>(
        self: Arc<Self>,
        batch: Submission<R>,
        groups: Vec<Group>,
    ) {
        let groups = Arc::new(groups);
        let work = {
            let (engine, groups) = (Arc::clone(&self), Arc::clone(&groups));
            let (rollouts, terms) = (Arc::clone(&batch.rollouts), Arc::clone(&batch.terms));
            let begun = Arc::clone(&batch.begun);
            move |at: usize| {
                let batch = Batch { rollouts: &rollouts, begun: &begun, terms: &terms };
                engine.score_group(&batch, &groups[at])
            }
        };
        let engine = Arc::clone(&self);
        let count = groups.len();
        self.pool.map_then(count, work, move |halves| {
            let failed = |group: &Group| {
                let row = |member: &usize| {
                    let rollout: &Rollout<'_> = batch.rollouts[*member].borrow();
                    Row::refused(rollout.response.chars().count(), Code::Panic)
                };
                Half { rows: group.members.iter().map(row).collect(), hearings: Vec::new() }
            };
            let halves = halves
                .into_iter()
                .zip(groups.iter())
                .map(|(half, group)| half.unwrap_or_else(|| failed(group)));
            let mut halves: Vec<Half> = halves.collect();
            if !engine.asks_brought() {
                return engine.ask_judges(batch, groups, halves);
            }
            // On a thread of its own, because nobody knows how long a caller's function takes. Where the system gives
            // none, the batch is dropped, which tells that it has failed.
            let thread = std::thread::Builder::new().name("plaudit-brought".to_owned());
            let _ = thread.spawn(move || {
                engine.ask_brought(&batch.rollouts, &groups, &mut halves);
                engine.ask_judges(batch, groups, halves);
            });
        });
    }

    fn ask_judges<R: Borrow<Rollout<'static>> + Send + Sync + 'static>(
        self: Arc<Self>,
        batch: Submission<R>,
        groups: Arc<Vec<Group>>,
        halves: Vec<Half>,
    ) {
        let (open, mut hearings) = Open::of(halves);
        hearings.iter_mut().for_each(|hearing| hearing.again = batch.again);
        let (Some(court), false) = (self.court.clone(), hearings.is_empty()) else {
            return self.conclude(batch, groups, open, Vec::new());
        };
        let (plan, terms) = (Arc::clone(&self.plan), Arc::clone(&batch.terms));
        court.hear_then(&plan, hearings, terms.halt.as_ref(), move |heard: Vec<Heard>| {
            let (count, terms) = (heard.len(), Arc::clone(&batch.terms));
            let engine = Arc::clone(&self);
            let work = move |at: usize| finish(&heard[at], &terms);
            self.pool.map_then(count, work, move |finished| {
                let finished = finished.into_iter().map(|finished| finished.unwrap_or(Err(Code::Panic)));
                let finished = finished.collect();
                engine.conclude(batch, groups, open, finished);
            });
        });
    }

    fn conclude<R: Borrow<Rollout<'static>>>(
        &self,
        batch: Submission<R>,
        groups: Arc<Vec<Group>>,
        open: Open,
        finished: Vec<Finished>,
    ) {
        let (scored, findings) = self.close(open, finished);
        let report = self.report(&batch.rollouts, Arc::unwrap_or_clone(groups), scored, &findings);
        batch.tell(report);
    }
}
