//! Ends a run in which nothing can be scored: its requests are refused with the reason, until one of its rollouts is scored again.

use super::alarms::ENOUGH;
use crate::http::response::ApiError;
use hyper::StatusCode;
use plaudit::abort::{Abort, AbortAfter, AbortCounter};
use plaudit::report::Row;
use plaudit::rollout::Rollout;
use plaudit::statistics::Counts;

/// Requests without the number of a step: so many seconds of them are one.
const STEPLESS_STEP: f64 = 60.0;

/// What a run has scored since its last valid rollout.
#[derive(Debug)]
pub(crate) struct RunAbort {
    after: AbortAfter,
    steps: AbortCounter,
    had_scored: bool,
    /// The newest step, and its outcomes so far.
    step: Option<u64>,
    /// The newest stretch of time that stands for a step.
    stretch: Option<u64>,
    outcomes: Counts,
    /// Why the run is to end, where it is.
    ending: Option<Abort>,
}

impl RunAbort {
    pub(crate) fn new(after: AbortAfter) -> Self {
        let (steps, outcomes) = (AbortCounter::new(after), Counts::default());
        Self { after, steps, had_scored: false, step: None, stretch: None, outcomes, ending: None }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.after != AbortAfter::Never
    }

    /// Counts outcomes of a step at a time, in seconds. A run without numbers of steps has a step a minute. Says why the run is to
    /// end.
    ///
    /// Requests bring parts of a step, so that one counts when a later one begins; and at once where enough of it shows that nothing
    /// can be scored and that this cannot heal.
    pub(crate) fn observe(&mut self, step: Option<u64>, now: f64, outcomes: &Counts) -> Option<&Abort> {
        let (newest, this) = match step {
            Some(_) => (&mut self.step, step),
            None => (&mut self.stretch, Some((now / STEPLESS_STEP) as u64)),
        };
        if outcomes.has_scored() {
            *newest = this;
            self.steps.observe_counts(outcomes);
            (self.had_scored, self.ending) = (true, None);
            self.outcomes = Counts::default();
            return None;
        }
        let is_later = *newest < this;
        *newest = this.max(*newest);
        // In a run that has numbers of steps, requests without one belong to the newest.
        if is_later && (step.is_some() || self.step.is_none()) {
            let outcomes = std::mem::take(&mut self.outcomes);
            self.ending = self.steps.observe_counts(&outcomes).or(self.ending.take());
        }
        self.outcomes.merge(outcomes);
        if self.ending.is_none() && !self.had_scored && self.outcomes.all() >= ENOUGH {
            self.ending = AbortCounter::new(self.after.patient()).observe_counts(&self.outcomes);
        }
        self.ending.as_ref()
    }
}

/// The answer to a request of a run that is to end, in the words of its own rows where one has that reason.
pub(crate) fn refusal(abort: &Abort, rows: &[Row], rollout: Option<&Rollout<'_>>) -> ApiError {
    let mut reasons = rows.iter().filter_map(|row| row.total.cause()).map(|cause| &cause.reason);
    let own = reasons.find(|reason| reason.code.as_str() == abort.code);
    let said = own.map_or(&*abort.message, |reason| &*reason.message).to_owned();
    let mut message = Abort { message: said, ..abort.clone() }.to_string().trim_end_matches('.').to_owned();
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
        assert!((0..3).all(|_| abort.observe(Some(1), 0.0, &part).is_none()));
        assert!(!abort.observe(Some(1), 0.0, &part).unwrap().can_heal);
        assert!(abort.observe(Some(1), 0.0, &scored()).is_none(), "it goes on when something is scored");
        assert!((0..9).all(|_| abort.observe(Some(1), 0.0, &part).is_none()));
        let mut abort = RunAbort::new(AbortAfter::Never);
        assert!((0..99).all(|step| abort.observe(Some(step), 0.0, &part).is_none()));
    }

    #[test]
    fn judge_that_stays_down_ends_a_run_after_some_steps() {
        let mut abort = RunAbort::new(AbortAfter::Steps(2));
        let part = failed(Code::JudgeConnect, 40);
        for step in [1, 1, 2, 1, 2] {
            assert!(abort.observe(Some(step), 0.0, &part).is_none(), "{step}");
        }
        assert_eq!(abort.observe(Some(3), 0.0, &part).unwrap().steps, 2);
        assert!(abort.observe(None, 0.0, &part).is_some());
    }

    #[test]
    fn minute_without_numbers_of_steps_is_a_step() {
        let part = failed(Code::JudgeConnect, 40);
        let mut abort = RunAbort::new(AbortAfter::Steps(2));
        for now in [600.0, 630.0, 659.0, 660.0, 719.0] {
            assert!(abort.observe(None, now, &part).is_none(), "{now}");
        }
        assert_eq!(abort.observe(None, 720.0, &part).unwrap().steps, 2);
        assert!(abort.observe(None, 721.0, &scored()).is_none());
        let mut abort = RunAbort::new(AbortAfter::Steps(2));
        assert!((0..99).all(|_| abort.observe(None, 0.0, &part).is_none()), "a request is no step");
        let mut numbered = RunAbort::new(AbortAfter::Steps(2));
        assert!(numbered.observe(Some(1), 600.0, &part).is_none());
        let mut later = (0..99).map(|minute| f64::from(minute) * 60.0);
        assert!(later.all(|now| numbered.observe(None, now, &part).is_none()));
    }
}
