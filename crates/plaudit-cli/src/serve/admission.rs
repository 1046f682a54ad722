//! Who may come in? As many rollouts at once as the service can hold, shared between runs so that one cannot keep the others out.

use super::reply::Refusal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How many rollouts are in the service, and whose.
#[derive(Debug)]
pub(crate) struct Admission {
    most: usize,
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
    pub(crate) fn new(most: usize) -> Self {
        Self { most, inside: AtomicUsize::new(0), runs: AtomicUsize::new(0), pace: Mutex::new(0.0) }
    }

    /// How many rollouts are inside.
    pub(crate) fn inside(&self) -> usize {
        self.inside.load(Ordering::Relaxed)
    }

    /// Lets rollouts of a run in, or says when to come back.
    ///
    /// One run may have three quarters of all places, two may have three eighths each, and so on: a quarter is always left for
    /// whoever comes new. A run that has nothing inside is let in with any one request while there is a place at all, and that
    /// request takes three quarters of the places that are free at most, however large it is.
    pub(crate) fn enter(self: &Arc<Self>, load: &Arc<Load>, rollouts: usize) -> Result<Inside, Refusal> {
        // A request without rollouts takes a place as well, so that who was first and who is last is always clear.
        let rollouts = match load.rollouts() {
            0 => rollouts.min(self.most.saturating_sub(self.inside()) / 4 * 3),
            _ => rollouts,
        };
        let rollouts = rollouts.max(1);
        let before = load.0.fetch_add(rollouts, Ordering::AcqRel);
        let runs = match before {
            0 => self.runs.fetch_add(1, Ordering::AcqRel) + 1,
            _ => self.runs.load(Ordering::Acquire).max(1),
        };
        let all = self.inside.fetch_add(rollouts, Ordering::AcqRel);
        let since = std::time::Instant::now();
        // Made first, so that everything is given back where it is refused.
        let inside = Inside { admission: Arc::clone(self), load: Arc::clone(load), rollouts, since };
        let share = self.most * 3 / 4 / runs;
        let fits = match before {
            0 => all < self.most,
            _ => before + rollouts <= share && all + rollouts <= self.most,
        };
        if fits {
            return Ok(inside);
        }
        let message = match before {
            0 => format!("{all} rollouts are being scored, and there is no room for more"),
            _ => format!("{before} rollouts of this run are being scored; its share is {share}"),
        };
        Err(Refusal::busy("engine.overloaded", message, self.wait()))
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
        let admission = Arc::new(Admission::new(100));
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
    fn requests_without_rollouts_do_not_confuse_the_count_of_runs() {
        let (admission, load) = (Arc::new(Admission::new(100)), Arc::new(Load::default()));
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
        let admission = Arc::new(Admission::new(1000));
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
}
