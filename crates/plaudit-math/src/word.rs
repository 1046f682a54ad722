//! The words after a number: those that change its value, those that can be read as the change, and those that name what
//! is counted.
//!
//! Any noun can be counted, so that nouns cannot be listed. What changes a value is a number, a fraction, a comparison,
//! an operation, a denial or the rest of a sentence, and all of these are closed classes of words.

/// What a word does to the number before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// Names what is counted.
    Noun,
    /// Multiplies: "million", "dozen".
    Scale(u64),
    /// Divides, and a single one goes with the number one: "thirds", "half".
    Part { of: u32, plural: bool },
    /// Raises to a power: "squared".
    Power(u32),
    /// "percent"
    Percent,
    /// Changes the value where no noun follows, as "double" and "wrong".
    Adjective,
    /// Changes the value, or says something about it.
    Other,
}

/// Words that multiply.
const SCALES: [(&str, u64); 10] = [
    ("hundred", 100),
    ("thousand", 1_000),
    ("million", 1_000_000),
    ("billion", 1_000_000_000),
    ("trillion", 1_000_000_000_000),
    ("quadrillion", 1_000_000_000_000_000),
    ("quintillion", 1_000_000_000_000_000_000),
    ("dozen", 12),
    ("lakh", 100_000),
    ("crore", 10_000_000),
];
/// Fractions by their denominators. A quarter is a coin and a season too, so that it has no reading.
const PARTS: [(&str, u32); 13] = [
    ("half", 2),
    ("halve", 2),
    ("third", 3),
    ("fourth", 4),
    ("fifth", 5),
    ("sixth", 6),
    ("seventh", 7),
    ("eighth", 8),
    ("ninth", 9),
    ("tenth", 10),
    ("twelfth", 12),
    ("hundredth", 100),
    ("thousandth", 1_000),
];
/// Words of a number.
const MAX_NUMBER_WORDS: usize = 16;
/// Numbers in words.
const NUMBERS: &str = "\
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen \
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety";
/// The value of a number in words, by its place in the list.
fn small_number(word: &str) -> Option<u64> {
    let place = NUMBERS.split_ascii_whitespace().position(|other| other.eq_ignore_ascii_case(word))? as u64;
    Some(if place <= 20 { place } else { (place - 18) * 10 })
}

/// A text that begins with a number in words, with that number in digits: `thirty-one apples` is `31 apples`.
pub(crate) fn in_digits(text: &str) -> Option<String> {
    if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    if let Some(size) = ["negative ", "minus "].iter().find_map(|sign| text.strip_prefix(sign)) {
        return in_digits(size).map(|digits| format!("-{digits}"));
    }
    let ends = |c: char| c == ' ' || c == '-';
    let (mut total, mut part, mut scale, mut end) = (0u64, 0u64, u64::MAX, 0);
    let mut fraction = String::new();
    let mut at = 0;
    for word in text.split(ends).take(MAX_NUMBER_WORDS) {
        let stop = at + word.len();
        let next = text[stop..].trim_start_matches(ends).split(ends).next().unwrap_or("");
        at = (stop + 1).min(text.len());
        if text[..stop].contains(" point ") {
            match small_number(word).filter(|digit| *digit < 10) {
                Some(digit) => fraction.push_str(&digit.to_string()),
                None => break,
            }
        } else if let Some(value) = small_number(word) {
            // "two three" is no number.
            let room = match value {
                1..10 => 10,
                0 => u64::MAX,
                _ => 100,
            };
            if end > 0 && (part % room != 0 || room == 10 && (part % 100) / 10 == 1) {
                return None;
            }
            part += value;
        } else if let Some((_, by)) =
            SCALES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).filter(|_| end > 0)
        {
            match by {
                100 if (1..100).contains(&part) => part *= 100,
                1_000..=1_000_000_000_000 if part > 0 && *by < scale => {
                    total += part.checked_mul(*by)?;
                    (part, scale) = (0, *by);
                }
                _ => break,
            }
        } else if word.is_empty()
            || end > 0 && matches!(word, "and" | "point") && small_number(next).is_some()
        {
            continue;
        } else {
            break;
        }
        end = stop;
    }
    let rest = text[end..].trim_start_matches('-');
    let point = if fraction.is_empty() { "" } else { "." };
    let space = if rest.starts_with(|c: char| c.is_alphabetic()) { " " } else { "" };
    (end > 0).then(|| format!("{}{point}{fraction}{space}{rest}", total + part))
}

