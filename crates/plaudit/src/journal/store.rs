//! Journal store: a local folder, or a Redis that several machines share.

use super::{Journal, JournalError, Recovered};
use crate::record::Record;
use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "redis")]
use super::Redis;
#[cfg(not(feature = "redis"))]
use super::RedisError;

/// Does the same with whichever journal a store is.
macro_rules! either {
    ($store:expr, $journal:ident => $what:expr) => {
        match $store {
            Store::Folder($journal) => $what,
            #[cfg(feature = "redis")]
            Store::Redis($journal) => $what,
        }
    };
}

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
        scheme(place).is_some_and(|(name, _)| redis_scheme(name).is_some())
    }

    /// Refuses a place that is meant as an address and is none, so that a slip does not become a folder of that name.
    pub fn check(place: &str) -> Result<(), JournalError> {
        let Some((name, rest)) = scheme(place) else { return Ok(()) };
        // What follows may hold a password, and is not repeated.
        let refused = |fix: String| Err(JournalError::Address { scheme: name.to_owned(), fix });
        match redis_scheme(name) {
            Some(_) if rest.starts_with("//") => Ok(()),
            Some(known) => refused(format!("write {known}://[user:password@]host:port[/database]")),
            None if !rest.starts_with('/') => Ok(()),
            None if name.eq_ignore_ascii_case("file") => refused("name the folder without it".to_owned()),
            None => refused(format!(
                "name a folder (one that is called so as ./{name}:/...), or redis://host:port[/database]"
            )),
        }
    }

    /// Opens the journal at a place: `redis://[user:password@]host:port[/database]`, the same with `rediss` for TLS or with
    /// `valkey` and `valkeys`, or a folder, which is made if it is not there.
    pub fn open(place: &str) -> Result<(Self, Recovered), JournalError> {
        Self::check(place)?;
        let redis = scheme(place).and_then(|(name, rest)| Some(format!("{}:{rest}", redis_scheme(name)?)));
        match redis {
            None => {
                let (journal, recovered) = Journal::open(Path::new(place))?;
                Ok((Self::Folder(Arc::new(journal)), recovered))
            }
            #[cfg(feature = "redis")]
            Some(address) => {
                let (redis, recovered) = Redis::open(&address)?;
                Ok((Self::Redis(Arc::new(redis)), recovered))
            }
            #[cfg(not(feature = "redis"))]
            Some(_) => Err(JournalError::redis("Redis", RedisError::Absent, "")),
        }
    }

    /// Brings all that is written to the disk and lets a folder go, for whoever still holds the journal.
    pub fn close(&self) {
        match self {
            Self::Folder(journal) => journal.close(),
            #[cfg(feature = "redis")]
            Self::Redis(_) => {}
        }
    }

    /// What the fences, letters and nonces of all runs with this journal are derived from.
    pub fn secret(&self) -> [u8; 32] {
        either!(self, journal => journal.secret())
    }

    /// How many judgments it holds, as far as this process knows.
    pub fn judgments(&self) -> u64 {
        either!(self, journal => journal.judgments())
    }

    /// The first time that it could not be written or read, where there was one.
    pub fn is_stuck(&self) -> Option<JournalError> {
        either!(self, journal => journal.is_stuck())
    }

    /// Why no judgment could be stored now, if none could.
    pub fn has_room(&self) -> Result<(), JournalError> {
        match self {
            Self::Folder(journal) => journal.has_room(),
            #[cfg(feature = "redis")]
            Self::Redis(redis) => redis.is_stuck().map_or(Ok(()), Err),
        }
    }

    /// What the caller of judges writes into.
    pub(crate) fn record(&self) -> Arc<dyn Record> {
        either!(self, journal => Arc::clone(journal) as Arc<dyn Record>)
    }
}

/// What stands before and after the first colon, where the first is a word as schemes of addresses are.
fn scheme(place: &str) -> Option<(&str, &str)> {
    let (name, rest) = place.split_once(':')?;
    let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    (letters && name.starts_with(|first: char| first.is_ascii_alphabetic())).then_some((name, rest))
}

/// The scheme that the client of Redis knows, for one that means a Redis. Valkey speaks as Redis does.
fn redis_scheme(name: &str) -> Option<&'static str> {
    match name.to_ascii_lowercase().as_str() {
        "redis" | "valkey" => Some("redis"),
        "rediss" | "valkeys" => Some("rediss"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_folders() {
        for place in ["redis://h:1/0", "REDIS://h:1", "Rediss://u:p@h:1", "valkey://h:1", "valkeys://h"] {
            assert!(Store::is_redis(place), "{place}");
            assert_eq!(Store::check(place), Ok(()), "{place}");
        }
        for place in ["state", "./redis:/x", "/a/b:c", "run:12", "a b://c", "redis", "", ":/", "1://x"] {
            assert!(!Store::is_redis(place), "{place}");
            assert_eq!(Store::check(place), Ok(()), "{place}");
        }
    }

    #[test]
    fn a_misspelt_address_is_refused_and_makes_no_folder() {
        for (place, fix) in [
            ("redis:/127.0.0.1:6379", "redis://"),
            ("redis:6379", "redis://"),
            ("RedisS:/h", "rediss://"),
            ("http://user:secret@x", "./http:/"),
            ("reddis://x", "redis://host"),
            ("file:///tmp/x", "without it"),
        ] {
            let refused = Store::open(place).map(|_| ()).unwrap_err();
            let said = refused.to_string();
            assert_eq!(refused.code(), "journal.address", "{place}");
            assert!(said.contains(fix) && !said.contains("secret"), "{place}: {said}");
            assert!(!Path::new(place).exists(), "{place}");
        }
    }
}
