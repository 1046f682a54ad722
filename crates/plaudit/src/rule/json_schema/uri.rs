//! URI references by RFC 3986: resolved against a base, decoded, and checked for their form.

use std::borrow::Cow;

/// The parts of a URI reference without its fragment.
struct Parts<'u> {
    scheme: Option<&'u str>,
    authority: Option<&'u str>,
    path: &'u str,
    query: Option<&'u str>,
}

fn parts(uri: &str) -> Parts<'_> {
    let (scheme, rest) = match uri.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
        _ => (None, uri),
    };
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
    match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            Parts { scheme, authority: Some(&rest[..end]), path: &rest[end..], query }
        }
        None => Parts { scheme, authority: None, path: rest, query },
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// The URI of a reference without a fragment, as one in a document of a URI (RFC 3986, 5.2.2).
pub(super) fn resolve(base: &str, reference: &str) -> String {
    let own = parts(reference);
    if own.scheme.is_some() {
        return reference.to_owned();
    }
    let base = parts(base);
    let (authority, path, query) = if own.authority.is_some() {
        (own.authority, without_dots(own.path), own.query)
    } else if own.path.is_empty() {
        (base.authority, base.path.to_owned(), own.query.or(base.query))
    } else if own.path.starts_with('/') {
        (base.authority, without_dots(own.path), own.query)
    } else {
        let folder = match base.path.rfind('/') {
            Some(end) => &base.path[..=end],
            None if base.authority.is_some() => "/",
            None => "",
        };
        (base.authority, without_dots(&format!("{folder}{}", own.path)), own.query)
    };
    let mut uri = String::new();
    for (before, part, after) in
        [("", base.scheme, ":"), ("//", authority, ""), ("", Some(&*path), ""), ("?", query, "")]
    {
        if let Some(part) = part {
            uri.extend([before, part, after]);
        }
    }
    uri
}

fn without_dots(path: &str) -> String {
    let mut steps: Vec<&str> = Vec::new();
    let mut all = path.split('/').peekable();
    while let Some(step) = all.next() {
        let last = all.peek().is_none();
        match step {
            "." => {}
            ".." => {
                // The empty step before the first slash stays.
                if steps.len() > 1 || steps.first().is_some_and(|first| !first.is_empty()) {
                    steps.pop();
                }
            }
            step => steps.push(step),
        }
        if last && matches!(step, "." | "..") {
            steps.push("");
        }
    }
    steps.join("/")
}

/// A text with its escapes replaced; nothing where they are no UTF-8.
pub(super) fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| first == b'%').and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// Whether a text has the form of a URI, or of a reference to one. With `iri` letters of any script may stand in it.
pub(super) fn is_uri(text: &str, reference: bool, iri: bool) -> bool {
    let (own, fragment) = text.split_once('#').map_or((text, None), |(own, rest)| (own, Some(rest)));
    let uri = parts(own);
    if uri.scheme.is_none() && !reference {
        return false;
    }
    // The first step of a relative path has no colon, because it would be taken for a scheme.
    let first = uri.path.split('/').next().unwrap_or("");
    if uri.scheme.is_none() && uri.authority.is_none() && first.contains(':') {
        return false;
    }
    let fits = |text: &str, more: &str| has_chars(text, more, iri);
    fits(uri.path, ":@/")
        && uri.query.is_none_or(|query| fits(query, ":@/?"))
        && fragment.is_none_or(|fragment| fits(fragment, ":@/?"))
        && uri.authority.is_none_or(|authority| is_authority(authority, iri))
}

fn is_authority(authority: &str, iri: bool) -> bool {
    let (user, rest) = authority.rsplit_once('@').map_or(("", authority), |(user, rest)| (user, rest));
    let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inside, after)) => {
            let future = |text: &str| {
                text.strip_prefix(['v', 'V']).and_then(|rest| rest.split_once('.')).is_some_and(
                    |(version, rest)| {
                        !version.is_empty()
                            && version.bytes().all(|byte| byte.is_ascii_hexdigit())
                            && !rest.is_empty()
                            && has_chars(rest, ":", false)
                            && !rest.contains('%')
                    },
                )
            };
            if inside.parse::<std::net::Ipv6Addr>().is_err() && !future(inside) {
                return false;
            }
            ("", if after.is_empty() { Some("") } else { after.strip_prefix(':') })
        }
        None => rest.split_once(':').map_or((rest, Some("")), |(host, port)| (host, Some(port))),
    };
    has_chars(user, ":", iri)
        && has_chars(host, "", iri)
        && port.is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a text is made of unreserved characters, escapes, `sub-delims` and some more.
fn has_chars(text: &str, more: &str, iri: bool) -> bool {
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        let fits = match char {
            '%' => (0..2).all(|_| rest.next().is_some_and(|digit| digit.is_ascii_hexdigit())),
            _ if char.is_ascii_alphanumeric() || "-._~!$&'()*+,;=".contains(char) => true,
            _ if char.is_ascii() => more.contains(char),
            _ => iri && !char.is_control() && !char.is_whitespace(),
        };
        if !fits {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_as_rfc_3986_says() {
        let base = "http://a/b/c/d;p?q";
        for (reference, uri) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../../g", "http://a/g"),
        ] {
            assert_eq!(resolve(base, reference), uri, "{reference}");
        }
        assert_eq!(resolve("", "list.json"), "list.json");
        assert_eq!(resolve("http://a", "b"), "http://a/b");
    }

    #[test]
    fn forms_of_uris() {
        for good in ["http://a.b/c?d#e", "urn:x:y", "mailto:a@b", "http://[::1]:80/", "a:%20"] {
            assert!(is_uri(good, false, false), "{good}");
        }
        for bad in
            ["//a/b", "a", "http://a b", "http://[::1", "a:%2", "http://a:b/", "http://ä/", "a:\\b", ":a"]
        {
            assert!(!is_uri(bad, false, false), "{bad}");
        }
        assert!(is_uri("../a", true, false) && is_uri("http://ä/ö", false, true));
    }
}
