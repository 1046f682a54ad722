//! Starts one box: prepares its birth, clones, maps its users, and waits until the program has its own memory.

use crate::attack::AttackTable;
use crate::child::{Birth, BoxFile, MountStep, Step, enter};
use crate::filter::Filter;
use crate::sys::{self, Errno, call};
use crate::{BoxFailure, Tier};
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Which user a box has inside its user namespace.
pub(crate) const INSIDE: u32 = 1000;

const STACK: usize = 64 * 1024;

/// How long a box may take to be built. It takes about a millisecond; a host that needs this long is in trouble.
const SETUP: Duration = Duration::from_secs(20);

/// The namespaces of tier A.
const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// What a box is made of.
pub(crate) struct Blueprint<'a> {
    pub(crate) tier: Tier,
    pub(crate) mounts: &'a [MountStep],
    pub(crate) files: &'a [BoxFile<'a>],
    pub(crate) work: &'a CStr,
    pub(crate) work_options: &'a CStr,
    pub(crate) descriptors: [i32; 3],
    /// The user and group outside that the box belongs to, where the engine is root.
    pub(crate) user: Option<u32>,
    pub(crate) limits: &'a [(u32, u64)],
    pub(crate) landlock: Option<&'a OwnedFd>,
    pub(crate) filter: &'a Filter,
    pub(crate) arguments: &'a [CString],
    pub(crate) environment: &'a [CString],
    pub(crate) attacks: Option<&'a AttackTable>,
}

/// A box that was started.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) process: i32,
    /// Why there is no `/proc` in it, or 0.
    pub(crate) proc_errno: Errno,
}

/// Builds a box and starts its program. `place` receives the process before it runs, and is empty again after a failure.
pub(crate) fn start(plan: &Blueprint<'_>, place: &AtomicI32) -> Result<Started, BoxFailure> {
    let Some(executable) = plan.arguments.first() else {
        return Err(BoxFailure::Request("no program is named".into()));
    };
    let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(plan.arguments), pointers(plan.environment));
    let mut program = if plan.tier == Tier::None { Vec::new() } else { plan.filter.program.clone() };
    let namespaced = plan.tier == Tier::A;
    let birth = Birth {
        mounts: if namespaced { plan.mounts } else { &[] },
        files: plan.files,
        work: plan.work,
        work_options: plan.work_options,
        descriptors: plan.descriptors,
        user: plan.user.map(|user| if namespaced { (INSIDE, INSIDE) } else { (user, user) }),
        waits_for_maps: namespaced,
        limits: plan.limits,
        landlock: plan.landlock.map(AsRawFd::as_raw_fd),
        program: program.as_mut_ptr(),
        program_length: program.len(),
        own: plan.filter.own(),
        executable,
        arguments: &arguments,
        environment: &environment,
        attacks: plan.attacks,
        go: AtomicU32::new(0),
        shares_memory: AtomicU32::new(1),
        step: AtomicU32::new(0),
        errno: AtomicI32::new(0),
        proc_errno: AtomicI32::new(0),
    };
    let mut stack = vec![0_u128; STACK / 16];
    let flags = libc::CLONE_VM
        | libc::CLONE_PARENT_SETTID
        | libc::CLONE_CHILD_CLEARTID
        | libc::SIGCHLD
        | if namespaced { NAMESPACES } else { 0 };
    let mask = block_signals();
    // SAFETY: `enter` calls nothing but the kernel, on a stack of its own. `birth`, what it borrows and the stack live until
    // `shares_memory` is 0, which the kernel sets when the process has left our memory.
    let process = unsafe {
        libc::clone(
            enter,
            stack.as_mut_ptr_range().end.cast(),
            flags,
            (&raw const birth).cast_mut().cast(),
            place.as_ptr(),
            std::ptr::null_mut::<libc::c_void>(),
            birth.shares_memory.as_ptr(),
        )
    };
    let errno = sys::last_errno();
    set_signals(mask);
    if process < 0 {
        place.store(0, Ordering::Release);
        return Err(BoxFailure::Setup { layer: Step::Clone.layer(), errno });
    }
    let maps = if namespaced { write_maps(process, plan.user) } else { Ok(()) };
    birth.go.store(if maps.is_ok() { 1 } else { 2 }, Ordering::Release);
    sys::futex_wake(&birth.go);

    let deadline = Instant::now() + SETUP;
    while birth.shares_memory.load(Ordering::Acquire) != 0 {
        let _ = sys::futex_wait(&birth.shares_memory, 1, 1000);
        if Instant::now() > deadline {
            kill(process);
        }
    }
    let step = Step::ALL.get(birth.step.load(Ordering::Acquire) as usize).copied().unwrap_or(Step::Clone);
    let errno = birth.errno.load(Ordering::Acquire);
    let complete = if plan.attacks.is_some() { Step::Ready } else { Step::Execute };
    let failure = match maps {
        Err(errno) => Some((Step::Identity, errno)),
        Ok(()) if errno != 0 || step != complete => Some((step, errno)),
        Ok(()) => None,
    };
    if let Some((step, errno)) = failure {
        place.store(0, Ordering::Release);
        let _ = reap(process);
        return Err(BoxFailure::Setup { layer: step.layer(), errno });
    }
    Ok(Started { process, proc_errno: birth.proc_errno.load(Ordering::Acquire) })
}

/// Says who the users of a new user namespace are outside: as root its builder and the box's own user, else ourselves.
fn write_maps(process: i32, user: Option<u32>) -> Result<(), Errno> {
    let write = |name: &str, text: &str| {
        std::fs::write(format!("/proc/{process}/{name}"), text)
            .map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
    };
    let (own_user, own_group) = (effective(libc::SYS_geteuid), effective(libc::SYS_getegid));
    match user {
        Some(user) => {
            write("uid_map", &format!("0 {own_user} 1\n{INSIDE} {user} 1\n"))?;
            write("gid_map", &format!("0 {own_group} 1\n{INSIDE} {user} 1\n"))
        }
        None => {
            write("setgroups", "deny")?;
            write("uid_map", &format!("{INSIDE} {own_user} 1\n"))?;
            write("gid_map", &format!("{INSIDE} {own_group} 1\n"))
        }
    }
}

/// The effective user or group of this process.
pub(crate) fn effective(number: libc::c_long) -> u32 {
    call(number, [0; 6]).map_or(u32::MAX, |id| id as u32)
}

/// Kills a box that has not been reaped, so that its number is still its own.
pub(crate) fn kill(process: i32) {
    let _ = call(libc::SYS_kill, [process as usize, libc::SIGKILL as usize, 0, 0, 0, 0]);
}

/// Waits for the end of a process: its status and the CPU time of it and of all it waited for.
pub(crate) fn reap(process: i32) -> Result<(i32, Duration), Errno> {
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
    Ok((status, time(usage.ru_utime) + time(usage.ru_stime)))
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
