//! What does the service say while it runs? One line an event on stderr: for a person at a terminal in words, else as JSON.
//!
//! A thread of its own writes, so that nobody waits for whoever reads it: a pipe that is full would else stop the service.

use crate::console::printable;
use serde_json::{Map, Value};
use std::io::{IsTerminal as _, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

/// How many lines may wait to be written; what comes then is counted and not written.
const MOST: usize = 1024;
/// How long is waited at the end for what has not been written.
const PATIENCE: Duration = Duration::from_secs(1);

enum Said {
    Line(String),
    /// Somebody waits until everything is written that was said before.
    Settle(SyncSender<()>),
}

static QUEUE: OnceLock<Option<SyncSender<Said>>> = OnceLock::new();
/// How many lines were not written.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Says that something happened. Texts of clients are escaped, so that an event is always one line.
pub(crate) fn say(level: &str, event: &str, facts: &[(&str, Value)]) {
    let line = line(level, event, facts);
    match QUEUE.get_or_init(start) {
        None => write(&line),
        Some(queue) => {
            if queue.try_send(Said::Line(line)).is_err() {
                LOST.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Waits until what was said is written, if somebody reads it.
pub(crate) fn settle() {
    let Some(Some(queue)) = QUEUE.get() else { return };
    let (done, wait) = sync_channel(1);
    if queue.try_send(Said::Settle(done)).is_ok() {
        let _ = wait.recv_timeout(PATIENCE);
    }
}

/// The thread that writes; none where the system gives no thread.
fn start() -> Option<SyncSender<Said>> {
    let (send, receive) = sync_channel(MOST);
    let work = move || {
        while let Ok(said) = receive.recv() {
            match said {
                Said::Line(text) => write(&text),
                Said::Settle(done) => drop(done.send(())),
            }
            let lost = LOST.swap(0, Ordering::Relaxed);
            if lost > 0 {
                write(&line("warning", "nobody read what was said", &[("lines", Value::from(lost))]));
            }
        }
    };
    std::thread::Builder::new().name("plaudit-log".to_owned()).spawn(work).ok().map(|_| send)
}

fn write(line: &str) {
    // Whoever listened may have gone.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

fn line(level: &str, event: &str, facts: &[(&str, Value)]) -> String {
    match std::io::stderr().is_terminal() {
        true => words(level, event, facts),
        false => data(level, event, facts),
    }
}

fn words(level: &str, event: &str, facts: &[(&str, Value)]) -> String {
    let mut line = match level {
        "info" => event.to_owned(),
        level => format!("{level}: {event}"),
    };
    for (name, value) in facts {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        line.push_str(&format!("  {name}={}", printable(&text)));
    }
    line
}

fn data(level: &str, event: &str, facts: &[(&str, Value)]) -> String {
    let mut map = Map::new();
    map.insert("time".to_owned(), Value::from(super::run::clock()));
    map.insert("level".to_owned(), Value::from(level));
    map.insert("event".to_owned(), Value::from(event));
    map.extend(facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    Value::Object(map).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_a_client_calls_its_run() {
        let facts = [("run", Value::from("x\n2026-01-01 INFO paid=0\x1b[2J"))];
        for line in [words("warning", "stuck", &facts), data("warning", "stuck", &facts)] {
            assert!(!line.contains('\n') && !line.contains('\x1b'), "{line}");
        }
    }
}
