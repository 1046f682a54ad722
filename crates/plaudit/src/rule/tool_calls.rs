//! `tool_calls`: the tool calls of a conversation against the expected ones.

use super::arguments::{ArgumentComparer, ArgumentParams, ExpectedArguments};
use super::assignment::{Pair, PairWeights};
use super::expected_calls::{ExpectedCalls, from_the_first};
use super::tool_names::DottedNames;
use super::tool_schema::defaults_of;
use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::conversation::{Arguments, Role, ToolCall, Turn};
use crate::outcome::{Fact, Info, Outcome};
use crate::reason::{Code, Reason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// How far the tool calls of a conversation are the expected ones, from 0 to 1.
///
/// ## What it scores
/// The expected calls stand in the field of `extra` that `expected_field` names, else in the reference, else in `expected_tool_calls`,
/// `ground_truth`, `expected_answers`, `answers` or `possible_answer`: as a value or its JSON, a list of
/// calls in any of OpenAI's forms (`name` and `arguments`, also inside `function`; the arguments are an object or its
/// text, and may be called `parameters`, `args`, `input` or `kwargs`), a list of messages with calls in them, NeMo-Gym's `expected_action`,
/// calls with allowed values, or a text: calls between `<tool_call>` tags, one after another, or as Python writes them,
/// `[f(city="Oslo", days=3)]`. A rollout with none of
/// these is skipped; one whose expectation cannot be read is invalid with `input.reference_unparsable`. An empty list says that no
/// call is expected.
///
/// Calls with allowed values are those of the Berkeley Function-Calling Leaderboard, `[{"f": {"city": ["Oslo", "Oslo, Norway"], "days": [3, ""]}}]`:
/// each argument has a list of values, any of which is right. An empty text in the list, or an empty list, says that the argument may be left
/// out; one that is not listed must not be given. Texts are the same whatever their capitals, spaces, kind of quotation marks and
/// `,./-_*^`, but for texts that are numbers; the keys of an object have lists of their own.
///
/// Each expected call is paired with at most one call of the same name, so that the pairs fit best as a whole. How well a
/// pair fits, `arguments` says: 1 or 0, or with `graded` the share of right keys. Values are compared as JSON: 1 and 1.0
/// are equal, 1 and true or "1" are not, and neither are a key with null and one that is missing; lists keep their order.
/// Arguments that are no object of JSON fit nothing. Where the tools of the rollout are declared with a `default` for an argument, giving that
/// value and leaving the argument out are the same. A name with dots may be called with underscores in their place, where no other
/// expected or declared tool has that name.
///
/// `mode` says which calls there may be. With e expected calls, m made ones and w the sum over the pairs, `score` is
///
/// - `all`: 1 where every pair fits by 1 and nothing is left over that the mode forbids, else 0;
/// - `fraction`: w divided by the larger of e and m; by m with `subset`, by e with `superset`, by the smaller one with `overlap`;
/// - `f1`: 2w / (e + m).
///
/// With `count_gate` a response with fewer or more calls than the mode allows gets 0 in all three.
///
/// A response that is plain text makes no call. More than 128 expected calls are invalid; a response with so many calls
/// that may be meant that the pairing would take long gets the floor, 0, with `model.too_complex`.
///
/// ## When to use it
/// For data sets of function calls, and for agents whose right steps are known. `ordered` and `fraction` together give
/// part of the credit for the longest right sequence. Set `arguments: graded` while a model learns the arguments, and
/// `overrides` for free text, such as a query, that no one writes twice the same way.
///
/// ## How it can be gamed
/// `subset` is 1 for a model that calls nothing, and `overlap` for one that makes a single right call. `superset`, and `overlap`
/// with `fraction`, make further calls free: a policy may try everything. `f1` charges both. `ignore` rewards a name
/// alone. With `graded` a call with common values in all keys earns something everywhere. Only calls that the trainer's
/// parser found count; what a tool or a user wrote never does.
///
/// ## Example
/// ```yaml
/// calls: { reward: tool_calls, weight: 1.0, mode: unordered, score: f1, overrides: { search: [query.lang] } }
/// ```
///
/// ## References
/// agentevals, trajectory match; NeMo-Gym `single_step_tool_use_with_argument_comparison` and `xlam_fc`, with
/// `count_gate`; Berkeley Function-Calling Leaderboard, `ast_checker`; Kuhn, The Hungarian method for the assignment problem (1955).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolCalls {
    /// Which calls there may be, and in which order.
    pub mode: CallMode,
    /// How the pairs become a number.
    pub score: CallScore,
    /// Whether fewer or more calls than the mode allows give 0, also with `fraction` and `f1`.
    pub count_gate: bool,
    /// The field of `extra` that holds the expected calls; where it is absent, the reference does, or one of the usual fields.
    pub expected_field: String,
    /// How arguments are compared.
    #[serde(flatten)]
    pub compare: ArgumentParams,
}

