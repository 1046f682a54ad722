//! Nothing is left behind: no processes, mounts or files after hostile programs, and no box after the engine's death.

use crate::{open, open_in, python, quick};
use plaudit_box::{Isolation, Job, Limits, Sandbox};
use std::collections::BTreeSet;
use std::io::BufRead;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Processes whose command line or parent says that they are boxes with this marker.
fn boxes(marker: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().into_string().unwrap().parse::<u32>() else { continue };
        let Ok(line) = std::fs::read(entry.path().join("cmdline")) else { continue };
        if line.windows(marker.len()).any(|part| part == marker.as_bytes()) {
            found.push(pid);
        }
    }
    found
}

fn marked(code: &str, marker: &str, limits: &Limits) -> Job {
    let mut job = python(code).limits(limits.clone());
    job.arguments.push(marker.to_owned());
    job
}

/// The mounts of this namespace. Others on the host may take theirs away meanwhile.
fn mounts() -> BTreeSet<String> {
    std::fs::read_to_string("/proc/self/mountinfo").unwrap().lines().map(str::to_owned).collect()
}

const ENDLESS: [&str; 3] = [
    "while True: pass",
    "import time\nwhile True: time.sleep(1)",
    "import os, signal\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\nos.setsid() if os.getpid() > 1 else None\nwhile True: os.getpid()",
];
const BOMBS: [&str; 3] = [
    "import os\nwhile True: os.fork()",
    "import os\nwhile True:\n    try:\n        if os.fork() == 0: os.setsid()\n    except OSError: pass",
    "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(99,)).start()",
];

/// How many programs run at once. Most wait for their limit of time, so that there are more of them than processors.
const SLOTS: usize = 12;

/// Runs so many programs and checks that nothing stays, and that an honest one is answered afterwards.
fn nothing_stays(isolation: Isolation, programs: &'static [&'static str], count: usize, limits: &Limits) {
    let name = format!("{}-{isolation}-{count}-{}", std::process::id(), programs[0].len());
    let marker = format!("plaudit-marker-{name}");
    let scratch = std::env::temp_dir().join(format!("plaudit-left-{name}"));
    std::fs::create_dir(&scratch).unwrap();
    let Some(sandbox) = open_in(isolation, SLOTS, scratch.clone()) else {
        return std::fs::remove_dir(&scratch).unwrap();
    };
    let before = mounts();
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..SLOTS {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if index >= count {
                        return;
                    }
                    let run = sandbox.run(&marked(programs[index % programs.len()], &marker, limits));
                    match run {
                        Ok(run) => assert!(run.stdout.is_empty(), "{run:?}"),
                        Err(failure) => assert_eq!(failure, plaudit_box::BoxError::HostOverloaded),
                    }
                }
            });
        }
    });
    assert_eq!(boxes(&marker), Vec::<u32>::new());
    assert_eq!(mounts().difference(&before).collect::<Vec<_>>(), Vec::<&String>::new());
    let run = sandbox.run(&python("print(7)")).unwrap();
    assert_eq!(run.stdout, b"7\n");
    drop(sandbox);
    // Removes the folder, which must be empty for it.
    std::fs::remove_dir(&scratch).unwrap();
}

fn short() -> Limits {
    let (cpu, wall) = (Duration::from_millis(100), Some(Duration::from_millis(300)));
    Limits { cpu, wall, ..quick() }
}

#[test]
fn endless_programs_leave_nothing() {
    for isolation in [Isolation::Namespaces, Isolation::Landlock] {
        nothing_stays(isolation, &ENDLESS, 24, &short());
    }
}

#[test]
fn fork_bombs_leave_nothing() {
    for isolation in [Isolation::Namespaces, Isolation::Landlock] {
        nothing_stays(isolation, &BOMBS, 9, &short());
    }
}

#[test]
#[ignore = "takes minutes: make test-box"]
fn endless_programs_in_full() {
    for isolation in [Isolation::Namespaces, Isolation::Landlock] {
        nothing_stays(isolation, &ENDLESS, 1000, &short());
    }
}

