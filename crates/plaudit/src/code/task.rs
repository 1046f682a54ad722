//! One program with its tests: made of a rollout, named by a key, and read back as an outcome.

use super::code_execution::{CodeReward, TestsAt};
use crate::exec::lock;
use crate::outcome::{Fact, Info, Outcome};
use crate::reason::{Code, Reason};
use crate::text::Text;
use crate::text::scope::Scope;
use plaudit_box::Isolation;
use plaudit_code::{Execution, Language, TestProcess, TestResult, Tests, Verdict, extract};
use plaudit_text::{after_thought, exact};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

/// What the keys of results begin with. It changes when the meaning of a result does.
const PROTOCOL: &[u8] = b"plaudit execution 5";

/// A program and its tests, to be run or to be found in the journal.
#[derive(Debug, Clone)]
pub struct CodeTask {
    pub(super) reward: Arc<CodeReward>,
    pub(super) program: Arc<str>,
    pub(super) tests: Arc<RowTests>,
}

/// The tests of a row, with the hash of what they are read from.
#[derive(Debug)]
pub struct RowTests {
    content: RowContent,
    hash: [u8; 32],
}

/// What is known of the tests of a row.
#[derive(Debug)]
enum RowContent {
    Read(Arc<OpenTests>),
    /// Tests that may be compressed, a thousand times at most: read when a program's turn comes, and held while one needs them. So a
    /// batch takes no more memory than the executor has for programs under way.
    Unread {
        value: Value,
        prompt: String,
        most: Option<usize>,
        shared: Mutex<Weak<OpenTests>>,
        count: OnceLock<Result<usize, Reason>>,
    },
}

/// Tests that are read. Those that were packed count, in bytes, for as long as they are held.
#[derive(Debug)]
pub(super) struct OpenTests {
    tests: Tests,
    counted: Option<(Arc<AtomicUsize>, usize)>,
}

impl Deref for OpenTests {
    type Target = Tests;

    fn deref(&self) -> &Tests {
        &self.tests
    }
}

impl Drop for OpenTests {
    fn drop(&mut self) {
        if let Some((opened, size)) = &self.counted {
            opened.fetch_sub(*size, Ordering::Relaxed);
        }
    }
}

impl RowTests {
    /// Whether they may be large, and are held only while a program needs them.
    pub(super) fn is_packed(&self) -> bool {
        matches!(self.content, RowContent::Unread { .. })
    }

    /// Whether opening them takes no more memory: another program holds them, or is reading them.
    pub(super) fn is_open(&self) -> bool {
        match &self.content {
            RowContent::Read(_) => true,
            RowContent::Unread { shared, .. } => {
                shared.try_lock().map_or(true, |tests| tests.strong_count() > 0)
            }
        }
    }

    /// What a text is as the body of the function under test. Packed tests are of functions that are written whole.
    fn completed(&self, text: &str) -> Option<String> {
        match &self.content {
            RowContent::Read(tests) => tests.completed(text),
            RowContent::Unread { .. } => None,
        }
    }

    /// Whether the program, and the data beside it, define what the tests take for granted.
    fn check_names(&self, program: &str) -> Result<(), Reason> {
        let RowContent::Read(tests) = &self.content else { return Ok(()) };
        let missing = |name: &str| bad(&format!("they use `{name}`, which nothing defines"));
        tests.missing_name(program).map_or(Ok(()), |name| Err(missing(name)))
    }

    /// The program as it can be run where the signature of the data names what nobody defines.
    fn without_annotations(&self, program: &str) -> Option<String> {
        let RowContent::Read(tests) = &self.content else { return None };
        tests.without_annotations(program)
    }

    /// How many there are. Packed tests are read for it, those of one row at a time.
    fn count(&self) -> Result<usize, Reason> {
        static READING: Mutex<()> = Mutex::new(());
        match &self.content {
            RowContent::Read(tests) => Ok(tests.cases().len()),
            RowContent::Unread { value, prompt, most, count, .. } => {
                let read = || {
                    let _one = lock(&READING);
                    Ok(unpack(value, prompt, *most)?.cases().len())
                };
                count.get_or_init(read).clone()
            }
        }
    }

