//! Watches a running box: reads its output, enforces the limits of time, memory and processes, and waits for its end.

use crate::job::{BoxFailure, Exit, LimitHit, Limits, RunResult};
use crate::sys::{call, last_errno};
use crate::usage::{self, Usage};
use crate::{launch, sys};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// How often a box is looked at. Most end before the first time.
const PERIOD: Duration = Duration::from_millis(50);

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

/// What was seen of a box while it ran.
#[derive(Default)]
struct Samples {
    count: u32,
    runnable: u32,
    peak: Option<u64>,
    last: Usage,
}

impl Samples {
    fn take(&mut self, process: i32) {
        self.last = usage::of_tree(process);
        self.count += 1;
        self.runnable += u32::from(self.last.runnable);
        self.peak = self.peak.max(Some(self.last.resident));
    }

    /// Whether the program wanted a processor for most of its time and got next to none of it.
    fn starved(&self, limits: &Limits) -> bool {
        self.runnable * 2 >= self.count && self.last.cpu * 2 < limits.cpu
    }
}

/// Watches a box until its end. `place` is its entry in the guard's table.
pub(crate) fn watch(
    process: i32,
    place: &AtomicI32,
    limits: &Limits,
    stdout: OwnedFd,
    stderr: OwnedFd,
) -> Result<RunResult, BoxFailure> {
    let started = Instant::now();
    let ended = match call(libc::SYS_pidfd_open, [process as usize, 0, 0, 0, 0, 0]) {
        // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
        Ok(fd) => unsafe { OwnedFd::from_raw_fd(fd as i32) },
        Err(errno) => {
            launch::kill(process);
            place.store(0, Ordering::Release);
            let _ = launch::reap(process);
            return Err(BoxFailure::Lost("pidfd_open", errno));
        }
    };
    let mut streams = [Stream::new(stdout, limits.output), Stream::new(stderr, limits.errors)];
    let mut buffer = vec![0_u8; CHUNK];
    let mut samples = Samples::default();
    let mut hit = None;
    let mut starved = false;
    let deadline = started + limits.wall();
    let mut next = started + PERIOD;
    loop {
        let now = Instant::now();
        let wait = next.min(deadline).saturating_duration_since(now);
        if poll(&streams, &ended, wait.as_millis() as i32 + 1) {
            break;
        }
        for stream in &mut streams {
            stream.read(&mut buffer);
        }
        let now = Instant::now();
        if now >= next || now >= deadline {
            samples.take(process);
            next = now + PERIOD;
        }
        let last = &samples.last;
        hit = if streams[0].over {
            Some(LimitHit::Output)
        } else if last.cpu >= limits.cpu {
            Some(LimitHit::Cpu)
        } else if last.resident > limits.memory {
            Some(LimitHit::Memory)
        } else if last.tasks > limits.processes {
            Some(LimitHit::Processes)
        } else if now >= deadline {
            starved = samples.starved(limits);
            Some(LimitHit::Wall)
        } else {
            None
        };
        if hit.is_some() {
            launch::kill(process);
            poll(&[], &ended, -1);
            break;
        }
    }
    let wall = started.elapsed();
    // While it is not reaped, its number is its own: so the guard forgets it first.
    place.store(0, Ordering::Release);
    let (status, cpu) = launch::reap(process).map_err(|errno| BoxFailure::Lost("wait4", errno))?;
    // All writers are dead, so that everything is in the pipes: no need to wait for their end.
    for stream in &mut streams {
        stream.read(&mut buffer);
    }
    if starved {
        return Err(BoxFailure::HostOverloaded);
    }
    let [stdout, stderr] = streams;
    let hit = hit
        .or_else(|| stdout.over.then_some(LimitHit::Output))
        .or_else(|| (cpu > limits.cpu).then_some(LimitHit::Cpu));
    let exit = if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    };
    Ok(RunResult {
        exit,
        hit,
        stdout: stdout.text,
        stderr: stderr.text,
        cpu,
        wall,
        peak_resident: samples.peak,
    })
}

/// Waits for output or for the end; tells whether the end has come.
fn poll(streams: &[Stream], ended: &OwnedFd, milliseconds: i32) -> bool {
    let entry = |fd: i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // A negative descriptor is left out.
    let mut entries = [entry(ended.as_raw_fd()), entry(-1), entry(-1)];
    for (entry, stream) in entries[1..].iter_mut().zip(streams) {
        entry.fd = if stream.open { stream.fd.as_raw_fd() } else { -1 };
    }
    loop {
        // SAFETY: the array outlives the call, and its length is told.
        let count = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, milliseconds) };
        if count >= 0 || sys::last_errno() != libc::EINTR {
            return entries[0].revents != 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_is_told_from_a_starved_program() {
        let limits = Limits { cpu: Duration::from_secs(2), ..Limits::default() };
        let seen = |runnable, cpu| Samples {
            count: 200,
            runnable,
            peak: None,
            last: Usage { cpu: Duration::from_millis(cpu), ..Usage::default() },
        };
        assert!(!seen(0, 10).starved(&limits), "it slept");
        assert!(seen(190, 300).starved(&limits), "it wanted to run and could not");
        assert!(!seen(190, 1500).starved(&limits), "it has had most of its time");
    }
}
