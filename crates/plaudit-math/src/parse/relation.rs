//! Relations: names and their values, solved inequalities, equations, set operations and ratios.

use super::{ParseError, Parsed, Parser};
use crate::expr::{Expr, Function, Id, Node};
use crate::lex::{Bracket, Kind, Rel};
use crate::limits::{MAX_DEPTH, MAX_ELEMENTS, NoValue};
use crate::value::{Interval, Named, SetOp, Value};

impl Parser<'_, '_> {
    pub(super) fn relation(&mut self) -> Parsed<Value> {
        let first = self.union()?;
        self.relation_from(first)
    }

    pub(super) fn relation_from(&mut self, first: Value) -> Parsed<Value> {
        let mut values = vec![first];
        let mut relations = Vec::new();
        while let Some(Kind::Relation(relation)) = self.peek() {
            self.pos += 1;
            relations.push(relation);
            let value = match self.lone_text() {
                Some(text) => text,
                None => self.union()?,
            };
            values.push(value);
            if values.len() > 64 {
                return Err(ParseError::NoValue(NoValue::TooLarge));
            }
        }
        if relations.is_empty() {
            return values.pop().ok_or(ParseError::Unparsable);
        }
        self.resolve(values, relations)
    }

    /// Union, intersection and difference of sets.
    pub(super) fn union(&mut self) -> Parsed<Value> {
        let braced = self.peek() == Some(Kind::Open(Bracket::Group));
        let mut value = self.ratio()?;
        if braced && matches!(self.peek(), Some(Kind::Cup | Kind::Cap | Kind::Setminus)) {
            value = as_set(value);
        }
        let mut count = 0;
        while let Some(kind @ (Kind::Cup | Kind::Cap | Kind::Setminus)) = self.peek() {
            self.pos += 1;
            count += 1;
            if count > MAX_DEPTH {
                return Err(ParseError::NoValue(NoValue::TooLarge));
            }
            let op = match kind {
                Kind::Cup => SetOp::Union,
                Kind::Cap => SetOp::Intersection,
                _ => SetOp::Difference,
            };
            let braced = self.peek() == Some(Kind::Open(Bracket::Group));
            let other = self.ratio()?;
            let other = if braced { as_set(other) } else { other };
            value = Value::SetOp(op, Box::new(value), Box::new(other));
        }
        Ok(value)
    }

    /// Values with colons between them.
    pub(super) fn ratio(&mut self) -> Parsed<Value> {
        let first = self.sum()?;
        if self.set || self.peek() != Some(Kind::Colon) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.eat(Kind::Colon) {
            if parts.len() >= MAX_ELEMENTS {
                return Err(ParseError::NoValue(NoValue::TooLarge));
            }
            if self.eat(Kind::Dots) {
                parts.push(Value::Text("…".into()));
            } else {
                parts.push(self.sum()?);
            }
        }
        Ok(Value::Ratio(parts))
    }

    /// What a chain of relations says: a name and its value, a set of reals, or an equation.
    pub(super) fn resolve(&mut self, mut values: Vec<Value>, relations: Vec<Rel>) -> Parsed<Value> {
        if relations.iter().all(|relation| matches!(relation, Rel::Equal | Rel::Approx)) {
            return self.resolve_equal(values, &relations);
        }
        if let [Rel::In] = relations[..] {
            let mut set = values.pop().ok_or(ParseError::Unparsable)?;
            // What a variable is in is an interval and no pair.
            if let Value::Tuple(ends) = &set
                && let [low, high] = &ends[..]
                && let (Some(low), Some(high)) = (low.expr(), high.expr())
            {
                set = Value::Reals(vec![Interval { low, high, low_closed: false, high_closed: false }]);
            }
            let name = self.name(&values[0]).ok_or(ParseError::Unparsable)?;
            let letter = self.letter_of(&values[0]);
            return Ok(Value::Named(Box::new(Named {
                name: Some(name.into()),
                letter,
                members: vec![set],
                rounded: None,
            })));
        }
        if relations.iter().any(|relation| matches!(relation, Rel::Equal | Rel::Approx | Rel::In)) {
            return Ok(Value::Relation(values, relations));
        }
        if let Some(value) = self.solved(&values, &relations)? {
            return Ok(value);
        }
        Ok(Value::Relation(values, relations))
    }

