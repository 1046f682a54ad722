//! Thread pool of the engine (rayon), started with the first work that needs it.

use super::lock;
use futures_util::future::BoxFuture;
use rayon::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

/// The threads that groups are scored on. They start with the first batch that has more than one group.
#[derive(Debug)]
pub struct Pool {
    threads: usize,
    pool: OnceLock<Option<rayon::ThreadPool>>,
}

/// How many parts a thread has on average, so that one long part does not leave the other threads idle.
const PARTS: usize = 8;
/// How long a waiting thread of the pool sleeps before it looks for other jobs again.
const IDLE: Duration = Duration::from_millis(1);

impl Pool {
    /// A pool of so many threads, or of one a core.
    pub fn new(threads: Option<usize>) -> Self {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        Self { threads: threads.unwrap_or_else(cores).max(1), pool: OnceLock::new() }
    }

    /// How many threads it has, or will have.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// What `work` makes of each item, in the order of the items, whatever order they were worked on.
    pub fn map<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Sync + Send) -> Vec<R> {
        if self.threads == 1 || items.len() < 2 {
            return items.iter().map(work).collect();
        }
        match self.pool.get_or_init(|| self.start()) {
            Some(pool) => pool.install(|| items.par_iter().map(work).collect()),
            None => items.iter().map(work).collect(),
        }
    }

    /// Has a job done on one of the threads, first come, first served. A job that panics is lost, and nothing else is.
    pub fn spawn(&self, job: impl FnOnce() + Send + 'static) {
        let job = move || drop(catch_unwind(AssertUnwindSafe(job)));
        match self.pool.get_or_init(|| self.start()) {
            Some(pool) => pool.spawn_fifo(job),
            None => job(),
        }
    }

    /// Has a future polled on the threads. One that panics is dropped.
    pub(crate) fn run(self: &Arc<Self>, future: impl Future<Output = ()> + Send + 'static) {
        let task = PoolTask { pool: Arc::clone(self), future: Mutex::new(Some(Box::pin(future))) };
        let task = Arc::new(task);
        self.spawn(move || task.poll());
    }

    /// As [`Pool::map`], for so many items by their places, but without a thread that waits: `then` gets what became of
    /// them, on one of the threads; nothing for an item over which `work` panicked.
    pub(crate) fn map_then<R: Send + 'static>(
        &self,
        items: usize,
        work: impl Fn(usize) -> R + Send + Sync + 'static,
        then: impl FnOnce(Vec<Option<R>>) + Send + 'static,
    ) {
        let one = move |at: usize| catch_unwind(AssertUnwindSafe(|| work(at))).ok();
        if items < 2 {
            let only = move || then((0..items).map(one).collect());
            return if self.is_own() { only() } else { self.spawn(only) };
        }
        let part = items.div_ceil(self.threads * PARTS);
        let parts = items.div_ceil(part);
        let done = Mutex::new(((0..items).map(|_| None).collect::<Vec<Option<R>>>(), Some(then)));
        let shared = Arc::new((one, AtomicUsize::new(parts), done));
        for number in 0..parts {
            let shared = Arc::clone(&shared);
            self.spawn(move || {
                let (one, left, done) = &*shared;
                let from = number * part;
                let made: Vec<Option<R>> = (from..(from + part).min(items)).map(one).collect();
                let mut all = lock(done);
                all.0[from..from + made.len()].iter_mut().zip(made).for_each(|(place, made)| *place = made);
                if left.fetch_sub(1, Ordering::AcqRel) > 1 {
                    return;
                }
                let (made, then) = (std::mem::take(&mut all.0), all.1.take());
                drop(all);
                if let Some(then) = then {
                    then(made);
                }
            });
        }
    }

    /// Waits for the result of jobs; none where its sender was dropped. A thread of the pool does other jobs meanwhile, so
    /// that it does not wait for a job that nobody else can do.
    pub(crate) fn wait<T>(&self, result: &mpsc::Receiver<T>) -> Option<T> {
        if !self.is_own() {
            return result.recv().ok();
        }
        loop {
            match result.try_recv() {
                Ok(result) => return Some(result),
                Err(mpsc::TryRecvError::Disconnected) => return None,
                Err(mpsc::TryRecvError::Empty) => {}
            }
            if rayon::yield_now() != Some(rayon::Yield::Executed)
                && let Ok(result) = result.recv_timeout(IDLE)
            {
                return Some(result);
            }
        }
    }

    /// Whether the caller runs on one of the threads.
    fn is_own(&self) -> bool {
        self.pool.get().and_then(Option::as_ref).is_some_and(|pool| pool.current_thread_index().is_some())
    }

    /// Threads, or none where the system gives none; the work is then done on the caller's.
    fn start(&self) -> Option<rayon::ThreadPool> {
        let name = |at: usize| format!("plaudit-{at}");
        rayon::ThreadPoolBuilder::new().num_threads(self.threads).thread_name(name).build().ok()
    }
}

