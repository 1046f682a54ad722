//! Constraints on the form of the text: brackets, quotes, lines, case and templates.

use super::{stripped, test};
use crate::argument::{ArgumentError, Arguments, Kind, Parameter};
use crate::constraint::{Constraint, Family, Test};
use crate::text::emoji::{ends_with_emoji, is_emoji, starts_with_emoji};
use crate::text::reading;
use crate::text::view::View;
use plaudit_text::{
    is_alnum, is_alpha, is_lower, is_punctuation, is_space, is_upper, is_word, lower, split, strip,
};
use std::collections::{HashMap, VecDeque};

pub(super) const TABLE: &[Constraint] = &[
    Constraint {
        id: "format:parentheses",
        family: Family::IfBench,
        parameters: &[],
        checks: "Brackets of `(`, `[`, `{` nested at least five deep, of which the innermost is closed. A closing bracket \
                 that does not match starts over.",
        gamed: "`((((()))))` at the end of any text; one closing bracket is enough.",
        difference: "The published check does not see full-width brackets.",
        build: parentheses,
    },
    Constraint {
        id: "format:quotes",
        family: Family::IfBench,
        parameters: &[],
        checks: "Quotes within quotes within quotes, double and single in turn, all three closed.",
        gamed: "`\"'\"\"'\"` at the end of any text.",
        difference: "The published check sees `\"` and `'` only, and takes apostrophes for quotes. The corrected one reads typographic quotes as \
                     well and leaves apostrophes inside words out.",
        build: quotes,
    },
    Constraint {
        id: "format:options",
        family: Family::IfBench,
        parameters: &[Parameter::new("options", Kind::Text)],
        checks: "The answer is one of the options and nothing else. Options stand between `/`, else between commas and \
                 `or`. Letters such as `a), b), c)` are to be given as they stand, words in any case and with any marks.",
        gamed: "Answering at random.",
        difference: "The published check splits at `or` inside words: `color or shade` accepts `col`. It compares letters with white \
                     space around them.",
        build: options,
    },
    Constraint {
        id: "format:newline",
        family: Family::IfBench,
        parameters: &[],
        checks: "One word on each line.",
        gamed: "A single word passes.",
        difference: "The published check compares the number of lines with that of words and counts a line of white space.",
        build: newline,
    },
    Constraint {
        id: "format:emoji",
        family: Family::IfBench,
        parameters: &[],
        checks: "Each sentence ends with an emoji, before or after its closing mark.",
        gamed: "The same emoji everywhere; a text without closing marks is one sentence.",
        difference: "The published check looks at the last two characters, so that flags and keycaps fail and `🎉x.` passes; closing \
                     stars of bold text are a sentence of their own there.",
        build: emoji,
    },
    Constraint {
        id: "format:line_indent",
        family: Family::IfBench,
        parameters: &[],
        checks: "Each line is indented further than the one before. Blank lines do not count.",
        gamed: "A single line passes.",
        difference: "The published check overlooks every second of several blank lines, so that two in a row fail.",
        build: line_indent,
    },
    Constraint {
        id: "format:quote_unquote",
        family: Family::IfBench,
        parameters: &[],
        checks: "A word that is not quoted follows each quoted phrase, before the next.",
        gamed: "A text without quotes passes; any word after a quote is an explanation.",
        difference: "The published check sees `\"` only, and takes a comma for an explanation. The corrected one sees \
                     typographic quotes, corner brackets and single quotes as well: \
                     `'Rain' 'snow'` fails.",
        build: quote_unquote,
    },
    Constraint {
        id: "format:thesis",
        family: Family::IfBench,
        parameters: &[],
        checks: "An `<i>` or `<em>` with something in it, closed by the same tag, and text after it.",
        gamed: "One italic letter anywhere; only the first is looked at.",
        difference: "The published check cuts `<em>` as if it were `<i>`: `<em></em> text`, `<em>One.</em>` and `<i>x</em> y` pass.",
        build: thesis,
    },
    Constraint {
        id: "format:title_case",
        family: Family::IfBench,
        parameters: &[],
        checks: "Every word starts with a capital, except articles, conjunctions and prepositions after the first word.",
        gamed: "All capitals pass.",
        difference: "The published check wants capitals for `in` and `the` as well, and fails `Don't` and `Cannot`, which it cuts in two.",
        build: title_case,
    },
    Constraint {
        id: "format:output_template",
        family: Family::IfBench,
        parameters: &[],
        checks: "`My Answer:`, `My Conclusion:` and `Future Outlook:` in this order.",
        gamed: "The template without content passes.",
        difference: "The published check accepts any order.",
        build: output_template,
    },
    Constraint {
        id: "format:no_whitespace",
        family: Family::IfBench,
        parameters: &[],
        checks: "No white space at all.",
        gamed: "Words joined by underscores.",
        difference: "",
        build: no_whitespace,
    },
];

