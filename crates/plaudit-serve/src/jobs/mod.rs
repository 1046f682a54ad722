//! Background scoring: a job and its files, the queue that says whose turn it is, and the worker.

pub(crate) mod job;
pub(crate) mod queue;
pub(crate) mod worker;
