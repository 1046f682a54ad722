//! `dapo.overlong`: DAPO's soft penalty for responses near the length limit, in each trainer's variant.

use super::length;
use super::{ParamError, Range, ResourceCache, Reward, Rule};
use crate::outcome::{Fact, Info, Outcome};
use crate::text::scope::Scope;
use crate::tokenizer::{CounterParams, MAX_TEXT, Tokenizer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The soft overlong punishment, number for number as a trainer computes it.
///
/// ## What it scores
/// With the length L in tokens, the limit M (`max_completion_len`) and the buffer C (`soft_punish_cache`), nothing
/// is taken up to M - C. In the buffer every variant takes `factor * (L - (M - C)) / C`. Beyond M
///
/// - `trl`, `open_r1` and `openrlhf` stay at `-factor`;
/// - `verl`, which AReaL and NeMo-RL follow, goes on without a bound;
/// - `skyrl` gives 0, because its example drops the whole reward there; a component cannot take back what the others
///   give, so beside other components this variant is kind to endless responses.
///
/// L is the rollout's own token count; a rollout without one is counted by the tokenizer that `tokenizer_type`
/// names, and skipped where none is named.
///
/// ## When to use it
/// To move a training from its trainer's built-in punishment to a recipe without a change in numbers. For a new
/// training, `total_length` says the same in fewer words.
///
/// ## How it can be gamed
/// It only ever punishes length. `verl` lets one endless response outweigh a whole group; `skyrl` makes it pay to
/// run over the limit rather than to end close to it.
///
/// ## Example
/// ```yaml
/// overlong: { reward: dapo.overlong, weight: 1.0, max_completion_len: 16384, soft_punish_cache: 4096 }
/// ```
///
/// ## References
/// Yu et al., DAPO (arXiv 2503.14476), equation 13; TRL and open-r1 `get_soft_overlong_punishment`; OpenRLHF
/// `apply_overlong_penalty`; verl's DAPO reward manager; SkyRL's DAPO example.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DapoOverlong {
    /// The longest allowed length, in tokens.
    pub max_completion_len: u64,
    /// How many tokens before it the punishment sets in. At most `max_completion_len`; 0 makes it a step, which only
    /// `trl` and `open_r1` define.
    pub soft_punish_cache: u64,
    /// Whose numbers.
    pub variant: Variant,
    /// What the punishment is multiplied by.
    #[schemars(range(min = 0.0))]
    pub factor: f64,
    /// The tokenizer for rollouts without a token count.
    #[serde(flatten)]
    pub counter: CounterParams,
}

/// Whose numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Variant {
    /// TRL's.
    Trl,
    /// Open-r1's, the same as TRL's.
    OpenR1,
    /// OpenRLHF's, bounded by the buffer.
    #[serde(rename = "openrlhf")]
    OpenRlhf,
    /// Verl's, without a bound.
    Verl,
    /// AReaL's, the same as verl's.
    Areal,
    /// NeMo-RL's, the same as verl's.
    NemoRl,
    /// SkyRL's, nothing beyond the limit.
    #[serde(rename = "skyrl")]
    SkyRl,
}

impl Default for DapoOverlong {
    /// The limits of open-r1.
    fn default() -> Self {
        Self {
            max_completion_len: 16384,
            soft_punish_cache: 4096,
            variant: Variant::Trl,
            factor: 1.0,
            counter: CounterParams::default(),
        }
    }
}

impl DapoOverlong {
    fn punishment(&self, length: u64) -> f64 {
        let (max, band) = (self.max_completion_len, self.soft_punish_cache);
        match self.variant {
            Variant::Trl | Variant::OpenR1 | Variant::OpenRlhf => {
                self.factor * length::soft_overlong(length, max, band)
            }
            Variant::Verl | Variant::Areal | Variant::NemoRl => {
                let over = length.saturating_sub(max.saturating_sub(band));
                -(over as f64 / band as f64 * self.factor)
            }
            Variant::SkyRl if length > max => 0.0,
            Variant::SkyRl => self.factor * length::soft_overlong(length, max, band),
        }
    }

