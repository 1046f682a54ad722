//! The namespaces that all boxes of a slot start from, kept by descriptors: users, network, and the file system's fixed part.
//!
//! A process makes them once, waits until the engine has opened them, and ends. Each box joins them and has its own of all other
//! kinds, and its own copy of the mounts. So a box does not pay for an empty network and for binding the system's folders, and
//! the kernel counts the processes of a slot by themselves, as it does for each namespace of users.

use crate::child::{BuildOptions, MountStep, Step, build, die_with_engine};
use crate::job::BoxError;
use crate::launch::{self, INSIDE, block_signals, set_signals};
use crate::sys::{self, Errno};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Descriptors of the namespaces of a slot.
#[derive(Debug)]
pub(crate) struct Namespaces {
    all: [OwnedFd; 3],
}

/// What the engine shares with the process that makes the namespaces.
struct Template<'a> {
    mounts: &'a [MountStep],
    build: BuildOptions<'a>,
    /// 0: wait; 1: the maps are written; 2: end.
    go: AtomicU32,
    /// 0: not yet; 1: the namespaces are made, or cannot be.
    done: AtomicU32,
    shares_memory: AtomicU32,
    step: AtomicU32,
    errno: AtomicI32,
}

const STACK: usize = 64 * 1024;
const PATIENCE: Duration = Duration::from_secs(20);

impl Namespaces {
    /// Makes the namespaces of a slot whose boxes belong to `user`, or to ourselves.
    pub(crate) fn new(mounts: &[MountStep], user: Option<u32>) -> Result<Self, BoxError> {
        let template = Template {
            mounts,
            build: BuildOptions { work: c"", proc_errno: AtomicI32::new(0) },
            go: AtomicU32::new(0),
            done: AtomicU32::new(0),
            shares_memory: AtomicU32::new(1),
            step: AtomicU32::new(Step::Identity as u32),
            errno: AtomicI32::new(0),
        };
        let mut stack = vec![0_u128; STACK / 16];
        let flags = libc::CLONE_VM
            | libc::CLONE_CHILD_CLEARTID
            | libc::CLONE_NEWUSER
            | libc::CLONE_NEWNET
            | libc::CLONE_NEWNS;
        let mask = block_signals();
        // SAFETY: `prepare` calls nothing but the kernel, on a stack of its own. The template and the stack live until
        // `shares_memory` is 0, which the kernel sets when the process is gone.
        let process = unsafe {
            libc::clone(
                prepare,
                stack.as_mut_ptr_range().end.cast(),
                flags,
                (&raw const template).cast_mut().cast(),
                std::ptr::null_mut::<libc::pid_t>(),
                std::ptr::null_mut::<libc::c_void>(),
                template.shares_memory.as_ptr(),
            )
        };
        let errno = sys::last_errno();
        set_signals(mask);
        if process < 0 {
            return Err(BoxError::Setup { layer: Step::Clone.layer(), errno });
        }
        let tell = |value| {
            template.go.store(value, Ordering::Release);
            sys::futex_wake(&template.go);
        };
        let mapped = write_maps(process, user);
        tell(if mapped.is_ok() { 1 } else { 2 });
        let deadline = Instant::now() + PATIENCE;
        let over = |word: &AtomicU32, value: u32| {
            while word.load(Ordering::Acquire) == value {
                let _ = sys::futex_wait(word, value, 1000);
                if Instant::now() > deadline {
                    launch::kill(process);
                    return;
                }
            }
        };
        over(&template.done, 0);
        let errno = template.errno.load(Ordering::Acquire);
        let opened = if mapped.is_ok() && errno == 0 { open_all(process) } else { Err(libc::ECHILD) };
        tell(2);
        while template.shares_memory.load(Ordering::Acquire) != 0 {
            let _ = sys::futex_wait(&template.shares_memory, 1, 1000);
        }
        let _ = launch::reap(process);
        let step = Step::of(template.step.load(Ordering::Acquire));
        let setup = |step: Step| move |errno| BoxError::Setup { layer: step.layer(), errno };
        mapped.map_err(setup(Step::Identity))?;
        if errno != 0 {
            return Err(setup(step)(errno));
        }
        opened.map(|all| Self { all }).map_err(setup(Step::Identity))
    }

    /// The descriptors, in the order in which they are joined.
    pub(crate) fn descriptors(&self) -> [i32; 3] {
        [0, 1, 2].map(|index: usize| self.all[index].as_raw_fd())
    }
}

fn open_all(process: i32) -> Result<[OwnedFd; 3], Errno> {
    let open = |name: &str| {
        std::fs::File::open(format!("/proc/{process}/ns/{name}"))
            .map(OwnedFd::from)
            .map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
    };
    Ok([open("user")?, open("net")?, open("mnt")?])
}

/// Says who the users of a new user namespace are outside: as root its builder and the boxes' own user, else ourselves.
fn write_maps(process: i32, user: Option<u32>) -> Result<(), Errno> {
    let write = |name: &str, text: &str| {
        std::fs::write(format!("/proc/{process}/{name}"), text)
            .map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
    };
    let (own_user, own_group) = (launch::effective(libc::SYS_geteuid), launch::effective(libc::SYS_getegid));
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

/// The entry of the process that makes the namespaces.
extern "C" fn prepare(template: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the engine keeps the `Template` alive until this process is gone.
    let template = unsafe { &*template.cast::<Template<'_>>() };
    if let Err(errno) = made(template) {
        template.errno.store(errno, Ordering::Release);
    }
    template.done.store(1, Ordering::Release);
    sys::futex_wake(&template.done);
    wait_for(template, 2);
    sys::exit(0)
}

fn made(template: &Template<'_>) -> Result<(), Errno> {
    die_with_engine()?;
    if wait_for(template, 1) != 1 {
        return Err(libc::ECANCELED);
    }
    template.step.store(Step::Mounts as u32, Ordering::Release);
    template.mounts.iter().try_for_each(|step| build(step, &template.build))
}

/// Waits until the engine says this or more; a process whose engine is dead does not wait for long.
fn wait_for(template: &Template<'_>, value: u32) -> u32 {
    for _ in 0..PATIENCE.as_secs() {
        let now = template.go.load(Ordering::Acquire);
        if now >= value {
            return now;
        }
        let _ = sys::futex_wait(&template.go, now, 1000);
    }
    template.go.load(Ordering::Acquire)
}
