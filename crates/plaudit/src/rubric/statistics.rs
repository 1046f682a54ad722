//! Statistics of rubrics by criterion and by tag: how often an item is met, does not apply or has no verdict, and whether it tells the
//! responses of a group apart.

use super::{Item, ItemVerdict};
use crate::statistics::distribution::{Correlation, Moments};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The most criteria that are kept apart, the first that come. What comes after them counts among all.
const MAX_CRITERIA: usize = 1000;
/// The most tags.
const MAX_TAGS: usize = 50;
/// How many groups make a criterion one that rows share.
const SHARED: u64 = 2;
/// What is nearer to the mean of its group is at the mean: rounding is no signal.
const ROUNDING: f64 = 1e-9;

/// What was said of an item, or of several, over many responses.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ItemCounts {
    /// Responses that it was asked about.
    pub asked: u64,
    /// Of those, how many meet it: what a fault describes is there.
    pub met: u64,
    /// To how many it does not apply.
    pub not_applicable: u64,
    /// How many have no verdict.
    pub missing: u64,
    /// Verdicts that were asked for once more.
    pub audited: u64,
    /// Of those, how many came out otherwise.
    pub changed: u64,
    /// Groups in which it was asked about.
    pub groups: u64,
    /// Groups of at least two answers.
    pub comparable: u64,
    /// Of those, how many in which all answers are equal.
    pub saturated: u64,
    /// The credit of its answers and the mean credit of the response's other items, each without the mean of its group.
    rest: Correlation,
}

impl ItemCounts {
    fn merge(&mut self, other: &Self) {
        self.asked += other.asked;
        self.met += other.met;
        self.not_applicable += other.not_applicable;
        self.missing += other.missing;
        self.audited += other.audited;
        self.changed += other.changed;
        self.groups += other.groups;
        self.comparable += other.comparable;
        self.saturated += other.saturated;
        self.rest.merge(&other.rest);
    }

    /// The share of its answers that say it is met.
    pub fn met_share(&self) -> Option<f64> {
        share(self.met, self.asked - self.missing - self.not_applicable)
    }

    /// The share of responses without a verdict.
    pub fn missing_share(&self) -> Option<f64> {
        share(self.missing, self.asked)
    }

    /// The share of verdicts that came out otherwise when they were asked for once more.
    pub fn disagreement(&self) -> Option<f64> {
        share(self.changed, self.audited)
    }

    /// The share of groups in which all answers are equal, of those that could differ.
    pub fn saturation(&self) -> Option<f64> {
        share(self.saturated, self.comparable)
    }

    /// How the item moves with the other items inside groups: the point-biserial correlation of its answers with the rest score, of
    /// an answer with two values. Faults are turned round, so that an item that does its work is above 0.
    pub fn discrimination(&self) -> Option<f64> {
        self.rest.r()
    }

    /// How much it says: its discrimination, as far as it has verdicts.
    fn informs(&self) -> f64 {
        self.discrimination().unwrap_or(0.0) * (1.0 - self.missing_share().unwrap_or(0.0))
    }
}

fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

/// The items of one group or many.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ItemStats {
    /// All items together.
    pub all: ItemCounts,
    /// By tag.
    pub tags: BTreeMap<String, ItemCounts>,
    /// By criterion, as it is written.
    pub criteria: BTreeMap<String, ItemCounts>,
}

impl ItemStats {
    /// Of the items of one group and its responses, each with a verdict an item.
    pub fn of_group(items: &[&Item], responses: &[Vec<ItemVerdict>]) -> Self {
        let mut stats = Self::default();
        if responses.is_empty() {
            return stats;
        }
        let credit = |(item, verdict): (&&Item, &ItemVerdict)| match verdict {
            ItemVerdict::Answer(answer) => Some(item.credit(*answer)),
            ItemVerdict::NotApplicable | ItemVerdict::Missing => None,
        };
        let credits: Vec<Vec<Option<f64>>> =
            responses.iter().map(|verdicts| items.iter().zip(verdicts).map(credit).collect()).collect();
        for (at, item) in items.iter().enumerate() {
            let count = |is: &dyn Fn(ItemVerdict) -> bool| {
                responses.iter().filter(|verdicts| is(verdicts[at])).count() as u64
            };
            let mut answers = Moments::default();
            credits.iter().filter_map(|all| all[at]).for_each(|credit| answers.observe(credit));
            let comparable = answers.count >= 2;
            let found = ItemCounts {
                asked: responses.len() as u64,
                met: count(&|verdict| item.is_met(verdict)),
                not_applicable: count(&|verdict| verdict == ItemVerdict::NotApplicable),
                missing: count(&|verdict| verdict == ItemVerdict::Missing),
                audited: 0,
                changed: 0,
                groups: 1,
                comparable: u64::from(comparable),
                saturated: u64::from(comparable && answers.min == answers.max),
                rest: with_rest(at, &credits),
            };
            stats.all.merge(&found);
            add(&mut stats.criteria, MAX_CRITERIA, &item.criterion, &found);
            item.tags.iter().for_each(|tag| add(&mut stats.tags, MAX_TAGS, tag, &found));
        }
        stats
    }

