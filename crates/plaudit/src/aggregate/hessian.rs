//! Curvature (Hessian) of a group's posterior: dense with a Cholesky decomposition, or sparse by pairs for a large group,
//! where every step takes time in proportion to the comparisons.
//!
//! By pairs, linear systems are solved by conjugate gradients. Variances and the determinant come from Gaussian belief
//! propagation (Weiss and Freeman, 2001) and its Bethe free energy, which are exact for comparisons without cycles and
//! close for groups of this size. The curvature of the strengths is a weighted graph Laplacian plus the precision of the
//! prior, which is diagonally dominant, so that the propagation converges (Malioutov, Johnson and Willsky, 2006).

use super::cholesky::Cholesky;
use std::cell::OnceCell;
use std::sync::Arc;

/// Up to so many responses the curvature is decomposed as a whole.
pub(super) const DENSE: usize = 128;

/// The unknowns beside the strengths: the bias towards what is shown first, and the tie term.
const OTHERS: usize = 2;

/// Which strengths are coupled: for each one, the others in order.
pub(super) struct HessianPattern {
    starts: Vec<usize>,
    others: Vec<usize>,
    /// For each coupling, the place of the same one seen from the other side.
    mirrored: Vec<usize>,
}

impl HessianPattern {
    /// Of the pairs among `n` responses, in any order and as often as they come.
    pub(super) fn new(n: usize, pairs: impl Iterator<Item = (usize, usize)>) -> Self {
        let mut both: Vec<(usize, usize)> = pairs.flat_map(|(one, two)| [(one, two), (two, one)]).collect();
        both.sort_unstable();
        both.dedup();
        let mut starts = vec![0; n + 1];
        both.iter().for_each(|(one, _)| starts[one + 1] += 1);
        (0..n).for_each(|at| starts[at + 1] += starts[at]);
        let others = both.iter().map(|(_, two)| *two).collect();
        let mut pattern = Self { starts, others, mirrored: Vec::new() };
        pattern.mirrored = both.iter().filter_map(|(one, two)| pattern.place(*two, *one)).collect();
        pattern
    }

    fn place(&self, row: usize, column: usize) -> Option<usize> {
        let (from, to) = (self.starts[row], self.starts[row + 1]);
        self.others[from..to].binary_search(&column).ok().map(|at| from + at)
    }
}

/// A symmetric matrix that is being added up, of which the lower triangle counts.
pub(super) enum Matrix {
    /// All entries, by rows.
    Whole {
        /// How many rows there are.
        size: usize,
        /// The entries.
        entries: Vec<f64>,
    },
    /// Only what the pattern couples.
    Pairs(Pairs),
}

impl Matrix {
    /// A matrix with nothing but a diagonal.
    pub(super) fn diagonal(diagonal: &[f64], pattern: Option<&Arc<HessianPattern>>) -> Self {
        let size = diagonal.len();
        if let Some(pattern) = pattern {
            return Self::Pairs(Pairs::new(diagonal, pattern));
        }
        let mut entries = vec![0.0; size * size];
        for (at, entry) in diagonal.iter().enumerate() {
            entries[at * size + at] = *entry;
        }
        Self::Whole { size, entries }
    }

    /// Adds to an entry.
    pub(super) fn add(&mut self, row: usize, column: usize, value: f64) {
        match self {
            Self::Whole { size, entries } => entries[row * *size + column] += value,
            Self::Pairs(pairs) => pairs.add(row, column, value),
        }
    }
}

/// A positive definite curvature, ready to be solved.
pub(super) enum Curvature {
    /// Decomposed as a whole.
    Whole(Cholesky),
    /// Kept by pairs.
    Pairs(Box<Pairs>),
}

impl Curvature {
    /// None where it is not positive definite.
    pub(super) fn new(matrix: Matrix) -> Option<Self> {
        match matrix {
            Matrix::Whole { size, entries } => Cholesky::new(size, entries).map(Self::Whole),
            Matrix::Pairs(pairs) => pairs.is_sound().then(|| Self::Pairs(Box::new(pairs))),
        }
    }

    /// Solves A x = b in place. None where that does not succeed.
    pub(super) fn solve(&self, vector: &mut [f64]) -> Option<()> {
        match self {
            Self::Whole(cholesky) => cholesky.solve(vector),
            Self::Pairs(pairs) => {
                let solved = conjugate(&pairs.whole_diagonal(), vector, |from, to| pairs.times(from, to))?;
                vector.copy_from_slice(&solved);
            }
        }
        Some(())
    }

    /// The logarithm of the determinant.
    pub(super) fn log_determinant(&self) -> f64 {
        match self {
            Self::Whole(cholesky) => cholesky.log_determinant(),
            Self::Pairs(pairs) => pairs.beliefs().log_determinant,
        }
    }
}

