//! A fair queue: the lane that has had the least time comes next, in it the group that has had the least, and of that the first
//! item. So short work of one is not kept waiting by long work of another.

use std::collections::VecDeque;
use std::time::Duration;

/// The waiting items of a group, and the time that it has had. It is kept while it has work, also where nothing of it waits.
struct GroupTurn<T> {
    id: u64,
    used: Duration,
    running: usize,
    items: VecDeque<T>,
}

/// The groups of a lane, and the time that it has had.
struct LaneTurn<T> {
    id: u64,
    used: Duration,
    running: usize,
    groups: Vec<GroupTurn<T>>,
}

/// Waiting items by lane and group.
pub(super) struct FairQueue<T> {
    lanes: Vec<LaneTurn<T>>,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { lanes: Vec::new() }
    }
}

impl<T> FairQueue<T> {
    /// The items of a group. Who is new has had as much time as whoever has had the least.
    fn items(&mut self, (lane, group): (u64, u64)) -> Option<&mut VecDeque<T>> {
        let at = self.lanes.iter().position(|known| known.id == lane).unwrap_or_else(|| {
            let used = least(self.lanes.iter().map(|lane| lane.used));
            self.lanes.push(LaneTurn { id: lane, used, running: 0, groups: Vec::new() });
            self.lanes.len() - 1
        });
        let groups = &mut self.lanes.get_mut(at)?.groups;
        // The latest group is the likely one.
        let at = groups.iter().rposition(|known| known.id == group).unwrap_or_else(|| {
            let used = least(groups.iter().map(|group| group.used));
            groups.push(GroupTurn { id: group, used, running: 0, items: VecDeque::new() });
            groups.len() - 1
        });
        Some(&mut groups.get_mut(at)?.items)
    }

    /// Adds an item behind those of its group.
    pub(super) fn push(&mut self, turn: (u64, u64), item: T) {
        if let Some(items) = self.items(turn) {
            items.push_back(item);
        }
    }

    /// Puts an item before those of its group.
    pub(super) fn push_first(&mut self, turn: (u64, u64), item: T) {
        if let Some(items) = self.items(turn) {
            items.push_front(item);
        }
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.groups.iter().all(|group| group.items.is_empty()))
    }

    /// Ends a turn, and counts the time that it took.
    pub(super) fn leave(&mut self, (lane, group): (u64, u64), time: Duration) {
        let Some(at) = self.lanes.iter().position(|known| known.id == lane) else { return };
        let lane = &mut self.lanes[at];
        lane.used += time;
        lane.running = lane.running.saturating_sub(1);
        if let Some(at) = lane.groups.iter().position(|known| known.id == group) {
            let group = &mut lane.groups[at];
            group.used += time;
            group.running = group.running.saturating_sub(1);
            if group.running == 0 && group.items.is_empty() {
                lane.groups.remove(at);
            }
        }
        if lane.running == 0 && lane.groups.is_empty() {
            self.lanes.remove(at);
        }
    }

    /// Shows the item whose turn it is, of the lanes that may go on and the groups whose first item may, to `take`, which says whether
    /// it stays for another turn.
    /// Tells whose turn it is, until [`FairQueue::leave`].
    pub(super) fn turn(
        &mut self,
        may_go_on: impl Fn(u64) -> bool,
        is_ready: impl Fn(&T) -> bool,
        take: impl FnOnce(&T) -> bool,
    ) -> Option<(u64, u64)> {
        // Of several that have had as little, the first; who has had a turn goes behind them.
        let is_ready = |group: &GroupTurn<T>| group.items.front().is_some_and(&is_ready);
        let waits = |lane: &LaneTurn<T>| may_go_on(lane.id) && lane.groups.iter().any(is_ready);
        let open = self.lanes.iter().enumerate().filter(|(_, lane)| waits(lane));
        let at = open.min_by_key(|(_, lane)| lane.used)?.0;
        let mut lane = self.lanes.remove(at);
        let waiting = lane.groups.iter().enumerate().filter(|(_, group)| is_ready(group));
        // There is one, or the lane had not been chosen.
        let at = waiting.min_by_key(|(_, group)| group.used).map_or(0, |(at, _)| at);
        let mut group = lane.groups.remove(at);
        lane.running += 1;
        group.running += 1;
        let turn = (lane.id, group.id);
        if group.items.front().is_some_and(|item| !take(item)) {
            group.items.pop_front();
        }
        lane.groups.push(group);
        self.lanes.push(lane);
        Some(turn)
    }
}

