//! Code rewards: the program in a response, run against its tests in a sandbox.
//!
//! | Module | What it is |
//! |---|---|
//! | [`code_execution`] | the reward and its parameters |
//! | [`task`] | one program with its tests: how a rollout becomes one, and what its results say |
//! | [`executor`] | the threads that run programs in boxes |
//! | `executor_queue` | whose turn it is: fair between engines and groups |
//! | [`programs`] | programs run by themselves, without rollouts |

pub mod code_execution;
pub mod executor;
mod executor_queue;
pub mod programs;
pub mod task;

pub use code_execution::CodeReward;
pub use executor::{HostReport, SandboxError, SandboxPolicy, probe};
pub use plaudit_box::{Exit, Isolation, LayerReport, SandboxReport};
pub(crate) use plaudit_code::Language;
pub use plaudit_code::Verdict;

use crate::reward::Registration;

/// Every code reward, by name.
pub const REWARDS: &[Registration<CodeReward>] = &[Registration::of::<code_execution::CodeExecution>()];
