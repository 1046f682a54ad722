//! What is known of one group in the join? Who has arrived, who will not come, until when it waits, and what was said of it.

use super::Policy;
use super::effect::Facts;
use crate::engine::Prescored;
use crate::report::Report;
use crate::rollout::Rollout;
use std::sync::Arc;
use std::time::Duration;

/// A rollout that the join holds.
pub(super) type Held = Arc<Rollout<'static>>;

/// A group's key, as the join remembers it: a digest of the caller's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name([u8; 16]);

impl Name {
    pub(super) fn of(group: &str) -> Self {
        let mut name = [0; 16];
        name.copy_from_slice(&blake3::hash(group.as_bytes()).as_bytes()[..16]);
        Self(name)
    }
}

/// What a caller says of the rollout that it hands in.
#[derive(Debug, Clone)]
pub(super) struct Newcomer {
    pub(super) group: Name,
    pub(super) member: Option<Box<str>>,
    pub(super) size: usize,
    pub(super) timeout: Option<Duration>,
    pub(super) validate: Option<bool>,
    /// Tells its caller from all others.
    pub(super) caller: u64,
}

/// A caller that waits for its answer.
#[derive(Debug)]
pub(super) struct Waiter<C> {
    pub(super) caller: C,
    /// Tells the caller from all others.
    pub(super) id: u64,
    /// Since when the caller has been gone.
    pub(super) gone: Option<Duration>,
    /// What is said of it where nothing else can be.
    pub(super) rollout: Held,
    pub(super) arrived: Duration,
    /// What it takes while it waits; nothing for one that only repeats another.
    pub(super) bytes: usize,
}

/// One rollout of a group.
#[derive(Debug)]
pub(super) struct Member<C> {
    pub(super) name: Option<Box<str>>,
    /// Identifies its response.
    text: u64,
    /// The rollout, for as long as others may be compared with it.
    pub(super) rollout: Option<Held>,
    /// What has been begun of it while it waits for others.
    pub(super) begun: Option<Prescored>,
    /// Who handed it in, until the group is scored.
    pub(super) waiter: Option<Waiter<C>>,
    /// Who handed the same in again.
    pub(super) echoes: Vec<Waiter<C>>,
    /// The report that has its row, and the place of that row.
    pub(super) given: Option<(Arc<Report>, usize)>,
    /// Until when it waits for its group.
    until: Duration,
}

impl<C> Member<C> {
    pub(super) fn new(name: Option<Box<str>>, until: Duration, waiter: Waiter<C>) -> Self {
        let rollout = Arc::clone(&waiter.rollout);
        // Only members with names are ever looked for.
        let text = name.as_ref().map_or(0, |_| fingerprint(&rollout));
        Self {
            name,
            text,
            rollout: Some(rollout),
            begun: None,
            waiter: Some(waiter),
            echoes: Vec::new(),
            given: None,
            until,
        }
    }

    pub(super) fn says(&self, rollout: &Rollout<'_>) -> bool {
        match (&self.name, &self.rollout) {
            (None, Some(held)) => held.response == rollout.response,
            _ => self.text == fingerprint(rollout),
        }
    }

    /// Who waits for its answer.
    fn waiters(&self) -> impl Iterator<Item = &Waiter<C>> {
        self.waiter.iter().chain(&self.echoes)
    }

    /// Since when nobody has waited for its answer any more.
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
    rapidhash::v3::rapidhash_v3(rollout.response.as_bytes())
}

/// A group: open while members may join it, closed once it has been handed over to be scored.
#[derive(Debug)]
pub(super) struct Gathering<C> {
    /// The largest size that a member has stated.
    size: usize,
    /// Members that will not come: how many without a name, and the names of the others.
    nameless: usize,
    gone: Vec<Box<str>>,
    /// Whether the reference takes part, as the first member says.
    pub(super) validate: Option<bool>,
    pub(super) members: Vec<Member<C>>,
    /// When it closes at the latest.
    deadline: Duration,
    /// How many of its callers have gone away; nobody is looked for among them where there are none.
    away: usize,
    /// When the last member arrived.
    last: Duration,
    /// When it closes if nobody comes any more; the place of an open group among the others.
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
    /// Callers whose own rollout is invalid, and who wait to be told of their siblings.
    pub(super) held: Vec<(usize, Waiter<C>, Facts)>,
    /// Its place among the remembered ones.
    pub(super) kept: Option<u64>,
}

impl<C> Gathering<C> {
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
            kept: None,
        }
    }

    /// How many members are expected.
    pub(super) fn expected(&self) -> usize {
        self.size.saturating_sub(self.nameless + self.gone.len()).max(1)
    }

    /// Whether nobody else is expected.
    pub(super) fn is_complete(&self) -> bool {
        self.members.len() >= self.expected()
    }

    /// Takes note that a caller has gone away.
    pub(super) fn go_away(&mut self, now: Duration, caller: u64) {
        let waiters =
            self.members.iter_mut().flat_map(|member| member.waiter.iter_mut().chain(&mut member.echoes));
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
        let same =
            |member: &Member<C>| member.name.is_none() && member.gone().is_some() && member.says(rollout);
        (self.away > 0).then(|| self.members.iter().position(same)).flatten()
    }

    /// Whether nobody waits for the answer of a member any more.
    pub(super) fn is_gone(&self, at: usize) -> bool {
        self.away > 0 && self.members.get(at).is_some_and(|member| member.gone().is_some())
    }

    /// Takes a member out.
    pub(super) fn remove(&mut self, at: usize) -> Member<C> {
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

    /// Until when a newcomer waits.
    pub(super) fn until(now: Duration, newcomer: &Newcomer, policy: &Policy) -> Duration {
        now.saturating_add(newcomer.timeout.map_or(policy.timeout, |timeout| timeout.min(policy.timeout)))
    }

    /// Takes note of what a member says about its group.
    pub(super) fn expect(&mut self, now: Duration, newcomer: &Newcomer) {
        if self.members.is_empty() {
            self.validate = newcomer.validate;
        }
        self.size = self.size.max(newcomer.size);
        self.gone.retain(|gone| newcomer.member.as_deref() != Some(&**gone));
        self.last = now;
        if let Some(timeout) = newcomer.timeout {
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

    /// When it closes if nobody comes any more.
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
        fn key<C>(member: &Member<C>) -> (Option<&str>, Option<&str>) {
            (member.name.as_deref(), member.rollout.as_ref().map(|rollout| &*rollout.response))
        }
        self.members.sort_by(|one, two| key(one).cmp(&key(two)));
    }

    /// About how many bytes it takes once it is remembered.
    pub(super) fn weight(&self) -> usize {
        let mut weight = size_of::<Self>() + self.members.len() * size_of::<Member<C>>();
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

    /// How its members came to their answers, if they are told now.
    pub(super) fn facts(&self) -> Facts {
        Facts { group_size: self.members.len(), partial: self.partial, ..Facts::default() }
    }

    /// The totals of all members but one.
    pub(super) fn others(&self, at: usize) -> Vec<Option<f64>> {
        let others = self.members.iter().enumerate().filter(|(member, _)| *member != at);
        others.map(|(_, member)| member.total()).collect()
    }
}
