//! Units of measurement: which words are units, and which are the same unit.

/// Spellings of units; the first of each row is the canonical one.
const UNITS: &[&[&str]] = &[
    &["m", "meter", "metre"],
    &["cm", "centimeter", "centimetre"],
    &["mm", "millimeter", "millimetre"],
    &["km", "kilometer", "kilometre"],
    &["dm", "decimeter", "decimetre"],
    &["nm", "nanometer", "nanometre"],
    &["in", "inch", "inche"],
    &["ft", "foot", "feet"],
    &["yd", "yard"],
    &["mi", "mile"],
    &["g", "gram", "gm"],
    &["kg", "kilogram"],
    &["mg", "milligram"],
    &["lb", "lbs", "pound"],
    &["oz", "ounce"],
    &["ton", "tonne"],
    &["l", "liter", "litre"],
    &["ml", "milliliter", "millilitre"],
    &["gal", "gallon"],
    &["s", "sec", "second"],
    &["min", "minute"],
    &["h", "hr", "hour"],
    &["day"],
    &["week", "wk"],
    &["month"],
    &["year", "yr"],
    &["mph"],
    &["kph", "kmh"],
    &["degree", "deg"],
    &["rad", "radian"],
    &["dollar", "usd"],
    &["cent"],
    &["euro", "eur"],
    &["yuan", "元", "rmb"],
    &["n", "newton"],
    &["j", "joule"],
    &["w", "watt"],
    &["kw", "kilowatt"],
    &["v", "volt"],
    &["a", "ampere", "amp"],
    &["hz", "hertz"],
    &["khz", "kilohertz"],
    &["mhz", "megahertz"],
    &["pa", "pascal"],
    &["k", "kelvin"],
    &["mol", "mole"],
    &["kb", "kilobyte"],
    &["mb", "megabyte"],
    &["gb", "gigabyte"],
    &["tb", "terabyte"],
    &["unit"],
    &["ev", "electronvolt"],
    &["am"],
    &["pm"],
];

/// Whether a run of letters after a number is a unit and not a product of letters.
pub(crate) fn is_unit_word(word: &str) -> bool {
    word.chars().nth(1).is_some() && is_unit(word)
}

/// The same, where a letter alone may be a unit too.
pub(crate) fn is_unit(word: &str) -> bool {
    let lower = word.to_lowercase();
    let single = singular(&lower);
    UNITS.iter().any(|row| row.contains(&lower.as_str()) || row.contains(&single))
}

fn singular(word: &str) -> &str {
    if word.len() > 3 && !word.ends_with("ss") {
        word.strip_suffix('s').map_or(word, |stem| stem)
    } else {
        word
    }
}

fn canonical_word(word: &str) -> String {
    let single = singular(word);
    match UNITS.iter().find(|row| row.contains(&word) || row.contains(&single)) {
        Some(row) => row[0].to_owned(),
        None => single.to_owned(),
    }
}

/// The canonical spelling of a unit: "square meters" and "m^2" are the same, "per" is "/".
pub(crate) fn canonical(text: &str) -> String {
    let mut out = String::new();
    let lower = text.to_lowercase();
    let mut power = "";
    let mut word = String::new();
    let spaced: String = lower
        .chars()
        .flat_map(|c| match c {
            '/' => vec![' ', '/', ' '],
            '^' => vec![' ', '^'],
            '{' | '}' | '\\' | '$' | ',' | '.' => vec![],
            c => vec![c],
        })
        .collect();
    for part in spaced.split_whitespace() {
        match part {
            "square" | "sq" => power = "^2",
            "cubic" | "cu" => power = "^3",
            "per" | "a" | "an" | "/" => out.push('/'),
            "of" | "the" | "cdot" => {}
            "squared" => out.push_str("^2"),
            "cubed" => out.push_str("^3"),
            other => {
                if other.starts_with('^') {
                    out.push_str(other);
                } else {
                    word.clear();
                    word.push_str(&canonical_word(other));
                    if out.ends_with(char::is_alphanumeric) {
                        out.push(' ');
                    }
                    out.push_str(&word);
                    out.push_str(power);
                    power = "";
                }
            }
        }
    }
    out.push_str(power);
    match out.as_str() {
        "mph" => "mi/h".to_owned(),
        "kph" => "km/h".to_owned(),
        _ => out,
    }
}

/// Whether two units are the same. A currency sign goes with any money, a bare degree with any scale.
pub(crate) fn agree(a: &str, b: &str) -> bool {
    const MONEY: [&str; 4] = ["dollar", "euro", "yuan", "pound"];
    if a == "currency" && MONEY.contains(&b) || b == "currency" && MONEY.contains(&a) {
        return true;
    }
    let degrees = |a: &str, b: &str| a == "degree" && b.starts_with("degree ");
    a == b || degrees(a, b) || degrees(b, a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_unit() {
        assert_eq!(canonical("Meters"), "m");
        assert_eq!(canonical("sq. ft."), canonical("square feet"));
        assert_eq!(canonical("m/s^2"), canonical("meters per second squared"));
        assert_eq!(canonical("km/h"), canonical("kilometers per hour"));
        assert_ne!(canonical("cm"), canonical("m"));
        assert!(agree(&canonical("units"), &canonical("unit")));
        assert!(agree("currency", &canonical("dollars")));
        assert!(!agree(&canonical("units"), &canonical("cm")));
    }
}
