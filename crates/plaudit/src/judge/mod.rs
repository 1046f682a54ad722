//! LLM judges: rewards, prompts, answers, and everything between a group and an HTTP call.
//!
//! | Module | What it is |
//! |---|---|
//! | [`rewards`] | judged rewards and their parameters; one file each, one line in [`REWARDS`] |
//! | [`config`] | what a recipe says of a judge, and what that means |
//! | [`group_view`] | a group as a judge sees it |
//! | [`session`] | state machine of one group: which calls next, and the outcomes |
//! | [`call`] | one call: what is shown and expected |
//! | `free_question` | a call in the words of a custom reward |
//! | `rubric_session`, `rubric_call` | the same as a session and its calls, for the items of a rubric |
//! | [`prompt`] | rendering, templates, prompt-injection defence |
//! | [`endpoint`] | request and reply of each kind of endpoint |
//! | [`answer`] | verdicts and how they are parsed |
//! | [`client`] | admission, retries, budgets, single-flight, transport |
//! | [`proxy`] | through which proxy a judge is asked |
//! | [`runner`] | runs sessions on a runtime |
//! | [`stats`] | statistics of verdicts |

mod address;
pub mod answer;
pub mod call;
pub mod client;
pub mod config;
pub mod endpoint;
mod free_question;
pub mod group_view;
pub mod prompt;
pub mod proxy;
pub mod rewards;
mod rubric_call;
pub mod rubric_session;
pub mod runner;
pub mod secret;
pub mod session;
pub mod stats;

pub use crate::aggregate::design::MAX_SHOWN;
pub use answer::{
    AnswerFormat, AnswerLocation, AnswerParser, ExpectedAnswer, ItemAnswer, Reply, Side, Usage, Verdict,
};
pub use rewards::judged_reward::JudgedReward;
pub use rubric_call::rubric_frame_bytes;

use crate::reward::Registration;
use rewards::{custom_prompt, principle, reward_model, rubric};

/// Every judged reward, by name. A new one is a file in `rewards` and a line here.
pub const REWARDS: &[Registration<JudgedReward>] = &[
    Registration::of::<custom_prompt::CustomPrompt>(),
    Registration::of::<principle::Principle>(),
    Registration::of::<reward_model::RewardModel>(),
    Registration::of::<rubric::Rubric>(),
];
