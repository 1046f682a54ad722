//! A job for the sandbox, its limits, and what came of it.

use std::time::Duration;

/// A program with its files, its input and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The program as an absolute path (or one relative to the box's folder), and its arguments.
    pub arguments: Vec<String>,
    /// The environment, empty unless the program needs one.
    pub environment: Vec<(String, String)>,
    /// Files in the folder where the program starts: name, content, and whether it can be executed.
    pub files: Vec<(String, Vec<u8>, bool)>,
    /// The standard input.
    pub stdin: Vec<u8>,
    /// The limits.
    pub limits: Limits,
}

impl Job {
    /// A job without files and input, with the default limits.
    pub fn new<T: Into<String>>(arguments: impl IntoIterator<Item = T>) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self {
            arguments,
            environment: Vec::new(),
            files: Vec::new(),
            stdin: Vec::new(),
            limits: Limits::default(),
        }
    }

    /// Adds a file.
    #[must_use]
    pub fn file(mut self, name: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        self.files.push((name.into(), content.into(), false));
        self
    }

    /// Sets the standard input.
    #[must_use]
    pub fn stdin(mut self, stdin: impl Into<Vec<u8>>) -> Self {
        self.stdin = stdin.into();
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

/// What a program may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// CPU time of all its processes together.
    pub cpu: Duration,
    /// Time on the clock; without it five times the CPU time and at least 10 s.
    pub wall: Option<Duration>,
    /// Bytes of memory: of all processes together by what is resident, with page tables and what descriptors may hold; of each by its
    /// data and the stacks of its threads.
    pub memory: u64,
    /// Bytes of address space; without it `memory` and the stacks of `processes` threads. Runtimes that reserve far more than they use
    /// need more.
    pub address_space: Option<u64>,
    /// Processes and threads. Without namespaces there is one process.
    pub processes: u32,
    /// Bytes of all files together. Without namespaces there are none.
    pub file_bytes: u64,
    /// Files and folders.
    pub file_count: u64,
    /// Bytes of standard output. One more ends the program.
    pub output: usize,
    /// Bytes of standard error that are kept. What comes after is read and dropped.
    pub errors: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cpu: Duration::from_secs(5),
            wall: None,
            memory: 1 << 30,
            address_space: None,
            processes: 32,
            file_bytes: 64 << 20,
            file_count: 1000,
            output: 1 << 20,
            errors: 64 << 10,
        }
    }
}

impl Limits {
    /// The limit of time on the clock.
    pub fn wall(&self) -> Duration {
        self.wall.unwrap_or_else(|| (self.cpu * 5).max(Duration::from_secs(10)))
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// The limit for which a program was ended, or which it was over at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitHit {
    /// CPU time.
    Cpu,
    /// Time on the clock, spent without wanting a processor.
    Wall,
    /// Memory of all processes together.
    Memory,
    /// Processes and threads.
    Processes,
    /// Standard output.
    Output,
}

/// What came of a program that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunResult {
    /// How it ended.
    pub exit: Exit,
    /// The limit that it broke. Its output does not count then, whatever it says.
    pub hit: Option<LimitHit>,
    /// What it wrote to standard output, up to the limit.
    pub stdout: Vec<u8>,
    /// The beginning of what it wrote to standard error.
    pub stderr: Vec<u8>,
    /// CPU time of all its processes, with the building of the box.
    pub cpu: Duration,
    /// Time on the clock from the start of the program.
    pub wall: Duration,
    /// The most memory that was seen, looked at every 50 ms: none for a program that ended before.
    pub peak_resident: Option<u64>,
}

/// Why there is no result. None of these is the program's fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoxError {
    /// A layer could not be put on: its name, and the number of the error.
    Setup {
        /// The layer.
        layer: &'static str,
        /// The number of the error, as in `errno`.
        errno: i32,
    },
    /// The program wanted a processor and did not get it within the limit on the clock. Worth one more try.
    HostOverloaded,
    /// The host could not give what supervision needs, or took the process away; what, and the number of the error.
    HostError(&'static str, i32),
    /// The job itself cannot be run as it is written.
    Request(String),
}

impl std::fmt::Display for BoxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |errno: &i32| std::io::Error::from_raw_os_error(*errno);
        match self {
            Self::Setup { layer, errno } => {
                write!(f, "the sandbox could not be built: {layer}: {}", text(errno))
            }
            Self::HostOverloaded => {
                f.write_str("the host was overloaded: the program waited for a processor")
            }
            Self::HostError(what, errno) => write!(f, "the sandbox failed: {what}: {}", text(errno)),
            Self::Request(text) => write!(f, "the job cannot be run: {text}"),
        }
    }
}

impl std::error::Error for BoxError {}