/// Which calls there may be, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CallMode {
    /// The expected ones, turn by turn where messages are expected (calls of one turn in any order; as many turns, of the
    /// same roles, from the model's first turn on; messages with a prompt are those of a rollout with one), else place by
    /// place.
    Strict,
    /// The expected ones in their order, whatever the turns.
    Ordered,
    /// The expected ones in any order.
    Unordered,
    /// Some of the expected ones, and no others.
    Subset,
    /// All of the expected ones, and perhaps others.
    Superset,
    /// Some of the expected ones, and perhaps others.
    Overlap,
}

/// How pairs of calls become a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CallScore {
    /// 1 or 0.
    All,
    /// The share of right calls.
    Fraction,
    /// The harmonic mean of the shares of right calls among the expected and among the made ones.
    F1,
}

impl Default for ToolCalls {
    fn default() -> Self {
        Self {
            mode: CallMode::Unordered,
            score: CallScore::All,
            count_gate: false,
            expected_field: "expected_calls".to_owned(),
            compare: ArgumentParams::default(),
        }
    }
}

impl Reward<Rule> for ToolCalls {
    const NAME: &'static str = "tool_calls";
    const NEEDS_REFERENCE: bool = true;
    const CORRECTNESS: bool = true;
    const FACTS: &'static [&'static str] = &["calls", "matched"];

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        self.compare.check()?;
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| self.score(sample)))
    }
}

/// How many steps the pairing of one response may take: a few milliseconds.
const MAX_STEPS: usize = 1 << 23;

/// The pairs of calls, and whether the turns around them are the expected ones.
struct Paired {
    pairs: Vec<Pair>,
    same_turns: bool,
}

