//! Who is put before which judge? The questions of a group that rules cannot answer, and what becomes of the answers.

use super::rules::with_floor;
use super::{Engine, ScoreOptions};
use crate::exec::CancelToken;
use crate::group::Key;
use crate::judge::Question;
use crate::judge::asking::Mode;
use crate::judge::case::{Case, Member};
use crate::judge::findings::Findings;
use crate::judge::inquiry::Inquiry;
use crate::judge::runner::{CallTranscript, JudgeTask, JudgeTaskResult};
use crate::outcome::Outcome;
use crate::plan::{Branch, Component, Scorer};
use crate::reason::Code;
use crate::report::Row;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A group with everything said of it that needs no judge.
pub(super) struct RuleResults {
    pub(super) rows: Vec<Row>,
    pub(super) tasks: Vec<(TaskTarget, JudgeTask)>,
}

/// Whom a task is about.
pub(super) struct TaskTarget {
    component: usize,
    members: Vec<usize>,
}

impl Engine {
    /// The questions of a branch about a group, of those components that `which` chooses; what needs no judge to say is
    /// said at once.
    pub(super) fn build_judge_tasks(
        &self,
        index: usize,
        branch: &Branch,
        members: &[Member<'_>],
        rows: &mut [Row],
        terms: &ScoreOptions,
        which: impl Fn(&Component) -> bool,
    ) -> Vec<(TaskTarget, JudgeTask)> {
        let mut tasks = Vec::new();
        for (component, settings) in branch.components.iter().enumerate().filter(|(_, one)| which(one)) {
            let (Scorer::Judged(question), Some(asks), Some(runner)) =
                (&settings.scorer, settings.asks, self.runner.as_ref())
            else {
                continue;
            };
            let floor = |outcome| with_floor(outcome, settings.floor);
            let mut asked = Vec::new();
            for (member, row) in rows.iter_mut().enumerate() {
                if row.branch != Some(index) || row.closed_by.is_some() {
                    continue;
                }
                match members[member].text.as_str().len() > self.plan.longest_response {
                    true => row.outcomes[component] = Some(floor(Outcome::floored(0.0, self.too_long()))),
                    false => asked.push(member),
                }
            }
            for part in self.parts(question, members, asked) {
                let chosen: Vec<Member<'_>> = part.iter().map(|member| members[*member]).collect();
                let validates = self.validates(question, terms);
                match refuse_part(question, &chosen, validates, members.len()) {
                    Some(outcome) => {
                        part.iter()
                            .for_each(|member| rows[*member].outcomes[component] = Some(outcome.clone()));
                    }
                    None => {
                        let case = Case::new(question, &chosen, runner.secret(), validates);
                        let inquiry = Inquiry::new(Arc::clone(question), case);
                        let group_name = || Key::of(chosen[0].rollout).map(|key| key.label().into_owned());
                        let group = inquiry.too_large().and_then(|_| group_name());
                        let name = settings.name.clone();
                        let task = JudgeTask { component: name, group, inquiry, asks, again: false };
                        tasks.push((TaskTarget { component, members: part }, task));
                    }
                }
            }
        }
        tasks
    }

    fn validates(&self, question: &Question, terms: &ScoreOptions) -> bool {
        terms.validate.unwrap_or(self.plan.validates) && !question.is_scalar()
    }

    /// The members that are put before a judge together: all of them where they are compared, else those that share a
    /// prompt and a reference.
    fn parts(&self, question: &Question, members: &[Member<'_>], asked: Vec<usize>) -> Vec<Vec<usize>> {
        if asked.is_empty() {
            return Vec::new();
        }
        if question.asking.mode != Mode::Pointwise {
            return vec![asked];
        }
        let mut parts: Vec<Vec<usize>> = Vec::new();
        for member in asked {
            let same = |part: &Vec<usize>| {
                let (ours, theirs) = (members[member].rollout, members[part[0]].rollout);
                ours.prompt == theirs.prompt && ours.reference == theirs.reference
            };
            // A group mostly has one prompt and one reference; a few are looked through, so that the work stays linear.
            let recent = parts.len().saturating_sub(4);
            match parts[recent..].iter_mut().find(|part| same(part)) {
                Some(part) => part.push(member),
                None => parts.push(vec![member]),
            }
        }
        parts
    }

    /// Asks the judges about all groups at once and puts what they say into the rows.
    pub(super) fn judge(
        &self,
        rule_results: Vec<RuleResults>,
        terms: &ScoreOptions,
        told: Option<&mut Vec<CallTranscript>>,
    ) -> (Vec<Vec<Row>>, Vec<(String, Findings)>) {
        let (open, tasks) = PendingJudgments::of(rule_results);
        let (Some(runner), false) = (&self.runner, tasks.is_empty()) else {
            return (open.scored, Vec::new());
        };
        let results = runner.run(&self.plan, tasks, terms.cancel.as_ref(), told);
        // Not while calls are under way, because scores take longer than a call may wait for its turn.
        let finished = self.pool.map(&results, |results| finish(results, terms));
        self.close(open, finished)
    }

    /// Puts what came of the tasks into the rows.
    pub(super) fn close(
        &self,
        open: PendingJudgments,
        finished: Vec<Finished>,
    ) -> (Vec<Vec<Row>>, Vec<(String, Findings)>) {
        let PendingJudgments { mut scored, places } = open;
        let mut findings = Vec::with_capacity(places.len());
        for ((group, place), finished) in places.into_iter().zip(finished) {
            let failed =
                |code: Code| (vec![Outcome::invalid(code); place.members.len()], Findings::default());
            let (outcomes, found) = finished.unwrap_or_else(failed);
            let rows = &mut scored[group];
            for (member, outcome) in place.members.iter().zip(outcomes) {
                let Some(branch) = rows[*member].branch.map(|branch| &self.plan.branches[branch]) else {
                    continue;
                };
                let component = &branch.components[place.component];
                rows[*member].outcomes[place.component] = Some(with_floor(outcome, component.floor));
            }
            let row = place.members.first().and_then(|member| rows[*member].branch);
            if let Some(branch) = row {
                findings.push((self.plan.branches[branch].components[place.component].name.clone(), found));
            }
        }
        (scored, findings)
    }
}

/// What a task comes to: one outcome a member, or why there is none.
pub(super) type Finished = Result<(Vec<Outcome>, Findings), Code>;

/// What a task comes to. Scores that fail as they must not are data.
pub(super) fn finish(results: &JudgeTaskResult, terms: &ScoreOptions) -> Finished {
    let inquiry = results.as_ref().map_err(|code| *code)?;
    if terms.cancel.as_ref().is_some_and(CancelToken::is_cancelled) {
        return Err(Code::Stopped);
    }
    catch_unwind(AssertUnwindSafe(|| inquiry.finish())).map_err(|_| Code::Panic)
}

/// Groups whose questions are with the judges.
pub(super) struct PendingJudgments {
    /// The rows so far, group by group.
    pub(super) scored: Vec<Vec<Row>>,
    /// Whom each task is about, and in which group.
    places: Vec<(usize, TaskTarget)>,
}

impl PendingJudgments {
    /// Takes the tasks out of the groups, so that all are results at once.
    pub(super) fn of(rule_results: Vec<RuleResults>) -> (Self, Vec<JudgeTask>) {
        let mut open = Self { scored: Vec::with_capacity(rule_results.len()), places: Vec::new() };
        let mut tasks = Vec::new();
        for (group, rule_result) in rule_results.into_iter().enumerate() {
            open.scored.push(rule_result.rows);
            for (place, task) in rule_result.tasks {
                open.places.push((group, place));
                tasks.push(task);
            }
        }
        (open, tasks)
    }
}

/// Why members cannot be put before a judge together, where that is so.
fn refuse_part(question: &Question, members: &[Member<'_>], validates: bool, all: usize) -> Option<Outcome> {
    if !question.compares() {
        return None;
    }
    let first = members.first()?.rollout;
    if members.iter().any(|member| member.rollout.prompt != first.prompt) {
        return Some(Outcome::invalid(Code::GroupMixed));
    }
    let rival = validates && first.reference.is_some();
    if members.len() + usize::from(rival) >= 2 {
        return None;
    }
    Some(if all < 2 { Outcome::invalid(Code::GroupTooSmall) } else { Outcome::skipped(Code::GroupTooSmall) })
}
