//! Where does the journal lie? In a folder of this machine, or in a Redis that several machines share.

use super::{Journal, JournalError, Recovered};
use crate::schedule::Record;
use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "redis")]
use super::Redis;
#[cfg(not(feature = "redis"))]
use super::Trouble;

/// An open journal.
#[derive(Debug, Clone)]
pub enum Store {
    /// In a folder, which one process has at a time.
    Folder(Arc<Journal>),
    /// In a Redis, which any number of processes on any number of machines share.
    #[cfg(feature = "redis")]
    Redis(Arc<Redis>),
}

impl Store {
    /// Whether a place is a Redis rather than a folder.
    pub fn is_redis(place: &str) -> bool {
        place.starts_with("redis://") || place.starts_with("rediss://")
    }

    /// Opens the journal at a place: `redis://[user:password@]host:port[/database]`, the same with `rediss` for TLS, or a
    /// folder, which is made if it is not there.
    pub fn open(place: &str) -> Result<(Self, Recovered), JournalError> {
        if !Self::is_redis(place) {
            let (journal, recovered) = Journal::open(Path::new(place))?;
            return Ok((Self::Folder(Arc::new(journal)), recovered));
        }
        #[cfg(feature = "redis")]
        return Redis::open(place).map(|(redis, recovered)| (Self::Redis(Arc::new(redis)), recovered));
        #[cfg(not(feature = "redis"))]
        return Err(JournalError::Shared {
            place: "Redis".to_owned(),
            trouble: Trouble::Absent,
            said: String::new(),
        });
    }

    /// What the fences, letters and nonces of all runs with this journal are derived from.
    pub fn secret(&self) -> [u8; 32] {
        match self {
            Self::Folder(journal) => journal.secret(),
            #[cfg(feature = "redis")]
            Self::Redis(redis) => redis.secret(),
        }
    }

    /// How many judgments it holds, as far as this process knows.
    pub fn judgments(&self) -> u64 {
        match self {
            Self::Folder(journal) => journal.judgments(),
            #[cfg(feature = "redis")]
            Self::Redis(redis) => redis.judgments(),
        }
    }

    /// The first time that it could not be written or read, where there was one.
    pub fn is_stuck(&self) -> Option<JournalError> {
        match self {
            Self::Folder(journal) => journal.is_stuck(),
            #[cfg(feature = "redis")]
            Self::Redis(redis) => redis.is_stuck(),
        }
    }

    /// Why no judgment could be bought now, if none could.
    pub fn has_room(&self) -> Result<(), JournalError> {
        match self {
            Self::Folder(journal) => journal.has_room(),
            #[cfg(feature = "redis")]
            Self::Redis(redis) => redis.is_stuck().map_or(Ok(()), Err),
        }
    }

    /// What the caller of judges writes into.
    pub(crate) fn record(&self) -> Arc<dyn Record> {
        match self {
            Self::Folder(journal) => Arc::clone(journal) as Arc<dyn Record>,
            #[cfg(feature = "redis")]
            Self::Redis(redis) => Arc::clone(redis) as Arc<dyn Record>,
        }
    }
}
