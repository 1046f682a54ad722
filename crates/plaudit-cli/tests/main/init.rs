//! `plaudit init`: every task for every trainer is a recipe that is valid and scores its example.

use crate::judge_sim::Sim;
use crate::support::{Folder, Ran, command, feed, run};
use serde_json::Value;
use std::process::{Command, Stdio};

/// The names that `--help` lists for an option.
fn names(option: &str) -> Vec<String> {
    let help = run(&["init", "--help"]).out;
    let listed = help.split(&format!("--{option} <")).nth(1).unwrap().split("\n      --").next().unwrap();
    let lines = listed.lines().filter_map(|line| line.trim_start().strip_prefix("- "));
    let names: Vec<String> = lines.map(|line| line.split(':').next().unwrap().to_owned()).collect();
    assert!(names.len() >= 6, "{option}: {names:?}");
    names
}

/// The recipe for a task and a trainer in a file, and what was said.
fn written(folder: &Folder, task: &str, trainer: &str) -> (String, Ran) {
    let path = folder.path(&format!("{task}-{trainer}.yaml"));
    let ran = run(&["init", "--task", task, "--trainer", trainer, "--out", &path]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{task} for {trainer}: {}", ran.talk);
    (path, ran)
}

/// The commands of what was said after a heading that begins so.
fn commands<'t>(talk: &'t str, heading: &str) -> Vec<&'t str> {
    let after = talk.split(heading).nth(1).unwrap_or_else(|| panic!("no {heading:?} in {talk}"));
    after.lines().skip(1).take_while(|line| line.starts_with("  ")).map(str::trim_start).collect()
}

