//! Streaming pipeline of `score` and `rank`, in constant memory.
//!
//! A thread reads blocks; the engine's threads parse them, score batches of groups and render the results, many at once;
//! this thread does what must be done in order: it numbers rollouts, buffers groups, merges statistics and writes. Between
//! the stages stand queues of bounded length. The results do not depend on the number of threads.

mod bad_lines;
mod group_buffer;
mod in_flight;
mod recent_ids;
mod reorder;

pub(crate) use bad_lines::BadLines;

use crate::console::Console;
use crate::error::CliError;
use crate::files::{Entry, Parsed, ParsedBlock, ReadBlock, Source, line};
use crate::interrupt::Interrupt;
use crate::rollout_copy::RolloutCopy;
use crate::summary::whole;
use group_buffer::{BufferPolicy, GroupBuffer, Placement};
use in_flight::{InFlight, Rendered, ScoredBatch};
use plaudit::abort::{self, AbortAfter};
use plaudit::engine::Engine;
use plaudit::error::RunError;
use plaudit::group::{self, Key};
use plaudit::input::{Fields, InputError};
use plaudit::reason::Code;
use plaudit::report::Report;
use plaudit::rollout::Rollout;
use plaudit::statistics::Statistics;
use plaudit::statistics::breakdown::Breakdown;
use recent_ids::{GENERATION, RecentIds};
use reorder::ReorderBuffer;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// The most text that groups hold while they wait for members.
const MAX_HELD: usize = 64 << 20;
/// The most results that wait for earlier ones.
const MAX_WAITING: usize = 32 << 20;
/// A batch is scored when it has so many rollouts or bytes, whatever the number of threads, so that the statistics
/// are the same to the last bit.
const BATCH: (usize, usize) = (1024, 2 << 20);
/// The same where judges are asked: the first calls go out soon, and while one batch is made ready others are asked about.
const JUDGED_BATCH: (usize, usize) = (256, 2 << 20);

/// How often the progress bar moves, and signals are looked for, while something is waited for.
const TICK: Duration = Duration::from_millis(200);

/// Renders a batch on one of the engine's threads: one piece a rollout, in their order.
pub(crate) type Renderer<P> =
    Arc<dyn Fn(&[Rollout<'static>], &Report) -> Result<Vec<P>, CliError> + Send + Sync>;

/// Where results go.
pub(crate) trait Sink {
    /// What is written for one rollout.
    type Piece: Send + 'static;

    /// Makes the pieces.
    fn renderer(&self) -> Renderer<Self::Piece>;

    /// About how many bytes a piece takes.
    fn bytes(piece: &Self::Piece) -> usize;

    /// Writes the next piece in the order of the input.
    fn write(&mut self, piece: Self::Piece) -> Result<(), CliError>;

    /// Completes the output, and may say something about it.
    fn finish(self) -> Result<Option<String>, CliError>
    where
        Self: Sized,
    {
        Ok(None)
    }
}

/// Rollouts on their way, with their places in the input.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    places: Vec<u64>,
    rollouts: Vec<Rollout<'static>>,
    bytes: usize,
}

impl Batch {
    fn push(&mut self, member: Member) {
        self.bytes += member.bytes;
        self.places.push(member.place);
        self.rollouts.push(member.rollout);
    }

    fn is_full(&self, judged: bool) -> bool {
        let most = if judged { JUDGED_BATCH } else { BATCH };
        self.rollouts.len() >= most.0 || self.bytes >= most.1
    }
}

#[derive(Debug)]
struct Member {
    place: u64,
    bytes: usize,
    rollout: Rollout<'static>,
}

/// What is known when a run is done.
pub(crate) struct Done {
    pub(crate) statistics: Statistics,
    /// The same by a field, where that was asked for.
    pub(crate) breakdown: Option<Breakdown>,
    pub(crate) bad_lines: BadLines,
    /// How many bytes were read.
    pub(crate) bytes: u64,
    /// Why nothing could be scored, where that is one fault of the data or the recipe.
    pub(crate) fault: Option<String>,
}

/// One run over one source.
pub(crate) struct Stream<'r, S: Sink> {
    engine: &'r Arc<Engine>,
    sink: &'r mut S,
    console: &'r Console,
    bad_lines: BadLines,
    ids: RecentIds,
    buffer: GroupBuffer<Member>,
    /// What is to be scored next.
    batch: Batch,
    /// What is being scored.
    in_flight: InFlight<S::Piece>,
    /// Where every rollout is copied to.
    pub(crate) copy: Option<&'r mut RolloutCopy>,
    /// Whether a signal has stopped the run.
    interrupt: &'r Arc<Interrupt>,
    /// Members that arrived after their group had closed.
    late: Batch,
    reorder: ReorderBuffer<S::Piece>,
    statistics: Statistics,
    /// Statistics by a field, where they are wanted.
    pub(crate) breakdown: Option<Breakdown>,
    /// How many rollouts have been read.
    read: u64,
    /// How many bytes of the source.
    position: u64,
    /// The size of all groups so far, where they must be equal.
    size: Option<f64>,
    /// How many rollouts have been submitted.
    submitted: u64,
    /// Whether anything can be scored must be known after so many rollouts; none once it is known.
    undecided: Option<u64>,
    /// The other fields of the first line.
    names: Vec<String>,
}

