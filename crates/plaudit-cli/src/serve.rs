//! `plaudit serve`: starts the HTTP service (crate plaudit-serve) and runs it until a signal.

use crate::console::Console;
use crate::error::CliError;
use crate::imports::ImportArgs;
use crate::scoring::pair;
use crate::signals::Signals;
use crate::{FAILED, GOOD};
use clap::Args;
use plaudit::code::SandboxPolicy;
use plaudit_serve::config::Config;
use plaudit_serve::error::ServeError;
use plaudit_serve::{Listener, Service, ServiceOptions, TraceSettings, logging};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How long tasks may take to end after the service has.
const SHUTDOWN: Duration = Duration::from_millis(200);

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
    #[command(flatten)]
    pub(crate) imports: ImportArgs,
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
    /// Export traces over OTLP/HTTP to a collector, such as http://127.0.0.1:4318 [default: OTEL_EXPORTER_OTLP_ENDPOINT, if set]
    #[arg(long, value_name = "URL")]
    otlp_endpoint: Option<String>,
    /// Run programs of responses without a sandbox where this machine has none; every result says so
    #[arg(long)]
    unsafe_no_sandbox: bool,
}

impl Serve {
    pub(crate) fn run(&self) -> Result<u8, CliError> {
        if !self.bind.ip().is_loopback() && self.token_file.is_none() {
            return Err(CliError::Arguments(format!(
                "{} can be reached by others: give --token-file, made by `plaudit token create`",
                self.bind
            )));
        }
        let _log = logging::init();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("plaudit-serve")
            .enable_all()
            .build()
            .map_err(|error| CliError::File("threads".to_owned(), error))?;
        let service = Service::open(self.options()?, |found| {
            crate::state::print_recovery(found, &Console::for_run(false, None));
        })?;
        let code = runtime.block_on(self.serve(&service));
        // Tasks that are still running are dropped.
        runtime.shutdown_timeout(SHUTDOWN);
        service.close();
        code
    }

    fn options(&self) -> Result<ServiceOptions, CliError> {
        let mut config = match &self.config {
            Some(path) => Config::read(path)?,
            None => Config::default(),
        };
        config.recipes.extend(self.recipes.iter().cloned());
        config.hosts.extend(self.hosts.iter().cloned());
        let variable = |name: &str| std::env::var(name).ok();
        let traces = TraceSettings::resolve(self.otlp_endpoint.as_deref(), &config.traces, &variable)
            .map_err(CliError::Arguments)?;
        Ok(ServiceOptions {
            bind: self.bind,
            config,
            overrides: self.set.clone(),
            state: self.state.clone(),
            journal: self.journal.clone(),
            token_file: self.token_file.clone(),
            sandbox: SandboxPolicy { allow_none: self.unsafe_no_sandbox, ..SandboxPolicy::default() },
            traces,
        })
    }

    async fn serve(&self, service: &Service) -> Result<u8, CliError> {
        let tls = self.tls_cert.as_deref().zip(self.tls_key.as_deref());
        let listener = Listener::bind(self.bind, tls).await?;
        let failure = |error: io::Error| CliError::File(self.bind.to_string(), error);
        let url = listener.url().map_err(failure)?;
        // Before the URL is printed: whoever reads it may send a signal at once.
        let mut signals = Signals::new().map_err(failure)?;
        let mut stdout = io::stdout();
        writeln!(stdout, "{url}")
            .and_then(|()| stdout.flush())
            .map_err(|error| CliError::writing("stdout", error))?;
        let signal = async || {
            signals.next().await;
        };
        let is_done = service.serve(listener, signal).await;
        Ok(if is_done { GOOD } else { FAILED })
    }
}

impl From<ServeError> for CliError {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Recipe(errors) => Self::Recipe(errors),
            ServeError::Arguments(message) => Self::Arguments(message),
            ServeError::File(name, error) => Self::File(name, error),
            ServeError::Run(error) => Self::Run(error),
            ServeError::Journal(error) => Self::State(error),
        }
    }
}
