//! Reason codes: the closed list of dotted codes for outcomes without a plain value.

use std::borrow::Cow;
use std::fmt;

/// Declares the closed list once: the variant, its dotted code, and what it means.
macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $code:literal,)+) => {
        /// A cause, as reports count it. The first part of the code says whose it is: the model's (`model`, `math`,
        /// `format`), the input's, the group's, the judge's, the recipe's, the caller's own reward's or the engine's.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $($(#[doc = $doc])+ $variant,)+ }

        impl Code {
            /// Every code there is, in the order of the documentation.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)+];

            /// The stable dotted code, such as `model.too_long`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $code,)+ }
            }

            /// What the code means, in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$variant => concat!($($doc),+),)+ }
            }
        }
    };
}

codes! {
    /// The response is longer than the recipe's limit.
    ModelTooLong = "model.too_long",
    /// The response has more structure than the rule's stated limit allows.
    ModelTooComplex = "model.too_complex",
    /// The recipe's tokenizer cannot cut the response.
    ModelNoTokens = "model.no_tokens",
    /// The response is empty once its thought is taken away, so there is nothing to judge.
    ModelEmpty = "model.empty",
    /// The language of the response cannot be told: it has too few words beside code, formulas and names.
    ModelLanguageUnknown = "model.language_unknown",
    /// The response calls no tool, so there is no call to check.
    ModelNoCalls = "model.no_calls",
    /// The answer is larger than the math verifier's stated bounds.
    MathTooLarge = "math.too_large",
    /// The answer is nested deeper than the math verifier reads.
    MathDepth = "math.depth",
    /// A bracket of the answer, or its box, is never closed.
    MathUnbalanced = "math.unbalanced",
    /// The box of the answer is empty.
    MathEmpty = "math.empty",
    /// The answer has no value, as a division by zero has none.
    MathUndefined = "math.undefined",
    /// The answer has an integral, a limit or a command that is not evaluated.
    MathUnsupported = "math.unsupported",
    /// The answer agrees with the reference as far as can be computed, which proves nothing.
    MathUndecided = "math.undecided",
    /// The thinking is never closed, so there is no answer.
    UnclosedThink = "format.unclosed_think",
    /// The rollout has no reference, and the component needs one.
    MissingReference = "input.missing_reference",
    /// The reference holds nothing that the component could compare with.
    EmptyReference = "input.empty_reference",
    /// The reference cannot be read, or has no value, so no response can be compared with it.
    ReferenceUnparsable = "input.reference_unparsable",
    /// The reference is longer than the component's stated limit.
    ReferenceTooLong = "input.reference_too_long",
    /// The rollout has no token count, and the component needs one.
    MissingTokens = "input.missing_tokens",
    /// A field of `extra` that the component needs is absent or of the wrong type.
    MissingExtra = "input.missing_extra",
    /// The rollout has no tests, and the component needs them.
    MissingTests = "input.missing_tests",
    /// The tests of the rollout cannot be read or run, or there is none that expects something.
    BadTests = "input.tests",
    /// The options of a question cannot be read, or the right one is not among them.
    BadOptions = "input.options",
    /// The rollout has no schema, and the component needs one.
    MissingSchema = "input.missing_schema",
    /// The schema of the rollout, or the format that goes with it, cannot be read.
    BadSchema = "input.schema",
    /// The rollout has no instructions to follow, and the component needs them.
    MissingInstructions = "input.missing_instructions",
    /// The instructions of the rollout cannot be read, or there is none: an unknown id, or an argument that is missing or wrong.
    BadInstructions = "input.instructions",
    /// The language that the rollout names is not one that can be told.
    BadLanguage = "input.language",
    /// The rollout declares no tools, and the component needs them.
    MissingTools = "input.missing_tools",
    /// The schema uses a keyword that the component does not check.
    SchemaUnsupported = "input.schema_unsupported",
    /// It is not known why the generation of the response ended, and the component needs that.
    MissingFinishReason = "input.missing_finish_reason",
    /// No route of the recipe fits the rollout, and it names no default.
    NoRoute = "input.no_route",
    /// A text of the rollout is not valid Unicode.
    NotUnicode = "input.utf8",
    /// The response is a conversation that cannot be read.
    BadResponse = "input.response",
    /// A gate of the recipe was closed, so the component was not asked.
    GateClosed = "gate.closed",
    /// A component before this one in `first_of` says right, so this one was not asked.
    Settled = "first_of.settled",
    /// The group is too small for a reward that compares its members.
    GroupTooSmall = "group.too_small",
    /// The group is too large for the way its comparisons become numbers.
    GroupTooLarge = "group.too_large",
    /// The rollouts of the group answer different prompts, so they cannot be compared.
    GroupMixed = "group.mixed",
    /// The rollout arrived after its group had been scored.
    GroupSplit = "group.split",
    /// The group's deadline passed before the component was asked.
    GroupDeadline = "group.deadline",
    /// Members of the group never arrived, and the recipe scores no partial groups.
    GroupIncomplete = "group.incomplete",
    /// A member of the same name arrived before, with another response.
    GroupDuplicate = "group.duplicate",
    /// The rollout left its group before that was scored.
    GroupLeft = "group.left",
    /// The join was closed before the group was complete.
    GroupClosed = "group.closed",
    /// The name of the judge's host could not be resolved.
    JudgeDns = "judge.dns",
    /// No connection to the judge could be made.
    JudgeConnect = "judge.connect",
    /// The proxy to the judge cannot be reached, or refuses.
    JudgeProxy = "judge.proxy",
    /// The judge's certificate or its TLS is not to be trusted.
    JudgeTls = "judge.tls",
    /// The judge did not answer within the time of one attempt.
    JudgeTimeout = "judge.timeout",
    /// The judge began to answer, but did not finish within the time of one attempt.
    JudgeSlowBody = "judge.slow_body",
    /// The connection to the judge broke before its answer was whole.
    JudgeReset = "judge.reset",
    /// What the judge sent is not HTTP, or contradicts itself.
    JudgeProtocol = "judge.protocol",
    /// The judge refuses the key, or has none.
    JudgeAuth = "judge.auth",
    /// The account at the judge is used up.
    JudgeQuota = "judge.quota",
    /// The judge asks to wait for longer than the deadline allows.
    JudgeRateLimited = "judge.rate_limited",
    /// The judge refuses the request as wrong.
    JudgeClientError = "judge.client_error",
    /// The request is longer than the judge's context.
    JudgeContextLength = "judge.context_length",
    /// The judge failed with a server error.
    JudgeServerError = "judge.server_error",
    /// The judge answers with a redirect, which is not followed.
    JudgeRedirect = "judge.redirect",
    /// The judge's answer is larger than any verdict can be.
    JudgeTooLarge = "judge.too_large",
    /// The judge's answer is not JSON.
    JudgeJson = "judge.json",
    /// The judge's answer does not have the shape that was asked for.
    JudgeSchema = "judge.schema",
    /// The judge's answer is empty.
    JudgeEmpty = "judge.empty",
    /// The judge refused to answer.
    JudgeRefusal = "judge.refusal",
    /// The judge's answer was cut off before its end.
    JudgeTruncated = "judge.truncated",
    /// A filter at the judge held its answer back.
    JudgeContentFilter = "judge.content_filter",
    /// The judge's answer ended for a reason that is not a normal end.
    JudgeUnfinished = "judge.unfinished",
    /// The judge's answer holds more than one verdict.
    JudgeAmbiguous = "judge.ambiguous",
    /// The judge's JSON names a key twice.
    JudgeDuplicateKey = "judge.duplicate_key",
    /// The judge's score is outside the range that was asked for.
    JudgeRange = "judge.range",
    /// The judge's score is not a finite number.
    JudgeNotFinite = "judge.not_finite",
    /// The judge ranked another number of responses than it was shown.
    JudgeArity = "judge.arity",
    /// The judge's ranking names a response twice, or one that it was not shown.
    JudgePermutation = "judge.permutation",
    /// The judge's answer names another sample than it was asked about.
    JudgeWrongSample = "judge.wrong_sample",
    /// The judge's answer has no usable probabilities of the verdict.
    JudgeNoLogprobs = "judge.no_logprobs",
    /// The judge has failed too often just now to be asked again.
    JudgeBreakerOpen = "judge.breaker_open",
    /// The budget of calls or cost for the judge is spent.
    JudgeBudget = "judge.budget",
    /// The group's deadline passed before the judge had answered.
    JudgeDeadline = "judge.deadline",
    /// The journal holds no answer to this, and no judge may be asked.
    JudgeNotRecorded = "judge.not_recorded",
    /// No comparison of the response with another one succeeded.
    JudgeNoVerdicts = "judge.no_verdicts",
    /// The sandbox failed, so nothing is known of the program.
    SandboxFailed = "sandbox.failed",
    /// The journal holds no run of this program, and none may be started.
    SandboxNotRecorded = "sandbox.not_recorded",
    /// The journal cannot be written, so nothing more is bought.
    JournalFull = "engine.journal_full",
    /// The journal that is shared with other machines cannot be reached, so nothing more is bought.
    JournalLost = "engine.journal_lost",
    /// What the shared journal holds for this question is damaged or not plaudit's own.
    JournalDamaged = "engine.journal_damaged",
    /// The run was stopped before the judge was asked.
    Stopped = "engine.stopped",
    /// Too many rollouts wait for their groups; hand it in again later.
    Overloaded = "engine.overloaded",
    /// The weights of the components that apply add up to zero, so their mean does not exist.
    ZeroWeight = "engine.zero_weight",
    /// The recipe's own prompt cannot be filled in for this rollout.
    TemplateFailed = "recipe.template_failed",
    /// The tokenizer file that the recipe names cannot cut the reference.
    TokenizerFailed = "recipe.tokenizer_failed",
    /// A reward that the caller brought failed, or gave back something that is no list of numbers.
    RewardFailed = "reward.failed",
    /// A reward that the caller brought says that it does not apply.
    RewardAbstained = "reward.abstained",
    /// A rule returned something that is not a finite number.
    NotFinite = "engine.not_finite",
    /// A rule failed in a way that it must not; please report it.
    Panic = "engine.panic",
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl serde::Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

/// A cause and a sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Reason {
    /// The cause, from the closed list.
    pub code: Code,
    /// What happened, in one sentence; never the response's own words.
    pub message: Cow<'static, str>,
}

impl Reason {
    /// A reason with a message of its own.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into() }
    }
}

impl From<Code> for Reason {
    /// A reason that needs no more words than its code's meaning.
    fn from(code: Code) -> Self {
        Self { code, message: Cow::Borrowed(code.meaning().trim_start()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_dotted_and_distinct() {
        let mut seen = Vec::new();
        for code in Code::ALL {
            let (owner, what) = code.as_str().split_once('.').expect("a dot");
            assert!(!owner.is_empty() && !what.is_empty());
            assert!(!seen.contains(&code.as_str()));
            seen.push(code.as_str());
        }
    }
}
