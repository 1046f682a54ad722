//! How are the caller's own rewards asked? All groups at once, so that a batched function is called once.

use super::Engine;
use super::judged::RuleResults;
use crate::group::Group;
use crate::outcome::Outcome;
use crate::plan::Scorer;
use crate::reason::Code;
use crate::rollout::Rollout;
use crate::rule::Sample;
use crate::rule::custom::Custom;
use crate::text::Text;
use std::borrow::Borrow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

impl Engine {
    /// Whether the caller brought a reward of this plan.
    pub(super) fn asks_brought(&self) -> bool {
        let mut components = self.plan.branches.iter().flat_map(|branch| &branch.components);
        components.any(|component| matches!(component.scorer, Scorer::Custom(_)))
    }

    /// Asks every reward that the caller brought about the members whose gates are open.
    pub(super) fn score_custom<'r, R: Borrow<Rollout<'r>>>(
        &self,
        rollouts: &[R],
        groups: &[Group],
        rule_results: &mut [RuleResults],
    ) {
        for (index, branch) in self.plan.branches.iter().enumerate() {
            for (at, component) in branch.components.iter().enumerate() {
                let Scorer::Custom(custom) = &component.scorer else { continue };
                let asked: Vec<Vec<usize>> = (rule_results.iter())
                    .map(|rule_result| {
                        let open = |row: &usize| {
                            rule_result.rows[*row].branch == Some(index)
                                && rule_result.rows[*row].closed_by.is_none()
                        };
                        (0..rule_result.rows.len()).filter(open).collect()
                    })
                    .collect();
                let outcomes = ask(custom.as_ref(), rollouts, groups, &asked, self.plan.groups.timeout);
                for ((rule_result, asked), outcomes) in rule_results.iter_mut().zip(asked).zip(outcomes) {
                    for (row, outcome) in asked.into_iter().zip(outcomes) {
                        rule_result.rows[row].outcomes[at] = Some(outcome);
                    }
                }
            }
        }
    }
}

/// What the reward says, in the shape of what was asked; a reward that fails as it must not has failed everywhere.
fn ask<'r, R: Borrow<Rollout<'r>>>(
    custom: &dyn Custom,
    rollouts: &[R],
    groups: &[Group],
    asked: &[Vec<usize>],
    timeout: Duration,
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
    let said =
        catch_unwind(AssertUnwindSafe(|| custom.score(&samples, timeout))).unwrap_or_else(|_| Vec::new());
    let fits =
        said.len() == asked.len() && said.iter().zip(asked).all(|(said, asked)| said.len() == asked.len());
    if fits {
        return said;
    }
    asked.iter().map(|asked| vec![Outcome::invalid(Code::RewardFailed); asked.len()]).collect()
}

/// What a reward reads of one rollout.
struct Texts<'t> {
    response: Text<'t>,
    reference: Option<Text<'t>>,
}

impl<'t> Texts<'t> {
    fn of(rollout: &'t Rollout<'_>) -> Self {
        let reference = rollout.reference.as_deref().map(Text::new);
        Self { response: Text::new(&*rollout.response), reference }
    }

    fn sample(&'t self, rollout: &'t Rollout<'_>) -> Sample<'t> {
        Sample {
            text: &self.response,
            reference: self.reference.as_ref(),
            prompt: rollout.prompt.as_ref(),
            tokens: rollout.tokens,
            extra: &rollout.extra,
        }
    }
}
