//! What can be seen of a group? Its texts, what every component says of them, and every question that was asked about it.

use super::kept::Brief;
use super::run::clock;
use plaudit::engine::{Engine, ScoreOptions};
use plaudit::group::Key;
use plaudit::judge::runner::CallTranscript;
use plaudit::judge::{Reply, Side, Verdict};
use plaudit::outcome::OutcomeKind;
use plaudit::reason::{Code, Reason};
use plaudit::report::Report;
use plaudit::rollout::{Prompt, Rollout};
use serde_json::{Value, json};
use std::borrow::Borrow;
use std::sync::Arc;

/// A group that is to be kept, before it is written.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) brief: Brief,
    rollouts: Vec<Rollout<'static>>,
    results: Vec<Value>,
    validate: Option<bool>,
    /// What tells the questions from the journal, where there are judges.
    engine: Option<Arc<Engine>>,
    /// The components for which calls failed when it was scored, where all failed for the same reason.
    failed: Vec<(String, Code)>,
}

impl Sample {
    /// The members of a report that are a group.
    pub(crate) fn of<R: Borrow<Rollout<'static>>>(
        (id, step): (u64, u64),
        members: &[usize],
        (rollouts, report): (&[R], &Report),
        validate: Option<bool>,
        engine: Option<Arc<Engine>>,
    ) -> Self {
        let result = |at: &usize| {
            let rollout = rollouts[*at].borrow();
            let id = rollout.id.as_deref().unwrap_or("");
            serde_json::to_value(report.result(*at, id, rollout)).unwrap_or(Value::Null)
        };
        Self {
            brief: brief(id, step, members, rollouts, report),
            rollouts: members.iter().map(|at| rollouts[*at].borrow().clone()).collect(),
            results: members.iter().map(result).collect(),
            validate,
            failed: if engine.is_some() { failed(report) } else { Vec::new() },
            engine,
        }
    }

    /// Why a call has no verdict. The journal has no answers of calls that failed, so the reason is that of a rollout that the call
    /// was about, or that of all calls of the component.
    fn why(&self, exchange: &CallTranscript, reason: &Reason) -> (Value, Value) {
        if reason.code != Code::JudgeNotRecorded {
            return (json!(reason.code), json!(reason.message));
        }
        let outcome =
            |at: &usize| self.results.get(*at).map(|result| &result["components"][&exchange.component]);
        let shown = exchange.shown.iter().flatten().filter_map(outcome);
        let mut reasons =
            shown.filter(|outcome| outcome["outcome"] == "invalid").map(|outcome| &outcome["reason"]);
        if let Some(reason) = reasons.find(|reason| reason["code"].is_string()) {
            return (reason["code"].clone(), reason["message"].clone());
        }
        match self.failed.iter().find(|(component, _)| *component == exchange.component) {
            Some((_, code)) => (json!(code), json!(code.meaning())),
            None => (json!(reason.code), json!("The call failed, and its reason is not kept.")),
        }
    }

    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.rollouts.iter().map(|rollout| rollout.bytes() + 512).sum()
    }

    /// The line that is written. What judges were asked is derived again from the journal, and nobody is asked for it.
    pub(crate) fn line(&self) -> String {
        let terms = ScoreOptions { validate: self.validate, cancel: None };
        let explained = self.engine.as_ref().and_then(|engine| engine.explain(&self.rollouts, &terms).ok());
        let exchanges: Vec<Value> = explained.map_or_else(Vec::new, |(_, exchanges)| {
            exchanges.iter().map(|one| exchange(self, one)).collect()
        });
        let first = self.rollouts.first();
        let row = |(rollout, result): (&Rollout<'static>, &Value)| json!({ "response": rollout.response, "tokens": rollout.tokens, "result": result });
        let rows: Vec<Value> = self.rollouts.iter().zip(&self.results).map(row).collect();
        json!({
            "prompt": first.and_then(|first| first.prompt.as_ref()).map(Prompt::to_value),
            "reference": first.and_then(|first| first.reference.as_deref()),
            "rollouts": rows,
            "exchanges": exchanges,
        })
        .to_string()
    }
}

fn brief<R: Borrow<Rollout<'static>>>(
    id: u64,
    step: u64,
    members: &[usize],
    rollouts: &[R],
    report: &Report,
) -> Brief {
    let totals: Vec<f64> = members.iter().filter_map(|at| report.rows[*at].total.value()).collect();
    let count = totals.len() as f64;
    let mean = (count > 0.0).then(|| totals.iter().sum::<f64>() / count);
    let squares = mean.map(|mean| totals.iter().map(|total| (total - mean).powi(2)).sum::<f64>());
    let kind = |kind| members.iter().filter(|at| report.rows[**at].total.kind() == kind).count();
    let key = members.first().and_then(|at| Some(Key::of(rollouts[*at].borrow())?.label().into_owned()));
    Brief {
        id: id.to_string(),
        group: key.map_or_else(|| id.to_string(), |label| label.chars().take(200).collect()),
        step,
        at: clock(),
        size: members.len(),
        mean,
        std: squares.map(|squares| (squares / count).sqrt()),
        min: totals.iter().copied().reduce(f64::min),
        max: totals.iter().copied().reduce(f64::max),
        invalid: kind(OutcomeKind::Invalid),
        floored: kind(OutcomeKind::Floored),
    }
}

/// The components of a report whose calls failed for one reason alone.
fn failed(report: &Report) -> Vec<(String, Code)> {
    let components = report.statistics.components.iter();
    let one = components.filter_map(|(name, component)| {
        let mut failed = component.judging.as_ref()?.0.failed.keys();
        failed.next().filter(|_| failed.next().is_none()).map(|code| (name.clone(), *code))
    });
    one.collect()
}

fn exchange(sample: &Sample, exchange: &CallTranscript) -> Value {
    let verdict = match &exchange.verdict {
        Err(reason) => {
            let (code, message) = sample.why(exchange, reason);
            json!({ "kind": "failed", "code": code, "message": message })
        }
        Ok(Verdict::Score(score)) => json!({ "kind": "score", "score": score }),
        Ok(Verdict::Ranking(order)) => json!({ "kind": "ranking", "order": order }),
        Ok(Verdict::Pair { winner, first }) => {
            let winner = winner.map(|side| match side {
                Side::First => 0,
                Side::Second => 1,
            });
            json!({ "kind": "pair", "winner": winner, "first": first })
        }
    };
    let reply = exchange.reply.as_deref().map(|body| match Reply::read(body) {
        Ok(reply) => reply.content,
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    });
    json!({
        "component": exchange.component, "judge": exchange.judge, "shown": exchange.shown,
        "labels": exchange.labels, "form": exchange.form, "attempts": exchange.attempts,
        "cached": exchange.cached, "verdict": verdict, "reply": reply,
    })
}
