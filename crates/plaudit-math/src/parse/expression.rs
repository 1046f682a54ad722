//! Expressions: sums, products, powers, numbers, fractions, roots and functions, by precedence.

use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;

use super::measure::attach;
use super::{ParseError, Parsed, Parser};
use crate::expr::{Expr, Function, Id, Node, integer};
use crate::lex::{Bracket, Kind};
use crate::limits::{MAX_CELLS, NoValue};
use crate::number;
use crate::unit;
use crate::value::{Decimal, Interval, Quantity, Value};

impl Parser<'_, '_> {
    pub(super) fn sum(&mut self) -> Parsed<Value> {
        let first = self.product()?;
        // A sum on either side stays unread: whether all of it is divided is not to be told.
        if self.is_remainder() {
            self.pos += 1;
            let modulus = self.power()?;
            return self.remainder(&first, &modulus);
        }
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
        if self.is_remainder() {
            return Err(ParseError::Unparsable);
        }
        let root = self.tree.sum(&terms, self.work)?;
        Ok(self.quantity(root))
    }

    /// Whether a sign is a minus; `None` if it is no sign.
    pub(super) fn sign(&mut self, kind: Kind) -> Option<bool> {
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

    pub(super) fn matrix_sum(&mut self, first: Value) -> Parsed<Value> {
        let Value::Matrix { columns, cells } = first else { return Err(ParseError::Unparsable) };
        let mut total = cells;
        while let Some(kind @ (Kind::Plus | Kind::Minus)) = self.peek() {
            self.pos += 1;
            let Value::Matrix { columns: other, cells } = self.product()? else {
                return Err(ParseError::Unparsable);
            };
            if other != columns || cells.len() != total.len() {
                return Err(ParseError::NoValue(NoValue::Undefined));
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
    pub(super) fn product(&mut self) -> Parsed<Value> {
        let mut first = self.unary()?;
        while let (Value::Tuple(_), Some(Kind::Times)) = (&first, self.peek()) {
            let sign = self.slice(self.pos);
            self.pos += 1;
            let right = self.unary()?;
            first = self.vector_product(sign, &first, &right)?.ok_or(ParseError::Unparsable)?;
        }
        if !self.continues_product() {
            return Ok(first);
        }
        let mut matrix = None;
        let mut factors = Vec::new();
        self.take(first, &mut factors, &mut matrix)?;
        while self.continues_product() {
            match self.peek() {
                Some(Kind::Times) => {
                    let sign = self.slice(self.pos);
                    self.pos += 1;
                    let mut value = self.unary()?;
                    if let Some(left) = &matrix
                        && let Some(product) = self.vector_product(sign, left, &value)?
                    {
                        matrix = None;
                        value = product;
                    }
                    self.take(value, &mut factors, &mut matrix)?;
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
                    self.take(value, &mut factors, &mut matrix)?;
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

    /// Puts a factor with the numbers or with the matrices of a product.
    fn take(&mut self, value: Value, factors: &mut Vec<Id>, matrix: &mut Option<Value>) -> Parsed<()> {
        if let Value::Matrix { columns, cells } = value {
            *matrix = Some(match matrix.take() {
                Some(left) => self.matrix_product(&left, columns, &cells)?,
                None => Value::Matrix { columns, cells },
            });
            return Ok(());
        }
        factors.push(self.id(&value)?);
        Ok(())
    }

    /// The dot product (`\cdot`) or the cross product (`\times`) of two vectors of one shape, which have no other product.
    fn vector_product(&mut self, sign: &str, left: &Value, right: &Value) -> Parsed<Option<Value>> {
        let (x, y) = match (left, right) {
            (Value::Tuple(x), Value::Tuple(y)) => (x, y),
            (Value::Matrix { columns, cells: x }, Value::Matrix { columns: other, cells: y })
                if columns == other && (*columns == 1 || *columns == x.len()) =>
            {
                (x, y)
            }
            _ => return Ok(None),
        };
        if x.len() < 2 || x.len() != y.len() || x.len() > MAX_CELLS {
            return Ok(None);
        }
        let mut ids = |cells: &[Value]| cells.iter().map(|cell| self.id(cell)).collect::<Parsed<Vec<Id>>>();
        let (x, y) = (ids(x)?, ids(y)?);
        match sign {
            "\\cdot" | "\\bullet" => {
                let terms: Result<Vec<Id>, NoValue> =
                    x.iter().zip(&y).map(|(a, b)| self.tree.product(&[*a, *b], self.work)).collect();
                let root = self.tree.sum(&terms?, self.work)?;
                Ok(Some(self.quantity(root)))
            }
            "\\times" if x.len() == 3 => {
                let mut parts = Vec::new();
                for (i, j) in [(1, 2), (2, 0), (0, 1)] {
                    let plus = self.tree.product(&[x[i], y[j]], self.work)?;
                    let minus = self.tree.product(&[x[j], y[i]], self.work)?;
                    let minus = self.tree.neg(minus)?;
                    let root = self.tree.sum(&[plus, minus], self.work)?;
                    parts.push(self.quantity(root));
                }
                Ok(Some(match left {
                    Value::Matrix { columns, .. } => Value::Matrix { columns: *columns, cells: parts },
                    _ => Value::Tuple(parts),
                }))
            }
            _ => Ok(None),
        }
    }

    fn matrix_product(&mut self, left: &Value, columns: usize, right: &[Value]) -> Parsed<Value> {
        let Value::Matrix { columns: inner, cells } = left else { return Err(ParseError::Unparsable) };
        if columns == 0 || *inner == 0 || right.len() != inner * columns {
            return Err(ParseError::NoValue(NoValue::Undefined));
        }
        let rows = cells.len() / inner;
        if rows * columns * inner > MAX_CELLS {
            return Err(ParseError::NoValue(NoValue::TooLarge));
        }
        let mut product = Vec::with_capacity(rows * columns);
        for row in 0..rows {
            for column in 0..columns {
                let mut terms = Vec::with_capacity(*inner);
                for index in 0..*inner {
                    let (a, b) =
                        (self.id(&cells[row * inner + index])?, self.id(&right[index * columns + column])?);
                    terms.push(self.tree.product(&[a, b], self.work)?);
                }
                let root = self.tree.sum(&terms, self.work)?;
                product.push(self.quantity(root));
            }
        }
        Ok(Value::Matrix { columns, cells: product })
    }

    /// Whether the next token is a factor of the product that is being read.
    pub(super) fn continues_product(&self) -> bool {
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

    pub(super) fn starts_factor(&self, kind: Kind) -> bool {
        match kind {
            Kind::Letter
            | Kind::Frac
            | Kind::Sqrt
            | Kind::Binom
            | Kind::Function(_)
            | Kind::Hyperbolic(_)
            | Kind::Exp
            | Kind::Log
            | Kind::Lg
            | Kind::NaryFunction(_)
            | Kind::Accent
            | Kind::Sign
            | Kind::Pi
            | Kind::Begin
            | Kind::Det
            | Kind::BigOperator(_)
            | Kind::Unevaluated => true,
            Kind::Open(Bracket::Round) => {
                self.kind(self.pos + 1) != Some(Kind::Mod) && self.remark(self.pos).is_none()
            }
            Kind::Open(bracket) => !matches!(bracket, Bracket::Set | Bracket::Reversed),
            // An upright letter after a number is a unit, unless more of the product follows.
            Kind::Upright => {
                let next = self.kind(self.pos + 1);
                next.is_some_and(|next| {
                    next != Kind::Slash
                        && (matches!(next, Kind::Underscore | Kind::Plus | Kind::Minus | Kind::Relation(_))
                            || next != Kind::Upright && self.starts_factor(next))
                })
            }
            _ => false,
        }
    }

    pub(super) fn unary(&mut self) -> Parsed<Value> {
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
                _ => Err(ParseError::Unparsable),
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
            _ => Err(ParseError::Unparsable),
        }
    }

    /// A primary with powers, factorials, percent and degree signs behind it.
    pub(super) fn power(&mut self) -> Parsed<Value> {
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
                        return Err(ParseError::Unparsable);
                    }
                    let of = self.id(&value)?;
                    let root = self.tree.call(Function::Factorial, of, self.work)?;
                    value = self.quantity(root);
                }
                Kind::Percent => {
                    self.pos += 1;
                    let Value::Quantity(quantity) = &mut value else { return Err(ParseError::Unparsable) };
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
    pub(super) fn is_degree(&self) -> bool {
        let next = self.pos + 1;
        self.kind(next) == Some(Kind::Degree)
            || self.kind(next) == Some(Kind::Open(Bracket::Group))
                && self.kind(next + 1) == Some(Kind::Degree)
                && self.kind(next + 2) == Some(Kind::Close(Bracket::Group))
    }

    pub(super) fn degrees(&mut self, value: Value) -> Parsed<Value> {
        self.pos += if self.kind(self.pos + 1) == Some(Kind::Degree) { 2 } else { 4 };
        self.in_degrees(value)
    }

    pub(super) fn in_degrees(&mut self, value: Value) -> Parsed<Value> {
        let Value::Quantity(mut quantity) = value else { return Err(ParseError::Unparsable) };
        if !self.trig {
            let scale = self.temperature_scale();
            self.pos += usize::from(scale.is_some());
            quantity.unit = Some(scale.map_or("degree".to_owned(), |scale| format!("degree {scale}")).into());
            return Ok(Value::Quantity(quantity));
        }
        let part = self.tree.number(RBig::from_parts(IBig::ONE, UBig::from(180u8)))?;
        let pi = self.tree.leaf(Node::Pi)?;
        let root = self.tree.product(&[quantity.expr.root, pi, part], self.work)?;
        Ok(self.quantity(root))
    }

    /// The letter of a scale of temperature behind a degree sign, where nothing is multiplied with it.
    fn temperature_scale(&self) -> Option<String> {
        let scale = matches!(self.peek(), Some(Kind::Letter)).then(|| self.slice(self.pos))?;
        let ends = matches!(
            self.kind(self.pos + 1),
            None | Some(
                Kind::Comma | Kind::Semicolon | Kind::And | Kind::Or | Kind::Close(_) | Kind::Relation(_)
            )
        );
        (ends && matches!(scale, "C" | "F" | "K")).then(|| unit::canonical(scale))
    }

    pub(super) fn transposed(&mut self, columns: usize, cells: &[Value]) -> Parsed<Value> {
        let at = if self.peek() == Some(Kind::Open(Bracket::Group)) { self.pos + 1 } else { self.pos };
        let sign = self.kind(at) == Some(Kind::Letter) && self.slice(at) == "T";
        let sign = sign || self.kind(at) == Some(Kind::Upright) && self.slice(at) == "T";
        if !sign || columns == 0 {
            return Err(ParseError::Unparsable);
        }
        self.pos = if at == self.pos { at + 1 } else { at + 2 };
        let rows = cells.len() / columns;
        let turned = (0..cells.len()).map(|i| cells[(i % rows) * columns + i / rows].clone()).collect();
        Ok(Value::Matrix { columns: rows, cells: turned })
    }

    /// The exponent after a caret: a group, a number with all its digits, or one token.
    pub(super) fn script(&mut self) -> Parsed<Id> {
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
    pub(super) fn one_token(&mut self) -> Parsed<Id> {
        let value = match self.peek() {
            Some(Kind::Letter) => self.letter(false)?,
            Some(Kind::Open(_)) => self.primary()?,
            Some(_) => {
                self.enter()?;
                let value = self.primary()?;
                self.depth -= 1;
                value
            }
            None => return Err(ParseError::Unparsable),
        };
        self.id(&value)
    }

    pub(super) fn primary(&mut self) -> Parsed<Value> {
        let Some(kind) = self.peek() else { return Err(ParseError::Unparsable) };
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
            Kind::Function(_) | Kind::Hyperbolic(_) | Kind::Exp | Kind::Log | Kind::Lg => self.function(kind),
            Kind::NaryFunction(fold) => {
                self.pos += 1;
                let Some(Kind::Open(Bracket::Round | Bracket::Set)) = self.peek() else {
                    return Err(ParseError::Unparsable);
                };
                let values = self.inside(false)?.0;
                let ids = values.iter().map(|value| self.id(value)).collect::<Parsed<Vec<Id>>>()?;
                let root = self.tree.fold(fold, &ids, self.work)?;
                Ok(self.quantity(root))
            }
            Kind::Mod if self.kind(self.pos + 1) == Some(Kind::Open(Bracket::Round)) => {
                self.pos += 1;
                match &self.inside(false)?.0[..] {
                    [value, modulus] => self.remainder(value, modulus),
                    _ => Err(ParseError::Unparsable),
                }
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
                    _ => Err(ParseError::Unparsable),
                }
            }
            Kind::BigOperator(_) => self.big_operator(),
            Kind::Currency => {
                self.pos += 1;
                let value = self.power()?;
                Ok(attach(value, "currency".to_owned()))
            }
            Kind::Unevaluated => Err(ParseError::NoValue(NoValue::Unsupported)),
            _ => Err(ParseError::Unparsable),
        }
    }

    pub(super) fn leaf(&mut self, node: Node) -> Parsed<Value> {
        self.pos += 1;
        let root = self.tree.leaf(node)?;
        Ok(self.quantity(root))
    }

    /// A number, which may be the whole part of a mixed number.
    pub(super) fn number(&mut self, index: u32) -> Parsed<Value> {
        let at = self.pos;
        self.pos += 1;
        if self.taken > 0 {
            let rest = &self.slice(at)[std::mem::take(&mut self.taken)..];
            let value = IBig::from_str_radix(rest, 10).map_err(|_| ParseError::Unparsable)?;
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
        let Value::Quantity(quantity) = self.quantity(root) else { return Err(ParseError::Unparsable) };
        // A currency sign or the word for it behind the number.
        if self.peek() == Some(Kind::Currency) {
            self.pos += 1;
            return Ok(Value::Quantity(Quantity { decimal, unit: Some("currency".into()), ..quantity }));
        }
        Ok(Value::Quantity(Quantity { decimal, ..quantity }))
    }

    /// The proper fraction that makes a whole number a mixed one: `2\frac{1}{2}` or `2 1/2`.
    pub(super) fn fraction_after(&mut self) -> Option<RBig> {
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

    /// One argument of a command: a group, one digit, one letter or one command.
    pub(super) fn argument(&mut self) -> Parsed<Id> {
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
            None => Err(ParseError::Unparsable),
        }
    }
}
