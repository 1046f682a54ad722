//! Letters: names with subscripts and marks, and what makes one a function, a constant or a combination.

use super::{ParseError, Parsed, Parser};
use crate::expr::{Function, Id, Node};
use crate::lex::{Bracket, Kind};
use crate::value::Value;

impl Parser<'_, '_> {
    /// A letter with its subscript and primes, or a function of that name.
    pub(super) fn letter(&mut self, scripts: bool) -> Parsed<Value> {
        let at = self.pos;
        self.pos += 1;
        let name = self.slice(at).trim_start_matches('\\');
        if !scripts {
            return self.finish_letter(name);
        }
        if let Some(value) = self.combination(name)? {
            return Ok(value);
        }
        if let Some(underscore) = self.raised_before_lowered() {
            return self.raised_and_lowered(name, underscore);
        }
        let mut full = String::new();
        if self.bound.iter().any(|bound| &**bound == name) {
            full = self.bound_name(name);
        }
        if self.peek() == Some(Kind::Underscore) {
            if full.is_empty() {
                full.push_str(name);
            }
            full.push('_');
            self.subscript(&mut full)?;
        }
        loop {
            let primed = self.peek() == Some(Kind::Prime);
            let raised = self.peek() == Some(Kind::Caret) && self.kind(self.pos + 1) == Some(Kind::Prime);
            let grouped = self.peek() == Some(Kind::Caret)
                && self.kind(self.pos + 1) == Some(Kind::Open(Bracket::Group))
                && self.kind(self.pos + 2) == Some(Kind::Prime)
                && self.kind(self.pos + 3) == Some(Kind::Close(Bracket::Group));
            if !primed && !raised && !grouped {
                break;
            }
            if full.is_empty() {
                full.push_str(name);
            }
            full.push('\'');
            self.pos += if primed {
                1
            } else if raised {
                2
            } else {
                4
            };
        }
        if matches!(name, "f" | "g" | "h") && self.is_inverse() {
            full = format!("{name}^-1");
            self.pos += 5;
        }
        let bare = full.is_empty();
        let name = if bare { name } else { &full };
        if let Some(value) = self.application(name, bare)? {
            return Ok(value);
        }
        if bare {
            return self.finish_letter(name);
        }
        let root = self.tree.letter(name)?;
        Ok(self.quantity(root))
    }

    /// Where the subscript stands, if an exponent stands before it: `v^2_0`.
    fn raised_before_lowered(&self) -> Option<usize> {
        if self.peek() != Some(Kind::Caret) || self.kind(self.pos + 1) == Some(Kind::Prime) {
            return None;
        }
        let after = match self.kind(self.pos + 1)? {
            Kind::Open(Bracket::Group) => self.tokens.pair[self.pos + 1] as usize + 1,
            _ => self.pos + 2,
        };
        (self.kind(after) == Some(Kind::Underscore)).then_some(after)
    }

    /// A letter with its exponent before its subscript. Of `C` and `A` with two numbers it is a combination.
    fn raised_and_lowered(&mut self, name: &str, underscore: usize) -> Parsed<Value> {
        let caret = self.pos;
        self.pos = underscore;
        let mut full = format!("{name}_");
        self.subscript(&mut full)?;
        let after = self.pos;
        let number = |at: usize| match self.kind(at) {
            Some(Kind::Open(Bracket::Group)) => matches!(self.kind(at + 1), Some(Kind::Number(_))),
            kind => matches!(kind, Some(Kind::Number(_))),
        };
        let counts = matches!(name, "C" | "A") && number(caret + 1) && number(underscore + 1);
        self.pos = caret + 1;
        let exponent = self.script()?;
        let root = if counts {
            self.pos = underscore + 1;
            let n = self.script()?;
            self.counted(name, n, exponent)?
        } else {
            let base = self.tree.letter(&full)?;
            self.tree.pow(base, exponent, self.work)?
        };
        self.pos = after;
        Ok(self.quantity(root))
    }

