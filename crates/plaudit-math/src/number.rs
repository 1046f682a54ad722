//! Exact arithmetic on rational numbers. Every operation checks the size of its result before it forms it.

use dashu_int::ops::{BitTest, Gcd, SquareRoot, UnsignedAbs};
use dashu_int::{IBig, Sign, UBig};
use dashu_ratio::RBig;

use crate::limits::{MAX_BITS, MAX_FACTORIAL, NoValue, Work};

/// Limbs of a numerator or denominator, at least one.
fn limbs(bits: usize) -> u64 {
    bits as u64 / 64 + 1
}

fn num_limbs(x: &RBig) -> u64 {
    limbs(x.numerator().bit_len())
}

fn den_limbs(x: &RBig) -> u64 {
    limbs(x.denominator().bit_len())
}

fn checked(x: RBig) -> Result<RBig, NoValue> {
    if x.numerator().bit_len() > MAX_BITS || x.denominator().bit_len() > MAX_BITS {
        return Err(NoValue::TooLarge);
    }
    Ok(x)
}

/// Cost of an addition or a multiplication, where the greatest common divisor of the result is the dear part.
fn pair_cost(a: &RBig, b: &RBig) -> u64 {
    let den = den_limbs(a) + den_limbs(b);
    let num = num_limbs(a) + num_limbs(b);
    if den <= 2 { num } else { num * den }
}

pub(crate) fn add(a: &RBig, b: &RBig, work: &mut Work) -> Result<RBig, NoValue> {
    work.spend(pair_cost(a, b))?;
    checked(a + b)
}

pub(crate) fn mul(a: &RBig, b: &RBig, work: &mut Work) -> Result<RBig, NoValue> {
    if a.numerator().bit_len() + b.numerator().bit_len() > MAX_BITS
        || a.denominator().bit_len() + b.denominator().bit_len() > MAX_BITS
    {
        return Err(NoValue::TooLarge);
    }
    // Two long integers cost less than the square of their limbs; half of it is a fair price.
    work.spend(pair_cost(a, b) + num_limbs(a) * num_limbs(b) / 2)?;
    Ok(a * b)
}

pub(crate) fn div(a: &RBig, b: &RBig, work: &mut Work) -> Result<RBig, NoValue> {
    if b.is_zero() {
        return Err(NoValue::Undefined);
    }
    let (above, below) = (a.numerator().bit_len(), a.denominator().bit_len());
    if above + b.denominator().bit_len() > MAX_BITS || below + b.numerator().bit_len() > MAX_BITS {
        return Err(NoValue::TooLarge);
    }
    work.spend(pair_cost(a, b) + num_limbs(a) * num_limbs(b) / 2)?;
    Ok(a / b)
}

/// `base` to an integer power.
pub(crate) fn pow(base: &RBig, exponent: &IBig, work: &mut Work) -> Result<RBig, NoValue> {
    if base.is_zero() {
        return match exponent.sign() {
            // Zero to the zero and to a negative power have no value that a marker would accept.
            _ if exponent.is_zero() => Err(NoValue::Undefined),
            Sign::Negative => Err(NoValue::Undefined),
            Sign::Positive => Ok(RBig::ZERO),
        };
    }
    if base.is_one() {
        return Ok(RBig::ONE);
    }
    if base.is_int() && base.numerator().clone().unsigned_abs().is_one() {
        return Ok(if exponent.bit(0) { base.clone() } else { RBig::ONE });
    }
    let Ok(count) = u64::try_from(exponent.unsigned_abs()) else { return Err(NoValue::TooLarge) };
    let bits = base.numerator().bit_len().max(base.denominator().bit_len()) as u64;
    // The result has at least (bits - 1) * count bits.
    if (bits - 1).max(1).saturating_mul(count) > MAX_BITS as u64 {
        return Err(NoValue::TooLarge);
    }
    let result_limbs = limbs((bits * count) as usize);
    work.spend(result_limbs * result_limbs / 16 + result_limbs)?;
    // Powers of coprime numbers are coprime, so nothing is left to reduce.
    let size = isize::try_from(count).map_err(|_| NoValue::TooLarge)?;
    checked(base.pow(if exponent.sign() == Sign::Negative { -size } else { size }))
}

