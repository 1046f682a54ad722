//! Tests of the recipe readers on abuse cases, hostile sizes and random text.

use std::time::Instant;

use proptest::prelude::*;

use super::tree::SIZE_MAX;
use super::{Node, RecipeErrors, Tree, TreeKey};

/// The cases that can be decided before anything is known about rewards.
const TREE_CASES: [&str; 15] =
    ["R01", "R03", "R04", "R05", "R06", "R07", "R08", "R09", "R10", "R12", "R14", "R17", "R28", "R29", "R30"];

fn codes(read: Result<Node, RecipeErrors>) -> Vec<&'static str> {
    read.err().into_iter().flatten().map(|error| error.code).collect()
}

#[test]
fn abuse_cases_get_their_code_in_time() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/abuse/recipe_cases.jsonl");
    let file = std::fs::read_to_string(path).unwrap();
    let cases: Vec<serde_json::Value> =
        file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for id in TREE_CASES {
        let case = cases.iter().find(|case| case["id"] == id).unwrap();
        let start = crate::timing::cpu_time();
        let read = Node::from_yaml(case["payload"].as_str().unwrap());
        let took = (crate::timing::cpu_time() - start).as_millis();
        assert!(took <= u128::from(case["expect"]["max_ms"].as_u64().unwrap()), "{id} took {took} ms");
        if case["expect"]["outcome"] == "ok" {
            assert!(read.is_ok(), "{id}: {read:?}");
            continue;
        }
        // The reason begins with the code; what follows is a note to the reader.
        let reason = case["expect"]["reason"].as_str().unwrap();
        let wanted = reason.split([' ', ':', ';']).next().unwrap();
        let errors = read.unwrap_err();
        assert!(errors.as_slice().iter().any(|error| error.code == wanted), "{id}: {errors}");
        assert!(!errors.to_string().contains("THISISASECRET"), "{id}");
    }
}

/// A megabyte of one thing or another: no stack overflow, no quadratic time, a clear answer.
#[test]
fn hostile_megabytes_end_quickly() {
    let pieces = [
        "[",
        "{",
        "- ",
        "? ",
        "a: ",
        "{a: ",
        "[a, ",
        "!",
        "&a ",
        "*a ",
        "\"",
        "'",
        "\n",
        " ",
        "\t",
        "#",
        "x",
        "x: 1\n",
        "- - a\n",
        "|\n",
        ">\n ",
        "a\n",
        "a: b\n\n",
        "---\n",
        "%",
        ",",
        "]",
        "}",
        ":",
        "\\",
        "-",
        "é",
        "[],",
        "~: ",
        "- *a\n",
        "- no\n",
        "? a\n: b\n",
        "\"a\": ",
        "{\"a\":",
        "\r",
        "...\n",
        "<<: ",
    ];
    for piece in pieces {
        for prefix in ["", "a: ["] {
            let text = format!("{prefix}{}", piece.repeat((SIZE_MAX - prefix.len()) / piece.len()));
            let started = Instant::now();
            let counts = (codes(Node::from_yaml(&text)).len(), codes(Node::from_json(&text)).len());
            let took = started.elapsed().as_secs();
            assert!(took < 10, "{prefix:?} {piece:?} took {took} s, errors {counts:?}");
        }
    }
}

#[test]
fn depth_is_bounded() {
    for depth in [32, 33] {
        let flow = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let block: String = (0..depth).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
        let wanted: &[&str] = if depth > 32 { &["recipe.depth"] } else { &[] };
        assert_eq!(codes(Node::from_yaml(&flow)), wanted);
        assert_eq!(codes(Node::from_json(&flow)), wanted);
        assert_eq!(codes(Node::from_yaml(&block)), wanted);
    }
    assert_eq!(codes(Node::from_yaml(&"[".repeat(SIZE_MAX))), ["recipe.depth"]);
    assert_eq!(codes(Node::from_yaml(&"- ".repeat(SIZE_MAX / 2))), ["recipe.depth"]);
}

fn trees() -> impl Strategy<Value = Node> {
    let single = prop_oneof![
        Just(Tree::Null),
        any::<bool>().prop_map(Tree::Bool),
        any::<i64>().prop_map(Tree::Int),
        any::<f64>().prop_filter("numbers are finite", |value| value.is_finite()).prop_map(Tree::Float),
        "[^$]{0,12}".prop_map(Tree::Text),
    ];
    let node = |value| Node { line: None, value };
    single.prop_map(node).prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Tree::List),
            // In the order of their names, which is the one that a JSON value keeps.
            prop::collection::btree_map("[a-z.]{0,4}", inner, 0..5).prop_map(|entries| {
                Tree::Map(
                    entries.into_iter().map(|(name, node)| (TreeKey { name, line: None }, node)).collect(),
                )
            }),
        ]
        .prop_map(node)
    })
}

/// Text made of what YAML and JSON give a meaning to, so that random text goes deeper than its first character.
fn yamlish() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "b",
        ": ",
        ":",
        "- ",
        "-",
        "\n",
        "\n  ",
        " ",
        "\t",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "\"",
        "'",
        "#",
        "&x ",
        "*x",
        "!t ",
        "!!",
        "? ",
        "| ",
        "|\n",
        ">-\n",
        "%",
        "---\n",
        "...\n",
        "<<: ",
        "no",
        "1",
        "0",
        ".",
        "e9",
        "~",
        "\\",
        "\\u",
        "é",
        "\u{feff}",
        "\r",
        "\u{85}",
        "${X}",
        "api_key: ",
        "😀",
        "@",
        "`",
        "%YAML 1.2\n",
        "%TAG ! t\n",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_never_panics(text in prop_oneof![any::<String>(), yamlish()], path in "[a-z0-9.<]{0,8}") {
        for read in [Node::from_yaml(&text), Node::from_json(&text)] {
            if let Err(errors) = &read {
                prop_assert!(!errors.as_slice().is_empty());
            }
        }
        let mut node = Node::from_yaml("a: {b: [1, {c: 2}]}").unwrap();
        let before = node.clone();
        if node.set(&path, &text).is_err() {
            prop_assert_eq!(node, before);
        }
    }

    #[test]
    fn a_tree_survives_as_value_and_as_text(node in trees()) {
        prop_assert_eq!(&Node::from_value(&node.to_value()).unwrap(), &node);
        let text = node.to_value().to_string();
        prop_assert_eq!(Node::from_json(&text).unwrap().to_value(), node.to_value());
    }
}
