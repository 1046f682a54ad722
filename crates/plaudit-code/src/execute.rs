//! Runs a program against its tests, each in a box of its own, and gives a verdict for each.

use crate::cases::{Case, Expected, Tests};
use crate::compare::same_output;
use crate::language::Language;
use crate::value::{Equality, PyValue};
use plaudit_box::{BoxFailure, Exit, Job, LimitHit, Limits, RunResult, Sandbox};
use serde_json::json;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

/// What came of one test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The output or the result is what was expected.
    Passed,
    /// It is something else.
    Wrong,
    /// The program failed, or did not compile.
    Error,
    /// It took too long.
    Time,
    /// It took too much memory.
    Memory,
    /// It wrote too much.
    Output,
    /// The sandbox failed; the program is not to blame.
    Infrastructure,
}

impl Verdict {
    /// All verdicts.
    pub const ALL: [Self; 7] = [
        Self::Passed,
        Self::Wrong,
        Self::Error,
        Self::Time,
        Self::Memory,
        Self::Output,
        Self::Infrastructure,
    ];

    /// The verdict of that word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.name() == word)
    }

    /// The verdict as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Wrong => "wrong",
            Self::Error => "error",
            Self::Time => "time",
            Self::Memory => "memory",
            Self::Output => "output",
            Self::Infrastructure => "infrastructure",
        }
    }
}

/// How passed tests become a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credit {
    /// The share of tests that passed.
    Partial,
    /// 1 where all passed, else 0. Stops at the first that did not.
    AllOrNothing,
}

/// What came of one test, with evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestResult {
    /// The verdict.
    pub verdict: Verdict,
    /// CPU time.
    pub cpu: Duration,
    /// The end of what the program wrote to standard error, the start of a wrong output, or why the sandbox failed.
    pub message: String,
}

/// What came of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// One for each test that was run, in order.
    pub results: Vec<TestResult>,
    tests: usize,
    credit: Credit,
}

impl Execution {
    /// What came of a program with so many tests, of which the first have been run.
    pub fn new(results: Vec<TestResult>, tests: usize, credit: Credit) -> Self {
        Self { results, tests, credit }
    }

    /// How many tests passed.
    pub fn passed(&self) -> usize {
        self.results.iter().filter(|result| result.verdict == Verdict::Passed).count()
    }

    /// The score, or none where the sandbox failed.
    pub fn score(&self) -> Option<f64> {
        if self.results.iter().any(|result| result.verdict == Verdict::Infrastructure) {
            return None;
        }
        Some(match self.credit {
            Credit::Partial => self.passed() as f64 / self.tests as f64,
            Credit::AllOrNothing => f64::from(u8::from(self.passed() == self.tests)),
        })
    }
}

/// How much of standard error is kept.
const MESSAGE: usize = 2000;

/// The limits of a compiler.
fn compile_limits() -> Limits {
    Limits {
        cpu: Duration::from_secs(30),
        memory: 2 << 30,
        address_space: Some(u64::MAX),
        processes: 64,
        file_bytes: 256 << 20,
        file_count: 10_000,
        output: 64 << 20,
        ..Limits::default()
    }
}

/// Runs a program against its tests, one after the other.
pub fn execute(
    sandbox: &Sandbox,
    language: &Language,
    code: &str,
    tests: &Tests,
    limits: &Limits,
    credit: Credit,
) -> Execution {
    let count = tests.cases().len();
    let (language, code) = (Arc::new(language.clone()), Arc::from(code));
    let program = match Program::prepare(sandbox, &language, &code, limits) {
        Ok(program) => program,
        Err(result) => return Execution::new(vec![result; count], count, credit),
    };
    let mut results = Vec::new();
    for case in tests.cases() {
        let result = program.run(sandbox, case);
        let passed = result.verdict == Verdict::Passed;
        results.push(result);
        if credit == Credit::AllOrNothing && !passed {
            break;
        }
    }
    Execution::new(results, count, credit)
}

