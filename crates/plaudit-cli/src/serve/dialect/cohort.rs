//! Which group does a sample belong to whose client names none? The samples of one prompt make a group when they are as many
//! as a prompt has; after that, or once the group has been answered, the same prompt begins the next one.
//!
//! Such clients ask again when they get no number, or none in time. A sample that comes again takes its old place, so that it
//! is not taken for a sibling of itself:
//!
//! | What became of it | Where it goes when it comes again |
//! |---|---|
//! | the client went away before it was answered, or there was no room | to its place, where its answer is waiting; unless a group that compares was full and another sample needed the place |
//! | it was answered without a number | to its group, as one who is late: it is scored anew, with the others as they were |
//! | it was answered with a number | to the group that is being gathered: it is another sample with the same words |

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// How long a sample that got no number is expected to come again; the slowest client waits 31 s.
const AGAIN: Duration = Duration::from_secs(120);
/// How many prompts are gathered at once. Those that began first are forgotten first.
const MOST: usize = 16_384;
/// How many samples of them there are at most, and how many that may come again.
const MOST_SAMPLES: usize = 1 << 18;
const MOST_AGAIN: usize = 16_384;

/// A prompt, or a sample: the first bytes of a hash.
type Print = [u8; 16];

/// What a sample answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prompt<'p> {
    /// What is equal for the samples of the prompt.
    pub(crate) key: &'p str,
    /// How many of them there are.
    pub(crate) size: usize,
    /// Whether they are compared, so that none is answered before the group is closed.
    pub(crate) compares: bool,
    /// The step of the training; the group belongs to the step of its first sample.
    pub(crate) step: u64,
}

/// Where a sample belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    prompt: Print,
    said: Print,
    number: u64,
    member: String,
    tries: u32,
    compares: bool,
    /// The step that its group belongs to.
    pub(crate) step: u64,
}

impl Place {
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

/// What became of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It got a number.
    Scored,
    /// It got none, and may be scored anew.
    Failed,
    /// Nobody was told, or it was not taken in.
    Lost,
}

/// The prompts of one run that are being gathered, and the samples that may come again.
#[derive(Debug, Default)]
pub(crate) struct Cohorts {
    open: BTreeMap<Print, Gathering>,
    /// The order in which they began.
    begun: VecDeque<(Print, u64)>,
    again: BTreeMap<(Print, Print), Vec<(Place, Instant)>>,
    /// When they are forgotten.
    leaving: VecDeque<(Instant, (Print, Print))>,
    next: u64,
    /// How many samples are in open gatherings.
    samples: usize,
}

#[derive(Debug)]
struct Gathering {
    number: u64,
    step: u64,
    members: Vec<Member>,
    /// How many members it has had, those included whose place another has taken.
    named: usize,
}

/// A sample in a group that is being gathered.
#[derive(Debug)]
struct Member {
    name: String,
    said: Print,
    /// Whether its client has gone away before it was answered.
    lost: bool,
}

impl Gathering {
    fn new(number: u64, step: u64) -> Self {
        Self { number, step, members: Vec::new(), named: 0 }
    }

    /// The lost sample whose place a sample takes that is another one: the one of its name, or where all places are taken the
    /// first.
    fn given_up(&self, size: usize, member: Option<&str>, said: Print) -> Option<usize> {
        let lost = |(at, other): (usize, &Member)| other.lost.then_some(at);
        let same = |other: &Member| Some(other.name.as_str()) == member;
        match self.members.iter().position(same) {
            Some(at) if self.members[at].said == said => None,
            Some(at) => lost((at, &self.members[at])),
            None if self.members.len() < size => None,
            None => self.members.iter().enumerate().find_map(lost),
        }
    }
}

