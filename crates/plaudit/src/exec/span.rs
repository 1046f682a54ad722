//! Spans: tells a tracer of the caller's which step of a scoring call takes how long. A call without a tracer makes none.
//!
//! The engine neither reads a clock nor draws ids for spans: the implementation of [`TraceSpan`] does.

use std::fmt;
use std::sync::Arc;

/// One timed step of a scoring call. It ends when it is dropped, or before by [`TraceSpan::end`].
pub trait TraceSpan: Send + Sync + fmt::Debug {
    /// Begins a step inside this one.
    fn child(&self, kind: SpanKind, name: &str) -> Arc<dyn TraceSpan>;
    /// Sets an attribute. What models and people have written does not belong there.
    fn set(&self, name: &'static str, value: SpanValue<'_>);
    /// Marks the step as failed, by a stable code.
    fn fail(&self, code: &str);
    /// The W3C `traceparent` header of requests that are made in this step.
    fn traceparent(&self) -> String;
    /// Ends the step; a second time changes nothing.
    fn end(&self);
    /// Ends the step without recording it.
    fn discard(&self);
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Work of this process.
    Internal,
    /// A request to another one.
    Client,
}

/// The value of an attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SpanValue<'v> {
    /// A text.
    Text(&'v str),
    /// A whole number.
    Count(u64),
    /// Yes or no.
    Flag(bool),
}

impl<'v> From<&'v str> for SpanValue<'v> {
    fn from(text: &'v str) -> Self {
        Self::Text(text)
    }
}

impl From<usize> for SpanValue<'_> {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<u64> for SpanValue<'_> {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<bool> for SpanValue<'_> {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}
