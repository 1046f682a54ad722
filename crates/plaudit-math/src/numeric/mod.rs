//! Expressions as real and complex numbers: values in balls at rising precision, for constants and for functions of
//! letters at points which the writer cannot know.
//!
//! Two numbers are different when their balls are disjoint, which is a proof. They are equal when, at two precisions,
//! their balls agree to 64 bits below the smallest number that occurred on the way, so that nothing that is part of
//! either expression is lost in the comparison.

mod kink;
mod step;

use std::cmp::Ordering;

use dashu_int::{IBig, Sign, UBig};
use dashu_ratio::RBig;

use self::kink::{Flip, Kink, bends};
use self::step::{LEADING, is_step, with_arguments};
use crate::ball::{Ball, BallError, Context};
use crate::expr::{Expr, Function, Id, NaryFunction, Node, Tree};
use crate::identity_test::{HASH_COST, Key};
use crate::limits::{NoValue, Work};
use crate::number;

/// The precisions at which constants are compared, in bits.
const PRECISIONS: [i64; 4] = [128, 512, 1024, 2048];
/// The precisions at which functions of letters are compared.
const POINT_PRECISIONS: [i64; 2] = [256, 1024];
/// Bits by which two equal numbers must agree below the smallest intermediate.
const MARGIN: i64 = 64;
/// Points at which functions of letters are compared: fractions first, then whole numbers in runs of four, then fractions
/// far from zero.
const FRACTIONS: u8 = 10;
const WHOLE: u8 = 12;
const RUN: u8 = 4;
const FAR: u8 = 5;
/// Points near zero for functions that are defined at few of the others.
const NEAR: u8 = 40;
/// Fractions at which two functions must agree to be equal.
const MIN_FRACTIONS: u32 = 4;
/// Points at which functions must agree that are not defined at that many fractions, as `(-1)^n`.
const MIN_POINTS: u32 = 8;
/// Points that may be unclear at the last precision, before the others get the first one only.
const MAX_UNCLEAR: u32 = 3;

/// A complex number. The imaginary part of a real number is exactly zero.
#[derive(Clone, Debug)]
pub(crate) struct Complex {
    re: Ball,
    im: Ball,
}

impl Complex {
    fn real(re: Ball) -> Self {
        Self { re, im: Ball::zero() }
    }

    fn is_real(&self) -> bool {
        self.im.is_zero()
    }

    fn neg(self) -> Self {
        Self { re: self.re.neg(), im: self.im.neg() }
    }
}

/// Where the letters get their values.
#[derive(Clone, Copy)]
struct Points<'k> {
    key: &'k Key,
    round: u8,
    /// The names of both sides in order, so that each gets both signs against its neighbours.
    names: &'k [&'k str],
    /// Which letters are complex numbers.
    complex: ComplexLetters,
}

/// Which letters are complex numbers: real and imaginary parts say that some are.
#[derive(Clone, Copy, PartialEq)]
enum ComplexLetters {
    None,
    /// Beside the imaginary unit the other letters are real, as in `x + iy`.
    ZAndW,
    All,
}

impl Points<'_> {
    /// The value of a letter: positive and negative fractions, small ones more often as many domains are small, then
    /// runs of whole numbers, from one and from larger ones, so that all remainders modulo four occur, then large
    /// fractions.
    fn letter(&self, name: &str) -> RBig {
        let at = self.round.saturating_sub(FRACTIONS);
        // A whole number and those after it share a draw.
        let drawn = if (FRACTIONS..FRACTIONS + WHOLE).contains(&self.round) {
            FRACTIONS + at / RUN
        } else {
            self.round
        };
        let draw = self.key.draw(b'r', drawn, name.as_bytes());
        let fraction = unit_fraction(draw);
        let small = i64::from((draw & 0xffff) as u16);
        match self.round {
            0..=2 => fraction,
            3 => fraction + RBig::from(1 + small % 3),
            4 => fraction + RBig::from(3 + small % 17),
            5 => fraction + RBig::from(20 + small % 100),
            6 => -fraction,
            7..=9 => {
                let size = if self.round == 9 { fraction } else { fraction + RBig::from(small % 9) };
                if self.is_negative(name) { -size } else { size }
            }
            _ if at < WHOLE => {
                let range = [1, 12, 1_000][usize::from(at / RUN) % 3];
                // Two letters have all four pairs of parities in a run.
                let step = at % RUN;
                let step = match self.names.binary_search(&name).map_or(0, |index| index % 3) {
                    0 => step,
                    1 => step / 2,
                    _ => step + step / 2,
                };
                RBig::from(1 + small % range + i64::from(step))
            }
            _ if at >= WHOLE + FAR => {
                let size = fraction * RBig::from(1 + at % 4);
                if draw & 1 == 1 { -size } else { size }
            }
            _ => {
                let size = fraction * RBig::from(UBig::ONE << if at < WHOLE + 2 { 13 } else { 60 });
                if self.is_negative(name) { -size } else { size }
            }
        }
    }
}

