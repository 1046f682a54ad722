//! The folders of boxes without namespaces: one for each sandbox with one for each slot, removed with it or by the next.

use crate::job::Job;
use crate::launch;
use crate::sys::Errno;
use std::fs::File;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is removed with this. One whose engine was killed is removed by the next.
pub(crate) struct Scratch {
    pub(crate) path: PathBuf,
    owner: u32,
    /// Locked for as long as the engine lives. Its number alone does not tell: an engine in another PID namespace sees no other's.
    _lock: File,
}

static SCRATCHES: AtomicU32 = AtomicU32::new(0);
const SCRATCH_PREFIX: &str = "plaudit-box-";

impl Scratch {
    /// Makes the folder, and removes those of engines that were killed.
    pub(crate) fn new(parent: &Path) -> Result<Self, Errno> {
        let errno = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
        sweep(parent);
        let (engine, number) = (std::process::id(), SCRATCHES.fetch_add(1, Ordering::Relaxed));
        let path = parent.join(format!("{SCRATCH_PREFIX}{engine}-{number}"));
        std::fs::DirBuilder::new().mode(0o711).create(&path).map_err(errno)?;
        let lock = File::open(&path).map_err(errno)?;
        lock.lock().map_err(errno)?;
        Ok(Self { path, owner: engine, _lock: lock })
    }

    /// The folder of a slot, for its user alone.
    pub(crate) fn folder(&self, index: usize, user: Option<u32>) -> Result<PathBuf, Errno> {
        let errno = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
        let path = self.path.join(index.to_string());
        std::fs::DirBuilder::new().mode(0o700).create(&path).map_err(errno)?;
        if let Some(user) = user {
            std::os::unix::fs::chown(&path, Some(user), Some(user)).map_err(errno)?;
        }
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Not in a process that a host has forked.
        if std::process::id() == self.owner {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes our own folders whose engine is gone.
fn sweep(parent: &Path) {
    let own = launch::effective(libc::SYS_geteuid);
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(SCRATCH_PREFIX)) else { continue };
        let Some(engine) = rest.split('-').next().and_then(|engine| engine.parse::<u32>().ok()) else {
            continue;
        };
        let ours = entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == own);
        let gone = || !Path::new(&format!("/proc/{engine}")).exists();
        let unlocked = || File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok());
        if ours && gone() && unlocked() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Writes the files of a job.
pub(crate) fn write_files(folder: &Path, job: &Job) -> Result<(), Errno> {
    for (name, content, executable) in &job.files {
        let path = folder.join(name);
        let write = || {
            std::fs::write(&path, content)?;
            let mode = if *executable { 0o755 } else { 0o644 };
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))
        };
        write().map_err(|error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO))?;
    }
    Ok(())
}

/// Removes what is in a folder.
pub(crate) fn empty(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let _ = std::fs::remove_file(entry.path()).or_else(|_| std::fs::remove_dir_all(entry.path()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_living_engines_stay() {
        let parent = std::env::temp_dir().join(format!("plaudit-scratch-test-{}", std::process::id()));
        std::fs::create_dir(&parent).unwrap();
        // As an engine of another PID namespace: its number is nobody's here.
        let living = parent.join("plaudit-box-4000000000-0");
        std::fs::create_dir(&living).unwrap();
        let lock = File::open(&living).unwrap();
        lock.lock().unwrap();
        let scratch = Scratch::new(&parent).unwrap();
        assert!(living.exists());
        drop(lock);
        let other = Scratch::new(&parent).unwrap();
        assert!(!living.exists() && scratch.path.exists() && other.path.exists());
        drop((scratch, other));
        std::fs::remove_dir(&parent).unwrap();
    }
}
