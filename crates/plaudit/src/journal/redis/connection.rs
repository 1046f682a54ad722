//! Redis connection: one multiplexed connection, reconnects with bounded waiting.

use super::script::Scripts;
use crate::exec::lock;
use crate::journal::{JournalError, RedisError};
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, RedisError as ClientError, ServerErrorKind,
};
use std::future::Future;
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::Instant;

/// How long a connection may take, and how long an answer.
const PROMPT: Duration = Duration::from_secs(5);
/// How long whoever asks waits for a Redis that has gone away. It counts from when that was seen, so that a run over many
/// groups does not wait again and again.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long is waited between two tries.
const PAUSE: Duration = Duration::from_millis(100);
/// How often one that has been away for longer is tried.
const PROBE: Duration = Duration::from_secs(1);
/// How many commands may wait to be written.
const WAITING: usize = 1024;

/// The way to one Redis.
pub(super) struct RedisConnection {
    client: Client,
    /// Where it is, without a password.
    place: String,
    /// The key that must be in it, and what it must hold.
    token: (String, Vec<u8>),
    /// What drives the connection: a runtime of its own, because those of engines come and go.
    runtime: OnceLock<Option<Runtime>>,
    line: Mutex<Line>,
    /// Held by the one that connects.
    dialling: tokio::sync::Mutex<()>,
}

struct Line {
    connection: Option<MultiplexedConnection>,
    /// How often a connection was made or could not be.
    number: u64,
    down: Option<Down>,
}

/// A Redis that has gone away.
struct Down {
    since: Instant,
    /// When it is tried again once patience is over.
    next: Instant,
    error: JournalError,
}

