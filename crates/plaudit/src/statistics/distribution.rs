//! Distribution of one column: streaming moments and a mergeable quantile sketch in bounded memory.

use rapidhash::RapidHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Mean, spread and extremes, by Welford's method; two of them merge by Chan's formula.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    /// How many values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The sum of squared distances from the mean.
    squares: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Default for Moments {
    /// Of no values.
    fn default() -> Self {
        Self { count: 0, mean: 0.0, squares: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

impl Moments {
    /// Takes one value in.
    pub fn observe(&mut self, value: f64) {
        self.count += 1;
        let off = value - self.mean;
        self.mean += off / self.count as f64;
        self.squares += off * (value - self.mean);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Takes all values of another in.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let (ours, theirs) = (self.count as f64, other.count as f64);
        let off = other.mean - self.mean;
        self.mean += off * theirs / (ours + theirs);
        self.squares += other.squares + off * off * ours * theirs / (ours + theirs);
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The standard deviation of the values themselves (divided by their number), where there is a value.
    /// Values that are all equal have exactly 0, whatever rounding did to the mean.
    pub fn std(&self) -> Option<f64> {
        match self.count {
            0 => None,
            _ if self.min == self.max => Some(0.0),
            count => Some((self.squares / count as f64).sqrt()),
        }
    }
}

/// How many bits of the mantissa tell two values apart. Seven keep every quantile within 0.8 % of the true value.
const MANTISSA_BITS: u32 = 7;

/// The values of one cell: how many, and their sum, so that a value that repeats, as rewards do, is kept exactly.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Cell {
    count: u64,
    sum: f64,
}

/// Quantile sketch: values by sign, exponent and leading mantissa bits. It merges exactly, is cheap to fill and bounded in size.
///
/// The idea is that of DDSketch (Masson, Rim and Lee, VLDB 2019: buckets of bounded relative error that merge by addition).
/// It is written by hand because a cell here also holds the sum of its values, so that rewards that repeat are exact, and
/// because merging gives the same bytes in any order.
#[derive(Debug, Clone, Default)]
struct Sketch {
    /// By cell. Only ever read in the order of the cells.
    cells: RapidHashMap<i32, Cell>,
    /// The cell that was filled last, because rewards repeat.
    last: (i32, Cell),
}

impl Cell {
    fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.sum += other.sum;
    }

    fn mean(self) -> f64 {
        self.sum / self.count as f64
    }
}

impl PartialEq for Sketch {
    fn eq(&self, other: &Self) -> bool {
        self.in_order() == other.in_order()
    }
}

impl Sketch {
    fn cell(value: f64) -> i32 {
        if value == 0.0 {
            return 0;
        }
        // The bits of a positive float are ordered as the floats are.
        let magnitude = (value.abs().to_bits() >> (52 - MANTISSA_BITS)) as i32 + 1;
        if value < 0.0 { -magnitude } else { magnitude }
    }

    fn observe(&mut self, value: f64) {
        let cell = Self::cell(value);
        if self.last.0 != cell {
            self.settle();
            self.last = (cell, Cell::default());
        }
        self.last.1.merge(Cell { count: 1, sum: value });
    }

    /// Moves the cell that was filled last in among the others.
    fn settle(&mut self) {
        if self.last.1.count > 0 {
            let values = std::mem::take(&mut self.last.1);
            self.cells.entry(self.last.0).or_default().merge(values);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.settle();
        for (cell, values) in other.in_order() {
            self.cells.entry(cell).or_default().merge(values);
        }
    }

    /// Every cell that has values, in the order of the values.
    fn in_order(&self) -> Vec<(i32, Cell)> {
        let mut cells: Vec<(i32, Cell)> = self.cells.iter().map(|(cell, values)| (*cell, *values)).collect();
        cells.sort_unstable_by_key(|(cell, _)| *cell);
        if self.last.1.count > 0 {
            match cells.binary_search_by_key(&self.last.0, |(cell, _)| *cell) {
                Ok(at) => cells[at].1.merge(self.last.1),
                Err(at) => cells.insert(at, self.last),
            }
        }
        cells
    }
}

/// The quantiles that reports show.
pub const QUANTILES: [(&str, f64); 7] =
    [("p01", 0.01), ("p05", 0.05), ("p25", 0.25), ("p50", 0.5), ("p75", 0.75), ("p95", 0.95), ("p99", 0.99)];

/// How many bars a histogram has.
const BARS: usize = 20;

/// A histogram with bars of equal width from the smallest to the largest value.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "HistogramReply")]
pub struct Histogram {
    /// The left edge of the first bar.
    pub from: f64,
    /// The right edge of the last bar.
    pub to: f64,
    /// One count a bar; a single bar where all values are equal.
    pub counts: Vec<u64>,
}

/// The spread of one column of values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Distribution {
    /// Mean, spread, extremes.
    pub moments: Moments,
    sketch: Sketch,
}

impl Distribution {
    /// Of no values.
    pub fn none() -> Self {
        Self::default()
    }

    /// Takes one finite value in.
    pub fn observe(&mut self, value: f64) {
        self.moments.observe(value);
        self.sketch.observe(value);
    }

    /// Takes all values of another in.
    pub fn merge(&mut self, other: &Self) {
        self.moments.merge(&other.moments);
        self.sketch.merge(&other.sketch);
    }

    /// The value below which the share `q` of the values lies, to within 0.8 %.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = (q * (self.moments.count.checked_sub(1)?) as f64).round() as u64;
        let mut seen = 0;
        for (_, values) in self.sketch.in_order() {
            seen += values.count;
            if seen > rank {
                return Some(values.mean().clamp(self.moments.min, self.moments.max));
            }
        }
        None
    }

    /// How far two columns are apart: the largest difference between the shares of values up to any point (the
    /// statistic of Kolmogorov and Smirnov), from 0 for the same spread to 1 for none in common.
    pub fn distance(&self, other: &Self) -> Option<f64> {
        let (ours, theirs) = (self.moments.count as f64, other.moments.count as f64);
        if ours == 0.0 || theirs == 0.0 {
            return None;
        }
        let share = |cells: Vec<(i32, Cell)>, of: f64| -> Vec<(i32, f64)> {
            cells.into_iter().map(|(cell, values)| (cell, values.count as f64 / of)).collect()
        };
        let mut steps = share(self.sketch.in_order(), ours);
        steps.extend(share(other.sketch.in_order(), -theirs));
        steps.sort_unstable_by_key(|(cell, _)| *cell);
        let (mut apart, mut largest) = (0.0_f64, 0.0_f64);
        for cell in steps.chunk_by(|a, b| a.0 == b.0) {
            apart += cell.iter().map(|(_, step)| step).sum::<f64>();
            largest = largest.max(apart.abs());
        }
        Some(largest.min(1.0))
    }

    /// The histogram, where there are values.
    pub fn histogram(&self) -> Option<Histogram> {
        if self.moments.count == 0 {
            return None;
        }
        let (from, to) = (self.moments.min, self.moments.max);
        let bars = if from < to { BARS } else { 1 };
        let mut counts = vec![0; bars];
        for (_, values) in self.sketch.in_order() {
            let share = if bars == 1 { 0.0 } else { (values.mean() - from) / (to - from) };
            counts[((share.clamp(0.0, 1.0) * bars as f64) as usize).min(bars - 1)] += values.count;
        }
        Some(Histogram { from, to, counts })
    }
}

/// How values are spread, as JSON. Of no values there is nothing but their count.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DistributionReply")]
struct DistributionJson {
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    std: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<f64>,
    /// By name, from `p01` to `p99`.
    #[serde(skip_serializing_if = "Option::is_none")]
    quantiles: Option<BTreeMap<&'static str, f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    histogram: Option<Histogram>,
}

json_schema_of!(Distribution, DistributionJson);

impl Serialize for Distribution {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let moments = Some(&self.moments).filter(|moments| moments.count > 0);
        let quantile = |(name, q): &(&'static str, f64)| Some((*name, self.quantile(*q)?));
        let json = DistributionJson {
            count: self.moments.count,
            mean: moments.map(|moments| moments.mean),
            std: moments.and_then(Moments::std),
            min: moments.map(|moments| moments.min),
            max: moments.map(|moments| moments.max),
            quantiles: moments.map(|_| QUANTILES.iter().filter_map(quantile).collect()),
            histogram: self.histogram(),
        };
        json.serialize(to)
    }
}

/// How two columns move together: Pearson's r, streaming and mergeable.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Correlation {
    x: Moments,
    y: Moments,
    products: f64,
}

