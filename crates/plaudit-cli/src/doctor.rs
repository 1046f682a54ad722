//! `plaudit doctor`: a self-check of the machine, a recipe, its judges and a state, with the remedy beside each fault.

use crate::console::{Style, printable};
use crate::error::CliError;
use crate::rewards::print;
use crate::scoring::RecipeArgs;
use crate::state::State;
use crate::summary::{short, whole};
use crate::{GOOD, PARTLY};
use clap::Args;
use plaudit::engine::Engine;
use plaudit::engine::EngineOptions;
use plaudit::outcome::Outcome;
use plaudit::plan::Plan;
use plaudit::report::Report;
use plaudit::rollout::Rollout;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  plaudit doctor
  plaudit doctor --recipe my.yaml --state run/";

/// Check the machine, a recipe, its judges and a state
///
/// Scores one group of two small rollouts with the recipe, so each of its judges is asked a few times. Exits with 0 where all
/// is well, and with 1 where something is not.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Doctor {
    #[command(flatten)]
    recipe: RecipeArgs,
    /// Check this state as well: a folder, or redis://host:port/database
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
}

/// A judge that is down is waited for no longer than this: a person is looking.
const PATIENCE: Duration = Duration::from_secs(5);
/// A busy judge takes a connection a call, and the service one a client.
const FEW_FILES: u64 = 4096;

/// One thing that was looked at.
enum DoctorCheck {
    Good(String, String),
    Doubtful(String, String),
    Bad(String, String),
}

impl DoctorCheck {
    fn line(&self, style: Style) -> String {
        let (mark, what, said) = match self {
            Self::Good(what, said) => (style.blue("ok  "), what, said),
            Self::Doubtful(what, said) => (style.yellow("warn"), what, said),
            Self::Bad(what, said) => (style.red("FAIL"), what, said),
        };
        format!(
            "{mark}  {:<24}{}",
            printable(what),
            said.lines().map(printable).collect::<Vec<_>>().join("\n        ")
        )
    }
}

impl Doctor {
    pub(crate) fn run(&self) -> Result<u8, CliError> {
        let mut checks = machine();
        if let Some(place) = &self.state {
            checks.push(state(place));
        }
        match self.recipe.recipe().and_then(|recipe| recipe.plan()) {
            Ok(plan) => checks.extend(recipe(plan)),
            Err(mistakes) => checks.push(DoctorCheck::Bad("recipe".to_owned(), mistakes.to_string())),
        }
        let style = Style::of_stdout();
        let lines: Vec<String> = checks.iter().map(|check| check.line(style)).collect();
        print(&format!("plaudit {}\n{}", env!("CARGO_PKG_VERSION"), lines.join("\n")))?;
        Ok(if checks.iter().any(|check| matches!(check, DoctorCheck::Bad(..))) { PARTLY } else { GOOD })
    }
}

fn machine() -> Vec<DoctorCheck> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut checks = vec![DoctorCheck::Good("threads".to_owned(), whole(threads as u64))];
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let what = "open files".to_owned();
    checks.push(match files {
        Some(most) if most < FEW_FILES => {
            DoctorCheck::Doubtful(what, format!("at most {}: raise it with `ulimit -n 65536`", whole(most)))
        }
        Some(most) => DoctorCheck::Good(what, format!("at most {}", whole(most))),
        None => DoctorCheck::Good(what, "no limit".to_owned()),
    });
    checks
}

fn state(place: &str) -> DoctorCheck {
    let what = "state".to_owned();
    match State::existing(place) {
        Ok(state) => match state.journal.has_room() {
            Ok(()) => DoctorCheck::Good(what, format!("{} judgments", whole(state.journal.judgments()))),
            Err(error) => DoctorCheck::Bad(what, error.to_string()),
        },
        Err(failure) => DoctorCheck::Bad(what, failure.to_string()),
    }
}

/// What the recipe says of one group of two, component by component.
fn recipe(mut plan: Plan) -> Vec<DoctorCheck> {
    for judge in &mut plan.judges {
        judge.patience = judge.patience.min(PATIENCE);
    }
    let judges: Vec<&str> = plan.judges.iter().map(|judge| judge.name.as_str()).collect();
    let judges =
        if judges.is_empty() { "no judge".to_owned() } else { format!("judges: {}", judges.join(", ")) };
    let summary = format!("{}, {judges}", plan.name);
    let mut checks = vec![DoctorCheck::Good("recipe".to_owned(), summary)];
    let keys = |name: &str| std::env::var(name).ok();
    let began = Instant::now();
    let scored = Engine::open(plan, &EngineOptions { keys: &keys, ..EngineOptions::default() })
        .and_then(|engine| engine.score(&group()).map(|report| (report, engine.tallies())));
    let (report, tallies) = match scored {
        Ok(scored) => scored,
        Err(error) => {
            checks.push(DoctorCheck::Bad("recipe".to_owned(), error.to_string()));
            return checks;
        }
    };
    let took = began.elapsed();
    checks.extend(components(&report));
    let calls: u64 = tallies.iter().map(|tally| tally.calls).sum();
    let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    checks.push(DoctorCheck::Good("time".to_owned(), format!("{calls} calls in {} ms", whole(milliseconds))));
    checks
}

fn components(report: &Report) -> Vec<DoctorCheck> {
    let Some(row) = report.rows.first() else { return Vec::new() };
    let Some(branch) = row.branch.map(|at| &report.plan.branches[at]) else {
        let said = "no route fits a rollout without extra fields, so its judges were not asked".to_owned();
        return vec![DoctorCheck::Doubtful("recipe".to_owned(), said)];
    };
    let named = branch.components.iter().zip(&row.outcomes);
    named
        .map(|(component, outcome)| {
            let what = component.name.clone();
            match outcome {
                Some(Outcome::Invalid(reason)) => {
                    DoctorCheck::Bad(what, format!("{}: {}", reason.code, reason.message))
                }
                Some(Outcome::Scored { value, .. }) => DoctorCheck::Good(what, short(value.get())),
                Some(outcome) => {
                    let reason =
                        outcome.reason().map_or_else(String::new, |reason| format!(", {}", reason.code));
                    DoctorCheck::Good(what, format!("{:?}{reason}", outcome.kind()).to_lowercase())
                }
                None => DoctorCheck::Good(what, "not asked, a gate is closed".to_owned()),
            }
        })
        .collect()
}

fn group() -> Vec<Rollout<'static>> {
    [
        "<think>Six sevens are 42.</think>\n<answer>42</answer>",
        "<think>Let me guess.</think>\n<answer>41</answer>",
    ]
    .into_iter()
    .map(|response| Rollout {
        tokens: Some(16),
        ..Rollout::new(response).to_prompt("What is 6 times 7?").with_reference("42").in_group("doctor")
    })
    .collect()
}
