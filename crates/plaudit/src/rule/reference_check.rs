//! Reference check: what a rule says about a reference alone, before a training is paid for.

use std::borrow::Cow;

/// How much a remark matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// No response can be compared with it.
    Fault,
    /// Hardly any response equals it: it is compared as it is written.
    Unlikely,
    /// It can be compared with, and perhaps something else was meant.
    Doubt,
    /// What it was read as.
    Kind,
}

/// A remark on one reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// How much it matters.
    pub severity: Severity,
    /// What is remarked, in words that are the same for every such reference.
    pub what: &'static str,
    /// What is special about this one; may be empty.
    pub detail: Cow<'static, str>,
}

impl Remark {
    /// A remark.
    pub fn new(severity: Severity, what: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { severity, what, detail: detail.into() }
    }
}

/// What a rule can say about references without a response.
pub trait ReferenceCheck: Send + Sync {
    /// What is wrong with a reference, doubtful about it, and what it was read as.
    fn remarks(&self, reference: &str) -> Vec<Remark>;

    /// Whether two references of one prompt are the same answer.
    fn is_same(&self, one: &str, other: &str) -> bool;
}
