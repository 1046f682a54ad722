//! `math_verify_reward`: whether the answer of a response equals the reference, in mathematics.

use super::math_references;
use super::reference_check::{ReferenceCheck, Remark, Severity};
use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Fact, Info, Outcome};
use crate::reason::{Code, Reason};
use crate::text::scope::Scope;
use plaudit_math::{
    AnswerIn, NoValue, Options, Order, Outcome as Found, Percent, Preset, PresetReference, PresetScores,
    Reference, ReferenceError, Think, Units, Verdict,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// 1 where the answer of the response equals the reference in mathematics, else 0.
///
/// ## What it scores
/// The answer is looked for after the thinking: in the last `\boxed{...}` that is no blank, in `<answer>` tags, after `####`, after a phrase such
/// as "the answer is", and else it is the last formula or number. Answer and reference are read as mathematics (numbers,
/// expressions, lists, sets, intervals, tuples, matrices, equations, units, text) and compared by exact arithmetic, by identities
/// at secret points, and by enclosures of real numbers at rising precision; never by two floating-point numbers that look alike.
/// `\frac12`, `0.5`, `1/2` and `\frac{2}{4}` are one answer, and `0.4999999` is another one. The guide "Math" has the rules.
///
/// The reference is read once a group. One that cannot be read, is undefined or is empty makes the rollout invalid: it says
/// nothing of the response. A response without an answer gets `wrong`. One whose answer breaks a bound (64 KiB, 64 levels,
/// 20,000 digits, ...), is empty, undefined (`1/0`) or not evaluated (an integral) gets the floor. The info says why:
/// `equal`, `different` (read, and wrong), `not_parsed` or `no_answer`; `parsed` is 1 for the first two, so that a policy which gets
/// the answer wrong and one which writes it badly are two curves.
///
/// ## When to use it
/// For problems whose reference is a value: competition and school mathematics, word problems, multiple choice. Check the
/// references first: `plaudit doctor DATA --recipe math`. With `preset` it scores as another trainer does, to reproduce its runs.
///
/// ## How it can be gamed
/// By a guess, where there are few possible answers. The last commitment counts, and a list of candidates is not the
/// reference. With `answer: auto` the last number of a response without a box counts, so that a policy need not commit: `answer: box`
/// asks for it. Of the presets, `verl.math_reward` takes `4\text{ or }5` for 4.
///
/// ## Example
/// ```yaml
/// correct: { reward: math_verify_reward, weight: 1.0, answer: box }
/// ```
///
/// ## References
/// RM-Gallery `math_verify_reward`; math-verify; the scorers of verl, TRL and open-r1 that `preset` names.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MathVerifyReward {
    /// Where the answer is looked for.
    pub answer: AnswerIn,
    /// What happens to the thinking before the answer.
    pub think: Think,
    /// How far a decimal answer may be from the reference, relative to it. Without it decimals are exact where both end, and
    /// otherwise eight digits must agree.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tolerance: Option<f64>,
    /// How a percentage compares with a number.
    pub percent: Percent,
    /// How units compare.
    pub units: Units,
    /// Whether the order of a list matters.
    pub order: Order,
    /// The value of an answer that equals the reference.
    pub right: f64,
    /// The value of any other answer, and of none.
    pub wrong: f64,
    /// The floor: the value of an answer that breaks a bound. By default `wrong`, and never more. The name is RM-Gallery's;
    /// nothing here depends on time.
    pub timeout_score: Option<f64>,
    /// What becomes of a rollout whose reference cannot be read.
    pub unparsable_reference: MathUnparsable,
    /// Scores as another trainer does. It decides on everything above, so nothing of that can be set beside it.
    pub preset: Option<Preset>,
    /// What `verl.gsm8k` and `verl.gsm8k_flexible` give a right answer: verl's parameter of that name, 1 by default. Other presets
    /// have none.
    pub score: Option<f64>,
    /// What `verl.gsm8k` and `verl.gsm8k_flexible` give a number that is there and wrong: verl's parameter of that name, 0 by
    /// default. Of `verl.geo3k` it is the share of the format, 0.1 by default. Other presets have none.
    pub format_score: Option<f64>,
    /// Which part of the response is read.
    pub scope: Scope,
}

