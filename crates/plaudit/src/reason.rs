//! Reason codes: the closed list of dotted codes for outcomes without a plain value.

use std::borrow::Cow;
use std::fmt;

/// Declares the closed list once: the variant, its dotted code, what it means, and what to do about it.
macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $code:literal, fix $remedy:literal,)+) => {
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

            /// What to do about it, for whoever runs the recipe.
            pub const fn remedy(self) -> &'static str {
                match self { $(Code::$variant => $remedy,)+ }
            }
        }
    };
}

codes! {
    /// The response is longer than the recipe's limit.
    ModelTooLong = "model.too_long",
        fix "The limit is the component's own (`max` and its like) or `limits.response_bytes`: raise it if such responses are wanted; else the floor teaches the policy to stop.",
    /// The response has more structure than the rule's stated limit allows.
    ModelTooComplex = "model.too_complex",
        fix "Nothing, where it is rare: the floor teaches the policy. Where it is common, look at such responses with `plaudit explain`.",
    /// The recipe's tokenizer cannot cut the response.
    ModelNoTokens = "model.no_tokens",
        fix "Name another tokenizer (`tokenizer_type`), or count characters.",
    /// The response is empty once its thought is taken away, so there is nothing to judge.
    ModelEmpty = "model.empty",
        fix "Look whether generation stops inside the thought: give responses more tokens. `show_thought: true` shows the judge the thought as well.",
    /// The language of the response cannot be told: it has too few words beside code, formulas and names.
    ModelLanguageUnknown = "model.language_unknown",
        fix "Nothing, where it is rare. For tasks whose answers are code or formulas, leave the component out.",
    /// The response calls no tool, so there is no call to check.
    ModelNoCalls = "model.no_calls",
        fix "Nothing, where a call is wanted: the floor teaches it. Else leave the component out for such rows, by a `route`.",
    /// The answer is larger than the math verifier's stated bounds.
    MathTooLarge = "math.too_large",
        fix "Nothing, where it is rare: no reference is that large.",
    /// The answer is nested deeper than the math verifier reads.
    MathDepth = "math.depth",
        fix "Nothing, where it is rare: no reference is nested like that.",
    /// A bracket of the answer, or its box, is never closed.
    MathUnbalanced = "math.unbalanced",
        fix "Nothing: the policy learns it. Where it is common, look whether responses are cut off: give them more tokens.",
    /// The box of the answer is empty.
    MathEmpty = "math.empty",
        fix "Nothing: the policy learns it. Where it is common, show an example of a box in the prompt.",
    /// The answer has no value, as a division by zero has none.
    MathUndefined = "math.undefined",
        fix "Nothing: the policy learns it.",
    /// The answer has an integral, a limit or a command that is not evaluated.
    MathUnsupported = "math.unsupported",
        fix "Where references need such answers, put a judge behind it: `first_of`.",
    /// The answer agrees with the reference as far as can be computed, which proves nothing.
    MathUndecided = "math.undecided",
        fix "Where it is common, put a judge behind it: `first_of`.",
    /// The thinking is never closed, so there is no answer.
    UnclosedThink = "format.unclosed_think",
        fix "Look whether responses are cut off inside their thought: give them more tokens. Is `think_token` the tag that the model writes?",
    /// The rollout has no reference, and the component needs one.
    MissingReference = "input.missing_reference",
        fix "Say where it stands: `--field reference=answer` in the command, `references=` in Python, `columns=` in TRL; or `required: false`.",
    /// The reference holds nothing that the component could compare with.
    EmptyReference = "input.empty_reference",
        fix "Mend or drop these rows: `plaudit doctor DATA --recipe RECIPE` lists them.",
    /// The reference cannot be read, or has no value, so no response can be compared with it.
    ReferenceUnparsable = "input.reference_unparsable",
        fix "Mend or drop these rows: `plaudit doctor DATA --recipe RECIPE` lists them.",
    /// The reference is longer than the component's stated limit.
    ReferenceTooLong = "input.reference_too_long",
        fix "Is the whole solution in the place of the answer? Name the field of the answer: `--field reference=NAME`.",
    /// The rollout has no token count, and the component needs one.
    MissingTokens = "input.missing_tokens",
        fix "Give `tokens` with the rollouts, or name a tokenizer: `tokenizer_type: tiktoken`.",
    /// A field of `extra` that the component needs is absent or of the wrong type.
    MissingExtra = "input.missing_extra",
        fix "`plaudit rewards NAME` says which fields it reads. Name columns of the data set so, or hand them over as `extra`.",
    /// The rollout has no tests, and the component needs them.
    MissingTests = "input.missing_tests",
        fix "`plaudit rewards code_execution` lists the forms of tests that are read. Name columns so, or hand them over as `extra`.",
    /// The tests of the rollout cannot be read or run, or there is none that expects something.
    BadTests = "input.tests",
        fix "Mend or drop these rows: `plaudit doctor DATA --recipe RECIPE` lists them and runs their solutions.",
    /// The options of a question cannot be read, or the right one is not among them.
    BadOptions = "input.options",
        fix "`plaudit rewards choice` lists the forms of options that are read; the reference is a letter or the text of one of them.",
    /// The rollout has no schema, and the component needs one.
    MissingSchema = "input.missing_schema",
        fix "Put it into `schema_str`, `schema` or `json_schema` of the row.",
    /// The rollout has no rubric, and the component grades by one.
    MissingRubric = "input.missing_rubric",
        fix "Name the field that holds it: `field: NAME` of the component; `plaudit rewards rubric` lists where rubrics are looked for.",
    /// The rubric of the rollout is empty, cannot be read, or has weights that no number can be made of.
    BadRubric = "input.rubric",
        fix "Mend or drop these rows; the message names the place.",
    /// The schema of the rollout, or the format that goes with it, cannot be read.
    BadSchema = "input.schema",
        fix "Mend or drop these rows: `plaudit doctor DATA --recipe RECIPE` lists them.",
    /// The rollout has no instructions to follow, and the component needs them.
    MissingInstructions = "input.missing_instructions",
        fix "Put them into `instruction_id_list` and `kwargs` of the row; `plaudit rewards instructions` lists the other forms.",
    /// The instructions of the rollout cannot be read, or there is none: an unknown id, or an argument that is missing or wrong.
    BadInstructions = "input.instructions",
        fix "Mend or drop these rows: `plaudit doctor DATA --recipe RECIPE` lists them.",
    /// The language that the rollout names is not one that can be told.
    BadLanguage = "input.language",
        fix "Name the language by its code, such as `en`.",
    /// The rollout declares no tools, and the component needs them.
    MissingTools = "input.missing_tools",
        fix "Give `tools` with the rollouts, or leave the component out.",
    /// The schema uses a keyword that the component does not check.
    SchemaUnsupported = "input.schema_unsupported",
        fix "Leave the keyword out of the schema, or these rows out of the data set.",
    /// It is not known why the generation of the response ended, and the component needs that.
    MissingFinishReason = "input.missing_finish_reason",
        fix "Give `finish_reason` or `truncated` with the rollouts.",
    /// No route of the recipe fits the rollout, and it names no default.
    NoRoute = "input.no_route",
        fix "Add a case to `route.cases`, or a `route.default`.",
    /// A text of the rollout is not valid Unicode.
    NotUnicode = "input.utf8",
        fix "Decode the texts as UTF-8 before they are handed over.",
    /// The response is a conversation that cannot be read.
    BadResponse = "input.response",
        fix "Hand the response over as text, or as chat messages that end with the assistant's.",
    /// A gate of the recipe was closed, so the component was not asked.
    GateClosed = "gate.closed",
        fix "Nothing: the recipe wants it so. Where it is too common, lower `gate.min`.",
    /// A component before this one in `first_of` says right, so this one was not asked.
    Settled = "first_of.settled",
        fix "Nothing: the recipe wants it so.",
    /// The group is too small for a reward that compares its members.
    GroupTooSmall = "group.too_small",
        fix "Generate at least two responses for each prompt, and give them one `group`.",
    /// The group is too large for the way its comparisons become numbers.
    GroupTooLarge = "group.too_large",
        fix "Make groups smaller, or choose an `aggregate` that takes them: `bradley_terry` takes 1024, `winrate` any number.",
    /// The rollouts of the group answer different prompts, so they cannot be compared.
    GroupMixed = "group.mixed",
        fix "Give each prompt a `group` of its own.",
    /// The rollout arrived after its group had been scored.
    GroupSplit = "group.split",
        fix "Raise `groups.timeout` so that siblings are waited for; in files, sort by group or raise `--hold`.",
    /// The group's deadline passed before the component was asked.
    GroupDeadline = "group.deadline",
        fix "Raise `groups.timeout`, or make what is slow faster: `explain` tells which component was asked last.",
    /// Members of the group never arrived, and the recipe scores no partial groups.
    GroupIncomplete = "group.incomplete",
        fix "Raise `groups.timeout`, or set `groups.partial: score`.",
    /// A member of the same name arrived before, with another response.
    GroupDuplicate = "group.duplicate",
        fix "Give each rollout of a group a name of its own.",
    /// The rollout left its group before that was scored.
    GroupLeft = "group.left",
        fix "Nothing: its caller cancelled it.",
    /// The join was closed before the group was complete.
    GroupClosed = "group.closed",
        fix "Nothing, at the end of a run. Else: does something close the join before all members are in?",
    /// The name of the judge's host could not be resolved.
    JudgeDns = "judge.dns",
        fix "Check the host in `base_url` with `plaudit doctor --recipe RECIPE`. Must the network be reached by a proxy?",
    /// No connection to the judge could be made.
    JudgeConnect = "judge.connect",
        fix "Does the server run, and is the port in `base_url` right? Does a firewall stand between?",
    /// The proxy to the judge cannot be reached, or refuses.
    JudgeProxy = "judge.proxy",
        fix "Look at HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, and the judge's `proxy`: `plaudit doctor` tells which one is used.",
    /// The judge's certificate or its TLS is not to be trusted.
    JudgeTls = "judge.tls",
        fix "A certificate of your own authority: `SSL_CERT_FILE=authority.pem`. A server without TLS: `http://` in `base_url`.",
    /// The judge did not answer within the time of one attempt.
    JudgeTimeout = "judge.timeout",
        fix "Raise `timeout`, or lower `concurrency` so that the server keeps up; long thoughts take long: turn thinking off.",
    /// The judge began to answer, but did not finish within the time of one attempt.
    JudgeSlowBody = "judge.slow_body",
        fix "Raise `timeout`, or lower `concurrency` so that the server keeps up.",
    /// The connection to the judge broke before its answer was whole.
    JudgeReset = "judge.reset",
        fix "Look into the server's log: it crashed, was restarted, or a proxy between closes connections early.",
    /// What the judge sent is not HTTP, or contradicts itself.
    JudgeProtocol = "judge.protocol",
        fix "Is that address an HTTP server with OpenAI's API? Try it with curl.",
    /// The judge refuses the key, or has none.
    JudgeAuth = "judge.auth",
        fix "Name a variable in the judge's `api_key_env`, and set it to a key that is valid for this address.",
    /// The account at the judge is used up.
    JudgeQuota = "judge.quota",
        fix "Top the account up, or use another key.",
    /// The judge asks to wait for longer than the deadline allows.
    JudgeRateLimited = "judge.rate_limited",
        fix "Lower `concurrency`, set `calls_per_minute` and `tokens_per_minute` to what the account allows, or raise `groups.timeout`.",
    /// The judge refuses the request as wrong.
    JudgeClientError = "judge.client_error",
        fix "The message has the server's own words. 404: is the `model` right, and does `base_url` end in `/v1`? Unknown parameter: set it to null, or name it in `extra`.",
    /// The request is longer than the judge's context.
    JudgeContextLength = "judge.context_length",
        fix "Lower `longest` (characters of a response that are shown), or `line_up`; or serve the model with a longer context.",
    /// The judge failed with a server error.
    JudgeServerError = "judge.server_error",
        fix "Look into the server's log; too much at once is the usual cause: lower `concurrency`.",
    /// The judge answers with a redirect, which is not followed.
    JudgeRedirect = "judge.redirect",
        fix "Set `base_url` to where it leads: the address itself, with `https://` where it wants that.",
    /// The judge's answer is larger than any verdict can be.
    JudgeTooLarge = "judge.too_large",
        fix "Is that address a judge? Lower `max_tokens`, and ask for no further output in `extra`.",
    /// The judge's answer is not JSON.
    JudgeJson = "judge.json",
        fix "Is that address a judge, and not a login page or a proxy's error? Try it with curl.",
    /// The judge's answer does not have the shape that was asked for.
    JudgeSchema = "judge.schema",
        fix "Try another form: `answer_format: json` where the server holds replies to a schema, else `answer_format: tag`. `plaudit explain ID --full` shows the reply.",
    /// The judge's answer is empty.
    JudgeEmpty = "judge.empty",
        fix "Thinking that fills `max_tokens` leaves no answer: raise it, or turn thinking off. Else try another `answer_format`.",
    /// The judge refused to answer.
    JudgeRefusal = "judge.refusal",
        fix "Look at what was asked with `plaudit explain ID --full`; say in `system` or the principles that texts are to be rated, or take another judge.",
    /// The judge's answer was cut off before its end.
    JudgeTruncated = "judge.truncated",
        fix "Raise `max_tokens`, or turn thinking off: `extra: { chat_template_kwargs: { enable_thinking: false } }`.",
    /// A filter at the judge held its answer back.
    JudgeContentFilter = "judge.content_filter",
        fix "Take the filter off at the provider, or take a judge without one for such prompts.",
    /// The judge's answer ended for a reason that is not a normal end.
    JudgeUnfinished = "judge.unfinished",
        fix "`plaudit explain ID --full` shows the reply. Is the server stopped or overloaded while it answers?",
    /// The judge's answer holds more than one verdict.
    JudgeAmbiguous = "judge.ambiguous",
        fix "Try `answer_format: logprobs` or `answer_format: json`; in a prompt of your own, ask for the answer once.",
    /// The judge's JSON names a key twice.
    JudgeDuplicateKey = "judge.duplicate_key",
        fix "Try another `answer_format`; in a prompt of your own, ask for each field once.",
    /// The judge's score is outside the range that was asked for.
    JudgeRange = "judge.range",
        fix "Say the range in the prompt as in `answer`; for a reward model, `min` and `max`, or `sigmoid: true`.",
    /// The judge's score is not a finite number.
    JudgeNotFinite = "judge.not_finite",
        fix "Look at the model with `plaudit doctor`: weights that did not load give such numbers.",
    /// The judge ranked another number of responses than it was shown.
    JudgeArity = "judge.arity",
        fix "Show fewer at once: `line_up: 4`. A reward model must have one label.",
    /// The judge's ranking names a response twice, or one that it was not shown.
    JudgePermutation = "judge.permutation",
        fix "Show fewer at once: `line_up: 4`; or `mode: pairwise`.",
    /// The judge's answer names another sample than it was asked about.
    JudgeWrongSample = "judge.wrong_sample",
        fix "Ask the judge in the prompt to repeat `{{ id }}` in the field that `echo` names.",
    /// The judge's answer has no usable probabilities of the verdict.
    JudgeNoLogprobs = "judge.no_logprobs",
        fix "Set `answer_format: json`: the server sends no probabilities, or the model does not answer with one letter.",
    /// The judge has failed too often just now to be asked again.
    JudgeBreakerOpen = "judge.breaker_open",
        fix "Look at the failures before it. When the server is up again, run again: what was answered is not paid twice.",
    /// The budget of calls or cost for the judge is spent.
    JudgeBudget = "judge.budget",
        fix "Raise `budget`, or wait for the next day where it is `per: day`.",
    /// The group's deadline passed before the judge had answered.
    JudgeDeadline = "judge.deadline",
        fix "Raise `groups.timeout`, or ask less: a `budget` of calls for the group, `design: adaptive`.",
    /// The journal holds no answer to this, and no judge may be asked.
    JudgeNotRecorded = "judge.not_recorded",
        fix "Run `plaudit score` with the same `--state` to ask it.",
    /// No comparison of the response with another one succeeded.
    JudgeNoVerdicts = "judge.no_verdicts",
        fix "Look at the failures of its calls: `plaudit explain ID --full`.",
    /// The judge says of every item of a rubric that it does not apply.
    JudgeNothingApplies = "judge.nothing_applies",
        fix "Give the rubric an item that always applies, or say `applies: always`.",
    /// The sandbox failed, so nothing is known of the program.
    SandboxFailed = "sandbox.failed",
        fix "`plaudit doctor --all` tells what isolates programs here. Are memory and processes of the machine used up?",
    /// The journal holds no run of this program, and none may be started.
    SandboxNotRecorded = "sandbox.not_recorded",
        fix "Run `plaudit score` with the same `--state` to run it.",
    /// The journal cannot be written, so nothing more is bought.
    JournalFull = "engine.journal_full",
        fix "Make room on the disk of `--state`, and run again: what was answered is not paid twice.",
    /// The journal that is shared with other machines cannot be reached, so nothing more is bought.
    JournalLost = "engine.journal_lost",
        fix "Start the Redis of `--state`, and run again: what was answered is not paid twice.",
    /// What the shared journal holds for this question is damaged or not plaudit's own.
    JournalDamaged = "engine.journal_damaged",
        fix "Delete the key in Redis, or use another database for the state.",
    /// The run was stopped before the judge was asked.
    Stopped = "engine.stopped",
        fix "Run again with the same `--state`: what was answered is not paid twice.",
    /// Too many rollouts wait for their groups; hand it in again later.
    Overloaded = "engine.overloaded",
        fix "Hand it in again later, or raise the limits of the service.",
    /// The weights of the components that apply add up to zero, so their mean does not exist.
    ZeroWeight = "engine.zero_weight",
        fix "Give a weight to a component that applies to every rollout, or use `combine: sum`.",
    /// The recipe's own prompt cannot be filled in for this rollout.
    TemplateFailed = "recipe.template_failed",
        fix "The message names the variable: give every row that field, or test for it in the template: `{% if extra.x is defined %}`.",
    /// The tokenizer file that the recipe names cannot cut the reference.
    TokenizerFailed = "recipe.tokenizer_failed",
        fix "Name another tokenizer file.",
    /// A reward that the caller brought failed, says so of the rollout, or gave back something that is no score.
    RewardFailed = "reward.failed",
        fix "The log has the traceback. Return one finite number, None or a `plaudit.Score` for each rollout.",
    /// A reward that the caller brought says that the response broke one of its limits.
    RewardFloored = "reward.floored",
        fix "Nothing: the reward wants it so. Where it is common, look at such responses with `plaudit explain`.",
    /// A reward that the caller brought says that it does not apply.
    RewardAbstained = "reward.abstained",
        fix "Nothing: the function returned None for it.",
    /// A rule returned something that is not a finite number.
    NotFinite = "engine.not_finite",
        fix "Please report it, with the recipe and the rollout.",
    /// A rule failed in a way that it must not; please report it.
    Panic = "engine.panic",
        fix "Please report it, with the recipe and the rollout.",
}

