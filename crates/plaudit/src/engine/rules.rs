//! Scores a group by rules: components that look at one rollout alone, then those that compare; then builds the tasks for
//! judges.

use super::batch::Batch;
use super::eligibility::ComponentRef;
use super::group_state::GroupState;
use super::judged::build_judge_tasks;
use super::options::ScoreOptions;
use super::prescore::Prescored;
use crate::conversation::Role;
use crate::exec::{Clock, Deadline, WorkLimit};
use crate::group::{self, Group};
use crate::judge::group_view::Member;
use crate::outcome::Outcome;
use crate::plan::{Plan, Scorer};
use crate::reason::{Code, Reason};
use crate::report::Row;
use crate::rollout::{AsRollout, Rollout};
use crate::rule::reference_view::ReferenceView;
use crate::rule::{EachRule, GroupRule, Rule, RuleInput, SMALLEST_GROUP};
use crate::text::Text;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Scores every group of a batch by rules.
pub(super) async fn score_rules<B: Batch>(batch: &B, groups: &Arc<Vec<Group>>) -> Vec<GroupState> {
    let shared = Arc::clone(groups);
    let score = move |batch: &B, at: usize| {
        let scorer = batch.engine().scorer(batch.options());
        scorer.score_group(batch.rollouts(), batch.prescored(), &shared[at])
    };
    let scored = batch.map(groups.len(), score).await;
    let panicked = |group| GroupState::panicked(batch.rollouts(), group);
    scored
        .into_iter()
        .zip(groups.iter())
        .map(|(state, group)| state.unwrap_or_else(|| panicked(group)))
        .collect()
}

/// Scores groups by the rules of a plan.
pub(super) struct GroupScorer<'e> {
    pub(super) plan: &'e Plan,
    pub(super) clock: &'e dyn Clock,
    /// What the delimiters of prompts are derived from; none where no judge is asked.
    pub(super) secret: Option<&'e [u8; 32]>,
    pub(super) options: &'e ScoreOptions,
}