/// The root of an integer, if it is an integer.
fn exact_root(n: &UBig, index: u32) -> Option<UBig> {
    if n.is_zero() || n.is_one() {
        return Some(n.clone());
    }
    if index as usize >= n.bit_len() {
        return None;
    }
    let root = if index == 2 { n.sqrt() } else { n.nth_root(index as usize) };
    (root.pow(index as usize) == *n).then_some(root)
}

/// The real root of a rational, if it is rational: the positive one, or the negative one of a negative number with an
/// odd index.
pub(crate) fn root(x: &RBig, index: u32, work: &mut Work) -> Result<Option<RBig>, NoValue> {
    if index == 0 {
        return Err(NoValue::Undefined);
    }
    if x.sign() == Sign::Negative && index.is_multiple_of(2) {
        return Ok(None);
    }
    let cost = num_limbs(x).max(den_limbs(x));
    // Square roots are as fast as divisions; other roots take several rounds of them.
    work.spend(if index == 2 { cost * cost / 4 } else { cost * cost * 3 } + 8)?;
    let Some(den) = exact_root(x.denominator(), index) else { return Ok(None) };
    let (sign, num) = x.numerator().clone().into_parts();
    let Some(num) = exact_root(&num, index) else { return Ok(None) };
    Ok(Some(RBig::from_parts(IBig::from_parts(sign, num), den)))
}

/// The number as a small count, if it is a whole one.
pub(crate) fn small(x: &RBig) -> Option<u32> {
    if !x.is_int() {
        return None;
    }
    u32::try_from(x.numerator().clone()).ok()
}

/// Product of the integers `low..=high`, halved in each step so that the factors stay balanced.
fn range_product(low: u64, high: u64) -> UBig {
    if low > high {
        return UBig::ONE;
    }
    if high - low < 8 {
        return (low..=high).fold(UBig::ONE, |product, n| product * UBig::from(n));
    }
    let middle = u64::midpoint(low, high);
    range_product(low, middle) * range_product(middle + 1, high)
}

pub(crate) fn factorial(x: &RBig, work: &mut Work) -> Result<RBig, NoValue> {
    if !x.is_int() || x.sign() == Sign::Negative {
        return Err(NoValue::Undefined);
    }
    let n = small(x).filter(|n| *n <= MAX_FACTORIAL).ok_or(NoValue::TooLarge)?;
    work.spend(u64::from(n) * 20)?;
    checked(RBig::from(range_product(2, u64::from(n))))
}

/// The number of subsets. For a negative or fractional upper argument the falling product.
pub(crate) fn binomial(n: &RBig, k: &RBig, work: &mut Work) -> Result<RBig, NoValue> {
    if !k.is_int() {
        return Err(NoValue::Undefined);
    }
    if k.sign() == Sign::Negative {
        return Ok(RBig::ZERO);
    }
    if n.is_int() && n.sign() == Sign::Positive && k > n {
        return Ok(RBig::ZERO);
    }
    let k = small(k).filter(|k| *k <= MAX_FACTORIAL).ok_or(NoValue::TooLarge)?;
    if let Some(n) = small(n) {
        if n > MAX_FACTORIAL {
            return if k <= 64 { falling(&RBig::from(n), k, work) } else { Err(NoValue::TooLarge) };
        }
        let k = k.min(n - k);
        work.spend(u64::from(k) * 40 + 1)?;
        let top = range_product(u64::from(n - k) + 1, u64::from(n));
        return checked(RBig::from(top / range_product(2, u64::from(k))));
    }
    if k > 64 {
        return Err(NoValue::TooLarge);
    }
    falling(n, k, work)
}

