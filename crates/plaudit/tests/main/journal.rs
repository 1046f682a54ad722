//! Does the journal lose nothing that it called durable, and serve nothing that is damaged?

use plaudit::journal::{Journal, JournalError, Judgment, Key, Recovered, Spent};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The bytes before the first record, and before a record's payload.
const HEADER: usize = 64;
const HEAD: usize = 40;
/// The record that says that a process begins to write.
const START: usize = HEAD + 1;

/// A folder that is gone when the test is over.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("plaudit-journal-{}-{number}", std::process::id())))
    }

    fn log(&self) -> PathBuf {
        self.0.join("judgments.log")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A small generator of reproducible numbers.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

fn key(number: usize) -> Key {
    Key::of(&[b"question", &number.to_le_bytes()])
}

fn judgment(number: usize) -> Judgment {
    let mut seeded = Seeded(number as u64);
    let size = seeded.below(3000);
    let mut body: Vec<u8> = (0..size).map(|_| seeded.below(256) as u8).collect();
    body.extend(format!("reply {number}").bytes());
    Judgment { body, latency: Duration::from_micros(number as u64), judge: format!("judge-{}", number % 3) }
}

fn keep(journal: &Journal, number: usize) {
    let judgment = judgment(number);
    journal.intend(&key(number), &judgment.judge).unwrap();
    journal.record(&key(number), &judgment).unwrap().wait().unwrap();
}

#[test]
fn what_is_recorded_is_there_again_after_reopening() {
    let place = Place::new();
    let (journal, fresh) = Journal::open(&place.0).unwrap();
    assert_eq!(fresh, Recovered::default());
    let secret = journal.secret();
    for number in 0..30 {
        keep(&journal, number);
    }
    journal.intend(&key(100), "judge-0").unwrap();
    journal.give_up(&key(100), "judge.timeout", true).unwrap();
    journal.intend(&key(101), "judge-0").unwrap();
    journal.remember("form", "json").unwrap().wait().unwrap();
    journal.remember("form", "tag").unwrap().wait().unwrap();
    let check = |journal: &Journal| {
        for number in 0..30 {
            assert_eq!(journal.get(&key(number)).unwrap(), Some(judgment(number)));
        }
        assert_eq!(journal.get(&key(100)).unwrap(), None);
        assert_eq!(journal.recall("form").as_deref(), Some("tag"));
        assert_eq!(journal.recall("other"), None);
        assert_eq!(journal.secret(), secret);
        assert_eq!(journal.unreadable(), 0);
    };
    check(&journal);
    assert_eq!(journal.spent("judge-0"), Spent { calls: 12, judgments: 10, maybe_paid: 1, repaid: 0 });
    drop(journal);
    let (journal, recovered) = Journal::open(&place.0).unwrap();
    assert_eq!(recovered, Recovered { judgments: 30, open_intents: 1, ..Recovered::default() });
    check(&journal);
    assert_eq!(journal.spent("judge-0"), Spent { calls: 12, judgments: 10, maybe_paid: 2, repaid: 0 });
    let again = Judgment { judge: "judge-0".to_owned(), ..judgment(101) };
    journal.intend(&key(101), "judge-0").unwrap();
    journal.record(&key(101), &again).unwrap().wait().unwrap();
    let spent = Spent { calls: 13, judgments: 11, maybe_paid: 2, repaid: 1 };
    assert_eq!(journal.spent("judge-0"), spent);
    drop(journal);
    let (journal, recovered) = Journal::open(&place.0).unwrap();
    assert_eq!((recovered.judgments, recovered.open_intents), (31, 0));
    assert_eq!(journal.spent("judge-0"), spent);
}

#[test]
fn the_first_judgment_of_a_key_counts() {
    let place = Place::new();
    for _ in 0..2 {
        let (journal, _) = Journal::open(&place.0).unwrap();
        keep(&journal, 1);
        let other = Judgment { body: b"another".to_vec(), ..judgment(1) };
        journal.record(&key(1), &other).unwrap().wait().unwrap();
        assert_eq!(journal.get(&key(1)).unwrap(), Some(judgment(1)));
        assert_eq!(journal.spent("judge-1").judgments, 1);
    }
}

#[tokio::test]
async fn many_tasks_wait_for_durability_without_holding_a_thread() {
    let place = Place::new();
    let (journal, _) = Journal::open(&place.0).unwrap();
    let journal = std::sync::Arc::new(journal);
    let tasks: Vec<_> = (0..500)
        .map(|number| {
            let journal = std::sync::Arc::clone(&journal);
            tokio::spawn(async move {
                let judgment = judgment(number);
                journal.intend(&key(number), &judgment.judge).unwrap();
                tokio::task::yield_now().await;
                journal.record(&key(number), &judgment).unwrap().durable().await.unwrap();
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!((0..3).map(|judge| journal.spent(&format!("judge-{judge}")).judgments).sum::<u64>(), 500);
}

#[test]
fn the_folder_and_its_files_are_the_owners_alone() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let place = Place::new();
    let (journal, _) = Journal::open(&place.0).unwrap();
    keep(&journal, 1);
    assert_eq!(fs::metadata(&place.0).unwrap().permissions().mode() & 0o777, 0o700);
    let mut names = Vec::new();
    for entry in fs::read_dir(&place.0).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.file_name());
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["judgments.log", "lock", "secret"]);
    drop(journal);
    let log = fs::metadata(place.log()).unwrap();
    assert!(log.blocks() * 512 < log.len() + (64 << 10), "what was set aside is given back");
}

#[test]
fn a_second_owner_is_refused_and_told_who_is_the_first() {
    let place = Place::new();
    let (journal, _) = Journal::open(&place.0).unwrap();
    let error = Journal::open(&place.0).unwrap_err();
    assert_eq!(error, JournalError::InUse { folder: place.0.clone(), pid: Some(std::process::id()) });
    drop(journal);
    Journal::open(&place.0).unwrap();
}

#[test]
fn what_is_newer_or_foreign_is_refused_and_left_alone() {
    let place = Place::new();
    keep(&Journal::open(&place.0).unwrap().0, 1);
    let good = fs::read(place.log()).unwrap();
    let mut newer = good.clone();
    newer[16] = 2;
    let check = blake3::hash(&newer[..52]);
    newer[52..64].copy_from_slice(&check.as_bytes()[..12]);
    fs::write(place.log(), &newer).unwrap();
    let error = Journal::open(&place.0).unwrap_err();
    assert_eq!(error.code(), "journal.version");
    assert!(error.to_string().contains("version 2"), "{error}");
    assert_eq!(fs::read(place.log()).unwrap(), newer);

    let foreign = b"SQLite format 3\0".repeat(400);
    fs::write(place.log(), &foreign).unwrap();
    assert_eq!(Journal::open(&place.0).unwrap_err().code(), "journal.foreign");
    assert_eq!(fs::read(place.log()).unwrap(), foreign);

    // Of the two copies of the secret either may be lost, but not both.
    fs::write(place.log(), &good).unwrap();
    fs::write(place.0.join("secret"), b"nonsense").unwrap();
    assert_eq!(Journal::open(&place.0).unwrap().1.judgments, 1);
    fs::remove_file(place.0.join("secret")).unwrap();
    let mut headless = good.clone();
    headless[30] ^= 1;
    fs::write(place.log(), &headless).unwrap();
    assert_eq!(Journal::open(&place.0).unwrap_err().code(), "journal.foreign");
    fs::write(place.log(), &good).unwrap();
    drop(Journal::open(&place.0).unwrap());
    fs::write(place.log(), &headless).unwrap();
    let (_, recovered) = Journal::open(&place.0).unwrap();
    assert_eq!((recovered.judgments, recovered.lost_bytes), (1, HEADER as u64));
    assert_eq!(fs::read(place.log()).unwrap(), good, "the header is mended");
}

/// A judge that knows the format sends a whole record, of another journal or copied from this one's shape.
#[test]
fn a_record_inside_of_a_reply_is_never_taken_for_one() {
    let theirs = Place::new();
    keep(&Journal::open(&theirs.0).unwrap().0, 7);
    let forged = fs::read(theirs.log()).unwrap();
    let place = Place::new();
    let (journal, _) = Journal::open(&place.0).unwrap();
    let hostile = Judgment { body: forged, ..judgment(1) };
    journal.record(&key(1), &hostile).unwrap().wait().unwrap();
    let end = fs::metadata(place.log()).unwrap().len() as usize;
    keep(&journal, 2);
    drop(journal);
    let mut bytes = fs::read(place.log()).unwrap();
    // Damage in the outer head makes the reader look for records inside of the reply.
    bytes[HEADER + START + 5] ^= 1;
    fs::write(place.log(), &bytes).unwrap();
    let (journal, recovered) = Journal::open(&place.0).unwrap();
    assert_eq!((recovered.judgments, recovered.damaged), (1, 1));
    assert_eq!(recovered.lost_bytes as usize, end - HEADER - START);
    assert_eq!(journal.get(&key(7)).unwrap(), None);
    assert_eq!(journal.get(&key(2)).unwrap(), Some(judgment(2)));
}

#[test]
fn a_tail_torn_anywhere_costs_one_record() {
    let place = Place::new();
    let (journal, _) = Journal::open(&place.0).unwrap();
    for number in 0..4 {
        keep(&journal, number);
    }
    journal.intend(&key(4), "judge-1").unwrap();
    let before = fs::metadata(place.log()).unwrap().len();
    journal.record(&key(4), &judgment(4)).unwrap().wait().unwrap();
    drop(journal);
    let whole = fs::read(place.log()).unwrap();
    for cut in before as usize..whole.len() {
        fs::write(place.log(), &whole[..cut]).unwrap();
        let (journal, recovered) = Journal::open(&place.0).unwrap();
        let lost = cut as u64 - before;
        let expected =
            Recovered { judgments: 4, damaged: 0, lost_bytes: lost, torn_tail: lost > 0, open_intents: 1 };
        assert_eq!(recovered, expected, "cut at {cut}");
        assert_eq!(journal.get(&key(4)).unwrap(), None);
        assert_eq!(journal.get(&key(3)).unwrap(), Some(judgment(3)));
        drop(journal);
        assert_eq!(fs::metadata(place.log()).unwrap().len(), before);
    }
}

/// A log with the bounds of its records, and which of them are judgments of which key.
struct Sample {
    bytes: Vec<u8>,
    bounds: Vec<(usize, usize)>,
    answers: Vec<Option<usize>>,
}

fn sample(place: &Place) -> Sample {
    let (journal, _) = Journal::open(&place.0).unwrap();
    let (mut bounds, mut answers) = (vec![(HEADER, HEADER + START)], vec![None]);
    let mut note = |answer: Option<usize>| {
        let end = fs::metadata(place.log()).unwrap().len() as usize;
        bounds.push((bounds.last().unwrap().1, end));
        answers.push(answer);
    };
    for number in 0..16 {
        let judgment = judgment(number);
        journal.intend(&key(number), &judgment.judge).unwrap();
        note(None);
        if number % 5 == 4 {
            journal.give_up(&key(number), "judge.reset", true).unwrap();
            note(None);
            journal.remember("form", &number.to_string()).unwrap().wait().unwrap();
            note(None);
        } else {
            journal.record(&key(number), &judgment).unwrap().wait().unwrap();
            note(Some(number));
        }
    }
    drop(journal);
    Sample { bytes: fs::read(place.log()).unwrap(), bounds, answers }
}

/// What a damage left: the bytes, which records are whole, and what must be counted.
struct Damage {
    bytes: Vec<u8>,
    whole: Vec<bool>,
    damaged: u64,
    torn: bool,
}

impl Sample {
    fn damage(&self, seeded: &mut Seeded) -> Damage {
        let count = self.bounds.len();
        let at = seeded.below(self.bytes.len());
        let (one, other) = (seeded.below(count), seeded.below(count));
        let record = |number: usize| &self.bytes[self.bounds[number].0..self.bounds[number].1];
        let mut order: Vec<usize> = (0..count).collect();
        match seeded.below(7) {
            0 => {
                let mut bytes = self.bytes.clone();
                bytes[at] ^= 1 << seeded.below(8);
                return self.changed(bytes);
            }
            1 => {
                let mut bytes = self.bytes.clone();
                let end = (at + 512).min(bytes.len());
                bytes[at..end].fill(0);
                return self.changed(bytes);
            }
            2 => {
                let whole: Vec<bool> = self.bounds.iter().map(|(_, end)| *end <= at).collect();
                let edge = at == 0 || at == HEADER || self.bounds.iter().any(|(_, end)| *end == at);
                return Damage { bytes: self.bytes[..at].to_vec(), whole, damaged: 0, torn: !edge };
            }
            3 => {
                let mut bytes = self.bytes.clone();
                let noise = 1 + seeded.below(300);
                bytes.extend((0..noise).map(|_| seeded.below(256) as u8));
                bytes.extend(&record(one)[..seeded.below(HEAD)]);
                return Damage { bytes, whole: vec![true; count], damaged: 0, torn: true };
            }
            4 => order.insert(other, one),
            5 => order.swap(one, other),
            _ => _ = order.remove(one),
        }
        let mut bytes = self.bytes[..HEADER].to_vec();
        order.iter().for_each(|number| bytes.extend(record(*number)));
        let whole: Vec<bool> = (0..count).map(|number| order.contains(&number)).collect();
        let damaged = whole[..count - 1].iter().filter(|whole| !**whole).count() as u64;
        Damage { bytes, whole, damaged, torn: false }
    }

    /// Which records are whole after some bytes were changed in place.
    fn changed(&self, bytes: Vec<u8>) -> Damage {
        let same = |from: usize, to: usize| bytes[from..to] == self.bytes[from..to];
        let whole: Vec<bool> = self.bounds.iter().map(|(from, to)| same(*from, *to)).collect();
        let last = whole.iter().rposition(|whole| *whole).unwrap();
        let inner = whole[..last].iter().filter(|whole| !**whole).count();
        // Behind the last good record, one whose head is good is known to be damaged; anything else may be torn.
        let behind = self.bounds[last + 1..].iter();
        let headed = behind.filter(|(from, _)| same(*from, from + HEAD)).count();
        let torn = last + 1 < whole.len() && headed == 0;
        Damage { bytes, whole, damaged: (inner + headed) as u64, torn }
    }
}

#[test]
fn a_thousand_damages_cost_what_they_hit_and_nothing_else() {
    let place = Place::new();
    let sample = sample(&place);
    for seed in 0..1000 {
        let damage = sample.damage(&mut Seeded(seed));
        fs::write(place.log(), &damage.bytes).unwrap();
        let (journal, recovered) = Journal::open(&place.0).unwrap();
        let mut judgments = 0;
        for (answer, whole) in sample.answers.iter().zip(&damage.whole) {
            let Some(number) = *answer else { continue };
            judgments += u64::from(*whole);
            let expected = whole.then(|| judgment(number));
            assert!(journal.get(&key(number)).unwrap() == expected, "seed {seed}: judgment {number}");
        }
        let counts = (recovered.judgments, recovered.damaged, recovered.torn_tail);
        assert_eq!(counts, (judgments, damage.damaged, damage.torn), "seed {seed}");
        assert_eq!(journal.unreadable(), 0);
        if seed % 20 == 0 {
            mended(journal, &place, &sample);
        }
    }
}

/// What is lost can be bought again, and then nothing is missing.
fn mended(journal: Journal, place: &Place, sample: &Sample) {
    for number in sample.answers.iter().flatten() {
        if journal.get(&key(*number)).unwrap().is_none() {
            journal.record(&key(*number), &judgment(*number)).unwrap().wait().unwrap();
        }
    }
    drop(journal);
    let (journal, recovered) = Journal::open(&place.0).unwrap();
    assert!(!recovered.torn_tail);
    for number in sample.answers.iter().flatten() {
        assert_eq!(journal.get(&key(*number)).unwrap(), Some(judgment(*number)));
    }
}

/// What a child process of these tests is told to do, and where.
const TASK: &str = "PLAUDIT_JOURNAL_TASK";
const FOLDER: &str = "PLAUDIT_JOURNAL_FOLDER";

fn child(before: &str, task: &str, folder: &Path) -> Command {
    let mut command = Command::new("sh");
    let own = std::env::current_exe().unwrap();
    command.args(["-c", &format!("{before} exec \"$0\" journal::as_a_child --exact --ignored --nocapture")]);
    command.arg(own).env(TASK, task).env(FOLDER, folder).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

#[test]
#[ignore = "what the child processes of other tests run"]
fn as_a_child() {
    let (Ok(task), Ok(folder)) = (std::env::var(TASK), std::env::var(FOLDER)) else { return };
    let (journal, recovered) = Journal::open(Path::new(&folder)).unwrap();
    match task.as_str() {
        "write" => write_until_killed(&journal, recovered.judgments as usize),
        "fill" => fill(&journal),
        other => panic!("no task {other}"),
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{line}").and_then(|()| out.flush()).unwrap();
}

const WRITERS: usize = 4;

fn write_until_killed(journal: &Journal, known: usize) {
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                for number in (known + writer..).step_by(WRITERS) {
                    if journal.get(&key(number)).unwrap().is_none() {
                        keep(journal, number);
                        say(&format!("durable {number}"));
                    }
                }
            });
        }
    });
}