/// A fraction between zero and one.
fn unit_fraction(draw: u64) -> RBig {
    let share = i64::from((draw >> 32) as u32 >> 2) + 1;
    RBig::from_parts(IBig::from(share), ((1u64 << 30) + 3).into())
}

impl Points<'_> {
    /// Whether a letter is negative in a round of mixed signs: every second one, the others, pairs of them, or all.
    fn is_negative(&self, name: &str) -> bool {
        // A value of an unknown function has no place among the names.
        let index = self.names.binary_search(&name).map_or(0, |index| index);
        const FIRST_FAR: u8 = FRACTIONS + WHOLE;
        match self.round {
            FIRST_FAR => false,
            round if round == FIRST_FAR + 1 || round == FIRST_FAR + 2 => true,
            round if round == 7 || round == FIRST_FAR + 3 => index.is_multiple_of(2),
            round if round == 8 || round == FIRST_FAR + 4 => index % 2 == 1,
            _ => (index / 2).is_multiple_of(2),
        }
    }
}

/// One evaluation: the precision, the points and the sizes that occurred.
struct Evaluation<'a, 'w> {
    context: Context<'w>,
    points: Points<'a>,
    /// Whether roots and logarithms of negative numbers are complex numbers or no numbers.
    complex: bool,
    /// Exponent of two of the smallest number that is not zero.
    smallest: i64,
    /// The functions that bend, and the branch that is taken by force.
    kinks: &'a mut Vec<Kink>,
    flip: Option<&'a Flip>,
    /// The right side is being evaluated.
    right: bool,
}

impl<'a, 'w> Evaluation<'a, 'w> {
    fn new(points: Points<'a>, complex: bool, kinks: &'a mut Vec<Kink>, context: Context<'w>) -> Self {
        Self { context, points, complex, smallest: 0, kinks, flip: None, right: false }
    }

    /// The value of a constant, or of a function at the points of a key alone.
    fn constant(
        key: &'a Key,
        round: u8,
        complex: bool,
        kinks: &'a mut Vec<Kink>,
        context: Context<'w>,
    ) -> Self {
        Self::new(Points { key, round, names: &[], complex: ComplexLetters::None }, complex, kinks, context)
    }
}

impl Evaluation<'_, '_> {
    fn note(&mut self, value: &Complex) {
        for part in [&value.re, &value.im] {
            if let Some(bottom) = part.bottom() {
                self.smallest = self.smallest.min(bottom);
            }
        }
    }

