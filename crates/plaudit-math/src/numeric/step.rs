//! Step functions of letters, floors and factorials among them: unknown functions that have their laws.
//!
//! A step function is constant around most points, so that it agrees with another one there proves nothing. What holds
//! for every function with a law holds for the step function that has it: `\lfloor x + 1\rfloor` is one more than
//! `\lfloor x\rfloor` by the law, and `\lfloor\frac{1}{n + 1}\rfloor` is not zero by any.

use dashu_int::{IBig, Sign};
use dashu_ratio::RBig;

use super::{Complex, Evaluation, FRACTIONS, real, unit_fraction, whole};
use crate::ball::{Ball, BallError};
use crate::expr::{Function, Id, NaryFunction, Node, Tree};
use crate::identity_test::HASH_COST;
use crate::limits::NoValue;
use crate::number;

/// Factors by which a factorial of a fraction is brought to the unit interval.
const MAX_STEPS: u64 = 64;
/// Bits by which the arguments of an unknown function are told apart.
pub(super) const LEADING: i64 = 90;

/// Whether a function is constant between its steps, or known at whole numbers only. A power of zero steps at zero.
pub(super) fn is_step(tree: &Tree, node: &Node) -> bool {
    if let Node::Pow(base, _) = node {
        return tree.rational(*base).is_some_and(RBig::is_zero);
    }
    matches!(
        node,
        Node::Call(Function::Floor | Function::Ceil | Function::Sign | Function::Factorial, _)
            | Node::NaryFunction(NaryFunction::Gcd | NaryFunction::Lcm, _)
            | Node::Binomial(..)
    )
}

/// A name and its arguments as one text.
pub(super) fn with_arguments(name: &str, arguments: &[(IBig, i64)]) -> String {
    let mut text = name.to_owned();
    for (mid, exponent) in arguments {
        text.extend([";".to_owned(), mid.to_string(), "e".to_owned(), exponent.to_string()]);
    }
    text
}

