//! Aggregators (comparisons to scores): agreement with RM-Gallery where it is fair, and properties on any comparisons.

use crate::golden::{differences, golden, lines, same};
use crate::timing::cpu_time;
use plaudit::aggregate::copeland::Copeland;
use plaudit::aggregate::dgr::Dgr;
use plaudit::aggregate::elo::{Elo, in_order};
use plaudit::aggregate::winrate::Winrate;
use plaudit::aggregate::{
    Aggregated, Comparison, Evidence, Method, MethodInfo, Ranking, Weighed, aggregate, estimate,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::time::Duration;

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
fn unlike(vector: &Value, ours: &Aggregated<impl serde::Serialize>) -> Vec<String> {
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
fn dgr_agrees_with_rm_gallery_or_differs_on_purpose() {
    let differences = differences();
    let readme = std::fs::read_to_string(golden().join("README.md")).unwrap();
    let (mut wrong, mut used) = (Vec::new(), 0);
    for vector in lines("pairwise_dgr.jsonl") {
        let id = vector["id"].as_str().unwrap();
        let (n, comparisons) = comparisons(&vector);
        let ours = aggregate(&Method::Dgr(Dgr {}), n, &comparisons).unwrap();
        let MethodInfo::Dgr(info) = &ours.info else { panic!("of another method") };
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

/// A group with evidence of every kind.
fn some_evidence() -> impl Strategy<Value = (usize, Evidence)> {
    some_comparisons(7).prop_flat_map(|(n, all)| {
        let chances = prop::collection::vec(prop_oneof![Just(0.0), Just(1.0), 0.0..1.0_f64], all.len() / 2);
        let ranked = (
            Just((0..n).collect::<Vec<_>>()).prop_shuffle(),
            Just((0..n).collect::<Vec<_>>()).prop_shuffle(),
        );
        let line_up = (ranked, 2..=n).prop_map(|((shown, order), size)| {
            let shown = shown[..size].to_vec();
            let order = order.into_iter().filter(|response| shown.contains(response)).collect();
            Ranking { shown, order }
        });
        let prior = prop::option::of(prop::collection::vec(-5.0..5.0_f64, n));
        (Just((n, all)), chances, prop::collection::vec(line_up, 0..5), prior).prop_map(
            |((n, mut comparisons), chances, rankings, prior)| {
                let soft = comparisons.split_off(comparisons.len() - chances.len());
                let weigh = |(comparison, first)| Weighed { comparison, first };
                let weighed = soft.into_iter().zip(chances).map(weigh).collect();
                (n, Evidence { comparisons, weighed, rankings, prior })
            },
        )
    })
}

/// The same evidence, in another order and under other numbers.
fn renamed(observed: &Evidence, names: &[usize]) -> Evidence {
    let pair = |&Comparison { first, second, winner }: &Comparison| Comparison {
        first: names[first],
        second: names[second],
        winner: winner.map(|winner| names[winner]),
    };
    let all = |responses: &[usize]| responses.iter().map(|response| names[*response]).collect();
    let mut prior = observed.prior.clone();
    for (at, name) in names.iter().enumerate() {
        if let (Some(new), Some(old)) = (&mut prior, &observed.prior) {
            new[*name] = old[at];
        }
    }
    Evidence {
        comparisons: observed.comparisons.iter().rev().map(pair).collect(),
        weighed: observed
            .weighed
            .iter()
            .rev()
            .map(|w| Weighed { comparison: pair(&w.comparison), ..*w })
            .collect(),
        rankings: observed
            .rankings
            .iter()
            .rev()
            .map(|line_up| Ranking { shown: all(&line_up.shown), order: all(&line_up.order) })
            .collect(),
        prior,
    }
}

#[test]
fn a_ranking_of_all_is_recovered() {
    let order: Vec<usize> = vec![3, 0, 4, 1, 2];
    let observed = Evidence {
        rankings: vec![Ranking { shown: (0..5).collect(), order: order.clone() }],
        ..Evidence::default()
    };
    let copeland = estimate(&Method::Copeland(Copeland {}), 5, &observed).unwrap().scores;
    let ours = estimate(&Method::default(), 5, &observed).unwrap().scores;
    for (rank, response) in order.iter().enumerate() {
        assert_eq!(copeland[*response], 1.0 - rank as f64 / 2.0);
    }
    assert!(order.windows(2).all(|two| ours[two[0]] > ours[two[1]]), "{ours:?}");
}

#[test]
fn the_surer_the_judge_the_larger_the_difference() {
    let lead = |first: f64| {
        let comparison = Comparison { first: 0, second: 1, winner: Some(0) };
        let back = Comparison { first: 1, second: 0, winner: Some(0) };
        let weighed = vec![Weighed { comparison, first }, Weighed { comparison: back, first: 1.0 - first }];
        let observed = Evidence { weighed, ..Evidence::default() };
        let scores = estimate(&Method::default(), 2, &observed).unwrap().scores;
        scores[0] - scores[1]
    };
    assert_eq!(lead(0.5), 0.0);
    assert!(0.0 < lead(0.6) && lead(0.6) < lead(0.8) && lead(0.8) < lead(0.97));
    assert!(lead(0.97) < lead(1.0) && lead(1.0) < 1.0 && lead(0.2) < 0.0);
}

#[test]
fn prior_reward_decides_when_verdicts_are_few() {
    let tie = |first, second| Comparison { first, second, winner: None };
    let scores = |comparisons: Vec<Comparison>| {
        let prior = Some(vec![-1.0, 0.0, 1.0]);
        estimate(&Method::default(), 3, &Evidence { comparisons, prior, ..Evidence::default() })
            .unwrap()
            .scores
    };
    let few = scores(vec![tie(0, 1), tie(1, 2)]);
    assert!(few[0] < few[1] && few[1] < few[2], "{few:?}");
    let win = |first, second, winner| Comparison { first, second, winner: Some(winner) };
    let against = scores([win(0, 2, 0), win(2, 0, 0), win(0, 1, 0), win(1, 2, 1)].repeat(3));
    assert!(against[0] > against[1] && against[1] > against[2], "{against:?}");
}

#[test]
fn strange_evidence_is_refused_by_name() {
    let comparison = Comparison { first: 0, second: 1, winner: Some(0) };
    let good = Evidence { comparisons: vec![comparison], ..Evidence::default() };
    let line_up = |shown: &[usize], order: &[usize]| Ranking { shown: shown.to_vec(), order: order.to_vec() };
    let with = |weighed: Vec<Weighed>, rankings: Vec<Ranking>, prior: Option<Vec<f64>>| Evidence {
        comparisons: vec![comparison],
        weighed,
        rankings,
        prior,
    };
    let strange = Comparison { first: 0, second: 2, winner: None };
    let cases = [
        (with(vec![Weighed { comparison, first: f64::NAN }], vec![], None), "aggregate.strange_probability"),
        (with(vec![Weighed { comparison, first: 1.5 }], vec![], None), "aggregate.strange_probability"),
        (with(vec![Weighed { comparison: strange, first: 0.5 }], vec![], None), "aggregate.no_such_response"),
        (with(vec![], vec![line_up(&[0, 1, 2], &[0, 1, 2])], None), "aggregate.strange_line_up"),
        (with(vec![], vec![line_up(&[0, 0], &[0, 0])], None), "aggregate.strange_line_up"),
        (with(vec![], vec![line_up(&[0, 1], &[0])], None), "aggregate.strange_line_up"),
        (with(vec![], vec![], Some(vec![1.0])), "aggregate.strange_prior"),
        (with(vec![], vec![], Some(vec![1.0, f64::INFINITY])), "aggregate.strange_prior"),
    ];
    for method in methods() {
        assert!(estimate(&method, 2, &good).is_ok());
        for (observed, code) in &cases {
            let error = estimate(&method, 2, observed).unwrap_err();
            assert_eq!(error.code(), *code, "{error}");
            assert!(error.to_string().ends_with(&format!("({code})")));
        }
        let only = Evidence { prior: Some(vec![1.0, 2.0]), ..Evidence::default() };
        assert_eq!(estimate(&method, 2, &only).unwrap_err().code(), "aggregate.never_compared");
    }
}

proptest! {
    #[test]
    fn evidence_of_every_kind_is_free_of_order_and_numbering(
        ((n, observed), names) in some_evidence()
            .prop_flat_map(|(n, all)| (Just((n, all)), Just((0..n).collect::<Vec<_>>()).prop_shuffle())),
    ) {
        let same: Vec<usize> = (0..n).collect();
        for method in methods() {
            let before = estimate(&method, n, &observed).unwrap();
            prop_assert!(before.scores.iter().all(|score| (-1.0..=1.0).contains(score)), "{before:?}");
            prop_assert_eq!(&before, &estimate(&method, n, &renamed(&observed, &same)).unwrap());
            if matches!(method, Method::Elo(_)) {
                continue;
            }
            let after = estimate(&method, n, &renamed(&observed, &names)).unwrap().scores;
            for (at, name) in names.iter().enumerate() {
                prop_assert!((before.scores[at] - after[*name]).abs() < 1e-9, "{method:?}");
            }
        }
    }

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
            if method == Method::Winrate(Winrate {}) {
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
        let ours = aggregate(&Method::Dgr(Dgr {}), n, &comparisons).unwrap().scores;
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
        aggregate(&Method::Copeland(Copeland {}), n, &comparisons).map_err(|error| error.code())
    };
    assert_eq!(code(2, 0, 2, None).unwrap_err(), "aggregate.no_such_response");
    assert_eq!(code(2, 1, 1, None).unwrap_err(), "aggregate.with_itself");
    assert_eq!(code(3, 0, 1, Some(2)).unwrap_err(), "aggregate.strange_winner");
    for (method, n) in [(Method::Dgr(Dgr {}), 17), (Method::default(), 1025)] {
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
    let start = cpu_time();
    aggregate(&Method::Dgr(Dgr {}), 10, &comparisons).unwrap();
    let took = cpu_time() - start;
    assert!(took < limit, "{took:?}");
}
