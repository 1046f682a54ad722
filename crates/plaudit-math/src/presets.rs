//! Presets: the scorers of other trainers. Some are reproduced byte for byte, as they compare strings; of the others the
//! place of the answer and the kinds of outcome are the same, and equality is that of this crate.

use crate::extract;
use crate::limits::NoValue;
use crate::options::{AnswerIn, Options, Percent, Think};
use crate::verify::{Outcome, Reference, ReferenceError, verify, verify_found};
use plaudit_text::{braced, is_space, strip};

/// Another trainer's scorer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum Preset {
    /// The last box, compared as strings in Hendrycks' normal form. The same bytes as verl.
    #[cfg_attr(feature = "serde", serde(rename = "verl.math_reward"))]
    VerlMathReward,
    /// The last `Answer:` line of the last 300 characters, in Minerva's normal form; 1 or -1. The same bytes as verl.
    #[cfg_attr(feature = "serde", serde(rename = "verl.math_dapo"))]
    VerlMathDapo,
    /// The same with `strict_box_verify`: the last box of the last 100 characters. The same bytes as verl.
    #[cfg_attr(feature = "serde", serde(rename = "verl.math_dapo_strict_box"))]
    VerlMathDapoStrictBox,
    /// The last `#### number` of the last 300 characters. The same bytes as verl.
    #[cfg_attr(feature = "serde", serde(rename = "verl.gsm8k"))]
    VerlGsm8k,
    /// The same with `method="flexible"`: the last number. The same bytes as verl.
    #[cfg_attr(feature = "serde", serde(rename = "verl.gsm8k_flexible"))]
    VerlGsm8kFlexible,
    /// A box or a formula, never a bare number; a reference that cannot be read is skipped. Equality is plaudit's.
    #[cfg_attr(feature = "serde", serde(rename = "open_r1.accuracy"))]
    OpenR1Accuracy,
    /// As `open_r1.accuracy`.
    #[cfg_attr(feature = "serde", serde(rename = "trl.accuracy"))]
    TrlAccuracy,
    /// The reference as if it were boxed, the thinking kept. Equality is plaudit's.
    #[cfg_attr(feature = "serde", serde(rename = "verl.math_verify"))]
    VerlMathVerify,
    /// The text after "answer is", the last box, or the text after the last "is", "=" or "get". Equality is plaudit's, with
    /// strict percentages.
    #[cfg_attr(feature = "serde", serde(rename = "verl.prime_math"))]
    VerlPrimeMath,
    /// Nine tenths for the last box and one for the format. Equality is plaudit's, with strict percentages.
    #[cfg_attr(feature = "serde", serde(rename = "verl.geo3k"))]
    VerlGeo3k,
}

/// Every preset.
const ALL: [Preset; 10] = [
    Preset::VerlMathReward,
    Preset::VerlMathDapo,
    Preset::VerlMathDapoStrictBox,
    Preset::VerlGsm8k,
    Preset::VerlGsm8kFlexible,
    Preset::OpenR1Accuracy,
    Preset::TrlAccuracy,
    Preset::VerlMathVerify,
    Preset::VerlPrimeMath,
    Preset::VerlGeo3k,
];