/// Words that change a value unless a noun follows: ordinals, multiples, verdicts.
const ADJECTIVES: &str = "\
    double triple quadruple grand gross negative odd wrong incorrect false invalid binary octal hex hexadecimal \
    inverse reciprocal opposite minimum maximum";
/// Words that change a value: scales without a single reading, operations, comparisons, denials, and parts of sentences.
const OTHERS: &str = "\
    fold score once twice thrice quarter quarters millionth millionths billionth billionths mil mln mio mrd mn bn tn doz \
    gazillion zillion myriad ppm ppb permille promille basis bps base radix mille milliard milliards tausend \
    hundert dutzend douzaine docena docenas plus minus divided multiplied over under added subtracted increased \
    decreased reduced raised rounded truncated negated negation inverted reversed backwards doubled tripled \
    quadrupled halved root radical factorial mod modulo conjugate complement exponent pi infinity than least \
    most max above below beyond exceeding upward upwards onward onwards within between until till ish or and \
    either plusminus not no non never none neither nor without except excluding but unless nothing null untrue \
    impossible mistaken mistake error fake maybe perhaps guess cannot isnt arent wasnt dont doesnt wont cant \
    unknown undefined if where for when while because since although though however whereas then so thus hence \
    with to from by is are was were be been being has have had do does did can could may might must shall should \
    will would equals equal means becomes makes gives fails seems correct right true answer solution i you he \
    she it we they me him them itself this that these those which who whose what any some few several too both";
/// Adverbs that are nouns, or say how often or how exactly.
const HARMLESS: &str = "\
    daily weekly monthly yearly hourly only exactly precisely approximately roughly nearly family jelly \
    butterfly fly lily assembly supply bully belly";

/// Nouns one letter away from a word that multiplies.
const NEAR_SCALES: &str = "bullion mullion";

/// Whether a word is one of those that multiply with one letter wrong, too many or missing, or two in the wrong order. Its value
/// is not guessed, and it is no noun either.
fn is_misspelt_scale(word: &str) -> bool {
    let near = |scale: &str| {
        let (word, scale) = (word.as_bytes(), scale.as_bytes());
        let same = word.iter().zip(scale).take_while(|(one, other)| one == other).count();
        let (word, scale) = (&word[same..], &scale[same..]);
        match (word, scale) {
            ([_, rest @ ..], _) if rest == scale => true,
            (_, [_, rest @ ..]) if rest == word => true,
            ([a, b, word @ ..], [c, d, scale @ ..]) if a == d && b == c => word == scale,
            ([_, word @ ..], [_, scale @ ..]) => word == scale,
            _ => false,
        }
    };
    !is_in(NEAR_SCALES, word) && SCALES.iter().any(|(scale, _)| scale.len() >= 7 && near(scale))
}

/// Whether a list of words has a word.
fn is_in(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|other| other == word)
}

/// Whether the words after a number only name what is counted: none of them changes its value.
pub(crate) fn name_what_is_counted(words: &[&str]) -> bool {
    let after = |at: usize| words.get(at + 1).copied().map_or("", |next| next);
    words.iter().enumerate().all(|(at, word)| match meaning(word) {
        Word::Noun => true,
        Word::Adjective | Word::Part { plural: false, .. } => {
            !matches!(after(at), "" | "of" | "a" | "the") && meaning(after(at)) == Word::Noun
        }
        // Powers of units, and what is left over.
        Word::Power(_) => at > 0,
        Word::Other => at > 0 && *word == "over" && words[at - 1] == "left",
        _ => false,
    })
}

