//! Each limit ends the program that breaks it, and says which it was; results of programs that break none.

use crate::{open, passed, python, quick, run};
use plaudit_box::{BoxFailure, Exit, Job, LimitHit, Limits, Options, Sandbox, Tier};
use std::time::Duration;

fn each_tier(test: impl Fn(&Sandbox)) {
    for tier in [Tier::A, Tier::B] {
        if let Some(sandbox) = open(tier, 2) {
            test(&sandbox);
        }
    }
}

#[test]
fn a_right_program_passes() {
    each_tier(|sandbox| {
        let job = python("a, b = map(int, input().split())\nprint(a + b)").stdin("3 4\n");
        let run = sandbox.run(&job).unwrap();
        assert!(passed(&run, "7\n"), "{run:?}");
        assert!(run.cpu > Duration::ZERO && run.cpu < Duration::from_secs(1), "{run:?}");
    });
}

#[test]
fn exit_codes_and_signals_are_told() {
    each_tier(|sandbox| {
        assert_eq!(sandbox.run(&python("import sys; sys.exit(3)")).unwrap().exit, Exit::Code(3));
        let run = sandbox.run(&python("import ctypes; ctypes.string_at(0)")).unwrap();
        assert_eq!(run.exit, Exit::Signal(11), "{run:?}");
    });
}

#[test]
fn every_limit_is_named() {
    each_tier(|sandbox| {
        let hit = |code: &str| run(sandbox, &python(code)).unwrap().hit;
        // On a busy host it takes long to spend a second.
        let patient = Limits { wall: Some(Duration::from_secs(60)), ..quick() };
        let busy = run(sandbox, &python("while True: pass").limits(patient)).unwrap();
        assert_eq!(busy.hit, Some(LimitHit::Cpu));
        assert_eq!(hit("import time; time.sleep(100)"), Some(LimitHit::Wall));
        assert_eq!(hit("while True: print('x' * 1000)"), Some(LimitHit::Output));
        assert_eq!(hit("pass"), None);
    });
}

#[test]
fn cpu_of_all_processes_counts() {
    let Some(sandbox) = open(Tier::A, 1) else { return };
    let patient = Limits { wall: Some(Duration::from_secs(60)), ..quick() };
    let job = python("import os\nfor _ in range(3): os.fork()\nwhile True: pass").limits(patient);
    let run = run(&sandbox, &job).unwrap();
    assert_eq!(run.hit, Some(LimitHit::Cpu));
    assert!(run.cpu < Duration::from_secs(3), "{run:?}");
}

#[test]
fn output_over_the_limit_is_cut() {
    each_tier(|sandbox| {
        let limits = Limits { output: 10, errors: 4, ..quick() };
        let job =
            python("import sys; sys.stderr.write('abcdefgh'); sys.stderr.flush(); print('0123456789x')");
        let run = sandbox.run(&job.limits(limits.clone())).unwrap();
        assert_eq!((run.stdout.as_slice(), run.hit), (b"0123456789".as_slice(), Some(LimitHit::Output)));
        assert_eq!(run.stderr, b"abcd");
        let run = sandbox.run(&python("print('012345678')").limits(limits)).unwrap();
        assert_eq!((run.stdout.len(), run.hit), (10, None));
    });
}

#[test]
fn large_input_and_output_pass_through() {
    each_tier(|sandbox| {
        let text = "0123456789abcde\n".repeat(40_000);
        let run = sandbox
            .run(&python("import sys; sys.stdout.write(sys.stdin.read())").stdin(text.clone()))
            .unwrap();
        assert!(run.stdout == text.as_bytes(), "{:?} {}", run.exit, run.stdout.len());
    });
}

#[test]
fn files_of_a_job_are_there() {
    each_tier(|sandbox| {
        let job =
            python("import os\nprint(sorted(os.listdir('.')), open('data.txt').read(), os.environ.get('A'))");
        let mut job = job.file("data.txt", "é");
        job.environment.push(("A".into(), "b".into()));
        let run = sandbox.run(&job).unwrap();
        assert!(passed(&run, "['data.txt', 'main.py'] é b"), "{run:?}");
        let run = sandbox.run(&python("import os; print(os.listdir('.'))")).unwrap();
        assert!(passed(&run, "['main.py']"), "{run:?}");
    });
}

#[test]
fn ordinary_programs_find_what_they_need() {
    each_tier(|sandbox| {
        let code = "import asyncio, threading, random, decimal, json, hashlib, zlib\n\
                    async def main(): await asyncio.sleep(0); return 7\n\
                    values = []\n\
                    thread = threading.Thread(target=lambda: values.append(asyncio.run(main())))\n\
                    thread.start(); thread.join()\n\
                    open('/dev/null', 'w').write('x'); open('/dev/urandom', 'rb').read(4)\n\
                    print(values[0])";
        let run = sandbox.run(&python(code)).unwrap();
        assert!(passed(&run, "7"), "{run:?} {}", String::from_utf8_lossy(&run.stderr));
    });
    let Some(sandbox) = open(Tier::A, 1) else { return };
    let named = sandbox.run(&python("import os; print(os.uname().nodename)")).unwrap();
    assert!(passed(&named, "box"), "{named:?}");
    let code = "import tempfile, multiprocessing, subprocess\n\
                with tempfile.NamedTemporaryFile('w+') as file: file.write('x')\n\
                import os\n\
                open('/dev/stdout' if os.path.exists('/proc/self') else '/dev/null', 'w').write('')\n\
                with multiprocessing.Pool(2) as pool: print(sum(pool.map(abs, [-3, 4])))\n\
                print(subprocess.run(['echo', 'ok'], capture_output=True, text=True).stdout, end='')";
    let run = sandbox.run(&python(code)).unwrap();
    assert!(passed(&run, "7\nok"), "{run:?} {}", String::from_utf8_lossy(&run.stderr));
}

#[test]
fn failures_of_the_sandbox_are_no_results() {
    each_tier(|sandbox| {
        let missing = sandbox.run(&Job::new(["/usr/bin/no-such-program"])).unwrap_err();
        assert!(
            matches!(missing, BoxFailure::Setup { layer: "program", errno: libc::ENOENT }),
            "{missing:?}"
        );
        for name in ["../x", "a/b", "", "..", "a\0b"] {
            let failure = sandbox.run(&python("pass").file(name, "x")).unwrap_err();
            assert!(matches!(failure, BoxFailure::Request(_)), "{failure:?}");
        }
        assert!(matches!(sandbox.run(&Job::new::<String>([])).unwrap_err(), BoxFailure::Request(_)));
        // And it works on.
        assert!(passed(&sandbox.run(&python("print(7)")).unwrap(), "7"));
    });
}

#[test]
fn the_report_names_layers_and_attacks() {
    let report = Sandbox::probe(&Options::default());
    println!("{report}");
    for tier in [Tier::A, Tier::B] {
        let layers: Vec<_> = report.layers.iter().filter(|layer| layer.tier == tier).collect();
        assert!(!layers.is_empty());
        if layers.len() > 1 {
            assert!(layers.iter().any(|layer| layer.name == "signal the engine" && layer.works), "{report}");
        }
    }
}

#[test]
fn without_isolation_only_when_asked_for() {
    let sandbox = open(Tier::None, 1).unwrap();
    assert!(passed(&sandbox.run(&python("print(7)")).unwrap(), "7"));
    assert_eq!(sandbox.report().tier, Some(Tier::None));
    if let Ok(sandbox) = Sandbox::open(Options::default()) {
        assert_ne!(sandbox.tier(), Tier::None);
    }
}
