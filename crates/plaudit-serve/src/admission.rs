//! Admission control: how many rollouts, or bytes of them, the service holds at once, shared fairly between runs.

use crate::http::response::ApiError;
use hyper::StatusCode;
use plaudit::exec::lock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A limit on rollouts, or on bytes of rollouts, that runs share.
#[derive(Debug)]
pub(crate) struct Admission {
    most: usize,
    /// What is counted, in words.
    what: &'static str,
    admitted: AtomicUsize,
    /// How many runs have something admitted.
    runs: AtomicUsize,
    /// How long a permit was held lately, in microseconds (moving average), for Retry-After.
    pace: Mutex<f64>,
}

/// What one run has admitted.
#[derive(Debug, Default)]
pub(crate) struct Load(AtomicUsize);

impl Load {
    /// How many.
    pub(crate) fn rollouts(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Admitted rollouts; dropping it makes room.
#[derive(Debug)]
pub(crate) struct AdmissionPermit {
    admission: Arc<Admission>,
    load: Arc<Load>,
    rollouts: usize,
    since: std::time::Instant,
}

impl Admission {
    pub(crate) fn new(most: usize, what: &'static str) -> Self {
        Self { most, what, admitted: AtomicUsize::new(0), runs: AtomicUsize::new(0), pace: Mutex::new(0.0) }
    }

    /// How many are admitted.
    pub(crate) fn admitted(&self) -> usize {
        self.admitted.load(Ordering::Relaxed)
    }

    /// Admits rollouts of a run, or says when to try again.
    ///
    /// One run may have three quarters of the limit, two may have three eighths each, and so on: a quarter always stays for a new run.
    /// A run with nothing admitted gets one request of any size in while anything is free, and that request counts for three quarters
    /// of what is free at most.
    pub(crate) fn enter(
        self: &Arc<Self>,
        load: &Arc<Load>,
        rollouts: usize,
    ) -> Result<AdmissionPermit, ApiError> {
        let counted = match load.rollouts() {
            0 => rollouts.min(self.most.saturating_sub(self.admitted()) / 4 * 3),
            _ => rollouts,
        };
        self.admit(load, counted, true)
    }

    /// The same with exact counting: what does not fit is rejected, also of a run that has nothing admitted.
    pub(crate) fn hold(self: &Arc<Self>, load: &Arc<Load>, many: usize) -> Result<AdmissionPermit, ApiError> {
        let most = self.most / 4 * 3;
        if many > most {
            let message = format!("these are {many} {}, and {most} is the most: send less", self.what);
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "http.too_many", message));
        }
        self.admit(load, many, false)
    }

    fn admit(
        self: &Arc<Self>,
        load: &Arc<Load>,
        many: usize,
        lenient: bool,
    ) -> Result<AdmissionPermit, ApiError> {
        // A request without rollouts counts as well, so that the first and the last of a run are known.
        let many = many.max(1);
        let before = load.0.fetch_add(many, Ordering::AcqRel);
        let runs = match before {
            0 => self.runs.fetch_add(1, Ordering::AcqRel) + 1,
            _ => self.runs.load(Ordering::Acquire).max(1),
        };
        let all = self.admitted.fetch_add(many, Ordering::AcqRel);
        let since = std::time::Instant::now();
        // Made first: dropping it undoes the counts where the request is rejected.
        let permit =
            AdmissionPermit { admission: Arc::clone(self), load: Arc::clone(load), rollouts: many, since };
        let share = self.most * 3 / 4 / runs;
        let fits = match before {
            0 if lenient => all < self.most,
            0 => all + many <= self.most,
            _ => before + many <= share && all + many <= self.most,
        };
        if fits {
            return Ok(permit);
        }
        let what = self.what;
        let message = match before {
            0 => format!("{all} {what} are being scored, and there is no room for more"),
            _ => format!("{before} {what} of this run are being scored; its share is {share}"),
        };
        Err(ApiError::busy("engine.overloaded", message, self.wait()))
    }

    /// Admits rollouts of a job, which may use half of the share of their run and half of the limit; none where they have to wait. A
    /// group that is larger counts as that half, since it cannot be cut.
    pub(crate) fn enter_job(self: &Arc<Self>, load: &Arc<Load>, rollouts: usize) -> Option<AdmissionPermit> {
        let before = load.rollouts();
        let runs = self.runs.load(Ordering::Acquire) + usize::from(before == 0);
        let half = (self.most * 3 / 8 / runs.max(1)).max(1);
        let rollouts = rollouts.clamp(1, half);
        let fits = before + rollouts <= half && self.admitted() + rollouts <= self.most / 2;
        fits.then(|| self.enter(load, rollouts).ok()).flatten()
    }

