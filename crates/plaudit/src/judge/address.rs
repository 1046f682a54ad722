//! Addresses of judges: the check that one is a plain http(s) URL, and how it may be shown.

use std::net::IpAddr;

/// Whether it is an address that can be asked, and nothing else: no name or password, no query, no variable.
pub(super) fn check(address: &str) -> Result<(), &'static str> {
    let rest = address.strip_prefix("http://").or_else(|| address.strip_prefix("https://"));
    let Some(rest) = rest else { return Err("must begin with http:// or https://") };
    if cfg!(not(feature = "tls")) && address.starts_with("https://") {
        return Err("needs TLS, which this plaudit was built without: build it with the feature tls");
    }
    let authority = rest.split('/').next().unwrap_or(rest);
    if authority.is_empty() || authority.starts_with(':') {
        return Err("has no host");
    }
    let is_odd = |char: char| !char.is_ascii_graphic() || matches!(char, '@' | '#' | '?' | '$' | '\\');
    if address.contains(is_odd) {
        return Err("must be a plain address: no name, password, query, fragment or variable");
    }
    if split_port(authority).1.is_some_and(|port| !port.parse::<u16>().is_ok_and(|port| port > 0)) {
        return Err("has no port between 1 and 65535");
    }
    match reqwest::Url::parse(address) {
        Ok(_) => Ok(()),
        Err(_) => Err("is not a URL"),
    }
}

/// The host of an address, and what stands for its port. The colons of an IPv6 address stand in brackets.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

/// Whether an address has a path, and not a host alone.
pub(super) fn has_path(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.split_once('/').is_some_and(|(_, path)| !path.trim_matches('/').is_empty())
}

/// An address without a name and password, as it may be shown.
pub(super) fn without_userinfo(address: &str) -> String {
    let start = address.find("://").map_or(0, |at| at + 3);
    let end = address[start..].find(['/', '?', '#']).map_or(address.len(), |at| start + at);
    match address[start..end].rfind('@') {
        Some(at) => format!("{}***{}", &address[..start], &address[start + at..]),
        None => address.to_owned(),
    }
}

/// The host of an address in small letters, without brackets and a dot at its end.
fn host(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = split_port(rest.split('/').next().unwrap_or(rest)).0.to_ascii_lowercase();
    host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_owned()
}

/// Whether an address is one of this machine.
pub(super) fn is_loopback(address: &str) -> bool {
    let host = host(address);
    match host.parse::<IpAddr>() {
        Ok(ip) => ip.is_loopback() || ip.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Whether what is sent to an address may be read on its way: without TLS, and to a host that is not on this machine or in
/// a private network. A name without a dot is one of a private network.
pub(super) fn is_unencrypted_public(address: &str) -> bool {
    if !address.starts_with("http://") {
        return false;
    }
    let host = host(address);
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => {
            let carrier = ip.octets()[0] == 100 && ip.octets()[1] & 0xc0 == 64;
            !(ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified() || carrier)
        }
        Ok(IpAddr::V6(ip)) => {
            !(ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local() || ip.is_unspecified())
        }
        Err(_) => {
            let near = [".localhost", ".local", ".internal", ".lan", ".home.arpa", ".svc", ".cluster.local"];
            host.contains('.') && !near.iter().any(|end| host.ends_with(end))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_addresses_are_taken() {
        for good in ["http://127.0.0.1:8000/v1", "https://api.openai.com/v1", "http://[::1]:8080"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "file:///etc/passwd",
            "gopher://127.0.0.1:25/_x",
            "http://evil.example@127.0.0.1/",
            "http://127.0.0.1#@api.openai.com/",
            "http://",
            "http://:80/v1",
            "${X:-http://evil}",
            "https://h/v1?key=sk-1",
            "http://h:99999/v1",
            "http://h:0",
            "http://h:/v1",
            "http://h\0/v1",
            "http://h\n/v1",
            "http://[::1]:0/",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_password_in_an_address_is_not_shown() {
        assert_eq!(without_userinfo("https://user:p@w@host/v1"), "https://***@host/v1");
        assert_eq!(without_userinfo("user:pw@host"), "***@host");
        assert_eq!(without_userinfo("http://host/a@b"), "http://host/a@b");
    }

    #[test]
    fn only_foreign_hosts_without_tls_are_open() {
        for open in ["http://api.example.com/v1", "http://8.8.8.8:8000", "http://[2001:db8::1]:80/v1"] {
            assert!(is_unencrypted_public(open), "{open}");
        }
        for near in [
            "https://api.example.com/v1",
            "http://127.0.0.1:8000/v1",
            "http://[::1]:8000",
            "http://10.0.0.5:8000/v1",
            "http://192.168.1.2",
            "http://100.64.0.9:80",
            "http://localhost:8000/v1",
            "http://vllm:8000/v1",
            "http://judge.models.svc.cluster.local/v1",
        ] {
            assert!(!is_unencrypted_public(near), "{near}");
        }
    }
}
