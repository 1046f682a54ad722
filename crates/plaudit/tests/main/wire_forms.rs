//! Property test of wire forms: a trajectory scores byte for byte the same from chat messages, Responses items, TRL, verl and verifiers.

use plaudit::engine::Engine;
use plaudit::input::{Fields, read_line};
use plaudit::recipe::Recipe;
use plaudit::rollout::Rollout;
use plaudit::rule::RULES;
use serde_json::{Map, Value, json};

const TRAJECTORIES: usize = 1200;

/// One turn as it was said.
#[derive(Debug, Clone)]
enum TurnText {
    Model { text: String, thought: Option<String>, calls: Vec<(String, Value)> },
    Tool(String),
    User(String),
}

/// A stream of numbers that is the same in every run (Knuth's linear congruential generator).
struct TestRng(u64);

impl TestRng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }

    fn pick<'c, T: ?Sized>(&mut self, choices: &[&'c T]) -> &'c T {
        choices[self.below(choices.len())]
    }

    fn text(&mut self, most: usize) -> String {
        const PIECES: &[&str] = &[
            "It is 42.",
            "\n",
            "\n\n",
            " ",
            "中文，好",
            "<answer>42</answer>",
            "\\boxed{-3.5}",
            "> quoted 7\n",
            "{\"a\": 1}",
            "First, ",
            "a@b.com ",
            "🤔",
            "e\u{301}",
            "\u{3000}",
            "<b>",
            "</b>",
            "Step 1: ",
            "word ",
            "Word ",
            "1,234.5 ",
            "```\n",
            "\t",
            "&lt;",
            "\"",
            "\\",
            "\\n",
            "İ",
            "\u{a0}",
            "<tool",
            "\u{1f}",
            "\r\n",
            "<|im",
            "null",
            "<tool_response>old</tool_response>",
        ];
        (0..self.below(most + 1)).map(|_| self.pick(PIECES)).collect()
    }

    /// A text that nothing but the model may write, or that begins otherwise.
    fn plain(&mut self) -> String {
        format!("said: {}", self.text(5).replace("<tool_response>", "").replace("</tool_response>", ""))
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 6 } else { 8 }) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(self.below(2000) as i64 - 1000),
            3 => json!(self.below(1000) as f64 / 8.0),
            4 => json!(1_u64 << self.below(63)),
            5 => json!(self.text(3)),
            6 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => Value::Object(self.object(depth - 1)),
        }
    }

    fn object(&mut self, depth: usize) -> Map<String, Value> {
        const KEYS: &[&str] = &["city", "unit", "a b", "ключ", "", "z", "name", "arguments", "\"", "n.m"];
        (0..self.below(4)).map(|_| (self.pick(KEYS).to_owned(), self.value(depth))).collect()
    }

    fn model(&mut self, may_call: bool) -> TurnText {
        let calls = if may_call { self.below(4) } else { 0 };
        let call = |draw: &mut Self| {
            (draw.pick(&["search", "add", "wait", "no such tool"]).to_owned(), Value::Object(draw.object(3)))
        };
        let calls = (0..calls).map(|_| call(self)).collect();
        let thought = (self.below(2) == 0).then(|| format!("I think {}", self.text(4).replace('<', "(")));
        TurnText::Model { text: self.text(6), thought, calls }
    }

    /// Rounds of the model, each followed by the results of its calls, or by a user.
    fn trajectory(&mut self) -> Vec<TurnText> {
        let mut turns = Vec::new();
        for _ in 0..self.below(5) {
            let model = self.model(true);
            let calls = if let TurnText::Model { calls, .. } = &model { calls.len() } else { 0 };
            turns.push(model);
            turns.extend((0..calls).map(|_| TurnText::Tool(self.plain())));
            if calls == 0 || self.below(4) == 0 {
                turns.push(TurnText::User(self.plain()));
            }
        }
        // Some end with what a tool or a user said.
        if turns.is_empty() || self.below(6) > 0 {
            let may_call = self.below(8) == 0;
            turns.push(self.model(may_call));
        }
        turns
    }
}

fn chat(turns: &[TurnText]) -> Value {
    let message = |turn: &TurnText| match turn {
        TurnText::Tool(text) => {
            json!({"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": text}]})
        }
        TurnText::User(text) => json!({"role": "user", "content": text}),
        TurnText::Model { text, thought, calls } => {
            let call = |(name, arguments): &(String, Value)| json!({"id": "c", "type": "function", "function": {"name": name, "arguments": arguments.to_string()}});
            let content = if text.is_empty() { Value::Null } else { json!(text) };
            let calls: Vec<Value> = calls.iter().map(call).collect();
            json!({"role": "assistant", "content": content, "reasoning_content": thought, "tool_calls": calls})
        }
    };
    turns.iter().map(message).collect()
}

