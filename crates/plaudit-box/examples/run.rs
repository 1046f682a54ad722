//! Runs one command in a box and prints what came of it: `cargo run -p plaudit-box --example run -- ISOLATION PROGRAM [ARGUMENT]...`
//!
//! ISOLATION is `namespaces`, `landlock` or `none`. Standard input is handed on; files of the current folder are not.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use plaudit_box::{Isolation, Job, Options, Sandbox};
use std::io::Read;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let isolation = match arguments.next().as_deref() {
        Some("namespaces") => Isolation::Namespaces,
        Some("landlock") => Isolation::Landlock,
        Some("none") => Isolation::None,
        _ => return println!("{}", Sandbox::probe(&Options::default())),
    };
    let sandbox = match Sandbox::open(Options { isolation: Some(isolation), slots: 1, ..Options::default() })
    {
        Ok(sandbox) => sandbox,
        Err(report) => return println!("{report}"),
    };
    let mut stdin = Vec::new();
    std::io::stdin().read_to_end(&mut stdin).unwrap();
    let mut job = Job::new(arguments).stdin(stdin);
    job.limits.address_space = Some(u64::MAX);
    match sandbox.run(&job) {
        Ok(run) => {
            println!("{}", String::from_utf8_lossy(&run.stdout));
            println!("{}", String::from_utf8_lossy(&run.stderr));
            println!("{:?} {:?}, CPU {:?}, wall {:?}", run.exit, run.hit, run.cpu, run.wall);
        }
        Err(failure) => println!("{failure}"),
    }
}
