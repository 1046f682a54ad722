//! `plaudit.sandbox`: programs run, and held against tests, in the sandbox of the process.

use crate::error::{self, ReadError};
use crate::parallel::{Workers, on_threads};
use crate::text::{NumbersAsText, text, type_name};
use crate::value::{parameters, to_value};
use plaudit::code::programs::{ProgramRunner, ProgramSandbox, program_in};
use plaudit::code::{CodeReward, Exit, SandboxError, SandboxPolicy, Verdict, probe};
use plaudit::recipe::{Recipe, RecipeErrors};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use std::sync::Arc;

/// Outcome, standard output and standard error, exit code, signal, CPU and wall seconds, and what there is to say.
type Ran = (&'static str, String, String, Option<i32>, Option<i32>, f64, f64, String);
/// The verdict on each test that was run, with CPU seconds and what there is to say; the number of tests; the score.
type Tested = (Vec<(&'static str, f64, String)>, usize, Option<f64>);

/// A layer's isolation, name, whether it works, what came of it, and the remedy.
type Layer = (String, &'static str, bool, String, Option<&'static str>);
/// A language, its tool, or why it cannot be run.
type LanguageLine = (String, Option<String>, Option<String>);

/// The sandbox of a process.
#[pyclass(frozen, name = "Sandbox", module = "plaudit._plaudit")]
pub(crate) struct PySandbox {
    host: Arc<ProgramSandbox>,
}

#[pymethods]
impl PySandbox {
    #[new]
    fn new(py: Python<'_>, unsafe_no_sandbox: bool) -> PyResult<Self> {
        let policy = SandboxPolicy { allow_none: unsafe_no_sandbox, ..SandboxPolicy::default() };
        let host = py.detach(|| ProgramSandbox::open(policy)).map_err(|error| unavailable(py, error))?;
        Ok(Self { host: Arc::new(host) })
    }

    /// What isolates programs: `namespaces`, `landlock` or `none`.
    #[getter]
    fn isolation(&self) -> String {
        self.host.isolation().to_string()
    }

    /// Runs programs, each on its input, as many at once as the sandbox has slots.
    fn run(
        &self,
        py: Python<'_>,
        programs: Vec<Bound<'_, PyAny>>,
        inputs: Vec<Bound<'_, PyAny>>,
        params: &Bound<'_, PyDict>,
    ) -> PyResult<Vec<Ran>> {
        let (programs, inputs) = (texts("programs", &programs)?, texts("stdins", &inputs)?);
        let runner = self.runner(py, params)?;
        on_threads(py, self.host.slots(), false, move |workers: &Workers| {
            workers.map(programs.len(), |at| match (&programs[at], &inputs[at]) {
                (Some(program), Some(input)) => run(&runner, program, input),
                _ => unread(Verdict::Error),
            })
        })
    }

    /// Runs programs against their tests: what came of each, or what is wrong with its tests.
    fn test(
        &self,
        py: Python<'_>,
        programs: Vec<Bound<'_, PyAny>>,
        tests: Vec<Bound<'_, PyAny>>,
        prompts: Vec<Option<String>>,
        params: &Bound<'_, PyDict>,
    ) -> PyResult<Vec<(Option<Tested>, Option<String>)>> {
        let programs = texts("programs", &programs)?;
        let read = |(at, tests): (usize, &Bound<'_, PyAny>)| to_value(tests, &|| format!("tests[{at}]"));
        let tests: Vec<Value> = tests.iter().enumerate().map(read).collect::<Result<_, ReadError>>()?;
        let runner = self.runner(py, params)?;
        on_threads(py, self.host.slots(), false, move |workers: &Workers| {
            workers.map(programs.len(), |at| {
                let prompt = prompts[at].as_deref().unwrap_or("");
                // What is not valid Unicode is no program in any language.
                let program = programs[at].as_deref().unwrap_or("\u{fffd}");
                match runner.test(program, &tests[at], prompt) {
                    Ok(done) => {
                        let results = done.results.iter();
                        let one = results
                            .map(|one| (one.verdict.name(), one.cpu.as_secs_f64(), one.message.clone()));
                        (Some((one.collect(), done.tests(), done.score())), None)
                    }
                    Err(error) => (None, Some(error.to_string())),
                }
            })
        })
    }
}

impl PySandbox {
    /// What runs programs with the parameters of `code_execution`.
    fn runner(&self, py: Python<'_>, params: &Bound<'_, PyDict>) -> PyResult<ProgramRunner> {
        let mut component = parameters(params)?;
        component.insert("reward".to_owned(), Value::from("code_execution"));
        let recipe = json!({ "components": { "code": component } });
        let plan = Recipe::from_value(&recipe).and_then(|recipe| recipe.plan_with(&[]));
        let plan = plan.map_err(|errors| error::argument(without_recipe(errors)))?;
        let reward: &Arc<CodeReward> =
            plan.code_rewards().next().ok_or_else(|| error::argument("language: none is known"))?;
        py.detach(|| self.host.runner(reward)).map_err(|error| unavailable(py, error))
    }
}

/// What is wrong with the parameters, by their names alone.
fn without_recipe(errors: RecipeErrors) -> String {
    errors.without_lines().to_string().replace("components.code.", "")
}

/// Texts of a list; nothing for one that is not valid Unicode.
fn texts(name: &str, given: &[Bound<'_, PyAny>]) -> PyResult<Vec<Option<PyBackedStr>>> {
    let read = |(at, item): (usize, &Bound<'_, PyAny>)| {
        let place = || format!("{name}[{at}]");
        match text(&place, item, NumbersAsText::Whole) {
            Ok(Some(text)) => Ok(Some(text)),
            Ok(None) => Err(error::argument(format!("{}: text is wanted, not {}", place(), type_name(item)))),
            Err(ReadError::Rollout(_)) => Ok(None),
            Err(ReadError::Argument(error)) => Err(error),
        }
    };
    given.iter().enumerate().map(read).collect()
}

fn run(runner: &ProgramRunner, program: &str, input: &str) -> Ran {
    let done = match runner.run(program, input) {
        Ok(done) => done,
        Err(result) => {
            let seconds = result.cpu.as_secs_f64();
            return (
                result.verdict.name(),
                String::new(),
                String::new(),
                None,
                None,
                seconds,
                0.0,
                result.message,
            );
        }
    };
    let failed = Verdict::of_failed(&done);
    let (code, signal) = match done.exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (None, Some(signal)),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let why = match (failed, done.exit) {
        (None, _) => String::new(),
        (Some(Verdict::Time), _) => "it took more than its time".to_owned(),
        (Some(Verdict::Memory), _) => "it took more than its memory".to_owned(),
        (Some(Verdict::Output), _) => "it wrote more than it may".to_owned(),
        (_, Exit::Signal(signal)) => format!("it ended by signal {signal}"),
        (_, Exit::Code(code)) => format!("it ended with exit code {code}"),
    };
    let (stdout, stderr) = (text(&done.stdout), text(&done.stderr));
    let outcome = failed.map_or("finished", Verdict::name);
    (outcome, stdout, stderr, code, signal, done.cpu.as_secs_f64(), done.wall.as_secs_f64(), why)
}

fn unread(verdict: Verdict) -> Ran {
    let why = "the program or its input is not valid Unicode".to_owned();
    (verdict.name(), String::new(), String::new(), None, None, 0.0, 0.0, why)
}

/// The error that says why programs cannot be run, and what helps.
fn unavailable(py: Python<'_>, error: SandboxError) -> PyErr {
    match error {
        SandboxError::NoIsolation(tried) => {
            let message = format!(
                "nothing isolates programs here; unsafe_no_sandbox=True runs them without (sandbox.unavailable)\n{}",
                tried.trim_end()
            );
            error::coded(py, "sandbox.unavailable", message)
        }
        SandboxError::NoLanguage(why) => error::coded(py, "sandbox.no_language", why),
    }
}

/// The program in a response: its last code block of the language.
#[pyfunction]
pub(crate) fn sandbox_program(response: &str, language: &str) -> Option<String> {
    program_in(response, language).map(std::borrow::Cow::into_owned)
}

/// What isolates programs here: the isolation; each layer that was tried, with its isolation, its name, whether it works, what came of it and the
/// remedy; and each language, with its tool or why it cannot be run.
#[pyfunction]
pub(crate) fn sandbox_report(py: Python<'_>) -> PyResult<(Option<String>, Vec<Layer>, Vec<LanguageLine>)> {
    let host = on_threads(py, 1, false, |_: &Workers| probe())?;
    let layers = host.sandbox.layers.into_iter();
    let layers = layers.map(|one| (one.isolation.to_string(), one.name, one.works, one.detail, one.remedy));
    let languages = host.languages.into_iter().map(|(name, found)| match found {
        Ok(tool) => (name, Some(tool), None),
        Err(why) => (name, None, Some(why)),
    });
    Ok((host.sandbox.isolation.map(|isolation| isolation.to_string()), layers.collect(), languages.collect()))
}
