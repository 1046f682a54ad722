//! The executor: threads that run programs in boxes, fair between engines and between the groups of one.
//!
//! Tests are handed out one by one. The engine that has had the least time comes next, and so does the group of an engine; inside a
//! group the first program comes first, so that its tests run side by side and it is done soon. What is found does not depend on who was faster: the
//! tests that count are decided by their order.

use super::task::{CodeTask, OpenTests, StoredRun};
use super::{CodeReward, executor_queue::FairQueue};
use crate::exec::single_flight::SingleFlight;
use crate::exec::{CancelToken, lock};
use crate::reason::{Code, Reason};
use plaudit_box::{Isolation, Options, Sandbox, SandboxReport};
use plaudit_code::{Credit, Language, Languages, Program, TestResult, UNPACKED_LIMIT, Verdict};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// What an operator allows programs to run in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SandboxPolicy {
    /// The isolation; without it the best one that withstands the attacks.
    pub isolation: Option<Isolation>,
    /// Whether programs run without a sandbox where there is none. Every result says so.
    pub allow_none: bool,
}

/// The programs of one engine, whose they are, and how many of that owner run at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgramLane {
    pub(crate) id: u64,
    pub(crate) owner: u64,
    /// Without it three quarters of the slots, so that programs that sleep leave room for another owner's.
    pub(crate) most: Option<usize>,
}

/// How many slots one owner may have where others could come: three quarters, and all but one where there are few.
const fn share(slots: usize) -> usize {
    match slots * 3 / 4 {
        0 => 1,
        share => share,
    }
}

/// How many bytes of packed tests are open at once, all programs of all requests together; a program alone may have more. The others
/// wait for their turn with their tests packed, as they came, and so they are counted with the texts of a request.
const OPEN_TESTS: usize = 256 << 20;

/// Why programs cannot be run here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxError {
    /// No isolation withstands the attacks; what was tried.
    NoIsolation(String),
    /// The host has no tool for a language, or the sandbox cannot use it.
    NoLanguage(String),
}

/// What comes of a task: how the program was run, or why nothing is known of it.
pub(crate) type CodeResult = Result<StoredRun, Reason>;

/// A task under way.
struct CodeRun {
    task: CodeTask,
    lane: ProgramLane,
    language: Arc<Language>,
    /// How long its tests may take together on the clock, and how long it may wait for a slot between them.
    timeout: Duration,
    cancel: Option<CancelToken>,
    state: Mutex<RunState>,
}

struct RunState {
    program: Option<Result<Arc<Program>, TestResult>>,
    /// Its tests, from its first turn until it is done.
    tests: Option<Arc<OpenTests>>,
    clock: TestClock,
    results: Vec<Option<TestResult>>,
    /// The next test to be handed out.
    next: usize,
    /// How many tests count, as far as that is known: those after it are not needed.
    needed: usize,
    done: Option<Box<dyn FnOnce(CodeResult) + Send>>,
}

/// The time on the clock in which at least one test of a run was in its box, and how long the run waited between tests.
#[derive(Default)]
struct TestClock {
    running: usize,
    /// Since when tests run, or none does.
    since: Option<Instant>,
    used: Duration,
    /// The longest wait for a slot.
    waited: Duration,
}

/// Why a run goes no further.
#[derive(Debug, PartialEq, Eq)]
enum RunEnd {
    Stopped,
    /// It waited for a slot for longer than the group has time: the host is busy.
    Waited,
    /// Its own tests took the time.
    Spent,
}

impl TestClock {
    /// A step begins: a test, or what comes before the first.
    fn begin(&mut self, now: Instant) {
        if self.running == 0 {
            let waited = self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
            self.waited = self.waited.max(waited);
            self.since = Some(now);
        }
        self.running += 1;
    }

    fn end(&mut self, now: Instant) {
        self.used = self.used(now);
        self.since = Some(now);
        self.running = self.running.saturating_sub(1);
    }

