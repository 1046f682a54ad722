//! What a new process does between `clone` and `execve`: namespaces, files, user, limits, Landlock, seccomp.
//!
//! The process shares the engine's memory until `execve`, so nothing here may allocate, panic, lock, or call the C library.
//! Everything it needs lies ready in a [`ChildSetup`]; what it found out, it leaves there.

use crate::attack::{self, AttackTable};
use crate::filter;
use crate::sys::{self, Errno, Resource, call, call_path};
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

/// What the new process was doing, in order; the last one begun tells which layer failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Step {
    Clone,
    Group,
    Identity,
    Mounts,
    Files,
    User,
    Limits,
    NoNewPrivileges,
    Landlock,
    Descriptors,
    Seccomp,
    Ready,
    Execute,
}

impl Step {
    /// The step of that number.
    pub(crate) fn of(number: u32) -> Self {
        Self::ALL.get(number as usize).copied().unwrap_or(Self::Clone)
    }

    const ALL: [Step; 13] = [
        Step::Clone,
        Step::Group,
        Step::Identity,
        Step::Mounts,
        Step::Files,
        Step::User,
        Step::Limits,
        Step::NoNewPrivileges,
        Step::Landlock,
        Step::Descriptors,
        Step::Seccomp,
        Step::Ready,
        Step::Execute,
    ];
}

/// One step of building the file system of a box with namespaces, prepared by the engine.
pub(crate) enum MountStep {
    /// Nothing that is mounted from now on is seen outside.
    Private,
    Tmpfs {
        at: CString,
        options: CString,
    },
    Folder(CString),
    EmptyFile(CString),
    Symlink {
        to: CString,
        at: CString,
    },
    Bind {
        from: CString,
        at: CString,
    },
    /// Makes a mount and all below it read-only.
    Protect(CString),
    /// The program's own folder, with the limits of the run.
    Work(CString),
    /// The processes of the box, over those of the host. Where the kernel refuses it, as it does in most containers, an empty
    /// folder.
    Proc(CString),
    /// Makes a mount the root, and lets go of all others.
    Root(CString),
    /// Gives the box a name of its own instead of the host's.
    HostName(CString),
}

/// What the steps of building need besides: for the folder of a box, and to tell why it has no `/proc`.
pub(crate) struct BuildOptions<'a> {
    pub(crate) work: &'a CStr,
    /// Why there is no `/proc`, or 0.
    pub(crate) proc_errno: AtomicI32,
}

/// A file that is put into the box.
pub(crate) struct BoxFile<'a> {
    pub(crate) path: CString,
    pub(crate) content: &'a [u8],
    pub(crate) executable: bool,
}

/// What the engine gives the new process, and what the process tells the engine: they share memory.
pub(crate) struct ChildSetup<'a> {
    pub(crate) mounts: &'a [MountStep],
    pub(crate) files: &'a [BoxFile<'a>],
    pub(crate) work: &'a CStr,
    pub(crate) build: BuildOptions<'a>,
    /// Standard input, output and errors; all above 2.
    pub(crate) descriptors: [i32; 3],
    /// User and group to become, where the engine may choose.
    pub(crate) user: Option<(u32, u32)>,
    /// The namespaces of the slot, for [`join`]: of users, of the network, of mounts.
    pub(crate) namespaces: [i32; 3],
    /// The stack of the box, for [`join`].
    pub(crate) stack: *mut libc::c_void,
    /// The entry of the box in the guard's table.
    pub(crate) place: &'a AtomicI32,
    /// Whether the engine is known to be dead.
    pub(crate) engine_dead: &'a AtomicBool,
    pub(crate) limits: &'a [(Resource, u64)],
    pub(crate) landlock: Option<i32>,
    pub(crate) program: *mut libc::sock_filter,
    pub(crate) program_length: usize,
    pub(crate) own: &'a [usize],
    pub(crate) executable: &'a CStr,
    pub(crate) arguments: &'a [*const libc::c_char],
    pub(crate) environment: &'a [*const libc::c_char],
    /// Makes the attacks of the self-test instead of running a program.
    pub(crate) attacks: Option<&'a AttackTable>,

    /// The box, once it was made.
    pub(crate) process: AtomicI32,
    /// Set to 0 by the kernel when the process that joins the namespaces is gone.
    pub(crate) joining: AtomicU32,
    /// Set to 0 by the kernel when the box no longer shares our memory.
    pub(crate) shares_memory: AtomicU32,
    /// 1 until the engine has opened the clock of the box.
    pub(crate) held: AtomicU32,
    pub(crate) step: AtomicU32,
    pub(crate) errno: AtomicI32,
}

/// The namespaces that each box has for itself. Those of users and of the network are its slot's: a network namespace
/// costs as much as all others together, and nothing can be done in it without sockets. That of mounts is a copy of its slot's.
const OWN_NAMESPACES: i32 =
    libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | libc::CLONE_NEWCGROUP;