    /// The tests, read now where they are not; `opened` counts the bytes of packed ones.
    pub(super) fn open(&self, opened: &Arc<AtomicUsize>) -> Result<Arc<OpenTests>, Reason> {
        match &self.content {
            RowContent::Read(tests) => Ok(Arc::clone(tests)),
            RowContent::Unread { value, prompt, most, shared, .. } => {
                // Who comes second waits, and shares what the first one reads.
                let mut shared = lock(shared);
                if let Some(tests) = shared.upgrade() {
                    return Ok(tests);
                }
                let tests = unpack(value, prompt, *most)?;
                let size = tests.size();
                opened.fetch_add(size, Ordering::Relaxed);
                let tests = Arc::new(OpenTests { tests, counted: Some((Arc::clone(opened), size)) });
                *shared = Arc::downgrade(&tests);
                Ok(tests)
            }
        }
    }
}

fn unpack(value: &Value, prompt: &str, most: Option<usize>) -> Result<Tests, Reason> {
    Ok(first(parse(value, prompt).map_err(|error| bad(&error))?, most))
}

fn first(tests: Tests, most: Option<usize>) -> Tests {
    match most {
        Some(most) => tests.first(most),
        None => tests,
    }
}

fn bad(error: &dyn std::fmt::Display) -> Reason {
    Reason::new(Code::BadTests, format!("The tests of this rollout are of no use: {error}."))
}

/// What a code reward sees of one rollout.
#[derive(Debug, Clone, Copy)]
pub struct ProgramInput<'s> {
    /// The response.
    pub text: &'s Text<'s>,
    /// The reference.
    pub reference: Option<&'s str>,
    /// The same, also where it stands in a field that is not called so, and may be no tests.
    pub found: Option<&'s str>,
    /// Everything else that the caller gave.
    pub extra: &'s Map<String, Value>,
    /// The text of the task; empty where there is none.
    pub prompt: &'s str,
}

/// Where a row has its tests.
#[derive(Debug, Clone, Copy, PartialEq)]
enum TestsSource<'s> {
    /// One value: a text, a list or an object.
    Value(&'s Value, &'s str),
    /// A text.
    Text(&'s str, &'s str),
    /// Fields of `extra` beside others.
    Fields(&'s Map<String, Value>, &'s str),
}

/// The names in `extra` that hold all tests of a row.
const WHOLE: [&str; 2] = ["inputs_outputs", "input_output"];

/// The fields of `extra` of which one must be there; the others only say more about them.
const HOLDING: [&str; 11] = [
    "inputs",
    "test",
    "tests",
    "test_list",
    "test_cases",
    "public_test_cases",
    "private_test_cases",
    "public_tests",
    "private_tests",
    "generated_tests",
    "test_code",
];

/// The names of fields that hold all tests where none of the others is there: of open-r1, of PRIME's and AceCode's kin.
const OTHERS: [&str; 4] = ["verification_info", "official_tests", "unit_tests", "assert_case"];

/// Whether a text that may be another kind of reference has tests in it.
fn has_tests(text: &&str) -> bool {
    let keys = ["\"inputs\"", "\"input\"", "assert ", "\"functional\"", "_test_cases\""];
    text.trim_start().starts_with(['[', '{']) && keys.iter().any(|key| text.contains(key))
}

impl<'s> TestsSource<'s> {
    fn of(sample: &ProgramInput<'s>, at: &TestsAt) -> Option<Self> {
        let prompt = sample.prompt;
        let reference = || sample.reference.map(|text| Self::Text(text, prompt));
        let value = |value| Self::Value(value, prompt);
        match at {
            TestsAt::Reference => reference(),
            TestsAt::Extra(keys) => {
                let (first, rest) = keys.split_first()?;
                rest.iter().try_fold(sample.extra.get(first)?, |value, key| value.get(key)).map(value)
            }
            TestsAt::Usual => {
                let complete = |tests: &&Value| match tests {
                    Value::Object(_) => true,
                    Value::String(text) => {
                        text.contains("def ")
                            || text.contains("assert ")
                            || text.trim_start().starts_with('{')
                    }
                    _ => false,
                };
                let whole = WHOLE.iter().find_map(|key| sample.extra.get(*key));
                let whole = whole.or_else(|| sample.extra.get("tests").filter(complete));
                let whole =
                    whole.or_else(|| sample.extra.get("test_cases").filter(|tests| tests.is_object()));
                let whole = whole.or_else(|| sample.extra.get("verifier_metadata")?.get("unit_tests"));
                let fields = || HOLDING.iter().any(|key| sample.extra.contains_key(*key));
                whole
                    .map(value)
                    .or_else(|| fields().then_some(Self::Fields(sample.extra, prompt)))
                    .or_else(reference)
                    .or_else(|| {
                        OTHERS
                            .iter()
                            .find_map(|key| sample.extra.get(*key))
                            .filter(|value| !value.is_null())
                            .map(value)
                    })
                    .or_else(|| sample.found.filter(has_tests).map(|text| Self::Text(text, prompt)))
            }
        }
    }