    /// Counts a verdict about one of the items that was asked for once more.
    pub fn audit(&mut self, item: &Item, changed: bool) {
        let found = ItemCounts { audited: 1, changed: u64::from(changed), ..ItemCounts::default() };
        self.all.merge(&found);
        add(&mut self.criteria, MAX_CRITERIA, &item.criterion, &found);
        item.tags.iter().for_each(|tag| add(&mut self.tags, MAX_TAGS, tag, &found));
    }

    /// Takes in what was found elsewhere.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.all.merge(&other.all);
        other.criteria.iter().for_each(|(name, found)| add(&mut self.criteria, MAX_CRITERIA, name, found));
        other.tags.iter().for_each(|(name, found)| add(&mut self.tags, MAX_TAGS, name, found));
    }

    /// How often items were asked about whose criteria came after the most that are kept apart.
    pub fn others(&self) -> u64 {
        self.all.asked - self.criteria.values().map(|found| found.asked).sum::<u64>()
    }

    /// The criteria that several groups share, those first that say least: against the others, or nothing, or seldom.
    pub fn shared(&self) -> Vec<(&str, &ItemCounts)> {
        let shared = self.criteria.iter().filter(|(_, found)| found.groups >= SHARED);
        let mut shared: Vec<(&str, &ItemCounts)> =
            shared.map(|(name, found)| (name.as_str(), found)).collect();
        shared.sort_by(|(_, left), (_, right)| {
            let informs = left.informs().partial_cmp(&right.informs()).unwrap_or(Ordering::Equal);
            informs.then(right.missing.cmp(&left.missing))
        });
        shared
    }

    /// About how many bytes it takes beside itself.
    pub(crate) fn bytes(&self) -> usize {
        let names = self.criteria.keys().chain(self.tags.keys());
        names.map(|name| name.len() + size_of::<(String, ItemCounts)>()).sum()
    }
}

fn add(counts: &mut BTreeMap<String, ItemCounts>, most: usize, name: &str, found: &ItemCounts) {
    if let Some(known) = counts.get_mut(name) {
        known.merge(found);
    } else if counts.len() < most {
        counts.insert(name.to_owned(), found.clone());
    }
}

