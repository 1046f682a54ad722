//! What `score` and `rank` share: arguments, preparation, the run itself and its summary.

use crate::console::{Console, printable};
use crate::error::CliError;
use crate::files::{Output, Role, Source, refuse_overlap};
use crate::imports::ImportArgs;
use crate::interrupt::{Interrupt, Watch};
use crate::state::{RunManifest, State};
use crate::stream::{Done, Sink, Stream};
use crate::summary::{self, Summary};
use crate::{GOOD, PARTLY};
use clap::Args;
use plaudit::abort::AbortAfter;
use plaudit::code::{Isolation, SandboxPolicy};
use plaudit::engine::{Engine, EngineOptions};
use plaudit::input::Fields;
use plaudit::outcome::OutcomeKind;
use plaudit::recipe::{Recipe, RecipeErrors, closest, shipped};
use plaudit::rollout::field_names;
use plaudit::statistics::breakdown::Breakdown;
use std::sync::Arc;
use std::time::Instant;

/// A group is held until so many rollouts have been read since its last member, where nothing else is said.
pub(crate) const HOLD: u64 = 4096;

/// So many rollouts at the beginning of a file show whether anything in it can be scored, where nothing else is said.
const ABORT_AFTER: AbortAfter = AbortAfter::Steps(1000);

/// The flags of a run over rollouts.
#[derive(Debug, Args)]
pub(crate) struct ScoringArgs {
    /// The rollouts: a file of JSON lines or Parquet, or - for JSON lines from stdin
    rollouts: String,
    #[command(flatten)]
    pub(crate) recipe: RecipeArgs,
    /// Read a field from another name, such as prompt=question; a dot leads into an object or a list
    #[arg(long = "field", value_name = "FIELD=NAME", value_parser = pair)]
    fields: Vec<(String, String)>,
    /// Where results go; a file appears under its name only when it is whole [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<String>,
    /// Write the summary as JSON
    #[arg(long, value_name = "FILE")]
    summary: Option<String>,
    /// Tell the statistics by a field of extra as well, such as step or data_source
    #[arg(long, value_name = "FIELD")]
    by: Option<String>,
    /// Close a group when so many rollouts have been read since its last member
    #[arg(long, value_name = "N", default_value_t = HOLD, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    hold: u64,
    /// Keep every judgment in this folder before it is used, and go on from there after a crash; or in
    /// redis://[user:password@]host:port[/database], which several machines can share
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// End the run where none of the first N rollouts can be scored, all for one reason that cannot heal, such as a column of
    /// another name; `never` to go on. A file that is no longer gets its results in any case
    #[arg(long, value_name = "N", default_value_t = ABORT_AFTER)]
    abort_after: AbortAfter,
    /// Refuse lines with fields that are not known, instead of keeping them as extra
    #[arg(long)]
    strict: bool,
    /// Tell only errors: no summary, no progress bar
    #[arg(long, short)]
    quiet: bool,
    /// Run programs of responses without a sandbox where this machine has none; every result says so
    #[arg(long)]
    unsafe_no_sandbox: bool,
}

/// Which recipe, with what changed.
#[derive(Debug, Args)]
pub(crate) struct RecipeArgs {
    /// The recipe: the name of a shipped one, or a file
    #[arg(long, short, value_name = "RECIPE", default_value = "quickstart")]
    recipe: String,
    /// Override a value of the recipe, such as components.length.weight=0.5
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) imports: ImportArgs,
}

impl RecipeArgs {
    /// The file of the recipe, where it is not a shipped one.
    fn file(&self) -> Option<&str> {
        let is_shipped = shipped().iter().any(|(known, _)| *known == self.recipe);
        (!is_shipped).then_some(&*self.recipe)
    }

    /// The recipe with its overrides, or every error of them.
    pub(crate) fn recipe(&self) -> Result<Recipe, RecipeErrors> {
        overridden(&self.recipe, &self.set)
    }
}

