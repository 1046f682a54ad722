//! `code_execution`: the share of its tests that the program of a response passes.

use crate::reward::{ParamError, Properties, Range, ResourceCache, Reward};
use crate::text::scope::Scope;
use plaudit_box::Limits;
use plaudit_code::{Credit, Language, TestProcess};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The share of its tests that the program in the response passes, run in a sandbox.
///
/// ## What it scores
/// The program is the last fenced block of the language, or else the last block that names none. Each test runs in a box of its
/// own, without a network, without the host's files, with limits on time, memory, processes, files and output. What a test
/// expects stays outside: outputs and results are compared there, and a test that is a program runs in a second box. The tests are
/// those of the row:
///
/// | Where | Form |
/// |---|---|
/// | `extra.inputs_outputs`, `extra.input_output`, or the reference | `{"inputs": [...], "outputs": [...], "fn_name": ...}` as in RM-Gallery, APPS, TACO and verl's `prime_code`, also as JSON text |
/// | `extra.verifier_metadata.unit_tests` | the same, as in NeMo-Gym |
/// | `extra.tests`, or the reference | a list of `{"input": ..., "output": ...}`, or of asserts; test functions as text, as in KodCode |
/// | `extra.test_list` with `extra.test_setup_code` | asserts, as in MBPP |
/// | `extra.test` with `extra.entry_point` | a function `check`, as in HumanEval |
/// | `extra.public_test_cases`, `extra.private_test_cases` | as in LiveCodeBench |
/// | `extra.public_tests`, `extra.private_tests`, `extra.generated_tests` | `{"input": [...], "output": [...]}`, as in CodeContests |
/// | `extra.tests`, with `functional` in it | a function `check` and its call, as in LeetCode sets |
/// | `extra.verification_info`, `extra.official_tests`, `extra.unit_tests`, `extra.assert_case`, `extra.ground_truth` | any of these forms, where none of the others is there |
///
/// Outputs are compared line by line without space at the ends; where a decimal is expected it must be close. Every test gets a verdict: `passed`,
/// `wrong`, `error`, `time`, `memory` or `output`. CPU time decides about the limit of time, so that a busy host does not make a
/// right program wrong. A failure of the sandbox makes the rollout invalid, and so do tests that cannot be read and an empty
/// list of them, and a name that the data use and nobody defines. A rollout without tests is skipped; a response without code gets 0. With
/// `extra.entry_point`, code that does not define that function is its body, where it is one behind the prompt.
///
/// The info holds the number of tests and of those passed, the verdicts in order, why (the first verdict that is not `passed`, or
/// `no_code`), the end of what that test wrote to standard error, the isolation of the sandbox, and `"isolation": "together"` where tests ran so.
///
/// ## When to use it
/// For programming tasks with tests. `plaudit doctor` tells what isolates programs on this host, and which languages it has; the
/// guide "Code" has the settings for containers. Results are kept in the journal by the program and its tests, so that a
/// second run executes nothing.
///
/// ## How it can be gamed
/// By what the tests do not test: a table of the public examples passes them. Weak tests, with one output for most inputs, reward
/// a program that prints it: `continuous: false` asks for all of them. With `isolation: together` a program can forge its verdict.
///
/// ## Example
/// ```yaml
/// tests: { reward: code_execution, weight: 1.0, timeout: 5 }
/// ```
///
/// ## References
/// RM-Gallery `code_execution`; verl `prime_code`; open-r1 `code_reward`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CodeExecution {
    /// Whether each passed test counts. Otherwise 1 where all passed, and else 0, found at the first that did not.
    pub continuous: bool,
    /// CPU seconds of one test.
    #[schemars(range(min = 0.1, max = 600.0))]
    pub timeout: f64,
    /// Seconds of one test on the clock; without it five times the CPU time, and at least 10.
    #[schemars(range(min = 0.1, max = 3600.0))]
    pub wall_timeout: Option<f64>,
    /// Megabytes of memory of a program.
    #[schemars(range(min = 16, max = 65536))]
    pub memory_mb: u64,
    /// Processes and threads of a program. A sandbox without namespaces (Landlock) has one process with threads.
    #[schemars(range(min = 1, max = 1024))]
    pub processes: u32,
    /// Megabytes of all files that a program writes. A sandbox without namespaces (Landlock) has none.
    #[schemars(range(min = 0, max = 4096))]
    pub files_mb: u64,
    /// Kilobytes that a program may print.
    #[schemars(range(min = 1, max = 65536))]
    pub output_kb: u64,
    /// Only so many tests of a row are run, the first ones.
    #[schemars(range(min = 1))]
    pub most_tests: Option<usize>,
    /// After so many tests that ran out of time, the others are not run, and do not count as passed.
    #[schemars(range(min = 1))]
    pub most_timeouts: usize,
    /// The language: python, cpp, javascript, java, go, rust, or one of `languages`.
    pub language: String,
    /// Further languages by name, or others in the place of those that are known.
    pub languages: BTreeMap<String, LanguageConfig>,
    /// Where the tests are, such as `extra.tests` or `reference`; by default in the places named above.
    pub tests: Option<String>,
    /// Whether a response without any fenced block is a program as a whole.
    pub unfenced: bool,
    /// Whether a test that is a program has a box of its own (`apart`). `together` is for evaluation of a policy that you trust.
    pub isolation: TestProcess,
    /// Which part of the response is read. A program that stands in the thought alone counts only with `all`.
    pub scope: Scope,
}

