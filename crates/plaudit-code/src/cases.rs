//! The tests of a row, in the forms that data sets use: RM-Gallery, APPS, LiveCodeBench, MBPP and HumanEval.

use crate::assertion;
use crate::value::PyValue;
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
    /// An expression is evaluated beside the program; its value is compared outside the box.
    Expression {
        /// Statements before it, such as imports.
        setup: String,
        /// The expression.
        source: String,
        /// What it must be.
        expected: Expected,
        /// The function that the expression calls `candidate`.
        candidate: Option<String>,
    },
    /// A test that is a program and cannot be taken apart. It runs beside the program, which could find it: the weakest form.
    Script {
        /// Statements before it, such as imports.
        setup: String,
        /// The test.
        source: String,
        /// The function that the test calls `candidate`.
        candidate: Option<String>,
    },
}

/// What the value of an expression must be.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// Equal to this.
    Value(PyValue),
    /// True, or false, as a condition.
    Truth(bool),
}

/// The tests of a row; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Tests {
    cases: Vec<Case>,
    left_out: usize,
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
    /// | `["assert f(1) == 2", ...]`, or that as `test_list` beside `test_setup_code` or `test_imports` | MBPP |
    /// | `{"test": "def check(candidate): ...", "entry_point": ...}` | HumanEval |
    pub fn parse(given: &Value) -> Result<Self, TestsError> {
        let read;
        let given = match given {
            Value::String(text) => match serde_json::from_str::<Value>(text) {
                Ok(value @ (Value::Object(_) | Value::Array(_))) => {
                    read = value;
                    &read
                }
                _ if text.trim_start().starts_with("assert ") => {
                    return Self::of_cases(assertion::cases(text, "", None));
                }
                _ => return Err(form("a text that is neither JSON nor asserts")),
            },
            other => other,
        };
        match given {
            Value::Null => Err(TestsError::Empty),
            Value::Array(tests) => Self::of_list(tests, None, ""),
            Value::Object(fields) => Self::of_fields(fields),
            _ => Err(form("neither an object nor a list")),
        }
    }

    /// The fields that [`Tests::of_fields`] reads.
    pub const FIELDS: [&'static str; 14] = [
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
        "test_imports",
        "test_setup_code",
        "metadata",
    ];

    /// Reads tests from the fields of a row: an object of [`Tests::parse`], among other fields.
    pub fn of_fields(fields: &Map<String, Value>) -> Result<Self, TestsError> {
        let text = |key: &str| fields.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let function = text("fn_name").or_else(|| text("func_name"));
        if let (Some(inputs), Some(outputs)) = (fields.get("inputs"), fields.get("outputs")) {
            return Self::of_columns(inputs, outputs, function);
        }
        if let Some(test) = text("test") {
            return Self::of_cases(assertion::cases(test, "", text("entry_point")));
        }
        let setup = match fields.get("test_imports") {
            Some(Value::Array(lines)) => {
                lines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
            }
            _ => text("test_setup_code").unwrap_or("").to_owned(),
        };
        for key in ["tests", "test_list", "public_test_cases", "test_cases"] {
            match fields.get(key) {
                Some(Value::Array(tests)) => return Self::of_list(tests, function, &setup),
                Some(Value::String(text)) => {
                    let tests: Vec<Value> = serde_json::from_str(text)
                        .map_err(|error| form(format!("`{key}` is no list as JSON: {error}")))?;
                    return Self::of_list(&tests, function, &setup);
                }
                _ => {}
            }
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

    /// How many tests were left out because they expect nothing.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    fn of_cases(cases: Vec<Case>) -> Result<Self, TestsError> {
        let all = cases.len();
        let expects = |case: &Case| !matches!(case, Case::Stdin { output, .. } if output.trim().is_empty());
        let cases: Vec<Case> = cases.into_iter().filter(expects).collect();
        let left_out = all - cases.len();
        if cases.is_empty() { Err(TestsError::Empty) } else { Ok(Self { cases, left_out }) }
    }

    fn of_columns(inputs: &Value, outputs: &Value, function: Option<&str>) -> Result<Self, TestsError> {
        let (Some(inputs), Some(outputs)) = (inputs.as_array(), outputs.as_array()) else {
            return Err(form("`inputs` and `outputs` must be lists"));
        };
        if inputs.len() != outputs.len() {
            return Err(form(format!("{} inputs and {} outputs", inputs.len(), outputs.len())));
        }
        let pairs = inputs.iter().zip(outputs);
        Self::of_cases(pairs.map(|(input, output)| pair(input, output, function)).collect::<Result<_, _>>()?)
    }

    fn of_list(tests: &[Value], function: Option<&str>, setup: &str) -> Result<Self, TestsError> {
        let mut cases = Vec::new();
        for test in tests {
            match test {
                Value::String(text) => cases.extend(assertion::cases(text, setup, None)),
                Value::Object(fields) => {
                    let (Some(input), Some(output)) = (fields.get("input"), fields.get("output")) else {
                        return Err(form("a test without `input` and `output`"));
                    };
                    let calls = match fields
                        .get("testtype")
                        .or_else(|| fields.get("type"))
                        .and_then(Value::as_str)
                    {
                        Some("stdin" | "stdin_stdout") => None,
                        Some("functional" | "function_call") => {
                            let own = fields
                                .get("fn_name")
                                .or_else(|| fields.get("func_name"))
                                .and_then(Value::as_str);
                            let name = own.or(function);
                            Some(name.ok_or_else(|| form("a functional test without the function's name"))?)
                        }
                        _ => fields.get("fn_name").and_then(Value::as_str).or(function),
                    };
                    cases.push(pair(input, output, calls)?);
                }
                _ => return Err(form("a test that is neither a text nor an object")),
            }
        }
        Self::of_cases(cases)
    }
}

