//! Ball arithmetic: real numbers as a midpoint and a radius, at a given precision. The true value is always inside.
//!
//! A ball is `(mid ± radius) · 2^exponent` with an integer radius, so its size has no lower end: `e^{-1000}` is as good
//! a number as 4. The functions work in fixed point with guard bits; each states the units that it may be wrong by.

use std::cmp::Ordering;
use std::sync::OnceLock;

use dashu_int::ops::{BitTest, DivEuclid, DivRemEuclid, SquareRoot, UnsignedAbs};
use dashu_int::{IBig, Sign, UBig};
use dashu_ratio::RBig;

use crate::limits::{MAX_PRECISION, NoValue, Work};

/// Bits of the radius. A larger one is shifted out together with bits of the midpoint, which it makes meaningless.
const RADIUS_BITS: i64 = 30;
/// Bits beyond the precision that the functions work with.
const GUARD: i64 = 40;
/// Largest exponent of two of any value.
const MAX_EXPONENT: i64 = 1 << 30;
/// Bits of the cached constants.
const CONSTANT_BITS: i64 = MAX_PRECISION as i64 * 2 + 512;

/// Why an operation on balls has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BallError {
    /// Not a real number, as the logarithm of a negative number.
    NotReal,
    /// The ball is too wide to say: more precision is needed.
    Imprecise,
    /// A bound was broken.
    NoValue(NoValue),
}

impl From<NoValue> for BallError {
    fn from(bound: NoValue) -> Self {
        Self::NoValue(bound)
    }
}

/// A real number: `(mid ± radius) · 2^exponent`.
#[derive(Clone, Debug)]
pub(crate) struct Ball {
    mid: IBig,
    exponent: i64,
    radius: u64,
}

fn bits(n: &IBig) -> i64 {
    n.bit_len() as i64
}

/// `n · 2^shift`, rounded down.
fn shifted(n: &IBig, shift: i64) -> IBig {
    if shift >= 0 { n << (shift as usize) } else { n >> (-shift as usize) }
}

/// `n · 2^shift`, rounded up, at most `u64::MAX`.
fn shifted_up(n: u64, shift: i64) -> u64 {
    if n == 0 {
        return 0;
    }
    if shift >= 0 {
        if shift >= i64::from(n.leading_zeros()) { u64::MAX } else { n << shift }
    } else if shift <= -64 {
        1
    } else {
        (n >> -shift) + 1
    }
}

/// The precision of a computation and the work that it may do.
pub(crate) struct Context<'w> {
    pub(crate) precision: i64,
    pub(crate) work: &'w mut Work,
}

