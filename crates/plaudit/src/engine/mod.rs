//! How do rollouts become a report? The main path: gather groups, score them in parallel, compose, report.

mod brought;
mod judged;

use crate::compose::{self, Cause, Total};
use crate::court::{Court, Exchange, Foreseen, Setup};
use crate::error::RunError;
use crate::group::{self, Group, Key};
use crate::judge::case::Member;
use crate::outcome::{Outcome, Score};
use crate::plan::{Branch, Gate, Plan, Scorer};
use crate::reason::{Code, Reason};
use crate::report::{Report, Row};
use crate::rollout::Rollout;
use crate::rule::{GroupRule, Rule, Sample};
use crate::schedule::Tally;
use crate::schedule::{Clock, Deadline, Monotonic, Pool};
use crate::text::Text;
use judged::Half;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A loaded recipe that scores rollouts. Starts no thread before the first batch that needs one.
#[derive(Debug)]
pub struct Engine {
    plan: Arc<Plan>,
    clock: Arc<dyn Clock>,
    pool: Pool,
    court: Option<Arc<Court>>,
}

impl Engine {
    /// An engine for a plan, without a journal and without keys.
    pub fn new(plan: Plan) -> Result<Self, RunError> {
        Self::open(plan, &Setup::default())
    }

    /// An engine for a plan, with what its judges need.
    pub fn open(plan: Plan, setup: &Setup<'_>) -> Result<Self, RunError> {
        let pool = Pool::new(plan.groups.parallel);
        let court = Court::new(&plan, setup)?.map(Arc::new);
        Ok(Self { plan: Arc::new(plan), clock: Arc::new(Monotonic::start()), pool, court })
    }

    /// The same engine, which takes its time from a clock of the caller's.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// What the engine does.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The threads that groups are scored on, for a front that has work of the same kind.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// What the judges have been asked so far, in the order of the plan.
    pub fn tallies(&self) -> Vec<Tally> {
        self.court.as_ref().map_or_else(Vec::new, |court| court.tallies())
    }

    /// What would be asked, where the engine was set up to count only.
    pub fn foreseen(&self) -> Vec<Foreseen> {
        self.court.as_ref().map_or_else(Vec::new, |court| court.foreseen())
    }

    /// Lets no further call to a judge begin; what is in flight is still answered and kept.
    pub fn stop(&self) {
        if let Some(court) = &self.court {
            court.stop();
        }
    }

    /// Lets no further call to a judge begin and waits for none: what is in flight may have been paid for, and is not
    /// kept.
    pub fn abandon(&self) {
        if let Some(court) = &self.court {
            court.abandon();
        }
    }

