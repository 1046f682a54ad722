//! One group in the join: its members, who has left, its deadline and its results.

use super::Policy;
use super::effect::JoinInfo;
use crate::engine::Prescored;
use crate::report::Report;
use crate::rollout::Rollout;
use std::sync::Arc;
use std::time::Duration;

/// A rollout that the join holds.
pub(super) type SharedRollout = Arc<Rollout<'static>>;

/// A group's key, as the join remembers it: a digest of the caller's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupId([u8; 16]);

impl GroupId {
    pub(super) fn of(group: &str) -> Self {
        let mut name = [0; 16];
        name.copy_from_slice(&blake3::hash(group.as_bytes()).as_bytes()[..16]);
        Self(name)
    }
}

/// What a caller says of the rollout that it hands in.
#[derive(Debug, Clone)]
pub(super) struct JoinRequest {
    pub(super) group: GroupId,
    pub(super) member: Option<Box<str>>,
    pub(super) size: usize,
    pub(super) timeout: Option<Duration>,
    pub(super) validate: Option<bool>,
    /// Tells its caller from all others.
    pub(super) caller: u64,
}

/// A caller that waits for its answer.
#[derive(Debug)]
pub(super) struct WaitingCaller<C> {
    pub(super) caller: C,
    /// Tells the caller from all others.
    pub(super) id: u64,
    /// Since when the caller has been gone.
    pub(super) gone: Option<Duration>,
    /// The rollout, for an answer without a report.
    pub(super) rollout: SharedRollout,
    pub(super) arrived: Duration,
    /// What it takes while it waits; nothing for one that only repeats another.
    pub(super) bytes: usize,
}

/// One rollout of a group.
#[derive(Debug)]
pub(super) struct JoinMember<C> {
    pub(super) name: Option<Box<str>>,
    /// Identifies its response.
    text: u64,
    /// The rollout, for as long as others may be compared with it.
    pub(super) rollout: Option<SharedRollout>,
    /// What has been prescored of it while it waits for others.
    pub(super) prescored: Option<Prescored>,
    /// Who handed it in, until the group is scored.
    pub(super) waiter: Option<WaitingCaller<C>>,
    /// Who handed the same in again.
    pub(super) duplicates: Vec<WaitingCaller<C>>,
    /// The report that has its row, and the place of that row.
    pub(super) given: Option<(Arc<Report>, usize)>,
    /// Until when it waits for its group.
    until: Duration,
}

impl<C> JoinMember<C> {
    pub(super) fn new(name: Option<Box<str>>, until: Duration, waiter: WaitingCaller<C>) -> Self {
        let rollout = Arc::clone(&waiter.rollout);
        // Only members with names are ever looked for.
        let text = name.as_ref().map_or(0, |_| fingerprint(&rollout));
        Self {
            name,
            text,
            rollout: Some(rollout),
            prescored: None,
            waiter: Some(waiter),
            duplicates: Vec::new(),
            given: None,
            until,
        }
    }

    pub(super) fn has_response_of(&self, rollout: &Rollout<'_>) -> bool {
        match (&self.name, &self.rollout) {
            (None, Some(held)) => held.response == rollout.response,
            _ => self.text == fingerprint(rollout),
        }
    }

    /// Who waits for its answer.
    fn waiters(&self) -> impl Iterator<Item = &WaitingCaller<C>> {
        self.waiter.iter().chain(&self.duplicates)
    }

    /// Since when no caller has waited for its answer.
    fn gone(&self) -> Option<Duration> {
        let gone: Option<Vec<Duration>> = self.waiters().map(|waiter| waiter.gone).collect();
        gone.and_then(|gone| gone.into_iter().max())
    }

    /// Its total, where it has one.
    pub(super) fn total(&self) -> Option<f64> {
        self.given.as_ref().and_then(|(report, at)| report.rows[*at].total.value())
    }
}

fn fingerprint(rollout: &Rollout<'_>) -> u64 {
    match &rollout.conversation {
        None => rapidhash::v3::rapidhash_v3(rollout.response.as_bytes()),
        Some(conversation) => rapidhash::v3::rapidhash_v3(conversation.to_value().to_string().as_bytes()),
    }
}

/// A group: open while members may join it, closed once it has been handed over to be scored.
#[derive(Debug)]
pub(super) struct JoinGroup<C> {
    /// The largest size that a member has stated.
    size: usize,
    /// Members that will not come: how many without a name, and the names of the others.
    nameless: usize,
    gone: Vec<Box<str>>,
    /// Whether the reference takes part, as the first member says.
    pub(super) validate: Option<bool>,
    pub(super) members: Vec<JoinMember<C>>,
    /// When it closes at the latest.
    deadline: Duration,
    /// How many of its callers have disconnected; where none has, the search for them is skipped.
    away: usize,
    /// When the last member arrived.
    last: Duration,
    /// When it closes if no member arrives any more; orders the open groups.
    pub(super) due: Duration,
    pub(super) open: bool,
    /// Whether it was closed before it was complete.
    pub(super) partial: bool,
    /// How many of its batches are being scored.
    pub(super) pending: usize,
    /// When it was closed.
    pub(super) closed: Duration,
    /// Whether it has been counted, where its members are scored one by one.
    pub(super) counted: bool,
    /// Callers whose own rollout is invalid, and who wait for the results of their siblings.
    pub(super) held: Vec<(usize, WaitingCaller<C>, JoinInfo)>,
    /// Its place among the remembered ones.
    pub(super) lru_slot: Option<u64>,
}

