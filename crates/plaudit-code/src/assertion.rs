//! Assert statements of MBPP and HumanEval, taken apart: the call goes into the box, what it must return stays outside.

use crate::cases::{Case, TestsError};
use crate::script;
use crate::task_code::TaskCode;
use crate::value::PyValue;

/// The cases of a test that is Python: one for each assert where all can be taken apart, else scripts.
pub(crate) fn cases(
    test: &str,
    setup: &str,
    entry_point: Option<&str>,
    task: &TaskCode,
) -> Result<Vec<Case>, TestsError> {
    let script = || script::cases(test, setup, entry_point, &task.source);
    let Some((imports, asserts)) = statements(test) else { return script() };
    if asserts.is_empty() {
        return Ok(Vec::new());
    }
    let setup =
        if imports.is_empty() { setup.to_owned() } else { format!("{setup}\n{}", imports.join("\n")) };
    let mut cases = Vec::new();
    for assert in asserts {
        let Some((source, expected)) = take_apart(&assert, &setup) else { return script() };
        // The program's box does not have the task's own functions.
        if task.is_used_by(&source, entry_point) {
            return script();
        }
        let candidate = entry_point.map(str::to_owned);
        cases.push(Case::Expression { setup: setup.clone(), source, expected, candidate });
    }
    Ok(cases)
}

/// A statement over several lines is scanned again with each of them; a longer one is not taken apart.
const LONGEST_STATEMENT: usize = 32 * 1024;

/// The imports and the conditions of the asserts, where there is nothing else that does something.
fn statements(test: &str) -> Option<(Vec<String>, Vec<String>)> {
    let (mut imports, mut asserts) = (Vec::new(), Vec::new());
    let mut lines = test.lines();
    while let Some(line) = lines.next() {
        let mut statement = line.trim().to_owned();
        // A statement goes on while a bracket or a triple quote is open, or after a backslash.
        loop {
            if let Some(rest) = statement.strip_suffix('\\') {
                statement = rest.to_owned();
            } else if Scan::of(&statement).open == 0 {
                break;
            }
            if statement.len() > LONGEST_STATEMENT {
                return None;
            }
            statement.push(' ');
            statement.push_str(lines.next()?.trim());
        }
        let first = statement.split_ascii_whitespace().next().unwrap_or("");
        match first {
            "" | "pass" => {}
            "import" | "from" => imports.push(statement),
            _ if first.starts_with('#') || statement == "def check(candidate):" => {}
            _ if first == "METADATA" || statement == "check(candidate)" => {}
            _ if statement.starts_with("assert") => {
                let rest = &statement["assert".len()..];
                if !rest.starts_with([' ', '(', '\t']) {
                    return None;
                }
                asserts.push(rest.trim().to_owned());
            }
            _ => return None,
        }
    }
    Some((imports, asserts))
}

/// What a scan of an expression found outside brackets and quotes.
struct Scan {
    /// Brackets that are still open.
    open: usize,
    /// `==` at the top: where.
    equals: Vec<usize>,
    /// The first comma at the top.
    comma: Option<usize>,
    /// `#` at the top.
    comment: Option<usize>,
    /// Whether another comparison or a logical word stands at the top.
    other: bool,
    /// ` is ` at the top: where.
    is: Option<usize>,
}

impl Scan {
    fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut scan =
            Self { open: 0, equals: Vec::new(), comma: None, comment: None, other: false, is: None };
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                quote @ (b'"' | b'\'') => {
                    let triple = bytes[at..].starts_with(&[quote; 3]);
                    at = after_quote(bytes, at, quote, triple);
                    if at > bytes.len() {
                        // Never closed: a triple quote goes on in the next line.
                        scan.open += usize::from(triple);
                    }
                    continue;
                }
                b'(' | b'[' | b'{' => scan.open += 1,
                b')' | b']' | b'}' => scan.open = scan.open.saturating_sub(1),
                _ if scan.open > 0 => {}
                b'#' => {
                    scan.comment = Some(at);
                    break;
                }
                b',' => scan.comma = scan.comma.or(Some(at)),
                b'=' if bytes.get(at + 1) == Some(&b'=') => {
                    scan.equals.push(at);
                    at += 1;
                }
                b'<' | b'>' | b'!' | b'=' => scan.other = true,
                b' ' => {
                    let rest = &text[at..];
                    scan.other |= [" and ", " or ", " in ", " not ", " if ", " is not "]
                        .iter()
                        .any(|word| rest.starts_with(word));
                    if rest.starts_with(" is ") && scan.is.is_none() {
                        scan.is = Some(at);
                    }
                }
                _ => {}
            }
            at += 1;
        }
        scan
    }
}