impl<'r, S: Sink> Stream<'r, S> {
    /// A run that has not begun. A group is held until `patience` rollouts have been read since its last member.
    pub(crate) fn new(
        engine: &'r Arc<Engine>,
        sink: &'r mut S,
        console: &'r Console,
        patience: u64,
        interrupt: &'r Arc<Interrupt>,
    ) -> Self {
        let policy = BufferPolicy {
            rollouts: patience,
            bytes: MAX_HELD,
            refuse_late: engine.plan().compares_groups(),
            memory: GENERATION,
        };
        let in_flight = InFlight::new(engine, sink.renderer());
        Self {
            engine,
            sink,
            console,
            bad_lines: BadLines::default(),
            ids: RecentIds::new(GENERATION),
            buffer: GroupBuffer::new(policy),
            batch: Batch::default(),
            in_flight,
            copy: None,
            interrupt,
            late: Batch::default(),
            reorder: ReorderBuffer::new(),
            statistics: Statistics::of(engine.plan()),
            breakdown: None,
            read: 0,
            position: 0,
            size: None,
            submitted: 0,
            undecided: None,
            names: Vec::new(),
        }
    }

    /// Ends the run where so many rollouts show that nothing can be scored.
    pub(crate) fn abort_after(&mut self, rollouts: AbortAfter) {
        self.undecided = match rollouts {
            AbortAfter::Steps(rollouts) => Some(rollouts.into()),
            AbortAfter::Never => None,
        };
    }

    /// Reads all of the source and writes all results.
    pub(crate) fn run(mut self, source: Source, fields: Fields) -> Result<Done, CliError> {
        let done = self.read_all(source, fields);
        if done.is_err() {
            self.engine.stop();
            // Calls in flight are paid for: they land in the journal before the run ends.
            while self.oldest().is_some() {}
        }
        done?;
        let fault = self.fault();
        let Self { statistics, breakdown, bad_lines, position, .. } = self;
        Ok(Done { statistics, breakdown, bad_lines, bytes: position, fault })
    }

    fn read_all(&mut self, source: Source, fields: Fields) -> Result<(), CliError> {
        let (noun, label) = (source.noun, source.label.clone());
        let blocks = source.read_ahead(self.engine.pool(), fields)?;
        let mut warned = BTreeSet::new();
        while let Some(block) = self.await_next(&blocks)? {
            let ReadBlock { parsed, position, lines } = block?;
            let ParsedBlock { entries, warnings } =
                self.await_next(&parsed)?.ok_or(CliError::Run(RunError::Panicked))?;
            for warning in warnings.into_iter().filter(|warning| warned.insert(warning.clone())) {
                self.console.warning(&warning);
            }
            for entry in entries {
                self.add_line(noun, entry)?;
            }
            (self.position, self.bad_lines.lines) = (position, lines);
            self.progress();
        }
        // All of it is read, so that its results cost little more.
        self.undecided = None;
        self.buffer.end();
        while let Some(group) = self.buffer.closed() {
            self.schedule(group)?;
        }
        self.score()?;
        while let Some(scored) = self.oldest() {
            self.finish_scored(scored)?;
        }
        self.write()?;
        self.statistics.reconcile(self.read)?;
        if self.read == 0 && self.bad_lines.count == 0 {
            self.console.warning(&format!("{label} holds no rollouts"));
        }
        Ok(())
    }

