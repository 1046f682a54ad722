//! The journal: what it called durable is never lost, and nothing damaged is served.

mod damage;
mod process;

use crate::timing::cpu_time;
use plaudit::journal::{Journal, JournalError, Judgment, JudgmentKey, Recovered, Spent};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

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

    /// Puts other bytes in the place of the log. A new file, since some file systems sync one that is overwritten.
    fn replace_log(&self, bytes: &[u8]) {
        fs::remove_file(self.log()).unwrap();
        fs::write(self.log(), bytes).unwrap();
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

fn key(number: usize) -> JudgmentKey {
    JudgmentKey::of(&[b"question", &number.to_le_bytes()])
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
fn a_closed_journal_is_read_and_not_written() {
    let place = Place::new();
    let (journal, _) = Journal::open(&place.0).unwrap();
    keep(&journal, 1);
    journal.close();
    journal.close();
    let (next, recovered) = Journal::open(&place.0).unwrap();
    assert_eq!(recovered.judgments, 1);
    let before = fs::read(place.log()).unwrap();
    assert!(journal.get(&key(1)).unwrap().is_some());
    assert!(journal.intend(&key(2), "judge").unwrap_err().to_string().contains("closed"));
    assert!(journal.has_room().is_err());
    drop(journal);
    assert_eq!(fs::read(place.log()).unwrap(), before);
    assert_eq!(Journal::open(&place.0).unwrap_err().code(), "journal.in_use");
    drop(next);
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
    let start = cpu_time();
    let (journal, recovered) = Journal::open(&place.0).unwrap();
    let taken = cpu_time() - start;
    assert_eq!(recovered.judgments, 100_000);
    assert_eq!(journal.get(&key(99_999)).unwrap(), Some(one));
    assert!(taken < Duration::from_secs(5), "{taken:?}");
}
