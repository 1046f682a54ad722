//! Closing of groups in the join: hands a group over for scoring, answers its callers, and caches it in the LRU.

use super::effect::{BatchKind, BatchTarget, Effect, JoinInfo, MemberAnswer, MemberResult, ScoreBatch};
use super::group::{GroupId, WaitingCaller};
use super::state::JoinState;
use crate::group::Partial;
use crate::reason::Code;
use crate::report::Report;
use std::sync::Arc;
use std::time::Duration;

impl<C> JoinState<C> {
    /// Looks after an open group to which something happened: closes it where it is complete, and else sets its time.
    pub(super) fn reschedule(&mut self, now: Duration, name: GroupId, out: &mut Vec<Effect<C>>) {
        let due = self.schedule(name);
        let Some(group) = self.groups.get(&name) else { return };
        // Callers that are gone may come back, or others in their place.
        let is_whole = !group.members.is_empty() && (self.eager || group.longest_gone().is_none());
        if group.is_complete() && is_whole {
            self.close(now, name, out);
        } else if due.is_some_and(|due| due <= now) {
            self.expire(now, name, out);
        }
    }

    /// Sets the time at which an open group closes if nothing happens before.
    fn schedule(&mut self, name: GroupId) -> Option<Duration> {
        let group = self.groups.get_mut(&name)?;
        let due = group.deadline(&self.policy);
        self.due.remove(&(std::mem::replace(&mut group.due, due), name));
        self.due.insert((due, name));
        Some(due)
    }

    /// Closes a group whose time is over. Without those who are not expected back, it may have more time.
    pub(super) fn expire(&mut self, now: Duration, name: GroupId, out: &mut Vec<Effect<C>>) {
        self.drop_disconnected(now, name, out);
        if self.schedule(name).is_some_and(|due| due <= now) {
            self.close(now, name, out);
        }
    }

