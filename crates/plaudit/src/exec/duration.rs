//! Durations as recipes write them: `300s`, `500ms`, `5m` or `1h`.

use std::time::Duration;

/// How a duration is written, for the fix of an error.
pub(crate) const DURATION_SYNTAX: &str = "write it like 300s, 500ms or 5m";

/// The duration that a text says, above 0 and of at most a day.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.find(|char: char| !char.is_ascii_digit() && char != '.')?;
    let number: f64 = text[..digits].parse().ok()?;
    let unit = match &text[digits..] {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let seconds = number * unit;
    (seconds > 0.0 && seconds <= 86_400.0).then(|| Duration::from_secs_f64(seconds))
}