    /// The number of choices of `k` of `n`, which for `A` and `P` are in order.
    fn counted(&mut self, name: &str, n: Id, k: Id) -> Parsed<Id> {
        let root = self.tree.binomial(n, k, self.work)?;
        if name == "C" {
            return Ok(root);
        }
        let ways = self.tree.call(Function::Factorial, k, self.work)?;
        Ok(self.tree.product(&[root, ways], self.work)?)
    }

    /// `^{-1}` before brackets: the inverse of a function.
    pub(super) fn is_inverse(&self) -> bool {
        let kinds: Vec<Option<Kind>> = (0..6).map(|offset| self.kind(self.pos + offset)).collect();
        matches!(
            kinds[..],
            [
                Some(Kind::Caret),
                Some(Kind::Open(Bracket::Group)),
                Some(Kind::Minus),
                Some(Kind::Number(_)),
                Some(Kind::Close(Bracket::Group)),
                Some(Kind::Open(Bracket::Round))
            ]
        ) && self.slice(self.pos + 3) == "1"
    }

    pub(super) fn finish_letter(&mut self, name: &str) -> Parsed<Value> {
        let root = match name {
            "e" => self.tree.leaf(Node::E)?,
            "i" if !self.bound.iter().any(|bound| &**bound == "i") => self.tree.leaf(Node::I)?,
            _ if self.bound.iter().any(|bound| &**bound == name) => {
                let name = self.bound_name(name);
                self.tree.letter(&name)?
            }
            _ => self.tree.letter(name)?,
        };
        Ok(self.quantity(root))
    }

    /// The name of a letter that a sum binds: its level, so that renaming it changes nothing.
    pub(super) fn bound_name(&self, name: &str) -> String {
        let level = self.bound.iter().rposition(|bound| &**bound == name).map_or(0, |level| level);
        format!("\u{1}{level}")
    }

    /// The canonical text of a subscript.
    pub(super) fn subscript(&mut self, out: &mut String) -> Parsed<()> {
        self.pos += 1;
        let (from, to) = match self.peek() {
            Some(Kind::Open(Bracket::Group)) => (self.pos + 1, self.tokens.pair[self.pos] as usize),
            Some(_) => (self.pos, self.pos + 1),
            None => return Err(ParseError::Unparsable),
        };
        for at in from..to {
            match self.tokens.list[at].kind {
                Kind::Open(Bracket::Group) | Kind::Close(Bracket::Group) => {}
                Kind::Letter => {
                    let name = self.slice(at).trim_start_matches('\\');
                    if self.bound.iter().any(|bound| &**bound == name) {
                        out.push_str(&self.bound_name(name));
                    } else {
                        out.push_str(name);
                    }
                }
                _ => out.extend(self.slice(at).chars().filter(|c| !c.is_whitespace() && *c != '\\')),
            }
        }
        self.pos = if self.peek() == Some(Kind::Open(Bracket::Group)) { to + 1 } else { to };
        Ok(())
    }

    /// `C_{n}^{k}` and `A_{n}^{k}`.
    pub(super) fn combination(&mut self, name: &str) -> Parsed<Option<Value>> {
        if !matches!(name, "C" | "A" | "P") || self.peek() != Some(Kind::Underscore) {
            return Ok(None);
        }
        let at = self.pos;
        let after = match self.kind(at + 1) {
            Some(Kind::Open(Bracket::Group)) => self.tokens.pair[at + 1] as usize + 1,
            Some(_) => at + 2,
            None => return Ok(None),
        };
        if self.kind(after) != Some(Kind::Caret) {
            return Ok(None);
        }
        let numeric = |at: usize| {
            matches!(self.kind(at), Some(Kind::Number(_)))
                || self.kind(at) == Some(Kind::Open(Bracket::Group))
                    && matches!(self.kind(at + 1), Some(Kind::Number(_)))
                    && self.kind(at + 2) == Some(Kind::Close(Bracket::Group))
        };
        if !(numeric(at + 1) && numeric(after + 1)) && name != "C" {
            return Ok(None);
        }
        self.pos += 1;
        let n = self.script()?;
        self.pos += 1;
        let k = self.script()?;
        let root = self.counted(name, n, k)?;
        Ok(Some(self.quantity(root)))
    }

