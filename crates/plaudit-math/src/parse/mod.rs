//! The parser: a Pratt parser with bounded depth that reads tokens into typed values.

mod bracket;
mod expression;
mod function;
mod letter;
mod measure;
mod relation;

use dashu_int::Sign;
use dashu_ratio::RBig;

use self::measure::attach;
use crate::expr::{Expr, Id, Node, Tree, integer};
use crate::lex::{Bracket, Kind, Literal, NONE, Rel, Token, Tokens, lex};
use crate::limits::{MAX_ANSWER_BYTES, MAX_DEPTH, MAX_ELEMENTS, MAX_PLUS_MINUS, NoValue, Work};
use crate::number;
use crate::text::{plain, to_latex};
use crate::unit;
use crate::value::{Answer, Named, Quantity, SetOp, Value};
use crate::word;
use plaudit_text::closing_brace;

/// Why a text is not a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParseError {
    NoValue(NoValue),
    /// Not mathematics, so perhaps a text.
    Unparsable,
}

impl From<NoValue> for ParseError {
    fn from(bound: NoValue) -> Self {
        Self::NoValue(bound)
    }
}

type Parsed<T> = Result<T, ParseError>;

/// Words that may stand before an answer inside a box.
const PREFIXES: [&str; 12] = [
    "the answer is",
    "answer is",
    "answer",
    "approximately",
    "approx",
    "about",
    "exactly",
    "final answer",
    "the final answer is",
    "thus",
    "so",
    "therefore",
];

/// Reads a text into an answer. A text that is not mathematics becomes a text answer; a bound that is broken is an
/// error.
pub(crate) fn parse(text: &str, work: &mut Work) -> Result<Answer, NoValue> {
    if text.len() > MAX_ANSWER_BYTES {
        return Err(if is_deep(text) { NoValue::Depth } else { NoValue::TooLarge });
    }
    let latex = to_latex(text);
    let undoubled;
    let mut source = latex.trim();
    if has_doubled_commands(source) {
        undoubled = source.replace("\\\\", "\\");
        source = undoubled.trim();
    }
    let source = without_braces(without_punctuation(source));
    if source.is_empty() {
        return Err(NoValue::Empty);
    }
    if let Some(digits) = word::in_digits(without_command(source)) {
        let answer = parse(&digits, work)?;
        if let Value::Quantity(_) = answer.value {
            return Ok(answer);
        }
    }
    if let Some(value) = based(source) {
        return Ok(Answer::plain(value, true));
    }
    let tokens = match lex(source, work) {
        // A choice with half a bracket, as `B)`.
        Err(NoValue::Unbalanced) if source.len() <= 4 && source.ends_with(')') => {
            let value = Value::Text(plain(source).into());
            return Ok(Answer::plain(value, true));
        }
        // A formula that is cut in two with invisible brackets at the cut.
        Err(NoValue::Unbalanced) if source.contains("\\right.") => {
            let joined = source.replace("\\right.", "").replace("\\left.", "");
            return parse(&joined, work);
        }
        tokens => tokens?,
    };
    let mut parser = Parser::new(source, tokens, work);
    match parser.answer() {
        Ok(value) => {
            let (big, either) = (parser.big, parser.either);
            Ok(Answer { tree: parser.tree, value, parsed: true, big, either })
        }
        Err(ParseError::NoValue(bound)) => Err(bound),
        Err(ParseError::Unparsable) => {
            let words = plain(text);
            if words.is_empty() {
                return Err(NoValue::Empty);
            }
            let parsed = is_prose(&parser.tokens);
            Ok(Answer::plain(Value::Text(words.into()), parsed))
        }
    }
}

/// The text without the spaces and the punctuation at its end. Three dots are part of a number or a list.
fn without_punctuation(text: &str) -> &str {
    let mut text = text.trim_end();
    loop {
        let spacing =
            ["\\,", "\\;", "\\:", "\\!", "\\ ", "\\quad"].iter().find_map(|end| text.strip_suffix(end));
        let shorter = match spacing {
            Some(shorter) => shorter,
            None if text.ends_with("...") || text.ends_with("\\right.") => return text,
            None => text.strip_suffix(['.', ',', ';']).unwrap_or(text),
        };
        let shorter = shorter.trim_end();
        if shorter.len() == text.len() {
            return text;
        }
        text = shorter;
    }
}

