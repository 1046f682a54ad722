//! What `plaudit doctor` tells about judges: model, address, the form of verdicts that was found, and latency; of a reward model
//! its numbers for two questions; and where a judge answers that is not found at its address.

use super::{Bad, CheckResult, DoctorCheck, Doubtful, Good, Trial};
use crate::summary::{behind, short, whole};
use plaudit::judge::config::ResolvedJudge;
use plaudit::judge::rewards::judged_reward::PromptSource;
use plaudit::judge::rewards::params::Mode;
use plaudit::judge::runner::CallTranscript;
use plaudit::judge::{AnswerFormat, JudgedReward};
use plaudit::outcome::Outcome;
use plaudit::plan::{Component, Plan, Scorer};
use plaudit::reason::{Code, Reason};
use plaudit::recipe::Recipe;
use plaudit::rollout::Rollout;

/// The recipe that asks a reward model for its numbers as they are. Its judge stands for the one that is looked at.
const PROBE: &str = "\
components: { probe: { reward: reward_model, sigmoid: false, min: -1.0e+300, max: 1.0e+300 } }
judges: { probe: { kind: classify, base_url: \"http://127.0.0.1\", model: probe } }
";

/// One line for each judge of a recipe that was tried; `plan` makes the same plan again.
pub(super) fn checks(trial: &Trial, plan: &dyn Fn() -> Option<Plan>) -> Vec<DoctorCheck> {
    let judges = trial.engine.plan().judges.iter().enumerate();
    let check = |(at, judge): (usize, &ResolvedJudge)| {
        let (verdict, said) = if judge.config.kind.is_local() {
            (Good, "embedded, nothing is sent".to_owned())
        } else if judge.config.kind.is_scalar() {
            reward_model(judge, uses_sigmoid(trial.engine.plan(), at))
        } else {
            chat(trial, judge, &|address| {
                let mut plan = plan()?;
                plan.judges[at].base_urls = vec![address.to_owned()];
                let trial = Trial::of(plan, &super::group(false)).ok()?;
                Some(
                    of_judge(&trial.calls, &judge.name)
                        .iter()
                        .any(|call| answers(call.verdict.as_ref().err())),
                )
            })
        };
        DoctorCheck::new(verdict, &format!("judge {}", judge.name), said)
    };
    judges.map(check).collect()
}

/// Whether a judge answers at another address, where that can be tried.
type Attempt<'a> = &'a dyn Fn(&str) -> Option<bool>;

fn chat(trial: &Trial, judge: &ResolvedJudge, attempt: Attempt<'_>) -> (CheckResult, String) {
    let calls = of_judge(&trial.calls, &judge.name);
    let failed: Vec<&Reason> = calls.iter().filter_map(|call| call.verdict.as_ref().err()).collect();
    if calls.is_empty() {
        return (Doubtful, format!("{}: was not asked", named(judge)));
    }
    let forms = forms(trial.engine.plan(), &calls);
    match failed.first() {
        Some(reason) if failed.len() == calls.len() => {
            (Bad, failure(judge, &Failed::of(trial, &judge.name, reason), attempt))
        }
        Some(reason) => {
            let most = format!("{} of {} calls failed", failed.len(), calls.len());
            let failed = Failed::of(trial, &judge.name, reason);
            (Doubtful, format!("{}: {forms}; {most}\n{}\n{}", named(judge), failed.said(), failed.remedy()))
        }
        None => {
            let (latency, learned) = (latency(trial, &judge.name), learned(trial, &judge.name));
            (Good, format!("{}: {forms}{latency}{learned}", named(judge)))
        }
    }
}

/// The model and where it is.
fn named(judge: &ResolvedJudge) -> String {
    format!("{} at {}", judge.model(), judge.base_urls.join(", "))
}

fn of_judge<'t>(calls: &'t [CallTranscript], judge: &str) -> Vec<&'t CallTranscript> {
    calls.iter().filter(|call| call.judge == judge).collect()
}

