//! What does a scalar reward model say of a response? One number from one forward pass, as it is or squashed.

use super::Asks;
use super::asking::{Asking, Mode};
use super::question::{Question, Wording};
use crate::aggregate::Method;
use crate::reward::{ParamError, Range, Registered};
use crate::tokenizer::ResourceCache;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The number that a scalar reward model gives to the prompt and the response.
///
/// ## What it scores
/// The model's number for the conversation of prompt and response, through the logistic function unless `sigmoid` is
/// off. A number outside `min` and `max` is invalid, never clamped.
///
/// ## When to use it
/// When a trained reward model is at hand: it costs one forward pass a response. Name a judge of kind `classify`,
/// `pooling` or `embeddings`. The same judge can be the `prior` of a pairwise reward.
///
/// ## How it can be gamed
/// By length, lists and praise, as reward models are known to like; the correlation with length in the statistics shows
/// it.
///
/// ## Example
/// ```yaml
/// taste: { reward: reward_model, weight: 0.5 }
/// ```
///
/// ## References
/// Malik et al., RewardBench 2 (arXiv 2506.01937); Liu et al., RM-Bench (arXiv 2410.16184).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RewardModel {
    /// The judge, by its name in the recipe's `judges`; needed where there are several.
    pub judge: Option<String>,
    /// Whether the number is put through the logistic function.
    pub sigmoid: bool,
    /// The smallest number.
    pub min: f64,
    /// The largest number.
    pub max: f64,
    /// Whether the model sees the thought of a response, or only what comes after it.
    pub show_thought: bool,
}

impl Default for RewardModel {
    fn default() -> Self {
        Self { judge: None, sigmoid: true, min: 0.0, max: 1.0, show_thought: false }
    }
}

impl Registered for RewardModel {
    const NAME: &'static str = "reward_model";
}

impl Asks for RewardModel {
    fn build(self, _: &mut ResourceCache) -> Result<Question, Vec<ParamError>> {
        if self.min >= self.max || !self.min.is_finite() || !self.max.is_finite() {
            return Err(vec![ParamError::new("min", "must be below max")]);
        }
        let asking = Asking {
            judge: self.judge,
            mode: Mode::Pointwise,
            show_thought: self.show_thought,
            longest: 1_000_000,
            ..Asking::default()
        };
        let wording = Wording::Scalar { sigmoid: self.sigmoid };
        Ok(Question::new(asking, Method::default(), wording, Range::new(self.min, self.max)))
    }
}
