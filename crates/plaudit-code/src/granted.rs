//! What the data of a row take for granted: nodes of lists and trees, a function under test that is named as a built-in one, and names
//! that nothing defines.

use crate::assertion::is_built_in;
use crate::free_names::Names;
use crate::prelude;
use crate::python::PythonParser;
use crate::task_code::TaskCode;
use ruff_python_ast::visitor::{Visitor, walk_expr};
use ruff_python_ast::{Expr, Stmt};
use std::collections::BTreeSet;

/// What a test has to do with `ListNode` and `TreeNode`, as LeetCode's rows have them (`python/nodes.py`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GivenNodes {
    /// Nothing.
    #[default]
    None,
    /// It uses the classes, which are there for a program that has none of its own.
    Given,
    /// It makes nodes: those of a class of the program's own cross as what is in them, too.
    Shared,
}

impl GivenNodes {
    /// As the harness is told.
    pub(crate) const fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Given => Some("given"),
            Self::Shared => Some("shared"),
        }
    }
}

const CLASSES: [&str; 2] = ["ListNode", "TreeNode"];
const FUNCTIONS: [&str; 4] = ["list_node", "tree_node", "is_same_list", "is_same_tree"];

/// Whether a test's own box decides what a function of that name does.
pub(crate) fn is_node_function(name: &str) -> bool {
    FUNCTIONS.contains(&name)
}

pub(crate) fn is_node_class(name: &str) -> bool {
    CLASSES.contains(&name)
}

fn is_of_nodes(name: &str) -> bool {
    is_node_class(name) || is_node_function(name)
}

/// What a test takes for granted.
#[derive(Debug, Default)]
pub(crate) struct Granted {
    pub(crate) nodes: GivenNodes,
    /// The function under test, where it has the name of a built-in one and the test says no other.
    pub(crate) candidate: Option<String>,
    /// Names that nobody defines, nor is told to.
    pub(crate) missing: Vec<String>,
}

impl Granted {
    /// Reads a test with these statements.
    pub(crate) fn of(body: &[Stmt], setup: &str, entry_point: Option<&str>, task: &TaskCode) -> Self {
        let setup = PythonParser::for_test().parse(setup).ok();
        let set_up = setup.as_ref().map_or_else(Names::default, |module| Names::of(&module.syntax().body));
        let names = Names::of(body);
        let all = names.free().chain(set_up.free());
        let free: BTreeSet<&str> = all
            .filter(|name| !set_up.binds(name) && !names.binds(name) && *name != "candidate")
            .filter(|name| !prelude::is_module(name))
            .collect();
        let tested = Tested::of(body);
        let mut others = free.iter().filter(|name| !is_of_nodes(name)).peekable();
        let says = entry_point.is_some() || names.imports_solution || others.peek().is_some();
        let defines = CLASSES
            .iter()
            .any(|class| names.has_class(class) || set_up.has_class(class) || task.defines(class));
        let imports = names.imports_solution && CLASSES.iter().any(|class| names.binds(class));
        let nodes = match () {
            // The function under test is one of them.
            () if !says || !(defines || imports || free.iter().any(|name| is_of_nodes(name))) => {
                GivenNodes::None
            }
            () if entry_point.is_some() || defines || free.iter().any(|name| is_node_function(name)) => {
                GivenNodes::Shared
            }
            () => GivenNodes::Given,
        };
        let candidate = if says || nodes != GivenNodes::None { None } else { tested.built_in() };
        let closed = entry_point.is_some() || names.imports_solution || tested.checked.is_empty();
        let missing = others
            .filter(|name| !closed && !tested.checked.contains(**name))
            .filter(|name| !prelude::is_known(name) && !task.mentions(name))
            .map(|name| (*name).to_owned())
            .collect();
        Self { nodes, candidate: candidate.map(str::to_owned), missing }
    }
}

/// What a test says about the function under test.
#[derive(Default)]
struct Tested<'a> {
    /// The names in what it hands to `check`.
    checked: BTreeSet<&'a str>,
    /// Functions with the name of a built-in one that are called with no call in their arguments.
    called: BTreeSet<&'a str>,
    calls: bool,
}

