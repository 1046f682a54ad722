//! Runtime state of one judge, shared by all clients that ask it: admission queue, transport, single-flight, and which
//! answer formats it supports.

use super::admission::AdmissionQueue;
use super::budget::today;
use super::call_error::{self, CallError};
use super::query::Query;
use super::record::Record;
use super::registry::ErrorSink;
use super::tally::Tally;
use super::transport::{HttpReply, Transport, TransportError};
use crate::exec::lock;
use crate::exec::single_flight::SingleFlight;
use crate::judge::answer::AnswerFormat;
use crate::judge::config::{BudgetPeriod, ResolvedJudge};
use crate::judge::secret::Secret;
use crate::reason::{Code, Reason};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::OnceCell;

/// A key of so many letters is part of no answer by chance.
const LONG_KEY: usize = 16;

/// The formats by their names in the record.
const FORMATS: [AnswerFormat; 3] = [AnswerFormat::Logprobs, AnswerFormat::Json, AnswerFormat::Tag];

/// One judge, and all that is known of it.
pub(super) struct JudgeState {
    pub(super) judge: Arc<ResolvedJudge>,
    pub(super) queue: AdmissionQueue,
    pub(super) transport: Box<dyn Transport>,
    pub(super) single_flight: SingleFlight,
    /// How many nanoseconds answers have waited for the record: counted beside the queue, which every call locks.
    journal_wait: AtomicU64,
    /// Receives the unredacted text of its errors.
    error_sink: Option<ErrorSink>,
    /// Set when the record has been read.
    loaded: OnceCell<()>,
}

impl JudgeState {
    pub(super) fn new(
        judge: Arc<ResolvedJudge>,
        transport: Box<dyn Transport>,
        error_sink: Option<ErrorSink>,
    ) -> Self {
        let queue = AdmissionQueue::new(&judge);
        let single_flight = SingleFlight::default();
        let journal_wait = AtomicU64::new(0);
        Self { judge, queue, transport, single_flight, journal_wait, error_sink, loaded: OnceCell::new() }
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

    /// An error without the judge's own words, where only the error sink may have them.
    fn redacted(&self, mut error: CallError) -> CallError {
        if let (Some(error_sink), Some(status)) = (&self.error_sink, error.quoted) {
            error_sink(&self.judge.name, &error.reason);
            error.reason.message = call_error::sentence(status, b"").into();
        }
        error
    }

    /// A call that failed in transport. The address is named too, to the error sink alone where there is one.
    pub(super) fn transport_error(&self, endpoint: usize, error: TransportError) -> CallError {
        let mut error = CallError::transport(error);
        let located = format!("{} It was asked at {}.", error.reason.message, self.judge.route(endpoint));
        let located = Reason::new(error.reason.code, located);
        match &self.error_sink {
            Some(error_sink) => error_sink(&self.judge.name, &located),
            None => error.reason = located,
        }
        error
    }

    /// A reason as everybody may see it: without the key, and without the path of a journal that cannot be written.
    pub(super) fn public(&self, mut reason: Reason) -> Reason {
        for key in self.judge.secrets() {
            reason.message = key.redact(&reason.message).into_owned().into();
        }
        let Some(error_sink) = &self.error_sink else { return reason };
        error_sink(&self.judge.name, &reason);
        match reason.code.as_str().starts_with("engine.") {
            true => reason.code.into(),
            false => reason,
        }
    }

    /// The counts so far.
    pub(super) fn tally(&self) -> Tally {
        let state = lock(&self.queue.state);
        let openings = state.endpoints.iter().map(|endpoint| endpoint.openings).sum();
        let journal_wait = Duration::from_nanos(self.journal_wait.load(Ordering::Relaxed)).as_secs_f64();
        Tally { limit: state.limit.calls(), openings, journal_wait, ..state.tally.clone() }
    }

    /// Reads once what the record knows of the judge: the formats that it supports, and what was spent on it.
    async fn load(&self, record: &dyn Record) -> Result<(), Reason> {
        let read = || async {
            let (calls, cost) = record.spent(&self.budget_key()).await?;
            let known = record.get_fact(&self.formats_key()).await?;
            let mut state = lock(&self.queue.state);
            state.budget.load(calls, cost);
            for word in known.iter().flat_map(|known| known.split(' ')) {
                for format in FORMATS {
                    match word.strip_suffix(format.as_str()) {
                        Some("+") => drop(state.supported.insert(format)),
                        Some("-") => drop(state.unsupported.insert(format)),
                        _ => {}
                    }
                }
            }
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

    /// The name under which the formats that it supports are recorded.
    fn formats_key(&self) -> String {
        format!("form:{}", self.judge.identity)
    }

    /// Records which formats it supports, so that a resumed run asks in the same ones.
    pub(super) fn store_formats(&self, record: &dyn Record) {
        let state = lock(&self.queue.state);
        let sign = |format: &AnswerFormat| match (
            state.supported.contains(format),
            state.unsupported.contains(format),
        ) {
            (true, _) => Some('+'),
            (_, true) => Some('-'),
            _ => None,
        };
        let word = |format: &AnswerFormat| sign(format).map(|sign| format!("{sign}{}", format.as_str()));
        let words: Vec<String> = FORMATS.iter().filter_map(word).collect();
        drop(state);
        record.set_fact(&self.formats_key(), &words.join(" "));
    }

    /// The best format of the query that the judge supports, and whether there is a worse one.
    pub(super) async fn format(
        &self,
        record: &dyn Record,
        query: &dyn Query,
    ) -> Result<(AnswerFormat, bool), Reason> {
        self.load(record).await?;
        let state = lock(&self.queue.state);
        let formats = query.formats();
        let open = formats.iter().position(|format| !state.unsupported.contains(format));
        match (open, formats.last()) {
            (Some(at), _) => Ok((formats[at], at + 1 < formats.len())),
            (None, Some(last)) => Ok((*last, false)),
            (None, None) => Err(Reason::new(
                Code::JudgeClientError,
                "The question has no form that the judge may be asked in.",
            )),
        }
    }

    /// Gives up a format that the judge has not been seen to support. Returns whether it did.
    pub(super) fn drop_format(&self, record: &dyn Record, format: AnswerFormat) -> bool {
        let mut state = lock(&self.queue.state);
        if state.supported.contains(&format) {
            return false;
        }
        state.unsupported.insert(format);
        drop(state);
        self.store_formats(record);
        true
    }

    pub(super) fn is_unsupported(&self, format: AnswerFormat) -> bool {
        lock(&self.queue.state).unsupported.contains(&format)
    }
}
