//! Streaming pipeline of `score` and `rank`: read, buffer groups, score in batches, write in input order, in constant
//! memory.

mod bad_lines;
mod group_buffer;
mod in_flight;
mod recent_ids;
mod reorder;

pub(crate) use bad_lines::BadLines;

use crate::console::Console;
use crate::error::CliError;
use crate::files::{Entry, Parsed, Source, line};
use crate::interrupt::Interrupt;
use crate::rollout_copy::RolloutCopy;
use group_buffer::{BufferPolicy, GroupBuffer, Placement};
use in_flight::{InFlight, ScoredBatch};
use plaudit::engine::Engine;
use plaudit::error::RunError;
use plaudit::exec::Pool;
use plaudit::group::{self, Key};
use plaudit::input::{Fields, InputError};
use plaudit::reason::Code;
use plaudit::report::Report;
use plaudit::rollout::Rollout;
use plaudit::statistics::Statistics;
use plaudit::statistics::breakdown::Breakdown;
use recent_ids::{GENERATION, RecentIds};
use reorder::ReorderBuffer;
use std::io::Write as _;
use std::sync::Arc;

/// The most text that groups hold while they wait for members.
const MOST_HELD: usize = 64 << 20;
/// The most results that wait for earlier ones.
const MOST_WAITING: usize = 32 << 20;
/// A batch is scored when it has so many rollouts or bytes, whatever the number of threads, so that the statistics
/// are the same to the last bit.
const BATCH: (usize, usize) = (1024, 2 << 20);
/// The same where judges are asked: the first calls go out soon, and while one batch is made ready others are asked about.
const JUDGED_BATCH: (usize, usize) = (256, 2 << 20);

/// Where results go.
pub(crate) trait Sink: Sync {
    /// What is written for one rollout.
    type Piece: Send;

    /// One piece a rollout, in their order.
    fn render(
        &self,
        pool: &Pool,
        rollouts: &[Rollout<'_>],
        report: &Report,
    ) -> Result<Vec<Self::Piece>, CliError>;

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
    in_flight: InFlight,
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
            bytes: MOST_HELD,
            refuse_late: engine.plan().compares_groups(),
            memory: GENERATION,
        };
        Self {
            engine,
            sink,
            console,
            bad_lines: BadLines::default(),
            ids: RecentIds::new(GENERATION),
            buffer: GroupBuffer::new(policy),
            batch: Batch::default(),
            in_flight: InFlight::new(),
            copy: None,
            interrupt,
            late: Batch::default(),
            reorder: ReorderBuffer::new(),
            statistics: Statistics::of(engine.plan()),
            breakdown: None,
            read: 0,
            position: 0,
            size: None,
        }
    }

    /// Reads all of the source and writes all results.
    pub(crate) fn run(mut self, source: &mut Source, fields: &Fields) -> Result<Done, CliError> {
        let done = self.read_all(source, fields);
        if done.is_err() {
            self.engine.stop();
            // Calls in flight are paid for: they land in the journal before the run ends.
            while self.oldest().is_some() {}
        }
        done?;
        Ok(Done { statistics: self.statistics, breakdown: self.breakdown, bad_lines: self.bad_lines })
    }

    fn read_all(&mut self, source: &mut Source, fields: &Fields) -> Result<(), CliError> {
        while let Some(block) = source.next(self.engine.pool(), fields, self.console)? {
            self.interrupt.check()?;
            for entry in block {
                self.add_line(source.noun, entry)?;
            }
            self.position = source.position;
            self.progress();
        }
        self.bad_lines.lines = source.lines;
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
            self.console.warning(&format!("{} holds no rollouts", source.label));
        }
        Ok(())
    }

    /// Adds one line: numbers its rollouts and buffers each with its group.
    fn add_line(&mut self, noun: &str, entry: Entry) -> Result<(), CliError> {
        let Parsed { rollouts, group } = match entry.rollouts.and_then(|parsed| self.refuse_known_ids(parsed))
        {
            Ok(parsed) => parsed,
            Err(error) => {
                self.bad_lines.bad(self.console, noun, entry.number, &error);
                return Ok(());
            }
        };
        for rollout in rollouts {
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
        let hash = |id: &str| rapidhash::v3::rapidhash_v3(id.as_bytes());
        if let Some(id) = parsed.rollouts.ids().find(|id| self.ids.contains(hash(id))) {
            return Err(InputError::new("input.duplicate_id", format!("the id {id:?} was used before")));
        }
        for id in parsed.rollouts.ids() {
            self.ids.insert(hash(&id));
        }
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
        while self.reorder.bytes() > MOST_WAITING && self.buffer.close_first() {
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
            self.in_flight.submit(self.engine, self.interrupt, batch);
            if self.in_flight.is_full()
                && let Some(scored) = self.oldest()
            {
                self.finish_scored(scored)?;
            }
        }
        let late = std::mem::take(&mut self.late);
        if !late.rollouts.is_empty() {
            let report = self.engine.refuse(&late.rollouts, Code::GroupSplit);
            self.finish(&late.places, &late.rollouts, &report)?;
        }
        self.write()
    }

    /// The oldest batch that is under way, once it is done; a person sees how it comes along.
    fn oldest(&mut self) -> Option<ScoredBatch> {
        let (console, engine, position, read) = (self.console, self.engine, self.position, self.read);
        self.in_flight.oldest(|| console.progress(position, read, || calls(engine)))
    }

    fn progress(&self) {
        self.console.progress(self.position, self.read, || calls(self.engine));
    }

    fn finish_scored(&mut self, scored: ScoredBatch) -> Result<(), CliError> {
        self.interrupt.check()?;
        let report = scored.report?;
        self.refuse_uneven(&scored.places, &scored.rollouts, &report)?;
        self.finish(&scored.places, &scored.rollouts, &report)
    }

    /// Writes every result whose turn it is.
    fn write(&mut self) -> Result<(), CliError> {
        while let Some(piece) = self.reorder.next(S::bytes) {
            self.sink.write(piece)?;
        }
        Ok(())
    }

    fn finish(
        &mut self,
        places: &[u64],
        rollouts: &[Rollout<'static>],
        report: &Report,
    ) -> Result<(), CliError> {
        self.statistics.merge(&report.statistics);
        if let Some(breakdown) = &mut self.breakdown {
            breakdown.observe(report, rollouts);
        }
        let pieces = self.sink.render(self.engine.pool(), rollouts, report)?;
        for (place, piece) in places.iter().zip(pieces) {
            let bytes = S::bytes(&piece);
            self.reorder.put(*place, piece, bytes);
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
    judged.then(|| engine.tallies().iter().map(|tally| tally.calls).sum())
}
