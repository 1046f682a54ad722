//! Scopes of a response: the part that a rule reads, such as the final words of a conversation or all of the model's.

use super::Text;
use super::quotation::own_words;
use crate::conversation::{Conversation, Role, Turn};
use crate::rollout::Rollout;
use plaudit_text::{Tags, split_thought};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;

/// A response over which scoring panics in a debug build, so that tests see what becomes of a panic.
const PANICS_WHEN_SCORED: &str = "plaudit-test: panic while scoring";

/// Which part of a response is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The model's final words: of a conversation, the last turn without its thought and without what it quotes
    /// (paragraphs whose lines begin with `>`, and `<tool_response>` blocks), and nothing where the model does not speak
    /// last. A response that is plain text is read whole.
    #[default]
    Final,
    /// The final answer in the final words: the last `<answer>` pair, where there is one; of that, or of the final words,
    /// the last `\boxed{...}`, where there is one.
    Answer,
    /// All that the model said, every turn of it without the thoughts. A response that is plain text is read whole.
    Assistant,
    /// What the model thought: every turn's thought, and what stands between `<think>` and `</think>`, joined by one
    /// space.
    Thought,
    /// Everything: thoughts, tool calls, and what tools and users said.
    All,
    /// The same as `final`, in RM-Gallery's word.
    Full,
}

impl Scope {
    /// That part, with its views.
    pub fn view<'t>(self, text: &'t Text<'_>) -> &'t Text<'t> {
        match self {
            Self::Final | Self::Full => text,
            Self::Answer => text.scoped(|scopes| &scopes.answer, || text.answer().to_owned()),
            Self::Thought => text.thought(),
            Self::Assistant => match text.conversation {
                None => text,
                Some(conversation) => text.scoped(|scopes| &scopes.assistant, || assistant(conversation)),
            },
            Self::All => match text.conversation {
                None => text,
                Some(conversation) => text.scoped(|scopes| &scopes.all, || all(conversation)),
            },
        }
    }

    /// That part as a string, without a copy where it is a piece of the response.
    pub fn of<'t>(self, text: &'t Text<'_>) -> &'t str {
        match self {
            Self::Answer => text.answer(),
            other => other.view(text).as_str(),
        }
    }
}

/// The parts of a conversation that were asked for so far.
#[derive(Debug, Default)]
pub(super) struct ScopedTexts {
    answer: OnceCell<Text<'static>>,
    assistant: OnceCell<Text<'static>>,
    all: OnceCell<Text<'static>>,
    written: OnceCell<Text<'static>>,
}

impl<'a> Text<'a> {
    /// The response of a rollout, with all its parts.
    pub fn of(rollout: &'a Rollout<'_>) -> Self {
        debug_assert!(rollout.response != PANICS_WHEN_SCORED, "a test asks for it");
        match &rollout.conversation {
            None => Self::new(&*rollout.response),
            Some(conversation) => Self::of_conversation(conversation),
        }
    }

    /// The final words of a conversation, with its other parts behind scopes.
    pub fn of_conversation(conversation: &'a Conversation) -> Self {
        Self {
            conversation: Some(conversation),
            ..Self::new(own_words(conversation.final_words(), &conversation.turns))
        }
    }

    /// The words of one turn, as if they were the final ones of a conversation, and after the turns of others just before.
    pub fn of_turn(turn: &'a Turn, before: &[Turn]) -> Self {
        Self::new(own_words(&turn.text, before))
    }

    /// How many bytes the whole response has, with all turns of a conversation.
    pub fn size(&self) -> usize {
        self.conversation.map_or_else(|| self.as_str().len(), Conversation::bytes)
    }

    /// The response as a model writes it, for rules about its form: plain text as it is; of a conversation the last turn,
    /// with its thought in tags.
    pub fn written(&self) -> &Text<'_> {
        match self.conversation {
            None => self,
            Some(conversation) => self.scoped(|scopes| &scopes.written, || written(conversation)),
        }
    }

    fn scoped(
        &self,
        cell: impl Fn(&ScopedTexts) -> &OnceCell<Text<'static>>,
        make: impl FnOnce() -> String,
    ) -> &Text<'static> {
        let scopes = self.dear().scopes.get_or_init(Box::default);
        cell(scopes).get_or_init(|| Text::new(make()))
    }
}

fn assistant(conversation: &Conversation) -> String {
    let texts: Vec<&str> = conversation.assistant_turns().map(|turn| turn.text.as_str()).collect();
    joined(&texts, "\n\n")
}

