//! YAML documents: the events of the parser, with PyYAML's meaning of plain scalars, aliases and merge keys.

use super::{Dialect, DocumentError, MAX_DEPTH, MAX_VALUES};
use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

pub(super) fn read(text: &str, dialect: Dialect) -> Result<Value, DocumentError> {
    // The parser would take a NUL for the end.
    if memchr::memchr(0, text.as_bytes()).is_some() {
        return Err(DocumentError::Syntax);
    }
    let mut reader = YamlReader {
        dialect,
        open: Vec::new(),
        anchors: BTreeMap::new(),
        values: 0,
        root: None,
        documents: 0,
    };
    for event in Parser::new_from_str(text) {
        let (event, _) = event.map_err(|error| {
            let deep = error.info().contains("recursion limit");
            if deep { DocumentError::TooLarge } else { DocumentError::Syntax }
        })?;
        reader.event(event)?;
    }
    Ok(reader.root.unwrap_or(Value::Null))
}

/// A list or map whose end has not been read.
struct OpenYaml {
    anchor: usize,
    /// How many values there were when it began.
    values: usize,
    body: YamlBody,
}

enum YamlBody {
    List(Vec<Value>),
    /// What is merged in comes after the map's own keys, which win.
    Map {
        entries: Map<String, Value>,
        merged: Vec<Value>,
        key: Option<YamlKey>,
    },
}

enum YamlKey {
    Text(String),
    Merge,
}

struct YamlReader {
    dialect: Dialect,
    open: Vec<OpenYaml>,
    /// Values that have a name, with how many values they hold.
    anchors: BTreeMap<usize, (Value, usize)>,
    values: usize,
    root: Option<Value>,
    documents: usize,
}

