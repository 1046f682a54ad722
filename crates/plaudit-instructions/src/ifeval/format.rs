//! Bullets, highlights, sections, JSON and titles.

use crate::argument::{ArgumentError, Arguments, Kind, Parameter};
use crate::constraint::{Constraint, Family, Test};
use crate::text::pattern::{compile, find_all, is_literal};
use crate::text::reading::is_word_part;
use plaudit_text::{is_decimal, is_json, is_python_json, is_space, strip};

pub(crate) const TABLE: &[Constraint] = &[
    Constraint {
        id: "detectable_format:number_bullet_lists",
        family: Family::IfEval,
        parameters: &[Parameter::new("num_bullets", Kind::Number)],
        checks: "There are exactly so many bullet points that begin with `* ` or `- `.",
        gamed: "By bullets of one word.",
        difference: "The published checker also counts the rule `---`, \"-5 degrees\" and a line that begins with \
            \"*Really*\".",
        build: number_bullet_lists,
    },
    Constraint {
        id: "detectable_format:constrained_response",
        family: Family::IfEval,
        parameters: &[],
        checks: "One of `My answer is yes.`, `My answer is no.` and `My answer is maybe.` is there, and not two.",
        gamed: "By a sentence that speaks of the option without choosing it.",
        difference: "The published checker is content with two different options: \"My answer is yes. My answer is \
            no.\" passes.",
        build: constrained_response,
    },
    Constraint {
        id: "detectable_format:number_highlighted_sections",
        family: Family::IfEval,
        parameters: &[Parameter::new("num_highlights", Kind::Number)],
        checks: "There are at least so many highlights such as `*text*` or `**text**`, each on one line.",
        gamed: "By highlights of one letter.",
        difference: "",
        build: number_highlighted_sections,
    },
    Constraint {
        id: "detectable_format:multiple_sections",
        family: Family::IfEval,
        parameters: &[
            Parameter::new("section_spliter", Kind::Text),
            Parameter::new("num_sections", Kind::Number),
        ],
        checks: "At least so many lines begin a section, such as `Section 1`.",
        gamed: "By headings with nothing below them.",
        difference: "The published checker also counts mentions such as \"as Section 1 of the law says\", and takes \
            the word for a regular expression, in which a pair of brackets counts twice.",
        build: multiple_sections,
    },
    Constraint {
        id: "detectable_format:json_format",
        family: Family::IfEval,
        parameters: &[],
        checks: "The whole response is JSON, in a fence or not.",
        gamed: "By a single number or word in quotes, which is JSON.",
        difference: "The published checker takes NaN and Infinity for JSON.",
        build: json_format,
    },
    Constraint {
        id: "detectable_format:title",
        family: Family::IfEval,
        parameters: &[],
        checks: "There is a title in double angular brackets, such as `<<poem of joy>>`.",
        gamed: "By a title of one letter.",
        difference: "The published checker takes \"x = a << 2; y = b >> 1\" for a title.",
        build: title,
    },
];

fn number_bullet_lists(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let wanted = arguments.count("num_bullets")?;
    let count = if arguments.corrected() { bullets } else { published_bullets };
    Ok(Box::new(move |view| count(view.text()) as f64 == wanted))
}

/// Lines whose first mark is a bullet. A star directly before the end of a line takes the next line with it.
fn published_bullets(text: &str) -> usize {
    let mut count = 0;
    let mut swallowed = false;
    for line in text.split_inclusive('\n') {
        let mark = line.trim_start_matches(is_space);
        count += usize::from(mark.starts_with('-'));
        if std::mem::take(&mut swallowed) {
            continue;
        }
        let mut after = mark.strip_prefix('*').map_or("", |rest| rest).chars();
        match after.next() {
            Some('*') | None => {}
            Some(c) => {
                count += 1;
                swallowed = c == '\n';
            }
        }
    }
    count
}

/// Lines that begin with a bullet and a space, but no rules such as `* * *`.
fn bullets(text: &str) -> usize {
    text.lines()
        .filter(|line| {
            let line = strip(line);
            let mut rest = line.chars();
            let bullet = matches!(rest.next(), Some('*' | '-')) && rest.next().is_some_and(is_space);
            let rule = line.chars().all(|c| matches!(c, '*' | '-' | '_') || is_space(c));
            bullet && !rule
        })
        .count()
}

const OPTIONS: [&str; 3] = ["My answer is yes.", "My answer is no.", "My answer is maybe."];

fn constrained_response(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    Ok(Box::new(move |view| {
        let found = OPTIONS.iter().filter(|option| view.text().contains(*option)).count();
        if corrected { found == 1 } else { found > 0 }
    }))
}