/// The text without braces around all of it.
fn without_braces(text: &str) -> &str {
    let mut inner = text;
    // A closing brace that is not the last character ends the search, so this is linear in the layers it takes off.
    for _ in 0..MAX_DEPTH {
        let close =
            if inner.starts_with('{') { closing_brace(inner.as_bytes(), 0, inner.len()) } else { None };
        if close != Some(inner.len().wrapping_sub(1)) {
            break;
        }
        inner = inner[1..inner.len() - 1].trim();
    }
    inner
}

/// The text without a text command around all of it.
fn without_command(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("\\text{").and_then(|rest| rest.strip_suffix('}')) else {
        return text;
    };
    if inner.contains(['{', '}']) { text } else { inner.trim().trim_end_matches('.') }
}

/// Whether a text that is too long is nested too deeply as well, which says more about it.
fn is_deep(text: &str) -> bool {
    let mut depth = 0;
    let mut last = 0;
    for c in text.bytes().take(MAX_ANSWER_BYTES) {
        match c {
            // Braces around braces only group.
            b'{' if last != b'{' => depth += 1,
            b'}' if last != b'}' => depth -= 1,
            _ => {}
        }
        if depth > MAX_DEPTH as i32 {
            return true;
        }
        last = c;
    }
    false
}

/// Only words: a text answer, and not mathematics that could not be read.
fn is_prose(tokens: &Tokens) -> bool {
    tokens.list.iter().all(|token| {
        matches!(
            token.kind,
            Kind::Word
                | Kind::Text
                | Kind::Upright
                | Kind::Letter
                | Kind::And
                | Kind::Or
                | Kind::Comma
                | Kind::Number(_)
                | Kind::Open(Bracket::Round | Bracket::Group)
                | Kind::Close(Bracket::Round | Bracket::Group)
        )
    })
}

/// Text that passed through JSON twice has every backslash doubled.
fn has_doubled_commands(text: &str) -> bool {
    let Some(at) = text.find("\\\\") else { return false };
    if text.contains("\\\\begin{") {
        return true;
    }
    let letter = text.as_bytes().get(at + 2).is_some_and(|c| c.is_ascii_alphabetic() || b"{}%$".contains(c));
    letter && !text.contains("\\begin{")
}

/// A whole number with a base, as `1010_2`, `\text{AB}_{16}` and `204_{\text{five}}`.
fn based(source: &str) -> Option<Value> {
    const WORDS: [(&str, u32); 9] = [
        ("two", 2),
        ("three", 3),
        ("four", 4),
        ("five", 5),
        ("six", 6),
        ("seven", 7),
        ("eight", 8),
        ("nine", 9),
        ("ten", 10),
    ];
    if source.len() > 1024 || !source.contains('_') {
        return None;
    }
    let mut source = std::borrow::Cow::Borrowed(source);
    for spacing in ["\\displaystyle", "\\,", "\\!", "\\(", "\\)", "\\ "] {
        if source.contains(spacing) {
            source = source.replace(spacing, "").into();
        }
    }
    let (digits, base) = source.split_once('_')?;
    let bare = |text: &str| -> String {
        let mut text = text.trim().trim_matches(['(', ')', '$', ' ']);
        for command in ["\\text", "\\mathrm", "\\textrm", "\\mbox"] {
            text = text.trim_start_matches(command);
        }
        text.chars().filter(|c| !matches!(c, '{' | '}' | ' ' | '$')).collect()
    };
    let mut base = bare(base);
    for command in ["\\text", "\\mathrm", "\\textrm"] {
        base = base.replace(command, "");
    }
    let base = match WORDS.iter().find(|(word, _)| *word == base) {
        Some((_, base)) => *base,
        None => base.parse().ok()?,
    };
    let digits = bare(digits);
    let digits = digits.trim_start_matches('0');
    if !(2..=36).contains(&base) || digits.is_empty() || digits.len() > 512 {
        return None;
    }
    let valid = |c: char| {
        let digit = c.to_digit(36).filter(|_| !c.is_ascii_lowercase());
        digit.is_some_and(|digit| digit < base)
    };
    let has_number = digits.bytes().any(|c| c.is_ascii_digit());
    if !digits.chars().all(valid) || !has_number && base <= 10 {
        return None;
    }
    Some(Value::Based { digits: digits.into(), base })
}