/// A test of an input and an output, of the standard streams or of a function.
fn pair(input: &Value, output: &Value, function: Option<&str>) -> Result<Case, TestsError> {
    let Some(function) = function else {
        return Ok(Case::Stdin { input: stream(input)?, output: stream(output)? });
    };
    let read = |line: &str| {
        serde_json::from_str::<Value>(line)
            .map_err(|error| form(format!("an argument or a result is no JSON: {error}")))
    };
    let arguments = match input {
        // One argument a line, as JSON.
        Value::String(text) => text
            .split('\n')
            .filter(|line| !line.trim().is_empty())
            .map(read)
            .collect::<Result<Vec<_>, _>>()?,
        Value::Array(arguments) => arguments.clone(),
        other => vec![other.clone()],
    };
    let output = match output {
        Value::String(text) => read(text).unwrap_or_else(|_| Value::String(text.clone())),
        other => other.clone(),
    };
    let mut expected = vec![PyValue::of_json(&output)];
    // APPS writes one result as a list of one.
    if let Value::Array(items) = &output
        && let [only] = items.as_slice()
    {
        expected.push(PyValue::of_json(only));
    }
    Ok(Case::Call { function: function.to_owned(), arguments, expected })
}

/// The text of a stream: as it is, or a list of its lines.
fn stream(given: &Value) -> Result<String, TestsError> {
    let line = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(form("an input or an output that is no text")),
    };
    match given {
        Value::Array(lines) => Ok(lines.iter().map(line).collect::<Result<Vec<_>, _>>()?.join("\n")),
        other => line(other),
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
            json!({"public_test_cases": "[{\"input\": \"1 2\", \"output\": \"3\"}]"}),
        ] {
            assert_eq!(Tests::parse(&given).unwrap().cases(), [stdin("1 2", "3")], "{given}");
        }
        let call = |expected: Value| {
            let mut all = vec![PyValue::of_json(&expected)];
            all.extend(
                expected.as_array().filter(|items| items.len() == 1).map(|items| PyValue::of_json(&items[0])),
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
        ] {
            assert_eq!(Tests::parse(&given).unwrap().cases(), [call(expected)], "{given}");
        }
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
