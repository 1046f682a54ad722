//! `code_execution` in the engine: tests of every form, what is invalid and what is wrong, turns, the journal, and both isolations.

use crate::engine::{lines, plan};
use crate::left_out::leave_out;
use crate::timing::until;
use plaudit::code::{Isolation, SandboxPolicy};
use plaudit::engine::{Engine, EngineOptions, Prescored, ScoreOptions};
use plaudit::error::RunError;
use plaudit::exec::CancelToken;
use plaudit::journal::Store;
use plaudit::outcome::{Fact, Outcome, OutcomeKind};
use plaudit::reason::Code;
use plaudit::recipe::Recipe;
use plaudit::record::Network;
use plaudit::report::Row;
use plaudit::rollout::Rollout;
use serde_json::{Value, json};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

const ADD: &str = "print(sum(map(int, input().split())))";
/// On the clock there is time for a busy machine: a program that got no processor is no verdict.
const TESTS: &str = "components:\n  tests: { reward: code, timeout: 1, wall_timeout: 60 }\n";

fn fenced(code: &str) -> String {
    format!("Here it is:\n```python\n{code}\n```\n")
}

fn rollout(group: usize, response: impl Into<String>, extra: Value) -> Rollout<'static> {
    let mut rollout = Rollout::new(response.into()).in_group(format!("g{group}"));
    rollout.extra = extra.as_object().unwrap().clone();
    rollout
}

/// Two sums, whose second tells those who print 3 from those who add.
fn sums() -> Value {
    json!({"inputs_outputs": {"inputs": ["1 2", "3 4"], "outputs": ["3", "7"]}})
}

/// An engine on the best isolation that this host has; none where it has no isolation.
pub(crate) fn engine(recipe: &str) -> Option<Engine> {
    engine_in(recipe, None)
}

/// The same on one isolation.
fn engine_in(recipe: &str, isolation: Option<Isolation>) -> Option<Engine> {
    let sandbox = SandboxPolicy { isolation, ..SandboxPolicy::default() };
    open(recipe, &EngineOptions { sandbox, ..EngineOptions::default() })
}

fn open(recipe: &str, options: &EngineOptions<'_>) -> Option<Engine> {
    match Engine::open(plan(recipe), options) {
        Err(RunError::NoSandbox(tried)) => {
            let refused = tried.lines().find(|line| line.contains("refused"));
            leave_out(refused.unwrap_or(&tried).trim());
            None
        }
        opened => Some(opened.unwrap()),
    }
}

fn outcome(row: &Row) -> &Outcome {
    row.outcomes[0].as_ref().unwrap()
}

fn fact<'r>(row: &'r Row, name: &str) -> Option<&'r Fact> {
    outcome(row).info().and_then(|info| info.get(name))
}