/// The credit of an item with the mean credit of the other items, over the responses of a group that have both.
fn with_rest(at: usize, credits: &[Vec<Option<f64>>]) -> Correlation {
    let pair = |all: &Vec<Option<f64>>| {
        let own = all[at]?;
        let (count, sum) =
            all.iter().flatten().fold((0.0, 0.0), |(count, sum), credit| (count + 1.0, sum + credit));
        (count > 1.0).then(|| (own, (sum - own) / (count - 1.0)))
    };
    let pairs: Vec<(f64, f64)> = credits.iter().filter_map(pair).collect();
    let count = pairs.len() as f64;
    let (own, rest) = pairs.iter().fold((0.0, 0.0), |(own, rest), pair| (own + pair.0, rest + pair.1));
    let off = |value: f64, sum: f64| match value - sum / count {
        off if off.abs() > ROUNDING => off,
        _ => 0.0,
    };
    let mut found = Correlation::default();
    pairs.iter().for_each(|pair| found.observe(off(pair.0, own), off(pair.1, rest)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use ItemVerdict::{Answer, Missing, NotApplicable};

    fn item(criterion: &str, weight: f64, tag: &str) -> Item {
        let (criterion, tags) = (criterion.to_owned(), vec![tag.to_owned()]);
        Item { criterion, weight, negative: weight < 0.0, choices: None, tags }
    }

    fn of(items: &[Item], responses: &[&[ItemVerdict]]) -> ItemStats {
        let responses: Vec<Vec<ItemVerdict>> = responses.iter().map(|verdicts| verdicts.to_vec()).collect();
        ItemStats::of_group(&items.iter().collect::<Vec<_>>(), &responses)
    }

    #[test]
    fn items_are_counted_by_what_was_said() {
        let items = [item("a", 1.0, "x"), item("b", 1.0, "x"), item("fault", -1.0, "y")];
        let stats = of(
            &items,
            &[
                &[Answer(1), Answer(1), Answer(0)],
                &[Answer(1), Missing, Answer(1)],
                &[Answer(1), NotApplicable, Missing],
            ],
        );
        let counts = |found: &ItemCounts| [found.asked, found.met, found.not_applicable, found.missing];
        assert_eq!(counts(&stats.criteria["a"]), [3, 3, 0, 0]);
        assert_eq!(counts(&stats.criteria["b"]), [3, 1, 1, 1]);
        assert_eq!(counts(&stats.criteria["fault"]), [3, 1, 0, 1]);
        assert_eq!(counts(&stats.tags["x"]), [6, 4, 1, 1]);
        assert_eq!((counts(&stats.all), stats.others()), ([9, 5, 1, 2], 0));
        let saturation = |name: &str| stats.criteria[name].saturation();
        assert_eq!((saturation("a"), saturation("b"), saturation("fault")), (Some(1.0), None, Some(0.0)));
        assert_eq!((stats.criteria["b"].met_share(), stats.tags["x"].saturation()), (Some(1.0), Some(1.0)));
        assert_eq!(stats.criteria["a"].discrimination(), None, "it is the same for all");
        assert_eq!(of(&items, &[]), ItemStats::default());
    }

    /// Credits of `a` are 1 1 0 0 and of its rest 1 1/2 1/2 0. Without their means, 1/2 1/2 -1/2 -1/2 and 1/2 0 0 -1/2: the products sum
    /// to 1/2 and the squares to 1 and 1/2.
    #[test]
    fn discrimination_is_the_correlation_with_the_rest() {
        let items = [item("a", 1.0, ""), item("b", 3.0, ""), item("fault", -1.0, "")];
        let stats = of(
            &items,
            &[
                &[Answer(1), Answer(1), Answer(0)],
                &[Answer(1), Answer(0), Answer(0)],
                &[Answer(0), Answer(1), Answer(1)],
                &[Answer(0), Answer(0), Answer(1)],
            ],
        );
        let r = |stats: &ItemStats, name: &str| stats.criteria[name].discrimination().expect("a number");
        assert!((r(&stats, "a") - 0.5 / 0.5_f64.sqrt()).abs() < 1e-12);
        assert!(r(&stats, "b").abs() < 1e-12);
        assert_eq!(r(&stats, "fault"), r(&stats, "a"), "a fault that good responses lack does its work");
        // In a second group the item goes against the others: the products sum to -1/4 and the squares to 1/2 and 1/8.
        let mut both = stats.clone();
        both.merge(&of(&items, &[&[Answer(0), Answer(1), Answer(0)], &[Answer(1), Answer(0), Answer(0)]]));
        assert!((r(&both, "a") - (0.5 - 0.25) / (1.5 * 0.625_f64).sqrt()).abs() < 1e-12);
        assert_eq!(both.shared().iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["b", "a", "fault"]);
        assert!(stats.shared().is_empty(), "one group shares nothing");
    }

    #[test]
    fn criteria_are_bounded_and_the_others_told() {
        let items: Vec<Item> =
            (0..MAX_CRITERIA + 20).map(|at| item(&format!("{at}"), 1.0, &format!("t{at}"))).collect();
        let mut stats = of(&items[..MAX_CRITERIA], &[&vec![Answer(1); MAX_CRITERIA]]);
        stats.merge(&of(&items, &[&vec![Missing; MAX_CRITERIA + 20]]));
        assert_eq!((stats.criteria.len(), stats.tags.len(), stats.others()), (MAX_CRITERIA, MAX_TAGS, 20));
        assert_eq!(stats.all.missing, MAX_CRITERIA as u64 + 20);
    }
}
