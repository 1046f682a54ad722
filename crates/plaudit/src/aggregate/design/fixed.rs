//! Round-robin and sparse designs: rings of pairs that treat all responses alike, and balanced line-ups.

use super::{DesignRng, Sides};

/// So many different pairs, at most all of them: every prefix names as many responses as it can, is connected as soon as
/// it can be, and shows every response first about as often as second.
///
/// The responses stand in a circle in an order that the seed draws, and meet those at a fixed distance, whom they are
/// shown before. Each distance gives everybody one game on each side.
pub(super) fn pairs(n: usize, count: usize, seed: u64) -> Vec<Vec<usize>> {
    let names = DesignRng::new(seed, 0).order(n);
    let mut pairs = Vec::with_capacity(count.min(n * n));
    let mut distances: Vec<usize> = (1..=n / 2).collect();
    // How firmly each wave along the circle is held by the distances so far.
    let mut stiffness = vec![0.0; n];
    // Where all pairs of a large group are asked, the best order of the distances would take longer than it is worth.
    let in_turn = n > super::MAX_ADAPTED && count >= n * (n - 1) / 2;
    while pairs.len() < count && !distances.is_empty() {
        let missing = count - pairs.len();
        let at = if in_turn { 0 } else { nearest(n, &distances, &stiffness, missing) };
        let distance = distances.remove(at);
        if !in_turn {
            for (wave, held) in stiffness.iter_mut().enumerate() {
                *held += hold(n, distance, wave);
            }
        }
        let games = ring(n, distance).into_iter().take(missing);
        pairs.extend(games.map(|[first, second]| vec![names[first], names[second]]));
    }
    pairs
}

/// How firmly a ring of games at a distance holds the two sides of a wave along the circle together.
fn hold(n: usize, distance: usize, wave: usize) -> f64 {
    1.0 - (std::f64::consts::TAU * (wave * distance % n) as f64 / n as f64).cos()
}

/// The next distance: neighbours first, which connects everybody; opposite ones where half a ring is all that is left;
/// else the one that makes the strengths surest on the whole (the sum of inverse eigenvalues of the graph).
fn nearest(n: usize, distances: &[usize], stiffness: &[f64], missing: usize) -> usize {
    if distances.len() == n / 2 {
        return 0;
    }
    let last = distances.len() - 1;
    let opposite = n.is_multiple_of(2) && distances[last] == n / 2;
    if opposite && missing <= n / 2 {
        return last;
    }
    let loose = |distance: usize| -> f64 {
        (1..n).map(|wave| 1.0 / (stiffness[wave] + hold(n, distance, wave)).max(1e-9)).sum()
    };
    let whole = if opposite && last > 0 { &distances[..last] } else { distances };
    let best = (0..whole.len()).min_by(|a, b| loose(whole[*a]).total_cmp(&loose(whole[*b])));
    best.unwrap_or(last)
}

/// Every pair at a distance, such that each half of the list names everybody once, or all but a few.
fn ring(n: usize, distance: usize) -> Vec<[usize; 2]> {
    if 2 * distance == n {
        // Alternating sides, because everybody has one game only.
        let sided =
            |low: usize| if low.is_multiple_of(2) { [low, low + distance] } else { [low + distance, low] };
        return (0..distance).map(sided).collect();
    }
    let (mut early, mut late) = (Vec::new(), Vec::new());
    let mut seen = vec![false; n];
    for start in 0..n {
        let (mut at, mut step) = (start, 0_usize);
        while !seen[at] {
            seen[at] = true;
            let next = (at + distance) % n;
            let closes = next == start;
            match (step % 2, closes) {
                // The one whom an odd circle leaves over comes first in the second half.
                (0, true) => late.insert(0, [at, next]),
                (0, false) => early.push([at, next]),
                _ => late.push([at, next]),
            }
            (at, step) = (next, step + 1);
        }
    }
    early.extend(late);
    early
}

/// So many line-ups, at most as many as it takes until every two responses have met. Each round shows everybody once as
/// far as the numbers allow, and the slots are balanced.
pub(super) fn cover(n: usize, shown: usize, count: usize, seed: u64) -> Vec<Vec<usize>> {
    let names = DesignRng::new(seed, 0).order(n);
    let mut met = vec![vec![false; n]; n];
    let (mut seen, mut sides) = (vec![0_usize; n], Sides(vec![0.0; n]));
    let mut calls = Vec::new();
    while calls.len() < count {
        let alone = |one: &usize| (0..n).any(|two| two != *one && !met[*one][two]);
        let Some(start) = names.iter().copied().filter(alone).min_by_key(|one| seen[*one]) else { break };
        let mut call = vec![start];
        // How many of the call each response has met.
        let mut known: Vec<usize> = met[start].iter().map(|met| usize::from(*met)).collect();
        while call.len() < shown {
            let others = names.iter().copied().filter(|one| !call.contains(one));
            let Some(next) = others.min_by_key(|one| (known[*one], seen[*one])) else { break };
            call.push(next);
            known.iter_mut().zip(&met[next]).for_each(|(known, met)| *known += usize::from(*met));
        }
        for &one in &call {
            seen[one] += 1;
            call.iter().for_each(|two| met[one][*two] = true);
        }
        sides.arrange(&mut call);
        calls.push(call);
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each response is named, and the set of pairs without sides.
    fn counted(n: usize, calls: &[Vec<usize>]) -> (Vec<usize>, Vec<[usize; 2]>) {
        let mut games = vec![0; n];
        calls.iter().flatten().for_each(|response| games[*response] += 1);
        let mut pairs: Vec<[usize; 2]> =
            calls.iter().map(|call| [call[0].min(call[1]), call[0].max(call[1])]).collect();
        pairs.sort_unstable();
        (games, pairs)
    }

    #[test]
    fn any_number_of_pairs_is_even_and_balanced() {
        for n in 2..=17 {
            let all = n * (n - 1) / 2;
            for count in 1..=all {
                let calls = pairs(n, count, 7);
                let (games, mut unique) = counted(n, &calls);
                assert_eq!(calls.len(), count);
                unique.dedup();
                assert_eq!(unique.len(), count, "{n} {count}: a pair twice");
                let (least, most) = (games.iter().min().unwrap(), games.iter().max().unwrap());
                assert!(most - least <= 2, "{n} {count}: {games:?}");
                for (response, games) in games.iter().enumerate() {
                    let first = calls.iter().filter(|call| call[0] == response).count();
                    assert!((2 * first).abs_diff(*games) <= 2, "{n} {count}: {response}");
                }
            }
        }
    }

    #[test]
    fn line_ups_bring_everybody_together() {
        for (n, shown) in [(3, 3), (5, 3), (16, 4), (16, 5), (20, 9), (21, 20), (64, 4)] {
            let calls = cover(n, shown, usize::MAX, 3);
            let together =
                |one: usize, two: usize| calls.iter().any(|call| call.contains(&one) && call.contains(&two));
            assert!((0..n).all(|one| (0..one).all(|two| together(one, two))));
            assert!(calls.iter().all(|call| call.len() == shown));
            let least = n * (n - 1) / (shown * (shown - 1));
            assert!(calls.len() <= 2 * least + 2, "{n} {shown}: {} calls", calls.len());
            let round: Vec<usize> = calls.iter().take(n / shown).flatten().copied().collect();
            assert!((0..n).all(|one| round.iter().filter(|other| **other == one).count() <= 1));
        }
    }
}
