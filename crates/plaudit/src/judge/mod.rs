//! LLM judges: rewards, prompts, answers, and everything between a group and an HTTP call.
//!
//! | Module | What it is |
//! |---|---|
//! | [`rewards`] | judged rewards and their parameters; one file each, one line in [`KINDS`] |
//! | [`config`] | what a recipe says of a judge, and what that means |
//! | [`group_view`] | a group as a judge sees it |
//! | [`session`] | state machine of one group: which calls next, and the outcomes |
//! | [`call`] | one call: what is shown and expected |
//! | [`prompt`] | rendering, templates, prompt-injection defence |
//! | [`endpoint`] | request and reply of each kind of endpoint |
//! | [`answer`] | verdicts and how they are parsed |
//! | [`client`] | admission, retries, budgets, single-flight, transport |
//! | [`runner`] | runs sessions on a runtime |
//! | [`stats`] | statistics of verdicts |

mod address;
pub mod answer;
pub mod call;
pub mod client;
pub mod config;
pub mod endpoint;
pub mod group_view;
pub mod prompt;
pub mod rewards;
pub mod runner;
pub mod secret;
pub mod session;
pub mod stats;

pub use crate::aggregate::design::MOST_SHOWN;
pub use answer::{AnswerFormat, AnswerLocation, AnswerParser, ExpectedAnswer, Reply, Side, Usage, Verdict};
pub use rewards::judged_reward::JudgedReward;

use crate::reward::{ParamError, Registered, inline_schema, parameters};
use crate::tokenizer::ResourceCache;
use rewards::{custom_prompt, principle, reward_model};

/// Every judged reward, by name. A new one is a file in `rewards` and a line here.
pub const KINDS: &[Kind] = &[
    Kind::of::<custom_prompt::CustomPrompt>(),
    Kind::of::<principle::Principle>(),
    Kind::of::<reward_model::RewardModel>(),
];

/// The parameters of a judged reward, which are also its place in the registry.
pub trait Asks: Registered + Default {
    /// The loaded reward, or everything that is wrong with the parameters.
    fn build(self, cache: &mut ResourceCache) -> Result<JudgedReward, Vec<ParamError>>;
}

/// One judged reward of the registry.
pub type Kind = crate::reward::Kind<JudgedReward>;

impl Kind {
    /// The entry of one reward.
    pub const fn of<R: Asks>() -> Self {
        Self {
            name: R::NAME,
            aliases: R::ALIASES,
            needs_reference: R::NEEDS_REFERENCE,
            schema: || inline_schema::<R>(),
            build: |given, cache| parameters::<R>(given)?.build(cache),
        }
    }
}
