//! Reader of masked text, as verl's agent loop has it: spans of the model and of its surroundings, split by the chat template.

use super::InputError;
use super::conversation::bad;
use crate::conversation::{Role, ToolCall, Turn};
use plaudit_text::exact;
use serde_json::Value;

/// How a family of chat templates writes turns.
struct ChatTemplate {
    name: &'static str,
    /// What stands before the name of a role, and after it.
    header: (&'static str, &'static str),
    /// What ends a turn.
    ends: &'static [&'static str],
    /// The names of roles.
    roles: &'static [(&'static str, Role)],
    /// What the results of tools stand in, inside a turn of the user.
    results: Option<(&'static str, &'static str)>,
    /// What a tool call stands in; without, a call is the whole text.
    call: Option<(&'static str, &'static str)>,
}

const TEMPLATES: &[ChatTemplate] = &[
    ChatTemplate {
        name: "ChatML",
        header: ("<|im_start|>", "\n"),
        ends: &["<|im_end|>", "<|endoftext|>"],
        roles: &[
            ("assistant", Role::Assistant),
            ("user", Role::User),
            ("tool", Role::Tool),
            ("system", Role::System),
        ],
        results: Some(("<tool_response>", "</tool_response>")),
        call: Some(("<tool_call>", "</tool_call>")),
    },
    ChatTemplate {
        name: "Llama 3",
        header: ("<|start_header_id|>", "<|end_header_id|>"),
        ends: &["<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"],
        roles: &[
            ("assistant", Role::Assistant),
            ("user", Role::User),
            ("ipython", Role::Tool),
            ("tool", Role::Tool),
            ("system", Role::System),
        ],
        results: None,
        call: None,
    },
];

/// One span: its text, and whether the model made it.
struct Span<'s> {
    text: &'s str,
    of_model: bool,
}

/// The turns of spans, each an object with `text` and `mask`: 1 for what the model made, 0 for what was put in between.
pub(super) fn read_masked(items: &[Value], path: &str) -> Result<Vec<Turn>, InputError> {
    let mut spans = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let Some(text) = item["text"].as_str() else {
            return Err(bad(&format!("{path}[{at}].text"), "the text of the span is wanted"));
        };
        let of_model = match &item["mask"] {
            Value::Bool(mask) => *mask,
            Value::Number(mask) if mask.as_u64() == Some(0) => false,
            Value::Number(mask) if mask.as_u64() == Some(1) => true,
            _ => return Err(bad(&format!("{path}[{at}].mask"), "1 for the model's own text or 0 is wanted")),
        };
        spans.push(Span { text, of_model });
    }
    // The template writes the first header between the model's turns; whatever follows may be what a tool or a user said.
    let mut between = spans.iter().filter(|span| !span.of_model);
    let header = |text: &str| {
        let places = TEMPLATES.iter().filter_map(|one| Some((text.find(one.header.0)?, one)));
        places.min_by_key(|(at, _)| *at).map(|(_, template)| template)
    };
    // Where nothing stands between, the token that ends a turn of the model tells; without one there is nothing to split.
    let ends = |template: &&ChatTemplate| {
        let ended = |span: &Span<'_>| template.ends.iter().any(|end| span.text.trim_end().ends_with(end));
        spans.iter().any(ended)
    };
    let known = match between.clone().next() {
        Some(_) => between.find_map(|span| header(span.text)),
        None => TEMPLATES.iter().find(ends).or(TEMPLATES.first()),
    };
    let Some(template) = known else {
        let names: Vec<&str> = TEMPLATES.iter().map(|template| template.name).collect();
        return Err(bad(
            path,
            &format!(
                "the text between the model's turns follows no chat template that is known ({}); give chat messages",
                names.join(", ")
            ),
        ));
    };
    let mut turns = Vec::new();
    // What the template put before the model's own text, such as the tag that opens a thought.
    let mut opened = "";
    for (at, span) in spans.iter().enumerate() {
        if span.of_model {
            turns.push(template.assistant(opened, span.text));
            opened = "";
        } else {
            let path = format!("{path}[{at}].text");
            let is_last = spans.get(at + 1).is_none_or(|next| !next.of_model);
            opened = template.between(span.text, &path, is_last, &mut turns)?;
        }
    }
    Ok(turns)
}

