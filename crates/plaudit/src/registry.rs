//! The registry of rewards: rules, code rewards, judged rewards and the caller's custom rewards, found by name or alias.

use crate::code::{self, CodeReward};
use crate::judge::{self, JudgedReward};
use crate::plan::first_of::FirstOf;
use crate::reward::{ParamError, Properties, Registration, ResourceCache};
use crate::rule::custom::{Custom, CustomKind};
use crate::rule::{self, Rule};
use serde_json::{Value, json};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// One reward of the registry, or a custom one that a caller passed for a single recipe.
#[derive(Clone, Copy)]
pub enum RewardEntry<'k> {
    /// A rule.
    Rule(&'static Registration<Rule>),
    /// A code reward.
    Code(&'static Registration<CodeReward>),
    /// A judged reward.
    Judged(&'static Registration<JudgedReward>),
    /// A reward of the caller's.
    Custom(&'k CustomKind),
}

/// A loaded reward, ready to score.
pub enum Scorer {
    /// A rule.
    Rule(Rule),
    /// A code reward.
    Code(Arc<CodeReward>),
    /// A judged reward.
    Judged(Arc<JudgedReward>),
    /// A reward of the caller's, which sees many groups in one call.
    Custom(Box<dyn Custom>),
    /// No reward of its own: the first of other components that says right.
    FirstOf(FirstOf),
}

impl fmt::Debug for Scorer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Rule(_) => "Rule",
            Self::Code(_) => "Code",
            Self::Judged(_) => "Judged",
            Self::Custom(_) => "Custom",
            Self::FirstOf(_) => "FirstOf",
        })
    }
}

impl Scorer {
    /// The range, the floor and the limits.
    pub fn properties(&self) -> Properties {
        match self {
            Self::Rule(rule) => *rule.properties(),
            Self::Code(reward) => reward.properties(),
            Self::Judged(question) => Properties::new(question.range),
            Self::Custom(custom) => custom.properties(),
            Self::FirstOf(first) => first.properties(),
        }
    }

    /// Whether it compares the members of a group.
    pub fn compares(&self) -> bool {
        match self {
            Self::Rule(rule) => matches!(rule, Rule::Group(_)),
            Self::Judged(question) => question.compares(),
            Self::Custom(custom) => custom.compares(),
            Self::Code(_) | Self::FirstOf(_) => false,
        }
    }
}

/// Custom rewards of this process. An entry is leaked and never freed, so that recipes may hold it; registering a name
/// again replaces the entry for recipes that are loaded later.
static CUSTOM: RwLock<Vec<&'static CustomKind>> = RwLock::new(Vec::new());

/// Registers a custom reward for this process, in the place of an earlier one of that name. The names of built-in rewards
/// are refused.
pub fn register(kind: CustomKind) -> Result<(), ParamError> {
    if RewardEntry::built_in().any(|entry| entry.is_called(&kind.name)) {
        return Err(ParamError::new("name", format!("{:?} is a reward of the engine's own", kind.name)));
    }
    let mut custom = CUSTOM.write().unwrap_or_else(PoisonError::into_inner);
    custom.retain(|known| known.name != kind.name);
    custom.push(Box::leak(Box::new(kind)));
    Ok(())
}

/// Reads a field of whichever registration an entry holds, or a default for a custom reward.
macro_rules! registered {
    ($entry:expr, $found:ident => $what:expr, $custom:ident => $other:expr) => {
        match $entry {
            RewardEntry::Rule($found) => $what,
            RewardEntry::Code($found) => $what,
            RewardEntry::Judged($found) => $what,
            RewardEntry::Custom($custom) => $other,
        }
    };
}

impl RewardEntry<'static> {
    /// Every built-in reward, rules first.
    fn built_in() -> impl Iterator<Item = Self> + Clone {
        let code = code::REWARDS.iter().map(RewardEntry::Code);
        rule::RULES
            .iter()
            .map(RewardEntry::Rule)
            .chain(code)
            .chain(judge::REWARDS.iter().map(RewardEntry::Judged))
    }

    /// Every reward: rules, code rewards, judged rewards, and the custom rewards of this process.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        let custom = CUSTOM.read().unwrap_or_else(PoisonError::into_inner).clone();
        Self::built_in().chain(custom.into_iter().map(RewardEntry::Custom))
    }

    /// The reward of that name or alias.
    pub fn find(name: &str) -> Option<Self> {
        Self::all().find(|entry| entry.is_called(name))
    }

    /// Every name and alias.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        Self::all().flat_map(|entry| std::iter::once(entry.name()).chain(entry.aliases().iter().copied()))
    }
}

