//! The judge client: sends requests to LLM judges, at most once per key, within concurrency, rate, retry and cost limits.

mod admission;
mod breaker;
mod budget;
mod call_error;
mod config;
mod permit;
mod rate_limit;
mod record;
mod registry;
mod request;
mod single_flight;
mod tally;
#[cfg(test)]
mod tests;
mod transport;

pub use config::{CallOutcome, JudgeSpec, Network, Price, Secret, Unusable};
pub use record::{Allowance, Claim, Leave, MemoryRecord, Record};
pub use registry::{ErrorSink, JudgeRegistry};
pub use tally::Tally;

use crate::judge::{Form, Usage, Verdict};
use crate::judge::{Query, Request};
use crate::reason::{Code, Reason};
use admission::{Barred, Gate, Wish, with_last};
use budget::today;
use call_error::Fault;
use record::held;
use request::Question;
use single_flight::Flights;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use transport::{Broken, Reply, Wire};

/// What the keys of judgments begin with. It changes when the meaning of a judgment does.
const PROTOCOL: &[u8] = b"plaudit judgment 1";

/// A key of so many letters is part of no answer by chance.
const LONG_KEY: usize = 16;

/// One judge, and all that is known of it.
struct Judge {
    spec: JudgeSpec,
    gate: Gate,
    wire: Box<dyn Wire>,
    flights: Flights,
    /// Who alone is told what it says of its failures.
    error_sink: Option<ErrorSink>,
    /// Set when what is known from before has been read.
    begun: OnceCell<()>,
}

/// Asks judges. It starts nothing of its own: all work is done by the futures of [`JudgeClient::ask`], so that dropping one
/// closes its socket and frees what it held.
pub struct JudgeClient {
    judges: Vec<Arc<Judge>>,
    record: Arc<dyn Record>,
    network: Network,
}

/// How far a question has come; what remains of it when its deadline passes.
#[derive(Debug)]
struct Progress {
    form: Form,
    key: Option<[u8; 32]>,
    cached: bool,
    latency: Option<Duration>,
    usage: Option<Usage>,
    /// How often it was sent, waits that the judge asked for aside.
    tries: u32,
    /// How often it was sent in all.
    sends: u32,
    /// How it failed the last time.
    last: Option<Reason>,
}

/// The key of a judgment: what was asked of whom, and nothing about when or where.
fn key(identity: &str, request: &Request) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for part in [PROTOCOL, identity.as_bytes(), request.path.as_bytes(), &request.body] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}

const FORMS: [(Form, &str); 3] = [(Form::Logprobs, "logprobs"), (Form::Json, "json"), (Form::Tag, "tag")];

impl Judge {
    fn new(spec: JudgeSpec, wire: Box<dyn Wire>) -> Self {
        let gate = Gate::new(&spec);
        Self { spec, gate, wire, flights: Flights::default(), error_sink: None, begun: OnceCell::new() }
    }

    /// A reply without the key that it was asked with, which some servers repeat.
    fn without_key(&self, mut reply: Reply) -> Reply {
        // A short key may stand in a good answer by chance, and that is read before it is shown.
        let shown = !(200..300).contains(&reply.status);
        let hide = |key: &&Secret| shown || key.reveal().len() >= LONG_KEY;
        if let Some(key) = self.spec.api_key.as_ref().filter(hide)
            && let Cow::Owned(hidden) = key.hidden(&String::from_utf8_lossy(&reply.body))
        {
            reply.body = hidden.into_bytes();
        }
        reply
    }

    /// A failure as everybody may know it: without the judge's own words, where only a error_sink is told them.
    fn discreet(&self, status: u16, mut fault: Fault) -> Fault {
        if let Some(error_sink) = self.error_sink.as_ref().filter(|_| !(200..300).contains(&status)) {
            error_sink(&self.spec.name, &fault.reason);
            fault.reason.message = call_error::sentence(status, b"").into();
        }
        fault
    }

    /// A call that broke on its way. Where it went to is said as well: to the error_sink, where only that is to know.
    fn broken(&self, endpoint: usize, broken: Broken) -> Fault {
        let mut fault = Fault::broken(broken);
        let place = self.spec.base_urls.get(endpoint).map_or("", String::as_str);
        let located = format!("{} It was asked at {place}.", fault.reason.message);
        let located = Reason::new(fault.reason.code, located);
        match &self.error_sink {
            Some(error_sink) => error_sink(&self.spec.name, &located),
            None => fault.reason = located,
        }
        fault
    }

