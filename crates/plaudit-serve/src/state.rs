//! State shared by all request handlers: recipes, tokens, limits, runs, jobs, metrics.

use crate::admission::Admission;
use crate::config::{Config, Limits};
use crate::error::ServeError;
use crate::http::auth::Tokens;
use crate::http::body::BodyBudget;
use crate::http::conn_limits::ConnLimits;
use crate::jobs::queue::JobQueue;
use crate::metrics::Metrics;
use crate::recipes::RecipeCatalog;
use crate::runs::registry::RunRegistry;
use crate::traces::Tracer;
use crate::watchdog::Watchdog;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// State shared by all request handlers.
#[derive(Debug)]
pub(crate) struct AppState {
    pub(crate) recipes: Arc<RecipeCatalog>,
    pub(crate) tokens: Tokens,
    pub(crate) limits: Limits,
    /// Rollouts that are being scored.
    pub(crate) admission: Arc<Admission>,
    /// Rollouts that wait for their groups.
    pub(crate) joining: Arc<Admission>,
    /// The bytes of both.
    pub(crate) texts: Arc<Admission>,
    pub(crate) body_budget: Arc<BodyBudget>,
    pub(crate) connections: Arc<ConnLimits>,
    pub(crate) metrics: Metrics,
    pub(crate) runs: Arc<RunRegistry>,
    pub(crate) jobs: JobQueue,
    pub(crate) watchdog: Watchdog,
    /// Traces requests, where traces are wanted.
    pub(crate) tracer: Option<Tracer>,
    /// The names that a Host header may have; any, where there are none.
    pub(crate) hosts: Vec<String>,
    pub(crate) started: Instant,
    draining: AtomicBool,
    /// Keeps other services off the state folder.
    _lock: std::fs::File,
}

impl AppState {
    /// Opens the state folder.
    pub(crate) fn open(
        config: Config,
        (recipes, tokens): (RecipeCatalog, Tokens),
        folder: &Path,
        bind: IpAddr,
        tracer: Option<Tracer>,
    ) -> Result<Arc<Self>, ServeError> {
        let lock = lock(folder)?;
        let recipes = Arc::new(recipes);
        let runs = RunRegistry::open(&folder.join("runs"), &config, &recipes, tokens.are_required())?;
        let hosts = hosts(&config.hosts, bind, tokens.are_required());
        let jobs = JobQueue::open(&folder.join("jobs"), &config)?;
        let limits = config.limits;
        Ok(Arc::new(Self {
            recipes,
            tokens,
            admission: Arc::new(Admission::new(limits.rollouts, "rollouts")),
            joining: Arc::new(Admission::new(limits.joining, "rollouts that wait for their groups")),
            texts: Arc::new(Admission::new(limits.rollout_bytes, "bytes of rollouts")),
            body_budget: Arc::new(BodyBudget::new(limits.total_request_bytes)),
            connections: Arc::new(ConnLimits::new(limits.connections, limits.share_of_peer())),
            limits,
            metrics: Metrics::new()?,
            runs: Arc::new(runs),
            jobs,
            watchdog: Watchdog::new(),
            tracer,
            hosts,
            started: Instant::now(),
            draining: AtomicBool::new(false),
            _lock: lock,
        }))
    }

    /// Whether the service is stopping and takes no new work.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Takes no new work from now on. Groups are scored without the members that are missing.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        self.runs.live().iter().for_each(|run| run.close_joins());
    }
}

/// Locks the state folder, or says which process has it.
fn lock(folder: &Path) -> Result<std::fs::File, ServeError> {
    let path = folder.join("lock");
    let open = std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let mut lock = open.map_err(|error| ServeError::file(folder, error))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::Error(error)) => return Err(ServeError::file(folder, error)),
        Err(std::fs::TryLockError::WouldBlock) => {
            let pid = std::fs::read_to_string(&path).unwrap_or_else(|_| String::new());
            return Err(ServeError::Arguments(format!(
                "{} is in use by another service, process {}: give --state another folder",
                folder.display(),
                pid.trim()
            )));
        }
    }
    // The number is only for a person.
    let _ = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
    Ok(lock)
}

/// The names that a request may carry in its Host header. On a loopback address these are the names of this machine and those in the
/// configuration, which prevents DNS rebinding: a foreign page whose name resolves to this machine is not answered. On other addresses
/// tokens are required, which such a page does not have, so any name does unless the operator lists some.
fn hosts(configured: &[String], bind: IpAddr, tokens: bool) -> Vec<String> {
    if configured.is_empty() && tokens && !bind.is_loopback() {
        return Vec::new();
    }
    let own = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
    let bound = match bind {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    let configured = configured.iter().map(|host| host.to_ascii_lowercase());
    own.into_iter().chain([bound]).chain(configured).collect()
}
