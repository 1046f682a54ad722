//! Does every case end as the table says? The state machine on a clock that the test moves by hand, with a real engine that
//! scores on the spot.

use super::desk::{ALONE, COMPARES, Desk, TEXTS, Told, engine, seconds, shared};
use super::{Policy, Status};
use crate::group::Partial;
use crate::outcome::OutcomeKind;
use crate::reason::Code;
use crate::rollout::Rollout;
use std::time::Duration;

#[test]
fn a_complete_group_is_scored_at_once_and_as_a_whole() {
    let mut desk = Desk::new(&engine(COMPARES), |policy| policy);
    let callers: Vec<u32> = TEXTS.iter().take(3).map(|text| desk.enter("g", None, 4, text)).collect();
    desk.at(7);
    assert!(desk.told.is_empty() && desk.batches.is_empty() && desk.begun == 3);
    let last = desk.enter("g", None, 4, TEXTS[3]);
    desk.settle();
    let wanted = desk.totals(&TEXTS);
    for (at, caller) in callers.into_iter().chain([last]).enumerate() {
        let waited = if caller == last { Duration::ZERO } else { seconds(7) };
        let told =
            Told { total: wanted[at], code: None, facts: (4, false, false, false), waited, others: vec![] };
        assert_eq!(*desk.told(caller), told);
    }
    assert!(wanted.iter().all(Option::is_some) && wanted[0] > wanted[2]);
    assert_eq!(desk.roster.next_due(), None);
    let status = Status { remembered: 1, scored: 4, ..Status::default() };
    assert_eq!(desk.roster.status(), status);
}

#[test]
fn a_group_of_one_is_complete_with_its_first() {
    for (size, code) in [(1, Some(Code::GroupTooSmall)), (0, Some(Code::GroupTooSmall))] {
        let mut desk = Desk::new(&engine(COMPARES), |policy| policy);
        let only = desk.enter("g", None, size, "one");
        desk.settle();
        assert_eq!((desk.told(only).code, desk.told(only).facts), (code, (1, false, false, false)));
    }
}

#[test]
fn the_time_of_a_group_counts_from_its_first_member() {
    let mut desk = Desk::new(&engine(COMPARES), |policy| policy);
    let one = desk.enter("g", None, 3, TEXTS[0]);
    desk.at(60);
    let two = desk.enter("g", None, 3, TEXTS[1]);
    assert_eq!(desk.roster.next_due(), Some(seconds(100)));
    desk.at(99);
    assert!(!desk.is_told(one));
    desk.at(100);
    let wanted = desk.totals(&TEXTS[..2]);
    assert_eq!((desk.told(one).total, desk.told(two).total), (wanted[0], wanted[1]));
    assert_eq!(
        (desk.told(one).facts, desk.told(two).facts),
        ((2, true, false, false), (2, true, false, false))
    );
    assert_eq!((desk.told(one).waited, desk.told(two).waited), (seconds(100), seconds(40)));
}

#[test]
fn a_caller_may_have_less_time_than_its_group() {
    let mut desk = Desk::new(&engine(COMPARES), |policy| policy);
    let one = desk.enter("g", None, 3, TEXTS[0]);
    desk.at(10);
    let two = desk.enter_for("g", None, 3, TEXTS[1], Some(seconds(5)));
    let longer = desk.enter_for("other", None, 2, TEXTS[1], Some(seconds(900)));
    desk.at(15);
    assert!(desk.told(one).facts.1 && desk.told(two).facts.1 && !desk.is_told(longer));
    desk.at(110);
    assert!(desk.is_told(longer), "more time than the group has is of no use");
}

#[test]
fn a_deadline_that_passed_before_the_clock_was_looked_at_has_passed() {
    let mut desk = Desk::new(&engine(COMPARES), |policy| policy);
    let one = desk.enter("g", None, 3, TEXTS[0]);
    let two = desk.enter("g", None, 3, TEXTS[1]);
    desk.now = seconds(100);
    let late = desk.enter("g", None, 3, TEXTS[2]);
    desk.settle();
    assert_eq!((desk.told(one).facts.0, desk.told(two).facts.0), (2, 2));
    assert_eq!(desk.told(late).facts, (3, false, true, false));
}

