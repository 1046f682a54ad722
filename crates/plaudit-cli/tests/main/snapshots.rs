//! Snapshots of what a person sees: the help of each verb, the pages, the errors of a recipe and a summary.

use crate::support::{Folder, LENGTH, rollouts, run};

#[test]
fn help() {
    insta::assert_snapshot!("help", run(&["--help"]).out);
    for verb in ["score", "rank", "rewards", "recipe"] {
        insta::assert_snapshot!(format!("help_{verb}"), run(&[verb, "--help"]).out);
    }
    insta::assert_snapshot!("help_recipe_check", run(&["recipe", "check", "--help"]).out);
    assert_eq!(run(&["--version"]).out, concat!("plaudit ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn pages_of_rewards() {
    insta::assert_snapshot!("rewards", run(&["rewards"]).out);
    insta::assert_snapshot!("rewards_length_penalty", run(&["rewards", "length_penalty"]).out);
}

#[test]
fn every_line_fits_a_hundred_columns() {
    let list = run(&["rewards", "--json"]).out;
    let all: serde_json::Value = serde_json::from_str(&list).unwrap();
    let names = all.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned());
    let pages = names.flat_map(|name| {
        let page = run(&["rewards", &name]).out;
        let own = page.split("\nParameters\n").last().unwrap().to_owned();
        own.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    for line in run(&["rewards"]).out.lines().map(str::to_owned).chain(pages) {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn errors_and_meaning_of_recipes() {
    let folder = Folder::new("recipe-errors");
    let text = "name: bad\ncomponents:\n  length: { reward: length_penlty, wieght: 1.0 }\n  \
        other: { reward: length_penalty, min_length: -1, colour: red }\ncombine: product\n";
    let ran = run(&["recipe", "check", &folder.file("bad.yaml", text)]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    insta::assert_snapshot!("recipe_errors", ran.talk);
    let routed = folder.file("routed.yaml", "components: { length: { reward: length_penalty, weight: -0.5 } }\nroute: { by: extra.kind, cases: { maths: math } }\n");
    insta::assert_snapshot!("meaning", run(&["recipe", "check", &routed]).out);
}

#[test]
fn summary() {
    let folder = Folder::new("summary");
    let recipe = folder
        .file("recipe.yaml", format!("{LENGTH}route: {{ by: extra.kind, cases: {{ maths: math }} }}\n"));
    let mut lines = rollouts(50, 8);
    lines.push(
        "{\"id\":\"m\",\"response\":\"<think>a</think><answer>4</answer>\",\"kind\":\"maths\"}".to_owned(),
    );
    lines.push("nonsense".to_owned());
    let input = folder.file("in.jsonl", lines.join("\n"));
    let ran = run(&["rank", &input, "--keep", "2", "-r", &recipe]);
    let (head, rest) = ran.talk.split_once(" groups  ").unwrap_or_else(|| panic!("{}", ran.talk));
    let (_, rest) = rest.split_once("MB/s").unwrap();
    insta::assert_snapshot!("summary", format!("{head} groups  TIMES{rest}"));
}
