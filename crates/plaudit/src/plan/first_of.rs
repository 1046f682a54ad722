//! `first_of`: a component made of others, the cheap ones first. The value is that of the first that says right; the last, which
//! may ask a judge, is asked only where none before it says so.

use super::{Branch, Scorer};
use crate::outcome::{Fact, Info, Outcome};
use crate::reward::{Properties, Range};

/// The components of a `first_of`, in the order in which they are tried.
#[derive(Debug, Clone, PartialEq)]
pub struct FirstOf {
    /// Their names, as written.
    pub names: Vec<String>,
    /// Their places in the branch.
    pub of: Vec<usize>,
    /// The range that all of them have; its upper end is what says right.
    pub range: Range,
}

impl FirstOf {
    /// Components that have not been looked up yet.
    pub(super) fn named(names: Vec<String>) -> Self {
        Self { names, of: Vec::new(), range: Range::new(0.0, 1.0) }
    }

    /// The range and the floor.
    pub const fn properties(&self) -> Properties {
        Properties::new(self.range)
    }

    fn is_right(&self, outcome: Option<&Outcome>) -> bool {
        matches!(outcome, Some(Outcome::Scored { value, .. }) if value.get() >= self.range.max)
    }

    /// Whether a component before this one says right, so that this one need not be asked.
    fn settles(&self, component: usize, outcomes: &[Option<Outcome>]) -> bool {
        let place = self.of.iter().position(|at| *at == component);
        let before = place.map_or(&[][..], |place| &self.of[..place]);
        before.iter().any(|at| self.is_right(outcomes[*at].as_ref()))
    }

    /// What the components come to. `why` tells how: `settled` by one before the last; `turned` into right by the last where those
    /// before it say wrong, or `confirmed` as not right; decided by the last `alone` where no other has a value; `unasked` where the
    /// last has none.
    pub(crate) fn outcome(&self, outcomes: &[Option<Outcome>]) -> Option<Outcome> {
        let (last, before) = self.of.split_last()?;
        let told = |at: usize, why| self.told(at, &outcomes[at], why);
        if let Some(at) = before.iter().find(|at| self.is_right(outcomes[**at].as_ref())) {
            return told(*at, "settled");
        }
        let valued = |at: &&usize| outcomes[**at].as_ref().is_some_and(|outcome| outcome.value().is_some());
        let earlier = before.iter().rev().find(valued);
        match (&outcomes[*last], earlier) {
            (None | Some(Outcome::Skipped(_)), Some(at)) => told(*at, "unasked"),
            (_, None) => told(*last, "alone"),
            (outcome, Some(_)) if self.is_right(outcome.as_ref()) => told(*last, "turned"),
            (_, Some(_)) => told(*last, "confirmed"),
        }
    }

    /// The outcome of one of the components, with its name and what it means for the others.
    fn told(&self, at: usize, outcome: &Option<Outcome>, why: &'static str) -> Option<Outcome> {
        let name = self.of.iter().position(|of| *of == at).map_or("", |place| &self.names[place]);
        match outcome.clone()? {
            Outcome::Scored { value, .. } => {
                let info = Info::of([("why", Fact::Word(why)), ("by", Fact::Text(name.to_owned()))]);
                Some(Outcome::Scored { value, info })
            }
            other => Some(other),
        }
    }
}

impl Branch {
    /// Whether a `first_of` has been settled by components before this one.
    pub(crate) fn is_settled(&self, component: usize, outcomes: &[Option<Outcome>]) -> bool {
        let first = |one: &super::Component| matches!(&one.scorer, Scorer::FirstOf(first) if first.settles(component, outcomes));
        self.components.iter().any(first)
    }

    /// Sets the outcomes of the components that are made of others.
    pub(crate) fn set_first_of(&self, outcomes: &mut [Option<Outcome>]) {
        for (at, component) in self.components.iter().enumerate() {
            if let Scorer::FirstOf(first) = &component.scorer {
                outcomes[at] = first.outcome(outcomes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::Code;

    #[test]
    fn the_last_is_heard_where_the_first_says_wrong() {
        let first =
            FirstOf { names: vec!["a".into(), "b".into()], of: vec![0, 1], range: Range::new(0.0, 1.0) };
        let scored = |value: f64| Some(Outcome::scored(value, Info::none()));
        let skipped = || Some(Outcome::skipped(Code::MissingReference));
        let floored = || Some(Outcome::floored(0.0, Code::MathTooLarge));
        let failed = || Some(Outcome::invalid(Code::JudgeTimeout));
        for (a, b, value, why) in [
            (scored(1.0), None, Some(1.0), "settled"),
            (scored(1.0), scored(0.0), Some(1.0), "settled"),
            (scored(0.0), scored(1.0), Some(1.0), "turned"),
            (floored(), scored(1.0), Some(1.0), "turned"),
            (scored(0.0), scored(0.0), Some(0.0), "confirmed"),
            (scored(0.0), skipped(), Some(0.0), "unasked"),
            (skipped(), scored(0.5), Some(0.5), "alone"),
            (Some(Outcome::invalid(Code::ReferenceUnparsable)), scored(1.0), Some(1.0), "alone"),
            (scored(0.0), failed(), None, ""),
            (skipped(), skipped(), None, ""),
        ] {
            let outcomes = [a, b];
            let outcome = first.outcome(&outcomes).expect("an outcome");
            assert_eq!(outcome.value(), value, "{outcomes:?}");
            let said = outcome.info().and_then(|info| info.get("why"));
            assert_eq!(said, (!why.is_empty()).then_some(&Fact::Word(why)), "{outcomes:?}");
        }
        assert_eq!(first.outcome(&[None, None]), None);
    }
}
