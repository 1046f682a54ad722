//! How is a judge asked, and what counts as its answer? Prompts, fences, verdicts and the questions of a group; nothing
//! here opens a connection. One file a reward, one line in [`REWARDS`].

pub mod asking;
pub mod case;
pub mod client;
pub mod detect;
pub mod fence;
pub mod findings;
pub mod inquiry;
mod marks;
pub mod overlap;
pub mod own;
pub mod principle;
pub mod principles;
pub mod query;
pub mod question;
pub mod read;
pub mod reply;
pub mod reward_model;
pub mod runner;
pub mod template;
pub mod verdict;

pub use crate::aggregate::design::MOST_SHOWN;
pub use query::{Query, Request, Voice};
pub use question::Question;
pub use read::Reading;
pub use reply::Reply;
pub use verdict::{Form, Place, Side, Usage, Verdict, Wanted};

use crate::reward::Registration;

/// Every judged reward, by name. A new one is a file beside this and a line here.
pub const REWARDS: &[Registration<Question>] = &[
    Registration::of::<own::Judge>(),
    Registration::of::<principle::Principle>(),
    Registration::of::<reward_model::RewardModel>(),
];