fn parentheses(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    test(move |view| {
        let mut open = Vec::new();
        let mut deepest = 0;
        for c in view.text().chars() {
            let c = if corrected { half_width(c) } else { c };
            match c {
                '(' | '[' | '{' => {
                    open.push(c);
                    deepest = deepest.max(open.len());
                }
                ')' | ']' | '}' => {
                    let pair = (open.last(), c);
                    let matching = matches!(pair, (Some('('), ')') | (Some('['), ']') | (Some('{'), '}'));
                    if !matching {
                        open.clear();
                        deepest = 0;
                    } else if deepest >= 5 {
                        return true;
                    } else {
                        open.pop();
                    }
                }
                _ => {}
            }
        }
        false
    })
}

/// The bracket that a full-width one stands for.
fn half_width(c: char) -> char {
    match c {
        '（' => '(',
        '）' => ')',
        '［' => '[',
        '］' => ']',
        '｛' => '{',
        '｝' => '}',
        c => c,
    }
}

fn quotes(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    match arguments.corrected() {
        true => test(|view| nested_quotes(read_quotes(view.text()).into_iter())),
        false => test(|view| nested_quotes(view.text().chars())),
    }
}

/// Whether three levels were closed below the deepest one: a mark closes a level if it opened it, else it opens one.
fn nested_quotes(chars: impl Iterator<Item = char>) -> bool {
    let mut open = Vec::new();
    let mut deepest = 0;
    for c in chars.filter(|c| matches!(c, '"' | '\'')) {
        if open.last() == Some(&c) {
            open.pop();
            if deepest - open.len() >= 3 {
                return true;
            }
        } else {
            open.push(c);
            deepest = deepest.max(open.len());
        }
    }
    false
}

/// The quotation marks of a text, as `"` and `'`. An apostrophe between letters is none.
fn read_quotes(text: &str) -> Vec<char> {
    let mut found = Vec::new();
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let inside = before.is_some_and(is_alnum) && chars.peek().is_some_and(|&next| is_alnum(next));
        match c {
            '"' | '“' | '”' | '„' | '«' | '»' => found.push('"'),
            '\'' | '‘' | '’' | '‚' if !inside => found.push('\''),
            _ => {}
        }
        before = Some(c);
    }
    found
}

fn options(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let text = arguments.text("options")?;
    if arguments.corrected() {
        let options: Vec<String> = read_options(text).into_iter().map(str::to_owned).collect();
        let letters =
            options.iter().all(|option| reading::bare(option).chars().nth(1).is_none()) && starts_abc(text);
        return test(move |view| {
            let answer = strip(view.text());
            if letters {
                return options.iter().any(|option| option == answer);
            }
            let answer = lower(reading::bare(answer));
            options.iter().any(|option| lower(reading::bare(option)) == answer)
        });
    }
    let separator = if text.contains('/') {
        "/"
    } else if text.contains("or") {
        "or"
    } else {
        ","
    };
    let strict = starts_abc(text);
    let options: Vec<String> = text.split(separator).map(|option| strip(option).to_owned()).collect();
    test(move |view| match strict {
        true => options.iter().any(|option| option == view.text()),
        false => {
            let answer = lower(stripped(view.text()));
            options.iter().any(|option| lower(stripped(option)) == answer)
        }
    })
}

