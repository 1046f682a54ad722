//! Request bodies: a length limit, a minimum rate, and one memory budget ([`BodyBudget`]) for all bodies at once.

use super::response::ApiError;
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::{HeaderMap, StatusCode, header};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How long a body may take whatever its length.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the rest of a body that is refused is read and discarded, so that the client gets the answer: while something comes within
/// the first, and never longer than the second.
const LINGER: Duration = Duration::from_secs(1);
const MAX_LINGER: Duration = Duration::from_secs(5);
/// How many bytes a second must come in after that.
const SLOWEST: u64 = 32 << 10;

/// Up to how many bytes a body is small: a quarter of the budget is reserved for those, so that a few large bodies that come slowly do
/// not lock everybody out.
const SMALL: usize = 1 << 20;
/// About how many bytes a value takes once it is read, and how many more a list or an object.
const VALUE: usize = 64;
const CONTAINER: usize = 96;

/// Memory budget for bodies, requests and long replies alike.
#[derive(Debug)]
pub(crate) struct BodyBudget {
    most: usize,
    held: AtomicUsize,
}

impl BodyBudget {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, held: AtomicUsize::new(0) }
    }

    /// The part of it for large bodies, of which one may be `longest` bytes.
    fn share(&self, longest: u64) -> usize {
        let longest = usize::try_from(longest).unwrap_or(usize::MAX);
        (self.most / 4 * 3).max(longest).min(self.most)
    }

    /// How many bytes are held.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

/// A part of the budget, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct BodyLease {
    budget: Arc<BodyBudget>,
    taken: usize,
}

impl BodyLease {
    /// A lease of no bytes so far.
    pub(crate) fn new(budget: &Arc<BodyBudget>) -> Self {
        Self { budget: Arc::clone(budget), taken: 0 }
    }

    /// Takes so many bytes more. Returns how many are held by all.
    fn take(&mut self, bytes: usize) -> usize {
        self.taken += bytes;
        self.budget.held.fetch_add(bytes, Ordering::AcqRel) + bytes
    }

    /// Reserves so many bytes more for a request of at most `longest` bytes.
    fn grow_request(&mut self, bytes: usize, longest: u64) -> Result<(), ApiError> {
        let held = self.take(bytes);
        let most = if self.taken > SMALL { self.budget.share(longest) } else { self.budget.most };
        if held > most {
            let message = "there is no room for more requests: try again later";
            return Err(ApiError::busy("engine.overloaded", message, 1).closing());
        }
        Ok(())
    }

    /// Reserves so many bytes more for a reply; one reply may have half of the budget.
    pub(crate) fn grow_reply(&mut self, bytes: usize) -> Result<(), ApiError> {
        let held = self.take(bytes);
        if self.taken > self.budget.most / 2 {
            let message = "this is too long for one answer: fetch it in parts, with from and limit";
            return Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "http.too_long", message));
        }
        if held > self.budget.most / 4 * 3 {
            let message = "there is no room for long answers: try again later";
            return Err(ApiError::busy("engine.overloaded", message, 1));
        }
        Ok(())
    }

    /// Bytes that hold the lease until they are dropped.
    pub(crate) fn with(self, bytes: impl Into<Bytes>) -> Bytes {
        Bytes::from_owner(LeasedBytes { bytes: bytes.into(), _lease: self })
    }
}

impl Drop for BodyLease {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.taken, Ordering::AcqRel);
    }
}

struct LeasedBytes {
    bytes: Bytes,
    _lease: BodyLease,
}

impl AsRef<[u8]> for LeasedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads the body of a request, a JSON object. The rest of a body that is refused is discarded for a while: many clients read nothing
/// before they have sent everything, and closing a socket with unread input resets the connection, which loses the answer.
pub(crate) async fn read(
    headers: &HeaderMap,
    mut body: Body,
    longest: u64,
    budget: &Arc<BodyBudget>,
) -> Result<Bytes, ApiError> {
    let taken = match check(headers, longest) {
        Ok(()) => read_frames(&mut body, longest, budget).await,
        Err(error) => Err(error),
    };
    // With `Expect: 100-continue`, the client has sent nothing yet.
    let is_sent = !headers.contains_key(header::EXPECT);
    match taken {
        Err(error) if error.close && is_sent => {
            // Beside the answer, which goes out at once.
            drop(tokio::spawn(discard(body)));
            Err(error)
        }
        Err(error) => Err(error),
        Ok(bytes) => is_object(&bytes).map(|()| bytes),
    }
}

