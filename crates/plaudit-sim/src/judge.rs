//! The judge model of the simulator: probabilities by hidden quality, and the verdict drawn from them.

use super::prompt::{Asked, Shown};
use super::quality::{fingerprint, quality};
use super::random::{SeededRandom, logit, sigma};
use super::{above, finite, natural, share};
use clap::Args;

/// The farthest whole number from the middle of a score whose probability is reported.
const REACH: u64 = 20;

/// How the judge judges.
#[derive(Debug, Clone, Args)]
pub(crate) struct Judge {
    /// How much quality is worth one logit: the lower, the surer the judge
    #[arg(long, value_name = "T", default_value = "0.25", value_parser = above)]
    pub(crate) temperature: f64,
    /// Logits in favour of the response that is shown first
    #[arg(long, value_name = "LOGITS", default_value = "0.5", value_parser = finite, allow_negative_numbers = true)]
    pub(crate) position_bias: f64,
    /// Logits that a pair must differ by to be no tie, where ties are allowed
    #[arg(long, value_name = "LOGITS", default_value = "0.25", value_parser = natural)]
    pub(crate) ties: f64,
    /// Noise in a ranking of several, against that of a pair
    #[arg(long, value_name = "FACTOR", default_value = "1.0", value_parser = natural)]
    pub(crate) line_up_noise: f64,
    /// How often a verdict about an item of a rubric is wrong
    #[arg(long, value_name = "SHARE", default_value = "0.05", value_parser = share)]
    pub(crate) item_error: f64,
    /// How often, in a call about several items, a verdict follows the one before it
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub(crate) item_coupling: f64,
    /// Refuse to give logprobs
    #[arg(long)]
    pub(crate) no_logprobs: bool,
    /// Refuse a response_format
    #[arg(long)]
    pub(crate) no_json: bool,
}

/// One verdict and the chances that it came from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    /// The label or number that was drawn; all labels in order where a ranking was asked for.
    pub(crate) drawn: Vec<String>,
    /// How likely each label or number was: of a ranking, to be the best.
    pub(crate) chances: Vec<(String, f64)>,
}

/// What is drawn about a question: it depends on the texts in their order and on the sampling seed, not on labels,
/// fences or the form of the verdict.
pub(crate) fn chance(seed: u64, asked: &Asked<'_>, sampling: Option<i64>) -> SeededRandom {
    let all = |shown: &[Shown<'_>], kind: u64| {
        shown
            .iter()
            .fold(SeededRandom::new(seed).about(kind), |chance, one| chance.about(fingerprint(one.text)))
    };
    let chance = match asked {
        Asked::Score { shown, .. } => all(&[*shown], 1),
        Asked::Pair { shown, .. } => all(shown, 2),
        Asked::Ranking { shown } => all(shown, 3),
        Asked::Share { text } => all(&[Shown { label: "", text }], 4),
        Asked::Items { shown, items } => {
            items.iter().fold(all(&[*shown], 7), |chance, item| chance.about_text(item.criterion.as_bytes()))
        }
    };
    sampling.map_or(chance, |seed| chance.about(seed as u64))
}

impl Judge {
    /// The verdict on a question, where `chance` is about it and `seed` about all questions.
    pub(crate) fn verdict(&self, asked: &Asked<'_>, chance: SeededRandom, seed: SeededRandom) -> Verdict {
        match asked {
            Asked::Score { shown, scale } => self.score(quality(shown.text), *scale, chance),
            Asked::Pair { shown, tie } => self.pair(shown, *tie, chance),
            Asked::Ranking { shown } => self.ranking(shown, chance),
            Asked::Items { shown, items } => self.items(*shown, items, seed),
            Asked::Share { text } => {
                let drawn = vec![format!("{:.4}", sigma(self.latent(quality(text), chance)))];
                Verdict { drawn, chances: Vec::new() }
            }
        }
    }

