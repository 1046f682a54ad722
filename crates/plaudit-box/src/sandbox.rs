//! The sandbox: chooses an isolation by attacking it, keeps its slots, and runs jobs.

use crate::attack::{ATTACKS, AttackTable};
use crate::child::{BoxFile, MountStep, Step};
use crate::filter::Filter;
use crate::guard::{BoxTable, Guard};
use crate::job::{BoxError, Exit, Job, Limits, RunResult};
use crate::landlock;
use crate::launch::{self, INSIDE, LaunchSpec, Started};
use crate::layout::{self, WORK};
use crate::namespaces::Namespaces;
use crate::options::{Isolation, Options};
use crate::report::{LayerReport, SandboxReport};
use crate::scratch::{Scratch, write_files};
use crate::slot::{BoxSlot, Slot, Slots};
use crate::streams::{above_two, input, joint, pipe};
use crate::supervise::{self, Running};
use crate::sys::{self, Errno, Resource};
use crate::usage::{self, MAX_DESCRIPTORS};
use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

/// Runs programs in boxes of one isolation. Any thread may use it.
pub struct Sandbox {
    report: SandboxReport,
    isolation: Isolation,
    mounts: Vec<MountStep>,
    filter: Filter,
    boxes: BoxTable,
    slots: Slots,
    /// Whether the engine could be debugged before a box made it otherwise.
    dumpable: bool,
    /// A clock of our own that nobody reads, where boxes can have theirs: the first one on a host takes the kernel 15 ms, and again after
    /// the last is closed.
    clock: Option<OwnedFd>,
    owner: u32,
    // Last: it ends when no box is left.
    _scratch: Option<Scratch>,
    guard: Guard,
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox").field("isolation", &self.isolation).field("slots", &self.slots()).finish()
    }
}

impl Sandbox {
    /// Tries all isolations and tells about each of their layers.
    pub fn probe(options: &Options) -> SandboxReport {
        let mut report = SandboxReport { isolation: None, layers: Vec::new() };
        for isolation in [Isolation::Namespaces, Isolation::Landlock] {
            let one = Options { slots: 1, ..options.clone() };
            let works = Self::attempt(&one, isolation, &mut report.layers).is_some();
            if works && report.isolation.is_none() {
                report.isolation = Some(isolation);
            }
        }
        report
    }

    /// Makes a sandbox of the best isolation, or of the one that is named; where none withstands the attacks, tells why.
    pub fn open(options: Options) -> Result<Self, SandboxReport> {
        let isolations = match options.isolation {
            Some(isolation) => vec![isolation],
            None => vec![Isolation::Namespaces, Isolation::Landlock],
        };
        let mut layers = Vec::new();
        for isolation in isolations {
            if let Some(mut sandbox) = Self::attempt(&options, isolation, &mut layers) {
                sandbox.report = SandboxReport { isolation: Some(isolation), layers };
                return Ok(sandbox);
            }
        }
        Err(SandboxReport { isolation: None, layers })
    }

    /// What was tried to choose the isolation.
    pub fn report(&self) -> &SandboxReport {
        &self.report
    }

    /// The isolation of all boxes.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// How many programs, or pairs of them, can run at once.
    pub fn slots(&self) -> usize {
        self.slots.count
    }

    /// Runs a job in a box of its own. Waits for a free slot, then for the end of the program.
    pub fn run(&self, job: &Job) -> Result<RunResult, BoxError> {
        self.check_owner()?;
        let slot = self.slots.take();
        let result = self.run_in(&slot.first, job);
        self.slots.give_back(slot);
        result
    }

    /// Runs two jobs at once in boxes of their own: the standard output of each is the standard input of the other, by pipes
    /// that nobody else holds. Where one is ended for a limit, so is the other; the result of the latter says that it was
    /// killed. Takes one slot, since one of the two mostly waits for the other.
    pub fn run_pair(&self, jobs: [&Job; 2]) -> Result<[RunResult; 2], BoxError> {
        self.check_owner()?;
        if jobs.iter().any(|job| !job.stdin.is_empty()) {
            return Err(BoxError::Request("the input of a pair is the other's output".into()));
        }
        let slot = self.slots.take();
        let result = self.run_pair_in([&slot.first, &slot.second], jobs);
        self.slots.give_back(slot);
        result
    }

