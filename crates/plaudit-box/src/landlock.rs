//! Landlock rulesets: which files a boxed program may open, and that it reaches no network and no other process.

use crate::layout::DEVICES;
use crate::sys::{Errno, call, last_errno};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_FOLDER: u64 = 1 << 3;

/// What may be done below a path.
#[derive(Clone, Copy)]
pub(crate) enum Access {
    /// Read and execute.
    Read,
    /// Read and write a device such as `/dev/null`.
    Device,
}

/// The version of Landlock that the kernel has, or why it has none.
pub(crate) fn version() -> Result<u32, Errno> {
    const VERSION: usize = 1;
    call(libc::SYS_landlock_create_ruleset, [0, 0, VERSION, 0, 0, 0]).map(|version| version as u32)
}

/// Rules that allow nothing but what [`allow`] adds; `files` is false where a mount namespace decides about files.
pub(crate) fn rules(version: u32, files: bool) -> Result<OwnedFd, Errno> {
    // One more right in the second version, one in the third, one in the fifth.
    let rights = match version {
        1 => 13,
        2 => 14,
        3 | 4 => 15,
        _ => 16,
    };
    let handled = if files { (1_u64 << rights) - 1 } else { 0 };
    let (tcp, scopes) = (0b11, 0b11);
    // struct landlock_ruleset_attr: the files, since version 4 TCP, since version 6 signals and abstract sockets.
    let attributes: [u64; 3] = [handled, tcp, scopes];
    let size = match version {
        1..=3 => 8,
        4 | 5 => 16,
        _ => 24,
    };
    let fd = call(libc::SYS_landlock_create_ruleset, [attributes.as_ptr() as usize, size, 0, 0, 0, 0])?;
    // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Allows an access below a path. A path that is not there is no error: it cannot be opened either.
pub(crate) fn allow(rules: &OwnedFd, path: &Path, access: Access) -> Result<(), Errno> {
    use std::os::unix::fs::OpenOptionsExt;
    let opened = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path);
    let Ok(opened) = opened else { return Ok(()) };
    let folder = opened.metadata().map_err(|_| last_errno())?.is_dir();
    let rights = match access {
        Access::Read if folder => EXECUTE | READ_FILE | READ_FOLDER,
        Access::Read => EXECUTE | READ_FILE,
        Access::Device => READ_FILE | WRITE_FILE,
    };
    // struct landlock_path_beneath_attr is packed: eight bytes of rights, four of the descriptor.
    let mut attributes = [0_u8; 12];
    attributes[..8].copy_from_slice(&rights.to_ne_bytes());
    attributes[8..].copy_from_slice(&opened.as_raw_fd().to_ne_bytes());
    const PATH_BENEATH: usize = 1;
    let arguments = [rules.as_raw_fd() as usize, PATH_BENEATH, attributes.as_ptr() as usize, 0, 0, 0];
    call(libc::SYS_landlock_add_rule, arguments).map(|_| ())
}

/// The rules of a box without namespaces: read the system and the box's folder, write nothing but devices.
pub(crate) fn file_rules(
    version: u32,
    readable: &[PathBuf],
    folder: Option<&Path>,
) -> Result<OwnedFd, Errno> {
    let allowed = rules(version, true)?;
    for path in readable {
        allow(&allowed, path, Access::Read)?;
    }
    for device in DEVICES {
        allow(&allowed, Path::new(device), Access::Device)?;
    }
    if let Some(folder) = folder {
        allow(&allowed, folder, Access::Read)?;
    }
    Ok(allowed)
}