impl<'a> Tested<'a> {
    fn of(body: &'a [Stmt]) -> Self {
        let mut tested = Self::default();
        for statement in body {
            if let Stmt::Expr(expression) = statement
                && let Expr::Call(call) = &*expression.value
                && matches!(&*call.func, Expr::Name(name) if name.id == "check")
            {
                let mut inside = Self { calls: true, ..Self::default() };
                call.arguments.args.iter().for_each(|argument| inside.visit_expr(argument));
                tested.checked.extend(inside.checked);
            }
        }
        tested.visit_body(body);
        tested
    }

    /// The one that a test can mean that names no other function.
    fn built_in(&self) -> Option<&'a str> {
        let named = self.checked.iter().find(|name| is_built_in(name));
        let mut called = self.called.iter();
        named.or_else(|| called.next().filter(|_| called.next().is_none())).copied()
    }
}

impl<'a> Visitor<'a> for Tested<'a> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) if self.calls => {
                self.checked.insert(name.id.as_str());
            }
            Expr::Call(call) if !self.calls => {
                if let Expr::Name(name) = &*call.func
                    && is_built_in(&name.id)
                    && !call.arguments.args.iter().any(has_call)
                {
                    self.called.insert(name.id.as_str());
                }
            }
            _ => {}
        }
        walk_expr(self, expression);
    }
}

fn has_call(expression: &Expr) -> bool {
    struct Search(bool);
    impl<'a> Visitor<'a> for Search {
        fn visit_expr(&mut self, expression: &'a Expr) {
            self.0 |= matches!(expression, Expr::Call(_));
            walk_expr(self, expression);
        }
    }
    let mut search = Search(false);
    search.visit_expr(expression);
    search.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(test: &str, entry_point: Option<&str>, prompt: &str) -> Granted {
        let module = PythonParser::for_test().parse(test).unwrap();
        Granted::of(&module.syntax().body, "", entry_point, &TaskCode::read(prompt))
    }

    #[test]
    fn tests_tell_what_they_have_to_do_with_nodes() {
        use GivenNodes::{Given, None as No, Shared};
        for (test, entry_point, wanted) in [
            ("assert f(1) == 2", None, No),
            ("assert f(ListNode(1)) == 2", None, Given),
            ("assert f(ListNode(1)) == 2", Some("f"), Shared),
            ("assert is_same_list(f(list_node([1])), list_node([1]))", None, Shared),
            ("def check(c): assert c(root = tree_node([1])) == 1\ncheck(Solution().f)", None, Shared),
            ("class ListNode: pass\nassert f(ListNode()) == 1", None, Shared),
            ("from solution import f, ListNode\nassert f(ListNode(1)) == 2", None, Given),
            ("assert is_same_tree(TreeNode(1), TreeNode(1))", None, No),
        ] {
            assert_eq!(granted(test, entry_point, "").nodes, wanted, "{test}");
        }
    }

    #[test]
    fn a_built_in_name_can_be_the_function_under_test() {
        for (test, wanted) in [
            ("def check(c): assert sum(1, 2) == 3", Some("sum")),
            ("def check(c): assert max(sum(1, 2), 0) == 3", Some("sum")),
            ("def check(c):\n    assert c([1]) == 3\ncheck(round)", Some("round")),
            ("assert len(max(1)) == 1 and abs(2) == 3", None),
            ("assert len(f(1)) == 1", None),
            ("from solution import f\nassert len([1]) == f", None),
        ] {
            assert_eq!(granted(test, None, "").candidate.as_deref(), wanted, "{test}");
        }
    }

    #[test]
    fn names_that_nobody_defines_are_missing() {
        let test = "def check(c):\n    assert graph(c(node = make([1]))) == sqrt(List)\ncheck(Solution().f)";
        assert_eq!(granted(test, None, "").missing, ["graph", "make"]);
        assert_eq!(granted(test, None, "Write `make` and f.").missing, ["graph"]);
        assert!(granted(test, Some("f"), "").missing.is_empty());
        assert!(granted("assert f(make(1)) == 1", None, "Write f.").missing.is_empty());
    }
}
