//! What is a job, and where does it lie? In a folder with what was asked, how far it is, and its results.

use super::log;
use super::run::clock;
use plaudit::exec::CancelToken;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The results of a job that gave its place up before it was done.
const SCORED: &str = "scored.lines";

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    /// It waits for its turn.
    Waiting,
    /// It is being scored.
    Running,
    /// Its results can be fetched.
    Done,
    /// It was called off.
    Cancelled,
    /// It could not be done; `message` says why.
    Failed,
}

impl Stage {
    pub(super) const ALL: [(Self, &'static str); 5] = [
        (Self::Waiting, "waiting"),
        (Self::Running, "running"),
        (Self::Done, "done"),
        (Self::Cancelled, "cancelled"),
        (Self::Failed, "failed"),
    ];

    pub(super) fn is_over(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }
}

/// A job as it is written and shown.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Written {
    /// Its id.
    pub(crate) job: String,
    pub(crate) state: Stage,
    pub(crate) recipe: String,
    /// The name of the run that it belongs to, and its id once it has begun.
    pub(crate) run: Option<String>,
    pub(crate) run_id: Option<String>,
    pub(crate) step: Option<u64>,
    /// How many rollouts it has.
    pub(crate) rollouts: usize,
    /// How many could not be read.
    pub(crate) bad: usize,
    pub(crate) created: f64,
    pub(crate) ended: Option<f64>,
    pub(crate) message: Option<String>,
    #[schemars(skip)]
    pub(super) owner: String,
    #[schemars(skip)]
    pub(super) key: Option<String>,
    #[schemars(skip)]
    pub(super) hash: String,
}

/// A job, on the disk and in memory.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) folder: PathBuf,
    pub(super) cancel: CancelToken,
    pub(super) scored: AtomicU64,
    /// What it takes on the disk: what was asked while it is open, and then its results.
    pub(super) bytes: AtomicU64,
    /// Whether it gives its place up as soon as what it has under way is done.
    pub(super) leaving: AtomicBool,
    /// Since when it has waited, or run.
    since: Mutex<f64>,
    written: Mutex<Written>,
}

impl Job {
    pub(super) fn new(folder: PathBuf, written: Written) -> Self {
        let scored = if written.state == Stage::Done { written.rollouts } else { 0 };
        let job = Self {
            folder,
            cancel: CancelToken::new(),
            scored: AtomicU64::new(scored as u64),
            bytes: AtomicU64::new(0),
            leaving: AtomicBool::new(false),
            since: Mutex::new(written.created),
            written: Mutex::new(written),
        };
        job.weigh();
        job
    }

    /// Looks what it takes on the disk.
    fn weigh(&self) {
        let length = |name: &str| fs::metadata(self.folder.join(name)).map_or(0, |about| about.len());
        let bytes = ["request.json", "results.jsonl", SCORED].into_iter().map(length).sum();
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// What lies in a folder; what had begun begins anew. None where the job was never accepted.
    pub(super) fn read(folder: PathBuf) -> std::io::Result<Option<Self>> {
        let text = match fs::read_to_string(folder.join("job.json")) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let mut written: Written = serde_json::from_str(&text)?;
        if folder.file_name().is_none_or(|name| name != written.job.as_str()) {
            return Err(std::io::Error::other("it holds a job of another name"));
        }
        if written.state == Stage::Running {
            written.state = Stage::Waiting;
        }
        // The recipe may be another one now.
        let _ = fs::remove_file(folder.join(SCORED));
        Ok(Some(Self::new(folder, written)))
    }

    pub(super) fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn shown(&self) -> Value {
        let mut value = json!(&*self.written());
        value["scored"] = json!(self.scored.load(Ordering::Relaxed));
        for hidden in ["owner", "key", "hash"] {
            value.as_object_mut().map(|map| map.remove(hidden));
        }
        value
    }

    /// Moves on, on the disk as well.
    pub(super) fn change(&self, change: impl FnOnce(&mut Written)) {
        let mut written = self.written();
        change(&mut written);
        self.keep(&written);
    }

    /// Begins, unless somebody has called it off meanwhile.
    pub(super) fn start(&self) -> bool {
        let mut written = self.written();
        if written.state != Stage::Waiting {
            return false;
        }
        written.state = Stage::Running;
        self.keep(&written);
        drop(written);
        self.leaving.store(false, Ordering::Relaxed);
        *self.moment() = clock();
        true
    }

    /// Waits for its next turn, with the results it has got in this one, by their places. One that is over stays so.
    pub(super) fn set_aside(&self, fresh: &[(usize, String)]) {
        let mut written = self.written();
        if written.state != Stage::Running {
            return;
        }
        let path = self.folder.join(SCORED);
        let mut text = String::new();
        for (place, line) in fresh {
            text.push_str(&format!("{place} {line}\n"));
        }
        let file = fs::OpenOptions::new().create(true).append(true).open(&path);
        if let Err(error) = file.and_then(|mut file| file.write_all(text.as_bytes())) {
            // It begins anew, with the judgments that have been bought.
            let _ = fs::remove_file(&path);
            self.complain(&written, &error);
        }
        self.weigh();
        written.state = Stage::Waiting;
        *self.moment() = clock();
    }

    /// The results of its earlier turns, by their places.
    pub(super) fn earlier(&self) -> Vec<(usize, String)> {
        let text = fs::read_to_string(self.folder.join(SCORED)).unwrap_or_else(|_| String::new());
        let read = |line: &str| {
            let (place, line) = line.split_once(' ')?;
            Some((place.parse().ok()?, line.to_owned()))
        };
        text.lines().filter_map(read).collect()
    }

    fn moment(&self) -> MutexGuard<'_, f64> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn backdate(&self, seconds: f64) {
        *self.moment() -= seconds;
    }

