//! Runs rubric sessions: asks about the items that no record knows, and stores each verdict by its item and response.

use super::{CallTranscript, JudgeRunner, Session, TaskOutput};
use crate::exec::TraceSpan;
use crate::judge::answer::{ItemAnswer, Verdict};
use crate::judge::client::{CallOutcome, UsageMeter};
use crate::judge::rubric_call::RubricCall;
use crate::judge::rubric_session::{ItemsCall, RubricSession};
use crate::record::RecordSource;
use futures_util::future::join_all;
use std::time::Duration;
use tokio::time::Instant;

/// How a session is run.
pub(super) struct ItemsRun<'r> {
    pub(super) component: &'r str,
    pub(super) judge: usize,
    pub(super) deadline: Instant,
    pub(super) told: (Option<&'r dyn TraceSpan>, Option<&'r UsageMeter>),
    pub(super) transcripts: bool,
}

impl JudgeRunner {
    pub(super) async fn run_items(&self, mut session: RubricSession, run: ItemsRun<'_>) -> TaskOutput {
        let mut transcripts = Vec::new();
        self.recall_items(&run, &mut session).await;
        loop {
            let wave = session.next_wave();
            if wave.is_empty() {
                break;
            }
            let settings = self.client.judge(run.judge);
            let calls: Vec<_> = wave.iter().map(|call| RubricCall::new(&session, settings, call)).collect();
            let outcomes = self.client.ask_all(run.judge, &calls, run.deadline, run.told).await;
            if run.transcripts {
                for (call, outcome) in calls.iter().zip(&outcomes) {
                    transcripts.push(self.items_transcript(&run, &session, call, outcome).await);
                }
            }
            drop(calls);
            if !session.is_audit() {
                // All at once, because each is waited for until it is durable.
                let stored = wave.iter().zip(&outcomes);
                join_all(stored.map(|(call, outcome)| self.store_items(run.judge, &session, call, outcome)))
                    .await;
            }
            session.take(&wave, outcomes.into_iter().map(|outcome| outcome.verdict).collect());
        }
        TaskOutput { session: Session::Rubric(session), transcripts }
    }

    /// Takes the verdicts that the record has. A call that it has whole is left to be asked as it was, so that a run that was
    /// killed between a reply and its verdicts goes on as if it had not been; so is every such call where transcripts are wanted.
    async fn recall_items(&self, run: &ItemsRun<'_>, session: &mut RubricSession) {
        let judge = run.judge;
        for call in session.calls() {
            let known = self.known_items(judge, session, &call).await;
            let whole = known.iter().all(Option::is_some);
            let some = known.iter().any(Option::is_some);
            if some && (run.transcripts || !whole) {
                let request = RubricCall::new(session, self.client.judge(judge), &call);
                if self.client.is_cached(judge, &request).await {
                    continue;
                }
            }
            for (place, answer) in call.items.iter().zip(known) {
                if let Some(answer) = answer {
                    session.know(call.candidate, *place, answer);
                }
            }
        }
    }

    async fn known_items(
        &self,
        judge: usize,
        session: &RubricSession,
        call: &ItemsCall,
    ) -> Vec<Option<ItemAnswer>> {
        let settings = self.client.judge(judge);
        let mut known = Vec::with_capacity(call.items.len());
        for place in &call.items {
            let key = session.item_key(settings, call.candidate, *place);
            let body = self.client.record().get(&key).await.ok().flatten();
            known.push(body.and_then(|body| session.restored(*place, &body)));
        }
        known
    }

    /// What is left of a call without the items and the replies that the record has.
    pub(super) async fn unknown_items(
        &self,
        judge: usize,
        session: &RubricSession,
        call: ItemsCall,
    ) -> Option<ItemsCall> {
        let request = RubricCall::new(session, self.client.judge(judge), &call);
        if self.client.is_cached(judge, &request).await {
            return None;
        }
        let known = self.known_items(judge, session, &call).await;
        let is_unknown = |(place, answer): (&usize, Option<_>)| answer.is_none().then_some(*place);
        let items: Vec<usize> = call.items.iter().zip(known).filter_map(is_unknown).collect();
        (call.items.is_empty() || !items.is_empty()).then_some(ItemsCall { candidate: call.candidate, items })
    }

    /// Stores the verdicts of a reply, which is durable by now. What cannot be stored is found again by its call.
    async fn store_items(
        &self,
        judge: usize,
        session: &RubricSession,
        call: &ItemsCall,
        outcome: &CallOutcome,
    ) {
        let Ok(Verdict::Items(answers)) = &outcome.verdict else { return };
        let settings = self.client.judge(judge);
        let given =
            call.items.iter().zip(answers).filter_map(|(place, answer)| Some((place, answer.as_ref()?)));
        join_all(given.map(|(place, answer)| async {
            let key = session.item_key(settings, call.candidate, *place);
            let body = RubricSession::stored(answer, outcome.key);
            let latency = outcome.latency.unwrap_or(Duration::ZERO);
            let _ = self.client.record().store(RecordSource::Item(&key), &body, latency).await;
        }))
        .await;
    }

    async fn items_transcript(
        &self,
        run: &ItemsRun<'_>,
        session: &RubricSession,
        call: &RubricCall<'_>,
        outcome: &CallOutcome,
    ) -> CallTranscript {
        let reply = match &outcome.key {
            Some(key) => self.client.record().get(key).await.ok().flatten(),
            None => None,
        };
        let attempt = outcome.attempts.saturating_sub(1);
        CallTranscript {
            component: run.component.to_owned(),
            judge: self.client.judge(run.judge).name.clone(),
            shown: vec![session.view.candidates[call.candidate()].member],
            labels: call.labels(),
            format: outcome.format,
            prompt: call
                .user_message(outcome.format, attempt)
                .unwrap_or_else(|reason| reason.message.into_owned()),
            key: outcome.key,
            reply,
            verdict: outcome.verdict.clone(),
            cached: outcome.cached,
            attempts: outcome.attempts,
        }
    }
}
