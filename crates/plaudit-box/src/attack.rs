//! The self-test of an isolation: attacks made from inside a box, each of which must fail.
//!
//! They are made by raw system calls in the place of a program, so that they need no interpreter and take less than a
//! millisecond. An isolation in which one succeeds is not used.

use crate::sys::{self, Errno, call};
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicI32, Ordering};

/// What an attack aims at, and how each ended.
pub(crate) struct AttackTable {
    pub(crate) engine: u32,
    /// A readable file outside the box.
    pub(crate) secret: CString,
    /// A path outside the box where a file could be made.
    pub(crate) escape: CString,
    /// `/proc/ENGINE/environ`.
    pub(crate) environment: CString,
    /// Whether the isolation refuses a second process.
    pub(crate) one_process: bool,
    /// -1: not made; 0: the attack succeeded; else the error that stopped it.
    pub(crate) results: [AtomicI32; ATTACKS.len()],
}

type Attack = fn(&AttackTable) -> Result<usize, Errno>;

/// The attacks with their names.
pub(crate) const ATTACKS: [(&str, Attack); 20] = [
    ("read /etc/passwd", |_| read(c"/etc/passwd")),
    ("read a file outside", |table| read(&table.secret)),
    ("read the engine's environment", |table| number_of_engine(table).and_then(|_| read(&table.environment))),
    ("write outside", |table| {
        sys::open(&table.escape, libc::O_WRONLY | libc::O_CREAT, 0o600).map(|fd| fd as usize)
    }),
    ("change the mode of a file outside", |table| {
        let here = libc::AT_FDCWD as isize as usize;
        call(libc::SYS_fchmodat, [here, table.secret.as_ptr() as usize, 0o600, 0, 0, 0])
    }),
    ("remove a file outside", |table| {
        let here = libc::AT_FDCWD as isize as usize;
        call(libc::SYS_unlinkat, [here, table.secret.as_ptr() as usize, 0, 0, 0, 0])
    }),
    ("use an inherited descriptor", |_| {
        (3..1024)
            .find_map(|fd| call(libc::SYS_fcntl, [fd, libc::F_GETFD as usize, 0, 0, 0, 0]).ok())
            .ok_or(libc::EBADF)
    }),
    ("open an internet socket", |_| socket(libc::AF_INET)),
    ("open a Unix socket", |_| socket(libc::AF_UNIX)),
    ("open a netlink socket", |_| socket(libc::AF_NETLINK)),
    ("signal the engine", |table| {
        number_of_engine(table).and_then(|engine| call(libc::SYS_kill, [engine, 0, 0, 0, 0, 0]))
    }),
    ("trace the engine", |table| {
        let seize = libc::PTRACE_SEIZE as usize;
        number_of_engine(table).and_then(|engine| call(libc::SYS_ptrace, [seize, engine, 0, 0, 0, 0]))
    }),
    ("slow the engine down", |table| {
        number_of_engine(table).and_then(|engine| call(libc::SYS_setpriority, [0, engine, 19, 0, 0, 0]))
    }),
    ("make a user namespace", |_| call(libc::SYS_unshare, [libc::CLONE_NEWUSER as usize, 0, 0, 0, 0, 0])),
    ("mount", |_| sys::mount(Some(c"tmpfs"), c"/", Some(c"tmpfs"), 0, None).map(|()| 0)),
    ("use io_uring", |_| call(libc::SYS_io_uring_setup, [0; 6]).or_else(refused)),
    ("load a BPF program", |_| call(libc::SYS_bpf, [0; 6]).or_else(refused)),
    ("read a key", |_| call(libc::SYS_keyctl, [0, usize::MAX - 2, 0, 0, 0, 0])),
    ("become root", |_| {
        call(libc::SYS_setresuid, [0; 6]).and_then(|_| match call(libc::SYS_getuid, [0; 6]) {
            Ok(0) => Ok(0),
            _ => Err(libc::EPERM),
        })
    }),
    ("start a second process", |table| {
        if !table.one_process {
            return Err(libc::ENOTSUP);
        }
        match call(libc::SYS_clone, [libc::SIGCHLD as usize, 0, 0, 0, 0, 0]) {
            Ok(0) => sys::exit(0),
            other => other,
        }
    }),
];

/// Makes the attacks. Takes no memory and calls nothing but the kernel.
pub(crate) fn make(table: &AttackTable) {
    for ((_, attack), result) in ATTACKS.iter().zip(&table.results) {
        let errno = match attack(table) {
            Ok(_) => 0,
            Err(errno) => errno,
        };
        result.store(errno, Ordering::Release);
    }
}

/// The number of the engine. An engine that is process 1 of a container has the number that a box with namespaces has for itself: there it is
/// nobody else's.
fn number_of_engine(table: &AttackTable) -> Result<usize, Errno> {
    let engine = table.engine as usize;
    if call(libc::SYS_getpid, [0; 6])? == engine { Err(libc::ESRCH) } else { Ok(engine) }
}

fn read(path: &CStr) -> Result<usize, Errno> {
    let fd = sys::open(path, libc::O_RDONLY, 0)?;
    let mut byte = 0_u8;
    let read = call(libc::SYS_read, [fd as usize, &raw mut byte as usize, 1, 0, 0, 0]);
    sys::close(fd);
    read
}

fn socket(family: i32) -> Result<usize, Errno> {
    call(libc::SYS_socket, [family as usize, libc::SOCK_DGRAM as usize, 0, 0, 0, 0])
}

/// A call that got as far as its arguments was let through.
fn refused(errno: Errno) -> Result<usize, Errno> {
    if matches!(errno, libc::EPERM | libc::ENOSYS | libc::EACCES) { Err(errno) } else { Ok(0) }
}
