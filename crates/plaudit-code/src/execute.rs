//! Runs a program against its tests, each in a box of its own, and gives a verdict for each.

use crate::cases::{Case, Tests};
use crate::compare::same_output;
use crate::language::{Language, PYTHON_START, TOOLS};
use crate::prelude;
use crate::received::received;
use plaudit_box::{BoxError, Exit, Job, LimitHit, Limits, RunResult, Sandbox};
use plaudit_text::{Equality, exact};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
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
    /// The test cannot be run, whatever the program is.
    FaultyTest,
    /// The sandbox failed; the program is not to blame.
    Infrastructure,
}

impl Verdict {
    /// Whether it says nothing of the program, so that there is no score.
    pub const fn is_no_verdict(self) -> bool {
        matches!(self, Self::FaultyTest | Self::Infrastructure)
    }

    /// All verdicts.
    pub const ALL: [Self; 8] = [
        Self::Passed,
        Self::Wrong,
        Self::Error,
        Self::Time,
        Self::Memory,
        Self::Output,
        Self::FaultyTest,
        Self::Infrastructure,
    ];

    /// The verdict on a program that did not end well; nothing where it did.
    pub fn of_failed(run: &RunResult) -> Option<Self> {
        failed(run)
    }

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
            Self::FaultyTest => "faulty_test",
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

    /// How many tests there are, those among them that were not run.
    pub fn tests(&self) -> usize {
        self.tests
    }

    /// How many tests passed.
    pub fn passed(&self) -> usize {
        self.results.iter().filter(|result| result.verdict == Verdict::Passed).count()
    }

    /// The score, or none where the sandbox failed or a test cannot be run.
    pub fn score(&self) -> Option<f64> {
        if self.results.iter().any(|result| result.verdict.is_no_verdict()) {
            return None;
        }
        Some(match self.credit {
            Credit::Partial => self.passed() as f64 / self.tests as f64,
            Credit::AllOrNothing => f64::from(u8::from(self.passed() == self.tests)),
        })
    }
}

/// Where a test that is a program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TestProcess {
    /// In a box of its own: a program cannot forge its verdict.
    #[default]
    Apart,
    /// In the program's interpreter, as in HumanEval's own harness: a program can forge its verdict.
    Together,
}

/// How much of standard error is kept.
const MESSAGE: usize = 2000;

/// The longest program that is run, in bytes. The longest of a contest are a tenth of it, and what is longer takes seconds to
/// compile.
const SOURCE: usize = 1 << 20;

/// The threads that a runtime has for itself, beside those of its program: Java 14, Node 11.
const RUNTIME_THREADS: u32 = 16;

