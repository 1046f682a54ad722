//! Two programs that talk to each other: each reads what the other writes, and neither outlives the other's limits.

use crate::{open, patiently, python, quick, run};
use plaudit_box::{BoxError, Exit, Isolation, Job, LimitHit, Limits, RunResult, Sandbox};
use std::time::{Duration, Instant};

/// Runs a pair in each isolation, again where the host was overloaded.
fn each_isolation(first: &Job, second: &Job, check: impl Fn(&Sandbox, [RunResult; 2])) {
    for isolation in [Isolation::Namespaces, Isolation::Landlock] {
        let Some(sandbox) = open(isolation, 1) else { continue };
        let result = patiently(first.clone(), |first| {
            let mut second = second.clone();
            second.limits.wall = first.limits.wall;
            sandbox.run_pair([first, &second])
        });
        check(&sandbox, result.unwrap());
    }
}

fn patient() -> Limits {
    Limits { wall: Some(Duration::from_secs(60)), ..quick() }
}

#[test]
fn each_reads_what_the_other_writes() {
    let asks = "import sys\nfor n in range(100):\n    print(n, flush=True)\n    assert int(input()) == n * n\nsys.stderr.write('right')";
    let answers =
        "import sys\nfor line in sys.stdin: print(int(line) ** 2, flush=True)\nsys.stderr.write('done')";
    each_isolation(
        &python(asks).limits(patient()),
        &python(answers).limits(patient()),
        |_, [first, second]| {
            assert_eq!(
                (first.exit, first.hit, first.stderr.as_slice()),
                (Exit::Code(0), None, &b"right"[..])
            );
            assert_eq!(
                (second.exit, second.hit, second.stderr.as_slice()),
                (Exit::Code(0), None, &b"done"[..])
            );
            assert!(first.stdout.is_empty() && second.stdout.is_empty());
        },
    );
}

#[test]
fn the_end_of_one_is_seen_by_the_other() {
    // Also where the first leaves a child with the pipe in its hands.
    let ends =
        "import os, time\ntry:\n    if os.fork() == 0: time.sleep(3600)\nexcept OSError: pass\nos._exit(3)";
    let waits = "import sys\nsys.stderr.write(repr(sys.stdin.read()))";
    let started = Instant::now();
    each_isolation(
        &python(ends).limits(patient()),
        &python(waits).limits(patient()),
        |_, [first, second]| {
            assert_eq!((first.exit, second.exit), (Exit::Code(3), Exit::Code(0)));
            assert_eq!(second.stderr, b"''");
        },
    );
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_limit_of_one_ends_both() {
    let (spins, waits) = ("while True: pass", "import sys\nsys.stdin.read()");
    for swapped in [false, true] {
        let (first, second) = if swapped { (waits, spins) } else { (spins, waits) };
        each_isolation(
            &python(first).limits(patient()),
            &python(second).limits(patient()),
            |sandbox, [first, second]| {
                let (guilty, other) = if swapped { (second, first) } else { (first, second) };
                assert_eq!(guilty.hit, Some(LimitHit::Cpu));
                assert_eq!((other.hit, other.exit), (None, Exit::Signal(9)));
                // And the slot is free for the next.
                assert_eq!(run(sandbox, &python("print(7)").limits(patient())).unwrap().stdout, b"7\n");
            },
        );
    }
    // Each waits for the other.
    let short = Limits { wall: Some(Duration::from_millis(500)), ..quick() };
    each_isolation(&python(waits).limits(short.clone()), &python(waits).limits(short), |_, runs| {
        assert_eq!(runs.map(|run| run.hit), [Some(LimitHit::Wall); 2]);
    });
}

#[test]
fn a_pair_that_cannot_start_leaves_nothing() {
    for isolation in [Isolation::Namespaces, Isolation::Landlock] {
        let Some(sandbox) = open(isolation, 1) else { continue };
        let (good, bad) = (python("input()").limits(patient()), Job::new(["/usr/bin/no-such-program"]));
        for jobs in [[&good, &bad], [&bad, &good]] {
            let failure = sandbox.run_pair(jobs).unwrap_err();
            assert!(matches!(failure, BoxError::Setup { layer: "program", .. }), "{failure:?}");
        }
        let given = good.clone().stdin("x");
        assert!(matches!(sandbox.run_pair([&good, &given]).unwrap_err(), BoxError::Request(_)));
        let files = |code: &str| python(code).limits(patient());
        let [first, _] = sandbox
            .run_pair([&files("import os, sys\nsys.stderr.write(str(sorted(os.listdir('.'))))"), &files("")])
            .unwrap();
        assert_eq!(first.stderr, b"['main.py']");
    }
}

/// The two boxes of a pair are as far from each other as any two.
#[test]
fn a_pair_shares_nothing_but_its_pipes() {
    let looks = "import os, sys, signal\n\
        print(os.getpid(), flush=True); other = int(input())\n\
        found = []\n\
        if os.getpid() != other:\n\
        \x20   try: os.kill(other, 0); found.append('signal')\n\
        \x20   except OSError: pass\n\
        for path in (f'/proc/{other}/environ', f'/proc/{other}/mem', f'/proc/{other}/fd/0', '../1/main.py', '../0/main.py'):\n\
        \x20   if os.getpid() == other and path.startswith('/proc'): continue\n\
        \x20   if os.path.abspath(path) == os.path.abspath('main.py'): continue\n\
        \x20   try: open(path, 'rb').read(1); found.append(path)\n\
        \x20   except OSError: pass\n\
        print('done', flush=True); input()\n\
        sys.stderr.write(repr((found, [fd for fd in range(3, 64) if os.path.exists(f'/proc/self/fd/{fd}') and fd > 3])))";
    let job = python(looks).limits(patient());
    each_isolation(&job, &job, |sandbox, runs| {
        for run in runs {
            let text = String::from_utf8_lossy(&run.stderr).into_owned();
            assert_eq!(
                (run.exit, text.as_str()),
                (Exit::Code(0), "([], [])"),
                "isolation {}",
                sandbox.isolation()
            );
        }
    });
}