/// The letters a, b, c at the start, with nothing between them that is part of a word.
fn starts_abc(text: &str) -> bool {
    let mut chars = text.chars().skip_while(|&c| !is_word(c));
    ['a', 'b', 'c'].into_iter().all(|letter| {
        let found = chars.find(|&c| is_word(c));
        found.is_some_and(|c| c.eq_ignore_ascii_case(&letter))
    })
}

/// The options between slashes, else those between commas and the word `or`, and those between `or` alone.
fn read_options(text: &str) -> Vec<&str> {
    if text.contains('/') {
        return text.split('/').map(strip).collect();
    }
    let mut options = Vec::new();
    let mut start = 0;
    let mut at = 0;
    for word in text.split_inclusive(is_space) {
        if word.trim_end().eq_ignore_ascii_case("or") {
            options.push(&text[start..at]);
            start = at + word.len();
        }
        at += word.len();
    }
    options.push(&text[start..]);
    let mut all: Vec<&str> = options.iter().flat_map(|option| option.split(',')).map(strip).collect();
    if options.len() > 1 {
        all.extend(options.iter().map(|option| strip(option).trim_end_matches(',')));
    }
    all.retain(|option| !option.is_empty());
    all
}

fn newline(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    if arguments.corrected() {
        return test(|view| {
            let words =
                |line: &str| split(line).filter(|word| !reading::bare(word).is_empty()).take(2).count();
            let mut any = false;
            let single = view.text().split('\n').map(words).all(|count| {
                any |= count == 1;
                count <= 1
            });
            any && single
        });
    }
    test(|view| {
        // Without ASCII marks: what is left of a line, and of the whole text around it.
        let kept = |c: &char| !is_punctuation(*c);
        let words = view.words().iter().filter(|word| word.chars().any(|c| kept(&c))).count();
        // White space at both ends of the whole is stripped, line feeds included; lines between stay as they are.
        let mut lines = 0;
        let mut blank = 0;
        let mut started = false;
        for line in view.text().split('\n') {
            let mut left = line.chars().filter(kept).peekable();
            let empty = left.peek().is_none();
            if left.any(|c| !is_space(c)) {
                lines += 1 + if started { blank } else { 0 };
                blank = 0;
                started = true;
            } else if !empty {
                blank += 1;
            }
        }
        // A text of marks alone is one empty line, which is taken out, and no word.
        lines == words
    })
}

fn emoji(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    if arguments.corrected() {
        return test(emoji_fixed);
    }
    test(|view| {
        let sentences = view.sentences();
        let kept = |c: &char| !is_punctuation(*c);
        sentences.iter().enumerate().all(|(place, sentence)| {
            let mut back = sentence.chars().rev().filter(kept).skip_while(|&c| is_space(c));
            let Some(last) = back.next() else { return false };
            if is_emoji(last) || back.next().is_some_and(is_emoji) {
                return true;
            }
            let next = sentences.get(place + 1).map_or("", |next| *next);
            next.chars().filter(kept).find(|&c| !is_space(c)).is_some_and(is_emoji)
        })
    })
}

fn emoji_fixed(view: &View<'_>) -> bool {
    let text = view.text();
    let marks = |c: char| is_space(c) || is_punctuation(c) || "。！？｡…”’»」』）".contains(c);
    let mut any = false;
    let each =
        view.read_sentences().iter().filter(|sentence| sentence.chars().any(is_alnum)).all(|sentence| {
            any = true;
            let end = sentence.as_ptr() as usize - text.as_ptr() as usize + sentence.len();
            ends_with_emoji(sentence.trim_end_matches(marks))
                || starts_with_emoji(text[end..].trim_start_matches(marks))
        });
    if any { each } else { text.chars().any(is_emoji) }
}