/// The form in which verdicts came, for each kind of question where they differ.
fn forms(plan: &Plan, calls: &[&CallTranscript]) -> String {
    let components = || plan.branches.iter().flat_map(|branch| &branch.components);
    let mut found: Vec<(&str, &str)> = Vec::new();
    for call in calls.iter().filter(|call| call.verdict.is_ok()) {
        let asked = components().find(|component| component.name == call.component).and_then(judged);
        let mode = match asked.map(|reward| reward.params.mode) {
            Some(Mode::Pointwise) => "pointwise",
            Some(Mode::Listwise) => "listwise",
            _ => "pairwise",
        };
        let own = asked.is_some_and(|reward| matches!(reward.prompt, PromptSource::Custom { .. }));
        let form = match call.format {
            AnswerFormat::Logprobs => "logprobs",
            _ if own => "a prompt of your own",
            format => format.as_str(),
        };
        if !found.contains(&(form, mode)) {
            found.push((form, mode));
        }
    }
    let first = found.first().map_or("", |(form, _)| form);
    match found.iter().all(|(form, _)| *form == first) {
        true => format!("verdicts by {first}"),
        false => {
            let all: Vec<String> = found.iter().map(|(form, mode)| format!("{form} ({mode})")).collect();
            format!("verdicts by {}", all.join(", "))
        }
    }
}

fn judged(component: &Component) -> Option<&JudgedReward> {
    match &component.scorer {
        Scorer::Judged(reward) => Some(reward),
        _ => None,
    }
}

/// How long an answer takes in the median.
fn latency(trial: &Trial, judge: &str) -> String {
    let judge_usage = trial.engine.judge_usage();
    let seconds =
        judge_usage.iter().find(|usage| usage.judge == judge).and_then(|usage| usage.latency.quantile(0.5));
    seconds.map_or_else(String::new, |seconds| format!(", {} ms", whole((seconds * 1000.0).ceil() as u64)))
}

/// Why better forms were left, and which parameters the endpoint refused, a line each.
fn learned(trial: &Trial, judge: &str) -> String {
    let judge_usage = trial.engine.judge_usage();
    let of_judge = judge_usage.iter().filter(|usage| usage.judge == judge);
    of_judge.flat_map(crate::summary::learned).map(|line| format!("\n{line}")).collect()
}

/// Why a judge gave no verdict.
struct Failed {
    reason: Reason,
    /// What is to be mended: of a call that only followed from failed ones, how those failed.
    cause: Code,
}

impl Failed {
    fn of(trial: &Trial, judge: &str, reason: &Reason) -> Self {
        let mut judge_usage = trial.engine.judge_usage();
        judge_usage.retain(|usage| usage.judge == judge);
        Self { reason: reason.clone(), cause: behind(reason.code, &judge_usage) }
    }

    fn said(&self) -> String {
        format!("{}: {}", self.reason.code, self.reason.message)
    }

    fn remedy(&self) -> String {
        format!("what to do: {}", self.cause.remedy())
    }
}

impl From<Reason> for Failed {
    fn from(reason: Reason) -> Self {
        Self { cause: reason.code, reason }
    }
}

/// Why a judge gives no verdict, and what to do: another address where that one answers.
fn failure(judge: &ResolvedJudge, failed: &Failed, attempt: Attempt<'_>) -> String {
    let others = || judge.base_urls.iter().flat_map(|address| judge.other_addresses(address));
    let elsewhere = is_elsewhere(&failed.reason);
    let found = elsewhere.then(|| others().find(|other| attempt(other) == Some(true))).flatten();
    let advice = match found {
        Some(other) => format!("{other} answers: set base_url to it"),
        None => failed.remedy(),
    };
    format!("{}\n{}\n{advice}", named(judge), failed.said())
}

/// Whether a failure looks as if something else than a judge were at that address.
fn is_elsewhere(reason: &Reason) -> bool {
    match reason.code {
        Code::JudgeClientError => {
            ["status 404", "status 405"].iter().any(|words| reason.message.contains(words))
        }
        code => matches!(code, Code::JudgeJson | Code::JudgeRedirect),
    }
}

/// Whether a call reached a judge: it got a verdict, or failed as only a judge fails.
fn answers(failure: Option<&Reason>) -> bool {
    let is_of_judge = |reason: &Reason| {
        matches!(
            reason.code,
            Code::JudgeAuth
                | Code::JudgeNoLogprobs
                | Code::JudgeTruncated
                | Code::JudgeEmpty
                | Code::JudgeRefusal
        )
    };
    failure.is_none_or(is_of_judge)
}

/// Whether some component, or a prior, puts the numbers of a judge through the logistic function.
fn uses_sigmoid(plan: &Plan, judge: usize) -> bool {
    let mut components = plan.branches.iter().flat_map(|branch| &branch.components);
    components.any(|component| match component.asks {
        Some((asked, _)) if asked == judge => {
            let prompt = judged(component).map(|reward| &reward.prompt);
            matches!(prompt, Some(PromptSource::Scalar { sigmoid: true }))
        }
        Some((_, prior)) => prior == Some(judge),
        None => false,
    })
}

