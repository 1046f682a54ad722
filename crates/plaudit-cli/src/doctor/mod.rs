//! `plaudit doctor`: a self-check of the machine, a recipe, its judges and a state, or of a data set, with the remedy beside each
//! fault.

mod data;
mod judges;
#[cfg(feature = "code")]
mod sandbox;
#[cfg(not(feature = "code"))]
#[path = "sandbox_absent.rs"]
mod sandbox;
mod solutions;

use crate::console::{Style, printable};
use crate::error::CliError;
use crate::rewards::print;
use crate::scoring::{RecipeArgs, pair};
use crate::state::State;
use crate::summary::{many, short, whole};
use crate::{GOOD, PARTLY};
use clap::Args;
use data::DataCheck;
use plaudit::engine::{Engine, EngineOptions, ScoreOptions};
use plaudit::error::RunError;
use plaudit::judge::config::ResolvedJudge;
use plaudit::judge::proxy::Variable;
use plaudit::judge::runner::CallTranscript;
use plaudit::outcome::Outcome;
use plaudit::plan::{Component, Plan, Scorer};
use plaudit::reason::Code;
use plaudit::recipe::RecipeErrors;
use plaudit::report::Report;
use plaudit::rollout::Rollout;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  plaudit doctor
  plaudit doctor --recipe my.yaml --state run/
  plaudit doctor train.parquet --recipe math --field prompt=question --field reference=answer
  plaudit doctor --trainer trl train.parquet --recipe math";

/// Check the machine, a recipe, its judges and a state; or a data set
///
/// Without a data set it scores one group of two small rollouts with the recipe, so each of its judges is asked a few times, and
/// says of each which model answers where, in which form verdicts come and how fast. With a data set it asks nobody: it tells what
/// the rewards of the recipe need and do not find, and references that no response can be compared with. Lines need no response.
/// Exits with 0 where all is well, and with 1 where something is not.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Doctor {
    /// A data set to check: a file of JSON lines or Parquet, or - for JSON lines from stdin
    data: Option<String>,
    #[command(flatten)]
    pub(crate) recipe: RecipeArgs,
    /// Check what this trainer will see as well: its version, and the columns of the data set as its adapter reads them
    #[arg(long, value_name = "TRAINER", value_parser = ["trl", "verl"])]
    trainer: Option<String>,
    /// Check this state as well: a folder, or redis://host:port/database
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// Tell every layer of the sandbox and every language, also where the recipe runs no programs
    #[arg(long, conflicts_with = "data")]
    all: bool,
    /// Read a field of the data set from another name, such as reference=answer
    #[arg(long = "field", value_name = "FIELD=NAME", value_parser = pair, requires = "data")]
    fields: Vec<(String, String)>,
    /// So many references of a kind of fault are borne
    #[arg(long, value_name = "N", default_value_t = 0, requires = "data")]
    max_unparsable: u64,
    /// Write every finding in the data set as a line of JSON
    #[arg(long, short, value_name = "FILE", requires = "data")]
    out: Option<String>,
}

/// A judge that is down is waited for no longer than this: a person is looking.
const PATIENCE: Duration = Duration::from_secs(5);
/// A busy judge takes a connection a call, and the service one a client.
const FEW_FILES: u64 = 4096;

/// What stands in a row of a data set that has no response yet.
const STAND_IN: &str = "There is no response yet.";

/// One thing that was looked at.
struct DoctorCheck {
    verdict: CheckResult,
    what: String,
    said: String,
}

#[derive(PartialEq)]
enum CheckResult {
    Good,
    Doubtful,
    Bad,
}
use CheckResult::{Bad, Doubtful, Good};

impl DoctorCheck {
    fn new(verdict: CheckResult, what: &str, said: impl Into<String>) -> Self {
        Self { verdict, what: what.to_owned(), said: said.into() }
    }

    fn line(&self, style: Style) -> String {
        let mark = match self.verdict {
            Good => style.blue("ok  "),
            Doubtful => style.yellow("warn"),
            Bad => style.red("FAIL"),
        };
        let said = self.said.lines().map(printable).collect::<Vec<_>>().join("\n        ");
        format!("{mark}  {:<23} {said}", printable(&self.what))
    }
}

