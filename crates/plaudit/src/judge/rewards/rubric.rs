//! Reward `rubric`: a judge grades each response by the criteria that come with its row, item by item.

use super::judged_reward::{JudgedReward, PromptSource};
use super::params::{JudgeParams, Mode};
use crate::aggregate::Method;
use crate::reason::{Code, Reason};
use crate::reward::{ParamError, Range, ResourceCache, Reward};
use crate::rollout::Rollout;
use crate::rubric::{self, Bounds, Item, ItemVerdict, RubricFormula, ScoreError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A judge grades each response by weighted criteria that come with its row, and each item's verdict is kept.
///
/// ## What it scores
/// The judge says of every item of the row's rubric whether the response meets it: yes or no, one of the item's `choices`, or *not
/// applicable* with `applies: judge`. `aggregate` makes one number of the verdicts, by the formula of the data set's own grader. A
/// fault (a weight below zero) is asked about as "is it there". Items are asked about in an order drawn for each response, behind
/// prompt and response, so that a cache of prefixes serves all calls about one response. Equal responses are graded once, and so are
/// equal items of a rubric. A verdict is kept for its item and response, whatever call it came from: a rubric that gains an item buys
/// one item.
///
/// A missing verdict is missing. It is asked for again, and then the least and the greatest number over all verdicts that could have
/// come decide: where they are at most `tolerance` apart, the value is their middle, and `missing`, `low` and `high` say so; else the
/// rollout is invalid with the reason that most verdicts failed for. So a fault that nobody could look for is never a pass.
///
/// A row without a rubric is skipped. One whose rubric is empty or cannot be read is invalid with `input.rubric`, which names the place.
///
/// ## When to use it
/// Where every prompt has its own checklist: HealthBench, Rubrics as Rewards, open-instruct, NeMo-Gym, AdvancedIF, tinker-cookbook; or
/// with `rubric` or `file`, where one checklist serves all rows. Rubrics are found in `rubrics`, `rubric`, `llm_judge`, `rubric_items`,
/// `criteria`, `reward_model`, `extra_info` and JSON labels; `field` names another place.
///
/// ## How it can be gamed
/// By a response that names everything that a rubric might ask for: give rubrics items with negative weights, and watch length. By
/// text that speaks to the grader, which is fenced and told to count for nothing. By items that a judge always says yes to: the
/// statistics by item show them.
///
/// ## Example
/// ```yaml
/// checklist: { reward: rubric, weight: 1.0, aggregate: healthbench, clip: [0, 1] }
/// ```
///
/// ## References
/// Arora et al., HealthBench (arXiv 2505.08775); Gunjal et al., Rubrics as Rewards (arXiv 2507.17746).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Rubric {
    /// The judge, by its name in the recipe's `judges`; needed where there are several.
    pub judge: Option<String>,
    /// The rubric of all rows: a list of items, each a text or a map with `criterion`, `weight`, `negative`, `choices` and `tags`.
    /// Without it, each row has its own.
    pub rubric: Option<Vec<Value>>,
    /// A file with the rubric of all rows, in JSON, YAML or TOML, in the folder of the recipe.
    pub file: Option<String>,
    /// The field of the row that holds the rubric, such as `checks.list`; without it, the places of public data sets are tried.
    pub field: Option<String>,
    /// How the verdicts become one number: `healthbench`, `weighted`, `signed`, `mean`, `all`, `any`, `min`, `max`, or `implicit`.
    pub aggregate: RubricFormula,
    /// How many items a call asks about, or `all`.
    pub items_per_call: ItemsPerCall,
    /// Whether every item counts (`always`), or the judge may say that one does not apply to the query (`judge`).
    pub applies: Applies,
    /// Tags, such as `critical`: where an item with one of them is failed altogether, the response gets the least that its rubric can
    /// give.
    pub veto: Vec<String>,
    /// The smallest and the largest number. Without it, `healthbench` and `weighted` may go below -1.
    pub clip: Option<[f64; 2]>,
    /// How far missing verdicts may leave the number open, from its least to its greatest.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tolerance: f64,
    /// The share of verdicts that is asked for once more, each item alone, to see whether the judge holds to them in company.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub audit: f64,
    /// Decides the order of the items.
    pub seed: u64,
    /// Whether the judge sees the thought of a response, or only what comes after it.
    pub show_thought: bool,
    /// Whether the judge sees the reference, where there is one.
    pub show_reference: bool,
    /// The longest response that the judge sees whole, in characters; of a longer one it sees head and tail.
    #[schemars(range(min = 100, max = 1_000_000))]
    pub longest: usize,
}

