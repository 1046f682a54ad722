//! Tests of the join's case table, on a simulated clock with a real engine.

use super::test_harness::{ALONE, COMPARES, Delivered, TEXTS, TestHarness, engine, seconds, shared};
use super::{Policy, Status};
use crate::group::Partial;
use crate::outcome::OutcomeKind;
use crate::reason::Code;
use crate::rollout::Rollout;
use std::time::Duration;

#[test]
fn a_complete_group_is_scored_at_once_and_as_a_whole() {
    let mut harness = TestHarness::new(&engine(COMPARES), |policy| policy);
    let callers: Vec<u32> = TEXTS.iter().take(3).map(|text| harness.enter("g", None, 4, text)).collect();
    harness.at(7);
    assert!(harness.told.is_empty() && harness.batches.is_empty() && harness.prescored == 3);
    let last = harness.enter("g", None, 4, TEXTS[3]);
    harness.settle();
    let wanted = harness.totals(&TEXTS);
    for (at, caller) in callers.into_iter().chain([last]).enumerate() {
        let waited = if caller == last { Duration::ZERO } else { seconds(7) };
        let told = Delivered {
            total: wanted[at],
            code: None,
            info: (4, false, false, false),
            waited,
            others: vec![],
        };
        assert_eq!(*harness.told(caller), told);
    }
    assert!(wanted.iter().all(Option::is_some) && wanted[0] > wanted[2]);
    assert_eq!(harness.state.next_due(), None);
    let status = Status { remembered: 1, scored: 4, ..Status::default() };
    assert_eq!(harness.state.status(), status);
}

#[test]
fn a_group_of_one_is_complete_with_its_first() {
    for (size, code) in [(1, Some(Code::GroupTooSmall)), (0, Some(Code::GroupTooSmall))] {
        let mut harness = TestHarness::new(&engine(COMPARES), |policy| policy);
        let only = harness.enter("g", None, size, "one");
        harness.settle();
        assert_eq!((harness.told(only).code, harness.told(only).info), (code, (1, false, false, false)));
    }
}

#[test]
fn the_time_of_a_group_counts_from_its_first_member() {
    let mut harness = TestHarness::new(&engine(COMPARES), |policy| policy);
    let one = harness.enter("g", None, 3, TEXTS[0]);
    harness.at(60);
    let two = harness.enter("g", None, 3, TEXTS[1]);
    assert_eq!(harness.state.next_due(), Some(seconds(100)));
    harness.at(99);
    assert!(!harness.is_told(one));
    harness.at(100);
    let wanted = harness.totals(&TEXTS[..2]);
    assert_eq!((harness.told(one).total, harness.told(two).total), (wanted[0], wanted[1]));
    assert_eq!(
        (harness.told(one).info, harness.told(two).info),
        ((2, true, false, false), (2, true, false, false))
    );
    assert_eq!((harness.told(one).waited, harness.told(two).waited), (seconds(100), seconds(40)));
}

#[test]
fn a_caller_may_have_less_time_than_its_group() {
    let mut harness = TestHarness::new(&engine(COMPARES), |policy| policy);
    let one = harness.enter("g", None, 3, TEXTS[0]);
    harness.at(10);
    let two = harness.enter_for("g", None, 3, TEXTS[1], Some(seconds(5)));
    let longer = harness.enter_for("other", None, 2, TEXTS[1], Some(seconds(900)));
    harness.at(15);
    assert!(harness.told(one).info.1 && harness.told(two).info.1 && !harness.is_told(longer));
    harness.at(110);
    assert!(harness.is_told(longer), "more time than the group has is of no use");
}

#[test]
fn a_deadline_missed_by_the_clock_still_closes_the_group() {
    let mut harness = TestHarness::new(&engine(COMPARES), |policy| policy);
    let one = harness.enter("g", None, 3, TEXTS[0]);
    let two = harness.enter("g", None, 3, TEXTS[1]);
    harness.now = seconds(100);
    let late = harness.enter("g", None, 3, TEXTS[2]);
    harness.settle();
    assert_eq!((harness.told(one).info.0, harness.told(two).info.0), (2, 2));
    assert_eq!(harness.told(late).info, (3, false, true, false));
}

