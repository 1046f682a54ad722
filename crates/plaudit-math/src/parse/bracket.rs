//! Brackets: groups, tuples, intervals, sets, absolute values and matrices.

use super::{ParseError, Parsed, Parser, list};
use crate::expr::{Function, Id};
use crate::lex::{Bracket, Kind, NONE, Rel};
use crate::limits::{MAX_CELLS, NoValue};
use crate::value::{Interval, Value};

impl Parser<'_, '_> {
    /// The innermost of the brackets that stand around nothing but brackets, and what follows the outermost.
    pub(super) fn peeled(&self) -> Parsed<(usize, u32, usize)> {
        let mut open = self.pos;
        let mut close = self.tokens.pair[open];
        if close == NONE || close as usize >= self.end {
            return Err(ParseError::Unparsable);
        }
        let after = close as usize + 1;
        while (open as u32) + 1 < close
            && self.tokens.pair[open + 1] == close - 1
            && is_grouping(self.tokens.list[open].kind, self.tokens.list[close as usize].kind)
            && is_grouping(self.tokens.list[open + 1].kind, self.tokens.list[close as usize - 1].kind)
        {
            open += 1;
            close -= 1;
        }
        Ok((open, close, after))
    }

    /// Whether brackets hold one expression: no commas, relations, sets or texts. Such brackets need less stack.
    pub(super) fn holds_expression(&self, open: usize, close: u32) -> bool {
        let close = close as usize;
        let mut at = open + 1;
        if at == close {
            return false;
        }
        while at < close {
            match self.tokens.list[at].kind {
                Kind::Open(_) if self.tokens.pair[at] != NONE => at = self.tokens.pair[at] as usize,
                Kind::Comma
                | Kind::Semicolon
                | Kind::Colon
                | Kind::And
                | Kind::Or
                | Kind::Relation(_)
                | Kind::Mid
                | Kind::Cup
                | Kind::Cap
                | Kind::Setminus
                | Kind::Over
                | Kind::Choose
                | Kind::Text
                | Kind::Word
                | Kind::Upright
                | Kind::Dots => return false,
                _ => {}
            }
            at += 1;
        }
        true
    }

    /// The expression inside of brackets that hold one.
    pub(super) fn inner_sum(&mut self, open: usize, close: u32, after: usize) -> Parsed<Value> {
        self.enter()?;
        let (end, bars) =
            (std::mem::replace(&mut self.end, close as usize), std::mem::replace(&mut self.bars, 0));
        let set = std::mem::replace(&mut self.set, false);
        self.pos = open + 1;
        let value = self.sum();
        let whole = self.pos == self.end;
        self.end = end;
        self.bars = bars;
        self.set = set;
        self.depth -= 1;
        let value = value?;
        if !whole {
            return Err(ParseError::Unparsable);
        }
        self.pos = after;
        Ok(value)
    }

    /// The elements inside the brackets at the current token. Brackets around brackets are peeled.
    pub(super) fn inside(&mut self, expand: bool) -> Parsed<(Vec<Value>, Option<Kind>)> {
        let (open, close, after) = self.peeled()?;
        // A collection takes more stack than an expression and counts as two levels.
        self.enter()?;
        self.enter()?;
        let (end, bars) =
            (std::mem::replace(&mut self.end, close as usize), std::mem::replace(&mut self.bars, 0));
        self.pos = open + 1;
        let inner =
            if self.pos == self.end { Ok((Vec::new(), None)) } else { self.divided_or_elements(expand) };
        let whole = self.pos == self.end;
        self.end = end;
        self.bars = bars;
        self.depth -= 2;
        let inner = inner?;
        if !whole {
            return Err(ParseError::Unparsable);
        }
        self.pos = after;
        Ok(inner)
    }

    pub(super) fn bracket(&mut self, open: Bracket) -> Parsed<Value> {
        let at = self.pos;
        if open == Bracket::Set {
            return self.set();
        }
        if let Bracket::Group | Bracket::Round = open {
            let (inner, close, after) = self.peeled()?;
            let pair = self.tokens.pair[at] as usize;
            if is_grouping(self.kind_at(at), self.kind_at(pair)) && self.holds_expression(inner, close) {
                return self.inner_sum(inner, close, after);
            }
            // The innermost brackets say what it is: `{(1,2)}` is a pair.
            let Kind::Open(kind) = self.kind_at(inner) else { return Err(ParseError::Unparsable) };
            self.pos = inner;
            let value = self.collection(kind, inner)?;
            self.pos = after;
            return Ok(value);
        }
        self.collection(open, at)
    }

