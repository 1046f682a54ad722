//! How is the body of a request read? At most so many bytes, in a time that its length allows, and never more in all than the
//! machine has room for.

use super::reply::Refusal;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::{HeaderMap, StatusCode, header};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How long a body may take whatever its length.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many bytes a second must come in after that.
const SLOWEST: u64 = 32 << 10;

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
    fn take(&mut self, bytes: usize) -> Result<(), Refusal> {
        let before = self.room.held.fetch_add(bytes, Ordering::AcqRel);
        self.taken += bytes;
        if before + bytes > self.room.most {
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

/// Whether the headers promise a body that is read at all: JSON, plain, and not too long.
pub(crate) fn check(headers: &HeaderMap, longest: u64) -> Result<(), Refusal> {
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
pub(crate) async fn read(mut body: Incoming, longest: u64, room: &Room) -> Result<Held<'_>, Refusal> {
    let mut held = Held { room, taken: 0, bytes: Bytes::new() };
    let began = Instant::now();
    let (mut first, mut rest): (Option<Bytes>, Option<BytesMut>) = (None, None);
    let mut length: u64 = 0;
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
        held.take(data.len())?;
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
    fn room_is_given_back() {
        let room = Room::new(10);
        let mut held = Held { room: &room, taken: 0, bytes: Bytes::new() };
        assert!(held.take(8).is_ok());
        let mut other = Held { room: &room, taken: 0, bytes: Bytes::new() };
        assert_eq!(other.take(8).unwrap_err().status, 429);
        drop(other);
        drop(held);
        assert_eq!(room.held(), 0);
    }
}