/// Reads the rest of a body and discards it.
async fn discard(mut body: Body) {
    let until = Instant::now() + MAX_LINGER;
    while let Ok(Some(Ok(_))) =
        tokio::time::timeout_at(until.min(Instant::now() + LINGER), body.frame()).await
    {}
}

/// Whether a body is a JSON object, by its first letter. serde would accept a list as the values of a struct's fields in their order.
fn is_object(bytes: &[u8]) -> Result<(), ApiError> {
    let found = match bytes.trim_ascii_start().first() {
        None | Some(b'{') => return Ok(()),
        Some(b'[') => "a list",
        Some(b'"') => "a text",
        Some(_) => "something else",
    };
    Err(ApiError::bad_request("http.json", format!("a JSON object is wanted as the body, found {found}")))
}

/// Checks content type, encoding and length before anything is read.
fn check(headers: &HeaderMap, longest: u64) -> Result<(), ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.map(|kind| kind.split(';').next().unwrap_or(kind).trim().to_ascii_lowercase());
    if kind.as_deref() != Some("application/json") {
        let message = "the body must be JSON: send it with Content-Type: application/json";
        return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "http.content_type", message).closing());
    }
    let plain = |coding: &header::HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(header::CONTENT_ENCODING).iter().all(plain) {
        let message = "the body must not be compressed";
        return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "http.encoding", message).closing());
    }
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    match length.and_then(|length| length.parse::<u64>().ok()) {
        Some(length) if length > longest => Err(too_long(longest)),
        _ => Ok(()),
    }
}

/// Reads all frames of a body, within the budget and the minimum rate.
async fn read_frames(body: &mut Body, longest: u64, budget: &Arc<BodyBudget>) -> Result<Bytes, ApiError> {
    let mut lease = BodyLease::new(budget);
    let began = Instant::now();
    let (mut first, mut rest): (Option<Bytes>, Option<BytesMut>) = (None, None);
    let mut length: u64 = 0;
    let mut spread = ParsedSize::default();
    loop {
        let until = began + PATIENCE + Duration::from_secs(length / SLOWEST);
        let frame = match tokio::time::timeout_at(until, body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => break,
            Ok(Some(Err(_))) => {
                return Err(ApiError::bad_request("http.body", "the body ended too soon").closing());
            }
            Err(_) => {
                let message = "the body came too slowly";
                return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "http.timeout", message).closing());
            }
        };
        let Ok(data) = frame.into_data() else { continue };
        length += data.len() as u64;
        if length > longest {
            return Err(too_long(longest));
        }
        let more = data.len() + spread.of(&data);
        if lease.taken + more > budget.share(longest) {
            let message = "the body holds too many values at once; send less";
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "http.too_many", message).closing());
        }
        lease.grow_request(more, longest)?;
        // A body that comes in one piece is not copied.
        match (&first, &mut rest) {
            (None, None) => first = Some(data),
            (Some(one), None) => {
                let mut all = BytesMut::with_capacity(one.len() + data.len());
                all.extend_from_slice(one);
                all.extend_from_slice(&data);
                rest = Some(all);
            }
            (_, Some(all)) => all.extend_from_slice(&data),
        }
    }
    Ok(lease.with(match (first, rest) {
        (_, Some(all)) => all.freeze(),
        (Some(one), None) => one,
        (None, None) => Bytes::new(),
    }))
}

/// Estimates the memory of the parsed JSON while the body comes in. Parsed JSON can be 30 times larger than its text (an array of
/// zeros), so memory is reserved for the estimated parsed size.
#[derive(Debug, Default)]
struct ParsedSize {
    in_text: bool,
    escaped: bool,
    all: usize,
}

