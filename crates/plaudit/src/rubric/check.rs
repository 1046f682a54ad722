//! Lints of a rubric: items that say the same, ask two things, cannot be answered from the response, or cannot matter.

use super::{Item, RubricFormula};
use std::collections::BTreeSet;

/// What is odd about an item of a rubric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemRemark {
    /// Its place in the rubric.
    pub item: usize,
    /// A word for the kind of remark.
    pub kind: &'static str,
    /// What is odd.
    pub message: String,
}

/// Words in common over all words, from which on two criteria say the same.
const SAME: f64 = 0.8;
/// The fewest words of a criterion that is compared by the words that it has in common with another.
const FEWEST_WORDS: usize = 4;
/// Texts that join two questions into one.
const JOINTS: [&str; 6] = [" and also ", " as well as ", "; ", ", and also ", ". also ", " and/or "];
/// What a judge does not see: the user's mind, other responses, the world outside of the text.
const OUT_OF_SIGHT: [(&str, &str); 15] = [
    ("other response", "the judge sees one response"),
    ("the other answer", "the judge sees one response"),
    ("compared to the previous", "the judge sees one response"),
    ("better than the", "the judge sees one response"),
    ("user is satisfied", "the judge sees no later turn"),
    ("user will", "the judge sees no later turn"),
    ("response time", "the judge sees no clock"),
    ("how long it took", "the judge sees no clock"),
    ("screenshot", "the judge sees text alone"),
    ("in the image", "the judge sees text alone"),
    ("the attached", "the judge sees no attachment"),
    ("link works", "the judge opens no link"),
    ("links work", "the judge opens no link"),
    ("url is valid", "the judge opens no link"),
    ("code runs", "the judge runs no program: reward code_execution does"),
];
/// How a criterion begins that asks for the absence of something.
const DENIALS: [&str; 8] = [
    "does not ",
    "do not ",
    "doesn't ",
    "avoids ",
    "never ",
    "the response does not ",
    "the response avoids ",
    "no ",
];
/// The share of the points below which an item hardly moves the number.
const LEAST_SHARE: f64 = 0.01;

fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// What is odd about a rubric, item by item. Each remark is a guess from the wording, to be looked at.
pub fn check(items: &[Item], formula: RubricFormula) -> Vec<ItemRemark> {
    let all: Vec<BTreeSet<String>> = items.iter().map(|item| words(&item.criterion)).collect();
    let sizes: f64 = items.iter().map(|item| item.weight.abs()).sum();
    let weighs =
        matches!(formula, RubricFormula::Healthbench | RubricFormula::Weighted | RubricFormula::Signed);
    let mut remarks = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let mut say = |kind, message: String| remarks.push(ItemRemark { item: at, kind, message });
        let twin = (0..at).find(|other| {
            let common = all[at].intersection(&all[*other]).count();
            let union = all[at].union(&all[*other]).count();
            all[at] == all[*other] || (common >= FEWEST_WORDS && common as f64 >= SAME * union as f64)
        });
        if let Some(twin) = twin {
            say("duplicate", format!("says nearly the same as item {}, so that it counts twice", twin + 1));
        }
        let text = item.criterion.to_lowercase();
        let joint = JOINTS.iter().find(|joint| text.contains(*joint));
        let questions = text.matches('?').count();
        if questions > 1 {
            say("two", format!("asks {questions} questions, to which there is one answer"));
        } else if let Some(joint) = joint {
            say("two", format!("asks two things, joined by \"{}\": is half of it met?", joint.trim()));
        }
        if let Some((words, why)) = OUT_OF_SIGHT.iter().find(|(words, _)| text.contains(words)) {
            say("unseen", format!("asks about \"{words}\", but {why}"));
        }
        if item.weight < 0.0 && DENIALS.iter().any(|denial| text.starts_with(denial)) {
            say(
                "turned",
                "costs points where a fault is absent: say what the fault is, and leave out the \"not\""
                    .to_owned(),
            );
        }
        if !weighs && items.iter().any(|other| other.weight != item.weight) && item.weight != 1.0 {
            say("weight", format!("has the weight {}, which its formula does not look at", item.weight));
        } else if weighs && item.weight.abs() < LEAST_SHARE * sizes {
            say(
                "weight",
                format!("has the weight {} of {sizes}, which hardly moves the number", item.weight),
            );
        }
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rubric::from_value;
    use serde_json::json;

    #[test]
    fn each_kind_of_remark_has_its_items() {
        let rubric = json!([
            { "criterion": "Names the capital of France.", "weight": 200 },
            { "criterion": "Names the capital of  FRANCE", "weight": 200 },
            { "criterion": "Is polite as well as short.", "weight": 100 },
            { "criterion": "Is it right? Is it short?", "weight": 100 },
            { "criterion": "Is better than the other response.", "weight": 100 },
            { "criterion": "Does not insult the reader.", "weight": -100 },
            { "criterion": "Ends with a full stop.", "weight": 1 },
            { "criterion": "Says that Paris is a city and that it is in France.", "weight": 100 },
        ]);
        let items = from_value(&rubric, "rubric").expect("a rubric");
        let found = |formula| {
            let remarks = check(&items, formula);
            remarks.into_iter().map(|remark| (remark.item, remark.kind)).collect::<Vec<_>>()
        };
        let usual = [(1, "duplicate"), (2, "two"), (3, "two"), (4, "unseen"), (5, "turned"), (6, "weight")];
        assert_eq!(found(RubricFormula::Healthbench), usual);
        let unweighed = found(RubricFormula::All);
        assert!(unweighed.contains(&(0, "weight")) && !unweighed.contains(&(6, "weight")));
    }
}
