//! What does a run leave behind, so that it can be gone on with, replayed and explained? The journal, the recipe and the
//! rollouts, in one folder.

use crate::failure::Failure;
use crate::files::Output;
use crate::summary::whole;
use crate::talk::Talk;
use plaudit::journal::{Journal, Recovered};
use plaudit::plan::Plan;
use plaudit::recipe::{Mistakes, Recipe, Source};
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The rollouts of the last run that finished.
const ROLLOUTS: &str = "rollouts.jsonl";
/// Its recipe and how it was read.
const RUN: &str = "run.json";

/// The folder of `--state`.
pub(crate) struct State {
    folder: PathBuf,
    pub(crate) journal: Arc<Journal>,
}

/// A run, so that it can be done again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The recipe as it was written.
    recipe: Source,
    /// What was overridden.
    set: Vec<(String, String)>,
    /// How long groups were held.
    pub(crate) hold: u64,
}

impl Kept {
    /// The run of a recipe; none for a recipe that did not come as text.
    pub(crate) fn of(recipe: &Recipe, set: &[(String, String)], hold: u64) -> Option<Self> {
        Some(Self { recipe: recipe.source()?.clone(), set: set.to_vec(), hold })
    }

    /// What the run does.
    pub(crate) fn plan(&self) -> Result<Plan, Mistakes> {
        let mut recipe = Recipe::from_source(self.recipe.clone())?;
        for (key, value) in &self.set {
            recipe.set(key, value)?;
        }
        recipe.plan()
    }
}

impl State {
    /// Opens the folder, which no other process may have open, and says what it found there.
    pub(crate) fn open(folder: &str, talk: &Talk) -> Result<Self, Failure> {
        let (journal, found) = Journal::open(Path::new(folder))?;
        told(&found, talk);
        Ok(Self { folder: PathBuf::from(folder), journal: Arc::new(journal) })
    }

    /// Opens the folder of a run; one that is not there is not made.
    pub(crate) fn existing(folder: &str) -> Result<Self, Failure> {
        if !Path::new(folder).is_dir() {
            return Err(Failure::Arguments(format!(
                "there is no folder {folder:?}: `plaudit score --state` makes one"
            )));
        }
        Self::open(folder, &Talk::errors())
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    /// The names of the files that a run writes here.
    pub(crate) fn files(&self) -> [String; 2] {
        [self.path(ROLLOUTS), self.path(RUN)]
    }

    /// Where the rollouts of this run go; they appear when it has finished.
    pub(crate) fn copy(&self) -> Result<Output, Failure> {
        Output::open(&self.path(ROLLOUTS))
    }

    /// Keeps the run that has finished.
    pub(crate) fn keep(&self, run: &Kept, copy: Output) -> Result<(), Failure> {
        copy.finish()?;
        let name = self.path(RUN);
        let mut file = Output::open(&name)?;
        let text =
            serde_json::to_string_pretty(run).map_err(|error| Failure::Arguments(error.to_string()))?;
        writeln!(file, "{text}").map_err(|error| Failure::writing(&name, error))?;
        file.finish()
    }

    /// The last run that finished, and the file of its rollouts.
    pub(crate) fn last(&self) -> Result<(Kept, String), Failure> {
        let name = self.path(RUN);
        let text = std::fs::read_to_string(&name).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Failure::Arguments(format!(
                "{:?} holds no run that has finished: finish one with `plaudit score --state`",
                self.folder
            )),
            _ => Failure::File(name.clone(), error),
        })?;
        let kept = serde_json::from_str(&text)
            .map_err(|error| Failure::Arguments(format!("{name:?} cannot be read: {error}")))?;
        Ok((kept, self.path(ROLLOUTS)))
    }
}

/// Says what a person should know of a journal that was found.
fn told(found: &Recovered, talk: &Talk) {
    if found.damaged > 0 {
        talk.warning(&format!(
            "the journal is damaged: {} records are lost ({} bytes), and judged again where they are still needed",
            whole(found.damaged),
            whole(found.lost_bytes)
        ));
    }
    if found.judgments > 0 {
        talk.say(&format!("going on with {} judgments from the journal", whole(found.judgments)));
    }
    if found.open_intents > 0 {
        talk.say(&format!(
            "{} calls were sent before and never answered: they may have been paid for",
            whole(found.open_intents)
        ));
    }
}
