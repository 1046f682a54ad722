//! The standard streams of a box: a sealed file for input, pipes for output and errors, pipes between two boxes.

use crate::sys::{Errno, last_errno};
use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The standard input as a sealed file: all of it is there before the program starts, and nobody can change it.
pub(crate) fn input(content: &[u8]) -> Result<OwnedFd, Errno> {
    use std::io::{Seek, Write};
    let fd = create_memory_file(c"stdin")?;
    let mut file = std::fs::File::from(fd);
    let errno = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
    file.write_all(content).map_err(errno)?;
    file.rewind().map_err(errno)?;
    let seals = libc::F_SEAL_SEAL | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE;
    // SAFETY: takes numbers alone.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
        return Err(last_errno());
    }
    above_two(OwnedFd::from(file))
}

fn create_memory_file(name: &CStr) -> Result<OwnedFd, Errno> {
    // SAFETY: the name outlives the call.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A pipe between two boxes: its reading end and its writing end.
pub(crate) fn joint() -> Result<(OwnedFd, OwnedFd), Errno> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for the two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(last_errno());
    }
    // SAFETY: the kernel has just made these descriptors, and nobody else knows them.
    let [read, write] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    Ok((above_two(read)?, above_two(write)?))
}

/// A pipe whose reading end does not block, and whose writing end the box's user may open again.
pub(crate) fn pipe(user: Option<u32>) -> Result<(OwnedFd, OwnedFd), Errno> {
    let (read, write) = joint()?;
    // SAFETY: takes numbers alone.
    if unsafe { libc::fcntl(read.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } != 0 {
        return Err(last_errno());
    }
    if let Some(user) = user {
        // SAFETY: takes numbers alone.
        let _ = unsafe { libc::fchown(write.as_raw_fd(), user, user) };
    }
    Ok((read, write))
}

/// The same descriptor with a number above 2, so that the box can put it where it belongs.
pub(crate) fn above_two(fd: OwnedFd) -> Result<OwnedFd, Errno> {
    if fd.as_raw_fd() > 2 {
        return Ok(fd);
    }
    // SAFETY: takes numbers alone.
    let copy = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(last_errno());
    }
    // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}
