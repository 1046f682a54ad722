//! Load generator for the service: a client that keeps to a rate or asks as fast as it is answered, and tells what it saw.
//!
//! ```text
//! cargo run --release -p plaudit-cli --example load -- --address 127.0.0.1:7717 --recipe quickstart --connections 8 --seconds 10
//! ```
//!
//! It sends groups of rollouts with texts of their own, and prints one line of JSON. With `--engine RECIPE_FILE` the same groups go
//! to an engine in this process instead, so that what a service adds can be told.

use plaudit::engine::{Engine, ScoreOptions};
use plaudit::input::{Fields, read_line};
use plaudit::recipe::Recipe;
use plaudit::rollout::Rollout;
use serde_json::json;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

type Failed = Box<dyn Error + Send + Sync>;

#[derive(Debug, Clone)]
struct Options(BTreeMap<String, String>);

impl Options {
    fn read() -> Result<Self, Failed> {
        let mut options = BTreeMap::new();
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let name = word.strip_prefix("--").ok_or_else(|| format!("{word:?}: --NAME VALUE is wanted"))?;
            options.insert(name.to_owned(), words.next().ok_or("a value is missing")?);
        }
        Ok(Self(options))
    }

    fn text(&self, name: &str, default: &str) -> String {
        self.0.get(name).cloned().unwrap_or_else(|| default.to_owned())
    }

    fn number(&self, name: &str, default: f64) -> Result<f64, Failed> {
        Ok(self.0.get(name).map(|text| text.parse()).transpose()?.unwrap_or(default))
    }
}

/// Numbers that look random.
struct TestRng(u64);

impl TestRng {
    fn below(&mut self, count: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % count
    }
}

const WORDS: [&str; 24] = [
    "the", "answer", "is", "because", "we", "divide", "by", "two", "and", "then", "sum", "over", "all",
    "prime", "factors", "which", "gives", "a", "number", "that", "cannot", "be", "smaller", "than",
];

/// The lines of one group: responses of about so many bytes, which nobody has sent before.
fn group(seed: u64, size: usize, bytes: usize) -> Vec<String> {
    let mut rng = TestRng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut line = |member: usize| {
        let mut text = format!("<think>{seed:x} {member}");
        while text.len() < bytes {
            text.push(' ');
            text.push_str(WORDS[rng.below(24) as usize]);
        }
        let answer = rng.below(100);
        text.push_str(&format!("</think><answer>{answer}</answer>"));
        let value = json!({
            "group": format!("g{seed:x}"), "prompt": format!("What is {seed:x} modulo 100?"), "response": text,
            "reference": "42", "tokens": bytes / 4,
        });
        value.to_string()
    };
    (0..size).map(&mut line).collect()
}

#[derive(Debug, Default)]
struct Seen {
    /// Milliseconds, by status.
    times: BTreeMap<u16, Vec<f64>>,
    broken: u64,
}

/// One connection that asks again and again.
struct Client {
    address: String,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

impl Client {
    async fn ask(&mut self, path: &str, token: &str, body: &[u8]) -> Result<u16, Failed> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(&self.address).await?;
            stream.set_nodelay(true)?;
            self.stream = Some(stream);
            self.buffer.clear();
        }
        let Some(stream) = &mut self.stream else { return Err("no connection".into()) };
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        stream.write_all(&request).await?;
        loop {
            if let Some((status, length, close)) = head(&self.buffer)? {
                while self.buffer.len() < length {
                    if stream.read_buf(&mut self.buffer).await? == 0 {
                        return Err("closed in the middle".into());
                    }
                }
                self.buffer.drain(..length);
                if close {
                    self.stream = None;
                }
                return Ok(status);
            }
            if stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("closed".into());
            }
        }
    }
}

/// The status of an answer, its length with its head, and whether the connection ends with it; none while the head is not whole.
fn head(buffer: &[u8]) -> Result<Option<(u16, usize, bool)>, Failed> {
    let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let text = std::str::from_utf8(&buffer[..end])?.to_ascii_lowercase();
    let status = text.get(9..12).ok_or("no status")?.parse()?;
    let value = |name: &str| {
        text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned()))
    };
    let length: usize = value("content-length").ok_or("no length")?.parse()?;
    Ok(Some((status, end + 4 + length, value("connection").as_deref() == Some("close"))))
}

/// What every task needs.
struct Load {
    options: Options,
    size: usize,
    bytes: usize,
    /// How many requests a second in all; as fast as they are answered where it is 0.
    rate: f64,
    connections: usize,
    until: Instant,
    began: Instant,
    next: AtomicU64,
    seed: u64,
}

impl Load {
    /// The number of the next request once its time has come; none when the time is over.
    async fn turn(&self) -> Option<(u64, Instant)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut due = Instant::now();
        if self.rate > 0.0 {
            due = self.began + Duration::from_secs_f64(number as f64 / self.rate);
            tokio::time::sleep_until(due.into()).await;
        }
        (Instant::now() < self.until).then_some((self.seed + number, due))
    }
}