impl Context<'_> {
    fn limbs(&self) -> u64 {
        self.precision as u64 / 64 + 2
    }

    fn pay(&mut self, multiplications: u64) -> Result<(), BallError> {
        let limbs = self.limbs();
        Ok(self.work.spend(multiplications * (limbs * limbs / 2 + 60))?)
    }

    fn ball(&self, mid: IBig, exponent: i64, radius: u64) -> Result<Ball, BallError> {
        let radius_bits = i64::from(64 - radius.leading_zeros());
        let drop = (bits(&mid) - self.precision).max(radius_bits - RADIUS_BITS);
        let ball = if drop > 0 {
            // Zeros are dropped without a loss.
            let exact = radius == 0 && mid.trailing_zeros().is_some_and(|zeros| zeros as i64 >= drop);
            Ball {
                mid: shifted(&mid, -drop),
                exponent: exponent + drop,
                radius: if exact { 0 } else { shifted_up(radius, -drop).saturating_add(1) },
            }
        } else {
            Ball { mid, exponent, radius }
        };
        if ball.mid.is_zero() && ball.radius == 0 {
            return Ok(Ball::zero());
        }
        let top = ball.top();
        if top > MAX_EXPONENT {
            return Err(BallError::NoValue(NoValue::TooLarge));
        }
        if top < -MAX_EXPONENT {
            return Err(BallError::NoValue(NoValue::TooLarge));
        }
        Ok(ball)
    }

    pub(crate) fn rational(&mut self, value: &RBig) -> Result<Ball, BallError> {
        let (num, den) = (value.numerator(), value.denominator());
        self.work.spend((num.bit_len() / 64 + 1) as u64 * (den.bit_len() / 64 + 1) as u64 / 4 + 10)?;
        if den.is_one() {
            return self.ball(num.clone(), 0, 0);
        }
        let shift = (self.precision + 8 + den.bit_len() as i64 - bits(num)).max(0);
        let (quotient, rest) = shifted(num, shift).div_rem_euclid(IBig::from(den.clone()));
        self.ball(quotient, -shift, u64::from(!rest.is_zero()))
    }

    pub(crate) fn add(&mut self, a: &Ball, b: &Ball) -> Result<Ball, BallError> {
        if a.is_zero() {
            return Ok(b.clone());
        }
        if b.is_zero() {
            return Ok(a.clone());
        }
        self.work.spend(self.limbs() + 60)?;
        let (high, low) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
        // Bits of `low` that are finer than `high` can tell are dropped into the radius.
        let room = if high.radius > 0 { 32 } else { self.precision + 64 };
        let floor = (high.exponent - room).max((high.top().max(low.top())) - self.precision - 64);
        let exponent = low.exponent.max(floor.min(high.exponent));
        let up = high.exponent - exponent;
        let down = low.exponent - exponent;
        let mid = shifted(&high.mid, up) + shifted(&low.mid, down);
        let lost = u64::from(down < 0);
        let radius =
            shifted_up(high.radius, up).saturating_add(shifted_up(low.radius, down)).saturating_add(lost);
        self.ball(mid, exponent, radius)
    }

    pub(crate) fn sub(&mut self, a: &Ball, b: &Ball) -> Result<Ball, BallError> {
        self.add(a, &b.clone().neg())
    }

    pub(crate) fn mul(&mut self, a: &Ball, b: &Ball) -> Result<Ball, BallError> {
        if a.is_zero() || b.is_zero() {
            return Ok(Ball::zero());
        }
        self.pay(1)?;
        let mid = &a.mid * &b.mid;
        let exponent = a.exponent + b.exponent;
        if a.radius == 0 && b.radius == 0 {
            return self.ball(mid, exponent, 0);
        }
        // |a| rb + |b| ra + ra rb, in units of 2^shift so that it fits.
        let size = |radius: u64, bits: i64| {
            if radius == 0 { 0 } else { i64::from(64 - radius.leading_zeros()) + bits }
        };
        let widest = size(b.radius, bits(&a.mid)).max(size(a.radius, bits(&b.mid)));
        let shift = (bits(&mid) - self.precision).max(widest - 60).max(0);
        let first = shifted_up(b.radius, bits(&a.mid) - shift);
        let second = shifted_up(a.radius, bits(&b.mid) - shift);
        let third = shifted_up(a.radius.saturating_mul(b.radius), -shift);
        let radius = first.saturating_add(second).saturating_add(third);
        self.ball(shifted(&mid, -shift), exponent + shift, radius.saturating_add(1))
    }

    pub(crate) fn div(&mut self, a: &Ball, b: &Ball) -> Result<Ball, BallError> {
        if b.is_zero() {
            return Err(BallError::NotReal);
        }
        if b.contains_zero() {
            return Err(BallError::Imprecise);
        }
        if a.is_zero() {
            return Ok(Ball::zero());
        }
        self.pay(3)?;
        let mut shift = (self.precision + 8 + bits(&b.mid) - bits(&a.mid)).max(0);
        if a.radius > 0 {
            // Bits below the radius of the quotient mean nothing; around zero there would be no end of them.
            let radius_bits = i64::from(64 - a.radius.leading_zeros());
            shift = shift.min(bits(&b.mid) + RADIUS_BITS - radius_bits);
        }
        let (quotient, rest) = shifted(&a.mid, shift).div_rem_euclid(&b.mid);
        let exponent = a.exponent - b.exponent - shift;
        if a.radius == 0 && b.radius == 0 && rest.is_zero() {
            return self.ball(quotient, exponent, 0);
        }
        // (ra + |q| rb) / (|b| - rb), where |b| - rb >= 2^(bits - 2) once the radius is at most half of it.
        if IBig::from(b.radius) * 2 > b.mid.clone().unsigned_abs().into() {
            return Err(BallError::Imprecise);
        }
        let size = bits(&b.mid) - 2;
        let first = shifted_up(a.radius, shift - size);
        let second = shifted_up(b.radius, bits(&quotient) - size);
        if first == u64::MAX || second == u64::MAX {
            return Err(BallError::Imprecise);
        }
        self.ball(quotient, exponent, first.saturating_add(second).saturating_add(2))
    }

    /// A power with an integer exponent, by squaring.
    pub(crate) fn pow(&mut self, base: &Ball, exponent: i64) -> Result<Ball, BallError> {
        let mut result = Ball::one();
        let mut square = base.clone();
        let mut left = exponent.unsigned_abs();
        while left > 0 {
            if left & 1 == 1 {
                result = self.mul(&result, &square)?;
            }
            left >>= 1;
            if left > 0 {
                square = self.mul(&square, &square)?;
            }
        }
        if exponent < 0 { self.div(&Ball::one(), &result) } else { Ok(result) }
    }

    /// The root with an index of at least two, of a ball that is not negative.
    pub(crate) fn root(&mut self, a: &Ball, index: u32) -> Result<Ball, BallError> {
        if a.is_zero() {
            return Ok(Ball::zero());
        }
        match a.sign() {
            Some(Sign::Negative) => return Err(BallError::NotReal),
            Some(Sign::Positive) => {}
            None => return self.root_near_zero(a, index),
        }
        let n = i64::from(index);
        self.pay(4 + u64::from(index / 8))?;
        let mut shift = ((self.precision + 8) * n - bits(&a.mid)).max(0);
        // The exponent must be a multiple of the index.
        shift += (a.exponent - shift).rem_euclid(n);
        let scaled = shifted(&a.mid, shift).unsigned_abs();
        let root = if index == 2 { scaled.sqrt() } else { scaled.nth_root(index as usize) };
        // r / (n root^(n - 1)), and one for the rounding; the radius is small against the midpoint.
        if IBig::from(a.radius) * 4 > a.mid {
            return Err(BallError::Imprecise);
        }
        let size = (root.bit_len() as i64 - 1) * (n - 1) - 1;
        let radius = shifted_up(a.radius, shift - size).saturating_add(2);
        self.ball(IBig::from(root), (a.exponent - shift) / n, radius)
    }

    /// A ball around zero: the root of its upper end bounds it.
    fn root_near_zero(&mut self, a: &Ball, index: u32) -> Result<Ball, BallError> {
        let n = i64::from(index);
        let top = a.top();
        let exponent = top.div_euclid(n) + 1;
        self.ball(IBig::ZERO, exponent, 1)
    }

    /// The ball's midpoint as a fixed-point number with `point` fractional bits.
    fn fixed(a: &Ball, point: i64) -> Result<IBig, BallError> {
        if a.top() + point > CONSTANT_BITS * 2 {
            return Err(BallError::Imprecise);
        }
        Ok(shifted(&a.mid, a.exponent + point))
    }

    /// The ball of a fixed-point result with `point` fractional bits, of which the last `GUARD` are dropped. Its radius
    /// is that of the argument times `slope`, and `own` units of the last bit.
    fn finish(
        &self,
        result: &IBig,
        point: i64,
        scale: i64,
        error: (&Ball, u64),
        own: u64,
    ) -> Result<Ball, BallError> {
        let (argument, slope) = error;
        // A wide argument makes the last bits meaningless: they are dropped too.
        let size = i64::from(64 - argument.radius.leading_zeros());
        let drop =
            if argument.radius == 0 { GUARD } else { GUARD.max(size + argument.exponent + point - 50) };
        let unit = point - drop;
        let inherited = shifted_up(argument.radius, argument.exponent + unit).saturating_mul(slope);
        let radius = inherited.saturating_add(shifted_up(own, -drop)).saturating_add(2);
        self.ball(result >> (drop as usize), scale - unit, radius)
    }

    pub(crate) fn pi(&mut self) -> Result<Ball, BallError> {
        let drop = CONSTANT_BITS - self.precision - GUARD;
        self.ball(pi() >> (drop as usize), -(CONSTANT_BITS - drop), 2)
    }

    pub(crate) fn exp(&mut self, a: &Ball) -> Result<Ball, BallError> {
        if a.is_zero() {
            return Ok(Ball::one());
        }
        let top = a.top();
        if top > 31 {
            return Err(BallError::NoValue(NoValue::TooLarge));
        }
        let halvings: i64 = if self.precision > 300 { 16 } else { 8 };
        let point = self.precision + GUARD * 2 + top.max(0);
        self.pay(point as u64 / 12 + 16)?;
        let fixed = Self::fixed(a, point)?;
        let log2 = ln2() >> ((CONSTANT_BITS - point) as usize);
        let count = (&fixed + (&log2 >> 1usize)).div_euclid(&log2);
        let count = i64::try_from(count).map_err(|_| BallError::NoValue(NoValue::TooLarge))?;
        let rest = fixed - &log2 * IBig::from(count);
        // Taylor's series of a small argument, then squarings: each doubles the error.
        let x = rest >> (halvings as usize);
        let one = IBig::ONE << (point as usize);
        let mut sum = &one + &x;
        let mut term = x.clone();
        let mut n = 2u32;
        loop {
            term = (&term * &x) >> (point as usize);
            term /= IBig::from(n);
            if term.is_zero() || term == IBig::NEG_ONE || n > 4096 {
                break;
            }
            sum += &term;
            n += 1;
        }
        for _ in 0..halvings {
            sum = (&sum * &sum) >> (point as usize);
        }
        // Units: a term of the series costs one, the reduction `count` units, each squaring doubles; e^x is below 2.
        let own =
            ((u64::from(n) + 4) << (halvings + 1)).saturating_add(count.unsigned_abs().saturating_mul(4));
        // The argument's error makes a relative one: the slope is below 4 as long as the radius is below one half.
        if a.radius > 0 && a.exponent + i64::from(64 - a.radius.leading_zeros()) > -1 {
            return Err(BallError::Imprecise);
        }
        self.finish(&sum, point, count, (a, 4), own)
    }

    pub(crate) fn ln(&mut self, a: &Ball) -> Result<Ball, BallError> {
        if a.is_one() {
            return Ok(Ball::zero());
        }
        if a.is_zero() {
            return Err(BallError::NotReal);
        }
        match a.sign() {
            Some(Sign::Negative) => return Err(BallError::NotReal),
            None => return Err(BallError::Imprecise),
            Some(Sign::Positive) => {}
        }
        if IBig::from(a.radius) * 4 > a.mid {
            return Err(BallError::Imprecise);
        }
        let roots: i64 = 8;
        let count = a.top();
        let point = self.precision + GUARD * 2 + i64::from(64 - count.unsigned_abs().leading_zeros());
        self.pay(point as u64 / 10 + 40)?;
        // a = f 2^count with f between a half and one, then f^(1/256) near one.
        let mut f = shifted(&a.mid, point - (count - a.exponent));
        for _ in 0..roots {
            f = IBig::from((f << (point as usize)).unsigned_abs().sqrt());
        }
        // ln f = 2 artanh((f - 1) / (f + 1))
        let one = IBig::ONE << (point as usize);
        let z = ((&f - &one) << (point as usize)).div_euclid(&f + &one);
        let square = (&z * &z) >> (point as usize);
        let mut power = z.clone();
        let mut sum = z;
        let mut n = 3u32;
        loop {
            power = (&power * &square) >> (point as usize);
            if power.is_zero() || power == IBig::NEG_ONE || n > 8192 {
                break;
            }
            sum += &power / IBig::from(n);
            n += 2;
        }
        let ln_f = sum << ((roots + 1) as usize);
        let log2 = ln2() >> ((CONSTANT_BITS - point) as usize);
        let total = ln_f + log2 * IBig::from(count);
        // f is at least a quarter, so the slope is at most eight with the radius; a root loses a unit, 512 times.
        let own = ((u64::from(n) + 24) << (roots + 1)).saturating_add(count.unsigned_abs().saturating_mul(2));
        let scaled = Ball { mid: IBig::ZERO, exponent: a.exponent - count, radius: a.radius };
        self.finish(&total, point, 0, (&scaled, 8), own)
    }

    /// Sine and cosine.
    pub(crate) fn sin_cos(&mut self, a: &Ball) -> Result<(Ball, Ball), BallError> {
        if a.is_zero() {
            return Ok((Ball::zero(), Ball::one()));
        }
        let top = a.top().max(0);
        if top > MAX_PRECISION as i64 {
            return Err(BallError::NoValue(NoValue::TooLarge));
        }
        // A tiny argument keeps its own scale, so that the sine of it does too.
        let depth = (-a.top()).clamp(0, MAX_PRECISION as i64);
        let point = self.precision + GUARD * 2 + depth;
        self.pay(point as u64 / 4 + 16)?;
        if a.radius > 0 && a.exponent > -2 {
            return Err(BallError::Imprecise);
        }
        let fixed = Self::fixed(a, point)?;
        // The quarter turns are counted with as many bits of pi as the argument has before its point.
        let wide = point + top + 8;
        if wide > CONSTANT_BITS {
            return Err(BallError::NoValue(NoValue::TooLarge));
        }
        let half_pi = pi() >> ((CONSTANT_BITS - wide + 1) as usize);
        let argument = fixed << ((wide - point) as usize);
        let quarter = (&argument + (&half_pi >> 1usize)).div_euclid(&half_pi);
        let x = (argument - &half_pi * &quarter) >> ((wide - point) as usize);
        let turn = (&quarter % IBig::from(4)).rem_euclid_4();
        let square = (&x * &x) >> (point as usize);
        let one = IBig::ONE << (point as usize);
        let (mut sin, mut cos) = (x.clone(), one.clone());
        let (mut odd, mut even) = (x, one);
        let mut n = 1u32;
        loop {
            even = -((&even * &square) >> (point as usize)) / IBig::from((2 * n - 1) * (2 * n));
            odd = -((&odd * &square) >> (point as usize)) / IBig::from((2 * n) * (2 * n + 1));
            sin += &odd;
            cos += &even;
            let done = |term: &IBig| bits(term) <= 1;
            if done(&even) && done(&odd) || n > 4096 {
                break;
            }
            n += 1;
        }
        let own = u64::from(n) * 4 + 24;
        let sin = self.finish(&sin, point, 0, (a, 1), own)?;
        let cos = self.finish(&cos, point, 0, (a, 1), own)?;
        Ok(match turn {
            0 => (sin, cos),
            1 => (cos, sin.neg()),
            2 => (sin.neg(), cos.neg()),
            _ => (cos.neg(), sin),
        })
    }

    pub(crate) fn atan(&mut self, a: &Ball) -> Result<Ball, BallError> {
        if a.is_zero() {
            return Ok(Ball::zero());
        }
        if a.top() > 2 {
            // atan a = sign pi/2 - atan(1/a), where a is at least two and 1/a at most a half, so this happens once.
            let inverse = self.div(&Ball::one(), a)?;
            let small = self.atan(&inverse)?;
            let half = self.pi()?.half();
            let half = if a.sign() == Some(Sign::Negative) { half.neg() } else { half };
            return self.sub(&half, &small);
        }
        // Halve the angle until the series is short: atan a = 2 atan(a / (1 + sqrt(1 + a^2))).
        let mut x = a.clone();
        let mut halvings = 0;
        while x.top() > -6 && halvings < 12 {
            let square = self.mul(&x, &x)?;
            let root = self.add(&Ball::one(), &square)?;
            let root = self.root(&root, 2)?;
            let below = self.add(&Ball::one(), &root)?;
            x = self.div(&x, &below)?;
            halvings += 1;
        }
        let square = self.mul(&x, &x)?;
        let mut sum = x.clone();
        let mut power = x.clone();
        let mut n = 1i64;
        loop {
            power = self.mul(&power, &square)?.neg();
            let term = self.div(&power, &Ball::integer(2 * n + 1))?;
            if power.top() < sum.top() - self.precision - 8 || n > 4096 {
                // The rest of an alternating series is below its first term.
                let rest = self.ball(IBig::ZERO, power.top(), 1)?;
                sum = self.add(&sum, &rest)?;
                break;
            }
            sum = self.add(&sum, &term)?;
            n += 1;
        }
        sum.exponent += halvings;
        Ok(sum)
    }

    pub(crate) fn asin(&mut self, a: &Ball) -> Result<Ball, BallError> {
        // asin a = 2 atan(a / (1 + sqrt(1 - a^2)))
        let square = self.mul(a, a)?;
        let inside = self.sub(&Ball::one(), &square)?;
        let root = self.root(&inside, 2)?;
        let below = self.add(&Ball::one(), &root)?;
        let tangent = self.div(a, &below)?;
        let mut angle = self.atan(&tangent)?;
        if !angle.is_zero() {
            angle.exponent += 1;
        }
        Ok(angle)
    }

    /// The largest integer that is not above the ball, if the ball does not reach over an integer.
    pub(crate) fn floor(&mut self, a: &Ball) -> Result<Ball, BallError> {
        if a.top() > self.precision {
            return Err(BallError::Imprecise);
        }
        self.work.spend(self.limbs())?;
        let low = shifted(&(&a.mid - IBig::from(a.radius)), a.exponent);
        let high = shifted(&(&a.mid + IBig::from(a.radius)), a.exponent);
        if low != high {
            return Err(BallError::Imprecise);
        }
        self.ball(low, 0, 0)
    }
}

