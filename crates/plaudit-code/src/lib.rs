//! Runs the program in a model's response against its tests, in a sandbox.
//!
//! ```no_run
//! use plaudit_box::{Limits, Options, Sandbox};
//! use plaudit_code::{Credit, Languages, Tests, execute, extract};
//!
//! let languages = Languages::installed();
//! let options = Options { read_only: languages.folders(), ..Options::default() };
//! let sandbox = Sandbox::open(options).expect("a sandbox");
//! let languages = languages.usable_in(&sandbox);
//! let python = languages.find("python").expect("Python is installed");
//!
//! let tests = Tests::parse(&serde_json::json!({"inputs": ["3 4"], "outputs": ["7"]})).expect("tests");
//! let code = extract("```python\nprint(sum(map(int, input().split())))\n```", python).expect("a code block");
//! let execution = execute(&sandbox, python, &code, &tests, &Limits::default(), Credit::Partial);
//! assert_eq!(execution.score(), Some(1.0));
//! ```
//!
//! What must hold:
//!
//! - What a test expects never enters the program's box: a program's output, or the result of its function as data, is compared
//!   outside. A test that is itself a program ([`Case::Script`]) has a box of its own: it calls the program by typed data over
//!   pipes, and what comes back is made of built-in classes alone. No code of the model runs where a verdict is made.
//! - A test proves nothing by absence. A program that ends without output passes no test, an empty list of tests is an error,
//!   and a test that expects nothing is left out.
//! - A failure of the sandbox is [`Verdict::Infrastructure`], a test that cannot be run [`Verdict::FaultyTest`], and then there is no
//!   score.
//! - All text is untrusted: parsers are linear or bounded, and nothing that a response says is evaluated outside the box.

// In the order of the path of a response.
mod cases;
mod task_code;
mod free_names;
mod granted;
mod assertion;
mod script;
mod livecodebench;
mod extract;
mod language;
mod execute;
mod received;
mod compare;
mod python;
mod names;
mod prelude;

pub use crate::{
    cases::{Case, Tests, TestsError},
    compare::same_output,
    execute::{Credit, Execution, Program, TestProcess, TestResult, Verdict, execute},
    extract::extract,
    granted::GivenNodes,
    language::{Language, Languages},
    livecodebench::UNPACKED_LIMIT,
    names::{BoundName, NameKind},
    python::{PythonParser, Syntax},
};

/// The example of the README, which is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