/// The entry of the process that joins the namespaces of a slot, makes the box as its sibling, and ends.
pub(crate) extern "C" fn join(setup: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the engine keeps the `ChildSetup` alive until this process and the box have left its memory.
    let shared = unsafe { &*setup.cast::<ChildSetup<'_>>() };
    shared.step.store(Step::Identity as u32, Ordering::Release);
    let [users, network, mounts] = shared.namespaces;
    let kinds = [(users, libc::CLONE_NEWUSER), (network, libc::CLONE_NEWNET), (mounts, libc::CLONE_NEWNS)];
    for (namespace, kind) in kinds {
        if let Err(errno) = call(libc::SYS_setns, [namespace as usize, kind as usize, 0, 0, 0, 0]) {
            shared.errno.store(errno, Ordering::Release);
            sys::exit(127);
        }
    }
    shared.step.store(Step::Clone as u32, Ordering::Release);
    let flags = BOX_FLAGS | libc::CLONE_PARENT | OWN_NAMESPACES;
    // SAFETY: as for this process: `enter` calls nothing but the kernel, on a stack of its own. The C library writes `errno`
    // of the engine's thread, which waits for us without looking at it.
    let process = unsafe {
        libc::clone(
            enter,
            shared.stack,
            flags,
            setup,
            shared.place.as_ptr(),
            std::ptr::null_mut::<libc::c_void>(),
            shared.shares_memory.as_ptr(),
        )
    };
    if process < 0 {
        shared.errno.store(sys::last_errno(), Ordering::Release);
    }
    shared.process.store(process, Ordering::Release);
    sys::exit(0)
}

/// How a box is cloned: it shares our memory, tells its number before it runs, and the kernel tells when it has left.
pub(crate) const BOX_FLAGS: i32 =
    libc::CLONE_VM | libc::CLONE_PARENT_SETTID | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD;

/// The entry of a box.
pub(crate) extern "C" fn enter(setup: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the engine keeps the `ChildSetup` alive until this process has its own memory or is gone.
    let setup = unsafe { &*setup.cast::<ChildSetup<'_>>() };
    if let Err(errno) = child_main(setup) {
        setup.errno.store(errno, Ordering::Release);
    }
    sys::exit(127)
}

fn child_main(setup: &ChildSetup<'_>) -> Result<(), Errno> {
    let begin = |step: Step| setup.step.store(step as u32, Ordering::Release);

    begin(Step::Group);
    die_with_engine()?;
    // A group of its own, but not a session: the kernel shares processors between sessions (autogroup), and a box must not
    // get as much as the whole trainer.
    call(libc::SYS_setpgid, [0; 6])?;

    // The guard sets this before it reads its table, and our number stood there before we ran: one of us sees the other.
    if setup.engine_dead.load(Ordering::SeqCst) {
        return Err(libc::ECANCELED);
    }

    begin(Step::Mounts);
    for step in setup.mounts {
        build(step, &setup.build)?;
    }

    begin(Step::Files);
    call_path(libc::SYS_chdir, setup.work, [0; 5])?;
    for file in setup.files {
        sys::write_file(&file.path, file.content, if file.executable { 0o755 } else { 0o644 })?;
    }

    begin(Step::User);
    if let Some((user, group)) = setup.user {
        let (user, group) = (user as usize, group as usize);
        call(libc::SYS_setgroups, [0; 6])?;
        call(libc::SYS_setresgid, [group, group, group, 0, 0, 0])?;
        call(libc::SYS_setresuid, [user, user, user, 0, 0, 0])?;
    }
    drop_capabilities()?;

    begin(Step::Limits);
    for (resource, limit) in setup.limits {
        limit_to(*resource, *limit)?;
    }

    begin(Step::NoNewPrivileges);
    call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0, 0])?;

    begin(Step::Landlock);
    if let Some(rules) = setup.landlock {
        call(libc::SYS_landlock_restrict_self, [rules as usize, 0, 0, 0, 0, 0])?;
    }

    begin(Step::Descriptors);
    for (target, fd) in setup.descriptors.iter().enumerate() {
        call(libc::SYS_dup3, [*fd as usize, target, 0, 0, 0, 0])?;
    }
    call(libc::SYS_close_range, [3, u32::MAX as usize, 0, 0, 0, 0])?;
    restore_signals()?;
    // A change of user clears it.
    die_with_engine()?;

    begin(Step::Seccomp);
    if setup.program_length > 0 {
        let own = call(libc::SYS_getpid, [0; 6])? as u32;
        // SAFETY: the engine made this copy of the filter for this process and does not touch it meanwhile.
        let program = unsafe { std::slice::from_raw_parts_mut(setup.program, setup.program_length) };
        filter::Filter::set_own_process(program, setup.own, own);
        filter::install(program)?;
    }

    begin(Step::Ready);
    if let Some(table) = setup.attacks {
        attack::make(table);
        sys::exit(0);
    }
    begin(Step::Execute);
    while setup.held.load(Ordering::Acquire) != 0 {
        let _ = sys::futex_wait(&setup.held, 1, 1000);
    }
    let (arguments, environment) = (setup.arguments.as_ptr() as usize, setup.environment.as_ptr() as usize);
    call_path(libc::SYS_execve, setup.executable, [arguments, environment, 0, 0, 0]).map(|_| ())
}