#[test]
fn a_quiet_group_closes_once_half_are_there() {
    let mut harness =
        TestHarness::new(&engine(COMPARES), |policy| Policy { quiet: Some(seconds(10)), ..policy });
    let one = harness.enter("g", None, 4, TEXTS[0]);
    harness.at(50);
    assert!(!harness.is_told(one), "a quarter is not half");
    let two = harness.enter("g", None, 4, TEXTS[1]);
    harness.at(59);
    let three = harness.enter("g", None, 4, TEXTS[2]);
    harness.at(68);
    assert!(harness.told.is_empty(), "every arrival begins the quiet period anew");
    harness.at(69);
    assert!([one, two, three].iter().all(|caller| harness.told(*caller).info == (3, true, false, false)));
    let slow = harness.enter("h", None, 2, TEXTS[0]);
    harness.at(79);
    assert!(harness.told(slow).info.1);
    let many = harness.enter("i", None, 9, TEXTS[0]);
    harness.at(178);
    assert!(!harness.is_told(many));
    harness.at(179);
    assert!(harness.is_told(many), "the deadline holds all the same");
}

#[test]
fn a_partial_group_is_invalid_where_the_recipe_says_so() {
    let invalid = |policy| Policy { partial: Partial::Invalid, ..policy };
    let mut harness = TestHarness::new(&engine(COMPARES), invalid);
    let callers = [harness.enter("g", Some("a"), 3, TEXTS[0]), harness.enter("g", Some("b"), 3, TEXTS[1])];
    let duplicate_caller = harness.enter("g", Some("a"), 3, TEXTS[0]);
    harness.at(100);
    assert_eq!(harness.codes(&callers), [Some(Code::GroupIncomplete); 2]);
    assert_eq!(harness.told(callers[0]).info, (2, true, false, false));
    assert_eq!(harness.told(duplicate_caller).info, (2, true, false, true));
    let late = harness.enter("g", Some("c"), 3, TEXTS[2]);
    assert_eq!((harness.told(late).code, harness.told(late).info.2), (Some(Code::GroupIncomplete), true));
    assert_eq!(harness.batches.len(), 0);
    // Complete groups are none the worse for the policy, and one more than all is late.
    let whole: Vec<u32> = TEXTS.iter().take(2).map(|text| harness.enter("h", None, 2, text)).collect();
    harness.settle();
    assert_eq!(harness.codes(&whole), [None; 2]);
    let more = harness.enter("h", None, 2, TEXTS[2]);
    harness.settle();
    assert_eq!((harness.told(more).code, harness.told(more).info), (None, (3, false, true, false)));
}

#[test]
fn a_late_member_is_compared_and_changes_no_other_answer() {
    let mut harness = TestHarness::new(&engine(COMPARES), |policy| policy);
    let early = [harness.enter("g", None, 4, TEXTS[0]), harness.enter("g", None, 4, TEXTS[1])];
    harness.now = seconds(100);
    let effects = harness.state.tick(harness.now);
    harness.take(effects);
    // The group is closed and not yet scored when the first late one comes.
    let (first, second) = (harness.enter("g", None, 4, TEXTS[2]), harness.enter("g", None, 4, TEXTS[3]));
    assert_eq!(harness.batches.len(), 3);
    harness.settle();
    let in_time = harness.totals(&TEXTS[..2]);
    assert_eq!((harness.told(early[0]).total, harness.told(early[1]).total), (in_time[0], in_time[1]));
    assert_eq!(harness.told(first).total, harness.totals(&TEXTS[..3])[2]);
    assert_eq!(harness.told(second).total, harness.totals(&TEXTS)[3]);
    assert_eq!(
        (harness.told(first).info, harness.told(second).info),
        ((3, true, true, false), (4, false, true, false))
    );
    assert_eq!((harness.state.status().late, harness.state.status().remembered), (2, 1));
}

