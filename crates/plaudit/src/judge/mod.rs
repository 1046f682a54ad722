//! How is a judge asked, and what counts as its answer? Prompts, fences, verdicts and the questions of a group; nothing
//! here opens a connection.

pub mod detect;
pub mod fence;
pub mod read;
pub mod reply;
pub mod verdict;

pub use read::Reading;
pub use reply::Reply;
pub use verdict::{Form, Place, Side, Usage, Verdict, Wanted};
