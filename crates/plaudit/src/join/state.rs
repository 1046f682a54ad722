//! The join as a state machine without clock or threads: events and times in, effects out.

use super::effect::{BatchKind, BatchTarget, Effect, JoinInfo};
use super::group::{GroupId, JoinGroup, JoinMember, JoinRequest, SharedRollout, WaitingCaller};
use super::lru::GroupLru;
use super::{Policy, Status};
use crate::engine::Prescored;
use crate::group::Partial;
use crate::reason::Code;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// All groups that are open or remembered, and all callers that wait.
#[derive(Debug)]
pub(super) struct JoinState<C> {
    pub(super) policy: Policy,
    /// Whether nothing is compared, so that no caller has to wait.
    pub(super) eager: bool,
    pub(super) groups: BTreeMap<GroupId, JoinGroup<C>>,
    /// The open groups, ordered by the time at which they close if no member arrives any more.
    pub(super) due: BTreeSet<(Duration, GroupId)>,
    pub(super) lru: GroupLru,
    pub(super) status: Status,
    pub(super) shut: bool,
}

impl<C> JoinState<C> {
    pub(super) fn new(policy: Policy, eager: bool) -> Self {
        Self {
            policy,
            eager,
            groups: BTreeMap::new(),
            due: BTreeSet::new(),
            lru: GroupLru::default(),
            status: Status::default(),
            shut: false,
        }
    }

