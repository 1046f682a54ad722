//! Python's rules of text, by which data sets, references and published scorers were made, and the parts of a model's response.
//!
//! ```
//! use plaudit_text::{PyValue, after_thought, fenced_blocks, is_decimal, is_python_json, last_boxed, runs, split, strip};
//!
//! // The separators U+001C to U+001F are white space to Python, and are not to Rust.
//! assert_eq!(strip(" a\u{1f}"), "a");
//! assert_eq!(split("a\u{1c}b  c").collect::<Vec<_>>(), ["a", "b", "c"]);
//! // `\w+` takes superscripts, and no combining marks.
//! assert_eq!(runs("x² e\u{301}t").collect::<Vec<_>>(), ["x²", "e", "t"]);
//! assert!(is_decimal('٣') && !is_decimal('²'));
//!
//! let response = "<think>2 + 2</think>So \\boxed{\\frac{8}{2}}:\n```py\nprint(4)\n```\n";
//! let answer = after_thought(response).expect("a thought that ends");
//! assert_eq!(last_boxed(answer), Some("\\frac{8}{2}"));
//! assert_eq!(fenced_blocks(answer, &["python", "py"])[0].code(), "print(4)\n");
//!
//! assert!(is_python_json("[NaN]"));
//! let literal = PyValue::literal("{'a': (1, None)}").and_then(|value| value.into_json());
//! assert_eq!(literal, Some(serde_json::json!({"a": [1, null]})));
//! ```
//!
//! What must hold:
//!
//! - One rule, one reader: a rule of text that two crates need is here, and one that a single crate needs stays where it is used, as
//!   sentences, tokens and languages do in `plaudit-instructions`.
//! - Python's rules are those of CPython 3.11 with Unicode 14, whatever Unicode the toolchain has, except white space and case, which
//!   are those of Rust's standard library with Python's additions.
//! - All text is untrusted: every function is linear in the length of the text, or bounded, and none panics.
//!
//! Two readers of one thing stay two only where their users need different answers:
//!
//! | Thing | Readers | Why |
//! |---|---|---|
//! | white space | [`split`], [`each_word`] | who wants the first word reads no further; who wants all has them without a branch for each byte |
//! | thought | [`after_thought`], [`split_thought`] | an answer stands after the last thought; a conversation shows both parts, whatever is nested or left open |
//! | brace | [`closing_brace`], [`braced`] | LaTeX escapes braces, and published scorers count each |
//! | JSON | [`is_json`], [`is_python_json`], [`exact::read`] | the standard; Python with its limits; Python's values, numbers as they are written |
//! | literal | [`PyValue::literal`], [`json_or_literal`] | values of programs, where no escape may be guessed; fields of rows, with JSON among them |
//!
//! Readers with other duties are elsewhere: that of rollouts (limits and codes of errors) and that of recipes (lines) in the engine, the
//! answer of a mathematical response (several boxes as one list) in `plaudit-math`.

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

// Python's values.
mod literal;
pub mod value;
mod calls;

pub use boxed::{braced, closing_brace, last_boxed};
pub use calls::calls;
pub use case::{fold, is_lower, is_upper, lower, same_lower};
pub use digit::{digit, digit_at, digits_end, find_byte, may_begin_digit};
pub use fences::{Fence, FenceLanguage, FencedBlock, each_block, fenced_blocks};
pub use json::{is_json, is_python_json};
pub use json_tokens::{escaped_utf16, json_string_end, json_tokens, rewritten};
pub use literal::json_or_literal;
pub use space::{each_word, is_blank, is_space, rstrip, space_len, split, strip};
pub use tags::{Census, Tag, Tags, is_tag_name};
pub use thought::{after_thought, split_thought};
pub use value::{Equality, PyValue};
pub use words::{
    PUNCTUATION, count_runs, is_alnum, is_alpha, is_boundary, is_decimal, is_digit, is_punctuation, is_word,
    lines, runs,
};

/// The example of the README, which is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
