//! Ledger: the in-memory sum of all journal entries (judgment index, open calls, facts, spending).

use super::entry::{Entry, JudgmentKey};
use super::index::JudgmentIndex;
use std::collections::BTreeMap;

/// What was spent on one judge, over all processes that ever wrote the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Calls that were about to be sent: every attempt.
    pub calls: u64,
    /// Judgments received.
    pub judgments: u64,
    /// Calls without a judgment that the judge may have charged for: those that ended so, and those that were open
    /// when a process died.
    pub maybe_paid: u64,
    /// Judgments of questions that a process which died had asked already, so that they may be paid twice.
    pub repaid: u64,
}

impl Spent {
    const NOTHING: Self = Self { calls: 0, judgments: 0, maybe_paid: 0, repaid: 0 };
}

/// Where a record lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordLocation {
    pub(super) at: u64,
    /// The length of its payload.
    pub(super) length: u32,
}

/// Calls of one key that have not ended.
struct OpenCalls {
    judge: String,
    /// Those of this process.
    now: u64,
    /// Those of processes that ended before.
    left: u64,
}

/// The sum of all records.
#[derive(Default)]
pub(super) struct Ledger {
    places: JudgmentIndex,
    open: BTreeMap<JudgmentKey, OpenCalls>,
    /// The newest value of each name, with the number of its record.
    facts: BTreeMap<String, (u64, String)>,
    spent: BTreeMap<String, Spent>,
    /// Calls of this process that have not ended.
    in_flight: u64,
}

impl Ledger {
    /// Adds one entry.
    pub(super) fn apply(&mut self, entry: &Entry<'_>, place: RecordLocation, sequence: u64) {
        match *entry {
            Entry::Start => self.leave(),
            Entry::Intent { key, judge } => {
                self.spent_mut(judge).calls += 1;
                // Where damage has moved a judgment before its intent, the call is not open.
                if !self.places.contains(&key) {
                    let open = || OpenCalls { judge: judge.to_owned(), now: 0, left: 0 };
                    self.open.entry(key).or_insert_with(open).now += 1;
                    self.in_flight += 1;
                }
            }
            Entry::Judgment { key, judge, .. } => {
                let left = self.end(&key).map_or(0, |open| std::mem::take(&mut open.left));
                self.forget(&key);
                if self.places.contains(&key) {
                    return;
                }
                self.places.insert(key, place);
                let spent = self.spent_mut(judge);
                spent.judgments += 1;
                spent.repaid += u64::from(left > 0);
            }
            Entry::GaveUp { key, maybe_paid, .. } => {
                let judge = self.end(&key).map(|open| open.judge.clone());
                self.forget(&key);
                if let Some(judge) = judge.filter(|_| maybe_paid) {
                    self.spent_mut(&judge).maybe_paid += 1;
                }
            }
            Entry::Fact { name, value } => {
                if self.facts.get(name).is_none_or(|(newest, _)| *newest < sequence) {
                    self.facts.insert(name.to_owned(), (sequence, value.to_owned()));
                }
            }
        }
    }

    /// Whatever is open now was left open by a process that has ended.
    pub(super) fn leave(&mut self) {
        for open in self.open.values_mut() {
            if open.now > 0 {
                self.spent.entry(open.judge.clone()).or_default().maybe_paid += open.now;
                open.left += std::mem::take(&mut open.now);
            }
        }
        self.in_flight = 0;
    }

    /// Ends one call of this process, if one is open; what is known of the key's calls.
    fn end(&mut self, key: &JudgmentKey) -> Option<&mut OpenCalls> {
        let open = self.open.get_mut(key)?;
        if open.now > 0 {
            open.now -= 1;
            self.in_flight = self.in_flight.saturating_sub(1);
        }
        Some(open)
    }

    /// Drops what is known of a key's calls once none is open.
    fn forget(&mut self, key: &JudgmentKey) {
        if self.open.get(key).is_some_and(|open| open.now == 0 && open.left == 0) {
            self.open.remove(key);
        }
    }

    fn spent_mut(&mut self, judge: &str) -> &mut Spent {
        self.spent.entry(judge.to_owned()).or_default()
    }

    /// Where the judgment of a key lies.
    pub(super) fn place(&self, key: &JudgmentKey) -> Option<RecordLocation> {
        self.places.get(key)
    }

    /// Takes back a place at which there is no good record any more, so that the next judgment takes it.
    pub(super) fn lose(&mut self, key: &JudgmentKey, place: RecordLocation) {
        if self.places.get(key) == Some(place) {
            self.places.remove(key);
        }
    }

    /// How many judgments there are.
    pub(super) fn judgments(&self) -> u64 {
        self.places.len() as u64
    }

    /// How many calls are open, of processes that ended.
    pub(super) fn left(&self) -> u64 {
        self.open.values().map(|open| open.left).sum()
    }

    /// How many calls of this process are open.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// The newest value of a name.
    pub(super) fn fact(&self, name: &str) -> Option<String> {
        self.facts.get(name).map(|(_, value)| value.clone())
    }

    /// What was spent on a judge.
    pub(super) fn spent(&self, judge: &str) -> Spent {
        self.spent.get(judge).copied().unwrap_or(Spent::NOTHING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const PLACE: RecordLocation = RecordLocation { at: 0, length: 0 };

    fn applied(entries: &[Entry<'_>]) -> Ledger {
        let mut ledger = Ledger::default();
        for (sequence, entry) in entries.iter().enumerate() {
            ledger.apply(entry, PLACE, sequence as u64);
        }
        ledger
    }

    fn answered(key: JudgmentKey) -> Entry<'static> {
        Entry::Judgment { key, latency: Duration::ZERO, judge: "j", body: b"" }
    }

    #[test]
    fn a_call_left_open_is_maybe_paid_and_its_judgment_repaid() {
        let key = JudgmentKey::of(&[b"a"]);
        let intent = Entry::Intent { key, judge: "j" };
        let mut ledger = applied(&[Entry::Start, intent, Entry::Start, intent]);
        assert_eq!((ledger.left(), ledger.in_flight()), (1, 1));
        ledger.apply(&answered(key), PLACE, 4);
        assert_eq!((ledger.left(), ledger.in_flight(), ledger.judgments()), (0, 0, 1));
        assert_eq!(ledger.spent("j"), Spent { calls: 2, judgments: 1, maybe_paid: 1, repaid: 1 });
    }

    #[test]
    fn a_call_given_up_is_maybe_paid_only_where_it_was_said() {
        let key = JudgmentKey::of(&[b"a"]);
        let intent = Entry::Intent { key, judge: "j" };
        let gave_up = |maybe_paid| Entry::GaveUp { key, code: "judge.timeout", maybe_paid };
        let ledger = applied(&[intent, gave_up(false), intent, gave_up(true), intent, answered(key)]);
        assert_eq!(ledger.spent("j"), Spent { calls: 3, judgments: 1, maybe_paid: 1, repaid: 0 });
        assert_eq!((ledger.in_flight(), ledger.left(), ledger.open.len()), (0, 0, 0));
    }

    #[test]
    fn the_newest_fact_holds_even_where_records_have_changed_places() {
        let mut ledger = Ledger::default();
        ledger.apply(&Entry::Fact { name: "form", value: "tag" }, PLACE, 9);
        ledger.apply(&Entry::Fact { name: "form", value: "json" }, PLACE, 8);
        assert_eq!(ledger.fact("form").as_deref(), Some("tag"));
    }
}