    /// Closes an open group: hands it over to be scored, or answers its members with the reason why it is not.
    pub(super) fn close(&mut self, now: Duration, name: GroupId, out: &mut Vec<Effect<C>>) {
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
            return self.reject_all(name, code, out);
        }
        if self.eager {
            return self.finish(name, out);
        }
        group.arrange();
        group.pending += 1;
        let (validate, info) = (group.validate, group.info());
        let (mut rollouts, mut prescored, mut waiters) = (Vec::new(), Vec::new(), Vec::new());
        for (at, member) in group.members.iter_mut().enumerate() {
            rollouts.extend(member.rollout.clone());
            prescored.extend(member.prescored.take());
            waiters.extend(member.waiter.take().map(|waiter| (at, waiter)));
        }
        let target = BatchTarget { name, kind: BatchKind::Whole, waiters, info };
        out.push(Effect::Score(ScoreBatch { rollouts, prescored, validate, target }));
    }

    /// Tells all members of a group that it is not scored, and keeps its name in mind.
    fn reject_all(&mut self, name: GroupId, code: Code, out: &mut Vec<Effect<C>>) {
        let Some(group) = self.groups.remove(&name) else { return };
        let (info, closed) = (group.info(), group.closed);
        for member in group.members {
            for (place, waiter) in member.waiter.into_iter().chain(member.duplicates).enumerate() {
                let waited = closed.saturating_sub(waiter.arrived);
                self.reject(waiter, code, JoinInfo { duplicate: place > 0, waited, ..info }, out);
            }
        }
        self.lru.bury(name, self.policy.remember);
    }

    /// A batch has been scored: answers its callers. The report has a row for each of its rollouts.
    pub(super) fn scored(&mut self, target: BatchTarget<C>, report: &Arc<Report>) -> Vec<Effect<C>> {
        let mut out = Vec::new();
        let BatchTarget { name, kind, waiters, info } = target;
        self.status.scored += waiters.len() as u64;
        for (at, waiter) in waiters {
            let row = if kind == BatchKind::Alone { 0 } else { at };
            let given = (Arc::clone(report), row);
            let Some(group) = self.groups.get_mut(&name).filter(|_| kind != BatchKind::Stray) else {
                self.answer(waiter, given, info, Vec::new(), &mut out);
                continue;
            };
            group.members[at].given = Some(given.clone());
            if self.eager && report.rows[row].total.value().is_none() {
                // It has no number of its own, so it is answered once those of its siblings are known.
                group.held.push((at, waiter, info));
                continue;
            }
            let closed = group.closed;
            let duplicates = std::mem::take(&mut group.members[at].duplicates);
            for (place, waiter) in std::iter::once(waiter).chain(duplicates).enumerate() {
                let waited = match kind {
                    BatchKind::Whole => closed.saturating_sub(waiter.arrived),
                    BatchKind::Late | BatchKind::Alone | BatchKind::Stray => Duration::ZERO,
                };
                let info = JoinInfo { duplicate: info.duplicate || place > 0, waited, ..info };
                self.answer(waiter, given.clone(), info, Vec::new(), &mut out);
            }
        }
        if let Some(group) = self.groups.get_mut(&name).filter(|_| kind != BatchKind::Stray) {
            group.pending -= 1;
            self.finish(name, &mut out);
        }
        out
    }

    /// Remembers a closed group of which everything has been result.
    fn finish(&mut self, name: GroupId, out: &mut Vec<Effect<C>>) {
        let Some(group) = self.groups.get_mut(&name).filter(|group| !group.open && group.pending == 0) else {
            return;
        };
        if self.eager && !std::mem::replace(&mut group.counted, true) {
            let reports = group.members.iter().filter_map(|member| member.given.as_ref());
            out.push(Effect::Count(reports.map(|(report, _)| Arc::clone(report)).collect()));
        }
        for (at, waiter, info) in std::mem::take(&mut group.held) {
            let Some(group) = self.groups.get_mut(&name) else { continue };
            let Some(given) = group.members[at].given.clone() else { continue };
            let duplicates = std::mem::take(&mut group.members[at].duplicates);
            let (others, closed, whole) = (group.others(at), group.closed, group.info());
            for (place, waiter) in std::iter::once(waiter).chain(duplicates).enumerate() {
                let waited = closed.saturating_sub(waiter.arrived);
                let info = JoinInfo { late: info.late, duplicate: place > 0, waited, ..whole };
                self.answer(waiter, given.clone(), info, others.clone(), out);
            }
        }
        let Some(group) = self.groups.get_mut(&name) else { return };
        if self.shut {
            self.groups.remove(&name);
            return;
        }
        group.lru_slot = Some(self.lru.insert(name, group.weight()));
        while let Some(oldest) = self.lru.pop(self.policy.remember, self.policy.remember_bytes) {
            self.groups.remove(&oldest);
            self.lru.bury(oldest, self.policy.remember);
        }
    }

    /// Tells a caller what a report says of its rollout.
    pub(super) fn answer(
        &mut self,
        waiter: WaitingCaller<C>,
        (report, row): (Arc<Report>, usize),
        info: JoinInfo,
        others: Vec<Option<f64>>,
        out: &mut Vec<Effect<C>>,
    ) {
        self.status.waiting -= 1;
        self.status.bytes -= waiter.bytes;
        let result = MemberResult::Row(report, row);
        out.push(Effect::Answer(waiter.caller, MemberAnswer { result, info, others }));
    }

    /// Tells a caller that its rollout is not scored.
    pub(super) fn reject(
        &mut self,
        waiter: WaitingCaller<C>,
        code: Code,
        info: JoinInfo,
        out: &mut Vec<Effect<C>>,
    ) {
        self.status.waiting -= 1;
        self.status.bytes -= waiter.bytes;
        self.status.refused += 1;
        out.push(Effect::refuse(waiter.caller, waiter.rollout, code, info));
    }
}
