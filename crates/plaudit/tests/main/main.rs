//! All integration tests of the engine, in one binary, because every link costs seconds.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod golden;
mod hostile;
mod regex_cases;
