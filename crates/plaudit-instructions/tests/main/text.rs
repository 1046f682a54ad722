//! Text functions against NLTK 3.9.2 and CPython 3.11: sentences, tokens, words, lines and case.

use crate::golden;
use plaudit_instructions::text::{punkt, splitter, treebank};
use serde_json::{Value, json};

#[test]
fn text_functions_of_the_peers() {
    let rows = std::fs::read_to_string(golden("instructions_text.jsonl")).unwrap();
    let mut count = 0;
    for row in rows.lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        let text = row["text"].as_str().unwrap();
        let ours = [
            ("punkt", json!(punkt::sentences(text))),
            ("split", json!(splitter::sentences(text).iter().collect::<Vec<_>>())),
            ("tokens", json!(treebank::tokens(text))),
            ("runs", json!(plaudit_text::runs(text).collect::<Vec<_>>())),
            ("words", json!(plaudit_text::split(text).collect::<Vec<_>>())),
            ("lower", json!(plaudit_text::lower(text))),
            ("upper", json!([plaudit_text::is_upper(text), plaudit_text::is_lower(text)])),
            ("lines", json!(plaudit_text::lines(text).collect::<Vec<_>>())),
            ("strip", json!(plaudit_text::strip(text))),
        ];
        for (name, value) in ours {
            assert_eq!(row[name], value, "{name} of {text:?}");
        }
        count += 1;
    }
    assert!(count > 1000);
}
