//! How is the body of a request read? At most so many bytes, in a time that its length allows, and never more in all than the
//! machine has room for.

use super::reply::Refusal;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::{HeaderMap, StatusCode, header};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How long a body may take whatever its length.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long what a client still sends of a body that is too long is thrown away, so that it hears the answer: as long as something
/// comes within the first, and never longer than the second.
const LINGER: Duration = Duration::from_secs(1);
const LONGEST_LINGER: Duration = Duration::from_secs(5);
/// How many bytes a second must come in after that.
const SLOWEST: u64 = 32 << 10;

/// Up to how many bytes a body is small: a quarter of the room is left for those, so that a few large ones that come slowly do
/// not keep everybody out.
const SMALL: usize = 1 << 20;
/// About how many bytes a value takes once it is read, and how many more a list or an object.
const VALUE: usize = 64;
const CONTAINER: usize = 96;

/// How much of bodies is held in memory at once.
#[derive(Debug)]
pub(crate) struct Room {
    most: usize,
    held: AtomicUsize,
}

impl Room {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, held: AtomicUsize::new(0) }
    }

    /// How much of it large bodies may have, of which one may be so long.
    fn share(&self, longest: u64) -> usize {
        let longest = usize::try_from(longest).unwrap_or(usize::MAX);
        (self.most / 4 * 3).max(longest).min(self.most)
    }

    /// How many bytes are held.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

/// A body that is held; when it is dropped its room is free.
#[derive(Debug)]
pub(crate) struct Held<'r> {
    room: &'r Room,
    taken: usize,
    pub(crate) bytes: Bytes,
}

impl Held<'_> {
    /// Takes room for so many bytes more of a body that may be so long.
    fn take(&mut self, bytes: usize, longest: u64) -> Result<(), Refusal> {
        let before = self.room.held.fetch_add(bytes, Ordering::AcqRel);
        self.taken += bytes;
        let most = match self.taken > SMALL {
            true => self.room.share(longest),
            false => self.room.most,
        };
        if before + bytes > most {
            return Err(Refusal::busy(
                "engine.overloaded",
                "there is no room for more requests: try again later",
                1,
            )
            .closing());
        }
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.room.held.fetch_sub(self.taken, Ordering::AcqRel);
    }
}

/// Room for what is answered, until it has been sent.
#[derive(Debug)]
pub(crate) struct Lent {
    room: Arc<Room>,
    taken: usize,
}

impl Room {
    /// None so far.
    pub(crate) fn lend(room: &Arc<Self>) -> Lent {
        Lent { room: Arc::clone(room), taken: 0 }
    }
}

impl Lent {
    /// Takes room for so many bytes more: at most half of what there is for one answer.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Refusal> {
        let before = self.room.held.fetch_add(bytes, Ordering::AcqRel);
        self.taken += bytes;
        if self.taken > self.room.most / 2 {
            let message = "this is too long for one answer: fetch it in parts, with from and limit";
            return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "http.too_long", message));
        }
        if before + bytes > self.room.most / 4 * 3 {
            return Err(Refusal::busy(
                "engine.overloaded",
                "there is no room for long answers: try again later",
                1,
            ));
        }
        Ok(())
    }

    /// Bytes that take the room until they are dropped.
    pub(crate) fn with(self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(Sent { bytes, _lent: self })
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.room.held.fetch_sub(self.taken, Ordering::AcqRel);
    }
}

struct Sent {
    bytes: Vec<u8>,
    _lent: Lent,
}

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The body of a request, which is a JSON object. Whoever sends too much is heard out for a while: many clients read nothing before
/// they have sent everything, and a connection that is closed while something is unread is torn down with the answer in it.
pub(crate) async fn take<'r>(
    headers: &HeaderMap,
    mut body: Incoming,
    longest: u64,
    room: &'r Room,
) -> Result<Held<'r>, Refusal> {
    let taken = match check(headers, longest) {
        Ok(()) => read(&mut body, longest, room).await,
        Err(refusal) => Err(refusal),
    };
    // Whoever asks before it sends, with `Expect`, has not begun.
    let is_sent = !headers.contains_key(header::EXPECT);
    match taken {
        Err(refusal) if refusal.status == StatusCode::PAYLOAD_TOO_LARGE && is_sent => {
            // Beside the answer, which goes out at once.
            drop(tokio::spawn(hear_out(body)));
            Err(refusal)
        }
        Err(refusal) => Err(refusal),
        Ok(held) => is_object(&held.bytes).map(|()| held),
    }
}

/// Throws away what still comes of a body.
async fn hear_out(mut body: Incoming) {
    let until = Instant::now() + LONGEST_LINGER;
    while let Ok(Some(Ok(_))) =
        tokio::time::timeout_at(until.min(Instant::now() + LINGER), body.frame()).await
    {}
}

/// Whether a body is a JSON object as far as its first letter tells. A list would else be read as the values of a request's fields,
/// in whatever order these stand.
fn is_object(bytes: &[u8]) -> Result<(), Refusal> {
    let found = match bytes.trim_ascii_start().first() {
        None | Some(b'{') => return Ok(()),
        Some(b'[') => "a list",
        Some(b'"') => "a text",
        Some(_) => "something else",
    };
    Err(Refusal::bad("http.json", format!("a JSON object is wanted as the body, found {found}")))
}

