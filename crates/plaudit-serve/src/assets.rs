//! The dashboard's files, compiled in: served as they are, or joined into one page that needs no service.

use crate::http::response::{ApiError, body};
use axum::response::Response;
use hyper::StatusCode;
use hyper::header::{self, HeaderName, HeaderValue};

macro_rules! script {
    ($name:literal) => {
        ($name, include_str!(concat!("../web/", $name)))
    };
}

/// The page, whose script tags give the order of the scripts.
const INDEX: &str = include_str!("../web/index.html");
const STYLE: &str = include_str!("../web/style.css");
const ICON: &str = include_str!("../web/icon.svg");
/// The scripts, in the order of the page (a test compares them).
const SCRIPTS: &[(&str, &str)] = &[
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
    script!("items.js"),
    script!("group.js"),
    script!("app.js"),
];

/// The content security policy of the page: it may ask this service and nobody else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/// A file of the dashboard.
pub(crate) fn file(name: &str) -> Result<Response, ApiError> {
    let script = SCRIPTS.iter().find(|(known, _)| *known == name);
    let (kind, text) = match (name, script) {
        ("", _) => ("text/html; charset=utf-8", INDEX),
        ("icon.svg", _) => ("image/svg+xml", ICON),
        ("style.css", _) => ("text/css; charset=utf-8", STYLE),
        (_, Some((_, text))) => ("text/javascript; charset=utf-8", *text),
        _ => return Err(ApiError::no_such_path()),
    };
    let mut response = body(StatusCode::OK, kind, text);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    );
    Ok(response)
}

/// The content security policy of a standalone page: it may run its own scripts and ask nobody.
const ALONE: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

/// The dashboard as one HTML file. `data` holds the answers of the service by path.
pub fn standalone_page(data: &serde_json::Value) -> String {
    // Escaped, so that no tag in the data can end the script element.
    let data = data.to_string().replace('<', "\\u003c");
    let scripts: String = SCRIPTS.iter().map(|(_, text)| format!("<script>\n{text}</script>\n")).collect();
    let (head, rest) = INDEX.split_once("<link").unwrap_or((INDEX, ""));
    let body = rest.split_once("</head>").map_or(rest, |(_, body)| body);
    let (body, _) = body.split_once("<script").unwrap_or((body, ""));
    format!(
        "{head}<meta http-equiv=\"Content-Security-Policy\" content=\"{ALONE}\">\n<style>\n{STYLE}</style>\n</head>{body}<script type=\"application/json\" id=\"data\">{data}</script>\n{scripts}</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_and_script_list_agree() {
        let named: Vec<&str> =
            INDEX.split("src=\"/static/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(named, SCRIPTS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        for name in named.iter().chain(&["style.css", "icon.svg", ""]) {
            let response = file(name).unwrap();
            assert!(response.headers()["content-security-policy"].to_str().unwrap().contains("'none'"));
        }
        assert!(!INDEX.contains(" style=") && !INDEX.contains("<style") && !INDEX.contains("javascript:"));
        assert_eq!(file("nothing.js").unwrap_err().status, 404);
    }

    #[test]
    fn standalone_page_is_self_contained() {
        let hostile = "</script><script>alert(1)</script><!--";
        let page = standalone_page(&serde_json::json!({ "/v1/runs": hostile }));
        assert!(!page.contains("/static/") && !page.contains(hostile));
        assert!(SCRIPTS.iter().all(|(_, text)| page.contains(text) && !text.contains("</script")));
        assert!(!STYLE.contains("</style") && page.ends_with("</html>\n"));
        let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["/v1/runs"], hostile);
    }
}
