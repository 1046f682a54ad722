//! Starts one box: prepares it, clones, and waits until the program has its own memory.

use crate::attack::AttackTable;
use crate::child::{BOX_FLAGS, BoxFile, BuildOptions, ChildSetup, MountStep, Step, enter, join};
use crate::filter::Filter;
use crate::namespaces::Namespaces;
use crate::sys::{self, Errno, Resource, call};
use crate::{BoxError, Isolation, usage};
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Which user a box has inside its user namespace.
pub(crate) const INSIDE: u32 = 1000;

const STACK: usize = 64 * 1024;

/// How long a box may take to be built. It takes about a millisecond; a host that needs this long is in trouble.
const SETUP: Duration = Duration::from_secs(20);

/// What a box is made of.
pub(crate) struct LaunchSpec<'a> {
    pub(crate) isolation: Isolation,
    /// The namespaces of the slot, where boxes have them.
    pub(crate) namespaces: Option<&'a Namespaces>,
    pub(crate) mounts: &'a [MountStep],
    pub(crate) files: &'a [BoxFile<'a>],
    pub(crate) work: &'a CStr,
    pub(crate) work_options: &'a CStr,
    pub(crate) descriptors: [i32; 3],
    /// The user and group outside that the box belongs to, where the engine is root.
    pub(crate) user: Option<u32>,
    pub(crate) limits: &'a [(Resource, u64)],
    pub(crate) landlock: Option<&'a OwnedFd>,
    pub(crate) filter: &'a Filter,
    pub(crate) arguments: &'a [CString],
    pub(crate) environment: &'a [CString],
    pub(crate) attacks: Option<&'a AttackTable>,
    /// Whether the guard knows that the engine is dead.
    pub(crate) engine_dead: &'a AtomicBool,
    /// Whether its CPU time is counted by a clock of its own.
    pub(crate) clock: bool,
}

/// A box that was started.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) process: i32,
    /// The clock of its CPU time, where the host allows one.
    pub(crate) clock: Option<OwnedFd>,
    /// Why there is no `/proc` in it, or 0.
    pub(crate) proc_errno: Errno,
}

/// Builds a box and starts its program. `place` receives the process before it runs, and is empty again after a failure.
pub(crate) fn start(plan: &LaunchSpec<'_>, place: &AtomicI32) -> Result<Started, BoxError> {
    let Some(executable) = plan.arguments.first() else {
        return Err(BoxError::Request("no program is named".into()));
    };
    let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(plan.arguments), pointers(plan.environment));
    let mut program =
        if plan.isolation == Isolation::None { Vec::new() } else { plan.filter.program.clone() };
    let namespaced = plan.namespaces.is_some();
    // One for the box; with namespaces one for the process that joins the namespaces and makes it.
    let mut stacks = vec![0_u128; 2 * STACK / 16];
    let tops = [stacks.as_mut_ptr_range().end, stacks.as_mut_ptr_range().start.wrapping_add(STACK / 16)];
    let setup = ChildSetup {
        mounts: plan.mounts,
        files: plan.files,
        work: plan.work,
        build: BuildOptions { work: plan.work_options, proc_errno: AtomicI32::new(0) },
        descriptors: plan.descriptors,
        user: plan.user.map(|user| if namespaced { (INSIDE, INSIDE) } else { (user, user) }),
        namespaces: plan.namespaces.map_or([-1; 3], Namespaces::descriptors),
        stack: tops[0].cast(),
        place,
        engine_dead: plan.engine_dead,
        limits: plan.limits,
        landlock: plan.landlock.map(AsRawFd::as_raw_fd),
        program: program.as_mut_ptr(),
        program_length: program.len(),
        own: plan.filter.own(),
        executable,
        arguments: &arguments,
        environment: &environment,
        attacks: plan.attacks,
        process: AtomicI32::new(0),
        joining: AtomicU32::new(1),
        shares_memory: AtomicU32::new(1),
        held: AtomicU32::new(u32::from(plan.clock)),
        step: AtomicU32::new(0),
        errno: AtomicI32::new(0),
    };
    let shared = (&raw const setup).cast_mut().cast();
    let mask = block_signals();
    // SAFETY: `join` and `enter` call nothing but the kernel, on stacks of their own. `setup`, what it borrows and the stacks live
    // until `joining` and `shares_memory` are 0, which the kernel sets when the processes have left our memory.
    let made = unsafe {
        let (none, word) = (std::ptr::null_mut::<libc::c_void>(), |word: &AtomicU32| word.as_ptr());
        if namespaced {
            let flags = libc::CLONE_VM | libc::CLONE_CHILD_CLEARTID;
            libc::clone(join, tops[1].cast(), flags, shared, none, none, word(&setup.joining))
        } else {
            libc::clone(
                enter,
                tops[0].cast(),
                BOX_FLAGS,
                shared,
                place.as_ptr(),
                none,
                word(&setup.shares_memory),
            )
        }
    };
    let errno = sys::last_errno();
    set_signals(mask);
    if made < 0 {
        place.store(0, Ordering::Release);
        return Err(BoxError::Setup { layer: Step::Clone.layer(), errno });
    }
    let deadline = Instant::now() + SETUP;
    let left = |word: &AtomicU32, process: i32| {
        while word.load(Ordering::Acquire) != 0 {
            let _ = sys::futex_wait(word, 1, 1000);
            if Instant::now() > deadline {
                kill(process);
            }
        }
    };
    let process = if namespaced {
        left(&setup.joining, made);
        let _ = reap(made);
        setup.process.load(Ordering::Acquire)
    } else {
        made
    };
    // Most of the box is built meanwhile; its program starts when the clock is there, so that it has all of its children.
    let clock = if plan.clock && process > 0 { usage::clock(process).ok() } else { None };
    setup.held.store(0, Ordering::Release);
    sys::futex_wake(&setup.held);
    if process > 0 {
        left(&setup.shares_memory, process);
    }
    let step = Step::of(setup.step.load(Ordering::Acquire));
    let errno = setup.errno.load(Ordering::Acquire);
    let complete = if plan.attacks.is_some() { Step::Ready } else { Step::Execute };
    if process <= 0 || errno != 0 || step != complete {
        place.store(0, Ordering::Release);
        if process > 0 {
            let _ = reap(process);
        }
        return Err(BoxError::Setup { layer: step.layer(), errno });
    }
    Ok(Started { process, clock, proc_errno: setup.build.proc_errno.load(Ordering::Acquire) })
}