    fn used(&self, now: Instant) -> Duration {
        let running = self.since.filter(|_| self.running > 0);
        self.used + running.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    fn ended(&self, timeout: Duration, now: Instant) -> Option<RunEnd> {
        if self.used(now) > timeout {
            return Some(RunEnd::Spent);
        }
        (self.waited > timeout).then_some(RunEnd::Waited)
    }
}

/// What a thread does next for a run.
enum CodeStep {
    Compile,
    Test(usize),
}

impl CodeRun {
    /// Takes the next step out, and says whether there are more to be handed out now.
    fn take(&self) -> (Option<CodeStep>, bool) {
        let mut state = lock(&self.state);
        if state.program.is_none() {
            state.clock.begin(Instant::now());
            // The tests follow when it is compiled.
            return (Some(CodeStep::Compile), false);
        }
        let test = state.next;
        if test >= state.needed || state.done.is_none() {
            return (None, false);
        }
        state.next += 1;
        state.clock.begin(Instant::now());
        (Some(CodeStep::Test(test)), state.next < state.needed)
    }

    /// Whether its next step reads packed tests, for which there must be room.
    fn opens(&self) -> bool {
        self.task.tests.is_packed() && lock(&self.state).program.is_none()
    }

    /// Why it goes no further, where that is so.
    fn ended(&self) -> Option<RunEnd> {
        if self.cancel.as_ref().is_some_and(CancelToken::is_cancelled) {
            return Some(RunEnd::Stopped);
        }
        lock(&self.state).clock.ended(self.timeout, Instant::now())
    }

    /// What a test gets that is not run, because those before it took all the time that there is.
    fn spent(&self) -> TestResult {
        let message =
            format!("the tests of this program took more than {} s together", self.timeout.as_secs_f64());
        TestResult { verdict: Verdict::Time, cpu: Duration::ZERO, message }
    }

    /// Takes the result of a test, and reports where it was the last one.
    fn finish(&self, test: usize, result: TestResult, isolation: Isolation) {
        let mut state = lock(&self.state);
        state.results[test] = Some(result);
        state.needed = self.needed(&state.results).min(state.needed);
        let known = state.results.iter().take(state.needed).map_while(Clone::clone).collect::<Vec<_>>();
        if known.len() < state.needed {
            return;
        }
        let Some(done) = state.done.take() else { return };
        state.tests = None;
        let count = state.results.len();
        drop(state);
        let failed = known.iter().find(|result| result.verdict.is_no_verdict());
        done(match failed {
            Some(failed) if failed.verdict == Verdict::FaultyTest => {
                let message = format!("A test of this rollout cannot be run: {}.", failed.message);
                Err(Reason::new(Code::BadTests, message))
            }
            Some(failed) => Err(Reason::new(Code::SandboxFailed, failed.message.clone())),
            None => Ok(StoredRun::new(isolation, count, &known)),
        });
    }

    /// How many tests count, from the first on: up to one that decides.
    fn needed(&self, results: &[Option<TestResult>]) -> usize {
        let reward = &self.task.reward;
        let mut timeouts = 0;
        for (at, result) in results.iter().enumerate() {
            let Some(result) = result else { continue };
            timeouts += usize::from(result.verdict == Verdict::Time);
            let decides = match result.verdict {
                Verdict::Passed => false,
                verdict if verdict.is_no_verdict() => true,
                _ => reward.credit == Credit::AllOrNothing || timeouts >= reward.most_timeouts,
            };
            if decides {
                return at + 1;
            }
        }
        results.len()
    }

