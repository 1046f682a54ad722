//! Messages to a new user: CSV, other field names, empty input, numbers as names, and unknown fields, each with what to do.

use crate::support::{Folder, LENGTH, Ran, feed, run};

fn score(text: &str, more: &[&str]) -> Ran {
    let folder = Folder::new(&format!("new-user-{:?}", std::thread::current().id()));
    let recipe = folder.file("recipe.yaml", LENGTH);
    feed(&[&["score", "-", "-q", "-r", &recipe], more].concat(), |to| to.write_all(text.as_bytes()).unwrap())
}

#[test]
fn names_may_be_whole_numbers_and_references_any() {
    let text = concat!(
        "{\"id\":1,\"group\":2,\"response\":\"r\",\"reference\":42}\n",
        "{\"id\":-7,\"group\":18446744073709551615,\"response\":\"r\",\"reference\":0.50}\n",
        "{\"id\":123456789012345678901234567890,\"group\":\"2\",\"response\":\"r\",\"reference\":1e3}\n",
        "{\"id\":4.0,\"group\":2,\"responses\":[\"r\",\"s\"],\"reference\":-1.0}\n",
    );
    let folder = Folder::new("numbers");
    let recipe = folder.file("recipe.yaml", LENGTH);
    let ran = run(&["rank", &folder.file("in.jsonl", text), "--keep", "9", "-q", "-r", &recipe]);
    assert_eq!((ran.code, ran.talk.as_str()), (0, ""));
    let mut seen: Vec<String> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|row| format!("{} {} {}", row["id"], row["group"], row["reference"]).replace('"', ""))
        .collect();
    seen.sort();
    let wanted = [
        "-7 18446744073709551615 0.50",
        "1 2 42",
        "123456789012345678901234567890 2 1e3",
        "4.0 2 -1.0",
        "4.1 2 -1.0",
    ];
    assert_eq!(seen, wanted);
}