impl Preset {
    /// The name of the preset in a recipe.
    pub const fn name(self) -> &'static str {
        match self {
            Self::VerlMathReward => "verl.math_reward",
            Self::VerlMathDapo => "verl.math_dapo",
            Self::VerlMathDapoStrictBox => "verl.math_dapo_strict_box",
            Self::VerlGsm8k => "verl.gsm8k",
            Self::VerlGsm8kFlexible => "verl.gsm8k_flexible",
            Self::OpenR1Accuracy => "open_r1.accuracy",
            Self::TrlAccuracy => "trl.accuracy",
            Self::VerlMathVerify => "verl.math_verify",
            Self::VerlPrimeMath => "verl.prime_math",
            Self::VerlGeo3k => "verl.geo3k",
        }
    }

    /// The preset of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// The numbers that the scorer takes as parameters, with their defaults.
    pub const fn scores(self) -> PresetScores {
        match self {
            Self::VerlGsm8k | Self::VerlGsm8kFlexible => {
                PresetScores { score: Some(1.0), format_score: Some(0.0) }
            }
            Self::VerlGeo3k => PresetScores { score: None, format_score: Some(0.1) },
            _ => PresetScores { score: None, format_score: None },
        }
    }

    /// Whether the scores are those of the other scorer to the last bit.
    pub const fn is_exact(self) -> bool {
        matches!(
            self,
            Self::VerlMathReward
                | Self::VerlMathDapo
                | Self::VerlMathDapoStrictBox
                | Self::VerlGsm8k
                | Self::VerlGsm8kFlexible
        )
    }
}

/// The numbers that some scorers take as parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PresetScores {
    /// The score of a right answer. `None`: the scorer has no such parameter.
    pub score: Option<f64>,
    /// The score of an answer that is there and wrong, or the share of the format. `None`: as above.
    pub format_score: Option<f64>,
}

/// The score of a preset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PresetScore {
    /// What the other scorer returns. `None`: it skips the example.
    pub score: Option<f64>,
    /// What became of the response.
    pub outcome: Outcome,
}

/// A reference for one preset, read once.
#[derive(Clone, Debug)]
pub struct PresetReference {
    preset: Preset,
    /// The score of a right answer, and that of a wrong one or the share of the format.
    scores: (f64, f64),
    text: String,
    parsed: Option<Result<Reference, ReferenceError>>,
}

impl PresetReference {
    /// Reads a reference for a preset.
    pub fn new(preset: Preset, reference: &str, seed: u64) -> Self {
        let options = Options { seed, think: Think::Keep, ..Options::default() };
        let parsed = match preset {
            Preset::OpenR1Accuracy | Preset::TrlAccuracy | Preset::VerlMathVerify => {
                Some(Reference::parse(reference, &options))
            }
            Preset::VerlPrimeMath => {
                Some(Reference::parse(reference, &Options { percent: Percent::Strict, ..options }))
            }
            Preset::VerlGeo3k => Some(Reference::parse(
                reference,
                &Options { percent: Percent::Strict, answer: AnswerIn::Box, ..options },
            )),
            _ => None,
        };
        let PresetScores { score, format_score } = preset.scores();
        let scores = (score.unwrap_or(1.0), format_score.unwrap_or(0.0));
        Self { preset, scores, text: reference.to_owned(), parsed }
    }

    /// Scores with other numbers than the defaults. What the scorer has no parameter for is left as it is.
    #[must_use]
    pub fn with_scores(mut self, given: PresetScores) -> Self {
        let own = self.preset.scores();
        if let (Some(_), Some(score)) = (own.score, given.score) {
            self.scores.0 = score;
        }
        if let (Some(_), Some(format_score)) = (own.format_score, given.format_score) {
            self.scores.1 = format_score;
        }
        self
    }

    /// Why the reference is none. A preset that compares strings takes any text.
    pub fn error(&self) -> Option<ReferenceError> {
        self.parsed.as_ref().and_then(|parsed| parsed.as_ref().err().copied())
    }

    /// Scores one response.
    pub fn score(&self, response: &str) -> PresetScore {
        match self.preset {
            Preset::VerlMathReward => exact(hendrycks(response, &self.text), 0.0),
            Preset::VerlMathDapo => exact(minerva(tail(response, 300), &self.text), -1.0),
            Preset::VerlMathDapoStrictBox => {
                exact(strict_box(tail(tail(response, 300), 100), &self.text), -1.0)
            }
            Preset::VerlGsm8k => self.gsm8k(gsm8k_strict(tail(response, 300), &self.text)),
            Preset::VerlGsm8kFlexible => self.gsm8k(gsm8k_flexible(tail(response, 300), &self.text)),
            _ => self.by_class(response),
        }
    }

