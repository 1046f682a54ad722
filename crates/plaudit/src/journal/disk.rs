//! The disk operations that a journal needs, as a trait, so that tests can inject faults.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The file of a journal. Tests replace it by one with injected faults.
pub(super) trait Disk: Send + Sync {
    /// Fills the buffer from a place in the file.
    fn read(&self, into: &mut [u8], at: u64) -> io::Result<()>;
    /// Writes all of the bytes at a place.
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()>;
    /// Returns when all that was written is on the disk.
    fn sync(&self) -> io::Result<()>;
    /// Ends the file here, and gives back what was set aside behind its end.
    fn cut(&self, at: u64) -> io::Result<()>;
    /// Sets space aside without making the file longer; false where the file system cannot.
    fn reserve(&self, from: u64, to: u64) -> io::Result<bool>;
}

impl Disk for File {
    fn read(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        self.read_exact_at(into, at)
    }

    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&self, at: u64) -> io::Result<()> {
        self.set_len(at)
    }

    #[cfg(target_os = "linux")]
    fn reserve(&self, from: u64, to: u64) -> io::Result<bool> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        use rustix::process::{Resource, getrlimit};
        // tmpfs looks at the limit on the size of files here, ext4 and xfs only at the write, when the call is paid for.
        if getrlimit(Resource::Fsize).current.is_some_and(|limit| to > limit) {
            return Err(Errno::FBIG.into());
        }
        loop {
            match fallocate(self, FallocateFlags::KEEP_SIZE, from, to.saturating_sub(from).max(1)) {
                Ok(()) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn reserve(&self, _: u64, _: u64) -> io::Result<bool> {
        Ok(false)
    }
}