impl Correlation {
    /// Takes one pair in.
    pub fn observe(&mut self, x: f64, y: f64) {
        let off = x - self.x.mean;
        self.x.observe(x);
        self.y.observe(y);
        self.products += off * (y - self.y.mean);
    }

    /// Takes all pairs of another in.
    pub fn merge(&mut self, other: &Self) {
        let (ours, theirs) = (self.x.count as f64, other.x.count as f64);
        if theirs > 0.0 {
            let off = (other.x.mean - self.x.mean) * (other.y.mean - self.y.mean);
            self.products += other.products + off * ours * theirs / (ours + theirs);
            self.x.merge(&other.x);
            self.y.merge(&other.y);
        }
    }

    /// Pearson's r, where both columns vary.
    pub fn r(&self) -> Option<f64> {
        let spread = (self.x.squares * self.y.squares).sqrt();
        let varies = self.x.min < self.x.max && self.y.min < self.y.max;
        (varies && spread > 0.0).then(|| (self.products / spread).clamp(-1.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[f64]) -> Distribution {
        let mut all = Distribution::none();
        values.iter().for_each(|value| all.observe(*value));
        all
    }

    #[test]
    fn rewards_that_repeat_are_exact() {
        let all = of(&[0.0, 0.0, 1.0, 1.0, 1.0, -0.5, -1.0]);
        assert_eq!(all.quantile(0.0), Some(-1.0));
        assert_eq!(all.quantile(0.5), Some(0.0));
        assert_eq!(all.quantile(1.0), Some(1.0));
        assert_eq!(of(&[0.2, 0.2, 1.2]).quantile(0.5), Some(0.2));
        assert_eq!(of(&[]).quantile(0.5), None);
        assert_eq!(of(&[0.1, 0.1, 0.1]).moments.std(), Some(0.0));
    }

    #[test]
    fn distance_is_between_the_shares() {
        assert_eq!(of(&[0.0, 1.0]).distance(&of(&[1.0, 0.0, 0.0, 1.0])), Some(0.0));
        assert_eq!(of(&[0.0, 0.0]).distance(&of(&[1.0])), Some(1.0));
        assert_eq!(of(&[0.0, 1.0]).distance(&of(&[1.0])), Some(0.5));
        assert_eq!(of(&[]).distance(&of(&[1.0])), None);
    }

    proptest! {
        #[test]
        fn quantiles_are_near_and_merging_changes_nothing(
            values in prop::collection::vec(-1e6f64..1e6, 1..200), cut in 0usize..200,
        ) {
            let cut = cut.min(values.len());
            let whole = of(&values);
            let mut merged = of(&values[..cut]);
            merged.merge(&of(&values[cut..]));
            let counts = |all: &Distribution| -> Vec<(i32, u64)> {
                all.sketch.in_order().into_iter().map(|(cell, values)| (cell, values.count)).collect()
            };
            prop_assert_eq!(counts(&merged), counts(&whole));
            prop_assert!((merged.moments.mean - whole.moments.mean).abs() < 1e-6);
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            for (_, q) in QUANTILES {
                let exact = sorted[(q * (sorted.len() - 1) as f64).round() as usize];
                let near = whole.quantile(q).unwrap();
                prop_assert!((near - exact).abs() <= 0.008 * exact.abs() + 1e-12, "{} {}", near, exact);
            }
            prop_assert_eq!(whole.histogram().unwrap().counts.iter().sum::<u64>(), values.len() as u64);
        }

        #[test]
        fn correlation_merges(pairs in prop::collection::vec((-10f64..10.0, -10f64..10.0), 3..100)) {
            let (mut whole, mut left, mut right) = (Correlation::default(), Correlation::default(), Correlation::default());
            for (at, (x, y)) in pairs.iter().enumerate() {
                whole.observe(*x, *y);
                if at % 2 == 0 { left.observe(*x, *y) } else { right.observe(*x, *y) }
            }
            left.merge(&right);
            prop_assert!((left.r().unwrap() - whole.r().unwrap()).abs() < 1e-9);
        }
    }
}