    /// An answer that is there and wrong has the score of the format, none has nothing.
    fn gsm8k(&self, right: Option<bool>) -> PresetScore {
        let score = match right {
            Some(true) => self.scores.0,
            Some(false) => self.scores.1,
            None => 0.0,
        };
        PresetScore { score: Some(score), ..exact(right, 0.0) }
    }

    fn by_class(&self, response: &str) -> PresetScore {
        let reference = match &self.parsed {
            Some(Ok(reference)) => reference,
            Some(Err(ReferenceError::Unparsable(bound))) => {
                return PresetScore { score: self.without_reference(), outcome: Outcome::Unusable(*bound) };
            }
            _ => return PresetScore { score: self.without_reference(), outcome: Outcome::NoAnswer },
        };
        let verdict = match self.preset {
            Preset::OpenR1Accuracy | Preset::TrlAccuracy => {
                verify_found(extract::box_or_math(response), reference)
            }
            Preset::VerlPrimeMath => match prime_answer(response) {
                Some(answer) => {
                    let outcome = reference.compare(&answer).outcome;
                    return PresetScore { score: Some(f64::from(u8::from(outcome.is_right()))), outcome };
                }
                None => return PresetScore { score: Some(0.0), outcome: Outcome::NoAnswer },
            },
            _ => verify(response, reference),
        };
        let accuracy = f64::from(u8::from(verdict.outcome.is_right()));
        let score = match self.preset {
            Preset::VerlGeo3k => {
                let share = self.scores.1;
                (1.0 - share) * accuracy + share * f64::from(u8::from(has_geo3k_format(response)))
            }
            _ => accuracy,
        };
        PresetScore { score: Some(score), outcome: verdict.outcome }
    }

    /// What the scorer says when the reference cannot be read.
    fn without_reference(&self) -> Option<f64> {
        match self.preset {
            Preset::OpenR1Accuracy | Preset::TrlAccuracy => None,
            _ => Some(0.0),
        }
    }
}

/// The score of a scorer that compares strings. `None`: it found no answer.
fn exact(right: Option<bool>, wrong: f64) -> PresetScore {
    match right {
        Some(true) => PresetScore { score: Some(1.0), outcome: Outcome::Right },
        Some(false) => PresetScore { score: Some(wrong), outcome: Outcome::Wrong },
        None => PresetScore { score: Some(wrong), outcome: Outcome::NoAnswer },
    }
}

/// The last `count` characters.
fn tail(text: &str, count: usize) -> &str {
    let from = text.char_indices().rev().nth(count - 1).map_or(0, |(at, _)| at);
    &text[from..]
}

// verl.math_reward: Hendrycks.

fn hendrycks(response: &str, reference: &str) -> Option<bool> {
    let boxed;
    let answer = if let Some((_, after)) = response.rsplit_once("\\boxed ") {
        boxed = after.split('$').next().map_or(after, |first| first);
        boxed
    } else {
        let start = response.rfind("\\boxed").or_else(|| response.rfind("\\fbox"))?;
        let whole = braced(response, start)?;
        // A box of another kind is an error of the scorer, and no credit.
        let Some(inner) = whole.strip_prefix("\\boxed{").and_then(|inner| inner.strip_suffix('}')) else {
            return Some(false);
        };
        inner
    };
    Some(match (stripped(answer), stripped(reference)) {
        (Some(a), Some(b)) => a == b,
        // Where one of the two cannot be normalised, both are compared as they are.
        _ => answer == reference,
    })
}