fn least(times: impl Iterator<Item = Duration>) -> Duration {
    times.min().unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    type Item = (&'static str, Cell<usize>);

    /// The order in which items get their turns, each of which takes a time.
    fn order(queue: &mut FairQueue<Item>, time: impl Fn(&str) -> Duration) -> String {
        let mut order = String::new();
        loop {
            let mut name = "";
            let turn = queue.turn(
                |_| true,
                |_| true,
                |item| {
                    name = item.0;
                    item.1.set(item.1.get() - 1);
                    item.1.get() > 0
                },
            );
            let Some(turn) = turn else { return order };
            order.push_str(name);
            queue.leave(turn, time(name));
        }
    }

    #[test]
    fn lanes_and_groups_take_turns() {
        let mut queue = FairQueue::default();
        let item = |name: &'static str, steps: usize| (name, Cell::new(steps));
        // One engine with much to do in two groups, and one with little.
        queue.push((1, 1), item("a", 3));
        queue.push((1, 1), item("b", 1));
        queue.push((1, 2), item("c", 2));
        queue.push((2, 1), item("d", 2));
        assert_eq!(queue.turn(|_| false, |_| true, |_| true), None);
        assert_eq!(order(&mut queue, |_| Duration::from_secs(1)), "adcdacab");
        assert!(queue.is_empty());
    }

    #[test]
    fn a_lane_keeps_its_time_while_it_has_work() {
        let mut queue = FairQueue::default();
        queue.push((1, 1), ("a", Cell::new(1)));
        queue.push((2, 1), ("b", Cell::new(1)));
        let turn = |queue: &mut FairQueue<Item>| queue.turn(|_| true, |_| true, |_| false);
        // Both are being compiled, and nothing waits: one for long, the other for a moment.
        assert_eq!(
            (turn(&mut queue), turn(&mut queue), turn(&mut queue)),
            (Some((1, 1)), Some((2, 1)), None)
        );
        assert!(queue.is_empty());
        queue.push_first((1, 1), ("a", Cell::new(1)));
        queue.push_first((2, 1), ("b", Cell::new(1)));
        queue.leave((1, 1), Duration::from_secs(20));
        queue.leave((2, 1), Duration::from_secs(1));
        assert_eq!((turn(&mut queue), turn(&mut queue)), (Some((2, 1)), Some((1, 1))));
        queue.leave((1, 1), Duration::ZERO);
        queue.leave((2, 1), Duration::ZERO);
        assert!(queue.lanes.is_empty());
    }

    #[test]
    fn groups_that_cannot_go_on_are_passed_over() {
        let mut queue = FairQueue::default();
        for (group, name) in [(1, "a"), (2, "b"), (3, "c")] {
            queue.push((1, group), (name, Cell::new(1)));
        }
        let turn = |queue: &mut FairQueue<Item>, ready: &str| {
            queue.turn(|_| true, |item| ready.contains(item.0), |_| false).map(|(_, group)| group)
        };
        assert_eq!(
            (turn(&mut queue, "bc"), turn(&mut queue, "b"), turn(&mut queue, "ab")),
            (Some(2), None, Some(1))
        );
    }

    #[test]
    fn short_work_does_not_wait_for_long_work() {
        let mut queue = FairQueue::default();
        queue.push((1, 1), ("l", Cell::new(4)));
        queue.push((2, 1), ("s", Cell::new(6)));
        let time = |name: &str| Duration::from_secs(if name == "l" { 10 } else { 1 });
        assert_eq!(order(&mut queue, time), "lsssssslll");
    }
}