impl YamlReader {
    fn event(&mut self, event: Event<'_>) -> Result<(), DocumentError> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 { Err(DocumentError::Syntax) } else { Ok(()) }
            }
            Event::Alias(anchor) => {
                // One that its own value holds has no end.
                let (value, count) = self.anchors.get(&anchor).ok_or(DocumentError::Syntax)?;
                let (value, count) = (value.clone(), *count);
                self.count(count)?;
                self.place(value)
            }
            Event::Scalar(text, style, anchor, tag) => self.scalar(&text, style, anchor, tag),
            Event::SequenceStart(anchor, tag) => {
                check_tag(tag.as_deref(), "seq")?;
                self.begin(anchor, YamlBody::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                check_tag(tag.as_deref(), "map")?;
                self.begin(anchor, YamlBody::Map { entries: Map::new(), merged: Vec::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn count(&mut self, values: usize) -> Result<(), DocumentError> {
        self.values += values;
        if self.values > MAX_VALUES { Err(DocumentError::TooLarge) } else { Ok(()) }
    }

    fn wants_key(&self) -> bool {
        matches!(self.open.last(), Some(OpenYaml { body: YamlBody::Map { key: None, .. }, .. }))
    }

    fn begin(&mut self, anchor: usize, body: YamlBody) -> Result<(), DocumentError> {
        // PyYAML refuses lists and maps as keys, because they cannot be hashed.
        if self.wants_key() {
            return Err(DocumentError::Syntax);
        }
        if self.open.len() == MAX_DEPTH {
            return Err(DocumentError::TooLarge);
        }
        self.count(1)?;
        self.open.push(OpenYaml { anchor, values: self.values - 1, body });
        Ok(())
    }

    fn end(&mut self) -> Result<(), DocumentError> {
        let Some(open) = self.open.pop() else { return Err(DocumentError::Syntax) };
        let value = match open.body {
            YamlBody::List(items) => Value::Array(items),
            YamlBody::Map { mut entries, merged, .. } => {
                for map in merged {
                    let Value::Object(map) = map else { return Err(DocumentError::Syntax) };
                    for (key, value) in map {
                        entries.entry(key).or_insert(value);
                    }
                }
                Value::Object(entries)
            }
        };
        if open.anchor > 0 {
            let count = self.values - open.values;
            self.count(count)?;
            self.anchors.insert(open.anchor, (value.clone(), count));
        }
        self.place(value)
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<Cow<'_, Tag>>,
    ) -> Result<(), DocumentError> {
        self.count(1)?;
        let plain = style == ScalarStyle::Plain;
        if plain && tag.is_none() && text == "<<" && self.wants_key() {
            return self.set_key(YamlKey::Merge);
        }
        let value = match tag.as_deref() {
            None if plain => resolve(text, self.dialect)?,
            None => Value::String(text.to_owned()),
            Some(tag) => tagged(tag, text, self.dialect)?,
        };
        if anchor > 0 {
            self.anchors.insert(anchor, (value.clone(), 1));
        }
        self.place(value)
    }

    fn set_key(&mut self, new: YamlKey) -> Result<(), DocumentError> {
        if let Some(OpenYaml { body: YamlBody::Map { key, .. }, .. }) = self.open.last_mut() {
            *key = Some(new);
        }
        Ok(())
    }

    /// A value where it belongs: as the next key, as the value of the last one, or in a list.
    fn place(&mut self, value: Value) -> Result<(), DocumentError> {
        if self.wants_key() {
            let text = match value {
                Value::String(text) => text,
                Value::Array(_) | Value::Object(_) => return Err(DocumentError::Syntax),
                // To Python, the key `on` is true and not the text "on".
                other if self.dialect == Dialect::Python => format!("\u{0}{other}"),
                other => other.to_string(),
            };
            return self.set_key(YamlKey::Text(text));
        }
        match self.open.last_mut().map(|open| &mut open.body) {
            None => self.root = Some(value),
            Some(YamlBody::List(items)) => items.push(value),
            Some(YamlBody::Map { entries, merged, key }) => match (key.take(), value) {
                (Some(YamlKey::Text(key)), value) => {
                    entries.insert(key, value);
                }
                (Some(YamlKey::Merge), Value::Array(maps)) => merged.extend(maps),
                (Some(YamlKey::Merge), map) => merged.push(map),
                (None, _) => return Err(DocumentError::Syntax),
            },
        }
        Ok(())
    }
}

/// The name of a tag of YAML's own.
fn core_name(tag: &Tag) -> Option<&str> {
    tag.is_yaml_core_schema().then_some(tag.suffix.as_str())
}

fn check_tag(tag: Option<&Tag>, wanted: &str) -> Result<(), DocumentError> {
    match tag {
        None => Ok(()),
        Some(tag) if core_name(tag) == Some(wanted) || tag.handle == "!" && tag.suffix.is_empty() => Ok(()),
        Some(_) => Err(DocumentError::Syntax),
    }
}

fn tagged(tag: &Tag, text: &str, dialect: Dialect) -> Result<Value, DocumentError> {
    if tag.handle.is_empty() && tag.suffix == "!" || tag.handle == "!" && tag.suffix.is_empty() {
        return Ok(Value::String(text.to_owned()));
    }
    let value = match core_name(tag) {
        Some("str") => return Ok(Value::String(text.to_owned())),
        // A number that is tagged needs no point and no sign of its exponent.
        Some("float") => match (resolve(text, dialect)?, text.parse::<f64>()) {
            (Value::String(_), Ok(size)) if text.bytes().any(|byte| byte.is_ascii_digit()) => {
                super::number(size, dialect)?
            }
            (value, _) => value,
        },
        Some("int" | "bool" | "null") => resolve(text, dialect)?,
        Some("timestamp") => return Err(DocumentError::Foreign),
        _ => return Err(DocumentError::Syntax),
    };
    let fits = match core_name(tag) {
        Some("int") => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        Some("float") => value.is_number(),
        Some("bool") => value.is_boolean(),
        _ => value.is_null(),
    };
    if fits { Ok(value) } else { Err(DocumentError::Syntax) }
}

/// The value of a plain scalar by the rules of YAML 1.1, as PyYAML has them.
fn resolve(text: &str, dialect: Dialect) -> Result<Value, DocumentError> {
    match text {
        // Python has no value for these.
        "=" | "<<" if dialect == Dialect::Python => return Err(DocumentError::Syntax),
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Ok(Value::Bool(true));
        }
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Ok(Value::Bool(false));
        }
        ".nan" | ".NaN" | ".NAN" => return super::number(f64::NAN, dialect),
        _ => {}
    }
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'-') => (-1.0, &text[1..]),
        Some(b'+') => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if matches!(digits, ".inf" | ".Inf" | ".INF") {
        return super::number(f64::INFINITY * sign, dialect);
    }
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return Ok(Value::String(text.to_owned()));
    }
    if let Some((digits, radix)) = whole(digits) {
        let signed = format!("{}{digits}", if sign < 0.0 { "-" } else { "" });
        return super::integer(&signed, radix).ok_or(DocumentError::Syntax);
    }
    if is_timestamp(text) {
        return Err(DocumentError::Foreign);
    }
    match sexagesimal(digits).or_else(|| decimal(digits, sign < 0.0 || text.starts_with('+'))) {
        Some((size, true)) => super::integer(&format!("{:.0}", size * sign), 10).ok_or(DocumentError::Syntax),
        Some((size, false)) => super::number(size * sign, dialect),
        None => Ok(Value::String(text.to_owned())),
    }
}

