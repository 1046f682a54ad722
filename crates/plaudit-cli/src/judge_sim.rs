//! `plaudit judge-sim`: serves the simulated judge of the crate `plaudit-sim` until a signal arrives.

use crate::GOOD;
use crate::error::CliError;
use crate::signals::Signals;
use crate::summary::whole;
use plaudit_sim::{JudgeSim, SimError};
use std::io::{self, Write as _};

pub(crate) fn run(sim: &JudgeSim) -> Result<u8, CliError> {
    let ending = || {
        let mut signals = Signals::new()?;
        Ok(async move {
            signals.next().await;
        })
    };
    let listens = |address| {
        let mut stdout = io::stdout();
        let written = writeln!(stdout, "http://{address}/v1").and_then(|()| stdout.flush());
        written.map_err(|error| SimError { name: STDOUT.to_owned(), error })
    };
    let totals = sim.serve(ending, listens).map_err(|SimError { name, error }| match name.as_str() {
        STDOUT => CliError::writing(STDOUT, error),
        _ => CliError::File(name, error),
    })?;
    let _ = writeln!(
        io::stderr(),
        "{} requests, {} errors; {} tokens read ({} from the cache), {} written",
        whole(totals.requests),
        whole(totals.errors),
        whole(totals.read),
        whole(totals.cached),
        whole(totals.written),
    );
    Ok(GOOD)
}

/// What [`SimError::name`] says of the standard output.
const STDOUT: &str = "stdout";
