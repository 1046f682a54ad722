//! Names that a Python text binds: functions, classes, parameters and variables, found in its tokens.

use crate::python::{PythonParser, Syntax};
use ruff_python_ast::token::TokenKind;
use std::ops::Range;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A function or a method.
    Function,
    /// A class.
    Class,
    /// A parameter of a function.
    Parameter,
    /// A variable: what is assigned to, or what a loop runs through.
    Variable,
}

/// A name at a place where it is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundName<'c> {
    /// As it is written.
    pub name: &'c str,
    /// What it stands for.
    pub kind: NameKind,
}

impl PythonParser {
    /// The names that a text binds, in order, as often as it does so; or why it is no Python. Attributes, items, keyword arguments
    /// and what is imported are no names of its own.
    pub fn bound_names<'c>(&mut self, code: &'c str) -> Result<Vec<BoundName<'c>>, Syntax> {
        let module = self.parse(code)?;
        let tokens: Vec<(TokenKind, &str)> = (module.tokens().iter())
            .map(|token| token.as_tuple())
            .filter(|(kind, _)| !matches!(kind, TokenKind::Comment | TokenKind::NonLogicalNewline))
            .map(|(kind, range)| (kind, code.get(Range::<usize>::from(range)).unwrap_or("")))
            .collect();
        let mut names = Vec::new();
        let ends = |kind: TokenKind| {
            matches!(kind, TokenKind::Newline | TokenKind::Semi | TokenKind::Indent | TokenKind::Dedent)
        };
        for statement in tokens.split(|(kind, _)| ends(*kind)) {
            in_statement(statement, &mut names);
        }
        Ok(names)
    }
}

/// A statement's tokens, white space and comments aside.
type Statement<'t, 'c> = &'t [(TokenKind, &'c str)];

fn in_statement<'c>(statement: Statement<'_, 'c>, names: &mut Vec<BoundName<'c>>) {
    let mut add = |name, kind| names.push(BoundName { name, kind });
    let targets = targets_end(statement);
    let declares = matches!(statement.first(), Some((TokenKind::Type, _)));
    // How many brackets are open, and inside of which the parameters of a function stand.
    let (mut depth, mut parameters) = (0_usize, None);
    for (at, (kind, name)) in statement.iter().enumerate() {
        match kind {
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => depth += 1,
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => {
                depth = depth.saturating_sub(1);
                parameters = parameters.filter(|inside| depth >= *inside);
            }
            // Soft keywords are names as well.
            TokenKind::Name | TokenKind::Match | TokenKind::Case | TokenKind::Type => {
                let before =
                    at.checked_sub(1).and_then(|before| statement.get(before)).map(|(kind, _)| *kind);
                let after = statement.get(at + 1).map(|(kind, _)| *kind);
                let starts = matches!(
                    before,
                    Some(TokenKind::Lpar | TokenKind::Comma | TokenKind::Star | TokenKind::DoubleStar)
                );
                let reaches_in = matches!(after, Some(TokenKind::Dot | TokenKind::Lpar | TokenKind::Lsqb));
                match before {
                    Some(TokenKind::Def) => {
                        add(name, NameKind::Function);
                        parameters = Some(depth + 1);
                    }
                    Some(TokenKind::Class) => add(name, NameKind::Class),
                    Some(TokenKind::Dot) => {}
                    _ if parameters == Some(depth) && starts => add(name, NameKind::Parameter),
                    _ if after == Some(TokenKind::ColonEqual) => add(name, NameKind::Variable),
                    _ if at < targets && depth == 0 && !reaches_in && !declares => {
                        add(name, NameKind::Variable);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// Up to where a statement consists of what it assigns to, or what it loops through.
fn targets_end(statement: Statement<'_, '_>) -> usize {
    let annotated = matches!(statement, [(TokenKind::Name, _), (TokenKind::Colon, _), ..]);
    if annotated {
        return 1;
    }
    let loops = statement.iter().take(2).any(|(kind, _)| *kind == TokenKind::For);
    let (mut depth, mut end) = (0_usize, 0);
    for (at, (kind, _)) in statement.iter().enumerate() {
        match kind {
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => depth += 1,
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => depth = depth.saturating_sub(1),
            // What follows are values, which may have defaults of their own.
            TokenKind::Lambda if depth == 0 => return end,
            TokenKind::In if depth == 0 && loops => return at,
            TokenKind::Equal if depth == 0 && !loops => end = at,
            _ => {}
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_code_binds_is_a_name() {
        let mut parser = PythonParser::new(13);
        let mut names = |code| -> String {
            let found = parser.bound_names(code).expect("Python");
            let words: Vec<String> =
                found.iter().map(|bound| format!("{:?} {}", bound.kind, bound.name)).collect();
            words.join(", ")
        };
        for (code, bound) in [
            ("a == b or c != d", ""),
            ("f(keyArg=1, other=[2])", ""),
            ("self.fooBar = x[keyB] = call(c=1)", ""),
            ("# aB = 1\ns = 'cD = 2'", "Variable s"),
            ("a = b = C = 1", "Variable a, Variable b, Variable C"),
            ("a, *b = c", "Variable a, Variable b"),
            ("x: int = 1; y: list[int]", "Variable x, Variable y"),
            ("a += 1", ""),
            ("for i, j in f(k=1): pass", "Variable i, Variable j"),
            ("if (n := 10) > 5: pass", "Variable n"),
            ("x = lambda q=1: q", "Variable x"),
            ("match = 1; type = 2", "Variable match, Variable type"),
            ("type X = int", ""),
            ("import a.b as cD", ""),
            (
                "class Foo(B, metaclass=M):\n    def doIt(self, a=1, *rest, k: int = f(z=2), **kw): pass",
                "Class Foo, Function doIt, Parameter self, Parameter a, Parameter rest, Parameter k, Parameter kw",
            ),
            ("async def f(): return [x async for x in y]", "Function f"),
        ] {
            assert_eq!(names(code), bound, "{code}");
        }
        assert!(parser.bound_names("a = (").is_err());
    }
}
