//! On-disk storage for runs: metadata, one JSON line per step, and sampled groups, as plain files in a folder.
//!
//! | File | What it holds |
//! |---|---|
//! | `run.json` | metadata and counters: [`RunSummary`] |
//! | `steps.jsonl` | a line for every step that has ended |
//! | `open.json` | the steps that had not ended when it was written, for a service that is killed |
//! | `groups.jsonl` | the index of sampled groups: where each lies, and its figures |
//! | `groups-N.jsonl` | those groups with their texts; the oldest of these files go first |
//!
//! One thread writes, so that scoring never waits for the disk. Readers skip a line that a crash or a full disk cut off, and the writer
//! begins the next one on a line of its own.

use super::alarms::Alarm;
use super::sample::GroupSnapshot;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// Into how many files the groups of a run are cut.
const PARTS: u64 = 4;
/// How many bytes of groups may wait to be written; further ones are dropped.
const MAX_WAITING: usize = 64 << 20;
/// How much of a file is read back, of its end.
const MAX_BYTES: u64 = 256 << 20;
/// From how many pending operations on the writer is behind.
const BEHIND: usize = 1024;
/// How long write errors are not logged again.
const AGAIN: Duration = Duration::from_secs(60);

/// What a run is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "About")]
pub struct RunSummary {
    /// Its id.
    pub id: String,
    /// The name that its client gives it.
    pub name: String,
    /// The token whose holder it belongs to.
    pub owner: String,
    /// The name of its recipe.
    pub recipe: String,
    /// When it began, in seconds since 1970.
    pub started: f64,
    /// When its last rollout came.
    pub seen: f64,
    /// How many steps it has.
    pub steps: u64,
    /// How many rollouts.
    pub rollouts: u64,
    /// How many groups.
    pub groups: u64,
    /// The mean total of its last step.
    pub total_mean: Option<f64>,
    /// The share of invalid rollouts of its last step.
    pub invalid_share: Option<f64>,
    /// What is wrong with its last step.
    pub alarms: Vec<Alarm>,
    /// What its judges are.
    pub fingerprint: String,
    /// The components of its recipe; left out in a list of runs.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub components: Value,
    /// The names of its judges.
    pub judges: Value,
    /// The number of the next group that is kept.
    #[serde(default)]
    pub next_group: u64,
}

/// Where a group lies, and its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Brief")]
pub struct GroupSummary {
    /// Its id in the run.
    pub id: String,
    /// Its name, or its prompt.
    pub group: String,
    /// Its step.
    pub step: u64,
    /// When it was scored, in seconds since 1970.
    pub at: f64,
    /// How many members it has.
    pub size: usize,
    /// The mean of its totals.
    pub mean: Option<f64>,
    /// Their standard deviation.
    pub std: Option<f64>,
    /// The least of them.
    pub min: Option<f64>,
    /// The greatest of them.
    pub max: Option<f64>,
    /// How many members are invalid.
    pub invalid: usize,
    /// How many are floored.
    pub floored: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct GroupLocation {
    part: u64,
    from: u64,
    length: u64,
    #[serde(flatten)]
    summary: GroupSummary,
}

enum WriteOp {
    Append(PathBuf, String),
    Replace(PathBuf, String),
    Group { folder: PathBuf, sample: Box<GroupSnapshot>, most: u64 },
    Remove(PathBuf),
    Flush(mpsc::Sender<()>),
}

/// The handle of the thread that writes.
#[derive(Debug, Clone)]
pub(crate) struct RunWriter {
    queue: mpsc::Sender<WriteOp>,
    waiting: Arc<AtomicUsize>,
    pending: Arc<AtomicUsize>,
    failures: Arc<AtomicUsize>,
}

impl RunWriter {
    /// Starts the thread, which gives write errors to `log`.
    pub(crate) fn start(log: impl Fn(&Path, &io::Error) + Send + 'static) -> io::Result<Self> {
        let (queue, receive) = mpsc::channel::<WriteOp>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let pending = Arc::new(AtomicUsize::new(0));
        let failures = Arc::new(AtomicUsize::new(0));
        let (counted, done, failing) = (Arc::clone(&waiting), Arc::clone(&pending), Arc::clone(&failures));
        let work = move || {
            let mut parts = BTreeMap::new();
            let mut logged: Option<Instant> = None;
            while let Ok(op) = receive.recv() {
                done.fetch_sub(1, Ordering::AcqRel);
                // A panic in one operation does not stop the others.
                let op = AssertUnwindSafe(|| perform(op, &counted, &mut parts));
                let failed = std::panic::catch_unwind(op).unwrap_or_else(|_| {
                    Some((PathBuf::from("runs"), io::Error::other("something failed that must not")))
                });
                let Some((path, error)) = failed else { continue };
                failing.fetch_add(1, Ordering::AcqRel);
                if logged.is_none_or(|logged| logged.elapsed() > AGAIN) {
                    log(&path, &error);
                    logged = Some(Instant::now());
                }
            }
        };
        std::thread::Builder::new().name("plaudit-keep".to_owned()).spawn(work)?;
        Ok(Self { queue, waiting, pending, failures })
    }

