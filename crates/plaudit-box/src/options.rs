//! How a sandbox is made, and the isolations that it can have.

use std::path::PathBuf;

/// How much isolates a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isolation {
    /// Namespaces, with Landlock, seccomp and limits.
    Namespaces,
    /// Landlock, seccomp and limits.
    Landlock,
    /// Limits alone: a program can read and write what the engine can.
    None,
}

impl std::fmt::Display for Isolation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Namespaces => "namespaces",
            Self::Landlock => "landlock",
            Self::None => "none",
        })
    }
}

/// How a sandbox is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The isolation; without it the best one that withstands the attacks. [`Isolation::None`] is used only when it is named here.
    pub isolation: Option<Isolation>,
    /// How many programs run at once; more jobs wait. A pair counts as one.
    pub slots: usize,
    /// Folders and files that programs may read besides the system's own, such as that of an interpreter.
    pub read_only: Vec<PathBuf>,
    /// As root, boxes belong to this user and the 999 after it, one for each slot of each sandbox of the host as far as they reach: the
    /// kernel counts processes by their user, and one box must not use up the number of another. They should own nothing.
    pub first_user: u32,
    /// Where boxes without namespaces keep their files.
    pub scratch: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            isolation: None,
            slots: std::thread::available_parallelism().map_or(1, usize::from),
            read_only: Vec::new(),
            // Above ordinary users and below those that systemd allocates.
            first_user: 59_000,
            scratch: std::env::temp_dir(),
        }
    }
}
