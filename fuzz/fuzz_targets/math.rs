//! The math verifier under any pair of texts: each gets a verdict, and a reference equals itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plaudit_math::{Options, Reference, verify};

fuzz_target!(|input: (&str, &str)| {
    let (reference, response) = input;
    let Ok(reference) = Reference::parse(reference, &Options::default()) else { return };
    verify(response, &reference);
    reference.compare(response);
    assert!(reference.compare(reference.text()).outcome.is_right());
});
