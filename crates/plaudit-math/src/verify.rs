//! The verification: a reference that is read once, and responses that are held against it.

use std::fmt;
use std::ops::Range;

use dashu_int::IBig;

use crate::equality::{Comparer, DOUBLE_DIGITS, ProofMethod};
use crate::extract::{self, Found, Rule};
use crate::identity_test::Key;
use crate::limits::{NoValue, Work};
use crate::options::{AnswerIn, Options};
use crate::parse::parse;
use crate::text::{plain, squeezed, to_latex};
use crate::value::{Answer, Value};

/// Characters of an answer that a verdict quotes.
const QUOTED: usize = 200;

/// A reference answer, ready to be compared with many responses.
#[derive(Clone, Debug)]
pub struct Reference {
    text: String,
    /// All of the reference, of which the text is the answer.
    whole: String,
    plain: String,
    answer: Answer,
    /// The letter of a choice, and whether it is given with its value, which is then the answer.
    letter: Option<char>,
    valued: bool,
    /// The normal form of a reference that is not evaluated, such as an integral. It equals itself only.
    unevaluated: Option<String>,
    key: Key,
    options: Options,
}

/// Why a reference is no reference. The data are at fault, not a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReferenceError {
    /// Nothing, or only spaces.
    Empty,
    /// It cannot be read, is undefined or breaks a bound.
    Unparsable(NoValue),
}

impl fmt::Display for ReferenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the reference is empty"),
            Self::Unparsable(bound) => write!(f, "the reference cannot be read: {bound}"),
        }
    }
}

impl std::error::Error for ReferenceError {}

/// What became of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The answer equals the reference.
    Right,
    /// The answer was read, and it differs.
    Wrong,
    /// There is an answer, and it cannot be read.
    NotParsed,
    /// There is no answer.
    NoAnswer,
    /// The answer breaks a bound.
    Unusable(NoValue),
}

impl Outcome {
    /// Whether there is credit.
    pub const fn is_right(self) -> bool {
        matches!(self, Self::Right)
    }
}

/// The verdict on one response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What became of the response.
    pub outcome: Outcome,
    /// The rule by which the answer was found.
    pub rule: Option<Rule>,
    /// Where the answer stands in the response, in bytes.
    pub span: Option<Range<usize>>,
    /// The answer's text, cut at 200 characters.
    pub answer: Option<String>,
    /// The same with Unicode spellings in LaTeX, as it was read.
    pub normal: Option<String>,
    /// What the answer was read as.
    pub kind: Option<&'static str>,
    /// How it was compared.
    pub how: Option<ProofMethod>,
}

/// What came of the text of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// What became of the answer.
    pub outcome: Outcome,
    /// What it was read as. `None`: a bound was broken before it was read.
    pub kind: Option<&'static str>,
    /// How it was compared.
    pub how: ProofMethod,
}

impl Verdict {
    fn without_answer(outcome: Outcome) -> Self {
        Self { outcome, rule: None, span: None, answer: None, normal: None, kind: None, how: None }
    }
}