#[test]
fn a_group_that_has_gone_quiet_waits_no_longer_once_half_are_there() {
    let mut desk = Desk::new(&engine(COMPARES), |policy| Policy { quiet: Some(seconds(10)), ..policy });
    let one = desk.enter("g", None, 4, TEXTS[0]);
    desk.at(50);
    assert!(!desk.is_told(one), "a quarter is not half");
    let two = desk.enter("g", None, 4, TEXTS[1]);
    desk.at(59);
    let three = desk.enter("g", None, 4, TEXTS[2]);
    desk.at(68);
    assert!(desk.told.is_empty(), "every arrival begins the quiet period anew");
    desk.at(69);
    assert!([one, two, three].iter().all(|caller| desk.told(*caller).facts == (3, true, false, false)));
    let slow = desk.enter("h", None, 2, TEXTS[0]);
    desk.at(79);
    assert!(desk.told(slow).facts.1);
    let many = desk.enter("i", None, 9, TEXTS[0]);
    desk.at(178);
    assert!(!desk.is_told(many));
    desk.at(179);
    assert!(desk.is_told(many), "the deadline holds all the same");
}

#[test]
fn a_partial_group_is_invalid_where_the_recipe_says_so() {
    let invalid = |policy| Policy { partial: Partial::Invalid, ..policy };
    let mut desk = Desk::new(&engine(COMPARES), invalid);
    let callers = [desk.enter("g", Some("a"), 3, TEXTS[0]), desk.enter("g", Some("b"), 3, TEXTS[1])];
    let echo = desk.enter("g", Some("a"), 3, TEXTS[0]);
    desk.at(100);
    assert_eq!(desk.codes(&callers), [Some(Code::GroupIncomplete); 2]);
    assert_eq!(desk.told(callers[0]).facts, (2, true, false, false));
    assert_eq!(desk.told(echo).facts, (2, true, false, true));
    let late = desk.enter("g", Some("c"), 3, TEXTS[2]);
    assert_eq!((desk.told(late).code, desk.told(late).facts.2), (Some(Code::GroupIncomplete), true));
    assert_eq!(desk.batches.len(), 0);
    // Complete groups are none the worse for the policy, and one more than all is late.
    let whole: Vec<u32> = TEXTS.iter().take(2).map(|text| desk.enter("h", None, 2, text)).collect();
    desk.settle();
    assert_eq!(desk.codes(&whole), [None; 2]);
    let more = desk.enter("h", None, 2, TEXTS[2]);
    desk.settle();
    assert_eq!((desk.told(more).code, desk.told(more).facts), (None, (3, false, true, false)));
}

#[test]
fn a_late_one_is_compared_with_those_who_were_in_time_and_changes_nothing_for_them() {
    let mut desk = Desk::new(&engine(COMPARES), |policy| policy);
    let early = [desk.enter("g", None, 4, TEXTS[0]), desk.enter("g", None, 4, TEXTS[1])];
    desk.now = seconds(100);
    let effects = desk.roster.tick(desk.now);
    desk.take(effects);
    // The group is closed and not yet scored when the first late one comes.
    let (first, second) = (desk.enter("g", None, 4, TEXTS[2]), desk.enter("g", None, 4, TEXTS[3]));
    assert_eq!(desk.batches.len(), 3);
    desk.settle();
    let in_time = desk.totals(&TEXTS[..2]);
    assert_eq!((desk.told(early[0]).total, desk.told(early[1]).total), (in_time[0], in_time[1]));
    assert_eq!(desk.told(first).total, desk.totals(&TEXTS[..3])[2]);
    assert_eq!(desk.told(second).total, desk.totals(&TEXTS)[3]);
    assert_eq!(
        (desk.told(first).facts, desk.told(second).facts),
        ((3, true, true, false), (4, false, true, false))
    );
    assert_eq!((desk.roster.status().late, desk.roster.status().remembered), (2, 1));
}