    /// Since when it has waited, or run.
    pub(super) fn since(&self) -> f64 {
        *self.moment()
    }

    /// Ends, unless it is over; whether it was not.
    pub(super) fn end(&self, stage: Stage, message: Option<String>) -> bool {
        let mut written = self.written();
        // What has been called off stays so.
        if written.state.is_over() {
            return false;
        }
        (written.state, written.message, written.ended) = (stage, message, Some(clock()));
        // What was asked is not needed any more, once it is known on the disk that it is over.
        if self.keep(&written) {
            let _ = fs::remove_file(self.folder.join("request.json"));
        }
        let _ = fs::remove_file(self.folder.join(SCORED));
        self.weigh();
        true
    }

    /// Is called off, because nobody may ask for it any more.
    pub(super) fn disown(&self) {
        let message = "its token has been revoked or has expired";
        if self.end(Stage::Cancelled, Some(message.to_owned())) {
            self.cancel.cancel();
        }
    }

    fn keep(&self, written: &Written) -> bool {
        let text = serde_json::to_string(written).map_err(std::io::Error::other);
        let kept = text.and_then(|text| put(&self.folder.join("job.json"), text.as_bytes()));
        if let Err(error) = &kept {
            self.complain(written, error);
        }
        kept.is_ok()
    }

    fn complain(&self, written: &Written, error: &std::io::Error) {
        let facts = [("job", Value::from(written.job.as_str())), ("why", Value::from(error.to_string()))];
        log::say("error", "a job could not be written", &facts);
    }
}

/// Writes a file that is there whole or not at all, even after a crash.
pub(super) fn put(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let part = path.with_extension("part");
    let mut options = fs::OpenOptions::new();
    options.create(true).write(true).truncate(true);
    use std::os::unix::fs::OpenOptionsExt as _;
    options.mode(0o600);
    let mut file = options.open(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&part, path)?;
    // The name is on the disk as well when the folder is.
    path.parent().map_or(Ok(()), sync)
}

/// Waits until the names in a folder are on the disk.
pub(super) fn sync(folder: &Path) -> std::io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(job: &str) -> Written {
        serde_json::from_value(json!({
            "job": job, "state": "waiting", "recipe": "r", "run": null, "run_id": null, "step": null, "rollouts": 1,
            "bad": 0, "created": 1.0, "ended": null, "message": null, "owner": "o", "key": null, "hash": "",
        }))
        .unwrap()
    }

    #[test]
    fn a_job_keeps_what_its_turns_have_brought_until_it_is_over() {
        let folder = std::env::temp_dir().join(format!("plaudit-turns-{}", std::process::id())).join("one");
        fs::create_dir_all(&folder).unwrap();
        let job = Job::new(folder.clone(), written("one"));
        let lines = [(3, "{\"a\":\"b c\"}".to_owned()), (0, "{}".to_owned())];
        for line in &lines {
            assert!(job.start());
            job.set_aside(std::slice::from_ref(line));
            assert_eq!(job.written().state, Stage::Waiting);
        }
        assert_eq!(job.earlier(), lines);
        assert!(job.since() > 1.0 && job.bytes.load(Ordering::Relaxed) > 0);
        assert!(job.end(Stage::Cancelled, None) && job.earlier().is_empty());
        job.set_aside(&lines);
        assert!(job.written().state == Stage::Cancelled && job.earlier().is_empty(), "it is over");
        fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }

    #[test]
    fn what_is_called_off_does_not_begin_and_what_is_damaged_is_told_from_what_never_was() {
        let folder = std::env::temp_dir().join(format!("plaudit-job-{}", std::process::id())).join("one");
        fs::create_dir_all(&folder).unwrap();
        assert!(Job::read(folder.clone()).unwrap().is_none(), "it was never accepted");
        let job = Job::new(folder.clone(), written("one"));
        assert!(job.end(Stage::Cancelled, None) && !job.start() && !job.end(Stage::Done, None));
        let again = Job::read(folder.clone()).unwrap().unwrap();
        assert_eq!(again.written().state, Stage::Cancelled);
        let whole = fs::read(folder.join("job.json")).unwrap();
        for length in 0..whole.len() {
            fs::write(folder.join("job.json"), &whole[..length]).unwrap();
            assert!(Job::read(folder.clone()).is_err(), "{length} bytes of it");
        }
        fs::write(folder.join("job.json"), json!(written("../two")).to_string()).unwrap();
        assert!(Job::read(folder.clone()).is_err());
        fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }
}