    fn check_owner(&self) -> Result<(), BoxError> {
        if std::process::id() == self.owner {
            return Ok(());
        }
        Err(BoxError::HostError("the sandbox belongs to the process that forked this one", libc::ECHILD))
    }

    fn run_in(&self, box_slot: &BoxSlot, job: &Job) -> Result<RunResult, BoxError> {
        let stdin = input(&job.stdin).map_err(host_error("memfd_create"))?;
        let (stdout, stdout_end) = pipe(box_slot.user).map_err(host_error("pipe2"))?;
        let (stderr, stderr_end) = pipe(box_slot.user).map_err(host_error("pipe2"))?;
        let descriptors = [stdin.as_raw_fd(), stdout_end.as_raw_fd(), stderr_end.as_raw_fd()];
        let started = self.start(box_slot, job, descriptors, None);
        drop((stdin, stdout_end, stderr_end));
        if let Some(result) = started.as_ref().err().and_then(|failure| not_executable(job, failure)) {
            box_slot.empty();
            return Ok(result);
        }
        let result = started.and_then(|started| {
            let limits = &job.limits;
            let place = &self.boxes[box_slot.index];
            let Started { process, clock, .. } = started;
            let running = Running { process, clock, place, limits, stdout: Some(stdout), stderr };
            let [result] = supervise::watch([running])?;
            Ok(result)
        });
        box_slot.empty();
        result
    }

    fn run_pair_in(&self, box_slots: [&BoxSlot; 2], jobs: [&Job; 2]) -> Result<[RunResult; 2], BoxError> {
        let (first_input, second_output) = joint().map_err(host_error("pipe2"))?;
        let (second_input, first_output) = joint().map_err(host_error("pipe2"))?;
        let (first_errors, first_end) = pipe(box_slots[0].user).map_err(host_error("pipe2"))?;
        let (second_errors, second_end) = pipe(box_slots[1].user).map_err(host_error("pipe2"))?;
        let ends = [(first_input, first_output, first_end), (second_input, second_output, second_end)];
        let descriptors = ends
            .each_ref()
            .map(|(input, output, errors)| [input.as_raw_fd(), output.as_raw_fd(), errors.as_raw_fd()]);
        let running = |index: usize, started: Started, stderr: OwnedFd| Running {
            process: started.process,
            clock: started.clock,
            place: &self.boxes[box_slots[index].index],
            limits: &jobs[index].limits,
            stdout: None,
            stderr,
        };
        let result = self.start(box_slots[0], jobs[0], descriptors[0], None).and_then(|started| {
            let first = running(0, started, first_errors);
            match self.start(box_slots[1], jobs[1], descriptors[1], None) {
                Ok(started) => {
                    // So that each sees the end of the other.
                    drop(ends);
                    let second = running(1, started, second_errors);
                    supervise::watch([first, second])
                }
                Err(failure) => {
                    first.end();
                    Err(failure)
                }
            }
        });
        box_slots.iter().for_each(|box_slot| box_slot.empty());
        result
    }

    /// Builds the box of a job and starts its program, or the attacks.
    fn start(
        &self,
        box_slot: &BoxSlot,
        job: &Job,
        descriptors: [i32; 3],
        attacks: Option<&AttackTable>,
    ) -> Result<Started, BoxError> {
        let text = |text: &str| {
            CString::new(text).map_err(|_| BoxError::Request(format!("a zero byte in {text:?}")))
        };
        let arguments = job.arguments.iter().map(|argument| text(argument)).collect::<Result<Vec<_>, _>>()?;
        let environment = job
            .environment
            .iter()
            .map(|(name, value)| text(&format!("{name}={value}")))
            .collect::<Result<Vec<_>, _>>()?;
        for (name, _, _) in &job.files {
            if name.is_empty() || name.contains(['/', '\0']) || [".", ".."].contains(&name.as_str()) {
                return Err(BoxError::Request(format!("{name:?} is not the name of a file")));
            }
        }
        let mut files = Vec::new();
        let work = match &box_slot.folder {
            Some(folder) => {
                write_files(folder, job).map_err(|errno| BoxError::HostError("the box's folder", errno))?;
                CString::new(folder.as_os_str().as_bytes()).map_err(|_| BoxError::Request("folder".into()))?
            }
            None => {
                for (name, content, executable) in &job.files {
                    files.push(BoxFile { path: text(name)?, content, executable: *executable });
                }
                text(WORK)?
            }
        };
        let limits = &job.limits;
        let (bytes, count) =
            (limits.file_bytes.max(4096), limits.file_count.max(1) + job.files.len() as u64 + 1);
        let bytes = bytes + job.files.iter().map(|(_, content, _)| content.len() as u64 + 4096).sum::<u64>();
        let options = format!("mode=755,uid={INSIDE},gid={INSIDE},size={bytes},nr_inodes={count}");
        let plan = LaunchSpec {
            isolation: self.isolation,
            namespaces: box_slot.namespaces.as_ref(),
            mounts: &self.mounts,
            files: &files,
            work: &work,
            work_options: &text(&options)?,
            descriptors,
            user: box_slot.user,
            limits: &resource_limits(
                limits,
                self.isolation == Isolation::Namespaces || box_slot.user.is_some(),
            ),
            landlock: box_slot.landlock.as_ref(),
            filter: &self.filter,
            arguments: &arguments,
            environment: &environment,
            attacks,
            engine_dead: &self.guard.engine_dead,
            clock: self.clock.is_some(),
        };
        let started = launch::start(&plan, &self.boxes[box_slot.index]);
        if self.dumpable && box_slot.user.is_some() {
            sys::set_dumpable();
        }
        started
    }

