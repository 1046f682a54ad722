//! `instructions`: whether a response follows the verifiable instructions of IFEval, IFBench and IF-RLVR.

use super::row_cache::RowCache;
use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{ConstraintVerdict, Fact, Info, Outcome};
use crate::reason::{Code, Reason};
use crate::text::scope::Scope;
use plaudit_instructions::row::{self, Grading, Row};
use plaudit_instructions::{CheckError, Mode, Response, Semantics, Texts};
use plaudit_text::after_thought;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// 1 where the response follows all of its verifiable instructions, or the share that it follows.
///
/// ## What it scores
/// The instructions stand in the row, in one of three forms:
///
/// | Where | Form |
/// |---|---|
/// | `extra.instruction_id_list` with `extra.kwargs` | IFEval, IFBench: ids, and an object of arguments or null for each |
/// | `extra.verifier_metadata` | NeMo-Gym: the same, with `grading_mode` |
/// | `extra.ground_truth`, or the reference | IF-RLVR: `[{"instruction_id": [...], "kwargs": [...]}]` as JSON or as a Python literal, which is read and never evaluated |
///
/// All 112 ids of the three sets are known; `docs/reference/instructions.md` says of each what it checks, how it can be gamed, and where the
/// two semantics differ. The thinking and the `<answer>` tags are taken off first. With `mode: loose` it is enough that one of eight variants
/// passes: without the first line, the last or both, and without stars. A response that is empty follows nothing.
///
/// The info has `constraints`, with `id` and `followed` of each, how many were `expected` and `followed`, and `why`: `all`, `some` or `none`. The
/// statistics count for each id how often it was followed.
///
/// A rollout without instructions is skipped. An empty list, an unknown id, and an argument that is missing, unknown or wrong make it invalid
/// with `input.instructions`: nothing that is missing is drawn at random, and nothing passes by absence. Thinking that never ends gets the floor with
/// `format.unclosed_think`, and a response that is too long for so many instructions gets it with `model.too_complex`.
///
/// ## When to use it
/// For IF-RLVR and other data of instructions that a program can check. `credit: share` gives part of the credit while a model learns;
/// IFEval's accuracy per prompt is `credit: all`. `semantics: published` reproduces published numbers, with their
/// faults; a letter that is a sign, which the published checker replaces by a random letter, is replaced by the same one in every run.
///
/// ## How it can be gamed
/// By doing what is checked and nothing else: ten bullets without content, a keyword in the last line, all capitals instead of an answer. Add
/// a reward for the answer itself, such as a judge, and read the responses of ids whose share rises fast.
///
/// ## Example
/// ```yaml
/// follows: { reward: instructions, weight: 1.0, credit: share }
/// ```
///
/// ## References
/// Zhou et al., Instruction-Following Evaluation for Large Language Models (arXiv 2311.07911); Pyatkin et al., Generalizing Verifiable
/// Instruction Following (arXiv 2507.02833).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Instructions {
    /// Which question the checks answer.
    pub semantics: Semantics,
    /// How the instructions that were followed become a number. Without it the row's `grading_mode` says it, and else it is `all`.
    pub credit: Option<InstructionCredit>,
    /// How forgiving the checks are towards the frame of an answer.
    pub mode: Mode,
    /// Which part of the response is read.
    pub scope: Scope,
}

impl Default for Instructions {
    fn default() -> Self {
        Self { semantics: Semantics::Corrected, credit: None, mode: Mode::Strict, scope: Scope::Final }
    }
}

/// How the instructions that were followed become a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InstructionCredit {
    /// 1 where all were followed.
    All,
    /// Their share.
    Share,
}

/// How many bytes the checks of one response may look at: its length, once for each instruction and variant. The slowest check
/// takes some 40 milliseconds for as many.
const MAX_BYTES: usize = 1 << 20;

/// The part of a response that the checks look at: what comes after the thought. Nothing where the thought never ends.
///
/// The scorer of IF-RLVR, whose rows are literals, takes the thought off; those of the other forms are handed the answer alone.
pub fn checked_text(text: &str, semantics: Semantics, is_literal: bool) -> Option<Cow<'_, str>> {
    match (semantics, after_thought(text)) {
        (Semantics::Corrected, None) => None,
        (Semantics::Published, Some(answer)) if !is_literal && answer.len() == text.len() => {
            Some(Cow::Borrowed(text))
        }
        _ => Some(row::without_thought(text)),
    }
}

