//! A job and its folder: `job.json` (state), `request.json` (until it is over), `results.jsonl`, and partial results in `scored.lines`.

use crate::atomic_file;
use crate::unix_time;
use plaudit::exec::{CancelToken, lock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Results so far of a job that gave up its place before it was done.
const SCORED: &str = "scored.lines";

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Stage")]
pub(crate) enum JobState {
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

impl JobState {
    pub(crate) const ALL: [(Self, &'static str); 5] = [
        (Self::Waiting, "waiting"),
        (Self::Running, "running"),
        (Self::Done, "done"),
        (Self::Cancelled, "cancelled"),
        (Self::Failed, "failed"),
    ];

    pub(crate) fn is_over(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }
}

/// What a client sees of a job.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct JobStatus {
    /// Its id.
    pub(crate) job: String,
    pub(crate) state: JobState,
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
}

/// `job.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct JobRecord {
    #[serde(flatten)]
    pub(crate) status: JobStatus,
    pub(crate) owner: String,
    /// The Idempotency-Key.
    pub(crate) key: Option<String>,
    /// The hash of the request.
    pub(crate) hash: String,
}

/// A job as it is shown.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobReply {
    #[serde(flatten)]
    status: JobStatus,
    /// How many of its rollouts have been scored.
    scored: u64,
}

/// A job, in memory and on the disk.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) folder: PathBuf,
    pub(crate) cancel: CancelToken,
    pub(crate) scored: AtomicU64,
    /// Its size on the disk: the request while it is open, and then its results.
    pub(crate) bytes: AtomicU64,
    /// Whether it gives up its place once what it has under way is done.
    pub(crate) leaving: AtomicBool,
    /// Since when it has waited, or run.
    since: Mutex<f64>,
    record: Mutex<JobRecord>,
}

impl Job {
    pub(crate) fn new(folder: PathBuf, record: JobRecord) -> Self {
        let scored = if record.status.state == JobState::Done { record.status.rollouts } else { 0 };
        let job = Self {
            folder,
            cancel: CancelToken::new(),
            scored: AtomicU64::new(scored as u64),
            bytes: AtomicU64::new(0),
            leaving: AtomicBool::new(false),
            since: Mutex::new(record.status.created),
            record: Mutex::new(record),
        };
        job.measure();
        job
    }

    /// Measures its size on the disk.
    fn measure(&self) {
        let length = |name: &str| fs::metadata(self.folder.join(name)).map_or(0, |about| about.len());
        let bytes = ["request.json", "results.jsonl", SCORED].into_iter().map(length).sum();
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Reads the job of a folder; one that was running waits again. None where the job was never accepted.
    pub(crate) fn read(folder: PathBuf) -> std::io::Result<Option<Self>> {
        let text = match fs::read_to_string(folder.join("job.json")) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let mut record: JobRecord = serde_json::from_str(&text)?;
        if folder.file_name().is_none_or(|name| name != record.status.job.as_str()) {
            return Err(std::io::Error::other("it holds a job of another name"));
        }
        if record.status.state == JobState::Running {
            record.status.state = JobState::Waiting;
        }
        // Partial results may be of another version of the recipe.
        let _ = fs::remove_file(folder.join(SCORED));
        Ok(Some(Self::new(folder, record)))
    }

    pub(crate) fn record(&self) -> MutexGuard<'_, JobRecord> {
        lock(&self.record)
    }

    pub(crate) fn reply(&self) -> JobReply {
        JobReply { status: self.record().status.clone(), scored: self.scored.load(Ordering::Relaxed) }
    }

    /// Changes the record, in memory and on the disk.
    pub(crate) fn change(&self, change: impl FnOnce(&mut JobRecord)) {
        let mut record = self.record();
        change(&mut record);
        self.save(&record);
    }

    /// Starts a waiting job; false where it was cancelled meanwhile.
    pub(crate) fn start(&self) -> bool {
        let mut record = self.record();
        if record.status.state != JobState::Waiting {
            return false;
        }
        record.status.state = JobState::Running;
        self.save(&record);
        drop(record);
        self.leaving.store(false, Ordering::Relaxed);
        *lock(&self.since) = unix_time();
        true
    }

    /// Puts a running job back into the queue with the results of this turn, by their places. A job that is over stays so.
    pub(crate) fn set_aside(&self, fresh: &[(usize, String)]) {
        let mut record = self.record();
        if record.status.state != JobState::Running {
            return;
        }
        let path = self.folder.join(SCORED);
        let mut text = String::new();
        for (place, line) in fresh {
            text.push_str(&format!("{place} {line}\n"));
        }
        let file = fs::OpenOptions::new().create(true).append(true).open(&path);
        if let Err(error) = file.and_then(|mut file| file.write_all(text.as_bytes())) {
            // It starts again; judgments come from the journal.
            let _ = fs::remove_file(&path);
            log_write_error(&record, &error);
        }
        self.measure();
        record.status.state = JobState::Waiting;
        *lock(&self.since) = unix_time();
    }

