//! Reward `principle`: a judge compares, ranks or scores responses by principles, shipped or the recipe's own.

use super::judged_reward::{JudgedReward, PromptSource};
use super::params::{JudgeParams, Mode};
use super::principle_sets;
use crate::reward::{ParamError, Range, ResourceCache, Reward};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A judge compares, ranks or scores the responses of a group by principles.
///
/// ## What it scores
/// In mode `pairwise`, the judge sees two responses at a time and says which follows the principles better; the verdicts
/// of a group become one number a response in [-1, 1], by `aggregate`. With `bradley_terry`, groups without real
/// differences get numbers close to 0. In mode `listwise` it ranks several at once; in mode `pointwise` it scores each
/// alone, from 0 to 1. Sides are balanced over the group. Responses are shown without their thought, between
/// unguessable markers, and identical ones are judged once. A verdict that cannot be read is asked for again, and in the
/// end is missing: it is never a tie. A response that is empty once its thought is taken away gets the floor.
///
/// ## When to use it
/// Where no rule can say what is good: open questions, dialogue, writing, safety. Pairwise for groups of up to about
/// 16; `design: adaptive` or line-ups (`mode: listwise` with `line_up: 4`) when calls are money.
///
/// ## How it can be gamed
/// By whatever the judge likes: length, confident tone, headings. Watch the correlation with length and the injection
/// attempts in the statistics. Text that addresses the judge is fenced and told to count against the response, but a
/// weak judge may still listen.
///
/// ## Example
/// ```yaml
/// quality: { reward: principle, weight: 0.95, mode: pairwise, principles: [helpfulness, harmlessness, honesty] }
/// ```
///
/// ## References
/// Bradley and Terry, Rank analysis of incomplete block designs (1952); RM-Gallery's principle rewards; Zheng et al.,
/// Judging LLM-as-a-judge (arXiv 2306.05685), for the bias towards a position.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Principle {
    /// The principles: sentences of your own, or names of shipped sets. Those are helpfulness, harmlessness, honesty, and
    /// for single tasks safety, factuality, brainstorming, chat, generation, summarization, translation, precise_if, focus,
    /// math, role_playing, classification, closed_qa, open_qa, code, reasoning and rewrite.
    #[schemars(length(min = 1, max = 32))]
    pub principles: Vec<String>,
    /// The best score in mode pointwise; the worst is 0. Small scales agree best with people.
    #[schemars(range(min = 1, max = 100))]
    pub scale: u32,
    /// What all judged rewards share.
    #[serde(flatten)]
    pub params: JudgeParams,
}

impl Default for Principle {
    fn default() -> Self {
        let base = ["helpfulness", "harmlessness", "honesty"];
        Self { principles: base.map(str::to_owned).to_vec(), scale: 5, params: JudgeParams::default() }
    }
}

impl Reward<JudgedReward> for Principle {
    const NAME: &'static str = "principle";
    const ALIASES: &'static [&'static str] = &["general"];

    fn build(self, _: &mut ResourceCache) -> Result<JudgedReward, Vec<ParamError>> {
        let mut found = Vec::new();
        let mut sentences = Vec::new();
        for written in &self.principles {
            match principle_sets::named(written) {
                Some(shipped) => sentences.extend(shipped.iter().map(|sentence| (*sentence).to_owned())),
                None if written.trim().contains(char::is_whitespace) => {
                    sentences.push(written.trim().to_owned());
                }
                None => found.push(ParamError::new(
                    "principles",
                    format!(
                        "{written:?} is no shipped principle, and a sentence of your own has more than one word; \
                         there are {}",
                        principle_sets::names().join(", ")
                    ),
                )),
            }
        }
        let range = match self.params.mode {
            Mode::Pointwise => Range::new(0.0, 1.0),
            Mode::Pairwise | Mode::Listwise => Range::new(-1.0, 1.0),
        };
        let method = self.params.check();
        let method = match method {
            Ok(method) => ParamError::gather(found.into_iter().map(Err), Ok(method))?,
            Err(more) => {
                found.extend(more);
                return Err(found);
            }
        };
        let prompt = PromptSource::Principles { principles: sentences, scale: self.scale };
        Ok(JudgedReward::new(self.params, method, prompt, range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reward::inline_schema;
    use serde_json::json;

    #[test]
    fn every_shipped_set_is_named_in_the_parameter() {
        let schema = inline_schema::<Principle>();
        let described = schema["properties"]["principles"]["description"].as_str().expect("a description");
        assert!(principle_sets::names().iter().all(|name| described.contains(name)), "{described}");
    }

    #[test]
    fn principles_are_names_or_sentences() {
        let load = |principles: serde_json::Value| {
            let reward: Principle =
                serde_json::from_value(json!({ "principles": principles })).expect("parameters");
            reward.build(&mut ResourceCache::default())
        };
        let reward = load(json!(["honesty", "Answers in verse."])).expect("a reward");
        let PromptSource::Principles { principles, .. } = &reward.prompt else { panic!("no principles") };
        assert_eq!((principles.len(), principles[3].as_str()), (4, "Answers in verse."));
        assert_eq!(load(json!(["honesti"])).expect_err("refused")[0].key, "principles");
    }
}