fn responses(turns: &[TurnText]) -> Value {
    let mut items = Vec::new();
    for turn in turns {
        match turn {
            TurnText::Tool(text) => {
                items.push(json!({"type": "function_call_output", "call_id": "c", "output": text}))
            }
            TurnText::User(text) => items.push(
                json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}),
            ),
            TurnText::Model { text, thought, calls } => {
                let thinks = |thought| json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": thought}]});
                items.extend(thought.iter().map(thinks));
                if !text.is_empty() || (thought.is_none() && calls.is_empty()) {
                    let part = json!({"type": "output_text", "text": text, "annotations": []});
                    items.push(json!({"type": "message", "role": "assistant", "status": "completed", "content": [part]}));
                }
                items.extend(calls.iter().map(|(name, arguments)| {
                    json!({"type": "function_call", "call_id": "c", "name": name, "arguments": arguments.to_string()})
                }));
            }
        }
    }
    json!({"object": "response", "output": items})
}

fn trl(turns: &[TurnText]) -> Value {
    let message = |turn: &TurnText| match turn {
        TurnText::Tool(text) => json!({"role": "tool", "name": "search", "content": text}),
        TurnText::User(text) => json!({"role": "user", "content": text}),
        TurnText::Model { text, thought, calls } => {
            let call = |(name, arguments): &(String, Value)| json!({"type": "function", "function": {"name": name, "arguments": arguments}});
            let content = match thought {
                Some(thought) => format!("<think>\n{thought}\n</think>\n\n{text}"),
                None => text.clone(),
            };
            let mut message = json!({"role": "assistant", "content": content});
            if !calls.is_empty() {
                message["tool_calls"] = calls.iter().map(call).collect();
            }
            message
        }
    };
    turns.iter().map(message).collect()
}

/// Spans by the template of Qwen, which puts the results of several tools into one turn of the user.
fn masked(turns: &[TurnText]) -> Value {
    let (mut spans, mut between, mut in_results) = (Vec::new(), String::new(), false);
    for turn in turns {
        if in_results && !matches!(turn, TurnText::Tool(_)) {
            between.push_str("<|im_end|>\n");
            in_results = false;
        }
        match turn {
            TurnText::Tool(text) => {
                between.push_str(if in_results { "\n" } else { "<|im_start|>user\n" });
                between.push_str(&format!("<tool_response>\n{text}\n</tool_response>"));
                in_results = true;
            }
            TurnText::User(text) => between.push_str(&format!("<|im_start|>user\n{text}<|im_end|>\n")),
            TurnText::Model { text, thought, calls } => {
                if !spans.is_empty() {
                    spans.push(json!({"mask": 0, "text": format!("\n{between}<|im_start|>assistant\n")}));
                    between.clear();
                }
                let thought = thought
                    .as_ref()
                    .map_or_else(String::new, |thought| format!("<think>\n{thought}\n</think>\n\n"));
                let mut said = format!("{thought}{text}");
                for (name, arguments) in calls {
                    said.push_str(&format!(
                        "\n<tool_call>\n{{\"name\": {}, \"arguments\": {arguments}}}\n</tool_call>",
                        json!(name)
                    ));
                }
                spans.push(json!({"mask": 1, "text": said + "<|im_end|>"}));
            }
        }
    }
    if in_results {
        between.push_str("<|im_end|>\n");
    }
    if !between.is_empty() {
        spans.push(json!({"mask": 0, "text": format!("\n{between}")}));
    }
    Value::Array(spans)
}

fn trace(turns: &[TurnText]) -> Value {
    let mut nodes =
        vec![json!({"parent": null, "sampled": false, "message": {"role": "user", "content": "p"}})];
    for turn in turns {
        let message = match turn {
            TurnText::Tool(text) => json!({"role": "tool", "tool_call_id": "c", "content": text}),
            TurnText::User(text) => json!({"role": "user", "content": text}),
            TurnText::Model { text, thought, calls } => {
                let call = |(name, arguments): &(String, Value)| json!({"id": "c", "name": name, "arguments": arguments.to_string()});
                let calls: Vec<Value> = calls.iter().map(call).collect();
                json!({"role": "assistant", "content": text, "reasoning_content": thought, "tool_calls": calls})
            }
        };
        // Another branch, which was left.
        let parent = nodes.len() - 1;
        let left =
            json!({"parent": parent, "sampled": true, "message": {"role": "assistant", "content": "42"}});
        let sampled = matches!(turn, TurnText::Model { .. });
        if sampled && parent == 0 {
            nodes.push(left);
        }
        nodes.push(json!({"parent": parent, "sampled": sampled, "message": message}));
    }
    json!({"nodes": nodes})
}