    /// Makes a sandbox of one isolation and attacks it. What was tried goes to `layers`.
    fn attempt(options: &Options, isolation: Isolation, layers: &mut Vec<LayerReport>) -> Option<Self> {
        let failed = |failure: &BoxError, layers: &mut Vec<LayerReport>| {
            layers.push(LayerReport::failed(isolation, failure));
        };
        let sandbox = match Self::build(options, isolation) {
            Ok(sandbox) => sandbox,
            Err(failure) => {
                failed(&failure, layers);
                return None;
            }
        };
        if isolation == Isolation::None {
            layers.push(LayerReport::on(
                isolation,
                "limits",
                "programs are not isolated: an operator asked for it",
            ));
            return Some(sandbox);
        }
        match sandbox.attack(&options.scratch) {
            Ok(attacked) => {
                let good = attacked.iter().all(|layer| layer.works || layer.optional);
                layers.extend(attacked);
                good.then_some(sandbox)
            }
            Err(failure) => {
                failed(&failure, layers);
                None
            }
        }
    }

    /// Prepares all that the boxes of an isolation share.
    fn build(options: &Options, isolation: Isolation) -> Result<Self, BoxError> {
        let version = landlock::version();
        let landlock_failure = |errno| BoxError::Setup { layer: "Landlock", errno };
        let readable = layout::readable(&options.read_only);
        let root = launch::effective(libc::SYS_geteuid) == 0 && is_mapped(options);
        let scratch = match isolation {
            Isolation::Namespaces => None,
            _ => Some(Scratch::new(&options.scratch).map_err(host_error("the folder for boxes"))?),
        };
        let mounts =
            if isolation == Isolation::Namespaces { layout::fixed_mounts(&readable) } else { Vec::new() };
        let dumpable = sys::is_dumpable();
        let box_slot = |index: usize| -> Result<BoxSlot, BoxError> {
            let user = root.then(|| box_user(options.first_user));
            let folder = match &scratch {
                Some(scratch) => Some(scratch.folder(index, user).map_err(host_error("a box's folder"))?),
                None => None,
            };
            let landlock = match (isolation, &version) {
                (Isolation::Namespaces, Ok(version)) if *version >= 4 => {
                    Some(landlock::rules(*version, false))
                }
                (Isolation::Landlock, Ok(version)) => {
                    Some(landlock::file_rules(*version, &readable, folder.as_deref()))
                }
                (Isolation::Landlock, Err(errno)) => return Err(landlock_failure(*errno)),
                _ => None,
            };
            let landlock = landlock.transpose().map_err(landlock_failure)?;
            let namespaces = match isolation {
                Isolation::Namespaces => Some(Namespaces::new(&mounts, user)?),
                _ => None,
            };
            Ok(BoxSlot { index, user, folder, landlock, namespaces })
        };
        let count = options.slots.max(1);
        let slot = |index| Ok(Slot { first: box_slot(2 * index)?, second: box_slot(2 * index + 1)? });
        let slots = Slots::new((0..count).map(slot).collect::<Result<Vec<_>, _>>()?);
        let boxes: BoxTable = (0..2 * count).map(|_| AtomicI32::new(0)).collect();
        let guard =
            Guard::start(BoxTable::clone(&boxes)).map_err(|errno| BoxError::HostError("the guard", errno))?;
        Ok(Self {
            report: SandboxReport { isolation: None, layers: Vec::new() },
            isolation,
            mounts: if isolation == Isolation::Namespaces { layout::own_mounts() } else { Vec::new() },
            filter: Filter::new(isolation, version.unwrap_or(0)),
            boxes,
            slots,
            dumpable,
            // With Landlock alone a box has one process, whose time is known.
            clock: if isolation == Isolation::Landlock { None } else { usage::clock(0).ok() },
            owner: std::process::id(),
            _scratch: scratch,
            guard,
        })
    }