/// A symmetric matrix of which the strengths are coupled by pairs, and the other unknowns with everything.
pub(super) struct Pairs {
    pattern: Arc<HessianPattern>,
    diagonal: Vec<f64>,
    /// The entries that the pattern names, each of them twice.
    coupled: Vec<f64>,
    /// The rows of the other unknowns, as far as the strengths.
    border: [Vec<f64>; OTHERS],
    /// Where those rows meet; the lower triangle.
    corner: [[f64; OTHERS]; OTHERS],
    beliefs: OnceCell<Beliefs>,
}

/// What is known of the inverse.
struct Beliefs {
    /// The variance of each strength around the mean of all.
    variances: Vec<f64>,
    log_determinant: f64,
}

/// The most rounds of an iteration; a few dozen are usual.
const ROUNDS: usize = 1000;

impl Pairs {
    fn new(diagonal: &[f64], pattern: &Arc<HessianPattern>) -> Self {
        let n = diagonal.len() - OTHERS;
        let mut corner = [[0.0; OTHERS]; OTHERS];
        for (at, row) in corner.iter_mut().enumerate() {
            row[at] = diagonal[n + at];
        }
        Self {
            diagonal: diagonal[..n].to_vec(),
            coupled: vec![0.0; pattern.others.len()],
            border: [vec![0.0; n], vec![0.0; n]],
            corner,
            pattern: Arc::clone(pattern),
            beliefs: OnceCell::new(),
        }
    }

    /// Entries above the border are its mirror image, and are left out.
    fn add(&mut self, row: usize, column: usize, value: f64) {
        let n = self.diagonal.len();
        match (row.checked_sub(n), column.checked_sub(n)) {
            (None, None) if row == column => self.diagonal[row] += value,
            (None, None) => {
                if let Some(place) = self.pattern.place(row, column) {
                    self.coupled[place] += value;
                }
            }
            (None, Some(_)) => {}
            (Some(other), None) => self.border[other][column] += value,
            (Some(one), Some(two)) => self.corner[one][two] += value,
        }
    }

    fn is_sound(&self) -> bool {
        self.whole_diagonal().iter().all(|entry| *entry > 0.0 && entry.is_finite())
    }

    fn whole_diagonal(&self) -> Vec<f64> {
        let corner = (0..OTHERS).map(|at| self.corner[at][at]);
        self.diagonal.iter().copied().chain(corner).collect()
    }

    /// The couplings of a strength, as places.
    fn row(&self, at: usize) -> std::ops::Range<usize> {
        self.pattern.starts[at]..self.pattern.starts[at + 1]
    }

    /// The product of the strengths alone with a vector.
    fn strengths_times(&self, from: &[f64], to: &mut [f64]) {
        for (at, to) in to.iter_mut().enumerate().take(self.diagonal.len()) {
            let coupled = self.row(at).map(|place| self.coupled[place] * from[self.pattern.others[place]]);
            *to = self.diagonal[at] * from[at] + coupled.sum::<f64>();
        }
    }

    fn times(&self, from: &[f64], to: &mut [f64]) {
        let n = self.diagonal.len();
        self.strengths_times(from, to);
        for (other, border) in self.border.iter().enumerate() {
            to.iter_mut().zip(border).for_each(|(to, entry)| *to += entry * from[n + other]);
            let corner = (0..OTHERS).map(|at| {
                let (low, high) = (at.min(other), at.max(other));
                self.corner[high][low] * from[n + at]
            });
            to[n + other] = dot(border, &from[..n]) + corner.sum::<f64>();
        }
    }

    fn beliefs(&self) -> &Beliefs {
        self.beliefs.get_or_init(|| {
            let (precisions, strengths) = self.propagate();
            let n = self.diagonal.len();
            let none = || vec![0.0; n];
            let strengths_times = |from: &[f64], to: &mut [f64]| self.strengths_times(from, to);
            let solved = self
                .border
                .each_ref()
                .map(|border| conjugate(&self.diagonal, border, strengths_times).unwrap_or_else(none));
            // What is left of the other unknowns once the strengths are taken out: Schur's complement.
            let rest = |one: usize, two: usize| self.corner[one][two] - dot(&self.border[one], &solved[two]);
            let (a, b, c) = (rest(0, 0), rest(1, 0), rest(1, 1));
            let determinant = (a * c - b * b).max(f64::MIN_POSITIVE);
            let centred = solved.map(|solved| {
                let mean = solved.iter().sum::<f64>() / n as f64;
                solved.iter().map(|entry| entry - mean).collect::<Vec<f64>>()
            });
            let variance = |at: usize| {
                let (x, y) = (centred[0][at], centred[1][at]);
                let shared = (c * x * x - 2.0 * b * x * y + a * y * y) / determinant;
                // The propagation does not see that all strengths may move together, nor does their mean.
                (1.0 - 1.0 / n as f64) / precisions[at] + shared.max(0.0)
            };
            Beliefs {
                variances: (0..n).map(variance).collect(),
                log_determinant: strengths + determinant.ln(),
            }
        })
    }

