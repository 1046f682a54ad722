//! Test harness for judge calls: a mock judge in a process of its own, queries with a known answer, and a strict reader; and
//! tests of dropped and replayed calls.

use futures_util::future::join_all;
use plaudit::judge::answer::{QuestionKind, reply};
use plaudit::judge::client::{CallOutcome, JudgeClient, JudgeRegistry, JudgeUsage, Query, Request};
use plaudit::judge::config::{AddressConfig, JudgeConfig, ResolvedJudge};
use plaudit::judge::{AnswerFormat, AnswerLocation, AnswerParser, ExpectedAnswer, Reply, Usage, Verdict};
use plaudit::reason::{Code, Reason};
use plaudit::record::{Network, Record};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// A mock judge, killed when dropped.
pub(crate) struct Mock {
    child: Child,
    pub(crate) port: u16,
    ledger: PathBuf,
}

/// One request, as the mock saw it.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) sample: String,
    pub(crate) mode: String,
    pub(crate) at: f64,
    pub(crate) score: f64,
}

fn start(command: &mut Command) -> (Child, u16) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("python3");
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim().strip_prefix("LISTENING ").unwrap_or_else(|| panic!("the mock says {line:?}"));
    (child, port.parse().unwrap())
}

impl Mock {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("plaudit-mock-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self::again(0, std::env::temp_dir().join(name), arguments)
    }

    /// A mock on a port that one had before, with the same ledger.
    pub(crate) fn again(port: u16, ledger: PathBuf, arguments: &[&str]) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mock_judge.py");
        let mut command = Command::new("python3");
        command.args([script, "--port", &port.to_string(), "--ledger"]).arg(&ledger).args(arguments);
        let (child, port) = start(&mut command);
        Self { child, port, ledger }
    }

    /// Ends it, and returns what it needs to be started again.
    pub(crate) fn stop(mut self) -> (u16, PathBuf) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        (self.port, std::mem::take(&mut self.ledger))
    }

    /// Its address, where every request meets that fault; the mix of the mock for `ok`.
    pub(crate) fn url(&self, mode: &str) -> String {
        match mode {
            "ok" => format!("http://127.0.0.1:{}/v1", self.port),
            mode => format!("http://127.0.0.1:{}/f/{mode}/v1", self.port),
        }
    }

    pub(crate) fn ledger(&self) -> Vec<Line> {
        let text = std::fs::read_to_string(&self.ledger).unwrap();
        let line = |line: &str| {
            let value: Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| value[name].as_str().unwrap().to_owned();
            let number = |name: &str| value[name].as_f64().unwrap();
            Line { sample: text("sample"), mode: text("mode"), at: number("t"), score: number("score") }
        };
        // The last line may be half written.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(line).collect()
    }

    /// How many sockets of this process are connected to it.
    pub(crate) fn sockets(&self) -> usize {
        let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
        let remote = format!("0100007F:{:04X}", self.port);
        table
            .lines()
            .filter(|line| line.split_whitespace().nth(2) == Some(&remote) && line.contains(" 01 "))
            .count()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.ledger);
    }
}

/// A server with one of the certificates that nobody should trust.
pub(crate) struct Tls(Child, pub(crate) u16);

impl Tls {
    pub(crate) fn start(certificate: &str) -> Self {
        const SERVER: &str = "import socket,ssl,sys
c=ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER);c.load_cert_chain(sys.argv[1])
s=socket.create_server(('127.0.0.1',0));print('LISTENING',s.getsockname()[1],flush=True)
while 1:
    a=s.accept()[0]
    try:c.wrap_socket(a,server_side=True).close()
    except OSError:a.close()";
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/certificates/");
        let (child, port) =
            start(Command::new("python3").args(["-c", SERVER, &format!("{folder}{certificate}.pem")]));
        Self(child, port)
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A question about a sample, whose right score the mock knows by the sample's name.
pub(crate) struct Sample {
    pub(crate) id: String,
    /// A fault that the mock is asked for in the prompt.
    pub(crate) fault: Option<&'static str>,
}

pub(crate) fn samples(name: &str, count: usize) -> Vec<Sample> {
    (0..count).map(|at| Sample { id: format!("{name}-{at}"), fault: None }).collect()
}

impl Query for Sample {
    fn kind(&self) -> QuestionKind {
        QuestionKind::Score
    }

    fn formats(&self) -> &[AnswerFormat] {
        &[AnswerFormat::Json]
    }

    fn request(&self, _: AnswerFormat, attempt: u32) -> Result<Request, Reason> {
        let fault = self.fault.map_or_else(String::new, |fault| format!("[[fault:{fault}]]"));
        let content = format!("[[sample:{}]] {fault} attempt {attempt}", self.id);
        let message = serde_json::json!({"role": "user", "content": content});
        let body = serde_json::json!({"model": "mock", "messages": [message]});
        Ok(Request { path: "/chat/completions", body: body.to_string().into_bytes() })
    }

