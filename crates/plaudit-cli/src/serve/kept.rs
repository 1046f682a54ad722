//! What is left of a run when it is over? Plain files in its folder: what it was, a line a step, and some of its groups.
//!
//! | File | What it holds |
//! |---|---|
//! | `run.json` | what the run is: [`About`] |
//! | `steps.jsonl` | a line for every step that has ended |
//! | `open.json` | the steps that had not ended when it was written, for a service that is killed |
//! | `groups.jsonl` | a line for every group that can be looked at: where it lies, and its figures |
//! | `groups-N.jsonl` | those groups with their texts; the oldest of these files go first |
//!
//! One thread writes, so that nobody who scores waits for a disk. A line that was cut off by a crash or by a full disk is passed
//! over, and the next one begins a line of its own.

use super::alarms::Alarm;
use super::group::Sample;
use super::steps::identity;
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
/// How many bytes of groups may wait to be written; what comes then is not kept.
const MOST_WAITING: usize = 64 << 20;
/// How much of a file is read back, of its end.
const LONGEST: u64 = 256 << 20;
/// From how many deeds on the thread is behind.
const BEHIND: usize = 1024;
/// How long nothing is said again of what cannot be written.
const AGAIN: Duration = Duration::from_secs(60);

/// What a run is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct About {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The token whose holder it belongs to.
    pub(crate) owner: String,
    pub(crate) recipe: String,
    /// When it began and when its last rollout came, in seconds since 1970.
    pub(crate) started: f64,
    pub(crate) seen: f64,
    pub(crate) steps: u64,
    pub(crate) rollouts: u64,
    pub(crate) groups: u64,
    /// The mean total and the share of invalid rollouts of its last step.
    pub(crate) total_mean: Option<f64>,
    pub(crate) invalid_share: Option<f64>,
    /// What is wrong with its last step.
    pub(crate) alarms: Vec<Alarm>,
    /// What its judges are.
    pub(crate) fingerprint: String,
    /// The components of its recipe; left out in a list of runs.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) components: Value,
    pub(crate) judges: Value,
    /// The number of the next group that is kept.
    #[serde(default)]
    pub(crate) next_group: u64,
}

/// Where a group lies, and its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Brief {
    pub(crate) id: String,
    pub(crate) group: String,
    pub(crate) step: u64,
    pub(crate) at: f64,
    pub(crate) size: usize,
    pub(crate) mean: Option<f64>,
    pub(crate) std: Option<f64>,
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) invalid: usize,
    pub(crate) floored: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct Placed {
    part: u64,
    from: u64,
    length: u64,
    #[serde(flatten)]
    brief: Brief,
}

enum Deed {
    Line(PathBuf, String),
    Whole(PathBuf, String),
    Group { folder: PathBuf, sample: Box<Sample>, most: u64 },
    Remove(PathBuf),
    Flush(mpsc::Sender<()>),
}

/// The thread that writes.
#[derive(Debug, Clone)]
pub(crate) struct Keeper {
    send: mpsc::Sender<Deed>,
    waiting: Arc<AtomicUsize>,
    deeds: Arc<AtomicUsize>,
    failures: Arc<AtomicUsize>,
}

impl Keeper {
    /// Starts the thread; what cannot be written is told to `complain`.
    pub(crate) fn start(complain: impl Fn(&Path, &io::Error) + Send + 'static) -> io::Result<Self> {
        let (send, receive) = mpsc::channel::<Deed>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let deeds = Arc::new(AtomicUsize::new(0));
        let failures = Arc::new(AtomicUsize::new(0));
        let (counted, done, failing) = (Arc::clone(&waiting), Arc::clone(&deeds), Arc::clone(&failures));
        let work = move || {
            let mut parts = BTreeMap::new();
            let mut told: Option<Instant> = None;
            while let Ok(deed) = receive.recv() {
                done.fetch_sub(1, Ordering::AcqRel);
                // Something may be wrong with one deed; the others are done all the same.
                let deed = AssertUnwindSafe(|| perform(deed, &counted, &mut parts));
                let failed = std::panic::catch_unwind(deed).unwrap_or_else(|_| {
                    Some((PathBuf::from("runs"), io::Error::other("something failed that must not")))
                });
                let Some((path, error)) = failed else { continue };
                failing.fetch_add(1, Ordering::AcqRel);
                if told.is_none_or(|told| told.elapsed() > AGAIN) {
                    complain(&path, &error);
                    told = Some(Instant::now());
                }
            }
        };
        std::thread::Builder::new().name("plaudit-keep".to_owned()).spawn(work)?;
        Ok(Self { send, waiting, deeds, failures })
    }