fn verdicts(row: &Row) -> Vec<&str> {
    match fact(row, "verdicts") {
        Some(Fact::Texts(texts)) => texts.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn each_isolation_tells_right_from_wrong() {
    for isolation in [Isolation::Namespaces, Isolation::Landlock] {
        let Some(engine) = engine_in(TESTS, Some(isolation)) else { continue };
        let cases = [
            (fenced(ADD), 1.0, "passed"),
            (fenced("print(3)"), 0.5, "wrong"),
            (fenced("print(1 / 0)"), 0.0, "error"),
            (fenced("while True: pass"), 0.0, "time"),
            (fenced("x = bytearray(8 << 30)"), 0.0, "memory"),
            (fenced("while True: print('x' * 65536)"), 0.0, "output"),
            (fenced("import os\nos._exit(0)"), 0.0, "wrong"),
            ("The answer is 3.".to_owned(), 0.0, "no_code"),
            ("```json\n{}\n```".to_owned(), 0.0, "no_code"),
            (format!("{}\n{}", fenced("print(3)"), fenced(ADD)), 1.0, "passed"),
        ];
        let rollouts: Vec<_> =
            cases.iter().map(|(response, ..)| rollout(0, response.clone(), sums())).collect();
        let report = engine.score(&rollouts).unwrap();
        for (row, (response, value, why)) in report.rows.iter().zip(&cases) {
            assert_eq!(outcome(row).value(), Some(*value), "{isolation} {response}: {row:?}");
            assert_eq!(fact(row, "why"), Some(&Fact::Word(why)), "{isolation} {response}: {row:?}");
            assert_eq!(row.correct, Some(*value == 1.0));
        }
        assert_eq!(fact(&report.rows[0], "sandbox"), Some(&Fact::Text(isolation.to_string())));
        assert_eq!(verdicts(&report.rows[1]), ["passed", "wrong"]);
        assert_eq!(fact(&report.rows[1], "failed_test"), Some(&Fact::Count(2)));
        assert_eq!(fact(&report.rows[1], "message"), Some(&Fact::Text("3\n".to_owned())));
        let Some(Fact::Text(message)) = fact(&report.rows[2], "message") else { panic!("a message") };
        assert!(message.contains("ZeroDivisionError"), "{message}");
        let tests = report.statistics.components[0].1.tests.as_ref().unwrap();
        assert_eq!(tests.verdicts["passed"], 5);
        assert_eq!(tests.verdicts.values().sum::<u64>(), tests.cpu_ms.moments.count);
        // On a busy host the limit on the clock ends an endless program before that on CPU time.
        assert!(tests.cpu_ms.moments.max >= 50.0, "{tests:?}");
    }
}

#[test]
fn tests_are_found_where_data_sets_have_them() {
    let Some(engine) = engine(TESTS) else { return };
    let call = "def add(a, b):\n    return a + b";
    let columns = json!({"inputs": ["1 2"], "outputs": ["3"]});
    let places = [
        (ADD, json!({"inputs_outputs": columns})),
        (ADD, json!({"inputs_outputs": columns.to_string()})),
        (ADD, json!({"verifier_metadata": {"unit_tests": columns}})),
        (ADD, json!({"input_output": columns.to_string()})),
        (ADD, json!({"tests": [{"input": "1 2", "output": "3"}]})),
        (ADD, json!({"inputs": ["1 2"], "outputs": ["3"], "difficulty": "easy"})),
        (
            ADD,
            json!({"public_test_cases": "[{\"input\": \"1 2\", \"output\": \"3\", \"testtype\": \"stdin\"}]"}),
        ),
        (call, json!({"tests": ["assert add(1, 2) == 3"]})),
        (call, json!({"tests": "from solution import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"})),
        (call, json!({"test_list": ["assert add(1, 2) == 3"], "test_setup_code": ""})),
        (
            call,
            json!({"test": "def check(candidate):\n    assert candidate(1, 2) == 3\n", "entry_point": "add"}),
        ),
        (call, json!({"inputs_outputs": {"fn_name": "add", "inputs": [[1, 2]], "outputs": [3]}})),
    ];
    let mut rollouts: Vec<_> = places
        .iter()
        .enumerate()
        .map(|(at, (code, extra))| rollout(at, fenced(code), extra.clone()))
        .collect();
    for reference in [columns.to_string(), json!({"inputs_outputs": columns}).to_string()] {
        let group = rollouts.len();
        rollouts.push(rollout(group, fenced(ADD), json!({"difficulty": "easy"})).with_reference(reference));
    }
    for (row, rollout) in engine.score(&rollouts).unwrap().rows.iter().zip(&rollouts) {
        assert_eq!(outcome(row).value(), Some(1.0), "{rollout:?}: {row:?}");
    }
    let Some(named) = self::engine("components:\n  tests: { reward: code, tests: extra.a.b }\n") else {
        return;
    };
    let report = named.score(&[rollout(0, fenced(ADD), json!({"a": {"b": columns}}))]).unwrap();
    assert_eq!(outcome(&report.rows[0]).value(), Some(1.0));
}

/// As HumanEval has it: the task is the prompt, and its functions are the test's.
#[test]
fn functions_of_the_prompt_reach_the_tests() {
    let Some(engine) = engine(TESTS) else { return };
    let task = "def two():\n    return 2\n\ndef add(a, b):\n    \"\"\" Adds. \"\"\"\n";
    let test = "def check(candidate):\n    assert candidate(two(), 2) == 4\n";
    let row = |code: &str, entry: &str| {
        rollout(0, fenced(code), json!({"test": test, "entry_point": entry})).to_prompt(task)
    };
    let mut chat = row("def add(a, b): return a + b", "add");
    chat.prompt = Some(plaudit::rollout::Prompt::Messages(vec![
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "user", "content": format!("Complete this:\n```python\n{task}```")}),
    ]));
    let report = engine.score(&[
        row("def add(a, b): return a + b", "add"),
        row("def two(): return 0\ndef add(a, b): return 4", "add"),
        row("def add(a, b): return a - b", "add"),
        chat,
    ]);
    let values: Vec<_> = report.unwrap().rows.iter().map(|row| outcome(row).value()).collect();
    assert_eq!(values, [Some(1.0), Some(1.0), Some(0.0), Some(1.0)]);
}

