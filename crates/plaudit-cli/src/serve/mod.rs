//! `plaudit serve`: how do several trainings share one source of rewards? A service with a dashboard, over HTTP.

mod admission;
pub(crate) mod alarms;
mod backlog;
mod body;
mod config;
mod dialect;
mod door;
mod gauges;
mod group;
mod guard;
mod house;
mod job;
mod jobs;
mod join;
pub(crate) mod kept;
mod listen;
mod log;
mod look;
mod meters;
mod name;
mod openapi;
pub(crate) mod page;
mod peers;
mod recipes;
pub(crate) mod recount;
mod reply;
mod routes;
mod run;
mod score;
mod shape;
pub(crate) mod steps;
mod tls;
pub(crate) mod tokens;
mod turn;
mod watch;

use crate::error::CliError;
use crate::scoring::pair;
use crate::signals::Signals;
use crate::{FAILED, GOOD};
use clap::Args;
use config::Config;
use house::House;
use plaudit::journal::Store;
use recipes::Recipes;
use serde_json::Value;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokens::Tokens;

/// How long requests under way may take to end after a signal.
const GRACE: Duration = Duration::from_secs(10);
/// How often it is looked whether something is over, has changed, or is stuck.
const TICK: Duration = Duration::from_secs(1);

/// What the system sends where a file would become longer than it may.
const SIGXFSZ: i32 = 25;

const EXAMPLES: &str = "\
Examples:
  plaudit serve
  plaudit serve --recipe tutorial --set judges.main.base_url=http://127.0.0.1:7718/v1
  plaudit serve --bind 0.0.0.0:7717 --token-file tokens.json --tls-cert cert.pem --tls-key key.pem
  plaudit serve --config serve.yaml --token-file tokens.json";

/// Serve rewards over HTTP to any number of trainings, with a dashboard
///
/// Its only line on stdout is its address, such as http://127.0.0.1:7717. Open it in a browser for the dashboard. It ends with
/// Ctrl-C, after the requests that are under way.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// The address to listen on; anything but a loopback address needs --token-file
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7717")]
    bind: SocketAddr,
    /// A recipe that clients may name: a shipped one, or a file [default: all shipped ones]
    #[arg(long = "recipe", short, value_name = "RECIPE")]
    recipes: Vec<String>,
    /// Override a value in every recipe that has it, such as judges.main.base_url=http://127.0.0.1:7718/v1
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    /// What else there is to say: recipes, judges with their limits, what may be held and what is kept
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where judgments, runs and jobs are kept
    #[arg(long, value_name = "FOLDER", default_value = "plaudit-state")]
    state: PathBuf,
    /// Keep judgments in redis://[user:password@]host:port[/database] instead, which several services can share
    #[arg(long, value_name = "REDIS")]
    journal: Option<String>,
    /// The tokens that are let in, as `plaudit token create` writes them
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The certificate for TLS, in PEM, with those that lead to its authority
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A name under which the service may be asked, beside those of this machine
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
}

impl Serve {
    pub(crate) fn run(&self) -> Result<u8, CliError> {
        let code = self.run_to_the_end();
        log::settle();
        code
    }

