//! `format` of JSON Schema where it is asked to restrict: the formats of draft 2020-12.

use super::ecma;
use super::uri::is_uri;
use regex_automata::util::syntax;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The deepest nesting of a pattern. Its parser is recursive.
const MAX_DEPTH: u32 = 64;

/// A format that is known. Others restrict nothing.
#[derive(Clone, Copy)]
pub(super) struct Format(Check);

type Check = fn(&str) -> bool;

/// Every format that restricts.
const FORMATS: &[(&str, Check)] = &[
    ("date", is_date),
    ("date-time", is_date_time),
    ("duration", is_duration),
    ("email", |text| is_email(text, false)),
    ("hostname", |text| is_hostname(text, false)),
    ("idn-email", |text| is_email(text, true)),
    ("idn-hostname", |text| is_hostname(text, true)),
    ("ipv4", |text| text.parse::<Ipv4Addr>().is_ok()),
    ("ipv6", |text| text.parse::<Ipv6Addr>().is_ok()),
    ("iri", |text| is_uri(text, false, true)),
    ("iri-reference", |text| is_uri(text, true, true)),
    ("json-pointer", is_pointer),
    ("regex", is_regex),
    ("relative-json-pointer", is_relative_pointer),
    ("time", is_time),
    ("uri", |text| is_uri(text, false, false)),
    ("uri-reference", |text| is_uri(text, true, false)),
    ("uri-template", is_template),
    ("uuid", is_uuid),
];

impl Format {
    pub(super) fn named(name: &str) -> Option<Self> {
        FORMATS.iter().find(|(known, _)| *known == name).map(|(_, fits)| Self(*fits))
    }

    /// How many steps a text takes. The parts of a pattern can be large tables.
    pub(super) fn work(self, text: &str) -> usize {
        if std::ptr::fn_addr_eq(self.0, is_regex as fn(&str) -> bool) {
            text.len() * 8
        } else {
            text.len() / 4
        }
    }

    pub(super) fn fits(self, text: &str) -> bool {
        (self.0)(text)
    }
}

/// As many ASCII digits as wanted, and nothing else.
fn digits(text: &str, count: usize) -> Option<u32> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut next = |count| parts.next().and_then(|part| digits(part, count));
    let (Some(year), Some(month), Some(day)) = (next(4), next(2), next(2)) else { return false };
    let leap = year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
    let last = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=last).contains(&day) && parts.next().is_none()
}

/// `12:30:00.5Z` of RFC 3339. A leap second is the last one of a day in UTC.
fn is_time(text: &str) -> bool {
    let split = |text: &str, at: usize| text.split_at_checked(at).map(|(a, b)| (a.to_owned(), b.to_owned()));
    let Some((clock, rest)) = split(text, 8) else { return false };
    let mut parts = clock.split(':');
    let mut next = || parts.next().and_then(|part| digits(part, 2));
    let (Some(hour), Some(minute), Some(second)) = (next(), next(), next()) else { return false };
    if hour > 23 || minute > 59 || second > 60 {
        return false;
    }
    let zone = match rest.strip_prefix('.') {
        Some(part) => {
            let zone = part.trim_start_matches(|char: char| char.is_ascii_digit());
            if zone.len() == part.len() {
                return false;
            }
            zone
        }
        None => &rest,
    };
    let offset = match zone {
        "Z" | "z" => Some(0),
        _ => {
            let sign = if zone.starts_with('-') { -1 } else { 1 };
            let parts = zone.strip_prefix(['+', '-']).and_then(|zone| zone.split_once(':'));
            parts.and_then(|(hours, minutes)| {
                let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
                (hours < 24 && minutes < 60).then(|| sign * (hours * 60 + minutes).cast_signed())
            })
        }
    };
    let at = (hour * 60 + minute).cast_signed();
    offset.is_some_and(|offset| second < 60 || (at - offset).rem_euclid(24 * 60) == 24 * 60 - 1)
}

fn is_date_time(text: &str) -> bool {
    let parts = text.split_at_checked(10).filter(|(_, rest)| rest.starts_with(['T', 't']));
    parts.is_some_and(|(date, rest)| is_date(date) && is_time(&rest[1..]))
}

/// `P1Y2M3DT4H5M6S` or `P3W` of RFC 3339, appendix A.
fn is_duration(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('P') else { return false };
    let (date, time) = rest.split_once('T').map_or((rest, None), |(date, time)| (date, Some(time)));
    // The units follow one another without a gap.
    let fits = |text: &str, units: &str| {
        let (mut rest, mut next) = (text, None);
        while !rest.is_empty() {
            let after = rest.trim_start_matches(|char: char| char.is_ascii_digit());
            let unit = after.chars().next().and_then(|unit| units.find(unit));
            let follows = unit.is_some_and(|unit| next.is_none_or(|next| unit == next));
            if after.len() == rest.len() || !follows {
                return false;
            }
            next = unit.map(|unit| unit + 1);
            rest = &after[1..];
        }
        !text.is_empty()
    };
    match time {
        None => fits(date, "YMD") || fits(date, "W"),
        Some(time) => (date.is_empty() || fits(date, "YMD")) && fits(time, "HMS"),
    }
}