    fn eval(&mut self, tree: &Tree, expr: Expr) -> Result<Complex, BallError> {
        let live = tree.live(expr);
        let mut values: Vec<Option<Complex>> = vec![None; live.len()];
        // Whether a node depends on a letter, and on a step function of one.
        let mut depends = vec![(false, false); live.len()];
        for index in 0..live.len() {
            if live[index] {
                let id = expr.first + index as Id;
                let node = tree.node(id);
                let (mut varies, mut unknown) = (matches!(node, Node::Letter(_) | Node::Apply(..)), false);
                node.children(|child| {
                    let of = depends[(child - expr.first) as usize];
                    varies |= of.0;
                    unknown |= of.1;
                });
                let step = varies && is_step(tree, node) || unknown && matches!(node, Node::NaryFunction(..));
                depends[index] = (varies, unknown || step);
                let of = |child: Id| values[(child - expr.first) as usize].as_ref().ok_or(BallError::NotReal);
                let value = if step {
                    Complex::real(self.step(tree, node, &of)?)
                } else if varies && bends(node, &of) {
                    Complex::real(self.bent(tree, id, &of)?)
                } else {
                    self.node(tree, id, &of)?
                };
                self.note(&value);
                values[index] = Some(value);
            }
        }
        values.pop().flatten().ok_or(BallError::NotReal)
    }

