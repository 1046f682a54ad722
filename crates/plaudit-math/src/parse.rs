//! The parser: a Pratt parser with bounded depth that reads tokens into typed values.

use dashu_int::{IBig, Sign, UBig};
use dashu_ratio::RBig;

use crate::bound::{Bound, MAX_ANSWER_BYTES, MAX_CELLS, MAX_DEPTH, MAX_ELEMENTS, MAX_PLUS_MINUS, Work};
use crate::expr::{Expr, Function, Id, Node, Tree, integer};
use crate::lex::{Bracket, Kind, Literal, NONE, Rel, Token, Tokens, lex};
use crate::number;
use crate::text::{plain, to_latex};
use crate::unit;
use crate::value::{Answer, Decimal, Interval, Named, Quantity, SetOp, Value};

/// Why a text is not a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fail {
    Bound(Bound),
    /// Not mathematics, so perhaps a text.
    Unparsable,
}

impl From<Bound> for Fail {
    fn from(bound: Bound) -> Self {
        Self::Bound(bound)
    }
}

type Parsed<T> = Result<T, Fail>;

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
/// Words that make a text after a number more than a unit.
const NOT_UNITS: [&str; 14] =
    ["or", "and", "not", "if", "where", "for", "when", "is", "are", "but", "with", "correct", "answer", "to"];

/// Reads a text into an answer. A text that is not mathematics becomes a text answer; a bound that is broken is an
/// error.
pub(crate) fn parse(text: &str, work: &mut Work) -> Result<Answer, Bound> {
    if text.len() > MAX_ANSWER_BYTES {
        return Err(if is_deep(text) { Bound::Depth } else { Bound::TooLarge });
    }
    let latex = to_latex(text);
    let undoubled;
    let mut source = latex.trim();
    if has_doubled_commands(source) {
        undoubled = source.replace("\\\\", "\\");
        source = undoubled.trim();
    }
    let source =
        if source.ends_with("...") { source } else { source.trim_end_matches(['.', ',', ';', ' ', '\n']) };
    if source.is_empty() {
        return Err(Bound::Empty);
    }
    if let Some(value) = based(source) {
        return Ok(Answer { tree: Tree::default(), value, parsed: true, big: false });
    }
    let tokens = match lex(source, work) {
        // A choice with half a bracket, as `B)`.
        Err(Bound::Unbalanced) if source.len() <= 4 && source.ends_with(')') => {
            let value = Value::Text(plain(source).into());
            return Ok(Answer { tree: Tree::default(), value, parsed: true, big: false });
        }
        tokens => tokens?,
    };
    let mut parser = Parser::new(source, tokens, work);
    match parser.answer() {
        Ok(value) => {
            let big = parser.big;
            Ok(Answer { tree: parser.tree, value, parsed: true, big })
        }
        Err(Fail::Bound(bound)) => Err(bound),
        Err(Fail::Unparsable) => {
            let words = plain(text);
            if words.is_empty() {
                return Err(Bound::Empty);
            }
            let parsed = is_prose(&parser.tokens);
            Ok(Answer { tree: Tree::default(), value: Value::Text(words.into()), parsed, big: false })
        }
    }
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
}

impl<'t, 'w> Parser<'t, 'w> {
    fn new(text: &'t str, tokens: Tokens, work: &'w mut Work) -> Self {
        let end = tokens.list.len();
        Self {
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
        if self.depth > MAX_DEPTH { Err(Fail::Bound(Bound::Depth)) } else { Ok(()) }
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
            _ => Err(Fail::Unparsable),
        }
    }

    /// The whole text.
    fn answer(&mut self) -> Parsed<Value> {
        if self.end == 0 {
            return Err(Fail::Unparsable);
        }
        self.skip_prefix();
        if let Some(arrow) = (self.pos..self.end).rev().find(|at| self.tokens.list[*at].kind == Kind::Arrow) {
            self.pos = arrow + 1;
        }
        let (values, joint) = self.divided_or_elements(true)?;
        if self.pos < self.end {
            return Err(Fail::Unparsable);
        }
        Ok(list(values, joint))
    }

