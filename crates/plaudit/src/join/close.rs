//! What becomes of a group whose time has come? It is handed over, every caller is told, and it is remembered for a while.

use super::effect::{Answer, Batch, Effect, Facts, Kind, Said, Ticket};
use super::gathering::{Name, Waiter};
use super::roster::Roster;
use crate::group::Partial;
use crate::reason::Code;
use crate::report::Report;
use std::sync::Arc;
use std::time::Duration;

impl<C> Roster<C> {
    /// Looks after an open group to which something happened: closes it where it is complete, and else sets its time.
    pub(super) fn look(&mut self, now: Duration, name: Name, out: &mut Vec<Effect<C>>) {
        let due = self.schedule(name);
        let Some(group) = self.groups.get(&name) else { return };
        // Callers that are gone may come back, or others in their place.
        let is_whole = !group.members.is_empty() && (self.eager || group.longest_gone().is_none());
        if group.is_complete() && is_whole {
            self.close(now, name, out);
        } else if due.is_some_and(|due| due <= now) {
            self.time_is_over(now, name, out);
        }
    }

    /// Sets the time at which an open group closes if nothing happens before.
    fn schedule(&mut self, name: Name) -> Option<Duration> {
        let group = self.groups.get_mut(&name)?;
        let due = group.deadline(&self.policy);
        self.due.remove(&(std::mem::replace(&mut group.due, due), name));
        self.due.insert((due, name));
        Some(due)
    }

    /// Closes a group whose time is over. Without those who are not expected back, it may have more time.
    pub(super) fn time_is_over(&mut self, now: Duration, name: Name, out: &mut Vec<Effect<C>>) {
        self.let_go(now, name, out);
        if self.schedule(name).is_some_and(|due| due <= now) {
            self.close(now, name, out);
        }
    }

    /// Closes an open group: hands it over to be scored, or tells its members why it is not.
    pub(super) fn close(&mut self, now: Duration, name: Name, out: &mut Vec<Effect<C>>) {
        let Some(group) = self.groups.get_mut(&name) else { return };
        self.due.remove(&(group.due, name));
        if group.members.is_empty() {
            self.groups.remove(&name);
            return;
        }
        group.open = false;
        group.closed = now;
        group.partial = !group.is_complete();
        self.status.partial += u64::from(group.partial);
        let refused = match (self.shut, group.partial, self.policy.partial) {
            _ if self.eager => None,
            (true, ..) => Some(Code::GroupClosed),
            (_, true, Partial::Invalid) => Some(Code::GroupIncomplete),
            _ => None,
        };
        if let Some(code) = refused {
            return self.turn_away(name, code, out);
        }
        if self.eager {
            return self.finish(name, out);
        }
        group.arrange();
        group.pending += 1;
        let (validate, facts) = (group.validate, group.facts());
        let (mut rollouts, mut begun, mut waiters) = (Vec::new(), Vec::new(), Vec::new());
        for (at, member) in group.members.iter_mut().enumerate() {
            rollouts.extend(member.rollout.clone());
            begun.extend(member.begun.take());
            waiters.extend(member.waiter.take().map(|waiter| (at, waiter)));
        }
        let ticket = Ticket { name, kind: Kind::Whole, waiters, facts };
        out.push(Effect::Score(Batch { rollouts, begun, validate, ticket }));
    }

    /// Tells all members of a group that it is not scored, and keeps its name in mind.
    fn turn_away(&mut self, name: Name, code: Code, out: &mut Vec<Effect<C>>) {
        let Some(group) = self.groups.remove(&name) else { return };
        let (facts, closed) = (group.facts(), group.closed);
        for member in group.members {
            for (place, waiter) in member.waiter.into_iter().chain(member.echoes).enumerate() {
                let waited = closed.saturating_sub(waiter.arrived);
                self.refuse(waiter, code, Facts { duplicate: place > 0, waited, ..facts }, out);
            }
        }
        self.memory.forget(name, self.policy.remember);
    }

