//! The tests of a row, in the forms that data sets use: RM-Gallery, APPS, LiveCodeBench, MBPP, HumanEval, KodCode.

use crate::free_names::Names;
use crate::granted::GivenNodes;
use crate::python::PythonParser;
use crate::task_code::{TaskCode, complete};
use crate::{assertion, livecodebench, script};
use plaudit_text::{PyValue, exact};
use serde_json::{Map, Value};

/// One test.
#[derive(Clone, Debug, PartialEq)]
pub enum Case {
    /// The program reads the input and writes the output.
    Stdin {
        /// Standard input.
        input: String,
        /// What standard output must say.
        output: String,
    },
    /// A function is called; its result is compared outside the box.
    Call {
        /// The function, or the method of `Solution`.
        function: String,
        /// The arguments.
        arguments: Vec<Value>,
        /// The results that count: a data set may wrap one in a list.
        expected: Vec<PyValue>,
    },
    /// A call is evaluated beside the program; its value is compared outside the box.
    Expression {
        /// Statements before it, such as imports.
        setup: String,
        /// The call.
        source: String,
        /// What it must return.
        expected: PyValue,
        /// The function that the call names `candidate`.
        candidate: Option<String>,
        /// What the test has to do with nodes of lists and trees.
        nodes: GivenNodes,
    },
    /// A test that is a program. It runs in a box of its own, and calls the functions of the program in another.
    Script {
        /// Statements before it, such as imports.
        setup: String,
        /// The test.
        source: String,
        /// The function that the test calls `candidate`.
        candidate: Option<String>,
        /// The task as code, for functions of it that the test calls; prose is left out.
        prompt: String,
        /// The function of the test to run, as `test_name` or `TestClass.test_name`; without it the script is all.
        function: Option<String>,
        /// What the test has to do with nodes of lists and trees.
        nodes: GivenNodes,
    },
}

/// The tests of a row; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Tests {
    cases: Vec<Case>,
    left_out: usize,
    task: RowTask,
}

/// What a row says of the program beside its tests.
#[derive(Clone, Debug, Default, PartialEq)]
struct RowTask {
    /// Names that the tests use and nobody defines.
    missing: Vec<String>,
    /// Functions that the tests use, each with a name that its signature in the task uses and nobody defines.
    undefined: Vec<(String, String)>,
    /// The task's text and the function under test, where a program may be what comes behind the one in the other.
    stub: Option<(String, String)>,
}

/// Why a row has no tests. The data are at fault, and not the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestsError {
    /// There is no test, or none that expects something.
    Empty,
    /// The form is not known; what is wrong with it.
    Form(String),
}

impl std::fmt::Display for TestsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => f.write_str("there is no test that expects something"),
            Self::Form(what) => write!(f, "the tests cannot be read: {what}"),
        }
    }
}

impl std::error::Error for TestsError {}

fn form(what: impl Into<String>) -> TestsError {
    TestsError::Form(what.into())
}

impl Tests {
    /// Reads tests from what a row holds: an object, a list, or either as JSON text.
    ///
    /// | Form | Origin |
    /// |---|---|
    /// | `{"inputs": [...], "outputs": [...], "fn_name": ...}` | RM-Gallery, APPS, TACO |
    /// | `[{"input": ..., "output": ..., "testtype": ...}]`, or that as `tests` beside `fn_name` or `func_name` | LiveCodeBench |
    /// | `{"public_test_cases": ..., "private_test_cases": ..., "metadata": {"func_name": ...}}`, both lists together | LiveCodeBench |
    /// | `["assert f(1) == 2", ...]`, or that as `test_list` beside `test_setup_code` or `test_imports` | MBPP |
    /// | `{"test": "def check(candidate): ...", "entry_point": ...}`, with `prompt` where the test uses its functions | HumanEval, HumanEval+ |
    /// | `{"test": "from solution import f\ndef test_f(): ..."}`, or the text alone | KodCode |
    /// | `{"functional": "def check(candidate): ..."}`, `{"assert_case": [...]}` | LeetCode sets, verl |
    /// | `{"public_tests": {"input": [...], "output": [...]}, "private_tests": ..., "generated_tests": ...}` | CodeContests |
    pub fn parse(given: &Value) -> Result<Self, TestsError> {
        Self::parse_for(given, "")
    }

