//! Equality of two values. Symmetric, deterministic and bounded in work.

mod quantity;
mod region;

use dashu_int::{IBig, Sign, UBig};
use dashu_ratio::RBig;

use self::region::is_region;
use crate::expr::{Expr, Id, Node, Tree};
use crate::identity_test::{self, Decision, Key};
use crate::lex::Rel;
use crate::limits::{NoValue, Work};
use crate::number;
use crate::numeric;
use crate::options::{Options, Order};
use crate::value::{Answer, Interval, Named, Quantity, Value};

/// Digits from which an answer may say its value and the rounding of it.
const MIN_SAID_DIGITS: u32 = 3;
/// Digits of a double as programs print it. Two of them may differ in the sixteenth.
pub(crate) const DOUBLE_DIGITS: u32 = 16;

/// A value and the tree that holds its expressions.
type Side<'a> = (&'a Tree, &'a Value);

/// How two values were compared: the costliest proof that was needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ProofMethod {
    /// As texts, or by their shapes alone.
    Text,
    /// As exact rational numbers.
    Exact,
    /// By an identity in prime fields.
    Identity,
    /// By enclosures of real numbers.
    Numeric,
}

impl ProofMethod {
    /// The stable name of the method.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Exact => "exact",
            Self::Identity => "identity",
            Self::Numeric => "numeric",
        }
    }
}

/// One comparison: the secret points, the rules, the work that is left and the proofs that were needed.
pub(crate) struct Comparer<'a> {
    pub(crate) key: &'a Key,
    pub(crate) options: &'a Options,
    pub(crate) work: &'a mut Work,
    pub(crate) how: ProofMethod,
    /// The tree of the reference.
    pub(crate) own: Option<&'a Tree>,
}

/// What a chain of equalities says: its value, and the rounding that it ends with.
#[derive(Clone, Copy)]
struct Chained<'v> {
    exact: &'v Value,
    rounded: Option<&'v Value>,
}

