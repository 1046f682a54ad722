//! The service: `plaudit serve` as a process, asked over sockets by honest and hostile clients.

mod abuse;
mod crash_recovery;
pub(crate) mod http;
mod job_fairness;
mod jobs;
mod late_members;
mod overload;
mod quota;
mod robust;
mod security;
mod step_usage;
mod v1_api;
