//! Names that Python code reads and does not bind: what it takes for granted.

use ruff_python_ast::visitor::{
    Visitor, walk_except_handler, walk_expr, walk_parameter, walk_pattern, walk_stmt,
};
use ruff_python_ast::{Alias, ExceptHandler, Expr, Parameter, Pattern, Stmt};
use std::collections::BTreeSet;

/// What a module reads and binds, wherever it does so.
#[derive(Debug, Default)]
pub(crate) struct Names<'a> {
    read: BTreeSet<&'a str>,
    bound: BTreeSet<&'a str>,
    classes: BTreeSet<&'a str>,
    /// Whether it imports anything of the program by name.
    pub(crate) imports_solution: bool,
    /// Whether an import binds names that are not written down.
    imports_all: bool,
}

impl<'a> Names<'a> {
    pub(crate) fn of(body: &'a [Stmt]) -> Self {
        let mut names = Self::default();
        names.visit_body(body);
        names
    }

    /// What it reads and does not bind, without built-in names; nothing where an import may bind anything.
    pub(crate) fn free(&self) -> impl Iterator<Item = &'a str> {
        let open = !self.imports_all;
        (self.read.difference(&self.bound).copied()).filter(move |name| open && !is_built_in(name))
    }

    pub(crate) fn reads(&self, name: &str) -> bool {
        self.read.contains(name)
    }

    pub(crate) fn has_class(&self, name: &str) -> bool {
        self.classes.contains(name)
    }

    pub(crate) fn binds(&self, name: &str) -> bool {
        self.imports_all || self.bound.contains(name)
    }
}

impl<'a> Visitor<'a> for Names<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                self.bound.insert(function.name.as_str());
            }
            Stmt::ClassDef(class) => {
                self.bound.insert(class.name.as_str());
                self.classes.insert(class.name.as_str());
            }
            Stmt::ImportFrom(import) => {
                self.imports_solution |= import.module.as_ref().is_some_and(|module| module == "solution");
            }
            Stmt::Import(import) => {
                self.imports_solution |= import.names.iter().any(|alias| &alias.name == "solution");
            }
            _ => {}
        }
        walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Name(name) = expression {
            let names = if name.ctx.is_load() { &mut self.read } else { &mut self.bound };
            names.insert(name.id.as_str());
        }
        walk_expr(self, expression);
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.bound.insert(parameter.name.as_str());
        walk_parameter(self, parameter);
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(named) = handler;
        self.bound.extend(named.name.as_ref().map(|name| name.as_str()));
        walk_except_handler(self, handler);
    }

    fn visit_alias(&mut self, alias: &'a Alias) {
        let name = alias.asname.as_ref().unwrap_or(&alias.name).as_str();
        self.imports_all |= name == "*";
        self.bound.extend(name.split('.').next());
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        match pattern {
            Pattern::MatchAs(pattern) => self.bound.extend(pattern.name.as_ref().map(|name| name.as_str())),
            Pattern::MatchStar(pattern) => self.bound.extend(pattern.name.as_ref().map(|name| name.as_str())),
            _ => {}
        }
        walk_pattern(self, pattern);
    }
}

/// Names that every module has. An error has a name that says so.
fn is_built_in(name: &str) -> bool {
    ["Error", "Exception", "Warning", "Exit", "Interrupt"].iter().any(|end| name.ends_with(end))
        || name.starts_with("__")
        || is_built_in_function(name)
        || ["NotImplemented", "Ellipsis", "StopIteration", "StopAsyncIteration"].contains(&name)
}

/// Functions and classes of Python's `builtins`.
pub(crate) fn is_built_in_function(name: &str) -> bool {
    const NAMES: &str = "abs aiter all anext any ascii bin bool breakpoint bytearray bytes callable chr classmethod compile complex \
        delattr dict dir divmod enumerate eval exec exit filter float format frozenset getattr globals hasattr hash help hex id input \
        int isinstance issubclass iter len list locals map max memoryview min next object oct open ord pow print property quit range \
        repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip";
    NAMES.split_ascii_whitespace().any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::PythonParser;

    #[test]
    fn what_is_read_and_not_bound_is_free() {
        for (code, wanted) in [
            ("import math\nassert math.isclose(f(x=1), 2)", "f"),
            ("def check(c):\n    for i in [1]: assert c(i) == g(i)\ncheck(Solution().add)", "Solution g"),
            ("assert [x for x in f(1) if (y := x)] and y", "f"),
            ("try: f()\nexcept ValueError as error: print(error)", "f"),
            ("match f():\n    case [a, *b]: print(a, b)\n    case Node(): pass", "Node f"),
            ("def f(a: Node, b=C) -> List[int]: return lambda d: d", "C List Node"),
            ("from x import *\nassert f(1)", ""),
            ("import a.b as c, d.e\nassert f(f'{c} {d} {g}')", "f g"),
        ] {
            let module = PythonParser::for_test().parse(code).unwrap();
            let free: Vec<&str> = Names::of(&module.syntax().body).free().collect();
            assert_eq!(free.join(" "), wanted, "{code}");
        }
    }
}
