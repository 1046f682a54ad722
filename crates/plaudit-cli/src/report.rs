//! `plaudit report`: shows a run of the service in the terminal, or exports its dashboard as one HTML file.

mod text;

use crate::GOOD;
use crate::console::{Style, printable};
use crate::error::CliError;
use crate::files::Output;
use crate::rewards::print;
use crate::summary::{many, short};
use clap::Args;
use plaudit_serve::assets;
use plaudit_serve::runs::recount;
use plaudit_serve::runs::store::{self, RunSummary};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  plaudit report                                # what runs there are
  plaudit report my-training                    # the last run of that name
  plaudit report my-training --html report.html # the same as the dashboard shows it, in one file";

/// The most groups that a file holds, the newest first.
const MAX_GROUPS: usize = 200;
/// The most steps that a file holds, spread over the whole run.
const MAX_SPREAD: usize = 2000;
/// How much of the steps that have ended is looked at where runs are listed.
const LATELY: u64 = 1 << 20;

/// Print a run that `plaudit serve` has kept, or write it as one HTML file
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Report {
    /// The run, by its id or by its name; without it, the runs are listed
    run: Option<String>,
    /// The state folder of the service
    #[arg(long, value_name = "FOLDER", default_value = "plaudit-state")]
    state: PathBuf,
    /// Write a page that needs nothing else: no service, no network
    #[arg(long, value_name = "FILE", requires = "run")]
    html: Option<String>,
    /// As data
    #[arg(long, conflicts_with = "html")]
    json: bool,
}

impl Report {
    pub(crate) fn run(&self) -> Result<u8, CliError> {
        let folder = self.state.join("runs");
        let runs = runs(&folder);
        let Some(name) = &self.run else {
            let runs: Vec<RunSummary> = runs.into_iter().map(|run| with_open(run, &folder)).collect();
            let text = if self.json { format!("{:#}", json!(runs)) } else { list(&runs, &folder) };
            return print(&text);
        };
        let meant =
            runs.iter().find(|run| run.id == *name).or_else(|| runs.iter().find(|run| run.name == *name));
        let Some(about) = meant else {
            return Err(CliError::Arguments(format!(
                "{} holds no run {name:?}: `plaudit report` lists those there are",
                folder.display()
            )));
        };
        let at = folder.join(&about.id);
        let mut steps = read(&at, store::steps(&at))?;
        let about = &recount::of(about, &steps);
        if let Some(file) = &self.html {
            store::spread(&mut steps, MAX_SPREAD);
            let mut out = Output::open(file)?;
            let page = html(about, &at, &steps)?;
            out.write_all(page.as_bytes()).map_err(|error| CliError::writing(file, error))?;
            out.finish()?;
            return Ok(GOOD);
        }
        let steps: Vec<Value> = steps.iter().filter_map(|step| serde_json::from_str(step).ok()).collect();
        let text = match self.json {
            true => format!("{:#}", json!({ "run": about, "steps": steps })),
            false => text::text(about, &steps, Style::of_stdout()),
        };
        print(&text)
    }
}

fn read<T>(at: &Path, done: std::io::Result<T>) -> Result<T, CliError> {
    done.map_err(|error| CliError::File(at.display().to_string(), error))
}

/// Every run, the newest first.
fn runs(folder: &Path) -> Vec<RunSummary> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut runs: Vec<RunSummary> = entries.filter_map(|entry| store::read_summary(&entry.path())).collect();
    runs.sort_by(|one, other| other.seen.total_cmp(&one.seen));
    runs
}

/// What a run is with the steps that had not ended when it was written.
fn with_open(about: RunSummary, folder: &Path) -> RunSummary {
    let (_, open) = store::newest_steps(&folder.join(&about.id), LATELY);
    recount::with(about, &open)
}

fn list(runs: &[RunSummary], folder: &Path) -> String {
    if runs.is_empty() {
        return format!("{} holds no runs: `plaudit serve` makes some", folder.display());
    }
    let style = Style::of_stdout();
    let row = |run: &RunSummary| {
        format!(
            "{}  {}  {}  {}, {}{}",
            style.dim(&run.id),
            style.bold(printable(&run.name)),
            printable(&run.recipe),
            many(run.steps, "step"),
            many(run.rollouts, "rollout"),
            run.total_mean.map_or_else(String::new, |mean| format!(", mean total {}", short(mean))),
        )
    };
    runs.iter().map(row).collect::<Vec<_>>().join("\n")
}

/// The dashboard with everything in it that it would ask the service for.
fn html(about: &RunSummary, at: &Path, steps: &[String]) -> Result<String, CliError> {
    let id = &about.id;
    let mut data = Map::new();
    let mut shown = json!(about);
    shown["live"] = json!(false);
    let mut put = |path: String, value: Value| drop(data.insert(path, value));
    put("/v1/runs".to_owned(), json!({ "runs": [shown.clone()] }));
    put(format!("/v1/runs/{id}"), shown);
    let numbers: BTreeSet<u64> = steps.iter().filter_map(|step| store::step_number(step)).collect();
    let steps: Vec<Value> = steps.iter().filter_map(|step| serde_json::from_str(step).ok()).collect();
    put(format!("/v1/runs/{id}/steps"), json!({ "steps": steps }));
    let mut groups = read(at, store::groups(at, None))?;
    groups.retain(|group| numbers.contains(&group.step));
    groups.drain(..groups.len().saturating_sub(MAX_GROUPS));
    for brief in &groups {
        if let Some(group) = read(at, store::group(at, &brief.id))? {
            put(format!("/v1/runs/{id}/groups/{}", brief.id), group);
        }
    }
    put(format!("/v1/runs/{id}/groups"), json!({ "groups": groups }));
    Ok(assets::standalone_page(&Value::Object(data)))
}
