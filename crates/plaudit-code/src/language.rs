//! The languages of programs: how a code block is recognised, compiled and run, and which of them this host has.

use plaudit_box::{Exit, Job, Sandbox, Tier};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How programs of a language are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Language {
    /// Its name.
    pub name: String,
    /// The words after a fence that mean it.
    pub fences: Vec<String>,
    /// The file that the program is written to.
    pub file: String,
    /// A command of the shell that compiles the file and writes what is to be run to standard output, such as
    /// `g++ -O2 -o a main.cpp && cat a`. Its messages belong to standard error.
    pub compile: Option<String>,
    /// The file that holds what the compiler wrote.
    pub artifact: Option<String>,
    /// The command that runs the program: an absolute path, or a file of the box, and its arguments.
    pub run: Vec<String>,
    /// The environment of both commands.
    pub environment: Vec<(String, String)>,
    /// Folders that both commands read besides those of the system.
    pub folders: Vec<PathBuf>,
    /// Whether the runtime reserves far more address space than it uses, so that only what is used can be limited.
    pub reserves_memory: bool,
}

/// `-S` saves a quarter of the start but takes `exit` and `quit` along, which many programs call.
pub(crate) const PYTHON_START: &str = "import builtins, sys\n\
    builtins.exit = builtins.quit = sys.exit\n\
    __file__ = 'main.py'\n\
    exec(compile(open('main.py', 'rb').read(), 'main.py', 'exec'))";

/// Where compilers are.
pub(crate) const TOOLS: &str = "/usr/local/bin:/usr/bin:/bin";

/// The languages of the table, and the words after a fence that mean them.
const FENCES: [(&str, &[&str]); 6] = [
    ("python", &["python", "py", "python3"]),
    ("cpp", &["cpp", "c++", "cc", "cxx"]),
    ("javascript", &["javascript", "js", "node"]),
    ("java", &["java"]),
    ("go", &["go", "golang"]),
    ("rust", &["rust", "rs"]),
];

impl Language {
    /// The names of the languages of the table.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FENCES.iter().map(|(name, _)| *name)
    }

    /// A language of the table, or any other, by what is written after its fences: enough to find its code, and not to run it.
    pub fn written(name: &str) -> Self {
        let known = FENCES.iter().find(|(known, fences)| *known == name || fences.contains(&name));
        let mut language = Self::new(known.map_or(name, |(known, _)| known), "", Vec::new());
        if known.is_none() {
            language.fences.push(name.to_owned());
        }
        language
    }

    /// Python with this interpreter.
    pub fn python(interpreter: &str) -> Self {
        let run = [interpreter, "-I", "-S", "-c", PYTHON_START].map(str::to_owned).to_vec();
        Self::new("python", "main.py", run)
    }

    /// Whether it can be used in this sandbox: its user may read the interpreter, and a compiler has more than one process.
    pub fn is_usable_in(&self, sandbox: &Sandbox) -> bool {
        if self.compile.is_some() {
            return sandbox.tier() != Tier::B;
        }
        let mut job = Job::new(self.run.clone()).file(&self.file, "");
        job.environment.clone_from(&self.environment);
        job.limits.address_space = self.reserves_memory.then_some(u64::MAX);
        sandbox.run(&job).is_ok_and(|run| run.exit == Exit::Code(0))
    }

    fn new(name: &str, file: &str, run: Vec<String>) -> Self {
        let fences =
            FENCES.iter().find(|(known, _)| *known == name).map_or(&[] as &[&str], |(_, fences)| fences);
        Self {
            name: name.to_owned(),
            fences: fences.iter().map(|fence| (*fence).to_owned()).collect(),
            file: file.to_owned(),
            compile: None,
            artifact: None,
            run,
            environment: Vec::new(),
            folders: Vec::new(),
            reserves_memory: false,
        }
    }

    fn compiled(mut self, compile: &str, artifact: &str) -> Self {
        self.compile = Some(compile.to_owned());
        self.artifact = Some(artifact.to_owned());
        self.environment = vec![("PATH".into(), TOOLS.into())];
        self
    }
}

/// The languages that this host has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Languages {
    all: Vec<Language>,
    missing: Vec<(&'static str, &'static str)>,
}

