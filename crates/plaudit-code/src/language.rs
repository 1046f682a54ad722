//! The languages of programs: how a code block is recognised, compiled and run, and which of them this host has.

use crate::cases::Case;
use crate::execute::{Program, Verdict};
use plaudit_box::{Exit, Isolation, Job, Limits, Sandbox};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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
    /// The command that runs the program: an absolute path, or a file of the box, and its arguments. `{heap_mb}` stands for three
    /// quarters of the limit of memory, for a runtime that must be told how large its heap may become.
    pub run: Vec<String>,
    /// The environment of both commands.
    pub environment: Vec<(String, String)>,
    /// Folders that both commands read besides those of the system.
    pub folders: Vec<PathBuf>,
    /// Whether the runtime reserves far more address space than it uses, so that only what is used can be limited. Such a runtime has
    /// threads of its own too, which do not count as the program's.
    pub reserves_memory: bool,
}

/// `-S` saves a quarter of the start but takes `exit` and `quit` along, which many programs call.
pub(crate) const PYTHON_START: &str = "import builtins, sys\n\
    builtins.exit = builtins.quit = sys.exit\n\
    __file__ = 'main.py'\n\
    exec(compile(open('main.py', 'rb').read(), 'main.py', 'exec'))";

/// Where compilers are.
pub(crate) const TOOLS: &str = "/usr/local/bin:/usr/bin:/bin";

/// A language of the table.
struct Known {
    name: &'static str,
    /// What compiles or runs it.
    tool: &'static str,
    /// The words after a fence that mean it.
    fences: &'static [&'static str],
    /// A program that prints 7: a compiler is there only if this runs.
    seven: &'static str,
}

const KNOWN: [Known; 6] = [
    Known { name: "python", tool: "python3", fences: &["python", "py", "python3"], seven: "print(7)" },
    Known {
        name: "cpp",
        tool: "g++",
        fences: &["cpp", "c++", "cc", "cxx"],
        seven: "#include <iostream>\nint main() { std::cout << 7; }",
    },
    Known {
        name: "javascript",
        tool: "node",
        fences: &["javascript", "js", "node"],
        seven: "console.log(7)",
    },
    Known {
        name: "java",
        tool: "javac",
        fences: &["java"],
        seven: "class Main { public static void main(String[] x) { System.out.print(7); } }",
    },
    Known {
        name: "go",
        tool: "go",
        fences: &["go", "golang"],
        seven: "package main\nimport \"fmt\"\nfunc main() { fmt.Print(7) }",
    },
    Known { name: "rust", tool: "rustc", fences: &["rust", "rs"], seven: "fn main() { print!(\"7\") }" },
];

fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// The compiled languages that were tried in an isolation, and whether they work. Compiling takes a second or two.
static TRIED: Mutex<Vec<(Language, Isolation, bool)>> = Mutex::new(Vec::new());

