//! How is a batch scored while nobody waits for it? Rules on the pool, judges on the runner's threads, each step handing over
//! to the next, and the caller told at the end, whatever happens on the way.

use super::judged::{Finished, PendingJudgments, RuleResults, finish};
use super::{Batch, Engine, Prescored, ScoreOptions};
use crate::error::RunError;
use crate::group::Group;
use crate::judge::runner::JudgeTaskResult;
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
    begun: Arc<Vec<Prescored>>,
    terms: Arc<ScoreOptions>,
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
    /// Scores a batch as [`Engine::score_with`] does, without a thread that waits for it: `done` is called exactly once, with
    /// the rollouts and their report, on a thread of the engine's that it must not hold up for long. Thousands of
    /// batches may be under way at once.
    pub fn submit<R: Borrow<Rollout<'static>> + Send + Sync + 'static>(
        self: &Arc<Self>,
        rollouts: Vec<R>,
        terms: ScoreOptions,
        done: impl FnOnce(Arc<Vec<R>>, Result<Report, RunError>) + Send + 'static,
    ) {
        self.submit_prescored(rollouts, Vec::new(), terms, done);
    }

    /// Scores a batch of which something has been begun, by [`Engine::begin`] on the same terms: what has been found out by
    /// now is not done again, and the report is the same. `begun` goes side by side with the rollouts, or is empty.
    pub fn submit_prescored<R: Borrow<Rollout<'static>> + Send + Sync + 'static>(
        self: &Arc<Self>,
        rollouts: Vec<R>,
        begun: Vec<Prescored>,
        terms: ScoreOptions,
        done: impl FnOnce(Arc<Vec<R>>, Result<Report, RunError>) + Send + 'static,
    ) {
        let (rollouts, begun, terms) = (Arc::new(rollouts), Arc::new(begun), Arc::new(terms));
        self.send(Submission { rollouts, begun, terms, again: false, done: Some(Box::new(done)) });
    }

    /// Scores a group most of which has been scored before: what has been bought then is used, on the sides on which it was
    /// shown.
    pub(crate) fn submit_rescore<R: Borrow<Rollout<'static>> + Send + Sync + 'static>(
        self: &Arc<Self>,
        rollouts: Vec<R>,
        terms: ScoreOptions,
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
        self.pool.map_then(count, work, move |rule_results| {
            let failed = |group: &Group| {
                let row = |member: &usize| {
                    let rollout: &Rollout<'_> = batch.rollouts[*member].borrow();
                    Row::refused(rollout.response.chars().count(), Code::Panic)
                };
                RuleResults { rows: group.members.iter().map(row).collect(), tasks: Vec::new() }
            };
            let rule_results = rule_results
                .into_iter()
                .zip(groups.iter())
                .map(|(rule_result, group)| rule_result.unwrap_or_else(|| failed(group)));
            let mut rule_results: Vec<RuleResults> = rule_results.collect();
            if !engine.asks_brought() {
                return engine.ask_judges(batch, groups, rule_results);
            }
            // On a thread of its own, because nobody knows how long a caller's function takes. Where the system gives
            // none, the batch is dropped, which tells that it has failed.
            let thread = std::thread::Builder::new().name("plaudit-brought".to_owned());
            let _ = thread.spawn(move || {
                engine.score_custom(&batch.rollouts, &groups, &mut rule_results);
                engine.ask_judges(batch, groups, rule_results);
            });
        });
    }

    fn ask_judges<R: Borrow<Rollout<'static>> + Send + Sync + 'static>(
        self: Arc<Self>,
        batch: Submission<R>,
        groups: Arc<Vec<Group>>,
        rule_results: Vec<RuleResults>,
    ) {
        let (open, mut tasks) = PendingJudgments::of(rule_results);
        tasks.iter_mut().for_each(|task| task.again = batch.again);
        let (Some(runner), false) = (self.runner.clone(), tasks.is_empty()) else {
            return self.conclude(batch, groups, open, Vec::new());
        };
        let (plan, terms) = (Arc::clone(&self.plan), Arc::clone(&batch.terms));
        runner.spawn(&plan, tasks, terms.cancel.as_ref(), move |results: Vec<JudgeTaskResult>| {
            let (count, terms) = (results.len(), Arc::clone(&batch.terms));
            let engine = Arc::clone(&self);
            let work = move |at: usize| finish(&results[at], &terms);
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
        open: PendingJudgments,
        finished: Vec<Finished>,
    ) {
        let (scored, findings) = self.close(open, finished);
        let report = self.report(&batch.rollouts, Arc::unwrap_or_clone(groups), scored, &findings);
        batch.tell(report);
    }
}
