//! Python's rules of text, which data sets, references and published scorers were made with.
//!
//! ```
//! use plaudit_text::{is_decimal, lower, runs, split, strip};
//!
//! // The separators U+001C to U+001F are white space to Python, and are not to Rust.
//! assert_eq!(strip(" a\u{1f}"), "a");
//! assert_eq!(split("a\u{1c}b  c").collect::<Vec<_>>(), ["a", "b", "c"]);
//! // `\w+` takes superscripts, and no combining marks.
//! assert_eq!(runs("x² e\u{301}t").collect::<Vec<_>>(), ["x²", "e", "t"]);
//! assert_eq!(lower("ΑΣ"), "ας");
//! assert!(is_decimal('٣') && !is_decimal('²'));
//! ```
//!
//! What must hold:
//!
//! - One rule, one reader: every crate of plaudit reads text by what is here.
//! - Python's rules are those of CPython 3.11 with Unicode 14, whatever Unicode the toolchain has, except white space and case, which
//!   are those of Rust's standard library with Python's additions.
//! - All text is untrusted: every function is linear in the length of the text, or bounded, and none panics.

// Python's `str` and `re`.
mod space;
mod case;
mod sets;
mod words;
mod digit;

// The parts of a response.
mod tags;
mod thought;
mod boxed;
mod fences;

// JSON.
pub mod exact;
mod json_tokens;
pub mod json;

pub use boxed::{braced, closing_brace, last_boxed};
pub use case::{fold, is_lower, is_upper, lower, same_lower};
pub use digit::{digit, digit_at, digits_end, find_byte, may_begin_digit};
pub use fences::{Fence, FenceLanguage, FencedBlock, each_block, fenced_blocks};
pub use json::{is_json, is_python_json};
pub use json_tokens::{escaped_utf16, json_tokens, rewritten};
pub use space::{each_word, is_blank, is_space, rstrip, space_len, split, strip};
pub use tags::{Census, Tag, Tags, is_tag_name};
pub use thought::{after_thought, split_thought};
pub use words::{
    PUNCTUATION, count_runs, is_alnum, is_alpha, is_boundary, is_decimal, is_digit, is_punctuation, is_word,
    lines, runs,
};

/// The example of the README, which is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