impl Reference {
    /// Reads a reference. A worked solution is reduced to its answer.
    pub fn parse(text: &str, options: &Options) -> Result<Self, ReferenceError> {
        if text.trim().is_empty() {
            return Err(ReferenceError::Empty);
        }
        let unparsable = ReferenceError::Unparsable;
        let (found, certain) = extract::reference(text).map_err(unparsable)?;
        let mut work = Work::new();
        let mut chosen = found.text.into_owned();
        let mut answer = parse(&chosen, &mut work);
        // A sentence around a formula: the formula counts.
        let doubtful = match &answer {
            Ok(answer) => {
                matches!(answer.value, Value::Text(_)) && (!answer.parsed || chosen.contains(['$', ' ']))
            }
            Err(_) => true,
        };
        if doubtful
            && !certain
            && let Some(inner) = extract::sentence(text)
        {
            let inner = inner.text.into_owned();
            let mut work = Work::new();
            if let Ok(other) = parse(&inner, &mut work)
                && (!matches!(other.value, Value::Text(_)) || other.parsed)
            {
                chosen = inner;
                answer = Ok(other);
            }
        }
        if !certain
            && matches!(&answer, Ok(answer) if matches!(answer.value, Value::Text(_)))
            && let Some(number) = extract::only_number(&chosen)
            && let Ok(other) = parse(&number, &mut Work::new())
        {
            chosen = number;
            answer = Ok(other);
        }
        let mut letter = only_letter(&chosen);
        let mut valued = false;
        if let Some((name, value)) = choice_and_value(&chosen)
            && let Ok(other) = parse(value, &mut Work::new())
        {
            (letter, valued, answer) = (Some(name), true, Ok(other));
        }
        let key = Key::new(options.seed, &chosen);
        let unevaluated =
            |bound| bound == NoValue::Unsupported && is_unevaluated(&chosen) || is_statement(&chosen);
        let as_text = || {
            let text = squeezed(&chosen);
            (Answer::plain(Value::Text(text.as_str().into()), true), Some(text))
        };
        let (answer, own) = match answer {
            Ok(answer) => (answer, None),
            Err(bound) if unevaluated(bound) => as_text(),
            Err(bound) => return Err(unparsable(bound)),
        };
        let mut reference = Self {
            text: chosen.trim().to_owned(),
            whole: text.trim().to_owned(),
            plain: plain(&chosen),
            answer,
            letter,
            valued,
            unevaluated: own,
            key,
            options: options.clone(),
        };
        match reference.check() {
            Err(bound) if unevaluated(bound) => (reference.answer, reference.unevaluated) = as_text(),
            checked => checked.map_err(unparsable)?,
        }
        Ok(reference)
    }

    /// A reference must equal itself: an undefined value does not.
    fn check(&self) -> Result<(), NoValue> {
        let mut work = Work::new();
        let mut comparer = Comparer {
            key: &self.key,
            options: &self.options,
            work: &mut work,
            how: ProofMethod::Text,
            own: Some(&self.answer.tree),
        };
        let side = (&self.answer.tree, &self.answer.value);
        match comparer.equal(side, side) {
            Ok(_) | Err(NoValue::Undecided) => Ok(()),
            Err(bound) => Err(bound),
        }
    }

    /// Compares a whole number of a few digits against a reference that is a number: most answers are.
    fn whole_number(&self, answer: &str) -> Option<Outcome> {
        let digits = answer.strip_prefix('-').map_or(answer, |digits| digits);
        if digits.is_empty() || digits.len() > 18 || !digits.bytes().all(|c| c.is_ascii_digit()) {
            return None;
        }
        let Value::Quantity(own) = &self.answer.value else { return None };
        if own.percent || own.unit.is_some() || self.options.tolerance.is_some() {
            return None;
        }
        // Digits of a double may stand for a whole number.
        if own.decimal.is_some_and(|decimal| decimal.significant >= DOUBLE_DIGITS) {
            return None;
        }
        let value = self.answer.tree.rational(own.expr.root)?;
        let answer: i64 = answer.parse().ok()?;
        let same = value.is_int() && *value.numerator() == IBig::from(answer);
        // A decimal reference may be a rounded whole number only if it is one.
        Some(if same { Outcome::Right } else { Outcome::Wrong })
    }