/// The thoughts of all turns, joined by one space.
pub(super) fn thoughts(conversation: &Conversation) -> String {
    let thoughts: Vec<&str> =
        conversation.assistant_turns().filter_map(|turn| turn.thought.as_deref()).collect();
    joined(&thoughts, " ")
}

fn all(conversation: &Conversation) -> String {
    let mut text = String::with_capacity(conversation.bytes());
    for turn in &conversation.turns {
        for part in turn.thought.iter().chain(Some(&turn.text)).filter(|part| !part.is_empty()) {
            text.push_str(part);
            text.push_str("\n\n");
        }
        for call in &turn.calls {
            text.push_str(&call.line());
            text.push_str("\n\n");
        }
    }
    text.truncate(text.trim_end().len());
    text
}

fn written(conversation: &Conversation) -> String {
    let last = conversation.turns.last().filter(|turn| turn.role == Role::Assistant);
    let Some(Turn { text, thought, .. }) = last else { return String::new() };
    match thought {
        Some(thought) => format!("<think>\n{thought}\n</think>\n{text}"),
        None => text.clone(),
    }
}

fn joined(parts: &[&str], between: &str) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join(between)
}

impl Turn {
    /// A turn of the model in normal form: white space at the ends is gone, and a thought in tags is taken out of the text, so that
    /// the turn is the same whether the server did that or not.
    pub fn assistant(text: &str, thought: Option<&str>, calls: Vec<crate::conversation::ToolCall>) -> Self {
        let mut turn = Self::said(Role::Assistant, text);
        let given = thought.map(plaudit_text::strip).filter(|thought| !thought.is_empty());
        let mut thoughts: Vec<String> = given.map(str::to_owned).into_iter().collect();
        if let Some((said, thought)) = split_thought(text, &Tags::find(text)) {
            turn.text = said;
            thoughts.extend(Some(thought).filter(|thought| !thought.is_empty()));
        }
        turn.thought = Some(thoughts.join(" ")).filter(|thought| !thought.is_empty());
        turn.calls = calls;
        turn
    }

    /// A turn of anybody but the model, in normal form.
    pub fn said(role: Role, text: &str) -> Self {
        let text = plaudit_text::strip(text).to_owned();
        Self { role, text, thought: None, calls: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::ToolCall;

    fn conversation() -> Conversation {
        let call = ToolCall::from_text("add".to_owned(), "{\"a\": 1}");
        Conversation {
            turns: vec![
                Turn::assistant("Let me add.", Some("one and one"), vec![call]),
                Turn::said(Role::Tool, "2"),
                Turn::said(Role::User, "and now?"),
                Turn::assistant("<think>so</think>\n> 2\nIt is \\boxed{3}.", None, Vec::new()),
            ],
        }
    }

    #[test]
    fn every_scope_reads_its_part() {
        let conversation = conversation();
        let text = Text::of_conversation(&conversation);
        for (scope, part) in [
            (Scope::Final, "It is \\boxed{3}."),
            (Scope::Full, "It is \\boxed{3}."),
            (Scope::Answer, "3"),
            (Scope::Assistant, "Let me add.\n\n> 2\nIt is \\boxed{3}."),
            (Scope::Thought, "one and one so"),
            (
                Scope::All,
                "one and one\n\nLet me add.\n\nadd({\"a\":1})\n\n2\n\nand now?\n\nso\n\n> 2\nIt is \\boxed{3}.",
            ),
        ] {
            assert_eq!(scope.of(&text), part, "{scope:?}");
            assert_eq!(scope.view(&text).as_str(), part, "{scope:?}");
        }
        assert_eq!(
            Text::of_turn(&conversation.turns[3], &conversation.turns[1..3]).as_str(),
            "It is \\boxed{3}."
        );
        assert_eq!(text.written().as_str(), "<think>\nso\n</think>\n> 2\nIt is \\boxed{3}.");
    }

    #[test]
    fn plain_text_is_read_as_it_is() {
        let text = Text::new("> a <think>b</think> <answer>c</answer> ");
        for scope in [Scope::Final, Scope::Full, Scope::Assistant, Scope::All] {
            assert_eq!(scope.of(&text), text.as_str());
        }
        assert_eq!((Scope::Answer.of(&text), Scope::Thought.of(&text)), ("c", "b"));
        assert_eq!(text.written().as_str(), text.as_str());
    }
}
