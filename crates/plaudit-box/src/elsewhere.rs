//! The sandbox where the system is not Linux: there is none, and whoever opens one is told so.

use crate::job::{BoxError, Job, RunResult};
use crate::options::{Isolation, Options};
use crate::report::{LayerReport, SandboxReport};
use std::convert::Infallible;

/// Runs programs in boxes of one isolation. This system has no isolation, so there is no value of this type.
#[derive(Debug)]
pub struct Sandbox(Infallible);

impl Sandbox {
    /// Tells that no isolation works here.
    pub fn probe(_: &Options) -> SandboxReport {
        let layer = |isolation| LayerReport {
            isolation,
            name: "Linux",
            works: false,
            optional: false,
            attack: false,
            detail: format!("this system is {}", std::env::consts::OS),
            remedy: Some(
                "Programs of models run on Linux alone: score there, in a container or a virtual machine.",
            ),
        };
        SandboxReport {
            isolation: None,
            layers: [Isolation::Namespaces, Isolation::Landlock].map(layer).into(),
        }
    }

    /// Fails with what [`Sandbox::probe`] tells.
    pub fn open(options: Options) -> Result<Self, SandboxReport> {
        Err(Self::probe(&options))
    }

    /// What was tried to choose the isolation.
    pub fn report(&self) -> &SandboxReport {
        match self.0 {}
    }

    /// The isolation of all boxes.
    pub fn isolation(&self) -> Isolation {
        match self.0 {}
    }

    /// How many programs, or pairs of them, can run at once.
    pub fn slots(&self) -> usize {
        match self.0 {}
    }

    /// Runs a job in a box of its own.
    pub fn run(&self, _: &Job) -> Result<RunResult, BoxError> {
        match self.0 {}
    }

    /// Runs two jobs at once in boxes of their own.
    pub fn run_pair(&self, _: [&Job; 2]) -> Result<[RunResult; 2], BoxError> {
        match self.0 {}
    }
}
