//! Console output on stderr: errors, warnings, hints, the progress bar and colours.

use crate::summary::many;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
pub(crate) use plaudit_serve::logging::printable;
use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    colour: bool,
}

impl Style {
    /// Colours where a person looks and has not said `NO_COLOR`.
    pub(crate) fn of(terminal: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_some_and(|term| term == "dumb");
        Self { colour: terminal && set("NO_COLOR").is_none() && !dumb }
    }

    /// For what is written to stdout.
    pub(crate) fn of_stdout() -> Self {
        Self::of(std::io::stdout().is_terminal())
    }

    fn paint(self, code: &str, text: impl Display) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    pub(crate) fn bold(self, text: impl Display) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: impl Display) -> String {
        self.paint("2", text)
    }

    pub(crate) fn red(self, text: impl Display) -> String {
        self.paint("31", text)
    }

    pub(crate) fn yellow(self, text: impl Display) -> String {
        self.paint("33", text)
    }

    pub(crate) fn blue(self, text: impl Display) -> String {
        self.paint("36", text)
    }
}

/// The console of one run.
#[derive(Debug)]
pub(crate) struct Console {
    pub(crate) style: Style,
    quiet: bool,
    bar: Option<ProgressBar>,
}

impl Console {
    /// A console that prints errors only.
    pub(crate) fn errors() -> Self {
        Self { style: Style::of(std::io::stderr().is_terminal()), quiet: true, bar: None }
    }

    /// A console for a run over so many bytes, where the number is known.
    pub(crate) fn for_run(quiet: bool, bytes: Option<u64>) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = (terminal && !quiet).then(|| progress(bytes)).flatten();
        Self { style: Style::of(terminal), quiet, bar }
    }

    /// Prints an error, `--quiet` or not.
    pub(crate) fn error(&self, text: &str) {
        self.print(&format!("{} {text}", self.style.red("error:")));
    }

    /// Prints a warning.
    pub(crate) fn warning(&self, text: &str) {
        self.print(&format!("{} {text}", self.style.yellow("warning:")));
    }

    /// Prints how the error before may be mended.
    pub(crate) fn hint(&self, text: &str) {
        self.print(&format!("{} {text}", self.style.blue("hint:")));
    }

    /// Prints a line that `--quiet` suppresses.
    pub(crate) fn info(&self, text: &str) {
        if !self.quiet {
            self.print(text);
        }
    }

    fn print(&self, text: &str) {
        // Where stderr itself is gone, there is nowhere left to print.
        let write = || {
            let _ = writeln!(std::io::stderr().lock(), "{text}");
        };
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Moves the progress bar; `calls` is only evaluated where the bar is shown.
    pub(crate) fn progress(&self, bytes: u64, rollouts: u64, calls: impl FnOnce() -> Option<u64>) {
        if let Some(bar) = &self.bar {
            bar.set_position(bytes);
            let calls = calls().map_or_else(String::new, |calls| format!(", {}", many(calls, "call")));
            bar.set_message(format!("{}{calls}", many(rollouts, "rollout")));
        }
    }

    /// Removes the progress bar.
    pub(crate) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn progress(bytes: Option<u64>) -> Option<ProgressBar> {
    let known = "{bar:24.cyan/dim} {bytes:>10} of {total_bytes}  {bytes_per_sec:>12}  {msg}  {eta} left";
    let unknown = "{spinner} {bytes:>10}  {bytes_per_sec:>12}  {msg}  {elapsed}";
    let style = ProgressStyle::with_template(if bytes.is_some() { known } else { unknown }).ok()?;
    let bar = ProgressBar::with_draw_target(bytes, ProgressDrawTarget::stderr_with_hz(10));
    bar.set_style(style.progress_chars("━╸─"));
    // A run that is over in a moment shows no bar at all.
    bar.enable_steady_tick(Duration::from_millis(200));
    Some(bar)
}
