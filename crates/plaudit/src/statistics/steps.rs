//! Statistics per training step: since the last step and in total, in bounded memory.

use super::Statistics;
use crate::plan::Plan;
use crate::report::{Report, Row};
use serde::Serialize;
use std::sync::Arc;

/// What was scored in one step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// The trainer's number of the step.
    pub step: u64,
    /// Everything about it.
    pub statistics: Statistics,
}

impl Step {
    /// The mean and the standard deviation of the totals, where there is one; what the next step's rewards may be
    /// measured against.
    pub fn mean_std(&self) -> Option<(f64, f64)> {
        let moments = &self.statistics.total.moments;
        Some((moments.mean, moments.std()?))
    }

    /// The same of each component, in the order of the recipe.
    pub fn components(&self) -> impl Iterator<Item = (&str, Option<(f64, f64)>)> {
        self.statistics.components.iter().map(|(name, column)| {
            let moments = &column.values.moments;
            (name.as_str(), moments.std().map(|std| (moments.mean, std)))
        })
    }
}

/// Statistics over many calls, cut into steps.
#[derive(Debug)]
pub struct Steps {
    plan: Arc<Plan>,
    /// Of all steps that have ended.
    ended: Statistics,
    /// Since then.
    current: Statistics,
    last: Option<Step>,
}

impl Steps {
    /// Of nothing so far.
    pub fn of(plan: &Arc<Plan>) -> Self {
        let none = || Statistics::of(plan);
        Self { plan: Arc::clone(plan), ended: none(), current: none(), last: None }
    }

    /// Takes in all of a report.
    pub fn observe(&mut self, report: &Report) {
        self.current.merge(&report.statistics);
    }

    /// Takes in one row, without its group.
    pub(crate) fn observe_row(&mut self, row: &Row, tokens: Option<u64>) {
        self.current.observe(&self.plan, row, tokens);
    }

    /// Takes in a group, without its rows.
    pub(crate) fn observe_group<'r>(&mut self, rows: impl ExactSizeIterator<Item = &'r Row> + Clone) {
        self.current.observe_group(rows);
    }

    /// Takes in what judges said of a report, without its rows.
    pub(crate) fn observe_judging(&mut self, report: &Report) {
        for (name, column) in &report.statistics.components {
            if let Some(judging) = &column.judging {
                self.current.observe_judging(name, &judging.0);
            }
        }
    }

    /// Takes note of a rollout that came after its group had been scored.
    pub(crate) fn observe_late(&mut self) {
        self.current.groups.split += 1;
    }

    /// Over all calls so far.
    pub fn statistics(&self) -> Statistics {
        let mut all = self.ended.clone();
        all.merge(&self.current);
        all
    }

    /// Ends a step: everything since the step before is what was scored in it. A step that is ended twice has both parts.
    pub fn take(&mut self, step: u64) -> Step {
        let current = std::mem::replace(&mut self.current, Statistics::of(&self.plan));
        self.ended.merge(&current);
        let statistics = match self.last.take() {
            Some(mut last) if last.step == step => {
                last.statistics.merge(&current);
                last.statistics
            }
            _ => current,
        };
        let ended = Step { step, statistics };
        self.last = Some(ended.clone());
        ended
    }

    /// The step that ended last.
    pub fn last(&self) -> Option<&Step> {
        self.last.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::recipe::Recipe;
    use crate::rollout::Rollout;

    #[test]
    fn steps_are_cut_and_add_up() {
        let yaml = "components: { length: { reward: length_penalty, min_length: 9, penalty_rate: 1.0 } }\n";
        let engine = Engine::new(Recipe::from_yaml(yaml).expect("a recipe").plan().expect("a plan"))
            .expect("an engine");
        let score = |texts: &[&str]| {
            let rollouts: Vec<Rollout<'_>> =
                texts.iter().map(|text| Rollout::new(*text).in_group("g")).collect();
            engine.score(&rollouts).expect("a report")
        };
        let mut steps = Steps::of(&score(&[]).plan);
        assert_eq!(steps.take(0).mean_std(), None, "nothing has no mean");
        steps.observe(&score(&["12345", "1234567"]));
        let one = steps.take(1);
        assert_eq!(one.mean_std(), Some((-3.0, 1.0)));
        assert_eq!(one.components().collect::<Vec<_>>(), [("length", Some((-3.0, 1.0)))]);
        steps.observe(&score(&["123456789"]));
        let two = steps.take(2);
        assert_eq!((two.mean_std(), steps.last()), (Some((0.0, 0.0)), Some(&two)));
        steps.observe(&score(&["12345678"]));
        assert_eq!(steps.take(2).statistics.rollouts, 2, "the step goes on");
        assert_eq!((steps.statistics().rollouts, steps.statistics().groups.count), (4, 3));
    }
}
