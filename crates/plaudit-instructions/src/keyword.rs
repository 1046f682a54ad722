//! A keyword in an argument: a regular expression in the published checkers, and what it says in the corrected ones.

use crate::argument::{ArgumentError, Arguments};
use crate::text::pattern::Pattern;
use crate::text::reading::find_phrase;
use crate::text::view::View;
use plaudit_text::{fold, strip};

/// What is searched for without regard to case.
pub(crate) enum Keyword {
    /// A regular expression, found inside longer words too.
    Pattern(Pattern),
    /// The words themselves, in folded case, not inside longer words.
    Phrase(String),
}

impl Keyword {
    /// The keyword as it stands in an argument.
    pub(crate) fn new(arguments: &Arguments<'_>, name: &str, keyword: &str) -> Result<Self, ArgumentError> {
        if arguments.corrected() {
            return Self::phrase(arguments, name, keyword);
        }
        Pattern::ignoring_case(keyword).map(Self::Pattern).map_err(|reason| arguments.refused(name, reason))
    }

    /// The same between two word boundaries.
    pub(crate) fn bounded(
        arguments: &Arguments<'_>,
        name: &str,
        keyword: &str,
    ) -> Result<Self, ArgumentError> {
        if arguments.corrected() {
            return Self::phrase(arguments, name, keyword);
        }
        Pattern::bounded(keyword).map(Self::Pattern).map_err(|reason| arguments.refused(name, reason))
    }

    /// One argument that is a keyword, trimmed. An empty one is refused: the published checkers draw another.
    pub(crate) fn argument(arguments: &Arguments<'_>, name: &str) -> Result<Self, ArgumentError> {
        let keyword = arguments.text(name)?;
        if keyword.is_empty() {
            return Err(arguments.refused(name, "must not be empty"));
        }
        Self::new(arguments, name, strip(keyword))
    }

    fn phrase(arguments: &Arguments<'_>, name: &str, keyword: &str) -> Result<Self, ArgumentError> {
        let keyword = strip(keyword);
        if keyword.is_empty() {
            return Err(arguments.refused(name, "must not be empty"));
        }
        Ok(Self::Phrase(fold(keyword)))
    }

    /// Whether it is there.
    pub(crate) fn is_in(&self, view: &View<'_>) -> bool {
        match self {
            Self::Pattern(pattern) => pattern.is_match(view),
            Self::Phrase(phrase) => find_phrase(view.folded(), phrase).next().is_some(),
        }
    }

    /// How often it is there.
    pub(crate) fn count(&self, view: &View<'_>) -> usize {
        match self {
            Self::Pattern(pattern) => pattern.count(view),
            Self::Phrase(phrase) => find_phrase(view.folded(), phrase).count(),
        }
    }
}
