//! Runtime state of one judge, shared by all clients that ask it: admission queue, transport, single-flight, and what was
//! learned of the formats and parameters that it takes.

use super::admission::AdmissionQueue;
use super::budget::today;
use super::call_error::{self, CallError};
use super::judge_usage::JudgeUsage;
use super::parameters::{self, Parameter};
use super::query::{Query, Request};
use super::registry::{JudgeEvent, JudgeLog};
use super::transport::{HttpReply, Transport, TransportError};
use crate::exec::lock;
use crate::exec::single_flight::SingleFlight;
use crate::judge::answer::{AnswerFormat, QuestionKind};
use crate::judge::config::{BudgetPeriod, ResolvedJudge};
use crate::judge::secret::Secret;
use crate::reason::{Code, Reason};
use crate::record::Record;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::OnceCell;

/// A key of so many letters is part of no answer by chance.
const LONG_KEY: usize = 16;

/// One judge, and all that is known of it.
pub(super) struct JudgeState {
    pub(super) judge: Arc<ResolvedJudge>,
    pub(super) queue: AdmissionQueue,
    pub(super) transport: Box<dyn Transport>,
    pub(super) single_flight: SingleFlight,
    /// How many nanoseconds answers have waited for the record: counted beside the queue, which every call locks.
    journal_wait: AtomicU64,
    /// Receives the unredacted text of its errors, and what was learned of it.
    log: Option<JudgeLog>,
    /// What was told of it.
    told: Mutex<BTreeSet<String>>,
    /// Set when the record has been read.
    loaded: OnceCell<()>,
}

impl JudgeState {
    pub(super) fn new(
        judge: Arc<ResolvedJudge>,
        transport: Box<dyn Transport>,
        log: Option<JudgeLog>,
    ) -> Self {
        let queue = AdmissionQueue::new(&judge);
        let single_flight = SingleFlight::default();
        let journal_wait = AtomicU64::new(0);
        let (told, loaded) = (Mutex::default(), OnceCell::new());
        Self { judge, queue, transport, single_flight, journal_wait, log, told, loaded }
    }

    /// Counts how long an answer waited until it was durable.
    pub(super) fn waited_for_journal(&self, wait: Duration) {
        // 584 years fit into 64 bits of nanoseconds.
        self.journal_wait.fetch_add(wait.as_nanos() as u64, Ordering::Relaxed);
    }

    /// The judgment in a reply, or the error that everybody may see.
    pub(super) fn check_reply(&self, reply: HttpReply) -> Result<Vec<u8>, CallError> {
        CallError::check_reply(self.without_key(reply)).map_err(|error| self.redacted(error))
    }

    /// A reply without the key that it was asked with, which some servers repeat.
    fn without_key(&self, mut reply: HttpReply) -> HttpReply {
        // A short key may stand in a good answer by chance, and that is read before it is shown.
        let shown = !(200..300).contains(&reply.status);
        let hide = |key: &&Secret| shown || key.reveal().len() >= LONG_KEY;
        for key in self.judge.secrets().filter(hide) {
            if let Cow::Owned(hidden) = key.redact(&String::from_utf8_lossy(&reply.body)) {
                reply.body = hidden.into_bytes();
            }
        }
        reply
    }

    /// An error without the judge's own words, where only the log may have them.
    fn redacted(&self, mut error: CallError) -> CallError {
        if let (Some(log), Some(status)) = (&self.log, error.quoted) {
            log(&self.judge.name, JudgeEvent::Error(&error.reason));
            error.reason.message = call_error::sentence(status, b"").into();
        }
        error
    }

    /// A call that failed in transport. The address is named too, to the log alone where there is one.
    pub(super) fn transport_error(&self, endpoint: usize, error: TransportError) -> CallError {
        let mut error = CallError::transport(error);
        let located = format!("{} It was asked at {}.", error.reason.message, self.judge.route(endpoint));
        let located = Reason::new(error.reason.code, located);
        match &self.log {
            Some(log) => log(&self.judge.name, JudgeEvent::Error(&located)),
            None => error.reason = located,
        }
        error
    }

    /// A reason as everybody may see it: without the key, and without the path of a journal that cannot be written.
    pub(super) fn public(&self, mut reason: Reason) -> Reason {
        for key in self.judge.secrets() {
            reason.message = key.redact(&reason.message).into_owned().into();
        }
        let Some(log) = &self.log else { return reason };
        log(&self.judge.name, JudgeEvent::Error(&reason));
        match reason.code.as_str().starts_with("engine.") {
            true => reason.code.into(),
            false => reason,
        }
    }

    /// The counts so far.
    pub(super) fn judge_usage(&self) -> JudgeUsage {
        let state = lock(&self.queue.state);
        let openings = state.endpoints.iter().map(|endpoint| endpoint.openings).sum();
        let journal_wait = Duration::from_nanos(self.journal_wait.load(Ordering::Relaxed)).as_secs_f64();
        let formats = state.formats.choices();
        let left_out = state.left_out.iter().map(|parameter| parameter.as_str()).collect();
        let limit = state.limit.calls();
        JudgeUsage { limit, openings, journal_wait, formats, left_out, ..state.judge_usage.clone() }
    }