struct Parser<'t, 'w> {
    text: &'t str,
    tokens: Tokens,
    pos: usize,
    end: usize,
    tree: Tree,
    work: &'w mut Work,
    depth: u32,
    /// First node of the element that is being read.
    first: Id,
    /// Inside the argument of a trigonometric function, where degrees are angles.
    trig: bool,
    /// Bars that are open.
    bars: u32,
    /// Inside `\{ … \}`, where a colon or a bar divides.
    set: bool,
    /// The sign that `\pm` stands for.
    plus: bool,
    plus_minus: usize,
    expanding: bool,
    /// Letters that a sum binds, innermost last.
    bound: Vec<Box<str>>,
    /// Digits of the number at the current token that are already read, as in `\frac123`.
    taken: usize,
    big: bool,
    either: bool,
    /// Whether the text is a congruence, once that was asked.
    congruent: Option<bool>,
}

impl<'t, 'w> Parser<'t, 'w> {
    fn new(text: &'t str, tokens: Tokens, work: &'w mut Work) -> Self {
        let end = tokens.list.len();
        Self {
            congruent: None,
            text,
            tokens,
            pos: 0,
            end,
            tree: Tree::default(),
            work,
            depth: 0,
            first: 0,
            trig: false,
            bars: 0,
            set: false,
            plus: true,
            plus_minus: 0,
            expanding: false,
            bound: Vec::new(),
            taken: 0,
            big: false,
            either: false,
        }
    }

    fn peek(&self) -> Option<Kind> {
        self.kind(self.pos)
    }

    fn kind(&self, at: usize) -> Option<Kind> {
        if at < self.end { Some(self.tokens.list[at].kind) } else { None }
    }

    fn token(&self, at: usize) -> Token {
        self.tokens.list[at]
    }