impl Code {
    /// The code of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == name)
    }

    /// Whether the next rollouts may be scored although nobody changes the data, the recipe, a judge's settings or a function.
    /// A judge that is down comes back; a column that is missing does not appear.
    pub const fn can_heal(self) -> bool {
        !matches!(
            self,
            Self::MissingReference
                | Self::EmptyReference
                | Self::ReferenceUnparsable
                | Self::ReferenceTooLong
                | Self::MissingTokens
                | Self::MissingExtra
                | Self::MissingTests
                | Self::BadTests
                | Self::BadOptions
                | Self::MissingSchema
                | Self::MissingRubric
                | Self::BadSchema
                | Self::MissingInstructions
                | Self::BadInstructions
                | Self::BadLanguage
                | Self::MissingTools
                | Self::SchemaUnsupported
                | Self::MissingFinishReason
                | Self::NoRoute
                | Self::BadResponse
                | Self::GroupTooSmall
                | Self::GroupTooLarge
                | Self::GroupMixed
                | Self::JudgeTls
                | Self::JudgeAuth
                | Self::JudgeClientError
                | Self::JudgeRedirect
                | Self::ZeroWeight
                | Self::TemplateFailed
                | Self::TokenizerFailed
                | Self::RewardFailed
        )
    }
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
    fn every_code_says_what_to_do() {
        for code in Code::ALL {
            let remedy = code.remedy();
            assert!(remedy.ends_with(['.', '?']) && remedy.len() <= 200, "{code}: {remedy}");
            assert_eq!(remedy.matches('`').count() % 2, 0, "{code}: {remedy}");
        }
        assert!(Code::JudgeNoLogprobs.remedy().contains("answer_format: json"));
        assert!(Code::JudgeTruncated.remedy().contains("max_tokens"));
    }

    #[test]
    fn codes_are_dotted_and_distinct() {
        let mut seen = Vec::new();
        for code in Code::ALL {
            let (owner, what) = code.as_str().split_once('.').expect("a dot");
            assert!(!owner.is_empty() && !what.is_empty());
            assert!(!seen.contains(&code.as_str()));
            seen.push(code.as_str());
            assert_eq!(Code::parse(code.as_str()), Some(*code));
        }
        assert_eq!(Code::parse("judge.sleepy"), None);
    }

    #[test]
    fn what_is_missing_does_not_heal() {
        for code in Code::ALL {
            let (owner, what) = code.as_str().split_once('.').expect("a dot");
            if owner == "recipe" || what.starts_with("missing_") {
                assert!(!code.can_heal(), "{code}");
            }
            if ["model", "math", "format", "sandbox"].contains(&owner) {
                assert!(code.can_heal(), "{code}");
            }
        }
        assert!(!Code::RewardFailed.can_heal() && Code::RewardAbstained.can_heal());
        assert!(!Code::JudgeAuth.can_heal() && Code::JudgeConnect.can_heal());
    }
}