fn is_email(text: &str, international: bool) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let wide = |char: char| international && !char.is_ascii() && !char.is_control() && !char.is_whitespace();
    let atom = |part: &str| {
        let known = |char: char| char.is_ascii_alphanumeric() || "!#$%&'*+/=?^_`{|}~-".contains(char);
        !part.is_empty() && part.chars().all(|char| known(char) || wide(char))
    };
    let quoted = |text: &str| {
        let mut rest = text.chars();
        while let Some(char) = rest.next() {
            let char = if char == '\\' { rest.next() } else { Some(char).filter(|char| *char != '"') };
            if !char.is_some_and(|char| matches!(char, ' '..='~') || wide(char)) {
                return false;
            }
        }
        true
    };
    let local = match local.strip_prefix('"').and_then(|local| local.strip_suffix('"')) {
        Some(inside) => quoted(inside),
        None => local.split('.').all(atom),
    };
    let host = match domain.strip_prefix('[').and_then(|domain| domain.strip_suffix(']')) {
        Some(address) => match address.strip_prefix("IPv6:") {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => address.parse::<Ipv4Addr>().is_ok(),
        },
        None => is_hostname(domain, international),
    };
    local && host
}

/// A name of RFC 1123, or with letters of other scripts one of RFC 5890. Which characters IDNA allows is not looked up.
fn is_hostname(text: &str, international: bool) -> bool {
    const MAX_LENGTH: usize = 253;
    const MAX_LABEL: usize = 63;
    let stop =
        |char: char| char == '.' || international && matches!(char, '\u{3002}' | '\u{FF0E}' | '\u{FF61}');
    let label = |label: &str| {
        let letter = |char: char| {
            char.is_ascii_alphanumeric()
                || char == '-'
                || international && !char.is_ascii() && char.is_alphanumeric()
        };
        let hyphens = label.get(2..4) == Some("--");
        (1..=MAX_LABEL).contains(&label.chars().count())
            && label.chars().all(letter)
            && !label.starts_with('-')
            && !label.ends_with('-')
            // Two hyphens there are for labels of IDNA.
            && (!hyphens || label.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("xn--")) && label.len() > 4)
    };
    text.chars().count() <= MAX_LENGTH && text.split(stop).all(label)
}

fn is_pointer(text: &str) -> bool {
    let escaped = |part: &str| part.starts_with(['0', '1']);
    (text.is_empty() || text.starts_with('/')) && text.split('~').skip(1).all(escaped)
}

fn is_relative_pointer(text: &str) -> bool {
    let rest = text.trim_start_matches(|char: char| char.is_ascii_digit());
    let number = &text[..text.len() - rest.len()];
    !number.is_empty() && (number == "0" || !number.starts_with('0')) && (rest == "#" || is_pointer(rest))
}

/// Whether a pattern is one of ECMA-262, look-around and references to groups included.
fn is_regex(text: &str) -> bool {
    // Escapes of other languages that the crate knows.
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char == '\\' && chars.next().is_none_or(|next| "aAzZQEGhHxX".contains(next) && next != 'x') {
            return false;
        }
    }
    let limits = syntax::Config::new().nest_limit(MAX_DEPTH);
    match syntax::parse_with(&ecma::translated(text), &limits) {
        Ok(_) => true,
        Err(error) => error.to_string().contains("not supported"),
    }
}

/// `{...}` of RFC 6570.
fn is_template(text: &str) -> bool {
    let name = |name: &str| {
        let part = |part: &str| {
            !part.is_empty() && part.chars().all(|char| char.is_ascii_alphanumeric() || "_%".contains(char))
        };
        let (name, length) = name.split_once(':').map_or((name, None), |(name, rest)| (name, Some(rest)));
        let length = length.is_none_or(|length| {
            (1..=4).contains(&length.len())
                && !length.starts_with('0')
                && length.bytes().all(|byte| byte.is_ascii_digit())
        });
        length && name.strip_suffix('*').unwrap_or(name).split('.').all(part)
    };
    let literal = |text: &str| {
        !text.chars().any(|char| char.is_control() || " \"<>\\^`{|}".contains(char))
            && text
                .split('%')
                .skip(1)
                .all(|rest| rest.get(..2).is_some_and(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit())))
    };
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((inside, after)) = after.split_once('}') else { return false };
        let inside = inside.strip_prefix(['+', '#', '.', '/', ';', '?', '&']).unwrap_or(inside);
        if !literal(before) || !inside.split(',').all(name) {
            return false;
        }
        rest = after;
    }
    literal(rest)
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_a_form() {
        for (name, good, bad) in [
            ("date", "2024-02-29", "2023-02-29"),
            ("time", "08:30:06.283185Z", "08:30:06"),
            ("time", "15:59:60-08:00", "15:58:60-08:00"),
            ("date-time", "1990-12-31t23:59:59+01:00", "1990-12-31 23:59:59Z"),
            ("duration", "P4DT12H30M5S", "P1D2H"),
            ("duration", "P4W", "P1YT"),
            ("email", "\"joe bloggs\"@example.com", "joe..b@example.com"),
            ("email", "a@[127.0.0.1]", "2962"),
            ("idn-email", "실례@실례.테스트", "실례"),
            ("hostname", "www.example.com", "-a.example"),
            ("idn-hostname", "실례.테스트", "a..b"),
            ("ipv4", "192.168.0.1", "127.000.0.1"),
            ("ipv6", "::ffff:1.2.3.4", "::1%eth0"),
            ("uri", "urn:oasis:names", "/abc"),
            ("iri-reference", "//ƒøø.com/#a", "\\\\server"),
            ("json-pointer", "/a~1b/~0", "/a~"),
            ("relative-json-pointer", "1/a", "01/a"),
            ("relative-json-pointer", "0#", "/a"),
            ("regex", "^(?!a)b\\1", "^(a"),
            ("uri-template", "http://a/{?b*,c:3}", "http://a/{b"),
            ("uuid", "2EB8AA08-aa98-11ea-b4aa-73B441D16380", "2eb8aa08-aa98-11ea-b4aa73b441d16380x"),
        ] {
            let format = Format::named(name).unwrap();
            assert!(format.fits(good), "{name} {good}");
            assert!(!format.fits(bad), "{name} {bad}");
        }
        assert!(Format::named("int32").is_none());
    }
}