    /// A function of that name, if brackets follow that are arguments and no factor.
    pub(super) fn application(&mut self, name: &str, bare: bool) -> Parsed<Option<Value>> {
        if self.peek() != Some(Kind::Open(Bracket::Round)) || matches!(name, "e" | "i") && bare {
            return Ok(None);
        }
        let close = self.tokens.pair[self.pos] as usize;
        let inside = self.pos + 1..close;
        let number = |at: usize| matches!(self.tokens.list[at].kind, Kind::Number(_));
        let constant = inside.clone().all(|at| {
            number(at)
                || matches!(self.tokens.list[at].kind, Kind::Minus | Kind::Pi | Kind::Infinity | Kind::Slash)
        });
        let letter = inside.len() == 1 && self.tokens.list[inside.start].kind == Kind::Letter;
        let several = inside.clone().any(|at| self.tokens.list[at].kind == Kind::Comma);
        let stem = name.split(['_', '\'', '^']).next().map_or(name, |stem| stem);
        let function =
            matches!(stem, "f" | "g" | "F" | "G" | "phi" | "psi" | "varphi") || name.contains('\'');
        if inside.is_empty() || !(constant || letter || several || function) {
            return Ok(None);
        }
        let values = self.inside(false)?.0;
        let ids = values.iter().map(|value| self.id(value)).collect::<Parsed<Vec<Id>>>()?;
        if let ("C", [n, k]) = (name, &ids[..]) {
            let root = self.tree.binomial(*n, *k, self.work)?;
            return Ok(Some(self.quantity(root)));
        }
        let name = self.tree.intern(name);
        let root = self.tree.leaf(Node::Apply(name, ids.into()))?;
        Ok(Some(self.quantity(root)))
    }

    /// An upright name that takes part in a product.
    pub(super) fn upright(&mut self) -> Parsed<Value> {
        let name = self.slice(self.pos);
        if !name.chars().all(char::is_alphabetic) {
            return Err(ParseError::Unparsable);
        }
        if name == "C" && self.kind(self.pos + 1) == Some(Kind::Underscore) {
            return self.letter(true);
        }
        self.pos += 1;
        let mut full = name.to_owned();
        if self.peek() == Some(Kind::Underscore) {
            full.push('_');
            self.subscript(&mut full)?;
        }
        if let Some(value) = self.application(&full, false)? {
            return Ok(value);
        }
        let root = self.tree.letter(&full)?;
        Ok(self.quantity(root))
    }

    /// `\overline{AB}`, `\vec{a}`, `\angle ABC`: a name of its own.
    pub(super) fn marked(&mut self) -> Parsed<Value> {
        let mut name = self.slice(self.pos).to_owned();
        let is_sign = self.peek() == Some(Kind::Sign);
        self.pos += 1;
        if let (false, Some(Kind::Open(Bracket::Group))) = (is_sign, self.peek()) {
            let close = self.tokens.pair[self.pos] as usize;
            let inside = self.pos + 1..close;
            if name.starts_with("\\o")
                && inside.clone().any(|at| matches!(self.kind_at(at), Kind::Plus | Kind::Minus))
            {
                // A line over an expression is the conjugate.
                let value = self.bracket(Bracket::Group)?;
                let of = self.id(&value)?;
                let root = self.tree.call(Function::Conj, of, self.work)?;
                return Ok(self.quantity(root));
            }
            inside.for_each(|at| name.push_str(self.slice(at)));
            self.pos = close + 1;
        } else {
            let mut count = 0;
            while let Some(Kind::Letter) = self.peek()
                && (is_sign || count == 0)
            {
                name.push_str(self.slice(self.pos));
                self.pos += 1;
                count += 1;
            }
            if count == 0 {
                return Err(ParseError::Unparsable);
            }
        }
        // Conjugates and averages are functions; a name with a mark is a name.
        if self.peek() == Some(Kind::Underscore) {
            name.push('_');
            self.subscript(&mut name)?;
        }
        let root = self.tree.letter(&name)?;
        Ok(self.quantity(root))
    }
}
