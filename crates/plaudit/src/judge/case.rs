//! What does a judge see of a group? The query, the reference and the different responses, made harmless, in an order that
//! does not depend on the order of the rollouts.

use super::fence::{Fences, neutral};
use super::question::{Question, Wording};
use super::{MOST_SHOWN, detect};
use crate::reason::{Code, Reason};
use crate::rollout::{Prompt, Rollout};
use crate::text::Text;
use crate::text::space::{is_blank, strip};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// One response as it is put before a judge.
#[derive(Debug)]
pub struct Entry {
    /// What the model said, without its thought.
    pub spoken: String,
    /// The same, made harmless.
    pub shown: Arc<str>,
    /// The letter that it would like to have.
    pub(super) letter: usize,
    /// The member that it is of; none for the reference.
    pub member: Option<usize>,
    /// Identifies it among all responses.
    pub(super) hash: [u8; 32],
}

/// What becomes of a member.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// It is judged as that entry.
    Judged(usize),
    /// It broke a limit.
    Floored(Reason),
}

/// A group as it is put before a judge.
#[derive(Debug)]
pub struct Case {
    /// The query, made harmless.
    pub query: Arc<str>,
    /// The reference as it is given, where there is one.
    pub reference: Option<String>,
    /// The different responses, in an order of their own.
    pub entries: Vec<Entry>,
    /// For each member, what becomes of it.
    pub standings: Vec<Standing>,
    /// The entry of the reference, where it takes part.
    pub rival: Option<usize>,
    /// Markers, letters and nonces.
    pub fences: Fences,
    /// The letters that a call can give to responses, most wanted first.
    pub(super) letters: Vec<String>,
    /// How many members speak to the judge.
    pub injections: u64,
    /// What a prompt of the recipe's own can name, one a member.
    pub(super) values: Vec<Values>,
}

/// What a prompt of the recipe's own can name of one member.
#[derive(Debug)]
pub(super) struct Values {
    pub(super) id: String,
    pub(super) group: String,
    pub(super) messages: Value,
    pub(super) extra: Value,
}

/// What a case is made of.
#[derive(Debug, Clone, Copy)]
pub struct Member<'m> {
    /// The rollout.
    pub rollout: &'m Rollout<'m>,
    /// Its response, with its views.
    pub text: &'m Text<'m>,
}

