//! Implicit groups, for clients that name none: the samples of one prompt are a group once they are as many as a prompt has. After that,
//! or once the group is answered, the same prompt starts the next group.
//!
//! Such clients retry when they get no number, or none in time. A retried sample takes its old slot, so that it is not compared with
//! itself:
//!
//! | What became of it | Where it goes when it comes again |
//! |---|---|
//! | the client went away before it was answered, or it was not admitted | to its slot, where its answer is waiting; unless a group that compares was full and another sample needed the slot |
//! | it was answered without a number | to its group, as a late member: it is scored again, with the others as they were |
//! | it was answered with a number | to the open group: it is another sample with the same words |

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// How long a retry of a sample is expected; the slowest client waits 31 s.
const RETRY_WITHIN: Duration = Duration::from_secs(120);
/// How many groups are open at once. The oldest are dropped first.
const MAX_GROUPS: usize = 16_384;
/// How many samples they have at most, and how many retries are expected at most.
const MAX_SAMPLES: usize = 1 << 18;
const MAX_RETRIES: usize = 16_384;

/// The first bytes of the hash of a prompt or of a sample.
type Fingerprint = [u8; 16];

/// The prompt of a sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PromptKey<'p> {
    /// Equal for the samples of the prompt.
    pub(crate) key: &'p str,
    /// How many of them there are.
    pub(crate) size: usize,
    /// Whether they are compared, so that none is answered before the group is full.
    pub(crate) compares: bool,
    /// The step of the training; the group belongs to the step of its first sample.
    pub(crate) step: u64,
}

/// The place of a sample in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    prompt: Fingerprint,
    sample: Fingerprint,
    number: u64,
    member: String,
    tries: u32,
    compares: bool,
    /// The step that its group belongs to.
    pub(crate) step: u64,
}

impl Slot {
    /// The name of the group.
    pub(crate) fn group(&self) -> String {
        let prompt: String = self.prompt[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{prompt}-{}", self.number)
    }

    /// The name of the sample in it; another one for each time that it is to be scored.
    pub(crate) fn member(&self) -> String {
        match self.tries {
            0 => self.member.clone(),
            tries => format!("{}+{tries}", self.member),
        }
    }
}

/// How a sample ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SampleEnd {
    /// It got a number.
    Scored,
    /// It got none, and may be scored anew.
    Failed,
    /// The client went away, or it was not admitted.
    Lost,
}

/// The open groups of one run, and the samples that may be retried.
#[derive(Debug, Default)]
pub(crate) struct ImplicitGroups {
    open: BTreeMap<Fingerprint, OpenGroup>,
    /// The order in which they began.
    opened: VecDeque<(Fingerprint, u64)>,
    retries: BTreeMap<(Fingerprint, Fingerprint), Vec<(Slot, Instant)>>,
    /// When they expire.
    expiring: VecDeque<(Instant, (Fingerprint, Fingerprint))>,
    next: u64,
    /// How many samples the open groups have.
    samples: usize,
}

#[derive(Debug)]
struct OpenGroup {
    number: u64,
    step: u64,
    members: Vec<GroupMember>,
    /// How many members it has had, those included whose slot another has taken.
    named: usize,
}

/// A sample in an open group.
#[derive(Debug)]
struct GroupMember {
    name: String,
    sample: Fingerprint,
    /// Whether its client has gone away before it was answered.
    lost: bool,
}

impl OpenGroup {
    fn new(number: u64, step: u64) -> Self {
        Self { number, step, members: Vec::new(), named: 0 }
    }

    /// The lost sample whose slot a sample takes that is another one: the one of its name, or where all slots are taken the
    /// first.
    fn lost_slot(&self, size: usize, member: Option<&str>, sample: Fingerprint) -> Option<usize> {
        let lost = |(at, other): (usize, &GroupMember)| other.lost.then_some(at);
        let same = |other: &GroupMember| Some(other.name.as_str()) == member;
        match self.members.iter().position(same) {
            Some(at) if self.members[at].sample == sample => None,
            Some(at) => lost((at, &self.members[at])),
            None if self.members.len() < size => None,
            None => self.members.iter().enumerate().find_map(lost),
        }
    }
}

