//! Constraints that ask for CSV with a given header.

use super::test;
use crate::argument::{ArgumentError, Arguments};
use crate::constraint::{Constraint, Family, Test};
use plaudit_text::{is_space, is_word, strip};

pub(super) const TABLE: &[Constraint] = &[
    Constraint {
        id: "custom:csv_city",
        family: Family::IfBench,
        parameters: &[],
        checks: "CSV with commas: the header ID, Country, City, Year, Count and seven rows of five fields.",
        gamed: "Empty fields.",
        difference: "",
        build: csv_city,
    },
    Constraint {
        id: "custom:csv_special_character",
        family: Family::IfBench,
        parameters: &[],
        checks: "CSV with commas: the header ProductID, Category, Brand, Price, Stock, fourteen rows of five fields, and a \
                 quoted field with a character that is no letter, digit or white space.",
        gamed: "A quoted price: a decimal point is a special character.",
        difference: "The published check stops at the first quoted field with such a character: short rows after it pass.",
        build: csv_special_character,
    },
    Constraint {
        id: "custom:csv_quotes",
        family: Family::IfBench,
        parameters: &[],
        checks: "CSV with tabs: the header StudentID, Subject, Grade, Semester, Score, three rows of five fields, and every \
                 field in double quotes, those of the header too.",
        gamed: "Quoted empty fields.",
        difference: "",
        build: csv_quotes,
    },
];

/// The rows of a text as Python's `csv.reader` finds them, at most `most` and one more. Nothing where it raises, and
/// where a row has more than `widest` fields.
fn rows(text: &str, delimiter: char, most: usize, widest: usize) -> Option<Vec<Vec<String>>> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        StartRecord,
        StartField,
        InField,
        InQuotes,
        QuoteInQuotes,
        AfterLine,
    }
    use State::*;
    let mut rows = Vec::new();
    let mut row: Vec<String> = Vec::new();
    let mut field = String::new();
    let mut state = StartRecord;
    for line in text.split_inclusive('\n') {
        for c in line.chars() {
            let ends = matches!(c, '\n' | '\r');
            state = match state {
                StartRecord if ends => AfterLine,
                AfterLine if ends => AfterLine,
                // A carriage return inside a line.
                AfterLine => return None,
                StartField | InField | QuoteInQuotes if ends => {
                    row.push(std::mem::take(&mut field));
                    AfterLine
                }
                StartRecord | StartField if c == '"' => InQuotes,
                QuoteInQuotes if c == '"' => {
                    field.push(c);
                    InQuotes
                }
                StartRecord | StartField | InField | QuoteInQuotes if c == delimiter => {
                    row.push(std::mem::take(&mut field));
                    if row.len() >= widest {
                        return None;
                    }
                    StartField
                }
                StartRecord | StartField | InField | QuoteInQuotes => {
                    field.push(c);
                    InField
                }
                InQuotes if c == '"' => QuoteInQuotes,
                InQuotes => {
                    field.push(c);
                    InQuotes
                }
            };
        }
        if matches!(state, StartField | InField | QuoteInQuotes) {
            row.push(std::mem::take(&mut field));
            state = StartRecord;
        }
        if matches!(state, AfterLine | StartRecord) {
            state = StartRecord;
            rows.push(std::mem::take(&mut row));
            if rows.len() > most {
                return Some(rows);
            }
        }
    }
    if state == InQuotes {
        row.push(field);
        rows.push(row);
    }
    Some(rows)
}

/// Whether the first line is these names, each in quotes or not, with blanks after the delimiter.
fn has_header(text: &str, delimiter: char, blanks: &[char], names: [&str; 5]) -> bool {
    let mut rest = strip(text.split('\n').next().map_or("", |line| line));
    for (place, name) in names.into_iter().enumerate() {
        if place > 0 {
            let Some(after) = rest.strip_prefix(delimiter) else { return false };
            rest = after.trim_start_matches(blanks);
        }
        let quoted = rest
            .strip_prefix('"')
            .and_then(|rest| rest.strip_prefix(name))
            .and_then(|rest| rest.strip_prefix('"'));
        let Some(after) = quoted.or_else(|| rest.strip_prefix(name)) else { return false };
        rest = after;
    }
    rest.is_empty()
}

fn csv_city(_: &Arguments<'_>) -> Result<Test, ArgumentError> {
    test(|view| {
        let Some(rows) = rows(view.text(), ',', 8, 5) else { return false };
        let header = ["ID", "Country", "City", "Year", "Count"];
        rows.len() == 8 && rows[0] == header && rows[1..].iter().all(|row| row.len() == 5)
    })
}

/// The rows with the quotes of their fields kept: three for each, so that the reader leaves one.
fn quoted_rows(text: &str, delimiter: char, most: usize, widest: usize) -> Option<Vec<Vec<String>>> {
    rows(&text.replace('"', "\"\"\""), delimiter, most, widest).filter(|rows| rows.len() == most)
}

fn csv_special_character(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    test(move |view| {
        let text = view.text();
        if !has_header(text, ',', &[' ', '\t'], ["ProductID", "Category", "Brand", "Price", "Stock"]) {
            return false;
        }
        let Some(rows) = quoted_rows(text, ',', 15, if corrected { 5 } else { usize::MAX }) else {
            return false;
        };
        let mut found = false;
        for row in &rows[1..] {
            if row.len() != 5 {
                return false;
            }
            found |= row.iter().any(|field| is_special(field));
            if found && !corrected {
                return true;
            }
        }
        found
    })
}

/// `".*[^\d\w\s].*"` at the start of a field.
fn is_special(field: &str) -> bool {
    let line = field.split('\n').next().map_or("", |line| line);
    let inside = line.strip_prefix('"').and_then(|rest| rest.rfind('"').map(|end| &rest[..end]));
    inside.is_some_and(|inside| inside.contains(|c| !is_word(c) && !is_space(c)))
}

fn csv_quotes(_: &Arguments<'_>) -> Result<Test, ArgumentError> {
    test(|view| {
        let text = view.text();
        if !has_header(text, '\t', &[' '], ["StudentID", "Subject", "Grade", "Semester", "Score"]) {
            return false;
        }
        let Some(rows) = quoted_rows(text, '\t', 4, 5) else { return false };
        let quoted = |field: &String| strip(field).starts_with('"') && strip(field).ends_with('"');
        rows.iter().all(|row| row.len() == 5 && row.iter().all(quoted))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Vec<Vec<String>>> {
        rows(text, ',', 9, 2)
    }

    #[test]
    fn rows_of_python() {
        assert_eq!(read("a,b\n\n c,\"d,\"\"e\"\r\n").unwrap(), [vec!["a", "b"], vec![], vec![" c", "d,\"e"]]);
        assert_eq!(read("\"a\nb\",c").unwrap(), [vec!["a\nb", "c"]]);
        assert_eq!(read("a,\"b").unwrap(), [vec!["a", "b"]]);
        assert_eq!(read("a,\"").unwrap(), [vec!["a", ""]]);
        assert_eq!(read("\"a\"b,c").unwrap(), [vec!["ab", "c"]]);
        assert_eq!(read("a,").unwrap(), [vec!["a", ""]]);
        assert_eq!(read("").unwrap(), Vec::<Vec<String>>::new());
        assert_eq!(read("a\rb"), None);
        assert_eq!(read("a,b,c"), None);
    }

    #[test]
    fn special_fields() {
        assert!(is_special("\"A&B\"") && is_special("\"a\"b\""));
        assert!(!is_special("\"plain\"") && !is_special("A&B") && !is_special("\"") && !is_special("\"é\""));
    }
}