    /// Whether both hold the same tests.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Fields(ours, our_prompt), Self::Fields(theirs, their_prompt)) => {
                our_prompt == their_prompt
                    && Tests::FIELDS.iter().all(|key| ours.get(*key) == theirs.get(*key))
            }
            _ => self == other,
        }
    }

    /// Whether the tests may be compressed, as those of LiveCodeBench are.
    fn is_packed(&self) -> bool {
        const PACKED: &str = "_test_cases";
        let named = |map: &Map<String, Value>| map.keys().any(|key| key.ends_with(PACKED));
        match self {
            Self::Text(text, _) => text.contains(PACKED),
            Self::Value(Value::String(text), _) => text.contains(PACKED),
            Self::Value(Value::Object(map), _) => {
                named(map)
                    || WHOLE
                        .iter()
                        .any(|key| map.get(*key).is_some_and(|value| Self::Value(value, "").is_packed()))
            }
            Self::Value(..) => false,
            Self::Fields(extra, _) => named(extra),
        }
    }

    /// The tests for later.
    fn keep(&self, most: Option<usize>) -> Result<RowTests, Reason> {
        let (value, prompt) = match self {
            Self::Value(value, prompt) => ((*value).clone(), *prompt),
            Self::Text(text, prompt) => (Value::String((*text).to_owned()), *prompt),
            Self::Fields(extra, prompt) => {
                let field = |key: &&str| Some(((*key).to_owned(), extra.get(*key)?.clone()));
                (Value::Object(Tests::FIELDS.iter().filter_map(field).collect()), *prompt)
            }
        };
        let mut hasher = blake3::Hasher::new();
        hasher.update(&serde_json::to_vec(&value).map_err(|error| bad(&error))?);
        hasher.update(prompt.as_bytes());
        let hash = *hasher.finalize().as_bytes();
        let (prompt, shared, count) = (prompt.to_owned(), Mutex::default(), OnceLock::new());
        Ok(RowTests { content: RowContent::Unread { value, prompt, most, shared, count }, hash })
    }

    fn read(&self, most: Option<usize>) -> Result<RowTests, Reason> {
        if self.is_packed() {
            return self.keep(most);
        }
        let (tests, written) = match self {
            Self::Value(value, prompt) => (parse(value, prompt), serde_json::to_vec(value)),
            Self::Text(text, prompt) => {
                (parse(&Value::String((*text).to_owned()), prompt), Ok(text.as_bytes().to_vec()))
            }
            Self::Fields(extra, prompt) => {
                let fields: BTreeMap<&str, &Value> =
                    Tests::FIELDS.iter().filter_map(|key| Some((*key, extra.get(*key)?))).collect();
                (Tests::of_fields(extra, prompt), serde_json::to_vec(&fields))
            }
        };
        let tests = tests.map_err(|error| bad(&error))?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&written.map_err(|error| bad(&error))?);
        // What the tests take from the text of the task belongs to them.
        hasher.update(tests.task_code().as_bytes());
        let hash = *hasher.finalize().as_bytes();
        let tests = OpenTests { tests: first(tests, most), counted: None };
        Ok(RowTests { content: RowContent::Read(Arc::new(tests)), hash })
    }
}