    /// Builds one box and makes the attacks in it.
    fn attack(&self, scratch: &Path) -> Result<Vec<LayerReport>, BoxError> {
        let target = Scratch::new(scratch).map_err(host_error("the folder for the self-test"))?;
        let secret = target.path.join("secret");
        let io = |error: std::io::Error| {
            BoxError::HostError("the file of the self-test", error.raw_os_error().unwrap_or(libc::EIO))
        };
        // Readable and removable for everybody, so that only the sandbox stands between.
        std::fs::write(&secret, "secret").map_err(io)?;
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o666)).map_err(io)?;
        std::fs::set_permissions(&target.path, std::fs::Permissions::from_mode(0o777)).map_err(io)?;
        let path = |path: &Path| {
            CString::new(path.as_os_str().as_bytes()).map_err(|_| BoxError::Request("path".into()))
        };
        let engine = std::process::id();
        let table = AttackTable {
            engine,
            secret: path(&secret)?,
            escape: path(&target.path.join("escape"))?,
            environment: path(Path::new(&format!("/proc/{engine}/environ")))?,
            one_process: self.isolation == Isolation::Landlock,
            results: std::array::from_fn(|_| AtomicI32::new(-1)),
        };
        let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null").map_err(io)?;
        let null = above_two(OwnedFd::from(null)).map_err(host_error("dup"))?;
        let slot = self.slots.take();
        let box_slot = &slot.first;
        let job = Job::new(["attacks"]);
        let started = self.start(box_slot, &job, [null.as_raw_fd(); 3], Some(&table));
        let (isolation, mut layers) = (self.isolation, Vec::new());
        let started = match started {
            Ok(started) => started,
            Err(failure) => {
                self.slots.give_back(slot);
                return Err(failure);
            }
        };
        self.boxes[box_slot.index].store(0, Ordering::Release);
        launch::reap(started.process).map_err(host_error("wait4 (does the host ignore SIGCHLD?)"))?;
        if isolation == Isolation::Namespaces {
            layers.push(LayerReport::on(
                isolation,
                "namespaces",
                "user, mount, PID, network, IPC, UTS and cgroup",
            ));
            layers.push(LayerReport::on(
                isolation,
                "file system",
                "read-only system, tmpfs with limits of bytes and files",
            ));
            layers.push(match started.proc_errno {
                0 => LayerReport::on(isolation, "/proc", "of the box's own processes"),
                errno => LayerReport::missing(isolation, "/proc", errno),
            });
        }
        layers.push(match box_slot.user {
            Some(user) => LayerReport::on(isolation, "user", format!("boxes belong to users from {user} on")),
            None => LayerReport::on(isolation, "user", "boxes belong to the engine's user"),
        });
        layers.push(match (&box_slot.landlock, landlock::version()) {
            (Some(_), Ok(version)) => LayerReport::on(isolation, "Landlock", format!("version {version}")),
            (_, Ok(_)) => LayerReport::missing(isolation, "Landlock", libc::EOPNOTSUPP),
            (_, Err(errno)) => LayerReport::missing(isolation, "Landlock", errno),
        });
        layers.push(LayerReport::on(
            isolation,
            "seccomp",
            format!("{} instructions", self.filter.program.len()),
        ));
        layers.push(LayerReport::on(isolation, "limits", "CPU, memory, files, processes, output"));
        self.slots.give_back(slot);
        for ((name, _), result) in ATTACKS.iter().zip(&table.results) {
            let errno = result.load(Ordering::Acquire);
            let detail = match errno {
                -1 => "the attack was not made".to_owned(),
                0 => "the attack succeeded".to_owned(),
                libc::ENOTSUP => "not made: this isolation allows it".to_owned(),
                errno => format!("stopped: {}", std::io::Error::from_raw_os_error(errno)),
            };
            layers.push(LayerReport {
                isolation,
                name,
                works: errno > 0,
                optional: false,
                attack: true,
                detail,
                remedy: None,
            });
        }
        Ok(layers)
    }
}

