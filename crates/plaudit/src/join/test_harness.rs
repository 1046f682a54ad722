//! Test harness for the join's state machine: a simulated clock and an engine that scores on demand.

use super::Policy;
use super::effect::{Effect, JoinInfo, MemberAnswer, MemberResult, ScoreBatch};
use super::group::{GroupId, JoinRequest};
use super::state::JoinState;
use crate::engine::{Engine, ScoreOptions};
use crate::reason::Code;
use crate::recipe::Recipe;
use crate::rollout::Rollout;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Compares the responses of a group by their words in common with the reference, and counts characters.
pub(super) const COMPARES: &str = "components:
  principle: { reward: principle, mode: pairwise, judge: main, aggregate: winrate }
  length: { reward: length_penalty, min_length: 4, penalty_rate: 1.0 }
judges:
  main: { kind: overlap }
";

/// Nothing is compared, and who has no number to show is invalid.
pub(super) const ALONE: &str = "components:
  length: { reward: length_penalty, min_length: 4, penalty_rate: 1.0 }
  number: { reward: number_accuracy, weight: 0, required: true }
";

pub(super) fn engine(yaml: &str) -> Arc<Engine> {
    Arc::new(Engine::new(Recipe::from_yaml(yaml).unwrap().plan().unwrap()).unwrap())
}

pub(super) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// What was delivered to one caller.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Delivered {
    pub(super) total: Option<f64>,
    pub(super) code: Option<Code>,
    pub(super) info: (usize, bool, bool, bool),
    pub(super) waited: Duration,
    pub(super) others: Vec<Option<f64>>,
}

/// The state with an engine behind it, which scores when the test says so.
pub(super) struct TestHarness {
    pub(super) state: JoinState<u32>,
    pub(super) engine: Arc<Engine>,
    pub(super) now: Duration,
    pub(super) next: u32,
    pub(super) told: BTreeMap<u32, Vec<Delivered>>,
    pub(super) batches: VecDeque<ScoreBatch<u32>>,
    /// The sizes of the groups that were counted apart from their members.
    pub(super) counted: Vec<usize>,
    pub(super) prescored: usize,
}

impl TestHarness {
    pub(super) fn new(engine: &Arc<Engine>, policy: impl FnOnce(Policy) -> Policy) -> Self {
        let eager = !engine.plan().compares_groups();
        let policy = policy(Policy { timeout: seconds(100), ..Policy::of(engine.plan()) });
        Self {
            state: JoinState::new(policy, eager),
            engine: Arc::clone(engine),
            now: Duration::ZERO,
            next: 0,
            told: BTreeMap::new(),
            batches: VecDeque::new(),
            counted: Vec::new(),
            prescored: 0,
        }
    }

    pub(super) fn take(&mut self, effects: Vec<Effect<u32>>) {
        for effect in effects {
            match effect {
                Effect::Prescore(..) => self.prescored += 1,
                Effect::Score(batch) => self.batches.push_back(batch),
                Effect::Count(reports) => self.counted.push(reports.len()),
                Effect::Answer(caller, MemberAnswer { result, info, others }) => {
                    let JoinInfo { group_size, partial, late, duplicate, waited } = info;
                    let (total, code) = match &result {
                        MemberResult::Row(report, at) => {
                            let total = &report.rows[*at].total;
                            (total.value(), total.cause().map(|cause| cause.reason.code))
                        }
                        MemberResult::Refused(_, code) => (None, Some(*code)),
                    };
                    let info = (group_size, partial, late, duplicate);
                    self.told.entry(caller).or_default().push(Delivered {
                        total,
                        code,
                        info,
                        waited,
                        others,
                    });
                }
            }
        }
    }

    /// Scores one batch; whether there was one.
    pub(super) fn score(&mut self) -> bool {
        let Some(batch) = self.batches.pop_front() else { return false };
        let rollouts: Vec<Rollout<'static>> = batch.rollouts.iter().map(|held| (**held).clone()).collect();
        let terms = ScoreOptions { validate: batch.validate, ..ScoreOptions::default() };
        let report = Arc::new(self.engine.score_with(&rollouts, &terms).unwrap());
        assert_eq!(report.groups.len(), 1, "a batch is one group");
        let effects = self.state.scored(batch.target, &report);
        self.take(effects);
        true
    }

    pub(super) fn settle(&mut self) {
        while self.score() {}
    }

    pub(super) fn enter(&mut self, group: &str, member: Option<&str>, size: usize, text: &str) -> u32 {
        self.enter_for(group, member, size, text, None)
    }

    pub(super) fn enter_for(
        &mut self,
        group: &str,
        member: Option<&str>,
        size: usize,
        text: &str,
        timeout: Option<Duration>,
    ) -> u32 {
        let caller = self.next;
        self.next += 1;
        let (name, member) = (GroupId::of(group), member.map(Into::into));
        let request =
            JoinRequest { group: name, member, size, timeout, validate: None, caller: caller.into() };
        let mut rollout = Rollout::new(text.to_owned())
            .to_prompt("the same for all")
            .in_group(group.to_owned())
            .with_reference("one two three 4");
        // Where nothing is compared, one of the texts has no number of its own.
        if self.state.eager && text.starts_with("nothing") {
            rollout.reference = None;
        }
        let effects = self.state.arrive(self.now, request, Arc::new(rollout), caller);
        self.take(effects);
        caller
    }

    /// Callers of a group disconnect before they are answered.
    pub(super) fn disconnect(&mut self, group: &str, callers: &[u32]) {
        for caller in callers {
            self.state.disconnect(self.now, GroupId::of(group), (*caller).into());
        }
    }

    pub(super) fn leave(&mut self, group: &str, member: Option<&str>) {
        let effects = self.state.leave(self.now, GroupId::of(group), member);
        self.take(effects);
    }

    pub(super) fn at(&mut self, now: u64) {
        self.now = seconds(now);
        let effects = self.state.tick(self.now);
        self.take(effects);
        self.settle();
    }

    pub(super) fn told(&self, caller: u32) -> &Delivered {
        match self.told.get(&caller).map(Vec::as_slice) {
            Some([told]) => told,
            other => panic!("caller {caller} was told {other:?}"),
        }
    }

    pub(super) fn is_told(&self, caller: u32) -> bool {
        self.told.contains_key(&caller)
    }

    pub(super) fn codes(&self, callers: &[u32]) -> Vec<Option<Code>> {
        callers.iter().map(|caller| self.told(*caller).code).collect()
    }

    /// What the engine says of these texts as one group.
    pub(super) fn totals(&self, texts: &[&str]) -> Vec<Option<f64>> {
        let rollout = |text: &&str| {
            Rollout::new((*text).to_owned())
                .to_prompt("the same for all")
                .in_group("g")
                .with_reference("one two three 4")
        };
        let rollouts: Vec<Rollout<'_>> = texts.iter().map(rollout).collect();
        self.engine.score(&rollouts).unwrap().rows.iter().map(|row| row.total.value()).collect()
    }
}

pub(super) const TEXTS: [&str; 4] = ["one two three", "one two", "nothing at all", "three"];

/// An engine that many tests share.
pub(super) fn shared(yaml: &'static str) -> &'static Arc<Engine> {
    static ENGINES: [OnceLock<Arc<Engine>>; 2] = [const { OnceLock::new() }; 2];
    ENGINES[usize::from(yaml == ALONE)].get_or_init(|| engine(yaml))
}