    fn slice(&self, at: usize) -> &'t str {
        let token = self.tokens.list[at];
        &self.text[token.start as usize..token.end as usize]
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let found = self.peek() == Some(kind);
        self.pos += usize::from(found);
        found
    }

    fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(ParseError::NoValue(NoValue::Depth)) } else { Ok(()) }
    }

    fn literal(&self, index: u32) -> &Literal {
        &self.tokens.literals[index as usize]
    }

    fn quantity(&self, root: Id) -> Value {
        let expr = Expr { first: self.first.min(root), root };
        Value::Quantity(Quantity { expr, decimal: None, percent: false, unit: None })
    }

    /// The node of a value that takes part in arithmetic.
    fn id(&mut self, value: &Value) -> Parsed<Id> {
        match value {
            Value::Quantity(quantity) if quantity.percent => {
                let hundred = self.tree.number(integer(100))?;
                Ok(self.tree.div(quantity.expr.root, hundred, self.work)?)
            }
            Value::Quantity(quantity) => Ok(quantity.expr.root),
            _ => Err(ParseError::Unparsable),
        }
    }

    fn kind_at(&self, at: usize) -> Kind {
        self.tokens.list[at].kind
    }

    /// The whole text.
    fn answer(&mut self) -> Parsed<Value> {
        if self.end == 0 {
            return Err(ParseError::Unparsable);
        }
        self.skip_prefix();
        // What follows the last arrow outside of brackets. Letters with arrows between them are a path.
        let mut at = if self.sequence().is_some() { self.end } else { self.pos };
        while at < self.end {
            match self.tokens.list[at].kind {
                Kind::Open(_) if self.tokens.pair[at] != NONE => at = self.tokens.pair[at] as usize,
                Kind::Arrow => self.pos = at + 1,
                _ => {}
            }
            at += 1;
        }
        if let Some(value) = self.said_twice()? {
            return Ok(value);
        }
        let (values, joint) = self.divided_or_elements(true)?;
        if self.pos < self.end {
            return Err(ParseError::Unparsable);
        }
        self.either = joint == Some(Kind::Or);
        Ok(list(values, joint))
    }

    /// A set that is said twice with a colon between, as `x > 3: (3, \infty)`. Both must be the same.
    fn said_twice(&mut self) -> Parsed<Option<Value>> {
        if memchr::memchr(b':', self.text.as_bytes()).is_none() {
            return Ok(None);
        }
        let mut at = self.pos;
        let (mut colon, mut inequality) = (None, false);
        while at < self.end {
            match self.kind_at(at) {
                Kind::Open(_) if self.tokens.pair[at] != NONE => at = self.tokens.pair[at] as usize,
                Kind::Colon if colon.is_some() => return Ok(None),
                Kind::Colon => colon = Some(at),
                Kind::Relation(relation) if colon.is_none() => {
                    inequality |= !matches!(relation, Rel::Equal | Rel::Approx);
                }
                _ => {}
            }
            at += 1;
        }
        let Some(colon) = colon.filter(|_| inequality) else { return Ok(None) };
        let end = std::mem::replace(&mut self.end, colon);
        let mut members = Vec::new();
        for end in [colon, end] {
            self.end = end;
            let (values, joint) = self.elements(true)?;
            if self.pos != end {
                return Err(ParseError::Unparsable);
            }
            self.pos += 1;
            members.push(list(values, joint));
        }
        self.pos = end;
        Ok(Some(Value::Named(Box::new(Named { name: None, letter: None, members, rounded: None }))))
    }

    /// Steps over "the answer is" and signs that stand before an answer.
    fn skip_prefix(&mut self) {
        while let Some(kind) = self.peek() {
            match kind {
                Kind::Text | Kind::Word => {
                    let text = self.slice(self.pos).trim_end_matches([':', ' ']).to_ascii_lowercase();
                    if !PREFIXES.contains(&text.as_str()) || self.pos + 1 == self.end {
                        return;
                    }
                }
                Kind::Relation(Rel::Equal | Rel::Approx) | Kind::Colon => {}
                _ => return,
            }
            self.pos += 1;
        }
    }

    /// `a \over b` and `a \choose b`, or elements.
    fn divided_or_elements(&mut self, expand: bool) -> Parsed<(Vec<Value>, Option<Kind>)> {
        let mut at = self.pos;
        while at < self.end {
            match self.tokens.list[at].kind {
                Kind::Open(_) if self.tokens.pair[at] != NONE => at = self.tokens.pair[at] as usize,
                Kind::Over | Kind::Choose => {
                    let choose = self.tokens.list[at].kind == Kind::Choose;
                    let end = std::mem::replace(&mut self.end, at);
                    let top = self.sum_only()?;
                    self.end = end;
                    self.pos = at + 1;
                    let bottom = self.sum_only()?;
                    let root = if choose {
                        self.tree.binomial(top, bottom, self.work)?
                    } else {
                        self.tree.div(top, bottom, self.work)?
                    };
                    return Ok((vec![self.quantity(root)], None));
                }
                _ => {}
            }
            at += 1;
        }
        self.elements(expand)
    }

    fn sum_only(&mut self) -> Parsed<Id> {
        let value = self.sum()?;
        if self.pos != self.end {
            return Err(ParseError::Unparsable);
        }
        self.id(&value)
    }

    /// Elements up to the end, and the word that joins them.
    fn elements(&mut self, expand: bool) -> Parsed<(Vec<Value>, Option<Kind>)> {
        let mut values = Vec::new();
        let mut joint = None;
        loop {
            if values.len() >= MAX_ELEMENTS {
                return Err(ParseError::NoValue(NoValue::TooLarge));
            }
            self.element(expand, &mut values)?;
            let mut separated = false;
            while let Some(kind @ (Kind::Comma | Kind::Semicolon | Kind::And | Kind::Or)) = self.peek() {
                separated = true;
                if matches!(kind, Kind::And | Kind::Or) || joint.is_none() {
                    joint = Some(kind);
                }
                self.pos += 1;
                // "0.6, or equivalently 3/5"
                let said_otherwise = kind == Kind::Or && self.peek() == Some(Kind::Word);
                self.pos += usize::from(said_otherwise && self.slice(self.pos) == "equivalently");
            }
            if !separated || self.pos >= self.end {
                return Ok((values, joint));
            }
        }
    }

    /// One element, or two if it contains `\pm`.
    fn element(&mut self, expand: bool, values: &mut Vec<Value>) -> Parsed<()> {
        let (start, outer) = (self.pos, self.first);
        self.first = self.tree.len();
        let expands = expand && !self.expanding;
        if expands {
            self.plus = true;
            self.plus_minus = 0;
            self.expanding = true;
        }
        let value = self.measured();
        if expands {
            self.expanding = false;
        }
        values.push(value?);
        if expands && self.plus_minus > 0 {
            if self.plus_minus > MAX_PLUS_MINUS {
                return Err(ParseError::NoValue(NoValue::TooLarge));
            }
            self.pos = start;
            self.taken = 0;
            self.first = self.tree.len();
            self.plus = false;
            self.expanding = true;
            let other = self.measured();
            self.expanding = false;
            self.plus = true;
            values.push(other?);
        }
        self.first = outer;
        Ok(())
    }

    /// A relation with a unit behind it.
    fn measured(&mut self) -> Parsed<Value> {
        if self.peek() == Some(Kind::Dots) {
            self.pos += 1;
            return Ok(Value::Text("…".into()));
        }
        if let Some(value) = self.lone_text() {
            if !matches!(self.peek(), Some(Kind::Relation(_))) {
                return Ok(value);
            }
            return self.relation_from(value);
        }
        if self.is_article() {
            return Err(ParseError::Unparsable);
        }
        while let Some(Kind::Relation(Rel::Equal | Rel::Approx)) = self.peek() {
            self.pos += 1;
        }
        let value = self.relation()?;
        let value = self.spelled(value)?;
        let Some(unit) = self.unit()? else { return Ok(value) };
        Ok(attach(value, unit))
    }

    /// Whether an article with its noun comes next: "an ellipse" is prose, and no product of `a` and `n` with a unit.
    fn is_article(&self) -> bool {
        let letter = |at: usize, wanted: &str| {
            self.kind(at) == Some(Kind::Letter) && self.slice(at).eq_ignore_ascii_case(wanted)
        };
        let long = letter(self.pos + 1, "n") && !self.tokens.list[self.pos + 1].spaced;
        let noun = self.pos + 1 + usize::from(long);
        letter(self.pos, "a")
            && self.kind(noun) == Some(Kind::Word)
            && self.tokens.list[noun].spaced
            && !unit::is_unit_word(self.slice(noun))
    }

    /// A text or an upright name that is an element of its own.
    fn lone_text(&mut self) -> Option<Value> {
        if let Some((text, end)) = self.sequence() {
            self.pos = end;
            return Some(Value::Text(text.into()));
        }
        let kind = self.peek()?;
        let next = self.kind(self.pos + 1);
        let ends = matches!(
            next,
            None | Some(Kind::Comma | Kind::Semicolon | Kind::And | Kind::Or | Kind::Relation(Rel::Equal))
        );
        let single = self.slice(self.pos).chars().count() == 1;
        let is_text = matches!(kind, Kind::Text | Kind::Word) || kind == Kind::Upright && !single;
        if !ends || !is_text {
            return None;
        }
        self.pos += 1;
        Some(Value::Text(plain(self.slice(self.pos - 1)).into()))
    }

    /// Capital letters in a row that are an element of their own, and where they end: an order, a code, a path or tosses
    /// of a coin, where a product would not keep their order. Two letters are a segment.
    fn sequence(&self) -> Option<(String, usize)> {
        let mut at = self.pos;
        while let Some(Kind::Open(Bracket::Round | Bracket::Group)) = self.kind(at) {
            at += 1;
        }
        let brackets = at - self.pos;
        let mut text = String::new();
        let (mut letters, mut joints, mut joint, mut digits) = (0, 0, None, false);
        loop {
            match self.kind(at) {
                Some(Kind::Letter | Kind::Upright) => {
                    let [letter @ b'A'..=b'Z'] = self.slice(at).as_bytes() else { return None };
                    text.push(char::from(letter.to_ascii_lowercase()));
                    letters += 1;
                }
                Some(Kind::Number(_)) if letters > 0 && !self.token(at).spaced => {
                    text.push_str(self.slice(at));
                    digits = true;
                }
                Some(kind @ (Kind::Minus | Kind::Arrow)) if joint.is_none_or(|known| known == kind) => {
                    joint = Some(kind);
                    joints += 1;
                }
                _ => break,
            }
            at += 1;
        }
        for _ in 0..brackets {
            let Some(Kind::Close(Bracket::Round | Bracket::Group)) = self.kind(at) else { return None };
            at += 1;
        }
        let ends = matches!(self.kind(at), None | Some(Kind::Comma | Kind::Semicolon | Kind::And | Kind::Or));
        let joined = joints == 0 || joints + 1 == letters && !digits;
        (ends && joined && (letters > 2 || letters == 2 && digits)).then_some((text, at))
    }

    /// Whether the next token takes the remainder of the value before it, and does not say modulo what it is meant.
    fn is_remainder(&mut self) -> bool {
        self.peek() == Some(Kind::Mod)
            && !matches!(self.slice(self.pos), "\\pmod" | "\\pod")
            && !*self.congruent.get_or_insert_with(|| self.text.contains("\\equiv"))
    }

    /// The remainder of a division. Of letters it is an unknown function.
    fn remainder(&mut self, value: &Value, modulus: &Value) -> Parsed<Value> {
        let (value, modulus) = (self.id(value)?, self.id(modulus)?);
        let root = match (self.tree.rational(value), self.tree.rational(modulus)) {
            (_, Some(modulus)) if modulus.sign() == Sign::Negative || modulus.is_zero() => {
                return Err(ParseError::NoValue(NoValue::Undefined));
            }
            (Some(value), Some(modulus)) => {
                let count = number::div(value, modulus, self.work)?.floor();
                let part = number::mul(&RBig::from(count), modulus, self.work)?;
                let rest = number::add(value, &-part, self.work)?;
                self.tree.number(rest)?
            }
            _ => {
                let name = self.tree.intern("mod");
                self.tree.leaf(Node::Apply(name, [value, modulus].into()))?
            }
        };
        Ok(self.quantity(root))
    }
}