impl Cohorts {
    /// The place of a sample that comes in, with or without a name of its own.
    pub(crate) fn arrive(
        &mut self,
        asked: &Prompt<'_>,
        (member, response): (Option<&str>, &str),
        now: Instant,
    ) -> Place {
        self.forget(now);
        let prompt = print(&[asked.key]);
        let said = print(&[member.unwrap_or(""), response]);
        if let Some((place, _)) = self.again.get_mut(&(prompt, said)).and_then(Vec::pop) {
            // Where the step has gone by, so has what was known of its groups.
            if place.step == asked.step {
                self.mark(&place, false);
                return place;
            }
        }
        if asked.size <= 1 {
            // Nobody else is expected.
            self.next += 1;
            let member = member.unwrap_or("0").to_owned();
            let Prompt { compares, step, .. } = *asked;
            return Place { prompt, said, number: self.next, member, tries: 0, compares, step };
        }
        if asked.compares {
            self.give_up(prompt, asked.size, member, said);
        }
        let taken = |open: &Gathering| {
            let full = open.members.len() >= asked.size;
            // Another response under a name that is taken: the prompt has come back before its group was complete.
            let other = |other: &Member| Some(other.name.as_str()) == member && other.said != said;
            full || open.members.iter().any(other)
        };
        if self.open.get(&prompt).is_none_or(taken) {
            self.begin(prompt, asked.step);
        }
        let (number, step) = (self.next, asked.step);
        let open = self.open.entry(prompt).or_insert_with(|| Gathering::new(number, step));
        let name = member.map_or_else(|| open.named.to_string(), str::to_owned);
        match open.members.iter_mut().find(|member| member.name == name) {
            Some(member) => member.lost = false,
            None => {
                open.members.push(Member { name: name.clone(), said, lost: false });
                open.named += 1;
                self.samples += 1;
            }
        }
        let (number, step) = (open.number, open.step);
        self.forget_oldest();
        Place { prompt, said, number, member: name, tries: 0, compares: asked.compares, step }
    }

    /// A sample has had its answer, or none.
    pub(crate) fn leave(&mut self, mut place: Place, end: End, now: Instant) {
        self.forget(now);
        match end {
            End::Lost => self.mark(&place, true),
            End::Scored | End::Failed => self.answered(&place),
        }
        if end == End::Scored {
            return;
        }
        place.tries += u32::from(end == End::Failed);
        let key = (place.prompt, place.said);
        self.again.entry(key).or_default().push((place, now));
        self.leaving.push_back((now + AGAIN, key));
        while self.leaving.len() > MOST_AGAIN {
            let Some((_, key)) = self.leaving.pop_front() else { return };
            if let Some(places) = self.again.get_mut(&key) {
                // The one that left first is the first of them.
                drop(places.drain(..1.min(places.len())));
                if places.is_empty() {
                    self.again.remove(&key);
                }
            }
        }
    }

    /// The group of a sample has been answered, whether or not anybody heard it. Where samples are compared, it gathers nobody any
    /// more, even if it never became complete.
    pub(crate) fn answered(&mut self, place: &Place) {
        if place.compares && self.open.get(&place.prompt).is_some_and(|open| open.number == place.number) {
            self.close(&place.prompt);
        }
    }

    /// Takes note that the client of a sample has gone away, or is there again.
    fn mark(&mut self, place: &Place, lost: bool) {
        let open = self.open.get_mut(&place.prompt).filter(|open| open.number == place.number);
        let mut members = open.into_iter().flat_map(|open| &mut open.members);
        if let Some(member) = members.find(|member| member.name == place.member) {
            member.lost = lost;
        }
    }

    /// Makes a lost sample give its place up, where another one needs it. If it comes again after all, it is a new sample.
    fn give_up(&mut self, prompt: Print, size: usize, member: Option<&str>, said: Print) {
        let Some(open) = self.open.get_mut(&prompt) else { return };
        let Some(at) = open.given_up(size, member, said) else { return };
        let gone = open.members.remove(at);
        self.samples -= 1;
        let key = (prompt, gone.said);
        if let Some(places) = self.again.get_mut(&key) {
            let number = open.number;
            places.retain(|(place, _)| place.number != number || place.member != gone.name);
            if places.is_empty() {
                self.again.remove(&key);
            }
        }
    }

    fn close(&mut self, prompt: &Print) {
        if let Some(gone) = self.open.remove(prompt) {
            self.samples -= gone.members.len();
        }
    }

    fn begin(&mut self, prompt: Print, step: u64) {
        self.next += 1;
        self.close(&prompt);
        self.open.insert(prompt, Gathering::new(self.next, step));
        self.begun.push_back((prompt, self.next));
    }

    /// Forgets the prompts that began first, where there are too many or they hold too much.
    fn forget_oldest(&mut self) {
        if self.begun.len() > 2 * MOST {
            let open = &self.open;
            self.begun.retain(|(prompt, number)| open.get(prompt).is_some_and(|open| open.number == *number));
        }
        while self.open.len() > MOST || self.samples > MOST_SAMPLES {
            let Some((prompt, number)) = self.begun.pop_front() else { return };
            if self.open.get(&prompt).is_some_and(|open| open.number == number) {
                self.close(&prompt);
            }
        }
    }

    /// Expects nobody any more whose time is over.
    fn forget(&mut self, now: Instant) {
        while self.leaving.front().is_some_and(|(due, _)| *due <= now) {
            let Some((_, key)) = self.leaving.pop_front() else { return };
            if let Some(places) = self.again.get_mut(&key) {
                places.retain(|(_, since)| now.saturating_duration_since(*since) < AGAIN);
                if places.is_empty() {
                    self.again.remove(&key);
                }
            }
        }
    }
}

