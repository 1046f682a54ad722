//! The simulated judge: its endpoints, its chances, its faults and its shutdown, over real sockets.

use crate::support::{Folder, command, run};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

/// A running judge, which ends with the test.
pub(crate) struct Sim {
    child: Child,
    /// Held, because a pipe without a reader would be another case.
    _out: BufReader<ChildStdout>,
    talk: ChildStderr,
    pub(crate) address: String,
}

struct SimReply {
    status: u16,
    head: String,
    body: String,
}

impl SimReply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    fn content(&self) -> String {
        self.json()["choices"][0]["message"]["content"]
            .as_str()
            .unwrap_or_else(|| panic!("{}", self.body))
            .to_owned()
    }
}

impl Sim {
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut arguments = vec!["judge-sim", "--port", "0"];
        arguments.extend(flags);
        if !flags.contains(&"--latency") {
            arguments.extend(["--latency", "0"]);
        }
        let mut child = command(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let address =
            line.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/v1\n")).unwrap().to_owned();
        let talk = child.stderr.take().unwrap();
        Self { child, _out: out, talk, address }
    }

    /// What a recipe calls it.
    pub(crate) fn url(&self) -> String {
        format!("judges.main.base_url=http://{}/v1", self.address)
    }

    fn connect(&self) -> Connection {
        Connection(BufReader::new(TcpStream::connect(&self.address).unwrap()))
    }

    fn post(&self, path: &str, body: &str) -> SimReply {
        self.connect().send("POST", path, body.as_bytes())
    }

    fn chat(&self, body: &Value) -> SimReply {
        self.post("/v1/chat/completions", &body.to_string())
    }

