//! Scores by the caller's own reward functions: all groups in one call, so that a batched function is called once. While
//! it is called, it may ask the judges of the recipe.

use super::batch::Batch;
use super::eligibility::ComponentRef;
use super::group_state::GroupState;
use crate::error::RunError;
use crate::group::Group;
use crate::judge::config::ResolvedJudge;
use crate::judge::runner::{JudgeRunner, RunOptions};
use crate::outcome::Outcome;
use crate::plan::{Plan, Scorer};
use crate::question::{AskJudge, Question, Replies};
use crate::reason::Code;
use crate::rollout::{AsRollout, Rollout};
use crate::rule::RuleInput;
use crate::rule::custom::{Custom, CustomCall};
use crate::rule::reference_view::ReferenceView;
use crate::text::Text;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Whether a plan has rewards of the caller's.
pub(super) fn has_custom(plan: &Plan) -> bool {
    let mut components = plan.branches.iter().flat_map(|branch| &branch.components);
    components.any(|component| matches!(component.scorer, Scorer::Custom(_)))
}

/// The judges of a batch as one component may ask them; none where the recipe has none.
fn judges_of(batch: &impl Batch, component: &str) -> Option<Arc<dyn AskJudge>> {
    let (runner, plan) = (Arc::clone(batch.engine().runner.as_ref()?), batch.engine().shared_plan());
    let (component, options) = (component.to_owned(), batch.calls().clone());
    Some(Arc::new(ComponentJudges { runner, plan, component, options }))
}

/// The judges of a recipe, asked by one component for one batch.
struct ComponentJudges {
    runner: Arc<JudgeRunner>,
    plan: Arc<Plan>,
    component: String,
    options: RunOptions,
}

impl AskJudge for ComponentJudges {
    fn judges(&self) -> Vec<&str> {
        // Reward models and the embedded judge take no words.
        let speaks = |judge: &&ResolvedJudge| !judge.config.kind.is_scalar() && !judge.config.kind.is_local();
        self.plan.judges.iter().filter(speaks).map(|judge| judge.name.as_str()).collect()
    }

    fn ask(
        &self,
        judge: &str,
        questions: Vec<Question>,
        timeout: Duration,
        then: Box<dyn FnOnce(Replies) + Send>,
    ) -> bool {
        let known = self.judges().contains(&judge);
        let Some(at) = self.plan.judges.iter().position(|one| known && one.name == judge) else {
            return false;
        };
        self.runner.ask((&self.component, at), questions, timeout, self.options.clone(), then);
        true
    }
}

/// Asks every reward of the caller's, apart from other batches, because nobody knows how long a caller's function takes.
pub(super) async fn score_custom<B: Batch>(
    batch: &B,
    groups: &Arc<Vec<Group>>,
    mut states: Vec<GroupState>,
) -> Result<Vec<GroupState>, RunError> {
    if !has_custom(&batch.engine().plan) {
        return Ok(states);
    }
    let groups = Arc::clone(groups);
    let score = move |batch: &B| {
        ask_custom(batch, &groups, &mut states);
        states
    };
    batch.apart(score).await.ok_or(RunError::Panicked)
}

/// Asks every reward of the caller's about the members that it is asked about.
fn ask_custom<B: Batch>(batch: &B, groups: &[Group], states: &mut [GroupState]) {
    let (plan, rollouts) = (&batch.engine().plan, batch.rollouts());
    for one in ComponentRef::all(plan) {
        let Scorer::Custom(custom) = &one.component.scorer else { continue };
        let asked: Vec<Vec<usize>> = (states.iter_mut().zip(groups))
            .map(|(state, group)| {
                let size = |row: usize| Text::of(rollouts[group.members[row]].as_rollout()).size();
                one.asked(&mut state.rows, size)
            })
            .collect();
        let judges = judges_of(batch, &one.component.name);
        let call = CustomCall { timeout: plan.groups.timeout, judges };
        let outcomes = call_custom(custom.as_ref(), rollouts, groups, &asked, &call);
        for ((state, asked), outcomes) in states.iter_mut().zip(asked).zip(outcomes) {
            for (row, outcome) in asked.into_iter().zip(outcomes) {
                one.set_outcome(&mut state.rows[row], outcome);
            }
        }
    }
}

/// What the reward says, in the shape of what was asked; a reward that fails as it must not has failed everywhere.
fn call_custom<R: AsRollout>(
    custom: &dyn Custom,
    rollouts: &[R],
    groups: &[Group],
    asked: &[Vec<usize>],
    call: &CustomCall,
) -> Vec<Vec<Outcome>> {
    let members: Vec<Vec<&Rollout<'_>>> = (groups.iter().zip(asked))
        .map(|(group, asked)| asked.iter().map(|row| rollouts[group.members[*row]].as_rollout()).collect())
        .collect();
    let texts: Vec<Vec<Texts<'_>>> =
        members.iter().map(|group| group.iter().map(|rollout| Texts::of(rollout)).collect()).collect();
    let samples: Vec<Vec<RuleInput<'_>>> = (members.iter().zip(&texts))
        .map(|(group, texts)| group.iter().zip(texts).map(|(rollout, texts)| texts.sample(rollout)).collect())
        .collect();
    if samples.iter().all(Vec::is_empty) {
        return asked.iter().map(|_| Vec::new()).collect();
    }
    let returned =
        catch_unwind(AssertUnwindSafe(|| custom.score(&samples, call))).unwrap_or_else(|_| Vec::new());
    let fits = returned.len() == asked.len()
        && returned.iter().zip(asked).all(|(returned, asked)| returned.len() == asked.len());
    if fits {
        return returned;
    }
    asked.iter().map(|asked| vec![Outcome::invalid(Code::RewardFailed); asked.len()]).collect()
}

/// What a reward reads of one rollout.
struct Texts<'t> {
    response: Text<'t>,
    reference: Option<ReferenceView<'t>>,
}

impl<'t> Texts<'t> {
    fn of(rollout: &'t Rollout<'_>) -> Self {
        let reference = ReferenceView::of(rollout);
        Self { response: Text::of(rollout), reference }
    }

    fn sample(&'t self, rollout: &'t Rollout<'_>) -> RuleInput<'t> {
        RuleInput::of(rollout, &self.response, self.reference.as_ref())
    }
}
