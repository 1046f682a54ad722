//! The plaudit service: rewards over HTTP for any number of trainings, with jobs, metrics and a dashboard.
//!
//! A request passes `http/` (listener, timeouts, authentication, body) and reaches a handler in `api/`, or in `compat/` where it comes
//! from another trainer's client. Handlers share `AppState`: recipes, tokens, limits, `runs/` (the trainings that are scored for) and
//! `jobs/` (background scoring). `api/routes.rs` is the list of all paths; `/openapi.json` is made of the same list.

mod admission;
mod api;
pub mod assets;
mod atomic_file;
mod compat;
pub mod config;
pub mod error;
mod http;
mod jobs;
pub mod logging;
mod metrics;
mod recipes;
pub mod runs;
mod state;
pub mod token_file;
mod traces;
mod watchdog;

pub use api::catalog::RewardReply;
pub use http::listener::Listener;
pub use traces::TraceSettings;

use config::Config;
use error::ServeError;
use plaudit::code::SandboxPolicy;
use plaudit::journal::{Recovered, Store};
use recipes::RecipeCatalog;
use state::AppState;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use traces::Tracer;

/// How long requests under way may take to finish after the signal to stop.
const GRACE: Duration = Duration::from_secs(10);
/// How often steps end, tokens are read again and stuck work is looked for.
const TICK: Duration = Duration::from_secs(1);
/// The signal for a file that would grow past its limit.
const SIGXFSZ: i32 = 25;

/// What a service is opened with.
#[derive(Debug)]
pub struct ServiceOptions {
    /// The address that the listener will have.
    pub bind: SocketAddr,
    /// Recipes, judges, limits and retention.
    pub config: Config,
    /// Values that are overridden in every recipe that has them, as keys and values.
    pub overrides: Vec<(String, String)>,
    /// The folder for judgments, runs and jobs.
    pub state: PathBuf,
    /// The Redis for judgments, where they do not lie in the state folder.
    pub journal: Option<String>,
    /// The file of tokens; without one, everybody is let in.
    pub token_file: Option<PathBuf>,
    /// What programs of responses may run in.
    pub sandbox: SandboxPolicy,
    /// Where traces go, if anywhere.
    pub traces: Option<TraceSettings>,
}

/// A service with its state folder open.
#[derive(Debug)]
pub struct Service {
    app: Arc<AppState>,
    /// The folder of its state.
    state: PathBuf,
}

impl Service {
    /// Opens the state folder, the journal and the recipes. `recovered` gets what was found in the journal.
    pub fn open(options: ServiceOptions, recovered: impl FnOnce(&Recovered)) -> Result<Self, ServeError> {
        let ServiceOptions { bind, config, overrides, state, journal, token_file, sandbox, traces } = options;
        let tokens = http::auth::Tokens::open(token_file.as_deref())?;
        let name = state.to_string_lossy();
        Store::check(&name)?;
        if Store::is_redis(&name) {
            let fix =
                "the service keeps its runs in a folder of its own; for judgments in a Redis use --journal";
            return Err(ServeError::Arguments(format!("--state names a folder: {fix}")));
        }
        runs::store::private_folder(&state).map_err(|error| ServeError::file(&state, error))?;
        let journal = journal.unwrap_or_else(|| state.join("judgments").display().to_string());
        let (journal, found) = Store::open(&journal)?;
        recovered(&found);
        let (recipes, warnings) = RecipeCatalog::load(&config, &overrides, journal, sandbox)?;
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        let tracer = traces.as_ref().map(Tracer::start).transpose().map_err(ServeError::Arguments)?;
        let app = AppState::open(config, (recipes, tokens), &state, bind.ip(), tracer)?;
        Ok(Self { app, state })
    }

    /// Serves until `stop` resolves, and then for at most ten seconds until requests under way are answered or `stop` resolves again.
    /// Returns whether all of them were answered.
    pub async fn serve(&self, listener: Listener, mut stop: impl AsyncFnMut()) -> bool {
        // A file that may grow no more is then an error like a full disk, and does not kill the process.
        let _too_large = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(SIGXFSZ));
        let (recipes, judges) = self.app.recipes.offered();
        let (dashboard, state) =
            (listener.url().unwrap_or_else(|_| String::new()), self.state.display().to_string());
        tracing::info!(dashboard, recipes, judges, state, "ready");
        let (stopping, stopped) = tokio::sync::watch::channel(false);
        let jobs = tokio::spawn(jobs::worker::run(Arc::clone(&self.app)));
        let ticks = tokio::spawn(tick(Arc::clone(&self.app)));
        let mut serving = tokio::spawn(http::listener::serve(Arc::clone(&self.app), listener, stopped));
        stop().await;
        self.app.drain();
        tracing::info!("ending: requests under way are finished");
        stopping.send_replace(true);
        let done = tokio::select! {
            _ = &mut serving => true,
            () = tokio::time::sleep(GRACE) => false,
            () = stop() => false,
        };
        jobs.abort();
        ticks.abort();
        let rollouts = self.app.admission.admitted();
        if !done && rollouts > 0 {
            tracing::warn!(rollouts, "ended with rollouts under way");
            return false;
        }
        tracing::info!("ended");
        true
    }

    /// Ends all steps, waits until the runs are on the disk, and sends the last traces.
    pub fn close(&self) {
        self.app.runs.tick(true);
        if let Some(tracer) = &self.app.tracer {
            tracer.close();
        }
    }
}

/// Does everything that depends on time, once a second.
async fn tick(app: Arc<AppState>) {
    let mut every = tokio::time::interval(TICK);
    let mut is_logged = false;
    loop {
        every.tick().await;
        let app = Arc::clone(&app);
        let work = tokio::task::spawn_blocking(move || {
            let read = app.tokens.refresh();
            app.runs.tick(false);
            app.jobs.cancel_orphans(|owner| app.tokens.principal(owner).is_some());
            app.jobs.tick();
            app.watchdog.check(Instant::now());
            read
        });
        match work.await {
            Ok(Err(error)) if !is_logged => {
                is_logged = true;
                tracing::error!(why = %error, "the tokens cannot be read anew");
            }
            Ok(Ok(())) => is_logged = false,
            _ => {}
        }
    }
}

/// The seconds since 1970.
pub(crate) fn unix_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
