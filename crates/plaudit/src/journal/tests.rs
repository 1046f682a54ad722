//! Tests of the journal on a failing disk: no new calls, and nothing paid for is lost.

use super::disk::Disk;
use super::*;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

/// A disk in memory with injected faults.
struct Fake {
    bytes: Mutex<Vec<u8>>,
    /// How large the file may become.
    space: AtomicU64,
    /// Up to where space was set aside.
    reserved: AtomicU64,
    reserves: bool,
    sync_fails: AtomicBool,
    syncs: AtomicU64,
}

impl Fake {
    fn with_space(space: u64) -> Arc<Self> {
        Arc::new(Self::new(space, true))
    }

    fn new(space: u64, reserves: bool) -> Self {
        Self {
            bytes: Mutex::new(Vec::new()),
            space: AtomicU64::new(space),
            reserved: AtomicU64::new(0),
            reserves,
            sync_fails: AtomicBool::new(false),
            syncs: AtomicU64::new(0),
        }
    }

    fn journal(self: &Arc<Self>) -> Journal {
        let core = LogWriter::new(Box::new(Arc::clone(self)), "fake".into(), Seal::of(&[0; 32]), (0, 0));
        Journal {
            core: Arc::new(core),
            secret: [0; 32],
            thread: Mutex::new(None),
            summing: Mutex::new(()),
            lock: Mutex::new(None),
        }
    }
}