    /// How many operations have failed.
    pub(crate) fn failures(&self) -> usize {
        self.failures.load(Ordering::Acquire)
    }

    /// Whether the disk is slower than the service.
    pub(crate) fn is_behind(&self) -> bool {
        self.pending.load(Ordering::Acquire) > BEHIND
    }

    fn send(&self, op: WriteOp) {
        self.pending.fetch_add(1, Ordering::AcqRel);
        // The thread lives as long as somebody can send to it.
        let _ = self.queue.send(op);
    }

    /// Appends a line to a file, unless too much waits to be written.
    pub(crate) fn append(&self, path: PathBuf, line: String) {
        if self.waiting.fetch_add(line.len(), Ordering::AcqRel) + line.len() > 2 * MAX_WAITING {
            self.waiting.fetch_sub(line.len(), Ordering::AcqRel);
            return;
        }
        self.send(WriteOp::Append(path, line));
    }

    /// Replaces a file; readers see the old content or the new one.
    pub(crate) fn replace(&self, path: PathBuf, text: String) {
        self.send(WriteOp::Replace(path, text));
    }

    /// Stores a group, unless too much waits to be written.
    pub(crate) fn put_group(&self, folder: PathBuf, sample: GroupSnapshot, most: u64) {
        let bytes = sample.bytes();
        if self.waiting.fetch_add(bytes, Ordering::AcqRel) + bytes > MAX_WAITING {
            self.waiting.fetch_sub(bytes, Ordering::AcqRel);
            return;
        }
        self.send(WriteOp::Group { folder, sample: Box::new(sample), most });
    }

    /// Removes a folder.
    pub(crate) fn remove(&self, folder: PathBuf) {
        self.send(WriteOp::Remove(folder));
    }

    /// Waits until everything before it is written, for at most ten seconds.
    pub(crate) fn flush(&self) {
        let (done, wait) = mpsc::channel();
        self.send(WriteOp::Flush(done));
        let _ = wait.recv_timeout(Duration::from_secs(10));
    }
}

/// Performs one operation; the path and the error where it fails.
fn perform(
    op: WriteOp,
    waiting: &AtomicUsize,
    parts: &mut BTreeMap<PathBuf, u64>,
) -> Option<(PathBuf, io::Error)> {
    let (path, done) = match op {
        WriteOp::Append(path, line) => {
            waiting.fetch_sub(line.len(), Ordering::AcqRel);
            let done = append(&path, &line);
            (path, done)
        }
        WriteOp::Replace(path, text) => {
            let done = replace(&path, &text);
            (path, done)
        }
        WriteOp::Group { folder, sample, most } => {
            waiting.fetch_sub(sample.bytes(), Ordering::AcqRel);
            let line = sample.line();
            let done = put_group(&folder, sample.summary, &line, most, parts);
            (folder, done)
        }
        WriteOp::Remove(path) => {
            parts.remove(&path);
            let done = fs::remove_dir_all(&path);
            (path, done)
        }
        WriteOp::Flush(done) => {
            let _ = done.send(());
            return None;
        }
    };
    done.err().map(|error| (path, error))
}

/// Makes a folder that only its owner may read, and those above it.
pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    use std::os::unix::fs::DirBuilderExt as _;
    builder.mode(0o700);
    builder.create(path)
}