impl Doctor {
    pub(crate) fn run(&self) -> Result<u8, CliError> {
        if let Some(trainer) = &self.trainer {
            // The Python package takes this flag before the command sees it.
            let message = format!(
                "--trainer asks the adapter of {trainer}, which is in the Python package: `python -m plaudit doctor --trainer \
                 {trainer}`, where {trainer} is installed"
            );
            return Err(CliError::Arguments(message));
        }
        let checks = match &self.data {
            Some(data) => self.data(data)?,
            None => self.machine(),
        };
        let style = Style::of_stdout();
        let lines: Vec<String> = checks.iter().map(|check| check.line(style)).collect();
        print(&format!("plaudit {}\n{}", env!("CARGO_PKG_VERSION"), lines.join("\n")))?;
        Ok(if checks.iter().any(|check| check.verdict == Bad) { PARTLY } else { GOOD })
    }

    fn data(&self, data: &str) -> Result<Vec<DoctorCheck>, CliError> {
        let mut fields = crate::scoring::fields(&self.fields, false)?;
        fields.stand_in_response(STAND_IN);
        let plan = self.recipe.recipe()?.plan()?;
        let check = DataCheck { data, fields, allowed: self.max_unparsable, out: self.out.as_deref() };
        check.run(plan, self.recipe.recipe()?.plan()?)
    }

    fn machine(&self) -> Vec<DoctorCheck> {
        let mut checks = machine();
        let plan = self.plan();
        checks.extend(sandbox::checks(self.all || plan.as_ref().is_ok_and(solutions::are_wanted)));
        if let Some(place) = &self.state {
            checks.push(state(place));
        }
        match plan {
            Ok(plan) => checks.extend(recipe(plan, &|| self.plan().ok())),
            Err(errors) => checks.push(DoctorCheck::new(Bad, "recipe", errors.to_string())),
        }
        checks
    }

    /// The plan of the recipe, with judges that are not waited for.
    fn plan(&self) -> Result<Plan, RecipeErrors> {
        let mut plan = self.recipe.recipe()?.plan()?;
        for judge in &mut plan.judges {
            judge.patience = judge.patience.min(PATIENCE);
        }
        Ok(plan)
    }
}

fn machine() -> Vec<DoctorCheck> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let (verdict, said) = match files {
        Some(most) if most < FEW_FILES => {
            (Doubtful, format!("at most {}: raise it with `ulimit -n 65536`", whole(most)))
        }
        Some(most) => (Good, format!("at most {}", whole(most))),
        None => (Good, "no limit".to_owned()),
    };
    let system = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    vec![
        DoctorCheck::new(Good, "system", system),
        DoctorCheck::new(Good, "threads", whole(threads as u64)),
        DoctorCheck::new(verdict, "open files", said),
    ]
}

fn state(place: &str) -> DoctorCheck {
    let judgments = State::existing(place).and_then(|state| {
        state.journal.has_room()?;
        Ok(state.journal.judgments())
    });
    match judgments {
        Ok(judgments) => DoctorCheck::new(Good, "state", many(judgments, "judgment")),
        Err(failure) => DoctorCheck::new(Bad, "state", failure.to_string()),
    }
}

/// A group that was scored, with every judge call about it.
struct Trial {
    engine: Engine,
    report: Report,
    calls: Vec<CallTranscript>,
}

