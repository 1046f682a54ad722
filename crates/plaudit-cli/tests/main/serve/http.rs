//! Test client of the service: starts it as a process, and speaks HTTP over plain sockets, so that nothing is corrected on
//! the way.

use crate::support::{Folder, command};
pub(crate) use crate::timing::until;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

/// What the service answered.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The code of a refusal.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_else(|| panic!("{}", self.text())).to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// A process that listens, until it is dropped.
pub(crate) struct Service {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) token: Option<String>,
}

impl Service {
    /// Starts `plaudit serve` with its state in a folder.
    pub(crate) fn start(folder: &Folder, more: &[&str]) -> Self {
        let state = folder.path("state");
        let mut arguments = vec!["serve", "--bind", "127.0.0.1:0", "--state", &state];
        arguments.extend(more);
        let errors = std::fs::OpenOptions::new().create(true).append(true).open(folder.path("log")).unwrap();
        Self::of(command(&arguments).stdout(Stdio::piped()).stderr(errors).spawn().unwrap())
    }

    /// A simulated judge.
    pub(crate) fn judge(more: &[&str]) -> Self {
        let mut arguments = vec!["judge-sim", "--port", "0"];
        arguments.extend(more);
        Self::of(command(&arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// What a process that was started says it listens on.
    pub(crate) fn of(mut child: Child) -> Self {
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("://").nth(1).unwrap_or_else(|| panic!("it said {line:?}"));
        let address = address.trim().trim_end_matches("/v1").parse().unwrap();
        Self { child, address, token: None }
    }

    /// The address of a judge, as a recipe names it.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        // The shell has it built in; a small system has no program of that name.
        let kill = format!("kill {name} {}", self.pid());
        let sent = std::process::Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end, and gives back its exit code.
    pub(crate) fn wait(&mut self) -> i32 {
        until("the service ends", || self.child.try_wait().unwrap().is_some());
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Sends bytes as they are, and reads one answer.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // Whoever refuses early may close before all of it is sent.
        let _ = stream.write_all(bytes);
        read(&mut stream).expect("an answer")
    }

    pub(crate) fn send(&self, method: &str, path: &str, body: &str, headers: &[(&str, &str)]) -> Answer {
        self.raw(request(method, path, body, headers, self.token.as_deref()).as_bytes())
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", &[])
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &body.to_string(), &[])
    }

    /// The value of a metric without labels.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").text();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        value.unwrap_or_else(|| panic!("no {name} in {text}"))
    }

    /// The processor time that it has taken so far.
    pub(crate) fn cpu_time(&self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let after_name = text.rsplit_once(") ").unwrap().1;
        let ticks = after_name.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap());
        // The kernel shows a hundred ticks a second on every platform.
        Duration::from_millis(ticks.sum::<u64>() * 10)
    }

    /// How many files and sockets it has open.
    pub(crate) fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap().count()
    }

    /// The resident memory, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let text = std::fs::read_to_string(format!("/proc/{}/statm", self.pid())).unwrap();
        text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn request(
    method: &str,
    path: &str,
    body: &str,
    headers: &[(&str, &str)],
    token: Option<&str>,
) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n");
    if method == "POST" {
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            text.push_str("content-type: application/json\r\n");
        }
        text.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    if let Some(token) = token {
        text.push_str(&format!("authorization: Bearer {token}\r\n"));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text + "\r\n" + body
}

/// Reads one answer; none where the connection ends without one.
pub(crate) fn read(stream: &mut impl Read) -> Option<Answer> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => bytes.push(byte[0]),
            _ => return None,
        }
    }
    let head = String::from_utf8(bytes).unwrap();
    let status = head.get(9..12)?.parse().ok()?;
    let mut answer = Answer { status, head, body: Vec::new() };
    let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
    answer.body = vec![0; length];
    stream.read_exact(&mut answer.body).ok()?;
    Some(answer)
}
