//! Judges behind a proxy: a small real one that forwards, tunnels (`CONNECT`) and speaks SOCKS, and may want a password.

use crate::judge_requests::{ROW, Server, scored};
use crate::support::{Folder, Ran, command};
use crate::tls;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What `me:hidden` is in base64.
const CREDENTIALS: &str = "Proxy-Authorization: Basic bWU6aGlkZGVu";

/// A proxy that leads everybody to one server, and keeps what it was asked for. It ends with the process.
struct Proxy {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start(upstream: SocketAddr, wants_password: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || drop(serve(stream, upstream, wants_password, &kept)));
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(
    mut client: TcpStream,
    upstream: SocketAddr,
    wants_password: bool,
    kept: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    if reader.fill_buf()?.first() == Some(&5) {
        // SOCKS 5: the offered methods, then a request with a name or an address of four bytes, and a port.
        let mut start = [0; 2];
        reader.read_exact(&mut start)?;
        reader.read_exact(&mut vec![0; usize::from(start[1])])?;
        client.write_all(&[5, 0])?;
        let mut request = [0; 5];
        reader.read_exact(&mut request)?;
        let length = if request[3] == 1 { 3 } else { usize::from(request[4]) };
        let mut rest = vec![0; length + 2];
        reader.read_exact(&mut rest)?;
        let name = String::from_utf8_lossy(&rest[..rest.len() - 2]).into_owned();
        kept.lock().unwrap().push(format!("SOCKS {name}"));
        client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
        return splice(reader, client, TcpStream::connect(upstream)?, b"");
    }
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    kept.lock().unwrap().push(head.lines().next().unwrap().to_owned());
    if wants_password && !head.to_ascii_lowercase().contains(&CREDENTIALS.to_ascii_lowercase()) {
        return client.write_all(
            b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
    }
    let server = TcpStream::connect(upstream)?;
    if head.starts_with("CONNECT ") {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
        return splice(reader, client, server, b"");
    }
    splice(reader, client, server, head.as_bytes())
}

/// Carries bytes both ways until one side ends.
fn splice(
    mut from: BufReader<TcpStream>,
    mut to: TcpStream,
    mut server: TcpStream,
    head: &[u8],
) -> std::io::Result<()> {
    server.write_all(head)?;
    let mut answers = server.try_clone()?;
    std::thread::spawn(move || std::io::copy(&mut answers, &mut to));
    std::io::copy(&mut from, &mut server).map(drop)
}

/// What `verb` says of a judge at that address.
fn ask(verb: &str, name: &str, judge: &str, variables: &[(&str, String)]) -> Ran {
    let folder = Folder::new(&format!("proxy-{name}"));
    let recipe = folder.file(
        "recipe.yaml",
        format!(
            "components:\n  q: {{ reward: judge, mode: pointwise, prompt: \"<a {{{{ fence }}}}>{{{{ response }}}}\", answer: {{ json: score, min: 0, max: 1 }} }}\njudges:\n  main: {{ model: m, hedge_share: 0, attempts: 1, patience: 1s, {judge} }}\n"
        ),
    );
    let rows = folder.file("rows.jsonl", ROW);
    let mut run = match verb {
        "doctor" => command(&["doctor", "--recipe", &recipe]),
        _ => command(&["score", &rows, "--recipe", &recipe, "--quiet"]),
    };
    for name in ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"] {
        run.env_remove(name).env_remove(name.to_ascii_lowercase());
    }
    run.env("SSL_CERT_FILE", format!("{}/certificates/authority.pem", tls::TESTS));
    let output = run.envs(variables.iter().cloned()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap(), out: text(output.stdout), talk: text(output.stderr) }
}

fn upstream(url: &str) -> SocketAddr {
    url.split('/').nth(2).unwrap().parse().unwrap()
}

const FOREIGN: &str = "base_url: \"http://judge.example/v1\"";

#[test]
fn a_plain_judge_is_asked_through_the_proxy() {
    let server = Server::start(200, scored);
    let proxy = Proxy::start(upstream(&server.url), false);
    for (variable, scheme) in [("HTTP_PROXY", "http://"), ("http_proxy", ""), ("ALL_PROXY", "http://")] {
        let ran = ask("score", variable, FOREIGN, &[(variable, format!("{scheme}{}", proxy.address))]);
        assert!(ran.out.contains("\"total\":0.5"), "{variable}: {} {}", ran.out, ran.talk);
    }
    assert_eq!(proxy.asked(), ["POST http://judge.example/v1/chat/completions HTTP/1.1"; 3]);
    let doctor = ask("doctor", "doctor", FOREIGN, &[("HTTP_PROXY", format!("http://{}", proxy.address))]);
    let said = format!("main: http://judge.example/v1 through http://{}, named by HTTP_PROXY", proxy.address);
    assert!(doctor.code == 0 && doctor.out.contains(&said), "{}", doctor.out);
}

#[test]
fn a_judge_behind_tls_is_asked_through_a_tunnel() {
    let server = tls::Server::with("good");
    let proxy = Proxy::start(upstream(&server.1), true);
    let judge = format!("base_url: \"{}\"", server.1);
    // What is on this machine goes through a proxy only where the recipe says so, which names no password.
    let environment = [("HTTPS_PROXY", format!("http://me:hidden@{}", proxy.address))];
    let ran = ask("score", "loopback", &judge, &environment);
    assert!(ran.out.contains("\"total\":0.5") && proxy.asked().is_empty(), "{}", ran.out);
    let open = Proxy::start(upstream(&server.1), false);
    let ran = ask("score", "tunnel", &format!("{judge}, proxy: \"http://{}\"", open.address), &environment);
    assert!(ran.out.contains("\"total\":0.5"), "{} {}", ran.out, ran.talk);
    assert_eq!(open.asked(), [format!("CONNECT {} HTTP/1.1", upstream(&server.1))]);
    let ran = ask("score", "socks", &format!("{judge}, proxy: \"socks5h://{}\"", open.address), &[]);
    assert!(ran.out.contains("\"total\":0.5"), "{} {}", ran.out, ran.talk);
}

#[test]
fn a_socks_proxy_resolves_the_name() {
    let server = Server::start(200, scored);
    let proxy = Proxy::start(upstream(&server.url), false);
    let ran = ask("score", "socks-name", FOREIGN, &[("ALL_PROXY", format!("socks5h://{}", proxy.address))]);
    assert!(ran.out.contains("\"total\":0.5"), "{} {}", ran.out, ran.talk);
    assert_eq!(proxy.asked(), ["SOCKS judge.example"]);
}

#[test]
fn a_password_reaches_the_proxy_and_no_message() {
    let server = Server::start(200, scored);
    let proxy = Proxy::start(upstream(&server.url), true);
    let known = [("HTTP_PROXY", format!("http://me:hidden@{}", proxy.address))];
    let ran = ask("score", "password", FOREIGN, &known);
    assert!(ran.out.contains("\"total\":0.5"), "{} {}", ran.out, ran.talk);
    let doctor = ask("doctor", "password-doctor", FOREIGN, &known);
    for told in [ran.out, ran.talk, doctor.out, doctor.talk] {
        assert!(!told.contains("hidden"), "{told}");
    }
    // Without one, both ways of asking get the same sentence.
    for judge in [FOREIGN, "base_url: \"https://judge.example/v1\""] {
        let ran = ask("score", "no-password", judge, &[("ALL_PROXY", format!("http://{}", proxy.address))]);
        assert!(ran.out.contains("judge.proxy"), "{}", ran.out);
        assert!(ran.out.contains("The proxy wants a name and a password (status 407)"), "{}", ran.out);
    }
}

#[test]
fn a_proxy_that_is_down_is_told_from_the_judge() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let variables = [("HTTPS_PROXY", format!("http://me:hidden@{closed}"))];
    let ran = ask("score", "down", "base_url: \"https://judge.example/v1\"", &variables);
    assert!(ran.out.contains("judge.proxy"), "{}", ran.out);
    let said = format!(
        "The proxy could not be reached. It was asked at https://judge.example/v1 through the proxy http://{closed}, named by HTTPS_PROXY."
    );
    assert!(ran.out.contains(&said) && !ran.out.contains("hidden"), "{}", ran.out);
    let ran = ask("score", "none", &format!("{FOREIGN}, proxy: none"), &[("ALL_PROXY", "p:1".to_owned())]);
    assert!(ran.out.contains("judge.dns"), "{}", ran.out);
    let ran =
        ask("score", "exempt", FOREIGN, &[("ALL_PROXY", "p:1".into()), ("NO_PROXY", ".example".into())]);
    assert!(ran.out.contains("judge.dns"), "{}", ran.out);
}

#[test]
fn a_senseless_proxy_is_told_before_anything_is_asked() {
    let ran = ask("score", "senseless", FOREIGN, &[("HTTP_PROXY", "ftp://me:hidden@proxy".to_owned())]);
    assert_eq!(ran.code, 2, "{}", ran.talk);
    assert!(ran.talk.contains("the proxy that HTTP_PROXY names must begin with http://"), "{}", ran.talk);
    assert!(!ran.talk.contains("hidden"), "{}", ran.talk);
}