    fn fail(&self, reason: impl Into<Reason>) {
        let mut state = lock(&self.state);
        state.tests = None;
        let done = state.done.take();
        drop(state);
        if let Some(done) = done {
            done(Err(reason.into()));
        }
    }
}

impl Drop for CodeRun {
    fn drop(&mut self) {
        self.fail(Code::Stopped);
    }
}

struct ExecutorState {
    queue: FairQueue<Arc<CodeRun>>,
    /// How many programs of each owner run just now.
    running: BTreeMap<u64, usize>,
    /// The lanes under way.
    lanes: BTreeMap<u64, ProgramLane>,
    closing: bool,
}

struct ExecutorCore {
    sandbox: Sandbox,
    state: Mutex<ExecutorState>,
    work: Condvar,
    /// The bytes of packed tests that are open, and the most that those can become that are being read.
    opened: Arc<AtomicUsize>,
}

/// Runs programs, for all engines of a process that ask for the same sandbox.
pub(crate) struct Executor {
    core: Arc<ExecutorCore>,
    /// The process that has the threads.
    owner: u32,
    /// Programs that are looked for or run just now.
    pub(crate) flights: SingleFlight,
}

impl fmt::Debug for Executor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Executor").field("sandbox", &self.core.sandbox).finish_non_exhaustive()
    }
}

/// The process, the policy and the folders that an executor is for.
type ExecutorKey = (u32, SandboxPolicy, Vec<PathBuf>);

/// The executors that are in use. A child of `fork` makes its own.
static EXECUTORS: Mutex<Vec<(ExecutorKey, Weak<Executor>)>> = Mutex::new(Vec::new());

/// The languages of this host, which are looked for once.
pub(super) fn installed() -> &'static Languages {
    static INSTALLED: OnceLock<Languages> = OnceLock::new();
    INSTALLED.get_or_init(Languages::installed)
}

/// A sandbox as an operator allows it: of the best isolation, or without isolation where that is allowed and there is none.
pub(super) fn open_sandbox(policy: SandboxPolicy, folders: &[PathBuf]) -> Result<Sandbox, SandboxError> {
    let options = Options { isolation: policy.isolation, read_only: folders.to_vec(), ..Options::default() };
    let unavailable = |report: SandboxReport| SandboxError::NoIsolation(report.to_string());
    match Sandbox::open(options.clone()) {
        Err(_) if policy.allow_none => {
            Sandbox::open(Options { isolation: Some(Isolation::None), ..options }).map_err(unavailable)
        }
        other => other.map_err(unavailable),
    }
}

/// The language of a reward, which the sandbox can use.
pub(super) fn usable_language(sandbox: &Sandbox, reward: &CodeReward) -> Result<Arc<Language>, SandboxError> {
    let name = reward.language();
    let candidates: Vec<Language> = match &reward.defined {
        Some(defined) => vec![defined.clone()],
        None => installed().all().iter().filter(|one| one.name == name).cloned().collect(),
    };
    let usable = candidates.iter().find(|language| language.is_usable_in(sandbox));
    usable.map(|language| Arc::new(language.clone())).ok_or_else(|| {
        let missing = installed().missing().iter().find(|(language, _)| *language == name);
        SandboxError::NoLanguage(match missing {
            Some((_, tool)) => format!("{name:?} needs {tool}, which is not installed"),
            None if sandbox.isolation() == Isolation::Landlock => {
                format!("{name:?} cannot be run with Landlock alone, which has one process and no files")
            }
            None => format!("the sandbox cannot run {name:?}: may its user read the folder of its tools?"),
        })
    })
}

/// What isolates programs on this host, and which languages it can run.
#[derive(Debug, Clone)]
pub struct HostReport {
    /// Every layer of every isolation.
    pub sandbox: SandboxReport,
    /// The languages of the table: what runs each, or why it cannot be run.
    pub languages: Vec<(String, Result<String, String>)>,
}