    /// What comes next from another thread; nothing once that has ended. A signal ends the wait.
    fn await_next<T>(&self, from: &Receiver<T>) -> Result<Option<T>, CliError> {
        loop {
            self.interrupt.check()?;
            match from.recv_timeout(TICK) {
                Ok(next) => return Ok(Some(next)),
                Err(RecvTimeoutError::Timeout) => self.progress(),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    /// Adds one line: numbers its rollouts and buffers each with its group.
    fn add_line(&mut self, noun: &str, entry: Entry) -> Result<(), CliError> {
        let Parsed { rollouts, group, .. } =
            match entry.rollouts.and_then(|parsed| self.refuse_known_ids(parsed)) {
                Ok(parsed) => parsed,
                Err(error) => {
                    self.bad_lines.bad(self.console, noun, entry.number, &error);
                    return Ok(());
                }
            };
        for rollout in rollouts {
            if self.read == 0 {
                self.names = rollout.extra.keys().cloned().collect();
            }
            if let Some(copy) = &mut self.copy {
                let line = line(&rollout.to_value(), copy.name())?;
                copy.write_all(&line).map_err(|error| CliError::writing(copy.name(), error))?;
            }
            let member = Member { place: self.read, bytes: rollout.bytes(), rollout };
            self.read += 1;
            self.place(group, member)?;
        }
        Ok(())
    }

    /// A line with an id that was used before is an error; its other ids are then not used.
    fn refuse_known_ids(&mut self, parsed: Parsed) -> Result<Parsed, InputError> {
        if let Some(at) = parsed.ids.iter().position(|id| self.ids.contains(*id)) {
            let id = parsed.rollouts.ids().nth(at).map_or_else(String::new, Cow::into_owned);
            return Err(InputError::new("input.duplicate_id", format!("the id {id:?} was used before")));
        }
        parsed.ids.iter().for_each(|id| self.ids.insert(*id));
        Ok(parsed)
    }

    fn place(&mut self, group: Option<u64>, member: Member) -> Result<(), CliError> {
        let Some(group) = group else {
            self.buffer.pass();
            return self.schedule(vec![member]);
        };
        let bytes = member.bytes;
        match self.buffer.take(group, member, bytes) {
            Placement::Buffered => {}
            Placement::Reopened => self.statistics.groups.split += 1,
            Placement::Late(member) => {
                self.statistics.groups.split += 1;
                self.late.push(member);
                if self.late.is_full(false) {
                    self.score()?;
                }
            }
        }
        while let Some(group) = self.buffer.closed() {
            self.schedule(group)?;
        }
        Ok(())
    }

    /// Puts a group that has closed into the batch, and scores the batch when it is large enough.
    fn schedule(&mut self, group: Vec<Member>) -> Result<(), CliError> {
        group.into_iter().for_each(|member| self.batch.push(member));
        if !self.batch.is_full(!self.engine.plan().judges.is_empty()) {
            return Ok(());
        }
        self.score()?;
        // One group that never ends must not make all later results wait.
        while self.reorder.bytes() > MAX_WAITING && self.buffer.close_first() {
            while let Some(group) = self.buffer.closed() {
                group.into_iter().for_each(|member| self.batch.push(member));
            }
            self.score()?;
        }
        Ok(())
    }

    /// Scores what is scheduled, and writes every result whose turn it is.
    fn score(&mut self) -> Result<(), CliError> {
        let batch = std::mem::take(&mut self.batch);
        if !batch.rollouts.is_empty() {
            self.submitted += batch.rollouts.len() as u64;
            let keep = self.breakdown.is_some() || self.engine.plan().groups.same_size;
            self.in_flight.submit(self.interrupt, batch, keep);
            if self.in_flight.is_full()
                && let Some(scored) = self.oldest()
            {
                self.finish_scored(scored)?;
            }
            while self.undecided.is_some_and(|most| self.submitted >= most)
                && let Some(scored) = self.oldest()
            {
                self.finish_scored(scored)?;
            }
        }
        let late = std::mem::take(&mut self.late);
        if !late.rollouts.is_empty() {
            let report = self.engine.refuse(&late.rollouts, Code::GroupSplit);
            let pieces = self.in_flight.render(&late.rollouts, &report)?;
            self.statistics.merge(&report.statistics);
            if let Some(breakdown) = &mut self.breakdown {
                breakdown.observe(&report, &late.rollouts);
            }
            self.put(&late.places, pieces);
        }
        self.write()
    }

    /// The oldest batch that is under way, once it is done; a person sees how it comes along.
    fn oldest(&mut self) -> Option<ScoredBatch<S::Piece>> {
        let (console, engine, position, read) = (self.console, self.engine, self.position, self.read);
        self.in_flight.oldest(|| console.progress(position, read, || calls(engine)))
    }

    fn progress(&self) {
        self.console.progress(self.position, self.read, || calls(self.engine));
    }

    fn finish_scored(&mut self, scored: ScoredBatch<S::Piece>) -> Result<(), CliError> {
        self.interrupt.check()?;
        let Rendered { pieces, statistics, detail } = scored.rendered?;
        if let Some((rollouts, report)) = &detail {
            self.refuse_uneven(&scored.places, rollouts, report)?;
            if let Some(breakdown) = &mut self.breakdown {
                breakdown.observe(report, rollouts);
            }
        }
        self.statistics.merge(&statistics);
        self.put(&scored.places, pieces);
        self.decide()
    }

    /// Ends the run where the first rollouts show that nothing can be scored.
    fn decide(&mut self) -> Result<(), CliError> {
        let Some(most) = self.undecided else { return Ok(()) };
        let is_long = self.statistics.outcomes.all() >= most;
        if is_long || self.statistics.outcomes.has_scored() {
            self.undecided = None;
        }
        match self.fault().filter(|_| is_long) {
            Some(fault) => {
                let read = whole(self.statistics.outcomes.all());
                let message = format!(
                    "{fault}. The run ends after {read} rollouts; --abort-after never goes on all the same"
                );
                Err(CliError::NothingScored(message))
            }
            None => Ok(()),
        }
    }

    /// Why nothing could be scored so far, where that is one fault of the data or the recipe.
    fn fault(&self) -> Option<String> {
        let abort = abort::hopeless(&self.statistics.outcomes)?;
        let advice = abort.advice(self.names.iter().map(String::as_str), "--field reference=COLUMN");
        Some(match advice {
            Some(advice) => format!("{}; {advice}", abort.to_string().trim_end_matches('.')),
            None => abort.to_string().trim_end_matches('.').to_owned(),
        })
    }

    fn put(&mut self, places: &[u64], pieces: Vec<S::Piece>) {
        for (place, piece) in places.iter().zip(pieces) {
            let bytes = S::bytes(&piece);
            self.reorder.put(*place, piece, bytes);
        }
    }

    /// Writes every result whose turn it is.
    fn write(&mut self) -> Result<(), CliError> {
        while let Some(piece) = self.reorder.next(S::bytes) {
            self.sink.write(piece)?;
        }
        Ok(())
    }

    /// The engine compares the groups of one batch; here a batch is compared with those before.
    fn refuse_uneven(
        &mut self,
        places: &[u64],
        rollouts: &[Rollout<'static>],
        report: &Report,
    ) -> Result<(), RunError> {
        if !self.engine.plan().groups.same_size {
            return Ok(());
        }
        let size = report.statistics.groups.size.moments.max;
        let usual = *self.size.get_or_insert(size);
        if usual == size {
            return Ok(());
        }
        let name = |place: usize| {
            let key = Key::of(&rollouts[place]).map(|key| key.label().into_owned());
            key.unwrap_or_else(|| format!("rollout {}", places[place] + 1))
        };
        let groups = group::gather(rollouts);
        let odd = groups.iter().map(|group| (name(group.members[0]), group.members.len())).collect();
        Err(RunError::UnevenGroups { usual: usual as usize, odd })
    }
}

/// How many calls the judges have been sent, where there are judges.
fn calls(engine: &Engine) -> Option<u64> {
    let judged = !engine.plan().judges.is_empty();
    judged.then(|| engine.judge_usage().iter().map(|usage| usage.calls).sum())
}
