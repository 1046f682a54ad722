//! Watches running boxes: reads their output, enforces the limits of time, memory and processes, and waits for their end.
//!
//! Whose fault an end is: the program's, unless the host shows that it is not. A program can die in many ways that look like a
//! hand from outside (its own limits, its own memory, a signal that the kernel sends for what it did), so that an end
//! which nothing explains counts as its own. There is no result for two reasons only:
//!
//! - The host killed for want of memory while the box ran, and the box never had half of what it may have.
//! - A thread of the box waited for a processor for half of the time on the clock, the box had less than half of its CPU time, and
//!   then the clock ran out. What the box used is counted by a clock of the kernel that no child escapes (`usage.rs`), so that
//!   threads and children which keep each other waiting use up CPU time instead.

use crate::job::{BoxError, Exit, LimitHit, Limits, RunResult};
use crate::sys::{call, last_errno};
use crate::usage::{Meter, kills_for_memory};
use crate::{launch, sys};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// How often a box is looked at. Most end before the first time.
const PERIOD: Duration = Duration::from_millis(50);

/// The message where the host has no memory left.
const HOST_WITHOUT_MEMORY: &str = "killed by the host, which had no memory left";

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// The reading end of a pipe, and what has come through it.
pub(crate) struct Stream {
    fd: OwnedFd,
    limit: usize,
    text: Vec<u8>,
    over: bool,
    open: bool,
}

impl Stream {
    pub(crate) fn new(fd: OwnedFd, limit: usize) -> Self {
        Self { fd, limit, text: Vec::new(), over: false, open: true }
    }

    /// Reads what is there now. What is over the limit is dropped.
    fn read(&mut self, buffer: &mut [u8]) {
        while self.open {
            // SAFETY: the buffer is ours for the length that is told.
            let count = unsafe { libc::read(self.fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
            match usize::try_from(count) {
                Ok(0) => self.open = false,
                Ok(count) => {
                    let room = self.limit - self.text.len();
                    self.over |= count > room;
                    self.text.extend_from_slice(&buffer[..count.min(room)]);
                    if self.over {
                        return;
                    }
                }
                Err(_) if last_errno() == libc::EINTR => {}
                Err(_) if last_errno() == libc::EAGAIN => return,
                Err(_) => self.open = false,
            }
        }
    }
}

/// A box that was started, and what is kept of its output.
pub(crate) struct Running<'a> {
    pub(crate) process: i32,
    /// The clock of its CPU time, where the host allows one.
    pub(crate) clock: Option<OwnedFd>,
    /// Its entry in the guard's table.
    pub(crate) place: &'a AtomicI32,
    pub(crate) limits: &'a Limits,
    /// None where the output goes to another box.
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: OwnedFd,
}

impl Running<'_> {
    /// Kills the box and waits for its end.
    pub(crate) fn end(&self) {
        launch::kill(self.process);
        // While it is not reaped, its number is its own: so the guard forgets it first.
        self.place.store(0, Ordering::Release);
        let _ = launch::reap(self.process);
    }
}

/// A box that is watched.
struct Watched<'a> {
    process: i32,
    place: &'a AtomicI32,
    limits: &'a Limits,
    deadline: Instant,
    /// Can be read when the box has ended.
    end: OwnedFd,
    /// Standard output, unless another box reads it, and standard error.
    streams: [Option<Stream>; 2],
    meter: Meter,
    peak: Option<u64>,
    /// How often the host had killed for want of memory when the box was first looked at.
    kills_before: Option<u64>,
    hit: Option<LimitHit>,
    /// Whether it was killed for a limit, of its own or of the other.
    killed: bool,
    ended: bool,
    wall: Duration,
}

impl<'a> Watched<'a> {
    fn new(running: Running<'a>, started: Instant) -> Result<Self, BoxError> {
        let end = match call(libc::SYS_pidfd_open, [running.process as usize, 0, 0, 0, 0, 0]) {
            // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
            Ok(fd) => unsafe { OwnedFd::from_raw_fd(fd as i32) },
            Err(errno) => {
                running.end();
                return Err(BoxError::HostError("pidfd_open", errno));
            }
        };
        let Running { process, clock, place, limits, stdout, stderr } = running;
        Ok(Self {
            process,
            place,
            limits,
            deadline: started + limits.wall(),
            end,
            streams: [
                stdout.map(|fd| Stream::new(fd, limits.output)),
                Some(Stream::new(stderr, limits.errors)),
            ],
            meter: Meter::new(process, clock),
            peak: None,
            kills_before: None,
            hit: None,
            killed: false,
            ended: false,
            wall: Duration::ZERO,
        })
    }

