//! Each limit ends the program that breaks it, and says which it was; results of programs that break none.

use crate::{open, passed, python, quick, run};
use plaudit_box::{BoxError, Exit, Isolation, Job, LimitHit, Limits, Options, Sandbox};
use std::time::Duration;

fn each_isolation(test: impl Fn(&Sandbox)) {
    for isolation in [Isolation::Namespaces, Isolation::Landlock] {
        if let Some(sandbox) = open(isolation, 2) {
            test(&sandbox);
        }
    }
}

#[test]
fn a_right_program_passes() {
    each_isolation(|sandbox| {
        let job = python("a, b = map(int, input().split())\nprint(a + b)").stdin("3 4\n");
        let run = sandbox.run(&job).unwrap();
        assert!(passed(&run, "7\n"), "{run:?}");
        assert!(run.cpu > Duration::ZERO && run.cpu < Duration::from_secs(1), "{run:?}");
    });
}

#[test]
fn exit_codes_and_signals_are_told() {
    each_isolation(|sandbox| {
        assert_eq!(sandbox.run(&python("import sys; sys.exit(3)")).unwrap().exit, Exit::Code(3));
        let run = sandbox.run(&python("import ctypes; ctypes.string_at(0)")).unwrap();
        assert_eq!(run.exit, Exit::Signal(11), "{run:?}");
    });
}