/// The remainder of a small integer modulo four, never negative.
trait RemEuclid4 {
    fn rem_euclid_4(self) -> u8;
}

impl RemEuclid4 for IBig {
    fn rem_euclid_4(self) -> u8 {
        i8::try_from(self).map_or(0, |n| n.rem_euclid(4) as u8)
    }
}

impl Ball {
    pub(crate) const fn zero() -> Self {
        Self { mid: IBig::ZERO, exponent: 0, radius: 0 }
    }

    pub(crate) const fn one() -> Self {
        Self { mid: IBig::ONE, exponent: 0, radius: 0 }
    }

    pub(crate) fn integer(n: i64) -> Self {
        Self { mid: IBig::from(n), exponent: 0, radius: 0 }
    }

    /// Exactly zero.
    pub(crate) fn is_zero(&self) -> bool {
        self.mid.is_zero() && self.radius == 0
    }

    /// Exactly one.
    fn is_one(&self) -> bool {
        self.exact_integer().is_some_and(|n| n.is_one())
    }

    pub(crate) fn neg(self) -> Self {
        Self { mid: -self.mid, ..self }
    }

    pub(crate) fn half(self) -> Self {
        Self { exponent: self.exponent - 1, ..self }
    }

    pub(crate) fn contains_zero(&self) -> bool {
        self.mid.clone().unsigned_abs() <= UBig::from(self.radius)
    }

