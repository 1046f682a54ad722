//! Functions, fractions, roots and sums, with their arguments, exponents and bounds.

use dashu_ratio::RBig;

use super::{ParseError, Parsed, Parser};
use crate::expr::{Function, Hyperbolic, Id, Node, integer};
use crate::lex::{Bracket, Kind, Rel};
use crate::limits::NoValue;
use crate::value::Value;

impl Parser<'_, '_> {
    pub(super) fn frac(&mut self) -> Parsed<Value> {
        self.pos += 1;
        let top = self.argument()?;
        // `\frac56` splits the digits; the second argument is the next one.
        let bottom = self.argument()?;
        let root = self.tree.div(top, bottom, self.work)?;
        Ok(self.quantity(root))
    }

    pub(super) fn sqrt(&mut self) -> Parsed<Value> {
        self.pos += 1;
        let mut index = None;
        if self.peek() == Some(Kind::Open(Bracket::Square)) {
            let (values, _) = self.inside(false)?;
            let [value] = &values[..] else { return Err(ParseError::Unparsable) };
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
    pub(super) fn function(&mut self, kind: Kind) -> Parsed<Value> {
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
        let minus_one =
            exponent.and_then(|power| self.tree.rational(power)).is_some_and(|power| *power == integer(-1));
        let inverse = if minus_one { inverse_of(kind) } else { None };
        let root = match inverse.unwrap_or(kind) {
            Kind::Function(function) => self.tree.call(function, of, self.work)?,
            Kind::Hyperbolic(function) => self.hyperbolic(function, of)?,
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
            _ => return Err(ParseError::Unparsable),
        };
        let root = match exponent.filter(|_| inverse.is_none()) {
            Some(exponent) => self.tree.pow(root, exponent, self.work)?,
            None => root,
        };
        self.depth -= 1;
        Ok(self.quantity(root))
    }

    /// A hyperbolic function by exponentials, logarithms and roots.
    fn hyperbolic(&mut self, function: Hyperbolic, of: Id) -> Parsed<Id> {
        use Hyperbolic::{Arcoth, Arcsch, Arsech, Arsinh, Artanh, Coth, Csch, Sech};
        let (tree, work) = (&mut self.tree, &mut *self.work);
        let one = tree.number(RBig::ONE)?;
        let below = match function {
            Sech => Some(Function::Cosh),
            Csch => Some(Function::Sinh),
            Coth => Some(Function::Tanh),
            _ => None,
        };
        if let Some(below) = below {
            let below = tree.call(below, of, work)?;
            return Ok(tree.div(one, below, work)?);
        }
        // The inverse of a reciprocal is the inverse at the reciprocal.
        let of = if matches!(function, Arcoth | Arsech | Arcsch) { tree.div(one, of, work)? } else { of };
        let two = tree.number(integer(2))?;
        if let Artanh | Arcoth = function {
            let minus = tree.neg(of)?;
            let (above, below) = (tree.sum(&[one, of], work)?, tree.sum(&[one, minus], work)?);
            let quotient = tree.div(above, below, work)?;
            let log = tree.call(Function::Ln, quotient, work)?;
            return Ok(tree.div(log, two, work)?);
        }
        let sign = if let Arsinh | Arcsch = function { one } else { tree.neg(one)? };
        let square = tree.pow(of, two, work)?;
        let inside = tree.sum(&[square, sign], work)?;
        let root = tree.root(two, inside, work)?;
        let sum = tree.sum(&[of, root], work)?;
        Ok(tree.call(Function::Ln, sum, work)?)
    }

    /// What a function is applied to: brackets, or the factors up to the next sign or function.
    pub(super) fn function_argument(&mut self) -> Parsed<Id> {
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
    pub(super) fn big_operator(&mut self) -> Parsed<Value> {
        let Some(Kind::BigOperator(op)) = self.peek() else { return Err(ParseError::Unparsable) };
        self.enter()?;
        self.pos += 1;
        let first_high = if self.eat(Kind::Caret) { Some(self.script()?) } else { None };
        if !self.eat(Kind::Underscore) || self.peek() != Some(Kind::Open(Bracket::Group)) {
            return Err(ParseError::NoValue(NoValue::Unsupported));
        }
        let open = self.pos;
        let close = self.tokens.pair[open] as usize;
        let bound = self.kind(open + 1) == Some(Kind::Letter)
            && self.kind(open + 2) == Some(Kind::Relation(Rel::Equal));
        if !bound || close >= self.end {
            return Err(ParseError::NoValue(NoValue::Unsupported));
        }
        let name: Box<str> = self.slice(open + 1).trim_start_matches('\\').into();
        let end = std::mem::replace(&mut self.end, close);
        self.pos = open + 3;
        let low = self.sum_only();
        self.end = end;
        let low = low?;
        self.pos = close + 1;
        let high = match first_high {
            Some(high) => high,
            None if self.eat(Kind::Caret) => self.script()?,
            None => return Err(ParseError::NoValue(NoValue::Unsupported)),
        };
        self.bound.push(name);
        let body = self.product();
        self.bound.pop();
        let body = body?;
        let body = self.id(&body)?;
        self.depth -= 1;
        self.big = true;
        let root = self.tree.leaf(Node::BigOperator { op, low, high, body })?;
        Ok(self.quantity(root))
    }
}

/// The inverse of a function, which `^{-1}` behind its name means.
fn inverse_of(kind: Kind) -> Option<Kind> {
    Some(match kind {
        Kind::Function(Function::Sin) => Kind::Function(Function::Arcsin),
        Kind::Function(Function::Cos) => Kind::Function(Function::Arccos),
        Kind::Function(Function::Tan) => Kind::Function(Function::Arctan),
        Kind::Function(Function::Cot) => Kind::Function(Function::Arccot),
        Kind::Function(Function::Sinh) => Kind::Hyperbolic(Hyperbolic::Arsinh),
        Kind::Function(Function::Cosh) => Kind::Hyperbolic(Hyperbolic::Arcosh),
        Kind::Function(Function::Tanh) => Kind::Hyperbolic(Hyperbolic::Artanh),
        Kind::Hyperbolic(Hyperbolic::Coth) => Kind::Hyperbolic(Hyperbolic::Arcoth),
        Kind::Hyperbolic(Hyperbolic::Sech) => Kind::Hyperbolic(Hyperbolic::Arsech),
        Kind::Hyperbolic(Hyperbolic::Csch) => Kind::Hyperbolic(Hyperbolic::Arcsch),
        _ => return None,
    })
}