/// The effective user or group of this process.
pub(crate) fn effective(number: libc::c_long) -> u32 {
    call(number, [0; 6]).map_or(u32::MAX, |id| id as u32)
}

/// Kills a box that has not been reaped, so that its number is still its own.
pub(crate) fn kill(process: i32) {
    let _ = call(libc::SYS_kill, [process as usize, libc::SIGKILL as usize, 0, 0, 0, 0]);
}

/// What is known of a process that has ended.
pub(crate) struct Reaped {
    pub(crate) status: i32,
    /// The CPU time of it and of all it waited for.
    pub(crate) cpu: Duration,
    /// The most bytes that it, or one that it waited for, had resident.
    pub(crate) peak: u64,
}

/// Waits for the end of a process.
pub(crate) fn reap(process: i32) -> Result<Reaped, Errno> {
    let mut status = 0_i32;
    // SAFETY: a struct of numbers, for which zero is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both places outlive the call.
        let waited = unsafe { libc::wait4(process, &raw mut status, libc::__WALL, &raw mut usage) };
        if waited == process {
            break;
        }
        match sys::last_errno() {
            libc::EINTR => {}
            errno => return Err(errno),
        }
    }
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_micros(time.tv_usec.unsigned_abs())
    };
    let peak = usage.ru_maxrss.unsigned_abs() << 10;
    Ok(Reaped { status, cpu: time(usage.ru_utime) + time(usage.ru_stime), peak })
}

/// Blocks all signals of this thread: a handler of the host must never run in a process that shares its memory.
pub(crate) fn block_signals() -> u64 {
    let (all, mut old) = (u64::MAX, 0_u64);
    let arguments = [libc::SIG_SETMASK as usize, &raw const all as usize, &raw mut old as usize, 8, 0, 0];
    let _ = call(libc::SYS_rt_sigprocmask, arguments);
    old
}

/// Restores what [`block_signals`] returned.
pub(crate) fn set_signals(mask: u64) {
    let arguments = [libc::SIG_SETMASK as usize, &raw const mask as usize, 0, 8, 0, 0];
    let _ = call(libc::SYS_rt_sigprocmask, arguments);
}