/// A future that is polled on a pool.
struct PoolTask {
    pool: Arc<Pool>,
    /// None while it is polled, and once it is done.
    future: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl PoolTask {
    fn poll(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        // Held while the future is polled, so that it is polled again where it is woken meanwhile.
        let mut held = lock(&self.future);
        let Some(mut future) = held.take() else { return };
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            *held = Some(future);
        }
    }
}

impl Wake for PoolTask {
    /// A thread of the pool goes on with the future itself: what it has just done is what the future waited for, and others
    /// may have been put in the queue since.
    fn wake(self: Arc<Self>) {
        if self.pool.is_own() {
            return self.poll();
        }
        let pool = Arc::clone(&self.pool);
        pool.spawn(move || self.poll());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_a_panic_is_a_gap() {
        for (threads, items) in [(1, 0), (1, 1), (1, 9), (2, 2), (2, 1000), (8, 37)] {
            let pool = Pool::new(Some(threads));
            let (send, receive) = mpsc::channel();
            let work = |at: usize| if at % 5 == 4 { panic!("at {at}") } else { at };
            pool.map_then(items, work, move |made| send.send(made).unwrap());
            let wanted: Vec<_> = (0..items).map(|at| (at % 5 != 4).then_some(at)).collect();
            assert_eq!(receive.recv().unwrap(), wanted, "{threads} threads");
        }
    }

    #[test]
    fn a_panicking_job_harms_no_other() {
        let pool = Pool::new(Some(1));
        let (send, receive) = mpsc::channel();
        pool.spawn(|| panic!("a job"));
        pool.spawn(move || send.send("the next").unwrap());
        assert_eq!(receive.recv().unwrap(), "the next");
    }

    #[test]
    fn a_future_goes_on_where_it_is_woken() {
        let pool = Arc::new(Pool::new(Some(2)));
        let (send, receive) = mpsc::channel();
        let (wake, woken) = tokio::sync::oneshot::channel();
        let (wake_again, woken_again) = tokio::sync::oneshot::channel();
        let done = send.clone();
        pool.run(async move {
            let outside: u32 = woken.await.unwrap();
            let inside: u32 = woken_again.await.unwrap();
            done.send(outside + inside).unwrap();
        });
        pool.run(async { panic!("a future") });
        wake.send(1).unwrap();
        pool.spawn(move || wake_again.send(2).unwrap());
        assert_eq!(receive.recv().unwrap(), 3);
        let (_wake, never) = tokio::sync::oneshot::channel::<()>();
        pool.run(async move {
            let _send = send;
            assert!(never.await.is_ok(), "a future that panics is dropped with all that it holds");
        });
        drop(_wake);
        assert!(receive.recv().is_err());
    }

    #[test]
    fn a_waiting_pool_thread_does_other_jobs() {
        let pool = Arc::new(Pool::new(Some(1)));
        let (send, receive) = mpsc::channel();
        let inner = Arc::clone(&pool);
        pool.spawn(move || {
            let (inner_send, inner_receive) = mpsc::channel();
            inner.spawn(move || inner_send.send("done").unwrap());
            send.send(inner.wait(&inner_receive)).unwrap();
        });
        assert_eq!(receive.recv().unwrap(), Some("done"));
    }
}
