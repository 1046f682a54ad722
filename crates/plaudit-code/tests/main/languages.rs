//! Every language of the table that is installed: a right program, one that does not compile, one that fails.

use crate::left_out::tell_left_out;
use crate::{patiently, sandboxes, verdicts};
use plaudit_box::{Isolation, Limits};
use plaudit_code::{Credit, Language, Tests, Verdict, execute};
use serde_json::json;
use std::time::Duration;

const PROGRAMS: [(&str, &str); 6] = [
    ("python", "a, b = map(int, input().split())\nprint(a + b)"),
    (
        "cpp",
        "#include <iostream>\nint main() { long a, b; std::cin >> a >> b; std::cout << a + b << std::endl; }",
    ),
    (
        "javascript",
        "const [a, b] = require('fs').readFileSync(0, 'utf8').split(' ').map(Number);\nconsole.log(a + b);",
    ),
    (
        "java",
        "import java.util.*;\npublic class Main { public static void main(String[] x) { Scanner s = new Scanner(System.in); System.out.println(s.nextLong() + s.nextLong()); } }",
    ),
    (
        "go",
        "package main\nimport \"fmt\"\nfunc main() { var a, b int; fmt.Scan(&a, &b); fmt.Println(a + b) }",
    ),
    (
        "rust",
        "fn main() { let mut s = String::new(); std::io::stdin().read_line(&mut s).unwrap();\nprintln!(\"{}\", s.split_whitespace().map(|x| x.parse::<i64>().unwrap()).sum::<i64>()); }",
    ),
];

#[test]
fn each_installed_language_runs() {
    let tests = Tests::parse(&json!({"inputs": ["3 4\n", "10 20\n"], "outputs": ["7", "31"]})).unwrap();
    let limits = Limits { cpu: Duration::from_secs(5), ..Limits::default() };
    let pairs = sandboxes().iter().flat_map(|usable| PROGRAMS.map(|program| (usable, program)));
    for ((sandbox, languages), (name, program)) in pairs {
        let Some(language) = languages.find(name) else {
            // Without namespaces there are no compilers.
            if sandbox.isolation() == Isolation::Namespaces || matches!(name, "python" | "javascript") {
                tell_left_out(&format!(
                    "{name} is not installed, or not usable with isolation {}",
                    sandbox.isolation()
                ));
            }
            continue;
        };
        let run = |program| {
            patiently(&limits, |limits| execute(sandbox, language, program, &tests, limits, Credit::Partial))
        };
        let good = run(program);
        assert_eq!(verdicts(&good), [Verdict::Passed, Verdict::Wrong], "{name}: {good:?}");
        let bad = run("this is no program {");
        assert_eq!(verdicts(&bad), [Verdict::Error, Verdict::Error], "{name}: {bad:?}");
    }
}

/// A language of a recipe needs no environment of its own to be compiled.
#[test]
fn a_compiler_finds_its_parts() {
    let tests = Tests::parse(&json!({"inputs": ["3 4\n"], "outputs": ["7"]})).unwrap();
    for (sandbox, languages) in sandboxes().iter() {
        let Some(known) = languages.find("cpp") else { continue };
        let language = Language { environment: Vec::new(), ..known.clone() };
        let run =
            |limits: &Limits| execute(sandbox, &language, PROGRAMS[1].1, &tests, limits, Credit::Partial);
        let execution = patiently(&Limits::default(), run);
        assert_eq!(verdicts(&execution), [Verdict::Passed], "{execution:?}");
    }
}

#[test]
fn the_class_of_java_has_any_name() {
    let tests = Tests::parse(&json!({"inputs": ["3 4\n"], "outputs": ["7"]})).unwrap();
    let adds = "{ var s = new java.util.Scanner(System.in); System.out.println(s.nextInt() + s.nextInt()); }";
    let body = format!("{{ public static void main(String[] x) {adds} }}");
    for (sandbox, languages) in sandboxes().iter() {
        let Some(language) = languages.find("java") else { continue };
        for program in [
            format!("public class Solution {body}"),
            format!("class Other {{ }}\n  public final class Adder extends Other {body}"),
            format!("class Main {body}"),
            format!("class Adder {body}"),
            format!("package a.b;\n\nimport java.util.*;\npublic class Adder {body}"),
            format!("class Main {{ int x; }}\nclass Solution {body}"),
            format!("class A {{ void f() {{ B.main(null); }} }}\nclass B {body}"),
            format!("class Outer {{\n    public class Inner {{ }}\n}}\npublic class Solution {body}"),
            format!("interface Runs {body}"),
            format!("enum One {{ X; public static void main(String... x) {adds} }}"),
        ] {
            let run = |limits: &Limits| execute(sandbox, language, &program, &tests, limits, Credit::Partial);
            let execution = patiently(&Limits::default(), run);
            assert_eq!(verdicts(&execution), [Verdict::Passed], "{program}: {execution:?}");
        }
    }
}