/// Tries all isolations and all languages.
pub fn probe() -> HostReport {
    let options = Options { read_only: installed().folders(), slots: 1, ..Options::default() };
    let sandbox = Sandbox::open(options.clone()).ok();
    let language = |name: &str| {
        let mut found = installed().all().iter().filter(|language| language.name == name).peekable();
        let missing = installed().missing().iter().find(|(missing, _)| *missing == name);
        let found = match (found.peek(), missing, &sandbox) {
            (None, Some((_, tool)), _) => Err(format!("{tool} is not installed")),
            (_, _, None) => Err("there is no sandbox".to_owned()),
            (_, _, Some(sandbox)) => match found.find(|language| language.is_usable_in(sandbox)) {
                Some(language) => Ok(language.tool().to_owned()),
                None if sandbox.isolation() == Isolation::Landlock => {
                    Err("needs more than the one process that Landlock allows".to_owned())
                }
                None => Err("a small program fails: may the sandbox's user read its tools?".to_owned()),
            },
        };
        (name.to_owned(), found)
    };
    HostReport { sandbox: Sandbox::probe(&options), languages: Language::names().map(language).collect() }
}

impl Executor {
    /// An executor whose boxes can read what the languages of these rewards need.
    pub(crate) fn open(policy: SandboxPolicy, rewards: &[&CodeReward]) -> Result<Arc<Self>, SandboxError> {
        let mut folders = installed().folders();
        folders.extend(
            rewards.iter().filter_map(|reward| reward.defined.as_ref()).flat_map(|one| one.folders.clone()),
        );
        let key = (std::process::id(), policy, folders);
        let mut known = lock(&EXECUTORS);
        known.retain(|(_, executor)| executor.strong_count() > 0);
        let same = known.iter().find(|(known, _)| *known == key);
        if let Some(executor) = same.and_then(|(_, executor)| executor.upgrade()) {
            return Ok(executor);
        }
        let executor = Arc::new(Self::start(policy, &key.2)?);
        known.push((key, Arc::downgrade(&executor)));
        Ok(executor)
    }

    fn start(policy: SandboxPolicy, folders: &[PathBuf]) -> Result<Self, SandboxError> {
        let sandbox = open_sandbox(policy, folders)?;
        let state = Mutex::new(ExecutorState {
            queue: FairQueue::default(),
            running: BTreeMap::new(),
            lanes: BTreeMap::new(),
            closing: false,
        });
        let core = Arc::new(ExecutorCore { sandbox, state, work: Condvar::new(), opened: Arc::default() });
        let start = |_| {
            let core = Arc::clone(&core);
            std::thread::Builder::new().name("plaudit-code".to_owned()).spawn(move || core.work()).is_ok()
        };
        if (0..core.sandbox.slots()).map(start).filter(|started| *started).count() == 0 {
            return Err(SandboxError::NoIsolation("the system gives no thread".to_owned()));
        }
        Ok(Self { core, owner: std::process::id(), flights: SingleFlight::default() })
    }

    /// The isolation of its boxes.
    pub(crate) fn isolation(&self) -> Isolation {
        self.core.sandbox.isolation()
    }

    /// The language of a reward, which the sandbox can use.
    pub(crate) fn language(&self, reward: &CodeReward) -> Result<Arc<Language>, SandboxError> {
        usable_language(&self.core.sandbox, reward)
    }

    /// Runs a program in its turn; `done` is called exactly once, on a thread that it must not hold up.
    pub(crate) fn submit(
        &self,
        task: CodeTask,
        language: Arc<Language>,
        (lane, group): (ProgramLane, u64),
        (timeout, cancel): (Duration, Option<CancelToken>),
        done: impl FnOnce(CodeResult) + Send + 'static,
    ) {
        if std::process::id() != self.owner {
            return done(Err(Reason::new(
                Code::SandboxFailed,
                "The engine belongs to the process that forked this one.",
            )));
        }
        let state = RunState {
            program: None,
            tests: None,
            clock: TestClock::default(),
            results: Vec::new(),
            next: 0,
            needed: 0,
            done: Some(Box::new(done)),
        };
        let run = CodeRun { task, lane, language, timeout, cancel, state: Mutex::new(state) };
        let mut core = lock(&self.core.state);
        core.queue.push((lane.id, group), Arc::new(run));
        core.lanes.insert(lane.id, lane);
        drop(core);
        self.core.work.notify_one();
    }
}