/// The digits and the radix of a whole number.
fn whole(text: &str) -> Option<(String, u32)> {
    let of = |digits: &str, radix: u32| {
        let clean = digits.replace('_', "");
        let fits = !clean.is_empty() && clean.chars().all(|digit| digit.is_digit(radix));
        fits.then_some((clean, radix))
    };
    match text.as_bytes() {
        b"0" => of(text, 10),
        [b'0', b'b', ..] => of(&text[2..], 2),
        [b'0', b'x', ..] => of(&text[2..], 16),
        [b'0', ..] => of(&text[1..], 8),
        [b'1'..=b'9', ..] => of(text, 10),
        _ => None,
    }
}

/// Numbers to the base 60, such as `12:30`: the size, and whether it is whole.
fn sexagesimal(text: &str) -> Option<(f64, bool)> {
    let (first, rest) = text.split_once(':')?;
    let (places, part) = rest.split_once('.').map_or((rest, None), |(places, part)| (places, Some(part)));
    let clean = first.replace('_', "");
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let leading = part.is_some() || !first.starts_with('0');
    if !digits(&clean) || !first.starts_with(|first: char| first.is_ascii_digit()) || !leading {
        return None;
    }
    let mut size: f64 = clean.parse().ok()?;
    for place in places.split(':') {
        if !digits(place) || place.len() > 2 || (place.len() == 2 && place.as_bytes()[0] > b'5') {
            return None;
        }
        size = size * 60.0 + place.parse::<f64>().ok()?;
    }
    match part {
        None => Some((size, true)),
        Some(part) => {
            let part = part.replace('_', "");
            (part.is_empty() || digits(&part)).then_some(())?;
            Some((size + format!("0.{part}0").parse::<f64>().ok()?, false))
        }
    }
}

/// A decimal number with a point, whose exponent has a sign.
fn decimal(text: &str, signed: bool) -> Option<(f64, bool)> {
    let (whole, rest) = text.split_once('.')?;
    let clean = |digits: &str| {
        let fits = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
        fits.then(|| digits.replace('_', ""))
    };
    let (part, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    // Without digits before the point there is no sign, and there are digits after it.
    let begins = |digits: &str| digits.starts_with(|first: char| first.is_ascii_digit());
    if !(begins(whole) || whole.is_empty() && !signed && begins(part)) {
        return None;
    }
    if let Some(exponent) = exponent {
        let power = exponent.strip_prefix(['-', '+'])?;
        (!power.is_empty() && power.bytes().all(|byte| byte.is_ascii_digit())).then_some(())?;
    }
    let written = format!("0{}.{}0e{}", clean(whole)?, clean(part)?, exponent.unwrap_or("0"));
    written.parse().ok().map(|size| (size, false))
}

/// Whether a scalar is a date, or a date with a time.
fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    if digits(0) != 4 || bytes.get(4) != Some(&b'-') {
        return false;
    }
    let month = digits(5);
    if !(1..=2).contains(&month) || bytes.get(5 + month) != Some(&b'-') {
        return false;
    }
    let day = digits(6 + month);
    let end = 6 + month + day;
    if !(1..=2).contains(&day) {
        return false;
    }
    let rest = &text[end..];
    if rest.is_empty() {
        return month == 2 && day == 2;
    }
    let time = match rest.strip_prefix(['T', 't']) {
        Some(time) => time,
        None if rest.starts_with([' ', '\t']) => rest.trim_start_matches([' ', '\t']),
        None => return false,
    };
    let mut parts = time.splitn(3, ':');
    let (hour, minute, second) = (parts.next(), parts.next(), parts.next());
    let is = |part: Option<&str>, sizes: std::ops::RangeInclusive<usize>| {
        part.is_some_and(|part| sizes.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let second = second.unwrap_or("");
    let after = second.trim_start_matches(|char: char| char.is_ascii_digit());
    let fraction = after
        .strip_prefix('.')
        .map_or(after, |rest| rest.trim_start_matches(|char: char| char.is_ascii_digit()));
    let zone = fraction.trim_start_matches([' ', '\t']);
    let zone_fits = match zone.strip_prefix(['+', '-']) {
        _ if zone.is_empty() || zone == "Z" => true,
        Some(zone) => {
            let (hours, minutes) =
                zone.split_once(':').map_or((zone, None), |(hours, minutes)| (hours, Some(minutes)));
            is(Some(hours), 1..=2) && (minutes.is_none() || is(minutes, 2..=2))
        }
        None => false,
    };
    is(hour, 1..=2) && is(minute, 2..=2) && second.len() - after.len() == 2 && zone_fits
}
