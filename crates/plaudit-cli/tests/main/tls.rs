//! Certificates of judges: an authority that the system knows is trusted; a certificate that is expired, of another name or
//! self-signed is not.

use crate::support::{Folder, command};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

pub(crate) const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
const RECIPE: &str = r#"
components:
  half: { reward: judge, mode: pointwise, prompt: "{{ response }}", answer: { json: score, min: 0, max: 1 } }
judges: { main: { base_url: "URL", model: m, attempts: 1, patience: 1s } }
"#;

pub(crate) struct Server(Child, pub(crate) String);

impl Server {
    pub(crate) fn with(certificate: &str) -> Self {
        let mut child = Command::new("python3")
            .args([format!("{TESTS}/https_judge.py"), format!("{TESTS}/certificates/{certificate}.pem")])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self(child, format!("https://127.0.0.1:{}/v1", port.trim()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the command says of a judge with that certificate, where the authority is known or not.
fn verdict(certificate: &str, known: bool) -> String {
    let folder = Folder::new(&format!("tls-{certificate}-{known}"));
    let server = Server::with(certificate);
    let rollouts = folder.file("rollouts.jsonl", "{\"response\":\"a\"}\n");
    let recipe = folder.file("recipe.yaml", RECIPE.replace("URL", &server.1));
    let mut run = command(&["score", &rollouts, "--recipe", &recipe, "--quiet"]);
    if known {
        run.env("SSL_CERT_FILE", format!("{TESTS}/certificates/authority.pem"));
    }
    String::from_utf8(run.output().unwrap().stdout).unwrap()
}

#[test]
fn only_a_certificate_that_holds_is_trusted() {
    assert!(verdict("good", true).contains("\"total\":0.5"));
    for (certificate, known) in [("good", false), ("old", true), ("other", true)] {
        let said = verdict(certificate, known);
        assert!(said.contains("\"total\":null") && said.contains("judge.tls"), "{certificate}: {said}");
    }
}
