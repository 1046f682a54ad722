//! `plaudit judge-sim`: an OpenAI-compatible endpoint that judges with known probabilities and no model.

mod answer;
mod caches;
mod judge;
mod prompt;
mod protocol;
mod quality;
mod random;
mod request_log;
mod server;
mod simulator;

use crate::GOOD;
use crate::error::CliError;
use crate::signals::Signals;
use clap::Args;
use judge::Judge;
use request_log::RequestLog;
use server::Server;
use simulator::{Settings, Simulator};
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// The fewest threads that answer; there are as many as the process has cores.
const FEWEST_WORKERS: usize = 2;
/// The longest latency that can be asked for, in seconds.
const LONGEST: f64 = 3600.0;

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
/// in its text, else a normal number that is fixed by the text. The same question always gets the same verdict,
/// whatever came before, and however its responses are labelled.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct JudgeSim {
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
    verdicts: Verdicts,
    #[command(flatten, next_help_heading = "Delays and faults")]
    faults: Faults,
}

/// How the judge judges.
#[derive(Debug, Args)]
struct Verdicts {
    /// How much quality is worth one logit: the lower, the surer the judge
    #[arg(long, value_name = "T", default_value = "0.25", value_parser = above)]
    temperature: f64,
    /// Logits in favour of the response that is shown first
    #[arg(long, value_name = "LOGITS", default_value = "0.5", value_parser = finite, allow_negative_numbers = true)]
    position_bias: f64,
    /// Logits that a pair must differ by to be no tie, where ties are allowed
    #[arg(long, value_name = "LOGITS", default_value = "0.25", value_parser = natural)]
    ties: f64,
    /// Noise in a ranking of several, against that of a pair
    #[arg(long, value_name = "FACTOR", default_value = "1.0", value_parser = natural)]
    line_up_noise: f64,
    /// Refuse to give logprobs
    #[arg(long)]
    no_logprobs: bool,
    /// Refuse a response_format
    #[arg(long)]
    no_json: bool,
}

/// What goes wrong, and how long everything takes.
#[derive(Debug, Args)]
struct Faults {
    /// The median time to an answer, such as 50ms or 1.5s
    #[arg(long, value_name = "TIME", default_value = "50ms", value_parser = time)]
    latency: Duration,
    /// How much the time varies: the sigma of a lognormal distribution
    #[arg(long, value_name = "SIGMA", default_value = "0.2", value_parser = natural)]
    jitter: f64,
    /// The share of answers that take much longer
    #[arg(long, value_name = "SHARE", default_value = "0.01", value_parser = share)]
    slow_share: f64,
    /// How many times longer those take
    #[arg(long, value_name = "FACTOR", default_value = "10", value_parser = natural)]
    slow_factor: f64,
    /// The share of requests that fail with status 500
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    error_rate: f64,
    /// The share of requests that are turned away with status 429, at once
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    rate_limit_share: f64,
    /// The share of answers that chat and hold no verdict
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    invalid_rate: f64,
}

impl JudgeSim {
    pub(crate) fn run(&self) -> Result<u8, CliError> {
        let request_log = RequestLog::open(self.request_log.as_deref())?;
        let server = Arc::new(Server::new(Simulator::new(self.settings()), request_log, self.requests));
        let address = SocketAddr::new(self.bind, self.port);
        let failure = |error: io::Error| CliError::File(address.to_string(), error);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(cores.max(FEWEST_WORKERS))
            .enable_all()
            .build()
            .map_err(failure)?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind(address).await.map_err(failure)?;
            let address = listener.local_addr().map_err(failure)?;
            // Whoever reads the address may send a signal at once.
            let ending = Signals::new().map_err(failure)?;
            let mut stdout = io::stdout();
            writeln!(stdout, "http://{address}/v1")
                .and_then(|()| stdout.flush())
                .map_err(|error| CliError::writing("stdout", error))?;
            Arc::clone(&server).serve(listener, ending).await.map_err(failure)
        })?;
        // Requests that are still under way at the time limit are dropped here, and logged.
        drop(runtime);
        let usage = server.request_log().close()?;
        let _ = writeln!(io::stderr(), "{usage}");
        Ok(GOOD)
    }

    fn settings(&self) -> Settings {
        let (verdicts, faults) = (&self.verdicts, &self.faults);
        Settings {
            judge: Judge {
                seed: self.seed,
                temperature: verdicts.temperature,
                position_bias: verdicts.position_bias,
                ties: verdicts.ties,
                line_up_noise: verdicts.line_up_noise,
            },
            latency: faults.latency,
            jitter: faults.jitter,
            slow_share: faults.slow_share,
            slow_factor: faults.slow_factor,
            error_rate: faults.error_rate,
            rate_limit_share: faults.rate_limit_share,
            invalid_rate: faults.invalid_rate,
            logprobs: !verdicts.no_logprobs,
            json: !verdicts.no_json,
            model: self.model.clone(),
        }
    }
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
    let seconds = natural(number).map(|number| number * unit).ok().filter(|seconds| *seconds <= LONGEST);
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
