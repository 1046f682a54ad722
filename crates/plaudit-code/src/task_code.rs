//! The code in a task's text: functions and imports that its tests use beside the function under test, as in HumanEval 32, 38 and 50.

use crate::extract::fenced_blocks;
use crate::python::PythonParser;
use ruff_python_ast::{Expr, Stmt};
use std::collections::BTreeSet;

/// What a task's text defines.
#[derive(Debug, Default)]
pub(crate) struct TaskCode {
    /// A module; empty where the text has no code.
    pub(crate) source: String,
    names: BTreeSet<String>,
}

/// A function that the model is to write may end a task without a body.
const BODIES: [&str; 2] = ["", "\n    pass\n"];

impl TaskCode {
    /// Reads a text that is Python, or prose with fenced blocks of Python.
    pub(crate) fn read(text: &str) -> Self {
        let defines = ["def ", "import ", "class ", "="].iter().any(|word| text.contains(word));
        if !defines {
            return Self::default();
        }
        let whole = || Self::of_module(text);
        let fenced = || {
            let blocks = fenced_blocks(text, &["python", "python3", "py"]);
            let code: Vec<_> = blocks.iter().map(|block| block.code()).collect();
            Self::of_module(&code.join("\n"))
        };
        whole().or_else(fenced).unwrap_or_else(Self::default)
    }

    fn of_module(text: &str) -> Option<Self> {
        BODIES.iter().find_map(|body| {
            let source = format!("{text}{body}");
            let module = PythonParser::new(13).parse(&source).ok()?;
            let mut names = BTreeSet::new();
            for statement in &module.syntax().body {
                collect(statement, &mut names);
            }
            Some(Self { source: if names.is_empty() { String::new() } else { source }, names })
        })
    }

    /// Whether an expression uses a name that the task defines, apart from the function under test.
    pub(crate) fn is_used_by(&self, expression: &str, entry_point: Option<&str>) -> bool {
        let letter = |letter: char| letter.is_alphanumeric() || letter == '_';
        !self.names.is_empty()
            && expression
                .split(|other| !letter(other))
                .any(|word| entry_point != Some(word) && self.names.contains(word))
    }
}

/// The names that a statement defines for others. A function without a body is for the model to write.
fn collect(statement: &Stmt, names: &mut BTreeSet<String>) {
    let mut add = |name: &str| {
        names.insert(name.to_owned());
    };
    match statement {
        Stmt::FunctionDef(function) if function.body.iter().any(does_something) => add(&function.name),
        Stmt::ClassDef(class) if class.body.iter().any(does_something) => add(&class.name),
        Stmt::Assign(assignment) => {
            for target in &assignment.targets {
                if let Expr::Name(name) = target {
                    add(&name.id);
                }
            }
        }
        Stmt::Import(import) => {
            for alias in &import.names {
                add(alias.asname.as_ref().unwrap_or(&alias.name).split('.').next().unwrap_or(""));
            }
        }
        Stmt::ImportFrom(import) => {
            for alias in &import.names {
                add(alias.asname.as_ref().unwrap_or(&alias.name));
            }
        }
        _ => {}
    }
}

/// Whether a statement is more than a docstring, `...` or `pass`.
fn does_something(statement: &Stmt) -> bool {
    match statement {
        Stmt::Pass(_) => false,
        Stmt::Expr(expression) => {
            !matches!(*expression.value, Expr::StringLiteral(_) | Expr::EllipsisLiteral(_))
        }
        Stmt::FunctionDef(function) => function.body.iter().any(does_something),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_tasks_is_found() {
        let two = "def two():\n    return 2\n\n";
        for task in [
            format!("import math\n{two}def f(a, b):\n    \"\"\"Adds.\"\"\"\n"),
            format!("import math\n{two}def f(a, b):"),
            format!("import math\n{two}def f(a, b):\n"),
            format!("import math\n{two}def f(a, b): ..."),
            format!("Complete this:\n```python\nimport math\n{two}def f(a, b):\n```\nBe brief."),
        ] {
            let code = TaskCode::read(&task);
            assert!(code.source.contains("return 2"), "{task}");
            assert!(code.is_used_by("f(two(), 1)", Some("f")), "{task}");
            assert!(code.is_used_by("candidate(math.pi)", Some("f")), "{task}");
            assert!(!code.is_used_by("f(1, [2])", Some("f")), "{task}");
            assert!(!code.is_used_by("f(1, 2)", None), "{task}: nobody wrote `f`");
        }
        for prose in ["", "Write f.", "Let x = 1, then y", "x", "```python\nx ===\n```"] {
            let code = TaskCode::read(prose);
            assert!(code.source.is_empty() && !code.is_used_by("f(x)", None), "{prose}");
        }
        let stub = TaskCode::read("class Solution:\n    def add(self, a, b):\n        pass\n");
        assert!(!stub.is_used_by("Solution().add(1, 2)", None));
    }
}
