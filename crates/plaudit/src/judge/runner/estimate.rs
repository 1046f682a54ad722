//! Cost estimate of a dry run: calls, tokens and cost, counted before a token is spent.

use super::{JudgeRunner, JudgeTask, Session};
use crate::exec::lock;
use crate::judge::call::JudgeCall;
use crate::judge::config::ResolvedJudge;
use crate::judge::free_question::FreeQuestion;
use crate::judge::rubric_call::RubricCall;
use crate::judge::rubric_session::RubricSession;
use futures_util::stream::{FuturesOrdered, StreamExt as _};
use serde::Serialize;

/// What a component would ask.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostEstimate {
    /// The component that asks.
    pub component: String,
    /// The judge that it asks.
    pub judge: String,
    /// Rollouts that would be put before the judge.
    pub rollouts: u64,
    /// Of those, how many repeat another of their group.
    pub duplicates: u64,
    /// The most calls, retries and hedges aside.
    pub calls: u64,
    /// Of those that are known beforehand, how many the journal answers.
    pub known: u64,
    /// About how many tokens the judge would read, without what is known.
    pub prompt_tokens: u64,
    /// About how many tokens it would write.
    pub completion_tokens: u64,
    /// How many it may write at most, by its `max_tokens`; none where nothing limits it.
    pub completion_tokens_max: Option<u64>,
    /// What that would cost, where there is a price.
    pub cost: Option<f64>,
    /// What it may cost at most, where there is a price and a limit.
    pub cost_max: Option<f64>,
    /// Whether exactly these calls would be made, rather than at most.
    pub exact: bool,
    /// Groups that are larger than the component's aggregate takes. No call is made about them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_large: Option<OversizedGroup>,
}

/// Groups that are larger than a component's aggregate takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OversizedGroup {
    /// The aggregate.
    pub method: &'static str,
    /// How many different responses it takes, the reference included where that takes part.
    pub limit: usize,
    /// How many groups have more.
    pub groups: u64,
    /// The name of the largest of them.
    pub group: String,
    /// How many different responses that one has.
    pub size: usize,
}

impl JudgeRunner {
    /// What would be asked, where calls are only counted.
    pub(crate) fn estimates(&self) -> Vec<CostEstimate> {
        self.estimates.as_ref().map_or_else(Vec::new, |all| lock(all).clone())
    }

    /// Counts what tasks would ask.
    pub(super) async fn estimate(&self, tasks: &[JudgeTask]) {
        for task in tasks {
            self.estimate_task(task).await;
        }
    }

    async fn estimate_task(&self, task: &JudgeTask) {
        let (judge, prior) = task.asks;
        let session = match &task.session {
            Session::Group(session) => session,
            Session::Rubric(session) => return self.count_items(task, session).await,
        };
        if let Some((size, limit)) = session.too_large() {
            self.count_oversized(task, session.method(), (size, limit));
            return;
        }
        if let (Some(prior), Some(wave)) = (prior, session.prior()) {
            let settings = self.client.judge(prior);
            let calls: Vec<JudgeCall<'_>> =
                wave.iter().map(|shown| session.prior_call(settings, shown)).collect();
            self.count(task, (prior, &calls, calls.len())).await;
        }
        let wave = session.next();
        let settings = self.client.judge(judge);
        let calls: Vec<JudgeCall<'_>> = wave.iter().map(|shown| session.call(settings, shown)).collect();
        let most = session.most_calls().max(calls.len());
        self.count(task, (judge, &calls, most)).await;
    }

    /// Counts a group that is larger than the aggregate takes.
    fn count_oversized(&self, task: &JudgeTask, method: &'static str, (size, limit): (usize, usize)) {
        let Some(estimates) = &self.estimates else { return };
        let mut estimates = lock(estimates);
        let one = entry(&mut estimates, &task.component, self.client.judge(task.asks.0));
        let group = task.group.as_deref().unwrap_or("").to_owned();
        let seen = one.too_large.get_or_insert(OversizedGroup {
            method,
            limit,
            groups: 0,
            group: String::new(),
            size: 0,
        });
        seen.groups += 1;
        if size > seen.size {
            (seen.group, seen.size) = (group, size);
        }
    }

