//! Does the service hold? The binary itself, asked over sockets, by clients that are honest and by others.

mod abuse;
mod greedy;
mod holders;
mod http;
mod jobs;
mod native;
mod robust;
mod seats;
mod security;
mod turns;
mod unlucky;