impl Disk for Arc<Fake> {
    fn read(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        let bytes = self.bytes.lock().unwrap();
        let piece = bytes.get(at as usize..at as usize + into.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(piece);
        Ok(())
    }

    fn write(&self, from: &[u8], at: u64) -> io::Result<()> {
        let mut bytes = self.bytes.lock().unwrap();
        let space = self.space.load(Ordering::Relaxed).max(self.reserved.load(Ordering::Relaxed));
        let fits = from.len().min(space.saturating_sub(at) as usize);
        bytes.truncate(at as usize);
        bytes.extend(&from[..fits]);
        if fits < from.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync(&self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        if self.sync_fails.load(Ordering::Relaxed) {
            Err(io::Error::other("the disk is gone"))
        } else {
            Ok(())
        }
    }

    fn cut(&self, at: u64) -> io::Result<()> {
        self.bytes.lock().unwrap().truncate(at as usize);
        Ok(())
    }

    fn reserve(&self, _: u64, to: u64) -> io::Result<bool> {
        if self.reserves && to > self.space.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if self.reserves {
            self.reserved.fetch_max(to, Ordering::Relaxed);
        }
        Ok(self.reserves)
    }
}

fn key(number: usize) -> JudgmentKey {
    JudgmentKey::of(&[&number.to_le_bytes()])
}

fn judgment(size: usize) -> Judgment {
    Judgment { body: vec![b'x'; size], latency: Duration::from_millis(3), judge: "j".to_owned() }
}

#[test]
fn a_full_disk_stops_new_calls_but_not_judgments_in_flight() {
    let disk = Fake::with_space(3 << 20);
    let journal = disk.journal();
    let mut sent = 0;
    let refused = loop {
        match journal.intend(&key(sent), "j") {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.code(), "engine.journal_full");
    assert!(sent > 20, "{sent}");
    assert_eq!(journal.is_stuck(), None, "nothing was lost, so a call that ends makes room for another");
    for number in 0..sent {
        journal.record(&key(number), &judgment(60 << 10)).unwrap().wait().unwrap();
    }
    assert_eq!(journal.spent("j").judgments, sent as u64);
    assert_eq!(journal.intend(&key(sent), "j").unwrap_err().code(), "engine.journal_full");
    assert_eq!(journal.has_room().unwrap_err().code(), "engine.journal_full");
    disk.space.store(9 << 20, Ordering::Relaxed);
    journal.has_room().unwrap();
    journal.intend(&key(sent), "j").unwrap();
}

#[test]
fn a_failed_write_stops_new_calls_but_not_smaller_judgments() {
    let disk = Arc::new(Fake::new(1000, false));
    let journal = disk.journal();
    journal.intend(&key(0), "j").unwrap();
    journal.intend(&key(1), "j").unwrap();
    assert!(!journal.reserves());
    assert_eq!(journal.record(&key(0), &judgment(2000)).unwrap_err().code(), "engine.journal_full");
    assert_eq!(journal.is_stuck().unwrap().code(), "engine.journal_full");
    assert!(journal.intend(&key(2), "j").is_err());
    journal.record(&key(1), &judgment(200)).unwrap().wait().unwrap();
    assert_eq!(journal.get(&key(1)).unwrap(), Some(judgment(200)));
    assert_eq!(journal.get(&key(0)).unwrap(), None);
}

#[test]
fn a_sync_that_fails_is_never_taken_for_success_later() {
    let disk = Fake::with_space(1 << 30);
    let journal = disk.journal();
    journal.intend(&key(0), "j").unwrap();
    disk.sync_fails.store(true, Ordering::Relaxed);
    let error = journal.record(&key(0), &judgment(10)).unwrap().wait().unwrap_err();
    assert_eq!(error.code(), "journal.io");
    assert!(error.to_string().contains("the disk is gone"), "{error}");
    disk.sync_fails.store(false, Ordering::Relaxed);
    assert_eq!(journal.record(&key(1), &judgment(10)).unwrap().wait().unwrap_err(), error);
    assert_eq!(journal.intend(&key(2), "j").unwrap_err(), error);
    assert_eq!(disk.syncs.load(Ordering::Relaxed), 1);
}

#[test]
fn a_judgment_damaged_after_opening_can_be_fetched_again() {
    let disk = Fake::with_space(1 << 30);
    let journal = disk.journal();
    journal.record(&key(0), &judgment(100)).unwrap().wait().unwrap();
    let last = disk.bytes.lock().unwrap().len() - 1;
    disk.bytes.lock().unwrap()[last] ^= 1;
    assert_eq!(journal.get(&key(0)).unwrap(), None);
    assert_eq!(journal.unreadable(), 1);
    journal.record(&key(0), &judgment(50)).unwrap().wait().unwrap();
    assert_eq!(journal.get(&key(0)).unwrap(), Some(judgment(50)));
}

#[test]
fn no_thread_before_the_first_record_and_drop_syncs() {
    let disk = Fake::with_space(1 << 30);
    let journal = disk.journal();
    journal.intend(&key(0), "j").unwrap();
    assert!(journal.thread.lock().unwrap().is_none());
    assert_eq!(disk.syncs.load(Ordering::Relaxed), 0);
    drop(journal);
    assert_eq!(disk.syncs.load(Ordering::Relaxed), 1);
    assert_eq!(Arc::strong_count(&disk), 1, "nothing holds the file any more");
}

#[test]
fn a_ticket_outlives_its_journal() {
    let disk = Fake::with_space(1 << 30);
    let journal = disk.journal();
    let tickets: Vec<_> =
        (0..50).map(|number| journal.record(&key(number), &judgment(10)).unwrap()).collect();
    drop(journal);
    for ticket in tickets {
        ticket.wait().unwrap();
    }
}

#[test]
fn a_sector_that_cannot_be_read_costs_only_its_records() {
    struct Holed(Arc<Fake>);
    impl Disk for Holed {
        fn read(&self, into: &mut [u8], at: u64) -> io::Result<()> {
            let hole = 8192..12288;
            if at < hole.end && at + into.len() as u64 > hole.start {
                return Err(io::Error::other("a bad sector"));
            }
            self.0.read(into, at)
        }
        fn write(&self, _: &[u8], _: u64) -> io::Result<()> {
            Ok(())
        }
        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
        fn cut(&self, _: u64) -> io::Result<()> {
            Ok(())
        }
        fn reserve(&self, _: u64, _: u64) -> io::Result<bool> {
            Ok(false)
        }
    }
    let disk = Fake::with_space(1 << 30);
    let journal = disk.journal();
    for number in 0..40 {
        journal.record(&key(number), &judgment(1000)).unwrap().wait().unwrap();
    }
    let length = disk.bytes.lock().unwrap().len() as u64;
    let mut found = 0;
    let seen =
        recovery::scan(&Holed(Arc::clone(&disk)), 0..length, &Seal::of(&[0; 32]), |_| found += 1).unwrap();
    assert_eq!(seen.damaged + found, 41, "forty judgments and the mark of a start");
    assert!((4..=6).contains(&seen.damaged), "{}", seen.damaged);
    assert!(!seen.torn_tail);
    // What cannot be read behind the last good record might be good tomorrow, so it must not be cut off.
    let behind = recovery::scan(&Holed(Arc::clone(&disk)), 0..12000, &Seal::of(&[0; 32]), |_| {});
    assert_eq!(behind.unwrap_err().to_string(), "a bad sector");
}

/// A reply full of magics, whose record is damaged, must not make the reader hash everything over and over.
#[test]
fn a_hostile_reply_does_not_slow_the_reader() {
    let disk = Fake::with_space(1 << 30);
    let journal = disk.journal();
    let mut hostile = judgment(0);
    while hostile.body.len() < frame::MAX_PAYLOAD - 200 {
        hostile.body.extend(frame::MAGIC);
        hostile.body.extend((frame::MAX_PAYLOAD as u32 - 1).to_le_bytes());
    }
    journal.record(&key(0), &hostile).unwrap().wait().unwrap();
    journal.record(&key(1), &judgment(10)).unwrap().wait().unwrap();
    let length = disk.bytes.lock().unwrap().len() as u64;
    disk.bytes.lock().unwrap()[60] ^= 1;
    let started = std::time::Instant::now();
    let mut found = 0;
    let seen = recovery::scan(&disk, 0..length, &Seal::of(&[0; 32]), |_| found += 1).unwrap();
    assert_eq!((found, seen.damaged), (2, 1));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}