/// Asks a reward model about two conversations, for its numbers as they are.
fn reward_model(judge: &ResolvedJudge, sigmoid: bool) -> (CheckResult, String) {
    match numbers(judge) {
        Ok(numbers) => {
            let (verdict, said) = told(&numbers, sigmoid);
            (verdict, format!("{}: {said}", named(judge)))
        }
        Err(failed) => {
            let attempt = |address: &str| {
                let other = ResolvedJudge { base_urls: vec![address.to_owned()], ..judge.clone() };
                Some(answers(numbers(&other).as_ref().err().map(|failed| &failed.reason)))
            };
            (Bad, failure(judge, &failed, &attempt))
        }
    }
}

/// The numbers of a right answer and of nonsense.
fn numbers(judge: &ResolvedJudge) -> Result<[f64; 2], Failed> {
    let failed = |error: String| Reason::new(Code::JudgeClientError, error);
    let mut plan = Recipe::from_yaml(PROBE)
        .and_then(|recipe| recipe.plan())
        .map_err(|error| failed(error.to_string()))?;
    plan.judges = vec![judge.clone()];
    let questions = [
        ("What is 6 times 7?", "6 times 7 is 42."),
        ("What is the capital of France?", "Nobody knows nothing never."),
    ];
    let rollouts = questions.map(|(prompt, response)| Rollout::new(response).to_prompt(prompt));
    let trial = Trial::of(plan, &rollouts).map_err(|error| failed(error.to_string()))?;
    let mut found = [0.0; 2];
    for (place, row) in found.iter_mut().zip(&trial.report.rows) {
        *place = match row.outcomes.first() {
            Some(Some(Outcome::Scored { value, .. })) => value.get(),
            Some(Some(outcome)) => {
                let reason = outcome.reason().cloned().unwrap_or_else(|| Code::JudgeEmpty.into());
                return Err(Failed::of(&trial, &judge.name, &reason));
            }
            _ => return Err(Reason::from(Code::JudgeEmpty).into()),
        };
    }
    Ok(found)
}

/// What the numbers of two different questions say about the server.
fn told(numbers: &[f64; 2], sigmoid: bool) -> (CheckResult, String) {
    let [first, second] = numbers;
    let shown = format!("{} for a right answer, {} for nonsense", short(*first), short(*second));
    if first == second {
        let why = "the same number for both: does the server apply the model's chat template, and has it loaded the head?";
        return (Doubtful, format!("{shown}\n{why}"));
    }
    // A raw number of a trained model lies in [0, 1] now and then, both of them seldom.
    if sigmoid && numbers.iter().all(|number| (0.0..=1.0).contains(number)) {
        let why = "both lie between 0 and 1, although raw numbers were asked for (`use_activation: false`). If the server has put \
                   them through a sigmoid or softmax, it must not be done again: set `sigmoid: false` in the component";
        return (Doubtful, format!("{shown}\n{why}"));
    }
    (Good, shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squashed_numbers_are_told_unless_they_are_wanted() {
        let said = |numbers: [f64; 2], sigmoid| told(&numbers, sigmoid);
        let (verdict, text) = said([0.4583, 0.4202], true);
        assert!(verdict == Doubtful && text.contains("sigmoid: false"), "{text}");
        for (numbers, sigmoid) in [([0.4583, 0.4202], false), ([-0.167, 0.3], true), ([12.5, 0.9], true)] {
            let (verdict, text) = said(numbers, sigmoid);
            assert!(verdict == Good && text.contains("for a right answer"), "{text}");
        }
        let (verdict, text) = said([-3.0, -3.0], true);
        assert!(verdict == Doubtful && text.contains("the same number"), "{text}");
    }

    #[test]
    fn only_what_is_not_found_is_looked_for_elsewhere() {
        let reason = |code, message: &'static str| Reason::new(code, message);
        assert!(is_elsewhere(&reason(
            Code::JudgeClientError,
            "The judge answered with status 404: Not Found"
        )));
        assert!(is_elsewhere(&Code::JudgeJson.into()));
        assert!(!is_elsewhere(&reason(Code::JudgeClientError, "The judge answered with status 400: bad")));
        assert!(!is_elsewhere(&Code::JudgeConnect.into()));
        assert!(answers(None) && answers(Some(&Code::JudgeAuth.into())));
        assert!(!answers(Some(&Code::JudgeConnect.into())));
    }
}