/// How many items a call asks about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ItemsPerCall {
    /// So many.
    Count(#[schemars(range(min = 1, max = 100))] usize),
    /// All.
    All(AllItems),
}

/// The word for all items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AllItems {
    /// Every item of the rubric.
    All,
}

/// Whether items may not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Applies {
    /// Every item counts.
    Always,
    /// The judge may say that an item does not apply.
    Judge,
}

impl Default for Rubric {
    fn default() -> Self {
        let params = JudgeParams::default();
        Self {
            judge: None,
            rubric: None,
            file: None,
            field: None,
            aggregate: RubricFormula::default(),
            items_per_call: ItemsPerCall::Count(rubric::ITEMS_PER_CALL),
            applies: Applies::Always,
            veto: Vec::new(),
            clip: None,
            tolerance: 0.0,
            audit: 0.0,
            seed: 0,
            show_thought: params.show_thought,
            show_reference: params.show_reference,
            longest: params.longest,
        }
    }
}

/// A rubric reward, ready to grade.
#[derive(Debug)]
pub struct RubricGrader {
    /// Where the rubric comes from.
    source: RubricPlace,
    pub(in crate::judge) aggregate: RubricFormula,
    /// The most items of a call.
    pub(in crate::judge) items_per_call: usize,
    pub(in crate::judge) may_not_apply: bool,
    veto: Vec<String>,
    clip: Option<[f64; 2]>,
    pub(in crate::judge) tolerance: f64,
    /// The share of verdicts that is asked for once more.
    pub(in crate::judge) audit: f64,
}

#[derive(Debug)]
enum RubricPlace {
    /// The recipe has it.
    Recipe(Arc<[Item]>),
    /// The row has it in that field, or in one of the places of public data sets.
    Row(Option<String>),
}

impl Reward<JudgedReward> for Rubric {
    const NAME: &'static str = "rubric";
    const FACTS: &'static [&'static str] = &["met", "missing"];

    fn build(self, cache: &mut ResourceCache) -> Result<JudgedReward, Vec<ParamError>> {
        let mut found = Vec::new();
        if let Some([low, high]) = self.clip
            && !(low < high && low.is_finite() && high.is_finite())
        {
            found.push(ParamError::new("clip", "must be two numbers, the smaller first"));
        }
        let places = [self.rubric.is_some(), self.file.is_some(), self.field.is_some()];
        if places.into_iter().filter(|given| *given).count() > 1 {
            found.push(ParamError::new("rubric", "comes from one of rubric, file and field"));
        }
        if self.items_per_call == ItemsPerCall::Count(0) {
            found.push(ParamError::new("items_per_call", "must be 1 or more, or all"));
        }
        if self.audit > 0.0 && self.items_per_call == ItemsPerCall::Count(1) {
            found
                .push(ParamError::new("audit", "asks about an item alone, as items_per_call: 1 does anyway"));
        }
        let source = self.source(cache).map_err(|error| found.push(error)).ok();
        let (Some(source), true) = (source, found.is_empty()) else { return Err(found) };
        let range = match (self.clip, self.aggregate) {
            (Some([low, high]), _) => Range::new(low, high),
            // A rubric may have more to lose than to win; what is too long to be graded gets -1.
            (None, RubricFormula::Healthbench | RubricFormula::Weighted | RubricFormula::Signed) => {
                Range::new(-1.0, 1.0)
            }
            (None, _) => Range::new(0.0, 1.0),
        };
        let params = JudgeParams {
            judge: self.judge,
            mode: Mode::Pointwise,
            seed: self.seed,
            show_thought: self.show_thought,
            show_reference: self.show_reference,
            longest: self.longest,
            ..JudgeParams::default()
        };
        let grader = RubricGrader {
            source,
            aggregate: self.aggregate,
            items_per_call: match (self.aggregate, self.items_per_call) {
                (RubricFormula::Implicit, _) | (_, ItemsPerCall::All(_)) => usize::MAX,
                (_, ItemsPerCall::Count(count)) => count,
            },
            may_not_apply: self.applies == Applies::Judge && self.aggregate != RubricFormula::Implicit,
            veto: self.veto,
            clip: self.clip,
            tolerance: self.tolerance,
            audit: self.audit,
        };
        Ok(JudgedReward::new(params, Method::default(), PromptSource::Rubric(Box::new(grader)), range))
    }
}

