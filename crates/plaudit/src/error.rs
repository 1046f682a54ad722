//! Errors that stop a whole run or reject a parameter. What concerns one rollout is an outcome, not an error.

use std::fmt;

/// A run that could not be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunError {
    /// `groups.same_size` is set and the groups differ in size.
    UnevenGroups {
        /// The size that most groups have.
        usual: usize,
        /// The names and sizes of the others.
        odd: Vec<(String, usize)>,
    },
    /// A judge needs a key, and the environment has none.
    MissingKey {
        /// The judge.
        judge: String,
        /// The variable that should hold the key.
        variable: String,
    },
    /// Programs cannot be isolated here, so code rewards are refused; what was tried.
    NoSandbox(String),
    /// The programs of a recipe cannot be run here: the host has no tool for their language.
    NoLanguage(String),
    /// The connections to the judges cannot be set up.
    NoConnections(String),
    /// The system gives no random numbers, without which responses cannot be fenced.
    NoRandomness(String),
    /// Something failed as it must not, and the rollouts have no outcomes: a mistake in the engine.
    Panicked,
    /// The outcomes do not add up to the rollouts: a mistake in the engine.
    Unbalanced {
        /// How many rollouts came in.
        rollouts: u64,
        /// How many outcomes went out.
        outcomes: u64,
    },
}

impl RunError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnevenGroups { .. } => "group.uneven",
            Self::MissingKey { .. } => "judge.missing_key",
            Self::NoSandbox(_) => "sandbox.unavailable",
            Self::NoLanguage(_) => "sandbox.no_language",
            Self::NoConnections(_) => "judge.no_connections",
            Self::NoRandomness(_) => "engine.no_randomness",
            Self::Panicked => "engine.panic",
            Self::Unbalanced { .. } => "engine.unbalanced",
        }
    }
}

/// How many odd groups a message names.
const NAMED: usize = 10;

impl fmt::Display for RunError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnevenGroups { usual, odd } => {
                write!(out, "groups.same_size is set, most groups have {usual} rollouts, but ")?;
                for (at, (name, size)) in odd.iter().take(NAMED).enumerate() {
                    let comma = if at == 0 { "" } else { ", " };
                    write!(out, "{comma}{name:?} has {size}")?;
                }
                if odd.len() > NAMED {
                    write!(out, ", and {} more", odd.len() - NAMED)?;
                }
            }
            Self::MissingKey { judge, variable } => write!(
                out,
                "the judge {judge:?} needs a key, and the environment variable {variable} is not set: export it, or \
                 do not name it in the recipe"
            )?,
            Self::NoSandbox(tried) => write!(
                out,
                "the recipe runs programs of responses, and nothing isolates them here; `plaudit doctor` tells the remedies\n{}\n",
                tried.trim_end()
            )?,
            Self::NoLanguage(why) => write!(out, "the recipe runs programs, but {why}")?,
            Self::NoConnections(why) => write!(out, "judges cannot be asked: {why}")?,
            Self::NoRandomness(why) => write!(out, "the system gives no random numbers: {why}")?,
            Self::Panicked => write!(out, "the engine failed as it must not; please report it")?,
            Self::Unbalanced { rollouts, outcomes } => {
                write!(out, "{rollouts} rollouts came in but {outcomes} outcomes went out")?;
            }
        }
        write!(out, " ({})", self.code())
    }
}

impl std::error::Error for RunError {}

/// A value of a parameter that its type allows and the rule does not.
#[derive(Debug, Clone, PartialEq)]
pub struct ParamError {
    /// The parameter.
    pub key: &'static str,
    /// What is wrong with it, and what would be right.
    pub message: String,
}

impl ParamError {
    /// An error in one parameter.
    pub fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self { key, message: message.into() }
    }

    /// Refuses a parameter where a condition does not hold.
    pub fn check(holds: bool, key: &'static str, message: &str) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self::new(key, message)) }
    }

    /// What was loaded, or all that is wrong: the checks that failed, and what kept it from being loaded.
    pub fn gather<T>(
        checks: impl IntoIterator<Item = Result<(), Self>>,
        loaded: Result<T, Self>,
    ) -> Result<T, Vec<Self>> {
        let mut found: Vec<Self> = checks.into_iter().filter_map(Result::err).collect();
        match loaded {
            Ok(loaded) if found.is_empty() => return Ok(loaded),
            Ok(_) => {}
            Err(error) => found.push(error),
        }
        Err(found)
    }
}

impl From<ParamError> for Vec<ParamError> {
    fn from(error: ParamError) -> Self {
        vec![error]
    }
}
