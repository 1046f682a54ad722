//! The code in a task's text: functions and imports that its tests use beside the function under test, as in HumanEval 32, 38 and 50.

use crate::free_names::Names;
use crate::granted::is_node_class;
use crate::prelude;
use crate::python::PythonParser;
use plaudit_text::fenced_blocks;
use ruff_python_ast::visitor::{Visitor, walk_stmt};
use ruff_python_ast::{Expr, Stmt};
use serde_json::Value;
use std::collections::BTreeSet;

/// What a task's text defines.
#[derive(Debug, Default)]
pub(crate) struct TaskCode {
    /// A module; empty where the text has no code.
    pub(crate) source: String,
    names: BTreeSet<String>,
    /// Functions that the program is to define, each with a name that its signature uses and nobody defines.
    pub(crate) undefined: Vec<(String, String)>,
    text: String,
}

/// A function that the model is to write, or a method, may end a task without a body.
const BODIES: [&str; 3] = ["", "\n    pass\n", "\n        pass\n"];

impl TaskCode {
    /// Reads a text that is Python, or prose with fenced blocks of Python.
    pub(crate) fn read(text: &str) -> Self {
        let defines = ["def ", "import ", "class ", "="].iter().any(|word| text.contains(word));
        if !defines {
            return Self { text: text.to_owned(), ..Self::default() };
        }
        let whole = || Self::of_module(text);
        let fenced = || Self::of_module(&fenced_code(text));
        let mut found = whole().or_else(fenced).unwrap_or_else(Self::default);
        // In a comment a definition is only told.
        let told = |line: &&str| !line.trim_start().starts_with('#');
        found.text = text.lines().filter(told).collect::<Vec<_>>().join("\n");
        // A class that the text asks for is the program's to define.
        found.undefined.retain(|(_, name)| !found.text.contains(&format!("class {name}")));
        found
    }

    /// The same without the code, for tests that do not say which function they test: what it defines could be the program's to define.
    pub(crate) fn signature(self) -> Self {
        Self { source: String::new(), names: BTreeSet::new(), ..self }
    }

    /// What counts for tests of a list, which are asserts where they are texts.
    pub(crate) fn of_asserts(tests: &[Value], prompt: &str) -> Self {
        if tests.iter().any(Value::is_string) { Self::read(prompt).signature() } else { Self::default() }
    }

