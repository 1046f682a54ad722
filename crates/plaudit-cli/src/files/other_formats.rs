//! Recognises text formats that are not JSON lines (CSV, TSV, JSON over several lines), and says how to convert them.

/// How much of the input is looked at.
const LOOKED_AT: usize = 64 << 10;
/// The longest name of a column, in characters.
const MAX_NAME: usize = 64;

/// What is said of an input that is not JSON lines, by its name and its first bytes; nothing where it may be.
pub(super) fn describe(name: &str, start: &[u8]) -> Option<String> {
    let start = String::from_utf8_lossy(&start[..start.len().min(LOOKED_AT)]);
    let mut lines = start.lines().map(str::trim_end).filter(|line| !line.trim_start().is_empty());
    let (first, second) = (lines.next()?, lines.next().unwrap_or(""));
    if first.trim() == "{" && second.trim_start().starts_with('"') {
        let message =
            "an object is spread over several lines; one object a line is wanted, as `jq -c .` makes it";
        return Some(message.to_owned());
    }
    let (kind, separator) = table(name, first, second)?;
    Some(format!(
        "this looks like {kind}; JSON lines or Parquet are wanted. Convert it: `{}`",
        convert(name, separator)
    ))
}

/// The format and the separator of a table, by the name of the file or by a first line of column names.
fn table(name: &str, first: &str, second: &str) -> Option<(&'static str, char)> {
    let is_json = |line: &str| line.trim_start().starts_with(['{', '[']);
    if is_json(first) {
        return None;
    }
    let is_header = |separator: &char| {
        let cells: Vec<&str> = first.split(*separator).collect();
        cells.len() > 1 && cells.iter().all(|cell| is_name(cell))
    };
    let separator = ['\t', ',', ';'].into_iter().find(is_header);
    let lower = name.to_lowercase();
    match separator {
        _ if lower.ends_with(".tsv") => Some(("TSV", '\t')),
        found if lower.ends_with(".csv") => Some(("CSV", found.unwrap_or(','))),
        Some('\t') if !second.is_empty() && !is_json(second) => Some(("TSV", '\t')),
        Some(found) if !second.is_empty() && !is_json(second) => Some(("CSV", found)),
        _ => None,
    }
}

/// Whether a cell looks like the name of a column.
fn is_name(cell: &str) -> bool {
    let cell = cell.trim();
    let cell = cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"')).unwrap_or(cell);
    let is_letter = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | ' ');
    cell.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
        && cell.chars().all(is_letter)
        && cell.chars().count() <= MAX_NAME
}

/// A command that makes JSON lines of a table, with what every Python has.
fn convert(name: &str, separator: char) -> String {
    let delimiter = match separator {
        ',' => String::new(),
        other => format!(", delimiter={:?}", other.to_string()),
    };
    let stem = match name.rsplit_once('.') {
        Some((stem, extension)) if !extension.contains('/') => stem,
        _ => name,
    };
    let (from, to) = if name == super::STDIN { ("FILE", "FILE") } else { (name, stem) };
    let quoted = |path: String| {
        let plain = path.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-".contains(letter));
        if plain { path } else { format!("'{}'", path.replace('\'', "'\\''")) }
    };
    format!(
        "python3 -c 'import csv,json,sys; csv.field_size_limit(2**31-1); \
         [print(json.dumps(row)) for row in csv.DictReader(sys.stdin{delimiter})]' < {} > {}",
        quoted(from.to_owned()),
        quoted(format!("{to}.jsonl"))
    )
}
