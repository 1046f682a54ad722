//! The sandbox where the system is not Linux: there is none, and whoever opens one is told so.

use crate::job::{BoxFailure, Job, RunResult};
use crate::options::{Options, Tier};
use crate::report::{LayerReport, SandboxReport};
use std::convert::Infallible;

/// Runs programs in boxes of one tier. This system has no tier, so there is no value of this type.
#[derive(Debug)]
pub struct Sandbox(Infallible);

impl Sandbox {
    /// Tells that no tier works here.
    pub fn probe(_: &Options) -> SandboxReport {
        let layer = |tier| LayerReport {
            tier,
            name: "Linux",
            works: false,
            optional: false,
            attack: false,
            detail: format!("this system is {}", std::env::consts::OS),
            remedy: Some(
                "Programs of models run on Linux alone: score there, in a container or a virtual machine.",
            ),
        };
        SandboxReport { tier: None, layers: [Tier::A, Tier::B].map(layer).into() }
    }

    /// Fails with what [`Sandbox::probe`] tells.
    pub fn open(options: Options) -> Result<Self, SandboxReport> {
        Err(Self::probe(&options))
    }

    /// What was tried to choose the tier.
    pub fn report(&self) -> &SandboxReport {
        match self.0 {}
    }

    /// The tier of all boxes.
    pub fn tier(&self) -> Tier {
        match self.0 {}
    }

    /// How many programs, or pairs of them, can run at once.
    pub fn slots(&self) -> usize {
        match self.0 {}
    }

    /// Runs a job in a box of its own.
    pub fn run(&self, _: &Job) -> Result<RunResult, BoxFailure> {
        match self.0 {}
    }

    /// Runs two jobs at once in boxes of their own.
    pub fn run_pair(&self, _: [&Job; 2]) -> Result<[RunResult; 2], BoxFailure> {
        match self.0 {}
    }
}
