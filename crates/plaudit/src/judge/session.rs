//! Judge session: the state machine of one group. It gives out waves of calls until enough is known, then one outcome per
//! member. It has no clock and no I/O: the runner makes the calls and hands the answers in.

use super::answer::{Side, Verdict};
use super::call::JudgeCall;
use super::config::ResolvedJudge;
use super::group_view::{GroupView, MemberState};
use super::rewards::judged_reward::{JudgedReward, PromptSource};
use super::stats::JudgeStats;
use crate::aggregate::design::Schedule;
use crate::aggregate::{AggregateError, Comparison, Evidence, Ranking, Weighed, estimate};
use crate::outcome::{Fact, Info, Outcome};
use crate::reason::{Code, Reason};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The answer to one call.
pub type CallAnswer = Result<Verdict, Reason>;

/// One group in front of one judge: what has been asked, and what was answered.
#[derive(Debug)]
pub struct JudgeSession {
    reward: Arc<JudgedReward>,
    /// What the judge sees.
    pub view: GroupView,
    schedule: Option<Schedule>,
    asked: Vec<Vec<usize>>,
    answers: Vec<CallAnswer>,
    observed: Evidence,
    /// How many responses there are, and how many the method takes, where that is fewer.
    too_large: Option<(usize, usize)>,
}

impl JudgeSession {
    /// The session of a group of which nothing has been asked.
    pub fn new(reward: Arc<JudgedReward>, view: GroupView) -> Self {
        let n = view.candidates.len();
        let largest = reward.method.largest();
        let too_large = (reward.compares() && n > largest).then_some((n, largest));
        let schedule = (reward.compares() && n > 1 && too_large.is_none()).then(|| reward.schedule(n));
        let observed = Evidence { comparisons: vec![], weighed: vec![], rankings: vec![], prior: None };
        Self { reward, view, schedule, asked: Vec::new(), answers: Vec::new(), observed, too_large }
    }

    /// How many different responses there are, and how many the method takes, where that is fewer. Nothing is asked then.
    pub fn too_large(&self) -> Option<(usize, usize)> {
        self.too_large
    }

