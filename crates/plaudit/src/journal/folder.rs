//! State folder: lock file, secret and log file, with checks of ownership and format.
//!
//! `lock` holds the process id of the owner, `secret` a random secret, and `judgments.log` a header and the records. The
//! header repeats the secret, because without it no record could be told from noise: either copy may be damaged.

use super::error::JournalError;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The version of the records. Every version keeps the header, so that it can be told which one it is.
pub(super) const VERSION: u32 = 1;
/// The bytes before the first record.
pub(super) const HEADER: usize = 64;

const MAGIC: &[u8; 16] = b"plaudit journal\n";

/// An open folder, before its records are read.
pub(super) struct Folder {
    pub(super) lock: File,
    pub(super) log: File,
    pub(super) log_path: PathBuf,
    pub(super) length: u64,
    pub(super) secret: [u8; 32],
    /// Whether the log begins with a good header.
    pub(super) headed: bool,
}

impl Folder {
    /// Opens a folder and makes what is not there; owns it until the lock is let go.
    pub(super) fn open(folder: &Path) -> Result<Self, JournalError> {
        let failed = |doing| move |error: io::Error| JournalError::from_io(doing, folder, &error);
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed("make"))?;
        let lock = own(folder)?;
        let log_path = folder.join("judgments.log");
        let kept = read_secret(&folder.join("secret")).map_err(failed("read the secret of"))?;
        if !log_path.try_exists().map_err(failed("look into"))? {
            let secret = match kept {
                Some(secret) => secret,
                None => fresh_secret(folder)?,
            };
            place(folder, "secret", &sealed_secret(&secret)).map_err(failed("write the secret of"))?;
            place(folder, "judgments.log", &header(&secret)).map_err(failed("write the log of"))?;
        }
        let log =
            OpenOptions::new().read(true).write(true).open(&log_path).map_err(failed("open the log of"))?;
        let length = log.metadata().map_err(failed("open the log of"))?.len();
        let secret = match read_header(&log, &log_path)? {
            Some(secret) => secret,
            // The other copy stands in; whether it is this log's own, its records will show.
            None => match kept {
                Some(secret) => return Ok(Self { lock, log, log_path, length, secret, headed: false }),
                None => return Err(JournalError::Foreign { path: log_path }),
            },
        };
        if kept != Some(secret) {
            place(folder, "secret", &sealed_secret(&secret)).map_err(failed("write the secret of"))?;
        }
        Ok(Self { lock, log, log_path, length, secret, headed: true })
    }

    /// Writes the header anew.
    pub(super) fn write_header(&self) -> Result<(), JournalError> {
        let written = self.log.write_all_at(&header(&self.secret), 0).and_then(|()| self.log.sync_data());
        written.map_err(|error| JournalError::from_io("mend", &self.log_path, &error))
    }
}

/// Takes the lock, or says who has it.
fn own(folder: &Path) -> Result<File, JournalError> {
    let failed = |error: io::Error| JournalError::from_io("lock", folder, &error);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut lock = options.open(folder.join("lock")).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let pid = lock.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            return Err(JournalError::InUse { folder: folder.to_owned(), pid });
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    lock.set_len(0).map_err(failed)?;
    // The process id is only for a person: a disk without space for it is not in the way of reading.
    let _ = writeln!(lock, "{}", std::process::id());
    Ok(lock)
}

fn fresh_secret(folder: &Path) -> Result<[u8; 32], JournalError> {
    let mut secret = [0; 32];
    let drawn = getrandom::fill(&mut secret).map_err(|error| io::Error::other(error.to_string()));
    drawn.map_err(|error| JournalError::from_io("draw a secret for", folder, &error))?;
    Ok(secret)
}

/// The secret with its check.
pub(super) fn sealed_secret(secret: &[u8; 32]) -> Vec<u8> {
    let check = blake3::hash(secret);
    [secret.as_slice(), &check.as_bytes()[..16]].concat()
}

/// The secret, unless it is not there or damaged.
fn read_secret(path: &Path) -> io::Result<Option<[u8; 32]>> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(unsealed_secret(&bytes))
}

/// The secret, unless it is damaged.
pub(super) fn unsealed_secret(bytes: &[u8]) -> Option<[u8; 32]> {
    bytes.first_chunk().filter(|secret| sealed_secret(secret) == bytes).copied()
}

/// `magic 16 | version 4 | secret 32 | check 12`
fn header(secret: &[u8; 32]) -> [u8; HEADER] {
    let mut out = [0; HEADER];
    out[..16].copy_from_slice(MAGIC);
    out[16..20].copy_from_slice(&VERSION.to_le_bytes());
    out[20..52].copy_from_slice(secret);
    let check = blake3::hash(&out[..52]);
    out[52..].copy_from_slice(&check.as_bytes()[..12]);
    out
}

/// The secret in the log's header; none where the header is damaged, and an error where its version is another.
fn read_header(log: &File, path: &Path) -> Result<Option<[u8; 32]>, JournalError> {
    let mut bytes = [0; HEADER];
    if log.read_exact_at(&mut bytes, 0).is_err() {
        return Ok(None);
    }
    if bytes[..16] != *MAGIC || bytes[52..] != blake3::hash(&bytes[..52]).as_bytes()[..12] {
        return Ok(None);
    }
    match bytes[16..].first_chunk().map(|version| u32::from_le_bytes(*version)) {
        Some(VERSION) => Ok(bytes[20..].first_chunk().copied()),
        Some(found) => Err(JournalError::Version { path: path.to_owned(), found }),
        None => Ok(None),
    }
}

/// Makes a file that is there whole or not at all, even after a loss of power.
fn place(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let draft = folder.join(format!("{name}.new"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&draft, folder.join(name))?;
    File::open(folder)?.sync_all()
}