impl ImplicitGroups {
    /// The slot of a sample that arrives, with or without a name.
    pub(crate) fn arrive(
        &mut self,
        asked: &PromptKey<'_>,
        (member, response): (Option<&str>, &str),
        now: Instant,
    ) -> Slot {
        self.expire(now);
        let prompt = fingerprint(&[asked.key]);
        let sample = fingerprint(&[member.unwrap_or(""), response]);
        if let Some((slot, _)) = self.retries.get_mut(&(prompt, sample)).and_then(Vec::pop) {
            // A retry in another step is a new sample.
            if slot.step == asked.step {
                self.mark(&slot, false);
                return slot;
            }
        }
        if asked.size <= 1 {
            // A group of one.
            self.next += 1;
            let member = member.unwrap_or("0").to_owned();
            let PromptKey { compares, step, .. } = *asked;
            return Slot { prompt, sample, number: self.next, member, tries: 0, compares, step };
        }
        if asked.compares {
            self.release_lost(prompt, asked.size, member, sample);
        }
        let taken = |open: &OpenGroup| {
            let full = open.members.len() >= asked.size;
            // Another response under a name that is taken: the prompt has come back before its group was complete.
            let other = |other: &GroupMember| Some(other.name.as_str()) == member && other.sample != sample;
            full || open.members.iter().any(other)
        };
        if self.open.get(&prompt).is_none_or(taken) {
            self.open_group(prompt, asked.step);
        }
        let (number, step) = (self.next, asked.step);
        let open = self.open.entry(prompt).or_insert_with(|| OpenGroup::new(number, step));
        let name = member.map_or_else(|| open.named.to_string(), str::to_owned);
        match open.members.iter_mut().find(|member| member.name == name) {
            Some(member) => member.lost = false,
            None => {
                open.members.push(GroupMember { name: name.clone(), sample, lost: false });
                open.named += 1;
                self.samples += 1;
            }
        }
        let (number, step) = (open.number, open.step);
        self.drop_oldest();
        Slot { prompt, sample, number, member: name, tries: 0, compares: asked.compares, step }
    }

    /// Releases the slot of a sample.
    pub(crate) fn leave(&mut self, mut slot: Slot, end: SampleEnd, now: Instant) {
        self.expire(now);
        match end {
            SampleEnd::Lost => self.mark(&slot, true),
            SampleEnd::Scored | SampleEnd::Failed => self.answered(&slot),
        }
        if end == SampleEnd::Scored {
            return;
        }
        slot.tries += u32::from(end == SampleEnd::Failed);
        let key = (slot.prompt, slot.sample);
        self.retries.entry(key).or_default().push((slot, now));
        self.expiring.push_back((now + RETRY_WITHIN, key));
        while self.expiring.len() > MAX_RETRIES {
            let Some((_, key)) = self.expiring.pop_front() else { return };
            // The one that left first is the first of them.
            let mut first = true;
            self.retain_retries(key, |_| !std::mem::take(&mut first));
        }
    }

    /// Records that the group of a sample has been answered. Where samples are compared it takes no more members, even if it never became
    /// complete.
    pub(crate) fn answered(&mut self, slot: &Slot) {
        if slot.compares && self.open.get(&slot.prompt).is_some_and(|open| open.number == slot.number) {
            self.close(&slot.prompt);
        }
    }

    /// Records that the client of a sample has gone away, or has come back.
    fn mark(&mut self, slot: &Slot, lost: bool) {
        let open = self.open.get_mut(&slot.prompt).filter(|open| open.number == slot.number);
        let mut members = open.into_iter().flat_map(|open| &mut open.members);
        if let Some(member) = members.find(|member| member.name == slot.member) {
            member.lost = lost;
        }
    }