impl GroupScorer<'_> {
    /// What ends the work on a group that starts now.
    pub(super) fn limit(&self) -> WorkLimit<'_> {
        let deadline = Deadline::after(self.clock, self.plan.groups.timeout);
        WorkLimit { deadline, cancel: self.options.cancel.as_ref() }
    }

    /// The rows of one group, in the order of its members, with every outcome that needs no judge, and the tasks for
    /// judges; or, where there are programs to be run first, what is known before that. `prescored` goes side by side with
    /// the rollouts, or is empty.
    pub(super) fn score_group<R: AsRollout>(
        &self,
        rollouts: &[R],
        prescored: &[Prescored],
        group: &Group,
    ) -> GroupState {
        self.with_samples(rollouts, group, |samples, originals, limit| {
            let mut rows: Vec<Row> = Vec::with_capacity(samples.len());
            for (at, sample) in samples.iter().enumerate() {
                let rollout: &Rollout<'_> = rollouts[group.members[at]].as_rollout();
                let alone = || match prescored.get(group.members[at]).and_then(Prescored::row) {
                    Some(row) => row.clone(),
                    None => self.score_alone(rollout, sample, limit),
                };
                rows.push(match originals[at] {
                    None => Row::panicked(rollout),
                    Some(original) if original < at => Row { duplicate: true, ..rows[original].clone() },
                    Some(_) => {
                        catch_unwind(AssertUnwindSafe(alone)).unwrap_or_else(|_| Row::panicked(rollout))
                    }
                });
            }
            let programs = self.programs(samples, &mut rows);
            if programs.is_empty() {
                return self.score_rest(rollouts, group, samples, rows, limit);
            }
            GroupState { programs, ..GroupState::of(rows) }
        })
    }

    /// The same group once its programs have been run.
    pub(super) fn complete_group<R: AsRollout>(
        &self,
        rollouts: &[R],
        group: &Group,
        rows: Vec<Row>,
    ) -> GroupState {
        self.with_samples(rollouts, group, |samples, _, limit| {
            self.score_rest(rollouts, group, samples, rows, limit)
        })
    }

    /// What compares the members, and the tasks for judges.
    fn score_rest<R: AsRollout>(
        &self,
        rollouts: &[R],
        group: &Group,
        samples: &[RuleInput<'_>],
        mut rows: Vec<Row>,
        limit: &WorkLimit<'_>,
    ) -> GroupState {
        let mut tasks = Vec::new();
        for index in 0..self.plan.branches.len() {
            self.score_together(index, samples, &mut rows, limit);
            let members: Vec<Member<'_>> = (samples.iter().zip(&group.members))
                .map(|(sample, member)| Member { rollout: rollouts[*member].as_rollout(), text: sample.text })
                .collect();
            tasks.extend(build_judge_tasks(self, index, &members, &mut rows, |_| true));
        }
        if super::is_rules_only(self.plan) {
            super::totals::set_totals(self.plan, &mut rows);
        }
        GroupState { tasks, ..GroupState::of(rows) }
    }

    /// Hands on what rules see of the members of a group, and for each the first member with the same words: none where these
    /// cannot be looked at without a panic. A panic in the work is every member's.
    fn with_samples<R: AsRollout>(
        &self,
        rollouts: &[R],
        group: &Group,
        work: impl FnOnce(&[RuleInput<'_>], &[Option<usize>], &WorkLimit<'_>) -> GroupState,
    ) -> GroupState {
        let guarded = || {
            let limit = self.limit();
            let originals = group::originals(rollouts, &group.members);
            let references = References::prepare(rollouts, &group.members);
            let text = |at: usize| {
                let rollout: &Rollout<'_> = rollouts[group.members[at]].as_rollout();
                catch_unwind(AssertUnwindSafe(|| Text::of(rollout))).ok()
            };
            let texts: Vec<Option<Text<'_>>> = (originals.iter().enumerate())
                .map(|(at, original)| (at == *original).then(|| text(at)).flatten())
                .collect();
            let nothing = Text::new("");
            let samples: Vec<RuleInput<'_>> = (group.members.iter().zip(&originals).enumerate())
                .map(|(at, (member, original))| {
                    let text = texts[*original].as_ref().unwrap_or(&nothing);
                    RuleInput::of(rollouts[*member].as_rollout(), text, references.of(at))
                })
                .collect();
            let readable = |original: usize| texts[original].is_some().then_some(original);
            let originals: Vec<Option<usize>> = originals.into_iter().map(readable).collect();
            work(&samples, &originals, &limit)
        };
        catch_unwind(AssertUnwindSafe(guarded)).unwrap_or_else(|_| GroupState::panicked(rollouts, group))
    }

    /// Scores a rollout without its group.
    pub(super) fn score_alone(
        &self,
        rollout: &Rollout<'_>,
        sample: &RuleInput<'_>,
        limit: &WorkLimit<'_>,
    ) -> Row {
        match self.plan.branch(rollout) {
            Some(index) => {
                let branch = &self.plan.branches[index];
                let mut row = Row::empty(index, branch.components.len(), sample.text.chars());
                self.score_each(index, sample, limit, &mut row);
                if branch.turn_rewards.is_some() {
                    self.score_turns(index, sample, limit, &mut row);
                }
                row
            }
            None => Row::refused(sample.text.chars(), self.plan.no_route(rollout)),
        }
    }

    /// Applies the components that look at one rollout alone: gates first, then the others.
    fn score_each(&self, index: usize, sample: &RuleInput<'_>, limit: &WorkLimit<'_>, row: &mut Row) {
        for gates in [true, false] {
            let of_turn = |one: &ComponentRef<'_>| one.component.gate.is_some() == gates;
            for one in ComponentRef::of_branch(self.plan, index).filter(of_turn) {
                let Scorer::Rule(Rule::Each(rule)) = &one.component.scorer else { continue };
                if one.is_asked(row, || sample.text.size()) {
                    one.set_outcome(row, ask(rule, sample, limit));
                }
            }
        }
    }

    /// Scores the state after each turn of the model, by the components that do that: the turn's own words as if they were the
    /// final ones.
    fn score_turns(&self, index: usize, sample: &RuleInput<'_>, limit: &WorkLimit<'_>, row: &mut Row) {
        let closed = row.closed_by().is_some();
        let details = row.details_mut();
        let Some(conversation) = sample.text.conversation() else {
            details.turns = 1;
            return;
        };
        let parts = conversation.turns.split_inclusive(|turn| turn.role == Role::Assistant);
        let own = parts.filter_map(|part| part.split_last().filter(|(turn, _)| turn.role == Role::Assistant));
        let turns: Vec<Text<'_>> = own.map(|(turn, before)| Text::of_turn(turn, before)).collect();
        details.turns = turns.len();
        for one in ComponentRef::of_branch(self.plan, index).filter(|one| one.component.per_turn && !closed) {
            let Scorer::Rule(Rule::Each(rule)) = &one.component.scorer else { continue };
            let state = |text: &Text<'_>| {
                let outcome = one.too_long(text.size());
                let outcome = outcome.unwrap_or_else(|| ask(rule, &RuleInput { text, ..*sample }, limit));
                one.with_floor(outcome).value()
            };
            details.states.push((one.at, turns.iter().map(state).collect()));
        }
    }

    /// Applies the components that look at the group as a whole, to the members whose gates are open.
    fn score_together(
        &self,
        index: usize,
        samples: &[RuleInput<'_>],
        rows: &mut [Row],
        limit: &WorkLimit<'_>,
    ) {
        for one in ComponentRef::of_branch(self.plan, index) {
            let Scorer::Rule(Rule::Group(rule)) = &one.component.scorer else { continue };
            let asked = one.asked(rows, |member| samples[member].text.size());
            let outcomes = self.ask_together(rule, &asked, samples, limit);
            for (member, outcome) in asked.into_iter().zip(outcomes) {
                one.set_outcome(&mut rows[member], outcome);
            }
        }
    }

    fn ask_together(
        &self,
        rule: &GroupRule,
        asked: &[usize],
        samples: &[RuleInput<'_>],
        limit: &WorkLimit<'_>,
    ) -> Vec<Outcome> {
        let all = |outcome: Outcome| vec![outcome; asked.len()];
        if asked.len() < SMALLEST_GROUP {
            let reason = Reason::new(
                Code::GroupTooSmall,
                format!("The reward compares at least {SMALLEST_GROUP}, and {} can be asked.", asked.len()),
            );
            // A group that was too small from the start cannot be what the trainer meant. One whose other members
            // were turned away by gates or limits is the model's doing, and must not spoil those who passed.
            let alone = samples.len() < SMALLEST_GROUP;
            return all(if alone { Outcome::invalid(reason) } else { Outcome::skipped(reason) });
        }
        if let Some(code) = limit.reached() {
            return all(Outcome::invalid(code));
        }
        let mut prompts = asked.iter().filter_map(|member| samples[*member].prompt);
        let first = prompts.next();
        if prompts.any(|prompt| Some(prompt) != first) {
            return all(Outcome::invalid(Code::GroupMixed));
        }
        let group: Vec<RuleInput<'_>> = asked.iter().map(|member| samples[*member]).collect();
        match catch_unwind(AssertUnwindSafe(|| rule.score(&group))) {
            Ok(outcomes) if outcomes.len() == asked.len() => outcomes,
            _ => all(Outcome::invalid(Code::Panic)),
        }
    }
}

/// Applies one rule to one rollout, within the limits. A rule that panics is data.
fn ask(rule: &EachRule, sample: &RuleInput<'_>, limit: &WorkLimit<'_>) -> Outcome {
    match limit.reached() {
        Some(code) => Outcome::invalid(code),
        None => catch_unwind(AssertUnwindSafe(|| rule.score(sample)))
            .unwrap_or_else(|_| Outcome::invalid(Code::Panic)),
    }
}

/// The references of a group, each prepared once.
struct References<'a> {
    views: Vec<ReferenceView<'a>>,
    /// For each member, its view.
    of: Vec<Option<usize>>,
}

impl<'a> References<'a> {
    fn prepare<R: AsRollout>(rollouts: &'a [R], members: &[usize]) -> Self {
        let mut views: Vec<ReferenceView<'a>> = Vec::new();
        let of = members.iter().map(|member| {
            let rollout: &'a Rollout<'a> = rollouts[*member].as_rollout();
            // A group mostly has one reference; a few are looked through, so that the work stays linear.
            let recent = views.len().saturating_sub(4);
            let known = views[recent..].iter().position(|view| view.is_of(rollout));
            known.map(|at| recent + at).or_else(|| {
                views.push(ReferenceView::of(rollout)?);
                Some(views.len() - 1)
            })
        });
        let of = of.collect();
        Self { views, of }
    }

    fn of(&self, member: usize) -> Option<&ReferenceView<'a>> {
        self.of[member].map(|at| &self.views[at])
    }
}
