//! OTLP: spans as the protobuf message `ExportTraceServiceRequest` (opentelemetry-proto 1, stable).

use super::context::TraceContext;
use std::time::Duration;

/// The kinds of spans that are made here.
pub(super) const INTERNAL: u64 = 1;
pub(super) const SERVER: u64 = 2;
pub(super) const CLIENT: u64 = 3;

/// The status code of a span that failed.
const ERROR: u64 = 2;

/// A span that has ended.
#[derive(Debug, Clone)]
pub(super) struct SpanRecord {
    pub(super) context: TraceContext,
    pub(super) parent: Option<[u8; 8]>,
    pub(super) kind: u64,
    pub(super) name: String,
    /// Since 1970.
    pub(super) start: Duration,
    pub(super) took: Duration,
    pub(super) attributes: Vec<(&'static str, AttributeValue)>,
    /// The code of what failed.
    pub(super) error: Option<String>,
}

/// The value of an attribute.
#[derive(Debug, Clone)]
pub(super) enum AttributeValue {
    Text(String),
    Count(u64),
    Flag(bool),
}

/// The request that exports spans of one resource.
pub(super) fn export_request(resource: &[(String, String)], spans: &[SpanRecord]) -> Vec<u8> {
    let resource = message(|out| {
        for (name, value) in resource {
            out.message(1, |out| out.attribute(name, &AttributeValue::Text(value.clone())));
        }
    });
    let scope_spans = message(|out| {
        out.message(1, |out| {
            out.bytes(1, b"plaudit");
            out.bytes(2, env!("CARGO_PKG_VERSION").as_bytes());
        });
        spans.iter().for_each(|span| out.message(2, |out| out.span(span)));
    });
    message(|out| {
        out.message(1, |out| {
            out.bytes(1, &resource);
            out.bytes(2, &scope_spans);
        });
    })
}

fn message(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    write(&mut out);
    out.0
}

/// Writes the fields of a protobuf message.
struct Writer(Vec<u8>);

impl Writer {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn tag(&mut self, field: u64, wire: u64) {
        self.varint(field << 3 | wire);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.tag(field, 0);
        self.varint(value);
    }

    fn fixed64(&mut self, field: u64, value: u64) {
        self.tag(field, 1);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.tag(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn message(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        let inner = message(write);
        self.bytes(field, &inner);
    }

    /// A `KeyValue`.
    fn attribute(&mut self, name: &str, value: &AttributeValue) {
        self.bytes(1, name.as_bytes());
        self.message(2, |out| match value {
            AttributeValue::Text(text) => out.bytes(1, text.as_bytes()),
            AttributeValue::Flag(flag) => out.number(2, u64::from(*flag)),
            AttributeValue::Count(count) => out.number(3, *count),
        });
    }

    /// A `Span`.
    fn span(&mut self, span: &SpanRecord) {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.bytes(1, &span.context.trace_id);
        self.bytes(2, &span.context.span_id);
        if let Some(parent) = &span.parent {
            self.bytes(4, parent);
        }
        self.bytes(5, span.name.as_bytes());
        self.number(6, span.kind);
        self.fixed64(7, nanoseconds(span.start));
        self.fixed64(8, nanoseconds(span.start.saturating_add(span.took)));
        for (name, value) in &span.attributes {
            self.message(9, |out| out.attribute(name, value));
        }
        if let Some(code) = &span.error {
            self.message(9, |out| out.attribute("error.type", &AttributeValue::Text(code.clone())));
            self.message(15, |out| out.number(3, ERROR));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_varints_of_seven_bits() {
        let bytes = |value| message(|out| out.number(1, value));
        assert_eq!(bytes(0), [0x08, 0]);
        assert_eq!(bytes(300), [0x08, 0xac, 0x02]);
        assert_eq!(bytes(u64::MAX).len(), 11);
    }

    #[test]
    fn a_span_is_written_field_by_field() {
        let context = TraceContext { trace_id: [1; 16], span_id: [2; 8], sampled: true };
        let span = SpanRecord {
            context,
            parent: Some([3; 8]),
            kind: CLIENT,
            name: "n".to_owned(),
            start: Duration::from_nanos(5),
            took: Duration::from_nanos(2),
            attributes: vec![("a", AttributeValue::Count(1))],
            error: None,
        };
        let bytes = message(|out| out.span(&span));
        let head = [&[0x0a, 16][..], &[1; 16], &[0x12, 8], &[2; 8], &[0x22, 8], &[3; 8]].concat();
        assert_eq!(bytes[..head.len()], head);
        let tail = [
            &[0x2a, 1, b'n', 0x30, 3, 0x39, 5, 0, 0, 0, 0, 0, 0, 0, 0x41, 7, 0, 0, 0, 0, 0, 0, 0][..],
            &[0x4a, 7, 0x0a, 1, b'a', 0x12, 2, 0x18, 1],
        ]
        .concat();
        assert_eq!(bytes[head.len()..], tail);
    }
}
