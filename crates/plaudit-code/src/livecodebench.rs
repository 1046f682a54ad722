//! LiveCodeBench's `private_test_cases`: Base64 of zlib of a pickled text that is JSON, read without a pickle machine.

use crate::cases::TestsError;
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use plaudit_text::exact;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::io::Read;

/// The most bytes after decompression. The longest row of LiveCodeBench is a third of it.
pub const UNPACKED_LIMIT: usize = 64 << 20;

/// Deflate makes at most this many bytes of one.
const RATIO: usize = 1032;

/// Hands the tests of a field on, one by one: a list as JSON text, or encoded as LiveCodeBench encodes its hidden tests. So what is
/// between the text and the cases is never there as a whole.
pub(crate) fn tests(
    key: &str,
    text: &str,
    each: impl FnMut(Value) -> Result<(), TestsError>,
) -> Result<(), TestsError> {
    let form = |what: &str| TestsError::Form(format!("`{key}`: {what}"));
    if text.trim_start().starts_with('[') {
        return list(text, each, form);
    }
    let packed = base64(text).ok_or_else(|| form("neither a list as JSON nor Base64"))?;
    let mut pickled = Vec::with_capacity(packed.len().saturating_mul(RATIO).min(UNPACKED_LIMIT + 1));
    flate2::read::ZlibDecoder::new(packed.as_slice())
        .take(UNPACKED_LIMIT as u64 + 1)
        .read_to_end(&mut pickled)
        .map_err(|error| form(&format!("no zlib: {error}")))?;
    if pickled.len() > UNPACKED_LIMIT {
        return Err(form("more than 64 MB of tests"));
    }
    let json = text_of_pickle(&pickled).ok_or_else(|| form("no pickle of one text"))?;
    list(json, each, form)
}

/// Hands the items of a JSON list on.
fn list(
    text: &str,
    each: impl FnMut(Value) -> Result<(), TestsError>,
    form: impl Fn(&str) -> TestsError,
) -> Result<(), TestsError> {
    let marked = exact::marked(text);
    let (mut reader, mut refused) = (serde_json::Deserializer::from_str(&marked), None);
    let items = Items { each, refused: &mut refused };
    let read = reader.deserialize_seq(items).and_then(|()| reader.end());
    match refused {
        Some(error) => Err(error),
        None => read.map_err(|error| form(&format!("no list as JSON: {error}"))),
    }
}

/// Reads a list item by item, up to one that is refused.
struct Items<'r, F> {
    each: F,
    refused: &'r mut Option<TestsError>,
}

impl<'de, F: FnMut(Value) -> Result<(), TestsError>> Visitor<'de> for Items<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element()? {
            if let Err(error) = (self.each)(item) {
                *self.refused = Some(error);
                return Err(A::Error::custom("refused"));
            }
        }
        Ok(())
    }
}

/// The bytes of Base64 with the standard alphabet; line breaks are left out, and padding may be missing.
fn base64(text: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let mut letters = Cow::Borrowed(text.trim());
    if letters.contains(|letter: char| letter.is_ascii_whitespace()) {
        letters.to_mut().retain(|letter| !letter.is_ascii_whitespace());
    }
    let bytes = GeneralPurpose::new(&STANDARD, LENIENT).decode(letters.as_bytes()).ok()?;
    (!bytes.is_empty()).then_some(bytes)
}

/// The text of a pickle that holds one text and nothing else, of any protocol since the first.
fn text_of_pickle(pickled: &[u8]) -> Option<&str> {
    let mut rest = pickled;
    let mut take = |count: usize| -> Option<&[u8]> {
        let (taken, after) = rest.split_at_checked(count)?;
        rest = after;
        Some(taken)
    };
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let mut text = None;
    loop {
        let length = match take(1)?[0] {
            // PROTO and FRAME; BINPUT, LONG_BINPUT and MEMOIZE, which keep what nothing asks for.
            0x80 | b'q' => 1,
            0x95 => 8,
            b'r' => 4,
            0x94 => 0,
            // SHORT_BINUNICODE, BINUNICODE, BINUNICODE8.
            code @ (0x8c | b'X' | 0x8d) if text.is_none() => {
                let width = match code {
                    0x8c => 1,
                    b'X' => 4,
                    _ => 8,
                };
                let length = usize::try_from(number(take(width)?)).ok()?;
                text = Some(std::str::from_utf8(take(length)?).ok()?);
                continue;
            }
            b'.' => break,
            _ => return None,
        };
        take(length)?;
    }
    text.filter(|_| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// By Python: `base64.b64encode(zlib.compress(pickle.dumps(json.dumps([...]))))`.
    const PACKED: &str =
        "eJxrYJnqyAABPbbR1UqZeQWlJUpWCkqGCkYxeUo6Ckr5pSVQoZhSA4NUS5BYSWpxSUllQSpItLgkJTNPqTZ2ih4A7k4VdQ==";

    fn all(text: &str) -> Result<Vec<Value>, TestsError> {
        let mut found = Vec::new();
        tests("k", text, |test| {
            found.push(test);
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn hidden_tests_are_read() {
        let wanted = vec![json!({"input": "1 2\n", "output": "é", "testtype": "stdin"})];
        assert_eq!(all(PACKED), Ok(wanted.clone()));
        let plain = serde_json::to_string(&wanted).unwrap();
        assert_eq!(all(&plain), Ok(wanted));
        for broken in ["", "%%%", "aGVsbG8=", &PACKED[..40], &PACKED[4..], "A", "=AAA", "AAA=A"] {
            assert!(matches!(all(broken), Err(TestsError::Form(_))), "{broken}");
        }
    }

    #[test]
    fn pickles_of_one_text_alone_are_read() {
        for (pickled, wanted) in [
            (&b"\x80\x04\x95\x06\0\0\0\0\0\0\0\x8c\x02[]\x94."[..], Some("[]")),
            (b"\x80\x02X\x02\0\0\0[]q\0.", Some("[]")),
            (b"X\x02\0\0\0[]r\0\0\0\0.", Some("[]")),
            (b"\x80\x04\x8d\x02\0\0\0\0\0\0\0[]\x94.", Some("[]")),
            (b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff[]\x94.", None),
            (b"\x80\x04\x8c\x02[]\x8c\x02[]\x94.", None),
            (b"\x80\x04\x8c\x02[]\x94", None),
            (b"\x80\x04\x8c\x02[]\x94.x", None),
            (b"\x80\x04\x8c\x02\xff\xfe\x94.", None),
            // A call of a function, as a hostile pickle has it.
            (b"cos\nsystem\n(S'true'\ntR.", None),
            (b".", None),
            (b"", None),
        ] {
            assert_eq!(text_of_pickle(pickled), wanted, "{pickled:?}");
        }
    }

    #[test]
    fn a_bomb_of_zeros_is_refused() {
        use std::io::Write;
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        for _ in 0..80 {
            encoder.write_all(&vec![b' '; 1 << 20]).unwrap();
        }
        let packed = encoder.finish().unwrap();
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for chunk in packed.chunks(3) {
            let bits =
                chunk.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
            for index in 0..=chunk.len() {
                text.push(char::from(alphabet[(bits >> (18 - 6 * index)) as usize & 63]));
            }
        }
        assert_eq!(all(&text), Err(TestsError::Form("`k`: more than 64 MB of tests".into())));
    }
}