    /// The sign, if the ball has one. Exact zero has none.
    pub(crate) fn sign(&self) -> Option<Sign> {
        if self.contains_zero() { None } else { Some(self.mid.sign()) }
    }

    pub(crate) fn abs(self) -> Self {
        Self { mid: self.mid.unsigned_abs().into(), ..self }
    }

    /// An exponent of two that is above the absolute value of all members.
    pub(crate) fn top(&self) -> i64 {
        let radius = i64::from(64 - self.radius.leading_zeros());
        let bits = bits(&self.mid);
        let sum = if radius == 0 { bits } else { bits.max(radius) + 1 };
        sum + self.exponent
    }

    /// An exponent of two that is not above the absolute value of any member, if zero is not one.
    pub(crate) fn bottom(&self) -> Option<i64> {
        if self.contains_zero() {
            return None;
        }
        let low = self.mid.clone().unsigned_abs() - UBig::from(self.radius);
        Some(low.bit_len() as i64 - 1 + self.exponent)
    }

    /// Compares two balls that do not overlap.
    pub(crate) fn compare(
        &self,
        other: &Self,
        context: &mut Context<'_>,
    ) -> Result<Option<Ordering>, BallError> {
        let difference = context.sub(self, other)?;
        Ok(difference
            .sign()
            .map(|sign| if sign == Sign::Positive { Ordering::Greater } else { Ordering::Less }))
    }