    /// A reason as everybody may know it: without the key, and without the place of a journal that cannot be written.
    fn public(&self, mut reason: Reason) -> Reason {
        if let Some(key) = &self.spec.api_key {
            reason.message = key.hidden(&reason.message).into_owned().into();
        }
        let Some(error_sink) = &self.error_sink else { return reason };
        error_sink(&self.spec.name, &reason);
        match reason.code.as_str().starts_with("engine.") {
            true => reason.code.into(),
            false => reason,
        }
    }

    /// What has been counted so far.
    fn tally(&self) -> Tally {
        let state = held(&self.gate.state);
        let openings = state.endpoints.iter().map(|endpoint| endpoint.openings).sum();
        Tally { limit: state.limit.calls(), openings, ..state.tally.clone() }
    }

    /// Reads what is known of the judge from before: the forms that it takes, and what was spent on it.
    async fn begin(&self, record: &dyn Record) -> Result<(), Reason> {
        let read = || async {
            let (calls, cost) = record.spent(&self.purse()).await?;
            let settled = record.recall(&self.memory()).await?;
            let mut state = held(&self.gate.state);
            state.budget.begin(calls, cost);
            for word in settled.iter().flat_map(|settled| settled.split(' ')) {
                for (form, name) in FORMS {
                    match word.strip_suffix(name) {
                        Some("+") => drop(state.works.insert(form)),
                        Some("-") => drop(state.refused.insert(form)),
                        _ => {}
                    }
                }
            }
            Ok::<(), Reason>(())
        };
        self.begun.get_or_try_init(read).await?;
        Ok(())
    }

    /// The name under which what is spent on it is written down: a new one each day, where its budget is a day's.
    fn purse(&self) -> String {
        match self.spec.budget_daily {
            true => format!("{}@{}", self.spec.name, today()),
            false => self.spec.name.clone(),
        }
    }

    /// The name under which the forms that it takes are remembered.
    fn memory(&self) -> String {
        format!("form:{}", self.spec.identity)
    }

    /// Writes down which forms it takes, so that a run that is resumed asks in the same ones.
    fn remember_forms(&self, record: &dyn Record) {
        let state = held(&self.gate.state);
        let sign = |form| match (state.works.contains(&form), state.refused.contains(&form)) {
            (true, _) => Some('+'),
            (_, true) => Some('-'),
            _ => None,
        };
        let words: Vec<String> =
            FORMS.iter().filter_map(|(form, name)| sign(*form).map(|sign| format!("{sign}{name}"))).collect();
        drop(state);
        record.remember(&self.memory(), &words.join(" "));
    }

    /// The best form that the question has and the judge takes, and whether there is a worse one.
    fn form(&self, query: &dyn Query) -> Result<(Form, bool), Reason> {
        let state = held(&self.gate.state);
        let forms: Vec<Form> =
            query.forms().iter().copied().filter(|form| self.spec.forms.contains(form)).collect();
        let open = forms.iter().position(|form| !state.refused.contains(form));
        match (open, forms.last()) {
            (Some(at), _) => Ok((forms[at], at + 1 < forms.len())),
            (None, Some(last)) => Ok((*last, false)),
            (None, None) => Err(Reason::new(
                Code::JudgeClientError,
                "The question has no form that the judge may be asked in.",
            )),
        }
    }

    fn refuses(&self, form: Form) -> bool {
        held(&self.gate.state).refused.contains(&form)
    }
}

impl JudgeClient {
    /// A caller of these judges, which are then known by their places.
    pub fn new(judges: Vec<JudgeSpec>, record: Arc<dyn Record>, network: Network) -> Result<Self, Unusable> {
        Self::of(judges, record, network, &JudgeRegistry::default())
    }

    /// The same, where a judge that another caller of the registry asks already is that one, with all its limits.
    pub fn of(
        judges: Vec<JudgeSpec>,
        record: Arc<dyn Record>,
        network: Network,
        registry: &JudgeRegistry,
    ) -> Result<Self, Unusable> {
        let judges = judges.into_iter().map(|spec| registry.judge(spec)).collect::<Result<_, _>>()?;
        Ok(Self { judges, record, network })
    }

    /// A caller of one judge over a wire of the test's own.
    #[cfg(test)]
    fn over(spec: JudgeSpec, wire: Box<dyn Wire>, record: Arc<dyn Record>) -> Self {
        let judges = vec![Arc::new(Judge::new(spec, wire))];
        Self { judges, record, network: Network::Live }
    }

