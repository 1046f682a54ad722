//! API keys: sent to the judge, never shown, and redacted where a server repeats them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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
        let encoded = STANDARD.encode(&self.0);
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
        // In base64 with no, one and two letters of padding.
        for (key, repeated) in [("abcdef", "YWJjZGVm"), ("abcde", "YWJjZGU="), ("abcd", "YWJjZA==")] {
            assert!(Secret::new(key).redact(repeated).starts_with("***"), "{key}");
        }
    }
}
