//! Test scripts read without running them: the functions that pytest would run, and what a script needs that a box does not have.

use crate::cases::{Case, TestsError};
use crate::granted::GivenNodes;
use ruff_python_ast::visitor::{Visitor, walk_stmt};
use ruff_python_ast::{Expr, Stmt};

/// What tests may use of pytest and of numpy; the box has these and nothing else of them (`python/pytest.py`, `numpy.py`).
const PYTEST: [&str; 7] = ["raises", "approx", "fail", "fixture", "main", "mark", "param"];
/// Marks of pytest that decide whether a test counts.
const DECIDING_MARKS: [&str; 4] = ["mark.skip", "mark.skipif", "mark.xfail", "mark.usefixtures"];
const NUMPY: [&str; 5] = ["allclose", "isclose", "ndarray", "float32", "float64"];

/// The cases of a test that is a program, with its statements: one for each function that pytest would run, else one.
pub(crate) fn cases(
    source: &str,
    setup: &str,
    (candidate, prompt, nodes): (Option<&str>, &str, GivenNodes),
    body: &[Stmt],
) -> Result<Vec<Case>, TestsError> {
    let fault = |what: String| Err(TestsError::Form(what));
    if let Some(name) = unsupported(source) {
        return fault(format!("a test uses `{name}`, which boxes do not have"));
    }
    // Nothing is proven by absence.
    if !["assert", "raise", "fail"].iter().any(|word| source.contains(word)) {
        return fault("a test script without an assert".to_owned());
    }
    if asserts_a_tuple(body) {
        return fault("an assert of a tuple is always true".to_owned());
    }
    let mut source = source.to_owned();
    let functions = functions(body);
    let calls = |names: fn(&str) -> bool| body.iter().any(|statement| is_call_of_check(statement, names));
    // A test too large to be looked at has no statements here.
    let has_check = defines(body, "check") || body.is_empty() && has_line(&source, "def check(");
    if has_check && candidate.is_none() {
        let tests = |statement: &Stmt| matches!(statement, Stmt::Assert(_) | Stmt::For(_) | Stmt::With(_));
        let named = calls(|name| name != "candidate") || defines(body, "candidate") || body.iter().any(tests);
        if !named && functions.is_empty() {
            return fault("a test with `check` needs `entry_point`".to_owned());
        }
    } else if has_check && !calls(|_| true) {
        source.push_str("\ncheck(candidate)\n");
    }
    let case = |function: Option<String>| Case::Script {
        setup: setup.to_owned(),
        source: source.clone(),
        candidate: candidate.map(str::to_owned),
        prompt: prompt.to_owned(),
        function,
        nodes,
    };
    if functions.is_empty() {
        // Those that are left out are no reason to run the rest and call it a test.
        return if is_left_out(body) { Err(TestsError::Empty) } else { Ok(vec![case(None)]) };
    }
    Ok(functions.into_iter().map(|function| case(Some(function))).collect())
}

/// Whether a module defines or assigns a name.
fn defines(body: &[Stmt], wanted: &str) -> bool {
    body.iter().any(|statement| match statement {
        Stmt::FunctionDef(function) => function.name.as_str() == wanted,
        Stmt::Assign(assign) => {
            assign.targets.iter().any(|target| matches!(target, Expr::Name(name) if name.id == wanted))
        }
        Stmt::Import(import) => import.names.iter().any(|name| name.asname.as_deref() == Some(wanted)),
        Stmt::ImportFrom(import) => {
            import.names.iter().any(|name| name.asname.as_ref().unwrap_or(&name.name).as_str() == wanted)
        }
        _ => false,
    })
}

/// Whether a statement calls `check` with something that is called so.
fn is_call_of_check(statement: &Stmt, named: fn(&str) -> bool) -> bool {
    let Stmt::Expr(expression) = statement else { return false };
    let Expr::Call(call) = &*expression.value else { return false };
    let argument = call.arguments.args.first();
    matches!(&*call.func, Expr::Name(name) if name.id == "check")
        && argument.is_none_or(|argument| !matches!(argument, Expr::Name(name) if !named(&name.id)))
}

/// Whether an assert has its message inside of parentheses, and so asserts nothing.
fn asserts_a_tuple(body: &[Stmt]) -> bool {
    struct Search(bool);
    impl<'a> Visitor<'a> for Search {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            if let Stmt::Assert(assert) = statement {
                self.0 |= matches!(&*assert.test, Expr::Tuple(tuple) if !tuple.elts.is_empty());
            }
            walk_stmt(self, statement);
        }

        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut search = Search(false);
    search.visit_body(body);
    search.0
}

/// Whether a text looks like a test script.
pub(crate) fn is_script(text: &str) -> bool {
    const STARTS: [&str; 10] = [
        "assert ",
        "assert(",
        "def test_",
        "def check(",
        "from solution import",
        "import solution",
        "import pytest",
        "import unittest",
        "from unittest",
        "class Test",
    ];
    STARTS.iter().any(|start| has_line(text, start))
}

fn has_line(text: &str, start: &str) -> bool {
    text.lines().any(|line| line.starts_with(start))
}