    /// Reads tests from what a row holds, for a task with this text. Its functions count where the tests name an `entry_point`; a
    /// `prompt` among the tests comes first.
    pub fn parse_for(given: &Value, prompt: &str) -> Result<Self, TestsError> {
        let read;
        let given = match given {
            Value::String(text) => match exact::read::<Value>(text) {
                Ok(value @ (Value::Object(_) | Value::Array(_))) => {
                    read = value;
                    &read
                }
                _ if script::is_script(text) => {
                    let task = TaskCode::read(prompt).signature();
                    let mut missing = Vec::new();
                    let cases = assertion::cases(text, "", None, &task, &mut missing)?;
                    return Self::of_cases(cases).map(|tests| tests.for_task(missing, task));
                }
                _ => return Err(form("a text that is neither JSON nor asserts nor a test script")),
            },
            other => other,
        };
        match given {
            Value::Null => Err(TestsError::Empty),
            Value::Array(tests) => {
                let task = TaskCode::of_asserts(tests, prompt);
                let (mut cases, mut missing) = (Vec::new(), Vec::new());
                for test in tests {
                    add(&mut cases, test.clone(), None, ("", &task, &mut missing))?;
                }
                Self::of_cases(cases).map(|tests| tests.for_task(missing, task))
            }
            Value::Object(fields) => {
                Self::of_fields(fields, fields.get("prompt").and_then(Value::as_str).unwrap_or(prompt))
            }
            _ => Err(form("neither an object nor a list")),
        }
    }

    /// The fields that [`Tests::of_fields`] reads.
    pub const FIELDS: [&'static str; 20] = [
        "inputs",
        "outputs",
        "fn_name",
        "func_name",
        "test",
        "entry_point",
        "tests",
        "test_list",
        "public_test_cases",
        "private_test_cases",
        "test_cases",
        "public_tests",
        "private_tests",
        "generated_tests",
        "test_code",
        "functional",
        "assert_case",
        "test_imports",
        "test_setup_code",
        "metadata",
    ];

    /// Reads tests from the fields of a row: an object of [`Tests::parse`], among other fields, and the text of the row's task.
    pub fn of_fields(fields: &Map<String, Value>, prompt: &str) -> Result<Self, TestsError> {
        let text = |key: &str| fields.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let function = text("fn_name").or_else(|| text("func_name"));
        if let (Some(inputs), Some(outputs)) = (fields.get("inputs"), fields.get("outputs")) {
            return Self::of_columns(inputs, outputs, function);
        }
        // A function `check` may stand in `tests` too, which has other forms without a function's name.
        let checks = |tests: &&str| text("entry_point").is_some() && tests.starts_with("def check(");
        let test = ["test", "test_code", "functional"].into_iter().find_map(text);
        if let Some(test) = test.or_else(|| text("tests").filter(checks)) {
            // LeetCode's methods are found by their name alone.
            let entry_point =
                text("entry_point").map(|name| name.strip_prefix("Solution().").unwrap_or(name));
            // Without it, names of the task could be those that the program is to define.
            let task = TaskCode::read(prompt);
            let task = if entry_point.is_some() { task } else { task.signature() };
            let mut missing = Vec::new();
            let cases = assertion::cases(test, "", entry_point, &task, &mut missing)?;
            let mut tests = Self::of_cases(cases)?.for_task(missing, task);
            tests.task.stub =
                entry_point.filter(|_| !prompt.is_empty()).map(|name| (prompt.to_owned(), name.to_owned()));
            return Ok(tests);
        }
        let setup = match fields.get("test_imports") {
            Some(Value::Array(lines)) => {
                lines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
            }
            _ => text("test_setup_code").unwrap_or("").to_owned(),
        };
        // LiveCodeBench keeps the function's name in a JSON text, and its tests in two lists that count together.
        let metadata: Option<Value> =
            text("metadata").and_then(|metadata| serde_json::from_str(metadata).ok());
        let metadata = metadata.as_ref().or_else(|| fields.get("metadata"));
        let function = function.or_else(|| metadata.and_then(|metadata| metadata.get("func_name")?.as_str()));
        let mut found: Option<Vec<Case>> = None;
        let (mut task, mut missing) = (TaskCode::default(), Vec::new());
        for key in ["public_tests", "private_tests", "generated_tests"] {
            let list = |name: &str| fields.get(key)?.get(name)?.as_array();
            let (Some(inputs), Some(outputs)) = (list("input"), list("output")) else { continue };
            if inputs.len() != outputs.len() {
                return Err(form(format!(
                    "`{key}` has {} inputs and {} outputs",
                    inputs.len(),
                    outputs.len()
                )));
            }
            for (input, output) in inputs.iter().zip(outputs) {
                found.get_or_insert_default().push(pair(input.clone(), output.clone(), function)?);
            }
        }
        for key in
            ["tests", "test_list", "assert_case", "public_test_cases", "private_test_cases", "test_cases"]
        {
            match fields.get(key) {
                Some(Value::Array(tests)) => {
                    task = TaskCode::of_asserts(tests, prompt);
                    let cases = found.get_or_insert_default();
                    for test in tests {
                        add(cases, test.clone(), function, (&setup, &task, &mut missing))?;
                    }
                }
                Some(Value::String(text)) if !text.is_empty() => {
                    let cases = found.get_or_insert_default();
                    let each = |test| add(cases, test, function, (&setup, &task, &mut missing));
                    livecodebench::tests(key, text, each)?;
                }
                _ => continue,
            }
            if !key.ends_with("_test_cases") {
                break;
            }
        }
        if let Some(cases) = found {
            return Self::of_cases(cases).map(|tests| tests.for_task(missing, task));
        }
        if fields.is_empty() {
            return Err(TestsError::Empty);
        }
        Err(form("none of `inputs` with `outputs`, `tests`, `test_list` and `test` is there"))
    }