async fn client(load: Arc<Load>, seen: Arc<std::sync::Mutex<Seen>>) {
    let mut client =
        Client { address: load.options.text("address", "127.0.0.1:7717"), stream: None, buffer: Vec::new() };
    let (path, token) = (load.options.text("path", "/v1/score"), load.options.text("token", ""));
    let (recipe, run) = (load.options.text("recipe", "quickstart"), load.options.text("run", "load"));
    let dialect = load.options.text("dialect", "plaudit");
    // Few bodies that are sent many times, where making new ones would cost more than answering them.
    let reuse = load.options.number("bodies", 0.0).map_or(0, |bodies| bodies as u64);
    let mut made: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    while let Some((number, due)) = load.turn().await {
        let which = if reuse > 0 { load.seed + number % reuse } else { number };
        let make = || match dialect.as_str() {
            "openrlhf" => {
                let query: Vec<String> = group(which, load.size, load.bytes);
                let prompts: Vec<&str> = query.iter().map(|_| "").collect();
                json!({ "query": query, "prompts": prompts, "labels": prompts }).to_string().into_bytes()
            }
            _ => {
                let lines = group(which, load.size, load.bytes).join(",");
                format!("{{\"recipe\":{recipe:?},\"run\":{run:?},\"rollouts\":[{lines}]}}").into_bytes()
            }
        };
        let fresh;
        let body = match reuse {
            0 => {
                fresh = make();
                &fresh
            }
            _ => made.entry(which).or_insert_with(make),
        };
        let began = if load.rate > 0.0 { due } else { Instant::now() };
        let answer = tokio::time::timeout(Duration::from_secs(60), client.ask(&path, &token, body)).await;
        let took = began.elapsed().as_secs_f64() * 1000.0;
        let mut seen = seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match answer {
            Ok(Ok(status)) => seen.times.entry(status).or_default().push(took),
            _ => {
                seen.broken += 1;
                client.stream = None;
            }
        }
    }
}

/// The same groups without a service.
async fn alone(
    load: Arc<Load>,
    engine: Arc<Engine>,
    seen: Arc<std::sync::Mutex<Seen>>,
) -> Result<(), Failed> {
    while let Some((number, due)) = load.turn().await {
        let read = |line: String| -> Option<Rollout<'static>> {
            read_line(line.as_bytes(), &Fields::own()).ok()?.next()
        };
        let rollouts: Vec<Rollout<'static>> =
            group(number, load.size, load.bytes).into_iter().filter_map(read).collect();
        let (send, receive) = tokio::sync::oneshot::channel();
        engine.submit(rollouts, ScoreOptions::default(), move |_, report| {
            let _ = send.send(report.is_ok());
        });
        let good = receive.await.unwrap_or(false);
        let took = due.elapsed().as_secs_f64() * 1000.0;
        let mut seen = seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match good {
            true => seen.times.entry(200).or_default().push(took),
            false => seen.broken += 1,
        }
    }
    Ok(())
}

fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * share).round() as usize).copied()
}

fn main() -> Result<(), Failed> {
    let options = Options::read()?;
    let now = Instant::now();
    let load = Arc::new(Load {
        size: options.number("size", 8.0)? as usize,
        bytes: options.number("bytes", 2048.0)? as usize,
        rate: options.number("rate", 0.0)?,
        connections: options.number("connections", 8.0)? as usize,
        until: now + Duration::from_secs_f64(options.number("seconds", 10.0)?),
        began: now,
        next: AtomicU64::new(0),
        seed: options.number("seed", f64::from(std::process::id()))? as u64 * 1_000_000_007,
        options,
    });
    let seen = Arc::new(std::sync::Mutex::new(Seen::default()));
    let engine = match load.options.0.get("engine") {
        None => None,
        Some(recipe) => {
            let recipe = Recipe::named(recipe)?;
            Some(Arc::new(Engine::new(recipe.plan()?)?))
        }
    };
    let threads = load.options.number("threads", 2.0)? as usize;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..load.connections {
            let (load, seen) = (Arc::clone(&load), Arc::clone(&seen));
            match &engine {
                None => drop(tasks.spawn(client(load, seen))),
                Some(engine) => {
                    let engine = Arc::clone(engine);
                    tasks.spawn(async move { drop(alone(load, engine, seen).await) });
                }
            }
        }
        while tasks.join_next().await.is_some() {}
    });
    let seconds = load.began.elapsed().as_secs_f64();
    let mut seen = seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut statuses = serde_json::Map::new();
    for (status, times) in &mut seen.times {
        times.sort_by(f64::total_cmp);
        let times = json!({
            "count": times.len(), "per_s": times.len() as f64 / seconds,
            "p50_ms": percentile(times, 0.5), "p99_ms": percentile(times, 0.99), "most_ms": times.last(),
        });
        statuses.insert(status.to_string(), times);
    }
    let good = seen.times.get(&200).map_or(0, Vec::len);
    let told = json!({
        "seconds": seconds, "rollouts_per_s": (good * load.size) as f64 / seconds, "statuses": statuses,
        "broken": seen.broken,
    });
    #[allow(clippy::print_stdout, reason = "what it prints is what it is for")]
    {
        println!("{told}");
    }
    Ok(())
}
