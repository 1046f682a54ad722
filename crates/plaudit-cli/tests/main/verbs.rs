//! The verbs of the command: what they print, and their exit codes.

use crate::judge_sim::Sim;
use crate::support::{COMPARING, Folder, LENGTH, command, feed, run};
use serde_json::Value;
use std::io::Read as _;
use std::process::Stdio;

const THREE: &str = "{\"id\":\"a\",\"group\":\"g\",\"response\":\"short\"}\n\
    {\"id\":\"b\",\"group\":\"g\",\"response\":\"just long enough\",\"reference\":\"r\",\"note\":1}\n\
    {\"id\":\"c\",\"group\":\"h\",\"response\":\"long enough as well\"}\n";

#[test]
fn results_go_to_stdout_or_to_a_whole_file() {
    let folder = Folder::new("out");
    let recipe = folder.file("recipe.yaml", LENGTH);
    let input = folder.file("in.jsonl", THREE);
    let shown = run(&["score", &input, "-r", &recipe]);
    assert_eq!((shown.code, shown.out.lines().count()), (0, 3));
    assert!(shown.talk.contains("3 rollouts in 2 groups"));
    let first: Value = serde_json::from_str(shown.out.lines().next().unwrap()).unwrap();
    assert_eq!(first["total"], -0.05);
    assert_eq!(first["components"]["length"]["info"]["length"], 5);
    let filed = run(&["score", &input, "-r", &recipe, "--out", &folder.path("out.jsonl"), "--quiet"]);
    assert_eq!((filed.code, filed.out.as_str(), filed.talk.as_str()), (0, "", ""));
    assert_eq!(folder.read("out.jsonl"), shown.out);
    assert_eq!(folder.names(), ["in.jsonl", "out.jsonl", "recipe.yaml"]);
}

#[test]
fn bad_lines_are_told_with_their_numbers_and_the_others_scored() {
    let folder = Folder::new("bad");
    let recipe = folder.file("recipe.yaml", LENGTH);
    let mut text = THREE.to_owned();
    (0..30).for_each(|_| text.push_str("{\"id\":\"a\",\"response\":\"again\"}\n"));
    text.push_str("{\"response\":\"last\"}\n{\"responses\":[\"x\",\"y\"]}\n");
    let ran = feed(&["score", "-", "-r", &recipe, "--summary", &folder.path("s.json")], |to| {
        to.write_all(text.as_bytes()).unwrap();
    });
    assert_eq!((ran.code, ran.out.lines().count()), (1, 6));
    assert!(ran.out.contains("\"id\":\"line-34\"") && ran.out.contains("\"id\":\"line-35.1\""));
    assert!(ran.talk.contains("error: line 4: the id \"a\" was used before (input.duplicate_id)"));
    assert!(ran.talk.contains("line 23:") && !ran.talk.contains("line 24:"), "{}", ran.talk);
    assert!(ran.talk.contains("bad lines   30: input.duplicate_id 30"));
    let summary: Value = serde_json::from_str(&folder.read("s.json")).unwrap();
    assert_eq!(summary["input"]["lines"], 35);
    assert_eq!(summary["input"]["bad"]["input.duplicate_id"], 30);
}