    fn node<'v>(
        &mut self,
        tree: &Tree,
        id: Id,
        of: &impl Fn(Id) -> Result<&'v Complex, BallError>,
    ) -> Result<Complex, BallError> {
        Ok(match tree.node(id) {
            Node::Number(value) => Complex::real(self.context.rational(value)?),
            Node::Letter(name) => {
                self.context.work.spend(HASH_COST)?;
                let name = tree.name(*name);
                let value = self.points.letter(name);
                let re = self.context.rational(&value)?;
                let im = match self.points.complex {
                    ComplexLetters::All => true,
                    ComplexLetters::ZAndW => name.starts_with(['z', 'w']),
                    ComplexLetters::None => false,
                };
                if im {
                    // Never whole, so that no difference of two letters is real.
                    let name = format!("{name};i");
                    let part = unit_fraction(self.points.key.draw(b'i', self.points.round, name.as_bytes()));
                    Complex { re, im: self.context.rational(&(self.points.letter(&name) + part))? }
                } else {
                    Complex::real(re)
                }
            }
            Node::Pi => Complex::real(self.context.pi()?),
            Node::E => Complex::real(self.context.exp(&Ball::one())?),
            Node::I => Complex { re: Ball::zero(), im: Ball::one() },
            Node::Infinity | Node::BigOperator { .. } => return Err(BallError::NotReal),
            Node::Sum(terms) => {
                let mut sum = Complex::real(Ball::zero());
                for term in terms {
                    sum = self.add(&sum, of(*term)?)?;
                }
                sum
            }
            Node::Product(factors) => {
                let mut product = Complex::real(Ball::one());
                for factor in factors {
                    product = self.mul(&product, of(*factor)?)?;
                }
                product
            }
            Node::Neg(a) => of(*a)?.clone().neg(),
            Node::Div(a, b) => self.div(of(*a)?, of(*b)?)?,
            Node::Pow(base, exponent) => match (tree.node(*base), tree.rational(*exponent)) {
                (_, Some(power)) => self.rational_power(of(*base)?, power)?,
                (Node::E, None) => self.exp(of(*exponent)?)?,
                (_, None) => self.power(of(*base)?, of(*exponent)?)?,
            },
            Node::Root { index, of: a } => self.root(of(*a)?, *index)?,
            Node::Call(function, a) => self.call(*function, of(*a)?)?,
            Node::Log { base, of: a } => {
                let top = self.ln(of(*a)?)?;
                let bottom = self.ln(of(*base)?)?;
                self.div(&top, &bottom)?
            }
            Node::Binomial(n, k) => self.binomial(of(*n)?, of(*k)?)?,
            Node::NaryFunction(fold, ids) => {
                let mut best: Option<Ball> = None;
                for id in ids {
                    let value = real(of(*id)?)?;
                    best = Some(match best {
                        None => value.clone(),
                        Some(known) => self.extreme(*fold, known, value)?,
                    });
                }
                Complex::real(best.ok_or(BallError::NotReal)?)
            }
            Node::Apply(name, ids) => {
                // An unknown function: a number that depends on the leading bits of its arguments.
                let mut arguments = Vec::with_capacity(ids.len() * 2);
                for id in ids {
                    let value = of(*id)?;
                    arguments.extend([value.re.leading(LEADING), value.im.leading(LEADING)]);
                }
                self.context.work.spend(HASH_COST * 4)?;
                let value = self.points.letter(&with_arguments(tree.name(*name), &arguments));
                Complex::real(self.context.rational(&value)?)
            }
        })
    }

    fn add(&mut self, a: &Complex, b: &Complex) -> Result<Complex, BallError> {
        Ok(Complex { re: self.context.add(&a.re, &b.re)?, im: self.context.add(&a.im, &b.im)? })
    }

    fn mul(&mut self, a: &Complex, b: &Complex) -> Result<Complex, BallError> {
        let c = &mut self.context;
        if a.is_real() && b.is_real() {
            return Ok(Complex::real(c.mul(&a.re, &b.re)?));
        }
        let (rr, ii) = (c.mul(&a.re, &b.re)?, c.mul(&a.im, &b.im)?);
        let (ri, ir) = (c.mul(&a.re, &b.im)?, c.mul(&a.im, &b.re)?);
        Ok(Complex { re: c.sub(&rr, &ii)?, im: c.add(&ri, &ir)? })
    }

    fn div(&mut self, a: &Complex, b: &Complex) -> Result<Complex, BallError> {
        if a.is_real() && b.is_real() {
            return Ok(Complex::real(self.context.div(&a.re, &b.re)?));
        }
        let conjugate = Complex { re: b.re.clone(), im: b.im.clone().neg() };
        let top = self.mul(a, &conjugate)?;
        let size = self.norm(b)?;
        Ok(Complex { re: self.context.div(&top.re, &size)?, im: self.context.div(&top.im, &size)? })
    }

    /// The square of the absolute value.
    fn norm(&mut self, a: &Complex) -> Result<Ball, BallError> {
        let c = &mut self.context;
        let (re, im) = (c.mul(&a.re, &a.re)?, c.mul(&a.im, &a.im)?);
        c.add(&re, &im)
    }

    fn whole_power(&mut self, base: &Complex, exponent: i64) -> Result<Complex, BallError> {
        if exponent.unsigned_abs() > 1 << 24 {
            return Err(BallError::NoValue(NoValue::TooLarge));
        }
        if base.is_real() {
            return Ok(Complex::real(self.context.pow(&base.re, exponent)?));
        }
        let mut result = Complex::real(Ball::one());
        let mut square = base.clone();
        let mut left = exponent.unsigned_abs();
        while left > 0 {
            if left & 1 == 1 {
                result = self.mul(&result, &square)?;
            }
            square = self.mul(&square, &square)?;
            left >>= 1;
        }
        if exponent < 0 { self.div(&Complex::real(Ball::one()), &result) } else { Ok(result) }
    }

    fn rational_power(&mut self, base: &Complex, power: &RBig) -> Result<Complex, BallError> {
        let Ok(num) = i64::try_from(power.numerator().clone()) else {
            return Err(BallError::NoValue(NoValue::TooLarge));
        };
        if power.is_int() {
            return self.whole_power(base, num);
        }
        match number::small(&RBig::from(power.denominator().clone())).filter(|index| *index <= 64) {
            Some(index) => {
                let root = self.root(base, index)?;
                self.whole_power(&root, num)
            }
            None => {
                let exponent = Complex::real(self.context.rational(power)?);
                self.power(base, &exponent)
            }
        }
    }

    fn root(&mut self, a: &Complex, index: u32) -> Result<Complex, BallError> {
        if index > 64 && (!a.is_real() || a.re.sign() == Some(Sign::Positive)) {
            return self.principal_root(a, index);
        }
        if a.is_real() {
            return match (a.re.sign(), index % 2) {
                (Some(Sign::Negative), 1) => {
                    Ok(Complex::real(self.context.root(&a.re.clone().neg(), index)?.neg()))
                }
                (Some(Sign::Negative), _) if self.complex && index == 2 => {
                    Ok(Complex { re: Ball::zero(), im: self.context.root(&a.re.clone().neg(), 2)? })
                }
                (Some(Sign::Negative), _) if self.complex => self.principal_root(a, index),
                (None, 1) if !a.re.is_zero() => Err(BallError::Imprecise),
                _ => Ok(Complex::real(self.context.root(&a.re, index)?)),
            };
        }
        self.principal_root(a, index)
    }

    /// `exp(ln(a) / index)`
    fn principal_root(&mut self, a: &Complex, index: u32) -> Result<Complex, BallError> {
        let log = self.ln(a)?;
        let part = self.div(&log, &Complex::real(Ball::integer(i64::from(index))))?;
        self.exp(&part)
    }

    fn power(&mut self, base: &Complex, exponent: &Complex) -> Result<Complex, BallError> {
        if exponent.is_real()
            && let Some(whole) = whole(&exponent.re)
        {
            return self.whole_power(base, whole);
        }
        if base.re.is_zero() && base.is_real() {
            return match exponent.re.sign() {
                Some(Sign::Positive) if exponent.is_real() => Ok(Complex::real(Ball::zero())),
                _ => Err(BallError::NotReal),
            };
        }
        let log = self.ln(base)?;
        let product = self.mul(&log, exponent)?;
        self.exp(&product)
    }

    fn exp(&mut self, a: &Complex) -> Result<Complex, BallError> {
        let size = self.context.exp(&a.re)?;
        if a.is_real() {
            return Ok(Complex::real(size));
        }
        let (sin, cos) = self.context.sin_cos(&a.im)?;
        Ok(Complex { re: self.context.mul(&size, &cos)?, im: self.context.mul(&size, &sin)? })
    }

    fn ln(&mut self, a: &Complex) -> Result<Complex, BallError> {
        if a.is_real() && (a.re.sign() != Some(Sign::Negative) || !self.complex) {
            return Ok(Complex::real(self.context.ln(&a.re)?));
        }
        let norm = self.norm(a)?;
        let re = self.context.ln(&norm)?.half();
        Ok(Complex { re, im: self.argument(a)? })
    }

    /// The angle of a complex number, between -pi and pi.
    fn argument(&mut self, a: &Complex) -> Result<Ball, BallError> {
        let c = &mut self.context;
        let pi = c.pi()?;
        if a.is_real() {
            return match a.re.sign() {
                Some(Sign::Positive) => Ok(Ball::zero()),
                Some(Sign::Negative) => Ok(pi),
                None if a.re.is_zero() => Err(BallError::NotReal),
                None => Err(BallError::Imprecise),
            };
        }
        let Some(above) = a.im.sign() else { return Err(BallError::Imprecise) };
        match a.re.sign() {
            Some(Sign::Positive) => {
                let tangent = c.div(&a.im, &a.re)?;
                c.atan(&tangent)
            }
            _ => {
                // The angle from the imaginary axis.
                let tangent = c.div(&a.re, &a.im)?;
                let part = c.atan(&tangent)?;
                let half = if above == Sign::Positive { pi.half() } else { pi.half().neg() };
                c.sub(&half, &part)
            }
        }
    }

    fn extreme(&mut self, fold: NaryFunction, a: Ball, b: &Ball) -> Result<Ball, BallError> {
        let order = a.compare(b, &mut self.context)?;
        match (fold, order) {
            (NaryFunction::Max, Some(Ordering::Less)) | (NaryFunction::Min, Some(Ordering::Greater)) => {
                Ok(b.clone())
            }
            (NaryFunction::Max | NaryFunction::Min, Some(_)) => Ok(a),
            (NaryFunction::Max | NaryFunction::Min, None) => Err(BallError::Imprecise),
            (NaryFunction::Gcd | NaryFunction::Lcm, _) => {
                let (Some(a), Some(b)) = (whole(&a), whole(b)) else { return Err(BallError::NotReal) };
                let (a, b) = (RBig::from(a), RBig::from(b));
                let work = &mut *self.context.work;
                let value = if fold == NaryFunction::Gcd {
                    number::gcd(&a, &b, work)
                } else {
                    number::lcm(&a, &b, work)
                };
                self.context.rational(&value?)
            }
        }
    }

    fn binomial(&mut self, n: &Complex, k: &Complex) -> Result<Complex, BallError> {
        let (Some(n), Some(k)) = (whole(real(n)?), whole(real(k)?)) else { return Err(BallError::NotReal) };
        let value = number::binomial(&RBig::from(n), &RBig::from(k), self.context.work)?;
        Ok(Complex::real(self.context.rational(&value)?))
    }

    fn call(&mut self, function: Function, a: &Complex) -> Result<Complex, BallError> {
        match function {
            Function::Re => return Ok(Complex::real(a.re.clone())),
            Function::Im => return Ok(Complex::real(a.im.clone())),
            Function::Conj => return Ok(Complex { re: a.re.clone(), im: a.im.clone().neg() }),
            Function::Arg => return Ok(Complex::real(self.argument(a)?)),
            Function::Ln => return self.ln(a),
            Function::Abs if !a.is_real() => {
                let norm = self.norm(a)?;
                return Ok(Complex::real(self.context.root(&norm, 2)?));
            }
            _ => {}
        }
        let x = real(a)?;
        let c = &mut self.context;
        let value = match function {
            Function::Sin => c.sin_cos(x)?.0,
            Function::Cos => c.sin_cos(x)?.1,
            Function::Tan | Function::Cot | Function::Sec | Function::Csc => {
                let (sin, cos) = c.sin_cos(x)?;
                match function {
                    Function::Tan => c.div(&sin, &cos)?,
                    Function::Cot => c.div(&cos, &sin)?,
                    Function::Sec => c.div(&Ball::one(), &cos)?,
                    _ => c.div(&Ball::one(), &sin)?,
                }
            }
            Function::Arcsin => c.asin(x)?,
            Function::Arccos => {
                let (half, angle) = (c.pi()?.half(), c.asin(x)?);
                c.sub(&half, &angle)?
            }
            Function::Arctan => c.atan(x)?,
            Function::Arccot => {
                let (half, angle) = (c.pi()?.half(), c.atan(x)?);
                c.sub(&half, &angle)?
            }
            Function::Sinh | Function::Cosh | Function::Tanh => {
                let up = c.exp(x)?;
                let down = c.div(&Ball::one(), &up)?;
                let (minus, plus) = (c.sub(&up, &down)?, c.add(&up, &down)?);
                match function {
                    Function::Sinh => minus.half(),
                    Function::Cosh => plus.half(),
                    _ => c.div(&minus, &plus)?,
                }
            }
            Function::Abs => x.clone().abs(),
            Function::Floor => c.floor(x)?,
            Function::Ceil => c.floor(&x.clone().neg())?.neg(),
            Function::Factorial => {
                let n = whole(x).ok_or(BallError::NotReal)?;
                let value = number::factorial(&RBig::from(n), c.work)?;
                c.rational(&value)?
            }
            Function::Sign => match x.sign() {
                Some(Sign::Positive) => Ball::one(),
                Some(Sign::Negative) => Ball::one().neg(),
                None if x.is_zero() => Ball::zero(),
                None => return Err(BallError::Imprecise),
            },
            Function::Ln | Function::Re | Function::Im | Function::Conj | Function::Arg => {
                return Err(BallError::NotReal);
            }
        };
        Ok(Complex::real(value))
    }
}

