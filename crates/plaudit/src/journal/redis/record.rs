//! `Record` on top of Redis: claims before calls, judgments before results.

use super::script::invoke;
use super::{Pending, Redis, key, key_of, spent_key};
use crate::exec::lock;
use crate::journal::entry::{Entry, JudgmentKey};
use crate::journal::{JournalError, RedisError};
use crate::reason::{Code, Reason};
use crate::record::{Allowance, CallGrant, Claim, Record, RecordSource};
use futures_util::future::BoxFuture;
use redis::Cmd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How much longer than its call a claim holds: the reply must still be stored.
const SLACK: Duration = Duration::from_secs(15);
/// How long a sign of life holds, and how often one is given.
const ALIVE: Duration = Duration::from_secs(15);
const BEAT: Duration = Duration::from_secs(4);
/// The first and the longest pause between two looks at what another process is asking.
const LOOK: Duration = Duration::from_millis(10);
const MAX_LOOK: Duration = Duration::from_millis(250);

/// What an error means for a rollout.
fn reason(error: &JournalError) -> Reason {
    let code = match error {
        JournalError::Redis { cause, .. } => cause.reason(),
        JournalError::Full { .. } | JournalError::TooLarge { .. } => Code::JournalFull,
        _ => Code::JournalLost,
    };
    Reason::new(code, error.to_string())
}

impl Redis {
    async fn ask<T: redis::FromRedisValue>(&self, command: &Cmd) -> Result<T, Reason> {
        self.noted(self.connection.ask(command).await)
    }

    /// Remembers an error, so that a run can report it in the end, and says what it means for a rollout.
    fn noted<T>(&self, done: Result<T, JournalError>) -> Result<T, Reason> {
        done.map_err(|error| {
            let reason = reason(&error);
            lock(&self.stuck).get_or_insert(error);
            reason
        })
    }

    /// Hands a write over that is done once, whether or not anybody waits.
    fn later(&self, command: Cmd) {
        let pending = Pending::new(&self.pending);
        let connection = Arc::clone(&self.connection);
        if let Ok(handle) = self.connection.handle() {
            handle.spawn(async move {
                // What cannot be written here shows when the next call is intended.
                let _: Result<redis::Value, JournalError> = connection.ask_once(&command).await;
                drop(pending);
            });
        }
    }

    fn request_id(&self, claim: &Claim<'_>) -> String {
        format!("{}:{}", self.name, claim.request_id)
    }

    fn judgment(&self, question: &[u8; 32], value: &[u8]) -> Result<Vec<u8>, Reason> {
        let asked = JudgmentKey::from(*question);
        self.noted(self.unsealed(&key_of("judgment", question), value, |entry| match entry {
            Entry::Judgment { key, body, .. } if key == asked => Some(body.to_vec()),
            _ => None,
        }))
    }

