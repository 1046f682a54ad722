//! Nothing hides in `invalid`: who could cause each reason code, why a response cannot, and responses that try.

use plaudit::engine::Engine;
use plaudit::outcome::OutcomeKind;
use plaudit::reason::Code::{self, *};
use plaudit::recipe::Recipe;
use plaudit::rollout::Rollout;
use plaudit::rule::RULES;
use serde_json::json;

/// In whose hands a cause is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The response: never invalid, but floored, 0 or skipped.
    Response,
    /// Never invalid by itself: the component does not apply.
    Skips,
    /// The row of the data set: its reference, tests, schema. Read before the response, or apart from it.
    Row,
    /// Whoever calls: groups, deadlines, cancellation, rewards of their own.
    Caller,
    /// The judge, its host or its budget. What a response can say to it stands between delimiters, and is cut to a length.
    Judge,
    /// The host: sandbox, journal, memory.
    Host,
    /// The author of the recipe.
    Recipe,
    /// A fault of plaudit itself.
    Engine,
}
use Cause::*;

/// Every code: who causes it, and why a response cannot.
const CAUSES: &[(&[Code], Cause, &str)] = &[
    (
        &[ModelTooLong, ModelTooComplex, ModelNoTokens, ModelEmpty, ModelLanguageUnknown, ModelNoCalls],
        Response,
        "floored",
    ),
    (
        &[MathTooLarge, MathDepth, MathUnbalanced, MathEmpty, MathUndefined, MathUnsupported, MathUndecided],
        Response,
        "floored, or 0",
    ),
    (&[UnclosedThink], Response, "floored"),
    (
        &[
            MissingReference,
            EmptyReference,
            MissingTokens,
            MissingExtra,
            MissingTests,
            MissingSchema,
            MissingRubric,
        ],
        Skips,
        "a field of the row is not there",
    ),
    (
        &[MissingInstructions, MissingTools, SchemaUnsupported, MissingFinishReason, GateClosed, Settled],
        Skips,
        "the row or another component says so",
    ),
    (&[RewardAbstained], Skips, "the caller's own reward says so"),
    (&[RewardFloored], Response, "floored, where the caller's own reward says so"),
    (&[ReferenceUnparsable, ReferenceTooLong], Row, "the reference is read without the response"),
    (
        &[BadTests],
        Row,
        "tests are read without the response; a test that fails before it calls the program is faulty for every program, and a name that the data use and nobody defines makes every program invalid but one that defines it",
    ),
    (
        &[BadOptions, BadSchema, BadInstructions, BadLanguage, BadRubric, NoRoute],
        Row,
        "read from the row without the response",
    ),
    (
        &[NotUnicode, BadResponse],
        Caller,
        "tokens decode to valid text; a conversation is built by the caller, and what the model wrote into a call may be broken",
    ),
    (
        &[
            GroupTooSmall,
            GroupTooLarge,
            GroupMixed,
            GroupSplit,
            GroupIncomplete,
            GroupDuplicate,
            GroupLeft,
            GroupClosed,
        ],
        Caller,
        "groups are made by the caller",
    ),
    (
        &[GroupDeadline],
        Host,
        "a program that waited for a slot; one whose own tests took the time gets `time` (sleeping_through_the_deadline_is_no_excuse)",
    ),
    (
        &[
            JudgeDns,
            JudgeConnect,
            JudgeProxy,
            JudgeTls,
            JudgeTimeout,
            JudgeSlowBody,
            JudgeReset,
            JudgeProtocol,
            JudgeAuth,
            JudgeQuota,
            JudgeRateLimited,
            JudgeClientError,
            JudgeServerError,
            JudgeRedirect,
            JudgeBreakerOpen,
            JudgeBudget,
            JudgeDeadline,
            JudgeNotRecorded,
        ],
        Judge,
        "the endpoint and the way to it",
    ),
    (
        &[JudgeContextLength, JudgeTooLarge, JudgeTruncated, JudgeUnfinished, JudgeEmpty],
        Judge,
        "what is shown of a response is cut to `longest`, and the recipe sets it with the length of answers",
    ),
    (
        &[
            JudgeJson,
            JudgeSchema,
            JudgeAmbiguous,
            JudgeDuplicateKey,
            JudgeRange,
            JudgeNotFinite,
            JudgeArity,
            JudgePermutation,
            JudgeWrongSample,
            JudgeNoLogprobs,
            JudgeNoVerdicts,
            JudgeNothingApplies,
        ],
        Judge,
        "the judge writes it; what in a response looks like a verdict or a delimiter is broken before it is shown",
    ),
    (
        &[JudgeRefusal, JudgeContentFilter],
        Judge,
        "the judge decides: a policy that provokes it shows in the counts of the report, which name the code",
    ),
    (
        &[SandboxFailed],
        Host,
        "a death, an exit or an output of a program is its own verdict; only the box itself fails",
    ),
    (&[SandboxNotRecorded, JournalFull, JournalLost, JournalDamaged], Host, "the journal"),
    (&[Stopped, Overloaded], Caller, "the run is stopped, or hands in too much"),
    (
        &[ZeroWeight, TemplateFailed, TokenizerFailed],
        Recipe,
        "weights, prompts and tokenizer files of the recipe; a response that a tokenizer cannot cut is floored",
    ),
    (&[RewardFailed], Caller, "the caller's own reward: it decides what odd text is worth"),
    (&[NotFinite, Panic], Engine, "every rule is tried with hostile texts, here and in hostile.rs"),
];

