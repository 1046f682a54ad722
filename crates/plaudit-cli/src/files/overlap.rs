//! Refuses outputs that would overwrite what a run reads, or one another, and names of formats that are not written.

use super::output::{is_stdout, resolved};
use crate::error::CliError;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A file of a run: what it is to the run, such as `the input` or `--out`, and its path.
pub(crate) type Role<'r> = (&'r str, &'r str);

/// Which file a path leads to.
#[derive(PartialEq)]
enum Identity {
    /// A regular file, by device and inode, whatever links lead to it.
    File(u64, u64),
    /// A file that is not there yet.
    New(PathBuf),
    /// Stdout, where that is a terminal or a pipe.
    Stdout,
}

impl Identity {
    fn of_file(about: &Metadata) -> Option<Self> {
        about.is_file().then(|| Self::File(about.dev(), about.ino()))
    }

    /// What is read from a path; nothing for pipes and devices, which are not overwritten.
    fn of_input(path: &str) -> Option<Self> {
        let about = if path == "-" { about(io::stdin()) } else { std::fs::metadata(path) };
        Self::of_file(&about.ok()?)
    }

    /// What is written to a path; nothing for pipes and devices, which several may write to.
    fn of_output(path: &str) -> Option<Self> {
        if is_stdout(path) {
            let about = about(io::stdout()).ok();
            return Some(about.as_ref().and_then(Self::of_file).unwrap_or(Self::Stdout));
        }
        if let Ok(about) = std::fs::metadata(path) {
            return Self::of_file(&about);
        }
        let target = resolved(Path::new(path)).ok()?;
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(Self::New(folder.join(target.file_name()?)))
    }
}

/// What is known of an open file.
pub(super) fn about(stream: impl AsFd) -> io::Result<Metadata> {
    File::from(stream.as_fd().try_clone_to_owned()?).metadata()
}

/// Refuses outputs that are the same file as something that is read, or as another output.
pub(crate) fn refuse_overlap(reads: &[Role<'_>], writes: &[Role<'_>]) -> Result<(), CliError> {
    let shown = |(flag, path): &Role<'_>| match is_stdout(path) {
        true => format!("{flag} (stdout)"),
        false => format!("{flag} {path:?}"),
    };
    for (at, output) in writes.iter().enumerate() {
        let Some(written) = Identity::of_output(output.1) else { continue };
        let read = reads.iter().find(|(_, path)| Identity::of_input(path).as_ref() == Some(&written));
        if let Some((what, _)) = read {
            let message =
                format!("{} is also {what}: give another file, so that it is not overwritten", shown(output));
            return Err(CliError::Arguments(message));
        }
        let other =
            writes[..at].iter().find(|(_, path)| Identity::of_output(path).as_ref() == Some(&written));
        if let Some((flag, _)) = other {
            let message = format!("{} is also {flag}: give each a file of its own", shown(output));
            return Err(CliError::Arguments(message));
        }
    }
    Ok(())
}

/// Refuses the name of an output that says another format than the one that is written.
pub(crate) fn refuse_format(out: Option<&str>, tables: bool) -> Result<(), CliError> {
    let path = out.unwrap_or("-");
    let written = if tables { "the formats are jsonl and parquet" } else { "JSON lines are written" };
    let extension = Path::new(path).extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let message = match extension.as_deref() {
        Some(kind @ ("csv" | "tsv" | "xls" | "xlsx" | "arrow" | "feather" | "pkl" | "pickle")) => {
            format!("--out {path:?}: results cannot be written as {kind}; {written}")
        }
        Some("parquet") if !tables => {
            format!("--out {path:?}: results cannot be written as parquet; {written}")
        }
        Some("gz" | "zst" | "bz2" | "xz" | "zip") => {
            format!(
                "--out {path:?}: results are not packed; leave --out out and pack them: `... | gzip > FILE`"
            )
        }
        _ => return Ok(()),
    };
    Err(CliError::Arguments(message))
}
