//! Atomic file replacement: readers see the old content or the new one, also after a crash.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Replaces the content of a file that only its owner may read. A symbolic link stays: the file that it leads to is replaced.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = fs::canonicalize(path);
    let path = target.as_deref().unwrap_or(path);
    let part = path.with_extension("part");
    let mut file = fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&part, path)?;
    // The new name is on the disk only when the folder is.
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => sync_folder(folder),
        _ => sync_folder(Path::new(".")),
    }
}

/// Waits until the names in a folder are on the disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}