#[test]
fn members_of_evicted_groups_follow_the_policy() {
    for partial in [Partial::Score, Partial::Invalid] {
        let mut harness =
            TestHarness::new(&engine(COMPARES), |policy| Policy { partial, remember: 2, ..policy });
        for group in 0..3 {
            TEXTS.iter().take(2).for_each(|text| _ = harness.enter(&format!("g{group}"), None, 2, text));
            harness.settle();
        }
        assert_eq!(harness.state.status().remembered, 2);
        let (forgotten, known) =
            (harness.enter("g0", None, 2, TEXTS[2]), harness.enter("g1", None, 2, TEXTS[2]));
        harness.settle();
        let code = if partial == Partial::Score { Code::GroupTooSmall } else { Code::GroupIncomplete };
        assert_eq!(
            (harness.told(forgotten).code, harness.told(forgotten).info),
            (Some(code), (1, true, true, false))
        );
        assert_eq!(harness.told(known).info, (3, false, true, false));
        // Names are known for ten times as many groups.
        for group in 3..30 {
            TEXTS.iter().take(2).for_each(|text| _ = harness.enter(&format!("g{group}"), None, 2, text));
            harness.settle();
        }
        let anew = harness.enter("g0", None, 2, TEXTS[2]);
        harness.settle();
        assert!(!harness.is_told(anew), "nobody knows that it is late");
        harness.at(100);
        assert!(harness.told(anew).info.1 && !harness.told(anew).info.2);
    }
}

#[test]
fn memory_is_bounded_by_bytes_and_what_is_used_stays() {
    let long = "word ".repeat(2000);
    let mut harness =
        TestHarness::new(&engine(COMPARES), |policy| Policy { remember_bytes: 200_000, ..policy });
    let group = |harness: &mut TestHarness, name: &str| {
        [&long, "short"].iter().for_each(|text| _ = harness.enter(name, None, 2, text));
        harness.settle();
    };
    group(&mut harness, "kept");
    for at in 0..20 {
        group(&mut harness, &format!("g{at}"));
        if at % 4 == 0 {
            let late = harness.enter("kept", None, 2, "x");
            harness.settle();
            assert_eq!(harness.told(late).info.0, 3 + at / 4, "it was used not long ago");
        }
    }
    assert!(harness.state.status().remembered < 14, "{:?}", harness.state.status());
    let forgotten = harness.enter("g0", None, 2, "x");
    harness.settle();
    assert_eq!(harness.told(forgotten).info, (1, true, true, false));
}

#[test]
fn a_duplicate_gets_the_same_answer_and_is_not_counted() {
    let mut harness = TestHarness::new(&engine(COMPARES), |policy| policy);
    let one = harness.enter("g", Some("a"), 2, TEXTS[0]);
    harness.at(3);
    let again = harness.enter("g", Some("a"), 2, TEXTS[0]);
    assert!(harness.told.is_empty(), "it is one member");
    let false_one = harness.enter("g", Some("a"), 2, "another text");
    assert_eq!(
        (harness.told(false_one).code, harness.told(false_one).info.3),
        (Some(Code::GroupDuplicate), true)
    );
    harness.at(5);
    let two = harness.enter("g", Some("b"), 2, TEXTS[1]);
    let meanwhile = harness.enter("g", Some("b"), 2, TEXTS[1]);
    harness.settle();
    let after = harness.enter("g", Some("a"), 2, TEXTS[0]);
    let wanted = harness.totals(&TEXTS[..2]);
    for (caller, total, duplicate, waited) in [
        (one, wanted[0], false, 5),
        (again, wanted[0], true, 2),
        (two, wanted[1], false, 0),
        (meanwhile, wanted[1], true, 0),
        (after, wanted[0], true, 0),
    ] {
        let told = harness.told(caller);
        let info = (2, false, false, duplicate);
        assert_eq!((told.total, told.info, told.waited), (total, info, seconds(waited)), "{caller}");
    }
    let status = harness.state.status();
    assert_eq!((status.scored, status.duplicates, status.waiting, status.bytes), (2, 4, 0, 0));
    // A late one that is handed in twice is late once.
    let late = harness.enter("g", Some("c"), 2, TEXTS[2]);
    let again = harness.enter("g", Some("c"), 2, TEXTS[2]);
    harness.settle();
    assert_eq!((harness.told(late).total, harness.told(again).info.3), (harness.told(again).total, true));
    assert_eq!(harness.state.status().late, 1);
}

#[test]
fn equal_responses_without_names_are_two_members() {
    let mut harness = TestHarness::new(&engine(COMPARES), |policy| policy);
    let callers = [harness.enter("g", None, 2, TEXTS[0]), harness.enter("g", None, 2, TEXTS[0])];
    harness.settle();
    assert_eq!(
        (harness.told(callers[0]).info, harness.codes(&callers)),
        ((2, false, false, false), vec![None; 2])
    );
}

