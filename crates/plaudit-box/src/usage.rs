//! What the processes of a box use together: CPU time, memory, threads, and how long they waited for a processor.
//!
//! CPU time is counted by the kernel on a clock that all descendants of a box inherit (`perf_event_open`), so that it also has the
//! time of children that nobody waits for: those whose parent ignores SIGCHLD, or that end between two looks. Where the host
//! refuses that clock, the box is added up from `/proc`, with what was seen of processes that vanished without being waited for.

use crate::sys::{Errno, call};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

/// At most so many processes are looked at; no box may have more.
const MAX_PROCESSES: usize = 4096;

/// What the kernel may hold in a descriptor: the buffer of a socket (`net.core.wmem_default`); a pipe has 64 KB.
const DESCRIPTOR: u64 = 212_992;

/// So many descriptors of a process are not counted as memory; ordinary programs have fewer.
const FREE_DESCRIPTORS: u64 = 16;

/// The descriptors that a process can have.
pub(crate) const MAX_DESCRIPTORS: u64 = 128;

/// The kernel reports times in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// Opens a clock of the CPU time of a process and of all its descendants, those that are gone included; of ourselves (0) alone. An
/// error where `kernel.perf_event_paranoid` or a container forbids it.
pub(crate) fn clock(process: i32) -> Result<OwnedFd, Errno> {
    const SOFTWARE: u64 = 1;
    const TASK_CLOCK: u64 = 1;
    const INHERIT: u64 = 1 << 1;
    // What an ordinary user may ask for; time in the kernel is counted all the same.
    const NOT_THE_KERNEL: u64 = 1 << 5 | 1 << 6;
    const CLOSE_ON_EXEC: usize = 8;
    // The first version of struct perf_event_attr.
    let flags = NOT_THE_KERNEL | if process == 0 { 0 } else { INHERIT };
    let attributes: [u64; 8] = [SOFTWARE | 64 << 32, TASK_CLOCK, 0, 0, 0, flags, 0, 0];
    let any = usize::MAX;
    let arguments = [attributes.as_ptr() as usize, process as usize, any, any, CLOSE_ON_EXEC, 0];
    // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
    call(libc::SYS_perf_event_open, arguments).map(|fd| unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// What one process was seen to have used, in ticks: itself, and the children that it waited for.
#[derive(Clone, Copy, Default)]
struct Ticks {
    own: u64,
    waited_for: u64,
}

/// Looks at the processes of a box from time to time.
pub(crate) struct Meter {
    process: i32,
    clock: Option<std::fs::File>,
    /// The CPU time of all processes that there were.
    pub(crate) cpu: Duration,
    /// The memory of all processes now: resident pages, page tables, and what descriptors may hold.
    pub(crate) memory: u64,
    /// The threads now.
    pub(crate) tasks: u32,
    /// How long some thread waited for a processor while it could have run.
    pub(crate) waited: Duration,
    processes: BTreeMap<i32, Ticks>,
    /// How long each thread has waited in its life, in nanoseconds.
    delays: BTreeMap<i32, u64>,
    /// What processes had used that are gone, and what parents got from children that they waited for.
    gone: u64,
    handed_over: u64,
}

impl Meter {
    pub(crate) fn new(process: i32, clock: Option<OwnedFd>) -> Self {
        Self {
            process,
            clock: clock.map(std::fs::File::from),
            cpu: Duration::ZERO,
            memory: 0,
            tasks: 0,
            waited: Duration::ZERO,
            processes: BTreeMap::new(),
            delays: BTreeMap::new(),
            gone: 0,
            handed_over: 0,
        }
    }

    /// Adds up a process and all its descendants; `interval` is how long the last look is ago. A process that has just ended has no
    /// memory any more.
    pub(crate) fn look(&mut self, interval: Duration) {
        let (mut processes, mut delays) = (BTreeMap::new(), BTreeMap::new());
        let (mut memory, mut tasks, mut waited) = (0, 0, 0);
        let mut open = vec![self.process];
        while let Some(process) = open.pop() {
            let Some(stat) = Stat::of(process) else { continue };
            if processes.insert(process, stat.ticks).is_some() || processes.len() > MAX_PROCESSES {
                continue;
            }
            memory += stat.resident + page_tables(process) + held_by_descriptors(process);
            tasks += stat.threads;
            let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { continue };
            for thread in threads.flatten() {
                let path = thread.path();
                let number = thread.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
                if let (Some(number), Ok(text)) = (number, std::fs::read_to_string(path.join("schedstat"))) {
                    let fields: Vec<u64> =
                        text.split_ascii_whitespace().filter_map(|field| field.parse().ok()).collect();
                    let delay = fields.get(1).copied().unwrap_or(0);
                    let before = self.delays.get(&number).copied().unwrap_or(0);
                    // One that has never had a processor waits for its first, or the kernel does not keep these figures.
                    let never = stat.runnable && fields.get(2) == Some(&0);
                    waited = waited.max(if never { u64::MAX } else { delay.saturating_sub(before) });
                    delays.insert(number, delay);
                }
                let Ok(children) = std::fs::read_to_string(path.join("children")) else { continue };
                open.extend(children.split_ascii_whitespace().filter_map(|child| child.parse::<i32>().ok()));
            }
        }
        // One thread's own waiting, and not the sum: threads that wait for each other must not look like a busy host.
        self.waited += Duration::from_nanos(waited).min(interval);
        for (process, before) in &self.processes {
            match processes.get(process) {
                Some(now) => self.handed_over += now.waited_for.saturating_sub(before.waited_for),
                None => self.gone += before.own + before.waited_for,
            }
        }
        let seen: u64 = processes.values().map(|ticks| ticks.own + ticks.waited_for).sum();
        let seen = seen + self.gone.saturating_sub(self.handed_over);
        self.cpu = self.cpu.max(TICK.saturating_mul(u32::try_from(seen).unwrap_or(u32::MAX)));
        self.read_clock();
        (self.memory, self.tasks) = (memory, tasks);
        (self.processes, self.delays) = (processes, delays);
    }

    /// Reads the clock, also when all processes are gone.
    pub(crate) fn read_clock(&mut self) {
        let mut count = [0; 8];
        if let Some(Ok(())) = self.clock.as_mut().map(|clock| clock.read_exact(&mut count)) {
            self.cpu = self.cpu.max(Duration::from_nanos(u64::from_ne_bytes(count)));
        }
    }
}

/// What `/proc/PID/stat` says of a process.
struct Stat {
    ticks: Ticks,
    threads: u32,
    resident: u64,
    /// Whether it wants a processor or has one.
    runnable: bool,
}

impl Stat {
    fn of(process: i32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name stands in parentheses and may contain anything.
        let (_, rest) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number =
            |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        Some(Self {
            ticks: Ticks { own: number(11) + number(12), waited_for: number(13) + number(14) },
            threads: number(17) as u32,
            resident: number(21) * page_size(),
            runnable: fields.first() == Some(&"R"),
        })
    }
}

/// The page tables of a process, which no limit of the kernel counts.
fn page_tables(process: i32) -> u64 {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{process}/status")) else { return 0 };
    let line = text.lines().find_map(|line| line.strip_prefix("VmPTE:"));
    let kilobytes = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}

/// The most that the kernel may hold for a process in pipes and sockets, which no limit counts either.
fn held_by_descriptors(process: i32) -> u64 {
    let count = match std::fs::read_dir(format!("/proc/{process}/fd")) {
        Ok(entries) => entries.count() as u64,
        // A program can hide its descriptors.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => MAX_DESCRIPTORS,
        Err(_) => 0,
    };
    count.saturating_sub(FREE_DESCRIPTORS) * DESCRIPTOR
}

/// How many processes the host has killed since it started because memory ran out.
pub(crate) fn kills_for_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/vmstat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

fn page_size() -> u64 {
    // SAFETY: takes a number and returns one.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096)
}
