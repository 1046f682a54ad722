//! The join with real callers: threads, a stopped clock, judges over the network, and many waiting callers.

use crate::engine::plan;
use crate::mock_judge::Mock;
use crate::submit::{OVERLAP, asked, pointwise, recipes, rollouts};
use crate::timing::until;
use plaudit::engine::Engine;
use plaudit::exec::Clock;
use plaudit::join::{Arrival, Join, Joined, Policy};
use plaudit::outcome::OutcomeKind;
use plaudit::reason::Code;
use plaudit::rollout::Rollout;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
struct Still(AtomicU64);

impl Clock for Still {
    fn now(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst))
    }
}

fn stopped(yaml: &str) -> (Arc<Still>, Join) {
    let clock = Arc::new(Still::default());
    let engine = Engine::new(plan(yaml)).unwrap().with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
    (clock, Join::new(&Arc::new(engine)))
}

fn arrival(group: &str, size: usize, text: &str) -> Arrival {
    let rollout = Rollout::new(text.to_owned()).to_prompt("p").with_reference("one two three");
    let mut arrival = Arrival::new(group, size, rollout);
    arrival.rollout.extra.insert("correct".to_owned(), true.into());
    arrival
}

fn hand_in(join: &Join, arrival: Arrival) -> Receiver<Joined> {
    let (send, receive) = channel();
    join.hand_in(arrival, move |joined| send.send(joined).unwrap());
    receive
}

fn answer(receive: &Receiver<Joined>) -> Joined {
    receive.recv_timeout(Duration::from_secs(60)).expect("an answer")
}

fn code(joined: &Joined) -> Option<Code> {
    joined.row().total.cause().map(|cause| cause.reason.code)
}

/// A judge that always prefers the response that it is shown first, and counts what it is asked.
struct Partisan {
    url: String,
    asked: Arc<AtomicUsize>,
}

impl Partisan {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let count = Arc::clone(&count);
                std::thread::spawn(move || Self::serve(&stream.unwrap(), &count));
            }
        });
        Self { url, asked }
    }

    /// Answers what comes over one connection, until it is closed.
    fn serve(stream: &TcpStream, asked: &AtomicUsize) -> Option<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let mut length = 0;
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).ok()? == 0 {
                    return None;
                }
                if let Some(said) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = said.trim().parse().ok()?;
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            let body: Value = serde_json::from_slice(&body).ok()?;
            let verdict =
                &body["response_format"]["json_schema"]["schema"]["properties"]["verdict"]["enum"][0];
            asked.fetch_add(usize::from(verdict.is_string()), Ordering::SeqCst);
            let content = json!({ "reason": "", "verdict": verdict }).to_string();
            let message = json!({ "role": "assistant", "content": content });
            let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
            let reply = json!({ "id": "1", "object": "chat.completion", "model": "m", "choices": [choice] })
                .to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                reply.len()
            );
            let mut stream = stream;
            stream.write_all((head + &reply).as_bytes()).ok()?;
        }
    }
}