#[test]
fn a_process_that_is_killed_loses_nothing_that_it_called_durable() {
    let place = Place::new();
    let mut durable = Vec::new();
    for round in 0..8 {
        let mut process = child("", "write", &place.0).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let enough = durable.len() + 20 + Seeded(round).below(60);
        while durable.len() < enough {
            let line = lines.next().unwrap().unwrap();
            durable.extend(line.strip_prefix("durable ").map(|number| number.parse::<usize>().unwrap()));
        }
        process.kill().unwrap();
        for line in lines.map_while(Result::ok) {
            durable.extend(line.strip_prefix("durable ").and_then(|number| number.parse::<usize>().ok()));
        }
        process.wait().unwrap();
        let (journal, recovered) = Journal::open(&place.0).unwrap();
        assert_eq!((recovered.damaged, journal.unreadable()), (0, 0));
        assert!(recovered.open_intents <= WRITERS as u64 * (round + 1));
        for number in &durable {
            assert_eq!(journal.get(&key(*number)).unwrap(), Some(judgment(*number)), "round {round}");
        }
    }
}

/// Asks until the disk is full, then takes the answers to all that is in flight.
fn fill(journal: &Journal) {
    let (mut sent, mut answered) = (0, 0);
    let size = |number: usize| Judgment { body: vec![b'y'; 20_000], ..judgment(number) };
    let error = loop {
        match journal.intend(&key(sent), "j") {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
        if sent - answered > 8 {
            match journal.record(&key(answered), &size(answered)).and_then(|ticket| ticket.wait()) {
                Ok(()) => answered += 1,
                Err(error) => break error,
            }
        }
    };
    let mut kept = answered;
    for number in answered..sent {
        kept += usize::from(journal.record(&key(number), &size(number)).is_ok_and(|it| it.wait().is_ok()));
    }
    say(&format!("full {} {sent} {kept}", error.code()));
}

/// The code, the calls sent and the judgments kept that a child said.
fn filled(output: &[u8]) -> Option<(String, usize, usize)> {
    let text = String::from_utf8_lossy(output).into_owned();
    let said = text.lines().find_map(|line| line.strip_prefix("full "))?;
    let mut words = said.split(' ');
    Some((words.next()?.to_owned(), words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

#[test]
fn a_limit_on_the_size_of_files_stops_the_journal_and_tears_nothing_else() {
    let place = Place::new();
    let output = child("trap '' XFSZ; ulimit -f 800;", "fill", &place.0).output().unwrap();
    let (code, sent, kept) = filled(&output.stdout).unwrap();
    assert_eq!(code, "engine.journal_full");
    assert!(kept > 10 && sent - kept < 10, "{sent} sent, {kept} kept");
    let (_, recovered) = Journal::open(&place.0).unwrap();
    assert_eq!((recovered.judgments as usize, recovered.damaged), (kept, 0));
    assert_eq!(recovered.open_intents as usize, sent - kept);
}

/// Needs user namespaces, for a small file system of its own; where there are none, the disk in memory has to do.
#[test]
fn a_full_file_system_stops_the_next_call_and_keeps_all_that_is_in_flight() {
    let place = Place::new();
    fs::create_dir_all(&place.0).unwrap();
    let inner = "mount -t tmpfs -o size=6m none \"$PLAUDIT_JOURNAL_FOLDER\" &&";
    let mut command = child(inner, "fill", &place.0);
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    command = Command::new("unshare");
    command.args(["-Urm", "sh"]).args(arguments).env(TASK, "fill").env(FOLDER, &place.0);
    let Ok(output) = command.output() else { return };
    let Some((code, sent, kept)) = filled(&output.stdout) else {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("unshare") || said.contains("mount"), "{said}");
        return;
    };
    assert_eq!((code.as_str(), sent), ("engine.journal_full", kept));
    assert!(sent > 50, "{sent}");
}

#[test]
fn a_hundred_thousand_judgments_open_soon() {
    let place = Place::new();
    let (journal, _) = Journal::open(&place.0).unwrap();
    let body = vec![b'z'; 300];
    let one = Judgment { body, latency: Duration::ZERO, judge: "j".to_owned() };
    let mut last = None;
    for number in 0..100_000 {
        last = Some(journal.record(&key(number), &one).unwrap());
    }
    last.unwrap().wait().unwrap();
    drop(journal);
    let started = Instant::now();
    let (journal, recovered) = Journal::open(&place.0).unwrap();
    let taken = started.elapsed();
    assert_eq!(recovered.judgments, 100_000);
    assert_eq!(journal.get(&key(99_999)).unwrap(), Some(one));
    assert!(taken < Duration::from_secs(5), "{taken:?}");
}