/// Where the text goes on after a quoted part; beyond its end where the quote never closes.
fn after_quote(bytes: &[u8], start: usize, quote: u8, triple: bool) -> usize {
    let mut at = start + if triple { 3 } else { 1 };
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            byte if byte == quote && !triple => return at + 1,
            byte if byte == quote && bytes[at..].starts_with(&[quote; 3]) => return at + 3,
            _ => {}
        }
        at += 1;
    }
    bytes.len() + 1
}

/// The call of a condition and what it must return, where that is a literal. A condition that is more than one call of the
/// program's function is not taken apart: it could hold what is expected, and the program's interpreter would decide about it.
fn take_apart(condition: &str, setup: &str) -> Option<(String, PyValue)> {
    let scan = Scan::of(condition);
    let end = [scan.comma, scan.comment].into_iter().flatten().min().unwrap_or(condition.len());
    let mut condition = condition[..end].trim();
    // `assert (f(1) == 2)` is the same without its parentheses.
    for _ in 0..4 {
        if condition.starts_with('(') && condition.ends_with(')') && closes_at_end(condition) {
            condition = condition[1..condition.len() - 1].trim();
        }
    }
    let scan = Scan::of(condition);
    if scan.other {
        return None;
    }
    let value = |source: &str, literal: &str| {
        let expected = PyValue::literal(literal.trim())?;
        is_call(source.trim(), setup).then(|| (source.trim().to_owned(), expected))
    };
    match (scan.equals.as_slice(), scan.is) {
        ([at], None) => {
            let (left, right) = (&condition[..*at], &condition[at + 2..]);
            value(left, right).or_else(|| value(right, left))
        }
        // `1 is True` does not hold, though `1 == True` does.
        ([], Some(at)) => {
            value(&condition[..at], &condition[at + 4..]).filter(|(_, expected)| *expected == PyValue::None)
        }
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

/// Whether a source is one call of a function of the program.
fn is_call(source: &str, setup: &str) -> bool {
    let Some(at) = source.find('(') else { return false };
    let (name, arguments) = source.split_at(at);
    let word = !name.is_empty()
        && !name.starts_with(|letter: char| letter.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    // What the test brings along is not the program's, and the program could change it.
    let letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let brought = setup.contains("import *") || setup.split(|other| !letter(other)).any(|word| word == name);
    if !word || brought || !closes_at_end(arguments) {
        return false;
    }
    let built_in = BUILT_IN.contains(&name) || MORE_BUILT_IN.contains(&name);
    !built_in || !arguments[1..].contains('(')
}

/// Whether the bracket that opens a text is closed by its last character.
fn closes_at_end(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (mut at, mut open) = (0, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'"' | b'\'') => {
                at = after_quote(bytes, at, quote, bytes[at..].starts_with(&[quote; 3]));
                continue;
            }
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => {
                open = open.saturating_sub(1);
                if open == 0 {
                    return at + 1 == bytes.len();
                }
            }
            _ => {}
        }
        at += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            let wanted = (source.to_owned(), PyValue::literal(literal).unwrap());
            assert_eq!(take_apart(condition, "import math"), Some(wanted), "{condition}");
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
            assert_eq!(take_apart(condition, "from x import near"), None, "{condition}");
        }
    }

    #[test]
    fn whole_tests_become_cases() {
        let read = |test: &str, setup: &str, entry: Option<&str>| {
            cases(test, setup, entry, &TaskCode::default()).unwrap()
        };
        assert!(matches!(
            cases("def check(candidate): assert candidate(1) > 2", "", None, &TaskCode::default()),
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
        for hostile in [
            "assert (",
            "assert '''",
            "\\",
            "assert f(1) ==",
            "assertx",
            &"assert (".repeat(2000),
            &"(".repeat(100_000),
        ] {
            let _ = cases(hostile, "", None, &TaskCode::default());
        }
    }
}
