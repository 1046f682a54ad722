//! Can a line of input break the reader? Any bytes are rollouts or an error with a code.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plaudit::input::{Fields, read_line};

fuzz_target!(|line: &[u8]| {
    match read_line(line, &Fields::own()) {
        Ok(rollouts) => assert!(rollouts.take(64).count() > 0),
        Err(error) => assert!(error.code.starts_with("input.")),
    }
});