    pub(super) fn resolve_equal(&mut self, mut values: Vec<Value>, relations: &[Rel]) -> Parsed<Value> {
        // What stands after an approximation sign is no part of the exact value, unless nothing else is there.
        let exact =
            relations.iter().position(|relation| *relation == Rel::Approx).map_or(values.len(), |at| at + 1);
        let mut rounded = None;
        if exact > 1 || self.name(&values[0]).is_none() {
            rounded =
                if exact < values.len() { values.pop().filter(|value| value.expr().is_some()) } else { None };
            values.truncate(exact);
        }
        let names = values.iter().take_while(|value| self.name(value).is_some()).count();
        if names > 0 && names < values.len() {
            let name = self.name(&values[0]);
            let letter = self.letter_of(&values[0]);
            let members = values.split_off(names);
            let named = Named { name: name.map(Into::into), letter, members, rounded };
            return Ok(Value::Named(Box::new(named)));
        }
        if values.len() == 1 && rounded.is_none() {
            return values.pop().ok_or(ParseError::Unparsable);
        }
        if values.len() == 2 && names == 0 && self.name(&values[1]).is_some() {
            let name = self.name(&values[1]);
            let letter = self.letter_of(&values[1]);
            values.truncate(1);
            let named = Named { name: name.map(Into::into), letter, members: values, rounded };
            return Ok(Value::Named(Box::new(named)));
        }
        // Two names: the first is the name.
        if names == values.len() && values.len() >= 2 {
            let name = self.name(&values[0]);
            let letter = self.letter_of(&values[0]);
            let members = values.split_off(values.len() - 1);
            let named = Named { name: name.map(Into::into), letter, members, rounded };
            return Ok(Value::Named(Box::new(named)));
        }
        let constant = values.iter().all(|value| {
            value.expr().is_some_and(|expr| {
                let occurs = self.tree.occurs(expr);
                !occurs.letters && !occurs.big
            })
        });
        if constant {
            return Ok(Value::Named(Box::new(Named { name: None, letter: None, members: values, rounded })));
        }
        if let [_] = values[..] {
            return values.pop().ok_or(ParseError::Unparsable);
        }
        let relations = vec![Rel::Equal; values.len() - 1];
        Ok(Value::Relation(values, relations))
    }

    /// An inequality that is solved for a name, as a set of reals.
    pub(super) fn solved(&mut self, values: &[Value], relations: &[Rel]) -> Parsed<Option<Value>> {
        let constant = |parser: &Self, value: &Value| {
            let expr = value.expr()?;
            let occurs = parser.tree.occurs(expr);
            (!occurs.letters && !occurs.big && !occurs.imaginary).then_some(expr)
        };
        let (name, intervals) = match (values, relations) {
            ([a, b], [relation]) => {
                let (variable, bound, relation) =
                    if let (Some(_), Some(bound)) = (self.name(a), constant(self, b)) {
                        (a, bound, *relation)
                    } else if let (Some(bound), Some(_)) = (constant(self, a), self.name(b)) {
                        (b, bound, flipped(*relation))
                    } else {
                        return Ok(None);
                    };
                let infinity = self.tree.leaf(Node::Infinity)?;
                let minus = self.tree.neg(infinity)?;
                let high = Expr { first: infinity, root: infinity };
                let low = Expr { first: infinity, root: minus };
                let below = |closed| Interval { low, high: bound, low_closed: false, high_closed: closed };
                let above = |closed| Interval { low: bound, high, low_closed: closed, high_closed: false };
                let intervals = match relation {
                    Rel::Less => vec![below(false)],
                    Rel::LessEqual => vec![below(true)],
                    Rel::Greater => vec![above(false)],
                    Rel::GreaterEqual => vec![above(true)],
                    _ => vec![below(false), above(false)],
                };
                (variable, intervals)
            }
            ([a, b, c], [first, second]) => {
                let (Some(low), Some(high)) = (constant(self, a), constant(self, c)) else { return Ok(None) };
                if self.name(b).is_none() {
                    return Ok(None);
                }
                let interval = match (first, second) {
                    (Rel::Less | Rel::LessEqual, Rel::Less | Rel::LessEqual) => Interval {
                        low,
                        high,
                        low_closed: *first == Rel::LessEqual,
                        high_closed: *second == Rel::LessEqual,
                    },
                    (Rel::Greater | Rel::GreaterEqual, Rel::Greater | Rel::GreaterEqual) => Interval {
                        low: high,
                        high: low,
                        low_closed: *second == Rel::GreaterEqual,
                        high_closed: *first == Rel::GreaterEqual,
                    },
                    _ => return Ok(None),
                };
                (b, vec![interval])
            }
            _ => return Ok(None),
        };
        let letter = self.letter_of(name);
        let name = self.name(name).map(Into::into);
        let members = vec![Value::Reals(intervals)];
        Ok(Some(Value::Named(Box::new(Named { name, letter, members, rounded: None }))))
    }

