//! What do `score` and `rank` have in common? The rollouts, the recipe, where results go, and the account at the end.

use crate::failure::Failure;
use crate::files::{Output, Source};
use crate::stream::{Done, Ledger, Sink, Stream};
use crate::summary::{self, Summary};
use crate::talk::Talk;
use crate::{GOOD, PARTLY};
use clap::Args;
use plaudit::engine::Engine;
use plaudit::input::{FIELDS, Fields};
use plaudit::outcome::OutcomeKind;
use plaudit::plan::Plan;
use plaudit::recipe::{Mistakes, Recipe, closest};
use plaudit::statistics::Statistics;
use plaudit::statistics::breakdown::Breakdown;
use std::time::Instant;

/// The flags of a run over rollouts.
#[derive(Debug, Args)]
pub(crate) struct Scoring {
    /// The rollouts: a file of JSON lines or Parquet, or - for JSON lines from stdin
    rollouts: String,
    #[command(flatten)]
    recipe: Chosen,
    /// Read a field from another name, such as prompt=question; a dot leads into an object
    #[arg(long = "field", value_name = "FIELD=NAME", value_parser = pair)]
    fields: Vec<(String, String)>,
    /// Where results go; a file appears under its name only when it is whole [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    out: Option<String>,
    /// Write the summary as JSON
    #[arg(long, value_name = "FILE")]
    summary: Option<String>,
    /// Tell the statistics by a field of extra as well, such as step or data_source
    #[arg(long, value_name = "FIELD")]
    by: Option<String>,
    /// Close a group when so many rollouts have been read since its last member
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    hold: u64,
    /// Refuse lines with fields that are not known, instead of keeping them as extra
    #[arg(long)]
    strict: bool,
    /// Tell only errors: no summary, no progress bar
    #[arg(long, short)]
    quiet: bool,
}

/// Which recipe, with what changed.
#[derive(Debug, Args)]
pub(crate) struct Chosen {
    /// The recipe: the name of a shipped one, or a file
    #[arg(long, short, value_name = "RECIPE", default_value = "quickstart")]
    recipe: String,
    /// Override a value of the recipe, such as components.length.weight=0.5
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
}

impl Chosen {
    fn plan(&self) -> Result<Plan, Mistakes> {
        plan(&self.recipe, &self.set)
    }
}

/// The plan of a recipe with overrides, or every mistake of both.
pub(crate) fn plan(name: &str, overrides: &[(String, String)]) -> Result<Plan, Mistakes> {
    let mut recipe = Recipe::named(name)?;
    let mistakes = overrides.iter().filter_map(|(key, value)| recipe.set(key, value).err());
    Mistakes::none(mistakes.flatten().collect())?;
    recipe.plan()
}

/// Splits `key=value`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("KEY=VALUE is wanted".to_owned()),
    }
}

impl Scoring {
    /// Where results go.
    pub(crate) fn output(&self) -> Result<Output, Failure> {
        Output::open(self.out.as_deref().unwrap_or("-"))
    }

    /// The name of the file that results go to, where they go to one.
    pub(crate) fn out(&self) -> Option<&str> {
        self.out.as_deref()
    }

    /// The engine that the recipe makes.
    pub(crate) fn engine(&self) -> Result<Engine, Failure> {
        Ok(Engine::new(self.recipe.plan()?))
    }

    fn input_fields(&self) -> Result<Fields, Failure> {
        let mut fields = Fields::own();
        for (field, name) in &self.fields {
            if !fields.map(field, name) {
                let hint = match closest(field, FIELDS) {
                    Some(near) => format!("did you mean {near:?}?"),
                    None => format!("the fields are {}", FIELDS.join(", ")),
                };
                return Err(Failure::Arguments(format!("--field: there is no field {field:?}; {hint}")));
            }
        }
        if self.strict {
            fields.refuse_others();
        }
        Ok(fields)
    }

    /// Scores all rollouts into a sink, which `finish` then closes and may say something about.
    pub(crate) fn run<S: Sink>(
        &self,
        engine: &Engine,
        mut sink: S,
        finish: impl FnOnce(S) -> Result<Option<String>, Failure>,
    ) -> Result<u8, Failure> {
        let fields = self.input_fields()?;
        let mut source = Source::open(&self.rollouts)?;
        let summary_file = self.summary.as_deref().map(Output::open).transpose()?;
        let mut talk = Talk::of_run(self.quiet, source.length());
        let started = Instant::now();
        let breakdown = self.by.as_deref().map(Breakdown::by);
        let done = Stream::new(engine, &mut sink, &talk, self.hold, breakdown).run(&mut source, &fields);
        talk.end();
        let Done { statistics, breakdown, ledger } = done?;
        let remark = finish(sink)?;
        let summary = Summary {
            recipe: &engine.plan().name,
            statistics: &statistics,
            by: self.by.as_deref().zip(breakdown.as_ref()),
            ledger: &ledger,
            bytes: source.position(),
            seconds: started.elapsed().as_secs_f64(),
        };
        if let Some(mut file) = summary_file {
            summary.write(&mut file)?;
            file.finish()?;
        }
        talk.say(&summary::text(&summary, remark.as_deref(), talk.style));
        Ok(code(&statistics, &ledger))
    }
}

fn code(statistics: &Statistics, ledger: &Ledger) -> u8 {
    let clean = statistics.outcomes.of(OutcomeKind::Invalid) == 0 && ledger.count() == 0;
    if clean { GOOD } else { PARTLY }
}