    /// How often something could not be written.
    pub(crate) fn failures(&self) -> usize {
        self.failures.load(Ordering::Acquire)
    }

    /// Whether the disk is slower than what is to be written.
    pub(crate) fn is_behind(&self) -> bool {
        self.deeds.load(Ordering::Acquire) > BEHIND
    }

    fn tell(&self, deed: Deed) {
        self.deeds.fetch_add(1, Ordering::AcqRel);
        // The thread lives as long as somebody can send to it.
        let _ = self.send.send(deed);
    }

    /// Adds a line to a file, unless too much waits to be written.
    pub(crate) fn line(&self, path: PathBuf, line: String) {
        if self.waiting.fetch_add(line.len(), Ordering::AcqRel) + line.len() > 2 * MOST_WAITING {
            self.waiting.fetch_sub(line.len(), Ordering::AcqRel);
            return;
        }
        self.tell(Deed::Line(path, line));
    }

    /// Writes a file anew; whoever reads it sees the old one or the new one.
    pub(crate) fn whole(&self, path: PathBuf, text: String) {
        self.tell(Deed::Whole(path, text));
    }

    /// Keeps a group, unless too many wait to be written.
    pub(crate) fn group(&self, folder: PathBuf, sample: Sample, most: u64) {
        let bytes = sample.bytes();
        if self.waiting.fetch_add(bytes, Ordering::AcqRel) + bytes > MOST_WAITING {
            self.waiting.fetch_sub(bytes, Ordering::AcqRel);
            return;
        }
        self.tell(Deed::Group { folder, sample: Box::new(sample), most });
    }

    /// Removes a folder.
    pub(crate) fn remove(&self, folder: PathBuf) {
        self.tell(Deed::Remove(folder));
    }

    /// Waits until everything is written that was said before, for at most ten seconds.
    pub(crate) fn flush(&self) {
        let (done, wait) = mpsc::channel();
        self.tell(Deed::Flush(done));
        let _ = wait.recv_timeout(Duration::from_secs(10));
    }
}

/// Does one deed; what could not be written, and why.
fn perform(
    deed: Deed,
    waiting: &AtomicUsize,
    parts: &mut BTreeMap<PathBuf, u64>,
) -> Option<(PathBuf, io::Error)> {
    let (path, done) = match deed {
        Deed::Line(path, line) => {
            waiting.fetch_sub(line.len(), Ordering::AcqRel);
            let done = append(&path, &line);
            (path, done)
        }
        Deed::Whole(path, text) => {
            let done = replace(&path, &text);
            (path, done)
        }
        Deed::Group { folder, sample, most } => {
            waiting.fetch_sub(sample.bytes(), Ordering::AcqRel);
            let line = sample.line();
            let done = put_group(&folder, sample.brief, &line, most, parts);
            (folder, done)
        }
        Deed::Remove(path) => {
            parts.remove(&path);
            let done = fs::remove_dir_all(&path);
            (path, done)
        }
        Deed::Flush(done) => {
            let _ = done.send(());
            return None;
        }
    };
    done.err().map(|error| (path, error))
}

/// Makes a folder that only its owner may look into, and those above it.
pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    use std::os::unix::fs::DirBuilderExt as _;
    builder.mode(0o700);
    builder.create(path)
}

