//! Assert statements of MBPP and HumanEval, taken apart: the call goes into the box, what it must return stays outside.

use crate::cases::{Case, TestsError};
use crate::granted::{GivenNodes, Granted, is_node_function};
use crate::python::{PythonParser, Syntax};
use crate::script;
use crate::task_code::TaskCode;
use plaudit_text::PyValue;
use ruff_python_ast::{CmpOp, Expr, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;
use std::ops::Range;

/// The cases of a test that is Python: one for each assert where all can be taken apart, else scripts.
pub(crate) fn cases(
    test: &str,
    setup: &str,
    entry_point: Option<&str>,
    task: &TaskCode,
    missing: &mut Vec<String>,
) -> Result<Vec<Case>, TestsError> {
    // One statement may stand anywhere in its line.
    let test = if test.trim().contains('\n') { test } else { test.trim() };
    let module = match PythonParser::for_test().parse(test) {
        Ok(module) => module,
        Err(Syntax::Invalid(line)) => {
            let line = line.map_or_else(String::new, |line| format!(", line {line}"));
            return Err(TestsError::Form(format!("a test is no Python{line}")));
        }
        // Too large to be looked at; it can still be run.
        Err(_) => {
            return script::cases(test, setup, (entry_point, &task.source, GivenNodes::None), &[]);
        }
    };
    let body = &module.syntax().body;
    let granted = Granted::of(body, setup, entry_point, task);
    missing.extend(granted.missing);
    let (nodes, entry_point) = (granted.nodes, entry_point.or(granted.candidate.as_deref()));
    let script = || script::cases(test, setup, (entry_point, &task.source, nodes), body);
    let mut found = Statements::default();
    if found.read(body, test).is_none() {
        return script();
    }
    if found.has_check && entry_point.is_none() {
        return Err(TestsError::Form("a test with `check` needs `entry_point`".to_owned()));
    }
    let setup = match found.imports.as_slice() {
        [] => setup.to_owned(),
        imports => format!("{setup}\n{}", imports.join("\n")),
    };
    let mut cases = Vec::new();
    for assert in found.asserts {
        let Some((source, expected)) = take_apart(assert, test, &setup) else { return script() };
        // The program's box does not have the task's own functions.
        if task.is_used_by(&source, entry_point) {
            return script();
        }
        let candidate = entry_point.map(str::to_owned);
        cases.push(Case::Expression { setup: setup.clone(), source, expected, candidate, nodes });
    }
    Ok(cases)
}

/// The statements of a test that consists of imports and asserts.
#[derive(Default)]
struct Statements<'t> {
    imports: Vec<&'t str>,
    /// The conditions.
    asserts: Vec<&'t Expr>,
    /// Whether they stand in a function `check`.
    has_check: bool,
}

impl<'t> Statements<'t> {
    /// Nothing where a statement is more than that.
    fn read(&mut self, body: &'t [Stmt], test: &'t str) -> Option<()> {
        for statement in body {
            match statement {
                Stmt::Pass(_) => {}
                Stmt::Import(_) | Stmt::ImportFrom(_) => self.imports.push(text_of(statement, test)?),
                Stmt::Assert(assert) => self.asserts.push(&assert.test),
                Stmt::Assign(assign) if matches!(assign.targets.as_slice(), [Expr::Name(name)] if name.id == "METADATA") =>
                    {}
                Stmt::FunctionDef(function) if is_check(function) && !self.has_check => {
                    self.has_check = true;
                    self.read(&function.body, test)?;
                }
                Stmt::Expr(expression) => match &*expression.value {
                    Expr::StringLiteral(_) => {}
                    Expr::Call(_) if text_of(statement, test)? == "check(candidate)" => {}
                    _ => return None,
                },
                _ => return None,
            }
        }
        Some(())
    }
}

/// Whether a function is `def check(candidate)`.
fn is_check(function: &StmtFunctionDef) -> bool {
    let mut parameters = function.parameters.iter();
    function.name.as_str() == "check"
        && function.decorator_list.is_empty()
        && !function.is_async
        && parameters.next().is_some_and(|only| only.name().as_str() == "candidate" && !only.is_variadic())
        && parameters.next().is_none()
}