impl Evaluation<'_, '_> {
    /// The value of a step function of letters.
    pub(super) fn step<'v>(
        &mut self,
        tree: &Tree,
        node: &Node,
        of: &impl Fn(Id) -> Result<&'v Complex, BallError>,
    ) -> Result<Ball, BallError> {
        match node {
            Node::Call(Function::Floor, a) => self.some_floor(real(of(*a)?)?),
            Node::Call(Function::Ceil, a) => Ok(self.some_floor(&real(of(*a)?)?.clone().neg())?.neg()),
            Node::Call(Function::Factorial, a) => self.some_factorial(real(of(*a)?)?),
            Node::Call(Function::Sign, a) => {
                let x = real(of(*a)?)?;
                let size = self.some("sign", &[x.clone().abs().leading(LEADING)])?;
                match x.sign() {
                    Some(Sign::Positive) => Ok(size),
                    Some(Sign::Negative) => Ok(size.neg()),
                    None if x.is_zero() => Ok(Ball::zero()),
                    None => Err(BallError::Imprecise),
                }
            }
            Node::Pow(_, exponent) => {
                let exponent = real(of(*exponent)?)?.leading(LEADING);
                self.some("zero", &[exponent])
            }
            Node::Binomial(n, k) => {
                let (top, bottom) = (real(of(*n)?)?, real(of(*k)?)?);
                let value = self.some_binomial(top, bottom)?;
                // A row of the triangle has few members and a column begins late; zeros beside them say little.
                let fixed = tree.rational(*n).is_some() || tree.rational(*k).is_some();
                if fixed && value.is_zero() { Err(BallError::NotReal) } else { Ok(value) }
            }
            // Which of two unknown numbers is larger is unknown too.
            Node::NaryFunction(NaryFunction::Max | NaryFunction::Min, ids) => {
                let mut arguments = Vec::with_capacity(ids.len());
                for id in ids {
                    arguments.push(real(of(*id)?)?.leading(LEADING));
                }
                arguments.sort_unstable();
                let largest = matches!(node, Node::NaryFunction(NaryFunction::Max, _));
                self.some(if largest { "max" } else { "min" }, &arguments)
            }
            Node::NaryFunction(fold, ids) => {
                let mut arguments = Vec::with_capacity(ids.len());
                let mut product = Ball::one();
                for id in ids {
                    let value = real(of(*id)?)?;
                    if value.sign() != Some(Sign::Positive) {
                        return Err(BallError::NotReal);
                    }
                    arguments.push(value.leading(LEADING));
                    product = self.context.mul(&product, value)?;
                }
                arguments.sort_unstable();
                // The greatest divisor of two numbers times their least multiple is the product of the numbers.
                match (fold, ids.len()) {
                    (NaryFunction::Lcm, 2) => {
                        let divisor = self.some("gcd", &arguments)?;
                        self.context.div(&product, &divisor)
                    }
                    (NaryFunction::Lcm, _) => self.some("lcm", &arguments),
                    _ => self.some("gcd", &arguments),
                }
            }
            _ => Err(BallError::NotReal),
        }
    }

    /// An unknown function: a number between zero and one that depends on the leading bits of its arguments.
    fn some(&mut self, name: &str, arguments: &[(IBig, i64)]) -> Result<Ball, BallError> {
        self.context.work.spend(HASH_COST * 4)?;
        let text = with_arguments(name, arguments);
        let value = unit_fraction(self.points.key.draw(b's', self.points.round, text.as_bytes()));
        self.context.rational(&value)
    }

    /// A function that grows by one with its argument, and gives whole numbers back.
    fn some_floor(&mut self, x: &Ball) -> Result<Ball, BallError> {
        let below = self.context.floor(x)?;
        let rest = self.context.sub(x, &below)?;
        // In a run of whole numbers the steps of a polynomial over four come round, of two letters those of one over two.
        let shares = match self.points.names.len() {
            1 => 2,
            2 => 1,
            _ => 0,
        };
        if rest.is_zero() || self.points.round >= FRACTIONS && rest.is_share(shares) {
            return Ok(below);
        }
        let part = self.some("floor", &[rest.leading(LEADING)])?;
        self.context.add(&below, &part)
    }

    /// A function that is its argument times its value one before, and the factorial of whole numbers.
    fn some_factorial(&mut self, x: &Ball) -> Result<Ball, BallError> {
        let half = self.context.add(x, &Ball::one().half())?;
        let nearest = self.context.floor(&half)?;
        // The difference of two fractions may be a whole number, and no more than near to it as a ball.
        if self.context.sub(x, &nearest)?.contains_zero() {
            let count = whole(&nearest).ok_or(BallError::NoValue(NoValue::TooLarge))?;
            let value = match number::factorial(&RBig::from(count), self.context.work) {
                Err(NoValue::Undefined) => return Err(BallError::NotReal),
                value => value?,
            };
            return self.context.rational(&value);
        }
        let below = self.context.floor(x)?;
        let rest = self.context.sub(x, &below)?;
        let count = whole(&below).ok_or(BallError::NoValue(NoValue::TooLarge))?;
        if count.unsigned_abs() > MAX_STEPS {
            return Err(BallError::NoValue(NoValue::TooLarge));
        }
        let value = self.some("factorial", &[rest.leading(LEADING)])?;
        let mut product = Ball::one();
        for step in count.min(0) + 1..=count.max(0) {
            let factor = self.context.add(&rest, &Ball::integer(step))?;
            product = self.context.mul(&product, &factor)?;
        }
        if count < 0 { self.context.div(&value, &product) } else { self.context.mul(&value, &product) }
    }

    /// The binomial of such factorials. Below a small whole number it is a polynomial.
    fn some_binomial(&mut self, n: &Ball, k: &Ball) -> Result<Ball, BallError> {
        if let (Some(n), Some(k)) = (whole(n), whole(k)) {
            let value = number::binomial(&RBig::from(n), &RBig::from(k), self.context.work)?;
            return self.context.rational(&value);
        }
        if let Some(k) = whole(k).filter(|k| (0..=64).contains(k)) {
            let mut product = Ball::one();
            for step in 0..k {
                let factor = self.context.sub(n, &Ball::integer(step))?;
                product = self.context.mul(&product, &factor)?;
                product = self.context.div(&product, &Ball::integer(step + 1))?;
            }
            return Ok(product);
        }
        let rest = self.context.sub(n, k)?;
        let (top, one, other) =
            (self.some_factorial(n)?, self.some_factorial(k)?, self.some_factorial(&rest)?);
        let below = self.context.mul(&one, &other)?;
        self.context.div(&top, &below)
    }
}
