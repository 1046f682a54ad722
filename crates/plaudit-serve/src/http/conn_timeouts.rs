//! Connection timeouts: a stream that gives up on clients that send their headers too slowly, stay idle for too long, or do not read
//! the answer (write stall).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How long a connection may be without a request.
const IDLE: Duration = Duration::from_secs(60);
/// How long the head of a request may take, from its first byte.
const HEAD: Duration = Duration::from_secs(10);
/// How long a client may read nothing of an answer.
const WRITE: Duration = Duration::from_secs(30);
/// How long input is discarded after the 408, so that the client receives it before the socket closes.
const LINGER: Duration = Duration::from_secs(1);
/// The answer to a client that is too slow.
const TOO_SLOW: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\ncontent-length: 72\r\nconnection: close\r\n\r\n{\"error\":{\"code\":\"http.timeout\",\"message\":\"the headers took over 10 s\"}}";

/// Between requests.
const WAITING: u8 = 0;
/// The head of a request is on its way.
const READING: u8 = 1;
/// A request is being answered.
const BUSY: u8 = 2;
/// The answer is on its way.
const ANSWERING: u8 = 3;

/// What a connection is doing; shared between the stream and the service.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConnPhase(Arc<AtomicU8>);

impl ConnPhase {
    /// The head of a request has come in.
    pub(crate) fn begin(&self) {
        self.0.store(BUSY, Ordering::Release);
    }

    /// The answer is there.
    pub(crate) fn end(&self) {
        self.0.store(ANSWERING, Ordering::Release);
    }

    fn get(&self) -> u8 {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self, phase: u8) {
        self.0.store(phase, Ordering::Release);
    }
}

/// A stream with timeouts.
#[derive(Debug)]
pub(crate) struct TimedStream<S> {
    inner: S,
    phase: ConnPhase,
    /// When the current phase began.
    since: (Instant, u8),
    sleep: Pin<Box<Sleep>>,
    /// Since when nothing could be written.
    stuck: Option<Instant>,
    /// Until when it lingers after the 408.
    leaving: Option<Instant>,
}

impl<S> TimedStream<S> {
    pub(crate) fn new(inner: S, phase: ConnPhase) -> Self {
        let now = Instant::now();
        Self {
            inner,
            phase,
            since: (now, WAITING),
            sleep: Box::pin(tokio::time::sleep_until(now + IDLE)),
            stuck: None,
            leaving: None,
        }
    }

    /// When the time is over in which something must be read; never, while a request is being answered.
    fn due(&mut self) -> Option<Instant> {
        let phase = self.phase.get();
        if self.since.1 != phase {
            self.since = (Instant::now(), phase);
        }
        match phase {
            WAITING => Some(self.since.0 + IDLE),
            READING => Some(self.since.0 + HEAD),
            _ => None,
        }
    }

    /// Whether a moment has passed; where it has not, the task is woken when it has.
    fn has_passed(&mut self, at: Instant, context: &mut Context<'_>) -> bool {
        if self.sleep.deadline() != at {
            self.sleep.as_mut().reset(at);
        }
        self.sleep.as_mut().poll(context).is_ready()
    }

    fn wrote<T>(&mut self, done: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.stuck = None;
            return done;
        }
        let since = *self.stuck.get_or_insert_with(Instant::now);
        match self.has_passed(since + WRITE, context) {
            true => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            false => Poll::Pending,
        }
    }
}

use std::future::Future as _;

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.leaving.is_some() {
            return this.leave(context);
        }
        let before = buffer.filled().len();
        if let Poll::Ready(done) = Pin::new(&mut this.inner).poll_read(context, buffer) {
            if buffer.filled().len() > before && this.phase.get() == WAITING {
                this.phase.set(READING);
            }
            return Poll::Ready(done);
        }
        let Some(due) = this.due() else { return Poll::Pending };
        if !this.has_passed(due, context) {
            return Poll::Pending;
        }
        if this.phase.get() == READING {
            // Whether it arrives is the client's affair.
            let _ = Pin::new(&mut this.inner).poll_write(context, TOO_SLOW);
            let _ = Pin::new(&mut this.inner).poll_shutdown(context);
            this.leaving = Some(Instant::now() + LINGER);
            return this.leave(context);
        }
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> TimedStream<S> {
    /// Throws away what still comes. A connection that is closed while something is unread is torn down, and what was said last
    /// with it.
    fn leave(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut scrap = [0; 1024];
        let until = self.leaving.unwrap_or_else(Instant::now);
        while !self.has_passed(until, context) {
            let mut scrap = ReadBuf::new(&mut scrap);
            match ready!(Pin::new(&mut self.inner).poll_read(context, &mut scrap)) {
                Ok(()) if !scrap.filled().is_empty() => {}
                _ => break,
            }
        }
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.wrote(done, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write_vectored(context, slices);
        self.wrote(done, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.inner).poll_flush(context);
        let done = ready!(self.wrote(done, context));
        if self.phase.get() == ANSWERING {
            self.phase.set(WAITING);
        }
        Poll::Ready(done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.inner).poll_shutdown(context);
        self.wrote(done, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    #[test]
    fn content_length_of_the_408_is_right() {
        let text = std::str::from_utf8(TOO_SLOW).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
    }

    #[tokio::test(start_paused = true)]
    async fn slow_headers_and_idle_connections_time_out() {
        let (mut client, server) = duplex(1 << 10);
        let mut guarded = TimedStream::new(server, ConnPhase::default());
        client.write_all(b"G").await.unwrap();
        let mut buffer = [0; 8];
        assert_eq!(guarded.read(&mut buffer).await.unwrap(), 1);
        let began = Instant::now();
        assert_eq!(guarded.read(&mut buffer).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(began.elapsed().as_secs(), 11, "told after ten seconds, and gone after one more");
        drop(guarded);
        let mut told = String::new();
        client.read_to_string(&mut told).await.unwrap();
        assert!(told.starts_with("HTTP/1.1 408"));

        let (client, server) = duplex(1 << 10);
        let mut guarded = TimedStream::new(server, ConnPhase::default());
        let began = Instant::now();
        assert!(guarded.read(&mut buffer).await.is_err());
        assert_eq!(began.elapsed().as_secs(), 60);
        drop(client);
    }

    #[tokio::test(start_paused = true)]
    async fn write_stall_times_out_but_slow_handlers_do_not() {
        let (_client, server) = duplex(16);
        let phase = ConnPhase::default();
        let mut guarded = TimedStream::new(server, phase.clone());
        phase.begin();
        let began = Instant::now();
        assert!(guarded.write_all(&[0; 64]).await.is_err());
        assert_eq!(began.elapsed().as_secs(), 30);
        let read = tokio::time::timeout(Duration::from_secs(500), guarded.read(&mut [0; 8])).await;
        assert!(read.is_err(), "while a request is answered nothing has to come in");
    }
}