    /// Steps over "the answer is" and signs that stand before an answer.
    fn skip_prefix(&mut self) {
        while let Some(kind) = self.peek() {
            match kind {
                Kind::Text => {
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
            return Err(Fail::Unparsable);
        }
        self.id(&value)
    }

    /// Elements up to the end, and the word that joins them.
    fn elements(&mut self, expand: bool) -> Parsed<(Vec<Value>, Option<Kind>)> {
        let mut values = Vec::new();
        let mut joint = None;
        loop {
            if values.len() >= MAX_ELEMENTS {
                return Err(Fail::Bound(Bound::TooLarge));
            }
            self.element(expand, &mut values)?;
            let mut separated = false;
            while let Some(kind @ (Kind::Comma | Kind::Semicolon | Kind::And | Kind::Or)) = self.peek() {
                separated = true;
                if matches!(kind, Kind::And | Kind::Or) || joint.is_none() {
                    joint = Some(kind);
                }
                self.pos += 1;
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
                return Err(Fail::Bound(Bound::TooLarge));
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
        while let Some(Kind::Relation(Rel::Equal | Rel::Approx)) = self.peek() {
            self.pos += 1;
        }
        let value = self.relation()?;
        let Some(unit) = self.unit()? else { return Ok(value) };
        Ok(attach(value, unit))
    }

    /// A text or an upright name that is an element of its own.
    fn lone_text(&mut self) -> Option<Value> {
        let kind = self.peek()?;
        let next = self.kind(self.pos + 1);
        let ends = matches!(
            next,
            None | Some(Kind::Comma | Kind::Semicolon | Kind::And | Kind::Or | Kind::Relation(Rel::Equal))
        );
        let single = self.slice(self.pos).chars().count() == 1;
        if !ends || !matches!(kind, Kind::Text | Kind::Word) && !(kind == Kind::Upright && !single) {
            return None;
        }
        self.pos += 1;
        Some(Value::Text(plain(self.slice(self.pos - 1)).into()))
    }

    /// The unit that follows a value: a few words, powers and a stroke.
    fn unit(&mut self) -> Parsed<Option<String>> {
        if !matches!(self.peek(), Some(Kind::Text | Kind::Word | Kind::Upright)) {
            return Ok(None);
        }
        let mut text = String::new();
        let mut words = 0;
        while let Some(kind) = self.peek() {
            match kind {
                Kind::Text | Kind::Word | Kind::Upright => {
                    let part = self.slice(self.pos);
                    words += part.split_whitespace().count();
                    let clean =
                        |c: char| c.is_alphabetic() || c.is_ascii_digit() || " ./^{}-\\$²³'".contains(c);
                    let bad = |word: &str| NOT_UNITS.contains(&word.to_lowercase().as_str());
                    if words > 4 || !part.chars().all(clean) || part.split_whitespace().any(bad) {
                        return Err(Fail::Unparsable);
                    }
                    text.push(' ');
                    text.push_str(part);
                }
                Kind::Slash => text.push('/'),
                Kind::Times => text.push(' '),
                Kind::Letter if text.ends_with(['/', ' ']) => text.push_str(self.slice(self.pos)),
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
                        _ => return Err(Fail::Unparsable),
                    }
                }
                _ => break,
            }
            self.pos += 1;
        }
        Ok(Some(text))
    }

    fn relation(&mut self) -> Parsed<Value> {
        let first = self.union()?;
        self.relation_from(first)
    }

    fn relation_from(&mut self, first: Value) -> Parsed<Value> {
        let mut values = vec![first];
        let mut relations = Vec::new();
        while let Some(Kind::Relation(relation)) = self.peek() {
            self.pos += 1;
            relations.push(relation);
            let value = match self.lone_text() {
                Some(text) => text,
                None => self.union()?,
            };
            values.push(value);
            if values.len() > 64 {
                return Err(Fail::Bound(Bound::TooLarge));
            }
        }
        if relations.is_empty() {
            return values.pop().ok_or(Fail::Unparsable);
        }
        self.resolve(values, relations)
    }

    /// Union, intersection and difference of sets.
    fn union(&mut self) -> Parsed<Value> {
        let mut value = self.ratio()?;
        let mut count = 0;
        while let Some(kind @ (Kind::Cup | Kind::Cap | Kind::Setminus)) = self.peek() {
            self.pos += 1;
            count += 1;
            if count > MAX_DEPTH {
                return Err(Fail::Bound(Bound::TooLarge));
            }
            let op = match kind {
                Kind::Cup => SetOp::Union,
                Kind::Cap => SetOp::Intersection,
                _ => SetOp::Difference,
            };
            let other = self.ratio()?;
            value = Value::SetOp(op, Box::new(value), Box::new(other));
        }
        Ok(value)
    }

    /// Values with colons between them.
    fn ratio(&mut self) -> Parsed<Value> {
        let first = self.sum()?;
        if self.set || self.peek() != Some(Kind::Colon) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.eat(Kind::Colon) {
            if parts.len() >= MAX_ELEMENTS {
                return Err(Fail::Bound(Bound::TooLarge));
            }
            if self.eat(Kind::Dots) {
                parts.push(Value::Text("…".into()));
            } else {
                parts.push(self.sum()?);
            }
        }
        Ok(Value::Ratio(parts))
    }

    fn sum(&mut self) -> Parsed<Value> {
        let first = self.product()?;
        if !matches!(self.peek(), Some(Kind::Plus | Kind::Minus | Kind::PlusMinus | Kind::MinusPlus)) {
            return Ok(first);
        }
        if let Value::Matrix { .. } = first {
            return self.matrix_sum(first);
        }
        let mut terms = vec![self.id(&first)?];
        while let Some(kind) = self.peek() {
            let Some(minus) = self.sign(kind) else { break };
            self.pos += 1;
            let value = self.product()?;
            let id = self.id(&value)?;
            terms.push(if minus { self.tree.neg(id)? } else { id });
        }
        let root = self.tree.sum(&terms, self.work)?;
        Ok(self.quantity(root))
    }

    /// Whether a sign is a minus; `None` if it is no sign.
    fn sign(&mut self, kind: Kind) -> Option<bool> {
        match kind {
            Kind::Plus => Some(false),
            Kind::Minus => Some(true),
            Kind::PlusMinus | Kind::MinusPlus => {
                self.plus_minus += 1;
                Some((kind == Kind::PlusMinus) != self.plus)
            }
            _ => None,
        }
    }

    fn matrix_sum(&mut self, first: Value) -> Parsed<Value> {
        let Value::Matrix { columns, cells } = first else { return Err(Fail::Unparsable) };
        let mut total = cells;
        while let Some(kind @ (Kind::Plus | Kind::Minus)) = self.peek() {
            self.pos += 1;
            let Value::Matrix { columns: other, cells } = self.product()? else {
                return Err(Fail::Unparsable);
            };
            if other != columns || cells.len() != total.len() {
                return Err(Fail::Bound(Bound::Undefined));
            }
            for (cell, term) in total.iter_mut().zip(&cells) {
                let (a, b) = (self.id(cell)?, self.id(term)?);
                let b = if kind == Kind::Minus { self.tree.neg(b)? } else { b };
                let root = self.tree.sum(&[a, b], self.work)?;
                *cell = self.quantity(root);
            }
        }
        Ok(Value::Matrix { columns, cells: total })
    }

    /// Factors with signs, strokes or nothing between them.
    fn product(&mut self) -> Parsed<Value> {
        let first = self.unary()?;
        if !self.continues_product() {
            return Ok(first);
        }
        let mut matrix = None;
        let mut factors = Vec::new();
        let take = |parser: &mut Self, value: Value, factors: &mut Vec<Id>, matrix: &mut Option<Value>| {
            if matches!(value, Value::Matrix { .. }) {
                if matrix.is_some() {
                    return Err(Fail::Unparsable);
                }
                *matrix = Some(value);
                return Ok(());
            }
            let id = parser.id(&value)?;
            factors.push(id);
            Ok(())
        };
        take(self, first, &mut factors, &mut matrix)?;
        while self.continues_product() {
            match self.peek() {
                Some(Kind::Times) => {
                    self.pos += 1;
                    let value = self.unary()?;
                    take(self, value, &mut factors, &mut matrix)?;
                }
                Some(Kind::Slash) => {
                    self.pos += 1;
                    let value = self.unary()?;
                    let below = self.id(&value)?;
                    if matrix.is_some() {
                        let one = self.tree.number(RBig::ONE)?;
                        factors.push(self.tree.div(one, below, self.work)?);
                    } else {
                        let above = self.tree.product(&factors, self.work)?;
                        factors = vec![self.tree.div(above, below, self.work)?];
                    }
                }
                _ => {
                    let value = self.power()?;
                    take(self, value, &mut factors, &mut matrix)?;
                }
            }
        }
        let Some(Value::Matrix { columns, mut cells }) = matrix else {
            let root = self.tree.product(&factors, self.work)?;
            return Ok(self.quantity(root));
        };
        for cell in &mut cells {
            let mut all = factors.clone();
            all.push(self.id(cell)?);
            let root = self.tree.product(&all, self.work)?;
            *cell = self.quantity(root);
        }
        Ok(Value::Matrix { columns, cells })
    }

    /// Whether the next token is a factor of the product that is being read.
    fn continues_product(&self) -> bool {
        let Some(kind) = self.peek() else { return false };
        match kind {
            Kind::Times | Kind::Slash => true,
            // Two numbers side by side are no product.
            Kind::Number(_) => {
                self.pos > 0
                    && !matches!(self.tokens.list[self.pos - 1].kind, Kind::Number(_) | Kind::Percent)
            }
            Kind::Bar => self.bars == 0 && !self.set,
            _ => self.starts_factor(kind),
        }
    }

    fn starts_factor(&self, kind: Kind) -> bool {
        match kind {
            Kind::Letter
            | Kind::Frac
            | Kind::Sqrt
            | Kind::Binom
            | Kind::Function(_)
            | Kind::Exp
            | Kind::Log
            | Kind::Lg
            | Kind::Fold(_)
            | Kind::Accent
            | Kind::Sign
            | Kind::Pi
            | Kind::Begin
            | Kind::Det
            | Kind::Big(_)
            | Kind::Unevaluated => true,
            Kind::Open(bracket) => !matches!(bracket, Bracket::Set | Bracket::Reversed),
            // An upright letter after a number is a unit, unless more of the product follows.
            Kind::Upright => {
                let next = self.kind(self.pos + 1);
                next.is_some_and(|next| {
                    next != Kind::Slash
                        && (matches!(next, Kind::Underscore | Kind::Plus | Kind::Minus | Kind::Relation(_))
                            || self.starts_factor(next) && next != Kind::Upright)
                })
            }
            _ => false,
        }
    }

    fn unary(&mut self) -> Parsed<Value> {
        let mut minus = false;
        let mut signs = 0;
        while let Some(kind) = self.peek() {
            let Some(is_minus) = self.sign(kind) else { break };
            minus ^= is_minus;
            signs += 1;
            self.pos += 1;
        }
        let value = self.power()?;
        if signs == 0 || !minus {
            return match value {
                Value::Quantity(_) | Value::Matrix { .. } => Ok(value),
                _ if signs == 0 => Ok(value),
                _ => Err(Fail::Unparsable),
            };
        }
        match value {
            Value::Quantity(quantity) => {
                let root = self.tree.neg(quantity.expr.root)?;
                Ok(Value::Quantity(Quantity { expr: Expr { first: self.first.min(root), root }, ..quantity }))
            }
            Value::Matrix { columns, mut cells } => {
                for cell in &mut cells {
                    let id = self.id(cell)?;
                    let root = self.tree.neg(id)?;
                    *cell = self.quantity(root);
                }
                Ok(Value::Matrix { columns, cells })
            }
            _ => Err(Fail::Unparsable),
        }
    }

    /// A primary with powers, factorials, percent and degree signs behind it.
    fn power(&mut self) -> Parsed<Value> {
        let mut value = self.primary()?;
        while let Some(kind) = self.peek() {
            match kind {
                Kind::Caret => {
                    if self.is_degree() {
                        value = self.degrees(value)?;
                        continue;
                    }
                    self.pos += 1;
                    if let Value::Matrix { columns, cells } = value {
                        value = self.transposed(columns, &cells)?;
                        continue;
                    }
                    let exponent = self.script()?;
                    let base = self.id(&value)?;
                    let root = self.tree.pow(base, exponent, self.work)?;
                    value = self.quantity(root);
                }
                Kind::Bang => {
                    self.pos += 1;
                    if self.peek() == Some(Kind::Bang) {
                        return Err(Fail::Unparsable);
                    }
                    let of = self.id(&value)?;
                    let root = self.tree.call(Function::Factorial, of, self.work)?;
                    value = self.quantity(root);
                }
                Kind::Percent => {
                    self.pos += 1;
                    let Value::Quantity(quantity) = &mut value else { return Err(Fail::Unparsable) };
                    quantity.percent = true;
                }
                Kind::Degree => {
                    self.pos += 1;
                    value = self.in_degrees(value)?;
                }
                _ => break,
            }
        }
        Ok(value)
    }

    /// `^\circ` or `^{\circ}` at the caret.
    fn is_degree(&self) -> bool {
        let next = self.pos + 1;
        self.kind(next) == Some(Kind::Degree)
            || self.kind(next) == Some(Kind::Open(Bracket::Group))
                && self.kind(next + 1) == Some(Kind::Degree)
                && self.kind(next + 2) == Some(Kind::Close(Bracket::Group))
    }

    fn degrees(&mut self, value: Value) -> Parsed<Value> {
        self.pos += if self.kind(self.pos + 1) == Some(Kind::Degree) { 2 } else { 4 };
        self.in_degrees(value)
    }

    fn in_degrees(&mut self, value: Value) -> Parsed<Value> {
        let Value::Quantity(mut quantity) = value else { return Err(Fail::Unparsable) };
        if !self.trig {
            quantity.unit = Some("degree".into());
            return Ok(Value::Quantity(quantity));
        }
        let part = self.tree.number(RBig::from_parts(IBig::ONE, UBig::from(180u8)))?;
        let pi = self.tree.leaf(Node::Pi)?;
        let root = self.tree.product(&[quantity.expr.root, pi, part], self.work)?;
        Ok(self.quantity(root))
    }

    fn transposed(&mut self, columns: usize, cells: &[Value]) -> Parsed<Value> {
        let at = if self.peek() == Some(Kind::Open(Bracket::Group)) { self.pos + 1 } else { self.pos };
        let sign = self.kind(at) == Some(Kind::Letter) && self.slice(at) == "T";
        let sign = sign || self.kind(at) == Some(Kind::Upright) && self.slice(at) == "T";
        if !sign || columns == 0 {
            return Err(Fail::Unparsable);
        }
        self.pos = if at == self.pos { at + 1 } else { at + 2 };
        let rows = cells.len() / columns;
        let turned = (0..cells.len()).map(|i| cells[(i % rows) * columns + i / rows].clone()).collect();
        Ok(Value::Matrix { columns: rows, cells: turned })
    }

    /// The exponent after a caret: a group, a number with all its digits, or one token.
    fn script(&mut self) -> Parsed<Id> {
        let mut minus = false;
        while let Some(kind @ (Kind::Minus | Kind::Plus)) = self.peek() {
            minus ^= kind == Kind::Minus;
            self.pos += 1;
        }
        let trig = std::mem::replace(&mut self.trig, false);
        let id = self.one_token();
        self.trig = trig;
        let id = id?;
        Ok(if minus { self.tree.neg(id)? } else { id })
    }

    /// A group, a number with all its digits, a letter or a command. Brackets count their own level.
    fn one_token(&mut self) -> Parsed<Id> {
        let value = match self.peek() {
            Some(Kind::Letter) => self.letter(false)?,
            Some(Kind::Open(_)) => self.primary()?,
            Some(_) => {
                self.enter()?;
                let value = self.primary()?;
                self.depth -= 1;
                value
            }
            None => return Err(Fail::Unparsable),
        };
        self.id(&value)
    }

    fn primary(&mut self) -> Parsed<Value> {
        let Some(kind) = self.peek() else { return Err(Fail::Unparsable) };
        match kind {
            Kind::Number(index) => self.number(index),
            Kind::Letter => self.letter(true),
            Kind::Upright => self.upright(),
            Kind::Open(bracket) => self.bracket(bracket),
            Kind::Bar => self.absolute(),
            Kind::Frac => self.frac(),
            Kind::Sqrt => self.sqrt(),
            Kind::Binom => {
                self.pos += 1;
                let (n, k) = (self.argument()?, self.argument()?);
                let root = self.tree.binomial(n, k, self.work)?;
                Ok(self.quantity(root))
            }
            Kind::Function(_) | Kind::Exp | Kind::Log | Kind::Lg => self.function(kind),
            Kind::Fold(fold) => {
                self.pos += 1;
                let Some(Kind::Open(Bracket::Round | Bracket::Set)) = self.peek() else {
                    return Err(Fail::Unparsable);
                };
                let values = self.inside(false)?.0;
                let ids = values.iter().map(|value| self.id(value)).collect::<Parsed<Vec<Id>>>()?;
                let root = self.tree.fold(fold, &ids, self.work)?;
                Ok(self.quantity(root))
            }
            Kind::Pi => self.leaf(Node::Pi),
            Kind::Infinity => self.leaf(Node::Infinity),
            Kind::EmptySet => {
                self.pos += 1;
                Ok(Value::Empty)
            }
            Kind::Reals => {
                self.pos += 1;
                let low = self.tree.leaf(Node::Infinity)?;
                let high = low;
                let low = self.tree.neg(low)?;
                let interval = Interval {
                    low: Expr { first: high, root: low },
                    high: Expr { first: high, root: high },
                    low_closed: false,
                    high_closed: false,
                };
                Ok(Value::Reals(vec![interval]))
            }
            Kind::Accent | Kind::Sign => self.marked(),
            Kind::Begin => self.environment(),
            Kind::Det => {
                self.pos += 1;
                match self.primary()? {
                    Value::Matrix { columns, cells } => self.determinant(columns, &cells),
                    _ => Err(Fail::Unparsable),
                }
            }
            Kind::Big(_) => self.big_operator(),
            Kind::Currency => {
                self.pos += 1;
                let value = self.power()?;
                Ok(attach(value, "currency".to_owned()))
            }
            Kind::Unevaluated => Err(Fail::Bound(Bound::Unsupported)),
            _ => Err(Fail::Unparsable),
        }
    }

    fn leaf(&mut self, node: Node) -> Parsed<Value> {
        self.pos += 1;
        let root = self.tree.leaf(node)?;
        Ok(self.quantity(root))
    }

    /// A number, which may be the whole part of a mixed number.
    fn number(&mut self, index: u32) -> Parsed<Value> {
        let at = self.pos;
        self.pos += 1;
        if self.taken > 0 {
            let rest = &self.slice(at)[std::mem::take(&mut self.taken)..];
            let value = IBig::from_str_radix(rest, 10).map_err(|_| Fail::Unparsable)?;
            let root = self.tree.number(RBig::from(value))?;
            return Ok(self.quantity(root));
        }
        let literal = self.literal(index);
        let mut value = literal.value.clone();
        let decimal = literal.places.map(|places| Decimal { places, significant: literal.significant });
        if literal.value.is_int()
            && literal.places.is_none()
            && let Some(part) = self.fraction_after()
        {
            value = number::add(&value, &part, self.work)?;
        }
        let root = self.tree.number(value)?;
        let Value::Quantity(quantity) = self.quantity(root) else { return Err(Fail::Unparsable) };
        // A currency sign or the word for it behind the number.
        if self.peek() == Some(Kind::Currency) {
            self.pos += 1;
            return Ok(Value::Quantity(Quantity { decimal, unit: Some("currency".into()), ..quantity }));
        }
        Ok(Value::Quantity(Quantity { decimal, ..quantity }))
    }

    /// The proper fraction that makes a whole number a mixed one: `2\frac{1}{2}` or `2 1/2`.
    fn fraction_after(&mut self) -> Option<RBig> {
        let at = self.pos;
        let plain = |parser: &Self, at: usize| -> Option<RBig> {
            let Some(Kind::Number(index)) = parser.kind(at) else { return None };
            let literal = parser.literal(index);
            literal.plain.then(|| literal.value.clone())
        };
        let (num, den, after) = match self.kind(at)? {
            Kind::Frac => {
                // Two braced numbers, or one token of two digits.
                let group = |at: usize| -> Option<(RBig, usize)> {
                    let closed = self.kind(at)? == Kind::Open(Bracket::Group)
                        && self.kind(at + 2)? == Kind::Close(Bracket::Group);
                    Some((plain(self, at + 1).filter(|_| closed)?, at + 3))
                };
                let digit = |at: usize| -> Option<(RBig, usize)> {
                    let value = plain(self, at)?;
                    (self.slice(at).len() == 1).then_some((value, at + 1))
                };
                if let Some(value) = plain(self, at + 1).filter(|_| self.slice(at + 1).len() == 2) {
                    let both = number::small(&value)?;
                    (integer(i64::from(both / 10)), integer(i64::from(both % 10)), at + 2)
                } else {
                    let (num, next) = group(at + 1).or_else(|| digit(at + 1))?;
                    let (den, after) = group(next).or_else(|| digit(next))?;
                    (num, den, after)
                }
            }
            Kind::Number(_) if self.token(at).spaced && self.kind(at + 1)? == Kind::Slash => {
                (plain(self, at)?, plain(self, at + 2)?, at + 3)
            }
            _ => return None,
        };
        if den.is_zero() || num.is_zero() || num >= den {
            return None;
        }
        // `2\frac12^2` and `2 1/2^3` are no mixed numbers.
        if self.kind(after) == Some(Kind::Caret) {
            return None;
        }
        self.pos = after;
        number::div(&num, &den, self.work).ok()
    }

    /// A letter with its subscript and primes, or a function of that name.
    fn letter(&mut self, scripts: bool) -> Parsed<Value> {
        let at = self.pos;
        self.pos += 1;
        let name = self.slice(at).trim_start_matches('\\');
        if !scripts {
            return self.finish_letter(name);
        }
        if let Some(value) = self.combination(name)? {
            return Ok(value);
        }
        let mut full = String::new();
        if self.bound.iter().any(|bound| &**bound == name) {
            full = self.bound_name(name);
        }
        if self.peek() == Some(Kind::Underscore) {
            if full.is_empty() {
                full.push_str(name);
            }
            full.push('_');
            self.subscript(&mut full)?;
        }
        loop {
            let primed = self.peek() == Some(Kind::Prime);
            let raised = self.peek() == Some(Kind::Caret) && self.kind(self.pos + 1) == Some(Kind::Prime);
            let grouped = self.peek() == Some(Kind::Caret)
                && self.kind(self.pos + 1) == Some(Kind::Open(Bracket::Group))
                && self.kind(self.pos + 2) == Some(Kind::Prime)
                && self.kind(self.pos + 3) == Some(Kind::Close(Bracket::Group));
            if !primed && !raised && !grouped {
                break;
            }
            if full.is_empty() {
                full.push_str(name);
            }
            full.push('\'');
            self.pos += if primed {
                1
            } else if raised {
                2
            } else {
                4
            };
        }
        if matches!(name, "f" | "g" | "h") && self.is_inverse() {
            full = format!("{name}^-1");
            self.pos += 5;
        }
        let bare = full.is_empty();
        let name = if bare { name } else { &full };
        if let Some(value) = self.application(name, bare)? {
            return Ok(value);
        }
        if bare {
            return self.finish_letter(name);
        }
        let root = self.tree.letter(name)?;
        Ok(self.quantity(root))
    }

    /// `^{-1}` before brackets: the inverse of a function.
    fn is_inverse(&self) -> bool {
        let kinds: Vec<Option<Kind>> = (0..6).map(|offset| self.kind(self.pos + offset)).collect();
        matches!(
            kinds[..],
            [
                Some(Kind::Caret),
                Some(Kind::Open(Bracket::Group)),
                Some(Kind::Minus),
                Some(Kind::Number(_)),
                Some(Kind::Close(Bracket::Group)),
                Some(Kind::Open(Bracket::Round))
            ]
        ) && self.slice(self.pos + 3) == "1"
    }

    fn finish_letter(&mut self, name: &str) -> Parsed<Value> {
        let root = match name {
            "e" => self.tree.leaf(Node::E)?,
            "i" if !self.bound.iter().any(|bound| &**bound == "i") => self.tree.leaf(Node::I)?,
            _ if self.bound.iter().any(|bound| &**bound == name) => {
                let name = self.bound_name(name);
                self.tree.letter(&name)?
            }
            _ => self.tree.letter(name)?,
        };
        Ok(self.quantity(root))
    }

    /// The name of a letter that a sum binds: its level, so that renaming it changes nothing.
    fn bound_name(&self, name: &str) -> String {
        let level = self.bound.iter().rposition(|bound| &**bound == name).map_or(0, |level| level);
        format!("\u{1}{level}")
    }

    /// The canonical text of a subscript.
    fn subscript(&mut self, out: &mut String) -> Parsed<()> {
        self.pos += 1;
        let (from, to) = match self.peek() {
            Some(Kind::Open(Bracket::Group)) => (self.pos + 1, self.tokens.pair[self.pos] as usize),
            Some(_) => (self.pos, self.pos + 1),
            None => return Err(Fail::Unparsable),
        };
        for at in from..to {
            match self.tokens.list[at].kind {
                Kind::Open(Bracket::Group) | Kind::Close(Bracket::Group) => {}
                Kind::Letter => {
                    let name = self.slice(at).trim_start_matches('\\');
                    if self.bound.iter().any(|bound| &**bound == name) {
                        out.push_str(&self.bound_name(name));
                    } else {
                        out.push_str(name);
                    }
                }
                _ => out.extend(self.slice(at).chars().filter(|c| !c.is_whitespace() && *c != '\\')),
            }
        }
        self.pos = if self.peek() == Some(Kind::Open(Bracket::Group)) { to + 1 } else { to };
        Ok(())
    }

    /// `C_{n}^{k}` and `A_{n}^{k}`.
    fn combination(&mut self, name: &str) -> Parsed<Option<Value>> {
        if !matches!(name, "C" | "A" | "P") || self.peek() != Some(Kind::Underscore) {
            return Ok(None);
        }
        let at = self.pos;
        let after = match self.kind(at + 1) {
            Some(Kind::Open(Bracket::Group)) => self.tokens.pair[at + 1] as usize + 1,
            Some(_) => at + 2,
            None => return Ok(None),
        };
        if self.kind(after) != Some(Kind::Caret) {
            return Ok(None);
        }
        let numeric = |at: usize| {
            matches!(self.kind(at), Some(Kind::Number(_)))
                || self.kind(at) == Some(Kind::Open(Bracket::Group))
                    && matches!(self.kind(at + 1), Some(Kind::Number(_)))
                    && self.kind(at + 2) == Some(Kind::Close(Bracket::Group))
        };
        if !(numeric(at + 1) && numeric(after + 1)) && name != "C" {
            return Ok(None);
        }
        self.pos += 1;
        let n = self.script()?;
        self.pos += 1;
        let k = self.script()?;
        let mut root = self.tree.binomial(n, k, self.work)?;
        if name != "C" {
            let ways = self.tree.call(Function::Factorial, k, self.work)?;
            root = self.tree.product(&[root, ways], self.work)?;
        }
        Ok(Some(self.quantity(root)))
    }

    /// A function of that name, if brackets follow that are arguments and no factor.
    fn application(&mut self, name: &str, bare: bool) -> Parsed<Option<Value>> {
        if self.peek() != Some(Kind::Open(Bracket::Round)) || matches!(name, "e" | "i") && bare {
            return Ok(None);
        }
        let close = self.tokens.pair[self.pos] as usize;
        let inside = self.pos + 1..close;
        let number = |at: usize| matches!(self.tokens.list[at].kind, Kind::Number(_));
        let constant = inside.clone().all(|at| {
            number(at)
                || matches!(self.tokens.list[at].kind, Kind::Minus | Kind::Pi | Kind::Infinity | Kind::Slash)
        });
        let letter = inside.len() == 1 && self.tokens.list[inside.start].kind == Kind::Letter;
        let several = inside.clone().any(|at| self.tokens.list[at].kind == Kind::Comma);
        let stem = name.split(['_', '\'', '^']).next().map_or(name, |stem| stem);
        let function =
            matches!(stem, "f" | "g" | "F" | "G" | "phi" | "psi" | "varphi") || name.contains('\'');
        if inside.is_empty() || !(constant || letter || several || function) {
            return Ok(None);
        }
        let values = self.inside(false)?.0;
        let ids = values.iter().map(|value| self.id(value)).collect::<Parsed<Vec<Id>>>()?;
        if let ("C", [n, k]) = (name, &ids[..]) {
            let root = self.tree.binomial(*n, *k, self.work)?;
            return Ok(Some(self.quantity(root)));
        }
        let name = self.tree.intern(name);
        let root = self.tree.leaf(Node::Apply(name, ids.into()))?;
        Ok(Some(self.quantity(root)))
    }

    /// An upright name that takes part in a product.
    fn upright(&mut self) -> Parsed<Value> {
        let name = self.slice(self.pos);
        if !name.chars().all(char::is_alphabetic) {
            return Err(Fail::Unparsable);
        }
        if name == "C" && self.kind(self.pos + 1) == Some(Kind::Underscore) {
            return self.letter(true);
        }
        self.pos += 1;
        let mut full = name.to_owned();
        if self.peek() == Some(Kind::Underscore) {
            full.push('_');
            self.subscript(&mut full)?;
        }
        if let Some(value) = self.application(&full, false)? {
            return Ok(value);
        }
        let root = self.tree.letter(&full)?;
        Ok(self.quantity(root))
    }

    /// `\overline{AB}`, `\vec{a}`, `\angle ABC`: a name of its own.
    fn marked(&mut self) -> Parsed<Value> {
        let mut name = self.slice(self.pos).to_owned();
        let is_sign = self.peek() == Some(Kind::Sign);
        self.pos += 1;
        if let (false, Some(Kind::Open(Bracket::Group))) = (is_sign, self.peek()) {
            let close = self.tokens.pair[self.pos] as usize;
            let inside = self.pos + 1..close;
            if name.starts_with("\\o")
                && inside.clone().any(|at| matches!(self.kind_at(at), Kind::Plus | Kind::Minus))
            {
                // A line over an expression is the conjugate.
                let value = self.bracket(Bracket::Group)?;
                let of = self.id(&value)?;
                let root = self.tree.call(Function::Conj, of, self.work)?;
                return Ok(self.quantity(root));
            }
            inside.for_each(|at| name.push_str(self.slice(at)));
            self.pos = close + 1;
        } else {
            let mut count = 0;
            while let Some(Kind::Letter) = self.peek()
                && (is_sign || count == 0)
            {
                name.push_str(self.slice(self.pos));
                self.pos += 1;
                count += 1;
            }
            if count == 0 {
                return Err(Fail::Unparsable);
            }
        }
        // Conjugates and averages are functions; a name with a mark is a name.
        if self.peek() == Some(Kind::Underscore) {
            name.push('_');
            self.subscript(&mut name)?;
        }
        let root = self.tree.letter(&name)?;
        Ok(self.quantity(root))
    }

    /// The innermost of the brackets that stand around nothing but brackets, and what follows the outermost.
    fn peeled(&self) -> Parsed<(usize, u32, usize)> {
        let mut open = self.pos;
        let mut close = self.tokens.pair[open];
        if close == NONE || close as usize >= self.end {
            return Err(Fail::Unparsable);
        }
        let after = close as usize + 1;
        while (open as u32) + 1 < close
            && self.tokens.pair[open + 1] == close - 1
            && is_grouping(self.tokens.list[open + 1].kind, self.tokens.list[close as usize - 1].kind)
        {
            open += 1;
            close -= 1;
        }
        Ok((open, close, after))
    }

    /// Whether brackets hold one expression: no commas, relations, sets or texts. Such brackets need less stack.
    fn holds_expression(&self, open: usize, close: u32) -> bool {
        let close = close as usize;
        let mut at = open + 1;
        if at == close {
            return false;
        }
        while at < close {
            match self.tokens.list[at].kind {
                Kind::Open(_) if self.tokens.pair[at] != NONE => at = self.tokens.pair[at] as usize,
                Kind::Comma
                | Kind::Semicolon
                | Kind::Colon
                | Kind::And
                | Kind::Or
                | Kind::Relation(_)
                | Kind::Mid
                | Kind::Cup
                | Kind::Cap
                | Kind::Setminus
                | Kind::Over
                | Kind::Choose
                | Kind::Text
                | Kind::Word
                | Kind::Upright
                | Kind::Dots => return false,
                _ => {}
            }
            at += 1;
        }
        true
    }

    /// The expression inside of brackets that hold one.
    fn inner_sum(&mut self, open: usize, close: u32, after: usize) -> Parsed<Value> {
        self.enter()?;
        let (end, bars) =
            (std::mem::replace(&mut self.end, close as usize), std::mem::replace(&mut self.bars, 0));
        let set = std::mem::replace(&mut self.set, false);
        self.pos = open + 1;
        let value = self.sum();
        let whole = self.pos == self.end;
        self.end = end;
        self.bars = bars;
        self.set = set;
        self.depth -= 1;
        let value = value?;
        if !whole {
            return Err(Fail::Unparsable);
        }
        self.pos = after;
        Ok(value)
    }

    /// The elements inside the brackets at the current token. Brackets around brackets are peeled.
    fn inside(&mut self, expand: bool) -> Parsed<(Vec<Value>, Option<Kind>)> {
        let (open, close, after) = self.peeled()?;
        // A collection takes more stack than an expression and counts as two levels.
        self.enter()?;
        self.enter()?;
        let (end, bars) =
            (std::mem::replace(&mut self.end, close as usize), std::mem::replace(&mut self.bars, 0));
        self.pos = open + 1;
        let inner =
            if self.pos == self.end { Ok((Vec::new(), None)) } else { self.divided_or_elements(expand) };
        let whole = self.pos == self.end;
        self.end = end;
        self.bars = bars;
        self.depth -= 2;
        let inner = inner?;
        if !whole {
            return Err(Fail::Unparsable);
        }
        self.pos = after;
        Ok(inner)
    }

    fn bracket(&mut self, open: Bracket) -> Parsed<Value> {
        let at = self.pos;
        if open == Bracket::Set {
            return self.set();
        }
        if let Bracket::Group | Bracket::Round = open {
            let (inner, close, after) = self.peeled()?;
            let pair = self.tokens.pair[at] as usize;
            if is_grouping(self.kind_at(at), self.kind_at(pair)) && self.holds_expression(inner, close) {
                return self.inner_sum(inner, close, after);
            }
        }
        self.collection(open, at)
    }

    /// Brackets around elements, a relation or a text.
    fn collection(&mut self, open: Bracket, at: usize) -> Parsed<Value> {
        let outer = std::mem::replace(&mut self.set, false);
        let inner = self.inside(false);
        self.set = outer;
        let (mut values, joint) = inner?;
        let close = match self.tokens.list[self.tokens.pair[at] as usize].kind {
            Kind::Close(close) => close,
            _ => open,
        };
        if values.is_empty() {
            return Err(Fail::Unparsable);
        }
        if let Bracket::Floor | Bracket::Ceil | Bracket::Bar = open {
            let [value] = &values[..] else { return Err(Fail::Unparsable) };
            if let (Bracket::Bar, Value::Matrix { columns, cells }) = (open, value) {
                let (columns, cells) = (*columns, cells.clone());
                return self.determinant(columns, &cells);
            }
            let of = self.id(value)?;
            let function = match open {
                Bracket::Floor => Function::Floor,
                Bracket::Ceil => Function::Ceil,
                _ => Function::Abs,
            };
            let root = self.tree.call(function, of, self.work)?;
            return Ok(self.quantity(root));
        }
        if values.len() == 1 {
            let value = values.pop().ok_or(Fail::Unparsable)?;
            if open == Bracket::Group || open == Bracket::Round && close == Bracket::Round {
                // The brackets make one expression of it: decimals and units stay.
                return Ok(value);
            }
            if open == Bracket::Square && close == Bracket::Square {
                return Ok(value);
            }
            if open == Bracket::Angle {
                return Ok(Value::Tuple(vec![value]));
            }
            return Err(Fail::Unparsable);
        }
        if let Some(Kind::And | Kind::Or) = joint {
            return Ok(Value::List(values));
        }
        match (open, close) {
            (Bracket::Group, _) => Ok(Value::Set(values)),
            (Bracket::Round, Bracket::Round) | (Bracket::Angle, _) => Ok(Value::Tuple(values)),
            _ if values.len() == 2 => {
                let (Some(low), Some(high)) = (values[0].expr(), values[1].expr()) else {
                    return Ok(Value::Tuple(values));
                };
                let low_closed = open == Bracket::Square;
                let high_closed = close == Bracket::Square;
                Ok(Value::Reals(vec![Interval { low, high, low_closed, high_closed }]))
            }
            (Bracket::Square, Bracket::Square) => Ok(Value::Tuple(values)),
            _ => Err(Fail::Unparsable),
        }
    }

    fn kind_at(&self, at: usize) -> Kind {
        self.tokens.list[at].kind
    }

    /// `\{ … \}`: elements, or a condition behind a bar.
    fn set(&mut self) -> Parsed<Value> {
        let at = self.pos;
        let close = self.tokens.pair[at];
        if close == NONE || close as usize >= self.end {
            return Err(Fail::Unparsable);
        }
        let close = close as usize;
        let mut divider = None;
        let mut scan = at + 1;
        while scan < close {
            match self.tokens.list[scan].kind {
                Kind::Open(_) if self.tokens.pair[scan] != NONE => scan = self.tokens.pair[scan] as usize,
                Kind::Mid | Kind::Colon => {
                    divider = Some(scan);
                    break;
                }
                Kind::Bar if divider.is_none() && scan > at + 1 && self.bar_divides(at + 1, scan, close) => {
                    divider = Some(scan);
                    break;
                }
                _ => {}
            }
            scan += 1;
        }
        let outer = std::mem::replace(&mut self.set, true);
        let result = match divider {
            None => self
                .inside(true)
                .map(|(values, _)| if values.is_empty() { Value::Empty } else { Value::Set(values) }),
            Some(divider) => self.builder(at, divider, close),
        };
        self.set = outer;
        result
    }

    /// Whether a bar in a set divides it: an odd number of bars, of which this is the first.
    fn bar_divides(&self, from: usize, at: usize, close: usize) -> bool {
        let bars = (from..close).filter(|at| self.tokens.list[*at].kind == Kind::Bar).count();
        bars % 2 == 1
            && (from..at).all(|at| {
                matches!(
                    self.tokens.list[at].kind,
                    Kind::Letter | Kind::Relation(Rel::In) | Kind::Reals | Kind::Underscore | Kind::Number(_)
                )
            })
    }

    /// `\{x \mid condition\}`: the condition is the set.
    fn builder(&mut self, open: usize, divider: usize, close: usize) -> Parsed<Value> {
        self.enter()?;
        let end = std::mem::replace(&mut self.end, close);
        self.pos = divider + 1;
        let set = std::mem::replace(&mut self.set, false);
        let inner = self.elements(false);
        let whole = self.pos == close;
        self.end = end;
        self.set = set;
        self.depth -= 1;
        let (values, joint) = inner?;
        if !whole || divider == open + 1 {
            return Err(Fail::Unparsable);
        }
        self.pos = close + 1;
        Ok(list(values, joint))
    }

    fn absolute(&mut self) -> Parsed<Value> {
        self.enter()?;
        self.pos += 1;
        self.bars += 1;
        let inner = self.sum();
        self.bars -= 1;
        self.depth -= 1;
        let inner = inner?;
        if !self.eat(Kind::Bar) {
            return Err(Fail::Unparsable);
        }
        if let Value::Matrix { columns, cells } = inner {
            return self.determinant(columns, &cells);
        }
        let of = self.id(&inner)?;
        let root = self.tree.call(Function::Abs, of, self.work)?;
        Ok(self.quantity(root))
    }

    /// One argument of a command: a group, one digit, one letter or one command.
    fn argument(&mut self) -> Parsed<Id> {
        match self.peek() {
            Some(Kind::Number(index)) => {
                let literal = self.literal(index);
                let digits = &self.slice(self.pos)[self.taken..];
                if !literal.plain {
                    let value = literal.value.clone();
                    self.pos += 1;
                    return Ok(self.tree.number(value)?);
                }
                let digit = digits.bytes().next().map_or(0, |digit| i64::from(digit) - i64::from(b'0'));
                self.taken += 1;
                if digits.len() == 1 {
                    self.taken = 0;
                    self.pos += 1;
                }
                Ok(self.tree.number(integer(digit))?)
            }
            Some(Kind::Letter) => {
                let value = self.letter(false)?;
                self.id(&value)
            }
            Some(Kind::Open(_)) => {
                let value = self.primary()?;
                self.id(&value)
            }
            Some(_) => {
                self.enter()?;
                let value = self.primary()?;
                self.depth -= 1;
                self.id(&value)
            }
            None => Err(Fail::Unparsable),
        }
    }

    fn frac(&mut self) -> Parsed<Value> {
        self.pos += 1;
        let top = self.argument()?;
        // `\frac56` splits the digits; the second argument is the next one.
        let bottom = self.argument()?;
        let root = self.tree.div(top, bottom, self.work)?;
        Ok(self.quantity(root))
    }

    fn sqrt(&mut self) -> Parsed<Value> {
        self.pos += 1;
        let mut index = None;
        if self.peek() == Some(Kind::Open(Bracket::Square)) {
            let (values, _) = self.inside(false)?;
            let [value] = &values[..] else { return Err(Fail::Unparsable) };
            index = Some(self.id(value)?);
        }
        let of = self.one_token()?;
        let index = match index {
            Some(index) => index,
            None => self.tree.number(integer(2))?,
        };
        let root = self.tree.root(index, of, self.work)?;
        Ok(self.quantity(root))
    }

    /// `\sin^2 x`, `\log_2 8`, `\exp(x)`.
    fn function(&mut self, kind: Kind) -> Parsed<Value> {
        self.enter()?;
        self.pos += 1;
        let mut exponent = None;
        let mut base = None;
        loop {
            match self.peek() {
                Some(Kind::Caret) if exponent.is_none() => {
                    self.pos += 1;
                    exponent = Some(self.script()?);
                }
                Some(Kind::Underscore) if base.is_none() && kind == Kind::Log => {
                    self.pos += 1;
                    base = Some(self.script()?);
                }
                _ => break,
            }
        }
        let is_trig = matches!(
            kind,
            Kind::Function(
                Function::Sin | Function::Cos | Function::Tan | Function::Cot | Function::Sec | Function::Csc
            )
        );
        let trig = std::mem::replace(&mut self.trig, is_trig);
        let of = self.function_argument();
        self.trig = trig;
        let of = of?;
        let mut inverse = false;
        if let (Some(power), Kind::Function(function)) = (exponent, kind) {
            let minus_one = self.tree.rational(power).is_some_and(|power| *power == integer(-1));
            inverse = minus_one && inverse_of(function).is_some();
        }
        let root = match kind {
            Kind::Function(function) => {
                let function =
                    if inverse { inverse_of(function).map_or(function, |other| other) } else { function };
                self.tree.call(function, of, self.work)?
            }
            Kind::Exp => {
                let e = self.tree.leaf(Node::E)?;
                self.tree.pow(e, of, self.work)?
            }
            Kind::Log | Kind::Lg => {
                let base = match base {
                    Some(base) => base,
                    None => self.tree.number(integer(10))?,
                };
                if matches!(self.tree.node(base), Node::E) {
                    self.tree.call(Function::Ln, of, self.work)?
                } else {
                    self.tree.log(base, of)?
                }
            }
            _ => return Err(Fail::Unparsable),
        };
        let root = match exponent.filter(|_| !inverse) {
            Some(exponent) => self.tree.pow(root, exponent, self.work)?,
            None => root,
        };
        self.depth -= 1;
        Ok(self.quantity(root))
    }

    /// What a function is applied to: brackets, or the factors up to the next sign or function.
    fn function_argument(&mut self) -> Parsed<Id> {
        if let Some(Kind::Open(Bracket::Round | Bracket::Square | Bracket::Bar) | Kind::Bar) = self.peek() {
            let value = self.primary()?;
            // `\sin(x)^\circ` is rare; a power belongs to the function's value.
            return self.id(&value);
        }
        let mut minus = false;
        while self.eat(Kind::Minus) {
            minus = !minus;
        }
        let first = self.power()?;
        let mut factors = vec![self.id(&first)?];
        while let Some(kind) = self.peek() {
            let number = matches!(kind, Kind::Number(_)) && self.continues_product();
            let factor =
                matches!(kind, Kind::Letter | Kind::Pi | Kind::Frac | Kind::Sqrt | Kind::Accent | Kind::Sign);
            let group = kind == Kind::Open(Bracket::Group);
            if !(number || factor || group) {
                break;
            }
            let value = self.power()?;
            factors.push(self.id(&value)?);
        }
        let root = self.tree.product(&factors, self.work)?;
        Ok(if minus { self.tree.neg(root)? } else { root })
    }

    /// `\sum_{k=a}^{b} body`, kept as its parts.
    fn big_operator(&mut self) -> Parsed<Value> {
        let Some(Kind::Big(op)) = self.peek() else { return Err(Fail::Unparsable) };
        self.enter()?;
        self.pos += 1;
        if !self.eat(Kind::Underscore) || self.peek() != Some(Kind::Open(Bracket::Group)) {
            return Err(Fail::Bound(Bound::Unsupported));
        }
        let open = self.pos;
        let close = self.tokens.pair[open] as usize;
        let bound = self.kind(open + 1) == Some(Kind::Letter)
            && self.kind(open + 2) == Some(Kind::Relation(Rel::Equal));
        if !bound || close >= self.end {
            return Err(Fail::Bound(Bound::Unsupported));
        }
        let name: Box<str> = self.slice(open + 1).trim_start_matches('\\').into();
        let end = std::mem::replace(&mut self.end, close);
        self.pos = open + 3;
        let low = self.sum_only();
        self.end = end;
        let low = low?;
        self.pos = close + 1;
        if !self.eat(Kind::Caret) {
            return Err(Fail::Bound(Bound::Unsupported));
        }
        let high = self.script()?;
        self.bound.push(name);
        let body = self.product();
        self.bound.pop();
        let body = body?;
        let body = self.id(&body)?;
        self.depth -= 1;
        self.big = true;
        let root = self.tree.leaf(Node::Big { op, low, high, body })?;
        Ok(self.quantity(root))
    }

    /// `\begin{pmatrix} … \end{pmatrix}` and its relatives.
    fn environment(&mut self) -> Parsed<Value> {
        let name = self.slice(self.pos).trim_end_matches('*').to_owned();
        let mut close = self.pos + 1;
        let mut level = 1;
        while close < self.end {
            match self.tokens.list[close].kind {
                Kind::Begin => level += 1,
                Kind::End => level -= 1,
                _ => {}
            }
            if level == 0 {
                break;
            }
            close += 1;
        }
        if close >= self.end {
            return Err(Fail::Bound(Bound::Unbalanced));
        }
        self.enter()?;
        let end = self.end;
        self.pos += 1;
        let relations = (self.pos..close).any(|at| matches!(self.kind_at(at), Kind::Relation(_)));
        let system = matches!(name.as_str(), "cases" | "aligned" | "align" | "gathered")
            || name == "array" && relations;
        let mut cells: Vec<Value> = Vec::new();
        let mut columns = None;
        let mut in_row = 0;
        while self.pos < close {
            if cells.len() >= MAX_CELLS {
                return Err(Fail::Bound(Bound::TooLarge));
            }
            let stop = self.cell_end(close);
            self.end = stop;
            if self.pos == stop && self.kind_at(stop) == Kind::End {
                break;
            }
            let cell = if system { self.row(&mut cells) } else { self.cell() };
            self.end = end;
            if let Some(cell) = cell? {
                cells.push(cell);
            }
            in_row += 1;
            self.pos = stop + 1;
            if self.kind_at(stop) != Kind::Ampersand {
                if columns.is_some_and(|columns| columns != in_row) {
                    return Err(Fail::Unparsable);
                }
                columns = Some(in_row);
                in_row = 0;
            }
            if stop == close {
                break;
            }
        }
        self.end = end;
        self.pos = close + 1;
        self.depth -= 1;
        let columns = columns.ok_or(Fail::Unparsable)?;
        match name.as_str() {
            _ if system => Ok(list(cells, None)),
            "pmatrix" | "bmatrix" | "matrix" | "Bmatrix" | "smallmatrix" | "array" => {
                Ok(Value::Matrix { columns, cells })
            }
            "vmatrix" => self.determinant(columns, &cells),
            _ => Err(Fail::Unparsable),
        }
    }

    /// One row of a system of equations: alignment marks are dropped.
    fn row(&mut self, cells: &mut Vec<Value>) -> Parsed<Option<Value>> {
        if self.pos == self.end {
            return Ok(None);
        }
        let (mut values, _) = self.elements(false)?;
        if self.pos != self.end {
            return Err(Fail::Unparsable);
        }
        let last = values.pop();
        cells.extend(values);
        Ok(last)
    }

    fn cell(&mut self) -> Parsed<Option<Value>> {
        let outer = std::mem::replace(&mut self.first, self.tree.len());
        let value = self.sum();
        self.first = outer;
        if self.pos != self.end {
            return Err(Fail::Unparsable);
        }
        value.map(Some)
    }

    /// Where the cell that begins here ends.
    fn cell_end(&self, close: usize) -> usize {
        let mut at = self.pos;
        let mut level = 0;
        while at < close {
            match self.tokens.list[at].kind {
                Kind::Begin => level += 1,
                Kind::End => level -= 1,
                Kind::Ampersand | Kind::NewRow if level == 0 => return at,
                _ => {}
            }
            at += 1;
        }
        close
    }

    fn determinant(&mut self, columns: usize, cells: &[Value]) -> Parsed<Value> {
        if columns == 0 || columns * columns != cells.len() || columns > 4 {
            return Err(Fail::Bound(Bound::Unsupported));
        }
        let ids = cells.iter().map(|cell| self.id(cell)).collect::<Parsed<Vec<Id>>>()?;
        let all: Vec<usize> = (0..columns).collect();
        let root = self.minor(&ids, columns, 0, &all)?;
        Ok(self.quantity(root))
    }

    /// The determinant of the rows from `row` on and the given columns, by the first row.
    fn minor(&mut self, ids: &[Id], size: usize, row: usize, columns: &[usize]) -> Parsed<Id> {
        if let [column] = columns {
            return Ok(ids[row * size + column]);
        }
        let mut terms = Vec::new();
        for (index, column) in columns.iter().enumerate() {
            let rest: Vec<usize> = columns.iter().copied().filter(|other| other != column).collect();
            let minor = self.minor(ids, size, row + 1, &rest)?;
            let term = self.tree.product(&[ids[row * size + column], minor], self.work)?;
            terms.push(if index % 2 == 1 { self.tree.neg(term)? } else { term });
        }
        Ok(self.tree.sum(&terms, self.work)?)
    }

    /// What a chain of relations says: a name and its value, a set of reals, or an equation.
    fn resolve(&mut self, mut values: Vec<Value>, relations: Vec<Rel>) -> Parsed<Value> {
        if relations.iter().all(|relation| matches!(relation, Rel::Equal | Rel::Approx)) {
            return self.resolve_equal(values, &relations);
        }
        if let [Rel::In] = relations[..] {
            let set = values.pop().ok_or(Fail::Unparsable)?;
            let name = self.name(&values[0]).ok_or(Fail::Unparsable)?;
            let letter = self.letter_of(&values[0]);
            return Ok(Value::Named(Box::new(Named { name: Some(name.into()), letter, members: vec![set] })));
        }
        if relations.iter().any(|relation| matches!(relation, Rel::Equal | Rel::Approx | Rel::In)) {
            return Ok(Value::Relation(values, relations));
        }
        if let Some(value) = self.solved(&values, &relations)? {
            return Ok(value);
        }
        Ok(Value::Relation(values, relations))
    }

    fn resolve_equal(&mut self, mut values: Vec<Value>, relations: &[Rel]) -> Parsed<Value> {
        // What stands after an approximation sign is no part of the exact value, unless nothing else is there.
        let exact =
            relations.iter().position(|relation| *relation == Rel::Approx).map_or(values.len(), |at| at + 1);
        if exact > 1 || self.name(&values[0]).is_none() {
            values.truncate(exact);
        }
        let names = values.iter().take_while(|value| self.name(value).is_some()).count();
        if names > 0 && names < values.len() {
            let name = self.name(&values[0]);
            let letter = self.letter_of(&values[0]);
            let members = values.split_off(names);
            return Ok(Value::Named(Box::new(Named { name: name.map(Into::into), letter, members })));
        }
        if values.len() == 1 {
            return values.pop().ok_or(Fail::Unparsable);
        }
        if values.len() == 2 && names == 0 && self.name(&values[1]).is_some() {
            let name = self.name(&values[1]);
            let letter = self.letter_of(&values[1]);
            values.truncate(1);
            return Ok(Value::Named(Box::new(Named { name: name.map(Into::into), letter, members: values })));
        }
        // Two names: the first is the name.
        if names == values.len() && values.len() >= 2 {
            let name = self.name(&values[0]);
            let letter = self.letter_of(&values[0]);
            let members = values.split_off(values.len() - 1);
            return Ok(Value::Named(Box::new(Named { name: name.map(Into::into), letter, members })));
        }
        let constant = values.iter().all(|value| {
            value.expr().is_some_and(|expr| {
                let occurs = self.tree.occurs(expr);
                !occurs.letters && !occurs.big
            })
        });
        if constant {
            return Ok(Value::Named(Box::new(Named { name: None, letter: None, members: values })));
        }
        let relations = vec![Rel::Equal; values.len() - 1];
        Ok(Value::Relation(values, relations))
    }

    /// An inequality that is solved for a name, as a set of reals.
    fn solved(&mut self, values: &[Value], relations: &[Rel]) -> Parsed<Option<Value>> {
        let constant = |parser: &Self, value: &Value| {
            let expr = value.expr()?;
            let occurs = parser.tree.occurs(expr);
            (!occurs.letters && !occurs.big && !occurs.imaginary).then_some(expr)
        };
        let (name, intervals) = match (values, relations) {
            ([a, b], [relation]) => {
                let (variable, bound, relation) =
                    if let (Some(_), Some(bound)) = (self.name(a), constant(self, b)) {
                        (a, bound, *relation)
                    } else if let (Some(bound), Some(_)) = (constant(self, a), self.name(b)) {
                        (b, bound, flipped(*relation))
                    } else {
                        return Ok(None);
                    };
                let infinity = self.tree.leaf(Node::Infinity)?;
                let minus = self.tree.neg(infinity)?;
                let high = Expr { first: infinity, root: infinity };
                let low = Expr { first: infinity, root: minus };
                let below = |closed| Interval { low, high: bound, low_closed: false, high_closed: closed };
                let above = |closed| Interval { low: bound, high, low_closed: closed, high_closed: false };
                let intervals = match relation {
                    Rel::Less => vec![below(false)],
                    Rel::LessEqual => vec![below(true)],
                    Rel::Greater => vec![above(false)],
                    Rel::GreaterEqual => vec![above(true)],
                    _ => vec![below(false), above(false)],
                };
                (variable, intervals)
            }
            ([a, b, c], [first, second]) => {
                let (Some(low), Some(high)) = (constant(self, a), constant(self, c)) else { return Ok(None) };
                if self.name(b).is_none() {
                    return Ok(None);
                }
                let interval = match (first, second) {
                    (Rel::Less | Rel::LessEqual, Rel::Less | Rel::LessEqual) => Interval {
                        low,
                        high,
                        low_closed: *first == Rel::LessEqual,
                        high_closed: *second == Rel::LessEqual,
                    },
                    (Rel::Greater | Rel::GreaterEqual, Rel::Greater | Rel::GreaterEqual) => Interval {
                        low: high,
                        high: low,
                        low_closed: *second == Rel::GreaterEqual,
                        high_closed: *first == Rel::GreaterEqual,
                    },
                    _ => return Ok(None),
                };
                (b, vec![interval])
            }
            _ => return Ok(None),
        };
        let letter = self.letter_of(name);
        let name = self.name(name).map(Into::into);
        Ok(Some(Value::Named(Box::new(Named { name, letter, members: vec![Value::Reals(intervals)] }))))
    }

    /// The name that a value is: a letter, `f(x)`, `AB`, `|AB|`, a quotient, tuple or ratio of names, a short text.
    fn name(&self, value: &Value) -> Option<String> {
        match value {
            Value::Quantity(quantity) if quantity.decimal.is_none() && !quantity.percent => {
                self.node_name(quantity.expr.root, 3)
            }
            Value::Tuple(parts) | Value::Ratio(parts) => {
                let names = parts.iter().map(|part| self.name(part)).collect::<Option<Vec<String>>>()?;
                Some(names.join(","))
            }
            Value::SetOp(op, a, b) => Some(format!("{} {op:?} {}", self.name(a)?, self.name(b)?)),
            Value::Text(text) if text.chars().any(char::is_alphabetic) && text.len() <= 40 => {
                Some(text.to_string())
            }
            _ => None,
        }
    }

    fn node_name(&self, id: Id, depth: u32) -> Option<String> {
        if depth == 0 {
            return None;
        }
        let capital = |id: Id| match self.tree.node(id) {
            Node::Letter(name) => {
                let name = self.tree.name(*name);
                name.starts_with(|c: char| c.is_ascii_uppercase()).then(|| name.to_owned())
            }
            _ => None,
        };
        match self.tree.node(id) {
            Node::Letter(name) => Some(self.tree.name(*name).to_owned()),
            Node::Apply(name, ids) => {
                let mut text = format!("{}(", self.tree.name(*name));
                for id in ids {
                    match self.tree.node(*id) {
                        Node::Number(value) => text.push_str(&value.to_string()),
                        _ => text.push_str(&self.node_name(*id, depth - 1)?),
                    }
                    text.push(',');
                }
                Some(text)
            }
            Node::Product(ids) => {
                Some(ids.iter().map(|id| capital(*id)).collect::<Option<Vec<String>>>()?.concat())
            }
            Node::Div(a, b) => {
                Some(format!("{}/{}", self.node_name(*a, depth - 1)?, self.node_name(*b, depth - 1)?))
            }
            Node::Call(Function::Abs, a) => match self.tree.node(*a) {
                Node::Product(_) => Some(format!("|{}|", self.node_name(*a, depth - 1)?)),
                Node::Letter(name) if self.tree.name(*name).starts_with('\\') => {
                    Some(format!("|{}|", self.tree.name(*name)))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The expression of a name that can be a letter of an equation.
    fn letter_of(&self, value: &Value) -> Option<Expr> {
        let expr = value.expr()?;
        matches!(self.tree.node(expr.root), Node::Letter(_) | Node::Apply(..)).then_some(expr)
    }
}

fn flipped(relation: Rel) -> Rel {
    match relation {
        Rel::Less => Rel::Greater,
        Rel::LessEqual => Rel::GreaterEqual,
        Rel::Greater => Rel::Less,
        Rel::GreaterEqual => Rel::LessEqual,
        other => other,
    }
}

fn inverse_of(function: Function) -> Option<Function> {
    Some(match function {
        Function::Sin => Function::Arcsin,
        Function::Cos => Function::Arccos,
        Function::Tan => Function::Arctan,
        Function::Cot => Function::Arccot,
        _ => return None,
    })
}

/// Brackets that only group.
fn is_grouping(open: Kind, close: Kind) -> bool {
    matches!(
        (open, close),
        (Kind::Open(Bracket::Round), Kind::Close(Bracket::Round))
            | (Kind::Open(Bracket::Group), Kind::Close(Bracket::Group))
    )
}

fn attach(value: Value, text: String) -> Value {
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

/// Whether a rational is negative.
pub(crate) fn is_negative(value: &RBig) -> bool {
    value.sign() == Sign::Negative
}