    fn read(&mut self, buffer: &mut [u8]) {
        for stream in self.streams.iter_mut().flatten() {
            stream.read(buffer);
        }
    }

    fn output_over(&self) -> bool {
        self.streams[0].as_ref().is_some_and(|stream| stream.over)
    }

    /// The limit that the box is over.
    fn over(&self, now: Instant) -> Option<LimitHit> {
        let (meter, limits) = (&self.meter, self.limits);
        if self.output_over() {
            Some(LimitHit::Output)
        } else if meter.cpu >= limits.cpu {
            Some(LimitHit::Cpu)
        } else if meter.memory > limits.memory {
            Some(LimitHit::Memory)
        } else if meter.tasks > limits.processes {
            Some(LimitHit::Processes)
        } else {
            (now >= self.deadline).then_some(LimitHit::Wall)
        }
    }

    fn look(&mut self, interval: Duration) {
        if self.peak.is_none() {
            self.kills_before = kills_for_memory();
        }
        self.meter.look(interval);
        self.peak = self.peak.max(Some(self.meter.memory));
    }

    /// Whether it wanted a processor for half of the time and got next to none.
    fn starved(&self, elapsed: Duration) -> bool {
        starved(self.meter.waited, self.meter.cpu, elapsed, self.limits.cpu)
    }

    /// Whether the host has killed for want of memory meanwhile, and this box had little of it.
    fn host_without_memory(&self, peak: u64) -> bool {
        let rose = match (self.kills_before, kills_for_memory()) {
            (Some(before), Some(now)) => now > before,
            _ => false,
        };
        rose && peak < self.limits.memory / 2
    }

    fn kill(&mut self) {
        launch::kill(self.process);
        self.killed = true;
    }

    /// Waits for the end, and reads what is left.
    fn finish(mut self, buffer: &mut [u8]) -> Result<RunResult, BoxError> {
        // While it is not reaped, its number is its own: so the guard forgets it first.
        self.place.store(0, Ordering::Release);
        let reaped = launch::reap(self.process).map_err(|errno| BoxError::HostError("wait4", errno))?;
        // All writers are dead, so that everything is in the pipes: no need to wait for their end.
        self.read(buffer);
        self.meter.read_clock();
        let cpu = self.meter.cpu.max(reaped.cpu);
        let hit = self
            .hit
            .or_else(|| self.output_over().then_some(LimitHit::Output))
            .or_else(|| (cpu > self.limits.cpu).then_some(LimitHit::Cpu));
        let exit = if libc::WIFSIGNALED(reaped.status) {
            Exit::Signal(libc::WTERMSIG(reaped.status))
        } else {
            Exit::Code(libc::WEXITSTATUS(reaped.status))
        };
        let unexplained = exit == Exit::Signal(libc::SIGKILL) && hit.is_none() && !self.killed;
        if unexplained && self.host_without_memory(self.peak.unwrap_or(0).max(reaped.peak)) {
            return Err(BoxError::HostError(HOST_WITHOUT_MEMORY, libc::ENOMEM));
        }
        let [stdout, stderr] = self.streams.map(|stream| stream.map_or_else(Vec::new, |stream| stream.text));
        Ok(RunResult { exit, hit, stdout, stderr, cpu, wall: self.wall, peak_resident: self.peak })
    }
}

/// Whether a box that used `cpu` of its limit in `elapsed`, and waited so long for a processor, was kept from running by others.
fn starved(waited: Duration, cpu: Duration, elapsed: Duration, limit: Duration) -> bool {
    waited * 2 >= elapsed && cpu * 2 < limit
}