/// The kernel kills this process when the thread that made it ends.
pub(crate) fn die_with_engine() -> Result<(), Errno> {
    call(libc::SYS_prctl, [libc::PR_SET_PDEATHSIG as usize, libc::SIGKILL as usize, 0, 0, 0, 0]).map(|_| ())
}

/// Does one step of building a file system.
pub(crate) fn build(step: &MountStep, options: &BuildOptions<'_>) -> Result<(), Errno> {
    match step {
        MountStep::Private => sys::mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE, None),
        MountStep::Tmpfs { at, options } => {
            let flags = libc::MS_NOSUID | libc::MS_NODEV;
            sys::mount(Some(c"tmpfs"), at, Some(c"tmpfs"), flags, Some(options))
        }
        MountStep::Work(at) => {
            let flags = libc::MS_NOSUID | libc::MS_NODEV;
            sys::mount(Some(c"tmpfs"), at, Some(c"tmpfs"), flags, Some(options.work))
        }
        MountStep::Folder(at) => {
            let here = libc::AT_FDCWD as isize as usize;
            match call(libc::SYS_mkdirat, [here, at.as_ptr() as usize, 0o755, 0, 0, 0]) {
                Ok(_) | Err(libc::EEXIST) => Ok(()),
                Err(errno) => Err(errno),
            }
        }
        MountStep::EmptyFile(at) => sys::write_file(at, &[], 0o444),
        MountStep::Symlink { to, at } => {
            let here = libc::AT_FDCWD as isize as usize;
            call(libc::SYS_symlinkat, [to.as_ptr() as usize, here, at.as_ptr() as usize, 0, 0, 0]).map(|_| ())
        }
        MountStep::Bind { from, at } => sys::mount(Some(from), at, None, libc::MS_BIND | libc::MS_REC, None),
        MountStep::Protect(at) => sys::protect(at),
        MountStep::Proc(at) => {
            // Read-only: a write to `/proc/self/autogroup` would slow down the session of the engine, which the box shares.
            let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RDONLY;
            let mount = |options| sys::mount(Some(c"proc"), at, Some(c"proc"), flags, options);
            let Err(errno) = mount(Some(c"subset=pid")).or_else(|_| mount(None)) else { return Ok(()) };
            options.proc_errno.store(errno, Ordering::Release);
            sys::mount(Some(c"tmpfs"), at, Some(c"tmpfs"), flags, Some(c"size=4k,nr_inodes=1,mode=555"))
        }
        MountStep::HostName(name) => {
            call_path(libc::SYS_sethostname, name, [name.count_bytes(), 0, 0, 0, 0]).map(|_| ())
        }
        MountStep::Root(at) => {
            call_path(libc::SYS_chdir, at, [0; 5])?;
            // The old root ends on top of the new one, from where it is let go.
            let here = c".".as_ptr() as usize;
            call(libc::SYS_pivot_root, [here, here, 0, 0, 0, 0])?;
            call(libc::SYS_umount2, [here, libc::MNT_DETACH as usize, 0, 0, 0, 0])?;
            call_path(libc::SYS_chdir, c"/", [0; 5]).map(|_| ())
        }
    }
}

/// Gives up the capabilities that come with a user namespace.
fn drop_capabilities() -> Result<(), Errno> {
    // struct __user_cap_header_struct, version 3; then two of __user_cap_data_struct.
    let header: [u32; 2] = [0x2008_0522, 0];
    let none: [u32; 6] = [0; 6];
    call(libc::SYS_capset, [header.as_ptr() as usize, none.as_ptr() as usize, 0, 0, 0, 0]).map(|_| ())
}

/// Sets both limits, or the soft one alone where the hard one is lower already.
fn limit_to(resource: Resource, limit: u64) -> Result<(), Errno> {
    sys::set_limit(resource, limit, limit).or_else(|errno| {
        let mut now: [u64; 2] = [0; 2];
        let arguments = [0, resource as usize, 0, now.as_mut_ptr() as usize, 0, 0];
        call(libc::SYS_prlimit64, arguments)?;
        if now[1] <= limit { sys::set_limit(resource, now[1], now[1]) } else { Err(errno) }
    })
}

/// Default actions for all signals, then none blocked: a program must not inherit what its host ignores.
fn restore_signals() -> Result<(), Errno> {
    // struct kernel_sigaction: handler, flags, restorer, mask.
    let default: [usize; 4] = [0; 4];
    let unblocked: u64 = 0;
    for signal in 1..=64 {
        // SIGKILL and SIGSTOP cannot be changed, and need not be.
        let _ = call(libc::SYS_rt_sigaction, [signal, default.as_ptr() as usize, 0, 8, 0, 0]);
    }
    let arguments = [libc::SIG_SETMASK as usize, &raw const unblocked as usize, 0, 8, 0, 0];
    call(libc::SYS_rt_sigprocmask, arguments).map(|_| ())
}
