//! Verdict parser: strict reading of a judge's reply. Only what stands in the agreed place, exactly once and in the agreed
//! letters, counts; everything else is a failure with its cause, never a guess.

use super::expected::{AnswerLocation, ExpectedAnswer, Side, Verdict};
use super::reply::{Reply, Token};
use crate::input::{InputError, strict};
use crate::reason::{Code, Reason};
use memchr::memmem;
use plaudit_text::{json_string_end, json_tokens};
use serde_json::{Map, Value};

/// How much of the probability must lie on what was asked for.
const LEAST_MASS: f64 = 0.95;
/// How much rounding may lift a sum of probabilities above 1.
const ROUNDING: f64 = 1e-3;
/// How far into a reply a refusal is looked for, in characters.
const REFUSAL_WITHIN: usize = 300;
/// The longest text in double brackets that is taken for a verdict, in bytes.
const MAX_BRACKET: usize = 16;
/// How judges begin when they do not answer.
const REFUSALS: [&str; 18] = [
    "i'm sorry",
    "i am sorry",
    "sorry, but",
    "i can't",
    "i cannot",
    "i can not",
    "i won't",
    "i will not",
    "i'm unable",
    "i am unable",
    "i'm not able",
    "i am not able",
    "i must decline",
    "can't assist",
    "cannot assist",
    "我无法",
    "我不能",
    "抱歉",
];

/// How replies to one call are read.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerParser {
    /// What counts as an answer.
    pub expected: ExpectedAnswer,
    /// Where it must stand.
    pub location: AnswerLocation,
}

impl AnswerParser {
    /// The verdict of a reply.
    pub fn read(&self, reply: &Reply) -> Result<Verdict, Reason> {
        let content = spoken(&reply.content)?;
        let verdict = match &self.location {
            AnswerLocation::Whole { logprobs: false } => self.expected.plain(content),
            // Whether there are probabilities comes before what the judge wrote: without them no words would do.
            AnswerLocation::Whole { logprobs: true } if reply.tokens.is_none() => {
                Err(unweighed("the reply has no probabilities"))
            }
            AnswerLocation::Whole { logprobs: true } => self
                .expected
                .plain(content)
                .and_then(|_| self.expected.weighed(content, reply.tokens.as_deref())),
            AnswerLocation::Json { field, echo } => {
                object(content, field).and_then(|map| self.chosen(&map, field, echo.as_ref()))
            }
            AnswerLocation::Between { open, close } => {
                between(content, open, close).and_then(|text| self.expected.plain(text))
            }
            AnswerLocation::Brackets => bracketed(content).and_then(|text| self.expected.plain(text)),
        };
        // Only a reply without any verdict can be a refusal; one that has a verdict may well mention refusals.
        verdict.map_err(|reason| match reason.code {
            Code::JudgeSchema if !content.contains('{') && refuses(content) => Code::JudgeRefusal.into(),
            _ => reason,
        })
    }
}

impl AnswerParser {
    /// The verdict in an object that has the field. Whether it is about the right sample is asked last, so that a verdict
    /// which is none at all is reported as that.
    fn chosen(
        &self,
        map: &Map<String, Value>,
        field: &str,
        echo: Option<&(String, String)>,
    ) -> Result<Verdict, Reason> {
        let verdict = self.expected.of_json(map.get(field).unwrap_or(&Value::Null))?;
        match echo.map(|(name, text)| (map.get(name), text)) {
            None => Ok(verdict),
            Some((Some(Value::String(content)), text)) if content == text => Ok(verdict),
            Some((Some(Value::String(_)), _)) => Err(Code::JudgeWrongSample.into()),
            Some(_) => Err(shape("the answer does not say which sample it is about")),
        }
    }
}