    /// Counts the calls of a wave, of which there would be so many at most.
    async fn count(&self, task: &JudgeTask, (judge, calls, most): (usize, &[JudgeCall<'_>], usize)) {
        let known = calls.iter().map(|call| self.client.is_cached(judge, call));
        let known: Vec<bool> = known.collect::<FuturesOrdered<_>>().collect().await;
        let unknown = calls.iter().zip(&known).filter(|(_, known)| !**known).map(|(call, _)| call.estimate());
        self.add(task, judge, (calls.len(), most), unknown.collect());
    }

    /// Counts the calls about the items of a rubric.
    async fn count_items(&self, task: &JudgeTask, session: &RubricSession) {
        let (judge, _) = task.asks;
        let calls = session.calls();
        let mut unknown = Vec::new();
        for call in &calls {
            if let Some(rest) = self.unknown_items(judge, session, call.clone()).await {
                unknown.push(RubricCall::new(session, self.client.judge(judge), &rest).estimate());
            }
        }
        let audits = session.audits();
        for call in &audits {
            let call = RubricCall::new(session, self.client.judge(judge), call);
            if !self.client.is_cached(judge, &call).await {
                unknown.push(call.estimate());
            }
        }
        let all = calls.len() + audits.len();
        self.add(task, judge, (all, all), unknown);
    }

    /// Adds calls of which there are so many now, so many at most, and which of them are unknown with what they read and write.
    fn add(&self, task: &JudgeTask, judge: usize, (now, most): (usize, usize), unknown: Vec<(u64, u64)>) {
        let Some(estimates) = &self.estimates else { return };
        let mut estimates = lock(estimates);
        let settings = self.client.judge(judge);
        let one = entry(&mut estimates, &task.component, settings);
        let known = now - unknown.len();
        let (read, written) = unknown.iter().fold((0, 0), |(read, written), (more_read, more_written)| {
            (read + more_read, written + more_written)
        });
        // Later waves are taken to be like the first.
        let grown = |tokens: u64| match unknown.len() {
            0 => 0,
            asked => (tokens as f64 * (most - known) as f64 / asked as f64) as u64,
        };
        let (read, written) = (grown(read), grown(written));
        one.rollouts += task.session.view().states.len() as u64;
        one.duplicates += task.session.view().duplicates();
        one.calls += most as u64;
        one.known += known as u64;
        one.prompt_tokens += read;
        one.completion_tokens += written;
        one.exact &= most == now;
        // A judge that writes no text has no `max_tokens` to keep to.
        let longest = if written == 0 { Some(0) } else { settings.config.max_tokens.map(u64::from) };
        let longest = longest.map(|tokens| tokens.saturating_mul((most - known) as u64).max(written));
        one.completion_tokens_max = one.completion_tokens_max.zip(longest).map(|(sum, more)| sum + more);
        if let Some(price) = settings.config.price {
            let cost = |written: u64| (read as f64 * price.input + written as f64 * price.output) / 1e6;
            one.cost = one.cost.map(|sum| sum + cost(written));
            one.cost_max = one.cost_max.zip(longest).map(|(sum, longest)| sum + cost(longest));
        }
    }

    /// Counts free questions of a custom reward. What it would ask after their answers cannot be known.
    pub(super) async fn count_questions(&self, component: &str, judge: usize, calls: &[FreeQuestion<'_>]) {
        let mut known = Vec::with_capacity(calls.len());
        for call in calls {
            known.push(self.client.is_cached(judge, call).await);
        }
        let Some(estimates) = &self.estimates else { return };
        let mut estimates = lock(estimates);
        let settings = self.client.judge(judge);
        let one = entry(&mut estimates, component, settings);
        one.exact = false;
        for (call, known) in calls.iter().zip(known) {
            let (read, written) = if known { (0, 0) } else { call.estimate() };
            one.calls += 1;
            one.known += u64::from(known);
            one.prompt_tokens += read;
            one.completion_tokens += written;
            if let (Some(cost), Some(price)) = (&mut one.cost, settings.config.price) {
                *cost += (read as f64 * price.input + written as f64 * price.output) / 1e6;
            }
        }
    }
}

/// What a component would ask of a judge, which is added where nothing has been counted of it.
fn entry<'f>(
    estimates: &'f mut Vec<CostEstimate>,
    component: &str,
    judge: &ResolvedJudge,
) -> &'f mut CostEstimate {
    let known = |one: &CostEstimate| one.component == component && one.judge == judge.name;
    let place = estimates.iter().position(known).unwrap_or_else(|| {
        estimates.push(CostEstimate {
            component: component.to_owned(),
            judge: judge.name.clone(),
            rollouts: 0,
            duplicates: 0,
            calls: 0,
            known: 0,
            prompt_tokens: 0,
            completion_tokens: 0,
            completion_tokens_max: Some(0),
            cost_max: judge.config.price.map(|_| 0.0),
            cost: judge.config.price.map(|_| 0.0),
            exact: true,
            too_large: None,
        });
        estimates.len() - 1
    });
    &mut estimates[place]
}
