//! Code rewards of a build without the feature `code`: there are none. The types that the engine names have no values here, so that
//! its path is written once.

use crate::reward::{Properties, Range, Registration};
use serde::{Deserialize, Serialize};

/// No code reward. The registry tells which feature has them.
pub const REWARDS: &[Registration<CodeReward>] = &[];

/// How much isolates a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Limits alone: a program can read and write what the engine can.
    None,
}

/// What an operator allows programs to run in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SandboxPolicy {
    /// The isolation; without it the best one that withstands the attacks.
    pub isolation: Option<Isolation>,
    /// Whether programs run without a sandbox where there is none. Every result says so.
    pub allow_none: bool,
}

/// Why programs cannot be run here.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(dead_code, reason = "nothing asks for a sandbox")]
pub(crate) enum SandboxError {
    NoIsolation(String),
    NoLanguage(String),
}

/// A loaded code reward.
#[derive(Debug, Clone)]
pub enum CodeReward {}

impl CodeReward {
    /// The values, the floor and the limits.
    pub const fn properties(&self) -> Properties {
        Properties::new(Range::new(0.0, 1.0))
    }

    pub(crate) fn identity(&self) -> &[u8] {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum Language {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Verdict {}

impl Verdict {
    pub(crate) const fn name(self) -> &'static str {
        match self {}
    }
}

pub(crate) mod task {
    use super::{CodeReward, Verdict};
    use crate::outcome::Outcome;
    use crate::reason::Reason;
    use crate::text::Text;
    use serde::{Deserialize, Serialize};
    use serde_json::{Map, Value};
    use std::sync::Arc;
    use std::time::Duration;

    #[derive(Clone, Copy)]
    #[allow(dead_code, reason = "there is no reward to make a task for")]
    pub(crate) struct ProgramInput<'s> {
        pub(crate) text: &'s Text<'s>,
        pub(crate) reference: Option<&'s str>,
        pub(crate) found: Option<&'s str>,
        pub(crate) extra: &'s Map<String, Value>,
        pub(crate) prompt: &'s str,
    }

    #[derive(Default)]
    pub(crate) struct TaskMaker;

    impl TaskMaker {
        pub(crate) fn task(
            &mut self,
            reward: &Arc<CodeReward>,
            _: &ProgramInput<'_>,
        ) -> Result<CodeTask, Outcome> {
            match **reward {}
        }
    }

    #[derive(Debug, Clone)]
    pub(crate) enum CodeTask {}

    impl CodeTask {
        pub(crate) fn check_tests(&self) -> Result<(), Reason> {
            match *self {}
        }

        pub(crate) fn reward(&self) -> &CodeReward {
            match *self {}
        }

        pub(crate) fn key(&self, _: bool) -> [u8; 32] {
            match *self {}
        }

        pub(crate) fn outcome(&self, _: &StoredRun) -> Outcome {
            match *self {}
        }
    }

    #[derive(Debug, Clone, Serialize, Deserialize)]
    pub(crate) enum StoredRun {}

    impl StoredRun {
        pub(crate) fn results(&self) -> Option<Vec<(Verdict, Duration)>> {
            match *self {}
        }
    }
}

pub(crate) mod executor {
    use super::task::{CodeTask, StoredRun};
    use super::{CodeReward, Isolation, Language, SandboxError, SandboxPolicy};
    use crate::exec::CancelToken;
    use crate::exec::single_flight::SingleFlight;
    use crate::reason::Reason;
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::time::Duration;

    pub(crate) type CodeResult = Result<StoredRun, Reason>;

    #[derive(Debug, Clone, Copy)]
    #[allow(dead_code, reason = "nobody takes turns")]
    pub(crate) struct ProgramLane {
        pub(crate) id: u64,
        pub(crate) owner: u64,
        pub(crate) most: Option<usize>,
    }

    pub(crate) struct Executor {
        pub(crate) flights: SingleFlight,
        never: Infallible,
    }

    impl std::fmt::Debug for Executor {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            match self.never {}
        }
    }

    impl Executor {
        pub(crate) fn open(_: SandboxPolicy, _: &[&CodeReward]) -> Result<Arc<Self>, SandboxError> {
            Err(SandboxError::NoIsolation("this plaudit was built without the feature code".to_owned()))
        }

        pub(crate) fn isolation(&self) -> Isolation {
            match self.never {}
        }

        pub(crate) fn language(&self, _: &CodeReward) -> Result<Arc<Language>, SandboxError> {
            match self.never {}
        }

        pub(crate) fn submit(
            &self,
            _: CodeTask,
            _: Arc<Language>,
            _: (ProgramLane, u64),
            _: (Duration, Option<CancelToken>),
            _: impl FnOnce(CodeResult) + Send + 'static,
        ) {
            match self.never {}
        }

        pub(crate) fn forget(&self, _: u64) {
            match self.never {}
        }
    }
}