impl Executor {
    /// Forgets the lane of an engine that has ended.
    pub(crate) fn forget(&self, lane: u64) {
        lock(&self.core.state).lanes.remove(&lane);
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        // Not waited for: a thread ends with the test that it runs, and the last one takes the sandbox along.
        lock(&self.core.state).closing = true;
        self.core.work.notify_all();
    }
}

impl ExecutorCore {
    /// The life of a thread: the next step of whoever's turn it is.
    fn work(&self) {
        // How often this thread may still have memory of large tests to give back.
        let mut held = 0;
        while let Some((turn, run, step)) = self.next(&mut held) {
            if run.task.tests.is_packed() {
                held = ROUNDS;
            }
            let reserved = if run.opens() { UNPACKED_LIMIT } else { 0 };
            let (ended, started) = (run.ended(), Instant::now());
            match (ended, step) {
                (Some(RunEnd::Stopped), _) => run.fail(Code::Stopped),
                (Some(RunEnd::Waited), _) => run.fail(Code::GroupDeadline),
                (Some(RunEnd::Spent), CodeStep::Test(test)) => {
                    run.finish(test, run.spent(), self.sandbox.isolation());
                }
                (_, CodeStep::Compile) => self.compile(turn, &run),
                (None, CodeStep::Test(test)) => {
                    let result = catch_unwind(AssertUnwindSafe(|| self.test(&run, test)));
                    lock(&run.state).clock.end(Instant::now());
                    run.finish(test, result.unwrap_or_else(|_| panicked()), self.sandbox.isolation());
                }
            }
            self.opened.fetch_sub(reserved, Ordering::Relaxed);
            self.leave(turn, run.lane.owner, started.elapsed());
        }
    }