/// A program that is ready to run: as it is written, or compiled.
#[derive(Debug)]
pub struct Program {
    language: Arc<Language>,
    code: Arc<str>,
    /// The file that is run: its name, its content, and whether it can be executed.
    file: (String, Vec<u8>, bool),
    limits: Limits,
}

impl Program {
    /// Compiles a program where its language needs that. A failure is the result of every test.
    pub fn prepare(
        sandbox: &Sandbox,
        language: &Arc<Language>,
        code: &Arc<str>,
        limits: &Limits,
    ) -> Result<Self, TestResult> {
        let mut limits = limits.clone();
        if language.reserves_memory {
            limits.address_space = Some(u64::MAX);
        }
        let (Some(command), Some(artifact)) = (&language.compile, &language.artifact) else {
            let file = (language.file.clone(), code.as_bytes().to_vec(), false);
            return Ok(Self { language: Arc::clone(language), code: Arc::clone(code), file, limits });
        };
        let mut job = Job::new(["/bin/sh", "-c", command.as_str()])
            .file(&language.file, code.as_bytes())
            .limits(compile_limits());
        job.environment.clone_from(&language.environment);
        match run(sandbox, &job) {
            Ok(run) if run.exit == Exit::Code(0) && run.hit.is_none() && !run.stdout.is_empty() => {
                let file = (artifact.clone(), run.stdout, true);
                Ok(Self { language: Arc::clone(language), code: Arc::clone(code), file, limits })
            }
            Ok(run) => {
                let verdict = failed(&run).unwrap_or(Verdict::Error);
                // A compiler says the cause first.
                Err(TestResult { verdict, cpu: run.cpu, message: start(&run.stderr) })
            }
            Err(failure) => Err(infrastructure(&failure)),
        }
    }

    /// Runs one test in a box of its own.
    pub fn run(&self, sandbox: &Sandbox, case: &Case) -> TestResult {
        let Self { language, code, file, limits } = self;
        let mut job = Job::new(language.run.clone()).limits(limits.clone());
        job.environment.clone_from(&language.environment);
        let token = random_token();
        match case {
            Case::Stdin { input, .. } => {
                job.files.push(file.clone());
                job.stdin = input.clone().into_bytes();
            }
            _ if language.name != "python" => {
                let message = "tests that call functions are for Python".to_owned();
                return TestResult { verdict: Verdict::Infrastructure, cpu: Duration::ZERO, message };
            }
            _ => {
                job.files.push((language.file.clone(), HARNESS.as_bytes().to_vec(), false));
                job.files.push(("solution.py".to_owned(), code.as_bytes().to_vec(), false));
                job.stdin = format!("{}\n", request(case, code, &token)).into_bytes();
            }
        }
        match run(sandbox, &job) {
            Ok(run) => {
                let verdict = failed(&run).unwrap_or_else(|| judge(case, &run.stdout, &token));
                let message = match verdict {
                    Verdict::Wrong if run.stderr.is_empty() => start(&run.stdout),
                    _ => message(&run.stderr),
                };
                TestResult { verdict, cpu: run.cpu, message }
            }
            Err(failure) => infrastructure(&failure),
        }
    }
}

/// Runs a job, and again where the host was overloaded.
fn run(sandbox: &Sandbox, job: &Job) -> Result<RunResult, BoxFailure> {
    match sandbox.run(job) {
        Err(BoxFailure::HostOverloaded) => sandbox.run(job),
        other => other,
    }
}

const HARNESS: &str = include_str!("harness.py");

