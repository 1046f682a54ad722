//! Errors of a journal in Redis, with stable codes and advice.

use crate::reason::Code;

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
        match self {
            Self::Address => "journal.address",
            Self::Absent => "journal.absent",
            Self::Unreachable => "journal.unreachable",
            Self::Login => "journal.login",
            Self::ReadOnly => "journal.read_only",
            Self::Full => Code::JournalFull.as_str(),
            Self::Emptied => "journal.emptied",
            Self::Damaged => Code::JournalDamaged.as_str(),
            Self::Refused => "journal.refused",
        }
    }

    /// The reason code of a rollout whose judgment could not be read, fetched or stored.
    pub fn reason(self) -> Code {
        match self {
            Self::Full => Code::JournalFull,
            Self::Damaged => Code::JournalDamaged,
            _ => Code::JournalLost,
        }
    }

    /// What it means, and what is to be done about it.
    pub(super) fn advice(self) -> (&'static str, &'static str) {
        match self {
            Self::Address => {
                ("is not the address of a Redis", "write redis://[user:password@]host:port[/database]")
            }
            Self::Absent => (
                "cannot be used by a plaudit that was built without Redis",
                "build it with the feature redis",
            ),
            Self::Unreachable => ("cannot be reached", "see whether it runs, and run again"),
            Self::Login => ("does not let plaudit in", "check user, password and rights"),
            Self::ReadOnly => ("cannot be written", "name the primary, not a replica"),
            Self::Full => ("has no room for what would be bought", "give it more memory and run again"),
            Self::Emptied => (
                "has lost its judgments: it was flushed, or restarted without a file",
                "switch appendonly on and restore it, or run again to begin anew",
            ),
            Self::Damaged => (
                "holds something under a key of plaudit that is damaged or not plaudit's own",
                "delete that key, and what it held is judged again",
            ),
            Self::Refused => ("refuses a command", "see what it says, and run again"),
        }
    }
}