impl<C> JoinGroup<C> {
    pub(super) fn new(now: Duration, policy: &Policy) -> Self {
        let deadline = now.saturating_add(policy.timeout);
        Self {
            size: 0,
            nameless: 0,
            gone: Vec::new(),
            validate: None,
            members: Vec::new(),
            deadline,
            away: 0,
            last: now,
            due: deadline,
            open: true,
            partial: false,
            pending: 0,
            closed: now,
            counted: false,
            held: Vec::new(),
            lru_slot: None,
        }
    }

    /// How many members are expected.
    pub(super) fn expected(&self) -> usize {
        self.size.saturating_sub(self.nameless + self.gone.len()).max(1)
    }

    /// Whether no other member is expected.
    pub(super) fn is_complete(&self) -> bool {
        self.members.len() >= self.expected()
    }

    /// Takes note that a caller has gone away.
    pub(super) fn disconnect(&mut self, now: Duration, caller: u64) {
        let waiters =
            self.members.iter_mut().flat_map(|member| member.waiter.iter_mut().chain(&mut member.duplicates));
        for waiter in waiters.filter(|waiter| waiter.id == caller && waiter.gone.is_none()) {
            waiter.gone = Some(now);
            self.away += 1;
        }
    }

    /// The member whose callers have been gone for the longest time, and since when.
    pub(super) fn longest_gone(&self) -> Option<(usize, Duration)> {
        let gone = || self.members.iter().enumerate().filter_map(|(at, member)| Some((at, member.gone()?)));
        (self.away > 0).then(|| gone().min_by_key(|(_, since)| *since)).flatten()
    }

    /// A member without a name whose callers are gone and that says the same.
    pub(super) fn find_gone(&self, rollout: &Rollout<'_>) -> Option<usize> {
        let same = |member: &JoinMember<C>| {
            member.name.is_none() && member.gone().is_some() && member.has_response_of(rollout)
        };
        (self.away > 0).then(|| self.members.iter().position(same)).flatten()
    }

    /// Whether no caller waits for the answer of a member any more.
    pub(super) fn is_gone(&self, at: usize) -> bool {
        self.away > 0 && self.members.get(at).is_some_and(|member| member.gone().is_some())
    }

    /// Takes a member out.
    pub(super) fn remove(&mut self, at: usize) -> JoinMember<C> {
        let member = self.members.remove(at);
        self.away -= member.waiters().filter(|waiter| waiter.gone.is_some()).count();
        member
    }

    /// Counts the group's time from those who are there.
    pub(super) fn begin_anew(&mut self) {
        if let Some(until) = self.members.iter().map(|member| member.until).min() {
            self.deadline = until;
        }
    }

    /// Until when a request waits.
    pub(super) fn until(now: Duration, request: &JoinRequest, policy: &Policy) -> Duration {
        now.saturating_add(request.timeout.map_or(policy.timeout, |timeout| timeout.min(policy.timeout)))
    }

    /// Takes note of what a member says about its group.
    pub(super) fn expect(&mut self, now: Duration, request: &JoinRequest) {
        if self.members.is_empty() {
            self.validate = request.validate;
        }
        self.size = self.size.max(request.size);
        self.gone.retain(|gone| request.member.as_deref() != Some(&**gone));
        self.last = now;
        if let Some(timeout) = request.timeout {
            self.deadline = self.deadline.min(now.saturating_add(timeout));
        }
    }

    /// Takes note that a member will not come.
    pub(super) fn miss(&mut self, member: Option<&str>) {
        match member {
            None => self.nameless += 1,
            Some(name) if self.gone.iter().any(|gone| &**gone == name) => {}
            Some(name) => self.gone.push(name.into()),
        }
    }

    /// When it closes if no member arrives any more.
    pub(super) fn deadline(&self, policy: &Policy) -> Duration {
        let half = !self.members.is_empty() && self.members.len() * 2 >= self.expected();
        let quiet = policy.quiet.filter(|_| half).map(|quiet| self.last.saturating_add(quiet));
        quiet.map_or(self.deadline, |quiet| quiet.min(self.deadline))
    }

    /// The member of that name.
    pub(super) fn find(&self, name: Option<&str>) -> Option<usize> {
        let name = name?;
        self.members.iter().position(|member| member.name.as_deref() == Some(name))
    }

    /// Puts the members into an order that the order of their arrival has no part in.
    pub(super) fn arrange(&mut self) {
        fn key<C>(member: &JoinMember<C>) -> (Option<&str>, Option<&str>) {
            (member.name.as_deref(), member.rollout.as_ref().map(|rollout| &*rollout.response))
        }
        self.members.sort_by(|one, two| key(one).cmp(&key(two)));
    }

    /// About how many bytes it takes once it is remembered.
    pub(super) fn weight(&self) -> usize {
        let mut weight = size_of::<Self>() + self.members.len() * size_of::<JoinMember<C>>();
        let mut before: Option<&Arc<Report>> = None;
        for member in &self.members {
            weight += member.rollout.as_ref().map_or(0, |rollout| rollout.bytes());
            // Members that were scored together share a report, and stand side by side.
            let report = member.given.as_ref().map(|(report, _)| report);
            if let Some(report) =
                report.filter(|report| !before.is_some_and(|known| Arc::ptr_eq(known, report)))
            {
                weight += report.bytes();
            }
            before = report;
        }
        weight
    }

    /// The info for its members, if they are answered now.
    pub(super) fn info(&self) -> JoinInfo {
        JoinInfo { group_size: self.members.len(), partial: self.partial, ..JoinInfo::default() }
    }

    /// The totals of all members but one.
    pub(super) fn others(&self, at: usize) -> Vec<Option<f64>> {
        let others = self.members.iter().enumerate().filter(|(member, _)| *member != at);
        others.map(|(_, member)| member.total()).collect()
    }
}
