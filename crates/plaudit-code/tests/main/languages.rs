//! Every language of the table that is installed: a right program, one that does not compile, one that fails.

use crate::{SANDBOXES, patiently, verdicts};
use plaudit_box::Limits;
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
    let pairs = SANDBOXES.iter().flat_map(|usable| PROGRAMS.map(|program| (usable, program)));
    for ((sandbox, languages), (name, program)) in pairs {
        let Some(language) = languages.find(name) else {
            println!("== left out: {name} in tier {}", sandbox.tier());
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
    for (sandbox, languages) in SANDBOXES.iter() {
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
    let body = "{ public static void main(String[] x) { var s = new java.util.Scanner(System.in); System.out.println(s.nextInt() + s.nextInt()); } }";
    for (sandbox, languages) in SANDBOXES.iter() {
        let Some(language) = languages.find("java") else { continue };
        for program in [
            format!("public class Solution {body}"),
            format!("class Other {{ }}\n  public final class Adder extends Other {body}"),
            format!("class Main {body}"),
        ] {
            let run = |limits: &Limits| execute(sandbox, language, &program, &tests, limits, Credit::Partial);
            let execution = patiently(&Limits::default(), run);
            assert_eq!(verdicts(&execution), [Verdict::Passed], "{program}: {execution:?}");
        }
    }
}
