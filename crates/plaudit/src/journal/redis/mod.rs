//! Journal in Redis: several machines share their judgments and pay for each once.
//!
//! Every key begins with `plaudit:1:`, and every value that a verdict could follow from is sealed like a record of a
//! folder's log, so that what is damaged or foreign is an error and never a verdict:
//!
//! | Key | Value |
//! |---|---|
//! | `secret` | what fences and keys are derived from, drawn by the first that comes |
//! | `judgment:KEY` | a judge's reply |
//! | `judgments` | how many there are |
//! | `claim:KEY` | who is asking, for as long as the call may take |
//! | `alive:PROCESS` | a sign of life, without which a claim is void |
//! | `fact:NAME` | a small settled fact |
//! | `spent:JUDGE` | a hash of `calls`, `cost`, what is `held` for calls in flight, and calls `maybe_paid` for nothing |
//! | `run`, `rollouts` | the last run that finished, and what it was over |
//!
//! Judgments have no time to live: they were paid for. A call is claimed and counted in one step before it is sent, and
//! a process that finds it claimed waits for its judgment.

mod connection;
mod record;
mod script;
mod server;

use super::Recovered;
use super::entry::Entry;
use super::error::{JournalError, RedisError};
use super::folder::{sealed_secret, unsealed_secret};
use super::frame::{HEAD, Seal};
use crate::exec::lock;
use connection::RedisConnection;
use redis::{Client, RedisError as ClientError};
use script::Scripts;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tokio::sync::OnceCell;

/// What every key begins with; the number changes when the meaning of a value does.
const PREFIX: &str = "plaudit:1:";
/// How long opening may take.
const OPENING: Duration = Duration::from_secs(5);
/// How long is waited for writes that were handed over.
const FLUSH: Duration = Duration::from_secs(6);
/// How long a whole run may take to be written or read.
const RUN: Duration = Duration::from_secs(60);

/// A journal in a Redis.
pub struct Redis {
    client: Client,
    connection: Arc<RedisConnection>,
    secret: [u8; 32],
    seal: Seal,
    scripts: Scripts,
    /// What this process is called in claims.
    name: String,
    judgments: AtomicU64,
    /// Writes that no caller waits for.
    pending: Arc<Waiting>,
    stuck: Mutex<Option<JournalError>>,
    dice: AtomicU64,
    /// Set when the first sign of life was given.
    alive: OnceCell<()>,
}

impl fmt::Debug for Redis {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the secret nor the password may get into a log by accident.
        out.debug_struct("Redis").field("place", &self.connection.place()).finish_non_exhaustive()
    }
}

impl Drop for Redis {
    /// Leaves nothing behind that was handed over and not written.
    fn drop(&mut self) {
        self.flush();
    }
}

/// How many writes were handed over and are not done.
#[derive(Debug, Default)]
struct Waiting {
    count: Mutex<u64>,
    none: Condvar,
}

/// One of them, until it is dropped.
struct Pending(Arc<Waiting>);

impl Pending {
    fn new(waiting: &Arc<Waiting>) -> Self {
        *lock(&waiting.count) += 1;
        Self(Arc::clone(waiting))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut count = lock(&self.0.count);
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.0.none.notify_all();
        }
    }
}

/// The last run that finished, as a front has put it down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastRun {
    /// What was done.
    pub run: Vec<u8>,
    /// What it was done over, unless that was too large.
    pub rollouts: Option<Vec<u8>>,
}