/// Opens a file that only its owner may read. A folder that was removed meanwhile is made again.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.mode(0o600);
    match (options.open(path), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
            private_folder(folder)?;
            options.open(path)
        }
        (file, _) => file,
    }
}

fn append(path: &Path, line: &str) -> io::Result<()> {
    let mut file = open(path, OpenOptions::new().create(true).read(true).append(true))?;
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    // After a line that was cut off, start a new one.
    let start = if last == *b"\n" { "" } else { "\n" };
    file.write_all(format!("{start}{line}\n").as_bytes())
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("part");
    let mut file = open(&part, OpenOptions::new().create(true).write(true).truncate(true))?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    fs::rename(&part, path)
}

/// The file of that number with the texts of groups.
fn part_of(folder: &Path, part: u64) -> PathBuf {
    folder.join(format!("groups-{part}.jsonl"))
}

fn put_group(
    folder: &Path,
    summary: GroupSummary,
    line: &str,
    most: u64,
    parts: &mut BTreeMap<PathBuf, u64>,
) -> io::Result<()> {
    let part = parts.entry(folder.to_path_buf()).or_insert_with(|| last_part(folder));
    let mut file = open(&part_of(folder, *part), OpenOptions::new().create(true).append(true))?;
    let mut from = file.metadata()?.len();
    if from > 0 && from + line.len() as u64 > most / PARTS {
        *part = part.saturating_add(1);
        file = open(&part_of(folder, *part), OpenOptions::new().create(true).append(true))?;
        from = file.metadata()?.len();
        if let Some(old) = part.checked_sub(PARTS) {
            let _ = fs::remove_file(part_of(folder, old));
            compact_index(folder, old)?;
        }
    }
    file.write_all(format!("{line}\n").as_bytes())?;
    let placed = GroupLocation { part: *part, from, length: line.len() as u64, summary };
    let placed = serde_json::to_string(&placed).map_err(io::Error::other)?;
    append(&folder.join("groups.jsonl"), &placed)
}

/// Removes the groups of deleted files from the index.
fn compact_index(folder: &Path, gone: u64) -> io::Result<()> {
    let left = locations(folder)?.into_iter().filter(|placed| placed.part > gone);
    let lines: Result<Vec<String>, _> = left.map(|placed| serde_json::to_string(&placed)).collect();
    let lines = lines.map_err(io::Error::other)?;
    replace(&folder.join("groups.jsonl"), &lines.into_iter().map(|line| line + "\n").collect::<String>())
}

fn last_part(folder: &Path) -> u64 {
    let placed = locations(folder).map(|all| all.into_iter().map(|placed| placed.part).max());
    placed.ok().flatten().unwrap_or(0)
}

/// The lines of a file that are whole.
fn lines(path: &Path) -> io::Result<Vec<String>> {
    newest_lines(path, MAX_BYTES)
}

/// The whole lines among the last bytes of a file; none where it does not exist.
pub(crate) fn newest_lines(path: &Path, bytes: u64) -> io::Result<Vec<String>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut lines = Vec::new();
    // One byte before, so that a line that begins there is known to be whole.
    let from = file.metadata()?.len().saturating_sub(bytes.saturating_add(1));
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::new(file.take(MAX_BYTES + 1));
    let mut line = Vec::new();
    if from > 0 {
        reader.read_until(b'\n', &mut line)?;
        line.clear();
    }
    while reader.read_until(b'\n', &mut line)? > 0 {
        if line.ends_with(b"\n")
            && let Ok(text) = std::str::from_utf8(&line)
            && text.starts_with('{')
            && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
        {
            lines.push(text.trim_end().to_owned());
        }
        line.clear();
    }
    Ok(lines)
}