    /// The results of earlier turns, by their places.
    pub(crate) fn earlier(&self) -> Vec<(usize, String)> {
        let text = fs::read_to_string(self.folder.join(SCORED)).unwrap_or_else(|_| String::new());
        let read = |line: &str| {
            let (place, line) = line.split_once(' ')?;
            Some((place.parse().ok()?, line.to_owned()))
        };
        text.lines().filter_map(read).collect()
    }

    #[cfg(test)]
    pub(crate) fn backdate(&self, seconds: f64) {
        *lock(&self.since) -= seconds;
    }

    /// Since when it has waited, or run.
    pub(crate) fn since(&self) -> f64 {
        *lock(&self.since)
    }

    /// Ends a job; false where it was over already.
    pub(crate) fn end(&self, stage: JobState, message: Option<String>) -> bool {
        let mut record = self.record();
        if record.status.state.is_over() {
            return false;
        }
        (record.status.state, record.status.message, record.status.ended) =
            (stage, message, Some(unix_time()));
        // The request is deleted only once the disk knows that the job is over.
        if self.save(&record) {
            let _ = fs::remove_file(self.folder.join("request.json"));
        }
        let _ = fs::remove_file(self.folder.join(SCORED));
        self.measure();
        true
    }

    /// Cancels a job whose owner has no valid token any more.
    pub(crate) fn cancel_orphan(&self) {
        let message = "its token has been revoked or has expired";
        if self.end(JobState::Cancelled, Some(message.to_owned())) {
            self.cancel.cancel();
        }
    }

    fn save(&self, record: &JobRecord) -> bool {
        let text = serde_json::to_string(record).map_err(std::io::Error::other);
        let saved = text.and_then(|text| atomic_file::write(&self.folder.join("job.json"), text.as_bytes()));
        if let Err(error) = &saved {
            log_write_error(record, error);
        }
        saved.is_ok()
    }
}

fn log_write_error(record: &JobRecord, error: &std::io::Error) {
    tracing::error!(job = record.status.job, why = %error, "a job could not be written");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(job: &str) -> JobRecord {
        serde_json::from_value(json!({
            "job": job, "state": "waiting", "recipe": "r", "run": null, "run_id": null, "step": null, "rollouts": 1,
            "bad": 0, "created": 1.0, "ended": null, "message": null, "owner": "o", "key": null, "hash": "",
        }))
        .unwrap()
    }

    #[test]
    fn results_of_turns_are_kept_until_the_job_ends() {
        let folder = std::env::temp_dir().join(format!("plaudit-turns-{}", std::process::id())).join("one");
        fs::create_dir_all(&folder).unwrap();
        let job = Job::new(folder.clone(), record("one"));
        let lines = [(3, "{\"a\":\"b c\"}".to_owned()), (0, "{}".to_owned())];
        for line in &lines {
            assert!(job.start());
            job.set_aside(std::slice::from_ref(line));
            assert_eq!(job.record().status.state, JobState::Waiting);
        }
        assert_eq!(job.earlier(), lines);
        assert!(job.since() > 1.0 && job.bytes.load(Ordering::Relaxed) > 0);
        assert!(job.end(JobState::Cancelled, None) && job.earlier().is_empty());
        job.set_aside(&lines);
        assert!(job.record().status.state == JobState::Cancelled && job.earlier().is_empty(), "it is over");
        fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }

    #[test]
    fn cancelled_jobs_do_not_start_and_corrupt_differ_from_missing() {
        let folder = std::env::temp_dir().join(format!("plaudit-job-{}", std::process::id())).join("one");
        fs::create_dir_all(&folder).unwrap();
        assert!(Job::read(folder.clone()).unwrap().is_none(), "it was never accepted");
        let job = Job::new(folder.clone(), record("one"));
        assert!(job.end(JobState::Cancelled, None) && !job.start() && !job.end(JobState::Done, None));
        let again = Job::read(folder.clone()).unwrap().unwrap();
        assert_eq!(again.record().status.state, JobState::Cancelled);
        let whole = fs::read(folder.join("job.json")).unwrap();
        for length in 0..whole.len() {
            fs::write(folder.join("job.json"), &whole[..length]).unwrap();
            assert!(Job::read(folder.clone()).is_err(), "{length} bytes of it");
        }
        fs::write(folder.join("job.json"), json!(record("../two")).to_string()).unwrap();
        assert!(Job::read(folder.clone()).is_err());
        fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }
}