fn real(a: &Complex) -> Result<&Ball, BallError> {
    if a.is_real() { Ok(&a.re) } else { Err(BallError::NotReal) }
}

/// The ball as a whole number, if it is exactly one.
fn whole(a: &Ball) -> Option<i64> {
    a.exact_integer().and_then(|n| i64::try_from(n).ok())
}

/// How two values at one point compare.
enum Agreement {
    Different,
    Close,
    Unclear,
}

/// The two sides of a comparison.
type RealExpr<'a> = (&'a Tree, Expr);

fn agreement(
    a: RealExpr<'_>,
    b: RealExpr<'_>,
    evaluation: Evaluation<'_, '_>,
) -> Result<Agreement, BallError> {
    let mut evaluation = evaluation;
    let left = evaluation.eval(a.0, a.1)?;
    evaluation.right = true;
    let right = evaluation.eval(b.0, b.1)?;
    let re = evaluation.context.sub(&left.re, &right.re)?;
    let im = evaluation.context.sub(&left.im, &right.im)?;
    if re.sign().is_some() || im.sign().is_some() {
        return Ok(Agreement::Different);
    }
    let limit = evaluation.smallest - MARGIN;
    let close = |part: &Ball| part.is_zero() || part.top() <= limit;
    Ok(if close(&re) && close(&im) { Agreement::Close } else { Agreement::Unclear })
}

