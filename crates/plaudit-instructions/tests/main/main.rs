//! All integration tests of the instruction checks, in one binary, because every link costs seconds.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail by panicking and print figures"
)]

mod completeness;
mod hostile;
mod properties;
mod ratchet;
mod rows;
mod text;
#[path = "../../../plaudit/tests/main/timing.rs"]
#[allow(dead_code, reason = "the engine's tests use all of it")]
mod timing;
mod vectors;

use std::path::PathBuf;

/// A file among the golden vectors.
fn golden(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden")).join(name)
}