/// Watches boxes that belong together until the end of all. Where one is over a limit, all are ended.
pub(crate) fn watch<const N: usize>(running: [Running<'_>; N]) -> Result<[RunResult; N], BoxError> {
    let started = Instant::now();
    let mut boxes = Vec::with_capacity(N);
    let mut failure = None;
    for one in running {
        match &failure {
            None => match Watched::new(one, started) {
                Ok(watched) => boxes.push(watched),
                Err(error) => failure = Some(error),
            },
            Some(_) => one.end(),
        }
    }
    let mut starved = false;
    if failure.is_some() {
        boxes.iter_mut().for_each(Watched::kill);
    } else {
        starved = wait(&mut boxes, started);
    }
    let mut buffer = vec![0_u8; CHUNK];
    let mut results = Vec::with_capacity(N);
    for watched in boxes {
        match watched.finish(&mut buffer) {
            Ok(result) => results.push(result),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    match (failure, starved) {
        (Some(failure), _) => Err(failure),
        (None, true) => Err(BoxError::HostOverloaded),
        (None, false) => {
            results.try_into().map_err(|_| BoxError::HostError("a result is missing", libc::ECHILD))
        }
    }
}

/// Waits until all boxes have ended, by themselves or for a limit; tells whether they were kept from running.
fn wait(boxes: &mut [Watched<'_>], started: Instant) -> bool {
    let mut buffer = vec![0_u8; CHUNK];
    let (mut last, mut next) = (started, started + PERIOD);
    loop {
        let open = boxes.iter().filter(|watched| !watched.ended);
        let Some(deadline) = open.map(|watched| watched.deadline).min() else { return false };
        let wait = next.min(deadline).saturating_duration_since(Instant::now());
        poll(boxes, wait.as_millis() as i32 + 1);
        let now = Instant::now();
        for watched in boxes.iter_mut().filter(|watched| watched.ended && watched.wall.is_zero()) {
            watched.wall = now - started;
        }
        for watched in boxes.iter_mut().filter(|watched| !watched.ended) {
            watched.read(&mut buffer);
        }
        if now >= next || now >= deadline {
            for watched in boxes.iter_mut().filter(|watched| !watched.ended) {
                watched.look(now - last);
            }
            (last, next) = (now, now + PERIOD);
        }
        let mut hit = false;
        for watched in boxes.iter_mut().filter(|watched| !watched.ended) {
            watched.hit = watched.over(now);
            hit |= watched.hit.is_some();
        }
        if hit {
            let late = boxes.iter().any(|watched| watched.hit == Some(LimitHit::Wall));
            let starved = boxes.iter().any(|watched| watched.starved(now - started))
                && boxes.iter().all(|watched| watched.meter.cpu * 2 < watched.limits.cpu);
            for watched in boxes.iter_mut().filter(|watched| !watched.ended) {
                watched.kill();
            }
            while boxes.iter().any(|watched| !watched.ended) {
                poll(boxes, -1);
            }
            for watched in boxes.iter_mut().filter(|watched| watched.wall.is_zero()) {
                watched.wall = started.elapsed();
            }
            return late && starved;
        }
    }
}

/// Waits for output or for the end of a box, and notes who has ended. Once a box is killed, its output is of no interest.
fn poll(boxes: &mut [Watched<'_>], milliseconds: i32) {
    let entry = |fd: i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut entries = Vec::with_capacity(3 * boxes.len());
    for watched in boxes.iter() {
        // A negative descriptor is left out.
        entries.push(entry(if watched.ended { -1 } else { watched.end.as_raw_fd() }));
        for stream in &watched.streams {
            let open = stream.as_ref().filter(|stream| stream.open && !watched.killed && !watched.ended);
            entries.push(entry(open.map_or(-1, |stream| stream.fd.as_raw_fd())));
        }
    }
    loop {
        // SAFETY: the array outlives the call, and its length is told.
        let count = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, milliseconds) };
        if count >= 0 || sys::last_errno() != libc::EINTR {
            break;
        }
    }
    for (watched, entries) in boxes.iter_mut().zip(entries.chunks(3)) {
        watched.ended |= entries[0].revents != 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_is_told_from_a_starved_program() {
        let time = Duration::from_millis;
        let starved = |waited, cpu| starved(time(waited), time(cpu), time(10_000), time(2000));
        assert!(!starved(0, 10), "it slept");
        assert!(starved(9500, 300), "it wanted to run and could not");
        assert!(!starved(8000, 1500), "it has had most of its time");
        assert!(!starved(4000, 300), "it slept for most of the time");
    }
}