    /// When something is to be done if nothing happens before.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.due.first().map(|(due, _)| *due)
    }

    pub(super) fn is_shut(&self) -> bool {
        self.shut
    }

    pub(super) fn status(&self) -> Status {
        Status { open: self.due.len(), remembered: self.lru.len(), ..self.status }
    }

    /// A rollout comes in.
    pub(super) fn arrive(
        &mut self,
        now: Duration,
        request: JoinRequest,
        rollout: SharedRollout,
        caller: C,
    ) -> Vec<Effect<C>> {
        let mut out = self.tick(now);
        let name = request.group;
        self.drop_disconnected(now, name, &mut out);
        let bytes = rollout.bytes();
        let waiter = WaitingCaller { caller, id: request.caller, gone: None, rollout, arrived: now, bytes };
        self.status.waiting += 1;
        self.status.bytes += bytes;
        let group = self.groups.get(&name);
        let known = group.and_then(|group| match request.member.as_deref() {
            None if group.open && !self.eager => group.find_gone(&waiter.rollout),
            member => group.find(member),
        });
        if self.shut {
            self.reject(waiter, Code::GroupClosed, JoinInfo::default(), &mut out);
        } else if self.is_full() {
            self.reject(waiter, Code::Overloaded, JoinInfo::default(), &mut out);
        } else if let Some(at) = known {
            self.repeat(now, request, at, waiter, &mut out);
        } else if self.lru.is_buried(&name) {
            self.score_stray(&request, waiter, &mut out);
        } else if group.is_some_and(|group| !group.open) {
            self.add_late(request, waiter, &mut out);
        } else {
            self.join(now, request, waiter, &mut out);
        }
        out
    }

    fn is_full(&self) -> bool {
        self.status.waiting > self.policy.most_waiting || self.status.bytes > self.policy.most_bytes
    }

    /// A rollout joins its group, which is open or begins with it.
    fn join(
        &mut self,
        now: Duration,
        request: JoinRequest,
        waiter: WaitingCaller<C>,
        out: &mut Vec<Effect<C>>,
    ) {
        let name = request.group;
        let full = self.groups.get_mut(&name).is_some_and(|group| {
            group.expect(now, &request);
            group.is_complete()
        });
        let gone = self.groups.get(&name).and_then(JoinGroup::longest_gone);
        if let Some((at, _)) = gone.filter(|_| full && !self.eager) {
            self.drop_member(name, at, out);
        }
        let policy = &self.policy;
        let group = self.groups.entry(name).or_insert_with(|| JoinGroup::new(now, policy));
        group.expect(now, &request);
        if self.eager {
            out.push(alone(group, request, waiter, false));
        } else {
            let (rollout, validate) = (Arc::clone(&waiter.rollout), group.validate);
            let until = JoinGroup::<C>::until(now, &request, policy);
            let (mut member, prescored) =
                (JoinMember::new(request.member, until, waiter), Prescored::default());
            member.prescored = Some(prescored.clone());
            out.push(Effect::Prescore(rollout, prescored, validate));
            group.members.push(member);
        }
        self.reschedule(now, name, out);
    }

    /// A caller disconnected before it was answered. Its rollout stays in the group until its place is given up.
    pub(super) fn disconnect(&mut self, now: Duration, name: GroupId, caller: u64) {
        if let Some(group) = self.groups.get_mut(&name).filter(|group| group.open && !self.eager) {
            group.disconnect(now, caller);
        }
    }

    /// Takes members out of an open group whose callers have been gone for so long that they are not expected back.
    pub(super) fn drop_disconnected(&mut self, now: Duration, name: GroupId, out: &mut Vec<Effect<C>>) {
        let away = self.policy.away;
        let over = |(_, since): &(usize, Duration)| since.saturating_add(away) <= now;
        while let Some((at, _)) =
            self.groups.get(&name).filter(|group| group.open).and_then(JoinGroup::longest_gone).filter(over)
        {
            self.drop_member(name, at, out);
        }
    }

    /// Takes a member out of an open group whose callers are gone; a group without members begins anew.
    fn drop_member(&mut self, name: GroupId, at: usize, out: &mut Vec<Effect<C>>) {
        let Some(group) = self.groups.get_mut(&name) else { return };
        let (due, member) = (group.due, group.remove(at));
        group.begin_anew();
        if group.members.is_empty() {
            self.groups.remove(&name);
            self.due.remove(&(due, name));
        }
        for waiter in member.waiter.into_iter().chain(member.duplicates) {
            // The callers are gone. It is not counted; a member that is handed in again is.
            self.reject(waiter, Code::GroupClosed, JoinInfo::default(), out);
        }
    }

    /// A member that is there already is handed in again.
    fn repeat(
        &mut self,
        now: Duration,
        request: JoinRequest,
        at: usize,
        mut waiter: WaitingCaller<C>,
        out: &mut Vec<Effect<C>>,
    ) {
        let name = request.group;
        let Some(group) = self.groups.get_mut(&name) else { return };
        if group.open
            && !self.eager
            && group.is_gone(at)
            && !group.members[at].has_response_of(&waiter.rollout)
        {
            // Whoever had the name before is gone, and another has it now.
            self.drop_member(name, at, out);
            return self.join(now, request, waiter, out);
        }
        self.status.duplicates += 1;
        let info = JoinInfo { duplicate: true, ..group.info() };
        let others = if self.eager { group.others(at) } else { Vec::new() };
        // Where the first waits for the results of its siblings, so does the second.
        let held = group.held.iter().any(|(held, ..)| *held == at);
        let member = &mut group.members[at];
        if !member.has_response_of(&waiter.rollout) {
            self.reject(waiter, Code::GroupDuplicate, info, out);
        } else if let Some((report, row)) = member.given.clone().filter(|_| !held) {
            self.answer(waiter, (report, row), info, others, out);
        } else {
            // The text is held once.
            self.status.bytes -= std::mem::take(&mut waiter.bytes);
            if let Some(rollout) = &member.rollout {
                waiter.rollout = Arc::clone(rollout);
            }
            member.duplicates.push(waiter);
            if group.open {
                // It may be the one that all others waited for.
                self.reschedule(now, name, out);
            }
        }
    }

    /// A rollout comes after its group was closed, and is scored together with those who were in time.
    fn add_late(&mut self, request: JoinRequest, waiter: WaitingCaller<C>, out: &mut Vec<Effect<C>>) {
        let Some(group) = self.groups.get_mut(&request.group) else { return };
        self.status.late += 1;
        if let Some(slot) = group.lru_slot.take() {
            self.lru.remove(slot);
        }
        if self.eager {
            out.push(alone(group, request, waiter, true));
            return;
        }
        let (name, at) = (request.group, group.members.len());
        // Nothing waits for it any more.
        let mut member = JoinMember::new(request.member, Duration::ZERO, waiter);
        let waiters = member.waiter.take().into_iter().map(|waiter| (at, waiter)).collect();
        group.members.push(member);
        group.pending += 1;
        let partial = group.members.len() < group.expected();
        let info = JoinInfo { group_size: at + 1, partial, late: true, ..JoinInfo::default() };
        let rollouts = group.members.iter().filter_map(|member| member.rollout.clone()).collect();
        let target = BatchTarget { name, kind: BatchKind::Late, waiters, info };
        out.push(Effect::score(rollouts, group.validate, target));
    }

    /// A rollout comes to a group of which only the name is known.
    fn score_stray(&mut self, request: &JoinRequest, waiter: WaitingCaller<C>, out: &mut Vec<Effect<C>>) {
        self.status.late += 1;
        let info = JoinInfo { group_size: 1, partial: !self.eager, late: true, ..JoinInfo::default() };
        if self.policy.partial == Partial::Invalid && !self.eager {
            return self.reject(waiter, Code::GroupIncomplete, info, out);
        }
        let rollouts = vec![Arc::clone(&waiter.rollout)];
        let target =
            BatchTarget { name: request.group, kind: BatchKind::Stray, waiters: vec![(0, waiter)], info };
        out.push(Effect::score(rollouts, request.validate, target));
    }

    /// A member will not come, or goes.
    pub(super) fn leave(&mut self, now: Duration, name: GroupId, member: Option<&str>) -> Vec<Effect<C>> {
        let mut out = self.tick(now);
        let full = self.due.len() >= self.policy.most_waiting || self.lru.is_buried(&name);
        if self.shut || (full && !self.groups.contains_key(&name)) {
            return out;
        }
        let policy = &self.policy;
        let group = self.groups.entry(name).or_insert_with(|| JoinGroup::new(now, policy));
        let there = group.find(member);
        // Who has been scored, or is being scored, is counted already.
        if !group.open || (self.eager && there.is_some()) {
            return out;
        }
        group.miss(member);
        let gone = there.map(|at| group.remove(at));
        let info = group.info();
        for waiter in gone.into_iter().flat_map(|gone| gone.waiter.into_iter().chain(gone.duplicates)) {
            let waited = now.saturating_sub(waiter.arrived);
            self.reject(waiter, Code::GroupLeft, JoinInfo { waited, ..info }, &mut out);
        }
        self.reschedule(now, name, &mut out);
        out
    }

    /// Closes the groups whose time has come.
    pub(super) fn tick(&mut self, now: Duration) -> Vec<Effect<C>> {
        let mut out = Vec::new();
        while let Some((_, name)) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            self.expire(now, name, &mut out);
        }
        out
    }

    /// Closes all groups.
    pub(super) fn flush(&mut self, now: Duration) -> Vec<Effect<C>> {
        let mut out = Vec::new();
        while let Some((_, name)) = self.due.first().copied() {
            self.close(now, name, &mut out);
        }
        out
    }

    /// Rejects all arrivals from now on, and answers the members of open groups with `group.closed`.
    pub(super) fn shut_down(&mut self, now: Duration) -> Vec<Effect<C>> {
        self.shut = true;
        self.flush(now)
    }
}

/// Has a member scored alone, because nothing is compared.
fn alone<C>(
    group: &mut JoinGroup<C>,
    request: JoinRequest,
    waiter: WaitingCaller<C>,
    late: bool,
) -> Effect<C> {
    let (name, at) = (request.group, group.members.len());
    let rollouts = vec![Arc::clone(&waiter.rollout)];
    let mut member = JoinMember::new(request.member, Duration::ZERO, waiter);
    // Nobody will be compared with it.
    member.rollout = None;
    let waiters = member.waiter.take().into_iter().map(|waiter| (at, waiter)).collect();
    group.members.push(member);
    group.pending += 1;
    let info = JoinInfo { group_size: at + 1, late, ..JoinInfo::default() };
    let target = BatchTarget { name, kind: BatchKind::Alone, waiters, info };
    Effect::score(rollouts, group.validate, target)
}