    /// Brackets around elements, a relation or a text.
    pub(super) fn collection(&mut self, open: Bracket, at: usize) -> Parsed<Value> {
        let outer = std::mem::replace(&mut self.set, false);
        let inner = self.inside(false);
        self.set = outer;
        let (mut values, joint) = inner?;
        let close = match self.tokens.list[self.tokens.pair[at] as usize].kind {
            Kind::Close(close) => close,
            _ => open,
        };
        if values.is_empty() {
            return Err(ParseError::Unparsable);
        }
        if let Bracket::Floor | Bracket::Ceil | Bracket::Bar = open {
            let [value] = &values[..] else { return Err(ParseError::Unparsable) };
            if let (Bracket::Bar, Value::Matrix { columns, cells }) = (open, value) {
                let (columns, cells) = (*columns, cells.clone());
                return self.determinant(columns, &cells);
            }
            let of = self.id(value)?;
            let function = match open {
                Bracket::Floor => Function::Floor,
                Bracket::Ceil => Function::Ceil,
                _ => Function::Abs,
            };
            let root = self.tree.call(function, of, self.work)?;
            return Ok(self.quantity(root));
        }
        if values.len() == 1 {
            let value = values.pop().ok_or(ParseError::Unparsable)?;
            if open == Bracket::Group || open == Bracket::Round && close == Bracket::Round {
                // The brackets make one expression of it: decimals and units stay.
                return Ok(value);
            }
            if open == Bracket::Square && close == Bracket::Square {
                return Ok(value);
            }
            if open == Bracket::Angle {
                return Ok(Value::Tuple(vec![value]));
            }
            return Err(ParseError::Unparsable);
        }
        if let Some(Kind::And | Kind::Or) = joint {
            return Ok(list(values, joint));
        }
        match (open, close) {
            // Braces group and are not seen, so what they hold is a list.
            (Bracket::Group, _) => Ok(Value::List(values)),
            (Bracket::Round, Bracket::Round) | (Bracket::Angle, _) => Ok(Value::Tuple(values)),
            _ if values.len() == 2 => {
                let (Some(low), Some(high)) = (values[0].expr(), values[1].expr()) else {
                    return Ok(Value::Tuple(values));
                };
                let low_closed = open == Bracket::Square;
                let high_closed = close == Bracket::Square;
                Ok(Value::Reals(vec![Interval { low, high, low_closed, high_closed }]))
            }
            (Bracket::Square, Bracket::Square) => Ok(Value::Tuple(values)),
            _ => Err(ParseError::Unparsable),
        }
    }

    /// `\{ … \}`: elements, or a condition behind a bar.
    pub(super) fn set(&mut self) -> Parsed<Value> {
        let at = self.pos;
        let close = self.tokens.pair[at];
        if close == NONE || close as usize >= self.end {
            return Err(ParseError::Unparsable);
        }
        let close = close as usize;
        let mut divider = None;
        let mut scan = at + 1;
        while scan < close {
            match self.tokens.list[scan].kind {
                Kind::Open(_) if self.tokens.pair[scan] != NONE => scan = self.tokens.pair[scan] as usize,
                Kind::Mid | Kind::Colon => {
                    divider = Some(scan);
                    break;
                }
                Kind::Bar if divider.is_none() && scan > at + 1 && self.bar_divides(at + 1, scan, close) => {
                    divider = Some(scan);
                    break;
                }
                _ => {}
            }
            scan += 1;
        }
        let outer = std::mem::replace(&mut self.set, true);
        let result = match divider {
            None => self.inside(true).map(|(mut values, _)| match values.pop() {
                None => Value::Empty,
                // A brace on the left of a system of equations.
                Some(system @ Value::List(_)) if values.is_empty() => system,
                Some(last) => {
                    values.push(last);
                    Value::Set(values)
                }
            }),
            Some(divider) => self.builder(at, divider, close),
        };
        self.set = outer;
        result
    }

    /// Whether a bar in a set divides it: an odd number of bars, of which this is the first.
    pub(super) fn bar_divides(&self, from: usize, at: usize, close: usize) -> bool {
        let bars = (from..close).filter(|at| self.tokens.list[*at].kind == Kind::Bar).count();
        bars % 2 == 1
            && (from..at).all(|at| {
                matches!(
                    self.tokens.list[at].kind,
                    Kind::Letter | Kind::Relation(Rel::In) | Kind::Reals | Kind::Underscore | Kind::Number(_)
                )
            })
    }

    /// `\{x \mid condition\}`: the condition is the set.
    pub(super) fn builder(&mut self, open: usize, divider: usize, close: usize) -> Parsed<Value> {
        self.enter()?;
        let end = std::mem::replace(&mut self.end, close);
        self.pos = divider + 1;
        let set = std::mem::replace(&mut self.set, false);
        let inner = self.elements(false);
        let whole = self.pos == close;
        self.end = end;
        self.set = set;
        self.depth -= 1;
        let (values, joint) = inner?;
        if !whole || divider == open + 1 {
            return Err(ParseError::Unparsable);
        }
        self.pos = close + 1;
        Ok(list(values, joint))
    }

    pub(super) fn absolute(&mut self) -> Parsed<Value> {
        self.enter()?;
        self.pos += 1;
        self.bars += 1;
        let inner = self.sum();
        self.bars -= 1;
        self.depth -= 1;
        let inner = inner?;
        if !self.eat(Kind::Bar) {
            return Err(ParseError::Unparsable);
        }
        if let Value::Matrix { columns, cells } = inner {
            return self.determinant(columns, &cells);
        }
        let of = self.id(&inner)?;
        let root = self.tree.call(Function::Abs, of, self.work)?;
        Ok(self.quantity(root))
    }