    /// Scores a batch. The rows of the report stand in the order of the rollouts, and are the same at any
    /// parallelism.
    pub fn score(&self, rollouts: &[Rollout<'_>]) -> Result<Report, RunError> {
        self.score_and_tell(rollouts, None)
    }

    /// Scores a batch and tells every call to a judge that was made for it.
    pub fn explain(&self, rollouts: &[Rollout<'_>]) -> Result<(Report, Vec<Exchange>), RunError> {
        let mut exchanges = Vec::new();
        let report = self.score_and_tell(rollouts, Some(&mut exchanges))?;
        Ok((report, exchanges))
    }

    fn score_and_tell(
        &self,
        rollouts: &[Rollout<'_>],
        told: Option<&mut Vec<Exchange>>,
    ) -> Result<Report, RunError> {
        let groups = group::gather(rollouts);
        if self.plan.groups.same_size {
            refuse_uneven(rollouts, &groups)?;
        }
        let mut halves = self.pool.map(&groups, |group| self.score_group(rollouts, group));
        self.ask_brought(rollouts, &groups, &mut halves);
        let (mut scored, findings) = self.judge(halves, told);
        scored.iter_mut().flatten().for_each(|row| self.settle(row));
        Report::new(Arc::clone(&self.plan), rollouts, groups, scored, &findings)
    }

    /// The report of rollouts that cannot be scored, such as those that come after their group has been.
    pub fn refuse(&self, rollouts: &[Rollout<'_>], code: Code) -> Report {
        Report::refused(Arc::clone(&self.plan), rollouts, code)
    }

    /// The rows of one group, in the order of its members, with what no judge is needed for, and the questions that
    /// judges are to be asked.
    fn score_group(&self, rollouts: &[Rollout<'_>], group: &Group) -> Half {
        let deadline = Deadline::after(self.clock.as_ref(), self.plan.groups.timeout);
        let originals = group::originals(rollouts, &group.members);
        let references = References::prepare(rollouts, &group.members);
        let texts: Vec<Option<Text<'_>>> = (group.members.iter().zip(&originals).enumerate())
            .map(|(at, (member, original))| {
                (at == *original).then(|| Text::new(&*rollouts[*member].response))
            })
            .collect();
        let samples: Vec<Sample<'_>> = (group.members.iter().zip(&originals).enumerate())
            .filter_map(|(at, (member, original))| {
                let rollout = &rollouts[*member];
                Some(Sample {
                    text: texts[*original].as_ref()?,
                    reference: references.of(at),
                    prompt: rollout.prompt.as_ref(),
                    tokens: rollout.tokens,
                    extra: &rollout.extra,
                })
            })
            .collect();
        let mut rows: Vec<Row> = Vec::with_capacity(samples.len());
        for (at, sample) in samples.iter().enumerate() {
            let row = match originals[at] {
                original if original < at => Row { duplicate: true, ..rows[original].clone() },
                _ => match self.plan.branch(&rollouts[group.members[at]]) {
                    Some(branch) => self.score_each(branch, sample, &deadline),
                    None => Row::refused(sample.text.chars(), Code::NoRoute),
                },
            };
            rows.push(row);
        }
        let mut hearings = Vec::new();
        for (index, branch) in self.plan.branches.iter().enumerate() {
            self.score_together(index, branch, &samples, &mut rows, &deadline);
            let members: Vec<Member<'_>> = (samples.iter().zip(&group.members))
                .map(|(sample, member)| Member { rollout: &rollouts[*member], text: sample.text })
                .collect();
            hearings.extend(self.call_hearings(index, branch, &members, &mut rows));
        }
        Half { rows, hearings }
    }

    /// Asks the components that look at one rollout alone: gates first, then the others.
    fn score_each(&self, index: usize, sample: &Sample<'_>, deadline: &Deadline<'_>) -> Row {
        let branch = &self.plan.branches[index];
        let mut row = Row::empty(index, branch.components.len(), sample.text.chars());
        let gates = branch.components.iter().enumerate().filter(|(_, component)| component.gate.is_some());
        for (at, component) in gates {
            let Scorer::Each(rule) = &component.scorer else { continue };
            let outcome = self.ask(rule.as_ref(), component.floor, sample, deadline);
            let closed = match (&component.gate, outcome.value()) {
                (Some(gate), Some(value)) => value < gate.min,
                _ => matches!(outcome, Outcome::Invalid(_)),
            };
            row.outcomes[at] = Some(outcome);
            if closed {
                row.closed_by = Some(at);
                return row;
            }
        }
        for (at, component) in branch.components.iter().enumerate() {
            if let (Scorer::Each(rule), None) = (&component.scorer, &row.outcomes[at]) {
                row.outcomes[at] = Some(self.ask(rule.as_ref(), component.floor, sample, deadline));
            }
        }
        row
    }

    /// Asks one rule about one rollout, within the limits. A rule that fails is data.
    fn ask(&self, rule: &dyn Rule, floor: f64, sample: &Sample<'_>, deadline: &Deadline<'_>) -> Outcome {
        if deadline.has_passed() {
            return Outcome::invalid(Code::GroupDeadline);
        }
        if self.is_too_long(sample) && !rule.any_length() {
            return Outcome::floored(floor, self.too_long());
        }
        match catch_unwind(AssertUnwindSafe(|| rule.score(sample))) {
            Ok(outcome) => with_floor(outcome, floor),
            Err(_) => Outcome::invalid(Code::Panic),
        }
    }

    /// Asks the components that look at the group as a whole, with the members whose gates are open.
    fn score_together(
        &self,
        index: usize,
        branch: &Branch,
        samples: &[Sample<'_>],
        rows: &mut [Row],
        deadline: &Deadline<'_>,
    ) {
        for (at, component) in branch.components.iter().enumerate() {
            let Scorer::Group(rule) = &component.scorer else { continue };
            let mut asked = Vec::new();
            for (member, row) in rows.iter_mut().enumerate() {
                if row.branch != Some(index) || row.closed_by.is_some() {
                    continue;
                }
                match self.is_too_long(&samples[member]) && !rule.any_length() {
                    true => row.outcomes[at] = Some(Outcome::floored(component.floor, self.too_long())),
                    false => asked.push(member),
                }
            }
            let outcomes = self.ask_together(rule.as_ref(), &asked, samples, deadline);
            for (member, outcome) in asked.into_iter().zip(outcomes) {
                rows[member].outcomes[at] = Some(with_floor(outcome, component.floor));
            }
        }
    }

    fn ask_together(
        &self,
        rule: &dyn GroupRule,
        asked: &[usize],
        samples: &[Sample<'_>],
        deadline: &Deadline<'_>,
    ) -> Vec<Outcome> {
        let all = |outcome: Outcome| vec![outcome; asked.len()];
        if asked.len() < rule.smallest() {
            let reason = Reason::new(
                Code::GroupTooSmall,
                format!(
                    "The reward compares at least {}, and {} can be asked.",
                    rule.smallest(),
                    asked.len()
                ),
            );
            // A group that was too small from the start cannot be what the trainer meant. One whose other members
            // were turned away by gates or limits is the model's doing, and must not spoil those who passed.
            let alone = samples.len() < rule.smallest();
            return all(if alone { Outcome::invalid(reason) } else { Outcome::skipped(reason) });
        }
        if deadline.has_passed() {
            return all(Outcome::invalid(Code::GroupDeadline));
        }
        let group: Vec<Sample<'_>> = asked.iter().map(|member| samples[*member]).collect();
        match catch_unwind(AssertUnwindSafe(|| rule.score(&group))) {
            Ok(outcomes) if outcomes.len() == asked.len() => outcomes,
            _ => all(Outcome::invalid(Code::Panic)),
        }
    }

    /// Makes the total of a row out of its outcomes.
    fn settle(&self, row: &mut Row) {
        let Some(branch) = row.branch.map(|index| &self.plan.branches[index]) else { return };
        let gate = row.closed_by.and_then(|at| Some((at, branch.components[at].gate?)));
        row.total = match gate {
            Some((at, gate)) => closed_total(branch, &row.outcomes, at, gate),
            None => compose::total(branch.combine, &branch.parts, row.outcomes.iter().map(Option::as_ref)),
        };
    }

    fn is_too_long(&self, sample: &Sample<'_>) -> bool {
        sample.text.as_str().len() > self.plan.longest_response
    }

    fn too_long(&self) -> Reason {
        Reason::new(
            Code::ModelTooLong,
            format!("The response is longer than the limit of {} bytes.", self.plan.longest_response),
        )
    }
}

/// The same outcome, but with the component's floor: a rule names the limit that was broken, and the recipe may have set
/// another floor than the rule's own.
fn with_floor(outcome: Outcome, floor: f64) -> Outcome {
    match outcome {
        Outcome::Floored { reason, .. } => Outcome::floored(floor, reason),
        other => other,
    }
}

/// The total of a rollout whose gate is closed: what the recipe says, or what the gates that were asked give.
fn closed_total(branch: &Branch, outcomes: &[Option<Outcome>], at: usize, gate: Gate) -> Total {
    let cause = |reason: Reason| Cause { reason, component: Some(at) };
    if let Some(Outcome::Invalid(reason)) = &outcomes[at] {
        return Total::Invalid(cause(reason.clone()));
    }
    let closed = cause(Reason::new(Code::GateClosed, "The component is below its gate."));
    let own = || compose::total(branch.combine, &branch.parts, outcomes.iter().map(Option::as_ref)).value();
    match gate.total.or_else(own).and_then(Score::new) {
        Some(value) => Total::Floored(value, closed),
        None => Total::Skipped(closed),
    }
}

fn refuse_uneven(rollouts: &[Rollout<'_>], groups: &[Group]) -> Result<(), RunError> {
    let Some((usual, odd)) = group::uneven(groups) else { return Ok(()) };
    let name = |at: usize| {
        let first = groups[at].members[0];
        let key = Key::of(&rollouts[first]).map(|key| key.label().into_owned());
        key.unwrap_or_else(|| format!("rollout {}", first + 1))
    };
    Err(RunError::UnevenGroups { usual, odd: odd.into_iter().map(|(at, size)| (name(at), size)).collect() })
}

/// The references of a group, each prepared once.
struct References<'a> {
    texts: Vec<Text<'a>>,
    /// For each member, its text.
    of: Vec<Option<usize>>,
}

impl<'a> References<'a> {
    fn prepare(rollouts: &'a [Rollout<'_>], members: &[usize]) -> Self {
        let mut texts: Vec<Text<'a>> = Vec::new();
        let of = members.iter().map(|member| {
            let reference = rollouts[*member].reference.as_deref()?;
            // A group mostly has one reference; a few are looked through, so that the work stays linear.
            let recent = texts.len().saturating_sub(4);
            let known = texts[recent..].iter().position(|text| text.as_str() == reference);
            Some(known.map(|at| recent + at).unwrap_or_else(|| {
                texts.push(Text::new(reference));
                texts.len() - 1
            }))
        });
        let of = of.collect();
        Self { texts, of }
    }

    fn of(&self, member: usize) -> Option<&Text<'a>> {
        self.of[member].map(|at| &self.texts[at])
    }
}
