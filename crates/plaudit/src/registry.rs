//! Which rewards are there? The rules and the judges in one list, found by name.

use crate::judge;
use crate::reward::{Range, Refusal, Stated};
use crate::rule;
use crate::tokenizer::Shelf;
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// One reward of the registry.
#[derive(Clone, Copy)]
pub enum Entry {
    /// Scores by a rule.
    Rule(&'static rule::Kind),
    /// Asks a judge.
    Judge(&'static judge::Kind),
}

/// A loaded reward, ready to score.
pub enum Scorer {
    /// Looks at one rollout at a time.
    Each(Box<dyn rule::Rule>),
    /// Looks at a group at a time.
    Group(Box<dyn rule::GroupRule>),
    /// Asks a judge.
    Judged(Arc<judge::Question>),
}

impl fmt::Debug for Scorer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Each(_) => "Each",
            Self::Group(_) => "Group",
            Self::Judged(_) => "Judged",
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
        }
    }

    /// Whether it compares the members of a group.
    pub fn compares(&self) -> bool {
        match self {
            Self::Each(_) => false,
            Self::Group(_) => true,
            Self::Judged(question) => question.compares(),
        }
    }
}

macro_rules! either {
    ($entry:expr, $kind:ident => $what:expr) => {
        match $entry {
            Entry::Rule($kind) => $what,
            Entry::Judge($kind) => $what,
        }
    };
}

impl Entry {
    /// Every reward, rules first.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        rule::KINDS.iter().map(Entry::Rule).chain(judge::KINDS.iter().map(Entry::Judge))
    }

    /// The reward of that name or alias.
    pub fn find(name: &str) -> Option<Self> {
        Self::all().find(|entry| either!(entry, kind => kind.is_called(name)))
    }

    /// Every name and alias.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        Self::all().flat_map(|entry| std::iter::once(entry.name()).chain(entry.aliases().iter().copied()))
    }

    /// The name in recipes.
    pub fn name(self) -> &'static str {
        either!(self, kind => kind.name)
    }

    /// Other names under which it is found.
    pub fn aliases(self) -> &'static [&'static str] {
        either!(self, kind => kind.aliases)
    }

    /// Whether it compares with the rollout's reference.
    pub fn needs_reference(self) -> bool {
        either!(self, kind => kind.needs_reference)
    }

    /// The JSON schema of its parameters, with their documentation.
    pub fn schema(self) -> Value {
        either!(self, kind => (kind.schema)())
    }

    /// The summary and the page.
    pub fn page(self) -> (String, String) {
        either!(self, kind => kind.page())
    }

    /// Loads the reward from parameters that the schema allows.
    pub fn build(self, parameters: Value, shelf: &mut Shelf) -> Result<Scorer, Vec<Refusal>> {
        match self {
            Self::Rule(kind) => Ok(match (kind.build)(parameters, shelf)? {
                rule::Scorer::Each(rule) => Scorer::Each(rule),
                rule::Scorer::Group(rule) => Scorer::Group(rule),
            }),
            Self::Judge(kind) => Ok(Scorer::Judged(Arc::new((kind.build)(parameters, shelf)?))),
        }
    }

    /// The range and the floor with default parameters, and whether it compares the members of a group; none where the
    /// defaults alone make no reward.
    pub fn stated(self) -> Option<(Range, f64, bool)> {
        let scorer = self.build(json!({}), &mut Shelf::default()).ok()?;
        Some((scorer.stated().range(), scorer.stated().floor(), scorer.compares()))
    }
}
