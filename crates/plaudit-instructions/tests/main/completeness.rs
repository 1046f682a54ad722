//! The tables are complete: every id, documented, and with arguments that say what is missing.

use crate::golden;
use crate::vectors::read;
use plaudit_instructions::{ArgumentErrorKind, Family, Semantics, constraints, find, parse};
use serde_json::json;
use std::collections::BTreeSet;

#[test]
fn every_id_once() {
    let ids: BTreeSet<&str> = constraints().map(|constraint| constraint.id).collect();
    assert_eq!((ids.len(), constraints().count()), (112, 112));
    let count = |family| constraints().filter(|constraint| constraint.family == family).count();
    assert_eq!([Family::IfEval, Family::IfRlvr, Family::IfBench].map(count), [25, 29, 58]);
    let known: BTreeSet<String> = read(&golden("instructions.jsonl"))
        .into_iter()
        .filter(|vector| vector.tag != "unknown id")
        .map(|vector| vector.constraint)
        .collect();
    assert_eq!(known.iter().map(String::as_str).collect::<BTreeSet<_>>(), ids);
}

#[test]
fn every_id_is_documented() {
    for constraint in constraints() {
        for text in [constraint.checks, constraint.gamed] {
            assert!(text.ends_with('.') && !text.contains("  "), "{constraint:?}: {text:?}");
        }
        assert!(constraint.difference.is_empty() || constraint.difference.len() > 20, "{constraint:?}");
    }
}

#[test]
fn missing_arguments_are_named() {
    for constraint in constraints() {
        for semantics in [Semantics::Published, Semantics::Corrected] {
            let result = parse(constraint.id, &json!({}), semantics);
            let needed = constraint.parameters.iter().find(|parameter| !parameter.optional);
            match (result, needed) {
                (Ok(_), None) => {}
                (Err(error), Some(_)) => {
                    assert_eq!(
                        (error.id.as_str(), &error.problem),
                        (constraint.id, &ArgumentErrorKind::Missing)
                    );
                    assert!(constraint.parameters.iter().any(|parameter| parameter.name == error.argument));
                }
                (result, needed) => panic!("{constraint:?}: {result:?} with {needed:?}"),
            }
            let stray = parse(constraint.id, &json!({"nonsense": 1}), semantics).unwrap_err();
            assert_eq!(
                (stray.argument.as_str(), stray.problem),
                ("nonsense", ArgumentErrorKind::UnknownArgument)
            );
        }
    }
}

#[test]
fn unknown_ids_are_errors() {
    for id in ["", "keywords:existance", "punctuation:no_comma "] {
        assert_eq!(
            parse(id, &json!({}), Semantics::Corrected).unwrap_err().problem,
            ArgumentErrorKind::UnknownConstraint
        );
    }
    assert!(find("punctuation:no_comma").is_some());
}

#[test]
fn checks_are_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<plaudit_instructions::Check>();
}

/// The table of the crate's README.
fn table() -> String {
    let mut table = "| Family | Ids |\n|---|---|\n".to_owned();
    for (family, name) in
        [(Family::IfEval, "IFEval"), (Family::IfRlvr, "IF-RLVR, beside those"), (Family::IfBench, "IFBench")]
    {
        let ids: Vec<String> = constraints()
            .filter(|constraint| constraint.family == family)
            .map(|constraint| {
                let names: Vec<&str> = constraint.parameters.iter().map(|parameter| parameter.name).collect();
                let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
                format!("`{}`{names}", constraint.id)
            })
            .collect();
        table += &format!("| {name} | {} |\n", ids.join(", "));
    }
    table
}

#[test]
fn readme_lists_every_id() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once("<!-- ids -->\n").unwrap();
    let after = rest.split_once("\n`constraints()`").unwrap().1;
    let wanted = format!("{before}<!-- ids -->\n\n{}\n`constraints()`{after}", table());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &wanted).unwrap();
    }
    assert!(text == wanted || std::env::var_os("UPDATE").is_some(), "run the test with UPDATE=1");
}
