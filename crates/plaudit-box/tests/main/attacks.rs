//! Every attack of `golden/abuse/code_programs.jsonl`, in each isolation: none escapes, and none passes its tests.

use crate::{open, passed, python, quick, run};
use plaudit_box::{Isolation, LimitHit, Limits, Sandbox};
use serde_json::Value;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn hit_name(hit: LimitHit) -> &'static str {
    match hit {
        LimitHit::Cpu => "cpu",
        LimitHit::Wall => "wall",
        LimitHit::Memory => "memory",
        LimitHit::Processes => "processes",
        LimitHit::Output => "output",
    }
}

/// Runs all programs and prints a line for each; what is wrong is returned. Most of the time some of them wait for their limit.
fn run_all(isolation: Isolation) -> Vec<String> {
    let Some(sandbox) = open(isolation, THREADS) else { return Vec::new() };
    let text = include_str!("../../../../golden/abuse/code_programs.jsonl");
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = run_case(&sandbox, case);
                    wrong.lock().unwrap().extend(found);
                }
            });
        }
    });
    wrong.into_inner().unwrap()
}

const THREADS: usize = 4;

/// Runs one program against its tests, and returns what is wrong.
fn run_case(sandbox: &Sandbox, case: &Value) -> Vec<String> {
    let isolation = sandbox.isolation();
    let id = case["id"].as_str().unwrap();
    let only = std::env::var("PLAUDIT_BOX_CASE").ok();
    if only.as_deref().is_some_and(|only| only != id) {
        return Vec::new();
    }
    let mut wrong = Vec::new();
    // On a busy host it takes long to break any limit but that of the clock.
    let wants =
        |hit: &str| case["hit"].as_array().is_some_and(|hits| hits.iter().any(|wanted| wanted == hit));
    let patient = case["hit"].is_array() && !wants("wall") && !wants("");
    let wall = if patient { Some(Duration::from_secs(60)) } else { quick().wall };
    let (mut passes, mut notes) = (0, Vec::new());
    for test in case["tests"].as_array().unwrap() {
        let job = python(case["program"].as_str().unwrap())
            .stdin(test["input"].as_str().unwrap())
            .limits(Limits { wall, ..quick() });
        let run = match run(sandbox, &job) {
            Ok(run) => run,
            Err(failure) => {
                wrong.push(format!("{id} with isolation {isolation}: {failure}"));
                continue;
            }
        };
        passes += u64::from(passed(&run, test["output"].as_str().unwrap()));
        let hit = run.hit.map_or("", hit_name);
        notes.push(format!("{:?} {hit} {} ms", run.exit, run.wall.as_millis()));
        let (stdout, stderr) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        if only.is_some() {
            println!("{run:?}\n{stdout}\n{stderr}");
        }
        if stdout.contains("ESCAPED") {
            wrong.push(format!(
                "{id} with isolation {isolation}: {}",
                stdout.lines().take(5).collect::<Vec<_>>().join("; ")
            ));
        }
        // Landlock refuses a second process, which may end an attack before its limit.
        let hits = case["hit"]
            .as_array()
            .filter(|_| isolation == Isolation::Namespaces || run.exit != plaudit_box::Exit::Code(1));
        if hits.is_some_and(|hits| !hits.iter().any(|wanted| wanted == hit)) {
            wrong.push(format!(
                "{id} with isolation {isolation}: {:?} {hit:?}, wanted {}: {stderr}",
                run.exit, case["hit"]
            ));
        }
    }
    let allowed = case["passed"].as_array().unwrap();
    if !allowed.iter().any(|count| *count == passes) {
        wrong.push(format!("{id} with isolation {isolation}: passed {passes} tests"));
    }
    println!("{isolation} {id} {}: passed {passes}; {}", case["title"].as_str().unwrap(), notes.join("; "));
    wrong
}

#[test]
fn attacks_with_namespaces() {
    let wrong = run_all(Isolation::Namespaces);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn attacks_with_landlock() {
    let wrong = run_all(Isolation::Landlock);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