/// A late one buys only the comparisons that nobody has bought.
#[test]
fn a_late_one_buys_only_what_is_new() {
    let judge = Partisan::start();
    let yaml = format!(
        "components: {{ principle: {{ reward: principle, mode: pairwise, judge: main, aggregate: winrate }} }}
judges: {{ main: {{ base_url: \"{}\", model: m, answer_format: json, hedge_share: 0 }} }}\n",
        judge.url
    );
    let texts = ["one", "two", "three", "four"];
    let (_, join) = stopped(&yaml);
    let early: Vec<_> = texts[..3].iter().map(|text| hand_in(&join, arrival("g", 3, text))).collect();
    assert!(early.iter().map(answer).all(|joined| joined.row().total.kind() == OutcomeKind::Scored));
    assert_eq!(judge.asked.load(Ordering::SeqCst), 3);
    let late = answer(&hand_in(&join, arrival("g", 3, texts[3])));
    assert_eq!((judge.asked.load(Ordering::SeqCst), late.group_size, late.late), (6, 4, true));
    assert_eq!(join.statistics().components[0].1.judging.as_ref().unwrap().0.verdicts, 3, "counted once");
    let fresh = answer(&hand_in(&join, arrival("h", 1, texts[3])));
    assert_eq!((code(&fresh), judge.asked.load(Ordering::SeqCst)), (Some(Code::GroupTooSmall), 6));
}

/// Many threads, short times, leaves, duplicates and a join that closes under them: everybody is told exactly once.
#[test]
fn nobody_is_forgotten_in_a_crowd() {
    let engine = Arc::new(Engine::new(plan(OVERLAP)).unwrap());
    for round in 0..6u64 {
        let policy = Policy {
            timeout: Duration::from_millis(1 + round),
            quiet: round.is_multiple_of(2).then_some(Duration::from_millis(1)),
            remember: 3 + round as usize,
            most_waiting: if round == 5 { 20 } else { 10_000 },
            ..Policy::of(engine.plan())
        };
        let join = Join::with(&engine, policy);
        let told: Vec<AtomicUsize> = (0..8 * 300).map(|_| AtomicUsize::new(0)).collect();
        let told = Arc::new(told);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (join, told) = (&join, &told);
                scope.spawn(move || {
                    for at in 0..300 {
                        let (caller, told) = (thread * 300 + at, Arc::clone(told));
                        let mut arrival =
                            arrival(&format!("g{}", at / 4), 8, &format!("text {}", caller % 50));
                        arrival.member = (at % 3 == 0).then(|| format!("m{}", thread / 2));
                        join.hand_in(arrival, move |_| _ = told[caller].fetch_add(1, Ordering::SeqCst));
                        if at % 7 == thread {
                            join.leave(&format!("g{}", at / 4), None);
                        }
                        if round == 4 && caller == 1200 {
                            join.close();
                        }
                    }
                });
            }
        });
        until("everybody is told", || told.iter().all(|times| times.load(Ordering::SeqCst) > 0));
        drop(join);
        assert!(told.iter().all(|times| times.load(Ordering::SeqCst) == 1), "round {round}");
    }
}

/// Every rollout of every recipe, handed in one by one and from many threads, gets what it gets in a batch.
#[test]
fn answers_are_those_of_the_batch() {
    let mock = Mock::start(&[]);
    for recipe in recipes(&mock) {
        let engine = || Arc::new(Engine::new(recipe.plan().unwrap()).unwrap());
        let batch = rollouts(12, 4);
        let wanted = engine().score(&batch).unwrap();
        let join = Join::new(&engine());
        let told: Mutex<Vec<Option<Joined>>> = Mutex::new(vec![None; batch.len()]);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (join, batch, told) = (&join, &batch, &told);
                scope.spawn(move || {
                    // Each thread has one member of every group, and they meet in no particular order.
                    let own = (0..12).map(|group| group * 4 + (group + thread) % 4);
                    let waiting: Vec<_> = own
                        .map(|at| {
                            let group = batch[at].group.clone().unwrap().into_owned();
                            (at, hand_in(join, Arrival::new(group, 4, batch[at].clone())))
                        })
                        .collect();
                    for (at, receive) in waiting {
                        told.lock().unwrap()[at] = Some(answer(&receive));
                    }
                });
            }
        });
        for (at, joined) in told.into_inner().unwrap().into_iter().enumerate() {
            let joined = joined.unwrap();
            assert_eq!(joined.row().total, wanted.rows[at].total, "{at}");
            assert_eq!(joined.row().outcomes, wanted.rows[at].outcomes, "{at}");
        }
        let (ours, theirs) = (join.statistics(), &wanted.statistics);
        assert_eq!((ours.rollouts, &ours.outcomes), (theirs.rollouts, &theirs.outcomes));
        assert_eq!((ours.groups.count, &ours.groups.size), (12, &theirs.groups.size));
        assert_eq!(ours.groups.std.moments.count, theirs.groups.std.moments.count);
        for ((_, ours), (_, theirs)) in ours.components.iter().zip(&theirs.components) {
            assert_eq!(
                (&ours.outcomes, &ours.judging.is_some()),
                (&theirs.outcomes, &theirs.judging.is_some())
            );
            if let (Some(ours), Some(theirs)) = (&ours.judging, &theirs.judging) {
                assert_eq!(ours.0.verdicts, theirs.0.verdicts);
            }
        }
    }
}