    /// Gives the slot of a lost sample to another one that needs it. A later retry of the lost one is a new sample.
    fn release_lost(&mut self, prompt: Fingerprint, size: usize, member: Option<&str>, sample: Fingerprint) {
        let Some(open) = self.open.get_mut(&prompt) else { return };
        let Some(at) = open.lost_slot(size, member, sample) else { return };
        let gone = open.members.remove(at);
        self.samples -= 1;
        let number = open.number;
        self.retain_retries((prompt, gone.sample), |(slot, _)| {
            slot.number != number || slot.member != gone.name
        });
    }

    /// Keeps some of the retries that are expected of a sample.
    fn retain_retries(
        &mut self,
        key: (Fingerprint, Fingerprint),
        keep: impl FnMut(&(Slot, Instant)) -> bool,
    ) {
        if let Some(slots) = self.retries.get_mut(&key) {
            slots.retain(keep);
            if slots.is_empty() {
                self.retries.remove(&key);
            }
        }
    }

    fn close(&mut self, prompt: &Fingerprint) {
        if let Some(gone) = self.open.remove(prompt) {
            self.samples -= gone.members.len();
        }
    }

    fn open_group(&mut self, prompt: Fingerprint, step: u64) {
        self.next += 1;
        self.close(&prompt);
        self.open.insert(prompt, OpenGroup::new(self.next, step));
        self.opened.push_back((prompt, self.next));
    }

    /// Drops the oldest open groups where there are too many, or too many samples in them.
    fn drop_oldest(&mut self) {
        if self.opened.len() > 2 * MAX_GROUPS {
            let open = &self.open;
            self.opened
                .retain(|(prompt, number)| open.get(prompt).is_some_and(|open| open.number == *number));
        }
        while self.open.len() > MAX_GROUPS || self.samples > MAX_SAMPLES {
            let Some((prompt, number)) = self.opened.pop_front() else { return };
            if self.open.get(&prompt).is_some_and(|open| open.number == number) {
                self.close(&prompt);
            }
        }
    }

    /// Drops expired retries.
    fn expire(&mut self, now: Instant) {
        while self.expiring.front().is_some_and(|(due, _)| *due <= now) {
            let Some((_, key)) = self.expiring.pop_front() else { return };
            self.retain_retries(key, |(_, since)| now.saturating_duration_since(*since) < RETRY_WITHIN);
        }
    }
}