    /// The same with the first tests alone.
    #[must_use]
    pub fn first(mut self, most: usize) -> Self {
        self.cases.truncate(most.max(1));
        self
    }

    /// The tests.
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// About how many bytes of memory they take.
    pub fn size(&self) -> usize {
        let size = |case: &Case| match case {
            Case::Stdin { input, output } => input.len() + output.len(),
            Case::Call { arguments, expected, .. } => {
                arguments.iter().map(json_size).sum::<usize>()
                    + expected.iter().map(PyValue::size).sum::<usize>()
            }
            Case::Expression { setup, source, expected, .. } => setup.len() + source.len() + expected.size(),
            Case::Script { setup, source, prompt, .. } => setup.len() + source.len() + prompt.len(),
        };
        self.cases.iter().map(|case| size_of::<Case>() + size(case)).sum()
    }

    /// What the tests take from the text of the task; empty where that is nothing.
    pub fn task_code(&self) -> &str {
        match self.cases.first() {
            Some(Case::Script { prompt, .. }) => prompt,
            _ => "",
        }
    }

    /// How many tests were left out because they expect nothing.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    fn of_cases(cases: Vec<Case>) -> Result<Self, TestsError> {
        let all = cases.len();
        let expects = |case: &Case| !matches!(case, Case::Stdin { output, .. } if output.trim().is_empty());
        let cases: Vec<Case> = cases.into_iter().filter(expects).collect();
        let left_out = all - cases.len();
        if cases.is_empty() {
            Err(TestsError::Empty)
        } else {
            Ok(Self { cases, left_out, task: RowTask::default() })
        }
    }

    fn for_task(mut self, mut missing: Vec<String>, task: TaskCode) -> Self {
        missing.sort();
        missing.dedup();
        let tested = |case: &Case, name: &str| match case {
            Case::Expression { source, .. } | Case::Script { source, .. } => source.contains(name),
            _ => false,
        };
        let mut undefined = task.undefined;
        undefined.retain(|(function, _)| self.cases.iter().any(|case| tested(case, function)));
        self.task = RowTask { missing, undefined, stub: None };
        self
    }

    /// A name that the data take for granted, where nobody defines it: not they, and not this program either. So no program can show
    /// what it is worth, whatever it is.
    pub fn missing_name(&self, program: &str) -> Option<&str> {
        if self.task.missing.is_empty() {
            return None;
        }
        let module = PythonParser::new(13).parse(program).ok();
        let names = module.as_ref().map_or_else(Names::default, |module| Names::of(&module.syntax().body));
        self.task.missing.iter().find(|name| !names.binds(name)).map(String::as_str)
    }

    /// The program with annotations that are not evaluated, where it has the signature that the data ask for, with a name in it that
    /// nobody defines. It is no verdict about the row, as a program without that annotation can be run.
    pub fn without_annotations(&self, program: &str) -> Option<String> {
        if self.task.undefined.is_empty() {
            return None;
        }
        let module = PythonParser::new(13).parse(program).ok()?;
        let names = Names::of(&module.syntax().body);
        let evaluated = !names.binds("annotations");
        let mut undefined = self.task.undefined.iter();
        let uses = undefined
            .any(|(function, name)| names.binds(function) && names.reads(name) && !names.binds(name));
        (evaluated && uses).then(|| format!("from __future__ import annotations\n{program}"))
    }

    /// The program that a text makes behind the task's code, where it is the body of the function under test and not the function.
    pub fn completed(&self, text: &str) -> Option<String> {
        let (prompt, entry_point) = self.task.stub.as_ref()?;
        complete(prompt, entry_point, text)
    }

    fn of_columns(inputs: &Value, outputs: &Value, function: Option<&str>) -> Result<Self, TestsError> {
        let (Some(inputs), Some(outputs)) = (inputs.as_array(), outputs.as_array()) else {
            return Err(form("`inputs` and `outputs` must be lists"));
        };
        if inputs.len() != outputs.len() {
            return Err(form(format!("{} inputs and {} outputs", inputs.len(), outputs.len())));
        }
        let pairs = inputs.iter().zip(outputs);
        Self::of_cases(
            pairs
                .map(|(input, output)| pair(input.clone(), output.clone(), function))
                .collect::<Result<_, _>>()?,
        )
    }
}

