//! Tests of the schema checker on schemas as `schemars` writes them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Node, check};

/// Not read by any test: the fields are there for their schema, and to show that what passes can be filled in.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct TestComponent {
    reward: String,
    #[serde(default)]
    weight: f64,
    /// With a doc comment next to the reference.
    #[serde(default)]
    mode: Option<TestMode>,
    #[serde(default)]
    unit: TestUnit,
    #[schemars(range(min = 1, max = 64))]
    #[serde(default = "five")]
    n: u32,
    #[serde(default)]
    max: Option<u32>,
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    #[serde(default)]
    temperature: Option<f64>,
    #[schemars(length(min = 1, max = 3))]
    #[serde(default)]
    principles: Option<Vec<String>>,
    #[serde(default)]
    limits: Option<Limits>,
    #[serde(default)]
    stop: Option<Stop>,
}

fn five() -> u32 {
    5
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TestMode {
    /// One response at a time.
    Pointwise,
    /// Two at a time.
    Pairwise,
    Listwise,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TestUnit {
    #[default]
    Token,
    Char,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct Limits {
    #[schemars(length(min = 2))]
    name: String,
    strict: bool,
    #[serde(default)]
    inner: Option<Box<Limits>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)]
enum Stop {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct TestRecipe {
    name: String,
    components: BTreeMap<String, TestComponent>,
    #[serde(default)]
    anything: Option<Value>,
}

fn messages(text: &str) -> Vec<String> {
    let node = Node::from_yaml(text).unwrap();
    let schema = schemars::schema_for!(TestRecipe).to_value();
    let mut errors = Vec::new();
    check(&node, &schema, "", &mut errors);
    // The struct is the measure: what the checker passes can be filled in.
    let filled = serde_json::from_value::<TestRecipe>(node.to_value());
    assert!(!errors.is_empty() || filled.is_ok(), "{filled:?}");
    errors.iter().map(ToString::to_string).collect()
}

/// What is said of one component, without its line and path.
fn of(component: &str) -> Vec<String> {
    let said = messages(&format!("name: x\ncomponents:\n  c: {component}\n"));
    said.iter().map(|m| m.replace("line 3, components.c.", "").replace("line 3, components.c", "")).collect()
}

#[test]
fn what_is_right_passes() {
    for component in [
        "{reward: r}",
        "{reward: r, weight: 1, mode: pairwise, unit: char, n: 64, max: null, temperature: 0.5}",
        "{reward: r, mode: null, principles: [a, b], stop: x, limits: {name: ab, strict: true}}",
        "{reward: r, stop: [x, z], limits: {name: ab, strict: true, inner: {name: cd, strict: false, inner: null}}}",
    ] {
        assert_eq!(of(component), [""; 0], "{component}");
    }
    assert_eq!(messages("name: x\ncomponents: {}\nanything: {a: [1, {b: no way}]}\n"), [""; 0]);
}

#[test]
fn unknown_and_missing_keys() {
    assert_eq!(
        of("{reward: r, wieght: 1, zzz: 2}"),
        [
            "wieght: unknown key (recipe.unknown_key); did you mean \"weight\"?",
            "zzz: unknown key (recipe.unknown_key); the known keys are limits, max, mode, n, principles, reward, stop, \
             temperature, unit, weight"
        ]
    );
    assert_eq!(of("{weight: 1}"), ["reward: this key is missing (recipe.missing_key)"]);
    assert_eq!(
        messages("nmae: x\n"),
        [
            "line 1, nmae: unknown key (recipe.unknown_key); did you mean \"name\"?",
            "line 1, name: this key is missing (recipe.missing_key)",
            "line 1, components: this key is missing (recipe.missing_key)"
        ]
    );
}

#[test]
fn types_are_told_in_words() {
    for (component, said) in [
        ("{reward: r, weight: high}", "weight: a number is wanted, found text \"high\" (recipe.type)"),
        (
            "{reward: r, weight: \"0.5\"}",
            "weight: a number is wanted, found text \"0.5\" (recipe.type); write it without quotes",
        ),
        ("{reward: 1}", "reward: text is wanted, found the integer 1 (recipe.type); put it in quotes"),
        ("{reward: true}", "reward: text is wanted, found true (recipe.type); put it in quotes"),
        ("{reward: }", "reward: text is wanted, found nothing (recipe.type)"),
        (
            "{reward: r, n: 2.0}",
            "n: an integer is wanted, found the number 2.0 (recipe.type); write it without a point",
        ),
        ("{reward: r, max: [1]}", "max: an integer or null is wanted, found a list (recipe.type)"),
        (
            "{reward: r, principles: {a: 1}}",
            "principles: a list or null is wanted, found a map (recipe.type)",
        ),
        (
            "{reward: r, principles: [a, 1]}",
            "principles.1: text is wanted, found the integer 1 (recipe.type); put it in quotes",
        ),
        ("{reward: r, limits: 3}", "limits: a map or null is wanted, found the integer 3 (recipe.type)"),
        (
            "{reward: r, limits: {name: ab, strict: 1}}",
            "limits.strict: true or false is wanted, found the integer 1 (recipe.type)",
        ),
        ("just text", ": a map is wanted, found text \"just text\" (recipe.type)"),
    ] {
        assert_eq!(of(component), [said], "{component}");
    }
    let said = of("{reward: r, stop: {a: 1}}");
    assert!(said.len() == 1 && said[0].contains("found a map (recipe.type)"), "{said:?}");
    assert_eq!(
        of("{reward: r, stop: [1]}"),
        ["stop.0: text is wanted, found the integer 1 (recipe.type); put it in quotes"]
    );
}

#[test]
fn choices_are_listed() {
    assert_eq!(
        of("{reward: r, mode: pairwize, unit: tokens}"),
        [
            "mode: one of listwise, pointwise, pairwise is wanted, found text \"pairwize\" (recipe.choice); did you mean \"pairwise\"?",
            "unit: one of token, char is wanted, found text \"tokens\" (recipe.choice); did you mean \"token\"?"
        ]
    );
    assert_eq!(
        of("{reward: r, unit: 3}"),
        ["unit: one of token, char is wanted, found the integer 3 (recipe.type)"]
    );
    assert_eq!(
        of("{reward: r, unit: sentence}"),
        ["unit: one of token, char is wanted, found text \"sentence\" (recipe.choice)"]
    );
}

#[test]
fn ranges() {
    for (component, said) in [
        ("{reward: r, n: 0}", "n: at least 1 is wanted, found the integer 0 (recipe.range)"),
        ("{reward: r, n: 65}", "n: at most 64 is wanted, found the integer 65 (recipe.range)"),
        ("{reward: r, max: -1}", "max: at least 0 is wanted, found the integer -1 (recipe.range)"),
        (
            "{reward: r, max: 5000000000}",
            "max: at most 4294967295 is wanted, found the integer 5000000000 (recipe.range)",
        ),
        (
            "{reward: r, temperature: -1e300}",
            "temperature: more than 0 is wanted, found the number -1e300 (recipe.range)",
        ),
        (
            "{reward: r, temperature: 0}",
            "temperature: more than 0 is wanted, found the integer 0 (recipe.range)",
        ),
        (
            "{reward: r, principles: []}",
            "principles: the number of items must be at least 1, found 0 (recipe.range)",
        ),
        (
            "{reward: r, principles: [a, b, c, d]}",
            "principles: the number of items must be at most 3, found 4 (recipe.range)",
        ),
        (
            "{reward: r, limits: {name: é, strict: true}}",
            "limits.name: the number of characters must be at least 2, found 1 (recipe.range)",
        ),
    ] {
        assert_eq!(of(component), [said], "{component}");
    }
}

#[test]
fn every_mistake_of_every_level() {
    let said = messages(
        "name: 3\ncomponents:\n  a: {}\n  b:\n    reward: r\n    weight: x\n    limits: {name: a, wrong: 1}\nextra: 1\n",
    );
    let places: Vec<_> = said.iter().map(|m| m.split(": ").next().unwrap()).collect();
    assert_eq!(
        places,
        [
            "line 1, name",
            "line 3, components.a.reward",
            "line 6, components.b.weight",
            "line 7, components.b.limits.name",
            "line 7, components.b.limits.wrong",
            "line 7, components.b.limits.strict",
            "line 8, extra"
        ]
    );
}

#[test]
fn a_hostile_tree_is_checked_in_time() {
    let keys: String = (0..60_000).map(|i| format!("w{i}: {{}}\n")).collect();
    assert_eq!(messages(&keys).len(), super::error::ERRORS_MAX);
    let long = format!("name: x\ncomponents:\n  {}:\n    zz: 1\n", "k".repeat(900));
    assert!(messages(&long).iter().all(|m| m.len() < 300), "{:?}", messages(&long));
}

#[test]
fn broken_schemas_are_told_and_end() {
    let node = Node::from_value(&json!({"a": 1})).unwrap();
    for schema in [
        json!({"$ref": "#/$defs/Missing"}),
        json!({"$ref": "#/$defs/Loop", "$defs": {"Loop": {"$ref": "#/$defs/Loop"}}}),
        json!({"properties": {"a": false}}),
        json!(3),
    ] {
        let mut errors = Vec::new();
        check(&node, &schema, "base", &mut errors);
        assert_eq!(errors.iter().map(|m| m.code).collect::<Vec<_>>(), ["recipe.schema"], "{schema}");
        assert!(errors[0].path.starts_with("base"));
    }
}