/// The limits of a compiler.
fn compile_limits() -> Limits {
    Limits {
        cpu: Duration::from_secs(30),
        memory: 2 << 30,
        // Compilers and their virtual machines reserve far more than they use.
        address_space: Some(64 << 30),
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
    program.test(sandbox, tests, credit)
}

/// A program that is ready to run: as it is written, or compiled.
#[derive(Debug)]
pub struct Program {
    language: Arc<Language>,
    code: Arc<str>,
    /// The file that is run: its name, its content, and whether it can be executed.
    file: (String, Vec<u8>, bool),
    /// The imports that a Python program takes for granted.
    prelude: String,
    limits: Limits,
    test_process: TestProcess,
}

impl Program {
    /// The same program, which shares an interpreter with its tests or does not.
    #[must_use]
    pub fn test_process(mut self, test_process: TestProcess) -> Self {
        self.test_process = test_process;
        self
    }

    /// Compiles a program where its language needs that. A failure is the result of every test.
    pub fn prepare(
        sandbox: &Sandbox,
        language: &Arc<Language>,
        code: &Arc<str>,
        limits: &Limits,
    ) -> Result<Self, TestResult> {
        if code.len() > SOURCE {
            let message = format!("the program is too long: {} bytes, at most {SOURCE}", code.len());
            return Err(TestResult { verdict: Verdict::Error, cpu: Duration::ZERO, message });
        }
        let mut limits = limits.clone();
        limits.address_space = language.address_space(limits.memory).or(limits.address_space);
        if language.reserves_memory {
            limits.processes = limits.processes.saturating_add(RUNTIME_THREADS);
        }
        let (Some(command), Some(artifact)) = (&language.compile, &language.artifact) else {
            let file = (language.file.clone(), code.as_bytes().to_vec(), false);
            let prelude = if language.name == "python" { prelude::imports(code) } else { String::new() };
            return Ok(Self {
                language: Arc::clone(language),
                code: Arc::clone(code),
                file,
                prelude,
                limits,
                test_process: TestProcess::Apart,
            });
        };
        let mut job = Job::new(["/bin/sh", "-c", command.as_str()])
            .file(&language.file, code.as_bytes())
            .limits(compile_limits());
        job.environment.clone_from(&language.environment);
        // A compiler looks for its parts there, such as the linker.
        if !job.environment.iter().any(|(name, _)| name == "PATH") {
            job.environment.push(("PATH".into(), TOOLS.into()));
        }
        match run_or_excuse(|patience| sandbox.run(&with_patience(&job, patience))) {
            Ok(run) if run.exit == Exit::Code(0) && run.hit.is_none() && !run.stdout.is_empty() => {
                let file = (artifact.clone(), run.stdout, true);
                let (language, code) = (Arc::clone(language), Arc::clone(code));
                let prelude = String::new();
                Ok(Self { language, code, file, prelude, limits, test_process: TestProcess::Apart })
            }
            Ok(run) => {
                let verdict = failed(&run).unwrap_or(Verdict::Error);
                // A compiler says the cause first.
                Err(TestResult { verdict, cpu: run.cpu, message: start(&run.stderr) })
            }
            Err(result) => Err(result),
        }
    }

    /// Runs the tests one after the other. All or nothing ends with the first that does not pass.
    pub fn test(&self, sandbox: &Sandbox, tests: &Tests, credit: Credit) -> Execution {
        let mut results = Vec::new();
        for case in tests.cases() {
            let result = self.run(sandbox, case);
            let passed = result.verdict == Verdict::Passed;
            results.push(result);
            if credit == Credit::AllOrNothing && !passed {
                break;
            }
        }
        Execution::new(results, tests.cases().len(), credit)
    }

    /// Runs the program on an input, in a box of its own, and compares its output with nothing.
    ///
    /// # Errors
    ///
    /// The sandbox failed, or the host is too busy.
    pub fn run_on(&self, sandbox: &Sandbox, input: &str) -> Result<RunResult, TestResult> {
        run_or_excuse(|patience| sandbox.run(&with_patience(&self.job_on(input), patience)))
    }

    fn job_on(&self, input: &str) -> Job {
        let mut job = self.job();
        job.files.push(self.file.clone());
        job.stdin = input.as_bytes().to_vec();
        if let Some(start) = job.arguments.last_mut().filter(|start| *start == PYTHON_START) {
            start.insert_str(0, &self.prelude);
        }
        job
    }

    /// Runs one test in a box of its own; a script and the program in two.
    pub fn run(&self, sandbox: &Sandbox, case: &Case) -> TestResult {
        let mut job = self.job();
        let mut request = match case {
            Case::Stdin { input, .. } => return self.run_alone(sandbox, case, &self.job_on(input)),
            _ if self.language.name != "python" => {
                let message = "tests that call functions are for Python".to_owned();
                return TestResult { verdict: Verdict::FaultyTest, cpu: Duration::ZERO, message };
            }
            Case::Call { function, arguments, .. } => json!({"function": function, "arguments": arguments}),
            Case::Expression { setup, source, candidate, nodes, .. } => {
                json!({"setup": setup, "expression": source, "candidate": candidate, "nodes": nodes.name()})
            }
            Case::Script { setup, source, nodes, .. } => {
                let asks = ["capsys", "capfd", "stdout", "stderr"];
                let printed = asks.iter().any(|word| source.contains(word) || setup.contains(word));
                let mut streams = vec!["input"];
                streams.extend(printed.then_some("output"));
                streams.extend(source.contains("builtins.print").then_some("print"));
                json!({"streams": streams, "nodes": nodes.name()})
            }
        };
        request["prelude"] = self.prelude.as_str().into();
        if let (Case::Script { .. }, TestProcess::Together) = (case, self.test_process) {
            return self.run_together(sandbox, job, case);
        }
        add_harness(&mut job, &self.language, &[NODES, WIRE, PROGRAM_SIDE], &request);
        job.files.push(("solution.py".to_owned(), self.code.as_bytes().to_vec(), false));
        if let Case::Script { setup, source, candidate, prompt, function, nodes } = case {
            let mut test = self.job();
            test.limits.errors = test.limits.errors.max(VERDICT);
            let request = json!({
                "setup": setup, "source": source, "candidate": candidate, "prompt": prompt, "function": function,
                "libraries": libraries(setup, source), "nodes": nodes.name(),
            });
            add_harness(
                &mut test,
                &self.language,
                &[NODES, WIRE, RUNNER, TEST_SOURCE, TEST_OBJECTS, TEST_SIDE],
                &request,
            );
            return run_script(sandbox, &job, &test);
        }
        self.run_alone(sandbox, case, &job)
    }

    /// Runs a script and the program in one interpreter. It has passed where the harness comes to its end and says so.
    fn run_together(&self, sandbox: &Sandbox, mut job: Job, case: &Case) -> TestResult {
        let Case::Script { setup, source, candidate, prompt, function, nodes } = case else {
            return TestResult { verdict: Verdict::Error, cpu: Duration::ZERO, message: String::new() };
        };
        // Not known before the program runs, so that what it prints is no verdict by accident.
        let nonce = RandomState::new().hash_one(source).to_string();
        let request = json!({
            "setup": setup, "source": source, "candidate": candidate, "prompt": prompt, "function": function,
            "libraries": libraries(setup, source), "prelude": self.prelude, "nonce": nonce, "nodes": nodes.name(),
        });
        add_harness(&mut job, &self.language, &[NODES, RUNNER, TOGETHER], &request);
        job.files.push(("solution.py".to_owned(), self.code.as_bytes().to_vec(), false));
        let run = match run_or_excuse(|patience| sandbox.run(&with_patience(&job, patience))) {
            Ok(run) => run,
            Err(result) => return result,
        };
        let told: Option<Value> = serde_json::from_slice(&run.stdout).ok();
        let told = told.filter(|told| told["nonce"] == nonce.as_str());
        let (verdict, text) = told.as_ref().map_or((Verdict::Error, ""), told_verdict);
        let verdict = failed(&run).unwrap_or(verdict);
        let message = if text.is_empty() { message(&run.stderr) } else { start(text.as_bytes()) };
        TestResult { verdict, cpu: run.cpu, message }
    }

    fn job(&self) -> Job {
        let mut job = Job::new(self.language.arguments(&self.limits)).limits(self.limits.clone());
        job.environment.clone_from(&self.language.environment);
        job
    }

    fn run_alone(&self, sandbox: &Sandbox, case: &Case, job: &Job) -> TestResult {
        match run_or_excuse(|patience| sandbox.run(&with_patience(job, patience))) {
            Ok(run) => {
                let verdict = failed(&run).unwrap_or_else(|| judge(case, &run.stdout));
                let message = match verdict {
                    Verdict::Wrong if run.stderr.is_empty() => start(&run.stdout),
                    _ => message(&run.stderr),
                };
                TestResult { verdict, cpu: run.cpu, message }
            }
            Err(result) => result,
        }
    }
}

/// Runs a program and its test, which talk to each other. What happens to the program decides first; then the test does.
fn run_script(sandbox: &Sandbox, program: &Job, test: &Job) -> TestResult {
    let run = |patience| {
        sandbox.run_pair([program, test].map(|job| with_patience(job, patience)).each_ref().map(|job| &**job))
    };
    let [program, test] = match run_or_excuse(run) {
        Ok(runs) => runs,
        Err(result) => return result,
    };
    let cpu = program.cpu + test.cpu;
    // One that was over a limit takes the other along, which is then not to blame for its end.
    let limit = program.hit.and_then(|_| failed(&program)).or_else(|| test.hit.and_then(|_| failed(&test)));
    if let Some(verdict) = limit.or_else(|| failed(&program)) {
        return TestResult { verdict, cpu, message: message(&program.stderr) };
    }
    let told: Option<Value> = serde_json::from_slice(&test.stderr).ok().filter(|_| failed(&test).is_none());
    let (verdict, text) = told.as_ref().map_or((Verdict::Error, ""), told_verdict);
    let message = if text.is_empty() { message(&program.stderr) } else { start(text.as_bytes()) };
    TestResult { verdict, cpu, message }
}

/// The verdict that a test's harness tells, and what there is to say.
fn told_verdict(told: &Value) -> (Verdict, &str) {
    let verdict = match told["verdict"].as_str() {
        Some("passed") => Verdict::Passed,
        Some("wrong") => Verdict::Wrong,
        Some("memory") => Verdict::Memory,
        // The program has had no part in it.
        Some("invalid") => Verdict::FaultyTest,
        _ => Verdict::Error,
    };
    (verdict, told["message"].as_str().unwrap_or(""))
}

/// The libraries that a test names.
fn libraries(setup: &str, source: &str) -> BTreeMap<&'static str, &'static str> {
    LIBRARIES.into_iter().filter(|(name, _)| source.contains(name) || setup.contains(name)).collect()
}

/// Puts the harness and what it is asked into a box.
fn add_harness(job: &mut Job, language: &Language, parts: &[&str], request: &Value) {
    job.files.push((language.file.clone(), parts.concat().into_bytes(), false));
    job.files.push(("request.json".to_owned(), exact::write(request).into_bytes(), false));
}

/// How much longer a program has on the clock that a busy host kept from running.
const PATIENCE: u32 = 4;

/// Runs something of a program, and again with more time on the clock where the host was overloaded. A busy host is believed once, so that
/// nothing can wait in this way for ever: after that it has taken too long.
fn run_or_excuse<T>(run: impl Fn(u32) -> Result<T, BoxError>) -> Result<T, TestResult> {
    let result = match run(1) {
        Err(BoxError::HostOverloaded) => run(PATIENCE),
        other => other,
    };
    result.map_err(|failure| {
        let overloaded = failure == BoxError::HostOverloaded;
        let verdict = if overloaded { Verdict::Time } else { Verdict::Infrastructure };
        TestResult { verdict, cpu: Duration::ZERO, message: failure.to_string() }
    })
}

/// A job with so many times its time on the clock.
fn with_patience(job: &Job, patience: u32) -> Cow<'_, Job> {
    if patience == 1 {
        return Cow::Borrowed(job);
    }
    let mut job = job.clone();
    job.limits.wall = Some(job.limits.wall() * patience);
    Cow::Owned(job)
}

