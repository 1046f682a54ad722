//! Expressions: a flat arena of nodes, children before parents. Rational parts are folded as they are built, so a node
//! that is left is one that has no exact rational value.

use dashu_int::ops::BitTest;
use dashu_int::{IBig, Sign};
use dashu_ratio::RBig;

use crate::limits::{MAX_NODES, NoValue, Work};
use crate::number;

/// Index of a node.
pub(crate) type Id = u32;

/// A function of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Function {
    Sin,
    Cos,
    Tan,
    Cot,
    Sec,
    Csc,
    Arcsin,
    Arccos,
    Arctan,
    Arccot,
    Sinh,
    Cosh,
    Tanh,
    Ln,
    Abs,
    Floor,
    Ceil,
    Factorial,
    Re,
    Im,
    Conj,
    Arg,
    Sign,
}

/// A hyperbolic function that is read as what it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Hyperbolic {
    Sech,
    Csch,
    Coth,
    Arsinh,
    Arcosh,
    Artanh,
    Arcoth,
    Arsech,
    Arcsch,
}

/// A function of several arguments that is associative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NaryFunction {
    Gcd,
    Lcm,
    Max,
    Min,
}

/// A big operator, compared by its parts and never evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BigOperator {
    Sum,
    Product,
}

/// One node.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Number(RBig),
    Letter(u32),
    Pi,
    E,
    I,
    Infinity,
    Sum(Box<[Id]>),
    Product(Box<[Id]>),
    Neg(Id),
    Div(Id, Id),
    Pow(Id, Id),
    Root { index: u32, of: Id },
    Call(Function, Id),
    Log { base: Id, of: Id },
    Binomial(Id, Id),
    NaryFunction(NaryFunction, Box<[Id]>),
    Apply(u32, Box<[Id]>),
    BigOperator { op: BigOperator, low: Id, high: Id, body: Id },
}

impl Node {
    /// Calls `visit` with every child.
    pub(crate) fn children(&self, mut visit: impl FnMut(Id)) {
        match self {
            Self::Number(_) | Self::Letter(_) | Self::Pi | Self::E | Self::I | Self::Infinity => {}
            Self::Sum(ids) | Self::Product(ids) | Self::NaryFunction(_, ids) | Self::Apply(_, ids) => {
                ids.iter().copied().for_each(visit);
            }
            Self::Neg(a) | Self::Call(_, a) | Self::Root { of: a, .. } => visit(*a),
            Self::Div(a, b) | Self::Pow(a, b) | Self::Binomial(a, b) | Self::Log { base: a, of: b } => {
                visit(*a);
                visit(*b);
            }
            Self::BigOperator { low, high, body, .. } => {
                visit(*low);
                visit(*high);
                visit(*body);
            }
        }
    }
}

/// One expression of a tree: its nodes lie between `first` and `root`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expr {
    pub(crate) first: Id,
    pub(crate) root: Id,
}

/// What occurs in an expression.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Occurs {
    pub(crate) letters: bool,
    pub(crate) imaginary: bool,
    pub(crate) infinity: bool,
    pub(crate) big: bool,
    /// A function of letters that bends, as an absolute value or the root of a square.
    pub(crate) kinks: bool,
    /// A real or imaginary part, a conjugate or an angle, which says that a letter is a complex number.
    pub(crate) parts: bool,
}

/// The nodes and the names of one answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    names: Vec<Box<str>>,
}

impl Tree {
    pub(crate) fn len(&self) -> Id {
        self.nodes.len() as Id
    }

    pub(crate) fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    pub(crate) fn name(&self, id: u32) -> &str {
        &self.names[id as usize]
    }

    /// The names of all letters and functions.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// The exact value of a node.
    pub(crate) fn rational(&self, id: Id) -> Option<&RBig> {
        match self.node(id) {
            Node::Number(value) => Some(value),
            _ => None,
        }
    }

    /// The index of a name.
    pub(crate) fn intern(&mut self, name: &str) -> u32 {
        if let Some(found) = self.names.iter().position(|known| &**known == name) {
            return found as u32;
        }
        self.names.push(name.into());
        (self.names.len() - 1) as u32
    }

