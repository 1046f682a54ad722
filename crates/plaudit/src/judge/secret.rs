//! API keys: sent to the judge, never shown, and redacted where a server repeats them.

use std::borrow::Cow;
use std::fmt;

/// A text that is sent to the judge and shown to nobody.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the header that needs it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// A text of somebody else's with stars in place of this one: as it is, as a URL or JSON would write it, or in base64.
    /// What is shorter than four letters is no secret, and is part of too many words.
    pub(super) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut shown = Cow::Borrowed(text);
        if self.0.len() < SHORTEST {
            return shown;
        }
        let json = serde_json::Value::from(self.0.as_str()).to_string();
        let encoded = base64(self.0.as_bytes());
        let forms = [&self.0, json.trim_matches('"'), &percent(&self.0), encoded.trim_end_matches('=')];
        for form in forms.into_iter().filter(|form| form.len() >= SHORTEST) {
            if shown.contains(form) {
                shown = Cow::Owned(shown.replace(form, "***"));
            }
        }
        shown
    }
}

/// The shortest text that is hidden.
const SHORTEST: usize = 4;

/// As a URL writes it.
fn percent(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let letter = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(letter).collect()
}

/// As RFC 4648 writes it.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |three: &[u8]| -> String {
        let at = |place: usize| u32::from(three.get(place).copied().unwrap_or(0));
        let bits = (at(0) << 16) | (at(1) << 8) | at(2);
        let letter = |place: usize| match place > three.len() {
            true => '=',
            false => char::from(LETTERS[(bits >> (18 - 6 * place)) as usize & 63]),
        };
        (0..4).map(letter).collect()
    };
    bytes.chunks(3).map(group).collect()
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::new("sk-hidden");
        assert!(!format!("{secret:?} {secret}").contains("hidden"));
    }

    #[test]
    fn a_secret_is_redacted_in_every_encoding() {
        let key = Secret::new("token/abc+12");
        for repeated in [
            "bad key token/abc+12.",
            "at /v1?key=token%2Fabc%2B12&x",
            "Basic dG9rZW4vYWJjKzEy",
            r#"{"key":"token/abc+12"}"#,
        ] {
            let shown = key.redact(repeated);
            assert!(shown.contains("***") && !shown.contains("abc") && !shown.contains("dG9r"), "{shown}");
        }
        assert_eq!(key.redact("nothing here"), "nothing here");
        assert_eq!(Secret::new("abc").redact("abc"), "abc");
        assert_eq!(
            (base64(b"a"), base64(b"ab"), base64(b"abc")),
            ("YQ==".into(), "YWI=".into(), "YWJj".into())
        );
    }
}