/// Whether a constant has a value.
pub(crate) fn is_defined(a: RealExpr<'_>, key: &Key, work: &mut Work) -> Result<bool, NoValue> {
    for precision in PRECISIONS {
        let context = Context { precision, work };
        match Evaluation::constant(key, 0, true, &mut Vec::new(), context).eval(a.0, a.1) {
            Ok(_) => return Ok(true),
            Err(BallError::NotReal) => return Ok(false),
            Err(BallError::Imprecise) => {}
            Err(BallError::NoValue(bound)) => return Err(bound),
        }
    }
    Ok(false)
}

/// Compares two constants.
pub(crate) fn constants(
    a: RealExpr<'_>,
    b: RealExpr<'_>,
    key: &Key,
    work: &mut Work,
) -> Result<bool, NoValue> {
    let mut close = 0;
    for precision in PRECISIONS {
        let context = Context { precision, work };
        match agreement(a, b, Evaluation::constant(key, 0, true, &mut Vec::new(), context)) {
            Ok(Agreement::Different) => return Ok(false),
            Ok(Agreement::Close) => close += 1,
            Ok(Agreement::Unclear) | Err(BallError::Imprecise) => {}
            Err(BallError::NotReal) => return Err(NoValue::Undefined),
            Err(BallError::NoValue(bound)) => return Err(bound),
        }
        if close == 2 {
            return Ok(true);
        }
    }
    Err(NoValue::Undecided)
}