impl Trial {
    fn of(plan: Plan, rollouts: &[Rollout<'_>]) -> Result<Self, RunError> {
        let keys = |name: &str| std::env::var(name).ok();
        let engine = Engine::open(plan, &EngineOptions { keys: &keys, ..EngineOptions::default() })?;
        let (report, calls) = engine.explain(rollouts, &ScoreOptions::default())?;
        Ok(Self { engine, report, calls })
    }
}

/// What the recipe says of one group of two, component by component, and what its judges are; `again` makes the same plan.
fn recipe(plan: Plan, again: &dyn Fn() -> Option<Plan>) -> Vec<DoctorCheck> {
    let judges: Vec<&str> = plan.judges.iter().map(|judge| judge.name.as_str()).collect();
    let judges =
        if judges.is_empty() { "no judge".to_owned() } else { format!("judges: {}", judges.join(", ")) };
    let summary = format!("{}, {judges}", plan.name);
    let mut checks = vec![DoctorCheck::new(Good, "recipe", summary)];
    for warning in &plan.warnings {
        checks.push(DoctorCheck::new(Doubtful, "recipe", warning.to_string()));
    }
    let keys = |name: &str| std::env::var(name).ok();
    checks.extend(plan.judges.iter().flat_map(|judge| proxies(judge, &keys)));
    let runs_programs = solutions::are_wanted(&plan);
    let began = Instant::now();
    let trial = match Trial::of(plan, &group(runs_programs)) {
        Ok(trial) => trial,
        Err(error) => {
            checks.push(DoctorCheck::new(Bad, "recipe", error.to_string()));
            return checks;
        }
    };
    let took = began.elapsed();
    let calls: u64 = trial.engine.judge_usage().iter().map(|usage| usage.calls).sum();
    checks.extend(judges::checks(&trial, again));
    checks.extend(components(&trial.report));
    let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let said = format!("{} in {} ms", many(calls, "call"), whole(milliseconds));
    checks.push(DoctorCheck::new(Good, "time", said));
    checks
}

/// The proxies on the way to a judge. What is wrong with one is told when the judge is set up.
fn proxies(judge: &ResolvedJudge, variable: Variable<'_>) -> Vec<DoctorCheck> {
    let Ok(proxies) = judge.find_proxies(variable) else { return Vec::new() };
    let through = judge.base_urls.iter().zip(proxies).filter_map(|(address, proxy)| Some((address, proxy?)));
    let check = |(address, proxy)| {
        DoctorCheck::new(Good, "proxy", format!("{}: {address} through {proxy}", judge.name))
    };
    through.map(check).collect()
}

fn components(report: &Report) -> Vec<DoctorCheck> {
    let Some(row) = report.rows.first() else { return Vec::new() };
    let Some(branch) = row.branch.map(|at| &report.plan.branches[at]) else {
        let said = "no route fits a rollout without extra fields, so its judges were not asked";
        return vec![DoctorCheck::new(Doubtful, "recipe", said)];
    };
    let check = |(component, outcome): (&Component, &Option<Outcome>)| {
        let (verdict, said) = match outcome {
            // What to do about a judge stands beside the judge.
            Some(Outcome::Invalid(reason)) if reason.code.as_str().starts_with("judge.") => {
                (Bad, format!("{}: {}", reason.code, reason.message))
            }
            // It needs what these two rollouts do not have; `doctor DATA` tells whether the rows of the user have it.
            Some(Outcome::Invalid(reason)) if reason.code.as_str().starts_with("input.") => {
                (Good, format!("not tried, its rows are of another form ({})", reason.code))
            }
            Some(Outcome::Invalid(reason)) => {
                // A reward of the user's own may want columns that these two rollouts do not have.
                let verdict = if reason.code == Code::RewardFailed { Doubtful } else { Bad };
                let said =
                    format!("{}: {}\nwhat to do: {}", reason.code, reason.message, reason.code.remedy());
                (verdict, said)
            }
            Some(Outcome::Scored { value, .. }) => (Good, short(value.get())),
            Some(outcome) => {
                let reason = outcome.reason().map_or_else(String::new, |reason| format!(", {}", reason.code));
                (Good, format!("{:?}{reason}", outcome.kind()).to_lowercase())
            }
            None => (Good, "not asked, a gate is closed".to_owned()),
        };
        DoctorCheck::new(verdict, &component.name, said)
    };
    branch.components.iter().zip(&row.outcomes).map(check).collect()
}

fn is_code(component: &Component) -> bool {
    matches!(component.scorer, Scorer::Code(_))
}

/// Two small rollouts; with a program each, and a test for it, where the recipe runs programs.
fn group(with_programs: bool) -> Vec<Rollout<'static>> {
    let rollout = |(thought, answer): (&str, &str)| {
        let program = format!("\n```python\nprint({answer})\n```\n");
        let answer = if with_programs { &program } else { answer };
        let response = format!("<think>{thought}</think>\n<answer>{answer}</answer>");
        let mut rollout =
            Rollout::new(response).to_prompt("What is 6 times 7?").with_reference("42").in_group("doctor");
        rollout.tokens = Some(16);
        if with_programs {
            let tests = serde_json::json!({"inputs": [""], "outputs": ["42"]});
            rollout.extra.insert("inputs_outputs".to_owned(), tests);
        }
        rollout
    };
    [("Six sevens are 42.", "42"), ("Let me guess.", "41")].map(rollout).into()
}
