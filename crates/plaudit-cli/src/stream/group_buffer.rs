//! Group buffer: holds the members of a group until none has arrived for a while, because a stream does not say when a
//! group is complete.

use super::recent_ids::RecentIds;
use rapidhash::RapidHashMap;
use std::collections::VecDeque;

/// How long groups are held, and what happens to a member that comes after its group has closed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BufferPolicy {
    /// A group closes when so many rollouts have been read since its last member.
    pub(crate) rollouts: u64,
    /// When more bytes are held, the group that has waited longest for a member closes.
    pub(crate) bytes: usize,
    /// Whether a late member is given back, rather than put into a new group.
    pub(crate) refuse_late: bool,
    /// How many closed groups a generation of the memory of them holds.
    pub(crate) memory: usize,
}

/// What became of a member.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Placement<T> {
    /// It waits with its group.
    Buffered,
    /// Its group has closed; it waits in a new one.
    Reopened,
    /// Its group has closed; here it is.
    Late(T),
}

/// Groups that wait for members.
#[derive(Debug)]
pub(crate) struct GroupBuffer<T> {
    policy: BufferPolicy,
    /// How many rollouts have been read.
    now: u64,
    held: RapidHashMap<u64, OpenGroup<T>>,
    /// Every member's time and group, oldest first; those that are not their group's last mean nothing.
    order: VecDeque<(u64, u64)>,
    bytes: usize,
    closed: VecDeque<Vec<T>>,
    past: RecentIds,
}

#[derive(Debug)]
struct OpenGroup<T> {
    members: Vec<T>,
    bytes: usize,
    first: u64,
    last: u64,
    /// Whether a group of that name has closed before.
    again: bool,
}

impl<T> GroupBuffer<T> {
    /// Nothing held.
    pub(crate) fn new(policy: BufferPolicy) -> Self {
        Self {
            policy,
            now: 0,
            held: RapidHashMap::default(),
            order: VecDeque::new(),
            bytes: 0,
            closed: VecDeque::new(),
            past: RecentIds::new(policy.memory),
        }
    }

    /// Takes a member in: the hash of its group, itself, and how many bytes it has.
    pub(crate) fn take(&mut self, group: u64, member: T, bytes: usize) -> Placement<T> {
        self.now += 1;
        let late = !self.held.contains_key(&group) && self.past.contains(group);
        if late && self.policy.refuse_late {
            self.expire();
            return Placement::Late(member);
        }
        let now = self.now;
        let held = self.held.entry(group).or_insert(OpenGroup {
            members: Vec::new(),
            bytes: 0,
            first: now,
            last: now,
            again: late,
        });
        held.members.push(member);
        held.bytes += bytes;
        held.last = now;
        let again = held.again;
        self.bytes += bytes;
        self.order.push_back((now, group));
        self.expire();
        while self.bytes > self.policy.bytes && self.close_longest() {}
        if again { Placement::Reopened } else { Placement::Buffered }
    }

    /// Counts a rollout that belongs to no group.
    pub(crate) fn pass(&mut self) {
        self.now += 1;
        self.expire();
    }

    /// A group that has closed, in the order of closing.
    pub(crate) fn closed(&mut self) -> Option<Vec<T>> {
        self.closed.pop_front()
    }

    /// Closes the group whose first member came first. Gives back whether there was one.
    pub(crate) fn close_first(&mut self) -> bool {
        let first = self.held.iter().min_by_key(|(_, held)| held.first).map(|(group, _)| *group);
        first.is_some_and(|group| self.close(group))
    }

    /// Closes every group, the one that has waited longest first.
    pub(crate) fn end(&mut self) {
        while self.close_longest() {}
    }

    /// Closes what has waited long enough. This also keeps `order` as short as the policy is patient.
    fn expire(&mut self) {
        while let Some((when, group)) = self.order.front().copied() {
            let live = self.held.get(&group).is_some_and(|held| held.last == when);
            if live && self.now - when < self.policy.rollouts {
                return;
            }
            self.order.pop_front();
            if live {
                self.close(group);
            }
        }
    }

