//! View of a group as a judge sees it: the query, the reference and the distinct responses, sanitized, in an order that
//! does not depend on the order of the rollouts.

use super::MAX_SHOWN;
use super::prompt::delimiters::Delimiters;
use super::prompt::injection::injection;
use super::prompt::sanitize::sanitize;
use super::prompt::transcript::{judge_transcript, plain_transcript};
use super::rewards::judged_reward::{JudgedReward, PromptSource};
use crate::conversation::Conversation;
use crate::reason::{Code, Reason};
use crate::rollout::{Prompt, Rollout};
use crate::text::Text;
use plaudit_text::{is_blank, strip};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// One distinct response that is shown to the judge.
#[derive(Debug)]
pub struct Candidate {
    /// The response without its thought.
    pub text: String,
    /// The same, sanitized.
    pub shown: Arc<str>,
    /// The letter that it gets where that is free.
    pub(super) letter: usize,
    /// The member that it is of; none for the reference.
    pub member: Option<usize>,
    /// Identifies it among all responses.
    pub(super) hash: [u8; 32],
}

/// What becomes of a member.
#[derive(Debug, Clone, PartialEq)]
pub enum MemberState {
    /// It is judged as that candidate.
    Judged(usize),
    /// It broke a limit.
    Floored(Reason),
}

/// A group as a judge sees it.
#[derive(Debug)]
pub struct GroupView {
    /// The query, sanitized.
    pub query: Arc<str>,
    /// The reference as it is given, where there is one.
    pub reference: Option<String>,
    /// The different responses, in an order of their own.
    pub candidates: Vec<Candidate>,
    /// For each member, what becomes of it.
    pub states: Vec<MemberState>,
    /// The candidate of the reference, where it takes part.
    pub reference_index: Option<usize>,
    /// Markers, letters and nonces.
    pub delimiters: Delimiters,
    /// The letters that a call can give to responses, most preferred first.
    pub(super) letters: Vec<String>,
    /// How many members address the judge.
    pub injections: u64,
    /// What a prompt of the recipe's own can name, one a member.
    pub(super) values: Vec<TemplateValues>,
}

/// What a prompt of the recipe's own can name of one member.
#[derive(Debug)]
pub(super) struct TemplateValues {
    pub(super) id: String,
    pub(super) group: String,
    pub(super) messages: Value,
    pub(super) extra: Value,
}

/// A rollout of the group, with its text.
#[derive(Debug, Clone, Copy)]
pub struct Member<'m> {
    /// The rollout.
    pub rollout: &'m Rollout<'m>,
    /// Its response, with its views.
    pub text: &'m Text<'m>,
}