impl ToolCalls {
    fn score(&self, sample: &RuleInput<'_>) -> Result<Outcome, Outcome> {
        let expected = ExpectedCalls::of(sample, &self.expected_field)?;
        let turns = sample.text.conversation().map_or(&[][..], |conversation| &conversation.turns);
        let declared = Declared::of(sample, &expected);
        let made: Vec<Cow<'_, ToolCall>> = calls_of(turns).map(|call| declared.shortened(call)).collect();
        let wanted: Vec<Cow<'_, ToolCall>> = match expected.arguments() {
            ExpectedArguments::Values => expected.calls().map(|call| declared.shortened(call)).collect(),
            ExpectedArguments::Allowed => expected.calls().map(Cow::Borrowed).collect(),
        };
        let made: Vec<&ToolCall> = made.iter().map(|call| &**call).collect();
        let wanted: Vec<&ToolCall> = wanted.iter().map(|call| &**call).collect();
        let comparer = ArgumentComparer::new(&self.compare, expected.arguments());
        let mut matcher = CallMatcher { comparer, names: &declared.names, steps: 0 };
        let paired = match (self.mode, &expected) {
            (CallMode::Strict, ExpectedCalls::Turns { turns: expected, prompted }) => {
                let own = from_the_first(turns);
                let asked = sample.prompt.is_some() || own.len() < turns.len();
                // Where it is not known what the model was asked, reference messages must not say it either.
                matcher
                    .by_turn(expected, own)
                    .map(|paired| Paired { same_turns: paired.same_turns && (asked || !prompted), ..paired })
            }
            (CallMode::Strict, ExpectedCalls::List(..)) => matcher.by_place(&wanted, &made),
            (mode, _) => matcher.in_all(&wanted, &made, mode == CallMode::Ordered),
        };
        let Some(paired) = paired.filter(|_| !matcher.comparer.is_exhausted()) else {
            let message = "The response makes more calls than can be compared with the expected ones.";
            return Err(Outcome::floored(0.0, Reason::new(Code::ModelTooComplex, message)));
        };
        let broken = made.iter().filter(|call| matches!(call.arguments, Arguments::Broken(_))).count();
        let count = |number: usize| Fact::Count(number as u64);
        let info = Info::of([
            ("expected", count(wanted.len())),
            ("calls", count(made.len())),
            ("matched", Fact::Number(paired.pairs.iter().map(|(_, _, weight)| weight).sum())),
            ("broken_arguments", count(broken)),
        ]);
        Ok(Outcome::scored(self.value(wanted.len(), made.len(), &paired), info))
    }

    fn value(&self, expected: usize, made: usize, paired: &Paired) -> f64 {
        let (fewer, more) = match self.mode {
            CallMode::Strict | CallMode::Ordered | CallMode::Unordered => (false, false),
            CallMode::Subset => (true, false),
            CallMode::Superset => (false, true),
            CallMode::Overlap => (true, true),
        };
        let allowed = (fewer || made >= expected) && (more || made <= expected);
        if self.count_gate && !allowed {
            return 0.0;
        }
        // How many pairs there can be at best, of those that count.
        let full = match (fewer, more) {
            (false, false) => expected.max(made),
            (true, false) => made,
            (false, true) => expected,
            (true, true) => expected.min(made),
        };
        let sum: f64 = paired.pairs.iter().map(|(_, _, weight)| weight).sum();
        let share = |whole: f64, parts: usize| match parts {
            // Where nothing is expected and nothing made, nothing is wrong; else one side is missing.
            0 => f64::from(u8::from(expected == made || (!fewer && more))),
            parts => whole / parts as f64,
        };
        match self.score {
            CallScore::Fraction => share(sum, full),
            CallScore::F1 if expected + made == 0 => 1.0,
            CallScore::F1 => 2.0 * sum / (expected + made) as f64,
            CallScore::All => {
                let perfect = paired.pairs.iter().filter(|(_, _, weight)| *weight == 1.0).count();
                let nothing = full == 0 && expected.max(made) > 0 && self.mode == CallMode::Overlap;
                f64::from(u8::from(paired.same_turns && perfect == full && !nothing))
            }
        }
    }
}

/// What the declarations of the tools say about calls.
struct Declared<'d> {
    names: DottedNames<'d>,
    /// By the name of a tool, the values that arguments have where they are left out.
    defaults: BTreeMap<&'d str, Map<String, Value>>,
    /// The arguments whose values the expected calls list, which say themselves what may be left out.
    listed: BTreeSet<&'d str>,
}

