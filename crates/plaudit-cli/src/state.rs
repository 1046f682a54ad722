//! What does a run leave behind, so that it can be gone on with, replayed and explained? The journal, the recipe and the
//! rollouts, in a folder or in a Redis.

use crate::copy::{RolloutCopy, Rollouts};
use crate::failure::Failure;
use crate::files::Output;
use crate::summary::whole;
use crate::talk::Talk;
use plaudit::journal::{LastRun, Recovered, Redis, Store};
use plaudit::plan::Plan;
use plaudit::recipe::{Recipe, RecipeErrors, Source};
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The rollouts of the last run that finished.
const ROLLOUTS: &str = "rollouts.jsonl";
/// Its recipe and how it was read.
const RUN: &str = "run.json";

/// What `--state` names: a folder, or `redis://host:port/database`.
pub(crate) struct State {
    place: Place,
    pub(crate) journal: Store,
}

enum Place {
    Folder(PathBuf),
    Redis(Arc<Redis>),
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
    pub(crate) fn plan(&self) -> Result<Plan, RecipeErrors> {
        let mut recipe = Recipe::from_source(self.recipe.clone())?;
        for (key, value) in &self.set {
            recipe.set(key, value)?;
        }
        recipe.plan()
    }
}

impl State {
    /// Opens the state and says what it found there. No other process may have the same folder open.
    pub(crate) fn open(place: &str, talk: &Talk) -> Result<Self, Failure> {
        let (journal, found) = Store::open(place)?;
        told(&found, talk);
        let place = match &journal {
            Store::Folder(_) => Place::Folder(PathBuf::from(place)),
            Store::Redis(redis) => Place::Redis(Arc::clone(redis)),
        };
        Ok(Self { place, journal })
    }

    /// Whether there may be a state at a place.
    pub(crate) fn is_begun(place: &str) -> bool {
        Store::is_redis(place) || Path::new(place).exists()
    }

    /// Opens the state of a run; a folder that is not there is not made.
    pub(crate) fn existing(place: &str) -> Result<Self, Failure> {
        Store::check(place)?;
        if !Store::is_redis(place) && !Path::new(place).is_dir() {
            return Err(Failure::Arguments(format!(
                "there is no folder {place:?}: `plaudit score --state` makes one"
            )));
        }
        Self::open(place, &Talk::errors())
    }

    /// The files of a state at a place, whether they are there or not.
    pub(crate) fn paths(place: &str) -> Vec<String> {
        match Store::is_redis(place) {
            true => Vec::new(),
            false => {
                [ROLLOUTS, RUN, "judgments.log", "secret"].map(|name| path(Path::new(place), name)).into()
            }
        }
    }

    /// The names of the files that a run writes.
    pub(crate) fn files(&self) -> Vec<String> {
        match &self.place {
            Place::Folder(folder) => vec![path(folder, ROLLOUTS), path(folder, RUN)],
            Place::Redis(_) => Vec::new(),
        }
    }

    /// Where the rollouts of this run go; they appear when it has finished.
    pub(crate) fn copy(&self) -> Result<RolloutCopy, Failure> {
        match &self.place {
            Place::Folder(folder) => Output::open(&path(folder, ROLLOUTS)).map(RolloutCopy::File),
            Place::Redis(_) => Ok(RolloutCopy::small()),
        }
    }

    /// Keeps the run that has finished.
    pub(crate) fn keep(&self, run: &Kept, copy: RolloutCopy) -> Result<(), Failure> {
        let text =
            serde_json::to_string_pretty(run).map_err(|error| Failure::Arguments(error.to_string()))?;
        let rollouts = copy.finish()?;
        match &self.place {
            Place::Redis(redis) => {
                let put = redis.put_run(&LastRun { run: text.into_bytes(), rollouts });
                // Its judgments are kept all the same, and what else was wrong with Redis is said in any case.
                if let Err(error) = put
                    && self.journal.is_stuck().is_none()
                {
                    Talk::errors().warning(&format!("the run cannot be replayed or explained: {error}"));
                }
                Ok(())
            }
            Place::Folder(folder) => {
                let name = path(folder, RUN);
                let mut file = Output::open(&name)?;
                writeln!(file, "{text}").map_err(|error| Failure::writing(&name, error))?;
                file.finish()
            }
        }
    }

    /// The last run that finished, and its rollouts.
    pub(crate) fn last(&self) -> Result<(Kept, Rollouts), Failure> {
        let none = |place: &str| {
            Failure::Arguments(format!(
                "{place} holds no run that has finished: finish one with `plaudit score --state`"
            ))
        };
        let (run, rollouts) = match &self.place {
            Place::Redis(redis) => {
                let last = redis.last_run()?.ok_or_else(|| none("Redis"))?;
                let rollouts = last.rollouts.ok_or_else(|| {
                    Failure::Arguments(
                        "the last run was over more rollouts than Redis is given to keep: to replay and explain such \
                         a run, give it a folder as its --state"
                            .to_owned(),
                    )
                })?;
                (last.run, Rollouts::beside(&rollouts)?)
            }
            Place::Folder(folder) => {
                let name = path(folder, RUN);
                let run = std::fs::read(&name).map_err(|error| match error.kind() {
                    std::io::ErrorKind::NotFound => none(&format!("{folder:?}")),
                    _ => Failure::File(name.clone(), error),
                })?;
                (run, Rollouts::at(path(folder, ROLLOUTS)))
            }
        };
        let kept = serde_json::from_slice(&run)
            .map_err(|error| Failure::Arguments(format!("the last run cannot be read: {error}")))?;
        Ok((kept, rollouts))
    }
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_string_lossy().into_owned()
}

/// Says what a person should know of a journal that was found.
pub(crate) fn told(found: &Recovered, talk: &Talk) {
    found.doubts.iter().for_each(|doubt| talk.warning(doubt));
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
