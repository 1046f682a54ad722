//! The service: `plaudit serve` as a process, asked over sockets by honest and hostile clients.

mod abuse;
mod greedy;
mod holders;
pub(crate) mod http;
mod jobs;
mod native;
mod robust;
mod seats;
mod security;
mod step_usage;
mod turns;
mod unlucky;