/// What is equal for equal texts.
fn print(texts: &[&str]) -> Print {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    let mut print = [0; 16];
    print.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    print
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(key: &str, size: usize) -> Prompt<'_> {
        Prompt { key, size, compares: true, step: 0 }
    }

    fn names(places: &[Place]) -> Vec<(u64, String)> {
        places.iter().map(|place| (place.number, place.member())).collect()
    }

    fn arrive(cohorts: &mut Cohorts, responses: &[&str], size: usize, now: Instant) -> Vec<Place> {
        responses.iter().map(|said| cohorts.arrive(&prompt("q", size), (None, said), now)).collect()
    }

    #[test]
    fn as_many_as_a_prompt_has_make_a_group_and_the_next_one_begins_another() {
        let (mut cohorts, now) = (Cohorts::default(), Instant::now());
        let places = arrive(&mut cohorts, &["a", "b", "a", "a"], 2, now);
        let told = names(&places);
        assert_eq!(told, [(1, "0".into()), (1, "1".into()), (2, "0".into()), (2, "1".into())]);
        assert_ne!(places[0].group(), places[2].group());
        let other = cohorts.arrive(&prompt("r", 2), (None, "a"), now);
        assert_ne!(other.group(), places[0].group());
    }

    #[test]
    fn a_group_that_was_answered_gathers_nobody_any_more() {
        let (mut cohorts, now) = (Cohorts::default(), Instant::now());
        let mut places = arrive(&mut cohorts, &["a", "b"], 3, now);
        cohorts.leave(places.remove(0), End::Scored, now);
        assert_eq!(arrive(&mut cohorts, &["c"], 3, now)[0].number, 2);
    }

    #[test]
    fn where_nothing_is_compared_a_group_gathers_until_it_is_complete() {
        let (mut cohorts, now) = (Cohorts::default(), Instant::now());
        let asked = Prompt { compares: false, ..prompt("q", 2) };
        let mut come = || {
            let place = cohorts.arrive(&asked, (None, "a"), now);
            cohorts.leave(place.clone(), End::Scored, now);
            place.number
        };
        assert_eq!([come(), come(), come()], [1, 1, 2]);
    }

    #[test]
    fn whoever_got_no_number_is_late_and_whoever_was_lost_is_where_it_was() {
        let (mut cohorts, now) = (Cohorts::default(), Instant::now());
        let places = arrive(&mut cohorts, &["a", "b", "c"], 3, now);
        for (place, end) in places.into_iter().zip([End::Failed, End::Lost, End::Scored]) {
            cohorts.leave(place, end, now);
        }
        let again = arrive(&mut cohorts, &["a", "b", "c"], 3, now);
        assert_eq!(names(&again), [(1, "0+1".into()), (1, "1".into()), (2, "0".into())]);
        cohorts.leave(again[0].clone(), End::Failed, now);
        assert_eq!(names(&arrive(&mut cohorts, &["a"], 3, now)), [(1, "0+2".into())]);
    }

    #[test]
    fn lost_samples_give_their_places_up_to_others() {
        let (mut cohorts, now) = (Cohorts::default(), Instant::now());
        for place in arrive(&mut cohorts, &["old", "older"], 4, now) {
            cohorts.leave(place, End::Lost, now);
        }
        let new = arrive(&mut cohorts, &["a", "b", "c", "d"], 4, now);
        assert_eq!(names(&new), ["2", "3", "4", "5"].map(|name| (1, name.to_owned())));
        assert_eq!(cohorts.samples, 4);
        // They come again as new ones, and the group is full of those who are there.
        let back = arrive(&mut cohorts, &["old"], 4, now);
        assert_eq!(names(&back), [(2, "0".into())]);
        assert!(cohorts.again.is_empty());
    }

    #[test]
    fn a_lost_sample_that_comes_again_keeps_its_place() {
        let (mut cohorts, now) = (Cohorts::default(), Instant::now());
        for place in arrive(&mut cohorts, &["a", "b"], 3, now) {
            cohorts.leave(place, End::Lost, now);
        }
        let again = arrive(&mut cohorts, &["b", "c", "d", "a"], 3, now);
        let wanted = [(1, "1".into()), (1, "2".into()), (1, "3".into()), (2, "0".into())];
        assert_eq!(names(&again), wanted, "only the place of who was still away was given up");
    }

    #[test]
    fn a_name_passes_to_another_sample_when_its_own_is_lost() {
        let (mut cohorts, now) = (Cohorts::default(), Instant::now());
        let named = |cohorts: &mut Cohorts, member: &str, said: &str| {
            cohorts.arrive(&prompt("q", 2), (Some(member), said), now)
        };
        let old = named(&mut cohorts, "0", "old");
        cohorts.leave(old, End::Lost, now);
        let new = [named(&mut cohorts, "1", "b"), named(&mut cohorts, "0", "a")];
        assert_eq!(names(&new), [(1, "1".into()), (1, "0".into())]);
        assert_eq!(names(&[named(&mut cohorts, "0", "next")]), [(2, "0".into())]);
    }

    #[test]
    fn a_group_that_nobody_heard_the_answer_of_is_over() {
        let (mut cohorts, now) = (Cohorts::default(), Instant::now());
        let place = arrive(&mut cohorts, &["old"], 2, now).remove(0);
        cohorts.leave(place.clone(), End::Lost, now);
        cohorts.answered(&place);
        assert_eq!(names(&arrive(&mut cohorts, &["new"], 2, now)), [(2, "0".into())]);
        assert_eq!(
            names(&arrive(&mut cohorts, &["old"], 2, now)),
            [(1, "0".into())],
            "its answer is waiting"
        );
    }

    #[test]
    fn nobody_is_expected_for_ever() {
        let (mut cohorts, now) = (Cohorts::default(), Instant::now());
        let place = arrive(&mut cohorts, &["a"], 1, now).remove(0);
        cohorts.leave(place, End::Failed, now);
        assert_eq!(names(&arrive(&mut cohorts, &["a"], 1, now + AGAIN)), [(2, "0".into())]);
        assert!(cohorts.again.is_empty() && cohorts.leaving.is_empty());
    }

    #[test]
    fn a_group_stays_in_the_step_that_it_began_in() {
        let (mut cohorts, now) = (Cohorts::default(), Instant::now());
        let mut come = |said: &str, step: u64| {
            let place = cohorts.arrive(&Prompt { step, ..prompt("q", 2) }, (None, said), now);
            cohorts.leave(place.clone(), End::Failed, now);
            (place.number, place.step, place.member())
        };
        assert_eq!(come("a", 7), (1, 7, "0".into()));
        assert_eq!(come("a", 7), (1, 7, "0+1".into()));
        assert_eq!(come("a", 8), (2, 8, "0".into()), "its step has gone by");
        let mut cohorts = Cohorts::default();
        let first = cohorts.arrive(&Prompt { step: 7, ..prompt("q", 2) }, (None, "a"), now);
        let second = cohorts.arrive(&Prompt { step: 8, ..prompt("q", 2) }, (None, "b"), now);
        assert_eq!((first.step, second.step, second.number), (7, 7, first.number));
    }

    #[test]
    fn equal_words_of_two_samples_are_two_places() {
        let (mut cohorts, now) = (Cohorts::default(), Instant::now());
        let places = arrive(&mut cohorts, &["a", "a"], 2, now);
        for place in places {
            cohorts.leave(place, End::Failed, now);
        }
        let mut again = names(&arrive(&mut cohorts, &["a", "a", "a"], 2, now));
        again.sort();
        assert_eq!(again, [(1, "0+1".into()), (1, "1+1".into()), (2, "0".into())]);
    }

    #[test]
    fn a_name_with_other_words_begins_the_next_group() {
        let (mut cohorts, now) = (Cohorts::default(), Instant::now());
        let mut named = |member: &str, said: &str| {
            let place = cohorts.arrive(&prompt("q", 4), (Some(member), said), now);
            (place.number, place.member())
        };
        assert_eq!(named("0", "a"), (1, "0".into()));
        assert_eq!(named("1", "b"), (1, "1".into()));
        assert_eq!(named("1", "b"), (1, "1".into()), "the same again is no member more");
        assert_eq!(named("2", "c"), (1, "2".into()));
        assert_eq!(named("0", "d"), (2, "0".into()), "the next epoch");
    }

    #[test]
    fn what_never_became_complete_is_forgotten_in_the_end() {
        let (mut cohorts, now) = (Cohorts::default(), Instant::now());
        for at in 0..MOST + 10 {
            cohorts.arrive(&prompt(&at.to_string(), 2), (None, "a"), now);
        }
        assert_eq!((cohorts.open.len(), cohorts.samples), (MOST, MOST));
        // Nor are those kept without end that got no number.
        for at in 0..MOST_AGAIN + 10 {
            let place = cohorts.arrive(&prompt(&at.to_string(), 1), (None, "b"), now);
            cohorts.leave(place, End::Failed, now);
        }
        assert_eq!((cohorts.leaving.len(), cohorts.again.len()), (MOST_AGAIN, MOST_AGAIN));
    }
}
