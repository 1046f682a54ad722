//! HTTP basic authentication for clients that cannot send a header: their URL holds the token, `http://trainer:TOKEN@host:7717/...`,
//! of which every HTTP library makes a user and a password.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Base64 with or without padding, as clients write it.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The bearer header of the token in a basic authentication header; none where it is none.
pub(crate) fn bearer(header: &[u8]) -> Option<Vec<u8>> {
    let (scheme, coded) = header.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let decoded = LENIENT.decode(coded.trim_ascii()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    Some([b"Bearer ", &decoded[colon + 1..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_the_token() {
        assert_eq!(
            bearer(b"Basic dHJhaW5lcjpwbGF1ZGl0XzEyMw==").as_deref(),
            Some(&b"Bearer plaudit_123"[..])
        );
        assert_eq!(bearer(b"basic OmE6Yg==").as_deref(), Some(&b"Bearer a:b"[..]));
        for other in [
            &b"Bearer plaudit_123"[..],
            b"Basic",
            b"Basic ",
            b"Basic !!!!",
            b"Basic dHJhaW5lcg==",
            b"Basic Q",
        ] {
            assert_eq!(bearer(other), None);
        }
    }
}