    /// The value, if it is known to be an integer of moderate size.
    pub(crate) fn exact_integer(&self) -> Option<IBig> {
        if self.radius != 0 || self.top() > 64 {
            return None;
        }
        let value = shifted(&self.mid, self.exponent);
        (self.exponent >= 0 || shifted(&value, -self.exponent) == self.mid).then_some(value)
    }

    /// Whether the value is exactly an integer over two to the power of `shares`.
    pub(crate) fn is_share(&self, shares: i64) -> bool {
        Self { exponent: self.exponent + shares, ..self.clone() }.exact_integer().is_some()
    }

    /// A text of the leading bits, the same for two balls that agree to that many bits. For hashing.
    pub(crate) fn leading(&self, keep: i64) -> (IBig, i64) {
        let drop = bits(&self.mid) - keep;
        // Half a unit is added, so that two balls on the two sides of a round number agree.
        let half = if drop > 0 { IBig::ONE << ((drop - 1) as usize) } else { IBig::ZERO };
        let mut mid = shifted(&(&self.mid + half), -drop);
        let mut exponent = self.exponent + drop;
        while !mid.is_zero() && !mid.bit(0) {
            mid >>= 1usize;
            exponent += 1;
        }
        (mid, exponent)
    }
}

/// `arctan(1/n)` or `artanh(1/n)` in fixed point.
fn inverse_series(n: u32, alternating: bool) -> IBig {
    let mut power = (UBig::ONE << (CONSTANT_BITS as usize + 64)) / n;
    let square = n * n;
    let mut sum = IBig::from(power.clone());
    let mut k = 3u32;
    let mut minus = alternating;
    loop {
        power /= square;
        if power.is_zero() {
            return sum;
        }
        let term = IBig::from(&power / k);
        if minus {
            sum -= term;
        } else {
            sum += term;
        }
        minus ^= alternating;
        k += 2;
    }
}