#[test]
#[ignore = "takes minutes: make test-box"]
fn fork_bombs_in_full() {
    for isolation in [Isolation::Namespaces, Isolation::Landlock] {
        nothing_stays(isolation, &BOMBS, 100, &Limits { wall: Some(Duration::from_secs(1)), ..short() });
    }
}

/// A program that loses its death signal: a thread's `execve` takes the place of the process.
const LOSES_THE_SIGNAL: &str = "import threading, os, sys, time\n\
    again = [sys.executable, '-I', '-S', '-c', 'import time; time.sleep(3600)', sys.argv[1]]\n\
    threading.Thread(target=lambda: os.execv(sys.executable, again)).start()\n\
    time.sleep(3600)";
const LEAVES_A_CHILD: &str = "import os, time\n\
    try: os.fork()\n\
    except OSError: pass\n\
    os.setsid() if os.getpid() != 1 and os.getpgid(0) != os.getpid() else None\n\
    time.sleep(3600)";

/// Not a test of its own: the engine that `a_killed_engine_leaves_no_box` kills.
#[test]
#[ignore = "started by a_killed_engine_leaves_no_box"]
fn engine_to_be_killed() {
    let isolation = if std::env::var("PLAUDIT_BOX_ISOLATION").as_deref() == Ok("namespaces") {
        Isolation::Namespaces
    } else {
        Isolation::Landlock
    };
    let marker = std::env::var("PLAUDIT_BOX_MARKER").unwrap();
    let sandbox = open(isolation, 3).unwrap();
    let limits = Limits { cpu: Duration::from_secs(60), wall: Some(Duration::from_secs(60)), ..quick() };
    std::thread::scope(|scope| {
        for code in ["while True: pass", LOSES_THE_SIGNAL, LEAVES_A_CHILD] {
            let (sandbox, marker, limits): (&Sandbox, &str, &Limits) = (&sandbox, &marker, &limits);
            scope.spawn(move || sandbox.run(&marked(code, marker, limits)));
        }
        let started = Instant::now();
        while boxes(&marker).len() < 3 && started.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20));
        }
        // Until one of them has lost its death signal.
        std::thread::sleep(Duration::from_millis(500));
        println!("\nup");
    });
}

#[test]
fn a_killed_engine_leaves_no_box() {
    for isolation in [Isolation::Namespaces, Isolation::Landlock] {
        if open(isolation, 1).is_none() {
            continue;
        }
        let marker = format!("plaudit-marker-{}-killed-{isolation}", std::process::id());
        let mut engine = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "leftovers::engine_to_be_killed"])
            .env("PLAUDIT_BOX_ISOLATION", isolation.to_string())
            .env("PLAUDIT_BOX_MARKER", &marker)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = std::io::BufReader::new(engine.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line == "up"), "the engine did not start");
        assert!(boxes(&marker).len() >= 3, "{:?}", boxes(&marker));
        engine.kill().unwrap();
        let killed = Instant::now();
        while !boxes(&marker).is_empty() && killed.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(10));
        }
        println!(
            "isolation {isolation}: no box {} ms after the engine's death",
            killed.elapsed().as_millis()
        );
        let left = boxes(&marker);
        engine.wait().unwrap();
        assert!(left.is_empty(), "isolation {isolation}: {left:?}");
        let guard = Path::new("/proc").join(engine.id().to_string());
        assert!(!guard.exists());
    }
}

/// Nothing shows that it was not the program itself.
#[test]
fn an_unexplained_death_is_the_program_s_own() {
    let Some(sandbox) = open(Isolation::Namespaces, 1) else { return };
    let marker = format!("plaudit-marker-{}-outside", std::process::id());
    let job = marked("import time; time.sleep(3600)", &marker, &quick());
    let result = std::thread::scope(|scope| {
        let run = scope.spawn(|| sandbox.run(&job));
        let found = loop {
            if let Some(found) = boxes(&marker).first() {
                break *found;
            }
        };
        assert!(Command::new("kill").args(["-9", &found.to_string()]).status().unwrap().success());
        run.join().unwrap()
    });
    assert_eq!(result.unwrap().exit, plaudit_box::Exit::Signal(9));
}