/// Compares two functions of letters, where both are real.
pub(crate) fn functions(
    a: RealExpr<'_>,
    b: RealExpr<'_>,
    complex: bool,
    key: &Key,
    work: &mut Work,
) -> Result<bool, NoValue> {
    let (left, right) = (a.0.occurs(a.1), b.0.occurs(b.1));
    let kinks = left.kinks || right.kinks;
    let letters = match (left.parts || right.parts, complex) {
        (false, _) => ComplexLetters::None,
        (true, true) => ComplexLetters::ZAndW,
        (true, false) => ComplexLetters::All,
    };
    let complex = complex || left.parts || right.parts;
    let mut names: Vec<&str> = a.0.names().chain(b.0.names()).collect();
    names.sort_unstable();
    names.dedup();
    let mut unclear = 0;
    let mut seen: Vec<Kink> = Vec::new();
    let mut at = |round: u8, work: &mut Work| -> Result<Option<bool>, NoValue> {
        let precisions = if unclear < MAX_UNCLEAR { &POINT_PRECISIONS[..] } else { &POINT_PRECISIONS[..1] };
        for precision in precisions.iter().copied() {
            let points = Points { key, round, names: &names, complex: letters };
            let context = Context { precision, work };
            let mut kinks = Vec::new();
            match agreement(a, b, Evaluation::new(points, complex, &mut kinks, context)) {
                Ok(Agreement::Different) => return Ok(Some(false)),
                Ok(Agreement::Close) => {
                    kink::merge(&mut seen, kinks);
                    return Ok(Some(true));
                }
                Ok(Agreement::Unclear) | Err(BallError::Imprecise) => {}
                // Beyond the domain of one of them, or too large at this point: the next point.
                Err(BallError::NotReal) => return Ok(None),
                Err(BallError::NoValue(_)) => {
                    work.spend(1_000)?;
                    return Ok(None);
                }
            }
        }
        unclear += 1;
        Ok(None)
    };
    const FIRST_NEAR: u8 = FRACTIONS + WHOLE + FAR;
    let mut agreements = 0;
    let mut enough = false;
    for round in (0..FRACTIONS + WHOLE).chain(FIRST_NEAR..FIRST_NEAR + NEAR) {
        enough |= round == FRACTIONS && agreements >= MIN_FRACTIONS;
        enough |= round >= FIRST_NEAR && agreements >= MIN_POINTS;
        if enough {
            break;
        }
        match at(round, work)? {
            Some(true) => agreements += 1,
            Some(false) => return Ok(false),
            None => {}
        }
    }
    if !enough && agreements < MIN_POINTS {
        return Err(NoValue::Undecided);
    }
    // What bends, as an absolute value, may bend far from zero.
    for round in FRACTIONS + WHOLE..FRACTIONS + WHOLE + if kinks { FAR } else { 0 } {
        // Large powers cost much there, and what is not decided there is decided below.
        if work.with_share(4, |work| at(round, work)) == Ok(Some(false)) {
            return Ok(false);
        }
    }
    // Branches that no point took.
    for kink in &seen {
        for flip in kink.untried() {
            let points = Points { key, round: kink.round, names: &names, complex: letters };
            let context = Context { precision: POINT_PRECISIONS[0], work };
            let mut unused = Vec::new();
            let forced =
                Evaluation { flip: Some(&flip), ..Evaluation::new(points, complex, &mut unused, context) };
            match agreement(a, b, forced) {
                Ok(Agreement::Different) => return Ok(false),
                Err(BallError::NoValue(bound)) => return Err(bound),
                _ => {}
            }
        }
    }
    Ok(true)
}