impl Comparer<'_> {
    /// Whether two values are equal.
    pub(crate) fn equal(&mut self, a: Side<'_>, b: Side<'_>) -> Result<bool, NoValue> {
        self.work.spend(4)?;
        match (a.1, b.1) {
            (Value::Named(x), Value::Named(y)) => self.both_named((a.0, x), (b.0, y)),
            (Value::Named(x), _) => self.one_named((a.0, x), b),
            (_, Value::Named(y)) => self.one_named((b.0, y), a),
            (Value::Quantity(x), Value::Quantity(y)) => self.quantities((a.0, x), (b.0, y)),
            (Value::Measured(x, unit), Value::Measured(y, other)) => {
                Ok(self.units_agree(Some(unit), Some(other)) && self.equal((a.0, x), (b.0, y))?)
            }
            (Value::Measured(x, _), _) => self.equal((a.0, x), b),
            (_, Value::Measured(y, _)) => self.equal(a, (b.0, y)),
            (Value::Text(x), Value::Text(y)) => Ok(x == y),
            (Value::Text(x), Value::Quantity(y)) => Ok(letter_is(b.0, y, x)),
            (Value::Quantity(x), Value::Text(y)) => Ok(letter_is(a.0, x, y)),
            (Value::Based { digits, base }, Value::Based { digits: other, base: other_base }) => {
                Ok(digits == other && base == other_base)
            }
            (Value::Matrix { columns, cells }, Value::Matrix { columns: other, cells: others }) => {
                Ok(columns == other && self.in_order(a.0, cells, b.0, others)?)
            }
            (Value::Matrix { columns: 1, cells }, Value::Tuple(parts)) => {
                self.in_order(a.0, cells, b.0, parts)
            }
            (Value::Tuple(parts), Value::Matrix { columns: 1, cells }) => {
                self.in_order(a.0, parts, b.0, cells)
            }
            (Value::Ratio(parts), Value::Quantity(_)) => self.ratio_is((a.0, parts), b),
            (Value::Quantity(_), Value::Ratio(parts)) => self.ratio_is((b.0, parts), a),
            (Value::Relation(..), Value::Relation(..)) => match (self.identity(a)?, self.identity(b)?) {
                (Some(x), Some(y)) => self.equal((a.0, x), (b.0, y)),
                _ => self.relations(a, b),
            },
            (Value::Relation(..), Value::Quantity(_)) => match self.identity(a)? {
                Some(value) => self.equal((a.0, value), b),
                None => Ok(false),
            },
            (Value::Quantity(_), Value::Relation(..)) => match self.identity(b)? {
                Some(value) => self.equal(a, (b.0, value)),
                None => Ok(false),
            },
            (Value::Tuple(parts), Value::Tuple(others)) | (Value::Ratio(parts), Value::Ratio(others)) => {
                self.in_order(a.0, parts, b.0, others)
            }
            (Value::List(parts), Value::List(others)) => self.lists((a.0, parts), (b.0, others)),
            (Value::List(parts), Value::Tuple(others)) => self.list_is_tuple((a.0, parts), (b.0, others)),
            (Value::Tuple(others), Value::List(parts)) => self.list_is_tuple((b.0, parts), (a.0, others)),
            (Value::Set(parts), Value::List(others)) | (Value::List(parts), Value::Set(others)) => {
                let (x, y) = (members((a.0, parts)), members((b.0, others)));
                // Values of different unknowns are no set.
                let unknowns = |list: &[Side<'_>]| all_named(list) && different_names(list);
                Ok(!unknowns(&x) && !unknowns(&y) && self.same_members(&x, &y)?)
            }
            (Value::Set(parts), Value::Quantity(_)) => self.set_of_one((a.0, parts), b),
            (Value::Quantity(_), Value::Set(parts)) => self.set_of_one((b.0, parts), a),
            (Value::Empty, Value::Empty) => Ok(true),
            _ if is_region(a.1) || is_region(b.1) => self.regions(a, b),
            _ => Ok(false),
        }
    }

    /// Whether one answer is a list of spellings with "or" between them, and all of them equal the other one.
    pub(crate) fn is_either(&mut self, a: &Answer, b: &Answer) -> bool {
        let (parts, other) = match (&a.value, &b.value) {
            (Value::List(parts), other) if a.either && !b.either => ((&a.tree, parts), (&b.tree, other)),
            (other, Value::List(parts)) if b.either && !a.either => ((&b.tree, parts), (&a.tree, other)),
            _ => return false,
        };
        !matches!(other.1, Value::List(_))
            && parts.1.iter().all(|part| self.equal((parts.0, part), other) == Ok(true))
    }

    fn set_of_one(&mut self, set: (&Tree, &[Value]), other: Side<'_>) -> Result<bool, NoValue> {
        match set.1 {
            // A set in a set is another thing.
            [one] if !matches!(one, Value::Set(_)) => self.equal((set.0, one), other),
            _ => Ok(false),
        }
    }

    fn in_order(&mut self, a: &Tree, x: &[Value], b: &Tree, y: &[Value]) -> Result<bool, NoValue> {
        if x.len() != y.len() {
            return Ok(false);
        }
        for (left, right) in x.iter().zip(y) {
            if !self.equal((a, left), (b, right))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A ratio of two numbers and their quotient. A time of day is no quotient.
    fn ratio_is(&mut self, ratio: (&Tree, &[Value]), other: Side<'_>) -> Result<bool, NoValue> {
        let [above, below] = ratio.1 else { return Ok(false) };
        let (Some(above), Some(below)) = (above.expr(), below.expr()) else { return Ok(false) };
        let Some(value) = other.1.expr().and_then(|expr| other.0.rational(expr.root)) else {
            return Ok(false);
        };
        let (Some(above), Some(below)) = (ratio.0.rational(above.root), ratio.0.rational(below.root)) else {
            return Ok(false);
        };
        if below.is_zero() || value.is_int() {
            return Ok(false);
        }
        Ok(number::div(above, below, self.work)? == *value)
    }

    // Names.

    fn both_named(&mut self, a: (&Tree, &Named), b: (&Tree, &Named)) -> Result<bool, NoValue> {
        if let (Some(x), Some(y)) = (&a.1.name, &b.1.name)
            && x != y
        {
            if let (Some(_), Some(_)) = (a.1.letter, b.1.letter)
                && (has_letters(a.0, a.1) || has_letters(b.0, b.1))
                && let (Some(x), Some(y)) = (self.equation_of(a)?, self.equation_of(b)?)
            {
                return self.proportional((&x.0, x.1), (&y.0, y.1));
            }
            // Two different letters are two different unknowns; a letter may abbreviate a longer name.
            let single = |name: &str| {
                !name.contains(['(', '/', ',', '|', ' '])
                    && name.split('_').next().is_some_and(|stem| stem.chars().count() == 1)
            };
            if single(x) == single(y) {
                return Ok(false);
            }
        }
        let (Some(x), Some(y)) = (self.value_of(a)?, self.value_of(b)?) else { return Ok(false) };
        Ok(self.equal((a.0, x.exact), (b.0, y.exact))?
            || self.is_rounded(a.0, x, (b.0, y.rounded.unwrap_or(y.exact)))?
            || self.is_rounded(b.0, y, (a.0, x.exact))?)
    }

    fn one_named(&mut self, named: (&Tree, &Named), other: Side<'_>) -> Result<bool, NoValue> {
        if let Value::Relation(..) = other.1 {
            return self.named_is_relation(named, other);
        }
        match self.value_of(named)? {
            Some(value) => {
                Ok(self.equal((named.0, value.exact), other)? || self.is_rounded(named.0, value, other)?)
            }
            None => Ok(false),
        }
    }

    /// The value of a chain of equalities, if it is true.
    fn value_of<'v>(&mut self, named: (&Tree, &'v Named)) -> Result<Option<Chained<'v>>, NoValue> {
        let Some((last, mut rest)) = named.1.members.split_last() else { return Ok(None) };
        let (mut exact, mut rounded) = (last, named.1.rounded.as_ref());
        // A chain may end with the rounding of its value: `8/3 = 2.667`.
        if let Some((previous, earlier)) = rest.split_last()
            && !self.equal((named.0, previous), (named.0, last))?
        {
            (exact, rest) = (previous, earlier);
            rounded = Some(last);
            let is_decimal =
                matches!(last, Value::Quantity(Quantity { decimal: Some(form), .. }) if form.places > 0);
            if !is_decimal || !self.rounds(named.0, exact, last)? {
                return Ok(None);
            }
        }
        for member in rest {
            if !self.equal((named.0, member), (named.0, exact))? {
                return Ok(None);
            }
        }
        Ok(Some(Chained { exact, rounded }))
    }

    /// Whether a value is the rounded number that a chain ends with.
    fn is_rounded(&mut self, tree: &Tree, chain: Chained<'_>, other: Side<'_>) -> Result<bool, NoValue> {
        let Some(rounded) = chain.rounded else { return Ok(false) };
        Ok(self.equal((tree, rounded), other)? && self.rounds(tree, chain.exact, rounded)?)
    }

    /// Whether a number is the rounding of a value. An answer needs three digits and a value that no decimal is; what a
    /// reference says is taken for meant.
    fn rounds(&mut self, tree: &Tree, exact: &Value, rounded: &Value) -> Result<bool, NoValue> {
        let (Value::Quantity(exact), Value::Quantity(rounded)) = (exact, rounded) else { return Ok(false) };
        let Some(mut center) = tree.rational(rounded.expr.root).cloned() else { return Ok(false) };
        let places = rounded.decimal.map_or(0, |decimal| decimal.places);
        let half = RBig::from_parts(IBig::ONE, UBig::from(2u8));
        let mut unit = number::mul(&half, &number::power_of_ten(-i64::from(places), self.work)?, self.work)?;
        if rounded.percent && !exact.percent {
            let hundred = RBig::from(100u8);
            center = number::div(&center, &hundred, self.work)?;
            unit = number::div(&unit, &hundred, self.work)?;
        }
        let trusted = self.own.is_some_and(|own| std::ptr::eq(own, tree));
        let ends = tree.rational(exact.expr.root).is_some_and(number::terminates);
        let digits = rounded.decimal.map_or(0, |decimal| if places > 0 { decimal.significant } else { 0 });
        if !trusted && (ends || digits < MIN_SAID_DIGITS) {
            return Ok(false);
        }
        match tree.rational(exact.expr.root) {
            Some(value) => {
                let distance = number::add(value, &-center, self.work)?;
                Ok((if distance.sign() == Sign::Negative { -distance } else { distance }) <= unit)
            }
            None => Ok(self.near((tree, exact.expr), &center, &unit)? == Some(true)),
        }
    }

    /// `name = value` as an expression that is zero, in a tree of its own.
    fn equation_of(&mut self, named: (&Tree, &Named)) -> Result<Option<(Tree, Expr)>, NoValue> {
        let Some(letter) = named.1.letter else { return Ok(None) };
        let Some(value) = self.value_of(named)?.and_then(|value| value.exact.expr()) else { return Ok(None) };
        let mut tree = named.0.clone();
        let difference = tree.difference(letter, value, self.work)?;
        Ok(Some((tree, difference)))
    }

    fn named_is_relation(&mut self, named: (&Tree, &Named), other: Side<'_>) -> Result<bool, NoValue> {
        let Value::Relation(sides, relations) = other.1 else { return Ok(false) };
        let ([_, _], [relation]) = (&sides[..], &relations[..]) else { return Ok(false) };
        if let [Value::Reals(intervals)] = &named.1.members[..] {
            return self.interval_is_relation(named, intervals, other, *relation);
        }
        // `3x = 6` does not say what x is, so only an equation between letters counts.
        if *relation != Rel::Equal || !has_letters(named.0, named.1) {
            return Ok(false);
        }
        let Some(equation) = self.equation_of(named)? else { return Ok(false) };
        let Some(side) = self.difference_of(other)? else { return Ok(false) };
        self.proportional((&equation.0, equation.1), (&side.0, side.1))
    }

    /// A half line and an inequality, as `x > 5` and `-x < -5`.
    fn interval_is_relation(
        &mut self,
        named: (&Tree, &Named),
        intervals: &[Interval],
        other: Side<'_>,
        relation: Rel,
    ) -> Result<bool, NoValue> {
        let (Some(letter), [interval]) = (named.1.letter, intervals) else { return Ok(false) };
        let mut tree = named.0.clone();
        let above = tree.infinity(interval.high.root) == Some(Sign::Positive);
        let below = tree.infinity(interval.low.root) == Some(Sign::Negative);
        let (own, difference) = match (above, below) {
            (true, false) => (
                if interval.low_closed { Rel::GreaterEqual } else { Rel::Greater },
                tree.difference(letter, interval.low, self.work)?,
            ),
            (false, true) => (
                if interval.high_closed { Rel::LessEqual } else { Rel::Less },
                tree.difference(letter, interval.high, self.work)?,
            ),
            _ => return Ok(false),
        };
        let Some(side) = self.difference_of(other)? else { return Ok(false) };
        self.inequalities((&tree, difference, own), (&side.0, side.1, relation))
    }

    // Relations.

    /// The last side of an identity, which holds whatever its letters are: it says what its sides are worth.
    fn identity<'v>(&mut self, side: (&Tree, &'v Value)) -> Result<Option<&'v Value>, NoValue> {
        let Value::Relation(sides, relations) = side.1 else { return Ok(None) };
        let Some((last, rest)) = sides.split_last() else { return Ok(None) };
        let plain = |side: &Value| side.expr().is_some();
        if !relations.iter().all(|relation| *relation == Rel::Equal) || !sides.iter().all(plain) {
            return Ok(None);
        }
        for other in rest {
            if !self.equal((side.0, other), (side.0, last))? {
                return Ok(None);
            }
        }
        Ok(Some(last))
    }

    /// The difference of the two sides of a relation, in a tree of its own.
    fn difference_of(&mut self, side: Side<'_>) -> Result<Option<(Tree, Expr)>, NoValue> {
        let Value::Relation(values, _) = side.1 else { return Ok(None) };
        let [left, right] = &values[..] else { return Ok(None) };
        let (Some(left), Some(right)) = (left.expr(), right.expr()) else { return Ok(None) };
        let mut tree = side.0.clone();
        let difference = tree.difference(left, right, self.work)?;
        Ok(Some((tree, difference)))
    }

    fn relations(&mut self, a: Side<'_>, b: Side<'_>) -> Result<bool, NoValue> {
        let (Value::Relation(x, ops), Value::Relation(y, others)) = (a.1, b.1) else { return Ok(false) };
        if ops.len() != others.len() {
            return Ok(false);
        }
        if let ([op], [other]) = (&ops[..], &others[..]) {
            let (left, right) = (self.difference_of(a)?, self.difference_of(b)?);
            if let (Some(left), Some(right)) = (left, right) {
                return self.inequalities((&left.0, left.1, *op), (&right.0, right.1, *other));
            }
        }
        if ops == others && self.in_order(a.0, x, b.0, y)? {
            return Ok(true);
        }
        // The same chain from its other end.
        let turned: Vec<Rel> = others.iter().rev().map(|op| turned(*op)).collect();
        if *ops != turned || x.len() != y.len() {
            return Ok(false);
        }
        for (left, right) in x.iter().zip(y.iter().rev()) {
            if !self.equal((a.0, left), (b.0, right))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Two statements about the sign of an expression.
    fn inequalities(&mut self, a: (&Tree, Expr, Rel), b: (&Tree, Expr, Rel)) -> Result<bool, NoValue> {
        let same = a.2 == b.2;
        if !same && a.2 != turned(b.2) {
            return Ok(false);
        }
        if !self.proportional((a.0, a.1), (b.0, b.1))? {
            return Ok(false);
        }
        if matches!(a.2, Rel::Equal | Rel::NotEqual | Rel::Approx) {
            return Ok(true);
        }
        for round in 0..10 {
            let left = numeric::sign((a.0, a.1), self.key, round, self.work);
            let right = numeric::sign((b.0, b.1), self.key, round, self.work);
            if let (Some(left), Some(right)) = (left, right) {
                return Ok((left == right) == same);
            }
        }
        Err(NoValue::Undecided)
    }

    fn proportional(&mut self, a: (&Tree, Expr), b: (&Tree, Expr)) -> Result<bool, NoValue> {
        Ok(identity_test::proportional(a, b, self.key, self.work)? == Some(true))
    }

    /// Two expressions, cheapest proof first: exact rationals, prime fields, balls.
    pub(crate) fn exprs(&mut self, a: (&Tree, Expr), b: (&Tree, Expr)) -> Result<bool, NoValue> {
        self.work.spend(2)?;
        if let (Some(x), Some(y)) = (a.0.rational(a.1.root), b.0.rational(b.1.root)) {
            self.how = self.how.max(ProofMethod::Exact);
            return Ok(x == y);
        }
        match (a.0.infinity(a.1.root), b.0.infinity(b.1.root)) {
            (None, None) => {}
            (x, y) => return Ok(x == y),
        }
        let (left, right) = (a.0.occurs(a.1), b.0.occurs(b.1));
        if left.big != right.big {
            return Err(NoValue::Unsupported);
        }
        if !left.big && (left.infinity || right.infinity) {
            return Err(NoValue::Undefined);
        }
        let letters = left.letters || right.letters;
        self.how = self.how.max(ProofMethod::Identity);
        match identity_test::compare(a, b, self.key, self.work)? {
            Decision::Equal => return Ok(true),
            Decision::Different => return Ok(false),
            Decision::EqualIfDefined if letters || left.big => return Ok(true),
            // A constant must have a value before it can be equal: the tangent of a right angle has none.
            Decision::EqualIfDefined => {
                let defined = numeric::is_defined(a, self.key, self.work)?
                    && numeric::is_defined(b, self.key, self.work)?;
                return if defined { Ok(true) } else { Err(NoValue::Undefined) };
            }
            Decision::Open => {}
        }
        if left.big {
            return Ok(false);
        }
        self.how = ProofMethod::Numeric;
        if letters {
            numeric::functions(a, b, left.imaginary || right.imaginary, self.key, self.work)
        } else {
            numeric::constants(a, b, self.key, self.work)
        }
    }

    // Collections.

    fn lists(&mut self, a: (&Tree, &[Value]), b: (&Tree, &[Value])) -> Result<bool, NoValue> {
        let (x, y) = (members(a), members(b));
        // Solutions that are tuples form a set.
        let tuples = |list: &[Side<'_>]| list.iter().all(|side| matches!(side.1, Value::Tuple(_)));
        if self.options.order == Order::Auto && tuples(&x) && tuples(&y) {
            return self.same_members(&x, &y);
        }
        if x.len() != y.len() {
            return Ok(false);
        }
        let (x_named, y_named) = (all_named(&x), all_named(&y));
        if x_named && y_named {
            return self.matched(&x, &y, true);
        }
        // Named values and bare ones: the names say which is which.
        if (x_named && different_names(&x))
            || (y_named && different_names(&y))
            || self.options.order == Order::Strict
        {
            for (left, right) in x.iter().zip(&y) {
                if !self.equal((left.0, left.1), (right.0, right.1))? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        self.matched(&x, &y, false)
    }

    fn list_is_tuple(&mut self, list: (&Tree, &[Value]), tuple: (&Tree, &[Value])) -> Result<bool, NoValue> {
        let (x, y) = (members(list), tuple.1);
        if x.len() != y.len() {
            return Ok(false);
        }
        for (left, right) in x.iter().zip(y) {
            if !self.equal((left.0, left.1), (tuple.0, right))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether every element of one list has a partner of its own in the other.
    fn matched(&mut self, x: &[Side<'_>], y: &[Side<'_>], by_name: bool) -> Result<bool, NoValue> {
        let mut used = vec![false; y.len()];
        'elements: for (index, left) in x.iter().enumerate() {
            // The element at the same place first: most lists are in the same order.
            let order = std::iter::once(index).chain((0..y.len()).filter(|other| *other != index));
            for other in order {
                if used[other] {
                    continue;
                }
                if by_name && name_of(left.1) != name_of(y[other].1) {
                    continue;
                }
                if self.equal(*left, y[other])? {
                    used[other] = true;
                    continue 'elements;
                }
            }
            return Ok(false);
        }
        Ok(true)
    }

    /// Whether two collections have the same members, however often.
    fn same_members(&mut self, x: &[Side<'_>], y: &[Side<'_>]) -> Result<bool, NoValue> {
        Ok(self.contained(x, y)? && self.contained(y, x)?)
    }

    fn contained(&mut self, x: &[Side<'_>], y: &[Side<'_>]) -> Result<bool, NoValue> {
        let is_set = |side: &Side<'_>| matches!(side.1, Value::Set(_));
        'members: for (index, left) in x.iter().enumerate() {
            // The member at the same place first: most collections are in the same order.
            for right in y.get(index).into_iter().chain(y) {
                if is_set(left) == is_set(right) && self.equal(*left, *right)? {
                    continue 'members;
                }
            }
            return Ok(false);
        }
        Ok(true)
    }
}

fn turned(relation: Rel) -> Rel {
    match relation {
        Rel::Less => Rel::Greater,
        Rel::LessEqual => Rel::GreaterEqual,
        Rel::Greater => Rel::Less,
        Rel::GreaterEqual => Rel::LessEqual,
        other => other,
    }
}

fn has_letters(tree: &Tree, named: &Named) -> bool {
    named.members.iter().any(|member| member.expr().is_some_and(|expr| tree.occurs(expr).letters))
}

/// Whether an expression is one letter with that name, or the letters of a word in their order.
fn letter_is(tree: &Tree, quantity: &Quantity, text: &str) -> bool {
    match tree.node(quantity.expr.root) {
        Node::Letter(name) => tree.name(*name).to_lowercase() == text,
        Node::E => text == "e",
        Node::I => text == "i",
        Node::Product(factors) => {
            let letter = |id: &Id| match tree.node(*id) {
                Node::Letter(name) => Some(tree.name(*name).to_lowercase()),
                _ => None,
            };
            factors.iter().map(letter).collect::<Option<String>>().is_some_and(|word| word == text)
        }
        _ => false,
    }
}

fn name_of(value: &Value) -> Option<&str> {
    match value {
        Value::Named(named) => named.name.as_deref(),
        _ => None,
    }
}

/// The elements of a list. In `x = 1, 2` the name stands for all of them.
fn members<'a>(list: (&'a Tree, &'a [Value])) -> Vec<Side<'a>> {
    let named = list.1.iter().filter(|value| name_of(value).is_some()).count();
    let leading = named == 1 && list.1.len() > 1;
    list.1
        .iter()
        .map(|value| match value {
            Value::Named(inner) if leading && inner.members.len() == 1 => (list.0, &inner.members[0]),
            _ => (list.0, value),
        })
        .collect()
}

fn all_named(list: &[Side<'_>]) -> bool {
    list.iter().all(|side| name_of(side.1).is_some())
}

/// Whether the names are of different unknowns, and not `x`, `x` or `x_1`, `x_2`.
fn different_names(list: &[Side<'_>]) -> bool {
    let stem = |side: &Side<'_>| {
        name_of(side.1).map(|name| name.split('_').next().map_or(name, |stem| stem).to_owned())
    };
    let first = list.first().and_then(stem);
    list.iter().any(|side| stem(side) != first)
}