/// The end of a program whose own file the kernel does not execute, such as a library that was to be a program: as a shell would
/// tell it. Its author chose what is in that file.
fn not_executable(job: &Job, failure: &BoxError) -> Option<RunResult> {
    let &BoxError::Setup { layer, errno } = failure else { return None };
    let program = job.arguments.first()?.strip_prefix("./")?;
    let own = job.files.iter().any(|(name, _, _)| name == program);
    // The host has no process left, or another still writes the file.
    if layer != Step::Execute.layer() || !own || matches!(errno, libc::EAGAIN | libc::ETXTBSY) {
        return None;
    }
    let message = format!("the program cannot be executed: {}", std::io::Error::from_raw_os_error(errno));
    Some(RunResult {
        exit: Exit::Code(126),
        hit: None,
        stdout: Vec::new(),
        stderr: message.into_bytes(),
        cpu: Duration::ZERO,
        wall: Duration::ZERO,
        peak_resident: None,
    })
}

fn host_error(what: &'static str) -> impl Fn(Errno) -> BoxError {
    move |errno| BoxError::HostError(what, errno)
}

/// How many users the boxes of a host share.
const USERS: u32 = 1000;

/// The user of the next slot. Sandboxes of one process have users of their own, and processes with near numbers start far apart.
fn box_user(first: u32) -> u32 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let given = GIVEN.fetch_add(1, Ordering::Relaxed);
    first.saturating_add(std::process::id().wrapping_mul(61).wrapping_add(given) % USERS)
}

/// Whether the users of the boxes exist here. The root of a container that has no other user is an ordinary user outside, and
/// cannot become another.
fn is_mapped(options: &Options) -> bool {
    let first = u64::from(options.first_user);
    let last = first + u64::from(USERS) - 1;
    ["/proc/self/uid_map", "/proc/self/gid_map"].iter().all(|path| {
        let Ok(text) = std::fs::read_to_string(path) else { return false };
        text.lines().any(|line| {
            let mut fields = line.split_ascii_whitespace().map(|field| field.parse::<u64>().unwrap_or(0));
            match (fields.next(), fields.nth(1)) {
                (Some(start), Some(count)) => start <= first && last < start + count,
                _ => false,
            }
        })
    })
}

/// The limits that the kernel enforces on each process.
fn resource_limits(limits: &Limits, counts_processes: bool) -> Vec<(Resource, u64)> {
    // The supervisor ends a box at its limit; the kernel does, a second later, where the supervisor is not there.
    let seconds = limits.cpu.as_secs() + 2;
    // The C library gives each thread as much address space for its stack as the limit of the stack says, which the kernel counts as
    // data before it is used; and it reserves 64 MB for each thread's heap, which is no data. What is used counts as resident.
    let (stack, threads) = ((limits.memory / 4).clamp(1 << 20, 64 << 20), u64::from(limits.processes));
    let data = limits.memory.saturating_add(stack.saturating_mul(threads));
    let space = data.saturating_add((threads + 1).saturating_mul(64 << 20));
    let mut list = vec![
        (libc::RLIMIT_CPU, seconds),
        (libc::RLIMIT_AS, limits.address_space.unwrap_or(0).max(space)),
        (libc::RLIMIT_DATA, data),
        (libc::RLIMIT_STACK, stack),
        (libc::RLIMIT_FSIZE, limits.file_bytes),
        (libc::RLIMIT_NOFILE, MAX_DESCRIPTORS),
        // One byte and not none: a core pattern that is a program ignores none.
        (libc::RLIMIT_CORE, 1),
        (libc::RLIMIT_MEMLOCK, 64 << 10),
        (libc::RLIMIT_MSGQUEUE, 0),
        (libc::RLIMIT_RTPRIO, 0),
        (libc::RLIMIT_SIGPENDING, 256),
    ];
    if counts_processes {
        list.push((libc::RLIMIT_NPROC, u64::from(limits.processes)));
    }
    list
}