/// Adds a test of a list to the cases.
fn add(
    cases: &mut Vec<Case>,
    test: Value,
    function: Option<&str>,
    (setup, task, missing): (&str, &TaskCode, &mut Vec<String>),
) -> Result<(), TestsError> {
    let mut fields = match test {
        Value::String(text) => {
            cases.extend(assertion::cases(&text, setup, None, task, missing)?);
            return Ok(());
        }
        Value::Object(fields) => fields,
        _ => return Err(form("a test that is neither a text nor an object")),
    };
    let input = fields.remove("input").or_else(|| fields.remove("stdin"));
    let output = ["output", "expected_output", "stdout"].into_iter().find_map(|key| fields.remove(key));
    let (Some(input), Some(output)) = (input, output) else {
        return Err(form("a test without `input` and `output`"));
    };
    let kind = fields.get("testtype").or_else(|| fields.get("type")).and_then(Value::as_str);
    let calls = match kind {
        Some("stdin" | "stdin_stdout") => None,
        Some("functional" | "function_call") => {
            let own = fields.get("fn_name").or_else(|| fields.get("func_name")).and_then(Value::as_str);
            Some(own.or(function).ok_or_else(|| form("a functional test without the function's name"))?)
        }
        _ => fields.get("fn_name").and_then(Value::as_str).or(function),
    };
    cases.push(pair(input, output, calls)?);
    Ok(())
}

