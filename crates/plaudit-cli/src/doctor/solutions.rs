//! Reference solutions of a data set, run against the tests of their rows: what does not pass is a fault of the data, or of how they
//! are read.

use super::{DoctorCheck, Doubtful, Good};
use crate::summary::{cut, whole};
use plaudit::engine::{Engine, EngineOptions};
use plaudit::outcome::{Fact, Outcome};
use plaudit::plan::Plan;
use plaudit::report::Report;
use plaudit::rollout::{Prompt, Rollout};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// How many solutions are run.
pub(super) const MAX_SOLUTIONS: usize = 200;
/// How many of those that do not pass are shown.
const EXAMPLES: usize = 5;
/// The longest part of a message that is shown.
const SHOWN: usize = 120;
/// The fields that hold a solution, in the order in which they are looked for.
const FIELDS: [&str; 5] = ["canonical_solution", "reference_solution", "solution", "solutions", "code"];

/// Whether a plan runs programs.
pub(super) fn are_wanted(plan: &Plan) -> bool {
    plan.branches.iter().flat_map(|branch| &branch.components).any(super::is_code)
}

/// The row with its reference solution as the response, where it has one.
pub(super) fn of(rollout: &Rollout<'static>) -> Option<Rollout<'static>> {
    let nested = || rollout.extra.values().filter_map(Value::as_object).find_map(written);
    let solution = written(&rollout.extra).or_else(nested)?;
    let task = rollout.prompt.as_ref().and_then(Prompt::task).unwrap_or("");
    // HumanEval's is the body of the function that the prompt begins.
    let solution = match solution.starts_with([' ', '\t']) && task.contains("def ") {
        true => Cow::Owned(format!("{task}{solution}")),
        false => solution,
    };
    let response = match solution.contains("```") {
        true => solution.into_owned(),
        false => format!("```\n{solution}\n```"),
    };
    Some(Rollout { response: Cow::Owned(response), conversation: None, group: None, ..rollout.clone() })
}

fn written(fields: &Map<String, Value>) -> Option<Cow<'_, str>> {
    FIELDS.iter().find_map(|key| {
        match fields.get(*key)? {
            // APPS and TACO have a list as text.
            Value::String(text) if *key == "solutions" && text.trim_start().starts_with('[') => {
                let all: Vec<String> = serde_json::from_str(text).ok()?;
                all.into_iter().next().map(Cow::Owned)
            }
            Value::String(text) => Some(Cow::Borrowed(text.as_str())),
            Value::Array(all) => all.first()?.as_str().map(Cow::Borrowed),
            _ => None,
        }
        .filter(|solution| !solution.trim().is_empty())
    })
}

/// Runs solutions, at most [`MAX_SOLUTIONS`], with the components of the plan that run programs.
pub(super) fn check(mut plan: Plan, rollouts: &[Rollout<'static>], more: u64) -> Vec<DoctorCheck> {
    for branch in &mut plan.branches {
        let is_code: Vec<bool> = branch.components.iter().map(super::is_code).collect();
        let mut keeps = is_code.iter();
        branch.components.retain(|_| keeps.next() == Some(&true));
        let mut keeps = is_code.iter();
        branch.parts.retain(|_| keeps.next() == Some(&true));
        branch.components.iter_mut().for_each(|component| component.gate = None);
        (branch.right_from, branch.turn_rewards) = (None, None);
    }
    plan.judges.clear();
    let scored = Engine::open(plan, &EngineOptions::default()).and_then(|engine| engine.score(rollouts));
    match scored {
        Ok(report) => vec![told(rollouts, &report, more)],
        Err(error) => vec![DoctorCheck::new(Doubtful, "solutions", format!("not run: {error}"))],
    }
}

fn told(rollouts: &[Rollout<'static>], report: &Report, more: u64) -> DoctorCheck {
    let why = |outcome: &Outcome| match outcome {
        Outcome::Scored { value, .. } if value.get() >= 1.0 => None,
        Outcome::Scored { info, .. } => Some(match (info.get("why"), info.get("message")) {
            (Some(Fact::Word(why)), Some(Fact::Text(message))) => format!("{why}, {}", message.trim()),
            (Some(Fact::Word(why)), _) => (*why).to_owned(),
            _ => "does not pass".to_owned(),
        }),
        other => other.reason().map(|reason| format!("{}, {}", reason.code, reason.message)),
    };
    let failed: Vec<String> = rollouts
        .iter()
        .zip(&report.rows)
        .filter_map(|(rollout, row)| {
            let why = row.outcomes.iter().flatten().find_map(why)?;
            let end: String = why.lines().last().unwrap_or("").to_owned();
            let why = why
                .lines()
                .next()
                .filter(|first| *first != end)
                .map_or(end.clone(), |first| format!("{first} {end}"));
            Some(format!("{}: {}", cut(rollout.id.as_deref().unwrap_or(""), 60), cut(&why, SHOWN)))
        })
        .collect();
    let run = whole(rollouts.len() as u64);
    let rest = if more > 0 { format!(", {} more were not run", whole(more)) } else { String::new() };
    if failed.is_empty() {
        return DoctorCheck::new(Good, "solutions", format!("all {run} that were run pass{rest}"));
    }
    let mut said = format!("{} of {run} do not pass{rest}", whole(failed.len() as u64));
    failed.iter().take(EXAMPLES).for_each(|one| said.push_str(&format!("\n  {one}")));
    DoctorCheck::new(Doubtful, "solutions", said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn solutions_are_found_in_the_fields_of_data_sets() {
        let solution = |extra: Value| {
            let mut rollout = Rollout::new("r").to_prompt("def f(x):\n");
            rollout.extra = extra.as_object().unwrap().clone();
            of(&rollout).map(|found| found.response.into_owned())
        };
        let wanted = Some("```\ndef f(x): pass\n```".to_owned());
        for extra in [
            json!({"code": "def f(x): pass"}),
            json!({"solution": "def f(x): pass", "code": "no"}),
            json!({"solutions": "[\"def f(x): pass\", \"no\"]"}),
            json!({"solutions": ["def f(x): pass"]}),
            json!({"extra_info": {"reference_solution": "def f(x): pass"}}),
            json!({"solution": "```\ndef f(x): pass\n```"}),
        ] {
            assert_eq!(solution(extra.clone()), wanted, "{extra}");
        }
        let body = solution(json!({"canonical_solution": "    return x\n"}));
        assert_eq!(body.as_deref(), Some("```\ndef f(x):\n    return x\n\n```"));
        assert_eq!(solution(json!({"solution": " ", "code": 3})), None);
    }
}