fn line_indent(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    test(move |view| {
        let mut before = None;
        let mut deeper = |indent: usize| before.replace(indent).is_none_or(|before| indent > before);
        if corrected {
            let indent = |line: &str| line.chars().take_while(|&c| is_space(c)).count();
            return view
                .text()
                .split('\n')
                .filter(|line| !strip(line).is_empty())
                .all(|line| deeper(indent(line)));
        }
        let lines: Vec<&str> = view.text().split('\n').collect();
        let kept = without_every_second_blank(&lines);
        let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
        lines.iter().zip(kept).filter(|(_, kept)| *kept).all(|(line, _)| deeper(indent(line)))
    })
}

/// Which lines are left when blank ones are removed from a list while it is walked. Each removal takes the first line
/// that is equal, and the walk then steps over the line that moved up.
fn without_every_second_blank(lines: &[&str]) -> Vec<bool> {
    let mut kept = vec![true; lines.len()];
    let mut waiting: HashMap<&str, VecDeque<usize>> = HashMap::new();
    let mut skip = false;
    for (place, line) in lines.iter().enumerate() {
        let blank = strip(line).is_empty();
        if blank {
            waiting.entry(line).or_default().push_back(place);
        }
        if std::mem::take(&mut skip) || !blank {
            continue;
        }
        if let Some(first) = waiting.get_mut(line).and_then(VecDeque::pop_front) {
            kept[first] = false;
        }
        skip = true;
    }
    kept
}

fn quote_unquote(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    match arguments.corrected() {
        true => test(|view| each_explained(&plain_quotes(view.text()))),
        false => test(|view| explained(view.text())),
    }
}

/// Whether no two `"` stand together and none ends the text, white space left out. `'"'` speaks of the mark itself.
fn explained(text: &str) -> bool {
    if memchr::memchr(b'"', text.as_bytes()).is_none() {
        return true;
    }
    let text = text.replace("'\"'", "");
    let mut before = None;
    for c in text.chars().filter(|&c| !is_space(c)) {
        if c == '"' && before.replace(c) == Some('"') {
            return false;
        }
        before = Some(c);
    }
    let end = |c: char| is_space(c) || c.is_ascii_digit() || (is_punctuation(c) && c != '"');
    !text.trim_end_matches(end).ends_with('"')
}

/// Whether a word stands between each quoted phrase and the next, and after the last. `'"'` speaks of the mark itself.
fn each_explained(text: &str) -> bool {
    let text = text.replace("'\"'", "");
    // Outside, inside, outside and so on. What is opened and not closed is no quote.
    let mut pieces = text.split('"').skip(1);
    while let (Some(_), Some(after)) = (pieces.next(), pieces.next()) {
        if !after.chars().any(is_alnum) {
            return false;
        }
    }
    true
}

/// The text with `"` for quotation marks of any kind, and for single quotes around a phrase.
fn plain_quotes(text: &str) -> String {
    let mut plain: Vec<char> = Vec::with_capacity(text.len());
    let mut before: Option<char> = None;
    let mut opened: Option<usize> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        let opens = before.is_none_or(|c| is_space(c) || "([{\"“".contains(c))
            && next.is_some_and(|c| !is_space(c) && c != '"');
        let closes = before.is_some_and(|c| !is_space(c)) && next.is_none_or(|c| !is_alnum(c));
        let c = match c {
            '“' | '”' | '„' | '«' | '»' | '「' | '」' | '『' | '』' => '"',
            '\'' | '‘' | '’' if opened.is_none() && opens => {
                opened = Some(plain.len());
                '\''
            }
            '\'' | '’' if closes && opened.is_some() => {
                if let Some(start) = opened.take() {
                    plain[start] = '"';
                }
                '"'
            }
            '‘' | '’' => '\'',
            '。' | '！' | '？' | '…' => '.',
            c => c,
        };
        plain.push(c);
        before = Some(c);
    }
    plain.into_iter().collect()
}

