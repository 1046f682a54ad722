//! Runs one untrusted program in a Linux sandbox: namespaces, or Landlock and seccomp, with limits.
//!
//! A box is made by `clone` with `CLONE_VM` from the thread that asks for it: the new process shares the caller's memory until
//! it calls `execve`, and until then makes raw system calls on a stack of its own, as `posix_spawn` does. So a box can be made
//! from any thread of a large process, without a second program that would have to be shipped in the command and in the
//! wheel, and without copying page tables: a `fork` of a process with 8 GB resident costs over 100 times as much as this
//! (`examples/starts.rs` measures it). The program itself is the first process of its PID namespace: when it ends, the kernel
//! kills all that it left behind, and there is no supervisor inside to attack.
//!
//! ```no_run
//! use plaudit_box::{Job, Options, Sandbox};
//!
//! let sandbox = Sandbox::open(Options::default()).expect("an isolation that withstands the attacks");
//! let job = Job::new(["/usr/bin/python3", "-I", "-S", "main.py"]).file("main.py", "print(int(input()) + 1)").stdin("41");
//! let run = sandbox.run(&job).expect("the sandbox works");
//! assert_eq!(run.stdout, b"42\n");
//! ```
//!
//! What must hold:
//!
//! - A failure of the sandbox is a [`BoxError`], never the result of a program. A [`RunResult`] exists only after every layer
//!   was on: the last step before `execve` says so, and each step before it stops the setup where it fails.
//! - A program gets an empty environment, descriptors 0 to 2, and its own files. Expected outputs never enter the box.
//! - CPU time decides about the limit of time. A program that wanted a processor and got none has met an overloaded host.
//! - An end that nothing explains is the program's own (`supervise.rs`).
//! - Nothing outlives a run; and nothing outlives a killed engine, by the death signal and by the guard (`guard.rs`).
//!
//! With namespaces the boxes of a slot start from namespaces of users, network and mounts that were made once (`namespaces.rs`); the
//! others are each box's own.
//!
//! | Isolation | Layers | Where |
//! |---|---|---|
//! | `Namespaces` | user, mount, PID, network, IPC, UTS and cgroup namespaces; read-only system, own `/proc`, tmpfs with limits; seccomp, Landlock, rlimits | hosts and virtual machines, containers that allow user namespaces |
//! | `Landlock` | Landlock, seccomp, rlimits; one process with threads, no file can be written | Docker and Kubernetes by default |
//! | `None` | rlimits alone | only where an operator says so |

// What a sandbox is asked and what it says, on every system.
mod job;
mod options;
mod report;

// The sandbox, in the order of the path of a job.
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(target_os = "linux")]
mod slot;
#[cfg(target_os = "linux")]
mod layout;
#[cfg(target_os = "linux")]
mod scratch;
#[cfg(target_os = "linux")]
mod streams;
#[cfg(target_os = "linux")]
mod launch;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod attack;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod supervise;
#[cfg(target_os = "linux")]
mod usage;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod layer;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(not(target_os = "linux"))]
mod elsewhere;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::Sandbox;
pub use job::{BoxError, Exit, Job, LimitHit, Limits, RunResult};
pub use options::{Isolation, Options};
pub use report::{LayerReport, SandboxReport};
#[cfg(target_os = "linux")]
pub use sandbox::Sandbox;

/// The example of the README, which is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
