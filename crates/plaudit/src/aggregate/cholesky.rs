//! Cholesky decomposition of small dense symmetric systems. By hand, because n is at most 64.

/// The lower triangle L of a symmetric positive definite matrix A = L Lᵀ.
pub(super) struct Cholesky {
    size: usize,
    lower: Vec<f64>,
}

impl Cholesky {
    /// Decomposes a matrix given by rows, of which only the lower triangle is read. None where it is not positive
    /// definite.
    pub(super) fn new(size: usize, mut matrix: Vec<f64>) -> Option<Self> {
        for row in 0..size {
            for column in 0..=row {
                let (above, below) = matrix.split_at(row * size);
                let own = &below[..column];
                let other = if column == row { own } else { &above[column * size..column * size + column] };
                let rest = below[column] - own.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
                matrix[row * size + column] = if column < row {
                    rest / matrix[column * size + column]
                } else if rest > 0.0 && rest.is_finite() {
                    rest.sqrt()
                } else {
                    return None;
                };
            }
        }
        Some(Self { size, lower: matrix })
    }

    /// The logarithm of the determinant of A.
    pub(super) fn log_determinant(&self) -> f64 {
        2.0 * (0..self.size).map(|at| self.lower[at * self.size + at].ln()).sum::<f64>()
    }

    /// Solves A x = b in place.
    pub(super) fn solve(&self, vector: &mut [f64]) {
        let entry = |row: usize, column: usize| self.lower[row * self.size + column];
        for row in 0..self.size {
            let known: f64 = (0..row).map(|column| entry(row, column) * vector[column]).sum();
            vector[row] = (vector[row] - known) / entry(row, row);
        }
        for row in (0..self.size).rev() {
            let known: f64 = (row + 1..self.size).map(|below| entry(below, row) * vector[below]).sum();
            vector[row] = (vector[row] - known) / entry(row, row);
        }
    }

    /// The inverse of A, by rows.
    pub(super) fn inverse(&self) -> Vec<f64> {
        let mut inverse = vec![0.0; self.size * self.size];
        for (at, row) in inverse.chunks_exact_mut(self.size).enumerate() {
            row[at] = 1.0;
            self.solve(row);
        }
        inverse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_times_its_inverse_is_one() {
        let matrix = vec![4.0, 2.0, 0.6, 2.0, 5.0, 1.0, 0.6, 1.0, 3.0];
        let cholesky = Cholesky::new(3, matrix.clone()).expect("positive definite");
        let inverse = cholesky.inverse();
        for row in 0..3 {
            for column in 0..3 {
                let entry: f64 = (0..3).map(|at| matrix[row * 3 + at] * inverse[at * 3 + column]).sum();
                assert!((entry - f64::from(u8::from(row == column))).abs() < 1e-12);
            }
        }
        let determinant: f64 = 4.0 * (5.0 * 3.0 - 1.0) - 2.0 * (2.0 * 3.0 - 0.6) + 0.6 * (2.0 - 5.0 * 0.6);
        assert!((cholesky.log_determinant() - determinant.ln()).abs() < 1e-12);
    }

    #[test]
    fn what_is_not_positive_definite_is_told() {
        assert!(Cholesky::new(2, vec![1.0, 2.0, 2.0, 1.0]).is_none());
        assert!(Cholesky::new(1, vec![f64::NAN]).is_none());
    }
}