    fn is_unbounded(&self) -> bool {
        matches!(self.variant, Variant::Verl | Variant::Areal | Variant::NemoRl)
    }
}

impl Reward<Rule> for DapoOverlong {
    const NAME: &'static str = "dapo.overlong";
    const FACTS: &'static [&'static str] = &["length"];

    fn build(self, cache: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let buffer = self.soft_punish_cache;
        let (within, key) = (buffer <= self.max_completion_len, "soft_punish_cache");
        let divides = buffer > 0 || matches!(self.variant, Variant::Trl | Variant::OpenR1);
        let checks = [
            ParamError::check(within, key, "the buffer must not be above max_completion_len"),
            ParamError::check(divides, key, "this variant divides by the buffer: at least 1"),
            ParamError::check(self.factor >= 0.0, "factor", "a negative factor would reward long responses"),
        ];
        let counter = ParamError::gather(checks, self.counter.load(cache))?;
        let any_length = counter.as_ref().is_none_or(Tokenizer::is_unlimited);
        let needs_tokens = counter.is_none();
        let (min, floor) = match self.is_unbounded() {
            // A text that is too long to be counted gets no more than the longest one that is: a token has at least a
            // byte.
            true => (f64::NEG_INFINITY, self.punishment(MAX_TEXT as u64)),
            false => (-self.factor, -self.factor),
        };
        let rule = Rule::each(Range::new(min, 0.0), move |sample| {
            length::tokens(sample, Scope::Final, counter.as_ref(), floor).map(|length| {
                Outcome::scored(self.punishment(length), Info::of([("length", Fact::Count(length))]))
            })
        });
        Ok(rule.floor(floor).any_length(any_length).needs_tokens(needs_tokens))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::Code;
    use crate::rule::test_util::{counted, rejected, scored};
    use serde_json::json;

    #[test]
    fn variants_differ_beyond_the_limit() {
        for (variant, beyond) in [
            ("trl", -0.5),
            ("open_r1", -0.5),
            ("openrlhf", -0.5),
            ("verl", -3.0),
            ("areal", -3.0),
            ("nemo_rl", -3.0),
            ("skyrl", 0.0),
        ] {
            let parameters = json!({"max_completion_len": 100, "soft_punish_cache": 20, "variant": variant, "factor": 0.5});
            for (tokens, score) in [(80, 0.0), (90, -0.25), (100, -0.5), (200, beyond)] {
                assert_eq!(
                    counted::<DapoOverlong>(parameters.clone(), tokens).value(),
                    Some(score),
                    "{variant} {tokens}"
                );
            }
        }
    }

    #[test]
    fn tokens_are_needed_or_counted() {
        assert_eq!(scored::<DapoOverlong>(json!({}), "text"), Outcome::skipped(Code::MissingTokens));
        let parameters = json!({"max_completion_len": 4, "soft_punish_cache": 2, "tokenizer_type": "simple"});
        assert_eq!(scored::<DapoOverlong>(parameters, "one two three").value(), Some(-0.5));
    }

    #[test]
    fn too_long_to_count_has_a_finite_floor() {
        let parameters = json!({"variant": "verl", "tokenizer_type": "tiktoken"});
        let outcome = scored::<DapoOverlong>(parameters, &"word ".repeat(200_000));
        assert_eq!(outcome.value(), Some(-((MAX_TEXT - 12288) as f64) / 4096.0));
    }

    #[test]
    fn buffers_that_cannot_be_meant_are_refused() {
        let rejected = |parameters| rejected::<DapoOverlong>(parameters);
        assert_eq!(rejected(json!({"soft_punish_cache": 20000})), ["soft_punish_cache"]);
        assert_eq!(rejected(json!({"soft_punish_cache": 0, "variant": "verl"})), ["soft_punish_cache"]);
        assert_eq!(rejected(json!({"factor": -1.0})), ["factor"]);
        assert!(rejected(json!({"soft_punish_cache": 0})).is_empty());
    }
}