    /// A pause that is not the same for all who wait.
    fn jittered(&self, pause: Duration) -> Duration {
        let mut mixed = self.dice.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        pause.mul_f64(0.5 + (mixed >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// Gives a sign of life from now on, for as long as the journal is open. A process that has died is so told from one
    /// that waits for a slow judge, and what it had claimed may be asked by others.
    async fn live(&self) -> Result<(), Reason> {
        let begin = || async {
            let mut sign = redis::cmd("SET");
            let name = format!("{}{}", key("alive:"), self.name);
            sign.arg(name).arg("").arg("PX").arg(ALIVE.as_millis() as u64);
            self.ask::<redis::Value>(&sign).await?;
            let connection = Arc::downgrade(&self.connection);
            let handle = self.connection.handle().map_err(|error| reason(&error))?;
            handle.spawn(async move {
                loop {
                    sleep(BEAT).await;
                    let Some(connection) = connection.upgrade() else { return };
                    // One that is lost is followed by the next.
                    let _: Result<redis::Value, JournalError> = connection.ask_once(&sign).await;
                }
            });
            Ok::<(), Reason>(())
        };
        self.alive.get_or_try_init(begin).await?;
        Ok(())
    }

    async fn claim(&self, claim: Claim<'_>, allowance: Allowance) -> Result<CallGrant, Reason> {
        self.live().await?;
        let keys = [key_of("judgment", claim.key), key_of("claim", claim.key), spent_key(claim.judge)];
        let mut command = invoke(&self.scripts.intend, &keys);
        let milliseconds = (allowance.timeout + SLACK).as_millis() as u64;
        command.arg(self.request_id(&claim)).arg(milliseconds);
        command.arg(allowance.calls.map_or_else(String::new, |calls| calls.to_string()));
        command.arg(allowance.cost.map_or_else(String::new, |cost| cost.to_string()));
        command.arg(allowance.reserved.to_string()).arg(key("alive:"));
        let started = Instant::now();
        loop {
            let said: String = self.ask(&command).await?;
            match said.as_str() {
                "granted" => return Ok(CallGrant::Granted),
                "elsewhere" => return Ok(CallGrant::Elsewhere),
                // What is held for longer than a call can take is of a process that died, and counts as spent.
                "depends" if started.elapsed() < allowance.timeout + SLACK => {
                    sleep(self.jittered(MAX_LOOK)).await
                }
                _ => return Err(Code::JudgeBudget.into()),
            }
        }
    }
}

impl Record for Redis {
    fn get<'a>(&'a self, question: &'a [u8; 32]) -> BoxFuture<'a, Result<Option<Vec<u8>>, Reason>> {
        Box::pin(async move {
            let value: Option<Vec<u8>> = self.ask(&Cmd::get(key_of("judgment", question))).await?;
            value.map(|value| self.judgment(question, &value)).transpose()
        })
    }

    fn begin_call<'a>(
        &'a self,
        claim: Claim<'a>,
        allowance: Allowance,
    ) -> BoxFuture<'a, Result<CallGrant, Reason>> {
        Box::pin(self.claim(claim, allowance))
    }

    fn follow<'a>(&'a self, question: &'a [u8; 32]) -> BoxFuture<'a, Result<Option<Vec<u8>>, Reason>> {
        Box::pin(async move {
            let keys = [key_of("judgment", question), key_of("claim", question)];
            let mut command = invoke(&self.scripts.look, &keys);
            command.arg(key("alive:"));
            let mut pause = LOOK;
            loop {
                match self.ask(&command).await? {
                    redis::Value::BulkString(value) => return self.judgment(question, &value).map(Some),
                    redis::Value::Int(_) => sleep(self.jittered(pause)).await,
                    _ => return Ok(None),
                }
                pause = pause.mul_f64(1.5).min(MAX_LOOK);
            }
        })
    }

    fn store<'a>(
        &'a self,
        source: RecordSource<'a>,
        body: &[u8],
        latency: Duration,
    ) -> BoxFuture<'a, Result<(), Reason>> {
        let (of, judge) = (source.key(), source.name());
        let sealed = self.sealed(&Entry::Judgment { key: JudgmentKey::from(*of), latency, judge, body });
        let keys = [key_of("judgment", of), key_of("claim", of), key("judgments")];
        let claimed_by = match &source {
            RecordSource::Judge(claim) => self.request_id(claim),
            RecordSource::Program(_) | RecordSource::Item(_) => String::new(),
        };
        let mut command = invoke(&self.scripts.keep, &keys);
        let written = sealed.and_then(|sealed| {
            command.arg(claimed_by).arg(sealed);
            let (connection, pending) = (Arc::clone(&self.connection), Pending::new(&self.pending));
            // It is paid for, so it is stored even if no caller waits for it any more.
            Ok(self.connection.handle()?.spawn(async move {
                let kept: Result<redis::Value, JournalError> = connection.ask(&command).await;
                drop(pending);
                kept
            }))
        });
        Box::pin(async move {
            let kept = match written {
                Ok(written) => written.await.unwrap_or_else(|_| {
                    Err(self.connection.error(RedisError::Unreachable, "the journal was closed"))
                }),
                Err(error) => Err(error),
            };
            self.noted(kept)?;
            self.judgments.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
    }

    fn fail_call(&self, claim: Claim<'_>, _: Code, maybe_paid: bool) {
        if maybe_paid {
            self.later(Cmd::hincr(spent_key(claim.judge), "maybe_paid", 1));
        }
    }

    fn release(&self, claim: Claim<'_>) {
        let mut command = invoke(&self.scripts.release, &[key_of("claim", claim.key)]);
        command.arg(self.request_id(&claim));
        self.later(command);
    }

    fn get_fact<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<String>, Reason>> {
        Box::pin(async move {
            let under = key(&format!("fact:{name}"));
            let Some(value) = self.ask::<Option<Vec<u8>>>(&Cmd::get(&under)).await? else { return Ok(None) };
            let fact = self.unsealed(&under, &value, |entry| match entry {
                Entry::Fact { name: found, value } if found == name => Some(value.to_owned()),
                _ => None,
            });
            self.noted(fact).map(Some)
        })
    }

    fn set_fact(&self, name: &str, value: &str) {
        if let Ok(sealed) = self.sealed(&Entry::Fact { name, value }) {
            self.later(Cmd::set(key(&format!("fact:{name}")), sealed));
        }
    }

    fn spent<'a>(&'a self, judge: &'a str) -> BoxFuture<'a, Result<(u64, f64), Reason>> {
        Box::pin(async move {
            let mut command = redis::cmd("HMGET");
            command.arg(spent_key(judge)).arg("calls").arg("cost");
            let (calls, cost): (Option<String>, Option<String>) = self.ask(&command).await?;
            // A sum that cannot be read must not open the purse again.
            let calls = calls.map_or(0, |calls| calls.parse().unwrap_or(u64::MAX));
            Ok((calls, cost.map_or(0.0, |cost| cost.parse().unwrap_or(f64::INFINITY))))
        })
    }

    fn spend(&self, judge: &str, reserved: f64, cost: f64) {
        let mut command = invoke(&self.scripts.spend, &[spent_key(judge)]);
        command.arg(reserved.to_string()).arg(cost.to_string());
        self.later(command);
    }
}