/// Tests by themselves, or below the key that RM-Gallery's labels have.
pub(super) fn parse(value: &Value, prompt: &str) -> Result<Tests, plaudit_code::TestsError> {
    let inner = match value {
        Value::Object(fields) => WHOLE.iter().find_map(|key| fields.get(*key)).map(Cow::Borrowed),
        Value::String(text) if WHOLE.iter().any(|key| text.contains(key)) => {
            let fields = exact::read::<Map<String, Value>>(text).ok();
            fields.and_then(|mut fields| WHOLE.iter().find_map(|key| fields.remove(*key))).map(Cow::Owned)
        }
        _ => None,
    };
    Tests::parse_for(inner.as_deref().unwrap_or(value), prompt)
}

/// Makes the tasks of one group, whose members mostly have the same tests.
#[derive(Debug, Default)]
pub struct TaskMaker<'s> {
    last: Option<(TestsSource<'s>, Result<Arc<RowTests>, Reason>)>,
}

impl<'s> TaskMaker<'s> {
    /// The task of a rollout, or the outcome that it has without one.
    pub fn task(&mut self, reward: &Arc<CodeReward>, sample: &ProgramInput<'s>) -> Result<CodeTask, Outcome> {
        let source =
            TestsSource::of(sample, &reward.tests).ok_or_else(|| Outcome::skipped(Code::MissingTests))?;
        let known = self.last.as_ref().filter(|(last, _)| last.is_same(&source));
        let tests = match known {
            Some((_, tests)) => tests.clone(),
            None => {
                let tests = source.read(reward.most_tests).map(Arc::new);
                self.last = Some((source, tests.clone()));
                tests
            }
        };
        let tests = tests.map_err(Outcome::invalid)?;
        let response = part(reward.scope, sample.text);
        let mut program = program(response, &reward.written, reward.unfenced, |text| tests.completed(text));
        if reward.written.name == "python" {
            let written = program.as_deref().unwrap_or("");
            tests.check_names(written).map_err(Outcome::invalid)?;
            program = tests.without_annotations(written).map(Cow::Owned).or(program);
        }
        match program {
            Some(program) => Ok(CodeTask { reward: Arc::clone(reward), program: Arc::from(program), tests }),
            None => {
                let count = tests.count().map_err(Outcome::invalid)? as u64;
                Err(Outcome::scored(
                    0.0,
                    Info::of([
                        ("why", Fact::Word("no_code")),
                        ("tests", Fact::Count(count)),
                        ("passed", Fact::Count(0)),
                    ]),
                ))
            }
        }
    }
}

/// The part of a response that holds the program. One that is only thought of is no answer.
fn part<'t>(scope: Scope, text: &'t Text<'_>) -> &'t str {
    match scope {
        Scope::Final | Scope::Full => after_thought(scope.of(text)).unwrap_or(""),
        other => other.of(text),
    }
}

/// The program of a response: its code, behind the task's where that makes it one. A response without a fence is a body where it is
/// indented like one, and else a program only where that is allowed.
fn program<'r>(
    response: &'r str,
    language: &Language,
    unfenced: bool,
    completed: impl Fn(&str) -> Option<String>,
) -> Option<Cow<'r, str>> {
    let completed = |text: &str| completed(text).filter(|_| language.name == "python").map(Cow::Owned);
    if let Some(code) = extract(response, language) {
        return completed(&code).or(Some(code));
    }
    let fenced = response.contains("```") || response.contains("~~~");
    let whole = || (unfenced && !response.trim().is_empty()).then_some(Cow::Borrowed(response));
    let body = || {
        completed(response)
            .filter(|_| unfenced || response.trim_start_matches(['\n', '\r']).starts_with([' ', '\t']))
    };
    if fenced { None } else { body().or_else(whole) }
}

/// How a program was run, as the journal keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredRun {
    /// The isolation of the sandbox: `namespaces`, `landlock` or `none`.
    pub sandbox: String,
    /// How many tests there are.
    pub tests: usize,
    /// Of each test that was run: the verdict, microseconds of CPU time, and what there is to say.
    results: Vec<(String, u64, String)>,
}

/// How much of a message is kept, for the first test that failed; of the others, none is.
const MESSAGE: usize = 1000;

