//! Rubric session: the state machine of some responses that are graded by one rubric. It gives out waves of calls about items, and
//! in the end one outcome a member. Like [`super::session`], it has no clock and no I/O.

use super::answer::{ItemAnswer, Verdict};
use super::group_view::{GroupView, MemberState};
use super::rewards::judged_reward::JudgedReward;
use super::rewards::rubric::RubricGrader;
use super::session::CallAnswer;
use super::stats::JudgeStats;
use crate::outcome::{Fact, Info, Outcome};
use crate::reason::{Code, Reason};
use crate::rubric::{Item, ItemStats, ItemVerdict, RubricFormula, ScoreError};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One call: the response that it shows, and the items that it asks about, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemsCall {
    /// The candidate.
    pub candidate: usize,
    /// The items, as places among those that differ; none where one number is asked for all.
    pub items: Vec<usize>,
}

/// What a wave of calls is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemsWave {
    /// Nothing has been asked.
    None,
    /// All items, several a call.
    Whole,
    /// What could not be read, each item alone.
    Unread,
    /// A share of what is known, each item alone, to see whether the judge holds to its verdicts.
    Audit,
}

/// Some responses in front of one judge, and the rubric that they are graded by.
#[derive(Debug)]
pub struct RubricSession {
    pub(super) reward: Arc<JudgedReward>,
    /// What the judge sees.
    pub view: GroupView,
    /// The rubric.
    pub(super) items: Arc<[Item]>,
    /// The items that differ in what is asked, as places in the rubric.
    distinct: Vec<usize>,
    /// For each item of the rubric, its place among those.
    place: Vec<usize>,
    /// For each candidate and distinct item, what is known.
    answers: Vec<Vec<Option<Result<ItemAnswer, Reason>>>>,
    /// For each candidate the one number, where one is asked for.
    scores: Vec<Option<Result<f64, Reason>>>,
    /// Verdicts that were asked for once more: the candidate, the place and whether it was another one.
    audited: Vec<(usize, usize, bool)>,
    /// The wave that is asked.
    wave: ItemsWave,
}

impl RubricSession {
    /// The session of responses of which nothing has been asked. The reward is one that grades by rubrics.
    pub fn new(reward: Arc<JudgedReward>, items: Arc<[Item]>, view: GroupView) -> Self {
        let same = |a: &Item, b: &Item| a.criterion == b.criterion && a.answers().eq(b.answers());
        let (mut distinct, mut place): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        for (at, item) in items.iter().enumerate() {
            let known = distinct.iter().position(|other| same(&items[*other], item));
            place.push(known.unwrap_or(distinct.len()));
            if known.is_none() {
                distinct.push(at);
            }
        }
        let answers = vec![vec![None; distinct.len()]; view.candidates.len()];
        let scores = vec![None; view.candidates.len()];
        Self {
            reward,
            view,
            items,
            distinct,
            place,
            answers,
            scores,
            audited: Vec::new(),
            wave: ItemsWave::None,
        }
    }

    /// The grader; none where the reward goes by no rubric, which never happens.
    pub(super) fn grader(&self) -> Option<&RubricGrader> {
        self.reward.grader()
    }

    fn is_implicit(&self) -> bool {
        self.grader().is_some_and(|grader| grader.aggregate == RubricFormula::Implicit)
    }

    /// A distinct item.
    pub(super) fn item(&self, place: usize) -> &Item {
        &self.items[self.distinct[place]]
    }

    /// The places of the items in the order in which a candidate is asked about them: drawn for each response, so that no item
    /// stands first for all.
    fn order(&self, candidate: usize) -> Vec<usize> {
        let mut order: Vec<([u8; 32], usize)> = (0..self.distinct.len())
            .map(|place| {
                let mut hasher = blake3::Hasher::new();
                hasher.update(b"plaudit item order").update(&self.reward.params.seed.to_le_bytes());
                hasher
                    .update(&self.view.candidates[candidate].hash)
                    .update(self.item(place).criterion.as_bytes());
                self.item(place).answers().for_each(|answer| _ = hasher.update(answer.as_bytes()));
                (*hasher.finalize().as_bytes(), place)
            })
            .collect();
        order.sort_unstable();
        order.into_iter().map(|(_, place)| place).collect()
    }

