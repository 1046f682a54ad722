//! What does the service say while it runs? One line an event on stderr: for a person at a terminal in words, else as JSON.

use crate::talk::printable;
use serde_json::{Map, Value};
use std::io::{IsTerminal as _, Write as _};

/// Says that something happened. Texts of clients are escaped, so that an event is always one line.
pub(crate) fn say(level: &str, event: &str, facts: &[(&str, Value)]) {
    let mut stderr = std::io::stderr().lock();
    let line = if stderr.is_terminal() { words(level, event, facts) } else { data(level, event, facts) };
    // Whoever listened may have gone.
    let _ = writeln!(stderr, "{line}");
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
