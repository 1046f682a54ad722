//! Damaged journals: damage costs the records that it hits, and nothing else.

use super::{HEAD, HEADER, Place, START, Seeded, judgment, keep, key};
use plaudit::journal::{Journal, Recovered};
use std::fs;

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
        place.replace_log(&whole[..cut]);
        let (journal, recovered) = Journal::open(&place.0).unwrap();
        let lost = cut as u64 - before;
        let expected = Recovered {
            judgments: 4,
            damaged: 0,
            lost_bytes: lost,
            torn_tail: lost > 0,
            open_intents: 1,
            ..Recovered::default()
        };
        assert_eq!(recovered, expected, "cut at {cut}");
        assert_eq!(journal.get(&key(4)).unwrap(), None);
        assert_eq!(journal.get(&key(3)).unwrap(), Some(judgment(3)));
        drop(journal);
        assert_eq!(fs::metadata(place.log()).unwrap().len(), before);
    }
}

#[test]
fn what_is_longer_than_a_torn_record_is_not_cut_off() {
    let place = Place::new();
    keep(&Journal::open(&place.0).unwrap().0, 1);
    let mut bytes = fs::read(place.log()).unwrap();
    bytes.resize(bytes.len() + (9 << 20), b'?');
    place.replace_log(&bytes);
    for number in 2..4 {
        let (journal, recovered) = Journal::open(&place.0).unwrap();
        assert_eq!((recovered.damaged, recovered.lost_bytes, recovered.torn_tail), (1, 9 << 20, false));
        keep(&journal, number);
        assert_eq!(journal.get(&key(1)).unwrap(), Some(judgment(1)));
        assert_eq!(journal.get(&key(2)).unwrap(), Some(judgment(2)));
    }
    assert!(fs::read(place.log()).unwrap().starts_with(&bytes));
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
        match seeded.below(8) {
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
            4 => {
                // Some bytes inside of a record are gone, so that its length reaches into the next one.
                let (from, to) = self.bounds[one];
                let gone = 1 + seeded.below((to - from - 1).min(100));
                let start = from + seeded.below(to - from - gone);
                let mut bytes = self.bytes.clone();
                bytes.drain(start..start + gone);
                let whole: Vec<bool> = (0..count).map(|number| number != one).collect();
                let last = one + 1 == count;
                return Damage { bytes, whole, damaged: u64::from(!last), torn: last };
            }
            5 => order.insert(other, one),
            6 => order.swap(one, other),
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
        place.replace_log(&damage.bytes);
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
