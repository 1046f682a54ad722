//! The command: a process around [`plaudit_cli::main`].

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(plaudit_cli::main(std::env::args_os(), None))
}
