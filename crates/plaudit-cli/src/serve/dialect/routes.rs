//! Where do the clients of other trainers come in? `POST /openrlhf/RECIPE[/RUN]`, `/slime/RECIPE[/RUN]` and
//! `/nemo-gym/RECIPE[/RUN]/verify`. Each sample is handed to the join, under a group of its own making where it names none.

use super::cohort::{End, Place, Prompt};
use super::options::Options;
use super::{Sample, Told, nemo_gym, openrlhf, slime};
use crate::serve::house::House;
use crate::serve::join::{self, Handed, Places};
use crate::serve::reply::{Refusal, Reply, json};
use crate::serve::run::Run;
use crate::serve::score::LARGE;
use crate::serve::tokens::Holder;
use hyper::StatusCode;
use plaudit::join::Joined;
use plaudit::reason::Code;
use std::borrow::Cow;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

/// A sample's place, which is given back however its request ends.
struct Seat<'r> {
    run: &'r Run,
    place: Option<Place>,
    end: End,
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.run.cohorts().leave(place, self.end, Instant::now());
        }
    }
}

/// What a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    OpenRlhf,
    Slime,
    Verify,
    Seed,
    Aggregate,
}

/// What the path says.
#[derive(Debug, Clone, Copy)]
struct Address<'p> {
    recipe: &'p str,
    run: Option<&'p str>,
}

/// Answers a request.
pub(crate) async fn answer(
    house: &Arc<House>,
    holder: &Holder,
    kind: Kind,
    (names, query): (&[Cow<'_, str>], &str),
    body: bytes::Bytes,
) -> Result<Reply, Refusal> {
    let Some(recipe) = names.first() else { return Err(Refusal::broken("a route without a recipe")) };
    let address = Address { recipe, run: names.get(1).map(|run| &**run) };
    let said = match kind {
        Kind::OpenRlhf => {
            let options = Options::read(query, &openrlhf::SETTINGS)?;
            let (options, samples) = read(body, options, openrlhf::read).await?;
            let asked = samples.into_iter().map(|sample| hand_in(house, holder, address, &options, sample));
            let joined: Vec<Joined> = all(asked).await?;
            let told: Vec<Told<'_>> = joined.iter().map(Told::joined).collect();
            openrlhf::answer(&told, &options)?
        }
        Kind::Slime => {
            let options = Options::read(query, &slime::SETTINGS)?;
            let (options, sample) = read(body, options, |body, _| slime::read(body)).await?;
            let joined = hand_in(house, holder, address, &options, sample).await?;
            slime::answer(&Told::joined(&joined), &options)?
        }
        Kind::Verify => {
            let options = Options::read(query, &nemo_gym::SETTINGS)?;
            let (options, (request, sample)) = read(body, options, nemo_gym::read).await?;
            let joined = hand_in(house, holder, address, &options, sample).await?;
            nemo_gym::answer(request, &Told::joined(&joined), &options)?
        }
        Kind::Seed => {
            house.recipes.chosen(Some(address.recipe))?;
            nemo_gym::seed()
        }
        Kind::Aggregate => {
            read(body, Options::default(), |body, _| nemo_gym::aggregate::aggregate(body)).await?.1
        }
    };
    Ok(json(StatusCode::OK, &said))
}

/// Reads a body as a dialect says; a large one beside the threads that answer.
async fn read<T: Send + 'static>(
    body: bytes::Bytes,
    options: Options,
    read: impl FnOnce(&[u8], &Options) -> Result<T, Refusal> + Send + 'static,
) -> Result<(Options, T), Refusal> {
    let is_large = body.len() > LARGE;
    let work = move || read(&body, &options).map(|read| (options, read));
    match is_large {
        false => work(),
        true => tokio::task::spawn_blocking(work)
            .await
            .map_err(|_| Refusal::broken("the body could not be read"))?,
    }
}

/// Hands one sample in, and waits for what is said of it.
async fn hand_in(
    house: &Arc<House>,
    holder: &Holder,
    address: Address<'_>,
    options: &Options,
    sample: Sample,
) -> Result<Joined, Refusal> {
    let Sample { rollout, key, member } = sample;
    let run = house.run(holder.entry.owner(), address.run, Some(address.recipe)).await?;
    let compares = run.engine.plan().compares_groups();
    let size = match options.size {
        None if compares => {
            let message =
                "the recipe compares the samples of a prompt: say in the address how many there are, ?size=8";
            return Err(Refusal::bad("input.group_size", message));
        }
        size => size.unwrap_or(1),
    };
    if compares && size == 1 && rollout.reference.is_none() {
        let message =
            "the recipe compares the samples of a prompt, and one has none to be compared with: ?size=8";
        return Err(Refusal::bad("input.group_size", message));
    }
    // Before anything of it is kept in mind.
    join::check(member.as_deref(), size)?;
    let places = Places::take(house, holder, &run, &rollout)?;
    let prompt = Prompt { key: &key, size, compares, step: options.step.unwrap_or(0) };
    let place = run.cohorts().arrive(&prompt, (member.as_deref(), &rollout.response), Instant::now());
    let handed = Handed {
        // Without a step, all meet in one place, however long it takes.
        step: options.step.map(|_| place.step),
        timeout: None,
        validate: options.validate,
        group: place.group(),
        member: Some(place.member()),
        size,
        rollout,
    };
    let (told, meant) = (Arc::downgrade(&run), place.clone());
    let answered = move |joined: &Joined| {
        // Whoever is not let in, or has lost its place, has been told nothing of its group.
        let code = joined.row().total.cause().map(|cause| cause.reason.code);
        if !matches!(code, Some(Code::Overloaded | Code::GroupClosed))
            && let Some(run) = told.upgrade()
        {
            run.cohorts().answered(&meant);
        }
    };
    let mut seat = Seat { run: &run, place: Some(place), end: End::Lost };
    let joined = join::hand_in(house, &run, handed, places, answered).await?;
    seat.end = if joined.row().total.value().is_some() { End::Scored } else { End::Failed };
    Ok(joined)
}

/// What all of them give, in their order, or what the first says that fails. They are waited for together, since each may wait for
/// the others.
async fn all<T, E>(futures: impl Iterator<Item = impl Future<Output = Result<T, E>>>) -> Result<Vec<T>, E> {
    let mut waiting: Vec<_> = futures.map(Box::pin).collect();
    let mut done: Vec<Option<T>> = waiting.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, done) in waiting.iter_mut().zip(&mut done) {
            if done.is_none()
                && let Poll::Ready(output) = future.as_mut().poll(context)
            {
                match output {
                    Ok(output) => *done = Some(output),
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await?;
    Ok(done.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test]
    async fn each_may_wait_for_the_others() {
        let come = Cell::new(0);
        let one = |at: u32| {
            let come = &come;
            async move {
                come.set(come.get() + 1);
                while come.get() < 3 {
                    tokio::task::yield_now().await;
                }
                Ok::<_, u32>(at)
            }
        };
        assert_eq!(all((0..3).map(one)).await, Ok(vec![0, 1, 2]));
        assert_eq!(all((0..0).map(one)).await, Ok(vec![]));
        // Nobody waits for others where one has failed.
        let two = |at: u32| async move {
            if at == 1 { Err(at) } else { std::future::pending::<Result<(), u32>>().await }
        };
        assert_eq!(all((0..3).map(two)).await, Err(1));
    }
}
