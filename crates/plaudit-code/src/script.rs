//! Test scripts read without running them: the functions that pytest would run, and what a script needs that a box does not have.

use crate::cases::{Case, TestsError};

/// What tests may use of pytest and of numpy; the box has these and nothing else of them (`python/pytest.py`, `numpy.py`).
const PYTEST: [&str; 5] = ["raises", "approx", "fail", "main", "mark.parametrize"];
const NUMPY: [&str; 5] = ["allclose", "isclose", "ndarray", "float32", "float64"];

/// The cases of a test that is a program: one for each function that pytest would run, else one.
pub(crate) fn cases(
    source: &str,
    setup: &str,
    candidate: Option<&str>,
    prompt: &str,
) -> Result<Vec<Case>, TestsError> {
    if let Some(name) = unsupported(source) {
        return Err(TestsError::Form(format!("a test uses `{name}`, which boxes do not have")));
    }
    // Nothing is proven by absence.
    if !["assert", "raise", "fail"].iter().any(|word| source.contains(word)) {
        return Err(TestsError::Form("a test script without an assert".to_owned()));
    }
    let mut source = source.to_owned();
    if has_line(&source, "def check(") && !has_line(&source, "check(") {
        if candidate.is_none() {
            return Err(TestsError::Form("a test with `check` needs `entry_point`".to_owned()));
        }
        source.push_str("\ncheck(candidate)\n");
    }
    let case = |function: Option<String>| Case::Script {
        setup: setup.to_owned(),
        source: source.clone(),
        candidate: candidate.map(str::to_owned),
        prompt: prompt.to_owned(),
        function,
    };
    let functions = functions(&source);
    if functions.is_empty() {
        return Ok(vec![case(None)]);
    }
    Ok(functions.into_iter().map(|function| case(Some(function))).collect())
}

/// Whether a text looks like a test script.
pub(crate) fn is_script(text: &str) -> bool {
    ["assert ", "assert(", "def test_", "def check(", "from solution import", "import pytest"]
        .iter()
        .any(|start| has_line(text, start))
}

fn has_line(text: &str, start: &str) -> bool {
    text.lines().any(|line| line.starts_with(start))
}

/// The functions that pytest would run, as `test_name` or `TestClass.test_name`.
fn functions(source: &str) -> Vec<String> {
    let (mut found, mut class) = (Vec::new(), None);
    for line in source.lines() {
        let text = line.trim_start();
        let indented = text.len() < line.len();
        if !indented && !text.is_empty() && !text.starts_with('#') {
            let named = text.strip_prefix("class ").filter(|name| name.starts_with("Test"));
            class = named.map(|name| name.split(['(', ':', ' ']).next().unwrap_or(""));
        }
        let Some(name) = text.strip_prefix("def ").and_then(|rest| rest.split('(').next()) else { continue };
        if !name.starts_with("test_") {
            continue;
        }
        let name = match (indented, class) {
            (false, _) => name.trim().to_owned(),
            (true, Some(class)) => format!("{class}.{}", name.trim()),
            (true, None) => continue,
        };
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// The first name that a script uses of a library and that the box does not have.
fn unsupported(source: &str) -> Option<String> {
    if source.contains("unittest") {
        return Some("unittest".to_owned());
    }
    let numpy = source.contains("numpy");
    let libraries = [("pytest", &PYTEST, true), ("np", &NUMPY, numpy), ("numpy", &NUMPY, numpy)];
    for (library, known, used) in libraries {
        if !used {
            continue;
        }
        for (at, _) in source.match_indices(library) {
            let before = source[..at].chars().next_back();
            if before.is_some_and(|letter| letter.is_alphanumeric() || "_.".contains(letter)) {
                continue;
            }
            let Some(rest) = source[at + library.len()..].strip_prefix('.') else { continue };
            let end = rest.find(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == '.'));
            let name = &rest[..end.unwrap_or(rest.len())];
            if !known.contains(&name.trim_end_matches('.')) {
                return Some(format!("{library}.{name}"));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_pytest_are_found() {
        let source = "from solution import f\n\ndef helper(): pass\ndef test_a():\n    def test_inner(): pass\n    assert f(1)\n\
                      class TestMore(object):\n    x = 1\n\n    def test_b(self): pass\n    def help(self): pass\n\
                      class Other:\n    def test_c(self): pass\nx = 1\ndef test_a(): pass\n";
        assert_eq!(functions(source), ["test_a", "TestMore.test_b"]);
    }

    #[test]
    fn a_script_that_asserts_nothing_is_no_test() {
        let read = |source: &str| cases(source, "", Some("f"), "");
        assert!(matches!(read("def check(candidate):\n    candidate(1)"), Err(TestsError::Form(_))));
        assert!(read("def check(candidate):\n    assert candidate(1)").is_ok());
        assert!(read("import pytest\ndef test_f():\n    with pytest.raises(ValueError): f(1)").is_ok());
    }

    #[test]
    fn what_boxes_do_not_have_is_named() {
        for (source, wanted) in [
            ("import pytest\nwith pytest.raises(ValueError): f()", None),
            ("@pytest.mark.parametrize('a', [1])", None),
            ("@pytest.mark.skip", Some("pytest.mark.skip")),
            ("@pytest.fixture\ndef x(): pass", Some("pytest.fixture")),
            ("import numpy as np\nnp.allclose(1, 2)", None),
            ("import numpy as np\nnp.array([1])", Some("np.array")),
            ("import numpy\nnumpy.zeros(3)", Some("numpy.zeros")),
            ("step.np.x = 1", None),
            ("class TestA(unittest.TestCase): pass", Some("unittest")),
        ] {
            assert_eq!(unsupported(source).as_deref(), wanted, "{source}");
        }
    }
}
