//! Streaming: results are the same however the work is cut, ordered or spread.

use crate::support::{COMPARING, Folder, LENGTH, feed, rollouts, run, shuffled};
use serde_json::Value;

/// Runs with a number of threads; gives the results and the summary without its times.
fn scored(folder: &Folder, recipe: &str, input: &str, parallel: usize) -> (String, Value) {
    let summary = folder.path("summary.json");
    let set = format!("groups.parallel={parallel}");
    let ran = run(&["score", input, "--recipe", recipe, "--set", &set, "--summary", &summary, "-q"]);
    assert_eq!(ran.code, 0, "{}", ran.talk);
    let mut summary: Value = serde_json::from_str(&folder.read("summary.json")).unwrap();
    for key in ["seconds", "rollouts_per_second"] {
        assert!(summary.as_object_mut().unwrap().remove(key).is_some_and(|value| value.is_f64()));
    }
    (ran.out, summary)
}

#[test]
fn results_are_the_same_at_any_parallelism() {
    let folder = Folder::new("parallel");
    let recipe = folder.file("recipe.yaml", COMPARING);
    let input = folder.file("in.jsonl", shuffled(&rollouts(800, 8)).join("\n"));
    let one = scored(&folder, &recipe, &input, 1);
    assert_eq!(one.0.lines().count(), 6400);
    assert_eq!(one.1["input"]["rollouts"], 6400);
    for parallel in [2, 3, 8, 16] {
        assert!(scored(&folder, &recipe, &input, parallel) == one, "{parallel} threads");
    }
    let table = |parallel: usize| {
        let (set, out) = (format!("groups.parallel={parallel}"), folder.path("out.parquet"));
        let ran = run(&["score", &input, "--recipe", &recipe, "--set", &set, "--out", &out, "-q"]);
        assert_eq!(ran.code, 0, "{}", ran.talk);
        std::fs::read(out).unwrap()
    };
    let one = table(1);
    assert!([2, 3, 8, 16].iter().all(|parallel| table(*parallel) == one));
}

#[test]
fn line_order_changes_only_the_order_of_results() {
    let folder = Folder::new("order");
    let recipe = folder.file("recipe.yaml", COMPARING);
    let lines = rollouts(100, 8);
    let results = |lines: &[String], name: &str| {
        let input = folder.file(name, lines.join("\n"));
        let (out, _) = scored(&folder, &recipe, &input, 2);
        let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
        // Results come in input order.
        for (result, line) in out.lines().zip(lines) {
            assert_eq!(id(result), id(line));
        }
        let mut all: Vec<String> = out.lines().map(str::to_owned).collect();
        all.sort();
        all
    };
    assert_eq!(results(&lines, "sorted.jsonl"), results(&shuffled(&lines), "shuffled.jsonl"));
}

#[test]
fn a_late_member_of_a_compared_group_is_invalid() {
    let folder = Folder::new("late");
    let comparing = folder.file("comparing.yaml", COMPARING);
    let length = folder.file("length.yaml", LENGTH);
    let line = |id: &str, group: &str| {
        format!(r#"{{"id":"{id}","group":"{group}","response":"word {id}","correct":true}}"#)
    };
    let lines =
        [("a", "g"), ("b", "g"), ("c", "h"), ("d", "h"), ("e", "g")].map(|(id, group)| line(id, group));
    let input = folder.file("in.jsonl", lines.join("\n"));
    let summary = folder.path("summary.json");
    let ran = run(&["score", &input, "--recipe", &comparing, "--hold", "2", "--summary", &summary]);
    assert_eq!(ran.code, 1);
    let results: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.len(), 5);
    assert!(results[..4].iter().all(|result| result["outcome"] == "scored"), "{}", ran.out);
    assert_eq!(results[4]["reason"]["code"], "group.split");
    assert_eq!(results[4]["total"], Value::Null);
    let summary: Value = serde_json::from_str(&folder.read("summary.json")).unwrap();
    assert_eq!(summary["statistics"]["groups"]["split"], 1);
    assert_eq!(summary["statistics"]["rollouts"], 5);
    assert!(ran.talk.contains("1 rollout came late"), "{}", ran.talk);

    // Where nothing is compared, it is scored on its own.
    let ran = run(&["score", &input, "--recipe", &length, "--hold", "2"]);
    assert_eq!((ran.code, ran.out.matches("\"scored\"").count()), (0, 10));
    let ran = run(&["score", &input, "--recipe", &comparing]);
    assert_eq!(ran.code, 0);
}