/// The hash of texts.
fn fingerprint(texts: &[&str]) -> Fingerprint {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    let mut fingerprint = [0; 16];
    fingerprint.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    fingerprint
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(key: &str, size: usize) -> PromptKey<'_> {
        PromptKey { key, size, compares: true, step: 0 }
    }

    fn names(slots: &[Slot]) -> Vec<(u64, String)> {
        slots.iter().map(|slot| (slot.number, slot.member())).collect()
    }

    fn arrive(
        implicit_groups: &mut ImplicitGroups,
        responses: &[&str],
        size: usize,
        now: Instant,
    ) -> Vec<Slot> {
        responses
            .iter()
            .map(|sample| implicit_groups.arrive(&prompt("q", size), (None, sample), now))
            .collect()
    }

    #[test]
    fn full_groups_start_the_next_one() {
        let (mut implicit_groups, now) = (ImplicitGroups::default(), Instant::now());
        let slots = arrive(&mut implicit_groups, &["a", "b", "a", "a"], 2, now);
        let told = names(&slots);
        assert_eq!(told, [(1, "0".into()), (1, "1".into()), (2, "0".into()), (2, "1".into())]);
        assert_ne!(slots[0].group(), slots[2].group());
        let other = implicit_groups.arrive(&prompt("r", 2), (None, "a"), now);
        assert_ne!(other.group(), slots[0].group());
    }

    #[test]
    fn answered_groups_take_no_more_members() {
        let (mut implicit_groups, now) = (ImplicitGroups::default(), Instant::now());
        let mut slots = arrive(&mut implicit_groups, &["a", "b"], 3, now);
        implicit_groups.leave(slots.remove(0), SampleEnd::Scored, now);
        assert_eq!(arrive(&mut implicit_groups, &["c"], 3, now)[0].number, 2);
    }

    #[test]
    fn groups_without_comparison_fill_up() {
        let (mut implicit_groups, now) = (ImplicitGroups::default(), Instant::now());
        let asked = PromptKey { compares: false, ..prompt("q", 2) };
        let mut come = || {
            let slot = implicit_groups.arrive(&asked, (None, "a"), now);
            implicit_groups.leave(slot.clone(), SampleEnd::Scored, now);
            slot.number
        };
        assert_eq!([come(), come(), come()], [1, 1, 2]);
    }

    #[test]
    fn retries_are_late_or_keep_their_slot() {
        let (mut implicit_groups, now) = (ImplicitGroups::default(), Instant::now());
        let slots = arrive(&mut implicit_groups, &["a", "b", "c"], 3, now);
        for (slot, end) in slots.into_iter().zip([SampleEnd::Failed, SampleEnd::Lost, SampleEnd::Scored]) {
            implicit_groups.leave(slot, end, now);
        }
        let retries = arrive(&mut implicit_groups, &["a", "b", "c"], 3, now);
        assert_eq!(names(&retries), [(1, "0+1".into()), (1, "1".into()), (2, "0".into())]);
        implicit_groups.leave(retries[0].clone(), SampleEnd::Failed, now);
        assert_eq!(names(&arrive(&mut implicit_groups, &["a"], 3, now)), [(1, "0+2".into())]);
    }

    #[test]
    fn lost_samples_give_their_places_up_to_others() {
        let (mut implicit_groups, now) = (ImplicitGroups::default(), Instant::now());
        for slot in arrive(&mut implicit_groups, &["old", "older"], 4, now) {
            implicit_groups.leave(slot, SampleEnd::Lost, now);
        }
        let new = arrive(&mut implicit_groups, &["a", "b", "c", "d"], 4, now);
        assert_eq!(names(&new), ["2", "3", "4", "5"].map(|name| (1, name.to_owned())));
        assert_eq!(implicit_groups.samples, 4);
        // They come again as new ones, and the group is full of those who are there.
        let back = arrive(&mut implicit_groups, &["old"], 4, now);
        assert_eq!(names(&back), [(2, "0".into())]);
        assert!(implicit_groups.retries.is_empty());
    }

    #[test]
    fn retried_lost_sample_keeps_its_slot() {
        let (mut implicit_groups, now) = (ImplicitGroups::default(), Instant::now());
        for slot in arrive(&mut implicit_groups, &["a", "b"], 3, now) {
            implicit_groups.leave(slot, SampleEnd::Lost, now);
        }
        let retries = arrive(&mut implicit_groups, &["b", "c", "d", "a"], 3, now);
        let wanted = [(1, "1".into()), (1, "2".into()), (1, "3".into()), (2, "0".into())];
        assert_eq!(names(&retries), wanted, "only the slot of who was still away was given up");
    }

    #[test]
    fn name_of_a_lost_sample_passes_on() {
        let (mut implicit_groups, now) = (ImplicitGroups::default(), Instant::now());
        let named = |implicit_groups: &mut ImplicitGroups, member: &str, sample: &str| {
            implicit_groups.arrive(&prompt("q", 2), (Some(member), sample), now)
        };
        let old = named(&mut implicit_groups, "0", "old");
        implicit_groups.leave(old, SampleEnd::Lost, now);
        let new = [named(&mut implicit_groups, "1", "b"), named(&mut implicit_groups, "0", "a")];
        assert_eq!(names(&new), [(1, "1".into()), (1, "0".into())]);
        assert_eq!(names(&[named(&mut implicit_groups, "0", "next")]), [(2, "0".into())]);
    }

    #[test]
    fn group_without_listeners_is_answered() {
        let (mut implicit_groups, now) = (ImplicitGroups::default(), Instant::now());
        let slot = arrive(&mut implicit_groups, &["old"], 2, now).remove(0);
        implicit_groups.leave(slot.clone(), SampleEnd::Lost, now);
        implicit_groups.answered(&slot);
        assert_eq!(names(&arrive(&mut implicit_groups, &["new"], 2, now)), [(2, "0".into())]);
        assert_eq!(
            names(&arrive(&mut implicit_groups, &["old"], 2, now)),
            [(1, "0".into())],
            "its answer is waiting"
        );
    }

    #[test]
    fn nobody_is_expected_for_ever() {
        let (mut implicit_groups, now) = (ImplicitGroups::default(), Instant::now());
        let slot = arrive(&mut implicit_groups, &["a"], 1, now).remove(0);
        implicit_groups.leave(slot, SampleEnd::Failed, now);
        assert_eq!(names(&arrive(&mut implicit_groups, &["a"], 1, now + RETRY_WITHIN)), [(2, "0".into())]);
        assert!(implicit_groups.retries.is_empty() && implicit_groups.expiring.is_empty());
    }

    #[test]
    fn group_keeps_its_step() {
        let (mut implicit_groups, now) = (ImplicitGroups::default(), Instant::now());
        let mut come = |sample: &str, step: u64| {
            let slot = implicit_groups.arrive(&PromptKey { step, ..prompt("q", 2) }, (None, sample), now);
            implicit_groups.leave(slot.clone(), SampleEnd::Failed, now);
            (slot.number, slot.step, slot.member())
        };
        assert_eq!(come("a", 7), (1, 7, "0".into()));
        assert_eq!(come("a", 7), (1, 7, "0+1".into()));
        assert_eq!(come("a", 8), (2, 8, "0".into()), "its step has gone by");
        let mut implicit_groups = ImplicitGroups::default();
        let first = implicit_groups.arrive(&PromptKey { step: 7, ..prompt("q", 2) }, (None, "a"), now);
        let second = implicit_groups.arrive(&PromptKey { step: 8, ..prompt("q", 2) }, (None, "b"), now);
        assert_eq!((first.step, second.step, second.number), (7, 7, first.number));
    }

    #[test]
    fn equal_words_of_two_samples_are_two_places() {
        let (mut implicit_groups, now) = (ImplicitGroups::default(), Instant::now());
        let slots = arrive(&mut implicit_groups, &["a", "a"], 2, now);
        for slot in slots {
            implicit_groups.leave(slot, SampleEnd::Failed, now);
        }
        let mut retries = names(&arrive(&mut implicit_groups, &["a", "a", "a"], 2, now));
        retries.sort();
        assert_eq!(retries, [(1, "0+1".into()), (1, "1+1".into()), (2, "0".into())]);
    }

    #[test]
    fn same_name_with_new_text_starts_a_group() {
        let (mut implicit_groups, now) = (ImplicitGroups::default(), Instant::now());
        let mut named = |member: &str, sample: &str| {
            let slot = implicit_groups.arrive(&prompt("q", 4), (Some(member), sample), now);
            (slot.number, slot.member())
        };
        assert_eq!(named("0", "a"), (1, "0".into()));
        assert_eq!(named("1", "b"), (1, "1".into()));
        assert_eq!(named("1", "b"), (1, "1".into()), "the same again is no member more");
        assert_eq!(named("2", "c"), (1, "2".into()));
        assert_eq!(named("0", "d"), (2, "0".into()), "the next epoch");
    }

    #[test]
    fn incomplete_groups_are_dropped_in_the_end() {
        let (mut implicit_groups, now) = (ImplicitGroups::default(), Instant::now());
        for at in 0..MAX_GROUPS + 10 {
            implicit_groups.arrive(&prompt(&at.to_string(), 2), (None, "a"), now);
        }
        assert_eq!((implicit_groups.open.len(), implicit_groups.samples), (MAX_GROUPS, MAX_GROUPS));
        // Nor are those kept without end that got no number.
        for at in 0..MAX_RETRIES + 10 {
            let slot = implicit_groups.arrive(&prompt(&at.to_string(), 1), (None, "b"), now);
            implicit_groups.leave(slot, SampleEnd::Failed, now);
        }
        assert_eq!(
            (implicit_groups.expiring.len(), implicit_groups.retries.len()),
            (MAX_RETRIES, MAX_RETRIES)
        );
    }
}