#[test]
fn what_is_forgotten_is_answered_by_the_policy_and_in_the_end_begins_anew() {
    for partial in [Partial::Score, Partial::Invalid] {
        let mut desk = Desk::new(&engine(COMPARES), |policy| Policy { partial, remember: 2, ..policy });
        for group in 0..3 {
            TEXTS.iter().take(2).for_each(|text| _ = desk.enter(&format!("g{group}"), None, 2, text));
            desk.settle();
        }
        assert_eq!(desk.roster.status().remembered, 2);
        let (forgotten, known) = (desk.enter("g0", None, 2, TEXTS[2]), desk.enter("g1", None, 2, TEXTS[2]));
        desk.settle();
        let code = if partial == Partial::Score { Code::GroupTooSmall } else { Code::GroupIncomplete };
        assert_eq!(
            (desk.told(forgotten).code, desk.told(forgotten).facts),
            (Some(code), (1, true, true, false))
        );
        assert_eq!(desk.told(known).facts, (3, false, true, false));
        // Names are known for ten times as many groups.
        for group in 3..30 {
            TEXTS.iter().take(2).for_each(|text| _ = desk.enter(&format!("g{group}"), None, 2, text));
            desk.settle();
        }
        let anew = desk.enter("g0", None, 2, TEXTS[2]);
        desk.settle();
        assert!(!desk.is_told(anew), "nobody knows that it is late");
        desk.at(100);
        assert!(desk.told(anew).facts.1 && !desk.told(anew).facts.2);
    }
}

#[test]
fn memory_is_bounded_by_bytes_and_what_is_used_stays() {
    let long = "word ".repeat(2000);
    let mut desk = Desk::new(&engine(COMPARES), |policy| Policy { remember_bytes: 200_000, ..policy });
    let group = |desk: &mut Desk, name: &str| {
        [&long, "short"].iter().for_each(|text| _ = desk.enter(name, None, 2, text));
        desk.settle();
    };
    group(&mut desk, "kept");
    for at in 0..20 {
        group(&mut desk, &format!("g{at}"));
        if at % 4 == 0 {
            let late = desk.enter("kept", None, 2, "x");
            desk.settle();
            assert_eq!(desk.told(late).facts.0, 3 + at / 4, "it was used not long ago");
        }
    }
    assert!(desk.roster.status().remembered < 14, "{:?}", desk.roster.status());
    let forgotten = desk.enter("g0", None, 2, "x");
    desk.settle();
    assert_eq!(desk.told(forgotten).facts, (1, true, true, false));
}

#[test]
fn a_member_that_is_handed_in_again_gets_the_same_answer_and_is_not_counted() {
    let mut desk = Desk::new(&engine(COMPARES), |policy| policy);
    let one = desk.enter("g", Some("a"), 2, TEXTS[0]);
    desk.at(3);
    let again = desk.enter("g", Some("a"), 2, TEXTS[0]);
    assert!(desk.told.is_empty(), "it is one member");
    let false_one = desk.enter("g", Some("a"), 2, "another text");
    assert_eq!((desk.told(false_one).code, desk.told(false_one).facts.3), (Some(Code::GroupDuplicate), true));
    desk.at(5);
    let two = desk.enter("g", Some("b"), 2, TEXTS[1]);
    let meanwhile = desk.enter("g", Some("b"), 2, TEXTS[1]);
    desk.settle();
    let after = desk.enter("g", Some("a"), 2, TEXTS[0]);
    let wanted = desk.totals(&TEXTS[..2]);
    for (caller, total, duplicate, waited) in [
        (one, wanted[0], false, 5),
        (again, wanted[0], true, 2),
        (two, wanted[1], false, 0),
        (meanwhile, wanted[1], true, 0),
        (after, wanted[0], true, 0),
    ] {
        let told = desk.told(caller);
        let facts = (2, false, false, duplicate);
        assert_eq!((told.total, told.facts, told.waited), (total, facts, seconds(waited)), "{caller}");
    }
    let status = desk.roster.status();
    assert_eq!((status.scored, status.duplicates, status.waiting, status.bytes), (2, 4, 0, 0));
    // A late one that is handed in twice is late once.
    let late = desk.enter("g", Some("c"), 2, TEXTS[2]);
    let again = desk.enter("g", Some("c"), 2, TEXTS[2]);
    desk.settle();
    assert_eq!((desk.told(late).total, desk.told(again).facts.3), (desk.told(again).total, true));
    assert_eq!(desk.roster.status().late, 1);
}