/// One value, or a list. Intervals with "or" between them are one set.
fn list(mut values: Vec<Value>, joint: Option<Kind>) -> Value {
    if values.len() == 1
        && let Some(one) = values.pop()
    {
        return one;
    }
    let set_like = |value: &Value| match value {
        Value::Named(named) => matches!(named.members[..], [Value::Reals(_) | Value::SetOp(..)]),
        Value::Reals(_) => true,
        _ => false,
    };
    let op = match joint {
        Some(Kind::Or) => SetOp::Union,
        Some(Kind::And) => SetOp::Intersection,
        _ => return Value::List(values),
    };
    if !values.iter().all(set_like) {
        return Value::List(values);
    }
    let mut result: Option<(Option<Named>, Value)> = None;
    for value in values {
        let (named, value) = match value {
            Value::Named(mut named) => {
                let member = named.members.pop();
                (Some(*named), member.map_or(Value::Empty, |member| member))
            }
            other => (None, other),
        };
        result = Some(match result {
            None => (named, value),
            Some((first, so_far)) => (first, Value::SetOp(op, Box::new(so_far), Box::new(value))),
        });
    }
    match result {
        Some((Some(named), value)) => Value::Named(Box::new(Named { members: vec![value], ..named })),
        Some((None, value)) => value,
        None => Value::Empty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> &'static str {
        parse(text, &mut Work::new()).unwrap().value.kind()
    }

    #[test]
    fn texts_become_typed_values() {
        assert_eq!(kind("2\\frac{1}{2}"), "expression");
        assert_eq!(kind("1, 2"), "list");
        assert_eq!(kind("\\{1, 2\\}"), "set");
        assert_eq!(kind("(1, 2)"), "tuple");
        assert_eq!(kind("[1, 2)"), "interval");
        assert_eq!(kind("x = 3"), "named");
        assert_eq!(kind("x > 3"), "named");
        assert_eq!(kind("x^2 + y^2 = 1"), "relation");
        assert_eq!(kind("3:2"), "ratio");
        assert_eq!(kind("1010_2"), "based");
        assert_eq!(kind("\\text{yes}"), "text");
        assert_eq!(kind("\\emptyset"), "empty_set");
        assert_eq!(kind("\\begin{pmatrix}1\\\\2\\end{pmatrix}"), "matrix");
    }

    #[test]
    fn redundant_brackets_do_not_count() {
        let deep = format!("{}4{}", "({".repeat(500), "})".repeat(500));
        assert_eq!(kind(&deep), "expression");
        let nested = format!("{}4{}", "\\sqrt{1+".repeat(70), "}".repeat(70));
        assert_eq!(parse(&nested, &mut Work::new()).unwrap_err(), NoValue::Depth);
    }

    #[test]
    fn bounds_are_errors() {
        let error = |text: &str| parse(text, &mut Work::new()).unwrap_err();
        assert_eq!(error("\\frac{1}{0}"), NoValue::Undefined);
        assert_eq!(error("2^{10^9}"), NoValue::TooLarge);
        assert_eq!(error(" . "), NoValue::Empty);
        assert_eq!(error("\\lim_{x\\to0} x"), NoValue::Unsupported);
        assert_eq!(error(&vec!["1"; 600].join("; ")), NoValue::TooLarge);
    }

    #[test]
    fn mathematics_that_cannot_be_read_is_not_parsed() {
        assert!(!parse("4 + * 5", &mut Work::new()).unwrap().parsed);
        assert!(parse("an ellipse", &mut Work::new()).unwrap().parsed);
    }
}
