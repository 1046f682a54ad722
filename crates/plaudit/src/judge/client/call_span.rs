//! The span of one judge call, with the attributes of OpenTelemetry's conventions for generative AI; never a prompt or a reply.

use super::CallOutcome;
use crate::exec::{SpanKind, TraceSpan};
use crate::judge::config::ResolvedJudge;
use crate::judge::endpoint::Endpoint;
use reqwest::Url;
use std::sync::Arc;

/// The span of a call.
pub(super) struct CallSpan(Arc<dyn TraceSpan>);

impl CallSpan {
    /// Begins the span of a call to a judge.
    pub(super) fn begin(parent: &dyn TraceSpan, judge: &ResolvedJudge) -> Self {
        let operation = operation(judge.config.kind);
        let model = judge.config.model.as_deref().unwrap_or("");
        let span = parent.child(SpanKind::Client, &format!("{operation} {model}"));
        span.set("gen_ai.operation.name", operation.into());
        span.set("gen_ai.request.model", model.into());
        // What the endpoint speaks; who is behind it is not known.
        span.set("gen_ai.provider.name", "openai".into());
        span.set("plaudit.judge", judge.name.as_str().into());
        if let Some(url) = judge.base_urls.first().and_then(|base| Url::parse(base).ok()) {
            span.set("server.address", url.host_str().unwrap_or("").into());
            span.set("server.port", u64::from(url.port_or_known_default().unwrap_or(0)).into());
        }
        Self(span)
    }

    pub(super) fn traceparent(&self) -> String {
        self.0.traceparent()
    }

    /// Ends it with what came of the call. A verdict for which nothing was sent, from the journal or from an equal call in
    /// flight, is no call.
    pub(super) fn end(self, outcome: &CallOutcome) {
        if outcome.attempts == 0 && outcome.verdict.is_ok() {
            return self.0.discard();
        }
        self.0.set("plaudit.attempts", u64::from(outcome.attempts).into());
        if let Some(usage) = outcome.usage {
            self.0.set("gen_ai.usage.input_tokens", usage.prompt.into());
            self.0.set("gen_ai.usage.output_tokens", usage.completion.into());
        }
        if let Err(reason) = &outcome.verdict {
            self.0.fail(reason.code.as_str());
        }
        self.0.end();
    }
}

/// What the call does, by the words of the conventions where they have one.
fn operation(kind: Endpoint) -> &'static str {
    match kind {
        Endpoint::Chat => "chat",
        Endpoint::Classify => "classify",
        Endpoint::Pooling => "pooling",
        Endpoint::Embeddings => "embeddings",
        Endpoint::Overlap => "overlap",
    }
}