#[test]
fn groups_close_by_the_clock_of_the_engine() {
    let (clock, join) = stopped(&format!("{OVERLAP}groups: {{ timeout: 10s, quiet: 4s }}\n"));
    let one = hand_in(&join, arrival("g", 3, "one"));
    let other = hand_in(&join, arrival("h", 9, "one"));
    clock.0.store(3_000, Ordering::SeqCst);
    let two = hand_in(&join, arrival("g", 3, "one two"));
    clock.0.store(6_999, Ordering::SeqCst);
    join.wake_clock();
    assert!(one.try_recv().is_err() && join.status().open == 2);
    clock.0.store(7_000, Ordering::SeqCst);
    join.wake_clock();
    let (one, two) = (answer(&one), answer(&two));
    assert_eq!((one.waited, two.waited), (Duration::from_secs(7), Duration::from_secs(4)));
    assert!(one.partial && two.partial && one.group_size == 2);
    assert_eq!(one.siblings_mean(), two.row().total.value());
    clock.0.store(10_000, Ordering::SeqCst);
    join.wake_clock();
    assert_eq!(code(&answer(&other)), Some(Code::GroupTooSmall));
}

#[test]
fn time_that_runs_by_itself_closes_groups_too() {
    let engine = Arc::new(Engine::new(plan(&format!("{OVERLAP}groups: {{ timeout: 50ms }}\n"))).unwrap());
    let join = Join::new(&engine);
    let first = hand_in(&join, arrival("g", 2, "one"));
    let mut hasty = arrival("h", 2, "one");
    hasty.timeout = Some(Duration::from_millis(1));
    let second = hand_in(&join, hasty);
    assert!(answer(&second).waited >= Duration::from_millis(1));
    assert!(answer(&first).waited >= Duration::from_millis(50));
}

#[test]
fn a_flush_closes_and_a_close_refuses() {
    let (_, join) = stopped(OVERLAP);
    let early = [hand_in(&join, arrival("g", 3, "one")), hand_in(&join, arrival("g", 3, "two"))];
    join.flush();
    assert!(early.iter().map(answer).all(|joined| joined.partial && joined.row().total.value().is_some()));
    let waiting = hand_in(&join, arrival("h", 2, "one"));
    join.close();
    assert_eq!(code(&answer(&waiting)), Some(Code::GroupClosed));
    assert_eq!(code(&answer(&hand_in(&join, arrival("h", 2, "one")))), Some(Code::GroupClosed));
}

/// Who hands something in while it is being told is no danger, and who panics harms nobody else.
#[test]
fn callers_may_come_back_and_may_panic() {
    let (_, join) = stopped(OVERLAP);
    let join = Arc::new(join);
    let (send, receive) = channel();
    let again = Arc::clone(&join);
    join.hand_in(arrival("g", 2, "one"), move |_| {
        again.hand_in(arrival("h", 1, "two"), move |joined| send.send(joined).unwrap());
        panic!("a caller");
    });
    let sibling = hand_in(&join, arrival("g", 2, "three"));
    assert_eq!(answer(&sibling).row().total.kind(), OutcomeKind::Scored);
    assert_eq!(code(&answer(&receive)), Some(Code::GroupTooSmall));
    // A caller that has gone away is still a member.
    drop(hand_in(&join, arrival("i", 2, "one")));
    assert_eq!(answer(&hand_in(&join, arrival("i", 2, "two"))).group_size, 2);
}

/// A clock that breaks in the middle of the work.
#[derive(Debug)]
struct Brittle(AtomicUsize);

impl Clock for Brittle {
    fn now(&self) -> Duration {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            look if look > 5
                && std::thread::current().name().is_none_or(|name| name.starts_with("plaudit-")) =>
            {
                panic!("no time")
            }
            _ => Duration::ZERO,
        }
    }
}

#[test]
fn a_panic_in_the_engine_is_an_answer() {
    let engine = Engine::new(plan(OVERLAP)).unwrap().with_clock(Arc::new(Brittle(AtomicUsize::new(6))));
    let join = Join::new(&Arc::new(engine));
    let waiting: Vec<_> =
        (0..6).map(|at| hand_in(&join, arrival(&format!("g{}", at / 2), 2, "one"))).collect();
    for receive in &waiting {
        assert_eq!(code(&answer(receive)), Some(Code::Panic));
    }
    assert_eq!(join.status().waiting, 0);
}