impl Case {
    /// The case of the members that are to be judged. `rival` says whether the reference takes part.
    pub fn new(question: &Question, members: &[Member<'_>], secret: &[u8; 32], rival: bool) -> Self {
        let first = members.first().map(|member| member.rollout);
        let raw_query = first.and_then(|rollout| rollout.prompt.as_ref()).map_or_else(String::new, plain);
        let reference = first.and_then(|rollout| rollout.reference.as_deref()).map(str::to_owned);
        let fences = Fences::new(secret, raw_query.as_bytes());
        let mut case = Self {
            query: neutral(&raw_query, fences.fence(), question.asking.longest).into(),
            reference,
            entries: Vec::new(),
            standings: vec![Standing::Judged(usize::MAX); members.len()],
            rival: None,
            letters: fences.labels(MOST_SHOWN),
            fences,
            injections: 0,
            values: match &question.wording {
                Wording::Own { .. } => members.iter().map(|member| values(member.rollout)).collect(),
                _ => Vec::new(),
            },
        };
        case.enter(question, members);
        if rival && let Some(reference) = case.reference.clone() {
            case.challenge(question, &reference);
        }
        case.arrange();
        case
    }

    /// Makes an entry of every different response.
    fn enter(&mut self, question: &Question, members: &[Member<'_>]) {
        // A prompt of the recipe's own may name what differs between members with equal responses.
        let apart = matches!(question.wording, Wording::Own { .. });
        for (at, member) in members.iter().enumerate() {
            let spoken = match question.asking.show_thought {
                true => Cow::Borrowed(member.text.stripped()),
                false => spoken(member.text),
            };
            self.injections += u64::from(detect::injection(&spoken).is_some());
            if is_blank(&spoken) {
                self.standings[at] = Standing::Floored(Code::ModelEmpty.into());
                continue;
            }
            let entry = self.entry(question, &spoken, Some(at));
            let known = self.entries.iter().position(|other| other.hash == entry.hash);
            self.standings[at] = Standing::Judged(match known.filter(|_| !apart) {
                Some(known) => known,
                None => {
                    self.entries.push(entry);
                    self.entries.len() - 1
                }
            });
        }
    }

    /// Lets the reference take part.
    fn challenge(&mut self, question: &Question, reference: &str) {
        let entry = self.entry(question, strip(reference), None);
        if is_blank(&entry.spoken) {
            return;
        }
        let known = self.entries.iter().position(|other| other.hash == entry.hash);
        self.rival = Some(known.unwrap_or(self.entries.len()));
        if known.is_none() {
            self.entries.push(entry);
        }
    }

    fn entry(&self, question: &Question, spoken: &str, member: Option<usize>) -> Entry {
        let hash = *blake3::hash(spoken.as_bytes()).as_bytes();
        let seed = self.fences.nonce(&hash, 0);
        let letter =
            seed.bytes().fold(0usize, |sum, byte| (sum * 31 + usize::from(byte)) % 9973) % MOST_SHOWN;
        let shown = neutral(spoken, self.fences.fence(), question.asking.longest).into();
        Entry { spoken: spoken.to_owned(), shown, letter, member, hash }
    }

    /// Puts the entries into an order that the order of the rollouts has no part in, so that who is shown first, and
    /// with whom, does not depend on who finished first.
    fn arrange(&mut self) {
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        order.sort_by_key(|at| (self.entries[*at].hash, *at));
        let mut places = vec![0; order.len()];
        for (to, from) in order.iter().enumerate() {
            places[*from] = to;
        }
        let mut entries: Vec<Option<Entry>> =
            std::mem::take(&mut self.entries).into_iter().map(Some).collect();
        self.entries = order.iter().filter_map(|from| entries[*from].take()).collect();
        for standing in &mut self.standings {
            if let Standing::Judged(at) = standing {
                *at = places[*at];
            }
        }
        self.rival = self.rival.map(|at| places[at]);
    }

    /// How many members are judged in the place of another.
    pub fn duplicates(&self) -> u64 {
        let judged = self.standings.iter().filter(|standing| matches!(standing, Standing::Judged(_))).count();
        let entries = self.entries.iter().filter(|entry| entry.member.is_some()).count();
        judged.saturating_sub(entries) as u64
    }

    /// The letters of the entries that a call shows. A response has the same one wherever it is shown first, so that
    /// prompts begin alike and a cache of prefixes serves them all.
    pub fn labels(&self, shown: &[usize]) -> Vec<String> {
        let mut taken = [false; MOST_SHOWN];
        let mut labels = Vec::with_capacity(shown.len());
        for at in shown {
            let wanted = self.entries[*at].letter;
            let free = (0..MOST_SHOWN).map(|step| (wanted + step) % MOST_SHOWN).find(|at| !taken[*at]);
            let free = free.unwrap_or(wanted);
            taken[free] = true;
            labels.push(self.letters[free].clone());
        }
        labels
    }
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

fn values(rollout: &Rollout<'_>) -> Values {
    let text = |text: &Option<Cow<'_, str>>| text.as_deref().unwrap_or("").to_owned();
    let messages = match &rollout.prompt {
        Some(Prompt::Messages(messages)) => Value::Array(messages.clone()),
        Some(Prompt::Text(text)) => serde_json::json!([{ "role": "user", "content": text }]),
        None => Value::Array(Vec::new()),
    };
    Values {
        id: text(&rollout.id),
        group: text(&rollout.group),
        messages,
        extra: Value::Object(rollout.extra.clone()),
    }
}

/// What a response says once its thought is taken away: every closed `<think>` block, what comes after one that is never
/// closed, and what comes before a `</think>` that nothing opened, as templates that open it in the prompt leave it.
pub fn spoken<'t>(text: &'t Text<'_>) -> Cow<'t, str> {
    let raw = text.as_str();
    let mut kept = String::new();
    let mut from = 0;
    let mut depth = 0usize;
    let mut any = false;
    for tag in text.tags().named(raw, "think") {
        any = true;
        match (tag.closes, depth) {
            (false, 0) => {
                kept.push_str(&raw[from..tag.start]);
                depth = 1;
            }
            (false, _) => depth += 1,
            (true, 0) => {
                kept.clear();
                from = tag.end;
            }
            (true, _) => {
                depth -= 1;
                if depth == 0 {
                    from = tag.end;
                }
            }
        }
    }
    if !any {
        return Cow::Borrowed(text.stripped());
    }
    if depth == 0 {
        kept.push_str(&raw[from..]);
    }
    Cow::Owned(strip(&kept).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thought_is_taken_away() {
        for (text, left) in [
            ("plain ", "plain"),
            ("<think>a</think>b", "b"),
            ("x<think>a</think>b<think>c</think> d", "xb d"),
            ("<think>never closed", ""),
            ("said <think>never closed", "said"),
            ("opened in the prompt</think>b", "b"),
            ("<think>a<think>b</think>c</think>d", "d"),
            ("</think></think>e", "e"),
        ] {
            assert_eq!(spoken(&Text::new(text)), left, "{text}");
        }
    }
}
