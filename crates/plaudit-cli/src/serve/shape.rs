//! What do answers look like that are put together as they are sent? For `/openapi.json`; what has a type of its own is described
//! where that type is.

use super::alarms::Alarm;
use super::job::Written;
use super::kept::{About, Brief};
use super::score::ResultLine;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The runs, the newest first, without their components.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunList {
    pub(crate) runs: Vec<RunReply>,
}

/// A run as it is shown.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunReply {
    #[serde(flatten)]
    pub(crate) about: About,
    /// Whether it is at hand for rollouts that come.
    pub(crate) live: bool,
}

/// The jobs of a holder, the newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobList {
    jobs: Vec<JobReply>,
    /// Whether there are older ones.
    more: bool,
}

/// A job as it is shown.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobReply {
    #[serde(flatten)]
    written: Written,
    /// How many of its rollouts have been scored.
    scored: u64,
}

/// A line of the results of a job: of a rollout, or of one that could not be read.
pub(crate) fn job_line(generator: &mut SchemaGenerator) -> Schema {
    either::<ResultLine, UnreadLine>(generator)
}

fn either<One: JsonSchema, Other: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [generator.subschema_for::<One>(), generator.subschema_for::<Other>()] })
}

/// A rollout that could not be read.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UnreadLine {
    /// Its place in the request, from 0.
    index: usize,
    error: Mistake,
}

/// What was wrong.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Mistake {
    code: String,
    message: String,
}

/// Why a request is not answered.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RefusalReply {
    error: Mistake,
}

/// Some steps of a run, in their order.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StepList {
    steps: Vec<StepReply>,
}

/// A step. One that was opened again after it had been written is there twice, under the same number.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StepReply {
    step: u64,
    /// When its first and its last rollout came, in seconds since 1970.
    from: f64,
    to: f64,
    /// Whether more may come.
    open: bool,
    statistics: StatisticsReply,
    judges: Vec<AccountReply>,
    alarms: Vec<Alarm>,
}

/// The rollouts of a step as a whole.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StatisticsReply {
    rollouts: u64,
    outcomes: CountsReply,
    total: DistributionReply,
    /// By name, in the order of the recipe.
    components: BTreeMap<String, ComponentReply>,
    groups: GroupsReply,
    /// The lengths of the responses, in characters and in the model's tokens.
    characters: DistributionReply,
    tokens: DistributionReply,
    /// How totals move with length, over all rollouts and inside groups.
    length_correlation: Option<f64>,
    length_correlation_in_groups: Option<f64>,
    repetition: RepetitionReply,
}

/// Outcomes by kind, and their reasons by kind and code.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CountsReply {
    scored: u64,
    floored: u64,
    skipped: u64,
    invalid: u64,
    reasons: BTreeMap<String, BTreeMap<String, u64>>,
}

/// How values are spread. Of no values there is nothing but their count.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DistributionReply {
    count: u64,
    mean: Option<f64>,
    std: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    /// By name, from `p01` to `p99`.
    #[serde(skip_serializing_if = "Option::is_none")]
    quantiles: Option<BTreeMap<String, f64>>,
    histogram: Option<HistogramReply>,
}

/// How many values lie in each of several equal parts of a range.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HistogramReply {
    from: f64,
    to: f64,
    counts: Vec<u64>,
}

/// One component over all rollouts.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ComponentReply {
    outcomes: CountsReply,
    values: DistributionReply,
    length_correlation: Option<f64>,
    /// What the verdicts look like, where a judge was asked.
    judging: Option<JudgingReply>,
}

/// The verdicts of a component's judge.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JudgingReply {
    verdicts: u64,
    /// By code.
    failed: BTreeMap<String, u64>,
    /// How often what is shown first wins.
    first: Option<ShareReply>,
    ties: Option<ShareReply>,
    /// How often the verdict is the same when the two are swapped.
    swap_agreement: Option<ShareReply>,
    /// In how many groups a beats b, b beats c and c beats a.
    cycles: Option<ShareReply>,
    /// How much the verdicts tell apart, from 0 to 1.
    signal: Option<f64>,
    no_signal_groups: u64,
    /// Against the reference: a draw counts half in the first, and whole in the second.
    win_rate: Option<ShareReply>,
    win_and_rate: Option<ShareReply>,
    duplicates: Option<ShareReply>,
    /// Responses that try to talk to the judge.
    injections: u64,
}

/// A share, with the interval that it lies in with 95 % confidence.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ShareReply {
    share: f64,
    low: f64,
    high: f64,
    of: u64,
}

/// The groups of a step.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GroupsReply {
    count: u64,
    size: DistributionReply,
    /// The standard deviation of the totals in each.
    std: DistributionReply,
    /// How many have equal totals, and their share of those that could differ.
    zero_variance: u64,
    zero_variance_share: Option<f64>,
    /// How many have fewer than two totals.
    without_signal: u64,
    /// How many rollouts came after their group had been scored.
    split: u64,
}

/// How much responses repeat one another, and themselves.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RepetitionReply {
    duplicates: u64,
    rate: DistributionReply,
}

/// What was asked of a judge in a step.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AccountReply {
    judge: String,
    asked: u64,
    /// Answered from the journal.
    cached: u64,
    calls: u64,
    failed: u64,
    /// In seconds.
    latency: DistributionReply,
    tokens: TokensReply,
    /// Where prices are known.
    cost: Option<f64>,
}

/// The tokens that answers say they took.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TokensReply {
    prompt: u64,
    cached: u64,
    completion: u64,
}

