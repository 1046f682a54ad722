//! Ends a run in which nothing can be scored: its requests are refused with the reason, until one of its rollouts is scored again.

use super::alarms::ENOUGH;
use crate::http::response::ApiError;
use hyper::StatusCode;
use plaudit::abort::{Abort, AbortAfter, AbortCounter};
use plaudit::rollout::Rollout;
use plaudit::statistics::Counts;

/// What a run has scored since its last valid rollout.
#[derive(Debug)]
pub(crate) struct RunAbort {
    after: AbortAfter,
    steps: AbortCounter,
    had_scored: bool,
    /// The newest step, and its outcomes so far.
    step: Option<u64>,
    outcomes: Counts,
    /// Why the run is to end, where it is.
    ending: Option<Abort>,
}

impl RunAbort {
    pub(crate) fn new(after: AbortAfter) -> Self {
        let (steps, outcomes) = (AbortCounter::new(after), Counts::default());
        Self { after, steps, had_scored: false, step: None, outcomes, ending: None }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.after != AbortAfter::Never
    }

    /// Counts outcomes of a step; the windows of time that stand for steps without a number are none. Says why the run is to end.
    ///
    /// Requests bring parts of a step, so that one counts when a later one begins; and at once where enough of it shows that nothing
    /// can be scored and that this cannot heal.
    pub(crate) fn observe(&mut self, step: Option<u64>, outcomes: &Counts) -> Option<&Abort> {
        if outcomes.has_scored() {
            self.steps.observe_counts(outcomes);
            (self.had_scored, self.step, self.ending) = (true, step, None);
            self.outcomes = Counts::default();
            return None;
        }
        if step.is_some() && self.step < step {
            let outcomes = std::mem::take(&mut self.outcomes);
            self.ending = self.steps.observe_counts(&outcomes).or(self.ending.take());
            self.step = step;
        }
        self.outcomes.merge(outcomes);
        if self.ending.is_none() && !self.had_scored && self.outcomes.all() >= ENOUGH {
            self.ending = AbortCounter::new(self.after.patient()).observe_counts(&self.outcomes);
        }
        self.ending.as_ref()
    }
}

/// The answer to a request of a run that is to end.
pub(crate) fn refusal(abort: &Abort, rollout: Option<&Rollout<'_>>) -> ApiError {
    let mut message = abort.to_string().trim_end_matches('.').to_owned();
    let names: Vec<&str> =
        rollout.iter().flat_map(|rollout| rollout.extra.keys()).map(String::as_str).collect();
    if let Some(advice) = abort.advice(names.into_iter(), "send \"COLUMN\" as \"reference\"") {
        message.push_str(&format!("; {advice}"));
    }
    message.push_str(". The run goes on as soon as one of its rollouts can be scored");
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "run.nothing_scored", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plaudit::outcome::OutcomeKind::{Invalid, Scored};
    use plaudit::reason::Code;

    fn failed(code: Code, count: usize) -> Counts {
        let mut counts = Counts::default();
        (0..count).for_each(|_| counts.observe(Invalid, Some(code)));
        counts
    }

    fn scored() -> Counts {
        let mut counts = Counts::default();
        counts.observe(Scored, None);
        counts
    }

    #[test]
    fn wrong_column_ends_a_run_once_enough_is_seen() {
        let mut abort = RunAbort::new(AbortAfter::default());
        let part = failed(Code::MissingReference, 8);
        assert!((0..3).all(|_| abort.observe(Some(1), &part).is_none()));
        assert!(!abort.observe(Some(1), &part).unwrap().can_heal);
        assert!(abort.observe(Some(1), &scored()).is_none(), "it goes on when something is scored");
        assert!((0..9).all(|_| abort.observe(Some(1), &part).is_none()));
        let mut abort = RunAbort::new(AbortAfter::Never);
        assert!((0..99).all(|step| abort.observe(Some(step), &part).is_none()));
    }

    #[test]
    fn judge_that_stays_down_ends_a_run_after_some_steps() {
        let mut abort = RunAbort::new(AbortAfter::Steps(2));
        let part = failed(Code::JudgeConnect, 40);
        for step in [1, 1, 2, 1, 2] {
            assert!(abort.observe(Some(step), &part).is_none(), "{step}");
        }
        assert_eq!(abort.observe(Some(3), &part).unwrap().steps, 2);
        assert!(abort.observe(None, &part).is_some());
        let mut abort = RunAbort::new(AbortAfter::Steps(2));
        assert!((0..99).all(|_| abort.observe(None, &part).is_none()), "a window of time is no step");
    }
}