/// What a judge says once its leading thought is taken away.
///
/// A thought that is closed twice could hide a verdict on either side of the second closing, so it is ambiguous.
pub(in crate::judge) fn spoken(content: &str) -> Result<&str, Reason> {
    let content = content.trim();
    if content.is_empty() {
        return Err(Code::JudgeEmpty.into());
    }
    if content.contains('\0') {
        return Err(Reason::new(Code::JudgeJson, "the answer holds a NUL"));
    }
    for (open, close) in [("<think>", "</think>"), ("<thinking>", "</thinking>")] {
        if !content
            .as_bytes()
            .get(..open.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(open.as_bytes()))
        {
            continue;
        }
        let mut closings = memchr::memchr_iter(b'<', content.as_bytes()).filter(|at| {
            let tag = content.as_bytes().get(*at..at + close.len());
            tag.is_some_and(|tag| tag.eq_ignore_ascii_case(close.as_bytes()))
        });
        let Some(end) = closings.next() else {
            return Err(Reason::new(Code::JudgeTruncated, "the judge's thought does not end"));
        };
        if closings.next().is_some() {
            return Err(Reason::new(Code::JudgeAmbiguous, "the judge's thought ends more than once"));
        }
        let rest = content.get(end + close.len()..).map_or("", str::trim);
        return if rest.is_empty() {
            Err(shape("there is nothing after the judge's thought"))
        } else {
            Ok(rest)
        };
    }
    Ok(content)
}

impl ExpectedAnswer {
    /// The verdict that a bare text is, letter by letter.
    fn plain(&self, text: &str) -> Result<Verdict, Reason> {
        let text = text.trim();
        match self {
            ExpectedAnswer::Score { min, max } => within(decimal(text)?, *min, *max),
            ExpectedAnswer::Pair { .. } | ExpectedAnswer::Graded { .. } => self.side(text),
            ExpectedAnswer::Ranking { labels } => {
                ranking(labels, text.split(',').map(|label| Some(label.trim())))
            }
        }
    }

    fn side(&self, label: &str) -> Result<Verdict, Reason> {
        let unknown = || Err(shape("the answer is none of the labels"));
        let (winner, first) = match self {
            ExpectedAnswer::Pair { labels: [first, second], tie } => match label {
                label if label == first => (Some(Side::First), None),
                label if label == second => (Some(Side::Second), None),
                label if tie.as_deref() == Some(label) => (None, None),
                _ => return unknown(),
            },
            ExpectedAnswer::Graded { labels } => {
                let Some(&by) = labels.get(label) else { return unknown() };
                let winner = match by {
                    by if by > 0.0 => Some(Side::First),
                    by if by < 0.0 => Some(Side::Second),
                    _ => None,
                };
                // Labels without a grade between are those of a plain pair.
                let graded = labels.values().any(|by| by.fract() != 0.0);
                (winner, graded.then(|| f64::midpoint(1.0, by)))
            }
            _ => return Err(shape("no pair was asked about")),
        };
        Ok(Verdict::Pair { winner, first })
    }

    fn of_json(&self, value: &Value) -> Result<Verdict, Reason> {
        match (self, value) {
            (ExpectedAnswer::Score { min, max }, Value::Number(number)) => {
                within(number.as_f64().ok_or(Code::JudgeNotFinite)?, *min, *max)
            }
            (ExpectedAnswer::Pair { .. } | ExpectedAnswer::Graded { .. }, Value::String(label)) => {
                self.side(label)
            }
            (ExpectedAnswer::Ranking { labels }, Value::Array(items)) => {
                if items.iter().any(|item| !item.is_string() && !item.is_number()) {
                    return Err(shape("the ranking is not a list of labels"));
                }
                ranking(labels, items.iter().map(Value::as_str))
            }
            _ => Err(shape("the verdict has another type than was asked for")),
        }
    }

