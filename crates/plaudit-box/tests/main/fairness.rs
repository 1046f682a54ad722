//! Load on the host does not turn a right program into a wrong one.

use crate::{open, passed, python};
use plaudit_box::{Isolation, Limits};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Right programs on four times as many slots as processors, beside threads that keep all processors busy.
fn right_programs(isolation: Isolation, count: usize) {
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    let Some(sandbox) = open(isolation, processors * 4) else { return };
    let (next, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let failed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let workers: Vec<_> = (0..processors * 4)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= count {
                            return;
                        }
                        let code = "n = int(input())\nprint(sum(i * i for i in range(n)) - sum(i * i for i in range(n)) + n)";
                        let job = python(code).stdin("20000").limits(Limits { cpu: Duration::from_secs(1), ..Limits::default() });
                        let run = sandbox.run(&job);
                        if !run.as_ref().is_ok_and(|run| passed(run, "20000")) {
                            println!("isolation {isolation}: {run:?}");
                            failed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(failed.into_inner(), 0, "isolation {isolation}");
}

#[test]
fn right_programs_pass_on_a_busy_host() {
    for isolation in [Isolation::Namespaces, Isolation::Landlock] {
        right_programs(isolation, 60);
    }
}

#[test]
#[ignore = "takes minutes: make test-box"]
fn right_programs_in_full() {
    for isolation in [Isolation::Namespaces, Isolation::Landlock] {
        right_programs(isolation, 500);
    }
}