type Rows = RowCache<Result<Arc<Row>, Reason>>;

impl Reward<Rule> for Instructions {
    const NAME: &'static str = "instructions";
    const CORRECTNESS: bool = true;
    const FACTS: &'static [&'static str] = &["expected", "followed"];

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let rows = Rows::new();
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| self.score(&rows, sample)))
    }
}

impl Instructions {
    fn score(&self, rows: &Rows, sample: &RuleInput<'_>) -> Result<Outcome, Outcome> {
        let (written, is_literal) = written(sample)?;
        let row = rows.get(written, |written| self.read(written)).map_err(Outcome::invalid)?;
        let text = self.scope.of(sample.text);
        let Some(text) = checked_text(text, self.semantics, is_literal) else {
            return Err(Outcome::floored(0.0, Code::UnclosedThink));
        };
        let variants = match self.mode {
            Mode::Strict => 1,
            // A text without line breaks has no other lines, and one without stars is the same without them.
            Mode::Loose => {
                let lines = if text.contains('\n') { 4 } else { 1 };
                if text.contains('*') { 2 * lines } else { lines }
            }
        };
        if text.len().saturating_mul(row.checks.len() * variants) > MAX_BYTES {
            let message = "The response is too long to be checked for so many instructions.";
            return Err(Outcome::floored(0.0, Reason::new(Code::ModelTooComplex, message)));
        }
        let texts = Texts::new(&text);
        let response = Response::new(&texts);
        let verdicts: Result<Vec<_>, _> = (row.checks.iter())
            .map(|check| {
                let followed = response.verdict(check, self.mode)?;
                Ok(ConstraintVerdict { id: check.constraint().id, followed })
            })
            .collect();
        let failed = |error: CheckError| Outcome::invalid(Reason::new(Code::RewardFailed, error.to_string()));
        Ok(self.outcome(verdicts.map_err(failed)?, row.grading))
    }

    fn outcome(&self, verdicts: Vec<ConstraintVerdict>, grading: Option<Grading>) -> Outcome {
        let (all, followed) = (verdicts.len(), verdicts.iter().filter(|verdict| verdict.followed).count());
        let credit = self.credit.unwrap_or(match grading {
            Some(Grading::Fraction) => InstructionCredit::Share,
            Some(Grading::Binary) | None => InstructionCredit::All,
        });
        let value = match credit {
            InstructionCredit::All => f64::from(u8::from(followed == all)),
            InstructionCredit::Share => followed as f64 / all as f64,
        };
        let why = match followed {
            0 => "none",
            _ if followed == all => "all",
            _ => "some",
        };
        let count = |number: usize| Fact::Count(number as u64);
        let info = Info::of([
            ("why", Fact::Word(why)),
            ("expected", count(all)),
            ("followed", count(followed)),
            ("constraints", Fact::Constraints(verdicts)),
        ]);
        Outcome::scored(value, info)
    }

    /// The checks of a row, from the text of its fields.
    fn read(&self, written: &str) -> Result<Arc<Row>, Reason> {
        let bad = |what: String| {
            Reason::new(Code::BadInstructions, format!("The instructions cannot be used: {what}."))
        };
        let fields: Map<String, Value> =
            serde_json::from_str(written).map_err(|error| bad(error.to_string()))?;
        row::read(&fields, self.semantics).map(Arc::new).map_err(|error| bad(error.to_string()))
    }
}

