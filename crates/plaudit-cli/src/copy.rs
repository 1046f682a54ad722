//! Where do the rollouts of a run go, so that it can be replayed and explained? Into a file, or into memory where they are
//! few enough to be kept elsewhere.

use crate::failure::Failure;
use crate::files::Output;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most bytes that are held in memory.
const MOST: usize = 64 << 20;

/// The rollouts of a run that has not finished.
pub(crate) enum RolloutCopy {
    File(Output),
    /// None where there were too many.
    Memory(Option<Vec<u8>>),
}

impl RolloutCopy {
    /// A copy that gives up where it would become large.
    pub(crate) fn small() -> Self {
        Self::Memory(Some(Vec::new()))
    }

    /// What the copy is called in messages.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::File(output) => output.name(),
            Self::Memory(_) => "the copy of the rollouts",
        }
    }

    /// Gives a file its name; else the bytes, unless there were too many.
    pub(crate) fn finish(self) -> Result<Option<Vec<u8>>, Failure> {
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
            Self::Memory(Some(held)) if held.len() + bytes.len() <= MOST => held.extend(bytes),
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

/// The rollouts of a run that has finished, in a file.
pub(crate) struct Rollouts {
    path: String,
    /// Whether the file is only there to be read now.
    passing: bool,
}

impl Rollouts {
    /// Those in a file that stays.
    pub(crate) fn at(path: String) -> Self {
        Self { path, passing: false }
    }

    /// Those that were held elsewhere, in a file for as long as they are read.
    pub(crate) fn beside(bytes: &[u8]) -> Result<Self, Failure> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("plaudit-rollouts-{}-{number}.jsonl", std::process::id());
        let path = std::env::temp_dir().join(name).to_string_lossy().into_owned();
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&path);
        let failed = |error| Failure::File(path.clone(), error);
        let mut file = file.map_err(failed)?;
        let kept = Self { path: path.clone(), passing: true };
        file.write_all(bytes).map_err(failed)?;
        Ok(kept)
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for Rollouts {
    fn drop(&mut self) {
        if self.passing {
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
        copy.write_all(&vec![0; MOST]).expect("it gives up without failing");
        copy.write_all(b"two\n").expect("and stays so");
        assert_eq!(copy.finish().ok(), Some(None));
    }

    #[test]
    fn what_is_beside_is_gone_when_it_was_read() {
        let kept = Rollouts::beside(b"rows").expect("a file");
        let path = kept.path().to_owned();
        assert_eq!(std::fs::read(&path).expect("there"), b"rows");
        drop(kept);
        assert!(!std::path::Path::new(&path).exists());
    }
}