    fn push(&mut self, node: Node) -> Result<Id, NoValue> {
        if self.nodes.len() >= MAX_NODES {
            return Err(NoValue::TooLarge);
        }
        self.nodes.push(node);
        Ok((self.nodes.len() - 1) as Id)
    }

    pub(crate) fn number(&mut self, value: RBig) -> Result<Id, NoValue> {
        self.push(Node::Number(value))
    }

    pub(crate) fn letter(&mut self, name: &str) -> Result<Id, NoValue> {
        let name = self.intern(name);
        self.push(Node::Letter(name))
    }

    pub(crate) fn leaf(&mut self, node: Node) -> Result<Id, NoValue> {
        self.push(node)
    }

    fn is_infinite(&self, id: Id) -> bool {
        match self.node(id) {
            Node::Infinity => true,
            Node::Neg(inner) => matches!(self.node(*inner), Node::Infinity),
            _ => false,
        }
    }

    pub(crate) fn neg(&mut self, a: Id) -> Result<Id, NoValue> {
        match self.node(a) {
            Node::Number(value) => {
                let value = -value.clone();
                self.number(value)
            }
            Node::Neg(inner) => Ok(*inner),
            _ => self.push(Node::Neg(a)),
        }
    }

    pub(crate) fn sum(&mut self, terms: &[Id], work: &mut Work) -> Result<Id, NoValue> {
        if let [one] = terms {
            return Ok(*one);
        }
        if terms.iter().any(|term| self.is_infinite(*term)) {
            return Err(NoValue::Undefined);
        }
        let mut total = RBig::ZERO;
        let mut rest = Vec::new();
        for term in terms {
            match self.node(*term) {
                Node::Number(value) => total = number::add(&total, value, work)?,
                _ => rest.push(*term),
            }
        }
        if rest.is_empty() {
            return self.number(total);
        }
        if !total.is_zero() {
            let total = self.number(total)?;
            rest.push(total);
        }
        if let [one] = rest[..] {
            return Ok(one);
        }
        self.push(Node::Sum(rest.into()))
    }

    pub(crate) fn product(&mut self, factors: &[Id], work: &mut Work) -> Result<Id, NoValue> {
        if let [one] = factors {
            return Ok(*one);
        }
        if factors.iter().any(|factor| self.is_infinite(*factor)) {
            return Err(NoValue::Undefined);
        }
        let mut total = RBig::ONE;
        let mut rest = Vec::new();
        for factor in factors {
            match self.node(*factor) {
                Node::Number(value) => total = number::mul(&total, value, work)?,
                _ => rest.push(*factor),
            }
        }
        if rest.is_empty() {
            return self.number(total);
        }
        if !total.is_one() {
            let total = self.number(total)?;
            rest.push(total);
        }
        if let [one] = rest[..] {
            return Ok(one);
        }
        self.push(Node::Product(rest.into()))
    }

    pub(crate) fn div(&mut self, a: Id, b: Id, work: &mut Work) -> Result<Id, NoValue> {
        if self.is_infinite(a) || self.is_infinite(b) {
            return Err(NoValue::Undefined);
        }
        match (self.node(a), self.node(b)) {
            (_, Node::Number(den)) if den.is_zero() => Err(NoValue::Undefined),
            (Node::Number(num), Node::Number(den)) => {
                let value = number::div(num, den, work)?;
                self.number(value)
            }
            (_, Node::Number(den)) if den.is_one() => Ok(a),
            _ => self.push(Node::Div(a, b)),
        }
    }

