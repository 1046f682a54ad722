//! Property tests of the join: any order of arrivals, leaves, duplicates, waits and scores.

use super::Policy;
use super::test_harness::{ALONE, COMPARES, TEXTS, TestHarness, seconds, shared};
use crate::group::Partial;
use proptest::prelude::*;

/// What may happen in a join.
#[derive(Debug, Clone)]
enum Event {
    Arrive { group: u8, member: Option<u8>, text: u8, timeout: Option<u8> },
    Leave { group: u8, member: Option<u8> },
    GoAway { group: u8, caller: u8 },
    Wait(u8),
    Score,
    Flush,
}

fn event() -> impl Strategy<Value = Event> {
    let member = || proptest::option::of(0..5u8);
    prop_oneof![
        8 => (0..4u8, member(), 0..4u8, proptest::option::weighted(0.1, 0..60u8))
            .prop_map(|(group, member, text, timeout)| Event::Arrive { group, member, text, timeout }),
        1 => (0..4u8, member()).prop_map(|(group, member)| Event::Leave { group, member }),
        3 => (0..4u8, 0..60u8).prop_map(|(group, caller)| Event::GoAway { group, caller }),
        2 => (1..50u8).prop_map(Event::Wait),
        4 => Just(Event::Score),
        1 => Just(Event::Flush),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// In any order of events, every caller is answered exactly once, and nothing leaks.
    #[test]
    fn every_caller_is_told_exactly_once(
        events in proptest::collection::vec(event(), 1..60),
        alone in any::<bool>(),
        invalid in any::<bool>(),
        quiet in proptest::option::of(1..40u64),
        remember in 0..3usize,
        most_waiting in prop_oneof![Just(1000usize), 1..6usize],
        shut in any::<bool>(),
    ) {
        let engine = shared(if alone { ALONE } else { COMPARES });
        let partial = if invalid { Partial::Invalid } else { Partial::Score };
        let quiet = quiet.map(seconds);
        let mut harness = TestHarness::new(engine, |policy| Policy {
            away: seconds(20), partial, quiet, remember, most_waiting, ..policy
        });
        for event in events {
            match event {
                Event::Arrive { group, member, text, timeout } => {
                    let (group, member) = (group.to_string(), member.map(|member| member.to_string()));
                    let timeout = timeout.map(|timeout| seconds(timeout.into()));
                    let size = 1 + usize::from(text) % 3 + group.len();
                    harness.enter_for(&group, member.as_deref(), size, TEXTS[usize::from(text)], timeout);
                }
                Event::Leave { group, member } => {
                    let member = member.map(|member| member.to_string());
                    harness.leave(&group.to_string(), member.as_deref());
                }
                Event::GoAway { group, caller } => harness.disconnect(&group.to_string(), &[caller.into()]),
                Event::Wait(time) => {
                    harness.now += seconds(time.into());
                    let effects = harness.state.tick(harness.now);
                    harness.take(effects);
                }
                Event::Score => drop(harness.score()),
                Event::Flush => {
                    let effects = harness.state.flush(harness.now);
                    harness.take(effects);
                }
            }
            prop_assert!(harness.told.values().all(|told| told.len() == 1));
            prop_assert!(harness.state.next_due().is_none_or(|due| due > harness.now));
        }
        if shut {
            let effects = harness.state.shut_down(harness.now);
            harness.take(effects);
        } else {
            // Those whose callers are gone may have left a group more time.
            harness.now += seconds(300);
            let effects = harness.state.tick(harness.now);
            harness.take(effects);
        }
        while harness.score() {}
        for caller in 0..harness.next {
            prop_assert_eq!(harness.told.get(&caller).map(Vec::len), Some(1), "caller {}", caller);
        }
        let status = harness.state.status();
        prop_assert_eq!((status.open, status.waiting, status.bytes), (0, 0, 0));
        prop_assert!(status.remembered <= remember);
        prop_assert_eq!(status.scored + status.refused + status.duplicates >= u64::from(harness.next), true);
    }

    /// Members of a complete group get the same scores in whatever order they arrive.
    #[test]
    fn the_order_of_arrival_cannot_be_seen(
        order in Just((0..6usize).collect::<Vec<_>>()).prop_shuffle(),
        texts in proptest::collection::vec("[a-d ]{0,12}(one|two)?", 6),
        named in any::<bool>(),
    ) {
        let mut harness = TestHarness::new(shared(COMPARES), |policy| policy);
        let mut told = [None; 6];
        let mut callers = Vec::new();
        for at in &order {
            let name = named.then(|| at.to_string());
            callers.push((*at, harness.enter("g", name.as_deref(), 6, &texts[*at])));
        }
        harness.settle();
        for (at, caller) in callers {
            told[at] = harness.told(caller).total;
        }
        let all: Vec<&str> = texts.iter().map(String::as_str).collect();
        let wanted = harness.totals(&all);
        for (told, wanted) in told.iter().zip(&wanted) {
            prop_assert_eq!(told.map(f64::to_bits), wanted.map(f64::to_bits));
        }
    }
}