#[test]
fn equal_responses_without_names_are_two_members() {
    let mut desk = Desk::new(&engine(COMPARES), |policy| policy);
    let callers = [desk.enter("g", None, 2, TEXTS[0]), desk.enter("g", None, 2, TEXTS[0])];
    desk.settle();
    assert_eq!(
        (desk.told(callers[0]).facts, desk.codes(&callers)),
        ((2, false, false, false), vec![None; 2])
    );
}

#[test]
fn the_largest_size_counts_and_who_is_one_too_many_is_late() {
    let mut desk = Desk::new(&engine(COMPARES), |policy| policy);
    let two = desk.enter("g", None, 3, TEXTS[0]);
    desk.enter("g", None, 2, TEXTS[1]);
    assert!(!desk.is_told(two));
    desk.enter("g", None, 2, TEXTS[2]);
    let extra = desk.enter("g", None, 3, TEXTS[3]);
    desk.settle();
    assert_eq!(desk.told(two).facts, (3, false, false, false));
    assert_eq!(desk.told(extra).facts, (4, false, true, false));
}

#[test]
fn equal_prompts_with_other_keys_are_other_groups() {
    let mut desk = Desk::new(&engine(COMPARES), |policy| policy);
    let one = desk.enter("g", None, 2, TEXTS[0]);
    let other = desk.enter("h", None, 2, TEXTS[1]);
    desk.settle();
    assert!(!desk.is_told(one) && !desk.is_told(other) && desk.roster.status().open == 2);
}

#[test]
fn who_leaves_is_no_longer_expected() {
    let mut desk = Desk::new(&engine(COMPARES), |policy| policy);
    let one = desk.enter("g", Some("a"), 4, TEXTS[0]);
    let two = desk.enter("g", Some("b"), 4, TEXTS[1]);
    desk.leave("g", Some("c"));
    desk.leave("g", Some("c"));
    assert!(!desk.is_told(one), "who leaves twice is missed once");
    desk.at(4);
    desk.leave("g", Some("b"));
    assert_eq!((desk.told(two).code, desk.told(two).waited), (Some(Code::GroupLeft), seconds(4)));
    let back = desk.enter("g", Some("c"), 4, TEXTS[2]);
    assert!(!desk.is_told(one), "who comes all the same takes its place back");
    desk.leave("g", None);
    desk.settle();
    assert_eq!(
        (desk.told(one).facts, desk.told(back).facts),
        ((2, false, false, false), (2, false, false, false))
    );
    desk.leave("g", None);
    desk.leave("g", Some("a"));
    assert_eq!(desk.roster.status().open, 0, "it is too late to leave");
    // Before anybody has come.
    desk.leave("h", None);
    desk.leave("h", None);
    let only = desk.enter("h", None, 4, TEXTS[0]);
    let last = desk.enter("h", None, 4, TEXTS[1]);
    desk.settle();
    assert_eq!((desk.told(only).facts.0, desk.told(last).facts.1), (2, false));
    desk.leave("i", None);
    desk.at(200);
    assert_eq!((desk.roster.status().open, desk.roster.next_due()), (0, None), "nobody came, nobody is told");
}

#[test]
fn callers_that_are_gone_give_their_places_to_others() {
    for named in [false, true] {
        let name = |at: usize| named.then(|| at.to_string());
        let mut desk = Desk::new(&engine(COMPARES), |policy| policy);
        let enter = |desk: &mut Desk, at: usize, text: &str| desk.enter("g", name(at).as_deref(), 3, text);
        let old = [enter(&mut desk, 0, "old"), enter(&mut desk, 1, "old old")];
        desk.go_away("g", &old);
        desk.at(50);
        // The last place is taken, and of the others nobody knows whether they come back.
        let mut new = vec![enter(&mut desk, 2, TEXTS[2])];
        desk.settle();
        assert!(!desk.is_told(new[0]));
        new.push(enter(&mut desk, 0, TEXTS[0]));
        assert_eq!(desk.roster.next_due(), Some(seconds(100)), "one of the first is still there");
        new.push(enter(&mut desk, 1, TEXTS[1]));
        desk.settle();
        let wanted = desk.totals(&TEXTS[..3]);
        for (caller, total) in new.iter().zip([wanted[2], wanted[0], wanted[1]]) {
            assert_eq!(
                (desk.told(*caller).total, desk.told(*caller).facts),
                (total, (3, false, false, false))
            );
        }
        assert_eq!(desk.codes(&old), [Some(Code::GroupClosed); 2], "told, though nobody hears it");
        let status = desk.roster.status();
        assert_eq!((status.waiting, status.bytes, status.scored), (0, 0, 3));
    }
}