    fn next(&self, held: &mut u8) -> Option<((u64, u64), Arc<CodeRun>, CodeStep)> {
        let mut state = lock(&self.state);
        loop {
            if state.closing {
                return None;
            }
            let mut step = None;
            let ExecutorState { queue, running, lanes, .. } = &mut *state;
            let has_room = |lane| {
                let Some(ProgramLane { owner, most, .. }) = lanes.get(&lane) else { return true };
                running.get(owner).copied().unwrap_or(0) < most.unwrap_or_else(|| share(self.sandbox.slots()))
            };
            // What holds tests has a step under way or is the first of its group, so that room is made without those that wait.
            let has_memory = || match self.opened.load(Ordering::Relaxed) {
                0 => true,
                opened => opened + UNPACKED_LIMIT <= OPEN_TESTS,
            };
            let is_ready = |run: &Arc<CodeRun>| !run.opens() || run.task.tests.is_open() || has_memory();
            let turn = queue.turn(has_room, is_ready, |run| {
                let (taken, more) = run.take();
                step = taken.map(|step| (Arc::clone(run), step));
                more
            });
            match (turn, step) {
                (Some(turn), Some((run, step))) => {
                    *running.entry(run.lane.owner).or_insert(0) += 1;
                    if run.opens() {
                        self.opened.fetch_add(UNPACKED_LIMIT, Ordering::Relaxed);
                    }
                    if !queue.is_empty() {
                        self.work.notify_one();
                    }
                    return Some((turn, run, step));
                }
                // Its other tests are not needed any more.
                (Some(turn), None) => queue.leave(turn, Duration::ZERO),
                (None, _) if *held > 0 => {
                    let waited = self.work.wait_timeout(state, IDLE);
                    let (later, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                    state = later;
                    if timeout.timed_out() {
                        *held -= 1;
                        give_back_memory();
                    }
                }
                (None, _) => state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Makes room for another program of an owner.
    fn leave(&self, turn: (u64, u64), owner: u64, time: Duration) {
        let mut state = lock(&self.state);
        state.queue.leave(turn, time);
        if let Some(running) = state.running.get_mut(&owner) {
            *running -= 1;
            if *running == 0 {
                state.running.remove(&owner);
            }
        }
        if !state.queue.is_empty() {
            self.work.notify_one();
        }
    }

    fn compile(&self, turn: (u64, u64), run: &Arc<CodeRun>) {
        let CodeTask { reward, program, tests } = &run.task;
        let tests = catch_unwind(AssertUnwindSafe(|| tests.open(&self.opened)))
            .unwrap_or_else(|_| Err(Code::Panic.into()));
        let tests = match tests {
            Ok(tests) => tests,
            Err(reason) => return run.fail(reason),
        };
        let made = || {
            let made = Program::prepare(&self.sandbox, &run.language, program, &reward.limits);
            made.map(|program| program.test_process(reward.test_process))
        };
        let made = catch_unwind(AssertUnwindSafe(made)).unwrap_or_else(|_| Err(panicked()));
        let mut state = lock(&run.state);
        state.program = Some(made.map(Arc::new));
        (state.results, state.needed) = (vec![None; tests.cases().len()], tests.cases().len());
        state.tests = state.done.is_some().then_some(tests);
        // Compiling is no test: it has limits of its own.
        state.clock = TestClock { since: Some(Instant::now()), ..TestClock::default() };
        drop(state);
        lock(&self.state).queue.push_first(turn, Arc::clone(run));
        self.work.notify_one();
    }

    fn test(&self, run: &CodeRun, test: usize) -> TestResult {
        let state = lock(&run.state);
        let (program, tests) = (state.program.clone(), state.tests.clone());
        drop(state);
        match (program, tests.as_ref().and_then(|tests| tests.cases().get(test))) {
            (Some(Ok(program)), Some(case)) => program.run(&self.sandbox, case),
            (Some(Err(result)), _) => result,
            // Another test has decided in the meantime.
            _ => panicked(),
        }
    }
}

/// How long a thread is idle before it gives memory back, and how often it does. An allocator such as mimalloc keeps what was freed for
/// 100 ms, and gives back a part of it at a time.
const IDLE: Duration = Duration::from_millis(250);
const ROUNDS: u8 = 8;

/// Makes the allocator give freed pages back to the system, which it does only when it is asked for more. What is asked for here is
/// never touched, so that it takes no memory.
fn give_back_memory() {
    for _ in 0..4 {
        drop(std::hint::black_box(Vec::<u8>::with_capacity(64 << 20)));
    }
}

fn panicked() -> TestResult {
    let message = Code::Panic.meaning().trim_start().to_owned();
    TestResult { verdict: Verdict::Infrastructure, cpu: Duration::ZERO, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_owner_leaves_a_slot_to_another() {
        for (slots, wanted) in [(1, 1), (2, 1), (3, 2), (4, 3), (8, 6), (64, 48)] {
            assert_eq!(share(slots), wanted, "{slots}");
        }
    }

    #[test]
    fn time_of_its_own_tests_is_not_time_that_it_waited() {
        let (start, timeout) = (Instant::now(), Duration::from_secs(10));
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        // Two tests side by side count once, and what is running counts.
        let mut sleeping = TestClock::default();
        sleeping.begin(at(0));
        sleeping.begin(at(1));
        sleeping.end(at(4));
        sleeping.end(at(6));
        assert_eq!((sleeping.used(at(9)), sleeping.ended(timeout, at(9))), (Duration::from_secs(6), None));
        sleeping.begin(at(9));
        assert_eq!(sleeping.ended(timeout, at(12)), None);
        assert_eq!(sleeping.ended(timeout, at(14)), Some(RunEnd::Spent));
        // Short waits never add up to a deadline; one that is longer than it does.
        let mut waiting = TestClock { since: Some(at(0)), ..TestClock::default() };
        for second in 1..100 {
            waiting.begin(at(9 * second));
            waiting.end(at(9 * second));
        }
        assert_eq!(waiting.ended(timeout, at(900)), None);
        waiting.begin(at(902));
        assert_eq!(waiting.ended(timeout, at(902)), Some(RunEnd::Waited));
    }
}