    /// The text that the reference was reduced to.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the reference was read as.
    pub fn kind(&self) -> &'static str {
        self.answer.value.kind()
    }

    /// The options that the reference was read with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Compares the text of an answer, without looking for it.
    pub fn compare(&self, answer: &str) -> Comparison {
        let said = |outcome, kind, how| Comparison { outcome, kind, how };
        let trimmed = answer.trim();
        // The same text is the same value, as the reference has one.
        if trimmed == self.text || trimmed == self.whole {
            return said(Outcome::Right, Some(self.kind()), ProofMethod::Text);
        }
        if let Some(own) = &self.unevaluated {
            let outcome = if squeezed(trimmed) == *own { Outcome::Right } else { Outcome::Wrong };
            return said(outcome, Some("text"), ProofMethod::Text);
        }
        if let Some(outcome) = self.whole_number(trimmed) {
            return said(outcome, Some("expression"), ProofMethod::Exact);
        }
        let valued = choice_and_value(trimmed);
        if let Some(own) = self.letter
            && let Some(letter) = valued.map(|(letter, _)| letter).or_else(|| only_letter(trimmed))
            && (self.valued || valued.is_some())
        {
            // A letter and a value must both be right.
            return match valued.filter(|_| self.valued && own == letter) {
                Some((_, value)) => self.compare(value),
                None => {
                    let outcome = if own == letter { Outcome::Right } else { Outcome::Wrong };
                    said(outcome, Some("text"), ProofMethod::Text)
                }
            };
        }
        if let (None, Some((_, value))) = (self.letter, valued) {
            return self.compare(value);
        }
        let mut work = Work::new();
        let parsed = match parse(trimmed, &mut work) {
            Ok(parsed) => parsed,
            Err(bound) => return said(Outcome::Unusable(bound), None, ProofMethod::Text),
        };
        let kind = Some(parsed.value.kind());
        let texts = matches!(self.answer.value, Value::Text(_)) || matches!(parsed.value, Value::Text(_));
        if texts && plain(trimmed) == self.plain {
            return said(Outcome::Right, kind, ProofMethod::Text);
        }
        let mut comparer = Comparer {
            key: &self.key,
            options: &self.options,
            work: &mut work,
            how: ProofMethod::Text,
            own: Some(&self.answer.tree),
        };
        let own = (&self.answer.tree, &self.answer.value);
        let outcome = match comparer.equal(own, (&parsed.tree, &parsed.value)) {
            Ok(true) => Outcome::Right,
            Ok(false) => Outcome::Wrong,
            // A reference with a sum sign is compared by its parts; an answer without one differs.
            Err(NoValue::Unsupported) if self.answer.big && !parsed.big => Outcome::Wrong,
            Err(bound) => Outcome::Unusable(bound),
        };
        let outcome = if outcome == Outcome::Wrong && comparer.is_either(&self.answer, &parsed) {
            Outcome::Right
        } else {
            outcome
        };
        let prose = matches!(parsed.value, Value::Text(_)) && !matches!(self.answer.value, Value::Text(_));
        if outcome == Outcome::Wrong && prose || outcome != Outcome::Right && !parsed.parsed {
            return said(Outcome::NotParsed, kind, ProofMethod::Text);
        }
        said(outcome, kind, comparer.how)
    }
}

/// Whether a text has an integral, a limit or another operator that is not evaluated, and nothing worse.
fn is_unevaluated(text: &str) -> bool {
    const OPERATORS: [&str; 8] =
        ["\\int", "\\iint", "\\oint", "\\lim", "\\sum", "\\prod", "\\partial", "{array}"];
    const REFUSED: [&str; 5] = ["\\def", "\\input", "\\write", "\\new", "\\let"];
    OPERATORS.iter().any(|operator| text.contains(operator))
        && !REFUSED.iter().any(|command| text.contains(command))
}

/// Whether a text that cannot be read is a statement around several formulas, which equals itself only.
fn is_statement(text: &str) -> bool {
    text.matches('$').count() > 1 && extract::words_outside(text)
}

/// The letter of a choice: a text that is one capital letter, perhaps in brackets or in a text command.
fn only_letter(text: &str) -> Option<char> {
    let is_letter =
        text.len() <= 24 && text.bytes().any(|c| c.is_ascii_uppercase()) && plain(text).len() == 1;
    is_letter.then(|| plain(text).chars().next()).flatten().filter(char::is_ascii_lowercase)
}

/// The letter of a choice in lower case, and the value that it is given with: `\textbf{(C)}\ 12`, `C. 12`, `C) 12`.
fn choice_and_value(text: &str) -> Option<(char, &str)> {
    let bare = text.trim_start_matches(['$', '*']);
    if !bare.starts_with(|c: char| c.is_ascii_uppercase() || matches!(c, '(' | '\\')) {
        return None;
    }
    let command = ["\\textbf{", "\\text{", "\\mathrm{", "\\mathbf{"]
        .iter()
        .find_map(|command| bare.strip_prefix(command));
    let inside = command.unwrap_or(bare);
    let (open, rest) = match inside.strip_prefix('(') {
        Some(rest) => (true, rest),
        None => (false, inside),
    };
    let letter = rest.chars().next().filter(char::is_ascii_uppercase)?;
    let rest = &rest[1..];
    // `\mathrm{C}. 12`
    let closed = rest.strip_prefix('}').filter(|_| command.is_some() && !open);
    let rest = closed.map_or(rest, |rest| rest.trim_start_matches('$'));
    let value = match (open, rest.strip_prefix(')')) {
        (_, Some(value)) => value,
        (false, None) => {
            let dotted =
                rest.strip_prefix(['.', ':']).filter(|value| value.starts_with([' ', '$', '\\', '~']));
            dotted.or_else(|| rest.strip_prefix(['．', '、', '：']))?
        }
        (true, None) => return None,
    };
    let value = match command {
        Some(_) if closed.is_none() => value.trim_start_matches(' ').strip_prefix('}')?,
        _ => value,
    };
    // Two choices are no choice.
    let second = |word: &str| {
        matches!(word, "or" | "and") || word.len() == 1 && word.bytes().all(|c| c.is_ascii_uppercase())
    };
    let value = value.trim_start_matches([' ', '~', '*']);
    let words = value.split(|c: char| !c.is_alphanumeric());
    (!value.is_empty() && !value.starts_with([',', ';', '/']) && !words.into_iter().any(second))
        .then_some((letter.to_ascii_lowercase(), value))
}

