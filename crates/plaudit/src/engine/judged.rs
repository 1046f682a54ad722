//! Who is put before which judge? The questions of a group that rules cannot answer, and what becomes of the answers.

use super::rules::with_floor;
use super::{Engine, Terms};
use crate::court::{Exchange, Heard, Hearing};
use crate::group::Key;
use crate::judge::Question;
use crate::judge::asking::Mode;
use crate::judge::case::{Case, Member};
use crate::judge::findings::Findings;
use crate::judge::inquiry::Inquiry;
use crate::outcome::Outcome;
use crate::plan::{Branch, Component, Scorer};
use crate::reason::Code;
use crate::report::Row;
use crate::schedule::Halt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A group with everything said of it that needs no judge.
pub(super) struct Half {
    pub(super) rows: Vec<Row>,
    pub(super) hearings: Vec<(Place, Hearing)>,
}

/// Whom a hearing is about.
pub(super) struct Place {
    component: usize,
    members: Vec<usize>,
}

impl Engine {
    /// The questions of a branch about a group, of those components that `which` chooses; what needs no judge to say is
    /// said at once.
    pub(super) fn call_hearings(
        &self,
        index: usize,
        branch: &Branch,
        members: &[Member<'_>],
        rows: &mut [Row],
        terms: &Terms,
        which: impl Fn(&Component) -> bool,
    ) -> Vec<(Place, Hearing)> {
        let mut hearings = Vec::new();
        for (component, settings) in branch.components.iter().enumerate().filter(|(_, one)| which(one)) {
            let (Scorer::Judged(question), Some(asks), Some(court)) =
                (&settings.scorer, settings.asks, self.court.as_ref())
            else {
                continue;
            };
            let floor = |outcome| with_floor(outcome, settings.floor);
            let mut asked = Vec::new();
            for (member, row) in rows.iter_mut().enumerate() {
                if row.branch != Some(index) || row.closed_by.is_some() {
                    continue;
                }
                match members[member].text.as_str().len() > self.plan.longest_response {
                    true => row.outcomes[component] = Some(floor(Outcome::floored(0.0, self.too_long()))),
                    false => asked.push(member),
                }
            }
            for part in self.parts(question, members, asked) {
                let chosen: Vec<Member<'_>> = part.iter().map(|member| members[*member]).collect();
                let validates = self.validates(question, terms);
                match refuse_part(question, &chosen, validates, members.len()) {
                    Some(outcome) => {
                        part.iter()
                            .for_each(|member| rows[*member].outcomes[component] = Some(outcome.clone()));
                    }
                    None => {
                        let case = Case::new(question, &chosen, court.secret(), validates);
                        let inquiry = Inquiry::new(Arc::clone(question), case);
                        let group_name = || Key::of(chosen[0].rollout).map(|key| key.label().into_owned());
                        let group = inquiry.too_large().and_then(|_| group_name());
                        let name = settings.name.clone();
                        let hearing = Hearing { component: name, group, inquiry, asks, again: false };
                        hearings.push((Place { component, members: part }, hearing));
                    }
                }
            }
        }
        hearings
    }

    fn validates(&self, question: &Question, terms: &Terms) -> bool {
        terms.validate.unwrap_or(self.plan.validates) && !question.is_scalar()
    }

    /// The members that are put before a judge together: all of them where they are compared, else those that share a
    /// prompt and a reference.
    fn parts(&self, question: &Question, members: &[Member<'_>], asked: Vec<usize>) -> Vec<Vec<usize>> {
        if asked.is_empty() {
            return Vec::new();
        }
        if question.asking.mode != Mode::Pointwise {
            return vec![asked];
        }
        let mut parts: Vec<Vec<usize>> = Vec::new();
        for member in asked {
            let same = |part: &Vec<usize>| {
                let (ours, theirs) = (members[member].rollout, members[part[0]].rollout);
                ours.prompt == theirs.prompt && ours.reference == theirs.reference
            };
            // A group mostly has one prompt and one reference; a few are looked through, so that the work stays linear.
            let recent = parts.len().saturating_sub(4);
            match parts[recent..].iter_mut().find(|part| same(part)) {
                Some(part) => part.push(member),
                None => parts.push(vec![member]),
            }
        }
        parts
    }

    /// Asks the judges about all groups at once and puts what they say into the rows.
    pub(super) fn judge(
        &self,
        halves: Vec<Half>,
        terms: &Terms,
        told: Option<&mut Vec<Exchange>>,
    ) -> (Vec<Vec<Row>>, Vec<(String, Findings)>) {
        let (open, hearings) = Open::of(halves);
        let (Some(court), false) = (&self.court, hearings.is_empty()) else {
            return (open.scored, Vec::new());
        };
        let heard = court.hear(&self.plan, hearings, terms.halt.as_ref(), told);
        // Not while calls are under way, because scores take longer than a call may wait for its turn.
        let finished = self.pool.map(&heard, |heard| finish(heard, terms));
        self.close(open, finished)
    }

    /// Puts what came of the hearings into the rows.
    pub(super) fn close(
        &self,
        open: Open,
        finished: Vec<Finished>,
    ) -> (Vec<Vec<Row>>, Vec<(String, Findings)>) {
        let Open { mut scored, places } = open;
        let mut findings = Vec::with_capacity(places.len());
        for ((group, place), finished) in places.into_iter().zip(finished) {
            let failed =
                |code: Code| (vec![Outcome::invalid(code); place.members.len()], Findings::default());
            let (outcomes, found) = finished.unwrap_or_else(failed);
            let rows = &mut scored[group];
            for (member, outcome) in place.members.iter().zip(outcomes) {
                let Some(branch) = rows[*member].branch.map(|branch| &self.plan.branches[branch]) else {
                    continue;
                };
                let component = &branch.components[place.component];
                rows[*member].outcomes[place.component] = Some(with_floor(outcome, component.floor));
            }
            let row = place.members.first().and_then(|member| rows[*member].branch);
            if let Some(branch) = row {
                findings.push((self.plan.branches[branch].components[place.component].name.clone(), found));
            }
        }
        (scored, findings)
    }
}

/// What a hearing comes to: one outcome a member, or why there is none.
pub(super) type Finished = Result<(Vec<Outcome>, Findings), Code>;

/// What a hearing comes to. Scores that fail as they must not are data.
pub(super) fn finish(heard: &Heard, terms: &Terms) -> Finished {
    let inquiry = heard.as_ref().map_err(|code| *code)?;
    if terms.halt.as_ref().is_some_and(Halt::is_raised) {
        return Err(Code::Stopped);
    }
    catch_unwind(AssertUnwindSafe(|| inquiry.finish())).map_err(|_| Code::Panic)
}

/// Groups whose questions are with the judges.
pub(super) struct Open {
    /// The rows so far, group by group.
    pub(super) scored: Vec<Vec<Row>>,
    /// Whom each hearing is about, and in which group.
    places: Vec<(usize, Place)>,
}

impl Open {
    /// Takes the hearings out of the groups, so that all are heard at once.
    pub(super) fn of(halves: Vec<Half>) -> (Self, Vec<Hearing>) {
        let mut open = Self { scored: Vec::with_capacity(halves.len()), places: Vec::new() };
        let mut hearings = Vec::new();
        for (group, half) in halves.into_iter().enumerate() {
            open.scored.push(half.rows);
            for (place, hearing) in half.hearings {
                open.places.push((group, place));
                hearings.push(hearing);
            }
        }
        (open, hearings)
    }
}

/// Why members cannot be put before a judge together, where that is so.
fn refuse_part(question: &Question, members: &[Member<'_>], validates: bool, all: usize) -> Option<Outcome> {
    if !question.compares() {
        return None;
    }
    let first = members.first()?.rollout;
    if members.iter().any(|member| member.rollout.prompt != first.prompt) {
        return Some(Outcome::invalid(Code::GroupMixed));
    }
    let rival = validates && first.reference.is_some();
    if members.len() + usize::from(rival) >= 2 {
        return None;
    }
    Some(if all < 2 { Outcome::invalid(Code::GroupTooSmall) } else { Outcome::skipped(Code::GroupTooSmall) })
}