impl Languages {
    /// Looks for the tools of the languages of the table.
    pub fn installed() -> Self {
        let mut found = Self { all: pythons(), missing: Vec::new() };
        if found.all.is_empty() {
            found.missing.push(("python", "python3"));
        }
        let run = || vec!["./program".to_owned()];
        let cpp = Language::new("cpp", "main.cpp", run())
            .compiled("g++ -O2 -std=c++20 -o program main.cpp && cat program", "program");
        found.add("cpp", "g++", tool("g++").map(|_| cpp));
        found.add(
            "javascript",
            "node",
            tool("node").map(|path| {
                let run = vec![path.to_string_lossy().into_owned(), "main.js".to_owned()];
                let mut node = Language::new("javascript", "main.js", run);
                node.reserves_memory = true;
                // It ends where it may not read this; where it is not there, it goes on.
                node.folders = vec![PathBuf::from("/etc/ssl/openssl.cnf")];
                node
            }),
        );
        found.add("java", "javac", tool("javac").and_then(|_| tool("java")).map(|path| {
            let home = path.canonicalize().unwrap_or(path);
            let options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss64m", "-jar", "program.jar"];
            let run = std::iter::once(home.to_string_lossy().into_owned()).chain(options.map(str::to_owned)).collect();
            let compile = concat!(
                // A file has the name of its public class, which need not be `Main`.
                r"class=$(sed -nE 's/^[ \t]*public +(final +)?class +([A-Za-z_][A-Za-z0-9_]*).*/\2/p' Main.java | head -n 1); ",
                r#"class=${class:-Main}; [ "$class" = Main ] || mv Main.java "$class.java"; "#,
                r#"javac -J-XX:+UseSerialGC -encoding UTF-8 "$class.java" 1>&2 && if [ -f Main.class ]; then class=Main; fi && "#,
                r#"jar cfe program.jar "$class" *.class && cat program.jar"#
            );
            let mut java = Language::new("java", "Main.java", run).compiled(compile, "program.jar");
            java.reserves_memory = true;
            java.folders = std::fs::read_dir("/etc").into_iter().flatten().flatten().map(|entry| entry.path())
                .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("java")))
                .collect();
            java
        }));
        let go = Language::new("go", "main.go", run()).compiled(
            "HOME=$PWD GOCACHE=$PWD/.cache GOFLAGS=-mod=mod GOTOOLCHAIN=local go build -o program main.go 1>&2 && cat program", "program");
        found.add(
            "go",
            "go",
            tool("go").map(|path| with_tool(Language { reserves_memory: true, ..go }, &path)),
        );
        let rust = Language::new("rust", "main.rs", run())
            .compiled("rustc -O --edition 2021 -o program main.rs && cat program", "program");
        found.add("rust", "rustc", rustc().map(|path| with_tool(rust, &path)));
        found
    }

    fn add(&mut self, name: &'static str, tool: &'static str, language: Option<Language>) {
        match language {
            Some(language) => self.all.push(language),
            None => self.missing.push((name, tool)),
        }
    }

    /// The same without what cannot be used in this sandbox.
    pub fn usable_in(&self, sandbox: &Sandbox) -> Self {
        let usable = |language: &&Language| language.is_usable_in(sandbox);
        Self { all: self.all.iter().filter(usable).cloned().collect(), missing: self.missing.clone() }
    }

    /// The language of that name, or of that word after a fence.
    pub fn find(&self, name: &str) -> Option<&Language> {
        let fits =
            |language: &&Language| language.name == name || language.fences.iter().any(|fence| fence == name);
        self.all.iter().find(fits)
    }

    /// The languages.
    pub fn all(&self) -> &[Language] {
        &self.all
    }

    /// The languages of the table that this host does not have, each with the tool that is not there.
    pub fn missing(&self) -> &[(&'static str, &'static str)] {
        &self.missing
    }

    /// The folders that their boxes read besides those of the system.
    pub fn folders(&self) -> Vec<PathBuf> {
        self.all.iter().flat_map(|language| language.folders.clone()).collect()
    }
}

/// Where a tool lies on the search path, first things first.
fn tools(name: &str) -> Vec<PathBuf> {
    let Some(path) = std::env::var_os("PATH") else { return Vec::new() };
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .filter(|candidate| candidate.is_file())
        .collect()
}

fn tool(name: &str) -> Option<PathBuf> {
    tools(name).into_iter().next()
}

/// A language whose tool may lie outside the system's folders: its folder is read, and is on the path of the compiler.
fn with_tool(mut language: Language, tool: &Path) -> Language {
    let real = tool.canonicalize().unwrap_or_else(|_| tool.to_owned());
    if let (Some(bin), false) = (real.parent(), real.starts_with("/usr")) {
        language.folders.extend(bin.parent().map(Path::to_owned));
        for (name, value) in &mut language.environment {
            if name == "PATH" {
                *value = format!("{}:{value}", bin.display());
            }
        }
    }
    language
}

/// The compiler itself, and not the proxy that rustup puts in its place.
fn rustc() -> Option<PathBuf> {
    let output = Command::new(tool("rustc")?).args(["--print", "sysroot"]).output().ok()?;
    let root = String::from_utf8(output.stdout).ok()?;
    Some(Path::new(root.trim()).join("bin/rustc")).filter(|path| path.is_file())
}

/// The interpreters on the search path: each itself, and not what a version manager puts in its place; with the folder of
/// its library.
fn pythons() -> Vec<Language> {
    let script = "import sys; print(sys.executable); print(sys.base_prefix)";
    let mut found: Vec<Language> = Vec::new();
    for tool in tools("python3") {
        let Ok(output) = Command::new(tool).args(["-I", "-c", script]).output() else { continue };
        let text = String::from_utf8_lossy(&output.stdout);
        let Some((program, prefix)) = text.trim().split_once('\n') else { continue };
        // In an environment the interpreter is a link; the box has what it points to.
        let Ok(program) = Path::new(program).canonicalize() else { continue };
        let mut language = Language::python(&program.to_string_lossy());
        if prefix != "/usr" {
            language.folders.push(PathBuf::from(prefix));
        }
        if !found.contains(&language) {
            found.push(language);
        }
    }
    found
}