/// HumanEval's own samples are bodies: what comes behind the prompt.
#[test]
fn a_body_is_joined_to_its_prompt() {
    let Some(engine) = engine(TESTS) else { return };
    let task = "import math\n\n\ndef add(a, b):\n    \"\"\" Adds. \"\"\"\n";
    let extra =
        json!({"test": "def check(candidate):\n    assert candidate(1, 2) == 3\n", "entry_point": "add"});
    for (response, wanted) in [
        ("    return a + b\n".to_owned(), 1.0),
        ("    c = math.fsum([a, b])\n    return int(c)\n".to_owned(), 1.0),
        ("    return a - b\n".to_owned(), 0.0),
        (fenced("    return a + b"), 1.0),
        (fenced("return a + b"), 1.0),
        (fenced("def add(a, b):\n    return a + b"), 1.0),
        (fenced("def sum(a, b):\n    return a + b"), 0.0),
        ("I would return a + b.".to_owned(), 0.0),
        ("return a + b".to_owned(), 0.0),
    ] {
        let report = engine.score(&[rollout(0, response.clone(), extra.clone()).to_prompt(task)]).unwrap();
        assert_eq!(outcome(&report.rows[0]).value(), Some(wanted), "{response}: {report:?}");
    }
}

/// A name that the data use and nobody defines makes the row invalid; one that the response alone uses makes it wrong.
#[test]
fn names_that_nobody_defines_are_the_datas() {
    let Some(engine) = engine(TESTS) else { return };
    let test = |call: &str| {
        format!("def check(candidate):\n    assert candidate({call}) == 1\n\ncheck(Solution().f)\n")
    };
    let signature = |kind: &str| {
        format!(
            "Count.\n```python\n# class Graph: ...\nclass Solution:\n    def f(self, a: {kind}) -> int:\n```"
        )
    };
    let method = |kind: &str, body: &str| {
        fenced(&format!("class Solution:\n    def f(self, a: {kind}):\n        {body}"))
    };
    let known = "class Graph:\n    def __init__(self, *a): pass\n";
    let with_class = fenced(&format!("{known}class Solution:\n    def f(self, a: Graph): return 1"));
    for (tests, prompt, response, wanted) in [
        // The test needs it, and says which function it tests.
        (test("Graph(1)"), signature("int"), method("int", "return 1"), None),
        (test("Graph(1)"), String::new(), method("int", "return 1"), None),
        (test("Graph(1)"), String::new(), "No idea.".to_owned(), None),
        (test("Graph(1)"), signature("int"), with_class.clone(), Some(1.0)),
        // The task asks for it.
        (test("Graph(1)"), "Write a class Graph and f.".to_owned(), method("int", "return 1"), Some(0.0)),
        // The signature has it.
        (test("1"), signature("Graph"), method("Graph", "return 1"), Some(1.0)),
        (test("1"), signature("Graph"), method("Graph", "return 2"), Some(0.0)),
        (test("1"), signature("Graph"), method("int", "return 1"), Some(1.0)),
        (test("1"), signature("Graph"), with_class, Some(1.0)),
        (test("1"), signature("Graph"), fenced("print(Graph)"), Some(0.0)),
        // The response alone has it.
        (test("1"), signature("int"), method("Graph", "return 1"), Some(0.0)),
        (test("1"), signature("int"), method("int", "return Graph(1)"), Some(0.0)),
        (test("1"), signature("int"), fenced("def f(a): return Solution"), Some(0.0)),
        (test("1"), signature("int"), fenced("raise NameError(\"name 'Count' is not defined\")"), Some(0.0)),
    ] {
        let rollout = rollout(0, response.clone(), json!({"tests": tests})).to_prompt(prompt.clone());
        let report = engine.score(&[rollout]).unwrap();
        let found = outcome(&report.rows[0]);
        assert_eq!(found.value(), wanted, "{tests}{prompt}{response}: {found:?}");
        let code = found.reason().map(|reason| reason.code);
        assert_eq!(code, wanted.is_none().then_some(Code::BadTests), "{tests}{response}");
    }
}