    /// The verdict by the probabilities of the token that says `label`.
    fn weighed(&self, label: &str, tokens: Option<&[Token]>) -> Result<Verdict, Reason> {
        let odds = odds(label, tokens)?;
        let sum = |is: &dyn Fn(&str) -> bool| -> f64 {
            odds.iter().filter(|(text, _)| is(text)).map(|(_, probability)| probability).sum()
        };
        match self {
            ExpectedAnswer::Score { min, max } => {
                let number = |text: &str| whole(text).filter(|number| (*min..=*max).contains(number));
                let mass = enough(sum(&|text| number(text).is_some()))?;
                let options = odds.iter().filter_map(|(text, probability)| Some(number(text)? * probability));
                // Rounding may carry a mean of the smallest or of the largest a little past it.
                Ok(Verdict::Score((options.sum::<f64>() / mass).clamp(*min, *max)))
            }
            ExpectedAnswer::Pair { labels: [first, second], tie } => {
                let of = |label: &String| sum(&|text| text == label);
                let (p_first, p_second, p_tie) = (of(first), of(second), tie.as_ref().map_or(0.0, of));
                let mass = enough(p_first + p_second + p_tie)?;
                let sides = [
                    (p_first, Some(Side::First), label == first),
                    (p_second, Some(Side::Second), label == second),
                    (p_tie, None, tie.as_deref() == Some(label)),
                ];
                // Where two are equally likely, the one that the judge wrote stands.
                let likelier = |best: (f64, Option<Side>, bool), next: (f64, Option<Side>, bool)| {
                    if next.0 > best.0 || (next.0 == best.0 && next.2) { next } else { best }
                };
                let winner = sides.into_iter().reduce(likelier).and_then(|(_, side, _)| side);
                Ok(Verdict::Pair { winner, first: Some(((p_first + p_tie / 2.0) / mass).clamp(0.0, 1.0)) })
            }
            ExpectedAnswer::Graded { .. } | ExpectedAnswer::Ranking { .. } => {
                Err(unweighed("the verdict is not one token"))
            }
        }
    }
}

fn unweighed(message: &'static str) -> Reason {
    Reason::new(Code::JudgeNoLogprobs, message)
}

/// What could have stood in place of the token that says `label`, itself included, with the probabilities.
fn odds<'t>(label: &str, tokens: Option<&'t [Token]>) -> Result<Vec<(&'t str, f64)>, Reason> {
    // Some endpoints count the token that ends the turn, which is no part of the content.
    let is_end = |text: &str| text.is_empty() || (text.starts_with('<') && text.ends_with('>'));
    let token = tokens.unwrap_or(&[]).iter().rfind(|token| !is_end(token.text.trim()));
    let token = token.ok_or_else(|| unweighed("the reply has no probabilities"))?;
    if token.text.trim() != label {
        return Err(unweighed("the verdict is not one token"));
    }
    let listed = token.top.iter().any(|(text, _)| *text == token.text);
    let own = (token.text.as_str(), token.logprob);
    let all = token.top.iter().map(|(text, logprob)| (text.as_str(), *logprob));
    let all: Vec<(&str, f64)> = all.chain((!listed).then_some(own)).collect();
    if all.iter().chain([&own]).any(|(_, logprob)| logprob.is_nan() || *logprob > 0.0) {
        return Err(unweighed("a probability is greater than 1 or no number"));
    }
    Ok(all.into_iter().map(|(text, logprob)| (text.trim(), logprob.exp())).collect())
}

/// The mass of the labels, where a verdict can rest on it.
fn enough(mass: f64) -> Result<f64, Reason> {
    match mass {
        mass if mass < LEAST_MASS => Err(unweighed("too little of the probability lies on the labels")),
        mass if mass > 1.0 + ROUNDING => Err(unweighed("the probabilities add up to more than 1")),
        mass => Ok(mass),
    }
}

fn shape(message: &'static str) -> Reason {
    Reason::new(Code::JudgeSchema, message)
}

fn within(number: f64, min: f64, max: f64) -> Result<Verdict, Reason> {
    match number {
        number if !number.is_finite() => Err(Code::JudgeNotFinite.into()),
        number if number < min || number > max => Err(Code::JudgeRange.into()),
        // -0.0 and 0.0 are one number to whoever reads the result.
        number => Ok(Verdict::Score(number + 0.0)),
    }
}

