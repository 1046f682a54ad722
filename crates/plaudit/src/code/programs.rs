//! Programs run by themselves, without rollouts and without the executor: one after the other on the caller's threads.

use super::executor::{installed, open_sandbox, usable_language};
use super::{CodeReward, SandboxError, SandboxPolicy, task};
use plaudit_box::{Isolation, RunResult, Sandbox};
use plaudit_code::{Execution, Language, Program, TestResult, TestsError, extract};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// A sandbox for programs of the languages of this host.
#[derive(Debug)]
pub struct ProgramSandbox {
    sandbox: Sandbox,
}

/// What runs programs of one language within the limits of a code reward.
#[derive(Debug, Clone)]
pub struct ProgramRunner {
    host: Arc<ProgramSandbox>,
    reward: Arc<CodeReward>,
    language: Arc<Language>,
}

impl ProgramSandbox {
    /// A sandbox of the best isolation that this host has.
    ///
    /// # Errors
    ///
    /// Nothing isolates programs here, and the policy does not allow that.
    pub fn open(policy: SandboxPolicy) -> Result<Self, SandboxError> {
        open_sandbox(policy, &installed().folders()).map(|sandbox| Self { sandbox })
    }

    /// The isolation of its boxes.
    pub fn isolation(&self) -> Isolation {
        self.sandbox.isolation()
    }

    /// How many programs it runs at once.
    pub fn slots(&self) -> usize {
        self.sandbox.slots()
    }

    /// What runs programs of the language of a reward, within its limits.
    ///
    /// # Errors
    ///
    /// The host has no tool for the language, or the sandbox cannot use it.
    pub fn runner(self: &Arc<Self>, reward: &Arc<CodeReward>) -> Result<ProgramRunner, SandboxError> {
        let language = usable_language(&self.sandbox, reward)?;
        Ok(ProgramRunner { host: Arc::clone(self), reward: Arc::clone(reward), language })
    }
}

impl ProgramRunner {
    /// Runs a program on an input.
    ///
    /// # Errors
    ///
    /// What comes of a program that does not compile, and of a sandbox that fails.
    pub fn run(&self, program: &str, input: &str) -> Result<RunResult, TestResult> {
        self.prepare(program)?.run_on(&self.host.sandbox, input)
    }

    /// Runs a program against its tests, in all forms that a code reward reads. `prompt` is the text of the task, where tests use its
    /// functions; a program may be what comes behind it.
    ///
    /// # Errors
    ///
    /// The tests cannot be read, or use a name that nothing defines.
    pub fn test(&self, program: &str, tests: &Value, prompt: &str) -> Result<Execution, TestsError> {
        let tests = task::parse(tests, prompt)?;
        let tests = match self.reward.most_tests {
            Some(most) => tests.first(most),
            None => tests,
        };
        let is_python = self.language.name == "python";
        let completed = tests.completed(program).filter(|_| is_python);
        let program = completed.map_or(Cow::Borrowed(program), Cow::Owned);
        if let Some(name) = tests.missing_name(&program).filter(|_| is_python) {
            return Err(TestsError::Form(format!("they use `{name}`, which nothing defines")));
        }
        Ok(match self.prepare(&program) {
            Ok(program) => program.test(&self.host.sandbox, &tests, self.reward.credit),
            Err(result) => {
                let count = tests.cases().len();
                Execution::new(vec![result; count], count, self.reward.credit)
            }
        })
    }

    fn prepare(&self, program: &str) -> Result<Program, TestResult> {
        let CodeReward { limits, test_process, .. } = &*self.reward;
        let program = Program::prepare(&self.host.sandbox, &self.language, &Arc::from(program), limits)?;
        Ok(program.test_process(*test_process))
    }
}

/// The program in a response: its last code block of the language.
pub fn program_in<'r>(response: &'r str, language: &str) -> Option<Cow<'r, str>> {
    extract(response, &Language::written(language))
}