impl RedisConnection {
    pub(super) fn new(client: Client, token: (String, Vec<u8>)) -> Self {
        Self {
            place: place(&client),
            client,
            token,
            runtime: OnceLock::new(),
            line: Mutex::new(Line { connection: None, number: 0, down: None }),
            dialling: tokio::sync::Mutex::new(()),
        }
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Sends a command until it is answered, Redis refuses it, or patience is over. It may then have been done twice.
    pub(super) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, JournalError> {
        let started = Instant::now();
        loop {
            let error = match self.ask_once(command).await {
                Err(error) if cause(&error) == Some(RedisError::Unreachable) => error,
                done => return done,
            };
            let since = self.line().down.as_ref().map_or(started, |down| down.since.min(started));
            if since.elapsed() >= PATIENCE {
                return Err(error);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Sends a command that must not be done twice.
    pub(super) async fn ask_once<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, JournalError> {
        let (number, mut connection) = self.connection().await?;
        command.query_async(&mut connection).await.map_err(|error| {
            let error = read(&self.client, &error);
            if cause(&error) == Some(RedisError::Unreachable) {
                self.hang_up(number, &error);
            }
            error
        })
    }

    /// The connection with its number, made anew where there is none.
    async fn connection(&self) -> Result<(u64, MultiplexedConnection), JournalError> {
        let before = {
            let line = self.line();
            if let Some(connection) = &line.connection {
                return Ok((line.number, connection.clone()));
            }
            line.look(Instant::now())?;
            line.number
        };
        let _turn = self.dialling.lock().await;
        {
            let line = self.line();
            match (&line.connection, &line.down) {
                (Some(connection), _) => return Ok((line.number, connection.clone())),
                // Somebody else has just found out.
                (None, Some(down)) if line.number > before => return Err(down.error.clone()),
                _ => {}
            }
        }
        let dialled = self.dial().await;
        let mut line = self.line();
        line.number += 1;
        match dialled {
            Ok(connection) => {
                line.connection = Some(connection.clone());
                line.down = None;
                Ok((line.number, connection))
            }
            Err(error) => {
                line.fail(Instant::now(), &error);
                Err(error)
            }
        }
    }

    /// Connects, and sees whether it is the Redis that it was.
    async fn dial(&self) -> Result<MultiplexedConnection, JournalError> {
        let (client, key) = (self.client.clone(), self.token.0.clone());
        let work = async move {
            let mut connection = connect(&client, PROMPT).await?;
            let mut first = redis::pipe();
            Scripts::load(first.cmd("GET").arg(key));
            let (found,): (Option<Vec<u8>>,) = first.query_async(&mut connection).await?;
            Ok::<_, ClientError>((connection, found))
        };
        // On the link's own runtime, which then drives the connection.
        let dialled = tokio::time::timeout(PROMPT, self.handle()?.spawn(work)).await;
        let (connection, found) = match dialled {
            Ok(Ok(Ok(dialled))) => dialled,
            Ok(Ok(Err(error))) => return Err(read(&self.client, &error)),
            Ok(Err(_)) => return Err(self.error(RedisError::Unreachable, "connecting was stopped")),
            Err(_) => return Err(self.error(RedisError::Unreachable, "it does not answer in time")),
        };
        match found {
            Some(found) if found == self.token.1 => Ok(connection),
            Some(_) => Err(self.error(RedisError::Emptied, "another journal was begun in it")),
            None => Err(self.error(RedisError::Emptied, "")),
        }
    }

    /// Lets go of a connection that broke.
    fn hang_up(&self, number: u64, error: &JournalError) {
        let mut line = self.line();
        if line.number == number && line.connection.take().is_some() {
            line.fail(Instant::now(), error);
        }
    }

    /// The runtime that drives the connection and the writes that no caller waits for.
    pub(super) fn handle(&self) -> Result<&Handle, JournalError> {
        match self.runtime.get_or_init(start) {
            Some(runtime) => Ok(runtime.handle()),
            None => Err(self.error(RedisError::Unreachable, "the system gives no thread for it")),
        }
    }

    pub(super) fn error(&self, cause: RedisError, message: &str) -> JournalError {
        JournalError::redis(&self.place, cause, message)
    }

    /// Does something over a connection of its own, on a thread that has nothing else to do. Answers may take `reply`.
    pub(super) fn once<T, F>(
        client: &Client,
        reply: Duration,
        work: impl FnOnce(MultiplexedConnection) -> F + Send,
    ) -> Result<T, JournalError>
    where
        T: Send,
        F: Future<Output = Result<T, ClientError>>,
    {
        let late =
            || JournalError::redis(place(client), RedisError::Unreachable, "it does not answer in time");
        let talk = || {
            let runtime = Builder::new_current_thread().enable_all().build().map_err(|_| late())?;
            let done = runtime.block_on(async {
                let work = async { work(connect(client, reply).await?).await };
                tokio::time::timeout(reply, work).await
            });
            done.map_err(|_| late())?.map_err(|error| read(client, &error))
        };
        // A thread of its own, because the caller may run on a runtime already.
        std::thread::scope(|scope| scope.spawn(talk).join()).unwrap_or_else(|_| Err(late()))
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        lock(&self.line)
    }
}

impl Drop for RedisConnection {
    fn drop(&mut self) {
        self.line().connection = None;
        if let Some(Some(runtime)) = self.runtime.take() {
            // Whoever drops it may be part of a runtime, in which nothing may wait.
            runtime.shutdown_background();
        }
    }
}

impl Line {
    /// Fails where Redis has been away for too long, unless it is time to see whether it is back.
    fn look(&self, now: Instant) -> Result<(), JournalError> {
        let Some(down) = &self.down else { return Ok(()) };
        if now < down.since + PATIENCE {
            return Ok(());
        }
        // Callers that arrive during an attempt wait for its result instead of getting the last error.
        if now < down.next { Err(down.error.clone()) } else { Ok(()) }
    }

    fn fail(&mut self, now: Instant, error: &JournalError) {
        let down = self.down.get_or_insert_with(|| Down { since: now, next: now, error: error.clone() });
        down.error = error.clone();
        down.next = now + PROBE;
    }
}

fn start() -> Option<Runtime> {
    Builder::new_multi_thread().worker_threads(1).thread_name("plaudit-redis").enable_all().build().ok()
}

async fn connect(client: &Client, reply: Duration) -> Result<MultiplexedConnection, ClientError> {
    let settings = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(PROMPT))
        .set_response_timeout(Some(reply))
        .set_pipeline_buffer_size(WAITING);
    client.get_multiplexed_async_connection_with_config(&settings).await
}

/// Where a Redis is, as it may be shown.
pub(super) fn place(client: &Client) -> String {
    let settings = client.get_connection_info();
    format!("Redis at {}/{}", settings.addr(), settings.redis_settings().db())
}

/// The cause, where it is one of Redis.
fn cause(error: &JournalError) -> Option<RedisError> {
    match error {
        JournalError::Redis { cause, .. } => Some(*cause),
        _ => None,
    }
}

/// What an error of Redis means. Its words never show a password.
pub(super) fn read(client: &Client, error: &ClientError) -> JournalError {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, NoPerm, NoScript, ReadOnly, TryAgain};
    // Of several commands that failed together, the first has the cause.
    let errors = error.clone().into_server_errors();
    let first = errors.as_ref().and_then(|errors| errors.first()).map(|(_, error)| error.clone());
    let first = first.map(ClientError::from);
    let error = first.as_ref().unwrap_or(error);
    let cause = match (error.kind(), error.code()) {
        (_, Some("OOM" | "MISCONF")) => RedisError::Full,
        (_, Some("NOAUTH" | "WRONGPASS")) | (ErrorKind::AuthenticationFailed, _) => RedisError::Login,
        (ErrorKind::Server(NoPerm), _) => RedisError::Login,
        (ErrorKind::Server(ReadOnly), _) => RedisError::ReadOnly,
        // A server that was restarted reads its file, or has forgotten the scripts.
        (ErrorKind::Server(BusyLoading | ClusterDown | MasterDown | NoScript | TryAgain), _) => {
            RedisError::Unreachable
        }
        (_, Some("BUSY")) | (ErrorKind::Io | ErrorKind::Parse, _) => RedisError::Unreachable,
        _ => RedisError::Refused,
    };
    let settings = client.get_connection_info().redis_settings();
    let mut message: String = error.to_string().chars().filter(|char| !char.is_control()).take(200).collect();
    for secret in settings.password().into_iter().filter(|secret| !secret.is_empty()) {
        message = message.replace(secret, "***");
    }
    JournalError::redis(place(client), cause, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_come_when_it_may_be_back_try_it() {
        let error = JournalError::Redis {
            place: "Redis".to_owned(),
            cause: RedisError::Unreachable,
            message: "connection refused".to_owned(),
        };
        let mut line = Line { connection: None, number: 0, down: None };
        let start = Instant::now();
        line.fail(start, &error);
        assert_eq!(line.look(start), Ok(()), "within patience");
        let lost = start + PATIENCE + PROBE;
        for _ in 0..3 {
            assert_eq!(line.look(lost), Ok(()), "nobody has found out yet");
        }
        line.fail(lost, &error);
        assert_eq!(line.look(lost), Err(error), "somebody has just found out");
        assert_eq!(line.look(lost + PROBE), Ok(()));
    }
}