impl ChatTemplate {
    /// The model's turn: without the token that ends it, its calls taken out.
    fn assistant(&self, opened: &str, text: &str) -> Turn {
        let mut text = text.trim_end();
        while let Some(rest) = self.ends.iter().find_map(|end| text.strip_suffix(end)) {
            text = rest.trim_end();
        }
        let (mut said, mut calls) = (opened.to_owned(), Vec::new());
        match self.call {
            None => match call_of(text.strip_prefix("<|python_tag|>").unwrap_or(text)) {
                Some(call) => calls.push(call),
                None => said.push_str(text),
            },
            Some((open, close)) => {
                let mut rest = text;
                while let Some((before, after)) = rest.split_once(open) {
                    let Some((body, after)) = after.split_once(close) else { break };
                    let Some(call) = call_of(body) else {
                        // A call without a name is the model's own text.
                        said.push_str(&rest[..rest.len() - after.len()]);
                        rest = after;
                        continue;
                    };
                    said.push_str(before);
                    calls.push(call);
                    rest = after;
                }
                said.push_str(rest);
            }
        }
        Turn::assistant(&said, None, calls)
    }

    /// The turns between two of the model's; gives back what the template wrote after the header of the next one. `last` says that the
    /// model says nothing after them.
    fn between<'s>(
        &self,
        text: &'s str,
        path: &str,
        last: bool,
        turns: &mut Vec<Turn>,
    ) -> Result<&'s str, InputError> {
        let (before, mut rest) = text.split_once(self.header.0).unwrap_or((text, ""));
        let stray = self.ends.iter().fold(before.to_owned(), |text, end| text.replace(end, ""));
        if !stray.trim().is_empty() {
            return Err(bad(path, &format!("text before the first turn of the template {}", self.name)));
        }
        let mut first = true;
        while !rest.is_empty() {
            let (segment, next) = rest.split_once(self.header.0).unwrap_or((rest, ""));
            let (name, body) = segment.split_once(self.header.1).unwrap_or((segment, ""));
            let known = self.roles.iter().find(|(known, _)| *known == name.trim());
            let Some((_, role)) = known.filter(|_| segment.contains(self.header.1)) else {
                if first {
                    return Err(bad(
                        path,
                        &format!("the template {} has no role {:?}", self.name, name.trim()),
                    ));
                }
                // The template wrote the first header; this one stands in what a tool or a user said. It must not make the
                // rollout unreadable, or a policy could have a tool say it instead of being wrong.
                turns.push(Turn::said(Role::User, segment));
                rest = next;
                continue;
            };
            first = false;
            let body_end = self.ends.iter().filter_map(|end| body.find(end)).min();
            match (role, body_end) {
                // The header of the model's next turn ends the span.
                (Role::Assistant, None) if next.is_empty() && !last => return Ok(body.trim_start()),
                (Role::Assistant, None) if next.is_empty() => {}
                // What was put in between is not the model's, even where a tool's result writes the template's own words.
                (Role::Assistant, _) => {
                    turns.push(Turn::said(Role::User, &body[..body_end.unwrap_or(body.len())]))
                }
                _ => self.said(*role, &body[..body_end.unwrap_or(body.len())], turns),
            }
            rest = next;
        }
        match last {
            true => Ok(""),
            false => Err(bad(path, "the model's next turn has no header")),
        }
    }

    /// A turn of a user or a tool. The results of several tools may stand in one turn of the user.
    fn said(&self, role: Role, body: &str, turns: &mut Vec<Turn>) {
        let results = self.results.filter(|(open, _)| body.trim_start().starts_with(open));
        let Some((open, close)) = results else { return turns.push(Turn::said(role, body)) };
        let mut rest = body;
        while let Some((_, after)) = rest.split_once(open) {
            let (result, after) = after.split_once(close).unwrap_or((after, ""));
            turns.push(Turn::said(Role::Tool, result));
            rest = after;
        }
        if !rest.trim().is_empty() {
            turns.push(Turn::said(role, rest));
        }
    }
}

/// The call in a text that is one object of JSON with a name.
fn call_of(text: &str) -> Option<ToolCall> {
    let Ok(Value::Object(mut call)) = exact::read(text.trim()) else { return None };
    let Some(Value::String(name)) = call.remove("name") else { return None };
    let arguments = ["arguments", "parameters"].iter().find_map(|key| call.remove(*key));
    Some(match arguments {
        Some(Value::String(text)) => ToolCall::from_text(name, &text),
        Some(other) => ToolCall::from_text(name, &exact::write(&other)),
        None => ToolCall::from_text(name, ""),
    })
}
