//! The file system of a box: which folders of the host a program sees, and where its own lies.

use crate::child::MountStep;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The program's own folder in a box with namespaces; the only one it may write to.
pub(crate) const WORK: &str = "/box";

/// Where the new root is built. Nothing that is bound lies below it.
const ROOTS: [&str; 3] = ["/sys", "/mnt", "/srv"];

/// Folders of the system at the root; on most systems all but the first are links into it.
const SYSTEM: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// What programs and compilers need from `/etc`; nothing that says anything about the host.
const CONFIGURATION: [&str; 5] =
    ["/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime"];

/// Devices without state of their own.
pub(crate) const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The paths that a program may read: the system's, and those the caller adds.
pub(crate) fn readable(extra: &[PathBuf]) -> Vec<PathBuf> {
    let mut paths: BTreeSet<PathBuf> = SYSTEM.iter().map(|name| Path::new("/").join(name)).collect();
    paths.extend(CONFIGURATION.iter().map(PathBuf::from));
    for path in extra {
        paths.insert(path.clone());
        // A link may stand on the way; programs use either name.
        paths.extend(path.canonicalize());
    }
    let paths: Vec<PathBuf> = paths.into_iter().filter(|path| path.is_absolute() && path.exists()).collect();
    // What lies below another one is there already.
    let below = |path: &Path| paths.iter().any(|other| path != other && path.starts_with(other));
    paths.iter().filter(|path| !below(path)).cloned().collect()
}

/// The steps that build what a box with namespaces adds: its name, its folder and its processes.
pub(crate) fn own_mounts() -> Vec<MountStep> {
    vec![MountStep::HostName(text("box")), MountStep::Work(text(WORK)), MountStep::Proc(text("/proc"))]
}

/// The steps that build the part of the file system that all boxes with namespaces have alike.
pub(crate) fn fixed_mounts(readable: &[PathBuf]) -> Vec<MountStep> {
    let root = ROOTS.iter().find(|root| Path::new(root).is_dir()).copied().unwrap_or("/tmp");
    let inside = |path: &Path| format!("{root}{}", path.display());
    let mut steps = vec![
        MountStep::Private,
        MountStep::Tmpfs { at: text(root), options: text("mode=755,size=1m,nr_inodes=1000") },
    ];
    let mut made = BTreeSet::new();
    for path in readable {
        for parent in path.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev().skip(1) {
            if made.insert(parent.to_owned()) {
                steps.push(MountStep::Folder(text(&inside(parent))));
            }
        }
        let at = text(&inside(path));
        match path.read_link() {
            Ok(to) => steps.push(MountStep::Symlink { to: bytes(to.as_os_str().as_bytes()), at }),
            Err(_) => {
                let new = if path.is_dir() { MountStep::Folder } else { MountStep::EmptyFile };
                steps.push(new(at.clone()));
                steps.push(MountStep::Bind { from: bytes(path.as_os_str().as_bytes()), at });
            }
        }
    }
    let folder = |path: &str| MountStep::Folder(text(&format!("{root}{path}")));
    let link = |to: &str, path: &str| MountStep::Symlink { to: text(to), at: text(&format!("{root}{path}")) };
    steps.extend([folder(WORK), folder("/proc"), folder("/dev")]);
    // Temporary files and shared memory count as the program's own files.
    steps.extend([link(WORK, "/tmp"), link(WORK, "/dev/shm"), link("/proc/self/fd", "/dev/fd")]);
    for (number, name) in ["stdin", "stdout", "stderr"].iter().enumerate() {
        steps.push(link(&format!("/proc/self/fd/{number}"), &format!("/dev/{name}")));
    }
    let devices: Vec<&str> = DEVICES.into_iter().filter(|device| Path::new(device).exists()).collect();
    steps.extend(devices.iter().map(|device| MountStep::EmptyFile(text(&format!("{root}{device}")))));
    steps.push(MountStep::Protect(text(root)));
    for device in devices {
        steps.push(MountStep::Bind { from: text(device), at: text(&format!("{root}{device}")) });
    }
    // The kernel lets a box mount its own processes only where those of the host are in sight; its own lie on top of them.
    steps.push(MountStep::Bind { from: text("/proc"), at: text(&format!("{root}/proc")) });
    steps.push(MountStep::Root(text(root)));
    steps
}

/// A text for the kernel. Paths of the file system contain no zero byte; one that does names nothing.
fn text(text: &str) -> CString {
    bytes(text.as_bytes())
}

fn bytes(bytes: &[u8]) -> CString {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_else(|_| CString::from(c"/"))
}
