//! The copy of a run's rollouts in its state, which replay and explain read: a file, or memory where Redis keeps it.

use crate::error::CliError;
use crate::files::Output;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most bytes that are held in memory.
const MAX_BYTES: usize = 64 << 20;

/// The rollouts of a run that is under way.
pub(crate) enum RolloutCopy {
    File(Output),
    /// None where there were too many.
    Memory(Option<Vec<u8>>),
}

impl RolloutCopy {
    /// A copy in memory, which is dropped when it would become too large.
    pub(crate) fn small() -> Self {
        Self::Memory(Some(Vec::new()))
    }

    /// The name of the copy in messages.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::File(output) => output.name(),
            Self::Memory(_) => "the copy of the rollouts",
        }
    }

    /// Completes the file; or gives back the bytes, unless there were too many.
    pub(crate) fn finish(self) -> Result<Option<Vec<u8>>, CliError> {
        match self {
            Self::File(output) => output.finish().map(|()| None),
            Self::Memory(bytes) => Ok(bytes),
        }
    }
}

impl Write for RolloutCopy {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(output) => return output.write(bytes),
            Self::Memory(Some(held)) if held.len() + bytes.len() <= MAX_BYTES => held.extend(bytes),
            Self::Memory(held) => *held = None,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(output) => output.flush(),
            Self::Memory(_) => Ok(()),
        }
    }
}

/// The rollouts of a finished run, as a file.
pub(crate) struct SavedRollouts {
    pub(crate) path: String,
    /// Whether the file is removed when this is dropped.
    temporary: bool,
}

impl SavedRollouts {
    /// A file that stays.
    pub(crate) fn at(path: String) -> Self {
        Self { path, temporary: false }
    }

    /// A temporary file with these bytes.
    pub(crate) fn in_temp_file(bytes: &[u8]) -> Result<Self, CliError> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("plaudit-rollouts-{}-{number}.jsonl", std::process::id());
        let path = std::env::temp_dir().join(name).to_string_lossy().into_owned();
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&path);
        let failed = |error| CliError::File(path.clone(), error);
        let mut file = file.map_err(failed)?;
        let saved = Self { path: path.clone(), temporary: true };
        file.write_all(bytes).map_err(failed)?;
        Ok(saved)
    }
}

impl Drop for SavedRollouts {
    fn drop(&mut self) {
        if self.temporary {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_in_memory_is_whole_or_none() {
        let mut copy = RolloutCopy::small();
        copy.write_all(b"one\n").expect("room");
        let RolloutCopy::Memory(held) = &copy else { panic!("in memory") };
        assert_eq!(held.as_deref(), Some(&b"one\n"[..]));
        copy.write_all(&vec![0; MAX_BYTES]).expect("it gives up without failing");
        copy.write_all(b"two\n").expect("and stays so");
        assert_eq!(copy.finish().ok(), Some(None));
    }

    #[test]
    fn what_is_beside_is_gone_when_it_was_read() {
        let saved = SavedRollouts::in_temp_file(b"rows").expect("a file");
        let path = saved.path.clone();
        assert_eq!(std::fs::read(&path).expect("there"), b"rows");
        drop(saved);
        assert!(!std::path::Path::new(&path).exists());
    }
}
