//! Scores by the caller's own reward functions: all groups in one call, so that a batched function is called once. While
//! it is called, it may ask the judges of the recipe.

use super::eligibility::ComponentRef;
use super::judged::RuleResults;
use crate::group::Group;
use crate::judge::config::ResolvedJudge;
use crate::judge::runner::{JudgeRunner, RunOptions};
use crate::outcome::Outcome;
use crate::plan::{Plan, Scorer};
use crate::question::{AskJudge, Question, Replies};
use crate::reason::Code;
use crate::rollout::Rollout;
use crate::rule::Sample;
use crate::rule::custom::{Custom, CustomCall};
use crate::rule::reference_view::ReferenceView;
use crate::text::Text;
use std::borrow::Borrow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Whether a plan has rewards of the caller's.
pub(super) fn has_custom(plan: &Plan) -> bool {
    let mut components = plan.branches.iter().flat_map(|branch| &branch.components);
    components.any(|component| matches!(component.scorer, Scorer::Custom(_)))
}

/// What the questions of custom rewards need: the judges, and how calls of this batch are made.
pub(super) struct Questions<'e> {
    pub(super) runner: Option<&'e Arc<JudgeRunner>>,
    pub(super) options: RunOptions,
}

impl Questions<'_> {
    /// The judges as one component may ask them.
    fn of(&self, plan: &Arc<Plan>, component: &str) -> Option<Arc<dyn AskJudge>> {
        let (runner, plan) = (Arc::clone(self.runner?), Arc::clone(plan));
        let (component, options) = (component.to_owned(), self.options.clone());
        Some(Arc::new(ComponentJudges { runner, plan, component, options }))
    }
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

/// Asks every reward of the caller's about the members whose gates are open.
pub(super) fn score_custom<'r, R: Borrow<Rollout<'r>>>(
    plan: &Arc<Plan>,
    questions: &Questions<'_>,
    rollouts: &[R],
    groups: &[Group],
    rule_results: &mut [RuleResults],
) {
    for one in ComponentRef::all(plan) {
        let Scorer::Custom(custom) = &one.component.scorer else { continue };
        let asked: Vec<Vec<usize>> = (rule_results.iter_mut().zip(groups))
            .map(|(rule_result, group)| {
                let size = |row: usize| Text::of(rollouts[group.members[row]].borrow()).size();
                one.asked(&mut rule_result.rows, size)
            })
            .collect();
        let judges = questions.of(plan, &one.component.name);
        let call = CustomCall { timeout: plan.groups.timeout, judges };
        let outcomes = call_custom(custom.as_ref(), rollouts, groups, &asked, &call);
        for ((rule_result, asked), outcomes) in rule_results.iter_mut().zip(asked).zip(outcomes) {
            for (row, outcome) in asked.into_iter().zip(outcomes) {
                one.set_outcome(&mut rule_result.rows[row], outcome);
            }
        }
    }
}

/// What the reward says, in the shape of what was asked; a reward that fails as it must not has failed everywhere.
fn call_custom<'r, R: Borrow<Rollout<'r>>>(
    custom: &dyn Custom,
    rollouts: &[R],
    groups: &[Group],
    asked: &[Vec<usize>],
    call: &CustomCall,
) -> Vec<Vec<Outcome>> {
    let members: Vec<Vec<&Rollout<'r>>> = (groups.iter().zip(asked))
        .map(|(group, asked)| asked.iter().map(|row| rollouts[group.members[*row]].borrow()).collect())
        .collect();
    let texts: Vec<Vec<Texts<'_>>> =
        members.iter().map(|group| group.iter().map(|rollout| Texts::of(rollout)).collect()).collect();
    let samples: Vec<Vec<Sample<'_>>> = (members.iter().zip(&texts))
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

    fn sample(&'t self, rollout: &'t Rollout<'_>) -> Sample<'t> {
        Sample::of(rollout, &self.response, self.reference.as_ref())
    }
}
