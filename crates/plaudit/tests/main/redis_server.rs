//! Test harness for Redis: a real server on a free port, in a folder of its own, that can be killed and restarted.

use crate::left_out::leave_out;
use crate::timing::until;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A running server, which ends with the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    pub(crate) folder: PathBuf,
    flags: Vec<String>,
}

impl Server {
    /// Starts a server with these flags beside the usual ones. None where there is no Redis on this machine.
    pub(crate) fn start(flags: &[&str]) -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("plaudit-redis-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let Some(child) = launch(port, &folder, &flags) else {
            leave_out("no redis-server: .ci/setup installs it");
            return None;
        };
        let server = Self { child, port, folder, flags };
        server.wait();
        Some(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Ends it at once, as a loss of power would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again on the same port, with what is left in its folder.
    pub(crate) fn again(&mut self) {
        self.child = launch(self.port, &self.folder, &self.flags).unwrap();
        self.wait();
    }

    /// Returns when it answers anything at all.
    fn wait(&self) {
        until("redis-server answers", || {
            self.try_ask(&[b"PING"]).is_some_and(|said| !said.starts_with(b"-LOADING"))
        });
    }

    /// What it says to a command: the line of a simple reply with its sign, or the bytes of a string; empty for none.
    pub(crate) fn ask(&self, words: &[&[u8]]) -> Vec<u8> {
        self.try_ask(words).expect("an answer")
    }

    fn try_ask(&self, words: &[&[u8]]) -> Option<Vec<u8>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let mut sent = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            sent.extend(format!("${}\r\n", word.len()).into_bytes());
            sent.extend(*word);
            sent.extend(b"\r\n");
        }
        stream.write_all(&sent).ok()?;
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line).ok().filter(|read| *read > 0)?;
        let line = line.trim_ascii_end().to_vec();
        let Some(length) = line.strip_prefix(b"$") else { return Some(line) };
        let length: i64 = std::str::from_utf8(length).ok()?.parse().ok()?;
        let Ok(length) = usize::try_from(length) else { return Some(Vec::new()) };
        let mut bytes = vec![0; length];
        reader.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// A process that listens on a port; none where there is no such program.
fn launch(port: u16, folder: &PathBuf, flags: &[String]) -> Option<Child> {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--save", "", "--appendonly", "no", "--dir"]).arg(folder);
    command.args(flags).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(child) => Some(child),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("redis-server: {error}"),
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