/// Whether the headers promise a body that is read at all: JSON, plain, and not too long.
fn check(headers: &HeaderMap, longest: u64) -> Result<(), Refusal> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.map(|kind| kind.split(';').next().unwrap_or(kind).trim().to_ascii_lowercase());
    if kind.as_deref() != Some("application/json") {
        let message = "the body must be JSON: send it with Content-Type: application/json";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "http.content_type", message).closing());
    }
    let plain = |coding: &header::HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(header::CONTENT_ENCODING).iter().all(plain) {
        let message = "the body must not be compressed";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "http.encoding", message).closing());
    }
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    match length.and_then(|length| length.parse::<u64>().ok()) {
        Some(length) if length > longest => Err(too_long(longest)),
        _ => Ok(()),
    }
}

/// Reads a whole body.
async fn read<'r>(body: &mut Incoming, longest: u64, room: &'r Room) -> Result<Held<'r>, Refusal> {
    let mut held = Held { room, taken: 0, bytes: Bytes::new() };
    let began = Instant::now();
    let (mut first, mut rest): (Option<Bytes>, Option<BytesMut>) = (None, None);
    let mut length: u64 = 0;
    let mut spread = Spread::default();
    loop {
        let until = began + PATIENCE + Duration::from_secs(length / SLOWEST);
        let frame = match tokio::time::timeout_at(until, body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err(Refusal::bad("http.body", "the body ended too soon").closing()),
            Err(_) => {
                let message = "the body came too slowly";
                return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "http.timeout", message).closing());
            }
        };
        let Ok(data) = frame.into_data() else { continue };
        length += data.len() as u64;
        if length > longest {
            return Err(too_long(longest));
        }
        let more = data.len() + spread.of(&data);
        if held.taken + more > room.share(longest) {
            let message = "the body holds too many values at once; send less";
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "http.too_many", message).closing());
        }
        held.take(more, longest)?;
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
    held.bytes = match (first, rest) {
        (_, Some(all)) => all.freeze(),
        (Some(one), None) => one,
        (None, None) => Bytes::new(),
    };
    Ok(held)
}

/// Counts values as a body comes in. What is read of a body may take far more than the body itself: thirty times as much, where
/// it is a list of zeros.
#[derive(Debug, Default)]
struct Spread {
    in_text: bool,
    escaped: bool,
    all: usize,
}

impl Spread {
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

fn too_long(longest: u64) -> Refusal {
    let message = format!("the body is longer than {longest} bytes; send less at once");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "http.too_long", message).closing()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_plain_json_of_a_bounded_length_is_read() {
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
    fn a_body_is_an_object() {
        for good in [&b"{}"[..], b" \r\n\t{", b"", b" "] {
            assert_eq!(is_object(good), Ok(()));
        }
        for bad in [&b"[]"[..], b" [", b"\"{\"", b"7", b"null"] {
            assert_eq!(is_object(bad).unwrap_err().code, "http.json");
        }
    }

    #[test]
    fn room_is_given_back() {
        let room = Room::new(10);
        let mut held = Held { room: &room, taken: 0, bytes: Bytes::new() };
        assert!(held.take(8, 10).is_ok());
        let mut other = Held { room: &room, taken: 0, bytes: Bytes::new() };
        assert_eq!(other.take(8, 10).unwrap_err().status, 429);
        drop(other);
        drop(held);
        assert_eq!(room.held(), 0);
    }

    #[test]
    fn what_is_answered_takes_room_until_it_is_sent() {
        let room = Arc::new(Room::new(100));
        let answer = |bytes: usize| {
            let mut lent = Room::lend(&room);
            lent.grow(bytes).map(|()| lent.with(vec![0; bytes])).map_err(|refusal| refusal.status.as_u16())
        };
        let first = answer(40).unwrap();
        assert_eq!((answer(51), answer(40)), (Err(422), Err(429)));
        assert_eq!(room.held(), 40);
        drop(first);
        assert_eq!((room.held(), answer(40).is_ok()), (0, true));
    }

    #[test]
    fn large_bodies_leave_room_for_small_ones() {
        let room = Room::new(8 * SMALL);
        let of = || Held { room: &room, taken: 0, bytes: Bytes::new() };
        let (mut one, mut two, mut small) = (of(), of(), of());
        let longest = 3 * SMALL as u64;
        assert!(one.take(3 * SMALL, longest).is_ok() && two.take(3 * SMALL, longest).is_ok());
        assert_eq!(of().take(3 * SMALL, longest).unwrap_err().status, 429);
        assert!(small.take(SMALL, longest).is_ok());
    }

    #[test]
    fn what_stands_in_texts_is_no_value() {
        let whole = br#"{"a": "[,,,\\\",,", "b": 1}"#;
        assert_eq!(Spread::default().of(whole), 2 * VALUE + CONTAINER);
        // However it comes in pieces.
        for at in 0..whole.len() {
            let mut spread = Spread::default();
            assert_eq!(spread.of(&whole[..at]) + spread.of(&whole[at..]), 2 * VALUE + CONTAINER);
        }
        assert_eq!(Spread::default().of(b"[0,0,0]"), 3 * VALUE + CONTAINER);
    }
}