/// What a word does to the number before it.
pub(crate) fn meaning(word: &str) -> Word {
    let word = word.trim_matches(['.', ',', ';', ':', '!', '?', '(', ')', '"', '\'', '-', '*', '$']);
    // Another number, and capitals that multiply and are no units.
    if word.starts_with(|c: char| c.is_ascii_digit())
        || matches!(word, "M" | "B" | "MM" | "Mn" | "Bn" | "BN" | "MN")
    {
        return Word::Other;
    }
    // A letter that is no unit is a factor.
    if let Some(letter) = word.chars().next().filter(|_| word.len() == 1) {
        return match letter {
            'k' => Word::Scale(1_000),
            'b' | 'e' | 'i' | 'j' | 'n'..='r' | 'u' | 'x'..='z' | 'X'..='Z' => Word::Other,
            _ => Word::Noun,
        };
    }
    let lower = word.to_lowercase();
    if !lower.is_ascii() && !lower.contains('\'') {
        return foreign(&lower);
    }
    if lower.contains('-') {
        return hyphenated(&lower);
    }
    let single = lower.strip_suffix('s').map_or(&*lower, |stem| stem);
    let plural = single.len() < lower.len();
    if let Some((_, factor)) = SCALES.iter().find(|(word, _)| *word == single) {
        return Word::Scale(*factor);
    }
    if let Some((_, of)) = PARTS.iter().find(|(word, _)| *word == single)
        && lower != "halve"
    {
        return Word::Part { of: *of, plural };
    }
    match &*lower {
        "squared" => return Word::Power(2),
        "cubed" => return Word::Power(3),
        "percent" | "percents" | "pct" => return Word::Percent,
        "square" | "sq" | "cubic" | "cu" => return Word::Adjective,
        _ => {}
    }
    if is_in(ADJECTIVES, &lower) {
        return Word::Adjective;
    }
    let adverb = lower.ends_with("ly") && lower.len() > 3 && !is_in(HARMLESS, &lower);
    let multiple = lower.ends_with("fold") && lower.len() > 4 && lower != "scaffold";
    let large = single.ends_with("illion")
        || single.ends_with("illionth")
        || (lower.starts_with("million") || lower.starts_with("milliard")) && !lower.contains("aire");
    // "42 e5", and "42 ^2".
    let power = lower.starts_with('^')
        || lower.strip_prefix('e').is_some_and(|digits| {
            digits.trim_start_matches(['+', '-']).bytes().all(|byte| byte.is_ascii_digit())
        });
    if is_in(NUMBERS, single) || is_in(OTHERS, &lower) || lower.contains("n't") || adverb || multiple || large
    {
        return Word::Other;
    }
    if power || is_misspelt_scale(&lower) || is_misspelt_scale(single) {
        return Word::Other;
    }
    Word::Noun
}

/// A compound. Its first part describes, as in "five-dollar bills", unless all of it is a number or it goes beyond one.
fn hyphenated(word: &str) -> Word {
    let mut parts = word.split('-').filter(|part| !part.is_empty());
    let numbers = parts.clone().all(|part| {
        is_in(NUMBERS, part) || !matches!(meaning(part), Word::Noun | Word::Adjective | Word::Other)
    });
    let beyond =
        |part: &str| matches!(part, "plus" | "minus" | "fold" | "ish" | "some" | "odd" | "not" | "or");
    if numbers || parts.any(beyond) { Word::Other } else { Word::Noun }
}

/// Words of other scripts. A thousand before a unit is its prefix, as in 千克.
fn foreign(word: &str) -> Word {
    const SCALES: [(char, u64); 7] = [
        ('十', 10),
        ('百', 100),
        ('千', 1_000),
        ('万', 10_000),
        ('萬', 10_000),
        ('亿', 100_000_000),
        ('億', 100_000_000),
    ];
    if word.contains(['半', '不', '非', '错', '负', '无', '没'])
        || word.contains("分之")
        || word.contains("以")
    {
        return Word::Other;
    }
    let mut chars = word.chars();
    let first = chars.next();
    let prefix = first == Some('千')
        && matches!(chars.next(), Some('克' | '米' | '瓦' | '卡' | '帕' | '焦' | '伏' | '赫'));
    match SCALES.iter().find(|(scale, _)| first == Some(*scale)) {
        Some((_, factor)) if !prefix => Word::Scale(*factor),
        _ if ["million", "milliard", "millón"].iter().any(|stem| word.starts_with(stem)) => Word::Other,
        _ => Word::Noun,
    }
}
