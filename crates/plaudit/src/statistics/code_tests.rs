//! Test statistics of code rewards: how often each verdict was given, and the CPU time of a test.

use super::distribution::Distribution;
use crate::code::Verdict;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The tests of programs, over many rollouts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "TestsReply")]
pub struct TestStats {
    /// How many tests got each verdict.
    pub verdicts: BTreeMap<&'static str, u64>,
    /// Milliseconds of CPU time of a test, with the start of its interpreter and its box.
    pub cpu_ms: Distribution,
}

impl TestStats {
    /// Takes in the tests of one program.
    pub(crate) fn observe<'v>(&mut self, tests: impl Iterator<Item = &'v (Verdict, Duration)>) {
        for (verdict, cpu) in tests {
            *self.verdicts.entry(verdict.name()).or_insert(0) += 1;
            self.cpu_ms.observe(cpu.as_secs_f64() * 1e3);
        }
    }

    /// Takes in what was found elsewhere.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (verdict, count) in &other.verdicts {
            *self.verdicts.entry(verdict).or_insert(0) += count;
        }
        self.cpu_ms.merge(&other.cpu_ms);
    }
}
