//! Raw system calls without `errno`: what a child that shares the engine's memory may use.
//!
//! The C library keeps `errno` in thread-local storage, and a child made with `CLONE_VM` has that of the thread which made
//! it. So the child never calls the library: it makes system calls itself and gets the error as a value.

use std::ffi::CStr;
use std::sync::atomic::AtomicU32;

/// The number of an error, as in `errno`.
pub(crate) type Errno = i32;

/// What a C library takes its `RLIMIT_` for.
pub(crate) type Resource = resource::Number;
#[cfg(target_env = "musl")]
mod resource {
    pub(crate) use libc::c_int as Number;
}
#[cfg(not(target_env = "musl"))]
mod resource {
    pub(crate) use libc::__rlimit_resource_t as Number;
}

/// Makes a system call; a negative result is an error number.
///
/// # Safety
/// As the call itself: pointers among the arguments must be valid for what the call does with them.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn raw(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    // SAFETY: the kernel's calling convention; it changes rax, rcx and r11 and no stack.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Makes a system call; a negative result is an error number.
///
/// # Safety
/// As the call itself: pointers among the arguments must be valid for what the call does with them.
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe fn raw(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    // SAFETY: the kernel's calling convention; it changes x0 and no stack.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number as isize,
            inlateout("x0") a as isize => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    result
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!("plaudit-box knows the system calls of Linux on x86_64 and aarch64");

fn checked(result: isize) -> Result<usize, Errno> {
    if result < 0 { Err((-result) as Errno) } else { Ok(result as usize) }
}

/// A system call whose arguments are all numbers, so that it cannot touch memory.
pub(crate) fn call(number: libc::c_long, arguments: [usize; 6]) -> Result<usize, Errno> {
    // SAFETY: callers pass numbers only; where a number is an address, the kernel checks it and only reads there.
    checked(unsafe { raw(number, arguments) })
}

/// A system call whose first arguments are up to two paths.
pub(crate) fn call_path(number: libc::c_long, path: &CStr, rest: [usize; 5]) -> Result<usize, Errno> {
    let [b, c, d, e, f] = rest;
    call(number, [path.as_ptr() as usize, b, c, d, e, f])
}

/// `openat` from the current folder.
pub(crate) fn open(path: &CStr, flags: i32, mode: u32) -> Result<i32, Errno> {
    let here = libc::AT_FDCWD as isize as usize;
    let arguments = [here, path.as_ptr() as usize, (flags | libc::O_CLOEXEC) as usize, mode as usize, 0, 0];
    call(libc::SYS_openat, arguments).map(|fd| fd as i32)
}

pub(crate) fn close(fd: i32) {
    let _ = call(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]);
}

/// Creates a file with its content.
pub(crate) fn write_file(path: &CStr, content: &[u8], mode: u32) -> Result<(), Errno> {
    let fd = open(path, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL, mode)?;
    let (mut at, end) = (content.as_ptr() as usize, content.as_ptr() as usize + content.len());
    while at < end {
        match call(libc::SYS_write, [fd as usize, at, end - at, 0, 0, 0]) {
            Ok(0) => return Err(libc::EIO),
            Ok(written) => at += written,
            Err(libc::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    close(fd);
    Ok(())
}

/// `mount`, with null for what is absent.
pub(crate) fn mount(
    from: Option<&CStr>,
    to: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
    options: Option<&CStr>,
) -> Result<(), Errno> {
    let address = |text: Option<&CStr>| text.map_or(0, |text| text.as_ptr() as usize);
    let arguments = [address(from), to.as_ptr() as usize, address(kind), flags as usize, address(options), 0];
    call(libc::SYS_mount, arguments).map(|_| ())
}

/// Makes a mount and all below it read-only, without devices and set-user-id programs.
pub(crate) fn protect(path: &CStr) -> Result<(), Errno> {
    const READ_ONLY: u64 = 0x1;
    const NO_SUID: u64 = 0x2;
    const NO_DEVICES: u64 = 0x4;
    // struct mount_attr: attr_set, attr_clr, propagation, userns_fd.
    let attributes: [u64; 4] = [READ_ONLY | NO_SUID | NO_DEVICES, 0, 0, 0];
    let here = libc::AT_FDCWD as isize as usize;
    let size = std::mem::size_of_val(&attributes);
    let recursive = 0x8000;
    let arguments = [here, path.as_ptr() as usize, recursive, attributes.as_ptr() as usize, size, 0];
    call(libc::SYS_mount_setattr, arguments).map(|_| ())
}

pub(crate) fn set_limit(resource: Resource, soft: u64, hard: u64) -> Result<(), Errno> {
    let limit: [u64; 2] = [soft, hard];
    let arguments = [0, resource as usize, limit.as_ptr() as usize, 0, 0, 0];
    call(libc::SYS_prlimit64, arguments).map(|_| ())
}

/// Waits until `word` is no longer `value`, at most `milliseconds`.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32, milliseconds: u64) -> Result<(), Errno> {
    let time: [u64; 2] = [milliseconds / 1000, milliseconds % 1000 * 1_000_000];
    let address = word.as_ptr() as usize;
    let arguments = [address, libc::FUTEX_WAIT as usize, value as usize, time.as_ptr() as usize, 0, 0];
    match call(libc::SYS_futex, arguments) {
        Ok(_) | Err(libc::EAGAIN | libc::EINTR) => Ok(()),
        Err(errno) => Err(errno),
    }
}

pub(crate) fn futex_wake(word: &AtomicU32) {
    let _ = call(libc::SYS_futex, [word.as_ptr() as usize, libc::FUTEX_WAKE as usize, 1, 0, 0, 0]);
}

/// Ends the process, or the child that shares our memory.
pub(crate) fn exit(code: i32) -> ! {
    loop {
        let _ = call(libc::SYS_exit_group, [code as usize, 0, 0, 0, 0, 0]);
    }
}

/// The number of the last error of a call of the C library.
pub(crate) fn last_errno() -> Errno {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// Whether this process can be debugged.
pub(crate) fn is_dumpable() -> bool {
    // SAFETY: takes numbers alone.
    unsafe { libc::prctl(libc::PR_GET_DUMPABLE) == 1 }
}

/// A child that changes its user while it shares our memory takes away that we can be debugged; this gives it back.
pub(crate) fn set_dumpable() {
    // SAFETY: takes numbers alone.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) };
}