fn thesis(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    if arguments.corrected() {
        return test(|view| {
            let text = view.text();
            let tag = |open: &'static str, close: &'static str| text.find(open).map(|at| (at, open, close));
            let first = [tag("<i>", "</i>"), tag("<em>", "</em>")].into_iter().flatten().min();
            let Some((at, open, close)) = first else { return false };
            let inside = text[at + open.len()..].split_once(close);
            inside.is_some_and(|(thesis, after)| !strip(thesis).is_empty() && !strip(after).is_empty())
        });
    }
    test(|view| {
        let text = view.text();
        let Some(start) = text.find("<i>").or_else(|| text.find("<em>")) else { return false };
        let text = &text[start..];
        let Some(end) = text.find("</i>").or_else(|| text.find("</em>")) else { return false };
        // Three characters of the opening tag and four of the closing one, whichever they are.
        let thesis = text.get(3..end).map_or("", |thesis| thesis);
        !strip(thesis).is_empty() && !strip(&text[end + 4..]).is_empty()
    })
}

/// Words that a title may have in small letters, sorted.
#[rustfmt::skip]
static MINOR: [&str; 33] = [
    "a", "an", "and", "as", "at", "but", "by", "en", "for", "from", "if", "in", "into", "nor", "of", "off", "on", "onto",
    "or", "out", "over", "per", "so", "than", "the", "to", "up", "upon", "v", "via", "vs", "with", "yet",
];

fn title_case(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    if arguments.corrected() {
        return test(|view| {
            view.read_words().iter().enumerate().all(|(place, word)| {
                let small = word.starts_with(|c: char| c.is_lowercase());
                !small || (place > 0 && MINOR.binary_search(word).is_ok())
            })
        });
    }
    test(|view| {
        view.tokens().iter().all(|token| {
            let Some(first) = token.chars().next().filter(|&c| is_alpha(c)) else { return true };
            let (head, rest) = token.split_at(first.len_utf8());
            !is_lower(head) || !(rest.is_empty() || is_upper(rest) || is_lower(rest))
        })
    })
}

const TEMPLATE: [&str; 3] = ["My Answer:", "My Conclusion:", "Future Outlook:"];

fn output_template(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    match arguments.corrected() {
        true => test(|view| {
            let mut rest = Some(view.text());
            TEMPLATE.iter().all(|label| {
                rest = rest.and_then(|text| text.split_once(label)).map(|(_, after)| after);
                rest.is_some()
            })
        }),
        false => test(|view| TEMPLATE.iter().all(|label| view.text().contains(label))),
    }
}

fn no_whitespace(_: &Arguments<'_>) -> Result<Test, ArgumentError> {
    test(|view| !view.text().contains(is_space))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_of_the_published_check() {
        for (lines, left) in [
            (vec!["", "", "", "a"], vec!["", "a"]),
            (vec!["", "", "a", ""], vec!["a", ""]),
            (vec!["a", "", "b"], vec!["a", "b"]),
            (vec!["", " ", "a", " ", " "], vec!["a", " ", " "]),
        ] {
            let kept = without_every_second_blank(&lines);
            let found: Vec<&str> =
                lines.iter().zip(kept).filter(|(_, kept)| *kept).map(|(line, _)| *line).collect();
            assert_eq!(found, left, "{lines:?}");
        }
        assert!(MINOR.is_sorted());
    }

    #[test]
    fn options_of_a_reader() {
        assert_eq!(read_options("yes/no"), ["yes", "no"]);
        assert!(read_options("red, green, or blue").contains(&"blue"));
        assert!(read_options("color or shade").contains(&"color"));
        assert!(!read_options("before, after").contains(&"bef"));
        assert_eq!(read_options("a), b), c)"), ["a)", "b)", "c)"]);
        assert!(starts_abc("a), b), c)") && starts_abc("(A) (B) (C)") && !starts_abc("red, green"));
    }

    #[test]
    fn single_quotes_around_phrases() {
        assert_eq!(plain_quotes("'Rain' isn't 'snow'."), "\"Rain\" isn't \"snow\".");
        assert_eq!(plain_quotes("the dogs' bowl"), "the dogs' bowl");
        assert!(!each_explained(&plain_quotes("「雨」「雪」")) && each_explained("no quotes"));
        assert!(
            !each_explained("\"a\", \"b\" c")
                && each_explained("\"a\" is \"b\" here")
                && each_explained("5\" long")
        );
    }
}
