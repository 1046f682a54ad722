//! `plaudit init`: writes a commented recipe for a task and a trainer, checked, and says what to run and to paste next.

mod task;
mod trainer;

use crate::GOOD;
use crate::console::Console;
use crate::error::CliError;
use crate::files::Output;
use crate::recipe::meaning;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use plaudit::plan::Plan;
use plaudit::recipe::Recipe;
use plaudit::rollout::field_names;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use task::{TASKS, Task};
use trainer::{Places, TRAINERS, Trainer, shell};

const EXAMPLES: &str = "\
Examples:
  plaudit init
  plaudit init --trainer verl --task math
  plaudit init --trainer trl --task chat --out chat.yaml
  plaudit init --task code --out - > my_code.yaml";

/// The groups of a recipe that compares, for callers that hand over whole groups.
const GROUPS: &str = "\
groups:
  timeout: 300s                   # how long the scoring of a group may take; what is left then is invalid
";
/// The same for callers that hand rollouts over one by one.
const WAITING_GROUPS: &str = "\
groups:
  timeout: 300s                   # how long a group waits for its members, and how long scoring it may take
  partial: score                  # who is there is then scored without the others; `invalid`: nobody is
";

/// Write a commented recipe for a task and a trainer
///
/// The recipe is checked as by `plaudit recipe check` before it is written. What to run next, and what to paste into the
/// trainer's launch script, goes to stderr.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Init {
    /// What the policy is trained for
    #[arg(long, value_name = "TASK", default_value = TASKS[0].name, value_parser = task())]
    task: &'static Task,
    /// What calls for rewards
    #[arg(long, value_name = "TRAINER", default_value = TRAINERS[0].name, value_parser = trainer())]
    trainer: &'static Trainer,
    /// Where the recipe goes; - is stdout
    #[arg(long, short, value_name = "FILE", default_value = "recipe.yaml")]
    out: String,
    /// Overwrite a file that is there
    #[arg(long)]
    force: bool,
}

impl Init {
    pub(crate) fn run(&self) -> Result<u8, CliError> {
        let (text, plan) = checked(self.task, self.trainer)?;
        let path = if self.out == "-" { "recipe.yaml" } else { &self.out };
        self.write(&text)?;
        let console = Console::for_run(false, None);
        if self.out != "-" {
            console.info(&format!("wrote {path}\n"));
        }
        console.info(&meaning(&plan, console.style));
        console.info(&next_steps(self.task, self.trainer, &plan, path));
        Ok(GOOD)
    }

    /// Writes the recipe; a file that is there stays, unless it may be overwritten.
    fn write(&self, text: &str) -> Result<(), CliError> {
        if self.out == "-" || self.force {
            let mut output = Output::open(&self.out)?;
            output.write_all(text.as_bytes()).map_err(|error| CliError::writing(&self.out, error))?;
            return output.finish();
        }
        let failure = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                CliError::Arguments(format!("{:?} is there already; --force overwrites it", self.out))
            }
            _ => CliError::File(self.out.clone(), error),
        };
        let mut file = OpenOptions::new().write(true).create_new(true).open(&self.out).map_err(failure)?;
        file.write_all(text.as_bytes()).map_err(|error| {
            // A half recipe would be in the way of the next attempt.
            let _ = fs::remove_file(&self.out);
            failure(error)
        })
    }
}

/// The text of a recipe for a task and a trainer, and what it means.
fn checked(task: &Task, trainer: &Trainer) -> Result<(String, Plan), CliError> {
    let compares = Recipe::from_yaml(task.keys())?.plan()?.compares_groups();
    let groups = match (compares, trainer.one_by_one) {
        (false, _) => "",
        (true, false) => GROUPS,
        (true, true) => WAITING_GROUPS,
    };
    let rows: String =
        trainer.rows.iter().map(|line| format!("# {}\n", line.replace("FIELDS", &names()))).collect();
    let text = format!("{}#\n{rows}{}{groups}", task.head(), task.keys());
    let plan = Recipe::from_yaml(&text)?.plan()?;
    Ok((text, plan))
}

/// The names of a rollout's fields, in words.
fn names() -> String {
    let names = field_names().filter(|name| !["responses", "extra"].contains(name));
    let (last, others) = (names.clone().last().unwrap_or(""), names.clone().count() - 1);
    format!("{} and {last}", names.take(others).collect::<Vec<_>>().join(", "))
}

/// The commands to try the recipe with, and the snippet for the trainer.
fn next_steps(task: &Task, trainer: &Trainer, plan: &Plan, path: &str) -> String {
    let score = format!("printf '%s\\n' '{}' | plaudit score - --recipe {}", task.example(), shell(path));
    let trial = match plan.judges.first() {
        None => format!("Try it:\n{}", indented(&score)),
        Some(judge) => {
            let judge = &judge.name;
            let url = format!("{score} --set judges.{judge}.base_url=http://127.0.0.1:7718/v1");
            let steps = format!("plaudit judge-sim --port 7718 &\n{url}");
            format!(
                "Say where the judge is: judges.{judge} in {path}. Try it with a simulated one:\n{}",
                indented(&steps)
            )
        }
    };
    let snippet = trainer.snippet(&Places { path, name: &plan.name, row: task.example() });
    format!("\n{trial}\n\nFor {} ({}):\n{}", trainer.title, trainer.page, indented(&snippet))
}

fn indented(text: &str) -> String {
    let lines: Vec<String> =
        text.lines().map(|line| if line.is_empty() { String::new() } else { format!("  {line}") }).collect();
    lines.join("\n")
}

/// The parser of a task.
fn task() -> impl TypedValueParser<Value = &'static Task> {
    let values = TASKS.iter().map(|task| PossibleValue::new(task.name).help(task.summary()));
    PossibleValuesParser::new(values)
        .try_map(|name| TASKS.iter().find(|task| task.name == name).ok_or("there is no such task"))
}

/// The parser of a trainer.
fn trainer() -> impl TypedValueParser<Value = &'static Trainer> {
    let values = TRAINERS.iter().map(|trainer| PossibleValue::new(trainer.name).help(trainer.summary));
    PossibleValuesParser::new(values).try_map(|name| {
        TRAINERS.iter().find(|trainer| trainer.name == name).ok_or("there is no such trainer")
    })
}