/// The fields of a row that say what the response must follow, as JSON, and whether they have the form of IF-RLVR.
fn written<'s>(sample: &RuleInput<'s>) -> Result<(Cow<'s, str>, bool), Outcome> {
    let extra = sample.extra;
    let given = |name: &str| extra.get(name).filter(|value| !value.is_null());
    let metadata =
        given("verifier_metadata").filter(|metadata| metadata.get("instruction_id_list").is_some());
    let fields = if let Some(metadata) = metadata {
        json!({"verifier_metadata": metadata})
    } else if let Some(ids) = given("instruction_id_list") {
        json!({"instruction_id_list": ids, "kwargs": given("kwargs"), "grading_mode": given("grading_mode")})
    } else if let Some(truth) = given("ground_truth") {
        json!({"ground_truth": truth})
    } else {
        // A field that is not called reference may be one of another kind.
        let found = || sample.reference.filter(|reference| reference.stripped().contains("instruction_id"));
        let reference = sample.own_reference().or_else(found).map(|reference| match reference.accepted() {
            Some([one]) => one.stripped(),
            _ => reference.stripped(),
        });
        let reference = reference.filter(|text| !text.is_empty());
        json!({"ground_truth": reference.ok_or_else(|| Outcome::skipped(Code::MissingInstructions))?})
    };
    Ok((Cow::Owned(fields.to_string()), fields.get("ground_truth").is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::{TestRollout, one};

    fn ask(parameters: Value, response: &str, reference: Option<&str>, extra: Value) -> Outcome {
        let extra = extra.as_object().unwrap().clone();
        one::<Instructions>(parameters, TestRollout { response, reference, extra, ..TestRollout::default() })
    }

    const GROUND_TRUTH: &str = "[{'instruction_id': ['punctuation:no_comma', 'keywords:existence'], 'kwargs': [None, {'keywords': ['harbor']}]}]";

    fn lists() -> Value {
        json!({"instruction_id_list": ["punctuation:no_comma", "keywords:existence"], "kwargs": [{}, {"keywords": ["harbor"]}]})
    }

    #[test]
    fn rows_have_three_forms() {
        let share = json!({"credit": "share"});
        for (reference, extra) in [
            (None, lists()),
            (None, json!({"verifier_metadata": lists()})),
            (None, json!({"ground_truth": GROUND_TRUTH})),
            (
                None,
                json!({"instruction_id_list": "['punctuation:no_comma', 'keywords:existence']",
                "kwargs": "[null, {\"keywords\": [\"harbor\"]}]"}),
            ),
            (
                None,
                json!({"instruction_id_list": ["punctuation:no_comma", "keywords:existence"],
                "kwargs": ["{}", "{'keywords': ['harbor']}"]}),
            ),
            (Some(GROUND_TRUTH), json!({})),
        ] {
            for (response, value) in [
                ("The harbor at night", 1.0),
                ("The harbor, at night", 0.5),
                ("Night, all over", 0.0),
                ("", 0.0),
            ] {
                assert_eq!(
                    ask(share.clone(), response, reference, extra.clone()).value(),
                    Some(value),
                    "{response} {extra}"
                );
                let all = if value == 1.0 { 1.0 } else { 0.0 };
                assert_eq!(
                    ask(json!({}), response, reference, extra.clone()).value(),
                    Some(all),
                    "{response} {extra}"
                );
            }
        }
        let mut graded = lists();
        graded["grading_mode"] = json!("fraction");
        let graded = json!({"verifier_metadata": graded});
        assert_eq!(ask(json!({}), "The harbor, at night", None, graded).value(), Some(0.5));
    }

    #[test]
    fn every_constraint_is_told() {
        let outcome =
            ask(json!({}), "<think>a, b</think><answer>The harbor, at night</answer>", None, lists());
        let info = outcome.info().unwrap();
        let verdict = |id, followed| ConstraintVerdict { id, followed };
        let told = vec![verdict("punctuation:no_comma", false), verdict("keywords:existence", true)];
        assert_eq!(info.get("constraints"), Some(&Fact::Constraints(told)));
        assert_eq!(info.get("why"), Some(&Fact::Word("some")));
        let written = serde_json::to_value(info).unwrap();
        assert_eq!(written["constraints"][1], json!({"id": "keywords:existence", "followed": true}));
        let loose = ask(json!({"mode": "loose"}), "Sure, here:\nThe harbor at night", None, lists());
        assert_eq!(loose.value(), Some(1.0));
    }

    #[test]
    fn nothing_is_followed_by_absence() {
        for (extra, code) in [
            (json!({}), Code::MissingInstructions),
            (json!({"instruction_id_list": [], "kwargs": []}), Code::BadInstructions),
            (json!({"instruction_id_list": ["punctuation:no_comma"], "kwargs": []}), Code::BadInstructions),
            (json!({"instruction_id_list": ["punctuation:no_coma"], "kwargs": [{}]}), Code::BadInstructions),
            (json!({"instruction_id_list": ["keywords:existence"], "kwargs": [{}]}), Code::BadInstructions),
            (json!({"ground_truth": "__import__('os')"}), Code::BadInstructions),
        ] {
            let outcome = ask(json!({}), "The harbor", None, extra.clone());
            assert_eq!(
                (outcome.value(), outcome.reason().map(|reason| reason.code)),
                (None, Some(code)),
                "{extra}"
            );
        }
        let open = ask(json!({}), "<think>The harbor", None, lists());
        assert_eq!(open.reason().map(|reason| reason.code), Some(Code::UnclosedThink));
    }
}