    pub(crate) fn pow(&mut self, base: Id, exponent: Id, work: &mut Work) -> Result<Id, NoValue> {
        if self.is_infinite(base) || self.is_infinite(exponent) {
            return Err(NoValue::Undefined);
        }
        let Some(power) = self.rational(exponent) else {
            return match self.rational(base) {
                // One to any power is one. Zero to an unknown power is left to the evaluation.
                Some(one) if one.is_one() => Ok(base),
                _ => self.push(Node::Pow(base, exponent)),
            };
        };
        if power.is_one() {
            return Ok(base);
        }
        let Some(value) = self.rational(base) else {
            if power.is_zero() {
                return self.number(RBig::ONE);
            }
            return self.push(Node::Pow(base, exponent));
        };
        let index = number::small(&RBig::from(power.denominator().clone())).filter(|index| *index <= 64);
        if let Some(index) = index
            && let Some(root) =
                if index == 1 { Some(value.clone()) } else { number::root(value, index, work)? }
        {
            let value = number::pow(&root, power.numerator(), work)?;
            return self.number(value);
        }
        if value.is_zero() {
            return if power.sign() == Sign::Positive { Ok(base) } else { Err(NoValue::Undefined) };
        }
        self.push(Node::Pow(base, exponent))
    }

    pub(crate) fn root(&mut self, index: Id, of: Id, work: &mut Work) -> Result<Id, NoValue> {
        let Some(value) = self.rational(index) else {
            let one = self.number(RBig::ONE)?;
            let exponent = self.div(one, index, work)?;
            return self.pow(of, exponent, work);
        };
        let index = number::small(value).filter(|index| *index > 0).ok_or(NoValue::Undefined)?;
        if index > 4096 {
            return Err(NoValue::TooLarge);
        }
        if self.is_infinite(of) {
            return Err(NoValue::Undefined);
        }
        if index == 1 {
            return Ok(of);
        }
        if let Some(value) = self.rational(of)
            && let Some(root) = number::root(value, index, work)?
        {
            return self.number(root);
        }
        self.push(Node::Root { index, of })
    }

    pub(crate) fn call(&mut self, function: Function, of: Id, work: &mut Work) -> Result<Id, NoValue> {
        if self.is_infinite(of) {
            return Err(NoValue::Undefined);
        }
        if let Some(value) = self.rational(of) {
            let folded = match function {
                Function::Abs if value.sign() == Sign::Negative => Some(-value.clone()),
                Function::Abs | Function::Re | Function::Conj => Some(value.clone()),
                Function::Floor => Some(RBig::from(value.floor())),
                Function::Ceil => Some(RBig::from(value.ceil())),
                Function::Factorial => Some(number::factorial(value, work)?),
                Function::Im => Some(RBig::ZERO),
                Function::Sign => Some(value.signum()),
                Function::Sin
                | Function::Tan
                | Function::Arcsin
                | Function::Arctan
                | Function::Sinh
                | Function::Tanh
                    if value.is_zero() =>
                {
                    Some(RBig::ZERO)
                }
                Function::Cos | Function::Sec | Function::Cosh if value.is_zero() => Some(RBig::ONE),
                Function::Ln if value.is_one() => Some(RBig::ZERO),
                Function::Ln | Function::Cot | Function::Csc if value.is_zero() => {
                    return Err(NoValue::Undefined);
                }
                Function::Arcsin | Function::Arccos if *value > RBig::ONE || *value < -RBig::ONE => {
                    return Err(NoValue::Undefined);
                }
                _ => None,
            };
            if let Some(folded) = folded {
                return self.number(folded);
            }
        }
        // Of what is always real the real part is itself and the imaginary part is zero.
        let real = match self.node(of) {
            Node::Pi | Node::E | Node::NaryFunction(NaryFunction::Max | NaryFunction::Min, _) => true,
            Node::Call(inner, _) => matches!(
                inner,
                Function::Abs
                    | Function::Re
                    | Function::Im
                    | Function::Arg
                    | Function::Sign
                    | Function::Floor
            ),
            _ => false,
        };
        match function {
            Function::Re | Function::Conj if real => return Ok(of),
            Function::Im if real => return self.number(RBig::ZERO),
            Function::Abs if matches!(self.node(of), Node::Call(Function::Abs, _)) => return Ok(of),
            _ => {}
        }
        self.push(Node::Call(function, of))
    }

    pub(crate) fn log(&mut self, base: Id, of: Id) -> Result<Id, NoValue> {
        let bad = |value: &RBig| value.is_zero() || value.is_one();
        if self.rational(base).is_some_and(bad) || self.rational(of).is_some_and(RBig::is_zero) {
            return Err(NoValue::Undefined);
        }
        if self.rational(of).is_some_and(RBig::is_one) {
            return self.number(RBig::ZERO);
        }
        self.push(Node::Log { base, of })
    }