impl ParsedSize {
    /// About how many bytes the values of the next piece take once they are read, beside their texts.
    fn of(&mut self, piece: &[u8]) -> usize {
        let before = self.all;
        let mut rest = piece;
        while let Some(first) = rest.first() {
            let mut passed = 1;
            if self.escaped {
                self.escaped = false;
            } else if self.in_text {
                // Most of a body is text, of which only the end matters.
                let Some(at) = memchr::memchr2(b'"', b'\\', rest) else { break };
                match rest[at] {
                    b'"' => self.in_text = false,
                    _ => self.escaped = true,
                }
                passed = at + 1;
            } else {
                match first {
                    b'"' => self.in_text = true,
                    b',' => self.all += VALUE,
                    b'[' | b'{' => self.all += VALUE + CONTAINER,
                    _ => {}
                }
            }
            rest = &rest[passed..];
        }
        self.all - before
    }
}

fn too_long(longest: u64) -> ApiError {
    let message = format!("the body is longer than {longest} bytes; send less at once");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "http.too_long", message).closing()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_short_plain_json_is_accepted() {
        let code = |pairs: &[(&'static str, &'static str)]| check(&headers(pairs), 100).map_err(|no| no.code);
        assert_eq!(code(&[("content-type", "application/json; charset=utf-8")]), Ok(()));
        assert_eq!(code(&[]), Err("http.content_type"));
        assert_eq!(code(&[("content-type", "text/plain")]), Err("http.content_type"));
        let json = ("content-type", "application/json");
        assert_eq!(code(&[json, ("content-encoding", "gzip")]), Err("http.encoding"));
        assert_eq!(code(&[json, ("content-length", "101")]), Err("http.too_long"));
        assert_eq!(code(&[json, ("content-length", "100")]), Ok(()));
    }

    #[test]
    fn body_must_be_an_object() {
        for good in [&b"{}"[..], b" \r\n\t{", b"", b" "] {
            assert_eq!(is_object(good), Ok(()));
        }
        for bad in [&b"[]"[..], b" [", b"\"{\"", b"7", b"null"] {
            assert_eq!(is_object(bad).unwrap_err().code, "http.json");
        }
    }

    #[test]
    fn budget_is_released_on_drop() {
        let budget = Arc::new(BodyBudget::new(10));
        let mut held = BodyLease::new(&budget);
        assert!(held.grow_request(8, 10).is_ok());
        let mut other = BodyLease::new(&budget);
        assert_eq!(other.grow_request(8, 10).unwrap_err().status, 429);
        drop(other);
        drop(held);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn replies_hold_budget_until_sent() {
        let budget = Arc::new(BodyBudget::new(100));
        let answer = |bytes: usize| {
            let mut lease = BodyLease::new(&budget);
            lease
                .grow_reply(bytes)
                .map(|()| lease.with(vec![0; bytes]))
                .map_err(|error| error.status.as_u16())
        };
        let first = answer(40).unwrap();
        assert_eq!((answer(51), answer(40)), (Err(422), Err(429)));
        assert_eq!(budget.held(), 40);
        drop(first);
        assert_eq!((budget.held(), answer(40).is_ok()), (0, true));
    }

    #[test]
    fn large_bodies_leave_budget_for_small_ones() {
        let budget = Arc::new(BodyBudget::new(8 * SMALL));
        let of = || BodyLease::new(&budget);
        let (mut one, mut two, mut small) = (of(), of(), of());
        let longest = 3 * SMALL as u64;
        assert!(one.grow_request(3 * SMALL, longest).is_ok() && two.grow_request(3 * SMALL, longest).is_ok());
        assert_eq!(of().grow_request(3 * SMALL, longest).unwrap_err().status, 429);
        assert!(small.grow_request(SMALL, longest).is_ok());
    }

    #[test]
    fn parsed_size_ignores_text() {
        let whole = br#"{"a": "[,,,\\\",,", "b": 1}"#;
        assert_eq!(ParsedSize::default().of(whole), 2 * VALUE + CONTAINER);
        // However it comes in pieces.
        for at in 0..whole.len() {
            let mut spread = ParsedSize::default();
            assert_eq!(spread.of(&whole[..at]) + spread.of(&whole[at..]), 2 * VALUE + CONTAINER);
        }
        assert_eq!(ParsedSize::default().of(b"[0,0,0]"), 3 * VALUE + CONTAINER);
    }
}