impl StoredRun {
    /// What a sandbox of that isolation found.
    pub(super) fn new(isolation: Isolation, tests: usize, results: &[TestResult]) -> Self {
        let mut failed = false;
        let results = results.iter().map(|result| {
            let message = match result.verdict != Verdict::Passed && !failed {
                true => end(&result.message),
                false => "",
            };
            failed |= result.verdict != Verdict::Passed;
            let cpu = u64::try_from(result.cpu.as_micros()).unwrap_or(u64::MAX);
            (result.verdict.name().to_owned(), cpu, message.to_owned())
        });
        Self { sandbox: isolation.to_string(), tests, results: results.collect() }
    }

    /// The verdict and the CPU time of each test that was run; nothing where it was not written by this program.
    pub fn results(&self) -> Option<Vec<(Verdict, Duration)>> {
        let one = |(verdict, cpu, _): &(String, u64, String)| {
            Some((Verdict::named(verdict)?, Duration::from_micros(*cpu)))
        };
        self.results.iter().map(one).collect()
    }
}

/// The end of a text, which says what an error is.
fn end(text: &str) -> &str {
    let mut start = text.len().saturating_sub(MESSAGE);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

impl CodeTask {
    /// Whether its tests can be read.
    pub(crate) fn check_tests(&self) -> Result<(), Reason> {
        self.tests.count().map(drop)
    }

    /// The reward that asks.
    pub fn reward(&self) -> &CodeReward {
        &self.reward
    }

    /// The key under which the journal keeps its result. Results of programs that nothing isolated have keys of their own.
    pub fn key(&self, isolated: bool) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        let parts: [&[u8]; 5] = [
            PROTOCOL,
            &[u8::from(isolated)],
            &self.reward.identity,
            &self.tests.hash,
            self.program.as_bytes(),
        ];
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        *hasher.finalize().as_bytes()
    }

    /// What a stored run says.
    pub fn outcome(&self, stored: &StoredRun) -> Outcome {
        let damaged =
            || Outcome::invalid(Reason::new(Code::SandboxFailed, "What the journal holds cannot be read."));
        let Some(results) = stored.results() else { return damaged() };
        let result = |(verdict, cpu): &(Verdict, Duration)| TestResult {
            verdict: *verdict,
            cpu: *cpu,
            message: String::new(),
        };
        let execution =
            Execution::new(results.iter().map(result).collect(), stored.tests, self.reward.credit);
        let Some(score) = execution.score() else { return damaged() };
        let failed = results.iter().position(|(verdict, _)| *verdict != Verdict::Passed);
        let verdicts = results.iter().map(|(verdict, _)| verdict.name().to_owned()).collect();
        let mut info = Info::of([
            ("why", Fact::Word(failed.map_or("passed", |at| results[at].0.name()))),
            ("tests", Fact::Count(stored.tests as u64)),
            ("passed", Fact::Count(execution.passed() as u64)),
            ("verdicts", Fact::Texts(verdicts)),
        ]);
        if let Some(at) = failed {
            info.push("failed_test", Fact::Count(at as u64 + 1));
            info.push("message", Fact::Text(stored.results[at].2.clone()));
        }
        info.push("sandbox", Fact::Text(stored.sandbox.clone()));
        if self.reward.test_process == TestProcess::Together {
            info.push("isolation", Fact::Word("together"));
        }
        Outcome::scored(score, info)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_the_thought_is_no_answer() {
        let python = Language::written("python");
        let (draft, answer) = ("```python\ndraft\n```", "```python\nanswer\n```");
        for (response, wanted) in [
            (format!("<think>\n{draft}\n</think>\n{answer}"), Some("answer\n")),
            (format!("{draft}\n</think>\n{answer}"), Some("answer\n")),
            (format!("<think>\n{draft}\n</think>\nDone."), None),
            (format!("<think>\n{draft}"), None),
            (answer.to_owned(), Some("answer\n")),
        ] {
            let text = Text::new(response.as_str());
            let read = |scope| program(part(scope, &text), &python, false, |_| None);
            assert_eq!(read(Scope::Final).as_deref(), wanted, "{response}");
            assert!(read(Scope::All).is_some(), "{response}");
        }
    }
}
