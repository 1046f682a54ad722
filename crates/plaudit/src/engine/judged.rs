//! Builds the judge tasks of a group, and asks the judges about all groups of a batch.

use super::batch::Batch;
use super::eligibility::ComponentRef;
use super::group_state::GroupState;
use super::rules::GroupScorer;
use crate::error::RunError;
use crate::exec::CancelToken;
use crate::group::Key;
use crate::judge::JudgedReward;
use crate::judge::group_view::{GroupView, Member};
use crate::judge::rewards::params::Mode;
use crate::judge::rewards::rubric::RubricGrader;
use crate::judge::rubric_session::RubricSession;
use crate::judge::runner::{JudgeTask, Session};
use crate::judge::session::JudgeSession;
use crate::judge::stats::JudgeStats;
use crate::outcome::Outcome;
use crate::plan::{Component, Scorer};
use crate::reason::Code;
use crate::report::Row;
use crate::rubric::Item;
use std::sync::Arc;

/// The component and the members that a task is about.
pub(super) struct TaskTarget {
    pub(super) component: usize,
    pub(super) members: Vec<usize>,
}

/// The tasks of a branch for a group, of those components that `which` chooses. An outcome that needs no judge goes into
/// its row at once.
pub(super) fn build_judge_tasks(
    scorer: &GroupScorer<'_>,
    index: usize,
    members: &[Member<'_>],
    rows: &mut [Row],
    which: impl Fn(&Component) -> bool,
) -> Vec<(TaskTarget, JudgeTask)> {
    let mut tasks = Vec::new();
    for one in ComponentRef::of_branch(scorer.plan, index).filter(|one| which(one.component)) {
        let settings = one.component;
        let (Scorer::Judged(reward), Some(asks), Some(secret)) =
            (&settings.scorer, settings.asks, scorer.secret)
        else {
            continue;
        };
        let asked = one.asked(rows, |member| members[member].text.size());
        let with_reference = scorer.options.validate.unwrap_or(scorer.plan.validates) && !reward.is_scalar();
        for part in split_by_prompt(reward, members, asked) {
            let chosen: Vec<Member<'_>> = part.iter().map(|member| members[*member]).collect();
            if let Some(grader) = reward.grader() {
                let parts = split_by_rubric(grader, &chosen);
                for (of, rubric) in parts {
                    let part: Vec<usize> = of.iter().map(|at| part[*at]).collect();
                    let rubric = match rubric {
                        Ok(rubric) => rubric,
                        Err(outcome) => {
                            part.iter()
                                .for_each(|member| one.set_outcome(&mut rows[*member], outcome.clone()));
                            continue;
                        }
                    };
                    let chosen: Vec<Member<'_>> = of.iter().map(|at| chosen[*at]).collect();
                    let view = GroupView::new(reward, &chosen, secret, with_reference);
                    let session = Session::Rubric(RubricSession::new(Arc::clone(reward), rubric, view));
                    let task = JudgeTask { component: settings.name.clone(), group: None, session, asks };
                    tasks.push((TaskTarget { component: one.at, members: part }, task));
                }
                continue;
            }
            if let Some(outcome) = refuse_part(reward, &chosen, with_reference, members.len()) {
                part.iter().for_each(|member| one.set_outcome(&mut rows[*member], outcome.clone()));
                continue;
            }
            let view = GroupView::new(reward, &chosen, secret, with_reference);
            let session = JudgeSession::new(Arc::clone(reward), view);
            let group_name = || Key::of(chosen[0].rollout).map(|key| key.label().into_owned());
            let group = session.too_large().and_then(|_| group_name());
            let session = Session::Group(session);
            let task = JudgeTask { component: settings.name.clone(), group, session, asks };
            tasks.push((TaskTarget { component: one.at, members: part }, task));
        }
    }
    tasks
}

/// The members that are graded by one rubric, as places, with that rubric; or with the outcome of those that have none.
type RubricPart = (Vec<usize>, Result<Arc<[Item]>, Outcome>);

/// Parts the members by their rubrics, which mostly are one.
fn split_by_rubric(grader: &RubricGrader, members: &[Member<'_>]) -> Vec<RubricPart> {
    let mut parts: Vec<RubricPart> = Vec::new();
    for (at, member) in members.iter().enumerate() {
        let rubric = grader.rubric_of(member.rollout).map_err(|reason| match reason.code {
            Code::MissingRubric => Outcome::skipped(reason),
            _ => Outcome::invalid(reason),
        });
        match parts.iter_mut().find(|(_, known)| *known == rubric) {
            Some((part, _)) => part.push(at),
            None => parts.push((vec![at], rubric)),
        }
    }
    parts
}

/// The members that share a session: all of them where they are compared, else those with one prompt and reference.
fn split_by_prompt(reward: &JudgedReward, members: &[Member<'_>], asked: Vec<usize>) -> Vec<Vec<usize>> {
    if asked.is_empty() {
        return Vec::new();
    }
    if reward.params.mode != Mode::Pointwise {
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

/// Why members cannot be put before a judge together, where that is so.
fn refuse_part(
    reward: &JudgedReward,
    members: &[Member<'_>],
    validates: bool,
    all: usize,
) -> Option<Outcome> {
    if !reward.compares() {
        return None;
    }
    let first = members.first()?.rollout;
    if members.iter().any(|member| member.rollout.prompt != first.prompt) {
        return Some(Outcome::invalid(Code::GroupMixed));
    }
    let with_reference = validates && first.reference.is_some();
    if members.len() + usize::from(with_reference) >= 2 {
        return None;
    }
    Some(if all < 2 { Outcome::invalid(Code::GroupTooSmall) } else { Outcome::skipped(Code::GroupTooSmall) })
}

/// What a task comes to: one outcome a member, or why there is none.
pub(super) type TaskOutcomes = Result<(Vec<Outcome>, JudgeStats), Code>;

/// Asks the judges about all groups at once.
pub(super) async fn ask_judges<B: Batch>(
    batch: &B,
    mut states: Vec<GroupState>,
) -> Result<Vec<GroupState>, RunError> {
    let engine = batch.engine();
    let (mut targets, mut tasks) = (Vec::new(), Vec::new());
    for (group, state) in states.iter_mut().enumerate() {
        for (target, task) in std::mem::take(&mut state.tasks) {
            targets.push((group, target));
            tasks.push(task);
        }
    }
    let (Some(runner), false) = (&engine.runner, tasks.is_empty()) else { return Ok(states) };
    let results = batch.receive(|reply| runner.spawn(tasks, batch.calls(), reply)).await;
    let mut results = results.ok_or(RunError::Panicked)?;
    for ((group, _), result) in targets.iter().zip(&mut results) {
        let output = result.as_mut().map(|output| &mut output.transcripts);
        output.into_iter().for_each(|transcripts| states[*group].transcripts.append(transcripts));
    }
    // On the pool, because aggregation takes longer than the calls of other groups may wait for a thread of the runtime.
    let count = results.len();
    let finish = move |batch: &B, at: usize| -> TaskOutcomes {
        let cancel = batch.options().cancel.as_ref();
        match &results[at] {
            Ok(_) if cancel.is_some_and(CancelToken::is_cancelled) => Err(Code::Stopped),
            Ok(output) => Ok(output.session.finish()),
            Err(code) => Err(*code),
        }
    };
    for ((group, target), finished) in targets.iter().zip(batch.map(count, finish).await) {
        states[*group].set_judged(&engine.plan, target, finished.unwrap_or(Err(Code::Panic)));
    }
    Ok(states)
}
