//! How does a file of any size become results in constant memory? Read, hold groups, score in batches, write in order.

mod hold;
mod lanes;
mod ledger;
mod memory;
mod queue;

pub(crate) use ledger::Ledger;

use crate::copy::RolloutCopy;
use crate::failure::Failure;
use crate::files::{Entry, Parsed, Source, line};
use crate::interrupt::Interrupt;
use crate::talk::Talk;
use hold::{Hold, Policy, Taken};
use lanes::{Lanes, Pushed, Scored};
use memory::{GENERATION, Memory};
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
use queue::Queue;
use std::io::Write as _;

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
    ) -> Result<Vec<Self::Piece>, Failure>;

    /// About how many bytes a piece takes.
    fn bytes(piece: &Self::Piece) -> usize;

    /// Writes the next piece in the order of the input.
    fn write(&mut self, piece: Self::Piece) -> Result<(), Failure>;
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
    pub(crate) ledger: Ledger,
}

/// One run over one source.
pub(crate) struct Stream<'r, S: Sink> {
    engine: &'r Engine,
    sink: &'r mut S,
    talk: &'r Talk,
    ledger: Ledger,
    ids: Memory,
    hold: Hold<Member>,
    /// What is to be scored next.
    batch: Batch,
    /// What is being scored.
    lanes: Lanes<'r>,
    /// Where every rollout is kept as it was read, where it is.
    copy: Option<&'r mut RolloutCopy>,
    /// Whether it has been told to stop.
    interrupt: &'r Interrupt,
    /// What came too late.
    late: Batch,
    queue: Queue<S::Piece>,
    statistics: Statistics,
    breakdown: Option<Breakdown>,
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
        engine: &'r Engine,
        sink: &'r mut S,
        talk: &'r Talk,
        patience: u64,
        interrupt: &'r Interrupt,
    ) -> Self {
        let policy = Policy {
            rollouts: patience,
            bytes: MOST_HELD,
            refuse_late: engine.plan().compares_groups(),
            memory: GENERATION,
        };
        Self {
            engine,
            sink,
            talk,
            ledger: Ledger::new(),
            ids: Memory::new(GENERATION),
            hold: Hold::new(policy),
            batch: Batch::default(),
            lanes: Lanes::new(engine, interrupt),
            copy: None,
            interrupt,
            late: Batch::default(),
            queue: Queue::new(),
            statistics: Statistics::of(engine.plan()),
            breakdown: None,
            read: 0,
            position: 0,
            size: None,
        }
    }

    /// The same run, which tells its statistics by a field as well.
    pub(crate) fn telling(mut self, breakdown: Option<Breakdown>) -> Self {
        self.breakdown = breakdown;
        self
    }

    /// The same run, which keeps every rollout that it reads as a line of `copy`.
    pub(crate) fn keeping(mut self, copy: Option<&'r mut RolloutCopy>) -> Self {
        self.copy = copy;
        self
    }

    /// Reads all of the source and writes all results.
    pub(crate) fn run(mut self, source: &mut Source, fields: &Fields) -> Result<Done, Failure> {
        let (engine, interrupt) = (self.engine, self.interrupt);
        let threads = self.lanes.threads();
        std::thread::scope(|scope| {
            threads.start(engine, interrupt, scope);
            let done = self.run_through(source, fields);
            if done.is_err() {
                // What is under way is of no use to anybody any more.
                engine.stop();
            }
            done
        })
    }

    fn run_through(mut self, source: &mut Source, fields: &Fields) -> Result<Done, Failure> {
        while let Some(block) = source.next(self.engine.pool(), fields, self.talk)? {
            self.interrupt.check()?;
            for entry in block {
                self.enter(source.noun(), entry)?;
            }
            self.position = source.position();
            self.progress();
        }
        self.ledger.lines = source.lines();
        self.hold.end();
        while let Some(group) = self.hold.closed() {
            self.schedule(group)?;
        }
        self.score()?;
        while let Some(scored) = self.oldest() {
            self.finish_scored(scored)?;
        }
        self.write()?;
        self.statistics.reconcile(self.read)?;
        if self.read == 0 && self.ledger.count() == 0 {
            self.talk.warning(&format!("{} holds no rollouts", source.label()));
        }
        Ok(Done { statistics: self.statistics, breakdown: self.breakdown, ledger: self.ledger })
    }

    /// Takes one line in: numbers its rollouts, and puts each with its group.
    fn enter(&mut self, noun: &str, entry: Entry) -> Result<(), Failure> {
        let Parsed { rollouts, group } = match entry.rollouts.and_then(|parsed| self.refuse_known_ids(parsed))
        {
            Ok(parsed) => parsed,
            Err(error) => {
                self.ledger.bad(self.talk, noun, entry.number, &error);
                return Ok(());
            }
        };
        for rollout in rollouts {
            if let Some(copy) = &mut self.copy {
                let line = line(&rollout.to_value(), copy.name())?;
                copy.write_all(&line).map_err(|error| Failure::writing(copy.name(), error))?;
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

    fn place(&mut self, group: Option<u64>, member: Member) -> Result<(), Failure> {
        let Some(group) = group else {
            self.hold.pass();
            return self.schedule(vec![member]);
        };
        let bytes = member.bytes;
        match self.hold.take(group, member, bytes) {
            Taken::Held => {}
            Taken::Again => self.statistics.groups.split += 1,
            Taken::Late(member) => {
                self.statistics.groups.split += 1;
                self.late.push(member);
                if self.late.is_full(false) {
                    self.score()?;
                }
            }
        }
        while let Some(group) = self.hold.closed() {
            self.schedule(group)?;
        }
        Ok(())
    }

    /// Puts a group that has closed into the batch, and scores the batch when it is large enough.
    fn schedule(&mut self, group: Vec<Member>) -> Result<(), Failure> {
        group.into_iter().for_each(|member| self.batch.push(member));
        if !self.batch.is_full(!self.engine.plan().judges.is_empty()) {
            return Ok(());
        }
        self.score()?;
        // One group that never ends must not make all later results wait.
        while self.queue.bytes() > MOST_WAITING && self.hold.close_first() {
            while let Some(group) = self.hold.closed() {
                group.into_iter().for_each(|member| self.batch.push(member));
            }
            self.score()?;
        }
        Ok(())
    }

    /// Scores what is scheduled, and writes every result whose turn it is.
    fn score(&mut self) -> Result<(), Failure> {
        let batch = std::mem::take(&mut self.batch);
        if !batch.rollouts.is_empty() {
            let scored = match self.lanes.push(batch) {
                Pushed::Done(scored) => Some(*scored),
                Pushed::Full => self.oldest(),
                Pushed::Taken => None,
            };
            scored.map_or(Ok(()), |scored| self.finish_scored(scored))?;
        }
        let late = std::mem::take(&mut self.late);
        if !late.rollouts.is_empty() {
            let report = self.engine.refuse(&late.rollouts, Code::GroupSplit);
            self.finish(&late, &report)?;
        }
        self.write()
    }

    /// The oldest batch that is under way, once it is done; a person sees how it comes along.
    fn oldest(&mut self) -> Option<Scored> {
        let (talk, engine, position, read) = (self.talk, self.engine, self.position, self.read);
        self.lanes.oldest(|| talk.progress(position, read, || calls(engine)))
    }

    fn progress(&self) {
        self.talk.progress(self.position, self.read, || calls(self.engine));
    }

    fn finish_scored(&mut self, (batch, report): Scored) -> Result<(), Failure> {
        self.interrupt.check()?;
        let report = report?;
        self.refuse_uneven(&batch, &report)?;
        self.finish(&batch, &report)
    }

    /// Writes every result whose turn it is.
    fn write(&mut self) -> Result<(), Failure> {
        while let Some(piece) = self.queue.next(S::bytes) {
            self.sink.write(piece)?;
        }
        Ok(())
    }

    fn finish(&mut self, batch: &Batch, report: &Report) -> Result<(), Failure> {
        self.statistics.merge(&report.statistics);
        if let Some(breakdown) = &mut self.breakdown {
            breakdown.observe(report, &batch.rollouts);
        }
        let pieces = self.sink.render(self.engine.pool(), &batch.rollouts, report)?;
        for (place, piece) in batch.places.iter().zip(pieces) {
            let bytes = S::bytes(&piece);
            self.queue.put(*place, piece, bytes);
        }
        Ok(())
    }

    /// The engine compares the groups of one batch; here a batch is compared with those before.
    fn refuse_uneven(&mut self, batch: &Batch, report: &Report) -> Result<(), RunError> {
        if !self.engine.plan().groups.same_size {
            return Ok(());
        }
        let size = report.statistics.groups.size.moments.max;
        let usual = *self.size.get_or_insert(size);
        if usual == size {
            return Ok(());
        }
        let name = |place: usize| {
            let key = Key::of(&batch.rollouts[place]).map(|key| key.label().into_owned());
            key.unwrap_or_else(|| format!("rollout {}", batch.places[place] + 1))
        };
        let groups = group::gather(&batch.rollouts);
        let odd = groups.iter().map(|group| (name(group.members[0]), group.members.len())).collect();
        Err(RunError::UnevenGroups { usual: usual as usize, odd })
    }
}

/// How many calls the judges have been sent, where there are judges.
fn calls(engine: &Engine) -> Option<u64> {
    let judged = !engine.plan().judges.is_empty();
    judged.then(|| engine.tallies().iter().map(|tally| tally.calls).sum())
}