/// Pi in fixed point, by Machin's formula.
fn pi() -> &'static IBig {
    static PI: OnceLock<IBig> = OnceLock::new();
    PI.get_or_init(|| (inverse_series(5, true) * 16 - inverse_series(239, true) * 4) >> 64usize)
}

/// The natural logarithm of two in fixed point, by a formula of the same kind.
fn ln2() -> &'static IBig {
    static LN2: OnceLock<IBig> = OnceLock::new();
    LN2.get_or_init(|| {
        (inverse_series(26, false) * 18 - inverse_series(4801, false) * 2 + inverse_series(8749, false) * 8)
            >> 64usize
    })
}

#[cfg(test)]
#[allow(clippy::cast_precision_loss)]
mod tests {
    use super::*;

    #[test]
    fn constants_have_all_their_bits() {
        let (pi, log) = (pi().bit_len() as i64, ln2().bit_len() as i64);
        assert_eq!((pi, log), (CONSTANT_BITS + 2, CONSTANT_BITS));
    }

    fn near(ball: &Ball, value: f64) {
        let shift = ball.exponent;
        let mid = ball.mid.to_f64().value() * 2f64.powi(shift as i32);
        assert!((mid - value).abs() <= value.abs() * 1e-14 + 1e-14, "{mid} is not {value}");
        assert!(ball.radius < 1 << 40);
        let size = 2f64.powi(shift as i32) * ball.radius as f64;
        assert!(size < 1e-25, "radius {size}");
    }

