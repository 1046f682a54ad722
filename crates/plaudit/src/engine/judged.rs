//! Who is put before which judge? The questions of a group that rules cannot answer, and what becomes of the answers.

use super::{Engine, with_floor};
use crate::court::{Exchange, Hearing};
use crate::judge::Question;
use crate::judge::asking::Mode;
use crate::judge::case::{Case, Member};
use crate::judge::findings::Findings;
use crate::judge::inquiry::Inquiry;
use crate::outcome::Outcome;
use crate::plan::{Branch, Scorer};
use crate::reason::Code;
use crate::report::Row;
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
    /// The questions of a branch about a group; what needs no judge to say is said at once.
    pub(super) fn call_hearings(
        &self,
        index: usize,
        branch: &Branch,
        members: &[Member<'_>],
        rows: &mut [Row],
    ) -> Vec<(Place, Hearing)> {
        let mut hearings = Vec::new();
        for (component, settings) in branch.components.iter().enumerate() {
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
                match self.refuse_part(question, &chosen, members.len()) {
                    Some(outcome) => {
                        part.iter()
                            .for_each(|member| rows[*member].outcomes[component] = Some(outcome.clone()));
                    }
                    None => {
                        let case = Case::new(question, &chosen, court.secret(), self.validates(question));
                        let inquiry = Inquiry::new(Arc::clone(question), case);
                        let hearing = Hearing { component: settings.name.clone(), inquiry, asks };
                        hearings.push((Place { component, members: part }, hearing));
                    }
                }
            }
        }
        hearings
    }

    fn validates(&self, question: &Question) -> bool {
        self.plan.validates && !question.is_scalar()
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

    /// Why members cannot be put before a judge together, where that is so.
    fn refuse_part(&self, question: &Question, members: &[Member<'_>], all: usize) -> Option<Outcome> {
        if !question.compares() {
            return None;
        }
        let first = members.first()?.rollout;
        if members.iter().any(|member| member.rollout.prompt != first.prompt) {
            return Some(Outcome::invalid(Code::GroupMixed));
        }
        let rival = self.validates(question) && first.reference.is_some();
        if members.len() + usize::from(rival) >= 2 {
            return None;
        }
        Some(if all < 2 {
            Outcome::invalid(Code::GroupTooSmall)
        } else {
            Outcome::skipped(Code::GroupTooSmall)
        })
    }

    /// Asks the judges about all groups at once and puts what they say into the rows.
    pub(super) fn judge(
        &self,
        halves: Vec<Half>,
        told: Option<&mut Vec<Exchange>>,
    ) -> (Vec<Vec<Row>>, Vec<(String, Findings)>) {
        let mut scored = Vec::with_capacity(halves.len());
        let (mut places, mut hearings) = (Vec::new(), Vec::new());
        for (group, half) in halves.into_iter().enumerate() {
            scored.push(half.rows);
            for (place, hearing) in half.hearings {
                places.push((group, place));
                hearings.push(hearing);
            }
        }
        let (Some(court), false) = (&self.court, hearings.is_empty()) else { return (scored, Vec::new()) };
        let mut findings = Vec::with_capacity(places.len());
        let inquiries = court.hear(&self.plan, hearings, told);
        // Not while calls are under way, because scores take longer than a call may wait for its turn.
        let finished = self.pool.map(&inquiries, |inquiry| {
            catch_unwind(AssertUnwindSafe(|| inquiry.as_ref().map(Inquiry::finish))).ok().flatten()
        });
        for ((group, place), finished) in places.into_iter().zip(finished) {
            let failed = || (vec![Outcome::invalid(Code::Panic); place.members.len()], Findings::default());
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