/// Opens a file that only its owner may read, in a folder that is made anew where somebody has removed it.
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
    // After a line that was cut off, this one is not to be lost as well.
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
    brief: Brief,
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
            shorten(folder, old)?;
        }
    }
    file.write_all(format!("{line}\n").as_bytes())?;
    let placed = Placed { part: *part, from, length: line.len() as u64, brief };
    let placed = serde_json::to_string(&placed).map_err(io::Error::other)?;
    append(&folder.join("groups.jsonl"), &placed)
}

/// Takes out of the list what lay in files that are gone.
fn shorten(folder: &Path, gone: u64) -> io::Result<()> {
    let left = placed(folder)?.into_iter().filter(|placed| placed.part > gone);
    let lines: Result<Vec<String>, _> = left.map(|placed| serde_json::to_string(&placed)).collect();
    let lines = lines.map_err(io::Error::other)?;
    replace(&folder.join("groups.jsonl"), &lines.into_iter().map(|line| line + "\n").collect::<String>())
}

fn last_part(folder: &Path) -> u64 {
    let placed = placed(folder).map(|all| all.into_iter().map(|placed| placed.part).max());
    placed.ok().flatten().unwrap_or(0)
}

/// The lines of a file that are whole.
fn lines(path: &Path) -> io::Result<Vec<String>> {
    newest(path, LONGEST)
}

/// The whole lines among the last bytes of a file; none of a file that is not there.
pub(crate) fn newest(path: &Path, bytes: u64) -> io::Result<Vec<String>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut lines = Vec::new();
    // One byte before, so that a line that begins there is known to be whole.
    let from = file.metadata()?.len().saturating_sub(bytes.saturating_add(1));
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::new(file.take(LONGEST + 1));
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

