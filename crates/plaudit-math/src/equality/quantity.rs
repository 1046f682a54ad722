//! Equality of quantities: units, percentages, rounded decimals, and numbers within a tolerance.

use dashu_int::{IBig, Sign, UBig};
use dashu_ratio::RBig;

use super::{Comparer, DOUBLE_DIGITS, ProofMethod};
use crate::expr::{Expr, Node, Tree};
use crate::limits::NoValue;
use crate::number;
use crate::numeric;
use crate::options::{Percent, Units};
use crate::unit;
use crate::value::{Decimal, Quantity};

/// Digits from which a rounded decimal stands for a value that does not terminate.
const MIN_ROUNDED_DIGITS: u32 = 8;
/// Digits from which one that is cut off does too.
const MIN_CUT_DIGITS: u32 = 10;

impl Comparer<'_> {
    pub(super) fn units_agree(&self, a: Option<&str>, b: Option<&str>) -> bool {
        match (self.options.units, a, b) {
            (Units::Ignore, ..) => true,
            (_, Some(a), Some(b)) => unit::agree(a, b),
            (Units::Strict, Some(_), None) | (Units::Strict, None, Some(_)) => false,
            _ => true,
        }
    }

    pub(super) fn quantities(
        &mut self,
        a: (&Tree, &Quantity),
        b: (&Tree, &Quantity),
    ) -> Result<bool, NoValue> {
        if !self.units_agree(a.1.unit.as_deref(), b.1.unit.as_deref()) {
            return Ok(false);
        }
        // `5 m` may be a product; against `5\text{ m}` it is a unit.
        for (with, without) in [(a, b), (b, a)] {
            if let (Some(unit), None) = (&with.1.unit, &without.1.unit)
                && let Some((number, letter)) = number_and_letter(without.0, without.1.expr)
                && unit::canonical(letter) == **unit
                && let Some(value) = with.0.rational(with.1.expr.root)
            {
                return Ok(value == number);
            }
        }
        for (with, without) in [(a, b), (b, a)] {
            if self.options.units != Units::Strict
                && without.1.unit.is_none()
                && let Some(number) = square_metres(with.0, with.1.expr)
                && let Some(value) = without.0.rational(without.1.expr.root)
            {
                return Ok(value == number);
            }
        }
        let (x, y) = ((a.0, a.1.expr, a.1.decimal), (b.0, b.1.expr, b.1.decimal));
        match (a.1.percent, b.1.percent) {
            (true, false) => self.percent(x, y),
            (false, true) => self.percent(y, x),
            _ => self.numbers(x, y),
        }
    }

    /// A percentage and a number.
    fn percent(
        &mut self,
        percentage: (&Tree, Expr, Option<Decimal>),
        other: (&Tree, Expr, Option<Decimal>),
    ) -> Result<bool, NoValue> {
        if self.options.percent == Percent::Lenient && self.numbers(percentage, other)? {
            return Ok(true);
        }
        let mut tree = percentage.0.clone();
        let hundred = tree.number(RBig::from(100u8))?;
        let root = tree.div(percentage.1.root, hundred, self.work)?;
        let first = percentage.1.first.min(root);
        let decimal = percentage
            .2
            .map(|decimal| Decimal { places: decimal.places + 2, significant: decimal.significant });
        self.numbers((&tree, Expr { first, root }, decimal), other)
    }

    /// Two expressions, of which one may be a rounded decimal.
    pub(super) fn numbers(
        &mut self,
        a: (&Tree, Expr, Option<Decimal>),
        b: (&Tree, Expr, Option<Decimal>),
    ) -> Result<bool, NoValue> {
        if let Some(tolerance) = &self.options.tolerance
            && (a.2.is_some() || b.2.is_some())
            && let Some(close) = self.close(tolerance, (a.0, a.1), (b.0, b.1))?
        {
            return Ok(close);
        }
        if let Some(same) = self.same_double(a, b)? {
            return Ok(same);
        }
        match (a.2, b.2) {
            (Some(decimal), None) => self.rounded((a.0, a.1), decimal, (b.0, b.1)),
            (None, Some(decimal)) => self.rounded((b.0, b.1), decimal, (a.0, a.1)),
            _ => self.exprs((a.0, a.1), (b.0, b.1)),
        }
    }

    /// Whether two numbers that end, of which one has the digits of a double, are at most one unit of the sixteenth apart:
    /// `0.1 + 0.2` is printed as `0.30000000000000004`.
    fn same_double(
        &mut self,
        a: (&Tree, Expr, Option<Decimal>),
        b: (&Tree, Expr, Option<Decimal>),
    ) -> Result<Option<bool>, NoValue> {
        // A unit of the sixteenth digit, as a power of ten.
        let unit = |form: Option<Decimal>| {
            let form = form.filter(|form| (DOUBLE_DIGITS..=DOUBLE_DIGITS + 1).contains(&form.significant))?;
            Some(i64::from(form.significant) - i64::from(form.places) - i64::from(DOUBLE_DIGITS))
        };
        let Some(unit) = unit(a.2).max(unit(b.2)) else { return Ok(None) };
        let (Some(x), Some(y)) = (a.0.rational(a.1.root), b.0.rational(b.1.root)) else { return Ok(None) };
        if !number::terminates(x) || !number::terminates(y) {
            return Ok(None);
        }
        self.how = self.how.max(ProofMethod::Exact);
        let distance = number::add(x, &-y.clone(), self.work)?;
        let distance = if distance.sign() == Sign::Negative { -distance } else { distance };
        Ok(Some(distance <= number::power_of_ten(unit, self.work)?))
    }

    /// Whether one of two numbers is within a relative tolerance of the other.
    fn close(
        &mut self,
        tolerance: &RBig,
        a: (&Tree, Expr),
        b: (&Tree, Expr),
    ) -> Result<Option<bool>, NoValue> {
        let abs = |value: &RBig| if value.sign() == Sign::Negative { -value.clone() } else { value.clone() };
        match (a.0.rational(a.1.root), b.0.rational(b.1.root)) {
            (Some(x), Some(y)) => {
                let size = abs(x).max(abs(y));
                let distance = number::add(x, &-y.clone(), self.work)?;
                Ok(Some(abs(&distance) <= number::mul(&size, tolerance, self.work)?))
            }
            (Some(value), None) => {
                let half = number::mul(&abs(value), tolerance, self.work)?;
                self.near(b, value, &half)
            }
            (None, Some(value)) => {
                let half = number::mul(&abs(value), tolerance, self.work)?;
                self.near(a, value, &half)
            }
            (None, None) => Ok(None),
        }
    }

    pub(super) fn near(
        &mut self,
        side: (&Tree, Expr),
        center: &RBig,
        half: &RBig,
    ) -> Result<Option<bool>, NoValue> {
        let occurs = side.0.occurs(side.1);
        if occurs.letters || occurs.big || occurs.infinity {
            return Ok(None);
        }
        self.how = ProofMethod::Numeric;
        numeric::within(side, center, half, self.key, self.work).map(Some)
    }

    /// A decimal number and an expression. Against a value that does not terminate a correctly rounded decimal of
    /// enough digits is equal.
    fn rounded(
        &mut self,
        decimal: (&Tree, Expr),
        form: Decimal,
        other: (&Tree, Expr),
    ) -> Result<bool, NoValue> {
        let Some(center) = decimal.0.rational(decimal.1.root) else { return self.exprs(decimal, other) };
        if form.significant < MIN_ROUNDED_DIGITS {
            return self.exprs(decimal, other);
        }
        let half =
            RBig::from_parts(IBig::ONE, UBig::from(if form.significant < MIN_CUT_DIGITS { 2u8 } else { 1 }));
        // Of a double that is printed with seventeen digits sixteen are those of its value.
        let seventeenth = i64::from(form.significant == DOUBLE_DIGITS + 1);
        let unit = number::power_of_ten(seventeenth - i64::from(form.places), self.work)?;
        let half = number::mul(&half, &unit, self.work)?;
        self.how = self.how.max(ProofMethod::Exact);
        match other.0.rational(other.1.root) {
            Some(value) if number::terminates(value) => Ok(value == center),
            Some(value) => {
                let distance = number::add(value, &-center.clone(), self.work)?;
                let distance = if distance.sign() == Sign::Negative { -distance } else { distance };
                Ok(distance <= half)
            }
            None => match self.near(other, center, &half)? {
                Some(near) => Ok(near),
                None => self.exprs(decimal, other),
            },
        }
    }
}

/// A product of a number and one letter.
fn number_and_letter(tree: &Tree, expr: Expr) -> Option<(&RBig, &str)> {
    let Node::Product(factors) = tree.node(expr.root) else { return None };
    let [a, b] = factors[..] else { return None };
    match (tree.node(a), tree.node(b)) {
        (Node::Letter(name), Node::Number(value)) | (Node::Number(value), Node::Letter(name)) => {
            Some((value, tree.name(*name)))
        }
        _ => None,
    }
}

/// The number of `50m^2` and `50m^3`, whose letter is the metre beside a number without a unit.
fn square_metres(tree: &Tree, expr: Expr) -> Option<&RBig> {
    let Node::Product(factors) = tree.node(expr.root) else { return None };
    let [a, b] = factors[..] else { return None };
    let (number, power) = match (tree.node(a), tree.node(b)) {
        (Node::Number(value), Node::Pow(base, power)) | (Node::Pow(base, power), Node::Number(value)) => {
            let metre = matches!(tree.node(*base), Node::Letter(name) if tree.name(*name) == "m");
            (value, tree.rational(*power).filter(|_| metre)?)
        }
        _ => return None,
    };
    matches!(number::small(power), Some(2 | 3)).then_some(number)
}