/// Verifies one response against a reference.
pub fn verify(response: &str, reference: &Reference) -> Verdict {
    let options = reference.options();
    let verdict = verify_found(extract::extract(response, options.answer, options.think), reference);
    // All of the reference as it is, with nothing else behind what announces it.
    if matches!(options.answer, AnswerIn::Auto | AnswerIn::Phrase)
        && !matches!(verdict.rule, Some(Rule::Box | Rule::AnswerTag | Rule::Hash))
        && !matches!(verdict.outcome, Outcome::Right | Outcome::Unusable(NoValue::UnclosedThink))
        && extract::announces(response, &reference.whole)
    {
        return Verdict {
            outcome: Outcome::Right,
            rule: Some(Rule::Phrase),
            how: Some(ProofMethod::Text),
            ..verdict
        };
    }
    if verdict.rule == Some(Rule::Whole)
        && verdict.outcome == Outcome::NotParsed
        && let Some(found) = extract::fallback(response, options.think)
    {
        return verify_found(Ok(Some(found)), reference);
    }
    verdict
}

/// The answer of a response as it stands there, without a reference. `None`: there is none.
///
/// ```
/// use plaudit_math::{Options, Rule, extract};
///
/// let found = extract("First 3. So the answer is $\\frac{1}{2}$.", &Options::default())?.expect("an answer");
/// assert_eq!((&*found.text, found.rule), ("\\frac{1}{2}", Rule::Phrase));
/// # Ok::<(), plaudit_math::NoValue>(())
/// ```
///
/// # Errors
///
/// The bound that the place of the answer breaks: a box that is empty or never closed, thinking that never ends.
pub fn extract<'t>(response: &'t str, options: &Options) -> Result<Option<Found<'t>>, NoValue> {
    let found = extract::extract(response, options.answer, options.think)?;
    let is_prose = |found: &Found<'_>| {
        found.rule == Rule::Whole && !parse(found.text.trim(), &mut Work::new()).is_ok_and(|read| read.parsed)
    };
    Ok(match found {
        Some(found) if is_prose(&found) => extract::fallback(response, options.think).or(Some(found)),
        other => other,
    })
}

/// What the text of an answer is read as, such as "expression" or "list".
///
/// # Errors
///
/// The bound that it breaks.
pub fn kind_of(answer: &str) -> Result<&'static str, NoValue> {
    parse(answer.trim(), &mut Work::new()).map(|read| read.value.kind())
}

/// Compares an answer that was looked for.
pub(crate) fn verify_found(found: Result<Option<Found<'_>>, NoValue>, reference: &Reference) -> Verdict {
    let found = match found {
        Ok(Some(found)) => found,
        Ok(None) => return Verdict::without_answer(Outcome::NoAnswer),
        Err(bound) => return Verdict::without_answer(Outcome::Unusable(bound)),
    };
    let Comparison { outcome, kind, how } = reference.compare(&found.text);
    let Found { rule, text, span } = found;
    let cut = text.char_indices().nth(QUOTED).map_or(text.len(), |(at, _)| at);
    let quoted = &text[..cut];
    Verdict {
        outcome,
        rule: Some(rule),
        span: Some(span),
        answer: Some(quoted.to_owned()),
        normal: Some(to_latex(quoted.trim()).into_owned()),
        kind,
        how: Some(how),
    }
}
