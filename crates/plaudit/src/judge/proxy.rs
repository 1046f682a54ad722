//! Proxies: through which one a judge is asked, by its key `proxy` or by the usual environment variables (`HTTPS_PROXY`,
//! `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`).

use super::address;
use super::secret::Secret;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::Url;
use std::fmt;

/// What the key `proxy` says where the environment is not to be asked.
pub(super) const NONE: &str = "none";

/// The kinds of proxies that the HTTP client speaks to.
const SCHEMES: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];

/// The value of an environment variable.
pub type Variable<'v> = &'v dyn Fn(&str) -> Option<String>;

/// A proxy on the way to a judge. It is shown without its name and password.
#[derive(Debug, Clone)]
pub struct Proxy {
    url: Secret,
    shown: String,
    /// What names it: the key of the recipe, or the variable.
    source: String,
    /// `name:password` and the password alone, as its address writes them.
    credentials: Vec<Secret>,
}

impl Proxy {
    /// The proxy on the way to an address: the one that the recipe names, else that of the environment. What runs on this
    /// machine is asked through a proxy only where the recipe says so.
    pub(super) fn find(
        written: Option<&str>,
        base_url: &str,
        variable: Variable<'_>,
    ) -> Result<Option<Self>, String> {
        match written {
            Some(NONE) => return Ok(None),
            Some(address) => return Self::new(address, "the key proxy").map(Some),
            None if address::is_loopback(base_url) => return Ok(None),
            None => {}
        }
        // Lower case first, as curl has it. An empty one is none.
        let read = |name: &str| {
            let mut spellings = [name.to_ascii_lowercase(), name.to_owned()].into_iter();
            spellings
                .find_map(|name| variable(&name).filter(|value| !value.is_empty()).map(|value| (name, value)))
        };
        let own = if base_url.starts_with("https://") { "HTTPS_PROXY" } else { "HTTP_PROXY" };
        let Some((name, value)) = read(own).or_else(|| read("ALL_PROXY")) else { return Ok(None) };
        if read("NO_PROXY").is_some_and(|(_, hosts)| is_exempt(base_url, &hosts)) {
            return Ok(None);
        }
        Self::new(&value, &name).map(Some)
    }

    fn new(address: &str, source: &str) -> Result<Self, String> {
        // Only its name is told: the value may hold a password.
        let url = parse(address).map_err(|why| format!("the proxy that {source} names {why}"))?;
        let credentials = match (url.username(), url.password()) {
            ("", None) => Vec::new(),
            (name, None) => vec![Secret::new(name)],
            (name, Some(password)) => vec![Secret::new(format!("{name}:{password}")), Secret::new(password)],
        };
        let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
        let shown = format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or(""));
        Ok(Self { url: Secret::new(url), shown, source: source.to_owned(), credentials })
    }

    /// Its address with name and password, for the client that needs them.
    pub(super) fn url(&self) -> &Secret {
        &self.url
    }

    /// What of it must not be shown.
    pub(super) fn credentials(&self) -> &[Secret] {
        &self.credentials
    }

    /// Whether its own certificate is checked.
    #[cfg(feature = "tls")]
    pub(super) fn is_encrypted(&self) -> bool {
        self.shown.starts_with("https://")
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, named by {}", self.shown, self.source)
    }
}

/// Whether the key `proxy` of a recipe can be used: a plain address, or `none`.
pub(super) fn check(written: &str) -> Result<(), &'static str> {
    if written == NONE {
        return Ok(());
    }
    if written.contains('@') {
        return Err("must hold no name and password: those belong into HTTPS_PROXY or HTTP_PROXY");
    }
    if written.contains(['$', '?', '#', '\\']) || !written.contains("://") {
        return Err("must be an address such as http://proxy:3128, or none");
    }
    parse(written).map(drop)
}

/// The address of a proxy. Without a scheme it is one of HTTP, as curl has it.
fn parse(address: &str) -> Result<Url, &'static str> {
    let (address, unreadable) = (address.trim(), "is not an address such as http://proxy:3128");
    let url = match address.contains("://") {
        true => Url::parse(address),
        false => Url::parse(&format!("http://{address}")),
    };
    let url = url.map_err(|_| unreadable)?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err(unreadable);
    }
    if !SCHEMES.contains(&url.scheme()) {
        return Err("must begin with http://, https:// or socks5://");
    }
    if cfg!(not(feature = "tls")) && url.scheme() == "https" {
        return Err("needs TLS, which this plaudit was built without: build it with the feature tls");
    }
    Ok(url)
}

