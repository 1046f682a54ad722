//! What holds whatever happens? Any order of arrivals, leaves, repetitions, waits and scores.

use super::Policy;
use super::desk::{ALONE, COMPARES, Desk, TEXTS, seconds, shared};
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

    /// Whatever happens, in whatever order: every caller is told exactly once, and nothing is left behind.
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
        let mut desk = Desk::new(engine, |policy| Policy {
            away: seconds(20), partial, quiet, remember, most_waiting, ..policy
        });
        for event in events {
            match event {
                Event::Arrive { group, member, text, timeout } => {
                    let (group, member) = (group.to_string(), member.map(|member| member.to_string()));
                    let timeout = timeout.map(|timeout| seconds(timeout.into()));
                    let size = 1 + usize::from(text) % 3 + group.len();
                    desk.enter_for(&group, member.as_deref(), size, TEXTS[usize::from(text)], timeout);
                }
                Event::Leave { group, member } => {
                    let member = member.map(|member| member.to_string());
                    desk.leave(&group.to_string(), member.as_deref());
                }
                Event::GoAway { group, caller } => desk.go_away(&group.to_string(), &[caller.into()]),
                Event::Wait(time) => {
                    desk.now += seconds(time.into());
                    let effects = desk.roster.tick(desk.now);
                    desk.take(effects);
                }
                Event::Score => drop(desk.score()),
                Event::Flush => {
                    let effects = desk.roster.flush(desk.now);
                    desk.take(effects);
                }
            }
            prop_assert!(desk.told.values().all(|told| told.len() == 1));
            prop_assert!(desk.roster.next_due().is_none_or(|due| due > desk.now));
        }
        if shut {
            let effects = desk.roster.shut(desk.now);
            desk.take(effects);
        } else {
            // Those whose callers are gone may have left a group more time.
            desk.now += seconds(300);
            let effects = desk.roster.tick(desk.now);
            desk.take(effects);
        }
        while desk.score() {}
        for caller in 0..desk.next {
            prop_assert_eq!(desk.told.get(&caller).map(Vec::len), Some(1), "caller {}", caller);
        }
        let status = desk.roster.status();
        prop_assert_eq!((status.open, status.waiting, status.bytes), (0, 0, 0));
        prop_assert!(status.remembered <= remember);
        prop_assert_eq!(status.scored + status.refused + status.duplicates >= u64::from(desk.next), true);
    }

    /// Members of a complete group get the same scores in whatever order they arrive.
    #[test]
    fn the_order_of_arrival_cannot_be_seen(
        order in Just((0..6usize).collect::<Vec<_>>()).prop_shuffle(),
        texts in proptest::collection::vec("[a-d ]{0,12}(one|two)?", 6),
        named in any::<bool>(),
    ) {
        let mut desk = Desk::new(shared(COMPARES), |policy| policy);
        let mut told = [None; 6];
        let mut callers = Vec::new();
        for at in &order {
            let name = named.then(|| at.to_string());
            callers.push((*at, desk.enter("g", name.as_deref(), 6, &texts[*at])));
        }
        desk.settle();
        for (at, caller) in callers {
            told[at] = desk.told(caller).total;
        }
        let all: Vec<&str> = texts.iter().map(String::as_str).collect();
        let wanted = desk.totals(&all);
        for (told, wanted) in told.iter().zip(&wanted) {
            prop_assert_eq!(told.map(f64::to_bits), wanted.map(f64::to_bits));
        }
    }
}