fn results(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Runs a line that was printed, as a person would.
fn shell(line: &str, folder: &Folder) -> std::process::Output {
    let binaries = std::path::Path::new(env!("CARGO_BIN_EXE_plaudit")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    Command::new("sh").args(["-c", line]).current_dir(folder.path(".")).env("PATH", path).output().unwrap()
}

#[test]
fn the_simulated_judge_prefers_the_better_answer() {
    let folder = Folder::new("init-judged");
    let sim = Sim::start(&[]);
    for task in ["chat", "safety"] {
        let (path, ran) = written(&folder, task, "trl");
        let steps = commands(&ran.talk, "ry it");
        let row = steps.last().unwrap().split('\'').nth(3).unwrap();
        let url = sim.url();
        let scored = feed(&["score", "-", "-q", "--recipe", &path, "--set", &url], |to| {
            to.write_all(row.as_bytes()).unwrap();
        });
        let totals: Vec<f64> =
            results(&scored.out).iter().map(|result| result["total"].as_f64().unwrap()).collect();
        assert!(totals[0] > totals[1], "{task}: {totals:?}");
    }
}

#[test]
fn every_pair_is_valid_and_scores_its_example() {
    let folder = Folder::new("init-pairs");
    let sim = Sim::start(&[]);
    for task in names("task") {
        for trainer in names("trainer") {
            let (path, ran) = written(&folder, &task, &trainer);
            let checked = run(&["recipe", "check", &path]);
            assert_eq!(checked.code, 0, "{task} for {trainer}: {}", checked.talk);
            assert!(!checked.out.contains("warning"), "{task} for {trainer}: {}", checked.out);
            assert!(ran.talk.contains(&checked.out), "{task} for {trainer}: {}", ran.talk);
            let steps = commands(&ran.talk, "ry it");
            let row = steps.last().unwrap().split('\'').nth(3).unwrap();
            let judged = ran.talk.contains("judge-sim");
            let url = sim.url();
            let more: &[&str] = if judged { &["--set", &url] } else { &[] };
            let scored = feed(&[&["score", "-", "-q", "--recipe", &path], more].concat(), |to| {
                to.write_all(row.as_bytes()).unwrap();
            });
            assert_eq!((scored.code, scored.talk.as_str()), (0, ""), "{task} for {trainer}");
            let rows = results(&scored.out);
            assert!(!rows.is_empty() && rows.iter().all(|row| row["outcome"] == "scored"), "{}", scored.out);
            let best = rows[0]["total"].as_f64().unwrap();
            // The first response of an example is the better one; a simulated judge has a taste of its own.
            let others = rows[1..].iter().map(|row| row["total"].as_f64().unwrap());
            assert!(judged || others.into_iter().all(|total| total < best), "{task}: {}", scored.out);
        }
    }
}

/// What is printed can be pasted: the trial of a rule recipe, and the one with a simulated judge.
#[test]
fn printed_trials_run_as_they_stand() {
    let folder = Folder::new("init-trial");
    let out = folder.path("my recipe.yaml");
    let ran = run(&["init", "--out", &out]);
    assert_eq!(ran.code, 0, "{}", ran.talk);
    let steps = commands(&ran.talk, "Try it:");
    let tried = shell(steps[0], &folder);
    assert!(tried.status.success(), "{}", String::from_utf8_lossy(&tried.stderr));
    assert_eq!(results(&String::from_utf8(tried.stdout).unwrap()).len(), 2);

    let ran = run(&["init", "--task", "chat", "--out", &folder.path("chat.yaml")]);
    let sim = Sim::start(&[]);
    let steps = commands(&ran.talk, "Try it with a simulated one:");
    assert_eq!(steps[0], "plaudit judge-sim --port 7718 &");
    let tried = shell(&steps[1].replace("127.0.0.1:7718", &sim.address), &folder);
    assert!(tried.status.success(), "{}", String::from_utf8_lossy(&tried.stderr));
}

/// The service under the name that the snippet gives, asked as the snippet asks.
#[test]
fn the_printed_request_is_answered_by_the_service() {
    let folder = Folder::new("init-service");
    let (path, ran) = written(&folder, "math", "service");
    let steps = commands(&ran.talk, "For the service");
    assert_eq!(steps[0], format!("plaudit serve --recipe {path}"));
    let state = folder.path("state");
    let mut serve = command(&["serve", "--bind", "127.0.0.1:0", "--recipe", &path, "--state", &state]);
    let mut child = serve.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut url = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut url)
        .unwrap();
    let asked = if crate::support::installed("curl") {
        Some(shell(&steps[1].replace("http://127.0.0.1:7717", url.trim()), &folder))
    } else {
        None
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let Some(asked) = asked else { return };
    let reply: Value = serde_json::from_slice(&asked.stdout).unwrap();
    assert_eq!(reply["results"].as_array().unwrap().len(), 2, "{reply}");
    assert_eq!(reply["results"][0]["correct"], true, "{reply}");
}

#[test]
fn a_file_that_is_there_stays_without_force() {
    let folder = Folder::new("init-force");
    let path = folder.file("recipe.yaml", "mine\n");
    let ran = run(&["init", "--out", &path]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.talk.contains("is there already; --force overwrites it"), "{}", ran.talk);
    assert_eq!(folder.read("recipe.yaml"), "mine\n");
    // A link that leads nowhere is there, too.
    let link = folder.path("link.yaml");
    std::os::unix::fs::symlink(folder.path("elsewhere.yaml"), &link).unwrap();
    assert_eq!(run(&["init", "--out", &link]).code, 2);
    assert_eq!(folder.names(), ["link.yaml", "recipe.yaml"]);
    assert_eq!(run(&["init", "--out", &path, "--force"]).code, 0);
    assert_eq!(run(&["recipe", "check", &path]).code, 0);
    let gone = run(&["init", "--out", &folder.path("none/recipe.yaml")]);
    assert!(gone.code == 2 && gone.talk.contains("No such file"), "{}", gone.talk);
}

#[test]
fn stdout_takes_the_recipe_and_nothing_else() {
    let ran = run(&["init", "--task", "writing", "--trainer", "trl", "--out", "-"]);
    assert_eq!(ran.code, 0);
    plaudit::recipe::Recipe::from_yaml(&ran.out).unwrap().plan().unwrap();
    assert!(ran.talk.contains("reward_funcs=Reward(\"recipe.yaml\")"), "{}", ran.talk);
}

#[test]
fn recipes_and_next_steps() {
    insta::assert_snapshot!("init_help", run(&["init", "--help"]).out);
    let init = |task: &str, trainer: &str| run(&["init", "--task", task, "--trainer", trainer, "--out", "-"]);
    for task in names("task") {
        let ran = init(&task, "none");
        insta::assert_snapshot!(format!("init_task_{task}"), format!("{}---\n{}", ran.out, ran.talk));
    }
    for trainer in names("trainer").into_iter().filter(|trainer| trainer != "none") {
        let ran = init("chat", &trainer);
        let (head, _) = ran.out.split_once("name: ").unwrap();
        let tail = ran.out.split_once("\ngroups:").unwrap().1;
        let (_, snippet) = ran.talk.split_once("\n\nFor ").unwrap();
        let text = format!("{head}...\ngroups:{tail}---\nFor {snippet}");
        insta::assert_snapshot!(format!("init_trainer_{trainer}"), text);
    }
}
