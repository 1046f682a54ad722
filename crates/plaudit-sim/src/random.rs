//! Reproducible randomness: every draw is a hash of the seed and of what it is for.

/// A place in the space of all draws; adding what a draw is about leads to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeededRandom(u64);

impl SeededRandom {
    pub(crate) fn new(seed: u64) -> Self {
        Self(scatter(seed ^ 0x6a09_e667_f3bc_c908))
    }

    /// The draws about one more thing.
    pub(crate) fn about(self, thing: u64) -> Self {
        Self(scatter(self.0.rotate_left(23) ^ scatter(thing)))
    }

    /// The draws about a text.
    pub(crate) fn about_text(self, text: &[u8]) -> Self {
        self.about(rapidhash::v3::rapidhash_v3(text))
    }

    /// The place itself, as a key.
    pub(crate) fn key(self) -> u64 {
        self.0
    }

    /// A number above 0 and below 1.
    pub(crate) fn uniform(self) -> f64 {
        ((scatter(self.0) >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// A number from the standard normal distribution.
    pub(crate) fn normal(self) -> f64 {
        let radius = (-2.0 * self.about(1).uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.about(2).uniform()).cos()
    }

    /// A number from the standard Gumbel distribution: the best of several utilities with this noise is drawn by the
    /// softmax of the utilities.
    pub(crate) fn gumbel(self) -> f64 {
        -(-self.uniform().ln()).ln()
    }
}

/// Sends every number to another one, so that neighbours end far apart.
fn scatter(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The logistic function.
pub(crate) fn sigma(number: f64) -> f64 {
    1.0 / (1.0 + (-number).exp())
}

/// The inverse of [`sigma`], for a number above 0 and below 1.
pub(crate) fn logit(share: f64) -> f64 {
    (share / (1.0 - share)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(draw: impl Fn(SeededRandom) -> f64) -> (f64, f64) {
        let count = 20_000;
        let draws: Vec<f64> = (0..count).map(|at| draw(SeededRandom::new(7).about(at))).collect();
        let mean = draws.iter().sum::<f64>() / count as f64;
        (mean, draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / count as f64)
    }

    #[test]
    fn draws_have_the_moments_of_their_distributions() {
        let near = |found: (f64, f64), wanted: (f64, f64)| {
            assert!((found.0 - wanted.0).abs() < 0.03 && (found.1 - wanted.1).abs() < 0.06, "{found:?}");
        };
        near(moments(SeededRandom::uniform), (0.5, 1.0 / 12.0));
        near(moments(SeededRandom::normal), (0.0, 1.0));
        near(moments(SeededRandom::gumbel), (0.577, 1.645));
    }

    #[test]
    fn what_a_draw_is_about_matters_in_its_order() {
        let chance = SeededRandom::new(1);
        assert_eq!(chance.about(1).about(2), chance.about(1).about(2));
        assert_ne!(chance.about(1).about(2), chance.about(2).about(1));
        assert_ne!(chance.about_text(b"a"), SeededRandom::new(2).about_text(b"a"));
    }

    #[test]
    fn the_logistic_function_has_no_overflow() {
        assert_eq!((sigma(f64::MAX), sigma(-f64::MAX), sigma(0.0)), (1.0, 0.0, 0.5));
        assert!((logit(sigma(1.5)) - 1.5).abs() < 1e-12);
    }
}