    fn run_to_the_end(&self) -> Result<u8, CliError> {
        if !self.bind.ip().is_loopback() && self.token_file.is_none() {
            return Err(CliError::Arguments(format!(
                "{} can be reached by others: give --token-file, made by `plaudit token create`",
                self.bind
            )));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("plaudit-serve")
            .enable_all()
            .build()
            .map_err(|error| CliError::File("threads".to_owned(), error))?;
        let house = self.house()?;
        let code = runtime.block_on(self.serve(&house));
        // What is still under way after its time is over is let go of.
        runtime.shutdown_timeout(Duration::from_millis(200));
        house.tick(true);
        code
    }

    fn config(&self) -> Result<Config, CliError> {
        let mut config = match &self.config {
            Some(path) => Config::read(path)?,
            None => Config::default(),
        };
        config.recipes.extend(self.recipes.iter().cloned());
        config.hosts.extend(self.hosts.iter().cloned());
        Ok(config)
    }

    fn house(&self) -> Result<Arc<House>, CliError> {
        let config = self.config()?;
        let tokens = Tokens::open(self.token_file.as_deref())?;
        let failure = |error| CliError::File(self.state.display().to_string(), error);
        let state = self.state.to_string_lossy();
        Store::check(&state)?;
        if Store::is_redis(&state) {
            let fix =
                "the service keeps its runs in a folder of its own; for judgments in a Redis use --journal";
            return Err(CliError::Arguments(format!("--state names a folder: {fix}")));
        }
        kept::private_folder(&self.state).map_err(failure)?;
        let place = match &self.journal {
            Some(place) => place.clone(),
            None => self.state.join("judgments").display().to_string(),
        };
        let (journal, found) = Store::open(&place)?;
        crate::state::print_recovery(&found, &crate::console::Console::for_run(false, None));
        let (recipes, left_out) = Recipes::load(&config, &self.set, journal)?;
        for line in left_out {
            log::say("warning", &line, &[]);
        }
        let complain = |what: &str| log::say("error", "a run could not be written", &[("why", what.into())]);
        House::open(config, (recipes, tokens), &self.state, self.bind.ip(), complain)
    }

    async fn serve(&self, house: &Arc<House>) -> Result<u8, CliError> {
        let files = self.tls_cert.as_deref().zip(self.tls_key.as_deref());
        let (listener, tls) = listen::bind(self.bind, files).await?;
        let failure = |error: io::Error| CliError::File(self.bind.to_string(), error);
        let address = listener.local_addr().map_err(failure)?;
        // Whoever reads the address may send a signal at once.
        let mut ending = Signals::new().map_err(failure)?;
        // A file that may grow no more is an error like a full disk, and not the end.
        let _too_large = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(SIGXFSZ));
        let scheme = if tls.is_some() { "https" } else { "http" };
        let mut stdout = io::stdout();
        writeln!(stdout, "{scheme}://{address}")
            .and_then(|()| stdout.flush())
            .map_err(|error| CliError::writing("stdout", error))?;
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let jobs = tokio::spawn(turn::work(Arc::clone(house)));
        let ticking = tokio::spawn(tick(Arc::clone(house)));
        let mut serving = tokio::spawn(listen::serve(Arc::clone(house), listener, tls, stopped));
        ending.next().await;
        house.drain();
        log::say("info", "ending: requests under way are finished", &[]);
        stop.send_replace(true);
        let done = tokio::select! {
            _ = &mut serving => true,
            () = tokio::time::sleep(GRACE) => false,
            _ = ending.next() => false,
        };
        jobs.abort();
        ticking.abort();
        let left = house.admission.inside();
        if !done && left > 0 {
            log::say("warning", "ended with rollouts under way", &[("rollouts", Value::from(left))]);
            return Ok(FAILED);
        }
        log::say("info", "ended", &[]);
        Ok(GOOD)
    }
}

/// Looks after everything that depends on time.
async fn tick(house: Arc<House>) {
    let mut every = tokio::time::interval(TICK);
    let mut complained = false;
    loop {
        every.tick().await;
        let house = Arc::clone(&house);
        let work = tokio::task::spawn_blocking(move || {
            let read = house.tokens.refresh();
            house.tick(false);
            house.jobs.call_off(|owner| house.tokens.holder(owner).is_some());
            house.jobs.tick();
            house.watch.look(Instant::now());
            read
        });
        match work.await {
            Ok(Err(error)) if !complained => {
                complained = true;
                log::say("error", "the tokens cannot be read anew", &[("why", error.to_string().into())]);
            }
            Ok(Ok(())) => complained = false,
            _ => {}
        }
    }
}
