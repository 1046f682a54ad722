//! Values that tests compare, in a real box: large integers, equal items, large sets and dictionaries, long results.

use crate::{python, verdicts};
use plaudit_code::Verdict::{self, Passed, Wrong};
use plaudit_text::exact;
use serde_json::{Value, json};

fn all_give(tests: &Value, code: &str, wanted: Verdict) {
    for execution in python(code, tests) {
        assert_eq!(verdicts(&execution), [wanted], "{code}: {execution:?}");
    }
}

#[test]
fn large_integers_are_compared_exactly() {
    let call = r#"{"fn_name": "f", "inputs": [[100000000000000000001]], "outputs": [100000000000000000003]}"#;
    let lines =
        r#"{"fn_name": "f", "inputs": ["100000000000000000001"], "outputs": ["100000000000000000003"]}"#;
    let below =
        r#"{"fn_name": "f", "inputs": [[-9223372036854775811]], "outputs": [[-9223372036854775809]]}"#;
    for given in [call, lines, below] {
        for tests in [exact::read(given).unwrap(), json!(given)] {
            all_give(&tests, "def f(x): return x + 2 if x & 1 else 0", Passed);
            all_give(&tests, "def f(x): return x + 1", Wrong);
            all_give(&tests, "def f(x): return float(x + 2)", Wrong);
            all_give(&tests, "def f(x): return str(x + 2)", Wrong);
        }
    }
    let output = exact::read(r#"{"inputs": ["1"], "outputs": [100000000000000012345]}"#).unwrap();
    all_give(&output, "print(10 ** 20 + 12345)", Passed);
    all_give(&output, "print(10 ** 20)", Wrong);
    let nested = exact::read(
        r#"{"fn_name": "f", "inputs": [[{"a": [100000000000000000001, -0, 1.0]}]], "outputs": [{"b": [[100000000000000000001]]}]}"#,
    );
    let code =
        "def f(d): return {'b': [(d['a'][0],)]} if [type(x) for x in d['a']] == [int, int, float] else 0";
    all_give(&nested.unwrap(), code, Passed);
}

#[test]
fn equal_items_count_once() {
    let tests = json!(["assert f([1,1,2]) == set([1,1,2])"]);
    all_give(&tests, "def f(x): return set(x)", Passed);
    all_give(&tests, "def f(x): return set(x[:2])", Wrong);
    all_give(&json!(["assert f([1]) == {1, 1}"]), "def f(x): return set(x)", Passed);
    all_give(&json!(["assert f(1) == {1: 'a', 1: 'b'}"]), "def f(x): return {1: 'b'}", Passed);
    all_give(&json!(["assert f(1) == {1: 'a', 1: 'b'}"]), "def f(x): return {1: 'a'}", Wrong);
}

/// As Python compares them: exactly.
#[test]
fn fractions_and_decimals_equal_numbers() {
    for (result, expected, wanted) in [
        ("Fraction(1, 2)", "0.5", Passed),
        ("[Fraction(6, 3), Decimal('1.50')]", "[2, 1.5]", Passed),
        ("Decimal('0.1')", "0.1", Wrong),
        ("Fraction(1, 3)", "0.3333333333333333", Wrong),
        ("Fraction(1, 2)", "'1/2'", Wrong),
    ] {
        let code =
            format!("from fractions import Fraction\nfrom decimal import Decimal\ndef f(): return {result}");
        all_give(&json!([format!("assert f() == {expected}")]), &code, wanted);
        all_give(&json!([format!("assert f() == {expected} and True")]), &code, wanted);
    }
}

#[test]
fn results_of_many_digits_are_compared() {
    let digits = "1234567890".repeat(1000);
    let code = "def f(n): return int('1234567890' * n)";
    for tests in [
        json!([format!("assert f(1000) == {digits}")]),
        json!({"fn_name": "f", "inputs": [[1000]], "outputs": [digits]}),
    ] {
        all_give(&tests, code, Passed);
        all_give(&tests, "def f(n): return int('1234567890' * n) + 1", Wrong);
    }
    let argument = json!({"fn_name": "f", "inputs": [digits], "outputs": ["10000"]});
    all_give(&argument, "def f(n): return len(str(n))", Passed);
    all_give(&json!({"inputs": [digits], "outputs": [digits]}), "print(int(input()))", Passed);
}

#[test]
fn large_dicts_are_compared_at_once() {
    let expected: Vec<String> = (0..30_000).map(|key| format!("\"{key}\": {key}")).collect();
    let outputs = format!("{{{}}}", expected.join(", "));
    let tests = json!({"fn_name": "f", "inputs": [[30_000]], "outputs": [outputs]});
    let started = std::time::Instant::now();
    all_give(&tests, "def f(n): return {k: k for k in reversed(range(n))}", Passed);
    all_give(&tests, "def f(n): return {k: k for k in range(1, n + 1)}", Wrong);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}