#[test]
fn names_that_are_no_names_are_refused() {
    let said = |line: &str, wanted: &str| {
        let ran = score(&format!("{line}\n{{\"response\":\"good\"}}\n"), &[]);
        assert_eq!((ran.code, ran.out.lines().count()), (1, 1), "{line} {}", ran.talk);
        assert!(ran.talk.contains("error: line 1: ") && ran.talk.contains(wanted), "{line} {}", ran.talk);
    };
    said(r#"{"id":"","response":"r"}"#, "id is empty");
    said(r#"{"id":1.5,"response":"r"}"#, "input.id");
    said(r#"{"id":true,"response":"r"}"#, "found true or false");
    said(r#"{"group":1e-3,"response":"r"}"#, "found the number 1e-3 (input.group)");
    said(r#"{"group":["g"],"response":"r"}"#, "found a list");
    said(r#"["1","g","p","a response"]"#, "an object is wanted, found a list");
    said(r#"{"response":"r","tokens":2.5}"#, "input.tokens");
    assert_eq!(score("{\"response\":\"r\",\"tokens\":3.0}\n", &[]).code, 0);
}

#[test]
fn references_stand_in_the_usual_fields_and_may_be_lists() {
    let scored =
        |lines: &str| feed(&["score", "-", "-r", "math"], |to| to.write_all(lines.as_bytes()).unwrap());
    let ran = scored(
        "{\"response\":\"\\\\boxed{42}\",\"answer\":42}\n{\"response\":\"\\\\boxed{42}\",\"final_answer\":[\"41\",\"42\"]}\n",
    );
    assert_eq!(ran.code, 0, "{}", ran.talk);
    assert_eq!(ran.out.matches("\"correct\":true").count(), 2, "{}", ran.out);
    let told = "the rollouts have no `reference`; read from `answer` of 1, `final_answer` of 1 of 2";
    assert_eq!(ran.talk.matches(told).count(), 1, "{}", ran.talk);
    let ran = scored("{\"response\":\"\\\\boxed{42}\",\"reference\":\"42\",\"answer\":41}\n");
    assert!(
        ran.out.contains("\"correct\":true") && !ran.talk.contains("read from"),
        "{} {}",
        ran.out,
        ran.talk
    );
    let ran = scored("{\"response\":\"\\\\boxed{42}\",\"gold\":\"42\"}\n");
    // The reason goes to every front, and the flag to who has flags.
    assert!(ran.out.contains("Its field `gold` may be it.") && !ran.out.contains("--field"), "{}", ran.out);
    assert!(ran.talk.contains("--field reference=gold"), "{}", ran.talk);
}

#[test]
fn csv_is_told_once_with_how_to_convert_it() {
    let folder = Folder::new("csv");
    let tables = [
        ("data.csv", "prompt,response\nhi,there\nhi,again\n", "CSV"),
        ("data.tsv", "prompt\tresponse\nhi\tthere\n", "TSV"),
        ("data.txt", "\"prompt\",\"response\"\nhi,\"a {b}\"\n", "CSV"),
        ("one.csv", "response\nthere\n", "CSV"),
    ];
    for (name, text, kind) in tables {
        let ran = run(&["score", &folder.file(name, text)]);
        assert_eq!((ran.code, ran.talk.matches("error:").count()), (2, 1), "{name} {}", ran.talk);
        assert!(ran.talk.contains(&format!("this looks like {kind}")), "{name} {}", ran.talk);
        assert!(ran.talk.contains("python3 -c") && ran.talk.contains("input.not_jsonl"), "{}", ran.talk);
    }
    // What is told to be done works.
    let input = folder.file("data.csv", "prompt,response\n\"hi, you\",\"two\nlines\"\n");
    let ran = run(&["score", &input]);
    let converts = ran.talk.split('`').nth(1).unwrap();
    let output =
        std::process::Command::new("sh").args(["-c", converts]).current_dir(folder.path(".")).output();
    assert!(output.unwrap().status.success(), "{converts}");
    assert_eq!(folder.read("data.jsonl"), "{\"prompt\": \"hi, you\", \"response\": \"two\\nlines\"}\n");
    // A bad line among good ones, and lines under another name, stay what they are.
    assert_eq!(score("a, b\n{\"response\":\"r\"}\n", &[]).code, 1);
    assert_eq!(run(&["score", &folder.file("lines.csv", "{\"response\":\"r\"}\n"), "-q"]).code, 0);
    let spread = score("{\n  \"response\": \"r\"\n}\n", &[]);
    assert!(spread.code == 2 && spread.talk.contains("jq -c ."), "{}", spread.talk);
}

#[test]
fn a_missing_response_names_what_is_there() {
    let line = "{\"question\":\"q\",\"completion\":\"c\",\"answer\":\"a\"}\n";
    let ran = score(&line.repeat(3), &[]);
    assert_eq!(ran.code, 1);
    let fields = "response is missing; the fields are \"answer\", \"completion\", \"question\"";
    assert_eq!(ran.talk.matches(fields).count(), 3, "{}", ran.talk);
    let hint = "hint: try --field prompt=question --field response=completion --field reference=answer\n";
    assert_eq!(ran.talk.matches(hint).count(), 1, "{}", ran.talk);
    let ran = score(line, &["--field", "response=nope"]);
    assert!(
        ran.talk.contains("response is missing: there is no field \"nope\"; the fields are"),
        "{}",
        ran.talk
    );
    assert!(ran.talk.contains("--field response=completion"), "{}", ran.talk);
    let ran = score("{\"prompt\":\"q\",\"outputs\":[\"a\",\"b\"]}\n", &[]);
    assert!(ran.talk.contains("hint: try --field responses=outputs\n"), "{}", ran.talk);
    // Text that is no response by any known name is not guessed at.
    let ran = score("{\"zebra\":\"q\"}\n", &[]);
    assert!(ran.talk.contains("the fields are \"zebra\"") && !ran.talk.contains("hint"), "{}", ran.talk);
    assert!(score("{}\n", &[]).talk.contains("there are no fields at all"));
}

#[test]
fn chat_messages_are_a_response_or_hold_one() {
    let line = "{\"prompt\":\"q\",\"response\":[{\"role\":\"assistant\",\"content\":\"a\"}]}\n";
    assert_eq!(score(line, &[]).code, 0);
    assert_eq!(score(line, &["--field", "response=response.-1.content"]).code, 0);
    let line =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":\"a\"}]}\n";
    let ran = score(line, &[]);
    assert!(ran.talk.contains("hint: try --field response=messages.-1.content\n"), "{}", ran.talk);
    assert_eq!(score(line, &["--field", "response=messages.-1.content"]).code, 0);
    assert_eq!(score(line, &["--field", "response=messages"]).code, 0);
    assert_eq!(score(line, &["--field", "response=messages.7.content"]).code, 1);
}

#[test]
fn an_empty_input_is_warned_of() {
    let folder = Folder::new("empty");
    for (name, text) in [("empty.jsonl", ""), ("blank.jsonl", "\n  \n")] {
        for more in [&[][..], &["-q"]] {
            let ran = run(&[&["score", &folder.file(name, text)], more].concat());
            assert_eq!(ran.code, 0);
            assert!(ran.talk.contains("warning: ") && ran.talk.contains("holds no rollouts"), "{}", ran.talk);
        }
    }
    let ran = score("", &[]);
    assert!(ran.code == 0 && ran.talk.starts_with("warning: stdin holds no rollouts"), "{}", ran.talk);
    assert!(!score("nonsense\n", &[]).talk.contains("warning"));
}

#[test]
fn a_field_to_tell_by_that_no_row_has_is_warned_of() {
    let text = "{\"response\":\"r\",\"level\":1}\n{\"response\":\"s\"}\n";
    let ran = score(text, &["--by", "difficulty"]);
    assert_eq!(ran.code, 0);
    assert!(ran.talk.contains("warning: --by: no rollout has the field \"difficulty\""), "{}", ran.talk);
    assert_eq!(score(text, &["--by", "level"]).talk, "");
    assert!(!score("", &["--by", "level"]).talk.contains("--by"));
}
