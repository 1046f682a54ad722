//! Sets of real numbers: unions of intervals in order, and whether two of them are the same.

use std::cmp::Ordering;

use dashu_int::Sign;

use super::{Comparer, Side};
use crate::expr::{Expr, Tree};
use crate::limits::NoValue;
use crate::numeric;
use crate::value::{Interval, SetOp, Value};

/// A set of real numbers, or a finite set of values.
enum Region<'a> {
    Reals(Vec<Interval>),
    Finite(Vec<&'a Value>),
}

impl Comparer<'_> {
    pub(super) fn regions(&mut self, a: Side<'_>, b: Side<'_>) -> Result<bool, NoValue> {
        let (Some(x), Some(y)) = (self.region(a)?, self.region(b)?) else { return Ok(false) };
        match (x, y) {
            (Region::Finite(x), Region::Finite(y)) => {
                let x: Vec<Side<'_>> = x.into_iter().map(|value| (a.0, value)).collect();
                let y: Vec<Side<'_>> = y.into_iter().map(|value| (b.0, value)).collect();
                self.same_members(&x, &y)
            }
            (Region::Reals(x), Region::Reals(y)) => self.same_intervals(a.0, &x, b.0, &y),
            (Region::Reals(x), Region::Finite(y)) => {
                let Some(y) = self.points(b.0, &y)? else { return Ok(false) };
                self.same_intervals(a.0, &x, b.0, &y)
            }
            (Region::Finite(x), Region::Reals(y)) => {
                let Some(x) = self.points(a.0, &x)? else { return Ok(false) };
                self.same_intervals(a.0, &x, b.0, &y)
            }
        }
    }

    fn same_intervals(
        &mut self,
        a: &Tree,
        x: &[Interval],
        b: &Tree,
        y: &[Interval],
    ) -> Result<bool, NoValue> {
        if x.len() != y.len() {
            return Ok(false);
        }
        for (left, right) in x.iter().zip(y) {
            let same = left.low_closed == right.low_closed
                && left.high_closed == right.high_closed
                && self.ends((a, left.low), (b, right.low))?
                && self.ends((a, left.high), (b, right.high))?;
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Two ends of intervals. A rounded decimal counts as in any other place.
    fn ends(&mut self, a: (&Tree, Expr), b: (&Tree, Expr)) -> Result<bool, NoValue> {
        self.exprs(a, b)
    }

    /// Finite members as intervals of one point.
    fn points(&mut self, tree: &Tree, values: &[&Value]) -> Result<Option<Vec<Interval>>, NoValue> {
        let mut intervals = Vec::new();
        for value in values {
            let Some(expr) = value.expr() else { return Ok(None) };
            intervals.push(Interval { low: expr, high: expr, low_closed: true, high_closed: true });
        }
        self.normalised(tree, intervals).map(Some)
    }

    fn region<'v>(&mut self, side: (&Tree, &'v Value)) -> Result<Option<Region<'v>>, NoValue> {
        Ok(match side.1 {
            Value::Reals(intervals) => Some(Region::Reals(self.normalised(side.0, intervals.clone())?)),
            Value::Tuple(parts) => match &parts[..] {
                [low, high] => match (low.expr(), high.expr()) {
                    (Some(low), Some(high)) => {
                        let interval = Interval { low, high, low_closed: false, high_closed: false };
                        if Self::is_variable(side.0, low) || Self::is_variable(side.0, high) {
                            return Ok(None);
                        }
                        Some(Region::Reals(self.normalised(side.0, vec![interval])?))
                    }
                    _ => None,
                },
                _ => None,
            },
            Value::Set(values) => Some(Region::Finite(values.iter().collect())),
            Value::Empty => Some(Region::Finite(Vec::new())),
            Value::Named(named) => match self.value_of((side.0, named))? {
                Some(value) => self.region((side.0, value.exact))?,
                None => None,
            },
            Value::SetOp(op, a, b) => {
                let (Some(x), Some(y)) = (self.region((side.0, a))?, self.region((side.0, b))?) else {
                    return Ok(None);
                };
                self.combined(side.0, *op, x, y)?
            }
            _ => None,
        })
    }

    fn is_variable(tree: &Tree, expr: Expr) -> bool {
        let occurs = tree.occurs(expr);
        occurs.letters || occurs.imaginary
    }

    fn combined<'v>(
        &mut self,
        tree: &Tree,
        op: SetOp,
        x: Region<'v>,
        y: Region<'v>,
    ) -> Result<Option<Region<'v>>, NoValue> {
        if let (Region::Finite(x), Region::Finite(y)) = (&x, &y) {
            let mut kept: Vec<&'v Value> = Vec::new();
            if op == SetOp::Union {
                kept.extend(x);
                kept.extend(y);
                return Ok(Some(Region::Finite(kept)));
            }
            for value in x {
                let mut inside = false;
                for other in y {
                    inside |= self.equal((tree, value), (tree, other))?;
                }
                if inside == (op == SetOp::Intersection) {
                    kept.push(value);
                }
            }
            return Ok(Some(Region::Finite(kept)));
        }
        let mut reals = Vec::new();
        for region in [x, y] {
            reals.push(match region {
                Region::Reals(intervals) => intervals,
                Region::Finite(values) => match self.points(tree, &values)? {
                    Some(intervals) => intervals,
                    None => return Ok(None),
                },
            });
        }
        let (Some(y), Some(mut x)) = (reals.pop(), reals.pop()) else { return Ok(None) };
        let intervals = match op {
            SetOp::Union => {
                x.extend(y);
                self.normalised(tree, x)?
            }
            SetOp::Intersection => self.intersection(tree, &x, &y)?,
            SetOp::Difference => {
                let Some(rest) = self.complement(tree, &x, &y)? else { return Ok(None) };
                rest
            }
        };
        Ok(Some(Region::Reals(intervals)))
    }

    /// Orders two ends. Infinite ends are at the ends.
    fn order(&mut self, tree: &Tree, a: Expr, b: Expr) -> Result<Ordering, NoValue> {
        let size = |expr: Expr| match tree.infinity(expr.root) {
            Some(Sign::Positive) => 1,
            Some(Sign::Negative) => -1,
            None => 0,
        };
        if size(a) != size(b) || size(a) != 0 {
            return Ok(size(a).cmp(&size(b)));
        }
        if let (Some(x), Some(y)) = (tree.rational(a.root), tree.rational(b.root)) {
            self.work.spend(4)?;
            return Ok(x.cmp(y));
        }
        if Self::is_variable(tree, a) || Self::is_variable(tree, b) {
            return Err(NoValue::Undecided);
        }
        if self.exprs((tree, a), (tree, b))? {
            return Ok(Ordering::Equal);
        }
        numeric::order((tree, a), (tree, b), self.key, self.work)
    }

    /// Intervals in order, without empty ones, with neighbours that touch made one.
    fn normalised(&mut self, tree: &Tree, intervals: Vec<Interval>) -> Result<Vec<Interval>, NoValue> {
        if let [one] = intervals[..]
            && (Self::is_variable(tree, one.low) || Self::is_variable(tree, one.high))
        {
            return Ok(intervals);
        }
        let mut kept: Vec<Interval> = Vec::new();
        for interval in intervals {
            let order = self.order(tree, interval.low, interval.high)?;
            if order == Ordering::Less
                || order == Ordering::Equal && interval.low_closed && interval.high_closed
            {
                // Insertion keeps the list in order; lists are short.
                let mut at = kept.len();
                while at > 0 && self.order(tree, kept[at - 1].low, interval.low)? == Ordering::Greater {
                    at -= 1;
                }
                kept.insert(at, interval);
            }
        }
        let mut merged: Vec<Interval> = Vec::new();
        for interval in kept {
            let Some(last) = merged.last_mut() else {
                merged.push(interval);
                continue;
            };
            let touch = self.order(tree, last.high, interval.low)?;
            let joined = touch == Ordering::Greater
                || touch == Ordering::Equal && (last.high_closed || interval.low_closed);
            if !joined {
                merged.push(interval);
                continue;
            }
            if self.order(tree, last.low, interval.low)? == Ordering::Equal {
                last.low_closed |= interval.low_closed;
            }
            match self.order(tree, last.high, interval.high)? {
                Ordering::Less => {
                    last.high = interval.high;
                    last.high_closed = interval.high_closed;
                }
                Ordering::Equal => last.high_closed |= interval.high_closed,
                Ordering::Greater => {}
            }
        }
        Ok(merged)
    }

    fn intersection(
        &mut self,
        tree: &Tree,
        x: &[Interval],
        y: &[Interval],
    ) -> Result<Vec<Interval>, NoValue> {
        let mut out = Vec::new();
        for a in x {
            for b in y {
                let (low, low_closed) = match self.order(tree, a.low, b.low)? {
                    Ordering::Less => (b.low, b.low_closed),
                    Ordering::Greater => (a.low, a.low_closed),
                    Ordering::Equal => (a.low, a.low_closed && b.low_closed),
                };
                let (high, high_closed) = match self.order(tree, a.high, b.high)? {
                    Ordering::Less => (a.high, a.high_closed),
                    Ordering::Greater => (b.high, b.high_closed),
                    Ordering::Equal => (a.high, a.high_closed && b.high_closed),
                };
                out.push(Interval { low, high, low_closed, high_closed });
            }
        }
        self.normalised(tree, out)
    }

    /// The part of `x` that is not in `y`.
    fn complement(
        &mut self,
        tree: &Tree,
        x: &[Interval],
        y: &[Interval],
    ) -> Result<Option<Vec<Interval>>, NoValue> {
        let mut rest = x.to_vec();
        for hole in y {
            let mut next = Vec::new();
            for interval in rest {
                let apart = self.order(tree, hole.high, interval.low)? == Ordering::Less
                    || self.order(tree, interval.high, hole.low)? == Ordering::Less;
                if apart {
                    next.push(interval);
                    continue;
                }
                let left = Interval { high: hole.low, high_closed: !hole.low_closed, ..interval };
                let right = Interval { low: hole.high, low_closed: !hole.high_closed, ..interval };
                if self.order(tree, interval.low, hole.low)? != Ordering::Greater {
                    next.push(left);
                }
                if self.order(tree, hole.high, interval.high)? != Ordering::Greater {
                    next.push(right);
                }
            }
            rest = next;
        }
        self.normalised(tree, rest).map(Some)
    }
}

/// Whether a value is a set.
pub(super) fn is_region(value: &Value) -> bool {
    match value {
        Value::Reals(_) | Value::SetOp(..) | Value::Set(_) | Value::Empty => true,
        Value::Named(named) => named.members.last().is_some_and(is_region),
        _ => false,
    }
}
