//! The reference of a rollout as rules see it: its text with its views, and those of each accepted answer where there are several.

use crate::outcome::Outcome;
use crate::reason::{Code, Reason};
use crate::rollout::{MAX_ACCEPTED, Reference, ReferenceForm, Rollout};
use crate::text::Text;
use plaudit_text::exact;
use serde_json::Value;
use std::ops::Deref;

/// A reference with its views.
#[derive(Debug)]
pub struct ReferenceView<'a> {
    text: Text<'a>,
    form: ReferenceForm,
    /// The field that it was found in, where it is none of the rollout's own.
    field: Option<&'static str>,
    /// The views of each accepted answer of a list.
    accepted: Vec<ReferenceView<'static>>,
    /// What is wrong with it for a reward that compares texts.
    unreadable: Option<Reason>,
}

impl<'a> ReferenceView<'a> {
    /// The reference of a rollout: its own, or that of another field of the row.
    pub fn of(rollout: &'a Rollout<'_>) -> Option<Self> {
        rollout.compared_with().map(|(field, reference)| Self::new(reference, field))
    }

    fn new(reference: Reference<'a>, field: Option<&'static str>) -> Self {
        let form = reference.form();
        let mut accepted = reference.accepted();
        let unreadable = match form {
            ReferenceForm::Text => None,
            ReferenceForm::Accepted if accepted.len() > MAX_ACCEPTED => {
                let message = format!("The reference has more than {MAX_ACCEPTED} accepted answers.");
                Some(Reason::new(Code::ReferenceTooLong, message))
            }
            ReferenceForm::Accepted => None,
            ReferenceForm::Document => {
                let message = format!(
                    "The {} is {}, and this reward compares with a text or a list of accepted ones.",
                    field.map_or_else(|| "reference".to_owned(), |field| format!("field `{field}`")),
                    reference.kind()
                );
                Some(Reason::new(Code::ReferenceUnparsable, message))
            }
        };
        if unreadable.is_some() {
            accepted.clear();
        }
        let accepted = accepted.into_iter().map(|text| ReferenceView::new(Reference::from(text), None));
        Self { text: Text::new(reference.into_text()), form, field, accepted: accepted.collect(), unreadable }
    }

    /// What it is.
    pub fn form(&self) -> ReferenceForm {
        self.form
    }

    /// The field that it was found in, where it is none of the rollout's own.
    pub fn field(&self) -> Option<&'static str> {
        self.field
    }

    /// The accepted answers, where it is a list.
    pub(super) fn accepted(&self) -> Option<&[ReferenceView<'static>]> {
        (self.form == ReferenceForm::Accepted && self.unreadable.is_none()).then_some(&*self.accepted)
    }

    /// The reference as JSON.
    pub fn to_value(&self) -> Value {
        match self.form {
            ReferenceForm::Text => Value::from(self.as_str()),
            ReferenceForm::Accepted | ReferenceForm::Document => {
                exact::read(self.as_str()).unwrap_or_else(|_| Value::from(self.as_str()))
            }
        }
    }

    /// Its text, which a response is compared with.
    pub(super) fn as_text(&self) -> Result<&Text<'a>, Outcome> {
        match (&self.unreadable, self.form) {
            (Some(reason), _) => Err(Outcome::invalid(reason.clone())),
            (None, ReferenceForm::Accepted) => {
                let message = "The reference is a list, and this reward compares with one text.";
                Err(Outcome::invalid(Reason::new(Code::ReferenceUnparsable, message)))
            }
            (None, _) => Ok(&self.text),
        }
    }

    /// Whether it is the view of a rollout's reference.
    pub(crate) fn is_of(&self, rollout: &Rollout<'_>) -> bool {
        rollout.compared_with().is_some_and(|(field, reference)| {
            (self.field, self.form, self.text.as_str()) == (field, reference.form(), &*reference)
        })
    }
}

impl<'a> From<&'a str> for ReferenceView<'a> {
    fn from(text: &'a str) -> Self {
        Self::new(Reference::from(text), None)
    }
}

/// The reference as a whole, as JSON where it is no text.
impl<'a> Deref for ReferenceView<'a> {
    type Target = Text<'a>;

    fn deref(&self) -> &Text<'a> {
        &self.text
    }
}

/// The outcome of a reward that compares with one text, for several accepted ones: the best. Where one of them cannot be compared
/// with, none of the responses to that row is scored, so that this does not depend on what a response says.
pub(super) fn best(outcomes: impl Iterator<Item = Outcome>) -> Outcome {
    let rank = |outcome: &Outcome| match outcome {
        Outcome::Invalid(_) => 2,
        Outcome::Skipped(_) => 1,
        Outcome::Scored { .. } | Outcome::Floored { .. } => 0,
    };
    let best = outcomes.reduce(|best, next| {
        let better = rank(&next) > rank(&best) || rank(&next) == rank(&best) && next.value() > best.value();
        if better { next } else { best }
    });
    best.unwrap_or_else(|| Outcome::skipped(Code::EmptyReference))
}