/// A test of an input and an output, of the standard streams or of a function.
fn pair(input: Value, output: Value, function: Option<&str>) -> Result<Case, TestsError> {
    let Some(function) = function else {
        return Ok(Case::Stdin { input: stream(input)?, output: stream(output)? });
    };
    let read = |line: &str| {
        exact::read::<Value>(line)
            .map_err(|error| form(format!("an argument or a result is no JSON: {error}")))
    };
    fn text(value: &Value) -> Option<&str> {
        value.as_str().filter(|text| exact::number(text).is_none())
    }
    let arguments = match (text(&input), &input) {
        // One argument a line, as JSON.
        (Some(text), _) => text
            .split('\n')
            .filter(|line| !line.trim().is_empty())
            .map(read)
            .collect::<Result<Vec<_>, _>>()?,
        (None, Value::Array(arguments)) => arguments.clone(),
        (None, other) => vec![other.clone()],
    };
    let written = text(&output);
    let result = written.and_then(|text| read(text).ok()).unwrap_or_else(|| output.clone());
    let value =
        |json: &Value| PyValue::of_json(json).ok_or_else(|| form("an integer of more than a million digits"));
    let mut expected = vec![value(&result)?];
    // Beside arguments that are values themselves, a text such as "12" may be meant as it is.
    if text(&input).is_none() && written.is_some() && output != result {
        expected.push(value(&output)?);
    }
    // APPS writes one result as a list of one.
    if let Value::Array(items) = &result
        && let [only] = items.as_slice()
    {
        expected.push(value(only)?);
    }
    Ok(Case::Call { function: function.to_owned(), arguments, expected })
}

