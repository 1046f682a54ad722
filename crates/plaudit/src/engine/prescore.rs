//! What can be said of a rollout before its group is there? Everything that looks at one rollout alone: rules are asked when
//! it arrives, and so are judges that score one response at a time.
//!
//! What a rule says is kept in the row. What a judge is asked here, it is asked again when the group is scored, in the very
//! same words, because those never depend on the other members: the record then answers, or the call in flight does.

use super::{Engine, ScoreOptions};
use crate::exec::CancelToken;
use crate::judge::case::Member;
use crate::plan::{Component, Scorer};
use crate::report::Row;
use crate::rollout::Rollout;
use crate::rule::Sample;
use crate::text::Text;
use std::borrow::Borrow;
use std::sync::{Arc, OnceLock};

/// What has been found out about a rollout that still waits for its group. It is empty at first.
#[derive(Debug, Clone, Default)]
pub struct Prescored(Arc<OnceLock<Row>>);

impl Prescored {
    /// What has been found out, where the work is done.
    pub(super) fn row(&self) -> Option<&Row> {
        self.0.get()
    }

    /// Whether the rules have been asked.
    pub fn is_done(&self) -> bool {
        self.0.get().is_some()
    }
}

impl Engine {
    /// Begins with a rollout whose group is not complete yet. What is found out is put into `begun`, which goes to
    /// [`Engine::submit_prescored`] later. It comes back at once.
    pub fn begin<R: Borrow<Rollout<'static>> + Send + 'static>(
        self: &Arc<Self>,
        rollout: R,
        terms: &ScoreOptions,
        begun: &Prescored,
    ) {
        let (engine, terms, begun) = (Arc::clone(self), terms.clone(), begun.clone());
        self.pool.spawn(move || {
            // Where nobody else holds it any more, the group has been scored in the meantime.
            if Arc::strong_count(&begun.0) > 1
                && !terms.cancel.as_ref().is_some_and(CancelToken::is_cancelled)
            {
                engine.prescore_one(rollout.borrow(), &terms, &begun);
            }
        });
    }

    fn prescore_one(&self, rollout: &Rollout<'_>, terms: &ScoreOptions, begun: &Prescored) {
        let text = Text::new(&*rollout.response);
        let reference = rollout.reference.as_deref().map(Text::new);
        let sample = Sample {
            text: &text,
            reference: reference.as_ref(),
            prompt: rollout.prompt.as_ref(),
            tokens: rollout.tokens,
            extra: &rollout.extra,
        };
        let limit = self.limit(terms);
        let row = self.score_alone(rollout, &sample, &limit);
        if limit.reached().is_some() {
            return;
        }
        let mut rows = [row.clone()];
        // It cannot have been set before, because only this job holds it to be filled.
        let _ = begun.0.set(row);
        let Some((index, runner)) =
            rows[0].branch.zip(self.runner.as_ref().filter(|runner| !runner.is_dry()))
        else {
            return;
        };
        let members = [Member { rollout, text: &text }];
        let branch = &self.plan.branches[index];
        let alone = |component: &Component| self.asks_alone(component);
        let tasks = self.build_judge_tasks(index, branch, &members, &mut rows, terms, alone);
        if !tasks.is_empty() {
            let tasks = tasks.into_iter().map(|(_, task)| task).collect();
            runner.spawn(&self.plan, tasks, terms.cancel.as_ref(), drop);
        }
    }

    /// Whether a component asks a judge elsewhere about one response at a time.
    fn asks_alone(&self, component: &Component) -> bool {
        let Scorer::Judged(question) = &component.scorer else { return false };
        let remote = |(judge, _): (usize, Option<usize>)| !self.plan.judges[judge].base_urls.is_empty();
        !question.compares() && component.asks.is_some_and(remote)
    }
}