/// The text of a part of a test.
fn text_of<'t>(part: &impl Ranged, test: &'t str) -> Option<&'t str> {
    test.get(Range::<usize>::from(part.range()))
}

/// The call of a condition and what it must return, where that is a literal. A condition that is more than one call of the
/// program's function is not taken apart: it could hold what is expected, and the program's interpreter would decide about it.
fn take_apart(condition: &Expr, test: &str, setup: &str) -> Option<(String, PyValue)> {
    let Expr::Compare(compare) = condition else { return None };
    let ([operator], [right]) = (&*compare.ops, &*compare.comparators) else { return None };
    let left = &*compare.left;
    let value = |call: &Expr, literal: &Expr| {
        // Python reads the end of a line in a text as one character, whatever the file has.
        let literal = text_of(literal, test).filter(|text| !text.contains('\r'))?;
        let expected = PyValue::literal(literal)?;
        is_call(call, test, setup).then_some(())?;
        Some((text_of(call, test)?.to_owned(), expected))
    };
    match operator {
        CmpOp::Eq => value(left, right).or_else(|| value(right, left)),
        // `1 is True` does not hold, though `1 == True` does.
        CmpOp::Is => value(left, right).filter(|(_, expected)| *expected == PyValue::None),
        _ => None,
    }
}

/// Functions that stand around the call of a program's function. One of them with no call inside is the program's own.
const BUILT_IN: [&str; 34] = [
    "abs",
    "all",
    "any",
    "bool",
    "bytes",
    "callable",
    "dict",
    "enumerate",
    "filter",
    "float",
    "frozenset",
    "getattr",
    "hasattr",
    "hash",
    "id",
    "int",
    "isinstance",
    "issubclass",
    "iter",
    "len",
    "list",
    "map",
    "max",
    "min",
    "next",
    "ord",
    "range",
    "repr",
    "reversed",
    "round",
    "set",
    "sorted",
    "str",
    "sum",
];
const MORE_BUILT_IN: [&str; 10] =
    ["tuple", "type", "zip", "divmod", "pow", "eval", "exec", "format", "isclose", "print"];

/// Whether a name is one of them.
pub(crate) fn is_built_in(name: &str) -> bool {
    BUILT_IN.contains(&name) || MORE_BUILT_IN.contains(&name)
}

