//! A simulated judge: an OpenAI-compatible endpoint that judges with known probabilities and no model.
//!
//! [`JudgeSim`] has its settings, which are flags of a command. [`JudgeSim::serve`] listens until it is told to end.

mod answer;
mod caches;
mod items;
mod judge;
mod prompt;
mod protocol;
mod quality;
mod random;
mod request_log;
mod server;
mod simulator;

use clap::Args;
use judge::Judge;
use request_log::RequestLog;
pub use request_log::RequestTotals;
use server::Server;
use simulator::{Faults, Simulator};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The fewest threads that answer; there are as many as the process has cores.
const FEWEST_WORKERS: usize = 2;
/// The longest latency that can be asked for, in seconds.
const MAX_SECONDS: f64 = 3600.0;

const EXAMPLES: &str = "\
Examples:
  plaudit judge-sim
  plaudit judge-sim --port 0 --latency 0 --requests 1000 --ledger calls.jsonl
  plaudit judge-sim --error-rate 0.05 --rate-limit-share 0.05 --invalid-rate 0.02 --no-logprobs";

/// Serve a simulated judge for demos, tests and load tests
///
/// An endpoint in the protocol of OpenAI, with the scoring endpoints of vLLM and SGLang. Its only line on stdout is its
/// address, such as http://127.0.0.1:7718/v1; it ends with Ctrl-C.
///
/// The better response is the one with the higher hidden quality: the number in the last mark such as [[quality:1.5]]
/// in its text, else a normal number that is fixed by the text. A criterion of a rubric with a text in quotation marks is met where
/// the response holds that text. The same question always gets the same verdict,
/// whatever came before, and however its responses are labelled.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct JudgeSim {
    /// The address to listen on; anything but a loopback address can be reached by others
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: IpAddr,
    /// The port to listen on; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 7718)]
    port: u16,
    /// The name of the model [default: what a request calls it]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// What all chance depends on
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// End after so many requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Write a JSON line a request: n, key, status, latency_ms, in_flight; 499 is a client that went away
    #[arg(long = "ledger", value_name = "FILE")]
    request_log: Option<String>,
    #[command(flatten, next_help_heading = "Verdicts")]
    judge: Judge,
    #[command(flatten, next_help_heading = "Delays and faults")]
    faults: Faults,
}

/// What could not be opened or written, and why.
#[derive(Debug)]
pub struct SimError {
    /// The file, or the address.
    pub name: String,
    /// Why.
    pub error: io::Error,
}

impl SimError {
    fn new(name: impl Into<String>, error: io::Error) -> Self {
        Self { name: name.into(), error }
    }
}

impl JudgeSim {
    /// Serves until `ending` is over, or as many requests have come as it should answer. `ending` is called before `listens` gets the
    /// address, so that whoever reads the address may send a signal at once.
    pub fn serve<F: Future<Output = ()>>(
        &self,
        ending: impl FnOnce() -> io::Result<F>,
        listens: impl FnOnce(SocketAddr) -> Result<(), SimError>,
    ) -> Result<RequestTotals, SimError> {
        let request_log = RequestLog::open(self.request_log.as_deref())?;
        let simulator =
            Simulator::new(self.seed, self.model.clone(), self.judge.clone(), self.faults.clone());
        let server = Arc::new(Server::new(simulator, request_log, self.requests));
        let address = SocketAddr::new(self.bind, self.port);
        let failure = |error: io::Error| SimError::new(address.to_string(), error);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(cores.max(FEWEST_WORKERS))
            .enable_all()
            .build()
            .map_err(failure)?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind(address).await.map_err(failure)?;
            let address = listener.local_addr().map_err(failure)?;
            let ending = ending().map_err(failure)?;
            listens(address)?;
            Arc::clone(&server).serve(listener, ending).await.map_err(failure)
        })?;
        // Requests that are still under way at the time limit are dropped here, and logged.
        drop(runtime);
        server.request_log.close()
    }
}

/// Locks, also where a thread has panicked that held the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn finite(text: &str) -> Result<f64, String> {
    // Beyond a million, a logit or a factor makes no difference.
    let number = text.parse().ok().filter(|number: &f64| number.abs() <= 1e6);
    number.ok_or_else(|| "a number is wanted".to_owned())
}

fn natural(text: &str) -> Result<f64, String> {
    finite(text).ok().filter(|number| *number >= 0.0).ok_or_else(|| "a number from 0 is wanted".to_owned())
}

fn above(text: &str) -> Result<f64, String> {
    let number = finite(text).ok().filter(|number| *number >= 1e-6);
    number.ok_or_else(|| "a number above 0 is wanted".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let number = natural(text).ok().filter(|number| *number <= 1.0);
    number.ok_or_else(|| "a number from 0 to 1 is wanted".to_owned())
}

fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text {
        "0" => ("0", 1.0),
        _ => match (text.strip_suffix("ms"), text.strip_suffix('s')) {
            (Some(number), _) => (number, 1e-3),
            (None, Some(number)) => (number, 1.0),
            (None, None) => ("", 1.0),
        },
    };
    let seconds = natural(number).map(|number| number * unit).ok().filter(|seconds| *seconds <= MAX_SECONDS);
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "a time like 50ms or 1.5s is wanted".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_shares_are_read() {
        assert_eq!(time("50ms"), Ok(Duration::from_millis(50)));
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("0"), Ok(Duration::ZERO));
        for bad in ["", "50", "ms", "s", "-1s", "nans", "infs", "1h", "9999999s"] {
            assert!(time(bad).is_err(), "{bad}");
        }
        assert_eq!((share("1"), share("0.25")), (Ok(1.0), Ok(0.25)));
        assert!(
            share("1.01").is_err() && share("-0").is_ok() && above("0").is_err() && finite("NaN").is_err()
        );
    }
}
