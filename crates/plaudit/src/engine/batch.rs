//! A batch on its way through the engine: what was handed in, and how the steps of the path are carried out.
//!
//! A caller that waits lends its rollouts and its thread, and every step is done when it returns. A submitted batch owns its
//! rollouts, has no thread that waits, and goes on wherever a step ends. The path is the same.

use super::prescore::Prescored;
use super::{Engine, ScoreOptions};
use crate::judge::runner::RunOptions;
use crate::rollout::{AsRollout, Rollout};
use futures_util::future::BoxFuture;
use std::future::ready;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use tokio::sync::oneshot;

/// Takes the result of a step that is done elsewhere.
pub(super) type OnDone<T> = Box<dyn FnOnce(T) + Send>;

/// A batch as the steps of the path see it.
pub(super) trait Batch: Clone + Send + Sync {
    /// A rollout, as the caller holds it.
    type Rollout: AsRollout;

    fn engine(&self) -> &Engine;

    fn rollouts(&self) -> &[Self::Rollout];

    /// What is known of the rollouts already, side by side with them; or nothing.
    fn prescored(&self) -> &[Prescored];

    fn options(&self) -> &ScoreOptions;

    /// How judges are asked.
    fn calls(&self) -> &RunOptions;

    /// What `work` makes of so many items, on the pool; none of an item over which it panicked.
    fn map<T: Send + 'static>(
        &self,
        items: usize,
        work: impl Fn(&Self, usize) -> T + Send + Sync + 'static,
    ) -> BoxFuture<'static, Vec<Option<T>>>;

    /// What `start` has done elsewhere, such as at a judge; none where its reply was dropped.
    fn receive<T: Send + 'static>(&self, start: impl FnOnce(OnDone<T>)) -> BoxFuture<'static, Option<T>>;

    /// What `work` makes, which may take long and must not hold up other batches; none where no thread can be had for it.
    fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> BoxFuture<'static, Option<T>>;
}

/// A batch of a caller that waits.
#[derive(Clone, Copy)]
pub(super) struct LentBatch<'b> {
    pub(super) engine: &'b Engine,
    pub(super) rollouts: &'b [Rollout<'b>],
    pub(super) options: &'b ScoreOptions,
    pub(super) calls: &'b RunOptions,
}

impl<'b> Batch for LentBatch<'b> {
    type Rollout = Rollout<'b>;

    fn engine(&self) -> &Engine {
        self.engine
    }

    fn rollouts(&self) -> &[Rollout<'b>] {
        self.rollouts
    }

    fn prescored(&self) -> &[Prescored] {
        &[]
    }

    fn options(&self) -> &ScoreOptions {
        self.options
    }

    fn calls(&self) -> &RunOptions {
        self.calls
    }

    fn map<T: Send + 'static>(
        &self,
        items: usize,
        work: impl Fn(&Self, usize) -> T + Send + Sync + 'static,
    ) -> BoxFuture<'static, Vec<Option<T>>> {
        let places: Vec<usize> = (0..items).collect();
        let one = |at: &usize| catch_unwind(AssertUnwindSafe(|| work(self, *at))).ok();
        Box::pin(ready(self.engine.pool.map(&places, one)))
    }

    fn receive<T: Send + 'static>(&self, start: impl FnOnce(OnDone<T>)) -> BoxFuture<'static, Option<T>> {
        let (send, receive) = mpsc::sync_channel(1);
        start(Box::new(move |got| drop(send.send(got))));
        Box::pin(ready(self.engine.pool.wait(&receive)))
    }

    fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> BoxFuture<'static, Option<T>> {
        Box::pin(ready(Some(work(self))))
    }
}

/// A batch that nobody waits for.
pub(super) struct SubmittedBatch<R> {
    pub(super) engine: Arc<Engine>,
    pub(super) rollouts: Arc<Vec<R>>,
    pub(super) prescored: Vec<Prescored>,
    pub(super) options: ScoreOptions,
    pub(super) calls: RunOptions,
}

impl<R: AsRollout + Send + 'static> Batch for Arc<SubmittedBatch<R>> {
    type Rollout = R;

    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn rollouts(&self) -> &[R] {
        &self.rollouts
    }

    fn prescored(&self) -> &[Prescored] {
        &self.prescored
    }

    fn options(&self) -> &ScoreOptions {
        &self.options
    }

    fn calls(&self) -> &RunOptions {
        &self.calls
    }

    fn map<T: Send + 'static>(
        &self,
        items: usize,
        work: impl Fn(&Self, usize) -> T + Send + Sync + 'static,
    ) -> BoxFuture<'static, Vec<Option<T>>> {
        let (batch, (send, receive)) = (Arc::clone(self), oneshot::channel());
        self.engine.pool.map_then(items, move |at| work(&batch, at), move |made| drop(send.send(made)));
        Box::pin(async move { receive.await.unwrap_or_else(|_| (0..items).map(|_| None).collect()) })
    }

    fn receive<T: Send + 'static>(&self, start: impl FnOnce(OnDone<T>)) -> BoxFuture<'static, Option<T>> {
        let (send, receive) = oneshot::channel();
        start(Box::new(move |got| drop(send.send(got))));
        Box::pin(async move { receive.await.ok() })
    }

    fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> BoxFuture<'static, Option<T>> {
        let (batch, (send, receive)) = (Arc::clone(self), oneshot::channel());
        let thread = std::thread::Builder::new().name("plaudit-custom".to_owned());
        // Where the system gives no thread, the sender is dropped, which says so.
        let _ = thread.spawn(move || drop(send.send(work(&batch))));
        Box::pin(async move { receive.await.ok() })
    }
}