    #[test]
    fn functions_agree_with_doubles() {
        for precision in [128, 512] {
            let mut work = Work::new();
            let mut context = Context { precision, work: &mut work };
            for (num, den) in [(1i64, 3u64), (7, 2), (-5, 4), (1, 1000), (123, 10), (-1, 7)] {
                let value = RBig::from_parts(num.into(), den.into());
                let x = num as f64 / den as f64;
                let ball = context.rational(&value).unwrap();
                near(&context.exp(&ball).unwrap(), x.exp());
                let (sin, cos) = context.sin_cos(&ball).unwrap();
                near(&sin, x.sin());
                near(&cos, x.cos());
                near(&context.atan(&ball).unwrap(), x.atan());
                if x > 0.0 {
                    near(&context.ln(&ball).unwrap(), x.ln());
                    near(&context.root(&ball, 2).unwrap(), x.sqrt());
                    near(&context.root(&ball, 3).unwrap(), x.cbrt());
                }
                if x.abs() < 1.0 {
                    near(&context.asin(&ball).unwrap(), x.asin());
                }
            }
            near(&context.pi().unwrap(), std::f64::consts::PI);
        }
    }

    #[test]
    fn identities_hold_within_the_radius() {
        let mut work = Work::new();
        let mut context = Context { precision: 512, work: &mut work };
        for (num, den) in [(1i64, 3u64), (7, 2), (1, 1_000_000), (123, 10), (99, 100)] {
            let x = context.rational(&RBig::from_parts(num.into(), den.into())).unwrap();
            let ln = context.ln(&x).unwrap();
            let back = context.exp(&ln).unwrap();
            assert!(context.sub(&back, &x).unwrap().contains_zero());
            let (sin, cos) = context.sin_cos(&x).unwrap();
            let (s2, c2) = (context.mul(&sin, &sin).unwrap(), context.mul(&cos, &cos).unwrap());
            let one = context.add(&s2, &c2).unwrap();
            assert!(context.sub(&one, &Ball::one()).unwrap().contains_zero());
            let root = context.root(&x, 5).unwrap();
            let fifth = context.pow(&root, 5).unwrap();
            assert!(context.sub(&fifth, &x).unwrap().contains_zero());
        }
    }

    #[test]
    fn small_numbers_keep_their_size() {
        let mut work = Work::new();
        let mut context = Context { precision: 128, work: &mut work };
        let tiny = context.exp(&Ball::integer(-1000)).unwrap();
        assert_eq!(tiny.sign(), Some(Sign::Positive));
        let (sin, _) = context.sin_cos(&tiny).unwrap();
        assert_eq!(sin.sign(), Some(Sign::Positive));
    }
}
