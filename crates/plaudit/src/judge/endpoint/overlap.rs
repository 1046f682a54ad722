//! The embedded judge: deterministic word overlap with the reference, computed here without a network.

use super::Protocol;
use crate::judge::answer::{ExpectedAnswer, Side, Verdict};
use crate::reason::{Code, Reason};
use std::collections::BTreeMap;

/// Overlaps that differ by less than this tie.
const CLOSE: f64 = 0.02;
/// The most words of a text that are looked at.
const MAX_LENGTH: usize = 20_000;

pub(super) const PROTOCOL: Protocol = Protocol {
    scalar: false,
    reserved: &[],
    request: |_, _, _| Err(no_endpoint()),
    read: |_, _, _, _| Err(no_endpoint()),
    completion_tokens: |_| 0,
    earlier_request: None,
    local: Some(|call| {
        let shown: Vec<&str> = (0..call.shown.len()).map(|at| call.candidate(at).text.as_str()).collect();
        judge(&call.expected, &shown, call.view.reference.as_deref())
    }),
};

fn no_endpoint() -> Reason {
    Reason::new(Code::JudgeClientError, "The embedded judge has no endpoint to be asked at.")
}

/// The verdict on the texts, in the order in which they are shown.
fn judge(expected: &ExpectedAnswer, shown: &[&str], reference: Option<&str>) -> Result<Verdict, Reason> {
    let Some(reference) = reference else { return Err(Code::MissingReference.into()) };
    let reference = counts(reference);
    if reference.is_empty() {
        return Err(Code::EmptyReference.into());
    }
    let overlaps: Vec<f64> = shown.iter().map(|text| overlap(&counts(text), &reference)).collect();
    match (expected, overlaps.as_slice()) {
        (ExpectedAnswer::Score { min, max }, [overlap]) => Ok(Verdict::Score(min + overlap * (max - min))),
        (ExpectedAnswer::Pair { .. } | ExpectedAnswer::Graded { .. }, [first, second]) => {
            let ties = match expected {
                ExpectedAnswer::Pair { tie, .. } => tie.is_some(),
                ExpectedAnswer::Graded { labels } => labels.values().any(|by| *by == 0.0),
                _ => false,
            };
            let winner = match first - second {
                gap if gap.abs() < CLOSE && ties => None,
                gap => Some(if gap >= 0.0 { Side::First } else { Side::Second }),
            };
            Ok(Verdict::Pair { winner, first: None })
        }
        (ExpectedAnswer::Ranking { .. }, overlaps) => {
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
    for word in words.take(MAX_LENGTH) {
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
        let expected = ExpectedAnswer::Pair { labels: ["A".into(), "B".into()], tie: tie.map(str::to_owned) };
        judge(&expected, &[first, second], Some("The answer is forty-two.")).expect("a verdict")
    }

    #[test]
    fn the_closer_one_wins() {
        let (close, far) = ("the answer: FORTY two", "no idea");
        assert_eq!(pair(close, far, None), Verdict::Pair { winner: Some(Side::First), first: None });
        assert_eq!(pair(far, close, None), Verdict::Pair { winner: Some(Side::Second), first: None });
        assert_eq!(pair(close, close, Some("T")), Verdict::Pair { winner: None, first: None });
    }

    #[test]
    fn without_a_reference_there_is_no_verdict() {
        let expected = ExpectedAnswer::Score { min: 0.0, max: 1.0 };
        assert_eq!(judge(&expected, &["a"], None).expect_err("none").code, Code::MissingReference);
        assert_eq!(judge(&expected, &["a"], Some("..")).expect_err("none").code, Code::EmptyReference);
        assert_eq!(judge(&expected, &["a"], Some("a")), Ok(Verdict::Score(1.0)));
    }
}
