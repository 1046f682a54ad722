//! Output files: stdout, or a file that is written under a temporary name and renamed when it is complete.

use crate::error::CliError;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// How much is gathered before it is written.
const BUFFER: usize = 256 << 10;
/// The most links that are followed to a file, as on Linux.
const MAX_LINKS: usize = 40;

/// An open output. Where it is dropped before [`Output::finish`], nothing stays under its name.
pub(crate) struct Output {
    name: String,
    to: BufWriter<File>,
    part: Option<PartialFile>,
}

/// A file that is being written beside its final name.
struct PartialFile {
    temporary: PathBuf,
    path: PathBuf,
    done: bool,
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.done {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

impl Output {
    /// Opens a path, or stdout for `-`. A symbolic link stays: the file that it leads to is written.
    pub(crate) fn open(path: &str) -> Result<Self, CliError> {
        Self::create(path, 0o666)
    }

    /// The same, but a new file is its owner's alone.
    pub(crate) fn private(path: &str) -> Result<Self, CliError> {
        Self::create(path, 0o600)
    }

    fn create(path: &str, mode: u32) -> Result<Self, CliError> {
        let name = if is_stdout(path) { "stdout" } else { path };
        let wrap = |file: File, part: Option<PartialFile>| Self {
            name: name.to_owned(),
            to: BufWriter::with_capacity(BUFFER, file),
            part,
        };
        let failure = |error: io::Error| CliError::File(name.to_owned(), error);
        if is_stdout(path) {
            let stdout = io::stdout().as_fd().try_clone_to_owned().map_err(failure)?;
            return Ok(wrap(stdout.into(), None));
        }
        let target = Path::new(path);
        if target.is_dir() {
            return Err(CliError::Arguments(format!("{path:?} is a folder; the name of a file is wanted")));
        }
        if target.exists() && !target.is_file() {
            // A pipe or a device has no half state to hide.
            return Ok(wrap(File::create(target).map_err(failure)?, None));
        }
        let target = resolved(target).map_err(failure)?;
        let temporary = beside(&target);
        let temporary =
            temporary.ok_or_else(|| CliError::Arguments(format!("{path:?} is no name of a file")))?;
        tidy(&target);
        let file = begin(&temporary, mode).map_err(failure)?;
        let part = PartialFile { temporary, path: target, done: false };
        Ok(wrap(file, Some(part)))
    }

    /// Where the file of a path is written until it is whole; none for what is no name of a file.
    pub(crate) fn part(path: &str) -> Option<PathBuf> {
        beside(&resolved(Path::new(path)).ok()?)
    }

    /// What the output is called in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Writes what is left, and gives the file its name.
    pub(crate) fn finish(mut self) -> Result<(), CliError> {
        let done = self.to.flush().and_then(|()| match &mut self.part {
            None => Ok(()),
            Some(part) => {
                self.to.get_ref().sync_all()?;
                fs::rename(&part.temporary, &part.path)?;
                part.done = true;
                Ok(())
            }
        });
        done.map_err(|error| CliError::writing(&self.name, error))
    }
}

/// Whether a path is a name of stdout.
pub(super) fn is_stdout(path: &str) -> bool {
    path == "-" || path == "/dev/stdout"
}

/// The file that symbolic links lead to, whether it is there or not.
pub(super) fn resolved(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&at) else { return Ok(at) };
        at.pop();
        at.push(target);
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

/// Where a file is written until it is whole.
fn beside(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    Some(path.with_file_name(format!(".{name}.{}.part", std::process::id())))
}

/// A new file that is locked for as long as it is written, so that nobody takes it for what a killed run has left.
fn begin(part: &Path, mode: u32) -> io::Result<File> {
    loop {
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(part)?;
        // Where files cannot be locked, nothing is ever tidied away either.
        let _ = file.try_lock();
        if part.exists() {
            return Ok(file);
        }
    }
}

/// Takes away what runs that were killed have left of the same file.
fn tidy(target: &Path) {
    let Some(name) = target.file_name().and_then(|name| name.to_str()) else { return };
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let start = format!(".{name}.");
    let is_part = |found: &str| {
        let pid = found.strip_prefix(&start).and_then(|rest| rest.strip_suffix(".part"));
        pid.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()))
    };
    for entry in fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten() {
        let left = entry.file_name().to_str().is_some_and(is_part)
            && OpenOptions::new().write(true).open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if left {
            // What cannot be taken away is only in the way of a tidy folder.
            let _ = fs::remove_file(entry.path());
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
