//! Security of the service: tokens with their scopes, TLS, host names, and no secret in any output.

use super::http::{Answer, Service, request, until};
use crate::support::{Folder, LENGTH, command, installed, run};
use serde_json::json;
use std::io::Read as _;

pub(crate) fn token(folder: &Folder, arguments: &[&str]) -> String {
    let file = folder.path("tokens.json");
    let mut all = vec!["token", "create"];
    all.extend(arguments);
    all.extend(["--file", &file]);
    let made = run(&all);
    assert_eq!(made.code, 0, "{}", made.talk);
    made.out.trim().to_owned()
}

fn with(service: &Service, token: Option<&str>, method: &str, path: &str, body: &str) -> Answer {
    service.raw(request(method, path, body, &[], token).as_bytes())
}

const BODY: &str = r#"{"recipe":"length","rollouts":[{"response":"a"}]}"#;

#[test]
fn a_token_opens_what_its_scopes_say_until_it_is_revoked() {
    let folder = Folder::new("serve-tokens");
    let length = folder.file("length.yaml", LENGTH);
    let (score, read) =
        (token(&folder, &["trainer", "--scope", "score"]), token(&folder, &["eyes", "--scope", "read"]));
    let (file, other) =
        (folder.path("tokens.json"), token(&folder, &["other", "--scope", "score", "--rate", "1000"]));
    let admin = token(&folder, &["root", "--scope", "admin"]);
    let service = Service::start(&folder, &["--recipe", &length, "--token-file", &file]);
    let ask =
        |token: Option<&str>, method: &str, path: &str, body: &str| with(&service, token, method, path, body);
    assert_eq!(ask(None, "POST", "/v1/score", BODY).code(), "auth.missing");
    assert_eq!(ask(Some("plaudit_x"), "POST", "/v1/score", BODY).code(), "auth.unknown");
    assert_eq!(ask(Some(&read), "POST", "/v1/score", BODY).code(), "auth.scope");
    assert_eq!(ask(Some(&score), "GET", "/v1/runs", "").code(), "auth.scope");
    assert_eq!(ask(Some(&score), "POST", "/v1/score", BODY).status, 200);
    assert_eq!(ask(Some(&read), "GET", "/v1/runs", "").status, 200);
    assert_eq!((ask(None, "GET", "/healthz", "").status, ask(None, "GET", "/", "").status), (200, 200));
    assert_eq!(ask(None, "GET", "/metrics", "").status, 401);
    // Jobs are their owner's; to others they are not there.
    let job = ask(Some(&score), "POST", "/v1/jobs", BODY).json()["job"].as_str().unwrap().to_owned();
    let path = format!("/v1/jobs/{job}");
    assert_eq!(ask(Some(&score), "GET", &path, "").status, 200);
    assert_eq!(ask(Some(&other), "GET", &path, "").status, 404);
    assert_eq!(ask(Some(&other), "DELETE", &path, "").status, 404);
    // Another token of the same name is the same holder's, and takes the place of the first.
    let next = token(&folder, &["trainer", "--scope", "score"]);
    until("it is known", || ask(Some(&next), "GET", &path, "").status == 200);
    let id = run(&["token", "list", "--json", "--file", &file]).out;
    let id = serde_json::from_str::<serde_json::Value>(&id).unwrap();
    let id = id.as_array().unwrap().iter().rfind(|entry| entry["name"] == "trainer").unwrap()["id"].clone();
    assert_eq!(run(&["token", "revoke", id.as_str().unwrap(), "--file", &file]).code, 0);
    assert_eq!(ask(Some(&admin), "GET", &path, "").status, 200);
    // Equal names of different holders are different runs.
    let run_of = |token: &str| ask(Some(token), "POST", "/v1/score", BODY).json()["run"].clone();
    assert_ne!(run_of(&score), run_of(&other));
    assert_eq!(run(&["token", "revoke", "trainer", "--file", &file]).code, 0);
    until("the token is worth nothing", || ask(Some(&score), "POST", "/v1/score", BODY).status == 401);
    for name in ["state", "state/runs", "state/jobs"] {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(folder.path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{name} is its owner's");
    }
    let listed = run(&["token", "list", "--file", &file]);
    assert!(listed.out.contains("eyes") && !listed.out.contains("trainer") && !listed.out.contains(&read));
    for (name, text) in [("tokens.json", folder.read("tokens.json")), ("log", folder.read("log"))] {
        for secret in [&score, &read, &other, &admin] {
            assert!(!text.contains(secret.as_str()), "{name}");
        }
    }
}

#[test]
fn without_tokens_only_local_names_are_served() {
    let refused = run(&["serve", "--bind", "0.0.0.0:0"]);
    assert!(refused.code == 2 && refused.talk.contains("--token-file"), "{}", refused.talk);
    let folder = Folder::new("serve-hosts");
    let length = folder.file("length.yaml", LENGTH);
    let service = Service::start(&folder, &["--recipe", &length, "--host", "rewards.example"]);
    let ask =
        |host: &str| service.raw(format!("GET /v1/runs HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes()).status;
    for known in ["localhost", "127.0.0.1:7717", "LOCALHOST:1", "rewards.example", "[::1]:80"] {
        assert_eq!(ask(known), 200, "{known}");
    }
    for unknown in
        ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "rewards.example@evil"]
    {
        assert_eq!(ask(unknown), 421, "{unknown}");
    }
    let from = |origin: &str| service.send("POST", "/v1/score", BODY, &[("origin", origin)]).status;
    assert_eq!(from("http://127.0.0.1"), 200);
    assert_eq!((from("https://evil.example"), from("null")), (403, 403));
    let answer = service.send("OPTIONS", "/v1/score", "", &[("origin", "http://127.0.0.1")]);
    assert!(answer.status == 405 && answer.header("access-control-allow-origin").is_none());
}

#[test]
fn on_this_machine_only_its_names_are_answered_with_tokens_too() {
    let folder = Folder::new("serve-hosts-tokens");
    let (length, token) = (folder.file("length.yaml", LENGTH), token(&folder, &["trainer"]));
    let file = folder.path("tokens.json");
    let arguments = ["--recipe", &*length, "--token-file", &*file, "--host", "rewards.example"];
    let service = Service::start(&folder, &arguments[..4]);
    let ask = |service: &Service, host: &str| {
        let head = format!("GET /v1/runs HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\r\n");
        service.raw(head.as_bytes()).status
    };
    assert_eq!((ask(&service, "localhost"), ask(&service, "rewards.example")), (200, 421));
    drop(service);
    let service = Service::start(&folder, &arguments);
    assert_eq!((ask(&service, "rewards.example"), ask(&service, "evil.example")), (200, 421));
}

#[test]
fn it_speaks_tls_with_a_certificate_of_its_own() {
    if !installed("curl") {
        return;
    }
    let folder = Folder::new("serve-tls");
    let length = folder.file("length.yaml", LENGTH);
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/certificates");
    let pem = format!("{tests}/good.pem");
    let mut service = Service::start(&folder, &["--recipe", &length, "--tls-cert", &pem, "--tls-key", &pem]);
    let curl = |authority: &str| {
        let url = format!("https://127.0.0.1:{}/healthz", service.address.port());
        std::process::Command::new("curl")
            .args(["--silent", "--show-error", "--max-time", "10", "--cacert", authority, &url])
            .output()
            .unwrap()
    };
    let good = curl(&format!("{tests}/authority.pem"));
    assert_eq!(String::from_utf8_lossy(&good.stdout), "{\"up\":true}", "{good:?}");
    assert!(!curl(&format!("{tests}/other.pem")).status.success());
    // Plain HTTP gets nothing.
    let mut plain = service.connect();
    std::io::Write::write_all(&mut plain, b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").unwrap();
    let mut said = Vec::new();
    let _ = plain.read_to_end(&mut said);
    assert!(!said.starts_with(b"HTTP/1.1 200"));
    // Whoever has only begun to exchange keys does not hold up its end.
    let before = service.descriptors();
    let mut stalled = service.connect();
    std::io::Write::write_all(&mut stalled, b"\x16\x03\x01").unwrap();
    until("it is let in", || service.descriptors() > before);
    let told = std::time::Instant::now();
    service.signal("-TERM");
    assert_eq!(service.wait(), 0);
    assert!(told.elapsed().as_secs() < 10, "the keys may take ten seconds: {:?}", told.elapsed());
    let refused =
        run(&["serve", "--tls-cert", &length, "--tls-key", &length, "--state", &folder.path("other")]);
    assert_eq!(refused.code, 2, "{}", refused.talk);
}

const KEYED: &str = r#"
name: keyed
components:
  half: { reward: judge, mode: pointwise, prompt: "{{ response }}", answer: { json: score, min: 0, max: 1 } }
judges: { main: { base_url: "URL", model: m, api_key_env: PLANTED_KEY, attempts: 1, patience: 1s } }
"#;

#[test]
fn api_key_appears_in_no_output_or_file() {
    const KEY: &str = "sk-planted-1f2e3d4c5b6a";
    let folder = Folder::new("serve-secret");
    // An endpoint that refuses the key, and says it aloud.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 65_536]);
            let body = format!(
                "{{\"error\":{{\"message\":\"Incorrect API key provided: {KEY} at rack7.example\"}}}}"
            );
            let head = format!(
                "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _ = std::io::Write::write_all(&mut stream, (head + &body).as_bytes());
        }
    });
    let recipe = folder.file("keyed.yaml", KEYED.replace("URL", &url));
    let missing = command(&["serve", "--recipe", &recipe, "--state", &folder.path("none")])
        .env_remove("PLANTED_KEY")
        .output();
    let missing = missing.unwrap();
    assert!(
        missing.status.code() == Some(2) && String::from_utf8_lossy(&missing.stderr).contains("PLANTED_KEY")
    );
    let service = {
        let errors = std::fs::File::create(folder.path("log")).unwrap();
        let state = folder.path("state");
        let mut serve = command(&["serve", "--bind", "127.0.0.1:0", "--state", &state, "--recipe", &recipe]);
        serve.env("PLANTED_KEY", KEY).stdout(std::process::Stdio::piped()).stderr(errors);
        Service::of(serve.spawn().unwrap())
    };
    let answer = service.post("/v1/score", &json!({ "rollouts": [{ "response": "a" }] }));
    assert!(
        answer.text().contains("\"total\":null") && answer.text().contains("judge.auth"),
        "{}",
        answer.text()
    );
    let run = answer.json()["run"].as_str().unwrap().to_owned();
    let mut seen = vec![answer.text(), service.get("/metrics").text(), service.get("/v1/judges").text()];
    for path in ["", "/steps", "/groups", "/groups/0"] {
        seen.push(service.get(&format!("/v1/runs/{run}{path}")).text());
    }
    // What the judge says is for the operator, and only without the key.
    assert!(seen.iter().all(|text| !text.contains("rack7")), "{seen:?}");
    assert!(folder.read("log").contains("rack7"), "{}", folder.read("log"));
    seen.push(folder.read("log"));
    seen.push(std::fs::read_to_string(format!("/proc/{}/cmdline", service.pid())).unwrap());
    for text in seen {
        assert!(!text.contains(KEY), "{text}");
    }
    let found = std::process::Command::new("grep").args(["-r", KEY, &folder.path("state")]).output().unwrap();
    assert!(found.stdout.is_empty(), "{}", String::from_utf8_lossy(&found.stdout));
}