    /// Closes the group that has waited longest. Gives back whether there was one.
    fn close_longest(&mut self) -> bool {
        while let Some((when, group)) = self.order.pop_front() {
            if self.held.get(&group).is_some_and(|held| held.last == when) {
                return self.close(group);
            }
        }
        false
    }

    fn close(&mut self, group: u64) -> bool {
        let Some(held) = self.held.remove(&group) else { return false };
        self.bytes -= held.bytes;
        self.past.insert(group);
        self.closed.push_back(held.members);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(rollouts: u64, bytes: usize, refuse_late: bool) -> GroupBuffer<u32> {
        GroupBuffer::new(BufferPolicy { rollouts, bytes, refuse_late, memory: 100 })
    }

    fn closed(hold: &mut GroupBuffer<u32>) -> Vec<Vec<u32>> {
        std::iter::from_fn(|| hold.closed()).collect()
    }

    #[test]
    fn a_group_closes_when_no_member_has_come_for_a_while() {
        let mut hold = hold(2, 1000, true);
        assert_eq!(hold.take(7, 1, 1), Placement::Buffered);
        assert_eq!(hold.take(8, 2, 1), Placement::Buffered);
        assert_eq!(hold.take(7, 3, 1), Placement::Buffered);
        assert!(closed(&mut hold).is_empty());
        assert_eq!(hold.take(9, 4, 1), Placement::Buffered);
        assert_eq!(closed(&mut hold), [vec![2]]);
        hold.pass();
        assert_eq!(closed(&mut hold), [vec![1, 3]]);
        hold.end();
        assert_eq!(closed(&mut hold), [vec![4]]);
        assert_eq!((hold.bytes, hold.order.len(), hold.held.len()), (0, 0, 0));
    }

    #[test]
    fn a_late_member_is_given_back_or_starts_again() {
        let mut refusing = hold(1, 1000, true);
        refusing.take(7, 1, 1);
        refusing.take(8, 2, 1);
        assert_eq!(refusing.take(7, 3, 1), Placement::Late(3));
        let mut lenient = hold(1, 1000, false);
        lenient.take(7, 1, 1);
        lenient.take(8, 2, 1);
        assert_eq!(lenient.take(7, 3, 1), Placement::Reopened);
        assert_eq!(lenient.take(7, 4, 1), Placement::Reopened);
        lenient.end();
        assert_eq!(closed(&mut lenient), [vec![1], vec![2], vec![3, 4]]);
    }

    #[test]
    fn too_many_bytes_close_what_has_waited_longest() {
        let mut hold = hold(100, 10, true);
        hold.take(1, 1, 4);
        hold.take(2, 2, 4);
        hold.take(1, 3, 1);
        hold.take(3, 4, 4);
        assert_eq!(closed(&mut hold), [vec![2]]);
        hold.take(4, 5, 11);
        assert_eq!(closed(&mut hold), [vec![1, 3], vec![4], vec![5]]);
        assert_eq!(hold.bytes, 0);
    }

    #[test]
    fn the_first_to_come_can_be_closed() {
        let mut hold = hold(100, 1000, true);
        hold.take(1, 1, 1);
        hold.take(2, 2, 1);
        hold.take(1, 3, 1);
        assert!(hold.close_first());
        assert_eq!(closed(&mut hold), [vec![1, 3]]);
        assert!(hold.close_first() && !hold.close_first());
    }

    #[test]
    fn memory_is_bounded_however_often_a_group_comes_back() {
        let mut hold = hold(8, 1 << 40, false);
        for at in 0..10_000u32 {
            hold.take(u64::from(at % 5), at, 1);
            assert!(hold.order.len() <= 8);
        }
        assert!(closed(&mut hold).is_empty());
    }
}