impl Default for MathVerifyReward {
    fn default() -> Self {
        Self {
            answer: AnswerIn::Auto,
            think: Think::Cut,
            tolerance: None,
            percent: Percent::Lenient,
            units: Units::IgnoreMissing,
            order: Order::Auto,
            right: 1.0,
            wrong: 0.0,
            timeout_score: None,
            unparsable_reference: MathUnparsable::Invalid,
            scope: Scope::Final,
            preset: None,
            score: None,
            format_score: None,
        }
    }
}

/// What becomes of a rollout whose reference cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MathUnparsable {
    /// It is invalid, because the data are at fault.
    Invalid,
    /// The component is skipped, as TRL does.
    Skip,
}

impl Reward<Rule> for MathVerifyReward {
    const NAME: &'static str = "math_verify_reward";
    const ALIASES: &'static [&'static str] = &["math"];
    const NEEDS_REFERENCE: bool = true;
    const CORRECTNESS: bool = true;
    const FACTS: &'static [&'static str] = &["parsed"];

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let verifier = Arc::new(Verifier::new(&self)?);
        let range = Range::new(verifier.floor, verifier.right);
        let (floor, check) = (verifier.floor, Arc::clone(&verifier));
        let rule = Rule::each(range, move |sample| verifier.score(sample));
        Ok(rule.floor(floor).compares_text(true).checks_references(check))
    }
}

/// The rule with its parameters checked.
struct Verifier {
    options: Options,
    preset: Option<Preset>,
    scores: PresetScores,
    right: f64,
    wrong: f64,
    floor: f64,
    skips_unparsable: bool,
    scope: Scope,
    /// Under which a reference keeps what was read of it.
    key: u64,
}

/// A reference as the component reads it.
enum ReadReference {
    Own(Reference),
    Preset(PresetReference),
    Unusable(ReferenceError),
}

impl Verifier {
    fn new(given: &MathVerifyReward) -> Result<Self, Vec<ParamError>> {
        let preset = given.preset;
        let scores = PresetScores { score: given.score, format_score: given.format_score };
        let (right, wrong) = match preset {
            Some(Preset::VerlMathDapo | Preset::VerlMathDapoStrictBox) => (1.0, -1.0),
            Some(Preset::VerlGsm8k | Preset::VerlGsm8kFlexible) => {
                (given.score.unwrap_or(1.0), given.format_score.map_or(0.0, |format| format.min(0.0)))
            }
            Some(_) => (1.0, 0.0),
            None => (given.right, given.wrong),
        };
        let floor = given.timeout_score.unwrap_or(wrong);
        let tolerance = given.tolerance.map(Options::tolerance_of);
        let seed = secret_seed();
        let checks = [
            check_scores(preset, scores),
            ParamError::check(given.wrong.is_finite(), "wrong", "a finite number is wanted"),
            ParamError::check(
                given.right.is_finite() && given.right > given.wrong,
                "right",
                "must be above `wrong`",
            ),
            ParamError::check(
                floor.is_finite() && floor <= wrong,
                "timeout_score",
                "must be at most `wrong`: a policy would learn to break the bounds",
            ),
            ParamError::check(
                given.tolerance != Some(0.0) && tolerance != Some(None),
                "tolerance",
                "must be above 0",
            ),
            refuse_beside_preset(given),
        ];
        let options = seed.map(|seed| Options {
            answer: given.answer,
            think: given.think,
            tolerance: tolerance.flatten(),
            percent: given.percent,
            units: given.units,
            order: given.order,
            seed,
        });
        let options = ParamError::gather(checks, options)?;
        let skips_unparsable = match preset {
            Some(Preset::OpenR1Accuracy | Preset::TrlAccuracy) => true,
            Some(_) => false,
            None => given.unparsable_reference == MathUnparsable::Skip,
        };
        // Components with equal parameters read references alike.
        let written =
            serde_json::to_vec(given).map_err(|error| vec![ParamError::new("", error.to_string())])?;
        let key = rapidhash::v3::rapidhash_v3(&written);
        Ok(Self { options, preset, scores, right, wrong, floor, skips_unparsable, scope: given.scope, key })
    }

