//! How is a judge asked, and what counts as its answer? Prompts, fences, verdicts and the questions of a group; nothing
//! here opens a connection. One file a reward, one line in [`KINDS`].

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

use crate::reward::{ParamError, Registered, inline_schema, parameters};
use crate::tokenizer::ResourceCache;

/// Every judged reward, by name. A new one is a file beside this and a line here.
pub const KINDS: &[Kind] =
    &[Kind::of::<own::Judge>(), Kind::of::<principle::Principle>(), Kind::of::<reward_model::RewardModel>()];

/// The parameters of a judged reward, which are also its place in the registry.
pub trait Asks: Registered + Default {
    /// The loaded question, or everything that is wrong with the parameters.
    fn build(self, cache: &mut ResourceCache) -> Result<Question, Vec<ParamError>>;
}

/// One judged reward of the registry.
pub type Kind = crate::reward::Kind<Question>;

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