/// The normal form of a string. `None`: the original fails on it.
fn stripped(text: &str) -> Option<String> {
    let mut s = text.replace('\n', "").replace("\\!", "").replace("\\\\", "\\");
    s = s.replace("tfrac", "frac").replace("dfrac", "frac");
    s = s.replace("\\left", "").replace("\\right", "");
    s = s.replace("^{\\circ}", "").replace("^\\circ", "").replace("\\$", "");
    // Units on the right. Two texts are too many.
    if let Some(at) = s.find("\\text{ ") {
        if s[at + 1..].contains("\\text{ ") {
            return None;
        }
        s.truncate(at);
    }
    s = s.replace("\\\\%", "").replace("\\%", "");
    s = s.replace(" .", " 0.").replace("{.", "{0.");
    if s.is_empty() {
        return Some(s);
    }
    if s.starts_with('.') {
        s.insert(0, '0');
    }
    if let Some(at) = s.find('=')
        && !s[at + 1..].contains('=')
        && s[..at].chars().count() <= 2
    {
        s.drain(..=at);
    }
    s = braced_roots(&s)?.replace(' ', "");
    s = braced_fractions(&s)?;
    if s == "0.5" {
        return Some("\\frac{1}{2}".to_owned());
    }
    Some(slash_fraction(&s).unwrap_or(s))
}

/// `\sqrt3` as `\sqrt{3}`.
fn braced_roots(s: &str) -> Option<String> {
    let mut parts = s.split("\\sqrt");
    let mut out = parts.next().map_or_else(String::new, str::to_owned);
    for part in parts {
        let first = part.chars().next()?;
        if first == '{' {
            out.push_str("\\sqrt");
            out.push_str(part);
        } else {
            out.push_str("\\sqrt{");
            out.push(first);
            out.push('}');
            out.push_str(&part[first.len_utf8()..]);
        }
    }
    Some(out)
}

/// `\frac12` as `\frac{1}{2}`, and `\frac1{72}` too. A fraction that ends after one character leaves all as it was.
fn braced_fractions(s: &str) -> Option<String> {
    let mut parts = s.split("\\frac");
    let mut out = parts.next().map_or_else(String::new, str::to_owned);
    for part in parts {
        out.push_str("\\frac");
        let mut chars = part.chars();
        let first = chars.next()?;
        if first == '{' {
            out.push_str(part);
            continue;
        }
        let Some(second) = chars.next() else { return Some(s.to_owned()) };
        out.push('{');
        out.push(first);
        out.push('}');
        if second == '{' {
            out.push(second);
        } else {
            out.push('{');
            out.push(second);
            out.push('}');
        }
        out.push_str(chars.as_str());
    }
    Some(out)
}

/// `3/4` as `\frac{3}{4}`, if both are integers in their usual spelling.
fn slash_fraction(s: &str) -> Option<String> {
    let (a, b) = s.split_once('/')?;
    let integer = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let plain = !digits.is_empty() && digits.len() <= 4300 && digits.bytes().all(|c| c.is_ascii_digit());
        plain && (digits == "0" && text == "0" || !digits.starts_with('0'))
    };
    (integer(a) && integer(b)).then(|| format!("\\frac{{{a}}}{{{b}}}"))
}

// verl.math_dapo: Minerva.

/// Replaced in this order.
const SUBSTITUTED: [(&str, &str); 10] = [
    ("an ", ""),
    ("a ", ""),
    (".$", "$"),
    ("\\$", ""),
    ("\\ ", ""),
    (" ", ""),
    ("mbox", "text"),
    (",\\text{and}", ","),
    ("\\text{and}", ","),
    ("\\text{m}", "\\text{}"),
];

/// Deleted in this order, wherever they stand.
const DELETED: [&str; 41] = [
    "square",
    "ways",
    "integers",
    "dollars",
    "mph",
    "inches",
    "hours",
    "km",
    "units",
    "\\ldots",
    "sue",
    "points",
    "feet",
    "minutes",
    "digits",
    "cents",
    "degrees",
    "cm",
    "gm",
    "pounds",
    "meters",
    "meals",
    "edges",
    "students",
    "childrentickets",
    "multiples",
    "\\text{s}",
    "\\text{.}",
    "\\text{\ns}",
    "\\text{}^2",
    "\\text{}^3",
    "\\text{\n}",
    "\\text{}",
    "\\mathrm{th}",
    "^\\circ",
    "^{\\circ}",
    "\\;",
    ",\\!",
    "{,}",
    "\"",
    "\\dots",
];