impl<'d> Declared<'d> {
    fn of(sample: &RuleInput<'d>, expected: &'d ExpectedCalls) -> Self {
        let tools = sample.tools.unwrap_or(&[]);
        let declared = tools.iter().map(|tool| tool.name.as_str());
        let names: Vec<&str> = expected.calls().map(|call| call.name.as_str()).chain(declared).collect();
        let defaults = tools.iter().filter_map(|tool| {
            let defaults = defaults_of(tool.parameters.as_ref()?);
            (!defaults.is_empty()).then_some((tool.name.as_str(), defaults))
        });
        let listed = expected.calls().filter(|_| expected.arguments() == ExpectedArguments::Allowed);
        let keys = |call: &'d ToolCall| match &call.arguments {
            Arguments::Object(map) => Some(map.keys().map(String::as_str)),
            Arguments::Broken(_) => None,
        };
        let names = DottedNames::of(names.into_iter());
        Self { names, defaults: defaults.collect(), listed: listed.filter_map(keys).flatten().collect() }
    }

    /// A call without the arguments that have the values which they have when they are left out.
    fn shortened<'c>(&self, call: &'c ToolCall) -> Cow<'c, ToolCall> {
        let Arguments::Object(map) = &call.arguments else { return Cow::Borrowed(call) };
        let Some(defaults) = self.defaults.get(self.names.meant(&call.name)) else {
            return Cow::Borrowed(call);
        };
        let says_nothing =
            |key: &str, value: &Value| defaults.get(key) == Some(value) && !self.listed.contains(key);
        if !map.iter().any(|(key, value)| says_nothing(key, value)) {
            return Cow::Borrowed(call);
        }
        let kept = map.iter().filter(|(key, value)| !says_nothing(key, value));
        let arguments = Arguments::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect());
        Cow::Owned(ToolCall { name: call.name.clone(), arguments })
    }
}

fn calls_of(turns: &[Turn]) -> impl Iterator<Item = &ToolCall> {
    turns.iter().filter(|turn| turn.role == Role::Assistant).flat_map(|turn| &turn.calls)
}

/// Pairs calls, within limits.
struct CallMatcher<'p> {
    comparer: ArgumentComparer<'p>,
    names: &'p DottedNames<'p>,
    /// How many steps the pairings so far have taken at most.
    steps: usize,
}