#[test]
fn the_largest_size_counts_and_who_is_one_too_many_is_late() {
    let mut harness = TestHarness::new(&engine(COMPARES), |policy| policy);
    let two = harness.enter("g", None, 3, TEXTS[0]);
    harness.enter("g", None, 2, TEXTS[1]);
    assert!(!harness.is_told(two));
    harness.enter("g", None, 2, TEXTS[2]);
    let extra = harness.enter("g", None, 3, TEXTS[3]);
    harness.settle();
    assert_eq!(harness.told(two).info, (3, false, false, false));
    assert_eq!(harness.told(extra).info, (4, false, true, false));
}

#[test]
fn equal_prompts_with_other_keys_are_other_groups() {
    let mut harness = TestHarness::new(&engine(COMPARES), |policy| policy);
    let one = harness.enter("g", None, 2, TEXTS[0]);
    let other = harness.enter("h", None, 2, TEXTS[1]);
    harness.settle();
    assert!(!harness.is_told(one) && !harness.is_told(other) && harness.state.status().open == 2);
}

#[test]
fn who_leaves_is_no_longer_expected() {
    let mut harness = TestHarness::new(&engine(COMPARES), |policy| policy);
    let one = harness.enter("g", Some("a"), 4, TEXTS[0]);
    let two = harness.enter("g", Some("b"), 4, TEXTS[1]);
    harness.leave("g", Some("c"));
    harness.leave("g", Some("c"));
    assert!(!harness.is_told(one), "who leaves twice is missed once");
    harness.at(4);
    harness.leave("g", Some("b"));
    assert_eq!((harness.told(two).code, harness.told(two).waited), (Some(Code::GroupLeft), seconds(4)));
    let back = harness.enter("g", Some("c"), 4, TEXTS[2]);
    assert!(!harness.is_told(one), "who comes all the same takes its place back");
    harness.leave("g", None);
    harness.settle();
    assert_eq!(
        (harness.told(one).info, harness.told(back).info),
        ((2, false, false, false), (2, false, false, false))
    );
    harness.leave("g", None);
    harness.leave("g", Some("a"));
    assert_eq!(harness.state.status().open, 0, "it is too late to leave");
    // Before anybody has come.
    harness.leave("h", None);
    harness.leave("h", None);
    let only = harness.enter("h", None, 4, TEXTS[0]);
    let last = harness.enter("h", None, 4, TEXTS[1]);
    harness.settle();
    assert_eq!((harness.told(only).info.0, harness.told(last).info.1), (2, false));
    harness.leave("i", None);
    harness.at(200);
    assert_eq!(
        (harness.state.status().open, harness.state.next_due()),
        (0, None),
        "nobody came, nobody is told"
    );
}

#[test]
fn callers_that_are_gone_give_their_places_to_others() {
    for named in [false, true] {
        let name = |at: usize| named.then(|| at.to_string());
        let mut harness = TestHarness::new(&engine(COMPARES), |policy| policy);
        let enter = |harness: &mut TestHarness, at: usize, text: &str| {
            harness.enter("g", name(at).as_deref(), 3, text)
        };
        let old = [enter(&mut harness, 0, "old"), enter(&mut harness, 1, "old old")];
        harness.disconnect("g", &old);
        harness.at(50);
        // The last place is taken, and of the others nobody knows whether they come back.
        let mut new = vec![enter(&mut harness, 2, TEXTS[2])];
        harness.settle();
        assert!(!harness.is_told(new[0]));
        new.push(enter(&mut harness, 0, TEXTS[0]));
        assert_eq!(harness.state.next_due(), Some(seconds(100)), "one of the first is still there");
        new.push(enter(&mut harness, 1, TEXTS[1]));
        harness.settle();
        let wanted = harness.totals(&TEXTS[..3]);
        for (caller, total) in new.iter().zip([wanted[2], wanted[0], wanted[1]]) {
            assert_eq!(
                (harness.told(*caller).total, harness.told(*caller).info),
                (total, (3, false, false, false))
            );
        }
        assert_eq!(harness.codes(&old), [Some(Code::GroupClosed); 2], "told, though nobody hears it");
        let status = harness.state.status();
        assert_eq!((status.waiting, status.bytes, status.scored), (0, 0, 3));
    }
}

