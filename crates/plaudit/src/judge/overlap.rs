//! Which response is closer to the reference? A judge without a network: the overlap of words, the same every time.

use super::Wanted;
use super::verdict::{Side, Verdict};
use crate::reason::{Code, Reason};
use std::collections::BTreeMap;

/// Overlaps that differ by less than this tie.
const CLOSE: f64 = 0.02;
/// The most words of a text that are looked at.
const LONGEST: usize = 20_000;

/// The verdict on the texts, in the order in which they are shown.
pub(super) fn judge(wanted: &Wanted, shown: &[&str], reference: Option<&str>) -> Result<Verdict, Reason> {
    let Some(reference) = reference else { return Err(Code::MissingReference.into()) };
    let reference = counts(reference);
    if reference.is_empty() {
        return Err(Code::EmptyReference.into());
    }
    let overlaps: Vec<f64> = shown.iter().map(|text| overlap(&counts(text), &reference)).collect();
    match (wanted, overlaps.as_slice()) {
        (Wanted::Score { min, max }, [overlap]) => Ok(Verdict::Score(min + overlap * (max - min))),
        (Wanted::Pair { tie, .. }, [first, second]) => {
            let winner = match first - second {
                gap if gap.abs() < CLOSE && tie.is_some() => None,
                gap => Some(if gap >= 0.0 { Side::First } else { Side::Second }),
            };
            Ok(Verdict::Pair { winner, first: None })
        }
        (Wanted::Ranking { .. }, overlaps) => {
            let mut order: Vec<usize> = (0..overlaps.len()).collect();
            order.sort_by(|a, b| overlaps[*b].total_cmp(&overlaps[*a]));
            Ok(Verdict::Ranking(order))
        }
        _ => Err(Code::JudgeSchema.into()),
    }
}

/// How often each word occurs, in lower case.
fn counts(text: &str) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    for word in words.take(LONGEST) {
        *counts.entry(word.to_lowercase()).or_insert(0) += 1;
    }
    counts
}

/// The harmonic mean of precision and recall, each word counting as often as it occurs in both.
fn overlap(ours: &BTreeMap<String, u32>, reference: &BTreeMap<String, u32>) -> f64 {
    let common: u32 = ours.iter().filter_map(|(word, count)| Some((*count).min(*reference.get(word)?))).sum();
    let all: u32 = ours.values().chain(reference.values()).sum();
    2.0 * f64::from(common) / f64::from(all.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(first: &str, second: &str, tie: Option<&str>) -> Verdict {
        let wanted = Wanted::Pair { labels: ["A".into(), "B".into()], tie: tie.map(str::to_owned) };
        judge(&wanted, &[first, second], Some("The answer is forty-two.")).expect("a verdict")
    }

    #[test]
    fn the_closer_one_wins_on_either_side() {
        let (close, far) = ("the answer: FORTY two", "no idea");
        assert_eq!(pair(close, far, None), Verdict::Pair { winner: Some(Side::First), first: None });
        assert_eq!(pair(far, close, None), Verdict::Pair { winner: Some(Side::Second), first: None });
        assert_eq!(pair(close, close, Some("T")), Verdict::Pair { winner: None, first: None });
    }

    #[test]
    fn without_a_reference_there_is_no_verdict() {
        let wanted = Wanted::Score { min: 0.0, max: 1.0 };
        assert_eq!(judge(&wanted, &["a"], None).expect_err("none").code, Code::MissingReference);
        assert_eq!(judge(&wanted, &["a"], Some("..")).expect_err("none").code, Code::EmptyReference);
        assert_eq!(judge(&wanted, &["a"], Some("a")), Ok(Verdict::Score(1.0)));
    }
}