    /// After how many seconds there may be room.
    fn wait(&self) -> u64 {
        let pace = *lock(&self.pace);
        ((pace / 1e6).ceil() as u64).clamp(1, 30)
    }
}

impl Drop for AdmissionPermit {
    fn drop(&mut self) {
        self.admission.admitted.fetch_sub(self.rollouts, Ordering::AcqRel);
        if self.load.0.fetch_sub(self.rollouts, Ordering::AcqRel) == self.rollouts {
            self.admission.runs.fetch_sub(1, Ordering::AcqRel);
        }
        let took = self.since.elapsed().as_micros() as f64;
        let mut pace = lock(&self.admission.pace);
        *pace += (took - *pace) * 0.05;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greedy_run_leaves_room_for_another() {
        let admission = Arc::new(Admission::new(100, "rollouts"));
        let (greedy, modest) = (Arc::new(Load::default()), Arc::new(Load::default()));
        let mut permits: Vec<AdmissionPermit> = Vec::new();
        while let Ok(more) = admission.enter(&greedy, 5) {
            permits.push(more);
        }
        assert_eq!(greedy.rollouts(), 75);
        let other = admission.enter(&modest, 20).expect("there is room for whoever is new");
        let error = admission.enter(&modest, 20).expect_err("its share is 37");
        assert_eq!((error.status.as_u16(), error.code), (429, "engine.overloaded"));
        assert!(error.retry_after.is_some());
        // The one that was there first comes down to its share before it is let in again.
        permits.truncate(8);
        assert!(admission.enter(&greedy, 5).is_err(), "40 of 37");
        permits.truncate(6);
        drop(admission.enter(&greedy, 5).expect("30 of 37"));
        drop((other, permits));
        assert_eq!((admission.admitted(), greedy.rollouts(), modest.rollouts()), (0, 0, 0));
        assert_eq!(admission.runs.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn jobs_leave_half_to_requests() {
        let admission = Arc::new(Admission::new(100, "rollouts"));
        let (one, other) = (Arc::new(Load::default()), Arc::new(Load::default()));
        let first = admission.enter_job(&one, 30).expect("there is room");
        assert!(admission.enter_job(&one, 30).is_none(), "60 of 37");
        let request = admission.enter(&one, 30).expect("a request of the same run");
        assert!(admission.enter_job(&other, 10).is_none(), "half of all places are taken");
        drop(request);
        let second = admission.enter_job(&other, 1000).expect("its half is 18");
        assert_eq!((one.rollouts(), other.rollouts()), (30, 18));
        drop((first, second));
        assert_eq!((admission.admitted(), admission.runs.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn empty_requests_keep_the_run_count() {
        let (admission, load) = (Arc::new(Admission::new(100, "rollouts")), Arc::new(Load::default()));
        let enter = |rollouts: usize| admission.enter(&load, rollouts).expect("there is room");
        // Each leaves while the other is permit, in both orders.
        let (empty, some) = (enter(0), enter(5));
        drop(empty);
        drop(some);
        let (some, empty) = (enter(5), enter(0));
        drop(some);
        drop(empty);
        assert_eq!((admission.admitted(), admission.runs.load(Ordering::Relaxed)), (0, 0));
        drop(enter(70));
    }

    #[test]
    fn large_requests_leave_room_for_others() {
        let admission = Arc::new(Admission::new(1000, "rollouts"));
        let load = || Arc::new(Load::default());
        let first = load();
        let permit = [
            admission.enter(&first, 100_000).expect("alone"),
            admission.enter(&load(), 100_000).expect("beside a large one"),
            admission.enter(&load(), 10).expect("beside two"),
        ];
        assert!(admission.enter(&first, 1).is_err(), "it has more than its share");
        drop(permit);
        assert_eq!((admission.admitted(), admission.runs.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn bytes_are_counted_exactly() {
        let admission = Arc::new(Admission::new(1000, "bytes"));
        let loads: Vec<Arc<Load>> = (0..4).map(|_| Arc::new(Load::default())).collect();
        assert_eq!(admission.hold(&loads[0], 751).unwrap_err().status.as_u16(), 413);
        let first = admission.hold(&loads[0], 600).expect("three quarters are its share");
        assert_eq!(admission.hold(&loads[0], 200).unwrap_err().code, "engine.overloaded");
        let second = admission.hold(&loads[1], 400).expect("there is room for whoever is new");
        assert!(admission.hold(&loads[2], 1).is_err(), "but no more than there is");
        drop((first, second));
        assert_eq!(admission.admitted(), 0);
    }
}