fn number_highlighted_sections(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let wanted = arguments.count("num_highlights")?;
    Ok(Box::new(move |view| (highlights(view.text(), "*") + highlights(view.text(), "**")) as f64 >= wanted))
}

/// Pieces of a line between two marks that are not blank and have no star inside.
fn highlights(text: &str, mark: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut count, mut from) = (0, 0);
    while let Some(open) = memchr::memmem::find(&bytes[from..], mark.as_bytes()).map(|at| from + at) {
        let inside = open + mark.len();
        let Some(end) = memchr::memchr2(b'*', b'\n', &bytes[inside..]).map(|at| inside + at) else { break };
        if bytes[end..].starts_with(mark.as_bytes()) {
            count += usize::from(!text[inside..end].chars().all(is_space));
            from = end + mark.len();
        } else {
            from = open + 1;
        }
    }
    count
}

fn multiple_sections(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    const NAME: &str = "section_spliter";
    let splitter = strip(arguments.text(NAME)?);
    let wanted = arguments.count("num_sections")?;
    if arguments.corrected() {
        if splitter.is_empty() {
            return Err(arguments.refused(NAME, "must not be empty"));
        }
        let splitter = splitter.to_owned();
        return Ok(Box::new(move |view| headings(view.text(), &splitter) as f64 >= wanted));
    }
    if is_literal(splitter) && !splitter.is_empty() {
        let splitter = splitter.to_owned();
        return Ok(Box::new(move |view| numbered(view.text(), &splitter) as f64 >= wanted));
    }
    let (regex, groups) = compile(&format!(r"\s?{splitter}\s?\d+\s?"), false)
        .map_err(|reason| arguments.refused(NAME, reason))?;
    Ok(Box::new(move |view| (find_all(&regex, view.text()).count() * (1 + groups)) as f64 >= wanted))
}

/// Whether a number follows, after at most one white space.
fn number_follows(text: &str) -> bool {
    let mut chars = text.chars();
    match chars.next() {
        Some(c) if is_space(c) => chars.next().is_some_and(is_decimal),
        first => first.is_some_and(is_decimal),
    }
}

/// Mentions of the word with a number after it.
fn numbered(text: &str, word: &str) -> usize {
    memchr::memmem::find_iter(text.as_bytes(), word.as_bytes())
        .filter(|at| number_follows(&text[at + word.len()..]))
        .count()
}

/// Lines that begin with the word and a number, after marks of markdown. Where the whole response stands in quotation marks, as
/// another constraint can demand, the first line begins behind them.
fn headings(text: &str, word: &str) -> usize {
    let text = strip(text);
    let quotes = [('"', '"'), ('“', '”')].into_iter();
    let within = |(open, close)| text.strip_prefix::<char>(open).filter(|rest| rest.ends_with::<char>(close));
    let quoted = quotes.map(within).find_map(|rest| rest).unwrap_or(text);
    quoted
        .lines()
        .filter(|line| {
            let bare =
                line.trim_start_matches(|c: char| is_space(c) || matches!(c, '*' | '#' | '_' | '>' | '-'));
            [strip(line), bare].iter().any(|line| line.strip_prefix(word).is_some_and(number_follows))
        })
        .count()
}

fn json_format(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    Ok(Box::new(move |view| {
        let mut text = strip(view.text());
        for fence in ["```json", "```Json", "```JSON", "```"] {
            text = text.strip_prefix(fence).map_or(text, |rest| rest);
        }
        text = strip(text.strip_suffix("```").map_or(text, |rest| rest));
        if corrected { is_json(text) } else { is_python_json(text) }
    }))
}

fn title(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    Ok(Box::new(move |view| {
        if memchr::memmem::find(view.text().as_bytes(), b"<<").is_none() {
            return false;
        }
        view.text().split('\n').any(|line| match corrected {
            true => has_title(line),
            false => has_published_title(line),
        })
    }))
}

/// From the first `<<` to the last `>>` of a line.
fn has_published_title(line: &str) -> bool {
    let (Some(open), Some(close)) = (line.find("<<"), line.rfind(">>")) else { return false };
    close >= open + 3 && {
        let inside = line[open..close + 2].trim_start_matches('<').trim_end_matches('>');
        !strip(inside).is_empty()
    }
}

/// `<<` and `>>` close to the words between them, or alone on their line.
fn has_title(line: &str) -> bool {
    let alone = strip(line).starts_with("<<") && strip(line).ends_with(">>");
    let mut rest = line;
    while let Some((_, after)) = rest.split_once("<<") {
        let after = after.trim_start_matches('<');
        let Some((inside, tail)) = after.split_once(">>") else { return false };
        let close = !inside.starts_with(is_space) && !inside.ends_with(is_space);
        if inside.chars().any(is_word_part) && (close || alone) {
            return true;
        }
        rest = tail;
    }
    false
}