#[test]
fn a_caller_that_comes_back_has_its_place_again() {
    for named in [false, true] {
        let name = |name: &'static str| named.then_some(name);
        let mut harness = TestHarness::new(&engine(COMPARES), |policy| policy);
        let first = harness.enter("g", name("a"), 2, TEXTS[0]);
        harness.disconnect("g", &[first]);
        let other = harness.enter("g", name("b"), 2, TEXTS[1]);
        harness.settle();
        assert!(!harness.is_told(other), "the first may come back");
        let again = harness.enter("g", name("a"), 2, TEXTS[0]);
        harness.settle();
        let wanted = harness.totals(&TEXTS[..2]);
        assert_eq!((harness.told(again).total, harness.told(other).total), (wanted[0], wanted[1]));
        assert_eq!(
            (harness.told(again).info, harness.told(first).total),
            ((2, false, false, true), wanted[0])
        );
        assert_eq!(harness.state.status().scored, 2);
        // After that its answer stands, for whoever asks for it again.
        harness.disconnect("g", &[again]);
        if named {
            let once_more = harness.enter("g", name("a"), 2, TEXTS[0]);
            assert_eq!(harness.told(once_more).total, wanted[0]);
        }
    }
}

#[test]
fn places_of_callers_that_are_gone_are_not_kept_for_ever() {
    let mut harness = TestHarness::new(&engine(COMPARES), |policy| Policy { away: seconds(30), ..policy });
    let old = [harness.enter("g", None, 3, "old"), harness.enter("g", None, 3, "old old")];
    harness.disconnect("g", &old);
    harness.at(40);
    // The group begins with the first of the new ones, and has all its time.
    let new = [harness.enter("g", None, 3, TEXTS[0]), harness.enter("g", None, 3, TEXTS[1])];
    assert_eq!(
        (harness.codes(&old), harness.state.next_due()),
        (vec![Some(Code::GroupClosed); 2], Some(seconds(140)))
    );
    harness.at(139);
    assert!(!harness.is_told(new[0]));
    harness.at(140);
    assert_eq!((harness.told(new[0]).info, harness.told(new[1]).info.0), ((2, true, false, false), 2));
    // One that goes later does not cut the time of those who are left.
    let gone = harness.enter("h", None, 3, "gone");
    harness.at(200);
    let there = harness.enter("h", None, 3, TEXTS[0]);
    harness.disconnect("h", &[gone]);
    harness.at(240);
    assert!(!harness.is_told(there) && harness.state.next_due() == Some(seconds(300)));
    harness.at(300);
    assert_eq!(harness.told(there).info, (1, true, false, false));
    // A group whose time is over closes with those who may still come back.
    let away = [harness.enter("i", None, 3, TEXTS[0]), harness.enter("i", None, 3, TEXTS[1])];
    harness.at(390);
    harness.disconnect("i", &away);
    harness.at(400);
    assert_eq!(harness.told(away[0]).info, (2, true, false, false));
    // Where all have gone for good, there is nothing left.
    let last = harness.enter("j", None, 3, TEXTS[0]);
    harness.disconnect("j", &[last]);
    harness.at(500);
    assert_eq!((harness.codes(&[last]), harness.state.status().open), (vec![Some(Code::GroupClosed)], 0));
}

#[test]
fn who_is_gone_and_leaves_is_gone_once() {
    let mut harness = TestHarness::new(&engine(COMPARES), |policy| policy);
    let gone = harness.enter("g", Some("a"), 3, TEXTS[0]);
    harness.disconnect("g", &[gone, gone]);
    harness.leave("g", Some("a"));
    assert_eq!(harness.told(gone).code, Some(Code::GroupLeft));
    let callers = [harness.enter("g", Some("b"), 3, TEXTS[0]), harness.enter("g", Some("c"), 3, TEXTS[1])];
    harness.settle();
    assert_eq!(harness.codes(&callers), [None; 2]);
}

#[test]
fn too_many_are_refused_at_once_and_may_come_again() {
    let mut harness = TestHarness::new(&engine(COMPARES), |policy| Policy { most_waiting: 2, ..policy });
    let held = [harness.enter("g", None, 3, TEXTS[0]), harness.enter("h", None, 2, TEXTS[1])];
    let refused = harness.enter("g", None, 3, TEXTS[1]);
    assert_eq!((harness.told(refused).code, harness.state.status().waiting), (Some(Code::Overloaded), 2));
    harness.at(100);
    assert!(held.iter().all(|caller| harness.is_told(*caller)));
    let again = harness.enter("i", None, 1, TEXTS[1]);
    harness.settle();
    assert_ne!(harness.told(again).code, Some(Code::Overloaded));
    let mut harness = TestHarness::new(&engine(COMPARES), |policy| Policy { most_bytes: 10_000, ..policy });
    let huge = harness.enter("g", None, 2, &"x".repeat(20_000));
    assert_eq!(harness.told(huge).code, Some(Code::Overloaded));
    assert_eq!((harness.state.status().bytes, harness.state.status().open), (0, 0));
}

