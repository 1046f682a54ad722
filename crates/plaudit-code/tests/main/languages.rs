//! Every language of the table that is installed: a right program, one that does not compile, one that fails.

use crate::{SANDBOXES, patiently, verdicts};
use plaudit_box::Limits;
use plaudit_code::{Credit, Tests, Verdict, execute};
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