impl Rubric {
    fn source(&self, cache: &mut ResourceCache) -> Result<RubricPlace, ParamError> {
        let (key, items) = match (&self.rubric, &self.file) {
            (Some(list), _) => ("rubric", rubric::from_value(&Value::Array(list.clone()), "rubric")),
            (None, Some(file)) => {
                let refuse = |message: String| ParamError::new("file", message);
                let path = cache.locate(file).map_err(refuse)?;
                let text = std::fs::read_to_string(&path)
                    .map_err(|error| refuse(format!("cannot be read: {error}")))?;
                ("file", rubric::parse_file(file, &text))
            }
            (None, None) => return Ok(RubricPlace::Row(self.field.clone())),
        };
        let items = items.map_err(|error| ParamError::new(key, error.to_string()))?;
        self.aggregate.check(&items).map_err(|error| ParamError::new(key, error.to_string()))?;
        Ok(RubricPlace::Recipe(items.into()))
    }
}

impl RubricGrader {
    /// The rubric by which a rollout is graded, or why there is none: the row has none, or none that can be read.
    pub(crate) fn rubric_of(&self, rollout: &Rollout<'_>) -> Result<Arc<[Item]>, Reason> {
        let field = match &self.source {
            RubricPlace::Recipe(items) => return Ok(Arc::clone(items)),
            RubricPlace::Row(field) => field,
        };
        let reference = || rollout.reference.as_deref().map(|text| Value::String(text.to_owned()));
        let found = match field {
            Some(field) => match rubric::at(&rollout.extra, field) {
                Some(value) => rubric::from_value(value, field).map(Some),
                None => Ok(None),
            },
            None => match rubric::find(&rollout.extra) {
                Ok(None) => rubric::in_reference(reference().as_ref()),
                found => found.map(|found| found.map(|(_, items)| items)),
            },
        };
        let bad = |message: String| Reason::new(Code::BadRubric, message);
        let items = found.map_err(|error| bad(error.to_string()))?.ok_or(Code::MissingRubric)?;
        match self.aggregate.check(&items) {
            Ok(()) => Ok(items.into()),
            Err(error) => Err(bad(error.to_string())),
        }
    }

    /// The range in which the number lies that verdicts come to.
    pub(in crate::judge) fn bounds(
        &self,
        items: &[Item],
        verdicts: &[ItemVerdict],
    ) -> Result<Bounds, ScoreError> {
        let mut bounds = self.aggregate.bounds(items, verdicts, self.may_not_apply)?;
        let vetoes = |item: &Item| item.tags.iter().any(|tag| self.veto.contains(tag));
        let fails = |item: &Item, verdict: ItemVerdict| {
            let worst = if item.weight < 0.0 || item.negative { item.answers().len() - 1 } else { 0 };
            vetoes(item) && verdict == ItemVerdict::Answer(worst)
        };
        let pairs = || items.iter().zip(verdicts.iter().copied());
        let vetoed = pairs().any(|(item, verdict)| fails(item, verdict));
        if vetoed || pairs().any(|(item, verdict)| vetoes(item) && verdict == ItemVerdict::Missing) {
            bounds.low = self.least(items);
            bounds.high = if vetoed { bounds.low } else { bounds.high };
        }
        if let Some([low, high]) = self.clip {
            bounds = Bounds { low: bounds.low.clamp(low, high), high: bounds.high.clamp(low, high) };
        }
        Ok(bounds)
    }

    /// The least that a rubric can give.
    pub(in crate::judge) fn least(&self, items: &[Item]) -> f64 {
        let missing = vec![ItemVerdict::Missing; items.len()];
        let least = self.aggregate.bounds(items, &missing, false).map_or(0.0, |bounds| bounds.low);
        self.clip.map_or(least, |[low, high]| least.clamp(low, high))
    }
}
