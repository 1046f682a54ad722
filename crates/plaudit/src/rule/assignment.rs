//! Maximum weight matching of two lists: assignment in any order (Hungarian algorithm) and alignment in order.

/// How well each row fits each column: 0 where they must not be paired.
#[derive(Debug)]
pub(super) struct PairWeights {
    rows: usize,
    /// Each with one weight a row.
    columns: Vec<Vec<f64>>,
}

/// A row, a column and how well they fit, which is more than 0.
pub(super) type Pair = (usize, usize, f64);

impl PairWeights {
    /// No column yet, for that many rows.
    pub(super) fn new(rows: usize) -> Self {
        Self { rows, columns: Vec::new() }
    }

    /// Adds a column, with one weight for each row.
    pub(super) fn push(&mut self, column: Vec<f64>) {
        debug_assert_eq!(column.len(), self.rows);
        self.columns.push(column);
    }

    /// How many columns there are.
    pub(super) fn columns(&self) -> usize {
        self.columns.len()
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        self.columns[column][row]
    }

    /// The pairs of largest total weight in which no row and no column stands twice. Takes a * a * b steps, where a is the
    /// shorter side and b the longer one (Kuhn 1955 and Munkres 1957, with shortest augmenting paths).
    pub(super) fn assign(&self) -> Vec<Pair> {
        let turned = self.rows > self.columns();
        let (short, long) = if turned { (self.columns(), self.rows) } else { (self.rows, self.columns()) };
        let cost = |a: usize, b: usize| if turned { -self.at(b, a) } else { -self.at(a, b) };
        // Place 0 stands for none on both sides.
        let (mut short_price, mut long_price) = (vec![0.0; short + 1], vec![0.0; long + 1]);
        let mut partner = vec![0_usize; long + 1];
        let mut before = vec![0_usize; long + 1];
        for row in 1..=short {
            partner[0] = row;
            let mut at = 0;
            let mut least = vec![f64::INFINITY; long + 1];
            let mut done = vec![false; long + 1];
            while partner[at] != 0 {
                done[at] = true;
                let from = partner[at];
                let (mut step, mut next) = (f64::INFINITY, 0);
                for column in 1..=long {
                    if done[column] {
                        continue;
                    }
                    let reduced = cost(from - 1, column - 1) - short_price[from] - long_price[column];
                    if reduced < least[column] {
                        least[column] = reduced;
                        before[column] = at;
                    }
                    if least[column] < step {
                        (step, next) = (least[column], column);
                    }
                }
                for column in 0..=long {
                    if done[column] {
                        short_price[partner[column]] += step;
                        long_price[column] -= step;
                    } else {
                        least[column] -= step;
                    }
                }
                at = next;
            }
            while at != 0 {
                partner[at] = partner[before[at]];
                at = before[at];
            }
        }
        let pairs = (1..=long).filter(|column| partner[*column] != 0).map(|column| {
            let (a, b) = (partner[column] - 1, column - 1);
            let (row, column) = if turned { (b, a) } else { (a, b) };
            (row, column, self.at(row, column))
        });
        pairs.filter(|(_, _, weight)| *weight > 0.0).collect()
    }

    /// The pairs of largest total weight that keep the order of both sides.
    pub(super) fn align(&self) -> Vec<Pair> {
        let width = self.columns() + 1;
        let mut best = vec![0.0_f64; (self.rows + 1) * width];
        for row in 1..=self.rows {
            for column in 1..width {
                let paired = best[(row - 1) * width + column - 1] + self.at(row - 1, column - 1);
                let skipped = best[(row - 1) * width + column].max(best[row * width + column - 1]);
                best[row * width + column] = paired.max(skipped);
            }
        }
        let (mut row, mut column, mut pairs) = (self.rows, self.columns(), Vec::new());
        while row > 0 && column > 0 {
            let here = best[row * width + column];
            if here == best[(row - 1) * width + column] {
                row -= 1;
            } else if here == best[row * width + column - 1] {
                column -= 1;
            } else {
                (row, column) = (row - 1, column - 1);
                pairs.push((row, column, self.at(row, column)));
            }
        }
        pairs.reverse();
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(rows: usize, columns: usize, of: impl Fn(usize, usize) -> f64) -> PairWeights {
        let mut weights = PairWeights::new(rows);
        for column in 0..columns {
            weights.push((0..rows).map(|row| of(row, column)).collect());
        }
        weights
    }

    /// The largest total by trying everything.
    fn slow(weights: &PairWeights, row: usize, taken: &mut Vec<bool>, ordered: bool, from: usize) -> f64 {
        if row == weights.rows {
            return 0.0;
        }
        let mut best = slow(weights, row + 1, taken, ordered, from);
        for column in if ordered { from } else { 0 }..weights.columns() {
            if !taken[column] {
                taken[column] = true;
                let rest = slow(weights, row + 1, taken, ordered, column + 1);
                best = best.max(weights.at(row, column) + rest);
                taken[column] = false;
            }
        }
        best
    }

    #[test]
    fn matching_is_the_best_there_is() {
        let mut state = 7_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        for _ in 0..400 {
            let (rows, columns, levels) = (draw() % 6, draw() % 6, 1 + draw() % 4);
            let drawn: Vec<f64> = (0..36).map(|_| (draw() % (levels + 1)) as f64 / levels as f64).collect();
            let weights = weights(rows, columns, |row, column| drawn[row * 6 + column]);
            for ordered in [false, true] {
                let pairs = if ordered { weights.align() } else { weights.assign() };
                let total: f64 = pairs.iter().map(|(_, _, weight)| weight).sum();
                let best = slow(&weights, 0, &mut vec![false; columns], ordered, 0);
                assert!((total - best).abs() < 1e-9, "{total} {best} {weights:?}");
                for (at, (row, column, _)) in pairs.iter().enumerate() {
                    let clash = |other: &Pair| other.0 == *row || other.1 == *column;
                    assert!(!pairs[at + 1..].iter().any(clash));
                    let crosses = |other: &Pair| other.0 < *row || other.1 < *column;
                    assert!(!ordered || !pairs[at + 1..].iter().any(crosses));
                }
            }
        }
    }

    #[test]
    fn a_greedy_choice_is_taken_back() {
        // The first row fits both columns, the second only the first.
        let weights = weights(2, 2, |row, column| f64::from(u8::from(row == 0 || column == 0)));
        assert_eq!(weights.assign().len(), 2);
        assert_eq!(weights.align().len(), 1);
    }
}
