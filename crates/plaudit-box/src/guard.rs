//! The guard: a process that kills the boxes of an engine which was itself killed.
//!
//! Each box asks the kernel for a signal at the engine's death, but a program can lose that death signal: a thread of it that calls
//! `execve` takes the place of the process and brings none along. The guard keeps its own. It is one process for all
//! boxes, made with `CLONE_VM`: it costs no copy of the engine's memory and finds the boxes in a table that it shares. It
//! sleeps until the thread that made it is gone, by `kill -9`, by an end or by `execve`, kills what the table names, and ends.

use crate::sys::{self, Errno, call};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::thread::JoinHandle;

/// The processes of the boxes that run now, one place for each slot; 0 where none does.
pub(crate) type BoxTable = Arc<[AtomicI32]>;

/// What the guard reads, in memory that it shares with the engine.
struct Watch {
    boxes: BoxTable,
    engine_dead: Arc<AtomicBool>,
    engine: usize,
    ready: AtomicU32,
}

/// Owns the guard; it ends with this.
pub(crate) struct Guard {
    process: Arc<AtomicI32>,
    /// Set by the guard before it looks for boxes.
    pub(crate) engine_dead: Arc<AtomicBool>,
    stopping: Arc<AtomicBool>,
    owner: u32,
    respawner: Option<JoinHandle<()>>,
}

const STACK: usize = 16 * 1024;

impl Guard {
    /// Starts the guard, and a thread that starts it again if somebody kills it.
    pub(crate) fn start(boxes: BoxTable) -> Result<Self, Errno> {
        let process = Arc::new(AtomicI32::new(0));
        let stopping = Arc::new(AtomicBool::new(false));
        let engine_dead = Arc::new(AtomicBool::new(false));
        let told_dead = Arc::clone(&engine_dead);
        let (told, tell) = std::sync::mpsc::channel();
        let (shared_process, shared_stopping) = (Arc::clone(&process), Arc::clone(&stopping));
        let respawner = std::thread::Builder::new()
            .name("box-guard".into())
            .stack_size(64 * 1024)
            .spawn(move || {
                let watch = Watch {
                    boxes,
                    engine_dead: told_dead,
                    engine: std::process::id() as usize,
                    ready: AtomicU32::new(0),
                };
                while !shared_stopping.load(Ordering::Acquire) {
                    let mut stack = vec![0_u128; STACK / 16].into_boxed_slice();
                    match start_process(&watch, &mut stack) {
                        Ok(pid) => {
                            shared_process.store(pid, Ordering::Release);
                            let _ = told.send(Ok(()));
                            wait_for(pid);
                        }
                        Err(errno) => {
                            let _ = told.send(Err(errno));
                            return;
                        }
                    }
                }
            })
            .map_err(|error| error.raw_os_error().unwrap_or(libc::EAGAIN))?;
        match tell.recv() {
            Ok(Ok(())) => Ok(Self {
                process,
                engine_dead,
                stopping,
                owner: std::process::id(),
                respawner: Some(respawner),
            }),
            Ok(Err(errno)) => Err(errno),
            Err(_) => Err(libc::EAGAIN),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // A process that a host has forked has a copy of this, but neither the guard nor its respawner.
        if std::process::id() != self.owner {
            return;
        }
        self.stopping.store(true, Ordering::Release);
        let pid = self.process.load(Ordering::Acquire);
        let _ = call(libc::SYS_kill, [pid as usize, libc::SIGTERM as usize, 0, 0, 0, 0]);
        if let Some(respawner) = self.respawner.take() {
            let _ = respawner.join();
        }
    }
}

fn start_process(watch: &Watch, stack: &mut [u128]) -> Result<i32, Errno> {
    watch.ready.store(0, Ordering::Release);
    let top = stack.as_mut_ptr_range().end;
    let argument = (watch as *const Watch).cast_mut();
    let mask = crate::launch::block_signals();
    // SAFETY: `guard` calls nothing but the kernel, on a stack of its own, and both outlive it: the respawner waits for its end.
    // No exit signal, so that a host's own `wait` never sees it.
    let pid = unsafe { libc::clone(guard, top.cast(), libc::CLONE_VM, argument.cast()) };
    let errno = sys::last_errno();
    crate::launch::set_signals(mask);
    if pid < 0 {
        return Err(errno);
    }
    while watch.ready.load(Ordering::Acquire) == 0 {
        let _ = sys::futex_wait(&watch.ready, 0, 100);
    }
    Ok(pid)
}

fn wait_for(pid: i32) {
    const CLONE_CHILDREN: usize = 0x8000_0000;
    while call(libc::SYS_wait4, [pid as usize, 0, CLONE_CHILDREN, 0, 0, 0]) == Err(libc::EINTR) {}
}

/// The guard itself. All signals are blocked here, and stay so.
extern "C" fn guard(watch: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the respawner's thread owns the `Watch` and waits for this process; where it is killed, its memory stays ours.
    let watch = unsafe { &*watch.cast::<Watch>() };
    let _ = call(libc::SYS_setsid, [0; 6]);
    let _ = call(libc::SYS_prctl, [libc::PR_SET_PDEATHSIG as usize, libc::SIGTERM as usize, 0, 0, 0, 0]);
    let _ =
        call(libc::SYS_prctl, [libc::PR_SET_NAME as usize, c"plaudit-guard".as_ptr() as usize, 0, 0, 0, 0]);
    // The engine's sockets and files must not live longer by us.
    let _ = call(libc::SYS_close_range, [0, u32::MAX as usize, 0, 0, 0, 0]);
    watch.ready.store(1, Ordering::Release);
    sys::futex_wake(&watch.ready);
    let set: u64 = 1 << (libc::SIGTERM - 1);
    let time: [u64; 2] = [1, 0];
    let arguments = [&raw const set as usize, 0, time.as_ptr() as usize, 8, 0, 0];
    while call(libc::SYS_rt_sigtimedwait, arguments) != Ok(libc::SIGTERM as usize)
        && call(libc::SYS_getppid, [0; 6]) == Ok(watch.engine)
    {}
    if call(libc::SYS_getppid, [0; 6]) != Ok(watch.engine) {
        watch.engine_dead.store(true, Ordering::SeqCst);
    }
    for process in watch.boxes.iter() {
        let process = process.load(Ordering::SeqCst);
        if process > 0 {
            let _ = call(libc::SYS_kill, [process as usize, libc::SIGKILL as usize, 0, 0, 0, 0]);
        }
    }
    sys::exit(0)
}
