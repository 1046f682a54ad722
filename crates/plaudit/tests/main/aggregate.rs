//! Do the five ways from comparisons to scores agree with RM-Gallery where it is fair, and keep their promises on any
//! comparisons?

use crate::golden::{differences, golden, lines, same};
use plaudit::aggregate::elo::{Elo, in_order};
use plaudit::aggregate::{Aggregated, Comparison, Evidence, Method, aggregate};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

fn comparisons(vector: &Value) -> (usize, Vec<Comparison>) {
    let index = |value: &Value| value.as_u64().map(|index| index as usize);
    let comparison = |triple: &Value| Comparison {
        first: index(&triple[0]).unwrap(),
        second: index(&triple[1]).unwrap(),
        winner: index(&triple[2]),
    };
    let all = vector["comparisons"].as_array().unwrap().iter().map(comparison).collect();
    (index(&vector["n"]).unwrap(), all)
}

fn elo(vector: &Value) -> Elo {
    let known = |(name, _): &(&String, &Value)| name.starts_with("elo_");
    let params = vector["params"].as_object().unwrap().iter().filter(known);
    serde_json::from_value(Value::Object(params.map(|(k, v)| (k.clone(), v.clone())).collect())).unwrap()
}

/// Whether numbers, or lists of them, agree.
fn agree(ours: &Value, theirs: &Value) -> bool {
    match (ours.as_array(), theirs.as_array()) {
        (Some(ours), Some(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| agree(ours, theirs))
        }
        _ => same(ours, theirs),
    }
}

/// What differs from the vector, of the scores and of the evidence under the same names.
fn unlike(vector: &Value, ours: &Aggregated) -> Vec<String> {
    let mut said = json!(ours.info);
    said["scores"] = json!(ours.scores);
    let expected = vector["expected"].as_object().unwrap().iter();
    expected
        .filter(|(name, _)| !["n_responses", "pairwise_mode"].contains(&name.as_str()))
        .filter(|(name, theirs)| !agree(&said[name.as_str()], theirs))
        .map(|(name, theirs)| {
            format!("{} {name}: ours {}, theirs {theirs}", vector["id"], said[name.as_str()])
        })
        .collect()
}