    fn read(&self, reference: &str) -> ReadReference {
        if reference.trim().is_empty() {
            return ReadReference::Unusable(ReferenceError::Empty);
        }
        match self.preset {
            Some(preset) => {
                let read =
                    PresetReference::new(preset, reference, self.options.seed).with_scores(self.scores);
                read.error().map_or(ReadReference::Preset(read), ReadReference::Unusable)
            }
            None => Reference::parse(reference, &self.options)
                .map_or_else(ReadReference::Unusable, ReadReference::Own),
        }
    }

    fn score(&self, sample: &RuleInput<'_>) -> Result<Outcome, Outcome> {
        let reference = sample.any_reference()?.as_text()?;
        match &*reference.parsed(self.key, |text| self.read(text)) {
            ReadReference::Unusable(error) => Err(self.without_reference(*error)),
            ReadReference::Own(reference) => {
                let verdict = plaudit_math::verify(self.scope.of(sample.text), reference);
                let value = if verdict.outcome.is_right() { self.right } else { self.wrong };
                Ok(self.outcome(value, verdict.outcome, Some(&verdict)))
            }
            ReadReference::Preset(reference) => {
                let scored = reference.score(self.scope.of(sample.text));
                match scored.score {
                    Some(value) => Ok(self.outcome(value, scored.outcome, None)),
                    None => Err(Outcome::skipped(Code::ReferenceUnparsable)),
                }
            }
        }
    }

    fn without_reference(&self, error: ReferenceError) -> Outcome {
        let reason = match error {
            ReferenceError::Unparsable(bound) => {
                Reason::new(Code::ReferenceUnparsable, format!("The reference {}.", bound.cause()))
            }
            _ => Code::EmptyReference.into(),
        };
        if self.skips_unparsable { Outcome::skipped(reason) } else { Outcome::invalid(reason) }
    }

    fn outcome(&self, value: f64, found: Found, verdict: Option<&Verdict>) -> Outcome {
        let why = match found {
            Found::Right => "equal",
            Found::Wrong => "different",
            Found::NotParsed => "not_parsed",
            Found::Unusable(bound) => {
                let reason = Reason::new(code(bound), format!("The answer {}.", bound.cause()));
                return Outcome::floored(self.floor, reason);
            }
            _ => "no_answer",
        };
        let parsed = matches!(found, Found::Right | Found::Wrong);
        let mut info = Info::of([("why", Fact::Word(why)), ("parsed", Fact::Count(u64::from(parsed)))]);
        if let Some(Verdict { rule: Some(rule), answer: Some(answer), how: Some(how), .. }) = verdict {
            info.push("answer", Fact::Text(answer.clone()));
            info.push("rule", Fact::Word(rule.name()));
            info.push("how", Fact::Word(how.name()));
        }
        Outcome::scored(value, info)
    }
}

impl ReferenceCheck for Verifier {
    fn remarks(&self, reference: &str) -> Vec<Remark> {
        match self.preset {
            // Strings are compared, so any text that is there will do.
            Some(preset) if preset.is_exact() => match reference.trim().is_empty() {
                true => vec![Remark::new(Severity::Fault, "is empty", "")],
                false => vec![Remark::new(Severity::Kind, "string", "")],
            },
            _ => math_references::remarks(reference, &self.options),
        }
    }

    fn is_same(&self, one: &str, other: &str) -> bool {
        match self.preset {
            Some(preset) if preset.is_exact() => one.trim() == other.trim(),
            _ => math_references::is_same(one, other, &self.options),
        }
    }
}

/// Refuses what a preset decides on. `timeout_score` is the exception: it is the component's floor.
fn refuse_beside_preset(given: &MathVerifyReward) -> Result<(), ParamError> {
    if given.preset.is_none() {
        return Ok(());
    }
    let usual = MathVerifyReward::default();
    let set = [
        (given.answer != usual.answer, "answer"),
        (given.think != usual.think, "think"),
        (given.tolerance.is_some(), "tolerance"),
        (given.percent != usual.percent, "percent"),
        (given.units != usual.units, "units"),
        (given.order != usual.order, "order"),
        (given.right != usual.right, "right"),
        (given.wrong != usual.wrong, "wrong"),
        (given.unparsable_reference != usual.unparsable_reference, "unparsable_reference"),
    ];
    match set.into_iter().find(|(set, _)| *set) {
        Some((_, key)) => Err(ParamError::new(key, "the preset decides on it: leave one of the two out")),
        None => Ok(()),
    }
}

