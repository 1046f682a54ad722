//! The documentation as tests: commands run, recipes load, links lead somewhere.
//!
//! Each line after `$` in a `console` block is run. A line that ends with `# exits with N` must do that. One that ends with `&`
//! is a server: it is waited for, and runs until the end of its page. The ports of the documentation are replaced by free
//! ones, so that the tests pass while somebody uses plaudit. The targets of `make` are looked up and not run: this test is part
//! of one of them.

use crate::support::{Folder, installed};
use crate::timing::until;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<PathBuf> {
    let guide = std::fs::read_dir(root().join("docs/guide")).unwrap();
    let mut pages: Vec<PathBuf> = guide.map(|entry| entry.unwrap().path()).collect();
    pages.extend(["README.md", "CONTRIBUTING.md", "bench/README.md"].map(|name| root().join(name)));
    let crates = std::fs::read_dir(root().join("crates")).unwrap();
    pages.extend(crates.map(|entry| entry.unwrap().path().join("README.md")).filter(|page| page.exists()));
    pages.sort();
    pages
}

/// The commands of a page, each with the exit code that it promises.
fn commands(page: &Path) -> Vec<(String, i32)> {
    let text = std::fs::read_to_string(page).unwrap();
    let blocks = text.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("$ "));
    lines
        .map(|line| match line.split_once("# exits with ") {
            Some((command, code)) => (command.trim().to_owned(), code[..1].parse().unwrap()),
            None => (line.to_owned(), 0),
        })
        .collect()
}

/// The ports of the documentation: the service's default, and the one that its judge has there.
const PORTS: [&str; 2] = ["7717", "7718"];

/// As many free ports, each different from the others.
fn free_ports() -> [String; PORTS.len()] {
    let listeners = PORTS.map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port().to_string())
}

/// A server that ends with its page.
struct Server(Child);

impl Server {
    /// Starts it and waits until its port is open.
    fn start(command: &str, path: &str, folder: &str) -> Self {
        let port = command.split("--port ").nth(1).or_else(|| command.split("--bind 127.0.0.1:").nth(1));
        let port = port.unwrap().split(' ').next().unwrap();
        let mut parts = Command::new("sh");
        parts.args(["-c", &format!("exec {command}")]).current_dir(folder).env("PATH", path);
        let child = parts.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut server = Self(child);
        until(command, || {
            let ended = server.0.try_wait().unwrap();
            assert!(ended.is_none(), "{command} has ended: {ended:?}");
            TcpStream::connect(format!("127.0.0.1:{port}")).is_ok()
        });
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn documented_commands_work() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    let binaries = Path::new(env!("CARGO_BIN_EXE_plaudit")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let mut count = 0;
    for page in pages() {
        let folder = Folder::new("docs");
        let mut servers = Vec::new();
        let ports = free_ports();
        let service = format!("http://127.0.0.1:{}", ports[0]);
        for name in ["examples", "docs"] {
            std::os::unix::fs::symlink(root().join(name).canonicalize().unwrap(), folder.path(name)).unwrap();
        }
        for (command, code) in commands(&page) {
            count += 1;
            let command = PORTS.iter().zip(&ports).fold(command, |text, (old, new)| text.replace(old, new));
            if let Some(target) = command.strip_prefix("make ") {
                assert!(makefile.contains(&format!("\n{target}:")), "there is no make {target}");
                continue;
            }
            if command.contains("curl ") && !installed("curl") {
                continue;
            }
            if let Some(server) = command.strip_suffix(" &") {
                servers.push(Server::start(server, &path, &folder.path(".")));
                continue;
            }
            let run = Command::new("sh")
                .args(["-c", &command])
                .current_dir(folder.path("."))
                .env("PATH", &path)
                .env("PLAUDIT_URL", &service)
                .output();
            let run = run.unwrap();
            let said = String::from_utf8_lossy(&run.stderr);
            assert_eq!(run.status.code(), Some(code), "{}: {command}\n{said}", page.display());
        }
    }
    assert!(count > 20, "only {count} commands were found");
}

/// The recipe of the README, the recipes of the guide that are whole, and those of which it shows the judges alone.
#[test]
fn documented_recipes_load() {
    let mut count = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            let judged = "components: { quality: { reward: principle, principles: [helpfulness] } }\n";
            let block = match block.starts_with("judges:") {
                true => judged.to_owned() + block,
                false => block.to_owned(),
            };
            if block.contains("components:") {
                count += 1;
                let plan = plaudit::recipe::Recipe::from_yaml(&block).and_then(|recipe| recipe.plan());
                plan.unwrap_or_else(|errors| panic!("{}: {errors}\n{block}", page.display()));
            }
        }
    }
    assert!(count >= 20, "only {count} recipes were found");
}

/// Links to files of this repository lead somewhere.
#[test]
fn documented_links_lead_somewhere() {
    let others = ["ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md", "docs/versioning.md"]
        .map(|name| root().join(name));
    for page in pages().into_iter().chain(others) {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap();
            if !file.is_empty() && !file.contains("://") {
                assert!(page.parent().unwrap().join(file).exists(), "{}: {link}", page.display());
            }
        }
    }
}