#[test]
fn nobody_is_left_waiting_when_the_join_is_closed() {
    let mut harness = TestHarness::new(&engine(COMPARES), |policy| policy);
    let scored: Vec<u32> = TEXTS.iter().take(2).map(|text| harness.enter("g", None, 2, text)).collect();
    let waiting = harness.enter("h", Some("a"), 2, TEXTS[0]);
    let duplicate_caller = harness.enter("h", Some("a"), 2, TEXTS[0]);
    let effects = harness.state.shut_down(harness.now);
    harness.take(effects);
    assert_eq!(harness.codes(&[waiting, duplicate_caller]), [Some(Code::GroupClosed); 2]);
    harness.settle();
    assert_eq!(harness.codes(&scored), [None; 2], "what is being scored is still answered");
    let after = harness.enter("i", None, 2, TEXTS[0]);
    assert_eq!(harness.told(after).code, Some(Code::GroupClosed));
    assert_eq!((harness.state.status().waiting, harness.state.next_due()), (0, None));
}

#[test]
fn where_nothing_is_compared_nobody_waits_but_who_has_no_number() {
    let mut harness = TestHarness::new(&engine(ALONE), |policy| policy);
    let one = harness.enter("g", Some("a"), 3, "it is 4");
    harness.settle();
    let told = harness.told(one);
    assert_eq!((told.total, told.info, told.waited), (Some(0.0), (1, false, false, false), Duration::ZERO));
    harness.at(2);
    // Without a reference, the number cannot be compared, and the recipe requires that it can.
    let bare = [harness.enter("g", Some("b"), 3, "nothing"), harness.enter("g", Some("b"), 3, "nothing")];
    harness.settle();
    let third = harness.enter("g", Some("b"), 3, "nothing");
    assert!(
        ![bare[0], bare[1], third].iter().any(|caller| harness.is_told(*caller)),
        "they wait for their siblings"
    );
    let again = harness.enter("g", Some("a"), 3, "it is 4");
    assert_eq!((harness.told(again).total, harness.told(again).info.3), (Some(0.0), true));
    harness.at(5);
    let three = harness.enter("g", Some("c"), 3, "x 4");
    harness.settle();
    assert_eq!((harness.told(three).total, harness.told(three).info.0), (Some(-1.0), 3));
    for (caller, duplicate) in [(bare[0], false), (bare[1], true), (third, true)] {
        let told = harness.told(caller);
        assert_eq!((told.code, told.waited), (Some(Code::MissingReference), seconds(3)));
        assert_eq!((told.info, &told.others), ((3, false, false, duplicate), &vec![Some(0.0), Some(-1.0)]));
    }
    assert_eq!(harness.counted, [3], "groups are counted all the same");
    let late = harness.enter("g", Some("d"), 3, "4444");
    harness.settle();
    assert_eq!((harness.told(late).total, harness.told(late).info), (Some(0.0), (4, false, true, false)));
    // A group that is never complete is counted when its time is over.
    harness.enter("h", None, 2, "4");
    harness.settle();
    harness.at(105);
    assert_eq!((harness.counted.as_slice(), harness.state.status().partial), ([3, 1].as_slice(), 1));
}

#[test]
fn a_kind_that_is_not_invalid_has_a_total() {
    // What the tests above take for granted of the two recipes.
    for (yaml, texts) in [(COMPARES, TEXTS), (ALONE, ["4", "it is 4", "x", "4444"])] {
        let rollouts: Vec<Rollout<'_>> = texts
            .iter()
            .map(|text| Rollout::new(*text).in_group("g").with_reference("one two three 4"))
            .collect();
        let report = shared(yaml).score(&rollouts).unwrap();
        assert!(report.rows.iter().all(|row| row.total.kind() == OutcomeKind::Scored), "{:?}", report.rows);
    }
}
