//! Tests of the YAML reader: what it keeps, and what it rejects by name and line.

use super::yaml::read;
use super::{Node, Tree};

fn codes(text: &str) -> Vec<&'static str> {
    read(text, "").err().into_iter().flatten().map(|error| error.code).collect()
}

fn messages(text: &str) -> Vec<String> {
    read(text, "").err().into_iter().flatten().map(|error| error.to_string()).collect()
}

#[test]
fn order_and_lines_are_kept() {
    let node = read("name: a\ncomponents:\n  z: {n: 5}\n  no: [x, \"012\", 300s]\nlast:\n", "").unwrap();
    let names: Vec<_> = node.entries().map(|(key, _)| (key.name.as_str(), key.line)).collect();
    assert_eq!(names, [("name", Some(1)), ("components", Some(2)), ("last", Some(5))]);
    let components = node.get("components").unwrap();
    assert_eq!(components.line, Some(2));
    assert_eq!(components.get("z").unwrap().get("n").unwrap(), &Node { line: Some(3), value: Tree::Int(5) });
    let no = components.get("no").unwrap().to_value();
    assert_eq!(no, serde_json::json!(["x", "012", "300s"]));
    assert_eq!(node.get("last").unwrap(), &Node { line: Some(5), value: Tree::Null });
}

#[test]
fn every_mistake_is_found() {
    let text = "a: no\nb: &x 1\nc: *x\nd: !!str 1\n1.0: 2\n[k]: ${HOME}\na: 012\ne:\n  - .inf\n  - ok\n  - {<<: {}}\n";
    assert_eq!(
        messages(text).iter().map(|m| m.split(':').next().unwrap()).collect::<Vec<_>>(),
        [
            "line 1, a",
            "line 2, b",
            "line 3, c",
            "line 4, d",
            "line 5, \"1.0\"",
            "line 6, ?",
            "line 6, ?",
            "line 7, a",
            "line 7, a",
            "line 9, e.0",
            "line 11, e.2.<<"
        ]
    );
    assert!(messages(text)[7].contains("lines 1 and 7"), "{:?}", messages(text));
}

#[test]
fn one_document_with_something_in_it() {
    assert_eq!(codes("a: 1\n---\nb: 2\n"), ["recipe.documents"]);
    assert_eq!(codes("---\na: 1\n...\n"), [""; 0]);
    for text in ["", " \n", "# only a comment\n", "---\n", "\u{feff}"] {
        assert_eq!(codes(text), ["recipe.empty"], "{text:?}");
    }
}

#[test]
fn what_is_not_yaml() {
    assert!(
        messages("a: 1\nb: c: d\n")[0].starts_with("line 2: not YAML: "),
        "{:?}",
        messages("a: 1\nb: c: d\n")
    );
    assert_eq!(codes("a: b: c"), ["recipe.syntax"]);
    assert_eq!(codes("a: 1\0b: 2"), ["recipe.syntax"]);
    assert_eq!(codes("\u{feff}\u{feff}a: 1"), ["recipe.syntax"]);
    assert_eq!(codes("a: no\nb: [\n"), ["recipe.type", "recipe.syntax"]);
    assert_eq!(codes("a: *nobody"), ["recipe.anchors"]);
    assert_eq!(codes("a: !x!y z"), ["recipe.tag"]);
}

#[test]
fn secrets_are_never_shown() {
    for secret in
        ["sk-THISISASECRET", "01234567890", "12:30:45", "\"quoted secret\"", "[sk-THISISASECRET]", "'${KEY}'"]
    {
        let said = messages(&format!("judges: {{main: {{Api_Key: {secret}}}}}"));
        assert!(said.iter().all(|m| m.contains("recipe.inline_secret")), "{said:?}");
        let hidden: String = secret.chars().filter(|c| !"['\"".contains(*c)).take(3).collect();
        assert!(said.iter().all(|m| !m.contains(&hidden)), "{said:?}");
    }
    assert_eq!(codes("api_key_env: JUDGE_API_KEY\ntoken: null\n"), [""; 0]);
}

#[test]
fn an_ordinary_recipe_is_read() {
    let text = r#"
name: tutorial
components:
  principle:                      # name of the component, and of its column
    reward: principle
    weight: 0.95
    principles: [helpfulness, harmlessness, honesty]
  ngram:          { reward: ngram_repetition_penalty, weight: 1.0, n: 5, use_soft_penalty: true, max_penalty: -1.0 }
invalid_value: -999.0
judges:
  main: { base_url: "http://127.0.0.1:8000/v1", model: qwen3-32b, api_key_env: JUDGE_API_KEY, timeout: 30s }
route: { by: extra.data_source, cases: { math: math, code: code }, default: tutorial }
"#;
    let value = read(text, "").unwrap().to_value();
    assert_eq!(value["components"]["ngram"]["max_penalty"], -1.0);
    assert_eq!(value["judges"]["main"]["timeout"], "30s");
    assert_eq!(value["route"]["by"], "extra.data_source");
}
