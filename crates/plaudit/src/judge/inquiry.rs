//! How does a group become outcomes? Wave by wave of calls until enough is known, then one number a response. Nothing here
//! waits: whoever runs it asks the calls and hands the answers in.

use super::case::{Case, Standing};
use super::findings::Findings;
use super::query::{Call, Voice};
use super::question::{Question, Wording};
use super::verdict::{Side, Verdict};
use crate::aggregate::design::Draw;
use crate::aggregate::{AggregateError, Comparison, Evidence, Ranking, Weighed, estimate};
use crate::outcome::{Fact, Info, Outcome};
use crate::reason::{Code, Reason};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is answered to a call.
pub type Answer = Result<Verdict, Reason>;

/// The questions about one group, and what has been answered so far.
#[derive(Debug)]
pub struct Inquiry {
    question: Arc<Question>,
    /// What the judge sees.
    pub case: Case,
    draw: Option<Draw>,
    asked: Vec<Vec<usize>>,
    answers: Vec<Answer>,
    observed: Evidence,
    /// How many responses there are, and how many the method takes, where that is fewer.
    too_large: Option<(usize, usize)>,
}

impl Inquiry {
    /// The inquiry into a case of which nothing has been asked.
    pub fn new(question: Arc<Question>, case: Case) -> Self {
        let n = case.entries.len();
        let largest = question.method.largest();
        let too_large = (question.compares() && n > largest).then_some((n, largest));
        let draw = (question.compares() && n > 1 && too_large.is_none()).then(|| question.draw(n));
        let observed = Evidence { comparisons: vec![], weighed: vec![], rankings: vec![], prior: None };
        Self { question, case, draw, asked: Vec::new(), answers: Vec::new(), observed, too_large }
    }

    /// How many different responses there are, and how many the method takes, where that is fewer. Nothing is asked then.
    pub fn too_large(&self) -> Option<(usize, usize)> {
        self.too_large
    }

