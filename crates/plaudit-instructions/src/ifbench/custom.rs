//! Constraints that are whole tasks with one right answer, or nearly one.

use super::{stripped, test, words_without_marks};
use crate::argument::{ArgumentError, Arguments};
use crate::constraint::{Constraint, Family, Test};
use crate::text::reading;
use plaudit_text::{is_decimal, is_space, is_word, lower, split, strip};
use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;

pub(super) const TABLE: &[Constraint] = &[
    Constraint {
        id: "custom:multiples",
        family: Family::IfBench,
        parameters: &[],
        checks: "The numbers of the text are 14, 21, 28, 35, 42 and 49.",
        gamed: "Any words around the numbers.",
        difference: "",
        build: multiples,
    },
    Constraint {
        id: "custom:mcq_count_length",
        family: Family::IfBench,
        parameters: &[],
        checks: "Four questions `Question 1` and so on from the first character on, each with five options from A to E, each \
                 question longer than the one before, and no other text.",
        gamed: "Questions filled up with words; nothing is asked of their content.",
        difference: "The published check does not see text after the options, a sixth one included, and takes any letters in any order.",
        build: mcq_count_length,
    },
    Constraint {
        id: "custom:reverse_newline",
        family: Family::IfBench,
        parameters: &[],
        checks: "The 54 countries of Africa from Zimbabwe on, one a line, in reverse alphabetical order.",
        gamed: "The answer is fixed; there is nothing to game.",
        difference: "The published check wants any 52 lines in reverse order: `Zimbabwe` 54 times passes. The corrected one knows the countries.",
        build: reverse_newline,
    },
    Constraint {
        id: "custom:word_reverse",
        family: Family::IfBench,
        parameters: &[],
        checks: "A sentence that names the bald eagle, with its words in reverse order.",
        gamed: "`eagle bald the is` and any words.",
        difference: "The published check wants the two words alone: `random words eagle bald other words here` passes. The corrected one wants a \
                     verb as well.",
        build: word_reverse,
    },
    Constraint {
        id: "custom:character_reverse",
        family: Family::IfBench,
        parameters: &[],
        checks: "A sentence that names the bald eagle, with its letters in reverse order.",
        gamed: "`elgae dlab eht si` and any letters.",
        difference: "The published check wants `elgae dlab` alone. The corrected one wants a verb as well.",
        build: character_reverse,
    },
    Constraint {
        id: "custom:sentence_alphabet",
        family: Family::IfBench,
        parameters: &[],
        checks: "26 sentences whose first letters are a to z, in order.",
        gamed: "Sentences of one word.",
        difference: "The published check takes a quote or a bullet before the word for its first letter, and does not part sentences \
                     without a space between them.",
        build: sentence_alphabet,
    },
    Constraint {
        id: "custom:european_capitals_sort",
        family: Family::IfBench,
        parameters: &[],
        checks: "The 28 capitals of Europe north of 45 degrees, from north to south, with commas between them. Accents are \
                 free, case is not.",
        gamed: "The answer is fixed; there is nothing to game.",
        difference: "The published check lacks Kyiv, so that the right answer fails, and drops characters outside ASCII: `Os东lo` passes.",
        build: european_capitals_sort,
    },
    Constraint {
        id: "custom:date_format_list",
        family: Family::IfBench,
        parameters: &[],
        checks: "Dates as YYYY-MM-DD with commas between them, from 1769 to 1821, and each a day of the calendar.",
        gamed: "Any day of those years: whether a battle was fought is not checked.",
        difference: "The published check accepts month 00, day 00 and 29 February of any year.",
        build: date_format_list,
    },
];

fn multiples(_: &Arguments<'_>) -> Result<Test, ArgumentError> {
    test(|view| {
        let numbers = view.text().split(|c| !is_decimal(c)).filter(|number| !number.is_empty());
        numbers.eq(["14", "21", "28", "35", "42", "49"])
    })
}

