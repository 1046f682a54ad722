//! Sampled groups: the texts of a group, what every component says of them, and every judge call about it, for the dashboard.

use super::store::GroupSummary;
use crate::unix_time;
use plaudit::engine::{Engine, ScoreOptions};
use plaudit::group::Key;
use plaudit::judge::client::UsageMeter;
use plaudit::judge::runner::CallTranscript;
use plaudit::judge::{ItemAnswer, Reply, Side, Verdict};
use plaudit::outcome::OutcomeKind;
use plaudit::reason::{Code, Reason};
use plaudit::report::{Report, RowResult};
use plaudit::rollout::{Prompt, Rollout};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A group with its texts.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GroupReply<'s> {
    #[serde(flatten)]
    summary: GroupSummary,
    #[serde(flatten)]
    texts: GroupTexts<'s>,
}

/// The line of a group in `groups-N.jsonl`.
#[derive(Debug, Serialize, JsonSchema)]
struct GroupTexts<'s> {
    /// A text, or chat messages.
    prompt: Value,
    reference: Option<Cow<'s, str>>,
    rollouts: Vec<MemberReply<'s>>,
    /// Which part of a conversation each component reads, where it has a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    reads: Option<&'s BTreeMap<String, String>>,
    exchanges: Vec<ExchangeReply<'s>>,
}

/// A member of a group.
#[derive(Debug, Serialize, JsonSchema)]
struct MemberReply<'s> {
    /// The response; of a conversation, its final words.
    response: &'s str,
    /// The messages of a conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<Value>,
    tokens: Option<u64>,
    #[schemars(with = "RowResult<'static>")]
    result: &'s Value,
}

/// A question to a judge, and its answer.
#[derive(Debug, Serialize, JsonSchema)]
struct ExchangeReply<'s> {
    component: &'s str,
    judge: &'s str,
    /// The members that were shown, by their places; one that is null is the reference.
    shown: &'s [Option<usize>],
    /// Under which names they were shown.
    labels: &'s [String],
    #[schemars(with = "String")]
    form: Value,
    /// How often it was sent when the group was scored.
    attempts: u64,
    /// Whether its answer was known before the group was scored.
    cached: bool,
    /// Its `kind` is `pair`, `score`, `ranking` or `failed`.
    #[schemars(with = "Map<String, Value>")]
    verdict: Value,
    reply: Option<String>,
}

/// A sampled group, before it is written.
#[derive(Debug)]
pub(crate) struct GroupSnapshot {
    pub(crate) summary: GroupSummary,
    rollouts: Vec<Rollout<'static>>,
    results: Vec<Value>,
    /// Which part of a conversation each component reads; empty where there is none.
    reads: BTreeMap<String, String>,
    validate: Option<bool>,
    /// Derives the judge calls from the journal, where there are judges, and knows which of them were sent for the group.
    judged: Option<(Arc<Engine>, Arc<UsageMeter>)>,
    /// The components whose judge calls failed, where all failed for one reason.
    failed: Vec<(String, Code)>,
}

impl GroupSnapshot {
    /// A group of a report, by the places of its members.
    pub(crate) fn of<R: Borrow<Rollout<'static>>>(
        (id, step): (u64, u64),
        members: &[usize],
        (rollouts, report): (&[R], &Report),
        validate: Option<bool>,
        judged: Option<(Arc<Engine>, Arc<UsageMeter>)>,
    ) -> Self {
        let result = |at: &usize| {
            let rollout = rollouts[*at].borrow();
            let id = rollout.id.as_deref().unwrap_or("");
            serde_json::to_value(report.result(*at, id, rollout)).unwrap_or(Value::Null)
        };
        Self {
            summary: summary(id, step, members, rollouts, report),
            rollouts: members.iter().map(|at| rollouts[*at].borrow().clone()).collect(),
            results: members.iter().map(result).collect(),
            reads: match members.iter().any(|at| rollouts[*at].borrow().conversation.is_some()) {
                true => report.plan.scopes(),
                false => BTreeMap::new(),
            },
            validate,
            failed: if judged.is_some() { failed(report) } else { Vec::new() },
            judged,
        }
    }

    /// Why a call has no verdict. The journal does not hold failed calls, so the reason comes from a rollout that the call showed, or
    /// from all calls of the component.
    fn why(&self, transcript: &CallTranscript, reason: &Reason) -> (Value, Value) {
        if reason.code != Code::JudgeNotRecorded {
            return (json!(reason.code), json!(reason.message));
        }
        let outcome =
            |at: &usize| self.results.get(*at).map(|result| &result["components"][&transcript.component]);
        let shown = transcript.shown.iter().flatten().filter_map(outcome);
        let mut reasons =
            shown.filter(|outcome| outcome["outcome"] == "invalid").map(|outcome| &outcome["reason"]);
        if let Some(reason) = reasons.find(|reason| reason["code"].is_string()) {
            return (reason["code"].clone(), reason["message"].clone());
        }
        match self.failed.iter().find(|(component, _)| *component == transcript.component) {
            Some((_, code)) => (json!(code), json!(code.meaning())),
            None => (json!(reason.code), json!("The call failed, and its reason is not kept.")),
        }
    }

    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.rollouts.iter().map(|rollout| rollout.bytes() + 512).sum()
    }

    /// The line that is written. Judge calls are derived from the journal; no judge is asked.
    pub(crate) fn line(&self) -> String {
        let options = ScoreOptions { validate: self.validate, ..ScoreOptions::default() };
        let explain = |(engine, _): &(Arc<Engine>, _)| engine.explain(&self.rollouts, &options).ok();
        let explained = self.judged.as_ref().and_then(explain);
        let transcripts = explained.map_or_else(Vec::new, |(_, transcripts)| transcripts);
        let first = self.rollouts.first();
        let prompt = first.and_then(|first| first.prompt.as_ref()).map(Prompt::to_value);
        let compared = first.and_then(Rollout::compared_with);
        let members = self.rollouts.iter().zip(&self.results);
        let texts = GroupTexts {
            prompt: prompt.unwrap_or(Value::Null),
            reference: compared.map(|(_, reference)| reference.into_text()),
            rollouts: members
                .map(|(rollout, result)| MemberReply {
                    response: &rollout.response,
                    conversation: rollout.conversation.as_ref().map(|turns| turns.to_value()),
                    tokens: rollout.tokens,
                    result,
                })
                .collect(),
            reads: Some(&self.reads).filter(|reads| !reads.is_empty()),
            exchanges: transcripts.iter().map(|transcript| exchange(self, transcript)).collect(),
        };
        json!(texts).to_string()
    }
}