    /// The name of the method that comparisons become numbers by.
    pub fn method(&self) -> &'static str {
        self.question.method.name()
    }

    /// What the entries look like to a scalar model, one call each, where one is to be asked first.
    pub fn prior(&self) -> Option<Vec<Vec<usize>>> {
        let asks = self.question.asking.prior.is_some() && self.draw.is_some();
        asks.then(|| (0..self.case.entries.len()).map(|at| vec![at]).collect())
    }

    /// Takes the scalar model's scores, one an entry. Without all of them, there is no prior.
    pub fn expect(&mut self, scores: Vec<Answer>) {
        let score = |answer: Answer| match answer {
            Ok(Verdict::Score(score)) => Some(score),
            _ => None,
        };
        self.observed.prior = scores.into_iter().map(score).collect();
    }

    /// The next calls, each the entries that it shows, in order; none when enough is known.
    pub fn next(&self) -> Vec<Vec<usize>> {
        match (&self.draw, self.asked.is_empty()) {
            (Some(draw), _) => draw.next(&self.asked, &self.observed),
            (None, true) if !self.question.compares() => {
                (0..self.case.entries.len()).map(|at| vec![at]).collect()
            }
            (None, _) => Vec::new(),
        }
    }

    /// The call that asks a scalar model about one entry.
    pub fn prior_call<'c>(&'c self, voice: &'c Voice, shown: &'c [usize]) -> Call<'c> {
        let question = self.question.prior.as_deref().unwrap_or(&self.question);
        Call::new(question, &self.case, voice, shown)
    }

    /// The call that shows those entries.
    pub fn call<'c>(&'c self, voice: &'c Voice, shown: &'c [usize]) -> Call<'c> {
        Call::new(&self.question, &self.case, voice, shown)
    }

    /// The most calls that it will ever make.
    pub fn most_calls(&self) -> usize {
        match self.too_large {
            Some(_) => 0,
            None => self.question.most_calls(self.case.entries.len()),
        }
    }

    /// Takes the answers to a wave, in its order.
    pub fn take(&mut self, wave: Vec<Vec<usize>>, answers: Vec<Answer>) {
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
    pub fn finish(&self) -> (Vec<Outcome>, Findings) {
        let floor = self.question.range.min;
        let mut findings = Findings::of(&self.case, &self.asked, &self.answers);
        let (scores, infos) =
            if self.question.compares() { self.compared(&mut findings) } else { self.scored() };
        let outcome = |standing: &Standing| match standing {
            Standing::Floored(reason) => Outcome::floored(floor, reason.clone()),
            Standing::Judged(at) => match &scores[*at] {
                Ok(score) => Outcome::scored(*score, infos[*at].clone()),
                // A judge that needs a reference has nothing to say without one.
                Err(reason) if matches!(reason.code, Code::MissingReference | Code::EmptyReference) => {
                    Outcome::skipped(reason.clone())
                }
                Err(reason) => Outcome::invalid(reason.clone()),
            },
        };
        let mut outcomes: Vec<Outcome> = self.case.standings.iter().map(outcome).collect();
        if let Some(rival) = self.case.rival {
            findings.win(&mut outcomes, scores[rival].as_ref().ok().copied());
        }
        (outcomes, findings)
    }

    /// Scores of entries that were judged alone.
    fn scored(&self) -> (Vec<Result<f64, Reason>>, Vec<Info>) {
        let scale = match &self.question.wording {
            Wording::Principles { scale, .. } => f64::from(*scale),
            _ => 1.0,
        };
        let mut scores: Vec<Result<f64, Reason>> =
            self.case.entries.iter().map(|_| Err(Code::JudgeNoVerdicts.into())).collect();
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

    /// Scores of entries that were compared with each other.
    fn compared(&self, findings: &mut Findings) -> (Vec<Result<f64, Reason>>, Vec<Info>) {
        let n = self.case.entries.len();
        let identical = || Info::of([("comparisons", Fact::Count(0))]);
        if n < 2 {
            // Identical responses are equally good, which needs no judge.
            return (vec![Ok(0.0); n], vec![identical(); n]);
        }
        if let Some((n, largest)) = self.too_large {
            let reason = Reason::new(Code::GroupTooLarge, AggregateError::TooMany { n, largest }.to_string());
            return (vec![Err(reason); n], vec![Info::none(); n]);
        }
        let records = self.records();
        let known: Vec<usize> = (0..n).filter(|at| self.has_quorum(&records[*at])).collect();
        // Who has a quorum gets a score or the reason of the method below, unless there is nobody to compare with.
        let missing = |at: usize| match known.binary_search(&at) {
            Ok(_) if known.len() > 1 => Err(Code::JudgeNoVerdicts.into()),
            _ => Err(self.missing(at)),
        };
        let mut scores: Vec<Result<f64, Reason>> = (0..n).map(missing).collect();
        let mut infos = vec![Info::none(); n];
        let among = self.among(&known);
        match estimate(&self.question.method, known.len(), &among) {
            Ok(found) if known.len() > 1 => {
                findings.aggregated(&found, &among, known.len());
                for (place, at) in known.iter().enumerate() {
                    scores[*at] = Ok(found.scores[place]);
                    infos[*at] = records[*at].info(found.errors.as_ref().map(|errors| errors[place]));
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

    /// The evidence among some entries, which are numbered anew.
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

    fn has_quorum(&self, record: &Record) -> bool {
        let met = record.won + record.lost + record.tied;
        met > 0 && record.answered as f64 >= self.question.asking.quorum * record.asked as f64
    }

    /// What each entry's calls came to.
    fn records(&self) -> Vec<Record> {
        let mut records = vec![Record::default(); self.case.entries.len()];
        for (shown, answer) in self.asked.iter().zip(&self.answers) {
            for at in shown {
                records[*at].asked += 1;
                records[*at].answered += usize::from(answer.is_ok());
            }
            match answer {
                Ok(Verdict::Pair { winner, .. }) => {
                    for (at, side) in shown.iter().zip([Side::First, Side::Second]) {
                        match winner {
                            None => records[*at].tied += 1,
                            Some(winner) if *winner == side => records[*at].won += 1,
                            Some(_) => records[*at].lost += 1,
                        }
                    }
                }
                Ok(Verdict::Ranking(order)) => {
                    for (rank, place) in order.iter().enumerate() {
                        let record = &mut records[shown[*place]];
                        record.won += order.len() - 1 - rank;
                        record.lost += rank;
                    }
                }
                _ => {}
            }
        }
        records
    }

    /// Why an entry has no score: the reason that most of its calls failed for.
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

/// What the calls about one entry came to.
#[derive(Debug, Clone, Default)]
struct Record {
    asked: usize,
    answered: usize,
    won: usize,
    lost: usize,
    tied: usize,
}

impl Record {
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