impl Language {
    /// The names of the languages of the table.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KNOWN.iter().map(|known| known.name)
    }

    /// A language of the table, or any other, by what is written after its fences: enough to find its code, and not to run it.
    pub fn written(name: &str) -> Self {
        let known = KNOWN.iter().find(|known| known.name == name || known.fences.contains(&name));
        let mut language = Self::new(known.map_or(name, |known| known.name), "", Vec::new());
        if known.is_none() {
            language.fences.push(name.to_owned());
        }
        language
    }

    /// Python with this interpreter. Its limit of 4300 digits is lifted: the limits of time are enough.
    pub fn python(interpreter: &str) -> Self {
        let run = [interpreter, "-I", "-S", "-X", "int_max_str_digits=0", "-c", PYTHON_START]
            .map(str::to_owned)
            .to_vec();
        Self::new("python", "main.py", run)
    }

    /// Whether it can be used in this sandbox: its user may read the interpreter, or a small program is compiled and runs. A compiler has
    /// more than one process.
    pub fn is_usable_in(&self, sandbox: &Sandbox) -> bool {
        if self.compile.is_none() {
            let limits = Limits { address_space: self.address_space(1 << 30), ..Limits::default() };
            let mut job = Job::new(self.arguments(&limits)).file(&self.file, "").limits(limits);
            job.environment.clone_from(&self.environment);
            return sandbox.run(&job).is_ok_and(|run| run.exit == Exit::Code(0));
        }
        let Some(known) = known(&self.name).filter(|_| sandbox.isolation() != Isolation::Landlock) else {
            return sandbox.isolation() != Isolation::Landlock;
        };
        let mut tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |(language, isolation, _): &&(Self, Isolation, bool)| {
            language == self && *isolation == sandbox.isolation()
        };
        if let Some((_, _, works)) = tried.iter().find(same) {
            return *works;
        }
        // A minute on the clock, for hosts that are busy.
        let limits = Limits { wall: Some(Duration::from_secs(60)), ..Limits::default() };
        let prints = Case::Stdin { input: String::new(), output: "7".to_owned() };
        let program = Program::prepare(sandbox, &Arc::new(self.clone()), &Arc::from(known.seven), &limits);
        let works = program.is_ok_and(|program| program.run(sandbox, &prints).verdict == Verdict::Passed);
        tried.push((self.clone(), sandbox.isolation(), works));
        works
    }

    /// The tool that compiles or runs it.
    pub fn tool(&self) -> &str {
        let compiler = known(&self.name).filter(|_| self.compile.is_some()).map(|known| known.tool);
        compiler.or(self.run.first().map(String::as_str)).unwrap_or("")
    }

    /// The command that runs a program within these limits.
    pub(crate) fn arguments(&self, limits: &Limits) -> Vec<String> {
        let heap = ((limits.memory / 4 * 3) >> 20).max(1).to_string();
        self.run.iter().map(|argument| argument.replace("{heap_mb}", &heap)).collect()
    }

    /// The address space that a runtime may reserve with this limit of memory, where it reserves more than it uses. Without a limit, page
    /// tables alone could fill the host between two looks at a box.
    pub(crate) fn address_space(&self, memory: u64) -> Option<u64> {
        self.reserves_memory.then(|| memory.saturating_mul(16).max(16 << 30))
    }

    fn new(name: &str, file: &str, run: Vec<String>) -> Self {
        let fences = known(name).map_or(&[] as &[&str], |known| known.fences);
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
            found.add("python", None);
        }
        let run = || vec!["./program".to_owned()];
        let cpp = Language::new("cpp", "main.cpp", run())
            .compiled("g++ -O2 -std=c++20 -o program main.cpp && cat program", "program");
        found.add("cpp", tool("g++").map(|_| cpp));
        found.add(
            "javascript",
            tool("node").map(|path| {
                let run = vec![path.to_string_lossy().into_owned(), "main.js".to_owned()];
                let mut node = Language::new("javascript", "main.js", run);
                node.reserves_memory = true;
                // It ends where it may not read this; where it is not there, it goes on.
                node.folders = vec![PathBuf::from("/etc/ssl/openssl.cnf")];
                node
            }),
        );
        let java = tool("javac").and_then(|_| tool("java"));
        found.add("java", java.map(|path| java_of(&path.canonicalize().unwrap_or(path))));
        let go = Language::new("go", "main.go", run()).compiled(
            "HOME=$PWD GOCACHE=$PWD/.cache GOFLAGS=-mod=mod GOTOOLCHAIN=local go build -o program main.go 1>&2 && cat program", "program");
        found.add("go", tool("go").map(|path| with_tool(Language { reserves_memory: true, ..go }, &path)));
        let rust = Language::new("rust", "main.rs", run())
            .compiled("rustc -O --edition 2021 -o program main.rs && cat program", "program");
        found.add("rust", rustc().map(|path| with_tool(rust, &path)));
        found
    }

    fn add(&mut self, name: &'static str, language: Option<Language>) {
        self.all.extend(language.clone());
        if language.is_none() {
            self.missing.extend(known(name).map(|known| (known.name, known.tool)));
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

/// Java with this virtual machine. Left alone it sizes its heap, its threads and its pools by the host: on a large one it would not start
/// in a box. The main thread has a stack for deep recursion, all others one of 8 MB.
fn java_of(machine: &Path) -> Language {
    let options = [
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:ActiveProcessorCount=4",
        "-Xms16m",
        "-Xmx{heap_mb}m",
        "-Xss64m",
        "-XX:ThreadStackSize=8192",
        "-jar",
        "program.jar",
    ];
    let run = std::iter::once(machine.to_string_lossy().into_owned()).chain(options.map(str::to_owned));
    let mut java = Language::new("java", "Main.java", run.collect()).compiled(COMPILE_JAVA, "program.jar");
    java.reserves_memory = true;
    java.folders = std::fs::read_dir("/etc")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("java")))
        .collect();
    java
}

/// A file has the name of its public class, which need not be `Main`: the guess is mended by what the compiler says. The class that is run is
/// the one with `main`; of several, `Main`, then the public one. A class that only calls `main` names it as well: `javap` tells.
const COMPILE_JAVA: &str = r#"
machine='-J-XX:+UseSerialGC -J-XX:TieredStopAtLevel=1 -J-XX:ActiveProcessorCount=4 -J-Xms16m'
class=$(sed -nE 's/^[ \t]*public +((final|abstract|strictfp|sealed|non-sealed) +)*(class|interface|enum|record) +([A-Za-z_][A-Za-z0-9_]*).*/\4/p' Main.java | head -n 1)
class=${class:-Main}
[ "$class" = Main ] || mv Main.java "$class.java"
compile() { javac $machine -J-Xmx1g -encoding UTF-8 -d classes "$class.java" >errors 2>&1; }
mkdir classes
if ! compile; then
    name=$(sed -nE 's/.*should be declared in a file named ([A-Za-z_][A-Za-z0-9_]*)\.java.*/\1/p' errors | head -n 1)
    if [ -z "$name" ] || ! mv "$class.java" "$name.java" || ! class=$name || ! compile; then cat errors >&2; exit 1; fi
fi
cd classes
names=$(grep -rlaF '([Ljava/lang/String;)V' . | xargs -r grep -laF main | sed 's|^\./||; s|\.class$||; s|/|.|g' | sort)
if [ "$(echo "$names" | wc -l)" -gt 1 ]; then
    names=$(javap $machine -J-Xmx256m -public -cp . $names | awk '/(class|interface|enum|record) / { for (i = 1; i < NF; i++) if ($i ~ /^(class|interface|enum|record)$/) { name = $(i + 1); sub(/<.*/, "", name); break } }
        /public static .*void main\(java\.lang\.String(\[\]|\.\.\.)\)/ { print name }')
fi
main=$( { echo "$names" | grep -E '(^|\.)Main$'; echo "$names" | grep -E "(^|\.)$class\$"; echo "$names"; } | head -n 1)
jar $machine -J-Xmx256m -cfe ../program.jar "${main:-$class}" . >&2 && cat ../program.jar
"#;

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