fn mcq_count_length(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    test(move |view| {
        if !view.text().starts_with("Question") {
            return false;
        }
        let questions = questions(view.text());
        if questions.len() != 4 {
            return false;
        }
        let mut before = None;
        questions.into_iter().all(|question| {
            let length = question_length(question, corrected);
            length.is_some_and(|length| before.replace(length).is_none_or(|before| length > before))
        })
    })
}

/// What stands between labels such as `Question 1:`, trimmed and not blank.
fn questions(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut from = 0;
    while let Some(at) = rest[from..].find("Question ") {
        let label = from + at;
        let digits = &rest[label + "Question ".len()..];
        let after = digits.trim_start_matches(is_decimal);
        if after.len() == digits.len() {
            from = label + "Question ".len();
            continue;
        }
        found.push(strip(&rest[..label]));
        rest = after.strip_prefix(['.', '|', ')', ':', ';']).map_or(after, |after| after);
        from = 0;
    }
    found.push(strip(rest));
    found.retain(|question| !question.is_empty());
    found
}

/// The length of the text before the options, or nothing where there are not five options.
fn question_length(question: &str, corrected: bool) -> Option<usize> {
    let mut text = String::new();
    let mut options = 0_u8;
    for line in question.split('\n').map(strip) {
        if is_option(line) {
            // In the order of the letters.
            let letter = line.bytes().next().map_or(0, |byte| byte.to_ascii_lowercase());
            if corrected && letter != b'a' + options {
                return None;
            }
            options = options.saturating_add(1);
        } else if options == 0 {
            text.push(' ');
            text.push_str(line);
        } else if corrected && !line.is_empty() {
            return None;
        }
    }
    (options == 5).then(|| strip(&text).chars().count())
}

/// `[A-Ea-e][\.|\)]\s*\w+`.
fn is_option(line: &str) -> bool {
    let rest = line.strip_prefix(|c: char| matches!(c, 'A'..='E' | 'a'..='e'));
    let rest = rest.and_then(|rest| rest.strip_prefix(['.', '|', ')']));
    rest.is_some_and(|rest| rest.trim_start_matches(is_space).starts_with(is_word))
}

/// NFKD, and what of it is ASCII.
fn ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfkd().filter(char::is_ascii).collect())
    }
}

/// The text without accents; nothing where it has other characters outside ASCII.
fn without_accents(text: &str) -> Option<Cow<'_, str>> {
    if text.is_ascii() {
        return Some(Cow::Borrowed(text));
    }
    let plain: String = text.nfd().filter(|c| !('\u{300}'..='\u{36f}').contains(c)).collect();
    plain.is_ascii().then_some(Cow::Owned(plain))
}

fn reverse_newline(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    test(move |view| {
        let lines = view.text().split('\n').map(stripped).filter(|line| !line.is_empty());
        let lines = lines.skip_while(|line| !line.contains("Zimbabwe"));
        if corrected {
            return are_countries(lines.map(strip));
        }
        let mut count = 0;
        let mut before: Option<Cow<'_, str>> = None;
        let sorted = lines.map(ascii).all(|line| {
            count += 1;
            let sorted = before.as_ref().is_none_or(|before| *before >= line);
            before = Some(line);
            sorted
        });
        sorted && count >= 52
    })
}