/// The text of a stream: as it is, or a list of its lines.
fn stream(given: Value) -> Result<String, TestsError> {
    let line = |value: Value| match value {
        Value::String(text) if exact::number(&text).is_none() => Ok(text),
        Value::String(text) => Ok(exact::plain(&text).to_owned()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(form("an input or an output that is no text")),
    };
    match given {
        Value::Array(lines) => Ok(lines.into_iter().map(line).collect::<Result<Vec<_>, _>>()?.join("\n")),
        other => line(other),
    }
}

/// About how many bytes of memory a value takes.
fn json_size(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(json_size).sum(),
            Value::Object(map) => {
                map.iter().map(|(key, value)| size_of::<String>() + key.len() + json_size(value)).sum()
            }
            _ => 0,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn forms_of_data_sets_are_read() {
        let stdin = |input: &str, output: &str| Case::Stdin { input: input.into(), output: output.into() };
        for given in [
            json!({"inputs": ["1 2"], "outputs": ["3"]}),
            json!("{\"inputs\": [\"1 2\"], \"outputs\": [\"3\"]}"),
            json!({"inputs": [["1 2"]], "outputs": [[3]]}),
            json!([{"input": "1 2", "output": "3", "testtype": "stdin"}]),
            json!([{"input": "1 2", "expected_output": "3"}]),
            json!([{"stdin": "1 2", "stdout": "3"}]),
            json!({"public_tests": {"input": ["1 2"], "output": ["3"]}, "private_tests": {"input": [], "output": []}}),
            json!({"private_tests": null, "generated_tests": {"input": ["1 2"], "output": ["3"]}}),
            json!({"language": "python", "test_cases": [{"type": "stdin_stdout", "input": "1 2", "output": "3"}]}),
            json!({"public_test_cases": "[{\"input\": \"1 2\", \"output\": \"3\"}]"}),
            json!({"public_test_cases": "[]", "private_test_cases": "[{\"input\": \"1 2\", \"output\": \"3\"}]", "metadata": "{}"}),
        ] {
            assert_eq!(Tests::parse(&given).unwrap().cases(), [stdin("1 2", "3")], "{given}");
        }
        let call = |expected: Value| {
            let mut all = vec![PyValue::of_json(&expected).unwrap()];
            all.extend(
                expected
                    .as_array()
                    .filter(|items| items.len() == 1)
                    .map(|items| PyValue::of_json(&items[0]).unwrap()),
            );
            Case::Call { function: "f".into(), arguments: vec![json!(1), json!([2])], expected: all }
        };
        for (given, expected) in [
            (json!({"fn_name": "f", "inputs": ["1\n[2]"], "outputs": ["3"]}), json!(3)),
            (json!({"fn_name": "f", "inputs": [[1, [2]]], "outputs": [[3]]}), json!([3])),
            (
                json!({"tests": [{"input": "1\n[2]", "output": "\"a\"", "testtype": "functional"}], "func_name": "f"}),
                json!("a"),
            ),
            (
                json!({"private_test_cases": [{"input": "1\n[2]", "output": "3", "testtype": "functional"}], "metadata": "{\"func_name\": \"f\"}"}),
                json!(3),
            ),
        ] {
            assert_eq!(Tests::parse(&given).unwrap().cases(), [call(expected)], "{given}");
        }
        let asserts = Tests::parse(&json!({"assert_case": ["assert f(1) == 2"]})).unwrap();
        assert_eq!(asserts, Tests::parse(&json!(["assert f(1) == 2"])).unwrap());
        let check = "def check(candidate):\n    assert candidate(1) == 2\ncheck(Solution().f)";
        for given in [json!({"functional": check}), json!({"test_code": check})] {
            assert_eq!(Tests::parse(&given), Tests::parse(&json!(check)), "{given}");
        }
        let check = "def check(candidate):\n    assert candidate(1) == 2";
        let named = |key: &str| Tests::parse(&json!({key: check, "entry_point": "F"})).unwrap();
        assert_eq!(named("tests"), named("test"));
        let uneven = json!({"public_tests": {"input": ["1"], "output": []}});
        assert!(matches!(Tests::parse(&uneven), Err(TestsError::Form(_))));
    }

    #[test]
    fn large_integers_are_read_exactly() {
        let big = "100000000000000000001";
        let given = format!(r#"{{"fn_name": "f", "inputs": [[{big}, "{big}"]], "outputs": [[{big}]]}}"#);
        let value = exact::read(&given).unwrap();
        for given in [value, Value::String(given)] {
            let tests = Tests::parse(&given).unwrap();
            let Case::Call { arguments, expected, .. } = &tests.cases()[0] else { panic!("a call") };
            assert_eq!(exact::write(&Value::Array(arguments.clone())), format!(r#"[{big},"{big}"]"#));
            assert_eq!(expected[1], PyValue::Int(big.parse().unwrap()));
        }
        let given = format!(r#"{{"fn_name": "f", "inputs": ["{big}\n-0"], "outputs": ["{big}"]}}"#);
        let tests = Tests::parse(&Value::String(given)).unwrap();
        let Case::Call { arguments, expected, .. } = &tests.cases()[0] else { panic!("a call") };
        assert_eq!(exact::write(&Value::Array(arguments.clone())), format!("[{big},0]"));
        assert_eq!(expected, &[PyValue::Int(big.parse().unwrap())]);
        let given = format!(r#"{{"inputs": [{big}], "outputs": [[{big}, 1.5]]}}"#);
        let tests = Tests::parse(&Value::String(given)).unwrap();
        let wanted = Case::Stdin { input: big.to_owned(), output: format!("{big}\n1.5") };
        assert_eq!(tests.cases(), [wanted]);
    }

    #[test]
    fn public_and_hidden_tests_count_together() {
        let test = |input: &str| json!({"input": input, "output": "1", "testtype": "stdin"});
        let hidden = json!([test("b"), test("c")]).to_string();
        let both = json!({"public_test_cases": [test("a")], "private_test_cases": hidden, "metadata": "{}"});
        assert_eq!(Tests::parse(&both).unwrap().cases().len(), 3);
        let broken = json!({"public_test_cases": [test("a")], "private_test_cases": "eJx="});
        assert!(matches!(Tests::parse(&broken), Err(TestsError::Form(_))));
    }

    #[test]
    fn nothing_is_proven_by_absence() {
        for given in [
            json!({"inputs": [], "outputs": []}),
            json!([]),
            json!(null),
            json!({}),
            json!({"inputs": [""], "outputs": [" \n"]}),
        ] {
            assert_eq!(Tests::parse(&given), Err(TestsError::Empty), "{given}");
        }
        let one = Tests::parse(&json!({"inputs": ["", "1"], "outputs": ["", "1"]})).unwrap();
        assert_eq!((one.cases().len(), one.left_out()), (1, 1));
        for given in [
            json!("not json"),
            json!(3),
            json!({"inputs": ["1"], "outputs": []}),
            json!({"x": 1}),
            json!([3]),
            json!([{"input": "1"}]),
            json!([{"input": "1", "output": "2", "testtype": "functional"}]),
            json!({"fn_name": "f", "inputs": ["x y"], "outputs": ["1"]}),
        ] {
            assert!(matches!(Tests::parse(&given), Err(TestsError::Form(_))), "{given}");
        }
    }
}
