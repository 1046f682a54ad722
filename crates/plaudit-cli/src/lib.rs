//! The command line: one file per verb; `main` is the program as one match.
//!
//! It is a library as well, so that the Python package can bring the command without a second binary.

mod console;
mod doctor;
mod error;
mod explain;
mod files;
mod imports;
mod init;
mod interrupt;
mod judge_sim;
mod plan;
mod rank;
mod recipe;
mod replay;
mod report;
mod rewards;
mod rollout_copy;
mod rubric;
mod score;
mod scoring;
mod serve;
mod signals;
mod state;
mod stream;
mod summary;
mod token;

pub use explain::explanation;
pub use imports::Import;
pub use replay::replay;

use clap::{Parser, Subcommand};
use console::Console;
use error::CliError;
use imports::ImportArgs;
use std::ffi::OsString;

/// Every rollout was scored.
const GOOD: u8 = 0;
/// Some rollouts are invalid, or some lines could not be read.
const PARTLY: u8 = 1;
/// The run could not be done.
const FAILED: u8 = 2;

#[derive(Debug, Parser)]
#[command(
    name = "plaudit",
    version,
    about = "Rewards for LLM post-training: rollouts and a recipe in, one trustworthy number a rollout out."
)]
#[command(max_term_width = 100, arg_required_else_help = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  plaudit score rollouts.jsonl --out rewards.jsonl
  plaudit rank rollouts.jsonl --keep 1 > best.jsonl
  plaudit rewards length_penalty
  plaudit recipe check my.yaml

Exit codes: 0 all is well, 1 some rollouts are invalid or some lines bad, 2 the run could not be done,
129, 130 or 143 a signal stopped it.";

#[derive(Debug, Subcommand)]
enum Verb {
    Score(score::Score),
    Rank(rank::Rank),
    Rewards(rewards::Rewards),
    Recipe(recipe::Recipe),
    Rubric(rubric::Rubric),
    Init(init::Init),
    Plan(plan::Plan),
    Replay(replay::Replay),
    Explain(explain::Explain),
    JudgeSim(plaudit_sim::JudgeSim),
    Serve(serve::Serve),
    Report(report::Report),
    Token(token::Token),
    Doctor(doctor::Doctor),
}

impl Verb {
    /// The modules that are imported before the verb runs.
    fn imports(&self) -> Option<&ImportArgs> {
        match self {
            Self::Score(verb) => Some(&verb.scoring.recipe.imports),
            Self::Rank(verb) => Some(&verb.scoring.recipe.imports),
            Self::Rewards(verb) => Some(&verb.imports),
            Self::Recipe(verb) => verb.imports(),
            Self::Plan(verb) => Some(&verb.recipe.imports),
            Self::Replay(verb) => Some(&verb.imports),
            Self::Explain(verb) => Some(&verb.imports),
            Self::Serve(verb) => Some(&verb.imports),
            Self::Doctor(verb) => Some(&verb.recipe.imports),
            Self::Init(_) | Self::JudgeSim(_) | Self::Report(_) | Self::Rubric(_) | Self::Token(_) => None,
        }
    }
}

/// Runs the command and gives back its exit code. `import` imports a Python module, where there is an interpreter.
pub fn main(arguments: impl IntoIterator<Item = OsString>, import: Option<&Import<'_>>) -> u8 {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are data and go to stdout; a reader that has gone away is no failure.
            let _ = error.print();
            return if error.use_stderr() { FAILED } else { GOOD };
        }
    };
    let imported = arguments.verb.imports().map_or(Ok(()), |imports| imports.load(import));
    let done = imported.and_then(|()| match &arguments.verb {
        Verb::Score(verb) => verb.run(),
        Verb::Rank(verb) => verb.run(),
        Verb::Rewards(verb) => verb.run(),
        Verb::Recipe(verb) => verb.run(),
        Verb::Rubric(verb) => verb.run(),
        Verb::Init(verb) => verb.run(),
        Verb::Plan(verb) => verb.run(),
        Verb::Replay(verb) => verb.run(),
        Verb::Explain(verb) => verb.run(),
        Verb::JudgeSim(verb) => judge_sim::run(verb),
        Verb::Serve(verb) => verb.run(),
        Verb::Report(verb) => verb.run(),
        Verb::Token(verb) => verb.run(),
        Verb::Doctor(verb) => verb.run(),
    });
    match done {
        Ok(code) => code,
        Err(CliError::Closed) => GOOD,
        Err(CliError::Stopped(stopped)) => {
            Console::for_run(false, None).info(&stopped.to_string());
            stopped.code()
        }
        Err(failure) => {
            Console::errors().error(&failure.to_string());
            FAILED
        }
    }
}