/// Names that solutions use without importing them, and where they come from.
const PRELUDE: [(&[&str], &str); 9] = [
    (
        &["List", "Optional", "Dict", "Tuple", "Set", "Any", "Union", "Callable", "Iterable", "Iterator"],
        "from typing import *",
    ),
    (
        &["defaultdict", "Counter", "deque", "OrderedDict", "namedtuple", "collections"],
        "import collections\nfrom collections import *",
    ),
    (&["heapq", "heappush", "heappop", "heapify"], "import heapq\nfrom heapq import *"),
    (&["bisect"], "import bisect\nfrom bisect import *"),
    (&["math", "gcd", "sqrt", "inf", "ceil", "floor", "comb"], "import math\nfrom math import *"),
    (
        &["itertools", "permutations", "combinations", "accumulate", "product", "chain"],
        "import itertools\nfrom itertools import *",
    ),
    (
        &["functools", "lru_cache", "cache", "reduce", "cmp_to_key"],
        "import functools\nfrom functools import *",
    ),
    (&["re.", "string.", "random."], "import re, string, random"),
    (&["dataclass"], "from dataclasses import *"),
];

/// What the harness is asked.
fn request(case: &Case, code: &str, token: &str) -> serde_json::Value {
    let needed = PRELUDE.iter().filter(|(names, _)| names.iter().any(|name| code.contains(name)));
    let prelude = needed.map(|(_, lines)| *lines).collect::<Vec<_>>().join("\n");
    match case {
        Case::Call { function, arguments, .. } => {
            json!({"prelude": prelude, "function": function, "arguments": arguments})
        }
        Case::Expression { setup, source, expected, candidate } => {
            let truth = matches!(expected, Expected::Truth(_));
            json!({"prelude": prelude, "setup": setup, "expression": source, "truth": truth, "candidate": candidate})
        }
        Case::Script { setup, source, candidate } => {
            json!({"prelude": prelude, "setup": setup, "script": source, "token": token, "candidate": candidate})
        }
        Case::Stdin { .. } => json!(null),
    }
}

/// The verdict of a run that did not end well.
fn failed(run: &RunResult) -> Option<Verdict> {
    match run.hit {
        Some(LimitHit::Cpu | LimitHit::Wall) => return Some(Verdict::Time),
        Some(LimitHit::Memory) => return Some(Verdict::Memory),
        Some(LimitHit::Output) => return Some(Verdict::Output),
        Some(LimitHit::Processes) => return Some(Verdict::Error),
        None => {}
    }
    if run.exit == Exit::Code(0) {
        return None;
    }
    let message = message(&run.stderr);
    let memory =
        ["MemoryError", "bad_alloc", "OutOfMemoryError", "memory allocation of", "heap out of memory"];
    let exhausted = memory.iter().any(|word| message.contains(word));
    Some(if exhausted { Verdict::Memory } else { Verdict::Error })
}

/// Whether what came out of the box is what the test expects.
fn judge(case: &Case, stdout: &[u8], token: &str) -> Verdict {
    let passed = match case {
        Case::Stdin { output, .. } => same_output(stdout, output),
        _ => {
            // Nothing but the harness writes here, and it writes one line.
            let received = serde_json::from_slice(stdout).ok().and_then(|json| PyValue::received(&json));
            let Some(received) = received else { return Verdict::Error };
            match case {
                Case::Call { expected, .. } => {
                    expected.iter().any(|value| received.equals(value, Equality::Json))
                }
                Case::Expression { expected: Expected::Value(value), .. } => {
                    received.equals(value, Equality::Python)
                }
                Case::Expression { expected: Expected::Truth(truth), .. } => {
                    received == PyValue::Bool(*truth)
                }
                _ => received == PyValue::Str(token.to_owned()),
            }
        }
    };
    if passed { Verdict::Passed } else { Verdict::Wrong }
}

/// The end of a text, where an error says what it is.
fn message(stderr: &[u8]) -> String {
    let start = stderr.len().saturating_sub(MESSAGE);
    String::from_utf8_lossy(&stderr[start..]).into_owned()
}

/// The start of a text.
fn start(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(MESSAGE)]).into_owned()
}

fn infrastructure(failure: &BoxFailure) -> TestResult {
    TestResult { verdict: Verdict::Infrastructure, cpu: Duration::ZERO, message: failure.to_string() }
}

/// A text that a program cannot know before it runs.
fn random_token() -> String {
    let part = || std::collections::hash_map::RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", part(), part())
}
