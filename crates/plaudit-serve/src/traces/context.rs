//! Trace context: the ids of a span, and the W3C `traceparent` header that carries them.

use std::fmt;

/// Which span of which trace, and whether the trace is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TraceContext {
    pub(super) trace_id: [u8; 16],
    pub(super) span_id: [u8; 8],
    pub(super) sampled: bool,
}

impl TraceContext {
    /// A new trace, of which the share `sample` is recorded.
    pub(super) fn root(sample: f64) -> Self {
        let trace_id: [u8; 16] = random();
        // The last bytes of the id decide, as in OpenTelemetry's sampler by ratio, so that all services agree.
        let mut last = [0; 8];
        last.copy_from_slice(&trace_id[8..]);
        let drawn = (u64::from_be_bytes(last) >> 1) as f64 / (1_u64 << 63) as f64;
        Self { trace_id, span_id: random(), sampled: drawn < sample }
    }

    /// A span inside this one.
    pub(super) fn child(self) -> Self {
        Self { span_id: random(), ..self }
    }

    /// Reads a `traceparent` header; none where it is not one, and the request then begins a trace of its own.
    pub(super) fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().split('-');
        let (version, trace_id, span_id, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let [version] = hex::<1>(version)?;
        // Later versions may say more; this one may not.
        if version == 0xff || (version == 0 && parts.next().is_some()) {
            return None;
        }
        let (trace_id, span_id, [flags]) = (hex::<16>(trace_id)?, hex::<8>(span_id)?, hex::<1>(flags)?);
        let is_known = trace_id != [0; 16] && span_id != [0; 8];
        is_known.then_some(Self { trace_id, span_id, sampled: flags & 1 == 1 })
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("00-")?;
        self.trace_id.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
        out.write_str("-")?;
        self.span_id.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
        write!(out, "-{:02x}", u8::from(self.sampled))
    }
}

/// Bytes from exactly so many lower-case hexadecimal digits.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 2 * N || !text.as_bytes().iter().all(is_digit) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

/// Random bytes that are not all zero, which would be no id.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without randomness ids repeat, and traces are of no use; requests are answered all the same.
    let _ = getrandom::fill(&mut bytes);
    bytes[N - 1] |= u8::from(bytes == [0; N]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_header_is_read_and_written() {
        let context = TraceContext::parse(HEADER).unwrap();
        assert!(context.sampled);
        assert_eq!(context.to_string(), HEADER);
        let child = context.child();
        assert_eq!(child.trace_id, context.trace_id);
        assert_ne!(child.span_id, context.span_id);
        assert!(!TraceContext::parse(&HEADER.replace("-01", "-00")).unwrap().sampled);
        // A later version may have more parts.
        assert!(TraceContext::parse(&format!("{}-more", HEADER.replacen("00", "01", 1))).is_some());
    }

    #[test]
    fn what_is_no_header_is_none() {
        for text in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-äbf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_share_of_new_traces_is_recorded() {
        let count = |sample: f64| (0..2000).filter(|_| TraceContext::root(sample).sampled).count();
        assert_eq!((count(0.0), count(1.0)), (0, 2000));
        assert!((800..1200).contains(&count(0.5)));
    }
}