/// Orders two real constants that are known to be different.
pub(crate) fn order(
    a: RealExpr<'_>,
    b: RealExpr<'_>,
    key: &Key,
    work: &mut Work,
) -> Result<Ordering, NoValue> {
    for precision in PRECISIONS {
        let (context, mut kinks) = (Context { precision, work }, Vec::new());
        let mut evaluation = Evaluation::constant(key, 0, true, &mut kinks, context);
        let mut pair = || -> Result<Option<Ordering>, BallError> {
            let left = evaluation.eval(a.0, a.1)?;
            let right = evaluation.eval(b.0, b.1)?;
            real(&left)?.compare(real(&right)?, &mut evaluation.context)
        };
        match pair() {
            Ok(Some(order)) => return Ok(order),
            Ok(None) | Err(BallError::Imprecise) => {}
            Err(BallError::NotReal) => return Err(NoValue::Undefined),
            Err(BallError::NoValue(bound)) => return Err(bound),
        }
    }
    Err(NoValue::Undecided)
}

/// Whether a constant is within `half` of a rational, which is what it means to be rounded to it.
pub(crate) fn within(
    a: RealExpr<'_>,
    center: &RBig,
    half: &RBig,
    key: &Key,
    work: &mut Work,
) -> Result<bool, NoValue> {
    for precision in PRECISIONS {
        let (context, mut kinks) = (Context { precision, work }, Vec::new());
        let mut evaluation = Evaluation::constant(key, 0, true, &mut kinks, context);
        let mut decide = || -> Result<Option<Ordering>, BallError> {
            let value = evaluation.eval(a.0, a.1)?;
            let center = evaluation.context.rational(center)?;
            let half = evaluation.context.rational(half)?;
            let distance = evaluation.context.sub(real(&value)?, &center)?.abs();
            distance.compare(&half, &mut evaluation.context)
        };
        match decide() {
            Ok(Some(order)) => return Ok(order == Ordering::Less),
            Ok(None) | Err(BallError::Imprecise) => {}
            Err(BallError::NotReal) => return Ok(false),
            Err(BallError::NoValue(bound)) => return Err(bound),
        }
    }
    Err(NoValue::Undecided)
}

/// The sign of a constant that may be a quotient of two functions of letters at a point.
pub(crate) fn sign(a: RealExpr<'_>, key: &Key, round: u8, work: &mut Work) -> Option<Sign> {
    let (context, mut kinks) = (Context { precision: 256, work }, Vec::new());
    let mut evaluation = Evaluation::constant(key, round, false, &mut kinks, context);
    let value = evaluation.eval(a.0, a.1).ok()?;
    real(&value).ok()?.sign()
}