/// A plain decimal of ASCII digits: no sign but a minus, no exponent, no fraction bar, no digits of other scripts.
fn decimal(text: &str) -> Result<f64, Reason> {
    let size = text.strip_prefix('-').unwrap_or(text);
    let (digits, fraction) = size.split_once('.').map_or((size, None), |(whole, part)| (whole, Some(part)));
    let are_digits =
        |part: &str| (1..=17).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    if are_digits(digits) && fraction.is_none_or(are_digits) {
        return text.parse().map_err(|_| shape("the answer is not a number"));
    }
    let bare = text.trim_start_matches(['-', '+']);
    let not_finite = ["nan", "inf", "infinity"].iter().any(|name| bare.eq_ignore_ascii_case(name));
    Err(if not_finite { Code::JudgeNotFinite.into() } else { shape("the answer is not a plain number") })
}

/// A whole number as a token writes it: no sign, no leading zero.
fn whole(text: &str) -> Option<f64> {
    let plain = text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    (plain && (text == "0" || !text.starts_with('0'))).then(|| text.parse().ok()).flatten()
}

/// Places in the order of showing. A label that is not text is one that was not shown.
fn ranking<'t>(labels: &[String], named: impl Iterator<Item = Option<&'t str>>) -> Result<Verdict, Reason> {
    // One more than there are labels is enough to know that there are too many.
    let named: Vec<Option<&str>> = named.take(labels.len() + 1).collect();
    if named.len() != labels.len() {
        let unknown =
            named.iter().all(|label| label.is_none_or(|label| !labels.iter().any(|known| known == label)));
        let text = named.iter().any(Option::is_some);
        return Err(if text && unknown {
            shape("the answer is no ranking")
        } else {
            Code::JudgeArity.into()
        });
    }
    let mut seen = vec![false; labels.len()];
    let mut order = Vec::with_capacity(labels.len());
    for label in named {
        let place = label.and_then(|label| labels.iter().position(|known| known == label));
        let place = place.filter(|place| !seen[*place]).ok_or(Code::JudgePermutation)?;
        seen[place] = true;
        order.push(place);
    }
    Ok(Verdict::Ranking(order))
}

/// Whether a reply without a verdict says that the judge will not give one.
pub(super) fn refuses(content: &str) -> bool {
    let start: String = content.chars().take(REFUSAL_WITHIN).collect();
    let start = start.to_lowercase().replace('’', "'");
    REFUSALS.iter().any(|phrase| start.contains(phrase))
}

/// The text between two strings that stand once each, the second at the end.
fn between<'t>(content: &'t str, open: &str, close: &str) -> Result<&'t str, Reason> {
    if open.is_empty() || close.is_empty() {
        return Err(shape("the place of the verdict has no name"));
    }
    let opened: Vec<usize> = memmem::find_iter(content.as_bytes(), open).take(2).collect();
    let closed: Vec<usize> = memmem::find_iter(content.as_bytes(), close).take(2).collect();
    match (opened.as_slice(), closed.as_slice()) {
        ([_, _, ..], _) | (_, [_, _, ..]) => Err(Code::JudgeAmbiguous.into()),
        ([], _) => Err(shape("there is no verdict in the agreed place")),
        ([_], []) => Err(Reason::new(Code::JudgeTruncated, "the verdict does not end")),
        ([from], [to]) => {
            let inside = content
                .get(from + open.len()..*to)
                .ok_or_else(|| shape("the verdict ends before it begins"))?;
            let after = content.get(to + close.len()..).map_or("", str::trim);
            if after.is_empty() { Ok(inside) } else { Err(shape("something stands after the verdict")) }
        }
    }
}