/// The countries of Africa in lower case, with other names of the same country after a bar.
#[rustfmt::skip]
static COUNTRIES: [&str; 54] = [
    "algeria", "angola", "benin", "botswana", "burkina faso", "burundi", "cameroon", "cape verde|cabo verde",
    "central african republic", "chad", "comoros", "congo|republic of the congo|republic of congo|congo-brazzaville|\
    congo (brazzaville)|congo, republic of the|congo, republic of|congo republic",
    "dr congo|democratic republic of the congo|democratic republic of congo|congo-kinshasa|congo (kinshasa)|drc|\
    congo, democratic republic of the|congo, democratic republic of|congo dr",
    "djibouti", "egypt", "equatorial guinea", "eritrea", "eswatini|swaziland|eswatini (formerly swaziland)|\
    eswatini (swaziland)", "ethiopia", "gabon", "gambia|the gambia|gambia, the", "ghana", "guinea", "guinea-bissau",
    "ivory coast|cote d'ivoire|cote d’ivoire|cote d'ivoire (ivory coast)|ivory coast (cote d'ivoire)", "kenya", "lesotho",
    "liberia", "libya", "madagascar", "malawi", "mali", "mauritania", "mauritius", "morocco", "mozambique", "namibia",
    "niger", "nigeria", "rwanda", "sao tome and principe|sao tome & principe", "senegal", "seychelles", "sierra leone",
    "somalia", "south africa", "south sudan", "sudan", "tanzania", "togo", "tunisia", "uganda", "zambia", "zimbabwe",
];

/// Whether these are all countries of Africa, each once, in reverse alphabetical order with or without regard to case.
fn are_countries<'t>(lines: impl Iterator<Item = &'t str>) -> bool {
    let mut seen = [false; COUNTRIES.len()];
    let mut before: Option<(String, String)> = None;
    let (mut heeding, mut ignoring) = (true, true);
    for line in lines {
        let line = line.replace('’', "'");
        let Some(name) = without_accents(&line).map(Cow::into_owned) else { return false };
        let small = name.to_ascii_lowercase();
        let known = |country: &&str| country.split('|').any(|name| stripped(name) == small);
        let Some(place) = COUNTRIES.iter().position(known) else { return false };
        if std::mem::replace(&mut seen[place], true) {
            return false;
        }
        if let Some((last, last_small)) = &before {
            heeding &= *last >= name;
            ignoring &= *last_small >= small;
        }
        before = Some((name, small));
    }
    (heeding || ignoring) && seen.iter().all(|&seen| seen)
}

/// Verbs that a sentence on the national symbol has.
#[rustfmt::skip]
const VERBS: [&str; 30] = [
    "is", "are", "was", "were", "be", "been", "being", "has", "have", "had", "became", "becomes", "remains", "represents",
    "represent", "symbolizes", "symbolises", "symbolize", "signifies", "serves", "stands", "chose", "chosen", "selected",
    "adopted", "named", "made", "uses", "features", "depicts",
];

/// Whether these words, in the right order, are a sentence on the bald eagle.
fn names_the_eagle<'t>(words: impl Iterator<Item = &'t str>) -> bool {
    let words: Vec<&str> = words.collect();
    let eagle = words.windows(2).any(|pair| pair[0] == "bald" && matches!(pair[1], "eagle" | "eagles"));
    eagle && words.iter().any(|word| VERBS.contains(word) || word.ends_with("'s"))
}

fn word_reverse(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    if arguments.corrected() {
        return test(|view| {
            let words: Vec<Cow<'_, str>> = view.read_words().iter().map(|word| lower(word)).collect();
            names_the_eagle(words.iter().rev().map(|word| &**word))
        });
    }
    test(|view| {
        // The reversed text has `bald eagle` where a word that starts with `eagle` precedes one that ends in `bald`.
        let mut before: Option<bool> = None;
        words_without_marks(view).any(|word| {
            let word = lower(&word);
            let found = before == Some(true) && word.ends_with("bald");
            before = Some(word.starts_with("eagle"));
            found
        })
    })
}

fn character_reverse(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    if arguments.corrected() {
        return test(|view| {
            let reversed: String = view.lower().chars().rev().collect();
            names_the_eagle(reading::words(&reversed).into_iter())
        });
    }
    test(|view| view.lower().contains("elgae dlab"))
}

fn sentence_alphabet(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    test(move |view| {
        let small = |c: char| c.to_lowercase().next();
        let initial = |sentence: &&str| match corrected {
            true => sentence.chars().find(|&c| reading::is_word_part(c)).and_then(small),
            false => split(sentence).next().and_then(|word| word.chars().next()).and_then(small),
        };
        let follow = |sentences: &[&str]| {
            sentences.len() == 26 && sentences.iter().map(initial).eq(('a'..='z').map(Some))
        };
        match corrected {
            true => follow(view.read_sentences()),
            false => follow(view.sentences()),
        }
    })
}

