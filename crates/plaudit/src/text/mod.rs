//! Lazy views of a text (length, lower case, tags, thought, tokens), each computed at most once and shared.

pub(crate) mod document;
pub mod id_set;
pub mod lcs;
pub mod ngrams;
pub mod pii;
mod quotation;
pub mod scope;
pub mod sequence_matcher;
pub mod tokens;
pub mod transcript;

use crate::conversation::Conversation;
use crate::tokenizer::{Tokenizer, Uncut};
use plaudit_text::Tags;
use scope::ScopedTexts;
use std::any::Any;
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use tokens::Tokens;

/// Whether letters are folded before tokens are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// As written.
    Kept,
    /// In lower case.
    Lower,
}

/// Tokens, by the tokenizer's key and the case of the text that they were cut from.
type Cut = ((u64, Case), Rc<Tokens>);

/// A text and the views of it that were asked for so far.
///
/// The cells hold nothing that borrows from `'a`, so that a longer-lived text can stand in for a shorter-lived one.
#[derive(Debug)]
pub struct Text<'a> {
    raw: Cow<'a, str>,
    chars: OnceCell<usize>,
    /// `None` inside: the stripped text is its own lower case.
    lower: OnceCell<Option<String>>,
    tags: OnceCell<Tags>,
    /// The turns, where the text is the final words of a conversation.
    conversation: Option<&'a Conversation>,
    dear: OnceCell<Box<DearViews>>,
}

/// The views that cost more than to allocate them. They are apart, because a text is moved more often than they are asked for.
#[derive(Debug, Default)]
struct DearViews {
    thought: OnceCell<Box<Text<'static>>>,
    tokens: RefCell<Vec<Cut>>,
    scopes: OnceCell<Box<ScopedTexts>>,
    /// What rules made of the text, each under a key of its own.
    parsed: RefCell<Vec<(u64, Rc<dyn Any>)>>,
}

impl<'a> Text<'a> {
    /// A text of which nothing has been looked at yet.
    pub fn new(raw: impl Into<Cow<'a, str>>) -> Self {
        Self {
            raw: raw.into(),
            chars: OnceCell::new(),
            lower: OnceCell::new(),
            tags: OnceCell::new(),
            conversation: None,
            dear: OnceCell::new(),
        }
    }

    /// The text as given.
    pub fn as_str(&self) -> &str {
        &self.raw
    }

    /// The number of Unicode code points.
    pub fn chars(&self) -> usize {
        *self.chars.get_or_init(|| self.raw.chars().count())
    }

    /// The text without white space at its ends.
    pub fn stripped(&self) -> &str {
        plaudit_text::strip(&self.raw)
    }

    /// The stripped text in lower case.
    pub fn lower(&self) -> &str {
        let lower = || match plaudit_text::lower(self.stripped()) {
            Cow::Owned(lower) => Some(lower),
            Cow::Borrowed(_) => None,
        };
        self.lower.get_or_init(lower).as_deref().unwrap_or_else(|| self.stripped())
    }

    /// Where tags such as `<think>` and `</answer>` stand.
    pub fn tags(&self) -> &Tags {
        self.tags.get_or_init(|| Tags::find(&self.raw))
    }

    /// The turns, where the text is the final words of a conversation.
    pub fn conversation(&self) -> Option<&'a Conversation> {
        self.conversation
    }

    /// What stands between `<think>` and `</think>`, every pair of them, joined by one space; the thoughts of a
    /// conversation.
    pub fn thought(&self) -> &Text<'static> {
        self.dear().thought.get_or_init(|| {
            if let Some(conversation) = self.conversation {
                return Box::new(Text::new(scope::thoughts(conversation)));
            }
            let bodies: Vec<&str> = self.tags().bodies(&self.raw, "think").collect();
            Box::new(Text::new(bodies.join(" ")))
        })
    }

    /// The stripped text without its thought.
    pub fn without_thought(&self) -> Cow<'_, str> {
        let split = plaudit_text::split_thought(&self.raw, self.tags());
        split.map_or_else(|| Cow::Borrowed(self.stripped()), |(said, _)| Cow::Owned(said))
    }

    /// The final answer, as [`Scope::Answer`](scope::Scope::Answer) says.
    pub fn answer(&self) -> &str {
        let tagged = self.tags().bodies(&self.raw, "answer").last().unwrap_or(&self.raw);
        plaudit_text::last_boxed(tagged).unwrap_or(tagged)
    }

    /// The tokens of the stripped text, where the tokenizer can cut it.
    pub fn tokens(&self, tokenizer: &Tokenizer, case: Case) -> Result<Rc<Tokens>, Uncut> {
        let key = (tokenizer.key(), case);
        if let Some((_, tokens)) = self.dear().tokens.borrow().iter().find(|(known, _)| *known == key) {
            return Ok(Rc::clone(tokens));
        }
        // Asked first, so that no work is done for a text that is too long.
        if self.stripped().len() > tokenizer.longest() {
            return Err(Uncut::TooLong);
        }
        // Asked again, because some characters grow when they are lowered.
        let text = self.in_case(case);
        if text.len() > tokenizer.longest() {
            return Err(Uncut::TooLong);
        }
        let tokens = Rc::new(tokenizer.cut(text)?);
        self.dear().tokens.borrow_mut().push((key, Rc::clone(&tokens)));
        Ok(tokens)
    }

    /// What a rule makes of the text, made once for each key: a reference is parsed once for its group, not once a rollout.
    pub fn parsed<T: Any>(&self, key: u64, parse: impl FnOnce(&str) -> T) -> Rc<T> {
        let known =
            self.dear().parsed.borrow().iter().find(|(of, _)| *of == key).map(|(_, made)| Rc::clone(made));
        if let Some(made) = known.and_then(|made| made.downcast().ok()) {
            return made;
        }
        let made = Rc::new(parse(&self.raw));
        self.dear().parsed.borrow_mut().push((key, Rc::clone(&made) as Rc<dyn Any>));
        made
    }

    fn dear(&self) -> &DearViews {
        self.dear.get_or_init(Box::default)
    }

    /// The stripped text as `tokens` saw it, so that a token's span can be shown.
    pub fn in_case(&self, case: Case) -> &str {
        match case {
            Case::Kept => self.stripped(),
            Case::Lower => self.lower(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plaudit_text::strip;

    #[test]
    fn the_final_answer_is_found() {
        for (response, answer) in [
            ("<answer>1</answer> <answer> 2 </answer> \\boxed{3}", "2"),
            ("<think>\\boxed{1}</think><answer>so \\boxed{2} it is</answer>", "2"),
            ("so \\boxed{1} and \\boxed{\\frac{1}{2}} done", "\\frac{1}{2}"),
            ("\\boxed{4} then \\boxed{never closed", "4"),
            ("\\boxed{a \\boxed{b} c}", "b"),
            ("\\boxed{\\{1, 2\\}}", "\\{1, 2\\}"),
            ("} \\boxed{5} {", "5"),
            (" plain \n", "plain"),
            ("ends in \\", "ends in \\"),
            ("\\é{\\boxed{6}", "6"),
            ("", ""),
        ] {
            assert_eq!(strip(Text::new(response).answer()), answer, "{response}");
        }
    }
}