fn placed(folder: &Path) -> io::Result<Vec<Placed>> {
    let lines = lines(&folder.join("groups.jsonl"))?;
    Ok(lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// What a run is, from its folder.
pub(crate) fn about(folder: &Path) -> Option<About> {
    let about: About = serde_json::from_str(&fs::read_to_string(folder.join("run.json")).ok()?).ok()?;
    folder.file_name().is_some_and(|name| name == about.id.as_str()).then_some(about)
}

/// The steps of a run, each as it is written. Those that were open when the service was killed come last.
pub(crate) fn steps(folder: &Path) -> io::Result<Vec<String>> {
    let mut steps: Vec<String> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let open = lines(&folder.join("open.json"))?;
    for line in lines(&folder.join("steps.jsonl"))?.into_iter().chain(open) {
        // A step that was opened again by who was late is written again.
        let place = *places.entry(identity(&line).to_owned()).or_insert(steps.len());
        match steps.get_mut(place) {
            Some(step) => *step = line,
            None => steps.push(line),
        }
    }
    Ok(steps)
}

/// So many of the steps that are left of a long run tell how it went: the newest, and every so-manieth before it.
pub(crate) fn spread(steps: &mut Vec<String>, most: usize) {
    let (every, last) = (steps.len().div_ceil(most.max(1)).max(1), steps.len().saturating_sub(1));
    let mut at = 0..;
    steps.retain(|_| at.next().is_some_and(|at: usize| (last - at).is_multiple_of(every)));
}

/// The number of a step as it is written.
pub(crate) fn number(step: &str) -> Option<u64> {
    let rest = step.strip_prefix("{\"step\":")?;
    rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// The number of a group as the list has it.
pub(crate) fn group_number(line: &str) -> Option<u64> {
    serde_json::from_str::<Placed>(line).ok()?.brief.id.parse().ok()
}

/// The groups that can be looked at, newest last.
pub(crate) fn groups(folder: &Path, step: Option<u64>) -> io::Result<Vec<Brief>> {
    let mut there = BTreeMap::new();
    let mut exists = |part: u64| *there.entry(part).or_insert_with(|| part_of(folder, part).exists());
    let fits = |placed: &Placed| step.is_none_or(|step| placed.brief.step == step);
    let groups = placed(folder)?.into_iter().filter(fits).filter(|placed| exists(placed.part));
    Ok(groups.map(|placed| placed.brief).collect())
}

/// One group with its texts and figures.
pub(crate) fn group(folder: &Path, id: &str) -> io::Result<Option<Value>> {
    let Some(found) = placed(folder)?.into_iter().find(|placed| placed.brief.id == id) else {
        return Ok(None);
    };
    let mut file = match File::open(part_of(folder, found.part)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    file.seek(SeekFrom::Start(found.from))?;
    let mut text = String::new();
    file.take(found.length.min(LONGEST)).read_to_string(&mut text)?;
    let mut group: Value = serde_json::from_str(&text).map_err(io::Error::other)?;
    let brief = serde_json::to_value(&found.brief).map_err(io::Error::other)?;
    if let (Some(group), Value::Object(brief)) = (group.as_object_mut(), brief) {
        group.extend(brief);
    }
    Ok(Some(group))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plaudit::engine::Engine;
    use plaudit::recipe::Recipe;
    use plaudit::rollout::Rollout;

    fn sample(engine: &Engine, id: u64, text: String) -> Sample {
        let rollouts = [Rollout::new(text).in_group(format!("g{id}"))];
        let report = engine.score(&rollouts).unwrap();
        Sample::of((id, id / 10), &[0], (&rollouts, &report), None, None)
    }

    #[test]
    fn what_was_kept_is_found_again_and_the_oldest_goes_first() {
        let folder = std::env::temp_dir().join(format!("plaudit-kept-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let keeper = Keeper::start(|path, error| panic!("{}: {error}", path.display())).unwrap();
        let yaml = "components: { length: { reward: length_penalty, min_length: 4, penalty_rate: 1.0 } }\n";
        let engine = Engine::new(Recipe::from_yaml(yaml).unwrap().plan().unwrap()).unwrap();
        for id in 0..40 {
            keeper.group(folder.clone(), sample(&engine, id, "x".repeat(100 + id as usize)), 12_000);
        }
        keeper.line(folder.join("steps.jsonl"), "{\"step\":7,\"x\":1}".to_owned());
        keeper.flush();
        let listed = fs::read_to_string(folder.join("groups.jsonl")).unwrap().lines().count();
        assert!(listed < 40, "the list does not name what is gone");
        fs::OpenOptions::new()
            .append(true)
            .open(folder.join("steps.jsonl"))
            .unwrap()
            .write_all(b"{\"step\":8,\"cut")
            .unwrap();
        let numbers = || steps(&folder).unwrap().iter().filter_map(|step| number(step)).collect::<Vec<_>>();
        assert_eq!(numbers(), [7]);
        // What comes after a line that was cut off stands for itself, and what is no JSON is passed over.
        fs::write(folder.join("open.json"), "{\"step\":10}\n{\"step\":11,}\n\u{fffd}\n{\"step\":12").unwrap();
        keeper.line(folder.join("steps.jsonl"), "{\"step\":9}".to_owned());
        keeper.flush();
        assert_eq!(numbers(), [7, 9, 10]);
        assert_eq!(newest(&folder.join("steps.jsonl"), 11).unwrap(), ["{\"step\":9}"]);
        assert!(newest(&folder.join("steps.jsonl"), 10).unwrap().is_empty());
        let thinned = |many: usize, most: usize| {
            let mut steps: Vec<String> = (0..many).map(|step| step.to_string()).collect();
            spread(&mut steps, most);
            steps
        };
        assert_eq!(thinned(10, 3), ["1", "5", "9"]);
        assert_eq!((thinned(10, 10).len(), thinned(11, 10).len(), thinned(0, 3).len()), (10, 6, 0));
        let kept = groups(&folder, None).unwrap();
        assert!(kept.len() < 40 && kept.len() >= 20, "{}", kept.len());
        assert_eq!(kept.last().unwrap().id, "39");
        assert_eq!(groups(&folder, Some(3)).unwrap().len(), 10);
        let found = group(&folder, "39").unwrap().unwrap();
        let text = found["rollouts"][0]["response"].as_str().unwrap();
        assert_eq!((found["step"].as_u64(), text.len()), (Some(3), 139));
        assert!(group(&folder, "0").unwrap().is_none(), "its file has gone");
        keeper.remove(folder.clone());
        keeper.flush();
        assert!(!folder.exists());
    }
}
