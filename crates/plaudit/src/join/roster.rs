//! Who waits for whom? The join as a state machine: it is told what happens and when, and says what is to be done. Nothing
//! here waits, reads a clock or starts a thread.

use super::effect::{Batch, Effect, Facts, Kind, Ticket};
use super::gathering::{Gathering, Held, Member, Name, Newcomer, Waiter};
use super::memory::Memory;
use super::{Policy, Status};
use crate::engine::Prescored;
use crate::group::Partial;
use crate::reason::Code;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// All groups that are open or remembered, and all callers that wait.
#[derive(Debug)]
pub(super) struct Roster<C> {
    pub(super) policy: Policy,
    /// Whether nothing is compared, so that nobody has to wait.
    pub(super) eager: bool,
    pub(super) groups: BTreeMap<Name, Gathering<C>>,
    /// The open groups, in the order in which they close if nobody comes any more.
    pub(super) due: BTreeSet<(Duration, Name)>,
    pub(super) memory: Memory,
    pub(super) status: Status,
    pub(super) shut: bool,
}

impl<C> Roster<C> {
    pub(super) fn new(policy: Policy, eager: bool) -> Self {
        Self {
            policy,
            eager,
            groups: BTreeMap::new(),
            due: BTreeSet::new(),
            memory: Memory::default(),
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
        Status { open: self.due.len(), remembered: self.memory.len(), ..self.status }
    }

    /// A rollout comes in.
    pub(super) fn arrive(
        &mut self,
        now: Duration,
        newcomer: Newcomer,
        rollout: Held,
        caller: C,
    ) -> Vec<Effect<C>> {
        let mut out = self.tick(now);
        let name = newcomer.group;
        self.let_go(now, name, &mut out);
        let bytes = rollout.bytes();
        let waiter = Waiter { caller, id: newcomer.caller, gone: None, rollout, arrived: now, bytes };
        self.status.waiting += 1;
        self.status.bytes += bytes;
        let group = self.groups.get(&name);
        let known = group.and_then(|group| match newcomer.member.as_deref() {
            None if group.open && !self.eager => group.find_gone(&waiter.rollout),
            member => group.find(member),
        });
        if self.shut {
            self.refuse(waiter, Code::GroupClosed, Facts::default(), &mut out);
        } else if self.is_full() {
            self.refuse(waiter, Code::Overloaded, Facts::default(), &mut out);
        } else if let Some(at) = known {
            self.repeat(now, newcomer, at, waiter, &mut out);
        } else if self.memory.is_forgotten(&name) {
            self.come_too_late(&newcomer, waiter, &mut out);
        } else if group.is_some_and(|group| !group.open) {
            self.come_late(newcomer, waiter, &mut out);
        } else {
            self.join(now, newcomer, waiter, &mut out);
        }
        out
    }

    fn is_full(&self) -> bool {
        self.status.waiting > self.policy.most_waiting || self.status.bytes > self.policy.most_bytes
    }

    /// A rollout joins its group, which is open or begins with it.
    fn join(&mut self, now: Duration, newcomer: Newcomer, waiter: Waiter<C>, out: &mut Vec<Effect<C>>) {
        let name = newcomer.group;
        let full = self.groups.get_mut(&name).is_some_and(|group| {
            group.expect(now, &newcomer);
            group.is_complete()
        });
        let gone = self.groups.get(&name).and_then(Gathering::longest_gone);
        if let Some((at, _)) = gone.filter(|_| full && !self.eager) {
            self.drop_member(name, at, out);
        }
        let policy = &self.policy;
        let group = self.groups.entry(name).or_insert_with(|| Gathering::new(now, policy));
        group.expect(now, &newcomer);
        if self.eager {
            out.push(alone(group, newcomer, waiter, false));
        } else {
            let (rollout, validate) = (Arc::clone(&waiter.rollout), group.validate);
            let until = Gathering::<C>::until(now, &newcomer, policy);
            let (mut member, begun) = (Member::new(newcomer.member, until, waiter), Prescored::default());
            member.begun = Some(begun.clone());
            out.push(Effect::Begin(rollout, begun, validate));
            group.members.push(member);
        }
        self.look(now, name, out);
    }

    /// A caller has gone away before it was told. Its rollout stays in its group for as long as its place is kept.
    pub(super) fn go_away(&mut self, now: Duration, name: Name, caller: u64) {
        if let Some(group) = self.groups.get_mut(&name).filter(|group| group.open && !self.eager) {
            group.go_away(now, caller);
        }
    }

    /// Takes members out of an open group whose callers have been gone for so long that they are not expected back.
    pub(super) fn let_go(&mut self, now: Duration, name: Name, out: &mut Vec<Effect<C>>) {
        let away = self.policy.away;
        let over = |(_, since): &(usize, Duration)| since.saturating_add(away) <= now;
        while let Some((at, _)) =
            self.groups.get(&name).filter(|group| group.open).and_then(Gathering::longest_gone).filter(over)
        {
            self.drop_member(name, at, out);
        }
    }

    /// Takes a member out of an open group whose callers are gone; a group without members begins anew.
    fn drop_member(&mut self, name: Name, at: usize, out: &mut Vec<Effect<C>>) {
        let Some(group) = self.groups.get_mut(&name) else { return };
        let (due, member) = (group.due, group.remove(at));
        group.begin_anew();
        if group.members.is_empty() {
            self.groups.remove(&name);
            self.due.remove(&(due, name));
        }
        for waiter in member.waiter.into_iter().chain(member.echoes) {
            // Nobody hears it. It is not counted, since whoever comes back is.
            self.refuse(waiter, Code::GroupClosed, Facts::default(), out);
        }
    }

    /// A member that is there already is handed in again.
    fn repeat(
        &mut self,
        now: Duration,
        newcomer: Newcomer,
        at: usize,
        mut waiter: Waiter<C>,
        out: &mut Vec<Effect<C>>,
    ) {
        let name = newcomer.group;
        let Some(group) = self.groups.get_mut(&name) else { return };
        if group.open && !self.eager && group.is_gone(at) && !group.members[at].says(&waiter.rollout) {
            // Whoever had the name before is gone, and another has it now.
            self.drop_member(name, at, out);
            return self.join(now, newcomer, waiter, out);
        }
        self.status.duplicates += 1;
        let facts = Facts { duplicate: true, ..group.facts() };
        let others = if self.eager { group.others(at) } else { Vec::new() };
        // Where the first waits to be told of its siblings, so does the second.
        let held = group.held.iter().any(|(held, ..)| *held == at);
        let member = &mut group.members[at];
        if !member.says(&waiter.rollout) {
            self.refuse(waiter, Code::GroupDuplicate, facts, out);
        } else if let Some((report, row)) = member.given.clone().filter(|_| !held) {
            self.tell(waiter, (report, row), facts, others, out);
        } else {
            // The text is held once.
            self.status.bytes -= std::mem::take(&mut waiter.bytes);
            if let Some(rollout) = &member.rollout {
                waiter.rollout = Arc::clone(rollout);
            }
            member.echoes.push(waiter);
            if group.open {
                // It may be the one that all others waited for.
                self.look(now, name, out);
            }
        }
    }

    /// A rollout comes after its group was closed, and is scored together with those who were in time.
    fn come_late(&mut self, newcomer: Newcomer, waiter: Waiter<C>, out: &mut Vec<Effect<C>>) {
        let Some(group) = self.groups.get_mut(&newcomer.group) else { return };
        self.status.late += 1;
        if let Some(kept) = group.kept.take() {
            self.memory.take(kept);
        }
        if self.eager {
            out.push(alone(group, newcomer, waiter, true));
            return;
        }
        let (name, at) = (newcomer.group, group.members.len());
        // Nothing waits for it any more.
        let mut member = Member::new(newcomer.member, Duration::ZERO, waiter);
        let waiters = member.waiter.take().into_iter().map(|waiter| (at, waiter)).collect();
        group.members.push(member);
        group.pending += 1;
        let partial = group.members.len() < group.expected();
        let facts = Facts { group_size: at + 1, partial, late: true, ..Facts::default() };
        let rollouts = group.members.iter().filter_map(|member| member.rollout.clone()).collect();
        let ticket = Ticket { name, kind: Kind::Late, waiters, facts };
        out.push(Effect::Score(Batch { rollouts, begun: Vec::new(), validate: group.validate, ticket }));
    }

    /// A rollout comes to a group of which only the name is known.
    fn come_too_late(&mut self, newcomer: &Newcomer, waiter: Waiter<C>, out: &mut Vec<Effect<C>>) {
        self.status.late += 1;
        let facts = Facts { group_size: 1, partial: !self.eager, late: true, ..Facts::default() };
        if self.policy.partial == Partial::Invalid && !self.eager {
            return self.refuse(waiter, Code::GroupIncomplete, facts, out);
        }
        let rollouts = vec![Arc::clone(&waiter.rollout)];
        let ticket = Ticket { name: newcomer.group, kind: Kind::Stray, waiters: vec![(0, waiter)], facts };
        out.push(Effect::Score(Batch { rollouts, begun: Vec::new(), validate: newcomer.validate, ticket }));
    }

    /// A member will not come, or goes.
    pub(super) fn leave(&mut self, now: Duration, name: Name, member: Option<&str>) -> Vec<Effect<C>> {
        let mut out = self.tick(now);
        let full = self.due.len() >= self.policy.most_waiting || self.memory.is_forgotten(&name);
        if self.shut || (full && !self.groups.contains_key(&name)) {
            return out;
        }
        let policy = &self.policy;
        let group = self.groups.entry(name).or_insert_with(|| Gathering::new(now, policy));
        let there = group.find(member);
        // Who has been scored, or is being scored, is counted already.
        if !group.open || (self.eager && there.is_some()) {
            return out;
        }
        group.miss(member);
        let gone = there.map(|at| group.remove(at));
        let facts = group.facts();
        for waiter in gone.into_iter().flat_map(|gone| gone.waiter.into_iter().chain(gone.echoes)) {
            let waited = now.saturating_sub(waiter.arrived);
            self.refuse(waiter, Code::GroupLeft, Facts { waited, ..facts }, &mut out);
        }
        self.look(now, name, &mut out);
        out
    }

    /// Closes the groups whose time has come.
    pub(super) fn tick(&mut self, now: Duration) -> Vec<Effect<C>> {
        let mut out = Vec::new();
        while let Some((_, name)) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            self.time_is_over(now, name, &mut out);
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

    /// Lets nobody in any more, and tells those whose groups are open that they will not be scored.
    pub(super) fn shut(&mut self, now: Duration) -> Vec<Effect<C>> {
        self.shut = true;
        self.flush(now)
    }
}

/// Has a member scored alone, because nothing is compared.
fn alone<C>(group: &mut Gathering<C>, newcomer: Newcomer, waiter: Waiter<C>, late: bool) -> Effect<C> {
    let (name, at) = (newcomer.group, group.members.len());
    let rollouts = vec![Arc::clone(&waiter.rollout)];
    let mut member = Member::new(newcomer.member, Duration::ZERO, waiter);
    // Nobody will be compared with it.
    member.rollout = None;
    let waiters = member.waiter.take().into_iter().map(|waiter| (at, waiter)).collect();
    group.members.push(member);
    group.pending += 1;
    let facts = Facts { group_size: at + 1, late, ..Facts::default() };
    let ticket = Ticket { name, kind: Kind::Alone, waiters, facts };
    Effect::Score(Batch { rollouts, begun: Vec::new(), validate: group.validate, ticket })
}