/// The capitals that the published checker knows, from north to south.
#[rustfmt::skip]
const CAPITALS: [&str; 27] = [
    "Reykjavik", "Helsinki", "Oslo", "Tallinn", "Stockholm", "Riga", "Moscow", "Copenhagen", "Vilnius", "Minsk", "Dublin",
    "Berlin", "Amsterdam", "Warsaw", "London", "Brussels", "Prague", "Luxembourg", "Paris", "Vienna", "Bratislava",
    "Budapest", "Vaduz", "Chisinau", "Bern", "Ljubljana", "Zagreb",
];
/// Kyiv lies between Brussels and Prague.
const BEFORE_KYIV: usize = 16;

fn european_capitals_sort(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    if arguments.corrected() {
        return test(|view| {
            let text = strip(view.text()).trim_end_matches(['.', ',']);
            // The right answer has 250 characters. White space apart, nothing may be added.
            let Some(text) = without_accents(text) else { return false };
            let right = CAPITALS[..BEFORE_KYIV].iter().chain(&["Kyiv"]).chain(&CAPITALS[BEFORE_KYIV..]);
            let mut right = right.copied();
            let same = |name: &str| {
                let wanted = right.next();
                wanted == Some(name)
                    || (wanted == Some("Kyiv") && name == "Kiev")
                    || name.strip_suffix(" City") == wanted
            };
            text.split(',').map(strip).all(same) && right.next().is_none()
        });
    }
    test(|view| {
        let text = ascii(view.text());
        text.split(',').map(strip).filter(|name| !name.is_empty()).eq(CAPITALS)
    })
}

fn date_format_list(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    test(move |view| {
        strip(view.text()).split(',').all(|date| {
            let Some((year, month, day)) = date_parts(strip(date)) else { return false };
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let longest = match month {
                1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
                4 | 6 | 9 | 11 => 30,
                2 if corrected && !leap => 28,
                2 => 29,
                _ => 99,
            };
            let first = u32::from(corrected);
            (1769..=1821).contains(&year) && (first..=12).contains(&month) && (first..=longest).contains(&day)
        })
    })
}

/// Year, month and day of YYYY-MM-DD.
fn date_parts(date: &str) -> Option<(u32, u32, u32)> {
    let mut parts = date.split('-');
    let mut part = |digits: usize| {
        let part = parts
            .next()
            .filter(|part| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit()))?;
        part.parse::<u32>().ok()
    };
    let found = (part(4)?, part(2)?, part(2)?);
    parts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_between_labels() {
        assert_eq!(questions("Question 1: a\n\nQuestion 2) b Question x"), ["a", "b Question x"]);
        assert_eq!(questions("Question one"), ["Question one"]);
        assert!(
            is_option("A) x")
                && is_option("e|x")
                && !is_option("F) x")
                && !is_option("A)")
                && !is_option("A: x")
        );
    }

    #[test]
    fn countries_in_either_order() {
        let mut names: Vec<String> =
            COUNTRIES.iter().map(|country| country.split('|').next().unwrap().to_owned()).collect();
        names.sort();
        names.reverse();
        assert!(are_countries(names.iter().map(String::as_str)));
        assert!(!are_countries(names.iter().skip(1).map(String::as_str)));
        names.swap(3, 4);
        assert!(!are_countries(names.iter().map(String::as_str)));
    }

    #[test]
    fn dates_of_the_calendar() {
        assert_eq!(date_parts("1805-12-02"), Some((1805, 12, 2)));
        for wrong in ["1805-12-2", "1805/12/02", "1805-12-02-", "a805-12-02", "", "--"] {
            assert_eq!(date_parts(wrong), None, "{wrong}");
        }
    }
}