type WireForm = (&'static str, fn(&[TurnText]) -> Value);

const FORMS: [WireForm; 5] =
    [("chat", chat), ("responses", responses), ("trl", trl), ("masked", masked), ("trace", trace)];

/// What stands beside the response in a line: the same for all forms.
fn beside(draw: &mut TestRng, at: usize, turns: &[TurnText]) -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let tools = json!([{"name": "search", "parameters": schema}, {"name": "add"}, {"name": "wait", "parameters": {"type": "object"}}]);
    let mut line = json!({"id": format!("t{at}"), "group": format!("g{}", at / 4), "prompt": "p", "tokens": draw.below(9000), "tools": tools});
    let calls: Vec<Value> = turns
        .iter()
        .filter_map(|turn| if let TurnText::Model { calls, .. } = turn { Some(calls) } else { None })
        .flatten()
        .map(|(name, arguments)| json!({"name": name, "arguments": arguments}))
        .collect();
    match draw.below(4) {
        0 => line["reference"] = json!("42"),
        1 => line["reference"] = json!(json!(calls).to_string()),
        2 => line["expected_calls"] = json!(calls[..calls.len() / 2]),
        _ => {}
    }
    line["correct"] = json!(draw.below(2) == 0);
    line["finish_reason"] = json!(draw.pick(&["stop", "length", "tool_calls"]));
    line
}

/// All rules as they are by default; a pattern needs to be given.
fn engine() -> Engine {
    let mut components: String = (RULES.iter().filter(|known| known.name != "regex"))
        .map(|known| format!("  {}: {{ reward: {} }}\n", known.name.replace('.', "_"), known.name))
        .collect();
    components.push_str("  pattern: { reward: regex, pattern: '[0-9]+' }\n");
    for scope in ["answer", "assistant", "thought", "all"] {
        components.push_str(&format!("  numbers_{scope}: {{ reward: number_accuracy, scope: {scope} }}\n"));
        components.push_str(&format!("  length_{scope}: {{ reward: total_length, scope: {scope}, unit: character, max: 900, band: 900 }}\n"));
    }
    components.push_str("  strict: { reward: tool_calls, mode: strict, score: fraction }\n");
    components.push_str("  graded: { reward: tool_calls, mode: ordered, score: f1, arguments: graded }\n");
    Engine::new(Recipe::from_yaml(&format!("components:\n{components}")).unwrap().plan().unwrap()).unwrap()
}

#[test]
fn wire_forms_score_byte_for_byte_the_same() {
    let mut draw = TestRng(11);
    let trajectories: Vec<(Vec<TurnText>, Value)> = (0..TRAJECTORIES)
        .map(|at| {
            let turns = draw.trajectory();
            let line = beside(&mut draw, at, &turns);
            (turns, line)
        })
        .collect();
    let engine = engine();
    let mut first: Option<(Vec<Rollout<'static>>, Vec<String>)> = None;
    for (form, write) in FORMS {
        let read = |(turns, line): &(Vec<TurnText>, Value)| {
            let mut line = line.clone();
            line["response"] = write(turns);
            let line = line.to_string();
            read_line(line.as_bytes(), &Fields::own())
                .unwrap_or_else(|error| panic!("{form}: {error}: {line}"))
                .next()
                .unwrap()
        };
        let rollouts: Vec<Rollout<'static>> = trajectories.iter().map(read).collect();
        let report = engine.score(&rollouts).unwrap();
        let lines: Vec<String> = (0..rollouts.len())
            .map(|at| serde_json::to_string(&report.result(at, &format!("t{at}"), &rollouts[at])).unwrap())
            .collect();
        match &first {
            None => first = Some((rollouts, lines)),
            Some((chat_rollouts, chat_lines)) => {
                for at in 0..lines.len() {
                    assert_eq!(
                        rollouts[at].conversation, chat_rollouts[at].conversation,
                        "{form}: {:?}",
                        trajectories[at].0
                    );
                    assert_eq!(lines[at], chat_lines[at], "{form}");
                }
            }
        }
    }
    let (rollouts, lines) = first.unwrap();
    let calls: usize = rollouts
        .iter()
        .filter_map(|rollout| rollout.conversation.as_ref())
        .map(|all| all.calls().count())
        .sum();
    let right = lines
        .iter()
        .filter(|line| line.contains("\"tool_calls\":{\"outcome\":\"scored\",\"value\":1.0"))
        .count();
    println!("{} trajectories with {calls} calls, {right} of them as expected", rollouts.len());
    assert!(rollouts.len() >= 1000 && calls >= 1000 && right >= 100);
}
