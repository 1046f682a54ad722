//! Which rewards are there? The rules, the judges and what callers brought, in one list, found by name.

use crate::judge;
use crate::reward::{ParamError, Range, Stated};
use crate::rule;
use crate::rule::custom::{Custom, CustomKind};
use crate::tokenizer::ResourceCache;
use serde_json::{Value, json};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// One reward of the registry, or one that a caller brought for a single recipe.
#[derive(Clone, Copy)]
pub enum Entry<'k> {
    /// Scores by a rule.
    Rule(&'static rule::Kind),
    /// Asks a judge.
    Judge(&'static judge::Kind),
    /// Was brought by the caller.
    Custom(&'k CustomKind),
}

/// A loaded reward, ready to score.
pub enum Scorer {
    /// Looks at one rollout at a time.
    Each(Box<dyn rule::Rule>),
    /// Looks at a group at a time.
    Group(Box<dyn rule::GroupRule>),
    /// Asks a judge.
    Judged(Arc<judge::Question>),
    /// Was brought by the caller, and looks at many groups at once.
    Custom(Box<dyn Custom>),
}

impl fmt::Debug for Scorer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Each(_) => "Each",
            Self::Group(_) => "Group",
            Self::Judged(_) => "Judged",
            Self::Custom(_) => "Custom",
        })
    }
}

impl Scorer {
    /// What the reward states of itself.
    pub fn stated(&self) -> &dyn Stated {
        match self {
            Self::Each(rule) => rule.as_ref(),
            Self::Group(rule) => rule.as_ref(),
            Self::Judged(question) => question.as_ref(),
            Self::Custom(custom) => custom.as_ref(),
        }
    }

    /// Whether it compares the members of a group.
    pub fn compares(&self) -> bool {
        match self {
            Self::Each(_) => false,
            Self::Group(_) => true,
            Self::Judged(question) => question.compares(),
            Self::Custom(custom) => custom.compares(),
        }
    }
}

/// What callers have brought. An entry is never given back, so that recipes may hold it; a name that is registered again
/// means the newer one from then on.
static BROUGHT: RwLock<Vec<&'static CustomKind>> = RwLock::new(Vec::new());

/// Puts a reward of the caller's into the registry of this process, in the place of an earlier one of that name. A name
/// that the engine itself gives a reward is refused.
pub fn register(kind: CustomKind) -> Result<(), ParamError> {
    if Entry::own().any(|entry| entry.name() == kind.name || entry.aliases().contains(&kind.name.as_str())) {
        return Err(ParamError::new("name", format!("{:?} is a reward of the engine's own", kind.name)));
    }
    let mut brought = BROUGHT.write().unwrap_or_else(PoisonError::into_inner);
    brought.retain(|known| known.name != kind.name);
    brought.push(Box::leak(Box::new(kind)));
    Ok(())
}

macro_rules! either {
    ($entry:expr, $kind:ident => $what:expr, $custom:ident => $other:expr) => {
        match $entry {
            Entry::Rule($kind) => $what,
            Entry::Judge($kind) => $what,
            Entry::Custom($custom) => $other,
        }
    };
}

impl Entry<'static> {
    /// Every reward that the engine itself has, rules first.
    fn own() -> impl Iterator<Item = Self> + Clone {
        rule::KINDS.iter().map(Entry::Rule).chain(judge::KINDS.iter().map(Entry::Judge))
    }

    /// Every reward: rules, judges, and what callers brought.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        let brought = BROUGHT.read().unwrap_or_else(PoisonError::into_inner).clone();
        Self::own().chain(brought.into_iter().map(Entry::Custom))
    }

    /// The reward of that name or alias.
    pub fn find(name: &str) -> Option<Self> {
        Self::all().find(|entry| entry.name() == name || entry.aliases().contains(&name))
    }

    /// Every name and alias.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        Self::all().flat_map(|entry| std::iter::once(entry.name()).chain(entry.aliases().iter().copied()))
    }
}

impl<'k> Entry<'k> {
    /// The reward of that name or alias, first among those that were brought for this recipe.
    pub(crate) fn find_among(name: &str, brought: &'k [CustomKind]) -> Option<Self> {
        brought.iter().find(|kind| kind.name == name).map(Self::Custom).or_else(|| Entry::find(name))
    }

    /// The name in recipes.
    pub fn name(self) -> &'k str {
        either!(self, kind => kind.name, custom => &custom.name)
    }

    /// Other names under which it is found.
    pub fn aliases(self) -> &'static [&'static str] {
        either!(self, kind => kind.aliases, _custom => &[])
    }

    /// Whether it compares with the rollout's reference.
    pub fn needs_reference(self) -> bool {
        either!(self, kind => kind.needs_reference, _custom => false)
    }

    /// The JSON schema of its parameters, with their documentation.
    pub fn schema(self) -> Value {
        either!(self, kind => (kind.schema)(), custom => custom.schema.clone())
    }

    /// The summary and the page.
    pub fn page(self) -> (String, String) {
        either!(self, kind => kind.page(), custom => {
            (custom.page.lines().next().unwrap_or("").to_owned(), custom.page.clone())
        })
    }

    /// Loads the reward from parameters that the schema allows.
    pub fn build(self, parameters: Value, cache: &mut ResourceCache) -> Result<Scorer, Vec<ParamError>> {
        match self {
            Self::Rule(kind) => Ok(match (kind.build)(parameters, cache)? {
                rule::Scorer::Each(rule) => Scorer::Each(rule),
                rule::Scorer::Group(rule) => Scorer::Group(rule),
            }),
            Self::Judge(kind) => Ok(Scorer::Judged(Arc::new((kind.build)(parameters, cache)?))),
            Self::Custom(kind) => Ok(Scorer::Custom((kind.build)(parameters)?)),
        }
    }

    /// The range and the floor with default parameters, and whether it compares the members of a group; none where the
    /// defaults alone make no reward.
    pub fn stated(self) -> Option<(Range, f64, bool)> {
        let scorer = self.build(json!({}), &mut ResourceCache::default()).ok()?;
        Some((scorer.stated().range(), scorer.stated().floor(), scorer.compares()))
    }
}