/// The harness: what both sides need, with nodes of lists and trees, the side of the program, that of the test in three parts, both sides in
/// one, and the libraries that tests use.
const NODES: &str = include_str!("python/nodes.py");
const WIRE: &str = include_str!("python/wire.py");
const PROGRAM_SIDE: &str = include_str!("python/program.py");
const RUNNER: &str = include_str!("python/runner.py");
const TEST_SOURCE: &str = include_str!("python/test_source.py");
const TEST_OBJECTS: &str = include_str!("python/test_objects.py");
const TEST_SIDE: &str = include_str!("python/test.py");
const TOGETHER: &str = include_str!("python/together.py");
const LIBRARIES: [(&str, &str); 2] =
    [("pytest", include_str!("python/pytest.py")), ("numpy", include_str!("python/numpy.py"))];

/// Bytes for the verdict of a test with its message.
const VERDICT: usize = 64 << 10;

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
fn judge(case: &Case, stdout: &[u8]) -> Verdict {
    // Nothing but the harness writes here, and it writes one line.
    let received = || serde_json::from_slice(stdout).ok().and_then(|json| received(&json));
    let passed = match case {
        Case::Stdin { output, .. } => same_output(stdout, output),
        Case::Call { expected, .. } => {
            let Some(received) = received() else { return Verdict::Error };
            expected.iter().any(|value| received.equals(value, Equality::Json))
        }
        Case::Expression { expected, .. } => {
            let Some(received) = received() else { return Verdict::Error };
            received.equals(expected, Equality::Python)
        }
        // Its verdict comes from its own box.
        Case::Script { .. } => return Verdict::Error,
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn a_busy_host_is_believed_once() {
        let asked = RefCell::new(Vec::new());
        let run = |fails: usize| {
            asked.borrow_mut().clear();
            run_or_excuse(|patience| {
                asked.borrow_mut().push(patience);
                if asked.borrow().len() > fails { Ok(7) } else { Err(BoxError::HostOverloaded) }
            })
        };
        assert_eq!((run(1), asked.borrow().as_slice()), (Ok(7), [1, PATIENCE].as_slice()));
        assert_eq!(run(2).unwrap_err().verdict, Verdict::Time);
        assert_eq!(asked.borrow().len(), 2);
        let lost = run_or_excuse(|_| Err::<u8, _>(BoxError::HostError("wait4", 10))).unwrap_err();
        assert_eq!(lost.verdict, Verdict::Infrastructure);
        let job =
            Job::new(["true"]).limits(Limits { wall: Some(Duration::from_secs(3)), ..Limits::default() });
        assert_eq!(with_patience(&job, PATIENCE).limits.wall(), Duration::from_secs(12));
    }
}