    /// Asks a judge, and comes back by the deadline, whatever the judge does.
    pub async fn ask(&self, judge: usize, query: &dyn Query, deadline: Instant) -> CallOutcome {
        let mut progress = Progress {
            form: query.forms().first().copied().unwrap_or(Form::Tag),
            key: None,
            cached: false,
            latency: None,
            usage: None,
            tries: 0,
            sends: 0,
            last: None,
        };
        let verdict = match (query.local(), self.judges.get(judge)) {
            (Some(local), _) => local,
            (None, None) => Err(Reason::new(Code::JudgeClientError, "There is no such judge.")),
            (None, Some(judge)) => {
                let chain = self.chain(judge, query, deadline, &mut progress);
                let verdict = tokio::time::timeout_at(deadline, chain).await;
                let verdict = verdict.unwrap_or_else(|_| Err(Code::JudgeDeadline.into()));
                verdict.map_err(|reason| {
                    let last = progress.last.take().filter(|_| reason.code == Code::JudgeDeadline);
                    let trouble = || judge.gate.trouble().filter(|_| reason.code == Code::JudgeDeadline);
                    judge.public(with_last(reason.clone(), last.or_else(trouble).as_ref()))
                })
            }
        };
        CallOutcome {
            verdict,
            key: progress.key,
            form: progress.form,
            attempts: progress.sends,
            cached: progress.cached,
            latency: progress.latency,
            usage: progress.usage,
        }
    }

    /// Whether the record answers a question as it would be asked first.
    pub async fn is_known(&self, judge: usize, query: &dyn Query) -> bool {
        let Some(judge) = self.judges.get(judge) else { return false };
        let known = async {
            judge.begin(self.record.as_ref()).await?;
            let request = query.request(judge.form(query)?.0, 0)?;
            self.record.get(&key(&judge.spec.identity, &request)).await
        };
        query.local().is_some() || known.await.is_ok_and(|judgment| judgment.is_some())
    }

    /// What has been counted so far, judge by judge.
    pub fn tallies(&self) -> Vec<Tally> {
        self.judges.iter().map(|judge| judge.tally()).collect()
    }

    /// Sends nothing more. What waits fails as stopped; what is in flight may still land.
    pub fn stop(&self) {
        for judge in &self.judges {
            judge.gate.close(Code::Stopped.into());
        }
    }

    /// Buys judgments until one can be read. An answer without a verdict is kept as well and followed by another
    /// attempt, so that a second run finds the same answers in the same order and buys none.
    async fn chain(
        &self,
        judge: &Judge,
        query: &dyn Query,
        deadline: Instant,
        progress: &mut Progress,
    ) -> Result<Verdict, Reason> {
        judge.begin(self.record.as_ref()).await?;
        let mut turn = 0;
        loop {
            let (form, has_next) = judge.form(query)?;
            let request = query.request(form, turn)?;
            let key = key(&judge.spec.identity, &request);
            let wish = Wish { form, has_next, bytes: request.body.len(), deadline, hedge: None };
            let question = Question::new((query, turn), &request, key, wish, judge.purse());
            (progress.form, progress.key) = (form, Some(key));
            let body = match self.buy(judge, &question, progress).await {
                Ok(body) => body,
                Err(Barred::Failed(reason)) => return Err(reason),
                Err(Barred::Form) => {
                    turn = 0;
                    continue;
                }
            };
            let reason = match query.read(form, turn, &body) {
                Ok(verdict) => return Ok(verdict),
                Err(reason) => reason,
            };
            if reason.code == Code::JudgeNoLogprobs && has_next && self.moves_on(judge, form) {
                turn = 0;
                continue;
            }
            held(&judge.gate.state).tally.misread(reason.code);
            if !self.goes_on(judge, &question, progress).await? {
                return Err(reason);
            }
            turn += 1;
        }
    }

    /// Gives a form up that the judge has not been seen to take.
    fn moves_on(&self, judge: &Judge, form: Form) -> bool {
        let mut state = held(&judge.gate.state);
        if state.works.contains(&form) {
            return false;
        }
        state.refused.insert(form);
        drop(state);
        judge.remember_forms(self.record.as_ref());
        true
    }

    /// Whether another attempt follows an answer without a verdict. That none followed is written down, because the
    /// next run, which has retries to spare, would otherwise buy one.
    async fn goes_on(
        &self,
        judge: &Judge,
        question: &Question<'_>,
        progress: &Progress,
    ) -> Result<bool, Reason> {
        if question.turn + 1 >= judge.spec.attempts {
            return Ok(false);
        }
        let next = question.query.request(question.wish.form, question.turn + 1)?;
        if self.record.get(&key(&judge.spec.identity, &next)).await?.is_some() {
            return Ok(true);
        }
        let mark = format!("end:{}", blake3::Hash::from_bytes(question.key).to_hex());
        if self.network == Network::Replay || self.record.recall(&mark).await?.is_some() {
            return Ok(false);
        }
        if progress.tries >= judge.spec.attempts || !judge.gate.may_retry(true) {
            self.record.remember(&mark, "1");
            return Ok(false);
        }
        Ok(true)
    }
}
