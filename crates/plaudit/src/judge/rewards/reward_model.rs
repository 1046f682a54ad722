//! Reward `reward_model`: the number of a scalar reward model, as it is or through the logistic function.

use super::judged_reward::{JudgedReward, PromptSource};
use super::params::{JudgeParams, Mode};
use crate::aggregate::Method;
use crate::reward::{ParamError, Range, ResourceCache, Reward};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The number that a scalar reward model gives to the prompt and the response.
///
/// ## What it scores
/// The number that the model itself gives to the conversation of prompt and response (its logit), put through the
/// logistic function once unless `sigmoid` is off. vLLM is told not to apply it itself (`use_activation: false`). A number outside
/// `min` and `max` is invalid, never clamped: set both with `sigmoid: false`.
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
    /// Whether the model's own number is put through the logistic function, which brings it between 0 and 1.
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

impl Reward<JudgedReward> for RewardModel {
    const NAME: &'static str = "reward_model";

    fn build(self, _: &mut ResourceCache) -> Result<JudgedReward, Vec<ParamError>> {
        if self.min >= self.max || !self.min.is_finite() || !self.max.is_finite() {
            return Err(vec![ParamError::new("min", "must be below max")]);
        }
        let params = JudgeParams {
            judge: self.judge,
            mode: Mode::Pointwise,
            show_thought: self.show_thought,
            longest: 1_000_000,
            ..JudgeParams::default()
        };
        let prompt = PromptSource::Scalar { sigmoid: self.sigmoid };
        Ok(JudgedReward::new(params, Method::default(), prompt, Range::new(self.min, self.max)))
    }
}