#[test]
fn fields_are_mapped_and_strangers_refused_on_demand() {
    let folder = Folder::new("fields");
    let recipe = folder.file("recipe.yaml", LENGTH);
    let input = folder.file("in.jsonl", r#"{"answer":"a fine answer","q":"why?"}"#);
    let base = ["score", &input, "-r", &recipe, "-q"];
    let with = |more: &[&str]| run(&[&base, more].concat());
    assert_eq!(with(&[]).code, 1);
    assert_eq!(with(&["--field", "response=answer"]).code, 0);
    let strict = with(&["--field", "response=answer", "--strict"]);
    assert!(strict.code == 1 && strict.talk.contains("\"q\" is not known (input.unknown_field)"));
    assert_eq!(with(&["--field", "response=answer", "--field", "prompt=q", "--strict"]).code, 0);
    let unknown = with(&["--field", "respones=answer"]);
    assert!(unknown.code == 2 && unknown.talk.contains("did you mean \"response\"?"), "{}", unknown.talk);
}

#[test]
fn what_cannot_be_done_is_said_with_exit_code_two() {
    let folder = Folder::new("cannot");
    let input = folder.file("in.jsonl", THREE);
    let fails = |arguments: &[&str], message: &str| {
        let ran = run(arguments);
        assert!(ran.code == 2 && ran.out.is_empty(), "{arguments:?} {}", ran.code);
        assert!(ran.talk.contains(message), "{arguments:?} {}", ran.talk);
    };
    fails(&["score", &folder.path("none.jsonl")], "No such file");
    fails(&["score", &folder.path("")], "is a folder");
    fails(&["score", &input, "--out", &folder.path("")], "is a folder");
    fails(&["score", &input, "--out", &folder.path("none/out.jsonl")], "No such file");
    fails(&["score", &input, "--recipe", "quickstrat"], "did you mean \"quickstart\"?");
    fails(&["score", &input, "--set", "components.length"], "KEY=VALUE is wanted");
    fails(&["score", &input, "--set", "combine=max", "--set", "no.such=1"], "2 errors");
    fails(&["score", &input, "--hold", "0"], "0 is not in 1..=");
    fails(&["score", &folder.file("x.parquet", "{}")], "input.parquet");
    fails(&["rank", &input], "--keep");
    fails(&["rewards", "lenght_penalty"], "did you mean \"length_penalty\"?");
    fails(&["rewards", "mathverify"], "did you mean \"math_verify_reward\"?");
    fails(&["recipe", "show", "quikstart"], "did you mean \"quickstart\"?");
    fails(&["recipe", "check", "nothing.yaml"], "recipe.not_found");
    fails(&["frobnicate"], "unrecognized subcommand");
}

#[test]
fn the_best_of_each_group_are_kept() {
    let folder = Folder::new("rank");
    let recipe = folder.file("recipe.yaml", LENGTH);
    let tie = "{\"id\":\"d\",\"group\":\"g\",\"response\":\"also long enough\"}\n";
    let input = folder.file("in.jsonl", format!("{THREE}{tie}"));
    let ids = |keep: &str| {
        let ran = run(&["rank", &input, "--keep", keep, "-r", &recipe]);
        assert_eq!(ran.code, 0);
        let lines = ran.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| format!("{}{}", line["id"].as_str().unwrap(), line["rank"])).collect::<Vec<_>>()
    };
    assert_eq!(ids("1"), ["b1", "c1"]);
    assert_eq!(ids("2"), ["b1", "d2", "c1"]);
    assert_eq!(ids("9"), ["b1", "d2", "a3", "c1"]);
    let ran = run(&["rank", &input, "--keep", "1", "-r", &recipe]);
    let first: Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
    assert_eq!((&first["response"], &first["reference"]), (&"just long enough".into(), &"r".into()));
    assert_eq!(first["extra"]["note"], 1);
    // A group in which nothing has a number keeps none, and that is said.
    let comparing = folder.file("comparing.yaml", COMPARING);
    let ran = run(&["rank", &input, "--keep", "1", "-r", &comparing]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(ran.talk.contains("2 groups keep none"), "{}", ran.talk);
    assert!(ran.talk.contains("what to do  group."), "{}", ran.talk);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let lines = "{\"response\":\"some words that make a response\"}\n".repeat(50_000);
    let folder = Folder::new("closed");
    let (input, recipe) = (folder.file("in.jsonl", lines), folder.file("recipe.yaml", LENGTH));
    let mut child = command(&["score", &input, "-r", &recipe, "-q"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut start = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn rewards_and_recipes_are_data_too() {
    let value = |arguments: &[&str]| -> Value { serde_json::from_str(&run(arguments).out).unwrap() };
    let all = value(&["rewards", "--json"]);
    assert!(all.as_array().unwrap().iter().all(|one| one["schema"].is_object()));
    let one = value(&["rewards", "length", "--json"]);
    assert_eq!(
        (&one["name"], &one["range"]["max"], &one["range"]["min"]),
        (&"length_penalty".into(), &0.0.into(), &Value::Null)
    );
    let schema = value(&["recipe", "schema"]);
    assert_eq!(schema["title"], "plaudit recipe");
    let names: Vec<String> =
        run(&["recipe", "list"]).out.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert!(names.contains(&"quickstart".to_owned()));
    assert!(run(&["recipe", "list"]).out.lines().all(|line| line.ends_with('.')), "a whole sentence each");
    for name in &names {
        let checked = value(&["recipe", "check", name, "--json"]);
        assert_eq!(checked["ok"], true);
        let folder = Folder::new(&format!("show-{name}"));
        let shown = folder.file("shown.yaml", run(&["recipe", "show", name]).out);
        assert_eq!(run(&["recipe", "check", &shown]).code, 0, "{name}");
    }
}

#[test]
fn doctor_checks_a_recipe_its_judges_and_a_state() {
    let folder = Folder::new("doctor");
    let good = run(&["doctor"]);
    assert_eq!(good.code, 0, "{}{}", good.out, good.talk);
    assert!(good.out.contains("open files") && !good.out.contains("FAIL"), "{}", good.out);
    // Nobody listens there.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("judges.main.base_url=http://{address}/v1");
    let judged = ["doctor", "-r", "tutorial", "--set", &url, "--set", "judges.main.api_key_env=null"];
    let down =
        run(&[&judged[..], &["--set", "judges.main.patience=100ms", "--state", &folder.path("no")]].concat());
    assert_eq!(down.code, 1, "{}{}", down.out, down.talk);
    assert!(down.out.contains("FAIL  principle") && down.out.contains("FAIL  state"), "{}", down.out);
    assert!(
        down.out.contains("FAIL  judge main") && down.out.contains("what to do: Does the server run"),
        "{}",
        down.out
    );
    assert!(!down.out.contains("Look at the failures before it"), "{}", down.out);
    assert!(!down.out.contains("namespaces: attacks"), "{}", down.out);
    let programs = run(&["doctor", "-r", "code"]);
    assert_eq!(programs.code, 0, "{}{}", programs.out, programs.talk);
    assert!(programs.out.contains("ok    tests                   1\n"), "{}", programs.out);
    // What needs rows of another form than the two that are tried is no fault.
    for recipe in ["agent", "instructions"] {
        let tried = run(&["doctor", "-r", recipe]);
        assert!(tried.code == 0 && tried.out.contains("not tried, "), "{}", tried.out);
    }
    assert!(programs.out.contains("namespaces: ") && !good.out.contains("namespaces: "), "{}", programs.out);
    assert!(run(&["doctor", "--all"]).out.contains("namespaces: "));
    let bad = run(&["doctor", "--set", "components.format.reward=ngram"]);
    assert!(bad.code == 1 && bad.out.contains("did you mean \"ngram_repetition_penalty\"?"), "{}", bad.out);
}

#[test]
fn doctor_says_who_judges_where_and_in_which_form() {
    let told = |flags: &[&str], more: &[&str]| {
        let sim = Sim::start(flags);
        let url = sim.url();
        let ran = run(&[&["doctor", "-r", "tutorial", "--set", &url], more].concat());
        (ran.code, ran.out, url.replace("judges.main.base_url=", ""))
    };
    for (flags, form) in
        [(&[][..], "logprobs"), (&["--no-logprobs"], "json"), (&["--no-logprobs", "--no-json"], "tag")]
    {
        let (code, out, url) = told(flags, &[]);
        let line = format!("ok    judge main              qwen3-32b at {url}: verdicts by {form}, ");
        assert!(code == 0 && out.contains(&line) && out.contains(" ms\n"), "{out}");
    }
    // Its own form, and no other, where the recipe says so.
    let (code, out, _) = told(&["--no-logprobs"], &["--set", "judges.main.answer_format=logprobs"]);
    assert!(code == 1 && out.contains("FAIL  judge main"), "{out}");
    assert!(out.contains("what to do: "), "{out}");
}

#[test]
fn doctor_finds_the_address_that_answers() {
    let sim = Sim::start(&[]);
    let good = sim.url();
    for bad in [good.replace("/v1", ""), format!("{good}/chat/completions")] {
        let ran = run(&["doctor", "-r", "tutorial", "--set", &bad]);
        let answers = format!("{} answers: set base_url to it", good.replace("judges.main.base_url=", ""));
        assert!(ran.code == 1 && ran.out.contains(&answers), "{}", ran.out);
        assert!(ran.out.contains("warn  recipe") && ran.out.contains("recipe.address"), "{}", ran.out);
        let checked = run(&["recipe", "check", "tutorial", "--set", &bad]);
        assert!(checked.code == 0 && checked.out.contains("recipe.address"), "{}", checked.out);
    }
}

#[test]
fn doctor_shows_the_numbers_of_a_reward_model() {
    let sim = Sim::start(&[]);
    let main = sim.url();
    let rm = main.replace("judges.main", "judges.rm").replace("/v1", "");
    let ran = run(&["doctor", "-r", "judged", "--set", &main, "--set", &rm]);
    assert!(ran.out.contains("judge rm                skywork-reward-v2 at http://"), "{}", ran.out);
    assert!(ran.out.contains(" for a right answer, ") && ran.out.contains(" for nonsense"), "{}", ran.out);
    assert!(ran.out.contains("verdicts by a prompt of your own"), "{}", ran.out);
    assert!(!ran.out.contains("warn"), "the simulated model gives its own number: {}", ran.out);
}

#[test]
fn doctor_guesses_under_which_names_references_stand() {
    let folder = Folder::new("doctor-names");
    let rows = folder.file("rows.jsonl", "{\"question\": \"1 + 1?\", \"answer\": \"2\"}\n".repeat(2));
    let ran = run(&["doctor", &rows, "-r", "math"]);
    let hint =
        "the rows have \"question\" and \"answer\": try --field prompt=question --field reference=answer";
    assert!(ran.code == 0 && ran.out.contains(hint), "{}", ran.out);
    assert!(ran.out.contains("references read from `answer` of 2 rows"), "{}", ran.out);
    let gold = folder.file("gold.jsonl", "{\"question\": \"1 + 1?\", \"gold\": \"2\"}\n".repeat(2));
    let ran = run(&["doctor", &gold, "-r", "math"]);
    assert!(ran.code == 1 && ran.out.contains("--field reference=gold"), "{}", ran.out);
    assert!(
        ran.out.contains("FAIL  data                    2 rows (100.0 %) cannot be scored"),
        "{}",
        ran.out
    );
    let renamed =
        run(&["doctor", &rows, "-r", "math", "--field", "prompt=question", "--field", "reference=answer"]);
    assert!(renamed.code == 0 && !renamed.out.contains("--field"), "{}", renamed.out);
    let lists = folder.file("lists.jsonl", "{\"prompt\": \"1 + 1?\", \"answer\": [\"2\", \"two\", \"3\"]}\n");
    let ran = run(&["doctor", &lists, "-r", "math"]);
    assert!(ran.code == 0 && ran.out.contains("read as expression 100.0 %"), "{}", ran.out);
}

#[test]
fn doctor_asks_a_data_set_for_nothing_that_comes_with_responses() {
    let folder = Folder::new("doctor-tokens");
    let recipe = "components:\n  f1: { reward: f1_score }\n  \
                  length: { reward: total_length, unit: token, max: 9, band: 4, required: true }\n  \
                  ended: { reward: truncated, required: true }\n";
    let recipe = folder.file("recipe.yaml", recipe);
    let rows = folder.file("rows.jsonl", r#"{"prompt": "1 + 1?", "reference": "2"}"#);
    let ran = run(&["doctor", &rows, "-r", &recipe]);
    assert!(ran.code == 0 && !ran.out.contains("token count"), "{}", ran.out);
    let answered =
        folder.file("answered.jsonl", r#"{"prompt": "1 + 1?", "reference": "2", "response": "2"}"#);
    let ran = run(&["doctor", &answered, "-r", &recipe]);
    assert!(
        ran.code == 1 && ran.out.contains("FAIL  length") && ran.out.contains("FAIL  ended"),
        "{}",
        ran.out
    );
}

#[test]
fn doctor_checks_the_references_of_a_data_set() {
    let folder = Folder::new("doctor-data");
    let good = folder.file(
        "good.jsonl",
        r#"{"question": "a", "answer": "\\frac{1}{2}"}
{"question": "a", "answer": 0.5}
{"question": "b", "answer": "x^2-1", "response": "\\boxed{3}"}
"#,
    );
    let renamed = ["--field", "prompt=question", "--field", "reference=answer"];
    let ran = run(&[&["doctor", &good, "-r", "math"], &renamed[..]].concat());
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.talk);
    assert!(ran.out.contains("3 rows, 2 prompts with a reference, 3 different references"), "{}", ran.out);
    assert!(ran.out.contains("ok    accuracy") && ran.out.contains("expression 100.0 %"), "{}", ran.out);
    let bad = folder.file(
        "bad.jsonl",
        r#"{"id": "u", "prompt": "p", "reference": "\\frac{1}{0}"}
{"id": "v", "prompt": "q", "reference": "3"}
{"id": "w", "prompt": "q", "reference": "4"}
{"id": "x", "prompt": "r", "reference": "1,22"}
{"id": "y", "prompt": "s"}
{"id": "z", "prompt": "t", "reference": "7"}
"#,
    );
    let found = folder.path("found.jsonl");
    let ran = run(&["doctor", &bad, "-r", "math", "--out", &found]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.talk);
    for line in [
        "FAIL  accuracy                1 reference (20.0 %): is undefined",
        "FAIL  data                    1 row (16.7 %): the prompt has another reference in an earlier row",
        "w: 4 (v has 3)",
        "FAIL  accuracy                1 row (16.7 %): The rollout has no reference",
        "warn  accuracy                1 reference (20.0 %): may have a decimal comma",
        "x: 1,22 (read as list)",
    ] {
        assert!(ran.out.contains(line), "{line}\n{}", ran.out);
    }
    let written = std::fs::read_to_string(found).unwrap();
    let lines: Vec<Value> = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["id"], "u");
    assert_eq!((&lines[0]["severity"], &lines[0]["what"]), (&"fault".into(), &"is undefined".into()));
    let words = folder.file("words.jsonl", "{\"prompt\": \"p\", \"reference\": \"see 3 of 4 x\"}\n");
    let ran = run(&["doctor", &words, "-r", "math"]);
    assert!(
        ran.code == 1 && ran.out.contains("FAIL  accuracy"),
        "hardly any response equals it: {}",
        ran.out
    );
    let only = folder.file("only.jsonl", "{\"prompt\": \"p\", \"reference\": \"\\\\frac{1}{0}\"}\n");
    assert_eq!(run(&["doctor", &only, "-r", "math"]).code, 1);
    assert_eq!(run(&["doctor", &only, "-r", "math", "--max-unparsable", "1"]).code, 0);
}

#[test]
fn doctor_tells_what_a_recipe_does_not_find() {
    let folder = Folder::new("doctor-fields");
    folder.file(
        "style.yaml",
        "components:\n  style: { reward: judge, mode: pointwise, prompt: \"{{ extra.rubric }} {{ response }}\", answer: { json: score, min: 0, max: 1 } }\n\
         judges: { main: { base_url: \"http://127.0.0.1:1/v1\", model: m } }\n",
    );
    let recipe =
        folder.file("recipe.yaml", "route: { by: extra.kind, cases: { maths: math, style: style.yaml } }\n");
    let rows = folder.file(
        "rows.jsonl",
        r#"{"id": "a", "prompt": "p", "kind": "style", "rubric": "good?"}
{"id": "b", "prompt": "q", "kind": "style"}
{"id": "c", "prompt": "r", "kind": "maths"}
{"id": "d", "prompt": "s", "kind": "other"}
"#,
    );
    let ran = run(&["doctor", &rows, "-r", &recipe]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.talk);
    for part in ["recipe.template_failed", "input.missing_reference", "input.no_route", "4 rows"] {
        assert!(ran.out.contains(part), "{part}\n{}", ran.out);
    }
}

#[test]
fn a_misspelt_state_address_makes_no_folder() {
    let folder = Folder::new("misspelt-state");
    let rows = folder.file("rows.jsonl", "{\"prompt\": \"p\", \"response\": \"a\"}\n");
    for state in ["redis:/127.0.0.1:6379", "http://127.0.0.1:1", "reddis://127.0.0.1:1"] {
        for arguments in [
            vec!["score", &rows, "--state", state],
            vec!["plan", &rows, "--state", state],
            vec!["replay", "--state", state],
            vec!["explain", "1", "--state", state],
            vec!["serve", "--bind", "127.0.0.1:0", "--state", state],
        ] {
            let ran = command(&arguments).current_dir(folder.path("")).output().unwrap();
            let talk = String::from_utf8_lossy(&ran.stderr);
            assert!(!ran.status.success(), "{arguments:?}");
            assert!(talk.contains("neither a folder nor a Redis"), "{arguments:?}: {talk}");
        }
    }
    let serve = ["serve", "--bind", "127.0.0.1:0", "--state", "valkey://127.0.0.1:1"];
    let ran = command(&serve).current_dir(folder.path("")).output().unwrap();
    assert!(String::from_utf8_lossy(&ran.stderr).contains("--journal"), "{ran:?}");
    assert_eq!(folder.names(), ["rows.jsonl"]);
}