/// Refuses the numbers of a preset where it has no such parameter, and such that a wrong answer would pay.
fn check_scores(preset: Option<Preset>, given: PresetScores) -> Result<(), ParamError> {
    let own = preset.map_or(PresetScores { score: None, format_score: None }, Preset::scores);
    let absent = |key| match preset {
        Some(preset) => ParamError::new(key, format!("the preset `{}` has no such parameter", preset.name())),
        None => ParamError::new(key, "only a preset has it: without one, set `right` and `wrong`"),
    };
    if given.score.is_some() && own.score.is_none() {
        return Err(absent("score"));
    }
    if given.format_score.is_some() && own.format_score.is_none() {
        return Err(absent("format_score"));
    }
    let score = given.score.unwrap_or(1.0);
    ParamError::check(score.is_finite() && score > 0.0, "score", "must be above 0")?;
    let Some(format_score) = given.format_score else { return Ok(()) };
    // A share of the format that is negative would pay for a bad one.
    let low = if own.score.is_some() { f64::MIN } else { 0.0 };
    let wanted = if own.score.is_some() { "must be below `score`" } else { "must be from 0 to below 1" };
    ParamError::check(format_score >= low && format_score < score, "format_score", wanted)
}

/// The secret from which the points of identity tests come. No verdict depends on it; a policy that knew it could write an
/// expression that agrees with the reference at just those points.
pub(super) fn secret_seed() -> Result<u64, ParamError> {
    getrandom::u64()
        .map_err(|error| ParamError::new("", format!("the system gives no random numbers: {error}")))
}