/// What a program of Java may have is what its row allows, and not what the host has.
#[test]
fn java_has_the_memory_and_threads_that_are_promised() {
    let tests = Tests::parse(&json!({"inputs": ["3 4\n"], "outputs": ["7"]})).unwrap();
    let main = |body: &str| {
        format!(
            "import java.util.*;\nimport java.util.stream.*;\nimport java.util.concurrent.*;\npublic class Main {{ static int deep(int n) {{ return n == 0 ? 0 : 1 + deep(n - 1); }} public static void main(String[] x) throws Exception {{ {body} System.out.println(7); }} }}"
        )
    };
    let programs = [
        "if (IntStream.range(0, 1000).parallel().sum() != 499500) throw new Error();",
        "var pool = Executors.newFixedThreadPool(12); var all = new ArrayList<Future<Integer>>(); for (int i = 0; i < 100; i++) { int n = i; all.add(pool.submit(() -> n)); } for (var one : all) one.get(); pool.shutdown();",
        "byte[][] live = new byte[300][]; for (int i = 0; i < 300; i++) { live[i] = new byte[1 << 20]; Arrays.fill(live[i], (byte) 1); } if (live[299][5] != 1) throw new Error();",
        "Thread[] all = new Thread[30]; for (int i = 0; i < 30; i++) { all[i] = new Thread(() -> { try { Thread.sleep(300); } catch (Exception e) { } }); all[i].start(); } for (var one : all) one.join();",
        "if (deep(200000) != 200000) throw new Error();",
        "Thread t = new Thread(null, () -> deep(100000), \"\", 1 << 26); t.start(); t.join();",
    ];
    let too_much = "byte[][] live = new byte[3000][]; for (int i = 0; i < 3000; i++) { live[i] = new byte[1 << 20]; Arrays.fill(live[i], (byte) 1); }";
    for (sandbox, languages) in sandboxes().iter() {
        let Some(java) = languages.find("java") else { continue };
        // As on a host with half a terabyte.
        let mut large = java.clone();
        large.run.insert(1, "-XX:MaxRAM=512g".to_owned());
        for (language, body, wanted) in programs
            .iter()
            .flat_map(|body| [(java, *body, Verdict::Passed), (&large, *body, Verdict::Passed)])
            .chain([(java, too_much, Verdict::Memory)])
        {
            let run =
                |limits: &Limits| execute(sandbox, language, &main(body), &tests, limits, Credit::Partial);
            let execution = patiently(&Limits::default(), run);
            assert_eq!(verdicts(&execution), [wanted], "{body}: {execution:?}");
        }
    }
}

/// A compiler can be told by the program to make something else than a program: that is the program's fault.
#[test]
fn an_artifact_that_cannot_be_run_is_an_error() {
    let tests = Tests::parse(&json!({"inputs": ["3 4\n"], "outputs": ["7"]})).unwrap();
    let cases = [
        ("rust", "#![crate_type = \"lib\"]\npub fn f() {}"),
        (
            "cpp",
            "__asm__(\".section .interp\\n.string \\\"/no/such/loader\\\"\\n.text\"); int main() { return 0; }",
        ),
        ("cpp", "static char room[1ull << 40]; int main() { return room[5]; }"),
        ("go", "package other\nfunc F() {}"),
    ];
    for (sandbox, languages) in sandboxes().iter() {
        for (name, code) in cases {
            let Some(language) = languages.find(name) else { continue };
            let run = |limits: &Limits| execute(sandbox, language, code, &tests, limits, Credit::Partial);
            let execution = patiently(&Limits::default(), run);
            assert!(execution.score() == Some(0.0), "{code}: {execution:?}");
        }
    }
}

/// Threads, as many as a row allows, in a compiled language.
#[test]
fn threads_of_cpp() {
    let tests = Tests::parse(&json!({"inputs": ["3 4\n"], "outputs": ["30"]})).unwrap();
    let code = "#include <thread>\n#include <vector>\n#include <atomic>\n#include <iostream>\n#include <chrono>\nint main() { std::atomic<int> n{0}; std::vector<std::thread> all; for (int i = 0; i < 30; i++) all.emplace_back([&] { std::vector<int> x(1000); n += x[0] + 1; std::this_thread::sleep_for(std::chrono::milliseconds(200)); }); for (auto& t : all) t.join(); std::cout << n; }";
    for (sandbox, languages) in sandboxes().iter() {
        let Some(language) = languages.find("cpp") else { continue };
        for memory in [256 << 20, 1 << 30] {
            let limits = Limits { memory, ..Limits::default() };
            let run = |limits: &Limits| execute(sandbox, language, code, &tests, limits, Credit::Partial);
            let execution = patiently(&limits, run);
            assert_eq!(verdicts(&execution), [Verdict::Passed], "{execution:?}");
        }
    }
}

#[test]
fn a_language_is_named_by_its_tool() {
    for language in crate::LANGUAGES.all() {
        let tool = language.tool();
        assert!(
            std::path::Path::new(tool).is_absolute() || ["g++", "javac", "go", "rustc"].contains(&tool),
            "{tool}"
        );
    }
}