/// The rewards that a feature of this crate has: the feature, whether this build has it, and every name and alias.
const FEATURES: [(&str, bool, &[&str]); 3] = [
    ("code", cfg!(feature = "code"), &["code_execution", "code", "code_style", "code_syntax_check"]),
    ("instructions", cfg!(feature = "instructions"), &["instructions", "language"]),
    ("math", cfg!(feature = "math"), &["math_verify_reward", "math", "choice"]),
];

/// The feature without which this build has no reward of that name.
pub(crate) fn missing_feature(name: &str) -> Option<&'static str> {
    let missing = FEATURES.iter().find(|(_, built, names)| !built && names.contains(&name));
    missing.map(|(feature, ..)| *feature)
}

impl<'k> RewardEntry<'k> {
    /// The reward of that name or alias, first among the custom rewards of this recipe.
    pub(crate) fn find_among(name: &str, custom: &'k [CustomKind]) -> Option<Self> {
        custom.iter().find(|kind| kind.name == name).map(Self::Custom).or_else(|| RewardEntry::find(name))
    }

    fn is_called(self, name: &str) -> bool {
        self.name() == name || self.aliases().contains(&name)
    }

    /// The name in recipes.
    pub fn name(self) -> &'k str {
        registered!(self, found => found.name, custom => &custom.name)
    }

    /// Other names under which it is found.
    pub fn aliases(self) -> &'static [&'static str] {
        registered!(self, found => found.aliases, _custom => &[])
    }

    /// Whether it compares with the rollout's reference.
    pub fn needs_reference(self) -> bool {
        registered!(self, found => found.needs_reference, _custom => false)
    }

    /// Whether its value says if the answer is right.
    pub fn correctness(self) -> bool {
        registered!(self, found => found.correctness, _custom => false)
    }

    /// The keys of its info that hold a number for every scored response, and that a trainer should log.
    pub fn facts(self) -> &'static [&'static str] {
        registered!(self, found => found.facts, _custom => &[])
    }

    /// The JSON schema of its parameters, with their documentation.
    pub fn schema(self) -> Value {
        registered!(self, found => (found.schema)(), custom => custom.schema.clone())
    }

    /// The summary and the page.
    pub fn page(self) -> (String, String) {
        registered!(self, found => found.page(), custom => {
            (custom.page.lines().next().unwrap_or("").to_owned(), custom.page.clone())
        })
    }

    /// Loads the reward from parameters that the schema allows.
    pub fn build(self, parameters: Value, cache: &mut ResourceCache) -> Result<Scorer, Vec<ParamError>> {
        match self {
            Self::Rule(found) => Ok(Scorer::Rule((found.build)(parameters, cache)?)),
            Self::Code(found) => Ok(Scorer::Code(Arc::new((found.build)(parameters, cache)?))),
            Self::Judged(found) => Ok(Scorer::Judged(Arc::new((found.build)(parameters, cache)?))),
            Self::Custom(kind) => Ok(Scorer::Custom((kind.build)(parameters)?)),
        }
    }

    /// The reward with default parameters; none where it cannot be loaded with the defaults alone.
    pub fn with_defaults(self) -> Option<Scorer> {
        self.build(json!({}), &mut ResourceCache::default()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Recipe;

    #[test]
    fn a_reward_of_a_feature_is_there_or_refused_by_its_name() {
        for (feature, built, names) in FEATURES {
            for name in names {
                let entry = RewardEntry::find(name);
                let recipe =
                    Recipe::from_yaml(&format!("components: {{ a: {{ reward: {name} }} }}")).unwrap();
                if built {
                    // Every name that the entry has, so that none is unknown where it is left out.
                    let entry = entry.unwrap();
                    let all = std::iter::once(entry.name()).chain(entry.aliases().iter().copied());
                    assert!(all.into_iter().all(|known| names.contains(&known)), "{name}");
                    assert_eq!(missing_feature(name), None);
                } else {
                    let refused = recipe.plan().unwrap_err().to_string();
                    let code =
                        if feature == "code" { "sandbox.unavailable" } else { "recipe.missing_feature" };
                    assert!(entry.is_none() && refused.contains(code), "{name}: {refused}");
                    assert!(refused.contains(&format!("build it with the feature {feature}")), "{refused}");
                }
            }
        }
    }
}
