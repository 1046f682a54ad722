//! The verification: a reference that is read once, and responses that are held against it.

use std::fmt;
use std::ops::Range;

use dashu_int::IBig;

use crate::bound::{Bound, Work};
use crate::expr::Tree;
use crate::extract::{self, Found, Rule};
use crate::field::Key;
use crate::judge::{How, Judge};
use crate::options::Options;
use crate::parse::parse;
use crate::text::{plain, squeezed, to_latex};
use crate::value::{Answer, Value};

/// Characters of an answer that a verdict quotes.
const QUOTED: usize = 200;

/// A reference answer, ready to be compared with many responses.
#[derive(Clone, Debug)]
pub struct Reference {
    text: String,
    plain: String,
    answer: Answer,
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
    Unparsable(Bound),
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
    Broken(Bound),
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
    pub how: Option<How>,
}

/// The judgement on the text of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What became of the answer.
    pub outcome: Outcome,
    /// What it was read as. `None`: a bound was broken before it was read.
    pub kind: Option<&'static str>,
    /// How it was compared.
    pub how: How,
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
        let mut unevaluated = None;
        if answer.as_ref().is_err_and(|bound| *bound == Bound::Unsupported) && is_unevaluated(&chosen) {
            let text = squeezed(&chosen);
            let value = Value::Text(text.as_str().into());
            answer = Ok(Answer { tree: Tree::default(), value, parsed: true, big: false });
            unevaluated = Some(text);
        }
        let answer = answer.map_err(unparsable)?;
        let key = Key::new(options.seed, &chosen);
        let plain = plain(&chosen);
        let options = options.clone();
        let reference = Self { text: chosen.trim().to_owned(), plain, answer, unevaluated, key, options };
        reference.check().map_err(unparsable)?;
        Ok(reference)
    }

    /// A reference must equal itself: an undefined value does not.
    fn check(&self) -> Result<(), Bound> {
        let mut work = Work::new();
        let mut judge = Judge { key: &self.key, options: &self.options, work: &mut work, how: How::Text };
        let side = (&self.answer.tree, &self.answer.value);
        match judge.equal(side, side) {
            Ok(_) | Err(Bound::Undecided) => Ok(()),
            Err(bound) => Err(bound),
        }
    }

    /// Whether the reference is the letter of a choice.
    fn is_choice(&self) -> bool {
        is_choice(&self.text)
    }

    /// Judges a whole number of a few digits against a reference that is a number: most answers are.
    fn whole_number(&self, answer: &str) -> Option<Outcome> {
        let digits = answer.strip_prefix('-').map_or(answer, |digits| digits);
        if digits.is_empty() || digits.len() > 18 || !digits.bytes().all(|c| c.is_ascii_digit()) {
            return None;
        }
        let Value::Quantity(own) = &self.answer.value else { return None };
        if own.percent || own.unit.is_some() || self.options.tolerance.is_some() {
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

    /// Judges the text of an answer, without looking for it.
    pub fn judge(&self, answer: &str) -> Judgement {
        let said = |outcome, kind, how| Judgement { outcome, kind, how };
        let trimmed = answer.trim();
        // The same text is the same value, as the reference has one.
        if trimmed == self.text {
            return said(Outcome::Right, Some(self.kind()), How::Text);
        }
        if let Some(own) = &self.unevaluated {
            let outcome = if squeezed(trimmed) == *own { Outcome::Right } else { Outcome::Wrong };
            return said(outcome, Some("text"), How::Text);
        }
        if let Some(outcome) = self.whole_number(trimmed) {
            return said(outcome, Some("expression"), How::Exact);
        }
        let mut work = Work::new();
        let parsed = match parse(trimmed, &mut work) {
            Ok(parsed) => parsed,
            Err(bound) => return said(Outcome::Broken(bound), None, How::Text),
        };
        let kind = Some(parsed.value.kind());
        let texts = matches!(self.answer.value, Value::Text(_)) || matches!(parsed.value, Value::Text(_));
        if texts && plain(trimmed) == self.plain {
            return said(Outcome::Right, kind, How::Text);
        }
        // A choice and the same choice with its value.
        if self.is_choice() && leading_choice(trimmed) == self.plain.chars().next()
            || is_choice(trimmed) && leading_choice(&self.text) == plain(trimmed).chars().next()
        {
            return said(Outcome::Right, kind, How::Text);
        }
        let mut judge = Judge { key: &self.key, options: &self.options, work: &mut work, how: How::Text };
        let own = (&self.answer.tree, &self.answer.value);
        let outcome = match judge.equal(own, (&parsed.tree, &parsed.value)) {
            Ok(true) => Outcome::Right,
            Ok(false) => Outcome::Wrong,
            // A reference with a sum sign is compared by its parts; an answer without one differs.
            Err(Bound::Unsupported) if self.answer.big && !parsed.big => Outcome::Wrong,
            Err(bound) => Outcome::Broken(bound),
        };
        let prose = matches!(parsed.value, Value::Text(_)) && !matches!(self.answer.value, Value::Text(_));
        if outcome == Outcome::Wrong && prose || outcome != Outcome::Right && !parsed.parsed {
            return said(Outcome::NotParsed, kind, How::Text);
        }
        said(outcome, kind, judge.how)
    }
}

/// Whether a text has an integral, a limit or another operator that is not evaluated, and nothing worse.
fn is_unevaluated(text: &str) -> bool {
    const OPERATORS: [&str; 7] = ["\\int", "\\iint", "\\oint", "\\lim", "\\sum", "\\prod", "\\partial"];
    const REFUSED: [&str; 5] = ["\\def", "\\input", "\\write", "\\new", "\\let"];
    OPERATORS.iter().any(|operator| text.contains(operator))
        && !REFUSED.iter().any(|command| text.contains(command))
}

/// Whether a text is one capital letter, perhaps in brackets or in a text command.
fn is_choice(text: &str) -> bool {
    text.len() <= 24 && text.bytes().any(|c| c.is_ascii_uppercase()) && plain(text).len() == 1
}

/// The letter of a choice that is given with its value, as in `\textbf{(C)}\ 12`.
fn leading_choice(answer: &str) -> Option<char> {
    let bare = answer.trim_start_matches(['$', '*']);
    let bare = ["\\textbf{", "\\text{", "\\mathrm{", "\\mathbf{"]
        .iter()
        .find_map(|command| bare.strip_prefix(command))
        .map_or(bare, |inner| inner)
        .strip_prefix('(')?;
    let letter = bare.chars().next().filter(char::is_ascii_uppercase)?;
    let value = bare[1..].strip_prefix(')')?;
    // Two choices are no choice.
    let words = value.split(|c: char| !c.is_alphanumeric());
    let second = |word: &str| {
        matches!(word, "or" | "and") || word.len() == 1 && word.bytes().all(|c| c.is_ascii_uppercase())
    };
    (!value.contains(['(', ',']) && !words.into_iter().any(second)).then(|| letter.to_ascii_lowercase())
}

/// Verifies one response against a reference.
pub fn verify(response: &str, reference: &Reference) -> Verdict {
    let options = reference.options();
    let verdict = verify_found(extract::extract(response, options.answer, options.think), reference);
    if verdict.rule == Some(Rule::Whole)
        && verdict.outcome == Outcome::NotParsed
        && let Some(found) = extract::fallback(response, options.think)
    {
        return verify_found(Ok(Some(found)), reference);
    }
    verdict
}

/// Judges an answer that was looked for.
pub(crate) fn verify_found(found: Result<Option<Found<'_>>, Bound>, reference: &Reference) -> Verdict {
    let found = match found {
        Ok(Some(found)) => found,
        Ok(None) => return Verdict::without_answer(Outcome::NoAnswer),
        Err(bound) => return Verdict::without_answer(Outcome::Broken(bound)),
    };
    let Judgement { outcome, kind, how } = reference.judge(&found.text);
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