    /// Reads once what the record knows of the judge: what was learned of it, and what was spent on it.
    async fn load(&self, record: &dyn Record) -> Result<(), Reason> {
        let read = || async {
            let (calls, cost) = record.spent(&self.budget_key()).await?;
            let formats = record.get_fact(&self.formats_key()).await?;
            let left_out = record.get_fact(&self.parameters_key()).await?;
            let mut state = lock(&self.queue.state);
            state.budget.load(calls, cost);
            state.formats.load(formats.as_deref().unwrap_or(""));
            let names = left_out.as_deref().unwrap_or("").split(' ');
            state.left_out.extend(names.filter_map(Parameter::named));
            Ok::<(), Reason>(())
        };
        self.loaded.get_or_try_init(read).await?;
        Ok(())
    }

    /// The name under which its spending is recorded: a new one each day, where its budget is a day's.
    pub(super) fn budget_key(&self) -> String {
        match self.judge.budget().per {
            BudgetPeriod::Day => format!("{}@{}", self.judge.name, today()),
            BudgetPeriod::Once => self.judge.name.clone(),
        }
    }

    /// The name under which what was learned of its formats is recorded.
    fn formats_key(&self) -> String {
        format!("form:{}", self.judge.identity)
    }

    /// The name under which the parameters that it does not take are recorded.
    fn parameters_key(&self) -> String {
        format!("left out:{}", self.judge.identity)
    }

    /// Records what was learned of the formats, where that has changed, so that a resumed run asks in the same ones.
    pub(super) fn store_formats(&self, record: &dyn Record) {
        let (changed, choices) = {
            let formats = &mut lock(&self.queue.state).formats;
            (formats.take_changed(), formats.choices())
        };
        if let Some(learned) = changed {
            record.set_fact(&self.formats_key(), &learned);
            choices.into_iter().for_each(|choice| self.tell(choice.text));
        }
    }

    /// Tells the log once what was learned.
    fn tell(&self, learned: String) {
        if let Some(log) = &self.log
            && lock(&self.told).insert(learned.clone())
        {
            log(&self.judge.name, JudgeEvent::Learned(&learned));
        }
    }

    /// The best format of the query that is not left, and whether there is a worse one.
    pub(super) async fn format(
        &self,
        record: &dyn Record,
        query: &dyn Query,
    ) -> Result<(AnswerFormat, bool), Reason> {
        self.load(record).await?;
        let chosen = lock(&self.queue.state).formats.choose(query.kind(), query.formats());
        chosen.ok_or_else(|| {
            Reason::new(Code::JudgeClientError, "The question has no form that the judge may be asked in.")
        })
    }

    /// The formats of the query in which the record may hold verdicts, although they are left now.
    pub(super) async fn left_with_verdicts(
        &self,
        record: &dyn Record,
        query: &dyn Query,
    ) -> Result<Vec<AnswerFormat>, Reason> {
        self.load(record).await?;
        Ok(lock(&self.queue.state).formats.left_with_verdicts(query.kind(), query.formats()))
    }

    pub(super) fn is_left(&self, kind: QuestionKind, format: AnswerFormat) -> bool {
        lock(&self.queue.state).formats.is_left(kind, format)
    }

    /// Takes in whether a reply has a verdict. A call that tries a format has told it before its permit was given back.
    pub(super) fn observe(
        &self,
        record: &dyn Record,
        (kind, format, has_next): (QuestionKind, AnswerFormat, bool),
        verdict: Result<(), Code>,
    ) {
        lock(&self.queue.state).formats.observe(kind, format, verdict, has_next);
        self.store_formats(record);
    }

    /// What is sent for a query, without the parameters that the endpoint does not take.
    pub(super) fn request(
        &self,
        query: &dyn Query,
        format: AnswerFormat,
        attempt: u32,
    ) -> Result<Request, Reason> {
        let request = query.request(format, attempt)?;
        let left_out = lock(&self.queue.state).left_out.clone();
        Ok(if left_out.is_empty() { request } else { parameters::without(request, &left_out) })
    }

    /// Leaves out a parameter that the endpoint refuses, where the refused request had it.
    pub(super) fn leave_out(&self, record: &dyn Record, refused: &[u8], parameter: Parameter) {
        if !parameter.is_in(refused) {
            return;
        }
        let mut state = lock(&self.queue.state);
        state.left_out.insert(parameter);
        let names: Vec<&str> = state.left_out.iter().map(|parameter| parameter.as_str()).collect();
        record.set_fact(&self.parameters_key(), &names.join(" "));
        drop(state);
        self.tell(format!("requests without {}, which the endpoint refuses", parameter.as_str()));
    }
}