/// The code of a broken bound.
fn code(bound: NoValue) -> Code {
    match bound {
        NoValue::TooLarge => Code::MathTooLarge,
        NoValue::Depth => Code::MathDepth,
        NoValue::Unbalanced => Code::MathUnbalanced,
        NoValue::Empty => Code::MathEmpty,
        NoValue::Undefined => Code::MathUndefined,
        NoValue::Unsupported => Code::MathUnsupported,
        NoValue::Undecided => Code::MathUndecided,
        NoValue::UnclosedThink => Code::UnclosedThink,
        _ => Code::ModelTooComplex,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::{TestRollout, compared, outcomes, score};
    use serde_json::json;

    fn why(outcome: &Outcome) -> &'static str {
        match outcome.info().and_then(|info| info.get("why")) {
            Some(Fact::Word(word)) => word,
            _ => outcome.reason().map_or("", |reason| reason.code.as_str()),
        }
    }

    #[test]
    fn wrong_not_parsed_and_no_answer_are_told_apart() {
        for (response, value, word) in [
            ("\\boxed{\\frac{2}{4}}", Some(1.0), "equal"),
            ("\\boxed{0.4999999}", Some(0.0), "different"),
            ("\\boxed{1 2 3}", Some(0.0), "not_parsed"),
            ("I cannot say.", Some(0.0), "no_answer"),
            ("\\boxed{9^{9^9}}", Some(0.0), "math.too_large"),
            ("\\boxed{1/0}", Some(0.0), "math.undefined"),
            ("\\boxed{1", Some(0.0), "math.unbalanced"),
            ("<think>\\boxed{1/2}", Some(0.0), "format.unclosed_think"),
        ] {
            let outcome = score(MathVerifyReward::default(), response, Some("\\frac12"));
            assert_eq!((outcome.value(), why(&outcome)), (value, word), "{response}");
        }
    }

    #[test]
    fn a_reference_that_is_none_gives_no_number() {
        for (reference, word) in [
            (Some(" "), "input.empty_reference"),
            (Some("\\frac{1}{0}"), "input.reference_unparsable"),
            (Some("\\frac{"), "input.reference_unparsable"),
            (None, "input.missing_reference"),
        ] {
            let outcome = score(MathVerifyReward::default(), "\\boxed{}", reference);
            assert_eq!((outcome.value(), why(&outcome)), (None, word), "{reference:?}");
            let skip = json!({"unparsable_reference": "skip"});
            let outcome = compared::<MathVerifyReward>(skip, "\\boxed{}", reference);
            assert!(matches!(outcome, Outcome::Skipped(_)), "{reference:?}");
        }
        for preset in ["verl.math_reward", "verl.gsm8k", "verl.geo3k"] {
            let outcome = compared::<MathVerifyReward>(json!({"preset": preset}), "\\boxed{}", Some(""));
            assert!(matches!(outcome, Outcome::Invalid(_)), "{preset}");
        }
    }

    #[test]
    fn parameters_that_contradict_each_other_are_refused() {
        for (parameters, key) in [
            (json!({"wrong": 1.0}), "right"),
            (json!({"timeout_score": 1.0}), "timeout_score"),
            (json!({"tolerance": 0.0}), "tolerance"),
            (json!({"preset": "verl.gsm8k", "answer": "box"}), "answer"),
            (json!({"preset": "verl.math_dapo", "timeout_score": 0.0}), "timeout_score"),
            (json!({"score": 2.0}), "score"),
            (json!({"preset": "verl.geo3k", "score": 2.0}), "score"),
            (json!({"preset": "verl.math_dapo", "format_score": 0.1}), "format_score"),
            (json!({"preset": "verl.gsm8k", "score": 0.0}), "score"),
            (json!({"preset": "verl.gsm8k", "format_score": 1.0}), "format_score"),
            (json!({"preset": "verl.geo3k", "format_score": -0.1}), "format_score"),
        ] {
            let given: MathVerifyReward = serde_json::from_value(parameters.clone()).expect("parameters");
            let refused = given.build(&mut ResourceCache::default()).expect_err("a refusal");
            assert_eq!(refused[0].key, key, "{parameters}");
        }
    }

    #[test]
    fn values_and_floors_are_the_recipes() {
        let shaped = json!({"right": 2.0, "wrong": -1.0, "timeout_score": -3.0});
        for (response, value) in [("\\boxed{4}", 2.0), ("\\boxed{5}", -1.0), ("", -1.0), ("\\boxed{}", -3.0)]
        {
            let outcome = compared::<MathVerifyReward>(shaped.clone(), response, Some("4"));
            assert_eq!(outcome.value(), Some(value), "{response}");
        }
        let close = json!({"tolerance": 1e-2});
        assert_eq!(compared::<MathVerifyReward>(close, "\\boxed{3.14}", Some("\\pi")).value(), Some(1.0));
        let dapo = json!({"preset": "verl.math_dapo"});
        assert_eq!(compared::<MathVerifyReward>(dapo.clone(), "Answer: 4", Some("4")).value(), Some(1.0));
        assert_eq!(compared::<MathVerifyReward>(dapo, "4", Some("4")).value(), Some(-1.0));
        for preset in ["verl.gsm8k", "verl.gsm8k_flexible"] {
            let scores = json!({"preset": preset, "score": 2.0, "format_score": 0.1});
            for (response, value) in [("#### 4", 2.0), ("#### 5", 0.1), ("none", 0.0)] {
                let outcome = compared::<MathVerifyReward>(scores.clone(), response, Some("4"));
                assert_eq!(outcome.value(), Some(value), "{preset} {response}");
            }
            let penalty = json!({"preset": preset, "format_score": -1.0});
            assert_eq!(compared::<MathVerifyReward>(penalty, "#### 5", Some("4")).value(), Some(-1.0));
        }
        let geo = json!({"preset": "verl.geo3k", "format_score": 0.2});
        assert_eq!(compared::<MathVerifyReward>(geo, "\\boxed{4}", Some("4")).value(), Some(0.8));
        let geo = json!({"preset": "verl.geo3k"});
        assert_eq!(compared::<MathVerifyReward>(geo, "\\boxed{4}", Some("4")).value(), Some(0.9));
    }

    #[test]
    fn a_reference_is_read_once_a_group() {
        use crate::text::Text;
        let reference = Text::new("4");
        let mut count = 0;
        for _ in 0..3 {
            let length = reference.parsed(7, |text| {
                count += 1;
                text.len()
            });
            assert_eq!(*length, 1);
        }
        assert_eq!(*reference.parsed(8, |_| "another rule's"), "another rule's");
        assert_eq!(count, 1);
        let rule = MathVerifyReward::default().build(&mut ResourceCache::default()).expect("a rule");
        let rollout = TestRollout { response: "\\boxed{4}", reference: Some("4"), ..TestRollout::default() };
        assert!(outcomes(&rule, &[rollout.clone(), rollout]).iter().all(|one| one.value() == Some(1.0)));
    }
}