/// The functions that pytest would run, as `test_name` or `TestClass.test_name`.
fn functions(body: &[Stmt]) -> Vec<String> {
    let mut found = Vec::new();
    let mut add = |name: String| {
        if !found.contains(&name) {
            found.push(name);
        }
    };
    for statement in body {
        match statement {
            _ if is_skipped(statement) => {}
            Stmt::FunctionDef(function) if function.name.starts_with("test_") => {
                add(function.name.to_string());
            }
            Stmt::ClassDef(class) => {
                let unit = class.bases().iter().any(|base| {
                    let name = match base {
                        Expr::Attribute(base) => base.attr.as_str(),
                        Expr::Name(base) => base.id.as_str(),
                        _ => "",
                    };
                    matches!(name, "TestCase" | "IsolatedAsyncioTestCase")
                });
                let prefix = if unit { "test" } else { "test_" };
                for method in class.body.iter().filter(|_| unit || class.name.starts_with("Test")) {
                    if !is_skipped(method)
                        && let Stmt::FunctionDef(method) = method
                        && method.name.starts_with(prefix)
                    {
                        add(format!("{}.{}", class.name, method.name));
                    }
                }
            }
            _ => {}
        }
    }
    found
}

/// Whether unittest leaves a test out always, or wants it to fail: it proves nothing of a program.
fn is_skipped(statement: &Stmt) -> bool {
    let decorators = match statement {
        Stmt::FunctionDef(function) => &function.decorator_list,
        Stmt::ClassDef(class) => &class.decorator_list,
        _ => return false,
    };
    decorators.iter().any(|decorator| {
        let marked = match &decorator.expression {
            Expr::Call(call) => &call.func,
            other => other,
        };
        match marked {
            Expr::Attribute(name) => matches!(name.attr.as_str(), "skip" | "expectedFailure"),
            Expr::Name(name) => matches!(name.id.as_str(), "skip" | "expectedFailure"),
            _ => false,
        }
    })
}

/// Whether a script has tests that are left out, of functions or of classes.
fn is_left_out(body: &[Stmt]) -> bool {
    body.iter().any(|statement| {
        is_skipped(statement)
            || matches!(statement, Stmt::ClassDef(class) if class.body.iter().any(is_skipped))
    })
}

/// The first name that a script uses of a library and that the box does not have.
fn unsupported(source: &str) -> Option<String> {
    // Warnings, logs and files stay in the box where they are made.
    for name in ["catch_warnings", "assertWarns", "assertLogs", "tempfile.", " open(", "=open("] {
        if source.contains(name) {
            return Some(name.trim_matches([' ', '.', '(', '=']).to_owned());
        }
    }
    // What a test puts in the place of something else than the program's own names, the program does not see.
    for (at, word) in source.match_indices("patch(").chain(source.match_indices("patch.object(")) {
        // A test can have a name that ends so.
        if source[..at].chars().next_back().is_some_and(|letter| letter.is_alphanumeric() || letter == '_') {
            continue;
        }
        let target = source[at + word.len()..].trim_start_matches(['"', '\'']);
        let shared = [
            "solution",
            "builtins.input",
            "builtins.print",
            "sys.stdout",
            "sys.stderr",
            "sys.stdin",
            "sys, 'std",
            "sys, \"std",
        ];
        if !shared.iter().any(|name| target.starts_with(name)) {
            return Some("patch".to_owned());
        }
    }
    let numpy = source.contains("numpy");
    let libraries = [("pytest", &PYTEST[..], true), ("np", &NUMPY[..], numpy), ("numpy", &NUMPY[..], numpy)];
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
            let name = name.trim_end_matches('.');
            let first = name.split('.').next().unwrap_or("");
            let decides = DECIDING_MARKS.contains(&name);
            if decides || !known.contains(&first) {
                return Some(format!("{library}.{name}"));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::PythonParser;

    fn read(source: &str) -> Result<Vec<Case>, TestsError> {
        let module = PythonParser::for_test().parse(source).unwrap();
        cases(source, "", (Some("f"), "", GivenNodes::None), &module.syntax().body)
    }

    #[test]
    fn functions_of_pytest_are_found() {
        let source = "class Unit(unittest.TestCase):\n    def testing(self): pass\n\ndef helper(): pass\ndef test_a():\n    def test_inner(): pass\n    assert f(1)\n\
                      class TestMore(object):\n    x = 1\n\n    def test_b(self): pass\n    def help(self): pass\n\
                      class Other:\n    def test_c(self): pass\nx = 1\ndef test_a(): pass\n";
        let module = PythonParser::for_test().parse(source).unwrap();
        assert_eq!(functions(&module.syntax().body), ["Unit.testing", "test_a", "TestMore.test_b"]);
    }

    #[test]
    fn tests_that_are_always_skipped_are_left_out() {
        let source = "class TestA(unittest.TestCase):\n    @unittest.skip('later')\n    def test_b(self): self.fail()\n\n    @expectedFailure\n    \
                      def test_c(self): assert f(1)\n\n    def test_d(self): assert f(1)\n";
        let found = read(source).unwrap();
        let [Case::Script { function, .. }] = &*found else { panic!("{found:?}") };
        assert_eq!(function.as_deref(), Some("TestA.test_d"));
        let skipped = source.split("    def test_d").next().unwrap();
        assert_eq!(read(skipped), Err(TestsError::Empty));
    }

    #[test]
    fn a_script_that_asserts_nothing_is_no_test() {
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
            ("@pytest.mark.slow\ndef x(): pass", None),
            ("@pytest.fixture\ndef x(): pass", None),
            ("pytest.importorskip('x')", Some("pytest.importorskip")),
            ("with patch('builtins.input', f): pass", None),
            ("@patch('builtins.print')\ndef test_patch(self): pass", None),
            ("with open('x') as file: pass", Some("open")),
            ("with patch('time.sleep'): pass", Some("patch")),
            ("import numpy as np\nnp.allclose(1, 2)", None),
            ("import numpy as np\nnp.array([1])", Some("np.array")),
            ("import numpy\nnumpy.zeros(3)", Some("numpy.zeros")),
            ("step.np.x = 1", None),
            ("class TestA(unittest.TestCase): pass", None),
        ] {
            assert_eq!(unsupported(source).as_deref(), wanted, "{source}");
        }
    }
}