    /// The variance of each strength around the mean of all.
    pub(super) fn variances(&self) -> &[f64] {
        &self.beliefs().variances
    }

    /// The precision of each strength, and the logarithm of the determinant of all of them together.
    fn propagate(&self) -> (Vec<f64>, f64) {
        let n = self.diagonal.len();
        // The messages that each strength gets from those that it is coupled with.
        let mut heard = vec![0.0; self.coupled.len()];
        let mut precisions = self.diagonal.clone();
        for _ in 0..ROUNDS {
            let tell = |place: usize| {
                let without = precisions[self.pattern.others[place]] - heard[self.pattern.mirrored[place]];
                -self.coupled[place].powi(2) / without
            };
            heard = (0..self.coupled.len()).map(tell).collect();
            let mut moved = 0.0_f64;
            for at in 0..n {
                let now = self.diagonal[at] + heard[self.row(at)].iter().sum::<f64>();
                moved = moved.max((now - precisions[at]).abs() / now);
                precisions[at] = now;
            }
            if moved < 1e-9 {
                break;
            }
        }
        let own: f64 = precisions.iter().map(|precision| precision.ln()).sum();
        // Every coupling once, from the side of the larger number.
        let couplings = (0..n).flat_map(|at| self.row(at).map(move |place| (at, place)));
        let shared = couplings
            .filter(|(at, place)| self.pattern.others[*place] < *at)
            .map(|(at, place)| (-heard[place] / precisions[at]).ln_1p());
        let log_determinant = own + shared.sum::<f64>();
        (precisions, log_determinant)
    }
}

fn dot(one: &[f64], two: &[f64]) -> f64 {
    one.iter().zip(two).map(|(one, two)| one * two).sum()
}

/// Solves A x = b by conjugate gradients (Hestenes and Stiefel, 1952), with the diagonal as a preconditioner. None where A
/// is not positive definite.
fn conjugate(diagonal: &[f64], wanted: &[f64], times: impl Fn(&[f64], &mut [f64])) -> Option<Vec<f64>> {
    let size = wanted.len();
    let (mut found, mut left) = (vec![0.0; size], wanted.to_vec());
    let scaled = |left: &[f64]| left.iter().zip(diagonal).map(|(left, own)| left / own).collect::<Vec<f64>>();
    let mut step = scaled(&left);
    let mut length = dot(&left, &step);
    let enough = length * 1e-24;
    let mut product = vec![0.0; size];
    for _ in 0..ROUNDS {
        if length <= enough {
            break;
        }
        times(&step, &mut product);
        let bend = dot(&step, &product);
        if bend.is_nan() || bend <= 0.0 {
            return None;
        }
        let share = length / bend;
        found.iter_mut().zip(&step).for_each(|(found, step)| *found += share * step);
        left.iter_mut().zip(&product).for_each(|(left, product)| *left -= share * product);
        let next = scaled(&left);
        let shorter = dot(&left, &next);
        step.iter_mut().zip(&next).for_each(|(step, next)| *step = next + shorter / length * *step);
        length = shorter;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of strengths with two others, whole and by pairs.
    fn both(n: usize) -> [Curvature; 2] {
        let diagonal: Vec<f64> = (0..n + OTHERS).map(|at| 0.5 + at as f64 / 10.0).collect();
        let pattern = Arc::new(HessianPattern::new(n, (1..n).map(|at| (at - 1, at))));
        [None, Some(&pattern)].map(|pattern| {
            let mut matrix = Matrix::diagonal(&diagonal, pattern);
            for at in 1..n {
                let along = [(at - 1, 1.0), (at, -1.0), (n, 0.3)];
                for (row, one) in along {
                    for (column, two) in along {
                        matrix.add(row, column, one * two * (0.2 + at as f64 / 20.0));
                    }
                }
                matrix.add(n + 1, at, 0.01);
            }
            matrix.add(n + 1, n, 0.05);
            Curvature::new(matrix).expect("positive definite")
        })
    }

    #[test]
    fn a_chain_is_solved_exactly_by_pairs() {
        let [whole, pairs] = both(9);
        assert!((whole.log_determinant() - pairs.log_determinant()).abs() < 1e-9);
        let wanted: Vec<f64> = (0..11).map(|at| (at as f64).sin()).collect();
        let [one, two] = [&whole, &pairs].map(|curvature| {
            let mut vector = wanted.clone();
            curvature.solve(&mut vector).expect("a solution");
            vector
        });
        assert!(one.iter().zip(&two).all(|(one, two)| (one - two).abs() < 1e-9), "{one:?} {two:?}");
    }
}