#[test]
fn every_code_has_a_cause() {
    for code in Code::ALL {
        let rows = CAUSES.iter().filter(|(codes, ..)| codes.contains(code)).count();
        assert_eq!(
            rows, 1,
            "{code}: say here who causes it, and why a response cannot make a rollout invalid by it"
        );
    }
    let of_model = |code: &Code| {
        ["model.", "math.", "format.", "reward.floored"].iter().any(|owner| code.as_str().starts_with(owner))
    };
    for (codes, cause, why) in CAUSES {
        assert!(
            !why.is_empty() && codes.iter().all(|code| of_model(code) == (*cause == Response)),
            "{codes:?}"
        );
    }
}

/// No place in the engine makes a rollout invalid by a code of the response's.
#[test]
fn codes_of_the_model_are_never_invalid() {
    let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
    let codes = CAUSES.iter().filter(|(_, cause, _)| *cause == Response).flat_map(|(codes, ..)| codes.iter());
    let names: Vec<String> = codes.map(|code| format!("Code::{code:?}")).collect();
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                for line in text.lines().filter(|line| line.contains("Outcome::invalid(")) {
                    seen += 1;
                    assert!(
                        !names.iter().any(|name| line.contains(name.as_str())),
                        "{}: {line}",
                        path.display()
                    );
                }
            }
        }
    }
    assert!(seen > 10);
}

/// Whatever a response holds, no rule makes its rollout invalid where the row is sound.
#[test]
fn odd_responses_are_never_invalid() {
    let texts = [
        String::new(),
        "\0".repeat(100),
        " \u{a0}\u{200b}".to_owned(),
        "\u{FDD0}100000000000000000001".to_owned(),
        "\u{202e}\u{feff}\u{fffd}".to_owned(),
        "<think>".repeat(50),
        "<think>a</think>".to_owned(),
        "\\boxed{".repeat(500),
        "\\boxed{10^{10^{10^{10}}}}".to_owned(),
        "\\boxed{1/0}".to_owned(),
        "[".repeat(10_000),
        "{\"a\":".repeat(5_000),
        "1e999999999".to_owned(),
        "nan inf -inf".to_owned(),
        "<tool_call>{\"name\": 3}</tool_call>".to_owned(),
        "```python\n\0\n```".to_owned(),
        "```json\n{\"a\": 1e400}\n```".to_owned(),
        "a".repeat(2_000_000),
        "<|im_start|>assistant\n<|eot_id|>".to_owned(),
    ];
    let mut tried = 0;
    for rule in RULES {
        let yaml = format!("components:\n  x: {{ reward: {} }}\n", rule.name);
        // A rule without a default, such as a pattern of the recipe's own, is left out.
        let Ok(plan) = Recipe::from_yaml(&yaml).and_then(|recipe| recipe.plan()) else { continue };
        let engine = Engine::new(plan).unwrap();
        let rollouts: Vec<Rollout<'static>> = texts
            .iter()
            .enumerate()
            .map(|(at, text)| {
                let mut rollout =
                    Rollout::new(text.clone()).with_reference("42").in_group(format!("g{}", at % 4));
                rollout.tokens = Some(10);
                rollout.extra = json!({"correct": true, "language": "en", "schema": {"type": "object"},
                    "options": ["41", "42"], "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}],
                    "expected_calls": [{"name": "f", "arguments": {}}]})
                .as_object()
                .unwrap()
                .clone();
                rollout
            })
            .collect();
        let report = engine.score(&rollouts).unwrap();
        for (rollout, row) in rollouts.iter().zip(&report.rows) {
            let outcome = row.outcomes[0].as_ref().unwrap();
            let row_at_fault = outcome.reason().is_some_and(|reason| {
                CAUSES.iter().any(|(codes, cause, _)| *cause == Row && codes.contains(&reason.code))
            });
            let start: String = rollout.response.chars().take(20).collect();
            // What a rule cannot read of this row's reference, such as a list of calls, it says of every response.
            assert!(
                outcome.kind() != OutcomeKind::Invalid || row_at_fault,
                "{} {start:?} {outcome:?}",
                rule.name
            );
            tried += 1;
        }
    }
    assert!(tried > 200, "{tried}");
    // A sound row of a program: no response makes it invalid.
    let Some(engine) = crate::code::engine("components:\n  x: { reward: code, timeout: 1 }\n") else {
        return;
    };
    let rollouts: Vec<Rollout<'static>> = texts
        .iter()
        .map(|text| {
            let mut rollout = Rollout::new(text.clone());
            rollout.extra = json!({"tests": [{"input": "1", "output": "1"}]}).as_object().unwrap().clone();
            rollout
        })
        .collect();
    for row in engine.score(&rollouts).unwrap().rows.iter() {
        assert_ne!(row.outcomes[0].as_ref().unwrap().kind(), OutcomeKind::Invalid, "{row:?}");
    }
}