/// `n (n - 1) ... (n - k + 1) / k!`
fn falling(n: &RBig, k: u32, work: &mut Work) -> Result<RBig, NoValue> {
    let mut product = RBig::ONE;
    for step in 0..k {
        product = mul(&product, &add(n, &-RBig::from(step), work)?, work)?;
        product = div(&product, &RBig::from(step + 1), work)?;
    }
    Ok(product)
}

/// Greatest common divisor of two integers.
pub(crate) fn gcd(a: &RBig, b: &RBig, work: &mut Work) -> Result<RBig, NoValue> {
    if !a.is_int() || !b.is_int() {
        return Err(NoValue::Undefined);
    }
    work.spend(num_limbs(a) * num_limbs(b))?;
    if a.is_zero() && b.is_zero() {
        return Ok(RBig::ZERO);
    }
    Ok(RBig::from(a.numerator().clone().unsigned_abs().gcd(b.numerator().clone().unsigned_abs())))
}

/// Least common multiple of two integers.
pub(crate) fn lcm(a: &RBig, b: &RBig, work: &mut Work) -> Result<RBig, NoValue> {
    if a.is_zero() || b.is_zero() {
        return Ok(RBig::ZERO);
    }
    let divisor = gcd(a, b, work)?;
    let product = mul(a, b, work)?;
    let quotient = div(&product, &divisor, work)?;
    Ok(if quotient.sign() == Sign::Negative { -quotient } else { quotient })
}

/// Ten to a power, as a factor for decimals.
pub(crate) fn power_of_ten(exponent: i64, work: &mut Work) -> Result<RBig, NoValue> {
    pow(&RBig::from(10u8), &IBig::from(exponent), work)
}

/// Whether the decimal expansion terminates: the denominator has no prime factors but 2 and 5.
pub(crate) fn terminates(x: &RBig) -> bool {
    let mut den = x.denominator().clone();
    let two = den.trailing_zeros().map_or(0, |zeros| zeros);
    den >>= two;
    let _ = den.remove(&UBig::from(5u8));
    den.is_one()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn r(num: i64, den: u64) -> RBig {
        RBig::from_parts(IBig::from(num), UBig::from(den))
    }

    #[test]
    fn powers_check_their_size_first() {
        let mut work = Work::new();
        assert_eq!(pow(&r(2, 3), &IBig::from(-3), &mut work), Ok(r(27, 8)));
        assert_eq!(pow(&r(2, 1), &IBig::from(1_000_000_000i64), &mut work), Err(NoValue::TooLarge));
        assert_eq!(pow(&r(-1, 1), &IBig::from(1_000_000_001i64), &mut work), Ok(r(-1, 1)));
        assert_eq!(pow(&r(0, 1), &IBig::from(-1), &mut work), Err(NoValue::Undefined));
    }

    #[test]
    fn roots_are_exact_or_none() {
        let mut work = Work::new();
        assert_eq!(root(&r(9, 4), 2, &mut work), Ok(Some(r(3, 2))));
        assert_eq!(root(&r(2, 1), 2, &mut work), Ok(None));
        assert_eq!(root(&r(-8, 27), 3, &mut work), Ok(Some(r(-2, 3))));
        assert_eq!(root(&r(-4, 1), 2, &mut work), Ok(None));
    }

    #[test]
    fn binomials_and_factorials() {
        let mut work = Work::new();
        assert_eq!(binomial(&r(10, 1), &r(5, 1), &mut work), Ok(r(252, 1)));
        assert_eq!(binomial(&r(5, 1), &r(10, 1), &mut work), Ok(RBig::ZERO));
        assert_eq!(binomial(&r(1, 2), &r(2, 1), &mut work), Ok(r(-1, 8)));
        assert_eq!(factorial(&r(5, 1), &mut work), Ok(r(120, 1)));
        assert_eq!(factorial(&r(6000, 1), &mut work), Err(NoValue::TooLarge));
        assert_eq!(factorial(&r(-1, 1), &mut work), Err(NoValue::Undefined));
    }

    #[test]
    fn terminating_decimals() {
        assert!(terminates(&r(7, 20)));
        assert!(!terminates(&r(1, 3)));
        assert!(terminates(&r(4, 1)));
    }
}