#[test]
fn a_caller_that_comes_back_has_its_place_again() {
    for named in [false, true] {
        let name = |name: &'static str| named.then_some(name);
        let mut desk = Desk::new(&engine(COMPARES), |policy| policy);
        let first = desk.enter("g", name("a"), 2, TEXTS[0]);
        desk.go_away("g", &[first]);
        let other = desk.enter("g", name("b"), 2, TEXTS[1]);
        desk.settle();
        assert!(!desk.is_told(other), "the first may come back");
        let again = desk.enter("g", name("a"), 2, TEXTS[0]);
        desk.settle();
        let wanted = desk.totals(&TEXTS[..2]);
        assert_eq!((desk.told(again).total, desk.told(other).total), (wanted[0], wanted[1]));
        assert_eq!((desk.told(again).facts, desk.told(first).total), ((2, false, false, true), wanted[0]));
        assert_eq!(desk.roster.status().scored, 2);
        // After that its answer stands, for whoever asks for it again.
        desk.go_away("g", &[again]);
        if named {
            let once_more = desk.enter("g", name("a"), 2, TEXTS[0]);
            assert_eq!(desk.told(once_more).total, wanted[0]);
        }
    }
}

#[test]
fn places_of_callers_that_are_gone_are_not_kept_for_ever() {
    let mut desk = Desk::new(&engine(COMPARES), |policy| Policy { away: seconds(30), ..policy });
    let old = [desk.enter("g", None, 3, "old"), desk.enter("g", None, 3, "old old")];
    desk.go_away("g", &old);
    desk.at(40);
    // The group begins with the first of the new ones, and has all its time.
    let new = [desk.enter("g", None, 3, TEXTS[0]), desk.enter("g", None, 3, TEXTS[1])];
    assert_eq!(
        (desk.codes(&old), desk.roster.next_due()),
        (vec![Some(Code::GroupClosed); 2], Some(seconds(140)))
    );
    desk.at(139);
    assert!(!desk.is_told(new[0]));
    desk.at(140);
    assert_eq!((desk.told(new[0]).facts, desk.told(new[1]).facts.0), ((2, true, false, false), 2));
    // One that goes later does not cut the time of those who are left.
    let gone = desk.enter("h", None, 3, "gone");
    desk.at(200);
    let there = desk.enter("h", None, 3, TEXTS[0]);
    desk.go_away("h", &[gone]);
    desk.at(240);
    assert!(!desk.is_told(there) && desk.roster.next_due() == Some(seconds(300)));
    desk.at(300);
    assert_eq!(desk.told(there).facts, (1, true, false, false));
    // A group whose time is over closes with those who may still come back.
    let away = [desk.enter("i", None, 3, TEXTS[0]), desk.enter("i", None, 3, TEXTS[1])];
    desk.at(390);
    desk.go_away("i", &away);
    desk.at(400);
    assert_eq!(desk.told(away[0]).facts, (2, true, false, false));
    // Where all have gone for good, there is nothing left.
    let last = desk.enter("j", None, 3, TEXTS[0]);
    desk.go_away("j", &[last]);
    desk.at(500);
    assert_eq!((desk.codes(&[last]), desk.roster.status().open), (vec![Some(Code::GroupClosed)], 0));
}

#[test]
fn who_is_gone_and_leaves_is_gone_once() {
    let mut desk = Desk::new(&engine(COMPARES), |policy| policy);
    let gone = desk.enter("g", Some("a"), 3, TEXTS[0]);
    desk.go_away("g", &[gone, gone]);
    desk.leave("g", Some("a"));
    assert_eq!(desk.told(gone).code, Some(Code::GroupLeft));
    let callers = [desk.enter("g", Some("b"), 3, TEXTS[0]), desk.enter("g", Some("c"), 3, TEXTS[1])];
    desk.settle();
    assert_eq!(desk.codes(&callers), [None; 2]);
}