    /// `\begin{pmatrix} … \end{pmatrix}` and its relatives.
    pub(super) fn environment(&mut self) -> Parsed<Value> {
        let name = self.slice(self.pos).trim_end_matches('*').to_owned();
        let mut close = self.pos + 1;
        let mut level = 1;
        while close < self.end {
            match self.tokens.list[close].kind {
                Kind::Begin => level += 1,
                Kind::End => level -= 1,
                _ => {}
            }
            if level == 0 {
                break;
            }
            close += 1;
        }
        if close >= self.end {
            return Err(ParseError::NoValue(NoValue::Unbalanced));
        }
        self.enter()?;
        let end = self.end;
        self.pos += 1;
        let relations = (self.pos..close).any(|at| matches!(self.kind_at(at), Kind::Relation(_)));
        let system = matches!(name.as_str(), "cases" | "aligned" | "align" | "gathered")
            || name == "array" && relations;
        let mut cells: Vec<Value> = Vec::new();
        let mut columns = None;
        let mut in_row = 0;
        while self.pos < close {
            if cells.len() >= MAX_CELLS {
                return Err(ParseError::NoValue(NoValue::TooLarge));
            }
            let stop = self.cell_end(close);
            self.end = stop;
            if self.pos == stop && self.kind_at(stop) == Kind::End {
                break;
            }
            let cell = if system { self.row(&mut cells) } else { self.cell() };
            self.end = end;
            if let Some(cell) = cell? {
                cells.push(cell);
            }
            in_row += 1;
            self.pos = stop + 1;
            if self.kind_at(stop) != Kind::Ampersand {
                if columns.is_some_and(|columns| columns != in_row) {
                    return Err(ParseError::Unparsable);
                }
                columns = Some(in_row);
                in_row = 0;
            }
            if stop == close {
                break;
            }
        }
        self.end = end;
        self.pos = close + 1;
        self.depth -= 1;
        let columns = columns.ok_or(ParseError::Unparsable)?;
        match name.as_str() {
            _ if system => Ok(list(cells, None)),
            "pmatrix" | "bmatrix" | "matrix" | "Bmatrix" | "smallmatrix" | "array" => {
                Ok(Value::Matrix { columns, cells })
            }
            "vmatrix" => self.determinant(columns, &cells),
            _ => Err(ParseError::Unparsable),
        }
    }

    /// One row of a system of equations: alignment marks are dropped.
    pub(super) fn row(&mut self, cells: &mut Vec<Value>) -> Parsed<Option<Value>> {
        if self.pos == self.end {
            return Ok(None);
        }
        let (mut values, _) = self.elements(false)?;
        if self.pos != self.end {
            return Err(ParseError::Unparsable);
        }
        let last = values.pop();
        cells.extend(values);
        Ok(last)
    }

    pub(super) fn cell(&mut self) -> Parsed<Option<Value>> {
        let outer = std::mem::replace(&mut self.first, self.tree.len());
        let value = self.sum();
        self.first = outer;
        if self.pos != self.end {
            return Err(ParseError::Unparsable);
        }
        value.map(Some)
    }

    /// Where the cell that begins here ends.
    pub(super) fn cell_end(&self, close: usize) -> usize {
        let mut at = self.pos;
        let mut level = 0;
        while at < close {
            match self.tokens.list[at].kind {
                Kind::Begin => level += 1,
                Kind::End => level -= 1,
                Kind::Ampersand | Kind::NewRow if level == 0 => return at,
                _ => {}
            }
            at += 1;
        }
        close
    }

    pub(super) fn determinant(&mut self, columns: usize, cells: &[Value]) -> Parsed<Value> {
        if columns == 0 || columns * columns != cells.len() || columns > 4 {
            return Err(ParseError::NoValue(NoValue::Unsupported));
        }
        let ids = cells.iter().map(|cell| self.id(cell)).collect::<Parsed<Vec<Id>>>()?;
        let all: Vec<usize> = (0..columns).collect();
        let root = self.minor(&ids, columns, 0, &all)?;
        Ok(self.quantity(root))
    }

    /// The determinant of the rows from `row` on and the given columns, by the first row.
    pub(super) fn minor(&mut self, ids: &[Id], size: usize, row: usize, columns: &[usize]) -> Parsed<Id> {
        if let [column] = columns {
            return Ok(ids[row * size + column]);
        }
        let mut terms = Vec::new();
        for (index, column) in columns.iter().enumerate() {
            let rest: Vec<usize> = columns.iter().copied().filter(|other| other != column).collect();
            let minor = self.minor(ids, size, row + 1, &rest)?;
            let term = self.tree.product(&[ids[row * size + column], minor], self.work)?;
            terms.push(if index % 2 == 1 { self.tree.neg(term)? } else { term });
        }
        Ok(self.tree.sum(&terms, self.work)?)
    }
}

/// Brackets that only group.
fn is_grouping(open: Kind, close: Kind) -> bool {
    matches!(
        (open, close),
        (Kind::Open(Bracket::Round), Kind::Close(Bracket::Round))
            | (Kind::Open(Bracket::Group), Kind::Close(Bracket::Group))
    )
}