/// What the data got wrong is not the response's fault, and nothing is proven by absence.
#[test]
fn rows_without_usable_tests_get_no_number() {
    let Some(engine) = engine(TESTS) else { return };
    for extra in [
        json!({"inputs_outputs": {"inputs": [], "outputs": []}}),
        json!({"inputs_outputs": {"inputs": ["1"], "outputs": [""]}}),
        json!({"inputs_outputs": {"inputs": ["1"], "outputs": []}}),
        json!({"inputs_outputs": "{"}),
        json!({"inputs_outputs": 7}),
        json!({"inputs_outputs": null}),
        json!({"tests": []}),
        json!({"test_list": [1]}),
        json!({"tests": "from solution import f\ndef test_f():\n    assert no_such_name(f(1))\n"}),
        json!({"test": "def check(candidate):\n    assert helper(candidate(1))\n", "entry_point": "f"}),
    ] {
        let report = engine.score(&[rollout(0, fenced("def f(x): return x"), extra.clone())]).unwrap();
        assert_eq!(outcome(&report.rows[0]).kind(), OutcomeKind::Invalid, "{extra}");
        let reason = outcome(&report.rows[0]).reason().unwrap();
        assert_eq!(reason.code, Code::BadTests, "{extra}");
    }
    for extra in [json!({}), json!({"metadata": {"source": "x"}, "entry_point": "f"})] {
        let report = engine.score(&[rollout(0, fenced(ADD), extra)]).unwrap();
        assert_eq!(outcome(&report.rows[0]), &Outcome::skipped(Code::MissingTests));
    }
    let prose = rollout(0, fenced(ADD), json!({})).with_reference("42");
    assert_eq!(outcome(&engine.score(&[prose]).unwrap().rows[0]).kind(), OutcomeKind::Invalid);
}

/// The tests that count are decided by their order, whoever is faster.
#[test]
fn what_is_run_does_not_depend_on_speed() {
    let slow =
        "import time\nn = int(input())\ntime.sleep(0.3 if n == 0 else 0)\nprint(-1 if n in (0, 3) else n)";
    let extra = json!({"tests": (0..6).map(|n| json!({"input": n.to_string(), "output": n.to_string()})).collect::<Vec<_>>()});
    let Some(all) = engine("components:\n  tests: { reward: code, continuous: false }\n") else { return };
    let report = all.score(&[rollout(0, fenced(slow), extra.clone())]).unwrap();
    assert_eq!(verdicts(&report.rows[0]), ["wrong"], "the first that fails is the last that counts");
    assert_eq!(outcome(&report.rows[0]).value(), Some(0.0));
    let right = all.score(&[rollout(0, fenced("print(input())"), extra.clone())]).unwrap();
    assert_eq!(outcome(&right.rows[0]).value(), Some(1.0));

    let endless = "n = int(input())\nwhile n in (1, 3): pass\nprint(n)";
    let recipe = "components:\n  tests: { reward: code, timeout: 0.3, most_timeouts: 2 }\n";
    let report = engine(recipe).unwrap().score(&[rollout(0, fenced(endless), extra.clone())]).unwrap();
    assert_eq!(verdicts(&report.rows[0]), ["passed", "time", "passed", "time"]);
    assert_eq!(outcome(&report.rows[0]).value(), Some(2.0 / 6.0));
    let recipe = "components:\n  tests: { reward: code, most_tests: 2 }\n";
    let report = engine(recipe).unwrap().score(&[rollout(0, fenced("print(input())"), extra)]).unwrap();
    assert_eq!(verdicts(&report.rows[0]), ["passed", "passed"]);
}