    /// The name of the method that comparisons become numbers by.
    pub fn method(&self) -> &'static str {
        self.reward.method.name()
    }

    /// What the candidates look like to a scalar model, one call each, where one is to be asked first.
    pub fn prior(&self) -> Option<Vec<Vec<usize>>> {
        let asks = self.reward.params.prior.is_some() && self.schedule.is_some();
        asks.then(|| (0..self.view.candidates.len()).map(|at| vec![at]).collect())
    }

    /// Takes the scalar model's scores, one per candidate. Without all of them, there is no prior.
    pub fn set_prior(&mut self, scores: Vec<CallAnswer>) {
        let score = |answer: CallAnswer| match answer {
            Ok(Verdict::Score(score)) => Some(score),
            _ => None,
        };
        self.observed.prior = scores.into_iter().map(score).collect();
    }

    /// The next calls, each the candidates that it shows, in order; none when enough is known.
    pub fn next(&self) -> Vec<Vec<usize>> {
        match (&self.schedule, self.asked.is_empty()) {
            (Some(schedule), _) => schedule.next(&self.asked, &self.observed),
            (None, true) if !self.reward.compares() => {
                (0..self.view.candidates.len()).map(|at| vec![at]).collect()
            }
            (None, _) => Vec::new(),
        }
    }

    /// The call that asks a scalar model about one candidate.
    pub fn prior_call<'c>(&'c self, judge: &'c ResolvedJudge, shown: &'c [usize]) -> JudgeCall<'c> {
        let reward = self.reward.prior.as_deref().unwrap_or(&self.reward);
        JudgeCall::new(reward, &self.view, judge, shown)
    }

    /// The call that shows those candidates.
    pub fn call<'c>(&'c self, judge: &'c ResolvedJudge, shown: &'c [usize]) -> JudgeCall<'c> {
        JudgeCall::new(&self.reward, &self.view, judge, shown)
    }

    /// The most calls that it will ever make.
    pub fn most_calls(&self) -> usize {
        match self.too_large {
            Some(_) => 0,
            None => self.reward.most_calls(self.view.candidates.len()),
        }
    }

    /// Takes the answers to a wave, in its order.
    pub fn take(&mut self, wave: Vec<Vec<usize>>, answers: Vec<CallAnswer>) {
        for (shown, answer) in wave.into_iter().zip(answers) {
            match (&answer, shown.as_slice()) {
                (Ok(Verdict::Pair { winner, first }), [a, b]) => {
                    let winner = winner.map(|side| if side == Side::First { *a } else { *b });
                    let comparison = Comparison { first: *a, second: *b, winner };
                    match first {
                        Some(first) => self.observed.weighed.push(Weighed { comparison, first: *first }),
                        None => self.observed.comparisons.push(comparison),
                    }
                }
                (Ok(Verdict::Ranking(order)), shown) => {
                    let order = order.iter().map(|place| shown[*place]).collect();
                    self.observed.rankings.push(Ranking { shown: shown.to_vec(), order });
                }
                _ => {}
            }
            self.asked.push(shown);
            self.answers.push(answer);
        }
    }

    /// One outcome a member, in their order, and what was found on the way.
    pub fn finish(&self) -> (Vec<Outcome>, JudgeStats) {
        let floor = self.reward.range.min;
        let mut stats = JudgeStats::of(&self.view, &self.asked, &self.answers);
        let (scores, infos) = if self.reward.compares() { self.compared(&mut stats) } else { self.scored() };
        let outcome = |state: &MemberState| match state {
            MemberState::Floored(reason) => Outcome::floored(floor, reason.clone()),
            MemberState::Judged(at) => match &scores[*at] {
                Ok(score) => Outcome::scored(*score, infos[*at].clone()),
                // A judge that needs a reference has nothing to say without one.
                Err(reason) if matches!(reason.code, Code::MissingReference | Code::EmptyReference) => {
                    Outcome::skipped(reason.clone())
                }
                Err(reason) => Outcome::invalid(reason.clone()),
            },
        };
        let mut outcomes: Vec<Outcome> = self.view.states.iter().map(outcome).collect();
        if let Some(reference) = self.view.reference_index {
            stats.compare_with_reference(&mut outcomes, scores[reference].as_ref().ok().copied());
        }
        (outcomes, stats)
    }

    /// Scores of candidates that were judged alone.
    fn scored(&self) -> (Vec<Result<f64, Reason>>, Vec<Info>) {
        let scale = match &self.reward.prompt {
            PromptSource::Principles { scale, .. } => f64::from(*scale),
            _ => 1.0,
        };
        let mut scores: Vec<Result<f64, Reason>> =
            self.view.candidates.iter().map(|_| Err(Code::JudgeNoVerdicts.into())).collect();
        for (shown, answer) in self.asked.iter().zip(&self.answers) {
            if let [at] = shown.as_slice() {
                scores[*at] = match answer {
                    Ok(Verdict::Score(score)) => Ok(score / scale),
                    Ok(_) => Err(Code::JudgeSchema.into()),
                    Err(reason) => Err(reason.clone()),
                };
            }
        }
        let infos = scores.iter().map(|_| Info::none()).collect();
        (scores, infos)
    }

    /// Scores of candidates that were compared with each other.
    fn compared(&self, stats: &mut JudgeStats) -> (Vec<Result<f64, Reason>>, Vec<Info>) {
        let n = self.view.candidates.len();
        let identical = || Info::of([("comparisons", Fact::Count(0))]);
        if n < 2 {
            // Identical responses are equally good, which needs no judge.
            return (vec![Ok(0.0); n], vec![identical(); n]);
        }
        if let Some((n, largest)) = self.too_large {
            let reason = Reason::new(Code::GroupTooLarge, AggregateError::TooMany { n, largest }.to_string());
            return (vec![Err(reason); n], vec![Info::none(); n]);
        }
        let tallies = self.tallies();
        let known: Vec<usize> = (0..n).filter(|at| self.has_quorum(&tallies[*at])).collect();
        // Who has a quorum gets a score or the reason of the method below, unless there is nobody to compare with.
        let missing = |at: usize| match known.binary_search(&at) {
            Ok(_) if known.len() > 1 => Err(Code::JudgeNoVerdicts.into()),
            _ => Err(self.missing(at)),
        };
        let mut scores: Vec<Result<f64, Reason>> = (0..n).map(missing).collect();
        let mut infos = vec![Info::none(); n];
        let among = self.among(&known);
        match estimate(&self.reward.method, known.len(), &among) {
            Ok(found) if known.len() > 1 => {
                stats.aggregated(&found, &among, known.len());
                for (place, at) in known.iter().enumerate() {
                    scores[*at] = Ok(found.scores[place]);
                    infos[*at] = tallies[*at].info(found.errors.as_ref().map(|errors| errors[place]));
                }
            }
            Ok(_) => {}
            Err(error) => {
                let code = match error {
                    AggregateError::TooMany { .. } => Code::GroupTooLarge,
                    AggregateError::NeverCompared { .. } => Code::JudgeNoVerdicts,
                    _ => Code::NotFinite,
                };
                let reason = Reason::new(code, error.to_string());
                known.iter().for_each(|at| scores[*at] = Err(reason.clone()));
            }
        }
        (scores, infos)
    }

    /// The evidence among some candidates, which are numbered anew.
    fn among(&self, known: &[usize]) -> Evidence {
        let place = |at: usize| known.binary_search(&at).ok();
        let comparison = |one: &Comparison| {
            let winner = match one.winner {
                Some(winner) => Some(place(winner)?),
                None => None,
            };
            Some(Comparison { first: place(one.first)?, second: place(one.second)?, winner })
        };
        let line_up = |one: &Ranking| {
            let kept = |all: &[usize]| all.iter().filter_map(|at| place(*at)).collect::<Vec<_>>();
            let (shown, order) = (kept(&one.shown), kept(&one.order));
            (shown.len() > 1).then_some(Ranking { shown, order })
        };
        let weighed =
            |one: &Weighed| Some(Weighed { comparison: comparison(&one.comparison)?, first: one.first });
        Evidence {
            comparisons: self.observed.comparisons.iter().filter_map(comparison).collect(),
            weighed: self.observed.weighed.iter().filter_map(weighed).collect(),
            rankings: self.observed.rankings.iter().filter_map(line_up).collect(),
            prior: self.observed.prior.as_ref().map(|prior| known.iter().map(|at| prior[*at]).collect()),
        }
    }

    fn has_quorum(&self, tally: &CandidateTally) -> bool {
        let met = tally.won + tally.lost + tally.tied;
        met > 0 && tally.answered as f64 >= self.reward.params.quorum * tally.asked as f64
    }

    /// What each candidate's calls came to.
    fn tallies(&self) -> Vec<CandidateTally> {
        let mut tallies = vec![CandidateTally::default(); self.view.candidates.len()];
        for (shown, answer) in self.asked.iter().zip(&self.answers) {
            for at in shown {
                tallies[*at].asked += 1;
                tallies[*at].answered += usize::from(answer.is_ok());
            }
            match answer {
                Ok(Verdict::Pair { winner, .. }) => {
                    for (at, side) in shown.iter().zip([Side::First, Side::Second]) {
                        match winner {
                            None => tallies[*at].tied += 1,
                            Some(winner) if *winner == side => tallies[*at].won += 1,
                            Some(_) => tallies[*at].lost += 1,
                        }
                    }
                }
                Ok(Verdict::Ranking(order)) => {
                    for (rank, place) in order.iter().enumerate() {
                        let tally = &mut tallies[shown[*place]];
                        tally.won += order.len() - 1 - rank;
                        tally.lost += rank;
                    }
                }
                _ => {}
            }
        }
        tallies
    }

    /// Why a candidate has no score: the reason that most of its calls failed for.
    fn missing(&self, at: usize) -> Reason {
        let mut counts: BTreeMap<Code, (usize, &Reason)> = BTreeMap::new();
        for (shown, answer) in self.asked.iter().zip(&self.answers) {
            if let (true, Err(reason)) = (shown.contains(&at), answer) {
                counts.entry(reason.code).or_insert((0, reason)).0 += 1;
            }
        }
        let most = counts.into_values().max_by_key(|(count, _)| *count);
        most.map_or_else(|| Code::JudgeNoVerdicts.into(), |(_, reason)| reason.clone())
    }
}

/// What the calls about one candidate came to.
#[derive(Debug, Clone, Default)]
struct CandidateTally {
    asked: usize,
    answered: usize,
    won: usize,
    lost: usize,
    tied: usize,
}

impl CandidateTally {
    fn info(&self, error: Option<f64>) -> Info {
        let count = |count: usize| Fact::Count(count as u64);
        let mut info = Info::of([
            ("comparisons", count(self.answered)),
            ("wins", count(self.won)),
            ("losses", count(self.lost)),
            ("ties", count(self.tied)),
        ]);
        if self.asked > self.answered {
            info.push("failed", count(self.asked - self.answered));
        }
        if let Some(error) = error {
            info.push("std_error", Fact::Number(error));
        }
        info
    }
}