    pub(crate) fn binomial(&mut self, n: Id, k: Id, work: &mut Work) -> Result<Id, NoValue> {
        if let (Some(n), Some(k)) = (self.rational(n), self.rational(k)) {
            let value = number::binomial(n, k, work)?;
            return self.number(value);
        }
        self.push(Node::Binomial(n, k))
    }

    pub(crate) fn fold(&mut self, fold: NaryFunction, of: &[Id], work: &mut Work) -> Result<Id, NoValue> {
        let mut result: Option<RBig> = None;
        for id in of {
            let Some(value) = self.rational(*id) else {
                return self.push(Node::NaryFunction(fold, of.into()));
            };
            result = Some(match (result, fold) {
                (None, _) => value.clone(),
                (Some(known), NaryFunction::Gcd) => number::gcd(&known, value, work)?,
                (Some(known), NaryFunction::Lcm) => number::lcm(&known, value, work)?,
                (Some(known), NaryFunction::Max) => known.max(value.clone()),
                (Some(known), NaryFunction::Min) => known.min(value.clone()),
            });
        }
        let value = result.ok_or(NoValue::Undefined)?;
        self.number(value)
    }

    /// Marks the nodes that an expression uses, from its root down. Entry `i` stands for node `first + i`.
    pub(crate) fn live(&self, expr: Expr) -> Vec<bool> {
        let count = (expr.root - expr.first + 1) as usize;
        let mut live = vec![false; count];
        live[count - 1] = true;
        for index in (0..count).rev() {
            if live[index] {
                self.nodes[expr.first as usize + index]
                    .children(|child| live[(child - expr.first) as usize] = true);
            }
        }
        live
    }

    /// What occurs in an expression.
    pub(crate) fn occurs(&self, expr: Expr) -> Occurs {
        let mut occurs = Occurs::default();
        for (index, live) in self.live(expr).iter().enumerate() {
            if !live {
                continue;
            }
            match &self.nodes[expr.first as usize + index] {
                Node::Letter(_) | Node::Apply(..) => occurs.letters = true,
                Node::I => occurs.imaginary = true,
                Node::Infinity => occurs.infinity = true,
                Node::Call(Function::Re | Function::Im | Function::Conj | Function::Arg, _) => {
                    occurs.parts = true;
                }
                Node::Call(Function::Abs, _)
                | Node::NaryFunction(NaryFunction::Max | NaryFunction::Min, _) => occurs.kinks = true,
                Node::BigOperator { .. } => occurs.big = true,
                Node::Root { index, of } if index % 2 == 0 => match self.rational(*of) {
                    Some(value) => occurs.imaginary |= value.sign() == Sign::Negative,
                    None => occurs.kinks = true,
                },
                Node::Pow(base, exponent)
                    if self.rational(*exponent).is_some_and(|power| !power.denominator().bit(0)) =>
                {
                    match self.rational(*base) {
                        Some(value) => occurs.imaginary |= value.sign() == Sign::Negative,
                        None => occurs.kinks = true,
                    }
                }
                _ => {}
            }
        }
        occurs
    }

    /// The value of infinity: its sign.
    pub(crate) fn infinity(&self, id: Id) -> Option<Sign> {
        match self.node(id) {
            Node::Infinity => Some(Sign::Positive),
            Node::Neg(inner) if matches!(self.node(*inner), Node::Infinity) => Some(Sign::Negative),
            _ => None,
        }
    }

    /// The difference of two expressions of this tree, as a new expression.
    pub(crate) fn difference(&mut self, a: Expr, b: Expr, work: &mut Work) -> Result<Expr, NoValue> {
        let minus = self.neg(b.root)?;
        let root = self.sum(&[a.root, minus], work)?;
        Ok(Expr { first: a.first.min(b.first), root })
    }
}

/// A number of the machine as an integer node value.
pub(crate) fn integer(value: i64) -> RBig {
    RBig::from(IBig::from(value))
}