    /// The calls that would ask about everything, without what is known of single items.
    pub fn calls(&self) -> Vec<ItemsCall> {
        let count = self.grader().map_or(1, |grader| grader.items_per_call);
        let of = |candidate: usize| -> Vec<ItemsCall> {
            if self.is_implicit() {
                return vec![ItemsCall { candidate, items: Vec::new() }];
            }
            let order = self.order(candidate);
            // As few calls as may be, and then as even ones as may be.
            let size = order.len().div_ceil(order.len().div_ceil(count).max(1));
            order.chunks(size.max(1)).map(|items| ItemsCall { candidate, items: items.to_vec() }).collect()
        };
        (0..self.view.candidates.len()).flat_map(of).collect()
    }

    /// The next calls; none when enough is known. What could not be read of a call about several items is asked about once more, each
    /// item alone; so is the share that `audit` draws.
    pub fn next_wave(&mut self) -> Vec<ItemsCall> {
        loop {
            let (wave, calls) = match self.wave {
                ItemsWave::None => {
                    let calls = self.calls().into_iter().filter_map(|call| self.unknown(call)).collect();
                    (ItemsWave::Whole, calls)
                }
                ItemsWave::Whole if self.grader().is_some_and(|grader| grader.items_per_call > 1) => {
                    let unread = |answer: &Result<ItemAnswer, Reason>| {
                        answer.as_ref().is_err_and(|reason| is_about_form(reason.code))
                    };
                    (
                        ItemsWave::Unread,
                        self.alone(|candidate, place| {
                            self.answers[candidate][place].as_ref().is_some_and(unread)
                        }),
                    )
                }
                ItemsWave::Unread => {
                    let known = |candidate: usize, place: usize| {
                        matches!(self.answers[candidate][place], Some(Ok(_)))
                    };
                    (
                        ItemsWave::Audit,
                        self.alone(|candidate, place| {
                            known(candidate, place) && self.is_audited(candidate, place)
                        }),
                    )
                }
                ItemsWave::Whole | ItemsWave::Audit => return Vec::new(),
            };
            self.wave = wave;
            if !calls.is_empty() {
                return calls;
            }
        }
    }

    /// Calls about single items, those that are chosen.
    fn alone(&self, is_chosen: impl Fn(usize, usize) -> bool) -> Vec<ItemsCall> {
        if self.is_implicit() {
            return Vec::new();
        }
        let of = |candidate: usize| {
            let chosen: Vec<usize> =
                (0..self.distinct.len()).filter(|place| is_chosen(candidate, *place)).collect();
            chosen.into_iter().map(move |place| ItemsCall { candidate, items: vec![place] })
        };
        (0..self.view.candidates.len()).flat_map(of).collect()
    }

    /// The calls that an audit makes where every item has a verdict.
    pub fn audits(&self) -> Vec<ItemsCall> {
        self.alone(|candidate, place| self.is_audited(candidate, place))
    }

    /// Whether the verdict about an item is asked for once more: drawn by the texts, so that every run draws the same.
    fn is_audited(&self, candidate: usize, place: usize) -> bool {
        let share = self.grader().map_or(0.0, |grader| grader.audit);
        if share <= 0.0 {
            return false;
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"plaudit item audit").update(&self.reward.params.seed.to_le_bytes());
        hasher.update(&self.view.candidates[candidate].hash).update(self.item(place).criterion.as_bytes());
        let bytes = hasher.finalize();
        let drawn = bytes.as_bytes().iter().take(4).fold(0_u32, |drawn, byte| drawn << 8 | u32::from(*byte));
        f64::from(drawn) < share * f64::from(u32::MAX)
    }

    /// Whether the calls that are asked now are an audit, whose verdicts are compared and not kept.
    pub fn is_audit(&self) -> bool {
        self.wave == ItemsWave::Audit
    }