#[test]
fn equal_programs_run_once() {
    let Some(engine) = engine("components:\n  tests: { reward: code }\n") else { return };
    let sleeper = fenced("import time\ntime.sleep(4)\nprint(input())");
    let extra = json!({"tests": [{"input": "1", "output": "1"}]});
    let rollouts: Vec<_> = (0..256).map(|at| rollout(at / 4, sleeper.clone(), extra.clone())).collect();
    let started = Instant::now();
    let report = engine.score(&rollouts).unwrap();
    assert!(report.rows.iter().all(|row| outcome(row).value() == Some(1.0)));
    // On 16 cores all of them would take 64 s.
    assert!(started.elapsed() < Duration::from_secs(40), "{:?}", started.elapsed());
    let again = Instant::now();
    engine.score(&rollouts).unwrap();
    assert!(again.elapsed() < Duration::from_secs(4), "one has run again: {:?}", again.elapsed());
}

#[test]
fn a_second_run_executes_nothing() {
    let folder = std::env::temp_dir().join(format!("plaudit-code-{}", std::process::id()));
    let rollouts = vec![
        rollout(0, fenced(ADD), sums()),
        rollout(0, fenced("print(3)"), sums()),
        rollout(1, fenced("while True: pass"), sums()),
        rollout(1, "prose", sums()),
    ];
    let run = |network: Network| {
        let (journal, _) = Store::open(&folder.display().to_string()).unwrap();
        let options = EngineOptions { journal: Some(journal.clone()), network, ..EngineOptions::default() };
        let report = open(TESTS, &options)?.score(&rollouts).unwrap();
        let kept = journal.judgments();
        journal.close();
        Some((lines(&report, &rollouts), kept))
    };
    let Some((first, kept)) = run(Network::Live) else { return };
    assert_eq!(kept, 3);
    // A replay has no sandbox to run anything in.
    assert_eq!(run(Network::Replay), Some((first.clone(), 3)));
    assert_eq!(run(Network::Live), Some((first, 3)));
    std::fs::remove_dir_all(&folder).unwrap();
    let (journal, _) = Store::open(&folder.display().to_string()).unwrap();
    let options = EngineOptions {
        journal: Some(journal.clone()),
        network: Network::Replay,
        ..EngineOptions::default()
    };
    let report = Engine::open(plan(TESTS), &options).unwrap().score(&rollouts).unwrap();
    assert_eq!(outcome(&report.rows[0]), &Outcome::invalid(Code::SandboxNotRecorded));
    journal.close();
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn every_way_in_gives_the_same_lines() {
    let Some(engine) = engine(
        "components:\n  tests: { reward: code, timeout: 1 }\n  length: { reward: length_penalty, weight: 0.1 }\n  brevity: { reward: kimi.length, weight: 0.1, correct: extra }\n",
    )
    .map(Arc::new) else {
        return;
    };
    let responses = [fenced(ADD), fenced("print(3)"), fenced("print(3)"), "prose".to_owned()];
    let rollouts: Vec<_> = (0..12).map(|at| rollout(at / 4, responses[at % 4].clone(), sums())).collect();
    let expected = lines(&engine.score(&rollouts).unwrap(), &rollouts);
    let prescored: Vec<Prescored> = rollouts.iter().map(|_| Prescored::default()).collect();
    for (rollout, prescored) in rollouts.iter().zip(&prescored) {
        engine.prescore(rollout.clone(), &ScoreOptions::default(), prescored);
    }
    until("prescored", || prescored.iter().all(Prescored::is_done));
    for prescored in [prescored, Vec::new()] {
        let (send, receive) = mpsc::channel();
        engine.submit_prescored(rollouts.clone(), prescored, ScoreOptions::default(), move |_, report| {
            send.send(report).unwrap();
        });
        assert_eq!(lines(&receive.recv().unwrap().unwrap(), &rollouts), expected);
    }
}

#[test]
fn a_gate_of_tests_decides_who_is_compared() {
    let Some(engine) = engine(
        "components:
  tests: { reward: code, weight: 1.0, gate: { min: 1.0, total: -1.0 } }
  better: { reward: principle, weight: 1.0, mode: pairwise, judge: main }
judges:
  main: { kind: overlap }
",
    ) else {
        return;
    };
    let rollouts: Vec<_> =
        [fenced(ADD), fenced(&format!("{ADD}  # so")), fenced("print(3)"), "prose".to_owned()]
            .into_iter()
            .map(|response| rollout(0, response, sums()).with_reference("so").to_prompt("Add."))
            .collect();
    let report = engine.score(&rollouts).unwrap();
    let totals: Vec<_> = report.rows.iter().map(|row| row.total.value()).collect();
    assert_eq!(totals[2..], [Some(-1.0), Some(-1.0)], "{report:?}");
    assert!(report.rows[..2].iter().all(|row| row.outcomes[1].is_some() && row.total.value() > Some(-1.0)));
    assert!(report.rows[2..].iter().all(|row| row.outcomes[1].is_none()), "a judge is not asked about them");
}

#[test]
fn first_of_asks_a_judge_where_tests_fail() {
    let Some(engine) = engine(
        "components:
  tests: { reward: code, weight: 0, continuous: false }
  opinion: { reward: principle, weight: 0, mode: pointwise, judge: main }
  right: { first_of: [tests, opinion] }
judges:
  main: { kind: overlap }
",
    ) else {
        return;
    };
    let rollouts: Vec<_> = [fenced(ADD), fenced("print(3)")]
        .map(|response| rollout(0, response, sums()).with_reference("so").to_prompt("Add."))
        .to_vec();
    let report = engine.score(&rollouts).unwrap();
    assert_eq!(report.rows[0].outcomes[1], Some(Outcome::skipped(Code::Settled)));
    assert!(matches!(report.rows[1].outcomes[1], Some(Outcome::Scored { .. })), "{:?}", report.rows[1]);
}

/// One with endless programs does not keep another engine waiting, and ends when it is told to.
#[test]
fn engines_take_turns_and_a_cancelled_one_ends() {
    let recipe = "components:\n  tests: { reward: code, timeout: 2, most_timeouts: 50 }\n";
    let Some(greedy) = engine(recipe).map(Arc::new) else { return };
    let Some(modest) = engine(TESTS) else { return };
    let many =
        json!({"tests": (0..50).map(|n| json!({"input": n.to_string(), "output": "x"})).collect::<Vec<_>>()});
    let endless: Vec<_> =
        (0..16).map(|at| rollout(at, fenced(&format!("while True: pass  # {at}")), many.clone())).collect();
    let cancel = CancelToken::new();
    let options = ScoreOptions { cancel: Some(cancel.clone()), ..ScoreOptions::default() };
    let (send, receive) = mpsc::channel();
    greedy.submit(endless, options, move |_, report| send.send(report).unwrap());
    let started = Instant::now();
    let report = modest.score(&[rollout(0, fenced(ADD), sums())]).unwrap();
    assert_eq!(outcome(&report.rows[0]).value(), Some(1.0));
    // All of the other's programs take 1,600 s.
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    let cancelled = Instant::now();
    cancel.cancel();
    let report = receive.recv_timeout(Duration::from_secs(30)).unwrap().unwrap();
    assert!(cancelled.elapsed() < Duration::from_secs(5), "{:?}", cancelled.elapsed());
    assert!(report.rows.iter().all(|row| outcome(row) == &Outcome::invalid(Code::Stopped)));
}

#[test]
fn a_language_of_the_recipe_is_run() {
    let recipe = "components:
  tests:
    reward: code
    language: shell
    languages:
      shell: { file: main.sh, run: [/bin/sh, main.sh], fences: [sh, bash] }
";
    let Some(engine) = engine(recipe) else { return };
    let response = "```bash\nread a b\necho $((a + b))\n```";
    let report = engine.score(&[rollout(0, response, sums())]).unwrap();
    assert_eq!(outcome(&report.rows[0]).value(), Some(1.0), "{report:?}");

    let missing = recipe.replace("/bin/sh", "/no/such/shell");
    let error = Engine::new(plan(&missing)).unwrap_err();
    assert_eq!(error.code(), "sandbox.no_language", "{error}");
    for (wrong, at) in [
        ("language: cobol", "components.tests.language"),
        ("languages: { a: { file: ../a, run: [a] } }", "components.tests.languages"),
        ("languages: { a: { file: a, run: [a], compile: cc } }", "components.tests.languages"),
        ("tests: somewhere", "components.tests.tests"),
        ("timeout: 0", "components.tests.timeout"),
    ] {
        let recipe = format!("components:\n  tests:\n    reward: code\n    {wrong}\n");
        let errors = Recipe::from_yaml(&recipe).unwrap().plan().unwrap_err().to_string();
        assert!(errors.contains(at), "{wrong}: {errors}");
    }
}

/// An owner may have fewer programs at once than there is room for, over all its engines.
#[test]
fn programs_of_an_owner_are_limited() {
    let limited = |most: usize| {
        let options = EngineOptions { owner: Some(("somebody", Some(most))), ..EngineOptions::default() };
        open(TESTS, &options).map(Arc::new)
    };
    let (Some(one), Some(other)) = (limited(1), limited(1)) else { return };
    let extra = json!({"tests": [{"input": "1", "output": "1"}, {"input": "2", "output": "2"}]});
    let sleeps = |name: &str| {
        vec![rollout(
            0,
            fenced(&format!("import time\ntime.sleep(0.5)  # {name}\nprint(input())")),
            extra.clone(),
        )]
    };
    let started = Instant::now();
    let (send, receive) = mpsc::channel();
    for (engine, rollouts) in [(&one, sleeps("one")), (&other, sleeps("other"))] {
        let send = send.clone();
        engine
            .submit(rollouts, ScoreOptions::default(), move |_, report| send.send(report.unwrap()).unwrap());
    }
    for _ in 0..2 {
        assert_eq!(outcome(&receive.recv().unwrap().rows[0]).value(), Some(1.0));
    }
    assert!(started.elapsed() >= Duration::from_secs(2), "four half seconds, one after the other");
}

/// Programs of one owner that sleep leave a slot to another's.
#[test]
fn sleeping_programs_leave_a_slot() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return leave_out("two owners need two cores");
    }
    let owned = |owner| {
        let options = EngineOptions { owner: Some((owner, None)), ..EngineOptions::default() };
        open("components:\n  tests: { reward: code, timeout: 4 }\n", &options).map(Arc::new)
    };
    let (Some(sleepers), Some(printer)) = (owned("sleepers"), owned("printer")) else { return };
    let extra = json!({"tests": [{"input": "1", "output": "1"}]});
    let count = 2 * std::thread::available_parallelism().map_or(2, usize::from);
    let asleep = (0..count).map(|at| {
        rollout(at, fenced(&format!("import time\ntime.sleep(15)  # {at}\nprint(input())")), extra.clone())
    });
    let (cancel, (send, receive)) = (CancelToken::new(), mpsc::channel());
    let tell = send.clone();
    let options = ScoreOptions { cancel: Some(cancel.clone()), ..ScoreOptions::default() };
    sleepers.submit(asleep.collect(), options, move |_, _| tell.send("sleepers").unwrap_or(()));
    let prints = vec![rollout(0, fenced("print(input())"), extra)];
    printer.submit(prints, ScoreOptions::default(), move |_, report| {
        assert_eq!(outcome(&report.unwrap().rows[0]).value(), Some(1.0));
        send.send("printer").unwrap_or(());
    });
    assert_eq!(receive.recv().unwrap(), "printer");
    cancel.cancel();
}

/// Who sleeps through the group's time in its own tests gets 0 for those that are left, and is not invalid.
#[test]
fn sleeping_through_the_deadline_is_no_excuse() {
    let recipe =
        "groups: { timeout: 20s }\ncomponents:\n  tests: { reward: code, timeout: 1, wall_timeout: 60 }\n";
    let count = 8 * std::thread::available_parallelism().map_or(2, usize::from);
    let tests: Vec<Value> =
        (0..count).map(|at| json!({"input": at.to_string(), "output": at.to_string()})).collect();
    let Some(engine) = engine(recipe) else { return };
    let asleep = rollout(0, fenced("import time\ntime.sleep(4)\nprint(input())"), json!({"tests": tests}));
    let report = engine.score(&[asleep]).unwrap();
    let row = &report.rows[0];
    assert_eq!(outcome(row).kind(), OutcomeKind::Scored, "{:?}", outcome(row));
    assert_eq!(fact(row, "why"), Some(&Fact::Word("time")));
    assert!(outcome(row).value() < Some(1.0) && verdicts(row).contains(&"time"), "{:?}", verdicts(row));
}