/// A recipe with overrides, or every error of both.
pub(crate) fn overridden(name: &str, overrides: &[(String, String)]) -> Result<Recipe, RecipeErrors> {
    let mut recipe = Recipe::named(name)?;
    let errors = overrides.iter().filter_map(|(key, value)| recipe.set(key, value).err());
    RecipeErrors::none(errors.flatten().collect())?;
    Ok(recipe)
}

/// Splits `key=value`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("KEY=VALUE is wanted".to_owned()),
    }
}

impl ScoringArgs {
    /// Where results go.
    pub(crate) fn output(&self) -> Result<Output, CliError> {
        Output::open(self.out.as_deref().unwrap_or("-"))
    }

    /// Everything that is needed before the outputs are opened: nothing is left behind where it fails, or where a signal
    /// ends it.
    pub(crate) fn prepare(&self) -> Result<Run<'_>, CliError> {
        let recipe = self.recipe.recipe()?;
        let plan = recipe.plan()?;
        // What is kept is what was read here, whatever becomes of the file meanwhile.
        let manifest = RunManifest::of(&recipe, &self.recipe.set, self.hold);
        self.refuse_overlap()?;
        let console = if self.quiet { Console::errors() } else { Console::for_run(false, None) };
        plan.warnings.iter().for_each(|warning| console.warning(&printable(&warning.to_string())));
        let state = self.state.as_deref().map(|place| State::open(place, &console)).transpose()?;
        let journal = state.as_ref().map(|state| state.journal.clone());
        let keys = |name: &str| std::env::var(name).ok();
        let sandbox = SandboxPolicy { allow_none: self.unsafe_no_sandbox, ..SandboxPolicy::default() };
        let setup = EngineOptions { journal, keys: &keys, sandbox, ..EngineOptions::default() };
        let engine = Engine::open(plan, &setup)?;
        if engine.sandbox_isolation() == Some(Isolation::None) {
            console.warning("nothing isolates the programs of responses: --unsafe-no-sandbox");
        }
        Ok(Run {
            engine: Arc::new(engine),
            state,
            manifest,
            source: Source::open(&self.rollouts)?,
            fields: fields(&self.fields, self.strict)?,
            hold: self.hold,
            abort_after: self.abort_after,
            by: self.by.as_deref(),
            out: self.out.as_deref(),
            summary: self.summary.as_deref(),
            quiet: self.quiet,
        })
    }

    fn refuse_overlap(&self) -> Result<(), CliError> {
        let state = self.state.as_deref().map_or_else(Vec::new, State::paths);
        let mut reads: Vec<Role<'_>> = vec![("the input", &self.rollouts)];
        reads.extend(self.recipe.file().map(|file| ("the recipe", file)));
        // The state keeps a copy of the rollouts, and not over somebody's own.
        let kept: Vec<Role<'_>> = state.iter().map(|file| ("the state's", &**file)).collect();
        refuse_overlap(&reads, &kept)?;
        reads.extend(state.iter().map(|file| ("a file of the state", &**file)));
        refuse_overlap(&reads, &writes(self.out.as_deref(), self.summary.as_deref()))
    }
}

/// The files that a run writes by name.
pub(crate) fn writes<'r>(out: Option<&'r str>, summary: Option<&'r str>) -> Vec<Role<'r>> {
    let summary = summary.map(|summary| ("--summary", summary));
    std::iter::once(("--out", out.unwrap_or("-"))).chain(summary).collect()
}

/// A run over one input that can begin.
pub(crate) struct Run<'r> {
    pub(crate) engine: Arc<Engine>,
    pub(crate) state: Option<State>,
    /// The run as the state keeps it; none for one that is not kept.
    pub(crate) manifest: Option<RunManifest>,
    pub(crate) source: Source,
    pub(crate) fields: Fields,
    /// A group is held until so many rollouts have been read since its last member.
    pub(crate) hold: u64,
    /// After so many rollouts of which none can be scored the run ends.
    pub(crate) abort_after: AbortAfter,
    /// The field that statistics are told by.
    pub(crate) by: Option<&'r str>,
    /// The name of the file that results go to, where they go to one.
    pub(crate) out: Option<&'r str>,
    /// The file of the summary.
    pub(crate) summary: Option<&'r str>,
    pub(crate) quiet: bool,
}