    /// What is left of a call once the items are taken away whose answers are known.
    pub fn unknown(&self, call: ItemsCall) -> Option<ItemsCall> {
        if self.is_implicit() {
            return self.scores[call.candidate].is_none().then_some(call);
        }
        let known = |place: &usize| matches!(self.answers[call.candidate][*place], Some(Ok(_)));
        let items: Vec<usize> = call.items.into_iter().filter(|place| !known(place)).collect();
        (!items.is_empty()).then_some(ItemsCall { candidate: call.candidate, items })
    }

    /// Takes an answer that was known before.
    pub fn know(&mut self, candidate: usize, place: usize, answer: ItemAnswer) {
        self.answers[candidate][place] = Some(Ok(answer));
    }

    /// Takes the answers to a wave, in its order.
    pub fn take(&mut self, wave: &[ItemsCall], answers: Vec<CallAnswer>) {
        for (call, answer) in wave.iter().zip(answers) {
            if self.is_audit() {
                if let (Ok(Verdict::Items(again)), [place]) = (answer, call.items.as_slice())
                    && let ([Some(again)], Some(Ok(first))) =
                        (again.as_slice(), &self.answers[call.candidate][*place])
                {
                    self.audited.push((call.candidate, *place, first.verdict != again.verdict));
                }
                continue;
            }
            match answer {
                Ok(Verdict::Score(score)) => self.scores[call.candidate] = Some(Ok(score)),
                Ok(Verdict::Items(items)) => {
                    for (place, item) in call.items.iter().zip(items) {
                        let missing = || Reason::new(Code::JudgeSchema, "the item has none of its answers");
                        self.answers[call.candidate][*place] = Some(item.ok_or_else(missing));
                    }
                }
                other => {
                    let reason = other.err().unwrap_or_else(|| Code::JudgeSchema.into());
                    if self.is_implicit() {
                        self.scores[call.candidate] = Some(Err(reason.clone()));
                    }
                    for place in &call.items {
                        self.answers[call.candidate][*place] = Some(Err(reason.clone()));
                    }
                }
            }
        }
    }

    /// One outcome a member, in their order, and what was found on the way.
    pub fn finish(&self) -> (Vec<Outcome>, JudgeStats) {
        let known: Vec<Outcome> =
            (0..self.view.candidates.len()).map(|candidate| self.outcome(candidate)).collect();
        let floor = self.grader().map_or(self.reward.range.min, |grader| grader.least(&self.items));
        let outcome = |state: &MemberState| match state {
            MemberState::Floored(reason) => Outcome::floored(floor, reason.clone()),
            MemberState::Judged(at) => known[*at].clone(),
        };
        let mut outcomes: Vec<Outcome> = self.view.states.iter().map(outcome).collect();
        let mut stats = JudgeStats { items: self.item_stats(), ..JudgeStats::of(&self.view, &[], &[]) };
        let all = self.answers.iter().flatten().flatten().map(|answer| answer.as_ref().err());
        let scores = self.scores.iter().flatten().map(|score| score.as_ref().err());
        for failed in all.chain(scores) {
            match failed {
                None => stats.verdicts += 1,
                Some(reason) => *stats.failed.entry(reason.code).or_insert(0) += 1,
            }
        }
        if let Some(reference) = self.view.reference_index {
            stats.compare_with_reference(&mut outcomes, known[reference].value());
        }
        (outcomes, stats)
    }

    /// What was said of each item, also about responses that get no number.
    fn item_stats(&self) -> ItemStats {
        if self.is_implicit() {
            return ItemStats::default();
        }
        let items: Vec<&Item> = (0..self.distinct.len()).map(|place| self.item(place)).collect();
        let verdict = |answer: &Option<Result<ItemAnswer, Reason>>| match answer {
            Some(Ok(answer)) => answer.verdict,
            _ => ItemVerdict::Missing,
        };
        let of = |state: &MemberState| match state {
            MemberState::Judged(at) => Some(self.answers[*at].iter().map(verdict).collect()),
            MemberState::Floored(_) => None,
        };
        let mut stats =
            ItemStats::of_group(&items, &self.view.states.iter().filter_map(of).collect::<Vec<_>>());
        for (_, place, differs) in &self.audited {
            stats.audit(self.item(*place), *differs);
        }
        stats
    }

