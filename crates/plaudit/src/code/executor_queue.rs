//! A fair queue: lanes take turns, the groups of a lane take turns, and inside a group the first comes first.

use std::collections::VecDeque;

/// The waiting items of a group, by its number.
type GroupItems<T> = (u64, VecDeque<T>);

/// Waiting items by lane and group.
pub(super) struct FairQueue<T> {
    lanes: VecDeque<(u64, VecDeque<GroupItems<T>>)>,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { lanes: VecDeque::new() }
    }
}

impl<T> FairQueue<T> {
    fn items(&mut self, (lane, group): (u64, u64)) -> Option<&mut VecDeque<T>> {
        let at = self.lanes.iter().position(|(known, _)| *known == lane).unwrap_or_else(|| {
            self.lanes.push_back((lane, VecDeque::new()));
            self.lanes.len() - 1
        });
        let groups = &mut self.lanes.get_mut(at)?.1;
        // The latest group is the likely one.
        let at = groups.iter().rposition(|(known, _)| *known == group).unwrap_or_else(|| {
            groups.push_back((group, VecDeque::new()));
            groups.len() - 1
        });
        Some(&mut groups.get_mut(at)?.1)
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

    /// Whether something of a lane waits.
    pub(super) fn has_lane(&self, lane: u64) -> bool {
        self.lanes.iter().any(|(known, _)| *known == lane)
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Shows the item whose turn it is, of the lanes that may go on, to `take`, which says whether it stays for another turn.
    /// Tells whose turn it was.
    pub(super) fn turn(
        &mut self,
        may_go_on: impl Fn(u64) -> bool,
        take: impl FnOnce(&T) -> bool,
    ) -> Option<(u64, u64)> {
        let at = self.lanes.iter().position(|(lane, _)| may_go_on(*lane))?;
        let (lane, mut groups) = self.lanes.remove(at)?;
        let (group, mut items) = groups.pop_front()?;
        if items.front().is_some_and(|item| !take(item)) {
            items.pop_front();
        }
        if !items.is_empty() {
            groups.push_back((group, items));
        }
        if !groups.is_empty() {
            self.lanes.push_back((lane, groups));
        }
        Some((lane, group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn lanes_and_groups_take_turns() {
        let mut queue = FairQueue::default();
        let item = |name: &'static str, steps: usize| (name, Cell::new(steps));
        // One engine with much to do in two groups, and one with little.
        queue.push((1, 1), item("a", 3));
        queue.push((1, 1), item("b", 1));
        queue.push((1, 2), item("c", 2));
        queue.push((2, 1), item("d", 2));
        let mut order = String::new();
        let take = |order: &mut String, (name, left): &(&str, Cell<usize>)| {
            order.push_str(name);
            left.set(left.get() - 1);
            left.get() > 0
        };
        assert_eq!(queue.turn(|_| false, |one| take(&mut order, one)), None);
        while queue.turn(|_| true, |one| take(&mut order, one)).is_some() {}
        assert_eq!(order, "adcdacab");
        assert!(queue.is_empty());
    }
}