/// The text in double brackets, which may stand there more than once.
fn bracketed(content: &str) -> Result<&str, Reason> {
    let mut found = None;
    let mut from = 0;
    while let Some(at) = content.get(from..).and_then(|rest| memmem::find(rest.as_bytes(), b"[[")) {
        let inside = from + at + 2;
        let rest = content.get(inside..).unwrap_or("");
        let end = rest.bytes().take(MAX_BRACKET + 1).position(|byte| matches!(byte, b'[' | b']'));
        match end {
            Some(end) if end > 0 && rest.as_bytes()[end..].starts_with(b"]]") => {
                let text = rest.get(..end);
                if found.is_some() && found != text {
                    return Err(Code::JudgeAmbiguous.into());
                }
                found = text;
            }
            None if rest.len() <= MAX_BRACKET && found.is_none() => {
                return Err(Reason::new(Code::JudgeTruncated, "the verdict does not end"));
            }
            _ => {}
        }
        // The second of the two brackets may begin the real one, as in `[[[A]]`.
        from = inside - 1;
    }
    found.ok_or_else(|| shape("there is no verdict in double brackets"))
}

/// The one object of a reply that has the field. The object ends the reply, a code fence aside.
pub(super) fn object(content: &str, field: &str) -> Result<Map<String, Value>, Reason> {
    // Also in the quotes of Python: an object that cannot be read may still be where the judge said its verdict.
    let names = [format!("\"{field}\""), format!("'{field}'")];
    let mentions =
        |region: &str| names.iter().any(|name| memmem::find(region.as_bytes(), name.as_bytes()).is_some());
    let (mut verdict, mut others) = (None, false);
    let mut from = 0;
    while let Some(start) = content.get(from..).and_then(|rest| memchr::memchr(b'{', rest.as_bytes())) {
        let region = content.get(from + start..).unwrap_or("");
        let Some(length) = balanced(region.as_bytes()) else {
            // What follows cannot be separated any more: with the field in it, the verdict itself is cut off.
            if mentions(region) || verdict.is_none() {
                return Err(Reason::new(Code::JudgeTruncated, "the JSON object does not end"));
            }
            break;
        };
        let region = region.get(..length).unwrap_or("");
        from += start + length;
        let map = match strict::read(region) {
            Ok(Value::Object(map)) if map.contains_key(field) => Ok(map),
            Err(error) if mentions(region) => Err(unread(&error, region)),
            _ => {
                others = true;
                continue;
            }
        };
        if verdict.is_some() {
            return Err(Code::JudgeAmbiguous.into());
        }
        verdict = Some((map, from));
    }
    let Some((map, end)) = verdict else {
        return Err(shape(if others { "no JSON object has the verdict" } else { "there is no JSON object" }));
    };
    let map = map?;
    let after = content.get(end..).map_or("", str::trim);
    if !after.is_empty() && after != "```" {
        return Err(shape("something stands after the verdict"));
    }
    Ok(map)
}

/// The length of the object that a text begins with: as many braces closed as opened, those in strings aside.
fn balanced(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut at) = (0usize, 0);
    while let Some(found) = memchr::memchr3(b'"', b'{', b'}', bytes.get(at..)?) {
        at += found;
        match bytes[at] {
            b'"' => {
                at = json_string_end(bytes, at);
                continue;
            }
            b'{' => depth += 1,
            _ => depth -= 1,
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Why an object that names the verdict cannot be read.
fn unread(error: &InputError, region: &str) -> Reason {
    match error.code {
        "input.duplicate_key" => Code::JudgeDuplicateKey.into(),
        "input.number" => Code::JudgeNotFinite.into(),
        _ if error.message.contains("surrogate") || error.message.contains("hex escape") => {
            Code::JudgeJson.into()
        }
        _ if names_no_number(region) => Code::JudgeNotFinite.into(),
        _ => shape("the JSON object is not well-formed"),
    }
}

/// Whether `NaN` or an infinity stands outside of strings.
fn names_no_number(region: &str) -> bool {
    json_tokens(region)
        .any(|(_, token)| !token.starts_with('"') && (token.contains("NaN") || token.contains("Inf")))
}