    /// Quality with the noise of one look at one response, which is half that of a comparison.
    fn latent(&self, quality: f64, chance: SeededRandom) -> f64 {
        quality + self.temperature / 2.0 * logit(chance.uniform())
    }

    fn score(&self, quality: f64, scale: u64, chance: SeededRandom) -> Verdict {
        let whole = scale as f64;
        let number = |latent: f64| (whole * sigma(latent)).round() as u64;
        let drawn = vec![number(self.latent(quality, chance)).min(scale).to_string()];
        // How likely the number is below `edge`: the noise is logistic, so its distribution has a closed form.
        let below = |edge: f64| match edge / whole {
            share if share <= 0.0 => 0.0,
            share if share >= 1.0 => 1.0,
            share => sigma((logit(share) - quality) / (self.temperature / 2.0)),
        };
        let middle = number(quality).min(scale);
        let near = middle.saturating_sub(REACH)..=middle.saturating_add(REACH).min(scale);
        let chance_of = |at: u64| (below(at as f64 + 0.5) - below(at as f64 - 0.5)).max(0.0);
        Verdict { drawn, chances: near.map(|at| (at.to_string(), chance_of(at))).collect() }
    }

    fn pair(&self, shown: &[Shown<'_>; 2], tie: Option<&str>, chance: SeededRandom) -> Verdict {
        let [first, second] = shown;
        let gap = (quality(first.text) - quality(second.text)) / self.temperature + self.position_bias;
        let width = if tie.is_some() { self.ties } else { 0.0 };
        let (wins, loses) = (sigma(gap - width), sigma(-gap - width));
        let mut chances = vec![(first.label.to_owned(), wins), (second.label.to_owned(), loses)];
        if let Some(tie) = tie {
            chances.push((tie.to_owned(), (1.0 - wins - loses).max(0.0)));
        }
        let draw = chance.uniform();
        let label = match tie {
            _ if draw < wins => first.label,
            Some(tie) if draw < 1.0 - loses => tie,
            _ => second.label,
        };
        Verdict { drawn: vec![label.to_owned()], chances }
    }

    fn ranking(&self, shown: &[Shown<'_>], chance: SeededRandom) -> Verdict {
        // From half the bias for the first place to minus half for the last, so that two differ as in a pair.
        let last = (shown.len().max(2) - 1) as f64;
        let slot = |at: usize| self.position_bias * (0.5 - at as f64 / last);
        let utility = |(at, one): (usize, &Shown<'_>)| quality(one.text) / self.temperature + slot(at);
        let utilities: Vec<f64> = shown.iter().enumerate().map(utility).collect();
        let noisy = |at: usize| utilities[at] + self.line_up_noise * chance.about(at as u64).gumbel();
        let mut order: Vec<(usize, f64)> = (0..shown.len()).map(|at| (at, noisy(at))).collect();
        order.sort_by(|(_, left), (_, right)| right.total_cmp(left));
        let most = utilities.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> =
            utilities.iter().map(|one| ((one - most) / self.line_up_noise.max(1e-6)).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let chances = shown.iter().zip(&weights).map(|(one, weight)| (one.label.to_owned(), weight / sum));
        let drawn = order.iter().map(|(at, _)| shown[*at].label.to_owned()).collect();
        Verdict { drawn, chances: chances.collect() }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) const JUDGE: Judge = Judge {
        temperature: 0.25,
        position_bias: 0.5,
        ties: 0.25,
        line_up_noise: 1.0,
        item_error: 0.05,
        item_coupling: 0.0,
        no_logprobs: false,
        no_json: false,
    };

    fn pair<'p>(texts: &'p [String; 2], tie: Option<&'p str>) -> Asked<'p> {
        Asked::Pair { shown: [("A", 0), ("B", 1)].map(|(label, at)| Shown { label, text: &texts[at] }), tie }
    }

    /// How often each of a pair's verdicts is drawn, and how likely it was said to be.
    fn shares(gap: f64, tie: Option<&str>) -> Vec<(f64, f64)> {
        let count = 4000;
        let mut found = vec![(0.0, 0.0); 3];
        for at in 0..count {
            let texts = [format!("{at} [[quality:{gap}]]"), format!("other {at} [[quality:0]]")];
            let asked = pair(&texts, tie);
            let verdict = JUDGE.verdict(&asked, chance(1, &asked, None), SeededRandom::new(1));
            for (place, (label, chance)) in verdict.chances.iter().enumerate() {
                found[place].0 += f64::from(u8::from(*label == verdict.drawn[0])) / f64::from(count);
                found[place].1 = *chance;
            }
        }
        found
    }

    #[test]
    fn pairs_are_drawn_by_their_chances() {
        for (gap, tie) in [(0.0, Some("T")), (0.3, Some("T")), (-0.5, Some("T")), (0.1, None)] {
            for (found, expected) in shares(gap, tie) {
                assert!((found - expected).abs() < 0.03, "{gap}: {found} against {expected}");
            }
        }
        let even = shares(0.0, Some("T"));
        assert!((even[0].1 - sigma(0.25)).abs() < 1e-12 && (even[1].1 - sigma(-0.75)).abs() < 1e-12);
        assert!((shares(0.0, None)[0].1 - sigma(0.5)).abs() < 1e-12);
    }

    #[test]
    fn the_swapped_pair_and_another_sampling_seed_are_other_draws() {
        let texts = ["a".to_owned(), "b".to_owned()];
        let swapped = ["b".to_owned(), "a".to_owned()];
        let (asked, other) = (pair(&texts, None), pair(&swapped, None));
        assert_eq!(chance(1, &asked, None), chance(1, &pair(&texts, Some("T")), None));
        assert_ne!(chance(1, &asked, None), chance(1, &other, None));
        assert_ne!(chance(1, &asked, None), chance(1, &asked, Some(1)));
    }

    #[test]
    fn scores_stay_in_range_and_follow_their_chances() {
        for (quality, scale) in [(0.0, 10), (9e8, 10), (-9e8, 10), (0.7, 1), (0.2, u64::MAX)] {
            let verdict = JUDGE.score(quality, scale, SeededRandom::new(3));
            assert!(verdict.drawn[0].parse::<u64>().unwrap() <= scale);
            assert!(verdict.chances.iter().all(|(_, chance)| (0.0..=1.0).contains(chance)));
        }
        let count = 4000;
        let draw = |at: u64| JUDGE.score(0.3, 10, SeededRandom::new(at)).drawn[0].parse::<f64>().unwrap();
        let mean = (0..count).map(draw).sum::<f64>() / count as f64;
        let chances = JUDGE.score(0.3, 10, SeededRandom::new(0)).chances;
        let expected: f64 =
            chances.iter().map(|(number, chance)| number.parse::<f64>().unwrap() * chance).sum();
        let mass: f64 = chances.iter().map(|(_, chance)| chance).sum();
        assert!((mass - 1.0).abs() < 1e-9 && (mean - expected).abs() < 0.05, "{mass} {mean} {expected}");
    }

    #[test]
    fn rankings_name_everyone_once_and_put_the_best_first() {
        let texts: Vec<String> = (0..6).map(|at| format!("[[quality:{}]]", at * 2)).collect();
        let labels = ["A", "B", "C", "D", "E", "F"];
        let shown: Vec<Shown<'_>> =
            texts.iter().zip(labels).map(|(text, label)| Shown { label, text }).collect();
        let verdict = JUDGE.ranking(&shown, SeededRandom::new(1));
        assert_eq!(verdict.drawn, ["F", "E", "D", "C", "B", "A"]);
        assert!(verdict.chances[5].1 > 0.99);
        let none = Judge { line_up_noise: 0.0, ..JUDGE }.ranking(&shown[..1], SeededRandom::new(1));
        assert_eq!((none.drawn, none.chances), (vec!["A".to_owned()], vec![("A".to_owned(), 1.0)]));
    }
}
