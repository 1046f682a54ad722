//! Benchmark: plain starts of the Python interpreter against as many boxes of each isolation, on two threads.
//!
//! `cargo run --release -p plaudit-box --example starts [SAMPLES] [TESTS] [PYTHON]`. The parts alternate in five rounds, and
//! the medians are compared. Then it measures how long a process with 8 GB resident needs for a box and for a `fork`, and what
//! a start by `fork` from a prepared interpreter inside a box costs, as a figure only.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use plaudit_box::{Isolation, Job, Limits, Options, Sandbox};
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const PROGRAM: &str = "a, b = map(int, input().split())\nprint(a + b)\n";
const THREADS: usize = 2;
const ROUNDS: usize = 5;

/// Calls a function so many times from two threads and returns the seconds it took.
fn timed(count: usize, one: impl Fn(usize) + Sync) -> f64 {
    let next = AtomicUsize::new(0);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        return;
                    }
                    one(index);
                }
            });
        }
    });
    started.elapsed().as_secs_f64()
}

fn plain(python: &str, program: &str) {
    let mut child = Command::new(python)
        .args(["-I", "-S", program])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"3 4\n").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"7\n");
}

fn boxed(sandbox: &Sandbox, python: &str) {
    let job = Job::new([python, "-I", "-S", "main.py"]).file("main.py", PROGRAM).stdin("3 4\n");
    let run = sandbox.run(&job).unwrap();
    assert_eq!(run.stdout, b"7\n", "{}", String::from_utf8_lossy(&run.stderr));
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let samples: usize = arguments.next().map_or(256, |text| text.parse().unwrap());
    let tests: usize = arguments.next().map_or(8, |text| text.parse().unwrap());
    let python = arguments.next().unwrap_or_else(|| "/usr/bin/python3".into());
    let python = python.as_str();
    let count = samples * tests;
    let open = |isolation| {
        Sandbox::open(Options { isolation: Some(isolation), slots: THREADS, ..Options::default() })
    };
    let mut isolations = Vec::new();
    for isolation in [Isolation::Namespaces, Isolation::Landlock] {
        match open(isolation) {
            Ok(sandbox) => isolations.push(sandbox),
            Err(report) => println!("isolation {isolation} is not available:\n{report}"),
        }
    }
    let program = std::env::temp_dir().join(format!("plaudit-starts-{}.py", std::process::id()));
    std::fs::write(&program, PROGRAM).unwrap();
    let path = program.to_str().unwrap();

    println!("{samples} samples x {tests} tests, {THREADS} threads, {python}, {ROUNDS} rounds");
    let mut seconds = vec![Vec::new(); 1 + isolations.len()];
    for _ in 0..ROUNDS {
        let share = count / ROUNDS;
        seconds[0].push(timed(share, |_| plain(python, path)) / share as f64);
        for (list, sandbox) in seconds[1..].iter_mut().zip(&isolations) {
            list.push(timed(share, |_| boxed(sandbox, python)) / share as f64);
        }
    }
    let base = median(&mut seconds[0]);
    println!("plain    {:8.3} ms a start  {:7.2} s for all", base * 1e3, base * count as f64);
    for (list, sandbox) in seconds[1..].iter_mut().zip(&isolations) {
        let value = median(list);
        let (isolation, ratio) = (sandbox.isolation(), value / base);
        println!(
            "isolation {isolation}   {:8.3} ms a start  {:7.2} s for all  {ratio:.2}x",
            value * 1e3,
            value * count as f64
        );
    }
    std::fs::remove_file(&program).unwrap();

    for sandbox in &isolations {
        let empty = |_: usize| {
            let run = sandbox.run(&Job::new(["/bin/true"])).unwrap();
            assert_eq!(run.exit, plaudit_box::Exit::Code(0));
        };
        let per = timed(count.min(1000), empty) / count.min(1000) as f64;
        println!("isolation {}   {:8.3} ms for a box with /bin/true", sandbox.isolation(), per * 1e3);
    }
    large_process(&isolations);
    warm(&isolations, python, count);
}

/// How long a start takes in a process with 8 GB resident.
fn large_process(isolations: &[Sandbox]) {
    let resident = vec![1_u8; 8 << 30];
    for sandbox in isolations {
        let started = Instant::now();
        for _ in 0..20 {
            sandbox.run(&Job::new(["/bin/true"])).unwrap();
        }
        println!(
            "isolation {}   {:8.3} ms for a box, 8 GB resident",
            sandbox.isolation(),
            started.elapsed().as_secs_f64() * 50.0
        );
    }
    // The standard library forks where it must call a function in the child, which Python's `subprocess` did for long.
    let started = Instant::now();
    for _ in 0..5 {
        let mut command = Command::new("/bin/true");
        // SAFETY: the function does nothing.
        unsafe { std::os::unix::process::CommandExt::pre_exec(&mut command, || Ok(())) };
        command.status().unwrap();
    }
    println!("fork     {:8.3} ms for /bin/true, 8 GB resident", started.elapsed().as_secs_f64() * 200.0);
    drop(std::hint::black_box(resident));
}

/// What a start costs that forks from a prepared interpreter inside one box: without any wall between programs.
fn warm(isolations: &[Sandbox], python: &str, count: usize) {
    let program = format!(
        "import os, sys, io\ncode = compile({PROGRAM:?}, 'main.py', 'exec')\nfor _ in range({count}):\n    pid = os.fork()\n    \
         if pid == 0:\n        sys.stdin = io.StringIO('3 4')\n        exec(code, {{'__name__': '__main__'}})\n        \
         sys.stdout.flush()\n        os._exit(0)\n    os.waitpid(pid, 0)\n"
    );
    for sandbox in isolations.iter().filter(|sandbox| sandbox.isolation() == Isolation::Namespaces) {
        let limits = Limits { cpu: Duration::from_secs(100), ..Limits::default() };
        let job = Job::new([python, "-I", "-S", "main.py"]).file("main.py", program.clone()).limits(limits);
        let started = Instant::now();
        let run = sandbox.run(&job).unwrap();
        let seconds = started.elapsed().as_secs_f64();
        assert_eq!(run.stdout.len(), 2 * count, "{}", String::from_utf8_lossy(&run.stderr));
        println!(
            "warm     {:8.3} ms a start on one thread, forked inside one box",
            seconds / count as f64 * 1e3
        );
    }
}