fn summary<R: Borrow<Rollout<'static>>>(
    id: u64,
    step: u64,
    members: &[usize],
    rollouts: &[R],
    report: &Report,
) -> GroupSummary {
    let totals: Vec<f64> = members.iter().filter_map(|at| report.rows[*at].total.value()).collect();
    let count = totals.len() as f64;
    let mean = (count > 0.0).then(|| totals.iter().sum::<f64>() / count);
    let squares = mean.map(|mean| totals.iter().map(|total| (total - mean).powi(2)).sum::<f64>());
    let kind = |kind| members.iter().filter(|at| report.rows[**at].total.kind() == kind).count();
    let key = members.first().and_then(|at| Some(Key::of(rollouts[*at].borrow())?.label().into_owned()));
    GroupSummary {
        id: id.to_string(),
        group: key.map_or_else(|| id.to_string(), |label| label.chars().take(200).collect()),
        step,
        at: unix_time(),
        size: members.len(),
        mean,
        std: squares.map(|squares| (squares / count).sqrt()),
        min: totals.iter().copied().reduce(f64::min),
        max: totals.iter().copied().reduce(f64::max),
        invalid: kind(OutcomeKind::Invalid),
        floored: kind(OutcomeKind::Floored),
    }
}

/// The components of a report whose judge calls all failed for one reason.
fn failed(report: &Report) -> Vec<(String, Code)> {
    let components = report.statistics.components.iter();
    let one = components.filter_map(|(name, component)| {
        let mut failed = component.judging.as_ref()?.0.failed.keys();
        failed.next().filter(|_| failed.next().is_none()).map(|code| (name.clone(), *code))
    });
    one.collect()
}

fn exchange<'s>(sample: &GroupSnapshot, transcript: &'s CallTranscript) -> ExchangeReply<'s> {
    let verdict = match &transcript.verdict {
        Err(reason) => {
            let (code, message) = sample.why(transcript, reason);
            json!({ "kind": "failed", "code": code, "message": message })
        }
        Ok(Verdict::Score(score)) => json!({ "kind": "score", "score": score }),
        Ok(Verdict::Ranking(order)) => json!({ "kind": "ranking", "order": order }),
        Ok(Verdict::Items(items)) => {
            let said = |item: &Option<ItemAnswer>| {
                item.as_ref().map(|item| json!({ "said": item.said, "reason": item.reason }))
            };
            json!({ "kind": "items", "items": items.iter().map(said).collect::<Vec<_>>() })
        }
        Ok(Verdict::Text(text)) => json!({ "kind": "text", "text": text }),
        Ok(Verdict::Pair { winner, first }) => {
            let winner = winner.map(|side| match side {
                Side::First => 0,
                Side::Second => 1,
            });
            json!({ "kind": "pair", "winner": winner, "first": first })
        }
    };
    let reply = transcript.reply.as_deref().map(|body| match Reply::read(body) {
        Ok(reply) => reply.content,
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    });
    // What the journal answers now may have been sent then.
    let source = sample.judged.as_ref().zip(transcript.key).and_then(|((_, usage), key)| usage.source(&key));
    let (cached, attempts) =
        source.map_or((transcript.cached, transcript.attempts), |source| (source.cached, source.attempts));
    ExchangeReply {
        component: &transcript.component,
        judge: &transcript.judge,
        shown: &transcript.shown,
        labels: &transcript.labels,
        form: json!(transcript.format),
        attempts: attempts.into(),
        cached,
        verdict,
        reply,
    }
}
