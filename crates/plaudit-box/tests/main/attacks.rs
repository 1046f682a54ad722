//! Every attack of `golden/abuse/code_programs.jsonl`, in each tier: none escapes, and none passes its tests.

use crate::{open, passed, python, run};
use plaudit_box::{LimitHit, Tier};
use serde_json::Value;

fn hit_name(hit: LimitHit) -> &'static str {
    match hit {
        LimitHit::Cpu => "cpu",
        LimitHit::Wall => "wall",
        LimitHit::Memory => "memory",
        LimitHit::Processes => "processes",
        LimitHit::Output => "output",
    }
}

/// Runs all programs and returns a line for each; what is wrong goes to `wrong`.
fn run_all(tier: Tier, wrong: &mut Vec<String>) {
    let Some(sandbox) = open(tier, 2) else { return };
    let text = include_str!("../../../../golden/abuse/code_programs.jsonl");
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let only = std::env::var("PLAUDIT_BOX_CASE").ok();
    for case in cases {
        let id = case["id"].as_str().unwrap();
        if only.as_deref().is_some_and(|only| only != id) {
            continue;
        }
        let (mut passes, mut notes) = (0, Vec::new());
        for test in case["tests"].as_array().unwrap() {
            let job = python(case["program"].as_str().unwrap()).stdin(test["input"].as_str().unwrap());
            let run = match run(&sandbox, &job) {
                Ok(run) => run,
                Err(failure) => {
                    wrong.push(format!("{id} in tier {tier}: {failure}"));
                    continue;
                }
            };
            passes += u64::from(passed(&run, test["output"].as_str().unwrap()));
            let hit = run.hit.map_or("", hit_name);
            notes.push(format!("{:?} {hit} {} ms", run.exit, run.wall.as_millis()));
            let (stdout, stderr) =
                (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
            if only.is_some() {
                println!("{run:?}\n{stdout}\n{stderr}");
            }
            if stdout.contains("ESCAPED") {
                wrong.push(format!(
                    "{id} in tier {tier}: {}",
                    stdout.lines().take(5).collect::<Vec<_>>().join("; ")
                ));
            }
            // Tier B refuses a second process, which may end an attack before its limit.
            let hits =
                case["hit"].as_array().filter(|_| tier == Tier::A || run.exit != plaudit_box::Exit::Code(1));
            if hits.is_some_and(|hits| !hits.iter().any(|wanted| wanted == hit)) {
                wrong.push(format!(
                    "{id} in tier {tier}: {:?} {hit:?}, wanted {}: {stderr}",
                    run.exit, case["hit"]
                ));
            }
        }
        let allowed = case["passed"].as_array().unwrap();
        if !allowed.iter().any(|count| *count == passes) {
            wrong.push(format!("{id} in tier {tier}: passed {passes} tests"));
        }
        println!("{tier} {id} {}: passed {passes}; {}", case["title"].as_str().unwrap(), notes.join("; "));
    }
}

#[test]
fn attacks_in_tier_a() {
    let mut wrong = Vec::new();
    run_all(Tier::A, &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn attacks_in_tier_b() {
    let mut wrong = Vec::new();
    run_all(Tier::B, &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