#[test]
fn groups_of_different_size_are_refused_over_the_whole_stream() {
    let folder = Folder::new("uneven");
    let recipe = folder.file("recipe.yaml", LENGTH);
    let mut lines = rollouts(600, 4);
    lines.extend(rollouts(1, 3).iter().map(|line| line.replace("g0", "last")));
    let out = folder.path("out.jsonl");
    let check = |lines: &[String]| {
        let input = folder.file("in.jsonl", lines.join("\n"));
        run(&["score", &input, "-r", &recipe, "--set", "groups.same_size=true", "--out", &out, "--hold", "1"])
    };
    let ran = check(&lines);
    assert_eq!(ran.code, 2);
    assert!(ran.talk.contains("\"last\" has 3") && ran.talk.contains("group.uneven"), "{}", ran.talk);
    assert_eq!(folder.names(), ["in.jsonl", "recipe.yaml"], "no half file stays");
    // All of one size, but the second half of another than the first.
    let mut halves = rollouts(600, 4);
    halves.extend(rollouts(600, 2).iter().map(|line| line.replace("\"g", "\"h")));
    assert_eq!(check(&halves).code, 2);
    assert_eq!(check(&lines[..2400]).code, 0);
}

#[test]
fn one_group_without_end_does_not_hold_back_all_results() {
    // Every second rollout belongs to one group; the results between wait for it, but not all of them.
    let folder = Folder::new("endless-group");
    let recipe = folder.file("recipe.yaml", LENGTH);
    let count = 60_000;
    let padding = "x".repeat(400);
    let ran = feed(&["score", "-", "-r", &recipe, "--out", &folder.path("out.jsonl"), "-q"], |to| {
        for at in 0..count {
            let group = if at % 2 == 0 { "all".to_owned() } else { format!("{padding}{at}") };
            writeln!(to, r#"{{"group":"{group}","response":"r"}}"#).unwrap();
        }
    });
    assert_eq!(ran.code, 0, "{}", ran.talk);
    let out = folder.read("out.jsonl");
    assert_eq!(out.lines().count(), count);
    for (at, line) in out.lines().enumerate().step_by(997) {
        assert!(line.starts_with(&format!("{{\"id\":\"line-{}\"", at + 1)), "{line}");
    }
}

/// Lines whose reference stands under another name.
fn misnamed(count: usize) -> String {
    let line =
        |at: usize| format!("{{\"response\": \"\\\\boxed{{42}}\", \"gold\": \"42\", \"level\": {at}}}");
    (0..count).map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn file_with_a_misnamed_column_ends_early_with_advice() {
    let folder = Folder::new("misnamed");
    let input = folder.file("in.jsonl", misnamed(3000));
    let out = folder.path("out.jsonl");
    for verb in [&["score"][..], &["rank", "--keep", "1"]] {
        let ran = run(&[verb, &[&input, "--recipe", "math", "--out", &out]].concat());
        assert_eq!(ran.code, 2, "{}", ran.talk);
        assert!(ran.talk.contains("input.missing_reference"), "{}", ran.talk);
        assert!(
            ran.talk.contains("the rows have \"gold\", \"level\": --field reference=gold"),
            "{}",
            ran.talk
        );
        assert!(ran.talk.contains("--abort-after never"), "{}", ran.talk);
        assert!(!folder.names().contains(&"out.jsonl".to_owned()), "nothing half-way is left");
    }
    let ran = run(&["score", &input, "--recipe", "math", "--field", "reference=gold", "-q"]);
    assert_eq!((ran.code, ran.out.lines().count()), (0, 3000), "{}", ran.talk);
    let ran = run(&["score", &input, "--recipe", "math", "--abort-after", "never", "-q"]);
    assert_eq!((ran.code, ran.out.lines().count()), (1, 3000), "{}", ran.talk);
    let ran = run(&["score", &input, "--recipe", "math", "--abort-after", "0"]);
    assert!(ran.code == 2 && ran.talk.contains("a whole number from 1 is wanted, or never"), "{}", ran.talk);
}

#[test]
fn short_file_without_a_valid_rollout_gets_its_results() {
    let folder = Folder::new("short-misnamed");
    let input = folder.file("in.jsonl", misnamed(900));
    let ran = run(&["score", &input, "--recipe", "math"]);
    assert_eq!((ran.code, ran.out.lines().count()), (1, 900), "{}", ran.talk);
    assert!(ran.talk.contains("--field reference=gold"), "{}", ran.talk);
    // One valid rollout among the first is enough to go on.
    let valid = "{\"response\": \"\\\\boxed{42}\", \"reference\": \"42\"}";
    let input = folder.file("in.jsonl", format!("{valid}\n{}", misnamed(3000)));
    let ran = run(&["score", &input, "--recipe", "math"]);
    assert_eq!((ran.code, ran.out.lines().count()), (1, 3001), "{}", ran.talk);
    assert!(!ran.talk.contains("heal"), "{}", ran.talk);
}