fn minerva(response: &str, reference: &str) -> Option<bool> {
    let answer = last_answer_line(response);
    let right = minerva_form(answer.unwrap_or("[INVALID]")) == minerva_form(reference);
    answer.map(|_| right).or(if right { Some(true) } else { None })
}

/// The text after the last `Answer:`, with matches taken from left to right as a regular expression takes them.
fn last_answer_line(text: &str) -> Option<&str> {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let byte = |index: usize| chars.get(index).map_or(text.len(), |(at, _)| *at);
    let mut found = None;
    let mut at = 0;
    while at < chars.len() {
        let Some((start, end)) = answer_line_at(&chars, at) else {
            at += 1;
            continue;
        };
        found = Some(&text[byte(start)..byte(end)]);
        at = end;
    }
    found
}

/// The span of the text after `Answer:` at one place, in characters.
fn answer_line_at(chars: &[(usize, char)], at: usize) -> Option<(usize, usize)> {
    let char_at = |index: usize| chars.get(index).map(|(_, c)| *c);
    for (offset, letter) in "answer".chars().enumerate() {
        let c = char_at(at + offset)?;
        let same = c.eq_ignore_ascii_case(&letter) || letter == 's' && c == 'ſ';
        if !same {
            return None;
        }
    }
    let spaces = |mut index: usize| {
        while char_at(index).is_some_and(is_space) {
            index += 1;
        }
        index
    };
    let colon = spaces(at + 6);
    if char_at(colon)? != ':' {
        return None;
    }
    let mut start = spaces(colon + 1);
    if start == chars.len() {
        // Nothing but white space: the last of it that is no line end.
        start = (colon + 1..start).rev().find(|index| char_at(*index) != Some('\n'))?;
    }
    let mut end = start;
    while char_at(end).is_some_and(|c| c != '\n') {
        end += 1;
    }
    Some((start, end))
}

fn minerva_form(text: &str) -> String {
    let mut s = text.rsplit('=').next().map_or(text, |last| last).to_owned();
    for (before, after) in SUBSTITUTED {
        s = s.replace(before, after);
    }
    for deleted in DELETED {
        s = s.replace(deleted, "");
    }
    s = s.split('\n').map(first_formula).collect::<Vec<String>>().join("\n");
    for command in ["\\text{", "\\textbf{", "\\overline{"] {
        s = unwrapped(&s, command, false);
    }
    s = unwrapped(&s, "\\boxed{", true);
    s = braced_after(&s, "frac", true);
    s = braced_after(&s, "sqrt", false).replace('$', "");
    let digits = s.replace(',', "");
    if !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || !c.is_ascii() && c.is_numeric()) {
        s = digits;
    }
    strip(&s).to_owned()
}

/// A line with a formula in dollars is that formula.
fn first_formula(line: &str) -> String {
    let mut parts = line.splitn(3, '$');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(_), Some(inner), Some(_)) => format!("${inner}$"),
        _ => line.to_owned(),
    }
}