    /// Whether the task defines a name.
    pub(crate) fn defines(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Whether the text of the task has a word, and not only as a type that nobody defines.
    pub(crate) fn mentions(&self, word: &str) -> bool {
        let letter = |letter: char| letter.is_alphanumeric() || letter == '_';
        let undefined = self.undefined.iter().any(|(_, name)| name == word);
        !undefined && self.text.split(|other| !letter(other)).any(|found| found == word)
    }

    fn of_module(text: &str) -> Option<Self> {
        BODIES.iter().find_map(|body| {
            let source = format!("{text}{body}");
            let module = PythonParser::new(13).parse(&source).ok()?;
            let mut names = BTreeSet::new();
            for statement in &module.syntax().body {
                collect(statement, &mut names);
            }
            let undefined = undefined(&module.syntax().body);
            let source = if names.is_empty() { String::new() } else { source };
            Some(Self { source, names, undefined, text: String::new() })
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

/// The Python code of a text's fenced blocks.
fn fenced_code(text: &str) -> String {
    let blocks = fenced_blocks(text, &["python", "python3", "py"]);
    blocks.iter().map(|block| block.code()).collect::<Vec<_>>().join("\n")
}

/// Functions without a body, each with a name that its signature uses and the module does not define.
fn undefined(body: &[Stmt]) -> Vec<(String, String)> {
    struct Signatures<'a>(Vec<(&'a str, &'a Expr)>);
    impl<'a> Visitor<'a> for Signatures<'a> {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            if let Stmt::FunctionDef(function) = statement
                && !function.body.iter().any(does_something)
            {
                let parameters = function.parameters.iter().filter_map(|parameter| parameter.annotation());
                let all = parameters.chain(function.returns.as_deref());
                self.0.extend(all.map(|annotation| (function.name.as_str(), annotation)));
            }
            walk_stmt(self, statement);
        }

        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut signatures = Signatures(Vec::new());
    signatures.visit_body(body);
    let all = Names::of(body);
    let mut found = Vec::new();
    for (function, annotation) in signatures.0 {
        let mut used = Names::default();
        used.visit_expr(annotation);
        let missing = used.free().filter(|name| !all.binds(name) && !is_given(name));
        found.extend(missing.map(|name| (function.to_owned(), name.to_owned())));
    }
    found
}

/// Whether a program need not define a name.
fn is_given(name: &str) -> bool {
    prelude::is_known(name) || is_node_class(name)
}

/// The program that a text makes behind the code of a task, as the rows of HumanEval are meant: nothing where the text defines the
/// function itself, or where it is no body. One that has lost the indentation of its first line, or of every line, must return something.
pub(crate) fn complete(prompt: &str, entry_point: &str, text: &str) -> Option<String> {
    let defines = |code: &str| Functions::of(code).filter(|found| found.names.contains(entry_point));
    if text.trim().is_empty() || defines(text).is_some() {
        return None;
    }
    let indented = |line: &str| if line.trim().is_empty() { line.to_owned() } else { format!("    {line}") };
    let is_body = text.trim_start_matches(['\n', '\r']).starts_with([' ', '\t']);
    let bodies = match is_body {
        true => vec![text.to_owned()],
        false => {
            vec![format!("    {}", text.trim_start()), text.split_inclusive('\n').map(indented).collect()]
        }
    };
    let fenced = fenced_code(prompt);
    [prompt, fenced.as_str()].into_iter().find_map(|task| {
        let before = Functions::of(&format!("{task}{}", BODIES[1])).map_or(0, |found| found.results);
        let end = if task.ends_with('\n') { "" } else { "\n" };
        bodies
            .iter()
            .map(|body| format!("{task}{end}{body}"))
            .find(|joined| defines(joined).is_some_and(|found| is_body || found.results > before))
    })
}

/// What a module defines.
#[derive(Default)]
struct Functions {
    names: BTreeSet<String>,
    /// How many `return` and `yield` its functions have, without those of functions in functions.
    results: usize,
    depth: usize,
    is_broken: bool,
}

impl Functions {
    /// Nothing where the text is no module, or returns outside of a function.
    fn of(code: &str) -> Option<Self> {
        let module = PythonParser::new(13).parse(code).ok()?;
        let mut found = Self::default();
        found.visit_body(&module.syntax().body);
        for statement in &module.syntax().body {
            collect(statement, &mut found.names);
        }
        (!found.is_broken).then_some(found)
    }
}

impl<'a> Visitor<'a> for Functions {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(_) => {
                self.depth += 1;
                walk_stmt(self, statement);
                self.depth -= 1;
                return;
            }
            Stmt::Return(_) if self.depth == 0 => self.is_broken = true,
            Stmt::Return(_) => self.results += usize::from(self.depth == 1),
            Stmt::Expr(expression) if matches!(*expression.value, Expr::Yield(_) | Expr::YieldFrom(_)) => {
                self.results += usize::from(self.depth == 1);
            }
            _ => {}
        }
        walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, _: &'a Expr) {}
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
    fn a_body_is_joined_to_its_prompt() {
        let prompt = "import math\n\n\ndef f(a, b):\n    \"\"\"Adds.\"\"\"\n";
        let chat = format!("Complete this:\n```python\n{prompt}```\nBe brief.");
        for body in [
            "    return a + b\n",
            "\n    return a + b",
            "    c = a\n    return c + b\n\n\ndef g():\n    return 1\n",
            "c = a\n    return c + b",
            "c = a\nif c:\n    c += b\nreturn c\n",
            "return a + b\n\n\ndef g():\n    return 1\n",
        ] {
            for prompt in [prompt, prompt.trim_end(), &chat] {
                let joined = complete(prompt, "f", body).unwrap_or_else(|| panic!("{prompt}{body}"));
                assert!(joined.starts_with("import math") && !joined.contains("```"), "{joined}");
            }
        }
        for other in [
            "def f(a, b):\n    return a + b\n",
            "import math\nf = math.hypot",
            "def g(a, b):\n    return a + b\n",
            "The sum.",
            "Sure",
            "    I add both.\n",
            "print(1)",
            "",
            "\n",
        ] {
            assert_eq!(complete(prompt, "f", other), None, "{other}");
        }
        assert_eq!(complete("Write f.", "f", "    return 1\n"), None);
        assert_eq!(complete(prompt, "g", "    return 1\n"), None);
    }

    #[test]
    fn signatures_tell_what_nobody_defines() {
        let solution = |kind: &str| format!("class Solution:\n    def f(self, a: {kind}) -> List[int]:\n");
        for (text, wanted) in [
            (solution("Optional[Graph]"), vec!["Graph"]),
            (format!("```python\n# class Graph:\n#     pass\n{}```", solution("Graph")), vec!["Graph"]),
            (solution("'Graph'"), vec![]),
            (solution("Optional[TreeNode]"), vec![]),
            (format!("class Graph: ...\n{}", solution("Graph")), vec![]),
            (format!("Write a class Graph.\n```python\n{}```", solution("Graph")), vec![]),
            ("```python\ng(Graph(1))\ndef f(a): return Graph(a)\n```".to_owned(), vec![]),
        ] {
            let found = TaskCode::read(&text).undefined;
            let wanted: Vec<_> =
                wanted.into_iter().map(|name: &str| ("f".to_owned(), name.to_owned())).collect();
            assert_eq!(found, wanted, "{text}");
        }
    }

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
