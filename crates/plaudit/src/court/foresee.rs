//! What would be asked? Calls, tokens and cost, counted before a token is spent.

use super::{Court, Hearing};
use crate::judge::query::Call;
use crate::plan::Plan;
use futures_util::stream::{FuturesOrdered, StreamExt as _};
use serde::Serialize;
use std::sync::PoisonError;

/// What a component would ask.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Foreseen {
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
    /// What that would cost, where there is a price.
    pub cost: Option<f64>,
    /// Whether exactly these calls would be made, rather than at most.
    pub exact: bool,
}

impl Court {
    /// What would be asked, where calls are only counted.
    pub(crate) fn foreseen(&self) -> Vec<Foreseen> {
        let foreseen = self.foreseen.as_ref();
        foreseen.map_or_else(Vec::new, |all| all.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Counts what a hearing would ask.
    pub(super) async fn foresee(&self, plan: &Plan, hearing: &Hearing) {
        let inquiry = &hearing.inquiry;
        let (judge, prior) = hearing.asks;
        if let (Some(prior), Some(wave)) = (prior, inquiry.prior()) {
            let voice = &plan.judges[prior].voice;
            let calls: Vec<Call<'_>> = wave.iter().map(|shown| inquiry.prior_call(voice, shown)).collect();
            self.count(plan, hearing, (prior, &calls, calls.len())).await;
        }
        let wave = inquiry.next();
        let voice = &plan.judges[judge].voice;
        let calls: Vec<Call<'_>> = wave.iter().map(|shown| inquiry.call(voice, shown)).collect();
        let most = inquiry.most_calls().max(calls.len());
        self.count(plan, hearing, (judge, &calls, most)).await;
    }

    /// Counts the calls of a wave, of which there would be so many at most.
    async fn count(&self, plan: &Plan, hearing: &Hearing, (judge, calls, most): (usize, &[Call<'_>], usize)) {
        let known = calls.iter().map(|call| self.caller.is_known(judge, call));
        let known: Vec<bool> = known.collect::<FuturesOrdered<_>>().collect().await;
        let Some(foreseen) = &self.foreseen else { return };
        let mut foreseen = foreseen.lock().unwrap_or_else(PoisonError::into_inner);
        let settings = &plan.judges[judge];
        let place =
            foreseen.iter().position(|one| one.component == hearing.component && one.judge == settings.name);
        let place = place.unwrap_or_else(|| {
            foreseen.push(Foreseen {
                component: hearing.component.to_owned(),
                judge: settings.name.clone(),
                rollouts: 0,
                duplicates: 0,
                calls: 0,
                known: 0,
                prompt_tokens: 0,
                completion_tokens: 0,
                cost: settings.price.map(|_| 0.0),
                exact: true,
            });
            foreseen.len() - 1
        });
        let one = &mut foreseen[place];
        let unknown: Vec<&Call<'_>> =
            calls.iter().zip(&known).filter(|(_, known)| !**known).map(|(call, _)| call).collect();
        let known = calls.len() - unknown.len();
        let (read, written) = unknown.iter().fold((0, 0), |(read, written), call| {
            let (more_read, more_written) = call.estimate();
            (read + more_read, written + more_written)
        });
        // Later waves are taken to be like the first.
        let grown = |tokens: u64| match unknown.len() {
            0 => 0,
            asked => (tokens as f64 * (most - known) as f64 / asked as f64) as u64,
        };
        let (read, written) = (grown(read), grown(written));
        one.rollouts += hearing.inquiry.case.standings.len() as u64;
        one.duplicates += hearing.inquiry.case.duplicates();
        one.calls += most as u64;
        one.known += known as u64;
        one.prompt_tokens += read;
        one.completion_tokens += written;
        one.exact &= most == calls.len();
        if let (Some(cost), Some((input, _, output))) = (&mut one.cost, settings.price) {
            *cost += (read as f64 * input + written as f64 * output) / 1e6;
        }
    }
}