impl GroupView {
    /// The view of the members that are to be judged. `with_reference` says whether the reference takes part.
    pub fn new(
        reward: &JudgedReward,
        members: &[Member<'_>],
        secret: &[u8; 32],
        with_reference: bool,
    ) -> Self {
        let first = members.first().map(|member| member.rollout);
        let raw_query = first.and_then(|rollout| rollout.prompt.as_ref()).map_or_else(String::new, plain);
        let reference = first.and_then(|rollout| rollout.reference.as_deref()).map(str::to_owned);
        let delimiters = Delimiters::new(secret, raw_query.as_bytes());
        let mut view = Self {
            query: sanitize(&raw_query, delimiters.fence(), reward.params.longest).into(),
            reference,
            candidates: Vec::new(),
            states: vec![MemberState::Judged(usize::MAX); members.len()],
            reference_index: None,
            letters: delimiters.labels(MAX_SHOWN),
            delimiters,
            injections: 0,
            values: match &reward.prompt {
                PromptSource::Custom { .. } => members.iter().map(|member| values(member.rollout)).collect(),
                _ => Vec::new(),
            },
        };
        view.add_members(reward, members);
        if with_reference && let Some(reference) = first.and_then(|rollout| rollout.reference.as_ref()) {
            view.add_reference(reward, &reference.first_text());
        }
        view.sort_candidates();
        view
    }

    /// Makes a candidate of every distinct response.
    fn add_members(&mut self, reward: &JudgedReward, members: &[Member<'_>]) {
        // A prompt of the recipe's own may name what differs between members with equal responses.
        let apart = matches!(reward.prompt, PromptSource::Custom { .. });
        for (at, member) in members.iter().enumerate() {
            let with_thoughts = reward.params.show_thought;
            let text = match (member.text.conversation(), with_thoughts) {
                (Some(conversation), _) => Cow::Owned(match speaks(conversation) {
                    true => plain_transcript(conversation, with_thoughts),
                    false => String::new(),
                }),
                (None, true) => Cow::Borrowed(member.text.stripped()),
                (None, false) => member.text.without_thought(),
            };
            self.injections += u64::from(injection(&text).is_some());
            if is_blank(&text) {
                self.states[at] = MemberState::Floored(Code::ModelEmpty.into());
                continue;
            }
            let mut candidate = self.candidate(reward, &text, Some(at));
            if let Some(conversation) = member.text.conversation() {
                let (fence, longest) = (self.delimiters.fence(), reward.params.longest);
                candidate.shown = judge_transcript(conversation, fence, longest, with_thoughts).into();
            }
            let known = self.candidates.iter().position(|other| other.hash == candidate.hash);
            self.states[at] = MemberState::Judged(match known.filter(|_| !apart) {
                Some(known) => known,
                None => {
                    self.candidates.push(candidate);
                    self.candidates.len() - 1
                }
            });
        }
    }

    /// Adds the reference as a candidate.
    fn add_reference(&mut self, reward: &JudgedReward, reference: &str) {
        let candidate = self.candidate(reward, strip(reference), None);
        if is_blank(&candidate.text) {
            return;
        }
        let known = self.candidates.iter().position(|other| other.hash == candidate.hash);
        self.reference_index = Some(known.unwrap_or(self.candidates.len()));
        if known.is_none() {
            self.candidates.push(candidate);
        }
    }

    fn candidate(&self, reward: &JudgedReward, text: &str, member: Option<usize>) -> Candidate {
        let hash = *blake3::hash(text.as_bytes()).as_bytes();
        let seed = self.delimiters.nonce(&hash, 0);
        let letter = seed.bytes().fold(0usize, |sum, byte| (sum * 31 + usize::from(byte)) % 9973) % MAX_SHOWN;
        let shown = sanitize(text, self.delimiters.fence(), reward.params.longest).into();
        Candidate { text: text.to_owned(), shown, letter, member, hash }
    }

    /// Puts the candidates into an order that the order of the rollouts has no part in, so that who is shown first, and
    /// with whom, does not depend on who finished first.
    fn sort_candidates(&mut self) {
        let mut order: Vec<usize> = (0..self.candidates.len()).collect();
        order.sort_by_key(|at| (self.candidates[*at].hash, *at));
        let mut places = vec![0; order.len()];
        for (to, from) in order.iter().enumerate() {
            places[*from] = to;
        }
        let mut candidates: Vec<Option<Candidate>> =
            std::mem::take(&mut self.candidates).into_iter().map(Some).collect();
        self.candidates = order.iter().filter_map(|from| candidates[*from].take()).collect();
        for state in &mut self.states {
            if let MemberState::Judged(at) = state {
                *at = places[*at];
            }
        }
        self.reference_index = self.reference_index.map(|at| places[at]);
    }

    /// How many members are judged in the place of another.
    pub fn duplicates(&self) -> u64 {
        let judged = self.states.iter().filter(|state| matches!(state, MemberState::Judged(_))).count();
        let candidates = self.candidates.iter().filter(|candidate| candidate.member.is_some()).count();
        judged.saturating_sub(candidates) as u64
    }

    /// The letters of the candidates that a call shows. A response has the same one wherever it is shown first, so that
    /// prompts begin alike and a cache of prefixes serves them all.
    pub fn labels(&self, shown: &[usize]) -> Vec<String> {
        let mut taken = [false; MAX_SHOWN];
        let mut labels = Vec::with_capacity(shown.len());
        for at in shown {
            let preferred = self.candidates[*at].letter;
            let free = (0..MAX_SHOWN).map(|step| (preferred + step) % MAX_SHOWN).find(|at| !taken[*at]);
            let free = free.unwrap_or(preferred);
            taken[free] = true;
            labels.push(self.letters[free].clone());
        }
        labels
    }
}

/// Whether the model said or did anything that a judge could see.
fn speaks(conversation: &Conversation) -> bool {
    conversation.assistant_turns().any(|turn| !is_blank(&turn.text) || !turn.calls.is_empty())
}

/// The prompt as plain text: the one message, or all with their roles.
fn plain(prompt: &Prompt<'_>) -> String {
    match prompt {
        Prompt::Text(text) => text.to_string(),
        Prompt::Messages(messages) => match messages.as_slice() {
            [one] => content(one),
            many => {
                let message = |message: &Value| {
                    format!("[{}]\n{}", message["role"].as_str().unwrap_or("user"), content(message))
                };
                many.iter().map(message).collect::<Vec<_>>().join("\n\n")
            }
        },
    }
}

/// The text of a message, of which content may be a list of parts.
fn content(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn values(rollout: &Rollout<'_>) -> TemplateValues {
    let text = |text: &Option<Cow<'_, str>>| text.as_deref().unwrap_or("").to_owned();
    let messages = match &rollout.prompt {
        Some(Prompt::Messages(messages)) => Value::Array(messages.clone()),
        Some(Prompt::Text(text)) => serde_json::json!([{ "role": "user", "content": text }]),
        None => Value::Array(Vec::new()),
    };
    // A judge that is asked to repeat an id must be shown one. It depends on the response alone, so that the question stays the same.
    let named = rollout.id.as_deref().filter(|id| !id.is_empty());
    let made = || format!("response-{}", &blake3::hash(rollout.response.as_bytes()).to_hex()[..12]);
    TemplateValues {
        id: named.map_or_else(made, str::to_owned),
        group: text(&rollout.group),
        messages,
        extra: Value::Object(rollout.extra.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollout_without_an_id_is_shown_with_one() {
        let id = |rollout: &Rollout<'_>| values(rollout).id;
        let one = id(&Rollout::new("one"));
        assert!(one.starts_with("response-") && one.len() == 21, "{one}");
        assert_eq!(one, id(&Rollout { id: Some("".into()), ..Rollout::new("one") }));
        assert_ne!(one, id(&Rollout::new("two")));
        assert_eq!(id(&Rollout { id: Some("r1".into()), ..Rollout::new("one") }), "r1");
    }
}