impl Default for CodeExecution {
    fn default() -> Self {
        Self {
            continuous: true,
            timeout: 5.0,
            wall_timeout: None,
            memory_mb: 1024,
            processes: 32,
            files_mb: 64,
            output_kb: 1024,
            most_tests: None,
            most_timeouts: 3,
            language: "python".to_owned(),
            languages: BTreeMap::new(),
            tests: None,
            unfenced: false,
            isolation: TestProcess::Apart,
            scope: Scope::Final,
        }
    }
}

/// How programs of a language are compiled and run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LanguageConfig {
    /// The file that the program is written to, such as `main.lua`.
    pub file: String,
    /// The command that runs it, by absolute path or as a file of the box, such as `[/usr/bin/lua5.4, main.lua]`.
    pub run: Vec<String>,
    /// The words after a fence that mean the language; by default its name.
    pub fences: Option<Vec<String>>,
    /// A shell command that compiles the file and writes what is to be run to standard output, such as
    /// `gcc -O2 -o program main.c && cat program`. Its messages belong to standard error.
    pub compile: Option<String>,
    /// The file that holds what the compiler wrote, such as `program`.
    pub artifact: Option<String>,
    /// The environment of both commands.
    pub environment: Option<BTreeMap<String, String>>,
    /// Folders of the host that both commands may read besides `/usr`.
    pub folders: Option<Vec<PathBuf>>,
    /// Whether the runtime reserves far more address space than it uses, as Go, Java and Node do.
    pub reserves_memory: Option<bool>,
}

impl LanguageConfig {
    fn language(&self, name: &str) -> Language {
        let environment = self.environment.iter().flatten();
        Language {
            name: name.to_owned(),
            fences: self.fences.clone().unwrap_or_else(|| vec![name.to_owned()]),
            file: self.file.clone(),
            compile: self.compile.clone(),
            artifact: self.artifact.clone(),
            run: self.run.clone(),
            environment: environment.map(|(name, value)| (name.clone(), value.clone())).collect(),
            folders: self.folders.iter().flatten().cloned().collect(),
            reserves_memory: self.reserves_memory == Some(true),
        }
    }

    /// What is wrong with it, where something is.
    fn fault(&self, name: &str) -> Option<String> {
        let plain = |file: &str| {
            !file.is_empty() && file != "." && file != ".." && !file.contains('/') && !file.contains('\0')
        };
        let what = if !plain(&self.file) || !self.artifact.as_deref().is_none_or(plain) {
            "file and artifact are names without a folder"
        } else if self.run.is_empty() {
            "run names a command"
        } else if self.compile.is_some() != self.artifact.is_some() {
            "compile and artifact belong together"
        } else {
            return None;
        };
        Some(format!("{name}: {what}"))
    }
}