impl CallMatcher<'_> {
    /// The best pairs in any order, or in the order of both sides. None where it would take too long.
    fn in_all(&mut self, expected: &[&ToolCall], made: &[&ToolCall], ordered: bool) -> Option<Paired> {
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (row, call) in expected.iter().enumerate() {
            by_name.entry(&call.name).or_default().push(row);
        }
        // Calls that fit nothing are left out, so that they take no time.
        let (mut weights, mut places) = (PairWeights::new(expected.len()), Vec::new());
        for (place, call) in made.iter().enumerate() {
            let Some(rows) = by_name.get(self.names.meant(&call.name)) else { continue };
            let mut column = vec![0.0; expected.len()];
            rows.iter().for_each(|row| column[*row] = self.comparer.weight(expected[*row], call));
            if column.iter().any(|weight| *weight > 0.0) {
                weights.push(column);
                places.push(place);
            }
            let (short, long) = (expected.len().min(places.len()), expected.len().max(places.len()));
            if self.comparer.is_exhausted() || self.steps + short * short * long > MAX_STEPS {
                return None;
            }
        }
        let (short, long) = (expected.len().min(places.len()), expected.len().max(places.len()));
        self.steps += short * short * long;
        let pairs = if ordered { weights.align() } else { weights.assign() };
        let pairs = pairs.into_iter().map(|(row, column, weight)| (row, places[column], weight)).collect();
        Some(Paired { pairs, same_turns: true })
    }

    /// The pairs of calls at the same place.
    fn by_place(&mut self, expected: &[&ToolCall], made: &[&ToolCall]) -> Option<Paired> {
        let pairs = expected.iter().zip(made).enumerate().map(|(place, (expected, made))| {
            let same = expected.name == self.names.meant(&made.name);
            (place, place, if same { self.comparer.weight(expected, made) } else { 0.0 })
        });
        Some(Paired { pairs: pairs.filter(|(_, _, weight)| *weight > 0.0).collect(), same_turns: true })
    }

    /// The best pairs within turns at the same place, both of the model.
    fn by_turn(&mut self, expected: &[Turn], made: &[Turn]) -> Option<Paired> {
        let roles = |turns: &[Turn]| turns.iter().map(|turn| turn.role).collect::<Vec<_>>();
        let (mut pairs, mut same_turns) = (Vec::new(), roles(expected) == roles(made));
        for (expected, made) in expected.iter().zip(made) {
            if expected.role == Role::Assistant && made.role == Role::Assistant {
                let wanted: Vec<&ToolCall> = expected.calls.iter().collect();
                let given: Vec<&ToolCall> = made.calls.iter().collect();
                same_turns &= wanted.len() == given.len();
                pairs.extend(self.in_all(&wanted, &given, false)?.pairs);
            }
        }
        Some(Paired { pairs, same_turns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::Prompt;
    use crate::rule::test_util::{TestRollout, one, rejected};
    use serde_json::json;

    fn call(name: &str, arguments: Value) -> Value {
        json!({"name": name, "arguments": arguments})
    }

    fn score(parameters: Value, expected: Value, made: &[Value]) -> Outcome {
        let extra = serde_json::Map::from_iter([("expected_calls".to_owned(), expected)]);
        let turns = json!([{"role": "assistant", "content": "", "tool_calls": made}]);
        one::<ToolCalls>(parameters, TestRollout { extra, turns: Some(turns), ..TestRollout::default() })
    }

    fn value(parameters: Value, expected: Value, made: &[Value]) -> f64 {
        score(parameters, expected, made).value().expect("a value")
    }

    #[test]
    fn scores_count_what_is_missing_and_what_is_more() {
        let [a, b, c] = ["a", "b", "c"].map(|name| call(name, json!({})));
        let with = |score: &str, mode: &str, made: &[Value]| {
            value(json!({"score": score, "mode": mode}), json!([a, b]), made)
        };
        let (some, more) = ([a.clone()], [b.clone(), c.clone(), a.clone()]);
        for (mode, some_all, more_all, some_share, more_share) in [
            ("unordered", 0.0, 0.0, 0.5, 2.0 / 3.0),
            ("ordered", 0.0, 0.0, 0.5, 1.0 / 3.0),
            ("strict", 0.0, 0.0, 0.5, 0.0),
            ("subset", 1.0, 0.0, 1.0, 2.0 / 3.0),
            ("superset", 0.0, 1.0, 0.5, 1.0),
            ("overlap", 1.0, 1.0, 1.0, 1.0),
        ] {
            assert_eq!(with("all", mode, &some), some_all, "{mode}");
            assert_eq!(with("all", mode, &more), more_all, "{mode}");
            assert_eq!(with("fraction", mode, &some), some_share, "{mode}");
            assert_eq!(with("fraction", mode, &more), more_share, "{mode}");
            let same = [a.clone(), b.clone()];
            assert_eq!((with("all", mode, &same), with("f1", mode, &same)), (1.0, 1.0), "{mode}");
        }
        assert_eq!(with("f1", "unordered", &some), 2.0 / 3.0);
        assert_eq!(value(json!({"score": "f1", "count_gate": true}), json!([a, b]), &some), 0.0);
    }

    #[test]
    fn absence_is_no_proof() {
        let made = [call("a", json!({}))];
        let turns = json!([{"role": "assistant", "tool_calls": made}]);
        let nothing = TestRollout { turns: Some(turns.clone()), ..TestRollout::default() };
        assert_eq!(one::<ToolCalls>(json!({}), nothing).reason().unwrap().code, Code::MissingReference);
        for (mode, none_made, made_all) in [
            ("strict", 1.0, 0.0),
            ("unordered", 1.0, 0.0),
            ("subset", 1.0, 0.0),
            ("superset", 1.0, 1.0),
            ("overlap", 1.0, 0.0),
        ] {
            for score in ["all", "fraction"] {
                let parameters = json!({"mode": mode, "score": score});
                assert_eq!(value(parameters.clone(), json!([]), &[]), none_made, "{mode}");
                assert_eq!(value(parameters, json!([]), &made), made_all, "{mode}");
            }
        }
        let plain = TestRollout { response: "a()", reference: Some("[]"), ..TestRollout::default() };
        assert_eq!(one::<ToolCalls>(json!({}), plain).value(), Some(1.0));
    }

    #[test]
    fn what_cannot_be_read_is_told_apart() {
        let unread = |reference: &str| {
            let rollout = TestRollout { reference: Some(reference), ..TestRollout::default() };
            one::<ToolCalls>(json!({}), rollout)
        };
        for bad in ["42", "[{\"name\": \"a\", \"arguments\": \"{bad\"}]", "{", "[[]]"] {
            assert_eq!(unread(bad).reason().unwrap().code, Code::ReferenceUnparsable, "{bad}");
        }
        assert_eq!(unread(" ").reason().unwrap().code, Code::EmptyReference);
        // What the model broke is wrong, whatever the way of comparing.
        for arguments in ["exact", "graded", "ignore", "subset", "superset"] {
            let outcome = score(
                json!({"arguments": arguments}),
                json!([call("a", json!({}))]),
                &[call("a", json!("{bad"))],
            );
            assert_eq!(outcome.value(), Some(0.0), "{arguments}");
            assert_eq!(outcome.info().unwrap().get("broken_arguments"), Some(&Fact::Count(1)));
        }
    }

    #[test]
    fn strict_goes_by_turns() {
        let turn = |calls: &[Value]| json!({"role": "assistant", "content": "", "tool_calls": calls});
        let tool = json!({"role": "tool", "content": "ok"});
        let [a, b] = ["a", "b"].map(|name| call(name, json!({})));
        let strict = |expected: Value, made: Value| {
            let rollout = TestRollout {
                reference: Some(&expected.to_string()),
                turns: Some(made),
                ..TestRollout::default()
            };
            one::<ToolCalls>(json!({"mode": "strict"}), rollout).value()
        };
        let two = json!([turn(std::slice::from_ref(&a)), tool, turn(std::slice::from_ref(&b))]);
        let one_turn = json!([turn(&[a.clone(), b.clone()]), tool]);
        assert_eq!(strict(two.clone(), two.clone()), Some(1.0));
        assert_eq!(strict(one_turn.clone(), json!([turn(&[b, a]), tool])), Some(1.0));
        assert_eq!(strict(two.clone(), one_turn), Some(0.0));
        let prompt = json!({"role": "user", "content": "hi"});
        let prompted = json!([prompt, two[0], two[1], two[2]]);
        assert_eq!(strict(prompted.clone(), two.clone()), Some(0.0));
        let rollout = TestRollout {
            prompt: Some(Prompt::Text("hi".into())),
            reference: Some(&prompted.to_string()),
            turns: Some(two.clone()),
            ..TestRollout::default()
        };
        assert_eq!(one::<ToolCalls>(json!({"mode": "strict"}), rollout).value(), Some(1.0));
        assert_eq!(strict(two.clone(), json!([two[0], two[1], two[2], two[2]])), Some(0.0));
    }

    #[test]
    fn graded_pairs_are_the_best_as_a_whole() {
        let parameters = json!({"arguments": "graded", "score": "fraction"});
        let expected = json!([call("f", json!({"a": 1, "b": 2})), call("f", json!({"a": 1, "b": 3}))]);
        let made = [call("f", json!({"a": 1, "b": 3})), call("f", json!({"a": 1, "b": 4}))];
        assert_eq!(value(parameters, expected, &made), 0.75);
    }

    #[test]
    fn limits_are_the_models() {
        let expected: Vec<Value> = (0..128).map(|at| call("f", json!({"a": at}))).collect();
        let made = vec![call("f", json!({"a": 0})); 5000];
        let parameters = json!({"arguments": "ignore"});
        let outcome = score(parameters.clone(), json!(expected), &made);
        assert_eq!(outcome, Outcome::floored(0.0, outcome.reason().unwrap().clone()));
        assert_eq!(outcome.reason().unwrap().code, Code::ModelTooComplex);
        assert_eq!(value(parameters, json!(expected), &expected), 1.0);
        let many = json!(vec![call("f", json!({})); 129]);
        assert_eq!(score(json!({}), many, &[]).reason().unwrap().code, Code::ReferenceTooLong);
        assert_eq!(
            rejected::<ToolCalls>(json!({"overrides": {"f": []}, "tolerance": -1})),
            ["tolerance", "overrides"]
        );
    }
}