#[test]
fn too_many_are_refused_at_once_and_may_come_again() {
    let mut desk = Desk::new(&engine(COMPARES), |policy| Policy { most_waiting: 2, ..policy });
    let held = [desk.enter("g", None, 3, TEXTS[0]), desk.enter("h", None, 2, TEXTS[1])];
    let refused = desk.enter("g", None, 3, TEXTS[1]);
    assert_eq!((desk.told(refused).code, desk.roster.status().waiting), (Some(Code::Overloaded), 2));
    desk.at(100);
    assert!(held.iter().all(|caller| desk.is_told(*caller)));
    let again = desk.enter("i", None, 1, TEXTS[1]);
    desk.settle();
    assert_ne!(desk.told(again).code, Some(Code::Overloaded));
    let mut desk = Desk::new(&engine(COMPARES), |policy| Policy { most_bytes: 10_000, ..policy });
    let huge = desk.enter("g", None, 2, &"x".repeat(20_000));
    assert_eq!(desk.told(huge).code, Some(Code::Overloaded));
    assert_eq!((desk.roster.status().bytes, desk.roster.status().open), (0, 0));
}

#[test]
fn nobody_is_left_waiting_when_the_join_is_closed() {
    let mut desk = Desk::new(&engine(COMPARES), |policy| policy);
    let scored: Vec<u32> = TEXTS.iter().take(2).map(|text| desk.enter("g", None, 2, text)).collect();
    let waiting = desk.enter("h", Some("a"), 2, TEXTS[0]);
    let echo = desk.enter("h", Some("a"), 2, TEXTS[0]);
    let effects = desk.roster.shut(desk.now);
    desk.take(effects);
    assert_eq!(desk.codes(&[waiting, echo]), [Some(Code::GroupClosed); 2]);
    desk.settle();
    assert_eq!(desk.codes(&scored), [None; 2], "what is being scored is still answered");
    let after = desk.enter("i", None, 2, TEXTS[0]);
    assert_eq!(desk.told(after).code, Some(Code::GroupClosed));
    assert_eq!((desk.roster.status().waiting, desk.roster.next_due()), (0, None));
}

#[test]
fn where_nothing_is_compared_nobody_waits_but_who_has_no_number() {
    let mut desk = Desk::new(&engine(ALONE), |policy| policy);
    let one = desk.enter("g", Some("a"), 3, "it is 4");
    desk.settle();
    let told = desk.told(one);
    assert_eq!((told.total, told.facts, told.waited), (Some(0.0), (1, false, false, false), Duration::ZERO));
    desk.at(2);
    // Without a reference, the number cannot be compared, and the recipe requires that it can.
    let bare = [desk.enter("g", Some("b"), 3, "nothing"), desk.enter("g", Some("b"), 3, "nothing")];
    desk.settle();
    let third = desk.enter("g", Some("b"), 3, "nothing");
    assert!(
        ![bare[0], bare[1], third].iter().any(|caller| desk.is_told(*caller)),
        "they wait for their siblings"
    );
    let again = desk.enter("g", Some("a"), 3, "it is 4");
    assert_eq!((desk.told(again).total, desk.told(again).facts.3), (Some(0.0), true));
    desk.at(5);
    let three = desk.enter("g", Some("c"), 3, "x 4");
    desk.settle();
    assert_eq!((desk.told(three).total, desk.told(three).facts.0), (Some(-1.0), 3));
    for (caller, duplicate) in [(bare[0], false), (bare[1], true), (third, true)] {
        let told = desk.told(caller);
        assert_eq!((told.code, told.waited), (Some(Code::MissingReference), seconds(3)));
        assert_eq!((told.facts, &told.others), ((3, false, false, duplicate), &vec![Some(0.0), Some(-1.0)]));
    }
    assert_eq!(desk.counted, [3], "groups are counted all the same");
    let late = desk.enter("g", Some("d"), 3, "4444");
    desk.settle();
    assert_eq!((desk.told(late).total, desk.told(late).facts), (Some(0.0), (4, false, true, false)));
    // A group that is never complete is counted when its time is over.
    desk.enter("h", None, 2, "4");
    desk.settle();
    desk.at(105);
    assert_eq!((desk.counted.as_slice(), desk.roster.status().partial), ([3, 1].as_slice(), 1));
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
