//! Grouping of rollouts: by their `group`, or by equal prompts where none is given.

use crate::rollout::{AsRollout, Rollout};
use rapidhash::RapidHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The rollouts of one prompt, by their places in the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Places in the input, ascending.
    pub members: Vec<usize>,
}

/// What becomes of a group of which members never arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Partial {
    /// Those who have arrived are scored without the others.
    Score,
    /// All of its members are invalid.
    Invalid,
}

/// What makes two rollouts members of one group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key<'a> {
    /// The name that the caller gave.
    Named(Cow<'a, str>),
    /// The prompt itself.
    Prompted(Cow<'a, str>),
}

impl<'a> Key<'a> {
    /// The key of a rollout; a rollout without group and prompt stands alone.
    pub fn of(rollout: &'a Rollout<'_>) -> Option<Self> {
        match (&rollout.group, &rollout.prompt) {
            (Some(name), _) => Some(Self::Named(Cow::Borrowed(name))),
            (None, Some(prompt)) => Some(Self::Prompted(prompt.key())),
            (None, None) => None,
        }
    }

    /// A 64-bit hash of the key, for bounded memories of groups.
    pub fn hash(&self) -> u64 {
        match self {
            Self::Named(name) => rapidhash::v3::rapidhash_v3(name.as_bytes()),
            Self::Prompted(prompt) => !rapidhash::v3::rapidhash_v3(prompt.as_bytes()),
        }
    }

    /// The name in results: the caller's, or one made of the prompt.
    pub fn label(&self) -> Cow<'_, str> {
        match self {
            Self::Named(name) => Cow::Borrowed(name),
            Self::Prompted(_) => Cow::Owned(format!("prompt-{:016x}", self.hash())),
        }
    }

    /// The same key, with text of its own.
    pub fn into_owned(self) -> Key<'static> {
        match self {
            Self::Named(name) => Key::Named(Cow::Owned(name.into_owned())),
            Self::Prompted(prompt) => Key::Prompted(Cow::Owned(prompt.into_owned())),
        }
    }
}

/// The groups of a batch, in the order of their first members.
pub fn gather<R: AsRollout>(rollouts: &[R]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: RapidHashMap<Key<'_>, usize> = RapidHashMap::default();
    let mut previous: Option<(Key<'_>, usize)> = None;
    for (at, rollout) in rollouts.iter().enumerate() {
        let Some(key) = Key::of(rollout.as_rollout()) else {
            groups.push(Group { members: vec![at] });
            continue;
        };
        // The members of a group mostly follow one another.
        if let Some((_, place)) = previous.as_ref().filter(|(known, _)| *known == key) {
            groups[*place].members.push(at);
            continue;
        }
        let place = *places.entry(key.clone()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.members.push(at),
            None => groups.push(Group { members: vec![at] }),
        }
        previous = Some((key, place));
    }
    groups
}

/// The groups whose size is not that of most: their places and sizes, or nothing where all are equal.
pub fn uneven(groups: &[Group]) -> Option<(usize, Vec<(usize, usize)>)> {
    let mut sizes: Vec<usize> = groups.iter().map(|group| group.members.len()).collect();
    sizes.sort_unstable();
    let usual = sizes
        .chunk_by(|a, b| a == b)
        .max_by_key(|run| (run.len(), run[0]))
        .and_then(|run| run.first().copied())?;
    let odd: Vec<(usize, usize)> = groups
        .iter()
        .enumerate()
        .map(|(at, group)| (at, group.members.len()))
        .filter(|(_, size)| *size != usual)
        .collect();
    (!odd.is_empty()).then_some((usual, odd))
}

/// For each member, the first one that is the same in everything a component may look at (itself, mostly).
pub fn originals<R: AsRollout>(rollouts: &[R], members: &[usize]) -> Vec<usize> {
    let mut firsts: RapidHashMap<(usize, u64), Vec<usize>> = RapidHashMap::default();
    let small = members.len() <= 32;
    let mut originals = Vec::with_capacity(members.len());
    for (at, member) in members.iter().enumerate() {
        let rollout: &Rollout<'_> = rollouts[*member].as_rollout();
        let earlier = |before: &usize| {
            let before: &Rollout<'_> = rollouts[members[*before]].as_rollout();
            before.is_like(rollout)
        };
        // Few members are told apart by length alone; many by length and hash, so that the work stays linear.
        let original = if small {
            (0..at).find(|before| originals[*before] == *before && earlier(before))
        } else {
            let hash = rapidhash::v3::rapidhash_v3(rollout.response.as_bytes());
            let alike = firsts.entry((rollout.response.len(), hash)).or_default();
            let found = alike.iter().copied().take(8).find(earlier);
            if found.is_none() {
                alike.push(at);
            }
            found
        };
        originals.push(original.unwrap_or(at));
    }
    originals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::Prompt;

    #[test]
    fn named_groups_and_prompts_are_kept_apart() {
        let rollouts = [
            Rollout::new("a").to_prompt("p"),
            Rollout::new("b").in_group("p"),
            Rollout::new("c").to_prompt("p"),
            Rollout::new("d"),
            Rollout::new("e"),
            Rollout::new("f").in_group("p").to_prompt("other"),
        ];
        let members: Vec<Vec<usize>> = gather(&rollouts).into_iter().map(|group| group.members).collect();
        assert_eq!(members, [vec![0, 2], vec![1, 5], vec![3], vec![4]]);
    }

    #[test]
    fn a_name_and_a_prompt_of_the_same_text_are_two_keys() {
        let (named, prompted) = (Key::Named("p".into()), Key::Prompted("p".into()));
        assert_ne!(named.hash(), prompted.hash());
        assert_ne!(named.hash(), Key::Named("q".into()).hash());
        assert_eq!(named.label(), "p");
        assert_eq!(prompted.label(), format!("prompt-{:016x}", prompted.hash()));
    }

    #[test]
    fn messages_with_keys_in_another_order_are_one_prompt() {
        let chat = |text: &str| Prompt::Messages(serde_json::from_str(text).unwrap());
        let mut one = Rollout::new("a");
        one.prompt = Some(chat(r#"[{"role":"user","content":"hi"}]"#));
        let mut two = Rollout::new("b");
        two.prompt = Some(chat(r#"[{"content":"hi","role":"user"}]"#));
        assert_eq!(gather(&[one, two]).len(), 1);
    }

    #[test]
    fn uneven_groups_are_named() {
        let groups = |sizes: &[usize]| -> Vec<Group> {
            sizes.iter().map(|size| Group { members: (0..*size).collect() }).collect()
        };
        assert_eq!(uneven(&groups(&[4, 4, 4])), None);
        assert_eq!(uneven(&groups(&[])), None);
        assert_eq!(uneven(&groups(&[4, 3, 4])), Some((4, vec![(1, 3)])));
    }

    #[test]
    fn the_same_response_with_another_reference_is_another() {
        let mut rollouts = vec![
            Rollout::new("a"),
            Rollout::new("b"),
            Rollout::new("a"),
            Rollout::new("a").with_reference("r"),
        ];
        assert_eq!(originals(&rollouts, &[0, 1, 2, 3]), [0, 1, 0, 3]);
        rollouts.extend((0..40).map(|_| Rollout::new("a")));
        let members: Vec<usize> = (0..rollouts.len()).collect();
        assert!(originals(&rollouts, &members)[4..].iter().all(|original| *original == 0));
    }
}
