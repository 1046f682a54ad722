//! What would be asked? Calls, tokens and cost, counted before a token is spent.

use super::{Court, Hearing};
use crate::judge::query::Call;
use crate::plan::Plan;
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
    pub(super) fn foresee(&self, plan: &Plan, hearing: &Hearing, foreseen: &mut Vec<Foreseen>) {
        let inquiry = &hearing.inquiry;
        let (judge, prior) = hearing.asks;
        let members = inquiry.case.standings.len();
        let mut count = |judge: usize, calls: Vec<Call<'_>>, most: usize| {
            let settings = &plan.judges[judge];
            let place = foreseen
                .iter()
                .position(|one| one.component == hearing.component && one.judge == settings.name);
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
            let first = calls.len();
            let unknown: Vec<&Call<'_>> =
                calls.iter().filter(|call| !self.caller.is_known(judge, *call)).collect();
            let known = first - unknown.len();
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
            one.rollouts += members as u64;
            one.duplicates += inquiry.case.duplicates();
            one.calls += most as u64;
            one.known += known as u64;
            one.prompt_tokens += read;
            one.completion_tokens += written;
            one.exact &= most == first;
            if let (Some(cost), Some((input, _, output))) = (&mut one.cost, settings.price) {
                *cost += (read as f64 * input + written as f64 * output) / 1e6;
            }
        };
        if let (Some(prior), Some(wave)) = (prior, inquiry.prior()) {
            let voice = &plan.judges[prior].voice;
            count(prior, wave.iter().map(|shown| inquiry.prior_call(voice, shown)).collect(), wave.len());
        }
        let wave = inquiry.next();
        let voice = &plan.judges[judge].voice;
        let calls: Vec<Call<'_>> = wave.iter().map(|shown| inquiry.call(voice, shown)).collect();
        let most = inquiry.most_calls().max(calls.len());
        count(judge, calls, most);
    }
}
