//! HTTP basic authentication for clients that cannot send a header: their URL holds the token, `http://trainer:TOKEN@host:7717/...`,
//! of which every HTTP library makes a user and a password.

/// The bearer header of the token in a basic authentication header; none where it is none.
pub(crate) fn bearer(header: &[u8]) -> Option<Vec<u8>> {
    let (scheme, coded) = header.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let decoded = decode(coded.trim_ascii())?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    Some([b"Bearer ", &decoded[colon + 1..]].concat())
}

/// Decodes base 64 (RFC 4648, section 4); too little to depend on a crate for.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(text.len() * 3 / 4), 0u32, 0u32);
    for letter in text {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    (held < 6 && bits == 0).then_some(bytes)
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
