//! Journal errors, with stable codes and advice.

use crate::reason::Code;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A journal that cannot be opened, written or trusted to be on disk. A record that is damaged is none of these: it is
/// counted, and the judge is asked again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalError {
    /// Another process owns the folder.
    InUse {
        /// The folder.
        folder: PathBuf,
        /// The process that owns it, unless it has only just begun to.
        pid: Option<u32>,
    },
    /// The place is meant as an address, and is none that is known.
    Address {
        /// What stands before the first colon.
        scheme: String,
        /// What to write instead.
        fix: String,
    },
    /// There is no space for another judgment.
    Full {
        /// The file that cannot grow.
        path: PathBuf,
    },
    /// The journal was written by another version, whose records would be misread.
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// The file is not a journal, or nothing in it can be recognised any more.
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A record is larger than any judgment can be.
    TooLarge {
        /// Its size in bytes.
        size: usize,
        /// The largest there is.
        most: usize,
    },
    /// The operating system refused.
    Io {
        /// What was being done, such as `write`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What kind of error it is.
        kind: io::ErrorKind,
        /// The system's own words.
        message: String,
    },
    /// The journal that several machines share cannot be used.
    Redis {
        /// Where it is; never with a password.
        place: String,
        /// What is wrong with it.
        cause: RedisError,
        /// Its own words, where it has any.
        message: String,
    },
}

impl JournalError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InUse { .. } => "journal.in_use",
            Self::Address { .. } => RedisError::Address.code(),
            Self::Full { .. } => Code::JournalFull.as_str(),
            Self::Version { .. } => "journal.version",
            Self::Foreign { .. } => "journal.foreign",
            Self::TooLarge { .. } => "journal.too_large",
            Self::Io { .. } => "journal.io",
            Self::Redis { cause, .. } => cause.code(),
        }
    }

    /// A journal in Redis that cannot be used.
    pub(super) fn redis(place: impl Into<String>, cause: RedisError, message: impl Into<String>) -> Self {
        Self::Redis { place: place.into(), cause, message: message.into() }
    }

    /// What the system's error means for a journal: every way of being out of space is `Full`.
    pub(super) fn from_io(doing: &'static str, path: &Path, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full { path: path.to_owned() }
            }
            kind => Self::Io { doing, path: path.to_owned(), kind, message: error.to_string() },
        }
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse { folder, pid } => {
                write!(out, "the journal in {} is in use", folder.display())?;
                if let Some(pid) = pid {
                    write!(out, " by process {pid}")?;
                }
                write!(out, "; wait until it ends, or name another state folder for this run")?;
            }
            Self::Address { scheme, fix } => {
                write!(out, "a state that begins with \"{scheme}:\" is neither a folder nor a Redis; {fix}")?;
            }
            Self::Full { path } => write!(
                out,
                "no space is left for {}, so no judge is asked; free some space and run again: nothing that was \
                 answered is asked twice",
                path.display()
            )?,
            Self::Version { path, found } => write!(
                out,
                "{} has version {found}, and this plaudit reads version {}; use the plaudit that wrote it, or name \
                 another state folder",
                path.display(),
                super::folder::VERSION
            )?,
            Self::Foreign { path } => write!(
                out,
                "{} is not a journal of plaudit, or nothing in it can be recognised any more; it was left as it is; \
                 move it away, or name another state folder",
                path.display()
            )?,
            Self::TooLarge { size, most } => {
                write!(
                    out,
                    "a record of {size} bytes is larger than the {most} bytes of a journal's largest"
                )?;
            }
            Self::Io { doing, path, message, .. } => write!(
                out,
                "cannot {doing} {}: {message}; check the disk and the rights of the folder, then run again",
                path.display()
            )?,
            Self::Redis { place, cause, message } => {
                let (_, what, advice) = cause.advice();
                let colon = if message.is_empty() { "" } else { ": " };
                write!(out, "{place} {what}{colon}{message}; {advice}")?;
            }
        }
        write!(out, " ({})", self.code())
    }
}

impl std::error::Error for JournalError {}

/// What keeps a shared journal from being used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedisError {
    /// The address is none.
    Address,
    /// This plaudit was built without Redis.
    Absent,
    /// Nothing answers, or not in time.
    Unreachable,
    /// The user or the password is wrong, or the user may not do what is needed.
    Login,
    /// It is a replica, or only takes reads for another reason.
    ReadOnly,
    /// It has no memory or disk for another judgment.
    Full,
    /// It has lost what it held.
    Emptied,
    /// What lies under a key of plaudit is not from this journal, or damaged.
    Damaged,
    /// It does not take a command, for a reason of its own.
    Refused,
}

impl RedisError {
    /// The stable code.
    pub fn code(self) -> &'static str {
        self.advice().0
    }

    /// The reason code of a rollout whose judgment could not be read, fetched or stored.
    pub fn reason(self) -> Code {
        match self {
            Self::Full => Code::JournalFull,
            Self::Damaged => Code::JournalDamaged,
            _ => Code::JournalLost,
        }
    }

    /// The stable code, what it means, and what is to be done about it.
    fn advice(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Address => (
                "journal.address",
                "is not the address of a Redis",
                "write redis://[user:password@]host:port[/database]",
            ),
            Self::Absent => (
                "journal.absent",
                "cannot be used by a plaudit that was built without Redis",
                "build it with the feature redis",
            ),
            Self::Unreachable => {
                ("journal.unreachable", "cannot be reached", "see whether it runs, and run again")
            }
            Self::Login => ("journal.login", "does not let plaudit in", "check user, password and rights"),
            Self::ReadOnly => ("journal.read_only", "cannot be written", "name the primary, not a replica"),
            Self::Full => (
                Code::JournalFull.as_str(),
                "has no room for what would be bought",
                "give it more memory and run again",
            ),
            Self::Emptied => (
                "journal.emptied",
                "has lost its judgments: it was flushed, or restarted without a file",
                "switch appendonly on and restore it, or run again to begin anew",
            ),
            Self::Damaged => (
                Code::JournalDamaged.as_str(),
                "holds something under a key of plaudit that is damaged or not plaudit's own",
                "delete that key, and what it held is judged again",
            ),
            Self::Refused => ("journal.refused", "refuses a command", "see what it says, and run again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_being_out_of_space_is_full() {
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge] {
            let error = JournalError::from_io("write", Path::new("log"), &io::Error::from(kind));
            assert_eq!(error.code(), "engine.journal_full");
            assert!(error.to_string().contains("free some space"));
        }
        let error = JournalError::from_io("write", Path::new("log"), &io::Error::from(io::ErrorKind::Other));
        assert_eq!(error.code(), "journal.io");
    }

    #[test]
    fn a_folder_in_use_says_by_whom_and_what_to_do() {
        let error = JournalError::InUse { folder: "state".into(), pid: Some(42) };
        let said = error.to_string();
        assert!(said.contains("process 42") && said.contains("another state folder"), "{said}");
        assert!(said.ends_with("(journal.in_use)"), "{said}");
    }
}
