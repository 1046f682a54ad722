//! Who may come in? As many rollouts at once as the service can hold, and as much text, shared between runs so that one cannot keep
//! the others out.

use super::reply::Refusal;
use hyper::StatusCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How many rollouts are in the service, or how many bytes of them, and whose.
#[derive(Debug)]
pub(crate) struct Admission {
    most: usize,
    /// What is counted, in words.
    what: &'static str,
    inside: AtomicUsize,
    /// How many runs have rollouts inside.
    runs: AtomicUsize,
    /// What a place has taken lately, in microseconds, to tell those who are turned away when to come back.
    pace: Mutex<f64>,
}

/// The rollouts of one run that are inside.
#[derive(Debug, Default)]
pub(crate) struct Load(AtomicUsize);

impl Load {
    /// How many.
    pub(crate) fn rollouts(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Rollouts that were let in; they leave when it is dropped.
#[derive(Debug)]
pub(crate) struct Inside {
    admission: Arc<Admission>,
    load: Arc<Load>,
    rollouts: usize,
    since: std::time::Instant,
}

impl Admission {
    pub(crate) fn new(most: usize, what: &'static str) -> Self {
        Self { most, what, inside: AtomicUsize::new(0), runs: AtomicUsize::new(0), pace: Mutex::new(0.0) }
    }

    /// How many are inside.
    pub(crate) fn inside(&self) -> usize {
        self.inside.load(Ordering::Relaxed)
    }

    /// Lets rollouts of a run in, or says when to come back.
    ///
    /// One run may have three quarters of all places, two may have three eighths each, and so on: a quarter is always left for
    /// whoever comes new. A run that has nothing inside is let in with any one request while there is a place at all, and that
    /// request takes three quarters of the places that are free at most, however large it is.
    pub(crate) fn enter(self: &Arc<Self>, load: &Arc<Load>, rollouts: usize) -> Result<Inside, Refusal> {
        let counted = match load.rollouts() {
            0 => rollouts.min(self.most.saturating_sub(self.inside()) / 4 * 3),
            _ => rollouts,
        };
        self.admit(load, counted, true)
    }

    /// The same where nothing is counted for less than it is: what does not fit is refused, whoever it is from.
    pub(crate) fn hold(self: &Arc<Self>, load: &Arc<Load>, many: usize) -> Result<Inside, Refusal> {
        let most = self.most / 4 * 3;
        if many > most {
            let message = format!("these are {many} {}, and {most} is the most: send less", self.what);
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "http.too_many", message));
        }
        self.admit(load, many, false)
    }

    fn admit(self: &Arc<Self>, load: &Arc<Load>, many: usize, lenient: bool) -> Result<Inside, Refusal> {
        // Nothing takes a place as well, so that who was first and who is last is always clear.
        let many = many.max(1);
        let before = load.0.fetch_add(many, Ordering::AcqRel);
        let runs = match before {
            0 => self.runs.fetch_add(1, Ordering::AcqRel) + 1,
            _ => self.runs.load(Ordering::Acquire).max(1),
        };
        let all = self.inside.fetch_add(many, Ordering::AcqRel);
        let since = std::time::Instant::now();
        // Made first, so that everything is given back where it is refused.
        let inside = Inside { admission: Arc::clone(self), load: Arc::clone(load), rollouts: many, since };
        let share = self.most * 3 / 4 / runs;
        let fits = match before {
            0 if lenient => all < self.most,
            0 => all + many <= self.most,
            _ => before + many <= share && all + many <= self.most,
        };
        if fits {
            return Ok(inside);
        }
        let what = self.what;
        let message = match before {
            0 => format!("{all} {what} are being scored, and there is no room for more"),
            _ => format!("{before} {what} of this run are being scored; its share is {share}"),
        };
        Err(Refusal::busy("engine.overloaded", message, self.wait()))
    }

    /// Lets rollouts of a job in, behind those of requests: they have half of what their run may have, and half of all places.
    /// None where they have to wait. A group that is larger takes that half, since it cannot be cut.
    pub(crate) fn enter_behind(self: &Arc<Self>, load: &Arc<Load>, rollouts: usize) -> Option<Inside> {
        let before = load.rollouts();
        let runs = self.runs.load(Ordering::Acquire) + usize::from(before == 0);
        let half = (self.most * 3 / 8 / runs.max(1)).max(1);
        let rollouts = rollouts.clamp(1, half);
        let fits = before + rollouts <= half && self.inside() + rollouts <= self.most / 2;
        fits.then(|| self.enter(load, rollouts).ok()).flatten()
    }

