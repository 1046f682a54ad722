//! What does a browser get? The dashboard: plain files that are part of the command, and no other address.

use super::reply::{Refusal, Reply, body};
use hyper::StatusCode;
use hyper::header::{self, HeaderName, HeaderValue};

macro_rules! script {
    ($name:literal) => {
        ($name, include_str!(concat!("../../web/", $name)))
    };
}

/// The page itself.
pub(crate) const INDEX: &str = include_str!("../../web/index.html");
/// How it looks.
pub(crate) const STYLE: &str = include_str!("../../web/style.css");
/// Its picture among other pages.
const ICON: &str = include_str!("../../web/icon.svg");
/// What it does, in the order in which it is loaded.
pub(crate) const SCRIPTS: &[(&str, &str)] = &[
    script!("dom.js"),
    script!("format.js"),
    script!("source.js"),
    script!("address.js"),
    script!("scale.js"),
    script!("draw.js"),
    script!("chart.js"),
    script!("series.js"),
    script!("panels.js"),
    script!("tiles.js"),
    script!("runs.js"),
    script!("groups.js"),
    script!("run.js"),
    script!("words.js"),
    script!("matrix.js"),
    script!("group.js"),
    script!("app.js"),
];

/// What the page may do: ask this service, and show text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/// A file of the dashboard.
pub(crate) fn file(name: &str) -> Result<Reply, Refusal> {
    let script = SCRIPTS.iter().find(|(known, _)| *known == name);
    let (kind, text) = match (name, script) {
        ("", _) => ("text/html; charset=utf-8", INDEX),
        ("icon.svg", _) => ("image/svg+xml", ICON),
        ("style.css", _) => ("text/css; charset=utf-8", STYLE),
        (_, Some((_, text))) => ("text/javascript; charset=utf-8", *text),
        _ => return Err(Refusal::not_found("http.not_found", "there is nothing under this path")),
    };
    let mut reply = body(StatusCode::OK, kind, text);
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    );
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_the_page_names_is_there_in_its_order_and_nothing_is_inline() {
        let named: Vec<&str> =
            INDEX.split("src=\"/static/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(named, SCRIPTS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        for name in named.iter().chain(&["style.css", "icon.svg", ""]) {
            let reply = file(name).unwrap();
            assert!(reply.headers()["content-security-policy"].to_str().unwrap().contains("'none'"));
        }
        assert!(!INDEX.contains(" style=") && !INDEX.contains("<style") && !INDEX.contains("javascript:"));
        assert_eq!(file("nothing.js").unwrap_err().status, 404);
    }
}