/// Whether an expression is one call of a function of the program.
fn is_call(expression: &Expr, test: &str, setup: &str) -> bool {
    let Expr::Call(call) = expression else { return false };
    let Expr::Name(name) = &*call.func else { return false };
    let (name, arguments) = (name.id.as_str(), text_of(&call.arguments, test).unwrap_or("("));
    // What the test brings along is not the program's, and the program could change it.
    let letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let brought = setup.contains("import *") || setup.split(|other| !letter(other)).any(|word| word == name);
    !brought
        && !is_node_function(name)
        && (!is_built_in(name) || arguments.get(1..).is_some_and(|inner| !inner.contains('(')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken_apart(condition: &str, setup: &str) -> Option<(String, PyValue)> {
        let test = format!("assert {condition}");
        let module = PythonParser::for_test().parse(&test).unwrap();
        let Some(Stmt::Assert(assert)) = module.syntax().body.first() else { panic!("{test}") };
        take_apart(&assert.test, &test, setup)
    }

    #[test]
    fn asserts_are_taken_apart() {
        for (condition, source, literal) in [
            ("f(1, 2) == 3", "f(1, 2)", "3"),
            ("f(\"a == b\", (1,)) == ['x', \"y,z\"]", "f(\"a == b\", (1,))", "['x', 'y,z']"),
            ("candidate([1]) == True, \"first\"", "candidate([1])", "True"),
            ("(f(1) == (1, 2))", "f(1)", "(1, 2)"),
            ("3 == f(1)", "f(1)", "3"),
            ("f(1) is None", "f(1)", "None"),
            ("f(1) == {1, 2}  # any order", "f(1)", "{1, 2}"),
            ("sum(10, 15) == 6", "sum(10, 15)", "6"),
            ("height(Node(1, Node(2))) == 2", "height(Node(1, Node(2)))", "2"),
            ("f() == \"\"\"a\n  b\"\"\"", "f()", "'a\\n  b'"),
            ("f(\n  1, # (one\n  2) == 3", "f(\n  1, # (one\n  2)", "3"),
            ("f ( 1 ) \\\n == 3 # all \\", "f ( 1 )", "3"),
        ] {
            let wanted = (source.to_owned(), PyValue::literal(literal).unwrap());
            assert_eq!(taken_apart(condition, "import math"), Some(wanted), "{condition}");
        }
        for condition in [
            "f(1) == g(2)",
            "math.isclose(f(1), 2.0)",
            "abs(f(1) - 2) < 1e-6",
            "f(1) == 1 == 1",
            "1 == 1",
            "True",
            "f(1) or True",
            "f(1) != 2",
            "f(1) in [1]",
            "all(f(x) for x in y)",
            "f(1)",
            "not f(1)",
            "f([1, 2])[0] == -1.5",
            "set(f(1)) == {1, 2}",
            "isclose(f(1), 2.0) == True",
            "math.isclose(f(1), 2.0) == True",
            "near(f(1), 2.0) == True",
            "f(1) - 3 == 0",
            "f(1)(2) == 3",
            "f(1) is True",
            "(f(1) == 2) == True",
            "len(f(1)) == 0",
        ] {
            assert_eq!(taken_apart(condition, "from x import near"), None, "{condition}");
        }
    }

    #[test]
    fn whole_tests_become_cases() {
        let read = |test: &str, setup: &str, entry: Option<&str>| {
            cases(test, setup, entry, &TaskCode::default(), &mut Vec::new()).unwrap()
        };
        assert!(matches!(
            cases(
                "def check(candidate): assert candidate(1) > 2",
                "",
                None,
                &TaskCode::default(),
                &mut Vec::new()
            ),
            Err(TestsError::Form(_))
        ));
        let human = "\n\nMETADATA = {\n    'author': 'x'\n}\n\n\ndef check(candidate):\n    # a\n    assert candidate([1.0,\n        2.0], 0.3) == True\n    assert candidate([1], 0.1) == False, \"m\"\n\n";
        let found = read(human, "", Some("near"));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found
                .iter()
                .all(|case| matches!(case, Case::Expression { candidate: Some(name), .. } if name == "near"))
        );
        let loops = "def check(candidate):\n    for i in range(3):\n        assert candidate(i) == i\n";
        assert!(
            matches!(read(loops, "", Some("f")).as_slice(), [Case::Script { source, .. }] if source.ends_with("check(candidate)\n"))
        );
        assert!(matches!(
            read("import math\nassert math.isclose(f(1), 1.5)", "", None).as_slice(),
            [Case::Script { .. }]
        ));
        assert!(
            matches!(read("from x import y\nassert f(1) == 2", "import z", None).as_slice(), [Case::Expression { setup, .. }] if setup == "import z\nfrom x import y")
        );
        assert!(read("# nothing", "", None).is_empty());
        // A backslash ends a comment, and swallows nothing.
        assert_eq!(read("assert f(1) == 1 # \\\nassert f(2) == 2", "", None).len(), 2);
        assert_eq!(read("assert f(1) == 1; assert f(2) == 2", "", None).len(), 2);
        assert_eq!(read("  assert f(1) == 1\n", "", None).len(), 1);
        for faulty in [
            "def check(candidate):\n    assert candidate(1) == 2\n",
            "def check(candidate):\n    assert candidate(1) == 2\ncheck(candidate)\n",
            "def check(f):\n    for i in [1]: assert f(i) == 2\ncheck(candidate)\n",
            "assert (f(1) == 2, 'always true')",
            "def test_f():\n    assert (f(1) == 2,\n        'always true')",
            "assert f(1) == ",
        ] {
            let read = cases(faulty, "", None, &TaskCode::default(), &mut Vec::new());
            assert!(matches!(read, Err(TestsError::Form(_))), "{faulty}: {read:?}");
        }
        for hostile in [
            "assert (",
            "assert '''",
            "\\",
            "assert f(1) ==",
            "assertx",
            &"assert (".repeat(2000),
            &"(".repeat(100_000),
        ] {
            let _ = cases(hostile, "", None, &TaskCode::default(), &mut Vec::new());
        }
    }
}