    fn outcome(&self, candidate: usize) -> Outcome {
        if self.is_implicit() {
            return match &self.scores[candidate] {
                Some(Ok(score)) => Outcome::scored(score / 10.0, Info::none()),
                Some(Err(reason)) => Outcome::invalid(reason.clone()),
                None => Outcome::invalid(Code::JudgeNoVerdicts),
            };
        }
        let Some(grader) = self.grader() else { return Outcome::invalid(Code::JudgeNoVerdicts) };
        let answers: Vec<Option<&ItemAnswer>> =
            self.place.iter().map(|place| self.answers[candidate][*place].as_ref()?.as_ref().ok()).collect();
        let verdicts: Vec<ItemVerdict> = answers
            .iter()
            .map(|answer| answer.map_or(ItemVerdict::Missing, |answer| answer.verdict))
            .collect();
        let bounds = match grader.bounds(&self.items, &verdicts) {
            Ok(bounds) => bounds,
            Err(ScoreError::NothingApplies) => return Outcome::invalid(Code::JudgeNothingApplies),
            Err(error) => return Outcome::invalid(Reason::new(Code::BadRubric, error.to_string())),
        };
        let missing = verdicts.iter().filter(|verdict| **verdict == ItemVerdict::Missing).count();
        // However much may be missing: of a response about which the judge has said nothing, nothing is known.
        let silent = !verdicts.iter().any(|verdict| matches!(verdict, ItemVerdict::Answer(_)));
        if missing > 0 && (silent || bounds.width() > grader.tolerance) {
            return Outcome::invalid(self.missing(candidate));
        }
        let items = self.items.iter().zip(&answers).map(|(item, answer)| item_fact(item, *answer)).collect();
        let passed =
            self.items.iter().zip(&verdicts).filter(|(item, verdict)| item.is_met(**verdict)).count();
        let mut info = Info::of([
            ("met", Fact::Count(passed as u64)),
            ("missing", Fact::Count(missing as u64)),
            ("items", Fact::Json(Value::Array(items))),
        ]);
        if missing > 0 {
            info.push("low", Fact::Number(bounds.low));
            info.push("high", Fact::Number(bounds.high));
        }
        Outcome::scored(bounds.middle(), info)
    }

    /// Why a candidate has no number: the reason that most of its verdicts failed for.
    fn missing(&self, candidate: usize) -> Reason {
        let mut counts: BTreeMap<Code, (usize, &Reason)> = BTreeMap::new();
        for reason in self.answers[candidate].iter().flatten().filter_map(|answer| answer.as_ref().err()) {
            counts.entry(reason.code).or_insert((0, reason)).0 += 1;
        }
        let most = counts.into_values().max_by_key(|(count, _)| *count);
        most.map_or_else(|| Code::JudgeNoVerdicts.into(), |(_, reason)| reason.clone())
    }
}

/// Whether a call failed for what it was, so that a smaller one may be answered.
fn is_about_form(code: Code) -> bool {
    use Code::{JudgeAmbiguous, JudgeDuplicateKey, JudgeEmpty, JudgeJson, JudgeSchema, JudgeTruncated};
    matches!(code, JudgeSchema | JudgeTruncated | JudgeAmbiguous | JudgeJson | JudgeDuplicateKey | JudgeEmpty)
}

/// What is told of an item: its verdict, null where there is none.
fn item_fact(item: &Item, answer: Option<&ItemAnswer>) -> Value {
    let mut fact = Map::new();
    fact.insert("criterion".to_owned(), json!(item.criterion));
    fact.insert("weight".to_owned(), json!(item.weight));
    fact.insert("verdict".to_owned(), json!(answer.map(|answer| &answer.said)));
    if let Some(answer) = answer.filter(|answer| !answer.reason.is_empty()) {
        fact.insert("reason".to_owned(), json!(answer.reason));
    }
    if item.negative {
        fact.insert("negative".to_owned(), json!(true));
    }
    if !item.tags.is_empty() {
        fact.insert("tags".to_owned(), json!(item.tags));
    }
    Value::Object(fact)
}