    fn read(&self, _: AnswerFormat, _: u32, body: &[u8]) -> Result<Verdict, Reason> {
        let echo = Some(("sample".to_owned(), self.id.clone()));
        let location = AnswerLocation::Json { field: "score".to_owned(), echo };
        let expected = ExpectedAnswer::Score { min: 0.0, max: 1.0 };
        AnswerParser { expected, location }.read(&Reply::read(body)?)
    }

    fn usage(&self, body: &[u8]) -> Option<Usage> {
        reply::usage(body)
    }
}

/// Patience for tests: for an attempt as long as a busy machine may take, and three seconds for a judge that is down.
pub(crate) fn config(url: &str) -> JudgeConfig {
    JudgeConfig {
        base_url: Some(AddressConfig::One(url.to_owned())),
        model: Some("judge".to_owned()),
        concurrency: 32,
        timeout: "15s".to_owned(),
        connect_timeout: "1s".to_owned(),
        patience: "3s".to_owned(),
        ..JudgeConfig::default()
    }
}

/// The judge of a configuration, whose breaker opens for a second at first.
pub(crate) fn judge(config: JudgeConfig) -> ResolvedJudge {
    let mut judge = ResolvedJudge::new("judge", config).unwrap();
    judge.rest = Duration::from_secs(1);
    judge
}

pub(crate) fn spec(url: &str) -> ResolvedJudge {
    judge(config(url))
}

/// What came of a run over some samples.
pub(crate) struct Run {
    pub(crate) asked: Vec<CallOutcome>,
    pub(crate) judge_usage: JudgeUsage,
    pub(crate) took: Duration,
    /// How many tasks the runtime still had when all was answered.
    pub(crate) tasks: usize,
}

impl Run {
    pub(crate) fn scored(&self) -> usize {
        self.asked.iter().filter(|asked| asked.verdict.is_ok()).count()
    }

    pub(crate) fn codes(&self) -> BTreeMap<Code, usize> {
        let mut codes = BTreeMap::new();
        for reason in self.asked.iter().filter_map(|asked| asked.verdict.as_ref().err()) {
            *codes.entry(reason.code).or_insert(0) += 1;
        }
        codes
    }
}

/// A client that shares its judges with no other.
pub(crate) fn client(judges: Vec<ResolvedJudge>, record: Arc<dyn Record>, network: Network) -> JudgeClient {
    JudgeClient::new(judges, record, network, &JudgeRegistry::default()).unwrap()
}

/// Asks a judge about all samples at once, on a runtime of its own.
pub(crate) fn run(spec: ResolvedJudge, record: &Arc<dyn Record>, samples: &[Sample], seconds: f64) -> Run {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let caller = client(vec![spec], Arc::clone(record), Network::Live);
        let start = Instant::now();
        let deadline = start + Duration::from_secs_f64(seconds);
        let asked = join_all(samples.iter().map(|sample| caller.ask(0, sample, deadline))).await;
        let took = start.elapsed();
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        Run { asked, judge_usage: caller.judge_usage().remove(0), took, tasks }
    })
}

#[test]
fn a_dropped_call_closes_its_socket_and_leaves_no_task() {
    let mock = Mock::start(&[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let record = Arc::new(plaudit::record::MemoryRecord::default());
        let caller = client(
            vec![judge(JudgeConfig { timeout: "60s".to_owned(), ..config(&mock.url("ok")) })],
            record,
            Network::Live,
        );
        let late = Instant::now() + Duration::from_secs(60);
        let first = Sample { id: "first".into(), fault: None };
        assert!(caller.ask(0, &first, late).await.verdict.is_ok());
        let hanging: Vec<Sample> =
            (0..32).map(|at| Sample { id: format!("hang-{at}"), fault: Some("hang") }).collect();
        let all = join_all(hanging.iter().map(|sample| caller.ask(0, sample, late)));
        let in_flight = async {
            while mock.ledger().len() < 1 + hanging.len() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = all => panic!("a judge that hangs has answered"),
            () = in_flight => {}
        }
        let mut left = (usize::MAX, usize::MAX);
        for _ in 0..1000 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            left = (mock.sockets(), tokio::runtime::Handle::current().metrics().num_alive_tasks());
            if left.0 <= 1 && left.1 <= 2 {
                break;
            }
        }
        assert!(left.0 <= 1 && left.1 <= 2, "{left:?} sockets and tasks are left beside the idle connection");
        let judge_usage = &caller.judge_usage()[0];
        assert_eq!((judge_usage.maybe_paid, judge_usage.peak), (32, 32));
        let again = Sample { id: "again".into(), fault: None };
        assert!(caller.ask(0, &again, late).await.verdict.is_ok());
    });
}

#[test]
fn a_replay_asks_nobody() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let record = Arc::new(plaudit::record::MemoryRecord::default());
        let caller = client(vec![spec("http://127.0.0.1:9/v1")], record, Network::Replay);
        let sample = &samples("replay", 1)[0];
        let asked = caller.ask(0, sample, Instant::now() + Duration::from_secs(9)).await;
        assert_eq!(asked.verdict.unwrap_err().code, Code::JudgeNotRecorded);
        assert_eq!(caller.judge_usage()[0].calls, 0);
    });
}