#[test]
fn a_join_that_is_dropped_lets_go_of_its_judges() {
    let mock = Mock::start(&[]);
    let join = Join::new(&Arc::new(Engine::new(plan(&pointwise(&mock.url("hang")))).unwrap()));
    let waiting = hand_in(&join, arrival("g", 1, "one"));
    asked(&mock, 1);
    drop(join);
    assert_eq!(code(&answer(&waiting)), Some(Code::Stopped));
    until("the socket is closed", || mock.sockets() == 0);
}

/// A judge that scores one response at a time is asked while the group is still waiting, and is not asked again.
#[test]
fn judges_of_one_response_are_asked_at_once() {
    let mock = Mock::start(&[]);
    // A component that compares makes the group wait.
    let brevity = "  brevity: { reward: kimi.length, weight: 0.1, correct: extra }\njudges:";
    let yaml = pointwise(&mock.url("ok")).replace("judges:", brevity);
    let (_, join) = stopped(&yaml);
    let batch = rollouts(1, 4);
    let hand = |at: usize| hand_in(&join, Arrival::new("g", 4, batch[at].clone()));
    let waiting: Vec<_> = (0..3).map(hand).collect();
    asked(&mock, 3);
    assert_eq!(join.status().waiting, 3);
    let last = hand(3);
    for receive in waiting.iter().chain([&last]) {
        assert_eq!(answer(receive).row().total.kind(), OutcomeKind::Scored);
    }
    assert_eq!(mock.ledger().len(), 4);
}

#[test]
fn steps_are_cut_where_the_trainer_says() {
    let (_, join) = stopped(OVERLAP);
    let mut totals = Vec::new();
    for step in 1..=3u64 {
        let waiting: Vec<_> = (0..2)
            .map(|at| hand_in(&join, arrival(&format!("g{step}"), 2, ["one", "one two"][at])))
            .collect();
        totals = waiting.iter().map(|receive| answer(receive).row().total.value().unwrap()).collect();
        let ended = join.take_step(step);
        assert_eq!((ended.step, ended.statistics.rollouts, ended.statistics.groups.count), (step, 2, 1));
    }
    let late = answer(&hand_in(&join, arrival("g3", 2, "one two three")));
    assert!(late.late && late.group_size == 3);
    let last = join.last_step().unwrap();
    let mean = (totals[0] + totals[1]) / 2.0;
    assert_eq!(last.mean_std().map(|(mean, _)| mean), Some(mean));
    assert!((last.mean_std().unwrap().1 - (totals[0] - mean).abs()).abs() < 1e-12);
    let after = join.take_step(4);
    assert_eq!(
        (after.statistics.rollouts, after.statistics.groups.split, after.statistics.groups.count),
        (1, 1, 0)
    );
    assert_eq!(join.statistics().rollouts, 7);
}

/// Twenty thousand wait, nobody is lost, and what they take is given back.
#[test]
fn a_great_many_wait_and_nobody_is_lost() {
    const MANY: usize = 20_000;
    let (_, join) = stopped(
        "components: { format: { reward: reasoning_format }, brevity: { reward: kimi.length, correct: extra } }\n",
    );
    let (send, receive) = channel();
    let text = "word ".repeat(200);
    for at in 0..MANY {
        let send = send.clone();
        join.hand_in(arrival(&format!("g{}", at % (MANY / 4)), 4, &format!("{at} {text}")), move |joined| {
            send.send((at, joined.group_size, joined.row().total.kind())).unwrap();
        });
        if at == MANY - MANY / 4 - 1 {
            assert_eq!((join.status().waiting, join.status().open), (MANY - MANY / 4, MANY / 4));
        }
    }
    drop(send);
    let mut seen = vec![false; MANY];
    for _ in 0..MANY {
        let (at, size, kind) = receive.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(!std::mem::replace(&mut seen[at], true) && size == 4 && kind == OutcomeKind::Scored);
    }
    assert!(seen.iter().all(|seen| *seen));
    assert_eq!((join.status().waiting, join.status().bytes, join.status().scored), (0, 0, MANY as u64));
    let policy = Policy::of(&plan(OVERLAP));
    assert!(join.status().remembered <= policy.remember);
}
