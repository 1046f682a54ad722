//! Tests of the sandbox with real programs, in each isolation; as root, the same again as an ordinary user.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod attacks;
mod fairness;
mod hosts;
#[path = "../../../plaudit/tests/main/left_out.rs"]
mod left_out;
mod leftovers;
mod limits;
mod ordinary_user;
mod pairs;

use left_out::leave_out;
use plaudit_box::{BoxError, Exit, Isolation, Job, Limits, Options, RunResult, Sandbox};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

/// The interpreter, and the folder that it needs besides the system's.
pub(crate) static PYTHON: LazyLock<(String, Vec<PathBuf>)> = LazyLock::new(|| {
    let script = "import sys; print(sys.executable); print(sys.base_prefix)";
    for name in ["/usr/bin/python3", "python3"] {
        let Ok(output) = std::process::Command::new(name).args(["-I", "-c", script]).output() else {
            continue;
        };
        let text = String::from_utf8(output.stdout).unwrap();
        if let Some((program, prefix)) = text.trim().split_once('\n') {
            let folders = if prefix == "/usr" { Vec::new() } else { vec![PathBuf::from(prefix)] };
            return (program.to_owned(), folders);
        }
    }
    panic!("no python3");
});

/// A sandbox of an isolation. Where the host cannot have it, says so, and fails if nothing may be left out.
pub(crate) fn open(isolation: Isolation, slots: usize) -> Option<Sandbox> {
    open_in(isolation, slots, std::env::temp_dir())
}

/// The same, with its files in a folder of the test's.
pub(crate) fn open_in(isolation: Isolation, slots: usize, scratch: PathBuf) -> Option<Sandbox> {
    let options = Options {
        isolation: Some(isolation),
        slots,
        read_only: PYTHON.1.clone(),
        scratch,
        ..Options::default()
    };
    match Sandbox::open(options) {
        Ok(sandbox) => Some(sandbox),
        Err(report) => {
            let layer = report.layers.iter().find(|layer| !layer.works && !layer.optional);
            leave_out(&match layer {
                Some(layer) if layer.name == "namespaces" => "this host refuses user namespaces".to_owned(),
                Some(layer) => {
                    format!("this host has no isolation {isolation}: {}: {}", layer.name, layer.detail)
                }
                None => format!("this host has no isolation {isolation}"),
            });
            None
        }
    }
}

pub(crate) fn python(code: &str) -> Job {
    Job::new([PYTHON.0.as_str(), "-I", "-S", "main.py"]).file("main.py", code).limits(quick())
}

/// Runs a job, and again with twice the time on the clock where the host was overloaded: other tests keep all processors busy
/// on purpose.
pub(crate) fn run(sandbox: &Sandbox, job: &Job) -> Result<RunResult, BoxError> {
    patiently(job.clone(), |job| sandbox.run(job))
}

/// The same for anything that is made of a job.
pub(crate) fn patiently<T>(mut job: Job, run: impl Fn(&Job) -> Result<T, BoxError>) -> Result<T, BoxError> {
    for _ in 0..6 {
        match run(&job) {
            Err(BoxError::HostOverloaded) => job.limits.wall = Some(job.limits.wall() * 2),
            other => return other,
        }
    }
    run(&job)
}

/// Limits that end a hostile program soon.
pub(crate) fn quick() -> Limits {
    Limits {
        cpu: Duration::from_secs(1),
        wall: Some(Duration::from_secs(4)),
        memory: 512 << 20,
        ..Limits::default()
    }
}

/// Whether a program ended well and printed what was expected.
pub(crate) fn passed(run: &RunResult, expected: &str) -> bool {
    let lines = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    run.hit.is_none()
        && run.exit == Exit::Code(0)
        && std::str::from_utf8(&run.stdout).is_ok_and(|text| lines(text) == lines(expected))
}
