//! Logging: a tracing layer that writes one line for each event to stderr, in words at a terminal and as JSON elsewhere.
//!
//! Logging is non-blocking: events go through a bounded queue to a thread of its own, since a full stderr pipe must not stall the
//! service. Events that do not fit are counted and dropped. tracing-appender would do this with `time` and four more crates.

use crate::unix_time;
use serde_json::{Map, Value};
use std::fmt;
use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

/// How many lines may wait to be written.
const QUEUE: usize = 1024;
/// How long to wait at the end until the queue is written.
const FLUSH: Duration = Duration::from_secs(1);

/// Logging to stderr, from [`init`] on; dropping it waits until everything is written, if somebody reads it.
#[derive(Debug)]
pub struct LogGuard {
    writer: LogWriter,
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        let Some(queue) = &self.writer.queue else { return };
        let (done, wait) = sync_channel(1);
        if queue.try_send(LogItem::Flush(done)).is_ok() {
            let _ = wait.recv_timeout(FLUSH);
        }
    }
}

/// Installs the layer for this process. A second call in one process changes nothing.
pub fn init() -> LogGuard {
    let writer = LogWriter::start();
    let subscriber = tracing_subscriber::registry().with(StderrLayer { writer: writer.clone() });
    let _ = tracing::subscriber::set_global_default(subscriber);
    LogGuard { writer }
}

enum LogItem {
    Line(String),
    /// Somebody waits until everything before it is written.
    Flush(SyncSender<()>),
}

/// The sending end of the queue.
#[derive(Debug, Clone)]
struct LogWriter {
    /// None where the system gives no thread; lines are then written at once.
    queue: Option<SyncSender<LogItem>>,
    dropped: Arc<AtomicU64>,
}

impl LogWriter {
    fn start() -> Self {
        let (send, receive) = sync_channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&dropped);
        let thread = std::thread::Builder::new().name("plaudit-log".to_owned());
        let queue = thread.spawn(move || write_queue(&receive, &counter)).ok().map(|_| send);
        Self { queue, dropped }
    }

    fn send(&self, line: String) {
        match &self.queue {
            None => write(&line),
            Some(queue) => {
                if queue.try_send(LogItem::Line(line)).is_err() {
                    self.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

fn write_queue(queue: &Receiver<LogItem>, dropped: &AtomicU64) {
    while let Ok(item) = queue.recv() {
        match item {
            LogItem::Line(line) => write(&line),
            LogItem::Flush(done) => drop(done.send(())),
        }
        let lines = dropped.swap(0, Ordering::Relaxed);
        if lines > 0 {
            let fields = Map::from_iter([("lines".to_owned(), Value::from(lines))]);
            write(&line("warning", "nobody read what was said", fields));
        }
    }
}

fn write(line: &str) {
    // The reader may have gone.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Writes the events of plaudit from the level INFO on.
struct StderrLayer {
    writer: LogWriter,
}

impl<S: Subscriber> Layer<S> for StderrLayer {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().starts_with("plaudit")
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            _ => "info",
        };
        self.writer.send(line(level, &fields.message, fields.others));
    }
}

/// The message and the other fields of an event.
#[derive(Default)]
struct Fields {
    message: String,
    others: Map<String, Value>,
}

impl Fields {
    fn set(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            (name, value) => drop(self.others.insert(name.to_owned(), value)),
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, Value::from(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, Value::from(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, Value::from(format!("{value:?}")));
    }
}

fn line(level: &str, message: &str, fields: Map<String, Value>) -> String {
    match std::io::stderr().is_terminal() {
        true => words(level, message, &fields),
        false => data(level, message, fields),
    }
}

/// A line for a person. Texts of clients are escaped, so that an event is always one line.
fn words(level: &str, message: &str, fields: &Map<String, Value>) -> String {
    let mut line = match level {
        "info" => message.to_owned(),
        level => format!("{level}: {message}"),
    };
    for (name, value) in fields {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        line.push_str(&format!("  {name}={}", printable(&text)));
    }
    line
}

fn data(level: &str, message: &str, fields: Map<String, Value>) -> String {
    let mut map = Map::new();
    map.insert("time".to_owned(), Value::from(unix_time()));
    map.insert("level".to_owned(), Value::from(level));
    map.insert("event".to_owned(), Value::from(message));
    map.extend(fields);
    Value::Object(map).to_string()
}

/// The text with everything escaped that a terminal would interpret.
pub fn printable(text: &str) -> String {
    let escaped = |letter: char| match letter {
        '"' | '\'' | '\\' => vec![letter],
        other => other.escape_debug().collect(),
    };
    text.chars().flat_map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_one_line() {
        let fields = Map::from_iter([("run".to_owned(), Value::from("x\n2026-01-01 INFO paid=0\x1b[2J"))]);
        for line in [words("warning", "stuck", &fields), data("warning", "stuck", fields.clone())] {
            assert!(!line.contains('\n') && !line.contains('\x1b'), "{line}");
        }
    }
}