/// Where the tests of a row are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TestsAt {
    /// In the usual places.
    Usual,
    /// In the reference.
    Reference,
    /// In `extra`, behind these keys.
    Extra(Vec<String>),
}

/// A loaded code reward.
#[derive(Debug, Clone)]
pub struct CodeReward {
    pub(super) credit: Credit,
    pub(super) limits: Limits,
    pub(super) most_tests: Option<usize>,
    pub(super) most_timeouts: usize,
    pub(super) tests: TestsAt,
    pub(super) unfenced: bool,
    pub(super) test_process: TestProcess,
    pub(super) scope: Scope,
    /// The language as it is written in responses.
    pub(super) written: Language,
    /// The language as the recipe defines it, where it does.
    pub(super) defined: Option<Language>,
    /// What decides about the result of a program, beside the program and its tests.
    pub(super) identity: Vec<u8>,
}

impl CodeReward {
    /// The values, the floor and the limits.
    pub const fn properties(&self) -> Properties {
        Properties::new(Range::new(0.0, 1.0))
    }

    /// What decides about the result of a program, beside the program and its tests.
    pub fn identity(&self) -> &[u8] {
        &self.identity
    }

    /// The name of the language.
    pub fn language(&self) -> &str {
        &self.written.name
    }
}

impl Reward<CodeReward> for CodeExecution {
    const NAME: &'static str = "code_execution";
    const ALIASES: &'static [&'static str] = &["code"];
    const CORRECTNESS: bool = true;
    const FACTS: &'static [&'static str] = &["tests", "passed"];

    fn build(self, _: &mut ResourceCache) -> Result<CodeReward, Vec<ParamError>> {
        let defined = self.languages.get(&self.language).map(|config| config.language(&self.language));
        let written = defined.clone().unwrap_or_else(|| Language::written(&self.language));
        let known = defined.is_some() || Language::names().any(|name| name == written.name);
        let names = || Language::names().collect::<Vec<_>>().join(", ");
        let faults = self.languages.iter().filter_map(|(name, config)| config.fault(name));
        let checks = [
            known.then_some(()).ok_or_else(|| {
                let message = format!("must be one of {}, or defined in `languages`", names());
                ParamError::new("language", message)
            }),
            faults.map(|fault| Err(ParamError::new("languages", fault))).next().unwrap_or(Ok(())),
        ];
        let tests = match self.tests.as_deref() {
            None => Ok(TestsAt::Usual),
            Some("reference") => Ok(TestsAt::Reference),
            Some(path) => match path.strip_prefix("extra.") {
                Some(rest) if !rest.split('.').any(str::is_empty) => {
                    Ok(TestsAt::Extra(rest.split('.').map(str::to_owned).collect()))
                }
                _ => Err(ParamError::new("tests", "write it like extra.tests, or reference")),
            },
        };
        let tests = ParamError::gather(checks, tests)?;
        let limits = Limits {
            cpu: Duration::from_secs_f64(self.timeout),
            wall: self.wall_timeout.map(Duration::from_secs_f64),
            memory: self.memory_mb << 20,
            processes: self.processes,
            file_bytes: self.files_mb << 20,
            output: (self.output_kb << 10) as usize,
            ..Limits::default()
        };
        // Where tests are looked for and which part is read shows in the program and the tests.
        let decides = Self { tests: None, unfenced: false, scope: Scope::Final, ..self.clone() };
        let identity =
            serde_json::to_vec(&decides).map_err(|error| vec![ParamError::new("", error.to_string())])?;
        Ok(CodeReward {
            credit: if self.continuous { Credit::Partial } else { Credit::AllOrNothing },
            limits,
            most_tests: self.most_tests,
            most_timeouts: self.most_timeouts,
            tests,
            unfenced: self.unfenced,
            test_process: self.isolation,
            scope: self.scope,
            written,
            defined,
            identity,
        })
    }
}
