//! Hostile input to `plaudit score`: the cases of `golden/abuse/input_cases.jsonl`.

use crate::support::{COMPARING, Folder, LENGTH, feed};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::io::Write;
use std::time::{Duration, Instant};

/// Cases whose outcome follows from the contract of lines rather than from what they were written for.
const ADAPTED: &[(&str, &str, &str)] = &[
    // A whole number is a name, by its decimal text.
    ("I28", "ok", ""),
    // Lines without a response are refused as such, whatever else is odd about them.
    ("I24", "reject_line", "input.response"),
    ("I40", "reject_line", "input.response"),
    ("I42", "reject_line", "input.response"),
    ("I44", "reject_line", "input.response"),
    // A rule reward compares a group of any size; only calls to a judge need a limit.
    ("I46", "ok", ""),
    // Every member has its own reason.
    ("I48", "invalid", "input.no_route"),
];

/// A recipe under which only rollouts of a kind are scored.
const ROUTED: &str = "name: routed\nroute: { by: extra.kind, cases: { maths: math } }\n";

/// How long the line without end is: a gigabyte, or less where the command is not optimised.
const ENDLESS: usize = if cfg!(debug_assertions) { 64 << 20 } else { 1 << 30 };

#[test]
fn hostile_input_is_answered() {
    let text = include_str!("../../../../golden/abuse/input_cases.jsonl");
    let folder = Folder::new("abuse");
    let recipes = [LENGTH, COMPARING, ROUTED];
    let [length, comparing, routed] =
        [0, 1, 2].map(|at| folder.file(&format!("recipe{at}.yaml"), recipes[at]));
    for case in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let id = case["id"].as_str().unwrap();
        let recipe = match id {
            "I45" | "I47" => &comparing,
            "I48" => &routed,
            _ => &length,
        };
        let started = Instant::now();
        let ran = feed(&["score", "-", "-r", recipe, "-q"], |to| {
            // The command may stop reading what it has refused.
            let mut to = std::io::BufWriter::new(to);
            let _ = write(&case, &mut to).and_then(|()| to.flush());
        });
        let limit = case["expect"]["max_ms"].as_u64().unwrap() * if cfg!(debug_assertions) { 50 } else { 5 };
        assert!(started.elapsed() < Duration::from_millis(limit), "{id}: {:?}", started.elapsed());

        let adapted = ADAPTED.iter().find(|(known, _, _)| *known == id);
        let expected = |key: &str| case["expect"][key].as_str().unwrap();
        let (outcome, reason) =
            adapted.map_or((expected("outcome"), expected("reason")), |(_, o, r)| (*o, *r));
        let code = reason.split([' ', ';', ':', '(']).next().unwrap();
        let (exit, said) = match outcome {
            "ok" => (0, ran.talk.is_empty() || ran.talk.starts_with("warning:")),
            "reject_line" => (1, ran.talk.contains("error: line") && ran.talk.contains(code)),
            "reject_file" => (2, ran.talk.contains(code) && ran.out.is_empty()),
            "invalid" => (1, ran.talk.is_empty() && ran.out.lines().all(|line| line.contains(code))),
            other => panic!("{id}: {other}"),
        };
        assert!(ran.code == exit && said, "{id}: {} {} {}", ran.code, ran.talk, ran.out);
        assert!(!ran.talk.contains('\x1b') && !ran.talk.contains('\u{202e}'), "{id}: {:?}", ran.talk);
    }
}

/// Writes the input of a case.
fn write(case: &Value, to: &mut dyn Write) -> std::io::Result<()> {
    if let Some(payload) = case["payload"].as_str() {
        return to.write_all(payload.as_bytes());
    }
    if let Some(text) = case["b64"].as_str() {
        return to.write_all(&STANDARD.decode(text).unwrap());
    }
    let member = |id: usize, group: &str| {
        format!("{{\"id\":\"{id}\",\"group\":\"{group}\",\"response\":\"r{id}\",\"correct\":true}}\n")
    };
    let many = |count: usize, to: &mut dyn Write| -> std::io::Result<()> {
        let block = "x".repeat(1 << 20);
        (0..count >> 20).try_for_each(|_| to.write_all(block.as_bytes()))
    };
    match case["gen"].as_str().unwrap() {
        "id_long" => write!(to, "{{\"id\":\"{}\",\"response\":\"r\"}}", "i".repeat(10_000)),
        "line_100mb" => {
            write!(to, "{{\"response\":\"")?;
            many(100 << 20, to)?;
            write!(to, "\"}}\n{{\"response\":\"r\"}}")
        }
        "line_endless" => many(ENDLESS, to),
        "group_10k" => (0..10_000).try_for_each(|at| to.write_all(member(at, "g").as_bytes())),
        "group_split" => (0..1000).try_for_each(|at| {
            let group = if at % 500 == 0 { "split".to_owned() } else { format!("g{}", at / 2 % 250) };
            to.write_all(member(at, &group).as_bytes())
        }),
        "group_all_invalid" => (0..8).try_for_each(|at| to.write_all(member(at, "g").as_bytes())),
        "key_1mb" => write!(to, "{{\"response\":\"r\",\"{}\":1}}", "k".repeat(1 << 20)),
        "keys_100k" => {
            write!(to, "{{\"response\":\"r\"")?;
            (0..100_000).try_for_each(|at| write!(to, ",\"k{at}\":1"))?;
            write!(to, "}}")
        }
        other => panic!("{other}"),
    }
}
