//! Runs, one for each training: their steps and statistics, the groups that can be looked at, and their files.

pub(crate) mod abort;
pub mod alarms;
pub mod recount;
pub(crate) mod registry;
pub(crate) mod run;
pub(crate) mod sample;
pub(crate) mod steps;
pub mod store;
