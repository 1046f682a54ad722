//! The items of a rubric, as a prompt lists them, and what the simulated judge says of each.

use super::judge::{Judge, Verdict};
use super::prompt::Shown;
use super::quality::{fingerprint, quality};
use super::random::{SeededRandom, sigma};
use memchr::memmem;

/// The most items of one prompt that are read.
const MAX_ITEMS: usize = 1000;

/// A criterion with the answers that it may get, worst to best.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AskedItem<'p> {
    pub(crate) label: &'p str,
    pub(crate) criterion: &'p str,
    pub(crate) answers: Vec<&'p str>,
}

/// The items under the heading of criteria: each begins a line with its label, and lines that go on are indented.
pub(crate) fn listed(body: &str) -> Vec<AskedItem<'_>> {
    let mut items: Vec<AskedItem<'_>> = Vec::new();
    let Some(at) = memmem::rfind(body.as_bytes(), b"\n# Criteria\n") else { return items };
    for line in body[at + 12..].lines() {
        if line.starts_with("item_")
            && let Some((label, criterion)) = line.split_once(": ")
        {
            if items.len() < MAX_ITEMS {
                items.push(AskedItem { label, criterion, answers: vec!["no", "yes"] });
            }
        } else if let (Some(given), Some(item)) = (line.strip_prefix("(One of: "), items.last_mut()) {
            item.answers = given.split('"').skip(1).step_by(2).take(100).collect();
        }
    }
    items.retain(|item| item.answers.len() > 1);
    items
}

impl AskedItem<'_> {
    /// The place of the right answer. A criterion with a text in quotation marks is met where the response holds that text; the
    /// truth about any other is a coin that the two texts fix, and that falls well for responses of high quality.
    fn truth(&self, response: &str) -> usize {
        let last = self.answers.len() - 1;
        let quoted = self.criterion.split_once('"').and_then(|(_, rest)| rest.split_once('"'));
        if let Some((text, _)) = quoted.filter(|(text, _)| !text.is_empty()) {
            return if memmem::find(response.as_bytes(), text.as_bytes()).is_some() { last } else { 0 };
        }
        let coin = SeededRandom::new(7).about(fingerprint(response)).about_text(self.criterion.as_bytes());
        let share = 0.5 * (coin.uniform() + sigma(quality(response)));
        ((share * self.answers.len() as f64) as usize).min(last)
    }
}

impl Judge {
    /// What is said of each item. An error is about the item and the response, whatever else is asked in the call; a verdict that
    /// follows the one before it is about the two.
    pub(crate) fn items(&self, shown: Shown<'_>, items: &[AskedItem<'_>], seed: SeededRandom) -> Verdict {
        let mut before: Option<f64> = None;
        let (mut drawn, mut chances) = (Vec::with_capacity(items.len()), Vec::new());
        for item in items {
            let chance = seed.about(fingerprint(shown.text)).about_text(item.criterion.as_bytes());
            let (last, truth) = (item.answers.len() - 1, item.truth(shown.text));
            let errs = chance.about(1).uniform() < self.item_error;
            let other = (chance.about(2).uniform() * last as f64) as usize;
            let own =
                if errs { other.min(last - 1) + usize::from(other.min(last - 1) >= truth) } else { truth };
            let follows =
                |before: f64| chance.about(3).about(before.to_bits()).uniform() < self.item_coupling;
            let said = match before.filter(|before| follows(*before)) {
                Some(before) => (before * last as f64).round() as usize,
                None => own,
            };
            before = Some(said as f64 / last as f64);
            drawn.push(item.answers[said].to_owned());
            if let [_] = items {
                let wrong = self.item_error / last as f64;
                let likely = |at: usize| if at == truth { 1.0 - self.item_error } else { wrong };
                chances = item
                    .answers
                    .iter()
                    .enumerate()
                    .map(|(at, text)| ((*text).to_owned(), likely(at)))
                    .collect();
            }
        }
        Verdict { drawn, chances }
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge::tests::JUDGE;
    use super::*;

    const BODY: &str = "# Response\n<response f00d>\nred and blue\n</response f00d>\n\n# Criteria\nitem_1: Names \"blue\".\n  And more.\nitem_2: Names \"green\".\n(One of: \"poor\", \"fair\", \"good\"; the first is the worst, the last the best.)\n";

    fn shown(text: &str) -> Shown<'_> {
        Shown { label: "", text }
    }

    #[test]
    fn quoted_texts_decide() {
        let items = listed(BODY);
        assert_eq!(items.iter().map(|item| item.answers.len()).collect::<Vec<_>>(), [2, 3]);
        let sure = Judge { item_error: 0.0, item_coupling: 0.0, ..JUDGE };
        let say = |text: &str| sure.items(shown(text), &items, SeededRandom::new(1)).drawn;
        assert_eq!(say("red and blue"), ["yes", "poor"]);
        assert_eq!(say("green"), ["no", "good"]);
    }

    #[test]
    fn errors_and_coupling_come_as_often_as_they_should() {
        let items = listed(BODY);
        let count = 4000;
        let wrong = |judge: &Judge, items: &[AskedItem<'_>], at: usize| {
            let wrong = |row: &usize| {
                let text = format!("{row} red and blue");
                judge.items(shown(&text), items, SeededRandom::new(1)).drawn[at] != ["yes", "poor"][at]
            };
            (0..count).filter(wrong).count() as f64 / count as f64
        };
        let noisy = Judge { item_error: 0.1, item_coupling: 0.0, ..JUDGE };
        assert!((wrong(&noisy, &items[..1], 0) - 0.1).abs() < 0.02);
        assert!((wrong(&noisy, &items, 1) - wrong(&JUDGE_SURE, &items, 1) - 0.1).abs() < 0.02);
        // The second follows the first, which says yes.
        let coupled = Judge { item_error: 0.0, item_coupling: 0.2, ..JUDGE };
        assert!((wrong(&coupled, &items, 1) - 0.2).abs() < 0.02);
        assert_eq!(wrong(&coupled, &items[..1], 0), 0.0);
    }

    const JUDGE_SURE: Judge = Judge { item_error: 0.0, item_coupling: 0.0, ..JUDGE };
}