impl Redis {
    /// Opens the journal in a Redis, which is there for others at the same time. Nothing is left running; the first
    /// question connects again.
    pub fn open(url: &str) -> Result<(Self, Recovered), JournalError> {
        #[cfg(feature = "tls")]
        crate::tls::install_provider();
        let client = Client::open(url).map_err(|error| {
            let message = error.detail().unwrap_or(error.category());
            JournalError::redis("the state", RedisError::Address, message)
        })?;
        let (fresh, name, seed) = (drawn(&client)?, drawn(&client)?, drawn(&client)?);
        let opened = RedisConnection::once(&client, OPENING, |mut connection| async move {
            // Also where there is a secret: it shows whether anything can be written.
            let (_, sealed, judgments): (bool, Vec<u8>, Option<u64>) = redis::pipe()
                .cmd("SET")
                .arg(key("secret"))
                .arg(sealed_secret(&fresh))
                .arg("NX")
                .cmd("GET")
                .arg(key("secret"))
                .cmd("GET")
                .arg(key("judgments"))
                .query_async(&mut connection)
                .await?;
            let warnings = server::warnings(&mut connection).await?;
            Ok::<_, ClientError>((sealed, judgments.unwrap_or(0), warnings))
        });
        let (sealed, judgments, warnings) = opened?;
        let Some(secret) = unsealed_secret(&sealed) else {
            return Err(JournalError::redis(connection::place(&client), RedisError::Damaged, key("secret")));
        };
        let redis = Self {
            connection: Arc::new(RedisConnection::new(client.clone(), (key("secret"), sealed))),
            client,
            secret,
            seal: Seal::of(&secret),
            scripts: Scripts::new(),
            name: format!("{:016x}", u64::from_le_bytes(name)),
            judgments: AtomicU64::new(judgments),
            pending: Arc::default(),
            stuck: Mutex::new(None),
            dice: AtomicU64::new(u64::from_le_bytes(seed)),
            alive: OnceCell::new(),
        };
        Ok((redis, Recovered { judgments, warnings, ..Recovered::default() }))
    }

    /// Random bytes that are the same for all that share the journal.
    pub fn secret(&self) -> [u8; 32] {
        self.secret
    }

    /// How many judgments it held when it was opened, and what this process has added.
    pub fn judgments(&self) -> u64 {
        self.judgments.load(Ordering::Relaxed)
    }

    /// The first time that it could not be written or read.
    pub fn is_stuck(&self) -> Option<JournalError> {
        lock(&self.stuck).clone()
    }

    /// Returns when all that was handed over is written, or after a moment: what is late is held or claimed until it ends
    /// by itself.
    pub fn flush(&self) {
        let count = lock(&self.pending.count);
        let _ = self.pending.none.wait_timeout_while(count, FLUSH, |count| *count > 0);
    }

    /// Puts a finished run in the place of the last one.
    pub fn put_run(&self, last: &LastRun) -> Result<(), JournalError> {
        let mut both = redis::pipe();
        both.atomic().set(key("run"), &last.run).ignore();
        match &last.rollouts {
            Some(rollouts) => both.set(key("rollouts"), rollouts).ignore(),
            None => both.del(key("rollouts")).ignore(),
        };
        RedisConnection::once(&self.client, RUN, |mut connection| async move {
            both.exec_async(&mut connection).await
        })
    }

    /// The last run that finished, where there is one.
    pub fn last_run(&self) -> Result<Option<LastRun>, JournalError> {
        let (run, rollouts): (Option<Vec<u8>>, Option<Vec<u8>>) =
            RedisConnection::once(&self.client, RUN, |mut connection| async move {
                redis::cmd("MGET").arg(key("run")).arg(key("rollouts")).query_async(&mut connection).await
            })?;
        Ok(run.map(|run| LastRun { run, rollouts }))
    }

    /// An entry as it is stored.
    fn sealed(&self, entry: &Entry<'_>) -> Result<Vec<u8>, JournalError> {
        Ok(self.seal.finish(self.seal.draft(|out| entry.write(out))?, 0))
    }

    /// The entry under a key, or an error where it is damaged or foreign.
    fn unsealed<T>(
        &self,
        name: &str,
        value: &[u8],
        take: impl FnOnce(Entry<'_>) -> Option<T>,
    ) -> Result<T, JournalError> {
        let head = self.seal.head(value).filter(|head| self.seal.holds(head, &value[HEAD..]));
        let taken = head.and_then(|_| Entry::read(&value[HEAD..])).and_then(take);
        taken.ok_or_else(|| self.connection.error(RedisError::Damaged, name))
    }
}

/// Random bytes.
fn drawn<const N: usize>(client: &Client) -> Result<[u8; N], JournalError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        let message = format!("the system gives no random numbers: {error}");
        JournalError::redis(connection::place(client), RedisError::Refused, message)
    })?;
    Ok(bytes)
}

fn key(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// Under what the judgment or the claim of a question lies.
fn key_of(kind: &str, question: &[u8; 32]) -> String {
    format!("{PREFIX}{kind}:{}", blake3::Hash::from_bytes(*question).to_hex())
}

/// Under what it lies what was spent on a judge.
fn spent_key(judge: &str) -> String {
    format!("{PREFIX}spent:{judge}")
}