fn locations(folder: &Path) -> io::Result<Vec<GroupLocation>> {
    let lines = lines(&folder.join("groups.jsonl"))?;
    Ok(lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// Reads `run.json`.
pub fn read_summary(folder: &Path) -> Option<RunSummary> {
    let summary: RunSummary =
        serde_json::from_str(&fs::read_to_string(folder.join("run.json")).ok()?).ok()?;
    folder.file_name().is_some_and(|name| name == summary.id.as_str()).then_some(summary)
}

/// The steps of a run, one JSON line each. Those that were open when the service was killed come last.
pub fn steps(folder: &Path) -> io::Result<Vec<String>> {
    let mut steps: Vec<String> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let open = lines(&folder.join("open.json"))?;
    for line in lines(&folder.join("steps.jsonl"))?.into_iter().chain(open) {
        // A step that was opened again for late rollouts is written again.
        let place = *places.entry(step_identity(&line).to_owned()).or_insert(steps.len());
        match steps.get_mut(place) {
            Some(step) => *step = line,
            None => steps.push(line),
        }
    }
    Ok(steps)
}

/// Of the last bytes of its files, the steps of a run that have ended, and those that were open when the service was killed.
pub fn newest_steps(folder: &Path, bytes: u64) -> (Vec<String>, Vec<String>) {
    let lines = |name: &str| {
        let lines = newest_lines(&folder.join(name), bytes).unwrap_or_else(|_| Vec::new());
        lines.into_iter().filter(|line| step_number(line).is_some()).collect::<Vec<_>>()
    };
    let (ended, mut open) = (lines("steps.jsonl"), lines("open.json"));
    // The service may have been killed after a step was written to `steps.jsonl` and before `open.json` was replaced.
    open.retain(|line| !ended.iter().any(|known| step_identity(known) == step_identity(line)));
    (ended, open)
}

/// Thins out the steps of a long run: keeps the newest, and every n-th before it.
pub fn spread(steps: &mut Vec<String>, most: usize) {
    let (every, last) = (steps.len().div_ceil(most.max(1)).max(1), steps.len().saturating_sub(1));
    let mut at = 0..;
    steps.retain(|_| at.next().is_some_and(|at: usize| (last - at).is_multiple_of(every)));
}

/// The number of a step in its JSON line, which begins with it.
pub fn step_number(step: &str) -> Option<u64> {
    let rest = step.strip_prefix("{\"step\":")?;
    rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// What two lines of one step have in common: its number and when it began.
pub(crate) fn step_identity(line: &str) -> &str {
    line.split_once(",\"to\":").map_or(line, |(identity, _)| identity)
}

/// The number of a group in its line of the index.
pub(crate) fn group_number(line: &str) -> Option<u64> {
    serde_json::from_str::<GroupLocation>(line).ok()?.summary.id.parse().ok()
}

/// The sampled groups, newest last.
pub fn groups(folder: &Path, step: Option<u64>) -> io::Result<Vec<GroupSummary>> {
    let mut there = BTreeMap::new();
    let mut exists = |part: u64| *there.entry(part).or_insert_with(|| part_of(folder, part).exists());
    let fits = |placed: &GroupLocation| step.is_none_or(|step| placed.summary.step == step);
    let groups = locations(folder)?.into_iter().filter(fits).filter(|placed| exists(placed.part));
    Ok(groups.map(|placed| placed.summary).collect())
}

/// One group with its texts and figures.
pub fn group(folder: &Path, id: &str) -> io::Result<Option<Value>> {
    let Some(found) = locations(folder)?.into_iter().find(|placed| placed.summary.id == id) else {
        return Ok(None);
    };
    let mut file = match File::open(part_of(folder, found.part)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    file.seek(SeekFrom::Start(found.from))?;
    let mut text = String::new();
    file.take(found.length.min(MAX_BYTES)).read_to_string(&mut text)?;
    let mut group: Value = serde_json::from_str(&text).map_err(io::Error::other)?;
    let summary = serde_json::to_value(&found.summary).map_err(io::Error::other)?;
    if let (Some(group), Value::Object(summary)) = (group.as_object_mut(), summary) {
        group.extend(summary);
    }
    Ok(Some(group))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plaudit::engine::Engine;
    use plaudit::recipe::Recipe;
    use plaudit::rollout::Rollout;

    fn sample(engine: &Engine, id: u64, text: String) -> GroupSnapshot {
        let rollouts = [Rollout::new(text).in_group(format!("g{id}"))];
        let report = engine.score(&rollouts).unwrap();
        GroupSnapshot::of((id, id / 10), &[0], (&rollouts, &report), None, None)
    }

    #[test]
    fn stored_groups_are_found_and_the_oldest_deleted() {
        let folder = std::env::temp_dir().join(format!("plaudit-store-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let writer = RunWriter::start(|path, error| panic!("{}: {error}", path.display())).unwrap();
        let yaml = "components: { length: { reward: length_penalty, min_length: 4, penalty_rate: 1.0 } }\n";
        let engine = Engine::new(Recipe::from_yaml(yaml).unwrap().plan().unwrap()).unwrap();
        for id in 0..40 {
            writer.put_group(folder.clone(), sample(&engine, id, "x".repeat(100 + id as usize)), 12_000);
        }
        writer.append(folder.join("steps.jsonl"), "{\"step\":7,\"x\":1}".to_owned());
        writer.flush();
        let listed = fs::read_to_string(folder.join("groups.jsonl")).unwrap().lines().count();
        assert!(listed < 40, "the list does not name what is gone");
        fs::OpenOptions::new()
            .append(true)
            .open(folder.join("steps.jsonl"))
            .unwrap()
            .write_all(b"{\"step\":8,\"cut")
            .unwrap();
        let numbers =
            || steps(&folder).unwrap().iter().filter_map(|step| step_number(step)).collect::<Vec<_>>();
        assert_eq!(numbers(), [7]);
        // What comes after a line that was cut off stands for itself, and what is no JSON is passed over.
        fs::write(folder.join("open.json"), "{\"step\":10}\n{\"step\":11,}\n\u{fffd}\n{\"step\":12").unwrap();
        writer.append(folder.join("steps.jsonl"), "{\"step\":9}".to_owned());
        writer.flush();
        assert_eq!(numbers(), [7, 9, 10]);
        assert_eq!(newest_lines(&folder.join("steps.jsonl"), 11).unwrap(), ["{\"step\":9}"]);
        assert!(newest_lines(&folder.join("steps.jsonl"), 10).unwrap().is_empty());
        let thinned = |many: usize, most: usize| {
            let mut steps: Vec<String> = (0..many).map(|step| step.to_string()).collect();
            spread(&mut steps, most);
            steps
        };
        assert_eq!(thinned(10, 3), ["1", "5", "9"]);
        assert_eq!((thinned(10, 10).len(), thinned(11, 10).len(), thinned(0, 3).len()), (10, 6, 0));
        let stored = groups(&folder, None).unwrap();
        assert!(stored.len() < 40 && stored.len() >= 20, "{}", stored.len());
        assert_eq!(stored.last().unwrap().id, "39");
        assert_eq!(groups(&folder, Some(3)).unwrap().len(), 10);
        let found = group(&folder, "39").unwrap().unwrap();
        let text = found["rollouts"][0]["response"].as_str().unwrap();
        assert_eq!((found["step"].as_u64(), text.len()), (Some(3), 139));
        assert!(group(&folder, "0").unwrap().is_none(), "its file has gone");
        writer.remove(folder.clone());
        writer.flush();
        assert!(!folder.exists());
    }
}
