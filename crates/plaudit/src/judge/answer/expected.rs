//! Verdict types: what a judge can answer, in which format it is asked to, and where the answer stands.

use super::items::ItemAnswer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which of the two that were shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The one shown first.
    First,
    /// The one shown second.
    Second,
}

/// One parsed answer. There is no verdict for a failure.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// A number in the range that was asked for.
    Score(f64),
    /// Which of two is better.
    Pair {
        /// The better one, or none where they tie.
        winner: Option<Side>,
        /// How likely the first is the better one, a tie counting half, where the judge's probabilities are known or its label
        /// says by how much one is better.
        first: Option<f64>,
    },
    /// All that were shown, as places in the order of showing, best first.
    Ranking(Vec<usize>),
    /// What is said of each item of a rubric that was asked about; none of an item where that cannot be read.
    Items(Vec<Option<ItemAnswer>>),
    /// The reply to a free question.
    Text(String),
}

/// How a judge is asked to say its verdict, from the one that is hardest to forge to the one that every judge can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnswerFormat {
    /// One label and nothing else, with the probabilities of that token.
    Logprobs,
    /// One JSON object that the endpoint holds to a schema.
    Json,
    /// The last line in a tag that carries a nonce.
    Tag,
}

impl AnswerFormat {
    /// The word in recipes, prompts and journals.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Logprobs => "logprobs",
            Self::Json => "json",
            Self::Tag => "tag",
        }
    }

    /// The form of that word.
    pub fn named(word: &str) -> Option<Self> {
        [Self::Logprobs, Self::Json, Self::Tag].into_iter().find(|form| form.as_str() == word)
    }
}

/// The kinds of question that judges are asked. Which formats an endpoint can answer in may differ between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuestionKind {
    /// A number for one response.
    Score,
    /// The better one of two.
    Pair,
    /// The order of several.
    Ranking,
    /// The items of a rubric.
    Items,
    /// Whatever a prompt or a reward of one's own asks.
    Free,
}

impl QuestionKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Score, Self::Pair, Self::Ranking, Self::Items, Self::Free];

    /// The word in journals and replies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Score => "score",
            Self::Pair => "pair",
            Self::Ranking => "ranking",
            Self::Items => "items",
            Self::Free => "free",
        }
    }

    /// Several of them, in a sentence.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Score => "single responses",
            Self::Pair => "pairs",
            Self::Ranking => "rankings",
            Self::Items => "items of rubrics",
            Self::Free => "prompts of your own",
        }
    }
}

/// What an answer must be to count.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpectedAnswer {
    /// A number.
    Score {
        /// The smallest.
        min: f64,
        /// The largest.
        max: f64,
    },
    /// The label of one of two, or of a tie where ties are allowed.
    Pair {
        /// The label of the first and of the second.
        labels: [String; 2],
        /// The label of a tie.
        tie: Option<String>,
    },
    /// One of several labels, which say by how much the better one is better.
    Graded {
        /// What each label says: from -1, the second without doubt, over 0, a tie, to 1, the first.
        labels: BTreeMap<String, f64>,
    },
    /// The labels of all, best first.
    Ranking {
        /// The labels in the order of showing.
        labels: Vec<String>,
    },
}

impl ExpectedAnswer {
    /// The kind of question that it answers.
    pub fn kind(&self) -> QuestionKind {
        match self {
            Self::Score { .. } => QuestionKind::Score,
            Self::Pair { .. } | Self::Graded { .. } => QuestionKind::Pair,
            Self::Ranking { .. } => QuestionKind::Ranking,
        }
    }
}

/// Where in the reply the verdict stands.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerLocation {
    /// The reply is the label or the number and nothing else.
    Whole {
        /// Whether the probabilities of its token must be there.
        logprobs: bool,
    },
    /// A field of the one JSON object in the reply.
    Json {
        /// The field.
        field: String,
        /// A field that must repeat a text, such as the id of the sample.
        echo: Option<(String, String)>,
    },
    /// Between two strings that occur once each, such as `<verdict 8c1d>` and `</verdict 8c1d>`.
    Between {
        /// What stands before it.
        open: String,
        /// What stands after it.
        close: String,
    },
    /// In double square brackets, such as `[[A]]`. Repeated, it counts once; two that differ are ambiguous.
    Brackets,
}

/// Tokens that an endpoint says it has read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "TokensReply")]
pub struct Usage {
    /// Read.
    pub prompt: u64,
    /// Of those, read from the endpoint's prefix cache.
    pub cached: u64,
    /// Written.
    pub completion: u64,
}
