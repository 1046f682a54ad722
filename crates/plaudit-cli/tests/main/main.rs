//! All integration tests of the command, in one binary: every verb through the binary itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod abuse;
mod code;
mod crash;
mod docs;
mod init;
mod journal_fixture;
mod judge_requests;
mod judge_sim;
mod judged;
#[path = "../../../plaudit/tests/main/left_out.rs"]
mod left_out;
mod memory;
mod new_user;
mod outputs;
#[cfg(debug_assertions)]
mod panics;
mod parquet_files;
mod process;
mod proxy;
mod redis;
#[path = "../../../plaudit/tests/main/redis_server.rs"]
mod redis_server;
mod serve;
mod snapshots;
mod streaming;
mod support;
#[allow(dead_code, reason = "only the engine's tests measure processor time")]
#[path = "../../../plaudit/tests/main/timing.rs"]
mod timing;
mod tls;
mod verbs;