#[test]
fn winrate_copeland_and_elo_agree_with_their_vectors() {
    let mut wrong = Vec::new();
    for name in ["winrate", "copeland", "elo"] {
        for vector in lines(&format!("pairwise_{name}.jsonl")) {
            let (n, comparisons) = comparisons(&vector);
            let ours = aggregate(&Method::named(name, Map::new()).unwrap(), n, &comparisons).unwrap();
            wrong.extend(unlike(&vector, &ours));
        }
    }
    for vector in lines("pairwise_elo_params.jsonl") {
        let (n, comparisons) = comparisons(&vector);
        wrong.extend(unlike(&vector, &in_order(&elo(&vector), n, &comparisons).unwrap()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn dgr_agrees_where_the_best_orders_agree_and_differs_on_purpose_elsewhere() {
    let differences = differences();
    let readme = std::fs::read_to_string(golden().join("README.md")).unwrap();
    let (mut wrong, mut used) = (Vec::new(), 0);
    for vector in lines("pairwise_dgr.jsonl") {
        let id = vector["id"].as_str().unwrap();
        let (n, comparisons) = comparisons(&vector);
        let ours = aggregate(&Method::Dgr, n, &comparisons).unwrap();
        let Evidence::Dgr(info) = &ours.info else { panic!("of another method") };
        let tied = comparisons.iter().any(|comparison| comparison.winner.is_none());
        let agrees = agree(&json!(ours.scores), &vector["expected"]["scores"]);
        if !tied && info.settled {
            wrong.extend(unlike(&vector, &ours));
        }
        let why = if tied { "dgr-ties" } else { "dgr-several-orders" };
        assert!(readme.contains(&format!("| {why} |")), "{why} is not explained in golden/README.md");
        let listed = json!({"id": id, "ours": ours.scores, "why": why});
        match differences.get(id) {
            None if agrees => {}
            None => wrong.push(format!("not listed in golden/differences.jsonl: {listed}")),
            Some(_) if agrees => wrong.push(format!("{id}: listed as a difference, but agrees")),
            Some(difference) => {
                used += 1;
                if difference["why"] != why || !agree(&listed["ours"], &difference["ours"]) {
                    wrong.push(format!("ours {listed}, listed {difference}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(used, differences.keys().filter(|id| id.starts_with("pairwise_")).count());
}

/// The scores by the definition: net wins over the kept verdicts, as a mean over all best orders, one after the other.
fn dgr_by_enumeration(n: usize, comparisons: &[Comparison]) -> Vec<f64> {
    let decided: Vec<(usize, usize)> = comparisons.iter().filter_map(Comparison::decided).collect();
    let (mut fewest, mut net) = (usize::MAX, vec![0.0_f64; n]);
    let mut order: Vec<usize> = (0..n).collect();
    permutations(&mut order, 0, &mut |place| {
        let kept: Vec<_> = decided.iter().filter(|(winner, loser)| place[*winner] < place[*loser]).collect();
        let removed = decided.len() - kept.len();
        if removed < fewest {
            (fewest, net) = (removed, vec![0.0; n]);
        }
        if removed == fewest {
            for (winner, loser) in kept {
                net[*winner] += 1.0;
                net[*loser] -= 1.0;
            }
        }
    });
    let largest = net.iter().fold(0.0_f64, |largest, net| largest.max(net.abs())).max(1.0);
    net.iter().map(|net| net / largest).collect()
}

fn permutations(order: &mut [usize], from: usize, see: &mut impl FnMut(&[usize])) {
    if from == order.len() {
        return see(order);
    }
    for at in from..order.len() {
        order.swap(from, at);
        permutations(order, from + 1, see);
        order.swap(from, at);
    }
}

fn methods() -> Vec<Method> {
    Method::NAMES.iter().map(|name| Method::named(name, Map::new()).unwrap()).collect()
}

fn close(ours: &[f64], theirs: &[f64]) -> bool {
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| (a - b).abs() < 1e-7)
}

fn some_comparisons(largest: usize) -> impl Strategy<Value = (usize, Vec<Comparison>)> {
    (2..=largest).prop_flat_map(|n| {
        let comparison = (0..n, 1..n, 0..3_u8).prop_map(move |(first, step, verdict)| {
            let second = (first + step) % n;
            Comparison { first, second, winner: [Some(first), Some(second), None][usize::from(verdict)] }
        });
        // A ring of verdicts names every response, because one of which nothing is known has no score.
        let ring = prop::collection::vec(0..3_u8, n).prop_map(move |verdicts| {
            let verdict = |(first, verdict): (usize, u8)| {
                let second = (first + 1) % n;
                Comparison { first, second, winner: [Some(first), Some(second), None][usize::from(verdict)] }
            };
            verdicts.into_iter().enumerate().map(verdict).collect::<Vec<_>>()
        });
        (
            Just(n),
            (ring, prop::collection::vec(comparison, 0..40)).prop_map(|(ring, more)| [ring, more].concat()),
        )
    })
}

#[test]
fn a_response_of_which_nothing_is_known_has_no_score() {
    let comparisons = [Comparison { first: 0, second: 2, winner: Some(2) }];
    for method in methods() {
        let error = aggregate(&method, 3, &comparisons).unwrap_err();
        assert_eq!(error.code(), "aggregate.never_compared");
        assert!(error.to_string().starts_with("response 1 "));
        assert_eq!(aggregate(&method, 2, &[]).unwrap_err().code(), "aggregate.never_compared");
    }
}

fn swapped(comparison: &Comparison) -> Comparison {
    Comparison { winner: comparison.decided().map(|(_, loser)| loser), ..*comparison }
}

proptest! {
    #[test]
    fn scores_are_finite_bounded_and_free_of_the_order(
        ((n, comparisons), shuffled) in some_comparisons(8)
            .prop_flat_map(|(n, all)| (Just((n, all.clone())), Just(all).prop_shuffle())),
    ) {
        for method in methods() {
            let ours = aggregate(&method, n, &comparisons).unwrap();
            prop_assert_eq!(ours.scores.len(), n);
            prop_assert!(ours.scores.iter().all(|score| (-1.0..=1.0).contains(score)), "{ours:?}");
            let errors = ours.errors.iter().flatten();
            prop_assert!(errors.copied().all(|error| error.is_finite() && error >= 0.0));
            prop_assert_eq!(ours, aggregate(&method, n, &shuffled).unwrap());
        }
    }

    #[test]
    fn a_new_numbering_changes_nothing_else(
        ((n, comparisons), names) in some_comparisons(8)
            .prop_flat_map(|(n, all)| (Just((n, all)), Just((0..n).collect::<Vec<_>>()).prop_shuffle())),
    ) {
        let renamed: Vec<Comparison> = comparisons
            .iter()
            .map(|Comparison { first, second, winner }| Comparison {
                first: names[*first],
                second: names[*second],
                winner: winner.map(|winner| names[winner]),
            })
            .collect();
        // Elo is left out: its games are played one after the other, and the numbering decides in which order.
        for method in methods().into_iter().filter(|method| !matches!(method, Method::Elo(_))) {
            let before = aggregate(&method, n, &comparisons).unwrap().scores;
            let after = aggregate(&method, n, &renamed).unwrap().scores;
            let after: Vec<f64> = names.iter().map(|name| after[*name]).collect();
            prop_assert!(close(&before, &after), "{method:?}: {before:?} {after:?}");
        }
    }

    #[test]
    fn swapping_every_winner_negates_the_scores((n, comparisons) in some_comparisons(8)) {
        // Elo is left out: which of two verdicts on the same pair comes first depends on the winner.
        for method in methods().into_iter().filter(|method| !matches!(method, Method::Elo(_))) {
            let mut comparisons = comparisons.clone();
            if method == Method::Winrate {
                // A tie counts as not won by either, so that swapping the winners does not mirror the rates.
                let decide = |comparison: &mut Comparison| comparison.winner = comparison.winner.or(Some(comparison.first));
                comparisons.iter_mut().for_each(decide);
            }
            let before = aggregate(&method, n, &comparisons).unwrap().scores;
            let other: Vec<Comparison> = comparisons.iter().map(swapped).collect();
            let after = aggregate(&method, n, &other).unwrap().scores;
            let after: Vec<f64> = after.iter().map(|score| -score).collect();
            prop_assert!(close(&before, &after), "{method:?}: {before:?} {after:?}");
        }
    }

    #[test]
    fn nothing_but_ties_gives_zeros((n, comparisons) in some_comparisons(8)) {
        let ties: Vec<Comparison> =
            comparisons.iter().map(|comparison| Comparison { winner: None, ..*comparison }).collect();
        for method in methods() {
            prop_assert_eq!(aggregate(&method, n, &ties).unwrap().scores, vec![0.0; n]);
        }
    }

    #[test]
    fn dgr_is_its_definition((n, comparisons) in some_comparisons(6)) {
        let ours = aggregate(&Method::Dgr, n, &comparisons).unwrap().scores;
        prop_assert!(close(&ours, &dgr_by_enumeration(n, &comparisons)));
    }

    #[test]
    fn any_comparisons_are_aggregated_or_refused(
        n in 0..80_usize,
        raw in prop::collection::vec((0..90_usize, 0..90_usize, prop::option::of(0..90_usize)), 0..6),
    ) {
        let comparison = |(first, second, winner)| Comparison { first, second, winner };
        let comparisons: Vec<Comparison> = raw.into_iter().map(comparison).collect();
        for method in methods() {
            match aggregate(&method, n, &comparisons) {
                Ok(ours) => prop_assert_eq!(ours.scores.len(), n),
                Err(error) => prop_assert!(error.to_string().contains(error.code()), "{error}"),
            }
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let code = |n, first, second, winner| {
        let comparisons = [Comparison { first, second, winner }];
        aggregate(&Method::Copeland, n, &comparisons).map_err(|error| error.code())
    };
    assert_eq!(code(2, 0, 2, None).unwrap_err(), "aggregate.no_such_response");
    assert_eq!(code(2, 1, 1, None).unwrap_err(), "aggregate.with_itself");
    assert_eq!(code(3, 0, 1, Some(2)).unwrap_err(), "aggregate.strange_winner");
    for (method, n) in [(Method::Dgr, 17), (Method::default(), 65)] {
        assert_eq!(aggregate(&method, n, &[]).unwrap_err().code(), "aggregate.too_many");
    }
    let named = |name, parameters: Value| Method::named(name, parameters.as_object().unwrap().clone());
    assert!(named("median", json!({})).unwrap_err().to_string().contains("winrate, copeland"));
    assert!(named("dgr", json!({"k": 1})).unwrap_err().to_string().contains("\"k\""));
    assert!(named("elo", json!({"k": 1})).is_err());
    assert!(named("elo", json!({"elo_k_factor": -1.0})).unwrap_err().to_string().starts_with("elo_k_factor"));
    assert!(named("bradley_terry", json!({"signal_gate": 0.3})).is_ok());
}

#[test]
fn groups_of_none_and_of_one_have_nothing_to_compare() {
    for method in methods() {
        assert!(aggregate(&method, 0, &[]).unwrap().scores.is_empty());
        assert_eq!(aggregate(&method, 1, &[]).unwrap().scores, [0.0]);
    }
}

#[test]
fn ten_responses_take_dgr_less_than_five_milliseconds() {
    let pairs = (0..10).flat_map(|first| (first + 1..10).map(move |second| (first, second)));
    let comparisons: Vec<Comparison> = pairs
        .map(|(first, second)| {
            let winner = if (first * 7 + second * 3) % 5 < 2 { second } else { first };
            Comparison { first, second, winner: Some(winner) }
        })
        .collect();
    let limit = Duration::from_millis(if cfg!(debug_assertions) { 50 } else { 5 });
    let start = Instant::now();
    aggregate(&Method::Dgr, 10, &comparisons).unwrap();
    assert!(start.elapsed() < limit, "{:?}", start.elapsed());
}