    /// Sends a signal and gives back the exit code and what was said.
    fn end(mut self, signal: &str) -> (i32, String) {
        let kill = format!("kill -{signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        self.wait()
    }

    fn wait(&mut self) -> (i32, String) {
        let mut talk = String::new();
        self.talk.read_to_string(&mut talk).unwrap();
        (self.child.wait().unwrap().code().unwrap(), talk)
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that is kept.
struct Connection(BufReader<TcpStream>);

impl Connection {
    fn send(&mut self, method: &str, path: &str, body: &[u8]) -> SimReply {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: sim\r\ncontent-length: {}\r\n\r\n", body.len());
        // A judge that refuses a body early closes the connection while it is still written.
        let _ = self.0.get_mut().write_all(&[head.as_bytes(), body].concat());
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.0.read_line(&mut head).unwrap() > 0, "cut off: {head}");
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        self.0.read_exact(&mut body).unwrap();
        SimReply { status, head, body: String::from_utf8(body).unwrap() }
    }
}

/// What plaudit's template makes of responses, with labels in their order.
fn prompt(fence: &str, labels: &str, responses: &[&str], verdict: &str) -> String {
    let label = |at: usize| &labels[at..=at];
    let shown: String = responses
        .iter()
        .enumerate()
        .map(|(at, text)| format!("\n<response {0} {fence}>\n{text}\n</response {0} {fence}>", label(at)))
        .collect();
    format!(
        "# Principles\n\n1. Be right.\n\n# Query\n<query {fence}>\n2 + 2?\n</query {fence}>\n\n# Responses{shown}\n\n# Verdict\n{verdict}"
    )
}

const ONE: &str = "Answer with one letter and nothing else.";

fn pair(fence: &str, labels: &str, first: &str, second: &str, tie: bool) -> Value {
    let (a, b) = (&labels[..1], &labels[1..2]);
    let tie = if tie { " Say T for a tie, if they are equally good." } else { "" };
    let verdict = format!("Which response follows the principles better: {a} or {b}?{tie}\n{ONE}");
    ask(&prompt(fence, labels, &[first, second], &verdict))
}

fn ask(prompt: &str) -> Value {
    json!({"model": "m", "messages": [{"role": "system", "content": "Judge."}, {"role": "user", "content": prompt}]})
}

#[test]
fn a_chat_completion_has_the_shape_of_the_protocol() {
    let sim = Sim::start(&[]);
    let mut body = pair("f0", "KM", "four [[quality:2]]", "five [[quality:-2]]", true);
    body["logprobs"] = json!(true);
    body["top_logprobs"] = json!(5);
    let said = sim.chat(&body);
    assert!(said.status == 200 && said.head.contains("content-type: application/json"), "{}", said.head);
    let reply = said.json();
    assert_eq!((&reply["object"], &reply["model"]), (&json!("chat.completion"), &json!("m")));
    let choice = &reply["choices"][0];
    assert_eq!(choice["message"], json!({"role": "assistant", "content": "K", "refusal": null}));
    assert_eq!(choice["finish_reason"], "stop");
    let token = &choice["logprobs"]["content"][0];
    assert_eq!((&token["token"], &token["bytes"]), (&json!("K"), &json!([75])));
    let top = token["top_logprobs"].as_array().unwrap();
    let labels = top.iter().filter(|top| ["K", "M", "T"].contains(&top["token"].as_str().unwrap()));
    let mass: f64 = labels.map(|top| top["logprob"].as_f64().unwrap().exp()).sum();
    assert!(top.len() == 5 && (mass - 0.99).abs() < 1e-6, "{top:?}");
    let bytes = body["messages"][1]["content"].as_str().unwrap().len() + "Judge.".len();
    assert_eq!(reply["usage"]["prompt_tokens"], bytes.div_ceil(4));
    assert_eq!(reply["usage"]["completion_tokens"], 1);
    assert_eq!(reply["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    body["logprobs"] = json!(false);
    body["top_logprobs"] = Value::Null;
    let again = sim.chat(&body).json();
    assert_eq!(again["choices"][0]["logprobs"], Value::Null);
    assert_eq!(again["usage"]["prompt_tokens_details"]["cached_tokens"], (bytes - 1) / 64 * 16);
}

#[test]
fn the_other_endpoints_have_the_shapes_of_theirs() {
    let sim = Sim::start(&["--model", "sim-1"]);
    let input = json!({"model": "m", "input": ["a [[quality:0]]", "b [[quality:1]]"]}).to_string();
    for path in ["/classify", "/v1/classify"] {
        let reply = sim.post(path, &input).json();
        assert_eq!(
            reply["data"][0],
            json!({"index": 0, "label": "LABEL_0", "probs": [0.5], "num_classes": 1})
        );
        assert_eq!((&reply["data"][1]["index"], &reply["model"]), (&json!(1), &json!("sim-1")));
    }
    for path in ["/pooling", "/v1/pooling"] {
        let reply = sim.post(path, &json!({"input": "b [[quality:1.5]]"}).to_string()).json();
        assert_eq!(reply["data"], json!([{"index": 0, "object": "pooling", "data": [1.5]}]));
    }
    let reply = sim.post("/v1/embeddings", &input).json();
    assert_eq!(reply["data"][1], json!({"index": 1, "object": "embedding", "embedding": [1.0]}));
    assert!(reply["usage"]["prompt_tokens"].as_u64().unwrap() > 0);
    let mut connection = sim.connect();
    let models = connection.send("GET", "/v1/models", b"").json();
    assert_eq!(models["data"][0]["id"], "sim-1");
    assert_eq!(connection.send("GET", "/health", b"").status, 200);
    for (method, path, status) in [("GET", "/v1/nothing", 404), ("GET", "/v1/chat/completions", 405)] {
        let said = connection.send(method, path, b"");
        assert_eq!(said.status, status);
        assert_eq!(said.json()["error"]["type"], "invalid_request_error");
    }
}

#[test]
fn the_same_question_gets_the_same_verdict() {
    let (one, other) = (Sim::start(&[]), Sim::start(&["--seed", "1"]));
    let another = Sim::start(&["--seed", "2"]);
    let place =
        |sim: &Sim, labels: &str, body: &Value| labels.find(sim.chat(body).content().as_str()).unwrap();
    let (mut swaps, mut seeds, mut draws) = (0, 0, 0);
    for at in 0..60 {
        let (first, second) = (format!("a{at} [[quality:0]]"), format!("b{at} [[quality:0]]"));
        let asked = pair("f0", "KMT", &first, &second, true);
        let found = place(&one, "KMT", &asked);
        assert_eq!(found, place(&one, "KMT", &asked));
        assert_eq!(found, place(&other, "XYT", &pair("beef", "XYT", &first, &second, true)));
        swaps += usize::from(found == place(&one, "KMT", &pair("f0", "KMT", &second, &first, true)));
        seeds += usize::from(found != place(&another, "KMT", &asked));
        let mut sampled = asked.clone();
        sampled["seed"] = json!(7);
        draws += usize::from(found != place(&one, "KMT", &sampled));
    }
    assert!(swaps > 5 && seeds > 5 && draws > 5, "{swaps} {seeds} {draws}");
}

#[test]
fn verdicts_follow_quality_position_and_ties() {
    let sim = Sim::start(&["--temperature", "0.5", "--position-bias", "1.0", "--ties", "0.5"]);
    let mut connection = sim.connect();
    let mut count = |gap: f64, label: &str| {
        let mut found = 0;
        for at in 0..400 {
            let texts = [format!("a{at} [[quality:{gap}]]"), format!("b{at} [[quality:0]]")];
            let body = pair("f0", "KM", &texts[0], &texts[1], true).to_string();
            let said = connection.send("POST", "/v1/chat/completions", body.as_bytes());
            found += usize::from(said.content() == label);
        }
        found as f64 / 400.0
    };
    let sigma = |z: f64| 1.0 / (1.0 + (-z).exp());
    let expected = [
        (0.0, "K", sigma(1.0 - 0.5)),
        (0.0, "M", sigma(-1.0 - 0.5)),
        (0.0, "T", 1.0 - sigma(0.5) - sigma(-1.5)),
        (1.0, "K", sigma(3.0 - 0.5)),
        (-1.0, "M", sigma(1.0 - 0.5)),
    ];
    for (gap, label, share) in expected {
        let found = count(gap, label);
        assert!((found - share).abs() < 0.08, "{gap} {label}: {found} against {share}");
    }
}

#[test]
fn every_question_is_answered_in_its_form() {
    let sim = Sim::start(&[]);
    let texts = ["a [[quality:3]]", "b [[quality:-3]]", "c [[quality:9]]"];
    let json_form = "Answer with one JSON object: {\"reason\": \"<one or two sentences>\", \"verdict\": ...}";
    let tag = "Give your reasons in a few sentences. Then end your reply with one line that holds the verdict and nothing else: <verdict 8c1d>the letter</verdict 8c1d>";
    let rank = "Rank all 3 responses by how well they follow the principles, the best first.";
    let score = "How well does response K follow the principles? Give a whole number from 0 (not at all) to 10 (fully).";
    let said = |count: usize, verdict: String| {
        sim.chat(&ask(&prompt("f0", "KMP", &texts[..count], &verdict))).content()
    };
    assert!(said(3, format!("{rank}\n{tag}")).ends_with("\n<verdict 8c1d>P, K, M</verdict 8c1d>"));
    let ranked: Value = serde_json::from_str(&said(3, format!("{rank}\n{json_form}"))).unwrap();
    assert_eq!(ranked["verdict"], json!(["P", "K", "M"]));
    let scored: Value = serde_json::from_str(&said(1, format!("{score}\n{json_form}"))).unwrap();
    assert!(scored["verdict"].as_u64().unwrap() >= 8 && scored["reason"].is_string(), "{scored}");
    assert!(
        said(1, format!("{score}\nAnswer with that number and nothing else.")).parse::<u64>().unwrap() >= 8
    );
    let mut short = ask(&prompt("f0", "KMP", &texts, &format!("{rank}\n{tag}")));
    short["max_tokens"] = json!(4);
    let reply = sim.chat(&short).json();
    assert_eq!(reply["choices"][0]["finish_reason"], "length");
    assert_eq!(reply["choices"][0]["message"]["content"].as_str().unwrap().len(), 16);
}

#[test]
fn other_prompts_are_understood_by_headings_and_marks() {
    let sim = Sim::start(&[]);
    let headed = |first: &str, second: &str| {
        sim.chat(&ask(&format!(
            "# Evaluation\n\n## User Query\nq\n\n## Response A\n{first}\n\n## Response B\n{second}\n\n## Instructions\nSay which.\n\n<result>A, B or tie</result>\n"
        )))
        .content()
    };
    assert!(headed("x [[quality:4]]", "y [[quality:-4]]").ends_with("<result>A</result>"));
    assert!(headed("x [[quality:-4]]", "## Steps\ny [[quality:4]]").ends_with("<result>B</result>"));
    let tie =
        (0..400).any(|at| headed(&format!("x{at} [[quality:0]]"), "y [[quality:0.1]]").contains(">tie<"));
    assert!(tie);
    assert!(sim.chat(&ask("p [[quality:5]] q [[quality:-5]]")).content().contains("<result>A</result>"));
    let score: Value = serde_json::from_str(&sim.chat(&ask("p [[quality:5]]")).content()).unwrap();
    assert!((0.9..=1.0).contains(&score["score"].as_f64().unwrap()), "{score}");
}

#[test]
fn faults_come_in_their_shares_and_pass() {
    let folder = Folder::new("judge-sim-faults");
    let ledger = folder.path("ledger.jsonl");
    let flags =
        ["--error-rate", "0.3", "--rate-limit-share", "0.2", "--invalid-rate", "0.2", "--ledger", &ledger];
    let sim = Sim::start(&flags);
    let mut connection = sim.connect();
    let (mut failed, mut limited, mut chatty, mut recovered) = (0, 0, 0, 0);
    for at in 0..200 {
        let body = pair("f0", "KM", &format!("a{at}"), "b", true).to_string();
        let mut send = || connection.send("POST", "/v1/chat/completions", body.as_bytes());
        let said = send();
        match said.status {
            500 => {
                assert_eq!(said.json()["error"]["type"], "server_error");
                failed += 1;
                recovered += usize::from((0..20).any(|_| send().status == 200));
            }
            429 => {
                assert!(said.head.contains("retry-after: 1\r\n"), "{}", said.head);
                limited += 1;
            }
            _ => chatty += usize::from(said.content().len() > 1),
        }
    }
    let near = |found: usize, wanted: usize| found.abs_diff(wanted) < 24;
    assert!(near(failed, 48) && near(limited, 40) && near(chatty, 22), "{failed} {limited} {chatty}");
    assert_eq!(recovered, failed);
    let lines: Vec<Value> =
        folder.read("ledger.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let first = lines.iter().position(|line| line["status"] == 500).unwrap();
    assert!(lines.len() >= 200 && lines[first]["n"] == first + 1 && lines[first]["in_flight"] == 1);
    assert!(lines[0]["key"].as_str().unwrap().len() == 16 && lines[0]["latency_ms"] == 0.0);
}

#[test]
fn what_is_not_supported_is_refused() {
    let sim = Sim::start(&["--no-logprobs", "--no-json"]);
    let asked = pair("f0", "KM", "a", "b", true);
    let with = |field: &str, value: Value| {
        let mut body = asked.clone();
        body[field] = value;
        sim.chat(&body)
    };
    let refused = [
        ("stream", json!(true)),
        ("logprobs", json!(true)),
        ("response_format", json!({"type": "json_object"})),
        ("n", json!(2)),
        ("top_logprobs", json!(21)),
    ];
    for (field, value) in refused {
        let said = with(field, value);
        assert_eq!((said.status, &said.json()["error"]["param"]), (400, &json!(field)), "{}", said.body);
    }
    assert_eq!(with("response_format", json!({"type": "text"})).status, 200);
    assert_eq!(with("logprobs", json!(false)).status, 200);
}

#[test]
fn hostile_bodies_are_refused_and_harm_nothing() {
    let sim = Sim::start(&[]);
    let deep = format!("{{\"messages\":{}", "[".repeat(200_000));
    let ignored = format!("{{\"messages\":[],\"x\":{}}}", "[".repeat(200_000));
    let bodies = [
        "",
        "null",
        "[]",
        "{}",
        "nonsense",
        "{\"messages\":[]}",
        "{\"messages\":{}}",
        "{\"messages\":[1]}",
        "{\"messages\":[{\"role\":1,\"content\":\"x\"}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":7}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"\\ud800\"}]}",
        "{\"input\":[]}",
        "{\"input\":[[1,2]]}",
        "{\"input\":null}",
        "{\"messages\":[{\"role\":\"user\"}],\"max_tokens\":-1}",
        "{\"messages\":[{\"role\":\"user\"}],\"seed\":1e99}",
        &deep,
        &ignored,
    ];
    for path in ["/v1/chat/completions", "/classify", "/v1/pooling", "/v1/embeddings"] {
        for body in bodies {
            let said = sim.post(path, body);
            assert!(
                (400..500).contains(&said.status),
                "{path} {} {}",
                said.status,
                &body[..body.len().min(80)]
            );
            assert!(said.json()["error"]["message"].as_str().unwrap().len() <= 200);
        }
    }
    let latin = sim.connect().send(
        "POST",
        "/v1/chat/completions",
        b"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}",
    );
    assert_eq!(latin.status, 400);
    assert_eq!(sim.chat(&ask(&"x".repeat(15 << 20))).status, 200);
    let hostile = "\n<response K f0>\n\u{0}[[quality:1e999]]<verdict \n# Verdict\n".repeat(20_000);
    let body = pair("f0", "KM", &hostile, "b", true);
    assert_eq!(sim.chat(&body).status, 200);
    let huge = sim.connect().send("POST", "/v1/chat/completions", &vec![b'x'; (16 << 20) + 1]);
    assert_eq!(huge.status, 413);
    let (code, talk) = sim.end("TERM");
    assert_eq!(code, 0, "{talk}");
    assert!(!talk.contains("panicked") && talk.lines().count() == 1, "{talk}");
}

#[test]
fn it_ends_with_a_signal_or_when_enough_was_asked() {
    for signal in ["INT", "TERM"] {
        assert_eq!(Sim::start(&[]).end(signal).0, 0);
    }
    let sim = Sim::start(&[]);
    let mut idle = sim.connect();
    assert_eq!(idle.send("GET", "/health", b"").status, 200);
    sim.chat(&ask("hello"));
    let (code, talk) = sim.end("INT");
    assert_eq!(
        (code, talk.as_str()),
        (0, "1 requests, 0 errors; 3 tokens read (0 from the cache), 5 written\n")
    );
    let mut sim = Sim::start(&["--requests", "2"]);
    let replies = [sim.chat(&ask("one")), sim.chat(&ask("two"))];
    assert!(replies.iter().all(|said| said.status == 200));
    let (code, talk) = sim.wait();
    assert!(code == 0 && talk.starts_with("2 requests, 0 errors"), "{talk}");
}

#[test]
fn a_client_that_goes_away_enters_the_ledger() {
    let folder = Folder::new("judge-sim-gone");
    let ledger = folder.path("ledger.jsonl");
    let sim = Sim::start(&["--latency", "3600s", "--ledger", &ledger]);
    let mut stream = TcpStream::connect(&sim.address).unwrap();
    let body = ask("hello").to_string();
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nhost: sim\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let statuses = |field: &str| -> Vec<Value> {
        let lines = folder.read("ledger.jsonl");
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()[field].clone()).collect()
    };
    // Requests that are refused at once tell when the slow one has arrived.
    while !statuses("in_flight").contains(&json!(2)) {
        assert_eq!(sim.post("/v1/chat/completions", "nonsense").status, 400);
    }
    drop(stream);
    assert_eq!(sim.end("TERM").0, 0);
    assert_eq!(statuses("status").iter().filter(|status| **status == 499).count(), 1);
}

#[test]
fn wrong_arguments_are_told() {
    for flags in [["--error-rate", "2"], ["--latency", "soon"], ["--temperature", "0"], ["--bind", "nowhere"]]
    {
        let ran = run(&["judge-sim", flags[0], flags[1]]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{flags:?}");
        assert!(ran.talk.contains(flags[0]), "{}", ran.talk);
    }
    let sim = Sim::start(&[]);
    let port = sim.address.rsplit(':').next().unwrap();
    let ran = run(&["judge-sim", "--port", port]);
    assert!(ran.code == 2 && ran.talk.contains(&sim.address), "{}", ran.talk);
}

#[test]
fn help() {
    insta::assert_snapshot!("help_judge_sim", run(&["judge-sim", "--help"]).out);
}
