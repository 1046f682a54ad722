//! Benchmark of the join, memory and throughput: rollouts that wait for their groups, and rollouts that are joined and
//! scored by rules.
//!
//!     cargo run --release -p plaudit --example join -- [waiting] [joined] [threads]

#![allow(clippy::print_stdout, reason = "an example prints its figures")]

use plaudit::engine::Engine;
use plaudit::join::{Arrival, Join};
use plaudit::outcome::OutcomeKind;
use plaudit::recipe::Recipe;
use plaudit::rollout::Rollout;
use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The allocator of the command and of the Python package: what one thread makes, another frees.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many members a group has.
const SIZE: usize = 8;

/// Rules, one of which compares the members of a group.
const COMPARES: &str = "components:
  format: { reward: reasoning_format, weight: 0.2 }
  length: { reward: total_length, weight: 0.5, unit: character, max: 8000, band: 2000 }
  brevity: { reward: kimi.length, weight: 0.1, correct: extra }
";

/// The same without comparisons.
const ALONE: &str = "components:
  format: { reward: reasoning_format, weight: 0.2 }
  length: { reward: total_length, weight: 0.5, unit: character, max: 8000, band: 2000 }
";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut count = |usual: usize| arguments.next().map_or(Ok(usual), |text| text.parse());
    let (waiting, joined, threads) = (count(100_000)?, count(200_000)?, count(1)?);
    wait(waiting)?;
    flow("compared in groups", COMPARES, joined, threads)?;
    flow("nothing compared", ALONE, joined, threads)?;
    Ok(())
}

/// A join whose engine has so many threads: one, where what one core does is measured.
fn join(yaml: &str, threads: usize) -> Result<Join, Box<dyn Error>> {
    let plan = Recipe::from_yaml(&format!("{yaml}groups: {{ parallel: {threads} }}\n"))?.plan()?;
    Ok(Join::new(&Arc::new(Engine::new(plan)?)))
}

/// A rollout of about 4 KB.
fn arrival(group: usize, member: usize) -> Arrival {
    let thought = "so it goes on and on, and then some more. ".repeat(92);
    let response = format!("<think>{thought}{group}</think><answer>{member}</answer>");
    let mut rollout = Rollout::new(response).to_prompt(format!("question {group}"));
    rollout.extra.insert("correct".to_owned(), member.is_multiple_of(2).into());
    Arrival { member: Some(member.to_string()), ..Arrival::new(format!("group-{group}"), SIZE, rollout) }
}

/// All but one of every group wait; then the last ones come.
fn wait(waiting: usize) -> Result<(), Box<dyn Error>> {
    let (join, (send, receive)) = (join(COMPARES, 1)?, channel());
    let before = resident()?;
    let groups = waiting / (SIZE - 1);
    let hand_in = |group: usize, member: usize| {
        let send = send.clone();
        join.hand_in(arrival(group, member), move |joined| {
            let _ = send.send((joined.group_size, joined.row().total.kind()));
        });
    };
    for member in 0..SIZE - 1 {
        (0..groups).for_each(|group| hand_in(group, member));
    }
    let status = join.status();
    let held = resident()?;
    println!(
        "waiting  {} rollouts of {} bytes in {} groups: {} MB resident, {} MB before",
        status.waiting,
        arrival(0, 0).rollout.response.len(),
        status.open,
        held >> 20,
        before >> 20,
    );
    (0..groups).for_each(|group| hand_in(group, SIZE - 1));
    let mut told = 0;
    while told < groups * SIZE {
        let (size, kind) = receive.recv_timeout(Duration::from_secs(60))?;
        if size != SIZE || kind != OutcomeKind::Scored {
            return Err(format!("a rollout of a group of {size} is {kind:?}").into());
        }
        told += 1;
    }
    println!(
        "         {told} callers told, {} wait, {} MB resident at the end",
        join.status().waiting,
        resident()? >> 20
    );
    Ok(())
}

/// Groups come one after the other, as fast as they can, from so many threads at once.
fn flow(name: &str, yaml: &str, joined: usize, threads: usize) -> Result<(), Box<dyn Error>> {
    let (join, (send, receive)) = (join(yaml, threads)?, channel());
    let shares = (0..threads).map(|thread| {
        let groups = (0..joined / SIZE).filter(move |group| group % threads == thread);
        groups.flat_map(|group| (0..SIZE).map(move |member| arrival(group, member))).collect()
    });
    let shares: Vec<Vec<Arrival>> = shares.collect();
    let joined = shares.iter().map(Vec::len).sum::<usize>();
    let (started, busy) = (Instant::now(), processor()?);
    std::thread::scope(|scope| {
        for share in shares {
            let (join, send) = (&join, send.clone());
            scope.spawn(move || {
                for arrival in share {
                    let send = send.clone();
                    join.hand_in(arrival, move |joined| {
                        let _ = send.send(joined.row().total.kind());
                    });
                }
            });
        }
    });
    for _ in 0..joined {
        receive.recv_timeout(Duration::from_secs(60))?;
    }
    let (took, busy) = (started.elapsed().as_secs_f64(), processor()? - busy);
    println!(
        "{name}: {joined} rollouts in {took:.2} s = {:.0} a second; {busy:.2} s of processor time = {:.0} a second of one core",
        joined as f64 / took,
        joined as f64 / busy,
    );
    Ok(())
}

/// The memory of this process that is in use.
fn resident() -> Result<usize, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: usize = text.split(' ').nth(1).ok_or("no resident size")?.parse()?;
    Ok(pages * 4096)
}

/// The processor time of this process, in seconds.
fn processor() -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = text.rsplit(") ").next().ok_or("no statistics")?.split(' ').collect();
    // Ticks of a hundredth of a second in user mode and in the kernel.
    Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) / 100.0)
}
