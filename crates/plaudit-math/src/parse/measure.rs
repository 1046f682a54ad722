//! What stands behind a value: its unit, what is counted, its modulus, and words that say how large it is.

use dashu_int::{IBig, Sign};
use dashu_ratio::RBig;

use super::{ParseError, Parsed, Parser};
use crate::expr::{Expr, Id};
use crate::lex::{Bracket, Kind, NONE};
use crate::unit;
use crate::value::{Quantity, Value};
use crate::word::{self, Word};

/// Words of a unit.
const MAX_UNIT_WORDS: usize = 4;
/// Words of what is counted, in brackets.
const MAX_REMARK_WORDS: usize = 8;

impl<'t> Parser<'t, '_> {
    /// `\pmod{7}` or `(\bmod 7)` after a value, as a unit of its own.
    fn modulus(&mut self) -> Option<String> {
        let bracketed =
            self.peek() == Some(Kind::Open(Bracket::Round)) && self.kind(self.pos + 1) == Some(Kind::Mod);
        if !bracketed && self.peek() != Some(Kind::Mod) {
            return None;
        }
        let (from, to) = if bracketed {
            (self.pos + 2, self.tokens.pair[self.pos] as usize)
        } else {
            let from = self.pos + 1;
            let group = self.kind(from)? == Kind::Open(Bracket::Group);
            (from, if group { self.tokens.pair[from] as usize } else { from + 1 })
        };
        let mut text = "mod".to_owned();
        for at in from..to.min(self.end) {
            text.extend(self.slice(at).chars().filter(|c| c.is_alphanumeric()));
        }
        self.pos = if bracketed || self.kind(from) == Some(Kind::Open(Bracket::Group)) { to + 1 } else { to };
        Some(text)
    }

    /// The words in the brackets at `at`, and where they end, if nothing but words stands there, which is no factor.
    pub(super) fn remark(&self, at: usize) -> Option<(&'t str, usize)> {
        let close = self.tokens.pair[at];
        if close == NONE
            || close as usize >= self.end
            || self.kind_at(close as usize) != Kind::Close(Bracket::Round)
        {
            return None;
        }
        let inside = at + 1..close as usize;
        let allowed = |kind| {
            matches!(
                kind,
                Kind::Word
                    | Kind::Text
                    | Kind::Upright
                    | Kind::Letter
                    | Kind::Minus
                    | Kind::Unknown
                    | Kind::Slash
            )
        };
        if inside.is_empty() || !inside.clone().all(|at| allowed(self.kind_at(at))) {
            return None;
        }
        let text = if inside.len() == 1 {
            self.slice(at + 1)
        } else {
            &self.text[self.token(at).end as usize..self.token(close as usize).start as usize]
        };
        let text = text.trim();
        let words = |c: char| c.is_alphabetic() || " .-'~/".contains(c);
        let named = inside.clone().any(|at| matches!(self.kind_at(at), Kind::Word | Kind::Text));
        // "DVDs", and a unit of one letter that no formula would set off by a space.
        let plural = text
            .strip_suffix('s')
            .is_some_and(|stem| stem.len() > 1 && stem.bytes().all(|c| c.is_ascii_uppercase()));
        let part = |part: &str| unit::is_unit(part) || matches!(part, "" | "sq" | "cu");
        let unit = unit::is_unit_word(text) || self.token(at).spaced && text.split(['/', '.', ' ']).all(part);
        (text.chars().all(words) && (named || plural || unit)).then_some((text, close as usize + 1))
    }

    /// The unit that follows a value: a few words, powers and a stroke.
    pub(super) fn unit(&mut self) -> Parsed<Option<String>> {
        if let Some(modulus) = self.modulus() {
            return Ok(Some(modulus));
        }
        let mut text = String::new();
        let mut words = Vec::new();
        let mut most = MAX_UNIT_WORDS;
        if self.peek() == Some(Kind::Open(Bracket::Round)) {
            // What is counted may stand in brackets: `9 (apples)`.
            let Some((remark, after)) = self.remark(self.pos) else { return Ok(None) };
            // In brackets a quarter is a thing.
            let counted = |word: &&str| !matches!(*word, "" | "quarter" | "quarters");
            words.extend(remark.split([' ', '.', '~']).filter(counted));
            text.push_str(remark);
            self.pos = after;
            most = MAX_REMARK_WORDS;
        } else if !matches!(self.peek(), Some(Kind::Text | Kind::Word | Kind::Upright)) {
            return Ok(None);
        }
        if words.len() > most {
            return Err(ParseError::Unparsable);
        }
        while let Some(kind) = self.peek() {
            match kind {
                Kind::Text | Kind::Word | Kind::Upright => {
                    let part = &self.slice(self.pos)[std::mem::take(&mut self.taken)..];
                    words.extend(part.split_whitespace());
                    let clean =
                        |c: char| c.is_alphabetic() || c.is_ascii_digit() || " \n./^{}-\\$²³'".contains(c);
                    if words.len() > MAX_UNIT_WORDS || !part.chars().all(clean) {
                        return Err(ParseError::Unparsable);
                    }
                    text.push(' ');
                    text.push_str(part);
                }
                Kind::Slash => text.push('/'),
                Kind::Times => text.push(' '),
                Kind::Letter if text.ends_with(['/', ' ']) => text.push_str(self.slice(self.pos)),
                // "5 dollars a day"
                Kind::Letter
                    if self.slice(self.pos) == "a" && self.kind(self.pos + 1) == Some(Kind::Word) =>
                {
                    text.push('/');
                }
                Kind::Caret => {
                    text.push('^');
                    self.pos += 1;
                    let at = self.pos;
                    match self.peek() {
                        Some(Kind::Open(Bracket::Group)) => {
                            let close = self.tokens.pair[at] as usize;
                            (at + 1..close).for_each(|inside| text.push_str(self.slice(inside)));
                            self.pos = close;
                        }
                        Some(Kind::Number(_) | Kind::Minus) => text.push_str(self.slice(at)),
                        _ => return Err(ParseError::Unparsable),
                    }
                }
                _ => break,
            }
            self.pos += 1;
        }
        if word::name_what_is_counted(&words) { Ok(Some(text)) } else { Err(ParseError::Unparsable) }
    }

    /// The words after a value that say how large it is: "million", "and a half", "thirds", "squared", "per cent".
    pub(super) fn spelled(&mut self, value: Value) -> Parsed<Value> {
        let mut value = value;
        if let Some(of) = self.and_a_part() {
            let part = RBig::from_parts(IBig::ONE, of.into());
            value = self.changed(value, |parser, id| {
                let whole = parser.tree.rational(id).is_some_and(RBig::is_int);
                let part = parser.tree.number(part)?;
                if whole {
                    Ok(parser.tree.sum(&[id, part], parser.work)?)
                } else {
                    Err(ParseError::Unparsable)
                }
            })?;
        }
        while let Some((word, mut after)) = self.next_word(self.pos, self.taken) {
            let mut meaning = word::meaning(word);
            if word == "per"
                && let Some(("cent", end)) = self.next_word(after.0, after.1)
            {
                (meaning, after) = (Word::Percent, end);
            }
            value = match meaning {
                Word::Scale(factor) => self.changed(value, |parser, id| {
                    let factor = parser.tree.number(RBig::from(factor))?;
                    Ok(parser.tree.product(&[id, factor], parser.work)?)
                })?,
                Word::Part { of, plural } => {
                    // "12 third graders" are graders.
                    if !plural && self.next_word(after.0, after.1).is_some_and(|(next, _)| next != "of") {
                        return Ok(value);
                    }
                    self.changed(value, |parser, id| {
                        let known = parser.tree.rational(id).filter(|value| value.is_int());
                        if known.is_none_or(|value| value.is_one() == plural) {
                            return Err(ParseError::Unparsable);
                        }
                        let of = parser.tree.number(RBig::from(of))?;
                        Ok(parser.tree.div(id, of, parser.work)?)
                    })?
                }
                Word::Power(power) => self.changed(value, |parser, id| {
                    let known = parser.tree.rational(id);
                    if known.is_none_or(|value| value.sign() == Sign::Negative) {
                        return Err(ParseError::Unparsable);
                    }
                    let power = parser.tree.number(RBig::from(power))?;
                    Ok(parser.tree.pow(id, power, parser.work)?)
                })?,
                Word::Percent => match value {
                    Value::Quantity(quantity) if quantity.unit.is_none() => {
                        Value::Quantity(Quantity { percent: true, ..quantity })
                    }
                    _ => return Err(ParseError::Unparsable),
                },
                _ => return Ok(value),
            };
            (self.pos, self.taken) = after;
        }
        Ok(value)
    }

    /// The denominator of "and a half", which this steps over.
    fn and_a_part(&mut self) -> Option<u32> {
        let joint = match self.peek()? {
            Kind::And => (self.pos + 1, 0),
            Kind::Text => self.next_word(self.pos, 0).filter(|(word, _)| *word == "and")?.1,
            _ => return None,
        };
        let (article, after) = self.next_word(joint.0, joint.1)?;
        let (part, after) = self.next_word(after.0, after.1)?;
        let one = matches!(article, "a" | "one" | "an");
        let of = match (part, word::meaning(part)) {
            ("quarter", _) => 4,
            (_, Word::Part { of, plural: false }) => of,
            _ => return None,
        };
        if !one {
            return None;
        }
        (self.pos, self.taken) = after;
        Some(of)
    }

    /// The next word of the token at `at` from the byte `from` on, or of the next one, and where it ends.
    fn next_word(&self, at: usize, from: usize) -> Option<(&'t str, (usize, usize))> {
        let Some(Kind::Text | Kind::Word | Kind::Upright | Kind::Letter) = self.kind(at) else { return None };
        let text = self.slice(at);
        let rest = text[from..].trim_start();
        let word = rest.split_whitespace().next()?;
        let end = text.len() - rest.len() + word.len();
        let after = if text[end..].trim().is_empty() { (at + 1, 0) } else { (at, end) };
        Some((word, after))
    }

    /// A value with its number changed.
    fn changed(&mut self, value: Value, change: impl FnOnce(&mut Self, Id) -> Parsed<Id>) -> Parsed<Value> {
        match value {
            Value::Quantity(quantity)
                if !quantity.percent && matches!(quantity.unit.as_deref(), None | Some("currency")) =>
            {
                let root = change(self, quantity.expr.root)?;
                let expr = Expr { first: quantity.expr.first.min(root), root };
                Ok(Value::Quantity(Quantity { expr, decimal: None, ..quantity }))
            }
            Value::Named(mut named) => {
                let last = named.members.pop().ok_or(ParseError::Unparsable)?;
                named.members.push(self.changed(last, change)?);
                Ok(Value::Named(named))
            }
            _ => Err(ParseError::Unparsable),
        }
    }
}

pub(super) fn attach(value: Value, text: String) -> Value {
    let canonical = unit::canonical(&text);
    match value {
        Value::Quantity(quantity) if quantity.unit.is_none() => {
            Value::Quantity(Quantity { unit: Some(canonical.into()), ..quantity })
        }
        // A scale of temperature after the degree sign.
        Value::Quantity(quantity) if quantity.unit.as_deref() == Some("degree") && canonical != "degree" => {
            Value::Quantity(Quantity { unit: Some(format!("degree {canonical}").into()), ..quantity })
        }
        Value::Quantity(quantity) => Value::Quantity(quantity),
        Value::Named(mut named) => {
            if let Some(last) = named.members.pop() {
                named.members.push(attach(last, text));
            }
            Value::Named(named)
        }
        other => Value::Measured(Box::new(other), canonical.into()),
    }
}