#[test]
fn every_limit_is_named() {
    each_isolation(|sandbox| {
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
    let Some(sandbox) = open(Isolation::Namespaces, 1) else { return };
    let patient = Limits { wall: Some(Duration::from_secs(60)), ..quick() };
    let job = python("import os\nfor _ in range(3): os.fork()\nwhile True: pass").limits(patient);
    let run = run(&sandbox, &job).unwrap();
    assert_eq!(run.hit, Some(LimitHit::Cpu));
    assert!(run.cpu < Duration::from_secs(3), "{run:?}");
}

/// Work in children that the kernel forgets when they end: each is shorter than the time between two looks.
#[test]
fn cpu_of_children_that_nobody_waits_for_counts() {
    let Some(sandbox) = open(Isolation::Namespaces, 1) else { return };
    // Little CPU time, because a chain of short children makes slow progress on a busy host.
    let cpu = Duration::from_millis(300);
    let patient = Limits { cpu, wall: Some(Duration::from_secs(60)), ..quick() };
    let work = "def work(seconds):\n    end = time.thread_time() + seconds\n    while time.thread_time() < end: pass\n    os._exit(0)\n";
    let chain = "def gone(pid):\n    try: os.waitpid(pid, 0)\n    except ChildProcessError: pass\n";
    let ignore = "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n";
    let without_zombies = "class Action(ctypes.Structure): _fields_ = [('handler', ctypes.c_void_p), ('flags', ctypes.c_ulong), ('restorer', ctypes.c_void_p), ('mask', ctypes.c_ulong)]\n\
        assert ctypes.CDLL(None).syscall(13 if os.uname().machine == 'x86_64' else 134, 17, ctypes.byref(Action(0, 2, 0, 0)), 0, 8) == 0\n";
    let programs = [
        format!("{ignore}while True:\n    pid = os.fork()\n    if pid == 0: work(0.02)\n    gone(pid)"),
        format!(
            "{without_zombies}while True:\n    pid = os.fork()\n    if pid == 0: work(0.002)\n    gone(pid)"
        ),
        // Grandchildren, whose parent is gone when they end.
        format!(
            "{ignore}while True:\n    pid = os.fork()\n    if pid == 0:\n        if os.fork() == 0: work(0.02)\n        os._exit(0)\n    gone(pid)\n    time.sleep(0.03)"
        ),
        // Many at once, and then the answer.
        format!(
            "{ignore}for _ in range(8):\n    if os.fork() == 0: work(0.4)\ntime.sleep(0.05)\ngone(-1)\nprint(7)"
        ),
    ];
    for program in programs {
        let code = format!("import os, signal, time, ctypes\n{work}{chain}{program}");
        let run = run(&sandbox, &python(&code).limits(patient.clone())).unwrap();
        assert_eq!(run.hit, Some(LimitHit::Cpu), "{code}\n{run:?} {}", String::from_utf8_lossy(&run.stderr));
        assert!(run.cpu < Duration::from_secs(4), "{code}\n{run:?}");
    }
}

/// Every way in which a program can be killed by what it did itself.
#[test]
fn a_program_dies_of_its_own_fault() {
    let limit = |which: &str, value: &str| {
        format!("import resource\nresource.setrlimit(resource.RLIMIT_{which}, ({value}, {value}))\n")
    };
    let spin = "while True: pass";
    let programs = [
        limit("CPU", "1") + spin,
        limit("CPU", "0") + spin,
        format!("import resource\nresource.prlimit(0, resource.RLIMIT_CPU, (0, 1))\n{spin}"),
        format!("import os, resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nos.execv(os.readlink('/proc/self/exe') if os.path.exists('/proc/self/exe') else '/usr/bin/python3', ['python3', '-c', '{spin}'])"),
        limit("STACK", "0") + "def f(): return f() + 1\nimport sys; sys.setrecursionlimit(10**9); repr(eval('[' * 90 + ']' * 90)); f()",
        limit("AS", "1 << 20") + "x = [bytearray(1 << 16) for _ in range(10**6)]",
        limit("DATA", "1 << 20") + "x = [bytearray(1 << 16) for _ in range(10**6)]",
        limit("NOFILE", "0") + "open('/dev/null')",
        limit("FSIZE", "0") + "import os, sys\nos.write(1, b'x'); sys.exit(3)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL); os.kill(0, signal.SIGKILL); os._exit(3)".into(),
        "import os, signal, time\nif os.fork() == 0: os.kill(1, signal.SIGKILL); os.kill(os.getppid(), signal.SIGKILL); os.kill(-1, signal.SIGKILL); time.sleep(9)\nos.wait(); os._exit(3)".into(),
        "import ctypes\nctypes.CDLL(None).prctl(22, 1); open('/dev/null'); 1/0".into(),
        "import os\nfor fd in range(64):\n    try: os.close(fd)\n    except OSError: pass\nos.abort()".into(),
        "import os\nfor name in os.listdir('.'): os.remove(name)\nos.rmdir(os.getcwd()); 1/0".into(),
    ];
    each_isolation(|sandbox| {
        for code in &programs {
            let run = run(sandbox, &python(code).limits(Limits { cpu: Duration::from_secs(3), ..quick() }));
            let run = run.unwrap_or_else(|failure| panic!("{code}: {failure}"));
            assert!(
                run.hit.is_some() || run.exit != Exit::Code(0),
                "isolation {}: {code}\n{run:?}",
                sandbox.isolation()
            );
        }
    });
}

#[test]
fn a_file_that_is_no_program_is_the_author_s_fault() {
    each_isolation(|sandbox| {
        for content in [&b"!<arch>\n"[..], b"\x7fELF", b"#!/no/such/interpreter\n", b""] {
            let mut job = Job::new(["./program"]).limits(quick());
            job.files.push(("program".into(), content.to_vec(), true));
            let run = sandbox.run(&job).unwrap();
            assert_eq!((run.exit, run.hit), (Exit::Code(126), None), "{run:?}");
        }
    });
}

/// Threads that wait for each other are no sign of a busy host, and neither are children.
#[test]
fn a_program_cannot_look_starved() {
    let children = "import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nwhile True:\n    pid = os.fork()\n    if pid == 0:\n        end = time.time() + 0.01\n        while time.time() < end: pass\n        os._exit(0)\n    try: os.waitpid(pid, 0)\n    except ChildProcessError: pass";
    let threads = "import threading, time\ndef wake():\n    while True:\n        time.sleep(0.02 - time.time() % 0.02)\n        for _ in range(200): pass\nfor _ in range(24): threading.Thread(target=wake).start()";
    each_isolation(|sandbox| {
        for code in [children, threads] {
            let limits =
                Limits { cpu: Duration::from_secs(5), wall: Some(Duration::from_secs(3)), ..quick() };
            let run = run(sandbox, &python(code).limits(limits)).unwrap();
            assert!(run.hit.is_some() || run.exit != Exit::Code(0), "{code}: {run:?}");
        }
    });
}

#[test]
fn as_many_threads_as_are_promised() {
    let pool = "import threading, time, sys\nfrom concurrent.futures import ThreadPoolExecutor\n\
        with ThreadPoolExecutor(16) as pool: assert sum(pool.map(abs, range(-100, 0))) == 5050\n\
        threads = [threading.Thread(target=time.sleep, args=(0.2,)) for _ in range(30)]\n\
        for thread in threads: thread.start()\n\
        for thread in threads: thread.join()\n\
        print(7)";
    each_isolation(|sandbox| {
        for memory in [128 << 20, 512 << 20, 1 << 30] {
            let limits = Limits { memory, wall: Some(Duration::from_secs(60)), ..quick() };
            let run = run(sandbox, &python(pool).limits(limits)).unwrap();
            assert!(
                passed(&run, "7"),
                "{memory} with isolation {}: {run:?} {}",
                sandbox.isolation(),
                String::from_utf8_lossy(&run.stderr)
            );
        }
    });
}

/// Memory that is used counts, wherever it lies.
#[test]
fn memory_is_limited_wherever_it_lies() {
    let heap = "x = []\nwhile True: x.append(b'x' * (1 << 20))";
    let mapped =
        "import mmap\nx = mmap.mmap(-1, 1 << 30)\nfor at in range(0, 1 << 30, 4096): x[at] = 1\nprint(7)";
    let tables = "import mmap, time\nx = []\ntry:\n    while True:\n        x.append(mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | 0x20, prot=mmap.PROT_READ))\n        sum(x[-1][at] for at in range(0, 1 << 30, 1 << 21))\nexcept OSError: pass\ntime.sleep(1)\nprint(7)";
    let stacks = "import threading, sys, time\nsys.setrecursionlimit(10**6)\ndef deep(n):\n    return sorted([n], key=lambda n: deep(n - 1) if n else time.sleep(1))\n\
        threads = [threading.Thread(target=deep, args=(20000,)) for _ in range(30)]\nfor t in threads: t.start()\nfor t in threads: t.join()\nprint(7)";
    let sockets = "import os, socket, time\ndef fill():\n    pairs = []\n    try:\n        while True:\n            pairs.append(socket.socketpair())\n            for end in pairs[-1]:\n                end.setblocking(False)\n                try:\n                    while True: end.send(bytes(65536))\n                except BlockingIOError: pass\n    except OSError: pass\n    time.sleep(2)\n    return pairs\n\
        for _ in range(29):\n    if os.fork() == 0: fill(); os._exit(0)\nfill()\nprint(7)";
    each_isolation(|sandbox| {
        for (code, reserved) in
            [(heap, None), (mapped, None), (tables, Some(256 << 30)), (stacks, None), (sockets, None)]
        {
            let limits = Limits {
                memory: 256 << 20,
                address_space: reserved,
                cpu: Duration::from_secs(20),
                wall: Some(Duration::from_secs(60)),
                ..quick()
            };
            let run = run(sandbox, &python(code).limits(limits)).unwrap();
            let text = String::from_utf8_lossy(&run.stderr);
            assert!(!passed(&run, "7"), "isolation {}: {code}\n{run:?} {text}", sandbox.isolation());
            assert!(
                run.peak_resident.unwrap_or(0) < 900 << 20,
                "isolation {}: {code}\n{run:?} {text}",
                sandbox.isolation()
            );
        }
    });
}

#[test]
fn output_over_the_limit_is_cut() {
    each_isolation(|sandbox| {
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
    each_isolation(|sandbox| {
        let text = "0123456789abcde\n".repeat(40_000);
        let run = sandbox
            .run(&python("import sys; sys.stdout.write(sys.stdin.read())").stdin(text.clone()))
            .unwrap();
        assert!(run.stdout == text.as_bytes(), "{:?} {}", run.exit, run.stdout.len());
    });
}

#[test]
fn files_of_a_job_are_there() {
    each_isolation(|sandbox| {
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
    each_isolation(|sandbox| {
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
    let Some(sandbox) = open(Isolation::Namespaces, 1) else { return };
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
    each_isolation(|sandbox| {
        let missing = sandbox.run(&Job::new(["/usr/bin/no-such-program"])).unwrap_err();
        assert!(matches!(missing, BoxError::Setup { layer: "program", errno: libc::ENOENT }), "{missing:?}");
        for name in ["../x", "a/b", "", "..", "a\0b"] {
            let failure = sandbox.run(&python("pass").file(name, "x")).unwrap_err();
            assert!(matches!(failure, BoxError::Request(_)), "{failure:?}");
        }
        assert!(matches!(sandbox.run(&Job::new::<String>([])).unwrap_err(), BoxError::Request(_)));
        // And it works on.
        assert!(passed(&sandbox.run(&python("print(7)")).unwrap(), "7"));
    });
}

#[test]
fn the_report_names_layers_and_attacks() {
    let report = Sandbox::probe(&Options::default());
    println!("{report}");
    for isolation in [Isolation::Namespaces, Isolation::Landlock] {
        let layers: Vec<_> = report.layers.iter().filter(|layer| layer.isolation == isolation).collect();
        assert!(!layers.is_empty());
        if layers.len() > 1 {
            assert!(layers.iter().any(|layer| layer.name == "signal the engine" && layer.works), "{report}");
        }
    }
}

#[test]
fn without_isolation_only_when_asked_for() {
    let Some(sandbox) = open(Isolation::None, 1) else { return };
    assert!(passed(&sandbox.run(&python("print(7)")).unwrap(), "7"));
    assert_eq!(sandbox.report().isolation, Some(Isolation::None));
    if let Ok(sandbox) = Sandbox::open(Options::default()) {
        assert_ne!(sandbox.isolation(), Isolation::None);
    }
}