    /// The name that a value is: a letter, `f(x)`, `AB`, `|AB|`, a quotient, tuple or ratio of names, a short text.
    pub(super) fn name(&self, value: &Value) -> Option<String> {
        match value {
            Value::Quantity(quantity) if quantity.decimal.is_none() && !quantity.percent => {
                self.node_name(quantity.expr.root, 3)
            }
            Value::Tuple(parts) | Value::Ratio(parts) => {
                let names = parts.iter().map(|part| self.name(part)).collect::<Option<Vec<String>>>()?;
                Some(names.join(","))
            }
            Value::SetOp(op, a, b) => Some(format!("{} {op:?} {}", self.name(a)?, self.name(b)?)),
            Value::Text(text) if text.chars().any(char::is_alphabetic) && text.len() <= 40 => {
                Some(text.to_string())
            }
            _ => None,
        }
    }

    pub(super) fn node_name(&self, id: Id, depth: u32) -> Option<String> {
        if depth == 0 {
            return None;
        }
        let capital = |id: Id| match self.tree.node(id) {
            Node::Letter(name) => {
                let name = self.tree.name(*name);
                name.starts_with(|c: char| c.is_ascii_uppercase()).then(|| name.to_owned())
            }
            _ => None,
        };
        match self.tree.node(id) {
            Node::Letter(name) => Some(self.tree.name(*name).to_owned()),
            Node::Apply(name, ids) => {
                let mut text = format!("{}(", self.tree.name(*name));
                for id in ids {
                    match self.tree.node(*id) {
                        Node::Number(value) => text.push_str(&value.to_string()),
                        _ => text.push_str(&self.node_name(*id, depth - 1)?),
                    }
                    text.push(',');
                }
                Some(text)
            }
            // A product of two that are marked, as of vectors, is one number.
            Node::Product(ids) if ids.len() == 2 && ids.iter().all(|id| self.is_marked(*id)) => {
                let names = ids.iter().map(|id| self.node_name(*id, depth - 1));
                Some(names.collect::<Option<Vec<String>>>()?.join("."))
            }
            Node::Product(ids) => {
                Some(ids.iter().map(|id| capital(*id)).collect::<Option<Vec<String>>>()?.concat())
            }
            Node::Div(a, b) => {
                Some(format!("{}/{}", self.node_name(*a, depth - 1)?, self.node_name(*b, depth - 1)?))
            }
            Node::Call(Function::Abs, a) => match self.tree.node(*a) {
                Node::Product(_) => Some(format!("|{}|", self.node_name(*a, depth - 1)?)),
                Node::Letter(name) if self.tree.name(*name).starts_with('\\') => {
                    Some(format!("|{}|", self.tree.name(*name)))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a node is a letter with a mark: `\vec{a}`.
    fn is_marked(&self, id: Id) -> bool {
        matches!(self.tree.node(id), Node::Letter(name) if self.tree.name(*name).starts_with('\\'))
    }

    /// The expression of a name that can be a letter of an equation.
    pub(super) fn letter_of(&self, value: &Value) -> Option<Expr> {
        let expr = value.expr()?;
        matches!(self.tree.node(expr.root), Node::Letter(_) | Node::Apply(..)).then_some(expr)
    }
}

/// Numbers in braces without a backslash beside a sign of sets: `{1,2} \cup {3}`.
fn as_set(value: Value) -> Value {
    match value {
        Value::List(values) => Value::Set(values),
        Value::Quantity(_) => Value::Set(vec![value]),
        other => other,
    }
}

fn flipped(relation: Rel) -> Rel {
    match relation {
        Rel::Less => Rel::Greater,
        Rel::LessEqual => Rel::GreaterEqual,
        Rel::Greater => Rel::Less,
        Rel::GreaterEqual => Rel::LessEqual,
        other => other,
    }
}
