//! Request log of the simulator: counters of a run, and one JSON line per request.

use super::protocol::Usage;
use super::{SimError, lock};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The status of a request whose client has gone away before the reply.
const GONE: u16 = 499;

/// The requests of a run.
#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    file: Option<(String, Mutex<File>)>,
    broken: Mutex<Option<io::Error>>,
    arrived: AtomicU64,
    settled: AtomicU64,
    in_flight: AtomicU64,
    errors: AtomicU64,
    read: AtomicU64,
    cached: AtomicU64,
    written: AtomicU64,
}

/// What the requests of a run came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestTotals {
    /// How many were answered, or given up by their clients.
    pub requests: u64,
    /// How many of them have a status from 400.
    pub errors: u64,
    /// Tokens of prompts.
    pub read: u64,
    /// Those of them that a cache of prefixes had.
    pub cached: u64,
    /// Tokens of replies.
    pub written: u64,
}

/// One request that is being answered; it is logged when it is dropped. Until it is settled, its client has gone away.
#[derive(Debug)]
pub(crate) struct LoggedRequest<'l> {
    request_log: &'l RequestLog,
    line: Line,
}

#[derive(Debug, Serialize)]
struct Line {
    n: u64,
    key: String,
    status: u16,
    latency_ms: f64,
    in_flight: u64,
}

impl RequestLog {
    /// An empty log; an existing file is overwritten.
    pub(crate) fn open(path: Option<&str>) -> Result<Self, SimError> {
        let open = |path: &str| match File::create(path) {
            Ok(file) => Ok((path.to_owned(), Mutex::new(file))),
            Err(error) => Err(SimError::new(path, error)),
        };
        Ok(Self { file: path.map(open).transpose()?, ..Self::default() })
    }

    /// A request has arrived.
    pub(crate) fn visit(&self, body: &[u8]) -> LoggedRequest<'_> {
        let n = self.arrived.fetch_add(1, Relaxed) + 1;
        let in_flight = self.in_flight.fetch_add(1, Relaxed) + 1;
        // The key is only for the file, and a hash of megabytes is not free.
        let hash = || format!("{:016x}", rapidhash::v3::rapidhash_v3(body));
        let key = self.file.as_ref().map_or_else(String::new, |_| hash());
        LoggedRequest { request_log: self, line: Line { n, key, status: GONE, latency_ms: 0.0, in_flight } }
    }

    /// How many requests have been answered.
    pub(crate) fn settled(&self) -> u64 {
        self.settled.load(Relaxed)
    }

    /// Whether the file cannot be written any more.
    pub(crate) fn is_broken(&self) -> bool {
        lock(&self.broken).is_some()
    }

    /// Closes the log: its totals, or why it could not be written.
    pub(crate) fn close(&self) -> Result<RequestTotals, SimError> {
        if let Some(error) = lock(&self.broken).take() {
            let name = self.file.as_ref().map_or("", |(name, _)| name);
            return Err(SimError::new(name, error));
        }
        let count = |count: &AtomicU64| count.load(Relaxed);
        Ok(RequestTotals {
            requests: count(&self.settled),
            errors: count(&self.errors),
            read: count(&self.read),
            cached: count(&self.cached),
            written: count(&self.written),
        })
    }

    fn write(&self, line: &Line) {
        let Some((_, file)) = &self.file else { return };
        let done = serde_json::to_vec(line).map_err(io::Error::from).and_then(|mut bytes| {
            bytes.push(b'\n');
            lock(file).write_all(&bytes)
        });
        if let Err(error) = done {
            lock(&self.broken).get_or_insert(error);
        }
    }
}

impl LoggedRequest<'_> {
    /// How long the reply is held back.
    pub(crate) fn waits(&mut self, latency: Duration) {
        self.line.latency_ms = latency.as_micros() as f64 / 1e3;
    }

    /// The reply is about to be sent.
    pub(crate) fn settle(mut self, status: u16, usage: Option<&Usage>) {
        self.line.status = status;
        if let Some(usage) = usage {
            self.request_log.read.fetch_add(usage.prompt_tokens, Relaxed);
            self.request_log.cached.fetch_add(usage.cached(), Relaxed);
            self.request_log.written.fetch_add(usage.completion_tokens, Relaxed);
        }
    }
}

impl Drop for LoggedRequest<'_> {
    fn drop(&mut self) {
        self.request_log.errors.fetch_add(u64::from(self.line.status >= 400), Relaxed);
        self.request_log.in_flight.fetch_sub(1, Relaxed);
        self.request_log.write(&self.line);
        self.request_log.settled.fetch_add(1, Relaxed);
    }
}