    /// In how many seconds there may be room.
    fn wait(&self) -> u64 {
        let pace = *self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        ((pace / 1e6).ceil() as u64).clamp(1, 30)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.admission.inside.fetch_sub(self.rollouts, Ordering::AcqRel);
        if self.load.0.fetch_sub(self.rollouts, Ordering::AcqRel) == self.rollouts {
            self.admission.runs.fetch_sub(1, Ordering::AcqRel);
        }
        let took = self.since.elapsed().as_micros() as f64;
        let mut pace = self.admission.pace.lock().unwrap_or_else(PoisonError::into_inner);
        *pace += (took - *pace) * 0.05;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_takes_all_it_can_leaves_room_for_another() {
        let admission = Arc::new(Admission::new(100, "rollouts"));
        let (greedy, modest) = (Arc::new(Load::default()), Arc::new(Load::default()));
        let mut inside: Vec<Inside> = Vec::new();
        while let Ok(more) = admission.enter(&greedy, 5) {
            inside.push(more);
        }
        assert_eq!(greedy.rollouts(), 75);
        let other = admission.enter(&modest, 20).expect("there is room for whoever is new");
        let refusal = admission.enter(&modest, 20).expect_err("its share is 37");
        assert_eq!((refusal.status.as_u16(), refusal.code), (429, "engine.overloaded"));
        assert!(refusal.retry_after.is_some());
        // The one that was there first comes down to its share before it is let in again.
        inside.truncate(8);
        assert!(admission.enter(&greedy, 5).is_err(), "40 of 37");
        inside.truncate(6);
        drop(admission.enter(&greedy, 5).expect("30 of 37"));
        drop((other, inside));
        assert_eq!((admission.inside(), greedy.rollouts(), modest.rollouts()), (0, 0, 0));
        assert_eq!(admission.runs.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn jobs_leave_half_to_requests() {
        let admission = Arc::new(Admission::new(100, "rollouts"));
        let (one, other) = (Arc::new(Load::default()), Arc::new(Load::default()));
        let first = admission.enter_behind(&one, 30).expect("there is room");
        assert!(admission.enter_behind(&one, 30).is_none(), "60 of 37");
        let request = admission.enter(&one, 30).expect("a request of the same run");
        assert!(admission.enter_behind(&other, 10).is_none(), "half of all places are taken");
        drop(request);
        let second = admission.enter_behind(&other, 1000).expect("its half is 18");
        assert_eq!((one.rollouts(), other.rollouts()), (30, 18));
        drop((first, second));
        assert_eq!((admission.inside(), admission.runs.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn requests_without_rollouts_do_not_confuse_the_count_of_runs() {
        let (admission, load) = (Arc::new(Admission::new(100, "rollouts")), Arc::new(Load::default()));
        let enter = |rollouts: usize| admission.enter(&load, rollouts).expect("there is room");
        // Each leaves while the other is inside, in both orders.
        let (empty, some) = (enter(0), enter(5));
        drop(empty);
        drop(some);
        let (some, empty) = (enter(5), enter(0));
        drop(some);
        drop(empty);
        assert_eq!((admission.inside(), admission.runs.load(Ordering::Relaxed)), (0, 0));
        drop(enter(70));
    }

    #[test]
    fn large_requests_are_let_in_and_leave_room_for_others() {
        let admission = Arc::new(Admission::new(1000, "rollouts"));
        let load = || Arc::new(Load::default());
        let first = load();
        let inside = [
            admission.enter(&first, 100_000).expect("alone"),
            admission.enter(&load(), 100_000).expect("beside a large one"),
            admission.enter(&load(), 10).expect("beside two"),
        ];
        assert!(admission.enter(&first, 1).is_err(), "it has more than its share");
        drop(inside);
        assert_eq!((admission.inside(), admission.runs.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn what_is_held_is_counted_as_it_is() {
        let admission = Arc::new(Admission::new(1000, "bytes"));
        let loads: Vec<Arc<Load>> = (0..4).map(|_| Arc::new(Load::default())).collect();
        assert_eq!(admission.hold(&loads[0], 751).unwrap_err().status.as_u16(), 413);
        let first = admission.hold(&loads[0], 600).expect("three quarters are its share");
        assert_eq!(admission.hold(&loads[0], 200).unwrap_err().code, "engine.overloaded");
        let second = admission.hold(&loads[1], 400).expect("there is room for whoever is new");
        assert!(admission.hold(&loads[2], 1).is_err(), "but no more than there is");
        drop((first, second));
        assert_eq!(admission.inside(), 0);
    }
}