impl Run<'_> {
    /// Scores all rollouts into a sink, prints the summary, and keeps the run in its state.
    pub(crate) fn score_into<S: Sink>(self, mut sink: S) -> Result<u8, CliError> {
        let state = self.state.as_ref();
        let mut copy = self.manifest.as_ref().and(state).map(State::copy).transpose()?;
        let summary_file = self.summary.map(Output::open).transpose()?;
        // How far a judged run has come is told by its calls: all of the file is read long before they are made.
        let length = self.source.length.filter(|_| self.engine.plan().judges.is_empty());
        let mut console = Console::for_run(self.quiet, length);
        let started = Instant::now();
        let interrupt = Arc::new(Interrupt::default());
        let files = self.out.into_iter().chain(self.summary).map(str::to_owned);
        let files = files.chain(state.map(State::files).into_iter().flatten());
        let watch = Watch {
            engine: &self.engine,
            interrupt: &interrupt,
            journal: state.map(|state| state.journal.clone()),
            parts: files.filter_map(|name| Output::part(&name)).collect(),
            out: self.out,
        };
        let done = watch.run(|| {
            let mut stream = Stream::new(&self.engine, &mut sink, &console, self.hold, &interrupt);
            (stream.breakdown, stream.copy) = (self.by.map(Breakdown::by), copy.as_mut());
            stream.abort_after(self.abort_after);
            stream.run(self.source, self.fields)
        });
        console.end();
        let Done { statistics, breakdown, bad_lines, bytes, fault } = done?;
        if let Some(fault) = fault.filter(|_| !self.quiet) {
            console.warning(&printable(&fault));
        }
        if let (Some(field), Some(breakdown)) = (self.by, &breakdown)
            && statistics.rollouts > 0
            && !breakdown.is_found()
        {
            console.warning(&format!("--by: no rollout has the field {field:?} in its extra"));
        }
        let remark = sink.finish()?;
        let summary = Summary {
            recipe: &self.engine.plan().name,
            statistics: &statistics,
            judge_usage: &self.engine.judge_usage(),
            by: self.by.zip(breakdown.as_ref()),
            bad_lines: &bad_lines,
            bytes,
            seconds: started.elapsed().as_secs_f64(),
        };
        if let Some(mut file) = summary_file {
            summary.write(&mut file)?;
            file.finish()?;
        }
        console.info(&summary::text(&summary, remark.as_deref(), console.style));
        let is_clean = statistics.outcomes.of(OutcomeKind::Invalid) == 0 && bad_lines.count == 0;
        if let (Some(state), Some(copy), Some(manifest)) = (state, copy, &self.manifest) {
            state.keep(manifest, copy)?;
            // A disk that is full may let no call begin, without any write that failed.
            let full = || state.journal.has_room().err().filter(|_| !is_clean);
            if let Some(stuck) = state.journal.is_stuck().or_else(full) {
                Console::errors().error(&stuck.to_string());
            }
        }
        Ok(if is_clean { GOOD } else { PARTLY })
    }
}

/// The names that the fields of rollouts have in the input.
pub(crate) fn fields(renamed: &[(String, String)], strict: bool) -> Result<Fields, CliError> {
    let mut fields = Fields::own();
    for (field, name) in renamed {
        if !fields.map(field, name) {
            let hint = match closest(field, field_names()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("the fields are {}", field_names().collect::<Vec<_>>().join(", ")),
            };
            return Err(CliError::Arguments(format!("--field: there is no field {field:?}; {hint}")));
        }
    }
    if strict {
        fields.refuse_others();
    }
    Ok(fields)
}