    /// A batch has been scored: everybody is told whose answer it has. The report has a row for each of its rollouts.
    pub(super) fn scored(&mut self, ticket: Ticket<C>, report: &Arc<Report>) -> Vec<Effect<C>> {
        let mut out = Vec::new();
        let Ticket { name, kind, waiters, facts } = ticket;
        self.status.scored += waiters.len() as u64;
        for (at, waiter) in waiters {
            let row = if kind == Kind::Alone { 0 } else { at };
            let Some(group) = self.groups.get_mut(&name).filter(|_| kind != Kind::Stray) else {
                self.tell(waiter, (Arc::clone(report), row), facts, Vec::new(), &mut out);
                continue;
            };
            group.members[at].given = Some((Arc::clone(report), row));
            if self.eager && report.rows[row].total.value().is_none() {
                // It has no number of its own, so it is told once those of its siblings are known.
                group.held.push((at, waiter, facts));
                continue;
            }
            let closed = group.closed;
            let echoes = std::mem::take(&mut group.members[at].echoes);
            let waited = |waiter: &Waiter<C>| match kind {
                Kind::Whole => closed.saturating_sub(waiter.arrived),
                Kind::Late | Kind::Alone | Kind::Stray => Duration::ZERO,
            };
            let facts = Facts { waited: waited(&waiter), ..facts };
            self.tell(waiter, (Arc::clone(report), row), facts, Vec::new(), &mut out);
            for echo in echoes {
                let facts = Facts { duplicate: true, waited: waited(&echo), ..facts };
                self.tell(echo, (Arc::clone(report), row), facts, Vec::new(), &mut out);
            }
        }
        if let Some(group) = self.groups.get_mut(&name).filter(|_| kind != Kind::Stray) {
            group.pending -= 1;
            self.finish(name, &mut out);
        }
        out
    }

    /// Remembers a closed group of which everything has been said.
    fn finish(&mut self, name: Name, out: &mut Vec<Effect<C>>) {
        let Some(group) = self.groups.get_mut(&name).filter(|group| !group.open && group.pending == 0) else {
            return;
        };
        if self.eager && !std::mem::replace(&mut group.counted, true) {
            let reports = group.members.iter().filter_map(|member| member.given.as_ref());
            out.push(Effect::Count(reports.map(|(report, _)| Arc::clone(report)).collect()));
        }
        for (at, waiter, facts) in std::mem::take(&mut group.held) {
            let Some(group) = self.groups.get_mut(&name) else { continue };
            let Some(given) = group.members[at].given.clone() else { continue };
            let echoes = std::mem::take(&mut group.members[at].echoes);
            let (others, closed, whole) = (group.others(at), group.closed, group.facts());
            for (place, waiter) in std::iter::once(waiter).chain(echoes).enumerate() {
                let waited = closed.saturating_sub(waiter.arrived);
                let facts = Facts { late: facts.late, duplicate: place > 0, waited, ..whole };
                self.tell(waiter, given.clone(), facts, others.clone(), out);
            }
        }
        let Some(group) = self.groups.get_mut(&name) else { return };
        if self.shut {
            self.groups.remove(&name);
            return;
        }
        group.kept = Some(self.memory.keep(name, group.weight()));
        while let Some(oldest) = self.memory.pop(self.policy.remember, self.policy.remember_bytes) {
            self.groups.remove(&oldest);
            self.memory.forget(oldest, self.policy.remember);
        }
    }

    /// Tells a caller what a report says of its rollout.
    pub(super) fn tell(
        &mut self,
        waiter: Waiter<C>,
        (report, row): (Arc<Report>, usize),
        facts: Facts,
        others: Vec<Option<f64>>,
        out: &mut Vec<Effect<C>>,
    ) {
        self.status.waiting -= 1;
        self.status.bytes -= waiter.bytes;
        out.push(Effect::Answer(waiter.caller, Answer { said: Said::Row(report, row), facts, others }));
    }

    /// Tells a caller that its rollout is not scored.
    pub(super) fn refuse(&mut self, waiter: Waiter<C>, code: Code, facts: Facts, out: &mut Vec<Effect<C>>) {
        self.status.waiting -= 1;
        self.status.bytes -= waiter.bytes;
        self.status.refused += 1;
        let said = Said::Refused(waiter.rollout, code);
        out.push(Effect::Answer(waiter.caller, Answer { said, facts, others: Vec::new() }));
    }
}
