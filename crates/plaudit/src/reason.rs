//! Why did a rollout not simply get a number? The closed list of dotted codes, and the reason that carries one.

use std::borrow::Cow;
use std::fmt;

/// Declares the closed list once: the variant, its dotted code, and what it means.
macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $code:literal,)+) => {
        /// A cause, as reports count it. The first part of the code says whose it is: the model's, the input's,
        /// the group's, the recipe's or the engine's.
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
    /// The rollout has no reference, and the component needs one.
    MissingReference = "input.missing_reference",
    /// The reference holds nothing that the component could compare with.
    EmptyReference = "input.empty_reference",
    /// The reference is longer than the component's stated limit.
    ReferenceTooLong = "input.reference_too_long",
    /// The rollout has no token count, and the component needs one.
    MissingTokens = "input.missing_tokens",
    /// A field of `extra` that the component needs is absent or of the wrong type.
    MissingExtra = "input.missing_extra",
    /// No route of the recipe fits the rollout, and it names no default.
    NoRoute = "input.no_route",
    /// A gate of the recipe was closed, so the component was not asked.
    GateClosed = "gate.closed",
    /// The group is too small for a reward that compares its members.
    GroupTooSmall = "group.too_small",
    /// The rollout arrived after its group had been scored.
    GroupSplit = "group.split",
    /// The group's deadline passed before the component was asked.
    GroupDeadline = "group.deadline",
    /// The weights of the components that apply add up to zero, so their mean does not exist.
    ZeroWeight = "engine.zero_weight",
    /// The tokenizer file that the recipe names cannot cut the text.
    TokenizerFailed = "recipe.tokenizer_failed",
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
#[derive(Debug, Clone, PartialEq, Eq)]
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