/// The groups that can be looked at, the oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GroupList {
    pub(crate) groups: Vec<Brief>,
}

/// A group with its texts.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GroupReply {
    #[serde(flatten)]
    brief: Brief,
    /// A text, or chat messages.
    prompt: Value,
    reference: Option<String>,
    rollouts: Vec<MemberReply>,
    exchanges: Vec<ExchangeReply>,
}

/// A member of a group.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MemberReply {
    response: String,
    tokens: Option<u64>,
    result: ResultLine,
}

/// A question to a judge, and its answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExchangeReply {
    component: String,
    judge: String,
    /// The members that were shown, by their places; one that is null is the reference.
    shown: Vec<Option<usize>>,
    /// Under which names they were shown.
    labels: Vec<String>,
    form: String,
    attempts: u64,
    cached: bool,
    /// Its `kind` is `pair`, `score`, `ranking` or `failed`.
    verdict: Map<String, Value>,
    reply: Option<String>,
}

/// The rewards there are.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RewardList {
    rewards: Vec<RewardReply>,
}

/// A reward.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RewardReply {
    name: String,
    aliases: Vec<String>,
    summary: String,
    /// All that is said of it, in Markdown.
    page: String,
    needs_reference: bool,
    needs_judge: bool,
    needs_group: Option<bool>,
    range: Option<RangeReply>,
    floor: Option<f64>,
    /// The JSON schema of its parameters.
    schema: Map<String, Value>,
}

/// Between what its values lie; an end without limit is null.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RangeReply {
    min: Option<f64>,
    max: Option<f64>,
}

/// The recipes that can be named.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RecipeList {
    recipes: Vec<RecipeReply>,
}

/// A recipe.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RecipeReply {
    name: String,
    description: Option<String>,
    components: Vec<PartReply>,
    judges: Vec<String>,
    /// Whether it compares the rollouts of a group with each other.
    compares: bool,
}

/// A component of a recipe.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PartReply {
    name: String,
    reward: String,
    weight: f64,
}

/// What judges have been asked since the service began.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JudgeList {
    judges: Vec<TallyReply>,
}

/// What one judge has been asked.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TallyReply {
    judge: String,
    calls: u64,
    /// Answered from the journal, or by an equal question in flight.
    cached: u64,
    shared: u64,
    retries: u64,
    /// Sent because an earlier call was slow, and those that answered first.
    hedges: u64,
    hedges_won: u64,
    /// Calls without an answer that may have been paid for.
    maybe_paid: u64,
    /// Calls that failed and answers without a verdict, by code.
    failures: BTreeMap<String, u64>,
    unread: BTreeMap<String, u64>,
    /// In seconds.
    latency: DistributionReply,
    tokens: TokensReply,
    tokens_unknown: u64,
    /// Where prices are known.
    cost: Option<f64>,
    /// How many calls may be in flight now, and how many were at most.
    limit: usize,
    peak: usize,
    /// How often it failed so often that it was left alone.
    openings: u64,
}

/// What the service is doing.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StatusReply {
    pub(crate) version: &'static str,
    /// For how many seconds it has been up.
    pub(crate) up: f64,
    /// How many rollouts are being scored, and how many may be.
    pub(crate) rollouts: usize,
    pub(crate) limit: usize,
    /// How many runs are live.
    pub(crate) runs: usize,
    /// How many jobs there are, by how far they are.
    pub(crate) jobs: BTreeMap<&'static str, usize>,
    /// How many requests have not moved for long.
    pub(crate) stuck: usize,
    /// Whether it is about to end.
    pub(crate) draining: bool,
}

/// It is up.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UpReply {
    pub(crate) up: bool,
}

/// It can take work.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReadyReply {
    pub(crate) ready: bool,
    /// What the operator should see to, though work is taken.
    pub(crate) warnings: Vec<Warning>,
}

/// Something that is wrong.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Warning {
    pub(crate) code: &'static str,
    pub(crate) message: &'static str,
}

/// What OpenRLHF reads. Of one sample these are numbers, of several they are lists.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OpenRlhfReply {
    #[schemars(schema_with = "either::<f64, Vec<f64>>")]
    rewards: Value,
    #[schemars(schema_with = "either::<f64, Vec<f64>>")]
    scores: Value,
    extra_logs: Map<String, Value>,
}

/// What slime reads: the total, or with `key` an object of it and of every component.
pub(crate) fn slime(generator: &mut SchemaGenerator) -> Schema {
    either::<f64, BTreeMap<String, f64>>(generator)
}

/// What NeMo-Gym reads: everything that it sent, and the reward.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VerifyReply {
    reward: f64,
    /// What each component adds, where the reward is a sum.
    reward_components: Option<BTreeMap<String, f64>>,
    /// Where the reward is none, and `failure=class` was asked for.
    _ng_failure_class: Option<String>,
    _ng_failure_judge_error: Option<String>,
    mask_sample: Option<bool>,
    plaudit: VerifiedReply,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// What is known of the reward besides.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VerifiedReply {
    outcome: String,
    reason: Option<String>,
    components: BTreeMap<String, Option<f64>>,
    group_size: usize,
    partial: bool,
}

/// Figures over many rewards: of each task, of all, and those to look at first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AggregateReply {
    group_level_metrics: Vec<BTreeMap<String, f64>>,
    agent_metrics: BTreeMap<String, f64>,
    key_metrics: BTreeMap<String, f64>,
}