/// Whether `NO_PROXY` names the host of an address: names with all below them, addresses, networks, or `*`.
fn is_exempt(base_url: &str, hosts: &str) -> bool {
    let matcher = Matcher::builder().all("http://proxy").no(hosts.replace("*.", ".")).build();
    base_url.parse().is_ok_and(|address| matcher.intercept(&address).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(base_url: &str, written: Option<&str>, variables: &[(&str, &str)]) -> Option<String> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Proxy::find(written, base_url, &variable).expect("readable").map(|proxy| proxy.to_string())
    }

    #[test]
    fn the_variable_of_the_scheme_comes_before_that_of_all() {
        let all = [("HTTPS_PROXY", "http://s:1"), ("http_proxy", "h:2"), ("ALL_PROXY", "socks5h://a:3")];
        let named = |base_url: &str, from: usize| found(base_url, None, &all[from..]);
        assert_eq!(named("https://api.example/v1", 0).as_deref(), Some("http://s:1, named by HTTPS_PROXY"));
        assert_eq!(named("http://api.example/v1", 0).as_deref(), Some("http://h:2, named by http_proxy"));
        assert_eq!(named("https://api.example/v1", 1).as_deref(), Some("socks5h://a:3, named by ALL_PROXY"));
        assert_eq!(named("https://api.example/v1", 3), None);
        assert_eq!(found("http://api.example/v1", None, &[("HTTP_PROXY", ""), ("http_proxy", "")]), None);
    }

    #[test]
    fn hosts_of_no_proxy_and_this_machine_are_asked_directly() {
        let variables =
            [("ALL_PROXY", "http://p:1"), ("NO_PROXY", "localhost, 10.0.0.0/8,.corp.example,*.lab.example")];
        for direct in [
            "http://10.0.0.5:8000/v1",
            "https://vllm.corp.example/v1",
            "https://corp.example/v1",
            "http://gpu.lab.example:8000",
            "http://127.0.0.1:8000/v1",
            "http://[::1]:8000/v1",
            "http://judge.localhost/v1",
        ] {
            assert_eq!(found(direct, None, &variables), None, "{direct}");
        }
        for through in ["https://api.example/v1", "http://11.0.0.5/v1", "http://notcorp.example/v1"] {
            assert!(found(through, None, &variables).is_some(), "{through}");
        }
        assert_eq!(found("https://api.example/v1", None, &[("ALL_PROXY", "p:1"), ("no_proxy", "*")]), None);
    }

    #[test]
    fn the_recipe_comes_before_the_environment() {
        let variables = [("ALL_PROXY", "http://p:1"), ("NO_PROXY", "*")];
        assert_eq!(found("https://api.example/v1", Some("none"), &variables[..1]), None);
        let named = found("http://127.0.0.1:8000/v1", Some("http://own:2"), &variables);
        assert_eq!(named.as_deref(), Some("http://own:2, named by the key proxy"));
        for good in ["none", "http://proxy:3128", "socks5://10.0.0.1:1080"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in
            ["proxy:3128", "http://name:word@proxy", "ftp://proxy", "http://", "http://p?x", "$PROXY", ""]
        {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_password_of_a_proxy_is_shown_nowhere() {
        let variable = |value: &'static str| move |_: &str| Some(value.to_owned());
        let proxy = Proxy::find(None, "https://api.example", &variable("http://me:hidden@p:1"));
        let proxy = proxy.expect("readable").expect("a proxy");
        assert!(!format!("{proxy} {proxy:?}").contains("hidden"));
        assert_eq!(proxy.credentials()[0].redact("Basic bWU6aGlkZGVu"), "Basic ***");
        let error = Proxy::find(None, "https://api.example", &variable("ftp://me:hidden@p:1"));
        assert_eq!(
            error.expect_err("refused"),
            "the proxy that https_proxy names must begin with http://, https:// or socks5://"
        );
    }
}
