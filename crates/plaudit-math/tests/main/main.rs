//! All integration tests of the math verifier, in one binary, because every link costs seconds.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail by panicking and print figures"
)]

mod golden;
mod properties;
mod rules;