/// The content of a command instead of the command, up to the first or the last brace of its line.
fn unwrapped(s: &str, command: &str, greedy: bool) -> String {
    let mut out = String::with_capacity(s.len());
    let mut rest = s;
    while let Some((before, after)) = rest.split_once(command) {
        let line = after.split('\n').next().map_or(after, |line| line);
        let close = if greedy { line.rfind('}') } else { line.find('}') };
        out.push_str(before);
        match close {
            Some(close) => {
                out.push_str(&after[..close]);
                rest = &after[close + 1..];
            }
            None => {
                out.push_str(command);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Braces around the one or two characters after a word, if there are none.
fn braced_after(s: &str, word: &str, two: bool) -> String {
    let mut out = String::with_capacity(s.len());
    let mut rest = s;
    while let Some((before, after)) = rest.split_once(word) {
        out.push_str(before);
        out.push_str(word);
        let mut chars = after.chars();
        let first = chars.next().filter(|c| *c != '{');
        let second = if two { chars.next().filter(|c| *c != '\n') } else { None };
        match (first, second) {
            (Some(first), Some(second)) if two => {
                out.extend(['{', first, '}', '{', second, '}']);
                rest = chars.as_str();
            }
            (Some(first), _) if !two => {
                out.extend(['{', first, '}']);
                rest = chars.as_str();
            }
            _ => rest = after,
        }
    }
    out.push_str(rest);
    out
}

fn strict_box(response: &str, reference: &str) -> Option<bool> {
    let start = response.rfind("\\boxed{")?;
    let whole = braced(response, start)?;
    Some(whole.strip_prefix("\\boxed{").and_then(|inner| inner.strip_suffix('}')) == Some(reference))
}

// verl.gsm8k.

/// The length of the number that a text begins with: a sign, and digits, dots and commas.
fn number_length(text: &str) -> Option<usize> {
    let sign = usize::from(text.starts_with('-'));
    let digits = text[sign..].bytes().take_while(|c| c.is_ascii_digit() || matches!(c, b'.' | b',')).count();
    (digits > 0).then_some(sign + digits)
}

fn gsm8k_strict(response: &str, reference: &str) -> Option<bool> {
    let mut found = None;
    let mut rest = response;
    while let Some(at) = rest.find("#### ") {
        let after = &rest[at + 5..];
        match number_length(after) {
            Some(len) => {
                found = Some(&after[..len]);
                rest = &after[len..];
            }
            None => rest = &rest[at + 1..],
        }
    }
    found.map(|number| number.replace(',', "") == reference)
}

fn gsm8k_flexible(response: &str, reference: &str) -> Option<bool> {
    let mut first = None;
    let mut last = None;
    let mut rest = response;
    while let Some(c) = rest.chars().next() {
        let Some(len) = number_length(rest) else {
            rest = &rest[c.len_utf8()..];
            continue;
        };
        let number = &rest[..len];
        first = first.or(Some(number));
        if number != "." {
            last = Some(number);
        }
        rest = &rest[len..];
    }
    last.or(first).map(|number| number == reference)
}

// verl.prime_math and verl.geo3k.

/// The text that the scorer would grade, if it has a digit.
fn prime_answer(response: &str) -> Option<String> {
    let mut rest = response;
    let mut matched = false;
    let lower_find = |text: &str, mark: &str| {
        let lower = text.to_ascii_lowercase();
        lower.rfind(mark)
    };
    for mark in ["answer:", "answer is", "answers are"] {
        if let Some(at) = lower_find(rest, mark) {
            rest = rest[at + mark.len()..].trim();
            matched = true;
        }
    }
    for mark in ["is answer", "is the answer", "are answers", "are the answers"] {
        if let Some(at) = lower_find(rest, mark) {
            rest = rest[..at].trim();
            matched = true;
        }
    }
    match extract::extract(rest, AnswerIn::Box, Think::Keep) {
        Ok(Some(found)) => {
            return found.text.contains(|c: char| c.is_numeric()).then(|| found.text.into_owned());
        }
        Err(NoValue::Empty | NoValue::Unbalanced) | Ok(None) => {}
        Err(_) => return None,
    }
    if let Some(at) = rest.rfind(". ") {
        rest = rest[..at].trim();
    }
    for mark in ["be ", "is ", "are ", "=", ": ", "get ", "be\n", "is\n", "are\n", ":\n", "get\n"] {
        if let Some(at) = lower_find(rest, mark) {
            rest = rest[at + mark.len()..].trim();
            matched = true;
        }
    }
    (matched && rest.contains(|c: char| c.is_numeric())).then(|| rest.to_owned())
}

/// Thinking in its tags, then a box.
fn has_geo3k_format(response: &str) -> bool {
    let Some(inner) = response.strip_prefix("<think>") else { return false };
    let Some(at) = inner.find("</think>") else { return false };
    let after = &inner[at..];
    after.find("\\boxed{").is_some_and(|open| after[open..].contains('}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(preset: Preset, response: &str, reference: &str) -> Option<f64> {
        PresetReference::new(preset, reference, 0).score(response).score
    }

    #[test]
    fn names_round_trip() {
        for preset in ALL {
            assert_eq!(Preset::from_name(preset.name()), Some(preset));
        }
    }

    #[test]
    fn hendrycks_strings() {
        let preset = Preset::VerlMathReward;
        assert_eq!(score(preset, "\\boxed{\\tfrac12}", "\\frac{1}{2}"), Some(1.0));
        assert_eq!(score(preset, "\\boxed{0.5}", "\\frac{1}{2}"), Some(1.0));
        assert_eq!(score(preset, "\\boxed{4\\text{ or }5}", "4"), Some(1.0));
        assert_eq!(score(preset, "\\fbox{4}", "4"), Some(0.0));
        assert_eq!(score(preset, "$\\boxed 4$", "4"), Some(1.0));
        assert_eq!(score(preset, "\\boxed{\\sqrt}", "\\sqrt"), Some(1.0));
    }

    #[test]
    fn minerva_lines() {
        let preset = Preset::VerlMathDapo;
        assert_eq!(score(preset, "Answer: $1,000$ dollars", "1000"), Some(1.0));
        assert_eq!(score(preset, "answer :\n\n x = 5", "5"), Some(1.0));
        assert_eq!(score(preset, "Answer: 5\nmore", "6"), Some(-1.0));
        assert_eq!(score(preset, "\\boxed{5}", "5"), Some(-1.0));
        assert_eq!(score(preset, "Answer:   ", ""), Some(1.0));
    }

    #[test]
    fn gsm8k_numbers() {
        assert_eq!(score(Preset::VerlGsm8k, "so\n#### 1,000", "1000"), Some(1.0));
        assert_eq!(score(Preset::VerlGsm8k, "####  5", "5"), Some(0.0));
        assert_eq!(score(Preset::VerlGsm8kFlexible, "5 apples. That is all.", "5"), Some(1.0));
    }

    #[test]
    fn scores_are_parameters_where_the_scorer_has_them() {
        let given = PresetScores { score: Some(2.0), format_score: Some(0.25) };
        let score =
            |preset, response| PresetReference::new(preset, "5", 0).with_scores(given).score(response).score;
        for preset in [Preset::VerlGsm8k, Preset::VerlGsm8kFlexible] {
            assert_eq!(score(preset, "#### 5"), Some(2.0));
            assert_eq!(score(preset, "#### 6"), Some(0.25));
            assert_eq!(score(preset, "none"), Some(0.0));
        }
        assert_eq!(score(Preset::VerlGeo3k, "\\boxed{5}"), Some(0.75));
        assert_eq!(score(Preset::VerlGeo3k, "<think>x</think>\\boxed{6}"), Some(0.25));
        assert_eq!(score(Preset::VerlMathReward, "\\boxed{5}"), Some(1.0));
        assert_eq!(score(Preset::VerlMathDapo, "Answer: 6"), Some(-1.0));
    }

    #[test]
    fn unreadable_references_are_skipped() {
        assert_eq!(score(Preset::TrlAccuracy, "\\boxed{5}", "\\frac{"), None);
        assert_eq!(score(Preset::TrlAccuracy, "\\boxed{5}", "$5$"), Some(1.0));
        assert_eq!(score(Preset::TrlAccuracy, "5", "$5$"), Some(0.0));
    }

    #[test]
    fn geo3k_adds_a_tenth_for_the_format() {
        assert_eq!(score(Preset::VerlGeo3k, "<think>x</think>\\boxed{5}", "5"), Some(1.0));
        assert_eq!(score(Preset::VerlGeo3k, "\\boxed{5}", "5"), Some(0.9));
    }
}
