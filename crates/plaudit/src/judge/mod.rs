//! How is a judge asked, and what counts as its answer? Prompts, fences, verdicts and the questions of a group; nothing
//! here opens a connection.

pub mod verdict;

pub use verdict::{Form, Place, Side, Usage, Verdict, Wanted};
